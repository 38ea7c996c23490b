//! Loops and branches.

use super::Step;
use super::reader::Reader;
use nestor_model::Result;
use sqlparser::tokenizer::{Token, Tokenizer};

impl Reader {
    fn looped(&mut self) -> Result<Vec<Step>> {
        let steps = self.steps(&["END"])?;
        self.at += 1;
        self.expect_word("LOOP")?;
        if matches!(self.peek(), Some(Token::Word(_))) {
            self.name()?;
        }
        Ok(steps)
    }

    pub(super) fn branches(&mut self) -> Result<Step> {
        let (mut branches, mut otherwise) = (Vec::new(), Vec::new());
        while matches!(self.word().as_str(), "IF" | "ELSIF" | "ELSEIF") {
            self.at += 1;
            let condition = self.text_until(&["THEN"], &[])?;
            self.expect_word("THEN")?;
            branches.push((condition, self.steps(&["ELSIF", "ELSEIF", "ELSE", "END"])?));
        }
        if self.take_word("ELSE") {
            otherwise = self.steps(&["END"])?;
        }
        self.expect_word("END")?;
        self.expect_word("IF")?;
        Ok(Step::If { branches, otherwise })
    }

    /// CASE.
    pub(super) fn cases(&mut self) -> Result<Step> {
        self.at += 1;
        let operand = match self.word() == "WHEN" {
            true => None,
            false => Some(self.text_until(&["WHEN"], &[])?),
        };
        let mut arms = Vec::new();
        while self.take_word("WHEN") {
            let mut values = Vec::new();
            loop {
                values.push(self.text_until(&["THEN"], &[Token::Comma])?);
                if operand.is_none() || !self.take(&Token::Comma) {
                    break;
                }
            }
            self.expect_word("THEN")?;
            arms.push((values, self.steps(&["WHEN", "ELSE", "END"])?));
        }
        if arms.is_empty() {
            return Err(self.unexpected());
        }
        let otherwise = match self.take_word("ELSE") {
            true => Some(self.steps(&["END"])?),
            false => None,
        };
        self.expect_word("END")?;
        self.expect_word("CASE")?;
        Ok(Step::Case {
            operand,
            arms,
            otherwise,
        })
    }

    /// LOOP and WHILE.
    pub(super) fn again(&mut self, label: Option<String>) -> Result<Step> {
        let mut condition = None;
        if self.take_word("WHILE") {
            condition = Some(self.text_until(&["LOOP"], &[])?);
        }
        self.expect_word("LOOP")?;
        let steps = self.looped()?;
        Ok(Step::Loop {
            label,
            condition,
            steps,
        })
    }

    /// FOREACH.
    pub(super) fn each(&mut self, label: Option<String>) -> Result<Step> {
        self.at += 1;
        let mut names = vec![self.target()?];
        while self.take(&Token::Comma) {
            names.push(self.target()?);
        }
        let mut slice = 0;
        if self.take_word("SLICE") {
            let text = self.text_until(&["IN"], &[])?;
            slice = text.parse().map_err(|_| self.unexpected())?;
        }
        self.expect_word("IN")?;
        self.expect_word("ARRAY")?;
        let array = self.text_until(&["LOOP"], &[])?;
        self.expect_word("LOOP")?;
        let steps = self.looped()?;
        Ok(Step::ForEach {
            label,
            names,
            slice,
            array,
            steps,
        })
    }

    /// FOR over a cursor, which is a name with arguments if it has some.
    fn over_cursor(&mut self, label: Option<String>, names: Vec<String>, text: &str, steps: Vec<Step>) -> Result<Step> {
        let tokens = Tokenizer::new(&super::Sql, text).tokenize().unwrap_or_default();
        let mut inner = Self::new(tokens);
        let cursor = inner.name().map_err(|_| self.unexpected())?;
        let args = inner.given()?;
        match (names.as_slice(), inner.peek()) {
            ([name], None) => Ok(Step::ForCursor {
                label,
                name: name.clone(),
                cursor,
                args,
                steps,
            }),
            _ => Err(inner.unexpected()),
        }
    }

    pub(super) fn over(&mut self, label: Option<String>) -> Result<Step> {
        let mut names = vec![self.target()?];
        while self.take(&Token::Comma) {
            names.push(self.target()?);
        }
        self.expect_word("IN")?;
        if self.take_word("EXECUTE") {
            let query = self.text_until(&["LOOP", "USING"], &[])?;
            let using = match self.take_word("USING") {
                true => self.list(&["LOOP"])?,
                false => Vec::new(),
            };
            self.expect_word("LOOP")?;
            let steps = self.looped()?;
            return Ok(Step::ForRows {
                label,
                names,
                query,
                is_computed: true,
                using,
                steps,
            });
        }
        let reverses = self.take_word("REVERSE");
        let text = self.text_until(&["LOOP"], &[])?;
        self.expect_word("LOOP")?;
        let steps = self.looped()?;
        let inner = text.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
        let first = inner.split_whitespace().next().unwrap_or_default().to_uppercase();
        if matches!(
            first.as_str(),
            "SELECT" | "WITH" | "VALUES" | "TABLE" | "INSERT" | "UPDATE" | "DELETE" | "EXPLAIN" | "SHOW"
        ) {
            return Ok(Step::ForRows {
                label,
                names,
                query: text,
                is_computed: false,
                using: Vec::new(),
                steps,
            });
        }
        let Some((low, high)) = text.split_once("..") else {
            return self.over_cursor(label, names, &text, steps);
        };
        let [name] = names.as_slice() else {
            return Err(self.unexpected());
        };
        let (high, by) = match high.to_uppercase().rfind(" BY ") {
            Some(at) => (&high[..at], Some(high[at + 4..].trim().to_owned())),
            None => (high, None),
        };
        Ok(Step::ForNumbers {
            label,
            name: name.clone(),
            bounds: (low.trim().to_owned(), high.trim().to_owned()),
            by,
            reverses,
            steps,
        })
    }
}
