//! Languages: their names, stop words and stemmers.
//!
//! Stems are what indexes store, so another version of the crate that makes them may need another version of these: a test compares the stems of some words of each language with
//! those that indexes have.
//!
//! Stop words come from files in `stop_words`: those of Snowball (BSD), for Romanian and Turkish those of NLTK as the crate
//! `stop-words` has them (MIT or Apache).

use super::stems::Stems;
use nestor_model::Result;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

/// The longest stop words have fewer bytes.
const STOP_WORD_BYTES_END: usize = 64;

struct Definition {
    name: &'static str,
    code: &'static str,
    stop_words: &'static str,
}

macro_rules! languages {
    ($($name:literal $code:literal)*) => {
        [
            $(Definition {
                name: $name,
                code: $code,
                stop_words: include_str!(concat!("stop_words/", $name, ".txt")),
            },)*
            Definition { name: "none", code: "none", stop_words: "" },
        ]
    };
}

static LANGUAGES: [Definition; 16] = languages! {
    "danish" "da"
    "dutch" "nl"
    "english" "en"
    "finnish" "fi"
    "french" "fr"
    "german" "de"
    "hungarian" "hu"
    "italian" "it"
    "norwegian" "nb"
    "portuguese" "pt"
    "romanian" "ro"
    "russian" "ru"
    "spanish" "es"
    "swedish" "sv"
    "turkish" "tr"
};

static STOP_WORDS: [OnceLock<HashSet<&'static str>>; LANGUAGES.len()] = [const { OnceLock::new() }; LANGUAGES.len()];

static STEMS: [OnceLock<Option<Stems>>; LANGUAGES.len()] = [const { OnceLock::new() }; LANGUAGES.len()];

/// A language of texts, or none: then each word is a term as it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Language(usize);

impl Language {
    /// The language with this name or two-letter code, whatever its case.
    pub fn named(name: &str) -> Option<Self> {
        let is_it = |language: &Definition| {
            language.name.eq_ignore_ascii_case(name) || language.code.eq_ignore_ascii_case(name)
        };
        LANGUAGES.iter().position(is_it).map(Self)
    }

    /// None.
    pub fn none() -> Self {
        Self(LANGUAGES.len() - 1)
    }

    /// The language's name.
    pub fn name(self) -> &'static str {
        LANGUAGES[self.0].name
    }

    /// The words that say nothing by themselves, in lower case.
    pub fn stop_words(self) -> impl Iterator<Item = &'static str> {
        LANGUAGES[self.0].stop_words.lines()
    }

    /// Whether an apostrophe is part of a word. English stop words (`don't`) and the English stemmer (`fox's`) know it.
    pub(super) fn has_apostrophes(self) -> bool {
        self.name() == "english"
    }

    /// Whether `I` is the capital of `ı`, and `İ` that of `i`.
    pub fn has_dotless_i(self) -> bool {
        self.name() == "turkish"
    }

    /// Whether a word, in lower case, says nothing by itself.
    pub fn is_stop_word(self, word: &str) -> bool {
        if word.len() >= STOP_WORD_BYTES_END {
            return false;
        }
        let words = STOP_WORDS[self.0].get_or_init(|| LANGUAGES[self.0].stop_words.lines().collect());
        words.contains(word)
    }

    /// The stem of a word. Errors: those of the statement's interrupt.
    pub fn stem(self, word: &str) -> Result<Cow<'_, str>> {
        match STEMS[self.0].get_or_init(|| Stems::named(self.name())) {
            Some(stems) => stems.stem(word),
            None => Ok(Cow::Borrowed(word)),
        }
    }
}

impl std::fmt::Debug for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What indexes have stored: a change here makes indexes of before useless.
    #[test]
    fn stems_are_those_that_indexes_have() {
        let expected = [
            "danish: hundene undersøgelser → hund undersøg",
            "dutch: katten lopende → kat lopend",
            "english: blueberries running coffee generously → blueberri run coffe generous",
            "finnish: taloissa kirjoja → talo kirj",
            "french: courant cours étés → cour cour été",
            "german: häuser laufend → haus laufend",
            "hungarian: házakban könyvek → ház könyv",
            "italian: correndo gatti → corr gatt",
            "norwegian: hundene bøker → hund bøk",
            "portuguese: correndo gatos → corr gat",
            "romanian: pisicile alergând → pisic alerg",
            "russian: кошками бегущий → кошк бегущ",
            "spanish: corriendo gatos → corr gat",
            "swedish: hundarna böckerna → hund böck",
            "turkish: kedilerin evlerde → kedi ev",
            "none: blueberries → blueberries",
        ];
        let found = expected.map(|line| {
            let (language, rest) = line.split_once(": ").expect("a language");
            let (words, _) = rest.split_once(" → ").expect("words");
            let by = Language::named(language).expect("known");
            let stems = words.split(' ').map(|word| by.stem(word));
            let stems: Vec<Cow<'_, str>> = stems.collect::<Result<_>>().expect("no interrupt");
            format!("{language}: {words} → {}", stems.join(" "))
        });
        assert_eq!(found.join("\n"), expected.join("\n"));
    }

    #[test]
    fn names_and_codes_of_any_case() {
        for (name, language) in [
            ("EN", "english"),
            ("French", "french"),
            ("nb", "norwegian"),
            ("NONE", "none"),
        ] {
            assert_eq!(Language::named(name).map(Language::name), Some(language));
        }
        assert_eq!(Language::named("klingon"), None);
        let english = Language::named("en").expect("known");
        assert!(english.is_stop_word("the") && english.is_stop_word("don't") && !english.is_stop_word("fox"));
        assert!(!Language::none().is_stop_word("the"));
        let longest = LANGUAGES
            .iter()
            .flat_map(|language| language.stop_words.lines())
            .map(str::len);
        assert!(longest.max().is_some_and(|longest| longest < STOP_WORD_BYTES_END));
    }
}
