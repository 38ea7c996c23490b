//! Parts that all plans of a find share: the lookup of one `_id`, and the nodes above the rows that were found.

use crate::collation::answers;
use crate::find::{FindQuery, reads_sort_key};
use crate::plan::{IdLookup, PlanNode};
use nestor_model::{BsonType, Value};
use nestor_query::collation::Collator;
use nestor_query::matcher::{CompareOp, MatchExpr, Predicate};
use std::sync::Arc;

/// Puts what a query does with found rows on top of how they are found. `ordered`: they come in its order.
pub(crate) fn finish(query: &FindQuery, found: PlanNode, ordered: bool) -> PlanNode {
    let mut node = found;
    if let Some(spec) = &query.sort {
        let keep_key = query.projection.as_ref().is_some_and(|p| reads_sort_key(p));
        if !ordered || keep_key {
            node = PlanNode::Sort {
                input: Box::new(node),
                spec: spec.clone(),
                limit: query.limit.map(|limit| limit.saturating_add(query.skip)),
                keep_key,
            };
        }
    }
    if query.skip > 0 {
        let skip = |input| {
            Box::new(PlanNode::Skip {
                input,
                skip: query.skip,
            })
        };
        node = match node {
            // Rows that are skipped need no document.
            PlanNode::Covered { input, projection } => PlanNode::Covered {
                input: skip(input),
                projection,
            },
            node => *skip(Box::new(node)),
        };
    }
    if query.return_key {
        node = PlanNode::ReturnKey { input: Box::new(node) };
    } else if let Some(projection) = &query.projection {
        node = match node {
            PlanNode::Covered { input, .. } => PlanNode::Covered {
                input,
                projection: Some(projection.clone()),
            },
            node => PlanNode::Project {
                input: Box::new(node),
                projection: projection.clone(),
                positional: projection.needs_match_details().then(|| query.filter.clone()),
            },
        };
    }
    // A sort gives no more than its limit, which what is skipped is part of.
    if let Some(limit) = query.limit.filter(|limit| *limit == 0 || !sorts(&node)) {
        node = PlanNode::Limit {
            input: Box::new(node),
            limit,
        };
    }
    node
}

/// Whether a sort is what the rows come from.
fn sorts(node: &PlanNode) -> bool {
    match node {
        PlanNode::Sort { .. } => true,
        PlanNode::Skip { input, .. }
        | PlanNode::Project { input, .. }
        | PlanNode::Covered { input, .. }
        | PlanNode::ReturnKey { input } => sorts(input),
        _ => false,
    }
}

/// The part of a filter that a scan has to check.
pub(crate) fn residual(filter: &Arc<MatchExpr>) -> Option<Arc<MatchExpr>> {
    (!matches!(**filter, MatchExpr::AlwaysTrue)).then(|| filter.clone())
}

/// The lookup when the filter demands one exact `_id`, alone or among other conditions, in a collection that tells
/// `_id`s apart by this collation.
pub fn id_lookup(filter: &Arc<MatchExpr>, collation: Option<&Collator>) -> Option<IdLookup> {
    match &**filter {
        MatchExpr::And(children) => {
            let id = children.iter().find_map(|child| exact_id(child, collation))?;
            Some(IdLookup {
                id: id.clone(),
                filter: Some(filter.clone()),
            })
        }
        single => Some(IdLookup {
            id: exact_id(single, collation)?.clone(),
            filter: None,
        }),
    }
}

/// The `_id` that an equality demands. An `_id` is never an array or a regular expression, so equality with
/// one of those needs a scan to find that nothing matches (or, for an array, that no element does).
fn exact_id<'e>(expr: &'e MatchExpr, collation: Option<&Collator>) -> Option<&'e Value> {
    let MatchExpr::Leaf(leaf) = expr else { return None };
    let Predicate::Compare {
        op: CompareOp::Eq,
        value,
        collator,
    } = &leaf.predicate
    else {
        return None;
    };
    let exact = leaf.path.as_str() == "_id"
        && answers(collation, collator.as_ref(), value)
        && !matches!(
            value.bson_type(),
            BsonType::Array | BsonType::Regex | BsonType::Null | BsonType::Undefined | BsonType::Missing
        );
    exact.then_some(value)
}
