//! From a text to its words, and from words to terms.

use super::Language;
use super::unicode::{is_delimiter, is_mark};
use icu_normalizer::DecomposingNormalizerBorrowed;
use md5::{Digest, Md5};
use nestor_model::Result;
use nestor_model::statement::{BYTES_PER_UNIT, note, work};
use std::borrow::Cow;

/// Longer terms are stored as their beginning and a hash.
const TERM_BYTES_MAX: usize = 256;
/// Bytes of the beginning; hexadecimal digits of the hash fill up the rest.
const TERM_BEGINNING: usize = 224;

/// Bytes of a text between two counts of the work on it.
const PIECE: usize = 4096;
/// Longer pieces are cut wherever a character ends.
const PIECE_MAX: usize = 16 * PIECE;
/// Bytes of a text whose characters take as much as one unit of work to take apart.
const DECOMPOSED_PER_UNIT: usize = 32;

/// A term as indexes store it.
pub fn stored_term(term: &str) -> Cow<'_, str> {
    if term.len() <= TERM_BYTES_MAX {
        return Cow::Borrowed(term);
    }
    note(term.len() / BYTES_PER_UNIT);
    let hash: String = Md5::digest(term).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut end = TERM_BEGINNING;
    while !term.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}{hash}", &term[..end]))
}

/// The version of a text index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// Only case of ASCII letters is ignored, and only ASCII characters delimit. A document has one language, and one that is
    /// not known is none.
    One = 1,
    /// As the first, but documents within documents have languages of their own.
    Two = 2,
    /// Case and diacritics are ignored as Unicode defines them.
    Three = 3,
}

/// What tells words apart beside their letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sensitivity {
    /// `$caseSensitive`.
    pub(super) case: bool,
    /// `$diacriticSensitive`.
    pub(super) diacritics: bool,
}

/// How texts of one language become terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub(super) version: Version,
    pub(super) language: Language,
    pub(super) sensitivity: Sensitivity,
}

impl Words {
    /// Whether a character is part of a word.
    pub(super) fn is_part(self, c: char) -> bool {
        match c {
            '\'' => self.language.has_apostrophes(),
            c if c.is_ascii() || self.version == Version::Three => !is_delimiter(c),
            _ => true,
        }
    }

    /// Calls `each` with the term of each word of a text but of stop words.
    ///
    /// Errors: those of `each` and of the statement's interrupt.
    pub(super) fn for_each_term(self, text: &str, each: &mut dyn FnMut(Cow<'_, str>) -> Result<()>) -> Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let end = self.run(rest, true)?;
            if let Some(term) = self.term(&rest[..end])? {
                each(term)?;
            }
            rest = &rest[end..];
            rest = &rest[self.run(rest, false)?..];
        }
        Ok(())
    }

    /// How many bytes of a text are one word from its beginning, or how many are between words.
    ///
    /// Errors: those of the statement's interrupt.
    pub(super) fn run(self, text: &str, of_word: bool) -> Result<usize> {
        work(1)?;
        let mut counted = 0;
        for (at, c) in text.char_indices() {
            if self.is_part(c) != of_word {
                return Ok(at);
            }
            if at >= counted + PIECE {
                counted = at;
                work(PIECE / DECOMPOSED_PER_UNIT)?;
            }
        }
        Ok(text.len())
    }

    /// The term that a word is; none for a stop word and for no word at all.
    ///
    /// Errors: those of the statement's interrupt.
    pub(super) fn term(self, word: &str) -> Result<Option<Cow<'_, str>>> {
        let word = match self.language.has_apostrophes() {
            true => word.trim_matches('\''),
            false => word,
        };
        if word.is_empty() {
            return Ok(None);
        }
        let lower = self.lower(word)?;
        if self.language.is_stop_word(&lower) {
            return Ok(None);
        }
        // Stemmers want lower case; what is told apart by its case is stemmed as it is.
        let word = match self.sensitivity.case {
            true => Cow::Borrowed(word),
            false => lower,
        };
        let stem = match word {
            Cow::Borrowed(word) => self.language.stem(word)?,
            Cow::Owned(word) => match self.language.stem(&word)? {
                Cow::Owned(stem) => Cow::Owned(stem),
                Cow::Borrowed(stem) if stem.len() == word.len() => Cow::Owned(word),
                Cow::Borrowed(stem) => Cow::Owned(stem.to_owned()),
            },
        };
        self.unmarked(stem).map(Some)
    }

    /// A text as phrases are looked for in it: without what is not to be told apart.
    ///
    /// Errors: those of memory and of the statement's interrupt.
    pub(super) fn folded(self, text: &str) -> Result<Cow<'_, str>> {
        let lower = match self.sensitivity.case {
            true => Cow::Borrowed(text),
            false => self.lower(text)?,
        };
        self.unmarked(lower)
    }

    fn lower(self, text: &str) -> Result<Cow<'_, str>> {
        if self.version < Version::Three || text.is_ascii() && !self.language.has_dotless_i() {
            work(text.len() / BYTES_PER_UNIT)?;
            return Ok(match text.bytes().any(|b| b.is_ascii_uppercase()) {
                true => Cow::Owned(text.to_ascii_lowercase()),
                false => Cow::Borrowed(text),
            });
        }
        let turkish = self.language.has_dotless_i();
        let mut out = String::with_capacity(text.len());
        for_each_piece(text, |piece| {
            work(piece.len() / DECOMPOSED_PER_UNIT)?;
            for c in piece.chars() {
                match c {
                    'I' if turkish => out.push('ı'),
                    'İ' if turkish => out.push('i'),
                    'ς' => out.push('σ'),
                    c => out.extend(c.to_lowercase()),
                }
            }
            Ok(())
        })?;
        Ok(Cow::Owned(out))
    }

    /// A text without the marks that are not to be told apart.
    fn unmarked(self, text: Cow<'_, str>) -> Result<Cow<'_, str>> {
        if self.version < Version::Three || self.sensitivity.diacritics || text.is_ascii() {
            return Ok(text);
        }
        let mut out = String::with_capacity(text.len());
        for_each_piece(&text, |piece| {
            work(piece.len() / DECOMPOSED_PER_UNIT)?;
            let apart = const { DecomposingNormalizerBorrowed::new_nfd() }.normalize(piece);
            out.extend(apart.chars().filter(|c| !is_mark(*c)));
            Ok(())
        })?;
        Ok(Cow::Owned(out))
    }
}

/// Calls `each` with the pieces of a text, which end where the next character takes no part in the one before.
fn for_each_piece(text: &str, mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let mut begin = 0;
    if text.len() > PIECE {
        for (at, c) in text.char_indices() {
            // Ideographs, and syllables that are one character each.
            let is_alone = matches!(c, '\0'..='\x7F' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}');
            if at - begin >= PIECE_MAX || is_alone && at - begin >= PIECE {
                each(&text[begin..at])?;
                begin = at;
            }
        }
    }
    each(&text[begin..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(version: Version, language: &str, sensitivity: Sensitivity, text: &str) -> String {
        let words = Words {
            version,
            language: Language::named(language).expect("known"),
            sensitivity,
        };
        let mut found = Vec::new();
        words
            .for_each_term(text, &mut |term| {
                found.push(term.into_owned());
                Ok(())
            })
            .expect("no interrupt");
        found.join(" ")
    }

    #[test]
    fn versions_see_different_letters_as_the_same() {
        for (version, language, text, expected) in [
            (
                Version::Three,
                "english",
                "The quick Brown-foxes, don't!",
                "quick brown fox",
            ),
            (
                Version::Three,
                "english",
                "ÉTÉ Été café's _a_ x\0y",
                "ete ete cafe _a_ x y",
            ),
            (Version::Three, "none", "The foxes' «den»", "the foxes den"),
            (Version::Three, "french", "qu'il «fermée» l'école", "ferm ecol"),
            (Version::Three, "turkish", "IŞIK İstanbul", "ısık istanbul"),
            (
                Version::Three,
                "none",
                "数据库系统 こんにちは、世界",
                "数据库系统 こんにちは 世界",
            ),
            (Version::Two, "none", "ÉTÉ «Den» don't", "ÉtÉ «den» don t"),
            (Version::One, "english", "Running FOXES", "run fox"),
        ] {
            assert_eq!(
                terms(version, language, Sensitivity::default(), text),
                expected,
                "{text}"
            );
        }
    }

    /// Long texts are taken apart piece by piece; how they are cut changes nothing.
    #[test]
    fn long_texts_are_folded_as_short_ones() {
        let words = Words {
            version: Version::Three,
            language: Language::none(),
            sensitivity: Sensitivity::default(),
        };
        for part in [
            "É",
            "e\u{301}",
            "É ",
            "数",
            "\u{1100}\u{1161}\u{11A8}",
            "각\u{301}",
            "a\u{327}\u{301} ",
        ] {
            let plain = words.folded(part).expect("no interrupt").into_owned();
            let times = 3 * PIECE_MAX / part.len();
            let folded = words.folded(&part.repeat(times)).expect("no interrupt").into_owned();
            assert!(folded == plain.repeat(times), "{part:?}");
            let long = part.trim().repeat(times);
            let term = words.term(&long).expect("no interrupt");
            assert_eq!(term.as_deref(), Some(&*plain.trim().repeat(times)), "{part:?}");
        }
    }

    #[test]
    fn long_terms_are_cut_and_told_apart() {
        let (long, other) = ("é".repeat(200), format!("{}x", "é".repeat(200)));
        assert_eq!(stored_term("fox"), "fox");
        assert_eq!(stored_term(&long).len(), TERM_BYTES_MAX);
        assert_ne!(stored_term(&long), stored_term(&other));
        assert_eq!(stored_term(&format!("x{long}")).len(), TERM_BYTES_MAX - 1);
    }

    #[test]
    fn what_is_told_apart_stays() {
        let (case, diacritics) = (true, true);
        for (sensitivity, expected) in [
            (
                Sensitivity {
                    case,
                    diacritics: false,
                },
                "Cafe COFFEE coffe",
            ),
            (
                Sensitivity {
                    case: false,
                    diacritics,
                },
                "café coffe coffe",
            ),
            (Sensitivity { case, diacritics }, "Café COFFEE coffe"),
        ] {
            let found = terms(Version::Three, "english", sensitivity, "The Café COFFEE coffee");
            assert_eq!(found, expected, "{sensitivity:?}");
        }
    }
}
