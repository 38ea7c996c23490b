//! Power that goes, disks that fill up, threads that read meanwhile.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::super::super::{Base, BaseError};
use super::{Batch, Entries, Random, SMALL, apply, empty_disk, open, read_all, some_changes, with};

/// Whenever the power goes, the state before or the one after is there, whole; after success it is the one after.
#[test]
fn a_crash_at_any_operation_leaves_the_old_state_or_the_new() {
    for seed in 1..=3 {
        let mut random = Random::new(seed);
        let mut disk = empty_disk();
        let mut state = Entries::new();
        let mut crashes = 0;
        for transaction in 0..12 {
            let len = 1 + 40 * random.below(4);
            let batch = some_changes(&mut random, len);
            let next = with(&state, &batch);
            let before = disk.bytes();
            for operation in 0.. {
                let disk = super::Disk::with(before.clone());
                let tree = open(&disk, SMALL).expect("sound");
                disk.fail_in(operation, true);
                let result = apply(&tree, &batch, b"");
                let finished = !disk.has_failed();
                for _ in 0..3 {
                    let context = format!("seed {seed}, transaction {transaction}, operation {operation}");
                    let found = open(&disk.crash(&mut random), SMALL).expect("sound after a crash");
                    found.check().unwrap_or_else(|error| panic!("{context}: {error}"));
                    let entries = read_all(&found.snapshot()).expect("sound");
                    assert!(entries == next || (result.is_err() && entries == state), "{context}");
                    crashes += 1;
                }
                if finished {
                    break;
                }
            }
            let tree = open(&disk, SMALL).expect("sound");
            apply(&tree, &batch, b"").expect("applied");
            drop(tree);
            // Go on with what a crash leaves.
            disk = disk.crash(&mut random);
            state = next;
        }
        assert!(crashes > 200, "{crashes} crashes tested");
    }
}

/// When one operation fails, the state before stays current and in the file, and the next transaction succeeds; whether
/// after a crash the state before or the failed one is found, it is whole.
#[test]
fn after_a_failed_operation_the_old_state_is_usable_and_the_next_transaction_succeeds() {
    let mut random = Random::new(7);
    let disk = empty_disk();
    let tree = open(&disk, SMALL).expect("sound");
    let mut state = Entries::new();
    let mut failures = 0;
    // The states that failed transactions may have left in the file, until one succeeds.
    let mut in_doubt: Vec<Entries> = Vec::new();
    for operation in 0..400 {
        let len = 1 + 40 * random.below(4);
        let batch = some_changes(&mut random, len);
        let held = random.percent(30).then(|| (tree.snapshot(), state.clone()));
        let next = with(&state, &batch);
        disk.fail_in(random.below(14), false);
        let result = apply(&tree, &batch, b"");
        disk.work_again();
        match result {
            Ok(_) => {
                state = next;
                in_doubt.clear();
            }
            Err(BaseError::Io { .. } | BaseError::Sync { .. }) => {
                failures += 1;
                in_doubt.push(next);
            }
            Err(error) => panic!("operation {operation}: {error}"),
        }
        assert_eq!(
            read_all(&tree.snapshot()).expect("sound"),
            state,
            "operation {operation}"
        );
        if let Some((snapshot, expected)) = held {
            assert_eq!(read_all(&snapshot).expect("sound"), expected);
        }
        tree.check()
            .unwrap_or_else(|error| panic!("operation {operation}: {error}"));
        let crashed = open(&disk.crash(&mut random), SMALL).expect("sound after a crash");
        crashed
            .check()
            .unwrap_or_else(|error| panic!("operation {operation}, crashed: {error}"));
        let found = read_all(&crashed.snapshot()).expect("sound");
        assert!(found == state || in_doubt.contains(&found), "operation {operation}");
    }
    assert!(failures > 100, "{failures} failures");
}

/// Space that failed transactions took is free again: the file does not grow with their number.
#[test]
fn failed_transactions_leave_no_space_lost() {
    let mut random = Random::new(9);
    let disk = empty_disk();
    let tree = open(&disk, SMALL).expect("sound");
    apply(&tree, &some_changes(&mut random, 400), b"").expect("applied");
    let pages = tree.check().expect("sound").pages;
    for _ in 0..100 {
        disk.fail_in(random.below(4), false);
        assert!(apply(&tree, &some_changes(&mut random, 400), b"").is_err());
        disk.work_again();
    }
    apply(&tree, &Batch::new(), b"").expect("applied");
    let report = tree.check().expect("sound");
    assert!(report.pages < pages * 5 / 2, "{pages} pages became {}", report.pages);
}

/// A reader sees one state: all values of a snapshot come from the same transaction.
#[test]
fn readers_see_whole_states_while_transactions_run() {
    let disk = empty_disk();
    let options = super::TreeOptions {
        cache_bytes_max: 16 << 10,
        ..SMALL
    };
    let tree = open(&disk, options).expect("sound");
    let batch = |generation: u32| -> Batch {
        (0..300u32)
            .map(|i| (i.to_be_bytes().to_vec(), Some(generation.to_be_bytes().repeat(5))))
            .collect()
    };
    apply(&tree, &batch(0), b"").expect("applied");
    /// Ends the readers, also when the test fails.
    struct Stop<'s>(&'s AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ended = Stop(&stop);
        let readers: Vec<_> = (0..3)
            .map(|seed| {
                let (tree, stop) = (&tree, &stop);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    let mut states = 0;
                    while !stop.load(Relaxed) || states == 0 {
                        let snapshot = tree.snapshot();
                        let entries = read_all(&snapshot).expect("sound");
                        let first = entries.values().next().expect("not empty");
                        assert_eq!(entries.len(), 300);
                        assert!(entries.values().all(|value| value == first));
                        let key = (random.below(300) as u32).to_be_bytes();
                        assert_eq!(snapshot.get(&key).expect("sound").as_deref(), Some(&first[..]));
                        states += 1;
                    }
                })
            })
            .collect();
        for generation in 1..60 {
            apply(&tree, &batch(generation), b"").expect("applied");
        }
        drop(ended);
        for reader in readers {
            reader.join().expect("the reader found nothing wrong");
        }
    });
    let report = tree.check().expect("sound");
    assert!(report.pages < 60 * report.leaves, "space was used again");
}
