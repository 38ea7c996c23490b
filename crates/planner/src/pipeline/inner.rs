//! The plans of pipelines that stages run: `$lookup`, `$graphLookup`, `$unionWith`, `$facet` and `$rankFusion`.
//!
//! They are part of the tree of the outer pipeline and are planned with it. What depends on an outer document is bound when that
//! is known: variables are values of the operation, and the value of an equality is bound to an [`EqualityPlan`](crate::plan::EqualityPlan). Only where
//! values decide which plan is best ([`InnerPlan::ByValue`]) is one made for each of them.
//!
//! Views that join views would make a tree that grows with the power of their number. Therefore a tree has
//! [`INNER_PLANS_MAX`] pipelines over other namespaces at most; those beyond that are planned when their rows are wanted. The
//! same is done with those that were planned with another version of the catalog than the one they run on.

use super::join::equality_plan;
use super::physical::unchecked;
use super::{Namespaces, PipelineQuery, resolve};
use crate::check::check_inner;
use crate::plan::{InnerPlan, StageNode, StageOp};
use nestor_model::{Namespace, Path, Result};
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::{GraphLookup, Lookup, Stage};
use std::cell::Cell;
use std::sync::Arc;

/// Pipelines over other namespaces that are planned with one outer pipeline, those within them included.
pub const INNER_PLANS_MAX: u32 = 100;

/// How many pipelines over other namespaces may still be planned.
pub(super) struct Allowance(Cell<u32>);

impl Allowance {
    /// The allowance of a whole tree.
    pub(super) fn new() -> Self {
        Self(Cell::new(INNER_PLANS_MAX))
    }

    /// Takes one, if there is one left.
    fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

/// The stages of a `$lookup`'s pipeline. `filter` is a condition on the matches beside those of the stage.
pub fn lookup_stages(lookup: &Lookup, filter: Option<&Arc<MatchExpr>>) -> Vec<StageNode> {
    let mut stages = StageNode::all(&lookup.pipeline.stages, &lookup.pipeline.written);
    stages.extend(filter.cloned().map(StageNode::matching));
    stages
}

/// The condition on the documents that a `$graphLookup` finds, as a stage.
pub fn graph_stages(graph: &GraphLookup) -> Vec<StageNode> {
    let restrict = graph.restrict.iter();
    restrict
        .map(|filter| StageNode::matching(Arc::new(filter.clone().normalize())))
        .collect()
}

/// Plans the pipeline of a `$lookup` or `$unionWith`, or how a `$graphLookup` reads, on its own. `foreign`: the field that has to equal a value of each outer
/// document first of all. The plan is checked.
///
/// Errors: those of [`plan`](super::plan()).
pub fn inner_plan(query: PipelineQuery<'_>, foreign: Option<&Path>, namespaces: &dyn Namespaces) -> Result<InnerPlan> {
    let plan = over_namespace(query, foreign, namespaces, &Allowance::new())?;
    check_inner(&plan)?;
    Ok(plan)
}

/// Plans what a stage of the pipeline `outer` runs, if that is anything; also `None` when the allowance is used up.
pub(super) fn of_stage(
    node: &StageNode,
    outer: &PipelineQuery<'_>,
    namespaces: &dyn Namespaces,
    allowance: &Allowance,
) -> Result<Option<InnerPlan>> {
    let like_outer = |namespace, stages| PipelineQuery {
        namespace,
        stages,
        hint: None,
        restrict: None,
        // A stage behind this one may ask for the keys of a sort within.
        keeps_sort_keys: true,
        ..*outer
    };
    let (namespace, foreign, stages): (Option<&Namespace>, _, _) = match &node.op {
        StageOp::Parsed(Stage::Facet(facet)) => {
            let plans = facet.pipelines.iter().map(|(name, pipeline)| {
                let query = like_outer(None, StageNode::all(&pipeline.stages, &pipeline.written));
                Ok((name.clone(), unchecked(query, namespaces, allowance)?))
            });
            return Ok(Some(InnerPlan::Facets(plans.collect::<Result<_>>()?)));
        }
        StageOp::Parsed(Stage::Fusion(fusion)) => {
            let namespace = outer.namespace.map(|_| &fusion.namespace);
            // Views that rank views would make as large a tree as those that join them.
            if namespace.is_some() && !fusion.inputs.iter().all(|_| allowance.take()) {
                return Ok(None);
            }
            let plans = fusion.inputs.iter().map(|input| {
                let query = like_outer(
                    namespace,
                    StageNode::all(&input.pipeline.stages, &input.pipeline.written),
                );
                Ok((input.name.clone(), unchecked(query, namespaces, allowance)?))
            });
            let plans = plans.collect::<Result<_>>()?;
            return Ok(Some(match namespace {
                Some(_) => InnerPlan::Inputs(plans),
                None => InnerPlan::Facets(plans),
            }));
        }
        StageOp::Parsed(Stage::Lookup(lookup)) => (
            lookup.from.as_ref(),
            lookup.join.as_ref().map(|join| &join.foreign),
            lookup_stages(lookup, None),
        ),
        StageOp::LookupUnwind(join) => (
            join.lookup.from.as_ref(),
            join.lookup.join.as_ref().map(|join| &join.foreign),
            lookup_stages(&join.lookup, join.filter.as_ref()),
        ),
        StageOp::Parsed(Stage::GraphLookup(graph)) => (Some(&graph.from), Some(&graph.connect_to), graph_stages(graph)),
        StageOp::Parsed(Stage::UnionWith(union)) => (
            union.coll.as_ref(),
            None,
            StageNode::all(&union.pipeline.stages, &union.pipeline.written),
        ),
        _ => return Ok(None),
    };
    match allowance.take() {
        true => over_namespace(like_outer(namespace, stages), foreign, namespaces, allowance).map(Some),
        false => Ok(None),
    }
}

fn over_namespace(
    query: PipelineQuery<'_>,
    foreign: Option<&Path>,
    namespaces: &dyn Namespaces,
    allowance: &Allowance,
) -> Result<InnerPlan> {
    let Some(foreign) = foreign else {
        return Ok(InnerPlan::Whole(unchecked(query, namespaces, allowance)?));
    };
    let Some(from) = query.namespace else {
        return Ok(InnerPlan::ByValue);
    };
    let with_stages = |namespace, stages| PipelineQuery {
        namespace,
        stages,
        ..query
    };
    let copy = with_stages(query.namespace, query.stages.clone());
    if let Some(plan) = equality_plan(copy, foreign, namespaces, allowance)? {
        return Ok(InnerPlan::Equality(Arc::new(plan)));
    }
    if may_be_found(from, foreign, &query, namespaces)? {
        return Ok(InnerPlan::ByValue);
    }
    Ok(InnerPlan::Table {
        source: unchecked(with_stages(Some(from), Vec::new()), namespaces, allowance)?,
        rest: match query.stages.is_empty() {
            true => None,
            false => Some(unchecked(with_stages(None, query.stages), namespaces, allowance)?),
        },
    })
}

/// Whether some values of a field may be found without reading everything: by an index that starts with the field and compares
/// as the query does, or because there is nothing to read.
fn may_be_found(
    from: &Namespace,
    foreign: &Path,
    query: &PipelineQuery<'_>,
    namespaces: &dyn Namespaces,
) -> Result<bool> {
    let resolved = resolve(from, namespaces, query.collation, false)?;
    if !resolved.stages.is_empty() {
        return Ok(false);
    }
    let Some(indexes) = namespaces.indexes(&resolved.namespace)? else {
        return Ok(true);
    };
    Ok(indexes.iter().any(|index| {
        let first = index.key_pattern.iter().next();
        first.is_some_and(|(name, _)| name == foreign.as_str()) && index.collation.as_ref() == query.collation
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlanNode;
    use crate::catalog::Indexes;
    use crate::pipeline::testing::{OneCollection, index, query};
    use crate::pipeline::{Entry, plan};
    use nestor_model::{Document, RawDocBuf, Value, doc};

    fn shown(inner: Option<&InnerPlan>) -> String {
        match inner {
            None => "none".into(),
            Some(InnerPlan::Whole(plan)) => format!("whole({})", tree(plan)),
            Some(InnerPlan::Equality(plan)) => format!("equality({})", plan.rest.as_ref().map_or("-".into(), tree)),
            Some(InnerPlan::Table { source, rest }) => {
                format!("table({}, {})", tree(source), rest.as_ref().map_or("-".into(), tree))
            }
            Some(InnerPlan::ByValue) => "by value".into(),
            Some(InnerPlan::Facets(facets) | InnerPlan::Inputs(facets)) => {
                let facets: Vec<String> = facets
                    .iter()
                    .map(|(name, plan)| format!("{name}: {}", tree(plan)))
                    .collect();
                format!("facets({})", facets.join(", "))
            }
        }
    }

    /// The source of a plan and what its stages run.
    fn tree(plan: &PlanNode) -> String {
        let PlanNode::Pipeline(pipeline) = plan else {
            return plan.stage().into();
        };
        let stages = pipeline.stages.iter().map(|stage| match &stage.inner {
            None => stage.node.kind().name().into(),
            inner => shown(inner.as_deref()),
        });
        let stages: Vec<String> = stages.collect();
        format!("{} > {}", pipeline.source.stage(), stages.join(" > "))
    }

    fn planned(stages: &str) -> String {
        let namespace = Namespace::new("test", "c");
        let indexes = vec![index(1, &["a"], &[], None)];
        tree(&plan(query(&namespace, stages), &OneCollection::with(indexes)).expect("a plan"))
    }

    #[test]
    fn one_tree_has_the_plans_of_all_pipelines() {
        let union = r#"[{"$unionWith": {"coll": "d", "pipeline": [{"$group": {"_id": "$b"}}]}}]"#;
        assert_eq!(planned(union), "MULTI_PLAN > whole(MULTI_PLAN > $group)");
        let indexed = r#"[{"$lookup": {"from": "d", "localField": "x", "foreignField": "a", "as": "m"}}]"#;
        assert_eq!(planned(indexed), "MULTI_PLAN > equality(-)");
        let table = indexed.replace(r#""a""#, r#""b""#);
        assert_eq!(planned(&table), "MULTI_PLAN > table(MULTI_PLAN, -)");
        let graph = r#"[{"$graphLookup": {"from": "d", "startWith": "$x", "connectFromField": "p", "connectToField": "a", "as": "m"}}]"#;
        assert_eq!(planned(graph), "MULTI_PLAN > equality(-)");
        let table = graph.replace(r#""a""#, r#""b""#);
        assert_eq!(planned(&table), "MULTI_PLAN > table(MULTI_PLAN, -)");
        let nested = format!(
            r#"[{{"$lookup": {{"from": "d", "pipeline": [{{"$limit": 3}}, {}], "as": "m"}}}}]"#,
            &indexed[1..indexed.len() - 1]
        );
        assert_eq!(planned(&nested), "MULTI_PLAN > whole(MULTI_PLAN > equality(-))");
        let facet = format!(r#"[{{"$facet": {{"f": {indexed}, "g": [{{"$skip": 1}}]}}}}]"#);
        assert_eq!(
            planned(&facet),
            "MULTI_PLAN > facets(f: QUEUED_DATA > equality(-), g: QUEUED_DATA > SKIP)"
        );
    }

    #[test]
    fn ranked_pipelines_read_what_the_stage_is_on() {
        let ranked = |stages: &str| {
            format!(
                r#"{{"$rankFusion": {{"input": {{"pipelines": {{"p": {stages}, "q": [{{"$sort": {{"b": 1}}}}]}}}}}}}}"#
            )
        };
        let first = ranked(r#"[{"$sort": {"a": 1}}, {"$sample": {"size": 2}}]"#);
        assert_eq!(
            planned(&format!(r#"[{first}, {{"$limit": 1}}]"#)),
            "EOF > facets(p: MULTI_PLAN > $sample, q: MULTI_PLAN) > LIMIT"
        );
        let within = ranked(r#"[{"$sort": {"a": 1}}]"#);
        assert_eq!(
            planned(&format!(r#"[{{"$facet": {{"f": [{within}]}}}}]"#)),
            "MULTI_PLAN > facets(f: QUEUED_DATA > facets(p: QUEUED_DATA > SORT, q: QUEUED_DATA > SORT))"
        );
    }

    #[test]
    fn metadata_has_to_come_from_somewhere() {
        let ranked = |details: bool| {
            format!(
                r#"{{"$rankFusion": {{"input": {{"pipelines": {{"p": [{{"$sort": {{"a": 1}}}}]}}}}, "scoreDetails": {details}}}}}"#
            )
        };
        let asked = |name: &str| format!(r#"{{"$project": {{"m": {{"$meta": "{name}"}}}}}}"#);
        let group = r#"{"$group": {"_id": "$a"}}"#;
        for (stages, is_good) in [
            (format!("[{}, {}]", ranked(false), asked("score")), true),
            (format!("[{}, {}]", ranked(false), asked("scoreDetails")), false),
            (format!("[{}, {}]", ranked(true), asked("scoreDetails")), true),
            (format!("[{}, {}]", ranked(true), asked("searchScore")), true),
            (format!("[{group}, {}]", asked("score")), true),
            (format!("[{}]", asked("score")), false),
            (format!("[{}]", asked("vectorSearchScore")), true),
            (r#"[{"$sort": {"s": {"$meta": "score"}}}]"#.to_string(), false),
        ] {
            let namespace = Namespace::new("test", "c");
            let plan = plan(query(&namespace, &stages), &OneCollection::with(Vec::new()));
            let code = plan.err().map(|error| error.code().number());
            assert_eq!(code, (!is_good).then_some(40218), "{stages}");
        }
    }

    /// Each view joins the next one twice.
    struct Views(RawDocBuf);

    impl Namespaces for Views {
        fn entry(&self, namespace: &Namespace) -> Result<Entry<'_>> {
            let level = namespace
                .coll
                .strip_prefix('v')
                .and_then(|level| level.parse::<usize>().ok());
            let Some(pipelines) = level.and_then(|level| self.0.as_raw().iter().nth(level)) else {
                return Ok(Entry::Collection {
                    masking: None,
                    buckets: None,
                });
            };
            Ok(Entry::View {
                on: "c",
                pipeline: pipelines.1.as_array().expect("a pipeline"),
                collation: None,
            })
        }

        fn indexes(&self, _: &Namespace) -> Result<Option<&Indexes>> {
            Ok(None)
        }
    }

    #[test]
    fn views_that_join_views_do_not_multiply_without_end() {
        let mut views = Document::new();
        for level in 0..20 {
            let join = doc! { "$unionWith": format!("v{}", level + 1) };
            views.push(format!("v{level}"), vec![Value::from(join.clone()), Value::from(join)]);
        }
        let namespace = Namespace::new("test", "v0");
        let plan = plan(query(&namespace, "[]"), &Views(views.to_raw())).expect("a plan");
        let shown = tree(&plan);
        assert_eq!(shown.matches("whole").count(), INNER_PLANS_MAX as usize, "{shown}");
    }
}
