//! The planner's view of a collection's indexes.

use nestor_model::{Path, Result, ValueRef};
use nestor_planner::catalog::{IndexInfo, IndexPart, PartKind};
use nestor_planner::wildcard::{PATH_PART, Wildcard};
use nestor_planner::{FindQuery, PlanNode, plan_find};
use nestor_query::Scope;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Collection, Index};
use std::sync::Arc;

/// The indexes that plans may use, in the order of their creation.
pub fn indexes(collection: &Collection) -> Result<Vec<Arc<IndexInfo>>> {
    collection
        .indexes
        .iter()
        .filter(|index| index.ready && index.collation.is_none())
        .map(|index| info(index))
        .collect()
}

/// Plans a find over `collection`.
pub fn plan(query: &FindQuery, collection: &Collection) -> Result<PlanNode> {
    plan_find(query, &indexes(collection)?)
}

fn info(index: &Index) -> Result<Arc<IndexInfo>> {
    let wildcard = wildcard(index);
    let mut parts: Vec<IndexPart> = index
        .key_pattern
        .iter()
        .enumerate()
        .map(|(i, (name, direction))| IndexPart {
            path: Path::new(name),
            kind: kind(direction),
            multikey: index.multikey.get(i).copied().unwrap_or(0),
        })
        .collect();
    if let Some(wildcard) = &wildcard {
        if let Some(value) = parts.get_mut(wildcard.at) {
            // Which of all the paths ran through arrays is not known.
            value.multikey = if value.multikey == 0 { 0 } else { u64::MAX };
        }
        let path = IndexPart {
            path: Path::new(PATH_PART),
            kind: PartKind::Ascending,
            multikey: 0,
        };
        parts.insert(wildcard.at.min(parts.len()), path);
    }
    let partial = match &index.partial_filter {
        Some(filter) => Some(Arc::new(
            MatchExpr::parse(filter.as_ref(), &mut Scope::new())?.normalize(),
        )),
        None => None,
    };
    Ok(Arc::new(IndexInfo {
        id: index.id.0,
        name: index.name.clone(),
        key_pattern: index.key_pattern.clone(),
        parts,
        unique: index.unique,
        // What a sparse index cannot answer a wildcard index cannot either.
        sparse: index.sparse || wildcard.is_some(),
        wildcard: wildcard.map(Arc::new),
        partial,
        hidden: index.hidden,
    }))
}

/// The wildcard in an index's key, if there is one.
fn wildcard(index: &Index) -> Option<Wildcard> {
    let projection = index.spec.as_raw().get("wildcardProjection");
    Wildcard::of(index.key_pattern.as_ref(), projection.and_then(ValueRef::as_document))
}

fn kind(direction: ValueRef<'_>) -> PartKind {
    match direction {
        ValueRef::String("hashed") => PartKind::Hashed,
        ValueRef::Int32(v) if v < 0 => PartKind::Descending,
        ValueRef::Int64(v) if v < 0 => PartKind::Descending,
        ValueRef::Double(v) if v < 0.0 => PartKind::Descending,
        ValueRef::Decimal128(v) if v.to_f64() < 0.0 => PartKind::Descending,
        _ => PartKind::Ascending,
    }
}
