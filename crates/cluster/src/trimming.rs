//! What is kept of a set's past: which checkpoints, and from where on the log. Functions of what is known, so that members and the simulation
//! decide alike.
//!
//! Three are served by it: who begins from a checkpoint needs the log behind it; who was away for a while and comes back needs what it lacks; and the
//! moments of a time that somebody asked for need a checkpoint before them and the log from there on.

use std::time::Duration;

/// Checkpoints that are kept. The log is kept from the older one on, for members that are just beginning from it.
const KEPT: usize = 2;
/// Of those that are kept for moments to restore there are about so many in the time that the oplog is to be kept.
const KEPT_FOR_MOMENTS: u32 = 24;

/// When the state of a checkpoint was, in seconds since the epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// The last commit in its base.
    pub from: u64,
    /// The last commit that it has.
    pub until: u64,
}

/// Which of these checkpoints stay, the oldest first: the newest two, and those from which every moment of the last `age` can be restored, some
/// apart.
pub fn kept_checkpoints(checkpoints: &[Span], age: Duration) -> Vec<usize> {
    let now = checkpoints.last().map_or(0, |newest| newest.until);
    let begins = now.saturating_sub(age.as_secs());
    let apart = age.as_secs() / u64::from(KEPT_FOR_MOMENTS);
    let newest = checkpoints.len().saturating_sub(KEPT);
    let mut kept: Vec<usize> = Vec::new();
    for (at, checkpoint) in checkpoints.iter().enumerate() {
        let next = checkpoints.get(at + 1);
        // The moment at which the time begins is restored from the last one before it.
        let is_within = age > Duration::ZERO && next.is_some_and(|next| next.from > begins);
        let follows = kept.last().map(|before| checkpoints[*before].from);
        let is_apart = follows.is_none_or(|before| checkpoint.from >= before + apart);
        if at >= newest || (is_within && is_apart) {
            kept.push(at);
        }
    }
    kept
}

/// The number of the oldest commit that the log has to keep, if anything is known that can go.
///
/// `oldest` is the last commit in the base of the oldest checkpoint, and its time in seconds: the entry of that commit stays, by which the base is known
/// to be of this log. `kept` is what all members of which anything was heard lately have on their disks, whoever asks included; whoever asks looks what they say right before: one
/// that has just begun may not have been there. `begins` is when the time begins whose moments are to be restored, if any are: while the
/// oldest checkpoint is younger, those before it are restored from the log alone, and everything stays.
pub fn keeps_from(oldest: Option<(u64, u64)>, kept: u64, begins: Option<u64>) -> Option<u64> {
    let (seq, secs) = oldest?;
    if begins.is_some_and(|begins| secs > begins) {
        return None;
    }
    Some(seq.min(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(froms: &[u64], hours: u64) -> Vec<u64> {
        let span = |from: &u64| Span {
            from: *from,
            until: from + 10,
        };
        let spans: Vec<Span> = froms.iter().map(span).collect();
        let kept = kept_checkpoints(&spans, Duration::from_secs(hours * 3_600));
        kept.into_iter().map(|at| froms[at]).collect()
    }

    #[test]
    fn the_newest_two_stay_and_those_of_the_time() {
        assert_eq!(kept(&[], 0), [0; 0]);
        assert_eq!(kept(&[100, 200, 300, 400], 0), [300, 400]);
        // An hour is 3,600 s; about 24 of it are kept, 150 s apart.
        let all: Vec<u64> = (0..100).map(|n| 10_000 + 60 * n).collect();
        let of_an_hour = kept(&all, 1);
        assert!(of_an_hour[0] <= 10_000 + 60 * 99 + 10 - 3_600, "{of_an_hour:?}");
        assert!(of_an_hour[1] > of_an_hour[0], "the one before the time is one");
        assert_eq!(of_an_hour[of_an_hour.len() - 2..], [10_000 + 60 * 98, 10_000 + 60 * 99]);
        assert!((20..=27).contains(&of_an_hour.len()), "{}", of_an_hour.len());
    }

    #[test]
    fn the_log_keeps_what_somebody_needs() {
        assert_eq!(keeps_from(None, 5, None), None, "there is no checkpoint");
        assert_eq!(keeps_from(Some((7, 100)), 5, None), Some(5));
        assert_eq!(keeps_from(Some((7, 100)), 9, None), Some(7));
        assert_eq!(keeps_from(Some((7, 100)), 9, Some(99)), None);
        assert_eq!(keeps_from(Some((7, 100)), 9, Some(100)), Some(7));
    }
}
