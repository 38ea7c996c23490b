//! Explaining what goes the express way: reading or writing one document by its `_id`, with no plan to choose.
//!
//! Source: manual, "Explain Results", "EXPRESS_IXSCAN", "EXPRESS_CLUSTERED_IXSCAN", "EXPRESS_UPDATE" and "EXPRESS_DELETE".

use super::explain_write::Changes;
use nestor_database::operation::{Operation, Work};
use nestor_database::write::prepared::{Action, Prepared};
use nestor_exec::Reads;
use nestor_exec::text::shell;
use nestor_model::{Document, Value, doc};
use nestor_planner::PlanNode;

/// The stage of an operation on the document of one `_id`, which its filter demands and nothing else, if `plan` looks it up.
pub(super) fn stage(operation: &Operation<'_>, plan: Option<&PlanNode>) -> Option<Document> {
    let collection = operation.collection.as_ref()?;
    let mut plan = plan?;
    let mut projected = None;
    let lookup = loop {
        plan = match plan {
            PlanNode::IdLookup(lookup) => break lookup,
            // Of one document a limit leaves one, and its top-level fields are copied or not.
            PlanNode::Limit { input, .. } => input,
            PlanNode::Project { input, projection, .. } if projection.is_top_level() => {
                projected = Some(projection);
                input
            }
            _ => return None,
        };
    };
    if lookup.filter.is_some() {
        return None;
    }
    let write = match &operation.work {
        Work::Find(_) => None,
        Work::Write(write) => Some(write_stage(write)?),
        _ => return None,
    };
    let mut out = match (write, collection.is_clustered()) {
        (Some(write), _) => doc! { "stage": write },
        (None, true) => doc! { "stage": "EXPRESS_CLUSTERED_IXSCAN" },
        (None, false) => doc! { "stage": "EXPRESS_IXSCAN" },
    };
    if !collection.is_clustered() {
        out.push("keyPattern", "{ _id: 1 }");
        out.push("indexName", "_id_");
    }
    if let Some(projection) = projected {
        out.push("projection", shell(projection.specification().into()));
        // The document is read.
        out.push("projectionCovered", false);
    }
    Some(out)
}

/// The stage of a write of one document that inserts none and answers none: the others need a plan.
fn write_stage(write: &Prepared<'_>) -> Option<&'static str> {
    if write.multi || write.images || write.selection.may_insert {
        return None;
    }
    Some(match write.action {
        Action::Update { .. } => "EXPRESS_UPDATE",
        Action::Delete => "EXPRESS_DELETE",
    })
}

/// The stage with what it counted, and of a write with what it would have done.
pub(super) fn executed(
    stage: &Document,
    reads: &Reads,
    returned: i64,
    write: Option<(&Prepared<'_>, &Changes)>,
) -> Document {
    let mut out = doc! { "isCached": false };
    out.fields_mut()
        .extend(stage.iter().map(|(name, value)| (name.into(), value.to_value())));
    out.push("keysExamined", Value::count(reads.keys_examined));
    out.push("docsExamined", Value::count(reads.docs_examined));
    out.push("nReturned", returned as i32);
    if let Some((write, changes)) = write {
        changes.append_to(write, &mut out);
    }
    out
}
