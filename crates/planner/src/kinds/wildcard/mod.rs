//! Wildcard indexes: every scalar below a path, under the path it has.
//!
//! A key has the path of the value before the value, so that entries of one path lie together. Index
//! `{a: 1, "$**": 1}` with `wildcardProjection: {a: 0}`:
//!
//! ```text
//! {a: 1, b: {c: 2}, d: [3, 4]}   →   (1, "b.c", 2) (1, "d", 3) (1, "d", 4)
//! {a: 1}                         →   (1, MinKey, MinKey)
//! ```
//!
//! A query uses such an index as if it were one on the path of a condition. Only what scalars decide can use it:
//! objects have no keys of their own, and documents without a path have no key for it.
//! Source: manual, "Wildcard Indexes", "Compound Wildcard Indexes".

mod check;
mod keys;
mod paths;
mod uses;

use super::ordered;
use super::{KindDef, OptionDef};
use crate::catalog::{Condition, EmitKey, IndexInfo, IndexKind, IndexPart, IndexUse, PartKind};
use keys::WildcardKeys;
use nestor_model::index_spec::{IndexSpec, WILDCARD};
use nestor_model::{DocRef, ErrorCode, Path, Result};
use nestor_query::keys::MultikeyPaths;
use nestor_query::update::Touched;
use paths::Wildcard;
use std::sync::Arc;

/// The kind.
pub const KIND: KindDef = KindDef {
    name: WILDCARD,
    options_anywhere: false,
    options: &[OptionDef {
        name: "wildcardProjection",
        parse: check::projection,
        shown: None,
    }],
    misplaced_option: ErrorCode::BadValue,
    is_single: false,
    is_outside_api: false,
    refused_on_series: None,
    check: check::specification,
    open: |spec, _| Arc::new(WildcardIndex::new(spec)),
};

/// The name that explain gives the part of the key that holds the path.
const PATH_PART: &str = "$_path";

/// A wildcard index.
#[derive(Debug)]
struct WildcardIndex {
    wildcard: Wildcard,
    keys: WildcardKeys,
}

impl WildcardIndex {
    fn new(spec: &IndexSpec) -> Self {
        Self {
            wildcard: Wildcard::new(spec),
            keys: WildcardKeys::new(spec),
        }
    }
}

impl IndexKind for WildcardIndex {
    fn parts(&self, spec: &IndexSpec, multikey: &[u64]) -> Vec<IndexPart> {
        let at = self.wildcard.at;
        let mut parts = ordered::parts(spec, multikey);
        // Which of all the paths ran through arrays is not known.
        parts[at].multikey = if parts[at].multikey == 0 { 0 } else { u64::MAX };
        let path = IndexPart {
            path: Path::new(PATH_PART),
            kind: PartKind::Ascending,
            multikey: 0,
            collated: false,
        };
        parts.insert(at, path);
        parts
    }

    fn for_each_key(&self, doc: DocRef<'_>, emit: &mut EmitKey<'_>) -> Result<MultikeyPaths> {
        self.keys.for_each_key(&self.wildcard, doc, emit)
    }

    fn is_touched_by(&self, _: &Touched) -> bool {
        true
    }

    fn uses<'f>(&self, index: &IndexInfo, conditions: &[Condition<'f>]) -> Vec<IndexUse<'f>> {
        uses::uses(&self.wildcard, index, conditions)
    }

    fn needs_condition(&self) -> bool {
        true
    }

    /// An entry is of one path, and documents are always read.
    fn covers(&self) -> bool {
        false
    }
}
