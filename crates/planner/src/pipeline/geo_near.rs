//! `$geoNear` as a find.

use crate::catalog::{IndexInfo, Indexes, PartKind};
use crate::find::FindQuery;
use crate::kind::NodeKind;
use crate::plan::StageNode;
use nestor_model::{Error, Namespace, Path, Result, bail};
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::{GeoNear, Stage};
use std::sync::Arc;

/// The find that a pipeline with `$geoNear` begins with; `None` for any other pipeline. The stage stays if it sets fields, and
/// conditions that everything satisfies go if they are before it.
///
/// `indexes` are those of the collection, if there is one.
///
/// Errors: 40603 where something is before it, 26 without a collection, 27 when it is not clear which index is meant.
pub(super) fn geo_near_find(
    stages: &mut Vec<StageNode>,
    namespace: &Namespace,
    indexes: Option<&Indexes>,
) -> Result<Option<FindQuery>> {
    let is_geo_near = |stage: &StageNode| matches!(stage.parsed(), Some(Stage::GeoNear(_)));
    let Some(at) = stages.iter().rposition(is_geo_near) else {
        return Ok(None);
    };
    let says_nothing = |stage: &StageNode| stage.filter().is_some_and(|f| matches!(**f, MatchExpr::AlwaysTrue));
    if !stages[..at].iter().all(says_nothing) {
        return Err(Error::location(
            40603,
            "$geoNear was not the first stage in the pipeline after optimization",
        ));
    }
    stages.drain(..at);
    let Some(Stage::GeoNear(spec)) = stages.first().and_then(StageNode::parsed) else {
        return Ok(None);
    };
    let spec = spec.clone();
    let Some(indexes) = indexes else {
        bail!(
            NamespaceNotFound,
            "$geoNear requires a collection, but {namespace} does not exist"
        );
    };
    let path = match &spec.key {
        Some(key) => key.clone(),
        None => only_path(indexes)?,
    };
    if !spec.sets_fields() {
        stages.remove(0);
    }
    Ok(Some(query(&spec, &path)))
}

fn query(spec: &GeoNear, path: &Path) -> FindQuery {
    FindQuery {
        keeps_distance: spec.sets_fields(),
        ..FindQuery::all(Arc::new(spec.filter(path).normalize()))
    }
}

/// Where the locations are of the only `2d` index, or else of the only `2dsphere` index.
fn only_path<'i>(indexes: &'i Indexes) -> Result<Path> {
    for kind in [NodeKind::GeoNear2d, NodeKind::GeoNear2dSphere] {
        let of_kind = |index: &'i Arc<IndexInfo>| {
            let by = index.kind.nearest().filter(|by| by.node() == kind && !index.hidden)?;
            Some((index, by.name()))
        };
        let mut found = indexes.iter().filter_map(of_kind);
        let Some((index, name)) = found.next() else {
            continue;
        };
        if found.next().is_some() {
            bail!(
                IndexNotFound,
                "There is more than one {name} index; unsure which to use for $geoNear"
            );
        }
        if let Some(part) = index.parts.iter().find(|part| part.kind == PartKind::Derived) {
            return Ok(part.path.clone());
        }
    }
    bail!(
        IndexNotFound,
        "$geoNear requires a 2d or 2dsphere index, but none were found"
    )
}
