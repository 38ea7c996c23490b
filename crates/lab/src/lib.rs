//! The laboratory: measures databases and reports what came out. `nestor bench` is its command.
//!
//! Reading order: [`random`] (seeds), [`rows`] and [`statement`] (what is asked and answered, in the words of every protocol),
//! [`wire`] (connections of the three protocols), [`measure`] (`/proc` and response times), [`target`] (a server), [`statistics`]
//! (ratios with their intervals, levels of series), [`drive`] (workers in closed loops or at fixed rates), [`workload`] (what
//! they do), [`delay`] and [`network`] (a slower disk, a longer network), [`results`] (JSON lines), [`report`] (tables and pages), [`history`] (releases), [`arguments`], [`run`] (servers take turns), [`command`] (what each command does).
//!
//! It does not know the database it measures: servers are reached by their protocols, and who logs in to them hands a connection in.

pub mod arguments;
pub mod command;
pub mod delay;
pub mod drive;
pub mod history;
pub mod measure;
pub mod network;
pub mod random;
pub mod report;
pub mod results;
pub mod rows;
pub mod run;
pub mod statement;
pub mod statistics;
pub mod target;
pub mod wire;
pub mod workload;
