//! The catalog: databases, collections, views and indexes.
//!
//! Durable form: one entry per collection or view in tree 0, keyed by namespace (see `entry`). In memory: an immutable
//! [`Catalog`] that every snapshot carries and that commits replace. Changes to it are keys of a write set like any
//! other ([`crate::WriteSet::create_collection`] and its neighbours), so they are atomic with data and oplog, and two
//! that touch the same namespace conflict.
//!
//! - [`names`]: which names are allowed.
//! - `entry`: the durable form.
//! - `derived`: what layers above compute from an entry, kept with it.
//! - `state`: what changes without a catalog change: counts and the record id allocator.

mod collection;
pub(crate) mod ddl;
mod derived;
pub(crate) mod entry;
pub mod names;
pub(crate) mod state;

pub use collection::{Collection, Index};
pub use derived::Derive;
pub use state::CollectionState;

use crate::{CollectionId, StorageError};
use nestor_model::{ErrorCode, Namespace, Str};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One database: its collections and views by name.
#[derive(Clone, Debug)]
pub struct Database {
    name: Str,
    collections: BTreeMap<Str, Arc<Collection>>,
}

impl Database {
    /// The name.
    pub fn name(&self) -> &Str {
        &self.name
    }

    /// Collections and views, by ascending name.
    pub fn collections(&self) -> impl ExactSizeIterator<Item = &Arc<Collection>> {
        self.collections.values()
    }

    /// The first collection or view whose name is this one or comes behind it.
    pub fn first_from(&self, name: &str) -> Option<&Arc<Collection>> {
        let behind = (std::ops::Bound::Included(name), std::ops::Bound::Unbounded);
        self.collections.range::<str, _>(behind).next().map(|(_, found)| found)
    }

    /// The collection or view of that name.
    pub fn collection(&self, name: &str) -> Option<&Arc<Collection>> {
        self.collections.get(name)
    }
}

/// What exists, at one moment. A database exists as long as it has a collection or view.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    databases: BTreeMap<Str, Arc<Database>>,
    by_id: HashMap<CollectionId, Arc<Collection>>,
}

impl Catalog {
    /// Databases, by ascending name.
    pub fn databases(&self) -> impl ExactSizeIterator<Item = &Arc<Database>> {
        self.databases.values()
    }

    /// The database of that name.
    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(name)
    }

    /// The collection or view of that name.
    pub fn collection(&self, db: &str, name: &str) -> Option<&Arc<Collection>> {
        self.databases.get(db)?.collections.get(name)
    }

    /// The collection or view of that namespace.
    pub fn get(&self, ns: &Namespace) -> Option<&Arc<Collection>> {
        self.collection(&ns.db, &ns.coll)
    }

    /// The collection or view of that id.
    pub fn by_id(&self, id: CollectionId) -> Option<&Arc<Collection>> {
        self.by_id.get(&id)
    }

    /// All collections and views, in no particular order.
    pub fn collections(&self) -> impl ExactSizeIterator<Item = &Arc<Collection>> {
        self.by_id.values()
    }

    /// The collection or view with that UUID. Looks at all of them.
    pub fn by_uuid(&self, uuid: &[u8; 16]) -> Option<&Arc<Collection>> {
        self.by_id.values().find(|c| c.uuid == *uuid)
    }

    /// Puts `collection` at its namespace, replacing what was there.
    pub(crate) fn put(&mut self, collection: Arc<Collection>) {
        let ns = collection.ns.clone();
        self.remove(&ns);
        self.by_id.insert(collection.id, collection.clone());
        let db = self.databases.entry(ns.db.clone()).or_insert_with(|| {
            Arc::new(Database {
                name: ns.db,
                collections: BTreeMap::new(),
            })
        });
        Arc::make_mut(db).collections.insert(ns.coll, collection);
    }

    /// Removes what is at `ns`, and the database if it was the last of it.
    pub(crate) fn remove(&mut self, ns: &Namespace) {
        let Some(db) = self.databases.get_mut(&ns.db) else {
            return;
        };
        let db = Arc::make_mut(db);
        if let Some(old) = db.collections.remove(&ns.coll) {
            // A rename puts the collection elsewhere before it removes it here.
            if self.by_id.get(&old.id).is_some_and(|now| now.ns == *ns) {
                self.by_id.remove(&old.id);
            }
        }
        if db.collections.is_empty() {
            self.databases.remove(&ns.db);
        }
    }

    /// Refuses a database whose name differs from an existing one only in case.
    pub(crate) fn check_case(&self, db: &str) -> Result<(), StorageError> {
        if self.databases.contains_key(db) {
            return Ok(());
        }
        match self.databases.keys().find(|other| other.eq_ignore_ascii_case(db)) {
            None => Ok(()),
            Some(other) => Err(StorageError::catalog(
                ErrorCode::DatabaseDifferCase,
                format!("db already exists with different case already have: [{other}] trying to create [{db}]"),
            )),
        }
    }
}
