//! CREATE, ALTER and DROP TRIGGER, and what of procedures the grammar's library does not read.

use super::own::Own;
use super::tokens::{closing, is, solid};
use super::trigger::{Event, Trigger};
use sqlparser::ast::{Expr, Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What a procedure is declared to return, where the statement is kept as one that makes a function.
pub const PROCEDURE: &str = "no function";

type Read<T> = std::result::Result<T, ParserError>;

/// What stands before the names of routines of which it is not said whether they are functions or procedures.
pub const ANY_ROUTINE: &str = "any routine";

fn refused<T>(what: &str) -> Read<T> {
    // The words by which it is known that there is no such thing.
    Err(ParserError::ParserError(format!("{}{what}", super::NOT_SUPPORTED)))
}

/// The name that an identifier is.
fn name_of(ident: &Ident) -> String {
    match ident.quote_style {
        None => ident.value.to_lowercase(),
        Some(_) => ident.value.clone(),
    }
}

/// Schema and name.
fn parted(name: &ObjectName) -> Read<(Option<String>, String)> {
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(name_of).collect();
    match parts.as_slice() {
        [name] => Ok((None, name.clone())),
        [schema, name] => Ok((Some(schema.clone()), name.clone())),
        _ => Err(ParserError::ParserError(format!(
            "expected the name of a function, found: {name}"
        ))),
    }
}

/// CREATE TRIGGER, behind the words that may say OR REPLACE.
pub(super) fn create(parser: &mut Parser<'_>) -> Read<Own> {
    let replaces = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    let is_constraint = parser.parse_keyword(Keyword::CONSTRAINT);
    parser.expect_keyword(Keyword::TRIGGER)?;
    let name = name_of(&parser.parse_identifier()?);
    let when = parser.expect_one_of_keywords(&[Keyword::BEFORE, Keyword::AFTER, Keyword::INSTEAD])?;
    let (is_before, is_instead) = (when == Keyword::BEFORE, when == Keyword::INSTEAD);
    if is_instead {
        parser.expect_keyword(Keyword::OF)?;
    }
    let (mut events, mut columns) = (Vec::new(), Vec::new());
    loop {
        let words = [Keyword::INSERT, Keyword::UPDATE, Keyword::DELETE, Keyword::TRUNCATE];
        let event = match parser.expect_one_of_keywords(&words)? {
            Keyword::INSERT => Event::Insert,
            Keyword::DELETE => Event::Delete,
            Keyword::TRUNCATE => Event::Truncate,
            _ => {
                if parser.parse_keyword(Keyword::OF) {
                    let named = parser.parse_comma_separated(Parser::parse_identifier)?;
                    columns = named.iter().map(name_of).collect();
                }
                Event::Update
            }
        };
        if events.contains(&event) {
            return Err(ParserError::ParserError(
                "duplicate trigger events specified".to_owned(),
            ));
        }
        events.push(event);
        if !parser.parse_keyword(Keyword::OR) {
            break;
        }
    }
    events.sort();
    parser.expect_keyword(Keyword::ON)?;
    let table = parser.parse_object_name(false)?;
    if is_constraint && parser.parse_keyword(Keyword::FROM) {
        return refused("FROM of a CONSTRAINT TRIGGER");
    }
    let constraint = match is_constraint {
        true => Some(timing(parser)?),
        false => None,
    };
    let tables = tables(parser)?;
    let mut is_row = false;
    if parser.parse_keyword(Keyword::FOR) {
        let _ = parser.parse_keyword(Keyword::EACH);
        is_row = parser.expect_one_of_keywords(&[Keyword::ROW, Keyword::STATEMENT])? == Keyword::ROW;
    }
    let condition = match parser.parse_keyword(Keyword::WHEN) {
        true => {
            parser.expect_token(&Token::LParen)?;
            let mut condition = parser.parse_expr()?;
            // Dumps have more parentheses around it than are needed.
            while let Expr::Nested(inner) = condition {
                condition = *inner;
            }
            parser.expect_token(&Token::RParen)?;
            Some(Box::new(condition))
        }
        false => None,
    };
    parser.expect_keyword(Keyword::EXECUTE)?;
    parser.expect_one_of_keywords(&[Keyword::FUNCTION, Keyword::PROCEDURE])?;
    let called = parser.parse_object_name(false)?;
    let (schema, function) = parted(&called)?;
    parser.expect_token(&Token::LParen)?;
    let mut args = Vec::new();
    while !parser.consume_token(&Token::RParen) {
        args.push(match parser.next_token().token {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text,
            Token::Number(text, _) => text,
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            Token::Word(word) => word.value,
            other => return Err(ParserError::ParserError(format!("expected a constant, found: {other}"))),
        });
        if !parser.consume_token(&Token::Comma) {
            parser.expect_token(&Token::RParen)?;
            break;
        }
    }
    let is_off = matches!(&parser.peek_token().token, Token::Word(word) if word.value == "DISABLED");
    if is_off {
        parser.next_token();
    }
    Ok(Own::CreateTrigger {
        table,
        replaces,
        trigger: Box::new(Trigger {
            name,
            is_before,
            is_instead,
            events,
            columns,
            is_row,
            condition,
            schema,
            function,
            args,
            is_off,
            constraint,
            tables,
        }),
    })
}

/// Whether a constraint may wait, and does.
fn timing(parser: &mut Parser<'_>) -> Read<(bool, bool)> {
    let (mut may, mut does) = (None, None);
    loop {
        if parser.parse_keywords(&[Keyword::NOT, Keyword::DEFERRABLE]) {
            may = Some(false);
        } else if parser.parse_keyword(Keyword::DEFERRABLE) {
            may = Some(true);
        } else if parser.parse_keyword(Keyword::INITIALLY) {
            let when = parser.expect_one_of_keywords(&[Keyword::DEFERRED, Keyword::IMMEDIATE])?;
            does = Some(when == Keyword::DEFERRED);
        } else {
            break;
        }
    }
    match (may, does) {
        (Some(false), Some(true)) => Err(ParserError::ParserError(
            "constraint declared INITIALLY DEFERRED must be DEFERRABLE".to_owned(),
        )),
        (may, does) => Ok((may.unwrap_or(does == Some(true)), does.unwrap_or(false))),
    }
}

/// REFERENCING and the names of tables.
fn tables(parser: &mut Parser<'_>) -> Read<(Option<String>, Option<String>)> {
    let mut out = (None, None);
    if !parser.parse_keyword(Keyword::REFERENCING) {
        return Ok(out);
    }
    while let Some(which) = parser.parse_one_of_keywords(&[Keyword::OLD, Keyword::NEW]) {
        if parser.parse_keyword(Keyword::ROW) {
            return refused("ROW variable naming in the REFERENCING clause");
        }
        parser.expect_keyword(Keyword::TABLE)?;
        let _ = parser.parse_keyword(Keyword::AS);
        let name = name_of(&parser.parse_identifier()?);
        let place = if which == Keyword::OLD { &mut out.0 } else { &mut out.1 };
        if place.replace(name).is_some() {
            return Err(ParserError::ParserError(
                "OLD TABLE and NEW TABLE cannot be specified multiple times".to_owned(),
            ));
        }
    }
    match out {
        (None, None) => parser.expected("OLD or NEW", parser.peek_token()),
        out => Ok(out),
    }
}

/// ALTER TRIGGER, behind that.
pub(super) fn alter(parser: &mut Parser<'_>) -> Read<Own> {
    let name = parser.parse_identifier()?;
    parser.expect_keyword(Keyword::ON)?;
    let table = parser.parse_object_name(false)?;
    if !parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        return refused("this form of ALTER TRIGGER");
    }
    let to = parser.parse_identifier()?;
    Ok(Own::RenameTrigger { name, table, to })
}

/// DROP TRIGGER, behind that.
pub(super) fn drop(parser: &mut Parser<'_>) -> Read<Own> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_identifier()?;
    parser.expect_keyword(Keyword::ON)?;
    let table: ObjectName = parser.parse_object_name(false)?;
    let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
    Ok(Own::DropTrigger { name, table, if_exists })
}

/// Spells procedures out as functions that return nothing which can be called by CALL, and `DROP ROUTINE` as `DROP FUNCTION` of whatever it is.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let has = |word: &str| tokens.iter().any(|token| is(token, word));
    if !has("procedure") && !has("routine") {
        return;
    }
    let mut starts: Vec<usize> = vec![0];
    let ends = (0..tokens.len()).filter(|at| tokens[*at].token == Token::SemiColon);
    starts.extend(ends.map(|at| at + 1));
    for start in starts.into_iter().rev() {
        let places: Vec<usize> = solid(tokens, start).take(4).collect();
        let word = |n: usize, word: &str| places.get(n).is_some_and(|at| is(&tokens[*at], word));
        if word(0, "drop") && word(1, "routine") {
            let at = places[1];
            let behind = match places.get(2..4) {
                Some([a, b]) if is(&tokens[*a], "if") && is(&tokens[*b], "exists") => b + 1,
                _ => at + 1,
            };
            let made = super::tokens::made(&format!(" \"{ANY_ROUTINE}\","), &tokens[at]);
            tokens.splice(behind..behind, made);
            tokens[at].token = Token::make_keyword("FUNCTION");
            continue;
        }
        let at = match word(0, "create") {
            true if word(1, "procedure") => places[1],
            true if word(1, "or") && word(2, "replace") && word(3, "procedure") => places[3],
            _ => continue,
        };
        let open = solid(tokens, at + 1).find(|at| tokens[*at].token == Token::LParen);
        let Some(close) = open.and_then(|open| closing(tokens, open)) else {
            continue;
        };
        let returns = format!(" RETURNS \"{}\" ", PROCEDURE);
        let made = super::tokens::made(&returns, &tokens[close]);
        tokens.splice(close + 1..close + 1, made);
        tokens[at].token = Token::make_keyword("FUNCTION");
    }
}
