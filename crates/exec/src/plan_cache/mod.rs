//! The plan cache: which of its candidates a query of some shape should run by.
//!
//! An entry of a shape begins *inactive*: it only says how many units of work the winner of a trial took. The next
//! trial that takes no more makes it *active*, and from then on its plan runs without a trial; one that takes more
//! raises the figure, so that a shape with a cheap first query gets its chance too. A cached plan that takes
//! [`Tuning::eviction_ratio`] times its figure is dropped for a new trial, and its entry is inactive again.
//! (Source: manual, "Query Plans".)
//!
//! Entries are of one collection with the indexes it had when they were made: when an index comes, goes, is hidden or
//! becomes multikey, all of the collection's are forgotten at the next look.

mod tuning;

pub use tuning::Tuning;

use crate::figures::Figures;
use nestor_model::{DocRef, Document};
use nestor_planner::find::Wanted;
use nestor_planner::rank::Performance;
use nestor_planner::reuse::{CacheKey, Kept, Reused, Solution, may_compete};
use nestor_planner::shape::Written;
use nestor_planner::{FindQuery, Indexes, PlanNode};
use nestor_storage::{Catalog, Collection, CollectionId};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The choices made in one process.
#[derive(Debug, Default)]
pub struct PlanCache {
    collections: Mutex<HashMap<CollectionId, Plans>>,
    counts: Counts,
    tuning: Mutex<Tuning>,
}

/// How a candidate did on trial.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Which of the plans it was.
    pub plan: usize,
    /// Its score; `None` when it failed.
    pub score: Option<f64>,
    /// Its figures.
    pub done: Performance,
    /// Time it took in microseconds.
    pub micros: u64,
    /// The figures of its operators.
    pub figures: Figures,
}

/// How often the cache was of use.
#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    skipped: AtomicU64,
    replans: AtomicU64,
    trials: AtomicU64,
    trial_works: AtomicU64,
    trial_micros: AtomicU64,
}

/// The result of [`PlanCache::totals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Queries for which a cached plan was bound, and no other plan was made.
    pub hits: u64,
    /// Queries that asked for such a plan and found no active entry, or one that their literals do not allow.
    pub misses: u64,
    /// Queries that did not ask: they can run by one plan only, or say themselves how they are to run.
    pub skipped: u64,
    /// Cached plans that turned out to be bad.
    pub replans: u64,
    /// Trials.
    pub trials: u64,
    /// Units of work in trials.
    pub trial_works: u64,
    /// Time in trials, in microseconds.
    pub trial_micros: u64,
    /// Entries.
    pub entries: usize,
    /// Their size in bytes, about.
    pub bytes: usize,
}

/// The entries of a collection.
#[derive(Debug, Default)]
struct Plans {
    /// State of its indexes.
    indexes: u64,
    entries: HashMap<u64, Entry>,
    /// Counts uses, for the least recent of them.
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    is_active: bool,
    works: u64,
    used: u64,
    /// When it was made or replaced, by the collection's clock.
    made: u64,
    bytes: usize,
    decision: Arc<Decision>,
}

/// Whether plans of a query are kept. Those of queries that say themselves how they are to run are not.
pub fn is_cacheable(query: &FindQuery) -> bool {
    query.hint.is_none()
        && query.natural.is_none()
        && !query.by_columns
        && query.min.is_none()
        && query.max.is_none()
        && !query.tailable
        && query.filter.text().is_none()
}

/// A query as it was written.
#[derive(Clone, Debug, Default)]
pub struct CreatedFrom {
    /// `filter`.
    pub query: Document,
    /// `sort`.
    pub sort: Document,
    /// `projection`.
    pub projection: Document,
    /// `collation`.
    pub collation: Document,
}

impl CreatedFrom {
    /// A copy of what was written; of `query` where nothing was.
    pub fn of(written: Written<'_>, query: &FindQuery) -> Self {
        let owned = |part: Option<DocRef<'_>>| part.map(DocRef::to_document);
        let sort = || query.sort.as_ref().map(|spec| spec.serialize());
        Self {
            query: owned(written.filter).unwrap_or_else(|| query.filter.serialize()),
            sort: owned(written.sort).or_else(sort).unwrap_or_default(),
            projection: owned(written.projection).unwrap_or_default(),
            collation: owned(written.collation).unwrap_or_default(),
        }
    }
}

/// The decision of a trial.
#[derive(Debug)]
pub struct Decision {
    /// Under what it is kept.
    pub at: CacheKey,
    /// The part of the winner that serves other queries.
    pub solution: Solution,
    /// The winner, with the literals of the query it was chosen for.
    pub plan: PlanNode,
    /// That query.
    pub query: CreatedFrom,
    /// An index filter restricted the candidates.
    pub index_filter_set: bool,
    /// When it was made, in milliseconds.
    pub created_ms: i64,
    /// How the candidates did, the winner first.
    pub tried: Vec<Tried>,
}

impl Decision {
    fn size_bytes(&self) -> usize {
        let CreatedFrom {
            query,
            sort,
            projection,
            collation,
        } = &self.query;
        let written: usize = [query, sort, projection, collation]
            .into_iter()
            .map(|doc| doc.to_raw().as_bytes().len())
            .sum();
        let figures: usize = self.tried.iter().map(|tried| figures_bytes(&tried.figures)).sum();
        size_of::<Self>() + written + plan_bytes(&self.plan) + figures
    }
}

fn figures_bytes(figures: &Figures) -> usize {
    let below: usize = figures.inputs.iter().map(figures_bytes).sum();
    size_of::<Figures>() + figures.fields.to_raw().as_bytes().len() + below
}

fn plan_bytes(plan: &PlanNode) -> usize {
    size_of::<PlanNode>() + plan.inputs().into_iter().map(plan_bytes).sum::<usize>()
}

/// An entry as others see it.
#[derive(Clone, Debug)]
pub struct CachedPlan {
    /// Queries run by it without a trial.
    pub is_active: bool,
    /// Units of work it is measured by.
    pub works: u64,
    /// Its size in memory, about.
    pub bytes: usize,
    /// How it came about.
    pub decision: Arc<Decision>,
}

impl PlanCache {
    fn lock(&self) -> MutexGuard<'_, HashMap<CollectionId, Plans>> {
        self.collections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The settings of the cache and of trials.
    pub fn tuning(&self) -> Tuning {
        *self.tuning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what it and the trials go by, from the next query on.
    pub fn set_tuning(&self, tuning: Tuning) {
        *self.tuning.lock().unwrap_or_else(PoisonError::into_inner) = tuning;
    }

    /// The plan of the active entry for queries of the shape of `query`, bound to that query; counts whether there was one.
    pub fn reuse(
        &self,
        query: &FindQuery,
        wanted: Wanted,
        written: Written<'_>,
        collection: &Collection,
        indexes: &Indexes,
    ) -> Option<Reused> {
        let counts = &self.counts;
        if !is_cacheable(query) || !may_compete(query, indexes) {
            counts.skipped.fetch_add(1, Relaxed);
            return None;
        }
        let at = CacheKey::of(query, written, indexes);
        let found = self.get(collection, at.key, true).filter(|found| found.is_active);
        let reused = found.and_then(|found| {
            let works = found.works;
            let plan = found.decision.solution.bind(query, wanted, indexes)?;
            Some(Reused {
                plan,
                kept: Kept { at, works },
            })
        });
        let count = if reused.is_some() { &counts.hits } else { &counts.misses };
        count.fetch_add(1, Relaxed);
        reused
    }

    /// The entry under `key`.
    pub fn peek(&self, collection: &Collection, key: u64) -> Option<CachedPlan> {
        self.get(collection, key, false)
    }

    fn get(&self, collection: &Collection, key: u64, use_it: bool) -> Option<CachedPlan> {
        let mut all = self.lock();
        let plans = current(&mut all, collection)?;
        plans.clock += u64::from(use_it);
        let clock = plans.clock;
        let entry = plans.entries.get_mut(&key)?;
        if use_it {
            entry.used = clock;
        }
        Some(entry.seen())
    }

    /// The plan of that entry did badly.
    pub(crate) fn deactivate(&self, collection: &Collection, key: u64) {
        self.counts.replans.fetch_add(1, Relaxed);
        if let Some(entry) = current(&mut self.lock(), collection).and_then(|plans| plans.entries.get_mut(&key)) {
            entry.is_active = false;
        }
    }

    /// Takes note of a trial whose winner took `works` units. `decision` is made only if it is to be kept.
    pub(crate) fn put(
        &self,
        collection: &Collection,
        catalog: &Catalog,
        (key, works): (u64, u64),
        decision: impl FnOnce() -> Decision,
    ) {
        let tuning = self.tuning();
        let mut all = self.lock();
        if !all.contains_key(&collection.id) {
            // Collections that were dropped leave when new ones come.
            all.retain(|id, _| catalog.by_id(*id).is_some());
            all.insert(collection.id, Plans::of(collection));
        }
        let Some(plans) = current(&mut all, collection) else {
            return;
        };
        plans.clock += 1;
        let used = plans.clock;
        let is_active = match plans.entries.get_mut(&key) {
            None => false,
            Some(entry) if entry.is_active && entry.works <= works => return,
            Some(entry) if !entry.is_active && entry.works < works => {
                entry.works = tuning.grown(entry.works);
                return;
            }
            Some(_) => true,
        };
        if !plans.entries.contains_key(&key) {
            while plans.entries.len() >= tuning.entries_max.max(1) {
                let oldest = plans.entries.iter().min_by_key(|(_, entry)| entry.used);
                let Some(oldest) = oldest.map(|(key, _)| *key) else {
                    break;
                };
                plans.entries.remove(&oldest);
            }
        }
        if tuning.entries_max == 0 {
            plans.entries.remove(&key);
            return;
        }
        let decision = decision();
        let entry = Entry {
            is_active,
            works,
            used,
            made: used,
            bytes: decision.size_bytes(),
            decision: Arc::new(decision),
        };
        plans.entries.insert(key, entry);
    }

    /// Counts a trial.
    pub(crate) fn count_trial(&self, tried: &[Tried]) {
        let sum = |of: fn(&Tried) -> u64| tried.iter().map(of).sum::<u64>();
        self.counts.trials.fetch_add(1, Relaxed);
        self.counts.trial_works.fetch_add(sum(|t| t.done.works), Relaxed);
        self.counts.trial_micros.fetch_add(sum(|t| t.micros), Relaxed);
    }

    /// Forgets the entries of a collection.
    pub fn clear(&self, collection: CollectionId) {
        self.lock().remove(&collection);
    }

    /// Forgets the entries of one shape.
    pub fn clear_shape(&self, collection: CollectionId, shape: u64) {
        if let Some(plans) = self.lock().get_mut(&collection) {
            plans.entries.retain(|_, entry| entry.decision.at.shape != shape);
        }
    }

    /// The entries of a collection, the oldest first.
    pub fn list(&self, collection: &Collection) -> Vec<CachedPlan> {
        let mut all = self.lock();
        let Some(plans) = current(&mut all, collection) else {
            return Vec::new();
        };
        let mut entries: Vec<&Entry> = plans.entries.values().collect();
        entries.sort_by_key(|entry| entry.made);
        entries.into_iter().map(Entry::seen).collect()
    }

    /// Counts so far, and the present size.
    pub fn totals(&self) -> Totals {
        let all = self.lock();
        let entries = || all.values().flat_map(|plans| plans.entries.values());
        let counts = &self.counts;
        Totals {
            hits: counts.hits.load(Relaxed),
            misses: counts.misses.load(Relaxed),
            skipped: counts.skipped.load(Relaxed),
            replans: counts.replans.load(Relaxed),
            trials: counts.trials.load(Relaxed),
            trial_works: counts.trial_works.load(Relaxed),
            trial_micros: counts.trial_micros.load(Relaxed),
            entries: entries().count(),
            bytes: entries().map(|entry| entry.bytes).sum(),
        }
    }
}

impl Entry {
    fn seen(&self) -> CachedPlan {
        CachedPlan {
            is_active: self.is_active,
            works: self.works,
            bytes: self.bytes,
            decision: self.decision.clone(),
        }
    }
}

impl Plans {
    fn of(collection: &Collection) -> Self {
        Self {
            indexes: index_state(collection),
            ..Self::default()
        }
    }
}

/// The collection's entries, after forgetting those made with other indexes.
fn current<'a>(all: &'a mut HashMap<CollectionId, Plans>, collection: &Collection) -> Option<&'a mut Plans> {
    let plans = all.get_mut(&collection.id)?;
    if plans.indexes != index_state(collection) {
        *plans = Plans::of(collection);
    }
    Some(plans)
}

/// A hash of what plans depend on.
fn index_state(collection: &Collection) -> u64 {
    let mut hasher = DefaultHasher::new();
    for index in &collection.indexes {
        (index.id.0, index.hidden, index.is_multikey()).hash(&mut hasher);
    }
    hasher.finish()
}
