//! Operators that only find's projections have, applied to the projected document: `$slice` and positional `$`.

use crate::matcher::MatchDetails;
use nestor_model::{Array, DocRef, Document, Error, PathPart, Result, Value, ValueRef, bail};

/// The elements `$slice` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Elements left out at the start; negative counts from the end. `None` when only a count was given.
    skip: Option<i64>,
    /// Elements kept; without `skip`, negative ones are taken from the end.
    limit: i64,
}

impl Slice {
    /// Parses find's form: a number, or an array of two numbers. `None` when the operand has another
    /// form and must be read as an expression.
    ///
    /// # Errors
    /// 28724 when the count after a number to skip is not positive.
    pub(crate) fn parse(value: ValueRef<'_>) -> Result<Option<Self>> {
        if let Some(limit) = clamped(value) {
            return Ok(Some(Self { skip: None, limit }));
        }
        let ValueRef::Array(items) = value else {
            return Ok(None);
        };
        let mut items = items.iter();
        let (Some(skip), Some(limit), None) = (items.next(), items.next(), items.next()) else {
            return Ok(None);
        };
        match (clamped(skip), clamped(limit)) {
            (Some(_), Some(..=0)) => bail!(28724, "$slice limit must be positive"),
            (Some(skip), Some(limit)) => Ok(Some(Self {
                skip: Some(skip),
                limit,
            })),
            _ => Ok(None),
        }
    }

    /// The kept range of an array of `length` elements.
    fn range(self, length: usize) -> std::ops::Range<usize> {
        let from_end = |n: i64| length.saturating_sub(usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX));
        let count = |n: i64| usize::try_from(n).unwrap_or(usize::MAX);
        let (start, limit) = match (self.skip, self.limit) {
            (None, limit @ ..0) => (from_end(limit), usize::MAX),
            (None, limit) => (0, count(limit)),
            (Some(skip @ ..0), limit) => (from_end(skip), count(limit)),
            (Some(skip), limit) => (count(skip).min(length), count(limit)),
        };
        start..start.saturating_add(limit).min(length)
    }

    /// `doc` with the array at `parts` sliced; documents in arrays on the way are followed.
    pub(crate) fn apply(self, doc: DocRef<'_>, parts: &[PathPart]) -> Document {
        change_field(doc, parts, &mut |value, rest| Ok(self.value(value, rest))).unwrap_or_else(|_| doc.to_document())
    }

    fn value(self, value: ValueRef<'_>, rest: &[PathPart]) -> Value {
        match value {
            ValueRef::Array(items) if rest.is_empty() => {
                let range = self.range(items.len());
                items
                    .iter()
                    .skip(range.start)
                    .take(range.len())
                    .map(ValueRef::to_value)
                    .collect::<Array>()
                    .into()
            }
            ValueRef::Array(items) => items
                .iter()
                .map(|item| self.nested(item, rest))
                .collect::<Array>()
                .into(),
            other => self.nested(other, rest),
        }
    }

    fn nested(self, value: ValueRef<'_>, rest: &[PathPart]) -> Value {
        match value {
            ValueRef::Document(doc) if !rest.is_empty() => self.apply(doc, rest).into(),
            other => other.to_value(),
        }
    }
}

/// A number as a whole one, fraction cut off, at the ends of the range if it lies beyond; NaN is 0.
fn clamped(value: ValueRef<'_>) -> Option<i64> {
    Some(match value {
        ValueRef::Int32(v) => i64::from(v),
        ValueRef::Int64(v) => v,
        // `as` saturates and makes 0 of NaN.
        ValueRef::Double(v) => v as i64,
        ValueRef::Decimal128(v) => v.to_i64_truncated().unwrap_or_else(|| v.to_f64() as i64),
        _ => return None,
    })
}

/// `doc` with the first array along `parts` reduced to the element that the filter matched.
///
/// # Errors
/// 51246 when the filter matched no element of an array, 51247 when the array is shorter than the position.
pub(crate) fn positional(doc: DocRef<'_>, parts: &[PathPart], details: Option<&MatchDetails>) -> Result<Document> {
    change_field(doc, parts, &mut |value, rest| match value {
        ValueRef::Array(items) => {
            let Some(at) = details.and_then(|d| d.position) else {
                bail!(
                    51246,
                    "positional operator '.$' couldn't find a matching element in the array"
                );
            };
            match items.get(at) {
                Some(item) => Ok(Value::from(vec![item.to_value()])),
                None => Err(Error::location(51247, "positional operator '.$' element mismatch")),
            }
        }
        ValueRef::Document(inner) if !rest.is_empty() => Ok(positional(inner, rest, details)?.into()),
        other => Ok(other.to_value()),
    })
}

/// A copy of `doc` in which the field named by the first part is what `change` makes of it.
fn change_field(
    doc: DocRef<'_>,
    parts: &[PathPart],
    change: &mut dyn FnMut(ValueRef<'_>, &[PathPart]) -> Result<Value>,
) -> Result<Document> {
    let Some((head, rest)) = parts.split_first() else {
        return Ok(doc.to_document());
    };
    let mut out = Document::new();
    for (name, value) in doc {
        let value = if name == head.name.as_str() {
            change(value, rest)?
        } else {
            value.to_value()
        };
        out.push(name, value);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let parse = |v: Value| Slice::parse(v.as_ref()).expect("valid").expect("find's form").range(4);
        let two = |a: Value, b: Value| Value::from(vec![a, b]);
        assert_eq!(parse(2.into()), 0..2);
        assert_eq!(parse((-3).into()), 1..4);
        assert_eq!(parse(0.into()), 0..0);
        assert_eq!(parse(Value::Int64(i64::MIN)), 0..4);
        assert_eq!(parse(f64::NAN.into()), 0..0);
        assert_eq!(parse(f64::INFINITY.into()), 0..4);
        assert_eq!(parse(two(1.into(), 2.into())), 1..3);
        assert_eq!(parse(two((-1.5).into(), 2.into())), 3..4);
        assert_eq!(parse(two((-9).into(), 2.into())), 0..2);
        assert_eq!(parse(two(9.into(), 2.into())), 4..4);
        assert!(Slice::parse(two(1.into(), 0.into()).as_ref()).is_err());
        assert_eq!(Slice::parse(two("$a".into(), 1.into()).as_ref()).expect("valid"), None);
    }
}
