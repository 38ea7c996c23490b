//! ANALYZE, VACUUM and CHECKPOINT.
//!
//! Numbers of rows, and what indexes tell of values, are always up to date; ANALYZE looks at the columns of collections anew that nobody declared.
//! VACUUM and CHECKPOINT bring what was written to the base, whose free space is used again; to give it back to the file system is refused.

use super::Session;
use crate::bind::{ident, object_name};
use crate::catalog::{known, sampled};
use crate::error::{error, fail, unsupported};
use crate::notices;
use crate::parse::maintain::{Kind as Verb, Maintain};
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::Database;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::rights::{Action, Resource};
use nestor_database::statement::Statement;
use nestor_model::{Namespace, Result};

impl Session {
    /// Runs one of these statements; its tag.
    ///
    /// Errors: 42P01, 42703; 25001 for VACUUM within a transaction; 42501, 0A000.
    pub(super) fn maintain(&mut self, database: &Database, text: &str, what: &Maintain) -> Result<&'static str> {
        if what.verb == Verb::Reindex {
            return unsupported("REINDEX");
        }
        if what.gives_back {
            return unsupported("VACUUM FULL, as space is used again and not given back,");
        }
        if what.verb == Verb::Vacuum && self.block.is_some() {
            return fail("25001", "VACUUM cannot run inside a transaction block");
        }
        self.statement(database, text, OpKind::Command, |statement, facts| {
            if what.verb == Verb::Checkpoint {
                let account = facts.account.as_ref();
                let may = account.is_none_or(|account| account.grants.on(&Resource::Cluster).has(Action::Fsync));
                if !may {
                    let message = "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT";
                    return fail("42501", message);
                }
                return statement.database.engine.checkpoint().map_err(Into::into);
            }
            let all = tables(statement, facts, what)?;
            if what.verb == Verb::Vacuum && !all.is_empty() {
                statement.database.engine.checkpoint()?;
            }
            if what.analyzes {
                all.iter().try_for_each(|ns| analyze(statement, facts, ns))?;
            }
            Ok(())
        })?;
        Ok(what.verb.tag())
    }
}

/// The tables that a statement is about, as far as the user may. Those that it names have the columns that it names.
fn tables(statement: &Statement<'_>, facts: &SessionFacts, what: &Maintain) -> Result<Vec<Namespace>> {
    let read = statement.read_view()?;
    let view = read.view();
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, view, &op, facts);
    let mut all = Vec::new();
    if what.tables.is_empty() {
        let database = view.catalog().database(&facts.database);
        let collections = database.into_iter().flat_map(|database| database.collections());
        all.extend(collections.map(|collection| collection.ns.clone()));
    }
    for (name, columns) in &what.tables {
        if !columns.is_empty() && !what.analyzes {
            return fail(
                "0A000",
                "ANALYZE option must be specified when a column list is provided",
            );
        }
        let (schema, name) = object_name(name)?;
        let candidates = facts.candidates(view, (schema.as_deref(), &name));
        let Some(ns) = candidates.into_iter().find(|ns| view.catalog().get(ns).is_some()) else {
            return fail("42P01", format!("relation \"{name}\" does not exist"));
        };
        let table = reading.table_at(&ns)?;
        let columns_of = |own: &str| {
            table
                .iter()
                .any(|table| table.columns.iter().any(|column| column.name == own))
        };
        if let Some(missing) = columns.iter().map(ident).find(|column| !columns_of(column)) {
            return Err(error(
                "42703",
                format!("column \"{missing}\" of relation \"{name}\" does not exist"),
            ));
        }
        all.push(ns);
    }
    let (action, verb, doing) = match what.verb {
        Verb::Vacuum => (Action::Compact, "vacuum", "vacuuming"),
        _ => (Action::Find, "analyze", "analyzing"),
    };
    all.retain(|ns| {
        let may = facts.may(ns, action);
        if !may && !what.tables.is_empty() {
            let message = format!("permission denied to {verb} \"{}\", skipping it", ns.coll);
            notices::warn("42501", &message);
        }
        if may && what.tells {
            notices::inform(&format!("{doing} \"{}\"", ns.coll));
        }
        may
    });
    Ok(all)
}

/// Infers the columns of a table anew.
fn analyze(statement: &Statement<'_>, facts: &SessionFacts, ns: &Namespace) -> Result<()> {
    let read = statement.read_view()?;
    let Some(collection) = read.view().catalog().get(ns) else {
        return Ok(());
    };
    if collection.is_view() {
        return Ok(());
    }
    known::forget(collection);
    sampled::forget(collection);
    let (op, _) = statement.operation(None)?;
    Reading::new(statement, read.view(), &op, facts).table_at(ns).map(drop)
}
