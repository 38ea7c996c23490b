//! Time and number of operations by collection, for `top`.

use nestor_model::{Namespace, RawDoc, Str};
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
    /// The kind of a command.
    pub fn of(command: &str) -> Self {
        match command {
            "find" => Kind::Queries,
            "getMore" => Kind::Getmore,
            "insert" => Kind::Insert,
            "update" | "findAndModify" => Kind::Update,
            "delete" => Kind::Remove,
            _ => Kind::Commands,
        }
    }

    /// True for kinds that write.
    pub fn writes(self) -> bool {
        matches!(self, Kind::Insert | Kind::Update | Kind::Remove)
    }
}

/// Time in microseconds and number of operations, by kind.
#[derive(Debug, Default)]
pub struct Usage([(AtomicU64, AtomicU64); KINDS.len()]);

impl Usage {
    /// Microseconds and number of one kind.
    pub fn get(&self, kind: Kind) -> (i64, i64) {
        let (time, count) = &self.0[kind as usize];
        let as_long = |n: &AtomicU64| i64::try_from(n.load(Relaxed)).unwrap_or(i64::MAX);
        (as_long(time), as_long(count))
    }

    fn add(&self, kind: Kind, time: Duration) {
        let (total, count) = &self.0[kind as usize];
        total.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
        count.fetch_add(1, Relaxed);
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
    pub fn count(&self, db: &str, coll: &str, kind: Kind, time: Duration) {
        {
            let usages = self.usages.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(usage) = usages.get(db).and_then(|db| db.get(coll)) {
                return usage.add(kind, time);
            }
        }
        let mut usages = self.usages.write().unwrap_or_else(PoisonError::into_inner);
        if usages.values().map(HashMap::len).sum::<usize>() < COLLECTIONS_MAX {
            let of_db = usages.entry(db.into()).or_default();
            of_db.entry(coll.into()).or_default().add(kind, time);
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

/// The collection a command names, if it names one.
pub fn collection_of<'a>(command: &str, body: RawDoc<'a>) -> Option<&'a str> {
    let (_, first) = body.iter().next()?;
    let name = match command {
        "getMore" => body.get("collection")?,
        _ => first,
    };
    name.as_str().filter(|name| !name.is_empty())
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
        top.count("d", "a", Kind::Insert, Duration::from_micros(5));
        top.count("d", "a", Kind::Insert, Duration::from_micros(6));
        top.count("d", "b", Kind::Queries, Duration::from_micros(7));
        let all = top.all();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["d.a", "d.b"]);
        assert_eq!(all["d.a"].get(Kind::Insert), (11, 2));
        assert_eq!(all["d.a"].get(Kind::Remove), (0, 0));
        top.forget("d", Some("a"));
        assert_eq!(top.all().len(), 1);
        top.forget("d", None);
        assert_eq!(top.all().len(), 0);
    }
}
