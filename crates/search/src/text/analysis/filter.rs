//! Token filters: what becomes of the tokens that a tokenizer found.

use super::characters::{Form, folded, in_form};
use super::grams::Grams;
use super::word_parts::WordParts;
use super::{Token, unmarked};
use nestor_model::Result;
use nestor_model::statement::work;
use nestor_query::regex::Regex;
use nestor_query::text::{Language, Stems};
use std::collections::HashSet;

/// What becomes of tokens.
#[derive(Debug)]
pub(super) enum Filter {
    /// Lower case; of Turkish, if so.
    Lowercase {
        is_turkish: bool,
    },
    /// Letters without marks; with the letters as they were beside them.
    Unmarked {
        original: bool,
    },
    /// Letters without marks, in lower case and one form.
    Folded,
    Form(Form),
    /// Leaves out words of a language that say nothing by themselves.
    StopWords(Language),
    /// Leaves out these words.
    Stop {
        words: HashSet<String>,
        ignores_case: bool,
    },
    Stem(Language),
    PorterStem,
    /// `'s` at the end.
    Possessive,
    /// Articles that are written together with the word behind them.
    Elision(&'static [&'static str]),
    SpanishPlural,
    Length {
        min: usize,
        max: usize,
    },
    Reverse,
    Trim,
    /// Other characters in the place of matches, of the first one or all.
    Replace {
        pattern: Regex,
        by: String,
        all: bool,
    },
    Grams {
        grams: Grams,
        is_edge: bool,
        keeps_others: bool,
    },
    Shingles {
        min: usize,
        max: usize,
    },
    WordParts(WordParts),
}

impl Filter {
    /// The tokens that become of these.
    pub(super) fn apply(&self, tokens: Vec<Token>) -> Result<Vec<Token>> {
        work(1 + tokens.len())?;
        let mut tokens = tokens;
        match self {
            Self::StopWords(language) => tokens.retain(|token| !language.is_stop_word(&token.text)),
            Self::Stop { words, ignores_case } => tokens.retain(|token| match ignores_case {
                true => !words.contains(&token.text.to_lowercase()),
                false => !words.contains(&token.text),
            }),
            Self::Length { min, max } => {
                tokens.retain(|token| (*min..=*max).contains(&token.text.chars().count()));
            }
            Self::Unmarked { original: true } => {
                let mut out = Vec::with_capacity(tokens.len());
                for token in tokens {
                    let plain = unmarked(&token.text).filter(|plain| *plain != token.text);
                    let second = plain.map(|text| Token { text, ..token.clone() });
                    out.push(token);
                    out.extend(second);
                }
                tokens = out;
            }
            Self::Grams {
                grams,
                is_edge,
                keeps_others,
            } => return in_grams(tokens, *grams, *is_edge, *keeps_others),
            Self::Shingles { min, max } => return shingles(tokens, *min, *max),
            Self::WordParts(parts) => tokens = parts.apply(tokens),
            _ => {
                for token in &mut tokens {
                    if let Some(text) = self.changed(&token.text)? {
                        token.text = text;
                    }
                }
                tokens.retain(|token| !token.text.is_empty());
            }
        }
        Ok(tokens)
    }

    /// A token as it is written now, where that changes.
    fn changed(&self, text: &str) -> Result<Option<String>> {
        Ok(match self {
            Self::Stem(language) => Some(language.stem(text)?.into_owned()),
            Self::PorterStem => Some(Stems::porter().stem(text)?.into_owned()),
            Self::Possessive => {
                let ending = ["'s", "’s", "＇s", "'S", "’S", "＇S"];
                ending.iter().find_map(|end| text.strip_suffix(end)).map(str::to_owned)
            }
            Self::Elision(articles) => text.split_once(['\'', '’']).and_then(|(article, word)| {
                let is_article = articles.contains(&&*article.to_lowercase());
                is_article.then(|| word.to_owned())
            }),
            Self::SpanishPlural => spanish_singular(text),
            Self::Reverse => Some(text.chars().rev().collect()),
            Self::Replace { pattern, by, all } => Some(replaced(pattern, text, by, *all)?),
            _ => self.letters(text)?,
        })
    }

    /// A text in the letters that terms have, where that changes it.
    pub(super) fn letters(&self, text: &str) -> Result<Option<String>> {
        Ok(match self {
            Self::Lowercase { is_turkish: true } => Some(turkish_lower(text)),
            Self::Lowercase { is_turkish: false } => Some(lower(text)),
            Self::Unmarked { .. } => unmarked(text),
            Self::Folded => Some(folded(&unmarked(text).unwrap_or_else(|| text.to_owned()))),
            Self::Form(form) => Some(in_form(*form, text)),
            Self::Trim => Some(text.trim().to_owned()),
            _ => None,
        })
    }
}

/// Lower case, character by character.
pub(in crate::text) fn lower(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => text.chars().flat_map(char::to_lowercase).collect(),
    }
}

fn turkish_lower(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'I' => out.push('ı'),
            'İ' => out.push('i'),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

fn spanish_singular(text: &str) -> Option<String> {
    let stem = text.strip_suffix('s')?;
    if text.chars().count() < 4 {
        return None;
    }
    let plain = unmarked(stem).unwrap_or_else(|| stem.to_owned());
    if let Some(z) = plain.strip_suffix("ce") {
        return Some(format!("{z}z"));
    }
    let behind = |end: &str| {
        plain
            .strip_suffix(end)
            .filter(|rest| rest.ends_with(['l', 'n', 'r', 'd', 's', 'j', 'y']))
    };
    match behind("e") {
        Some(singular) => Some(singular.to_owned()),
        None if plain.ends_with(['a', 'e', 'i', 'o', 'u']) => Some(plain),
        None => None,
    }
}

fn replaced(pattern: &Regex, text: &str, by: &str, all: bool) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    while from <= text.len() {
        work(1)?;
        let Some(Some((start, end))) = pattern
            .captures_at(text, from)?
            .and_then(|groups| groups.first().copied())
        else {
            break;
        };
        out.push_str(&text[from..start]);
        out.push_str(by);
        from = end;
        if end == start {
            let Some(c) = text[end..].chars().next() else {
                return Ok(out);
            };
            out.push(c);
            from += c.len_utf8();
        }
        if !all {
            break;
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Ok(out)
}

fn in_grams(tokens: Vec<Token>, grams: Grams, is_edge: bool, keeps_others: bool) -> Result<Vec<Token>> {
    let mut out = Vec::with_capacity(tokens.len());
    for token in tokens {
        let mut has_whole = false;
        let mut push = |_: usize, piece: &str| {
            has_whole |= piece.len() == token.text.len();
            out.push(Token {
                text: piece.to_owned(),
                ..token.clone()
            });
            work(1)
        };
        match is_edge {
            true => grams.edges(&token.text, &mut push)?,
            false => grams.all(&token.text, &mut push)?,
        }
        if keeps_others && !has_whole {
            out.push(token);
        }
    }
    Ok(out)
}

fn shingles(tokens: Vec<Token>, min: usize, max: usize) -> Result<Vec<Token>> {
    let mut out = Vec::new();
    for from in 0..tokens.len() {
        out.push(tokens[from].clone());
        for size in min..=max {
            let Some(words) = tokens.get(from..from + size) else {
                break;
            };
            work(1)?;
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            out.push(Token {
                text: texts.join(" "),
                end: words[size - 1].end,
                ..tokens[from].clone()
            });
        }
    }
    Ok(out)
}
