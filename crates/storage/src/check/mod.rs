//! The offline verifier: does a data directory hold what it should?
//!
//! ```text
//! base       meta pages, every page used once or free, order, counts     base::tree::check
//! recovery   base and journal's tail become one view in memory           engine::recovery, as at start-up
//! journal    every frame of every segment                                check::journal
//! catalog    trees that belong to nothing or to two                      check::catalog
//! derived    files beside the base, such as columns                      beside
//! contents   records, their counts, index entries both ways              check::contents
//! ```
//!
//! [`collection`] checks the contents of one collection in any view, of a running store too.
//!
//! Nothing is changed and nothing is created: a directory without write permission and a copy can be checked. What a
//! crash may leave, and the next start deals with, is a note; anything else that is not as it should be is a fault.

mod catalog;
mod contents;
mod journal;

pub use contents::{CollectionReport, IndexReport, collection};

use crate::base::tree::{Tree, TreeOptions};
use crate::base::{Base, BaseSnapshot};
use crate::beside::{self, Beside};
use crate::encryption::MasterKey;
use crate::engine::directory::Directory;
use crate::engine::recovery::Recovery;
use crate::journal::frame::Frame;
use crate::journal::mark::Found;
use crate::journal::recover::{self, Access, Known};
use crate::journal::{JournalOptions, Position};
use crate::snapshot::{Layers, Published, Snapshot, View};
use crate::{Bytes, Collection, CollectionId, IndexId, Result, StorageError};
use nestor_model::{Error, RawDoc};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// How documents of one collection become keys: what a layer above knows.
pub trait DocumentKeys {
    /// The record key of a document in a clustered collection.
    fn record_key(&self, doc: RawDoc<'_>) -> Bytes;

    /// What is wrong with a document of this collection beside its keys; `None` for nothing.
    fn document_fault(&self, _doc: RawDoc<'_>) -> Option<String> {
        None
    }

    /// The keys of a document in index number `index` of [`Collection::indexes`].
    ///
    /// Errors: the index cannot hold the document.
    fn index_keys(&self, index: usize, doc: RawDoc<'_>) -> Result<IndexKeys, Error>;
}

/// The keys of one document in one index.
#[derive(Debug, Default)]
pub struct IndexKeys {
    /// Each key with its type bits.
    pub entries: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Where its paths ran through arrays, as [`crate::Index::multikey`].
    pub multikey: Vec<u64>,
}

/// Makes the [`DocumentKeys`] of a collection. Errors: its keys cannot be made.
pub type KeysOf<'a> = dyn Fn(&Collection) -> Result<Box<dyn DocumentKeys>, Error> + 'a;

/// Notes and faults that are described; beyond that they are only counted.
const DESCRIBED_MAX: usize = 100;

/// The findings of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Each collection that could be read, with its counts, by ascending namespace.
    pub collections: Vec<CollectionReport>,
    /// Entries and pages of the base.
    pub base: crate::base::CheckReport,
    /// Segments of the journal.
    pub segments: u64,
    /// Commits in the journal.
    pub commits: u64,
    /// Oplog entries in the journal.
    pub oplog_entries: u64,
    /// Data keys of an encrypted directory; 0 for others.
    pub data_keys: u64,
    /// Files of what is derived, such as columns.
    pub derived: u64,
    /// Commits that the next start will replay.
    pub replayed: u64,
    /// Parts that could not be checked, because nothing tells how they should be.
    pub unverified: Vec<String>,
    /// The first hundred of the things that a crash may leave.
    pub notes: Vec<String>,
    /// Descriptions of what is wrong, the first hundred.
    pub faults: Vec<String>,
    /// Number of faults.
    pub fault_count: u64,
}

impl CheckReport {
    fn fault(&mut self, text: impl Into<String>) {
        let text = text.into();
        // Damage that several of the passes meet is one fault.
        if self.faults.contains(&text) {
            return;
        }
        self.fault_count += 1;
        if self.faults.len() < DESCRIBED_MAX {
            self.faults.push(text);
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        if self.notes.len() < DESCRIBED_MAX {
            self.notes.push(text.into());
        }
    }

    /// Takes an error that tells of damage as a fault of `part`, so that the rest can be checked. Passes others on.
    fn damage<T>(&mut self, part: &str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_damage(&error) => {
                self.fault(format!("{part}{error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether an error says that stored bytes are not what they were.
fn is_damage(error: &StorageError) -> bool {
    match error {
        StorageError::Corrupt { .. } | StorageError::CommitsLost { .. } | StorageError::Undecodable(_) => true,
        StorageError::Io { operation, .. } => *operation == "read",
        _ => false,
    }
}

/// Checks the data directory `dir`, which nobody may have open for writing. An encrypted one needs its master key.
///
/// Errors: what prevents a check: [`StorageError::NoDataDirectory`], [`StorageError::DirectoryInUse`],
/// [`StorageError::Encryption`], [`StorageError::NewerFormat`], files that may not be opened. Everything that is wrong is in the report.
pub fn check(dir: &Path, master: Option<&MasterKey>, keys_of: &KeysOf<'_>) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let Some(directory) = report.damage("", Directory::read(dir, master))? else {
        return Ok(report);
    };
    if let Some(seals) = directory.seals() {
        report.data_keys = seals.data_keys() as u64;
        // Each file can be as old as the others are: then nothing in them tells.
        report
            .unverified
            .push("whether the whole directory was set back to an earlier copy of itself".to_owned());
    }
    let journal = directory.journal();
    if !journal.is_dir() {
        report.fault(format!("{}: the directory is missing", journal.display()));
        return Ok(report);
    }
    let recovered = match check_base(&directory, &mut report)? {
        Some(base) => recover_what_is_left(&directory, &base.snapshot(), &mut report)?,
        None => None,
    };
    let end = recovered.as_ref().map(|recovered| journal::End {
        position: recovered.end,
        is_lost: recovered.is_lost,
    });
    journal::check(&directory, end, &mut report)?;
    let Some(recovered) = recovered else {
        report.note(match report.fault_count {
            0 => "the directory is new, nothing was stored in it yet",
            _ => "records and indexes were not checked, because what leads to them cannot be read",
        });
        return Ok(report);
    };
    report.replayed = recovered.replayed;
    check_mark(&directory, &recovered, &mut report)?;
    check_beside(&directory, &mut report);
    let catalog = catalog::check(&recovered, &mut report);
    report.damage("", catalog)?;
    let databases = recovered.snapshot.catalog().databases();
    for collection in databases.flat_map(|db| db.collections()).filter(|c| !c.is_view()) {
        let Some(unfilled) = recovered.unfilled.get(&collection.id) else {
            check_collection(&recovered.snapshot, collection, keys_of, &mut report)?;
            continue;
        };
        // The others are as they have to be.
        let mut rest = Collection::clone(collection);
        rest.indexes.retain(|index| !unfilled.contains(&index.id));
        for index in collection.indexes.iter().filter(|index| unfilled.contains(&index.id)) {
            let (ns, name) = (&collection.ns, &index.name);
            report.note(format!(
                "{ns}: index {name} has no entries yet; the next start makes them"
            ));
        }
        check_collection(&recovered.snapshot, &rest, keys_of, &mut report)?;
    }
    Ok(report)
}

fn check_collection(
    snapshot: &Snapshot,
    collection: &Collection,
    keys_of: &KeysOf<'_>,
    report: &mut CheckReport,
) -> Result<()> {
    let ns = &collection.ns;
    let keys = keys_of(collection).map_err(|error| {
        let reason = error.message();
        report.fault(format!("{ns}: keys of its indexes cannot be made: {reason}"));
    });
    let mut fault = |text: String| report.fault(format!("{ns}: {text}"));
    let checked = contents::collection(snapshot, collection, keys.as_deref().ok(), &mut || Ok(()), &mut fault);
    if let Some(counted) = report.damage(&format!("{ns}: "), checked)? {
        if let Some(fault) = counted.miscounted((collection.state.documents(), collection.state.bytes())) {
            report.fault(format!("{ns}: {fault}"));
        }
        report.collections.push(counted);
    }
    Ok(())
}

/// Opens the base and reads all of it.
fn check_base(directory: &Directory, report: &mut CheckReport) -> Result<Option<Tree>> {
    let has_base = directory.has_base();
    if report.damage("", has_base)? != Some(true) {
        return Ok(None);
    }
    let path = directory.base();
    let options = TreeOptions {
        read_only: true,
        ..TreeOptions::default()
    };
    let opened = Tree::open_sealed(&path, options, directory.seals()).map_err(StorageError::from);
    let Some(base) = report.damage("", opened)? else {
        return Ok(None);
    };
    report.base = base.verify(&mut |fault| report.fault(StorageError::from(fault).to_string()));
    if report.base.stale_meta {
        report.note(format!(
            "{}: a checkpoint was interrupted in its last step",
            path.display()
        ));
    }
    if report.base.bytes_behind > 0 {
        let bytes = report.base.bytes_behind;
        report.note(format!(
            "{}: {bytes} bytes of an interrupted checkpoint",
            path.display()
        ));
    }
    Ok(Some(base))
}

/// Reads the files of what is derived. Damage to these harms nothing: whoever finds it makes them anew.
fn check_beside(directory: &Directory, report: &mut CheckReport) {
    let beside = Beside::new(&directory.path, directory.seals().cloned(), beside::open_file());
    for name in beside.all() {
        report.derived += 1;
        if let Err(error) = beside.verify(&name) {
            report.note(format!("{}/{name}: {error}; it will be made anew", beside::DIRECTORY));
        }
    }
}

/// Tells what is not known of the journal's end, and whether it belongs to the base.
fn check_mark(directory: &Directory, recovered: &Recovered, report: &mut CheckReport) -> Result<()> {
    let path = directory.mark();
    let end = "whether commits that were durable are missing at the end of the journal";
    let last = recovered.snapshot.lsn().0;
    let open = match recovered.mark {
        Found::Mark(mark) if mark.is_closed && mark.seq == last => None,
        Found::Mark(mark) => Some(format!(
            "{end}: the store was not closed, and of commits after number {} it is not known whether they were durable",
            mark.seq
        )),
        Found::Missing if directory.version() > 1 => {
            report.fault(format!("{}: the file is missing", path.display()));
            Some(end.to_owned())
        }
        Found::Missing => Some(format!("{end}: an earlier version wrote the directory")),
        Found::Unreadable => Some(format!("{end}: {} cannot be read", path.display())),
    };
    report.unverified.extend(open);
    if !recovered.is_chained {
        let of_one =
            "whether base and journal are of the same copy of the directory: an earlier version wrote the base";
        report.unverified.push(of_one.to_owned());
    }
    Ok(())
}

/// The state that the next start will find, in memory.
struct Recovered {
    snapshot: Snapshot,
    base: Arc<dyn BaseSnapshot>,
    /// How far the journal was known to be durable.
    mark: Found,
    /// The base says which commit it ends with.
    is_chained: bool,
    /// Durable commits are missing at the journal's end.
    is_lost: bool,
    replayed: u64,
    /// Indexes whose entries are not there yet.
    unfilled: BTreeMap<CollectionId, Vec<IndexId>>,
    /// Where the journal ends.
    end: Position,
}

/// What the memtable that the end of the journal is replayed into is made for. It may become larger.
const MEMTABLE_BYTES: usize = 64 << 20;

/// As [`recover()`]. That commits are lost is a fault, and no reason not to look at the others.
fn recover_what_is_left(
    directory: &Directory,
    base: &Arc<dyn BaseSnapshot>,
    report: &mut CheckReport,
) -> Result<Option<Recovered>> {
    let recovered = match recover(directory, base, None) {
        Err(error @ StorageError::CommitsLost { last, .. }) => {
            report.fault(error.to_string());
            recover(directory, base, Some(last))
        }
        result => result,
    };
    report.damage("", recovered)
}

fn recover(directory: &Directory, base: &Arc<dyn BaseSnapshot>, give_up_after: Option<u64>) -> Result<Recovered> {
    let (mut state, meta) = Recovery::from_base(base, MEMTABLE_BYTES)?;
    let known = Known {
        checkpoint: meta.map(|meta| meta.checkpoint),
        mark: directory.read_mark()?,
        mark_file: directory.mark(),
        give_up_after,
        until: None,
        last_kept: None,
    };
    let options = JournalOptions::read_only(directory.seals().cloned());
    let replay = |frame: &Frame<'_>| state.replay(frame);
    let journal = recover::open(&directory.journal(), options, &known, Access::Read, replay)?;
    let end = journal.segments().last().map(|segment| Position {
        segment: segment.first_seq,
        offset: segment.len(),
    });
    let unfilled = state.unfilled();
    let layers = Layers {
        active: Arc::new(state.memtable),
        frozen: None,
        base: Some(base.clone()),
    };
    let is_chained = known.checkpoint.is_none_or(|checkpoint| checkpoint.last.is_some());
    let published = Published {
        seq: state.seq,
        optime: state.optime,
        layers: Arc::new(layers),
        catalog: Arc::new(state.changes.catalog),
    };
    Ok(Recovered {
        snapshot: Snapshot {
            state: Arc::new(published),
        },
        base: base.clone(),
        mark: known.mark,
        is_chained,
        is_lost: give_up_after.is_some(),
        replayed: state.seq - known.checkpoint.map_or(0, |checkpoint| checkpoint.seq),
        unfilled,
        end: end.unwrap_or_default(),
    })
}

#[cfg(test)]
pub(crate) mod tests;
