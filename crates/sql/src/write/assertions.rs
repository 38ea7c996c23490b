//! Assertions: conditions over several tables, looked at before each commit that writes to one of these.
//!
//! An assertion is an entry ([`assertion`](crate::bind::entry::assertion)) whose text is a query of one truth value; null holds, as with CHECK. It is asked in the state of the
//! write set that is to commit, which notes what it reads: see [`nestor_database::write::assertions`].

use super::rows_of_bound;
use crate::bind::entry::assertions;
use crate::bind::{Binder, Bound};
use crate::catalog::schemas::PUBLIC;
use crate::catalog::{Kind, Table};
use crate::error::{self, Field, error, unsupported};
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::statement::Statement;
use nestor_database::statement::relational::Asserted;
use nestor_model::{Namespace, Result, Value};
use nestor_storage::{Collection, View as _, WriteSet};
use sqlparser::ast::Query;
use std::sync::Arc;

/// The collections among tables.
fn collections(tables: &[Arc<Table>]) -> impl Iterator<Item = &Namespace> {
    tables.iter().filter_map(|table| match &table.kind {
        Kind::Collection(ns) | Kind::View(ns) => Some(ns),
        _ => None,
    })
}

/// An assertion bound; names that say no schema are those of `public`.
pub(crate) fn bound<'r>(reading: &'r Reading<'_, '_>, query: &Query) -> Result<(Binder<'r>, Bound)> {
    let mut binder = Binder::new(reading, Vec::new()).of_view(PUBLIC);
    let bound = crate::run::query::finished(binder.query(query)?)?;
    Ok((binder, bound))
}

/// The collections that assertions read, each with the name of the assertion; none of those that cannot be bound.
pub(crate) fn read_by_assertions(reading: &Reading<'_, '_>, db: &str) -> Vec<(String, Namespace)> {
    let mut out = Vec::new();
    for (name, _, query) in assertions(reading.view, db) {
        if let Ok((binder, _)) = bound(reading, &query) {
            out.extend(collections(&binder.tables).map(|ns| (name.clone(), ns.clone())));
        }
    }
    out
}

/// Refuses what goes by itself, or cannot be read as it is.
fn check_collection(statement: &Statement<'_>, collection: &Collection, name: &str) -> Result<()> {
    let expires = collection
        .indexes
        .iter()
        .any(|index| index.spec.expire_after_secs.is_some());
    if collection.is_capped() || collection.is_view() || collection.timeseries().is_some() || expires {
        return unsupported(format!(
            "assertion \"{name}\" over \"{}\", whose documents are not all kept in one collection until somebody deletes them,",
            collection.ns.coll
        ));
    }
    statement.check_all_rows(collection)?;
    statement.check_plain(collection, "an assertion would tell of it")
}

/// Knows what databases assert.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checks;

impl Asserted for Checks {
    fn check(&self, statement: &Statement<'_>, ws: &mut WriteSet, db: &str) -> Result<()> {
        check(statement, ws, db)
    }
}

/// Sees that what a database asserts holds in the state of a write set, as far as that has changed it.
///
/// Errors: 23514; 2BP01 for a change after which an assertion means nothing.
pub(crate) fn check(statement: &Statement<'_>, ws: &mut WriteSet, db: &str) -> Result<()> {
    let session = SessionFacts {
        database: db.to_owned(),
        ..SessionFacts::default()
    };
    let (op, _) = statement.operation(None)?;
    let alters = ws.alters_catalog();
    let mut touched: Vec<Namespace> = Vec::new();
    for (name, _, query) in assertions(&*ws, db) {
        let reading = Reading::new(statement, &*ws, &op, &session);
        let (binder, bound) = match bound(&reading, &query) {
            Ok(bound) => bound,
            Err(_) if !alters => continue,
            Err(error) => {
                let told = error::error("2BP01", format!("assertion \"{name}\" depends on what is changed"));
                return Err(error::with(told, &[(Field::Detail, error.message())]));
            }
        };
        let catalog = ws.catalog();
        let read: Vec<Arc<Collection>> = collections(&binder.tables)
            .filter_map(|ns| catalog.get(ns).cloned())
            .collect();
        if !alters && !read.iter().any(|collection| ws.has_written(collection)) {
            continue;
        }
        for collection in &read {
            check_collection(statement, collection, &name)?;
        }
        let (_, rows) = rows_of_bound(binder, &reading, bound, &[])?;
        if rows.iter().flatten().any(|value| matches!(value, Value::Bool(false))) {
            let told = error("23514", format!("assertion \"{name}\" is violated"));
            return Err(error::with(told, &[(Field::Constraint, &name)]));
        }
        touched.extend(read.iter().map(|collection| collection.ns.clone()));
    }
    if alters {
        // Whoever writes to one of them meanwhile without knowing what is asserted conflicts.
        touched.sort();
        touched.dedup();
        for ns in touched {
            if let Some(collection) = ws.catalog().get(&ns).cloned() {
                ws.set_options(collection.id, collection.options.clone())?;
            }
        }
    }
    Ok(())
}
