//! CREATE SCHEMA with statements within it, and ALTER SCHEMA … RENAME TO.

use super::columns::written;
use super::dialect::Sql;
use super::maintain::Parsed;
use super::own::{self, Own};
use super::word::{is, word};
use crate::error::{error, fail};
use nestor_model::Result;
use sqlparser::ast::{Ident, ObjectName, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schemas {
    /// CREATE SCHEMA with statements within it.
    Create {
        /// The statement without these.
        create: Box<Statement>,
        /// These, in the order in which they run.
        elements: Vec<Statement>,
    },
    /// ALTER SCHEMA … RENAME TO
    Rename {
        /// The schema.
        name: Ident,
        /// Its new name.
        to: Ident,
    },
}

/// The words that begin a CREATE SCHEMA.
pub(super) const CREATE: [&str; 2] = ["CREATE", "SCHEMA"];
/// The words that begin an ALTER SCHEMA.
pub(super) const ALTER: [&str; 2] = ["ALTER", "SCHEMA"];

/// Where the statements within a CREATE SCHEMA begin, among tokens of which some are blanks.
fn beginnings(tokens: &[&Token]) -> Vec<usize> {
    let solid: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at], Token::Whitespace(_)))
        .collect();
    let mut depth = 0i64;
    let mut out = Vec::new();
    for (n, at) in solid.iter().copied().enumerate() {
        match tokens[at] {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        // A name may be such a word, and so may rights that are granted.
        let before = n.checked_sub(1).map(|before| tokens[solid[before]]);
        let is_named = before.is_none_or(|before| {
            let words = ["SCHEMA", "AUTHORIZATION", "EXISTS", "GRANT", "REVOKE", "WITH"];
            words.iter().any(|own| is(before, own)) || matches!(before, Token::Comma | Token::Period)
        });
        if depth == 0 && n > 0 && !is_named && (is(tokens[at], "CREATE") || is(tokens[at], "GRANT")) {
            out.push(at);
        }
    }
    out
}

/// Whether a CREATE SCHEMA has statements within it.
pub(super) fn has_elements(tokens: &[&Token]) -> bool {
    !beginnings(tokens).is_empty()
}

/// When a statement within a CREATE SCHEMA runs; `None` for those that do not stand there.
fn place(ast: &Statement) -> Result<Option<usize>> {
    Ok(match (ast, own::of(ast)?) {
        (Statement::CreateSequence { .. }, _) => Some(0),
        (Statement::CreateTable(create), _) if create.query.is_none() => Some(1),
        (Statement::CreateView(_), _) | (_, Some(Own::View { .. })) => Some(2),
        (Statement::CreateIndex(_), _) => Some(3),
        (_, Some(Own::CreateTrigger { .. })) => Some(4),
        (_, Some(Own::Roles(_))) => Some(5),
        _ => None,
    })
}

/// Reads a CREATE SCHEMA with statements within it.
///
/// Errors: 42601, 0A000 with IF NOT EXISTS.
pub(super) fn create(tokens: &[Token]) -> Result<Own> {
    let all: Vec<&Token> = tokens.iter().collect();
    let begins = beginnings(&all);
    let text = |from: usize, to: usize| -> String { tokens[from..to].iter().map(written).collect() };
    let first = begins.first().copied().unwrap_or(tokens.len());
    let single = |text: &str| match super::parse(text)?.as_slice() {
        [one] => Ok(one.clone()),
        _ => fail("42601", format!("syntax error in \"{text}\"")),
    };
    let create = single(&text(0, first))?;
    let Statement::CreateSchema { if_not_exists, .. } = &create else {
        return fail("42601", "syntax error in CREATE SCHEMA");
    };
    if *if_not_exists {
        return fail("0A000", "CREATE SCHEMA IF NOT EXISTS cannot include schema elements");
    }
    let mut elements = Vec::new();
    for (n, from) in begins.iter().copied().enumerate() {
        let ast = single(&text(from, begins.get(n + 1).copied().unwrap_or(tokens.len())))?;
        match place(&ast)? {
            Some(place) => elements.push((place, ast)),
            None => {
                // What is made is what does not belong there.
                let mut solid = tokens[from..]
                    .iter()
                    .filter(|token| !matches!(token, Token::Whitespace(_)));
                let shown = solid.nth(1).map(word).unwrap_or_default();
                return Err(error("42601", format!("syntax error at or near \"{shown}\"")));
            }
        }
    }
    elements.sort_by_key(|(place, _)| *place);
    Ok(Own::Schema(Schemas::Create {
        create: Box::new(create),
        elements: elements.into_iter().map(|(_, ast)| ast).collect(),
    }))
}

/// Reads an ALTER SCHEMA … RENAME TO.
pub(super) fn rename(parser: &mut Parser<'_>) -> Parsed<Own> {
    parser.expect_keyword(Keyword::ALTER)?;
    parser.expect_keyword(Keyword::SCHEMA)?;
    let name = parser.parse_identifier()?;
    parser.expect_keywords(&[Keyword::RENAME, Keyword::TO])?;
    let to = parser.parse_identifier()?;
    Ok(Own::Schema(Schemas::Rename { name, to }))
}

/// The schemas that a statement within a CREATE SCHEMA names what it makes by.
pub fn named(ast: &Statement) -> Result<Vec<ObjectName>> {
    Ok(match (ast, own::of(ast)?) {
        (Statement::CreateSequence { name, .. }, _) => vec![name.clone()],
        (Statement::CreateTable(create), _) => vec![create.name.clone()],
        (Statement::CreateView(create), _) => vec![create.name.clone()],
        (_, Some(Own::View { create, .. })) => vec![create.name.clone()],
        (Statement::CreateIndex(create), _) => vec![create.table_name.clone()],
        (_, Some(Own::CreateTrigger { table, .. })) => vec![table],
        _ => Vec::new(),
    })
}

/// Whether a text names something by a schema.
pub fn is_named(text: &str, schema: &str) -> bool {
    let tokens = Tokenizer::new(&Sql, text).tokenize().unwrap_or_default();
    let solid: Vec<&Token> = tokens
        .iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect();
    solid.windows(2).any(|pair| match pair {
        [Token::Word(own), Token::Period] => match own.quote_style {
            Some(_) => own.value == schema,
            None => own.value.to_lowercase() == schema,
        },
        _ => false,
    })
}
