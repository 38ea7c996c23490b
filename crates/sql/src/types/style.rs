//! How the session wants dates to be read, and intervals and bytes to be shown, and in which encoding.

use super::encoding::Encoding;
use super::regconfig::{Config, ENGLISH};
use crate::error::fail;
use nestor_model::Result;
use std::cell::Cell;

/// The order of three numbers that may each be a year, a month or a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The month first.
    #[default]
    MonthDayYear,
    /// The day first.
    DayMonthYear,
    /// The year first.
    YearMonthDay,
}

impl Order {
    /// The order that a word of `DateStyle` stands for.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "mdy" | "us" => Some(Self::MonthDayYear),
            "dmy" => Some(Self::DayMonthYear),
            "ymd" => Some(Self::YearMonthDay),
            word if word.starts_with("noneuro") => Some(Self::MonthDayYear),
            word if word.starts_with("euro") => Some(Self::DayMonthYear),
            _ => None,
        }
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::MonthDayYear => "MDY",
            Self::DayMonthYear => "DMY",
            Self::YearMonthDay => "YMD",
        }
    }
}

/// How dates and timestamps are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dates {
    /// `2001-02-16 10:11:12.5+00`
    #[default]
    Iso,
    /// `02/16/2001 10:11:12.5 UTC`
    Sql,
    /// `Fri Feb 16 10:11:12.5 2001 UTC`
    Postgres,
    /// `16.02.2001 10:11:12.5 UTC`
    German,
}

impl Dates {
    /// The style that a word of `DateStyle` stands for.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "iso" => Some(Self::Iso),
            "sql" => Some(Self::Sql),
            word if word.starts_with("postgres") => Some(Self::Postgres),
            word if word.starts_with("german") => Some(Self::German),
            _ => None,
        }
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iso => "ISO",
            Self::Sql => "SQL",
            Self::Postgres => "Postgres",
            Self::German => "German",
        }
    }
}

/// How intervals are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intervals {
    /// `1 year 2 mons 3 days 04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    Verbose,
    /// `+1-2 +3 +4:05:06`
    Standard,
    /// `P1Y2M3DT4H5M6S`
    Iso,
}

impl Intervals {
    /// The style that a value of `IntervalStyle` stands for.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "postgres" => Some(Self::Postgres),
            "postgres_verbose" => Some(Self::Verbose),
            "sql_standard" => Some(Self::Standard),
            "iso_8601" => Some(Self::Iso),
            _ => None,
        }
    }
}

/// What a session has chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The order that dates are read in.
    pub order: Order,
    /// How dates and timestamps are shown.
    pub dates: Dates,
    /// How intervals are shown.
    pub intervals: Intervals,
    /// Bytes are shown as characters, with escapes for those that are none.
    pub escapes: bool,
    /// What texts of the client are in.
    pub encoding: Encoding,
    /// By which configuration texts are searched.
    pub config: Config,
    /// How similar texts have to be.
    pub thresholds: Thresholds,
}

/// How similar texts have to be for the operators of `pg_trgm`: bits of numbers from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds([u64; 3]);

impl Default for Thresholds {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Thresholds {
    /// The settings, and the value that each begins with.
    pub const SETTINGS: [(&str, &str); 3] = [
        ("pg_trgm.similarity_threshold", "0.3"),
        ("pg_trgm.word_similarity_threshold", "0.6"),
        ("pg_trgm.strict_word_similarity_threshold", "0.5"),
    ];

    const USUAL: Self = Self([0.3f64.to_bits(), 0.6f64.to_bits(), 0.5f64.to_bits()]);

    /// Those that settings have, in the order of [`Thresholds::SETTINGS`].
    pub fn of(values: [&str; 3]) -> Self {
        let mut out = Self::USUAL;
        for (own, value) in out.0.iter_mut().zip(values) {
            if let Ok(value) = value.parse::<f64>() {
                *own = value.to_bits();
            }
        }
        out
    }

    /// A new value of a setting.
    ///
    /// Errors: 22023 for what is no number from 0 to 1.
    pub fn checked(name: &str, text: &str) -> Result<f64> {
        match text.trim().parse::<f64>() {
            Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
            Ok(value) if value.is_finite() => fail(
                "22023",
                format!("{value} is outside the valid range for parameter \"{name}\" (0 .. 1)"),
            ),
            _ => fail("22023", format!("invalid value for parameter \"{name}\": \"{text}\"")),
        }
    }

    /// That of `%`.
    pub fn similar(self) -> f64 {
        f64::from_bits(self.0[0])
    }

    /// That of `<%`.
    pub fn word(self) -> f64 {
        f64::from_bits(self.0[1])
    }

    /// That of `<<%`.
    pub fn strict(self) -> f64 {
        f64::from_bits(self.0[2])
    }
}

impl Style {
    /// That in which documents and JSON have their values, whatever the session has chosen.
    pub fn neutral() -> Within {
        Self::default().enter()
    }

    /// As this is, with dates and timestamps as ISO 8601 has them.
    pub fn with_iso_dates() -> Within {
        Self {
            dates: Dates::Iso,
            ..CURRENT.get()
        }
        .enter()
    }

    /// As this is, with texts in another encoding, if one is named.
    pub fn with_encoding(encoding: Option<Encoding>) -> Within {
        let current = CURRENT.get();
        Self {
            encoding: encoding.unwrap_or(current.encoding),
            ..current
        }
        .enter()
    }

    /// Lets the thread read and show values so, until what it gives is dropped.
    pub fn enter(self) -> Within {
        Within(CURRENT.replace(self))
    }
}

thread_local! {
    static CURRENT: Cell<Style> = const {
        Cell::new(Style {
            order: Order::MonthDayYear,
            dates: Dates::Iso,
            intervals: Intervals::Postgres,
            escapes: false,
            encoding: Encoding::Utf8,
            config: Config::Of(ENGLISH),
            thresholds: Thresholds::USUAL,
        })
    };
}

/// Puts back the style that the thread had before.
pub struct Within(Style);

impl Drop for Within {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// What the thread's session has chosen.
pub fn current() -> Style {
    CURRENT.get()
}

/// The order that dates are read in.
pub fn order() -> Order {
    CURRENT.get().order
}

/// How dates and timestamps are shown.
pub fn dates() -> Dates {
    CURRENT.get().dates
}

/// How intervals are shown.
pub fn intervals() -> Intervals {
    CURRENT.get().intervals
}

/// How similar texts have to be.
pub fn thresholds() -> Thresholds {
    CURRENT.get().thresholds
}

/// What texts of the client are in.
pub fn encoding() -> Encoding {
    CURRENT.get().encoding
}

/// By which configuration texts are searched.
pub fn config() -> Config {
    CURRENT.get().config
}

/// Whether bytes are shown as characters.
pub fn escapes() -> bool {
    CURRENT.get().escapes
}
