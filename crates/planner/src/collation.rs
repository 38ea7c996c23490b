//! How a collation limits the use of an index.
//!
//! An index with a collation holds the sort keys of strings in their place ([`nestor_query::collation::stored`]), so its
//! order and what it takes for equal are those of its collation. Values that are no strings and hold none are the same
//! in every index. Hence the rules:
//!
//! - A condition has bounds when its collation is that of the index, or when its operand is no string, object or array.
//! - The index gives the order of a sort when the collations agree, or when no string, object or array is within the
//!   bounds of the parts that are sorted by.
//! - It covers a field only when none of those is within the bounds of its part: what the strings were is not in there.
//!
//! Source: manual, "Collation and Index Use", "Indexes, Collation"; SERVER-23093, SERVER-24621 for bounds and
//! `min`/`max`.

use crate::interval::{Interval, IntervalList, bracket_high, bracket_low};
use nestor_model::{BsonType, Value};
use nestor_query::collation::{self, Collator};
use std::borrow::Cow;

/// Whether a value is or may hold strings.
pub fn is_collatable(value: &Value) -> bool {
    matches!(
        value.bson_type(),
        BsonType::String | BsonType::Symbol | BsonType::Object | BsonType::Array
    )
}

/// Whether an index of one collation can answer a comparison of another with this operand.
pub fn answers(index: Option<&Collator>, operation: Option<&Collator>, operand: &Value) -> bool {
    index == operation || !is_collatable(operand)
}

/// A value as an index with this collation holds it.
pub fn stored<'v>(value: &'v Value, index: Option<&Collator>) -> Cow<'v, Value> {
    match index.and_then(|collator| collation::stored(value.as_ref(), collator)) {
        Some(stored) => Cow::Owned(stored),
        None => Cow::Borrowed(value),
    }
}

/// Whether no string, object or array is in.
pub fn excludes_collatable(list: &IntervalList) -> bool {
    let (low, high) = (bracket_low(BsonType::String), bracket_high(BsonType::Array));
    let collatable = IntervalList::of(Interval::new(low.0, low.1, high.0, high.1));
    list.intersect(&collatable).is_empty()
}

/// Whether a part of an index of one collation, within these bounds, is in the order of another, and takes for equal what
/// that does.
pub fn agrees(index: Option<&Collator>, bounds: &IntervalList, operation: Option<&Collator>) -> bool {
    index == operation || excludes_collatable(bounds)
}
