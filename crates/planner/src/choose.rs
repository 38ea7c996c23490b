//! Candidates: the plans by which a find could run, best guess first.
//!
//! Every access path of an index, the union of one per `$or` branch, the merge of one scan per point where
//! that gives the order asked for, and a scan of an index for its order alone. Without any of them, or when
//! `$natural` demands it, the collection is scanned. Which candidate is best is for a trial run to say; the
//! order here only decides ties.

use crate::access::{
    IndexAccess, IndexBounds, NearAccess, Search, TextAccess, full_access, has_all, index_accesses, may_serve,
};
use crate::catalog::{IndexInfo, Indexes, PartKind};
use crate::clustered;
use crate::collation::{agrees, excludes_collatable};
use crate::find::{FindQuery, Wanted, is_best_first, reads_sort_key};
use crate::finish::{finish, id_lookup, residual};
use crate::interval::IntervalList;
use crate::key_range::scans;
use crate::plan::{CollScan, GeoNear, IndexScan, PlanNode, ScanPurpose, TextMatch, TextOr};
use nestor_model::{Path, Str, Value};
use nestor_query::geo::Near;
use nestor_query::matcher::MatchExpr;
use nestor_query::sort::{SortBy, SortSpec};
use std::sync::Arc;

/// Most scans that one plan may merge.
const SCANS_MAX: usize = 200;

/// Most plans for the branches of one `$or`.
const UNIONS_MAX: usize = 10;

/// With more branches than that an `$or` has one plan.
const UNION_BRANCHES_MAX: usize = 20;

/// How found rows come.
struct Found {
    node: PlanNode,
    /// They come in the order of the query's sort.
    ordered: bool,
    /// How good it looks: more bounded parts, then order.
    score: usize,
}

/// The plans by which `query` could run: none when a hint names an index that needs a condition and has none it can use.
pub fn candidates(query: &FindQuery, indexes: &Indexes) -> Vec<PlanNode> {
    candidates_among(query, indexes, None)
}

/// As [`candidates`], with plans for what becomes of the rows.
pub fn candidates_for(query: &FindQuery, wanted: Wanted, indexes: &Indexes) -> Vec<PlanNode> {
    adapted(candidates(query, indexes), wanted)
}

/// Plans made of candidates for what becomes of the rows.
pub(crate) fn adapted(plans: Vec<PlanNode>, wanted: Wanted) -> Vec<PlanNode> {
    match wanted {
        Wanted::Count => plans.into_iter().map(for_count).collect(),
        Wanted::Documents | Wanted::Distinct => plans,
    }
}

/// The candidates that use no other indexes than those with the given identities; `None`: all of them.
pub(crate) fn candidates_among(query: &FindQuery, indexes: &Indexes, among: Option<&[u32]>) -> Vec<PlanNode> {
    let mut plans = ways(query, indexes, among);
    if query.keeps_keys() {
        plans.iter_mut().for_each(PlanNode::keep_keys);
    }
    plans
}

fn ways(query: &FindQuery, indexes: &Indexes, among: Option<&[u32]>) -> Vec<PlanNode> {
    let clustered = clustered::scan(query, indexes);
    let scan = || clustered.clone().unwrap_or_else(|| scan_of_all(query));
    if query.natural.is_some() || query.tailable || query.by_columns {
        return vec![scan()];
    }
    if (query.min.is_some() || query.max.is_some()) && clustered.is_some() && !has_hinted(query, indexes) {
        return vec![scan()];
    }
    if query.min.is_some() || query.max.is_some() {
        let hinted = indexes.iter().find(|index| query.hint.as_ref() == Some(&index.name));
        return hinted
            .into_iter()
            .map(|index| finish(query, key_range(index, query), false))
            .collect();
    }
    if matches!(*query.filter, MatchExpr::AlwaysFalse) {
        return vec![finish(query, PlanNode::Eof, true)];
    }
    if let Some((path, near)) = query.filter.near() {
        return near_plans(query, path, near, indexes, among);
    }
    let by_id = id_lookup(&query.filter, indexes.id_collation.as_ref())
        .filter(|_| !query.keeps_keys() && query.filter.text().is_none());
    // For a clustered collection the scan of one record says more.
    let by_id = by_id.filter(|lookup| clustered.is_none() || lookup.filter.is_none());
    if let (Some(lookup), None) = (by_id, &query.hint) {
        return vec![finish(query, PlanNode::IdLookup(lookup), true)];
    }
    let chosen: Vec<Arc<IndexInfo>>;
    let usable = if among.is_none() && query.allowed.is_none() && query.hint.is_none() {
        &**indexes
    } else {
        let is_usable = |index: &&Arc<IndexInfo>| is_usable(query, index, among);
        chosen = indexes.iter().filter(is_usable).cloned().collect();
        &chosen
    };
    let asked = Asked {
        sort: query.sort.as_deref(),
        scores: query.wants_score(),
    };
    let mut found = find(&query.filter, asked, usable);
    let is_search = query.filter.text().is_some();
    if let (Some(spec), true) = (
        query.sort.as_deref(),
        !is_search && (found.is_empty() || query.hint.is_none()),
    ) {
        found.extend(order_scans(query, spec, usable, &found));
    }
    if found.is_empty() && !is_search {
        if let Some(index) = usable
            .first()
            .filter(|index| query.hint.is_some() && index.kind.scans_whole())
        {
            found.push(Found {
                node: fetch(full_access(index, &query.filter), true),
                ordered: false,
                score: 0,
            });
        }
    }
    found.sort_by_key(|f| std::cmp::Reverse(f.score));
    let mut plans: Vec<PlanNode> = found
        .into_iter()
        .map(|f| finish(query, cover(f.node, query, f.ordered), f.ordered))
        .collect();
    if plans.is_empty() && query.allowed.is_some() && query.any_otherwise {
        let free = FindQuery {
            allowed: None,
            ..query.clone()
        };
        return candidates_among(&free, indexes, among);
    }
    let useless_hint = query.hint.is_some() && usable.first().is_some_and(|index| !index.kind.scans_whole());
    if !is_search && ((plans.is_empty() && !useless_hint) || clustered::competes(query, indexes)) {
        plans.push(scan());
    }
    plans
}

/// The plan that looks at all documents.
pub fn scan_of_all(query: &FindQuery) -> PlanNode {
    let scan = CollScan {
        filter: residual(&query.filter),
        forward: query.natural.unwrap_or(true),
        tailable: query.tailable,
        clustered: None,
        columns: None,
    };
    finish(query, PlanNode::CollScan(scan), false)
}

/// Whether the query's hint names one of the indexes.
fn has_hinted(query: &FindQuery, indexes: &Indexes) -> bool {
    indexes.iter().any(|index| query.hint.as_ref() == Some(&index.name))
}

/// Whether the query may use an index.
fn is_usable(query: &FindQuery, index: &IndexInfo, among: Option<&[u32]>) -> bool {
    let is_allowed = match (&query.allowed, &query.hint) {
        (None, None) => true,
        (Some(allowed), _) => allowed.iter().any(|a| a.names(index)),
        (None, Some(name)) => index.name == *name,
    };
    is_allowed && among.is_none_or(|among| among.contains(&index.id))
}

/// The plans that give the nearest first, which only an index of locations can: none without one.
fn near_plans(
    query: &FindQuery,
    path: &Path,
    near: &Arc<Near>,
    indexes: &Indexes,
    among: Option<&[u32]>,
) -> Vec<PlanNode> {
    let search = Search::new(&query.filter);
    let filter = search.beside_near();
    let usable = indexes
        .iter()
        .filter(|index| may_serve(index, &query.filter) && is_usable(query, index, among));
    let found = usable.filter_map(|index| search.near_access(index, path, near));
    let plan = |access: NearAccess| {
        let node = PlanNode::GeoNear(Box::new(GeoNear {
            index: access.index,
            at: access.at,
            bounds: access.bounds,
            path: path.clone(),
            near: near.clone(),
            keeps_distance: query.wants_distance(),
        }));
        let node = match &filter {
            Some(filter) => PlanNode::Fetch {
                input: Box::new(node),
                filter: Some(filter.clone()),
            },
            None => node,
        };
        finish(query, node, false)
    };
    found.map(plan).collect()
}

/// The documents whose keys lie from `min` on and before `max`.
fn key_range(index: &Arc<IndexInfo>, query: &FindQuery) -> PlanNode {
    let access = full_access(index, &query.filter);
    let mut inputs: Vec<PlanNode> = scans(index, query.min.as_ref(), query.max.as_ref())
        .into_iter()
        .map(|bounds| scan_node(&access, bounds, true))
        .collect();
    let found = match inputs.len() {
        1 => inputs.swap_remove(0),
        _ => PlanNode::Or { inputs },
    };
    PlanNode::Fetch {
        input: Box::new(found),
        filter: access.filter,
    }
}

/// What is asked of the rows of a find.
#[derive(Clone, Copy)]
struct Asked<'q> {
    /// Their order.
    sort: Option<&'q SortSpec>,
    /// They carry what they score.
    scores: bool,
}

/// Plans that search a text index for what `filter` itself asks for.
fn texts(filter: &Arc<MatchExpr>, asked: Asked<'_>, indexes: &[Arc<IndexInfo>]) -> Vec<Found> {
    let search = Search::new(filter);
    let usable = indexes.iter().filter(|index| may_serve(index, filter));
    let plan = |access: TextAccess| {
        let ordered = asked.scores && asked.sort.is_some_and(is_best_first);
        Found {
            node: text_plan(access, asked.scores, ordered),
            ordered,
            score: 0,
        }
    };
    usable.filter_map(|index| search.text_access(index)).map(plan).collect()
}

fn text_plan(access: TextAccess, scores: bool, best_first: bool) -> PlanNode {
    let scan = |bounds| {
        PlanNode::IndexScan(IndexScan {
            index: access.index.clone(),
            bounds,
            forward: false,
            key_filter: None,
            key_test: None,
            purpose: ScanPurpose::Entries,
        })
    };
    let mut scans: Vec<PlanNode> = access.scans.into_iter().map(scan).collect();
    let input = match scans.len() {
        0 => PlanNode::Eof,
        _ if scores => PlanNode::TextOr(Box::new(TextOr {
            index: access.index.clone(),
            scans,
            filter: access.filter,
            best_first,
        })),
        count => PlanNode::Fetch {
            input: Box::new(match count {
                1 => scans.swap_remove(0),
                _ => PlanNode::Or { inputs: scans },
            }),
            filter: access.filter,
        },
    };
    PlanNode::TextMatch(Box::new(TextMatch {
        input,
        index: access.index,
        search: access.search,
        prefix: access.prefix,
    }))
}

/// Index plans that find what `filter` matches.
fn find(filter: &Arc<MatchExpr>, asked: Asked<'_>, indexes: &[Arc<IndexInfo>]) -> Vec<Found> {
    let sort = asked.sort;
    let mut out = Vec::new();
    if filter.text().is_some() {
        out.extend(texts(filter, asked, indexes));
        out.extend(unions(filter, asked, indexes));
        return out;
    }
    for access in index_accesses(filter, indexes) {
        let score = access.bounded_parts * 4 + access.bounds.equality_prefix() * 4;
        if let Some(forward) = sort.and_then(|spec| order(&access, spec)) {
            out.push(Found {
                node: fetch(access, forward),
                ordered: true,
                score: score + 2,
            });
        } else if let Some(node) = sort.and_then(|spec| explode(&access, spec)) {
            out.push(Found {
                node,
                ordered: true,
                score: score + 1,
            });
        } else {
            out.push(Found {
                node: fetch(access, true),
                ordered: false,
                score,
            });
        }
    }
    out.extend(unions(filter, asked, indexes));
    out
}

/// Plans with one index plan per branch of an `$or` that stands alone or among other conditions; the first has the
/// most promising one of each branch.
fn unions(filter: &Arc<MatchExpr>, asked: Asked<'_>, indexes: &[Arc<IndexInfo>]) -> Vec<Found> {
    let sort = asked.sort;
    let branches = match &**filter {
        MatchExpr::Or(branches) => Some(branches),
        MatchExpr::And(all) => all.iter().find_map(|c| match c {
            MatchExpr::Or(branches) => Some(branches),
            _ => None,
        }),
        _ => None,
    };
    let Some(branches) = branches else {
        return Vec::new();
    };
    let mut ways: Vec<Vec<Found>> = Vec::with_capacity(branches.len());
    for branch in branches {
        let mut found = find(&Arc::new(branch.clone()), asked, indexes);
        if found.is_empty() {
            return Vec::new();
        }
        found.sort_by_key(|f| std::cmp::Reverse(f.score));
        ways.push(found);
    }
    let counts: Vec<usize> = ways.iter().map(Vec::len).collect();
    let unite = |picks: Vec<usize>| {
        let chosen = || ways.iter().zip(&picks).map(|(found, pick)| &found[*pick]);
        let ordered = sort.is_some() && chosen().all(|f| f.ordered);
        // What several branches find is read once. A merge compares entries or documents, not some of both.
        let all_bare = chosen().all(|f| is_bare_fetch(&f.node));
        let strips = all_bare || !ordered;
        let is_read = !strips || !chosen().any(|f| is_bare_fetch(&f.node));
        let inputs: Vec<PlanNode> = chosen()
            .map(|f| match &f.node {
                PlanNode::Fetch { input, filter: None } if strips => (**input).clone(),
                node => node.clone(),
            })
            .collect();
        let node = match sort {
            Some(spec) if ordered => PlanNode::SortMerge {
                inputs,
                spec: Arc::new(spec.clone()),
            },
            _ => PlanNode::Or { inputs },
        };
        let rest = (!matches!(**filter, MatchExpr::Or(_))).then(|| filter.clone());
        let node = match is_read && rest.is_none() {
            true => node,
            false => PlanNode::Fetch {
                input: Box::new(node),
                filter: rest,
            },
        };
        Found {
            node,
            ordered,
            score: 3 + usize::from(ordered),
        }
    };
    picks(&counts).into_iter().map(unite).collect()
}

/// Whether a plan reads the documents of what it finds, and asks nothing of them.
fn is_bare_fetch(node: &PlanNode) -> bool {
    matches!(node, PlanNode::Fetch { filter: None, .. })
}

/// Some of the ways to pick one of `counts[i]` for each `i`: the first of each; the second of each, and so on; then
/// all the first but one. All of them would be too many to try.
fn picks(counts: &[usize]) -> Vec<Vec<usize>> {
    let mut out = vec![vec![0; counts.len()]];
    if counts.len() > UNION_BRANCHES_MAX {
        return out;
    }
    let most = counts.iter().copied().max().unwrap_or(1);
    let alike = (1..most).map(|pick| counts.iter().map(|count| pick.min(count - 1)).collect());
    let single = counts.iter().enumerate().flat_map(|(at, count)| {
        (1..*count).map(move |pick| {
            let mut picks = vec![0; counts.len()];
            picks[at] = pick;
            picks
        })
    });
    for picks in alike.chain(single) {
        if out.len() < UNIONS_MAX && !out.contains(&picks) {
            out.push(picks);
        }
    }
    out
}

/// Scans of whole indexes that give the order asked for, for indexes that no condition uses.
///
/// An index that lacks documents of the result serves only when a hint asks for it; a partial one has them all if the filter
/// demands what it does.
fn order_scans(query: &FindQuery, spec: &SortSpec, indexes: &[Arc<IndexInfo>], found: &[Found]) -> Vec<Found> {
    let hinted = query.hint.is_some();
    let holds = |index: &IndexInfo| has_all(index, &query.filter);
    let used = |index: &IndexInfo| found.iter().any(|f| uses(&f.node, index));
    indexes
        .iter()
        .filter(|index| {
            (hinted || (!index.sparse && holds(index))) && index.kind.scans_whole() && !index.hidden && !used(index)
        })
        .filter_map(|index| {
            let access = full_access(index, &query.filter);
            let forward = order(&access, spec)?;
            Some(Found {
                node: fetch(access, forward),
                ordered: true,
                score: 0,
            })
        })
        .collect()
}

fn uses(node: &PlanNode, index: &IndexInfo) -> bool {
    match node {
        PlanNode::IndexScan(scan) => scan.index.id == index.id,
        other => other.inputs().into_iter().any(|input| uses(input, index)),
    }
}

fn fetch(access: IndexAccess, forward: bool) -> PlanNode {
    PlanNode::Fetch {
        filter: access.filter.clone(),
        input: Box::new(scan_node(&access, access.bounds.clone(), forward)),
    }
}

fn scan_node(access: &IndexAccess, bounds: IndexBounds, forward: bool) -> PlanNode {
    PlanNode::IndexScan(IndexScan {
        index: access.index.clone(),
        bounds,
        forward,
        key_filter: access.key_filter.clone(),
        key_test: access.key_test.clone(),
        purpose: ScanPurpose::Entries,
    })
}

/// The direction in which the scan delivers the order of `spec`, if it does.
///
/// Parts that are one value each do not disturb the order; a path that ran through arrays has no single key to be
/// in order by.
pub fn order(access: &IndexAccess, spec: &SortSpec) -> Option<bool> {
    order_within(&access.index, &access.bounds, spec)
}

/// As [`order()`], of the entries of an index within bounds.
pub(crate) fn order_within(index: &IndexInfo, bounds: &IndexBounds, spec: &SortSpec) -> Option<bool> {
    let mut forward: Option<bool> = None;
    let mut at = 0;
    let parts = &index.parts;
    let agrees = |at: usize| {
        let list = bounds.parts.get(at);
        list.is_some_and(|list| agrees(index.collation.as_ref(), list, spec.collator()))
    };
    for wanted in spec.parts() {
        let SortBy::Path(path) = &wanted.by else {
            return None;
        };
        // A path fixed to one value is in any order.
        let fixed = parts
            .iter()
            .zip(&bounds.parts)
            .position(|(p, list)| p.path == *path && list.is_point() && !p.is_multikey());
        if fixed.is_some_and(agrees) {
            continue;
        }
        // Of the keys of a document one at most has that value, arrays included.
        while parts.get(at).is_some_and(|p| p.path != *path) && bounds.parts[at].is_point() {
            at += 1;
        }
        let part = parts
            .get(at)
            .filter(|p| p.path == *path && !p.is_multikey() && agrees(at))?;
        let same = match part.kind {
            PartKind::Ascending => wanted.ascending,
            PartKind::Descending => !wanted.ascending,
            PartKind::Derived => return None,
        };
        if forward.is_some_and(|f| f != same) {
            return None;
        }
        forward = Some(same);
        at += 1;
    }
    Some(forward.unwrap_or(true))
}

/// One scan per combination of points in the leading parts, merged, when each of them gives the order. A document that
/// several of them find by its array comes once.
fn explode(access: &IndexAccess, spec: &SortSpec) -> Option<PlanNode> {
    let points = access.bounds.parts.iter().take_while(|list| list.is_points()).count();
    let mut scans = vec![access.bounds.clone()];
    for part in 0..points {
        let lists: Vec<IntervalList> = access.bounds.parts[part]
            .intervals()
            .iter()
            .cloned()
            .map(IntervalList::of)
            .collect();
        if scans.len().saturating_mul(lists.len()) > SCANS_MAX {
            return None;
        }
        scans = scans
            .iter()
            .flat_map(|scan| {
                lists.iter().map(move |list| {
                    let mut scan = scan.clone();
                    scan.parts[part] = list.clone();
                    scan
                })
            })
            .collect();
    }
    if scans.len() < 2 {
        return None;
    }
    let forward = order_within(&access.index, &scans[0], spec)?;
    let inputs = scans
        .into_iter()
        .map(|bounds| scan_node(access, bounds, forward))
        .collect();
    let merged = PlanNode::SortMerge {
        inputs,
        spec: Arc::new(spec.clone()),
    };
    Some(PlanNode::Fetch {
        input: Box::new(merged),
        filter: access.filter.clone(),
    })
}

/// Leaves out the fetch when the index has every field that the projection keeps, and every field that rows which do not
/// come in order are sorted by.
pub(crate) fn cover(node: PlanNode, query: &FindQuery, ordered: bool) -> PlanNode {
    let PlanNode::Fetch { input, filter: None } = node else {
        return node;
    };
    if query.keeps_keys() {
        return PlanNode::Fetch { input, filter: None };
    }
    let covered = match &*input {
        PlanNode::IndexScan(scan) => {
            let sorted = query
                .sort
                .as_ref()
                .is_none_or(|spec| ordered || tells_order(scan, spec));
            sorted && tells_all(scan, query) && !reads_sort_key_of(query)
        }
        _ => false,
    };
    if covered {
        PlanNode::Covered {
            input,
            projection: None,
        }
    } else {
        PlanNode::Fetch { input, filter: None }
    }
}

/// Whether the entries of a scan tell all that is kept, or looked at, of the results of a query.
pub(crate) fn tells_all(scan: &IndexScan, query: &FindQuery) -> bool {
    let included = query.projection.as_ref().and_then(|p| p.included_paths());
    match (included, &query.reads) {
        (Some(paths), _) => paths.iter().all(|path| tells(scan, path)),
        (None, Some(paths)) if query.projection.is_none() => {
            let tells_absence = |path: &Str| !query.reads_exactly.contains(path) || excludes_null(scan, path);
            paths.iter().all(|path| tells(scan, path) && tells_absence(path))
        }
        _ => false,
    }
}

/// Whether a scan finds no document without a value at `path`, which the index takes for null.
fn excludes_null(scan: &IndexScan, path: &str) -> bool {
    let mut parts = scan.index.parts.iter().zip(&scan.bounds.parts);
    let null = IntervalList::point(Value::Null);
    parts.any(|(part, list)| part.path.as_str() == path && list.intersect(&null).is_empty())
}

/// Whether the entries of a scan tell the exact values at `path`, but for null where there is none.
pub fn tells(scan: &IndexScan, path: &str) -> bool {
    let index = &scan.index;
    let mut parts = index.parts.iter().zip(&scan.bounds.parts);
    let part_tells = parts.any(|(part, list)| {
        part.path.as_str() == path
            && part.kind != PartKind::Derived
            && (index.collation.is_none() || excludes_collatable(list))
    });
    part_tells && index.kind.covers() && !index.is_multikey()
}

/// Whether the entries of a scan tell the exact values of all paths that a sort is by.
pub(crate) fn tells_order(scan: &IndexScan, spec: &SortSpec) -> bool {
    spec.parts().iter().all(|part| match &part.by {
        SortBy::Path(path) => tells(scan, path.as_str()),
        SortBy::Meta(_) => false,
    })
}

/// A plan whose rows are only counted: entries that prove the whole filter need no documents.
pub fn for_count(plan: PlanNode) -> PlanNode {
    match plan {
        PlanNode::Fetch { input, filter: None } => match *input {
            PlanNode::IndexScan(mut scan) => {
                scan.purpose = ScanPurpose::Count;
                PlanNode::IndexScan(scan)
            }
            other => PlanNode::Fetch {
                input: Box::new(other),
                filter: None,
            },
        },
        PlanNode::Skip { input, skip } => PlanNode::Skip {
            input: Box::new(for_count(*input)),
            skip,
        },
        PlanNode::Limit { input, limit } => PlanNode::Limit {
            input: Box::new(for_count(*input)),
            limit,
        },
        other => other,
    }
}

fn reads_sort_key_of(query: &FindQuery) -> bool {
    query.projection.as_ref().is_some_and(|p| reads_sort_key(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_varied_together_and_one_by_one() {
        assert_eq!(picks(&[1, 1]), [[0, 0]]);
        assert_eq!(picks(&[2, 1]), [[0, 0], [1, 0]]);
        assert_eq!(picks(&[2, 3]), [[0, 0], [1, 1], [1, 2], [1, 0], [0, 1], [0, 2]]);
        assert_eq!(picks(&[4, 4, 4]).len(), UNIONS_MAX);
        assert_eq!(picks(&[2; UNION_BRANCHES_MAX + 1]).len(), 1);
    }
}
