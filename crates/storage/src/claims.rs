//! Claims: keys that open transactions have written.
//!
//! A single statement finds conflicts when it commits. A transaction stays open, and whoever writes one of its keys
//! meanwhile has to hear of it at once rather than make the transaction fail at its end: so a transaction claims its
//! keys, and another commit or transaction that writes a claimed key gets a write conflict with a [`Reservation`], by
//! which it can wait for that transaction's end.

use crate::{Bytes, TreeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// All claims of an engine.
#[derive(Default)]
pub(crate) struct Claims {
    /// How many there are: commits look no further while there are none.
    count: AtomicUsize,
    owners: Mutex<HashMap<(TreeId, Bytes), u64>>,
    /// Some were given up.
    released: Condvar,
    next_owner: AtomicU64,
}

/// The claims of one write set, given up when it goes.
pub(crate) struct Claim {
    claims: Arc<Claims>,
    owner: u64,
    keys: Vec<(TreeId, Bytes)>,
    /// Keys written since the last time keys were claimed.
    pub(crate) fresh: Vec<(TreeId, Bytes)>,
}

impl Claims {
    pub(crate) fn open(self: &Arc<Self>) -> Claim {
        Claim {
            claims: self.clone(),
            owner: self.next_owner.fetch_add(1, Ordering::Relaxed),
            keys: Vec::new(),
            fresh: Vec::new(),
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
            let key = (tree, key.clone());
            let owner = *owners.get(&key)?;
            (Some(owner) != own).then(|| Reservation {
                claims: self.clone(),
                key,
                owner,
            })
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(TreeId, Bytes), u64>> {
        self.owners.lock().expect("no holder of the lock panics")
    }
}

/// A key that an open transaction has written.
#[derive(Clone)]
pub struct Reservation {
    claims: Arc<Claims>,
    key: (TreeId, Bytes),
    owner: u64,
}

impl Reservation {
    /// Waits until the transaction has ended, for at most `timeout`; false when it has not.
    pub fn wait(&self, timeout: Duration) -> bool {
        let held = |owners: &mut HashMap<_, u64>| owners.get(&self.key) == Some(&self.owner);
        let waited = self
            .claims
            .released
            .wait_timeout_while(self.claims.lock(), timeout, held);
        !waited.expect("no holder of the lock panics").1.timed_out()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("key", &self.key)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl Claim {
    /// Claims the keys written since the last time. The caller holds the sequencer's lock and has checked them.
    pub(crate) fn take(&mut self) {
        let mut owners = self.claims.lock();
        for key in self.fresh.drain(..) {
            if owners.insert(key.clone(), self.owner).is_none() {
                self.keys.push(key);
            }
        }
        self.claims.count.store(owners.len(), Ordering::Release);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let mut owners = self.claims.lock();
        for key in &self.keys {
            owners.remove(key);
        }
        self.claims.count.store(owners.len(), Ordering::Release);
        drop(owners);
        self.claims.released.notify_all();
    }
}
