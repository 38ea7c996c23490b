//! From a plan to running operators.

use crate::operator::BoxOperator;
use crate::ops::{
    CollScan, ColumnScan, Count, Covered, Eof, Fetch, Filter, GeoNear, IdLookup, IndexScan, Limit, OplogScan, Or,
    Project, ReturnKey, Skip, Sort, SortMerge, TextMatch, TextOr,
};
use nestor_model::statement::{ROW, work};
use nestor_model::{Error, ErrorCode, Result, Value};
use nestor_planner::plan::{ColumnReads, IndexScan as IndexScanPlan};
use nestor_planner::{IndexInfo, PlanNode};
use nestor_storage::{Collection, Index, IndexId};
use std::sync::Arc;

/// Builds the operators of a plan over `collection`, and counts the use of what it reads.
pub fn build(plan: &PlanNode, collection: &Arc<Collection>) -> Result<BoxOperator> {
    let root = assemble(plan, collection)?;
    note_use(plan, collection);
    Ok(root)
}

/// Finds the records with these `_id`s, which are different and neither null, arrays nor regular expressions, in this order; counts that as
/// a use of the index. With `only_ids` the rows have the `_id` alone, and that as it was asked for.
pub fn look_up(collection: &Arc<Collection>, ids: Vec<Value>, only_ids: bool) -> BoxOperator {
    if let Some(index) = collection.id_index() {
        collection.state.note_index_use(index.id);
    }
    Box::new(IdLookup::of_all(collection.clone(), ids, only_ids))
}

/// Counts a query that runs by `plan`, for `$indexStats` and `$collStats`.
pub(crate) fn note_use(plan: &PlanNode, collection: &Collection) {
    match plan {
        PlanNode::CollScan(scan) if scan.range().is_none() && !collection.ns.is_oplog() => {
            collection.state.note_scan(scan.tailable)
        }
        PlanNode::IndexScan(scan) => collection.state.note_index_use(IndexId(scan.index.id)),
        PlanNode::GeoNear(near) => collection.state.note_index_use(IndexId(near.index.id)),
        // However many terms there are, it is one use.
        PlanNode::TextMatch(text) => collection.state.note_index_use(IndexId(text.index.id)),
        PlanNode::IdLookup(_) => {
            if let Some(index) = collection.id_index() {
                collection.state.note_index_use(index.id);
            }
        }
        other => {
            for input in other.inputs() {
                note_use(input, collection);
            }
        }
    }
}

/// The operators of a plan. A plan that may not be run in the end counts as no use of anything.
pub(crate) fn assemble(plan: &PlanNode, collection: &Arc<Collection>) -> Result<BoxOperator> {
    let input = |node: &PlanNode| assemble(node, collection);
    let counted = |node: &PlanNode| work(ROW).and_then(|()| input(node));
    Ok(match plan {
        PlanNode::Eof => Box::new(Eof::default()),
        PlanNode::CollScan(scan) if collection.ns.is_oplog() => Box::new(OplogScan::new(scan)),
        PlanNode::CollScan(scan) => {
            let by_columns = match &scan.columns {
                Some(access) => ColumnScan::new(collection.records, scan, access),
                None => None,
            };
            match by_columns {
                Some(scan) => Box::new(scan),
                None => Box::new(CollScan::new(collection.records, scan)),
            }
        }
        PlanNode::IdLookup(lookup) => Box::new(IdLookup::new(collection.clone(), lookup)),
        PlanNode::IndexScan(scan) => Box::new(index_scan(scan, collection)?),
        PlanNode::GeoNear(near) => {
            let index = index_of(&near.index, collection)?;
            Box::new(GeoNear::new(collection, index.clone(), (**near).clone()))
        }
        PlanNode::TextOr(text) => {
            let scans = text.scans.iter().filter_map(|scan| match scan {
                PlanNode::IndexScan(scan) => Some(work(ROW).and_then(|()| index_scan(scan, collection))),
                _ => None,
            });
            Box::new(TextOr::new(collection, text, scans.collect::<Result<_>>()?))
        }
        PlanNode::TextMatch(text) => Box::new(TextMatch::new(input(&text.input)?, (**text).clone())),
        PlanNode::Fetch { input: from, filter } => {
            let from = match &**from {
                PlanNode::IndexScan(scan) => Box::new(index_scan(scan, collection)?.records_only()),
                other => input(other)?,
            };
            Box::new(Fetch::new(from, collection.records, filter.clone()))
        }
        PlanNode::Covered {
            input: from,
            projection,
        } => Box::new(Covered::new(input(from)?, projection.clone())),
        PlanNode::Or { inputs } => Box::new(Or::new(inputs.iter().map(counted).collect::<Result<_>>()?)),
        PlanNode::SortMerge { inputs, spec } => Box::new(SortMerge::new(
            inputs.iter().map(input).collect::<Result<_>>()?,
            spec.clone(),
        )),
        PlanNode::Filter { input: from, filter } => Box::new(Filter::new(input(from)?, filter.clone())),
        PlanNode::Sort {
            input: from,
            spec,
            limit,
            keep_key,
        } => {
            let sort = Sort::new(input(from)?, spec.clone(), *limit, *keep_key);
            match &**from {
                PlanNode::CollScan(scan)
                    if scan
                        .columns
                        .as_ref()
                        .is_some_and(|access| matches!(access.reads, ColumnReads::Rows(_))) =>
                {
                    Box::new(sort.over_columns(Some(collection.records)))
                }
                _ => Box::new(sort),
            }
        }
        PlanNode::Skip { input: from, skip } => Box::new(Skip::new(input(from)?, *skip)),
        PlanNode::Limit { input: from, limit } => Box::new(Limit::new(input(from)?, *limit)),
        PlanNode::Project {
            input: from,
            projection,
            positional,
        } => Box::new(Project::new(input(from)?, projection.clone(), positional.clone())),
        PlanNode::ReturnKey { input: from } => Box::new(ReturnKey::new(input(from)?)),
        PlanNode::Count { input: from, field } => Box::new(Count::new(input(from)?, field.clone())),
        // Pipelines are lowered where their stages are (`pipeline`).
        PlanNode::Find(_)
        | PlanNode::Made { .. }
        | PlanNode::Changes { .. }
        | PlanNode::Given
        | PlanNode::Pipeline(_) => {
            return Err(Error::new(
                ErrorCode::InternalError,
                format!("{} is no part of a find", plan.stage()),
            ));
        }
    })
}

fn index_scan(scan: &IndexScanPlan, collection: &Collection) -> Result<IndexScan> {
    let index = index_of(&scan.index, collection)?;
    Ok(IndexScan::new(collection, index.clone(), scan.clone()))
}

pub(crate) fn index_of<'c>(planned: &IndexInfo, collection: &'c Collection) -> Result<&'c Arc<Index>> {
    let index = collection.indexes.iter().find(|index| index.id.0 == planned.id);
    index.ok_or_else(|| {
        Error::new(
            ErrorCode::QueryPlanKilled,
            format!("index '{}' was dropped", planned.name),
        )
    })
}
