//! The records of a collection and the entries of its indexes.
//!
//! From records to entries first: each record is decoded, its keys are made and looked up. If all are there and an index
//! has no more entries than that, it has no others; only if it has more, each of its entries is followed back.

use super::{CheckReport, CollectionReport, DocumentKeys, KeysOf};
use crate::keys::EntryFormat;
use crate::snapshot::{Snapshot, View};
use crate::{Collection, Index, Result, StorageError, record};
use nestor_model::RawDoc;

/// A collection being checked.
struct Checker<'a> {
    snapshot: &'a Snapshot,
    collection: &'a Collection,
    formats: Vec<EntryFormat>,
    /// `None` if they cannot be made: then only the form of entries is checked.
    keys: Option<Box<dyn DocumentKeys>>,
    /// Entries that records ask for, per index.
    expected: Vec<u64>,
    report: &'a mut CheckReport,
}

pub(super) fn check(
    snapshot: &Snapshot,
    collection: &Collection,
    keys_of: &KeysOf<'_>,
    report: &mut CheckReport,
) -> Result<CollectionReport> {
    let formats: Vec<EntryFormat> = collection.indexes.iter().map(|i| i.entry_format(collection)).collect();
    let mut checker = Checker {
        snapshot,
        collection,
        keys: None,
        expected: vec![0; formats.len()],
        formats,
        report,
    };
    match keys_of(collection) {
        Ok(keys) => checker.keys = Some(keys),
        Err(error) => checker.fault(format!("keys of its indexes cannot be made: {}", error.message())),
    }
    let (documents, bytes) = checker.records()?;
    let counted = (collection.state.documents(), collection.state.bytes());
    if counted != (documents as i64, bytes as i64) {
        checker.fault(format!(
            "{documents} documents of {bytes} bytes, but counts say {} of {}",
            counted.0, counted.1
        ));
    }
    let mut indexes = Vec::new();
    for (at, index) in collection.indexes.iter().enumerate() {
        indexes.push((index.name.clone(), checker.index(at, index)?));
    }
    Ok(CollectionReport {
        ns: collection.ns.clone(),
        documents,
        bytes,
        indexes,
    })
}

impl Checker<'_> {
    fn fault(&mut self, text: String) {
        self.report.fault(format!("{}: {text}", self.collection.ns));
    }

    /// Checks all records; returns their number and size.
    fn records(&mut self) -> Result<(u64, u64)> {
        let (mut documents, mut bytes) = (0, 0);
        let mut cursor = self.snapshot.cursor(self.collection.records);
        let mut more = cursor.first()?;
        while more {
            documents += 1;
            bytes += cursor.value()?.len() as u64;
            self.record(cursor.key(), cursor.value()?)?;
            more = cursor.next()?;
        }
        Ok((documents, bytes))
    }

    /// Checks one record and that its index entries are there.
    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let doc = match RawDoc::validate(value) {
            Ok(doc) => doc,
            Err(error) => {
                self.fault(format!("record {} is not a document: {error}", name(key)));
                return Ok(());
            }
        };
        let clustered = self.collection.is_clustered();
        if !clustered && record::record_id(key).is_none_or(|id| id.0 >= self.collection.state.next_record()) {
            self.fault(format!("record {} has an id that was not given yet", name(key)));
        }
        let Some(keys) = self.keys.take() else { return Ok(()) };
        if clustered && *keys.record_key(doc) != *key {
            self.fault(format!("record {} does not lie at its _id", name(key)));
        }
        let collection = self.collection;
        let checked = (collection.indexes.iter().enumerate())
            .try_for_each(|(at, index)| self.entries_of(&*keys, (at, index), doc, key));
        self.keys = Some(keys);
        checked
    }

    /// Looks up the entries that a record has in an index.
    fn entries_of(
        &mut self,
        keys: &dyn DocumentKeys,
        (at, index): (usize, &Index),
        doc: RawDoc<'_>,
        record: &[u8],
    ) -> Result<()> {
        let wanted = match keys.index_keys(at, doc) {
            Ok(wanted) => wanted,
            Err(error) => {
                let reason = error.message();
                self.fault(format!(
                    "record {} does not fit index {}: {reason}",
                    name(record),
                    index.name
                ));
                return Ok(());
            }
        };
        let known = |(part, found): (usize, &u64)| found & !index.multikey.get(part).unwrap_or(&0) == 0;
        if !wanted.multikey.iter().enumerate().all(known) {
            self.fault(format!(
                "record {} has arrays that index {} does not know of",
                name(record),
                index.name
            ));
        }
        self.expected[at] += wanted.entries.len() as u64;
        for (key, type_bits) in &wanted.entries {
            let (entry, content) = self.formats[at].entry(key, type_bits, record);
            let found = self.snapshot.get(index.tree, &entry)?;
            if found.as_deref() == Some(&*content) {
                continue;
            }
            let wrong = if found.is_some() { "another" } else { "no" };
            self.fault(format!(
                "record {} has {wrong} entry in index {}",
                name(record),
                index.name
            ));
        }
        Ok(())
    }

    /// Checks an index's entries; returns how many there are.
    fn index(&mut self, at: usize, index: &Index) -> Result<u64> {
        let mut entries = 0;
        let mut cursor = self.snapshot.cursor(index.tree);
        let mut more = cursor.first()?;
        while more {
            entries += 1;
            if let Err(error) = self.formats[at].split(cursor.key(), cursor.value()?) {
                self.undecodable(index, cursor.key(), error)?;
            }
            more = cursor.next()?;
        }
        if self.keys.is_some() && self.expected[at] != entries {
            self.fault(format!(
                "index {} has {entries} entries, {} belong there",
                index.name, self.expected[at]
            ));
            self.strays(at, index)?;
        }
        Ok(entries)
    }

    fn undecodable(&mut self, index: &Index, key: &[u8], error: StorageError) -> Result<()> {
        match error {
            StorageError::Undecodable(_) => {
                self.fault(format!("entry {} of index {} does not decode", name(key), index.name))
            }
            error => return Err(error),
        }
        Ok(())
    }

    /// Looks for entries that no record asks for.
    fn strays(&mut self, at: usize, index: &Index) -> Result<()> {
        let mut cursor = self.snapshot.cursor(index.tree);
        let mut more = cursor.first()?;
        while more {
            if let Some(fault) = self.stray(at, cursor.key(), cursor.value()?)? {
                self.fault(format!("entry {} of index {} {fault}", name(cursor.key()), index.name));
            }
            more = cursor.next()?;
        }
        Ok(())
    }

    /// What is wrong with where an index entry leads to.
    fn stray(&self, at: usize, key: &[u8], value: &[u8]) -> Result<Option<&'static str>> {
        let Ok(entry) = self.formats[at].split(key, value) else {
            return Ok(None);
        };
        let Some(bytes) = self.snapshot.get(self.collection.records, entry.record)? else {
            return Ok(Some("leads to no record"));
        };
        let (Some(keys), Ok(doc)) = (&self.keys, RawDoc::validate(&bytes)) else {
            return Ok(None);
        };
        let wanted = keys
            .index_keys(at, doc)
            .is_ok_and(|keys| keys.entries.contains_key(entry.key));
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
