//! How many turns there should be: the fewest with which as much work is done as with more.
//!
//! One tries a step up when somebody has waited, and keeps it if clearly more work was done in the same time; then a step down, and
//! keeps that unless clearly less was done. Operations that compute gain nothing from more of them than cores, and each
//! that runs beside them makes short operations wait; those that read from a disk gain until the disk is busy.

/// A step up has to bring, and a step down may cost, so much of the work that its share of the turns would do.
const WORTH: f64 = 0.5;
/// A step, as a share of the turns; at least one.
const STEP: f64 = 0.1;

/// The search for a number of turns, told of the work that was done with each number that it tries.
#[derive(Debug)]
pub struct Probe {
    least: usize,
    most: usize,
    /// The number that was found best, and the work done with it when it was tried last.
    best: usize,
    best_work: f64,
    tries: Try,
    /// Whether the last try that ended was one upwards.
    went_up: bool,
    /// How far the number was changed.
    pub changes: Changes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Try {
    Best,
    Up,
    Down,
}

/// How far the number of turns was changed since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Times that it was raised.
    pub raised: u64,
    /// By how much together.
    pub raised_by: u64,
    /// Times that it was lowered.
    pub lowered: u64,
    /// By how much together.
    pub lowered_by: u64,
}

impl Probe {
    /// Begins with `first` of `least` to `most`.
    pub fn new(first: usize, least: usize, most: usize) -> Self {
        let most = most.max(least);
        Self {
            least,
            most,
            best: first.clamp(least, most),
            best_work: 0.0,
            tries: Try::Best,
            went_up: false,
            changes: Changes::default(),
        }
    }

    /// The number to try next, after so much work per second was done with the last one. `has_queue`: somebody had to wait.
    pub fn next(&mut self, work: f64, has_queue: bool) -> usize {
        match self.tries {
            Try::Best => {
                self.best_work = work;
                // Down and up in turns; without a queue more would change nothing.
                let up = has_queue && !self.went_up;
                self.tries = if up { Try::Up } else { Try::Down };
                self.went_up = up;
            }
            Try::Up if work > self.best_work * (1.0 + self.worth()) => self.keep(self.up(), work),
            Try::Down if has_queue && work > self.best_work * (1.0 - self.worth()) => self.keep(self.down(), work),
            Try::Up | Try::Down => self.tries = Try::Best,
        }
        match self.tries {
            Try::Best => self.best,
            Try::Up => self.up(),
            Try::Down => self.down(),
        }
    }

    fn keep(&mut self, turns: usize, work: f64) {
        let by = turns.abs_diff(self.best) as u64;
        if turns > self.best {
            self.changes.raised += 1;
            self.changes.raised_by += by;
        } else if by > 0 {
            self.changes.lowered += 1;
            self.changes.lowered_by += by;
        }
        (self.best, self.best_work, self.tries) = (turns, work, Try::Best);
    }

    fn step(&self) -> usize {
        ((self.best as f64 * STEP) as usize).max(1)
    }

    fn worth(&self) -> f64 {
        WORTH * self.step() as f64 / self.best as f64
    }

    fn up(&self) -> usize {
        (self.best + self.step()).min(self.most)
    }

    fn down(&self) -> usize {
        self.best.saturating_sub(self.step()).max(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number found for a machine that does `work` with so many turns.
    fn found(first: usize, work: impl Fn(usize) -> f64) -> usize {
        let mut probe = Probe::new(first, 4, 128);
        let mut turns = first;
        for _ in 0..2_000 {
            turns = probe.next(work(turns), true);
        }
        probe.best
    }

    #[test]
    fn what_only_computes_needs_no_more_than_there_are_cores() {
        // Eight cores.
        let work = |turns: usize| turns.min(8) as f64;
        for first in [4, 8, 16, 100] {
            assert_eq!(found(first, work), 8, "from {first}");
        }
        // Two cores need no more than the least.
        assert_eq!(found(16, |turns| turns.min(2) as f64), 4);
    }

    #[test]
    fn what_waits_for_the_disk_gains_from_more() {
        // Up to thirty reads at a time are done as fast as one.
        let got = found(4, |turns| turns.min(30) as f64);
        assert!((26..=31).contains(&got), "{got}");
    }

    #[test]
    fn nothing_changes_while_nobody_waits() {
        let mut probe = Probe::new(16, 4, 128);
        for i in 0..100 {
            probe.next(f64::from(i % 7), false);
        }
        assert_eq!((probe.best, probe.changes), (16, Changes::default()));
    }
}
