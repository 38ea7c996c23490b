//! What the grammar does not know of views: what stands behind their queries.

use super::columns::written;
use super::maintain::Parsed;
use super::word::is;
use crate::error::error;
use crate::types::names;
use nestor_model::Result;
use sqlparser::ast::{CreateView, Statement};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

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

/// `SET (name = value, …)` or `RESET (name, …)`: options, and their values where they are set.
///
/// Errors: those of syntax.
pub(super) fn options(parser: &mut Parser<'_>) -> Parsed<Vec<(String, Option<String>)>> {
    let sets = is(&parser.next_token().token, "SET");
    parser.expect_token(&Token::LParen)?;
    let all = parser.parse_comma_separated(|parser| {
        let name = names::ident(&parser.parse_identifier()?);
        if !sets {
            return Ok((name, None));
        }
        let mut value = "true".to_owned();
        if parser.consume_token(&Token::Eq) {
            let next = parser.next_token();
            value = match next.token {
                Token::Word(word) => word.value,
                Token::Number(digits, _) => digits,
                Token::SingleQuotedString(text) => text,
                _ => return parser.expected("a value", next),
            };
        }
        Ok((name, Some(value)))
    })?;
    parser.expect_token(&Token::RParen)?;
    Ok(all)
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

/// Writes the value of options of CREATE VIEW that have none: `WITH (security_barrier)`.
pub(super) fn fill_options(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens
        .iter()
        .any(|token| is(&token.token, "security_barrier") || is(&token.token, "security_invoker"))
    {
        return;
    }
    let (mut begins, mut creates, mut is_view, mut at) = (true, false, false, 0);
    while at < tokens.len() {
        match &tokens[at].token {
            Token::SemiColon => (begins, creates, is_view) = (true, false, false),
            Token::Whitespace(_) => {}
            token if begins => (begins, creates) = (false, is(token, "create")),
            token if creates && is(token, "view") => (creates, is_view) = (false, true),
            token if is_view && is(token, "as") => is_view = false,
            Token::Word(word) if is_view && word.value.to_lowercase().starts_with("security_") => {
                let next = (at + 1..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)));
                if next.is_some_and(|next| matches!(tokens[next].token, Token::Comma | Token::RParen)) {
                    let span = tokens[at].span;
                    let value = [Token::Eq, Token::make_keyword("TRUE")];
                    let value = value.map(|token| TokenWithSpan::new(token, span));
                    tokens.splice(at + 1..at + 1, value);
                }
            }
            _ => {}
        }
        at += 1;
    }
}
