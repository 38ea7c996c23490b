//! From a pipeline to its plan.

use super::geo_near::geo_near_find;
use super::inner::{self, Allowance};
use super::metadata::check_metadata;
use super::reads::{keeping, paths_read, projection_to};
use super::{Namespaces, group_scan, into_find, resolve};
use crate::catalog::Indexes;
use crate::check::check;
use crate::choose::{candidates, cover};
use crate::find::{FindQuery, Hint, no_scores};
use crate::plan::{FindPlan, PipelinePlan, PlanNode, StageNode, StageOp, StagePlan};
use crate::rules::{Rule, rewrite};
use nestor_model::{Error, Namespace, Result, bail};
use nestor_query::collation::Collator;
use nestor_query::stage::{SearchStage, SourceStage, Stage, not_first, text_not_first};
use std::sync::Arc;

/// Restricts the indexes that a query on a namespace may use; true when it did.
pub type Restrict<'r> = &'r dyn Fn(&Namespace, &mut FindQuery) -> bool;

/// A pipeline over a namespace, to be planned.
pub struct PipelineQuery<'q> {
    /// What it reads: a collection, a view, or nothing that there is. `None`: the rows are given ([`PlanNode::Given`]).
    pub namespace: Option<&'q Namespace>,
    /// Its stages.
    pub stages: Vec<StageNode>,
    /// How strings compare.
    pub collation: Option<&'q Collator>,
    /// How its first stages are to find documents.
    pub hint: Option<&'q Hint>,
    /// Restricts the indexes that they may use.
    pub restrict: Option<Restrict<'q>>,
    /// What it is rewritten by: [`RULES`](crate::rules::RULES), except in tests of them.
    pub rules: &'static [Rule],
    /// Whether whoever pulls the rows may ask for the keys that sorts attached, and for the scores of text searches.
    pub keeps_sort_keys: bool,
    /// Whether it is explained, so that stages of views have to keep their text.
    pub is_explained: bool,
}

/// Plans a pipeline, through views: its first stages become a find where they can. The plan is checked.
///
/// Errors: those of [`resolve`] and of reading the indexes.
pub fn plan(query: PipelineQuery<'_>, namespaces: &dyn Namespaces) -> Result<PlanNode> {
    let is_given = query.namespace.is_none();
    let plan = unchecked(query, namespaces, &Allowance::new())?;
    check(&plan, is_given)?;
    Ok(plan)
}

/// As [`plan`]; the plan is checked with the tree that it becomes part of.
pub(super) fn unchecked(
    mut query: PipelineQuery<'_>,
    namespaces: &dyn Namespaces,
    allowance: &Allowance,
) -> Result<PlanNode> {
    let mut stages = std::mem::take(&mut query.stages);
    let resolved = match query.namespace {
        Some(namespace) => Some(resolve(namespace, namespaces, query.collation, query.is_explained)?),
        None => None,
    };
    let found = resolved.map(|mut resolved| {
        let is_mask = |stage: &StageNode| matches!(stage.parsed(), Some(Stage::Mask(_)));
        let is_of_server = |stage: &StageNode| makes_rows(stage) && !matches!(stage.parsed(), Some(Stage::Search(_)));
        if stages.first().is_some_and(is_of_server) && resolved.stages.first().is_some_and(is_mask) {
            // A stage that makes documents itself masks the stored ones that it shows.
            resolved.stages.remove(0);
        }
        match stages.first().and_then(StageNode::parsed) {
            Some(Stage::Source(source)) => check_source_on_view(source, &resolved.stages)?,
            Some(Stage::Search(search)) => check_search(search, &resolved.stages)?,
            _ => {}
        }
        stages.splice(0..0, resolved.stages);
        let is_fusion = |stage: &StageNode| matches!(stage.parsed(), Some(Stage::Fusion(_)));
        if let Some(at) = stages.iter().position(is_fusion) {
            // Its pipelines read the view, or what it is on, themselves.
            check_fusion_on(stages.drain(..at).as_slice())?;
        }
        Ok::<_, Error>((resolved.namespace, resolved.exists))
    });
    let found = found.transpose()?;
    // What a view does comes first.
    if stages.iter().skip(1).any(searches) {
        return Err(text_not_first());
    }
    if found.is_some() {
        check_metadata(&stages)?;
    }
    rewrite(&mut stages, query.rules);
    let namespace = found.as_ref().map(|(namespace, _)| namespace);
    let source = match (made(&mut stages, namespace), found) {
        (Some(made), _) => made,
        (None, None) => PlanNode::Given,
        (None, Some(_)) if matches!(stages.first().and_then(StageNode::parsed), Some(Stage::Fusion(_))) => {
            PlanNode::Eof
        }
        (None, Some((namespace, exists))) => {
            let indexes = match exists {
                true => namespaces.indexes(&namespace)?,
                false => None,
            };
            let measured = geo_near_find(&mut stages, &namespace, indexes)?;
            let is_measured = measured.is_some();
            let mut find = FindPlan {
                query: measured.unwrap_or_else(|| into_find(&mut stages)),
                namespace,
                plans: Vec::new(),
                restricted: false,
                kept: None,
            };
            find.query.collation = query.collation.cloned();
            if let Some(hint) = query.hint {
                hint.apply(&mut find.query);
            }
            find.query.keeps_score = query.keeps_sort_keys || stages.iter().any(StageNode::may_read_text_score);
            check_text(&mut find.query, &stages, indexes)?;
            find.restricted = query
                .restrict
                .is_some_and(|restrict| restrict(&find.namespace, &mut find.query));
            if !is_measured && !find.query.keeps_score && find.query.projection.is_none() {
                if let Some(read) = paths_read(&stages) {
                    find.query.reads = Some(read.all);
                    find.query.reads_exactly = read.exactly;
                    find.query.reads_shape = read.shape;
                }
            }
            if exists {
                make_plans(&mut find, stages.first(), namespaces)?;
            }
            if let Some(projection) = projection_to(find.query.reads.as_deref().unwrap_or_default())? {
                let plans = std::mem::take(&mut find.plans);
                find.plans = plans.into_iter().map(|plan| keeping(plan, &projection)).collect();
            }
            PlanNode::Find(Box::new(find))
        }
    };
    // The consumer of the rows writes them.
    if let Some(Stage::Out(_) | Stage::OutFile(_) | Stage::Merge(_)) = stages.last().and_then(StageNode::parsed) {
        stages.pop();
    }
    let stages = stage_plans(stages, &query, namespaces, allowance)?;
    Ok(match stages.is_empty() {
        true => source,
        false => PlanNode::Pipeline(Box::new(PipelinePlan { source, stages })),
    })
}

fn searches(stage: &StageNode) -> bool {
    stage.filter().is_some_and(|filter| filter.text().is_some())
}

/// Makes a `$text` of the find one for the collection's text index.
///
/// Errors: those of [`FindQuery::bind_text`]; 40218 where nothing gives the scores that are asked for.
fn check_text(find: &mut FindQuery, stages: &[StageNode], indexes: Option<&Indexes>) -> Result<()> {
    if find.filter.text().is_none() {
        find.keeps_score = false;
        let asked = find.wants_own_score() || stages.iter().any(|stage| stage.reads_metadata("textScore"));
        return if asked { Err(no_scores()) } else { Ok(()) };
    }
    match indexes {
        Some(indexes) => find.bind_text(indexes),
        None => Ok(()),
    }
}

/// Refuses a stage that tells of a collection's indexes or plans behind the stages of a view, also where these change nothing.
/// The buckets of a time-series collection are shown by a stage that nobody wrote; what unpacks them counts for plans, as in
/// MongoDB (SERVER-57259).
///
/// Error: 40602.
fn check_source_on_view(source: &SourceStage, of_view: &[StageNode]) -> Result<()> {
    let may_be_behind = |stage: &StageNode| match (source, stage.parsed()) {
        (_, Some(Stage::PublicBuckets(_))) | (SourceStage::IndexStats, Some(Stage::Unpack(_))) => true,
        (SourceStage::IndexStats | SourceStage::PlanCacheStats, _) => false,
        _ => true,
    };
    match of_view.iter().all(may_be_behind) {
        true => Ok(()),
        false => Err(not_first(source.name())),
    }
}

/// Refuses a search behind the stages of a view, and of who may not see the collection plain (it would tell of what is masked).
///
/// Errors: 13, 40602.
fn check_search(search: &SearchStage, of_view: &[StageNode]) -> Result<()> {
    match of_view.first().map(StageNode::parsed) {
        None => Ok(()),
        Some(Some(Stage::Mask(_))) => bail!(Unauthorized, "{} is for who sees the collection plain", search.name()),
        Some(_) => Err(not_first(search.name())),
    }
}

/// Refuses a `$rankFusion` or `$scoreFusion` over time-series buckets. `below`: the stages of what it is on.
///
/// Error: 10557301.
fn check_fusion_on(below: &[StageNode]) -> Result<()> {
    let is_of_buckets = |stage: &StageNode| matches!(stage.parsed(), Some(Stage::Unpack(_) | Stage::PublicBuckets(_)));
    match below.iter().any(is_of_buckets) {
        true => bail!(
            10557301,
            "$rankFusion and $scoreFusion are not supported on time-series collections"
        ),
        false => Ok(()),
    }
}

/// Whether a stage makes documents itself.
fn makes_rows(stage: &StageNode) -> bool {
    let is_source = matches!(
        stage.parsed(),
        Some(Stage::Documents(_) | Stage::Source(_) | Stage::Search(_))
    );
    is_source || stage.changes().is_some()
}

/// The source that the first stage is, taken out.
fn made(stages: &mut Vec<StageNode>, namespace: Option<&Namespace>) -> Option<PlanNode> {
    let first = stages.first()?;
    if first.changes().is_some() {
        return Some(PlanNode::Changes {
            stage: stages.remove(0),
        });
    }
    makes_rows(first).then(|| PlanNode::Made {
        stage: stages.remove(0),
        namespace: namespace.cloned(),
    })
}

/// Makes the plans of a find that is followed by `next`: one for a `$group`, one that was kept, or its candidates.
fn make_plans(find: &mut FindPlan, next: Option<&StageNode>, namespaces: &dyn Namespaces) -> Result<()> {
    let Some(indexes) = namespaces.indexes(&find.namespace)? else {
        return Ok(());
    };
    let query = &find.query;
    let unlimited = query.limit.is_none() && query.skip == 0;
    let hinted = query.hint.is_some() || query.natural.is_some() || query.by_columns;
    let free = unlimited && query.projection.is_none() && !find.restricted && !hinted;
    if let (Some(Stage::Group(group)), true) = (next.and_then(StageNode::parsed), free) {
        let order = query.sort.as_deref();
        if let Some(plan) = group_scan(&query.filter, order, group, query.collation.as_ref(), indexes) {
            find.plans = vec![cover(plan, query, true)];
            // A group of one document has no order, and the scan may run against that of the query.
            find.query.sort = None;
            return Ok(());
        }
    }
    match namespaces.reuse(&find.namespace, query, indexes) {
        Some(reused) => {
            find.plans = vec![reused.plan];
            find.kept = Some(reused.kept);
        }
        None => find.plans = candidates(query, indexes),
    }
    Ok(())
}

fn stage_plans(
    stages: Vec<StageNode>,
    query: &PipelineQuery<'_>,
    namespaces: &dyn Namespaces,
    allowance: &Allowance,
) -> Result<Vec<StagePlan>> {
    let mut plans = Vec::with_capacity(stages.len());
    // From the last stage to the first, to know of each sort whether its key is asked for behind it.
    let mut asked = query.keeps_sort_keys;
    for node in stages.into_iter().rev() {
        let sorts = matches!(node.op, StageOp::Parsed(Stage::Sort(_)) | StageOp::TopSort { .. });
        let inner = inner::of_stage(&node, query, namespaces, allowance)?;
        let keep_sort_key = sorts && asked;
        asked |= node.may_read_sort_key();
        plans.push(StagePlan {
            node,
            keep_sort_key,
            inner: inner.map(Arc::new),
        });
    }
    plans.reverse();
    Ok(plans)
}
