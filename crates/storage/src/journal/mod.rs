//! The journal: every commit, in order, in segment files. It is also the oplog.
//!
//! A commit is one [`frame`]; frames lie in [`segment`] files, one after the other, with ascending sequence numbers and no
//! holes. One writer (the sequencer) appends; [`sync`] makes durable; [`recover`] reads the tail at start-up. Segments
//! older than the last checkpoint are kept as the oplog up to a total size. [`mark`] says outside of the journal how far it
//! is durable, so that a tail that is lost later can be told from one that was never written.

pub(crate) mod frame;
pub(crate) mod mark;
pub(crate) mod recover;
pub(crate) mod sealed;
pub(crate) mod segment;
pub(crate) mod sync;

use crate::base::tree::PageFile;
use crate::encryption::Seals;
use crate::error::is_full;
use crate::files;
use crate::{Result, StorageError};
use nestor_model::Timestamp;
use segment::{OpenFile, Segment};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use sync::Syncer;

/// A place in the journal: the segment (by its first sequence number) and the offset in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// The last frame before a place in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LastFrame {
    /// Where it begins, in the segment of the place.
    pub(crate) offset: u64,
    pub(crate) checksum: u32,
}

/// Facts about the journal that the base keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Checkpoint {
    /// The last commit in the base.
    pub(crate) seq: u64,
    pub(crate) optime: Timestamp,
    /// The place behind it.
    pub(crate) position: Position,
    /// Its frame; `None` in a base that an earlier version wrote.
    pub(crate) last: Option<LastFrame>,
}

/// Frames that are appended together.
pub(crate) struct Frames<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where the last of them begins.
    pub(crate) last_at: usize,
    /// First and last sequence number in them.
    pub(crate) seqs: (u64, u64),
    /// Optime of the last commit before them.
    pub(crate) before: Timestamp,
    /// Optime of the last one of them.
    pub(crate) optime: Timestamp,
}

/// How a journal behaves.
#[derive(Clone)]
pub(crate) struct JournalOptions {
    /// A segment that has reached this size is followed by a new one.
    pub(crate) segment_bytes: u64,
    pub(crate) open: Arc<OpenFile>,
    /// The keys of frames, in an encrypted directory.
    pub(crate) seals: Option<Arc<Seals>>,
}

impl JournalOptions {
    pub(crate) fn new() -> Self {
        Self {
            segment_bytes: 32 << 20,
            open: Arc::new(open_file),
            seals: None,
        }
    }

    /// To look at segments that need not be writable.
    pub(crate) fn read_only(seals: Option<Arc<Seals>>) -> Self {
        Self {
            open: Arc::new(|path, _| Ok(Box::new(File::open(path)?))),
            seals,
            ..Self::new()
        }
    }
}

/// The files of a real journal.
fn open_file(path: &Path, create: bool) -> std::io::Result<Box<dyn PageFile>> {
    Ok(Box::new(match create {
        true => files::create_anew(path)?,
        false => files::open(path)?,
    }))
}

pub(crate) struct Journal {
    dir: PathBuf,
    options: JournalOptions,
    /// Oldest first; never empty. Appends go to the last.
    segments: RwLock<Vec<Arc<Segment>>>,
    /// The last frame, if it is known. Held while appending; the sequencer is alone anyway.
    last: Mutex<Option<LastFrame>>,
    /// Bytes appended since it was opened.
    appended: AtomicU64,
    /// The next frame begins a segment, whatever the size of the last.
    ends_segment: AtomicBool,
    pub(crate) syncer: Syncer,
}

impl Journal {
    /// A journal of existing segments that ends as `end` says. Those from `settled` on have to be settled
    /// ([`Syncer::settle`]) before anything is appended.
    pub(crate) fn new(
        dir: &Path,
        options: JournalOptions,
        segments: Vec<Arc<Segment>>,
        settled: usize,
        mark: &Path,
        end: &Checkpoint,
    ) -> Result<Self> {
        let syncer = Syncer::new(dir, mark, end)?;
        for segment in segments.iter().skip(settled) {
            syncer.add_segment(segment.clone());
        }
        Ok(Self {
            dir: dir.to_owned(),
            options,
            segments: RwLock::new(segments),
            last: Mutex::new(end.last),
            appended: AtomicU64::new(0),
            ends_segment: AtomicBool::new(false),
            syncer,
        })
    }

    /// The segments, oldest first.
    pub(crate) fn segments(&self) -> Vec<Arc<Segment>> {
        self.segments.read().expect("no holder of the lock panics").clone()
    }

    /// The keys of its frames, if they are encrypted.
    pub(crate) fn seals(&self) -> Option<&Arc<Seals>> {
        self.options.seals.as_ref()
    }

    /// Where its segments are.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether no segment follows.
    pub(crate) fn is_last(&self, segment: &Segment) -> bool {
        self.current().first_seq == segment.first_seq
    }

    fn current(&self) -> Arc<Segment> {
        let segments = self.segments.read().expect("no holder of the lock panics");
        segments.last().expect("a journal has at least one segment").clone()
    }

    /// The place behind the last frame. While a segment has none this is the end of the one before: only with its first
    /// frame a segment becomes durable.
    pub(crate) fn position(&self) -> Position {
        let segments = self.segments.read().expect("no holder of the lock panics");
        let has_frames = |segment: &&Arc<Segment>| segment.len() > segment::HEADER_BYTES as u64;
        let current = segments.iter().rfind(has_frames).or(segments.last());
        let current = current.expect("a journal has at least one segment");
        Position {
            segment: current.first_seq,
            offset: current.len(),
        }
    }

    /// The last frame, which is before [`Journal::position`]; `None` if it is not known.
    pub(crate) fn last(&self) -> Option<LastFrame> {
        *self.last.lock().expect("no holder of the lock panics")
    }

    /// Bytes appended since it was opened.
    pub(crate) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }

    /// Total size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments().iter().map(|s| s.len()).sum()
    }

    /// Appends whole frames with one write. On error nothing of them stays: if the disk is full, later appends may
    /// succeed; after any other failure none will.
    pub(crate) fn append(&self, frames: &Frames<'_>) -> Result<()> {
        let mut last = self.last.lock().expect("no holder of the lock panics");
        if let Some(failure) = self.syncer.failure() {
            return Err(failure);
        }
        let mut segment = self.current();
        let is_ended = self.ends_segment.load(Ordering::Relaxed) && segment.len() > segment::HEADER_BYTES as u64;
        if segment.len() >= self.options.segment_bytes || is_ended {
            segment = self.rotate(frames.seqs.0, frames.before)?;
            self.ends_segment.store(false, Ordering::Relaxed);
        }
        let at = segment.len();
        if self.syncer.is_awaited() {
            segment.prepare(frames.bytes.len() as u64, self.options.segment_bytes);
        }
        if let Err(error) = segment.file.write_at(frames.bytes, at) {
            return Err(self.take_back(&segment, at, &error));
        }
        let checksum = frame::checksum(&frames.bytes[frames.last_at..]);
        *last = Some(LastFrame {
            offset: at + frames.last_at as u64,
            checksum,
        });
        segment.set_len(at + frames.bytes.len() as u64);
        self.appended.fetch_add(frames.bytes.len() as u64, Ordering::Relaxed);
        self.syncer.appended(frames.seqs.1, frames.optime, checksum);
        Ok(())
    }

    /// Has the next frame begin a segment: those that are there stay as they are. For the holder of the sequencer.
    pub(crate) fn end_segment(&self) {
        self.ends_segment.store(true, Ordering::Relaxed);
        self.current().trim();
    }

    /// Leaves no room behind the last frame. For the holder of the sequencer.
    pub(crate) fn trim(&self) {
        self.current().trim();
    }

    fn rotate(&self, first_seq: u64, before: Timestamp) -> Result<Arc<Segment>> {
        let segment = Segment::create(&self.dir, first_seq, before, &self.options)?;
        // Durable with the next sync, which has the directory in it: before anything that is in the new segment.
        self.current().trim();
        let segment = Arc::new(segment);
        self.syncer.add_segment(segment.clone());
        let mut segments = self.segments.write().expect("no holder of the lock panics");
        segments.push(segment.clone());
        Ok(segment)
    }

    /// After a failed write at `at`: a full disk is no harm if the part written is cut off again.
    fn take_back(&self, segment: &Segment, at: u64, error: &std::io::Error) -> StorageError {
        let failure = StorageError::io("write", &segment.path, error);
        if is_full(error) {
            // Synced: the part may have whole commits in it, which are refused from now on, whatever happens.
            let cut = || segment.cut_back(at).and_then(|()| segment.file.sync());
            let outcome = self
                .syncer
                .alone(|| cut().map_err(|error| StorageError::io("truncate", &segment.path, &error)));
            return outcome.err().unwrap_or(failure);
        }
        self.syncer.fail(&failure)
    }

    /// Removes the oldest segments beyond `bytes_max`, as long as they lie before `needed` and have no commit of `young` or later.
    /// Returns how many.
    pub(crate) fn retain(&self, bytes_max: u64, young: Timestamp, needed: Position) -> usize {
        let mut removed = Vec::new();
        {
            let mut segments = self.segments.write().expect("no holder of the lock panics");
            let mut total: u64 = segments.iter().map(|s| s.len()).sum();
            while let [oldest, next, ..] = &segments[..]
                && oldest.first_seq < needed.segment
                && total > bytes_max
                && next.optime_before < young
            {
                let oldest = segments.remove(0);
                total -= oldest.len();
                removed.push(oldest);
            }
        }
        for segment in &removed {
            // Readers that are in it keep the open file. What cannot be removed now is at the next start.
            if let Err(error) = std::fs::remove_file(&segment.path) {
                tracing::warn!(path = %segment.path.display(), %error, "an old journal segment cannot be removed");
            }
        }
        removed.len()
    }
}
