//! Files that do not hold what was written to them: never is anything else shown.

use std::path::Path;

use super::super::super::{Base, BaseError};
use super::super::check::free_list;
use super::super::meta::{Meta, Slot, VERSION};
use super::super::page::{get_u32, put_u32};
use super::{Batch, Disk, Entries, Random, SMALL, apply, empty_disk, open, read_all, some_changes};
use crate::base::tree::{Tree, TreeOptions};

const PAGE: usize = 512;
const READ_ONLY: TreeOptions = TreeOptions {
    read_only: true,
    ..SMALL
};

/// A small file that has everything: leaves and an interior node, long values, a long key, free pages.
fn example() -> (Vec<u8>, Entries) {
    let disk = empty_disk();
    let tree = open(&disk, SMALL).expect("sound");
    let long = |i: usize| [&vec![b'k'; 700][..], &[i as u8]].concat();
    let mut batch: Batch = (0..120)
        .map(|i| (format!("key {i:03}").into_bytes(), Some(vec![i as u8; i % 30])))
        .collect();
    batch.extend((0..2).map(|i| (long(i), Some(vec![7; 40]))));
    batch.extend((0..2).map(|i| (vec![b'o', i], Some(vec![9; 700]))));
    apply(&tree, &batch, b"first").expect("applied");
    let some: Batch = batch.keys().step_by(40).map(|key| (key.clone(), None)).collect();
    apply(&tree, &some, b"second").expect("applied");
    let report = tree.check().expect("sound");
    assert!(
        report.depth == 2 && report.overflow_values >= 1 && report.free_pages > 0,
        "{report:?}"
    );
    (disk.bytes(), read_all(&tree.snapshot()).expect("sound"))
}

fn meta_of(image: &[u8]) -> Meta {
    match Meta::decode(&image[..PAGE], 0) {
        Slot::Sound(meta) => meta,
        slot => panic!("{slot:?}"),
    }
}

/// Opens and reads everything.
fn read(image: Vec<u8>) -> Result<(Entries, Vec<u8>), BaseError> {
    let tree = open(&Disk::with(image), READ_ONLY)?;
    let snapshot = tree.snapshot();
    Ok((read_all(&snapshot)?, snapshot.meta().to_vec()))
}

#[test]
fn every_flipped_byte_is_found_or_harmless() {
    let (image, entries) = example();
    let meta = meta_of(&image);
    let tree = open(&Disk::with(image.clone()), READ_ONLY).expect("sound");
    let free = free_list(&tree.store, &meta).expect("sound");
    let is_free = |page: u32| free.iter().any(|(start, len)| (*start..start + len).contains(&page));
    let is_list = |page: u32| {
        meta.free_list
            .is_some_and(|(start, len, _)| (start..start + len).contains(&page))
    };
    let (mut found, mut harmless) = (0, 0);
    for at in 0..image.len() {
        let page = (at / PAGE) as u32;
        let mut flipped = image.clone();
        flipped[at] ^= 1 << (at % 8);
        let mut checked = open(&Disk::with(flipped.clone()), READ_ONLY)
            .expect("one meta page is sound")
            .check();
        if page < 2 || is_free(page) || is_list(page) {
            harmless += 1;
            let (read, user) = read(flipped).expect("nothing that is read is damaged");
            assert_eq!((&read, &user[..]), (&entries, &b"second"[..]), "byte {at}");
            if is_free(page) {
                checked.expect("nothing that is used is damaged");
                continue;
            }
        } else {
            found += 1;
            let Err(error) = read(flipped) else {
                panic!("byte {at} was read")
            };
            assert_names(&error, at, &image);
        }
        let Err(error) = &mut checked else {
            panic!("byte {at} was not noticed")
        };
        assert_names(error, at, &image);
    }
    assert!(
        found > 12 * PAGE && harmless > 3 * PAGE,
        "{found} found, {harmless} harmless"
    );
}

/// The error names the file and the extent that byte `at` is in.
fn assert_names(error: &BaseError, at: usize, image: &[u8]) {
    let BaseError::Corrupt { file, offset, .. } = error else {
        panic!("byte {at}: {error}")
    };
    let start = *offset as usize;
    let len = match start / PAGE {
        0 | 1 => PAGE,
        _ => get_u32(image, start + 12) as usize * PAGE,
    };
    assert!(
        &**file == Path::new("base") && start.is_multiple_of(PAGE) && (start..start + len).contains(&at),
        "byte {at}: {error}"
    );
}

#[test]
fn what_lies_behind_a_damaged_page_is_checked_too() {
    let (sound, _) = example();
    let root = meta_of(&sound).root.expect("not empty").0;
    let tree = open(&Disk::with(sound.clone()), READ_ONLY).expect("sound");
    let children = tree.store.read_node(root, 1).expect("sound");
    let last = children.children() - 1;
    let places = [0, 1, last].map(|i| children.child(i).page as usize * PAGE);
    let mut image = sound;
    for place in places.into_iter().chain([PAGE]) {
        image[place + 100] ^= 1;
    }
    let tree = open(&Disk::with(image), READ_ONLY).expect("one meta page is sound");
    let mut found = Vec::new();
    let report = tree.verify(&mut |fault| match fault {
        BaseError::Corrupt { offset, .. } => found.push(offset as usize),
        other => panic!("{other}"),
    });
    assert_eq!(found, [PAGE, places[0], places[1], places[2]]);
    assert_eq!(report.leaves as usize, last - 2, "the others were read");
}

#[test]
fn a_file_cut_short_is_refused() {
    let (image, _) = example();
    for len in (0..image.len()).step_by(100) {
        let error = read(image[..len].to_vec()).expect_err("shorter than what was written");
        assert!(matches!(error, BaseError::Corrupt { .. }), "{len} bytes: {error}");
    }
    let mut longer = image;
    longer.extend([1; 5_000]);
    read(longer).expect("a transaction that a crash cut off left something behind the end");
}

#[test]
fn a_page_in_the_place_of_another_is_found() {
    let (image, _) = example();
    let pages = image.len() / PAGE;
    let sound = |page: usize| get_u32(&image, page * PAGE + 4) as usize == page;
    let mut tried = 0;
    for from in (2..pages).filter(|page| sound(*page)) {
        for to in (2..pages).filter(|page| *page != from) {
            let mut swapped = image.clone();
            swapped.copy_within(from * PAGE..(from + 1) * PAGE, to * PAGE);
            match read(swapped) {
                Err(BaseError::Corrupt { .. }) => tried += 1,
                Err(error) => panic!("{error}"),
                Ok((entries, _)) => assert_eq!(entries, example_entries(&image), "page {from} in place of {to}"),
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

fn example_entries(image: &[u8]) -> Entries {
    read(image.to_vec()).expect("sound").0
}

#[test]
fn a_write_that_never_happened_is_found() {
    let disk = empty_disk();
    let tree = open(&disk, SMALL).expect("sound");
    let mut random = Random::new(5);
    let mut images = Vec::new();
    for _ in 0..12 {
        apply(&tree, &some_changes(&mut random, 100), b"").expect("applied");
        images.push((disk.bytes(), read_all(&tree.snapshot()).expect("sound")));
    }
    let mut found = 0;
    for pair in images.windows(2) {
        let (old, (new, entries)) = (&pair[0].0, &pair[1]);
        for page in 2..old.len().min(new.len()) / PAGE {
            let place = page * PAGE..(page + 1) * PAGE;
            let mut image = new.clone();
            image[place.clone()].copy_from_slice(&old[place]);
            match read(image) {
                Err(BaseError::Corrupt { .. }) => found += 1,
                Err(error) => panic!("{error}"),
                Ok((read, _)) => assert_eq!(&read, entries, "page {page}"),
            }
        }
    }
    assert!(found > 50, "{found}");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (image, _) = example();
    let newer = |slots: &[usize]| {
        let mut image = image.clone();
        for slot in slots {
            let page = &mut image[slot * PAGE..(slot + 1) * PAGE];
            put_u32(page, 8, VERSION + 1);
            let crc = crc32c::crc32c_append(crc32c::crc32c(&page[..16]), &page[20..]);
            put_u32(page, 16, crc);
        }
        image
    };
    for slots in [&[0, 1][..], &[0], &[1]] {
        let error = read(newer(slots)).expect_err("newer");
        assert!(
            matches!(
                error,
                BaseError::NewerFormat {
                    found: 3,
                    supported: 2,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(
            error.to_string(),
            "base has format version 3, this version reads up to 2"
        );
    }
}

#[test]
fn other_files_are_refused() {
    for bytes in [vec![0; 5_000], b"not a base".repeat(1_000), Vec::new(), vec![1; 10]] {
        let error = read(bytes).expect_err("not a base");
        assert!(matches!(error, BaseError::Corrupt { offset: 0, .. }), "{error}");
    }
}

#[test]
fn an_empty_file_in_its_place_is_not_taken_for_a_new_base() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("base");
    std::fs::write(&path, b"").expect("written");
    let Err(error) = Tree::open(&path, TreeOptions::default()) else {
        panic!("opened")
    };
    assert!(matches!(error, BaseError::Corrupt { .. }), "{error}");
}

#[test]
fn a_damaged_meta_page_is_mended_from_the_other() {
    let (image, entries) = example();
    for slot in [0, 1] {
        let mut damaged = image.clone();
        damaged[slot * PAGE + 30] ^= 1;
        let disk = Disk::with(damaged);
        let tree = open(&disk, SMALL).expect("sound");
        assert_eq!(read_all(&tree.snapshot()).expect("sound"), entries);
        assert_eq!(disk.bytes(), image, "both are as they were");
    }
}
