//! What of a pipeline a find plan can do: its first stages, and loose scans for `$group`.

use crate::access::{IndexAccess, full_access, index_accesses};
use crate::catalog::{IndexInfo, PartKind};
use crate::choose::order;
use crate::collation::agrees;
use crate::find::FindQuery;
use crate::plan::{IndexScan, PlanNode, ScanPurpose};
use nestor_model::Path;
use nestor_query::collation::Collator;
use nestor_query::expr::Deps;
use nestor_query::matcher::MatchExpr;
use nestor_query::sort::{SortBy, SortSpec};
use nestor_query::stage::{Group, Stage};
use std::sync::Arc;

/// The find that does the first stages of a pipeline, and how many those are: `$match`, then `$sort`, `$skip` and
/// `$limit` in this order, each at most once (but any number of `$match`).
pub fn split(stages: &[Stage]) -> (FindQuery, usize) {
    let mut at = 0;
    let mut conditions = Vec::new();
    while let Some(Stage::Match(filter)) = stages.get(at) {
        conditions.push((**filter).clone());
        at += 1;
    }
    let filter = match conditions.len() {
        0 => MatchExpr::AlwaysTrue,
        1 => conditions.swap_remove(0).normalize(),
        _ => MatchExpr::And(conditions).normalize(),
    };
    let mut query = FindQuery::all(Arc::new(filter));
    if let Some(Stage::Sort(spec)) = stages.get(at) {
        let by_paths = spec.parts().iter().all(|part| matches!(part.by, SortBy::Path(_)));
        if !by_paths || stages[at..].iter().any(reads_sort_key) {
            return (query, at);
        }
        query.sort = Some(spec.clone());
        at += 1;
    }
    if let Some(Stage::Skip(skip)) = stages.get(at) {
        query.skip = *skip;
        at += 1;
    }
    if let Some(Stage::Limit(limit)) = stages.get(at) {
        query.limit = Some(*limit);
        at += 1;
    }
    (query, at)
}

/// Whether a stage asks for the key that a sort attached.
pub fn reads_sort_key(stage: &Stage) -> bool {
    let mut deps = Deps::default();
    match stage {
        Stage::Project { projection, .. } => projection.dependencies(&mut deps),
        Stage::ReplaceRoot(expr) => expr.dependencies(&mut deps),
        Stage::Group(group) => {
            group.id.dependencies(&mut deps);
            for field in &group.fields {
                field
                    .accumulator
                    .visit(&mut |expr| expr.dependencies(&mut deps), &mut |_| {});
            }
        }
        _ => {}
    }
    deps.metadata.contains("sortKey")
}

/// The scan that visits each value of `path` once that is distinct under a collation, among documents that match: the
/// index has `path` behind single values only, and proves the whole filter. `None` when no index does.
pub fn distinct_scan(
    filter: &Arc<MatchExpr>,
    path: &Path,
    collation: Option<&Collator>,
    indexes: &[Arc<IndexInfo>],
) -> Option<IndexScan> {
    let mut accesses = index_accesses(filter, indexes);
    if matches!(**filter, MatchExpr::AlwaysTrue) {
        let whole = indexes.iter().filter(|i| !i.hidden && i.holds_every_document());
        accesses.extend(whole.map(|index| full_access(index, filter)));
    }
    accesses
        .into_iter()
        .find_map(|access| loose(access, path, collation, true))
}

fn loose(access: IndexAccess, path: &Path, collation: Option<&Collator>, forward: bool) -> Option<IndexScan> {
    if access.filter.is_some() || access.key_filter.is_some() || access.index.is_multikey() {
        return None;
    }
    let at = access
        .index
        .parts
        .iter()
        .position(|part| part.path == *path && part.kind != PartKind::Derived)?;
    let one_by_one = access.bounds.parts[..at].iter().all(|list| list.is_point());
    if !one_by_one || !agrees(&access.index, &access.bounds, at, collation) {
        return None;
    }
    Some(IndexScan {
        index: access.index,
        bounds: access.bounds,
        forward,
        key_filter: None,
        purpose: ScanPurpose::Distinct { parts: at + 1 },
    })
}

/// A plan that gives a `$group` under a collation one document per group instead of all: the group's key is one path,
/// and what is computed is at most `$first` of an order that the index has, beginning with that path.
pub fn group_scan(
    filter: &Arc<MatchExpr>,
    sort: Option<&SortSpec>,
    group: &Group,
    collation: Option<&Collator>,
    indexes: &[Arc<IndexInfo>],
) -> Option<PlanNode> {
    let path = group.id.field_path()?;
    let only_first = group.fields.iter().all(|field| field.accumulator.name == "$first");
    let scan = match sort {
        None if group.fields.is_empty() => distinct_scan(filter, path, collation, indexes)?,
        Some(spec) if only_first => {
            let leads = matches!(&spec.parts()[0].by, SortBy::Path(first) if first == path);
            if !leads {
                return None;
            }
            let mut accesses = index_accesses(filter, indexes);
            if matches!(**filter, MatchExpr::AlwaysTrue) {
                let whole = indexes.iter().filter(|i| !i.hidden && i.holds_every_document());
                accesses.extend(whole.map(|index| full_access(index, filter)));
            }
            accesses.into_iter().find_map(|access| {
                let forward = order(&access, spec)?;
                loose(access, path, collation, forward)
            })?
        }
        _ => return None,
    };
    Some(PlanNode::Fetch {
        input: Box::new(PlanNode::IndexScan(scan)),
        filter: None,
    })
}
