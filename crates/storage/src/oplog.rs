//! Reading the oplog as it is: the entries of commits, in the order of their optimes, as documents. [`crate::log`] takes them
//! apart into changes.

use crate::log::{Found, Frames, Log};
use crate::{Engine, Result};
use nestor_model::{RawDocBuf, Timestamp};

/// Reads oplog entries one after the other. It shows entries of published commits only, and goes on when more come.
pub struct OplogCursor {
    engine: Engine,
    frames: Frames,
    /// The last entry given (or where to start): ascending, what comes next is greater; descending, it is less.
    at: Timestamp,
}

impl OplogCursor {
    pub(crate) fn new(engine: Engine, log: Log, at: Timestamp) -> Self {
        Self {
            engine,
            frames: Frames::new(log, at),
            at,
        }
    }

    /// Lets the cursor begin with the oldest entry kept if there were entries before it. From its first read on it
    /// misses none.
    #[must_use]
    pub fn from_oldest(mut self) -> Self {
        self.frames.begin_with_oldest();
        self
    }

    /// The optime of the last entry given, or the one the cursor was opened with.
    pub fn position(&self) -> Timestamp {
        self.at
    }

    /// The first entry after the position; `None` if there is none yet.
    ///
    /// Errors: [`StorageError::OplogHistoryLost`](crate::StorageError::OplogHistoryLost) if entries after the position are no longer
    /// kept.
    pub fn next(&mut self) -> Result<Option<RawDocBuf>> {
        loop {
            while self.frames.advance()? {
                let Some(entry) = self.frames.entry()?.filter(|entry| entry.optime > self.at) else {
                    continue;
                };
                let optime = entry.optime;
                let Ok(doc) = RawDocBuf::validate(entry.bytes) else {
                    return Err(self.frames.corrupt("oplog entry is not a document"));
                };
                self.at = optime;
                return Ok(Some(doc));
            }
            let limit = self.engine.last_lsn().0;
            let mut unlimited = u64::MAX;
            if self.frames.next(limit, &mut unlimited)? != Found::Frame {
                self.frames.rest();
                return Ok(None);
            }
        }
    }

    /// Optimes of the first and last entry kept.
    pub(crate) fn range(mut self) -> Result<Option<(Timestamp, Timestamp)>> {
        let mut first = Self::new(
            self.engine.clone(),
            self.frames.log().clone(),
            self.frames.log().begins(),
        );
        if first.next()?.is_none() {
            return Ok(None);
        }
        self.at = Timestamp::from_u64(u64::MAX);
        self.prev()?;
        Ok(Some((first.at, self.at)))
    }

    /// The last entry before the position; `None` if there is none that is still kept. Each call looks for it anew, so
    /// this is for reading a few.
    pub fn prev(&mut self) -> Result<Option<RawDocBuf>> {
        let limit = self.engine.last_lsn().0;
        let found = Frames::last_before(self.frames.log(), self.at, limit)?;
        let Some((ts, doc)) = found else { return Ok(None) };
        self.at = ts;
        // Ascending it would go on from here.
        self.frames = Frames::new(self.frames.log().clone(), ts);
        Ok(Some(doc))
    }
}
