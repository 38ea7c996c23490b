//! Whether a pipeline reads its collection by columns.

use super::{PipelineSource, group};
use crate::by_columns::{Available, Consumer, choose as choose_find};
use nestor_model::Result;
use nestor_planner::PlanNode;
use nestor_planner::find::Wanted;
use nestor_planner::plan::{ColumnReads, FindPlan, StageOp};
use nestor_query::stage::Stage;
use nestor_storage::View;

/// The plan, by columns where that is better for the stages on top of its find.
///
/// Errors: those of reading.
pub(super) fn choose(mut plan: PlanNode, view: &dyn View, context: &PipelineSource) -> Result<PlanNode> {
    let Some(columns) = &context.columns else {
        return Ok(plan);
    };
    let (find, first) = match &mut plan {
        PlanNode::Find(find) => (find, None),
        PlanNode::Pipeline(pipeline) => match (&mut pipeline.source, pipeline.stages.first()) {
            (PlanNode::Find(find), first) => (find, first.map(|stage| &stage.node.op)),
            _ => return Ok(plan),
        },
        _ => return Ok(plan),
    };
    let Some(collection) = view.catalog().get(&find.namespace) else {
        return Ok(plan);
    };
    let group = match first {
        Some(StageOp::Parsed(Stage::Group(group))) if is_whole(find) => group::paths_of(group),
        _ => None,
    };
    let consumer = match group {
        Some(paths) => Consumer::Rows(paths),
        None => Consumer::of(Wanted::Documents, &find.query),
    };
    let at = Available { view, columns };
    let before = std::mem::take(&mut find.plans);
    find.plans = choose_find(before, &find.query, consumer, collection, at)?;
    if matches!(find.plans.as_slice(), [only] if is_by_columns(only)) {
        find.kept = None;
    }
    Ok(plan)
}

/// Whether the rows of a find are those of a scan.
fn is_whole(find: &FindPlan) -> bool {
    let query = &find.query;
    query.sort.is_none() && query.projection.is_none() && query.skip == 0 && query.limit.is_none()
}

fn is_by_columns(plan: &PlanNode) -> bool {
    match plan {
        PlanNode::CollScan(scan) => scan.columns.is_some(),
        other => other.inputs().into_iter().any(is_by_columns),
    }
}

/// Whether a source gives rows of columns to who takes them.
pub(super) fn gives(source: &PlanNode) -> bool {
    let rows = |plan: &PlanNode| match plan {
        PlanNode::CollScan(scan) => {
            let access = scan.columns.as_ref();
            access.is_some_and(|access| matches!(access.reads, ColumnReads::Rows(_)))
        }
        _ => false,
    };
    match source {
        PlanNode::Find(find) => matches!(find.plans.as_slice(), [only] if rows(only)),
        _ => false,
    }
}
