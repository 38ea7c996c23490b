//! What operators tell of themselves: for explain, the profiler, and whoever counts memory.

use super::{BoxOperator, Counters, Operator};
use crate::reads::Reads;
use crate::spill::Spilled;
use nestor_model::Document;
use nestor_planner::NodeKind;
use nestor_query::stage::change_stream::Token;
use nestor_storage::Index;
use nestor_storage::log::LogSignal;
use std::sync::Arc;
use std::time::Duration;

/// What an operator is and what it did so far.
#[derive(Clone, Copy)]
pub struct Report<'o> {
    /// What it does.
    pub kind: NodeKind,
    /// Its counters.
    pub counters: &'o Counters,
    /// The index that it reads.
    pub index: Option<&'o Arc<Index>>,
    /// How it came by its plan, when there were several.
    pub choice: Option<Choice>,
    /// What it wrote to temporary files; `None` when it never does.
    pub spilled: Option<Spilled>,
    /// Bytes it holds in memory, without its inputs.
    pub memory: usize,
    /// What it read of other collections, beside what its counters and its inputs tell.
    pub reads: Option<&'o Reads>,
    /// A tree that it pulls from and that is none of the inputs explain shows.
    pub beside: Option<&'o dyn Operator>,
    /// What explain alone shows.
    pub explain: Option<&'o dyn Explain>,
    /// Where a change stream is.
    pub stream: Option<Whereabouts<'o>>,
    /// Set when it stands on top of a stage to count it for explain.
    pub stopwatch: Option<Stopwatch<'o>>,
    /// What it pulls from; [`Report::inputs`] goes through them.
    pub below: Inputs<'o>,
}

/// What whoever pulls from a stream asks about it.
#[derive(Clone, Copy, Debug)]
pub struct Whereabouts<'o> {
    /// Where a stream resumes that has seen everything that was given.
    pub at: Token,
    /// Where one resumes that has seen everything but the last event that was given.
    pub before: Token,
    /// The stream has ended: everything was given, and no more will come.
    pub is_over: bool,
    /// There is more to read, although nothing was given just now.
    pub is_behind: bool,
    /// Says when there is more, for a stream that was at the end.
    pub signal: Option<&'o LogSignal>,
}

/// The inputs of an operator.
#[derive(Clone, Copy)]
pub enum Inputs<'o> {
    /// It makes or reads its rows itself.
    None,
    /// One.
    One(&'o dyn Operator),
    /// Any number.
    Several(&'o [BoxOperator]),
}

impl<'o> Report<'o> {
    /// Of an operator without inputs.
    pub fn new(kind: NodeKind, counters: &'o Counters) -> Self {
        Self {
            kind,
            counters,
            index: None,
            choice: None,
            spilled: None,
            memory: 0,
            reads: None,
            beside: None,
            explain: None,
            stream: None,
            stopwatch: None,
            below: Inputs::None,
        }
    }

    /// It pulls from `input`.
    #[must_use]
    pub fn over(mut self, input: &'o dyn Operator) -> Self {
        self.below = Inputs::One(input);
        self
    }

    /// It pulls from several inputs.
    #[must_use]
    pub fn over_all(mut self, inputs: &'o [BoxOperator]) -> Self {
        self.below = Inputs::Several(inputs);
        self
    }

    /// It holds so many bytes in memory.
    #[must_use]
    pub fn holding(mut self, memory: usize) -> Self {
        self.memory = memory;
        self
    }

    /// Explain shows more of it.
    #[must_use]
    pub fn explained_by(mut self, explain: &'o dyn Explain) -> Self {
        self.explain = Some(explain);
        self
    }

    /// It may write to temporary files, and wrote `spilled`.
    #[must_use]
    pub fn spilling(mut self, spilled: Spilled) -> Self {
        self.spilled = Some(spilled);
        self
    }

    /// It read other collections.
    #[must_use]
    pub fn reading(mut self, reads: &'o Reads) -> Self {
        self.reads = Some(reads);
        self
    }

    /// What it pulls from, in the order of explain's `inputStage(s)`.
    pub fn inputs(&self) -> impl Iterator<Item = &'o dyn Operator> {
        let (one, several): (_, &'o [BoxOperator]) = match self.below {
            Inputs::None => (None, &[]),
            Inputs::One(input) => (Some(input), &[]),
            Inputs::Several(inputs) => (None, inputs),
        };
        one.into_iter()
            .chain(several.iter().map(|input| &**input as &dyn Operator))
    }
}

/// What explain alone shows of an operator. Each method is called only while something is explained.
pub trait Explain {
    /// Appends fields of its own in `executionStats` of a plan.
    fn plan_fields(&self, _out: &mut Document) {}

    /// Appends fields of its own as a stage of a pipeline.
    fn stage_fields(&self, _out: &mut Document) {}

    /// The stage of a pipeline as it is printed once it ran, where that is more than how it was written.
    fn restated(&self) -> Option<Document> {
        None
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

/// What was measured of a stage of a pipeline that is explained.
#[derive(Clone, Copy)]
pub struct Stopwatch<'o> {
    /// The stage as explain prints it; empty on top of the plan that the stages read from.
    pub shown: &'o Document,
    /// Time that its rows took, that of the stages below it included.
    pub elapsed: Duration,
}
