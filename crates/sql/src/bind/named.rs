//! Arguments by their names, for functions whose arguments are known by them.

use crate::error::{error, fail};
use nestor_model::Result;
use sqlparser::ast::{Expr as Ast, FunctionArg, FunctionArgExpr, Ident, Value as Literal, ValueWithSpan};
use sqlparser::tokenizer::Span;

/// What stands for an argument that is not given.
#[derive(Clone, Copy)]
enum Otherwise {
    /// It has to be given.
    Nothing,
    /// A number, as it is written.
    Number(&'static str),
    /// A text.
    Text(&'static str),
    False,
    True,
}

use Otherwise::{False, Nothing, Number, Text, True};

/// Functions, and the names of their arguments in order.
const FUNCTIONS: &[(&str, &[(&str, Otherwise)])] = &[
    (
        "make_interval",
        &[
            ("years", Number("0")),
            ("months", Number("0")),
            ("weeks", Number("0")),
            ("days", Number("0")),
            ("hours", Number("0")),
            ("mins", Number("0")),
            ("secs", Number("0.0")),
        ],
    ),
    ("make_date", &[("year", Nothing), ("month", Nothing), ("day", Nothing)]),
    ("make_time", &[("hour", Nothing), ("min", Nothing), ("sec", Nothing)]),
    ("jsonb_path_exists", PATH),
    ("jsonb_path_match", PATH),
    ("jsonb_path_query", PATH),
    ("jsonb_path_query_array", PATH),
    ("jsonb_path_query_first", PATH),
    ("jsonb_path_exists_tz", PATH),
    ("jsonb_path_match_tz", PATH),
    ("jsonb_path_query_tz", PATH),
    ("jsonb_path_query_array_tz", PATH),
    ("jsonb_path_query_first_tz", PATH),
    (
        "jsonb_set",
        &[
            ("jsonb_in", Nothing),
            ("path", Nothing),
            ("replacement", Nothing),
            ("create_if_missing", True),
        ],
    ),
    (
        "jsonb_set_lax",
        &[
            ("jsonb_in", Nothing),
            ("path", Nothing),
            ("replacement", Nothing),
            ("create_if_missing", True),
            ("null_value_treatment", Text("use_json_null")),
        ],
    ),
    (
        "jsonb_insert",
        &[
            ("jsonb_in", Nothing),
            ("path", Nothing),
            ("replacement", Nothing),
            ("insert_after", False),
        ],
    ),
    ("parse_ident", &[("str", Nothing), ("strict", True)]),
];

const PATH: &[(&str, Otherwise)] = &[
    ("target", Nothing),
    ("path", Nothing),
    ("vars", Text("{}")),
    ("silent", False),
];

fn value(otherwise: Otherwise) -> Option<Ast> {
    let value = match otherwise {
        Nothing => return None,
        Number(digits) => Literal::Number(digits.to_owned(), false),
        Text(text) => Literal::SingleQuotedString(text.to_owned()),
        False => Literal::Boolean(false),
        True => Literal::Boolean(true),
    };
    Some(Ast::Value(ValueWithSpan {
        value,
        span: Span::empty(),
    }))
}

fn given(arg: &FunctionArg) -> Option<(Option<&Ident>, &Ast)> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => Some((None, arg)),
        FunctionArg::Named {
            name,
            arg: FunctionArgExpr::Expr(arg),
            ..
        } => Some((Some(name), arg)),
        FunctionArg::ExprNamed {
            name: Ast::Identifier(name),
            arg: FunctionArgExpr::Expr(arg),
            ..
        } => Some((Some(name), arg)),
        _ => None,
    }
}

/// The arguments of a call in their order, when some of them are named; `None` when none is.
///
/// Errors: 42883 for names that the function has not, or arguments that it lacks.
pub(super) fn in_order(function: &str, args: &[FunctionArg]) -> Result<Option<Vec<Ast>>> {
    let Some(given) = args.iter().map(given).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    if given.iter().all(|(name, _)| name.is_none()) {
        return Ok(None);
    }
    let unknown = || error("42883", format!("function {function} has no arguments of these names"));
    let (_, names) = FUNCTIONS.iter().find(|(own, _)| *own == function).ok_or_else(unknown)?;
    let mut out: Vec<Option<Ast>> = vec![None; names.len()];
    let (mut last, mut named) = (0, false);
    for (at, (name, arg)) in given.into_iter().enumerate() {
        let place = match name {
            None if named => return fail("42601", "positional argument cannot follow named argument"),
            None => at,
            Some(name) => {
                named = true;
                let name = super::ident(name);
                names.iter().position(|(own, _)| *own == name).ok_or_else(unknown)?
            }
        };
        let slot = out.get_mut(place).ok_or_else(unknown)?;
        if slot.replace(arg.clone()).is_some() {
            return fail("42883", format!("argument of function {function} is given twice"));
        }
        last = last.max(place);
    }
    let filled = out.into_iter().zip(*names).take(last + 1);
    filled
        .map(|(arg, (_, otherwise))| arg.or_else(|| value(*otherwise)).ok_or_else(unknown))
        .collect::<Result<Vec<Ast>>>()
        .map(Some)
}
