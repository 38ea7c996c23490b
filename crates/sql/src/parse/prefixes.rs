//! Expressions that begin in ways that the grammar's library does not read: literals of a type by its name (`inet '10.0.0.1'`), and `VARIADIC` before the
//! last argument of a call.

use super::word;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Interval, ObjectName,
    TypedString, Value,
};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// The function whose argument is an array of the last arguments.
pub(crate) const VARIADIC: &str = "variadic argument";

/// A call of a function without clauses.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args
        .into_iter()
        .map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::with_quote('"', name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Words that stand before a text and are no types.
const NO_TYPES: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "between",
    "both",
    "case",
    "cast",
    "collate",
    "distinct",
    "else",
    "end",
    "escape",
    "except",
    "exists",
    "from",
    "group",
    "having",
    "ilike",
    "in",
    "intersect",
    "interval",
    "is",
    "leading",
    "like",
    "limit",
    "not",
    "offset",
    "on",
    "or",
    "order",
    "placing",
    "returning",
    "row",
    "select",
    "similar",
    "some",
    "then",
    "trailing",
    "union",
    "using",
    "values",
    "variadic",
    "when",
    "where",
    "with",
];

fn is_text(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_)
    )
}

/// An expression that begins with one of these forms.
pub(super) fn prefix(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let token = |n: usize| &parser.peek_nth_token_ref(n).token;
    let Token::Word(first) = token(0) else { return None };
    if word::is(token(0), "variadic") && !matches!(token(1), Token::Comma | Token::RParen | Token::Period) {
        parser.advance_token();
        return Some(parser.parse_expr().map(|arg| call(VARIADIC, vec![arg])));
    }
    let is_interval = word::is(token(0), "interval");
    let mut at = 1;
    while *token(at) == Token::Period && matches!(token(at + 1), Token::Word(_)) {
        at += 2;
    }
    // A modifier: digits and commas.
    let mut digits = None;
    if *token(at) == Token::LParen && matches!(token(at + 1), Token::Number(..)) {
        if let Token::Number(number, _) = token(at + 1) {
            digits = number.parse::<u64>().ok();
        }
        at += 2;
        while *token(at) == Token::Comma && matches!(token(at + 1), Token::Number(..)) {
            at += 2;
        }
        if *token(at) != Token::RParen {
            return None;
        }
        at += 1;
    }
    let is_word = first.quote_style.is_none() && NO_TYPES.iter().any(|own| first.value.eq_ignore_ascii_case(own));
    if !is_text(token(at)) || (is_word && !(is_interval && digits.is_some())) {
        return None;
    }
    if is_interval {
        for _ in 0..at {
            parser.advance_token();
        }
        let value = parser.parse_value().map(Expr::Value);
        return Some(value.map(|value| {
            Expr::Interval(Interval {
                value: Box::new(value),
                leading_field: None,
                leading_precision: None,
                last_field: None,
                fractional_seconds_precision: digits,
            })
        }));
    }
    Some(typed(parser))
}

fn typed(parser: &mut Parser) -> Result<Expr, ParserError> {
    let data_type = parser.parse_data_type()?;
    let value = parser.parse_value()?;
    match value.value {
        Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::DollarQuotedString(_) => {
            Ok(Expr::TypedString(TypedString {
                data_type,
                value,
                uses_odbc_syntax: false,
            }))
        }
        _ => Err(ParserError::ParserError("Expected: a text".to_owned())),
    }
}
