//! Loose scans, which read one entry for each value: what `distinct` and some `$group`s need.

use crate::access::{IndexAccess, full_access, index_accesses};
use crate::catalog::{IndexInfo, PartKind};
use crate::choose::order;
use crate::collation::agrees;
use crate::plan::{IndexScan, PlanNode, ScanPurpose};
use nestor_model::Path;
use nestor_query::collation::Collator;
use nestor_query::matcher::MatchExpr;
use nestor_query::sort::{SortBy, SortSpec};
use nestor_query::stage::Group;
use std::sync::Arc;

/// The scan that visits each value of `path` once that is distinct under a collation, among documents that match: the
/// index has `path` behind single values only, and proves the whole filter. `None` when no index does.
pub fn distinct_scan(
    filter: &Arc<MatchExpr>,
    path: &Path,
    collation: Option<&Collator>,
    indexes: &[Arc<IndexInfo>],
) -> Option<IndexScan> {
    accesses(filter, indexes).find_map(|access| loose(access, path, collation, true))
}

/// The ways in which indexes find what `filter` matches; without a condition, all of an index that has all documents.
fn accesses<'a>(filter: &'a Arc<MatchExpr>, indexes: &'a [Arc<IndexInfo>]) -> impl Iterator<Item = IndexAccess> + 'a {
    let unconditional = matches!(**filter, MatchExpr::AlwaysTrue);
    let whole = indexes
        .iter()
        .filter(move |index| unconditional && !index.hidden && index.holds_every_document());
    let whole = whole.map(|index| full_access(index, filter));
    index_accesses(filter, indexes).into_iter().chain(whole)
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
    if !one_by_one || !agrees(access.index.collation.as_ref(), &access.bounds.parts[at], collation) {
        return None;
    }
    Some(IndexScan {
        index: access.index,
        bounds: access.bounds,
        forward,
        key_filter: None,
        key_test: None,
        purpose: ScanPurpose::Distinct { parts: at + 1 },
    })
}

/// A plan that gives a `$group` under a collation one document per group instead of all: the group's key is one path,
/// and what is computed is at most `$first`, or at most `$last`, of an order that the index has, beginning with that path.
pub fn group_scan(
    filter: &Arc<MatchExpr>,
    sort: Option<&SortSpec>,
    group: &Group,
    collation: Option<&Collator>,
    indexes: &[Arc<IndexInfo>],
) -> Option<PlanNode> {
    let path = group.id.field_path()?;
    let only = |name: &str| group.fields.iter().all(|field| field.accumulator.name() == name);
    let (only_first, only_last) = (only("$first"), only("$last"));
    let scan = match sort {
        None if group.fields.is_empty() => distinct_scan(filter, path, collation, indexes)?,
        Some(spec) if only_first || only_last => {
            let leads = matches!(&spec.parts()[0].by, SortBy::Path(first) if first == path);
            if !leads {
                return None;
            }
            accesses(filter, indexes).find_map(|access| {
                let in_order = order(&access, spec)?;
                // The last document of a group is the first one that is met from the other end.
                loose(access, path, collation, in_order == only_first)
            })?
        }
        _ => return None,
    };
    let input = Box::new(PlanNode::IndexScan(scan));
    Some(PlanNode::Fetch { input, filter: None })
}
