//! Search indexes of collections, held in memory and exact for the snapshot that is read.
//!
//! ```text
//! catalog      the definition of the index                        SearchIndex
//! watch        the keys of the records written since some moment  storage
//! Held         the index of that moment                           brought up to date by who asks, with the records behind these keys
//! at(view)     the index of what the view shows                   older views: the records written since are indexed as the view has them
//! ```
//!
//! Nothing is derived at a commit but the keys that a watch notes, and nothing is stored: an index is made of the collection when it is
//! asked for the first time, and again after a restart, when its definition changes, when nobody has asked for it while very much was written,
//! and when the memory for search indexes is needed for others.

use nestor_model::statement::{ROW, look, work};
use nestor_model::{Document, Error, ErrorCode, Namespace, ObjectId, RawDoc, Result, SearchIndex, bail, doc};
use nestor_search::{Definition, Index, IndexKind};
use nestor_storage::{
    Bytes, Collection, CollectionId, Engine, Lsn, RecordReader, Touched, TreeId, View, Watch, record,
};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Bytes of documents after which what an index holds is counted while it is made.
const COUNTED_BYTES: usize = 32 << 20;
/// Keys that are remembered of earlier states, for views that are older than an index, at most.
const PAST_KEYS_MAX: usize = 1 << 16;
/// An index for which so many records were written that nobody asked it about is made anew by the next one who does.
const UNREAD_MAX: usize = 1 << 20;
/// How long somebody sleeps who waits for an index that is being made.
const WAIT: Duration = Duration::from_millis(1);

/// The search indexes of a collection, those of this id and this name, as `$listSearchIndexes` shows them; none where there is no collection.
pub fn listed(view: &dyn View, ns: &Namespace, id: Option<&str>, name: Option<&str>) -> Vec<Document> {
    let found = view.catalog().get(ns);
    let indexes = found.into_iter().flat_map(|found| &found.options.search_indexes);
    indexes.filter(|index| index.is(id, name)).map(described).collect()
}

fn described(index: &SearchIndex) -> Document {
    doc! {
        "id": index.id.to_string(),
        "name": index.name.clone(),
        "type": index.kind.clone(),
        "status": "READY",
        "queryable": true,
        "latestVersion": index.version,
        "latestDefinition": index.definition.clone(),
    }
}

/// What tells one state of a definition from all others.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    collection: CollectionId,
    records: TreeId,
    index: ObjectId,
    version: i64,
}

/// The search indexes of an engine.
pub struct Searches {
    engine: Engine,
    bytes_max: usize,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    /// Counts who asks, so that it is known which index nobody has asked for longest.
    asked: AtomicU64,
    made: AtomicU64,
}

/// What is told of search indexes in `serverStatus`.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Indexes in memory that hold something.
    pub held: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// Bytes that they may take.
    pub bytes_max: u64,
    /// How often an index was asked.
    pub asked: u64,
    /// How often one was made of all documents of its collection.
    pub made: u64,
}

/// The place of an index. Who makes it or brings it up to date holds its lock.
#[derive(Default)]
struct Slot {
    held: Mutex<Option<Held>>,
    bytes: AtomicUsize,
    asked: AtomicU64,
}

/// An index, and what is written since it was as it is.
struct Held {
    watch: Watch,
    index: Index,
    /// Keys that were taken from the watch, and whose records the index does not have yet.
    pending: Touched,
    /// The keys written between its last states, each with the commit up to which; complete behind `since`.
    past: VecDeque<(Lsn, Touched)>,
    past_keys: usize,
    since: Lsn,
}

impl Searches {
    /// None yet; together they may take so many bytes of memory.
    pub fn new(engine: Engine, bytes_max: usize) -> Self {
        Self {
            engine,
            bytes_max,
            slots: Mutex::default(),
            asked: AtomicU64::new(0),
            made: AtomicU64::new(0),
        }
    }

    /// What there is of indexes now, and what was done for them since the start.
    pub fn figures(&self) -> Figures {
        let taken: Vec<usize> = {
            let slots = self.lock();
            let bytes = slots.values().map(|slot| slot.bytes.load(Ordering::Relaxed));
            bytes.filter(|bytes| *bytes > 0).collect()
        };
        Figures {
            held: taken.len() as u64,
            bytes: taken.iter().sum::<usize>() as u64,
            bytes_max: self.bytes_max as u64,
            asked: self.asked.load(Ordering::Relaxed),
            made: self.made.load(Ordering::Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of what `view` shows of a collection.
    ///
    /// Errors: 263 for a view with changes of its own, 146 where it takes more memory than there is for search indexes, those of the
    /// definition, of storage, and of the statement's interrupt.
    pub fn at(&self, view: &dyn View, collection: &Collection, index: &SearchIndex) -> Result<Index> {
        let Some(lsn) = view.lsn_of(collection.records) else {
            bail!(
                OperationNotSupportedInTransaction,
                "search indexes do not have the changes of a transaction that is not committed"
            );
        };
        let key = Key {
            collection: collection.id,
            records: collection.records,
            index: index.id,
            version: index.version,
        };
        let slot = self.lock().entry(key).or_default().clone();
        let now = self.asked.fetch_add(1, Ordering::Relaxed);
        slot.asked.store(now, Ordering::Relaxed);
        let mut place = wait_for(&slot.held)?;
        let held = match &mut *place {
            Some(held) => held,
            none => none.insert(self.make(collection.records, definition(index)?, &slot)?),
        };
        held.catch_up(&self.engine, collection.records)?;
        if let Err(error) = self.make_room(&slot, held.index.bytes()) {
            *place = None;
            return Err(error);
        }
        let found = held.of(view, lsn, collection.records)?;
        drop(place);
        match found {
            Some(index) => Ok(index),
            // The view is older than all that is remembered. What is made for it is gone with the statement.
            None => of_view(
                view,
                collection.records,
                Index::new(definition(index)?),
                |bytes| match bytes > self.bytes_max {
                    true => Err(self.too_large()),
                    false => Ok(()),
                },
            ),
        }
    }

    /// Makes an index of the newest state.
    fn make(&self, records: TreeId, definition: Arc<Definition>, slot: &Arc<Slot>) -> Result<Held> {
        let (watch, snapshot) = self.engine.watch(records);
        let index = of_view(&snapshot, records, Index::new(definition), |bytes| {
            self.make_room(slot, bytes)
        });
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(Held {
            index: index.inspect_err(|_| slot.bytes.store(0, Ordering::Relaxed))?,
            watch,
            pending: Touched::default(),
            past: VecDeque::new(),
            past_keys: 0,
            since: snapshot.lsn(),
        })
    }

    /// Notes that an index takes so many bytes, and lets go of those that nobody has asked for longest until all fit.
    ///
    /// Error: 146 when this one alone takes more than there is.
    fn make_room(&self, slot: &Arc<Slot>, bytes: usize) -> Result<()> {
        slot.bytes.store(bytes, Ordering::Relaxed);
        let mut slots = self.lock();
        loop {
            let all: usize = slots.values().map(|slot| slot.bytes.load(Ordering::Relaxed)).sum();
            if all <= self.bytes_max {
                return Ok(());
            }
            let others = slots.iter().filter(|(_, other)| !Arc::ptr_eq(other, slot));
            let oldest = others
                .filter(|(_, other)| other.bytes.load(Ordering::Relaxed) > 0)
                .min_by_key(|(_, other)| other.asked.load(Ordering::Relaxed))
                .map(|(key, _)| *key);
            match oldest {
                Some(oldest) => drop(slots.remove(&oldest)),
                None => {
                    slot.bytes.store(0, Ordering::Relaxed);
                    return Err(self.too_large());
                }
            }
        }
    }

    fn too_large(&self) -> Error {
        Error::new(
            ErrorCode::ExceededMemoryLimit,
            format!(
                "the search index takes more than the {} bytes of memory that there are for search indexes",
                self.bytes_max
            ),
        )
    }

    /// Lets go of indexes that are no more, and of those for which too much was written that nobody has asked about; to be called about
    /// once a second.
    pub fn tidy(&self) {
        let slots: Vec<(Key, Arc<Slot>)> = self.lock().iter().map(|(key, slot)| (*key, slot.clone())).collect();
        if slots.is_empty() {
            return;
        }
        let snapshot = self.engine.snapshot();
        for (key, slot) in slots {
            let collection = snapshot.catalog().by_id(key.collection);
            let is_there = collection.is_some_and(|collection| {
                let mut indexes = collection.options.search_indexes.iter();
                collection.records == key.records
                    && indexes.any(|index| index.id == key.index && index.version == key.version)
            });
            if !is_there {
                self.lock().remove(&key);
            } else if let Ok(mut held) = slot.held.try_lock() {
                if held.as_ref().is_some_and(|held| held.watch.noted() > UNREAD_MAX) {
                    *held = None;
                    slot.bytes.store(0, Ordering::Relaxed);
                }
            }
        }
    }
}

impl Held {
    /// Brings the index to the newest state.
    fn catch_up(&mut self, engine: &Engine, records: TreeId) -> Result<()> {
        let now = engine.read_watch(&self.watch, &mut self.pending);
        if !self.pending.is_empty() {
            self.index = changed(&self.index, self.pending.iter(), &now, records)?;
            let touched = std::mem::take(&mut self.pending);
            self.past_keys += touched.len();
            self.past.push_back((now.lsn(), touched));
            while self.past_keys > PAST_KEYS_MAX {
                let Some((up_to, keys)) = self.past.pop_front() else {
                    break;
                };
                self.past_keys -= keys.len();
                self.since = up_to;
            }
        }
        Ok(())
    }

    /// The index of a view that shows the commits up to `lsn`; `None` if what was written since is not known any more.
    fn of(&self, view: &dyn View, lsn: Lsn, records: TreeId) -> Result<Option<Index>> {
        if lsn < self.since {
            return Ok(None);
        }
        let mut later = Touched::default();
        for (_, keys) in self.past.iter().filter(|(up_to, _)| *up_to > lsn) {
            later.merge(keys.clone());
        }
        match later.is_empty() {
            true => Ok(Some(self.index.clone())),
            false => changed(&self.index, later.iter(), view, records).map(Some),
        }
    }
}

/// The index of all records of a view. `counted` is told, now and then, how many bytes it takes.
fn of_view(view: &dyn View, records: TreeId, mut index: Index, counted: impl Fn(usize) -> Result<()>) -> Result<Index> {
    let (mut open, mut bytes) = (None, 0);
    for_each_record(view, records, &mut |key, document| {
        open.get_or_insert_with(|| index.change()).record(key, Some(document))?;
        bytes += document.len();
        if let Some(full) = open.take_if(|_| bytes >= COUNTED_BYTES) {
            index = full.finish()?;
            counted(index.bytes())?;
            bytes = 0;
        }
        Ok(())
    })?;
    if let Some(last) = open {
        index = last.finish()?;
        counted(index.bytes())?;
    }
    Ok(index)
}

/// Calls `each` with the keys and documents of all records of a view.
pub(crate) fn for_each_record(
    view: &dyn View,
    records: TreeId,
    each: &mut dyn FnMut(&[u8], RawDoc<'_>) -> Result<()>,
) -> Result<()> {
    let mut cursor = view.cursor(records);
    let mut found = cursor.first()?;
    while found {
        work(ROW)?;
        each(cursor.key(), record::document(cursor.value()?))?;
        found = cursor.next()?;
    }
    Ok(())
}

/// An index with some records as `view` has them.
fn changed(index: &Index, keys: impl Iterator<Item = Bytes>, view: &dyn View, records: TreeId) -> Result<Index> {
    let mut change = index.change();
    let mut reader = RecordReader::new(records);
    for key in keys {
        work(ROW)?;
        let found = reader.get(view, &key)?;
        change.record(&key, found.as_ref().map(Bytes::document))?;
    }
    change.finish()
}

/// What an index is to hold.
///
/// Errors: 67 for a kind that this version does not know, those of definitions.
pub fn definition(index: &SearchIndex) -> Result<Arc<Definition>> {
    let Some(kind) = IndexKind::named(&index.kind) else {
        bail!(
            CannotCreateIndex,
            "search indexes of type '{}' are not known to this version",
            index.kind
        );
    };
    Definition::parse(kind, index.definition.as_ref()).map(Arc::new)
}

/// Waits for a lock as long as the statement may.
fn wait_for<T>(lock: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    loop {
        match lock.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                look()?;
                std::thread::sleep(WAIT);
            }
        }
    }
}
