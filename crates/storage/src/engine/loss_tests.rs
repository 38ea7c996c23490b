//! Durable data that are missing, and files that do not belong together.

use super::recovery_tests::{copy, crashed, keys, open, options, put, segments, trim};
use super::*;
use crate::journal::mark::{Found, Mark};
use crate::journal::segment::HEADER_BYTES;
use std::fs;
use tempfile::TempDir;

/// The number that a refusal says the journal ends with, and the last one known to have been durable.
fn lost(opened: Result<Engine>) -> (u64, u64) {
    match opened.map(|_| ()) {
        Err(StorageError::CommitsLost { last, durable, .. }) => (last, durable),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tail_that_was_durable_is_not_cut_off() {
    for closed in [false, true] {
        let dir = crashed(true);
        if closed {
            // Nothing is left to replay. Later commits are in the journal only.
            let engine = open(dir.path()).unwrap();
            engine.close().unwrap();
            let engine = open(dir.path()).unwrap();
            for key in ["d", "e", "f"] {
                engine.wait_durable(put(&engine, key).unwrap().lsn).unwrap();
            }
            engine.crash();
            trim(dir.path());
        }
        let journal = segments(dir.path()).remove(0);
        let whole = fs::read(&journal).unwrap();
        let frame = (whole.len() - HEADER_BYTES) / if closed { 6 } else { 3 };
        let all = if closed { 6 } else { 3 };
        for missing in 1..frame * 2 {
            let kept = all - missing.div_ceil(frame) as u64;
            fs::write(&journal, &whole[..whole.len() - missing]).unwrap();
            assert_eq!(lost(open(dir.path())), (kept, all), "{missing} bytes are missing");
            let len = fs::metadata(&journal).unwrap().len() as usize;
            assert_eq!(len, whole.len() - missing, "nothing is changed");
        }
        // Zeros in their place.
        let mut bytes = whole.clone();
        bytes[whole.len() - frame..].fill(0);
        fs::write(&journal, &bytes).unwrap();
        assert_eq!(lost(open(dir.path())), (all - 1, all));
    }
}

#[test]
fn what_is_lost_can_be_given_up_by_its_number() {
    let dir = crashed(true);
    let journal = segments(dir.path()).remove(0);
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, &whole[..whole.len() - 1]).unwrap();
    let giving_up = |after| EngineOptions {
        give_up_after: Some(after),
        ..options()
    };
    for other in [0, 1, 3] {
        assert_eq!(lost(Engine::open(dir.path(), giving_up(other))), (2, 3));
    }
    let engine = Engine::open(dir.path(), giving_up(2)).unwrap();
    assert_eq!(keys(&engine), "ab");
    // Beyond the number that the old mark had.
    for key in ["x", "y"] {
        engine.wait_durable(put(&engine, key).unwrap().lsn).unwrap();
    }
    engine.crash();
    assert_eq!(keys(&open(dir.path()).unwrap()), "abxy");
}

/// Two copies of a directory that went different ways after the checkpoint.
fn diverged() -> [TempDir; 2] {
    let copies = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let engine = open(copies[0].path()).unwrap();
    put(&engine, "a").unwrap();
    engine.close().unwrap();
    copy(copies[0].path(), copies[1].path());
    for (dir, keys) in copies.iter().zip([["b", "c"], ["x", "y"]]) {
        let engine = open(dir.path()).unwrap();
        put(&engine, keys[0]).unwrap();
        engine.checkpoint().unwrap();
        put(&engine, keys[1]).unwrap();
        engine.crash();
    }
    copies
}

#[test]
fn base_and_journal_of_two_copies_are_refused() {
    let parts = ["base.nestor", "journal/0000000000000001.journal", "nestor.durable"];
    for mixed in [vec![0], vec![1], vec![0, 2], vec![1, 2], vec![2], vec![0, 1]] {
        let [dir, other] = diverged();
        for part in &mixed {
            fs::copy(other.path().join(parts[*part]), dir.path().join(parts[*part])).unwrap();
        }
        let before = fs::read(dir.path().join(parts[1])).unwrap();
        let report = crate::check::check(dir.path(), None, &crate::check::tests::fields).unwrap();
        assert!(report.fault_count > 0, "{mixed:?}");
        let refused = open(dir.path()).map(|engine| keys(&engine)).unwrap_err();
        assert!(
            matches!(&refused, StorageError::Corrupt { reason, .. } if reason.contains("two copies")),
            "{mixed:?}: {refused}"
        );
        assert_eq!(
            fs::read(dir.path().join(parts[1])).unwrap(),
            before,
            "nothing is changed"
        );
    }
    let [dir, other] = diverged();
    for part in parts {
        fs::copy(other.path().join(part), dir.path().join(part)).unwrap();
    }
    assert_eq!(keys(&open(dir.path()).unwrap()), "axy");
}

/// A base from before the two went different ways belongs to both, but not segments of both.
#[test]
fn segments_of_two_copies_are_refused() {
    let copies = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut options = options();
    options.journal.segment_bytes = 200;
    let engine = Engine::open(copies[0].path(), options.clone()).unwrap();
    put(&engine, "a").unwrap();
    engine.close().unwrap();
    copy(copies[0].path(), copies[1].path());
    for (dir, keys) in copies.iter().zip(["bcdefg", "uvwxyz"]) {
        let engine = Engine::open(dir.path(), options.clone()).unwrap();
        for key in keys.chars() {
            put(&engine, &key.to_string()).unwrap();
        }
        engine.crash();
    }
    let [dir, other] = [&copies[0], &copies[1]].map(|dir| segments(dir.path()));
    assert!(dir.len() > 2);
    fs::copy(&other[dir.len() - 1], &dir[dir.len() - 1]).unwrap();
    let refused = Engine::open(copies[0].path(), options)
        .map(|engine| keys(&engine))
        .unwrap_err();
    assert!(
        matches!(&refused, StorageError::Corrupt { reason, .. } if reason.contains("two copies")),
        "{refused}"
    );
}

#[test]
fn a_mark_that_is_lost_keeps_nothing_from_starting() {
    for bytes in [None, Some(&b""[..]), Some(&[0; 32])] {
        let dir = crashed(true);
        let mark = dir.path().join("nestor.durable");
        match bytes {
            Some(bytes) => fs::write(&mark, bytes).unwrap(),
            None => fs::remove_file(&mark).unwrap(),
        }
        let engine = open(dir.path()).unwrap();
        assert_eq!(keys(&engine), "abc");
        engine.close().unwrap();
        let expected = Mark {
            seq: 3,
            is_closed: true,
            ..Mark::default()
        };
        let Found::Mark(found) = Mark::read(&mark).unwrap() else {
            panic!("it is made anew");
        };
        assert_eq!(Mark { checksum: 0, ..found }, expected);
    }
}

/// While files are copied commits go on; the copy must not be refused for what came after.
#[test]
fn a_copy_under_a_hold_starts() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    engine.wait_durable(put(&engine, "a").unwrap().lsn).unwrap();
    let hold = engine.hold_base();
    let image = tempfile::tempdir().unwrap();
    copy(&dir.path().join("journal"), &image.path().join("journal"));
    engine.wait_durable(put(&engine, "b").unwrap().lsn).unwrap();
    for name in ["base.nestor", "nestor.format", "nestor.durable"] {
        fs::copy(dir.path().join(name), image.path().join(name)).unwrap();
    }
    drop(hold);
    engine.crash();
    assert_eq!(keys(&open(image.path()).unwrap()), "a");
    let engine = open(dir.path()).unwrap();
    assert_eq!(keys(&engine), "ab");
}
