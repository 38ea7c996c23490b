//! How far a member's journal agrees with the log.

use crate::Result;

/// The last commit that journal and log have alike, of a journal with the commits `base + 1` to `last`, of which those up to `base`
/// cannot be dropped any more. `same` tells whether a commit of the journal is in the log, and the same there.
///
/// What lies behind it in the journal was never in the log; what lies behind it in the log is to be applied. Frames repeat the checksum
/// of the one before, so commits that are the same have the same past: it is looked for by halves.
///
/// `None` if the commit at `base` is not in the log: then the member is one of another set, or a copy of another time.
pub fn reconcile(base: u64, last: u64, mut same: impl FnMut(u64) -> Result<bool>) -> Result<Option<u64>> {
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
                    let found = reconcile(base, last, |seq| Ok(seq <= common)).unwrap();
                    assert_eq!(found, Some(common), "{base} {common} {last}");
                }
            }
        }
    }

    #[test]
    fn a_base_that_the_log_does_not_have_is_of_another_set() {
        assert_eq!(reconcile(5, 9, |seq| Ok(seq < 5)).unwrap(), None);
        assert_eq!(reconcile(5, 5, |seq| Ok(seq < 5)).unwrap(), None);
        assert_eq!(reconcile(0, 0, |_| Ok(false)).unwrap(), Some(0));
    }
}
