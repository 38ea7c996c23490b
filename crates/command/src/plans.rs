//! Index filters: which indexes queries of a shape may use; and entries of the plan cache as clients see them.
//!
//! Filters last as long as the process, as MongoDB's do. Queries look here only once a filter was set.

use crate::Context;
use nestor_exec::plan_cache::{CachedPlan, CreatedFrom, Tried};
use nestor_model::{Document, Namespace, Str, Value, doc};
use nestor_planner::FindQuery;
use nestor_planner::explain::plan_document;
use nestor_planner::find::AllowedIndex;
use nestor_planner::shape::{Written, hash_text};
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
pub fn shown(index: &AllowedIndex) -> Value {
    match index {
        AllowedIndex::Name(name) => Value::String(Str::clone(name)),
        AllowedIndex::KeyPattern(pattern) => pattern.clone().into(),
    }
}

/// An entry of the plan cache as `$planCacheStats` shows it.
pub fn cache_entry(entry: &CachedPlan, host: &str) -> Document {
    let decision = &*entry.decision;
    let shape = hash_text(decision.shape);
    let CreatedFrom {
        query,
        sort,
        projection,
        collation,
    } = &decision.query;
    let mut created_from = doc! { "query": query.clone(), "sort": sort.clone(), "projection": projection.clone() };
    if !collation.is_empty() {
        created_from.push("collation", collation.clone());
    }
    let scores: Vec<Value> = decision.tried.iter().filter_map(|t| t.score).map(Value::from).collect();
    doc! {
        "version": "1",
        "queryHash": shape.as_str(),
        "planCacheShapeHash": shape.as_str(),
        "planCacheKey": hash_text(decision.key),
        "isActive": entry.is_active,
        "works": entry.works as i64,
        "timeOfCreation": Value::DateTime(decision.created_ms),
        "createdFromQuery": created_from,
        "cachedPlan": plan_document(&decision.plan),
        "creationExecStats": decision.tried.iter().map(trial_document).map(Value::from).collect::<Vec<_>>(),
        "candidatePlanScores": scores,
        "indexFilterSet": decision.index_filter_set,
        "estimatedSizeBytes": entry.bytes as i64,
        "solutionHash": decision.signature as i64,
        "host": host,
    }
}

/// How a candidate did on trial, as explain's `allPlansExecution` shows it.
pub fn trial_document(tried: &Tried) -> Document {
    let figures = &tried.figures;
    let mut out = doc! {
        "nReturned": tried.done.advanced as i32,
        "executionTimeMillisEstimate": (tried.micros / 1000) as i32,
        "totalKeysExamined": figures.keys_examined() as i32,
        "totalDocsExamined": figures.docs_examined() as i32,
    };
    match tried.score {
        Some(score) => out.push("score", score),
        None => out.push("failed", true),
    }
    out.push("executionStages", figures.document());
    out
}
