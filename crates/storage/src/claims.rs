//! Claims: keys that open transactions have written.
//!
//! A single statement finds conflicts when it commits. A transaction stays open, and whoever writes one of its keys
//! meanwhile has to hear of it at once rather than make the transaction fail at its end: so a transaction claims its
//! keys, and another commit or transaction that writes a claimed key gets a write conflict.

use crate::{Bytes, TreeId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// All claims of an engine.
#[derive(Default)]
pub(crate) struct Claims {
    /// How many there are: commits look no further while there are none.
    count: AtomicUsize,
    owners: Mutex<HashMap<(TreeId, Bytes), u64>>,
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

    /// Whether another than `own` has claimed one of `keys`. The caller holds the sequencer's lock.
    pub(crate) fn conflict<'a>(
        &self,
        own: Option<&Claim>,
        mut keys: impl Iterator<Item = (TreeId, &'a Bytes)>,
    ) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let owners = self.owners.lock().expect("no holder of the lock panics");
        let own = own.map(|claim| claim.owner);
        keys.any(|(tree, key)| {
            owners
                .get(&(tree, key.clone()))
                .is_some_and(|owner| Some(*owner) != own)
        })
    }
}

impl Claim {
    /// Claims the keys written since the last time. The caller holds the sequencer's lock and has checked them.
    pub(crate) fn take(&mut self) {
        let mut owners = self.claims.owners.lock().expect("no holder of the lock panics");
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
        let mut owners = self.claims.owners.lock().expect("no holder of the lock panics");
        for key in &self.keys {
            owners.remove(key);
        }
        self.claims.count.store(owners.len(), Ordering::Release);
    }
}
