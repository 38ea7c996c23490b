//! Files in FROM: `'events.csv'`, `read_csv('events.csv', header => true)`.
//!
//! The functions and the names of their options are DuckDB's (its manual, pages "CSV Import" and "Loading JSON"). An option is written
//! `name => value`, `name := value` or, as DuckDB has it, `name = value`; values are literals.

use super::ident;
use crate::catalog::files::{CsvWords, JsonForm, Named, Reads, SAMPLE_ROWS};
use crate::error::{error, fail, unsupported};
use nestor_model::Result;
use sqlparser::ast::{
    Array, BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr, ObjectName, UnaryOperator, Value, ValueWithSpan,
};
use std::path::Path;

/// A literal.
#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Text(String),
    Bool(bool),
    Number(i64),
    List(Vec<Literal>),
}

/// The file that a name in single quotes is.
pub(super) fn file_of(name: &ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [part] => {
            let part = part.as_ident()?;
            (part.quote_style == Some('\'')).then_some(part.value.as_str())
        }
        _ => None,
    }
}

/// The table that a file in FROM is.
pub(super) fn of_file(path: &str) -> Named {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    let name = name.and_then(|name| name.split('.').next()).unwrap_or(path);
    Named {
        name: name.to_owned(),
        patterns: vec![path.to_owned()],
        reads: Reads::ByName,
        filename: false,
        sample: SAMPLE_ROWS,
    }
}

/// The table that a call of a function gives; `None` of functions that read no files.
///
/// Errors: 42601 and 22023 for arguments that are none of the function's, 0A000 for options that are not known.
pub(super) fn of_call(function: &str, args: &[FunctionArg]) -> Result<Option<Named>> {
    let reads = match function {
        "read_csv" | "read_csv_auto" => Reads::Csv(CsvWords::default()),
        "read_json" | "read_json_auto" => Reads::Json(JsonForm::Values),
        "read_ndjson" | "read_ndjson_auto" => Reads::Json(JsonForm::Lines),
        "read_parquet" | "parquet_scan" => Reads::Parquet,
        "read_arrow" => Reads::Arrow,
        _ => return Ok(None),
    };
    let mut named = Named {
        name: function.to_owned(),
        patterns: Vec::new(),
        reads,
        filename: false,
        sample: SAMPLE_ROWS,
    };
    for arg in args {
        match option_of(arg)? {
            (None, value) if named.patterns.is_empty() => {
                let told = || {
                    error(
                        "42601",
                        format!("{function} takes the path of a file, or a list of them"),
                    )
                };
                named.patterns = texts(&value).ok_or_else(told)?;
            }
            (None, _) => {
                return fail(
                    "42601",
                    format!("{function} takes one path or list; options have names"),
                );
            }
            (Some(name), value) => set(&mut named, function, &name, value)?,
        }
    }
    match named.patterns.is_empty() {
        true => fail("42601", format!("{function} takes the path of a file")),
        false => Ok(Some(named)),
    }
}

fn option_of(arg: &FunctionArg) -> Result<(Option<String>, Literal)> {
    let value = |arg: &FunctionArgExpr| match arg {
        FunctionArgExpr::Expr(arg) => literal(arg),
        _ => unsupported("an argument of this form"),
    };
    match arg {
        FunctionArg::Named { name, arg, .. } => Ok((Some(ident(name)), value(arg)?)),
        FunctionArg::ExprNamed {
            name: Ast::Identifier(name),
            arg,
            ..
        } => Ok((Some(ident(name)), value(arg)?)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::BinaryOp {
            left,
            op: BinaryOperator::Eq | BinaryOperator::Assignment,
            right,
        })) => match &**left {
            Ast::Identifier(name) => Ok((Some(ident(name)), literal(right)?)),
            _ => unsupported("an argument of this form"),
        },
        FunctionArg::Unnamed(arg) => Ok((None, value(arg)?)),
        FunctionArg::ExprNamed { .. } => unsupported("an argument of this form"),
    }
}

fn literal(value: &Ast) -> Result<Literal> {
    let refused = || fail("42601", "files and their options are literals");
    Ok(match value {
        Ast::Value(ValueWithSpan { value, .. }) => match value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Literal::Text(text.clone()),
            Value::Boolean(value) => Literal::Bool(*value),
            Value::Number(digits, _) => match digits.parse() {
                Ok(number) => Literal::Number(number),
                Err(_) => return refused(),
            },
            _ => return refused(),
        },
        Ast::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match literal(expr)? {
            Literal::Number(number) => Literal::Number(-number),
            _ => return refused(),
        },
        Ast::Array(Array { elem, .. }) => Literal::List(elem.iter().map(literal).collect::<Result<_>>()?),
        _ => return refused(),
    })
}

/// A text, or a list of texts with one at least.
fn texts(value: &Literal) -> Option<Vec<String>> {
    match value {
        Literal::Text(text) => Some(vec![text.clone()]),
        Literal::List(items) if !items.is_empty() => {
            let each = items.iter().map(|item| match item {
                Literal::Text(text) => Some(text.clone()),
                _ => None,
            });
            each.collect()
        }
        _ => None,
    }
}

/// What an option wants whose value is of another form; nothing where there is no option of this name.
type Wants = Option<&'static str>;

fn set(named: &mut Named, function: &str, name: &str, value: Literal) -> Result<()> {
    let done = match (name, &value, &mut named.reads) {
        ("filename", value, _) => switch(value).map(|wanted| named.filename = wanted),
        ("sample_size", _, Reads::Parquet | Reads::Arrow) => Err(None),
        ("sample_size", Literal::Number(-1), _) => {
            named.sample = u64::MAX;
            Ok(())
        }
        ("sample_size", Literal::Number(rows), _) if *rows > 0 => {
            named.sample = rows.unsigned_abs();
            Ok(())
        }
        ("sample_size", ..) => Err(Some("a number of rows, or -1 for all")),
        (_, value, Reads::Csv(words)) => set_csv(words, name, value),
        (_, value, Reads::Json(form)) => set_json(form, name, value),
        (_, _, Reads::ByName | Reads::Parquet | Reads::Arrow) => Err(None),
    };
    done.or_else(|wants| match wants {
        Some(what) => fail("22023", format!("{name} of {function} wants {what}")),
        None => unsupported(format!("the option {name} of {function}")),
    })
}

fn switch(value: &Literal) -> std::result::Result<bool, Wants> {
    match value {
        Literal::Bool(value) => Ok(*value),
        _ => Err(Some("true or false")),
    }
}

/// An ASCII character; a zero for an empty text.
fn letter(value: &Literal) -> std::result::Result<u8, Wants> {
    match value {
        Literal::Text(text) => match text.as_bytes() {
            [byte] if byte.is_ascii() => Ok(*byte),
            [] => Ok(0),
            _ => Err(Some("one ASCII character")),
        },
        _ => Err(Some("one ASCII character")),
    }
}

fn set_csv(words: &mut CsvWords, name: &str, value: &Literal) -> std::result::Result<(), Wants> {
    match name {
        "delim" | "sep" | "delimiter" => match letter(value)? {
            0 => return Err(Some("one ASCII character")),
            delimiter => words.delimiter = Some(delimiter),
        },
        "quote" => words.quote = Some(letter(value)?),
        "escape" => words.escape = Some(letter(value)?).filter(|byte| *byte != 0),
        "header" => words.header = Some(switch(value)?),
        "all_varchar" => words.all_text = switch(value)?,
        "null_padding" => words.pads = switch(value)?,
        "skip" => match value {
            Literal::Number(lines) if *lines >= 0 => words.skip = lines.unsigned_abs(),
            _ => return Err(Some("a number of lines")),
        },
        "nullstr" => match value {
            Literal::Text(text) => words.null = Some(text.clone()),
            _ => return Err(Some("a text")),
        },
        "names" => words.names = texts(value).ok_or(Some("a list of names"))?,
        _ => return Err(None),
    }
    Ok(())
}

fn set_json(form: &mut JsonForm, name: &str, value: &Literal) -> std::result::Result<(), Wants> {
    const FORMATS: &str = "auto, array, unstructured or newline_delimited";
    match (name, value) {
        ("format", Literal::Text(word)) => match word.as_str() {
            // Documents one after the other are told from an array by their first letter.
            "auto" | "array" | "unstructured" => *form = JsonForm::Values,
            "newline_delimited" | "nd" => *form = JsonForm::Lines,
            _ => return Err(Some(FORMATS)),
        },
        ("format", _) => return Err(Some(FORMATS)),
        _ => return Err(None),
    }
    Ok(())
}
