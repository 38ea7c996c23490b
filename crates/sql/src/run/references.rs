//! The keys that tables have of each other.

use crate::bind::entry::{self, Object};
use crate::catalog::{Foreign, Table};
use nestor_model::{DocRef, Namespace, Value};
use nestor_storage::View;
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

/// The keys that refer to a table.
pub(crate) fn references(view: &dyn View, ns: &Namespace) -> Vec<Reference> {
    let database = view.catalog().database(&ns.db);
    let mut out = Vec::new();
    for collection in database.into_iter().flat_map(|database| database.collections()) {
        let Some(Object::Table(_, table)) = entry::of(collection) else {
            continue;
        };
        let own = table.foreign.iter().filter(|foreign| *foreign.table == *ns.coll);
        out.extend(own.map(|foreign| Reference {
            ns: collection.ns.clone(),
            table: table.clone(),
            foreign: foreign.clone(),
        }));
    }
    out
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
