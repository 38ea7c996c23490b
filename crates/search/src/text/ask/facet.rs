//! Facets: how many of the documents that are found have which values.

use super::super::store::Atom;
use crate::operand::{Operand, double, refuse};
use nestor_model::{Result, Value, ValueRef};

/// Boundaries of a facet, and buckets of one of strings.
const BUCKETS_MAX: i32 = 1000;
const BUCKETS_DEFAULT: i32 = 10;

/// A facet.
#[derive(Debug)]
pub(in crate::text) struct Facet {
    pub(in crate::text) name: String,
    pub(in crate::text) path: String,
    pub(in crate::text) kind: FacetKind,
}

/// What a facet counts.
#[derive(Debug)]
pub(in crate::text) enum FacetKind {
    /// The most frequent strings.
    Strings {
        buckets: usize,
    },
    Numbers(Buckets),
    Dates(Buckets),
}

/// Ranges of values.
#[derive(Debug)]
pub(in crate::text) struct Buckets {
    /// Bucket `i` has the values from `boundaries[i]` until before `boundaries[i + 1]`.
    pub(in crate::text) boundaries: Vec<Atom>,
    /// The boundaries as they were written.
    pub(in crate::text) written: Vec<Value>,
    /// The bucket of all other values.
    pub(in crate::text) others: Option<String>,
}

/// The facets of a collector.
pub(super) fn read(spec: &Operand<'_>) -> Result<Vec<Facet>> {
    let facets = spec.required_document("facets")?;
    let read: Vec<Facet> = facets
        .doc()
        .iter()
        .map(|(name, value)| one(name, &Operand::of(facets.name_of(name), value)?))
        .collect::<Result<_>>()?;
    match read.is_empty() {
        true => refuse!("\"{}\" cannot be empty", facets.name()),
        false => Ok(read),
    }
}

fn one(name: &str, spec: &Operand<'_>) -> Result<Facet> {
    spec.required("type")?;
    let kinds = [("date", 0), ("number", 1), ("string", 2)];
    let kind = match spec.choice("type", &kinds)? {
        Some(2) => {
            spec.only(&["type", "path", "numBuckets"])?;
            let buckets = spec.integer_within("numBuckets", 1..=BUCKETS_MAX)?;
            FacetKind::Strings {
                buckets: buckets.unwrap_or(BUCKETS_DEFAULT) as usize,
            }
        }
        Some(1) => FacetKind::Numbers(buckets(spec, "numbers", |value| double(value).map(Atom::number))?),
        _ => FacetKind::Dates(buckets(spec, "dates", |value| match value {
            ValueRef::DateTime(at) => Some(Atom::Date(at)),
            _ => None,
        })?),
    };
    Ok(Facet {
        name: name.to_owned(),
        path: spec.required_string("path")?.to_owned(),
        kind,
    })
}

fn buckets(spec: &Operand<'_>, what: &str, atom: impl Fn(ValueRef<'_>) -> Option<Atom>) -> Result<Buckets> {
    spec.only(&["type", "path", "boundaries", "default"])?;
    spec.required("boundaries")?;
    let name = spec.name_of("boundaries");
    let Some(items) = spec.array("boundaries")? else {
        refuse!("\"{name}\" is required");
    };
    let (mut boundaries, mut written) = (Vec::new(), Vec::new());
    for item in items {
        match atom(item) {
            Some(boundary) => boundaries.push(boundary),
            None => refuse!("\"{name}\" must be an array of {what}"),
        }
        written.push(item.to_value());
    }
    if !(2..=BUCKETS_MAX as usize).contains(&boundaries.len()) {
        refuse!("\"{name}\" must have at least 2 and at most {BUCKETS_MAX} elements");
    }
    if !boundaries.is_sorted_by(|a, b| a < b) {
        refuse!("\"{name}\" must be distinct and ascend");
    }
    Ok(Buckets {
        boundaries,
        written,
        others: spec.string("default")?.map(str::to_owned),
    })
}
