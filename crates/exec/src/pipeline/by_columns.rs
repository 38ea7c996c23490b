//! Whether a pipeline reads its collection by columns.

use super::{PipelineSource, group};
use crate::by_columns::{Available, Consumer, choose as choose_find};
use crate::columns::filter::ColumnFilter;
use crate::columns::projected;
use crate::ops::sort::by_columns as sort;
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

/// What a source or a stage gives to who takes rows of columns.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Gives {
    Documents,
    /// Rows of columns.
    Rows,
    /// Those of the elements of an array: above an `$unwind` and conditions.
    Elements,
    /// Rows that were computed, which have columns at these paths and nothing else.
    Made(Vec<Str>),
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
    /// The same above a stage, for those that come next.
    pub(super) fn above(self, stage: &StageOp, next: &[StagePlan]) -> Self {
        let paths = match (self, stage) {
            (Self::Documents, _) => None,
            (_, StageOp::Parsed(Stage::Group(group))) => group::paths_made(group),
            (Self::Elements, StageOp::Parsed(Stage::Unwind(_) | Stage::Match(_))) => return Self::Elements,
            (Self::Made(paths), StageOp::Parsed(stage)) => paths_above(stage, paths),
            _ => None,
        };
        match paths {
            Some(paths) if are_wanted(&paths, next) => Self::Made(paths),
            _ => Self::Documents,
        }
    }
}

/// The paths that rows of columns that were computed have above a stage, if it gives such, too.
fn paths_above(stage: &Stage, paths: Vec<Str>) -> Option<Vec<Str>> {
    match stage {
        Stage::Project { projection, .. } => projected::paths_of(projection, &paths),
        Stage::Match(filter) => {
            let mut looked_at = Vec::new();
            ColumnFilter::of(filter)?.paths(&mut looked_at);
            has_all(&paths, &looked_at).then_some(paths)
        }
        _ => None,
    }
}

fn has_all(paths: &[Str], wanted: &[Str]) -> bool {
    wanted.iter().all(|path| paths.contains(path))
}

/// Whether stages take rows of columns with just these paths, for more than to make documents of them.
fn are_wanted(paths: &[Str], stages: &[StagePlan]) -> bool {
    let Some((stage, next)) = stages.split_first() else {
        return false;
    };
    match &stage.node.op {
        StageOp::TopSort { spec, limit } => {
            let is_first_few = *limit <= sort::ROWS_MAX && !stage.keep_sort_key;
            is_first_few && sort::paths_of(spec).is_some_and(|wanted| has_all(paths, &wanted))
        }
        StageOp::Parsed(Stage::Group(group)) => group::paths_of(group).is_some_and(|wanted| has_all(paths, &wanted)),
        StageOp::Parsed(stage) => paths_above(stage, paths.to_vec()).is_some_and(|paths| are_wanted(&paths, next)),
        _ => false,
    }
}
