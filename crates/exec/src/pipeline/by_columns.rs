//! Whether a pipeline reads its collection by columns.

use super::{PipelineSource, group};
use crate::columns::filter::ColumnFilter;
use nestor_model::Result;
use nestor_planner::PlanNode;
use nestor_planner::find::FindQuery;
use nestor_planner::plan::{CollScan, FindPlan, StageOp};
use nestor_query::stage::Stage;
use nestor_storage::View;

/// The plan, with a scan by columns in the place of one of all documents where the stage on top looks at values at paths only, and the
/// collection has columns. If it has none they are made from now on.
///
/// Errors: those of reading.
pub(super) fn choose(mut plan: PlanNode, view: &dyn View, context: &PipelineSource) -> Result<PlanNode> {
    let Some(columns) = &context.columns else {
        return Ok(plan);
    };
    if let PlanNode::Pipeline(pipeline) = &mut plan
        && let Some(StageOp::Parsed(Stage::Group(group))) = pipeline.stages.first().map(|stage| &stage.node.op)
        && let PlanNode::Find(find) = &mut pipeline.source
        && let Some(collection) = view.catalog().get(&find.namespace)
        && !collection.ns.is_oplog()
        && !collection.is_clustered()
        && let Some(scan) = only_scan(find)
        && let Some(paths) = group::paths_of(group)
        && (columns.has(collection.records) || columns.read(view, collection.records)?.is_some())
    {
        scan.columns = Some(paths.into());
    }
    Ok(plan)
}

/// The scan that a find is, if it is nothing else.
fn only_scan(find: &mut FindPlan) -> Option<&mut CollScan> {
    if !is_plain(&find.query) {
        return None;
    }
    let [PlanNode::CollScan(scan)] = find.plans.as_mut_slice() else {
        return None;
    };
    let plain = scan.forward && !scan.tailable && scan.clustered.is_none();
    let filter = scan.filter.as_ref();
    (plain && filter.is_none_or(|filter| ColumnFilter::of(filter).is_some())).then_some(scan)
}

fn is_plain(query: &FindQuery) -> bool {
    let free = query.sort.is_none() && query.natural.is_none() && query.hint.is_none();
    let whole = query.projection.is_none() && query.skip == 0 && query.limit.is_none() && !query.return_key;
    free && whole && !query.tailable && !query.keeps_distance && !query.keeps_score
}

/// Whether a source gives rows of columns to who takes them.
pub(super) fn gives(source: &PlanNode) -> bool {
    match source {
        PlanNode::Find(find) => matches!(find.plans.as_slice(), [PlanNode::CollScan(scan)] if scan.columns.is_some()),
        _ => false,
    }
}
