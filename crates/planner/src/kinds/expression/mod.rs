//! Indexes on expressions of SQL: what is computed of a document, beside values of fields.
//!
//! ```text
//! {v: 2, key: {"lower(email)": "expression", a: 1}, name: "i", sql: {...}}     {email: "A@B", a: 2}    →   ("a@b", 2)
//! ```
//!
//! What an expression is stands in the option `sql`, and is not understood here: whoever runs a server says by [`install`] how such
//! specifications are computed. All parts are computed, those that are plain columns too. No condition of a find is about
//! an expression, so the planner has no use for these indexes; who computes the same expression scans them for its value.
//!
//! In a unique index a key with a null is no key: two documents may have it.

use super::{KindDef, OptionDef};
use crate::bounds::{Part, Tightness};
use crate::catalog::{Computed, EmitKey, IndexKind, IndexPart, PartKind};
use crate::interval::IntervalList;
use nestor_model::index_spec::{IndexSpec, KeyOrder};
use nestor_model::{DocRef, Document, ErrorCode, Path, Result, Value, ValueRef, bail};
use nestor_query::keys::{KeyPaths, MultikeyPaths};
use nestor_query::matcher::Predicate;
use nestor_query::update::Touched;
use std::sync::{Arc, OnceLock};

/// The name of the kind, as key patterns have it.
pub const NAME: &str = "expression";

/// The option that says what the expressions are.
pub const OPTION: &str = "sql";

/// The kind.
pub const KIND: KindDef = KindDef {
    name: NAME,
    options_anywhere: false,
    options: &[OptionDef {
        name: OPTION,
        parse: |value, _| match value {
            ValueRef::Document(_) => Ok(value.to_value()),
            _ => bail!(
                TypeMismatch,
                "The field '{OPTION}' must be an object, but got {}",
                value.bson_type().alias()
            ),
        },
        shown: None,
    }],
    misplaced_option: ErrorCode::InvalidIndexSpecificationOption,
    is_single: false,
    is_outside_api: true,
    refused_on_series: Some("indexes on expressions"),
    check,
    open: |spec, _| Arc::new(Expressions::new(spec)),
};

/// How a specification is computed.
pub type Compile = fn(&IndexSpec) -> Result<Arc<dyn Computed>>;

static COMPILE: OnceLock<Compile> = OnceLock::new();

/// Says how specifications are computed, for all stores of the process. Call it before one is opened; later calls change nothing.
pub fn install(compile: Compile) {
    let _ = COMPILE.set(compile);
}

fn compile(spec: &IndexSpec) -> Result<Arc<dyn Computed>> {
    match COMPILE.get() {
        Some(compile) => compile(spec),
        None => bail!(
            CannotCreateIndex,
            "the index '{}' is on an expression of SQL, which this program does not know",
            spec.name
        ),
    }
}

/// Errors: 67 for what cannot be computed.
fn check(spec: IndexSpec) -> Result<IndexSpec> {
    super::refuse_wildcard_parts(&spec)?;
    if spec.option(OPTION).is_none() || spec.collation.is_some() || spec.sparse || spec.expire_after_secs.is_some() {
        bail!(
            CannotCreateIndex,
            "an index on expressions is made by SQL's CREATE INDEX: {:?}",
            spec.key_pattern
        );
    }
    let computed = compile(&spec)?;
    let values = computed.values(Document::new().as_ref())?;
    if values.len() != spec.key.len() {
        bail!(
            CannotCreateIndex,
            "the index '{}' has {} parts and {} expressions",
            spec.name,
            spec.key.len(),
            values.len()
        );
    }
    Ok(spec)
}

/// An index on expressions.
#[derive(Debug)]
struct Expressions {
    /// How its keys are computed; the error, where nobody knows.
    computed: Result<Arc<dyn Computed>>,
    paths: KeyPaths,
    unique: bool,
}

impl Expressions {
    fn new(spec: &IndexSpec) -> Self {
        let computed = compile(spec);
        let paths = computed
            .as_ref()
            .map_or_else(|_| Vec::new(), |computed| computed.paths());
        Self {
            paths: KeyPaths::new(paths.iter().map(|path| Path::new(path))),
            computed,
            unique: spec.unique,
        }
    }
}

impl IndexKind for Expressions {
    fn parts(&self, spec: &IndexSpec, _: &[u64]) -> Vec<IndexPart> {
        let spreads = self.computed.as_ref().is_ok_and(|computed| computed.spreads());
        let part = |at: usize, descends: bool| IndexPart {
            // A name that no field has.
            path: Path::new(&format!("\u{1}{at}")),
            kind: if descends {
                PartKind::Descending
            } else {
                PartKind::Derived
            },
            multikey: u64::from(spreads && at == 0),
            collated: false,
        };
        let parts = spec.key.iter().enumerate();
        parts
            .map(|(at, own)| part(at, own.order == KeyOrder::Descending))
            .collect()
    }

    fn for_each_key(&self, doc: DocRef<'_>, emit: &mut EmitKey<'_>) -> Result<MultikeyPaths> {
        let computed = self.computed.as_ref().map_err(Clone::clone)?;
        if !computed.has(doc)? {
            return Ok(MultikeyPaths::default());
        }
        let mut values = computed.values(doc)?;
        if let (true, Some(Value::Array(items))) = (computed.spreads(), values.first().cloned()) {
            for item in items.iter() {
                values[0] = item.to_value();
                let key: Vec<ValueRef<'_>> = values.iter().map(ValueRef::from).collect();
                emit(&key)?;
            }
            return Ok(MultikeyPaths::default());
        }
        let is_none = self.unique && values.iter().any(Value::is_nullish);
        if !is_none {
            let key: Vec<ValueRef<'_>> = values.iter().map(ValueRef::from).collect();
            emit(&key)?;
        }
        Ok(MultikeyPaths::default())
    }

    fn is_touched_by(&self, touched: &Touched) -> bool {
        touched.affects_any(self.paths.paths())
    }

    fn bounds(&self, _: usize, _: &Predicate, _: bool, _: Part<'_>) -> Option<(IntervalList, Tightness)> {
        None
    }

    fn needs_condition(&self) -> bool {
        true
    }

    fn covers(&self) -> bool {
        false
    }

    fn computed(&self) -> Option<&Arc<dyn Computed>> {
        self.computed.as_ref().ok()
    }
}
