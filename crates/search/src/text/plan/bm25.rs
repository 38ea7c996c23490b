//! What a row is worth that has a term: BM25, as Lucene computes it, numbers being those of 32 bits.
//!
//! Source: Lucene's documentation of the class `BM25Similarity`.

use super::node::{Details, Weight};
use crate::text::store::{RowId, TextField};

const K1: f32 = 1.2;
const B: f32 = 0.75;

/// The length of a text as far as it counts: Lucene keeps one byte for it.
fn rounded(length: u32) -> u32 {
    const EXACT: u32 = 24;
    if length < EXACT {
        return length;
    }
    let above = length - EXACT;
    match 32 - above.leading_zeros() {
        0..4 => length,
        bits => EXACT + (above >> (bits - 4) << (bits - 4)),
    }
}

/// Lengths of rows that are asked for ascending.
pub(super) struct Lengths<'a> {
    lengths: &'a [(RowId, u32)],
    at: usize,
    counts: bool,
}

impl<'a> Lengths<'a> {
    pub(super) fn of(field: &'a TextField, weight: &Weight) -> Self {
        Self {
            lengths: field.lengths(),
            at: 0,
            counts: weight.has_lengths,
        }
    }

    /// The length of a row, which is not less than the one that was asked for before.
    pub(super) fn of_row(&mut self, row: RowId) -> u32 {
        if !self.counts {
            return 1;
        }
        let rest = &self.lengths[self.at..];
        let mut step = 1;
        while rest.get(step).is_some_and(|(own, _)| *own < row) {
            step *= 2;
        }
        let within = &rest[..rest.len().min(step + 1)];
        self.at += within.partition_point(|(own, _)| *own < row);
        match self.lengths.get(self.at) {
            Some((own, length)) if *own == row => rounded(*length),
            _ => 1,
        }
    }
}

impl Weight {
    /// The score of a row with this frequency and length.
    pub(super) fn score(&self, frequency: f32, length: u32) -> f32 {
        let weight = self.boost * self.idf;
        let inverse = 1.0 / (K1 * ((1.0 - B) + B * length as f32 / self.average));
        weight - weight / (1.0 + frequency * inverse)
    }

    /// How that score came about.
    pub(super) fn details(&self, name: &str, frequency: f32, length: u32) -> Details {
        let value = self.score(frequency, length);
        let tf = 1.0 - 1.0 / (1.0 + frequency / (K1 * ((1.0 - B) + B * length as f32 / self.average)));
        let leaf = |value: f64, description: &str| Details::new(value, description, Vec::new());
        let idf = vec![
            leaf(self.frequency as f64, "n, number of documents containing term"),
            leaf(self.rows as f64, "N, total number of documents with field"),
        ];
        let parts = vec![
            leaf(f64::from(frequency), "freq, occurrences of term within document"),
            leaf(f64::from(K1), "k1, term saturation parameter"),
            leaf(f64::from(B), "b, length normalization parameter"),
            leaf(f64::from(length), "dl, length of field"),
            leaf(f64::from(self.average), "avgdl, average length of field"),
        ];
        let factors = vec![
            leaf(f64::from(self.boost), "boost"),
            Details::new(
                self.idf,
                "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
                idf,
            ),
            Details::new(
                tf,
                "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
                parts,
            ),
        ];
        let of = format!("score(freq={frequency:?}), computed as boost * idf * tf from:");
        let name = format!("$type:string/{}:{name} [BM25Similarity], result of:", self.key.path);
        Details::new(value, name, vec![Details::new(value, of, factors)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_exact_while_they_are_small() {
        for (length, expected) in [
            (1, 1),
            (23, 23),
            (39, 39),
            (40, 40),
            (41, 40),
            (57, 56),
            (1000, 984),
            (u32::MAX, 24 + 0xF000_0000),
        ] {
            assert_eq!(rounded(length), expected, "{length}");
        }
    }
}
