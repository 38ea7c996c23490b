//! Index builds among writers: whatever the interleaving, the entries are those of the documents.

use crate::service::Service;
use crate::tests::Client;
use nestor_database::DatabaseOptions;
use nestor_database::index_builds::Listed;
use nestor_exec::Interrupt;
use nestor_exec::catalog;
use nestor_exec::write::build::{BuildOptions, KeySorter, Phase, build_indexes};
use nestor_model::{CollectionOptions, Document, IndexSpec, Result, Value, ValueRef, doc};
use nestor_query::env::OpContext;
use nestor_query::keys::MultikeyPaths;
use nestor_storage::{Collection, CollectionId, Engine, EngineOptions, IndexId, View};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

/// More than are indexed at once.
const DOCUMENTS: u64 = 1500;

fn service(dir: Option<&Path>) -> Service {
    let mut options = EngineOptions::at_time(1_700_000_000);
    // Small, so that checkpoints run all the time.
    options.memtable_bytes_max = 96 << 10;
    let engine = match dir {
        Some(dir) => Engine::open(dir, options).expect("a new directory"),
        None => Engine::ephemeral(options),
    };
    Service::new(DatabaseOptions::default(), engine)
}

/// xorshift.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn list(items: impl IntoIterator<Item = Document>) -> Vec<Value> {
    items.into_iter().map(Value::from).collect()
}

/// A value for `a`: missing, a number, an array, or an array of documents.
fn value_of_a(dice: &mut Dice) -> Option<Value> {
    let number = |dice: &mut Dice| Value::Int32(dice.roll(50) as i32);
    match dice.roll(8) {
        0 => None,
        1 => Some(vec![number(dice), number(dice)].into()),
        2 => Some(list([doc! { "b": number(dice) }, doc! { "b": number(dice) }]).into()),
        3 => Some(Value::Double(dice.roll(50) as f64)),
        _ => Some(number(dice)),
    }
}

fn document(id: i64, dice: &mut Dice) -> Document {
    let mut doc = doc! { "_id": id, "u": id, "n": dice.roll(1000) as i32 };
    if let Some(a) = value_of_a(dice) {
        doc.push("a", a);
    }
    doc
}

fn fill(client: &mut Client<'_>, coll: &str, count: u64, dice: &mut Dice) {
    for first in (0..count).step_by(500) {
        let documents = list((first..count.min(first + 500)).map(|id| document(id as i64, dice)));
        let reply = client.run(doc! { "insert": coll, "documents": documents });
        assert!(reply.get("writeErrors").is_none(), "{reply:?}");
    }
}

/// Writes until told to stop. `u` stays unique among the documents at every moment, but values of it move from one
/// document to another.
fn write(service: &Service, number: u64, seed: u64, stop: &AtomicBool, written: &AtomicU64) {
    // One that fails ends the others and the test.
    let _stop = Stop(stop);
    let mut client = Client::new(service);
    let mut dice = Dice(seed ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut next = 1_000_000 * (number as i64 + 1);
    while !stop.load(Relaxed) {
        // Each writer has the documents of one remainder to itself, and those it inserts.
        let own = (dice.roll(DOCUMENTS / 4) * 4 + number) as i64;
        let update = |u: Document| list([doc! { "q": doc! { "_id": own }, "u": u }]);
        let command = match dice.roll(6) {
            0 => {
                next += 1;
                doc! { "insert": "c", "documents": list([document(next, &mut dice)]) }
            }
            1 => doc! { "delete": "c", "deletes": list([doc! { "q": doc! { "_id": own }, "limit": 1 }]) },
            2 => match value_of_a(&mut dice) {
                Some(a) => doc! { "update": "c", "updates": update(doc! { "$set": doc! { "a": a } }) },
                None => doc! { "update": "c", "updates": update(doc! { "$unset": doc! { "a": "" } }) },
            },
            3 => {
                // Gives the document up and puts another with its `u` in its place.
                next += 1;
                let _ =
                    client.run(doc! { "delete": "c", "deletes": list([doc! { "q": doc! { "u": own }, "limit": 0 }]) });
                let mut moved = document(next, &mut dice);
                moved.set("u", own);
                doc! { "insert": "c", "documents": list([moved]) }
            }
            _ => {
                let n = dice.roll(1000) as i32;
                doc! { "update": "c", "updates": update(doc! { "$set": doc! { "n": n } }) }
            }
        };
        let reply = client.run(command);
        let errors = reply.get("writeErrors");
        assert!(
            errors.is_none() && reply.get("code").is_none(),
            "seed {seed}: {reply:?}"
        );
        written.fetch_add(1, Relaxed);
    }
}

fn specs() -> Vec<Value> {
    list([
        doc! { "key": doc! { "a": 1, "n": -1 }, "name": "a_n" },
        doc! { "key": doc! { "a.b": 1 }, "name": "ab", "sparse": true },
        doc! { "key": doc! { "u": 1 }, "name": "u", "unique": true },
        doc! { "key": doc! { "n": 1 }, "name": "n", "partialFilterExpression": doc! { "n": doc! { "$gt": 500 } } },
        doc! { "key": doc! { "n": "hashed" }, "name": "h" },
        doc! { "key": doc! { "$**": 1 }, "name": "w" },
    ])
}

fn collection(service: &Service, name: &str) -> Arc<Collection> {
    let snapshot = service.engine.snapshot();
    let found = snapshot.catalog().collection("test", name).cloned();
    found.expect("it exists")
}

/// Indexes and documents agree, and arrays in them are known.
fn check(service: &Service, name: &str, seed: u64) {
    let reply = Client::new(service).run(doc! { "validate": name });
    assert_eq!(
        reply.get("valid").map(ValueRef::truthy),
        Some(true),
        "seed {seed}: {reply:?}"
    );
    let snapshot = service.engine.snapshot();
    let found = collection(service, name);
    let op = OpContext::new(0, Default::default(), 0);
    for writer in catalog::prepared(&found).expect("good indexes").writers.iter() {
        let mut multikey = MultikeyPaths::default();
        let mut cursor = snapshot.cursor(found.records);
        let mut more = cursor.first().expect("readable");
        while more {
            let doc = cursor.value_bytes().expect("readable");
            let (_, paths) = writer.entries(doc.document().as_doc(), &op).expect("keys");
            multikey.merge(&paths);
            more = cursor.next().expect("readable");
        }
        let known = writer.index.multikey.iter().zip(&multikey.components);
        assert!(
            known.clone().all(|(known, found)| known & found == *found),
            "seed {seed}: arrays of index {}",
            writer.index.name
        );
    }
}

/// Ends the writers, also when the test fails.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn among_writers(service: &Service, seed: u64, options: Document) {
    let mut client = Client::new(service);
    let mut create = doc! { "create": "c" };
    for (name, value) in options.iter() {
        create.push(name, value);
    }
    assert_eq!(client.code(create), 0);
    fill(&mut client, "c", DOCUMENTS, &mut Dice(seed));
    let before = collection(service, "c").indexes.len() as i64;
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..3 {
            let (stop, written) = (&stop, &written);
            scope.spawn(move || write(service, number, seed, stop, written));
        }
        let _stop = Stop(&stop);
        for round in 0..2 {
            let begun = written.load(Relaxed);
            let reply = client.run(doc! { "createIndexes": "c", "indexes": specs() });
            let all = specs().len() as i64 + before;
            assert_eq!(number(&reply, "numIndexesAfter"), Some(all), "seed {seed}: {reply:?}");
            assert!(collection(service, "c").building.is_empty());
            while written.load(Relaxed) < begun + 100 && !stop.load(Relaxed) {
                thread::yield_now();
            }
            if round < 1 {
                let dropped = client.run(doc! { "dropIndexes": "c", "index": "*" });
                assert_eq!(number(&dropped, "nIndexesWas"), Some(all), "{dropped:?}");
            }
        }
    });
    check(service, "c", seed);
}

#[test]
fn no_entry_is_missing_or_left_over() {
    let clustered = || doc! { "clusteredIndex": doc! { "key": doc! { "_id": 1 }, "unique": true } };
    among_writers(&service(None), 3, Document::new());
    among_writers(&service(None), 77, clustered());
    for (seed, options) in [(3, clustered()), (77, Document::new())] {
        let dir = tempfile::tempdir().expect("a directory");
        let on_disk = service(Some(dir.path()));
        among_writers(&on_disk, seed, options);
        on_disk.engine.close().expect("closes");
        let again = service(Some(dir.path()));
        check(&again, "c", seed);
    }
}

/// Everything at once: builds of different indexes side by side, each by its own command.
#[test]
fn different_builds_run_side_by_side() {
    let dir = tempfile::tempdir().expect("a directory");
    let service = service(Some(dir.path()));
    fill(&mut Client::new(&service), "c", DOCUMENTS, &mut Dice(9));
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let ended = Stop(&stop);
        let writers: Vec<_> = (0..2)
            .map(|number| {
                let (service, stop, written) = (&service, &stop, &written);
                scope.spawn(move || write(service, number, 9, stop, written))
            })
            .collect();
        let builds: Vec<_> = specs()
            .into_iter()
            .map(|spec| {
                let service = &service;
                scope.spawn(move || Client::new(service).run(doc! { "createIndexes": "c", "indexes": vec![spec] }))
            })
            .collect();
        for build in builds {
            let reply = build.join().expect("no panic");
            assert_eq!(number(&reply, "ok"), Some(1), "{reply:?}");
        }
        drop(ended);
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    });
    assert_eq!(collection(&service, "c").indexes.len(), 7);
    check(&service, "c", 9);
}

#[test]
fn duplicates_and_parallel_arrays_fail_the_build_and_leave_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    for service in [service(None), service(Some(dir.path()))] {
        let mut client = Client::new(&service);
        fill(&mut client, "c", DOCUMENTS, &mut Dice(5));
        let double = doc! { "_id": -1, "u": 7, "p": vec![Value::Int32(1)], "q": vec![Value::Int32(1)] };
        client.run(doc! { "insert": "c", "documents": list([double]) });
        let unique = doc! { "key": doc! { "u": 1 }, "name": "u", "unique": true };
        let other = doc! { "key": doc! { "n": 1 }, "name": "n" };
        let reply = client.run(doc! { "createIndexes": "c", "indexes": list([other.clone(), unique]) });
        assert_eq!(number(&reply, "code"), Some(11000), "{reply:?}");
        let value = reply.get("keyValue").and_then(ValueRef::as_document);
        assert_eq!(
            value.and_then(|v| v.get("u")).and_then(nestor_model::number::safe_i64),
            Some(7),
            "{reply:?}"
        );
        let parallel = doc! { "key": doc! { "p": 1, "q": 1 }, "name": "pq" };
        assert_eq!(
            client.code(doc! { "createIndexes": "c", "indexes": list([other, parallel]) }),
            171
        );
        let left = collection(&service, "c");
        assert_eq!((left.indexes.len(), left.building.len()), (1, 0));
        check(&service, "c", 0);
    }
}

/// The number in a field of a reply.
fn number(reply: &Document, field: &str) -> Option<i64> {
    reply.get(field).and_then(nestor_model::number::safe_i64)
}

/// An index `n` that is being built, and whose build is listed, but nobody builds.
fn started(service: &Service) -> (CollectionId, IndexId, Listed<'_>) {
    let mut client = Client::new(service);
    fill(&mut client, "c", DOCUMENTS, &mut Dice(5));
    let id = collection(service, "c").id;
    let mut ws = service.engine.begin();
    let spec = doc! { "v": 2, "key": doc! { "n": 1 }, "name": "n" };
    let index = ws
        .start_index(id, IndexSpec::parse(spec.to_raw()).expect("a specification"))
        .expect("a new name")
        .id;
    service.engine.commit(ws).expect("nobody else writes");
    (id, index, service.index_builds.list(vec![index], [7; 16]))
}

/// Builds what [`started`] started.
fn finish(service: &Service, (id, index, listed): (CollectionId, IndexId, Listed<'_>)) -> Result<()> {
    let op = OpContext::new(0, Default::default(), 0);
    let interrupt = Interrupt::default();
    let options = BuildOptions {
        admission: &service.node.gates.admission,
        locks: &service.node.gates.collections,
        // So little that it spills.
        memory_bytes_max: 10_000,
        spill_dir: service.spill_dir.clone(),
        lock_timeout: None,
        interrupt: &interrupt,
        op: &op,
        progress: &listed.build.progress,
    };
    let result = build_indexes(&service.engine, id, &[index], &options, |_| Ok(()));
    listed.end(&result);
    result.map(|built| assert!(built.keys == DOCUMENTS && built.spilled.1 > 2, "{built:?}"))
}

fn create_n() -> Document {
    let spec = doc! { "key": doc! { "n": 1 }, "name": "n" };
    doc! { "createIndexes": "c", "indexes": list([spec]) }
}

#[test]
fn a_running_build_is_seen_but_not_used() {
    let service = service(None);
    let build = started(&service);
    let mut client = Client::new(&service);
    let text = |reply: Document| format!("{reply:?}");
    let listed = text(client.run(doc! { "listIndexes": "c", "includeBuildUUIDs": true }));
    assert!(listed.contains("buildUUID"), "{listed}");
    let listed = text(client.run(doc! { "listIndexes": "c", "includeIndexBuildInfo": true }));
    assert!(listed.contains("indexBuildInfo"), "{listed}");
    crate::lock(&client.conn.slot.operation).build = Some(build.2.build.clone());
    let ops = text(client.run(doc! { "currentOp": 1, "$db": "admin" }));
    assert!(
        ops.contains("Index Build: scanning collection: 0/0 0%") && ops.contains("progress"),
        "{ops}"
    );
    assert_eq!(
        client.code(doc! { "find": "c", "filter": doc! { "n": 1 }, "hint": "n" }),
        2
    );
    let stats = client.run(doc! { "collStats": "c" });
    assert_eq!(number(&stats, "nindexes"), Some(1), "{stats:?}");
    let quorum = |name: &str, quorum: Value| {
        doc! { "setIndexCommitQuorum": "c", "indexNames": vec![Value::from(name)], "commitQuorum": quorum }
    };
    assert_eq!(client.code(quorum("n", Value::Int32(1))), 0);
    assert_eq!(client.code(quorum("n", Value::Int32(3))), 278, "there is one member");
    assert_eq!(client.code(quorum("_id_", Value::Int32(1))), 27, "that one is built");
    let mut other = create_n();
    other.set("indexes", list([doc! { "key": doc! { "n": -1 }, "name": "n" }]));
    assert_eq!(client.code(other), 86, "its name is taken");
    let mut late = create_n();
    late.push("maxTimeMS", 30);
    assert_eq!(client.code(late), 50, "who wants the same waits");
    // It is renamed while it is built, and written to.
    let to = doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin" };
    assert_eq!(client.code(to), 0);
    let update = doc! { "q": doc! { "_id": 5 }, "u": doc! { "$set": doc! { "n": -5 } } };
    assert_eq!(client.code(doc! { "update": "d", "updates": list([update]) }), 0);
    assert!(finish(&service, build).is_ok());
    check(&service, "d", 0);
    assert_eq!(
        client.code(doc! { "find": "d", "filter": doc! { "n": 1 }, "hint": "n" }),
        0
    );
}

#[test]
fn the_same_again_joins_the_build() {
    let dir = tempfile::tempdir().expect("a directory");
    let service = service(Some(dir.path()));
    let build = started(&service);
    thread::scope(|scope| {
        let joined = scope.spawn(|| Client::new(&service).run(create_n()));
        assert!(finish(&service, build).is_ok());
        let reply = joined.join().expect("no panic");
        assert_eq!(number(&reply, "numIndexesAfter"), Some(2), "{reply:?}");
        assert!(reply.get("note").is_some(), "{reply:?}");
    });
    check(&service, "c", 0);
}

#[test]
fn dropping_the_index_or_the_collection_ends_the_build() {
    for command in [
        doc! { "dropIndexes": "c", "index": "n" },
        doc! { "dropIndexes": "c", "index": "*" },
        doc! { "dropIndexes": "c", "index": doc! { "n": 1 } },
        doc! { "drop": "c" },
        doc! { "dropDatabase": 1 },
    ] {
        let service = service(None);
        let build = started(&service);
        assert_eq!(Client::new(&service).code(command.clone()), 0);
        let error = finish(&service, build).expect_err("it is gone");
        assert_eq!(error.code().number(), 276, "{command:?}: {error}");
        let left = service.engine.snapshot().catalog().collection("test", "c").cloned();
        assert!(left.is_none_or(|c| c.indexes.len() == 1 && c.building.is_empty()));
    }
}

#[test]
fn an_open_transaction_that_has_the_catalog_entry_is_waited_for() {
    let service = service(None);
    let build = started(&service);
    let progress = build.2.build.clone();
    let engine = &service.engine;
    let mut holder = engine.begin_transaction(engine.snapshot());
    holder
        .set_options(build.0, CollectionOptions::default())
        .expect("it exists");
    engine.claim(&mut holder).expect("nobody else has it");
    thread::scope(|scope| {
        let built = scope.spawn(|| finish(&service, build));
        while progress.progress.phase() != Phase::Commit && !built.is_finished() {
            thread::yield_now();
        }
        assert_eq!(collection(&service, "c").building.len(), 1);
        drop(holder);
        assert!(built.join().expect("no panic").is_ok());
    });
    assert_eq!(collection(&service, "c").indexes.len(), 2);
    check(&service, "c", 0);
}

/// What a full disk or an open transaction leaves: the entry in the catalog stays, and nobody builds.
#[test]
fn an_index_that_could_not_be_dropped_is_later() {
    let engine = Engine::ephemeral(EngineOptions::at_time(1_700_000_000));
    let service = Service::new(DatabaseOptions::default(), engine.clone());
    let (id, index, listed) = started(&service);
    drop(listed);
    let mut waiting = create_n();
    waiting.push("maxTimeMS", 20);
    assert_eq!(
        Client::new(&service).code(waiting),
        50,
        "for all it knows somebody builds it"
    );
    service.index_builds.leave(&engine, id, &[index]);
    // It is the tick that would end an idle transaction: it does not wait for one.
    let mut holder = engine.begin_transaction(engine.snapshot());
    holder.set_options(id, CollectionOptions::default()).expect("it exists");
    engine.claim(&mut holder).expect("nobody else has it");
    service.tick();
    assert_eq!(collection(&service, "c").building.len(), 1);
    drop(holder);
    service.tick();
    assert_eq!(collection(&service, "c").building.len(), 0);
    // One that start-up could not drop, and that somebody wants.
    let mut ws = engine.begin();
    let spec = doc! { "v": 2, "key": doc! { "n": 1 }, "name": "n" };
    ws.start_index(id, IndexSpec::parse(spec.to_raw()).expect("a specification"))
        .expect("a new name");
    engine.commit(ws).expect("nobody else writes");
    let again = Service::new(DatabaseOptions::default(), engine);
    assert_eq!(Client::new(&again).code(create_n()), 0);
    check(&again, "c", 0);
}

#[test]
fn an_interrupted_process_leaves_no_index() {
    let dir = tempfile::tempdir().expect("a directory");
    {
        let service = service(Some(dir.path()));
        let (id, index, _listed) = started(&service);
        let mut entries = KeySorter::new(1 << 20, nestor_storage::Scratch::plain(dir.path()));
        entries.push(b"an entry of nothing", b"").expect("room");
        let mut entries = entries.finish().expect("readable");
        assert_eq!(service.engine.load(id, index, &mut entries).ok(), Some(false));
    }
    let again = service(Some(dir.path()));
    let found = collection(&again, "c");
    assert_eq!((found.indexes.len(), found.building.len()), (1, 0));
    assert_eq!(Client::new(&again).code(create_n()), 0);
    check(&again, "c", 0);
    again.engine.close().expect("closes");
    drop(again);
    let report = nestor_storage::check::check(dir.path(), None, &nestor_exec::write::document_keys).expect("readable");
    assert_eq!(report.faults, Vec::<String>::new());
}
