//! Lists of access: `aclexplode`.
//!
//! An item is `who=letters/by`; a letter with an asterisk behind it may be granted on, and no name is PUBLIC.

use super::known::look;
use crate::error::error;
use nestor_model::{Document, Result, Value, ValueRef};
use nestor_planner::relation::Tuple;

/// The letters and words of privileges.
const PRIVILEGES: [(char, &str); 12] = [
    ('a', "INSERT"),
    ('r', "SELECT"),
    ('w', "UPDATE"),
    ('d', "DELETE"),
    ('D', "TRUNCATE"),
    ('x', "REFERENCES"),
    ('t', "TRIGGER"),
    ('X', "EXECUTE"),
    ('U', "USAGE"),
    ('C', "CREATE"),
    ('T', "TEMPORARY"),
    ('c', "CONNECT"),
];

/// The rows of a list, with roles by the numbers that `numbers` has: who granted, to whom, what, and whether it may be granted on.
///
/// Errors: 22P02 for what is no list.
pub(super) fn explode(list: &Value, numbers: &Value) -> Result<Vec<Tuple>> {
    let none = Document::new();
    let numbers = match numbers {
        Value::Document(numbers) => numbers,
        _ => &none,
    };
    let number = |name: &str| match name {
        "" => Value::Int64(0),
        name => look(numbers, name).map_or(Value::Int64(0), |number| number.to_value()),
    };
    let Value::Array(items) = list else {
        return Ok(Vec::new());
    };
    let mut out = Vec::new();
    for item in items.iter().filter(|item| !item.is_nullish()) {
        let text = match item {
            ValueRef::String(text) => text,
            _ => "",
        };
        let wrong = || error("22P02", format!("a list of access has no item \"{text}\""));
        let (who, rest) = text.split_once('=').ok_or_else(wrong)?;
        let (letters, by) = rest.split_once('/').ok_or_else(wrong)?;
        let mut letters = letters.chars().peekable();
        while let Some(letter) = letters.next() {
            let (_, word) = PRIVILEGES.iter().find(|(own, _)| *own == letter).ok_or_else(wrong)?;
            let goes_on = letters.next_if_eq(&'*').is_some();
            out.push(vec![
                number(by),
                number(who),
                Value::String((*word).into()),
                Value::Bool(goes_on),
            ]);
        }
    }
    Ok(out)
}
