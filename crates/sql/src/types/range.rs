//! Ranges and multiranges.
//!
//! A range is held as an array of its bounds, null for one that is not there, and of a number whose bits say that it is empty and that the
//! bounds belong to it. A multirange is an array of ranges in order that neither overlap nor touch.

use super::{Type, compare, input, output};
use crate::error::{error, fail};
use nestor_model::{Array, Error, Result, Value};
use std::cmp::Ordering;

const EMPTY: i32 = 1;
const LOWER_INCLUSIVE: i32 = 2;
const UPPER_INCLUSIVE: i32 = 4;

/// A range.
#[derive(Clone, Debug)]
pub struct Range {
    /// Nothing is in it.
    pub empty: bool,
    /// Where it begins; everywhere when there is none.
    pub lower: Option<Value>,
    /// Where it ends.
    pub upper: Option<Value>,
    /// Its lower bound is in it.
    pub lower_inclusive: bool,
    /// Its upper bound is in it.
    pub upper_inclusive: bool,
}

/// An end of a range.
#[derive(Clone, Copy)]
struct Bound<'r> {
    value: Option<&'r Value>,
    inclusive: bool,
    is_lower: bool,
}

impl Bound<'_> {
    fn compare(self, other: Self, element: &Type) -> Ordering {
        let outward = |bound: Self| {
            if bound.is_lower {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        };
        match (self.value, other.value) {
            (None, None) if self.is_lower == other.is_lower => Ordering::Equal,
            (None, _) => outward(self),
            (_, None) => outward(other).reverse(),
            (Some(a), Some(b)) => {
                compare::compare(element, a, b).then_with(|| match (self.inclusive, other.inclusive) {
                    (true, true) => Ordering::Equal,
                    (false, false) if self.is_lower == other.is_lower => Ordering::Equal,
                    (false, _) => outward(self).reverse(),
                    (true, false) => outward(other),
                })
            }
        }
    }

    /// Whether an upper bound ends where a lower one begins.
    fn touches(self, lower: Self, element: &Type) -> bool {
        match (self.value, lower.value) {
            (Some(a), Some(b)) => compare::compare(element, a, b).is_eq() && self.inclusive != lower.inclusive,
            _ => false,
        }
    }
}

/// The next whole number or day. Errors: 22003, 22008.
fn next(value: &Value) -> Result<Value> {
    let out_of_range = || error("22003", "integer out of range");
    Ok(match value {
        Value::Int32(n) => Value::Int32(n.checked_add(1).ok_or_else(out_of_range)?),
        Value::Int64(n) => Value::Int64(n.checked_add(1).ok_or_else(out_of_range)?),
        other => other.clone(),
    })
}

impl Range {
    /// Nothing.
    pub const NOTHING: Self = Self {
        empty: true,
        lower: None,
        upper: None,
        lower_inclusive: false,
        upper_inclusive: false,
    };

    /// The range between bounds. Errors: 22000 when the lower one is above the upper one.
    pub fn new(
        element: &Type,
        lower: Option<Value>,
        upper: Option<Value>,
        (lower_inclusive, upper_inclusive): (bool, bool),
    ) -> Result<Self> {
        let mut out = Self {
            empty: false,
            lower_inclusive: lower_inclusive && lower.is_some(),
            upper_inclusive: upper_inclusive && upper.is_some(),
            lower,
            upper,
        };
        if out.order(element).is_gt() {
            return fail(
                "22000",
                "range lower bound must be less than or equal to range upper bound",
            );
        }
        if out.is_nothing(element) {
            return Ok(Self::NOTHING);
        }
        // Where each value has a next one, the lower bound is in a range and the upper one is not.
        if matches!(element, Type::Int4 | Type::Int8 | Type::Date) {
            let is_finite =
                |value: &Value| *element != Type::Date || !matches!(value, Value::Int32(i32::MAX | i32::MIN));
            if let (false, Some(lower)) = (out.lower_inclusive, out.lower.as_ref().filter(|v| is_finite(v))) {
                (out.lower, out.lower_inclusive) = (Some(next(lower)?), true);
            }
            if let (true, Some(upper)) = (out.upper_inclusive, out.upper.as_ref().filter(|v| is_finite(v))) {
                (out.upper, out.upper_inclusive) = (Some(next(upper)?), false);
            }
        }
        Ok(if out.is_nothing(element) { Self::NOTHING } else { out })
    }

    fn order(&self, element: &Type) -> Ordering {
        match (&self.lower, &self.upper) {
            (Some(a), Some(b)) => compare::compare(element, a, b),
            _ => Ordering::Less,
        }
    }

    fn is_nothing(&self, element: &Type) -> bool {
        match self.order(element) {
            Ordering::Less => false,
            Ordering::Equal => !(self.lower_inclusive && self.upper_inclusive),
            Ordering::Greater => true,
        }
    }

    /// The range that a value is.
    pub fn of(value: &Value) -> Self {
        let Value::Array(parts) = value else {
            return Self::NOTHING;
        };
        let part = |at: usize| parts.as_ref().get(at).map(|part| part.to_value());
        let Some(Value::Int32(flags)) = part(2) else {
            return Self::NOTHING;
        };
        let bound = |at: usize| part(at).filter(|value| !matches!(value, Value::Null));
        Self {
            empty: flags & EMPTY != 0,
            lower: bound(0),
            upper: bound(1),
            lower_inclusive: flags & LOWER_INCLUSIVE != 0,
            upper_inclusive: flags & UPPER_INCLUSIVE != 0,
        }
    }

    /// As a value.
    pub fn to_value(self) -> Value {
        let flag = |on: bool, flag: i32| if on { flag } else { 0 };
        let flags = flag(self.empty, EMPTY)
            | flag(self.lower_inclusive, LOWER_INCLUSIVE)
            | flag(self.upper_inclusive, UPPER_INCLUSIVE);
        Value::Array(Array::new(vec![
            self.lower.unwrap_or(Value::Null),
            self.upper.unwrap_or(Value::Null),
            Value::Int32(flags),
        ]))
    }

    fn begin(&self) -> Bound<'_> {
        Bound {
            value: self.lower.as_ref(),
            inclusive: self.lower_inclusive,
            is_lower: true,
        }
    }

    fn end(&self) -> Bound<'_> {
        Bound {
            value: self.upper.as_ref(),
            inclusive: self.upper_inclusive,
            is_lower: false,
        }
    }

    fn between(begin: Bound<'_>, end: Bound<'_>, element: &Type) -> Self {
        let out = Self {
            empty: false,
            lower: begin.value.cloned(),
            upper: end.value.cloned(),
            lower_inclusive: begin.inclusive,
            upper_inclusive: end.inclusive,
        };
        if out.is_nothing(element) { Self::NOTHING } else { out }
    }

    /// The order of ranges: by their beginnings, then by their ends; nothing comes first.
    pub fn compare(&self, other: &Self, element: &Type) -> Ordering {
        match (self.empty, other.empty) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                let begins = self.begin().compare(other.begin(), element);
                begins.then_with(|| self.end().compare(other.end(), element))
            }
        }
    }

    /// The order of where they begin.
    pub fn compare_begins(&self, other: &Self, element: &Type) -> Ordering {
        self.begin().compare(other.begin(), element)
    }

    /// The order of where they end.
    pub fn compare_ends(&self, other: &Self, element: &Type) -> Ordering {
        self.end().compare(other.end(), element)
    }

    /// Whether all of it is before another range.
    pub fn ends_before(&self, other: &Self, element: &Type) -> bool {
        !self.empty && !other.empty && self.end().compare(other.begin(), element).is_lt()
    }

    /// Whether all of another range is in this one.
    pub fn contains(&self, other: &Self, element: &Type) -> bool {
        other.empty
            || !self.empty
                && self.begin().compare(other.begin(), element).is_le()
                && self.end().compare(other.end(), element).is_ge()
    }

    /// Whether they have something in common.
    pub fn overlaps(&self, other: &Self, element: &Type) -> bool {
        !self.empty
            && !other.empty
            && self.begin().compare(other.end(), element).is_le()
            && other.begin().compare(self.end(), element).is_le()
    }

    /// Whether one begins where the other one ends.
    pub fn touches(&self, other: &Self, element: &Type) -> bool {
        !self.empty
            && !other.empty
            && (self.end().touches(other.begin(), element) || other.end().touches(self.begin(), element))
    }

    /// What is in both.
    pub fn intersection(&self, other: &Self, element: &Type) -> Self {
        if !self.overlaps(other, element) {
            return Self::NOTHING;
        }
        let begin = match self.begin().compare(other.begin(), element).is_ge() {
            true => self.begin(),
            false => other.begin(),
        };
        let end = match self.end().compare(other.end(), element).is_le() {
            true => self.end(),
            false => other.end(),
        };
        Self::between(begin, end, element)
    }

    /// The smallest range with both in it.
    pub fn merged(&self, other: &Self, element: &Type) -> Self {
        match (self.empty, other.empty) {
            (true, _) => return other.clone(),
            (_, true) => return self.clone(),
            _ => {}
        }
        let begin = match self.begin().compare(other.begin(), element).is_le() {
            true => self.begin(),
            false => other.begin(),
        };
        let end = match self.end().compare(other.end(), element).is_ge() {
            true => self.end(),
            false => other.end(),
        };
        Self::between(begin, end, element)
    }

    /// What is in this one and not in the other: the part before that and the part behind it.
    fn without(&self, other: &Self, element: &Type) -> Vec<Self> {
        if !self.overlaps(other, element) {
            return if self.empty { Vec::new() } else { vec![self.clone()] };
        }
        let mut out = Vec::new();
        if self.begin().compare(other.begin(), element).is_lt() {
            let begin = other.begin();
            let end = Bound {
                inclusive: !begin.inclusive,
                is_lower: false,
                ..begin
            };
            out.push(Self::between(self.begin(), end, element));
        }
        if self.end().compare(other.end(), element).is_gt() {
            let end = other.end();
            let begin = Bound {
                inclusive: !end.inclusive,
                is_lower: true,
                ..end
            };
            out.push(Self::between(begin, self.end(), element));
        }
        out.retain(|part| !part.empty);
        out
    }

    /// The difference of ranges. Errors: 22000 when it would be two.
    pub fn minus(&self, other: &Self, element: &Type) -> Result<Self> {
        let mut parts = self.without(other, element);
        match parts.len() {
            0 => Ok(Self::NOTHING),
            1 => Ok(parts.swap_remove(0)),
            _ => fail("22000", "result of range difference would not be contiguous"),
        }
    }

    /// The union of ranges. Errors: 22000 when it would be two.
    pub fn plus(&self, other: &Self, element: &Type) -> Result<Self> {
        let joins = self.empty || other.empty || self.overlaps(other, element) || self.touches(other, element);
        match joins {
            true => Ok(self.merged(other, element)),
            false => fail("22000", "result of range union would not be contiguous"),
        }
    }

    /// Its text.
    pub fn format(&self, element: &Type) -> String {
        if self.empty {
            return "empty".to_owned();
        }
        let bound = |value: &Option<Value>| match value {
            None => String::new(),
            Some(value) => {
                let text = output::text(element, value);
                let quotes = text.is_empty()
                    || text
                        .contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\\' | '(' | ')' | '[' | ']' | ','));
                match quotes {
                    true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\"")),
                    false => text,
                }
            }
        };
        let open = if self.lower_inclusive { '[' } else { '(' };
        let close = if self.upper_inclusive { ']' } else { ')' };
        format!("{open}{},{}{close}", bound(&self.lower), bound(&self.upper))
    }
}

/// A multirange in its one form: no empty ranges, none that overlap or touch, in order.
pub fn joined(mut ranges: Vec<Range>, element: &Type) -> Vec<Range> {
    ranges.retain(|range| !range.empty);
    ranges.sort_by(|a, b| a.compare(b, element));
    let mut out: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.overlaps(&range, element) || last.touches(&range, element) => {
                *last = last.merged(&range, element);
            }
            _ => out.push(range),
        }
    }
    out
}

/// The ranges of a value of a type of ranges or multiranges; an empty one is none.
pub fn parts(ty: &Type, value: &Value) -> Vec<Range> {
    match value {
        value if ty.range_element().is_some() => {
            let range = Range::of(value);
            if range.empty { Vec::new() } else { vec![range] }
        }
        Value::Array(items) => items.iter().map(|item| Range::of(&item.to_value())).collect(),
        _ => Vec::new(),
    }
}

/// A multirange as a value.
pub fn multi(ranges: Vec<Range>) -> Value {
    Value::Array(Array::new(ranges.into_iter().map(Range::to_value).collect()))
}

/// What is in both of two multiranges.
pub fn common(a: &[Range], b: &[Range], element: &Type) -> Vec<Range> {
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| x.intersection(y, element)));
    joined(pairs.collect(), element)
}

/// What is in one multirange and not in another one.
pub fn difference(a: &[Range], b: &[Range], element: &Type) -> Vec<Range> {
    b.iter().fold(a.to_vec(), |left, gone| {
        left.iter().flat_map(|range| range.without(gone, element)).collect()
    })
}

/// The order of values of a type of ranges or multiranges.
pub fn compare_values(ty: &Type, a: &Value, b: &Value) -> Ordering {
    if let Some(element) = ty.range_element() {
        return Range::of(a).compare(&Range::of(b), &element);
    }
    let element = ty.multirange_element().unwrap_or(Type::Int4);
    let (x, y) = (parts(ty, a), parts(ty, b));
    let differs = x
        .iter()
        .zip(&y)
        .map(|(a, b)| a.compare(b, &element))
        .find(|order| order.is_ne());
    differs.unwrap_or_else(|| x.len().cmp(&y.len()))
}

fn malformed(what: &str, text: &str) -> Error {
    error("22P02", format!("malformed {what} literal: \"{text}\""))
}

/// A bound's text up to what ends it, with quotes resolved; `None` for a bound that is not there.
fn bound<'t>(text: &'t str, ends: &[char]) -> Option<(Option<String>, char, &'t str)> {
    let mut out = String::new();
    let (mut quoted, mut any) = (false, false);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => out.push(chars.next()?.1),
            '"' if quoted && chars.peek().is_some_and(|(_, c)| *c == '"') => {
                chars.next();
                out.push('"');
            }
            '"' => quoted = !quoted,
            c if !quoted && ends.contains(&c) => {
                return Some((any.then_some(out), c, &text[at + c.len_utf8()..]));
            }
            c if !quoted && matches!(c, '(' | ')' | '[' | ']' | ',') => return None,
            c => out.push(c),
        }
        any = true;
    }
    None
}

/// The range that begins a text, and what follows it. Errors: 22P02, 22000, those of its bounds.
fn read<'t>(element: &Type, text: &'t str) -> Option<Result<(Range, &'t str)>> {
    let text = text.trim_start();
    if text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("empty")) {
        return Some(Ok((Range::NOTHING, &text[5..])));
    }
    let lower_inclusive = match text.chars().next()? {
        '[' => true,
        '(' => false,
        _ => return None,
    };
    let (lower, _, rest) = bound(&text[1..], &[','])?;
    let (upper, close, rest) = bound(rest, &[')', ']'])?;
    let value = |text: Option<String>| text.map(|text| input::text(element, &text)).transpose();
    let range = value(lower).and_then(|lower| {
        let upper = value(upper)?;
        Range::new(element, lower, upper, (lower_inclusive, close == ']'))
    });
    Some(range.map(|range| (range, rest)))
}

/// The range that a text is. Errors: 22P02, 22000, those of its bounds.
pub fn parse(element: &Type, text: &str) -> Result<Range> {
    let (range, rest) = read(element, text).ok_or_else(|| malformed("range", text))??;
    match rest.trim().is_empty() {
        true => Ok(range),
        false => Err(malformed("range", text)),
    }
}

/// The multirange that a text is. Errors: 22P02, 22000, those of its bounds.
pub fn parse_multi(element: &Type, text: &str) -> Result<Vec<Range>> {
    let wrong = || malformed("multirange", text);
    let mut rest = text.trim().strip_prefix('{').ok_or_else(wrong)?.trim_start();
    let mut out = Vec::new();
    if rest == "}" {
        return Ok(out);
    }
    loop {
        let (range, after) = read(element, rest).ok_or_else(wrong)??;
        out.push(range);
        rest = after.trim_start();
        match rest.chars().next() {
            Some(',') => rest = &rest[1..],
            Some('}') if rest.len() == 1 => return Ok(joined(out, element)),
            _ => return Err(wrong()),
        }
    }
}

/// Flags on the wire: those of a range, and of bounds that are not there.
const LOWER_INFINITE: u8 = 8;
const UPPER_INFINITE: u8 = 16;

/// A range in binary format.
pub fn to_binary(element: &Type, range: &Range, out: &mut Vec<u8>) {
    let flag = |on: bool, flag: u8| if on { flag } else { 0 };
    out.push(match range.empty {
        true => 1,
        false => {
            flag(range.lower_inclusive, 2)
                | flag(range.upper_inclusive, 4)
                | flag(range.lower.is_none(), LOWER_INFINITE)
                | flag(range.upper.is_none(), UPPER_INFINITE)
        }
    });
    for value in [&range.lower, &range.upper].into_iter().flatten() {
        output::sized(element, value, out);
    }
}

/// A multirange in binary format.
pub fn multi_to_binary(element: &Type, ranges: &[Range], out: &mut Vec<u8>) {
    out.extend_from_slice(&(ranges.len() as i32).to_be_bytes());
    for range in ranges {
        let mut bytes = Vec::new();
        to_binary(element, range, &mut bytes);
        out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
        out.extend_from_slice(&bytes);
    }
}

/// The range that bytes in binary format are.
pub fn of_binary(element: &Type, bytes: &[u8]) -> Option<Result<Range>> {
    let (flags, mut rest) = bytes.split_first()?;
    if flags & 1 != 0 {
        return Some(Ok(Range::NOTHING));
    }
    let mut bounds = [None, None];
    for (bound, infinite) in bounds.iter_mut().zip([LOWER_INFINITE, UPPER_INFINITE]) {
        if flags & infinite == 0 {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
            let (own, after) = after.split_at_checked(length)?;
            rest = after;
            match input::binary(element, own) {
                Ok(value) => *bound = Some(value),
                Err(error) => return Some(Err(error)),
            }
        }
    }
    let [lower, upper] = bounds;
    Some(Range::new(element, lower, upper, (flags & 2 != 0, flags & 4 != 0)))
}

/// The multirange that bytes in binary format are.
pub fn multi_of_binary(element: &Type, bytes: &[u8]) -> Option<Result<Vec<Range>>> {
    let (count, mut rest) = bytes.split_first_chunk::<4>()?;
    let mut out = Vec::new();
    for _ in 0..i32::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (own, after) = after.split_at_checked(usize::try_from(i32::from_be_bytes(*length)).ok()?)?;
        rest = after;
        match of_binary(element, own)? {
            Ok(range) => out.push(range),
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(joined(out, element)))
}
