//! The inner side of an equality join, planned once for all outer documents.
//!
//! With a value `v` of an outer document the inner query is `{foreign: v, ...}`. Its plan is the same for all values that have
//! one point as bounds of an index part, whatever that point is; so it is made without the value, and the value is bound to it
//! for each outer document. Which values those are: see [`EqualityPlan::binds`].

use super::inner::Allowance;
use super::physical::unchecked;
use super::{Namespaces, PipelineQuery, resolve};
use crate::catalog::PartKind;
use crate::choose::candidates;
use crate::find::FindQuery;
use crate::plan::{EqualityAccess, EqualityPlan, IndexScan, PlanNode, ScanPurpose, StageNode};
use crate::rules::{fields_read, rewrite};
use nestor_model::{Namespace, Path, Result};
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::Stage;
use std::sync::Arc;

/// The plan of `query`, whose documents have to equal a value at `foreign` first of all. `None` when values make other plans,
/// or other conditions make better ones: then the query has to be planned with each value.
///
/// Errors: those of [`plan`](super::plan()).
pub(super) fn equality_plan(
    mut query: PipelineQuery<'_>,
    foreign: &Path,
    namespaces: &dyn Namespaces,
    allowance: &Allowance,
) -> Result<Option<EqualityPlan>> {
    let Some(namespace) = query.namespace else {
        return Ok(None);
    };
    let resolved = resolve(namespace, namespaces, query.collation, query.is_explained)?;
    if !resolved.exists || !resolved.stages.is_empty() {
        return Ok(None);
    }
    rewrite(&mut query.stages, query.rules);
    let filter = leading_filter(&mut query.stages);
    let limit = match query.stages.first().and_then(StageNode::parsed) {
        Some(Stage::Limit(limit)) => Some(*limit),
        _ => None,
    };
    query.stages.drain(..usize::from(limit.is_some()));
    let namespace = resolved.namespace;
    let Some(access) = access(foreign, filter.as_deref(), &query, &namespace, namespaces)? else {
        return Ok(None);
    };
    let collation = query.collation.cloned();
    query.namespace = None;
    let rest = match query.stages.is_empty() {
        true => None,
        false => Some(unchecked(query, namespaces, allowance)?),
    };
    Ok(Some(EqualityPlan {
        namespace,
        access,
        filter,
        limit,
        rest,
        collation,
    }))
}

/// The condition that the first stages are, taken out.
fn leading_filter(stages: &mut Vec<StageNode>) -> Option<Arc<MatchExpr>> {
    let mut conditions = Vec::new();
    while let Some(filter) = stages.first().and_then(StageNode::filter) {
        conditions.push((**filter).clone());
        stages.remove(0);
    }
    match MatchExpr::And(conditions).normalize() {
        MatchExpr::AlwaysTrue => None,
        filter => Some(Arc::new(filter)),
    }
}

/// How documents with a value at `foreign` are found, if that does not depend on the value or on `filter`.
fn access(
    foreign: &Path,
    filter: Option<&MatchExpr>,
    query: &PipelineQuery<'_>,
    namespace: &Namespace,
    namespaces: &dyn Namespaces,
) -> Result<Option<EqualityAccess>> {
    // An order that an index might give.
    if query.stages.first().is_some_and(|stage| stage.sort().is_some()) {
        return Ok(None);
    }
    // Another condition on the field, which would bound it as well.
    let conditions = match filter {
        Some(MatchExpr::And(all)) => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let is_about = |condition| fields_read(condition).is_some_and(|fields| fields.iter().any(|f| f == foreign.head()));
    if conditions.iter().any(is_about) {
        return Ok(None);
    }
    let Some(indexes) = namespaces.indexes(namespace)? else {
        return Ok(None);
    };
    // Any number will do: it is one point in every index.
    let equal = MatchExpr::eq(foreign.clone(), 1);
    let all = std::iter::once(equal).chain(filter.cloned());
    let mut find = FindQuery::all(Arc::new(MatchExpr::And(all.collect()).normalize()));
    find.collation = query.collation.cloned();
    let plans = candidates(&find, indexes);
    if let [PlanNode::IdLookup(_)] = plans.as_slice() {
        // Otherwise another condition asks for one `_id`.
        let by_value = foreign.as_str() == "_id";
        return Ok(by_value.then(|| EqualityAccess::Id(indexes.id_collation.clone())));
    }
    let scans: Option<Vec<&IndexScan>> = plans.iter().map(|plan| by_first_part(plan, foreign, filter)).collect();
    let first = scans.as_ref().and_then(|scans| scans.first());
    Ok(first.map(|scan| EqualityAccess::Index(scan.index.clone())))
}

/// The scan of a plan, if it is bounded by the value at `foreign` and nothing else, and may serve for any other value.
fn by_first_part<'p>(plan: &'p PlanNode, foreign: &Path, filter: Option<&MatchExpr>) -> Option<&'p IndexScan> {
    let PlanNode::Fetch { input, .. } = plan else {
        return None;
    };
    let PlanNode::IndexScan(scan) = &**input else {
        return None;
    };
    let (index, bounds) = (&scan.index, &scan.bounds.parts);
    let first = index.parts.first()?;
    let by_value = first.path == *foreign && first.kind != PartKind::Derived && bounds.first()?.is_point();
    let by_nothing_else = bounds.iter().skip(1).all(|list| list.is_all()) && scan.key_filter.is_none();
    // A filter of the index must not hold because of the value.
    let has_all = match (&index.partial, filter) {
        (None, _) => true,
        (Some(partial), Some(filter)) => crate::access::implies(filter, partial),
        (Some(_), None) => false,
    };
    let usable = by_value && by_nothing_else && has_all && !index.kind.needs_condition();
    (usable && scan.purpose == ScanPurpose::Entries).then_some(scan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::IndexInfo;
    use crate::pipeline::testing::{OneCollection, index as index_with, query};
    use nestor_model::Value;
    use nestor_model::{Array, Document, doc};

    fn index(paths: &[&str]) -> IndexInfo {
        index_with(paths.len() as u32, paths, &[], None)
    }

    fn plan_of(indexes: Vec<IndexInfo>, stages: &str, foreign: &str) -> Option<EqualityPlan> {
        let namespace = Namespace::new("test", "c");
        let query = query(&namespace, stages);
        equality_plan(
            query,
            &Path::new(foreign),
            &OneCollection::with(indexes),
            &Allowance::new(),
        )
        .expect("a plan or none")
    }

    fn shown(indexes: Vec<IndexInfo>, stages: &str, foreign: &str) -> String {
        let Some(plan) = plan_of(indexes, stages, foreign) else {
            return "none".into();
        };
        let access = match &plan.access {
            EqualityAccess::Id(_) => "_id",
            EqualityAccess::Index(index) => &index.name,
        };
        let filter = if plan.filter.is_some() { " filter" } else { "" };
        let limit = if plan.limit.is_some() { " limit" } else { "" };
        let rest = if plan.rest.is_some() { " rest" } else { "" };
        format!("{access}{filter}{limit}{rest}")
    }

    #[test]
    fn plans_do_not_depend_on_the_value() {
        let partial = index_with(1, &["a"], &[], Some(doc! { "a": 1 }));
        for (indexes, stages, foreign, expected) in [
            (vec![index(&["a"])], "[]", "a", "a"),
            (vec![index(&["a"])], "[]", "_id", "_id"),
            (
                vec![index(&["a"])],
                r#"[{"$match":{"c":1}},{"$limit":3}]"#,
                "a",
                "a filter limit",
            ),
            (
                vec![index(&["a"])],
                r#"[{"$unwind":"$x"},{"$match":{"c":1}}]"#,
                "a",
                "a filter rest",
            ),
            (vec![index(&["a", "b"])], "[]", "a", "a_b"),
            (vec![], "[]", "a", "none"),
            (vec![index(&["b", "a"])], "[]", "a", "none"),
            (vec![partial], "[]", "a", "none"),
            // Here other conditions have a say, or an order that the index has.
            (vec![index(&["a", "b"])], r#"[{"$match":{"b":1}}]"#, "a", "none"),
            (
                vec![index(&["a"]), index(&["b"])],
                r#"[{"$match":{"b":1}}]"#,
                "a",
                "none",
            ),
            (vec![index(&["a"])], r#"[{"$match":{"a":{"$in":[1,2]}}}]"#, "a", "none"),
            (
                vec![index(&["a", "b"])],
                r#"[{"$sort":{"b":1}},{"$limit":1}]"#,
                "a",
                "none",
            ),
            (vec![index(&["a"])], r#"[{"$match":{"_id":1}}]"#, "a", "none"),
        ] {
            assert_eq!(shown(indexes, stages, foreign), expected, "{stages} {foreign}");
        }
    }

    #[test]
    fn values_that_are_one_point_are_bound() {
        let plan = plan_of(vec![index(&["a"])], "[]", "a").expect("a plan");
        for (value, expected) in [
            (Value::from(5), true),
            (Value::from("x"), true),
            (Value::from(f64::NAN), true),
            (Value::Document(Document::new()), true),
            (Value::MinKey, true),
            (Value::Null, false),
            (Value::Undefined, false),
            (Value::Array(Array::new(Vec::new())), false),
        ] {
            assert_eq!(plan.binds(&value), expected, "{value:?}");
        }
    }
}
