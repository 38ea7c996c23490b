//! Another name for a table, a view or a sequence.

use super::{defaults, moved, others, rename_sequence};
use crate::bind::entry::{self, Object};
use crate::bind::object_name;
use crate::catalog::schemas;
use crate::ddl::{checked, sequence};
use crate::ddl::{policies, roles};
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
    moved(statement, session, (from, to), (kind, if_exists), progress)
}

/// The same to a name in whatever schema.
pub(super) fn moved(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (from, to): (&Namespace, &Namespace),
    (kind, if_exists): (Kind, bool),
    progress: &mut Progress,
) -> Result<()> {
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
                if schemas::split(&*ws, from).0 != schemas::split(&*ws, to).0 {
                    return Err(moved::check_column(&*ws, &found));
                }
                check_free(statement, session, ws, (to, false))?;
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
        let moves = schemas::split(&*ws, from).0 != schemas::split(&*ws, to).0;
        policies::check_name(&source, moves)?;
        let mut all = vec![(from.clone(), to.clone())];
        if moves {
            moved::check_free(&*ws, &source)?;
            let schema = schemas::split(&*ws, to).0.to_owned();
            for own in moved::sequences_of(ws, from) {
                let there = schemas::collection(&schema, schemas::split(&*ws, &own).1);
                all.push((own.clone(), Namespace::new(&*own.db, there)));
            }
        }
        for (from, to) in &all {
            one(statement, session, ws, (from, to), moves)?;
        }
        Ok(())
    })
}

/// Gives one entry its new name; `moves` says that it is in another schema.
fn one(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (from, to): (&Namespace, &Namespace),
    moves: bool,
) -> Result<()> {
    let Some(source) = ws.catalog().get(from).cloned() else {
        return Ok(());
    };
    check_free(statement, session, ws, (to, moves))?;
    others::rename_table(statement, ws, (from, to))?;
    sequence::follow(statement, ws, from, &|column| {
        Some((to.coll.to_string(), column.to_owned()))
    })?;
    roles::follow(statement, ws, from, Some(to))?;
    let asking = match entry::of(&source) {
        Some(Object::Sequence(..)) => defaults::follow(session, ws, (from, to))?,
        _ => Vec::new(),
    };
    let there = match moves {
        true => moved::declared_there(ws, from, to)?,
        false => None,
    };
    let source = ws.catalog().get(from).cloned().unwrap_or(source);
    catalog::rename(statement, ws, &source, to, (false, false))?;
    moved::declare(statement, ws, to, there.as_ref())?;
    defaults::declare(statement, session, ws, asking)
}

/// Nothing has a name.
///
/// Errors: 42P07.
fn check_free(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &WriteSet,
    (to, moves): (&Namespace, bool),
) -> Result<()> {
    let (op, _) = statement.operation(None)?;
    match Reading::new(statement, ws, &op, session).has_relation(to) {
        true if moves => {
            let (schema, name) = schemas::split(ws, to);
            fail(
                "42P07",
                format!("relation \"{name}\" already exists in schema \"{schema}\""),
            )
        }
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
