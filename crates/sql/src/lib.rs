//! SQL over documents: PostgreSQL's dialect and its wire protocol.
//!
//! Reading order: [`types`] (what values there are), [`expr`], [`current`] (whose statement a thread runs), [`search`] (text search), [`functions`] and [`aggregates`] (what is computed of them), [`parse`],
//! [`catalog`] (tables), [`bind`] (from statements to plans), [`plan`] (rules), [`run`] (queries on the statement service), [`settings`] (of sessions), [`write`](mod@write) (statements that write), [`ddl`] (those that change what tables there are), [`mod@copy`] (files of rows), then
//! [`protocol`] (bytes to messages and back) and [`session`] (what a connection is at).
//!
//! It stands beside `command` on top of `database`, and uses nothing of it: plans are those of [`nestor_planner::relation`], whose scans
//! go through the find layer, and writes go through the writers that commands use.

pub mod aggregates;
mod asked;
pub mod bind;
pub mod catalog;
pub mod copy;
pub mod current;
pub mod ddl;
pub mod error;
pub mod expr;
pub mod functions;
pub mod fuzz;
mod notices;
pub mod parse;
pub mod plan;
pub mod protocol;
pub mod run;
pub mod search;
pub mod session;
pub mod settings;
pub mod stage;
pub mod types;
pub mod write;
