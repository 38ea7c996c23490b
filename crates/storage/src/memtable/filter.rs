//! A filter in front of a memtable: tells most keys that are not in it without a search.

use crate::TreeId;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes of a memtable for each 64-bit word. 64 MiB hold at most about 450,000 entries, seven to a word, which leaves a
/// key that is absent a chance of about one in fifty to be searched for.
const BYTES_PER_WORD: usize = 1 << 10;
/// Words at least and at most; a power of two each.
const WORDS_MIN: usize = 1 << 10;
const WORDS_MAX: usize = 1 << 20;
/// As [`WORDS_MAX`], of a filter that is renewed.
const RENEWED_WORDS_MAX: usize = 1 << 22;
/// Keys for each word that leave the filter good enough.
const KEYS_PER_WORD: usize = 7;
/// Keys noted for each one that is still there, above which most bits are of keys that are gone.
const STALE_FACTOR: usize = 4;

/// A Bloom filter whose three bits per key lie in one word: one cache line per question.
pub(crate) struct Filter {
    words: Box<[AtomicU64]>,
}

impl Filter {
    /// For a memtable that is merged into the base when it has that many bytes.
    pub(crate) fn new(memtable_bytes_max: usize) -> Self {
        Self::with_words((memtable_bytes_max / BYTES_PER_WORD).clamp(WORDS_MIN, WORDS_MAX))
    }

    fn with_words(words: usize) -> Self {
        Self {
            words: (0..words.next_power_of_two()).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Notes a key. Whoever sees the commit sees the bits: publishing it is a release, taking a snapshot an acquire. True if it
    /// was not noted before.
    pub(crate) fn insert(&self, tree: TreeId, key: &[u8]) -> bool {
        let (word, bits) = self.place(tree, key);
        self.words[word].fetch_or(bits, Ordering::Relaxed) & bits != bits
    }

    /// False only if the key was never noted.
    pub(crate) fn may_hold(&self, tree: TreeId, key: &[u8]) -> bool {
        let (word, bits) = self.place(tree, key);
        self.words[word].load(Ordering::Relaxed) & bits == bits
    }

    fn place(&self, tree: TreeId, key: &[u8]) -> (usize, u64) {
        let hash = hash(tree.0, key);
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
        ((hash >> 40) as usize & (self.words.len() - 1), bits)
    }
}

/// The filter of a memtable that is never merged into a base: it has to grow with it, and forget keys that are gone. So it is made
/// anew now and then; meanwhile the one before serves, and both are told of keys that come.
pub(crate) struct RenewedFilter {
    filters: RwLock<Filters>,
    /// Keys noted in the present one.
    noted: AtomicUsize,
}

struct Filters {
    present: Filter,
    next: Option<Filter>,
}

impl RenewedFilter {
    pub(crate) fn new() -> Self {
        Self {
            filters: RwLock::new(Filters {
                present: Filter::with_words(WORDS_MIN),
                next: None,
            }),
            noted: AtomicUsize::new(0),
        }
    }

    /// As [`Filter::insert`].
    pub(crate) fn insert(&self, tree: TreeId, key: &[u8]) {
        let filters = self.filters.read().expect("no holder of the lock panics");
        if filters.present.insert(tree, key) {
            self.noted.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(next) = &filters.next {
            next.insert(tree, key);
        }
    }

    /// As [`Filter::may_hold`].
    pub(crate) fn may_hold(&self, tree: TreeId, key: &[u8]) -> bool {
        let filters = self.filters.read().expect("no holder of the lock panics");
        filters.present.may_hold(tree, key)
    }

    /// Whether it has more keys than it is good for.
    pub(crate) fn is_full(&self) -> bool {
        let filters = self.filters.read().expect("no holder of the lock panics");
        let words = filters.present.words.len();
        words < RENEWED_WORDS_MAX && self.noted.load(Ordering::Relaxed) > words * KEYS_PER_WORD
    }

    /// Whether most of the keys in it are gone, of which `live` are left.
    pub(crate) fn is_stale(&self, live: usize) -> bool {
        self.noted.load(Ordering::Relaxed) > STALE_FACTOR * live.max(WORDS_MIN * KEYS_PER_WORD)
    }

    /// Makes it anew with room for twice the `live` keys, which `each` calls its argument with. Keys that others note meanwhile are
    /// in it too.
    pub(crate) fn renew(&self, live: usize, each: impl FnOnce(&mut dyn FnMut(TreeId, &[u8]))) {
        let words = (2 * live / KEYS_PER_WORD).clamp(WORDS_MIN, RENEWED_WORDS_MAX);
        self.filters.write().expect("no holder of the lock panics").next = Some(Filter::with_words(words));
        let mut count = 0;
        each(&mut |tree, key| {
            let filters = self.filters.read().expect("no holder of the lock panics");
            count += usize::from(filters.next.as_ref().is_some_and(|next| next.insert(tree, key)));
        });
        let mut filters = self.filters.write().expect("no holder of the lock panics");
        if let Some(next) = filters.next.take() {
            filters.present = next;
            self.noted.store(count, Ordering::Relaxed);
        }
    }
}

/// Multiply and fold, eight bytes at a time: keys are short, and the filter is asked at every point read.
fn hash(tree: u32, key: &[u8]) -> u64 {
    let mut state = mix(u64::from(tree) ^ (key.len() as u64) << 32, 0x9E37_79B9_7F4A_7C15);
    let mut chunks = key.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("chunks have eight bytes"));
        state = mix(state ^ word, 0xD6E8_FEB8_6659_FD93);
    }
    let mut rest = [0; 8];
    rest[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(state ^ u64::from_le_bytes(rest), 0xA076_1D64_78BD_642F)
}

fn mix(a: u64, b: u64) -> u64 {
    let wide = u128::from(a ^ 0x8BB8_4B93_962E_ACC9) * u128::from(b);
    (wide as u64) ^ (wide >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_it_was_given_and_little_else() {
        for (mib, entries) in [(8, 50_000), (64, 400_000), (512, 3_200_000)] {
            let filter = Filter::new(mib << 20);
            let key = |i: u64| i.to_be_bytes();
            for i in 0..entries {
                filter.insert(TreeId(3), &key(i));
            }
            assert!((0..entries).all(|i| filter.may_hold(TreeId(3), &key(i))));
            let wrong = (0..100_000).filter(|i| filter.may_hold(TreeId(4), &key(*i))).count();
            assert!(wrong < 5_000, "{mib} MiB: {wrong} of 100,000 absent keys pass");
        }
    }
}
