//! Index filters: which indexes queries of a shape may use.
//!
//! They last as long as the process, as MongoDB's do. Queries look here only once a filter was set.

use crate::Context;
use nestor_model::{DocRef, Document, Namespace, Str};
use nestor_planner::FindQuery;
use nestor_planner::find::AllowedIndex;
use nestor_planner::shape::plan_shape;
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
    by_shape: Mutex<BTreeMap<(Namespace, String), IndexFilter>>,
}

impl IndexFilters {
    /// Sets the filter of a shape, in place of an older one.
    pub fn set(&self, ns: &Namespace, shape: String, filter: IndexFilter) {
        crate::lock(&self.by_shape).insert((ns.clone(), shape), filter);
        self.any.store(true, Ordering::Release);
    }

    /// Removes the filter of one shape.
    pub fn clear(&self, ns: &Namespace, shape: &str) {
        crate::lock(&self.by_shape).remove(&(ns.clone(), shape.to_owned()));
    }

    /// Removes all filters of a collection.
    pub fn clear_all(&self, ns: &Namespace) {
        crate::lock(&self.by_shape).retain(|(of, _), _| of != ns);
    }

    /// The filters of a collection.
    pub fn list(&self, ns: &Namespace) -> Vec<IndexFilter> {
        let all = crate::lock(&self.by_shape);
        all.iter()
            .filter(|((of, _), _)| of == ns)
            .map(|(_, filter)| filter.clone())
            .collect()
    }

    /// What a query of that shape may use; `None` when nothing was said.
    fn get(&self, ns: &Namespace, shape: &str) -> Option<Vec<AllowedIndex>> {
        let all = crate::lock(&self.by_shape);
        all.get(&(ns.clone(), shape.to_owned()))
            .map(|filter| filter.indexes.clone())
    }
}

/// The parts of a query as written that its shape is made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written<'a> {
    /// `sort`.
    pub sort: Option<DocRef<'a>>,
    /// `projection`.
    pub projection: Option<DocRef<'a>>,
    /// `collation`.
    pub collation: Option<DocRef<'a>>,
}

impl Written<'_> {
    /// The plan shape of a query with this filter.
    pub fn shape(&self, query: &FindQuery) -> String {
        let given = |part: Option<DocRef<'_>>| part.is_some_and(|doc| !doc.is_empty());
        plan_shape(
            &query.filter,
            self.sort.filter(|_| given(self.sort)),
            self.projection.filter(|_| given(self.projection)),
            self.collation.filter(|_| given(self.collation)),
        )
    }
}

impl Context<'_> {
    /// Restricts a query to the indexes that a filter of its shape allows. True when there is one.
    pub fn apply_index_filter(&self, ns: &Namespace, query: &mut FindQuery, written: Written<'_>) -> bool {
        let filters = &self.service.index_filters;
        if !filters.any.load(Ordering::Acquire) {
            return false;
        }
        query.allowed = filters.get(ns, &written.shape(query));
        query.allowed.is_some()
    }
}

/// A name or a key pattern as it was given.
pub fn shown(index: &AllowedIndex) -> nestor_model::Value {
    match index {
        AllowedIndex::Name(name) => nestor_model::Value::String(Str::clone(name)),
        AllowedIndex::KeyPattern(pattern) => pattern.clone().into(),
    }
}
