//! Tokens as those who spell forms out look at them.

use super::Sql;
use super::columns::written;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Whether a token is this word, without quotes.
pub(super) fn is(token: &TokenWithSpan, word: &str) -> bool {
    super::word::is(&token.token, word)
}

/// Places of tokens that are no spaces, from one on.
pub(super) fn solid(tokens: &[TokenWithSpan], from: usize) -> impl Iterator<Item = usize> + '_ {
    (from..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
}

/// The first token that is no space, from one on.
pub(super) fn next_solid(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    solid(tokens, from).next()
}

/// The place of the parenthesis that closes the one at a place.
pub(super) fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    (open..tokens.len()).find(|at| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// The place of the parenthesis that the one at a place closes.
pub(super) fn opening(tokens: &[TokenWithSpan], close: usize) -> Option<usize> {
    let mut depth = 0usize;
    (0..=close).rev().find(|at| {
        match tokens[*at].token {
            Token::RParen => depth += 1,
            Token::LParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// Tokens as text.
pub(super) fn text_of(tokens: &[TokenWithSpan]) -> String {
    tokens.iter().map(|token| written(&token.token)).collect()
}

/// The tokens of a text, which stand where another one stood.
pub(super) fn made(text: &str, like: &TokenWithSpan) -> Vec<TokenWithSpan> {
    let made = Tokenizer::new(&Sql, text).tokenize().unwrap_or_default();
    made.into_iter()
        .map(|token| TokenWithSpan::new(token, like.span))
        .collect()
}
