//! Scans of a clustered collection, whose records are in the order of `_id`: what conditions leave of them, and which orders
//! they come in.
//!
//! Source: manual, "Clustered Collections".

use crate::bounds::{Part, bounds};
use crate::catalog::Indexes;
use crate::collation::{agrees, stored};
use crate::find::FindQuery;
use crate::finish::{finish, residual};
use crate::interval::{Interval, IntervalList};
use crate::plan::{Clustered, CollScan, PlanNode};
use nestor_model::{Document, Value};
use nestor_query::matcher::MatchExpr;
use nestor_query::sort::{SortBy, SortSpec};

/// The scan that finds what `query` asks for; `None` when the collection is not clustered.
pub(crate) fn scan(query: &FindQuery, indexes: &Indexes) -> Option<PlanNode> {
    if !indexes.clustered {
        return None;
    }
    let list = within(query, indexes);
    let Some(range) = hull(&list) else {
        return Some(finish(query, PlanNode::Eof, true));
    };
    let clustered = Clustered {
        ids: range,
        collation: indexes.id_collation.clone(),
    };
    // A scan in the order of `$natural` is not turned round for a sort.
    let order = query.sort.as_deref().and_then(|spec| order(&clustered, spec));
    let forward = query.natural.or(order).unwrap_or(true);
    let node = PlanNode::CollScan(CollScan {
        filter: residual(&query.filter),
        forward,
        tailable: false,
        clustered: Some(Box::new(clustered)),
        columns: None,
    });
    Some(finish(query, node, order == Some(forward)))
}

/// Whether a bounded scan of the collection competes with plans of indexes.
pub(crate) fn competes(query: &FindQuery, indexes: &Indexes) -> bool {
    indexes.clustered
        && query.hint.is_none()
        && query.allowed.is_none()
        && hull(&within(query, indexes)).is_none_or(|range| !range.is_all())
}

/// Which `_id`s the query leaves.
fn within(query: &FindQuery, indexes: &Indexes) -> IntervalList {
    let given = |end: &Option<Document>| {
        let value = end.as_ref().and_then(|key| key.get("_id"))?;
        Some(stored(&value.to_value(), indexes.id_collation.as_ref()).into_owned())
    };
    let (min, max) = (given(&query.min), given(&query.max));
    let ends = Interval {
        low: min.unwrap_or(Value::MinKey),
        low_inclusive: true,
        high_inclusive: max.is_none(),
        high: max.unwrap_or(Value::MaxKey),
    };
    let part = Part {
        multikey: false,
        sparse: false,
        collation: indexes.id_collation.as_ref(),
    };
    let list = demanded(&query.filter, part).unwrap_or_else(IntervalList::all);
    list.intersect(&IntervalList::of(ends))
}

/// Which `_id`s a filter leaves; `None` when it leaves all.
fn demanded(filter: &MatchExpr, part: Part<'_>) -> Option<IntervalList> {
    match filter {
        MatchExpr::And(all) => {
            let lists = all.iter().filter_map(|one| demanded(one, part));
            lists.reduce(|a, b| a.intersect(&b))
        }
        MatchExpr::Or(branches) => {
            let lists: Option<Vec<_>> = branches.iter().map(|one| demanded(one, part)).collect();
            lists?.into_iter().reduce(|a, b| a.union(&b))
        }
        MatchExpr::Leaf(leaf) if leaf.path.as_str() == "_id" => Some(bounds(&leaf.predicate, part)?.0),
        _ => None,
    }
}

/// The least interval around all of a list; `None` around none.
fn hull(list: &IntervalList) -> Option<Interval> {
    let (first, last) = (list.intervals().first()?, list.intervals().last()?);
    Some(Interval {
        low: first.low.clone(),
        low_inclusive: first.low_inclusive,
        high: last.high.clone(),
        high_inclusive: last.high_inclusive,
    })
}

/// The direction in which records come in the order of `spec`, if they do.
pub(crate) fn order(clustered: &Clustered, spec: &SortSpec) -> Option<bool> {
    let [part] = spec.parts() else { return None };
    let SortBy::Path(path) = &part.by else { return None };
    let ids = IntervalList::of(clustered.ids.clone());
    let by_id = path.as_str() == "_id" && agrees(clustered.collation.as_ref(), &ids, spec.collator());
    by_id.then_some(part.ascending)
}
