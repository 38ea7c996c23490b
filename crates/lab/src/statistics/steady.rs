//! When has a series levelled? Warming up ends where throughput, memory and page faults stop moving one way.

/// Samples that are looked at.
pub const WINDOW: usize = 8;
/// A change from one half of the window to the other that still counts as level, as a part of the level.
const TOLERANCE: f64 = 0.03;

/// Whether the last [`WINDOW`] samples are level: their halves differ by less than three hundredths, or by less than what the samples
/// themselves scatter by, and no trend runs through most pairs of samples.
pub fn is_level(samples: &[f64]) -> bool {
    if samples.len() < WINDOW {
        return false;
    }
    let window = &samples[samples.len() - WINDOW..];
    let (first, second) = window.split_at(WINDOW / 2);
    let (a, b) = (median(first), median(second));
    let level = a.abs().max(b.abs());
    if level == 0.0 || (b - a).abs() <= TOLERANCE * level {
        return true;
    }
    // A series that scatters widely is level when nothing pulls it one way (Mann and Kendall's test of trends).
    let mut score = 0i32;
    for (i, earlier) in window.iter().enumerate() {
        for later in &window[i + 1..] {
            score += (later > earlier) as i32 - (later < earlier) as i32;
        }
    }
    // 16 of 28 pairs in excess are a trend at 95 % for eight samples.
    let is_trend = score.abs() >= 16;
    let spread = window.iter().copied().fold(f64::MIN, f64::max) - window.iter().copied().fold(f64::MAX, f64::min);
    !is_trend && (b - a).abs() <= spread / 2.0
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The first sample after which a series is level.
    fn level_from(series: &[f64]) -> Option<usize> {
        (1..=series.len()).find(|n| is_level(&series[..*n]))
    }

    #[test]
    fn warming_up_is_told_from_a_level() {
        let mut random = Random::new(5);
        let mut noise = || 1.0 + 0.01 * random.normal();
        let warming: Vec<f64> = (0..60)
            .map(|i| 10_000.0 * (1.0 - (-f64::from(i) / 8.0).exp()) * noise())
            .collect();
        let at = level_from(&warming).expect("it levels");
        assert!((15..45).contains(&at), "level from {at}");
        let flat: Vec<f64> = (0..20).map(|_| 500.0 * noise()).collect();
        assert_eq!(level_from(&flat), Some(WINDOW));
    }

    #[test]
    fn a_trend_is_no_level() {
        let mut random = Random::new(6);
        let falling: Vec<f64> = (0..40)
            .map(|i| (1_000.0 - 15.0 * f64::from(i)) * (1.0 + 0.003 * random.normal()))
            .collect();
        assert_eq!(level_from(&falling), None);
        assert!(!is_level(&[1.0; 3]));
        assert!(is_level(&[0.0; WINDOW]));
    }

    #[test]
    fn wide_noise_is_level() {
        let mut random = Random::new(9);
        let wide: Vec<f64> = (0..200).map(|_| 100.0 * (1.0 + 0.2 * random.normal())).collect();
        let level = (WINDOW..=wide.len()).filter(|n| is_level(&wide[..*n])).count();
        assert!(level > 150, "{level} of 193 windows were taken for level");
    }
}
