//! Configurations of text search and dictionaries, which `regconfig` and `regdictionary` are numbers of.
//!
//! There are those that PostgreSQL 15 begins with, with the numbers that they have there: `simple`, and one of each of these languages.

use crate::error::fail;
use nestor_model::Result;

/// Languages of configurations, in the order of their numbers.
pub const LANGUAGES: [&str; 28] = [
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "greek",
    "hindi",
    "hungarian",
    "indonesian",
    "irish",
    "italian",
    "lithuanian",
    "nepali",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
    "yiddish",
];
/// The place of English.
pub const ENGLISH: usize = 6;

/// The OID of the parser.
pub const PARSER: i64 = 3722;
/// The OID of the template of stemmers.
pub const SNOWBALL: i64 = 13150;
/// Templates of dictionaries, with what makes these, looks words up, and what they are; without that of stemmers, which is in this order the third.
pub const TEMPLATES: [(i64, &str, &str, &str, &str); 5] = [
    (3733, "ispell", "dispell_init", "dispell_lexize", "ispell dictionary"),
    (
        3727,
        "simple",
        "dsimple_init",
        "dsimple_lexize",
        "simple dictionary: just lower case and check for stopword",
    ),
    (
        SNOWBALL,
        "snowball",
        "dsnowball_init",
        "dsnowball_lexize",
        "snowball stemmer",
    ),
    (
        3730,
        "synonym",
        "dsynonym_init",
        "dsynonym_lexize",
        "synonym dictionary: replace word by its synonym",
    ),
    (
        3742,
        "thesaurus",
        "thesaurus_init",
        "thesaurus_lexize",
        "thesaurus dictionary: phrase by phrase substitution",
    ),
];

/// The functions of triggers that keep vectors, with their OIDs: by the name of a configuration, and by a column that has it.
pub const TRIGGER_FUNCTIONS: [(i64, &str); 2] = [
    (3752, "tsvector_update_trigger"),
    (3753, "tsvector_update_trigger_column"),
];

/// A dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dictionary {
    /// Words in lower case.
    Simple,
    /// Stems of a language, by its place.
    Stem(usize),
}

/// A configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// `simple`.
    Simple,
    /// That of a language, by its place.
    Of(usize),
}

impl Default for Config {
    fn default() -> Self {
        Self::Of(ENGLISH)
    }
}

impl Dictionary {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let stems = (0..LANGUAGES.len()).map(Self::Stem);
        std::iter::once(Self::Simple).chain(stems)
    }

    /// Its OID.
    pub fn oid(self) -> i64 {
        match self {
            Self::Simple => 3765,
            Self::Stem(at) => 13151 + 2 * at as i64,
        }
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Simple => "simple".to_owned(),
            Self::Stem(at) => format!("{}_stem", LANGUAGES[at]),
        }
    }

    /// What it is.
    pub fn description(self) -> String {
        match self {
            Self::Simple => TEMPLATES[1].4.to_owned(),
            Self::Stem(at) => format!("snowball stemmer for {} language", LANGUAGES[at]),
        }
    }

    /// That with a name.
    ///
    /// Errors: 42704.
    pub fn named(name: &str) -> Result<Self> {
        let own = unqualified(name);
        match Self::all().find(|dictionary| own.as_deref() == Some(dictionary.name().as_str())) {
            Some(dictionary) => Ok(dictionary),
            None => fail("42704", format!("text search dictionary \"{name}\" does not exist")),
        }
    }

    /// That with an OID.
    ///
    /// Errors: XX000, as PostgreSQL has it.
    pub fn of_oid(oid: i64) -> Result<Self> {
        match Self::all().find(|dictionary| dictionary.oid() == oid) {
            Some(dictionary) => Ok(dictionary),
            None => fail("XX000", format!("cache lookup failed for text search dictionary {oid}")),
        }
    }
}

impl Config {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let languages = (0..LANGUAGES.len()).map(Self::Of);
        std::iter::once(Self::Simple).chain(languages)
    }

    /// Its OID.
    pub fn oid(self) -> i64 {
        match self {
            Self::Simple => 3748,
            Self::Of(at) => 13152 + 2 * at as i64,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Of(at) => LANGUAGES[at],
        }
    }

    /// What it is.
    pub fn description(self) -> String {
        match self {
            Self::Simple => "simple configuration".to_owned(),
            Self::Of(at) => format!("configuration for {} language", LANGUAGES[at]),
        }
    }

    /// That with a name.
    ///
    /// Errors: 42704.
    pub fn named(name: &str) -> Result<Self> {
        let own = unqualified(name);
        match Self::all().find(|config| own.as_deref() == Some(config.name())) {
            Some(config) => Ok(config),
            None => fail("42704", format!("text search configuration \"{name}\" does not exist")),
        }
    }

    /// That with an OID.
    ///
    /// Errors: XX000, as PostgreSQL has it.
    pub fn of_oid(oid: i64) -> Result<Self> {
        match Self::all().find(|config| config.oid() == oid) {
            Some(config) => Ok(config),
            None => fail(
                "XX000",
                format!("cache lookup failed for text search configuration {oid}"),
            ),
        }
    }
}

/// A name without the schema of all configurations and dictionaries; `None` with another one.
fn unqualified(name: &str) -> Option<String> {
    let mut parts = super::names::names_in(name);
    match parts.as_slice() {
        [_] => parts.pop(),
        [schema, _] if schema == "pg_catalog" => parts.pop(),
        _ => None,
    }
}
