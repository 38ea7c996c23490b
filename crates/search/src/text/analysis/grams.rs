//! Pieces of texts by their lengths.

use nestor_model::Result;
use nestor_model::statement::work;

/// The lengths that pieces have, in characters.
#[derive(Clone, Copy, Debug)]
pub(in crate::text) struct Grams {
    pub(in crate::text) min: usize,
    pub(in crate::text) max: usize,
}

impl Grams {
    /// Calls `each` with the beginnings of a text.
    pub(in crate::text) fn edges(self, text: &str, mut each: impl FnMut(usize, &str) -> Result<()>) -> Result<()> {
        let ends = text.char_indices().map(|(at, _)| at).skip(1);
        let ends = ends.chain(std::iter::once(text.len())).take(self.max);
        for end in ends.skip(self.min - 1).filter(|end| *end > 0) {
            each(0, &text[..end])?;
        }
        Ok(())
    }

    /// Calls `each` with the ends of a text.
    pub(in crate::text) fn right_edges(
        self,
        text: &str,
        mut each: impl FnMut(usize, &str) -> Result<()>,
    ) -> Result<()> {
        for (at, _) in text.char_indices().rev().take(self.max).skip(self.min - 1) {
            each(at, &text[at..])?;
        }
        Ok(())
    }

    /// Calls `each` with all pieces of a text, by where they begin.
    pub(in crate::text) fn all(self, text: &str, mut each: impl FnMut(usize, &str) -> Result<()>) -> Result<()> {
        let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        ends.push(text.len());
        for from in 0..ends.len() {
            work(1)?;
            for length in self.min..=self.max {
                match ends.get(from + length) {
                    Some(end) => each(ends[from], &text[ends[from]..*end])?,
                    None => break,
                }
            }
        }
        Ok(())
    }
}
