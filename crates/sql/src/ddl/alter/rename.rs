//! Another name for a table, a view or a sequence.

use super::{defaults, others, rename_sequence};
use crate::bind::entry::{self, Object};
use crate::bind::object_name;
use crate::catalog::schemas;
use crate::ddl::roles;
use crate::ddl::{checked, sequence};
use crate::error::{error, fail, unsupported};
use crate::notices::pass_over;
use crate::run::numbers::{Sequence, of_collection};
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::rights::{Action as Right, Resource};
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{Namespace, Result, bail};
use nestor_storage::{View as _, WriteSet};
use sqlparser::ast::ObjectName;

/// What is to get another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whatever there is: ALTER TABLE takes all of them.
    Any,
    /// A view.
    View,
    /// A materialized view.
    Materialized,
    /// A sequence.
    Sequence,
}

/// RENAME TO. Whoever may rename within the database may, as with `renameCollection`, but not to a name under which more can be read.
pub(in crate::ddl) fn rename(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (from, to): (&Namespace, &ObjectName),
    (kind, if_exists): (Kind, bool),
    progress: &mut Progress,
) -> Result<()> {
    let to = {
        let (None, name) = object_name(to)? else {
            return fail("42601", "a new name has no schema");
        };
        let read = statement.current_view();
        let (schema, _) = schemas::split(read.view(), from);
        &checked(Namespace::new(&*from.db, schemas::collection(schema, &name)))?
    };
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
            if let Some(found) = sequence_of_column(ws, from) {
                session.check_right(&found.ns, Right::CollMod)?;
                if !matches!(kind, Kind::Any | Kind::Sequence) {
                    return fail("42809", format!("\"{}\" is not a view", from.coll));
                }
                check_free(statement, session, ws, to)?;
                let asking = defaults::follow(session, ws, (from, to))?;
                let name = schemas::split(&*ws, to).1.to_owned();
                rename_sequence(statement, session, ws, (&found, &name))?;
                return defaults::declare(statement, session, ws, asking);
            }
            let missing = error("42P01", format!("relation \"{}\" does not exist", from.coll));
            return pass_over(if_exists, missing);
        };
        let wanted = match kind {
            Kind::View if !source.is_view() => Some("view"),
            Kind::Materialized if entry::materialized_of(&source).is_none() => Some("materialized view"),
            Kind::Sequence if !matches!(entry::of(&source), Some(Object::Sequence(..))) => Some("sequence"),
            _ => None,
        };
        if let Some(wanted) = wanted {
            return fail("42809", format!("\"{}\" is not a {wanted}", from.coll));
        }
        if source.timeseries().is_some() {
            return unsupported("to rename a time-series collection");
        }
        statement.check_plain(&source, "under another name you might see more of it")?;
        check_free(statement, session, ws, to)?;
        others::rename_table(statement, ws, (from, to))?;
        sequence::follow(statement, ws, from, &|column| {
            Some((to.coll.to_string(), column.to_owned()))
        })?;
        roles::follow(statement, ws, from, Some(to))?;
        let asking = match entry::of(&source) {
            Some(Object::Sequence(..)) => defaults::follow(session, ws, (from, to))?,
            _ => Vec::new(),
        };
        catalog::rename(statement, ws, &source, to, (false, false))?;
        defaults::declare(statement, session, ws, asking)
    })
}

/// Nothing has a name.
///
/// Errors: 42P07.
fn check_free(statement: &Statement<'_>, session: &SessionFacts, ws: &WriteSet, to: &Namespace) -> Result<()> {
    let (op, _) = statement.operation(None)?;
    match Reading::new(statement, ws, &op, session).has_relation(to) {
        true => fail("42P07", format!("relation \"{}\" already exists", to.coll)),
        false => Ok(()),
    }
}

/// The sequence of a column that has this name.
fn sequence_of_column(ws: &WriteSet, ns: &Namespace) -> Option<Sequence> {
    let database = ws.catalog().database(&ns.db)?;
    let all = database.collections().flat_map(|collection| of_collection(collection));
    let mut of_columns = all.filter(|sequence| sequence.owner.is_some());
    of_columns.find(|sequence| *sequence.full_name() == *ns.coll)
}
