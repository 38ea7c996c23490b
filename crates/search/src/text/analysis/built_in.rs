//! The analyzers that have names.

use super::Analyzer;
use super::filter::Filter;
use super::tokenizer::{TOKEN_CHARS_MAX, Tokenizer};
use nestor_query::text::Language;

/// The words that the analyzer `lucene.english` leaves out: fewer than `$text` does.
const ENGLISH: &str = "a an and are as at be but by for if in into is it no not of on or such that the their then there these \
                       they this to was will with";
const FRENCH: &[&str] = &[
    "l", "m", "t", "qu", "n", "s", "j", "d", "c", "jusqu", "quoiqu", "lorsqu", "puisqu",
];
const ITALIAN: &[&str] = &[
    "c", "l", "all", "dall", "dell", "nell", "sull", "coll", "pell", "gl", "agl", "dagl", "degl", "negl", "sugl", "un",
    "m", "t", "s", "v", "d",
];

/// The analyzer that has this name.
pub(in crate::text) fn built_in(name: &str) -> Option<Analyzer> {
    let standard = Tokenizer::Standard {
        longest: TOKEN_CHARS_MAX,
    };
    let lowercase = Filter::Lowercase { is_turkish: false };
    let (tokenizer, filters) = match name.strip_prefix("lucene.")? {
        "standard" => (standard, vec![lowercase]),
        "simple" => (Tokenizer::Letters, vec![lowercase]),
        "whitespace" => (
            Tokenizer::Whitespace {
                longest: TOKEN_CHARS_MAX,
            },
            Vec::new(),
        ),
        "keyword" => (Tokenizer::Keyword, Vec::new()),
        language => {
            let known =
                Language::named(language).filter(|known| known.name() == language && *known != Language::none())?;
            (standard, of_language(known))
        }
    };
    Some(Analyzer::new(name, Vec::new(), tokenizer, filters))
}

fn of_language(language: Language) -> Vec<Filter> {
    let lowercase = Filter::Lowercase {
        is_turkish: language.has_dotless_i(),
    };
    match language.name() {
        "english" => vec![
            Filter::Possessive,
            lowercase,
            Filter::Stop {
                words: ENGLISH.split(' ').map(str::to_owned).collect(),
                ignores_case: false,
            },
            Filter::PorterStem,
        ],
        "french" => vec![
            Filter::Elision(FRENCH),
            lowercase,
            Filter::StopWords(language),
            Filter::Stem(language),
        ],
        "italian" => vec![
            Filter::Elision(ITALIAN),
            lowercase,
            Filter::StopWords(language),
            Filter::Stem(language),
        ],
        _ => vec![lowercase, Filter::StopWords(language), Filter::Stem(language)],
    }
}
