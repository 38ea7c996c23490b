//! `time with time zone`: a time of day and the offset of the clock that shows it.
//!
//! It is held as the bytes that it has on the wire: microseconds, and seconds west of Greenwich.

use super::interval::{DAY_US, Interval};
use super::{TIMETZ_SUBTYPE, datetime, zone};
use nestor_model::Value;
use nestor_model::value::Binary;
use std::cmp::Ordering;

/// A time of day with an offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeTz {
    /// Microseconds of the day.
    pub us: i64,
    /// Seconds east of Greenwich.
    pub east: i64,
}

impl TimeTz {
    /// The time that a value is.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Binary(binary) => Self::of_bytes(&binary.bytes).unwrap_or_default(),
            _ => Self::default(),
        }
    }

    /// The time that bytes of the wire are.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (us, west) = bytes.split_first_chunk::<8>()?;
        let west = i32::from_be_bytes(west.try_into().ok()?);
        Some(Self {
            us: i64::from_be_bytes(*us),
            east: -i64::from(west),
        })
    }

    /// As a value.
    pub fn to_value(self) -> Value {
        let mut bytes = self.us.to_be_bytes().to_vec();
        bytes.extend_from_slice(&(-self.east as i32).to_be_bytes());
        Value::Binary(Binary {
            subtype: TIMETZ_SUBTYPE,
            bytes: bytes.as_slice().into(),
        })
    }

    /// Its text.
    pub fn format(self) -> String {
        datetime::format_time(self.us) + &zone::format_offset(self.east)
    }

    /// The order: by the moment of a day, then by the offset from the west on.
    pub fn compare(self, other: Self) -> Ordering {
        let moment = |time: Self| time.us - time.east * 1_000_000;
        let moments = moment(self).cmp(&moment(other));
        moments.then_with(|| other.east.cmp(&self.east))
    }

    /// So much later; only what is less than a day counts.
    pub fn plus(self, by: Interval) -> Self {
        Self {
            us: (self.us + by.us % DAY_US).rem_euclid(DAY_US),
            ..self
        }
    }

    /// The same moment on clocks of another offset.
    pub fn at(self, east: i64) -> Self {
        Self {
            us: (self.us + (east - self.east) * 1_000_000).rem_euclid(DAY_US),
            east,
        }
    }
}
