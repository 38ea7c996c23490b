//! Reading the oplog: the entries of commits, in the order of their optimes.
//!
//! Entries come from the journal's segments, or, when the store lives in memory, from a queue of limited size.

use crate::journal::Journal;
use crate::journal::frame::{self, Frame};
use crate::journal::segment::{self, Segment};
use crate::write_set::PendingEntry;
use crate::{Engine, Result, StorageError};
use nestor_model::{RawDocBuf, Timestamp};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How many bytes of the journal a cursor reads at a time, unless a frame is longer: commits are often small, and a call of
/// the system for each would take longer than all else.
const READ_AHEAD: u64 = 64 << 10;

/// Where oplog entries are.
#[derive(Clone)]
pub(crate) enum Oplog {
    Journal(Arc<Journal>),
    Memory(Arc<MemoryOplog>),
}

/// The oplog of a store that lives in memory.
pub(crate) struct MemoryOplog {
    bytes_max: u64,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Optime, commit and entry, ascending.
    entries: VecDeque<(Timestamp, u64, RawDocBuf)>,
    bytes: u64,
    /// Optime of the last entry that was dropped.
    dropped: Timestamp,
}

impl MemoryOplog {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            queue: Mutex::default(),
        }
    }

    /// Adds a commit's entries, giving them `first` and the optimes after it.
    pub(crate) fn push(&self, entries: &[PendingEntry], seq: u64, first: Timestamp, term: i64) {
        let mut queue = self.queue.lock().expect("no holder of the lock panics");
        let mut ts = first;
        for entry in entries {
            let mut bytes = entry.bytes.as_bytes().to_vec();
            entry.complete(&mut bytes, ts, term);
            queue.bytes += bytes.len() as u64;
            // Only the bytes of two numbers changed.
            if let Ok(doc) = RawDocBuf::validate(bytes) {
                queue.entries.push_back((ts, seq, doc));
            }
            ts.inc = ts.inc.wrapping_add(1);
        }
        while queue.bytes > self.bytes_max {
            let Some((ts, _, doc)) = queue.entries.pop_front() else {
                break;
            };
            queue.bytes -= doc.as_bytes().len() as u64;
            queue.dropped = ts;
        }
    }
}

/// Reads oplog entries one after the other. It shows entries of published commits only, and goes on when more come.
pub struct OplogCursor {
    engine: Engine,
    oplog: Oplog,
    /// The last entry given (or where to start): ascending, what comes next is greater; descending, it is less.
    at: Timestamp,
    /// It may begin with the oldest entry kept.
    from_oldest: bool,
    place: Option<Place>,
    /// Entries of the frame just read, next one last.
    ready: Vec<(Timestamp, RawDocBuf)>,
}

/// Where an ascending cursor reads on in the journal.
struct Place {
    segment: Arc<Segment>,
    offset: u64,
    /// Optime up to which everything has been read: with it the segment that follows is found, and is known to follow.
    upto: Timestamp,
    ahead: Ahead,
}

/// Bytes of a segment that were read ahead. They are of whole frames, which never change.
#[derive(Default)]
struct Ahead {
    bytes: Vec<u8>,
    /// Where in the segment they begin.
    offset: u64,
}

impl Ahead {
    /// `len` bytes at `offset`, which lie before the segment's end.
    fn get(&mut self, segment: &Segment, offset: u64, len: u64) -> Result<&[u8]> {
        let end = self.offset + self.bytes.len() as u64;
        if offset < self.offset || offset + len > end {
            let wanted = READ_AHEAD.min(segment.len().saturating_sub(offset)).max(len);
            if self.bytes.capacity() as u64 > READ_AHEAD {
                self.bytes = Vec::new();
            }
            self.bytes.clear();
            self.bytes.resize(wanted as usize, 0);
            if let Err(error) = segment.read(&mut self.bytes, offset) {
                self.bytes.clear();
                return Err(error);
            }
            self.offset = offset;
        }
        let at = (offset - self.offset) as usize;
        Ok(&self.bytes[at..at + len as usize])
    }

    /// As [`Segment::header`].
    fn header(&mut self, segment: &Segment, offset: u64) -> Result<Option<([u8; frame::HEADER_BYTES], u64)>> {
        if offset >= segment.len() {
            return Ok(None);
        }
        let mut header = [0; frame::HEADER_BYTES];
        header.copy_from_slice(self.get(segment, offset, frame::HEADER_BYTES as u64)?);
        let length = frame::length(&header).map_err(|e| segment.corrupt(offset, e.0))?;
        Ok(Some((header, length as u64)))
    }
}

impl OplogCursor {
    pub(crate) fn new(engine: Engine, oplog: Oplog, at: Timestamp) -> Self {
        Self {
            engine,
            oplog,
            at,
            from_oldest: false,
            place: None,
            ready: Vec::new(),
        }
    }

    /// Lets the cursor begin with the oldest entry kept if there were entries before it. From its first read on it
    /// misses none.
    #[must_use]
    pub fn from_oldest(mut self) -> Self {
        self.from_oldest = true;
        self
    }

    /// The optime of the last entry given, or the one the cursor was opened with.
    pub fn position(&self) -> Timestamp {
        self.at
    }

    /// The first entry after the position; `None` if there is none yet.
    ///
    /// Errors: [`StorageError::OplogHistoryLost`] if entries after the position are no longer kept.
    pub fn next(&mut self) -> Result<Option<RawDocBuf>> {
        let limit = self.engine.last_lsn().0;
        let next = self.next_entry(limit)?;
        self.from_oldest = false;
        let Some((ts, doc)) = next else {
            return Ok(None);
        };
        self.at = ts;
        Ok(Some(doc))
    }

    fn next_entry(&mut self, limit: u64) -> Result<Option<(Timestamp, RawDocBuf)>> {
        let journal = match &self.oplog {
            Oplog::Memory(memory) => {
                let queue = memory.queue.lock().expect("no holder of the lock panics");
                if self.at < queue.dropped && !self.from_oldest {
                    return Err(StorageError::OplogHistoryLost);
                }
                let i = queue.entries.partition_point(|(ts, _, _)| *ts <= self.at);
                let next = queue.entries.get(i).filter(|(_, seq, _)| *seq <= limit);
                return Ok(next.map(|(ts, _, doc)| (*ts, doc.clone())));
            }
            Oplog::Journal(journal) => journal.clone(),
        };
        loop {
            if let Some(entry) = self.ready.pop() {
                return Ok(Some(entry));
            }
            let mut place = match self.place.take() {
                Some(place) => place,
                None => find(&journal, self.at, self.from_oldest)?,
            };
            let Some((header, length)) = place.ahead.header(&place.segment, place.offset)? else {
                // Behind the last frame of this segment: go on with the next one, if there is one.
                if journal.is_last(&place.segment) {
                    self.place = Some(place);
                    return Ok(None);
                }
                // Frames may have been added before the next segment was made.
                if place.offset >= place.segment.len() {
                    let read = place.segment.first_seq;
                    place = find(&journal, place.upto, false)?;
                    if place.segment.first_seq <= read {
                        return Err(StorageError::OplogHistoryLost);
                    }
                }
                self.place = Some(place);
                continue;
            };
            if frame::seq(&header) > limit {
                self.place = Some(place);
                return Ok(None);
            }
            let at = place.offset;
            place.offset += length;
            place.upto = place.upto.max(frame::optime(&header));
            if frame::entry_count(&header) > 0 && frame::optime(&header) > self.at {
                self.ready = entries(place.ahead.get(&place.segment, at, length)?, &place.segment, at)?;
                self.ready.retain(|(ts, _)| *ts > self.at);
                self.ready.reverse();
            }
            self.place = Some(place);
        }
    }

    /// Optimes of the first and last entry kept.
    pub(crate) fn range(mut self) -> Result<Option<(Timestamp, Timestamp)>> {
        self.at = match &self.oplog {
            Oplog::Memory(memory) => memory.queue.lock().expect("no holder of the lock panics").dropped,
            Oplog::Journal(journal) => journal.segments().first().map_or(self.at, |s| s.optime_before),
        };
        if self.next()?.is_none() {
            return Ok(None);
        }
        let first = self.at;
        self.at = Timestamp::from_u64(u64::MAX);
        self.prev()?;
        Ok(Some((first, self.at)))
    }

    /// The last entry before the position; `None` if there is none that is still kept. Each call looks for it anew, so
    /// this is for reading a few.
    pub fn prev(&mut self) -> Result<Option<RawDocBuf>> {
        let limit = self.engine.last_lsn().0;
        self.place = None;
        self.ready.clear();
        let found = match &self.oplog {
            Oplog::Memory(memory) => {
                let queue = memory.queue.lock().expect("no holder of the lock panics");
                let i = queue
                    .entries
                    .partition_point(|(ts, seq, _)| *ts < self.at && *seq <= limit);
                let found = i.checked_sub(1).and_then(|i| queue.entries.get(i));
                found.map(|(ts, _, doc)| (*ts, doc.clone()))
            }
            Oplog::Journal(journal) => last_before(journal, self.at, limit)?,
        };
        let Some((ts, doc)) = found else { return Ok(None) };
        self.at = ts;
        Ok(Some(doc))
    }
}

/// The place of the first frame after `after`, or of the oldest kept if that will do.
fn find(journal: &Journal, after: Timestamp, from_oldest: bool) -> Result<Place> {
    let segments = journal.segments();
    let at = segments.partition_point(|s| s.optime_before <= after);
    let segment = match at.checked_sub(1) {
        Some(at) => segments.get(at),
        None => segments.first().filter(|_| from_oldest),
    };
    let segment = segment.ok_or(StorageError::OplogHistoryLost)?;
    Ok(Place {
        segment: segment.clone(),
        offset: segment.place(after)?,
        upto: after.max(segment.optime_before),
        ahead: Ahead::default(),
    })
}

/// The entries of the frame with these bytes, which is at `offset`, with their optimes.
fn entries(bytes: &[u8], segment: &Segment, offset: u64) -> Result<Vec<(Timestamp, RawDocBuf)>> {
    let frame = Frame::read(bytes).map_err(|e| segment.corrupt(offset, e.0))?;
    let mut found = Vec::new();
    for entry in frame.entries() {
        let entry = entry.map_err(|e| segment.corrupt(offset, e.0))?;
        match entry.get("ts") {
            Some(nestor_model::ValueRef::Timestamp(ts)) => found.push((ts, entry.to_buf())),
            _ => return Err(segment.corrupt(offset, "oplog entry without ts")),
        }
    }
    Ok(found)
}

/// The last entry before `before` of a commit up to `limit`.
fn last_before(journal: &Journal, before: Timestamp, limit: u64) -> Result<Option<(Timestamp, RawDocBuf)>> {
    for segment in journal.segments().iter().rev() {
        if segment.optime_before >= before {
            continue;
        }
        // Frames with entries that start before `before`, in order; the last ones are what is wanted.
        let just_before = Timestamp::from_u64(before.to_u64().saturating_sub(1));
        let mut candidates: Vec<(u64, u64)> = Vec::new();
        for start in [segment.place(just_before)?, segment::HEADER_BYTES as u64] {
            candidates.clear();
            let mut offset = start;
            while let Some((header, length)) = segment.header(offset)? {
                if frame::seq(&header) > limit {
                    break;
                }
                if frame::entry_count(&header) > 0 {
                    candidates.push((offset, length));
                }
                if frame::optime(&header) >= before {
                    break;
                }
                offset += length;
            }
            for (offset, length) in candidates.iter().rev() {
                let mut bytes = vec![0; *length as usize];
                segment.read(&mut bytes, *offset)?;
                let found = entries(&bytes, segment, *offset)?;
                if let Some(last) = found.into_iter().rfind(|(ts, _)| *ts < before) {
                    return Ok(Some(last));
                }
            }
        }
    }
    Ok(None)
}
