//! The functions that `citext` has of its own: those of texts without regard to case.

use super::Row;
use super::args::int;
use super::patterns::{regexp_match, regexp_replace, regexp_split};
use crate::types::compare::small;
use nestor_model::{Result, Value};

fn str(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Options of a regular expression, in which case counts only if they say so.
fn options(said: &str) -> String {
    match said.contains('c') {
        true => said.to_owned(),
        false => format!("{said}i"),
    }
}

/// A regular expression that a text alone matches.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A text in which characters are others.
fn translated(text: &str, from: &str, to: &str) -> String {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let each = text
        .chars()
        .filter_map(|c| match from.iter().position(|own| *own == c) {
            Some(at) => to.get(at).copied(),
            None => Some(c),
        });
    each.collect()
}

fn replaced(a: &[Value], said: &str) -> Result<Value> {
    regexp_replace(str(&a[0]), str(&a[1]), str(&a[2]), &options(said))
}

/// The function that options of a regular expression go through. No statement can name it.
pub(super) const OPTIONS: &str = "options without case";

pub(super) const ROWS: &[Row] = &[
    (OPTIONS, "text->text", |a, _, _| {
        Ok(Value::from(options(str(&a[0])).as_str()))
    }),
    ("regexp_match", "citext,citext->_text", |a, _, _| {
        regexp_match(str(&a[0]), str(&a[1]), "i")
    }),
    ("regexp_match", "citext,citext,text->_text", |a, _, _| {
        regexp_match(str(&a[0]), str(&a[1]), &options(str(&a[2])))
    }),
    ("regexp_replace", "citext,citext,text->text", |a, _, _| replaced(a, "")),
    ("regexp_replace", "citext,citext,text,text->text", |a, _, _| {
        replaced(a, str(&a[3]))
    }),
    ("regexp_split_to_array", "citext,citext->_text", |a, _, _| {
        regexp_split(str(&a[0]), str(&a[1]), "i")
    }),
    ("regexp_split_to_array", "citext,citext,text->_text", |a, _, _| {
        regexp_split(str(&a[0]), str(&a[1]), &options(str(&a[2])))
    }),
    ("replace", "citext,citext,citext->text", |a, _, _| {
        regexp_replace(str(&a[0]), &escaped(str(&a[1])), str(&a[2]), "gi")
    }),
    ("split_part", "citext,citext,int4->text", |a, _, _| {
        let found = regexp_split(str(&a[0]), &escaped(str(&a[1])), "i")?;
        let at = int(&a[2]).checked_sub(1).and_then(|at| usize::try_from(at).ok());
        Ok(match (found, at) {
            (Value::Array(parts), Some(at)) => parts.iter().nth(at).map_or(Value::Null, |part| part.to_value()),
            _ => Value::Null,
        })
    }),
    ("strpos", "citext,citext->int4", |a, _, _| {
        let (text, part) = (small(str(&a[0])), small(str(&a[1])));
        let at = text.find(&part).map_or(0, |at| text[..at].chars().count() + 1);
        Ok(Value::Int32(i32::try_from(at).unwrap_or(i32::MAX)))
    }),
    ("translate", "citext,citext,text->text", |a, _, _| {
        let (from, to) = (str(&a[1]), str(&a[2]));
        let first = translated(str(&a[0]), &small(from), to);
        let large: String = from
            .chars()
            .map(|c| crate::types::compare::only(c, c.to_uppercase()))
            .collect();
        Ok(Value::from(translated(&first, &large, to).as_str()))
    }),
];
