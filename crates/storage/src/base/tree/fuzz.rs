//! The checks that the fuzz target of pages makes on an extent.

use super::frame::Page;
use super::meta::{self, Meta, PAGE_BYTES};
use super::pack;
use super::page::{HEADER, Kind};

/// Reads `bytes` as a node of each of the lowest levels, and as a meta page, and asks for all that is in it.
pub(crate) fn extent(bytes: &[u8]) {
    // Shorter ones are no page of any size.
    if bytes.len() < HEADER {
        return;
    }
    if bytes.len() > HEADER + 4
        && let Ok(leaf) = pack::unpacked(bytes, Kind::Leaf, 512)
    {
        let _ = Page::node(leaf, 0);
    }
    for level in 0..3 {
        let mut bytes = bytes.to_vec();
        bytes[9] = level;
        let Ok(page) = Page::node(bytes.into_boxed_slice(), level) else {
            continue;
        };
        let mut key = Vec::new();
        for i in 0..page.count() {
            page.key_into(i, &mut key);
            let (at, _) = page.search(&key);
            assert!(at <= page.count());
            match level {
                0 => drop(page.value(i)),
                _ => assert!(page.child_of(&key) < page.children()),
            }
        }
        if level > 0 {
            for i in 0..page.children() {
                let _ = (page.child(i), page.child_entries(i));
            }
        }
        let _ = (page.used(), page.search(b""), page.search(&[0xFF; 40]));
    }
    if let Some(size) = PAGE_BYTES.into_iter().rfind(|size| *size <= bytes.len()) {
        let mut page = bytes[..size].to_vec();
        let _ = Meta::decode(&page, 0);
        meta::mend(&mut page, 1);
        let _ = Meta::decode(&page, 1);
    }
}
