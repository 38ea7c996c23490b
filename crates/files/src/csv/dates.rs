//! Layouts of dates in the three notations of `--columnsHaveTypes`.
//!
//! | notation | source | `31 Jan 2024, 17:05:09` |
//! |---|---|---|
//! | `date_go` | Go's package time, "Layout" | `02 Jan 2006, 15:04:05` |
//! | `date_ms` | .NET, "Custom date and time format strings" | `dd MMM yyyy, HH:mm:ss` |
//! | `date_oracle` | Oracle's SQL reference, "Datetime Format Models" | `DD MON YYYY, HH24:MI:SS` |
//!
//! All become the same list of parts. A number may have fewer digits than its notation says; what has no zone is UTC.

use nestor_model::date::{Civil, MONTHS, WEEKDAYS, days_in_month};

/// One thing after the other.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// This very text.
    Text(String),
    /// Four digits.
    Year,
    /// Two digits: 1969 to 2068.
    ShortYear,
    Month,
    /// A name, or three letters of it.
    MonthName,
    Day,
    /// A name, or three letters of it, which says nothing new.
    Weekday,
    Hour,
    /// 1 to 12.
    HalfDayHour,
    /// AM or PM.
    HalfDay,
    Minute,
    /// With an optional fraction behind it, as in Go, unless the layout goes on with one.
    Second,
    /// Digits of a fraction of a second.
    Fraction,
    /// `Z`, `UTC`, `GMT`, `+05:30`, `+0530`, `+05`.
    Zone,
}

/// How dates of a column are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout(Vec<Part>);

use Part::{
    Day, Fraction, HalfDay, HalfDayHour, Hour, Minute, Month, MonthName, Second, ShortYear, Weekday, Year, Zone,
};

/// What Go's reference time, Monday the second of January 2006, has for each part; longer ones first.
const GO: [(&str, Part); 31] = [
    ("January", MonthName),
    ("Monday", Weekday),
    ("-07:00", Zone),
    ("Z07:00", Zone),
    ("-0700", Zone),
    ("Z0700", Zone),
    ("2006", Year),
    ("Jan", MonthName),
    ("Mon", Weekday),
    ("MST", Zone),
    ("-07", Zone),
    ("Z07", Zone),
    ("01", Month),
    ("02", Day),
    ("03", HalfDayHour),
    ("04", Minute),
    ("05", Second),
    ("06", ShortYear),
    ("15", Hour),
    ("PM", HalfDay),
    ("pm", HalfDay),
    ("_2", Day),
    (".0", Fraction),
    (",0", Fraction),
    (".9", Fraction),
    (",9", Fraction),
    ("1", Month),
    ("2", Day),
    ("3", HalfDayHour),
    ("4", Minute),
    ("5", Second),
];

/// Oracle's elements; longer ones first, case does not matter.
const ORACLE: [(&str, Part); 22] = [
    ("TZH:TZM", Zone),
    ("MONTH", MonthName),
    ("YYYY", Year),
    ("RRRR", Year),
    ("HH24", Hour),
    ("HH12", HalfDayHour),
    ("A.M.", HalfDay),
    ("P.M.", HalfDay),
    ("MON", MonthName),
    ("DAY", Weekday),
    ("TZH", Zone),
    ("YY", ShortYear),
    ("RR", ShortYear),
    ("MM", Month),
    ("MI", Minute),
    ("DD", Day),
    ("DY", Weekday),
    ("HH", HalfDayHour),
    ("SS", Second),
    ("FF", Fraction),
    ("AM", HalfDay),
    ("PM", HalfDay),
];

impl Layout {
    /// Reads Go's notation: how the reference time would be written.
    pub fn go(layout: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = layout;
        while let Some(next) = rest.chars().next() {
            match GO.iter().find(|(text, _)| rest.starts_with(text)) {
                Some((text, Fraction)) => {
                    let digits = rest[1..].trim_start_matches(&text[1..]);
                    // Nines are digits that may be missing, which seconds allow anyway.
                    if text.ends_with('0') {
                        push(&mut parts, next);
                        parts.push(Fraction);
                    }
                    rest = digits;
                }
                Some((text, part)) => {
                    parts.push(part.clone());
                    rest = &rest[text.len()..];
                }
                None => {
                    push(&mut parts, next);
                    rest = &rest[next.len_utf8()..];
                }
            }
        }
        Self::of(parts, layout)
    }

    /// Reads .NET's notation, where the number of equal letters counts.
    pub fn ms(layout: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = layout;
        while let Some(next) = rest.chars().next() {
            let after = rest.trim_start_matches(next);
            let count = (rest.len() - after.len()) / next.len_utf8();
            let part = match (next, count) {
                ('y', 1 | 2) => ShortYear,
                ('y', _) => Year,
                ('M', 1 | 2) => Month,
                ('M', _) => MonthName,
                ('d', 1 | 2) => Day,
                ('d', _) => Weekday,
                ('H', _) => Hour,
                ('h', _) => HalfDayHour,
                ('m', _) => Minute,
                ('s', _) => Second,
                ('f' | 'F', _) => Fraction,
                ('t', _) => HalfDay,
                ('z' | 'K', _) => Zone,
                ('\'', _) => {
                    rest = quoted(&mut parts, rest, '\'')?;
                    continue;
                }
                ('T', 1) => Part::Text("T".into()),
                _ if next.is_alphabetic() => {
                    return Err(format!("{next} in the date layout {layout:?} stands for nothing"));
                }
                _ => Part::Text(rest[..rest.len() - after.len()].to_owned()),
            };
            parts.push(part);
            rest = after;
        }
        Self::of(parts, layout)
    }

    /// Reads Oracle's notation.
    pub fn oracle(layout: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = layout;
        while let Some(next) = rest.chars().next() {
            let known = ORACLE.iter().find(|(text, _)| {
                let begin = rest.get(..text.len());
                begin.is_some_and(|begin| begin.eq_ignore_ascii_case(text))
            });
            match (known, next) {
                (Some((text, part)), _) => {
                    parts.push(part.clone());
                    rest = &rest[text.len()..];
                    if *part == Fraction {
                        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                    }
                }
                (None, '"') => rest = quoted(&mut parts, rest, '"')?,
                (None, c) if c.is_alphanumeric() => {
                    return Err(format!("{c} in the date layout {layout:?} stands for nothing"));
                }
                (None, c) => {
                    push(&mut parts, c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        Self::of(parts, layout)
    }

    fn of(parts: Vec<Part>, layout: &str) -> Result<Self, String> {
        if parts.iter().any(|part| matches!(part, Year | ShortYear)) {
            Ok(Self(parts))
        } else {
            Err(format!("the date layout {layout:?} has no year"))
        }
    }

    /// The instant in milliseconds since the epoch; `None` when `text` is no date of this layout.
    pub fn read(&self, text: &str) -> Option<i64> {
        let mut found = Found::default();
        let mut rest = text;
        for (i, part) in self.0.iter().enumerate() {
            rest = found.take(part, rest)?;
            let next = self.0.get(i + 1..).unwrap_or_default();
            let goes_on = matches!(next, [Fraction, ..] | [Part::Text(_), Fraction, ..]);
            if *part == Second && !goes_on && rest.starts_with(['.', ',']) {
                rest = found.take(&Fraction, &rest[1..])?;
            }
        }
        if rest.is_empty() { found.instant() } else { None }
    }
}

/// Appends a character of plain text.
fn push(parts: &mut Vec<Part>, c: char) {
    match parts.last_mut() {
        Some(Part::Text(text)) => text.push(c),
        _ => parts.push(Part::Text(c.into())),
    }
}

/// Takes the text between two quotes that `layout` begins with; returns what follows it.
fn quoted<'t>(parts: &mut Vec<Part>, layout: &'t str, quote: char) -> Result<&'t str, String> {
    let end = layout[1..]
        .find(quote)
        .ok_or("a quote in the date layout is not closed")?;
    parts.push(Part::Text(layout[1..=end].to_owned()));
    Ok(&layout[end + 2..])
}

/// What was read so far.
#[derive(Default)]
struct Found {
    year: i64,
    month: Option<u32>,
    day: Option<u32>,
    hour: u32,
    /// True for PM.
    half: Option<bool>,
    minute: u32,
    second: u32,
    millisecond: u32,
    offset_minutes: i64,
}

impl Found {
    /// Takes a part off the beginning of `text`.
    fn take<'t>(&mut self, part: &Part, text: &'t str) -> Option<&'t str> {
        let (value, rest) = match part {
            Part::Text(expected) => return text.strip_prefix(expected.as_str()),
            MonthName => {
                let (month, rest) = name(text, &MONTHS)?;
                self.month = Some(month);
                return Some(rest);
            }
            Weekday => return name(text, &WEEKDAYS).map(|(_, rest)| rest),
            HalfDay => {
                let (word, rest) = text.split_at_checked(2)?;
                self.half = Some(word.eq_ignore_ascii_case("pm"));
                return (self.half == Some(true) || word.eq_ignore_ascii_case("am")).then_some(rest);
            }
            Zone => {
                let (minutes, rest) = zone(text)?;
                self.offset_minutes = minutes;
                return Some(rest);
            }
            Fraction => {
                let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
                let digits = &text[..text.len() - rest.len()];
                if digits.is_empty() {
                    return None;
                }
                let thousandths = format!("{digits:0<3}");
                self.millisecond = thousandths.get(..3)?.parse().ok()?;
                return Some(rest);
            }
            Year => number(text, 4, 4)?,
            ShortYear => number(text, 2, 2)?,
            _ => number(text, 1, 2)?,
        };
        match part {
            Year => self.year = value.into(),
            ShortYear => self.year = i64::from(value) + if value < 69 { 2000 } else { 1900 },
            Month => self.month = Some(value),
            Day => self.day = Some(value),
            Hour | HalfDayHour => self.hour = value,
            Minute => self.minute = value,
            _ => self.second = value,
        }
        Some(rest)
    }

    fn instant(self) -> Option<i64> {
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        let hour = match self.half {
            None => self.hour,
            Some(_) if !(1..=12).contains(&self.hour) => return None,
            Some(is_afternoon) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
        };
        let is_possible =
            (1..=days_in_month(self.year, month)?).contains(&day) && hour < 24 && self.minute < 60 && self.second < 60;
        let civil = Civil {
            year: self.year,
            month,
            day,
            hour,
            minute: self.minute,
            second: self.second,
            millisecond: self.millisecond,
        };
        civil
            .to_ms()
            .filter(|_| is_possible)?
            .checked_sub(self.offset_minutes * 60_000)
    }
}

/// A number of `min` to `max` digits.
fn number(text: &str, min: usize, max: usize) -> Option<(u32, &str)> {
    let count = text.bytes().take(max).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(count);
    (count >= min).then_some((digits.parse().ok()?, rest))
}

/// The place, from 1, of a name that stands in full or with its first three letters.
fn name<'t>(text: &'t str, names: &[&str]) -> Option<(u32, &'t str)> {
    let count = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (word, rest) = text.split_at(count);
    let is = |name: &str| word.eq_ignore_ascii_case(name);
    let place = names.iter().position(|name| is(name) || is(&name[..3]))?;
    Some((u32::try_from(place + 1).ok()?, rest))
}

/// An offset in minutes.
fn zone(text: &str) -> Option<(i64, &str)> {
    for utc in ["Z", "UTC", "GMT"] {
        if let Some(rest) = text.strip_prefix(utc) {
            return Some((0, rest));
        }
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], 2, 2)?;
    let after = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = number(after, 2, 2).unwrap_or((0, rest));
    (hours < 24 && minutes < 60).then_some((sign * i64::from(hours * 60 + minutes), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::date::format_iso;

    fn read(layout: Result<Layout, String>, text: &str) -> String {
        let layout = match layout {
            Ok(layout) => layout,
            Err(reason) => return reason,
        };
        layout.read(text).map_or_else(|| "none".to_owned(), format_iso)
    }

    #[test]
    fn all_notations_read_the_same() {
        let text = "31 Jan 2024, 17:05:09";
        let expected = "2024-01-31T17:05:09.000Z";
        assert_eq!(read(Layout::go("02 Jan 2006, 15:04:05"), text), expected);
        assert_eq!(read(Layout::ms("dd MMM yyyy, HH:mm:ss"), text), expected);
        assert_eq!(read(Layout::oracle("DD MON YYYY, HH24:MI:SS"), text), expected);
    }

    #[test]
    fn layouts_of_go() {
        for (layout, text, expected) in [
            (
                "2006-01-02T15:04:05Z07:00",
                "2024-02-29T23:00:00+02:00",
                "2024-02-29T21:00:00.000Z",
            ),
            (
                "2006-01-02T15:04:05Z07:00",
                "2024-02-29T23:00:00Z",
                "2024-02-29T23:00:00.000Z",
            ),
            (
                "2006-01-02T15:04:05.000Z",
                "2024-02-29T23:00:00.125Z",
                "2024-02-29T23:00:00.125Z",
            ),
            (
                "2006-01-02 15:04:05.00000",
                "2022-06-19 09:06:30.49657",
                "2022-06-19T09:06:30.496Z",
            ),
            (
                "2006-01-02 15:04:05",
                "2022-06-19 09:06:30.5",
                "2022-06-19T09:06:30.500Z",
            ),
            (
                "2006-01-02 15:04:05.999",
                "2022-06-19 09:06:30",
                "2022-06-19T09:06:30.000Z",
            ),
            ("1/2/06 3:04 PM", "3/4/69 12:30 am", "1969-03-04T00:30:00.000Z"),
            ("1/2/06 3:04 PM", "12/31/68 12:30 PM", "2068-12-31T12:30:00.000Z"),
            (
                "Monday, January 2 2006",
                "Friday, March 1 2024",
                "2024-03-01T00:00:00.000Z",
            ),
            ("20060102", "20240301", "2024-03-01T00:00:00.000Z"),
            ("2006", "2024", "2024-01-01T00:00:00.000Z"),
            ("2006-01-02", "2024-02-30", "none"),
            ("2006-01-02", "2024-13-01", "none"),
            ("2006-01-02", "2024-01-01 ", "none"),
            ("2006-01-02", "", "none"),
            ("2006-01-02 15:04", "2024-01-01 24:00", "none"),
            ("Jan 2006", "Foo 2024", "none"),
        ] {
            assert_eq!(read(Layout::go(layout), text), expected, "{layout} {text}");
        }
    }

    #[test]
    fn layouts_of_others() {
        for (layout, text, expected) in [
            (
                Layout::ms("yyyy-MM-dd H:mm:ss"),
                "2024-05-06 7:08:09",
                "2024-05-06T07:08:09.000Z",
            ),
            (
                Layout::ms("M/d/yy h:mm tt"),
                "5/6/24 7:08 PM",
                "2024-05-06T19:08:00.000Z",
            ),
            (
                Layout::ms("yyyy'T'HH:mm:ss.fffzzz"),
                "2024T01:00:00.5+01:00",
                "2024-01-01T00:00:00.500Z",
            ),
            (
                Layout::ms("dddd d MMMM yyyy"),
                "Monday 6 May 2024",
                "2024-05-06T00:00:00.000Z",
            ),
            (
                Layout::oracle("yyyy-mm-dd hh24:mi:ss"),
                "2024-05-06 07:08:09",
                "2024-05-06T07:08:09.000Z",
            ),
            (
                Layout::oracle("MONTH DD, RR HH:MI AM"),
                "May 06, 24 07:08 pm",
                "2024-05-06T19:08:00.000Z",
            ),
            (
                Layout::oracle("YYYY\"y\"SS.FF3TZH:TZM"),
                "2024y07.25-02:00",
                "2024-01-01T02:00:07.250Z",
            ),
        ] {
            assert_eq!(read(layout.clone(), text), expected, "{layout:?} {text}");
        }
    }

    #[test]
    fn layouts_that_make_no_date_are_refused() {
        for (layout, word) in [
            (Layout::go(""), "no year"),
            (Layout::go("15:04"), "no year"),
            (Layout::go("yyyy-MM-dd"), "no year"),
            (Layout::ms("yyyy q"), "q"),
            (Layout::ms("yyyy'x"), "closed"),
            (Layout::oracle("YYYY Q"), "Q"),
        ] {
            let refused = layout.unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
    }
}
