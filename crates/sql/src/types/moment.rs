//! Dates and times as they are written: fields in any order, as far as one tells them apart. Of three plain numbers the
//! order is that of the session ([`order`]). The rules are those of the appendix "Date/Time Input Interpretation" of PostgreSQL's manual.

use super::interval::DAY_US;
use super::style::{Order, order};
use super::tokens::{self, Kind, Token, Unit, Word};
use super::zone::{self, Zone};
use crate::error::error;
use nestor_model::date::{civil_from_days, days_from_civil, days_in_month};
use nestor_model::{Error, Result};

/// What a text says.
#[derive(Debug, Default)]
pub(super) struct Moment {
    /// Days from 1970.
    pub days: Option<i64>,
    /// Microseconds of the day.
    pub us: Option<i64>,
    /// The zone, if one is named.
    pub zone: Option<Zone>,
    /// An infinity: whether it is the late one.
    pub infinite: Option<bool>,
    /// This very moment, in microseconds from 1970.
    pub now: Option<i64>,
}

/// Why a text is no moment.
enum Wrong {
    /// It is not of the form: 22007.
    Form,
    /// A field is out of range: 22008.
    Range,
    /// An offset is: 22009.
    Offset,
    /// Another reason.
    Other(Error),
}

type Read<T> = std::result::Result<T, Wrong>;

/// Which fields a word has given; none is given twice.
type Fields = u16;
const YEAR: Fields = 1;
const MONTH: Fields = 1 << 1;
const DAY: Fields = 1 << 2;
const DATE: Fields = YEAR | MONTH | DAY;
const DAY_OF_YEAR: Fields = 1 << 3;
const HOUR: Fields = 1 << 4;
const MINUTE: Fields = 1 << 5;
const SECOND: Fields = 1 << 6;
const TIME: Fields = HOUR | MINUTE | SECOND;
const ZONE: Fields = 1 << 7;
const ERA: Fields = 1 << 8;
const HALF: Fields = 1 << 9;
const WEEKDAY: Fields = 1 << 10;
const SUMMER: Fields = 1 << 11;

/// What was read so far.
#[derive(Default)]
struct Reading {
    has: Fields,
    year: i64,
    /// The year has two digits at most.
    is_short: bool,
    month: i64,
    /// The month was a name.
    is_named: bool,
    day: i64,
    day_of_year: i64,
    /// Days from 1970, of a day of Julius or one that has a name.
    days: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    /// Microseconds behind the second.
    fraction: i64,
    before_christ: bool,
    afternoon: Option<bool>,
    zone: Option<Zone>,
    infinite: Option<bool>,
    now: Option<i64>,
    /// The unit that stood before the next number.
    unit: Option<Unit>,
}

/// Reads a moment; `kind` is the type that errors name.
///
/// Errors: 22007, 22008, 22009 and 22023 for zones.
pub(super) fn read(text: &str, kind: &str) -> Result<Moment> {
    let is_time = kind.starts_with("time ") || kind == "time";
    let tokens = tokens::tokens(text).ok_or(Wrong::Form);
    let read = tokens.and_then(|tokens| Reading::default().all(&tokens, is_time));
    read.map_err(|wrong| match wrong {
        Wrong::Form => error("22007", format!("invalid input syntax for type {kind}: \"{text}\"")),
        Wrong::Range => error("22008", format!("date/time field value out of range: \"{text}\"")),
        Wrong::Offset => error("22009", format!("time zone displacement out of range: \"{text}\"")),
        Wrong::Other(error) => error,
    })
}

fn number(text: &str) -> Read<i64> {
    match text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        true => Err(Wrong::Form),
        false => text.parse::<i32>().map(i64::from).map_err(|_| Wrong::Range),
    }
}

/// Microseconds of the digits behind a point.
fn fraction(digits: &str) -> Read<i64> {
    match digits.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("0.{digits}0")
            .parse::<f64>()
            .map(|n| (n * 1e6).round_ties_even() as i64)
            .map_err(|_| Wrong::Form),
        false => Err(Wrong::Form),
    }
}

impl Reading {
    fn all(mut self, tokens: &[Token], is_time: bool) -> Read<Moment> {
        for at in 0..tokens.len() {
            let added = self.token(tokens, at, is_time)?;
            if added & self.has != 0 {
                return Err(Wrong::Form);
            }
            self.has |= added;
        }
        self.finish(is_time)
    }

    fn has_all(&self, fields: Fields) -> bool {
        self.has & fields == fields
    }

    /// Takes a word, and tells the fields that it has given.
    fn token(&mut self, tokens: &[Token], at: usize, is_time: bool) -> Read<Fields> {
        let Token { kind, text } = &tokens[at];
        // Of times alone a number is never a part of a date.
        let known = if is_time { self.has | DATE } else { self.has };
        // A date may stand before a time of day.
        let date_first = at == 0
            && tokens.len() > 1
            && (tokens[tokens.len() - 1].kind == Kind::Date || tokens[1].kind == Kind::Time);
        match kind {
            Kind::Date if self.unit == Some(Unit::Julian) => {
                self.unit = None;
                let sign = text.find('-').ok_or(Wrong::Form)?;
                self.days = Some(number(&text[..sign])? - 2_440_588);
                self.zone = Some(offset(&text[sign..])?);
                Ok(DATE | TIME | ZONE)
            }
            Kind::Date if is_time && date_first => self.date(text),
            Kind::Date if is_time || self.unit.is_some() || self.has_all(MONTH | DAY) => {
                let unit = self.unit.take();
                if !text.starts_with(|c: char| c.is_ascii_digit()) && unit.is_none() {
                    self.zone = Some(Zone::named(text).map_err(Wrong::Other)?);
                    return Ok(ZONE);
                }
                // A time without colons before its offset.
                let sign = text.find('-').filter(|_| !self.has_all(TIME));
                let sign = sign
                    .filter(|_| matches!(unit, None | Some(Unit::Time)))
                    .ok_or(Wrong::Form)?;
                self.zone = Some(offset(&text[sign..])?);
                Ok(self.run_together(&text[..sign], known)? | ZONE)
            }
            Kind::Date => self.date(text),
            Kind::Time => match self.unit.take() {
                None | Some(Unit::Time) => self.clock(text),
                Some(_) => Err(Wrong::Form),
            },
            Kind::Signed => {
                self.zone = Some(offset(text)?);
                Ok(ZONE)
            }
            Kind::Number => match self.unit.take() {
                Some(unit) => self.of_unit(unit, text, known),
                None => {
                    let point = text.find('.');
                    match point {
                        Some(_) if is_time && date_first => self.date(text),
                        Some(_) if !is_time && self.has & DATE == 0 => self.date(text),
                        Some(point) if point > 2 => self.run_together(text, known),
                        Some(_) if is_time => Err(Wrong::Form),
                        None if is_time && text.len() > 4 => self.run_together(text, known),
                        None if !is_time && text.len() >= 6 && (self.has & DATE == 0 || self.has & TIME == 0) => {
                            self.run_together(text, known)
                        }
                        _ => self.single(text, known),
                    }
                }
            },
            Kind::Text | Kind::SignedText => {
                if *kind == Kind::Text
                    && let Some(zone) = zone::abbreviated(text)
                {
                    self.zone = Some(zone);
                    return Ok(ZONE);
                }
                match tokens::word(text) {
                    Some(word) => self.word(word, tokens.get(at + 1), is_time),
                    None if *kind == Kind::Text => {
                        self.zone = Some(Zone::parse(text).map_err(|_| Wrong::Form)?);
                        Ok(ZONE)
                    }
                    None => Err(Wrong::Form),
                }
            }
        }
    }

    fn word(&mut self, word: Word, next: Option<&Token>, is_time: bool) -> Read<Fields> {
        let today = || zone::local(nestor_database::clock::now_ms().saturating_mul(1000)).div_euclid(DAY_US);
        Ok(match word {
            Word::Noise => 0,
            Word::Now => {
                self.now = Some(nestor_database::clock::now_ms().saturating_mul(1000));
                DATE | TIME | ZONE
            }
            Word::AllBalls => {
                self.zone = Some(Zone::Utc);
                TIME | ZONE
            }
            Word::Era(before_christ) => {
                self.before_christ = before_christ;
                ERA
            }
            Word::Half(afternoon) => {
                self.afternoon = Some(afternoon);
                HALF
            }
            Word::Unit(unit) => {
                self.unit = Some(unit);
                0
            }
            Word::IsoTime => {
                let follows = next.is_some_and(|next| matches!(next.kind, Kind::Number | Kind::Time | Kind::Date));
                if !follows || (!is_time && !self.has_all(DATE)) {
                    return Err(Wrong::Form);
                }
                self.unit = Some(Unit::Time);
                0
            }
            Word::Summer => {
                self.zone = match self.zone.take() {
                    Some(Zone::Utc) => Some(Zone::Fixed(3600)),
                    Some(Zone::Fixed(east)) => Some(Zone::Fixed(east + 3600)),
                    _ => return Err(Wrong::Form),
                };
                SUMMER
            }
            _ if is_time => return Err(Wrong::Form),
            Word::Month(month) => {
                let mut added = MONTH;
                // A number that was taken for the month is the day.
                if self.has & (MONTH | DAY) == MONTH && !self.is_named && (1..=31).contains(&self.month) {
                    self.day = self.month;
                    self.has &= !MONTH;
                    added |= DAY;
                }
                (self.month, self.is_named) = (month, true);
                added
            }
            Word::Weekday => WEEKDAY,
            Word::Day(days) => {
                self.days = Some(today() + days);
                DATE
            }
            Word::Epoch => {
                (self.days, self.zone) = (Some(0), Some(Zone::Utc));
                DATE | TIME | ZONE
            }
            Word::Infinity(late) => {
                self.infinite = Some(late);
                DATE | TIME | ZONE
            }
        })
    }

    /// A number behind its unit.
    fn of_unit(&mut self, unit: Unit, text: &str, known: Fields) -> Read<Fields> {
        if unit == Unit::Time {
            let added = self.run_together(text, known | DATE)?;
            return if added == TIME { Ok(added) } else { Err(Wrong::Form) };
        }
        let (whole, rest) = match text.split_once('.') {
            Some((whole, digits)) => (whole, Some(digits)),
            None => (text, None),
        };
        let n = number(whole)?;
        if rest.is_some() && !matches!(unit, Unit::Julian | Unit::Second) {
            return Err(Wrong::Form);
        }
        Ok(match unit {
            Unit::Year => {
                self.year = n;
                YEAR
            }
            // Behind a month and an hour it is minutes.
            Unit::Month if !self.has_all(MONTH | HOUR) => {
                self.month = n;
                MONTH
            }
            Unit::Month | Unit::Minute => {
                self.minute = n;
                MINUTE
            }
            Unit::Day => {
                self.day = n;
                DAY
            }
            Unit::Hour => {
                self.hour = n;
                HOUR
            }
            Unit::Second => {
                (self.second, self.fraction) = (n, rest.map_or(Ok(0), fraction)?);
                SECOND
            }
            Unit::Julian => {
                self.days = Some(n - 2_440_588);
                match rest {
                    None => DATE,
                    Some(digits) => {
                        let part: f64 = format!("0.{digits}0").parse().map_err(|_| Wrong::Form)?;
                        self.fraction = (part * DAY_US as f64) as i64;
                        DATE | TIME
                    }
                }
            }
            Unit::Time | Unit::Other => return Err(Wrong::Form),
        })
    }

    /// A date with signs between its parts, of which one may be the name of a month.
    fn date(&mut self, text: &str) -> Read<Fields> {
        let mut parts: Vec<&str> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
            let end = rest.find(|c: char| match is_number {
                true => !c.is_ascii_digit(),
                false => !c.is_ascii_alphabetic(),
            });
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            if part.is_empty() {
                return Err(Wrong::Form);
            }
            parts.push(part);
            // One sign belongs to the part before it.
            let mut after = after.chars();
            if !after.as_str().starts_with(|c: char| c.is_ascii_alphanumeric()) {
                after.next();
            }
            rest = after.as_str();
        }
        if parts.len() > 3 {
            return Err(Wrong::Form);
        }
        let before = self.has;
        let mut added = 0;
        for name in parts
            .iter()
            .filter(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            match tokens::word(name) {
                Some(Word::Month(month)) if (before | added) & MONTH == 0 => {
                    (self.month, self.is_named) = (month, true);
                    added |= MONTH;
                }
                Some(Word::Noise) => {}
                _ => return Err(Wrong::Form),
            }
        }
        for digits in parts
            .iter()
            .filter(|part| part.starts_with(|c: char| c.is_ascii_digit()))
        {
            let own = self.single(digits, before | added)?;
            if own & (before | added) != 0 {
                return Err(Wrong::Form);
            }
            added |= own;
        }
        match (before | added) & !(DAY_OF_YEAR | ZONE) == DATE {
            true => Ok(added),
            false => Err(Wrong::Form),
        }
    }

    /// A number that is one field.
    fn single(&mut self, text: &str, known: Fields) -> Read<Fields> {
        let (whole, rest) = match text.split_once('.') {
            Some((whole, digits)) => (whole, Some(digits)),
            None => (text, None),
        };
        let n = number(whole)?;
        if let Some(digits) = rest {
            if whole.len() > 2 {
                return self.run_together(text, known | DATE);
            }
            self.fraction = fraction(digits)?;
        }
        let is_long = text.len() >= 3;
        if text.len() == 3 && known & DATE == YEAR && (1..=366).contains(&n) {
            self.day_of_year = n;
            return Ok(DAY_OF_YEAR | MONTH | DAY);
        }
        let order = order();
        let field = match known & DATE {
            0 if is_long || order == Order::YearMonthDay => YEAR,
            0 if order == Order::DayMonthYear => DAY,
            0 | YEAR | DAY => MONTH,
            MONTH if self.is_named && (is_long || order == Order::YearMonthDay) => YEAR,
            fields if fields == YEAR | MONTH && self.is_named && is_long && self.is_short => {
                // `08-Jan-1999`, where the first number is the day whatever the order.
                self.day = self.year;
                (self.year, self.is_short) = (n, false);
                return Ok(DAY);
            }
            fields if fields == MONTH || fields == YEAR | MONTH => DAY,
            fields if fields == MONTH | DAY => YEAR,
            DATE => return self.run_together(text, known),
            _ => return Err(Wrong::Form),
        };
        match field {
            YEAR => (self.year, self.is_short) = (n, text.len() <= 2),
            MONTH => self.month = n,
            _ => self.day = n,
        }
        Ok(field)
    }

    /// `yyyymmdd`, `yymmdd`, `hhmmss` or `hhmm`.
    fn run_together(&mut self, text: &str, known: Fields) -> Read<Fields> {
        if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(Wrong::Form);
        }
        let (digits, rest) = match text.split_once('.') {
            Some((digits, rest)) => (digits, Some(rest)),
            None => (text, None),
        };
        let length = digits.len();
        if let Some(rest) = rest {
            self.fraction = fraction(rest)?;
        } else if known & DATE != DATE && length >= 6 {
            let (year, month) = digits[..length - 2].split_at(length - 4);
            (self.year, self.month, self.day) = (number(year)?, number(month)?, number(&digits[length - 2..])?);
            self.is_short = year.len() == 2;
            return Ok(DATE);
        }
        if known & TIME == TIME || !matches!(length, 4 | 6) {
            return Err(Wrong::Form);
        }
        (self.hour, self.minute) = (number(&digits[..2])?, number(&digits[2..4])?);
        self.second = if length == 6 { number(&digits[4..])? } else { 0 };
        Ok(TIME)
    }

    /// `hh:mm[:ss[.ffffff]]`.
    fn clock(&mut self, text: &str) -> Read<Fields> {
        let mut parts = text.split(':');
        let mut next = || parts.next();
        let (hour, minute, second) = (next().ok_or(Wrong::Form)?, next().ok_or(Wrong::Form)?, next());
        let ends = next().is_none();
        // Minutes with a fraction are minutes and seconds of an hour that is not there.
        let (hour, minute, second) = match (second, minute.contains('.')) {
            (None, true) => ("0", hour, minute),
            (second, _) => (hour, minute, second.unwrap_or("0")),
        };
        let (second, rest) = second.split_once('.').unwrap_or((second, ""));
        if !ends {
            return Err(Wrong::Form);
        }
        (self.hour, self.minute) = (number(hour)?, number(minute)?);
        (self.second, self.fraction) = (number(second)?, fraction(rest)?);
        match self.minute < 60 && self.second <= 60 {
            true => Ok(TIME),
            false => Err(Wrong::Range),
        }
    }

    fn finish(mut self, is_time: bool) -> Read<Moment> {
        let days = self.date_of()?;
        if let Some(afternoon) = self.afternoon {
            self.hour = match (self.hour, afternoon) {
                (13.., _) => return Err(Wrong::Range),
                (12, false) => 0,
                (12, true) => 12,
                (hour, true) => hour + 12,
                (hour, false) => hour,
            };
        }
        if self.hour > 24 || self.minute > 59 || self.second > 60 {
            return Err(Wrong::Range);
        }
        let us = ((self.hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.fraction;
        if us > DAY_US {
            return Err(Wrong::Range);
        }
        let has_date = self.has_all(DATE);
        let is_whole = if is_time { self.has_all(TIME) } else { has_date };
        // When a zone's clocks change depends on the day.
        let wants_day = is_time && !has_date && matches!(self.zone, Some(Zone::Named(_) | Zone::Called(..)));
        // A part of a date is none.
        let is_torn = is_time && !has_date && self.has & DATE != 0;
        if !is_whole || wants_day || is_torn {
            return Err(Wrong::Form);
        }
        Ok(Moment {
            days: days.filter(|_| has_date),
            us: (self.has & TIME != 0).then_some(us),
            zone: self.zone,
            infinite: self.infinite,
            now: self.now,
        })
    }

    /// The date in days from 1970, if there is one.
    fn date_of(&mut self) -> Read<Option<i64>> {
        if self.days.is_some() || self.infinite.is_some() || self.now.is_some() {
            return Ok(self.days);
        }
        if self.has & YEAR != 0 {
            self.year = match self.year {
                ..1 if self.before_christ || !self.is_short => return Err(Wrong::Range),
                year if self.before_christ => 1 - year,
                year @ ..70 if self.is_short => year + 2000,
                year @ ..100 if self.is_short => year + 1900,
                year => year,
            };
        }
        if self.has & DAY_OF_YEAR != 0 {
            let days = days_from_civil(self.year, 1, 1) + self.day_of_year - 1;
            let (year, month, day) = civil_from_days(days);
            (self.year, self.month, self.day) = (year, i64::from(month), i64::from(day));
        }
        let is_month = self.has & MONTH == 0 || (1..=12).contains(&self.month);
        let is_day = self.has & DAY == 0 || (1..=31).contains(&self.day);
        if !is_month || !is_day {
            return Err(Wrong::Range);
        }
        if !self.has_all(DATE) {
            return Ok(None);
        }
        let (month, day) = (self.month as u32, self.day as u32);
        let last = days_in_month(self.year, month).ok_or(Wrong::Range)?;
        match day <= last && self.year <= 5_874_898 {
            true => Ok(Some(days_from_civil(self.year, month, day))),
            false => Err(Wrong::Range),
        }
    }
}

/// `[+-]hh[[:]mm[:ss]]` east of Greenwich, at most 15:59:59.
fn offset(text: &str) -> Read<Zone> {
    let (sign, digits) = text.split_at(1);
    let mut parts = digits.split(':');
    let first = parts.next().unwrap_or_default();
    let (hours, minutes, seconds) = match parts.next() {
        Some("") => (number(first)?, 0, 0),
        Some(minutes) => (number(first)?, number(minutes)?, parts.next().map_or(Ok(0), number)?),
        None if first.len() > 2 => {
            let n = number(first)?;
            (n / 100, n % 100, 0)
        }
        None => (number(first)?, 0, 0),
    };
    if parts.next().is_some() {
        return Err(Wrong::Form);
    }
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Wrong::Offset);
    }
    let seconds = hours * 3600 + minutes * 60 + seconds;
    Ok(Zone::Fixed(if sign == "-" { -seconds } else { seconds }))
}
