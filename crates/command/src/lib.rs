//! One file per command: from typed arguments to a statement, from its answer to a reply.
//!
//! Reading order: [`request`] (what goes in and comes out), [`facts`] (the table of commands), [`mod@args`] and [`generic`]
//! (reading arguments), [`context`] (what a command has at hand), any file of [`commands`], [`reply`], and at the top
//! [`dispatch`] (how a command runs). What statements do and keep is in `nestor_database`.
//!
//! Only this crate turns an error into a reply. It knows no framing and no sockets.

pub mod api_strict;
pub mod args;
pub mod audit;
mod audited;
pub mod authorization;
pub mod batch;
pub mod collection_at;
pub mod commands;
pub mod connection;
pub mod context;
pub mod dispatch;
pub mod facts;
mod fail_points;
mod faults;
pub mod first_user;
pub mod gate;
pub mod generic;
pub mod generic_names;
pub mod identity;
pub mod login;
pub mod needs;
pub mod plans;
pub mod privileges;
pub mod query_stats;
pub mod read_concern;
pub mod reply;
pub mod request;
pub mod server_state;
pub mod service;
pub mod spec;
pub mod startup_log;
pub mod ttl;
mod used;
pub mod write_concern;
pub mod write_reply;

pub use connection::Connection;
pub use context::Context;
pub use facts::{Facts, Flags};
pub use request::{Outcome, Park, Request, Sequence, Wake};
pub use service::Service;
pub use spec::CommandSpec;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use nestor_database::lock;
