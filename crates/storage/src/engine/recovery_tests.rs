//! Bad days: crashes, torn and damaged files.

use super::*;
use crate::base::memory::MemoryBase;
use crate::base::{ApplyStats, Base, BaseError, BaseSnapshot, ChangeSource, CheckReport, KeyRange};
use crate::journal::mark::{Found, Mark, MarkFile};
use crate::journal::segment::HEADER_BYTES;
use crate::{TreeId, View};
use nestor_model::{CollectionOptions, Document, ErrorCode, Namespace, doc};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tempfile::TempDir;

const T: TreeId = TreeId(900);

pub(super) fn options() -> EngineOptions {
    EngineOptions::at_time(100)
}

pub(super) fn open(dir: &Path) -> Result<Engine> {
    Engine::open(dir, options())
}

pub(super) fn put(engine: &Engine, key: &str) -> Result<Commit> {
    let mut ws = engine.begin();
    ws.put(T, key.as_bytes(), b"value");
    ws.oplog(doc! { "ts": Timestamp::default(), "op": "n", "o": doc! { "key": key } }.to_raw())?;
    engine.commit(ws)
}

pub(super) fn keys(engine: &Engine) -> String {
    let mut cursor = engine.snapshot().cursor(T);
    let mut out = String::new();
    let mut more = cursor.first().unwrap();
    while more {
        out.push_str(&String::from_utf8_lossy(cursor.key()));
        more = cursor.next().unwrap();
    }
    out
}

pub(super) fn oplog(engine: &Engine, after: Timestamp) -> String {
    let mut cursor = engine.oplog_cursor(after);
    let mut out = String::new();
    while let Some(entry) = cursor.next().unwrap() {
        let doc = Document::from(entry);
        let o = doc.get("o").and_then(|o| o.as_document()).unwrap();
        out.push_str(o.get("key").and_then(|k| k.as_str()).unwrap());
    }
    out
}

pub(crate) fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir.join("journal"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    found.sort();
    found
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Takes a directory back to where its mark said that no more than `seq` was durable: after a loss of power it may be old.
fn age_mark(dir: &Path, seq: u64) {
    let path = dir.join("nestor.durable");
    let Found::Mark(mark) = Mark::read(&path).unwrap() else {
        panic!("there is a mark");
    };
    assert!(mark.seq >= seq);
    let file = MarkFile::new(path);
    file.note(Mark { seq, ..Mark::default() });
}

/// A directory with commits `a`, `b` and `c` after a crash; with `synced`, each was durable before the next.
pub(super) fn crashed(synced: bool) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    for key in ["a", "b", "c"] {
        let commit = put(&engine, key).unwrap();
        if synced {
            engine.wait_durable(commit.lsn).unwrap();
        }
    }
    engine.crash();
    trim(dir.path());
    dir
}

/// Cuts off the room that a crash left behind the frames.
pub(crate) fn trim(dir: &Path) {
    for path in segments(dir) {
        let whole = fs::read(&path).unwrap();
        fs::write(path, &whole[..written(&whole)]).unwrap();
    }
}

/// Where the frames of a segment end.
fn written(segment: &[u8]) -> usize {
    let mut at = HEADER_BYTES;
    while let Ok(frame) = frame::Frame::read(&segment[at..]) {
        at += frame.len();
    }
    at
}

/// Commits that are waited for go where the journal has zeros already. A crash leaves these, and they are no torn tail.
#[test]
fn room_behind_the_frames_is_no_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    for key in ["a", "b", "c"] {
        engine.wait_durable(put(&engine, key).unwrap().lsn).unwrap();
    }
    let journal = segments(dir.path()).remove(0);
    engine.crash();
    let crashed = fs::read(&journal).unwrap();
    let end = written(&crashed);
    assert!(crashed.len() > end + 100 * 1024, "{} of {end}", crashed.len());
    assert!(crashed[end..].iter().all(|byte| *byte == 0));
    let engine = open(dir.path()).unwrap();
    assert_eq!(
        fs::metadata(&journal).unwrap().len(),
        end as u64,
        "who appends knows where"
    );
    assert_eq!(keys(&engine), "abc");
    engine.wait_durable(put(&engine, "d").unwrap().lsn).unwrap();
    engine.wait_durable(put(&engine, "e").unwrap().lsn).unwrap();
    assert!(fs::metadata(&journal).unwrap().len() > end as u64 + 100 * 1024);
    assert_eq!(oplog(&engine, Timestamp::default()), "abcde");
    engine.close().unwrap();
    let closed = fs::read(&journal).unwrap();
    assert_eq!(closed.len(), written(&closed), "a closed store has none");
    // A durable frame that turns into zeros is missed.
    let dir = self::crashed(true);
    let journal = &segments(dir.path())[0];
    let mut bytes = fs::read(journal).unwrap();
    let last = bytes.len() - (bytes.len() - HEADER_BYTES) / 3;
    bytes[last..].fill(0);
    fs::write(journal, &bytes).unwrap();
    match open(dir.path()).map(|_| ()) {
        Err(StorageError::CommitsLost {
            offset,
            last: 2,
            durable: 3,
            ..
        }) => assert_eq!(offset, last as u64),
        other => panic!("{other:?}"),
    }
}

/// So it is in the middle of a journal, if the shortening of a segment got lost.
#[test]
fn room_behind_the_frames_of_a_segment_hides_no_later_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.journal.segment_bytes = 200;
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    for key in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        engine.wait_durable(put(&engine, key).unwrap().lsn).unwrap();
    }
    engine.crash();
    let all = segments(dir.path());
    assert!(all.len() > 2);
    for path in &all {
        let mut bytes = fs::read(path).unwrap();
        bytes.truncate(written(&bytes));
        bytes.extend([0; 100]);
        fs::write(path, bytes).unwrap();
    }
    let unknown = |_: &Collection| unreachable!("there is no collection");
    let report = crate::check::check(dir.path(), None, &unknown).unwrap();
    assert_eq!(report.notes, Vec::<String>::new());
    assert_eq!(report.faults, ["tree 900 has entries and belongs to nothing"]);
    assert_eq!((report.segments, report.commits), (all.len() as u64, 8));
    let engine = Engine::open(dir.path(), options).unwrap();
    assert_eq!(keys(&engine), "abcdefgh");
    assert_eq!(oplog(&engine, Timestamp::default()), "abcdefgh");
}

#[test]
fn everything_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let ns = Namespace::new("db", "c");
    for clean in [false, true, false] {
        let engine = open(dir.path()).unwrap();
        let before = keys(&engine);
        let next = before.len() as u64;
        let mut ws = engine.begin();
        let c = match ws.catalog().get(&ns).cloned() {
            Some(c) => c,
            None => ws
                .create_collection(&ns, [7; 16], CollectionOptions::parse(doc! { "capped": true }).unwrap())
                .unwrap(),
        };
        assert_eq!(c.state.documents(), next as i64);
        assert_eq!(c.allocate_record_id().0, next + 1);
        ws.put_document(
            c.records,
            crate::record::record_key(nestor_model::RecordId(next + 1)),
            doc! { "x": 1 }.to_raw(),
        );
        ws.add_count(c.id, 1, 10);
        ws.put(T, [b'a' + next as u8], b"v");
        let commit = engine.commit(ws).unwrap();
        assert_eq!(
            commit.optime,
            Timestamp {
                secs: 100,
                inc: next as u32 + 1
            }
        );
        if clean {
            engine.close().unwrap();
            assert!(matches!(put(&engine, "z"), Err(StorageError::Closed)));
        } else {
            engine.crash();
        }
    }
    let engine = open(dir.path()).unwrap();
    assert_eq!(keys(&engine), "abc");
    let c = engine.snapshot().catalog().get(&ns).unwrap().clone();
    assert_eq!((c.state.documents(), c.state.bytes(), c.uuid), (3, 30, [7; 16]));
    let record = engine.snapshot().get(c.records, &3u64.to_be_bytes()).unwrap().unwrap();
    assert_eq!(format!("{:?}", record.document()), r#"{"x": 1}"#);
}

#[test]
fn a_torn_tail_is_cut_off_at_every_byte() {
    let dir = crashed(true);
    let journal = &segments(dir.path())[0];
    let whole = fs::read(journal).unwrap();
    let frame = (whole.len() - HEADER_BYTES) / 3;
    let start = whole.len() - frame;
    for cut in start..whole.len() {
        fs::write(journal, &whole[..cut]).unwrap();
        age_mark(dir.path(), 2);
        let engine = open(dir.path()).unwrap();
        assert_eq!(keys(&engine), "ab", "cut at {cut}");
        assert_eq!(engine.last_optime(), Timestamp { secs: 100, inc: 2 });
        assert_eq!(oplog(&engine, Timestamp::default()), "ab");
        // It goes on where the last whole frame ended.
        assert_eq!(put(&engine, "d").unwrap().lsn, Lsn(3));
        engine.crash();
        let engine = open(dir.path()).unwrap();
        assert_eq!(keys(&engine), "abd");
        engine.crash();
    }
    // The same with the tail's bytes wrong instead of missing.
    for at in start..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        fs::write(journal, &bytes).unwrap();
        age_mark(dir.path(), 2);
        let engine = open(dir.path()).unwrap();
        assert_eq!(keys(&engine), "ab", "flip at {at}");
        engine.crash();
    }
}

#[test]
fn damage_before_durable_frames_is_refused_with_its_place() {
    let dir = crashed(true);
    let journal = &segments(dir.path())[0];
    let whole = fs::read(journal).unwrap();
    let frame = (whole.len() - HEADER_BYTES) / 3;
    age_mark(dir.path(), 0);
    for nth in [0, 1] {
        let start = HEADER_BYTES + nth * frame;
        // The third frame says that the second was durable, the second that the first was.
        for at in start..start + frame {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(journal, &bytes).unwrap();
            match open(dir.path()).map(|_| ()) {
                Err(StorageError::CommitsLost { file, offset, last, .. }) => {
                    let place = (journal, start as u64, nth as u64);
                    assert_eq!((&file, offset, last), place, "flip at {at}");
                }
                other => panic!("flip at {at}: {other:?}"),
            }
            assert_eq!(fs::read(journal).unwrap(), bytes, "nothing is changed");
        }
    }
    let mut bytes = whole.clone();
    bytes[20] ^= 1;
    fs::write(journal, &bytes).unwrap();
    let refused = open(dir.path()).map(|_| ()).map_err(|e| e.code());
    assert_eq!(refused, Err(ErrorCode::DataCorruptionDetected));
}

#[test]
fn an_unsynced_tail_may_have_holes() {
    // A disk may write a later frame and lose an earlier one, when neither was synced.
    let dir = crashed(false);
    let journal = &segments(dir.path())[0];
    let mut bytes = fs::read(journal).unwrap();
    let frame = (bytes.len() - HEADER_BYTES) / 3;
    bytes[HEADER_BYTES + frame + 5] ^= 1;
    fs::write(journal, &bytes).unwrap();
    age_mark(dir.path(), 0);
    assert_eq!(keys(&open(dir.path()).unwrap()), "a");
}

#[test]
fn a_crash_between_the_steps_of_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.journal.segment_bytes = 300;
    options.oplog_bytes_max = 0;
    let open = |dir: &Path| Engine::open(dir, options.clone()).unwrap();
    let engine = open(dir.path());
    let ns = |n: &str| Namespace::new("db", n);
    let mut ws = engine.begin();
    let gone = ws
        .create_collection(&ns("gone"), [1; 16], CollectionOptions::default())
        .unwrap();
    let kept = ws
        .create_collection(&ns("kept"), [2; 16], CollectionOptions::default())
        .unwrap();
    ws.put(gone.records, b"1", b"x");
    ws.put(kept.records, b"1", b"x");
    engine.commit(ws).unwrap();
    engine.checkpoint().unwrap();
    for key in ["a", "b", "c", "d", "e"] {
        put(&engine, key).unwrap();
    }
    let mut ws = engine.begin();
    ws.drop_collection(&ns("gone")).unwrap();
    ws.rename_collection(&ns("kept"), &ns("renamed"), false).unwrap();
    ws.add_count(kept.id, 5, 50);
    ws.delete(T, b"c");
    engine.commit(ws).unwrap();
    let before = tempfile::tempdir().unwrap();
    copy(dir.path(), before.path());
    engine.checkpoint().unwrap();
    let after = tempfile::tempdir().unwrap();
    copy(dir.path(), after.path());
    assert!(segments(after.path()).len() < segments(before.path()).len());
    engine.crash();
    // The base was written, but the segments were not removed yet.
    let between = tempfile::tempdir().unwrap();
    copy(before.path(), between.path());
    fs::copy(after.path().join("base.nestor"), between.path().join("base.nestor")).unwrap();
    for (name, image) in [("before", before), ("between", between), ("after", after)] {
        for again in 0..2 {
            let engine = open(image.path());
            assert_eq!(keys(&engine), "abde", "{name} {again}");
            let snapshot = engine.snapshot();
            assert!(snapshot.catalog().get(&ns("gone")).is_none() && snapshot.catalog().get(&ns("kept")).is_none());
            let c = snapshot.catalog().get(&ns("renamed")).unwrap();
            assert_eq!(
                (c.id, c.state.documents(), c.state.bytes()),
                (kept.id, 5, 50),
                "{name} {again}"
            );
            assert_eq!(snapshot.get(kept.records, b"1").unwrap().as_deref(), Some(&b"x"[..]));
            engine.checkpoint().unwrap();
            // A dropped collection's contents are removed, and its id is not used again.
            assert_eq!(engine.snapshot().get(gone.records, b"1").unwrap(), None);
            let mut ws = engine.begin();
            let new = ws
                .create_collection(&ns("new"), [3; 16], CollectionOptions::default())
                .unwrap();
            assert!(new.id > kept.id && new.indexes[0].tree > kept.indexes[0].tree);
            engine.crash();
        }
    }
}

#[test]
fn a_dropped_view_leaves_nothing_in_the_base() {
    let dir = tempfile::tempdir().unwrap();
    let ns = Namespace::new("db", "v");
    let engine = open(dir.path()).unwrap();
    let mut ws = engine.begin();
    ws.create_collection(
        &ns,
        [1; 16],
        CollectionOptions::parse(doc! { "viewOn": "c", "pipeline": Vec::new() }).unwrap(),
    )
    .unwrap();
    engine.commit(ws).unwrap();
    engine.checkpoint().unwrap();
    let mut ws = engine.begin();
    ws.drop_collection(&ns).unwrap();
    engine.commit(ws).unwrap();
    engine.checkpoint().unwrap();
    let base = &engine.inner.store.as_ref().unwrap().base;
    assert_eq!(base.check().unwrap().entries, 0);
}

#[test]
fn ids_are_not_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let ns = Namespace::new("db", "c");
    let mut last = 0;
    for checkpoint in [false, true, false] {
        let engine = open(dir.path()).unwrap();
        let mut ws = engine.begin();
        let c = ws
            .create_collection(&ns, [1; 16], CollectionOptions::default())
            .unwrap();
        assert!(c.id.0 > last);
        last = c.indexes[0].tree.0;
        engine.commit(ws).unwrap();
        let mut ws = engine.begin();
        ws.drop_collection(&ns).unwrap();
        engine.commit(ws).unwrap();
        if checkpoint {
            engine.checkpoint().unwrap();
        }
        engine.crash();
    }
}

#[test]
fn the_directory_is_locked_and_has_a_version() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    let second = open(dir.path()).map(|_| ()).unwrap_err();
    assert!(matches!(second, StorageError::DirectoryInUse { .. }));
    assert_eq!(second.code(), ErrorCode::DBPathInUse);
    drop(engine);
    drop(open(dir.path()).unwrap());
    let format = dir.path().join("nestor.format");
    fs::write(&format, "nestor 5\n").unwrap();
    let newer = open(dir.path()).map(|_| ());
    assert!(
        matches!(newer, Err(StorageError::NewerFormat { found: 5, .. })),
        "{newer:?}"
    );
    fs::write(&format, "something else").unwrap();
    assert!(matches!(
        open(dir.path()).map(|_| ()),
        Err(StorageError::Corrupt { .. })
    ));
    fs::remove_file(&format).unwrap();
    assert!(matches!(
        open(dir.path()).map(|_| ()),
        Err(StorageError::Corrupt { .. })
    ));
}

#[test]
fn a_missing_journal_is_not_taken_for_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    put(&engine, "a").unwrap();
    engine.close().unwrap();
    drop(engine);
    fs::remove_file(&segments(dir.path())[0]).unwrap();
    assert!(matches!(
        open(dir.path()).map(|_| ()),
        Err(StorageError::Corrupt { .. })
    ));
}

#[test]
fn a_missing_base_is_not_taken_for_a_new_one() {
    let new = tempfile::tempdir().unwrap();
    drop(open(new.path()).unwrap());
    let base = |dir: &Path| dir.join("base.nestor");
    fs::remove_file(base(new.path())).unwrap();
    drop(open(new.path()).expect("nothing was ever committed"));
    for clean in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path()).unwrap();
        put(&engine, "a").unwrap();
        if clean {
            engine.close().unwrap();
        }
        engine.crash();
        let kept = fs::read(base(dir.path())).unwrap();
        fs::remove_file(base(dir.path())).unwrap();
        for _ in 0..2 {
            let refused = open(dir.path()).map(|_| ());
            assert!(
                matches!(&refused, Err(StorageError::Corrupt { file, .. }) if *file == base(dir.path())),
                "{refused:?}"
            );
            let checked = crate::check::check(dir.path(), None, &crate::check::tests::fields).unwrap();
            let missing = |fault: &String| fault.contains("base.nestor is corrupt at byte 0: it is missing");
            assert!(checked.faults.iter().any(missing), "{checked:?}");
        }
        fs::write(base(dir.path()), kept).unwrap();
        assert_eq!(keys(&open(dir.path()).unwrap()), "a");
    }
}

#[test]
fn the_oplog_is_kept_to_its_size_and_reads_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.journal.segment_bytes = 300;
    options.oplog_bytes_max = 1000;
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    let letters: Vec<String> = ('a'..='z').map(String::from).collect();
    for key in &letters {
        put(&engine, key).unwrap();
    }
    assert_eq!(
        oplog(&engine, Timestamp::default()),
        letters.concat(),
        "nothing goes before a checkpoint"
    );
    let mut behind = engine.oplog_cursor(Timestamp::default());
    behind.next().unwrap();
    engine.checkpoint().unwrap();
    // A cursor that is in a segment reads it to its end; then history is missing.
    let bytes = engine.stats().journal_bytes;
    assert!(bytes < 1500, "{bytes} bytes");
    let lost = engine.oplog_cursor(Timestamp::default()).next();
    assert!(matches!(lost, Err(StorageError::OplogHistoryLost)));
    let (first, last) = engine.oplog_range().unwrap().unwrap();
    let mut reads = 1;
    let end = loop {
        match behind.next() {
            Ok(Some(_)) => reads += 1,
            end => break end,
        }
    };
    assert!(matches!(end, Err(StorageError::OplogHistoryLost)), "{end:?}");
    assert!(reads > 1 && behind.position() < first);
    assert_eq!(last, Timestamp { secs: 100, inc: 26 });
    assert!(first > Timestamp { secs: 100, inc: 10 }, "{first:?}");
    let at = |inc| Timestamp { secs: 100, inc };
    assert_eq!(oplog(&engine, at(22)), "wxyz");
    let mut cursor = engine.oplog_cursor(at(u32::MAX));
    let mut back = String::new();
    while let Some(entry) = cursor.prev().unwrap() {
        let doc = Document::from(entry);
        let o = doc.get("o").and_then(|o| o.as_document()).unwrap();
        back.push_str(o.get("key").and_then(|k| k.as_str()).unwrap());
    }
    let kept: String = letters[first.inc as usize - 1..]
        .iter()
        .rev()
        .map(String::as_str)
        .collect();
    assert_eq!(back, kept);
    // A cursor at the end goes on when more comes, over segments and restarts.
    let mut tail = engine.oplog_cursor(last);
    assert!(tail.next().unwrap().is_none());
    for key in ["A", "B", "C", "D"] {
        put(&engine, key).unwrap();
    }
    let count = std::iter::from_fn(|| tail.next().unwrap()).count();
    assert_eq!((count, tail.position()), (4, at(30)));
    // One whose segment alone is gone misses nothing, whatever the commits at its end had for the oplog.
    let (_, last) = engine.oplog_range().unwrap().unwrap();
    let mut behind = engine.oplog_cursor(last);
    assert!(behind.next().unwrap().is_none());
    let in_one = segments(dir.path()).len();
    while segments(dir.path()).len() == in_one {
        let mut ws = engine.begin();
        ws.put(T, b"no entry", vec![0; 100]);
        engine.commit(ws).unwrap();
    }
    engine.checkpoint().unwrap();
    let journal = &engine.inner.store.as_ref().unwrap().journal;
    journal.retain(0, Timestamp::from_u64(u64::MAX), journal.position());
    assert_eq!(segments(dir.path()).len(), 1);
    assert!(behind.next().unwrap().is_none());
    put(&engine, "E").unwrap();
    assert!(behind.next().unwrap().is_some());
    drop((tail, cursor, behind));
    engine.crash();
    let engine = Engine::open(dir.path(), options).unwrap();
    assert_eq!(oplog(&engine, at(30)), "E");
}

#[test]
fn a_segment_missing_in_the_middle_of_the_oplog_is_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.journal.segment_bytes = 300;
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    for key in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
        put(&engine, key).unwrap();
    }
    engine.close().unwrap();
    drop(engine);
    let made = segments(dir.path());
    assert!(made.len() > 3);
    fs::remove_file(&made[1]).unwrap();
    let engine = Engine::open(dir.path(), options).unwrap();
    let mut cursor = engine.oplog_cursor(Timestamp::default());
    let mut reads = 0;
    let end = loop {
        match cursor.next() {
            Ok(Some(_)) => reads += 1,
            end => break end,
        }
    };
    assert!(
        reads > 0 && matches!(end, Err(StorageError::OplogHistoryLost)),
        "{end:?}"
    );
    assert!(matches!(cursor.next(), Err(StorageError::OplogHistoryLost)));
}

#[test]
fn a_damaged_base_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    put(&engine, "a").unwrap();
    engine.close().unwrap();
    drop(engine);
    let path = dir.path().join("base.nestor");
    let mut bytes = fs::read(&path).unwrap();
    // Behind the two meta pages.
    for byte in bytes.iter_mut().skip(2 * 4096).step_by(64) {
        *byte ^= 1;
    }
    fs::write(&path, &bytes).unwrap();
    let refused = open(dir.path()).map(|engine| engine.snapshot().get(T, b"a").map(|_| ()));
    match refused {
        Err(StorageError::Corrupt { file, .. }) | Ok(Err(StorageError::Corrupt { file, .. })) => assert_eq!(file, path),
        other => panic!("{:?}", other.map(|r| r.map(|_| ()))),
    }
}

#[test]
fn writers_that_outrun_the_checkpoint_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.memtable_bytes_max = 50_000;
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3u8 {
            let engine = &engine;
            scope.spawn(move || {
                for i in 0..500u32 {
                    let mut ws = engine.begin();
                    ws.put(T, [&[thread][..], &i.to_be_bytes()].concat(), vec![thread; 300]);
                    engine.commit(ws).unwrap();
                }
            });
        }
    });
    let count = |engine: &Engine| {
        let mut cursor = engine.snapshot().cursor(T);
        let mut count = usize::from(cursor.first().unwrap());
        while cursor.next().unwrap() {
            count += 1;
        }
        count
    };
    assert_eq!(count(&engine), 1500);
    let stats = engine.stats();
    assert!(stats.base_bytes > 100_000, "{stats:?}");
    engine.crash();
    assert_eq!(count(&Engine::open(dir.path(), options).unwrap()), 1500);
}

/// A commit that saw a large memtable may come to ask for a checkpoint when that has just ended, and nothing is there to be merged.
#[test]
fn a_checkpoint_that_was_asked_for_too_late_does_not_keep_the_next_from_being_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.memtable_bytes_max = 20_000;
    let engine = Engine::open(dir.path(), options).unwrap();
    engine.inner.large.store(true, Ordering::SeqCst);
    engine.checkpoint().unwrap();
    assert!(!engine.inner.large.load(Ordering::SeqCst), "nothing is large");
    for i in 0..500u32 {
        let mut ws = engine.begin();
        ws.put(T, i.to_be_bytes(), [7; 200]);
        engine.commit(ws).unwrap();
    }
    assert!(engine.stats().base_bytes > 0, "it went into the base");
}

#[test]
fn a_write_set_older_than_several_checkpoints_is_still_checked() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    put(&engine, "a").unwrap();
    put(&engine, "b").unwrap();
    let old = engine.snapshot();
    for _ in 0..3 {
        put(&engine, "b").unwrap();
        engine.checkpoint().unwrap();
    }
    let write = |key: &[u8]| {
        let mut ws = engine.begin_at(old.clone());
        ws.put(T, key, b"mine");
        engine.commit(ws)
    };
    write(b"a").unwrap();
    assert!(matches!(write(b"b"), Err(StorageError::WriteConflict)));
    // Too many later, it cannot be known any more; a conflict is the safe answer.
    for _ in 0..10 {
        put(&engine, "b").unwrap();
        engine.checkpoint().unwrap();
    }
    assert!(matches!(write(b"c"), Err(StorageError::WriteConflict)));
    assert_eq!(old.get(T, b"b").unwrap().as_deref(), Some(&b"value"[..]));
    drop(old);
    assert_eq!(keys(&engine), "ab");
}

#[test]
fn ranges_are_estimated() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    for key in ["a", "b", "c", "d"] {
        put(&engine, key).unwrap();
    }
    let estimate = |from: &str, to: Option<&str>| {
        let (snapshot, from, to) = (engine.snapshot(), from.as_bytes(), to.map(str::as_bytes));
        let found = snapshot.estimate_entries(T, from, to).unwrap();
        for most in 0..6 {
            assert_eq!(snapshot.has_at_most(T, from, to, most).unwrap(), found <= most);
        }
        found
    };
    for _ in 0..2 {
        assert_eq!(
            (estimate("", None), estimate("b", None), estimate("b", Some("d"))),
            (4, 3, 2)
        );
        assert_eq!((estimate("d", Some("b")), estimate("x", None)), (0, 0));
        engine.checkpoint().unwrap();
    }
    put(&engine, "bb").unwrap();
    assert_eq!((estimate("", None), estimate("b", Some("c"))), (5, 2));
}

/// A base whose disk can be full.
#[derive(Default)]
struct FullBase {
    base: MemoryBase,
    full: AtomicBool,
    tries: AtomicU64,
    /// How many transactions find room before it is full; 0 for any number.
    room: AtomicU64,
}

impl Base for FullBase {
    fn snapshot(&self) -> Arc<dyn BaseSnapshot> {
        self.base.snapshot()
    }
    fn apply(
        &self,
        deletions: &[KeyRange<'_>],
        changes: &mut dyn ChangeSource,
        meta: &[u8],
    ) -> std::result::Result<ApplyStats, BaseError> {
        let tries = self.tries.fetch_add(1, Ordering::SeqCst);
        let room = self.room.load(Ordering::SeqCst);
        if self.full.load(Ordering::SeqCst) || (room > 0 && tries >= room) {
            return Err(BaseError::Io {
                file: Path::new("base").into(),
                operation: "write",
                source: io::ErrorKind::StorageFull.into(),
            });
        }
        self.base.apply(deletions, changes, meta)
    }
    fn file_bytes(&self) -> u64 {
        0
    }
    fn held_bytes(&self) -> u64 {
        0
    }
    fn check(&self) -> std::result::Result<CheckReport, BaseError> {
        self.base.check()
    }
}

#[test]
fn a_base_that_cannot_grow_holds_writers_back_until_it_can() {
    let dir = tempfile::tempdir().unwrap();
    let base = Arc::new(FullBase::default());
    base.full.store(true, Ordering::SeqCst);
    let mut options = options();
    options.memtable_bytes_max = 20_000;
    options.base = Some(base.clone());
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    let mut written = 0u32;
    let mut write = || {
        let mut ws = engine.begin();
        ws.put(T, written.to_be_bytes(), [7; 200]);
        engine.commit(ws).map(|_| written += 1)
    };
    let refused = (0..100_000).find_map(|_| write().err());
    let refused = refused.expect("a base that is full takes no more");
    assert_eq!(refused.code(), ErrorCode::OutOfDiskSpace);
    assert!(base.tries.load(Ordering::SeqCst) > 0);
    base.full.store(false, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(60);
    while let Err(error) = write() {
        assert_eq!(error.code(), ErrorCode::OutOfDiskSpace);
        assert!(Instant::now() < deadline, "the checkpoint is tried again by itself");
    }
    for _ in 0..200 {
        write().unwrap();
    }
    let count = |engine: &Engine| {
        let mut cursor = engine.snapshot().cursor(T);
        let mut count = u32::from(cursor.first().unwrap());
        while cursor.next().unwrap() {
            count += 1;
        }
        count
    };
    assert_eq!(count(&engine), written);
    engine.crash();
    assert_eq!(count(&Engine::open(dir.path(), options).unwrap()), written);
}

/// The hook of a commit that is about to wait.
static BEFORE_WAIT: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

#[test]
fn a_commit_that_waited_while_the_store_was_closed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let base = Arc::new(FullBase::default());
    base.full.store(true, Ordering::SeqCst);
    let mut options = options();
    options.memtable_bytes_max = 20_000;
    options.base = Some(base.clone());
    options.before_wait = Some(|| {
        if let Some(close) = BEFORE_WAIT.lock().unwrap().take() {
            close();
        }
    });
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    let closing = engine.clone();
    *BEFORE_WAIT.lock().unwrap() = Some(Box::new(move || {
        base.full.store(false, Ordering::SeqCst);
        closing.close().unwrap();
    }));
    let refused = (0..100_000u32).find_map(|written| {
        let mut ws = engine.begin();
        ws.put(T, written.to_be_bytes(), [7; 200]);
        engine.commit(ws).err()
    });
    let refused = refused.expect("a closed store takes no more");
    assert!(
        BEFORE_WAIT.lock().unwrap().is_none(),
        "it was closed while a commit waited"
    );
    assert!(matches!(refused, StorageError::Closed), "{refused}");
    let last = engine.last_lsn();
    drop(engine);
    let engine = Engine::open(dir.path(), options).unwrap();
    assert_eq!(
        (engine.last_lsn(), engine.stats().memtable_bytes),
        (last, 0),
        "all is in the base"
    );
}

/// A checkpoint of several transactions that stops between them leaves a state to go on from, with and without a
/// restart: documents, counts, what was dropped.
#[test]
fn a_checkpoint_may_stop_between_its_transactions() {
    let ns = Namespace::new("d", "c");
    for (room, crash) in [(1, false), (1, true), (3, false), (3, true), (5, true)] {
        let dir = tempfile::tempdir().unwrap();
        let base = Arc::new(FullBase::default());
        let mut options = options();
        options.slice_bytes = 3_000;
        options.base = Some(base.clone());
        let mut engine = Engine::open(dir.path(), options.clone()).unwrap();
        let write = |engine: &Engine, keys: std::ops::Range<u32>, value: u8| {
            for key in keys {
                let mut ws = engine.begin();
                let collection = match ws.catalog().get(&ns) {
                    Some(collection) => collection.clone(),
                    None => ws
                        .create_collection(&ns, [7; 16], CollectionOptions::default())
                        .unwrap(),
                };
                ws.add_count(collection.id, 1, 10);
                ws.put(T, key.to_be_bytes(), [value; 200]);
                engine.commit(ws).unwrap();
            }
        };
        let drop_it = |engine: &Engine| {
            let mut ws = engine.begin();
            ws.drop_collection(&ns).unwrap();
            ws.delete(T, 3u32.to_be_bytes());
            engine.commit(ws).unwrap();
        };
        let state = |engine: &Engine| {
            let snapshot = engine.snapshot();
            let collection = snapshot.catalog().get(&ns).unwrap();
            let mut cursor = snapshot.cursor(T);
            let mut found = Vec::new();
            let mut more = cursor.first().unwrap();
            while more {
                found.push((cursor.key().to_vec(), cursor.value().unwrap()[0]));
                more = cursor.next().unwrap();
            }
            (collection.state.documents(), found)
        };
        write(&engine, 0..100, 1);
        engine.checkpoint().unwrap();
        assert!(base.tries.load(Ordering::SeqCst) > 5, "several transactions");
        write(&engine, 50..150, 2);
        drop_it(&engine);
        write(&engine, 20..60, 3);
        let before = state(&engine);
        assert_eq!((before.0, before.1.len()), (40, 149));
        base.room
            .store(base.tries.load(Ordering::SeqCst) + room, Ordering::SeqCst);
        engine.checkpoint().unwrap_err();
        assert_eq!(state(&engine), before, "room {room}");
        if crash {
            engine.crash();
            base.room.store(0, Ordering::SeqCst);
            engine = Engine::open(dir.path(), options.clone()).unwrap();
            assert_eq!(state(&engine), before, "room {room}, after a crash");
        }
        base.room.store(0, Ordering::SeqCst);
        engine.checkpoint().unwrap();
        assert_eq!(state(&engine), before, "room {room}, after the next one");
        engine.close().unwrap();
        drop(engine);
        let engine = Engine::open(dir.path(), options).unwrap();
        assert_eq!(state(&engine), before, "room {room}, opened again");
    }
}
