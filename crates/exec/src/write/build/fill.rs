//! Entries of indexes that neither journal nor log have, made of the documents again: on members that apply an index build, and in
//! directories that were put together of an older base and a newer journal ([`nestor_storage::MakeEntries`]).
//!
//! A member begins when the index is in the catalog as being built, beside the commits that it applies: a watch on the records, a snapshot, and the
//! entries of its documents. When the index is to be ready, it makes up for the records that were written since, once: in between documents may
//! have had the same key in a unique index.

use super::distinct::Distinct;
use super::{BuildProgress, sort_entries};
use crate::index_writer::IndexWriter;
use nestor_model::{DocRef, Error, ErrorCode, Result, Timestamp};
use nestor_query::env::OpContext;
use nestor_storage::base::{Change, changes};
use nestor_storage::{
    Begun, Bytes, Collection, CollectionId, Engine, Filling, IndexId, MakeEntries, Snapshot, StorageError, Touched,
    View, Watch,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};

/// Records whose entries are brought up to date together.
const CATCH_UP_RECORDS: usize = 16_384;

/// Makes entries of documents, one pass over them for all indexes of a commit.
#[derive(Clone, Copy, Debug)]
pub struct FromDocuments {
    /// Memory for keys, in bytes; what is beyond goes into files.
    pub memory_bytes_max: usize,
}

impl Default for FromDocuments {
    fn default() -> Self {
        Self {
            memory_bytes_max: 200 << 20,
        }
    }
}

impl MakeEntries for FromDocuments {
    fn fill(&self, engine: &Engine, collection: CollectionId, indexes: &[IndexId]) -> Result<(), StorageError> {
        let snapshot = engine.snapshot();
        let made = Work::new(engine, snapshot, collection, indexes, *self).and_then(|work| {
            work.load(&AtomicBool::new(false))?;
            work.end()
        });
        made.map_err(|error| stored(engine, &error))
    }

    fn begin(&self, engine: &Engine, collection: CollectionId, indexes: &[IndexId]) -> Option<Box<dyn Begun>> {
        let records = engine.snapshot().catalog().by_id(collection)?.records;
        let stop = Arc::<AtomicBool>::default();
        let (engine, indexes, how, told) = (engine.clone(), indexes.to_vec(), *self, stop.clone());
        let work = move || {
            let (watch, before) = engine.watch(records);
            let work = Work::new(&engine, before, collection, &indexes, how)?;
            work.load(&told)?;
            Ok(Loaded {
                indexes,
                watch,
                before: work.snapshot,
            })
        };
        match Builder::new().name("index-entries".into()).spawn(work) {
            Ok(thread) => Some(Box::new(InBackground {
                collection,
                how: *self,
                stop,
                thread: Some(thread),
            })),
            // All is done when it is wanted.
            Err(_) => None,
        }
    }
}

/// Trees that have the entries of a snapshot's documents.
struct Loaded {
    indexes: Vec<IndexId>,
    watch: Watch,
    before: Snapshot,
}

/// A thread that loads them.
struct InBackground {
    collection: CollectionId,
    how: FromDocuments,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Loaded>>>,
}

impl Begun for InBackground {
    fn finish(mut self: Box<Self>, engine: &Engine) -> Result<bool, StorageError> {
        let loaded = self.thread.take().map(JoinHandle::join);
        // An error comes again when all is done anew, or it was of what the snapshot showed: two documents with the same key.
        let Some(Ok(Ok(loaded))) = loaded else { return Ok(false) };
        let Loaded { indexes, watch, before } = loaded;
        let mut touched = Touched::default();
        let now = engine.read_watch(&watch, &mut touched);
        let done = Work::new(engine, now, self.collection, &indexes, self.how).and_then(|work| {
            work.catch_up(&before, &touched)?;
            work.end()
        });
        done.map(|()| true).map_err(|error| stored(engine, &error))
    }
}

impl Drop for InBackground {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // Nobody wants its result.
            let _ = thread.join();
        }
    }
}

/// The trees of some indexes, and the documents whose entries they are to have.
struct Work<'e> {
    engine: &'e Engine,
    snapshot: Snapshot,
    collection: Arc<Collection>,
    writers: Vec<IndexWriter>,
    op: OpContext,
    how: FromDocuments,
}

impl<'e> Work<'e> {
    fn new(
        engine: &'e Engine,
        snapshot: Snapshot,
        id: CollectionId,
        indexes: &[IndexId],
        how: FromDocuments,
    ) -> Result<Self> {
        let gone = || Error::new(ErrorCode::IndexNotFound, "the index or its collection is gone");
        let collection = snapshot.catalog().by_id(id).cloned().ok_or_else(gone)?;
        let writers = indexes.iter().map(|id| {
            let index = collection.all_indexes().find(|index| index.id == *id);
            IndexWriter::new(&collection, index.ok_or_else(gone)?)
        });
        Ok(Self {
            engine,
            writers: writers.collect::<Result<_>>()?,
            snapshot,
            collection,
            // Keys depend on nothing of an operation: collations and filters are those of the indexes.
            op: OpContext::new(0, Timestamp::default(), 0),
            how,
        })
    }

    /// Empties the trees and loads the entries of all documents.
    fn load(&self, stop: &AtomicBool) -> Result<()> {
        let check = || match stop.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorCode::ShutdownInProgress, "the work has been ended")),
            false => Ok(()),
        };
        let room = (self.how.memory_bytes_max, self.engine.scratch());
        let of = (&self.snapshot, &*self.collection);
        let (sorters, _) = sort_entries(of, &self.writers, &self.op, room, |_| check())?;
        let progress = BuildProgress::default();
        for (writer, sorter) in self.writers.iter().zip(sorters) {
            let filling = self.engine.fill(self.collection.id, writer.index.id)?;
            let mut entries = Distinct::new(writer, sorter.finish()?, &progress);
            let mut more = true;
            while more {
                check()?;
                more = filling.load(&mut entries)?;
                if let Some(error) = entries.sorted.take_error() {
                    return Err(error);
                }
                if entries.duplicate.is_some() {
                    let (ns, name) = (&self.collection.ns, &writer.index.name);
                    let message = format!("two documents of {ns} have the same key in the unique index {name}");
                    return Err(Error::new(ErrorCode::DataCorruptionDetected, message));
                }
            }
        }
        Ok(())
    }

    /// Brings the trees from the documents of `before` to those of the snapshot; `touched` were written between. All deletions come first: a
    /// key may go from one document to another.
    fn catch_up(&self, before: &Snapshot, touched: &Touched) -> Result<()> {
        let records: Vec<Bytes> = touched.iter().collect();
        for writer in &self.writers {
            let filling = self.engine.go_on_filling(self.collection.id, writer.index.id)?;
            for puts in [false, true] {
                for some in records.chunks(CATCH_UP_RECORDS) {
                    self.change(&filling, writer, before, some, puts)?;
                }
            }
        }
        Ok(())
    }

    fn change(
        &self,
        filling: &Filling<'_>,
        writer: &IndexWriter,
        before: &Snapshot,
        records: &[Bytes],
        puts: bool,
    ) -> Result<()> {
        let mut changed: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
        for record in records {
            let of = |snapshot: &Snapshot| match snapshot.get(self.collection.records, record)? {
                Some(found) => self.entries(writer, found.document().as_doc()),
                None => Ok(BTreeMap::new()),
            };
            let (old, new) = (of(before)?, of(&self.snapshot)?);
            let entry = |key: &[u8], type_bits: &[u8]| writer.encoder.format.entry(key, type_bits, record);
            match puts {
                false => {
                    let gone = old.iter().filter(|(key, _)| !new.contains_key(*key));
                    changed.extend(gone.map(|(key, type_bits)| (entry(key, type_bits).0.to_vec(), None)));
                }
                true => {
                    let come = new.iter().filter(|(key, type_bits)| old.get(*key) != Some(*type_bits));
                    changed.extend(come.map(|(key, type_bits)| {
                        let (key, value) = entry(key, type_bits);
                        (key.to_vec(), Some(value.to_vec()))
                    }));
                }
            }
        }
        let all = changed.iter().map(|(key, value)| Change {
            key,
            value: value.as_deref(),
        });
        let mut source = changes(all);
        while filling.load(&mut source)? {}
        Ok(())
    }

    fn entries(&self, writer: &IndexWriter, doc: DocRef<'_>) -> Result<crate::index_writer::Entries> {
        Ok(writer.entries(doc, &self.op)?.0)
    }

    /// Says that the trees have all of it.
    fn end(&self) -> Result<()> {
        for writer in &self.writers {
            self.engine.go_on_filling(self.collection.id, writer.index.id)?.end()?;
        }
        Ok(())
    }
}

/// As the store knows errors.
fn stored(engine: &Engine, error: &Error) -> StorageError {
    match error.code() {
        ErrorCode::OutOfDiskSpace => StorageError::OutOfDiskSpace {
            file: engine.directory().unwrap_or_else(|| "".as_ref()).to_owned(),
        },
        ErrorCode::ShutdownInProgress => StorageError::Closed,
        _ => StorageError::Entries(error.message().to_owned()),
    }
}
