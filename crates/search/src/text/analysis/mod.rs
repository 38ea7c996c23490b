//! How texts become the tokens that are indexed and looked for.
//!
//! ```text
//! "The <b>Quick</b> foxes"  ──character filters──►  "The Quick foxes"  ──tokenizer──►  The | Quick | foxes  ──token filters──►  quick | fox
//! ```
//!
//! Reading order: `characters`, `tokenizer`, `filter`, `built_in` (the analyzers that have names), `custom` (those that a definition makes).
//! Source: manual, "Process Data with Analyzers".

mod built_in;
mod characters;
mod custom;
mod filter;
mod fold;
mod grams;
mod tokenizer;
mod word_parts;

pub(super) use built_in::built_in;
pub(super) use custom::custom;
pub(super) use filter::lower;
pub(super) use fold::unmarked;
pub(super) use grams::Grams;

use characters::CharFilter;
use filter::Filter;
use nestor_model::Result;
use nestor_model::statement::work;
use std::borrow::Cow;
use tokenizer::Tokenizer;

/// Bytes of a text that take about a unit of work.
const BYTES_PER_UNIT: usize = 16;

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// The number of the word that it stands for; words that were left out count.
    pub(super) position: u32,
    /// The bytes of the text that it comes from.
    pub(super) start: u32,
    pub(super) end: u32,
}

/// How texts become tokens.
#[derive(Debug)]
pub(super) struct Analyzer {
    name: String,
    characters: Vec<CharFilter>,
    tokenizer: Tokenizer,
    filters: Vec<Filter>,
}

impl Analyzer {
    fn new(name: &str, characters: Vec<CharFilter>, tokenizer: Tokenizer, filters: Vec<Filter>) -> Self {
        let name = name.to_owned();
        Self {
            name,
            characters,
            tokenizer,
            filters,
        }
    }

    /// What definitions call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether each text is one token.
    pub(super) fn is_keyword(&self) -> bool {
        matches!(self.tokenizer, Tokenizer::Keyword)
    }

    /// The tokens of a text, by position.
    ///
    /// Errors: those of the statement's interrupt.
    pub(super) fn tokens(&self, text: &str) -> Result<Vec<Token>> {
        work(1 + text.len() / BYTES_PER_UNIT)?;
        let filtered = characters::filtered(&self.characters, text)?;
        let mut tokens = match &filtered {
            None => self.tokenizer.tokens(text)?,
            Some(filtered) => self.tokenizer.tokens(&filtered.text)?,
        };
        if let Some(filtered) = &filtered {
            for token in &mut tokens {
                token.start = filtered.origin(token.start);
                token.end = filtered.origin_of_end(token.end);
            }
        }
        for filter in &self.filters {
            tokens = filter.apply(tokens)?;
        }
        Ok(tokens)
    }

    /// A pattern as the terms are written that it is compared with: in their letters.
    pub(super) fn normal<'a>(&self, text: &'a str) -> Result<Cow<'a, str>> {
        let mut normal = Cow::Borrowed(text);
        for filter in &self.filters {
            normal = match filter.letters(&normal)? {
                Some(changed) => Cow::Owned(changed),
                None => normal,
            };
        }
        Ok(normal)
    }
}
