//! Another name for a table, a view or a sequence.

use super::others;
use crate::error::{fail, unsupported};
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::rights::{Action as Right, Resource};
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{Namespace, Result, bail};
use nestor_storage::View as _;

/// RENAME TO. Whoever may rename within the database may, as with `renameCollection`, but not to a name under which more can be read.
pub(super) fn table(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (from, to): (&Namespace, &Namespace),
    if_exists: bool,
    progress: &mut Progress,
) -> Result<()> {
    if from.db != to.db {
        return unsupported("to rename a table into another database");
    }
    if let Some(account) = &session.account {
        let on = Resource::Database(from.db.clone());
        if !account.grants.on(&on).has(Right::RenameCollectionSameDb) {
            bail!(Unauthorized, "permission denied for table {}", from.coll);
        }
        if account.grants.on_collection(to).has(Right::Find) {
            session.check_right(from, Right::Find)?;
        }
    }
    statement.atomically(progress, |ws| {
        let Some(source) = ws.catalog().get(from).cloned() else {
            return match if_exists {
                true => Ok(()),
                false => fail("42P01", format!("relation \"{}\" does not exist", from.coll)),
            };
        };
        if source.timeseries().is_some() {
            return unsupported("to rename a time-series collection");
        }
        statement.check_plain(&source, "under another name you might see more of it")?;
        let (op, _) = statement.operation(None)?;
        if Reading::new(statement, &*ws, &op, session).has_relation(&to.coll) {
            return fail("42P07", format!("relation \"{}\" already exists", to.coll));
        }
        others::rename_table(statement, ws, (from, to))?;
        catalog::rename(statement, ws, &source, to, (false, false))
    })
}
