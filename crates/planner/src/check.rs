//! No plan runs unchecked: a last pass over a plan that refuses a node whose input does not deliver what the node needs.
//!
//! | node | needs of its input |
//! |---|---|
//! | SORT_MERGE | each input in its order, and records |
//! | TEXT_OR | scans of text indexes |
//! | OR, FETCH | records, so that they can be told apart and read |
//! | PROJECTION_COVERED | index entries that tell the exact values of all paths it keeps |
//! | MATCH, SORT, projections | documents; for `$meta: "sortKey"` and `"indexKey"` those too |
//! | RETURN_KEY | keys of all index entries |
//! | a find | rows in its order, no more than its limit |
//! | COUNT_SCAN | that rows are only counted above it |
//! | DISTINCT_SCAN | a `$group` or `distinct` that wants one row for each value |
//! | pipelines over rows of a stage | to be inside `$facet`, or behind the equality of `$lookup` |
//! | a change stream's condition | fields that are known before the event is made |
//!
//! A refusal is a fault of the planner, so it is an internal error: better none than a wrong result. The pass allocates next to
//! nothing and costs less than making the plan, so it runs on every plan, in every build.
//! (After DataFusion's `physical-optimizer/src/sanity_checker.rs`.)

use crate::choose::{order_within, tells, tells_all, tells_order};
use crate::clustered::order;
use crate::find::{FindQuery, Wanted, is_best_first};
use crate::plan::{
    CHANGE_HEADER, FindPlan, IndexScan, InnerPlan, PipelinePlan, PlanNode, ScanPurpose, StageNode, StageOp,
};
use crate::rules::fields_read;
use nestor_model::{Error, ErrorCode, Result};
use nestor_query::expr::Deps;
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Projection;
use nestor_query::sort::SortSpec;
use nestor_query::stage::Stage;

/// The parts that the rows of a node carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rows {
    /// Documents, of records or computed.
    Documents {
        /// The record is known.
        records: bool,
    },
    /// Index entries and their records.
    Entries,
    /// Neither: they can only be counted.
    Nothing,
}

/// Checks a pipeline's plan; `is_given`: whoever runs it gives it rows. Error: an internal one that says which node does not
/// get what it needs.
pub fn check(plan: &PlanNode, is_given: bool) -> Result<()> {
    check_source(plan, None, is_given)
}

/// Checks the plans of a find. Error as [`check`].
pub fn check_find(query: &FindQuery, plans: &[PlanNode], wanted: Wanted) -> Result<()> {
    plans.iter().try_for_each(|plan| check_plan(query, plan, wanted))
}

/// A whole plan or the source of one; `next` is the stage that reads it.
fn check_source(plan: &PlanNode, next: Option<&StageNode>, is_given: bool) -> Result<()> {
    match plan {
        PlanNode::Find(find) => check_find_plan(find, next),
        PlanNode::Pipeline(pipeline) => check_pipeline(pipeline, is_given),
        PlanNode::Given if !is_given => refuse(plan, "nobody gives it rows"),
        PlanNode::Changes { stage } => check_changes(plan, stage),
        PlanNode::Given | PlanNode::Made { .. } | PlanNode::Eof => Ok(()),
        other => refuse(other, "it is no source of a pipeline: what it reads is not known"),
    }
}

/// A condition within a stream is on what is known of an event before it is made.
fn check_changes(plan: &PlanNode, stage: &StageNode) -> Result<()> {
    let Some((_, filter)) = stage.changes() else {
        return refuse(plan, "its stage is no change stream");
    };
    let known = |filter: &MatchExpr| {
        fields_read(filter).is_some_and(|fields| fields.iter().all(|f| CHANGE_HEADER.contains(&f.as_str())))
    };
    match filter.is_none_or(|filter| known(filter)) {
        true => Ok(()),
        false => refuse(plan, "its condition reads what is not known yet"),
    }
}

fn check_find_plan(find: &FindPlan, next: Option<&StageNode>) -> Result<()> {
    let wanted = match next.and_then(StageNode::parsed) {
        Some(Stage::Group(_)) => Wanted::Distinct,
        _ => Wanted::Documents,
    };
    check_find(&find.query, &find.plans, wanted)
}

fn check_pipeline(pipeline: &PipelinePlan, is_given: bool) -> Result<()> {
    let first = pipeline.stages.first().map(|stage| &stage.node);
    check_source(&pipeline.source, first, is_given)?;
    // Whether the rows come with the key of the last sort; nobody can ask for one that was never made.
    let mut has_key = match &pipeline.source {
        PlanNode::Find(find) => find.query.sort.is_none(),
        _ => true,
    };
    for stage in &pipeline.stages {
        let failed = |why: &str| Err(unsound(stage.node.kind().name(), why));
        if stage.node.reads_sort_key() && !has_key {
            return failed("it reads the key of a sort that does not keep it");
        }
        match &stage.node.op {
            StageOp::Parsed(Stage::Sort(_)) => has_key = stage.keep_sort_key,
            StageOp::TopSort { limit: 0, .. } => return failed("it keeps no row"),
            StageOp::TopSort { .. } => has_key = stage.keep_sort_key,
            StageOp::Parsed(Stage::Out(_) | Stage::OutFile(_) | Stage::Merge(_)) => {
                return failed("it is no stage that gives rows");
            }
            StageOp::Parsed(Stage::Facet(facet)) => {
                let planned = match stage.inner.as_deref() {
                    Some(InnerPlan::Facets(plans)) => plans.len(),
                    _ => 0,
                };
                if planned != facet.pipelines.len() {
                    return failed("a pipeline of it is not planned");
                }
            }
            StageOp::Parsed(Stage::Fusion(fusion)) => {
                if let Some(InnerPlan::Facets(plans) | InnerPlan::Inputs(plans)) = stage.inner.as_deref()
                    && plans.len() != fusion.inputs.len()
                {
                    return failed("a pipeline of it is not planned");
                }
            }
            StageOp::LookupUnwind(join) => {
                if join.unwind.path != join.lookup.as_path {
                    return failed("another field than that of the matches is unwound");
                }
                let keeps_all = join.unwind.preserves_empty() || join.unwind.index().is_some();
                if join.filter.is_some() && keeps_all {
                    return failed("it needs all matches, but a condition leaves some out");
                }
            }
            StageOp::FilteredChanges(_) | StageOp::Parsed(Stage::ChangeStream(_)) => {
                return failed("it has no input, it is a source");
            }
            StageOp::Parsed(_) => {}
        }
        if let Some(inner) = &stage.inner {
            check_inner(inner)?;
        }
    }
    Ok(())
}

/// Checks the plans of what a stage runs. Error as [`check`].
pub(crate) fn check_inner(inner: &InnerPlan) -> Result<()> {
    match inner {
        InnerPlan::Whole(plan) => check_source(plan, None, false),
        InnerPlan::Equality(plan) => plan.rest.iter().try_for_each(|rest| check_source(rest, None, true)),
        InnerPlan::Table { source, rest } => {
            check_source(source, None, false)?;
            rest.iter().try_for_each(|rest| check_source(rest, None, true))
        }
        InnerPlan::ByValue => Ok(()),
        InnerPlan::Facets(plans) => plans.iter().try_for_each(|(_, plan)| check_source(plan, None, true)),
        InnerPlan::Inputs(plans) => plans.iter().try_for_each(|(_, plan)| check_source(plan, None, false)),
    }
}

fn check_plan(query: &FindQuery, plan: &PlanNode, wanted: Wanted) -> Result<()> {
    let rows = rows(plan, wanted)?;
    let is_counted = wanted == Wanted::Count || matches!(plan, PlanNode::Count { .. });
    if let Some(scan) = bare_entries(plan)
        && wanted == Wanted::Documents
        && query.projection.is_none()
        && !tells_all(scan, query)
    {
        return refuse(plan, "the index does not tell the values that are looked at");
    }
    if !matches!(rows, Rows::Documents { .. }) && !is_counted {
        return refuse(plan, "its rows have no documents");
    }
    if let Some(spec) = query.sort.as_deref().filter(|_| !is_counted) {
        if !is_ordered(plan, spec) {
            return refuse(plan, "its rows are not in the order of the query");
        }
    }
    if let Some(limit) = query.limit {
        if !is_limited(plan, limit) {
            return refuse(plan, "it may give more rows than the query's limit");
        }
    }
    Ok(())
}

/// The scan whose entries are all that becomes of the results of a plan.
fn bare_entries(plan: &PlanNode) -> Option<&IndexScan> {
    match plan {
        PlanNode::Covered {
            input,
            projection: None,
        } => scan_below(input),
        PlanNode::Sort { input, .. } | PlanNode::Skip { input, .. } | PlanNode::Limit { input, .. } => {
            bare_entries(input)
        }
        _ => None,
    }
}

/// The parts that the rows of a node carry, if each node below gets the parts it needs.
fn rows(plan: &PlanNode, wanted: Wanted) -> Result<Rows> {
    let documents = |input: &PlanNode| match rows(input, wanted)? {
        Rows::Documents { records } => Ok(Rows::Documents { records }),
        _ => refuse(plan, "the rows that it reads have no documents"),
    };
    let with_records = |input: &PlanNode| match rows(input, wanted)? {
        found @ (Rows::Entries | Rows::Documents { records: true }) => Ok(found),
        _ => refuse(plan, "the records of the rows that it reads are not known"),
    };
    match plan {
        PlanNode::Eof | PlanNode::CollScan(_) | PlanNode::IdLookup(_) => Ok(Rows::Documents { records: true }),
        PlanNode::IndexScan(scan) => scan_rows(plan, scan, wanted),
        PlanNode::GeoNear(near) => {
            if near.bounds.parts.len() != near.index.parts.len() || near.at >= near.index.parts.len() {
                return refuse(plan, "it does not have bounds for each part of its index");
            }
            if near.index.kind.nearest().is_none() {
                return refuse(plan, "its index knows no distances");
            }
            Ok(Rows::Documents { records: true })
        }
        PlanNode::TextOr(text) => {
            let reads_text =
                |scan: &PlanNode| matches!(scan, PlanNode::IndexScan(scan) if scan.index.kind.text().is_some());
            if !text.scans.iter().all(reads_text) {
                return refuse(plan, "it adds up what only text indexes tell");
            }
            Ok(Rows::Documents { records: true })
        }
        PlanNode::TextMatch(text) => documents(&text.input),
        PlanNode::Fetch { input, .. } => with_records(input).map(|_| Rows::Documents { records: true }),
        PlanNode::Covered { input, projection } => {
            if rows(input, wanted)? != Rows::Entries {
                return refuse(plan, "the rows that it reads are no index entries");
            }
            match projection.as_deref().map(|projection| (projection, scan_below(input))) {
                None => {}
                Some((projection, Some(scan))) if is_covered(projection, scan) => {}
                Some(_) => return refuse(plan, "the index does not tell the values that it keeps"),
            }
            Ok(Rows::Documents { records: false })
        }
        PlanNode::Or { inputs } | PlanNode::SortMerge { inputs, .. } => {
            if let PlanNode::SortMerge { spec, .. } = plan {
                if !inputs.iter().all(|input| is_ordered(input, spec)) {
                    return refuse(plan, "one of its inputs is not in its order");
                }
            }
            let mut merged = Rows::Documents { records: true };
            for input in inputs {
                if with_records(input)? == Rows::Entries {
                    merged = Rows::Entries;
                }
            }
            Ok(merged)
        }
        PlanNode::Filter { input, .. } => documents(input),
        PlanNode::Sort { input, spec, .. } => {
            if let PlanNode::Covered {
                input,
                projection: None,
            } = &**input
            {
                // The documents have the fields of the key only.
                if !scan_below(input).is_some_and(|scan| tells_order(scan, spec)) {
                    return refuse(plan, "it sorts by what the index entries do not tell");
                }
            }
            documents(input)
        }
        PlanNode::Skip { input, .. } | PlanNode::Limit { input, .. } => rows(input, wanted),
        PlanNode::Project {
            input,
            projection,
            positional,
        } => {
            if projection.needs_match_details() && positional.is_none() {
                return refuse(plan, "it needs the filter to know where that matched");
            }
            check_metadata(plan, projection, input)?;
            documents(input)
        }
        PlanNode::ReturnKey { input } => {
            if !keeps_keys(input) {
                return refuse(plan, "an index scan below it does not keep its keys");
            }
            rows(input, wanted)?;
            Ok(Rows::Documents { records: false })
        }
        PlanNode::Count { input, .. } => {
            rows(input, Wanted::Count)?;
            Ok(Rows::Documents { records: false })
        }
        PlanNode::Find(_)
        | PlanNode::Made { .. }
        | PlanNode::Changes { .. }
        | PlanNode::Given
        | PlanNode::Pipeline(_) => refuse(plan, "it is no part of a find"),
    }
}

fn scan_rows(plan: &PlanNode, scan: &IndexScan, wanted: Wanted) -> Result<Rows> {
    if scan.bounds.parts.len() != scan.index.parts.len() {
        return refuse(plan, "it does not have bounds for each part of its index");
    }
    if scan.key_filter.is_some() && scan.index.is_multikey() {
        return refuse(plan, "keys of arrays cannot decide conditions");
    }
    match scan.purpose {
        ScanPurpose::Entries | ScanPurpose::Keys => Ok(Rows::Entries),
        ScanPurpose::Count if wanted == Wanted::Count => Ok(Rows::Nothing),
        ScanPurpose::Count => refuse(plan, "its rows are not only counted"),
        ScanPurpose::Distinct { parts } => {
            if wanted != Wanted::Distinct {
                return refuse(plan, "nobody wants one row for each value");
            }
            if parts == 0 || parts > scan.index.parts.len() || scan.index.is_multikey() || scan.key_filter.is_some() {
                return refuse(
                    plan,
                    "its index does not have one entry for each document, or not these parts",
                );
            }
            Ok(Rows::Entries)
        }
    }
}

/// Whether the entries of the scan tell all that a projection keeps.
fn is_covered(projection: &Projection, scan: &IndexScan) -> bool {
    let kept = projection.included_paths();
    kept.is_some_and(|paths| paths.iter().all(|path| tells(scan, path)))
}

/// The only scan that rows come from unchanged.
fn scan_below(plan: &PlanNode) -> Option<&IndexScan> {
    match plan {
        PlanNode::IndexScan(scan) => Some(scan),
        PlanNode::Skip { input, .. } | PlanNode::Limit { input, .. } => scan_below(input),
        _ => None,
    }
}

/// Whether rows come in this order.
fn is_ordered(plan: &PlanNode, spec: &SortSpec) -> bool {
    match plan {
        PlanNode::Eof | PlanNode::IdLookup(_) | PlanNode::Count { .. } => true,
        PlanNode::CollScan(scan) => {
            let clustered = scan.clustered.as_deref();
            clustered.and_then(|clustered| order(clustered, spec)) == Some(scan.forward)
        }
        PlanNode::IndexScan(scan) => {
            order_within(&scan.index, &scan.bounds, spec).is_some_and(|forward| forward == scan.forward)
        }
        PlanNode::Sort { spec: own, .. } | PlanNode::SortMerge { spec: own, .. } => own.is_same_order(spec),
        PlanNode::TextOr(text) => text.best_first && is_best_first(spec),
        PlanNode::TextMatch(text) => is_ordered(&text.input, spec),
        PlanNode::Fetch { input, .. }
        | PlanNode::Covered { input, .. }
        | PlanNode::Filter { input, .. }
        | PlanNode::Skip { input, .. }
        | PlanNode::Limit { input, .. }
        | PlanNode::Project { input, .. }
        | PlanNode::ReturnKey { input } => is_ordered(input, spec),
        _ => false,
    }
}

/// Whether no more rows come than that.
fn is_limited(plan: &PlanNode, limit: u64) -> bool {
    match plan {
        PlanNode::Eof => true,
        PlanNode::IdLookup(_) | PlanNode::Count { .. } => limit > 0,
        PlanNode::Limit { limit: own, .. } => *own <= limit,
        PlanNode::Sort { limit: Some(own), .. } => *own <= limit,
        PlanNode::Skip { input, skip } => is_limited(input, limit.saturating_add(*skip)),
        PlanNode::Project { input, .. } | PlanNode::ReturnKey { input } | PlanNode::Covered { input, .. } => {
            is_limited(input, limit)
        }
        _ => false,
    }
}

/// Whether all index scans keep their keys.
fn keeps_keys(plan: &PlanNode) -> bool {
    match plan {
        PlanNode::IndexScan(scan) => scan.purpose == ScanPurpose::Keys,
        // There is no one key by which a text search finds a row, so nothing is shown.
        PlanNode::TextMatch(_) => true,
        other => other.inputs().into_iter().all(keeps_keys),
    }
}

/// Whether the metadata that a projection shows is there.
fn check_metadata(plan: &PlanNode, projection: &Projection, input: &PlanNode) -> Result<()> {
    if projection.is_simple() {
        return Ok(());
    }
    let mut deps = Deps::default();
    projection.dependencies(&mut deps);
    if deps.metadata.contains("sortKey") && !keeps_sort_key(input) {
        return refuse(plan, "it shows the key of a sort that does not keep it");
    }
    if deps.metadata.contains("indexKey") && !keeps_keys(input) {
        return refuse(plan, "it shows index keys that a scan does not keep");
    }
    Ok(())
}

fn keeps_sort_key(plan: &PlanNode) -> bool {
    match plan {
        PlanNode::Sort { keep_key, .. } => *keep_key,
        PlanNode::Skip { input, .. } | PlanNode::Limit { input, .. } => keeps_sort_key(input),
        _ => false,
    }
}

fn refuse<T>(plan: &PlanNode, why: &str) -> Result<T> {
    Err(unsound(plan.stage(), why))
}

fn unsound(stage: &str, why: &str) -> Error {
    Error::new(ErrorCode::InternalError, format!("the plan is unsound: {stage}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::IndexBounds;
    use crate::catalog::IndexInfo;
    use crate::choose::{candidates, for_count};
    use crate::pipeline::plan;
    use crate::pipeline::testing::{self, OneCollection, query};
    use crate::plan::CollScan;
    use crate::rules::testing::parse;
    use nestor_model::{Document, Namespace, Path, extjson};
    use nestor_query::Scope;
    use nestor_query::matcher::MatchExpr;
    use nestor_query::projection::Policy;
    use std::sync::Arc;

    fn index(paths: &[&str]) -> Arc<IndexInfo> {
        Arc::new(index_with(paths, &[]))
    }

    fn index_with(paths: &[&str], multikey: &[u64]) -> IndexInfo {
        testing::index(1, paths, multikey, None)
    }

    fn scan(paths: &[&str], purpose: ScanPurpose) -> Box<PlanNode> {
        let index = index(paths);
        Box::new(PlanNode::IndexScan(IndexScan {
            bounds: IndexBounds::all(&index),
            index,
            forward: true,
            key_filter: None,
            key_test: None,
            purpose,
        }))
    }

    fn entries(paths: &[&str]) -> Box<PlanNode> {
        scan(paths, ScanPurpose::Entries)
    }

    fn fetch(input: Box<PlanNode>) -> Box<PlanNode> {
        Box::new(PlanNode::Fetch { input, filter: None })
    }

    fn collscan() -> Box<PlanNode> {
        Box::new(PlanNode::CollScan(CollScan {
            filter: None,
            forward: true,
            tailable: false,
            clustered: None,
            columns: None,
        }))
    }

    fn all() -> FindQuery {
        FindQuery::all(Arc::new(MatchExpr::AlwaysTrue))
    }

    fn sort(path: &str) -> Arc<SortSpec> {
        let mut spec = Document::new();
        spec.push(path, 1);
        Arc::new(SortSpec::parse(spec.as_ref()).expect("a sort"))
    }

    fn sorted_by(path: &str) -> FindQuery {
        FindQuery {
            sort: Some(sort(path)),
            ..all()
        }
    }

    fn projection(text: &str) -> Arc<Projection> {
        let doc = extjson::parse_document(text).expect("valid JSON");
        Arc::new(Projection::parse(doc.as_ref(), &mut Scope::new(), Policy::Find).expect("a projection"))
    }

    fn covered(input: Box<PlanNode>, text: &str) -> PlanNode {
        PlanNode::Covered {
            input,
            projection: Some(projection(text)),
        }
    }

    fn sort_node(input: Box<PlanNode>, path: &str, keep_key: bool) -> Box<PlanNode> {
        Box::new(PlanNode::Sort {
            input,
            spec: sort(path),
            limit: None,
            keep_key,
        })
    }

    fn project(input: Box<PlanNode>, text: &str) -> PlanNode {
        PlanNode::Project {
            input,
            projection: projection(text),
            positional: None,
        }
    }

    fn merge(inputs: Vec<PlanNode>, path: &str) -> PlanNode {
        PlanNode::SortMerge {
            inputs,
            spec: sort(path),
        }
    }

    #[test]
    fn plans_whose_nodes_get_what_they_need_pass() {
        let limited = FindQuery {
            limit: Some(3),
            ..sorted_by("a")
        };
        let limit = |input| PlanNode::Limit { input, limit: 3 };
        for (query, plan, wanted) in [
            (all(), *collscan(), Wanted::Documents),
            (sorted_by("a"), *fetch(entries(&["a"])), Wanted::Documents),
            (
                sorted_by("b"),
                *sort_node(fetch(entries(&["a"])), "b", false),
                Wanted::Documents,
            ),
            (limited, limit(fetch(entries(&["a"]))), Wanted::Documents),
            (
                all(),
                covered(entries(&["a", "b"]), r#"{"_id":0,"b":1}"#),
                Wanted::Documents,
            ),
            (
                sorted_by("a"),
                *fetch(Box::new(merge(
                    vec![*entries(&["a"]), *fetch(entries(&["a", "b"]))],
                    "a",
                ))),
                Wanted::Documents,
            ),
            (all(), *scan(&["a"], ScanPurpose::Count), Wanted::Count),
            (
                all(),
                *fetch(scan(&["a"], ScanPurpose::Distinct { parts: 1 })),
                Wanted::Distinct,
            ),
            (
                sorted_by("b"),
                project(sort_node(collscan(), "b", true), r#"{"k":{"$meta":"sortKey"}}"#),
                Wanted::Documents,
            ),
            (
                all(),
                PlanNode::ReturnKey {
                    input: fetch(scan(&["a"], ScanPurpose::Keys)),
                },
                Wanted::Documents,
            ),
        ] {
            check_find(&query, std::slice::from_ref(&plan), wanted).unwrap_or_else(|e| panic!("{plan:?}: {e:?}"));
        }
    }

    #[test]
    fn plans_whose_nodes_lack_something_are_refused() {
        let limited = FindQuery {
            limit: Some(3),
            ..all()
        };
        let multikey = || {
            let index = index_with(&["a"], &[1]);
            PlanNode::IndexScan(IndexScan {
                bounds: IndexBounds::all(&index),
                index: Arc::new(index),
                forward: true,
                key_filter: None,
                key_test: None,
                purpose: ScanPurpose::Entries,
            })
        };
        for (why, query, plan, wanted) in [
            (
                "order of the query",
                sorted_by("b"),
                *fetch(entries(&["a"])),
                Wanted::Documents,
            ),
            (
                "order of the query",
                sorted_by("a"),
                *fetch(Box::new(multikey())),
                Wanted::Documents,
            ),
            (
                "order of the query",
                sorted_by("b"),
                *sort_node(collscan(), "a", false),
                Wanted::Documents,
            ),
            (
                "not in its order",
                sorted_by("a"),
                merge(vec![*collscan()], "a"),
                Wanted::Documents,
            ),
            ("query's limit", limited, *collscan(), Wanted::Documents),
            ("have no documents", all(), *entries(&["a"]), Wanted::Documents),
            (
                "have no documents",
                all(),
                *sort_node(entries(&["a"]), "a", false),
                Wanted::Documents,
            ),
            (
                "does not tell",
                all(),
                covered(entries(&["a"]), r#"{"_id":0,"b":1}"#),
                Wanted::Documents,
            ),
            (
                "does not tell the values that are looked at",
                FindQuery {
                    reads: Some(["a".into(), "b".into()].into()),
                    ..all()
                },
                PlanNode::Covered {
                    input: entries(&["a"]),
                    projection: None,
                },
                Wanted::Documents,
            ),
            (
                "does not tell",
                all(),
                covered(Box::new(multikey()), r#"{"_id":0,"a":1}"#),
                Wanted::Documents,
            ),
            (
                "no index entries",
                all(),
                covered(collscan(), r#"{"_id":0,"a":1}"#),
                Wanted::Documents,
            ),
            (
                "do not tell",
                sorted_by("b"),
                *sort_node(
                    Box::new(PlanNode::Covered {
                        input: entries(&["a"]),
                        projection: None,
                    }),
                    "b",
                    false,
                ),
                Wanted::Documents,
            ),
            (
                "key of a sort",
                sorted_by("b"),
                project(sort_node(collscan(), "b", false), r#"{"k":{"$meta":"sortKey"}}"#),
                Wanted::Documents,
            ),
            (
                "index keys",
                all(),
                project(fetch(entries(&["a"])), r#"{"k":{"$meta":"indexKey"}}"#),
                Wanted::Documents,
            ),
            (
                "keep its keys",
                all(),
                PlanNode::ReturnKey {
                    input: fetch(entries(&["a"])),
                },
                Wanted::Documents,
            ),
            (
                "where that matched",
                all(),
                project(collscan(), r#"{"a.$":1}"#),
                Wanted::Documents,
            ),
            (
                "only counted",
                all(),
                *fetch(scan(&["a"], ScanPurpose::Count)),
                Wanted::Documents,
            ),
            (
                "each value",
                all(),
                *fetch(scan(&["a"], ScanPurpose::Distinct { parts: 1 })),
                Wanted::Documents,
            ),
            (
                "records of the rows",
                all(),
                *fetch(Box::new(covered(entries(&["a"]), r#"{"_id":0,"a":1}"#))),
                Wanted::Documents,
            ),
            ("no part of a find", all(), PlanNode::Given, Wanted::Documents),
        ] {
            let error = check_find(&query, std::slice::from_ref(&plan), wanted).expect_err(why);
            assert!(error.message().contains(why), "{why}: {error:?}");
            assert_eq!(error.code(), ErrorCode::InternalError);
        }
    }

    /// One collection with an index on `a`.
    fn one_collection() -> OneCollection {
        OneCollection::with(vec![index_with(&["a"], &[])])
    }

    fn plan_of(stages: &str) -> PlanNode {
        let namespace = Namespace::new("test", "c");
        plan(query(&namespace, stages), &one_collection()).unwrap_or_else(|e| panic!("{stages}: {e:?}"))
    }

    #[test]
    fn pipelines_whose_stages_lack_something_are_refused() {
        type Spoil = fn(&mut PipelinePlan);
        let spoiled: [(&str, &str, Spoil); 6] = [
            (
                "key of a sort",
                r#"[{"$unwind":"$a"},{"$sort":{"a":1}},{"$project":{"k":{"$meta":"sortKey"}}}]"#,
                |plan| plan.stages[1].keep_sort_key = false,
            ),
            ("one row for each value", r#"[{"$group":{"_id":"$a"}}]"#, |plan| {
                plan.stages.insert(
                    0,
                    crate::plan::StagePlan {
                        node: parse(r#"[{"$limit":1}]"#).swap_remove(0),
                        keep_sort_key: false,
                        inner: None,
                    },
                );
            }),
            ("is not planned", r#"[{"$facet":{"x":[{"$limit":1}]}}]"#, |plan| {
                plan.stages[0].inner = None
            }),
            ("gives it rows", r#"[{"$unionWith":{"coll":"d"}}]"#, |plan| {
                plan.stages[0].inner = Some(Arc::new(InnerPlan::Whole(PlanNode::Given)));
            }),
            ("gives it rows", r#"[{"$unwind":"$a"}]"#, |plan| {
                plan.source = PlanNode::Given
            }),
            ("no source", r#"[{"$unwind":"$a"}]"#, |plan| plan.source = *collscan()),
        ];
        for (why, stages, spoil) in spoiled {
            let PlanNode::Pipeline(mut pipeline) = plan_of(stages) else {
                panic!("{stages} has no stages");
            };
            spoil(&mut pipeline);
            let error = check(&PlanNode::Pipeline(pipeline), false).expect_err(why);
            assert!(error.message().contains(why), "{why}: {error:?}");
        }
    }

    #[test]
    fn sorted_rows_are_not_covered_by_entries_without_the_field() {
        let query = FindQuery {
            projection: Some(projection(r#"{"_id":0,"a":1}"#)),
            filter: Arc::new(MatchExpr::eq(Path::new("a"), 1)),
            ..sorted_by("b")
        };
        let OneCollection(indexes) = one_collection();
        let plans = candidates(&query, &indexes);
        check_find(&query, &plans, Wanted::Documents).expect("the sort has what it sorts by");
        let counted = plans.into_iter().map(for_count).collect::<Vec<_>>();
        check_find(&query, &counted, Wanted::Count).expect("rows to count");
    }
}
