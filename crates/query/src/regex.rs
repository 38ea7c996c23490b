//! Regular expressions: PCRE2, as MongoDB documents it ("Perl compatible regular expressions").
//!
//! Text is UTF-8 and patterns are matched in UTF mode. A match may not run away: it has limits of backtracking and of memory, so a
//! catastrophic pattern ends in error 51156 instead of hanging, and it looks at the interrupt of the statement ([`crate::pcre`]).

use crate::pcre::{Failure, Groups, Program};
use nestor_model::{Error, Result, Str, bail};
use pcre2_sys::{PCRE2_CASELESS, PCRE2_DOTALL, PCRE2_EXTENDED, PCRE2_MULTILINE};
use std::fmt;
use std::sync::Arc;

/// Longest pattern in bytes.
pub const PATTERN_BYTES_MAX: usize = 16 * 1024;

/// Error when a match exceeds its limits.
const MATCH_FAILED: i32 = 51156;

/// Byte ranges of a match and of its groups; `None` for a group that took no part.
pub type Captures = Vec<Option<(usize, usize)>>;

/// A compiled regular expression; clones share it.
#[derive(Clone)]
pub struct Regex {
    pattern: Str,
    options: Str,
    program: Arc<Program>,
}

/// The prefix of every text that a regular expression matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The text.
    pub text: String,
    /// Every text with that prefix matches, so index bounds alone decide.
    pub exact: bool,
}

impl Regex {
    /// Compiles `pattern` with option letters `i`, `m`, `s`, `x` and `u` (which changes nothing: text is
    /// always UTF-8).
    ///
    /// # Errors
    /// 2 for a zero byte in the pattern, 51108 for an unknown option, 51091 when the pattern is too long or malformed.
    pub fn new(pattern: &str, options: &str) -> Result<Self> {
        if pattern.contains('\0') {
            bail!(BadValue, "regular expression cannot contain an embedded null byte");
        }
        let mut flags = 0;
        for letter in options.chars() {
            flags |= match letter {
                'i' => PCRE2_CASELESS,
                'm' => PCRE2_MULTILINE,
                's' => PCRE2_DOTALL,
                'x' => PCRE2_EXTENDED,
                'u' => 0,
                _ => bail!(51108, "invalid flag in regex options: {}", letter.escape_default()),
            };
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            bail!(51091, "regular expression is longer than {PATTERN_BYTES_MAX} bytes");
        }
        let program = Program::new(pattern, flags).map_err(|failure| match failure {
            Failure::Reason(reason) => Error::location(51091, format!("regular expression is invalid: {reason}")),
            Failure::Stopped(error) => error,
        })?;
        Ok(Self {
            pattern: pattern.into(),
            options: options.into(),
            program: Arc::new(program),
        })
    }

    /// The pattern as given.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The option letters as given.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// True when the expression matches anywhere in `text`. Error 51156 when it takes too long.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        let matched = self.program.find(text, 0, |_| ()).map_err(match_failed)?;
        Ok(matched.is_some())
    }

    /// The first match at or after byte `start`: the whole match, then each group.
    pub fn captures_at(&self, text: &str, start: usize) -> Result<Option<Captures>> {
        let groups = |groups: &mut Groups<'_>| groups.collect();
        self.program.find(text, start, groups).map_err(match_failed)
    }

    /// The literal text that every match must start the string with, when the pattern says so plainly:
    /// `^` or `\A`, then ordinary characters; case-sensitive, no options but `s` and `u`.
    pub fn prefix(&self) -> Option<Prefix> {
        if !self.options.bytes().all(|b| matches!(b, b's' | b'u')) {
            return None;
        }
        let mut rest = self
            .pattern
            .strip_prefix('^')
            .or_else(|| self.pattern.strip_prefix("\\A"))?;
        // Alternation makes the anchor hold for one branch only.
        if self.pattern.contains('|') {
            return None;
        }
        let mut text = String::new();
        loop {
            let mut chars = rest.chars();
            let literal = match chars.next() {
                None => return (!text.is_empty()).then_some(Prefix { text, exact: true }),
                Some('\\') => match chars.next() {
                    Some(c) if !c.is_ascii_alphanumeric() && c.is_ascii() => c,
                    _ => break,
                },
                Some('[' | ']' | '(' | ')' | '.' | '*' | '+' | '?' | '{' | '}' | '$' | '^') => break,
                Some(c) => c,
            };
            let after = chars.as_str();
            if after.starts_with(['*', '?', '{']) {
                break;
            }
            text.push(literal);
            rest = after;
        }
        let exact = matches!(rest, ".*") && self.options.contains('s');
        (!text.is_empty()).then_some(Prefix { text, exact })
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.pattern, self.options)
    }
}

fn match_failed(failure: Failure) -> Error {
    match failure {
        Failure::Reason(reason) => Error::location(
            MATCH_FAILED,
            format!("error occurred while executing the regular expression: {reason}"),
        ),
        Failure::Stopped(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, options: &str, text: &str) -> bool {
        Regex::new(pattern, options).expect(pattern).is_match(text).expect(text)
    }

    #[test]
    fn pcre_behaviour() {
        assert!(matches("^abc$", "i", "ABC"));
        assert!(matches("^b", "m", "a\nb") && !matches("^b", "", "a\nb"));
        assert!(matches("a.b", "s", "a\nb") && !matches("a.b", "", "a\nb"));
        assert!(matches("a b # comment", "x", "ab"));
        assert!(matches("foo(?=bar)", "", "foobar") && !matches("foo(?!bar)", "", "foobar"));
        assert!(matches("(?<=foo)bar", "", "foobar") && matches(r"(\w)\1", "", "hello"));
        assert!(matches("^É$", "i", "é") && matches("^.$", "", "😀"));
        assert!(matches("(?i)abc", "", "ABC") && matches("(?>a+)b", "", "aab"));
    }

    #[test]
    fn errors() {
        for (pattern, options, code) in [
            ("[a", "", 51091),
            ("a", "g", 51108),
            ("a", "I", 51108),
            ("a\0", "", 2),
            (&"a".repeat(16_385), "", 51091),
        ] {
            let error = Regex::new(pattern, options).expect_err(options);
            assert_eq!(error.code().number(), code);
        }
        assert!(Regex::new(&"a".repeat(16_384), "").is_ok());
    }

    #[test]
    fn catastrophic_patterns_fail_instead_of_hanging() {
        let regex = Regex::new("^(a+)+$", "").expect("valid");
        let error = regex.is_match(&("a".repeat(64) + "!")).expect_err("too many steps");
        assert_eq!(error.code().number(), MATCH_FAILED);
    }

    #[test]
    fn long_texts() {
        assert!(matches("^(a|b)*c$", "", &("ab".repeat(50_000) + "c")));
        assert!(matches("x.*y.*z", "", &("xy".repeat(50_000) + "z")));
    }

    #[test]
    fn captures() {
        let regex = Regex::new("(a)|(b)", "").expect("valid");
        let found = regex.captures_at("xxb", 1).expect("runs");
        assert_eq!(found, Some(vec![Some((2, 3)), None, Some((2, 3))]));
        assert_eq!(regex.captures_at("a", 1).expect("runs"), None);
    }

    #[test]
    fn prefixes() {
        let prefix = |pattern: &str, options: &str| {
            Regex::new(pattern, options)
                .expect(pattern)
                .prefix()
                .map(|p| (p.text, p.exact))
        };
        let some = |text: &str, exact| Some((text.to_string(), exact));
        assert_eq!(prefix("^abc", ""), some("abc", true));
        assert_eq!(prefix("^abc.*", ""), some("abc", false));
        assert_eq!(prefix("^abc.*", "s"), some("abc", true));
        assert_eq!(prefix("^abc*", ""), some("ab", false));
        assert_eq!(prefix("^a\\.b", ""), some("a.b", true));
        assert_eq!(prefix("^a\\d", ""), some("a", false));
        assert_eq!(prefix("^a+", ""), some("a", false));
        for none in [
            ("abc", ""),
            ("^abc", "i"),
            ("^a|b", ""),
            ("^a*", ""),
            ("^", ""),
            ("^(a)", ""),
        ] {
            assert_eq!(prefix(none.0, none.1), None, "{none:?}");
        }
    }
}
