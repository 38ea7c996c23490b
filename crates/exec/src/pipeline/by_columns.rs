//! Whether a pipeline reads its collection by columns.

use super::{PipelineSource, group};
use crate::by_columns::{Available, Consumer, choose as choose_find};
use crate::columns::filter::ColumnFilter;
use nestor_model::{Result, Str};
use nestor_planner::PlanNode;
use nestor_planner::find::Wanted;
use nestor_planner::plan::{ColumnReads, FindPlan, StageOp, StagePlan, Unwinds};
use nestor_query::stage::Stage;
use nestor_storage::View;

/// The plan, by columns where that is better for the stages on top of its find.
///
/// Errors: those of reading.
pub(super) fn choose(mut plan: PlanNode, view: &dyn View, context: &PipelineSource) -> Result<PlanNode> {
    let Some(columns) = &context.columns else {
        return Ok(plan);
    };
    let (find, stages): (_, &[StagePlan]) = match &mut plan {
        PlanNode::Find(find) => (find, &[]),
        PlanNode::Pipeline(pipeline) => match &mut pipeline.source {
            PlanNode::Find(find) => (find, &pipeline.stages),
            _ => return Ok(plan),
        },
        _ => return Ok(plan),
    };
    let Some(collection) = view.catalog().get(&find.namespace) else {
        return Ok(plan);
    };
    let grouped = if is_whole(find) { Grouped::of(stages) } else { None };
    let (consumer, unwinds) = match grouped {
        Some(Grouped { paths, unwinds }) => (Consumer::Rows(paths), unwinds),
        None => (Consumer::of(Wanted::Documents, &find.query), None),
    };
    let at = Available { view, columns };
    let before = std::mem::take(&mut find.plans);
    find.plans = choose_find(before, &find.query, consumer, collection, at)?;
    if matches!(find.plans.as_slice(), [only] if is_by_columns(only)) {
        find.kept = None;
    }
    if let [PlanNode::CollScan(scan)] = find.plans.as_mut_slice()
        && let Some(access) = &mut scan.columns
        && matches!(access.reads, ColumnReads::Rows(_))
    {
        access.unwinds = unwinds;
    }
    Ok(plan)
}

/// A `$group` that takes rows of columns: right above the source, or above an `$unwind` of these and conditions on what it gives.
struct Grouped {
    /// The paths that it and the conditions look at.
    paths: Vec<Str>,
    unwinds: Option<Unwinds>,
}

impl Grouped {
    fn of(stages: &[StagePlan]) -> Option<Self> {
        let mut parsed = stages.iter().map_while(|stage| match &stage.node.op {
            StageOp::Parsed(stage) => Some(stage),
            _ => None,
        });
        let mut paths = Vec::new();
        let mut unwinds = None;
        loop {
            match parsed.next()? {
                Stage::Group(group) => {
                    paths.extend(group::paths_of(group)?);
                    return Some(Self { paths, unwinds });
                }
                Stage::Unwind(unwind) if unwinds.is_none() => {
                    unwinds = Some(Unwinds {
                        array: unwind.path.as_str().into(),
                        preserves: unwind.preserve,
                        index: unwind.index.as_ref().map(|index| index.as_str().into()),
                    });
                }
                Stage::Match(filter) if unwinds.is_some() => ColumnFilter::of(filter)?.paths(&mut paths),
                _ => return None,
            }
        }
    }
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

/// What a source gives to who takes rows of columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives {
    Documents,
    /// Rows of columns.
    Rows,
    /// Those of the elements of an array: above an `$unwind` and conditions.
    Elements,
}

/// What a source gives to who takes rows of columns.
pub(super) fn gives(source: &PlanNode) -> Gives {
    let access = match source {
        PlanNode::Find(find) => match find.plans.as_slice() {
            [PlanNode::CollScan(scan)] => scan.columns.as_ref(),
            _ => None,
        },
        _ => None,
    };
    match access {
        Some(access) if !matches!(access.reads, ColumnReads::Rows(_)) => Gives::Documents,
        Some(access) if access.unwinds.is_some() => Gives::Elements,
        Some(_) => Gives::Rows,
        None => Gives::Documents,
    }
}

impl Gives {
    /// The same above a stage, for the next one.
    pub(super) fn above(self, stage: &StageOp, next: Option<&StageOp>) -> Self {
        match (self, stage) {
            (Self::Rows | Self::Elements, StageOp::Parsed(Stage::Group(group))) => match next {
                Some(StageOp::Parsed(Stage::Group(next))) if group::gives_rows(group, next) => Self::Rows,
                _ => Self::Documents,
            },
            (Self::Elements, StageOp::Parsed(Stage::Unwind(_) | Stage::Match(_))) => self,
            _ => Self::Documents,
        }
    }
}
