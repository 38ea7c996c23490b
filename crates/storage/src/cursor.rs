//! The merging cursor: one ordered view over a write set, the memtables and the base.
//!
//! Layers are ordered, the topmost first. Each key shows the value of the topmost layer that knows it; a tombstone hides
//! what lies below. Layers without a table for the tree are left out when the cursor is made, and each of the others
//! reads runs of entries ahead, so that an upper layer with nothing in range costs one search for a whole scan.

use crate::base::{BaseCursor, BaseSnapshot};
use crate::memtable::{Entry, Table};
use crate::read_set::SharedReads;
use crate::snapshot::with_base_key;
use crate::{Bytes, Result, TreeId};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Private changes to one tree; `None` is a tombstone.
pub(crate) type Overlay = BTreeMap<Bytes, Option<Bytes>>;

/// Entries an upper layer reads ahead at first and at most.
const RUN_MIN: usize = 4;
const RUN_MAX: usize = 128;
/// How much longer each run is than the one before: a search begins each of them.
const RUN_GROWTH: usize = 4;

/// A position in the entries of one tree as a snapshot (and the write set on top of it) shows them, in key order.
///
/// A cursor is at an entry or at none. It is at none when new and after a call that returned `false` or an error;
/// `next` and `prev` from none stay at none: seek again. It keeps its snapshot alive and does not see changes made to
/// the write set after it was opened.
pub struct Cursor {
    layers: Vec<Layer>,
    base: Option<BaseSide>,
    forward: bool,
    at: At,
    /// The ranges that a serializable transaction reads.
    tracker: Option<Box<Tracker>>,
}

/// Notes what a cursor reads: from where it was put to where it stands when it is put elsewhere, or dropped.
struct Tracker {
    reads: Arc<SharedReads>,
    tree: TreeId,
    /// Where it was put; `None` before that.
    from: Option<Bound<Bytes>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Nothing,
    Layer(usize),
    Base,
}

impl Cursor {
    pub(crate) fn new(layers: Vec<Layer>, base: Option<BaseSide>) -> Self {
        Self {
            layers,
            base,
            forward: true,
            at: At::Nothing,
            tracker: None,
        }
    }

    /// The same cursor, which notes what it reads of `tree` in `reads`.
    pub(crate) fn tracked(mut self, tree: TreeId, reads: Arc<SharedReads>) -> Self {
        let from = None;
        self.tracker = Some(Box::new(Tracker { reads, tree, from }));
        self
    }

    /// Notes what was read since the cursor was put where it began, if it was, and that it is put to `from`.
    fn track(&mut self, from: Option<Bound<&[u8]>>) {
        let Some(mut tracker) = self.tracker.take() else { return };
        if let Some(begun) = tracker.from.take() {
            let begun = match &begun {
                Bound::Included(key) | Bound::Excluded(key) => Some(key.as_slice()),
                Bound::Unbounded => None,
            };
            // At none it has seen that nothing more comes; or it failed, and then that is more than it saw.
            let end = self.is_valid().then(|| self.key());
            let (low, high) = if self.forward { (begun, end) } else { (end, begun) };
            let mut reads = tracker.reads.lock().expect("no holder of the lock panics");
            reads.add_range(tracker.tree, low, high);
        }
        tracker.from = from.map(|from| from.map(Bytes::copy_from));
        self.tracker = Some(tracker);
    }

    /// Moves to the first entry with a key `>= key`; `false` if there is none.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if self.tracker.is_some() {
            self.track(Some(Bound::Included(key)));
        }
        self.at = At::Nothing;
        self.forward = true;
        for layer in &mut self.layers {
            layer.seek(key);
        }
        if let Some(base) = &mut self.base {
            base.seek(key)?;
        }
        self.settle()
    }

    /// Says that little or nothing is wanted from `until` on: as long as the cursor goes forward and has not come there, nothing is read ahead beyond.
    pub fn read_ahead_to(&mut self, until: &[u8]) {
        for layer in &mut self.layers {
            layer.until = Some(Bytes::copy_from(until));
        }
    }

    /// Moves to the last entry with a key `<= key`; `false` if there is none.
    pub fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.seek_down(Bound::Included(key))
    }

    /// Moves to the last entry with a key `< key`; `false` if there is none.
    pub fn seek_below(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.seek_back(key)? && (self.key() != key || self.prev()?))
    }

    /// Moves to the first entry.
    pub fn first(&mut self) -> Result<bool> {
        self.seek(&[])
    }

    /// Moves to the last entry.
    pub fn last(&mut self) -> Result<bool> {
        self.seek_down(Bound::Unbounded)
    }

    fn seek_down(&mut self, from: Bound<&[u8]>) -> Result<bool> {
        if self.tracker.is_some() {
            self.track(Some(from));
        }
        self.at = At::Nothing;
        self.forward = false;
        for layer in &mut self.layers {
            layer.seek_back(from);
        }
        if let Some(base) = &mut self.base {
            base.seek_back(from)?;
        }
        self.settle()
    }

    /// Moves to the next entry; `false` at the end.
    #[allow(clippy::should_implement_trait)] // It lends, and it may fail.
    pub fn next(&mut self) -> Result<bool> {
        self.step(true)
    }

    /// Moves to the previous entry; `false` at the beginning.
    pub fn prev(&mut self) -> Result<bool> {
        self.step(false)
    }

    /// Whether the cursor is at an entry.
    pub fn is_valid(&self) -> bool {
        self.at != At::Nothing
    }

    /// Key of the current entry; empty when at none.
    pub fn key(&self) -> &[u8] {
        match self.at {
            At::Nothing => &[],
            At::Layer(i) => self.layers[i].current().map_or(&[], |(key, _)| key),
            At::Base => self.base.as_ref().and_then(BaseSide::current).unwrap_or_default(),
        }
    }

    /// Value of the current entry; empty when at none.
    pub fn value(&self) -> Result<&[u8]> {
        Ok(match self.at {
            At::Nothing => &[],
            At::Layer(i) => self.layers[i]
                .current()
                .and_then(|(_, value)| value.as_deref())
                .unwrap_or_default(),
            At::Base => match self.base_cursor() {
                Some(cursor) => cursor.value()?,
                None => &[],
            },
        })
    }

    /// The value as a handle that outlives the position.
    pub fn value_bytes(&self) -> Result<Bytes> {
        Ok(match self.at {
            At::Nothing => Bytes::EMPTY,
            At::Layer(i) => self.layers[i]
                .current()
                .and_then(|(_, value)| value.clone())
                .unwrap_or(Bytes::EMPTY),
            At::Base => match self.base_cursor() {
                Some(cursor) => cursor.value_bytes()?.into(),
                None => Bytes::EMPTY,
            },
        })
    }

    fn base_cursor(&self) -> Option<&dyn BaseCursor> {
        self.base.as_ref()?.cursor.as_deref()
    }

    fn step(&mut self, forward: bool) -> Result<bool> {
        if self.at == At::Nothing {
            return Ok(false);
        }
        if self.forward != forward {
            // Sources that lie beyond the current key in the old direction come back to it.
            let key = Bytes::copy_from(self.key());
            if forward {
                self.seek(&key)?;
            } else {
                self.seek_back(&key)?;
            }
        }
        self.pass_current()?;
        self.settle()
    }

    /// Moves every source that is at the current key past it.
    fn pass_current(&mut self) -> Result<()> {
        let forward = self.forward;
        let winner = match std::mem::replace(&mut self.at, At::Nothing) {
            At::Nothing => return Ok(()),
            // A layer with the same key would have won.
            At::Base => return self.base.as_mut().map_or(Ok(()), |base| base.advance(forward)),
            At::Layer(winner) => winner,
        };
        // Layers above the winner are elsewhere: with the same key they would have won.
        let Some((winner, below)) = self.layers[winner..].split_first_mut() else {
            return Ok(());
        };
        let Some((key, _)) = winner.current() else {
            return Ok(());
        };
        for layer in below {
            if layer.current().is_some_and(|(k, _)| k == key) {
                layer.advance();
            }
        }
        if let Some(base) = &mut self.base
            && base.current() == Some(key.as_slice())
        {
            base.advance(forward)?;
        }
        winner.advance();
        Ok(())
    }

    /// Chooses the nearest key among the sources, skipping what is deleted.
    fn settle(&mut self) -> Result<bool> {
        loop {
            let base = self.base.as_ref().and_then(BaseSide::current);
            // With one source there is nothing to choose.
            if let ([layer], None) = (self.layers.as_slice(), base) {
                match layer.current() {
                    Some((_, Some(_))) => {
                        self.at = At::Layer(0);
                        return Ok(true);
                    }
                    Some((_, None)) => {
                        self.at = At::Layer(0);
                        self.pass_current()?;
                        continue;
                    }
                    None => {
                        self.at = At::Nothing;
                        return Ok(false);
                    }
                }
            }
            let mut best: Option<(usize, &Bytes, bool)> = None;
            for (i, layer) in self.layers.iter().enumerate() {
                let Some((key, value)) = layer.current() else { continue };
                let nearer = match best {
                    None => true,
                    Some((_, other, _)) if self.forward => key < other,
                    Some((_, other, _)) => key > other,
                };
                if nearer {
                    best = Some((i, key, value.is_some()));
                }
            }
            let below = match (&best, base) {
                (None, None) => {
                    self.at = At::Nothing;
                    return Ok(false);
                }
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some((_, key, _)), Some(base)) if self.forward => base < key.as_slice(),
                (Some((_, key, _)), Some(base)) => base > key.as_slice(),
            };
            match best {
                Some((i, _, there)) if !below => {
                    self.at = At::Layer(i);
                    if there {
                        return Ok(true);
                    }
                    self.pass_current()?;
                }
                _ => {
                    self.at = At::Base;
                    return Ok(true);
                }
            }
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        if self.tracker.is_some() {
            self.track(None);
        }
    }
}

/// The base's part of a cursor: its cursor, kept within one tree.
pub(crate) struct BaseSide {
    snapshot: Arc<dyn BaseSnapshot>,
    tree: TreeId,
    cursor: Option<Box<dyn BaseCursor>>,
    inside: bool,
}

/// Bytes of a tree in the base's keys.
const PREFIX: usize = 4;

impl BaseSide {
    pub(crate) fn new(snapshot: Arc<dyn BaseSnapshot>, tree: TreeId) -> Self {
        Self {
            snapshot,
            tree,
            cursor: None,
            inside: false,
        }
    }

    /// The key at the current position, if it is in the tree.
    fn current(&self) -> Option<&[u8]> {
        match &self.cursor {
            Some(cursor) if self.inside => Some(&cursor.key()[PREFIX..]),
            _ => None,
        }
    }

    fn positioned(&mut self, found: bool) {
        let prefix = self.tree.0.to_be_bytes();
        self.inside = found && self.cursor.as_ref().is_some_and(|c| c.key().starts_with(&prefix));
    }

    fn cursor(&mut self) -> &mut dyn BaseCursor {
        self.cursor
            .get_or_insert_with(|| self.snapshot.clone().cursor())
            .as_mut()
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.inside = false;
        let tree = self.tree;
        let cursor = self.cursor();
        let found = with_base_key(tree, key, |key| cursor.seek(key))?;
        self.positioned(found);
        Ok(())
    }

    fn seek_back(&mut self, from: Bound<&[u8]>) -> Result<()> {
        self.inside = false;
        let tree = self.tree;
        let cursor = self.cursor();
        let found = match (from, tree.0.checked_add(1)) {
            (Bound::Included(key) | Bound::Excluded(key), _) => with_base_key(tree, key, |key| cursor.seek_back(key))?,
            (Bound::Unbounded, None) => cursor.last()?,
            (Bound::Unbounded, Some(next)) => {
                // The empty key of the next tree is the one key that is not below it.
                let next = next.to_be_bytes();
                cursor.seek_back(&next)? && (cursor.key() != next || cursor.prev()?)
            }
        };
        self.positioned(found);
        Ok(())
    }

    fn advance(&mut self, forward: bool) -> Result<()> {
        self.inside = false;
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        let found = if forward { cursor.next()? } else { cursor.prev()? };
        self.positioned(found);
        Ok(())
    }
}

/// Where an upper layer's entries come from.
pub(crate) enum Source {
    /// A memtable's table, at a sequence number.
    Table(Arc<Table>, u64),
    /// The changes of a write set.
    Overlay(Arc<Overlay>),
}

/// One upper layer and the run of entries it has read ahead.
pub(crate) struct Layer {
    source: Source,
    run: Vec<Entry>,
    at: usize,
    forward: bool,
    /// The run starts with the first entry from here on (in its direction); `None`: nothing was read yet.
    from: Option<Bound<Bytes>>,
    /// The run reaches to the end of the source.
    complete: bool,
    limit: usize,
    /// One entry is to be read ahead from here on.
    until: Option<Bytes>,
}

impl Layer {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            run: Vec::new(),
            at: 0,
            forward: true,
            from: None,
            complete: false,
            limit: RUN_MIN,
            until: None,
        }
    }

    fn current(&self) -> Option<&Entry> {
        self.run.get(self.at)
    }

    fn seek(&mut self, key: &[u8]) {
        // The run answers if the target lies between where it starts and where it ends.
        let starts_before = match &self.from {
            Some(Bound::Included(from)) => self.forward && from.as_slice() <= key,
            Some(Bound::Excluded(from)) => self.forward && from.as_slice() < key,
            _ => false,
        };
        if starts_before && (self.complete || self.run.last().is_some_and(|(last, _)| last.as_slice() >= key)) {
            self.at = self.run.partition_point(|(k, _)| k.as_slice() < key);
            return;
        }
        if self.until.as_ref().is_some_and(|until| until.as_slice() <= key) {
            self.until = None;
        }
        self.forward = true;
        self.limit = RUN_MIN;
        self.read(Bound::Included(Bytes::copy_from(key)));
    }

    fn seek_back(&mut self, from: Bound<&[u8]>) {
        if let Bound::Included(key) = from {
            let starts_after = match &self.from {
                Some(Bound::Included(start)) => !self.forward && start.as_slice() >= key,
                Some(Bound::Excluded(start)) => !self.forward && start.as_slice() > key,
                Some(Bound::Unbounded) => !self.forward,
                None => false,
            };
            if starts_after && (self.complete || self.run.last().is_some_and(|(last, _)| last.as_slice() <= key)) {
                self.at = self.run.partition_point(|(k, _)| k.as_slice() > key);
                return;
            }
        }
        self.forward = false;
        self.limit = RUN_MIN;
        self.read(from.map(Bytes::copy_from));
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.at < self.run.len() || self.complete {
            return;
        }
        if let Some((last, _)) = self.run.last() {
            let from = Bound::Excluded(last.clone());
            self.limit = match &self.until {
                Some(until) if last >= until => {
                    self.until = None;
                    RUN_MIN
                }
                _ => (self.limit * RUN_GROWTH).min(RUN_MAX),
            };
            self.read(from);
        }
    }

    fn read(&mut self, from: Bound<Bytes>) {
        self.run.clear();
        self.at = 0;
        let start = from.as_ref();
        let until = self.until.as_ref();
        let (limit, run) = (self.limit, &mut self.run);
        self.complete = match (&self.source, self.forward) {
            (Source::Table(table, at), true) => table.ascending(start, until, *at, limit, run),
            (Source::Table(table, at), false) => table.descending(start, *at, limit, run),
            (Source::Overlay(map), true) => {
                let entries = map.range::<Bytes, _>((start, Bound::Unbounded));
                extend(run, entries, limit, |key| until.is_some_and(|until| key >= until))
            }
            (Source::Overlay(map), false) => {
                let entries = map.range::<Bytes, _>((Bound::Unbounded, start)).rev();
                extend(run, entries, limit, |_| false)
            }
        };
        self.from = Some(from);
    }
}

/// Adds up to `limit` entries, and none behind the first that is far enough; whether there are no more.
fn extend<'o>(
    run: &mut Vec<Entry>,
    entries: impl Iterator<Item = (&'o Bytes, &'o Option<Bytes>)>,
    limit: usize,
    is_enough: impl Fn(&Bytes) -> bool,
) -> bool {
    for (key, value) in entries {
        run.push((key.clone(), value.clone()));
        if run.len() >= limit || is_enough(key) {
            return false;
        }
    }
    true
}
