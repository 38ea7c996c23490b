//! A reader of the log.

use super::follow::{Follower, LogSignal};
use super::frames::{Found, Frames};
use super::head::{ChangeKind, Elements, Head, Wanted};
use super::{Change, Interest, LogPosition, LogStep, TransactionId};
use crate::{Engine, Result, Snapshot};
use nestor_model::{RawDocBuf, Timestamp};
use std::sync::Arc;

/// Bytes of the log that one call looks at: about a millisecond.
const STEP_BYTES: u64 = 2 << 20;

/// Reads the changes of commits. See [`crate::log`] for what holds.
pub struct LogReader {
    engine: Engine,
    wanted: Wanted,
    frames: Frames,
    /// Where the last change looked at is, or where to start: what comes next is greater.
    position: LogPosition,
    /// Commits up to here may be read.
    limit: u64,
    /// The transaction that is being taken apart.
    group: Option<Group>,
    /// How many operations of `applyOps` entries of this frame were looked at.
    operations: u32,
    /// Once it was at the end.
    follower: Option<Arc<Follower>>,
}

/// An `applyOps` entry.
struct Group {
    /// The number of the entry within its frame.
    entry: u32,
    /// Where in the entry the next operation is, and where they end.
    at: usize,
    end: usize,
    /// Number of the next operation in the entry.
    next: u32,
    optime: Timestamp,
    wall_ms: i64,
    transaction: Option<TransactionId>,
}

/// The part of a frame that was found.
enum Inside {
    Change(Box<Change>),
    Passed,
    /// Nothing more.
    End,
}

impl LogReader {
    pub(crate) fn new(engine: Engine, after: LogPosition, interest: Interest) -> Self {
        // The commit itself may have more operations.
        let passed = LogPosition::before(after.optime).optime;
        let passed = if after.index == LogPosition::LAST {
            after.optime
        } else {
            passed
        };
        Self {
            frames: Frames::new(engine.inner.log.clone(), passed),
            engine,
            wanted: Wanted::new(interest),
            position: after,
            limit: 0,
            group: None,
            operations: 0,
            follower: None,
        }
    }

    /// Up to where everything was looked at: behind the last change given, or further if nothing was wanted since. A reader that
    /// is opened with it goes on from here.
    pub fn position(&self) -> LogPosition {
        self.position
    }

    /// The next change that is wanted.
    ///
    /// Errors: [`StorageError::OplogHistoryLost`](crate::StorageError::OplogHistoryLost) if changes after the position are no longer
    /// kept, those of reading the journal, and that of its sync if what comes next will never be known to be committed.
    pub fn next(&mut self) -> Result<LogStep> {
        let mut budget = STEP_BYTES;
        loop {
            match self.inside(&mut budget)? {
                Inside::Change(change) => return Ok(LogStep::Change(change)),
                Inside::Passed => return Ok(LogStep::Passed),
                Inside::End => {}
            }
            if self.is_quiet() {
                return Ok(LogStep::End);
            }
            match self.frames.next(self.limit, &mut budget)? {
                Found::Frame => self.operations = 0,
                Found::Passed => return Ok(LogStep::Passed),
                Found::End => {
                    let visible = self.engine.inner.visible(self.wanted.interest().upto);
                    if visible.seq == self.limit {
                        self.at_end()?;
                        return Ok(LogStep::End);
                    }
                    self.limit = visible.seq;
                }
            }
        }
    }

    /// The present state. It shows every change that the reader has given.
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }

    /// Holds nothing any more that would keep memory or a file of the journal alive. It may be read on all the same.
    pub fn rest(&mut self) {
        self.frames.rest();
    }

    /// Passes over all that there is, for who wants to know that something has changed and not what. It costs the same however much that
    /// is, and whether or not it is still kept.
    pub fn skip_to_end(&mut self) {
        let follower = self.follow();
        // Commits accepted after this are noted by the follower.
        let visible = self.engine.inner.visible(follower.upto);
        self.group = None;
        self.position = self.position.max(LogPosition::after(visible.optime));
        self.frames.skip_to(visible.optime, visible.seq);
        self.frames.rest();
        self.limit = visible.seq;
        follower.set_read(visible.seq);
    }

    /// Tells when to read on, for who got [`LogStep::End`]; otherwise it says so at once.
    pub fn signal(&mut self) -> LogSignal {
        let follower = self.follow();
        LogSignal::new(self.engine.clone(), follower)
    }

    /// Whether nothing that concerns this reader was accepted since it was at the end. Moves on if so.
    fn is_quiet(&mut self) -> bool {
        let Some(follower) = &self.follower else { return false };
        // In this order: what is visible was noted before.
        let visible = self.engine.inner.visible(follower.upto);
        if follower.hit() > follower.read() {
            return false;
        }
        self.position = self.position.max(LogPosition::after(visible.optime));
        self.frames.skip_to(visible.optime, visible.seq);
        true
    }

    fn at_end(&mut self) -> Result<()> {
        self.pass(LogPosition::after(self.frames.upto()));
        self.frames.rest();
        let follower = self.follow();
        follower.set_read(self.limit);
        // Commits that were accepted and not applied by then will not be.
        match self.engine.inner.log_failure(follower.upto) {
            Some(failure) if follower.hit() > self.limit => Err(failure),
            _ => Ok(()),
        }
    }

    fn follow(&mut self) -> Arc<Follower> {
        let follower = self.follower.get_or_insert_with(|| {
            let Interest { scope, upto, .. } = self.wanted.interest();
            let follower = Arc::new(Follower::new(scope.clone(), *upto, 0));
            self.engine.inner.follow(&follower);
            follower
        });
        follower.clone()
    }

    fn pass(&mut self, position: LogPosition) {
        self.position = self.position.max(position);
    }

    /// Looks at what is left of the open frame.
    fn inside(&mut self, budget: &mut u64) -> Result<Inside> {
        loop {
            if *budget == 0 {
                return Ok(Inside::Passed);
            }
            if self.group.is_some() {
                if let Some(change) = self.operation(budget)? {
                    return Ok(Inside::Change(change));
                }
                continue;
            }
            if !self.frames.advance()? {
                return Ok(Inside::End);
            }
            if let Some(change) = self.entry(budget)? {
                return Ok(Inside::Change(change));
            }
        }
    }

    /// Looks at the entry that the frame is at.
    fn entry(&mut self, budget: &mut u64) -> Result<Option<Box<Change>>> {
        let commit = self.frames.optime();
        let Some(entry) = self.frames.entry()? else {
            return Ok(None);
        };
        *budget = budget.saturating_sub(entry.bytes.len() as u64);
        let (number, optime) = (entry.number, entry.optime);
        let head = Head::read(entry.bytes);
        if let Some(operations) = head.operations() {
            let transaction = match (head.lsid.map(RawDocBuf::validate), head.txn_number) {
                (Some(Ok(lsid)), Some(number)) => Some(TransactionId { lsid, number }),
                _ => None,
            };
            let start = operations.as_ptr() as usize - entry.bytes.as_ptr() as usize;
            self.group = Some(Group {
                entry: number,
                at: start + 4,
                end: start + operations.len(),
                next: 0,
                optime: commit,
                wall_ms: head.wall_ms,
                transaction,
            });
            return Ok(None);
        }
        let position = LogPosition { optime, index: 0 };
        if position <= self.position {
            return Ok(None);
        }
        self.position = position;
        if !self.wanted.wants(&head) {
            return Ok(None);
        }
        let Ok(operation) = RawDocBuf::validate(entry.bytes) else {
            return Err(self.frames.corrupt("oplog entry is not a document"));
        };
        Ok(Some(Box::new(Change {
            position,
            kind: head.kind.unwrap_or(ChangeKind::Noop),
            wall_ms: head.wall_ms,
            transaction: None,
            before: self.image(number, 0)?,
            operation,
        })))
    }

    /// Looks at the operations of a transaction, up to one that is wanted. Forgets it behind the last.
    fn operation(&mut self, budget: &mut u64) -> Result<Option<Box<Change>>> {
        let (Some(group), Some(entry)) = (&mut self.group, self.frames.entry()?) else {
            self.group = None;
            return Ok(None);
        };
        while *budget > 0 {
            let rest = entry.bytes.get(group.at..group.end).unwrap_or_default();
            let Some((element, len)) = Elements::first(rest) else {
                self.group = None;
                return Ok(None);
            };
            *budget = budget.saturating_sub(len as u64);
            let (number, index) = (group.next, self.operations);
            group.at += len;
            group.next += 1;
            self.operations += 1;
            let position = LogPosition {
                optime: group.optime,
                index,
            };
            if position <= self.position {
                continue;
            }
            self.position = position;
            let head = Head::read(element.value);
            if !self.wanted.wants(&head) {
                continue;
            }
            let Ok(operation) = RawDocBuf::validate(element.value) else {
                return Err(self.frames.corrupt("an operation of a transaction is not a document"));
            };
            let (of_entry, wall_ms, transaction) = (group.entry, group.wall_ms, group.transaction.clone());
            return Ok(Some(Box::new(Change {
                position,
                kind: head.kind.unwrap_or(ChangeKind::Noop),
                wall_ms,
                transaction,
                before: self.image(of_entry, number)?,
                operation,
            })));
        }
        Ok(None)
    }

    fn image(&mut self, entry: u32, operation: u32) -> Result<Option<RawDocBuf>> {
        match self.wanted.interest().images {
            true => self.frames.image(entry, operation),
            false => Ok(None),
        }
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        if let Some(follower) = &self.follower {
            self.engine.inner.followers.remove(follower);
        }
    }
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReader").field("position", &self.position).finish()
    }
}
