//! The tree against the model, and on bad days.

mod model;

use std::collections::BTreeMap;

/// Numbers that look random and are the same in every run (xorshift64*).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    /// Whether an event of this probability happens.
    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Changes by key, as `apply` wants them.
pub(super) type Batch = BTreeMap<Vec<u8>, Option<Vec<u8>>>;
