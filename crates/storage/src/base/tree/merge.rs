//! One transaction: walks the old tree in key order together with the changes, and makes the new one from the left to the
//! right and from the leaves up.
//!
//! A subtree whose range no change touches goes into the new tree as it is, by reference. Leaves with changes are read and
//! merged; interior nodes above them are taken apart into their children. `builders[l]` makes nodes of level `l`; a
//! subtree of level `l` can be referred to only when the builders up to `l` are empty, so they are closed first. If one of
//! them holds too little for a page, the subtree is taken apart as well and its first leaf merges with what is there.

use std::ops::Range;
use std::sync::{Arc, Weak};

use super::super::{ApplyStats, BaseError, Change, ChangeSource, KeyRange, Packing, Result, check_change};
use super::DEPTH_MAX;
use super::build::{Builder, Made, full_bytes};
use super::frame::Page;
use super::node::{Kids, Resident};
use super::out::{Out, Spare};
use super::page::{HEADER, NodeRef, OverflowRef, ValueAt, put_varint, varint_len};
use super::space::Space;
use super::store::Store;

/// A value this short stays in its leaf however long its key is: a reference would not be shorter.
const INLINE_ALWAYS: usize = 16;

pub(crate) struct Merger<'a, 's> {
    store: &'a Store,
    packing: &'a Packing,
    space: &'s mut Space,
    out: Out<'a>,
    builders: Vec<Builder<'a>>,
    deletions: &'a [KeyRange<'a>],
    /// Key of the last change, to notice changes that don't ascend.
    last_change: Option<Vec<u8>>,
    key: Vec<u8>,
    /// Leaves in memory that the new tree does not have.
    stale: StaleLeaves,
    stats: ApplyStats,
}

/// A node of the old tree: where it is in memory, what refers to it, and the keys it may hold.
#[derive(Clone, Copy)]
struct Place<'t> {
    kids: &'t Kids,
    index: usize,
    node: NodeRef,
    level: u8,
    low: &'t [u8],
    high: Option<&'t [u8]>,
}

impl<'t> Place<'t> {
    fn is_below_end(&self, key: &[u8]) -> bool {
        self.high.is_none_or(|high| key < high)
    }

    fn resident(&self) -> Resident {
        self.kids.resident(self.index)
    }
}

/// Leaves in memory by their page.
pub(crate) type StaleLeaves = Vec<(u32, Weak<Page>)>;

/// The result of a merge. Some of it may still be in the buffer of `out`.
pub(crate) struct Merged<'a> {
    /// The root of the new tree, with what is in memory of it, and its level; `None` for the empty tree.
    pub root: Option<(Made, u8)>,
    pub out: Out<'a>,
    pub stale: StaleLeaves,
    pub stats: ApplyStats,
}

impl<'a, 's> Merger<'a, 's> {
    pub(crate) fn new(
        store: &'a Store,
        space: &'s mut Space,
        spare: Spare,
        packing: &'a Packing,
        deletions: &'a [KeyRange<'a>],
    ) -> Merger<'a, 's> {
        Merger {
            store,
            space,
            out: Out::new(store, spare),
            builders: vec![Builder::new(0, store, packing), Builder::new(1, store, packing)],
            packing,
            deletions,
            last_change: None,
            key: Vec::new(),
            stale: Vec::new(),
            stats: ApplyStats::default(),
        }
    }

    /// Merges `changes` into the tree of `root`, all of whose memory is below `kids`, and writes the new tree.
    pub(crate) fn run(
        mut self,
        kids: &Kids,
        root: Option<(NodeRef, u8)>,
        changes: &mut dyn ChangeSource,
    ) -> Result<Merged<'a>> {
        match root {
            Some((node, level)) => self.node(
                Place {
                    kids,
                    index: 0,
                    node,
                    level,
                    low: &[],
                    high: None,
                },
                changes,
            )?,
            None => self.additions(&[], None, changes)?,
        }
        let root = self.finish()?;
        Ok(Merged {
            root,
            out: self.out,
            stale: self.stale,
            stats: self.stats,
        })
    }

    fn node(&mut self, place: Place<'_>, changes: &mut dyn ChangeSource) -> Result<()> {
        while let [first, rest @ ..] = self.deletions
            && first.end.is_some_and(|end| end <= place.low)
        {
            self.deletions = rest;
        }
        let deletions = self.deletions;
        let changed = changes.current().is_some_and(|change| place.is_below_end(change.key));
        let deletion = deletions.first().filter(|range| place.is_below_end(range.start));
        match deletion {
            None if !changed => self.keep(place),
            Some(range)
                if range.start <= place.low
                    && range.end.is_none_or(|end| place.high.is_some_and(|high| high <= end)) =>
            {
                self.stats.range_removed += place.node.entries;
                self.drop_node(place)?;
                self.additions(place.low, place.high, changes)
            }
            _ if place.level == 0 => self.leaf(place, changes),
            _ => self.take_apart(place, |merger, child| merger.node(child, changes)),
        }
    }

    /// Calls `visit` for each child of an interior node that the new tree does not refer to.
    fn take_apart(
        &mut self,
        place: Place<'_>,
        mut visit: impl FnMut(&mut Self, Place<'_>) -> Result<()>,
    ) -> Result<()> {
        let inner = self.store.inner(place.kids, place.index, place.level, || place.node)?;
        self.free(place.node);
        let children = inner.page.children();
        let (mut low, mut high) = (place.low.to_vec(), Vec::new());
        for index in 0..children {
            let last = index + 1 == children;
            if !last {
                inner.page.key_into(index, &mut high);
            }
            visit(
                self,
                Place {
                    kids: &inner.kids,
                    index,
                    node: inner.page.child(index),
                    level: place.level - 1,
                    low: &low,
                    high: if last { place.high } else { Some(&high) },
                },
            )?;
            std::mem::swap(&mut low, &mut high);
        }
        Ok(())
    }

    fn free(&mut self, node: NodeRef) {
        self.space.free(node.page, node.pages);
        self.stats.pages_freed += u64::from(node.pages);
    }

    /// Refers to an old subtree from the new tree, or takes it apart to merge it with what is before it.
    fn keep(&mut self, place: Place<'_>) -> Result<()> {
        if self.close_up_to(place.level)? {
            self.builder(place.level + 1)?
                .push_child(place.low, place.node, place.resident());
            return self.emit_full(place.level + 1);
        }
        if place.level > 0 {
            return self.take_apart(place, |merger, child| merger.keep(child));
        }
        let leaf = self.old_leaf(&place)?;
        self.copy(&leaf, 0..leaf.count(), &[])
    }

    /// Closes the builders of levels up to `level`; `false` if one of them holds too little for a page.
    fn close_up_to(&mut self, level: u8) -> Result<bool> {
        for at in 0..=level {
            if self.builder(at)?.is_underfull() {
                return Ok(false);
            }
            self.close(at, false)?;
        }
        Ok(true)
    }

    fn builder(&mut self, level: u8) -> Result<&mut Builder<'a>> {
        let level = usize::from(level);
        while self.builders.len() <= level + 1 {
            if self.builders.len() >= DEPTH_MAX {
                return Err(BaseError::TooLarge {
                    what: "depth of the tree",
                    len: self.builders.len(),
                    max: DEPTH_MAX,
                });
            }
            let level = self.builders.len() as u8;
            self.builders.push(Builder::new(level, self.store, self.packing));
        }
        Ok(&mut self.builders[level])
    }

    /// The builder of `level` and the one above, with what they need for writing.
    fn close(&mut self, level: u8, last: bool) -> Result<()> {
        if self.builder(level)?.is_empty() {
            return Ok(());
        }
        self.with_builders(level, |builder, above, space, out| {
            builder.close(last, space, out, above)
        })?;
        self.emit_full(level + 1)
    }

    /// Writes full nodes while a builder holds more than it should, level by level.
    fn emit_full(&mut self, mut level: u8) -> Result<()> {
        while self.builder(level)?.is_over() {
            while self.builder(level)?.is_over() {
                self.with_builders(level, |builder, above, space, out| builder.emit(space, out, above))?;
            }
            level += 1;
        }
        Ok(())
    }

    fn with_builders(
        &mut self,
        level: u8,
        work: impl FnOnce(&mut Builder, &mut Builder, &mut Space, &mut Out<'a>) -> Result<()>,
    ) -> Result<()> {
        self.builder(level)?;
        let (below, above) = self.builders.split_at_mut(usize::from(level) + 1);
        let before = above[0].len();
        work(&mut below[usize::from(level)], &mut above[0], self.space, &mut self.out)?;
        let made = (above[0].len() - before) as u64;
        match level {
            0 => self.stats.leaves_written += made,
            _ => self.stats.interiors_written += made,
        }
        Ok(())
    }

    /// Adds changes below `high` where the old tree has nothing.
    fn additions(&mut self, low: &[u8], high: Option<&[u8]>, changes: &mut dyn ChangeSource) -> Result<()> {
        self.builders[0].set_bound(low);
        while let Some(change) = changes.current()
            && high.is_none_or(|high| change.key < high)
        {
            self.check_order(&change)?;
            if let Some(value) = change.value {
                self.add(change.key, value)?;
                self.stats.inserted += 1;
            }
            changes.advance();
        }
        Ok(())
    }

    fn check_order(&mut self, change: &Change<'_>) -> Result<()> {
        check_change(change)?;
        match &mut self.last_change {
            Some(last) if change.key <= &last[..] => {
                return Err(BaseError::Unordered { what: "changes" });
            }
            Some(last) => {
                last.clear();
                last.extend_from_slice(change.key);
            }
            None => self.last_change = Some(change.key.to_vec()),
        }
        Ok(())
    }

    /// Puts a new entry behind all entries so far.
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // Two entries fit a page if each takes no more than half of what the header leaves.
        let inline = 6 + varint_len(key.len() as u32) + key.len() + varint_len(2 * value.len() as u32) + value.len();
        let half = |packs| (full_bytes(self.store, packs) - HEADER) / 2;
        if inline <= half(false) || value.len() <= INLINE_ALWAYS {
            return self.push_inline(key, value);
        }
        let packs = self.store.packs && self.packing.packs(key);
        if packs && inline <= half(true) {
            return self.push_inline(key, value);
        }
        let at = self.out.overflow(self.space, value, packs)?;
        self.push_reference(key, at)
    }

    fn push_inline(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut head = [0; 5];
        let len = put_varint(&mut head, 0, 2 * value.len() as u32);
        self.builders[0].push_entry(key, (&head[..len], value), false);
        self.emit_full(0)
    }

    fn push_reference(&mut self, key: &[u8], at: OverflowRef) -> Result<()> {
        let mut head = [0; 5];
        let len = put_varint(&mut head, 0, at.word());
        let reference = &at.encode()[..OverflowRef::bytes(at.word())];
        self.builders[0].push_entry(key, (&head[..len], reference), true);
        self.emit_full(0)
    }

    /// Reads an old leaf that the new tree does not refer to.
    fn old_leaf(&mut self, place: &Place<'_>) -> Result<Arc<Page>> {
        let leaf = self.peek_leaf(place)?;
        self.release_leaf(place);
        Ok(leaf)
    }

    /// A leaf for the merge's own use: it does not enter the cache.
    fn peek_leaf(&self, place: &Place<'_>) -> Result<Arc<Page>> {
        match place.kids.leaf(place.index) {
            Some(leaf) => Ok(leaf),
            None => Ok(Arc::new(self.store.read_node(place.node, 0)?)),
        }
    }

    /// The new tree does not refer to this leaf; those that replace it stay in memory if it was there.
    fn release_leaf(&mut self, place: &Place<'_>) {
        self.builders[0].set_bound(place.low);
        if self.retire_leaf(place) {
            // Two, since one leaf may become two.
            self.builders[0].keep_warm(2);
        }
    }

    /// The new tree does not refer to this leaf. Returns whether it is in memory.
    fn retire_leaf(&mut self, place: &Place<'_>) -> bool {
        self.free(place.node);
        let leaf = place.kids.leaf(place.index);
        self.stale
            .extend(leaf.iter().map(|leaf| (place.node.page, Arc::downgrade(leaf))));
        leaf.is_some()
    }

    fn leaf(&mut self, place: Place<'_>, changes: &mut dyn ChangeSource) -> Result<()> {
        let mut leaf = self.peek_leaf(&place)?;
        let dead = self.dead_entries(&leaf, &place);
        // A leaf in which nothing changes, because the keys to be removed are not there, is kept.
        let mut open = !dead.is_empty();
        if !open && let Some(bytes) = self.patch(&leaf, &place, changes)? {
            let is_over = changes.current().is_none_or(|change| !place.is_below_end(change.key));
            if is_over && self.close_up_to(0)? {
                return self.push_patched(place, &leaf, bytes);
            }
            // The changes left come behind those made, so what was patched takes the leaf's place.
            leaf = Arc::new(leaf.patched(bytes));
            open = true;
        }
        if open {
            self.release_leaf(&place);
        }
        let mut next = 0;
        while let Some(change) = changes.current()
            && place.is_below_end(change.key)
        {
            self.check_order(&change)?;
            let (at, exact) = leaf.search(change.key);
            if change.value.is_some() || exact {
                if !open {
                    open = true;
                    self.release_leaf(&place);
                }
                self.copy(&leaf, next..at, &dead)?;
                next = at + usize::from(exact);
                let was_there = exact && !is_dead(&dead, at);
                if exact {
                    self.drop_value(&leaf, at);
                    self.stats.range_removed += u64::from(!was_there);
                }
                match change.value {
                    Some(value) => {
                        self.add(change.key, value)?;
                        self.stats.replaced += u64::from(was_there);
                        self.stats.inserted += u64::from(!was_there);
                    }
                    None => self.stats.removed += u64::from(was_there),
                }
            }
            changes.advance();
        }
        if open {
            self.copy(&leaf, next..leaf.count(), &dead)
        } else {
            self.keep(place)
        }
    }

    /// Makes changes in a copy of a leaf as long as each replaces a value by one of the same length, which moves nothing:
    /// a copy costs much less than making a leaf of its entries. `None` if already the first change is another.
    fn patch(&mut self, leaf: &Page, place: &Place<'_>, changes: &mut dyn ChangeSource) -> Result<Option<Box<[u8]>>> {
        let mut bytes: Option<Box<[u8]>> = None;
        while let Some(change) = changes.current()
            && let Some(value) = change.value
            && place.is_below_end(change.key)
            && let (at, true) = leaf.search(change.key)
            && let ValueAt::Inline { start, len } = leaf.value(at)
            && len as usize == value.len()
        {
            self.check_order(&change)?;
            let bytes = bytes.get_or_insert_with(|| self.out.spare.copy_of(leaf.bytes()));
            bytes[start as usize..][..value.len()].copy_from_slice(value);
            self.stats.replaced += 1;
            changes.advance();
        }
        Ok(bytes)
    }

    /// Writes `bytes` in the place of a leaf of the old tree, and refers to them. The leaves before it are closed.
    fn push_patched(&mut self, place: Place<'_>, leaf: &Page, mut bytes: Box<[u8]>) -> Result<()> {
        let was_in_memory = self.retire_leaf(&place);
        leaf.key_into(0, &mut self.key);
        let packs = self.packing.packs(&self.key);
        let put = self.out.leaf(self.space, &mut bytes, packs)?;
        let page = put.page;
        let node = NodeRef {
            page,
            pages: put.pages,
            crc: put.crc,
            ..place.node
        };
        self.stats.leaves_written += 1;
        let mut resident = Resident::Nothing;
        if was_in_memory || self.store.cache.has_room(page, bytes.len()) {
            let leaf = leaf.patched(bytes);
            if was_in_memory {
                leaf.touch();
            }
            resident = self.out.keep_leaf(page, leaf);
        }
        self.builder(1)?.push_child(place.low, node, resident);
        self.emit_full(1)
    }

    /// Indices of the entries of a leaf that range deletions remove.
    fn dead_entries(&self, leaf: &Page, place: &Place<'_>) -> Vec<Range<usize>> {
        let ranges = self
            .deletions
            .iter()
            .take_while(|range| place.is_below_end(range.start));
        ranges
            .map(|range| leaf.search(range.start).0..range.end.map_or(leaf.count(), |end| leaf.search(end).0))
            .filter(|dead| !dead.is_empty())
            .collect()
    }

    /// Takes over entries of an old leaf but for those that are dead.
    fn copy(&mut self, leaf: &Page, entries: Range<usize>, dead: &[Range<usize>]) -> Result<()> {
        let mut key = std::mem::take(&mut self.key);
        for i in entries {
            if is_dead(dead, i) {
                self.drop_value(leaf, i);
                self.stats.range_removed += 1;
                continue;
            }
            leaf.key_into(i, &mut key);
            match leaf.value(i) {
                ValueAt::Inline { start, len } => {
                    self.push_inline(&key, &leaf.bytes()[start as usize..][..len as usize])?;
                }
                ValueAt::Overflow(at) => self.push_reference(&key, at)?,
            }
        }
        self.key = key;
        Ok(())
    }

    /// Frees what entry `i` of an old leaf has outside it.
    fn drop_value(&mut self, leaf: &Page, i: usize) {
        if let ValueAt::Overflow(at) = leaf.value(i) {
            let pages = at.pages(self.store.page_bytes);
            self.space.free(at.page, pages);
            self.stats.pages_freed += u64::from(pages);
        }
    }

    /// Frees a whole subtree. Leaves are read only where they refer to values outside.
    fn drop_node(&mut self, place: Place<'_>) -> Result<()> {
        if place.level > 0 {
            return self.take_apart(place, |merger, child| merger.drop_node(child));
        }
        if place.node.overflow {
            let leaf = self.peek_leaf(&place)?;
            for i in 0..leaf.count() {
                self.drop_value(&leaf, i);
            }
        }
        if let Some(leaf) = place.kids.leaf(place.index) {
            self.stale.push((place.node.page, Arc::downgrade(&leaf)));
        }
        self.free(place.node);
        Ok(())
    }

    /// Closes everything, level by level, up to the only node of the topmost.
    fn finish(&mut self) -> Result<Option<(Made, u8)>> {
        let mut level = 0;
        loop {
            let above_is_empty = self.builders[usize::from(level) + 1..].iter().all(Builder::is_empty);
            if level > 0 && above_is_empty {
                match self.builder(level)?.len() {
                    0 => return Ok(None),
                    1 => {
                        return Ok(self.builder(level)?.take_only().map(|made| (made, level - 1)));
                    }
                    _ => {}
                }
            }
            self.close(level, true)?;
            level += 1;
            self.builder(level)?;
        }
    }
}

fn is_dead(dead: &[Range<usize>], i: usize) -> bool {
    dead.iter().any(|range| range.contains(&i))
}
