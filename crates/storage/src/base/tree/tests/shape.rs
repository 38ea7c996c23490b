//! The tree after transactions: its bytes, its fill, the pages they read and write, and the changes they refuse.

use super::super::super::{Base, BaseError, Change, KEY_BYTES_MAX, KeyRange, Packing, VALUE_BYTES_MAX, changes};
use super::super::page::NodeRef;
use super::{Batch, Random, SMALL, TreeOptions, apply, delete_range, empty_disk, open, read_all, some_changes};

fn rows(numbers: impl IntoIterator<Item = u32>, len: usize) -> Batch {
    numbers
        .into_iter()
        .map(|number| (number.to_be_bytes().to_vec(), Some(vec![number as u8; len])))
        .collect()
}

/// Share of the leaves' bytes that is in use, in percent.
fn fill(tree: &super::Tree) -> u64 {
    let report = tree.check().expect("sound");
    100 * report.leaf_bytes_used / (report.leaves * u64::from(report.page_bytes))
}

#[test]
fn the_example_of_the_format() {
    let disk = empty_disk();
    let tree = open(&disk, SMALL).expect("sound");
    let batch = Batch::from([
        (b"apple".to_vec(), Some(b"1".to_vec())),
        (b"apricot".to_vec(), Some(b"22".to_vec())),
    ]);
    apply(&tree, &batch, b"").expect("applied");
    let leaf = &disk.bytes()[2 * 512..3 * 512];
    let header = [
        &[2, 0, 0, 0][..], // first page
        &[2, 0, 0, 0],     // leaf, level 0
        &[1, 0, 0, 0],     // pages
        &[2, 0, 0, 0],     // entries
        &[2, 0, 0, 0],     // length of the prefix
        &[54, 0, 0, 0],    // bytes in use
        &[0, 0, 0, 0],
    ];
    assert_eq!(leaf[4..32], header.concat());
    assert_eq!(&leaf[32..34], b"ap");
    assert_eq!(
        leaf[34..40],
        [0x00, 0x65, 0x6c, 0x70, 46, 0],
        "ple and a zero, and the first cell"
    );
    assert_eq!(
        leaf[40..46],
        [0x6f, 0x63, 0x69, 0x72, 49, 0],
        "rico, and the second cell"
    );
    assert_eq!(leaf[46..54], [3, 2, b'1', 5, b't', 4, b'2', b'2']);
    assert_eq!(leaf[54..], [0; 458]);
}

#[test]
fn rows_appended_make_full_pages() {
    let tree = open(&empty_disk(), SMALL).expect("sound");
    for start in (0..20_000).step_by(500) {
        apply(&tree, &rows(start..start + 500, 20), b"").expect("applied");
    }
    assert!(fill(&tree) >= 95, "{} %", fill(&tree));
    // Also in the middle, as for each of several collections.
    for start in (0..4_000).step_by(200) {
        let batch: Batch = (start..start + 200u32)
            .map(|number| ([&[0, 0, 40, 0][..], &number.to_be_bytes()].concat(), Some(vec![1; 20])))
            .collect();
        apply(&tree, &batch, b"").expect("applied");
    }
    assert!(fill(&tree) >= 90, "{} %", fill(&tree));
}

#[test]
fn leaves_that_become_nearly_empty_merge() {
    let tree = open(&empty_disk(), SMALL).expect("sound");
    apply(&tree, &rows(0..10_000, 20), b"").expect("applied");
    let mut random = Random::new(3);
    for _ in 0..40 {
        let batch: Batch = (0..800)
            .map(|_| ((random.below(10_000) as u32).to_be_bytes().to_vec(), None))
            .collect();
        apply(&tree, &batch, b"").expect("applied");
    }
    let report = tree.check().expect("sound");
    assert!(report.entries < 1_000, "{report:?}");
    assert!(fill(&tree) >= 45, "{} %", fill(&tree));
}

#[test]
fn a_leaf_left_nearly_empty_merges_with_a_neighbour_that_nothing_else_touches() {
    let tree = open(&empty_disk(), SMALL).expect("sound");
    apply(&tree, &rows(0..6_000, 20), b"").expect("applied");
    // Every other row, so that neighbours have room.
    apply(
        &tree,
        &(0..6_000u32)
            .step_by(2)
            .map(|number| (number.to_be_bytes().to_vec(), None))
            .collect(),
        b"",
    )
    .expect("applied");
    let report = tree.check().expect("sound");
    let rows_per_leaf = (report.entries / report.leaves) as u32;
    for first in (0..6_000).step_by(6 * rows_per_leaf as usize) {
        let batch = (first..first + 2 * rows_per_leaf - 2)
            .map(|number| (number.to_be_bytes().to_vec(), None))
            .collect();
        apply(&tree, &batch, b"").expect("applied");
    }
    let fills = leaf_fills(&tree);
    let nearly_empty = fills[..fills.len() - 1].iter().filter(|fill| **fill < 40).count();
    assert_eq!(nearly_empty, 0, "{fills:?}");
}

/// Percentage in use of each leaf.
fn leaf_fills(tree: &super::Tree) -> Vec<usize> {
    fn walk(tree: &super::Tree, node: NodeRef, level: u8, fills: &mut Vec<usize>) {
        let page = tree.store.read_node(node, level).expect("sound");
        match level {
            0 => fills.push(100 * page.used() / page.bytes().len()),
            _ => (0..page.children()).for_each(|i| walk(tree, page.child(i), level - 1, fills)),
        }
    }
    let mut fills = Vec::new();
    if let Some((root, level)) = tree.current().root {
        walk(tree, root, level, &mut fills);
    }
    fills
}

#[test]
fn random_insertions_keep_pages_well_filled() {
    let tree = open(&empty_disk(), SMALL).expect("sound");
    let mut random = Random::new(4);
    for _ in 0..100 {
        apply(&tree, &rows((0..100).map(|_| random.next() as u32), 20), b"").expect("applied");
    }
    assert!(fill(&tree) >= 62, "{} %", fill(&tree));
}

#[test]
fn one_change_rewrites_one_path() {
    let tree = open(&empty_disk(), SMALL).expect("sound");
    apply(&tree, &rows(0..20_000, 20), b"").expect("applied");
    let depth = u64::from(tree.check().expect("sound").depth);
    let stats = apply(&tree, &rows([9_000], 20), b"").expect("applied");
    assert_eq!(
        (stats.replaced, stats.leaves_written, stats.interiors_written),
        (1, 1, depth - 1)
    );
    assert!((3 * 512..20 * 512).contains(&stats.bytes_written), "{stats:?}");
}

#[test]
fn values_replaced_by_others_as_long_move_nothing() {
    let disk = empty_disk();
    let tree = open(&disk, SMALL).expect("sound");
    apply(&tree, &rows(0..5_000, 20), b"").expect("applied");
    let (before, fills) = (tree.check().expect("sound"), leaf_fills(&tree));
    let replaced: Vec<u32> = (0..5_000).step_by(7).collect();
    let batch: Batch = replaced
        .iter()
        .map(|number| (number.to_be_bytes().to_vec(), Some(vec![200; 20])))
        .collect();
    let stats = apply(&tree, &batch, b"").expect("applied");
    assert_eq!((stats.replaced, stats.inserted), (replaced.len() as u64, 0));
    assert_eq!(leaf_fills(&tree), fills);
    let report = tree.check().expect("sound");
    assert_eq!((report.entries, report.leaves), (before.entries, before.leaves));
    // Others behind them in the same leaf: longer, new, and removals of what is there and of what is not.
    let mut mixed: Batch = rows((0..5_000).step_by(11), 20);
    mixed.extend(rows((0..5_000).step_by(13), 90));
    mixed.extend((0..5_000u32).step_by(17).map(|n| (n.to_be_bytes().to_vec(), None)));
    mixed.extend(
        (0..5_000u32)
            .step_by(19)
            .map(|n| ([&n.to_be_bytes()[..], &[0]].concat(), None)),
    );
    let mut expected = rows(0..5_000, 20);
    expected.extend(batch);
    expected.extend(mixed.clone());
    expected.retain(|_, value| value.is_some());
    apply(&tree, &mixed, b"").expect("applied");
    tree.check().expect("sound");
    let expected: Vec<_> = expected.into_iter().filter_map(|(k, v)| Some((k, v?))).collect();
    for tree in [tree, open(&disk, SMALL).expect("sound")] {
        let found: Vec<_> = read_all(&tree.snapshot()).expect("sound").into_iter().collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn what_is_written_stays_in_memory_while_there_is_room() {
    for (cache_bytes_max, all_stay) in [(4 << 20, true), (64 << 10, false)] {
        let disk = empty_disk();
        let tree = open(
            &disk,
            TreeOptions {
                cache_bytes_max,
                ..SMALL
            },
        )
        .expect("sound");
        apply(&tree, &rows(0..10_000, 20), b"").expect("applied");
        let reads = disk.counts().0;
        read_all(&tree.snapshot()).expect("sound");
        assert_eq!(disk.counts().0 == reads, all_stay);
    }
}

#[test]
fn removing_what_is_not_there_rewrites_no_leaf() {
    let tree = open(&empty_disk(), SMALL).expect("sound");
    apply(&tree, &rows((0..5_000).map(|number| 2 * number), 20), b"").expect("applied");
    let batch: Batch = (0..500u32)
        .map(|number| ((20 * number + 1).to_be_bytes().to_vec(), None))
        .collect();
    let stats = apply(&tree, &batch, b"").expect("applied");
    assert_eq!((stats.removed, stats.leaves_written), (0, 0));
}

#[test]
fn a_deleted_range_is_dropped_without_reading_its_leaves() {
    for (len, reads_leaves) in [(20, false), (300, true)] {
        let disk = empty_disk();
        let tree = open(&disk, SMALL).expect("sound");
        apply(&tree, &rows(0..10_000, len), b"").expect("applied");
        let before = tree.check().expect("sound");
        drop(tree);
        let tree = open(&disk, SMALL).expect("sound");
        let reads = disk.counts().0;
        let stats = delete_range(&tree, &100u32.to_be_bytes(), Some(&9_900u32.to_be_bytes())).expect("applied");
        let reads = (disk.counts().0 - reads) as u64;
        assert_eq!(stats.range_removed, 9_800);
        // Leaves are read where they refer to values outside, whose space is to be freed.
        assert_eq!(reads > before.leaves / 2, reads_leaves, "{reads} reads for {before:?}");
        assert!(
            reads_leaves || reads <= before.interiors + 8,
            "{reads} reads for {before:?}"
        );
        let report = tree.check().expect("sound");
        assert_eq!(
            (report.entries, report.overflow_values),
            (200, if reads_leaves { 200 } else { 0 })
        );
        assert_eq!(tree.snapshot().entries(), 200);
    }
}

#[test]
fn the_file_shrinks_when_its_end_is_free() {
    let disk = empty_disk();
    let tree = open(&disk, SMALL).expect("sound");
    apply(&tree, &rows(0..10_000, 20), b"").expect("applied");
    let full = tree.file_bytes();
    delete_range(&tree, &[], None).expect("applied");
    for _ in 0..2 {
        apply(&tree, &Batch::new(), b"").expect("applied");
    }
    assert!(
        tree.file_bytes() < full / 100,
        "{full} bytes became {}",
        tree.file_bytes()
    );
    assert_eq!(tree.file_bytes() as usize, disk.bytes().len());
    assert_eq!(tree.check().expect("sound").depth, 0);
}

#[test]
fn space_is_used_again_unless_a_snapshot_needs_it() {
    let tree = open(&empty_disk(), SMALL).expect("sound");
    apply(&tree, &rows(0..2_000, 20), b"").expect("applied");
    let replace_all = |times: usize| {
        for _ in 0..times {
            apply(&tree, &rows(0..2_000, 20), b"").expect("applied");
        }
        tree.file_bytes()
    };
    let twice = replace_all(2);
    assert!(replace_all(10) <= twice + twice / 20, "{twice}");
    let held = tree.snapshot();
    let with_one = replace_all(10);
    assert!(
        with_one <= 2 * twice,
        "one old state takes its own space, not that of all between: {twice}, {with_one}"
    );
    assert_eq!(read_all(&held).expect("sound").len(), 2_000);
}

#[test]
fn long_keys_and_values_come_back() {
    let disk = empty_disk();
    let tree = open(
        &disk,
        TreeOptions {
            page_bytes: 8192,
            packs: false,
            ..SMALL
        },
    )
    .expect("sound");
    let key = |byte: u8| [&vec![b'x'; 64 << 10][..], &[byte]].concat();
    let mut batch: Batch = (0..9)
        .map(|byte| (key(byte), Some(vec![byte; 3_000 * usize::from(byte)])))
        .collect();
    batch.insert(b"long".to_vec(), Some(vec![42; VALUE_BYTES_MAX]));
    batch.insert(vec![b'y'; 1 << 20], Some(Vec::new()));
    apply(&tree, &batch, b"").expect("applied");
    let expected = batch
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
    assert_eq!(read_all(&tree.snapshot()).expect("sound"), expected);
    tree.check().expect("sound");
    let again = open(&disk, SMALL).expect("sound");
    assert_eq!(read_all(&again.snapshot()).expect("sound"), expected);
}

#[test]
fn what_is_refused_changes_nothing() {
    let disk = empty_disk();
    let tree = open(&disk, SMALL).expect("sound");
    let mut random = Random::new(1);
    apply(&tree, &some_changes(&mut random, 300), b"meta").expect("applied");
    let before = read_all(&tree.snapshot()).expect("sound");
    let (long_key, long_value) = (vec![0; KEY_BYTES_MAX + 1], vec![0; VALUE_BYTES_MAX + 1]);
    let put = |key, value| Change {
        key,
        value: Some(value),
    };
    let twice = [put(&b"key 100"[..], &b"1"[..]), put(b"key 100", b"2")];
    let backwards = [put(&b"key 500"[..], &b"1"[..]), put(b"key 100", b"2")];
    for wrong in [
        &twice[..],
        &backwards,
        &[put(&long_key, b"")],
        &[put(b"key", &long_value)],
    ] {
        let error = tree
            .apply(&[], &mut changes(wrong.iter().copied()), b"")
            .expect_err("refused");
        assert!(
            matches!(error, BaseError::Unordered { .. } | BaseError::TooLarge { .. }),
            "{error}"
        );
    }
    let range = |start, end| KeyRange { start, end: Some(end) };
    for wrong in [
        [range(&b"key 1"[..], &b"key 3"[..]), range(b"key 2", b"key 4")],
        [range(b"key 5", b"key 6"), range(b"key 2", b"key 4")],
        [range(b"key 4", b"key 2"), range(b"key 5", b"key 6")],
    ] {
        let error = tree.apply(&wrong, &mut changes([]), b"").expect_err("refused");
        assert!(matches!(error, BaseError::Unordered { .. }), "{error}");
    }
    let error = apply(&tree, &Batch::new(), &[0; 512 - 127]).expect_err("refused");
    assert!(
        matches!(
            error,
            BaseError::TooLarge {
                what: "metadata",
                max: 384,
                ..
            }
        ),
        "{error}"
    );
    let reader = open(
        &disk,
        TreeOptions {
            read_only: true,
            ..SMALL
        },
    )
    .expect("sound");
    assert!(matches!(
        apply(&reader, &Batch::new(), b""),
        Err(BaseError::ReadOnly { .. })
    ));
    assert_eq!(read_all(&tree.snapshot()).expect("sound"), before);
    assert_eq!(reader.snapshot().meta(), b"meta");
    tree.check().expect("sound");
    apply(&tree, &some_changes(&mut random, 300), b"meta").expect("applied");
    tree.check().expect("sound");
}

#[test]
fn what_is_packed_goes_by_the_beginning_of_the_key() {
    let disk = super::Disk::with(super::empty_file(SMALL.page_bytes, true));
    let tree = open(&disk, SMALL).expect("sound");
    let text = "a text that packs well. ";
    let batch = |copies: usize| -> Batch {
        let keys = (1..=3u32).flat_map(|part| (0..500u32).map(move |n| (part, n)));
        keys.map(|(part, n)| {
            let times = if n % 40 == 0 { 60 } else { copies };
            let key = [part.to_be_bytes(), n.to_be_bytes()].concat();
            (key, Some(text.repeat(times).into_bytes()))
        })
        .collect()
    };
    let stored = || {
        [1u32, 2, 3].map(|part| {
            let (start, end) = (part.to_be_bytes(), (part + 1).to_be_bytes());
            let range = KeyRange {
                start: &start,
                end: Some(&end),
            };
            let bytes = tree.snapshot().stored_bytes(range).expect("sound");
            bytes.expect("there is a file")
        })
    };
    let packing = |usual: bool, except: &[u32]| Packing {
        usual,
        except: except.iter().map(|part| part.to_be_bytes()).collect(),
    };
    // Values of another length each time, so that leaves are made anew; then of the same, which are patched.
    for (packing, plain, copies) in [
        (packing(true, &[2]), [false, true, false], 4),
        (packing(false, &[1]), [false, true, true], 5),
        (packing(false, &[1]), [false, true, true], 5),
        (Packing::default(), [false; 3], 3),
    ] {
        tree.set_packing(packing);
        let all = batch(copies);
        apply(&tree, &all, b"").expect("applied");
        tree.check().expect("sound");
        let entries = all.into_iter().map(|(key, value)| (key, value.expect("set"))).collect();
        assert_eq!(read_all(&tree.snapshot()).expect("sound"), entries);
        let bytes: u64 = (0..500)
            .map(|n| text.len() * if n % 40 == 0 { 60 } else { copies })
            .sum::<usize>() as u64;
        for (stored, plain) in stored().into_iter().zip(plain) {
            match plain {
                true => assert!(stored >= bytes, "{stored} of {bytes}"),
                false => assert!(stored * 5 < bytes * 3, "{stored} of {bytes}"),
            }
        }
    }
}

#[test]
fn what_packs_takes_less_of_the_file_and_what_does_not_takes_no_more() {
    let text =
        |number: u32| format!("{{\"number\": {number}, \"name\": \"somebody\", \"city\": \"a city\"}}").repeat(3);
    let mut random = super::Random::new(5);
    let mut noise = |len: usize| (0..len).map(|_| random.next() as u8).collect::<Vec<u8>>();
    for (packs, is_text) in [(true, true), (true, false), (false, true)] {
        let disk = super::Disk::with(super::empty_file(SMALL.page_bytes, packs));
        let tree = open(&disk, SMALL).expect("sound");
        let value = |number: u32, noise: &mut dyn FnMut(usize) -> Vec<u8>| match (is_text, number % 50) {
            (true, 0) => text(number).repeat(40).into_bytes(),
            (true, _) => text(number).into_bytes(),
            (false, 0) => noise(5_000),
            (false, _) => noise(120),
        };
        let all: Batch = (0..3_000u32)
            .map(|number| (number.to_be_bytes().to_vec(), Some(value(number, &mut noise))))
            .collect();
        apply(&tree, &all, b"").expect("applied");
        let some: Batch = (0..3_000u32)
            .step_by(7)
            .map(|number| (number.to_be_bytes().to_vec(), Some(value(number, &mut noise))))
            .collect();
        apply(&tree, &some, b"").expect("applied");
        drop(tree);
        let tree = open(&disk, SMALL).expect("sound");
        let report = tree.check().expect("sound");
        let used = (report.pages - report.free_pages) * u64::from(report.page_bytes);
        let contents = report.value_bytes + report.key_bytes;
        let leaves = report.leaf_pages * u64::from(report.page_bytes);
        assert_eq!(report.overflow_values, 60);
        match packs && is_text {
            true => assert!(used * 2 < contents && leaves * 2 < report.leaf_bytes, "{report:?}"),
            false => assert_eq!(leaves, report.leaf_bytes, "{report:?}"),
        }
        assert!(used * 2 < contents * 3, "{report:?}");
        let stored = |from: u32, to: Option<u32>| {
            let to = to.map(u32::to_be_bytes);
            let range = KeyRange {
                start: &from.to_be_bytes(),
                end: to.as_ref().map(|to| &to[..]),
            };
            tree.snapshot()
                .stored_bytes(range)
                .expect("sound")
                .expect("there is a file")
        };
        let (whole, interiors) = (stored(0, None), report.interiors * u64::from(report.page_bytes));
        let parts: u64 = (0..3_000).step_by(500).map(|from| stored(from, Some(from + 500))).sum();
        assert!(
            whole.abs_diff(parts) <= 6,
            "{whole} {parts}: a leaf's bytes are divided by its entries"
        );
        let others = interiors + (2 + u64::from(report.free_pages > 0)) * u64::from(report.page_bytes);
        assert!(
            whole <= used - interiors && whole + others >= used - 4096,
            "{whole} of {used}: {report:?}"
        );
        assert_eq!(stored(7_000, None), 0);
        let entries = read_all(&tree.snapshot()).expect("sound");
        assert_eq!(entries.len(), 3_000);
        let kept = all.iter().filter(|(key, _)| !some.contains_key(*key));
        for (key, value) in kept.chain(&some) {
            assert_eq!(entries.get(key), value.as_ref());
        }
    }
}
