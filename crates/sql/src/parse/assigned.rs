//! What is set for later: `SET name TO value` and `RESET name` of roles, databases and functions.

use super::maintain::Parsed;
use super::word::word as word_of;
use crate::error::fail;
use crate::types::names;
use nestor_model::Result;
use sqlparser::ast::{Expr, FunctionDefinitionSetParam, FunctionSetValue, Value as Literal};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A setting, and what it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The setting, in lower case; `None` for all of them.
    pub name: Option<String>,
    /// What it is to be.
    pub value: Value,
}

/// What a setting is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// These values, one by one.
    Is(Vec<String>),
    /// What it is in the session that says so: FROM CURRENT.
    Current,
    /// What it would be if nothing were said.
    First,
}

impl Assigned {
    /// What a clause of CREATE FUNCTION says.
    pub fn of_clause(clause: &FunctionDefinitionSetParam) -> Self {
        Self {
            name: Some(clause.name.to_string().replace('"', "").to_lowercase()),
            value: match &clause.value {
                FunctionSetValue::Values(values) => Value::Is(values.iter().map(text_of).collect()),
                FunctionSetValue::FromCurrent => Value::Current,
                FunctionSetValue::Default => Value::First,
            },
        }
    }
}

/// Settings whose values are lists; those of names are quoted.
const LISTS: [&str; 2] = ["datestyle", "search_path"];

/// Values as one text.
///
/// Errors: 22023 for several of a setting that is no list.
pub fn text(name: &str, values: &[String]) -> Result<String> {
    match values {
        [_, _, ..] if !LISTS.contains(&name) => fail("22023", format!("SET {name} takes only one argument")),
        _ if name == "search_path" => Ok(values
            .iter()
            .map(|own| names::quoted(own))
            .collect::<Vec<_>>()
            .join(", ")),
        _ => Ok(values.join(", ")),
    }
}

/// The text that a word or a literal behind SET is.
pub fn text_of(value: &Expr) -> String {
    match value {
        Expr::Identifier(word) => names::ident(word),
        Expr::Value(literal) => match &literal.value {
            Literal::SingleQuotedString(text) | Literal::EscapedStringLiteral(text) => text.clone(),
            Literal::DoubleQuotedString(text) => text.clone(),
            Literal::DollarQuotedString(text) => text.value.clone(),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

/// The setting of a clause of CREATE FUNCTION in lower case, and its value; `None` for one that is what it would be without the clause, as FROM CURRENT has
/// a value by the time that a function is kept.
///
/// Errors: 22023 for several values of a setting that is no list.
pub fn of_function(clause: &FunctionDefinitionSetParam) -> Result<Option<(String, String)>> {
    match Assigned::of_clause(clause) {
        Assigned {
            name: Some(name),
            value: Value::Is(values),
        } => {
            let text = text(&name, &values)?;
            Ok(Some((name, text)))
        }
        _ => Ok(None),
    }
}

/// Whether a clause of this kind is next.
pub(super) fn is_next(parser: &Parser<'_>) -> bool {
    matches!(word_of(&parser.peek_token().token).as_str(), "SET" | "RESET")
}

/// Reads `SET …` or `RESET …`.
///
/// Errors: those of syntax, 0A000 for a form that is no assignment.
pub(super) fn read(parser: &mut Parser<'_>) -> Parsed<Assigned> {
    let resets = word_of(&parser.next_token().token) == "RESET";
    let first = word_of(&parser.peek_token().token);
    let second = word_of(&parser.peek_nth_token(1).token);
    let of = |name: &str, value: Value| Assigned {
        name: Some(name.to_owned()),
        value,
    };
    match (resets, first.as_str(), second.as_str()) {
        (true, "ALL", _) => {
            parser.next_token();
            return Ok(Assigned {
                name: None,
                value: Value::First,
            });
        }
        (_, "TIME", "ZONE") => {
            parser.next_token();
            parser.next_token();
            return match resets {
                true => Ok(of("timezone", Value::First)),
                false if word_of(&parser.peek_token().token) == "LOCAL" => {
                    parser.next_token();
                    Ok(of("timezone", Value::First))
                }
                false => Ok(of(
                    "timezone",
                    one(parser)?.map_or(Value::First, |own| Value::Is(vec![own])),
                )),
            };
        }
        (false, "NAMES", _) if !is_sign(&parser.peek_nth_token(1).token) => {
            parser.next_token();
            return Ok(of(
                "client_encoding",
                one(parser)?.map_or(Value::First, |own| Value::Is(vec![own])),
            ));
        }
        (false, "ROLE" | "SCHEMA", _) if !is_sign(&parser.peek_nth_token(1).token) => {
            parser.next_token();
            let name = if first == "ROLE" { "role" } else { "search_path" };
            let value = one(parser)?;
            return Ok(of(name, value.map_or(Value::First, |own| Value::Is(vec![own]))));
        }
        (_, "TRANSACTION" | "XML" | "CATALOG" | "LOCAL", _) | (false, "SESSION", _)
            if !is_sign(&parser.peek_nth_token(1).token) =>
        {
            return Err(ParserError::ParserError(format!(
                "{}SET {first} of what begins later",
                super::NOT_SUPPORTED
            )));
        }
        _ => {}
    }
    let mut name = names::ident(&parser.parse_identifier()?).to_lowercase();
    while parser.consume_token(&Token::Period) {
        name = format!("{name}.{}", names::ident(&parser.parse_identifier()?).to_lowercase());
    }
    if resets {
        return Ok(of(&name, Value::First));
    }
    if word_of(&parser.peek_token().token) == "FROM" {
        parser.next_token();
        return match word_of(&parser.peek_token().token).as_str() {
            "CURRENT" => {
                parser.next_token();
                Ok(of(&name, Value::Current))
            }
            _ => parser.expected("CURRENT", parser.peek_token()),
        };
    }
    if !parser.consume_token(&Token::Eq) && word_of(&parser.next_token().token) != "TO" {
        parser.prev_token();
        return parser.expected("TO or =", parser.peek_token());
    }
    let Some(value) = one(parser)? else {
        return Ok(of(&name, Value::First));
    };
    let mut all = vec![value];
    while parser.consume_token(&Token::Comma) {
        match one(parser)? {
            Some(value) => all.push(value),
            None => return parser.expected("a value", parser.peek_token()),
        }
    }
    Ok(of(&name, Value::Is(all)))
}

fn is_sign(token: &Token) -> bool {
    *token == Token::Eq || matches!(word_of(token).as_str(), "TO" | "FROM")
}

/// One value; `None` for DEFAULT.
fn one(parser: &mut Parser<'_>) -> Parsed<Option<String>> {
    let is_negative = parser.consume_token(&Token::Minus);
    let is_signed = is_negative || parser.consume_token(&Token::Plus);
    let next = parser.next_token();
    Ok(Some(match next.token {
        Token::Number(digits, _) if is_negative => format!("-{digits}"),
        Token::Number(digits, _) => digits,
        _ if is_signed => return parser.expected("a number", next),
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") => {
            return Ok(None);
        }
        Token::Word(word) => match word.quote_style {
            None => word.value.to_lowercase(),
            Some(_) => word.value,
        },
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text,
        Token::DollarQuotedString(text) => text.value,
        _ => return parser.expected("a value", next),
    }))
}
