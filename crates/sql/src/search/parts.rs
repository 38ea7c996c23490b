//! The trigrams that a text has which a pattern matches: of `LIKE`, and of regular expressions as far as they are plain.

use super::trigrams::{Trigram, required};

/// What a text has that matches.
#[derive(Debug, PartialEq, Eq)]
pub enum Parts {
    /// All of these trigrams; none where nothing is known.
    Trigrams(Vec<Trigram>),
    /// What each of these says.
    All(Vec<Parts>),
    /// What one of these says.
    Any(Vec<Parts>),
}

impl Parts {
    /// Nothing that is known.
    const NOTHING: Self = Self::Trigrams(Vec::new());
}

/// What a text has that is like a pattern.
pub fn of_like(pattern: &str, escape: Option<char>) -> Parts {
    let mut out = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => out.extend(chars.next().map(Some)),
            '%' | '_' => out.push(None),
            c => out.push(Some(c)),
        }
    }
    Parts::Trigrams(required(&out, true, true))
}

/// What a text has that a regular expression matches: nothing is said where it has what is not understood here.
pub fn of_regex(pattern: &str) -> Parts {
    let mut reader = Reader {
        chars: pattern.chars().collect(),
        at: 0,
    };
    match reader.branches(0) {
        Some(found) if reader.at == reader.chars.len() => found,
        _ => Parts::NOTHING,
    }
}

/// Groups within each other that are looked into.
const DEPTH_MAX: usize = 50;

struct Reader {
    chars: Vec<char>,
    at: usize,
}

/// What a pattern consists of.
enum Atom {
    /// This character.
    One(char),
    /// Something that is not told apart.
    Some,
    /// A group.
    Group(Parts),
}

/// How often something is there: once, at least once, or maybe not at all.
enum Times {
    Once,
    Repeated,
    Optional,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let is_there = self.peek() == Some(c);
        self.at += usize::from(is_there);
        is_there
    }

    /// Branches up to the end or a parenthesis; `None` for what is not understood.
    fn branches(&mut self, depth: usize) -> Option<Parts> {
        let mut all = vec![self.branch(depth)?];
        while self.eat('|') {
            all.push(self.branch(depth)?);
        }
        Some(match all.len() {
            1 => all.swap_remove(0),
            _ => Parts::Any(all),
        })
    }

    fn branch(&mut self, depth: usize) -> Option<Parts> {
        let (mut out, mut run) = (Vec::new(), Vec::new());
        while self.peek().is_some_and(|c| !matches!(c, '|' | ')')) {
            let atom = self.atom(depth)?;
            let times = self.times()?;
            match (atom, times) {
                (Atom::One(c), Times::Once) => run.push(Some(c)),
                (Atom::One(c), Times::Repeated) => run.extend([Some(c), None]),
                (Atom::Group(own), Times::Once | Times::Repeated) => {
                    run.push(None);
                    out.push(own);
                }
                (_, Times::Optional) | (Atom::Some, _) => run.push(None),
            }
        }
        out.push(Parts::Trigrams(required(&run, false, false)));
        Some(Parts::All(out))
    }

    fn atom(&mut self, depth: usize) -> Option<Atom> {
        Some(match self.next()? {
            '(' => {
                if self.eat('?') && !self.eat(':') || depth == DEPTH_MAX {
                    return None;
                }
                let own = self.branches(depth + 1)?;
                if !self.eat(')') {
                    return None;
                }
                Atom::Group(own)
            }
            '[' => {
                self.bracket()?;
                Atom::Some
            }
            '.' | '^' | '$' => Atom::Some,
            '\\' => match self.next()? {
                c if !c.is_alphanumeric() => Atom::One(c),
                'd' | 'w' | 's' | 'D' | 'W' | 'S' | 'm' | 'M' | 'y' | 'Y' | 'A' | 'Z' => Atom::Some,
                't' | 'n' | 'r' | 'f' | 'v' | 'a' => Atom::Some,
                _ => return None,
            },
            '*' | '+' | '?' | '{' | ')' => return None,
            c => Atom::One(c),
        })
    }

    /// Goes behind what is in brackets, which have begun.
    fn bracket(&mut self) -> Option<()> {
        self.eat('^');
        self.eat(']');
        loop {
            match self.next()? {
                ']' => return Some(()),
                '\\' => {
                    self.next()?;
                }
                '[' => {
                    if let Some(kind) = self.peek().filter(|c| matches!(c, ':' | '.' | '=')) {
                        self.at += 1;
                        while !(self.next()? == kind && self.peek() == Some(']')) {}
                        self.at += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn times(&mut self) -> Option<Times> {
        let times = match self.peek() {
            Some('*' | '?') => Times::Optional,
            Some('+') => Times::Repeated,
            Some('{') => {
                self.at += 1;
                let mut least = String::new();
                while let Some(c) = self.peek().filter(char::is_ascii_digit) {
                    least.push(c);
                    self.at += 1;
                }
                let least: u32 = least.parse().ok()?;
                while self.peek().is_some_and(|c| c == ',' || c.is_ascii_digit()) {
                    self.at += 1;
                }
                if self.peek() != Some('}') {
                    return None;
                }
                if least == 0 { Times::Optional } else { Times::Repeated }
            }
            _ => return Some(Times::Once),
        };
        self.at += 1;
        // As few as can be.
        self.eat('?');
        match self.peek() {
            Some('*' | '+' | '?' | '{') => None,
            _ => Some(times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::trigrams::shown;

    fn text(parts: &Parts) -> String {
        let list = |all: &[Parts], sign: &str| {
            let each: Vec<String> = all.iter().map(text).filter(|own| !own.is_empty()).collect();
            each.join(sign)
        };
        match parts {
            Parts::Trigrams(all) => all.iter().copied().map(shown).collect::<Vec<_>>().join(","),
            Parts::All(all) => list(all, "&"),
            Parts::Any(all) => format!("({})", list(all, "|")),
        }
    }

    #[test]
    fn patterns_say_what_texts_have() {
        let of = |pattern: &str| text(&of_regex(pattern));
        assert_eq!(of("foobar"), "bar,foo,oba,oob");
        assert_eq!(of("fo+bar"), "bar");
        assert_eq!(of("foo(bar|bazz?)"), "(bar|baz)&foo");
        assert_eq!(of("fooo?x{2}abc[]x[:alpha:]]def"), "abc,def,foo");
        assert_eq!(of("^abc d.e\\.f$"), "  d,  f,abc,bc ");
        assert_eq!(of("(?i)abc"), "");
        assert_eq!(of("abc\\1"), "");
        assert_eq!(of("abc(?=def)"), "");
        assert_eq!(of("abc)"), "");
        assert_eq!(of("(abc|d)"), "(abc)");
        assert_eq!(text(&of_like("a\\%bc_def%", Some('\\'))), "  a,  b, a , bc,def");
    }

    #[test]
    fn no_pattern_is_too_deep() {
        let pattern = format!("{}abc{}", "(".repeat(5000), ")".repeat(5000));
        assert_eq!(of_regex(&pattern), Parts::NOTHING);
    }
}
