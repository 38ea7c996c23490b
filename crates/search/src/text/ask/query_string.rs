//! Lucene's query strings.
//!
//! ```text
//! title:(quick OR "red fox"~2) AND NOT body:laz* ^2
//! ```
//!
//! Source: manual, "queryString".

use crate::operand::{refuse, refused};
use nestor_model::Result;

/// Parentheses within parentheses.
const DEPTH_MAX: usize = 64;

/// A part of a query string.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::text) enum QueryNode {
    Term {
        field: Option<String>,
        text: String,
        /// Edits that a term may be away.
        edits: Option<usize>,
    },
    Phrase {
        field: Option<String>,
        text: String,
        slop: u32,
    },
    Wildcard {
        field: Option<String>,
        pattern: String,
    },
    Regex {
        field: Option<String>,
        pattern: String,
    },
    /// Terms between two; each of which may be there or not, and is one of them or not.
    Range {
        field: Option<String>,
        low: Option<(String, bool)>,
        high: Option<(String, bool)>,
    },
    All,
    Boolean(Vec<(Occur, QueryNode)>),
    Boost(Box<QueryNode>, f64),
}

/// Whether a clause must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::text) enum Occur {
    Must,
    Should,
    MustNot,
}

/// Reads a query string.
pub(super) fn parse(name: &str, query: &str) -> Result<QueryNode> {
    let mut parser = Parser {
        name,
        chars: query.chars().collect(),
        at: 0,
    };
    let node = parser.clauses(None, 0)?;
    match parser.peek() {
        None => Ok(node),
        Some(c) => Err(parser.wrong(&format!("unexpected {c:?}"))),
    }
}

struct Parser<'a> {
    name: &'a str,
    chars: Vec<char>,
    at: usize,
}

#[derive(PartialEq)]
enum Conjunction {
    None,
    And,
    Or,
}

impl Parser<'_> {
    fn wrong(&self, reason: &str) -> nestor_model::Error {
        refused(format!(
            "\"{}\" cannot be parsed at character {}: {reason}",
            self.name, self.at
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

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Takes a word that stands by itself.
    fn word(&mut self, word: &str) -> bool {
        let end = self.at + word.len();
        let is_here = self
            .chars
            .get(self.at..end)
            .is_some_and(|own| own.iter().copied().eq(word.chars()));
        let is_alone = !self
            .chars
            .get(end)
            .is_some_and(|c| !c.is_whitespace() && !matches!(c, '(' | ')' | '"'));
        let takes = is_here && (is_alone || matches!(word, "&&" | "||"));
        if takes {
            self.at = end;
        }
        takes
    }

    fn clauses(&mut self, field: Option<&str>, depth: usize) -> Result<QueryNode> {
        if depth > DEPTH_MAX {
            refuse!("\"{}\" has parentheses deeper than {DEPTH_MAX} levels", self.name);
        }
        let mut clauses: Vec<(Occur, QueryNode)> = Vec::new();
        loop {
            self.skip_space();
            if matches!(self.peek(), None | Some(')')) {
                break;
            }
            let conjunction = if self.word("AND") || self.word("&&") {
                Conjunction::And
            } else if self.word("OR") || self.word("||") {
                Conjunction::Or
            } else {
                Conjunction::None
            };
            if conjunction != Conjunction::None && clauses.is_empty() {
                return Err(self.wrong("there is nothing before the operator"));
            }
            self.skip_space();
            let is_not = self.word("NOT") || self.take('!') || self.take('-');
            let is_required = !is_not && self.take('+');
            self.skip_space();
            let node = self.clause(field, depth)?;
            if conjunction == Conjunction::And
                && let Some((before, _)) = clauses.last_mut()
                && *before != Occur::MustNot
            {
                *before = Occur::Must;
            }
            let occur = match (is_not, is_required || conjunction == Conjunction::And) {
                (true, _) => Occur::MustNot,
                (false, true) => Occur::Must,
                (false, false) => Occur::Should,
            };
            clauses.push((occur, node));
        }
        match clauses.len() {
            0 => Err(self.wrong("there is nothing to look for")),
            1 if clauses[0].0 != Occur::MustNot => Ok(clauses.remove(0).1),
            _ => Ok(QueryNode::Boolean(clauses)),
        }
    }

    fn clause(&mut self, field: Option<&str>, depth: usize) -> Result<QueryNode> {
        let begin = self.at;
        let mut own = None;
        if let Some((name, _)) = self.bare()?
            && self.take(':')
        {
            own = Some(name);
            self.skip_space();
        } else {
            self.at = begin;
        }
        let field = own.as_deref().or(field);
        let node = self.atom(field, depth)?;
        match self.take('^') {
            true => {
                let boost = self.number()?;
                Ok(QueryNode::Boost(Box::new(node), boost))
            }
            false => Ok(node),
        }
    }

    fn atom(&mut self, field: Option<&str>, depth: usize) -> Result<QueryNode> {
        let owned = field.map(str::to_owned);
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let node = self.clauses(field, depth + 1)?;
                match self.take(')') {
                    true => Ok(node),
                    false => Err(self.wrong("a parenthesis is not closed")),
                }
            }
            Some('"') => {
                let text = self.quoted('"')?;
                let slop = match self.take('~') {
                    true => self.number()? as u32,
                    false => 0,
                };
                Ok(QueryNode::Phrase {
                    field: owned,
                    text,
                    slop,
                })
            }
            Some('/') => Ok(QueryNode::Regex {
                field: owned,
                pattern: self.quoted('/')?,
            }),
            Some('[' | '{') => self.range(owned),
            _ => self.term(owned),
        }
    }

    fn term(&mut self, field: Option<String>) -> Result<QueryNode> {
        for operator in ["AND", "OR", "NOT", "&&", "||"] {
            if self.word(operator) {
                return Err(self.wrong(&format!("unexpected {operator}")));
            }
        }
        let begin = self.at;
        let Some((text, is_pattern)) = self.bare()? else {
            return Err(match self.peek() {
                Some(c) => self.wrong(&format!("unexpected {c:?}")),
                None => self.wrong("it ends too early"),
            });
        };
        if is_pattern {
            let pattern: String = self.chars[begin..self.at].iter().collect();
            return Ok(match (field.as_deref(), pattern.as_str()) {
                (Some("*"), "*") => QueryNode::All,
                _ => QueryNode::Wildcard { field, pattern },
            });
        }
        let edits = match self.take('~') {
            true if self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') => {
                let number = self.number()?;
                if number > 2.0 || number.fract() != 0.0 {
                    return Err(self.wrong("terms can be 0, 1 or 2 edits away"));
                }
                Some(number as usize)
            }
            true => Some(2),
            false => None,
        };
        Ok(QueryNode::Term { field, text, edits })
    }

    fn range(&mut self, field: Option<String>) -> Result<QueryNode> {
        let with_low = self.peek() == Some('[');
        self.at += 1;
        let low = self.limit()?;
        self.skip_space();
        if !self.word("TO") {
            return Err(self.wrong("a range must have TO"));
        }
        let high = self.limit()?;
        self.skip_space();
        let with_high = self.peek() == Some(']');
        if !(self.take(']') || self.take('}')) {
            return Err(self.wrong("a range is not closed"));
        }
        Ok(QueryNode::Range {
            field,
            low: low.map(|text| (text, with_low)),
            high: high.map(|text| (text, with_high)),
        })
    }

    fn limit(&mut self) -> Result<Option<String>> {
        self.skip_space();
        if self.peek() == Some('"') {
            return self.quoted('"').map(Some);
        }
        match self.bare()? {
            Some((text, _)) if text == "*" => Ok(None),
            Some((text, _)) => Ok(Some(text)),
            None => Err(self.wrong("a range must have two ends")),
        }
    }

    /// A word without quotes, and whether it has wildcards; none if there is no word.
    fn bare(&mut self) -> Result<Option<(String, bool)>> {
        let (mut text, mut is_pattern) = (String::new(), false);
        let begin = self.at;
        while let Some(c) = self.peek() {
            match c {
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some(escaped) => text.push(escaped),
                        None => return Err(self.wrong("it ends with a backslash")),
                    }
                }
                '*' | '?' => {
                    is_pattern = true;
                    text.push(c);
                }
                '+' | '-' | '!' if self.at > begin => text.push(c),
                c if c.is_whitespace() || "+-!(){}[]^\"~:/".contains(c) => break,
                '&' | '|' if self.chars.get(self.at + 1) == Some(&c) => break,
                c => text.push(c),
            }
            self.at += 1;
        }
        Ok((self.at > begin).then_some((text, is_pattern)))
    }

    fn quoted(&mut self, quote: char) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                c if c == quote => return Ok(text),
                '\\' => match self.peek() {
                    Some(escaped) if quote == '"' || escaped == quote => {
                        text.push(escaped);
                        self.at += 1;
                    }
                    _ => text.push('\\'),
                },
                c => text.push(c),
            }
        }
        Err(self.wrong(&format!("{quote} is not closed")))
    }

    fn number(&mut self) -> Result<f64> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') {
            self.at += 1;
        }
        let written: String = self.chars[begin..self.at].iter().collect();
        written.parse().map_err(|_| self.wrong("there must be a number"))
    }
}
