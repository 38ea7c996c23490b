//! What blocks declare, and cursors.

use super::reader::Reader;
use super::{Condition, Direction, Given, Kind, Opened, Step, Variable, state_of};
use crate::error::unsupported;
use nestor_model::Result;
use sqlparser::tokenizer::Token;

impl Reader {
    pub(super) fn variable(&mut self) -> Result<Variable> {
        let name = self.name()?;
        let is_constant = self.take_word("CONSTANT");
        if let Some(kind) = self.other_kind()? {
            self.expect(&Token::SemiColon)?;
            return Ok(Variable {
                name,
                ty: String::new(),
                value: None,
                is_constant: false,
                not_null: false,
                kind,
            });
        }
        let ends = [Token::SemiColon, Token::Assignment, Token::Eq];
        let ty = self.text_until(&["NOT", "DEFAULT", "COLLATE"], &ends)?;
        if self.word() == "COLLATE" {
            return unsupported("COLLATE of a variable");
        }
        let not_null = self.take_word("NOT");
        if not_null {
            self.expect_word("NULL")?;
        }
        let begins = self.take_word("DEFAULT") || self.take(&Token::Assignment) || self.take(&Token::Eq);
        let value = match begins {
            true => Some(self.text_until(&[], &[Token::SemiColon])?),
            false => None,
        };
        self.expect(&Token::SemiColon)?;
        Ok(Variable {
            name,
            ty,
            value,
            is_constant,
            not_null,
            kind: Kind::Plain,
        })
    }

    /// What is declared, if it is no variable.
    fn other_kind(&mut self) -> Result<Option<Kind>> {
        if self.take_word("ALIAS") {
            self.expect_word("FOR")?;
            return match self.peek() {
                Some(Token::Placeholder(name)) => {
                    self.at += 1;
                    Ok(Some(Kind::Alias(name)))
                }
                _ => self.target().map(|name| Some(Kind::Alias(name))),
            };
        }
        let words = self.words(3);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["NO", "SCROLL", "CURSOR"] => self.at_cursor(2),
            ["SCROLL", "CURSOR", ..] => self.at_cursor(1),
            ["CURSOR", ..] => {}
            _ => return Ok(None),
        }
        self.expect_word("CURSOR")?;
        let mut args = Vec::new();
        if self.take(&Token::LParen) {
            loop {
                let name = self.name()?;
                args.push((name, self.text_until(&[], &[Token::Comma, Token::RParen])?));
                if !self.take(&Token::Comma) {
                    break;
                }
            }
            self.expect(&Token::RParen)?;
        }
        if !self.take_word("FOR") {
            self.expect_word("IS")?;
        }
        let query = self.text_until(&[], &[Token::SemiColon])?;
        Ok(Some(Kind::Cursor { args, query }))
    }

    /// Passes over words.
    fn at_cursor(&mut self, words: usize) {
        for _ in 0..words {
            self.peek();
            self.at += 1;
        }
    }

    pub(super) fn condition(&mut self) -> Result<Condition> {
        if self.take_word("SQLSTATE") {
            return match self.peek() {
                Some(Token::SingleQuotedString(state)) => {
                    self.at += 1;
                    Ok(Condition::State(state))
                }
                _ => Err(self.unexpected()),
            };
        }
        match self.name()?.as_str() {
            "others" => Ok(Condition::Others),
            name => state_of(name).map(|state| Condition::State(state.to_owned())),
        }
    }

    /// Arguments in parentheses, if there are some.
    pub(super) fn given(&mut self) -> Result<Given> {
        let mut out = Vec::new();
        if !self.take(&Token::LParen) {
            return Ok(out);
        }
        if self.take(&Token::RParen) {
            return Ok(out);
        }
        loop {
            let begin = self.at;
            let name = match self.peek() {
                Some(Token::Word(_)) => self.name().ok(),
                _ => None,
            };
            let is_named = name.is_some() && (self.take(&Token::Assignment) || self.take(&Token::RArrow));
            if !is_named {
                self.at = begin;
            }
            let value = self.text_until(&[], &[Token::Comma, Token::RParen])?;
            out.push((name.filter(|_| is_named), value));
            if !self.take(&Token::Comma) {
                self.expect(&Token::RParen)?;
                return Ok(out);
            }
        }
    }

    /// OPEN.
    pub(super) fn open(&mut self) -> Result<Step> {
        self.at += 1;
        let cursor = self.cursor()?;
        let given = self.given()?;
        if self.take_word("NO") {
            self.expect_word("SCROLL")?;
        } else {
            self.take_word("SCROLL");
        }
        let ends = [Token::SemiColon];
        let query = if !self.take_word("FOR") {
            Opened::Declared(given)
        } else if self.take_word("EXECUTE") {
            let text = self.text_until(&["USING"], &ends)?;
            let using = match self.take_word("USING") {
                true => self.list(&[])?,
                false => Vec::new(),
            };
            Opened::Computed(text, using)
        } else {
            Opened::Query(self.text_until(&[], &ends)?)
        };
        Ok(Step::Open { cursor, query })
    }

    /// FETCH and MOVE.
    pub(super) fn fetch(&mut self) -> Result<Step> {
        let moves = self.word() == "MOVE";
        self.at += 1;
        let one = || "1".to_owned();
        let word = self.word();
        let next = self.words(2).pop().unwrap_or_default();
        let is_direction = matches!(
            word.as_str(),
            "NEXT" | "PRIOR" | "FIRST" | "LAST" | "ABSOLUTE" | "RELATIVE" | "FORWARD" | "BACKWARD" | "ALL"
        );
        // A cursor may be called so.
        let is_direction = is_direction && !matches!(self.words(2).len(), 0 | 1) && next != "INTO";
        let mut direction = Direction::By(one());
        if is_direction {
            self.at += 1;
            let ends = ["FROM", "IN"];
            direction = match word.as_str() {
                "NEXT" => Direction::By(one()),
                "PRIOR" => Direction::By("-1".to_owned()),
                "FIRST" => Direction::To(one()),
                "LAST" => Direction::To("-1".to_owned()),
                "ABSOLUTE" => Direction::To(self.text_until(&ends, &[])?),
                "RELATIVE" => Direction::By(self.text_until(&ends, &[])?),
                "ALL" => Direction::All(false),
                _ => {
                    let back = word == "BACKWARD";
                    if self.take_word("ALL") {
                        Direction::All(back)
                    } else if ends.contains(&self.word().as_str()) {
                        Direction::By(if back { "-1".to_owned() } else { one() })
                    } else {
                        let count = self.text_until(&ends, &[])?;
                        Direction::By(if back { format!("-({count})") } else { count })
                    }
                }
            };
            if !moves && matches!(direction, Direction::All(_)) {
                return unsupported("FETCH of several rows in PL/pgSQL");
            }
        }
        if is_direction || matches!(word.as_str(), "FROM" | "IN") {
            if !self.take_word("FROM") {
                self.expect_word("IN")?;
            }
        }
        let cursor = self.cursor()?;
        let into = match moves {
            true => None,
            false => {
                self.expect_word("INTO")?;
                Some(self.destination()?)
            }
        };
        Ok(Step::Fetch {
            cursor,
            direction,
            into,
        })
    }
}
