//! Change streams: the entries of the log as events.
//!
//! ```text
//! log ──source──► entries ──change──► what happened, and whether the stream tells of it ──event──► documents
//!       │                                                                                            │
//!       └ where the stream is ◄──────────── resumable (on top: every event keeps its token) ◄── stages, split
//! ```
//!
//! Reading order: `change` (one operation of the log, and which streams see it), `event` (its document), `images` (documents
//! before and after a change), `source`, `split`, `resumable`, `shared` (what those three tell each other).
//!
//! A stream between two batches holds its place in the log and nothing else, however much has been logged since, so nobody who
//! does not read makes it grow. Everything that it tells of has a token
//! ([`Token`](nestor_query::stage::change_stream::Token)), whose time and operation are those of the log.
//! Source: manual, "Change Streams", "Change Events".

mod change;
mod event;
mod images;
mod resumable;
mod shared;
mod source;
mod split;

pub(crate) use resumable::Resumable;
pub(crate) use source::Source;
pub(crate) use split::Split;

use nestor_model::{Error, ErrorCode};

/// The error of a stream that cannot go on: 280.
fn fatal(why: impl Into<String>) -> Error {
    Error::new(ErrorCode::ChangeStreamFatalError, why)
}

/// The error of a stream whose place is no longer in the log: 286.
fn history_lost() -> Error {
    Error::new(
        ErrorCode::ChangeStreamHistoryLost,
        "Resume of change stream was not possible, as the resume point may no longer be in the oplog.",
    )
}

#[cfg(test)]
mod tests;
