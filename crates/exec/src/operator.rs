//! The contract of operators.
//!
//! A plan runs as a tree of operators; the consumer pulls rows from the root. Each pull comes with a
//! [`Batch`], which lasts for one reply and says what is read. Between batches [`Operator::save`] makes an
//! operator let go of its storage cursor and keep only its position, so that it can wait in the cursor
//! registry without holding a snapshot, and go on with a newer one.
//!
//! # Legal calls
//! - [`Operator::next`] any number of times. After [`Step::Eof`] it answers `Eof` again, except that a
//!   tailable scan may find more.
//! - [`Step::Pause`] means that the batch's budget is used up: everything is kept, call again with more
//!   budget.
//! - After an error the tree must not be used again.
//! - [`Operator::save`] between two batches; the next call may come with another batch and view.

use crate::batch::Batch;
use crate::pipeline::Probe;
use crate::reads::Reads;
use crate::row::Row;
use crate::spill::Spilled;
use nestor_model::{Document, Result};
use nestor_storage::Index;
use std::sync::Arc;

/// What a pull brings.
#[derive(Debug)]
pub enum Step {
    /// A row.
    Row(Row),
    /// No row yet: the work budget of the batch is used up.
    Pause,
    /// No more rows.
    Eof,
}

/// Counters that every operator keeps for explain and the profiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Units of work: rows or keys looked at.
    pub works: u64,
    /// Rows passed up.
    pub advanced: u64,
    /// Records read from storage.
    pub docs_examined: u64,
    /// Index keys read.
    pub keys_examined: u64,
    /// Repositionings of an index cursor.
    pub seeks: u64,
    /// True once it answered `Eof`.
    pub is_eof: bool,
}

impl Counters {
    /// Counts a pull of an input that gave `step`: a pause is no work.
    #[inline]
    pub fn pulled(&mut self, step: &Step) {
        self.works += u64::from(!matches!(step, Step::Pause));
    }
}

/// How one of several plans was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// By a trial run, not from the cache.
    pub by_trial: bool,
    /// The cached plan was tried and did badly.
    pub replanned: bool,
    /// Hash of the plan shape and key in the plan cache, if the choice is kept there.
    pub cached_as: Option<(u64, u64)>,
}

/// A node of a running plan.
pub trait Operator: Send {
    /// The next row; see the module for what is legal.
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step>;

    /// True when it is known without another pull that no row will come: a limit that is reached closes its
    /// cursor in the same reply.
    fn is_done(&self) -> bool {
        false
    }

    /// Lets go of storage cursors, keeps the position.
    fn save(&mut self);

    /// Name of the stage as explain prints it.
    fn stage(&self) -> &'static str;

    /// Its counters.
    fn counters(&self) -> &Counters;

    /// Fields of its own that explain's `executionStats` shows.
    fn explain_fields(&self, _out: &mut Document) {}

    /// The index that it reads.
    fn index(&self) -> Option<&Arc<Index>> {
        None
    }

    /// How it came by its plan, when there were several.
    fn choice(&self) -> Option<Choice> {
        None
    }

    /// Fields of its own that explain shows when it is a stage of a pipeline.
    fn stage_fields(&self, _out: &mut Document) {}

    /// The stage as explain prints it once it ran, where that is more than how it was written.
    fn restated(&self) -> Option<Document> {
        None
    }

    /// What it wrote to temporary files; `None` when it never does.
    fn spilled(&self) -> Option<Spilled> {
        None
    }

    /// Adds what it read beside what its [`Counters`] and its inputs tell: other collections.
    fn add_reads(&self, _reads: &mut Reads) {}

    /// Itself, when it is what counts a stage for explain.
    fn probe(&self) -> Option<&Probe> {
        None
    }

    /// What it pulls from, in the order of explain's `inputStage(s)`.
    fn inputs(&self) -> Vec<&dyn Operator> {
        Vec::new()
    }

    /// Rows it holds in memory, in bytes.
    fn memory(&self) -> usize {
        0
    }
}

/// Records read by a tree of operators.
pub fn docs_examined(root: &dyn Operator) -> u64 {
    let below: u64 = root.inputs().into_iter().map(docs_examined).sum();
    root.counters().docs_examined + below
}

/// An operator in a tree.
pub type BoxOperator = Box<dyn Operator>;
