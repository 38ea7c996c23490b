//! What sessions did before the last start, read back from the oplog.
//!
//! A driver that lost its answer to a restart sends its write again. The oplog says which statements were
//! executed; a thread reads its last half hour, and a retryable write of a session that is not known yet
//! waits until it is through. Documents that findAndModify returned are not in the oplog: such a retry
//! gets `IncompleteTransactionHistory`.

use crate::args::{Uuid, safe_i64};
use crate::generic::Lsid;
use crate::lock;
use crate::sessions::{Sessions, StatementResult, TIMEOUT};
use crate::transaction::State;
use nestor_model::{RawDoc, Result, Timestamp, ValueRef};
use nestor_storage::Engine;
use std::sync::Arc;

/// Starts reading; does so here and now when there is nothing to read.
pub fn recover(engine: &Engine, sessions: &Arc<Sessions>) {
    let newest = match engine.oplog_range() {
        Ok(Some((_, newest))) => newest,
        _ => {
            sessions.set_recovered();
            return;
        }
    };
    let (engine, sessions_of_thread) = (engine.clone(), sessions.clone());
    let read = move || {
        // What cannot be read is not known: such writes run again, as they would after half an hour.
        let _ = read(&engine, &sessions_of_thread, newest);
        sessions_of_thread.set_recovered();
    };
    if std::thread::Builder::new()
        .name("session-history".into())
        .spawn(read)
        .is_err()
    {
        sessions.set_recovered();
    }
}

fn read(engine: &Engine, sessions: &Sessions, newest: Timestamp) -> Result<()> {
    let from = Timestamp {
        secs: newest.secs.saturating_sub(TIMEOUT.as_secs() as u32),
        inc: 0,
    };
    let oldest = engine.oplog_range()?.map_or(from, |(oldest, _)| oldest);
    // One before the oldest kept, as the cursor starts behind its position.
    let start = from.to_u64().max(oldest.to_u64().saturating_sub(1));
    let mut cursor = engine.oplog_cursor(Timestamp::from_u64(start));
    while cursor.position() < newest {
        let Some(entry) = cursor.next()? else { break };
        note(sessions, entry.as_raw())?;
    }
    Ok(())
}

/// Remembers what an entry says of its session, if it has one.
fn note(sessions: &Sessions, entry: RawDoc<'_>) -> Result<()> {
    // Entries of sessions begin with it.
    let Some(("lsid", ValueRef::Document(lsid))) = entry.iter().next() else {
        return Ok(());
    };
    let Some(ValueRef::Binary { bytes, .. }) = lsid.get("id") else {
        return Ok(());
    };
    let (Ok(id), Some(number)) = (bytes.try_into(), entry.get("txnNumber").and_then(safe_i64)) else {
        return Ok(());
    };
    let state = sessions.touch(Lsid { id: Uuid(id) })?;
    let mut session = lock(&state);
    if session.txn_number.is_some_and(|newest| newest > number) {
        return Ok(());
    }
    if session.txn_number != Some(number) {
        session.txn_number = Some(number);
        session.statements.clear();
        session.txn = State::None;
    }
    let id = || match entry.get("o2") {
        Some(ValueRef::Document(o2)) => o2.get("_id").map(|id| id.to_value()),
        _ => None,
    };
    let result = match entry.get("op").and_then(ValueRef::as_str) {
        // An insert has no use for the id; for an update this was an upsert.
        Some("i") => StatementResult {
            n: 1,
            upserted: id(),
            ..StatementResult::default()
        },
        Some("u") => StatementResult {
            n: 1,
            n_modified: 1,
            ..StatementResult::default()
        },
        Some("d") => StatementResult {
            n: 1,
            ..StatementResult::default()
        },
        Some("c") => {
            session.txn = State::Committed(None);
            return Ok(());
        }
        _ => return Ok(()),
    };
    let stmt_id = entry.get("stmtId").and_then(safe_i64).unwrap_or(0);
    session.statements.insert(
        i32::try_from(stmt_id).unwrap_or(0),
        StatementResult {
            recovered: true,
            ..result
        },
    );
    Ok(())
}
