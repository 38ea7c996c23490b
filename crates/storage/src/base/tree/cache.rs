//! Which leaves and overflow values stay in memory: at most so many bytes, chosen by the clock algorithm.
//!
//! The cache owns pages but is not asked for leaves: those are reached through their parents' weak references, so a hit
//! takes no lock here. A page enters cold; each further access makes it warmer, up to three. When room is needed, a hand
//! goes round over the places, drops cold pages and makes the others colder. A new page takes a place the hand has just
//! left. So a scan, which touches each leaf once, pushes out its own leaves before those that are read again and again.
//!
//! What a merge writes enters as long as there is room, since reading it back costs several times as much as keeping it;
//! it pushes nothing out but the leaves it replaces.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::frame::Page;
use super::page::OverflowRef;

const SHARDS: usize = 8;
/// Places looked at per insertion; then the next page goes, however warm. Bounds the time a shard is locked.
const LOOKS_MAX: usize = 64;
/// Memory of a cached page beside its bytes.
const PAGE_OVERHEAD: usize = 96;

pub(crate) struct Cache {
    shards: Box<[Mutex<Shard>]>,
    shard_bytes_max: usize,
}

#[derive(Default)]
struct Shard {
    places: Vec<Option<Held>>,
    vacant: Vec<u32>,
    hand: usize,
    /// Overflow values by first page. The checksum tells a value from an earlier one in the same place.
    values: HashMap<u32, (u32, Arc<Page>)>,
    bytes: usize,
}

struct Held {
    page: Arc<Page>,
    /// First page and checksum, for overflow values.
    value: Option<(u32, u32)>,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Cache {
        Cache {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            shard_bytes_max: bytes_max / SHARDS,
        }
    }

    fn shard(&self, number: u32) -> MutexGuard<'_, Shard> {
        self.shards[number as usize % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a leaf that begins at page `number`.
    pub(crate) fn hold_leaf(&self, number: u32, leaf: Arc<Page>) {
        self.shard(number).hold(
            Held {
                page: leaf,
                value: None,
            },
            self.shard_bytes_max,
        );
    }

    /// Whether a leaf of `bytes` that begins at page `number` could be kept without letting go of another.
    pub(crate) fn has_room(&self, number: u32, bytes: usize) -> bool {
        self.shard(number).bytes + bytes + PAGE_OVERHEAD <= self.shard_bytes_max
    }

    /// Lets go of a leaf that begins at page `number`: the current tree does not have it any more.
    pub(crate) fn drop_leaf(&self, number: u32, leaf: &Arc<Page>) {
        let mut shard = self.shard(number);
        let place = leaf.place.load(Relaxed) as usize;
        if shard
            .places
            .get(place)
            .is_some_and(|held| held.as_ref().is_some_and(|held| Arc::ptr_eq(&held.page, leaf)))
        {
            shard.vacate(place);
        }
    }

    /// The value at `at`, if it is in memory.
    pub(crate) fn value(&self, at: &OverflowRef) -> Option<Arc<Page>> {
        let shard = self.shard(at.page);
        let (crc, page) = shard.values.get(&at.page)?;
        (*crc == at.crc).then(|| {
            page.touch();
            page.clone()
        })
    }

    /// Keeps an overflow value, unless it is so long that it would push out a large part of everything else.
    pub(crate) fn hold_value(&self, at: &OverflowRef, page: &Arc<Page>) {
        if page.bytes().len() > self.shard_bytes_max / 4 {
            return;
        }
        let mut shard = self.shard(at.page);
        shard.values.insert(at.page, (at.crc, page.clone()));
        shard.hold(
            Held {
                page: page.clone(),
                value: Some((at.page, at.crc)),
            },
            self.shard_bytes_max,
        );
    }

    /// Bytes held.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).bytes)
            .sum()
    }
}

impl Shard {
    fn hold(&mut self, held: Held, bytes_max: usize) {
        self.bytes += held.page.bytes().len() + PAGE_OVERHEAD;
        self.make_room(bytes_max);
        let place = self.vacant.pop().map_or(self.places.len(), |place| place as usize);
        if place == self.places.len() {
            self.places.push(None);
        }
        held.page.place.store(place as u32, Relaxed);
        self.places[place] = Some(held);
    }

    fn make_room(&mut self, bytes_max: usize) {
        let mut looks = 0;
        while self.bytes > bytes_max && self.vacant.len() < self.places.len() {
            self.hand = (self.hand + 1) % self.places.len();
            if let Some(held) = &self.places[self.hand] {
                looks += 1;
                if looks > LOOKS_MAX || !held.page.cool() {
                    self.vacate(self.hand);
                }
            }
        }
    }

    fn vacate(&mut self, place: usize) {
        let Some(held) = self.places[place].take() else { return };
        self.vacant.push(place as u32);
        self.bytes -= held.page.bytes().len() + PAGE_OVERHEAD;
        if let Some((number, crc)) = held.value
            && self.values.get(&number).is_some_and(|(held, _)| *held == crc)
        {
            self.values.remove(&number);
        }
    }
}

/// Leaves that a transaction under way has put into the cache. They are dropped with this unless the transaction commits,
/// since nothing will refer to them.
pub(crate) struct NewLeaves<'a> {
    cache: &'a Cache,
    leaves: Vec<(u32, Weak<Page>)>,
}

impl<'a> NewLeaves<'a> {
    pub(crate) fn new(cache: &'a Cache) -> NewLeaves<'a> {
        NewLeaves {
            cache,
            leaves: Vec::new(),
        }
    }

    /// Keeps a leaf that begins at page `number`.
    pub(crate) fn hold(&mut self, number: u32, leaf: Arc<Page>) {
        self.leaves.push((number, Arc::downgrade(&leaf)));
        self.cache.hold_leaf(number, leaf);
    }

    /// The transaction is committed: they stay.
    pub(crate) fn commit(mut self) {
        self.leaves.clear();
    }
}

impl Drop for NewLeaves<'_> {
    fn drop(&mut self) {
        for (number, leaf) in &self.leaves {
            if let Some(leaf) = leaf.upgrade() {
                self.cache.drop_leaf(*number, &leaf);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: usize) -> Arc<Page> {
        Arc::new(Page::raw(vec![0; bytes].into_boxed_slice()))
    }

    #[test]
    fn a_scan_does_not_push_out_what_is_read_again() {
        let cache = Cache::new(SHARDS * 100 * 1_100);
        let warm: Vec<_> = (0..40)
            .map(|_| {
                let page = page(1_000);
                cache.hold_leaf(0, page.clone());
                Arc::downgrade(&page)
            })
            .collect();
        let resident = || warm.iter().filter_map(std::sync::Weak::upgrade);
        for _ in 0..30 {
            resident().for_each(|page| page.touch());
            for _ in 0..50 {
                cache.hold_leaf(0, page(1_000));
            }
        }
        assert_eq!(resident().count(), 40);
        for _ in 0..1_000 {
            cache.hold_leaf(0, page(1_000));
        }
        assert_eq!(resident().count(), 0, "no access for a long time");
        assert!(cache.bytes() <= 100 * 1_100);
    }

    #[test]
    fn values_are_found_by_place_and_checksum_until_they_are_dropped() {
        let cache = Cache::new(SHARDS * 10_000);
        let at = OverflowRef {
            page: 8,
            crc: 1,
            len: 900,
            packed: 0,
        };
        cache.hold_value(&at, &page(1_000));
        assert!(cache.value(&at).is_some());
        assert!(
            cache.value(&OverflowRef { crc: 2, ..at }).is_none(),
            "another value in the same place"
        );
        for i in 0..40 {
            cache.hold_value(
                &OverflowRef {
                    page: 16 + 8 * i,
                    crc: i,
                    len: 900,
                    packed: 0,
                },
                &page(1_000),
            );
        }
        assert!(cache.value(&at).is_none());
        assert!(cache.bytes() <= 10_000);
        cache.hold_value(&at, &page(9_000));
        assert!(cache.value(&at).is_none(), "too long to be worth its place");
    }

    #[test]
    fn a_leaf_that_is_let_go_makes_room() {
        let cache = Cache::new(SHARDS * 10_000);
        let leaves: Vec<_> = (0..5).map(|_| page(1_000)).collect();
        leaves.iter().for_each(|leaf| cache.hold_leaf(3, leaf.clone()));
        assert!(cache.has_room(3, 4_000));
        assert!(!cache.has_room(3, 5_000));
        assert!(cache.has_room(4, 5_000));
        cache.drop_leaf(3, &leaves[2]);
        cache.drop_leaf(3, &leaves[2]);
        assert_eq!(cache.bytes(), 4 * (1_000 + PAGE_OVERHEAD));
        assert_eq!(Arc::strong_count(&leaves[2]), 1);
        assert_eq!(Arc::strong_count(&leaves[4]), 2);
    }

    #[test]
    fn new_leaves_stay_only_if_their_transaction_commits() {
        let cache = Cache::new(SHARDS * 10_000);
        let mut failed = NewLeaves::new(&cache);
        failed.hold(1, page(1_000));
        drop(failed);
        assert_eq!(cache.bytes(), 0);
        let mut committed = NewLeaves::new(&cache);
        committed.hold(1, page(1_000));
        committed.commit();
        assert_eq!(cache.bytes(), 1_000 + PAGE_OVERHEAD);
    }
}
