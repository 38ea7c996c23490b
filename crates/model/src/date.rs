//! Dates without time zones: milliseconds since the Unix epoch to and from civil fields and ISO 8601.

use std::fmt::Write as _;

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// English names of the months.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// English names of the days of a week.
pub const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The number of a month, from 1, by its English name or the first three letters of it, or `sept`, in any case.
pub fn month_of(word: &str) -> Option<u32> {
    let is = |name: &str| word.eq_ignore_ascii_case(name);
    let place = MONTHS.iter().position(|month| is(month) || is(&month[..3]));
    match is("sept") {
        true => Some(9),
        false => Some(place? as u32 + 1),
    }
}

/// A date and time of day in UTC, proleptic Gregorian calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    /// Astronomical year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 to 999.
    pub millisecond: u32,
}

/// Days from the epoch to a civil date. Months run from March in years of 400-year eras, so that the leap
/// day comes last.
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Inverse of [`days_from_civil`]: year, month, day.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

impl Civil {
    /// The civil fields of an instant.
    pub fn from_ms(ms: i64) -> Self {
        let (year, month, day) = civil_from_days(ms.div_euclid(DAY_MS));
        let of_day = ms.rem_euclid(DAY_MS);
        Self {
            year,
            month,
            day,
            hour: (of_day / 3_600_000) as u32,
            minute: (of_day / 60_000 % 60) as u32,
            second: (of_day / 1000 % 60) as u32,
            millisecond: (of_day % 1000) as u32,
        }
    }

    /// The instant; `None` when it does not fit.
    pub fn to_ms(self) -> Option<i64> {
        let of_day = i64::from(self.hour) * 3_600_000
            + i64::from(self.minute) * 60_000
            + i64::from(self.second) * 1000
            + i64::from(self.millisecond);
        days_from_civil(self.year, self.month, self.day)
            .checked_mul(DAY_MS)?
            .checked_add(of_day)
    }
}

/// `2012-12-24T12:15:30.500Z`; milliseconds are always written.
pub fn format_iso(ms: i64) -> String {
    let c = Civil::from_ms(ms);
    let mut out = String::with_capacity(24);
    let _ = if (0..=9999).contains(&c.year) {
        write!(out, "{:04}", c.year)
    } else {
        write!(out, "{:+07}", c.year)
    };
    let _ = write!(
        out,
        "-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        c.month, c.day, c.hour, c.minute, c.second, c.millisecond
    );
    out
}

/// Reads `YYYY-MM-DD[Thh:mm[:ss[.fff]][Z|±hh[:]mm]]`; without a zone it is UTC.
pub fn parse_iso(text: &str) -> Option<i64> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2)?;
    let (day, mut rest) = number(rest.strip_prefix('-')?, 2)?;
    let mut civil = Civil {
        year: i64::from(year),
        month,
        day,
        hour: 0,
        minute: 0,
        second: 0,
        millisecond: 0,
    };
    let last_day = days_in_month(civil.year, month)?;
    if day == 0 || day > last_day {
        return None;
    }
    let mut offset_minutes = 0;
    if let Some(time) = rest.strip_prefix(['T', ' ']) {
        (civil.hour, rest) = number(time, 2)?;
        (civil.minute, rest) = number(rest.strip_prefix(':')?, 2)?;
        if let Some(seconds) = rest.strip_prefix(':') {
            (civil.second, rest) = number(seconds, 2)?;
        }
        if let Some(fraction) = rest.strip_prefix('.') {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            let mut ms = fraction[..digits.min(3)].parse::<u32>().ok()?;
            for _ in digits..3 {
                ms *= 10;
            }
            civil.millisecond = ms;
            rest = &fraction[digits..];
        }
        if civil.hour > 23 || civil.minute > 59 || civil.second > 59 {
            return None;
        }
        (offset_minutes, rest) = zone(rest)?;
    }
    if !rest.is_empty() {
        return None;
    }
    civil.to_ms()?.checked_sub(offset_minutes * 60_000)
}

/// Days of a month; `None` for a month that is none.
pub fn days_in_month(year: i64, month: u32) -> Option<u32> {
    let leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    Some(match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => return None,
    })
}

fn number(text: &str, digits: usize) -> Option<(u32, &str)> {
    let head = text.get(..digits)?;
    if !head.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((head.parse().ok()?, &text[digits..]))
}

fn zone(text: &str) -> Option<(i64, &str)> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some((0, rest));
    }
    let sign = match text.bytes().next() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Some((0, text)),
    };
    let (hours, rest) = number(&text[1..], 2)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { number(rest, 2)? };
    Some((sign * i64::from(hours * 60 + minutes), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates_round_trip() {
        for days in (-800_000..800_000).step_by(97) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(11_016), (2000, 2, 29));
    }

    #[test]
    fn iso_text() {
        for (text, ms) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2012-12-24T12:15:30.501Z", 1_356_351_330_501),
            ("1969-12-31T23:59:59.999Z", -1),
            ("0000-01-01T00:00:00.000Z", -62_167_219_200_000),
        ] {
            assert_eq!(parse_iso(text), Some(ms), "{text}");
            assert_eq!(format_iso(ms), text);
        }
        assert_eq!(parse_iso("2012-12-24"), Some(1_356_307_200_000));
        assert_eq!(parse_iso("2012-12-24T12:15:30+01:00"), Some(1_356_347_730_000));
        assert_eq!(parse_iso("2012-12-24T12:15Z"), Some(1_356_351_300_000));
        for bad in [
            "2012-13-01",
            "2012-02-30",
            "2012-1-1",
            "2012-12-24T25:00Z",
            "2012-12-24T12:15:30X",
            "é012-12-24",
        ] {
            assert_eq!(parse_iso(bad), None, "{bad}");
        }
    }
}
