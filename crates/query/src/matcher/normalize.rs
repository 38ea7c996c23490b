//! Equivalent, simpler and ordered forms of match expressions.

use super::{CompareOp, InSet, MatchExpr, Predicate};
use nestor_model::{BsonType, compare};
use std::cmp::Ordering;

impl MatchExpr {
    /// Flattens nested `$and` and `$or`, collapses those of one child, resolves constants, turns an `$or`
    /// of equalities on one path into `$in`, a `$nor` of one child into `$not`, an `$in` of one value into
    /// equality, and orders siblings by kind and path as explain shows them. Matches the same documents.
    #[must_use]
    pub fn normalize(self) -> Self {
        match self {
            Self::And(children) => and(children),
            Self::Or(children) => or(children),
            Self::Nor(children) => nor(children),
            Self::Not(child) => negate(child.normalize()),
            Self::Leaf(leaf) => {
                let predicate = match leaf.predicate {
                    Predicate::In(set) => match in_set(set) {
                        Some(predicate) => predicate,
                        None => return Self::AlwaysFalse,
                    },
                    Predicate::ElemMatchObject(inner) => match inner.normalize() {
                        Self::AlwaysFalse => return Self::AlwaysFalse,
                        inner => Predicate::ElemMatchObject(Box::new(inner)),
                    },
                    Predicate::ElemMatchValue(inner) => match inner.normalize() {
                        Self::AlwaysFalse => return Self::AlwaysFalse,
                        inner => Predicate::ElemMatchValue(Box::new(inner)),
                    },
                    other => other,
                };
                Self::leaf(leaf.path, predicate)
            }
            other => other,
        }
    }
}

fn and(children: Vec<MatchExpr>) -> MatchExpr {
    let mut flat = Vec::with_capacity(children.len());
    for child in children {
        match child.normalize() {
            MatchExpr::AlwaysTrue => {}
            MatchExpr::AlwaysFalse => return MatchExpr::AlwaysFalse,
            MatchExpr::And(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    flat.sort_by(sibling_order);
    super::parse::and(flat)
}

fn or(children: Vec<MatchExpr>) -> MatchExpr {
    let mut flat = Vec::with_capacity(children.len());
    for child in children {
        match child.normalize() {
            MatchExpr::AlwaysFalse => {}
            MatchExpr::AlwaysTrue => return MatchExpr::AlwaysTrue,
            MatchExpr::Or(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    flat.sort_by(sibling_order);
    match flat.len() {
        0 => MatchExpr::AlwaysFalse,
        1 => flat.remove(0),
        _ => equalities_as_in(&flat).unwrap_or(MatchExpr::Or(flat)),
    }
}

/// `$in` for an `$or` whose children are all equalities on one path.
fn equalities_as_in(children: &[MatchExpr]) -> Option<MatchExpr> {
    let mut values = Vec::with_capacity(children.len());
    let mut common = None;
    for child in children {
        let MatchExpr::Leaf(leaf) = child else { return None };
        let Predicate::Compare {
            op: CompareOp::Eq,
            value,
            collator,
        } = &leaf.predicate
        else {
            return None;
        };
        // As an operand of $in a regular expression would be matched, not compared.
        if value.bson_type() == BsonType::Regex {
            return None;
        }
        let (path, _) = common.get_or_insert((&leaf.path, collator));
        if path.as_str() != leaf.path.as_str() {
            return None;
        }
        values.push(value.clone());
    }
    let (path, collator) = common?;
    Some(MatchExpr::leaf(
        path.clone(),
        Predicate::In(InSet::new(values, Vec::new(), collator.clone())),
    ))
}

fn nor(children: Vec<MatchExpr>) -> MatchExpr {
    let mut kept = Vec::with_capacity(children.len());
    for child in children {
        match child.normalize() {
            MatchExpr::AlwaysFalse => {}
            MatchExpr::AlwaysTrue => return MatchExpr::AlwaysFalse,
            other => kept.push(other),
        }
    }
    kept.sort_by(sibling_order);
    match kept.len() {
        0 => MatchExpr::AlwaysTrue,
        1 => negate(kept.remove(0)),
        _ => MatchExpr::Nor(kept),
    }
}

fn negate(child: MatchExpr) -> MatchExpr {
    match child {
        MatchExpr::AlwaysTrue => MatchExpr::AlwaysFalse,
        MatchExpr::AlwaysFalse => MatchExpr::AlwaysTrue,
        MatchExpr::Not(inner) => *inner,
        other => MatchExpr::Not(Box::new(other)),
    }
}

/// The simplest predicate for an `$in`; none when it holds nothing.
fn in_set(set: InSet) -> Option<Predicate> {
    match (set.values(), set.regexes()) {
        ([], []) => None,
        ([value], []) => Some(Predicate::Compare {
            op: CompareOp::Eq,
            value: value.clone(),
            collator: set.collator().cloned(),
        }),
        ([], [regex]) => Some(Predicate::Regex(regex.clone())),
        _ => Some(Predicate::In(set)),
    }
}

fn sibling_order(a: &MatchExpr, b: &MatchExpr) -> Ordering {
    rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
        (MatchExpr::Leaf(x), MatchExpr::Leaf(y)) => {
            x.path
                .as_str()
                .cmp(y.path.as_str())
                .then_with(|| match (&x.predicate, &y.predicate) {
                    (Predicate::Compare { value: v, .. }, Predicate::Compare { value: w, .. }) => compare(v, w),
                    _ => Ordering::Equal,
                })
        }
        (MatchExpr::Not(x), MatchExpr::Not(y)) => sibling_order(x, y),
        _ => Ordering::Equal,
    })
}

fn rank(expr: &MatchExpr) -> u8 {
    match expr {
        MatchExpr::And(_) => 0,
        MatchExpr::Or(_) => 1,
        MatchExpr::Leaf(leaf) => match &leaf.predicate {
            Predicate::ElemMatchObject(_) => 2,
            Predicate::ElemMatchValue(_) => 3,
            Predicate::Size(_) => 4,
            Predicate::Compare { op, .. } => match op {
                CompareOp::Eq => 5,
                CompareOp::Lte => 6,
                CompareOp::Lt => 7,
                CompareOp::Gt => 8,
                CompareOp::Gte => 9,
            },
            Predicate::Regex(_) => 10,
            Predicate::Mod(_) => 11,
            Predicate::Exists => 12,
            Predicate::In(_) => 13,
            Predicate::Bits(_) => 14,
            Predicate::Type(_) => 17,
            Predicate::Geo(_) => 22,
            Predicate::Near(_) => 23,
        },
        MatchExpr::Not(_) => 15,
        MatchExpr::Nor(_) => 16,
        MatchExpr::Expr(_) => 18,
        MatchExpr::JsonSchema(_) => 19,
        MatchExpr::SampleRate(_) => 20,
        MatchExpr::AlwaysTrue | MatchExpr::AlwaysFalse => 21,
        MatchExpr::Text(_) => 24,
    }
}
