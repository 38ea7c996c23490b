//! The segments of one tree.

use crate::file::Of;
use crate::pieces::{Keys, Pieces};
use crate::segment::Stored;
use crate::statistics::{self, Part, Statistics};
use crate::{Segment, Zone, column};
use nestor_model::Value;
use nestor_storage::base::NodeName;
use nestor_storage::{Block, Blocks, Result};
use std::collections::{HashMap, HashSet};
use std::iter::Peekable;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A group is made anew when more than one of so many of its blocks are not in the segment that has most of them.
const STALE_PART: usize = 8;

/// Fewer rows than these between two that were changed are read by documents as well.
const ROWS_BETWEEN: usize = 64;

#[derive(Default)]
pub(crate) struct Tree {
    segments: RwLock<Segments>,
    /// When it was read last, by the count of reads, and one more; 0 for never.
    used: AtomicU64,
    /// What that was when segments were made last.
    made: AtomicU64,
    /// What is known of the values at paths, since segments were made last.
    statistics: Mutex<HashMap<String, Arc<Statistics>>>,
}

#[derive(Default)]
struct Segments {
    /// Of each group the segment that has all of its blocks.
    groups: HashMap<NodeName, Arc<Slot>>,
    /// Of each group one that has some of them, which were changed since that was made.
    parts: HashMap<NodeName, Arc<Slot>>,
    /// Of each block its segment, and which of that it is.
    blocks: HashMap<NodeName, (Arc<Slot>, usize)>,
}

impl Segments {
    fn slots(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.groups.values().chain(self.parts.values())
    }

    /// Lets go of slots for which `keeps` says no.
    fn retain(&mut self, mut keeps: impl FnMut(&Arc<Slot>) -> bool) {
        self.groups.retain(|_, slot| keeps(slot));
        self.parts.retain(|_, slot| keeps(slot));
    }
}

/// A segment, and when it was read last.
pub(crate) struct Slot {
    segment: RwLock<Arc<Segment>>,
    used: AtomicU64,
    /// Of the segment of a group, where it is known.
    exact: Mutex<Option<Exact>>,
}

/// A state of the base ([`Blocks::state`]) in which a segment has all of some keys, as they are.
#[derive(Debug, Clone)]
pub(crate) struct Exact {
    pub(crate) state: u64,
    pub(crate) keys: Keys,
}

impl Exact {
    fn has(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let ends_behind = |end: &Vec<u8>| to.is_some_and(|to| to <= end.as_slice());
        self.keys.from.as_slice() <= from && self.keys.to.as_ref().is_none_or(ends_behind)
    }
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

    fn exact(&self) -> MutexGuard<'_, Option<Exact>> {
        self.exact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says in which state it is exact, if that is newer than the one that is known.
    fn note(&self, state: u64, keys: impl FnOnce() -> Keys) {
        let mut exact = self.exact();
        if exact.as_ref().is_none_or(|known| known.state < state) {
            *exact = Some(Exact { state, keys: keys() });
        }
    }

    fn with_file(&self, then: impl FnOnce(&Stored)) {
        if let Some(file) = self.get().file() {
            then(file);
        }
    }
}

/// The least and the largest value at a path, where all segments have values of one type there.
fn range(segments: &[Arc<Segment>], array: Option<&str>, path: &str) -> Option<(Value, Value)> {
    let mut all: Option<(Value, Value)> = None;
    for segment in segments {
        let zone = match array {
            None => segment.zone(path.split('.')),
            Some(array) => segment.zone_of_elements(array.split('.'), path.split('.')),
        };
        let own = match zone {
            Zone::Nothing => continue,
            Zone::Between(own) => own,
            Zone::Unknown => return None,
        };
        all = Some(match all {
            None => own.clone(),
            Some(all) => column::range_of_both(all, own)?,
        });
    }
    all
}

/// Of segments in the order of their first keys the one that has all keys from one on, up to another.
pub(crate) fn source<'e>(
    exact: &'e [(Exact, Arc<Slot>)],
    from: &[u8],
    to: Option<&[u8]>,
) -> Option<(&'e Exact, Arc<Segment>)> {
    let behind = exact.partition_point(|(exact, _)| exact.keys.from.as_slice() <= from);
    let (exact, slot) = exact[..behind].last().filter(|(exact, _)| exact.has(from, to))?;
    Some((exact, slot.get())).filter(|(_, segment)| !segment.is_damaged())
}

impl Tree {
    pub(crate) fn set_used(&self, now: u64) {
        self.used.store(now + 1, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether somebody has read it since segments were made last.
    pub(crate) fn was_read_since(&self) -> bool {
        self.used() > self.made.load(Ordering::Relaxed)
    }

    /// Segments were made, after so many reads.
    pub(crate) fn set_made(&self, used: u64) {
        self.made.store(used, Ordering::Relaxed);
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What is known of the values at a path, of documents or of the elements of an array; `None` without segments.
    pub(crate) fn statistics(&self, array: Option<&str>, path: &str) -> Option<Arc<Statistics>> {
        let known = || self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        let name = match array {
            None => path.to_owned(),
            // No path has this character.
            Some(array) => format!("{array}\0{path}"),
        };
        if let Some(found) = known().get(&name) {
            return Some(found.clone());
        }
        let all: Vec<Arc<Segment>> = self.slots().iter().map(|slot| slot.get()).collect();
        let step = all.len().div_ceil(statistics::SEGMENTS_MAX).max(1);
        let asked: Vec<&Arc<Segment>> = all.iter().step_by(step).collect();
        let part_of = |segment: &&Arc<Segment>| match array {
            None => segment.statistics(path.split('.')),
            Some(array) => segment.statistics_of_elements(array, path),
        };
        let parts: Vec<Part> = asked.iter().map(part_of).collect();
        let rows = |segments: &[&Arc<Segment>]| segments.iter().map(|segment| segment.rows()).sum::<usize>();
        let part = rows(&asked) as f64 / rows(&all.iter().collect::<Vec<_>>()).max(1) as f64;
        if parts.is_empty() {
            return None;
        }
        let found = Arc::new(Statistics::of(parts.iter(), part, range(&all, array, path)));
        known().insert(name, found.clone());
        Some(found)
    }

    /// Whether the first of its segments has the elements of an array.
    pub(crate) fn has_elements(&self, array: &str) -> bool {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let first = segments.slots().next().map(|slot| slot.get());
        first.is_some_and(|segment| segment.has_elements(array))
    }

    /// Whether files have some of it.
    pub(crate) fn has_files(&self) -> bool {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        segments.slots().any(|slot| slot.get().is_in_file())
    }

    /// The segments of groups of which it is known in which state they are exact, in the order of their first keys.
    pub(crate) fn exact(&self) -> Vec<(Exact, Arc<Slot>)> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let exact = |slot: &Arc<Slot>| Some((slot.exact().clone()?, slot.clone()));
        let mut all: Vec<_> = segments.groups.values().filter_map(exact).collect();
        all.sort_by(|(a, _), (b, _)| (&a.keys.from, a.state).cmp(&(&b.keys.from, b.state)));
        all
    }

    /// Says that the segment of a group, which has all of it in a state, is exact.
    pub(crate) fn note(&self, group: NodeName, state: u64, keys: impl FnOnce() -> Keys) {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = segments.groups.get(&group) {
            slot.note(state, keys);
        }
    }

    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        segments.slots().cloned().collect()
    }

    /// The blocks of a group, by place, of which a segment is to be made: none where each is in one; all of them where many are not in
    /// the segment that has most; otherwise those that are not.
    pub(crate) fn lacking(&self, group: &Block, parts: &[Block]) -> Vec<usize> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        if segments.groups.contains_key(&group.name) {
            return Vec::new();
        }
        let slots: Vec<Option<*const Slot>> = parts
            .iter()
            .map(|part| segments.blocks.get(&part.name).map(|(slot, _)| Arc::as_ptr(slot)))
            .collect();
        if slots.iter().all(Option::is_some) && segments.parts.contains_key(&group.name) {
            return Vec::new();
        }
        let mut counts: HashMap<*const Slot, usize> = HashMap::new();
        for slot in slots.iter().flatten() {
            *counts.entry(*slot).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(slot, _)| slot);
        let others = |at: &usize| slots[*at].is_none() || slots[*at] != most;
        let lacking: Vec<usize> = (0..parts.len()).filter(others).collect();
        match lacking.len() * STALE_PART > parts.len() {
            true => (0..parts.len()).collect(),
            // Of blocks that are all in segments none has to be made.
            false if slots.iter().all(Option::is_some) => Vec::new(),
            false => lacking,
        }
    }

    pub(crate) fn add(&self, of: Of, segment: Segment, exact: Option<Exact>) {
        let names: Vec<NodeName> = segment.blocks().collect();
        let slot = Arc::new(Slot {
            segment: RwLock::new(Arc::new(segment)),
            used: AtomicU64::new(self.used()),
            exact: Mutex::new(exact.filter(|_| of.is_whole)),
        });
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        for (at, block) in names.into_iter().enumerate() {
            segments.blocks.insert(block, (slot.clone(), at));
        }
        match of.is_whole {
            true => segments.groups.insert(of.group, slot),
            false => segments.parts.insert(of.group, slot),
        };
    }

    /// Lets go of segments that cannot be read.
    pub(crate) fn drop_damaged(&self) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        segments.blocks.retain(|_, (slot, _)| slot.is_sound());
        segments.retain(|slot| {
            let is_sound = slot.is_sound();
            if !is_sound {
                slot.with_file(Stored::remove);
            }
            is_sound
        });
    }

    /// Removes the files of all segments.
    pub(crate) fn remove_files(&self) {
        self.slots().iter().for_each(|slot| slot.with_file(Stored::remove));
    }

    /// Lets go of segments none of whose blocks is used, and of their files.
    pub(crate) fn purge(&self, live: &HashSet<NodeName>) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        segments.blocks.retain(|name, _| live.contains(name));
        let used: HashSet<*const Slot> = segments.blocks.values().map(|(slot, _)| Arc::as_ptr(slot)).collect();
        segments.retain(|slot| {
            let is_used = used.contains(&Arc::as_ptr(slot));
            if !is_used {
                slot.with_file(Stored::remove_in_time);
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
            let found = segments.groups.get(&group.name);
            if let Some(segment) = found.and_then(sound) {
                found
                    .into_iter()
                    .for_each(|slot| slot.note(blocks.state(), || Keys::new(&group.from, to)));
                let all = 0..segment.rows();
                match is_changed {
                    false => pieces.columns(&segment, all, (&group.from, to)),
                    true => around(&mut pieces, (&segment, all), (&group.from, to), &mut changed),
                }
                continue;
            }
            let parts = blocks.blocks(group)?;
            let mut missing = 0;
            for (at, part) in parts.iter().enumerate() {
                let to = parts.get(at + 1).map(|next| next.from.as_slice()).or(to);
                let found = segments.blocks.get(&part.name);
                let found = found.and_then(|(slot, block)| Some((sound(slot)?, *block)));
                missing += usize::from(found.is_none());
                match found {
                    Some((segment, block)) => {
                        let rows = segment.rows_of(block);
                        around(&mut pieces, (&segment, rows), (&part.from, to), &mut changed);
                    }
                    None => {
                        pieces.records(&part.from, to);
                        while changed.next_if(|key| to.is_none_or(|to| *key < to)).is_some() {}
                    }
                }
            }
            is_stale |= missing > 0;
        }
        Ok((pieces, is_stale))
    }
}

/// Adds rows of a segment, which lie between two keys, but for those of keys that were changed: these are read as records, and so are
/// few rows between two of them.
fn around<'k>(
    pieces: &mut Pieces,
    (segment, rows): (&Arc<Segment>, Range<usize>),
    (from, to): (&[u8], Option<&[u8]>),
    changed: &mut Peekable<impl Iterator<Item = &'k [u8]>>,
) {
    let mut next = rows.start;
    // Where the rows that come next begin, and records before them that are to be read.
    let mut here = from.to_vec();
    let mut records: Option<Vec<u8>> = None;
    let mut all = true;
    while let Some(key) = changed.next_if(|key| to.is_none_or(|to| *key < to)) {
        let Some(row) = segment.row_from(key).filter(|_| all) else {
            all = false;
            continue;
        };
        let row = row.clamp(next, rows.end);
        if row - next >= ROWS_BETWEEN {
            if let Some(begun) = records.take() {
                pieces.records(&begun, Some(&here));
            }
            pieces.columns(segment, next..row, (&here, Some(key)));
            records = Some(key.to_vec());
        } else {
            records.get_or_insert_with(|| here.clone());
        }
        let is_here = row < rows.end && segment.records().is_some_and(|record| record(row).as_slice() == key);
        next = if is_here { row + 1 } else { row };
        here = [key, &[0]].concat();
    }
    match (all, records) {
        // Records whose rows cannot be told are read.
        (false, begun) => pieces.records(&begun.unwrap_or(here), to),
        (true, None) => pieces.columns(segment, next..rows.end, (&here, to)),
        (true, Some(begun)) if rows.end - next < ROWS_BETWEEN => pieces.records(&begun, to),
        (true, Some(begun)) => {
            pieces.records(&begun, Some(&here));
            pieces.columns(segment, next..rows.end, (&here, to));
        }
    }
}
