//! `min` and `max` of find: a range of whole keys, as the scans that it is made of.
//!
//! A range of keys with several parts is no box of intervals, but a few boxes in a row. `{a: 1, b: 1}` from `(1, 5)` to
//! before `(3, 2)`:
//!
//! ```text
//! a in [1, 1], b in [5, MaxKey]
//! a in (1, 3), b in [MinKey, MaxKey]
//! a in [3, 3], b in [MinKey, 2)
//! ```
//!
//! Source: manual, "cursor.min()", "cursor.max()".

use crate::access::IndexBounds;
use crate::catalog::{IndexInfo, IndexPart, PartKind};
use crate::collation::{answers, stored};
use crate::interval::{Interval, IntervalList};
use nestor_model::index_spec::KeyOrder;
use nestor_model::{DocRef, Document, Error, Result, Value, compare};
use nestor_query::collation::{self, Collator};
use std::cmp::Ordering;

/// Checks that `min` and `max`, given under the operation's collation, are keys of an index with this pattern and
/// collation, and in its order.
///
/// Errors: 51174 for other fields, and for strings under another collation; 51175 unless `min` comes before `max`.
pub fn check(
    pattern: DocRef<'_>,
    index: Option<&Collator>,
    operation: Option<&Collator>,
    min: Option<&Document>,
    max: Option<&Document>,
) -> Result<()> {
    let fits = |key: &Document| {
        key.iter()
            .map(|(name, _)| name)
            .eq(pattern.iter().map(|(name, _)| name))
    };
    if !min.is_none_or(fits) || !max.is_none_or(fits) {
        return Err(Error::location(
            51174,
            "The index chosen is not compatible with min/max: their fields have to be those of its key pattern",
        ));
    }
    let answered = |key: &Document| {
        key.iter()
            .all(|(_, value)| answers(index, operation, &value.to_value()))
    };
    if !min.is_none_or(answered) || !max.is_none_or(answered) {
        return Err(Error::location(
            51174,
            "The index chosen is not compatible with min/max: its collation is not that of the operation",
        ));
    }
    let (Some(min), Some(max)) = (min, max) else {
        return Ok(());
    };
    let order = pattern
        .iter()
        .zip(min.iter().zip(max.iter()))
        .map(|((_, direction), ((_, low), (_, high)))| {
            let order = collation::compare(low, high, index);
            match KeyOrder::of(direction) {
                KeyOrder::Descending => order.reverse(),
                _ => order,
            }
        })
        .find(|order| order.is_ne());
    if order != Some(Ordering::Less) {
        return Err(Error::location(
            51175,
            "The value provided for min() does not come before max()",
        ));
    }
    Ok(())
}

/// The scans of keys from `min` on and before `max`, in the order of the index.
pub fn scans(index: &IndexInfo, min: Option<&Document>, max: Option<&Document>) -> Vec<IndexBounds> {
    let collation = index.collation.as_ref();
    let values = |key: &Document| -> Vec<Value> {
        key.iter()
            .map(|(_, value)| stored(&value.to_value(), collation).into_owned())
            .collect()
    };
    let (min, max) = (min.map(values), max.map(values));
    let parts = &index.parts;
    // One box: single values before part `at`, `list` there, everything behind.
    let bounds = |prefix: &[Value], at: usize, list: IntervalList| IndexBounds {
        parts: (0..parts.len())
            .map(|i| match i.cmp(&at) {
                Ordering::Less => IntervalList::point(prefix[i].clone()),
                Ordering::Equal => list.clone(),
                Ordering::Greater => IntervalList::all(),
            })
            .collect(),
    };
    let last = parts.len().saturating_sub(1);
    let shared = match (&min, &max) {
        (Some(min), Some(max)) => min.iter().zip(max).take_while(|(a, b)| compare(*a, *b).is_eq()).count(),
        _ => 0,
    };
    let mut out = Vec::new();
    // With one end only, that end's own first part opens or closes the range.
    let both = min.is_some() && max.is_some();
    if let Some(min) = &min {
        let until = if both { shared + 1 } else { 0 };
        for at in (until..parts.len()).rev() {
            out.push(bounds(min, at, between(&parts[at], Some((&min[at], at == last)), None)));
        }
    }
    if let (Some(min), Some(max)) = (&min, &max) {
        if let Some(part) = parts.get(shared) {
            let list = between(part, Some((&min[shared], shared == last)), Some(&max[shared]));
            out.push(bounds(min, shared, list));
        }
    }
    if let Some(max) = &max {
        let from = if both { shared + 1 } else { 0 };
        for at in from..parts.len() {
            out.push(bounds(max, at, between(&parts[at], None, Some(&max[at]))));
        }
    }
    out
}

/// The values of a part behind `after` (or at it, when the flag says so) and before `before`, in the index's order.
fn between(part: &IndexPart, after: Option<(&Value, bool)>, before: Option<&Value>) -> IntervalList {
    let near = after.map_or((None, true), |(value, inclusive)| (Some(value.clone()), inclusive));
    let far = before.map_or((None, true), |value| (Some(value.clone()), false));
    let (low, high) = if part.kind == PartKind::Descending {
        (far, near)
    } else {
        (near, far)
    };
    IntervalList::union_of(vec![Interval::new(
        low.0.unwrap_or(Value::MinKey),
        low.1,
        high.0.unwrap_or(Value::MaxKey),
        high.1,
    )])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Strings;
    use nestor_model::doc;
    use nestor_model::index_spec::IndexSpec;

    fn show(parts: &[(&str, PartKind)], min: Option<Document>, max: Option<Document>) -> String {
        let direction = |kind: PartKind| if kind == PartKind::Descending { -1 } else { 1 };
        let key: Document = parts
            .iter()
            .map(|(path, kind)| ((*path).into(), direction(*kind).into()))
            .collect();
        let spec = IndexSpec::parse(doc! { "key": key, "name": "i" }.to_raw()).expect("a specification");
        let index = crate::kinds::open(1, &spec, &[]).expect("a good index");
        let scans: Vec<String> = scans(&index, min.as_ref(), max.as_ref())
            .iter()
            .map(|scan| {
                let parts: Vec<String> = scan
                    .parts
                    .iter()
                    .map(|list| list.explain(true, Strings::Plain).join(" "))
                    .collect();
                parts.join("; ")
            })
            .collect();
        scans.join(" | ")
    }

    #[test]
    fn ranges_of_keys_are_boxes() {
        use PartKind::{Ascending as Up, Descending as Down};
        let ab = [("a", Up), ("b", Up)];
        assert_eq!(
            show(&ab, Some(doc! { "a": 1, "b": 5 }), Some(doc! { "a": 3, "b": 2 })),
            "[1, 1]; [5, MaxKey] | (1, 3); [MinKey, MaxKey] | [3, 3]; [MinKey, 2)"
        );
        assert_eq!(
            show(&ab, Some(doc! { "a": 1, "b": 5 }), Some(doc! { "a": 1, "b": 7 })),
            "[1, 1]; [5, 7)"
        );
        assert_eq!(
            show(&ab, Some(doc! { "a": 1, "b": 5 }), None),
            "[1, 1]; [5, MaxKey] | (1, MaxKey]; [MinKey, MaxKey]"
        );
        assert_eq!(
            show(&ab, None, Some(doc! { "a": 1, "b": 5 })),
            "[MinKey, 1); [MinKey, MaxKey] | [1, 1]; [MinKey, 5)"
        );
        assert_eq!(
            show(&[("a", Up)], Some(doc! { "a": 1 }), Some(doc! { "a": 3 })),
            "[1, 3)"
        );
        assert_eq!(
            show(&[("a", Down)], Some(doc! { "a": 3 }), Some(doc! { "a": 1 })),
            "(1, 3]"
        );
    }

    #[test]
    fn ends_have_to_fit() {
        let pattern = doc! { "a": 1, "b": -1 };
        let code = |min: Document, max: Document| match check(pattern.as_ref(), None, None, Some(&min), Some(&max)) {
            Ok(()) => 0,
            Err(error) => error.code().number(),
        };
        assert_eq!(code(doc! { "a": 1, "b": 2 }, doc! { "a": 1, "b": 1 }), 0);
        assert_eq!(code(doc! { "a": 1, "b": 1 }, doc! { "a": 1, "b": 2 }), 51175);
        assert_eq!(code(doc! { "a": 1, "b": 1 }, doc! { "a": 1, "b": 1 }), 51175);
        assert_eq!(code(doc! { "a": 1 }, doc! { "a": 2 }), 51174);
        let spec = doc! { "locale": "en", "strength": 1 };
        let collator = Collator::parse(spec.as_ref()).expect("is a collation");
        let code = |low: &str, high: Value, operation: Option<&Collator>| {
            let (min, max) = (doc! { "a": low, "b": 1 }, doc! { "a": high, "b": 1 });
            let (min, max) = (Some(&min), Some(&max));
            check(pattern.as_ref(), collator.as_ref(), operation, min, max).map_or_else(|e| e.code().number(), |()| 0)
        };
        assert_eq!(code("a", "B".into(), collator.as_ref()), 0);
        assert_eq!(code("B", "a".into(), collator.as_ref()), 51175);
        assert_eq!(code("A", "a".into(), collator.as_ref()), 51175);
        assert_eq!(code("a", "B".into(), None), 51174);
    }
}
