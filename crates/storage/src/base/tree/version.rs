//! One committed state of the tree: the snapshot that readers hold.

use std::sync::Arc;

use crate::ahead;

use super::super::{BaseBytes, BaseCursor, BaseSnapshot, KeyRange, NodePart, Result};
use super::cursor::TreeCursor;
use super::frame::Page;
use super::node::{Inner, Kids};
use super::page::{NodeRef, ValueAt};
use super::store::Store;

pub(crate) struct Version {
    pub(crate) store: Arc<Store>,
    pub(crate) txn: u64,
    /// Root node and its level; `None` for the empty tree.
    pub(crate) root: Option<(NodeRef, u8)>,
    /// The root as an only child.
    pub(crate) kids: Kids,
    pub(crate) meta: Vec<u8>,
}

impl Version {
    /// Interior node of `level` on the path that `path[l]`, the index of the child taken at each level `l` above it, gives.
    pub(crate) fn inner(&self, path: &[u32; super::DEPTH_MAX], level: u8) -> Result<Option<&Inner>> {
        let Some((root, top)) = self.root else {
            return Ok(None);
        };
        if level > top || level == 0 {
            return Ok(None);
        }
        let mut inner = self.store.inner(&self.kids, 0, top, || root)?;
        for at in (level..top).rev() {
            let i = path[usize::from(at) + 1] as usize;
            inner = self.store.inner(&inner.kids, i, at, || inner.page.child(i))?;
        }
        Ok(Some(inner))
    }

    /// The leaf that holds `key` if any does; `None` for the empty tree. `visit` sees each interior node on the way and
    /// the index of the child taken.
    #[inline]
    pub(crate) fn leaf_of(&self, key: &[u8], visit: impl FnMut(u8, &Inner, usize)) -> Result<Option<Arc<Page>>> {
        let Some((root, top)) = self.root else {
            return Ok(None);
        };
        if top == 0 {
            return self.store.leaf(&self.kids, 0, || root).map(Some);
        }
        let inner = self.store.inner(&self.kids, 0, top, || root)?;
        let (above, i) = self.above_leaf(inner, top, key, visit)?;
        self.store.leaf(&above.kids, i, || above.page.child(i)).map(Some)
    }

    /// The node right above the leaf that holds `key` if any does, and the index of the leaf, from the node `inner` of a level on.
    #[inline]
    fn above_leaf<'a>(
        &self,
        mut inner: &'a Inner,
        mut level: u8,
        key: &[u8],
        mut visit: impl FnMut(u8, &Inner, usize),
    ) -> Result<(&'a Inner, usize)> {
        loop {
            let i = inner.page.child_of(key);
            visit(level, inner, i);
            level -= 1;
            if level == 0 {
                return Ok((inner, i));
            }
            inner = self.store.inner(&inner.kids, i, level, || inner.page.child(i))?;
        }
    }

    /// The value of `key` in the leaf that holds it if any does.
    #[inline]
    fn value_in(&self, leaf: &Arc<Page>, key: &[u8]) -> Result<Option<BaseBytes>> {
        match leaf.search(key) {
            (i, true) => self.store.value(leaf, i).map(Some),
            _ => Ok(None),
        }
    }
}

impl Version {
    /// Adds the nodes of level 1 at or below a node that have keys of a range. None of the node's keys is less than `low`.
    fn nodes_below(
        &self,
        (node, inner, level): (NodeRef, &Inner, u8),
        low: Vec<u8>,
        range: KeyRange<'_>,
        found: &mut Vec<(NodeRef, Vec<u8>)>,
    ) -> Result<()> {
        if level == 1 {
            found.push((node, low));
            return Ok(());
        }
        let (first, last) = (
            inner.page.child_of(range.start),
            range.end.map(|end| inner.page.child_of(end)),
        );
        let mut key = Vec::new();
        for i in first..=last.unwrap_or(inner.page.children() - 1) {
            match i.checked_sub(1) {
                None => key.clone_from(&low),
                Some(before) => inner.page.key_into(before, &mut key),
            }
            // The end itself is not in the range.
            if range.end.is_some_and(|end| key.as_slice() >= end) {
                break;
            }
            let child = self.store.inner(&inner.kids, i, level - 1, || inner.page.child(i))?;
            self.nodes_below((inner.page.child(i), child, level - 1), key.clone(), range, found)?;
        }
        Ok(())
    }

    /// Adds the bytes of what a range has at or below a node, the `i`th of `kids`. What is at an `edge` of the range may be part of a leaf.
    fn bytes_below(
        &self,
        (kids, i, node, level): (&Kids, usize, NodeRef, u8),
        (range, edge): (KeyRange<'_>, bool),
        bytes: &mut u64,
    ) -> Result<()> {
        if level > 0 {
            let inner = self.store.inner(kids, i, level, || node)?;
            let first = inner.page.child_of(range.start);
            let last = range.end.map(|end| inner.page.child_of(end));
            let last = last.unwrap_or(inner.page.children() - 1);
            for child in first..=last {
                let place = (&inner.kids, child, inner.page.child(child), level - 1);
                let edge = edge && (child == first || child == last);
                self.bytes_below(place, (range, edge), bytes)?;
            }
            return Ok(());
        }
        let page_bytes = self.store.page_bytes as u64;
        let all = u64::from(node.pages) * page_bytes;
        if !edge && !node.overflow {
            *bytes += all;
            return Ok(());
        }
        let leaf = match kids.leaf(i) {
            Some(leaf) => leaf,
            None => Arc::new(self.store.read_node(node, 0)?),
        };
        let (first, end) = (leaf.search(range.start).0, range.end.map(|end| leaf.search(end).0));
        let entries = first..end.unwrap_or(leaf.count());
        *bytes += all * entries.len() as u64 / leaf.count() as u64;
        for entry in entries {
            if let ValueAt::Overflow(at) = leaf.value(entry) {
                *bytes += u64::from(at.pages(self.store.page_bytes)) * page_bytes;
            }
        }
        Ok(())
    }

    fn parts(&self, found: Vec<(NodeRef, Vec<u8>)>) -> Vec<NodePart> {
        let names = self.store.births.names(found.iter().map(|(node, _)| *node));
        let parts = names.into_iter().zip(found).map(|(name, (node, from))| NodePart {
            name,
            from,
            entries: node.entries,
        });
        parts.collect()
    }
}

impl BaseSnapshot for Version {
    fn get(&self, key: &[u8]) -> Result<Option<BaseBytes>> {
        match self.leaf_of(key, |_, _, _| ())? {
            Some(leaf) => self.value_in(&leaf, key),
            None => Ok(None),
        }
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<BaseBytes>>> {
        let Some((root, top)) = self.root.filter(|(_, top)| *top > 0) else {
            return keys.iter().map(|key| self.get(key)).collect();
        };
        // Step by step for all of them: what a step looks at was asked for in the one before.
        let mut places = Vec::with_capacity(keys.len());
        for key in keys {
            let inner = self.store.inner(&self.kids, 0, top, || root)?;
            let (above, i) = self.above_leaf(inner, top, key, |_, _, _| ())?;
            above.kids.ask_for_place(i);
            places.push((above, i));
        }
        places.iter().for_each(|(above, i)| above.kids.ask_for_leaf(*i));
        let mut leaves = Vec::with_capacity(keys.len());
        for (key, (above, i)) in keys.iter().zip(places) {
            let leaf = self.store.leaf(&above.kids, i, || above.page.child(i))?;
            leaf.ask_for_slot(key);
            leaves.push(leaf);
        }
        let mut found = Vec::with_capacity(keys.len());
        keys.iter().zip(&leaves).for_each(|(key, leaf)| leaf.ask_for_cell(key));
        for (key, leaf) in keys.iter().zip(&leaves) {
            let value = self.value_in(leaf, key)?;
            if let Some(value) = &value {
                ahead::ask_bytes(value);
            }
            found.push(value);
        }
        Ok(found)
    }

    fn cursor(self: Arc<Self>) -> Box<dyn BaseCursor> {
        Box::new(TreeCursor::new(self))
    }

    fn meta(&self) -> &[u8] {
        &self.meta
    }

    fn state(&self) -> u64 {
        self.txn
    }

    fn entries(&self) -> u64 {
        self.root.map_or(0, |(root, _)| root.entries)
    }

    fn nodes(&self, range: KeyRange<'_>) -> Result<Vec<NodePart>> {
        let mut found = Vec::new();
        if let Some((root, top)) = self.root.filter(|(_, top)| *top > 0) {
            let inner = self.store.inner(&self.kids, 0, top, || root)?;
            self.nodes_below((root, inner, top), Vec::new(), range, &mut found)?;
        }
        Ok(self.parts(found))
    }

    fn leaves(&self, from: &[u8]) -> Result<Vec<NodePart>> {
        let mut found = Vec::new();
        let (mut low, mut key) = (Vec::new(), Vec::new());
        self.leaf_of(from, |level, inner, taken| {
            if level > 1 {
                if let Some(before) = taken.checked_sub(1) {
                    inner.page.key_into(before, &mut low);
                }
                return;
            }
            for child in 0..inner.page.children() {
                match child.checked_sub(1) {
                    None => key.clone_from(&low),
                    Some(before) => inner.page.key_into(before, &mut key),
                }
                found.push((inner.page.child(child), key.clone()));
            }
        })?;
        Ok(self.parts(found))
    }

    fn stored_bytes(&self, range: KeyRange<'_>) -> Result<Option<u64>> {
        let mut bytes = 0;
        if let Some((root, top)) = self.root {
            self.bytes_below((&self.kids, 0, root, top), (range, true), &mut bytes)?;
        }
        Ok(Some(bytes))
    }

    fn rank(&self, key: &[u8]) -> Result<u64> {
        let mut before = 0;
        let leaf = self.leaf_of(key, |_, inner, taken| {
            before += (0..taken).map(|i| inner.page.child_entries(i)).sum::<u64>();
        })?;
        Ok(before + leaf.map_or(0, |leaf| leaf.search(key).0 as u64))
    }
}
