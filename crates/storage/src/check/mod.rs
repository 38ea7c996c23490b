//! The offline verifier: does a data directory hold what it should?
//!
//! Nothing is changed. It reads everything: every page of the base, every frame of every journal segment, every record,
//! every index entry; and recomputes what follows from something else: index entries from records, counts from what is
//! there.

use crate::base::Base;
use crate::base::tree::{Tree, TreeOptions};
use crate::catalog::{Catalog, Collection, Index};
use crate::engine::directory::Directory;
use crate::engine::recovery::Recovery;
use crate::journal::JournalOptions;
use crate::journal::frame::Frame;
use crate::journal::recover::{self, Access};
use crate::journal::segment::{self, Segment};
use crate::keys::{self, EntryFormat, KeyWriter};
use crate::snapshot::{Layers, Published, Snapshot, View};
use crate::{Result, StorageError, TreeId, record};
use nestor_model::{Namespace, RawDoc, Str, Timestamp, ValueRef};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Computes the keys a document has in an index; `None` if that kind of index is not known, so that only its entries'
/// form is checked. The index on `_id` is known here unless it has a collation or the function answers for it.
pub type IndexKeys<'a> = dyn Fn(&Collection, &Index, RawDoc<'_>) -> Option<Vec<KeyWriter>> + 'a;

/// Faults that are described; beyond that they are only counted.
const FAULTS_MAX: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Each collection with its counts, by ascending namespace.
    pub collections: Vec<CollectionReport>,
    /// Entries and pages of the base.
    pub base: crate::base::CheckReport,
    /// Commits in the journal.
    pub commits: u64,
    /// Oplog entries in the journal.
    pub oplog_entries: u64,
    /// Commits that the next start will replay.
    pub replayed: u64,
    /// Descriptions of what is wrong, the first hundred.
    pub faults: Vec<String>,
    /// Number of faults.
    pub fault_count: u64,
}

/// What a check counted in one collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectionReport {
    /// Which one.
    pub ns: Namespace,
    /// Its records.
    pub documents: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Name and number of entries of each index.
    pub indexes: Vec<(Str, u64)>,
}

impl CheckReport {
    fn fault(&mut self, text: String) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(text);
        }
    }
}

/// Checks the data directory `dir`, which nobody may have open.
///
/// Errors: what prevents a check or makes going on senseless: [`StorageError::DirectoryInUse`], damage in base or
/// catalog ([`StorageError::Corrupt`]). Everything else that is wrong is in the report.
pub fn check(dir: &Path, index_keys: &IndexKeys<'_>) -> Result<CheckReport> {
    let format = dir.join("nestor.format");
    std::fs::metadata(&format).map_err(|e| StorageError::io("open", &format, &e))?;
    let directory = Directory::open(dir)?;
    let mut report = CheckReport::default();
    let options = TreeOptions {
        read_only: true,
        ..TreeOptions::default()
    };
    if !directory.has_base()? {
        return Ok(report);
    }
    let base = Tree::open(&directory.base(), options)?;
    report.base = base.check()?;
    let snapshot = base.snapshot();
    let (mut state, meta) = Recovery::from_base(&snapshot)?;
    check_journal(&directory.journal(), &mut report)?;
    let checkpoint = meta.map(|m| (m.seq, m.optime, m.position));
    let replay = |frame: &Frame<'_>| state.replay(frame);
    recover::open(
        &directory.journal(),
        JournalOptions::new(),
        checkpoint,
        Access::Read,
        replay,
    )?;
    report.replayed = state.seq - meta.map_or(0, |m| m.seq);
    let dropped = state.memtable.dropped_trees();
    let catalog = Arc::new(state.catalog);
    check_trees(&*snapshot, &catalog, &dropped, &mut report)?;
    let layers = Layers {
        active: Arc::new(state.memtable),
        frozen: None,
        base: Some(snapshot),
    };
    let snapshot = Snapshot {
        state: Arc::new(Published {
            seq: state.seq,
            optime: state.optime,
            layers: Arc::new(layers),
            catalog: catalog.clone(),
        }),
    };
    for database in catalog.databases() {
        for collection in database.collections().filter(|c| !c.is_view()) {
            check_collection(&snapshot, collection, index_keys, &mut report)?;
        }
    }
    Ok(report)
}

/// Reads every frame of every segment.
fn check_journal(dir: &Path, report: &mut CheckReport) -> Result<()> {
    let segments = recover::open_segments(dir, &JournalOptions::new())?;
    let mut next: Option<(u64, Timestamp)> = None;
    for segment in &segments {
        if let Some((seq, optime)) = next
            && (segment.first_seq, segment.optime_before) != (seq, optime)
        {
            report.fault(format!("{}: frames before it are missing", segment.path.display()));
        }
        let start = (segment.first_seq, segment.optime_before);
        next = Some(check_segment(segment, start, report)?);
    }
    Ok(())
}

/// Returns the sequence number that follows and the optime reached.
fn check_segment(segment: &Segment, mut at: (u64, Timestamp), report: &mut CheckReport) -> Result<(u64, Timestamp)> {
    let mut bytes = vec![0; (segment.len() - segment::HEADER_BYTES as u64) as usize];
    segment.read(&mut bytes, segment::HEADER_BYTES as u64)?;
    let mut done = 0;
    while done < bytes.len() {
        let place = || format!("{} at byte {}", segment.path.display(), done + segment::HEADER_BYTES);
        let frame = match Frame::read(&bytes[done..]) {
            Ok(frame) => frame,
            Err(unsound) => {
                // Whether this is a torn tail or damage is for recovery to say.
                report.fault(format!("{}: {}", place(), unsound.0));
                break;
            }
        };
        if frame.seq() != at.0 {
            report.fault(format!("{}: frame {} where {} belongs", place(), frame.seq(), at.0));
        }
        for entry in frame.entries() {
            let ts = entry.as_ref().ok().and_then(|entry| entry.get("ts"));
            match ts {
                Some(ValueRef::Timestamp(ts)) if ts > at.1 && ts <= frame.optime() => at.1 = ts,
                _ => report.fault(format!("{}: an oplog entry is broken or out of order", place())),
            }
            report.oplog_entries += 1;
        }
        if frame.ops().any(|op| op.is_err()) {
            report.fault(format!("{}: operations do not decode", place()));
        }
        report.commits += 1;
        at = (frame.seq() + 1, frame.optime());
        done += frame.len();
    }
    Ok(at)
}

/// Looks for trees in the base that belong to nothing.
fn check_trees(
    base: &dyn crate::base::BaseSnapshot,
    catalog: &Catalog,
    dropped: &[TreeId],
    report: &mut CheckReport,
) -> Result<()> {
    let mut known: BTreeSet<TreeId> = dropped.iter().copied().collect();
    known.insert(TreeId::CATALOG);
    for collection in catalog.collections() {
        known.insert(collection.records);
        // What an index that is being built has is nobody's business until it is ready.
        known.extend(collection.all_indexes().map(|index| index.tree));
    }
    // From one known tree to the next: entries between them are nobody's.
    let mut from = 0;
    for tree in known.iter().map(|tree| Some(tree.0)).chain([None]) {
        let low = base.rank(&u32::to_be_bytes(from))?;
        let high = match tree {
            Some(tree) => base.rank(&tree.to_be_bytes())?,
            None => base.entries(),
        };
        if high > low {
            let upto = tree.map_or("the end".into(), |t| t.to_string());
            report.fault(format!(
                "{} entries of trees {from} to {upto} belong to nothing",
                high - low
            ));
        }
        match tree.and_then(|tree| tree.checked_add(1)) {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(())
}

fn check_collection(
    snapshot: &Snapshot,
    collection: &Collection,
    index_keys: &IndexKeys<'_>,
    report: &mut CheckReport,
) -> Result<()> {
    let ns = &collection.ns;
    let formats: Vec<EntryFormat> = collection.indexes.iter().map(|i| i.entry_format(collection)).collect();
    // Entries that records ask for, per index; `None` once an index turned out to be of an unknown kind.
    let mut expected: Vec<Option<u64>> = vec![Some(0); formats.len()];
    let (mut documents, mut bytes) = (0, 0);
    let mut cursor = snapshot.cursor(collection.records);
    let mut more = cursor.first()?;
    while more {
        documents += 1;
        bytes += cursor.value()?.len() as u64;
        check_record(
            snapshot,
            collection,
            &formats,
            (cursor.key(), cursor.value()?),
            index_keys,
            &mut expected,
            report,
        )?;
        more = cursor.next()?;
    }
    let counted = (collection.state.documents(), collection.state.bytes());
    if counted != (documents as i64, bytes as i64) {
        report.fault(format!(
            "{ns}: {documents} documents of {bytes} bytes, but counts say {} of {}",
            counted.0, counted.1
        ));
    }
    let mut indexes = Vec::new();
    for ((index, format), expected) in collection.indexes.iter().zip(&formats).zip(expected) {
        let entries = check_index(snapshot, collection, index, format, expected, index_keys, report)?;
        indexes.push((index.name.clone(), entries));
    }
    report.collections.push(CollectionReport {
        ns: ns.clone(),
        documents,
        bytes,
        indexes,
    });
    Ok(())
}

/// Checks one record and that its index entries are there.
fn check_record(
    snapshot: &Snapshot,
    collection: &Collection,
    formats: &[EntryFormat],
    (key, value): (&[u8], &[u8]),
    index_keys: &IndexKeys<'_>,
    expected: &mut [Option<u64>],
    report: &mut CheckReport,
) -> Result<()> {
    let ns = &collection.ns;
    let doc = match RawDoc::validate(value) {
        Ok(doc) => doc,
        Err(error) => {
            report.fault(format!("{ns}: record {} is not a document: {error}", name(key)));
            return Ok(());
        }
    };
    if collection.is_clustered() {
        let id = doc.get("_id").unwrap_or(ValueRef::Missing);
        // Collations are not known here.
        if collection.options.get("collation").is_none() && keys::encode(id) != key {
            report.fault(format!("{ns}: record {} does not lie at its _id", name(key)));
        }
    } else if record::record_id(key).is_none_or(|id| id.0 >= collection.state.next_record()) {
        report.fault(format!("{ns}: record {} has an id that was not given yet", name(key)));
    }
    for ((index, format), expected) in collection.indexes.iter().zip(formats).zip(expected) {
        let Some(wanted) = keys_of(collection, index, doc, index_keys) else {
            *expected = None;
            continue;
        };
        for writer in wanted {
            let (entry, content) = format.entry(writer.key(), writer.type_bits(), key);
            if let Some(count) = expected {
                *count += 1;
            }
            if snapshot.get(index.tree, &entry)?.as_deref() != Some(&*content) {
                report.fault(format!(
                    "{ns}: record {} has no entry in index {}",
                    name(key),
                    index.name
                ));
            }
        }
    }
    Ok(())
}

/// Checks an index's entries; looks for those that no record asks for if there are more than `expected`.
fn check_index(
    snapshot: &Snapshot,
    collection: &Collection,
    index: &Index,
    format: &EntryFormat,
    expected: Option<u64>,
    index_keys: &IndexKeys<'_>,
    report: &mut CheckReport,
) -> Result<u64> {
    let ns = &collection.ns;
    let mut entries = 0;
    let mut cursor = snapshot.cursor(index.tree);
    let mut more = cursor.first()?;
    while more {
        entries += 1;
        let fault = entry_fault(
            snapshot,
            collection,
            index,
            format,
            (cursor.key(), cursor.value()?),
            index_keys,
        )?;
        if let Some(fault) = fault {
            report.fault(format!(
                "{ns}: entry {} of index {} {fault}",
                name(cursor.key()),
                index.name
            ));
        }
        more = cursor.next()?;
    }
    if let Some(expected) = expected.filter(|expected| *expected != entries) {
        report.fault(format!(
            "{ns}: index {} has {entries} entries, {expected} belong there",
            index.name
        ));
    }
    Ok(entries)
}

/// What is wrong with one index entry.
fn entry_fault(
    snapshot: &Snapshot,
    collection: &Collection,
    index: &Index,
    format: &EntryFormat,
    (key, value): (&[u8], &[u8]),
    index_keys: &IndexKeys<'_>,
) -> Result<Option<&'static str>> {
    let entry = match format.split(key, value) {
        Ok(entry) => entry,
        Err(StorageError::Undecodable(_)) => return Ok(Some("does not decode")),
        Err(error) => return Err(error),
    };
    let Some(bytes) = snapshot.get(collection.records, entry.record)? else {
        return Ok(Some("leads to no record"));
    };
    let Ok(doc) = RawDoc::validate(&bytes) else {
        return Ok(None);
    };
    let wanted = keys_of(collection, index, doc, index_keys);
    let stray = wanted.is_some_and(|wanted| !wanted.iter().any(|w| w.key() == entry.key));
    Ok(stray.then_some("leads to a record without that key"))
}

/// The keys of a document in an index, without duplicates.
fn keys_of(
    collection: &Collection,
    index: &Index,
    doc: RawDoc<'_>,
    index_keys: &IndexKeys<'_>,
) -> Option<Vec<KeyWriter>> {
    if let Some(mut keys) = index_keys(collection, index, doc) {
        keys.sort_by(|a, b| a.key().cmp(b.key()));
        keys.dedup_by(|a, b| a.key() == b.key());
        return Some(keys);
    }
    if !index.is_id() || index.collation.is_some() {
        return None;
    }
    let mut key = KeyWriter::new();
    key.push(doc.get("_id").unwrap_or(ValueRef::Null), false);
    Some(vec![key])
}

/// A key for messages: a record id as its number, other keys as hexadecimal digits.
fn name(key: &[u8]) -> String {
    match record::record_id(key) {
        Some(id) => id.0.to_string(),
        None => format!("{:?}", crate::Bytes::from(key)),
    }
}

#[cfg(test)]
mod tests;
