//! How far a member's journal agrees with the log.

use crate::Result;

/// The last commit that journal and log have alike, of a journal with the commits `base + 1` to `last`, of which those up to `base`
/// cannot be dropped any more. `same` tells whether a commit of the journal is in the log, and the same there.
///
/// What lies behind it in the journal was never in the log; what lies behind it in the log is to be applied. Frames repeat the checksum
/// of the one before, so commits that are the same have the same past: it is looked for by halves.
///
/// `first` is the oldest commit that the log still has, if it was trimmed beyond `base`, else 0. What was trimmed is compared by what follows
/// it: if the commit at `first` is the same, so are those before it.
///
/// `None` if neither the commit at `base` nor, after trimming, that at `first` is in journal and log alike: then the member is one of another set, a
/// copy of another time, or older than the log.
pub fn reconcile(base: u64, first: u64, last: u64, mut same: impl FnMut(u64) -> Result<bool>) -> Result<Option<u64>> {
    let base = match first > 1 && first > base {
        true if last < first || !same(first)? => return Ok(None),
        true => first,
        false => base,
    };
    let (mut low, mut high) = (base, last);
    if high > low && same(high)? {
        return Ok(Some(high));
    }
    // `high` is not the same, unless nothing is left to look at; `low` is, if anything is.
    while high > low + 1 {
        let middle = low + (high - low) / 2;
        match same(middle)? {
            true => low = middle,
            false => high = middle,
        }
    }
    let agrees = low == 0 || low > base || same(low)?;
    Ok(agrees.then_some(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_common_commit_is_found() {
        for base in 0..6u64 {
            for common in base..9 {
                for last in common..12 {
                    let found = reconcile(base, 0, last, |seq| Ok(seq <= common)).unwrap();
                    assert_eq!(found, Some(common), "{base} {common} {last}");
                }
            }
        }
    }

    /// Entries before the first one are not there, whatever the journal has.
    #[test]
    fn what_was_trimmed_is_known_by_what_follows_it() {
        for base in 0..4u64 {
            for first in base + 2..8 {
                for last in 0..12 {
                    for common in 0..=last {
                        let found = reconcile(base, first, last, |seq| Ok(seq >= first && seq <= common)).unwrap();
                        let expected = (common >= first).then_some(common);
                        assert_eq!(found, expected, "{base} {first} {last} {common}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_base_that_the_log_does_not_have_is_of_another_set() {
        assert_eq!(reconcile(5, 0, 9, |seq| Ok(seq < 5)).unwrap(), None);
        assert_eq!(reconcile(5, 0, 5, |seq| Ok(seq < 5)).unwrap(), None);
        assert_eq!(reconcile(0, 0, 0, |_| Ok(false)).unwrap(), Some(0));
    }
}
