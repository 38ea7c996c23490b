//! Time and number of operations by collection, for `top`.

use crate::observe::latency::{Class, Latency, Sum};
use nestor_model::{Namespace, Str};
use nestor_storage::catalog::names::check_new_collection;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Collections that are kept apart at most; what comes after them is not counted.
const COLLECTIONS_MAX: usize = 10_000;

/// Kinds of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `find`.
    Queries,
    /// `getMore`.
    Getmore,
    /// `insert`.
    Insert,
    /// `update` and `findAndModify`.
    Update,
    /// `delete`.
    Remove,
    /// Everything else that names a collection.
    Commands,
}

/// The kinds with the names `top` gives them.
pub const KINDS: [(Kind, &str); 6] = [
    (Kind::Queries, "queries"),
    (Kind::Getmore, "getmore"),
    (Kind::Insert, "insert"),
    (Kind::Update, "update"),
    (Kind::Remove, "remove"),
    (Kind::Commands, "commands"),
];

impl Kind {
    /// True for kinds that write.
    pub fn writes(self) -> bool {
        matches!(self, Kind::Insert | Kind::Update | Kind::Remove)
    }
}

/// Number and time of the operations on a collection.
#[derive(Debug, Default)]
pub struct Usage {
    /// Time in microseconds and number, by kind.
    kinds: [(AtomicU64, AtomicU64); KINDS.len()],
    /// Latencies by class, without that of transactions, which belong to no single collection.
    latencies: [Latency; 3],
}

impl Usage {
    /// Microseconds and number of one kind.
    pub fn get(&self, kind: Kind) -> (i64, i64) {
        let (time, count) = &self.kinds[kind as usize];
        let as_long = |n: &AtomicU64| i64::try_from(n.load(Relaxed)).unwrap_or(i64::MAX);
        (as_long(time), as_long(count))
    }

    /// The latencies of one class.
    pub fn latency(&self, class: Class) -> Sum {
        let mut sum = Sum::default();
        if let Some(latency) = self.latencies.get(class as usize) {
            sum.add(latency);
        }
        sum
    }

    fn add(&self, kind: Kind, class: Class, time: Duration) {
        let (total, count) = &self.kinds[kind as usize];
        total.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
        count.fetch_add(1, Relaxed);
        if let Some(latency) = self.latencies.get(class as usize) {
            latency.count(time);
        }
    }
}

/// Collections by name, within databases by name.
type Usages = HashMap<Str, HashMap<Str, Arc<Usage>>>;

/// The usage of every collection since the start, or since it was created.
#[derive(Debug, Default)]
pub struct Top {
    usages: RwLock<Usages>,
}

impl Top {
    /// Counts an operation.
    pub fn count(&self, db: &str, coll: &str, (kind, class): (Kind, Class), time: Duration) {
        {
            let usages = self.usages.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(usage) = usages.get(db).and_then(|db| db.get(coll)) {
                return usage.add(kind, class, time);
            }
        }
        // Names that no collection can have take no place in the table.
        if check_new_collection(&Namespace::new(db, coll)).is_err() {
            return;
        }
        let mut usages = self.usages.write().unwrap_or_else(PoisonError::into_inner);
        if usages.values().map(HashMap::len).sum::<usize>() < COLLECTIONS_MAX {
            let of_db = usages.entry(db.into()).or_default();
            of_db.entry(coll.into()).or_default().add(kind, class, time);
        }
    }

    /// Forgets a dropped collection, or all of a dropped database.
    pub fn forget(&self, db: &str, coll: Option<&str>) {
        let mut usages = self.usages.write().unwrap_or_else(PoisonError::into_inner);
        match coll {
            None => drop(usages.remove(db)),
            Some(coll) => drop(usages.get_mut(db).and_then(|db| db.remove(coll))),
        }
    }

    /// The usage of one collection, if there was any.
    pub fn get(&self, ns: &Namespace) -> Option<Arc<Usage>> {
        let usages = self.usages.read().unwrap_or_else(PoisonError::into_inner);
        usages.get(&ns.db)?.get(&ns.coll).cloned()
    }

    /// All usages by namespace.
    pub fn all(&self) -> BTreeMap<String, Arc<Usage>> {
        let usages = self.usages.read().unwrap_or_else(PoisonError::into_inner);
        usages
            .iter()
            .flat_map(|(db, colls)| {
                colls
                    .iter()
                    .map(move |(coll, usage)| (format!("{db}.{coll}"), usage.clone()))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_of_their_enum() {
        for (i, (kind, name)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, i, "{name}");
        }
    }

    #[test]
    fn usage_is_counted_and_forgotten() {
        let top = Top::default();
        let insert = (Kind::Insert, Class::Writes);
        top.count("d", "a", insert, Duration::from_micros(5));
        top.count("d", "a", insert, Duration::from_micros(6));
        top.count("d", "b", (Kind::Queries, Class::Reads), Duration::from_micros(7));
        let all = top.all();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["d.a", "d.b"]);
        assert_eq!(all["d.a"].get(Kind::Insert), (11, 2));
        assert_eq!(all["d.a"].get(Kind::Remove), (0, 0));
        let ops = |class| {
            let latency = all["d.a"].latency(class).document(false);
            latency.get("ops").and_then(nestor_model::number::safe_i64)
        };
        assert_eq!((ops(Class::Writes), ops(Class::Reads)), (Some(2), Some(0)));
        for bad in ["a$", "$cmd", ".a", "a\0", "system.x"] {
            top.count("d", bad, insert, Duration::from_micros(5));
        }
        assert_eq!(top.all().len(), 2);
        top.forget("d", Some("a"));
        assert_eq!(top.all().len(), 1);
        top.forget("d", None);
        assert_eq!(top.all().len(), 0);
    }
}
