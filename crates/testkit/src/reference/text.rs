//! Text search over a list of texts, one text after the other, with a small dictionary in place of stemmers.
//!
//! What a word's stem is stands in the dictionary of its language, taken from Snowball's published vocabularies; words beyond it
//! are not asked for. So nothing here is computed by what indexes are built with.
//!
//! Source: manual, "$text" (terms, phrases, negation, case and diacritics), "$meta" and "Assign Weights to Text Search Results"
//! (scores).

use std::collections::BTreeSet;

/// A language of texts, with the words that texts may have.
#[derive(Debug, PartialEq)]
pub struct Tongue {
    /// Its name.
    pub name: &'static str,
    /// Its two letters.
    pub code: &'static str,
    /// Words in lower case, and their stems.
    pub words: &'static [(&'static str, &'static str)],
    /// Words that are not looked for.
    pub stop_words: &'static [&'static str],
}

/// The languages; the last one is none.
pub static TONGUES: [Tongue; 6] = [
    Tongue {
        name: "english",
        code: "en",
        words: &[
            ("coffee", "coffe"),
            ("foxes", "fox"),
            ("fox", "fox"),
            ("running", "run"),
            ("cakes", "cake"),
            ("shops", "shop"),
            ("shopping", "shop"),
            ("generously", "generous"),
            ("blueberries", "blueberri"),
            ("n0_2", "n0_2"),
        ],
        stop_words: &["the", "and", "don't"],
    },
    Tongue {
        name: "french",
        code: "fr",
        words: &[("courant", "cour"), ("cours", "cour"), ("étés", "été")],
        stop_words: &["avec", "les"],
    },
    Tongue {
        name: "german",
        code: "de",
        words: &[("häuser", "haus"), ("haus", "haus"), ("laufend", "laufend")],
        stop_words: &["und", "der"],
    },
    Tongue {
        name: "spanish",
        code: "es",
        words: &[("corriendo", "corr"), ("gatos", "gat")],
        stop_words: &["con", "los"],
    },
    Tongue {
        name: "russian",
        code: "ru",
        words: &[("кошками", "кошк"), ("бегущий", "бегущ")],
        stop_words: &["и"],
    },
    Tongue {
        name: "none",
        code: "none",
        words: &[
            ("the", "the"),
            ("coffee", "coffee"),
            ("foxes", "foxes"),
            ("häuser", "häuser"),
            ("étés", "étés"),
            ("кошками", "кошками"),
        ],
        stop_words: &[],
    },
];

/// A text of a document.
#[derive(Debug, Clone)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Its language.
    pub tongue: &'static Tongue,
    /// How much it counts.
    pub weight: f64,
}

/// A part of what is searched for.
#[derive(Debug, Clone)]
pub enum Part {
    /// A word that documents may have.
    Word(String),
    /// A word that documents must not have.
    NotWord(String),
    /// A text that documents must have; its words count as words do.
    Phrase(String),
    /// A text that documents must not have.
    NotPhrase(String),
}

/// What is searched for.
#[derive(Debug, Clone)]
pub struct Search {
    /// The version of the index.
    pub version: i32,
    /// Its parts.
    pub parts: Vec<Part>,
    /// The language of its words.
    pub tongue: &'static Tongue,
    /// Whether case counts.
    pub case: bool,
    /// Whether diacritics count.
    pub diacritics: bool,
}

impl Search {
    /// The operand of `$search`.
    pub fn text(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Word(word) => word.clone(),
            Part::NotWord(word) => format!("-{word}"),
            Part::Phrase(phrase) => format!("\"{phrase}\""),
            Part::NotPhrase(phrase) => format!("-\"{phrase}\""),
        });
        parts.collect::<Vec<_>>().join(" ")
    }

    /// What a document with these texts scores; `None` if it is not found.
    pub fn score(&self, texts: &[Text]) -> Option<f64> {
        let (mut wanted, mut exact, mut unwanted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for part in &self.parts {
            match part {
                Part::Word(text) | Part::Phrase(text) => {
                    wanted.extend(self.terms(text, self.tongue, false));
                    exact.extend(self.terms(text, self.tongue, true));
                }
                Part::NotWord(text) => unwanted.extend(self.terms(text, self.tongue, true)),
                Part::NotPhrase(_) => {}
            }
        }
        let of_all = |exact: bool| -> BTreeSet<String> {
            let terms = texts.iter().flat_map(|text| self.terms(&text.text, text.tongue, exact));
            terms.collect()
        };
        // An index knows no case, and what it does not find is not found.
        let (indexed, own) = (of_all(false), of_all(true));
        let has_phrase = |phrase: &str| {
            texts
                .iter()
                .any(|text| self.folded(&text.text).contains(&self.folded(phrase)))
        };
        let is_found = indexed.iter().any(|term| wanted.contains(term))
            && own.iter().any(|term| exact.contains(term))
            && !own.iter().any(|term| unwanted.contains(term))
            && self.parts.iter().all(|part| match part {
                Part::Phrase(phrase) => has_phrase(phrase),
                Part::NotPhrase(phrase) => !has_phrase(phrase),
                Part::Word(_) | Part::NotWord(_) => true,
            });
        if !is_found {
            return None;
        }
        let mut score = 0.0;
        for text in texts {
            let terms = self.terms(&text.text, text.tongue, false);
            for term in &wanted {
                let times = terms.iter().filter(|own| *own == term).count();
                if times > 0 {
                    let repeated: f64 = (0..times).map(|n| 1.0 / f64::powi(2.0, n as i32)).sum();
                    let density = 0.5 + 0.5 * times as f64 / terms.len() as f64;
                    let alone = if text.text.to_ascii_lowercase() == *term {
                        1.1
                    } else {
                        1.0
                    };
                    score += text.weight * repeated * density * alone;
                }
            }
        }
        Some(score)
    }

    /// The terms of a text, each as often as it comes; told apart as documents or as the index does.
    fn terms(&self, text: &str, tongue: &Tongue, exact: bool) -> Vec<String> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\'' && tongue.name == "english";
        let words = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
        words.filter_map(|word| self.term(word, tongue, exact)).collect()
    }

    fn term(&self, word: &str, tongue: &Tongue, exact: bool) -> Option<String> {
        let lower = self.lower(word);
        if tongue.stop_words.contains(&lower.as_str()) {
            return None;
        }
        let known = tongue.words.iter().find(|(known, _)| *known == lower);
        let stem = known.map_or(lower.as_str(), |(_, stem)| stem);
        let term = match exact && self.case && word != lower {
            false => stem.to_owned(),
            // Stemmers know small letters: a word of capitals is its own stem.
            true if word.chars().all(|c| !c.is_lowercase()) => word.to_owned(),
            true => capitalized(stem),
        };
        match self.version < 3 || exact && self.diacritics {
            true => Some(term),
            false => Some(plain(&term)),
        }
    }

    /// A text as phrases are looked for in it.
    fn folded(&self, text: &str) -> String {
        let text = if self.case { text.to_owned() } else { self.lower(text) };
        match self.version < 3 || self.diacritics {
            true => text,
            false => plain(&text),
        }
    }

    fn lower(&self, text: &str) -> String {
        match self.version < 3 {
            true => text.to_ascii_lowercase(),
            false => text.to_lowercase(),
        }
    }
}

/// A word with a capital in front.
pub fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

/// Letters without their marks, those that the dictionary has.
fn plain(text: &str) -> String {
    let letter = |c| match c {
        'é' => 'e',
        'É' => 'E',
        'ä' => 'a',
        'Ä' => 'A',
        'й' => 'и',
        'Й' => 'И',
        other => other,
    };
    text.chars().map(letter).collect()
}
