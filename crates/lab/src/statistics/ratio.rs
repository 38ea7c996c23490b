//! Is B faster than A? The ratio of runs that took turns, with the interval it lies in.
//!
//! Runs alternate, so whatever drifts on the machine touches both; the logarithms of the ratios of neighbours are taken
//! for a sample of a distribution that is about normal, and the interval is Student's.

/// A ratio and how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The geometric mean of B / A.
    pub mean: f64,
    /// The lower end of the interval of 95 % confidence.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Pairs of runs.
    pub pairs: usize,
}

/// What a ratio says of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The interval lies below 1.
    Worse,
    /// 1 lies within it.
    Same,
    /// It lies above 1.
    Better,
}

impl Ratio {
    /// Of pairs (A, B) of throughputs; `None` with fewer than two pairs or what is no throughput.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.len() < 2 || pairs.iter().any(|(a, b)| !(*a > 0.0 && *b > 0.0)) {
            return None;
        }
        let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = student(logs.len() - 1) * (variance / n).sqrt();
        Some(Self {
            mean: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            pairs: logs.len(),
        })
    }

    /// What it says.
    pub fn verdict(&self) -> Verdict {
        if self.high < 1.0 {
            Verdict::Worse
        } else if self.low > 1.0 {
            Verdict::Better
        } else {
            Verdict::Same
        }
    }
}

/// The 97.5 % quantile of Student's distribution with so many degrees of freedom. Source: any table of it.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        // Between 30 degrees and the normal distribution the quantile falls with their inverse.
        _ => 1.960 + 2.46 / freedom as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Pairs of a machine that drifts by a tenth and scatters by `noise`, B at `factor` of A; they take turns as A B, B A.
    fn pairs(count: usize, noise: f64, factor: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut random = Random::new(seed);
        let mut speed = |i: usize| {
            let drift = 1.0 + 0.1 * (i as f64 / (2 * count) as f64);
            10_000.0 * drift * (1.0 + noise * random.normal())
        };
        let mut pair = |i: usize| {
            let (first, second) = (speed(2 * i), speed(2 * i + 1));
            let (a, b) = if i.is_multiple_of(2) {
                (first, second)
            } else {
                (second, first)
            };
            (a, factor * b)
        };
        (0..count).map(&mut pair).collect()
    }

    #[test]
    fn a_planted_loss_is_found() {
        let mut found = 0;
        for seed in 0..100 {
            let ratio = Ratio::of(&pairs(10, 0.01, 0.97, seed)).expect("ten pairs");
            assert!(ratio.low <= ratio.mean && ratio.mean <= ratio.high);
            found += usize::from(ratio.verdict() == Verdict::Worse);
        }
        assert!(found >= 95, "a loss of 3 % was found {found} times in 100");
    }

    #[test]
    fn noise_is_no_loss() {
        let mut wrong = 0;
        for seed in 1_000..1_400 {
            let ratio = Ratio::of(&pairs(10, 0.01, 1.0, seed)).expect("ten pairs");
            wrong += usize::from(ratio.verdict() != Verdict::Same);
        }
        // One in twenty is what 95 % means: 20, and three deviations of 4.4 more.
        assert!(wrong <= 33, "noise was taken for a difference {wrong} times in 400");
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(Ratio::of(&[(1.0, 1.0)]), None);
        assert_eq!(Ratio::of(&[(1.0, 1.0), (0.0, 1.0)]), None);
        let same = Ratio::of(&[(5.0, 5.0), (7.0, 7.0)]).expect("two pairs");
        assert_eq!(same.verdict(), Verdict::Same);
    }
}
