//! Which of its plans an explained query runs by.

use super::explain::Subject;
use crate::context::Context;
use crate::plans::trial_document;
use nestor_exec::plan_cache::Tried;
use nestor_exec::{Batch, MultiPlan};
use nestor_model::{Result, Value};
use nestor_planner::PlanNode;
use nestor_planner::reuse::signature;
use nestor_storage::{Collection, View};
use std::sync::Arc;

/// Lets the candidates of `subject` compete and brings them in the order of their ranks. An explained query is tried
/// whatever the plan cache has, and leaves no entry in it. `None` without a collection.
pub(super) fn decide(
    context: &Context<'_>,
    view: &dyn View,
    subject: &mut Subject,
    collection: Option<&Arc<Collection>>,
    batch: &mut Batch<'_>,
) -> Result<Option<MultiPlan>> {
    subject.look_up(context, view);
    let Some(collection) = collection else {
        return Ok(None);
    };
    let mut multi = MultiPlan::new(subject.plans.clone(), subject.limit, collection);
    while !multi.decide(batch)? {}
    subject.plans = multi.ranked();
    Ok(Some(multi))
}

impl Subject {
    /// Looks up what the plan cache has for queries of this shape.
    pub(super) fn look_up(&mut self, context: &Context<'_>, view: &dyn View) {
        let collection = view.catalog().get(&self.ns);
        let entry = collection.and_then(|c| context.service.plan_cache.peek(c, self.at.key));
        self.cached = entry
            .filter(|entry| entry.is_active)
            .map(|entry| entry.decision.solution.signature);
    }

    /// Whether queries of this shape run by that plan without a trial.
    pub(super) fn is_cached(&self, plan: &PlanNode) -> bool {
        self.cached.is_some_and(|cached| cached == signature(plan))
    }
}

/// `allPlansExecution`: how each candidate did on trial.
pub(super) fn all_plans(tried: &[Tried]) -> Vec<Value> {
    tried.iter().map(trial_document).map(Value::from).collect()
}
