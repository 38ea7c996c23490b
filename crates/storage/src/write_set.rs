//! Write sets: private changes on top of a snapshot, committed as one.

use crate::blocks::Blocks;
use crate::catalog::ddl;
use crate::catalog::{Catalog, Collection, CollectionState};
use crate::claims::{CLAIM_BYTES, Claim, Reservation, Waited};
use crate::cursor::{Cursor, Layer, Overlay, Source};
use crate::holds::Hold;
use crate::read_set::SharedReads;
use crate::recent::Reads;
use crate::snapshot::{Snapshot, View};
use crate::{Bytes, CollectionId, IndexId, Lsn, Result, StorageError, TreeId};
use nestor_model::{ErrorCode, RawDocBuf, Timestamp, ValueRef, raw};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Numbers for new collections, trees and indexes. Numbers are skipped when a write set is dropped, never reused.
#[derive(Debug)]
pub(crate) struct Ids {
    next: AtomicU32,
}

impl Ids {
    pub(crate) fn new(next: u32) -> Self {
        // 0 is the catalog's tree.
        Self {
            next: AtomicU32::new(next.max(1)),
        }
    }

    pub(crate) fn allocate(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn next(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }

    pub(crate) fn raise(&self, used: u32) {
        self.next.fetch_max(used.saturating_add(1), Ordering::Relaxed);
    }
}

/// An oplog entry waiting for its optime.
#[derive(Clone)]
pub(crate) struct PendingEntry {
    /// The entry. Large ones are forgotten once the frame has them ([`WriteSet::forget_logged`]).
    pub(crate) bytes: RawDocBuf,
    /// Its length in bytes.
    pub(crate) len: usize,
    /// Offset of the eight bytes of `ts`.
    pub(crate) ts_at: usize,
    /// Offset of the eight bytes of `t`, if the entry has one behind `ts`.
    pub(crate) term_at: Option<usize>,
    /// Offset of `ts` in `prevOpTime`, whose `t` follows, if it is to name the entry before this one.
    pub(crate) link_at: Option<usize>,
    /// Documents before the changes that the entry tells of, by the number of the operation in it, ascending.
    pub(crate) images: Vec<(u32, RawDocBuf)>,
}

/// Bytes from the value of `ts` to that of the `t` behind it: the value, a type byte, the name.
const TERM_BEHIND_TS: usize = 8 + 1 + 2;

impl PendingEntry {
    /// Fills in what is known at the commit. `bytes` are those of the entry, and `before` is the optime of the entry before it.
    pub(crate) fn complete(&self, bytes: &mut [u8], ts: Timestamp, before: Timestamp, term: i64) {
        bytes[self.ts_at..][..8].copy_from_slice(&ts.to_u64().to_le_bytes());
        if let Some(at) = self.term_at {
            bytes[at..][..8].copy_from_slice(&term.to_le_bytes());
        }
        if let Some(at) = self.link_at {
            bytes[at..][..8].copy_from_slice(&before.to_u64().to_le_bytes());
            bytes[at + TERM_BEHIND_TS..][..8].copy_from_slice(&term.to_le_bytes());
        }
    }
}

/// A change of a collection's counts.
#[derive(Clone)]
pub(crate) struct CountChange {
    pub(crate) id: CollectionId,
    pub(crate) state: Arc<CollectionState>,
    pub(crate) documents: i64,
    pub(crate) bytes: i64,
}

/// Everything a commit does: keys put and deleted in any trees, catalog changes, counts, oplog entries. Reading through
/// it ([`View`]) shows its own changes on top of its snapshot. Dropping it leaves no trace.
pub struct WriteSet {
    pub(crate) snapshot: Snapshot,
    pub(crate) ids: Arc<Ids>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) trees: BTreeMap<TreeId, Arc<Overlay>>,
    pub(crate) dropped: Vec<TreeId>,
    pub(crate) unchanged: Vec<(TreeId, Bytes)>,
    /// What is held without being written.
    pub(crate) held: Vec<Hold>,
    /// The key of which it was found last that another document has it.
    taken: Option<(TreeId, Bytes)>,
    pub(crate) required: Vec<Arc<Collection>>,
    /// Collections that nobody else may have written to after the commit of this number.
    pub(crate) unwritten: Vec<(Arc<CollectionState>, u64)>,
    pub(crate) oplog: Vec<PendingEntry>,
    pub(crate) counts: Vec<CountChange>,
    /// Arrays that a transaction has found, and that nobody else knows of: see [`Engine::publish_multikey`](crate::Engine::publish_multikey).
    pub(crate) multikey: Vec<(CollectionId, IndexId, Vec<u64>)>,
    /// The keys that a transaction has reserved.
    pub(crate) claim: Option<Claim>,
    /// The reads through the write set, if its transaction is serializable.
    pub(crate) reads: Option<Reads>,
    /// Where the write set whose state this is notes what it reads ([`WriteSet::state`]).
    noted: Option<Arc<SharedReads>>,
    undo: Vec<Undo>,
    savepoints: usize,
    /// What it requires may be of an older state than its snapshot.
    pub(crate) is_refreshed: bool,
}

/// Oplog entries from this length on are not kept twice.
const LARGE_ENTRY_BYTES: usize = 1 << 20;
/// The memory that a change takes beside key and value: its place in a tree node that is two thirds full, and a claim.
const CHANGE_OVERHEAD: usize = 32 + CLAIM_BYTES;

/// How one key was before a change, for savepoints: `None` if the write set had nothing on it.
struct Undo {
    tree: TreeId,
    key: Bytes,
    before: Option<Option<Bytes>>,
}

/// A state of a write set to come back to. See [`WriteSet::savepoint`].
pub struct Savepoint {
    undo: usize,
    dropped: usize,
    unchanged: usize,
    held: usize,
    required: usize,
    unwritten: usize,
    oplog: usize,
    counts: Vec<CountChange>,
    multikey: usize,
    catalog: Arc<Catalog>,
    /// The snapshot's number.
    seq: u64,
}

impl WriteSet {
    pub(crate) fn new(snapshot: Snapshot, ids: Arc<Ids>) -> Self {
        Self {
            catalog: snapshot.state.catalog.clone(),
            snapshot,
            ids,
            trees: BTreeMap::new(),
            dropped: Vec::new(),
            unchanged: Vec::new(),
            held: Vec::new(),
            taken: None,
            required: Vec::new(),
            unwritten: Vec::new(),
            oplog: Vec::new(),
            counts: Vec::new(),
            multikey: Vec::new(),
            claim: None,
            reads: None,
            noted: None,
            undo: Vec::new(),
            savepoints: 0,
            is_refreshed: false,
        }
    }

    /// Its present state, to be read whatever is written to it from now on; reads count as its own.
    pub fn state(&self) -> WriteSet {
        WriteSet {
            catalog: self.catalog.clone(),
            trees: self.trees.clone(),
            counts: self.counts.clone(),
            noted: self.notes().cloned(),
            ..WriteSet::new(self.snapshot.clone(), self.ids.clone())
        }
    }

    /// Its present state without what it has written to trees: the catalog is as it has it.
    pub fn catalog_state(&self) -> WriteSet {
        WriteSet {
            catalog: self.catalog.clone(),
            ..self.bare()
        }
    }

    /// One that has changed nothing over the same snapshot: it stands in the place of this one while somebody else has that.
    pub fn bare(&self) -> WriteSet {
        WriteSet::new(self.snapshot.clone(), self.ids.clone())
    }

    /// Where it notes what it reads, if its transaction is serializable.
    fn notes(&self) -> Option<&Arc<SharedReads>> {
        self.reads.as_ref().map(|reads| &reads.set).or(self.noted.as_ref())
    }

    /// Whether it drops collections or indexes.
    pub fn drops(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// The snapshot that the write set changes.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// True when a commit would do nothing.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty() && self.oplog.is_empty() && self.counts.is_empty() && self.dropped.is_empty()
    }

    /// Whether documents of a collection were written.
    pub fn has_written(&self, collection: &Collection) -> bool {
        self.trees.contains_key(&collection.records)
    }

    /// The databases that were written to, catalog entries included.
    pub fn written_databases(&self) -> Vec<nestor_model::Str> {
        let required = self.required.iter().map(|collection| collection.ns.db.clone());
        let changed = self.catalog_changes().into_iter().map(|(ns, _)| ns.db);
        let mut out: Vec<nestor_model::Str> = required.chain(changed).collect();
        out.sort();
        out.dedup();
        out
    }

    /// Whether catalog entries were changed.
    pub fn alters_catalog(&self) -> bool {
        self.trees.contains_key(&TreeId::CATALOG)
    }

    /// Sets `key` to `value`. Not for record trees: see [`WriteSet::put_document`].
    pub fn put(&mut self, tree: TreeId, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.change(tree, key.into().detached(), Some(value.into().detached()));
    }

    /// Sets a record.
    pub fn put_document(&mut self, records: TreeId, key: impl Into<Bytes>, document: RawDocBuf) {
        self.change(records, key.into().detached(), Some(document.into()));
    }

    /// Removes `key`; it need not exist.
    pub fn delete(&mut self, tree: TreeId, key: impl Into<Bytes>) {
        self.change(tree, key.into().detached(), None);
    }

    /// The commit will conflict if `key` was written after this write set's snapshot.
    pub fn check_unchanged(&mut self, tree: TreeId, key: impl Into<Bytes>) {
        self.unchanged.push((tree, key.into()));
    }

    /// Keeps `key` as it is until the write set goes: whoever writes it meanwhile conflicts, and whoever holds it as well, if one of both
    /// holds it `alone`. The commit, or the next claim, will conflict if it was written after this write set's snapshot.
    pub fn hold(&mut self, tree: TreeId, key: impl Into<Bytes>, alone: bool) {
        let key = key.into().detached();
        self.add_hold(Hold { tree, key, alone });
    }

    /// Says that a key could not be put, since somebody has it. Whoever may be about to give it up is told by
    /// [`Engine::claimer_of_taken`](crate::Engine::claimer_of_taken).
    pub fn note_taken(&mut self, tree: TreeId, key: impl Into<Bytes>) {
        self.taken = Some((tree, key.into().detached()));
    }

    /// The key that could not be put, if there was one since somebody asked.
    pub(crate) fn take_taken(&mut self) -> Option<(TreeId, Bytes)> {
        self.taken.take()
    }

    /// Holds a name, which is no key and stands for something that goes with a tree. As [`WriteSet::hold`], and the commit will conflict if
    /// one after this write set's snapshot held it in another way than both in common.
    pub fn hold_name(&mut self, tree: TreeId, name: impl Into<Bytes>, alone: bool) {
        self.add_hold(Hold::name(tree, name.into().detached(), alone));
    }

    fn add_hold(&mut self, hold: Hold) {
        if let Some(claim) = &mut self.claim {
            claim.count(2 * hold.key.footprint() + CHANGE_OVERHEAD, 0);
            claim.held.push(hold.clone());
        }
        self.held.push(hold);
    }

    /// The commit will conflict if the collection's name, options or indexes changed after this write set's snapshot; not if an
    /// array was found in a document, or the build of an index began. Every write to a collection says so, once is enough.
    pub fn require_collection(&mut self, id: CollectionId) {
        if self.required.iter().any(|c| c.id == id) {
            return;
        }
        // No other write set knows of a collection that this one made.
        if let Some(collection) = self.snapshot.state.catalog.by_id(id) {
            self.required.push(collection.clone());
        }
    }

    /// The commit will conflict if anything that required this collection committed after the snapshot that this write set has now:
    /// for building an index in one go, and for whatever else looks at all documents.
    pub fn require_unwritten(&mut self, id: CollectionId) {
        if let Some(collection) = self.snapshot.state.catalog.by_id(id) {
            self.unwritten.push((collection.state.clone(), self.snapshot.state.seq));
        }
    }

    /// Adds to a collection's number of documents and their size in bytes.
    pub fn add_count(&mut self, id: CollectionId, documents: i64, bytes: i64) {
        if let Some(change) = self.counts.iter_mut().find(|c| c.id == id) {
            change.documents += documents;
            change.bytes += bytes;
            return;
        }
        if let Some(collection) = self.catalog.by_id(id) {
            self.counts.push(CountChange {
                id,
                state: collection.state.clone(),
                documents,
                bytes,
            });
        }
    }

    /// Number of documents and their size as this write set sees them: committed counts and its own changes.
    pub fn counts(&self, collection: &Collection) -> (i64, i64) {
        let own = self.counts.iter().find(|c| c.id == collection.id);
        let (documents, bytes) = own.map_or((0, 0), |c| (c.documents, c.bytes));
        (
            collection.state.documents() + documents,
            collection.state.bytes() + bytes,
        )
    }

    /// Counts `bytes` of an oplog entry that an open transaction will log at its commit ([`Engine::begin_transaction`](crate::Engine::begin_transaction)).
    ///
    /// Errors: `TransactionTooLarge`, when it would not fit into one commit; `TransactionTooLargeForCache`, when all open transactions
    /// together take more memory than they may ([`Engine::set_transaction_bytes_max`](crate::Engine::set_transaction_bytes_max)).
    pub fn expect_oplog(&mut self, bytes: usize) -> Result<()> {
        self.claim.as_mut().map_or(Ok(()), |claim| claim.log(bytes))
    }

    /// Adds an oplog entry in MongoDB's format. It needs a top-level `ts` of type timestamp, whose value is replaced by
    /// the optime at commit; entries get consecutive ones in the order added. A `t` of type long that follows it becomes the
    /// term.
    pub fn oplog(&mut self, entry: RawDocBuf) -> Result<()> {
        self.oplog_with(entry, Vec::new())
    }

    /// As [`WriteSet::oplog`], with documents as they were before the changes that the entry tells of: for an `applyOps` by the
    /// number of the operation in it, ascending, otherwise one with the number 0. Readers of the log get them
    /// ([`Change::before`](crate::log::Change::before)); they are kept as long as the entry.
    pub fn oplog_with(&mut self, entry: RawDocBuf, images: Vec<(u32, RawDocBuf)>) -> Result<()> {
        let value_at =
            |element: &raw::RawElement<'_>| element.offset() + element.as_bytes().len() - element.value_bytes().len();
        let mut elements = entry.as_raw().elements();
        let ts = elements.find(|element| element.name() == "ts" && matches!(element.value(), ValueRef::Timestamp(_)));
        let ts_at = ts.map(|element| value_at(&element));
        let ts_at = ts_at.ok_or_else(|| StorageError::Undecodable("oplog entry without ts".into()))?;
        let term = elements.next();
        let term = term.filter(|element| element.name() == "t" && matches!(element.value(), ValueRef::Int64(_)));
        let term_at = term.map(|element| value_at(&element));
        drop(elements);
        debug_assert!(
            images.is_sorted_by(|a, b| a.0 < b.0),
            "images come in the order of the operations"
        );
        if entry.as_raw().is_deeper_than(raw::DEPTH_MAX) {
            // Recovery would take the journal for damaged.
            let message = "an oplog entry exceeds the maximum nested object depth";
            return Err(StorageError::catalog(ErrorCode::Overflow, message));
        }
        self.oplog.push(PendingEntry {
            len: entry.as_bytes().len(),
            bytes: entry,
            ts_at,
            term_at,
            link_at: None,
            images,
        });
        Ok(())
    }

    /// As [`WriteSet::oplog_with`], for an entry that goes on with what the last one began: the operations of a transaction that do not
    /// fit into one document. Its `prevOpTime`, a document `{ts: Timestamp, t: Long}`, gets the optime of the entry before it.
    ///
    /// Errors: those of [`WriteSet::oplog`]; the entry has no `prevOpTime` of that form.
    pub fn oplog_next(&mut self, entry: RawDocBuf, images: Vec<(u32, RawDocBuf)>) -> Result<()> {
        let link = entry.as_raw().elements().find(|element| element.name() == "prevOpTime");
        let link_at = link.and_then(|link| {
            let ValueRef::Document(nestor_model::DocRef::Raw(before)) = link.value() else {
                return None;
            };
            let mut fields = before.elements();
            let (ts, t) = (fields.next()?, fields.next()?);
            let is_optime = (ts.name(), t.name()) == ("ts", "t")
                && matches!((ts.value(), t.value()), (ValueRef::Timestamp(_), ValueRef::Int64(_)));
            let value_at = link.offset() + link.as_bytes().len() - link.value_bytes().len();
            is_optime.then(|| value_at + ts.offset() + ts.as_bytes().len() - ts.value_bytes().len())
        });
        let link_at = link_at.ok_or_else(|| StorageError::Undecodable("oplog entry without prevOpTime".into()))?;
        self.oplog_with(entry, images)?;
        if let Some(last) = self.oplog.last_mut() {
            last.link_at = Some(link_at);
        }
        Ok(())
    }

    /// Lets go of large oplog entries, which the frame has by now: a transaction may have hundreds of megabytes of them.
    pub(crate) fn forget_logged(&mut self) {
        for entry in self.oplog.iter_mut().filter(|entry| entry.len >= LARGE_ENTRY_BYTES) {
            entry.bytes = raw::EMPTY.to_buf();
            entry.images = Vec::new();
        }
    }

    /// Goes on over a newer snapshot: what was written stays, and stands on what others have committed since. The keys written so far have
    /// to be claimed ([`Engine::claim`](crate::Engine::claim)), so that nobody else wrote them. Nothing changes for write sets that rely on the state they
    /// read: those of serializable transactions, and those with [`WriteSet::check_unchanged`].
    pub fn refresh(&mut self, snapshot: Snapshot) {
        if self.reads.is_some() || !self.unchanged.is_empty() || snapshot.state.seq <= self.snapshot.state.seq {
            return;
        }
        debug_assert!(
            self.claim
                .as_ref()
                .is_some_and(|claim| claim.fresh.is_empty() && claim.held.is_empty()),
            "what was written is claimed"
        );
        self.snapshot = snapshot;
        self.is_refreshed = true;
        self.put_changes_on_snapshot();
    }

    /// Claims nothing of what was written since the last [`Engine::claim`](crate::Engine::claim): it was taken back.
    pub fn forget_unclaimed(&mut self) {
        if let Some(claim) = &mut self.claim {
            claim.forget_fresh();
        }
    }

    /// Makes the catalog that of the snapshot with this write set's own changes.
    fn put_changes_on_snapshot(&mut self) {
        let changes = self.catalog_changes();
        self.catalog = self.snapshot.state.catalog.clone();
        if !changes.is_empty() {
            ddl::apply_changes(Arc::make_mut(&mut self.catalog), changes);
        }
    }

    /// Waits until the transaction that stood in this one's way has ended, for at most `timeout`.
    pub fn wait_for(&self, reservation: &Reservation, timeout: Duration) -> Waited {
        match &self.claim {
            Some(claim) => claim.wait(reservation, timeout),
            None if reservation.wait(timeout) => Waited::Released,
            None => Waited::TimedOut,
        }
    }

    /// Marks the present state. Give it back with [`WriteSet::rollback_to`] or [`WriteSet::release`], the last one first.
    pub fn savepoint(&mut self) -> Savepoint {
        self.savepoints += 1;
        Savepoint {
            undo: self.undo.len(),
            dropped: self.dropped.len(),
            unchanged: self.unchanged.len(),
            held: self.held.len(),
            required: self.required.len(),
            unwritten: self.unwritten.len(),
            oplog: self.oplog.len(),
            counts: self.counts.clone(),
            multikey: self.multikey.len(),
            catalog: self.catalog.clone(),
            seq: self.snapshot.state.seq,
        }
    }

    /// Takes back everything since the savepoint.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        while self.undo.len() > savepoint.undo {
            let Some(undo) = self.undo.pop() else { break };
            let Some(overlay) = self.trees.get_mut(&undo.tree) else {
                continue;
            };
            let overlay = Arc::make_mut(overlay);
            match undo.before {
                Some(before) => {
                    overlay.insert(undo.key, before);
                }
                None => {
                    overlay.remove(&undo.key);
                }
            }
            if overlay.is_empty() {
                self.trees.remove(&undo.tree);
            }
        }
        self.dropped.truncate(savepoint.dropped);
        self.unchanged.truncate(savepoint.unchanged);
        self.held.truncate(savepoint.held);
        self.required.truncate(savepoint.required);
        self.unwritten.truncate(savepoint.unwritten);
        self.oplog.truncate(savepoint.oplog);
        self.counts = savepoint.counts;
        self.catalog = savepoint.catalog;
        if savepoint.seq != self.snapshot.state.seq {
            self.put_changes_on_snapshot();
        }
        self.multikey.truncate(savepoint.multikey);
        self.leave_savepoint();
    }

    /// Keeps everything since the savepoint.
    pub fn release(&mut self, savepoint: Savepoint) {
        debug_assert!(
            savepoint.undo <= self.undo.len(),
            "savepoints are given back in reverse order"
        );
        self.leave_savepoint();
    }

    fn leave_savepoint(&mut self) {
        self.savepoints = self.savepoints.saturating_sub(1);
        if self.savepoints == 0 {
            self.undo.clear();
        }
    }

    pub(crate) fn change(&mut self, tree: TreeId, key: Bytes, value: Option<Bytes>) {
        let size = |value: &Option<Bytes>| value.as_ref().map_or(size_of::<Bytes>(), Bytes::footprint);
        if let Some(claim) = &mut self.claim {
            claim.fresh.push((tree, key.clone()));
            claim.count(key.footprint() + size(&value) + CHANGE_OVERHEAD, 0);
        }
        // An open cursor shares the map: it keeps the state it was opened on, and the first change after that copies.
        let overlay = Arc::make_mut(self.trees.entry(tree).or_default());
        let own_key = (self.savepoints > 0).then(|| key.clone());
        let key_bytes = key.footprint();
        let before = overlay.insert(key, value);
        if let (Some(claim), Some(before)) = (&mut self.claim, &before) {
            claim.count(0, key_bytes + size(before) + CHANGE_OVERHEAD);
        }
        if let Some(key) = own_key {
            self.undo.push(Undo { tree, key, before });
        }
    }

    /// The trees that keep their changes, ascending: not those that this write set dropped.
    pub(crate) fn kept_trees(&self) -> impl Iterator<Item = (TreeId, &Overlay)> {
        self.trees
            .iter()
            .filter(|(tree, _)| !self.dropped.contains(tree))
            .map(|(tree, overlay)| (*tree, overlay.as_ref()))
    }
}

impl View for WriteSet {
    fn estimate_entries(&self, tree: TreeId, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        self.snapshot.estimate_entries(tree, from, to)
    }

    fn has_at_most(&self, tree: TreeId, from: &[u8], to: Option<&[u8]>, most: u64) -> Result<bool> {
        self.snapshot.has_at_most(tree, from, to, most)
    }

    fn stored_bytes(&self, tree: TreeId) -> Result<Option<u64>> {
        self.snapshot.stored_bytes(tree)
    }

    fn blocks(&self, tree: TreeId, least: u64) -> Result<Option<Blocks>> {
        let own = self.trees.get(&tree).map(|overlay| &**overlay);
        let blocks = self.snapshot.blocks_with(tree, least, own)?;
        if let (Some(_), Some(reads)) = (&blocks, self.notes()) {
            let mut reads = reads.lock().expect("no holder of the lock panics");
            reads.add_range(tree, None, None);
        }
        Ok(blocks)
    }

    fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(reads) = self.notes() {
            let mut reads = reads.lock().expect("no holder of the lock panics");
            reads.add_key(tree, key);
        }
        if let Some(value) = self.trees.get(&tree).and_then(|overlay| overlay.get(key)) {
            return Ok(value.clone());
        }
        self.snapshot.get(tree, key)
    }

    fn get_many(&self, tree: TreeId, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        match self.notes().is_none() && !self.trees.contains_key(&tree) {
            true => self.snapshot.get_many(tree, keys),
            false => keys.iter().map(|key| self.get(tree, key)).collect(),
        }
    }

    fn cursor(&self, tree: TreeId) -> Cursor {
        let mut layers = Vec::new();
        if let Some(overlay) = self.trees.get(&tree) {
            layers.push(Layer::new(Source::Overlay(overlay.clone())));
        }
        self.snapshot.layers_of(tree, &mut layers);
        let cursor = Cursor::new(layers, self.snapshot.base_side(tree));
        match self.notes() {
            Some(reads) => cursor.tracked(tree, reads.clone()),
            None => cursor,
        }
    }

    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn is_fixed(&self) -> bool {
        false
    }

    fn notes_reads(&self) -> bool {
        self.notes().is_some()
    }

    fn lsn_of(&self, tree: TreeId) -> Option<Lsn> {
        (!self.trees.contains_key(&tree)).then(|| self.snapshot.lsn())
    }
}

/// The optime and position of a successful commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Commit {
    /// The optime of its last oplog entry (or of the commit, when it had none): operationTime of the reply.
    pub optime: Timestamp,
    /// The position to wait for if the commit must be durable.
    pub lsn: crate::Lsn,
}
