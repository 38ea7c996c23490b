//! Stemmers of languages: Snowball's, from the crate `frostem`; of the two for Dutch the older one, which MongoDB and PostgreSQL have, too.

use frostem::{Algorithm, Stemmer};
use nestor_model::Result;
use nestor_model::statement::work;
use std::borrow::Cow;

/// Longer words are their own stems: some stemmers take time that grows with the square of a word's length.
const STEMMED_BYTES_MAX: usize = 1024;
/// The length of a word, in bytes, from which on stemming takes a unit of work, and four where it is twice as long.
const STEMMED_PER_UNIT: usize = 32;

/// The stemmer of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stems(Algorithm);

/// The languages that have one.
const LANGUAGES: &[(&str, Algorithm)] = &[
    ("arabic", Algorithm::Arabic),
    ("armenian", Algorithm::Armenian),
    ("basque", Algorithm::Basque),
    ("catalan", Algorithm::Catalan),
    ("danish", Algorithm::Danish),
    ("dutch", Algorithm::DutchPorter),
    ("english", Algorithm::English),
    ("finnish", Algorithm::Finnish),
    ("french", Algorithm::French),
    ("german", Algorithm::German),
    ("greek", Algorithm::Greek),
    ("hindi", Algorithm::Hindi),
    ("hungarian", Algorithm::Hungarian),
    ("indonesian", Algorithm::Indonesian),
    ("irish", Algorithm::Irish),
    ("italian", Algorithm::Italian),
    ("lithuanian", Algorithm::Lithuanian),
    ("nepali", Algorithm::Nepali),
    ("norwegian", Algorithm::Norwegian),
    ("portuguese", Algorithm::Portuguese),
    ("romanian", Algorithm::Romanian),
    ("russian", Algorithm::Russian),
    ("serbian", Algorithm::Serbian),
    ("spanish", Algorithm::Spanish),
    ("swedish", Algorithm::Swedish),
    ("tamil", Algorithm::Tamil),
    ("turkish", Algorithm::Turkish),
    ("yiddish", Algorithm::Yiddish),
];

impl Stems {
    /// That of a language.
    pub fn named(language: &str) -> Option<Self> {
        let found = LANGUAGES.iter().find(|(name, _)| *name == language);
        found.map(|(_, algorithm)| Self(*algorithm))
    }

    /// Porter's first stemmer for English, which search indexes know beside the one that languages have.
    pub fn porter() -> Self {
        Self(Algorithm::Porter)
    }

    /// The stem of a word. Errors: those of the statement's interrupt.
    pub fn stem(self, word: &str) -> Result<Cow<'_, str>> {
        if word.len() > STEMMED_BYTES_MAX {
            return Ok(Cow::Borrowed(word));
        }
        work((word.len() / STEMMED_PER_UNIT).pow(2))?;
        Ok(Stemmer::new(self.0).stem(word))
    }
}
