//! Snapshots: what all reading goes through.

use crate::base::BaseSnapshot;
use crate::blocks::{Blocks, CHANGED_PART, bounds, range};
use crate::catalog::Catalog;
use crate::cursor::{BaseSide, Cursor, Layer, Overlay, Source};
use crate::memtable::{Memtable, Table};
use crate::{Bytes, Lsn, Result, TreeId};
use nestor_model::Timestamp;
use std::ops::Bound;
use std::sync::Arc;

/// What a [`Snapshot`] and a [`crate::WriteSet`] have in common: everything that reads is written over this.
pub trait View: Sync {
    /// The value of `key` in `tree`.
    fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>>;

    /// The values of some keys in `tree`, in their order: what [`View::get`] gives of each, in less time where they are far from one another.
    fn get_many(&self, tree: TreeId, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        keys.iter().map(|key| self.get(tree, key)).collect()
    }

    /// A cursor over `tree`, not yet positioned. It keeps what it needs alive and does not see later changes.
    fn cursor(&self, tree: TreeId) -> Cursor;

    /// The collections and indexes.
    fn catalog(&self) -> &Arc<Catalog>;

    /// Whether it never shows anything else than it does now, so that a cursor and [`View::get`] always agree.
    fn is_fixed(&self) -> bool;

    /// The last commit that it shows, if the tree is as that commit left it; `None` if changes of its own show there.
    fn lsn_of(&self, tree: TreeId) -> Option<Lsn>;

    /// Whether it notes what is read through it, so that nothing may be known without reading.
    fn notes_reads(&self) -> bool {
        false
    }

    /// How `tree` is stored; `None` where that is not in parts, where these have fewer than `least` entries, and where more keys are above them than
    /// one for [`CHANGED_PART`] entries. Of a serializable transaction this counts as reading all of it.
    fn blocks(&self, tree: TreeId, least: u64) -> Result<Option<Blocks>>;

    /// Bytes of the file that the entries of `tree` take that are in it: those written since the last checkpoint are not. `None` of a store
    /// without a file.
    fn stored_bytes(&self, tree: TreeId) -> Result<Option<u64>>;

    /// About how many entries `tree` has from `from` (included) to `to` (excluded; `None`: to its end), without changes of its own. What is in
    /// the base is counted exactly for the price of two look-ups; what is not is counted as if none of it replaced anything,
    /// and of a part of a tree only up to a thousand.
    fn estimate_entries(&self, tree: TreeId, from: &[u8], to: Option<&[u8]>) -> Result<u64>;

    /// Whether [`View::estimate_entries`] says `most` or fewer. What is not in the base is looked at only where it decides.
    fn has_at_most(&self, tree: TreeId, from: &[u8], to: Option<&[u8]>, most: u64) -> Result<bool>;
}

/// The layers below a write set.
pub(crate) struct Layers {
    pub(crate) active: Arc<Memtable>,
    pub(crate) frozen: Option<Arc<Memtable>>,
    /// `None` for a store that lives in memory.
    pub(crate) base: Option<Arc<dyn BaseSnapshot>>,
}

impl Layers {
    /// The memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }
}

/// One published state of everything. Commits replace it; snapshots hold on to it.
pub(crate) struct Published {
    pub(crate) seq: u64,
    pub(crate) optime: Timestamp,
    pub(crate) layers: Arc<Layers>,
    pub(crate) catalog: Arc<Catalog>,
}

/// One moment of the store: all commits up to one, and none after. Cheap to take and to clone; old versions and
/// replaced pages stay for as long as it is held, so don't hold it for long without need.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) state: Arc<Published>,
}

impl Snapshot {
    /// What a memtable says of a key; `None` where none does.
    fn newer(&self, tree: TreeId, key: &[u8]) -> Option<Option<Bytes>> {
        let mut memtables = self.state.layers.memtables();
        memtables.find_map(|memtable| memtable.get(tree, key, self.state.seq))
    }

    /// The last commit it shows.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.state.seq)
    }

    /// The optime of the last commit it shows.
    pub fn optime(&self) -> Timestamp {
        self.state.optime
    }

    /// What the memtables have of a tree, as far as it can be seen.
    fn tables(&self, tree: TreeId) -> impl Iterator<Item = Arc<Table>> {
        let memtables = self.state.layers.memtables();
        let tables = memtables.filter_map(move |memtable| memtable.table(tree));
        tables.filter(|table| table.concerns(self.state.seq))
    }

    fn entries_in_base(&self, tree: TreeId, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        let Some(base) = &self.state.layers.base else {
            return Ok(0);
        };
        let low = with_base_key(tree, from, |key| base.rank(key))?;
        let high = match (to, tree.0.checked_add(1)) {
            (Some(to), _) => with_base_key(tree, to, |key| base.rank(key))?,
            (None, Some(next)) => base.rank(&next.to_be_bytes())?,
            (None, None) => base.entries(),
        };
        Ok(high.saturating_sub(low))
    }

    pub(crate) fn layers_of(&self, tree: TreeId, layers: &mut Vec<Layer>) {
        layers.extend(
            self.tables(tree)
                .map(|table| Layer::new(Source::Table(table, self.state.seq))),
        );
    }

    /// As [`View::blocks`], with changes on top.
    pub(crate) fn blocks_with(&self, tree: TreeId, least: u64, own: Option<&Overlay>) -> Result<Option<Blocks>> {
        let Some(base) = &self.state.layers.base else {
            return Ok(None);
        };
        let mut blocks = Blocks::new(base.clone(), tree)?;
        let entries = blocks.entries();
        let changed_max = usize::try_from(entries / CHANGED_PART).unwrap_or(usize::MAX - 1);
        if blocks.groups().is_empty() || entries < least || own.is_some_and(|own| own.len() > changed_max) {
            return Ok(None);
        }
        let mut changed: Vec<Bytes> = own.into_iter().flat_map(|own| own.keys().cloned()).collect();
        let mut run = Vec::new();
        for table in self.tables(tree) {
            let is_all = table.ascending(Bound::Unbounded, None, self.state.seq, changed_max + 1, &mut run);
            changed.extend(run.drain(..).map(|(key, _)| key));
            if !is_all || changed.len() > changed_max {
                return Ok(None);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        blocks.set_changed(changed);
        Ok(Some(blocks))
    }

    pub(crate) fn base_side(&self, tree: TreeId) -> Option<BaseSide> {
        let base = self.state.layers.base.as_ref()?;
        Some(BaseSide::new(base.clone(), tree))
    }
}

/// Calls `with` with the base's key of `key` in `tree`: the tree, big-endian, and the key.
pub(crate) fn with_base_key<R>(tree: TreeId, key: &[u8], with: impl FnOnce(&[u8]) -> R) -> R {
    const SHORT: usize = 60;
    let prefix = tree.0.to_be_bytes();
    if key.len() <= SHORT {
        let mut buffer = [0; SHORT + 4];
        buffer[..4].copy_from_slice(&prefix);
        buffer[4..4 + key.len()].copy_from_slice(key);
        return with(&buffer[..4 + key.len()]);
    }
    with(&[&prefix, key].concat())
}

impl View for Snapshot {
    fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(found) = self.newer(tree, key) {
            return Ok(found);
        }
        let Some(base) = &self.state.layers.base else {
            return Ok(None);
        };
        let found = with_base_key(tree, key, |key| base.get(key))?;
        Ok(found.map(Bytes::from))
    }

    fn get_many(&self, tree: TreeId, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let mut newer = vec![None; keys.len()];
        for memtable in self.state.layers.memtables() {
            memtable.get_many(tree, keys, self.state.seq, &mut newer);
        }
        let missing: Vec<usize> = (0..keys.len()).filter(|at| newer[*at].is_none()).collect();
        let mut found: Vec<Option<Bytes>> = newer.into_iter().map(Option::flatten).collect();
        let Some(base) = &self.state.layers.base else {
            return Ok(found);
        };
        // The keys as the base has them, and where each ends.
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(missing.len()));
        for at in &missing {
            bytes.extend_from_slice(&tree.0.to_be_bytes());
            bytes.extend_from_slice(keys[*at]);
            ends.push(bytes.len());
        }
        let mut from = 0;
        let parts = ends.iter().map(|end| {
            let part = &bytes[from..*end];
            from = *end;
            part
        });
        let parts: Vec<&[u8]> = parts.collect();
        for (at, value) in missing.iter().zip(base.get_many(&parts)?) {
            found[*at] = value.map(Bytes::from);
        }
        Ok(found)
    }

    fn cursor(&self, tree: TreeId) -> Cursor {
        let mut layers = Vec::new();
        self.layers_of(tree, &mut layers);
        Cursor::new(layers, self.base_side(tree))
    }

    fn catalog(&self) -> &Arc<Catalog> {
        &self.state.catalog
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn lsn_of(&self, _: TreeId) -> Option<Lsn> {
        Some(self.lsn())
    }

    fn blocks(&self, tree: TreeId, least: u64) -> Result<Option<Blocks>> {
        self.blocks_with(tree, least, None)
    }

    fn stored_bytes(&self, tree: TreeId) -> Result<Option<u64>> {
        let Some(base) = &self.state.layers.base else {
            return Ok(None);
        };
        let (start, end) = bounds(tree);
        Ok(base.stored_bytes(range(&start, &end))?)
    }

    fn estimate_entries(&self, tree: TreeId, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        let newer = self.tables(tree).map(|table| table.estimate(from, to) as u64);
        Ok(self.entries_in_base(tree, from, to)? + newer.sum::<u64>())
    }

    fn has_at_most(&self, tree: TreeId, from: &[u8], to: Option<&[u8]>, most: u64) -> Result<bool> {
        let mut entries = self.entries_in_base(tree, from, to)?;
        let newer_max = self.tables(tree).map(|table| table.estimate_max(from, to) as u64);
        if entries > most || entries + newer_max.sum::<u64>() <= most {
            return Ok(entries <= most);
        }
        for table in self.tables(tree) {
            entries += table.estimate(from, to) as u64;
        }
        Ok(entries <= most)
    }
}
