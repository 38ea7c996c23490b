//! Reports of operators about themselves, for explain, the profiler and the accounts of memory.

use super::{BoxOperator, Counters, Operator};
use crate::plan_cache::Tried;
use crate::reads::Reads;
use crate::spill::Spilled;
use nestor_model::{Document, Namespace};
use nestor_planner::plan::FindPlan;
use nestor_planner::{FindQuery, NodeKind};
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::change_stream::Token;
use nestor_storage::Index;
use nestor_storage::log::LogSignal;
use std::sync::Arc;
use std::time::Duration;

/// The report of an operator: its kind and its figures so far.
#[derive(Clone, Copy)]
pub struct Report<'o> {
    /// The kind of operator.
    pub kind: NodeKind,
    /// The operator's counters.
    pub counters: &'o Counters,
    /// The index that the operator reads.
    pub index: Option<&'o Arc<Index>>,
    /// How the operator's plan was chosen, when there were several.
    pub choice: Option<Choice>,
    /// The figures of the operator's temporary files; `None` for an operator that never writes any.
    pub spilled: Option<Spilled>,
    /// Bytes that the operator holds in memory, those of its inputs not included.
    pub memory: usize,
    /// The figures of the operator's reading of other collections, which its counters and its inputs do not include.
    pub reads: Option<&'o Reads>,
    /// A tree that the operator pulls from although explain does not show it as an input.
    pub beside: Option<&'o dyn Operator>,
    /// Figures that only explain shows.
    pub explain: Option<&'o dyn Explain>,
    /// Where a change stream is.
    pub stream: Option<Whereabouts<'o>>,
    /// Set for an operator that stands on top of a stage to count its rows for explain.
    pub stopwatch: Option<Stopwatch<'o>>,
    /// The operators that this one pulls from; [`Report::inputs`] goes through them.
    pub below: Inputs<'o>,
}

/// The state of a change stream, for its reader.
#[derive(Clone, Copy, Debug)]
pub struct Whereabouts<'o> {
    /// Where a reader resumes that has seen all events given so far.
    pub at: Token,
    /// Where a reader resumes that has seen all events but the last.
    pub before: Token,
    /// The stream has ended: all events were given, and no more will come.
    pub is_over: bool,
    /// There is more to read, although nothing was given just now.
    pub is_behind: bool,
    /// The signal that tells a stream at the end that there is more to read.
    pub signal: Option<&'o LogSignal>,
}

/// The inputs of an operator.
#[derive(Clone, Copy)]
pub enum Inputs<'o> {
    /// The operator makes or reads its rows itself.
    None,
    /// One input.
    One(&'o dyn Operator),
    /// Any number of inputs.
    Several(&'o [BoxOperator]),
    /// Any number of inputs, which the operator keeps by their own type.
    Own(&'o dyn OwnInputs),
}

/// The inputs of an operator that keeps them by their own type.
pub trait OwnInputs {
    /// Input number `at`, from 0 on; `None` behind the last.
    fn input(&self, at: usize) -> Option<&dyn Operator>;
}

impl<'o> Report<'o> {
    /// The report of an operator without inputs.
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

    /// Adds the operator's only input.
    #[must_use]
    pub fn over(mut self, input: &'o dyn Operator) -> Self {
        self.below = Inputs::One(input);
        self
    }

    /// Adds the operator's inputs.
    #[must_use]
    pub fn over_all(mut self, inputs: &'o [BoxOperator]) -> Self {
        self.below = Inputs::Several(inputs);
        self
    }

    /// Adds the bytes that the operator holds in memory.
    #[must_use]
    pub fn holding(mut self, memory: usize) -> Self {
        self.memory = memory;
        self
    }

    /// Adds what only explain shows.
    #[must_use]
    pub fn explained_by(mut self, explain: &'o dyn Explain) -> Self {
        self.explain = Some(explain);
        self
    }

    /// Adds what the operator wrote to temporary files.
    #[must_use]
    pub fn spilling(mut self, spilled: Spilled) -> Self {
        self.spilled = Some(spilled);
        self
    }

    /// Adds what the operator read of other collections.
    #[must_use]
    pub fn reading(mut self, reads: &'o Reads) -> Self {
        self.reads = Some(reads);
        self
    }

    /// The operator's inputs, in the order of explain's `inputStage(s)`.
    pub fn inputs(&self) -> impl Iterator<Item = &'o dyn Operator> {
        let (one, several, own): (_, &'o [BoxOperator], _) = match self.below {
            Inputs::None => (None, &[], None),
            Inputs::One(input) => (Some(input), &[], None),
            Inputs::Several(inputs) => (None, inputs, None),
            Inputs::Own(inputs) => (None, &[], Some(inputs)),
        };
        let own = own.into_iter();
        one.into_iter()
            .chain(several.iter().map(|input| &**input as &dyn Operator))
            .chain(own.flat_map(|inputs| (0..).map_while(move |at| inputs.input(at))))
    }
}

/// Fields of an operator that only explain shows. The methods are called only for operations that are explained.
pub trait Explain {
    /// Appends the operator's own fields to its stage in `executionStats` of a plan.
    fn plan_fields(&self, _out: &mut Document) {}

    /// Appends the operator's own fields to its stage of a pipeline.
    fn stage_fields(&self, _out: &mut Document) {}

    /// Appends what is known of how the stage of a pipeline runs, also before it has run.
    fn planned_fields(&self, _out: &mut Document) {}

    /// The pipelines that the stage runs, to be shown within it.
    fn within(&self) -> Vec<Within<'_>> {
        Vec::new()
    }
}

/// A pipeline within a stage of one that is explained.
pub struct Within<'o> {
    /// Where it is written in the stage.
    pub field: &'o str,
    /// The source that it reads.
    pub bottom: &'o Bottom,
    /// Its operators, with stopwatches.
    pub root: &'o dyn Operator,
}

/// The source of a pipeline that is explained.
pub struct Bottom {
    /// The find that does the first stages. Its plans are in the order in which they did on trial; it has none without a collection.
    pub find: FindPlan,
    /// How the plans did on trial.
    pub tried: Vec<Tried>,
}

impl Bottom {
    /// The source of a pipeline that reads no collection.
    pub fn nothing(namespace: &Namespace) -> Self {
        Self {
            find: FindPlan {
                query: FindQuery::all(Arc::new(MatchExpr::AlwaysTrue)),
                namespace: namespace.clone(),
                plans: Vec::new(),
                restricted: false,
                kept: None,
            },
            tried: Vec::new(),
        }
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

/// The measurements of a stage of a pipeline that is explained.
#[derive(Clone, Copy)]
pub struct Stopwatch<'o> {
    /// The stage as explain prints it; empty on top of the plan that the stages read from.
    pub shown: &'o Document,
    /// Time that its rows took, that of the stages below it included.
    pub elapsed: Duration,
}
