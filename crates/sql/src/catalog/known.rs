//! What is known of a collection whose columns were inferred, so that not every statement has to look at its documents.
//!
//! The columns belong to a version of the catalog entry and to the commit whose state the sample was taken of. They are used
//!
//! - as long as nothing was written to the collection since that commit, and
//! - for another [`STALE_MS_MAX`] if number and size of its documents are still the same: updates in place change values far more often than
//!   types. A value whose type has changed meanwhile is 22P02 when it is read, as that of any document outside of the sample is.
//!
//! Everybody shares them, but where fields are masked: who sees which is the user's own matter. All together they have at most
//! [`COLUMNS_ALL_MAX`] columns; what goes beyond is inferred again each time.

use super::{Column, Table};
use nestor_model::{Error, Result};
use nestor_storage::{Collection, Derive, Lsn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// For how long columns are used of documents that may have changed in place.
const STALE_MS_MAX: i64 = 1000;
/// Columns, those within structs included, that are kept of all collections.
const COLUMNS_ALL_MAX: usize = 1_000_000;
/// And of one.
const COLUMNS_MAX: usize = 20_000;

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A share of [`COLUMNS_ALL_MAX`].
struct Share(usize);

impl Share {
    fn take(columns: usize) -> Option<Self> {
        if columns > COLUMNS_MAX {
            return None;
        }
        let share = Self(columns);
        let before = KEPT.fetch_add(columns, Ordering::Relaxed);
        (before + columns <= COLUMNS_ALL_MAX).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.0, Ordering::Relaxed);
    }
}

struct Entry {
    table: Arc<Table>,
    /// The last commit that the sample shows.
    lsn: Lsn,
    /// Number and size of the documents when it was taken, and when that was.
    counts: (i64, i64),
    at_ms: i64,
    _share: Share,
}

/// The table that a version of a catalog entry is known as.
pub struct Known(Mutex<Option<Entry>>);

impl Derive for Known {
    type Error = Error;

    fn derive(_: &Collection) -> Result<Self> {
        Ok(Self(Mutex::default()))
    }
}

fn counts(collection: &Collection) -> (i64, i64) {
    (collection.state.documents(), collection.state.bytes())
}

fn columns_of(columns: &[Column]) -> usize {
    columns.iter().map(|column| 1 + columns_of(&column.fields)).sum()
}

/// The table that a collection is known as, if that still holds.
pub fn get(collection: &Collection, now_ms: i64) -> Option<Arc<Table>> {
    let known = collection.derived::<Known>().ok()?;
    let entry = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = entry.as_ref()?;
    let is_exact = collection.state.last_commit() <= entry.lsn;
    let age = now_ms.saturating_sub(entry.at_ms);
    let holds = is_exact || (0..STALE_MS_MAX).contains(&age) && counts(collection) == entry.counts;
    holds.then(|| entry.table.clone())
}

/// Has the columns of a collection inferred anew by the next who asks.
pub fn forget(collection: &Collection) {
    if let Ok(known) = collection.derived::<Known>() {
        *known.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Keeps the table that a sample of the state of commit `lsn` gave.
pub fn keep(collection: &Collection, lsn: Lsn, now_ms: i64, table: &Arc<Table>) {
    let (Ok(known), true) = (collection.derived::<Known>(), collection.state.last_commit() <= lsn) else {
        return;
    };
    let mut entry = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    if entry.as_ref().is_some_and(|entry| entry.lsn > lsn) {
        return;
    }
    // What is replaced gives its share back first.
    *entry = None;
    *entry = Share::take(columns_of(&table.columns)).map(|share| Entry {
        table: table.clone(),
        lsn,
        counts: counts(collection),
        at_ms: now_ms,
        _share: share,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Kind, testing};
    use crate::types::Type;
    use nestor_model::{Namespace, doc};
    use nestor_storage::{View as _, WriteSet};

    fn table(columns: usize) -> Arc<Table> {
        let columns = vec![Column::new("a", Type::Text); columns];
        Arc::new(Table::new("c", columns, Kind::Collection(Namespace::new("d", "c"))))
    }

    #[test]
    fn columns_are_known_until_somebody_writes() {
        let (engine, ns, made) = testing::collection();
        let write = |work: &dyn Fn(&mut WriteSet)| {
            let mut ws = engine.begin();
            ws.require_collection(made.id);
            work(&mut ws);
            assert_eq!(ws.lsn_of(made.records), None, "a write set shows its own changes");
            engine.commit(ws).unwrap();
        };
        let now = || {
            let snapshot = engine.snapshot();
            let collection = snapshot.catalog().get(&ns).unwrap().clone();
            (collection, snapshot.lsn_of(made.records).unwrap())
        };
        let (collection, lsn) = now();
        assert!(get(&collection, 0).is_none());
        keep(&collection, lsn, 0, &table(1));
        assert!(get(&collection, 1_000_000).is_some(), "nobody wrote");
        write(&|ws| {
            ws.put_document(made.records, [1], doc! { "_id": 1 }.to_raw());
            ws.add_count(made.id, 1, 10);
        });
        assert!(get(&collection, 0).is_none(), "there is another document");
        keep(&collection, lsn, 0, &table(1));
        assert!(get(&collection, 0).is_none(), "that was a sample of an older state");
        let (collection, lsn) = now();
        keep(&collection, lsn, 0, &table(1));
        write(&|ws| ws.put_document(made.records, [1], doc! { "_id": 2 }.to_raw()));
        assert!(
            get(&collection, STALE_MS_MAX - 1).is_some(),
            "changed in place, for a while"
        );
        assert!(get(&collection, STALE_MS_MAX).is_none());
        let (collection, lsn) = now();
        keep(&collection, lsn, 0, &table(COLUMNS_MAX + 1));
        assert!(get(&collection, 0).is_none(), "too many columns are not kept");
    }
}
