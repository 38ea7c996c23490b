//! Claims: keys that open transactions have written, and the memory that open transactions take.
//!
//! A single statement finds conflicts when it commits. A transaction stays open, and whoever writes one of its keys
//! meanwhile has to hear of it at once rather than make the transaction fail at its end: so a transaction claims its
//! keys, and another commit or transaction that writes a claimed key gets a write conflict with a [`Reservation`], by
//! which it can wait for that transaction's end.
//!
//! Keys that are [held](crate::holds) are claimed as well. Those that are held in common are in the way of who writes them or holds them alone.
//!
//! A claim is kept as a hash of 64 bits under a random key, a tenth of what tree and key take: a transaction may have millions.
//! Of two keys with one hash, which hardly ever meet, the second is taken for the first, and its writer waits in vain.

use crate::holds::Hold;
use crate::{Bytes, Result, StorageError, TreeId};
use nestor_model::ErrorCode;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Memory of a claim: its place in the table and in the list of its transaction's, both half full.
pub(crate) const CLAIM_BYTES: usize = 48;
/// How often one that waits for a key looks whether it is free without being woken: whoever was may not have wanted it any more.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Oplog entries of one transaction have to fit into one frame of the journal.
const LOGGED_BYTES_MAX: usize = (1 << 30) - (1 << 20);

/// All claims of an engine.
#[derive(Default)]
pub(crate) struct Claims {
    /// How many there are: commits look no further while there are none.
    count: AtomicUsize,
    table: Mutex<Table>,
    hasher: RandomState,
    next_owner: AtomicU64,
    /// Memory that open transactions take, in bytes, about, and how much they may.
    bytes: AtomicUsize,
    bytes_max: AtomicUsize,
}

#[derive(Default)]
struct Table {
    /// The transactions that claim keys alone, by hash.
    owners: ByHash<u64>,
    /// Those that claim keys in common.
    sharers: ByHash<Vec<u64>>,
    /// Those who wait for a key, by hash: one of them is woken when it is given up.
    waiters: ByHash<Waiters>,
    /// Transactions that wait for another one's end, and for which. No transaction waits for itself over any number of others.
    waiting: HashMap<u64, u64>,
}

type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

#[derive(Default)]
struct Waiters {
    count: usize,
    released: Arc<Condvar>,
}

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 ^= hash;
    }
}

/// A key that somebody wants to write or to hold, and whether alone.
pub(crate) type Wanted<'a> = (TreeId, &'a Bytes, bool);

impl Table {
    /// A transaction that claims a key and is in the way of another one.
    fn blocker(&self, key: u64, alone: bool, own: Option<u64>) -> Option<u64> {
        let is_other = |owner: &u64| Some(*owner) != own;
        let owner = self.owners.get(&key).copied().filter(is_other);
        let sharers = self.sharers.get(&key).filter(|_| alone);
        owner.or_else(|| sharers?.iter().copied().find(is_other))
    }

    fn len(&self) -> usize {
        self.owners.len() + self.sharers.len()
    }
}

/// The claims of one write set, given up when it goes.
pub(crate) struct Claim {
    claims: Arc<Claims>,
    owner: u64,
    /// Hashes of keys that are claimed alone.
    keys: Vec<u64>,
    /// Hashes of keys that are claimed in common.
    shared: Vec<u64>,
    /// Keys written since the last time keys were claimed.
    pub(crate) fresh: Vec<(TreeId, Bytes)>,
    /// Keys held since then.
    pub(crate) held: Vec<Hold>,
    /// Memory of the write set in bytes, about, and how much of it is oplog entries.
    bytes: usize,
    logged_bytes: usize,
}

impl Claims {
    pub(crate) fn open(self: &Arc<Self>) -> Claim {
        Claim {
            claims: self.clone(),
            owner: self.next_owner.fetch_add(1, Ordering::Relaxed),
            keys: Vec::new(),
            shared: Vec::new(),
            fresh: Vec::new(),
            held: Vec::new(),
            bytes: 0,
            logged_bytes: 0,
        }
    }

    /// The first of `keys` that another than `own` has claimed in a way that is in the way. The caller holds the sequencer's lock.
    pub(crate) fn conflict<'a>(
        self: &Arc<Self>,
        own: Option<&Claim>,
        mut keys: impl Iterator<Item = Wanted<'a>>,
    ) -> Option<Reservation> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let table = self.lock();
        let own = own.map(|claim| claim.owner);
        keys.find_map(|(tree, key, alone)| {
            let key = self.hash(tree, key);
            let owner = table.blocker(key, alone, own)?;
            Some(Reservation {
                claims: self.clone(),
                key,
                alone,
                own,
                owner,
            })
        })
    }

    /// Waits until nobody's claim to a key is in the way, for at most `timeout`. `may` is asked for each transaction that is waited for, and says
    /// whether it may be.
    fn wait_for(
        &self,
        wanted: &Reservation,
        timeout: Duration,
        mut may: impl FnMut(&mut Table, u64) -> bool,
    ) -> Waited {
        let Reservation { key, alone, own, .. } = *wanted;
        let until = Instant::now() + timeout;
        let mut table = self.lock();
        loop {
            let Some(owner) = table.blocker(key, alone, own) else {
                // Others that want it in common need not wait for this one.
                if let (Some(place), false) = (table.waiters.get(&key), alone) {
                    place.released.notify_one();
                }
                return Waited::Released;
            };
            if !may(&mut table, owner) {
                return Waited::Deadlock;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waited::TimedOut;
            }
            let place = table.waiters.entry(key).or_default();
            place.count += 1;
            let released = place.released.clone();
            let woken = released.wait_timeout(table, left.min(LOOK_AGAIN));
            table = woken.expect("no holder of the lock panics").0;
            if let Some(place) = table.waiters.get_mut(&key) {
                place.count -= 1;
                if place.count == 0 {
                    table.waiters.remove(&key);
                }
            }
        }
    }

    /// What a key is claimed by.
    pub(crate) fn hash(&self, tree: TreeId, key: &Bytes) -> u64 {
        self.hasher.hash_one((tree, key))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no holder of the lock panics")
    }

    /// Memory that open transactions take, in bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Sets how much they may take; 0 for any amount.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }
}

/// A key that an open transaction has written or holds.
#[derive(Clone)]
pub struct Reservation {
    claims: Arc<Claims>,
    key: u64,
    /// It is wanted alone.
    alone: bool,
    /// Who wants it.
    own: Option<u64>,
    owner: u64,
}

impl Reservation {
    /// Waits until neither that transaction nor another one has a claim to the key that is in the way, for at most `timeout`; false when one has.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.claims.wait_for(self, timeout, |_, _| true) == Waited::Released
    }
}

/// How a transaction's waiting for another one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Nobody claims the key any more.
    Released,
    /// Somebody does.
    TimedOut,
    /// It waits, be it over others, for the one that wanted to wait.
    Deadlock,
}

impl Claim {
    /// Waits until no other transaction's claim to a key is in the way, for at most `timeout`.
    pub(crate) fn wait(&self, reservation: &Reservation, timeout: Duration) -> Waited {
        let own = self.owner;
        let wanted = Reservation {
            own: Some(own),
            ..reservation.clone()
        };
        let waited = self.claims.wait_for(&wanted, timeout, |table, owner| {
            let mut at = Some(owner);
            while let Some(owner) = at {
                if owner == own {
                    return false;
                }
                at = table.waiting.get(&owner).copied();
            }
            table.waiting.insert(own, owner);
            true
        });
        self.claims.lock().waiting.remove(&own);
        waited
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl Claim {
    /// Claims the keys written and held since the last time. The caller holds the sequencer's lock and has checked them.
    pub(crate) fn take(&mut self) {
        let mut table = self.claims.lock();
        let written = std::mem::take(&mut self.fresh).into_iter();
        let held = std::mem::take(&mut self.held).into_iter();
        let all = written.map(|(tree, key)| (tree, key, true));
        for (tree, key, alone) in all.chain(held.map(|hold| (hold.tree, hold.key, hold.alone))) {
            let key = self.claims.hash(tree, &key);
            if alone {
                if table.owners.insert(key, self.owner).is_none() {
                    self.keys.push(key);
                }
                continue;
            }
            let sharers = table.sharers.entry(key).or_default();
            if !sharers.contains(&self.owner) {
                sharers.push(self.owner);
                self.shared.push(key);
            }
        }
        self.claims.count.store(table.len(), Ordering::Release);
    }

    /// Claims nothing of what was written and held since the last time.
    pub(crate) fn forget_fresh(&mut self) {
        self.fresh.clear();
        self.held.clear();
    }

    /// Counts memory of the write set: so much more, and so much less.
    pub(crate) fn count(&mut self, more: usize, less: usize) {
        let less = less.min(self.bytes + more);
        self.bytes = self.bytes + more - less;
        self.claims.bytes.fetch_add(more, Ordering::Relaxed);
        self.claims.bytes.fetch_sub(less, Ordering::Relaxed);
    }

    /// Counts an oplog entry that waits for the commit.
    ///
    /// Errors: `TransactionTooLarge` when all of them do not fit into one commit, `TransactionTooLargeForCache` when open transactions
    /// take more memory than they may.
    pub(crate) fn log(&mut self, bytes: usize) -> Result<()> {
        self.logged_bytes += bytes;
        self.count(bytes, 0);
        if self.logged_bytes > LOGGED_BYTES_MAX {
            return Err(StorageError::catalog(
                ErrorCode::TransactionTooLarge,
                format!("the transaction writes more than {LOGGED_BYTES_MAX} bytes"),
            ));
        }
        let bytes_max = self.claims.bytes_max.load(Ordering::Relaxed);
        let open = self.claims.bytes();
        if bytes_max > 0 && open > bytes_max {
            return Err(StorageError::catalog(
                ErrorCode::TransactionTooLargeForCache,
                format!(
                    "transaction is too large: the open transactions hold {open} bytes, of which it holds {}; the limit is {bytes_max}",
                    self.bytes
                ),
            ));
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.keys.is_empty() && self.shared.is_empty() {
            return;
        }
        let mut table = self.claims.lock();
        let Table {
            owners,
            sharers,
            waiters,
            ..
        } = &mut *table;
        for key in &self.keys {
            owners.remove(key);
        }
        for key in &self.shared {
            if let Some(others) = sharers.get_mut(key) {
                others.retain(|owner| *owner != self.owner);
                if others.is_empty() {
                    sharers.remove(key);
                }
            }
        }
        // A table that had millions of entries gives their memory back.
        if owners.capacity() > 4 * (owners.len() + 1024) {
            owners.shrink_to_fit();
        }
        self.claims.count.store(owners.len() + sharers.len(), Ordering::Release);
        let released: Vec<Arc<Condvar>> = match waiters.is_empty() {
            true => Vec::new(),
            false => {
                let awaited = self.keys.iter().chain(&self.shared).filter_map(|key| waiters.get(key));
                awaited.map(|waiters| waiters.released.clone()).collect()
            }
        };
        drop(table);
        // One of each: the others would find the key claimed by it.
        released.iter().for_each(|released| released.notify_one());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: TreeId = TreeId(1);

    fn claim(claims: &Arc<Claims>, key: &[u8]) -> Claim {
        let mut claim = claims.open();
        claim.fresh.push((T, Bytes::copy_from(key)));
        claim.take();
        claim
    }

    fn reservation(claims: &Arc<Claims>, key: &[u8]) -> Reservation {
        let key = Bytes::copy_from(key);
        claims
            .conflict(None, std::iter::once((T, &key, true)))
            .expect("it is claimed")
    }

    fn sharing(claims: &Arc<Claims>, key: &[u8]) -> Claim {
        let mut claim = claims.open();
        claim.held.push(Hold {
            tree: T,
            key: Bytes::copy_from(key),
            alone: false,
        });
        claim.take();
        claim
    }

    #[test]
    fn who_holds_a_key_in_common_is_in_the_way_of_who_wants_it_alone() {
        let claims = Arc::<Claims>::default();
        let (first, second) = (sharing(&claims, b"a"), sharing(&claims, b"a"));
        let key = Bytes::copy_from(b"a");
        let blocks = |own: Option<&Claim>, alone: bool| claims.conflict(own, std::iter::once((T, &key, alone)));
        assert!(blocks(None, false).is_none() && blocks(Some(&first), true).is_some());
        let a = blocks(None, true).expect("it is claimed");
        drop(second);
        assert!(blocks(Some(&first), true).is_none() && !a.wait(Duration::ZERO));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| a.wait(Duration::from_secs(60)));
            while claims.lock().waiters.is_empty() {
                std::thread::yield_now();
            }
            drop(first);
            assert!(waits.join().expect("it ends"));
        });
        assert_eq!((claims.lock().len(), claims.count.load(Ordering::Acquire)), (0, 0));
    }

    #[test]
    fn who_holds_a_key_in_common_may_have_it_alone_once_nobody_else_does() {
        let claims = Arc::<Claims>::default();
        let (mut first, second) = (sharing(&claims, b"a"), sharing(&claims, b"a"));
        drop(second);
        first.fresh.push((T, Bytes::copy_from(b"a")));
        first.take();
        let key = Bytes::copy_from(b"a");
        assert!(claims.conflict(None, std::iter::once((T, &key, false))).is_some());
        drop(first);
        assert_eq!(claims.lock().len(), 0);
    }

    #[test]
    fn a_deadlock_is_found_when_another_one_has_the_key_by_now() {
        let claims = Arc::<Claims>::default();
        let (mut first, waiter, mut second) = (claim(&claims, b"a"), claim(&claims, b"b"), claim(&claims, b"c"));
        let (a, b) = (reservation(&claims, b"a"), reservation(&claims, b"b"));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let waited = waiter.wait(&a, Duration::from_secs(60));
                drop(waiter);
                waited
            });
            while claims.lock().waiters.is_empty() {
                std::thread::yield_now();
            }
            // The second was faster than the one that waits.
            claims.lock().owners.insert(a.key, second.owner);
            second.keys.append(&mut first.keys);
            drop(first);
            let other = second.wait(&b, Duration::from_secs(60));
            assert_eq!(
                (waits.join().expect("it ends"), other),
                (Waited::Deadlock, Waited::Released)
            );
        });
        drop(second);
        let table = claims.lock();
        assert!(table.owners.is_empty() && table.waiters.is_empty() && table.waiting.is_empty());
    }

    #[test]
    fn one_that_waits_goes_on_though_another_one_was_woken() {
        let claims = Arc::<Claims>::default();
        let first = claim(&claims, b"a");
        let a = reservation(&claims, b"a");
        assert!(!a.wait(Duration::ZERO));
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..5)
                .map(|_| scope.spawn(|| a.wait(Duration::from_secs(60))))
                .collect();
            while claims
                .lock()
                .waiters
                .get(&a.key)
                .is_none_or(|waiters| waiters.count < 5)
            {
                std::thread::yield_now();
            }
            drop(first);
            assert!(waiting.into_iter().all(|one| one.join().expect("it ends")));
        });
        assert!(claims.lock().waiters.is_empty());
    }
}
