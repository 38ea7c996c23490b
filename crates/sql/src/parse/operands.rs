//! Queries that UNION and the like join, as operands: `((SELECT …) UNION (SELECT …)) IS NOT NULL`. The grammar's library reads the first of them as the
//! whole operand.

use super::tokens::{closing, is, made, next_solid, solid};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What the rows of such a query are called.
const NAMED: &str = "joined queries";
/// Words behind which an operand stands.
const BEFORE: [&str; 12] = [
    "where",
    "and",
    "or",
    "not",
    "on",
    "when",
    "then",
    "else",
    "select",
    "having",
    "returning",
    "case",
];

fn is_operator(token: &Token) -> bool {
    matches!(
        token,
        Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::StringConcat
    )
}

/// Wraps them into queries that read them.
pub(super) fn wrap_sets(tokens: &mut Vec<TokenWithSpan>) {
    let joins = |token: &TokenWithSpan| ["union", "intersect", "except"].iter().any(|word| is(token, word));
    if !tokens.iter().any(joins) {
        return;
    }
    let places: Vec<usize> = solid(tokens, 0).collect();
    let mut found = Vec::new();
    for pair in places.windows(3) {
        let [before, outer, inner] = [pair[0], pair[1], pair[2]];
        let stands = is_operator(&tokens[before].token) || BEFORE.iter().any(|word| is(&tokens[before], word));
        if !stands || tokens[outer].token != Token::LParen || tokens[inner].token != Token::LParen {
            continue;
        }
        let is_query = next_solid(tokens, inner + 1).is_some_and(|at| {
            tokens[at].token == Token::LParen || ["select", "with", "values"].iter().any(|word| is(&tokens[at], word))
        });
        let (Some(end), Some(first)) = (closing(tokens, outer), closing(tokens, inner)) else {
            continue;
        };
        if is_query && next_solid(tokens, first + 1).is_some_and(|at| at < end && joins(&tokens[at])) {
            found.push((outer, end));
        }
    }
    for (from, to) in found.into_iter().rev() {
        let end = made(&format!(") AS \"{NAMED}\")"), &tokens[to]);
        tokens.splice(to..=to, end);
        let begin = made("(SELECT * FROM (", &tokens[from]);
        tokens.splice(from..=from, begin);
    }
}
