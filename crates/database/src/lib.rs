//! The statement service: what a command, and later an SQL statement, does once its words are understood.
//!
//! Reading order: [`terms`] and [`concern`] (what a statement is run on), [`sessions`] and [`cursors`] (what clients hold
//! on to), [`node`] and [`gates`] (the process), [`database`] (what all statements share), [`statement`] (one of them),
//! [`operation`] (what it wants), [`read`], [`mod@write`] and [`changes`] (how it gets it), then [`observe`] and [`profiler`] (what is
//! counted, logged and recorded), [`audit`] (what is kept for those who ask who did it), and the small ones.
//!
//! It has never heard of commands: it asks for no command's name, reads no arguments and writes no replies. It looks down
//! only, on `exec` and what is below.

pub mod advisory;
pub mod audit;
mod bootstrap;
pub mod changes;
pub mod channels;
pub mod clock;
pub mod concern;
pub mod connections;
pub mod cursors;
pub mod database;
pub mod document_filter;
pub mod ending;
pub mod fail_points;
pub mod failures;
pub mod forward;
pub mod fuzz;
pub mod gates;
pub mod index_build;
pub mod index_builds;
pub mod index_filters;
pub mod login;
pub mod machine;
pub mod masking;
pub mod names;
pub mod node;
pub mod observe;
pub mod open_buckets;
pub mod operation;
pub mod oplog;
pub mod options;
pub mod parameters;
pub mod profiler;
pub mod query_settings;
pub mod query_stats;
pub mod read;
pub mod rights;
pub mod sequences;
pub mod session_id;
pub mod sessions;
pub mod shape;
pub mod sizes;
pub mod snapshots;
pub mod statement;
mod stored_functions;
pub mod system_profile;
pub mod terms;
pub mod traffic;
pub mod transport;
pub mod ttl;
pub mod turns;
pub mod user_changes;
pub mod users;
pub mod uuid;
pub mod write;

pub use database::Database;
pub use options::DatabaseOptions;
pub use statement::Statement;

use std::sync::{Mutex, MutexGuard};

/// Locks; a thread that panicked while holding the lock left nothing half-done that readers rely on.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
