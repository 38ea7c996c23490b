//! Whether a find reads its collection by columns.

use crate::columns::filter::ColumnFilter;
use crate::estimate::least_entries;
use crate::ops::sort::by_columns;
use nestor_columns::{Columns, Statistics};
use nestor_model::{Result, Str};
use nestor_planner::PlanNode;
use nestor_planner::choose::scan_of_all;
use nestor_planner::find::{FindQuery, Wanted};
use nestor_planner::plan::{CollScan, ColumnAccess, ColumnReads};
use nestor_query::env::OpContext;
use nestor_query::expr::Deps;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Collection, View};
use std::cell::Cell;
use std::sync::Arc;

/// What it costs to read a document that an index found, in rows of columns.
const FETCH_COST: u64 = 40;

/// The same of an index entry that tells all that is looked at.
const ENTRY_COST: u64 = 8;

/// Bytes of a document that cost as much to go through as a value of a column that a document is made of.
const VALUE_COST: u64 = 32;

/// With fewer rows wanted than these, documents are read until there are so many.
const ROWS_MIN: u64 = 4096;

/// The columns that a statement may read by.
#[derive(Clone, Copy)]
pub struct Available<'a> {
    /// What is read.
    pub view: &'a dyn View,
    /// The columns.
    pub columns: &'a Columns,
}

impl Available<'_> {
    /// About how many documents of a collection match, by what its columns tell of their values; `None` where they tell nothing.
    ///
    /// Errors: those of the condition.
    pub fn estimated(&self, filter: &MatchExpr, collection: &Collection, op: &OpContext) -> Result<Option<f64>> {
        let part = self.selectivity(filter, collection, op)?;
        Ok(part.map(|part| part * collection.state.documents().max(0) as f64))
    }

    /// About which part of its documents that are.
    fn selectivity(&self, filter: &MatchExpr, collection: &Collection, op: &OpContext) -> Result<Option<f64>> {
        let records = collection.records;
        let Some(filter) = ColumnFilter::of(filter).filter(|_| self.columns.has(records)) else {
            return Ok(None);
        };
        let found = Cell::new(false);
        let known = |path: &str| {
            let statistics = self.columns.statistics(records, path);
            found.set(found.get() || statistics.is_some());
            statistics
        };
        let part = filter.selectivity(&known, op)?;
        Ok(found.get().then_some(part))
    }

    /// What is known of the values at a path of a collection.
    pub fn statistics(&self, collection: &Collection, path: &str) -> Option<Arc<Statistics>> {
        self.columns.statistics(collection.records, path)
    }

    /// The same at a path of the elements of an array.
    pub fn statistics_of_elements(&self, collection: &Collection, array: &str, path: &str) -> Option<Arc<Statistics>> {
        self.columns.statistics_of_elements(collection.records, array, path)
    }
}

/// What becomes of the rows of a find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Consumer {
    /// Somebody looks at the documents.
    Documents,
    /// They are counted.
    Number,
    /// Somebody looks at these paths of them.
    Paths(Arc<[Str]>, bool),
    /// The same, of rows of columns where there are any.
    Rows(Vec<Str>),
}

impl Consumer {
    /// That of rows which are wanted for this.
    pub(crate) fn of(wanted: Wanted, query: &FindQuery) -> Self {
        match (wanted, &query.reads) {
            (Wanted::Count, _) => Self::Number,
            (_, Some(reads)) => Self::Paths(reads.clone(), query.reads_shape),
            (_, None) => Self::Documents,
        }
    }
}

/// The plans, or one by columns in their place: where the collection is scanned as a whole, or where that is cheaper than what the plans
/// do, and where the collection has columns. If it has none they are made from now on.
///
/// Errors: those of reading.
pub(crate) fn choose(
    plans: Vec<PlanNode>,
    query: &FindQuery,
    consumer: Consumer,
    collection: &Collection,
    at: Available<'_>,
) -> Result<Vec<PlanNode>> {
    let is_demanded = query.by_columns || at.columns.are_preferred();
    // Buckets of time series have columns of their own.
    let has_none = collection.is_clustered() || collection.ns.is_oplog() || collection.buckets().is_some();
    if has_none || !is_free(query) {
        return Ok(plans);
    }
    let mut plan = match plans.as_slice() {
        [only] if scans(only) => only.clone(),
        [] => return Ok(plans),
        several if is_demanded || is_cheaper(several, query, &consumer, collection, at)? => scan_of_all(query),
        _ => return Ok(plans),
    };
    let Some((scan, reads, wanted)) = place(&mut plan, consumer, None) else {
        return Ok(plans);
    };
    let Some(reads) = worth(reads, scan, collection, is_demanded) else {
        return Ok(plans);
    };
    let records = collection.records;
    if !at.columns.has(records) && at.columns.read(at.view, records)?.is_none() {
        return Ok(plans);
    }
    let part = match &scan.filter {
        Some(filter) => at.selectivity(filter, collection, &OpContext::default())?,
        None => None,
    };
    // So many rows are found soonest among the first documents.
    let looked_at = |wanted: u64| wanted as f64 / part.unwrap_or(0.0).max(f64::MIN_POSITIVE);
    if !is_demanded && wanted.is_some_and(|wanted| looked_at(wanted) < ROWS_MIN as f64) {
        return Ok(plans);
    }
    let documents = collection.state.documents().max(0) as f64;
    scan.columns = Some(ColumnAccess {
        reads,
        unwinds: None,
        estimated: part.map(|part| (part * documents).round() as u64),
    });
    Ok(vec![plan])
}

/// Whether a scan by columns can take the place of what a query is found by.
fn is_free(query: &FindQuery) -> bool {
    let free = query.natural.is_none() && query.hint.is_none() && query.allowed.is_none() && !query.keeps_keys();
    let plain = query.min.is_none() && query.max.is_none() && !query.tailable;
    free && plain && !query.keeps_distance && !query.keeps_score
}

/// Whether a plan scans the collection.
fn scans(plan: &PlanNode) -> bool {
    match plan {
        PlanNode::CollScan(_) => true,
        PlanNode::Sort { input, .. }
        | PlanNode::Skip { input, .. }
        | PlanNode::Limit { input, .. }
        | PlanNode::Project { input, .. }
        | PlanNode::Count { input, .. } => scans(input),
        _ => false,
    }
}

/// Whether all rows of columns cost less than what the best of some plans reads of an index.
fn is_cheaper(
    plans: &[PlanNode],
    query: &FindQuery,
    consumer: &Consumer,
    collection: &Collection,
    at: Available<'_>,
) -> Result<bool> {
    let in_order = query.sort.is_some() || query.limit.is_some() || query.skip > 0;
    let few = matches!(consumer, Consumer::Documents) && query.projection.is_none();
    if in_order || few || !at.columns.has(collection.records) {
        return Ok(false);
    }
    let least = least_entries(plans, collection, at.view)?;
    let documents = u64::try_from(collection.state.documents()).unwrap_or(0);
    Ok(least.is_some_and(|least| {
        let cost = match least.fetched {
            true => FETCH_COST,
            false => ENTRY_COST,
        };
        least.count.saturating_mul(cost) > documents
    }))
}

/// The scan of a plan, what is looked at of its rows, and how many are pulled, if that is known before all are; `wanted`: of the plan.
fn place(
    plan: &mut PlanNode,
    consumer: Consumer,
    wanted: Option<u64>,
) -> Option<(&mut CollScan, ColumnReads, Option<u64>)> {
    match plan {
        PlanNode::CollScan(scan) => {
            let plain = scan.forward && !scan.tailable && scan.clustered.is_none();
            let filter = scan.filter.as_ref();
            // The first few of all documents are read soonest one by one.
            let is_short = filter.is_none() && wanted.is_some_and(|wanted| wanted < ROWS_MIN);
            let can = plain && !is_short && filter.is_none_or(|filter| ColumnFilter::of(filter).is_some());
            let reads = match consumer {
                Consumer::Documents => ColumnReads::Documents,
                Consumer::Number => ColumnReads::Paths {
                    paths: Arc::default(),
                    shaped: false,
                },
                Consumer::Paths(paths, shaped) => ColumnReads::Paths { paths, shaped },
                Consumer::Rows(paths) => ColumnReads::Rows(paths.into()),
            };
            can.then_some((scan, reads, wanted))
        }
        PlanNode::Limit { input, limit } => {
            let least = wanted.map_or(*limit, |wanted| wanted.min(*limit));
            place(input, consumer, Some(least))
        }
        PlanNode::Skip { input, skip } => {
            let wanted = wanted.map(|wanted| wanted.saturating_add(*skip));
            place(input, consumer, wanted)
        }
        PlanNode::Project {
            input,
            projection,
            positional,
        } => {
            let mut deps = Deps::default();
            projection.dependencies(&mut deps);
            if !deps.metadata.is_empty() {
                return None;
            }
            let consumer = match (consumer, positional) {
                (Consumer::Number, _) => Consumer::Number,
                (_, None) if !deps.whole_document => Consumer::Paths(tops(&deps), true),
                _ => Consumer::Documents,
            };
            place(input, consumer, wanted)
        }
        PlanNode::Sort {
            input,
            spec,
            limit,
            keep_key,
        } => {
            let by = by_columns::paths_of(spec)?;
            let is_first_few = matches!(limit, Some(1..=by_columns::ROWS_MAX)) && !*keep_key;
            if is_first_few && matches!(**input, PlanNode::CollScan(_)) {
                return place(input, Consumer::Rows(by), None);
            }
            let consumer = match consumer {
                Consumer::Number => Consumer::Paths(by.into(), false),
                Consumer::Paths(paths, shaped) => {
                    let all = paths.iter().chain(&by).map(ToString::to_string);
                    let deps = Deps {
                        paths: all.collect(),
                        ..Deps::default()
                    };
                    Consumer::Paths(tops(&deps), shaped)
                }
                Consumer::Rows(_) | Consumer::Documents => Consumer::Documents,
            };
            place(input, consumer, None)
        }
        _ => None,
    }
}

/// The paths that are not below another.
fn tops(deps: &Deps) -> Arc<[Str]> {
    let is_below = |path: &String| {
        let mut dots = path.match_indices('.');
        dots.any(|(at, _)| deps.paths.contains(&path[..at]))
    };
    let tops = deps.paths.iter().filter(|path| !is_below(path));
    tops.map(|path| path.as_str().into()).collect()
}

/// What is to be read by columns, if that is worth it.
fn worth(reads: ColumnReads, scan: &CollScan, collection: &Collection, is_demanded: bool) -> Option<ColumnReads> {
    let by_filter = scan.filter.as_ref().map(|_| ColumnReads::Documents);
    match &reads {
        ColumnReads::Documents => by_filter,
        ColumnReads::Rows(_) => Some(reads),
        ColumnReads::Paths { paths, .. } => {
            let documents = u64::try_from(collection.state.documents()).unwrap_or(0);
            let bytes = u64::try_from(collection.state.bytes()).unwrap_or(0);
            let is_cheap = (paths.len() as u64 * VALUE_COST).saturating_mul(documents) <= bytes;
            match is_cheap || is_demanded {
                true => Some(reads),
                false => by_filter,
            }
        }
    }
}
