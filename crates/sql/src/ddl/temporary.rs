//! Temporary tables, views and sequences: those of a schema of the session, which goes with it.
//!
//! The schema is `pg_temp_N`, where N is the number of the connection; the session may say `pg_temp`. It is made with the first that stands in
//! it. What a server leaves behind that did not end in order goes when the next one starts.

use super::{alter, assertion, checked, schema};
use crate::bind::object_name;
use crate::catalog::schemas;
use crate::error::fail;
use crate::run::tables::SessionFacts;
use crate::write;
use nestor_database::Database;
use nestor_database::connections::Slot;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::statement::Statement;
use nestor_database::terms::Terms;
use nestor_database::write::{Progress, catalog, comments};
use nestor_exec::Interrupt;
use nestor_model::{Namespace, Result};
use nestor_storage::{View as _, WriteSet};
use sqlparser::ast::{Ident, ObjectName, Statement as Ast};
use std::sync::Arc;
use std::time::Instant;

/// Whether something new is to be temporary: because the statement says so, or by the schema that it names.
///
/// Errors: 42601 for names that are none.
pub(super) fn is_meant(session: &SessionFacts, (says, name): (bool, &ObjectName)) -> Result<bool> {
    let (schema, _) = object_name(name)?;
    Ok(says || schema.is_some_and(|schema| schema == schemas::TEMPORARY || schema == session.temporary_schema()))
}

/// The collection that something new and temporary is to be. Makes the schema if it is the first.
///
/// Errors: 42P16 for a name in another schema, and those of making the schema.
pub(super) fn new_namespace(
    statement: &Statement<'_>,
    session: &SessionFacts,
    name: &ObjectName,
    progress: &mut Progress,
) -> Result<Namespace> {
    let own = session.temporary_schema();
    let (schema, name) = object_name(name)?;
    match schema {
        Some(schema) if schemas::is_temporary(&schema) && schema != own => {
            return fail(
                "42P16",
                "cannot create relations in temporary schemas of other sessions",
            );
        }
        Some(schema) if schema != schemas::TEMPORARY && schema != own => {
            return fail("42P16", "cannot create temporary relation in non-temporary schema");
        }
        _ => {}
    }
    let ns = checked(Namespace::new(
        session.database.as_str(),
        schemas::collection(&own, &name),
    ))?;
    let entry = schemas::entry(&session.database, &own);
    let is_there = statement.current_view().view().catalog().get(&entry).is_some();
    if !is_there {
        statement.atomically(progress, |ws| match ws.catalog().get(&entry) {
            Some(_) => Ok(()),
            None => schema::make(statement, ws, &entry, &own),
        })?;
    }
    session.temporary.use_it();
    Ok(ns)
}

/// Does what is to be done with temporary tables before a commit.
///
/// Errors: those of deleting and of dropping.
pub fn at_commit(statement: &Statement<'_>, session: &SessionFacts) -> Result<()> {
    let mut all = session.temporary.at_commit();
    // What an aborted transaction made is not there.
    let is_there = |ns: &Namespace| statement.current_view().view().catalog().get(ns).is_some();
    all.retain(|(ns, _)| is_there(ns));
    let mut progress = Progress::default();
    for (ns, goes) in &*all {
        if *goes {
            statement.atomically(&mut progress, |ws| let_go(statement, session, ws, ns))?;
            continue;
        }
        let name = ObjectName::from(
            ns.coll
                .splitn(2, '.')
                .map(|part| Ident::with_quote('"', part))
                .collect::<Vec<_>>(),
        );
        let delete: Vec<Ast> = crate::parse::parse(&format!("DELETE FROM {name}"))?;
        if let Some(delete) = delete.first() {
            let nothing = ([].as_slice(), [].as_slice());
            write::run(
                statement,
                session,
                (delete, None),
                nothing,
                (&|_| Ok(()), &mut |_| Ok(())),
                &mut |_| Ok(()),
            )?;
        }
    }
    all.retain(|(_, goes)| !goes);
    Ok(())
}

/// Drops all that a session has of temporary tables. Its schema stays for those to come.
///
/// Errors: those of the catalog.
pub fn drop_all(statement: &Statement<'_>, session: &SessionFacts) -> Result<()> {
    session.temporary.at_commit().clear();
    match session.temporary.is_used() {
        true => drop_schema(statement, session, &session.temporary_schema(), false),
        false => Ok(()),
    }
}

/// Drops what stands in a temporary schema, and the schema too if it `goes`.
fn drop_schema(statement: &Statement<'_>, session: &SessionFacts, schema: &str, goes: bool) -> Result<()> {
    let entry = schemas::entry(&session.database, schema);
    let mut progress = Progress::default();
    statement.atomically(&mut progress, |ws| {
        for ns in schema::within(ws, &session.database, schema) {
            let_go(statement, session, ws, &ns)?;
        }
        let found = ws.catalog().get(&entry).map(|found| found.uuid);
        if let (Some(uuid), true) = (found, goes) {
            catalog::drop(statement, ws, &entry)?;
            comments::forget(statement, ws, &entry.db, uuid)?;
        }
        Ok(())
    })
}

fn let_go(statement: &Statement<'_>, session: &SessionFacts, ws: &mut WriteSet, ns: &Namespace) -> Result<()> {
    alter::let_go(statement, ws, ns)?;
    assertion::let_go(statement, session, ws, ns)?;
    match ws.catalog().get(ns).cloned() {
        Some(found) => schema::let_go(statement, session, ws, &found),
        None => Ok(()),
    }
}

/// Drops the temporary tables of a session that ends, which cannot be stopped any more.
pub fn end(database: &Database, slot: &Slot, session: &SessionFacts) {
    if session.temporary.is_used() {
        // What cannot be dropped now goes when the server starts again.
        let _ = drop_schema(
            &own_statement(database, slot, session),
            session,
            &session.temporary_schema(),
            true,
        );
    }
}

/// Drops the temporary tables of sessions of a server that did not end in order. To be called before anybody connects.
pub fn clear(database: &Database) {
    let snapshot = database.engine.snapshot();
    let mut left = Vec::new();
    for of_catalog in snapshot.catalog().databases() {
        let all = schemas::all(&snapshot, of_catalog.name()).into_iter();
        let temporary = all.filter(|(_, schema)| schemas::is_temporary(schema));
        left.extend(temporary.map(|(_, schema)| (of_catalog.name().to_string(), schema)));
    }
    if left.is_empty() {
        return;
    }
    let slot = database.connections.add("start-up");
    for (db, schema) in left {
        let session = SessionFacts {
            database: db,
            ..SessionFacts::default()
        };
        // It stands in nobody's way, and is tried again at the next start.
        let _ = drop_schema(&own_statement(database, &slot, &session), &session, &schema, true);
    }
    database.connections.remove(slot.id);
}

/// A statement of the server's own.
fn own_statement<'r>(database: &'r Database, slot: &'r Slot, session: &'r SessionFacts) -> Statement<'r> {
    let terms = Terms {
        db: &session.database,
        ..Terms::default()
    };
    let begun = (Interrupt::new(Arc::default(), None), Instant::now());
    Statement::new(database, slot, terms, OpKind::Command, begun)
}
