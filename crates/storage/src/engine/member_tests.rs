//! Members of a set: what one commits, the others apply.

use super::recovery_tests::{copy, keys, open, options, put};
use super::*;
use crate::{Guarantee, MemberState, Topology, View};
use nestor_model::{CollectionOptions, Namespace, RecordId, doc};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

fn member_options() -> EngineOptions {
    EngineOptions {
        is_member: true,
        ..options()
    }
}

fn member(dir: &TempDir) -> Engine {
    Engine::open(dir.path(), member_options()).unwrap()
}

fn primary(dir: &TempDir, term: i64) -> Engine {
    let engine = member(dir);
    engine.begin_term(term).unwrap();
    engine
}

/// Gives `to` what `from` has and it does not, a few bytes at a time.
fn ship(from: &Engine, to: &Engine) {
    let mut reader = from.frames(to.last_lsn());
    loop {
        let frames = reader.next(200).unwrap();
        if frames.is_empty() {
            return;
        }
        to.apply(&frames.into_iter().map(|frame| frame.bytes).collect::<Vec<_>>())
            .unwrap();
    }
}

fn collection(engine: &Engine, name: &str) -> Arc<Collection> {
    engine
        .snapshot()
        .catalog()
        .get(&Namespace::new("db", name))
        .unwrap()
        .clone()
}

fn insert(engine: &Engine, name: &str, id: u64, value: i32) -> Commit {
    let ns = Namespace::new("db", name);
    let mut ws = engine.begin();
    let found = match ws.catalog().get(&ns).cloned() {
        Some(found) => found,
        None => ws
            .create_collection(&ns, [9; 16], CollectionOptions::default())
            .unwrap(),
    };
    let key = crate::record::record_key(RecordId(id));
    ws.put_document(found.records, key, doc! { "_id": id as i64, "x": value }.to_raw());
    ws.add_count(found.id, 1, 20);
    engine.commit(ws).unwrap()
}

#[test]
fn a_secondary_shows_what_the_primary_committed() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (primary(&here, 3), member(&there));
    insert(&first, "a", 1, 1);
    insert(&first, "b", 1, 1);
    put(&first, "x").unwrap();
    ship(&first, &second);
    let old = second.snapshot();
    for id in 2..40 {
        insert(&first, "a", id, 5);
        put(&first, &format!("{id:02}")).unwrap();
    }
    let mut ws = first.begin();
    ws.drop_collection(&Namespace::new("db", "b")).unwrap();
    first.commit(ws).unwrap();
    ship(&first, &second);
    assert_eq!(keys(&second), keys(&first));
    assert_eq!(second.last_lsn(), first.last_lsn());
    assert_eq!(second.last_optime(), first.last_optime());
    assert_eq!(collection(&second, "a").state.documents(), 39);
    assert!(second.snapshot().catalog().get(&Namespace::new("db", "b")).is_none());
    assert!(
        old.catalog().get(&Namespace::new("db", "b")).is_some(),
        "a snapshot stays as it is"
    );
    assert_eq!(second.positions().committed.ts, first.last_optime());
    // A checkpoint, and a start that replays the rest.
    second.checkpoint().unwrap();
    assert_eq!(second.base_lsn().unwrap(), second.last_lsn());
    put(&first, "z").unwrap();
    ship(&first, &second);
    second.crash();
    let second = primary(&there, 4);
    assert_eq!(keys(&second), keys(&first));
    // What it gives next was never given.
    assert_eq!(collection(&second, "a").allocate_record_id(), RecordId(40));
    assert_eq!(put(&second, "q").unwrap().lsn.0, first.last_lsn().0 + 1);
}

#[test]
fn only_the_primary_commits_and_only_others_apply() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (primary(&here, 1), member(&there));
    put(&first, "a").unwrap();
    assert!(matches!(put(&second, "b"), Err(StorageError::NotPrimary)));
    let frames: Vec<_> = first.frames(Lsn(0)).next(1 << 20).unwrap();
    let frames: Vec<_> = frames.into_iter().map(|frame| frame.bytes).collect();
    assert!(matches!(first.apply(&frames), Err(StorageError::LogMismatch { .. })));
    let mut broken = frames.clone();
    *broken[0].last_mut().unwrap() ^= 1;
    assert!(matches!(second.apply(&broken), Err(StorageError::LogMismatch { .. })));
    second.apply(&frames).unwrap();
    assert!(
        matches!(second.apply(&frames), Err(StorageError::LogMismatch { .. })),
        "twice"
    );
    let last = first.end_term();
    assert_eq!(last, first.last_lsn());
    assert!(matches!(put(&first, "c"), Err(StorageError::NotPrimary)));
    first.resume_term();
    put(&first, "c").unwrap();
}

#[test]
fn what_the_log_does_not_have_can_be_dropped() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (primary(&here, 1), member(&there));
    insert(&first, "a", 1, 1);
    let shared = put(&first, "a").unwrap();
    ship(&first, &second);
    first.note_committed(shared.lsn, shared.optime);
    insert(&first, "a", 2, 7);
    put(&first, "b").unwrap();
    let lost = insert(&first, "a", 2, 8);
    // A checkpoint takes none of it.
    let (done, is_done) = mpsc::channel();
    let copy_of = first.clone();
    let checkpoint = std::thread::spawn(move || done.send(copy_of.checkpoint()));
    assert!(
        is_done.recv_timeout(Duration::from_millis(50)).is_err(),
        "the log does not have it"
    );
    first.wait_durable(lost.lsn).unwrap();
    assert!(!first.has_reached(lost.lsn, &Guarantee::Committed));
    assert!(first.base_lsn().unwrap() <= shared.lsn);
    let tail = first.tail(shared.lsn).unwrap();
    assert_eq!(tail.len(), 1);
    assert_eq!(tail[0].1, [doc! { "_id": 2i64, "x": 8 }.to_raw()]);
    let waits = first.clone();
    let (told, is_told) = mpsc::channel();
    waits.on_reached(lost.lsn, Guarantee::Committed, move |result| told.send(result).unwrap());
    drop(waits);
    first.abandon();
    assert!(matches!(is_told.recv().unwrap(), Err(StorageError::Closed)));
    checkpoint.join().unwrap().unwrap();
    assert!(matches!(is_done.recv().unwrap(), Err(StorageError::Closed)));
    // The other one goes on without it.
    second.begin_term(2).unwrap();
    put(&second, "c").unwrap();
    let first = Engine::open(
        here.path(),
        EngineOptions {
            last_kept: Some(shared.lsn.0),
            ..member_options()
        },
    )
    .unwrap();
    assert_eq!((keys(&first).as_str(), first.last_lsn()), ("a", shared.lsn));
    ship(&second, &first);
    assert_eq!(keys(&first), "ac");
    first.checkpoint().unwrap();
    first.close().unwrap();
    assert_eq!(keys(&open(here.path()).unwrap()), "ac");
}

#[test]
fn another_past_is_noticed() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = primary(&here, 1);
    put(&first, "a").unwrap();
    first.crash();
    copy(here.path(), there.path());
    let (first, second) = (primary(&here, 1), primary(&there, 2));
    put(&first, "b").unwrap();
    put(&second, "c").unwrap();
    put(&second, "d").unwrap();
    let third = tempfile::tempdir().unwrap();
    let third = member(&third);
    ship(&first, &third);
    let frames = second.frames(Lsn(2)).next(1).unwrap();
    let result = third.apply(&[frames[0].bytes.clone()]);
    assert!(
        matches!(result, Err(StorageError::LogMismatch { seq: 3, .. })),
        "{result:?}"
    );
}

#[test]
fn who_waits_for_others_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let engine = primary(&dir, 1);
    let commit = put(&engine, "a").unwrap();
    let wait = |guarantee| {
        let (done, is_done) = mpsc::channel();
        engine.on_reached(commit.lsn, guarantee, move |result| done.send(result).unwrap());
        is_done
    };
    let (committed, two, three) = (
        wait(Guarantee::Committed),
        wait(Guarantee::Applied(2)),
        wait(Guarantee::Applied(3)),
    );
    assert!(wait(Guarantee::Applied(1)).try_recv().is_ok());
    assert!(committed.try_recv().is_err() && two.try_recv().is_err());
    engine.note_committed(commit.lsn, commit.optime);
    assert!(committed.try_recv().is_ok() && two.try_recv().is_err());
    let other = |name: &str, applied| MemberState {
        name: name.into(),
        applied,
        ..MemberState::default()
    };
    engine.note_members(vec![other("b:1", commit.lsn.0), other("c:1", 0)]);
    assert!(two.try_recv().is_ok() && three.try_recv().is_err());
    engine.note_members(vec![other("b:1", commit.lsn.0), other("c:1", commit.lsn.0)]);
    assert!(three.try_recv().is_ok());
    let (changed, is_changed) = mpsc::channel();
    engine.on_topology(engine.topology().changes, move || changed.send(()).unwrap());
    engine.set_topology((*engine.topology()).clone());
    assert!(is_changed.try_recv().is_err(), "nothing changed");
    engine.set_topology(Topology {
        term: 9,
        ..Topology::alone()
    });
    assert!(is_changed.try_recv().is_ok());
    assert_eq!(engine.topology().changes, 1);
}
