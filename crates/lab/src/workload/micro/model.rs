//! The tables as they have to be: `id` (primary key, from 1), `k` (a secondary index), `c` (120 bytes), `pad` (60 bytes).
//!
//! Texts are not kept but made again from seed, id and version, so that a model of many million rows is small.

use crate::random::mix;

/// Bytes of `c`.
pub const C_BYTES: usize = 120;
/// Bytes of `pad`.
pub const PAD_BYTES: usize = 60;

/// What changes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its `k`.
    pub k: i32,
    /// How often its `c` was written anew.
    pub version: u16,
    /// Whether it is there.
    pub is_present: bool,
}

/// What a table's rows are made of.
#[derive(Clone, Copy, Debug)]
pub struct Maker {
    seed: u64,
    rows: u64,
    stride: u64,
}

impl Maker {
    /// For table `table` of `rows` rows.
    pub fn new(seed: u64, table: usize, rows: u64) -> Self {
        // Without a common divisor every k comes once.
        let mut stride = (rows as f64 * 0.618_034) as u64 | 1;
        while common_divisor(stride, rows) != 1 {
            stride += 2;
        }
        Self {
            seed: mix(seed.wrapping_add(table as u64)),
            rows,
            stride,
        }
    }

    /// The `k` that row `id` begins with: each number from 0 to below the number of rows once.
    pub fn k(&self, id: u64) -> i32 {
        ((u128::from(id) * u128::from(self.stride)) % u128::from(self.rows)) as i32
    }

    /// The row `id` as it is loaded.
    pub fn row(&self, id: u64) -> Row {
        Row {
            k: self.k(id),
            version: 0,
            is_present: true,
        }
    }

    /// Appends the `c` of row `id` at `version`.
    pub fn c(&self, id: u64, version: u16, out: &mut Vec<u8>) {
        letters(self.seed ^ (id << 16 | u64::from(version)), C_BYTES, out);
    }

    /// Appends the `pad` of row `id`.
    pub fn pad(&self, id: u64, out: &mut Vec<u8>) {
        letters(!self.seed ^ (id << 16), PAD_BYTES, out);
    }
}

/// Appends `bytes` letters from a to p, which sort alike in all languages.
fn letters(seed: u64, bytes: usize, out: &mut Vec<u8>) {
    let mut state = mix(seed);
    let end = out.len() + bytes;
    while out.len() < end {
        state = mix(state);
        let word = (state & 0x0F0F_0F0F_0F0F_0F0F) + 0x6161_6161_6161_6161;
        let word = word.to_le_bytes();
        out.extend_from_slice(&word[..word.len().min(end - out.len())]);
    }
}

/// A number of a text such that sums of them tell sets of texts apart, in any order.
pub fn fingerprint(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    for chunk in text.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
    }
    mix(hash)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_k_comes_once() {
        for rows in [1, 10, 999, 4_096] {
            let maker = Maker::new(7, 0, rows);
            let mut all: Vec<i32> = (1..=rows).map(|id| maker.k(id)).collect();
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..rows as i32), "{rows}");
        }
    }

    #[test]
    fn texts_depend_on_seed_row_and_version() {
        let text = |seed, id, version| {
            let mut out = Vec::new();
            Maker::new(seed, 0, 100).c(id, version, &mut out);
            String::from_utf8(out).expect("letters")
        };
        assert_eq!(text(1, 2, 3).len(), C_BYTES);
        assert_eq!(text(1, 2, 3), text(1, 2, 3));
        for other in [text(2, 2, 3), text(1, 3, 3), text(1, 2, 4)] {
            assert_ne!(text(1, 2, 3), other);
        }
        let sum = |texts: &[&str]| {
            texts
                .iter()
                .fold(0u64, |sum, text| sum.wrapping_add(fingerprint(text.as_bytes())))
        };
        assert_eq!(sum(&["ab", "cd"]), sum(&["cd", "ab"]));
        assert_ne!(sum(&["ab", "cd"]), sum(&["ac", "bd"]));
    }
}
