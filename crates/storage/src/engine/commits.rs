//! Subscriptions to commits.

use crate::Lsn;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

type Notify = Arc<dyn Fn(Lsn) + Send + Sync>;

/// Waiters and subscribers. Costs one load per commit when there are none.
#[derive(Default)]
pub(super) struct Commits {
    /// How many wait or have subscribed.
    interested: AtomicUsize,
    subscribers: Arc<Subscribers>,
    changed: Condvar,
}

#[derive(Default)]
struct Subscribers {
    list: Mutex<Vec<(u64, Notify)>>,
}

/// A subscription to commits; dropping it ends it.
pub struct Subscription {
    id: u64,
    subscribers: Weak<Subscribers>,
}

impl Commits {
    pub(super) fn announce(&self, lsn: Lsn) {
        // A subscriber that registers before this sees the commit or is seen here.
        fence(Ordering::SeqCst);
        if self.interested.load(Ordering::SeqCst) == 0 {
            return;
        }
        let list = self
            .subscribers
            .list
            .lock()
            .expect("no holder of the lock panics")
            .clone();
        self.changed.notify_all();
        for (_, notify) in list {
            notify(lsn);
        }
    }

    /// Waits until `met` or the deadline; asks after every commit.
    pub(super) fn wait(&self, deadline: Instant, met: impl Fn() -> bool) -> bool {
        self.interested.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.subscribers.list.lock().expect("no holder of the lock panics");
        let found = loop {
            if met() {
                break true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                break false;
            }
            let waited = self.changed.wait_timeout(guard, left);
            guard = waited.expect("no holder of the lock panics").0;
        };
        drop(guard);
        self.interested.fetch_sub(1, Ordering::SeqCst);
        found
    }

    pub(super) fn subscribe(&self, notify: Notify) -> Subscription {
        // The count never goes down: once somebody has subscribed, each commit of the engine takes a lock.
        let id = self.interested.fetch_add(1, Ordering::SeqCst) as u64;
        let mut list = self.subscribers.list.lock().expect("no holder of the lock panics");
        let id = list.iter().map(|(other, _)| other + 1).max().unwrap_or(0).max(id);
        list.push((id, notify));
        Subscription {
            id,
            subscribers: Arc::downgrade(&self.subscribers),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(subscribers) = self.subscribers.upgrade() {
            let mut list = subscribers.list.lock().expect("no holder of the lock panics");
            list.retain(|(id, _)| *id != self.id);
        }
    }
}
