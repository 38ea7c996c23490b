//! The statement service: what a command, and later an SQL statement, does once its words are understood.
//!
//! Reading order: [`session_id`] and [`cursors`] (what clients hold on to), [`snapshots`], [`parameters`], [`index_builds`],
//! [`observe`] (what is counted and logged), then the small ones.
//!
//! It has never heard of commands: it knows no command's name, reads no arguments and writes no replies. It looks down
//! only, on `exec` and what is below.

pub mod clock;
pub mod cursors;
pub mod index_builds;
pub mod names;
pub mod observe;
pub mod parameters;
pub mod rights;
pub mod session_id;
pub mod snapshots;
pub mod uuid;

use std::sync::{Mutex, MutexGuard};

/// Locks; a thread that panicked while holding the lock left nothing half-done that readers rely on.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
