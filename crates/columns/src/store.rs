//! The segments of all collections, and the thread that makes them.

use crate::file::{self, Of, Origin};
use crate::memory::{Figures, Memory};
use crate::merged::Change;
use crate::nice::come_last;
use crate::statistics::Statistics;
use crate::tree::{self, Exact, Slot, Tree};
use crate::{Keys, Piece, Segment};
use nestor_storage::{Block, Blocks, Bytes, Catalog, Engine, Result, Snapshot, TreeId, View};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A collection with fewer documents is read as fast record by record.
const ROWS_MIN: u64 = 4096;

/// Bytes that have to be free where the data are, or segments are not written to files.
const ROOM_MIN: u64 = 256 << 20;

/// The columns of a store.
pub struct Columns {
    engine: Engine,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    tidied: Mutex<Tidied>,
    /// Whoever can read by columns does, whatever else would serve.
    preferred: AtomicBool,
}

/// What the store was like when it was last tidied.
#[derive(Default)]
struct Tidied {
    catalog: Option<Arc<Catalog>>,
    applied: u64,
}

struct Shared {
    trees: Mutex<HashMap<TreeId, Arc<Tree>>>,
    /// Files of trees that nobody has read since the start.
    stored: Mutex<HashMap<TreeId, Vec<String>>>,
    wanted: Mutex<Wanted>,
    changed: Condvar,
    stop: AtomicBool,
    /// How often columns were read.
    reads: AtomicU64,
    passed_over: AtomicU64,
    memory: Arc<Memory>,
    /// How far the base had come at the start.
    applied: u64,
}

#[derive(Default)]
struct Wanted {
    trees: Vec<TreeId>,
    is_working: bool,
}

/// A tree as it is read.
#[derive(Debug)]
pub struct Reading {
    /// The parts, in order.
    pub pieces: Vec<Piece>,
    /// How many documents are in segments.
    pub rows: usize,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Columns {
    /// Of what a store has those that files have, and no others yet; they take `bytes_max` bytes of memory at most.
    pub fn new(engine: Engine, bytes_max: usize) -> Self {
        let memory = Arc::new(Memory::new(bytes_max));
        let shared = Arc::new(Shared {
            trees: Mutex::default(),
            stored: Mutex::new(stored(&engine)),
            wanted: Mutex::default(),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            passed_over: AtomicU64::new(0),
            memory,
            applied: engine.applied(),
        });
        let weak = Arc::downgrade(&shared);
        shared.memory.relieve_by(move || {
            if let Some(shared) = weak.upgrade() {
                shared.unload();
            }
        });
        Self {
            engine,
            shared,
            thread: Mutex::default(),
            tidied: Mutex::default(),
            preferred: AtomicBool::new(false),
        }
    }

    /// Whether whoever can read by columns is to do so, whatever indexes there are.
    pub fn are_preferred(&self) -> bool {
        self.preferred.load(Ordering::Relaxed)
    }

    /// Says that.
    pub fn set_preferred(&self, preferred: bool) {
        self.preferred.store(preferred, Ordering::Relaxed);
    }

    /// Bytes of all segments that are in memory.
    pub fn bytes(&self) -> usize {
        self.shared.memory.bytes()
    }

    /// What there is, and what became of it.
    pub fn figures(&self) -> Figures {
        Figures {
            readings: self.shared.reads.load(Ordering::Relaxed),
            passed_over: self.shared.passed_over.load(Ordering::Relaxed),
            ..self.shared.memory.figures()
        }
    }

    /// How to read a tree of documents as a view shows it; `None` when most of it would be read record by record. What is missing
    /// is made in the background from now on.
    ///
    /// Errors: those of reading.
    pub fn read(&self, view: &dyn View, tree: TreeId) -> Result<Option<Reading>> {
        if self.shared.memory.bytes_max() == 0 {
            return Ok(None);
        }
        let Some(blocks) = view.blocks(tree, ROWS_MIN)? else {
            return Ok(None);
        };
        if self.shared.load(&self.engine, tree) {
            self.want(tree);
        }
        let known = lock(&self.shared.trees).get(&tree).cloned();
        let Some(known) = known else {
            self.want(tree);
            return Ok(None);
        };
        let now = self.shared.reads.fetch_add(1, Ordering::Relaxed);
        known.set_used(now);
        let (pieces, is_stale) = known.read(&blocks, now)?;
        if is_stale && self.shared.has_room() {
            self.want(tree);
        }
        let enough = pieces.rows as u64 * 2 > blocks.entries();
        if !enough {
            self.shared.passed_over.fetch_add(1, Ordering::Relaxed);
        }
        Ok(enough.then_some(Reading {
            pieces: pieces.all,
            rows: pieces.rows,
        }))
    }

    /// What is known of the values at a path of the documents of a tree, as they were when its segments were made; `None` where none are known yet.
    pub fn statistics(&self, tree: TreeId, path: &str) -> Option<Arc<Statistics>> {
        let known = lock(&self.shared.trees).get(&tree).cloned();
        known?.statistics(None, path)
    }

    /// The same of the elements of the arrays at a path; `None` also where some documents have to be looked at for these.
    pub fn statistics_of_elements(&self, tree: TreeId, array: &str, path: &str) -> Option<Arc<Statistics>> {
        let known = lock(&self.shared.trees).get(&tree).cloned()?;
        known
            .has_elements(array)
            .then(|| known.statistics(Some(array), path))
            .flatten()
    }

    /// Whether there are columns of a tree.
    pub fn has(&self, tree: TreeId) -> bool {
        lock(&self.shared.trees).contains_key(&tree) || lock(&self.shared.stored).contains_key(&tree)
    }

    /// Whether there are columns of the elements of an array, as far as one of the segments of a tree tells.
    pub fn has_elements(&self, tree: TreeId, array: &str) -> bool {
        let known = lock(&self.shared.trees).get(&tree).cloned();
        match known {
            Some(known) => known.has_elements(array),
            // What files have is not known yet.
            None => self.has(tree),
        }
    }

    /// Removes what there is of collections that are no more, and has made anew what checkpoints took away of those that were read since; to be
    /// called about once a second.
    pub fn tidy(&self) {
        let snapshot = self.engine.snapshot();
        let mut tidied = lock(&self.tidied);
        let is_same = tidied
            .catalog
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, snapshot.catalog()));
        if !is_same {
            tidied.catalog = Some(snapshot.catalog().clone());
            self.shared.forget_dropped(&self.engine, &snapshot, None);
        }
        let applied = self.engine.applied();
        if std::mem::replace(&mut tidied.applied, applied) == applied {
            return;
        }
        drop(tidied);
        let trees = lock(&self.shared.trees);
        let read: Vec<TreeId> = trees
            .iter()
            .filter(|(_, own)| own.was_read_since())
            .map(|(tree, _)| *tree)
            .collect();
        drop(trees);
        read.into_iter().for_each(|tree| self.want(tree));
    }

    /// Has the columns of a tree made, or made anew where they are stale.
    pub fn want(&self, tree: TreeId) {
        let mut wanted = lock(&self.shared.wanted);
        if wanted.trees.contains(&tree) {
            return;
        }
        wanted.trees.push(tree);
        if wanted.is_working {
            return;
        }
        let (shared, engine) = (self.shared.clone(), self.engine.clone());
        let work = move || shared.work(&engine);
        let mut thread = lock(&self.thread);
        // The one before has nothing left to do.
        if let Some(ended) = thread.take() {
            let _ = ended.join();
        }
        // Without a thread there are no columns.
        *thread = std::thread::Builder::new().name("columns".into()).spawn(work).ok();
        wanted.is_working = thread.is_some();
    }

    /// Waits until all that is wanted has been made.
    pub fn settle(&self) {
        let mut wanted = lock(&self.shared.wanted);
        while wanted.is_working {
            wanted = self.shared.changed.wait(wanted).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Columns {
    /// Waits for the thread, which holds the store.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self, engine: &Engine) {
        come_last();
        loop {
            let next = {
                let mut wanted = lock(&self.wanted);
                match wanted.trees.first().copied() {
                    Some(tree) if !self.stop.load(Ordering::Relaxed) => tree,
                    _ => {
                        wanted.is_working = false;
                        self.changed.notify_all();
                        return;
                    }
                }
            };
            // What cannot be read is told to whoever reads it: there are no columns then.
            let _ = self.make(engine, next);
            lock(&self.wanted).trees.retain(|tree| *tree != next);
        }
    }

    /// Makes the segments that a tree lacks, and lets go of those that nothing is left of.
    fn make(&self, engine: &Engine, tree: TreeId) -> Result<()> {
        engine.note_changed(tree);
        let snapshot = engine.snapshot();
        self.forget_dropped(engine, &snapshot, Some(tree));
        let Some(blocks) = snapshot.blocks(tree, ROWS_MIN)? else {
            return Ok(());
        };
        self.load(engine, tree);
        let own = lock(&self.trees).entry(tree).or_default().clone();
        own.drop_damaged();
        let stopped = || self.stop.load(Ordering::Relaxed);
        let mut live = HashSet::new();
        let now = own.used();
        let state = blocks.state();
        let mut sources = Sources {
            engine,
            tree,
            blocks: &blocks,
            exact: own.exact(),
            changed: HashMap::new(),
        };
        for (at, group) in blocks.groups().iter().enumerate() {
            if stopped() {
                return Ok(());
            }
            let parts = blocks.blocks(group)?;
            live.extend(parts.iter().map(|part| part.name));
            let lacking = own.lacking(group, &parts);
            let end = blocks.groups().get(at + 1).map(|next| next.from.as_slice());
            let keys = || Keys::new(&group.from, end);
            if lacking.is_empty() {
                own.note(group.name, state, keys);
                continue;
            }
            let is_whole = lacking.len() == parts.len();
            let to = |part: usize| parts.get(part + 1).map(|next| next.from.as_slice()).or(end);
            let lacking: Vec<_> = lacking.into_iter().map(|part| (&parts[part], to(part))).collect();
            while self.memory.is_full() {
                self.unload();
                if self.memory.is_full() && !self.give_up_another(engine, tree) {
                    return Ok(());
                }
            }
            let made = match sources.merged((&group.from, end), &parts, &self.memory)? {
                Some(segment) => {
                    self.memory.merged.fetch_add(1, Ordering::Relaxed);
                    Some((segment, true))
                }
                None => {
                    let built = Segment::build(&blocks, &lacking, &stopped, &self.memory)?;
                    built.map(|segment| {
                        self.memory.built.fetch_add(1, Ordering::Relaxed);
                        (segment, is_whole)
                    })
                }
            };
            if let Some((segment, is_whole)) = made {
                let of = Of {
                    tree,
                    group: group.name,
                    is_whole,
                };
                let segment = self.save(engine, segment, of);
                own.add(of, segment, Some(Exact { state, keys: keys() }));
            }
        }
        own.set_made(now);
        own.purge(&live);
        let oldest = own.exact().iter().map(|(exact, _)| exact.state).min();
        engine.forget_changed(tree, oldest.unwrap_or(state));
        Ok(())
    }

    /// The segment with a file, unless none can be written, or another's file has most of it: then it stays in memory only.
    fn save(&self, engine: &Engine, segment: Segment, of: Of) -> Segment {
        let Some(beside) = engine.beside().filter(|_| segment.merged().is_none()) else {
            return segment;
        };
        let is_scarce = engine
            .room()
            .is_some_and(|room| room.total.saturating_sub(room.used) < ROOM_MIN);
        let names = engine.keep_names().filter(|_| !is_scarce);
        let origin = names.map(|names| Origin {
            names,
            applied: engine.applied(),
        });
        let saved = origin.map(|origin| file::save(&segment, beside, of, origin));
        match saved {
            Some(Ok(stored)) => segment.with_file(stored),
            failed => {
                if let Some(Err(error)) = failed {
                    tracing::warn!(%error, "columns stay in memory only");
                }
                self.memory.not_saved.fetch_add(1, Ordering::Relaxed);
                segment
            }
        }
    }

    /// Knows the segments that files have of a tree, if that is not done; whether some were of no use.
    fn load(&self, engine: &Engine, tree: TreeId) -> bool {
        // Whoever comes meanwhile waits.
        let mut stored = lock(&self.stored);
        let (Some(beside), Some(kept), Some(names)) = (engine.beside(), engine.names_kept(), stored.remove(&tree))
        else {
            return false;
        };
        let is_own = |origin: Origin| origin.names == kept && origin.applied <= self.applied;
        let own = Arc::new(Tree::default());
        let mut is_whole = true;
        for name in &names {
            match file::load(beside, name, &self.memory) {
                Ok(loaded) if is_own(loaded.origin) && loaded.of.tree == tree => {
                    own.add(loaded.of, loaded.segment, None);
                }
                result => {
                    is_whole = false;
                    if let Err(error) = result {
                        self.memory.damaged.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(name, %error, "columns cannot be read and are made anew");
                    }
                    beside.remove(name);
                }
            }
        }
        lock(&self.trees).entry(tree).or_insert(own);
        engine.note_changed(tree);
        !is_whole
    }

    /// Whether what is missing can be made.
    fn has_room(&self) -> bool {
        !self.memory.is_full() || lock(&self.trees).values().any(|tree| tree.has_files()) || lock(&self.trees).len() > 1
    }

    /// Gives up columns that are in files, those first that were not used for the longest time, until there is room for an eighth.
    fn unload(&self) {
        let trees: Vec<Arc<Tree>> = lock(&self.trees).values().cloned().collect();
        let mut slots: Vec<_> = trees.iter().flat_map(|tree| tree.slots()).collect();
        slots.sort_by_key(|slot| slot.used());
        let enough = self.memory.bytes_max() / 8 * 7;
        for slot in slots {
            if self.memory.bytes() <= enough {
                return;
            }
            slot.unload();
        }
    }

    /// Gives up the columns of the tree that was read the longest time ago; `false` when there is none but `own`.
    fn give_up_another(&self, engine: &Engine, own: TreeId) -> bool {
        let mut trees = lock(&self.trees);
        let others = trees.iter().filter(|(tree, known)| **tree != own && !known.has_files());
        let oldest = others.min_by_key(|(_, known)| known.used());
        let Some(oldest) = oldest.map(|(tree, _)| *tree) else {
            return false;
        };
        self.give_up(engine, &mut trees, oldest);
        true
    }

    /// Gives up the columns of collections that are no more; of `own` it is known that it is.
    fn forget_dropped(&self, engine: &Engine, snapshot: &Snapshot, own: Option<TreeId>) {
        let live: HashSet<TreeId> = snapshot
            .catalog()
            .collections()
            .map(|collection| collection.records)
            .chain(own)
            .collect();
        let mut trees = lock(&self.trees);
        let dropped: Vec<TreeId> = trees.keys().filter(|tree| !live.contains(tree)).copied().collect();
        dropped
            .into_iter()
            .for_each(|tree| self.give_up(engine, &mut trees, tree));
        drop(trees);
        let mut stored = lock(&self.stored);
        let gone = stored
            .extract_if(|tree, _| !live.contains(tree))
            .flat_map(|(_, names)| names);
        gone.for_each(|name| engine.beside().into_iter().for_each(|beside| beside.remove(&name)));
    }

    fn give_up(&self, engine: &Engine, trees: &mut HashMap<TreeId, Arc<Tree>>, tree: TreeId) {
        engine.stop_noting_changed(tree);
        if let Some(known) = trees.remove(&tree) {
            known.remove_files();
        }
    }
}

/// What segments of a tree can be made of without reading all of their documents.
struct Sources<'s> {
    engine: &'s Engine,
    tree: TreeId,
    blocks: &'s Blocks,
    /// The segments of which it is known in which state they are exact.
    exact: Vec<(Exact, Arc<Slot>)>,
    /// The keys that were changed since each of these states, if that is known.
    changed: HashMap<u64, Option<Vec<Bytes>>>,
}

impl Sources<'_> {
    /// The segment of a group that has these keys and parts; `None` where it is to be made of its documents.
    ///
    /// Errors: those of reading.
    fn merged(
        &mut self,
        within: (&[u8], Option<&[u8]>),
        parts: &[Block],
        memory: &Arc<Memory>,
    ) -> Result<Option<Segment>> {
        let (from, to) = within;
        let Some((known, old)) = tree::source(&self.exact, from, to) else {
            return Ok(None);
        };
        let since = || self.engine.changed_between(self.tree, known.state, self.blocks.state());
        let Some(changed) = self.changed.entry(known.state).or_insert_with(since) else {
            return Ok(None);
        };
        let at = |key: &[u8]| changed.partition_point(|own| own.as_slice() < key);
        let change = Change {
            old: &old,
            within,
            keys: &changed[at(from)..to.map_or(changed.len(), at)],
        };
        change.merged(self.blocks, parts, memory)
    }
}

/// The files that a store has, by tree; what cannot be used is removed.
fn stored(engine: &Engine) -> HashMap<TreeId, Vec<String>> {
    let mut out: HashMap<TreeId, Vec<String>> = HashMap::new();
    let Some(beside) = engine.beside() else {
        return out;
    };
    let snapshot = engine.snapshot();
    let live: HashSet<TreeId> = snapshot
        .catalog()
        .collections()
        .map(|collection| collection.records)
        .collect();
    let are_kept = engine.names_kept().is_some();
    for name in beside.names() {
        match file::tree_of(&name).filter(|tree| are_kept && live.contains(tree)) {
            Some(tree) => out.entry(tree).or_default().push(name),
            None => beside.remove(&name),
        }
    }
    out
}
