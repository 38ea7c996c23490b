//! Explaining a lookup that goes the express way: one document by its `_id`, with no plan to choose.
//!
//! Source: manual, "Explain Results", "EXPRESS_IXSCAN" and "EXPRESS_CLUSTERED_IXSCAN".

use nestor_database::operation::{Operation, Work};
use nestor_exec::Reads;
use nestor_model::{Document, Value, doc};
use nestor_planner::PlanNode;

/// The stage of a find that demands one `_id` and nothing else, if `plan` looks it up.
pub(super) fn stage(operation: &Operation<'_>, plan: Option<&PlanNode>) -> Option<Document> {
    let (Work::Find(_), Some(collection)) = (&operation.work, &operation.collection) else {
        return None;
    };
    let lookup = match plan? {
        PlanNode::IdLookup(lookup) => lookup,
        // Of one document a limit leaves one.
        PlanNode::Limit { input, .. } => match &**input {
            PlanNode::IdLookup(lookup) => lookup,
            _ => return None,
        },
        _ => return None,
    };
    if lookup.filter.is_some() {
        return None;
    }
    Some(match collection.is_clustered() {
        true => doc! { "stage": "EXPRESS_CLUSTERED_IXSCAN" },
        false => doc! { "stage": "EXPRESS_IXSCAN", "keyPattern": "{ _id: 1 }", "indexName": "_id_" },
    })
}

/// The stage with what it counted.
pub(super) fn executed(stage: &Document, reads: &Reads, returned: i64) -> Document {
    let mut out = doc! { "isCached": false };
    out.fields_mut()
        .extend(stage.iter().map(|(name, value)| (name.into(), value.to_value())));
    out.push("keysExamined", Value::count(reads.keys_examined));
    out.push("docsExamined", Value::count(reads.docs_examined));
    out.push("nReturned", returned as i32);
    out
}
