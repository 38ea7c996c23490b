//! Patterns that terms are compared with, as automata: no pattern makes a comparison take longer than its length times the term's.
//!
//! Source: Lucene's documentation of the class `RegExp`; manual, "regex", "wildcard".

use crate::operand::{refuse, refused};
use nestor_model::Result;
use nestor_model::statement::work;

/// Parentheses within parentheses.
const DEPTH_MAX: usize = 250;
/// States of an automaton.
const STATES_MAX: usize = 250_000;
/// Repetitions of repetitions.
const REPETITIONS_MAX: usize = 16;

/// A part of a pattern.
#[derive(Clone, Debug)]
enum Piece {
    Chars(Class),
    Concat(Vec<Piece>),
    Any(Vec<Piece>),
    Repeat {
        of: Box<Piece>,
        min: usize,
        max: Option<usize>,
    },
    /// What no text matches.
    Never,
}

/// Characters.
#[derive(Clone, Debug)]
enum Class {
    One(char),
    All,
    Ranges { ranges: Vec<(char, char)>, negated: bool },
}

impl Class {
    fn has(&self, c: char) -> bool {
        match self {
            Self::One(own) => *own == c,
            Self::All => true,
            Self::Ranges { ranges, negated } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

#[derive(Debug)]
enum State {
    Chars(Class, usize),
    Both(usize, usize),
    Goto(usize),
    Never,
    End,
}

/// A pattern, ready to be compared with terms.
#[derive(Debug)]
pub(super) struct Automaton {
    states: Vec<State>,
    start: usize,
    /// What all texts that match begin with.
    prefix: String,
    /// When each state was entered last.
    entered: Vec<u64>,
    clock: u64,
}

impl Automaton {
    /// A regular expression of Lucene.
    pub(super) fn regex(pattern: &str) -> Result<Self> {
        let mut parser = Parser {
            chars: pattern.chars().collect(),
            at: 0,
        };
        let piece = parser.union(0)?;
        match parser.peek() {
            None => Self::of(&piece),
            Some(c) => Err(parser.wrong(&format!("unexpected {c:?}"))),
        }
    }

    /// A pattern in which `*` stands for any characters and `?` for one.
    pub(super) fn wildcard(pattern: &str) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut chars = pattern.chars();
        let mut was_star = false;
        while let Some(c) = chars.next() {
            if std::mem::replace(&mut was_star, c == '*') && c == '*' {
                continue;
            }
            pieces.push(match c {
                '*' => anything(),
                '?' => Piece::Chars(Class::All),
                '\\' => Piece::Chars(Class::One(chars.next().unwrap_or('\\'))),
                c => Piece::Chars(Class::One(c)),
            });
        }
        Self::of(&Piece::Concat(pieces))
    }

    fn of(piece: &Piece) -> Result<Self> {
        let mut maker = Maker {
            states: vec![State::End],
            steps: 0,
        };
        let start = maker.add(piece, 0)?;
        let entered = vec![0; maker.states.len()];
        Ok(Self {
            states: maker.states,
            start,
            prefix: prefix(piece),
            entered,
            clock: 0,
        })
    }

    /// What all texts that match begin with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether a whole text matches.
    ///
    /// Errors: those of the statement's interrupt.
    pub(super) fn matches(&mut self, text: &str) -> Result<bool> {
        let mut now = Vec::new();
        let mut next = Vec::new();
        self.clock += 1;
        self.enter(self.start, &mut now);
        for c in text.chars() {
            work(1 + now.len() / 16)?;
            self.clock += 1;
            for state in now.drain(..) {
                if let State::Chars(class, then) = &self.states[state]
                    && class.has(c)
                {
                    let then = *then;
                    self.enter(then, &mut next);
                }
            }
            std::mem::swap(&mut now, &mut next);
            if now.is_empty() {
                return Ok(false);
            }
        }
        Ok(now.iter().any(|state| matches!(self.states[*state], State::End)))
    }

    /// Adds a state and all that follow it without a character.
    fn enter(&mut self, state: usize, into: &mut Vec<usize>) {
        let mut open = vec![state];
        while let Some(state) = open.pop() {
            if std::mem::replace(&mut self.entered[state], self.clock) == self.clock {
                continue;
            }
            match self.states[state] {
                State::Both(one, other) => open.extend([one, other]),
                State::Goto(then) => open.push(then),
                State::Chars(..) | State::End => into.push(state),
                State::Never => {}
            }
        }
    }
}

/// Makes states.
struct Maker {
    states: Vec<State>,
    /// Pieces that were looked at: a repetition looks at its piece again and again.
    steps: usize,
}

impl Maker {
    fn push(&mut self, state: State) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    /// Adds the states of a piece behind which `then` follows; the first of them.
    fn add(&mut self, piece: &Piece, then: usize) -> Result<usize> {
        self.steps += 1;
        if self.states.len().max(self.steps / 4) > STATES_MAX {
            refuse!("a pattern is too large");
        }
        Ok(match piece {
            Piece::Never => self.push(State::Never),
            Piece::Chars(class) => self.push(State::Chars(class.clone(), then)),
            Piece::Concat(pieces) => {
                let mut first = then;
                for piece in pieces.iter().rev() {
                    first = self.add(piece, first)?;
                }
                first
            }
            Piece::Any(pieces) => {
                let mut first = None;
                for piece in pieces {
                    let own = self.add(piece, then)?;
                    first = Some(match first {
                        None => own,
                        Some(before) => self.push(State::Both(before, own)),
                    });
                }
                first.unwrap_or(then)
            }
            Piece::Repeat { of, min, max } => self.repeat(of, *min, *max, then)?,
        })
    }

    fn repeat(&mut self, of: &Piece, min: usize, max: Option<usize>, then: usize) -> Result<usize> {
        let mut first = then;
        match max {
            None => {
                let again = self.push(State::Goto(then));
                let own = self.add(of, again)?;
                self.states[again] = State::Both(own, then);
                first = again;
            }
            Some(max) => {
                for _ in min..max {
                    let own = self.add(of, first)?;
                    first = self.push(State::Both(own, then));
                }
            }
        }
        for _ in 0..min {
            first = self.add(of, first)?;
        }
        Ok(first)
    }
}

fn anything() -> Piece {
    Piece::Repeat {
        of: Box::new(Piece::Chars(Class::All)),
        min: 0,
        max: None,
    }
}

fn prefix(piece: &Piece) -> String {
    let mut out = String::new();
    let pieces = match piece {
        Piece::Concat(pieces) => pieces.as_slice(),
        piece => std::slice::from_ref(piece),
    };
    for piece in pieces {
        match piece {
            Piece::Chars(Class::One(c)) => out.push(*c),
            _ => break,
        }
    }
    out
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

impl Parser {
    fn wrong(&self, reason: &str) -> nestor_model::Error {
        refused(format!(
            "a regular expression is invalid at character {}: {reason}",
            self.at
        ))
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, c: char) -> bool {
        let has = self.peek() == Some(c);
        self.at += usize::from(has);
        has
    }

    fn next(&mut self) -> Result<char> {
        let Some(c) = self.peek() else {
            return Err(self.wrong("it ends too early"));
        };
        self.at += 1;
        Ok(c)
    }

    fn union(&mut self, depth: usize) -> Result<Piece> {
        if depth > DEPTH_MAX {
            return Err(self.wrong("parentheses are too deep"));
        }
        let mut choices = vec![self.concat(depth)?];
        while self.take('|') {
            choices.push(self.concat(depth)?);
        }
        Ok(match choices.len() {
            1 => choices.remove(0),
            _ => Piece::Any(choices),
        })
    }

    fn concat(&mut self, depth: usize) -> Result<Piece> {
        let mut pieces = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                ')' | '|' => break,
                '&' => return Err(self.wrong("intersections are not supported")),
                _ => {
                    let piece = self.simple(depth)?;
                    pieces.push(self.repeated(piece)?);
                }
            }
        }
        Ok(Piece::Concat(pieces))
    }

    fn repeated(&mut self, piece: Piece) -> Result<Piece> {
        let mut piece = piece;
        let mut repetitions = 0;
        while let Some(c) = self.peek() {
            let (min, max) = match c {
                '?' => (0, Some(1)),
                '*' => (0, None),
                '+' => (1, None),
                '{' => {
                    self.at += 1;
                    let min = self.number()?;
                    let max = match self.take(',') {
                        false => Some(min),
                        true if self.peek() == Some('}') => None,
                        true => Some(self.number()?),
                    };
                    if self.peek() != Some('}') || max.is_some_and(|max| max < min) {
                        return Err(self.wrong("a repetition is wrong"));
                    }
                    (min, max)
                }
                _ => break,
            };
            self.at += 1;
            repetitions += 1;
            if repetitions > REPETITIONS_MAX {
                return Err(self.wrong("there are too many repetitions of repetitions"));
            }
            let of = Box::new(piece);
            piece = Piece::Repeat { of, min, max };
        }
        Ok(piece)
    }

    fn number(&mut self) -> Result<usize> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let written: String = self.chars[begin..self.at].iter().collect();
        match written.parse() {
            Ok(number) if number <= STATES_MAX => Ok(number),
            _ => Err(self.wrong("there must be a number that is not too large")),
        }
    }

    fn simple(&mut self, depth: usize) -> Result<Piece> {
        Ok(match self.next()? {
            '.' => Piece::Chars(Class::All),
            '#' => Piece::Never,
            '@' => anything(),
            '~' => return Err(self.wrong("complements are not supported")),
            '[' => Piece::Chars(self.class()?),
            '<' => self.interval()?,
            '"' => {
                let mut pieces = Vec::new();
                loop {
                    match self.next()? {
                        '"' => break Piece::Concat(pieces),
                        c => pieces.push(Piece::Chars(Class::One(c))),
                    }
                }
            }
            '(' => {
                if self.take(')') {
                    return Ok(Piece::Concat(Vec::new()));
                }
                let piece = self.union(depth + 1)?;
                match self.take(')') {
                    true => piece,
                    false => return Err(self.wrong("a parenthesis is not closed")),
                }
            }
            '\\' => Piece::Chars(escaped(self.next()?)),
            c @ ('?' | '*' | '+' | '{') => return Err(self.wrong(&format!("there is nothing to repeat before {c:?}"))),
            c => Piece::Chars(Class::One(c)),
        })
    }

    fn class(&mut self) -> Result<Class> {
        let negated = self.take('^');
        let mut ranges = Vec::new();
        loop {
            let low = match self.next()? {
                ']' if !ranges.is_empty() => return Ok(Class::Ranges { ranges, negated }),
                '\\' => match escaped(self.next()?) {
                    Class::One(c) => c,
                    Class::Ranges {
                        ranges: more,
                        negated: false,
                    } => {
                        ranges.extend(more);
                        continue;
                    }
                    _ => return Err(self.wrong("a negated class is within another")),
                },
                c => c,
            };
            let is_range = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|c| *c != ']');
            let high = match is_range {
                true => {
                    self.at += 1;
                    match self.next()? {
                        '\\' => self.next()?,
                        c => c,
                    }
                }
                false => low,
            };
            if high < low {
                return Err(self.wrong("a range of characters is upside down"));
            }
            ranges.push((low, high));
        }
    }

    /// Numbers from one to another, written with as many digits as they have.
    fn interval(&mut self) -> Result<Piece> {
        let low = self.number()?;
        let is_separated = self.take('-');
        let high = self.number()?;
        if !(is_separated && self.take('>')) || high.abs_diff(low) > 1000 {
            return Err(self.wrong("an interval of numbers is wrong or too large"));
        }
        let numbers = low.min(high)..=low.max(high);
        let written = |number: usize| {
            let digits = number.to_string();
            Piece::Concat(digits.chars().map(|c| Piece::Chars(Class::One(c))).collect())
        };
        Ok(Piece::Any(numbers.map(written).collect()))
    }
}

fn escaped(c: char) -> Class {
    let digits = vec![('0', '9')];
    let words = vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
    let spaces = vec![('\t', '\r'), (' ', ' ')];
    let (ranges, negated) = match c {
        'd' => (digits, false),
        'D' => (digits, true),
        'w' => (words, false),
        'W' => (words, true),
        's' => (spaces, false),
        'S' => (spaces, true),
        c => return Class::One(c),
    };
    Class::Ranges { ranges, negated }
}
