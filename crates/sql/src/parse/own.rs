//! Statements that the grammar does not know.
//!
//! The tokens of each become those of a CALL of [`NAME`] whose argument is the text of the statement, so that it goes through the grammar
//! with the statements around it; [`of`] reads it. Who writes such a CALL has written the statement.

use super::attributes::{self, AlterAttributes};
use super::columns::written;
use super::databases::{self, Databases};
use super::dialect::Sql;
use super::domains::{self, Domains};
use super::maintain::{self, Maintain, VERBS};
use super::partitions;
use super::roles::{self, Roles};
use super::routines::{self, Change};
use super::schemas::{self, Schemas};
use super::triggers;
use super::word::{is, word};
use crate::parse::trigger::Trigger;
use nestor_model::Result;
use sqlparser::ast::{
    CreateView, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, FunctionDesc, Ident, ObjectName,
    SequenceOptions, Statement, Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// What is called.
const NAME: &str = "statement of PostgreSQL";

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
    /// `COMMENT ON CONSTRAINT name ON table IS text`
    CommentOnConstraint {
        /// The constraint.
        constraint: Ident,
        /// Its table.
        table: ObjectName,
        /// What is said.
        text: Option<String>,
    },
    /// `COMMENT ON POLICY`, `TRIGGER`, `ROLE`, `DATABASE` and `CONSTRAINT … ON DOMAIN`
    Comment {
        /// The kind, in capitals.
        kind: &'static str,
        /// What it is.
        name: Ident,
        /// What it is of: a table or a domain.
        on: Option<ObjectName>,
        /// What is said.
        text: Option<String>,
    },
    /// `COMMENT ON FUNCTION name(types) IS text`
    CommentOnRoutine {
        /// What it is said to be: `function`, `procedure` or `routine`.
        kind: String,
        /// Its name and the types of its arguments.
        routine: FunctionDesc,
        /// What is said.
        text: Option<String>,
    },
    /// `ALTER FUNCTION name(types)`
    AlterRoutine {
        /// What it is said to be.
        kind: String,
        /// Its name and the types of its arguments.
        routine: FunctionDesc,
        /// What becomes of it.
        change: Change,
    },
    /// `ALTER SEQUENCE name` with options.
    AlterSequence(AlterSequence),
    /// `ALTER TYPE name … ATTRIBUTE`
    AlterAttributes(AlterAttributes),
    /// `CREATE ASSERTION name CHECK (condition)`
    CreateAssertion {
        /// The name.
        name: ObjectName,
        /// The condition, in parentheses.
        condition: String,
    },
    /// `DROP ASSERTION`
    DropAssertion {
        /// The names.
        names: Vec<ObjectName>,
        /// Nothing happens when there is nothing.
        if_exists: bool,
    },
    /// `CREATE DUALITY VIEW`
    Duality {
        /// The view.
        create: Box<CreateView>,
    },
    /// `CREATE VIEW … WITH CHECK OPTION`
    View {
        /// The view.
        create: Box<CreateView>,
        /// What is checked.
        check: CheckOption,
    },
    /// `CREATE MATERIALIZED VIEW`
    Materialize {
        /// The view.
        create: Box<CreateView>,
        /// It gets its rows at once.
        has_data: bool,
    },
    /// `REFRESH MATERIALIZED VIEW`
    Refresh {
        /// The view.
        name: ObjectName,
        /// Without keeping readers out.
        concurrently: bool,
        /// It gets its rows, else it loses them.
        has_data: bool,
    },
    /// `ALTER TABLE name OWNER TO role`, and the same of others.
    Owner {
        /// What kind of thing it is, in capitals.
        kind: String,
        /// The name.
        name: ObjectName,
        /// The role.
        owner: Ident,
        /// Nothing happens when there is nothing.
        if_exists: bool,
    },
    /// `ALTER TABLE name SET SCHEMA schema`, and the same of others but functions.
    SetSchema {
        /// What kind of thing it is, in capitals.
        kind: String,
        /// The name.
        name: ObjectName,
        /// The schema.
        schema: Ident,
        /// Nothing happens when there is nothing.
        if_exists: bool,
    },
    /// `ALTER TABLE name ATTACH PARTITION` and `DETACH PARTITION`
    Partition {
        /// The partitioned table.
        table: ObjectName,
        /// Nothing happens when there is no such table.
        if_exists: bool,
        /// The partition.
        partition: ObjectName,
        /// What becomes of it.
        change: partitions::Change,
    },
    /// `ALTER INDEX name ATTACH PARTITION`
    AttachIndex {
        /// The index of the partitioned table.
        index: ObjectName,
        /// That of the partition.
        partition: ObjectName,
    },
    /// Domains.
    Domain(Box<Domains>),
    /// CREATE DATABASE and DROP DATABASE.
    Database(Databases),
    /// Schemas with what is made in them, and their names.
    Schema(Schemas),
    /// Roles and their rights.
    Roles(Roles),
    /// ANALYZE, VACUUM, CHECKPOINT and REINDEX.
    Maintain(Maintain),
    /// Commit in two phases: PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED.
    TwoPhase {
        /// The command, in capitals.
        verb: &'static str,
        /// The identifier of the transaction.
        identifier: String,
    },
    /// `DO`
    Do {
        /// The language of the block.
        language: String,
        /// The block.
        code: String,
    },
    /// `CREATE TRIGGER`
    CreateTrigger {
        /// Its table.
        table: ObjectName,
        /// One of its name may be there.
        replaces: bool,
        /// The trigger.
        trigger: Box<Trigger>,
    },
    /// `ALTER TRIGGER name ON table RENAME TO new`
    RenameTrigger {
        /// The name.
        name: Ident,
        /// The table.
        table: ObjectName,
        /// The new name.
        to: Ident,
    },
    /// `DROP TRIGGER`
    DropTrigger {
        /// The name.
        name: Ident,
        /// The table.
        table: ObjectName,
        /// Nothing happens when there is nothing.
        if_exists: bool,
    },
    /// `SET CONSTRAINTS`
    SetConstraints {
        /// The constraints; `None` for all.
        names: Option<Vec<ObjectName>>,
        /// They wait for the end of the transaction.
        waits: bool,
    },
    /// `DROP INDEX CONCURRENTLY`
    DropIndex {
        /// The name.
        name: ObjectName,
        /// Nothing happens when there is nothing.
        if_exists: bool,
    },
    /// `ALTER VIEW name SET (options)` and `RESET (options)`
    ViewOptions {
        /// The view.
        view: ObjectName,
        /// The options and their values; without one it goes.
        options: Vec<(String, Option<String>)>,
        /// Nothing happens when there is no view.
        if_exists: bool,
    },
    /// `ALTER VIEW name RENAME COLUMN column TO new`
    RenameViewColumn {
        /// The view.
        view: ObjectName,
        /// The column.
        column: Ident,
        /// Its new name.
        to: Ident,
        /// Nothing happens when there is no view.
        if_exists: bool,
    },
    /// `ALTER VIEW name RENAME TO new`, and the same of others.
    Rename {
        /// What it is.
        kind: Renamed,
        /// The name.
        name: ObjectName,
        /// The new one.
        to: ObjectName,
        /// Nothing happens when there is nothing.
        if_exists: bool,
    },
}

/// Which conditions hold for rows that are written through a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOption {
    /// Its own.
    Local,
    /// Its own and those of the views that it reads.
    Cascaded,
}

impl CheckOption {
    /// As it stands behind the query of a view.
    pub fn text(self) -> &'static str {
        match self {
            Self::Local => " WITH LOCAL CHECK OPTION",
            Self::Cascaded => " WITH CASCADED CHECK OPTION",
        }
    }
}

/// What gets another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renamed {
    /// A view.
    View,
    /// A materialized view.
    Materialized,
    /// A sequence.
    Sequence,
    /// An index.
    Index,
}

/// `ALTER SEQUENCE name` with options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterSequence {
    /// The name.
    pub name: ObjectName,
    /// Nothing happens when there is nothing.
    pub if_exists: bool,
    /// The type of its numbers.
    pub ty: Option<DataType>,
    /// How it counts.
    pub options: Vec<SequenceOptions>,
    /// The next number; without one that it began with.
    pub restart: Option<Option<i64>>,
    /// `table.column`, or `NONE`.
    pub owned_by: Option<ObjectName>,
}

/// The words that begin a CREATE MATERIALIZED VIEW.
const CREATE_MATERIALIZED: [&str; 2] = ["CREATE", "MATERIALIZED"];

/// The words that begin a CREATE DUALITY VIEW.
const CREATE_DUALITY: [&str; 2] = ["CREATE", "DUALITY"];

/// The words that begin a CREATE DATABASE.
const CREATE_DATABASE: [&str; 2] = ["CREATE", "DATABASE"];

/// The words that begin an ALTER DATABASE.
const ALTER_DATABASE: [&str; 2] = ["ALTER", "DATABASE"];

/// The words that begin a CREATE ASSERTION.
const CREATE_ASSERTION: [&str; 2] = ["CREATE", "ASSERTION"];

/// The words that begin such a statement, and one that stands in it further on.
const BEGINNINGS: &[(&[&str], &str)] = &[
    (&["COMMENT", "ON", "CONSTRAINT"], ""),
    (&["COMMENT", "ON", "POLICY"], ""),
    (&["COMMENT", "ON", "TRIGGER"], ""),
    (&["COMMENT", "ON", "ROLE"], ""),
    (&["COMMENT", "ON", "DATABASE"], ""),
    (&["COMMENT", "ON", "FUNCTION"], ""),
    (&["COMMENT", "ON", "PROCEDURE"], ""),
    (&["COMMENT", "ON", "ROUTINE"], ""),
    (&["PREPARE", "TRANSACTION"], ""),
    (&["COMMIT", "PREPARED"], ""),
    (&["ROLLBACK", "PREPARED"], ""),
    (&["ALTER", "FUNCTION"], ""),
    (&["ALTER", "PROCEDURE"], ""),
    (&["ALTER", "ROUTINE"], ""),
    (&["ALTER", "VIEW"], "RENAME"),
    (&["ALTER", "VIEW"], "SET"),
    (&["ALTER", "VIEW"], "RESET"),
    (&["ALTER", "MATERIALIZED"], "RENAME"),
    (&["ALTER", "INDEX"], "RENAME"),
    (&schemas::ALTER, "RENAME"),
    (&["DROP", "INDEX", "CONCURRENTLY"], ""),
    (&CREATE_MATERIALIZED, ""),
    (&["REFRESH"], ""),
    (&CREATE_ASSERTION, ""),
    (&CREATE_DUALITY, ""),
    (&["CREATE", "OR", "REPLACE", "DUALITY"], ""),
    (&["DROP", "ASSERTION"], ""),
    (&["CREATE", "DOMAIN"], ""),
    (&["ALTER", "DOMAIN"], ""),
    (&["DROP", "DOMAIN"], ""),
    (&["CREATE", "VIEW"], "OPTION"),
    (&["CREATE", "OR", "REPLACE", "VIEW"], "OPTION"),
    (&["ALTER", "SEQUENCE"], ""),
    (&["SET", "CONSTRAINTS"], ""),
    (&CREATE_DATABASE, ""),
    (&["DROP", "DATABASE"], ""),
    (&ALTER_DATABASE, ""),
    (&["DO"], ""),
    (&["CREATE", "TRIGGER"], ""),
    (&["CREATE", "OR", "REPLACE", "TRIGGER"], ""),
    (&["CREATE", "CONSTRAINT", "TRIGGER"], ""),
    (&["CREATE", "OR", "REPLACE", "CONSTRAINT", "TRIGGER"], ""),
    (&["ALTER", "TRIGGER"], ""),
    (&["DROP", "TRIGGER"], ""),
];

/// The words of tokens; what is none is an empty one.
fn words<'t>(tokens: impl Iterator<Item = &'t Token>) -> impl Iterator<Item = String> {
    tokens.filter(|token| !matches!(token, Token::Whitespace(_))).map(word)
}

/// Whether tokens begin with these words, whatever spaces stand between them.
fn begins_with<'t>(tokens: impl Iterator<Item = &'t Token>, beginning: &[&str]) -> bool {
    let mut solid = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
    let mut next = |word: &&str| solid.next().is_some_and(|token| is(token, word));
    beginning.iter().all(&mut next)
}

/// Whether a statement is an ALTER that ends in OWNER TO somebody.
fn is_owner(tokens: &[&Token]) -> bool {
    let words: Vec<String> = words(tokens.iter().copied()).collect();
    let [.., owner, to, _] = words.as_slice() else {
        return false;
    };
    words[0] == "ALTER" && owner == "OWNER" && to == "TO" && !words.iter().any(|word| word == "RENAME")
}

/// Whether a statement is an ALTER of what is no function that ends in SET SCHEMA and a name.
fn is_schema(tokens: &[&Token]) -> bool {
    let words: Vec<String> = words(tokens.iter().copied()).collect();
    let [first, kind, .., set, schema, _] = words.as_slice() else {
        return false;
    };
    let kinds = ["TABLE", "VIEW", "MATERIALIZED", "SEQUENCE", "TYPE", "DOMAIN"];
    first == "ALTER" && kinds.contains(&kind.as_str()) && set == "SET" && schema == "SCHEMA"
}

/// Whether a statement is an ALTER TYPE that says something of attributes.
fn is_of_attributes(tokens: &[&Token]) -> bool {
    let words: Vec<String> = words(tokens.iter().copied()).collect();
    let verbs = ["ADD", "DROP", "ALTER", "RENAME"];
    let is_said = |pair: &[String]| verbs.contains(&pair[0].as_str()) && pair[1] == "ATTRIBUTE";
    words.starts_with(&["ALTER".to_owned(), "TYPE".to_owned()]) && words.windows(2).any(is_said)
}

/// Whether a statement is about roles.
fn is_of_roles<'t>(tokens: impl Iterator<Item = &'t Token>) -> bool {
    let mut words = words(tokens).take(3);
    let verbs = ["CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "REASSIGN"];
    let first = words.next().filter(|first| verbs.contains(&first.as_str()));
    first.is_some_and(|first| roles::begins(&[first].into_iter().chain(words).collect::<Vec<_>>()))
}

fn begins(statement: &[TokenWithSpan]) -> bool {
    let tokens = || statement.iter().map(|token| &token.token);
    let solid = || tokens().filter(|token| !matches!(token, Token::Whitespace(_)));
    let Some(first) = solid().next() else { return false };
    if is(first, "ALTER") {
        let all: Vec<&Token> = tokens().collect();
        let words: Vec<String> = words(tokens()).collect();
        if is_owner(&all) || is_schema(&all) || is_of_attributes(&all) || partitions::begins(&words) {
            return true;
        }
    }
    if VERBS.iter().any(|verb| is(first, verb)) || is_of_roles(tokens()) {
        return true;
    }
    if begins_with(tokens(), &schemas::CREATE) {
        return schemas::has_elements(&tokens().collect::<Vec<_>>());
    }
    BEGINNINGS.iter().any(|(beginning, further)| {
        begins_with(tokens(), beginning) && (further.is_empty() || solid().any(|token| is(token, further)))
    })
}

/// Wraps the statements that the grammar does not know.
pub(super) fn wrap(tokens: &mut Vec<TokenWithSpan>) {
    let is_end = |token: &TokenWithSpan| token.token == Token::SemiColon;
    if !tokens.split(is_end).any(begins) {
        return;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for statement in tokens.split_inclusive(is_end) {
        let (body, end) = match statement.split_last() {
            Some((last, body)) if is_end(last) => (body, Some(last)),
            _ => (statement, None),
        };
        match (begins(body), body.first()) {
            (true, Some(first)) => {
                let text: String = body.iter().map(|token| written(&token.token)).collect();
                let call = [
                    Token::make_keyword("CALL"),
                    Token::make_word(NAME, Some('"')),
                    Token::LParen,
                    Token::SingleQuotedString(text),
                    Token::RParen,
                ];
                out.extend(call.map(|token| TokenWithSpan::new(token, first.span)));
            }
            _ => out.extend_from_slice(body),
        }
        out.extend(end.cloned());
    }
    *tokens = out;
}

/// The text of a statement that was wrapped.
fn text(ast: &Statement) -> Option<&str> {
    let Statement::Call(call) = ast else { return None };
    let FunctionArguments::List(list) = &call.args else {
        return None;
    };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))]
            if call.name.to_string() == format!("\"{NAME}\"") =>
        {
            match &value.value {
                Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a statement is one that was wrapped.
pub fn is_wrapped(ast: &Statement) -> bool {
    text(ast).is_some()
}

/// Whether a statement is about roles, also one that is not right.
pub fn is_roles(ast: &Statement) -> bool {
    text(ast).is_some_and(|text| is_of_roles(tokens(text).iter()))
}

/// The statement that was wrapped, if that is one.
///
/// Errors: 42601.
pub fn of(ast: &Statement) -> Result<Option<Own>> {
    let Some(text) = text(ast) else { return Ok(None) };
    let tokens = tokens(text);
    if is_of_roles(tokens.iter()) {
        return whole(tokens, |parser| roles::read(parser).map(Own::Roles)).map(Some);
    }
    if begins_with(tokens.iter(), &schemas::CREATE) {
        return schemas::create(&tokens).map(Some);
    }
    let all: Vec<&Token> = tokens.iter().collect();
    let owns = is_owner(&all) || is_schema(&all);
    if !owns && words(tokens.iter()).nth(1).is_some_and(|word| word == "DOMAIN") {
        return whole(tokens, |parser| domains::read(parser).map(Box::new).map(Own::Domain)).map(Some);
    }
    if begins_with(tokens.iter(), &CREATE_MATERIALIZED) {
        let (create, has_data) = super::views::materialized(tokens)?;
        let create = Box::new(create);
        return Ok(Some(Own::Materialize { create, has_data }));
    }
    let is_read = begins_with(tokens.iter(), &CREATE_ASSERTION) || begins_with(tokens.iter(), &CREATE_DATABASE);
    let is_duality = words(tokens.iter()).take(4).any(|word| word == CREATE_DUALITY[1]);
    if is_duality && !is_read {
        let create = Box::new(super::views::without(tokens, CREATE_DUALITY[1])?);
        return Ok(Some(Own::Duality { create }));
    }
    let creates = words(tokens.iter()).next().is_some_and(|word| word == "CREATE");
    if creates && words(tokens.iter()).take(5).any(|word| word == "TRIGGER") {
        return whole(tokens, |parser| {
            parser.expect_keyword(Keyword::CREATE)?;
            triggers::create(parser)
        })
        .map(Some);
    }
    if creates && !is_read {
        let (create, cascades) = super::views::checked(tokens)?;
        let check = match cascades {
            true => CheckOption::Cascaded,
            false => CheckOption::Local,
        };
        let create = Box::new(create);
        return Ok(Some(Own::View { create, check }));
    }
    if !owns && begins_with(tokens.iter(), &schemas::ALTER) {
        return whole(tokens, schemas::rename).map(Some);
    }
    whole(tokens, if owns { owner } else { read }).map(Some)
}

/// What `read` reads, which is all of the tokens.
fn whole(
    tokens: Vec<Token>,
    read: impl FnOnce(&mut Parser<'_>) -> std::result::Result<Own, ParserError>,
) -> Result<Own> {
    let mut parser = Parser::new(&Sql).with_tokens(tokens);
    let read = read(&mut parser).and_then(|own| match parser.peek_token().token {
        Token::EOF => Ok(own),
        other => Err(ParserError::ParserError(format!(
            "expected the end of the statement, found {other}"
        ))),
    });
    read.map_err(|e| super::refused(e, ""))
}

/// Whether what is read attaches a partition.
fn attaches(parser: &Parser<'_>) -> bool {
    (1..8).any(|at| is(&parser.peek_nth_token(at).token, "ATTACH"))
}

/// The commands of a commit in two phases.
pub const PREPARE_TRANSACTION: &str = "PREPARE TRANSACTION";
const TWO_PHASES: [&str; 3] = [PREPARE_TRANSACTION, "COMMIT PREPARED", "ROLLBACK PREPARED"];

fn read(parser: &mut Parser<'_>) -> std::result::Result<Own, ParserError> {
    let first = word(&parser.peek_token().token);
    if let Some(verb) = TWO_PHASES
        .into_iter()
        .find(|verb| verb.split(' ').next() == Some(first.as_str()))
    {
        parser.next_token();
        parser.next_token();
        let identifier = parser.parse_literal_string()?;
        return Ok(Own::TwoPhase { verb, identifier });
    }
    if VERBS.contains(&word(&parser.peek_token().token).as_str()) {
        return maintain::read(parser).map(Own::Maintain);
    }
    if parser.parse_keyword(Keyword::DO) {
        return code(parser);
    }
    if parser.parse_keyword(Keyword::COMMENT) {
        parser.expect_keyword(Keyword::ON)?;
        if routines::KINDS.contains(&word(&parser.peek_token().token).as_str()) {
            return routines::comment(parser);
        }
        if let Some(own) = comment(parser)? {
            return Ok(own);
        }
        parser.expect_keyword(Keyword::CONSTRAINT)?;
        let constraint = parser.parse_identifier()?;
        parser.expect_keyword(Keyword::ON)?;
        let table = parser.parse_object_name(false)?;
        parser.expect_keyword(Keyword::IS)?;
        let text = match parser.parse_keyword(Keyword::NULL) {
            true => None,
            false => Some(parser.parse_literal_string()?),
        };
        return Ok(Own::CommentOnConstraint {
            constraint,
            table,
            text,
        });
    }
    if parser.parse_keyword(Keyword::REFRESH) {
        return refresh(parser);
    }
    if parser.parse_keyword(Keyword::SET) {
        return set_constraints(parser);
    }
    if parser.parse_keywords(&[Keyword::CREATE, Keyword::DATABASE]) {
        return databases::read(parser, true).map(Own::Database);
    }
    if parser.parse_keywords(&[Keyword::DROP, Keyword::DATABASE]) {
        return databases::read(parser, false).map(Own::Database);
    }
    if parser.parse_keywords(&[Keyword::ALTER, Keyword::DATABASE]) {
        return databases::alter(parser).map(Own::Database);
    }
    if parser.parse_keyword(Keyword::CREATE) {
        parser.next_token();
        let name = parser.parse_object_name(false)?;
        parser.expect_keyword(Keyword::CHECK)?;
        let mut condition = String::new();
        while parser.peek_token().token != Token::EOF {
            condition.push_str(&format!("{} ", written(&parser.next_token().token)));
        }
        let condition = condition.trim().to_owned();
        return match condition.starts_with('(') && condition.ends_with(')') {
            true => Ok(Own::CreateAssertion { name, condition }),
            false => Err(ParserError::ParserError(
                "expected a condition in parentheses".to_owned(),
            )),
        };
    }
    if parser.parse_keywords(&[Keyword::DROP, Keyword::INDEX, Keyword::CONCURRENTLY]) {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name = parser.parse_object_name(false)?;
        let _ = parser.parse_keyword(Keyword::RESTRICT);
        return Ok(Own::DropIndex { name, if_exists });
    }
    if parser.parse_keywords(&[Keyword::DROP, Keyword::TRIGGER]) {
        return triggers::drop(parser);
    }
    if parser.parse_keyword(Keyword::DROP) {
        parser.next_token();
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
        let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
        return Ok(Own::DropAssertion { names, if_exists });
    }
    parser.expect_keyword(Keyword::ALTER)?;
    let next = parser.peek_token().token;
    if is(&next, "TABLE") || is(&next, "INDEX") && attaches(parser) {
        return partitions::read(parser);
    }
    if parser.parse_keyword(Keyword::TRIGGER) {
        return triggers::alter(parser);
    }
    if routines::KINDS.contains(&word(&parser.peek_token().token).as_str()) {
        return routines::alter(parser);
    }
    if parser.parse_keyword(Keyword::TYPE) {
        return attributes::read(parser).map(Own::AlterAttributes);
    }
    let kinds = [Keyword::VIEW, Keyword::MATERIALIZED, Keyword::SEQUENCE, Keyword::INDEX];
    let kind = match parser.expect_one_of_keywords(&kinds)? {
        Keyword::VIEW => Renamed::View,
        Keyword::SEQUENCE => Renamed::Sequence,
        Keyword::INDEX => Renamed::Index,
        _ => {
            parser.expect_keyword(Keyword::VIEW)?;
            Renamed::Materialized
        }
    };
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    if kind == Renamed::Sequence && !parser.peek_keyword(Keyword::RENAME) {
        return sequence(parser, name, if_exists).map(Own::AlterSequence);
    }
    if kind == Renamed::View && super::assigned::is_next(parser) {
        let options = super::views::options(parser)?;
        return Ok(Own::ViewOptions {
            view: name,
            options,
            if_exists,
        });
    }
    if kind == Renamed::View && parser.peek_keyword(Keyword::ALTER) {
        return Err(ParserError::ParserError(format!(
            "{}a default of a view's column",
            super::NOT_SUPPORTED
        )));
    }
    parser.expect_keyword(Keyword::RENAME)?;
    if kind == Renamed::View && !parser.peek_keyword(Keyword::TO) {
        let _ = parser.parse_keyword(Keyword::COLUMN);
        let column = parser.parse_identifier()?;
        parser.expect_keyword(Keyword::TO)?;
        return Ok(Own::RenameViewColumn {
            view: name,
            column,
            to: parser.parse_identifier()?,
            if_exists,
        });
    }
    parser.expect_keyword(Keyword::TO)?;
    let to = parser.parse_object_name(false)?;
    Ok(Own::Rename {
        kind,
        name,
        to,
        if_exists,
    })
}

/// COMMENT ON something of these kinds, behind the first two words.
fn comment(parser: &mut Parser<'_>) -> std::result::Result<Option<Own>, ParserError> {
    let first = word(&parser.peek_token().token);
    let kind = ["POLICY", "TRIGGER", "ROLE", "DATABASE"]
        .into_iter()
        .find(|kind| *kind == first);
    let of_domain = first == "CONSTRAINT" && is(&parser.peek_nth_token(3).token, "DOMAIN");
    let Some(kind) = kind.or(of_domain.then_some("CONSTRAINT")) else {
        return Ok(None);
    };
    parser.next_token();
    let name = parser.parse_identifier()?;
    let on = match kind {
        "ROLE" | "DATABASE" => None,
        _ => {
            parser.expect_keyword(Keyword::ON)?;
            if of_domain {
                parser.next_token();
            }
            Some(parser.parse_object_name(false)?)
        }
    };
    parser.expect_keyword(Keyword::IS)?;
    let text = match parser.parse_keyword(Keyword::NULL) {
        true => None,
        false => Some(parser.parse_literal_string()?),
    };
    Ok(Some(Own::Comment { kind, name, on, text }))
}

/// DO, behind that word: a block, and before or behind it its language.
fn code(parser: &mut Parser<'_>) -> std::result::Result<Own, ParserError> {
    let (mut language, mut code) = (None, None);
    loop {
        match parser.next_token().token {
            Token::Word(word) if word.keyword == Keyword::LANGUAGE && language.is_none() => {
                let name = match parser.peek_token().token {
                    Token::SingleQuotedString(name) => {
                        parser.next_token();
                        name
                    }
                    _ => parser.parse_identifier()?.value,
                };
                language = Some(name.to_lowercase());
            }
            Token::DollarQuotedString(text) if code.is_none() => code = Some(text.value),
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) if code.is_none() => code = Some(text),
            Token::EOF => break,
            other => {
                return Err(ParserError::ParserError(format!(
                    "expected a block or its language, found {other}"
                )));
            }
        }
    }
    match code {
        Some(code) => Ok(Own::Do {
            language: language.unwrap_or_else(|| "plpgsql".to_owned()),
            code,
        }),
        None => Err(ParserError::ParserError("no inline code specified".to_owned())),
    }
}

/// The tokens of a text; none of one that has none.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    Tokenizer::new(&Sql, text).tokenize().unwrap_or_default()
}

/// A token as it is written.
pub(crate) fn shown(token: &Token) -> String {
    written(token)
}

/// ALTER … OWNER TO and SET SCHEMA.
fn owner(parser: &mut Parser<'_>) -> std::result::Result<Own, ParserError> {
    parser.expect_keyword(Keyword::ALTER)?;
    let mut kind = word(&parser.next_token().token);
    if parser.parse_keyword(Keyword::VIEW) {
        kind.push_str(" VIEW");
    }
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let _ = parser.parse_keyword(Keyword::ONLY);
    let name = parser.parse_object_name(false)?;
    if ["FUNCTION", "PROCEDURE", "ROUTINE"].contains(&kind.as_str()) && parser.consume_token(&Token::LParen) {
        // Whichever of a name it is, nothing changes.
        let mut open = 1;
        while open > 0 {
            match parser.next_token().token {
                Token::LParen => open += 1,
                Token::RParen => open -= 1,
                Token::EOF => return parser.expected("a parenthesis", parser.peek_token()),
                _ => {}
            }
        }
    }
    if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        let schema = parser.parse_identifier()?;
        return Ok(Own::SetSchema {
            kind,
            name,
            schema,
            if_exists,
        });
    }
    parser.expect_keywords(&[Keyword::OWNER, Keyword::TO])?;
    let owner = parser.parse_identifier()?;
    Ok(Own::Owner {
        kind,
        name,
        owner,
        if_exists,
    })
}

/// SET CONSTRAINTS, behind the first word.
fn set_constraints(parser: &mut Parser<'_>) -> std::result::Result<Own, ParserError> {
    parser.next_token();
    let names = match parser.parse_keyword(Keyword::ALL) {
        true => None,
        false => Some(parser.parse_comma_separated(|parser| parser.parse_object_name(false))?),
    };
    let when = parser.expect_one_of_keywords(&[Keyword::DEFERRED, Keyword::IMMEDIATE])?;
    let waits = when == Keyword::DEFERRED;
    Ok(Own::SetConstraints { names, waits })
}

/// REFRESH, behind that word.
fn refresh(parser: &mut Parser<'_>) -> std::result::Result<Own, ParserError> {
    parser.expect_keywords(&[Keyword::MATERIALIZED, Keyword::VIEW])?;
    let concurrently = parser.parse_keyword(Keyword::CONCURRENTLY);
    let name = parser.parse_object_name(false)?;
    let mut has_data = true;
    if parser.parse_keyword(Keyword::WITH) {
        has_data = !parser.parse_keyword(Keyword::NO);
        parser.expect_keyword(Keyword::DATA)?;
    }
    Ok(Own::Refresh {
        name,
        concurrently,
        has_data,
    })
}

/// The options of an ALTER SEQUENCE: those of CREATE SEQUENCE, and RESTART among them.
fn sequence(
    parser: &mut Parser<'_>,
    name: ObjectName,
    if_exists: bool,
) -> std::result::Result<AlterSequence, ParserError> {
    let (mut rest, mut restart) = (String::new(), None);
    loop {
        if parser.parse_keyword(Keyword::RESTART) {
            let is_said = parser.parse_keyword(Keyword::WITH);
            let is_negative = parser.consume_token(&Token::Minus);
            let number = match parser.peek_token().token {
                Token::Number(digits, _) => {
                    parser.next_token();
                    let digits = if is_negative { format!("-{digits}") } else { digits };
                    let read = digits.parse::<i64>();
                    Some(read.map_err(|_| ParserError::ParserError(format!("{digits} is no number of a sequence")))?)
                }
                _ if is_said || is_negative => return parser.expected("a number", parser.peek_token()),
                _ => None,
            };
            restart = Some(number);
            continue;
        }
        match parser.next_token().token {
            Token::EOF => break,
            token => rest.push_str(&format!(" {}", written(&token))),
        }
    }
    if rest.is_empty() && restart.is_none() {
        return Err(ParserError::ParserError("ALTER SEQUENCE says nothing".to_owned()));
    }
    let text = format!("CREATE SEQUENCE s{rest}");
    let mut tokens = Tokenizer::new(&Sql, &text).tokenize_with_location()?;
    super::options::put_in_order(&mut tokens);
    let mut parser = Parser::new(&Sql).with_tokens_with_locations(tokens);
    match (parser.parse_statement()?, parser.peek_token().token) {
        (
            Statement::CreateSequence {
                data_type,
                sequence_options,
                owned_by,
                ..
            },
            Token::EOF,
        ) => Ok(AlterSequence {
            name,
            if_exists,
            ty: data_type,
            options: sequence_options,
            restart,
            owned_by,
        }),
        (_, other) => Err(ParserError::ParserError(format!(
            "expected an option of a sequence, found {other}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_between_others() {
        let all = super::super::parse(
            "SELECT ';'; COMMENT ON CONSTRAINT \"a b\" ON s.t IS 'it''s; so'; ALTER VIEW v RENAME TO w",
        )
        .unwrap();
        let own: Vec<Option<Own>> = all.iter().map(|ast| of(ast).unwrap()).collect();
        assert!(own[0].is_none());
        assert!(matches!(&own[1], Some(Own::CommentOnConstraint { text: Some(text), .. }) if text == "it's; so"));
        assert!(matches!(&own[2], Some(Own::Rename { if_exists: false, .. })));
        assert!(super::super::parse("ALTER VIEW v RENAME TO").is_err());
        let all = super::super::parse("ALTER SEQUENCE s RESTART WITH -5 MAXVALUE 9 INCREMENT 2 OWNED BY t.c").unwrap();
        assert!(matches!(
            of(&all[0]),
            Ok(Some(Own::AlterSequence(AlterSequence {
                restart: Some(Some(-5)),
                ..
            })))
        ));
        assert!(super::super::parse("ALTER SEQUENCE s RESTART WITH").is_err());
        assert!(super::super::parse("ALTER SEQUENCE s").is_err());
        let all =
            super::super::parse("ALTER TYPE s.t ADD ATTRIBUTE a int, DROP ATTRIBUTE IF EXISTS b CASCADE").unwrap();
        assert!(matches!(of(&all[0]), Ok(Some(Own::AlterAttributes(alter))) if alter.changes.len() == 2));
        let all = super::super::parse("ALTER TYPE attribute ADD VALUE 'attribute'").unwrap();
        assert!(of(&all[0]).unwrap().is_none());
        assert!(super::super::parse("ALTER TYPE t ADD ATTRIBUTE a int, RENAME ATTRIBUTE b TO c").is_err());
    }
}
