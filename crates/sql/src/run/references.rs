//! The keys that tables have of each other.

use crate::bind::entry::{self, Object};
use crate::catalog::{Foreign, Kind, Table};
use crate::run::partitions::ancestors;
use nestor_database::write::rows;
use nestor_model::{DocRef, Namespace, Value};
use nestor_storage::{Collection, View, WriteSet};
use std::sync::Arc;

/// A key of another table, whose rows refer to this one.
pub(crate) struct Reference {
    /// The table of the rows.
    pub(crate) ns: Namespace,
    /// What it is.
    pub(crate) table: Arc<Table>,
    /// The key.
    pub(crate) foreign: Foreign,
}

/// The keys that refer to a table, or to one whose partition it is.
pub(crate) fn references(view: &dyn View, ns: &Namespace) -> Vec<Reference> {
    let above = ancestors(view, ns);
    let above: Vec<&Namespace> = above.iter().filter_map(|table| namespace_of(table)).collect();
    let is_meant = |table: &str| *table == *ns.coll || above.iter().any(|own| *own.coll == *table);
    let database = view.catalog().database(&ns.db);
    let mut out = Vec::new();
    for collection in database.into_iter().flat_map(|database| database.collections()) {
        let Some(Object::Table(_, table)) = entry::of(collection) else {
            continue;
        };
        let own = table.foreign.iter().filter(|foreign| is_meant(&foreign.table));
        out.extend(own.map(|foreign| Reference {
            ns: collection.ns.clone(),
            table: table.clone(),
            foreign: foreign.clone(),
        }));
    }
    out
}

fn namespace_of(table: &Table) -> Option<&Namespace> {
    match &table.kind {
        Kind::Collection(ns) => Some(ns),
        _ => None,
    }
}

/// Holds the keys of a row by which others refer to it: nobody is to refer to it any more.
pub(crate) fn hold_keys(
    ws: &mut WriteSet,
    collection: &Collection,
    (table, references): (&Table, &[Reference]),
    doc: DocRef<'_>,
) {
    for reference in references {
        let paths = table.paths(&table.referred(&reference.foreign));
        if let Some(key) = key_of(doc, &paths) {
            rows::hold_reference(ws, collection, (&paths, &key), true);
        }
    }
}

/// The values at paths; `None` where one is null: such a key is none.
pub(crate) fn key_of(doc: DocRef<'_>, paths: &[String]) -> Option<Vec<Value>> {
    let value = |path: &String| {
        doc.get(path)
            .filter(|value| !value.is_nullish())
            .map(|value| value.to_value())
    };
    paths.iter().map(value).collect()
}
