//! Opening a namespace as the source of a pipeline: collections, views, and nothing at all.

use super::depth::bounded;
use super::lower::lower;
use super::{ServerState, by_columns};
use crate::catalog::{id_collation, indexes, masked, refuse_guarded, refuse_log};
use crate::operator::BoxOperator;
use crate::plan_cache::PlanCache;
use crate::search::Searches;
use nestor_columns::Columns;
use nestor_model::statement::{ROW, work};
use nestor_model::{Namespace, Result};
use nestor_planner::find::Wanted;
use nestor_planner::pipeline::{self, Entry, Namespaces, PipelineQuery, Restrict};
use nestor_planner::plan::StageNode;
use nestor_planner::reuse::Reused;
use nestor_planner::rules::Rule;
use nestor_planner::shape::Written;
use nestor_planner::{FindQuery, Hint, Indexes, PlanNode};
use nestor_query::collation::Collator;
use nestor_query::env::Caller;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::Stage;
use nestor_storage::{Catalog, Collection, View};
use std::sync::{Arc, Weak};

/// The context in which stages open other sources.
#[derive(Clone)]
pub struct PipelineSource {
    /// The namespace the pipeline runs on.
    pub namespace: Namespace,
    /// The server's own state.
    pub server: Arc<dyn ServerState>,
    /// The operation's collation.
    pub collator: Option<Collator>,
    /// The rules that rewrite pipelines: [`RULES`](nestor_planner::rules::RULES), except in tests of them.
    pub rules: &'static [Rule],
    /// Where choices between plans are kept; `None` to choose anew each time.
    pub plans: Option<Arc<PlanCache>>,
    /// Documents of collections path by path; `None` to read them one by one.
    pub columns: Option<Arc<Columns>>,
    /// Search indexes; `None` where there are none.
    pub searches: Option<Arc<Searches>>,
    /// The user it is run for; `None` without access control.
    pub caller: Option<Arc<Caller>>,
    /// The catalog that the plan was made with which the stages are part of; none before there is a plan.
    pub planned_with: Weak<Catalog>,
}

impl PipelineSource {
    /// The same server, another namespace.
    pub fn on(&self, namespace: Namespace) -> Self {
        Self {
            namespace,
            server: self.server.clone(),
            collator: self.collator.clone(),
            rules: self.rules,
            plans: self.plans.clone(),
            columns: self.columns.clone(),
            searches: self.searches.clone(),
            caller: self.caller.clone(),
            planned_with: self.planned_with.clone(),
        }
    }

    /// The same for stages of a plan that was made with what `view` shows.
    pub(super) fn planned(&self, view: &dyn View) -> Self {
        Self {
            planned_with: Arc::downgrade(view.catalog()),
            ..self.clone()
        }
    }

    /// Whether a plan would be made with the same catalog now. The collections, indexes and views in it are those of `view` then.
    pub(super) fn is_current(&self, view: &dyn View) -> bool {
        std::ptr::eq(self.planned_with.as_ptr(), Arc::as_ptr(view.catalog()))
    }

    /// The namespaces of `view`, as the planner sees them.
    pub(super) fn named<'v>(&'v self, view: &'v dyn View) -> Named<'v> {
        Named {
            view,
            plans: self.plans.as_deref(),
            caller: self.caller.as_deref(),
        }
    }
}

/// The namespaces of a snapshot, as the planner sees them, and the plans that are kept.
pub(super) struct Named<'v> {
    pub(super) view: &'v dyn View,
    /// `None` to choose between all plans.
    pub(super) plans: Option<&'v PlanCache>,
    /// The user who reads; `None` without access control.
    pub(super) caller: Option<&'v Caller>,
}

impl Namespaces for Named<'_> {
    fn entry(&self, namespace: &Namespace) -> Result<Entry<'_>> {
        let Some(collection) = self.view.catalog().get(namespace) else {
            return Ok(Entry::Nothing);
        };
        match &collection.options.view {
            None => {
                refuse_log(self.view, collection, self.caller)?;
                refuse_guarded(collection, self.caller)?;
                Ok(Entry::Collection {
                    masking: masked(collection, self.caller)?.map(|masked| masked.masking.clone()),
                    buckets: collection.buckets().cloned().map(Arc::new),
                })
            }
            Some(view) => Ok(Entry::View {
                on: &view.on,
                pipeline: view.pipeline.as_ref(),
                collation: match collection.timeseries() {
                    Some(_) => None,
                    None => Some(id_collation(collection)?),
                },
            }),
        }
    }

    fn indexes(&self, namespace: &Namespace) -> Result<Option<&Indexes>> {
        let Some(collection) = self.view.catalog().get(namespace) else {
            return Ok(None);
        };
        match masked(collection, self.caller)? {
            Some(masked) => Ok(Some(&masked.indexes)),
            None => indexes(collection).map(Some),
        }
    }

    fn reuse(&self, namespace: &Namespace, query: &FindQuery, indexes: &Indexes) -> Option<Reused> {
        let collection = self.view.catalog().get(namespace)?;
        // Plans kept for others may use indexes that this caller's plans may not.
        if !matches!(masked(collection, self.caller), Ok(None)) {
            return None;
        }
        self.plans?
            .reuse(query, Wanted::Documents, Written::default(), collection, indexes)
    }
}

/// A namespace resolved through views.
pub struct Resolved {
    /// The namespace at the bottom.
    pub namespace: Namespace,
    /// Its collection, if it exists.
    pub collection: Option<Arc<Collection>>,
    /// The stages of the views, the innermost first.
    pub stages: Vec<StageNode>,
}

/// Resolves a namespace through its views. Errors as [`nestor_planner::pipeline::resolve`].
pub fn resolve(namespace: &Namespace, view: &dyn View, collator: Option<&Collator>) -> Result<Resolved> {
    let resolved = pipeline::resolve(
        namespace,
        &Named {
            view,
            plans: None,
            caller: None,
        },
        collator,
        false,
    )?;
    Ok(Resolved {
        collection: view.catalog().get(&resolved.namespace).cloned(),
        namespace: resolved.namespace,
        stages: resolved.stages,
    })
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
    let query = PipelineQuery {
        namespace: Some(namespace),
        stages: StageNode::all(stages, &[]),
        collation: context.collator.as_ref(),
        hint: Some(hint),
        restrict: Some(restrict),
        rules: context.rules,
        keeps_sort_keys: false,
        is_explained: false,
    };
    let plan = by_columns::choose(pipeline::plan(query, &context.named(view))?, view, context)?;
    lower(&plan, None, view, &context.planned(view))
}

/// The documents that `stages` make of a namespace, through views, or of the rows `given`; none when the namespace does not
/// exist.
pub(super) fn open(
    namespace: Option<&Namespace>,
    stages: Vec<StageNode>,
    given: Option<BoxOperator>,
    view: &dyn View,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    // Pipelines within others are opened over and over, also when they find nothing.
    work(2 * ROW)?;
    let query = PipelineQuery {
        namespace,
        stages,
        collation: context.collator.as_ref(),
        hint: None,
        restrict: None,
        rules: context.rules,
        // A stage behind this one may ask for the keys of a sort within.
        keeps_sort_keys: true,
        is_explained: false,
    };
    let plan = by_columns::choose(pipeline::plan(query, &context.named(view))?, view, context)?;
    lower_inner(&plan, given, view, &context.planned(view))
}

/// The operators of a pipeline within another, whose rows become part of those of the outer one.
pub(super) fn lower_inner(
    plan: &PlanNode,
    given: Option<BoxOperator>,
    view: &dyn View,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    let root = lower(plan, given, view, context)?;
    Ok(match plan {
        PlanNode::Find(_) | PlanNode::Given => root,
        _ => bounded(root),
    })
}

/// The documents of a namespace that match `filter`, through views; none when it does not exist.
pub(super) fn open_matching(
    namespace: &Namespace,
    filter: Arc<MatchExpr>,
    view: &dyn View,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    open(Some(namespace), vec![StageNode::matching(filter)], None, view, context)
}
