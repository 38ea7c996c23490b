//! Building indexes of a filled collection while readers and writers go on.
//!
//! The indexes are in the catalog as being built ([`Collection::building`]): nobody else reads or writes their trees,
//! writers do not know of them. `T(S)` below means that a tree holds exactly the entries of the documents of snapshot `S`.
//!
//! ```text
//! scan    a watch on the records begins, with snapshot S0. The keys of every document of S0 go to a sorter, which spills.
//! load    The sorted entries go into the tree:                                                        T(S0)
//! drain   S1 is taken, with the keys of the records written since S0. What their documents had in S0 and do not have in S1
//!         is deleted, then what they have in S1 and did not have in S0 is put:                         T(S1)
//!         Again from S1, until little is left.
//! commit  The same once more for what is left, while nobody else commits, together with the catalog change that
//!         makes the indexes ready.
//! ```
//!
//! So no entry is missing and none is left over, whatever was written between, and what a document's keys are
//! is computed by the same code that writers use. A violation (a duplicate, parallel arrays) is found in one of the
//! snapshots: the collection really was like that at that moment, and the build fails. Deleting before putting within a
//! round is what keeps a key that moved from one document to another from looking like a duplicate.

mod distinct;
mod fill;
mod progress;

pub use crate::key_sorter::{KeySorter, Sorted};
pub use fill::FromDocuments;
pub use progress::{BuildProgress, Phase};

use super::admission::Admission;
use super::collection_locks::CollectionLocks;
use super::{Writer, with_retry};
use crate::index_writer::{IndexWriter, duplicate_key};
use crate::interrupt::{Interrupt, while_waiting};
use distinct::Distinct;
use nestor_model::statement::{ROW, work};
use nestor_model::{DocRef, Error, ErrorCode, Result};
use nestor_query::env::OpContext;
use nestor_query::keys::MultikeyPaths;
use nestor_storage::{
    Bytes, Collection, CollectionId, Commit, Engine, IndexId, Scratch, Snapshot, StorageError, Touched, View, Watch,
    WriteSet,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of documents and keys that count as one unit of work.
const BYTES_PER_UNIT: usize = 64;
/// Documents scanned between two looks at the catalog.
const LOOK_EVERY: u64 = 4096;
/// Records of one commit while draining.
const DRAIN_RECORDS: usize = 2048;
/// Most records that the last round brings up to date, while nobody else commits.
const LAST_RECORDS: usize = 256;
/// How long writers that are too fast wait for each record at first.
const SLOW_MIN: Duration = Duration::from_micros(16);
/// Rounds after which the last commit takes whatever is left.
const ROUNDS_MAX: u32 = 24;
/// Attempts to drop what is left of a build before giving up: few commits come in between.
const ABANDON_ATTEMPTS: u32 = 5;

/// How to build.
pub struct BuildOptions<'b> {
    /// Memory for keys, in bytes; what is beyond goes into files.
    pub memory_bytes_max: usize,
    /// The directory of those files.
    pub spill_dir: Scratch,
    /// Tells the build when to stop.
    pub interrupt: &'b Interrupt,
    /// How long it waits for transactions that use the collection, at its end.
    pub lock_timeout: Option<Duration>,
    /// The context of the operation, with its time.
    pub op: &'b OpContext,
    /// The gate that the build passes before each commit.
    pub admission: &'b Admission,
    /// The locks of collections: the last commit waits for transactions that use the collection.
    pub locks: &'b CollectionLocks,
    /// Where the build reports its progress.
    pub progress: &'b BuildProgress,
}

/// The figures of a build.
#[derive(Clone, Copy, Debug)]
pub struct Built {
    /// The commit that made the indexes ready.
    pub commit: Commit,
    /// Keys that were sorted.
    pub keys: u64,
    /// Bytes written to temporary files, and their number.
    pub spilled: (u64, usize),
    /// How many rounds replayed what was written during the build, and how many records they had altogether.
    pub drained: (u32, u64),
}

/// Builds `indexes`, which [`WriteSet::start_index`] put into the catalog, and makes them ready with one commit, to which
/// `finish` adds what else belongs there (the oplog entries). `finish` may be called again when the commit is retried.
///
/// After an error all the indexes have been dropped. If the store could not commit that, [`abandon`] has to be called again, or
/// the next start drops them.
///
/// Errors: 11000 and those of making keys of the collection's documents; 276 when one of the indexes or the collection was
/// dropped during the build; those of the interrupt, of temporary files and of commits.
pub fn build_indexes(
    engine: &Engine,
    collection: CollectionId,
    indexes: &[IndexId],
    options: &BuildOptions<'_>,
    finish: impl FnMut(&mut WriteSet) -> Result<()>,
) -> Result<Built> {
    let result = Build::new(engine, collection, indexes, options).and_then(|build| build.run(finish));
    result.map_err(|error| {
        let was_there = is_building(&engine.snapshot(), collection, indexes);
        // The operation that asked for the build looks whether its client is gone.
        let _gone = abandon(engine, options.admission, collection, indexes);
        if was_there { error } else { aborted() }
    })
}

/// Drops what is left of a build. Does nothing and returns false while commits are blocked, and while an open transaction has
/// changed the collection's catalog entry: it does not wait, because the caller may be the one who ends that transaction.
///
/// Errors: those of a commit.
pub fn abandon(engine: &Engine, admission: &Admission, collection: CollectionId, indexes: &[IndexId]) -> Result<bool> {
    for _ in 0..ABANDON_ATTEMPTS {
        let Some(_admitted) = admission.try_enter() else {
            return Ok(false);
        };
        let mut ws = engine.begin();
        let Some(found) = ws.catalog().by_id(collection).cloned() else {
            return Ok(true);
        };
        for index in found.building.iter().filter(|index| indexes.contains(&index.id)) {
            ws.drop_index(collection, index.id)?;
        }
        match engine.commit(ws) {
            Ok(_) => return Ok(true),
            Err(StorageError::WriteConflict | StorageError::Reserved(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

fn is_building(view: &dyn View, collection: CollectionId, indexes: &[IndexId]) -> bool {
    let found = view.catalog().by_id(collection);
    found.is_some_and(|c| indexes.iter().all(|index| c.building_by_id(*index).is_some()))
}

fn aborted() -> Error {
    Error::new(
        ErrorCode::IndexBuildAborted,
        "Index build aborted: the index or its collection was dropped",
    )
}

/// The entries of all documents of a collection in a snapshot, by index, and which of their paths hold arrays. `room` is the memory for all of them
/// in bytes, and where files go beyond it. `each` is called with the number of each document, from 1.
///
/// Errors: those of making keys, of temporary files and of `each`.
fn sort_entries(
    (snapshot, collection): (&Snapshot, &Collection),
    writers: &[IndexWriter],
    op: &OpContext,
    room: (usize, Scratch),
    mut each: impl FnMut(u64) -> Result<()>,
) -> Result<(Vec<KeySorter>, Vec<MultikeyPaths>)> {
    let memory = room.0 / writers.len().max(1);
    let sorter = |_| KeySorter::new(memory, room.1.clone());
    let mut sorters: Vec<KeySorter> = writers.iter().map(sorter).collect();
    let mut found = vec![MultikeyPaths::default(); writers.len()];
    let mut cursor = snapshot.cursor(collection.records);
    let mut more = cursor.first()?;
    let mut seen = 0u64;
    while more {
        seen += 1;
        work(ROW)?;
        each(seen)?;
        let document = cursor.value_bytes()?;
        // A few large documents are as much work as many small ones.
        work(document.len() / BYTES_PER_UNIT)?;
        let doc = document.document().as_doc();
        for (at, writer) in writers.iter().enumerate() {
            let (entries, multikey) = writer.entries(doc, op)?;
            for (key, type_bits) in &entries {
                work(1 + key.len() / BYTES_PER_UNIT)?;
                let (key, value) = writer.encoder.format.entry(key, type_bits, cursor.key());
                sorters[at].push(&key, &value)?;
            }
            if multikey.is_multikey() {
                found[at].merge(&multikey);
            }
        }
        more = cursor.next()?;
    }
    Ok((sorters, found))
}

/// A build under way.
struct Build<'b> {
    engine: &'b Engine,
    id: CollectionId,
    ids: &'b [IndexId],
    options: &'b BuildOptions<'b>,
    writers: Vec<IndexWriter>,
    /// By index.
    multikey: Vec<MultikeyPaths>,
    watch: Watch,
    /// The state whose entries the trees hold, once they are loaded.
    before: Snapshot,
    collection: Arc<Collection>,
    /// Records written after it.
    pending: Touched,
}

/// The work of one walk over the records of a round.
#[derive(Clone, Copy)]
struct Pass {
    deletes: bool,
    puts: bool,
}

/// The walks of a round: where keys may be refused, all deletions come before the first insertion.
const APART: &[Pass] = &[
    Pass {
        deletes: true,
        puts: false,
    },
    Pass {
        deletes: false,
        puts: true,
    },
];
const TOGETHER: &[Pass] = &[Pass {
    deletes: true,
    puts: true,
}];

impl<'b> Build<'b> {
    fn new(engine: &'b Engine, id: CollectionId, ids: &'b [IndexId], options: &'b BuildOptions<'b>) -> Result<Self> {
        let records = match engine.snapshot().catalog().by_id(id) {
            Some(collection) => collection.records,
            None => return Err(aborted()),
        };
        let (watch, before) = engine.watch(records);
        let Some(collection) = before.catalog().by_id(id).cloned() else {
            return Err(aborted());
        };
        let writers = ids
            .iter()
            .map(|id| {
                let index = collection.building_by_id(*id).ok_or_else(aborted)?;
                IndexWriter::new(&collection, index)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            engine,
            id,
            ids,
            options,
            multikey: vec![MultikeyPaths::default(); writers.len()],
            writers,
            watch,
            before,
            collection,
            pending: Touched::default(),
        })
    }

    fn run(mut self, mut finish: impl FnMut(&mut WriteSet) -> Result<()>) -> Result<Built> {
        let sorters = self.scan()?;
        let spilled = sorters.iter().map(KeySorter::spilled);
        let spilled = spilled.fold((0, 0), |(bytes, files), (b, f)| (bytes + b, files + f));
        let total = sorters.iter().map(KeySorter::entries).sum();
        self.options.progress.begin(Phase::Load, total);
        for (at, sorter) in sorters.into_iter().enumerate() {
            self.load(at, sorter)?;
        }
        let (mut rounds, mut drained, mut last) = (0, 0, usize::MAX);
        let mut slow = SLOW_MIN;
        let (locks, own) = (self.options.locks, [self.id]);
        let mut exclusion = None;
        loop {
            self.check()?;
            let now = self.engine.read_watch(&self.watch, &mut self.pending);
            if self.pending.len() > LAST_RECORDS && rounds < ROUNDS_MAX {
                rounds += 1;
                // Many writers may be faster than this one thread; then the end would never come.
                if self.pending.len() > last / 2 {
                    self.watch.slow_writers(slow);
                    slow *= 2;
                }
                last = self.pending.len();
                drained += last as u64;
                self.drain(now)?;
                continue;
            }
            drop(now);
            if exclusion.is_none() {
                exclusion = locks.try_exclude(&own);
            }
            if exclusion.is_none() {
                // Writes made while it waits are made up for first.
                let until = self.options.lock_timeout.map(|most| Instant::now() + most);
                exclusion = Some(locks.exclude(&own, until, self.options.interrupt)?);
                continue;
            }
            if let Some(commit) = self.commit(rounds >= ROUNDS_MAX, &mut finish)? {
                return Ok(Built {
                    commit,
                    keys: total,
                    spilled,
                    drained: (rounds, drained),
                });
            }
        }
    }

    /// Whether it should go on.
    fn check(&self) -> Result<()> {
        self.options.interrupt.check()?;
        if is_building(&self.engine.snapshot(), self.id, self.ids) {
            Ok(())
        } else {
            Err(aborted())
        }
    }

    /// The entries of all documents, unsorted.
    fn scan(&mut self) -> Result<Vec<KeySorter>> {
        let documents = u64::try_from(self.collection.state.documents()).unwrap_or(0);
        self.options.progress.begin(Phase::Scan, documents);
        let mut interrupt = self.options.interrupt.paced();
        let room = (self.options.memory_bytes_max, self.options.spill_dir.clone());
        let (sorters, multikey) = sort_entries(
            (&self.before, &self.collection),
            &self.writers,
            self.options.op,
            room,
            |seen| {
                self.options.progress.set_done(seen);
                interrupt.check()?;
                match seen.is_multiple_of(LOOK_EVERY) {
                    true => self.check(),
                    false => Ok(()),
                }
            },
        )?;
        self.multikey = multikey;
        Ok(sorters)
    }

    /// Sorts the entries of one index and puts them into its tree.
    fn load(&mut self, at: usize, sorter: KeySorter) -> Result<()> {
        let writer = &self.writers[at];
        let mut entries = Distinct::new(writer, sorter.finish()?, self.options.progress);
        loop {
            let more = self.engine.load(self.id, self.ids[at], &mut entries)?;
            if let Some(error) = entries.sorted.take_error() {
                return Err(error);
            }
            if let Some((key, record)) = entries.duplicate {
                let document = self.before.get(self.collection.records, &record)?;
                let doc = document.as_ref().map(|d| d.document().as_doc());
                let empty = nestor_model::Document::new();
                return Err(duplicate_key(
                    &self.collection,
                    writer,
                    &key,
                    doc.unwrap_or(empty.as_ref()),
                ));
            }
            if !more {
                return Ok(self.engine.end_load(self.id, self.ids[at])?);
            }
            self.check()?;
        }
    }

    /// Makes the trees hold the entries of `now`, up to which `pending` is all that was written.
    fn drain(&mut self, now: Snapshot) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let progress = self.options.progress;
        let passes = self.passes();
        progress.begin(Phase::Drain, (passes.len() * pending.len()) as u64);
        for pass in passes {
            let mut records = pending.iter();
            loop {
                let some: Vec<Bytes> = records.by_ref().take(DRAIN_RECORDS).collect();
                if some.is_empty() {
                    break;
                }
                self.check()?;
                let interrupt = self.options.interrupt;
                let mut found = std::mem::take(&mut self.multikey);
                let done: Result<()> = with_retry(interrupt, |obstacle| {
                    let _admitted = self.options.admission.enter(interrupt)?;
                    let mut ws = self.engine.begin();
                    self.catch_up(&mut ws, &now, &some, *pass, &mut found)?;
                    obstacle.commit(self.engine, ws)?;
                    Ok(())
                });
                self.multikey = found;
                done?;
                progress.add_done(some.len() as u64);
            }
        }
        self.before = now;
        Ok(())
    }

    fn passes(&self) -> &'static [Pass] {
        match self.writers.iter().any(IndexWriter::refuses_duplicates) {
            true => APART,
            false => TOGETHER,
        }
    }

    /// One pass of a round over some records.
    fn catch_up(
        &self,
        ws: &mut WriteSet,
        now: &Snapshot,
        records: &[Bytes],
        pass: Pass,
        multikey: &mut [MultikeyPaths],
    ) -> Result<()> {
        if !is_building(ws, self.id, self.ids) {
            return Err(aborted());
        }
        let collection = ws.catalog().by_id(self.id).cloned().ok_or_else(aborted)?;
        // It conflicts if the collection is dropped meanwhile: then nothing may be put into the trees any more.
        let mut target = Writer::new(ws, collection, self.options.op, None)?;
        for record in records {
            let old = self.before.get(self.collection.records, record)?;
            if old.is_none() && !pass.puts {
                continue;
            }
            let new = now.get(self.collection.records, record)?;
            if new.is_none() && !pass.deletes {
                continue;
            }
            for (writer, multikey) in self.writers.iter().zip(multikey.iter_mut()) {
                let of = |doc: Option<DocRef<'_>>| match doc {
                    Some(doc) => writer.entries(doc, self.options.op),
                    None => Ok(Default::default()),
                };
                let (before, _) = of(old.as_ref().map(|d| d.document().as_doc()))?;
                let (after, found) = of(new.as_ref().map(|d| d.document().as_doc()))?;
                if pass.deletes {
                    for key in before.keys().filter(|key| !after.contains_key(*key)) {
                        target.delete_entry(writer, key, record);
                    }
                }
                if let (Some(new), true) = (&new, pass.puts) {
                    multikey.merge(&found);
                    for (key, type_bits) in &after {
                        if before.get(key) != Some(type_bits) {
                            target.put_entry(writer, key, type_bits, record, new.document().as_doc())?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The last commit. `None` when more was written meanwhile than should be made up for here, unless `whatever`.
    fn commit(
        &mut self,
        whatever: bool,
        finish: &mut impl FnMut(&mut WriteSet) -> Result<()>,
    ) -> Result<Option<Commit>> {
        self.options.progress.begin(Phase::Commit, 1);
        let engine = self.engine;
        // An open transaction that has changed the catalog entry is waited for.
        with_retry(self.options.interrupt, |_| {
            let _admitted = self.options.admission.enter(self.options.interrupt)?;
            let mut pending = std::mem::take(&mut self.pending);
            let mut multikey = self.multikey.clone();
            // It holds up whoever commits, so it makes way before and not meanwhile.
            let result = while_waiting(|| {
                engine.commit_alone(&self.watch, |now, touched| -> Result<Option<WriteSet>> {
                    pending.merge(touched);
                    if pending.len() > LAST_RECORDS && !whatever {
                        return Ok(None);
                    }
                    let records: Vec<Bytes> = pending.iter().collect();
                    let mut ws = engine.begin_at(now.clone());
                    for pass in self.passes() {
                        self.catch_up(&mut ws, &now, &records, *pass, &mut multikey)?;
                    }
                    for (index, found) in self.ids.iter().zip(&multikey) {
                        if found.is_multikey() {
                            ws.set_multikey(self.id, *index, &found.components)?;
                        }
                        ws.finish_index(self.id, *index)?;
                    }
                    finish(&mut ws)?;
                    Ok(Some(ws))
                })
            });
            self.pending = pending;
            result
        })
    }
}
