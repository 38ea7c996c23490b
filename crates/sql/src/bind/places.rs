//! Where in a statement an expression is that cannot be bound.

use crate::error::{self, about, about_word};
use nestor_model::Error;
use sqlparser::ast::{Expr as Ast, Spanned, Value, ValueWithSpan};
use sqlparser::tokenizer::Location;

/// An error of binding `ast` with its place, as PostgreSQL has it: that of the operator, function or literal that cannot be. An error of a
/// part that has none gets none from what is around the part.
pub(super) fn of(error: Error, ast: &Ast) -> Error {
    let state = error::state(&error);
    let found = match (ast, state.as_str()) {
        (Ast::BinaryOp { right, op, .. }, "42883" | "42725") => {
            let start = right.span().start;
            return about_word(error, start, &op.to_string(), true);
        }
        (Ast::Function(call), "42883" | "42803" | "42809" | "42P20" | "0A000") => {
            let first = call.name.0.first().and_then(|part| part.as_ident());
            return match first {
                Some(name) => about(error, name),
                None => nowhere(error),
            };
        }
        (Ast::BinaryOp { left, right, .. }, "22P02" | "22007" | "22008" | "22003") => literal(left).or(literal(right)),
        (ast, "22P02" | "22007" | "22008" | "22003" | "42P01") => literal(ast),
        _ => None,
    };
    match found {
        Some(value) => about_word(error, value.span.start, &value.value.to_string(), false),
        None => nowhere(error),
    }
}

/// An error that has no place, whatever is around what it is about.
fn nowhere(error: Error) -> Error {
    about_word(error, Location::empty(), "", false)
}

/// The literal of text that an expression is, or that it casts.
fn literal(ast: &Ast) -> Option<&ValueWithSpan> {
    match ast {
        Ast::Value(value) => match value.value {
            Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::DollarQuotedString(_) => Some(value),
            _ => None,
        },
        Ast::Cast { expr, .. } | Ast::Nested(expr) => literal(expr),
        Ast::TypedString(typed) => Some(&typed.value),
        _ => None,
    }
}

/// Says of 42703 which column may have been meant: the one whose name differs least, in less than half of its letters and three at most.
pub(super) fn with_likely(error: Error, name: &str, columns: &[(String, String)]) -> Error {
    let most = (name.chars().count() / 2).min(3);
    let mut found: Vec<&(String, String)> = Vec::new();
    let mut least = most;
    for column in columns {
        let distance = distance(name, &column.1, most);
        if distance > least {
            continue;
        }
        if distance < least {
            found.clear();
            least = distance;
        }
        found.push(column);
    }
    let hint = match found.as_slice() {
        [(table, column)] => format!("Perhaps you meant to reference the column \"{table}.{column}\"."),
        [(a, b), (c, d)] => format!("Perhaps you meant to reference the column \"{a}.{b}\" or the column \"{c}.{d}\"."),
        _ => return error,
    };
    error::with(error, &[(error::Field::Hint, &hint)])
}

/// How many letters have to be inserted, left out or exchanged to make one word of another; more than `most` where their lengths say so.
fn distance(a: &str, b: &str, most: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return most + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("nme", "name", 1),
            ("name", "name", 0),
            ("eman", "name", 4),
            ("", "ab", 2),
        ] {
            assert_eq!(distance(a, b, 9), expected, "{a} {b}");
        }
        assert_eq!(distance("a", "abcdefgh", 3), 4);
    }
}
