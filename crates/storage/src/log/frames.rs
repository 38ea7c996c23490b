//! Frames of the log one after the other, whether they are in segments of the journal or in memory, and what is in them.

use super::memory::{MemoryFrame, MemoryLog};
use crate::encryption::Seals;
use crate::journal::Journal;
use crate::journal::frame::{self, Frame};
use crate::journal::sealed::{self, Layout};
use crate::journal::segment::Segment;
use crate::{Result, StorageError};
use nestor_model::{RawDocBuf, Timestamp};
use std::sync::{Arc, Weak};

/// How many bytes of the journal are read at a time, unless an entry is longer: commits are often small, and a call of the
/// system for each would take longer than all else.
const READ_AHEAD: u64 = 64 << 10;
/// Frames longer than this are read and verified in pieces of this size.
const PIECE: u64 = 256 << 10;
/// Frames that are skipped one by one rather than looked for.
const SKIPPED_MAX: u64 = 4096;

/// Where oplog entries are.
#[derive(Clone)]
pub(crate) enum Log {
    Journal(Arc<Journal>),
    Memory(Arc<MemoryLog>),
}

impl Log {
    /// All entries after this time are kept.
    pub(crate) fn begins(&self) -> Timestamp {
        match self {
            Log::Memory(memory) => memory.begins(),
            Log::Journal(journal) => journal
                .segments()
                .first()
                .map_or(Timestamp::default(), |s| s.optime_before),
        }
    }
}

/// Goes through the frames that have entries after some time.
pub(crate) struct Frames {
    log: Log,
    /// All entries up to this time have been passed: with it the segment that follows is found, and is known to follow.
    upto: Timestamp,
    /// Reading may begin with the oldest entry that is kept.
    from_oldest: bool,
    /// Behind the last frame, in the journal.
    place: Option<Place>,
    /// Number of the last frame looked at.
    seen: u64,
    open: Option<Open>,
    ahead: Ahead,
    image_ahead: Ahead,
}

/// A place in a segment.
struct Place {
    segment: Held<Segment>,
    offset: u64,
}

/// A segment or a frame that is being read, or that may be removed meanwhile.
enum Held<T> {
    Fast(Arc<T>),
    Loose(Weak<T>),
}

impl<T> Held<T> {
    fn get(&self) -> Option<Arc<T>> {
        match self {
            Held::Fast(held) => Some(held.clone()),
            Held::Loose(held) => held.upgrade(),
        }
    }

    /// Holds it fast again; `None` if it was removed.
    fn fasten(&mut self) -> Option<&T> {
        if let Held::Loose(held) = self {
            *self = Held::Fast(held.upgrade()?);
        }
        match self {
            Held::Fast(held) => Some(held),
            Held::Loose(_) => None,
        }
    }

    fn loosen(&mut self) {
        if let Held::Fast(held) = self {
            *self = Held::Loose(Arc::downgrade(held));
        }
    }
}

/// Where a frame's bytes are.
enum Source {
    Segment { segment: Held<Segment>, offset: u64 },
    Memory(Held<MemoryFrame>),
}

/// The frame that is being read.
struct Open {
    source: Source,
    header: [u8; frame::HEADER_BYTES],
    length: u64,
    optime: Timestamp,
    /// How many entries it has, and how many bytes of it are header and entries.
    entries: u32,
    entries_end: u64,
    /// The checksum of what was verified, what it has to be at the end, and up to where that is.
    crc: u32,
    expected: u32,
    verified: u64,
    /// The current entry's number, place and length; before the first there is none.
    entry: Option<(u32, u64, u64)>,
    /// Where the operations end at the latest.
    body_end: u64,
    /// If it is encrypted and verified.
    key: Option<(sealed::Key, Arc<Seals>)>,
    /// Where the next image would be, and how many operations are left from there.
    image_at: u64,
    ops_left: u32,
}

/// An oplog entry.
pub(crate) struct Entry<'a> {
    /// The number of the entry within its commit.
    pub(crate) number: u32,
    pub(crate) optime: Timestamp,
    pub(crate) bytes: &'a [u8],
}

/// The result of [`Frames::next`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// A frame, which is open now.
    Frame,
    /// As many bytes as it may look at.
    Passed,
    /// No further frame up to the limit.
    End,
}

impl Frames {
    pub(crate) fn new(log: Log, after: Timestamp) -> Self {
        Self {
            log,
            upto: after,
            from_oldest: false,
            place: None,
            seen: 0,
            open: None,
            ahead: Ahead::default(),
            image_ahead: Ahead::default(),
        }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Lets it begin with the oldest entry kept if there were entries before that; only where it begins.
    pub(crate) fn begin_with_oldest(&mut self) {
        self.from_oldest = true;
    }

    /// All entries up to this time have been passed, but for those of the open frame.
    pub(crate) fn upto(&self) -> Timestamp {
        self.upto
    }

    /// Nothing up to `upto` is of interest, which is about commit number `seq`.
    pub(crate) fn skip_to(&mut self, upto: Timestamp, seq: u64) {
        self.upto = self.upto.max(upto);
        if seq > self.seen.saturating_add(SKIPPED_MAX) {
            self.place = None;
        }
    }

    /// Holds nothing any more that would keep memory or a file alive.
    pub(crate) fn rest(&mut self) {
        self.ahead = Ahead::default();
        self.image_ahead = Ahead::default();
        if let Some(place) = &mut self.place {
            place.segment.loosen();
        }
        match self.open.as_mut().map(|open| &mut open.source) {
            Some(Source::Segment { segment, .. }) => segment.loosen(),
            Some(Source::Memory(frame)) => frame.loosen(),
            None => {}
        }
    }

    /// Opens the next frame of a commit up to number `limit` that has entries, having looked at no more than about `budget` bytes.
    pub(crate) fn next(&mut self, limit: u64, budget: &mut u64) -> Result<Found> {
        if self.open.as_ref().is_some_and(|open| open.verified < open.length) {
            return self.verify(budget);
        }
        self.open = None;
        let found = match self.log.clone() {
            Log::Memory(memory) => self.next_in_memory(&memory, limit),
            Log::Journal(journal) => self.next_in_journal(&journal, limit, budget),
        };
        self.from_oldest = false;
        found
    }

    fn next_in_memory(&mut self, memory: &MemoryLog, limit: u64) -> Result<Found> {
        let frame = memory
            .next(self.upto, self.from_oldest)
            .map_err(|_| StorageError::OplogHistoryLost)?;
        let Some(frame) = frame.filter(|frame| frame.seq <= limit) else {
            return Ok(Found::End);
        };
        self.upto = frame.optime;
        self.seen = frame.seq;
        self.open = Some(Open::memory(frame));
        Ok(Found::Frame)
    }

    fn next_in_journal(&mut self, journal: &Journal, limit: u64, budget: &mut u64) -> Result<Found> {
        loop {
            let (segment, offset) = match self
                .place
                .take()
                .and_then(|place| Some((place.segment.get()?, place.offset)))
            {
                Some(place) => place,
                None => self.find(journal, self.from_oldest)?,
            };
            let Some((header, length)) = self.ahead.header(&segment, offset)? else {
                // Behind the last frame of this segment: go on with the next one, if there is one.
                if journal.is_last(&segment) {
                    self.keep(segment, offset);
                    return Ok(Found::End);
                }
                // Frames may have been added before the next segment was made.
                if offset < segment.len() {
                    self.keep(segment, offset);
                    continue;
                }
                let (next, offset) = self.find(journal, false)?;
                if next.first_seq <= segment.first_seq {
                    return Err(StorageError::OplogHistoryLost);
                }
                self.keep(next, offset);
                continue;
            };
            if frame::seq(&header) > limit {
                self.keep(segment, offset);
                return Ok(Found::End);
            }
            if *budget == 0 {
                self.keep(segment, offset);
                return Ok(Found::Passed);
            }
            self.seen = frame::seq(&header);
            let is_news = frame::entry_count(&header) > 0 && frame::optime(&header) > self.upto;
            self.upto = self.upto.max(frame::optime(&header));
            self.keep(segment.clone(), offset + length);
            if !is_news {
                *budget = budget.saturating_sub(length.min(READ_AHEAD));
                continue;
            }
            let source = Source::Segment {
                segment: Held::Fast(segment),
                offset,
            };
            self.open = Some(Open::new(source, &header, length));
            return self.verify(budget);
        }
    }

    fn keep(&mut self, segment: Arc<Segment>, offset: u64) {
        let segment = Held::Fast(segment);
        self.place = Some(Place { segment, offset });
    }

    /// The place of the first frame after what was passed, or of the oldest kept if that will do.
    fn find(&mut self, journal: &Journal, from_oldest: bool) -> Result<(Arc<Segment>, u64)> {
        let segments = journal.segments();
        let at = segments.partition_point(|segment| segment.optime_before <= self.upto);
        let segment = match at.checked_sub(1) {
            Some(at) => segments.get(at),
            None => segments.first().filter(|_| from_oldest),
        };
        let segment = segment.ok_or(StorageError::OplogHistoryLost)?;
        let offset = segment.place(self.upto)?;
        self.upto = self.upto.max(segment.optime_before);
        Ok((segment.clone(), offset))
    }

    /// Goes on verifying the open frame.
    fn verify(&mut self, budget: &mut u64) -> Result<Found> {
        let Some(open) = &mut self.open else {
            return Ok(Found::End);
        };
        while open.verified < open.length {
            if *budget == 0 {
                return Ok(Found::Passed);
            }
            let len = PIECE.min(open.length - open.verified);
            let bytes = open.source.bytes(&mut self.ahead, open.verified, len)?;
            let covered = match open.verified {
                0 => {
                    open.expected = frame::checksum(bytes);
                    &bytes[frame::UNCOVERED_BYTES..]
                }
                _ => bytes,
            };
            open.crc = crc32c::crc32c_append(open.crc, covered);
            open.verified += len;
            *budget = budget.saturating_sub(len);
        }
        if open.crc != open.expected {
            return Err(self.corrupt("frame checksum does not match"));
        }
        self.unlock()?;
        Ok(Found::Frame)
    }

    /// Reads what it takes to decrypt the open frame, if it is encrypted.
    fn unlock(&mut self) -> Result<()> {
        let (Some(open), Log::Journal(journal)) = (&mut self.open, &self.log) else {
            return Ok(());
        };
        let header = open.header;
        let Some(seals) = journal.seals() else {
            return match sealed::is_sealed(&header) {
                true => Err(self.corrupt("the frame is encrypted, the directory is not")),
                false => Ok(()),
            };
        };
        if !sealed::is_sealed(&header) {
            return Err(self.corrupt("the frame is not encrypted, the directory is"));
        }
        let key = match Layout::of(open.length as usize) {
            Ok(layout) => {
                let at = layout.body_end as u64;
                let end = open.source.bytes(&mut self.ahead, at, open.length - at)?;
                sealed::Key::read(&header, end, layout)
            }
            Err(unsound) => Err(unsound),
        };
        match key {
            Ok(key) => {
                open.body_end = key.body_end() as u64;
                open.entries_end = open.entries_end.min(open.body_end);
                open.key = Some((key, seals.clone()));
                Ok(())
            }
            Err(unsound) => Err(self.corrupt(unsound.0)),
        }
    }

    /// Time of the open frame's commit.
    pub(crate) fn optime(&self) -> Timestamp {
        self.open.as_ref().map_or(self.upto, |open| open.optime)
    }

    /// Goes to the next entry of the open frame. False if there is none.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let Some(open) = self.open.as_mut().filter(|open| open.verified == open.length) else {
            return Ok(false);
        };
        let (number, at) = match open.entry {
            Some((number, at, len)) => (number + 1, at + len),
            None => (0, frame::HEADER_BYTES as u64),
        };
        if number >= open.entries {
            return Ok(false);
        }
        let word = open.bytes(&mut self.ahead, at, 4)?;
        let len = word.try_into().map_or(0, u32::from_le_bytes);
        if len < 5 || at + u64::from(len) > open.entries_end {
            return Err(self.corrupt("oplog entry is not a document"));
        }
        open.entry = Some((number, at, u64::from(len)));
        Ok(true)
    }

    /// The entry that [`Frames::advance`] went to.
    pub(crate) fn entry(&mut self) -> Result<Option<Entry<'_>>> {
        let Some(open) = &mut self.open else { return Ok(None) };
        let Some((number, at, len)) = open.entry else {
            return Ok(None);
        };
        // Entries have consecutive times, and the frame that of the last.
        let optime = Timestamp {
            inc: open.optime.inc.saturating_sub(open.entries - 1 - number),
            ..open.optime
        };
        Ok(Some(Entry {
            number,
            optime,
            bytes: open.bytes(&mut self.ahead, at, len)?,
        }))
    }

    /// The document before the change that this operation of this entry tells of, if it was kept. To be asked for in ascending
    /// order.
    pub(crate) fn image(&mut self, entry: u32, operation: u32) -> Result<Option<RawDocBuf>> {
        loop {
            let Some(open) = self.open.as_mut().filter(|open| open.ops_left > 0) else {
                return Ok(None);
            };
            let at = open.image_at;
            let len = (frame::IMAGE_HEAD_MAX as u64).min(open.body_end.saturating_sub(at));
            let head = open.bytes(&mut self.image_ahead, at, len)?;
            let Some((of_entry, of_operation, start, end)) = frame::image_head(head) else {
                open.ops_left = 0;
                return Ok(None);
            };
            if (of_entry, of_operation) > (entry, operation) {
                return Ok(None);
            }
            let (start, end) = (at + start as u64, at + end as u64);
            if end > open.body_end {
                return Err(self.corrupt("an image is longer than the frame"));
            }
            open.ops_left -= 1;
            open.image_at = end;
            if (of_entry, of_operation) == (entry, operation) {
                let bytes = open.bytes(&mut self.image_ahead, start, end - start)?;
                let image = RawDocBuf::validate(bytes);
                return image.map(Some).map_err(|_| self.corrupt("an image is not a document"));
            }
        }
    }

    /// The error for the open frame.
    pub(crate) fn corrupt(&self, reason: &str) -> StorageError {
        match self.open.as_ref().map(|open| &open.source) {
            Some(Source::Segment { segment, offset }) => match segment.get() {
                Some(segment) => segment.corrupt(*offset, reason),
                None => StorageError::OplogHistoryLost,
            },
            _ => StorageError::Undecodable(reason.into()),
        }
    }

    /// The last entry before `before` of a commit up to `limit`.
    pub(crate) fn last_before(log: &Log, before: Timestamp, limit: u64) -> Result<Option<(Timestamp, RawDocBuf)>> {
        match log {
            Log::Journal(journal) => last_in_journal(journal, before, limit),
            Log::Memory(memory) => {
                for frame in memory.before(before, limit) {
                    let mut frames = Frames::new(log.clone(), before);
                    frames.open = Some(Open::memory(frame));
                    let mut last = None;
                    while frames.advance()? {
                        if let Some(entry) = frames.entry()?.filter(|entry| entry.optime < before) {
                            let doc = RawDocBuf::validate(entry.bytes);
                            last = Some((entry.optime, doc.map_err(|e| StorageError::Undecodable(e.to_string()))?));
                        }
                    }
                    if last.is_some() {
                        return Ok(last);
                    }
                }
                Ok(None)
            }
        }
    }
}

impl Open {
    fn new(source: Source, header: &[u8; frame::HEADER_BYTES], length: u64) -> Self {
        let entries_end = frame::HEADER_BYTES as u64 + u64::from(frame::oplog_len(header));
        Self {
            source,
            header: *header,
            length,
            optime: frame::optime(header),
            entries: frame::entry_count(header),
            entries_end: entries_end.min(length),
            crc: 0,
            expected: 0,
            verified: 0,
            entry: None,
            body_end: length,
            key: None,
            image_at: entries_end.min(length),
            ops_left: frame::op_count(header),
        }
    }

    /// `len` bytes at `at` of the frame, decrypted if it is encrypted.
    fn bytes<'a>(&'a mut self, ahead: &'a mut Ahead, at: u64, len: u64) -> Result<&'a [u8]> {
        match (&self.key, &mut self.source) {
            (Some((key, seals)), Source::Segment { segment, offset }) => {
                let segment = segment.get().ok_or(StorageError::OplogHistoryLost)?;
                ahead.plain(&segment, *offset, (at, len), key, seals)
            }
            (_, source) => source.bytes(ahead, at, len),
        }
    }

    /// A frame that never left memory and has no checksum.
    fn memory(frame: Arc<MemoryFrame>) -> Self {
        let mut header = [0; frame::HEADER_BYTES];
        header.copy_from_slice(&frame.bytes[..frame::HEADER_BYTES]);
        let length = frame.bytes.len() as u64;
        let mut open = Self::new(Source::Memory(Held::Fast(frame)), &header, length);
        open.verified = length;
        open
    }
}

impl Source {
    /// `len` bytes at `at` of the frame.
    ///
    /// Errors: [`StorageError::OplogHistoryLost`] if the frame was removed meanwhile; those of reading.
    fn bytes<'a>(&'a mut self, ahead: &'a mut Ahead, at: u64, len: u64) -> Result<&'a [u8]> {
        match self {
            Source::Segment { segment, offset } => {
                let segment = segment.get().ok_or(StorageError::OplogHistoryLost)?;
                ahead.get(&segment, *offset + at, len)
            }
            Source::Memory(frame) => frame
                .fasten()
                .ok_or(StorageError::OplogHistoryLost)?
                .bytes
                .get(at as usize..(at + len) as usize)
                .ok_or_else(|| StorageError::Undecodable("a frame is cut off".into())),
        }
    }
}

/// Bytes of a segment that were read ahead. They are of whole frames, which never change.
#[derive(Default)]
struct Ahead {
    bytes: Vec<u8>,
    /// Of which segment they are, by its first number, and where in it they begin.
    segment: u64,
    offset: u64,
    plain: Plain,
}

/// Bytes of an encrypted frame that were decrypted.
#[derive(Default)]
struct Plain {
    bytes: Vec<u8>,
    /// The frame: of which segment, and where in it.
    frame: (u64, u64),
    /// Where in the frame they begin.
    at: u64,
}

impl Ahead {
    /// `len` bytes at `offset`, which lie before the segment's end.
    fn get(&mut self, segment: &Segment, offset: u64, len: u64) -> Result<&[u8]> {
        let end = self.offset + self.bytes.len() as u64;
        if segment.first_seq != self.segment || offset < self.offset || offset + len > end {
            let wanted = READ_AHEAD.min(segment.len().saturating_sub(offset)).max(len);
            if self.bytes.capacity() as u64 > READ_AHEAD.max(wanted) {
                self.bytes = Vec::new();
            }
            self.bytes.clear();
            self.bytes.resize(wanted as usize, 0);
            if let Err(error) = segment.read(&mut self.bytes, offset) {
                self.bytes.clear();
                return Err(error);
            }
            (self.segment, self.offset) = (segment.first_seq, offset);
        }
        let at = (offset - self.offset) as usize;
        Ok(&self.bytes[at..at + len as usize])
    }

    /// `len` bytes at `at` of the encrypted frame that begins at `offset`.
    fn plain(
        &mut self,
        segment: &Segment,
        offset: u64,
        (at, len): (u64, u64),
        key: &sealed::Key,
        seals: &Seals,
    ) -> Result<&[u8]> {
        let frame = (segment.first_seq, offset);
        let mut plain = std::mem::take(&mut self.plain);
        if plain.frame != frame || at < plain.at || at + len > plain.at + plain.bytes.len() as u64 {
            let unsound = |e: frame::Unsound| segment.corrupt(offset, e.0);
            let (range, first) = key.pieces_of(at as usize, len as usize).map_err(unsound)?;
            let (from, wanted) = (range.start as u64, range.len() as u64);
            if plain.bytes.capacity() as u64 > (2 * READ_AHEAD).max(wanted) {
                plain.bytes = Vec::new();
            }
            plain.bytes.clear();
            if wanted > READ_AHEAD {
                plain.bytes.resize(range.len(), 0);
                segment.read(&mut plain.bytes, offset + from)?;
            } else {
                plain.bytes.extend_from_slice(self.get(segment, offset + from, wanted)?);
            }
            key.open(first, &mut plain.bytes, seals).map_err(unsound)?;
            (plain.frame, plain.at) = (frame, from);
        }
        self.plain = plain;
        let start = (at - self.plain.at) as usize;
        Ok(&self.plain.bytes[start..start + len as usize])
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

/// The entries of the frame with these bytes, which is at `offset`, with their optimes.
fn entries(bytes: &[u8], segment: &Segment, offset: u64) -> Result<Vec<(Timestamp, RawDocBuf)>> {
    let frame = Frame::read(bytes).map_err(|e| segment.corrupt(offset, e.0))?;
    let mut plain = Vec::new();
    let frame = segment.contents(frame, offset, &mut plain)?;
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

/// As [`Frames::last_before`].
fn last_in_journal(journal: &Journal, before: Timestamp, limit: u64) -> Result<Option<(Timestamp, RawDocBuf)>> {
    for segment in journal.segments().iter().rev() {
        if segment.optime_before >= before {
            continue;
        }
        // Frames with entries that start before `before`, in order; the last ones are what is wanted.
        let just_before = Timestamp::from_u64(before.to_u64().saturating_sub(1));
        let mut candidates: Vec<(u64, u64)> = Vec::new();
        for start in [
            segment.place(just_before)?,
            crate::journal::segment::HEADER_BYTES as u64,
        ] {
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
