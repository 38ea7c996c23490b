//! The pieces of words by which `autocomplete` finds them.

use super::analysis::{Analyzer, Grams, Token, lower, unmarked};
use nestor_model::Result;

/// Which pieces of a word count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GramKind {
    Beginnings,
    Ends,
    All,
}

/// Pieces of words.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordGrams {
    pub(super) kind: GramKind,
    pub(super) min: usize,
    pub(super) max: usize,
    /// Without marks of letters.
    pub(super) unmarked: bool,
}

impl WordGrams {
    /// The words of a text in the letters in which pieces are stored.
    pub(super) fn words(&self, analyzer: &Analyzer, text: &str) -> Result<Vec<Token>> {
        let mut words = analyzer.tokens(text)?;
        for word in &mut words {
            word.text = lower(&word.text);
            if self.unmarked
                && let Some(plain) = unmarked(&word.text)
            {
                word.text = plain;
            }
        }
        Ok(words)
    }

    /// Calls `each` with the pieces of a word that are stored.
    pub(super) fn for_each(&self, word: &str, mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let grams = self.lengths();
        match self.kind {
            GramKind::Beginnings => grams.edges(word, |_, piece| each(piece)),
            GramKind::Ends => grams.right_edges(word, |_, piece| each(piece)),
            GramKind::All => grams.all(word, |_, piece| each(piece)),
        }
    }

    /// The piece of a word that is asked for by which it is found: of longer ones only so much as is stored.
    pub(super) fn asked<'a>(&self, word: &'a str) -> &'a str {
        let length = word.chars().count();
        if length <= self.max {
            return word;
        }
        let cut = |chars: usize| word.char_indices().nth(chars).map_or(word.len(), |(at, _)| at);
        match self.kind {
            GramKind::Ends => &word[cut(length - self.max)..],
            GramKind::Beginnings | GramKind::All => &word[..cut(self.max)],
        }
    }

    fn lengths(&self) -> Grams {
        Grams {
            min: self.min,
            max: self.max,
        }
    }
}
