//! Tests of one value.

use super::{CompareOp, Leaves, MatchExpr, Predicate};
use crate::collation::{Collator, compare as compare_collated};
use crate::env::OpContext;
use crate::regex::Regex;
use nestor_model::order::canonical_class;
use nestor_model::statement::work;
use nestor_model::{ArrayRef, Result, Value, ValueRef, compare};
use std::cmp::Ordering;

/// The values and regular expressions of `$in`.
#[derive(Clone, Debug, Default)]
pub struct InSet {
    /// In ascending order, distinct.
    values: Vec<Value>,
    regexes: Vec<Regex>,
    has_null: bool,
    collator: Option<Collator>,
}

impl InSet {
    /// Sorts and dedupes `values`.
    pub fn new(mut values: Vec<Value>, regexes: Vec<Regex>, collator: Option<Collator>) -> Self {
        let order = |a: &Value, b: &Value| compare_collated(a.as_ref(), b.as_ref(), collator.as_ref());
        values.sort_by(order);
        values.dedup_by(|a, b| order(a, b).is_eq());
        Self {
            has_null: values.iter().any(|v| matches!(v, Value::Null)),
            values,
            regexes,
            collator,
        }
    }

    /// The values, ascending and distinct.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The regular expressions, as given.
    pub fn regexes(&self) -> &[Regex] {
        &self.regexes
    }

    /// Null is among the values, so missing fields match.
    pub fn has_null(&self) -> bool {
        self.has_null
    }

    /// The collator the values are ordered by.
    pub fn collator(&self) -> Option<&Collator> {
        self.collator.as_ref()
    }

    fn matches(&self, value: ValueRef<'_>) -> Result<bool> {
        if value.is_missing() {
            return Ok(self.has_null);
        }
        let collator = self.collator.as_ref();
        if self
            .values
            .binary_search_by(|v| compare_collated(v.as_ref(), value, collator))
            .is_ok()
        {
            return Ok(true);
        }
        for regex in &self.regexes {
            if regex_matches(regex, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// `$mod`: the remainder of division by `divisor`, with the sign of the dividend, is `remainder`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModTest {
    /// Not zero.
    pub divisor: i64,
    /// Compared to the remainder.
    pub remainder: i64,
}

impl ModTest {
    fn matches(self, value: ValueRef<'_>) -> bool {
        match truncated(value) {
            // The one overflow, i64::MIN by -1, has remainder 0.
            Some(n) => n.checked_rem(self.divisor).unwrap_or(0) == self.remainder,
            None => false,
        }
    }
}

/// A number without its fraction, if that fits 64 bits.
pub(crate) fn truncated(value: ValueRef<'_>) -> Option<i64> {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    match value {
        ValueRef::Int32(v) => Some(i64::from(v)),
        ValueRef::Int64(v) => Some(v),
        ValueRef::Double(v) => (-TWO_63..TWO_63).contains(&v).then(|| v.trunc() as i64),
        ValueRef::Decimal128(v) => v.to_i64_truncated(),
        _ => None,
    }
}

impl Predicate {
    /// How an array at the end of the path is looked at.
    pub(crate) fn leaves(&self) -> Leaves {
        match self {
            Predicate::Exists | Predicate::Size(_) | Predicate::ElemMatchObject(_) | Predicate::ElemMatchValue(_) => {
                Leaves::Whole
            }
            _ => Leaves::Elements,
        }
    }

    /// Whether one of the values passes that a path reaches, elements of arrays being values of their own.
    ///
    /// Errors: those of regular expressions, of locations and of the statement's interrupt.
    pub fn accepts(&self, value: ValueRef<'_>, op: &OpContext) -> Result<bool> {
        self.test(value, op, &mut None)
    }

    /// Tests one value, arrays not being looked into except by `$elemMatch`, which reports the index it
    /// found in `position`.
    pub(crate) fn test(&self, value: ValueRef<'_>, op: &OpContext, position: &mut Option<usize>) -> Result<bool> {
        Ok(match self {
            Predicate::Compare {
                op,
                value: operand,
                collator,
            } => compare_matches(*op, value, operand.as_ref(), collator.as_ref()),
            Predicate::In(set) => set.matches(value)?,
            Predicate::Regex(regex) => regex_matches(regex, value)?,
            Predicate::Exists => !value.is_missing(),
            Predicate::Type(types) => types.contains(value.bson_type()),
            Predicate::Size(size) => match value {
                ValueRef::Array(items) => has_length(items, *size),
                _ => false,
            },
            Predicate::Mod(test) => test.matches(value),
            Predicate::Bits(test) => test.matches(value),
            Predicate::Geo(test) => test.matches(value)?,
            Predicate::Near(near) => near.distance(value)?.is_some_and(|distance| near.counts(distance)),
            Predicate::ElemMatchObject(inner) => first_element(value, position, |item| match item {
                ValueRef::Document(doc) => inner.matches(doc, op),
                // An array is a document of its indexes here.
                ValueRef::Array(items) => inner.matches_array(items, op),
                _ => Ok(false),
            })?,
            Predicate::ElemMatchValue(inner) => first_element(value, position, |item| inner.matches_element(item, op))?,
        })
    }
}

fn first_element<'a>(
    value: ValueRef<'a>,
    position: &mut Option<usize>,
    mut test: impl FnMut(ValueRef<'a>) -> Result<bool>,
) -> Result<bool> {
    let ValueRef::Array(items) = value else {
        return Ok(false);
    };
    for (i, item) in items.iter().enumerate() {
        work(1)?;
        if test(item)? {
            *position = Some(i);
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_length(items: ArrayRef<'_>, size: i64) -> bool {
    match items {
        ArrayRef::Items(items) => i64::try_from(items.len()).is_ok_and(|n| n == size),
        // Stops one past the wanted size instead of walking a long array to its end.
        raw @ ArrayRef::Raw(_) => match usize::try_from(size) {
            Ok(size) => raw.iter().take(size.saturating_add(1)).count() == size,
            Err(_) => false,
        },
    }
}

fn regex_matches(regex: &Regex, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::String(text) | ValueRef::Symbol(text) => regex.is_match(text),
        ValueRef::Regex { pattern, options } => Ok(pattern == regex.pattern() && options == regex.options()),
        _ => Ok(false),
    }
}

pub(crate) fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(v) => v.is_nan(),
        ValueRef::Decimal128(v) => v.is_nan(),
        _ => false,
    }
}

fn compare_matches(op: CompareOp, value: ValueRef<'_>, operand: ValueRef<'_>, collator: Option<&Collator>) -> bool {
    match operand {
        // Null equals missing but, since MongoDB 8.0, not undefined.
        ValueRef::Null => matches!(value, ValueRef::Null | ValueRef::Missing) && op.accepts(Ordering::Equal),
        // The ends of the order compare with every type.
        ValueRef::MinKey | ValueRef::MaxKey => op.accepts(compare(value, operand)),
        _ => {
            if canonical_class(value.bson_type()) != canonical_class(operand.bson_type()) {
                return false;
            }
            // NaN is equal to NaN and otherwise has no order.
            match (is_nan(value), is_nan(operand)) {
                (false, false) => op.accepts(compare_collated(value, operand, collator)),
                (true, true) => op.accepts(Ordering::Equal),
                _ => false,
            }
        }
    }
}

impl MatchExpr {
    /// Tests one element for a value `$elemMatch`: leaves test the value itself, whatever their path.
    pub(crate) fn matches_element(&self, value: ValueRef<'_>, op: &OpContext) -> Result<bool> {
        let each = |children: &[MatchExpr], wanted: bool| -> Result<bool> {
            for child in children {
                work(1)?;
                if child.matches_element(value, op)? == wanted {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Ok(match self {
            MatchExpr::AlwaysTrue => true,
            MatchExpr::AlwaysFalse => false,
            MatchExpr::And(children) => !each(children, false)?,
            MatchExpr::Or(children) => each(children, true)?,
            MatchExpr::Nor(children) => !each(children, true)?,
            MatchExpr::Not(child) => !child.matches_element(value, op)?,
            MatchExpr::Leaf(leaf) => leaf.predicate.test(value, op, &mut None)?,
            // Parsing refuses them inside $elemMatch.
            MatchExpr::Expr(_) | MatchExpr::Text(_) => false,
            MatchExpr::JsonSchema(schema) => schema.matches(value)?,
            MatchExpr::SampleRate(rate) => op.random_f64() < *rate,
        })
    }
}
