//! Hashed indexes: of one field a hash of its value, which finds single values and nothing else.
//!
//! ```text
//! index {h: "hashed", a: 1}    {h: 5, a: 2}    →   (hash of 5, 2)
//! ```
//!
//! Numbers that are equal have one hash; arrays are refused. Strings are hashed as the sort keys of the index's
//! collation. Source: manual, "Hashed Indexes".

mod bounds;

use super::ordered::{self, FieldKeys};
use super::{KindDef, refuse_wildcard_parts};
use crate::bounds::{Part, Tightness};
use crate::catalog::{EmitKey, IndexKind, IndexPart};
use crate::interval::IntervalList;
use nestor_model::index_spec::{IndexSpec, KeyOrder};
use nestor_model::{DocRef, Error, ErrorCode, Result, Str, ValueRef, bail};
use nestor_query::collation::{Collator, stored};
use nestor_query::expr::hashed_index_key;
use nestor_query::keys::MultikeyPaths;
use nestor_query::matcher::Predicate;
use nestor_query::update::Touched;
use std::sync::Arc;

/// The kind.
pub const KIND: KindDef = KindDef {
    name: "hashed",
    options_anywhere: false,
    options: &[],
    misplaced_option: ErrorCode::BadValue,
    is_single: false,
    is_outside_api: false,
    refused_on_series: None,
    check,
    open: |spec, collation| Arc::new(Hashed::new(spec, collation)),
};

/// Errors: 31303 for several hashed parts, 16764 for what would have to be unique.
fn check(spec: IndexSpec) -> Result<IndexSpec> {
    let hashed = spec.key.iter().filter(|part| is_hashed(&part.order)).count();
    if hashed > 1 {
        bail!(
            31303,
            "A maximum of one index field is allowed to be hashed but found {hashed} for 'key' {:?}",
            spec.key_pattern
        );
    }
    if spec.unique || spec.prepare_unique {
        bail!(
            16764,
            "Currently hashed indexes cannot guarantee uniqueness. Use a regular index."
        );
    }
    refuse_wildcard_parts(&spec)?;
    Ok(spec)
}

fn is_hashed(order: &KeyOrder) -> bool {
    matches!(order, KeyOrder::Special(_))
}

/// A hashed index.
#[derive(Debug)]
struct Hashed {
    /// The name of the index, for errors.
    name: Str,
    fields: FieldKeys,
    /// The part that is hashed.
    at: usize,
    collation: Option<Collator>,
}

impl Hashed {
    fn new(spec: &IndexSpec, collation: Option<&Collator>) -> Self {
        Self {
            name: spec.name.clone(),
            fields: FieldKeys::new(spec),
            at: spec.key.iter().position(|part| is_hashed(&part.order)).unwrap_or(0),
            collation: collation.cloned(),
        }
    }

    fn hash(&self, value: ValueRef<'_>) -> i64 {
        let value = if value.is_missing() { ValueRef::Null } else { value };
        let collated = self.collation.as_ref().and_then(|collator| stored(value, collator));
        hashed_index_key(collated.as_ref().map_or(value, ValueRef::from))
    }
}

impl IndexKind for Hashed {
    fn parts(&self, spec: &IndexSpec, multikey: &[u64]) -> Vec<IndexPart> {
        let mut parts = ordered::parts(spec, multikey);
        // The hash is a number that no collation changes.
        parts[self.at].collated = false;
        parts
    }

    fn for_each_key(&self, doc: DocRef<'_>, emit: &mut EmitKey<'_>) -> Result<MultikeyPaths> {
        let multikey = self.fields.for_each_key(doc, &mut |values| {
            let mut key = values.to_vec();
            key[self.at] = ValueRef::Int64(self.hash(key[self.at]));
            emit(&key)
        })?;
        if multikey.is_multikey() {
            return Err(Error::location(
                16766,
                format!(
                    "hashed indexes do not currently support array values. Index: {}",
                    self.name
                ),
            ));
        }
        Ok(multikey)
    }

    fn is_touched_by(&self, touched: &Touched) -> bool {
        self.fields.is_touched_by(touched)
    }

    fn bounds(
        &self,
        part: usize,
        predicate: &Predicate,
        negated: bool,
        properties: Part<'_>,
    ) -> Option<(IntervalList, Tightness)> {
        if part != self.at {
            return self.fields.bounds(part, predicate, negated, properties);
        }
        match negated {
            false => bounds::of(predicate, properties),
            // Many values may have another hash.
            true => None,
        }
    }
}
