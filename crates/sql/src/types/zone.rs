//! Time zones: those of the IANA database, offsets, and the one that the session is in.
//!
//! The session's zone belongs to the thread while a message is taken ([`Zone::enter`]): it decides how every `timestamptz` is read and
//! shown, which happens where values are cast and printed, and those are told of a value and its type alone.

use super::abbreviations::{Meaning, meaning};
use crate::error::error;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use nestor_model::Result;
use std::cell::RefCell;

/// A time zone.
#[derive(Clone, Debug, Default)]
pub enum Zone {
    /// UTC.
    #[default]
    Utc,
    /// Seconds east of Greenwich.
    Fixed(i64),
    /// A zone with rules.
    Named(TimeZone),
    /// What an abbreviation has meant in a zone, which differs from time to time.
    Called(TimeZone, String),
}

thread_local! {
    static CURRENT: RefCell<Zone> = const { RefCell::new(Zone::Utc) };
}

/// The zone of this thread's session.
pub fn current() -> Zone {
    CURRENT.with_borrow(Clone::clone)
}

/// Puts back the zone that the thread had before.
pub struct Within(Option<Zone>);

impl Drop for Within {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            CURRENT.set(before);
        }
    }
}

/// Seconds from 1970, within what the calendar of the rules knows.
fn seconds(us: i64) -> i64 {
    // The calendar repeats after 400 years.
    const ERA: i64 = 146_097 * 86_400;
    const FROM: i64 = -62_135_596_800;
    const TO: i64 = 253_370_764_800;
    let seconds = us.div_euclid(1_000_000);
    match seconds {
        FROM..TO => seconds,
        early if early < FROM => FROM + (early - FROM).rem_euclid(ERA),
        late => TO - ERA + (late - TO).rem_euclid(ERA),
    }
}

impl Zone {
    /// The zone with this name, abbreviation or offset, as SET and AT TIME ZONE take them: offsets are POSIX's, which count to the west,
    /// with letters before them or none.
    ///
    /// Errors: 22023.
    pub fn named(text: &str) -> Result<Self> {
        let name = text.trim();
        let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
        match offset(&name[letters..]).or_else(|| unsigned_offset(&name[letters..])) {
            Some(west) if letters == 0 || letters >= 3 => Ok(Self::east(-west)),
            _ => Self::parse(text).or_else(|error| posix(name).ok_or(error)),
        }
    }

    fn east(offset: i64) -> Self {
        match offset {
            0 => Self::Utc,
            offset => Self::Fixed(offset),
        }
    }

    /// The zone with this name, abbreviation or, as ISO 8601 writes them, offset.
    ///
    /// Errors: 22023.
    pub fn parse(text: &str) -> Result<Self> {
        let unknown = || error("22023", format!("time zone \"{text}\" not recognized"));
        let name = text.trim();
        let lower = name.to_ascii_lowercase();
        if let Some(zone) = abbreviated(&lower) {
            return Ok(zone);
        }
        if let Some(offset) = offset(name) {
            return Ok(Self::east(offset));
        }
        if name.is_empty() || name.len() > 64 {
            return Err(unknown());
        }
        let zone = TimeZone::get(name).map_err(|_| unknown())?;
        match zone.iana_name() {
            Some("UTC" | "Etc/UTC") => Ok(Self::Utc),
            Some(_) => Ok(Self::Named(zone)),
            None => Err(unknown()),
        }
    }

    /// Makes it the thread's, until what this returns is dropped.
    #[must_use]
    pub fn enter(&self) -> Within {
        match self {
            Self::Utc => Within(None),
            zone => Within(Some(CURRENT.replace(zone.clone()))),
        }
    }

    /// Seconds east of Greenwich at an instant, in microseconds from 1970.
    pub fn offset(&self, us: i64) -> i64 {
        match self {
            Self::Utc => 0,
            Self::Fixed(offset) => *offset,
            Self::Called(zone, name) => meant(zone, name, us),
            Self::Named(zone) => match jiff::Timestamp::from_second(seconds(us)) {
                Ok(at) => i64::from(zone.to_offset(at).seconds()),
                Err(_) => 0,
            },
        }
    }

    /// What clocks show there at an instant. Infinite timestamps stay as they are.
    pub fn to_local(&self, us: i64) -> i64 {
        match us {
            i64::MIN | i64::MAX => us,
            us => us.saturating_add(self.offset(us) * 1_000_000),
        }
    }

    /// The instant at which clocks show this there: of an hour that is left out with the offset before it, of one that comes twice the
    /// second time, as PostgreSQL has it.
    pub fn to_utc(&self, local: i64) -> i64 {
        if let (Self::Called(zone, name), false) = (self, matches!(local, i64::MIN | i64::MAX)) {
            let probably = Self::Named(zone.clone()).to_utc(local);
            return local.saturating_sub(meant(zone, name, probably) * 1_000_000);
        }
        let offset = match (self, local) {
            (_, i64::MIN | i64::MAX) | (Self::Utc, _) => 0,
            (Self::Fixed(offset), _) => *offset,
            (Self::Called(..), _) => 0,
            (Self::Named(zone), local) => {
                let shown = jiff::Timestamp::from_second(seconds(local));
                let shown: Option<DateTime> = shown.ok().map(|at| TimeZone::UTC.to_datetime(at));
                let offset = shown.map(|shown| zone.to_ambiguous_timestamp(shown).offset());
                match offset {
                    Some(AmbiguousOffset::Unambiguous { offset }) => i64::from(offset.seconds()),
                    Some(AmbiguousOffset::Gap { before, .. }) => i64::from(before.seconds()),
                    Some(AmbiguousOffset::Fold { after, .. }) => i64::from(after.seconds()),
                    None => 0,
                }
            }
        };
        match local {
            i64::MIN | i64::MAX => local,
            local => local.saturating_sub(offset * 1_000_000),
        }
    }

    /// The letters that the zone is called by at an instant.
    pub fn abbreviation(&self, us: i64) -> String {
        match self {
            Self::Utc => "UTC".to_owned(),
            Self::Fixed(offset) => format_offset(*offset),
            Self::Called(_, name) => name.clone(),
            Self::Named(zone) => match jiff::Timestamp::from_second(seconds(us)) {
                Ok(at) => zone.to_offset_info(at).abbreviation().to_owned(),
                Err(_) => String::new(),
            },
        }
    }
}

/// The zone that an abbreviation, in small letters, stands for.
pub(super) fn abbreviated(name: &str) -> Option<Zone> {
    match meaning(name)? {
        Meaning::East(seconds) => Some(Zone::east(seconds)),
        Meaning::Zone(zone) => TimeZone::get(zone)
            .ok()
            .map(|zone| Zone::Called(zone, name.to_ascii_uppercase())),
    }
}

/// Changes of a zone's clocks that are looked at for an abbreviation, in each direction.
const CHANGES_MAX: usize = 200;

/// Seconds east of Greenwich that an abbreviation meant in a zone when it was last used there before an instant, or else next behind it; what
/// clocks showed then if it never was.
fn meant(zone: &TimeZone, name: &str, us: i64) -> i64 {
    let Ok(at) = jiff::Timestamp::from_second(seconds(us)) else {
        return 0;
    };
    let info = zone.to_offset_info(at);
    if info.abbreviation() == name {
        return i64::from(info.offset().seconds());
    }
    let before = zone.preceding(at).take(CHANGES_MAX);
    let after = zone.following(at).take(CHANGES_MAX);
    let found = before.chain(after).find(|change| change.abbreviation() == name);
    let offset = found.map_or(info.offset(), |change| change.offset());
    i64::from(offset.seconds())
}

/// The zone of a rule as POSIX writes it: `CST6CDT,M3.2.0,M11.1.0`.
fn posix(rule: &str) -> Option<Zone> {
    let is_rule = rule.contains(',') && rule.is_ascii() && rule.len() <= 64;
    is_rule.then(|| TimeZone::posix(rule).ok().map(Zone::Named)).flatten()
}

/// Seconds of `hh:mm`, which counts as one with a plus.
fn unsigned_offset(text: &str) -> Option<i64> {
    let is_clock = text.starts_with(|c: char| c.is_ascii_digit());
    is_clock.then(|| offset(&format!("+{text}"))).flatten()
}

/// Seconds that the session's clocks are ahead of Greenwich now.
pub fn now_offset() -> i64 {
    current_offset(nestor_database::clock::now_ms().saturating_mul(1000))
}

/// `+hh`, with minutes and seconds where they are not zero.
pub fn format_offset(offset: i64) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, rest) = (offset.abs() / 3600, offset.abs() % 3600);
    match (rest / 60, rest % 60) {
        (0, 0) => format!("{sign}{hours:02}"),
        (minutes, 0) => format!("{sign}{hours:02}:{minutes:02}"),
        (minutes, seconds) => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// Seconds of `[+-]hh[[:]mm[:ss]]`.
pub fn offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let mut parts = digits.split(':');
    let number = |part: &str| match part.bytes().all(|b| b.is_ascii_digit()) {
        true => part.parse::<i64>().ok(),
        false => None,
    };
    let first = parts.next().filter(|first| first.is_ascii())?;
    let (hours, minutes, seconds) = match first.len() {
        3 | 4 => {
            let (hours, minutes) = first.split_at(first.len() - 2);
            (number(hours)?, number(minutes)?, 0)
        }
        1 | 2 => (
            number(first)?,
            parts
                .next()
                .map_or(Some(0), |part| if part.is_empty() { Some(0) } else { number(part) })?,
            parts.next().map_or(Some(0), number)?,
        ),
        _ => return None,
    };
    let valid = hours <= 15 && minutes < 60 && seconds < 60 && parts.next().is_none();
    valid.then_some(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// What clocks show at an instant where the session is.
pub fn local(us: i64) -> i64 {
    CURRENT.with_borrow(|zone| zone.to_local(us))
}

/// The instant at which clocks show this where the session is.
pub fn instant(local: i64) -> i64 {
    CURRENT.with_borrow(|zone| zone.to_utc(local))
}

/// Seconds east of Greenwich where the session is.
pub fn current_offset(us: i64) -> i64 {
    CURRENT.with_borrow(|zone| zone.offset(us))
}

/// Whether the session's clocks are Greenwich's.
pub fn is_utc() -> bool {
    CURRENT.with_borrow(|zone| matches!(zone, Zone::Utc))
}

/// The letters of the session's zone.
pub fn current_abbreviation(us: i64) -> String {
    CURRENT.with_borrow(|zone| zone.abbreviation(us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_that_are_left_out_and_that_come_twice() {
        let Ok(berlin) = Zone::parse("Europe/Berlin") else {
            panic!("a zone")
        };
        let hour = 3_600_000_000;
        // 2021-03-28 02:30 is no time there, 2021-10-31 02:30 is two.
        let left_out = 1_616_898_600_000_000;
        assert_eq!(berlin.to_utc(left_out), left_out - hour);
        let twice = 1_635_647_400_000_000;
        assert_eq!(berlin.to_utc(twice), twice - hour);
        assert_eq!(berlin.to_local(twice - hour), twice);
        assert_eq!(berlin.to_local(twice - 2 * hour), twice);
    }

    #[test]
    fn names_and_offsets() {
        assert_eq!(offset("+05:30"), Some(19_800));
        assert_eq!(offset("-0330"), Some(-12_600));
        assert_eq!(offset("+5x"), None);
        assert_eq!(offset("+3éT"), None);
        assert_eq!(format_offset(-12_600), "-03:30");
        assert!(Zone::parse("Nowhere/Else").is_err());
        assert!(matches!(Zone::parse("est"), Ok(Zone::Fixed(-18_000))));
        assert!(matches!(Zone::parse("+03"), Ok(Zone::Fixed(10_800))));
        assert!(matches!(Zone::named("+03"), Ok(Zone::Fixed(-10_800))));
        assert!(matches!(Zone::named("UTC+3"), Ok(Zone::Fixed(-10_800))));
    }
}
