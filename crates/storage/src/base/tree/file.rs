//! The file under the tree, as a trait, so that tests can lose writes and fill the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Positioned reads and writes on one file. All methods may be called from several threads at once.
pub trait PageFile: Send + Sync {
    /// Fills `buffer` from `offset`; `UnexpectedEof` if the file is too short.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`, extending the file where needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Returns when everything written before is durable.
    fn sync(&self) -> io::Result<()>;
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

impl PageFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
