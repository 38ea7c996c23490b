//! LOCK TABLE.
//!
//! A mode that keeps writers out makes the transaction conflict with whoever writes to the table until it ends, as what looks at all rows does, and
//! those who lock a table wait for each other. Readers see the state before, whatever the mode.

use super::{namespace, table};
use crate::current;
use crate::error::{error, fail, unsupported};
use crate::run::tables::SessionFacts;
use nestor_database::advisory::{Key, Mode};
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::Progress;
use nestor_model::{Namespace, Result};
use nestor_storage::CollectionId;
use sqlparser::ast::{Lock, LockTableMode};

/// The tables that a statement names.
///
/// Errors: 42P01, 42809 for what is no table, 0A000 for views; those of rights.
pub(crate) fn tables(
    statement: &Statement<'_>,
    session: &SessionFacts,
    lock: &Lock,
) -> Result<Vec<(Namespace, CollectionId)>> {
    let each = lock.tables.iter().map(|named| {
        let ns = namespace(statement, session, &named.name)?;
        let right = if keeps_writers_out(lock) {
            Right::Update
        } else {
            Right::Find
        };
        session.check_right(&ns, right)?;
        let read = statement.current_view();
        let Some(found) = read.view().catalog().get(&ns) else {
            return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
        };
        match table::Kind::of(found) {
            Some(table::Kind::Table) => Ok((ns, found.id)),
            Some(table::Kind::View) => unsupported("LOCK TABLE of a view"),
            _ => fail("42809", format!("cannot lock relation \"{}\"", ns.coll)),
        }
    });
    each.collect()
}

/// Whether a mode keeps those out who write.
fn keeps_writers_out(lock: &Lock) -> bool {
    !matches!(
        lock.lock_mode,
        Some(LockTableMode::AccessShare | LockTableMode::RowShare | LockTableMode::RowExclusive)
    )
}

/// Waits for others who have locked these tables.
///
/// Errors: 55P03 with NOWAIT and when it takes too long, 40P01, those of the interrupt.
pub(crate) fn wait(lock: &Lock, tables: &[(Namespace, CollectionId)]) -> Result<()> {
    if lock.lock_mode == Some(LockTableMode::AccessShare) {
        return Ok(());
    }
    let Some(session) = current::get() else {
        return fail("0A000", "locks of tables are of connections that speak SQL");
    };
    let mode = Mode {
        is_exclusive: keeps_writers_out(lock),
        of_transaction: true,
    };
    for (ns, id) in tables {
        let key = Key {
            // No database has such a name, so the numbers are not those that users lock.
            db: format!("{}\u{0}tables", session.db).into(),
            is_pair: false,
            number: i64::from(id.0),
        };
        match lock.nowait {
            true if !session.locks.try_take(session.id, &key, mode)? => {
                return Err(error(
                    "55P03",
                    format!("could not obtain lock on relation \"{}\"", ns.coll),
                ));
            }
            true => {}
            false => session.wait_for(&key, mode)?,
        }
    }
    Ok(())
}

/// Has the transaction conflict with whoever writes to these tables until it ends.
///
/// Errors: those of the transaction.
pub(crate) fn keep(statement: &Statement<'_>, lock: &Lock, tables: &[(Namespace, CollectionId)]) -> Result<()> {
    let mut progress = Progress::default();
    statement.atomically(&mut progress, |ws| {
        for (_, id) in tables {
            ws.require_collection(*id);
            if keeps_writers_out(lock) {
                ws.require_unwritten(*id);
            }
        }
        Ok(())
    })
}
