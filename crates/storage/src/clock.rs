//! Optimes: a hybrid logical clock.
//!
//! An optime is `(seconds of the wall clock, ordinal within the second)`. It never goes back: when the wall clock does,
//! the ordinal goes on within the last second seen.

use nestor_model::Timestamp;
use std::sync::Arc;

/// The wall clock, handed in: seconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u32 + Send + Sync>;

/// The optime that follows `last` when the wall clock says `now_secs`, leaving room for `count` consecutive ones that
/// all lie in one second. Returns the first of them; the others have the same seconds and ascending ordinals.
pub(crate) fn next_optime(last: Timestamp, now_secs: u32, count: u32) -> Timestamp {
    if now_secs > last.secs {
        return Timestamp { secs: now_secs, inc: 1 };
    }
    match last.inc.checked_add(count) {
        Some(_) => Timestamp {
            secs: last.secs,
            inc: last.inc + 1,
        },
        None => Timestamp {
            secs: last.secs.saturating_add(1),
            inc: 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ts(secs: u32, inc: u32) -> Timestamp {
        Timestamp { secs, inc }
    }

    #[test]
    fn never_goes_back() {
        assert_eq!(next_optime(ts(10, 7), 11, 1), ts(11, 1));
        assert_eq!(next_optime(ts(10, 7), 10, 3), ts(10, 8));
        assert_eq!(next_optime(ts(10, 7), 3, 1), ts(10, 8));
        assert_eq!(next_optime(ts(10, u32::MAX - 1), 10, 2), ts(11, 1));
    }
}
