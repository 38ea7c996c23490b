//! Ordered indexes: the values of the key's fields, each part ascending or descending.

use super::KindDef;
use crate::catalog::{EmitKey, IndexKind, IndexPart, PartKind};
use nestor_model::index_spec::{IndexSpec, KeyOrder, ORDERED};
use nestor_model::{DocRef, ErrorCode, Path, Result, ValueRef};
use nestor_query::keys::{KeyPaths, MultikeyPaths};
use nestor_query::update::Touched;
use std::sync::Arc;

/// The kind.
pub const KIND: KindDef = KindDef {
    name: ORDERED,
    options_anywhere: false,
    options: &[],
    misplaced_option: ErrorCode::BadValue,
    is_single: false,
    is_outside_api: false,
    refused_on_series: None,
    check: Ok,
    open: |spec, _| Arc::new(FieldKeys::new(spec)),
};

/// The keys of an index on given fields.
#[derive(Debug)]
pub struct FieldKeys {
    paths: KeyPaths,
    /// Documents without any of the fields have no key.
    sparse: bool,
}

impl FieldKeys {
    /// For an index without a wildcard.
    pub fn new(spec: &IndexSpec) -> Self {
        Self {
            paths: KeyPaths::new(spec.key.iter().map(|part| Path::new(&part.path))),
            sparse: spec.sparse,
        }
    }
}

/// The parts of an index on given fields: as many as its key pattern has.
pub fn parts(spec: &IndexSpec, multikey: &[u64]) -> Vec<IndexPart> {
    let parts = spec.key.iter().enumerate();
    parts
        .map(|(at, part)| IndexPart {
            path: Path::new(&part.path),
            kind: match part.order {
                KeyOrder::Ascending => PartKind::Ascending,
                KeyOrder::Descending => PartKind::Descending,
                KeyOrder::Special(_) => PartKind::Derived,
            },
            multikey: multikey.get(at).copied().unwrap_or(0),
            collated: true,
        })
        .collect()
}

impl IndexKind for FieldKeys {
    fn parts(&self, spec: &IndexSpec, multikey: &[u64]) -> Vec<IndexPart> {
        parts(spec, multikey)
    }

    fn for_each_key(&self, doc: DocRef<'_>, emit: &mut EmitKey<'_>) -> Result<MultikeyPaths> {
        self.paths.for_each_key(doc, &mut |key: &[ValueRef<'_>]| {
            if self.sparse && key.iter().all(|value| value.is_missing()) {
                return Ok(());
            }
            emit(key)
        })
    }

    fn is_touched_by(&self, touched: &Touched) -> bool {
        touched.affects_any(self.paths.paths())
    }
}
