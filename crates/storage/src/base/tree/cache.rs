//! Which leaves and overflow values stay in memory: at most so many bytes, chosen by second chance.
//!
//! The cache owns pages but is not asked for leaves: those are reached through their parents' weak references, so a hit
//! takes no lock here. A page enters cold; each further access makes it warmer, up to three; the queue's front is dropped
//! when cold and sent to the back one degree colder otherwise. So a scan, which touches each leaf once, pushes out its own
//! leaves before those that are read again and again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::page::{OverflowRef, Page};

const SHARDS: usize = 8;
/// Pages looked at per insertion; then the front goes, however warm. Bounds the time a shard is locked.
const LOOKS_MAX: usize = 64;
/// Memory of a cached page beside its bytes.
const PAGE_OVERHEAD: usize = 96;

pub(crate) struct Cache {
    shards: Box<[Mutex<Shard>]>,
    shard_bytes_max: usize,
}

#[derive(Default)]
struct Shard {
    queue: VecDeque<Held>,
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

    fn shard(&self, number: u32) -> std::sync::MutexGuard<'_, Shard> {
        self.shards[number as usize % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a leaf that begins at page `number`.
    pub(crate) fn hold_leaf(&self, number: u32, leaf: Arc<Page>) {
        let mut shard = self.shard(number);
        shard.hold(
            Held {
                page: leaf,
                value: None,
            },
            self.shard_bytes_max,
        );
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
        if page.bytes.len() > self.shard_bytes_max / 4 {
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
        self.bytes += held.page.bytes.len() + PAGE_OVERHEAD;
        self.queue.push_back(held);
        let mut looks = 0;
        while self.bytes > bytes_max {
            let Some(front) = self.queue.pop_front() else {
                break;
            };
            looks += 1;
            if looks <= LOOKS_MAX && front.page.cool() {
                self.queue.push_back(front);
                continue;
            }
            self.bytes -= front.page.bytes.len() + PAGE_OVERHEAD;
            if let Some((number, crc)) = front.value
                && self.values.get(&number).is_some_and(|(held, _)| *held == crc)
            {
                self.values.remove(&number);
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
                },
                &page(1_000),
            );
        }
        assert!(cache.value(&at).is_none());
        assert!(cache.bytes() <= 10_000);
        cache.hold_value(&at, &page(9_000));
        assert!(cache.value(&at).is_none(), "too long to be worth its place");
    }
}
