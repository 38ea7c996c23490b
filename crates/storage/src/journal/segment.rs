//! Segments: the files of the journal.
//!
//! A segment is named `<sequence number of its first frame, 16 hexadecimal digits>.journal`.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 8 | `NestorJL` |
//! | 8 | 4 | format version: 1 |
//! | 12 | 4 | crc32c of the other 28 bytes of the header |
//! | 16 | 8 | sequence number of the first frame |
//! | 24 | 8 | optime of the last commit before it; 0 if there is none |
//! | 32 | | frames, one after the other |
//! | | | zeros, in the segment that is appended to and after a crash: room that the disk has already (see [`Segment::prepare`]) |
//!
//! Example: the first segment of a journal begins
//!
//! ```text
//! 4e 65 73 74 6f 72 4a 4c  01 00 00 00  07 5c 4a 40  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
//! ```

use super::JournalOptions;
use super::frame::{self, Frame};
use crate::base::tree::PageFile;
use crate::encryption::Seals;
use crate::error::is_full;
use crate::{Result, StorageError};
use nestor_model::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) const HEADER_BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"NestorJL";
const VERSION: u32 = 1;
/// Bytes between the frames whose places a segment remembers.
const INDEX_BYTES: u64 = 64 << 10;

/// Durable bytes that leave memory at a time.
const FORGET_BYTES: u64 = 1 << 20;

/// Zeros written behind the frames at a time: some hundred small commits, and little beside what a sync costs.
const PREPARED_BYTES: u64 = 256 << 10;

/// Opens the file of a segment; the flag says to create it, empty.
pub(crate) type OpenFile = dyn Fn(&Path, bool) -> std::io::Result<Box<dyn PageFile>> + Send + Sync;

/// One file of the journal.
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) first_seq: u64,
    /// Optime of the last commit before this segment.
    pub(crate) optime_before: Timestamp,
    pub(crate) file: Box<dyn PageFile>,
    /// Bytes of header and whole frames.
    len: AtomicU64,
    /// The keys of the frames, if they are encrypted.
    pub(crate) seals: Option<Arc<Seals>>,
    index: Mutex<Index>,
    /// Where what may stay in memory begins.
    forgotten: AtomicU64,
    /// Where the zeros behind the frames end; not behind `len` if there are none.
    prepared: AtomicU64,
}

/// Places of some frames: `(optime before the frame, offset)`, ascending, as far as looked at.
#[derive(Default)]
struct Index {
    places: Vec<(Timestamp, u64)>,
    upto: u64,
    last: Timestamp,
    /// Oplog entries of the frames before `upto`.
    entries: u64,
}

/// A segment's file name.
pub(crate) fn file_name(first_seq: u64) -> String {
    format!("{first_seq:016x}.journal")
}

/// The sequence number in a file name; `None` for other files.
pub(crate) fn parse_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".journal")?;
    if digits.len() != 16 {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

fn encode_header(first_seq: u64, optime_before: Timestamp) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&first_seq.to_le_bytes());
    header[24..].copy_from_slice(&optime_before.to_u64().to_le_bytes());
    let crc = header_crc(&header);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    header
}

fn header_crc(header: &[u8; HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..])
}

impl Segment {
    /// Makes an empty segment. A file that could not be finished is removed.
    pub(crate) fn create(
        dir: &Path,
        first_seq: u64,
        optime_before: Timestamp,
        options: &JournalOptions,
    ) -> Result<Self> {
        let path = dir.join(file_name(first_seq));
        let file = (options.open)(&path, true).map_err(|e| StorageError::io("create", &path, &e))?;
        if let Err(error) = file.write_at(&encode_header(first_seq, optime_before), 0) {
            // Best effort: a header that is cut off is recognized at the next start anyway.
            let _ = std::fs::remove_file(&path);
            return Err(StorageError::io("write", &path, &error));
        }
        Ok(Self {
            path,
            first_seq,
            optime_before,
            file,
            len: AtomicU64::new(HEADER_BYTES as u64),
            seals: options.seals.clone(),
            index: Mutex::default(),
            forgotten: AtomicU64::new(0),
            prepared: AtomicU64::new(0),
        })
    }

    /// Opens an existing segment. `Ok(None)` if its header was never written completely. `len` is set to the length of
    /// the file.
    pub(crate) fn open(dir: &Path, first_seq: u64, options: &JournalOptions) -> Result<Option<Self>> {
        let path = dir.join(file_name(first_seq));
        let file = (options.open)(&path, false).map_err(|e| StorageError::io("open", &path, &e))?;
        let len = file.len().map_err(|e| StorageError::io("open", &path, &e))?;
        if len < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES];
        file.read_at(&mut header, 0)
            .map_err(|e| StorageError::io("read", &path, &e))?;
        if header == [0; HEADER_BYTES] {
            return Ok(None);
        }
        let corrupt = |offset, reason: &str| StorageError::Corrupt {
            file: path.clone(),
            offset,
            reason: reason.into(),
        };
        if &header[..8] != MAGIC {
            return Err(corrupt(0, "not a journal segment"));
        }
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let version = word(8) as u32;
        if version > VERSION {
            return Err(StorageError::NewerFormat {
                file: path,
                found: version,
                supported: VERSION,
            });
        }
        if (word(8) >> 32) as u32 != header_crc(&header) {
            return Err(corrupt(12, "segment header checksum does not match"));
        }
        if word(16) != first_seq {
            return Err(corrupt(16, "segment header does not fit the file name"));
        }
        Ok(Some(Self {
            optime_before: Timestamp::from_u64(word(24)),
            path,
            first_seq,
            file,
            len: AtomicU64::new(len),
            seals: options.seals.clone(),
            index: Mutex::default(),
            forgotten: AtomicU64::new(0),
            prepared: AtomicU64::new(0),
        }))
    }

    /// Writes what was read at `offset` once more, and the header if that lies before it. A file system that does not write
    /// in place may have no room for that: then it is left.
    pub(crate) fn write_again(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let header = encode_header(self.first_seq, self.optime_before);
        let header = (offset == HEADER_BYTES as u64).then_some((&header[..], 0));
        for (bytes, offset) in header.into_iter().chain([(bytes, offset)]) {
            match self.file.write_at(bytes, offset) {
                Err(error) if !is_full(&error) => return Err(StorageError::io("write", &self.path, &error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Bytes of header and whole frames.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    pub(crate) fn set_len(&self, len: u64) {
        self.len.store(len, Ordering::Release);
    }

    /// Everything before `durable` is on disk. Its pages of the system's cache serve the frames that come next: new pages
    /// for each cost more than writing into them, and only readers that lag far behind would use the old ones.
    pub(crate) fn forget(&self, durable: u64) {
        let upto = durable - durable % FORGET_BYTES;
        let from = self.forgotten.fetch_max(upto, Ordering::Relaxed);
        if from < upto {
            self.file.forget(from..upto);
        }
    }

    /// Writes zeros behind the frames, unless there are some where the next `bytes` go. A sync of frames that go where the file
    /// has bytes already writes these frames and nothing else; a file that grows needs its new length and place on the disk, which is a
    /// transaction of the file system. Only for whoever appends, and then only for small frames that are waited for: they pay for
    /// the zeros by far.
    ///
    /// A segment is to be no longer than `len_max`. That it does not succeed is no harm: the disk may have no room for more than the
    /// frames. Then it is left for as long as the zeros would have served.
    pub(crate) fn prepare(&self, bytes: u64, len_max: u64) {
        let len = self.len();
        let end = (len + PREPARED_BYTES).min(len_max);
        let is_useless = bytes > PREPARED_BYTES / 4 || end < len + bytes;
        if is_useless || self.prepared.load(Ordering::Relaxed) >= len + bytes {
            return;
        }
        let zeros = vec![0; (end - len) as usize];
        if let Err(error) = self.file.write_at(&zeros, len) {
            tracing::debug!(path = %self.path.display(), %error, "no room behind the frames of the journal");
        }
        self.prepared.store(end, Ordering::Relaxed);
    }

    /// Cuts off the zeros behind the frames. Only while nobody appends.
    pub(crate) fn trim(&self) {
        let len = self.len();
        if self.prepared.swap(0, Ordering::Relaxed) > len
            && let Err(error) = self.file.set_len(len)
        {
            // The next start does without.
            tracing::warn!(path = %self.path.display(), %error, "a segment of the journal cannot be shortened");
        }
    }

    /// Cuts off what is behind `at`, where the frames end. Only for whoever appends.
    pub(crate) fn cut_back(&self, at: u64) -> std::io::Result<()> {
        self.prepared.store(0, Ordering::Relaxed);
        self.file.set_len(at)
    }

    /// Whether these bytes, which follow a frame, are the zeros behind the last one.
    pub(crate) fn is_prepared(bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| *byte == 0)
    }

    pub(crate) fn corrupt(&self, offset: u64, reason: &str) -> StorageError {
        StorageError::Corrupt {
            file: self.path.clone(),
            offset,
            reason: reason.into(),
        }
    }

    /// The contents of a frame that begins at `offset`: the frame itself, or decrypted in `plain`.
    pub(crate) fn contents<'p>(&self, frame: Frame<'p>, offset: u64, plain: &'p mut Vec<u8>) -> Result<Frame<'p>> {
        frame
            .open(self.seals.as_deref(), plain)
            .map_err(|e| self.corrupt(offset, e.0))
    }

    /// Reads `buffer.len()` bytes at `offset`.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file
            .read_at(buffer, offset)
            .map_err(|e| StorageError::io("read", &self.path, &e))
    }

    /// Reads the header of the frame at `offset` and returns it with the frame's length; `None` at the end.
    pub(crate) fn header(&self, offset: u64) -> Result<Option<([u8; frame::HEADER_BYTES], u64)>> {
        if offset >= self.len() {
            return Ok(None);
        }
        let mut header = [0; frame::HEADER_BYTES];
        self.read(&mut header, offset)?;
        let length = frame::length(&header).map_err(|e| self.corrupt(offset, e.0))?;
        Ok(Some((header, length as u64)))
    }

    /// Oplog entries of all its frames.
    pub(crate) fn entries(&self) -> Result<u64> {
        self.place(Timestamp::from_u64(u64::MAX))?;
        Ok(self.index.lock().expect("no holder of the lock panics").entries)
    }

    /// An offset of a frame such that all frames before it have optimes `<= after`; not far from the last such one.
    pub(crate) fn place(&self, after: Timestamp) -> Result<u64> {
        let mut index = self.index.lock().expect("no holder of the lock panics");
        if index.upto == 0 {
            index.upto = HEADER_BYTES as u64;
            index.last = self.optime_before;
        }
        while index.last <= after {
            let offset = index.upto;
            let due = index.places.last().is_none_or(|(_, at)| offset - at >= INDEX_BYTES);
            let Some((header, length)) = self.header(offset)? else {
                break;
            };
            if due {
                let before = index.last;
                index.places.push((before, offset));
            }
            index.last = frame::optime(&header);
            index.upto = offset + length;
            index.entries += u64::from(frame::entry_count(&header));
        }
        let at = index.places.partition_point(|(before, _)| *before <= after);
        Ok(match at.checked_sub(1) {
            Some(at) => index.places[at].1,
            None => HEADER_BYTES as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_example() {
        let text: Vec<String> = encode_header(1, Timestamp::default())
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(
            text.join(" "),
            "4e 65 73 74 6f 72 4a 4c 01 00 00 00 07 5c 4a 40 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
        );
    }

    /// Remembers what it was told to forget.
    struct Forgetful(Mutex<Vec<std::ops::Range<u64>>>);

    impl PageFile for std::sync::Arc<Forgetful> {
        fn read_at(&self, _: &mut [u8], _: u64) -> std::io::Result<()> {
            Err(std::io::ErrorKind::Unsupported.into())
        }
        fn write_at(&self, _: &[u8], _: u64) -> std::io::Result<()> {
            Ok(())
        }
        fn sync(&self) -> std::io::Result<()> {
            Ok(())
        }
        fn forget(&self, range: std::ops::Range<u64>) {
            self.0.lock().unwrap().push(range);
        }
        fn set_len(&self, _: u64) -> std::io::Result<()> {
            Ok(())
        }
        fn len(&self) -> std::io::Result<u64> {
            Ok(0)
        }
    }

    #[test]
    fn what_is_durable_leaves_memory_in_large_pieces() {
        let file = std::sync::Arc::new(Forgetful(Mutex::default()));
        let opened = file.clone();
        let options = JournalOptions {
            open: Arc::new(move |_, _| Ok(Box::new(opened.clone()) as Box<dyn PageFile>)),
            ..JournalOptions::new()
        };
        let segment = Segment::create(Path::new("."), 1, Timestamp::default(), &options);
        let segment = segment.unwrap();
        for durable in [
            32,
            FORGET_BYTES - 1,
            FORGET_BYTES + 5,
            FORGET_BYTES + 6,
            4 * FORGET_BYTES,
            3 * FORGET_BYTES,
        ] {
            segment.forget(durable);
        }
        assert_eq!(
            *file.0.lock().unwrap(),
            [0..FORGET_BYTES, FORGET_BYTES..4 * FORGET_BYTES]
        );
    }

    #[test]
    fn names() {
        assert_eq!(parse_name(&file_name(0xABC)), Some(0xABC));
        for other in ["abc.journal", "0000000000000001.tmp", "zzzzzzzzzzzzzzzz.journal"] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }
}
