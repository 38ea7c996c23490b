//! The statements of blocks.

use super::super::columns::written;
use super::{Block, Condition, Conflict, Destination, Raise, Step};
use crate::error::{error, fail, unsupported};
use crate::types::names::folded;
use nestor_model::Result;
use sqlparser::tokenizer::Token;

/// Levels that blocks, branches and loops may nest.
const DEPTH_MAX: usize = 50;

/// The tokens of a block, and where in them it is.
pub(super) struct Reader {
    tokens: Vec<Token>,
    pub(super) at: usize,
    depth: usize,
    /// The line that a token stands at.
    counted: (usize, usize),
}

fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

/// The word that a token is, in capitals.
fn word_of(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        _ => String::new(),
    }
}

impl Reader {
    pub(super) fn new(tokens: Vec<Token>) -> Self {
        Self {
            tokens,
            at: 0,
            depth: 0,
            counted: (0, 1),
        }
    }

    /// The block that the tokens are.
    ///
    /// Errors: those of [`super::parse`].
    pub(super) fn whole(&mut self) -> Result<Block> {
        let conflict = self.directives()?;
        let label = self.label()?;
        let mut block = self.block(label)?;
        block.conflict = conflict;
        self.take(&Token::SemiColon);
        match self.peek() {
            None => Ok(block),
            Some(_) => Err(self.unexpected()),
        }
    }

    /// What stands before a function's block and says how it is read.
    fn directives(&mut self) -> Result<Conflict> {
        let mut out = Conflict::default();
        while self.take(&Token::Sharp) {
            let name = self.name()?;
            let value = self.name()?;
            out = match (name.as_str(), value.as_str()) {
                ("variable_conflict", "error") => Conflict::Error,
                ("variable_conflict", "use_variable") => Conflict::Variable,
                ("variable_conflict", "use_column") => Conflict::Column,
                _ => return unsupported(format!("#{name} {value}")),
            };
        }
        Ok(out)
    }

    /// `<<name>>`
    fn label(&mut self) -> Result<Option<String>> {
        if !self.take(&Token::ShiftLeft) {
            return Ok(None);
        }
        let name = self.name()?;
        self.expect(&Token::ShiftRight)?;
        Ok(Some(name))
    }

    fn skip_space(&mut self) {
        while self.tokens.get(self.at).is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// The line of the next token.
    fn line(&mut self) -> usize {
        self.skip_space();
        let (from, mut line) = self.counted;
        let passed = self.tokens.get(from..self.at).unwrap_or_default();
        line += passed
            .iter()
            .map(|token| written(token).matches('\n').count())
            .sum::<usize>();
        self.counted = (self.at.max(from), line);
        line
    }

    pub(super) fn peek(&mut self) -> Option<Token> {
        self.skip_space();
        self.tokens.get(self.at).cloned()
    }

    pub(super) fn word(&mut self) -> String {
        self.peek().map_or_else(String::new, |token| word_of(&token))
    }

    /// The words that come next.
    pub(super) fn words(&mut self, count: usize) -> Vec<String> {
        self.skip_space();
        let solid = self.tokens[self.at..].iter().filter(|token| !is_space(token));
        solid.take(count).map(word_of).collect()
    }

    pub(super) fn take(&mut self, token: &Token) -> bool {
        let takes = self.peek().as_ref() == Some(token);
        self.at += usize::from(takes);
        takes
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let takes = self.word() == word;
        self.at += usize::from(takes);
        takes
    }

    pub(super) fn unexpected(&mut self) -> nestor_model::Error {
        match self.peek() {
            Some(token) => error("42601", format!("syntax error at or near \"{token}\"")),
            None => error("42601", "syntax error at end of input"),
        }
    }

    pub(super) fn expect(&mut self, token: &Token) -> Result<()> {
        match self.take(token) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        match self.take_word(word) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    pub(super) fn name(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(folded(&word.value, word.quote_style))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A cursor, which may be an argument by its number.
    pub(super) fn cursor(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Placeholder(number)) => {
                self.at += 1;
                Ok(number)
            }
            _ => self.name(),
        }
    }

    /// `name.field`, as one name.
    pub(super) fn target(&mut self) -> Result<String> {
        let mut out = self.name()?;
        while self.take(&Token::Period) {
            out = format!("{out}.{}", self.name()?);
        }
        Ok(out)
    }

    /// The text up to one of these words or tokens outside of parentheses, which stays.
    pub(super) fn text_until(&mut self, words: &[&str], tokens: &[Token]) -> Result<String> {
        let (mut open, mut cases, mut out) = (0usize, 0usize, String::new());
        self.skip_space();
        while let Some(token) = self.tokens.get(self.at).cloned() {
            let word = word_of(&token);
            if open == 0 && cases == 0 && (words.contains(&word.as_str()) || tokens.contains(&token)) {
                break;
            }
            match &token {
                Token::LParen | Token::LBracket => open += 1,
                Token::RParen | Token::RBracket => open = open.saturating_sub(1),
                Token::SemiColon => return Err(self.unexpected()),
                _ if word == "CASE" => cases += 1,
                _ if word == "END" => cases = cases.saturating_sub(1),
                _ => {}
            }
            out.push_str(&written(&token));
            self.at += 1;
        }
        match out.trim() {
            "" => Err(self.unexpected()),
            text => Ok(text.to_owned()),
        }
    }

    /// Expressions with commas between them, up to one of these words or the end of the statement.
    pub(super) fn list(&mut self, words: &[&str]) -> Result<Vec<String>> {
        let mut out = Vec::new();
        loop {
            out.push(self.text_until(words, &[Token::Comma, Token::SemiColon])?);
            if !self.take(&Token::Comma) {
                return Ok(out);
            }
        }
    }

    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(error("54001", "blocks nest too deep"));
        }
        self.depth += 1;
        let out = work(self);
        self.depth -= 1;
        out
    }

    fn block(&mut self, label: Option<String>) -> Result<Block> {
        let mut out = Block {
            label,
            line: self.line(),
            ..Block::default()
        };
        if self.take_word("DECLARE") {
            while self.word() != "BEGIN" {
                // The word may stand again.
                if !self.take_word("DECLARE") {
                    out.variables.push(self.variable()?);
                }
            }
        }
        self.expect_word("BEGIN")?;
        out.steps = self.steps(&["END", "EXCEPTION"])?;
        if self.take_word("EXCEPTION") {
            while self.take_word("WHEN") {
                let mut conditions = vec![self.condition()?];
                while self.take_word("OR") {
                    conditions.push(self.condition()?);
                }
                self.expect_word("THEN")?;
                out.handlers.push((conditions, self.steps(&["WHEN", "END"])?));
            }
            if out.handlers.is_empty() {
                return Err(self.unexpected());
            }
        }
        self.expect_word("END")?;
        if matches!(self.peek(), Some(Token::Word(_))) {
            self.name()?;
        }
        Ok(out)
    }

    pub(super) fn steps(&mut self, ends: &[&str]) -> Result<Vec<Step>> {
        self.deeper(|reader| {
            let mut out = Vec::new();
            while !ends.contains(&reader.word().as_str()) {
                if reader.peek().is_none() {
                    return Err(reader.unexpected());
                }
                out.push(Step::Line(reader.line()));
                out.extend(reader.step()?);
                reader.expect(&Token::SemiColon)?;
            }
            Ok(out)
        })
    }

    /// A statement, up to its semicolon. NULL is none.
    fn step(&mut self) -> Result<Option<Step>> {
        let label = self.label()?;
        let word = self.word();
        let takes_label = ["LOOP", "WHILE", "FOR", "FOREACH", "BEGIN", "DECLARE"];
        if label.is_some() && !takes_label.contains(&word.as_str()) {
            return Err(self.unexpected());
        }
        match word.as_str() {
            "NULL" => {
                self.at += 1;
                Ok(None)
            }
            "BEGIN" | "DECLARE" => self
                .deeper(|reader| reader.block(label))
                .map(|block| Some(Step::Block(block))),
            "IF" => self.branches().map(Some),
            "CASE" => self.cases().map(Some),
            "LOOP" | "WHILE" => self.again(label).map(Some),
            "FOR" => {
                self.at += 1;
                self.over(label).map(Some)
            }
            "FOREACH" => self.each(label).map(Some),
            "GET" => self.diagnostics().map(Some),
            "ASSERT" => {
                self.at += 1;
                let condition = self.text_until(&[], &[Token::Comma, Token::SemiColon])?;
                let message = match self.take(&Token::Comma) {
                    true => Some(self.text_until(&[], &[Token::SemiColon])?),
                    false => None,
                };
                Ok(Some(Step::Assert { condition, message }))
            }
            "OPEN" => self.open().map(Some),
            "FETCH" | "MOVE" => self.fetch().map(Some),
            "CLOSE" => {
                self.at += 1;
                self.cursor().map(|cursor| Some(Step::Close(cursor)))
            }
            "EXIT" | "CONTINUE" => {
                self.at += 1;
                let label = match self.peek() {
                    Some(Token::Word(_)) if self.word() != "WHEN" => Some(self.name()?),
                    _ => None,
                };
                let condition = match self.take_word("WHEN") {
                    true => Some(self.text_until(&[], &[Token::SemiColon])?),
                    false => None,
                };
                let continues = word == "CONTINUE";
                Ok(Some(Step::Leave {
                    label,
                    condition,
                    continues,
                }))
            }
            "RAISE" => {
                self.at += 1;
                self.raise().map(|raise| Some(Step::Raise(raise)))
            }
            "RETURN" => {
                self.at += 1;
                self.returned().map(Some)
            }
            "PERFORM" => {
                self.at += 1;
                let text = self.text_until(&[], &[Token::SemiColon])?;
                Ok(Some(Step::Perform(format!("SELECT {text}"))))
            }
            "EXECUTE" => {
                self.at += 1;
                self.execute().map(Some)
            }
            "COMMIT" | "ROLLBACK" => {
                self.at += 1;
                let text = match self.peek() {
                    Some(Token::SemiColon) => String::new(),
                    _ => self.text_until(&[], &[Token::SemiColon])?,
                };
                let words: Vec<String> = text.split_whitespace().map(str::to_uppercase).collect();
                match words.join(" ").as_str() {
                    // The next one has the modes of this one in any case.
                    "" | "AND CHAIN" | "AND NO CHAIN" => Ok(Some(Step::End {
                        commits: word == "COMMIT",
                    })),
                    other => fail("42601", format!("syntax error at or near \"{other}\"")),
                }
            }
            _ => self.statement().map(Some),
        }
    }

    fn raise(&mut self) -> Result<Raise> {
        let mut out = Raise::default();
        if matches!(self.peek(), Some(Token::SemiColon)) {
            return Ok(out);
        }
        out.level = "EXCEPTION".to_owned();
        let levels = ["DEBUG", "LOG", "INFO", "NOTICE", "WARNING", "EXCEPTION"];
        let word = self.word();
        if levels.contains(&word.as_str()) {
            self.at += 1;
            out.level = word;
        }
        match self.peek() {
            Some(Token::SingleQuotedString(message) | Token::EscapedStringLiteral(message)) => {
                self.at += 1;
                out.message = Some(message);
                if self.take(&Token::Comma) {
                    out.args = self.list(&["USING"])?;
                }
            }
            Some(Token::Word(_)) if self.word() != "USING" => {
                out.state = Some(match self.condition()? {
                    Condition::State(state) => state,
                    Condition::Others => return Err(self.unexpected()),
                });
            }
            _ => {}
        }
        if self.take_word("USING") {
            loop {
                let name = self.name()?.to_uppercase();
                if !(self.take(&Token::Eq) || self.take(&Token::Assignment)) {
                    return Err(self.unexpected());
                }
                let value = self.text_until(&[], &[Token::Comma, Token::SemiColon])?;
                out.options.push((name, value));
                if !self.take(&Token::Comma) {
                    break;
                }
            }
        }
        Ok(out)
    }

    /// RETURN, behind that word.
    fn returned(&mut self) -> Result<Step> {
        let ends = [Token::SemiColon];
        if self.take_word("NEXT") {
            return match self.peek() {
                Some(Token::SemiColon) => Ok(Step::ReturnNext(None)),
                _ => self.text_until(&[], &ends).map(|text| Step::ReturnNext(Some(text))),
            };
        }
        if self.take_word("QUERY") {
            let is_computed = self.take_word("EXECUTE");
            let words: &[&str] = if is_computed { &["USING"] } else { &[] };
            let text = self.text_until(words, &ends)?;
            let using = match is_computed && self.take_word("USING") {
                true => self.list(&[])?,
                false => Vec::new(),
            };
            return Ok(Step::ReturnQuery {
                text,
                is_computed,
                using,
            });
        }
        match self.peek() {
            Some(Token::SemiColon) => Ok(Step::Return(None)),
            _ => self.text_until(&[], &ends).map(|text| Step::Return(Some(text))),
        }
    }

    /// GET DIAGNOSTICS.
    fn diagnostics(&mut self) -> Result<Step> {
        self.at += 1;
        let stacked = self.take_word("STACKED");
        if !stacked {
            self.take_word("CURRENT");
        }
        self.expect_word("DIAGNOSTICS")?;
        let mut items = Vec::new();
        loop {
            let name = self.target()?;
            if !(self.take(&Token::Eq) || self.take(&Token::Assignment)) {
                return Err(self.unexpected());
            }
            let item = self.name()?.to_uppercase();
            let known: &[&str] = match stacked {
                true => &[
                    "RETURNED_SQLSTATE",
                    "MESSAGE_TEXT",
                    "PG_EXCEPTION_DETAIL",
                    "PG_EXCEPTION_HINT",
                    "COLUMN_NAME",
                    "CONSTRAINT_NAME",
                    "TABLE_NAME",
                    "SCHEMA_NAME",
                    "PG_DATATYPE_NAME",
                    "PG_EXCEPTION_CONTEXT",
                ],
                false => &["ROW_COUNT"],
            };
            match item.as_str() {
                item if known.contains(&item) => {}
                "PG_CONTEXT" | "PG_ROUTINE_OID" => {
                    return unsupported(format!("{item} of GET DIAGNOSTICS"));
                }
                _ => return Err(error("42601", "unrecognized GET DIAGNOSTICS item")),
            }
            items.push((name, item));
            if !self.take(&Token::Comma) {
                return Ok(Step::Diagnostics { stacked, items });
            }
        }
    }

    fn execute(&mut self) -> Result<Step> {
        let text = self.text_until(&["INTO", "USING"], &[Token::SemiColon])?;
        let (mut into, mut using) = (None, Vec::new());
        loop {
            if self.take_word("INTO") {
                into = Some(self.destination()?);
            } else if self.take_word("USING") {
                using = self.list(&["INTO"])?;
            } else {
                return Ok(Step::Execute { text, into, using });
            }
        }
    }

    pub(super) fn destination(&mut self) -> Result<Destination> {
        let is_strict = self.take_word("STRICT");
        let mut names = vec![self.target()?];
        while self.take(&Token::Comma) {
            names.push(self.target()?);
        }
        Ok(Destination { names, is_strict })
    }

    /// An assignment, or a statement of SQL, of whose INTO that does not follow INSERT or MERGE says where its row goes.
    fn statement(&mut self) -> Result<Step> {
        let begin = self.at;
        if matches!(self.peek(), Some(Token::Word(_))) {
            let name = self.target()?;
            let mut subscripts = Vec::new();
            while self.take(&Token::LBracket) {
                subscripts.push(self.text_until(&[], &[Token::RBracket])?);
                self.expect(&Token::RBracket)?;
            }
            if !subscripts.is_empty() {
                if !(self.take(&Token::Assignment) || self.take(&Token::Eq)) {
                    return Err(self.unexpected());
                }
                let value = self.text_until(&[], &[Token::SemiColon])?;
                return Ok(Step::AssignElement {
                    name,
                    subscripts,
                    value,
                });
            }
            if self.take(&Token::Assignment) || self.take(&Token::Eq) {
                let value = self.text_until(&[], &[Token::SemiColon])?;
                return Ok(Step::Assign(name, value));
            }
        }
        self.at = begin;
        let mut text = self.text_until(&["INTO"], &[Token::SemiColon])?;
        let mut into = None;
        while self.word() == "INTO" {
            self.at += 1;
            let last = text.split_whitespace().next_back().unwrap_or_default().to_uppercase();
            if matches!(last.as_str(), "INSERT" | "MERGE") || into.is_some() {
                text.push_str(" INTO ");
            } else {
                into = Some(self.destination()?);
                text.push(' ');
            }
            if !matches!(self.peek(), None | Some(Token::SemiColon)) {
                text.push_str(&self.text_until(&["INTO"], &[Token::SemiColon])?);
            }
        }
        Ok(Step::Sql { text, into })
    }
}
