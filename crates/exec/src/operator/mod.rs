//! The contract of operators.
//!
//! A plan runs as a tree of operators; the consumer pulls rows from the root. Each pull comes with a
//! [`Batch`], which lasts for one reply and says what is read. Between batches [`Operator::save`] makes an
//! operator let go of its storage cursors and keep only its position, so that it can wait in the cursor
//! registry without holding a snapshot, and go on with a newer one.
//!
//! # Legal calls
//! - A new operator reads nothing until the first pull.
//! - [`Operator::next`], [`Operator::next_batch`] and [`Operator::next_entries`] any number of times, in any order, with batches over one view. With another view only after
//!   [`Operator::save`].
//! - [`Step::Pause`] means that the batch's budget is used up: everything is kept, call again with more
//!   budget. An operator that waits for an input passes its pause on. An operator that gives many rows for one
//!   row of its input, or reads storage, takes its own units of work from the batch.
//! - After [`Step::Eof`] each further pull answers `Eof` again, except that a tailable scan may find more.
//! - After an error the tree must not be pulled or saved again; it may still be reported on and dropped.
//! - [`Operator::save`] between two pulls, any number of times, also before the first pull and after the end. It must
//!   reach all inputs. Rows and groups that were collected stay in memory.
//! - [`Operator::is_done`] and [`Operator::report`] at any time.
//!
//! # Rows
//! A row is the consumer's: no operator looks at a row that it gave away. Their order is the operator's own promise
//! (a sort's, a scan's); operators with one input keep their input's order unless they say otherwise.
//!
//! An operator that makes something of each row of one input is an [`EachRow`] in an [`Each`], which does the
//! pulling, counting and reporting.

mod each;
mod report;

pub use crate::counters::Counters;
pub use each::{Each, EachRow, Pull, one_by_one};
pub use report::{Bottom, Choice, Explain, Inputs, OwnInputs, Report, Stopwatch, Whereabouts, Within};

use crate::batch::Batch;
use crate::row::{EntryRow, Row};
use crate::row_batch::{Filled, RowBatch};
use nestor_model::{DocRef, Result};

/// The result of a pull.
#[derive(Debug)]
pub enum Step {
    /// A row.
    Row(Row),
    /// No row yet: the work budget of the batch is used up.
    Pause,
    /// No more rows.
    Eof,
}

impl Counters {
    /// Counts a pull of an input that gave `step`: a pause is no work.
    #[inline]
    pub fn pulled(&mut self, step: &Step) {
        self.works += u64::from(!matches!(step, Step::Pause));
    }

    /// Counts a pull of an input that appended `rows` rows.
    #[inline]
    pub fn pulled_batch(&mut self, rows: usize, filled: Filled) {
        self.works += rows as u64 + u64::from(filled == Filled::Eof);
    }

    /// Counts `step` as what the operator itself gives, and gives it.
    #[inline]
    pub fn gave(&mut self, step: Step) -> Step {
        match step {
            Step::Row(_) => self.advanced += 1,
            Step::Eof => self.is_eof = true,
            Step::Pause => {}
        }
        step
    }
}

/// Adds the next rows of an operator, each for itself: what [`Operator::next_batch`] does where it is not overridden, or has nothing better.
///
/// Errors: those of the operator.
pub(crate) fn singly<O: Operator + ?Sized>(
    operator: &mut O,
    batch: &mut Batch<'_>,
    out: &mut RowBatch,
) -> Result<Filled> {
    while !out.is_full() {
        match operator.next(batch)? {
            Step::Row(row) => out.push(row),
            Step::Pause => return Ok(Filled::Pause),
            Step::Eof => return Ok(Filled::Eof),
        }
    }
    Ok(Filled::Full)
}

/// A node of a running plan. The module says which calls are legal.
pub trait Operator: Send {
    /// The next row.
    ///
    /// Errors: those of evaluating expressions, of storage, of too little memory, and those of the batch's interrupt.
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step>;

    /// Appends the next rows to `out`, some of them or as many as it has room for: what [`Operator::next`] would have
    /// given, one after the other, but for record keys and what else `out` does not want. Rows that were appended
    /// before a pause or the end count. After an error nothing in `out` does.
    ///
    /// This way of doing it is right for all; operators override it to spare what each row costs.
    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        singly(self, batch, out)
    }

    /// Gives the next index entries to `each`, at most `most` of them: those that the rows of [`Operator::next`] would have been, without a row
    /// for each. `None` from an operator whose rows are more than entries, or others; it gives rows only.
    ///
    /// Errors: those of `each`, and those of [`Operator::next`].
    fn next_entries(
        &mut self,
        _batch: &mut Batch<'_>,
        _most: usize,
        _each: &mut dyn FnMut(EntryRow<'_>) -> Result<()>,
    ) -> Result<Option<Filled>> {
        Ok(None)
    }

    /// Gives the next documents to `each`, at most `most` of them: those that [`Operator::next_batch`] would have appended, without a copy. `None` from an
    /// operator that has no such way; it gives rows only.
    ///
    /// Errors: those of `each`, and those of [`Operator::next`].
    fn next_documents(
        &mut self,
        _batch: &mut Batch<'_>,
        _most: usize,
        _each: &mut dyn FnMut(DocRef<'_>) -> Result<()>,
    ) -> Result<Option<Filled>> {
        Ok(None)
    }

    /// Says that the consumer will pull this many rows from now on, unless they end before: so many may be prepared together. What was said
    /// before holds no more.
    fn expect(&mut self, _rows: usize) {}

    /// Says that rows may come in any order, which is of the operator's own choice from now on. Not where record keys are no ids.
    fn in_any_order(&mut self) {}

    /// True when it is known without another pull that no row will come: a plan on trial has ended then, and so has a list of a
    /// command. `false` promises nothing.
    fn is_done(&self) -> bool {
        false
    }

    /// Lets go of storage cursors, keeps the position; tells its inputs to do the same.
    fn save(&mut self);

    /// Its report. Cheap: nothing is computed that only explain shows.
    fn report(&self) -> Report<'_>;
}

/// An operator in a tree.
pub type BoxOperator = Box<dyn Operator>;
