//! TRUNCATE: tables lose all their rows in one commit.
//!
//! Actions of keys are not taken: a table whose key others have is emptied with all of these, or not at all.

use super::triggers::Calling;
use super::{attempt, foreign};
use crate::catalog::schemas;
use crate::error::{self, Field, error};
use crate::notices;
use crate::run::gathered::Gathered;
use crate::run::partitions::{declared, descendants};
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::statement::Statement;
use nestor_database::write::Progress;
use nestor_model::{Namespace, Result};
use nestor_storage::View;
use sqlparser::ast::{Ident, ObjectName};

/// Empties tables and, if it `cascades`, those that have keys of them; which ones they were.
///
/// Errors: 0A000 for a table whose key another has that stays as it is, 42501, 40001.
pub(crate) fn truncate(
    statement: &Statement<'_>,
    session: &SessionFacts,
    tables: &[Namespace],
    cascades: bool,
) -> Result<Vec<Namespace>> {
    let mut progress = Progress::default();
    let emptied = statement.atomically(&mut progress, |ws| {
        let all = with_referring(&*ws, tables, cascades)?;
        let mut gathered = Gathered::new();
        let calling = Calling { statement, session };
        calling.of_truncate(ws, &all, true)?;
        for ns in &all {
            let (op, _) = statement.operation(None)?;
            Reading::new(statement, &*ws, &op, session).check_rows(ns)?;
            session.deferred.check_none_of(ns, "TRUNCATE")?;
            // Its rows are those of its partitions.
            if declared(&*ws, ns).is_some_and(|table| table.division.is_some()) {
                continue;
            }
            let text = format!("DELETE FROM {}", named(&*ws, session, ns));
            if let Some(delete) = crate::parse::parse(&text)?.first() {
                let nothing = ([].as_slice(), [].as_slice());
                let done = attempt(
                    statement,
                    session,
                    ws,
                    (delete, nothing),
                    &mut gathered,
                    (None, None, false),
                )?;
                if let Some(changes) = done.changes {
                    changes.hold_gone(ws);
                }
            }
        }
        calling.of_truncate(ws, &all, false)?;
        Ok(all)
    })?;
    if let Some((lsn, _)) = progress.last {
        statement.database.wait_durable(lsn)?;
    }
    Ok(emptied)
}

/// The tables, and those that have keys of them.
///
/// Errors: 0A000 if there are such and nothing is to be done to them.
fn with_referring(view: &dyn View, tables: &[Namespace], cascades: bool) -> Result<Vec<Namespace>> {
    let mut all: Vec<Namespace> = Vec::new();
    for ns in tables {
        if !all.contains(ns) {
            all.push(ns.clone());
        }
    }
    let mut at = 0;
    while let Some(ns) = all.get(at).cloned() {
        at += 1;
        for (partition, _) in descendants(view, &ns) {
            if !all.contains(&partition.ns) {
                all.push(partition.ns.clone());
            }
        }
        for (other, _) in foreign::referring(view, &ns) {
            if all.contains(&other) {
                continue;
            }
            if !cascades {
                return Err(referenced(&ns, &other));
            }
            notices::notice(&format!("truncate cascades to table \"{}\"", other.coll));
            all.push(other);
        }
    }
    Ok(all)
}

fn referenced(ns: &Namespace, other: &Namespace) -> nestor_model::Error {
    let error = error(
        "0A000",
        "cannot truncate a table referenced in a foreign key constraint",
    );
    let detail = format!("Table \"{}\" references \"{}\".", other.coll, ns.coll);
    let hint = format!(
        "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
        other.coll
    );
    error::with(error, &[(Field::Detail, &detail), (Field::Hint, &hint)])
}

/// The name by which a statement finds a table wherever it is.
fn named(view: &dyn View, session: &SessionFacts, ns: &Namespace) -> ObjectName {
    let (schema, name) = match *ns.db == *session.database {
        true => schemas::split(view, ns),
        false => (&*ns.db, &*ns.coll),
    };
    let parts = [schema, name].map(|part| Ident::with_quote('"', part));
    ObjectName::from(parts.to_vec())
}
