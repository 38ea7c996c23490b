//! Options of COPY that the grammar's library does not read: `HEADER MATCH`, `HEADER on`, `FREEZE on`, `FORCE_QUOTE *`, and WHERE.
//!
//! What has no place of its own in the library's trees is the name of an encoding, or of a column, that there is not.

use super::columns::written;
use super::tokens::{is, made, next_solid, solid};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The encoding that stands for `HEADER MATCH`.
pub(crate) const MATCH: &str = "the first line has the names of the columns";
/// The column that stands for all.
pub(crate) const ALL: &str = "all columns of COPY";
/// Begins an encoding that is a condition.
const WHERE: &str = "rows of which this is true: ";

/// Spells them out.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    if !next_solid(tokens, 0).is_some_and(|first| is(&tokens[first], "copy")) {
        return;
    }
    name_condition(tokens);
    let mut at = 0;
    while at < tokens.len() {
        let next = next_solid(tokens, at + 1);
        if (is(&tokens[at], "header") || is(&tokens[at], "freeze"))
            && let Some(next) = next
        {
            let said = match &tokens[next].token {
                Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
                Token::SingleQuotedString(word) => word.to_lowercase(),
                Token::Number(digits, _) => digits.clone(),
                _ => String::new(),
            };
            let text = match said.as_str() {
                "match" if is(&tokens[at], "header") => Some(format!(", ENCODING '{MATCH}'")),
                "on" | "1" | "true" => Some("TRUE".to_owned()),
                "off" | "0" | "false" => Some("FALSE".to_owned()),
                _ => None,
            };
            if let Some(text) = text {
                let made = made(&text, &tokens[at]);
                tokens.splice(next..next + 1, made);
            }
        }
        if is(&tokens[at], "force_quote")
            && let Some(next) = next.filter(|next| tokens[*next].token == Token::Mul)
        {
            let made = made(&format!("(\"{ALL}\")"), &tokens[at]);
            tokens.splice(next..next + 1, made);
        }
        at += 1;
    }
}

/// Makes an option of the condition of COPY FROM.
fn name_condition(tokens: &mut Vec<TokenWithSpan>) {
    let (mut depth, mut from, mut condition) = (0usize, None, None);
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && is(token, "from") && from.is_none() => from = Some(at),
            _ if depth == 0 && is(token, "where") && from.is_some() => {
                condition = Some(at);
                break;
            }
            _ => {}
        }
    }
    let (Some(from), Some(at)) = (from, condition) else {
        return;
    };
    let end = tokens[at..]
        .iter()
        .position(|token| token.token == Token::SemiColon)
        .map_or(tokens.len(), |end| at + end);
    let text: String = tokens[at + 1..end].iter().map(|token| written(&token.token)).collect();
    let text = format!("{WHERE}{}", text.trim()).replace('\'', "''");
    tokens.drain(at..end);
    // Behind STDIN, or a file's name, and WITH.
    let places: Vec<usize> = solid(tokens, from + 1).take(3).collect();
    let is_with = |n: usize| places.get(n).is_some_and(|at| is(&tokens[*at], "with"));
    let last = if is_with(1) { 1 } else { 0 };
    let Some(behind) = places.get(last).map(|at| at + 1) else {
        return;
    };
    let (place, text) = match places.get(last + 1) {
        Some(open) if tokens[*open].token == Token::LParen => (open + 1, format!("ENCODING '{text}', ")),
        _ => (behind, format!(" (ENCODING '{text}') ")),
    };
    let made = made(&text, &tokens[from]);
    tokens.splice(place..place, made);
}

/// The condition that an encoding is.
pub fn condition(encoding: &str) -> Option<&str> {
    encoding.strip_prefix(WHERE)
}
