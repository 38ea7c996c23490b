use super::*;
use crate::base::tree::tests::noise;
use crate::{Bytes, Cursor, TreeId, View};
use crate::{Guarantee, OpTime, Positions, Waited};
use nestor_model::{CollectionOptions, Document, ErrorCode, Namespace, RawDocBuf, Timestamp, doc};
use std::time::Duration;

const T: TreeId = TreeId(900);

fn engine() -> Engine {
    Engine::ephemeral(EngineOptions::at_time(100))
}

fn put(engine: &Engine, key: &str, value: &str) -> Commit {
    let mut ws = engine.begin();
    ws.put(T, key.as_bytes(), value.as_bytes());
    engine.commit(ws).unwrap()
}

fn text(view: &dyn View) -> String {
    let mut cursor = view.cursor(T);
    let mut out = Vec::new();
    let mut more = cursor.first().unwrap();
    while more {
        out.push(show(&cursor));
        more = cursor.next().unwrap();
    }
    let mut back = Vec::new();
    let mut more = cursor.last().unwrap();
    while more {
        back.push(show(&cursor));
        more = cursor.prev().unwrap();
    }
    back.reverse();
    assert_eq!(out, back);
    out.join(" ")
}

fn show(cursor: &Cursor) -> String {
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    format!("{}={}", text(cursor.key()), text(cursor.value().unwrap()))
}

fn noop(n: i32) -> RawDocBuf {
    doc! { "ts": Timestamp::default(), "op": "n", "o": doc! { "n": n } }.to_raw()
}

#[test]
fn snapshots_stay_as_they_are() {
    let engine = engine();
    put(&engine, "a", "1");
    let old = engine.snapshot();
    put(&engine, "a", "2");
    put(&engine, "b", "2");
    let mut ws = engine.begin();
    ws.delete(T, b"a");
    ws.put(T, b"c", b"3");
    assert_eq!(text(&ws), "b=2 c=3");
    assert_eq!(text(&engine.snapshot()), "a=2 b=2");
    engine.commit(ws).unwrap();
    assert_eq!(text(&old), "a=1");
    assert_eq!(text(&engine.snapshot()), "b=2 c=3");
    assert_eq!(old.get(T, b"a").unwrap(), Some(Bytes::from(b"1")));
    assert_eq!(engine.snapshot().get(T, b"a").unwrap(), None);
}

#[test]
fn first_writer_wins() {
    let engine = engine();
    let conflict = |result: Result<Commit>| assert!(matches!(result, Err(StorageError::WriteConflict)), "{result:?}");
    let (mut one, mut two) = (engine.begin(), engine.begin());
    one.put(T, b"k", b"1");
    two.put(T, b"k", b"2");
    two.put(T, b"other", b"2");
    engine.commit(one).unwrap();
    conflict(engine.commit(two));
    assert_eq!(text(&engine.snapshot()), "k=1");
    // Keys that were only read do not conflict unless the write set says that it relies on them.
    let (mut reads, mut relies) = (engine.begin(), engine.begin());
    put(&engine, "k", "3");
    reads.put(T, b"x", b"1");
    relies.put(T, b"y", b"1");
    relies.check_unchanged(T, b"k");
    engine.commit(reads).unwrap();
    conflict(engine.commit(relies));
}

#[test]
fn where_it_is_and_how_much_room_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let on_disk = Engine::open(dir.path(), EngineOptions::at_time(100)).unwrap();
    let room = on_disk.room().expect("it is on a file system");
    assert!(0 < room.total && room.used <= room.total, "{room:?}");
    assert_eq!(on_disk.scratch().dir(), dir.path().join("tmp"));
    assert_eq!(engine().room(), None);
    assert_eq!(engine().scratch().dir(), std::env::temp_dir());
}

#[test]
fn positions_and_terms_come_from_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), EngineOptions::at_time(100)).unwrap();
    let mut ws = engine.begin();
    ws.oplog(doc! { "ts": Timestamp::default(), "t": 0i64, "op": "n" }.to_raw())
        .unwrap();
    let commit = engine.commit(ws).unwrap();
    let last = OpTime {
        term: engine.topology().term,
        ts: commit.optime,
    };
    assert_eq!(engine.positions().last, last);
    for guarantee in [Guarantee::Durable, Guarantee::Committed] {
        engine.wait_reached(commit.lsn, guarantee.clone()).unwrap();
        assert!(engine.has_reached(commit.lsn, &guarantee));
    }
    let Positions { durable, committed, .. } = engine.positions();
    assert_eq!((durable, committed), (last, last));
    let entry = engine.oplog_cursor(Timestamp::default()).next().unwrap().unwrap();
    let expected = doc! { "ts": commit.optime, "t": last.term, "op": "n" };
    assert_eq!(
        format!("{:?}", entry.as_raw()),
        format!("{:?}", expected.to_raw().as_raw())
    );
}

/// A snapshot that is held for ever keeps two memtables at most, and of the base what it had itself.
#[test]
fn what_a_snapshot_pins_is_bounded_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), EngineOptions::at_time(100)).unwrap();
    let write = |round: u8| {
        for from in (0..2000u32).step_by(100) {
            let mut ws = engine.begin();
            for key in from..from + 100 {
                ws.put(T, key.to_be_bytes(), noise(u64::from(key) << 8 | u64::from(round), 300));
            }
            engine.commit(ws).unwrap();
        }
    };
    write(0);
    engine.checkpoint().unwrap();
    write(1);
    let one = engine.stats().memtable_bytes;
    let held = engine.snapshot();
    let pins = engine.pins();
    assert_eq!((pins.oldest, pins.states, pins.base_bytes), (held.lsn(), 0, 0));
    let mut base_bytes = Vec::new();
    for round in 2..12 {
        write(round);
        engine.checkpoint().unwrap();
        let pins = engine.pins();
        assert_eq!((pins.oldest, pins.oldest_optime), (held.lsn(), held.optime()));
        assert!(pins.states >= 1);
        base_bytes.push(pins.base_bytes);
        // Those merged just before are swept by and by.
        assert!(pins.memory_bytes >= one);
    }
    assert!(base_bytes[9] > 500_000, "{base_bytes:?}");
    assert_eq!(base_bytes[2], base_bytes[9], "it grows no further: {base_bytes:?}");
    let file = engine.stats().base_bytes;
    assert!(file < 5 * 800_000, "{file} bytes for 600,000 of data");
    assert_eq!(
        held.get(T, &7u32.to_be_bytes()).unwrap().as_deref(),
        Some(&noise(7 << 8 | 1, 300)[..])
    );
    drop(held);
    write(20);
    engine.checkpoint().unwrap();
    assert_eq!(engine.pins().base_bytes, 0);
    let deadline = Instant::now() + Duration::from_secs(60);
    while engine.pins().memory_bytes > 0 {
        assert!(Instant::now() < deadline, "memtables that nobody reads are taken apart");
        std::thread::yield_now();
    }
}

#[test]
fn optimes_ascend_by_one_for_each_oplog_entry() {
    let engine = engine();
    let ts = |inc| Timestamp { secs: 100, inc };
    assert_eq!(put(&engine, "a", "1").optime, ts(1));
    let mut ws = engine.begin();
    ws.oplog(noop(1)).unwrap();
    ws.oplog(noop(2)).unwrap();
    ws.oplog(noop(3)).unwrap();
    let commit = engine.commit(ws).unwrap();
    assert_eq!((commit.optime, commit.lsn), (ts(4), Lsn(2)));
    engine.advance_clock(Timestamp { secs: 500, inc: 9 });
    assert_eq!(put(&engine, "a", "1").optime, Timestamp { secs: 500, inc: 10 });
    assert!(engine.begin().oplog(doc! { "op": "n" }.to_raw()).is_err());
    // A write set without changes commits without a trace.
    assert_eq!(engine.commit(engine.begin()).unwrap().lsn, Lsn(3));
}

#[test]
fn collections_and_indexes_are_packed_as_their_options_say() {
    let engine = |packs: Option<&str>| {
        packs.map(|name| doc! { "wiredTiger": doc! { "configString": format!("block_compressor={name}") } })
    };
    for usual in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let mut options = EngineOptions::at_time(100);
        options.packs = usual;
        let store = Engine::open(dir.path(), options).unwrap();
        let mut ws = store.begin();
        let mut trees = Vec::new();
        for (n, (own, defaults, index)) in [
            (None, None, None),
            (Some("none"), None, None),
            (Some("zstd"), None, Some("none")),
            (Some("none"), Some("snappy"), None),
            (None, Some("none"), Some("zlib")),
        ]
        .into_iter()
        .enumerate()
        {
            let mut options = Document::new();
            if let Some(own) = engine(own) {
                options.push("storageEngine", own);
            }
            if let Some(defaults) = engine(defaults) {
                options.push("indexOptionDefaults", doc! { "storageEngine": defaults });
            }
            let options = CollectionOptions::parse(options).unwrap();
            let ns = Namespace::new("db", format!("c{n}"));
            let made = ws.create_collection(&ns, [n as u8; 16], options).unwrap();
            let mut spec = doc! { "key": doc! { "a": 1 }, "name": "a" };
            if let Some(index) = engine(index) {
                spec.push("storageEngine", index);
            }
            let made_index = ws
                .create_index(made.id, nestor_model::IndexSpec::parse(spec.to_raw()).unwrap())
                .unwrap();
            trees.push((made.records, own.unwrap_or(if usual { "zstd" } else { "none" })));
            let of_index = index
                .or(defaults)
                .or(own)
                .unwrap_or(if usual { "zstd" } else { "none" });
            trees.push((made_index.tree, of_index));
        }
        for (tree, _) in &trees {
            for n in 0..4000u32 {
                ws.put(
                    *tree,
                    n.to_be_bytes(),
                    b"a text that packs well, a text that packs well",
                );
            }
        }
        store.commit(ws).unwrap();
        store.checkpoint().unwrap();
        for (at, (tree, packs)) in trees.iter().enumerate() {
            let stored = store.snapshot().stored_bytes(*tree).unwrap().unwrap();
            assert_eq!(stored > 4000 * 46, *packs == "none", "tree {at} with {usual}: {stored}");
        }
    }
}

#[test]
fn savepoints_take_back_keys_counts_and_catalog() {
    let engine = engine();
    let ns = Namespace::new("db", "c");
    let mut ws = engine.begin();
    let c = ws
        .create_collection(&ns, [1; 16], CollectionOptions::default())
        .unwrap();
    ws.put(T, b"a", b"1");
    let outer = ws.savepoint();
    ws.put(T, b"a", b"2");
    ws.put(T, b"b", b"2");
    ws.add_count(c.id, 2, 20);
    let inner = ws.savepoint();
    ws.delete(T, b"a");
    ws.create_collection(&Namespace::new("db", "d"), [2; 16], CollectionOptions::default())
        .unwrap();
    ws.rollback_to(inner);
    assert_eq!(text(&ws), "a=2 b=2");
    assert_eq!(ws.counts(&c), (2, 20));
    let inner = ws.savepoint();
    ws.put(T, b"c", b"3");
    ws.release(inner);
    assert_eq!(text(&ws), "a=2 b=2 c=3");
    ws.rollback_to(outer);
    assert_eq!(text(&ws), "a=1");
    assert_eq!(ws.counts(&c), (0, 0));
    engine.commit(ws).unwrap();
    let catalog = engine.snapshot().catalog().clone();
    assert!(catalog.get(&ns).is_some() && catalog.collection("db", "d").is_none());
}

#[test]
fn an_open_cursor_does_not_see_later_changes_of_its_write_set() {
    let engine = engine();
    put(&engine, "a", "1");
    let mut ws = engine.begin();
    ws.put(T, b"b", b"1");
    let mut cursor = ws.cursor(T);
    assert!(cursor.first().unwrap());
    ws.put(T, b"b", b"2");
    ws.put(T, b"c", b"2");
    assert!(cursor.next().unwrap());
    assert_eq!(show(&cursor), "b=1");
    assert!(!cursor.next().unwrap());
    assert_eq!(text(&ws), "a=1 b=2 c=2");
}

/// A transaction hears of a change of a collection at its next statement, and of arrays not at all.
#[test]
fn transactions_beside_changes_of_the_catalog() {
    let engine = engine();
    let mut ws = engine.begin();
    let ns = Namespace::new("db", "a");
    let made = ws
        .create_collection(&ns, [1; 16], CollectionOptions::default())
        .unwrap();
    let spec = |name: &str| {
        nestor_model::IndexSpec::parse(doc! { "v": 2, "key": doc! { "x": 1 }, "name": name }.to_raw()).unwrap()
    };
    let x = ws.create_index(made.id, spec("x")).unwrap();
    engine.commit(ws).unwrap();
    let begin = || {
        let mut txn = engine.begin_transaction(engine.snapshot());
        txn.require_collection(made.id);
        txn
    };
    let is_multikey = |view: &dyn View, name: &str| view.catalog().get(&ns).unwrap().index(name).unwrap().is_multikey();
    let (mut one, mut other) = (begin(), begin());
    for (txn, key) in [(&mut one, b"1"), (&mut other, b"2")] {
        txn.put(made.records, key, b"doc");
        txn.set_multikey(made.id, x.id, &[1]).unwrap();
        assert!(is_multikey(txn, "x") && txn.has_found_arrays());
        engine.claim(txn).unwrap();
        engine.publish_multikey(txn).unwrap();
        assert!(!txn.has_found_arrays() && txn.altered_collections().is_empty());
    }
    assert!(
        is_multikey(&engine.snapshot(), "x"),
        "everybody knows before the commit"
    );
    engine.commit(one).unwrap();
    other.put(made.records, b"3", b"doc");
    let mut ddl = engine.begin();
    ddl.start_index(made.id, spec("building")).unwrap();
    assert!(ddl.altered_collections().is_empty());
    engine.commit(ddl).unwrap();
    engine.claim(&mut other).unwrap();
    let mut ddl = engine.begin();
    ddl.create_index(made.id, spec("y")).unwrap();
    assert_eq!(ddl.altered_collections(), [made.id]);
    engine.commit(ddl).unwrap();
    assert!(matches!(engine.claim(&mut other), Err(StorageError::WriteConflict)));
    // A collection that a transaction makes is its own.
    let mut txn = begin();
    let own = txn.create_index(made.id, spec("own")).unwrap();
    txn.set_multikey(made.id, own.id, &[1]).unwrap();
    assert!(!txn.has_found_arrays() && is_multikey(&txn, "own"));
    engine.commit(txn).unwrap();
    assert!(is_multikey(&engine.snapshot(), "own"));
    // An array of a statement that failed is none.
    let mut txn = begin();
    let y = txn.catalog().get(&ns).unwrap().index("y").unwrap().id;
    let before = txn.savepoint();
    txn.set_multikey(made.id, y, &[1]).unwrap();
    txn.rollback_to(before);
    assert!(!txn.has_found_arrays() && !is_multikey(&txn, "y"));
}

#[test]
fn catalog_changes_are_atomic_and_conflict() {
    let engine = engine();
    let code = |e: StorageError| e.code();
    let (a, b) = (Namespace::new("db", "a"), Namespace::new("db", "b"));
    let mut ws = engine.begin();
    let made = ws
        .create_collection(&a, [1; 16], CollectionOptions::parse(doc! { "capped": true }).unwrap())
        .unwrap();
    assert_eq!(ws.catalog().get(&a).unwrap().id, made.id);
    assert!(engine.snapshot().catalog().get(&a).is_none());
    let again = ws.create_collection(&a, [1; 16], CollectionOptions::default());
    assert_eq!(again.map(|_| ()).map_err(code), Err(ErrorCode::NamespaceExists));
    let mut rival = engine.begin();
    rival
        .create_collection(&a, [2; 16], CollectionOptions::default())
        .unwrap();
    engine.commit(ws).unwrap();
    assert!(matches!(engine.commit(rival), Err(StorageError::WriteConflict)));

    // A writer to the collection loses against a change of its entry, and only then.
    let mut writer = engine.begin();
    writer.require_collection(made.id);
    writer.put(made.records, 1u64.to_be_bytes(), b"doc");
    let mut other = engine.begin();
    other
        .create_collection(&b, [3; 16], CollectionOptions::default())
        .unwrap();
    engine.commit(other).unwrap();
    engine.commit(writer).unwrap();
    let mut writer = engine.begin();
    writer.require_collection(made.id);
    writer.put(made.records, 2u64.to_be_bytes(), b"doc");
    let mut ddl = engine.begin();
    let spec = doc! { "v": 2, "key": doc! { "x": 1 }, "name": "x_1" }.to_raw();
    let spec = nestor_model::IndexSpec::parse(spec).unwrap();
    let index = ddl.create_index(made.id, spec.clone()).unwrap();
    ddl.set_multikey(made.id, index.id, &[1]).unwrap();
    assert_eq!(
        ddl.create_index(made.id, spec).map(|_| ()).map_err(code),
        Err(ErrorCode::IndexAlreadyExists)
    );
    engine.commit(ddl).unwrap();
    assert!(matches!(engine.commit(writer), Err(StorageError::WriteConflict)));
    let catalog = engine.snapshot().catalog().clone();
    assert!(catalog.get(&a).unwrap().index("x_1").unwrap().is_multikey());
    assert_eq!(catalog.get(&a).unwrap().id_index().unwrap().key_pattern.len(), 1);

    // An index built in one go loses against any writer.
    let mut build = engine.begin();
    build.require_unwritten(made.id);
    build.drop_index(made.id, index.id).unwrap();
    let mut writer = engine.begin();
    writer.require_collection(made.id);
    writer.put(made.records, 3u64.to_be_bytes(), b"doc");
    engine.commit(writer).unwrap();
    assert!(matches!(engine.commit(build), Err(StorageError::WriteConflict)));

    let mut ws = engine.begin();
    let exists = ws.rename_collection(&a, &b, false).map(|_| ()).map_err(code);
    assert_eq!(exists, Err(ErrorCode::NamespaceExists));
    ws.rename_collection(&a, &b, true).unwrap();
    engine.commit(ws).unwrap();
    let catalog = engine.snapshot().catalog().clone();
    assert_eq!(catalog.get(&b).unwrap().id, made.id);
    assert_eq!(catalog.by_id(made.id).unwrap().ns, b);
    assert!(catalog.get(&a).is_none());
    let mut ws = engine.begin();
    let gone = ws.drop_collection(&a).map(|_| ()).map_err(code);
    assert_eq!(gone, Err(ErrorCode::NamespaceNotFound));
    ws.drop_collection(&b).unwrap();
    let case = Namespace::new("DB", "a");
    ws.create_collection(&case, [4; 16], CollectionOptions::default())
        .unwrap();
    engine.commit(ws).unwrap();
    let mut ws = engine.begin();
    let differs = ws
        .create_collection(&a, [5; 16], CollectionOptions::default())
        .map(|_| ())
        .map_err(code);
    assert_eq!(differs, Err(ErrorCode::DatabaseDifferCase));
}

#[test]
fn counts_are_those_of_commits() {
    let engine = engine();
    let mut ws = engine.begin();
    let c = ws
        .create_collection(&Namespace::new("db", "c"), [1; 16], CollectionOptions::default())
        .unwrap();
    ws.add_count(c.id, 3, 300);
    drop(ws);
    let mut ws = engine.begin();
    let c = ws
        .create_collection(&Namespace::new("db", "c"), [1; 16], CollectionOptions::default())
        .unwrap();
    ws.add_count(c.id, 1, 100);
    engine.commit(ws).unwrap();
    let mut ws = engine.begin();
    ws.add_count(c.id, 1, 50);
    assert_eq!(ws.counts(&c), (2, 150));
    engine.commit(ws).unwrap();
    let now = engine.snapshot().catalog().by_id(c.id).unwrap().clone();
    assert_eq!((now.state.documents(), now.state.bytes()), (2, 150));
    assert_eq!(now.allocate_record_id().0, 1);
    assert_eq!(now.state.allocate_record_ids(5).0, 2);
    assert_eq!(now.allocate_record_id().0, 7);
}

#[test]
fn many_writers_lose_nothing() {
    let engine = engine();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let engine = &engine;
            scope.spawn(move || {
                for i in 0..200u8 {
                    // Everyone increments one counter and writes a key of its own, in one commit.
                    loop {
                        let mut ws = engine.begin();
                        let old = ws
                            .get(T, b"n")
                            .unwrap()
                            .map_or(0, |v| u32::from_be_bytes((*v).try_into().unwrap()));
                        ws.put(T, b"n", (old + 1).to_be_bytes());
                        ws.put(T, [thread, i], b"");
                        match engine.commit(ws) {
                            Ok(_) => break,
                            Err(StorageError::WriteConflict) => {}
                            Err(e) => panic!("{e}"),
                        }
                    }
                }
            });
        }
    });
    let n = engine.snapshot().get(T, b"n").unwrap().unwrap();
    assert_eq!(*n, 800u32.to_be_bytes());
    assert_eq!(engine.last_lsn(), Lsn(800));
    let mut cursor = engine.snapshot().cursor(T);
    let mut count = 0;
    let mut more = cursor.first().unwrap();
    while more {
        count += 1;
        more = cursor.next().unwrap();
    }
    assert_eq!(count, 801);
}

#[test]
fn waiting_for_a_commit() {
    let engine = engine();
    let seen = engine.last_lsn();
    assert!(!engine.wait_for_commit(seen, Instant::now()));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| engine.wait_for_commit(seen, Instant::now() + Duration::from_secs(60)));
        put(&engine, "a", "1");
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_transaction_reserves_what_it_wrote() {
    let engine = engine();
    put(&engine, "a", "0");
    let conflicts = |result: Result<()>| result.is_err_and(|error| error.code() == ErrorCode::WriteConflict);
    let mut one = engine.begin_transaction(engine.snapshot());
    let mut two = engine.begin_transaction(engine.snapshot());
    one.put(T, b"a", b"1");
    engine.claim(&mut one).unwrap();
    // Another transaction and a single statement hear of it at once.
    two.put(T, b"a", b"2");
    assert!(conflicts(engine.claim(&mut two)));
    drop(two);
    let mut single = engine.begin();
    single.put(T, b"a", b"3");
    assert!(conflicts(engine.commit(single).map(|_| ())));
    put(&engine, "b", "0");
    // Keys committed after its snapshot cannot be reserved.
    one.put(T, b"b", b"1");
    assert!(conflicts(engine.claim(&mut one)));
    drop(one);
    // An aborted transaction leaves nothing behind; a committed one neither.
    let mut three = engine.begin_transaction(engine.snapshot());
    three.put(T, b"a", b"4");
    engine.claim(&mut three).unwrap();
    three.put(T, b"c", b"4");
    engine.commit(three).unwrap();
    put(&engine, "a", "5");
    assert_eq!(text(&engine.snapshot()), "a=5 b=0 c=4");
}

#[test]
fn one_that_meets_a_reservation_can_wait_for_its_end() {
    let engine = engine();
    let mut txn = engine.begin_transaction(engine.snapshot());
    txn.put(T, b"a", b"1");
    engine.claim(&mut txn).unwrap();
    let write = || {
        let mut single = engine.begin();
        single.put(T, b"a", b"2");
        engine.commit(single)
    };
    let Err(StorageError::Reserved(reservation)) = write() else {
        panic!("the key is reserved");
    };
    assert!(!reservation.wait(Duration::ZERO));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| reservation.wait(Duration::from_secs(60)));
        drop(txn);
        assert!(waiter.join().unwrap());
    });
    assert!(reservation.wait(Duration::ZERO));
    write().unwrap();
}

#[test]
fn a_key_goes_from_one_that_waits_to_the_next() {
    const THREADS: usize = 8;
    const EACH: usize = 40;
    let engine = engine();
    put(&engine, "n", "0");
    std::thread::scope(|scope| {
        for at in 0..THREADS {
            let engine = engine.clone();
            scope.spawn(move || {
                for _ in 0..EACH {
                    loop {
                        let mut txn = engine.begin_transaction(engine.snapshot());
                        // A key of its own keeps the transaction open while it waits for the other.
                        txn.put(T, format!("own {at}").as_bytes(), b"1");
                        engine.claim(&mut txn).unwrap();
                        let before = txn.get(T, b"n").unwrap().expect("it is there");
                        let before: usize = std::str::from_utf8(&before).unwrap().parse().unwrap();
                        txn.put(T, b"n", (before + 1).to_string().as_bytes());
                        match engine.claim(&mut txn) {
                            Ok(()) => {
                                engine.commit(txn).unwrap();
                                break;
                            }
                            Err(StorageError::Reserved(by)) => {
                                assert_eq!(txn.wait_for(&by, Duration::from_secs(60)), Waited::Released);
                            }
                            // It was committed since the snapshot.
                            Err(StorageError::WriteConflict) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    let sum = engine.snapshot().get(T, b"n").unwrap().expect("it is there");
    assert_eq!(&*sum, (THREADS * EACH).to_string().as_bytes());
}

#[test]
fn a_held_base_stays_as_it_is_until_the_hold_or_the_store_ends() {
    let dir = tempfile::tempdir().unwrap();
    let base = || std::fs::read(dir.path().join("base.nestor")).unwrap();
    let engine = Engine::open(dir.path(), EngineOptions::at_time(100)).unwrap();
    put(&engine, "a", "1");
    engine.checkpoint().unwrap();
    let (one, two) = (engine.hold_base(), engine.hold_base());
    let before = base();
    put(&engine, "a", "2");
    let other = engine.clone();
    let checkpoint = std::thread::spawn(move || other.checkpoint());
    drop(one);
    for _ in 0..100 {
        put(&engine, "b", "1");
        assert!(!checkpoint.is_finished() && base() == before);
    }
    drop(two);
    checkpoint.join().unwrap().unwrap();
    assert!(base() != before);
    // Closing does not wait for a hold, not even for one that comes after the others were ended.
    let hold = engine.hold_base();
    engine.inner.checkpointer.end_holds();
    let _late = engine.hold_base();
    engine.checkpoint().unwrap();
    drop(hold);
    engine.close().unwrap();
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let nested = |levels: usize| (0..levels).fold(Document::new(), |inner, _| doc! { "a": inner });
    let dir = tempfile::tempdir().unwrap();
    let open = || Engine::open(dir.path(), EngineOptions::at_time(100)).unwrap();
    let engine = open();
    let mut made = Vec::new();
    for levels in 195..205 {
        let mut ws = engine.begin();
        let name = format!("of {levels}");
        let options = CollectionOptions::parse(doc! { "validator": nested(levels - 1) }).unwrap();
        match ws.create_collection(&Namespace::new("db", &name), [levels as u8; 16], options) {
            Ok(_) => {
                engine.commit(ws).unwrap();
                made.push(name);
            }
            Err(error) => assert_eq!(error.code(), ErrorCode::Overflow),
        }
        let mut entry = doc! { "ts": Timestamp::default(), "op": "n" };
        entry.push("o", nested(levels));
        let logged = engine.begin().oplog(entry.to_raw());
        assert_eq!(logged.is_ok(), levels < 200, "{levels}");
    }
    assert_eq!(made.len(), 5, "the entry takes a level of its own: {made:?}");
    engine.crash();
    assert_eq!(open().snapshot().catalog().collections().count(), made.len());
}

#[test]
fn memory_of_open_transactions_is_counted_and_bounded() {
    let engine = Engine::ephemeral(EngineOptions::at_time(100));
    engine.set_transaction_bytes_max(10_000);
    let mut one = engine.begin_transaction(engine.snapshot());
    one.put(T, b"key", vec![0; 1000]);
    let bytes = engine.transaction_bytes();
    assert!((1000..1300).contains(&bytes), "{bytes}");
    one.put(T, b"key", vec![1; 1000]);
    assert_eq!(engine.transaction_bytes(), bytes, "the same again takes no more");
    engine.claim(&mut one).unwrap();
    one.expect_oplog(1000).unwrap();
    let mut other = engine.begin_transaction(engine.snapshot());
    let refused = other.expect_oplog(9000).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TransactionTooLargeForCache);
    drop(other);
    one.expect_oplog(1000).unwrap();
    engine.commit(one).unwrap();
    assert_eq!(engine.transaction_bytes(), 0);
    let mut single = engine.begin();
    single.put(T, b"key", vec![0; 20_000]);
    single.expect_oplog(20_000).unwrap();
    assert_eq!(
        engine.transaction_bytes(),
        0,
        "a single statement is bounded by its own limits"
    );
}

#[test]
fn what_is_committed_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let engine = recovery_tests::open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=40 {
                // Between the journal and the moment at which they are shown these take longer than a sync.
                let mut ws = engine.begin();
                for key in 0..3000_u32 {
                    ws.put(T, [n, key as u8, (key >> 8) as u8], b"");
                }
                engine.commit(ws).unwrap();
            }
        });
        loop {
            // Looked at once: behind the last commit there is none to wait for.
            let last = engine.last_lsn();
            if last >= Lsn(40) {
                break;
            }
            engine.wait_durable(Lsn(last.0 + 1)).unwrap();
            let (committed, positions) = (engine.committed_lsn(), engine.positions());
            assert!(committed <= engine.last_lsn());
            assert!(positions.durable <= positions.last && positions.committed <= positions.last);
        }
    });
    engine.close().unwrap();
}
