//! Making nodes from an ascending run of items: entries into leaves, children into interior nodes.
//!
//! A [`Builder`] buffers up to two nodes' worth. Beyond that it emits one full node, so appended rows make full pages. When
//! it is closed, what is left becomes one node, or two of which neither is nearly empty. So a run that is closed with
//! at least [`underfull`](Builder::is_underfull) bytes leaves no node that needs merging with a neighbour.

use std::ops::Range;
use std::sync::Arc;

use super::super::{Packing, Result};
use super::frame::Page;
use super::node::{Inner, Kids, Resident};
use super::out::{Out, Spare};
use super::page::{
    HEADER, Kind, NARROW_MAX, NodeRef, REF_BYTES, common_prefix, head_of, put_header, put_u32, put_varint, seal,
    varint_len,
};
use super::space::Space;
use super::store::Store;

/// A node below this share of a page is merged with its right neighbour.
const UNDERFULL_PERCENT: usize = 40;
/// Least share of a page that the last of two nodes gets when a run is closed.
const LAST_PERCENT: usize = 45;

/// Pages that a packed leaf is to take at most, and what it is made of at most: more is more to pack for each change.
const PACKED_PAGES: usize = 3;
const UNPACKED_PAGES: usize = 8;
/// Share of them that is aimed at, since leaves pack differently.
const PACKED_PERCENT: usize = 97;

/// Bytes of a full node; of a leaf that will be packed at least.
pub(crate) fn full_bytes(store: &Store, packs: bool) -> usize {
    match packs {
        true => PACKED_PAGES * store.page_bytes,
        false => store.page_bytes,
    }
}

/// One entry or one child. Its key, and for entries what follows the key in the cell, lie in the builder's arena.
#[derive(Debug)]
struct Item {
    at: u32,
    /// For a child: its separator, a key that is greater than all before the child and not greater than its first.
    key_len: u32,
    /// Bytes behind the key: the value part of a cell.
    tail_len: u32,
    /// Entries it stands for.
    entries: u64,
    overflow: bool,
    child: Option<(NodeRef, Resident)>,
}

/// A node that has been written, for the level above.
#[derive(Debug)]
pub(crate) struct Made {
    pub node: NodeRef,
    pub resident: Resident,
}

#[derive(Debug)]
pub(crate) struct Builder<'a> {
    /// Level of the nodes made: 0 makes leaves.
    level: u8,
    page_bytes: usize,
    /// Bytes of a full packed leaf: about as many as make [`PACKED_PAGES`] when they are packed.
    full_packed: usize,
    /// What is packed; `None` for nodes that never are.
    packing: Option<&'a Packing>,
    /// Whether the node that begins with the first item will be packed.
    packs: bool,
    arena: Vec<u8>,
    items: Vec<Item>,
    /// Lower bound of the first item: becomes the separator of the first node made. For leaves only; children bring theirs.
    bound: Vec<u8>,
    /// Prefix that all buffered keys share, and the size of a node that held them all.
    prefix_len: usize,
    node_bytes: usize,
    /// Leaves to be made that go into the cache.
    warm: u32,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(level: u8, store: &Store, packing: &'a Packing) -> Builder<'a> {
        Builder {
            level,
            page_bytes: store.page_bytes,
            full_packed: full_bytes(store, true),
            packing: (store.packs && level == 0).then_some(packing),
            packs: false,
            arena: Vec::new(),
            items: Vec::new(),
            bound: Vec::new(),
            prefix_len: 0,
            node_bytes: 0,
            warm: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether closing now would leave a node that should be merged with its neighbour instead.
    pub(crate) fn is_underfull(&self) -> bool {
        !self.items.is_empty() && self.node_bytes * 100 < self.full(self.packs) * UNDERFULL_PERCENT
    }

    /// Whether there is enough for a full node and more.
    pub(crate) fn is_over(&self) -> bool {
        self.node_bytes > 2 * self.full(self.packs) && self.items.len() > 2
    }

    /// The next `leaves` leaves to be made are worth keeping in memory, since readers had those they replace there.
    pub(crate) fn keep_warm(&mut self, leaves: u32) {
        self.warm = self.warm.max(leaves);
    }

    /// All keys pushed from here on, if nothing is buffered, are `>= bound`, all pushed before are less.
    pub(crate) fn set_bound(&mut self, bound: &[u8]) {
        if self.items.is_empty() {
            self.bound.clear();
            self.bound.extend_from_slice(bound);
        }
    }

    /// Adds an entry; `tail` is the value part of its cell.
    pub(crate) fn push_entry(&mut self, key: &[u8], tail: (&[u8], &[u8]), overflow: bool) {
        let item = Item {
            at: self.arena.len() as u32,
            key_len: key.len() as u32,
            tail_len: (tail.0.len() + tail.1.len()) as u32,
            entries: 1,
            overflow,
            child: None,
        };
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(tail.0);
        self.arena.extend_from_slice(tail.1);
        self.push(item);
    }

    /// Adds a child with its separator.
    pub(crate) fn push_child(&mut self, separator: &[u8], node: NodeRef, resident: Resident) {
        let item = Item {
            at: self.arena.len() as u32,
            key_len: separator.len() as u32,
            tail_len: 0,
            entries: node.entries,
            overflow: node.overflow,
            child: Some((node, resident)),
        };
        self.arena.extend_from_slice(separator);
        self.push(item);
    }

    fn push(&mut self, item: Item) {
        self.items.push(item);
        let i = self.items.len() - 1;
        if i == 0 {
            self.packs = self.packs_at(0);
        }
        let first = self.first_key(0);
        if i > first && self.key(i).starts_with(&self.key(first)[..self.prefix_len]) {
            self.node_bytes += self.fixed_bytes() + self.cell_bytes(i, self.prefix_len);
        } else {
            (self.prefix_len, self.node_bytes) = self.measure(0, i + 1);
        }
    }

    /// Whether the node that begins with item `i` is packed, and with it the few items of another policy that may follow in it.
    fn packs_at(&self, i: usize) -> bool {
        self.packing.is_some_and(|packing| packing.packs(self.key(i)))
    }

    /// Bytes of a full node.
    fn full(&self, packs: bool) -> usize {
        if packs { self.full_packed } else { self.page_bytes }
    }

    fn key(&self, i: usize) -> &[u8] {
        let item = &self.items[i];
        &self.arena[item.at as usize..][..item.key_len as usize]
    }

    /// First item of a node beginning with item `i` whose key is stored: an interior node has no key for its first child.
    fn first_key(&self, i: usize) -> usize {
        i + usize::from(self.level > 0)
    }

    fn fixed_bytes(&self) -> usize {
        if self.level > 0 { REF_BYTES } else { 0 }
    }

    /// Bytes of the slot and cell of item `i` with narrow slots.
    fn cell_bytes(&self, i: usize, prefix_len: usize) -> usize {
        let item = &self.items[i];
        let suffix = item.key_len as usize - prefix_len;
        6 + varint_len(suffix as u32) + suffix.saturating_sub(4) + item.tail_len as usize
    }

    /// Prefix length and bytes of a node of items `from..to`.
    fn measure(&self, from: usize, to: usize) -> (usize, usize) {
        let keys = self.first_key(from)..to;
        let prefix_len = match keys.len() {
            0 => 0,
            _ => common_prefix(self.key(keys.start), self.key(keys.end - 1)),
        };
        let count = keys.len();
        let cells: usize = keys.map(|i| self.cell_bytes(i, prefix_len)).sum();
        let bytes = HEADER + (to - from) * self.fixed_bytes() + prefix_len + cells;
        // Wide slots have two more bytes.
        (prefix_len, if bytes > NARROW_MAX { bytes + 2 * count } else { bytes })
    }

    /// Pages that a node of `bytes` needs.
    fn pages(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.page_bytes)
    }

    /// End of the longest run from item `from` that makes one node: a full one, or of as many pages as its first items need.
    fn fit(&self, from: usize) -> usize {
        let least = (from + 1 + usize::from(self.level > 0)).min(self.items.len());
        let (mut prefix_len, mut bytes) = self.measure(from, least);
        let full = self.full(self.packs_at(from));
        let room = match bytes <= full {
            true => full,
            false => self.pages(bytes) * self.page_bytes,
        };
        let wide = if room > NARROW_MAX { 2 } else { 0 };
        for i in least..self.items.len() {
            let first = self.first_key(from);
            if i > first && self.key(i).starts_with(&self.key(first)[..prefix_len]) {
                bytes += self.fixed_bytes() + self.cell_bytes(i, prefix_len) + wide;
            } else {
                (prefix_len, bytes) = self.measure(from, i + 1);
                if bytes <= NARROW_MAX {
                    bytes += wide * (i + 1 - from);
                }
            }
            if bytes > room {
                return i;
            }
        }
        self.items.len()
    }

    /// Makes one full node of the first items.
    pub(crate) fn emit(&mut self, space: &mut Space, out: &mut Out<'_>, above: &mut Builder<'_>) -> Result<()> {
        // At least one item stays: the lower bound of the next page is made from it.
        let end = self.fit(0).min(self.items.len() - 1);
        self.make(0, end, space, out, above)?;
        self.forget(end);
        Ok(())
    }

    /// Makes nodes of all items. `last` says that nothing comes behind them in the tree: then all nodes but the last are
    /// full, because more will be appended there.
    pub(crate) fn close(
        &mut self,
        last: bool,
        space: &mut Space,
        out: &mut Out<'_>,
        above: &mut Builder<'_>,
    ) -> Result<()> {
        let mut from = 0;
        while from < self.items.len() {
            let mut end = self.fit(from);
            if end < self.items.len() && !last {
                end = self.balance(from, end);
            }
            self.make(from, end, space, out, above)?;
            from = end;
        }
        self.forget(from);
        self.warm = 0;
        Ok(())
    }

    /// Moves the end of a node from `end` down until what is left for the next is worth a page of its own.
    fn balance(&self, from: usize, mut end: usize) -> usize {
        let full = self.full(self.packs_at(from));
        let enough = full * LAST_PERCENT / 100;
        let mut rest = self.measure(end, self.items.len()).1;
        while rest < enough && end > from + 2 {
            let moved = self.fixed_bytes() + self.cell_bytes(end - 1, 0);
            if rest + moved > full {
                break;
            }
            rest += moved;
            end -= 1;
        }
        end
    }

    /// Writes the node of items `from..to` and hands it to the level above.
    fn make(
        &mut self,
        from: usize,
        to: usize,
        space: &mut Space,
        out: &mut Out<'_>,
        above: &mut Builder<'_>,
    ) -> Result<()> {
        let (prefix_len, bytes) = self.measure(from, to);
        let pages = self.pages(bytes) as u32;
        let mut node = NodeRef {
            pages,
            overflow: self.items[from..to].iter().any(|item| item.overflow),
            entries: self.items[from..to].iter().map(|item| item.entries).sum(),
            ..NodeRef::default()
        };
        let store = out.store;
        let kept = if self.packs_at(from) {
            let mut leaf = std::mem::take(&mut out.leaf);
            leaf.clear();
            leaf.resize(pages as usize * self.page_bytes, 0);
            self.fill(&mut leaf, from, to, prefix_len, 0);
            let put = out.leaf(space, &mut leaf, true)?;
            (node.page, node.pages, node.crc) = (put.page, put.pages, put.crc);
            self.adapt(bytes, put.bytes);
            let kept = self.kept(&leaf, &mut out.spare, from..to, node.page, store)?;
            out.leaf = leaf;
            kept
        } else {
            node.page = space.allocate(pages)?;
            let (extent, spare) = out.extent_and_spare(node.page, pages)?;
            self.fill(extent, from, to, prefix_len, node.page);
            node.crc = seal(extent);
            self.kept(extent, spare, from..to, node.page, store)?
        };
        let page = node.page;
        let resident = match kept {
            None => Resident::Nothing,
            Some(leaf) if self.level == 0 => out.keep_leaf(page, leaf),
            Some(inner) => Resident::Inner(Arc::new(Inner {
                page: inner,
                kids: Kids::taking(self.residents(from..to).cloned(), self.level - 1),
            })),
        };
        if self.level > 0 {
            above.push_child(self.key(from), node, resident);
        } else {
            above.push_child(&self.bound, node, resident);
            if to < self.items.len() {
                // The shortest prefix of the next key that is greater than the last key of this leaf.
                let next = self.key(to);
                let len = common_prefix(self.key(to - 1), next) + 1;
                self.bound = next[..len].to_vec();
            }
        }
        Ok(())
    }

    /// A leaf of so many bytes took so many of the file: makes the next ones fill their pages.
    fn adapt(&mut self, bytes: usize, packed: usize) {
        // What is small packs badly and says little of full leaves.
        if bytes * 2 >= self.full_packed {
            // What a page of the file holds.
            let page = (self.page_bytes * PACKED_PERCENT / 100 * bytes / packed).max(1);
            let most = UNPACKED_PAGES * self.page_bytes;
            let pages = (most / page).clamp(1, PACKED_PAGES);
            let wanted = (pages * page).clamp(PACKED_PAGES * self.page_bytes, most);
            self.full_packed = (3 * self.full_packed + wanted) / 4;
        }
    }

    fn fill(&self, bytes: &mut [u8], from: usize, to: usize, prefix_len: usize, page: u32) {
        let kind = if self.level == 0 { Kind::Leaf } else { Kind::Interior };
        put_header(
            bytes,
            page,
            kind,
            self.level,
            self.pages(bytes.len()) as u32,
            (to - from) as u32,
        );
        let wide = bytes.len() > NARROW_MAX;
        let stride = if wide { 8 } else { 6 };
        let keys = self.first_key(from)..to;
        if !keys.is_empty() {
            bytes[HEADER..][..prefix_len].copy_from_slice(&self.key(keys.start)[..prefix_len]);
        }
        put_u32(bytes, 20, prefix_len as u32);
        let mut slot = HEADER + prefix_len;
        let mut at = slot + keys.len() * stride;
        for (node, _) in self.items[from..to].iter().filter_map(|item| item.child.as_ref()) {
            node.encode(&mut bytes[at..][..REF_BYTES]);
            at += REF_BYTES;
        }
        for i in keys {
            let item = &self.items[i];
            let suffix = &self.key(i)[prefix_len..];
            put_u32(bytes, slot, head_of(suffix));
            if wide {
                put_u32(bytes, slot + 4, at as u32);
            } else {
                bytes[slot + 4..][..2].copy_from_slice(&(at as u16).to_le_bytes());
            }
            slot += stride;
            at = put_varint(bytes, at, suffix.len() as u32);
            let rest = suffix.get(4..).unwrap_or(&[]);
            bytes[at..][..rest.len()].copy_from_slice(rest);
            at += rest.len();
            let tail = &self.arena[(item.at + item.key_len) as usize..][..item.tail_len as usize];
            bytes[at..][..tail.len()].copy_from_slice(tail);
            at += tail.len();
        }
        put_u32(bytes, 24, at as u32);
    }

    /// The new node, if it stays in memory: leaves that replace cached ones or for which there is room, and interior nodes
    /// with anything below them.
    fn kept(
        &mut self,
        bytes: &[u8],
        spare: &mut Spare,
        items: Range<usize>,
        page: u32,
        store: &Store,
    ) -> Result<Option<Page>> {
        let keep = match self.level {
            0 => self.warm > 0 || store.cache.has_room(page, bytes.len()),
            _ => self.residents(items).any(Resident::is_something),
        };
        if !keep {
            return Ok(None);
        }
        let made = Page::made(spare.copy_of(bytes), self.level).map_err(|reason| store.corrupt(page, reason))?;
        if self.warm > 0 {
            self.warm -= 1;
            made.touch();
        }
        Ok(Some(made))
    }

    /// The parts of these children that are in memory.
    fn residents(&self, children: Range<usize>) -> impl Iterator<Item = &Resident> {
        let children = self.items[children].iter().filter_map(|item| item.child.as_ref());
        children.map(|(_, resident)| resident)
    }

    /// Drops the first `count` items.
    fn forget(&mut self, count: usize) {
        let start = self.items.get(count).map_or(self.arena.len(), |item| item.at as usize);
        self.items.drain(..count);
        self.arena.drain(..start);
        for item in &mut self.items {
            item.at -= start as u32;
        }
        self.packs = !self.items.is_empty() && self.packs_at(0);
        (self.prefix_len, self.node_bytes) = if self.items.is_empty() {
            (0, 0)
        } else {
            self.measure(0, self.items.len())
        };
    }

    /// The only child, with what is in memory of it, when the builder holds just that.
    pub(crate) fn take_only(&mut self) -> Option<Made> {
        let (node, resident) = match &mut self.items[..] {
            [item] => item.child.take()?,
            _ => return None,
        };
        self.forget(1);
        Some(Made { node, resident })
    }
}
