//! Bounds on hashes: single values have one each, and everything else has none.

use crate::bounds::{Part, Tightness};
use crate::collation::{answers, stored};
use crate::interval::{Interval, IntervalList};
use nestor_model::Value;
use nestor_query::expr::hashed_index_key;
use nestor_query::matcher::{CompareOp, Predicate};

/// The hashes of the values that pass a test. Two values may have one hash, so the document always decides.
pub(super) fn of(predicate: &Predicate, part: Part<'_>) -> Option<(IntervalList, Tightness)> {
    let list = match predicate {
        Predicate::Compare {
            op: CompareOp::Eq,
            value,
            collator,
        } if answers(part.collation, collator.as_ref(), value) => IntervalList::of(point(value, part)?),
        Predicate::In(set) if set.regexes().is_empty() => {
            let values = set.values().iter();
            let points = values.map(|value| match answers(part.collation, set.collator(), value) {
                true => point(value, part),
                false => None,
            });
            IntervalList::union_of(points.collect::<Option<_>>()?)
        }
        Predicate::Exists => IntervalList::all(),
        _ => return None,
    };
    Some((list, Tightness::InexactFetch))
}

fn point(value: &Value, part: Part<'_>) -> Option<Interval> {
    let stored = match value {
        // Documents without the field have no entry in a sparse index: it cannot answer.
        value if value.is_nullish() && part.sparse => return None,
        value if value.is_nullish() => std::borrow::Cow::Owned(Value::Null),
        // No array has an entry, but an element of one would be looked for too.
        Value::Array(_) => return None,
        value => stored(value, part.collation),
    };
    Some(Interval::point(Value::Int64(hashed_index_key((&*stored).into()))))
}
