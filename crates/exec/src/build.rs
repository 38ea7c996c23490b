//! From a plan to running operators.

use crate::operator::BoxOperator;
use crate::ops::{CollScan, Count, Eof, Filter, IdLookup, Limit, Project, Skip, Sort};
use nestor_model::Result;
use nestor_planner::PlanNode;
use nestor_storage::Collection;
use std::sync::Arc;

/// Builds the operators of a plan over `collection`.
pub fn build(plan: &PlanNode, collection: &Arc<Collection>) -> Result<BoxOperator> {
    let input = |node: &PlanNode| build(node, collection);
    Ok(match plan {
        PlanNode::Eof => Box::new(Eof::default()),
        PlanNode::CollScan(scan) => Box::new(CollScan::new(collection.records, scan)),
        PlanNode::IdLookup(lookup) => Box::new(IdLookup::new(collection.clone(), lookup)),
        PlanNode::Filter { input: from, filter } => Box::new(Filter::new(input(from)?, filter.clone())),
        PlanNode::Sort {
            input: from,
            spec,
            limit,
            keep_key,
        } => Box::new(Sort::new(input(from)?, spec.clone(), *limit, *keep_key)),
        PlanNode::Skip { input: from, skip } => Box::new(Skip::new(input(from)?, *skip)),
        PlanNode::Limit { input: from, limit } => Box::new(Limit::new(input(from)?, *limit)),
        PlanNode::Project {
            input: from,
            projection,
            positional,
        } => Box::new(Project::new(input(from)?, projection.clone(), positional.clone())),
        PlanNode::Count { input: from, field } => Box::new(Count::new(input(from)?, field.clone())),
    })
}
