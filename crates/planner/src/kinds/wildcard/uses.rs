//! How wildcard indexes may be used.

use super::PATH_PART;
use super::paths::{Wildcard, can_answer, path_bounds};
use crate::catalog::{Condition, IndexInfo, IndexUse, PartKind};
use crate::interval::IntervalList;
use nestor_model::{Path, Value};
use nestor_query::matcher::Predicate;
use std::sync::Arc;

/// The ways to use a wildcard index: as an index on each path that conditions are about, and for the fields before the
/// wildcard alone.
pub(super) fn uses<'f>(wildcard: &Wildcard, index: &IndexInfo, conditions: &[Condition<'f>]) -> Vec<IndexUse<'f>> {
    let at = wildcard.at;
    let ordinary = |path: &Path| index.parts.iter().any(|part| part.path == *path);
    let usable = |c: &Condition<'_>| {
        let path = c.path.as_str();
        let below = matches!(c.predicate, Predicate::Exists);
        !c.negated
            && can_answer(c.predicate)
            && c.path.parts().iter().all(|part| part.index.is_none())
            && if below {
                wildcard.covers_all(path)
            } else {
                wildcard.covers(path)
            }
    };
    let usable = |c: &&Condition<'_>| ordinary(&c.path) || usable(c);
    let conditions: Vec<Condition<'f>> = conditions.iter().filter(usable).cloned().collect();
    let mut paths: Vec<Option<Path>> = Vec::new();
    for condition in conditions.iter().filter(|c| !ordinary(&c.path)) {
        if !paths.iter().flatten().any(|path| *path == condition.path) {
            paths.push(Some(condition.path.clone()));
        }
    }
    if at > 0 {
        paths.push(None);
    }
    let as_if_on = |path: Option<Path>| {
        let mut info = IndexInfo::clone(index);
        let mut bounds = IntervalList::all();
        debug_assert_eq!(
            info.parts[at].path.as_str(),
            PATH_PART,
            "the path comes before the value"
        );
        let value = &mut info.parts[at + 1];
        match path {
            Some(path) => {
                let below = conditions
                    .iter()
                    .filter(|c| c.path == path)
                    .all(|c| matches!(c.predicate, Predicate::Exists));
                bounds = path_bounds(path.as_str(), below);
                // Entries of several paths may be of one document.
                if below {
                    value.multikey = u64::MAX;
                }
                value.path = path;
            }
            None => value.multikey = u64::MAX,
        }
        info.key_pattern = info
            .parts
            .iter()
            .map(|part| {
                let direction = if part.kind == PartKind::Descending { -1 } else { 1 };
                (part.path.as_str().into(), Value::Int32(direction))
            })
            .collect();
        IndexUse {
            index: Arc::new(info),
            conditions: conditions.clone(),
            fixed: Some((at, bounds)),
        }
    };
    paths.into_iter().map(as_if_on).collect()
}
