//! Trees that are wrong although every checksum fits: what only reading everything finds.

use super::super::check::free_list;
use super::super::meta::Meta;
use super::super::page::{HEADER, Kind, NodeRef, REF_BYTES, get_u32, put_u32, renumber};
use super::{Batch, Disk, SMALL, apply, empty_disk, open};
use crate::base::tree::{Tree, TreeOptions};

const PAGE: usize = 512;
const READ_ONLY: TreeOptions = TreeOptions {
    read_only: true,
    ..SMALL
};

/// A file whose parts can be changed such that checksums fit again.
struct Image {
    bytes: Vec<u8>,
    meta: Meta,
}

impl Image {
    /// One interior node over some leaves, long values, free pages.
    fn new() -> Image {
        let disk = empty_disk();
        let tree = open(&disk, SMALL).expect("sound");
        let mut batch: Batch = (0..120)
            .map(|i| (format!("key {i:03}").into_bytes(), Some(vec![i as u8; 20])))
            .collect();
        batch.insert(b"long".to_vec(), Some(vec![9; 700]));
        apply(&tree, &batch, b"").expect("applied");
        let some: Batch = batch.keys().step_by(39).map(|key| (key.clone(), None)).collect();
        apply(&tree, &some, b"").expect("applied");
        let meta = tree.writer().meta.clone();
        assert!(matches!(meta.root, Some((_, 1))) && meta.free_list.is_some());
        Image {
            bytes: disk.bytes(),
            meta,
        }
    }

    fn tree(&self) -> Tree {
        open(&Disk::with(self.bytes.clone()), READ_ONLY).expect("opens")
    }

    /// What a check says, and at which page.
    fn faults(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.tree().verify(&mut |fault| found.push(fault.to_string()));
        found
    }

    fn change_meta(&mut self, change: impl FnOnce(&mut Meta)) -> &Image {
        change(&mut self.meta);
        for slot in [0, 1] {
            let at = slot as usize * PAGE;
            self.bytes[at..at + PAGE].copy_from_slice(&self.meta.encode(slot));
        }
        self
    }

    fn change_page(&mut self, page: u32, change: impl FnOnce(&mut [u8])) -> u32 {
        let bytes = &mut self.bytes[page as usize * PAGE..][..PAGE];
        change(bytes);
        renumber(bytes, page)
    }

    fn root(&self) -> NodeRef {
        self.meta.root.expect("not empty").0
    }

    fn change_root(&mut self, change: impl FnOnce(&mut [u8])) -> &Image {
        let crc = self.change_page(self.root().page, change);
        self.change_meta(|meta| meta.root.as_mut().expect("not empty").0.crc = crc)
    }

    /// Where the references to the children begin in the root.
    fn children_at(&self) -> usize {
        let root = &self.bytes[self.root().page as usize * PAGE..][..PAGE];
        HEADER + get_u32(root, 20) as usize + (get_u32(root, 16) as usize - 1) * 6
    }

    fn child(&self, i: usize) -> NodeRef {
        let at = self.root().page as usize * PAGE + self.children_at() + i * REF_BYTES;
        NodeRef::decode(&self.bytes[at..at + REF_BYTES])
    }

    fn change_child(&mut self, i: usize, change: impl FnOnce(&mut NodeRef)) -> &Image {
        let (at, mut child) = (self.children_at() + i * REF_BYTES, self.child(i));
        change(&mut child);
        self.change_root(|root| child.encode(&mut root[at..at + REF_BYTES]))
    }

    fn change_leaf(&mut self, i: usize, change: impl FnOnce(&mut [u8])) -> &Image {
        let crc = self.change_page(self.child(i).page, change);
        self.change_child(i, |child| child.crc = crc)
    }

    fn change_free_list(&mut self, change: impl FnOnce(&mut [u8])) -> &Image {
        let (page, pages, _) = self.meta.free_list.expect("something is free");
        let crc = self.change_page(page, change);
        self.change_meta(|meta| meta.free_list = Some((page, pages, crc)))
    }
}

fn at(page: u32, reason: &str) -> String {
    format!("base is corrupt at byte {}: {reason}", page as usize * PAGE)
}

#[test]
fn the_example_is_sound() {
    let mut image = Image::new();
    assert_eq!(image.faults(), Vec::<String>::new());
    assert_eq!(
        image.change_leaf(0, |_| {}).faults(),
        Vec::<String>::new(),
        "sealing alone changes nothing"
    );
}

#[test]
fn pages_that_nothing_has() {
    let mut image = Image::new();
    let free = free_list(&image.tree().store, &image.meta).expect("sound");
    let (first, pages) = free[0];
    let others = if pages > 1 {
        format!(", as {} others", pages - 1)
    } else {
        String::new()
    };
    let faults = image
        .change_free_list(|list| {
            put_u32(list, 16, free.len() as u32 - 1);
            list.copy_within(HEADER + 8..HEADER + 8 * free.len(), HEADER);
        })
        .faults();
    assert_eq!(
        faults,
        [at(first, &format!("the page is neither used nor free{others}"))]
    );
    let faults = image.change_meta(|meta| meta.free_list = None).faults();
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].contains("the page is neither used nor free, as "),
        "{faults:?}"
    );
}

#[test]
fn pages_that_two_have() {
    let mut image = Image::new();
    let leaf = image.child(0).page;
    let faults = image
        .change_free_list(|list| {
            put_u32(list, 16, 1);
            put_u32(list, HEADER, leaf);
            put_u32(list, HEADER + 4, 1);
        })
        .faults();
    assert_eq!(faults, [at(leaf, "the page is used twice, the second time by page 0")]);
    let mut image = Image::new();
    let (first, root) = (image.child(0), image.root().page);
    let faults = image.change_child(1, |child| *child = first).faults();
    assert_eq!(
        faults,
        [at(
            first.page,
            &format!("the page is used twice, the second time by page {root}")
        )]
    );
    let value = (0..image.bytes.len() / PAGE).find(|page| image.bytes[page * PAGE + 8] == Kind::Overflow as u8);
    let value = value.expect("a long value") as u32;
    let mut image = Image::new();
    let faults = image
        .change_child(0, |child| (child.page, child.pages) = (value, 2))
        .faults();
    assert!(
        faults[0].contains("page of kind 4 where kind 2 (Leaf) belongs"),
        "{faults:?}"
    );
}

#[test]
fn pages_that_are_not_there() {
    let mut image = Image::new();
    let (root, pages) = (image.root().page, image.meta.page_count);
    let faults = image.change_child(2, |child| child.page = pages).faults();
    assert_eq!(
        faults,
        [at(
            root,
            &format!("it refers to page {pages}, which the file does not have")
        )]
    );
    let mut image = Image::new();
    let list = image.meta.free_list.expect("something is free").0;
    let faults = image.change_free_list(|list| put_u32(list, HEADER + 4, pages)).faults();
    assert_eq!(faults, [at(list, "free run 0 is out of order or beyond the file")]);
    let faults = image.change_free_list(|list| put_u32(list, 16, 1000)).faults();
    assert_eq!(faults, [at(list, "free list of 1000 runs does not fit its extent")]);
}

#[test]
fn counts_and_marks_of_subtrees() {
    let mut image = Image::new();
    let child = image.child(1);
    let faults = image.change_child(1, |child| child.entries += 1).faults();
    assert_eq!(
        faults,
        [at(
            child.page,
            &format!("{} entries where {} are counted", child.entries, child.entries + 1)
        )]
    );
    let mut image = Image::new();
    let (root, level) = image.meta.root.expect("not empty");
    let faults = image
        .change_meta(|meta| {
            meta.root = Some((
                NodeRef {
                    overflow: false,
                    ..root
                },
                level,
            ))
        })
        .faults();
    assert_eq!(
        faults,
        [at(root.page, "the mark for values outside the leaves is wrong")]
    );
}

#[test]
fn order_of_keys() {
    // Two slots of a leaf change places; heads and cells go with them.
    let mut image = Image::new();
    let leaf = image.child(1).page;
    let faults = image
        .change_leaf(1, |leaf| {
            let slot = HEADER + get_u32(leaf, 20) as usize;
            let (first, second) = leaf[slot..slot + 12].split_at_mut(6);
            first.swap_with_slice(second);
        })
        .faults();
    assert_eq!(faults, [at(leaf, "key 1 is out of order")]);
    // Two children change places: their keys are not those between the separators.
    let mut image = Image::new();
    let (first, second) = (image.child(1), image.child(2));
    image.change_child(1, |child| *child = second);
    let faults = image.change_child(2, |child| *child = first).faults();
    assert!(
        faults[0].starts_with(&at(second.page, "key 0 is out of order")),
        "{faults:?}"
    );
    let mut image = Image::new();
    let root = image.root().page;
    let faults = image
        .change_root(|root| {
            let slot = HEADER + get_u32(root, 20) as usize;
            let (first, second) = root[slot..slot + 12].split_at_mut(6);
            first.swap_with_slice(second);
        })
        .faults();
    assert!(faults.contains(&at(root, "separator 1 is out of order")), "{faults:?}");
}
