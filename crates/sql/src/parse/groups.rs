//! `ROLLUP (…)`, `CUBE (…)` and `GROUPING SETS (…)` within others, where the grammar's library reads expressions.

use sqlparser::ast::Expr;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Expressions of GROUP BY that stand within others: `ROLLUP (…)`, `CUBE (…)` and `GROUPING SETS (…)`.
pub(super) fn grouping(parser: &mut Parser<'_>) -> Option<std::result::Result<Expr, ParserError>> {
    let word = |n: usize, word: &str| matches!(&parser.peek_nth_token_ref(n).token, Token::Word(own) if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word));
    let count = match () {
        () if word(0, "rollup") || word(0, "cube") => 1,
        () if word(0, "grouping") && word(1, "sets") => 2,
        () => return None,
    };
    let (is_rollup, is_cube) = (word(0, "rollup"), word(0, "cube"));
    if parser.peek_nth_token_ref(count).token != Token::LParen {
        return None;
    }
    for _ in 0..=count {
        parser.advance_token();
    }
    let part = |parser: &mut Parser<'_>| {
        if parser.peek_token_ref().token != Token::LParen {
            return Ok(vec![parser.parse_expr()?]);
        }
        if parser.peek_nth_token_ref(1).token == Token::RParen {
            parser.advance_token();
            parser.advance_token();
            return Ok(Vec::new());
        }
        Ok(match parser.parse_expr()? {
            Expr::Tuple(items) => items,
            Expr::Nested(item) => vec![*item],
            item => vec![item],
        })
    };
    let parts = parser.parse_comma_separated(part);
    Some(parts.and_then(|parts| {
        parser.expect_token(&Token::RParen)?;
        Ok(match () {
            () if is_rollup => Expr::Rollup(parts),
            () if is_cube => Expr::Cube(parts),
            () => Expr::GroupingSets(parts),
        })
    }))
}
