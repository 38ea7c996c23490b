//! Keys that were deferred, looked at when their transaction ends or wants it.

use super::foreign::{Settling, missing, still_used};
use super::triggers::Calling;
use crate::bind::declared::Declared;
use crate::bind::entry::{self, Object};
use crate::bind::object_name;
use crate::catalog::schemas;
use crate::catalog::{Foreign, Table, Timing};
use crate::error::fail;
use crate::parse::trigger::Trigger;
use crate::run::deferred::{Question, Waiting};
use crate::run::tables::SessionFacts;
use nestor_database::statement::Statement;
use nestor_database::write::Progress;
use nestor_model::statement::work;
use nestor_model::{Namespace, Result};
use nestor_storage::{View, WriteSet};
use sqlparser::ast::ObjectName;
use std::sync::Arc;

/// The constraints of names, with their tables: those of the first schema of `search_path` that has any, where no schema is said.
///
/// Errors: 42704; 42809 for one that does not wait, if it is to.
pub(crate) fn named(
    statement: &Statement<'_>,
    session: &SessionFacts,
    names: &[ObjectName],
    waits: bool,
) -> Result<Vec<(Namespace, String)>> {
    let read = statement.read_view()?;
    let view = read.view();
    let mut out = Vec::new();
    for name in names {
        let (schema, name) = object_name(name)?;
        let schemas = match schema {
            Some(schema) if schema == schemas::TEMPORARY => vec![session.temporary_schema()],
            Some(schema) => vec![schema],
            None => session.path_of_relations(),
        };
        let found = schemas.iter().map(|schema| within(view, session, schema, &name));
        let Some(found) = found.into_iter().find(|found| !found.is_empty()) else {
            return fail("42704", format!("constraint \"{name}\" does not exist"));
        };
        for (ns, timing) in found {
            if waits && timing == Timing::AtOnce {
                return fail("42809", format!("constraint \"{name}\" is not deferrable"));
            }
            out.push((ns, name.clone()));
        }
    }
    Ok(out)
}

/// The tables of a schema that have a constraint of a name.
fn within(view: &dyn View, session: &SessionFacts, schema: &str, name: &str) -> Vec<(Namespace, Timing)> {
    let database = view.catalog().database(&session.database);
    let mut out = Vec::new();
    for collection in database.into_iter().flat_map(|database| database.collections()) {
        let Some(declared) = Declared::of_collection(collection) else {
            continue;
        };
        let is_trigger = |own: &Trigger| own.name == name && own.constraint.is_some();
        let has = declared.constraint_names().iter().any(|own| own == name) || declared.triggers.iter().any(is_trigger);
        if has && schemas::split(view, &collection.ns).0 == schema {
            let foreign = declared.foreign.iter().find(|foreign| foreign.name == name);
            let own = declared.unique.iter().find(|unique| unique.name == name);
            let excluding = declared.exclusions.iter().find(|own| own.name == name);
            let timing = foreign.map(|foreign| foreign.timing).or(own.map(|own| own.timing));
            let timing = timing.or(excluding.map(|own| own.timing));
            let trigger = declared.triggers.iter().find(|own| own.name == name);
            let timing = timing.or_else(|| {
                let (may_wait, waits) = trigger?.constraint?;
                Some(match (may_wait, waits) {
                    (false, _) => Timing::AtOnce,
                    (true, false) => Timing::Deferrable,
                    (true, true) => Timing::Deferred,
                })
            });
            let timing = timing.unwrap_or(Timing::AtOnce);
            out.push((collection.ns.clone(), timing));
        }
    }
    out
}

/// Looks at the keys of the session's transaction that wait and that `is_due` chooses.
///
/// Errors: 23503, and those of reading.
pub(crate) fn settle(
    statement: &Statement<'_>,
    session: &SessionFacts,
    is_due: &dyn Fn(&Waiting) -> bool,
) -> Result<()> {
    let mut progress = Progress::default();
    loop {
        let due = session.deferred.due(is_due);
        if due.is_empty() {
            return Ok(());
        }
        // What is done now is not to be done again by what triggers do.
        let numbers: Vec<usize> = due.iter().map(|(at, _)| *at).collect();
        session.deferred.answered(&numbers);
        statement.atomically(&mut progress, |ws| {
            let (op, _) = statement.operation(None)?;
            let mut settling = Settling::new(statement, session, &op);
            for (_, waiting) in &due {
                work(1)?;
                match (waiting.question, table_at(ws, &waiting.table)) {
                    (Question::Called, Some(table)) => {
                        Calling { statement, session }.called_late(ws, &table, waiting)?;
                    }
                    _ => look(&mut settling, ws, waiting)?,
                }
            }
            Ok(())
        })?;
        // Triggers may have left more.
    }
}

fn table_at(ws: &WriteSet, ns: &Namespace) -> Option<Arc<Table>> {
    match entry::of(ws.catalog().get(ns)?) {
        Some(Object::Table(_, table)) => Some(table.clone()),
        _ => None,
    }
}

fn look(settling: &mut Settling<'_, '_>, ws: &mut WriteSet, waiting: &Waiting) -> Result<()> {
    let Waiting { table: ns, key, .. } = waiting;
    // A constraint that is gone wants nothing.
    let Some(table) = table_at(ws, ns) else { return Ok(()) };
    if waiting.question == Question::Single {
        let own = table.later.iter().find(|own| own.name == waiting.constraint);
        return own.map_or(Ok(()), |own| settling.check_single(ws, (ns, &table), own, key));
    }
    if waiting.question == Question::Apart {
        let own = table.exclusions.iter().find(|own| own.name == waiting.constraint);
        return match (own, key.first()) {
            (Some(own), Some(id)) => settling.check_apart_late(ws, (ns, &table, own), id.as_ref()),
            _ => Ok(()),
        };
    }
    let of_name = |foreign: &&Foreign| foreign.name == waiting.constraint;
    let Some(foreign) = table.foreign.iter().find(of_name) else {
        return Ok(());
    };
    let own = table.paths(&foreign.columns);
    match waiting.question {
        // Where it is not, rows may have another key by now, or be gone.
        Question::There => match !settling.hold_key(ws, ns, foreign, key)? && settling.is_any(ws, ns, &own, key)? {
            true => Err(missing(&table, foreign, key)),
            false => Ok(()),
        },
        Question::Single | Question::Apart | Question::Called => Ok(()),
        Question::Unused => {
            let parent_ns = Namespace::new(&*ns.db, foreign.table.as_str());
            let Some(parent) = table_at(ws, &parent_ns) else {
                return Ok(());
            };
            let names = parent.referred(foreign);
            let is_back = settling.is_there(ws, foreign, (&parent_ns, &names), key)?;
            match !is_back && settling.is_any(ws, ns, &own, key)? {
                true => Err(still_used((&parent, &names), (&table, foreign), key)),
                false => Ok(()),
            }
        }
    }
}
