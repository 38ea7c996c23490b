//! Ordered indexes: the values of the key's fields, each part ascending or descending.
//!
//! One that SQL has made may say how many parts its key has for SQL, and which fields go with it without being of the key:
//!
//! ```text
//! {v: 2, key: {a: 1}, name: "i", unique: true, sql: {keys: 1, include: ["b"]}}     CREATE UNIQUE INDEX i ON t (a) INCLUDE (b)
//! {v: 2, key: {a: 1, b: 1}, name: "i", sql: {keys: 1, include: ["b"]}}             CREATE INDEX i ON t (a) INCLUDE (b)
//! ```
//!
//! Where keys may repeat, such fields are further parts of the key pattern, so that they are read from entries; in a unique index they
//! would be a part of what is unique.

use super::{KindDef, OptionDef, expression};
use crate::catalog::{EmitKey, IndexKind, IndexPart, PartKind};
use nestor_model::index_spec::{IndexSpec, KeyOrder, ORDERED};
use nestor_model::{DocRef, Document, ErrorCode, Path, Result, Value, ValueRef, bail};
use nestor_query::keys::{KeyPaths, MultikeyPaths};
use nestor_query::update::Touched;
use std::sync::Arc;

/// The kind.
pub const KIND: KindDef = KindDef {
    name: ORDERED,
    options_anywhere: false,
    options: &[OptionDef {
        name: expression::OPTION,
        parse: included,
        shown: None,
    }],
    misplaced_option: ErrorCode::BadValue,
    is_single: false,
    is_outside_api: false,
    refused_on_series: None,
    check: Ok,
    open: |spec, _| Arc::new(FieldKeys::new(spec)),
};

/// Checks what SQL says of a key pattern: `keys`, the number of parts that are the key there, and `include`, paths of fields; `orders`, of each
/// part of the key whether it descends (1) and whether nulls come first there (2).
///
/// Errors: 14 for one that is no object, 2 for one of another form.
fn included(value: ValueRef<'_>, key: &Document) -> Result<Value> {
    let ValueRef::Document(said) = value else {
        let kind = value.bson_type().alias();
        bail!(
            TypeMismatch,
            "The field '{}' must be an object, but got {kind}",
            expression::OPTION
        );
    };
    let is_order =
        |order: ValueRef<'_>| nestor_model::number::safe_i64(order).is_some_and(|order| (0..4).contains(&order));
    let orders = said.get("orders").map(|orders| match orders {
        ValueRef::Array(orders) => orders.iter().all(is_order) && orders.iter().count() <= key.iter().count(),
        _ => false,
    });
    if orders == Some(true) && said.iter().count() == 1 {
        return Ok(value.to_value());
    }
    let keys = said.get("keys").and_then(nestor_model::number::safe_i64);
    let is_count = keys.and_then(|keys| usize::try_from(keys).ok());
    let is_count = is_count.is_some_and(|keys| (1..=key.iter().count()).contains(&keys));
    let are_paths = match said.get("include") {
        Some(ValueRef::Array(paths)) => {
            paths.iter().next().is_some()
                && paths
                    .iter()
                    .all(|path| path.as_str().is_some_and(|path| !path.is_empty()))
        }
        _ => false,
    };
    if !is_count || !are_paths || orders == Some(false) || said.iter().count() != 2 + usize::from(orders.is_some()) {
        bail!(
            BadValue,
            "The field '{}' of an index on fields says how many of them are 'keys' and which others it has to 'include'",
            expression::OPTION
        );
    }
    Ok(value.to_value())
}

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
