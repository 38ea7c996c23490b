//! How a tree is stored, for who keeps something that is derived of parts of it, such as columns.
//!
//! A part of the base stays the same as long as its name does, whatever commits and checkpoints do to others; what is above the base is known
//! key by key. So what was derived of a part is exact for a snapshot that has the part, but for the keys that are above.

use crate::base::{BaseSnapshot, KeyRange, NodeName, NodePart};
use crate::cursor::{BaseSide, Cursor};
use crate::{Bytes, Result, TreeId};
use std::sync::Arc;

/// Who reads parts of a tree does so as long as at most one key of so many was changed since they were written.
pub const CHANGED_PART: u64 = 8;

/// The parts of a tree as a [`crate::View`] sees it.
pub struct Blocks {
    base: Arc<dyn BaseSnapshot>,
    tree: TreeId,
    groups: Vec<Block>,
    entries: u64,
    changed: Vec<Bytes>,
}

/// A part of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its name.
    pub name: NodeName,
    /// No key of it is less, and all keys of parts before it are; empty for the first.
    pub from: Vec<u8>,
    /// How many entries it has, about: the first and the last of a tree may have some of others.
    pub entries: u64,
}

impl Blocks {
    pub(crate) fn new(base: Arc<dyn BaseSnapshot>, tree: TreeId) -> Result<Self> {
        let (start, end) = bounds(tree);
        let groups = base
            .nodes(range(&start, &end))?
            .into_iter()
            .map(|part| block(tree, part))
            .collect();
        let behind = match &end {
            Some(end) => base.rank(end)?,
            None => base.entries(),
        };
        Ok(Self {
            entries: behind - base.rank(&start)?,
            base,
            tree,
            groups,
            changed: Vec::new(),
        })
    }

    /// Of which state of the base the parts are: the number grows whenever commits reach it.
    pub fn state(&self) -> u64 {
        self.base.state()
    }

    /// How many entries of the tree the parts have.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    pub(crate) fn set_changed(&mut self, changed: Vec<Bytes>) {
        self.changed = changed;
    }

    /// Groups of some hundred blocks, in order.
    pub fn groups(&self) -> &[Block] {
        &self.groups
    }

    /// The keys that were written, or deleted, since the base, in order.
    pub fn changed(&self) -> &[Bytes] {
        &self.changed
    }

    /// A cursor over what the parts have, without the keys that were changed since.
    pub fn base_cursor(&self) -> Cursor {
        Cursor::new(Vec::new(), Some(BaseSide::new(self.base.clone(), self.tree)))
    }

    /// The blocks of a group, in order: each some pages long.
    ///
    /// Errors: those of reading.
    pub fn blocks(&self, group: &Block) -> Result<Vec<Block>> {
        let (start, end) = bounds(self.tree);
        let from = [start.as_slice(), &group.from].concat();
        let leaves = self.base.leaves(&from)?;
        let is_behind = |part: &NodePart| end.is_some_and(|end| part.from.as_slice() >= end.as_slice());
        // The last that begins before the tree has its first keys.
        let first = leaves.iter().rposition(|part| part.from.as_slice() <= start.as_slice());
        let leaves = leaves.into_iter().skip(first.unwrap_or(0));
        Ok(leaves
            .take_while(|part| !is_behind(part))
            .map(|part| block(self.tree, part))
            .collect())
    }
}

/// The first key of a tree in the base, and the first behind it.
pub(crate) fn bounds(tree: TreeId) -> ([u8; 4], Option<[u8; 4]>) {
    (tree.0.to_be_bytes(), tree.0.checked_add(1).map(u32::to_be_bytes))
}

/// The range between [`bounds`].
pub(crate) fn range<'b>(start: &'b [u8; 4], end: &'b Option<[u8; 4]>) -> KeyRange<'b> {
    KeyRange {
        start,
        end: end.as_ref().map(<[u8; 4]>::as_slice),
    }
}

fn block(tree: TreeId, part: NodePart) -> Block {
    Block {
        name: part.name,
        from: part
            .from
            .strip_prefix(&tree.0.to_be_bytes())
            .unwrap_or_default()
            .to_vec(),
        entries: part.entries,
    }
}
