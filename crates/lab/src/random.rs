//! Random numbers from a seed: the same seed gives the same load.

use nestor_model::random::Random as Sequence;

/// Spreads the bits of a number over all others; a bijection.
pub fn mix(number: u64) -> u64 {
    Sequence::new(number).next()
}

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Sequence);

impl Random {
    /// The sequence of that seed.
    pub fn new(seed: u64) -> Self {
        Self(Sequence::new(mix(seed)))
    }

    /// The sequence of part `part` of what has that seed, such as a client.
    pub fn of_part(seed: u64, part: u64) -> Self {
        Self::new(mix(seed).wrapping_add(mix(part.wrapping_add(1))))
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number in `0..below`; 0 when nothing is below.
    pub fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u64
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of the normal distribution with mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Ranks `0..n` by Zipf's law: rank `r` comes `(r + 1)^-exponent` as often as the first.
///
/// Source: Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// Of `count` ranks; `exponent` lies between 0 and 1.
    pub fn new(count: u64, exponent: f64) -> Self {
        let zeta = |n: u64| -> f64 {
            // The tail is an integral: exact to far below what a run can tell.
            let head = n.min(100_000);
            let sum: f64 = (1..=head).map(|i| (i as f64).powf(-exponent)).sum();
            let power = 1.0 - exponent;
            sum + ((n as f64).powf(power) - (head as f64).powf(power)) / power
        };
        let n = count.max(1) as f64;
        let all = zeta(count.max(1));
        Self {
            count: n,
            theta: exponent,
            alpha: 1.0 / (1.0 - exponent),
            zeta: all,
            eta: (1.0 - (2.0 / n).powf(1.0 - exponent)) / (1.0 - zeta(2) / all),
        }
    }

    /// A rank.
    pub fn rank(&self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return 1.min(self.count as u64 - 1);
        }
        let rank = (self.count * (self.eta * unit - self.eta + 1.0).powf(self.alpha)) as u64;
        rank.min(self.count as u64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_sequence() {
        let numbers = |seed| -> Vec<u64> {
            let mut random = Random::new(seed);
            (0..5).map(|_| random.below(1_000)).collect()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert_eq!(Random::new(1).below(0), 0);
    }

    #[test]
    fn ranks_follow_the_law() {
        let zipf = Zipf::new(1_000, 0.99);
        let mut random = Random::new(3);
        let mut counts = vec![0u32; 1_000];
        for _ in 0..200_000 {
            counts[zipf.rank(&mut random) as usize] += 1;
        }
        let ratio = f64::from(counts[0]) / f64::from(counts[9].max(1));
        assert!(
            (7.0..13.0).contains(&ratio),
            "rank 1 comes {ratio} times as often as rank 10"
        );
        assert!(counts[0] > counts[1] && counts[1] > counts[4]);
    }
}
