//! Frames that leave a member and arrive at others.
//!
//! ```text
//! primary     journal -> FrameReader -> log of the set
//! secondary   log of the set -> Engine::apply -> journal, memtable, shown
//! anybody     a journal with frames that the log does not have: Engine::tail says what is in them, and the store is opened without
//!             (EngineOptions::last_kept)
//! ```
//!
//! A frame is the same bytes everywhere, so its checksum, which the next one repeats, tells whether two journals agree.

use super::recovery::{Changes, Replayed};
use super::{Inner, history};
use crate::journal::frame::{self, Frame, Op};
use crate::journal::segment::{self, Segment};
use crate::journal::{Frames, recover};
use crate::log as log_of_commits;
use crate::snapshot::View;
use crate::{CollectionId, Engine, IndexId, Lsn, Result, StorageError, TreeId};
use nestor_model::{Namespace, RawDocBuf, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of the journal that are read at a time, unless a frame is longer.
const READ_BYTES: u64 = 1 << 20;

/// A commit as the journal has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommitFrame {
    /// Its number.
    pub lsn: Lsn,
    /// The optime of its last oplog entry.
    pub optime: Timestamp,
    /// Its bytes, the same on all members.
    pub bytes: Vec<u8>,
}

/// The optime of a frame's last oplog entry; `None` for bytes that are no frame.
pub fn time_of_frame(bytes: &[u8]) -> Option<Timestamp> {
    frame::length(bytes).is_ok().then(|| frame::optime(bytes))
}

/// Documents of a collection, by its name and UUID.
pub type CollectionDocuments = ((Namespace, [u8; 16]), Vec<RawDocBuf>);

/// Reads the frames of commits, in order.
pub struct FrameReader {
    engine: Engine,
    /// The last commit read.
    seq: u64,
    place: Option<(Arc<Segment>, u64)>,
}

impl FrameReader {
    /// The frames of the next commits that are shown: about `bytes_max` bytes of them, but at least one if there
    /// is one.
    ///
    /// Errors: [`StorageError::OplogHistoryLost`] if the next one is not kept any more.
    pub fn next(&mut self, bytes_max: usize) -> Result<Vec<CommitFrame>> {
        let limit = self.engine.last_lsn().0;
        let (mut found, mut bytes) = (Vec::new(), 0);
        while self.seq < limit && bytes < bytes_max {
            // At the end of a segment the next frame may come behind it or begin another one.
            let (segment, offset) = match self.place.take() {
                Some((segment, offset)) if offset < segment.len() => (segment, offset),
                _ => self.find()?,
            };
            let piece = read_piece(&segment, offset)?;
            let (mut done, before) = (0, self.seq);
            while let Ok(length) = frame::length(&piece[done..])
                && let Some(frame) = piece.get(done..done + length)
            {
                let seq = frame::seq(frame);
                if seq > limit || bytes >= bytes_max {
                    break;
                }
                if seq > self.seq {
                    bytes += length;
                    found.push(CommitFrame {
                        lsn: Lsn(seq),
                        optime: frame::optime(frame),
                        bytes: frame.to_vec(),
                    });
                    self.seq = seq;
                }
                done += length;
            }
            let at_end = offset + done as u64 >= segment.len();
            if done == 0 && !at_end && bytes < bytes_max {
                return Err(segment.corrupt(offset, "no frame begins here"));
            }
            if at_end && self.seq == before && done == 0 {
                return Err(segment.corrupt(offset, "frames are missing"));
            }
            self.place = Some((segment, offset + done as u64));
        }
        Ok(found)
    }

    /// The last commit read.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.seq)
    }

    /// A place before the next frame.
    fn find(&self) -> Result<(Arc<Segment>, u64)> {
        let store = self.engine.inner.store.as_ref().ok_or(StorageError::OplogHistoryLost)?;
        let segments = store.journal.segments();
        let at = segments.partition_point(|segment| segment.first_seq <= self.seq + 1);
        let segment = at.checked_sub(1).and_then(|at| segments.get(at));
        let segment = segment.ok_or(StorageError::OplogHistoryLost)?.clone();
        let mut offset = segment::HEADER_BYTES as u64;
        while let Some((header, length)) = segment.header(offset)?
            && frame::seq(&header) <= self.seq
        {
            offset += length;
        }
        Ok((segment, offset))
    }
}

/// Bytes of a segment from a frame on: that frame as a whole at least.
fn read_piece(segment: &Segment, offset: u64) -> Result<Vec<u8>> {
    let Some((_, length)) = segment.header(offset)? else {
        return Ok(Vec::new());
    };
    let length = length.max(READ_BYTES).min(segment.len() - offset);
    let mut piece = vec![0; length as usize];
    segment.read(&mut piece, offset)?;
    Ok(piece)
}

impl Engine {
    /// Reads frames behind commit `after`.
    pub fn frames(&self, after: Lsn) -> FrameReader {
        FrameReader {
            engine: self.clone(),
            seq: after.0,
            place: None,
        }
    }

    /// The last commit in the base, which cannot be dropped.
    pub fn base_lsn(&self) -> Result<Lsn> {
        let Some(store) = &self.inner.store else {
            return Ok(Lsn(0));
        };
        Ok(Lsn(history::start(&store.base.snapshot())?.seq))
    }

    /// Commits what another member has committed: frames that follow the last one here. They are shown together, but for what comes before and
    /// after an index is ready, whose entries are made between ([`super::fill`]). The caller knows that the
    /// log of the set has them, so they are committed at once; this member's journal follows.
    ///
    /// Errors: [`StorageError::LogMismatch`], after which nothing of the frames was applied; those of a commit, after which the store
    /// has to be opened anew.
    pub fn apply(&self, frames: &[Vec<u8>]) -> Result<()> {
        if frames.is_empty() {
            return Ok(());
        }
        let inner = &*self.inner;
        let (mut rest, mut has_entries) = (frames, false);
        while !rest.is_empty() {
            inner.check_open()?;
            inner.make_room(rest.iter().map(Vec::len).sum())?;
            let applied = inner.apply(rest, has_entries)?;
            rest = &rest[applied.count..];
            if applied.count > 0 {
                let lsn = self.last_lsn();
                self.note_committed(lsn, self.last_optime());
                inner.commits.announce(lsn);
            }
            if applied.lacks.is_none() {
                self.look_at_builds(applied.changes_catalog);
            }
            has_entries = applied.lacks.is_some();
            if let Some((collection, indexes)) = applied.lacks {
                self.make_entries(collection, &indexes)?;
            }
        }
        Ok(())
    }

    /// The documents that commits after `after` put into collections, as the last of them left them: what is lost if these commits are
    /// dropped.
    pub fn tail(&self, after: Lsn) -> Result<Vec<CollectionDocuments>> {
        let mut documents: BTreeMap<(TreeId, Vec<u8>), Option<Vec<u8>>> = BTreeMap::new();
        let mut reader = self.frames(after);
        loop {
            let frames = reader.next(READ_BYTES as usize)?;
            if frames.is_empty() {
                break;
            }
            for CommitFrame {
                lsn: Lsn(seq), bytes, ..
            } in &frames
            {
                let frame = Frame::read(bytes).map_err(|e| mismatch(*seq, e.0))?;
                for op in frame.ops() {
                    match op.map_err(|e| mismatch(*seq, e.0))? {
                        Op::Put { tree, key, value } => {
                            documents.insert((tree, key.to_vec()), Some(value.to_vec()));
                        }
                        Op::Delete { tree, key } => {
                            documents.insert((tree, key.to_vec()), None);
                        }
                        _ => {}
                    }
                }
            }
        }
        let snapshot = self.snapshot();
        let mut found: BTreeMap<(Namespace, [u8; 16]), Vec<RawDocBuf>> = BTreeMap::new();
        for ((tree, _), value) in documents {
            // Record trees have the number of their collection.
            let collection = snapshot.catalog().by_id(CollectionId(tree.0));
            if let (Some(collection), Some(value)) = (collection, value) {
                let document = crate::record::document(&value).to_buf();
                let name = (collection.ns.clone(), collection.uuid);
                found.entry(name).or_default().push(document);
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Stops as a crash would, without a checkpoint: what was appended to the journal stays, and the next start replays it.
    pub fn abandon(self) {
        let running = self._guard.running.lock().expect("no holder of the lock panics").take();
        let Some(running) = running else { return };
        self.inner.closed.store(true, Ordering::Release);
        self.inner.end_beginnings();
        self.inner.reached.end();
        self.inner.checkpointer.stop();
        if let Some(store) = &self.inner.store {
            store.journal.syncer.stop();
        }
        for thread in running.threads {
            // One that panicked has nothing more to do.
            let _ = thread.join();
        }
    }
}

fn mismatch(seq: u64, reason: &'static str) -> StorageError {
    StorageError::LogMismatch { seq, reason }
}

/// What became of frames.
struct Applied {
    /// So many were applied.
    count: usize,
    /// The catalog is another one now.
    changes_catalog: bool,
    /// The next one makes indexes ready whose entries no commit has.
    lacks: Option<(CollectionId, Vec<IndexId>)>,
}

impl Inner {
    /// Applies frames up to one that makes indexes ready; with `has_entries` that may be the first one.
    fn apply(&self, frames: &[Vec<u8>], has_entries: bool) -> Result<Applied> {
        let store = self.store.as_ref().ok_or(StorageError::Closed)?;
        let mut sequencer = self.lock_sequencer();
        self.check_open()?;
        if self.reached.check_writable().is_ok() {
            return Err(mismatch(0, "this node commits itself"));
        }
        let before = sequencer.current().clone();
        let mut seq = before.seq;
        let mut last = store.journal.last();
        let mut sound = Vec::with_capacity(frames.len());
        for bytes in frames {
            let frame = Frame::read(bytes).map_err(|e| mismatch(seq + 1, e.0))?;
            if frame.seq() != seq + 1 || frame.len() != bytes.len() {
                return Err(mismatch(frame.seq(), "its number is not the next one"));
            }
            if !recover::follows(&frame, last) {
                return Err(mismatch(frame.seq(), "the commit before it is another one here"));
            }
            frame
                .open(None, &mut Vec::new())
                .map_err(|e| mismatch(frame.seq(), e.0))?;
            seq = frame.seq();
            last = Some(crate::journal::LastFrame {
                offset: 0,
                checksum: frame.checksum(),
            });
            sound.push(frame);
        }
        let mut changes = Changes::from(&before.catalog, self.ids.clone());
        let mut commits: Vec<(u64, Replayed)> = Vec::with_capacity(frames.len());
        let (mut lacks, mut is_building) = (None, changes.is_building());
        for (at, frame) in sound.iter().enumerate() {
            if is_building && !(at == 0 && has_entries) {
                lacks = changes.made_ready(frame)?;
                if lacks.is_some() {
                    break;
                }
            }
            let replayed = changes.read(frame)?;
            if replayed.trees.contains_key(&TreeId::CATALOG) {
                is_building = changes.is_building();
            }
            commits.push((frame.seq(), replayed));
        }
        let count = commits.len();
        let (frames, Some(last)) = (&frames[..count], sound[..count].last()) else {
            return Ok(Applied {
                count,
                changes_catalog: false,
                lacks,
            });
        };
        let (seq, optime) = (last.seq(), last.optime());
        let bytes = frames.concat();
        store.journal.append(&Frames {
            bytes: &bytes,
            last_at: bytes.len() - frames.last().map_or(0, Vec::len),
            seqs: (before.seq + 1, seq),
            before: before.optime,
            optime,
        })?;
        for (seq, replayed) in &commits {
            let states = replayed.trees.keys().filter_map(|tree| changes.collection_state(*tree));
            states.for_each(|state| state.note_write(*seq));
        }
        let is_changed = commits
            .iter()
            .any(|(_, replayed)| replayed.trees.contains_key(&TreeId::CATALOG));
        let catalog = match is_changed {
            true => Arc::new(changes.catalog),
            false => before.catalog.clone(),
        };
        let news = self.followers.note_all(seq);
        sequencer.repeat(&commits, optime, catalog);
        let replaced = self.publish(&sequencer);
        drop(sequencer);
        drop((replaced, before));
        if !news.is_empty() {
            log_of_commits::spread(self, news, seq);
        }
        Ok(Applied {
            count,
            changes_catalog: is_changed,
            lacks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::recovery_tests::put;
    use super::*;
    use crate::EngineOptions;

    /// Whoever ships each commit as it comes would pass all frames of a segment each time.
    #[test]
    fn a_reader_at_the_end_goes_on_from_there() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = EngineOptions::at_time(100);
        options.journal.segment_bytes = 1_000;
        let engine = Engine::open(dir.path(), options).unwrap();
        let mut reader = engine.frames(Lsn(0));
        for n in 1..60 {
            put(&engine, &format!("{n:03}")).unwrap();
            let found: Vec<u64> = reader.next(1).unwrap().iter().map(|frame| frame.lsn.0).collect();
            assert_eq!(found, [n]);
            assert!(reader.place.is_some(), "it knows where the next one will be");
            assert!(reader.next(1).unwrap().is_empty());
        }
        let segments = engine.inner.store.as_ref().unwrap().journal.segments();
        assert!(segments.len() > 3, "{} segments", segments.len());
    }
}
