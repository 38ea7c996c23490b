//! Text search as PostgreSQL has it: from texts to vectors and queries, whether and how well they match, and what of a text shows it.
//!
//! ```text
//! "The fat cats"  ──tokens──►  asciiword "The", blank, asciiword "fat", …  ──configs──►  fat, cat at their places  ──►  'cat':3 'fat':2
//! 'cats & !dogs'  ──words───►  'cat' & !'dog'                                            ──matching──►  true
//! ```
//!
//! Reading order: `tokens` (what parts a text has), `configs` (what each part becomes in a language), `words` (vectors and queries of texts),
//! `matching`, `rank`, `headline`, `rewrite`; `trigrams` has texts that are similar, and `parts` what a text has that a regular expression matches. The types are in [`crate::types::tsvector`] and [`crate::types::tsquery`].
//!
//! Source: manual, chapter 12, and what PostgreSQL 15 answers.

pub mod configs;
pub mod headline;
pub mod matching;
pub mod parts;
pub mod rank;
pub mod rewrite;
pub mod tokens;
pub mod trigrams;
pub mod words;
