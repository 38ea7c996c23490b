//! The segments of all collections, and the thread that makes them.

use crate::Segment;
use crate::pieces::{Piece, Pieces};
use nestor_storage::base::NodeName;
use nestor_storage::{Block, Blocks, Engine, Result, Snapshot, TreeId, View};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

/// A collection with fewer documents is read as fast record by record.
const ROWS_MIN: u64 = 4096;

/// A group is made anew when more than one of so many of its blocks are in no segment.
const STALE_PART: usize = 8;

/// The columns of a store.
pub struct Columns {
    engine: Engine,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    trees: Mutex<HashMap<TreeId, Arc<Tree>>>,
    wanted: Mutex<Wanted>,
    changed: Condvar,
    stop: AtomicBool,
    /// How often columns were read.
    reads: AtomicU64,
    /// Bytes of all segments, and how many there may be.
    bytes: AtomicUsize,
    bytes_max: usize,
}

#[derive(Default)]
struct Wanted {
    trees: Vec<TreeId>,
    is_working: bool,
}

#[derive(Default)]
struct Tree {
    segments: RwLock<Segments>,
    /// When it was read last, by the count of reads.
    used: AtomicU64,
}

#[derive(Default)]
struct Segments {
    groups: HashMap<NodeName, Arc<Segment>>,
    /// Of each block its segment, and which of that it is.
    blocks: HashMap<NodeName, (Arc<Segment>, usize)>,
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
    /// None yet, of what a store has; they take `bytes_max` bytes at most.
    pub fn new(engine: Engine, bytes_max: usize) -> Self {
        Self {
            engine,
            shared: Arc::new(Shared {
                trees: Mutex::default(),
                wanted: Mutex::default(),
                changed: Condvar::new(),
                stop: AtomicBool::new(false),
                reads: AtomicU64::new(0),
                bytes: AtomicUsize::new(0),
                bytes_max,
            }),
            thread: Mutex::default(),
        }
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> usize {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// How to read a tree of documents as a view shows it; `None` when most of it would be read record by record. What is missing
    /// is made in the background from now on.
    ///
    /// Errors: those of reading.
    pub fn read(&self, view: &dyn View, tree: TreeId) -> Result<Option<Reading>> {
        if self.shared.bytes_max == 0 {
            return Ok(None);
        }
        let Some(blocks) = view.blocks(tree, ROWS_MIN)? else {
            return Ok(None);
        };
        let known = lock(&self.shared.trees).get(&tree).cloned();
        let Some(known) = known else {
            self.want(tree);
            return Ok(None);
        };
        let now = self.shared.reads.fetch_add(1, Ordering::Relaxed);
        known.used.store(now, Ordering::Relaxed);
        let (pieces, is_stale) = known.read(&blocks)?;
        // With no room, and nobody to give some, what is missing stays so.
        if is_stale && !(self.shared.is_full() && lock(&self.shared.trees).len() == 1) {
            self.want(tree);
        }
        let enough = pieces.rows as u64 * 2 > blocks.entries();
        Ok(enough.then_some(Reading {
            pieces: pieces.all,
            rows: pieces.rows,
        }))
    }

    /// Whether there are columns of a tree.
    pub fn has(&self, tree: TreeId) -> bool {
        lock(&self.shared.trees).contains_key(&tree)
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
        let snapshot = engine.snapshot();
        self.forget_dropped(&snapshot, tree);
        let Some(blocks) = snapshot.blocks(tree, ROWS_MIN)? else {
            return Ok(());
        };
        let own = lock(&self.trees).entry(tree).or_default().clone();
        let stopped = || self.stop.load(Ordering::Relaxed);
        let mut live = HashSet::new();
        for (at, group) in blocks.groups().iter().enumerate() {
            if stopped() {
                return Ok(());
            }
            let parts = blocks.blocks(group)?;
            live.extend(parts.iter().map(|part| part.name));
            if !own.lacks(group, &parts) {
                continue;
            }
            while self.is_full() {
                if !self.give_up_another(tree) {
                    return Ok(());
                }
            }
            if let Some(segment) = Segment::build(&blocks, at, &parts, &stopped)? {
                self.bytes.fetch_add(segment.bytes(), Ordering::Relaxed);
                own.add(group.name, segment);
            }
        }
        let freed = own.purge(&live);
        self.bytes.fetch_sub(freed, Ordering::Relaxed);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.bytes_max
    }

    /// Gives up the columns of the tree that was read the longest time ago; `false` when there is none but `own`.
    fn give_up_another(&self, own: TreeId) -> bool {
        let mut trees = lock(&self.trees);
        let others = trees.iter().filter(|(tree, _)| **tree != own);
        let oldest = others.min_by_key(|(_, known)| known.used.load(Ordering::Relaxed));
        let Some(oldest) = oldest.map(|(tree, _)| *tree) else {
            return false;
        };
        self.give_up(&mut trees, oldest);
        true
    }

    /// Gives up the columns of collections that are no more; of `own` it is known that it is.
    fn forget_dropped(&self, snapshot: &Snapshot, own: TreeId) {
        let live: HashSet<TreeId> = snapshot
            .catalog()
            .collections()
            .map(|collection| collection.records)
            .collect();
        let mut trees = lock(&self.trees);
        let dropped: Vec<TreeId> = trees
            .keys()
            .filter(|tree| !live.contains(tree) && **tree != own)
            .copied()
            .collect();
        dropped.into_iter().for_each(|tree| self.give_up(&mut trees, tree));
    }

    fn give_up(&self, trees: &mut HashMap<TreeId, Arc<Tree>>, tree: TreeId) {
        if let Some(known) = trees.remove(&tree) {
            self.bytes.fetch_sub(known.purge(&HashSet::new()), Ordering::Relaxed);
        }
    }
}

impl Tree {
    /// Whether most of a group has to be made.
    fn lacks(&self, group: &Block, parts: &[Block]) -> bool {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let missing = || {
            parts
                .iter()
                .filter(|part| !segments.blocks.contains_key(&part.name))
                .count()
        };
        !segments.groups.contains_key(&group.name) && missing() * STALE_PART > parts.len()
    }

    fn add(&self, group: NodeName, segment: Segment) {
        let segment = Arc::new(segment);
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        for (at, block) in segment.blocks().enumerate() {
            segments.blocks.insert(block, (segment.clone(), at));
        }
        segments.groups.insert(group, segment);
    }

    /// Lets go of segments none of whose blocks is used; the bytes of these.
    fn purge(&self, live: &HashSet<NodeName>) -> usize {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        segments.blocks.retain(|name, _| live.contains(name));
        let used: HashSet<*const Segment> = segments
            .blocks
            .values()
            .map(|(segment, _)| Arc::as_ptr(segment))
            .collect();
        let mut freed = 0;
        segments.groups.retain(|_, segment| {
            let is_used = used.contains(&Arc::as_ptr(segment));
            if !is_used {
                freed += segment.bytes();
            }
            is_used
        });
        freed
    }

    /// How to read the blocks, and whether some part of them has no segment.
    fn read(&self, blocks: &Blocks) -> Result<(Pieces, bool)> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let mut pieces = Pieces::default();
        let mut changed = blocks.changed().iter().map(|key| key.as_slice()).peekable();
        let mut is_stale = false;
        let mut groups = blocks.groups().iter().peekable();
        while let Some(group) = groups.next() {
            let to = groups.peek().map(|next| next.from.as_slice());
            let is_changed = changed.peek().is_some_and(|key| to.is_none_or(|to| *key < to));
            if let Some(segment) = segments.groups.get(&group.name).filter(|_| !is_changed) {
                pieces.columns(segment, 0..segment.rows(), (&group.from, to));
                continue;
            }
            let parts = blocks.blocks(group)?;
            let mut missing = 0;
            for (at, part) in parts.iter().enumerate() {
                let to = parts.get(at + 1).map(|next| next.from.as_slice()).or(to);
                let found = segments.blocks.get(&part.name);
                missing += usize::from(found.is_none());
                let mut is_changed = false;
                while changed.next_if(|key| to.is_none_or(|to| *key < to)).is_some() {
                    is_changed = true;
                }
                match found.filter(|_| !is_changed) {
                    Some((segment, block)) => pieces.columns(segment, segment.rows_of(*block), (&part.from, to)),
                    None => pieces.records(&part.from, to),
                }
            }
            is_stale |= missing * STALE_PART > parts.len();
        }
        Ok((pieces, is_stale))
    }
}
