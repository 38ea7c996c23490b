//! What a commit changed of the catalog, found by comparing the catalogs before and after it: however a collection came to be, by a
//! command of its own, an insert, a pipeline's last stage or a transaction, it is told here.

use nestor_model::{Document, ErrorCode, Namespace, Str, Value};
use nestor_storage::{Catalog, Collection, Database};
use std::sync::Arc;

/// One change of the catalog.
#[derive(Clone, Debug)]
pub enum Change {
    /// A database came with its first collection.
    NewDatabase(Str),
    /// The last collection of a database went.
    NoDatabase(Str),
    /// A collection or view was made.
    NewCollection {
        /// Its name.
        ns: Namespace,
        /// For a view, the namespace that it reads and its pipeline.
        view: Option<(Str, Value)>,
    },
    /// A collection or view went.
    NoCollection(Namespace),
    /// A collection has another name.
    Renamed {
        /// The name that it had.
        old: Namespace,
        /// The name that it has.
        new: Namespace,
    },
    /// An index was made, or its build began.
    NewIndex {
        /// Its collection.
        ns: Namespace,
        /// Its name.
        name: Str,
        /// Its specification.
        spec: Document,
        /// Whether the index is ready; otherwise its build began.
        is_ready: bool,
    },
    /// The build of an index ended.
    BuildEnded {
        /// Its collection.
        ns: Namespace,
        /// Its name.
        name: Str,
        /// Its specification.
        spec: Document,
        /// The error code if it failed.
        error: Option<ErrorCode>,
    },
    /// An index went.
    NoIndex {
        /// Its collection.
        ns: Namespace,
        /// Its name.
        name: Str,
    },
}

/// The differences of `after` from `before`. Databases that did not change cost one comparison each.
pub fn between(before: &Catalog, after: &Catalog) -> Vec<Change> {
    let mut changes = Vec::new();
    let is_changed = |a: &Arc<Database>, other: Option<&Arc<Database>>| other.is_none_or(|b| !Arc::ptr_eq(a, b));
    for database in after.databases() {
        let old = before.database(database.name());
        if !is_changed(database, old) {
            continue;
        }
        if old.is_none() {
            changes.push(Change::NewDatabase(database.name().clone()));
        }
        for collection in database.collections() {
            match before.by_id(collection.id) {
                Some(old) if Arc::ptr_eq(old, collection) => {}
                Some(old) => compare(old, collection, &mut changes),
                None => made(collection, &mut changes),
            }
        }
    }
    for database in before.databases() {
        let now = after.database(database.name());
        if !is_changed(database, now) {
            continue;
        }
        let gone = database.collections().filter(|c| after.by_id(c.id).is_none());
        changes.extend(gone.map(|c| Change::NoCollection(c.ns.clone())));
        if now.is_none() {
            changes.push(Change::NoDatabase(database.name().clone()));
        }
    }
    changes
}

fn made(collection: &Collection, changes: &mut Vec<Change>) {
    let view = collection.options.view.as_ref();
    changes.push(Change::NewCollection {
        ns: collection.ns.clone(),
        view: view.map(|view| (view.on.clone(), Value::from(view.pipeline.clone()))),
    });
    // The index that every collection has is part of making it.
    let own = collection.indexes.iter().filter(|index| index.name != "_id_");
    changes.extend(own.map(|index| new_index(collection, index, true)));
}

fn compare(old: &Collection, new: &Collection, changes: &mut Vec<Change>) {
    if old.ns != new.ns {
        changes.push(Change::Renamed {
            old: old.ns.clone(),
            new: new.ns.clone(),
        });
    }
    for index in &new.indexes {
        if old.index_by_id(index.id).is_none() && index.name != "_id_" {
            changes.push(new_index(new, index, true));
        }
    }
    for index in &new.building {
        if old.building_by_id(index.id).is_none() {
            changes.push(new_index(new, index, false));
        }
    }
    for index in &old.indexes {
        if new.index_by_id(index.id).is_none() {
            changes.push(Change::NoIndex {
                ns: new.ns.clone(),
                name: index.name.clone(),
            });
        }
    }
}

fn new_index(collection: &Collection, index: &nestor_storage::Index, is_ready: bool) -> Change {
    Change::NewIndex {
        ns: collection.ns.clone(),
        name: index.name.clone(),
        spec: index.spec.listed().clone().into(),
        is_ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::CollectionOptions;
    use nestor_storage::{Engine, EngineOptions, View as _};

    #[test]
    fn what_commits_change() {
        let engine = Engine::ephemeral(EngineOptions::at_time(1_700_000_000));
        let ns = |name: &str| Namespace::new("db", name);
        let mut seen = Vec::new();
        let mut step = |work: &dyn Fn(&mut nestor_storage::WriteSet)| {
            let mut ws = engine.begin();
            work(&mut ws);
            seen.extend(between(ws.snapshot().catalog(), ws.catalog()));
            engine.commit(ws).expect("nobody else writes");
        };
        step(&|ws| {
            drop(
                ws.create_collection(&ns("a"), [1; 16], CollectionOptions::default())
                    .expect("new"),
            )
        });
        step(&|_| ());
        step(&|ws| drop(ws.rename_collection(&ns("a"), &ns("b"), false).expect("renamed")));
        step(&|ws| drop(ws.drop_collection(&ns("b")).expect("dropped")));
        let expected = [
            Change::NewDatabase("db".into()),
            Change::NewCollection {
                ns: ns("a"),
                view: None,
            },
            Change::Renamed {
                old: ns("a"),
                new: ns("b"),
            },
            Change::NoCollection(ns("b")),
            Change::NoDatabase("db".into()),
        ];
        assert_eq!(format!("{seen:?}"), format!("{expected:?}"));
    }
}
