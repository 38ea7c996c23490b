//! `LIKE`, `SIMILAR TO` and regular expressions.

mod pooled;

use super::Expr;
use crate::error::fail;
use crate::types::regex::{self, Flags};
use memchr::memmem::Finder;
use nestor_model::vector::Texts;
use nestor_model::{Result, Value};
use nestor_planner::relation::{Env, Scalar};
use nestor_query::regex::Regex;
use pooled::Pooled;
use std::fmt;
use std::sync::{Arc, Mutex};

/// How text is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `LIKE`.
    Like,
    /// `SIMILAR TO`.
    Similar,
    /// `~`.
    Regex,
}

/// A match of text with a pattern.
#[derive(Clone, Debug)]
pub struct Match {
    /// How.
    pub kind: Kind,
    /// Letters of both cases are the same.
    pub insensitive: bool,
    /// It is not to match.
    pub negated: bool,
    /// What makes the next character of a pattern stand for itself.
    pub escape: Option<char>,
    /// The text.
    pub text: Expr,
    /// The pattern.
    pub pattern: Expr,
    /// The pattern that was met last, compiled.
    pub compiled: Compiled,
}

/// A pattern that was met and what it was compiled to, and what it was compared with last, by each of several threads; clones share it.
#[derive(Clone, Default)]
pub struct Compiled(Arc<Mutex<Option<Met>>>, Arc<Mutex<Vec<Pooled>>>);

/// Pools of which it is known how their texts compare, at most: as many threads run an expression at a time, about.
const POOLS_MAX: usize = 8;

/// A pattern and what it was compiled to.
type Met = (String, Arc<Matcher>);

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiled")
    }
}

/// A compiled pattern.
pub enum Matcher {
    /// Any.
    Regex(Regex),
    /// A text.
    Whole(String),
    /// What it begins with, what follows anywhere in this order, and what it ends with.
    Pieces(String, Vec<Finder<'static>>, String),
}

impl Matcher {
    /// Whether a text matches. Errors: 2201B when that takes too long.
    pub fn matches(&self, text: &str) -> Result<bool> {
        Ok(match self {
            Self::Regex(regex) => regex.is_match(text)?,
            Self::Whole(all) => text == all,
            Self::Pieces(begin, middle, end) => {
                let rest = text.as_bytes().strip_prefix(begin.as_bytes());
                let rest = rest.and_then(|rest| rest.strip_suffix(end.as_bytes()));
                rest.is_some_and(|mut rest| {
                    middle.iter().all(|piece| match piece.find(rest) {
                        Some(at) => {
                            rest = &rest[at + piece.needle().len()..];
                            true
                        }
                        None => false,
                    })
                })
            }
        })
    }
}

/// What matches a `LIKE` whose only signs are `%`.
fn pieces(pattern: &str, escape: Option<char>) -> Option<Matcher> {
    let mut pieces = vec![String::new()];
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            c if Some(c) == escape => chars.next()?,
            '_' => return None,
            '%' => {
                pieces.push(String::new());
                continue;
            }
            c => c,
        };
        pieces.last_mut()?.push(c);
    }
    let end = pieces.pop()?;
    if pieces.is_empty() {
        return Some(Matcher::Whole(end));
    }
    let begin = pieces.remove(0);
    let middle = pieces.iter().filter(|piece| !piece.is_empty());
    let middle = middle.map(|piece| Finder::new(piece).into_owned());
    Some(Matcher::Pieces(begin, middle.collect(), end))
}

impl Match {
    /// Its value for a row.
    pub fn value(&self, row: &[Value], env: &Env<'_>) -> Result<Value> {
        self.of(&self.text.value(row, env)?, &self.pattern.value(row, env)?)
    }

    /// Its value for a text and a pattern. Errors: 2201B, 22025.
    pub fn of(&self, text: &Value, pattern: &Value) -> Result<Value> {
        let (Some(text), Some(pattern)) = (text.as_str(), pattern.as_str()) else {
            return Ok(Value::Null);
        };
        let found = self.matcher(pattern)?.matches(text)?;
        Ok(Value::Bool(found != self.negated))
    }

    /// What tells whether texts match a pattern. Errors: 2201B, 22025.
    pub fn matcher(&self, pattern: &str) -> Result<Arc<Matcher>> {
        let mut last = self.compiled.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((known, matcher)) = &*last
            && known == pattern
        {
            return Ok(matcher.clone());
        }
        let pieces = match self.kind {
            Kind::Like if !self.insensitive => pieces(pattern, self.escape),
            _ => None,
        };
        let matcher = match pieces {
            Some(matcher) => matcher,
            None => {
                let source = match self.kind {
                    Kind::Like => like(pattern, self.escape)?,
                    Kind::Similar => similar(pattern, self.escape)?,
                    Kind::Regex => pattern.to_owned(),
                };
                let flags = Flags {
                    insensitive: self.insensitive,
                    ..Flags::default()
                };
                Matcher::Regex(regex::compile(&source, flags)?)
            }
        };
        let matcher = Arc::new(matcher);
        *last = Some((pattern.to_owned(), matcher.clone()));
        Ok(matcher)
    }

    /// Whether each of the texts of rows that are not null matches, as [`Match::negated`] says. Texts that rows share are matched once.
    ///
    /// Errors: 2201B, 22025, and those of the interrupt.
    pub fn of_texts(&self, texts: &Texts, nulls: Option<&[bool]>, pattern: &str) -> Result<Vec<bool>> {
        let matcher = self.matcher(pattern)?;
        let Some((pool, numbers)) = texts.shared() else {
            return pooled::each(texts, nulls, &matcher, self.negated);
        };
        // Whoever else runs this expression meanwhile begins with a pool of their own.
        let lock = || self.compiled.1.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let take = |all: &mut Vec<Pooled>| {
            let at = all.iter().position(|known| known.is_of(pool, &matcher))?;
            Some(all.remove(at))
        };
        let known = take(&mut lock());
        let mut known = known.unwrap_or_else(|| Pooled::new(pool, matcher.clone()));
        let found = known.of(pool, numbers, nulls, self.negated);
        let mut all = lock();
        if all.len() == POOLS_MAX {
            all.remove(0);
        }
        all.push(known);
        found
    }

    /// What every matching text begins with, of a `LIKE` whose pattern is this.
    pub fn prefix(&self, pattern: &str) -> Option<String> {
        if self.kind != Kind::Like || self.insensitive || self.negated {
            return None;
        }
        let mut out = String::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            match c {
                '%' | '_' => break,
                c if Some(c) == self.escape => out.push(chars.next()?),
                c => out.push(c),
            }
        }
        (!out.is_empty()).then_some(out)
    }
}

/// Whether a text is `LIKE` a pattern whose escape is a backslash.
///
/// Errors: 22025, and those of matching.
pub fn is_like(text: &str, pattern: &str, insensitive: bool) -> Result<bool> {
    if !insensitive && let Some(matcher) = pieces(pattern, Some('\\')) {
        return matcher.matches(text);
    }
    let flags = Flags {
        insensitive,
        ..Flags::default()
    };
    Matcher::Regex(regex::compile(&like(pattern, Some('\\'))?, flags)?).matches(text)
}

fn literal(c: char, out: &mut String) {
    if !c.is_alphanumeric() && c.is_ascii() {
        out.push('\\');
    }
    out.push(c);
}

fn like(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut out = String::from("\\A");
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => match chars.next() {
                Some(c) => literal(c, &mut out),
                None => return fail("22025", "LIKE pattern must not end with escape character"),
            },
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            c => literal(c, &mut out),
        }
    }
    out.push_str("\\z");
    Ok(out)
}

fn similar(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut out = String::from("\\A(?:");
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            // What stands behind it means what it means in regular expressions behind a backslash.
            c if Some(c) == escape => out.extend(chars.next().into_iter().flat_map(|c| ['\\', c])),
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            c @ ('^' | '$' | '.') => literal(c, &mut out),
            c => out.push(c),
        }
    }
    out.push_str(")\\z");
    Ok(out)
}

/// The regular expression of a pattern of `substring(… SIMILAR … ESCAPE …)`, and the group in it that is given: what is between two escaped
/// quotes, or all. What is before them is as short as can be, what is between as long.
///
/// Errors: 2200C for more than two such quotes, 22025.
pub fn similar_part(pattern: &str, escape: Option<char>) -> Result<(String, usize)> {
    let mut out = String::from("\\A(?:");
    let mut quotes = 0;
    let is_marked = escape.is_some_and(|escape| pattern.contains(&format!("{escape}\"")));
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        // Without a mark all of it is the part.
        let lazy = if is_marked && quotes == 0 { "?" } else { "" };
        match c {
            c if Some(c) == escape => match chars.next() {
                Some('"') => {
                    quotes += 1;
                    match quotes {
                        1 => out.push_str(")((?:"),
                        2 => out.push_str("))(?:"),
                        _ => {
                            return fail(
                                "2200C",
                                "SQL regular expression may not contain more than two escape-double-quote separators",
                            );
                        }
                    }
                }
                // What stands behind it means what it means in regular expressions behind a backslash.
                Some(c) => out.extend(['\\', c]),
                None => {}
            },
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            c if in_class => out.push(c),
            '[' => {
                in_class = true;
                out.push('[');
            }
            '%' => out.push_str(&format!(".*{lazy}")),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            c @ ('*' | '+' | '?' | '}') => {
                out.push(c);
                out.push_str(lazy);
            }
            c @ ('^' | '$' | '.') => literal(c, &mut out),
            c => out.push(c),
        }
    }
    out.push_str(match quotes {
        1 => "))\\z",
        _ => ")\\z",
    });
    Ok((out, usize::from(quotes > 0)))
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match (self.kind, self.insensitive, self.negated) {
            (Kind::Like, false, false) => "~~",
            (Kind::Like, false, true) => "!~~",
            (Kind::Like, true, false) => "~~*",
            (Kind::Like, true, true) => "!~~*",
            (Kind::Similar, _, false) => "SIMILAR TO",
            (Kind::Similar, _, true) => "NOT SIMILAR TO",
            (Kind::Regex, false, false) => "~",
            (Kind::Regex, false, true) => "!~",
            (Kind::Regex, true, false) => "~*",
            (Kind::Regex, true, true) => "!~*",
        };
        write!(f, "({} {sign} {})", self.text, self.pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the regular expression of the same pattern.
    #[test]
    fn pieces_match_as_the_expression_does() {
        let patterns = [
            "", "%", "%%", "a", "a%", "%a", "%a%", "a%b", "a%b%c", "%ab%b%", "a\\%b", "\\a%", "%é%", "ab%ba", "a%%b",
        ];
        let texts = [
            "", "a", "b", "ab", "aab", "abb", "a%b", "aXb", "abc", "aXbYc", "é", "aéb", "aba", "abba", "ababab", "a\nb",
        ];
        for pattern in patterns {
            let pieces = pieces(pattern, Some('\\')).expect("no other signs");
            let source = like(pattern, Some('\\')).expect("a pattern");
            let expression = Matcher::Regex(regex::compile(&source, Flags::default()).expect("an expression"));
            for text in texts {
                let (found, wanted) = (pieces.matches(text), expression.matches(text));
                assert_eq!(found.ok(), wanted.ok(), "{text:?} LIKE {pattern:?}");
            }
        }
        assert!(pieces("a_b", None).is_none() && pieces("a\\", Some('\\')).is_none());
    }
}
