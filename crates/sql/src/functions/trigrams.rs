//! The functions and operators of the extension `pg_trgm`.

use super::Row;
use super::args::double;
use crate::asked;
use crate::search::trigrams::{self, similarity, word_similarity};
use crate::types::style::{self, Thresholds};
use nestor_model::{Array, Result, Value};

/// The setting of the threshold of `%`.
pub const SIMILARITY: &str = "pg_trgm.similarity_threshold";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: f32) -> Value {
    Value::Double(f64::from(value))
}

fn similar(a: &[Value]) -> Result<f32> {
    similarity(text(&a[0]), text(&a[1]))
}

/// How similar the first text is to a stretch of the second one.
fn within(a: &[Value], strict: bool) -> Result<f32> {
    word_similarity(text(&a[0]), text(&a[1]), strict)
}

/// The same, of the second text to a stretch of the first one.
fn around(a: &[Value], strict: bool) -> Result<f32> {
    word_similarity(text(&a[1]), text(&a[0]), strict)
}

/// How far from each other texts are that are so similar.
fn distance(similarity: f32) -> Result<Value> {
    Ok(number(1.0 - similarity))
}

fn reaches(similarity: f32, least: f64) -> Result<Value> {
    Ok(Value::Bool(f64::from(similarity) >= least))
}

pub(super) const ROWS: &[Row] = &[
    ("similarity", "text,text->float4", |a, _, _| Ok(number(similar(a)?))),
    ("word_similarity", "text,text->float4", |a, _, _| {
        Ok(number(within(a, false)?))
    }),
    ("strict_word_similarity", "text,text->float4", |a, _, _| {
        Ok(number(within(a, true)?))
    }),
    ("show_trgm", "text->_text", |a, _, _| {
        let mut all = trigrams::of(text(&a[0]))?;
        all.sort_by_key(trigrams::place);
        let shown = all.into_iter().map(|own| Value::from(trigrams::shown(own).as_str()));
        Ok(Value::Array(Array::new(shown.collect())))
    }),
    ("set_limit", "!float4->float4", |a, _, _| {
        let least = double(&a[0]);
        let checked = Thresholds::checked(SIMILARITY, &least.to_string())?;
        asked::set((SIMILARITY.to_owned(), Some(checked.to_string()), false));
        Ok(a[0].clone())
    }),
    ("<->", "text,text->float4", |a, _, _| distance(similar(a)?)),
    ("<<->", "text,text->float4", |a, _, _| distance(within(a, false)?)),
    ("<->>", "text,text->float4", |a, _, _| distance(around(a, false)?)),
    ("<<<->", "text,text->float4", |a, _, _| distance(within(a, true)?)),
    ("<->>>", "text,text->float4", |a, _, _| distance(around(a, true)?)),
];

/// Those that the session's thresholds decide.
pub(super) const OF_SESSION: &[Row] = &[
    ("show_limit", "->float4", |_, _, _| {
        Ok(number(style::thresholds().similar() as f32))
    }),
    ("%", "text,text->bool", |a, _, _| {
        reaches(similar(a)?, style::thresholds().similar())
    }),
    ("<%", "text,text->bool", |a, _, _| {
        reaches(within(a, false)?, style::thresholds().word())
    }),
    ("%>", "text,text->bool", |a, _, _| {
        reaches(around(a, false)?, style::thresholds().word())
    }),
    ("<<%", "text,text->bool", |a, _, _| {
        reaches(within(a, true)?, style::thresholds().strict())
    }),
    ("%>>", "text,text->bool", |a, _, _| {
        reaches(around(a, true)?, style::thresholds().strict())
    }),
];
