//! Readers of the log.

use super::*;
use crate::{CollectionId, Commit, Engine, EngineOptions, MasterKey, StorageError, TreeId};
use nestor_model::{CollectionOptions, Document, RawDocBuf, Timestamp, Value, ValueRef, doc};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const T: TreeId = TreeId(900);

fn options() -> EngineOptions {
    EngineOptions::at_time(100)
}

/// A store with segments of so many bytes.
fn on_disk(dir: &Path, segment_bytes: u64) -> Engine {
    let mut options = options();
    options.journal.segment_bytes = segment_bytes;
    Engine::open(dir, options).unwrap()
}

fn encrypted(dir: &Path, segment_bytes: u64) -> Engine {
    let mut options = options();
    options.journal.segment_bytes = segment_bytes;
    options.master_key = MasterKey::new(&[7; 32]);
    Engine::open(dir, options).unwrap()
}

fn create(engine: &Engine, ns: &str) -> CollectionId {
    let ns = Namespace::parse(ns);
    let mut ws = engine.begin();
    let made = ws
        .create_collection(&ns, [1; 16], CollectionOptions::default())
        .unwrap();
    let o = doc! { "create": ns.coll.as_str() };
    ws.oplog(entry("c", &format!("{}.$cmd", ns.db), o)).unwrap();
    engine.commit(ws).unwrap();
    made.id
}

fn entry(op: &str, ns: &str, o: Document) -> RawDocBuf {
    let (ts, wall) = (Timestamp::default(), Value::DateTime(7));
    doc! { "op": op, "ns": ns, "o": o, "ts": ts, "t": 0i64, "wall": wall }.to_raw()
}

fn insert(engine: &Engine, ns: &str, collection: CollectionId, id: i32) -> Commit {
    let mut ws = engine.begin();
    ws.require_collection(collection);
    ws.put(T, id.to_be_bytes(), b"v");
    ws.oplog(entry("i", ns, doc! { "_id": id })).unwrap();
    engine.commit(ws).unwrap()
}

fn insert_one(engine: &Engine, ns: &str, collection: CollectionId, id: i32) {
    insert(engine, ns, collection, id);
}

fn insert_all(engine: &Engine, collection: CollectionId, ids: std::ops::Range<i32>) {
    ids.for_each(|id| insert_one(engine, "d.c", collection, id));
}

/// A transaction that inserts `ids`, in entries of three operations each, with the documents that were there before.
fn transaction(engine: &Engine, ns: &str, ids: std::ops::Range<i32>) -> Commit {
    let mut ws = engine.begin();
    let ids: Vec<i32> = ids.collect();
    for (at, ids) in ids.chunks(3).enumerate() {
        let operations = ids
            .iter()
            .map(|id| doc! { "op": "i", "ns": ns, "o": doc! { "_id": *id } }.into());
        let mut entry = doc! {
            "lsid": doc! { "id": 1 }, "txnNumber": 5i64, "op": "c", "ns": "admin.$cmd",
            "o": doc! { "applyOps": operations.collect::<Vec<Value>>() },
            "ts": Timestamp::default(), "t": 0i64, "wall": Value::DateTime(9),
        };
        let images = ids.iter().enumerate().filter(|(_, id)| **id % 2 == 0);
        let images = images.map(|(at, id)| (at as u32, doc! { "_id": *id, "old": true }.to_raw()));
        entry.push("prevOpTime", doc! { "ts": Timestamp::default(), "t": -1i64 });
        match at {
            0 => ws.oplog_with(entry.to_raw(), images.collect()).unwrap(),
            _ => ws.oplog_next(entry.to_raw(), images.collect()).unwrap(),
        }
    }
    engine.commit(ws).unwrap()
}

fn all() -> Interest {
    Interest::new(Scope::Everything, Kinds::ALL, Upto::Accepted)
}

fn of(ns: &str) -> Interest {
    Interest::new(Scope::Collection(Namespace::parse(ns)), Kinds::CHANGES, Upto::Accepted)
}

/// The changes that a reader gives up to the end.
fn rest_of(reader: &mut LogReader) -> Result<Vec<Change>, StorageError> {
    let mut found = Vec::new();
    loop {
        let before = reader.position();
        match reader.next()? {
            LogStep::Change(change) => {
                assert!(change.position > before && change.position == reader.position());
                found.push(*change);
            }
            LogStep::Passed => assert!(reader.position() >= before),
            LogStep::End => return Ok(found),
        }
    }
}

fn read(engine: &Engine, after: LogPosition, interest: Interest) -> Vec<Change> {
    rest_of(&mut engine.read_log(after, interest)).unwrap()
}

fn ids(changes: &[Change]) -> Vec<i32> {
    let id = |change: &Change| match change.operation.as_raw().get("o") {
        Some(ValueRef::Document(o)) => match o.get("_id") {
            Some(ValueRef::Int32(id)) => id,
            _ => -1,
        },
        _ => -2,
    };
    changes.iter().map(id).collect()
}

/// In both kinds of store, with segments of a few commits each.
fn in_both(test: impl Fn(Engine)) {
    test(Engine::ephemeral(options()));
    let dir = tempfile::tempdir().unwrap();
    test(on_disk(dir.path(), 700));
    let dir = tempfile::tempdir().unwrap();
    test(encrypted(dir.path(), 700));
}

#[test]
fn changes_come_in_order_and_from_every_position_on() {
    in_both(|engine| {
        let c = create(&engine, "d.c");
        for id in 0..10 {
            insert(&engine, if id % 3 == 0 { "d.other" } else { "d.c" }, c, id);
        }
        let commit = transaction(&engine, "d.c", 10..18);
        insert(&engine, "d.c", c, 18);
        let changes = read(&engine, LogPosition::default(), all());
        assert_eq!(ids(&changes), (-1..19).collect::<Vec<_>>());
        for (at, change) in changes.iter().enumerate() {
            assert_eq!(read(&engine, change.position, all()), changes[at + 1..]);
            let from = read(&engine, change.position.just_before(), all());
            assert_eq!(from, changes[at..], "{:?}", change.position);
        }
        // All of a transaction has the time of its commit, which is that of its last entry.
        for (index, change) in changes[11..19].iter().enumerate() {
            let (optime, index) = (commit.optime, index as u32);
            assert_eq!(change.position, LogPosition { optime, index });
            assert_eq!(change.transaction.as_ref().map(|t| t.number), Some(5));
            assert_eq!((change.wall_ms, &change.before), (9, &None));
        }
        assert_eq!((changes[3].transaction.as_ref(), changes[3].wall_ms), (None, 7));
        let wanted = read(&engine, LogPosition::default(), of("d.c"));
        assert_eq!(
            ids(&wanted[1..]),
            [1, 2, 4, 5, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18]
        );
        let commands = Interest::new(
            Scope::Database("d".into()),
            Kinds::of(&[ChangeKind::Command]),
            Upto::Accepted,
        );
        assert_eq!(ids(&read(&engine, LogPosition::default(), commands)), [-1]);
    });
}

#[test]
fn entries_of_a_chain_name_the_one_before() {
    in_both(|engine| {
        let commit = transaction(&engine, "d.c", 0..8);
        let mut cursor = engine.oplog_cursor(Timestamp::default());
        let mut before = Timestamp::default();
        let mut entries = 0;
        while let Some(entry) = cursor.next().unwrap() {
            let Some(ValueRef::Document(link)) = entry.as_raw().get("prevOpTime") else {
                panic!("{entry:?}")
            };
            let term = if entries == 0 { -1i64 } else { engine.topology().term };
            let expected = doc! { "ts": before, "t": term };
            assert_eq!(format!("{link:?}"), format!("{:?}", expected.as_ref()));
            before = cursor.position();
            entries += 1;
        }
        assert_eq!((entries, before), (3, commit.optime));
        let loose = doc! { "ts": Timestamp::default(), "prevOpTime": 1 };
        assert!(engine.begin().oplog_next(loose.to_raw(), Vec::new()).is_err());
    });
}

#[test]
fn images_come_with_their_changes_and_last() {
    let image = |n: i32| doc! { "_id": n, "text": "before ".repeat(n as usize % 50) }.to_raw();
    let write = |engine: &Engine| {
        for n in 0..200i32 {
            let mut ws = engine.begin();
            ws.put(T, n.to_be_bytes(), b"v");
            ws.oplog(entry("i", "d.c", doc! { "_id": 1000 })).unwrap();
            let with = (n % 3 != 0).then(|| (0, image(n)));
            ws.oplog_with(entry("u", "d.c", doc! { "_id": n }), with.into_iter().collect())
                .unwrap();
            engine.commit(ws).unwrap();
        }
        transaction(engine, "d.c", 200..208);
    };
    let check = |engine: &Engine| {
        let without = read(engine, LogPosition::default(), all());
        assert!(without.iter().all(|change| change.before.is_none()));
        let changes = read(engine, LogPosition::default(), all().with_images());
        assert_eq!(changes.len(), 408);
        for (change, id) in changes.iter().zip(ids(&changes)) {
            let expected = match id {
                0..200 if id % 3 != 0 => Some(image(id)),
                200..208 if id % 2 == 0 => Some(doc! { "_id": id, "old": true }.to_raw()),
                _ => None,
            };
            assert_eq!(change.before, expected, "{id}");
        }
        // A reader that begins in the middle of a transaction too.
        let from = changes[404].position;
        assert_eq!(read(engine, from, all().with_images()), changes[405..]);
    };
    in_both(|engine| {
        write(&engine);
        check(&engine);
    });
    let dir = tempfile::tempdir().unwrap();
    let engine = on_disk(dir.path(), 32 << 20);
    write(&engine);
    engine.wait_durable(engine.last_lsn()).unwrap();
    engine.crash();
    let engine = on_disk(dir.path(), 32 << 20);
    check(&engine);
    assert_eq!(engine.snapshot().lsn().0, 201, "replay passes over them");
    engine.close().unwrap();
    drop(engine);
    let keys = |_: &crate::Collection| Err(StorageError::Closed.into());
    let report = crate::check::check(dir.path(), None, &keys).unwrap();
    assert_eq!(report.faults, ["tree 900 has entries and belongs to nothing"]);
}

#[test]
fn a_long_frame_is_read_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let engine = on_disk(dir.path(), 32 << 20);
    let mut ws = engine.begin();
    let long = "x".repeat(100 << 10);
    for id in 0..60 {
        let o = doc! { "_id": id, "text": long.as_str() };
        ws.oplog_with(
            entry("u", "d.c", o),
            vec![(0, doc! { "was": id, "text": long.as_str() }.to_raw())],
        )
        .unwrap();
    }
    engine.commit(ws).unwrap();
    let mut reader = engine.read_log(LogPosition::default(), of("d.c").with_images());
    let (mut changes, mut passed) = (Vec::new(), 0);
    loop {
        // Between any two of them its memory and files may go.
        reader.rest();
        match reader.next().unwrap() {
            LogStep::Change(change) => changes.push(*change),
            LogStep::Passed => passed += 1,
            LogStep::End => break,
        }
    }
    assert_eq!(ids(&changes), (0..60).collect::<Vec<_>>());
    assert!(changes.iter().all(|change| change.before.is_some()));
    assert!(passed >= 3, "{passed} steps for 12 MiB");
    // Damage in the middle of it is found before anything is given.
    let path = std::fs::read_dir(dir.path().join("journal"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[7 << 20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let mut reader = engine.read_log(LogPosition::default(), all());
    let end = loop {
        match reader.next() {
            Ok(LogStep::Passed) => {}
            end => break end,
        }
    };
    assert!(matches!(end, Err(StorageError::Corrupt { .. })));
}

#[test]
fn only_commits_that_concern_a_reader_wake_it() {
    in_both(|engine| {
        let (c, other) = (create(&engine, "d.c"), create(&engine, "d.other"));
        let elsewhere = create(&engine, "e.c");
        let mut readers = [
            engine.read_log(LogPosition::default(), of("d.c")),
            engine.read_log(
                LogPosition::default(),
                Interest::new(Scope::Database("d".into()), Kinds::CHANGES, Upto::Accepted),
            ),
            engine.read_log(LogPosition::default(), all()),
        ];
        let woken = |readers: &mut [LogReader; 3], commit: &dyn Fn()| -> [usize; 3] {
            let rung: [Arc<AtomicUsize>; 3] = Default::default();
            for (reader, rung) in readers.iter_mut().zip(&rung) {
                rest_of(reader).unwrap();
                let rung = rung.clone();
                let signal = reader.signal();
                assert!(!signal.has_news());
                signal.on_news(move || {
                    rung.fetch_add(1, Ordering::SeqCst);
                });
            }
            commit();
            commit();
            for (reader, rung) in readers.iter_mut().zip(&rung) {
                assert_eq!(reader.signal().has_news(), rung.load(Ordering::SeqCst) > 0);
            }
            [0, 1, 2].map(|at| rung[at].load(Ordering::SeqCst))
        };
        for _ in 0..3 {
            let none = || {
                let mut ws = engine.begin();
                ws.put(T, b"k", b"v");
                engine.commit(ws).unwrap();
            };
            assert_eq!(woken(&mut readers, &none), [0, 0, 0]);
            assert_eq!(woken(&mut readers, &|| insert_one(&engine, "d.c", c, 1)), [1, 1, 1]);
            assert_eq!(
                woken(&mut readers, &|| insert_one(&engine, "d.other", other, 2)),
                [0, 1, 1]
            );
            assert_eq!(
                woken(&mut readers, &|| insert_one(&engine, "e.c", elsewhere, 3)),
                [0, 0, 1]
            );
        }
        // Followers that were not woken have moved on all the same, and miss nothing.
        let last = insert(&engine, "e.c", elsewhere, 4).optime;
        assert_eq!(rest_of(&mut readers[0]).unwrap(), []);
        assert_eq!(readers[0].position(), LogPosition::after(last));
        insert(&engine, "d.c", c, 5);
        assert_eq!(ids(&rest_of(&mut readers[0]).unwrap()), [5]);
        assert_eq!(engine.log_followers(), 3);
        drop(readers);
        assert_eq!(engine.log_followers(), 0);
    });
}

#[test]
fn who_waits_for_what_is_committed_makes_it_so() {
    let dir = tempfile::tempdir().unwrap();
    let engine = on_disk(dir.path(), 32 << 20);
    let c = create(&engine, "d.c");
    engine.wait_durable(engine.last_lsn()).unwrap();
    let interest = Interest::new(Scope::Everything, Kinds::CHANGES, Upto::Committed);
    let mut reader = engine.read_log(LogPosition::default(), interest);
    for id in 0..20 {
        rest_of(&mut reader).unwrap();
        let commit = insert(&engine, "d.c", c, id);
        // Commits that are not on disk yet are not shown.
        let early = rest_of(&mut reader).unwrap();
        let signal = reader.signal();
        if early.is_empty() {
            assert!(signal.wait(Instant::now() + Duration::from_secs(60)));
            assert!(engine.has_reached(commit.lsn, &crate::Guarantee::Committed));
            assert_eq!(ids(&rest_of(&mut reader).unwrap()), [id]);
        }
        assert_eq!(reader.position(), LogPosition::after(commit.optime));
    }
    let signal = reader.signal();
    assert!(!signal.wait(Instant::now() + Duration::from_millis(1)));
}

#[test]
fn many_writers_and_readers_miss_nothing() {
    in_both(|engine| {
        let c = create(&engine, "d.c");
        let (writers, each) = (4, 300);
        thread::scope(|scope| {
            for writer in 0..writers {
                let engine = &engine;
                scope.spawn(move || {
                    for n in 0..each {
                        insert(engine, "d.c", c, writer * each + n);
                    }
                });
            }
            for upto in [Upto::Accepted, Upto::Committed, Upto::Committed] {
                let engine = &engine;
                scope.spawn(move || {
                    let interest = Interest::new(Scope::Collection(Namespace::new("d", "c")), Kinds::CHANGES, upto);
                    let mut reader = engine.read_log(LogPosition::default(), interest);
                    let mut found = Vec::new();
                    let deadline = Instant::now() + Duration::from_secs(120);
                    loop {
                        found.extend(rest_of(&mut reader).unwrap());
                        if found.len() as i32 == 1 + writers * each {
                            break;
                        }
                        assert!(reader.signal().wait(deadline), "{} so far", found.len());
                    }
                    assert!(found.is_sorted_by(|a, b| a.position < b.position));
                    let mut ids = ids(&found);
                    ids.sort();
                    assert!(ids.into_iter().eq(-1..writers * each));
                });
            }
        });
    });
}

fn retention(bytes_max: u64, secs: u64) -> LogRetention {
    LogRetention {
        bytes_max,
        age_min: Duration::from_secs(secs),
    }
}

#[test]
fn history_that_is_gone_is_told_and_its_bound_can_be_changed() {
    in_both(|engine| {
        let c = create(&engine, "d.c");
        for id in 0..50 {
            insert(&engine, "d.c", c, id);
        }
        let mut behind = engine.read_log(LogPosition::default(), all());
        assert!(matches!(behind.next(), Ok(LogStep::Change(_))));
        behind.rest();
        assert_eq!(engine.log_begins(), Timestamp::default());
        engine.checkpoint().unwrap();
        engine.set_log_retention(retention(2000, 0));
        let begins = engine.log_begins();
        assert!(begins > Timestamp::default());
        assert!(engine.log_bytes() < 3000, "{}", engine.log_bytes());
        assert_eq!(engine.log_retention(), retention(2000, 0));
        assert!(matches!(behind.next(), Err(StorageError::OplogHistoryLost)));
        let early = engine.read_log(LogPosition::before(begins), all()).next();
        assert!(matches!(early, Err(StorageError::OplogHistoryLost)), "{early:?}");
        let kept = read(&engine, LogPosition::after(begins), all());
        assert_eq!(ids(&kept).last(), Some(&49));
        assert!(kept.len() > 3);
    });
    // Young entries stay, whatever their size.
    let dir = tempfile::tempdir().unwrap();
    let engine = on_disk(dir.path(), 700);
    let c = create(&engine, "d.c");
    insert_all(&engine, c, 0..50);
    engine.set_log_retention(retention(1, 3600));
    engine.checkpoint().unwrap();
    assert_eq!(engine.log_begins(), Timestamp::default());
    engine.set_log_retention(retention(1, 0));
    assert!(engine.log_begins() > Timestamp::default());
}

/// Who only wants to know that something has changed passes over it, also over what is gone.
#[test]
fn what_is_passed_over_is_not_read() {
    in_both(|engine| {
        engine.set_log_retention(retention(2000, 0));
        let c = create(&engine, "d.c");
        let mut reader = engine.read_log(LogPosition::default(), of("d.c"));
        let signal = reader.signal();
        for round in 0..3 {
            insert_all(&engine, c, round * 100..round * 100 + 50);
            engine.checkpoint().unwrap();
            assert!(signal.has_news());
            reader.skip_to_end();
            assert!(!signal.has_news());
            assert!(rest_of(&mut reader).unwrap().is_empty());
        }
        insert_all(&engine, c, 900..902);
        assert!(signal.has_news());
        assert_eq!(ids(&rest_of(&mut reader).unwrap()), [900, 901]);
        insert_all(&engine, c, 902..903);
        reader.skip_to_end();
        insert_all(&engine, c, 903..904);
        assert_eq!(ids(&rest_of(&mut reader).unwrap()), [903]);
    });
}

/// A stream that nobody reads keeps no file alive that was removed.
#[test]
fn a_reader_at_rest_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = on_disk(dir.path(), 700);
    let c = create(&engine, "d.c");
    insert_all(&engine, c, 0..10);
    let mut readers: Vec<LogReader> = (0..3).map(|_| engine.read_log(LogPosition::default(), all())).collect();
    assert!(matches!(readers[0].next(), Ok(LogStep::Change(_))));
    readers[0].rest();
    rest_of(&mut readers[1]).unwrap();
    let Log::Journal(journal) = &engine.inner.log else {
        panic!("it is on disk")
    };
    let first = Arc::downgrade(&journal.segments()[0]);
    let last = Arc::downgrade(journal.segments().last().unwrap());
    insert_all(&engine, c, 10..50);
    engine.checkpoint().unwrap();
    engine.set_log_retention(LogRetention {
        bytes_max: 1,
        age_min: Duration::ZERO,
    });
    // The thread that syncs may still have hold of the one that it synced last.
    let deadline = Instant::now() + Duration::from_secs(60);
    while (first.strong_count(), last.strong_count()) != (0, 0) {
        assert!(Instant::now() < deadline, "the files that were removed are still open");
        thread::yield_now();
    }
}

/// The same in memory: what a reader has half read is given back, too, and goes on as long as it is kept.
#[test]
fn a_reader_at_rest_holds_no_memory() {
    let engine = Engine::ephemeral(options());
    transaction(&engine, "d.c", 0..6);
    let Log::Memory(memory) = &engine.inner.log else {
        panic!("it is in memory")
    };
    let next = memory.next(Timestamp::default(), true);
    let frame = Arc::downgrade(&next.unwrap_or_else(|_| panic!("it is kept")).unwrap());
    let mut reader = engine.read_log(LogPosition::default(), all());
    let mut step = || {
        reader
            .next()
            .map(|step| (matches!(step, LogStep::Change(_)), reader.rest()).0)
    };
    assert!(matches!(step(), Ok(true)));
    assert!(matches!(step(), Ok(true)), "the frame is still kept");
    transaction(&engine, "d.c", 6..12);
    memory.set_bytes_max(1);
    assert_eq!(frame.strong_count(), 0);
    assert!(matches!(step(), Err(StorageError::OplogHistoryLost)));
}
