//! `$dateFromString`: text into dates, by a format or by the common ways to write them.

use super::pattern::{Piece, split};
use super::zone::{Zone, iso_year_start};
use super::{zone_of, zone_value};
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::families::text::MONTHS;
use crate::expr::parse::OpDef;
use nestor_model::date::{Civil, DAY_MS, days_from_civil, days_in_month};
use nestor_model::{Error, ErrorCode, Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[OpDef::custom("$dateFromString", parse_from_string)];

const LETTERS: &str = "dGHjLmMSuVYzZbB";

/// Arguments: text, format, time zone, value on error, value for null.
fn parse_from_string(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 40540,
        unknown: 40541,
        fields: &[
            ("dateString", Some(40542)),
            ("format", None),
            ("timezone", None),
            ("onError", None),
            ("onNull", None),
        ],
    }
    .parse(name, value, scope)?;
    match args[1].constant().map(|v| v.as_ref()) {
        Some(ValueRef::String(format)) => {
            split(format, LETTERS)?;
        }
        Some(other) if !other.is_nullish() => return Err(format_type(other)),
        _ => {}
    }
    Expr::call_of(name, from_string, args)
}

fn format_type(value: ValueRef<'_>) -> Error {
    error(
        40684,
        format!(
            "$dateFromString requires that 'format' be a string, found: {}",
            value.bson_type().alias()
        ),
    )
}

fn failure(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ConversionFailure, message)
}

fn from_string<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let text = args[0].eval_ref(env)?;
    let format = args[1].eval_ref(env)?;
    let given_zone = !args[2].is_absent();
    let zone = if given_zone {
        let value = args[2].eval_ref(env)?;
        zone_value(&value)?
    } else {
        zone_of(&args[2], env)?
    };
    let parsed = match (text.as_ref(), format.as_ref()) {
        (other, _) if other.is_nullish() => {
            return if args[4].is_absent() {
                Ok(Val::NULL)
            } else {
                args[4].eval_ref(env)
            };
        }
        (_, other) if !other.is_nullish() && other.as_str().is_none() => return Err(format_type(other)),
        (ValueRef::String(text), format) => {
            let Some(zone) = zone else {
                return Ok(Val::NULL);
            };
            // UTC is as good as no zone: the text may have one of its own.
            let zone = (given_zone && !zone.is_utc()).then_some(zone);
            match format.as_str() {
                Some(format) => parse_with(text, format, zone),
                None if args[1].is_absent() => parse(text, zone),
                None => return Ok(Val::NULL),
            }
        }
        (other, _) => Err(failure(format!(
            "$dateFromString requires that 'dateString' be a string, found: {}",
            other.bson_type().alias()
        ))),
    };
    match parsed {
        Ok(ms) => Ok(Val::Ref(ValueRef::DateTime(ms))),
        Err(e) if e.code() == ErrorCode::ConversionFailure && !args[3].is_absent() => args[3].eval_ref(env),
        Err(e) => Err(e),
    }
}

/// What was read so far.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    millisecond: Option<i64>,
    /// Zone read from the text.
    zone: Option<Zone>,
}

impl Fields {
    fn finish(self, zone: Option<Zone>) -> Option<Result<i64>> {
        let days = if let Some(year) = self.iso_year {
            if self.month.is_some() || self.day.is_some() || self.year.is_some() {
                return None;
            }
            iso_year_start(year) + (self.iso_week.unwrap_or(1) - 1) * 7 + self.iso_day.unwrap_or(1) - 1
        } else {
            let year = self.year?;
            match self.day_of_year {
                Some(day) => days_from_civil(year, 1, 1) + day - 1,
                None => {
                    let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
                    if day == 0 || day > days_in_month(year, month)? {
                        return None;
                    }
                    days_from_civil(year, month, day)
                }
            }
        };
        let clock = self.hour.unwrap_or(0) * 3_600_000
            + self.minute.unwrap_or(0) * 60_000
            + self.second.unwrap_or(0) * 1000
            + self.millisecond.unwrap_or(0);
        let zone = match (self.zone, zone) {
            (Some(_), Some(_)) => {
                return Some(Err(failure(
                    "you cannot pass in a date/time string with time zone information together with a timezone argument",
                )));
            }
            (own, given) => own.or(given).unwrap_or(Zone::UTC),
        };
        zone.from_local(days.checked_mul(DAY_MS)?.checked_add(clock)?).map(Ok)
    }
}

/// A reader of text from the left.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// A number of `min` to `max` digits.
    fn number(&mut self, min: usize, max: usize) -> Option<i64> {
        let count = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if count < min {
            return None;
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits.parse().ok()
    }

    fn digits(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    fn letters(&mut self) -> &'t str {
        let count = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (word, rest) = self.rest.split_at(count);
        self.rest = rest;
        word
    }
}

/// A month by its name or first three letters; the length of what was read.
fn month_of(word: &str) -> Option<u32> {
    let lower = word.to_ascii_lowercase();
    MONTHS
        .iter()
        .position(|m| {
            let m = m.to_ascii_lowercase();
            lower == m || lower == m[..3] || (lower == "sept" && m == "september")
        })
        .map(|at| at as u32 + 1)
}

/// Parses by a format. Errors: 241 the text does not fit; those of formats.
pub(crate) fn parse_with(text: &str, format: &str, zone: Option<Zone>) -> Result<i64> {
    let pieces = split(format, LETTERS)?;
    let bad = || failure(format!("error parsing date string '{text}' with format '{format}'"));
    let mut reader = Reader { rest: text };
    let mut fields = Fields::default();
    for piece in pieces {
        match piece {
            Piece::Text(part) => {
                if !reader.eat(part) {
                    return Err(bad());
                }
            }
            Piece::Field(letter) => read_field(&mut reader, letter, &mut fields).ok_or_else(bad)?,
        }
    }
    if !reader.rest.is_empty() {
        return Err(bad());
    }
    let mixed = (fields.iso_year.is_some() || fields.iso_week.is_some() || fields.iso_day.is_some())
        && (fields.year.is_some() || fields.month.is_some() || fields.day.is_some() || fields.day_of_year.is_some());
    if mixed {
        return Err(bad());
    }
    fields.finish(zone).ok_or_else(bad)?
}

fn within(value: i64, from: i64, to: i64) -> Option<i64> {
    (from..=to).contains(&value).then_some(value)
}

fn read_field(reader: &mut Reader<'_>, letter: char, fields: &mut Fields) -> Option<()> {
    match letter {
        'Y' => fields.year = Some(reader.number(4, 4)?),
        'G' => fields.iso_year = Some(reader.number(4, 4)?),
        'm' => fields.month = Some(within(reader.number(1, 2)?, 1, 12)? as u32),
        'd' => fields.day = Some(within(reader.number(1, 2)?, 1, 31)? as u32),
        'H' => fields.hour = Some(within(reader.number(1, 2)?, 0, 24)?),
        'M' => fields.minute = Some(within(reader.number(1, 2)?, 0, 59)?),
        'S' => fields.second = Some(within(reader.number(1, 2)?, 0, 59)?),
        'L' => {
            let before = reader.digits().min(3);
            let value = reader.number(1, 3)?;
            fields.millisecond = Some(value * [100, 10, 1][before.clamp(1, 3) - 1]);
        }
        // MongoDB counts these from zero when it parses, though it prints them from one.
        'j' => fields.day_of_year = Some(within(reader.number(1, 3)?, 0, 366)? + 1),
        'V' => fields.iso_week = Some(within(reader.number(1, 2)?, 1, 53)?),
        'u' => fields.iso_day = Some(within(reader.number(1, 1)?, 1, 7)?),
        'b' | 'B' => fields.month = Some(month_of(reader.letters())?),
        'z' => fields.zone = Some(read_zone(reader)?),
        _ => {
            let sign = if reader.eat("-") {
                -1
            } else {
                i64::from(reader.eat("+"))
            };
            let minutes = reader.number(1, 3)?;
            if sign == 0 {
                return None;
            }
            fields.zone = Some(Zone::Fixed(sign * minutes * 60_000));
        }
    }
    Some(())
}

/// `Z`, `UTC`, `GMT`, or an offset such as `+05:30`, `+0530`, `+5`.
fn read_zone(reader: &mut Reader<'_>) -> Option<Zone> {
    let sign = match reader.peek()? {
        '+' => 1,
        '-' => -1,
        'Z' | 'z' => {
            reader.rest = &reader.rest[1..];
            return Some(Zone::UTC);
        }
        _ => {
            let word = reader.letters();
            return abbreviation(word);
        }
    };
    reader.rest = &reader.rest[1..];
    let digits = reader.digits();
    let (hours, minutes) = match digits {
        1 | 2 => {
            let hours = reader.number(1, 2)?;
            let minutes = if reader.eat(":") { reader.number(2, 2)? } else { 0 };
            (hours, minutes)
        }
        3 => (reader.number(1, 1)?, reader.number(2, 2)?),
        4 => (reader.number(2, 2)?, reader.number(2, 2)?),
        _ => return None,
    };
    Some(Zone::Fixed(sign * (hours * 60 + minutes) * 60_000))
}

/// Zones by the abbreviations that are common in dates.
fn abbreviation(word: &str) -> Option<Zone> {
    let hours = match word.to_ascii_uppercase().as_str() {
        "UTC" | "GMT" => 0,
        "EST" => -5,
        "EDT" => -4,
        "CST" => -6,
        "CDT" => -5,
        "MST" => -7,
        "MDT" => -6,
        "PST" => -8,
        "PDT" => -7,
        "CET" => 1,
        "CEST" => 2,
        _ => return None,
    };
    Some(Zone::Fixed(hours * 3_600_000))
}

/// Parses the common forms: ISO 8601 dates and times with optional zone, and dates with month names. Error 241.
pub(crate) fn parse(text: &str, zone: Option<Zone>) -> Result<i64> {
    let bad = || failure(format!("error parsing date string '{text}'"));
    let mut fields = Fields::default();
    read_free(text, &mut fields).ok_or_else(bad)?;
    if fields.year.is_none() && fields.iso_year.is_none() {
        return Err(failure(format!(
            "an incomplete date/time string has been found, with elements missing: \"{text}\""
        )));
    }
    if fields.iso_year.is_none() && fields.day_of_year.is_none() && (fields.month.is_none() || fields.day.is_none()) {
        return Err(failure(format!(
            "an incomplete date/time string has been found, with elements missing: \"{text}\""
        )));
    }
    fields.finish(zone).ok_or_else(bad)?
}

fn read_free(text: &str, fields: &mut Fields) -> Option<()> {
    let mut reader = Reader { rest: text.trim() };
    if reader.rest.is_empty() {
        return None;
    }
    loop {
        while reader.eat(" ") || reader.eat(",") || reader.eat("\t") {}
        let Some(next) = reader.peek() else {
            return Some(());
        };
        if next.is_ascii_digit() {
            read_digits(&mut reader, fields)?;
        } else if next == '@' {
            reader.rest = &reader.rest[1..];
            read_seconds(&mut reader, fields)?;
        } else if (next == '+' || next == '-') && fields.hour.is_some() && fields.zone.is_none() {
            fields.zone = Some(read_zone(&mut reader)?);
        } else if next.is_ascii_alphabetic() {
            read_word(&mut reader, fields)?;
        } else {
            return None;
        }
    }
}

fn read_word(reader: &mut Reader<'_>, fields: &mut Fields) -> Option<()> {
    let start = reader.rest;
    let word = reader.letters();
    let lower = word.to_ascii_lowercase();
    if matches!(lower.as_str(), "am" | "pm" | "a" | "p") && fields.hour.is_some() {
        let hour = within(fields.hour?, 1, 12)? % 12;
        fields.hour = Some(if lower.starts_with('p') { hour + 12 } else { hour });
        reader.eat(".");
        return Some(());
    }
    if let Some(month) = month_of(word) {
        if fields.month.replace(month).is_some() {
            return None;
        }
        reader.eat(".");
        reader.eat("-");
        return Some(());
    }
    if super::unit::parse_weekday(word).is_some() {
        reader.eat(".");
        return Some(());
    }
    match lower.as_str() {
        "t" if fields.day.is_some() && fields.hour.is_none() => return Some(()),
        "st" | "nd" | "rd" | "th" if fields.day.is_some() => return Some(()),
        "z" => {
            fields.zone.replace(Zone::UTC).is_none().then_some(())?;
            return Some(());
        }
        _ => {}
    }
    let zone = abbreviation(word).or_else(|| {
        let end = start.find([' ', ',']).unwrap_or(start.len());
        let zone = Zone::parse(&start[..end]).ok()?;
        reader.rest = &start[end..];
        Some(zone)
    })?;
    // `GMT+2` is an offset from it.
    if matches!(lower.as_str(), "utc" | "gmt") && matches!(reader.peek(), Some('+' | '-')) {
        fields.zone.replace(read_zone(reader)?).is_none().then_some(())?;
        return Some(());
    }
    fields.zone.replace(zone).is_none().then_some(())
}

fn read_seconds(reader: &mut Reader<'_>, fields: &mut Fields) -> Option<()> {
    let negative = reader.eat("-");
    let seconds = reader.number(1, 12)?;
    let c = Civil::from_ms(if negative { -seconds } else { seconds } * 1000);
    (fields.year, fields.month, fields.day) = (Some(c.year), Some(c.month), Some(c.day));
    (fields.hour, fields.minute, fields.second) = (
        Some(i64::from(c.hour)),
        Some(i64::from(c.minute)),
        Some(i64::from(c.second)),
    );
    fields.zone = Some(Zone::UTC);
    Some(())
}

/// Something that begins with a digit: a clock time, a date, a year or a day.
fn read_digits(reader: &mut Reader<'_>, fields: &mut Fields) -> Option<()> {
    let count = reader.digits();
    let after = reader.rest[count..].chars().next();
    if count <= 2 && after == Some(':') {
        return read_clock(reader, fields);
    }
    let have_date = fields.year.is_some() && fields.month.is_some() && fields.day.is_some();
    if have_date && fields.hour.is_none() {
        return read_compact_clock(reader, fields, count, after);
    }
    match (count, after) {
        (8, _) if fields.year.is_none() => {
            fields.year = reader.number(4, 4);
            fields.month = reader.number(2, 2).map(|v| v as u32);
            fields.day = reader.number(2, 2).map(|v| v as u32);
        }
        (4, Some('-')) => {
            fields.year = reader.number(4, 4);
            reader.eat("-");
            if matches!(reader.peek(), Some('W')) {
                return read_iso_week(reader, fields);
            }
            if reader.peek().is_some_and(|c| c.is_ascii_alphabetic()) {
                fields.month = month_of(reader.letters());
                fields.month?;
                if reader.eat("-") {
                    fields.day = reader.number(1, 2).map(|v| v as u32);
                }
                return Some(());
            }
            if reader.digits() == 3 {
                fields.day_of_year = Some(within(reader.number(3, 3)?, 1, 366)?);
                return Some(());
            }
            fields.month = Some(within(reader.number(1, 2)?, 1, 12)? as u32);
            if reader.eat("-") {
                fields.day = Some(within(reader.number(1, 2)?, 1, 31)? as u32);
            }
        }
        (4, Some('W')) => {
            fields.year = reader.number(4, 4);
            return read_iso_week(reader, fields);
        }
        (4, Some('/')) => {
            fields.year = reader.number(4, 4);
            reader.eat("/");
            fields.month = Some(within(reader.number(1, 2)?, 1, 12)? as u32);
            reader.eat("/").then_some(())?;
            fields.day = Some(within(reader.number(1, 2)?, 1, 31)? as u32);
        }
        // American: month, day, year.
        (1 | 2, Some('/')) => {
            fields.month = Some(within(reader.number(1, 2)?, 1, 12)? as u32);
            reader.eat("/");
            fields.day = Some(within(reader.number(1, 2)?, 1, 31)? as u32);
            if reader.eat("/") {
                fields.year = Some(read_year(reader)?);
            }
        }
        // European: day, month, year.
        (1 | 2, Some(separator @ ('-' | '.'))) => {
            fields.day = Some(within(reader.number(1, 2)?, 1, 31)? as u32);
            let mut buffer = [0; 4];
            let separator: &str = separator.encode_utf8(&mut buffer);
            reader.eat(separator);
            if reader.peek().is_some_and(|c| c.is_ascii_alphabetic()) {
                fields.month = Some(month_of(reader.letters())?);
            } else if reader.digits() > 0 {
                fields.month = Some(within(reader.number(1, 2)?, 1, 12)? as u32);
            } else {
                return Some(());
            }
            if reader.eat(separator) {
                fields.year = Some(read_year(reader)?);
            }
        }
        (1 | 2, _) if fields.day.is_none() => fields.day = Some(within(reader.number(1, 2)?, 1, 31)? as u32),
        (4, _) if fields.year.is_none() => fields.year = reader.number(4, 4),
        _ => return None,
    }
    Some(())
}

fn read_year(reader: &mut Reader<'_>) -> Option<i64> {
    match reader.digits() {
        4 => reader.number(4, 4),
        2 => reader
            .number(2, 2)
            .map(|year| if year < 70 { 2000 + year } else { 1900 + year }),
        _ => None,
    }
}

fn read_iso_week(reader: &mut Reader<'_>, fields: &mut Fields) -> Option<()> {
    reader.eat("W").then_some(())?;
    fields.iso_year = fields.year.take();
    fields.iso_week = Some(within(reader.number(2, 2)?, 1, 53)?);
    if reader.eat("-") || reader.digits() == 1 {
        fields.iso_day = Some(within(reader.number(1, 1)?, 1, 7)?);
    }
    Some(())
}

fn read_clock(reader: &mut Reader<'_>, fields: &mut Fields) -> Option<()> {
    if fields.hour.is_some() {
        return None;
    }
    fields.hour = Some(within(reader.number(1, 2)?, 0, 24)?);
    reader.eat(":");
    fields.minute = Some(within(reader.number(2, 2)?, 0, 59)?);
    if reader.eat(":") {
        fields.second = Some(within(reader.number(2, 2)?, 0, 60)?);
        read_fraction(reader, fields)?;
    }
    if fields.hour == Some(24) && (fields.minute != Some(0) || fields.second.is_some_and(|s| s != 0)) {
        return None;
    }
    match reader.peek() {
        Some('Z' | 'z' | '+' | '-') => fields.zone = Some(read_zone(reader)?),
        _ => {}
    }
    Some(())
}

fn read_fraction(reader: &mut Reader<'_>, fields: &mut Fields) -> Option<()> {
    if !(reader.eat(".") || reader.eat(",")) {
        return Some(());
    }
    let count = reader.digits();
    if count == 0 {
        return None;
    }
    // Digits beyond milliseconds are cut off.
    let mut ms = 0;
    for i in 0..3 {
        let digit = reader
            .rest
            .as_bytes()
            .get(i)
            .filter(|_| i < count)
            .map_or(0, |b| i64::from(b - b'0'));
        ms = ms * 10 + digit;
    }
    reader.rest = &reader.rest[count..];
    fields.millisecond = Some(ms);
    Some(())
}

/// `T1210`, `T121040.787`, or an hour alone before am or pm.
fn read_compact_clock(reader: &mut Reader<'_>, fields: &mut Fields, count: usize, after: Option<char>) -> Option<()> {
    match count {
        4 => {
            fields.hour = Some(within(reader.number(2, 2)?, 0, 24)?);
            fields.minute = Some(within(reader.number(2, 2)?, 0, 59)?);
        }
        6 => {
            fields.hour = Some(within(reader.number(2, 2)?, 0, 24)?);
            fields.minute = Some(within(reader.number(2, 2)?, 0, 59)?);
            fields.second = Some(within(reader.number(2, 2)?, 0, 60)?);
            read_fraction(reader, fields)?;
        }
        1 | 2 if matches!(after, Some(' ' | 'a' | 'A' | 'p' | 'P')) => {
            fields.hour = Some(within(reader.number(1, 2)?, 0, 24)?);
        }
        _ => return None,
    }
    match reader.peek() {
        Some('Z' | 'z' | '+' | '-') => fields.zone = Some(read_zone(reader)?),
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::date::format_iso;

    fn shown(result: Result<i64>) -> String {
        result.map_or_else(|e| format!("error {}", e.code().number()), format_iso)
    }

    #[test]
    fn free_forms() {
        for (text, expected) in [
            ("2017-02-08T12:10:40.787Z", "2017-02-08T12:10:40.787Z"),
            ("2017-02-08T12:10:40.787", "2017-02-08T12:10:40.787Z"),
            ("2017-02-08 12:10", "2017-02-08T12:10:00.000Z"),
            ("2017-02-08T12:10:40+0200", "2017-02-08T10:10:40.000Z"),
            ("2017-02-08T12:10:40 -05:00", "2017-02-08T17:10:40.000Z"),
            ("2017-02-08", "2017-02-08T00:00:00.000Z"),
            ("20170208T121040", "2017-02-08T12:10:40.000Z"),
            ("2017-W06-3", "2017-02-08T00:00:00.000Z"),
            ("2017-039", "2017-02-08T00:00:00.000Z"),
            ("oct 20 2020", "2020-10-20T00:00:00.000Z"),
            ("20 October 2020 5:04 pm", "2020-10-20T17:04:00.000Z"),
            ("Fri, 20 Oct 2020 17:04:00 GMT", "2020-10-20T17:04:00.000Z"),
            ("WED jan 31 12:05:28 +03:30 1996", "1996-01-31T08:35:28.000Z"),
            ("10/20/2020", "2020-10-20T00:00:00.000Z"),
            ("20.10.2020", "2020-10-20T00:00:00.000Z"),
            ("2020-10-20T10:00:00 Europe/Berlin", "2020-10-20T08:00:00.000Z"),
        ] {
            assert_eq!(shown(parse(text, None)), expected, "{text}");
        }
        for bad in [
            "",
            "x",
            "2017",
            "2017-02",
            "2017-13-01",
            "2017-02-30",
            "12:10",
            "2017-02-08T25:00",
            "2017-02-08X",
        ] {
            assert_eq!(shown(parse(bad, None)), "error 241", "{bad}");
        }
        let zone = || Some(Zone::Fixed(3_600_000));
        assert_eq!(shown(parse("2017-02-08T01:00", zone())), "2017-02-08T00:00:00.000Z");
        assert_eq!(shown(parse("2017-02-08T01:00Z", zone())), "error 241");
    }

    #[test]
    fn formats() {
        for (text, format, expected) in [
            ("06-15-2018", "%m-%d-%Y", "2018-06-15T00:00:00.000Z"),
            ("2024-W24-6", "%G-W%V-%u", "2024-06-15T00:00:00.000Z"),
            ("2024 167", "%Y %j", "2024-06-16T00:00:00.000Z"),
            ("2024-06-15 +0530", "%Y-%m-%d %z", "2024-06-14T18:30:00.000Z"),
            ("2024-06-15 -90", "%Y-%m-%d %Z", "2024-06-15T01:30:00.000Z"),
            ("jan 15 2020", "%b %d %Y", "2020-01-15T00:00:00.000Z"),
            ("2017-02-08", "%m-%d-%Y", "error 241"),
            ("2017", "%q", "error 18536"),
        ] {
            assert_eq!(shown(parse_with(text, format, None)), expected, "{text} {format}");
        }
    }
}
