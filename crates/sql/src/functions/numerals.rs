//! `to_char` of numbers and `to_number`: patterns of digits as the manual's "Data Type Formatting Functions" has them.

use super::Row;
use super::args::{decimal, double, int};
use super::text::{str, text};
use crate::error::fail;
use crate::types::numeric;
use nestor_model::{Decimal128, Result, Value};

/// What a place of a pattern stands for.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// `9`, or `0` that shows zeros.
    Digit { zero: bool },
    /// `.` and `D`.
    Point,
    /// `,` and `G`.
    Group,
    /// `S`: the sign where it stands.
    Sign,
    /// `MI`: minus or a blank.
    Minus,
    /// `PL`: plus or a blank.
    Plus,
    /// `SG`: plus or minus.
    Both,
    /// `PR`: angle brackets around what is negative.
    Brackets,
    /// `TH` and `th`.
    Ordinal { upper: bool },
    /// `L`: the sign of a currency, which the locale C lacks.
    Currency,
    /// What is shown as it is.
    Literal(String),
}

/// A pattern, read.
#[derive(Debug, Default)]
struct Pattern {
    parts: Vec<Part>,
    /// `FM`: no blanks and no zeros at the end.
    compact: bool,
    /// `EEEE`.
    scientific: bool,
    /// `RN`, and whether in capitals.
    roman: Option<bool>,
    /// Digits behind `V`, by as many places a number is moved.
    shift: Option<usize>,
}

impl Pattern {
    /// Errors: 42601 of parts that do not go together.
    fn parse(pattern: &str) -> Result<Self> {
        let mut out = Self::default();
        let mut rest = pattern;
        'next: while let Some(c) = rest.chars().next() {
            if let Some(quoted) = rest.strip_prefix('"') {
                let (inner, after) = quoted.split_once('"').unwrap_or((quoted, ""));
                out.parts.push(Part::Literal(inner.to_owned()));
                rest = after;
                continue;
            }
            let words = [
                "EEEE", "FM", "MI", "PL", "SG", "PR", "RN", "TH", "9", "0", ".", "D", ",", "G", "S", "L", "V",
            ];
            for word in words {
                let Some(head) = rest.get(..word.len()).filter(|head| head.eq_ignore_ascii_case(word)) else {
                    continue;
                };
                rest = &rest[word.len()..];
                let upper = head == word;
                match word {
                    "EEEE" => out.scientific = true,
                    "FM" => out.compact = true,
                    "RN" => out.roman = Some(upper),
                    "V" => out.shift = Some(0),
                    "9" | "0" => {
                        if let Some(shift) = &mut out.shift {
                            *shift += 1;
                        }
                        out.parts.push(Part::Digit { zero: word == "0" });
                    }
                    "." | "D" => {
                        if out.parts.contains(&Part::Point) {
                            return fail("42601", "multiple decimal points");
                        }
                        out.parts.push(Part::Point);
                    }
                    "," | "G" => out.parts.push(Part::Group),
                    "S" => out.parts.push(Part::Sign),
                    "MI" => out.parts.push(Part::Minus),
                    "PL" => out.parts.push(Part::Plus),
                    "SG" => out.parts.push(Part::Both),
                    "PR" => out.parts.push(Part::Brackets),
                    "TH" => out.parts.push(Part::Ordinal { upper }),
                    _ => out.parts.push(Part::Currency),
                }
                continue 'next;
            }
            out.parts.push(Part::Literal(c.to_string()));
            rest = &rest[c.len_utf8()..];
        }
        let signs = [Part::Minus, Part::Plus, Part::Both, Part::Brackets];
        if out.has(&Part::Sign) && signs.iter().any(|sign| out.has(sign)) {
            return fail("42601", "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
        }
        if out.shift.is_some() && out.has(&Part::Point) {
            return fail("42601", "cannot use \"V\" and decimal point together");
        }
        Ok(out)
    }

    fn has(&self, part: &Part) -> bool {
        self.parts.contains(part)
    }

    /// Digits before and behind the point.
    fn digits(&self) -> (usize, usize) {
        let count = |parts: &[Part]| parts.iter().filter(|part| matches!(part, Part::Digit { .. })).count();
        match self.parts.iter().position(|part| *part == Part::Point) {
            Some(at) => (count(&self.parts[..at]), count(&self.parts[at..])),
            None => (count(&self.parts), 0),
        }
    }
}

fn roman(value: Decimal128, upper: bool, compact: bool) -> Result<String> {
    const NUMERALS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let Some(mut n) = numeric::format(numeric::round(value, 0)?)
        .parse::<u32>()
        .ok()
        .filter(|n| (1..4000).contains(n))
    else {
        return Ok("#".repeat(15));
    };
    let mut out = String::new();
    for (worth, letters) in NUMERALS {
        while n >= worth {
            out.push_str(letters);
            n -= worth;
        }
    }
    let out = if upper { out } else { out.to_lowercase() };
    Ok(if compact { out } else { format!("{out:>15}") })
}

/// A number with an exponent of two digits, so many of them behind the point.
fn scientific(value: Decimal128, places: usize) -> String {
    let written = numeric::format(value);
    let (sign, digits) = match written.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => (' ', written.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|c| c.wrapping_sub(b'0'))
        .collect();
    if all.iter().any(|digit| *digit > 9) {
        return "#".repeat(places + 7);
    }
    let first = all.iter().position(|digit| *digit != 0);
    let mut exponent = first.map_or(0, |first| whole.len() as i64 - 1 - first as i64);
    let mut kept: Vec<u8> = all[first.unwrap_or(0)..]
        .iter()
        .copied()
        .chain(std::iter::repeat(0))
        .take(places + 2)
        .collect();
    if kept.pop().is_some_and(|digit| digit >= 5) {
        let mut at = kept.len();
        loop {
            if at == 0 {
                kept.insert(0, 1);
                kept.pop();
                exponent += 1;
                break;
            }
            at -= 1;
            if kept[at] < 9 {
                kept[at] += 1;
                break;
            }
            kept[at] = 0;
        }
    }
    let shown: String = kept.iter().map(|digit| char::from(b'0' + digit)).collect();
    let point = if places > 0 { "." } else { "" };
    let plus = if exponent < 0 { '-' } else { '+' };
    format!(
        "{sign}{}{point}{}e{plus}{:02}",
        &shown[..1],
        &shown[1..],
        exponent.abs()
    )
}

pub(super) fn ordinal(digits: &str) -> &'static str {
    match (
        digits.ends_with("11") || digits.ends_with("12") || digits.ends_with("13"),
        digits.chars().last(),
    ) {
        (false, Some('1')) => "st",
        (false, Some('2')) => "nd",
        (false, Some('3')) => "rd",
        _ => "th",
    }
}

fn to_char(value: Decimal128, pattern: &str) -> Result<Value> {
    let pattern = Pattern::parse(pattern)?;
    if let Some(upper) = pattern.roman {
        return text(roman(value, upper, pattern.compact)?);
    }
    let (before, behind) = pattern.digits();
    if pattern.scientific {
        return text(scientific(value, behind));
    }
    let moved = match pattern.shift {
        Some(places) => {
            let power = numeric::parse(&format!("1{}", "0".repeat(places.min(30))))?;
            numeric::mul(value, power)?
        }
        None => value,
    };
    let places = i32::try_from(behind).unwrap_or(i32::MAX).min(30);
    let rounded = numeric::format(numeric::round(moved, places)?);
    let (negative, digits) = match rounded.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, rounded.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // A zero before the point is shown where nothing stands behind it, or where the pattern has `0`.
    let whole = if whole == "0" && behind > 0 { "" } else { whole };
    let fits = whole.len() <= before;
    let whole = if fits { whole.to_owned() } else { "#".repeat(before) };
    let fraction = if fits {
        format!("{fraction:0<behind$}")
    } else {
        "#".repeat(behind)
    };
    let mut out = Writer {
        pattern: &pattern,
        negative,
        sign_is_due: !(pattern.has(&Part::Minus) || pattern.has(&Part::Both)),
        out: String::new(),
    };
    out.write(&whole, &fraction, before);
    text(out.out)
}

/// What writes the places of a pattern.
struct Writer<'p> {
    pattern: &'p Pattern,
    negative: bool,
    /// The sign is still to be written before the first digit.
    sign_is_due: bool,
    out: String,
}

impl Writer<'_> {
    fn write(&mut self, whole: &str, fraction: &str, before: usize) {
        let parts = &self.pattern.parts;
        // Where zeros begin: at the first `0` of the pattern, if that is before the number's own digits.
        let places = parts.iter().take_while(|part| **part != Part::Point);
        let zeros = places
            .filter(|part| matches!(part, Part::Digit { .. }))
            .position(|part| *part == (Part::Digit { zero: true }));
        let own = before - whole.len().min(before);
        let first = zeros.map_or(own, |zeros| zeros.min(own));
        let last = self.last_place(fraction);
        let trailing = self.pattern.has(&Part::Sign)
            && parts.iter().position(|part| *part == Part::Sign)
                > parts.iter().position(|part| matches!(part, Part::Digit { .. }));
        let (mut place, mut in_fraction) = (0, false);
        let digits_behind = fraction.len();
        for part in parts {
            match part {
                Part::Digit { .. } if in_fraction => {
                    if place < last {
                        self.out.push_str(&fraction[place..=place]);
                    }
                    place += 1;
                }
                Part::Digit { .. } => {
                    if place >= first {
                        self.begin(trailing);
                        self.out.push_str(if place < own {
                            "0"
                        } else {
                            &whole[place - own..=place - own]
                        });
                    } else {
                        self.blank();
                    }
                    place += 1;
                }
                Part::Point => {
                    self.begin(trailing);
                    self.out.push('.');
                    (place, in_fraction) = (0, true);
                }
                Part::Group if place > first => self.out.push(','),
                Part::Group => self.blank(),
                Part::Sign if trailing => self.out.push(if self.negative { '-' } else { '+' }),
                Part::Sign => {}
                Part::Minus => match self.negative {
                    true => self.out.push('-'),
                    false => self.blank(),
                },
                Part::Plus => match self.negative {
                    true => self.blank(),
                    false => self.out.push('+'),
                },
                Part::Both => self.out.push(if self.negative { '-' } else { '+' }),
                Part::Brackets => match self.negative {
                    true => self.out.push('>'),
                    false => self.blank(),
                },
                Part::Ordinal { upper } => {
                    if !self.negative && digits_behind == 0 && !whole.starts_with('#') {
                        let ending = ordinal(whole);
                        self.out.push_str(&if *upper {
                            ending.to_uppercase()
                        } else {
                            ending.to_owned()
                        });
                    }
                }
                Part::Currency => self.out.push(' '),
                Part::Literal(literal) => self.out.push_str(literal),
            }
        }
    }

    /// Places behind the point that are shown: with `FM` none at the end that are zero and not asked for.
    fn last_place(&self, fraction: &str) -> usize {
        if !self.pattern.compact {
            return fraction.len();
        }
        let behind = self.pattern.parts.iter().skip_while(|part| **part != Part::Point);
        let asked = behind
            .filter(|part| matches!(part, Part::Digit { .. }))
            .enumerate()
            .filter(|(_, part)| **part == (Part::Digit { zero: true }))
            .map(|(at, _)| at + 1)
            .last();
        fraction.trim_end_matches('0').len().max(asked.unwrap_or(0))
    }

    fn blank(&mut self) {
        if !self.pattern.compact {
            self.out.push(' ');
        }
    }

    /// Writes the sign before the first digit, once.
    fn begin(&mut self, trailing: bool) {
        if !std::mem::take(&mut self.sign_is_due) || trailing {
            return;
        }
        let sign = match (
            self.pattern.has(&Part::Sign),
            self.pattern.has(&Part::Brackets),
            self.negative,
        ) {
            (true, _, true) | (_, false, true) => Some('-'),
            (true, _, false) => Some('+'),
            (_, true, true) => Some('<'),
            _ => None,
        };
        match sign {
            Some(sign) => self.out.push(sign),
            None => self.blank(),
        }
    }
}

/// Shows a number by any pattern, and reads any text by one.
pub(super) fn read(pattern: &str) {
    let _ = to_char(Decimal128::from_i32(-1234), pattern);
    let _ = to_number(pattern, "S999G999D99");
}

/// A number of double precision with the digits that it surely has.
fn of_double(n: f64, digits: usize) -> Result<Decimal128> {
    numeric::parse(&format!("{n:.digits$e}"))
}

fn to_number(input: &str, pattern: &str) -> Result<Value> {
    let pattern = Pattern::parse(pattern)?;
    if pattern.scientific {
        return fail("0A000", "\"EEEE\" not supported for input");
    }
    let (_, behind) = pattern.digits();
    let negative = input.contains('-') || input.trim().starts_with('<');
    let (mut kept, mut places) = (String::new(), None);
    for c in input.chars() {
        match (c, &mut places) {
            ('0'..='9', Some(places)) if *places < behind => {
                *places += 1;
                kept.push(c);
            }
            ('0'..='9', None) => kept.push(c),
            ('.', None) if pattern.has(&Part::Point) => {
                places = Some(0);
                kept.push('.');
            }
            _ => {}
        }
    }
    if !kept.contains(|c: char| c.is_ascii_digit()) {
        return fail("22P02", format!("invalid input syntax for type numeric: \"{input}\""));
    }
    let value = numeric::parse(&format!("{}{kept}", if negative { "-" } else { "" }))?;
    match pattern.shift {
        Some(shift) => {
            let power = numeric::parse(&format!("1{}", "0".repeat(shift.min(30))))?;
            numeric::div(value, power).map(Value::Decimal128)
        }
        None => Ok(Value::Decimal128(value)),
    }
}

pub(super) const ROWS: &[Row] = &[
    ("to_char", "int4,text->text", |a, _, _| {
        to_char(numeric::parse(&int(&a[0]).to_string())?, str(&a[1]))
    }),
    ("to_char", "int8,text->text", |a, _, _| {
        to_char(numeric::parse(&int(&a[0]).to_string())?, str(&a[1]))
    }),
    ("to_char", "numeric,text->text", |a, _, _| {
        to_char(decimal(&a[0]), str(&a[1]))
    }),
    ("to_char", "float4,text->text", |a, _, _| {
        to_char(of_double(double(&a[0]), 5)?, str(&a[1]))
    }),
    ("to_char", "float8,text->text", |a, _, _| {
        to_char(of_double(double(&a[0]), 14)?, str(&a[1]))
    }),
    ("to_number", "text,text->numeric", |a, _, _| {
        to_number(str(&a[0]), str(&a[1]))
    }),
];
