//! The segments of one tree.

use crate::Segment;
use crate::memory::Memory;
use crate::pieces::Pieces;
use nestor_storage::base::NodeName;
use nestor_storage::{Block, Blocks, Result};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A group is made anew when more than one of so many of its blocks are in no segment.
const STALE_PART: usize = 8;

#[derive(Default)]
pub(crate) struct Tree {
    segments: RwLock<Segments>,
    /// When it was read last, by the count of reads, and one more; 0 for never.
    used: AtomicU64,
}

#[derive(Default)]
struct Segments {
    groups: HashMap<NodeName, Arc<Slot>>,
    /// Of each block its segment, and which of that it is.
    blocks: HashMap<NodeName, (Arc<Slot>, usize)>,
}

/// A segment, and when it was read last.
pub(crate) struct Slot {
    segment: RwLock<Arc<Segment>>,
    used: AtomicU64,
}

impl Slot {
    fn get(&self) -> Arc<Segment> {
        self.segment.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_sound(&self) -> bool {
        !self.segment.read().unwrap_or_else(PoisonError::into_inner).is_damaged()
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Lets go of its columns, if a file has them. Who reads them keeps them.
    pub(crate) fn unload(&self) {
        let mut own = self.segment.write().unwrap_or_else(PoisonError::into_inner);
        let unloaded = own
            .unloaded()
            .map(|unloaded| std::mem::replace(&mut *own, Arc::new(unloaded)));
        drop(own);
        drop(unloaded);
    }

    fn remove_file(&self, memory: &Memory) {
        if let Some(file) = self.get().file() {
            file.remove();
            memory.disk_bytes.fetch_sub(file.len, Ordering::Relaxed);
        }
    }
}

impl Tree {
    pub(crate) fn set_used(&self, now: u64) {
        self.used.store(now + 1, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether somebody has read it since the start.
    pub(crate) fn was_read(&self) -> bool {
        self.used() > 0
    }

    /// Whether files have some of it.
    pub(crate) fn has_files(&self) -> bool {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        segments.groups.values().any(|slot| slot.get().file().is_some())
    }

    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        segments.groups.values().cloned().collect()
    }

    /// Whether most of a group has to be made.
    pub(crate) fn lacks(&self, group: &Block, parts: &[Block]) -> bool {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let missing = || {
            parts
                .iter()
                .filter(|part| !segments.blocks.contains_key(&part.name))
                .count()
        };
        !segments.groups.contains_key(&group.name) && missing() * STALE_PART > parts.len()
    }

    pub(crate) fn add(&self, group: NodeName, segment: Segment) {
        let names: Vec<NodeName> = segment.blocks().collect();
        let slot = Arc::new(Slot {
            segment: RwLock::new(Arc::new(segment)),
            used: AtomicU64::new(self.used()),
        });
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        for (at, block) in names.into_iter().enumerate() {
            segments.blocks.insert(block, (slot.clone(), at));
        }
        segments.groups.insert(group, slot);
    }

    /// Lets go of segments that cannot be read.
    pub(crate) fn drop_damaged(&self, memory: &Memory) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        segments.blocks.retain(|_, (slot, _)| slot.is_sound());
        segments.groups.retain(|_, slot| {
            let is_sound = slot.is_sound();
            if !is_sound {
                slot.remove_file(memory);
            }
            is_sound
        });
    }

    /// Lets go of segments none of whose blocks is used, and of their files.
    pub(crate) fn purge(&self, live: &HashSet<NodeName>, memory: &Memory) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        segments.blocks.retain(|name, _| live.contains(name));
        let used: HashSet<*const Slot> = segments.blocks.values().map(|(slot, _)| Arc::as_ptr(slot)).collect();
        segments.groups.retain(|_, slot| {
            let is_used = used.contains(&Arc::as_ptr(slot));
            if !is_used {
                slot.remove_file(memory);
            }
            is_used
        });
    }

    /// How to read the blocks, and whether some part of them has no segment.
    pub(crate) fn read(&self, blocks: &Blocks, now: u64) -> Result<(Pieces, bool)> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let sound = |slot: &Arc<Slot>| {
            let segment = slot.get();
            slot.used.store(now + 1, Ordering::Relaxed);
            (!segment.is_damaged()).then_some(segment)
        };
        let mut pieces = Pieces::default();
        let mut changed = blocks.changed().iter().map(|key| key.as_slice()).peekable();
        let mut is_stale = false;
        let mut groups = blocks.groups().iter().peekable();
        while let Some(group) = groups.next() {
            let to = groups.peek().map(|next| next.from.as_slice());
            let is_changed = changed.peek().is_some_and(|key| to.is_none_or(|to| *key < to));
            let whole = segments.groups.get(&group.name).filter(|_| !is_changed);
            if let Some(segment) = whole.and_then(sound) {
                pieces.columns(&segment, 0..segment.rows(), (&group.from, to));
                continue;
            }
            let parts = blocks.blocks(group)?;
            let mut missing = 0;
            for (at, part) in parts.iter().enumerate() {
                let to = parts.get(at + 1).map(|next| next.from.as_slice()).or(to);
                let found = segments.blocks.get(&part.name);
                let found = found.and_then(|(slot, block)| Some((sound(slot)?, *block)));
                missing += usize::from(found.is_none());
                let mut is_changed = false;
                while changed.next_if(|key| to.is_none_or(|to| *key < to)).is_some() {
                    is_changed = true;
                }
                match found.filter(|_| !is_changed) {
                    Some((segment, block)) => pieces.columns(&segment, segment.rows_of(block), (&part.from, to)),
                    None => pieces.records(&part.from, to),
                }
            }
            is_stale |= missing * STALE_PART > parts.len();
        }
        Ok((pieces, is_stale))
    }
}
