//! Claims: keys that open transactions have written, and the memory that open transactions take.
//!
//! A single statement finds conflicts when it commits. A transaction stays open, and whoever writes one of its keys
//! meanwhile has to hear of it at once rather than make the transaction fail at its end: so a transaction claims its
//! keys, and another commit or transaction that writes a claimed key gets a write conflict with a [`Reservation`], by
//! which it can wait for that transaction's end.
//!
//! A claim is kept as a hash of 64 bits under a random key, a tenth of what tree and key take: a transaction may have millions.
//! Of two keys with one hash, which hardly ever meet, the second is taken for the first, and its writer waits in vain.

use crate::{Bytes, Result, StorageError, TreeId};
use nestor_model::ErrorCode;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Memory of a claim: its place in the table and in the list of its transaction's, both half full.
pub(crate) const CLAIM_BYTES: usize = 48;
/// Oplog entries of one transaction have to fit into one frame of the journal.
const LOGGED_BYTES_MAX: usize = (1 << 30) - (1 << 20);

/// All claims of an engine.
#[derive(Default)]
pub(crate) struct Claims {
    /// How many there are: commits look no further while there are none.
    count: AtomicUsize,
    /// The transactions that claim keys, by hash.
    owners: Mutex<HashMap<u64, u64, BuildHasherDefault<AsIs>>>,
    hasher: RandomState,
    /// Some were given up.
    released: Condvar,
    /// Transactions that wait for another one's end, and for which. No transaction waits for itself over any number of others. It is
    /// locked after `owners`.
    waiting: Mutex<HashMap<u64, u64>>,
    next_owner: AtomicU64,
    /// Memory that open transactions take, in bytes, about, and how much they may.
    bytes: AtomicUsize,
    bytes_max: AtomicUsize,
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

/// The claims of one write set, given up when it goes.
pub(crate) struct Claim {
    claims: Arc<Claims>,
    owner: u64,
    /// Hashes of keys.
    keys: Vec<u64>,
    /// Keys written since the last time keys were claimed.
    pub(crate) fresh: Vec<(TreeId, Bytes)>,
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
            fresh: Vec::new(),
            bytes: 0,
            logged_bytes: 0,
        }
    }

    /// The first of `keys` that another than `own` has claimed. The caller holds the sequencer's lock.
    pub(crate) fn conflict<'a>(
        self: &Arc<Self>,
        own: Option<&Claim>,
        mut keys: impl Iterator<Item = (TreeId, &'a Bytes)>,
    ) -> Option<Reservation> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let owners = self.lock();
        let own = own.map(|claim| claim.owner);
        keys.find_map(|(tree, key)| {
            let key = self.hash(tree, key);
            let owner = *owners.get(&key)?;
            (Some(owner) != own).then(|| Reservation {
                claims: self.clone(),
                key,
                owner,
            })
        })
    }

    fn hash(&self, tree: TreeId, key: &Bytes) -> u64 {
        self.hasher.hash_one((tree, key))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u64, BuildHasherDefault<AsIs>>> {
        self.owners.lock().expect("no holder of the lock panics")
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

/// A key that an open transaction has written.
#[derive(Clone)]
pub struct Reservation {
    claims: Arc<Claims>,
    key: u64,
    owner: u64,
}

impl Reservation {
    /// Waits until the transaction has ended, for at most `timeout`; false when it has not.
    pub fn wait(&self, timeout: Duration) -> bool {
        let held = |owners: &mut HashMap<_, u64, _>| owners.get(&self.key) == Some(&self.owner);
        let waited = self
            .claims
            .released
            .wait_timeout_while(self.claims.lock(), timeout, held);
        !waited.expect("no holder of the lock panics").1.timed_out()
    }
}

/// How a transaction's waiting for another one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The other one has ended.
    Released,
    /// It has not.
    TimedOut,
    /// It waits, be it over others, for the one that wanted to wait.
    Deadlock,
}

impl Claim {
    /// Waits until the transaction that has claimed a key has ended, for at most `timeout`.
    pub(crate) fn wait(&self, reservation: &Reservation, timeout: Duration) -> Waited {
        let claims = &self.claims;
        let owners = claims.lock();
        {
            let mut waiting = claims.waiting.lock().expect("no holder of the lock panics");
            let mut at = Some(reservation.owner);
            while let Some(owner) = at {
                if owner == self.owner {
                    return Waited::Deadlock;
                }
                at = waiting.get(&owner).copied();
            }
            waiting.insert(self.owner, reservation.owner);
        }
        let held = |owners: &mut HashMap<_, u64, _>| owners.get(&reservation.key) == Some(&reservation.owner);
        let waited = claims.released.wait_timeout_while(owners, timeout, held);
        let (owners, timed_out) = waited.expect("no holder of the lock panics");
        claims
            .waiting
            .lock()
            .expect("no holder of the lock panics")
            .remove(&self.owner);
        drop(owners);
        match timed_out.timed_out() {
            true => Waited::TimedOut,
            false => Waited::Released,
        }
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
    /// Claims the keys written since the last time. The caller holds the sequencer's lock and has checked them.
    pub(crate) fn take(&mut self) {
        let mut owners = self.claims.lock();
        for (tree, key) in std::mem::take(&mut self.fresh) {
            let key = self.claims.hash(tree, &key);
            if owners.insert(key, self.owner).is_none() {
                self.keys.push(key);
            }
        }
        self.claims.count.store(owners.len(), Ordering::Release);
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
        if self.keys.is_empty() {
            return;
        }
        let mut owners = self.claims.lock();
        for key in &self.keys {
            owners.remove(key);
        }
        // A table that had millions of entries gives their memory back.
        if owners.capacity() > 4 * (owners.len() + 1024) {
            owners.shrink_to_fit();
        }
        self.claims.count.store(owners.len(), Ordering::Release);
        drop(owners);
        self.claims.released.notify_all();
    }
}
