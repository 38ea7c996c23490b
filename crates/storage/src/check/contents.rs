//! The records of a collection and the entries of its indexes.
//!
//! From records to entries first: each record is decoded, its keys are made and looked up. If all are there and an index
//! has no more entries than that, it has no others; only if it has more, each of its entries is followed back.

use super::{DocumentKeys, IndexKeys};
use crate::keys::EntryFormat;
use crate::snapshot::View;
use crate::{Collection, Index, StorageError, record};
use nestor_model::{Namespace, RawDoc, Str};

/// The counts of a check in one collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectionReport {
    /// The collection's name.
    pub ns: Namespace,
    /// How many records the collection has.
    pub documents: u64,
    /// The size of these records in bytes.
    pub bytes: u64,
    /// How many of the records are not valid documents.
    pub invalid: u64,
    /// The collection's indexes, in the order of the catalog entry.
    pub indexes: Vec<IndexReport>,
}

/// The counts of a check in one index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexReport {
    /// The index's name.
    pub name: Str,
    /// How many entries the index has.
    pub entries: u64,
    /// How many faults of the index were reported.
    pub faults: u64,
}

impl CollectionReport {
    /// Compares with what commits have counted, documents and bytes.
    pub fn miscounted(&self, counted: (i64, i64)) -> Option<String> {
        let (documents, bytes) = (self.documents, self.bytes);
        (counted != (documents as i64, bytes as i64)).then(|| {
            format!(
                "{documents} documents of {bytes} bytes, but counts say {} of {}",
                counted.0, counted.1
            )
        })
    }
}

/// A collection being checked.
struct Checker<'a, E> {
    view: &'a dyn View,
    collection: &'a Collection,
    formats: Vec<EntryFormat>,
    keys: Option<&'a dyn DocumentKeys>,
    /// Entries that records ask for, per index.
    expected: Vec<u64>,
    report: CollectionReport,
    pace: &'a mut dyn FnMut() -> Result<(), E>,
    fault: &'a mut dyn FnMut(String),
}

/// Checks one collection in `view` and reports each fault to `fault`. Without `keys` only the form of index entries is checked.
///
/// Errors: those of reading, and those of `pace`, which is called for each record and entry.
pub fn collection<E: From<StorageError>>(
    view: &dyn View,
    collection: &Collection,
    keys: Option<&dyn DocumentKeys>,
    pace: &mut dyn FnMut() -> Result<(), E>,
    fault: &mut dyn FnMut(String),
) -> Result<CollectionReport, E> {
    let formats: Vec<EntryFormat> = collection.indexes.iter().map(|i| i.entry_format(collection)).collect();
    let index = |index: &Index| IndexReport {
        name: index.name.clone(),
        entries: 0,
        faults: 0,
    };
    let mut checker = Checker {
        view,
        collection,
        keys,
        expected: vec![0; formats.len()],
        formats,
        report: CollectionReport {
            ns: collection.ns.clone(),
            documents: 0,
            bytes: 0,
            invalid: 0,
            indexes: collection.indexes.iter().map(|i| index(i)).collect(),
        },
        pace,
        fault,
    };
    checker.records()?;
    for (at, index) in collection.indexes.iter().enumerate() {
        checker.index(at, index)?;
    }
    Ok(checker.report)
}

impl<E: From<StorageError>> Checker<'_, E> {
    fn index_fault(&mut self, at: usize, text: String) {
        self.report.indexes[at].faults += 1;
        (self.fault)(text);
    }

    fn records(&mut self) -> Result<(), E> {
        let mut cursor = self.view.cursor(self.collection.records);
        let mut more = cursor.first()?;
        while more {
            (self.pace)()?;
            self.report.documents += 1;
            self.report.bytes += cursor.value()?.len() as u64;
            self.record(cursor.key(), cursor.value()?)?;
            more = cursor.next()?;
        }
        Ok(())
    }

    /// Checks one record and that its index entries are there.
    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), E> {
        let doc = match RawDoc::validate(value) {
            Ok(doc) => doc,
            Err(error) => {
                self.report.invalid += 1;
                (self.fault)(format!("record {} is not a document: {error}", name(key)));
                return Ok(());
            }
        };
        let clustered = self.collection.is_clustered();
        if !clustered && record::record_id(key).is_none_or(|id| id.0 >= self.collection.state.next_record()) {
            (self.fault)(format!("record {} has an id that was not given yet", name(key)));
        }
        let Some(keys) = self.keys else { return Ok(()) };
        if clustered && *keys.record_key(doc) != *key {
            (self.fault)(format!("record {} does not lie at its _id", name(key)));
        }
        if let Some(why) = keys.document_fault(doc) {
            self.report.invalid += 1;
            (self.fault)(format!("record {}: {why}", name(key)));
        }
        let collection = self.collection;
        for (at, index) in collection.indexes.iter().enumerate() {
            match keys.index_keys(at, doc) {
                Ok(wanted) => self.entries_of(at, index, key, &wanted)?,
                Err(error) => {
                    let reason = error.message();
                    let text = format!("record {} does not fit index {}: {reason}", name(key), index.name);
                    self.index_fault(at, text);
                }
            }
        }
        Ok(())
    }

    /// Looks up the entries that a record has in an index.
    fn entries_of(&mut self, at: usize, index: &Index, record: &[u8], wanted: &IndexKeys) -> Result<(), E> {
        let record_name = || name(record);
        let known = |(part, found): (usize, &u64)| found & !index.multikey.get(part).unwrap_or(&0) == 0;
        if !wanted.multikey.iter().enumerate().all(known) {
            let text = format!(
                "record {} has arrays that index {} does not know of",
                record_name(),
                index.name
            );
            self.index_fault(at, text);
        }
        self.expected[at] += wanted.entries.len() as u64;
        for (key, type_bits) in &wanted.entries {
            let (entry, content) = self.formats[at].entry(key, type_bits, record);
            let found = self.view.get(index.tree, &entry)?;
            if found.as_deref() == Some(&*content) {
                continue;
            }
            let wrong = if found.is_some() { "another" } else { "no" };
            let text = format!("record {} has {wrong} entry in index {}", record_name(), index.name);
            self.index_fault(at, text);
        }
        Ok(())
    }

    /// Checks an index's entries.
    fn index(&mut self, at: usize, index: &Index) -> Result<(), E> {
        let mut entries = 0;
        let mut cursor = self.view.cursor(index.tree);
        let mut more = cursor.first()?;
        while more {
            (self.pace)()?;
            entries += 1;
            if self.formats[at].split(cursor.key(), cursor.value()?).is_err() {
                let text = format!("entry {} of index {} does not decode", name(cursor.key()), index.name);
                self.index_fault(at, text);
            }
            more = cursor.next()?;
        }
        self.report.indexes[at].entries = entries;
        let expected = self.expected[at];
        if self.keys.is_some() && expected != entries {
            let text = format!("index {} has {entries} entries, {expected} belong there", index.name);
            self.index_fault(at, text);
            self.strays(at, index)?;
        }
        Ok(())
    }

    /// Looks for entries that no record asks for.
    fn strays(&mut self, at: usize, index: &Index) -> Result<(), E> {
        let mut cursor = self.view.cursor(index.tree);
        let mut more = cursor.first()?;
        while more {
            (self.pace)()?;
            if let Some(fault) = self.stray(at, cursor.key(), cursor.value()?)? {
                let text = format!("entry {} of index {} {fault}", name(cursor.key()), index.name);
                self.index_fault(at, text);
            }
            more = cursor.next()?;
        }
        Ok(())
    }

    /// The fault of an index entry's target, if it has one.
    fn stray(&self, at: usize, key: &[u8], value: &[u8]) -> Result<Option<&'static str>, E> {
        let Ok(entry) = self.formats[at].split(key, value) else {
            return Ok(None);
        };
        let Some(bytes) = self.view.get(self.collection.records, entry.record)? else {
            return Ok(Some("leads to no record"));
        };
        let (Some(keys), Ok(doc)) = (self.keys, RawDoc::validate(&bytes)) else {
            return Ok(None);
        };
        let wanted = keys.index_keys(at, doc);
        let wanted = wanted.is_ok_and(|wanted| wanted.entries.contains_key(entry.key));
        Ok((!wanted).then_some("leads to a record without that key"))
    }
}

/// A key for messages: a record id as its number, other keys as hexadecimal digits.
fn name(key: &[u8]) -> String {
    match record::record_id(key) {
        Some(id) => id.0.to_string(),
        None => format!("{:?}", crate::Bytes::from(key)),
    }
}
