//! Index filters and entries of the plan cache as clients see them.

use nestor_exec::plan_cache::{CachedPlan, CreatedFrom, Tried};
use nestor_model::{Document, Str, Value, doc};
use nestor_planner::explain::plan_document;
use nestor_planner::find::AllowedIndex;
use nestor_planner::shape::hash_text;

/// A name or a key pattern as it was given.
pub fn shown(index: &AllowedIndex) -> Value {
    match index {
        AllowedIndex::Name(name) => Value::String(Str::clone(name)),
        AllowedIndex::KeyPattern(pattern) => pattern.clone().into(),
    }
}

/// An entry of the plan cache as `$planCacheStats` shows it.
pub fn cache_entry(entry: &CachedPlan, host: &str) -> Document {
    let decision = &*entry.decision;
    let shape = hash_text(decision.at.shape);
    let CreatedFrom {
        query,
        sort,
        projection,
        collation,
    } = &decision.query;
    let mut created_from = doc! { "query": query.clone(), "sort": sort.clone(), "projection": projection.clone() };
    if !collation.is_empty() {
        created_from.push("collation", collation.clone());
    }
    let scores: Vec<Value> = decision.tried.iter().filter_map(|t| t.score).map(Value::from).collect();
    doc! {
        "version": "1",
        "queryHash": shape.as_str(),
        "planCacheShapeHash": shape.as_str(),
        "planCacheKey": hash_text(decision.at.key),
        "isActive": entry.is_active,
        "works": entry.works as i64,
        "timeOfCreation": Value::DateTime(decision.created_ms),
        "createdFromQuery": created_from,
        "cachedPlan": plan_document(&decision.plan),
        "creationExecStats": decision.tried.iter().map(trial_document).map(Value::from).collect::<Vec<_>>(),
        "candidatePlanScores": scores,
        "indexFilterSet": decision.index_filter_set,
        "estimatedSizeBytes": entry.bytes as i64,
        "solutionHash": decision.solution.signature as i64,
        "host": host,
    }
}

/// How a candidate did on trial, as explain's `allPlansExecution` shows it.
pub fn trial_document(tried: &Tried) -> Document {
    let figures = &tried.figures;
    let mut out = doc! {
        "nReturned": tried.done.advanced as i32,
        "executionTimeMillisEstimate": (tried.micros / 1000) as i32,
        "totalKeysExamined": figures.keys_examined() as i32,
        "totalDocsExamined": figures.docs_examined() as i32,
    };
    match tried.score {
        Some(score) => out.push("score", score),
        None => out.push("failed", true),
    }
    out.push("executionStages", figures.document());
    out
}
