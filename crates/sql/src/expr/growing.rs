//! Which expressions may be much larger than the rows that they are computed of.
//!
//! Expressions are computed for a thousand rows at a time, whose bytes together are bounded. Most results are about as large as what
//! they are made of, so that is a bound of them too. The others are computed row by row.

use super::function::ROUTINE;
use super::{Expr, Node};
use crate::types::Type;
use nestor_model::Value;

/// Functions whose result may be large though all their arguments are small, or the larger the more often one stands in another.
const GROWING: [&str; 8] = [
    "repeat",
    "lpad",
    "rpad",
    "replace",
    "regexp_replace",
    "array_replace",
    "array_fill",
    "format",
];

/// Parts that one value is put together from, at most.
const PARTS_MAX: usize = 32;

/// Bytes of a value that comes with each row, at most, and characters that a type pads to.
const SMALL: usize = 4096;

/// Whether values may be much larger than the row that they are made of.
pub(super) fn may_grow(expr: &Expr) -> bool {
    parts(expr).is_none_or(|parts| parts > PARTS_MAX)
}

/// How many parts a value is put together from; `None` when it may grow anyway.
fn parts(expr: &Expr) -> Option<usize> {
    let makes = match expr.node() {
        Node::Const(..) | Node::Column { .. } | Node::Outer { .. } | Node::Param(..) => return Some(1),
        // What it runs is seen by the next row.
        Node::Call { function, .. } if function.name == ROUTINE => return None,
        Node::Call { function, ty, args, .. } if GROWING.contains(&function.name) && is_sized(ty) => {
            let times = times(function.name, args)?;
            return Some(parts(args.first()?)?.saturating_mul(times));
        }
        Node::Cast { modifier, to, .. } if matches!(to, Type::Bpchar | Type::Bit) && *modifier > SMALL as i32 => {
            return None;
        }
        Node::Call { ty, .. }
        | Node::Cast { to: ty, .. }
        | Node::Case { ty, .. }
        | Node::Coalesce(_, ty)
        | Node::Array(_, ty) => is_sized(ty),
        Node::Extreme(..) | Node::Row(..) => true,
        _ => false,
    };
    let mut sum = 0usize;
    for part in expr.parts() {
        if makes && is_large(part) {
            return None;
        }
        sum = sum.saturating_add(parts(part)?);
    }
    Some(sum)
}

/// How many times as large as its first argument, or as a small value, a result of a function that may grow is at most, as far as its
/// constants tell.
fn times(name: &str, args: &[Expr]) -> Option<usize> {
    let text = |at: usize| match args.get(at).map(Expr::node) {
        Some(Node::Const(Value::String(text), _)) => Some(text.as_str()),
        _ => None,
    };
    let number = |at: usize| match args.get(at).map(Expr::node) {
        Some(Node::Const(Value::Int32(n), _)) => usize::try_from((*n).max(0)).ok(),
        _ => None,
    };
    match (name, args.len()) {
        ("repeat", 2) => number(1),
        ("lpad" | "rpad", 2 | 3) => number(1).filter(|n| *n <= SMALL / 4).map(|_| 1),
        ("replace", 3) => {
            let (from, to) = (text(1)?, text(2)?);
            Some(to.len().div_ceil(from.len().max(1)).max(1))
        }
        ("regexp_replace", 3 | 4) => {
            let with = text(2)?;
            let is_global = match args.len() {
                3 => false,
                _ => text(3)?.contains('g'),
            };
            let groups = with.matches('\\').count();
            match (is_global, groups) {
                // Each occurrence, empty ones at each place among them, becomes the text.
                (true, 0) => Some(1 + with.len()),
                // Groups of different occurrences may be the same part of the text, so that their number is no bound.
                (true, _) => None,
                (false, groups) => (with.len() <= SMALL).then_some(1 + groups),
            }
        }
        _ => None,
    }
}

/// Whether it is no part of the row and may be large.
fn is_large(expr: &Expr) -> bool {
    match expr.node() {
        Node::Const(value, _) => value.weight() > SMALL,
        Node::Outer { ty, .. } | Node::Param(_, ty) => is_sized(ty),
        _ => false,
    }
}

/// Whether values of a type may be of any size.
fn is_sized(ty: &Type) -> bool {
    !matches!(
        ty,
        Type::Bool
            | Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Float4
            | Type::Float8
            | Type::Numeric
            | Type::Name
            | Type::Char
            | Type::Date
            | Type::Time
            | Type::Timetz
            | Type::Timestamp
            | Type::Timestamptz
            | Type::Interval
            | Type::Uuid
            | Type::Inet
            | Type::Cidr
            | Type::Macaddr
            | Type::Oid
            | Type::Tid
            | Type::ObjectId
            | Type::Void
    )
}
