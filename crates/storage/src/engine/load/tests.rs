//! Loading beside commits, checkpoints, drops and crashes.

use super::*;
use crate::EngineOptions;
use crate::base::changes;
use crate::check::check;
use crate::check::tests::fields;
use nestor_model::{CollectionOptions, IndexSpec, Namespace, doc};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn open(dir: &Path) -> Engine {
    Engine::open(dir, EngineOptions::at_time(100)).unwrap()
}

/// A collection with one index that is being built.
fn start(engine: &Engine) -> (CollectionId, TreeId, IndexId) {
    let mut ws = engine.begin();
    let made = ws
        .create_collection(&Namespace::new("db", "c"), [1; 16], CollectionOptions::default())
        .unwrap();
    let spec = doc! { "v": 2, "key": doc! { "a": 1 }, "name": "a" };
    let index = ws
        .start_index(made.id, IndexSpec::parse(spec.to_raw()).unwrap())
        .unwrap();
    engine.commit(ws).unwrap();
    (made.id, index.tree, index.id)
}

fn keys(numbers: std::ops::Range<u32>) -> Vec<[u8; 4]> {
    numbers.map(u32::to_be_bytes).collect()
}

fn load(engine: &Engine, (collection, _, index): (CollectionId, TreeId, IndexId), keys: &[[u8; 4]]) -> Result<bool> {
    let mut source = changes(keys.iter().map(|key| Change { key, value: Some(b"v") }));
    loop {
        match engine.load(collection, index, &mut source) {
            Ok(true) => {}
            other => return other,
        }
    }
}

fn count(view: &dyn View, tree: TreeId) -> usize {
    let mut cursor = view.cursor(tree);
    let mut more = cursor.first().unwrap();
    let mut count = 0;
    while more {
        count += 1;
        more = cursor.next().unwrap();
    }
    count
}

#[test]
fn loaded_entries_lie_below_what_is_committed_later() {
    let dir = tempfile::tempdir().unwrap();
    for engine in [Engine::ephemeral(EngineOptions::at_time(100)), open(dir.path())] {
        let place = start(&engine);
        let before = engine.snapshot();
        load(&engine, place, &keys(0..10_000)).unwrap();
        load(&engine, place, &keys(10_000..10_010)).unwrap();
        let mut ws = engine.begin();
        ws.delete(place.1, keys(3..4)[0]);
        ws.put(place.1, keys(20_000..20_001)[0], &b"w"[..]);
        ws.finish_index(place.0, place.2).unwrap();
        engine.commit(ws).unwrap();
        assert_eq!(count(&before, place.1), 0, "an older snapshot stays as it is");
        assert_eq!(count(&engine.snapshot(), place.1), 10_010);
        engine.checkpoint().unwrap();
        assert_eq!(count(&engine.snapshot(), place.1), 10_010);
    }
    let again = open(dir.path());
    let snapshot = again.snapshot();
    let found = snapshot.catalog().collection("db", "c").unwrap();
    assert_eq!((found.indexes.len(), found.building.len()), (2, 0));
    assert_eq!(count(&snapshot, found.indexes[1].tree), 10_010);
}

#[test]
fn what_a_crash_leaves_of_a_build_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    for checkpoint in [false, true] {
        let engine = open(dir.path());
        let place = match engine.snapshot().catalog().collection("db", "c") {
            None => start(&engine),
            Some(found) => {
                let mut ws = engine.begin();
                let spec = doc! { "v": 2, "key": doc! { "a": 1 }, "name": "a" };
                let index = ws
                    .start_index(found.id, IndexSpec::parse(spec.to_raw()).unwrap())
                    .unwrap();
                engine.commit(ws).unwrap();
                (found.id, index.tree, index.id)
            }
        };
        load(&engine, place, &keys(0..1000)).unwrap();
        if checkpoint {
            engine.checkpoint().unwrap();
        }
        engine.crash();
        assert_eq!(check(dir.path(), None, &fields).unwrap().faults, Vec::<String>::new());
        let engine = open(dir.path());
        let found = engine.snapshot().catalog().collection("db", "c").unwrap().clone();
        assert!(found.building.is_empty() && found.indexes.len() == 1);
        engine.close().unwrap();
        drop(engine);
        let report = check(dir.path(), None, &fields).unwrap();
        assert_eq!(
            (report.faults, report.base.entries),
            (Vec::new(), 2),
            "entry and counts of a collection"
        );
    }
}

#[test]
fn nothing_is_loaded_into_a_dropped_tree() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let place = start(&engine);
    load(&engine, place, &keys(0..1000)).unwrap();
    let mut ws = engine.begin();
    ws.drop_index(place.0, place.2).unwrap();
    engine.commit(ws).unwrap();
    assert!(matches!(
        load(&engine, place, &keys(1000..1001)),
        Err(StorageError::Catalog { .. })
    ));
    engine.close().unwrap();
    drop(engine);
    assert_eq!(check(dir.path(), None, &fields).unwrap().base.entries, 2);
}

#[test]
fn nothing_is_loaded_into_a_closed_store() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let place = start(&engine);
    let pause = engine.inner.checkpointer.pause();
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&engine, place, &keys(0..1000)));
        // It gets as far as to wait for its turn; if not, there is only less to test.
        (0..10_000).for_each(|_| std::thread::yield_now());
        let closing = scope.spawn(|| engine.close());
        while !engine.inner.closed.load(Ordering::Acquire) && !closing.is_finished() {
            std::thread::yield_now();
        }
        drop(pause);
        assert!(matches!(loading.join().unwrap(), Err(StorageError::Closed)));
        closing.join().unwrap().unwrap();
    });
    assert!(matches!(engine.checkpoint(), Err(StorageError::Closed)));
}

#[test]
fn a_watch_tells_what_was_written_between_two_snapshots() {
    let engine = Engine::ephemeral(EngineOptions::at_time(100));
    let (collection, ..) = start(&engine);
    let records = engine.snapshot().catalog().by_id(collection).unwrap().records;
    let put = |key: u64| {
        let mut ws = engine.begin();
        ws.put(records, key.to_be_bytes(), &b"v"[..]);
        engine.commit(ws).unwrap();
    };
    put(1);
    let (watch, first) = engine.watch(records);
    put(2);
    put(300);
    let mut ws = engine.begin();
    ws.delete(records, 1u64.to_be_bytes());
    engine.commit(ws).unwrap();
    let mut touched = Touched::default();
    let second = engine.read_watch(&watch, &mut touched);
    let numbers = |touched: &Touched| -> Vec<u64> {
        touched
            .iter()
            .map(|key| u64::from_be_bytes(key.as_slice().try_into().unwrap()))
            .collect()
    };
    assert_eq!(numbers(&touched), [1, 2, 300]);
    assert_eq!((count(&first, records), count(&second, records)), (1, 2));
    put(2);
    let commit = engine.commit_alone(&watch, |now, touched| -> Result<Option<WriteSet>> {
        assert_eq!((numbers(&touched), now.lsn()), (vec![2], engine.last_lsn()));
        Ok(None)
    });
    assert!(commit.unwrap().is_none());
}

#[test]
fn writers_are_slowed_as_long_as_a_watch_asks() {
    let engine = Engine::ephemeral(EngineOptions::at_time(100));
    let (collection, ..) = start(&engine);
    let records = engine.snapshot().catalog().by_id(collection).unwrap().records;
    let (watch, _) = engine.watch(records);
    // Together almost as long as a commit waits at most: no other commit takes that long again and again.
    let each = Duration::from_millis(16);
    let took = |tree: TreeId| {
        let mut ws = engine.begin();
        keys(0..3).iter().for_each(|key| ws.put(tree, *key, &b"v"[..]));
        let begun = Instant::now();
        engine.commit(ws).unwrap();
        begun.elapsed()
    };
    watch.slow_writers(each);
    assert!(took(records) >= 3 * each);
    let other = (0..20).map(|_| took(TreeId(999))).min();
    assert!(other < Some(3 * each), "other trees go on");
    drop(watch);
    let free = (0..20).map(|_| took(records)).min();
    assert!(free < Some(3 * each));
}
