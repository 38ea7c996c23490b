//! PostgreSQL's dialect of the grammar's library, and what that does not know of expressions: `BETWEEN SYMMETRIC`, `ISNULL`, signs that bind
//! more tightly than powers, comparisons that do not follow each other.
//!
//! What has no node of its own in the library's trees is a call of a function whose name no statement has unless it is quoted.

use super::prefixes::{self, call};
use super::word::is;
use sqlparser::ast::{
    BinaryOperator, ColumnOption, Expr, KeyOrIndexDisplay, NullsDistinctOption, UnaryOperator, UniqueConstraint,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::any::TypeId;

/// The function that `BETWEEN SYMMETRIC` is a call of.
pub(crate) const BETWEEN_SYMMETRIC: &str = "between symmetric";
/// The function whose call ends the order of a window whose frame leaves rows out.
pub(crate) const EXCLUDE: &str = "frame exclusion";
/// The function that `ROWS FROM` is a call of.
pub(crate) const ROWS_FROM: &str = "rows from";

/// How tightly signs bind: less than subscripts and casts, more than collations and powers.
const SIGN: u8 = 125;

/// The dialect.
#[derive(Debug)]
pub(super) struct Sql;

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

macro_rules! as_postgres {
    ($($name:ident)*) => {
        $(fn $name(&self) -> bool {
            BASE.$name()
        })*
    };
}

/// The bounds of `[NOT] BETWEEN SYMMETRIC`, whose words are read.
fn between(parser: &mut Parser, arg: &Expr, symmetric: bool, negated: bool) -> Result<Expr, ParserError> {
    let precedence = BASE.prec_value(Precedence::Between);
    let low = parser.parse_subexpr(precedence)?;
    parser.expect_keyword_is(Keyword::AND)?;
    let high = parser.parse_subexpr(precedence)?;
    if !symmetric {
        return Ok(Expr::Between {
            expr: Box::new(arg.clone()),
            negated,
            low: Box::new(low),
            high: Box::new(high),
        });
    }
    let found = call(BETWEEN_SYMMETRIC, vec![arg.clone(), low, high]);
    Ok(match negated {
        false => found,
        true => Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(Expr::Nested(Box::new(found))),
        },
    })
}

/// What follows `UNIQUE NULLS` of a column.
fn unique(parser: &mut Parser) -> Result<UniqueConstraint, ParserError> {
    let nulls_distinct = match parser.parse_keyword(Keyword::NOT) {
        true => NullsDistinctOption::NotDistinct,
        false => NullsDistinctOption::Distinct,
    };
    parser.expect_keyword_is(Keyword::DISTINCT)?;
    Ok(UniqueConstraint {
        name: None,
        index_name: None,
        index_type_display: KeyOrIndexDisplay::None,
        index_type: None,
        columns: Vec::new(),
        include: Vec::new(),
        index_options: Vec::new(),
        characteristics: parser.parse_constraint_characteristics()?,
        nulls_distinct,
    })
}

fn is_comparison(token: &Token) -> bool {
    matches!(
        token,
        Token::Eq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq | Token::Neq
    )
}

impl Dialect for Sql {
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        BASE.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        BASE.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        BASE.is_identifier_part(ch)
    }

    fn is_reserved_for_identifier(&self, word: Keyword) -> bool {
        // What is wrong behind these is told where it stands, and not where they begin as if they were columns.
        matches!(word, Keyword::ARRAY | Keyword::CASE | Keyword::CAST | Keyword::NOT)
            || BASE.is_reserved_for_identifier(word)
    }

    fn is_table_alias(&self, word: &Keyword, parser: &mut Parser) -> bool {
        BASE.is_table_alias(word, parser)
    }

    fn is_column_alias(&self, word: &Keyword, parser: &mut Parser) -> bool {
        // Words that other dialects reserve.
        let is_plain = matches!(
            word,
            Keyword::TOP | Keyword::SORT | Keyword::VIEW | Keyword::EXPLAIN | Keyword::CLUSTER | Keyword::DISTRIBUTE
        );
        !matches!(word, Keyword::FOR | Keyword::ON) && (is_plain || BASE.is_column_alias(word, parser))
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        BASE.is_custom_operator_part(ch)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        if is(&parser.peek_token_ref().token, "isnull") {
            return Some(Ok(BASE.prec_value(Precedence::Is)));
        }
        // It stands behind the name of an argument and is no operator.
        if parser.peek_token_ref().token == Token::Assignment {
            return Some(Ok(0));
        }
        BASE.get_next_precedence(parser)
    }

    // `f(name := 1)`, the older form of `f(name => 1)`.
    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        match parser.parse_keywords(&[Keyword::UNIQUE, Keyword::NULLS]) {
            true => Ok(Some(unique(parser).map(|own| Some(own.into())))),
            false => Ok(None),
        }
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if parser.peek_token_ref().token == Token::LParen && is(&parser.peek_nth_token_ref(1).token, "values") {
            parser.advance_token();
            let query = parser.parse_query().and_then(|query| {
                parser.expect_token(&Token::RParen)?;
                Ok(Expr::Subquery(query))
            });
            return Some(query);
        }
        if let Some(found) = super::groups::grouping(parser).or_else(|| prefixes::prefix(parser)) {
            return Some(found);
        }
        let op = match parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            _ => return None,
        };
        parser.advance_token();
        let arg = parser.parse_subexpr(SIGN);
        Some(arg.map(|arg| Expr::UnaryOp {
            op,
            expr: Box::new(arg),
        }))
    }

    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        let token = |n: usize| &parser.peek_nth_token_ref(n).token;
        if is(token(0), "isnull") {
            parser.advance_token();
            return Some(Ok(Expr::IsNull(Box::new(expr.clone()))));
        }
        if is_comparison(token(0)) {
            let follows = matches!(
                expr,
                Expr::BinaryOp {
                    op: BinaryOperator::Eq
                        | BinaryOperator::NotEq
                        | BinaryOperator::Lt
                        | BinaryOperator::Gt
                        | BinaryOperator::LtEq
                        | BinaryOperator::GtEq,
                    ..
                }
            );
            let message = "comparisons do not follow each other without parentheses";
            return follows.then(|| Err(ParserError::ParserError(message.to_owned())));
        }
        // Behind operators, as a cast is.
        if is(token(0), "collate") {
            parser.advance_token();
            let collation = parser.parse_object_name(false);
            return Some(collation.map(|collation| Expr::Collate {
                expr: Box::new(expr.clone()),
                collation,
            }));
        }
        let negated = is(token(0), "not");
        let at = usize::from(negated);
        let symmetric = is(token(at + 1), "symmetric");
        if is(token(at), "between") && (symmetric || is(token(at + 1), "asymmetric")) {
            for _ in 0..at + 2 {
                parser.advance_token();
            }
            return Some(between(parser, expr, symmetric, negated));
        }
        BASE.parse_infix(parser, expr, precedence)
    }

    as_postgres! {
        supports_unicode_string_literal supports_filter_during_aggregation supports_group_by_expr supports_alter_user_as_alter_role
        allow_extract_custom allow_extract_single_quotes supports_create_index_with_clause supports_explain_with_utility_options
        supports_listen_notify supports_exclude_constraint supports_factorial_operator supports_bitwise_shift_operators
        supports_comment_on supports_load_extension supports_named_fn_args_with_colon_operator supports_named_fn_args_with_expr_name
        supports_empty_projections supports_nested_comments supports_string_escape_constant supports_numeric_literal_underscores
        supports_array_typedef_with_brackets supports_geometric_types supports_order_by_using_operator supports_set_names
        supports_alter_column_type_using supports_left_associative_joins_without_parens supports_notnull_operator
        supports_interval_options supports_insert_table_alias supports_create_table_like_parenthesized
        supports_select_wildcard_with_alias supports_comma_separated_trim supports_xml_expressions supports_aliased_function_args
        supports_comment_optimizer_hint
    }
}
