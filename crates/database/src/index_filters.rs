//! Index filters: which indexes queries of a shape may use.
//!
//! Filters last as long as the process, as MongoDB's do. Queries look here only once a filter was set.

use crate::lock;
use nestor_model::{Document, Namespace};
use nestor_planner::FindQuery;
use nestor_planner::find::AllowedIndex;
use nestor_planner::shape::Written;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// An index filter as it was set.
#[derive(Clone, Debug)]
pub struct IndexFilter {
    /// The query it was set for; `sort`, `projection` and `collation` are empty documents when not given.
    pub query: Document,
    /// Its sort.
    pub sort: Document,
    /// Its projection.
    pub projection: Document,
    /// Its collation.
    pub collation: Document,
    /// The indexes that may be used.
    pub indexes: Vec<AllowedIndex>,
}

/// The index filters of all collections.
#[derive(Debug, Default)]
pub struct IndexFilters {
    any: AtomicBool,
    by_shape: Mutex<BTreeMap<(Namespace, u64), IndexFilter>>,
}

impl IndexFilters {
    /// Sets the filter of a shape, in place of an older one.
    pub fn set(&self, ns: &Namespace, shape: u64, filter: IndexFilter) {
        lock(&self.by_shape).insert((ns.clone(), shape), filter);
        self.any.store(true, Ordering::Release);
    }

    /// Removes the filter of one shape.
    pub fn clear(&self, ns: &Namespace, shape: u64) {
        lock(&self.by_shape).remove(&(ns.clone(), shape));
    }

    /// Removes all filters of a collection.
    pub fn clear_all(&self, ns: &Namespace) {
        lock(&self.by_shape).retain(|(of, _), _| of != ns);
    }

    /// The filters of a collection.
    pub fn list(&self, ns: &Namespace) -> Vec<IndexFilter> {
        let all = lock(&self.by_shape);
        all.iter()
            .filter(|((of, _), _)| of == ns)
            .map(|(_, filter)| filter.clone())
            .collect()
    }

    /// The indexes that a query of that shape may use; `None` without a filter.
    fn get(&self, ns: &Namespace, shape: u64) -> Option<Vec<AllowedIndex>> {
        let all = lock(&self.by_shape);
        all.get(&(ns.clone(), shape)).map(|filter| filter.indexes.clone())
    }
}

impl IndexFilters {
    /// Restricts a query to the indexes that a filter of its shape allows. True when there is one.
    pub fn apply(&self, ns: &Namespace, query: &mut FindQuery, written: Written<'_>) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        query.allowed = self.get(ns, written.shape(query));
        query.allowed.is_some()
    }
}
