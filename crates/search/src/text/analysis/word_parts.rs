//! Words that are made of several: `Wi-Fi`, `PowerShot500`, `O'Neil's`.

use super::Token;
use std::collections::HashSet;

/// How such words are taken apart, and what becomes of the parts.
#[derive(Debug)]
pub(super) struct WordParts {
    pub(super) words: bool,
    pub(super) numbers: bool,
    pub(super) join_words: bool,
    pub(super) join_numbers: bool,
    pub(super) join_all: bool,
    pub(super) original: bool,
    pub(super) by_case: bool,
    pub(super) by_digits: bool,
    pub(super) possessive: bool,
    pub(super) kept: HashSet<String>,
    pub(super) kept_ignores_case: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Upper,
    Lower,
    Digit,
    Other,
}

fn kind(c: char) -> Kind {
    match c {
        c if c.is_uppercase() => Kind::Upper,
        c if c.is_alphabetic() => Kind::Lower,
        c if c.is_numeric() => Kind::Digit,
        _ => Kind::Other,
    }
}

struct Part<'a> {
    text: &'a str,
    at: usize,
    is_number: bool,
}

impl WordParts {
    /// The tokens with parts of words in their places.
    pub(super) fn apply(&self, tokens: Vec<Token>) -> Vec<Token> {
        let mut out = Vec::with_capacity(tokens.len());
        let mut added = 0;
        for mut token in tokens {
            token.position += added;
            let is_kept = match self.kept_ignores_case {
                true => self.kept.contains(&token.text.to_lowercase()),
                false => self.kept.contains(&token.text),
            };
            let parts = self.parts(&token.text);
            if is_kept || parts.len() == 1 && parts[0].text == token.text || parts.is_empty() {
                if !parts.is_empty() || is_kept || self.original {
                    out.push(token);
                }
                continue;
            }
            added += self.push(&token, &parts, &mut out);
        }
        out.sort_by_key(|token| (token.position, token.start));
        out
    }

    /// Adds the parts of a token; how many positions more they take.
    fn push(&self, token: &Token, parts: &[Part<'_>], out: &mut Vec<Token>) -> u32 {
        let part = |text: String, at: usize, until: usize, position: u32| Token {
            text,
            position,
            start: token.start + at as u32,
            end: (token.start + until as u32).min(token.end),
        };
        if self.original {
            out.push(token.clone());
        }
        let mut position = token.position;
        let mut begun: Option<(String, usize, usize, bool, u32)> = None;
        for (number, each) in parts.iter().enumerate() {
            position = token.position + number as u32;
            let until = each.at + each.text.len();
            if if each.is_number { self.numbers } else { self.words } {
                out.push(part(each.text.to_owned(), each.at, until, position));
            }
            match &mut begun {
                Some((joined, _, end, is_number, _)) if *is_number == each.is_number => {
                    joined.push_str(each.text);
                    *end = until;
                }
                _ => {
                    self.join(begun.take(), &part, out);
                    begun = Some((each.text.to_owned(), each.at, until, each.is_number, position));
                }
            }
        }
        self.join(begun, &part, out);
        if self.join_all {
            let all: String = parts.iter().map(|part| part.text).collect();
            let until = parts.last().map_or(0, |part| part.at + part.text.len());
            out.push(part(all, parts[0].at, until, token.position));
        }
        position - token.position
    }

    fn join(
        &self,
        begun: Option<(String, usize, usize, bool, u32)>,
        part: &impl Fn(String, usize, usize, u32) -> Token,
        out: &mut Vec<Token>,
    ) {
        let Some((joined, at, until, is_number, position)) = begun else {
            return;
        };
        if if is_number { self.join_numbers } else { self.join_words } {
            let token = part(joined, at, until, position);
            if !out
                .iter()
                .any(|other| other.text == token.text && other.position == position)
            {
                out.push(token);
            }
        }
    }

    fn parts<'a>(&self, text: &'a str) -> Vec<Part<'a>> {
        let mut out: Vec<Part<'a>> = Vec::new();
        let mut begin: Option<(usize, Kind)> = None;
        let push = |from: usize, until: usize, is_number: bool, out: &mut Vec<Part<'a>>| {
            let part = &text[from..until];
            let is_possessive = matches!(part, "s" | "S") && text[..from].ends_with(['\'', '’']) && !out.is_empty();
            if !(self.possessive && is_possessive) {
                out.push(Part {
                    text: part,
                    at: from,
                    is_number,
                });
            }
        };
        for (at, c) in text.char_indices() {
            let now = kind(c);
            match begin {
                None if now != Kind::Other => begin = Some((at, now)),
                Some((from, before)) if now == Kind::Other => {
                    push(from, at, before == Kind::Digit, &mut out);
                    begin = None;
                }
                Some((from, before)) => {
                    let is_digit_edge = self.by_digits && (before == Kind::Digit) != (now == Kind::Digit);
                    let is_case_edge = self.by_case && before == Kind::Lower && now == Kind::Upper;
                    if is_digit_edge || is_case_edge {
                        push(from, at, before == Kind::Digit, &mut out);
                        begin = Some((at, now));
                    } else {
                        begin = Some((from, now));
                    }
                }
                None => {}
            }
        }
        if let Some((from, before)) = begin {
            push(from, text.len(), before == Kind::Digit, &mut out);
        }
        out
    }
}
