//! The file under the tree, as a trait, so that tests can lose writes and fill the disk.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Positioned reads and writes on one file. All methods may be called from several threads at once.
pub trait PageFile: Send + Sync {
    /// Fills `buffer` from `offset`; `UnexpectedEof` if the file is too short.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`, extending the file where needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Returns when everything written before is durable.
    fn sync(&self) -> io::Result<()>;
    /// The bytes between these offsets are durable and will seldom be read: they need not stay in memory.
    fn forget(&self, _range: Range<u64>) {}
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// The size of the tree's pages, if the file has pages of its own and no other will do.
    fn page_bytes(&self) -> Option<usize> {
        None
    }
    /// Where on the disk what is at `offset` lies.
    fn place(&self, offset: u64) -> u64 {
        offset
    }
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

    fn forget(&self, range: Range<u64>) {
        let len = NonZeroU64::new(range.end.saturating_sub(range.start));
        // Only advice: that it is not taken is no harm.
        let _ = rustix::fs::fadvise(self, range.start, len, rustix::fs::Advice::DontNeed);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
