//! A collection for tests of what is known of one.

use nestor_model::{CollectionOptions, Namespace};
use nestor_storage::{Collection, Engine, EngineOptions};
use std::sync::Arc;

/// A store, and an empty collection of it.
pub fn collection() -> (Engine, Namespace, Arc<Collection>) {
    let engine = Engine::ephemeral(EngineOptions::at_time(1));
    let ns = Namespace::new("d", "c");
    let mut ws = engine.begin();
    let made = ws
        .create_collection(&ns, [1; 16], CollectionOptions::default())
        .unwrap();
    engine.commit(ws).unwrap();
    (engine, ns, made)
}
