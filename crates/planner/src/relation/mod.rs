//! Plans over rows of values: the part of the plan tree that stands above documents.
//!
//! A language whose rows are tuples (SQL) lowers to this tree. Its leaves scan collections, views and tables in memory; what
//! a scan finds of its conditions goes through the find layer like any filter. Expressions are the language's own: the
//! tree is generic over [`Scalar`], and knows neither types nor functions.
//!
//! Invariants: a node's columns are those that [`Relation::width`] counts; expressions of a node refer to columns of its input
//! (of a join: those of the left input, then those of the right one) and to rows of enclosing queries through [`Env::outer`];
//! each [`Relation::Apply`] is one level of enclosing queries.

pub mod chunk;
pub mod explain;
pub mod scalar;

pub use chunk::Chunk;
pub use scalar::{Effects, Env, Frame, Scalar, Tuple, Waiting};

use nestor_model::vector::Vector;
use nestor_model::{Result, Value};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// A relation: where rows come from and what becomes of them.
#[derive(Clone, Debug)]
pub enum Relation<S> {
    /// Rows that the statement itself has.
    Values {
        /// The rows.
        rows: Vec<Vec<S>>,
        /// Columns of each.
        width: usize,
    },
    /// Rows of a collection, a view or a table in memory.
    Scan(Scan<S>),
    /// One row of one column: how many rows a scan has, which settles its conditions.
    Count(Scan<S>),
    /// Rows that a function gives.
    Function {
        /// The function.
        call: Arc<dyn TableFunction>,
        /// Its arguments.
        args: Vec<S>,
        /// Columns of its rows.
        width: usize,
    },
    /// Rows for which a condition holds.
    Filter {
        /// Where rows come from.
        input: Box<Relation<S>>,
        /// The condition.
        condition: S,
    },
    /// Rows of other columns.
    Project {
        /// Where rows come from.
        input: Box<Relation<S>>,
        /// The columns.
        columns: Vec<S>,
    },
    /// Rows of two relations side by side.
    Join(Box<Join<S>>),
    /// For each row, what a relation gives that depends on it.
    Apply(Box<Apply<S>>),
    /// One row for each group.
    Aggregate {
        /// Where rows come from.
        input: Box<Relation<S>>,
        /// What rows are grouped by; the first columns of the result.
        groups: Vec<S>,
        /// The grouping sets, as places in `groups`; columns that are not in a row's set are null in it. Without grouping sets
        /// there is one with all.
        sets: Vec<Vec<usize>>,
        /// What is computed of each group; the columns after the groups. After them comes the number of the grouping set.
        calls: Vec<Call<S>>,
        /// How many groups are wanted, whichever these are, if that is known: their number is this and what is skipped. There may be more.
        limit: Option<(Option<S>, S)>,
    },
    /// Each row with what is computed of the rows around it, as columns after its own.
    Window {
        /// Where rows come from.
        input: Box<Relation<S>>,
        /// What is computed.
        window: Window<S>,
    },
    /// All rows in an order.
    Sort {
        /// Where rows come from.
        input: Box<Relation<S>>,
        /// The order.
        keys: Vec<SortKey<S>>,
        /// How many rows are wanted, if that is known: their number is this and what is skipped.
        limit: Option<(Option<S>, S)>,
    },
    /// Some rows of all.
    Limit {
        /// Where rows come from.
        input: Box<Relation<S>>,
        /// How many at most.
        limit: Option<S>,
        /// How many are left out before.
        offset: Option<S>,
        /// As many more as are equal to the last one by these keys.
        ties: Vec<SortKey<S>>,
    },
    /// The first of the rows that are equal in some columns.
    Distinct {
        /// Where rows come from.
        input: Box<Relation<S>>,
        /// What they are equal by.
        on: Vec<S>,
    },
    /// The rows of all inputs, one after the other.
    Append {
        /// The inputs.
        inputs: Vec<Relation<S>>,
    },
    /// Rows of the left input that are, or are not, among those of the right one.
    Intersect(Box<Intersect<S>>),
    /// Rows that grow from rows.
    Recursive(Box<Recursive<S>>),
    /// What the last step of a [`Relation::Recursive`] gave.
    Working {
        /// Which.
        id: usize,
        /// Its columns.
        width: usize,
    },
    /// Rows that are computed once and read at several places.
    Shared {
        /// Which.
        id: usize,
        /// What they are.
        plan: Arc<Relation<S>>,
    },
}

/// Rows of a collection, a view or a table in memory.
#[derive(Clone, Debug)]
pub struct Scan<S> {
    /// Which of the statement's tables.
    pub table: usize,
    /// Its name, for explain.
    pub name: String,
    /// Which columns are looked at; others are null.
    pub needed: Vec<bool>,
    /// What holds of the rows that are wanted.
    pub conditions: Vec<S>,
    /// Of rows that are equal in all that is looked at one is enough; there may be more.
    pub distinct: bool,
    /// The scan leaves out rows of which a condition does not hold. If not it may give some of them: whoever planned it filters
    /// once more.
    pub settles: bool,
    /// The order, by columns of it, in which a sort above wants its rows; nothing for any order. Whether they come so is known once it
    /// runs.
    pub order: Vec<SortKey<S>>,
    /// It is the right input of a join, which asks it for the rows that have the keys of some left rows at a time, by an index.
    pub looked_up: bool,
}

/// How a join pairs rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs only.
    Inner,
    /// And each row of the left input that has no pair.
    Left,
    /// And each row of the right input that has no pair.
    Right,
    /// Both.
    Full,
    /// Each row of the left input that has a pair, alone.
    Semi,
    /// Each row of the left input that has none, alone.
    Anti,
}

/// A join.
#[derive(Clone, Debug)]
pub struct Join<S> {
    /// How it pairs rows.
    pub kind: JoinKind,
    /// The left input.
    pub left: Relation<S>,
    /// The right input, which is kept in memory or in files.
    pub right: Relation<S>,
    /// Expressions over a left and a right row that have to be equal and not null.
    pub keys: Vec<(S, S)>,
    /// What else has to hold, over both rows side by side.
    pub condition: Option<S>,
    /// Rows of the right input are wanted for rows of the left one only, which are thought to be far fewer: the left input is read first.
    pub left_first: bool,
}

/// What becomes of the rows that the inner relation of an [`Apply`] gives.
#[derive(Clone, Debug)]
pub enum ApplyKind<S> {
    /// Each stands beside the outer row. `keeps`: an outer row without any stands beside nulls.
    Lateral {
        /// Outer rows without inner ones are kept.
        keeps: bool,
    },
    /// The first column of the only one is one more column; null when there is none.
    Scalar,
    /// Whether there is one is one more column.
    Exists,
    /// Whether the values of `probe` are among them, by SQL's three truth values, is one more column.
    In {
        /// What is looked for: an expression for each column of the inner rows.
        probe: Vec<S>,
    },
    /// An array of their first columns is one more column.
    Array,
}

/// For each row of `input`, the rows of `inner`, which sees it as its outer row.
#[derive(Clone, Debug)]
pub struct Apply<S> {
    /// The outer rows.
    pub input: Relation<S>,
    /// The inner relation.
    pub inner: Relation<S>,
    /// What becomes of its rows.
    pub kind: ApplyKind<S>,
    /// It depends on the outer row; if not, it runs once.
    pub correlated: bool,
    /// The columns of the outer row on which alone its value depends; `None` where that is not known, or it is another one each time.
    pub told_by: Option<Arc<[usize]>>,
    /// The outer rows that it is wanted for; for others it does not run, and its column is null. All if there is none, as of
    /// [`ApplyKind::Lateral`].
    pub when: Option<S>,
}

/// A set operation that compares two relations.
#[derive(Clone, Debug)]
pub struct Intersect<S> {
    /// The left input.
    pub left: Relation<S>,
    /// The right input.
    pub right: Relation<S>,
    /// What rows are equal by.
    pub on: Vec<S>,
    /// Rows that are not in the right input, and not those that are.
    pub except: bool,
    /// As often as they come, and not once.
    pub all: bool,
}

/// Rows that grow from rows: `base` first, then `step` over what the step before gave, until it gives nothing.
#[derive(Clone, Debug)]
pub struct Recursive<S> {
    /// Which.
    pub id: usize,
    /// The first rows.
    pub base: Relation<S>,
    /// The rows that come of those before.
    pub step: Relation<S>,
    /// Rows that came before do not come again; by these expressions.
    pub distinct: Option<Vec<S>>,
}

/// A part of an order.
#[derive(Clone, Debug)]
pub struct SortKey<S> {
    /// What is compared.
    pub by: S,
    /// Largest first.
    pub descending: bool,
    /// Nulls before all others.
    pub nulls_first: bool,
}

/// An aggregate function applied.
#[derive(Clone, Debug)]
pub struct Call<S> {
    /// The function.
    pub function: Arc<dyn Aggregate>,
    /// Its arguments, for each row.
    pub args: Vec<S>,
    /// Rows with the same arguments count once.
    pub distinct: bool,
    /// Which rows count.
    pub filter: Option<S>,
    /// In which order they count.
    pub order: Vec<SortKey<S>>,
}

/// What windows compute.
#[derive(Clone, Debug)]
pub struct Window<S> {
    /// Rows with equal values of these belong together.
    pub partition: Vec<S>,
    /// Their order.
    pub order: Vec<SortKey<S>>,
    /// What is computed.
    pub calls: Vec<WindowCall<S>>,
}

/// A window function applied.
#[derive(Clone, Debug)]
pub struct WindowCall<S> {
    /// The function.
    pub function: WindowFunction<S>,
    /// Its arguments.
    pub args: Vec<S>,
    /// The rows that it sees.
    pub frame: WindowFrame<S>,
}

/// A window function.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum WindowFunction<S> {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    /// An aggregate of the frame's rows.
    Aggregate(Call<S>),
}

/// In what a frame's bounds count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// Differences of the value that rows are ordered by.
    Range,
    /// Groups of rows that are equal in the order.
    Groups,
}

/// Where a frame begins or ends.
#[derive(Clone, Debug)]
pub enum FrameBound<S> {
    /// At the partition's beginning or end.
    Unbounded,
    /// At the current row, or at the first or last that is its equal.
    Current,
    /// So much before.
    Preceding(S),
    /// So much after.
    Following(S),
}

/// Which rows of a frame are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameExclusion {
    /// None.
    Nothing,
    /// The current row.
    Current,
    /// The current row and its equals.
    Group,
    /// The current row's equals but not itself.
    Ties,
}

/// The rows that a window function sees.
#[derive(Clone, Debug)]
pub struct WindowFrame<S> {
    /// In what bounds count.
    pub units: FrameUnits,
    /// Where it begins.
    pub start: FrameBound<S>,
    /// Where it ends.
    pub end: FrameBound<S>,
    /// What is left out.
    pub exclusion: FrameExclusion,
    /// For bounds by differences: whether the first value is at least as far as the third from the second, towards the beginning
    /// (`true`) or the end.
    pub in_range: Option<Arc<dyn InRange>>,
}

/// Whether a value lies within an offset of another one, for frames by range.
pub trait InRange: Debug + Send + Sync {
    /// Whether `value` is not before `base - offset` (or `base + offset` when `after`), in the order of the window.
    ///
    /// Errors: those of the arithmetic of the type; a negative offset.
    fn not_before(&self, value: &Value, base: &Value, offset: &Value, after: bool) -> Result<bool>;
    /// Whether `value` is not after it.
    ///
    /// Errors: those of [`InRange::not_before`].
    fn not_after(&self, value: &Value, base: &Value, offset: &Value, after: bool) -> Result<bool>;
}

/// A function whose result is rows.
pub trait TableFunction: Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;
    /// Begins to give the rows for these arguments.
    ///
    /// Errors: those of the arguments.
    fn rows(&self, args: &[Value], env: &Env<'_>) -> Result<Box<dyn Iterator<Item = Result<Tuple>> + Send>>;
    /// Names and types of the columns, as the language has them, of a function whose rows are the fields of the documents in an array that is its only
    /// argument; `None` for all others.
    fn fields(&self) -> Option<&dyn Any> {
        None
    }
}

/// An aggregate function.
pub trait Aggregate: Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;
    /// The state of a group without rows.
    fn start(&self) -> Box<dyn Accumulator>;
    /// The same where [`Accumulator::remove`] works, if the function has such a state, whose results are exactly those of one that begins anew.
    fn start_sliding(&self) -> Option<Box<dyn Accumulator>> {
        None
    }
    /// The states of many groups, of which there are none yet.
    fn start_grouped(&self) -> Box<dyn Grouped>;
    /// Whether of its arguments only the least and the largest matter, in the order of their type.
    fn takes_extremes(&self) -> bool {
        false
    }
    /// Whether states of parts of the rows, in any order, are exactly as good as one of all of them: then [`Grouped::merge`] does it.
    fn merges(&self) -> bool {
        false
    }
}

/// The states of an aggregate function for groups that are known by number.
pub trait Grouped: Send {
    /// There are so many groups now; those that are new have no rows.
    fn resize(&mut self, groups: usize);
    /// Each row, with these arguments, belongs to the group at its place in `groups`.
    ///
    /// Errors: those of [`Accumulator::add`].
    fn add(&mut self, groups: &[u32], args: &[Arc<Vector>]) -> Result<()>;
    /// The result of a group for the rows so far.
    ///
    /// Errors: those of [`Accumulator::result`].
    fn result(&self, group: usize) -> Result<Value>;
    /// Bytes that the states keep besides themselves.
    fn weight(&self) -> usize;
    /// The states of the same function for other rows: what group `g` has there belongs to the one at `groups[g]` here.
    ///
    /// Errors: those of [`Accumulator::add`].
    fn merge(&mut self, other: Box<dyn Grouped>, groups: &[u32]) -> Result<()>;
    /// The states of the groups of so many parts: each group belongs to the part at its place in `parts`, where they keep their order.
    fn split(self: Box<Self>, parts: &[u8], count: usize) -> Vec<Box<dyn Grouped>>;
    /// Itself, for who knows what it is.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// The state of an aggregate function for one group.
pub trait Accumulator: Send {
    /// A row with these arguments belongs to the group.
    ///
    /// Errors: those of the function, overflow among them.
    fn add(&mut self, args: &[Value]) -> Result<()>;
    /// The first of the rows that it has, with these arguments, does not belong to the group any more; `false` if only a state that begins
    /// anew can do without it.
    ///
    /// Errors: those of the function.
    fn remove(&mut self, args: &[Value]) -> Result<bool> {
        _ = args;
        Ok(false)
    }
    /// The result for the rows so far; rows may follow.
    ///
    /// Errors: those of the function.
    fn result(&self) -> Result<Value>;
    /// Bytes that it keeps besides itself.
    fn weight(&self) -> usize {
        0
    }
}

impl Accumulator for Box<dyn Accumulator> {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        (**self).add(args)
    }

    fn remove(&mut self, args: &[Value]) -> Result<bool> {
        (**self).remove(args)
    }

    fn result(&self) -> Result<Value> {
        (**self).result()
    }

    fn weight(&self) -> usize {
        (**self).weight()
    }
}

impl<S> Relation<S> {
    /// Number of its columns.
    pub fn width(&self) -> usize {
        match self {
            Self::Values { width, .. } | Self::Function { width, .. } | Self::Working { width, .. } => *width,
            Self::Scan(scan) => scan.needed.len(),
            Self::Count(_) => 1,
            Self::Filter { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. }
            | Self::Distinct { input, .. } => input.width(),
            Self::Project { columns, .. } => columns.len(),
            Self::Join(join) => match join.kind {
                JoinKind::Semi | JoinKind::Anti => join.left.width(),
                _ => join.left.width() + join.right.width(),
            },
            Self::Apply(apply) => match apply.kind {
                ApplyKind::Lateral { .. } => apply.input.width() + apply.inner.width(),
                _ => apply.input.width() + 1,
            },
            Self::Aggregate { groups, calls, .. } => groups.len() + calls.len() + 1,
            Self::Window { input, window } => input.width() + window.calls.len(),
            Self::Append { inputs } => inputs.first().map_or(0, Self::width),
            Self::Intersect(both) => both.left.width(),
            Self::Recursive(recursive) => recursive.base.width(),
            Self::Shared { plan, .. } => plan.width(),
        }
    }

    /// The relations that it reads.
    pub fn inputs(&self) -> Vec<&Self> {
        match self {
            Self::Values { .. } | Self::Scan(_) | Self::Count(_) | Self::Function { .. } | Self::Working { .. } => {
                Vec::new()
            }
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Window { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. }
            | Self::Distinct { input, .. } => vec![input],
            Self::Join(join) => vec![&join.left, &join.right],
            Self::Apply(apply) => vec![&apply.input, &apply.inner],
            Self::Append { inputs } => inputs.iter().collect(),
            Self::Intersect(both) => vec![&both.left, &both.right],
            Self::Recursive(recursive) => vec![&recursive.base, &recursive.step],
            Self::Shared { plan, .. } => vec![plan],
        }
    }
}
