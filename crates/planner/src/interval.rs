//! Intervals of values, and ordered lists of them: the bounds of one part of an index scan.

use nestor_model::value::{Array, Binary, Document};
use nestor_model::{BsonType, Decimal128, ObjectId, Timestamp, Value, compare, extjson};
use nestor_query::collation::sort_key_text;
use std::cmp::Ordering;

/// A range of values in BSON order.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Least value.
    pub low: Value,
    /// Whether the least value itself is in.
    pub low_inclusive: bool,
    /// Greatest value, not below `low`.
    pub high: Value,
    /// Whether the greatest value itself is in.
    pub high_inclusive: bool,
}

impl Interval {
    /// Exactly one value.
    pub fn point(value: Value) -> Self {
        Self {
            low: value.clone(),
            low_inclusive: true,
            high: value,
            high_inclusive: true,
        }
    }

    /// From `low` to `high`.
    pub fn new(low: Value, low_inclusive: bool, high: Value, high_inclusive: bool) -> Self {
        Self {
            low,
            low_inclusive,
            high,
            high_inclusive,
        }
    }

    /// Every value.
    pub fn all() -> Self {
        Self::new(Value::MinKey, true, Value::MaxKey, true)
    }

    /// True when it holds exactly one value.
    pub fn is_point(&self) -> bool {
        self.low_inclusive && self.high_inclusive && compare(&self.low, &self.high) == Ordering::Equal
    }

    /// True when it holds every value.
    pub fn is_all(&self) -> bool {
        self.low_inclusive
            && self.high_inclusive
            && matches!(self.low, Value::MinKey)
            && matches!(self.high, Value::MaxKey)
    }

    /// True when no value lies in it.
    fn is_empty(&self) -> bool {
        match compare(&self.low, &self.high) {
            Ordering::Less => false,
            Ordering::Equal => !(self.low_inclusive && self.high_inclusive),
            Ordering::Greater => true,
        }
    }

    fn compare_low(&self, other: &Self) -> Ordering {
        // An open start is behind a closed one at the same value.
        compare(&self.low, &other.low).then(other.low_inclusive.cmp(&self.low_inclusive))
    }

    fn compare_high(&self, other: &Self) -> Ordering {
        compare(&self.high, &other.high).then(self.high_inclusive.cmp(&other.high_inclusive))
    }

    fn intersect(&self, other: &Self) -> Option<Self> {
        let low = if self.compare_low(other).is_ge() { self } else { other };
        let high = if self.compare_high(other).is_le() { self } else { other };
        let both = Self::new(
            low.low.clone(),
            low.low_inclusive,
            high.high.clone(),
            high.high_inclusive,
        );
        (!both.is_empty()).then_some(both)
    }

    /// True when a value lies between the end of `self` and the start of `later`.
    fn leaves_gap_before(&self, later: &Self) -> bool {
        match compare(&self.high, &later.low) {
            Ordering::Less => true,
            Ordering::Equal => !(self.high_inclusive || later.low_inclusive),
            Ordering::Greater => false,
        }
    }
}

/// The form of strings in bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strings {
    /// Themselves.
    Plain,
    /// The sort keys that an index with a collation holds; printed as `CollationKey(0x2b2d01)`.
    SortKeys,
}

impl Interval {
    /// As explain prints it: `["a", "a"]`, `(5, inf.0]`, `[MinKey, MaxKey]`.
    fn text(&self, strings: Strings) -> String {
        format!(
            "{}{}, {}{}",
            if self.low_inclusive { '[' } else { '(' },
            bound_text(&self.low, strings),
            bound_text(&self.high, strings),
            if self.high_inclusive { ']' } else { ')' }
        )
    }
}

/// A value the way explain prints it inside bounds.
fn bound_text(value: &Value, strings: Strings) -> String {
    match value {
        // The empty string is no sort key but the least of all strings.
        Value::String(text) if strings == Strings::SortKeys && !text.is_empty() => sort_key_text(text),
        Value::Double(v) if v.is_nan() => "nan.0".into(),
        Value::Double(v) if v.is_infinite() => if *v > 0.0 { "inf.0" } else { "-inf.0" }.into(),
        Value::Double(v) => format!("{v:?}"),
        Value::Int32(v) => v.to_string(),
        Value::Int64(v) => v.to_string(),
        Value::Decimal128(v) => v.to_string(),
        Value::String(_) => extjson::to_string(value, extjson::Form::Relaxed),
        Value::Symbol(v) => format!("\"{v}\""),
        Value::Document(doc) => document_text(doc, strings),
        Value::Array(items) => array_text(items, strings),
        Value::Binary(Binary { subtype, bytes }) => {
            let hex: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
            format!("BinData({subtype}, {hex})")
        }
        Value::Missing | Value::Undefined => "undefined".into(),
        Value::ObjectId(v) => format!("ObjectId('{v}')"),
        Value::Bool(v) => v.to_string(),
        Value::DateTime(v) => format!("new Date({v})"),
        Value::Null => "null".into(),
        Value::Regex(v) => format!("/{}/{}", v.pattern, v.options),
        Value::DbPointer(v) => format!("DBRef('{}', {})", v.0, v.1),
        Value::Code(v) => v.to_string(),
        Value::CodeWithScope(v) => format!("CodeWScope( {}, {})", v.0, document_text(&v.1, strings)),
        Value::Timestamp(v) => format!("Timestamp({}, {})", v.secs, v.inc),
        Value::MinKey => "MinKey".into(),
        Value::MaxKey => "MaxKey".into(),
    }
}

fn document_text(doc: &Document, strings: Strings) -> String {
    if doc.is_empty() {
        return "{}".into();
    }
    let fields: Vec<String> = doc
        .iter()
        .map(|(name, value)| format!("{name}: {}", bound_text(&value.to_value(), strings)))
        .collect();
    format!("{{ {} }}", fields.join(", "))
}

fn array_text(items: &Array, strings: Strings) -> String {
    if items.is_empty() {
        return "[]".into();
    }
    let items: Vec<String> = items
        .iter()
        .map(|value| bound_text(&value.to_value(), strings))
        .collect();
    format!("[ {} ]", items.join(", "))
}

/// Intervals that ascend and neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub struct IntervalList(Vec<Interval>);

impl IntervalList {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Every value.
    pub fn all() -> Self {
        Self(vec![Interval::all()])
    }

    /// One interval.
    pub fn of(interval: Interval) -> Self {
        if interval.is_empty() {
            Self::none()
        } else {
            Self(vec![interval])
        }
    }

    /// Exactly one value.
    pub fn point(value: Value) -> Self {
        Self(vec![Interval::point(value)])
    }

    /// The union of any intervals.
    pub fn union_of(intervals: Vec<Interval>) -> Self {
        let mut intervals: Vec<Interval> = intervals.into_iter().filter(|i| !i.is_empty()).collect();
        intervals.sort_by(Interval::compare_low);
        let mut out: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match out.last_mut() {
                Some(last) if !last.leaves_gap_before(&interval) => {
                    if interval.compare_high(last).is_gt() {
                        last.high = interval.high;
                        last.high_inclusive = interval.high_inclusive;
                    }
                }
                _ => out.push(interval),
            }
        }
        Self(out)
    }

    /// The intervals.
    pub fn intervals(&self) -> &[Interval] {
        &self.0
    }

    /// True when nothing is in.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when everything is in.
    pub fn is_all(&self) -> bool {
        matches!(self.0.as_slice(), [interval] if interval.is_all())
    }

    /// True when it is exactly one value.
    pub fn is_point(&self) -> bool {
        matches!(self.0.as_slice(), [interval] if interval.is_point())
    }

    /// True when it is one or more single values.
    pub fn is_points(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(Interval::is_point)
    }

    /// The values that lie in both.
    pub fn intersect(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut out = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            out.extend(x.intersect(y));
            if x.compare_high(y).is_le() {
                a.next();
            } else {
                b.next();
            }
        }
        Self(out)
    }

    /// The values that lie in either.
    pub fn union(&self, other: &Self) -> Self {
        Self::union_of(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The values that lie outside.
    pub fn complement(&self) -> Self {
        let mut out = Vec::new();
        let (mut low, mut low_inclusive) = (Value::MinKey, true);
        for interval in &self.0 {
            let gap = Interval::new(low, low_inclusive, interval.low.clone(), !interval.low_inclusive);
            if !gap.is_empty() {
                out.push(gap);
            }
            low = interval.high.clone();
            low_inclusive = !interval.high_inclusive;
        }
        let last = Interval::new(low, low_inclusive, Value::MaxKey, true);
        if !last.is_empty() {
            out.push(last);
        }
        Self(out)
    }

    /// As explain prints it, one text per interval; backwards when the scan runs so.
    pub fn explain(&self, ascending: bool, strings: Strings) -> Vec<String> {
        if ascending {
            return self.0.iter().map(|i| i.text(strings)).collect();
        }
        let flipped = |i: &Interval| Interval::new(i.high.clone(), i.high_inclusive, i.low.clone(), i.low_inclusive);
        self.0.iter().rev().map(|i| flipped(i).text(strings)).collect()
    }
}

/// The least value of a type's bracket: what a comparison with an operand of that type cannot go below.
/// The flag tells whether the value itself belongs to the bracket.
pub fn bracket_low(kind: BsonType) -> (Value, bool) {
    let zero_id = ObjectId([0; 12]);
    match kind {
        BsonType::Double | BsonType::Int | BsonType::Long | BsonType::Decimal => {
            (Value::Double(f64::NEG_INFINITY), true)
        }
        BsonType::String | BsonType::Symbol => ("".into(), true),
        BsonType::Object => (Document::new().into(), true),
        BsonType::Array => (Array::default().into(), true),
        BsonType::BinData => (
            Binary {
                subtype: 0,
                bytes: [].as_slice().into(),
            }
            .into(),
            true,
        ),
        BsonType::ObjectId => (zero_id.into(), true),
        BsonType::Bool => (false.into(), true),
        BsonType::Date => (Value::DateTime(i64::MIN), true),
        BsonType::Timestamp => (Timestamp { secs: 0, inc: 0 }.into(), true),
        BsonType::Regex => (regex("", ""), true),
        BsonType::DbPointer => (Value::DbPointer(Box::new(("".into(), zero_id))), true),
        BsonType::Javascript => (Value::Code("".into()), true),
        BsonType::JavascriptWithScope => (Value::CodeWithScope(Box::new(("".into(), Document::new()))), true),
        BsonType::MinKey => (Value::MinKey, true),
        BsonType::MaxKey => (Value::MaxKey, true),
        BsonType::Null => (Value::Null, true),
        BsonType::Undefined | BsonType::Missing => (Value::Undefined, true),
    }
}

/// The end of a type's bracket. The flag tells whether the value itself belongs to the bracket: where a type has no
/// greatest value the end is the least of the next type.
pub fn bracket_high(kind: BsonType) -> (Value, bool) {
    let next = |kind| (bracket_low(kind).0, false);
    match kind {
        BsonType::Double | BsonType::Int | BsonType::Long | BsonType::Decimal => (Value::Double(f64::INFINITY), true),
        BsonType::String | BsonType::Symbol => next(BsonType::Object),
        BsonType::Object => next(BsonType::Array),
        BsonType::Array => next(BsonType::BinData),
        BsonType::BinData => next(BsonType::ObjectId),
        BsonType::ObjectId => (ObjectId([0xFF; 12]).into(), true),
        BsonType::Bool => (true.into(), true),
        BsonType::Date => (Value::DateTime(i64::MAX), true),
        BsonType::Timestamp => (
            Timestamp {
                secs: u32::MAX,
                inc: u32::MAX,
            }
            .into(),
            true,
        ),
        BsonType::Regex => next(BsonType::DbPointer),
        BsonType::DbPointer => next(BsonType::Javascript),
        BsonType::Javascript => next(BsonType::JavascriptWithScope),
        BsonType::JavascriptWithScope => (Value::MaxKey, false),
        kind => bracket_low(kind),
    }
}

/// A regular expression as a value.
pub fn regex(pattern: &str, options: &str) -> Value {
    Value::Regex(Box::new(nestor_model::Regex {
        pattern: pattern.into(),
        options: options.into(),
    }))
}

/// NaN of either type: outside the bracket of ordered numbers, only equal to itself.
pub fn is_nan(value: &Value) -> bool {
    match value {
        Value::Double(v) => v.is_nan(),
        Value::Decimal128(v) => Decimal128::is_nan(*v),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(intervals: &[(i32, bool, i32, bool)]) -> IntervalList {
        IntervalList::union_of(
            intervals
                .iter()
                .map(|(l, li, h, hi)| Interval::new((*l).into(), *li, (*h).into(), *hi))
                .collect(),
        )
    }

    fn text(list: &IntervalList) -> String {
        list.explain(true, Strings::Plain).join(" ")
    }

    #[test]
    fn union_joins_what_touches() {
        assert_eq!(
            text(&list(&[(5, true, 9, true), (1, true, 3, false), (3, true, 4, true)])),
            "[1, 4] [5, 9]"
        );
        assert_eq!(
            text(&list(&[(1, true, 3, false), (3, false, 4, true)])),
            "[1, 3) (3, 4]"
        );
        assert_eq!(text(&list(&[(1, true, 9, true), (2, true, 3, true)])), "[1, 9]");
        assert_eq!(text(&list(&[(3, false, 3, true)])), "");
    }

    #[test]
    fn intersection_and_complement() {
        let a = list(&[(1, true, 5, true), (8, true, 12, true)]);
        let b = list(&[(5, true, 9, false), (11, false, 20, true)]);
        assert_eq!(text(&a.intersect(&b)), "[5, 5] [8, 9) (11, 12]");
        assert_eq!(text(&a.complement()), "[MinKey, 1) (5, 8) (12, MaxKey]");
        assert_eq!(text(&a.complement().complement()), text(&a));
        assert!(IntervalList::all().complement().is_empty());
        assert!(IntervalList::none().complement().is_all());
    }

    #[test]
    fn printing_backwards() {
        assert_eq!(
            list(&[(1, true, 5, false), (8, true, 9, true)]).explain(false, Strings::Plain),
            ["[9, 8]", "(5, 1]"]
        );
    }
}
