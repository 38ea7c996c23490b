//! Runs plan trees on a snapshot; writes with index upkeep.
//!
//! Reading order: [`operator`] (the contract), [`batch`] (what operators see while they run), [`row`] and [`row_batch`] (what
//! they pass up), [`ops`] (the operators), [`build()`] (from a plan to operators), [`multi_plan`] and [`plan_cache`] (which of
//! several plans), [`pipeline`] (aggregation stages), [`changes`] (change streams), [`point`] (lookups without a plan), [`mod@write`] (insert, update, delete),
//! [`by_columns`] (which finds read documents path by path), [`search`] (search indexes), [`catalog`] (what is computed once for each version of a collection), [`index_writer`] (from documents to index entries),
//! [`keys`] (bytes of index and sort keys), `key_sorter` (more of them than memory holds), `kept` (memory of operators), `leading` (which rows may be among the first), [`interrupt`], [`spill`], [`figures`], [`summary`] and [`reads`] (what was counted).
//!
//! It does not know commands, sessions or replies.

pub mod batch;
mod build;
pub mod by_columns;
pub mod catalog;
pub mod changes;
mod columns;
mod counters;
pub mod estimate;
pub mod figures;
mod helper;
pub mod index_writer;
mod interner;
mod kept;
mod key_sorter;
pub mod keys;
mod leading;
pub mod multi_plan;
pub mod operator;
pub mod ops;
pub mod pipeline;
pub mod plan_cache;
pub mod point;
pub mod reads;
pub mod relation;
pub mod row;
pub mod row_batch;
pub mod row_order;
pub mod search;
pub mod spill;
pub mod summary;
pub mod text;
pub mod write;

pub use batch::Batch;
pub use build::{build, look_up};
pub use figures::Figures;
pub use multi_plan::{MultiPlan, find, run_one_of};
pub use nestor_model::interrupt::{self, Interrupt, KillSwitch, lose_patience};
pub use operator::{BoxOperator, Counters, Operator, Step};
pub use ops::count_rows;
pub use plan_cache::PlanCache;
pub use reads::Reads;
pub use row::{Row, RowDoc};
pub use summary::docs_examined;
