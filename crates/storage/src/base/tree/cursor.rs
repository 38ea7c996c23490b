//! A position in one version of the tree.

use std::cell::OnceCell;
use std::sync::Arc;

use super::super::{BaseBytes, BaseCursor, Result};
use super::DEPTH_MAX;
use super::frame::Page;
use super::page::{OverflowRef, ValueAt};
use super::version::Version;

/// Holds the leaf it is in and, for the levels above, only the index of the child taken: nodes above are found again from
/// the root through pointers, which costs less than counting references to them at each seek.
pub(crate) struct TreeCursor {
    version: Arc<Version>,
    /// `path[level]` is the child taken at the interior node of `level`.
    path: [u32; DEPTH_MAX],
    /// Leaf of the current or last position.
    leaf: Option<Arc<Page>>,
    at: usize,
    valid: bool,
    key: Vec<u8>,
    value_start: u32,
    value_len: u32,
    overflow: Option<OverflowRef>,
    /// The value, when it is stored outside the leaf and has been asked for.
    loaded: OnceCell<BaseBytes>,
}

impl TreeCursor {
    pub(crate) fn new(version: Arc<Version>) -> TreeCursor {
        TreeCursor {
            version,
            path: [0; DEPTH_MAX],
            leaf: None,
            at: 0,
            valid: false,
            key: Vec::new(),
            value_start: 0,
            value_len: 0,
            overflow: None,
            loaded: OnceCell::new(),
        }
    }

    /// Goes to entry `at` of the current leaf.
    #[inline]
    fn settle(&mut self, at: usize) -> Result<bool> {
        let Some(leaf) = &self.leaf else {
            return Ok(false);
        };
        leaf.suffix_into(at, &mut self.key);
        if self.overflow.take().is_some() {
            self.loaded.take();
        }
        match leaf.value(at) {
            ValueAt::Inline { start, len } => (self.value_start, self.value_len) = (start, len),
            ValueAt::Overflow(overflow) => {
                (self.value_start, self.value_len) = (0, overflow.len);
                self.overflow = Some(overflow);
            }
        }
        self.at = at;
        self.valid = true;
        Ok(true)
    }

    fn enter(&mut self, leaf: Arc<Page>) {
        self.key.clear();
        self.key.extend_from_slice(leaf.prefix());
        self.leaf = Some(leaf);
    }

    /// Enters the leaf that holds `key` if any does, and searches it. `None` for the empty tree.
    fn find(&mut self, key: &[u8]) -> Result<Option<(usize, bool)>> {
        self.valid = false;
        if let Some(leaf) = &self.leaf {
            let (at, exact) = leaf.search(key);
            if exact || (at > 0 && at < leaf.count()) {
                return Ok(Some((at, exact)));
            }
            // Between two separators of the node above is the child between them, whatever the levels above hold.
            if let Some(parent) = self.version.inner(&self.path, 1)? {
                let i = parent.page.child_of(key);
                if i > 0 && i + 1 < parent.page.children() {
                    let leaf = self.version.store.leaf(&parent.kids, i, || parent.page.child(i))?;
                    self.path[1] = i as u32;
                    let found = leaf.search(key);
                    self.enter(leaf);
                    return Ok(Some(found));
                }
            }
        }
        let path = &mut self.path;
        let Some(leaf) = self
            .version
            .leaf_of(key, |level, _, i| path[usize::from(level)] = i as u32)?
        else {
            return Ok(None);
        };
        let found = leaf.search(key);
        self.enter(leaf);
        Ok(Some(found))
    }

    /// Enters the first or last leaf below the interior node of `level` on the path, or of the tree if `level` is 0.
    fn descend(&mut self, level: u8, forward: bool) -> Result<bool> {
        let Some((root, top)) = self.version.root else {
            return Ok(false);
        };
        let version = self.version.clone();
        if top == 0 {
            let leaf = version.store.leaf(&version.kids, 0, || root)?;
            self.enter(leaf);
            return Ok(true);
        }
        let below = if level == 0 { top + 1 } else { level };
        for at in (1..below).rev() {
            let Some(inner) = version.inner(&self.path, at)? else {
                return Ok(false);
            };
            self.path[usize::from(at)] = if forward { 0 } else { inner.page.children() as u32 - 1 };
        }
        let Some(parent) = version.inner(&self.path, 1)? else {
            return Ok(false);
        };
        let i = self.path[1] as usize;
        let leaf = version.store.leaf(&parent.kids, i, || parent.page.child(i))?;
        self.enter(leaf);
        Ok(true)
    }

    /// Enters the leaf next to the current one; `false` at the end of the tree.
    fn step(&mut self, forward: bool) -> Result<bool> {
        let Some((_, top)) = self.version.root else {
            return Ok(false);
        };
        for level in 1..=top {
            let taken = self.path[usize::from(level)];
            let children = match self.version.inner(&self.path, level)? {
                Some(inner) => inner.page.children() as u32,
                None => return Ok(false),
            };
            let next = if forward {
                Some(taken + 1).filter(|i| *i < children)
            } else {
                taken.checked_sub(1)
            };
            if let Some(next) = next {
                self.path[usize::from(level)] = next;
                return self.descend(level, forward);
            }
        }
        Ok(false)
    }

    fn edge(&mut self, forward: bool) -> Result<bool> {
        self.valid = false;
        Ok(self.descend(0, forward)? && self.settle_at_edge(forward)?)
    }

    /// Goes to the first or last entry of the current leaf.
    fn settle_at_edge(&mut self, forward: bool) -> Result<bool> {
        let last = self.leaf.as_ref().map_or(0, |leaf| leaf.count() - 1);
        self.settle(if forward { 0 } else { last })
    }

    /// A step that failed half way leaves a path that does not belong to the leaf.
    fn forget_on_error<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.leaf = None;
            self.valid = false;
        }
        result
    }

    fn step_entry(&mut self, forward: bool) -> Result<bool> {
        self.valid = false;
        // At the end the path and the leaf stay those of the last entry.
        Ok(self.step(forward)? && self.settle_at_edge(forward)?)
    }

    fn seek_entry(&mut self, key: &[u8], forward: bool) -> Result<bool> {
        let Some((at, exact)) = self.find(key)? else {
            return Ok(false);
        };
        let count = self.leaf.as_ref().map_or(0, |leaf| leaf.count());
        let target = if forward || exact {
            Some(at).filter(|at| *at < count)
        } else {
            at.checked_sub(1)
        };
        match target {
            Some(target) => self.settle(target),
            None => self.step_entry(forward),
        }
    }
}

impl BaseCursor for TreeCursor {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let result = self.seek_entry(key, true);
        self.forget_on_error(result)
    }

    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        let result = self.seek_entry(key, false);
        self.forget_on_error(result)
    }

    fn first(&mut self) -> Result<bool> {
        let result = self.edge(true);
        self.forget_on_error(result)
    }

    fn last(&mut self) -> Result<bool> {
        let result = self.edge(false);
        self.forget_on_error(result)
    }

    fn next(&mut self) -> Result<bool> {
        if !self.valid {
            return Ok(false);
        }
        if self.leaf.as_ref().is_some_and(|leaf| self.at + 1 < leaf.count()) {
            return self.settle(self.at + 1);
        }
        let result = self.step_entry(true);
        self.forget_on_error(result)
    }

    fn prev(&mut self) -> Result<bool> {
        if !self.valid {
            return Ok(false);
        }
        if let Some(at) = self.at.checked_sub(1) {
            return self.settle(at);
        }
        let result = self.step_entry(false);
        self.forget_on_error(result)
    }

    fn is_valid(&self) -> bool {
        self.valid
    }

    fn key(&self) -> &[u8] {
        if self.valid { &self.key } else { &[] }
    }

    fn value(&self) -> Result<&[u8]> {
        match &self.leaf {
            Some(leaf) if self.valid => match &self.overflow {
                None => Ok(&leaf.bytes()[self.value_start as usize..][..self.value_len as usize]),
                Some(at) => self.load(at).map(BaseBytes::as_slice),
            },
            _ => Ok(&[]),
        }
    }

    fn value_bytes(&self) -> Result<BaseBytes> {
        match &self.leaf {
            Some(leaf) if self.valid => match &self.overflow {
                None => Ok(BaseBytes::new(leaf.clone(), self.value_start, self.value_len)),
                Some(at) => self.load(at).cloned(),
            },
            _ => Ok(Vec::new().into()),
        }
    }

    fn value_len(&self) -> usize {
        if self.valid { self.value_len as usize } else { 0 }
    }
}

impl TreeCursor {
    fn load(&self, at: &OverflowRef) -> Result<&BaseBytes> {
        match self.loaded.get() {
            Some(value) => Ok(value),
            None => {
                let value = self.version.store.overflow(at)?;
                Ok(self.loaded.get_or_init(|| value))
            }
        }
    }
}
