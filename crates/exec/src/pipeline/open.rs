//! Opening a namespace as the source of a pipeline: collections, views, and nothing at all.

use super::{ServerState, build_stages};
use crate::build::build as build_plan;
use crate::catalog::{indexes, plan};
use crate::operator::BoxOperator;
use crate::ops::Eof;
use nestor_model::{Error, ErrorCode, Namespace, Result, ValueRef};
use nestor_planner::pipeline::{group_scan, split};
use nestor_planner::{FindQuery, Hint, plan_find};
use nestor_query::Scope;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::{ParseContext, Pipeline, Place, Stage};
use nestor_storage::{Collection, View};
use std::sync::Arc;

/// Views on views at most.
const VIEW_DEPTH_MAX: usize = 20;

/// What stages need to open other sources.
#[derive(Clone)]
pub struct PipelineSource {
    /// The namespace the pipeline runs on.
    pub namespace: Namespace,
    /// The server's own state.
    pub server: Arc<dyn ServerState>,
}

impl PipelineSource {
    /// The same server, another namespace.
    pub fn on(&self, namespace: Namespace) -> Self {
        Self {
            namespace,
            server: self.server.clone(),
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
}

/// Resolves a namespace through its views.
///
/// Error: 165 when views are nested too deep.
pub fn resolve(namespace: &Namespace, view: &dyn View) -> Result<Resolved> {
    let mut namespace = namespace.clone();
    let mut layers: Vec<Vec<Stage>> = Vec::new();
    loop {
        let collection = view.catalog().collection(&namespace.db, &namespace.coll).cloned();
        let definition = collection.as_deref().and_then(view_definition);
        let Some((on, pipeline)) = definition else {
            let stages = layers.into_iter().rev().flatten().collect();
            return Ok(Resolved {
                namespace,
                collection,
                stages,
            });
        };
        if layers.len() >= VIEW_DEPTH_MAX {
            return Err(Error::new(
                ErrorCode::ViewDepthLimitExceeded,
                format!("view depth too deep or view cycle detected; maximum depth is {VIEW_DEPTH_MAX}"),
            ));
        }
        let base = Namespace::new(namespace.db.clone(), on);
        let mut scope = Scope::new();
        let mut context = ParseContext::new(&mut scope, base.clone(), Place::View);
        layers.push(Pipeline::parse(pipeline, &mut context)?.stages);
        namespace = base;
    }
}

/// `viewOn` and `pipeline` of a view.
fn view_definition(collection: &Collection) -> Option<(&str, nestor_model::ArrayRef<'_>)> {
    let on = collection.options.get("viewOn")?.as_str()?;
    match collection.options.get("pipeline") {
        Some(ValueRef::Array(pipeline)) => Some((on, pipeline)),
        _ => Some((on, nestor_model::ArrayRef::Items(&[]))),
    }
}

/// Plans a pipeline over a namespace, through views: its first stages become a find where they can.
pub fn plan_stages(
    namespace: &Namespace,
    stages: &[Stage],
    hint: &Hint,
    view: &dyn View,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    let resolved = resolve(namespace, view)?;
    let context = context.on(resolved.namespace);
    let all: Vec<Stage> = resolved.stages.into_iter().chain(stages.iter().cloned()).collect();
    let Some(collection) = &resolved.collection else {
        return build_stages(&all, Box::new(Eof::default()), &context);
    };
    let (mut query, done) = split(&all);
    hint.apply(&mut query);
    let indexes = indexes(collection)?;
    let unlimited = query.limit.is_none() && query.skip == 0;
    let free = unlimited && *hint == Hint::default();
    if let (Some(Stage::Group(group)), true) = (all.get(done), free) {
        if let Some(plan) = group_scan(
            &query.filter,
            query.sort.as_deref(),
            group,
            query.collation.as_ref(),
            &indexes,
        ) {
            return build_stages(&all[done..], build_plan(&plan, collection)?, &context);
        }
    }
    let source = build_plan(&plan_find(&query, &indexes)?, collection)?;
    build_stages(&all[done..], source, &context)
}

/// The documents of a namespace that match `filter`, through views; none when it does not exist.
pub fn open(
    namespace: &Namespace,
    filter: Option<Arc<MatchExpr>>,
    view: &dyn View,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    let resolved = resolve(namespace, view)?;
    let all = || Arc::new(MatchExpr::AlwaysTrue);
    let through_views = !resolved.stages.is_empty();
    let source: BoxOperator = match &resolved.collection {
        None => Box::new(Eof::default()),
        Some(collection) => {
            let query = FindQuery::all(filter.clone().filter(|_| !through_views).unwrap_or_else(all));
            build_plan(&plan(&query, collection)?, collection)?
        }
    };
    if !through_views {
        return Ok(source);
    }
    let mut stages = resolved.stages;
    stages.extend(filter.map(Stage::Match));
    build_stages(&stages, source, &context.on(resolved.namespace))
}
