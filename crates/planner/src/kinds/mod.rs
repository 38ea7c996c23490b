//! Kinds of indexes: one folder for each, and this table.
//!
//! | kind | key pattern | a stored key holds |
//! |---|---|---|
//! | [`ordered`] | `{a: 1, b: -1}` | the values, in order |
//! | [`hashed`] | `{a: 1, h: "hashed"}` | of one part a hash of the value |
//! | [`wildcard`] | `{a: 1, "$**": 1}` | for each scalar its path and its value |
//! | [`sphere`] | `{a: 1, loc: "2dsphere"}` | of geometry the cells of the sphere that it lies in |
//! | [`text`] | `{a: 1, t: "text"}` | of texts each term and what it scores |
//! | [`plane`] | `{loc: "2d", a: 1}` | of a coordinate pair the square of a grid that it lies in |
//! | [`expression`] | `{"lower(a)": "expression"}` | what expressions of SQL give |
//!
//! A kind says which specifications make sense ([`KindDef::check`]), how documents become keys
//! ([`IndexKind::for_each_key`]), and how conditions become bounds and access paths ([`IndexKind::bounds`],
//! [`IndexKind::uses`]). All of that is computation on documents and filters, so it is here and not where keys are
//! written: writers, index builds, the verifier and the planner take it from one place. What explain shows of a scan
//! is what the kind put into the access path: names of parts, key pattern, bounds.
//!
//! A new kind is a folder and a line in [`KINDS`]. If it finds documents by other means than scans of entries in order,
//! its access paths have a node of their own in [`crate::plan::PlanNode`], and that node an operator in `exec`.

pub mod expression;
pub mod hashed;
pub mod ordered;
pub mod plane;
pub mod sphere;
pub mod text;
pub mod wildcard;

use crate::catalog::{Condition, IndexInfo, IndexKind, IndexUse, KeyTest};
use nestor_model::index_spec::{IndexSpec, KeyOrder, ORDERED};
use nestor_model::{DocRef, Document, ErrorCode, Result, Value, ValueRef, bail};
use nestor_query::Scope;
use nestor_query::collation::Collator;
use nestor_query::matcher::{MatchExpr, Predicate};
use std::sync::Arc;

/// For kinds that no wildcard is a part of. Errors: 67.
fn refuse_wildcard_parts(spec: &IndexSpec) -> Result<()> {
    if let Some(part) = spec.key.iter().find(|part| part.is_wildcard()) {
        bail!(
            CannotCreateIndex,
            "wildcard indexes do not allow parts of other types: '{}' in {:?}",
            part.path,
            spec.key_pattern
        );
    }
    Ok(())
}

/// All kinds.
const KINDS: &[&KindDef] = &[
    &ordered::KIND,
    &hashed::KIND,
    &wildcard::KIND,
    &sphere::KIND,
    &plane::KIND,
    &text::KIND,
    &expression::KIND,
];

/// Names of kinds that MongoDB has and Nestor does not.
const UNSUPPORTED: &[&str] = &["geoHaystack"];

/// Facts about a kind that hold without an index.
pub struct KindDef {
    /// Its name, as [`IndexSpec::kind`] gives it.
    pub name: &'static str,
    /// The options of specifications that mean something to indexes of this kind.
    pub options: &'static [OptionDef],
    /// Whether indexes of other kinds may have these options: MongoDB lists geographical ones with any index, and drivers send
    /// them. Otherwise they are refused there.
    pub options_anywhere: bool,
    /// The error for one of these options in an index of another kind.
    pub misplaced_option: ErrorCode,
    /// A collection has one index of the kind at most.
    pub is_single: bool,
    /// API version 1 has no indexes of the kind.
    pub is_outside_api: bool,
    /// Why a time-series collection has no indexes of the kind, if it has none.
    pub refused_on_series: Option<&'static str>,
    /// Checks that key and options go together, and completes the specification where the kind has defaults to write
    /// down. What is true of all kinds has been checked before.
    pub check: fn(IndexSpec) -> Result<IndexSpec>,
    /// An index of the kind, whose strings have this collation.
    pub open: fn(&IndexSpec, Option<&Collator>) -> Arc<dyn IndexKind>,
}

impl KindDef {
    /// Says of an option of this kind that an index of another one has it.
    pub fn only_here(&self, option: &str) -> String {
        let kind = if self.name == ORDERED {
            "n ordered"
        } else {
            &format!(" {}", self.name)
        };
        format!("The field '{option}' is only allowed in a{kind} index")
    }

    /// What an option means to indexes of this kind: one of its own, or of a kind whose options all may have.
    ///
    /// Errors: the kind that has the option, if this one does not; none where no kind does.
    pub fn option(&self, name: &str) -> std::result::Result<&'static OptionDef, Option<&'static Self>> {
        if let Some(own) = self.options.iter().find(|option| option.name == name) {
            return Ok(own);
        }
        match option(name) {
            Some((owner, option)) if owner.options_anywhere => Ok(option),
            other => Err(other.map(|(owner, _)| owner)),
        }
    }
}

/// An option of one kind of index.
pub struct OptionDef {
    /// Its name.
    pub name: &'static str,
    /// Checks a value against the key pattern and gives it the form in which it is kept.
    pub parse: fn(ValueRef<'_>, &Document) -> Result<Value>,
    /// The form in which `listIndexes` shows what is kept, if it is another.
    pub shown: Option<fn(ValueRef<'_>) -> Value>,
}

/// The kind of an index.
///
/// Errors: 67 for a kind that Nestor does not have.
pub fn of(spec: &IndexSpec) -> Result<&'static KindDef> {
    let name = spec.kind();
    match KINDS.iter().find(|kind| kind.name == name) {
        Some(kind) => Ok(kind),
        None if UNSUPPORTED.contains(&name) => {
            bail!(CannotCreateIndex, "indexes of type '{name}' are not supported")
        }
        None => bail!(CannotCreateIndex, "Unknown index plugin '{name}'"),
    }
}

/// The index with this specification. `multikey[i]` are the bits of part `i` of the key pattern: see
/// [`crate::catalog::IndexPart::multikey`].
///
/// Errors: those of [`of`]; 2 for a collation that this version does not know; those of parsing the partial filter.
pub fn open(id: u32, spec: &IndexSpec, multikey: &[u64]) -> Result<IndexInfo> {
    let collation = match &spec.collation {
        Some(collation) => Collator::parse(collation.as_ref())?,
        None => None,
    };
    let partial = match &spec.partial_filter {
        Some(filter) => {
            let mut scope = Scope::new().with_collator(collation.clone());
            Some(Arc::new(MatchExpr::parse(filter.as_ref(), &mut scope)?.normalize()))
        }
        None => None,
    };
    let kind = (of(spec)?.open)(spec, collation.as_ref());
    Ok(IndexInfo {
        id,
        name: spec.name.clone(),
        key_pattern: spec.key_pattern.clone(),
        parts: kind.parts(spec, multikey),
        unique: spec.unique,
        sparse: spec.sparse || kind.needs_condition(),
        declared_sparse: spec.sparse,
        partial,
        kind,
        collation,
        hidden: spec.hidden,
    })
}

/// Whether API version 1 has no indexes of the kind of this name.
pub fn is_outside_api(name: &str) -> bool {
    UNSUPPORTED.contains(&name) || KINDS.iter().any(|kind| kind.is_outside_api && kind.name == name)
}

/// Why a time-series collection has no index with this key pattern, if its kind is the reason.
pub fn refused_on_series(key: DocRef<'_>) -> Option<&'static str> {
    let refused = |(_, order): (&str, ValueRef<'_>)| {
        let name = order.as_str()?;
        KINDS.iter().find(|kind| kind.name == name)?.refused_on_series
    };
    key.iter().find_map(refused)
}

/// The first kind that has an option, and the option.
pub fn option(name: &str) -> Option<(&'static KindDef, &'static OptionDef)> {
    KINDS.iter().find_map(|kind| {
        let option = kind.options.iter().find(|option| option.name == name)?;
        Some((*kind, option))
    })
}

/// Checks a specification by its kind, and completes it.
///
/// Errors: those of [`of`]; 2 for an option of another kind; 67 for two kinds in one key, and what the kind refuses.
pub fn check(spec: IndexSpec) -> Result<IndexSpec> {
    let kind = of(&spec)?;
    let other = spec.key.iter().find_map(|part| match &part.order {
        KeyOrder::Special(name) if name != kind.name => Some(name),
        _ => None,
    });
    if let Some(other) = other {
        bail!(
            CannotCreateIndex,
            "an index may have one special type only, but has '{}' and '{other}': {:?}",
            kind.name,
            spec.key_pattern
        );
    }
    for (name, _) in spec.listed().as_raw().iter() {
        if let Err(Some(owner)) = kind.option(name) {
            bail!(BadValue, "{}", owner.only_here(name));
        }
    }
    (kind.check)(spec)
}

/// The condition by which entries are told apart: the only one on a part of `geo`. Of several conditions on arrays each may hold for
/// another element.
fn geo_key_test(geo: &[usize], index: &IndexInfo, conditions: &[Condition<'_>]) -> Option<KeyTest> {
    let mut tests = conditions.iter().filter_map(|condition| {
        let Predicate::Geo(test) = condition.predicate else {
            return None;
        };
        let part = geo.iter().find(|at| index.parts[**at].path == condition.path)?;
        (!condition.negated).then(|| KeyTest {
            part: *part,
            test: test.clone(),
        })
    });
    let only = tests.next()?;
    tests.next().is_none().then_some(only)
}

/// The use of an index whose parts `geo` are geometry: for conditions on one of them. Documents without geometry have no
/// entry, but none of them satisfies such a condition.
fn geo_uses<'f>(geo: &[usize], index: &IndexInfo, conditions: &[Condition<'f>]) -> Vec<IndexUse<'f>> {
    let is_of_use = |condition: &Condition<'_>| {
        let tests = matches!(condition.predicate, Predicate::Geo(_)) && !condition.negated;
        tests && geo.iter().any(|at| index.parts[*at].path == condition.path)
    };
    if !conditions.iter().any(is_of_use) {
        return Vec::new();
    }
    let mut index = IndexInfo::clone(index);
    index.sparse = false;
    vec![IndexUse {
        index: Arc::new(index),
        conditions: conditions.to_vec(),
        fixed: None,
    }]
}
