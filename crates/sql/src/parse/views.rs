//! What the grammar does not know of views: what stands behind their queries.

use super::columns::written;
use super::word::is;
use crate::error::error;
use nestor_model::Result;
use sqlparser::ast::{CreateView, Statement};
use sqlparser::tokenizer::Token;

/// Takes words from the end of a statement, if they stand there.
fn cut(tokens: &mut Vec<Token>, words: &[&str]) -> bool {
    let mut at = tokens.len();
    for word in words.iter().rev() {
        while at > 0 && matches!(tokens[at - 1], Token::Whitespace(_)) {
            at -= 1;
        }
        let is_word = |token: &Token| is(token, word);
        if at == 0 || !is_word(&tokens[at - 1]) {
            return false;
        }
        at -= 1;
    }
    tokens.truncate(at);
    true
}

/// The CREATE VIEW that tokens are.
fn create(tokens: &[Token]) -> Result<CreateView> {
    let text: String = tokens.iter().map(written).collect();
    let mut parser = super::parser(&text, false)?;
    let statement = parser.parse_statement().map_err(|e| super::refused(e, ""))?;
    match (statement, parser.peek_token().token) {
        (Statement::CreateView(create), Token::EOF | Token::SemiColon) => Ok(create),
        (_, other) => Err(error(
            "42601",
            format!("syntax error: expected the end of the statement, found {other}"),
        )),
    }
}

/// The CREATE MATERIALIZED VIEW that tokens are, and whether it gets its rows at once.
///
/// Errors: 42601.
pub(super) fn materialized(mut tokens: Vec<Token>) -> Result<(CreateView, bool)> {
    let has_data = !cut(&mut tokens, &["WITH", "NO", "DATA"]);
    if has_data {
        cut(&mut tokens, &["WITH", "DATA"]);
    }
    Ok((create(&tokens)?, has_data))
}

/// The CREATE VIEW with CHECK OPTION that tokens are, and whether that cascades.
///
/// Errors: 42601.
pub(super) fn checked(mut tokens: Vec<Token>) -> Result<(CreateView, bool)> {
    let cascades = match () {
        () if cut(&mut tokens, &["WITH", "LOCAL", "CHECK", "OPTION"]) => false,
        () if cut(&mut tokens, &["WITH", "CASCADED", "CHECK", "OPTION"]) => true,
        () => cut(&mut tokens, &["WITH", "CHECK", "OPTION"]),
    };
    Ok((create(&tokens)?, cascades))
}

/// The CREATE VIEW that tokens are without the first one that is this word.
///
/// Errors: 42601.
pub(super) fn without(mut tokens: Vec<Token>, word: &str) -> Result<CreateView> {
    let is_word = |token: &Token| is(token, word);
    if let Some(at) = tokens.iter().position(is_word) {
        tokens.remove(at);
    }
    create(&tokens)
}
