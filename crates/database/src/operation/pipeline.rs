//! Pipelines: from text to a running plan, through views.

use super::{Operation, Piped};
use crate::read;
use crate::shape::Words;
use crate::statement::Statement;
use nestor_exec::BoxOperator;
use nestor_exec::pipeline::{PipelineSource, plan_stages, resolve};
use nestor_model::{Array, ArrayRef, Document, Namespace, Result, Value, ValueRef, bail};
use nestor_planner::FindQuery;
use nestor_planner::shape::Written;
use nestor_query::collation::Collator;
use nestor_query::env::Scope;
use nestor_query::stage::{ParseContext, Pipeline, Place};
use nestor_storage::View;
use std::sync::Weak;

/// The purpose that an operation is prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To run.
    Run,
    /// To be explained: its pipeline remembers how it was written.
    Explain,
}

/// Longest pipeline of a view, in bytes.
const VIEW_PIPELINE_BYTES_MAX: usize = 16_000_000;

/// The pipeline of a view that is being made or changed, as it is kept: without nulls, which stand for no stage.
///
/// Errors: those of parsing, 195 for long pipelines.
pub fn view_pipeline(pipeline: ArrayRef<'_>) -> Result<Array> {
    let kept: Array = pipeline
        .iter()
        .filter(|stage| !matches!(stage, ValueRef::Null))
        .map(ValueRef::to_value)
        .collect();
    let mut scope = Scope::new();
    let mut context = ParseContext::new(&mut scope, Namespace::new("view", "view"), Place::View);
    Pipeline::parse(kept.as_ref(), &mut context)?;
    let mut sized = Document::new();
    sized.push("pipeline", Value::Array(kept.clone()));
    if sized.to_raw().as_bytes().len() > VIEW_PIPELINE_BYTES_MAX {
        bail!(
            ViewPipelineMaxSizeExceeded,
            "View pipeline exceeds the maximum of {VIEW_PIPELINE_BYTES_MAX} bytes"
        );
    }
    Ok(kept)
}

/// A find, count or distinct on a view, as the stages of a pipeline on it.
pub fn stages_over_view(words: &Words<'_>, skip: u64, limit: Option<u64>) -> Result<Vec<Value>> {
    let mut stages: Vec<Value> = Vec::new();
    let mut stage = |name: &str, value: Value| {
        let mut doc = Document::new();
        doc.push(name, value);
        stages.push(doc.into());
    };
    if let Some(filter) = words.filter {
        stage("$match", filter.into());
    }
    if let Some(sort) = words.sort.filter(|sort| !sort.is_empty()) {
        // The natural order of a view is the one its pipeline gives.
        if read::natural(sort.as_doc())?.is_none() {
            stage("$sort", sort.into());
        }
    }
    let count = |n: u64| Value::from(i64::try_from(n).unwrap_or(i64::MAX));
    if skip > 0 {
        stage("$skip", count(skip));
    }
    if let Some(limit) = limit {
        stage("$limit", count(limit));
    }
    if let Some(projection) = words.projection.filter(|projection| !projection.is_empty()) {
        stage("$project", projection.into());
    }
    Ok(stages)
}

impl Statement<'_> {
    /// The source by which stages open other collections and read the server's state.
    pub fn pipeline_source(&self, ns: &Namespace, collator: Option<&Collator>) -> PipelineSource {
        PipelineSource {
            searches: Some(self.database.searches.clone()),
            columns: self.are_columns_used().then(|| self.database.columns.clone()),
            namespace: ns.clone(),
            server: self.database.state.clone(),
            collator: collator.cloned(),
            rules: nestor_planner::rules::RULES,
            plans: Some(self.database.plan_cache.clone()),
            caller: self.caller.clone(),
            planned_with: Weak::new(),
        }
    }

    /// Prepares `pipeline` on `ns`, which may be a view; strings compare by the scope's collator. The hint is for the
    /// collection at the bottom.
    pub fn prepare_pipeline(
        &self,
        view: &dyn View,
        ns: &Namespace,
        (pipeline, hint): (ArrayRef<'_>, Option<ValueRef<'_>>),
        scope: &mut Scope,
        purpose: Purpose,
    ) -> Result<Piped> {
        let mut parsing = ParseContext::new(scope, ns.clone(), Place::Top);
        parsing.keep_written = purpose == Purpose::Explain;
        let pipeline = Pipeline::parse(pipeline, &mut parsing)?;
        let bottom = resolve(ns, view, scope.collator())?.collection;
        let at = view.catalog().get(ns).map(|at| &**at);
        Ok(Piped {
            pipeline,
            hint: read::check_hint_at(hint, at, bottom.as_deref())?,
            bottom,
            bypass_validation: false,
        })
    }

    /// Plans the pipeline of `operation`, views included.
    pub fn open_pipeline(&self, view: &dyn View, operation: &Operation<'_>, piped: &Piped) -> Result<BoxOperator> {
        let ns = operation.ns();
        let mut source = self.pipeline_source(ns, operation.op.collator.as_ref());
        source.server = self.server_state(view, ns, &piped.pipeline)?;
        let restrict = |ns: &Namespace, query: &mut FindQuery| self.restrict_indexes(ns, query, Written::default());
        plan_stages(ns, &piped.pipeline.stages, &piped.hint, &restrict, view, &source)
    }

    /// As [`Statement::restrict_indexes`], for the query of a prepared operation.
    pub fn restrict(&self, operation: &mut Operation<'_>) -> bool {
        let written = operation.shape.words.written();
        let ns = operation.shape.ns.clone();
        let query = operation.query_mut();
        query.is_some_and(|query| self.restrict_indexes(&ns, query, written))
    }
}
