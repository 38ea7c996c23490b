//! Entries of indexes that neither journal nor log have, made of the documents again: on members that apply the end of an index build, and in
//! directories that were put together of an older base and a newer journal ([`nestor_storage::MakeEntries`]).

use super::distinct::Distinct;
use super::{BuildProgress, sort_entries};
use crate::index_writer::IndexWriter;
use nestor_model::{Error, ErrorCode, Timestamp};
use nestor_query::env::OpContext;
use nestor_storage::{CollectionId, Engine, IndexId, MakeEntries, StorageError, View};

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
        self.make(engine, collection, indexes)
            .map_err(|error| stored(engine, &error))
    }
}

impl FromDocuments {
    fn make(&self, engine: &Engine, id: CollectionId, indexes: &[IndexId]) -> Result<(), Error> {
        let snapshot = engine.snapshot();
        let Some(collection) = snapshot.catalog().by_id(id).cloned() else {
            return Ok(());
        };
        let of = |id: &IndexId| collection.all_indexes().find(|index| index.id == *id);
        let writers = indexes.iter().filter_map(of);
        let writers = writers.map(|index| IndexWriter::new(&collection, index));
        let writers = writers.collect::<Result<Vec<_>, Error>>()?;
        // Keys depend on nothing of an operation: collations and filters are those of the indexes.
        let op = OpContext::new(0, Timestamp::default(), 0);
        let memory = self.memory_bytes_max;
        let (sorters, _) = sort_entries(
            (&snapshot, &collection),
            &writers,
            &op,
            (memory, engine.scratch()),
            |_| Ok(()),
        )?;
        let progress = BuildProgress::default();
        for (writer, sorter) in writers.iter().zip(sorters) {
            let filling = engine.fill(id, writer.index.id)?;
            let mut entries = Distinct::new(writer, sorter.finish()?, &progress);
            let mut more = true;
            while more {
                more = filling.load(&mut entries)?;
                if let Some(error) = entries.sorted.take_error() {
                    return Err(error);
                }
                if entries.duplicate.is_some() {
                    let (ns, name) = (&collection.ns, &writer.index.name);
                    let message = format!("two documents of {ns} have the same key in the unique index {name}");
                    return Err(Error::new(ErrorCode::DataCorruptionDetected, message));
                }
            }
            filling.end()?;
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
