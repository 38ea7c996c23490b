//! One file per command: typed arguments, work, reply; sessions and cursors.
//!
//! Reading order: [`request`] (what goes in and comes out), [`service`] (how a command runs),
//! [`facts`] and [`dispatch`] (the table), [`context`] (what a command has at hand), [`mod@args`] and [`generic`] (reading
//! arguments), [`reply`], then any file of [`commands`].
//!
//! Only this crate turns an error into a reply. It knows no framing and no sockets.

pub mod aggregate;
pub mod api_strict;
pub mod api_use;
pub mod args;
pub mod batch;
pub mod bootstrap;
pub mod commands;
pub mod connection;
pub mod context;
pub mod dispatch;
pub mod facts;
pub mod fail_points;
pub mod failures;
pub mod figures;
pub mod gate;
pub mod generic;
pub mod history;
pub mod node;
pub mod operation;
pub mod plans;
pub mod profiler;
pub mod query_settings;
pub mod read;
pub mod read_concern;
pub mod reply;
pub mod request;
pub mod server_state;
pub mod service;
pub mod sessions;
pub mod startup_log;
pub mod transaction;
pub mod ttl;
pub mod turns;
pub mod validate;
pub mod write;
pub mod write_concern;

pub use nestor_database::observe::{counters, latency, log, metrics, op_kind, top, transaction_counts};
pub use nestor_database::{clock, cursors, index_builds, names, parameters, rights, snapshots};

pub use connection::Connection;
pub use context::Context;
pub use dispatch::CommandSpec;
pub use facts::{Facts, Flags};
pub use node::{Node, ProcessOptions};
pub use request::{Outcome, Park, Request, Sequence, Wait};
pub use service::{Service, ServiceOptions};

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use nestor_database::lock;
