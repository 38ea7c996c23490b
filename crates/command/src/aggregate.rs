//! Pipelines: from text to a running plan, through views.

use crate::Context;

use crate::read;
use nestor_exec::BoxOperator;
use nestor_exec::pipeline::{PipelineSource, plan_stages, resolve};
use nestor_model::{ArrayRef, Namespace, Result, ValueRef};
use nestor_planner::FindQuery;
use nestor_planner::shape::Written;
use nestor_query::collation::Collator;
use nestor_query::env::Scope;
use nestor_query::stage::{ParseContext, Pipeline, Place};
use nestor_storage::{CollectionId, View};

/// A plan that is ready to run.
pub struct Running {
    /// Its root.
    pub root: BoxOperator,
    /// The collection it reads, if any.
    pub collection: Option<(CollectionId, Namespace)>,
    /// The pipeline, for its last stage if that writes.
    pub pipeline: Pipeline,
}

/// Checks the pipeline of a view that is being made.
pub fn check_view_pipeline(pipeline: ArrayRef<'_>) -> Result<()> {
    let mut scope = Scope::new();
    let mut context = ParseContext::new(&mut scope, Namespace::new("view", "view"), Place::View);
    Pipeline::parse(pipeline, &mut context)?;
    Ok(())
}

impl Context<'_> {
    /// What stages need to open other collections and to read the server's state.
    pub fn pipeline_source(&self, ns: &Namespace, collator: Option<&Collator>) -> PipelineSource {
        PipelineSource {
            namespace: ns.clone(),
            server: self.service.state.clone(),
            collator: collator.cloned(),
        }
    }

    /// Parses and plans `pipeline` over `ns`, views included; strings compare by the scope's collator.
    pub fn plan_pipeline(
        &self,
        view: &dyn View,
        ns: &Namespace,
        pipeline: ArrayRef<'_>,
        scope: &mut Scope,
    ) -> Result<Running> {
        self.plan_pipeline_hinted(view, ns, pipeline, scope, None)
    }

    /// As [`Context::plan_pipeline`], with a hint for the collection at the bottom.
    pub fn plan_pipeline_hinted(
        &self,
        view: &dyn View,
        ns: &Namespace,
        pipeline: ArrayRef<'_>,
        scope: &mut Scope,
        hint: Option<ValueRef<'_>>,
    ) -> Result<Running> {
        let pipeline = Pipeline::parse(pipeline, &mut ParseContext::new(scope, ns.clone(), Place::Top))?;
        let source = self.pipeline_source(ns, scope.collator());
        let collection = resolve(ns, view, scope.collator())?.collection;
        let hint = read::check_hint(hint, collection.as_deref())?;
        let collection = collection.map(|c| (c.id, c.ns.clone()));
        let restrict = |ns: &Namespace, query: &mut FindQuery| self.restrict_indexes(ns, query, Written::default());
        let root = plan_stages(ns, &pipeline.stages, &hint, &restrict, view, &source)?;
        Ok(Running {
            root,
            collection,
            pipeline,
        })
    }
}
