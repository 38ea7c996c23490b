//! How much of the oplog is kept: its size, which is an option of `local.oplog.rs`, and the age below which nothing is cut off
//! whatever the size.
//!
//! As with mongod, the size that a server is started with is that of an oplog which is made then; one that is there keeps its own,
//! which `replSetResizeOplog` changes for good. The age is the running server's: it is given at each start.
//! Source: manual, "replSetResizeOplog", "--oplogSize", "--oplogMinRetentionHours".

use crate::options::DatabaseOptions;
use nestor_model::namespace::{LOCAL, OPLOG};
use nestor_model::{Namespace, Result};
use nestor_storage::log::LogRetention;
use nestor_storage::{Collection, Engine, View};

/// `local.oplog.rs`.
pub fn namespace() -> Namespace {
    Namespace::new(LOCAL, OPLOG)
}

/// How many documents a collection has, and their bytes. Of the oplog they are the entries of the log, and what the log takes.
///
/// Errors: those of reading the journal.
pub fn sizes(engine: &Engine, collection: &Collection) -> Result<(i64, i64)> {
    if collection.ns.is_oplog() {
        let entries = i64::try_from(engine.log_entries()?).unwrap_or(i64::MAX);
        return Ok((entries, i64::try_from(engine.log_bytes()).unwrap_or(i64::MAX)));
    }
    let state = &collection.state;
    Ok((state.documents().max(0), state.bytes().max(0)))
}

/// The size in bytes of an oplog that is made now.
pub(crate) fn initial_bytes(engine: &Engine, options: &DatabaseOptions) -> u64 {
    options.oplog_bytes.unwrap_or_else(|| engine.log_retention().bytes_max)
}

/// Has the store keep as much as the oplog's options say.
pub(crate) fn apply(engine: &Engine, options: &DatabaseOptions) {
    let snapshot = engine.snapshot();
    let made = snapshot.catalog().get(&namespace());
    let bytes = made.and_then(|made| u64::try_from(made.options.capped?.bytes_max).ok());
    engine.set_log_retention(LogRetention {
        bytes_max: bytes.unwrap_or_else(|| initial_bytes(engine, options)),
        age_min: options.oplog_age_min,
    });
}
