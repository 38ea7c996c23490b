//! Configurations of text search, and the dictionaries that they look words up in.
//!
//! Each configuration is of a language, whose words become stems without stop words; `simple` only makes them lower case. Addresses, numbers and
//! words with digits are looked up in the dictionary `simple` by all, words of ASCII by some in that of English.
//!
//! Stop words are those of MongoDB's text search ([`Language::stop_words`]), but for the words that `stop_words.txt` adds (`+`) or takes away (`-`).
//!
//! Source: manual, chapter 12.6, and what PostgreSQL 15 answers for each of these words.

use super::tokens::Kind;
use crate::types::regconfig::{Config, Dictionary, ENGLISH, LANGUAGES};
use nestor_model::Result;
use nestor_query::text::{Language, Stems};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Languages without stop words.
const WITHOUT_STOP_WORDS: &[&str] = &["romanian"];
/// Languages whose words of ASCII are English.
const BESIDE_ENGLISH: &[&str] = &["hindi", "russian"];

/// Stop words that MongoDB's lists have and PostgreSQL's have not, and the other way round.
const DIFFERENCES: &str = include_str!("stop_words.txt");

/// Longer words have no stems.
const STEMMED_BYTES_MAX: usize = 1000;

static STOP_WORDS: LazyLock<Vec<HashSet<&'static str>>> =
    LazyLock::new(|| LANGUAGES.iter().map(|language| stop_words(language)).collect());

fn stop_words(language: &str) -> HashSet<&'static str> {
    let mut out = HashSet::new();
    if let (Some(own), false) = (Language::named(language), WITHOUT_STOP_WORDS.contains(&language)) {
        out.extend(own.stop_words());
    }
    for line in DIFFERENCES.lines() {
        let mut words = line.split(' ');
        if words.next() != Some(language) {
            continue;
        }
        match words.next() {
            Some("+") => out.extend(words),
            _ => words.for_each(|word| {
                out.remove(word);
            }),
        }
    }
    out
}

impl Dictionary {
    /// How it was made.
    pub fn options(self) -> Option<String> {
        let Self::Stem(at) = self else { return None };
        let language = LANGUAGES[at];
        Some(match STOP_WORDS[at].is_empty() {
            true => format!("language = '{language}'"),
            false => format!("language = '{language}', stopwords = '{language}'"),
        })
    }

    /// What a word becomes; `None` for a stop word.
    ///
    /// Errors: those of the statement's interrupt.
    pub fn lexeme(self, word: &str) -> Result<Option<String>> {
        let lower = lowered(word);
        let Self::Stem(at) = self else { return Ok(Some(lower)) };
        if lower.len() > STEMMED_BYTES_MAX {
            return Ok(Some(lower));
        }
        if lower.is_empty() || STOP_WORDS[at].contains(lower.as_str()) {
            return Ok(None);
        }
        match Stems::named(LANGUAGES[at]) {
            // Some stemmers leave nothing of short words.
            Some(stems) => match stems.stem(&lower)? {
                stem if stem.is_empty() => Ok(Some(lower)),
                stem => Ok(Some(stem.into_owned())),
            },
            None => Ok(Some(lower)),
        }
    }
}

impl Config {
    /// The dictionary that parts of a kind are looked up in; `None` for those that are left out.
    pub fn dictionary(self, kind: Kind) -> Option<Dictionary> {
        let is_of_ascii = match kind {
            Kind::Blank | Kind::Tag | Kind::Protocol | Kind::Entity => return None,
            Kind::AsciiWord | Kind::AsciiHyphenated | Kind::AsciiPart => true,
            Kind::Word | Kind::Hyphenated | Kind::WordPart => false,
            _ => return Some(Dictionary::Simple),
        };
        Some(match self {
            Self::Simple => Dictionary::Simple,
            Self::Of(at) if is_of_ascii && BESIDE_ENGLISH.contains(&LANGUAGES[at]) => Dictionary::Stem(ENGLISH),
            Self::Of(at) => Dictionary::Stem(at),
        })
    }
}

/// A word in lower case, character by character.
pub fn lowered(word: &str) -> String {
    let lower = |c: char| {
        let mut all = c.to_lowercase();
        match (all.next(), all.next()) {
            (Some(lower), None) => lower,
            (Some(lower), Some(_)) if c == '\u{130}' => lower,
            _ => c,
        }
    };
    word.chars().map(lower).collect()
}
