//! From one condition on a path to the bounds of an index part over that path.
//!
//! [`Tightness`] says what is still to check: nothing, the index key's value, or the whole document.
//! The value of an index key is one element where the path runs through arrays, so most conditions hold
//! for the document as soon as one key satisfies them.
//!
//! An index with a collation has sort keys in place of strings ([`crate::collation`]). Conditions of that collation
//! have bounds of sort keys; under any other only conditions that no string can satisfy have bounds at all.
//! Source: manual, "Multikey Index Bounds", "Create Indexes to Support Your Queries", "Collation and Index Use".

use crate::collation::{answers, stored};
use crate::interval::{Interval, IntervalList, bracket_high, bracket_low, is_nan, regex};
use nestor_model::{ArrayRef, BsonType, Value, ValueRef};
use nestor_query::collation::Collator;
use nestor_query::matcher::{CompareOp, InSet, MatchExpr, Predicate};
use nestor_query::regex::Regex;

/// How closely bounds stand for a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Tightness {
    /// A key lies within exactly when the condition holds.
    Exact,
    /// The condition must be checked, but the key's value is enough for it.
    InexactCovered,
    /// The document is needed to check the condition.
    InexactFetch,
}

/// The properties of the index part.
#[derive(Clone, Copy, Debug)]
pub struct Part<'i> {
    /// The path ran through arrays in some document.
    pub multikey: bool,
    /// Documents without the field have no entry.
    pub sparse: bool,
    /// Keys have the sort keys of this collation in place of strings.
    pub collation: Option<&'i Collator>,
}

/// The bounds for a condition on the index part's path: a test of its values, or that none passes the test.
pub fn condition_bounds(predicate: &Predicate, negated: bool, part: Part<'_>) -> Option<(IntervalList, Tightness)> {
    match negated {
        false => bounds(predicate, part),
        true => complement_bounds(predicate, part),
    }
}

/// The bounds for a test of the values at the index part's path; `None` when an index is of no use for it.
pub fn bounds(predicate: &Predicate, part: Part<'_>) -> Option<(IntervalList, Tightness)> {
    match predicate {
        Predicate::Compare { op, value, collator } => {
            let usable = answers(part.collation, collator.as_ref(), value);
            usable.then(|| compare_bounds(*op, &stored(value, part.collation), part))?
        }
        Predicate::In(set) => in_bounds(set, part),
        Predicate::Regex(test) => Some(regex_bounds(test, part)),
        Predicate::Exists if part.sparse => Some((IntervalList::all(), Tightness::Exact)),
        Predicate::Exists => Some((IntervalList::all(), Tightness::InexactFetch)),
        Predicate::Type(types) => Some(type_bounds(types.all())),
        Predicate::Mod(_) => {
            let (low, high) = (bracket_low(BsonType::Double), bracket_high(BsonType::Double));
            Some((
                IntervalList::of(Interval::new(low.0, low.1, high.0, high.1)),
                Tightness::InexactCovered,
            ))
        }
        Predicate::ElemMatchValue(inner) => elem_match_bounds(inner, part),
        _ => None,
    }
}

fn compare_bounds(op: CompareOp, value: &Value, part: Part<'_>) -> Option<(IntervalList, Tightness)> {
    if op == CompareOp::Eq {
        return equality_bounds(value, part);
    }
    let kind = value.bson_type();
    let exact = |interval| Some((IntervalList::of(interval), Tightness::Exact));
    match value {
        // Comparing with null is equality for the inclusive forms and nothing for the others.
        Value::Null | Value::Undefined | Value::Missing => match op {
            CompareOp::Lte | CompareOp::Gte => equality_bounds(&Value::Null, part),
            _ => Some((IntervalList::none(), Tightness::Exact)),
        },
        // Below MaxKey and above MinKey lies everything, also what is missing: that a sparse index does not have.
        Value::MaxKey if part.sparse && matches!(op, CompareOp::Lt | CompareOp::Lte) => None,
        Value::MinKey if part.sparse && matches!(op, CompareOp::Gt | CompareOp::Gte) => None,
        Value::MaxKey if matches!(op, CompareOp::Lt | CompareOp::Lte) => {
            let interval = Interval::new(Value::MinKey, true, Value::MaxKey, op == CompareOp::Lte);
            Some((IntervalList::of(interval), Tightness::InexactFetch))
        }
        Value::MinKey if matches!(op, CompareOp::Gt | CompareOp::Gte) => {
            let interval = Interval::new(Value::MinKey, op == CompareOp::Gte, Value::MaxKey, true);
            Some((IntervalList::of(interval), Tightness::InexactFetch))
        }
        Value::MinKey | Value::MaxKey => match op {
            CompareOp::Lte | CompareOp::Gte => Some((IntervalList::point(value.clone()), Tightness::Exact)),
            _ => Some((IntervalList::none(), Tightness::Exact)),
        },
        _ if is_nan(value) => match op {
            CompareOp::Lte | CompareOp::Gte => Some((IntervalList::point(value.clone()), Tightness::Exact)),
            _ => Some((IntervalList::none(), Tightness::Exact)),
        },
        _ => {
            let interval = match op {
                CompareOp::Lt | CompareOp::Lte => {
                    let (low, inclusive) = bracket_low(kind);
                    Interval::new(low, inclusive, value.clone(), op == CompareOp::Lte)
                }
                _ => {
                    let (high, inclusive) = bracket_high(kind);
                    Interval::new(value.clone(), op == CompareOp::Gte, high, inclusive)
                }
            };
            // Whole arrays compare element by element, but the index holds the elements.
            if let Value::Array(items) = value {
                return array_range(interval, items.as_ref(), op, part);
            }
            exact(interval)
        }
    }
}

/// A range over arrays: as an array inside an array it is a key itself; otherwise some element or the empty array
/// is, which tells nothing, so every key has to be looked at.
fn array_range(interval: Interval, _: ArrayRef<'_>, _: CompareOp, part: Part<'_>) -> Option<(IntervalList, Tightness)> {
    if part.multikey {
        return Some((IntervalList::all(), Tightness::InexactFetch));
    }
    Some((IntervalList::of(interval), Tightness::InexactFetch))
}

fn equality_bounds(value: &Value, part: Part<'_>) -> Option<(IntervalList, Tightness)> {
    match value {
        Value::Null | Value::Undefined | Value::Missing => {
            // Documents without the field have no entry in a sparse index: it cannot answer.
            if part.sparse {
                return None;
            }
            // The key of a missing field and of null is the same; through arrays, missing in one element and
            // present in another cannot be told from the key.
            let points = vec![Interval::point(Value::Undefined), Interval::point(Value::Null)];
            Some((IntervalList::union_of(points), Tightness::InexactFetch))
        }
        Value::Array(items) => {
            // An equal array is found by its first element (or as the empty array), or as an element itself.
            let first = items.as_ref().get(0).map_or(Value::Undefined, ValueRef::to_value);
            let points = vec![Interval::point(first), Interval::point(value.clone())];
            Some((IntervalList::union_of(points), Tightness::InexactFetch))
        }
        Value::Regex(_) => Some((IntervalList::point(value.clone()), Tightness::Exact)),
        _ => Some((IntervalList::point(value.clone()), Tightness::Exact)),
    }
}

fn in_bounds(set: &InSet, part: Part<'_>) -> Option<(IntervalList, Tightness)> {
    let mut intervals = Vec::new();
    let mut tightness = Tightness::Exact;
    for value in set.values() {
        if !answers(part.collation, set.collator(), value) {
            return None;
        }
        let (list, t) = equality_bounds(&stored(value, part.collation), part)?;
        intervals.extend(list.intervals().iter().cloned());
        tightness = tightness.max(t);
    }
    for test in set.regexes() {
        let (list, t) = regex_bounds(test, part);
        intervals.extend(list.intervals().iter().cloned());
        tightness = tightness.max(t);
    }
    Some((IntervalList::union_of(intervals), tightness))
}

/// Strings that can match, and the regular expression itself as a value. Sort keys tell nothing of what matches.
fn regex_bounds(test: &Regex, part: Part<'_>) -> (IntervalList, Tightness) {
    let itself = Interval::point(regex(test.pattern(), test.options()));
    let inexact = match part.collation {
        None => Tightness::InexactCovered,
        Some(_) => Tightness::InexactFetch,
    };
    let (strings, tightness) = match test.prefix().filter(|_| part.collation.is_none()) {
        Some(prefix) => {
            let (high, inclusive) = match next_prefix(&prefix.text) {
                Some(end) => (end.into(), false),
                None => bracket_high(BsonType::String),
            };
            let interval = Interval::new(prefix.text.into(), true, high, inclusive);
            (interval, if prefix.exact { Tightness::Exact } else { inexact })
        }
        None => {
            let (low, high) = (bracket_low(BsonType::String), bracket_high(BsonType::String));
            (Interval::new(low.0, low.1, high.0, high.1), inexact)
        }
    };
    (IntervalList::union_of(vec![strings, itself]), tightness)
}

/// The least text above everything that starts with `prefix`.
fn next_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32);
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

fn type_bounds(types: impl IntoIterator<Item = BsonType>) -> (IntervalList, Tightness) {
    let mut intervals = Vec::new();
    let mut tightness = Tightness::Exact;
    for kind in types {
        match kind {
            // The key of an array is its elements.
            BsonType::Array => return (IntervalList::all(), Tightness::InexactFetch),
            BsonType::Null | BsonType::Undefined | BsonType::Missing => {
                intervals.push(Interval::point(if kind == BsonType::Null {
                    Value::Null
                } else {
                    Value::Undefined
                }));
                tightness = tightness.max(Tightness::InexactFetch);
            }
            _ => {
                let (low, high) = (bracket_low(kind), bracket_high(kind));
                let low = if kind.is_number() {
                    (Value::Double(f64::NAN), true)
                } else {
                    low
                };
                intervals.push(Interval::new(low.0, low.1, high.0, high.1));
                // One bracket holds all number types, and strings share theirs with symbols.
                let shared = kind.is_number() || matches!(kind, BsonType::String | BsonType::Symbol);
                tightness = tightness.max(if shared {
                    Tightness::InexactCovered
                } else {
                    Tightness::Exact
                });
            }
        }
    }
    (IntervalList::union_of(intervals), tightness)
}

/// `{a: {$elemMatch: {$gt: 1, $lt: 5}}}`: one element satisfies all, so the bounds of all intersect.
fn elem_match_bounds(inner: &MatchExpr, part: Part<'_>) -> Option<(IntervalList, Tightness)> {
    let conditions: Vec<&MatchExpr> = match inner {
        MatchExpr::And(all) => all.iter().collect(),
        one => vec![one],
    };
    let mut list = IntervalList::all();
    let mut useful = false;
    for condition in conditions {
        let found = match condition {
            MatchExpr::Leaf(leaf) => bounds(&leaf.predicate, part),
            MatchExpr::Not(inner) => match &**inner {
                MatchExpr::Leaf(leaf) => complement_bounds(
                    &leaf.predicate,
                    Part {
                        multikey: false,
                        ..part
                    },
                ),
                _ => None,
            },
            _ => None,
        };
        if let Some((bounds, _)) = found {
            list = list.intersect(&bounds);
            useful = true;
        }
    }
    // The key cannot tell an element from a value that is no array.
    useful.then_some((list, Tightness::InexactFetch))
}

/// The bounds for "no value at the path passes": the complement where the path never ran through an array.
/// With arrays one key outside says nothing about the others, so every key is looked at and the document decides;
/// the complement is still right as a superset, because a matching document has only keys outside.
pub fn complement_bounds(predicate: &Predicate, part: Part<'_>) -> Option<(IntervalList, Tightness)> {
    if part.sparse {
        // `{$ne: 1}` matches documents without the field, which a sparse index does not have.
        let exists = matches!(
            predicate,
            Predicate::Compare {
                op: CompareOp::Eq,
                value: Value::Null,
                ..
            }
        );
        if !exists {
            return None;
        }
    }
    // The key of an empty array is among those of null, which it is not equal to.
    let of_null = match predicate {
        Predicate::Compare { value, .. } => matches!(value, Value::Null),
        Predicate::In(set) => set.values().iter().any(|v| matches!(v, Value::Null)),
        _ => false,
    };
    if of_null && part.multikey {
        return None;
    }
    match predicate {
        Predicate::Compare {
            op: CompareOp::Eq,
            value: Value::Array(_),
            ..
        } => None,
        Predicate::Compare {
            op: CompareOp::Eq,
            value: Value::Null,
            ..
        } => {
            let (inside, _) = equality_bounds(&Value::Null, Part { sparse: false, ..part })?;
            Some((
                inside.complement(),
                if part.multikey {
                    Tightness::InexactFetch
                } else {
                    Tightness::Exact
                },
            ))
        }
        Predicate::Exists => {
            let null = Interval::point(Value::Null);
            Some((IntervalList::of(null), Tightness::InexactFetch))
        }
        Predicate::Regex(_) | Predicate::Mod(_) | Predicate::Type(_) => {
            Some((IntervalList::all(), Tightness::InexactFetch))
        }
        Predicate::In(set)
            if set.values().iter().any(|v| matches!(v, Value::Array(_))) || !set.regexes().is_empty() =>
        {
            None
        }
        Predicate::Compare { .. } | Predicate::In(_) => {
            let (inside, tightness) = bounds(predicate, part)?;
            // A value that lies inside the bounds and does not match would be missing outside of them.
            if tightness != Tightness::Exact && !of_null {
                return None;
            }
            let exact = tightness == Tightness::Exact && !part.multikey;
            let null_inside = tightness != Tightness::Exact;
            let outside = inside.complement();
            Some((
                outside,
                if exact && !null_inside {
                    Tightness::Exact
                } else {
                    Tightness::InexactFetch
                },
            ))
        }
        _ => None,
    }
}
