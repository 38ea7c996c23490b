//! How near two vectors are.
//!
//! The sums run in [`LANES`] independent accumulators, which the compiler turns into vector instructions; rounding differs from that of one
//! sum by less than the precision of the result.

/// How many accumulators a sum has: four registers of four numbers each.
const LANES: usize = 16;

/// The sum of the products; of vectors of one length.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| x * y)
}

/// The square of the Euclidean distance; of vectors of one length.
pub fn squared(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| (x - y) * (x - y))
}

#[inline(always)]
fn sum(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0f32; LANES];
    let (mut a, mut b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (a, b) in a.by_ref().zip(b.by_ref()) {
        for lane in 0..LANES {
            sums[lane] += term(a[lane], b[lane]);
        }
    }
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| term(*x, *y)).sum();
    sums.iter().sum::<f32>() + rest
}

/// The sum of the products of whole numbers of 8 bits; of vectors of one length. Exact, as vectors have at most 8192 dimensions.
pub fn dot_int8(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum()
}

/// The square of the Euclidean distance of whole numbers of 8 bits; of vectors of one length. Exact.
pub fn squared_int8(a: &[i8], b: &[i8]) -> i32 {
    let term = |(x, y): (&i8, &i8)| {
        let difference = i32::from(*x) - i32::from(*y);
        difference * difference
    };
    a.iter().zip(b).map(term).sum()
}

/// In how many bits they differ; of vectors of one length.
pub fn hamming(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, step: f32) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * step).sin()).collect()
    }

    #[test]
    fn sums_of_all_lengths() {
        for count in [0, 1, 15, 16, 17, 100, 768] {
            let (a, b) = (numbers(count, 0.37), numbers(count, 0.11));
            let plain: f64 = a.iter().zip(&b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
            assert!((f64::from(dot(&a, &b)) - plain).abs() < 1e-4, "{count}");
            let plain: f64 = a.iter().zip(&b).map(|(x, y)| f64::from(x - y).powi(2)).sum();
            assert!((f64::from(squared(&a, &b)) - plain).abs() < 1e-4, "{count}");
        }
    }

    #[test]
    fn whole_numbers_and_bits() {
        assert_eq!(dot_int8(&[-128, 127, 3], &[-128, 127, -1]), 16384 + 16129 - 3);
        assert_eq!(squared_int8(&[-128, 1], &[127, 1]), 255 * 255);
        assert_eq!(dot_int8(&[-128; 8192], &[-128; 8192]), 8192 * 16384);
        assert_eq!(squared_int8(&[-128; 8192], &[127; 8192]), 8192 * 65025);
        assert_eq!(hamming(&[0b1010_0000, 1], &[0b0110_0000, 1]), 2);
    }
}
