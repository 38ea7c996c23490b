//! A set of entries of a segment.

/// A set of numbers below a count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bits {
    words: Vec<u64>,
    count: usize,
}

impl Bits {
    /// None of `count`.
    pub fn none(count: usize) -> Self {
        Self {
            words: vec![0; count.div_ceil(64)],
            count,
        }
    }

    /// All of `count`.
    pub fn all(count: usize) -> Self {
        Self::none(count).not()
    }

    /// Whether a number is in it.
    pub fn has(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Puts a number in, which is below the count.
    pub fn set(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Puts the count up by one, whose number is in it or not.
    pub fn push(&mut self, is_in: bool) {
        let at = self.count;
        self.count += 1;
        self.words.resize(self.count.div_ceil(64), 0);
        if is_in {
            self.set(at);
        }
    }

    /// Leaves those that are in the other too, of the same count.
    pub fn retain(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Puts in those of the other, of the same count.
    pub fn add(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Those that are not in it.
    #[must_use]
    pub fn not(mut self) -> Self {
        for word in &mut self.words {
            *word = !*word;
        }
        let used = self.count % 64;
        if let (Some(last), 1..) = (self.words.last_mut(), used) {
            *last &= (1 << used) - 1;
        }
        self
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        for count in [0, 1, 63, 64, 65, 200] {
            let mut thirds = Bits::none(0);
            let mut halves = Bits::none(count);
            for at in 0..count {
                thirds.push(at % 3 == 0);
                if at % 2 == 0 {
                    halves.set(at);
                }
            }
            let (all, others) = (Bits::all(count), thirds.clone().not());
            let (mut both, mut either) = (thirds.clone(), thirds.clone());
            both.retain(&halves);
            either.add(&halves);
            for at in 0..count + 70 {
                assert_eq!(all.has(at), at < count);
                assert_eq!(others.has(at), at < count && at % 3 != 0);
                assert_eq!(both.has(at), at < count && at % 6 == 0);
                assert_eq!(either.has(at), at < count && (at % 3 == 0 || at % 2 == 0));
            }
        }
    }
}
