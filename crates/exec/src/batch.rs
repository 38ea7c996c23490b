//! The surroundings of operators while one batch is made.

use crate::interrupt::Interrupt;
use crate::plan_cache::PlanCache;
use nestor_columns::Columns;
use nestor_model::statement::{self, ROW, work};
use nestor_model::{Result, Timestamp};
use nestor_query::env::OpContext;
use nestor_storage::log::{Interest, LogPosition, LogReader};
use nestor_storage::oplog::OplogCursor;
use nestor_storage::{Scratch, View};

/// Bytes a blocking operator may hold before it spills or fails (`internalQueryMaxBlockingSortMemoryUsageBytes`).
pub const BLOCKING_MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// All statements together hold so many times as much as an operator that may go to files, at least.
const POOL_PART: usize = 4;

/// Opens the log behind a position.
pub type ReadLog<'l> = dyn Fn(LogPosition, Interest) -> LogReader + 'l;

/// One batch: the state read from, and how much work may be done for it.
pub struct Batch<'v> {
    /// The state that is read: a snapshot, or a write set on top of one.
    pub view: &'v dyn View,
    /// Time, variables, randomness of the operation.
    pub op: &'v OpContext,
    /// When to stop; the same that the thread runs [under](nestor_model::statement::under).
    pub interrupt: &'v Interrupt,
    /// Opens the oplog behind an optime; `None` where there is none.
    pub oplog: Option<&'v (dyn Fn(Timestamp) -> OplogCursor + 'v)>,
    /// Opens the log for change streams; `None` where there is none.
    pub log: Option<&'v ReadLog<'v>>,
    /// Documents as they were before changes are shown of changes from then on, in milliseconds since the epoch.
    pub images_since_ms: i64,
    /// Where blocking operators may spill; `None` forbids it (`allowDiskUse: false`).
    pub spill_dir: Option<&'v Scratch>,
    /// Where choices between plans are kept; `None` to choose anew each time.
    pub plan_cache: Option<&'v PlanCache>,
    /// Documents of collections path by path; `None` to read them one by one.
    pub columns: Option<&'v Columns>,
    /// Bytes each blocking operator may hold in memory.
    pub memory_bytes_max: usize,
    /// Whether stages count what only explain shows.
    pub explains: bool,
    budget: u64,
}

impl<'v> Batch<'v> {
    /// A batch for what runs to its end within this one, in the context `op`.
    pub fn within(&self, op: &'v OpContext) -> Batch<'v> {
        Batch {
            oplog: None,
            log: None,
            budget: u64::MAX,
            op,
            ..*self
        }
    }

    /// Bytes that an operator may hold before it puts what it can into files: what is wanted of it, else a quarter of what all statements together
    /// may hold, unless [`BLOCKING_MEMORY_BYTES_MAX`] was set to something else; `None` where it must not.
    pub(crate) fn room(&self) -> Option<usize> {
        self.spill_dir?;
        let wanted = statement::manners().operator_bytes_max;
        if wanted < usize::MAX {
            return Some(wanted);
        }
        if self.memory_bytes_max != BLOCKING_MEMORY_BYTES_MAX {
            return Some(self.memory_bytes_max);
        }
        let part = statement::account().map_or(0, |account| account.pool().limit() / POOL_PART);
        Some(part.max(BLOCKING_MEMORY_BYTES_MAX))
    }

    /// A batch with unlimited work.
    pub fn new(view: &'v dyn View, op: &'v OpContext, interrupt: &'v Interrupt) -> Self {
        Self {
            view,
            op,
            interrupt,
            oplog: None,
            log: None,
            images_since_ms: i64::MIN,
            spill_dir: None,
            plan_cache: None,
            columns: None,
            memory_bytes_max: BLOCKING_MEMORY_BYTES_MAX,
            explains: false,
            budget: u64::MAX,
        }
    }

    /// Lets blocking operators spill to files of `dir`.
    #[must_use]
    pub fn with_spill_dir(mut self, dir: Option<&'v Scratch>) -> Self {
        self.spill_dir = dir;
        self
    }

    /// Lets the plan read the oplog.
    #[must_use]
    pub fn with_oplog(mut self, oplog: &'v (dyn Fn(Timestamp) -> OplogCursor + 'v)) -> Self {
        self.oplog = Some(oplog);
        self
    }

    /// Lets change streams read the log, and show documents as they were before changes since then.
    #[must_use]
    pub fn with_log(mut self, log: &'v ReadLog<'v>, images_since_ms: i64) -> Self {
        (self.log, self.images_since_ms) = (Some(log), images_since_ms);
        self
    }

    /// Limits the work to `budget` units; afterwards operators pause.
    #[must_use]
    pub fn with_budget(mut self, budget: u64) -> Self {
        self.budget = budget;
        self
    }

    /// Keeps choices between plans in `cache`.
    #[must_use]
    pub fn with_plan_cache(mut self, cache: Option<&'v PlanCache>) -> Self {
        self.plan_cache = cache;
        self
    }

    /// Does `run` with at most `works` units of what is left.
    pub fn lend<T>(&mut self, works: u64, run: impl FnOnce(&mut Self) -> T) -> T {
        let lent = self.budget.min(works);
        let kept = self.budget - lent;
        self.budget = lent;
        let out = run(self);
        self.budget += kept;
        out
    }

    /// Whether the budget has an end, so that the operators may have to pause.
    pub fn is_limited(&self) -> bool {
        self.budget < u64::MAX / 2
    }

    /// Takes one unit of work; `false` when the budget is used up and the operator has to pause. An error when
    /// the operation was killed or its time is over.
    #[inline]
    pub fn spend(&mut self) -> Result<bool> {
        if self.budget == 0 {
            return Ok(false);
        }
        self.budget -= 1;
        // Counted for the statement, not for the batch: a pipeline within another one may give each row a batch of its own.
        work(ROW)?;
        Ok(true)
    }

    /// As [`Batch::spend`], for work that takes so many units at once, whatever is left.
    pub fn spend_for(&mut self, works: usize) -> Result<bool> {
        if self.budget == 0 {
            return Ok(false);
        }
        self.budget = self.budget.saturating_sub(works as u64);
        work(ROW * works)?;
        Ok(true)
    }

    /// Work units left.
    pub fn budget(&self) -> u64 {
        self.budget
    }
}
