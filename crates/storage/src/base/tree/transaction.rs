//! The course of a transaction, and what becomes of the space when it fails.
//!
//! 1. Release pages that the oldest snapshot no longer needs.
//! 2. Merge: write the new nodes and values to free pages. Write the free list. Sync.
//! 3. Write meta page 0. Sync: the transaction is committed.
//! 4. Show it to new snapshots. Write meta page 1. Sync.
//!
//! A failure in 1 or 2 leaves only free pages changed. A failure in 3 leaves open which state a restart would find; so the
//! next transaction writes both meta pages again before anything else, which rules the failed one out, and only then uses
//! its pages. A failure in 4 is made good in the same way.

use std::sync::Arc;

use super::super::{ApplyStats, BaseError, ChangeSource, KeyRange, Packing, Result, check_deletions};
use super::Writer;
use super::births::State;
use super::build::Made;
use super::cache::NewLeaves;
use super::check::free_list;
use super::merge::{Merged, Merger, StaleLeaves};
use super::meta::{Meta, USER_META_AT};
use super::node::{Kids, Resident};
use super::out::{Out, Spare};
use super::page::{HEADER, Kind, put_header, put_u32, seal};
use super::space::Space;
use super::store::Store;
use super::version::Version;

/// Range deletions, changes, metadata.
pub(crate) type Input<'i, 'c> = (&'i [KeyRange<'i>], &'c mut dyn ChangeSource, &'i [u8]);

impl Writer {
    /// Makes both meta pages name the current state, if one may not.
    pub(crate) fn mend_meta(&mut self, store: &Store) -> Result<()> {
        if self.meta_is_stale {
            for slot in [1, 0] {
                write_meta(store, &self.meta, slot)?;
            }
            self.meta_is_stale = false;
        }
        Ok(())
    }

    /// Steps 1 to 3: returns the new state, which is durable but not shown yet.
    pub(crate) fn apply(
        &mut self,
        store: &Arc<Store>,
        base: &Version,
        (deletions, changes, user): Input<'_, '_>,
    ) -> Result<(Arc<Version>, ApplyStats)> {
        check_deletions(deletions)?;
        let user_max = store.page_bytes - USER_META_AT;
        if user.len() > user_max {
            return Err(BaseError::TooLarge {
                what: "metadata",
                len: user.len(),
                max: user_max,
            });
        }
        self.mend_meta(store)?;
        let in_use = self.in_use();
        let txn = self.meta.txn + 1;
        let space = match &mut self.space {
            Some(space) => space,
            None => self
                .space
                .insert(Space::new(self.meta.page_count, free_list(store, &self.meta)?)),
        };
        // Nothing is to be rolled back unless the transaction before panicked.
        space.roll_back();
        space.release(&in_use);
        self.held_pages = space.pending_pages();
        let spare = std::mem::take(&mut self.spare);
        store.births.begin(txn);
        let packing = &self.packing;
        let written = write(
            store,
            (space, spare, packing),
            base,
            &self.meta,
            (deletions, changes, user),
            txn,
        );
        let Written {
            meta,
            root,
            leaves,
            spare,
            stale,
            stats,
        } = match written {
            Ok(written) => written,
            Err(error) => {
                space.roll_back();
                cut(store, space.page_count());
                return Err(error);
            }
        };
        store.births.note(State::new(txn, meta.root));
        if let Err(error) = write_meta(store, &meta, 0) {
            space.roll_back();
            self.meta_is_stale = true;
            return Err(error);
        }
        space.commit(txn);
        leaves.commit();
        let (level, resident) = match root {
            Some((made, level)) => (level, made.resident),
            None => (0, Resident::Nothing),
        };
        let version = Arc::new(Version {
            store: store.clone(),
            txn,
            root: meta.root,
            kids: Kids::taking(std::iter::once(resident), level),
            meta: user.to_vec(),
        });
        self.versions.push((txn, Arc::downgrade(&version)));
        self.meta = meta;
        (self.stale, self.spare) = (stale, spare);
        Ok((version, stats))
    }

    /// Step 4, behind the switch to the new state.
    pub(crate) fn settle(&mut self, store: &Store) {
        self.meta_is_stale = write_meta(store, &self.meta, 1).is_err();
        if !self.meta_is_stale {
            cut(store, self.meta.page_count);
        }
        // Last, since who reads the state before still wants them.
        for (page, leaf) in std::mem::take(&mut self.stale) {
            if let Some(leaf) = leaf.upgrade() {
                store.cache.drop_leaf(page, &leaf);
                self.spare.take(leaf);
            }
        }
        self.spare.trim();
    }

    /// Commits of the states that someone holds, ascending; the current one is always held.
    fn in_use(&mut self) -> Vec<u64> {
        self.versions.retain(|(_, version)| version.strong_count() > 0);
        self.versions.iter().map(|(txn, _)| *txn).collect()
    }
}

/// A state that is in the file but for its meta pages.
struct Written<'a> {
    meta: Meta,
    root: Option<(Made, u8)>,
    leaves: NewLeaves<'a>,
    spare: Spare,
    stale: StaleLeaves,
    stats: ApplyStats,
}

/// Step 2.
fn write<'a>(
    store: &'a Store,
    (space, spare, packing): (&mut Space, Spare, &'a Packing),
    base: &Version,
    before: &Meta,
    (deletions, changes, user): Input<'a, '_>,
    txn: u64,
) -> Result<Written<'a>> {
    let Merged {
        root,
        mut out,
        stale,
        mut stats,
    } = Merger::new(store, space, spare, packing, deletions).run(&base.kids, base.root, changes)?;
    if let Some((page, pages, _)) = before.free_list {
        space.free(page, pages);
    }
    space.trim();
    let free_list = write_free_list(store, space, &mut out)?;
    out.flush()?;
    store.sync()?;
    stats.bytes_written = out.bytes_written;
    let meta = Meta {
        page_bytes: store.page_bytes,
        packs: store.packs,
        txn,
        page_count: space.page_count(),
        root: root.as_ref().map(|(made, level)| (made.node, *level)),
        free_list,
        user: user.to_vec(),
    };
    Ok(Written {
        meta,
        root,
        leaves: out.leaves,
        spare: out.spare,
        stale,
        stats,
    })
}

fn write_free_list(store: &Store, space: &mut Space, out: &mut Out<'_>) -> Result<Option<(u32, u32, u32)>> {
    let runs_max = space.runs_max();
    if space.all_free().is_empty() {
        return Ok(None);
    }
    // Taking space for the list can only shorten runs, never make more of them.
    let pages = (HEADER + 8 * runs_max).div_ceil(store.page_bytes) as u32;
    let page = space.allocate(pages)?;
    let runs = space.all_free();
    assert!(runs.len() <= runs_max, "the free list fits the extent made for it");
    let bytes = out.extent(page, pages)?;
    put_header(bytes, page, Kind::FreeList, 0, pages, runs.len() as u32);
    put_u32(bytes, 24, (HEADER + 8 * runs.len()) as u32);
    for (i, (start, len)) in runs.iter().enumerate() {
        put_u32(bytes, HEADER + 8 * i, *start);
        put_u32(bytes, HEADER + 8 * i + 4, *len);
    }
    let crc = seal(bytes);
    Ok(Some((page, pages, crc)))
}

fn write_meta(store: &Store, meta: &Meta, slot: u32) -> Result<()> {
    store
        .file
        .write_at(&meta.encode(slot), store.offset(slot))
        .map_err(store.io("write"))?;
    store.sync()
}

/// Cuts off what lies behind the last page, if anything does. That it fails is no harm: the next transaction extends
/// the file from the same place.
fn cut(store: &Store, page_count: u32) {
    let len = store.offset(page_count);
    if store.file.len().is_ok_and(|file_len| file_len > len) {
        let _ = store.file.set_len(len);
    }
}
