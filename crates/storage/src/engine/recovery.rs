//! Start-up: the state of base and journal together.

use crate::base::BaseSnapshot;
use crate::catalog::{Catalog, CollectionState, entry};
use crate::cursor::{BaseSide, Cursor};
use crate::journal::frame::{Frame, Op};
use crate::journal::{Checkpoint, LastFrame, Position};
use crate::memtable::{Live, Memtable};
use crate::write_set::Ids;
use crate::{Bytes, CollectionId, IndexId, Result, StorageError, TreeId};
use nestor_model::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The metadata blob of the base, which a checkpoint writes beside the data.
///
/// ```text
/// 0   4  version: 2
/// 4   4  next id of a tree, collection or index
/// 8   8  sequence number of the last commit in the base
/// 16  8  its optime
/// 24  8  place behind it in the journal: first sequence number of the segment
/// 32  8  ... and offset in it
/// 40  8  where the last commit's frame begins in that segment; 0 if that is not known
/// 48  4  its checksum
/// 52  4  0
/// ```
///
/// Version 1 is read too: it ends at 40.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Meta {
    pub(crate) next_id: u32,
    pub(crate) checkpoint: Checkpoint,
}

const META_BYTES: usize = 56;
const META_VERSION: u32 = 2;
const META_BYTES_1: usize = 40;

impl Meta {
    pub(crate) fn encode(&self) -> [u8; META_BYTES] {
        let mut out = [0; META_BYTES];
        out[..4].copy_from_slice(&META_VERSION.to_le_bytes());
        out[4..8].copy_from_slice(&self.next_id.to_le_bytes());
        let Checkpoint {
            seq,
            optime,
            position,
            last,
        } = self.checkpoint;
        let last = last.unwrap_or_default();
        out[8..16].copy_from_slice(&seq.to_le_bytes());
        out[16..24].copy_from_slice(&optime.to_u64().to_le_bytes());
        out[24..32].copy_from_slice(&position.segment.to_le_bytes());
        out[32..40].copy_from_slice(&position.offset.to_le_bytes());
        out[40..48].copy_from_slice(&last.offset.to_le_bytes());
        out[48..52].copy_from_slice(&last.checksum.to_le_bytes());
        out
    }

    /// `None` for the empty blob of a base without a checkpoint.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Self>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let undecodable = |reason: &str| StorageError::Undecodable(format!("checkpoint metadata {reason}"));
        let version = bytes.first_chunk().map(|version| u32::from_le_bytes(*version));
        let length = match version {
            Some(1) => META_BYTES_1,
            Some(META_VERSION) => META_BYTES,
            _ => return Err(undecodable("has an unknown version")),
        };
        if bytes.len() != length {
            return Err(undecodable("has a wrong length"));
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let last = (version == Some(META_VERSION) && word(40) > 0).then(|| LastFrame {
            offset: word(40),
            checksum: word(48) as u32,
        });
        Ok(Some(Self {
            next_id: (word(0) >> 32) as u32,
            checkpoint: Checkpoint {
                seq: word(8),
                optime: Timestamp::from_u64(word(16)),
                position: Position {
                    segment: word(24),
                    offset: word(32),
                },
                last,
            },
        }))
    }
}

/// The state being put together.
pub(crate) struct Recovery {
    pub(crate) changes: Changes,
    pub(crate) memtable: Memtable,
    pub(crate) seq: u64,
    pub(crate) optime: Timestamp,
    /// Trees of indexes of which the base has entries that no commit has, and the commit as of which it has them.
    pub(crate) filled: BTreeMap<TreeId, u64>,
}

/// What frames change beside keys and values.
pub(crate) struct Changes {
    pub(crate) catalog: Catalog,
    pub(crate) ids: Arc<Ids>,
    /// Of every collection seen, dropped ones included.
    states: HashMap<CollectionId, Arc<CollectionState>>,
    /// Indexes that frames made ready whose building had begun before, by their trees.
    pub(crate) ready: BTreeMap<TreeId, (CollectionId, IndexId)>,
}

/// The keys and values of a frame, and what is gone.
#[derive(Default)]
pub(crate) struct Replayed {
    pub(crate) trees: BTreeMap<TreeId, Vec<(Bytes, Option<Bytes>)>>,
    pub(crate) dropped: Vec<TreeId>,
}

impl Recovery {
    /// The state in the base. The memtable will be merged into it at so many bytes.
    pub(crate) fn from_base(base: &Arc<dyn BaseSnapshot>, memtable_bytes_max: usize) -> Result<(Self, Option<Meta>)> {
        let meta = Meta::decode(base.meta())?;
        let start = meta.unwrap_or_default();
        let mut changes = Changes {
            catalog: Catalog::default(),
            ids: Arc::new(Ids::new(start.next_id)),
            states: HashMap::new(),
            ready: BTreeMap::new(),
        };
        let mut entries: Vec<(Bytes, Bytes)> = Vec::new();
        let mut cursor = Cursor::new(Vec::new(), Some(BaseSide::new(base.clone(), TreeId::CATALOG)));
        let mut more = cursor.first()?;
        while more {
            entries.push((cursor.key().into(), cursor.value_bytes()?));
            more = cursor.next()?;
        }
        let mut filled = BTreeMap::new();
        for (key, value) in &entries {
            if let Some(tree) = entry::filled_tree(key) {
                let seq = value.as_slice().try_into().map(u64::from_le_bytes);
                filled.insert(
                    tree,
                    seq.map_err(|_| StorageError::Undecodable("mark of a filled tree".into()))?,
                );
            }
            if let Some(id) = entry::numbers_collection(key) {
                let (documents, bytes, next) = entry::decode_numbers(value)
                    .ok_or_else(|| StorageError::Undecodable("counts of a collection".into()))?;
                let state = CollectionState::new(documents, bytes, next);
                changes.states.insert(id, Arc::new(state));
            }
        }
        for (key, value) in &entries {
            changes.catalog_entry(key, Some(value))?;
        }
        let recovery = Self {
            changes,
            memtable: Memtable::new(memtable_bytes_max),
            seq: start.checkpoint.seq,
            optime: start.checkpoint.optime,
            filled,
        };
        Ok((recovery, meta))
    }

    /// Indexes that are ready and lack the entries that were put in before they were: neither the journal has these nor this base, because it
    /// is of a time before the build, or has them as of a commit that was given up. By collection.
    pub(crate) fn unfilled(&self) -> BTreeMap<CollectionId, Vec<IndexId>> {
        let mut found: BTreeMap<CollectionId, Vec<IndexId>> = BTreeMap::new();
        for (tree, (collection, index)) in &self.changes.ready {
            if self.filled.get(tree).is_none_or(|seq| *seq > self.seq) {
                found.entry(*collection).or_default().push(*index);
            }
        }
        found
    }

    /// Repeats a commit.
    pub(crate) fn replay(&mut self, frame: &Frame<'_>) -> Result<()> {
        let seq = frame.seq();
        let Replayed { trees, dropped } = self.changes.read(frame)?;
        dropped.into_iter().for_each(|tree| self.memtable.drop_tree(tree));
        let live = Live {
            oldest: seq,
            all: &Vec::new,
        };
        for (tree, changes) in &trees {
            let changes = changes.iter().map(|(k, v)| (k, v));
            self.memtable.insert(*tree, seq, changes, &live, |_, _| {});
        }
        self.memtable.note_commit(seq);
        (self.seq, self.optime) = (seq, frame.optime());
        Ok(())
    }
}

impl Changes {
    /// To go on from a catalog.
    pub(crate) fn from(catalog: &Catalog, ids: Arc<Ids>) -> Self {
        let states = catalog.collections().map(|c| (c.id, c.state.clone())).collect();
        Self {
            catalog: catalog.clone(),
            ids,
            states,
            ready: BTreeMap::new(),
        }
    }

    fn state(&mut self, id: CollectionId) -> Arc<CollectionState> {
        let new = || Arc::new(CollectionState::new(0, 0, 1));
        self.states.entry(id).or_insert_with(new).clone()
    }

    fn catalog_entry(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let Some(ns) = entry::collection_ns(key) else {
            return Ok(());
        };
        let Some(value) = value else {
            self.catalog.remove(&ns);
            return Ok(());
        };
        let id = entry::id_of(value).ok_or_else(|| StorageError::Undecodable(format!("catalog entry of {ns}")))?;
        let collection = entry::decode(ns, value, self.state(id))?;
        self.ids.raise(id.0);
        self.ids.raise(collection.records.0);
        for index in collection.all_indexes() {
            self.ids.raise(index.id.0);
            self.ids.raise(index.tree.0);
        }
        for index in &collection.indexes {
            let before = self.catalog.by_id(id);
            if before.is_some_and(|before| before.building_by_id(index.id).is_some()) {
                self.ready.insert(index.tree, (id, index.id));
            }
        }
        self.catalog.put(Arc::new(collection));
        Ok(())
    }

    /// Reads a frame: catalog, counts and numbers are as after it, keys and values are handed on.
    pub(crate) fn read(&mut self, frame: &Frame<'_>) -> Result<Replayed> {
        let mut replayed = Replayed::default();
        let trees = &mut replayed.trees;
        for op in frame.ops() {
            match op.map_err(|e| StorageError::Undecodable(e.0.into()))? {
                Op::Put { tree, key, value } => {
                    trees.entry(tree).or_default().push((key.into(), Some(value.into())));
                }
                Op::Delete { tree, key } => trees.entry(tree).or_default().push((key.into(), None)),
                Op::DropTree(tree) => {
                    self.ids.raise(tree.0);
                    self.ready.remove(&tree);
                    replayed.dropped.push(tree);
                }
                Op::Count {
                    collection,
                    documents,
                    bytes,
                } => self.state(collection).add(documents, bytes),
                Op::Image(_) => {}
            }
        }
        if let Some(changes) = trees.get(&TreeId::CATALOG) {
            // Removals first: a rename removes one name and puts another.
            let (gone, put): (Vec<_>, Vec<_>) = changes.iter().partition(|(_, value)| value.is_none());
            for (key, value) in gone.into_iter().chain(put) {
                self.catalog_entry(key, value.as_deref())?;
            }
        }
        // Record trees have the number of their collection; it may be made and filled by one commit.
        for (tree, changes) in trees.iter() {
            if let Some(state) = self.states.get(&CollectionId(tree.0)) {
                let put = changes.iter().filter(|(_, value)| value.is_some());
                let ids = put.filter_map(|(key, _)| crate::record::record_id(key));
                ids.for_each(|id| state.raise_record(id.0));
            }
        }
        Ok(replayed)
    }

    /// The indexes that a frame makes ready whose building had begun before, if there are any. Changes nothing.
    pub(crate) fn made_ready(&self, frame: &Frame<'_>) -> Result<Option<(CollectionId, Vec<IndexId>)>> {
        for op in frame.ops() {
            let Op::Put {
                tree: TreeId::CATALOG,
                key,
                value,
            } = op.map_err(|e| StorageError::Undecodable(e.0.into()))?
            else {
                continue;
            };
            let Some(ns) = entry::collection_ns(key) else { continue };
            let before = entry::id_of(value).and_then(|id| self.catalog.by_id(id));
            let Some(before) = before.filter(|before| !before.building.is_empty()) else {
                continue;
            };
            let after = entry::decode(ns, value, before.state.clone())?;
            let was_building = |id: &IndexId| before.building_by_id(*id).is_some();
            let ready: Vec<IndexId> = after
                .indexes
                .iter()
                .map(|index| index.id)
                .filter(was_building)
                .collect();
            if !ready.is_empty() {
                return Ok(Some((before.id, ready)));
            }
        }
        Ok(None)
    }

    /// Whether any index is being built.
    pub(crate) fn is_building(&self) -> bool {
        self.catalog
            .collections()
            .any(|collection| !collection.building.is_empty())
    }

    /// The state of the collection that has its records in `tree`.
    pub(crate) fn collection_state(&self, tree: TreeId) -> Option<&Arc<CollectionState>> {
        self.states.get(&CollectionId(tree.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_round_trips() {
        let meta = Meta {
            next_id: 7,
            checkpoint: Checkpoint {
                seq: 1 << 40,
                optime: Timestamp { secs: 3, inc: 4 },
                position: Position {
                    segment: 9,
                    offset: 1 << 33,
                },
                last: Some(LastFrame {
                    offset: 1 << 32,
                    checksum: 0xFEDC_BA98,
                }),
            },
        };
        let mut first = meta.encode()[..META_BYTES_1].to_vec();
        first[0] = 1;
        let mut expected = meta;
        expected.checkpoint.last = None;
        assert_eq!(Meta::decode(&first).unwrap(), Some(expected));
        assert_eq!(Meta::decode(&meta.encode()).unwrap(), Some(meta));
        assert_eq!(Meta::decode(&[]).unwrap(), None);
        assert!(Meta::decode(&[1; 39]).is_err());
        assert!(Meta::decode(&[2; 40]).is_err());
    }
}
