//! Opening a namespace as the source of a pipeline: collections, views, and nothing at all.

use super::depth::bounded;
use super::{ServerState, build_probed, build_stages};
use crate::batch::Batch;
use crate::catalog::{id_collation, indexes};
use crate::multi_plan::{MultiPlan, find, run_one_of};
use crate::operator::BoxOperator;
use crate::ops::Eof;
use crate::plan_cache::Tried;
use nestor_model::{Error, ErrorCode, Namespace, Result};
use nestor_planner::pipeline::{StageNode, group_scan, into_find};
use nestor_planner::rules::{Rule, rewrite};
use nestor_planner::{FindQuery, Hint, PlanNode, candidates, shape};
use nestor_query::Scope;
use nestor_query::collation::Collator;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::{ParseContext, Pipeline, Place, Stage, Written};
use nestor_storage::{Collection, View};
use std::sync::Arc;

/// Views on views at most.
pub const VIEW_DEPTH_MAX: usize = 20;

/// What stages need to open other sources.
#[derive(Clone)]
pub struct PipelineSource {
    /// The namespace the pipeline runs on.
    pub namespace: Namespace,
    /// The server's own state.
    pub server: Arc<dyn ServerState>,
    /// What the operation's strings compare by.
    pub collator: Option<Collator>,
    /// What pipelines are rewritten by: [`RULES`](nestor_planner::rules::RULES), except in tests of them.
    pub rules: &'static [Rule],
}

impl PipelineSource {
    /// The same server, another namespace.
    pub fn on(&self, namespace: Namespace) -> Self {
        Self {
            namespace,
            server: self.server.clone(),
            collator: self.collator.clone(),
            rules: self.rules,
        }
    }
}

/// A namespace resolved through views: the collection at the bottom, if there is one, and the stages of
/// the views over it, innermost first.
pub struct Resolved {
    /// The namespace at the bottom.
    pub namespace: Namespace,
    /// Its collection, if it exists.
    pub collection: Option<Arc<Collection>>,
    /// What the views do to it.
    pub stages: Vec<Stage>,
    /// How those were written, when that was asked for.
    written: Vec<Written>,
}

/// Resolves a namespace through its views.
///
/// Errors: 165 when views are nested too deep, 167 when the collation of one is not the operation's.
pub fn resolve(namespace: &Namespace, view: &dyn View, collator: Option<&Collator>) -> Result<Resolved> {
    resolve_keeping(namespace, view, collator, false)
}

fn resolve_keeping(
    namespace: &Namespace,
    view: &dyn View,
    collator: Option<&Collator>,
    keep_written: bool,
) -> Result<Resolved> {
    let mut namespace = namespace.clone();
    let mut layers: Vec<Pipeline> = Vec::new();
    loop {
        let collection = view.catalog().collection(&namespace.db, &namespace.coll).cloned();
        let definition = collection.as_deref().and_then(|c| c.options.view.as_ref());
        let Some(definition) = definition else {
            let (mut stages, mut written) = (Vec::new(), Vec::new());
            for layer in layers.into_iter().rev() {
                stages.extend(layer.stages);
                written.extend(layer.written);
            }
            return Ok(Resolved {
                namespace,
                collection,
                stages,
                written,
            });
        };
        if layers.len() >= VIEW_DEPTH_MAX {
            return Err(Error::new(
                ErrorCode::ViewDepthLimitExceeded,
                format!("view depth too deep or view cycle detected; maximum depth is {VIEW_DEPTH_MAX}"),
            ));
        }
        let own = collection.as_deref().map(id_collation).transpose()?.flatten();
        if own.as_ref() != collator {
            return Err(Error::new(
                ErrorCode::OptionNotSupportedOnView,
                format!("the collation of the operation is not that of the view {namespace}"),
            ));
        }
        let base = Namespace::new(namespace.db.clone(), definition.on.clone());
        let mut scope = Scope::new().with_collator(own);
        let mut context = ParseContext::new(&mut scope, base.clone(), Place::View);
        context.keep_written = keep_written;
        layers.push(Pipeline::parse(definition.pipeline.as_ref(), &mut context)?);
        namespace = base;
    }
}

/// How a pipeline is read, views resolved: the find that does its first stages, and the stages that stay.
struct Prepared {
    collection: Option<Arc<Collection>>,
    context: PipelineSource,
    query: FindQuery,
    /// The plans of the find: one made for the `$group` after it, or its own candidates.
    plans: Vec<PlanNode>,
    /// The stages that stay on top of it.
    stages: Vec<StageNode>,
    /// Whether the indexes were restricted.
    restricted: bool,
}

/// Restricts the indexes that a query may use; true when it did.
pub type Restrict<'r> = &'r dyn Fn(&Namespace, &mut FindQuery) -> bool;

impl Prepared {
    fn new(
        resolved: Resolved,
        stages: &[Stage],
        written: &[Written],
        hint: &Hint,
        restrict: Restrict<'_>,
        context: &PipelineSource,
    ) -> Result<Self> {
        let mut stages = StageNode::all(stages, written);
        stages.splice(0..0, StageNode::all(&resolved.stages, &resolved.written));
        rewrite(&mut stages, context.rules);
        let mut query = into_find(&mut stages);
        query.collation.clone_from(&context.collator);
        hint.apply(&mut query);
        let restricted = restrict(&resolved.namespace, &mut query);
        let plans = match &resolved.collection {
            Some(collection) => {
                let indexes = indexes(collection)?;
                let unlimited = query.limit.is_none() && query.skip == 0;
                let free = unlimited && !restricted && *hint == Hint::default();
                let loose = match stages.first().and_then(StageNode::parsed) {
                    Some(Stage::Group(group)) if free => {
                        let order = query.sort.as_deref();
                        group_scan(&query.filter, order, group, query.collation.as_ref(), indexes)
                    }
                    _ => None,
                };
                match loose {
                    Some(plan) => vec![plan],
                    None => candidates(&query, indexes),
                }
            }
            None => Vec::new(),
        };
        Ok(Self {
            context: context.on(resolved.namespace),
            collection: resolved.collection,
            query,
            plans,
            stages,
            restricted,
        })
    }

    fn source(&mut self) -> Result<BoxOperator> {
        let plans = std::mem::take(&mut self.plans);
        match &self.collection {
            Some(collection) => run_one_of(plans, &self.query, shape::Written::default(), collection),
            None => Ok(Box::new(Eof::default())),
        }
    }
}

/// Plans a pipeline over a namespace, through views: its first stages become a find where they can.
pub fn plan_stages(
    namespace: &Namespace,
    stages: &[Stage],
    hint: &Hint,
    restrict: Restrict<'_>,
    view: &dyn View,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    let resolved = resolve(namespace, view, context.collator.as_ref())?;
    let mut prepared = Prepared::new(resolved, stages, &[], hint, restrict, context)?;
    let source = prepared.source()?;
    build_stages(&prepared.stages, source, &prepared.context)
}

/// A pipeline that is explained.
pub struct Explained {
    /// The collection at the bottom.
    pub namespace: Namespace,
    /// The find that does the first stages.
    pub query: FindQuery,
    /// The plans it could run by, the one that it does run by first; none without a collection.
    pub plans: Vec<PlanNode>,
    /// How they did on trial.
    pub tried: Vec<Tried>,
    /// Whether the indexes were restricted.
    pub restricted: bool,
    /// Stages that stay on top of the plan.
    pub stages: usize,
    /// The pipeline, each stage with a probe on top: read them with [`report`](super::report()).
    pub root: BoxOperator,
}

/// As [`plan_stages`], to be explained: it is decided which plan the pipeline runs by, whatever the plan cache has.
/// The pipeline has to have been parsed with its text.
pub fn explain_stages(
    namespace: &Namespace,
    pipeline: &Pipeline,
    hint: &Hint,
    restrict: Restrict<'_>,
    context: &PipelineSource,
    batch: &mut Batch<'_>,
) -> Result<Explained> {
    let resolved = resolve_keeping(namespace, batch.view, context.collator.as_ref(), true)?;
    let prepared = Prepared::new(resolved, &pipeline.stages, &pipeline.written, hint, restrict, context)?;
    let (mut plans, mut tried) = (Vec::new(), Vec::new());
    let source: BoxOperator = match &prepared.collection {
        Some(collection) => {
            let mut multi = MultiPlan::new(prepared.plans, prepared.query.limit, collection);
            while !multi.decide(batch)? {}
            plans = multi.ranked();
            tried = multi.tried().to_vec();
            Box::new(multi)
        }
        None => Box::new(Eof::default()),
    };
    let root = build_probed(&prepared.stages, source, &prepared.context)?;
    Ok(Explained {
        stages: prepared.stages.len(),
        namespace: prepared.context.namespace,
        query: prepared.query,
        plans,
        tried,
        restricted: prepared.restricted,
        root,
    })
}

/// The documents of a namespace that match `filter`, through views; none when it does not exist.
pub fn open(
    namespace: &Namespace,
    filter: Option<Arc<MatchExpr>>,
    view: &dyn View,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    let resolved = resolve(namespace, view, context.collator.as_ref())?;
    let all = || Arc::new(MatchExpr::AlwaysTrue);
    let through_views = !resolved.stages.is_empty();
    let source: BoxOperator = match &resolved.collection {
        None => Box::new(Eof::default()),
        Some(collection) => {
            let mut query = FindQuery::all(filter.clone().filter(|_| !through_views).unwrap_or_else(all));
            query.collation.clone_from(&context.collator);
            find(&query, shape::Written::default(), collection)?
        }
    };
    if !through_views {
        return Ok(source);
    }
    let mut stages = StageNode::all(&resolved.stages, &[]);
    stages.extend(filter.map(StageNode::matching));
    rewrite(&mut stages, context.rules);
    Ok(bounded(build_stages(&stages, source, &context.on(resolved.namespace))?))
}
