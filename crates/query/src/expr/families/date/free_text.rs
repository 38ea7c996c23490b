//! Dates as people and programs write them: ISO 8601 with its short forms, month names, zones.

use super::reader::{Fields, Reader, abbreviation, failure, read_zone, within};
use super::zone::Zone;
use nestor_model::Result;
use nestor_model::date::{Civil, month_of};

/// Parses the common forms: ISO 8601 dates and times with optional zone, and dates with month names. Error 241.
pub(crate) fn parse(text: &str, zone: Option<Zone>) -> Result<i64> {
    let bad = || failure(format!("error parsing date string '{text}'"));
    let mut fields = Fields::default();
    read_free(text, &mut fields).ok_or_else(bad)?;
    fields.check_complete(text)?;
    fields.finish(zone).ok_or_else(bad)?
}

fn read_free(text: &str, fields: &mut Fields) -> Option<()> {
    // Not all that Unicode calls a space, but zero bytes.
    let is_space = |c: char| c.is_ascii_whitespace() || matches!(c, '\0' | '\u{b}' | '\u{a0}');
    let mut reader = Reader {
        rest: text.trim_matches(is_space),
    };
    if reader.rest.is_empty() {
        return None;
    }
    // A sign before all else is that of a year.
    let is_negative = reader.eat("-");
    if is_negative && !reader.peek().is_some_and(|c| c.is_ascii_digit()) {
        return None;
    }
    read_parts(&mut reader, fields)?;
    if is_negative {
        fields.year = Some(-fields.year?);
    }
    Some(())
}

fn read_parts(reader: &mut Reader<'_>, fields: &mut Fields) -> Option<()> {
    loop {
        while reader.eat(" ") || reader.eat(",") || reader.eat("\t") {}
        let Some(next) = reader.peek() else {
            return Some(());
        };
        if next.is_ascii_digit() {
            read_digits(reader, fields)?;
        } else if next == '@' {
            reader.rest = &reader.rest[1..];
            read_seconds(reader, fields)?;
        } else if (next == '+' || next == '-') && fields.hour.is_some() && fields.zone.is_none() {
            fields.zone = Some(read_zone(reader)?);
        } else if next.is_ascii_alphabetic() {
            read_word(reader, fields)?;
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
    if let Some('Z' | 'z' | '+' | '-') = reader.peek() {
        fields.zone = Some(read_zone(reader)?);
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
    if let Some('Z' | 'z' | '+' | '-') = reader.peek() {
        fields.zone = Some(read_zone(reader)?);
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
}
