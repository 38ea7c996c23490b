//! `system.js`: functions and other values that a database stores for scripts.
//!
//! Scripts of `$where` and mapReduce see a document `{_id: "name", value: ...}` as the global variable `name`. Whoever may run such a
//! script sees them, as in MongoDB. They are read when a statement calls the first script, from the newest state.
//! Source: manual, "Store a JavaScript Function on the Server".

use nestor_model::statement::{charge, work};
use nestor_model::{Document, Namespace, Result, ValueRef};
use nestor_query::env::ScriptLibrary;
use nestor_storage::{Engine, View, record};

/// Reads what databases store.
pub struct StoredFunctions {
    engine: Engine,
}

impl StoredFunctions {
    /// The functions that the databases of a store keep.
    pub fn new(engine: &Engine) -> Self {
        Self { engine: engine.clone() }
    }
}

impl std::fmt::Debug for StoredFunctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredFunctions")
    }
}

impl ScriptLibrary for StoredFunctions {
    fn values(&self, db: &str) -> Result<Document> {
        let mut values = Document::new();
        let snapshot = self.engine.snapshot();
        let Some(collection) = snapshot.catalog().get(&Namespace::new(db, "system.js")) else {
            return Ok(values);
        };
        let mut cursor = snapshot.cursor(collection.records);
        let mut more = cursor.first()?;
        while more {
            work(1)?;
            let bytes = cursor.value()?;
            let value_bytes = bytes.len();
            let stored = record::document(bytes).as_doc();
            if let (Some(ValueRef::String(name)), Some(value)) = (stored.get("_id"), stored.get("value")) {
                charge(2 * value_bytes)?;
                values.push(name, value.to_value());
            }
            more = cursor.next()?;
        }
        Ok(values)
    }
}
