//! Random transactions on the tree and on the model; then both must show the same through every access path, in the
//! current state and in every snapshot still held.

use std::path::Path;
use std::sync::Arc;

use super::super::super::memory::MemoryBase;
use super::super::super::{Base, BaseSnapshot, Change, KeyRange, changes};
use super::super::{Tree, TreeOptions};
use super::{Batch, Random};

/// What the keys of a run look like.
#[derive(Debug, Clone, Copy)]
enum Keys {
    /// Four bytes: many nodes share all but the last.
    Dense,
    /// Up to twelve bytes of a small alphabet, zeros among them, and the empty key.
    Short,
    /// Like short, but a few are far longer than a page and differ only at their ends.
    Long,
}

fn key(random: &mut Random, keys: Keys) -> Vec<u8> {
    match keys {
        Keys::Dense => (random.below(3_000) as u32).to_be_bytes().to_vec(),
        Keys::Short => (0..random.below(13))
            .map(|_| [0, 1, b'a', b'b', 255][random.below(5)])
            .collect(),
        Keys::Long if random.percent(5) => {
            let mut key = vec![b'l'; 200 + 700 * random.below(4)];
            key.extend((random.below(50) as u16).to_be_bytes());
            key
        }
        Keys::Long => key(random, Keys::Short),
    }
}

fn value(random: &mut Random) -> Vec<u8> {
    let len = match random.below(100) {
        0..40 => random.below(8),
        40..90 => random.below(120),
        90..99 => random.below(700),
        _ => random.below(9_000),
    };
    (0..len).map(|_| random.next() as u8).collect()
}

fn batch(random: &mut Random, keys: Keys) -> Batch {
    let len = [0, 1, 5, 40, 400][random.below(5)];
    let removals = [0, 10, 50, 100][random.below(4)];
    // Values of one length replace others without moving anything.
    let same_length = [0, 80, 100][random.below(3)];
    (0..len)
        .map(|_| {
            let key = key(random, keys);
            let value = match (random.percent(removals), random.percent(same_length)) {
                (true, _) => None,
                (false, true) => Some(random.next().to_be_bytes().repeat(4)),
                (false, false) => Some(value(random)),
            };
            (key, value)
        })
        .collect()
}

/// Ends of ranges to be deleted, ascending and disjoint.
fn deletions(random: &mut Random, keys: Keys) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    if !random.percent(30) {
        return Vec::new();
    }
    let mut ends: Vec<_> = (0..2 * (1 + random.below(3))).map(|_| key(random, keys)).collect();
    ends.sort();
    ends.dedup();
    let mut ranges: Vec<_> = ends
        .chunks_exact(2)
        .map(|pair| (pair[0].clone(), Some(pair[1].clone())))
        .collect();
    if random.percent(10)
        && let Some(last) = ranges.last_mut()
    {
        last.1 = None;
    }
    ranges
}

/// Both must show the same.
fn compare(tree: &Arc<dyn BaseSnapshot>, model: &Arc<dyn BaseSnapshot>, random: &mut Random, keys: Keys) {
    assert_eq!(tree.entries(), model.entries());
    assert_eq!(tree.meta(), model.meta());
    let mut at = tree.clone().cursor();
    let mut expected = model.clone().cursor();
    for forward in [true, false] {
        let mut found = if forward {
            (at.first(), expected.first())
        } else {
            (at.last(), expected.last())
        };
        loop {
            let (found_at, found_expected) = (found.0.expect("sound"), found.1.expect("sound"));
            assert_eq!(found_at, found_expected);
            assert_eq!(at.key(), expected.key());
            assert_eq!(at.value().expect("sound"), expected.value().expect("sound"));
            assert_eq!(at.value_len(), expected.value_len());
            if !found_at {
                break;
            }
            found = if forward {
                (at.next(), expected.next())
            } else {
                (at.prev(), expected.prev())
            };
        }
    }
    for _ in 0..60 {
        let key = key(random, keys);
        assert_eq!(
            tree.get(&key).expect("sound"),
            model.get(&key).expect("sound"),
            "{key:?}"
        );
        assert_eq!(
            tree.rank(&key).expect("sound"),
            model.rank(&key).expect("sound"),
            "{key:?}"
        );
        let found = if random.percent(50) {
            (at.seek(&key), expected.seek(&key))
        } else {
            (at.seek_back(&key), expected.seek_back(&key))
        };
        assert_eq!(found.0.expect("sound"), found.1.expect("sound"), "{key:?}");
        for _ in 0..random.below(4) {
            assert_eq!((at.is_valid(), at.key()), (expected.is_valid(), expected.key()));
            assert_eq!(at.value_bytes().expect("sound"), expected.value_bytes().expect("sound"));
            let found = if random.percent(50) {
                (at.next(), expected.next())
            } else {
                (at.prev(), expected.prev())
            };
            assert_eq!(found.0.expect("sound"), found.1.expect("sound"));
        }
    }
}

fn run(seed: u64, keys: Keys, page_bytes: usize, cache_bytes_max: usize, transactions: usize) {
    for packs in [false, true] {
        let options = TreeOptions {
            page_bytes,
            packs,
            cache_bytes_max,
            ..TreeOptions::default()
        };
        run_with(seed, keys, options, transactions);
    }
}

fn run_with(seed: u64, keys: Keys, options: TreeOptions, transactions: usize) {
    println!("seed {seed}, keys {keys:?}, {options:?}");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("base");
    let mut tree = Tree::open(&path, options).expect("created");
    let model = MemoryBase::new();
    let mut random = Random::new(seed);
    let mut held: Vec<(Arc<dyn BaseSnapshot>, Arc<dyn BaseSnapshot>)> = Vec::new();
    for number in 0..transactions {
        let ranges = deletions(&mut random, keys);
        let ranges: Vec<_> = ranges
            .iter()
            .map(|(start, end)| KeyRange {
                start,
                end: end.as_deref(),
            })
            .collect();
        let batch = batch(&mut random, keys);
        let source = || {
            changes(batch.iter().map(|(key, value)| Change {
                key,
                value: value.as_deref(),
            }))
        };
        let meta = format!("transaction {number}");
        let expected = model.apply(&ranges, &mut source(), meta.as_bytes()).expect("applied");
        let stats = tree.apply(&ranges, &mut source(), meta.as_bytes()).expect("applied");
        assert_eq!(
            (stats.inserted, stats.replaced, stats.removed, stats.range_removed),
            (
                expected.inserted,
                expected.replaced,
                expected.removed,
                expected.range_removed
            )
        );
        compare(&tree.snapshot(), &model.snapshot(), &mut random, keys);
        let report = tree.check().expect("sound");
        let expected = model.check().expect("sound");
        assert_eq!(
            (report.entries, report.key_bytes, report.value_bytes),
            (expected.entries, expected.key_bytes, expected.value_bytes)
        );
        if random.percent(20) {
            held.push((tree.snapshot(), model.snapshot()));
        }
        if random.percent(15) && !held.is_empty() {
            let (snapshot, expected) = held.swap_remove(random.below(held.len()));
            compare(&snapshot, &expected, &mut random, keys);
        }
        if random.percent(5) {
            held.clear();
            drop(tree);
            tree = Tree::open(Path::new(&path), options).expect("opened again");
            compare(&tree.snapshot(), &model.snapshot(), &mut random, keys);
        }
    }
    for (snapshot, expected) in held {
        compare(&snapshot, &expected, &mut random, keys);
    }
}

#[test]
fn dense_keys_on_small_pages() {
    for seed in 1..4 {
        run(seed, Keys::Dense, 512, 1 << 20, 40);
    }
}

#[test]
fn short_keys_with_hardly_any_cache() {
    for seed in 11..14 {
        run(seed, Keys::Short, 512, 4_096, 40);
    }
}

#[test]
fn keys_longer_than_pages() {
    for seed in 21..24 {
        run(seed, Keys::Long, 512, 1 << 20, 40);
    }
}

#[test]
fn pages_of_the_usual_size() {
    run(31, Keys::Dense, 8192, 1 << 20, 30);
    run(32, Keys::Long, 4096, 1 << 20, 30);
}
