//! The counters of `serverStatus`.

use crate::observe::metrics::Metrics;
use crate::observe::op_kind::OpCounter;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, Ordering::Relaxed};

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }
    /// Its value, as replies show it.
    pub fn get(&self) -> i64 {
        i64::try_from(self.0.load(Relaxed)).unwrap_or(i64::MAX)
    }
}

/// Bytes and messages over all connections.
#[derive(Debug, Default)]
pub struct Network {
    /// Bytes received, as they came (compressed or not).
    pub bytes_in: Counter,
    /// Bytes sent.
    pub bytes_out: Counter,
    /// Messages received.
    pub requests: Counter,
}

/// Operations since the start. Inserts count documents, updates and deletes count statements.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Operations {
    pub insert: Counter,
    pub query: Counter,
    pub update: Counter,
    pub delete: Counter,
    pub getmore: Counter,
    pub command: Counter,
}

impl Operations {
    /// Counts an operation, or as many documents or statements as one has.
    pub fn count(&self, counter: OpCounter, n: usize) {
        let counter = match counter {
            OpCounter::Insert => &self.insert,
            OpCounter::Query => &self.query,
            OpCounter::Update => &self.update,
            OpCounter::Delete => &self.delete,
            OpCounter::GetMore => &self.getmore,
            OpCounter::Command => &self.command,
        };
        counter.add(n as u64);
    }
}

/// Connections now and ever.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    /// Open now.
    pub current: AtomicI64,
    /// Refused for want of a place.
    pub rejected: Counter,
    /// With a command under way.
    pub active: AtomicI64,
}

impl ConnectionCounts {
    /// Whether only one has work under way.
    pub fn has_one_at_work(&self) -> bool {
        self.active.load(Ordering::Acquire) == 1
    }
}

/// Errors by kind.
#[derive(Debug, Default)]
pub struct Asserts {
    /// Error replies.
    pub user: Counter,
    /// Internal errors.
    pub msg: Counter,
}

/// All counters of a process. Each group is read and written together and has cache lines of its own.
#[derive(Debug)]
pub struct Counters {
    /// Network.
    pub network: Aligned<Network>,
    /// Operations.
    pub operations: Aligned<Operations>,
    /// Connections.
    pub connections: Aligned<ConnectionCounts>,
    /// Errors.
    pub asserts: Aligned<Asserts>,
    /// Counts of the work that operations did.
    pub metrics: Metrics,
}

impl Counters {
    /// Counters of a process that knows so many commands.
    pub fn new(commands: usize) -> Self {
        Self {
            network: Aligned::default(),
            operations: Aligned::default(),
            connections: Aligned::default(),
            asserts: Aligned::default(),
            metrics: Metrics::new(commands),
        }
    }
}

/// On a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Aligned<T>(T);

impl<T> Aligned<T> {
    /// Puts it there.
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> std::ops::Deref for Aligned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}
