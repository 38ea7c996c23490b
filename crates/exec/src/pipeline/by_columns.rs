//! Whether a pipeline reads its collection by columns.

use super::{PipelineSource, group};
use crate::columns::filter::ColumnFilter;
use crate::ops::sort::by_columns;
use nestor_model::{Result, Str};
use nestor_planner::PlanNode;
use nestor_planner::find::FindQuery;
use nestor_planner::plan::{CollScan, FindPlan, StageOp};
use nestor_query::stage::Stage;
use nestor_storage::View;

/// The plan, with a scan by columns in the place of one of all documents where the stage on top looks at values at paths only or the first few rows
/// in an order are wanted, and the collection has columns. If it has none they are made from now on.
///
/// Errors: those of reading.
pub(super) fn choose(mut plan: PlanNode, view: &dyn View, context: &PipelineSource) -> Result<PlanNode> {
    let Some(columns) = &context.columns else {
        return Ok(plan);
    };
    let (find, group) = match &mut plan {
        PlanNode::Find(find) => (find, None),
        PlanNode::Pipeline(pipeline) => match (
            &mut pipeline.source,
            pipeline.stages.first().map(|stage| &stage.node.op),
        ) {
            (PlanNode::Find(find), Some(StageOp::Parsed(Stage::Group(group)))) => (find, Some(group)),
            (PlanNode::Find(find), _) => (find, None),
            _ => return Ok(plan),
        },
        _ => return Ok(plan),
    };
    let namespace = find.namespace.clone();
    let found = match first_few(find) {
        Some((scan, paths)) => Some((scan, paths)),
        None => group.and_then(|group| Some((only_scan(find)?, group::paths_of(group)?))),
    };
    if let Some((scan, paths)) = found
        && let Some(collection) = view.catalog().get(&namespace)
        && !collection.ns.is_oplog()
        && !collection.is_clustered()
        && (columns.has(collection.records) || columns.read(view, collection.records)?.is_some())
    {
        scan.columns = Some(paths.into());
    }
    Ok(plan)
}

/// The scan that a find is, if it is nothing else.
fn only_scan(find: &mut FindPlan) -> Option<&mut CollScan> {
    let query = &find.query;
    let whole = query.sort.is_none() && query.projection.is_none() && query.skip == 0 && query.limit.is_none();
    if !whole || !is_free(query) {
        return None;
    }
    match find.plans.as_mut_slice() {
        [PlanNode::CollScan(scan)] if is_plain(scan) => Some(scan),
        _ => None,
    }
}

/// The scan below a sort of which the first few rows are wanted, and the paths that this looks at.
fn first_few(find: &mut FindPlan) -> Option<(&mut CollScan, Vec<Str>)> {
    if !is_free(&find.query) {
        return None;
    }
    let [node] = find.plans.as_mut_slice() else {
        return None;
    };
    let mut node = node;
    loop {
        node = match node {
            PlanNode::Skip { input, .. } | PlanNode::Limit { input, .. } | PlanNode::Project { input, .. } => input,
            PlanNode::Sort {
                input,
                spec,
                limit: Some(1..=by_columns::ROWS_MAX),
                keep_key: false,
            } => {
                let paths = by_columns::paths_of(spec)?;
                return match &mut **input {
                    PlanNode::CollScan(scan) if is_plain(scan) => Some((scan, paths)),
                    _ => None,
                };
            }
            _ => return None,
        };
    }
}

/// Whether a scan is one that columns can stand in for.
fn is_plain(scan: &CollScan) -> bool {
    let plain = scan.forward && !scan.tailable && scan.clustered.is_none();
    let filter = scan.filter.as_ref();
    plain && filter.is_none_or(|filter| ColumnFilter::of(filter).is_some())
}

fn is_free(query: &FindQuery) -> bool {
    let free = query.natural.is_none() && query.hint.is_none() && !query.return_key;
    free && !query.tailable && !query.keeps_distance && !query.keeps_score
}

/// Whether a source gives rows of columns to who takes them.
pub(super) fn gives(source: &PlanNode) -> bool {
    match source {
        PlanNode::Find(find) => matches!(find.plans.as_slice(), [PlanNode::CollScan(scan)] if scan.columns.is_some()),
        _ => false,
    }
}
