//! The log of a replica set, outside of its members.
//!
//! ```text
//! primary     journal frames -> Writer::append (durable when it returns) -> majority
//! secondary   Reader::read -> applied by the code that recovery uses
//! both        Lease: who may try to be primary; Reconciled: how far a member's journal agrees with the log
//! ```
//!
//! The log is an ordered map from commit sequence to journal frame with one writer at a time. Opening a [`Writer`] shuts every other
//! one out (fencing): after [`Log::open_writer`] returned no append of an older writer ever takes effect, whether it is told so or
//! not. That alone makes the set safe. The [`lease`] only keeps members from opening writers all the time, so its clocks may be wrong.
//!
//! What this does not know: what a frame means (that is the store's), which sockets and clients there are.
//!
//! Reading order: [`log`] (the contract), [`error`], [`lease`], [`mod@reconcile`], [`trimming`], [`memory`] and `slate` (who fulfil the contract; `ticks` is the clock of the latter, `conflicts` the store below it), [`member`] (a store over
//! the log).

#[cfg(feature = "cluster")]
mod conflicts;
pub mod error;
pub mod lease;
pub mod log;
pub mod member;
pub mod memory;
pub mod reconcile;
#[cfg(feature = "cluster")]
pub mod slate;
#[cfg(feature = "cluster")]
mod ticks;
pub mod trimming;

pub use error::{LogError, Result};
pub use lease::{Lease, LeaseWatch, Standing};
pub use log::{Entry, Log, Reader, Version, Writer};
pub use memory::MemoryLog;
pub use reconcile::reconcile;
#[cfg(feature = "cluster")]
pub use slate::SlateLog;
