//! Blocks of PL/pgSQL, as DO runs them.
//!
//! ```text
//! [ DECLARE name type [ := expression ]; ... ]
//! BEGIN
//!     statements: SQL, PERFORM, EXECUTE, assignments, IF, LOOP, WHILE, FOR, EXIT, CONTINUE, RAISE, RETURN, NULL, blocks
//! [ EXCEPTION WHEN condition [ OR condition ] THEN statements ... ]
//! END
//! ```
//!
//! Conditions and statements of SQL stay texts: they are parsed where they run, as in PostgreSQL, so what stands in a branch that is not taken
//! may be anything.

use super::columns::written;
use super::dialect::Sql;
use crate::error::{error, unsupported};
use nestor_model::Result;
use sqlparser::tokenizer::{Token, Tokenizer};

/// Levels that blocks, branches and loops may nest.
const DEPTH_MAX: usize = 50;

/// A block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// What it declares.
    pub variables: Vec<Variable>,
    /// What it does.
    pub steps: Vec<Step>,
    /// What is done about errors: the names of conditions, and the steps.
    pub handlers: Vec<(Vec<Condition>, Vec<Step>)>,
}

/// A variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The text of its type; `record` for rows.
    pub ty: String,
    /// What it begins with.
    pub value: Option<String>,
    /// It keeps that.
    pub is_constant: bool,
    /// It is never null.
    pub not_null: bool,
}

/// Errors that a handler takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All but those that end a statement from outside.
    Others,
    /// Those of a SQLSTATE, or of a class of them (`23000`).
    State(String),
}

/// Where a row goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// The variables; a record takes the whole row.
    pub names: Vec<String>,
    /// There has to be just one row.
    pub is_strict: bool,
}

/// One thing that a block does.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A statement of SQL.
    Sql {
        /// Its text, without INTO.
        text: String,
        /// Where its row goes.
        into: Option<Destination>,
    },
    /// PERFORM: a query whose rows nobody wants.
    Perform(String),
    /// EXECUTE of a text that is computed.
    Execute {
        /// The text.
        text: String,
        /// Where its row goes.
        into: Option<Destination>,
        /// Its parameters.
        using: Vec<String>,
    },
    /// `name := expression`
    Assign(String, String),
    /// IF, with ELSIF and ELSE.
    If {
        /// Conditions and what is done if they hold.
        branches: Vec<(String, Vec<Step>)>,
        /// What is done if none of them holds.
        otherwise: Vec<Step>,
    },
    /// LOOP and WHILE.
    Loop {
        /// Its name.
        label: Option<String>,
        /// It goes on while this holds.
        condition: Option<String>,
        /// What is done again and again.
        steps: Vec<Step>,
    },
    /// FOR over numbers.
    ForNumbers {
        /// Its name.
        label: Option<String>,
        /// The variable.
        name: String,
        /// The first and the last number.
        bounds: (String, String),
        /// What lies between two of them; 1 if nothing is said.
        by: Option<String>,
        /// From the larger to the smaller.
        reverses: bool,
        /// What is done with each.
        steps: Vec<Step>,
    },
    /// FOR over the rows of a query.
    ForRows {
        /// Its name.
        label: Option<String>,
        /// Where the row goes.
        names: Vec<String>,
        /// The query; of EXECUTE the text that is computed.
        query: String,
        /// The query is computed.
        is_computed: bool,
        /// Its parameters, if it is computed.
        using: Vec<String>,
        /// What is done with each.
        steps: Vec<Step>,
    },
    /// EXIT and CONTINUE.
    Leave {
        /// The loop.
        label: Option<String>,
        /// If this holds.
        condition: Option<String>,
        /// It goes on with the next round.
        continues: bool,
    },
    /// RAISE.
    Raise(Raise),
    /// RETURN.
    Return,
    /// A block within.
    Block(Block),
}

/// RAISE.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raise {
    /// `EXCEPTION`, `NOTICE`, ...; empty for RAISE alone, which raises the error of the handler again.
    pub level: String,
    /// The message, whose `%` stand for the arguments.
    pub message: Option<String>,
    /// The arguments.
    pub args: Vec<String>,
    /// The condition.
    pub state: Option<String>,
    /// What USING says: names in capitals, and expressions.
    pub options: Vec<(String, String)>,
}

/// SQLSTATEs by the names of conditions.
const CONDITIONS: &[(&str, &str)] = &[
    ("successful_completion", "00000"),
    ("no_data", "02000"),
    ("feature_not_supported", "0A000"),
    ("cardinality_violation", "21000"),
    ("data_exception", "22000"),
    ("string_data_right_truncation", "22001"),
    ("numeric_value_out_of_range", "22003"),
    ("invalid_datetime_format", "22007"),
    ("datetime_field_overflow", "22008"),
    ("division_by_zero", "22012"),
    ("invalid_parameter_value", "22023"),
    ("invalid_text_representation", "22P02"),
    ("integrity_constraint_violation", "23000"),
    ("restrict_violation", "23001"),
    ("not_null_violation", "23502"),
    ("foreign_key_violation", "23503"),
    ("unique_violation", "23505"),
    ("check_violation", "23514"),
    ("exclusion_violation", "23P01"),
    ("invalid_transaction_state", "25000"),
    ("read_only_sql_transaction", "25006"),
    ("with_check_option_violation", "44000"),
    ("dependent_objects_still_exist", "2BP01"),
    ("invalid_schema_name", "3F000"),
    ("serialization_failure", "40001"),
    ("deadlock_detected", "40P01"),
    ("syntax_error_or_access_rule_violation", "42000"),
    ("syntax_error", "42601"),
    ("insufficient_privilege", "42501"),
    ("cannot_coerce", "42846"),
    ("grouping_error", "42803"),
    ("invalid_foreign_key", "42830"),
    ("invalid_column_reference", "42P10"),
    ("wrong_object_type", "42809"),
    ("datatype_mismatch", "42804"),
    ("undefined_column", "42703"),
    ("undefined_function", "42883"),
    ("undefined_table", "42P01"),
    ("undefined_parameter", "42P02"),
    ("undefined_object", "42704"),
    ("duplicate_column", "42701"),
    ("duplicate_cursor", "42P03"),
    ("duplicate_database", "42P04"),
    ("duplicate_function", "42723"),
    ("duplicate_prepared_statement", "42P05"),
    ("duplicate_schema", "42P06"),
    ("duplicate_table", "42P07"),
    ("duplicate_alias", "42712"),
    ("duplicate_object", "42710"),
    ("ambiguous_column", "42702"),
    ("ambiguous_function", "42725"),
    ("invalid_table_definition", "42P16"),
    ("invalid_object_definition", "42P17"),
    ("insufficient_resources", "53000"),
    ("out_of_memory", "53200"),
    ("program_limit_exceeded", "54000"),
    ("object_not_in_prerequisite_state", "55000"),
    ("object_in_use", "55006"),
    ("lock_not_available", "55P03"),
    ("query_canceled", "57014"),
    ("raise_exception", "P0001"),
    ("no_data_found", "P0002"),
    ("too_many_rows", "P0003"),
    ("assert_failure", "P0004"),
    ("internal_error", "XX000"),
];

impl Condition {
    /// Whether a handler of this takes an error of a state.
    pub fn takes(&self, state: &str) -> bool {
        match self {
            Self::Others => !matches!(state, "57014" | "P0004"),
            Self::State(own) => {
                own == state || own.ends_with("000") && state.len() == 5 && own.get(..2) == state.get(..2)
            }
        }
    }
}

/// The SQLSTATE of a condition.
///
/// Errors: 42704.
pub fn state_of(name: &str) -> Result<&'static str> {
    let found = CONDITIONS.iter().find(|(own, _)| *own == name);
    found
        .map(|(_, state)| *state)
        .ok_or_else(|| error("42704", format!("unrecognized exception condition \"{name}\"")))
}

/// Reads a block.
///
/// Errors: 42601, 42704; 0A000 for statements of PL/pgSQL that are not known here.
pub fn parse(text: &str) -> Result<Block> {
    let tokens = Tokenizer::new(&Sql, text)
        .tokenize()
        .map_err(|e| error("42601", e.to_string()))?;
    let mut reader = Reader {
        tokens,
        at: 0,
        depth: 0,
    };
    let block = reader.block()?;
    reader.take(&Token::SemiColon);
    match reader.peek() {
        None => Ok(block),
        Some(_) => Err(reader.unexpected()),
    }
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
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

/// The words that begin a statement of PL/pgSQL which is none of SQL and not known here.
const UNKNOWN: [&str; 6] = ["ASSERT", "OPEN", "GET", "CASE", "FOREACH", "CALL"];

impl Reader {
    fn skip_space(&mut self) {
        while self.tokens.get(self.at).is_some_and(is_space) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<Token> {
        self.skip_space();
        self.tokens.get(self.at).cloned()
    }

    fn word(&mut self) -> String {
        self.peek().map_or_else(String::new, |token| word_of(&token))
    }

    /// The words that come next.
    fn words(&mut self, count: usize) -> Vec<String> {
        self.skip_space();
        let solid = self.tokens[self.at..].iter().filter(|token| !is_space(token));
        solid.take(count).map(word_of).collect()
    }

    fn take(&mut self, token: &Token) -> bool {
        let takes = self.peek().as_ref() == Some(token);
        self.at += usize::from(takes);
        takes
    }

    fn take_word(&mut self, word: &str) -> bool {
        let takes = self.word() == word;
        self.at += usize::from(takes);
        takes
    }

    fn unexpected(&mut self) -> nestor_model::Error {
        match self.peek() {
            Some(token) => error("42601", format!("syntax error at or near \"{token}\"")),
            None => error("42601", "syntax error at end of input"),
        }
    }

    fn expect(&mut self, token: &Token) -> Result<()> {
        match self.take(token) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        match self.take_word(word) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn name(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(match word.quote_style {
                    Some(_) => word.value,
                    None => word.value.to_lowercase(),
                })
            }
            _ => Err(self.unexpected()),
        }
    }

    /// `name.field`, as one name.
    fn target(&mut self) -> Result<String> {
        let mut out = self.name()?;
        while self.take(&Token::Period) {
            out = format!("{out}.{}", self.name()?);
        }
        Ok(out)
    }

    /// The text up to one of these words or tokens outside of parentheses, which stays.
    fn text_until(&mut self, words: &[&str], tokens: &[Token]) -> Result<String> {
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
    fn list(&mut self, words: &[&str]) -> Result<Vec<String>> {
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

    fn block(&mut self) -> Result<Block> {
        let mut out = Block::default();
        if self.take_word("DECLARE") {
            while self.word() != "BEGIN" {
                out.variables.push(self.variable()?);
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

    fn variable(&mut self) -> Result<Variable> {
        let name = self.name()?;
        let is_constant = self.take_word("CONSTANT");
        if self.words(3).iter().any(|word| word == "CURSOR" || word == "ALIAS") {
            return unsupported("a cursor or an alias that a block declares");
        }
        let ends = [Token::SemiColon, Token::Assignment, Token::Eq];
        let ty = self.text_until(&["NOT", "DEFAULT"], &ends)?;
        if ty.contains('%') {
            return unsupported("%TYPE and %ROWTYPE");
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
        })
    }

    fn condition(&mut self) -> Result<Condition> {
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

    fn steps(&mut self, ends: &[&str]) -> Result<Vec<Step>> {
        self.deeper(|reader| {
            let mut out = Vec::new();
            while !ends.contains(&reader.word().as_str()) {
                if reader.peek().is_none() {
                    return Err(reader.unexpected());
                }
                out.extend(reader.step()?);
                reader.expect(&Token::SemiColon)?;
            }
            Ok(out)
        })
    }

    /// A statement, up to its semicolon. NULL is none.
    fn step(&mut self) -> Result<Option<Step>> {
        let label = match self.take(&Token::ShiftLeft) {
            true => {
                let name = self.name()?;
                self.expect(&Token::ShiftRight)?;
                Some(name)
            }
            false => None,
        };
        let word = self.word();
        if label.is_some() && !matches!(word.as_str(), "LOOP" | "WHILE" | "FOR" | "BEGIN" | "DECLARE") {
            return Err(self.unexpected());
        }
        match word.as_str() {
            "NULL" => {
                self.at += 1;
                Ok(None)
            }
            "BEGIN" | "DECLARE" => self.deeper(Self::block).map(|block| Some(Step::Block(block))),
            "IF" => self.branches().map(Some),
            "LOOP" | "WHILE" => {
                self.at += 1;
                let condition = match word == "WHILE" {
                    true => {
                        let text = self.text_until(&["LOOP"], &[])?;
                        self.at += 1;
                        Some(text)
                    }
                    false => None,
                };
                let steps = self.looped()?;
                Ok(Some(Step::Loop {
                    label,
                    condition,
                    steps,
                }))
            }
            "FOR" => {
                self.at += 1;
                self.over(label).map(Some)
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
                match self.peek() {
                    Some(Token::SemiColon) => Ok(Some(Step::Return)),
                    _ => Err(error(
                        "42804",
                        "RETURN cannot have a parameter in function returning void",
                    )),
                }
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
            "COMMIT" | "ROLLBACK" => unsupported("the end of a transaction within a block"),
            unknown if UNKNOWN.contains(&unknown) => unsupported(format!("{unknown} of PL/pgSQL")),
            _ => self.statement().map(Some),
        }
    }

    fn looped(&mut self) -> Result<Vec<Step>> {
        let steps = self.steps(&["END"])?;
        self.at += 1;
        self.expect_word("LOOP")?;
        if matches!(self.peek(), Some(Token::Word(_))) {
            self.name()?;
        }
        Ok(steps)
    }

    fn branches(&mut self) -> Result<Step> {
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

    fn over(&mut self, label: Option<String>) -> Result<Step> {
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
        let first = text.split_whitespace().next().unwrap_or_default().to_uppercase();
        if matches!(
            first.as_str(),
            "SELECT" | "WITH" | "VALUES" | "TABLE" | "(SELECT" | "INSERT" | "UPDATE" | "DELETE"
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
        let ([name], Some((low, high))) = (names.as_slice(), text.split_once("..")) else {
            return unsupported("FOR over what is neither a query nor a range of numbers");
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

    fn destination(&mut self) -> Result<Destination> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read() {
        let text = "DECLARE n int := 1; r record; BEGIN
            IF NOT EXISTS (SELECT 1 FROM t WHERE CASE WHEN a THEN b END) THEN CREATE TYPE m AS ENUM ('a;b'); END IF;
            SELECT count(*) INTO STRICT n FROM t; INSERT INTO t VALUES (n) RETURNING id INTO n; n := n + 1; n = 2;
            FOR r IN SELECT * FROM t LOOP PERFORM f(r.a); EXIT WHEN r.a = 1; END LOOP;
            <<l>> FOR i IN REVERSE 3..1 BY 2 LOOP CONTINUE l; END LOOP;
            EXECUTE format('x %I', n) INTO n USING 1, 2; RAISE NOTICE 'a %', n; NULL; RETURN;
            EXCEPTION WHEN duplicate_object OR SQLSTATE '23505' THEN NULL; WHEN others THEN RAISE; END";
        let block = parse(text).unwrap();
        assert_eq!(block.variables.len(), 2);
        assert_eq!(block.steps.len(), 10);
        assert_eq!(block.handlers.len(), 2);
        assert!(
            matches!(&block.steps[1], Step::Sql { text, into: Some(into) } if text == "SELECT count(*) FROM t" && into.is_strict)
        );
        assert!(
            matches!(&block.steps[2], Step::Sql { text, into: Some(_) } if text.trim() == "INSERT INTO t VALUES (n) RETURNING id")
        );
        assert!(matches!(&block.steps[3], Step::Assign(name, value) if name == "n" && value == "n + 1"));
        assert!(matches!(&block.steps[6], Step::ForNumbers { by: Some(by), reverses: true, .. } if by == "2"));
        assert!(block.handlers[0].0[0].takes("42710") && block.handlers[0].0[1].takes("23505"));
        assert!(Condition::State("23000".to_owned()).takes("23505") && !Condition::Others.takes("57014"));
        for wrong in [
            "BEGIN",
            "BEGIN x END",
            "BEGIN IF a END IF; END",
            "BEGIN END; x",
            "SELECT 1",
            "BEGIN EXCEPTION END",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let deep = format!("{}NULL;{}", "BEGIN ".repeat(200), "END;".repeat(200));
        assert!(parse(&deep).is_err());
    }
}
