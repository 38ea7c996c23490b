//! Collections and views as catalogs show them.

use super::index_facts::facts;
use super::tables::Reading;
use crate::bind::declared::Declared;
use crate::bind::entry;
use crate::catalog::Table;
use crate::catalog::system::{self, Facts, RELATIONS, Relation};
use nestor_database::rights::{Action, Resource};
use nestor_database::write::comments;
use nestor_model::extjson::{self, Form};
use nestor_model::{Document, Result, Value, ValueRef};
use nestor_storage::{Collection, Index};
use std::collections::HashMap;
use std::sync::Arc;

impl Reading<'_, '_> {
    /// What is said in the database, by the UUID of the collection that it is about.
    pub(super) fn comments(&self) -> Result<HashMap<[u8; 16], Document>> {
        let all = comments::all(self.view, &self.session.database)?;
        Ok(all.into_iter().collect())
    }

    /// A collection or view as catalogs show it: without indexes and a view's pipeline to who may not list them.
    pub(super) fn relation(&self, collection: &Collection, table: Arc<Table>, comments: Option<Document>) -> Relation {
        let mut out = relation(collection, table, comments);
        let own = Facts::schemas(self);
        let found = own.iter().find(|(_, name)| *name == out.table.schema);
        out.schema = found.map_or(system::PUBLIC, |(number, _)| *number);
        if let Some(account) = &self.session.account {
            let ns = &collection.ns;
            if !account.grants.on_collection(ns).has(Action::ListIndexes) {
                out.indexes.clear();
            }
            let on = Resource::Database(ns.db.clone());
            if !account.grants.on(&on).has(Action::ListCollections) {
                out.definition = None;
            }
        }
        out
    }
}

fn relation(collection: &Collection, table: Arc<Table>, comments: Option<Document>) -> Relation {
    let of_indexes = match comments.as_ref().and_then(|comments| comments.get("indexes")) {
        Some(ValueRef::Document(of_indexes)) => of_indexes.to_document(),
        _ => Document::new(),
    };
    let declared = Declared::of_collection(collection);
    let index = |index: &Arc<Index>| facts(collection, index, (&table, declared.as_deref()), &of_indexes);
    let view = collection.options.view.as_ref();
    // Where another key was declared, that of `_id` is nobody's.
    let hides_id = table.declared && table.paths(&table.key) != ["_id"];
    let shown = collection.indexes.iter().filter(|index| !(hides_id && index.is_id()));
    Relation {
        schema: system::PUBLIC,
        oid: RELATIONS.saturating_add(collection.id.0),
        indexes: shown.map(index).collect(),
        keys: declared
            .as_ref()
            .map(|declared| {
                let unique = declared.unique.iter().map(|key| key.name.clone());
                unique
                    .chain(declared.exclusions.iter().map(|own| own.name.clone()))
                    .collect()
            })
            .unwrap_or_default(),
        count: collection.state.documents(),
        definition: match &table.materialized {
            Some(own) => Some(own.text.clone()),
            None => view.map(|view| {
                if let Some(text) = entry::query_of(collection) {
                    return text.to_owned();
                }
                let stages = extjson::to_string(&Value::Array(view.pipeline.clone()), Form::Relaxed);
                format!("db.{}.aggregate({stages})", view.on)
            }),
        },
        comments,
        partition: None,
        updatable: None,
        table,
    }
}
