//! PostgreSQL's regular expressions: their flags, and what is written otherwise than the matcher's.

use crate::error::{error, fail};
use nestor_model::Result;
use nestor_query::regex::Regex;
use std::cell::RefCell;

/// Compiled patterns that a thread keeps.
const KEPT: usize = 16;

/// A pattern, its flags and what was made of them.
type Compiled = (String, Flags, Regex);

thread_local! {
    /// The patterns that were used last, the latest first: functions get theirs anew with each row.
    static RECENT: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

/// How a pattern is read and text compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// Letters of both cases are the same.
    pub insensitive: bool,
    /// A dot stands for line breaks too.
    pub dots_break: bool,
    /// `^` and `$` stand at the ends of lines too.
    pub lines: bool,
    /// White space and comments of the pattern do not count.
    pub expanded: bool,
    /// The pattern is the text itself.
    pub literal: bool,
    /// All occurrences are wanted.
    pub global: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            insensitive: false,
            dots_break: true,
            lines: false,
            expanded: false,
            literal: false,
            global: false,
        }
    }
}

impl Flags {
    /// Flags and one more. Errors: 22023 for one that there is not, 0A000 for basic regular expressions.
    fn with(mut self, flag: char) -> Result<Self> {
        match flag {
            'i' => self.insensitive = true,
            'c' => self.insensitive = false,
            'g' => self.global = true,
            'n' | 'm' => (self.dots_break, self.lines) = (false, true),
            'p' => (self.dots_break, self.lines) = (false, false),
            'w' => (self.dots_break, self.lines) = (true, true),
            's' => (self.dots_break, self.lines) = (true, false),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'e' => self.literal = false,
            'b' => return fail("0A000", "basic regular expressions are not supported"),
            _ => return fail("22023", format!("invalid regular expression option: \"{flag}\"")),
        }
        Ok(self)
    }

    /// Those that letters stand for. Errors: 22023, 0A000.
    pub fn of(letters: &str) -> Result<Self> {
        letters.chars().try_fold(Self::default(), Self::with)
    }
}

/// A compiled pattern. Errors: 2201B.
pub fn compile(pattern: &str, flags: Flags) -> Result<Regex> {
    RECENT.with_borrow_mut(|recent| {
        let is_it = |kept: &Compiled| kept.1 == flags && kept.0 == pattern;
        match recent.iter().position(is_it) {
            // The first two may go by turns.
            Some(at) if at > 1 => recent[..=at].rotate_right(1),
            Some(at) => return Ok(recent[at].2.clone()),
            None => {
                let regex = compiled(pattern, flags)?;
                recent.truncate(KEPT - 1);
                recent.insert(0, (pattern.to_owned(), flags, regex));
            }
        }
        Ok(recent[0].2.clone())
    })
}

fn compiled(pattern: &str, flags: Flags) -> Result<Regex> {
    let (mut flags, mut pattern) = (flags, pattern);
    if let Some(text) = pattern.strip_prefix("***=") {
        (flags.literal, pattern) = (true, text);
    }
    if let Some((letters, rest)) = embedded(pattern.strip_prefix("***:").unwrap_or(pattern)) {
        flags = letters
            .chars()
            .try_fold(flags, Flags::with)
            .map_err(|_| invalid("invalid embedded option"))?;
        pattern = rest;
    }
    let source = match flags.literal {
        true => quoted(pattern),
        false => translated(pattern),
    };
    let options = [
        (flags.insensitive, 'i'),
        (flags.dots_break, 's'),
        (flags.lines, 'm'),
        (flags.expanded && !flags.literal, 'x'),
    ];
    let options: String = options.iter().filter(|(on, _)| *on).map(|(_, letter)| letter).collect();
    Regex::new(&source, &options).map_err(|e| invalid(e.message()))
}

fn invalid(message: &str) -> nestor_model::Error {
    error("2201B", format!("invalid regular expression: {message}"))
}

/// The options `(?xyz)` that a pattern begins with, and what follows them.
fn embedded(pattern: &str) -> Option<(&str, &str)> {
    let (letters, rest) = pattern.strip_prefix("(?")?.split_once(')')?;
    let plain = !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_lowercase());
    plain.then_some((letters, rest))
}

/// The pattern that stands for a text.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Ends of words and of the text in the matcher's form.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    // Within brackets; the first character there may be one itself.
    let (mut brackets, mut first) = (false, false);
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('m') if !brackets => out.push_str("\\b(?=\\w)"),
                Some('M') if !brackets => out.push_str("\\b(?<=\\w)"),
                Some('y') if !brackets => out.push_str("\\b"),
                Some('Y') if !brackets => out.push_str("\\B"),
                Some('Z') if !brackets => out.push_str("\\z"),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if brackets && matches!(chars.peek(), Some(':' | '.' | '=')) => {
                // A class within brackets ends with its own sign.
                let sign = chars.next().unwrap_or(':');
                out.extend(['[', sign]);
                while let Some(c) = chars.next() {
                    out.push(c);
                    if c == sign && chars.peek() == Some(&']') {
                        break;
                    }
                }
                out.extend(chars.next());
            }
            '[' if !brackets => {
                (brackets, first) = (true, true);
                out.push('[');
                if chars.peek() == Some(&'^') {
                    out.extend(chars.next());
                }
                continue;
            }
            ']' if brackets && !first => {
                brackets = false;
                out.push(']');
            }
            ']' if brackets => out.push_str("\\]"),
            c => out.push(c),
        }
        first = false;
    }
    out
}
