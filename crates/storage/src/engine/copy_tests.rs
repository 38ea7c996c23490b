//! Copies of the directory, file by file, while commits and checkpoints go on: what `docs/backup.md` promises of them.

use super::*;
use crate::{TreeId, View};
use std::fs;
use std::time::Duration;

const T: TreeId = TreeId(900);
/// The parts of a directory that change.
const PARTS: [&str; 3] = ["base.nestor", "nestor.durable", "journal"];

fn options() -> EngineOptions {
    let mut options = EngineOptions::at_time(100);
    options.journal.segment_bytes = 10_000;
    options
}

/// Writes a number under each of a hundred keys, and waits until that is durable.
fn commit(engine: &Engine, number: u32) {
    let mut ws = engine.begin();
    for key in 0..100_u8 {
        let mut value = number.to_be_bytes().to_vec();
        value.resize(500, key);
        ws.put(T, [key, (number % 8) as u8], value.as_slice());
        ws.put(T, [key, 255], value);
    }
    let commit = engine.commit(ws).unwrap();
    engine.wait_durable(commit.lsn).unwrap();
}

/// Copies a file in pieces; between the first of them there are commits and checkpoints.
fn copy(from: &Path, to: &Path, mut meanwhile: impl FnMut()) {
    use std::io::{Read, Write};
    let mut input = fs::File::open(from).unwrap();
    let mut output = fs::File::create(to).unwrap();
    let mut piece = vec![0; 40_000];
    for turn in 0.. {
        let read = input.read(&mut piece).unwrap();
        if read == 0 {
            return;
        }
        output.write_all(&piece[..read]).unwrap();
        if turn < 4 {
            meanwhile();
        }
    }
}

/// Copies the parts in that order and opens the copy: the last number that was durable before, and what the copy has.
fn copied(order: [&str; 3]) -> (u32, std::result::Result<u32, String>) {
    let above = tempfile::tempdir().unwrap();
    let (data, to) = (above.path().join("data"), above.path().join("copy"));
    let engine = Engine::open(&data, options()).unwrap();
    engine.set_history_window(Duration::from_secs(300));
    let mut number = 0;
    let mut work = || {
        number += 1;
        commit(&engine, number);
        engine.checkpoint().unwrap();
    };
    (0..8).for_each(|_| work());
    let before = 8;
    fs::create_dir_all(to.join("journal")).unwrap();
    fs::copy(data.join("nestor.format"), to.join("nestor.format")).unwrap();
    for part in order {
        if part == "journal" {
            let names = fs::read_dir(data.join(part)).unwrap();
            let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            for name in names {
                copy(&data.join(part).join(&name), &to.join(part).join(&name), || {});
            }
            work();
        } else {
            copy(&data.join(part), &to.join(part), &mut work);
        }
    }
    let found = Engine::open(&to, options())
        .map_err(|error| error.to_string())
        .map(|copy| {
            let snapshot = copy.snapshot();
            let mut cursor = snapshot.cursor(T);
            let mut newest = std::collections::BTreeSet::new();
            let mut more = cursor.first().unwrap();
            while more {
                let number = u32::from_be_bytes(*cursor.value().unwrap().first_chunk().unwrap());
                if cursor.key()[1] == 255 {
                    newest.insert(number);
                }
                more = cursor.next().unwrap();
            }
            assert_eq!(newest.len(), 1, "part of a commit: {newest:?}");
            newest.into_iter().next().unwrap()
        });
    (before, found)
}

/// The order in which rsync reads a directory: files first, then what is below.
#[test]
fn base_then_mark_then_journal_has_all_that_was_durable_before() {
    let (before, found) = copied(PARTS);
    assert!(
        found.as_ref().is_ok_and(|found| *found >= before),
        "{before}: {found:?}"
    );
}

/// In any other order the copy has all of it as well, or is refused; it never lacks something silently.
#[test]
fn no_order_loses_silently_what_was_durable_before() {
    let [base, mark, journal] = PARTS;
    let mut refused = 0;
    for order in [
        [base, journal, mark],
        [mark, base, journal],
        [mark, journal, base],
        [journal, base, mark],
        [journal, mark, base],
    ] {
        match copied(order) {
            (before, Ok(found)) => assert!(found >= before, "{order:?}: {found} of {before}"),
            (_, Err(error)) => {
                refused += 1;
                let is_named = ["are lost", "ends before the last checkpoint", "mixed", "two copies"]
                    .iter()
                    .any(|reason| error.contains(reason));
                assert!(is_named, "{order:?}: {error}");
            }
        }
    }
    assert!(refused >= 3, "the parts were copied while they changed: {refused}");
}
