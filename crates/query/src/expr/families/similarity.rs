//! `$similarityCosine`, `$similarityDotProduct`, `$similarityEuclidean` of vectors of numbers: arrays, or BinData of
//! subtype 9 (packed float32, int8 or bits).

use crate::env::{Env, Scope, Val};
use crate::expr::args::error;
use crate::expr::parse::{OpDef, parse_list};
use crate::expr::{EvalFn, Expr};
use nestor_model::number::Num;
use nestor_model::{Error, Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$similarityCosine", parse),
    OpDef::custom("$similarityDotProduct", parse),
    OpDef::custom("$similarityEuclidean", parse),
];

/// Arguments: two vectors, and whether the result is normalized to 0 to 1.
fn parse(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let (vectors, score) = match value {
        ValueRef::Document(doc) if doc.iter().any(|(field, _)| !field.starts_with('$')) => {
            let (mut vectors, mut score) = (ValueRef::Missing, false);
            for (field, value) in doc {
                match (field, value) {
                    ("vectors", _) => vectors = value,
                    ("score", ValueRef::Bool(v)) => score = v,
                    ("score", other) => {
                        return Err(Error::type_mismatch(format!(
                            "{name} requires 'score' to be a bool, found {}",
                            other.bson_type().alias()
                        )));
                    }
                    _ => return Err(error(9, format!("{name} found an unknown argument: {field}"))),
                }
            }
            (vectors, score)
        }
        other => (other, false),
    };
    let args = parse_list(name, vectors, 2, 2, scope)?;
    let eval: EvalFn = match (name, score) {
        ("$similarityCosine", false) => |args, env| similarity(args, env, "$similarityCosine", cosine),
        ("$similarityCosine", true) => {
            |args, env| similarity(args, env, "$similarityCosine", |a, b| (1.0 + cosine(a, b)) / 2.0)
        }
        ("$similarityDotProduct", false) => |args, env| similarity(args, env, "$similarityDotProduct", dot),
        ("$similarityDotProduct", true) => {
            |args, env| similarity(args, env, "$similarityDotProduct", |a, b| (1.0 + dot(a, b)) / 2.0)
        }
        (_, false) => |args, env| similarity(args, env, "$similarityEuclidean", euclidean),
        (_, true) => |args, env| similarity(args, env, "$similarityEuclidean", |a, b| 1.0 / (1.0 + euclidean(a, b))),
    };
    Expr::call_of(name, eval, args)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// 0 when a vector has no length.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths == 0.0 { 0.0 } else { dot(a, b) / lengths }
}

fn euclidean(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
}

fn similarity<'a>(
    args: &'a [Expr],
    env: &mut Env<'a>,
    op: &str,
    measure: fn(&[f64], &[f64]) -> f64,
) -> Result<Val<'a>> {
    let left = args[0].eval_ref(env)?;
    let right = args[1].eval_ref(env)?;
    if left.is_nullish() || right.is_nullish() {
        return Ok(Val::NULL);
    }
    let (left, right) = (vector(op, left.as_ref())?, vector(op, right.as_ref())?);
    if left.len() != right.len() {
        return Err(Error::bad_value(format!(
            "{op} requires vectors of the same length, found {} and {}",
            left.len(),
            right.len()
        )));
    }
    Ok(measure(&left, &right).into())
}

/// Errors: 14 no vector, or an element that is no number; 2 malformed BinData.
fn vector(op: &str, value: ValueRef<'_>) -> Result<Vec<f64>> {
    match value {
        ValueRef::Array(items) => items
            .iter()
            .map(|item| {
                Num::from_ref(item).map(Num::to_f64).ok_or_else(|| {
                    Error::type_mismatch(format!(
                        "{op} requires numbers as elements, found {}",
                        item.bson_type().alias()
                    ))
                })
            })
            .collect(),
        ValueRef::Binary { subtype: 9, bytes } => {
            unpack(bytes).ok_or_else(|| Error::bad_value(format!("{op}: BinData is no well-formed vector")))
        }
        other => Err(Error::type_mismatch(format!(
            "{op} requires arrays or BinData vectors, found {}",
            other.bson_type().alias()
        ))),
    }
}

/// The elements as values: doubles of a float32 vector, ints of the others.
pub(crate) fn unpack_values(bytes: &[u8]) -> Option<Vec<Value>> {
    let floats = bytes.first() == Some(&0x27);
    let value = |v: f64| {
        if floats {
            Value::Double(v)
        } else {
            Value::Int32(v as i32)
        }
    };
    Some(unpack(bytes)?.into_iter().map(value).collect())
}

/// Source: BSON binary vector specification: a byte of type, a byte of padding bits, the elements.
fn unpack(bytes: &[u8]) -> Option<Vec<f64>> {
    let (header, elements) = bytes.split_at_checked(2)?;
    let padding = usize::from(header[1]);
    match header[0] {
        0x03 if padding == 0 => Some(elements.iter().map(|b| f64::from(*b as i8)).collect()),
        0x27 if padding == 0 && elements.len() % 4 == 0 => Some(
            elements
                .chunks_exact(4)
                .map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]])))
                .collect(),
        ),
        0x10 if padding < 8 && (padding == 0 || !elements.is_empty()) => {
            let bits = elements.len() * 8 - padding;
            Some(
                (0..bits)
                    .map(|i| f64::from(elements[i / 8] >> (7 - i % 8) & 1))
                    .collect(),
            )
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn measures() {
        check(
            r#"{"a": [1, 2, 3], "b": [3, 2, 1], "z": [0, 0, 0], "n": null,
                "v": {"$binary": {"base64": "AwABAgM=", "subType": "09"}}}"#,
            &[
                (r#"{"$similarityCosine": ["$a", "$b"]}"#, "0.7142857142857143"),
                (
                    r#"{"$similarityCosine": {"vectors": ["$a", "$b"], "score": true}}"#,
                    "0.8571428571428572",
                ),
                (r#"{"$similarityCosine": ["$a", "$z"]}"#, "0.0"),
                (r#"{"$similarityDotProduct": ["$a", "$v"]}"#, "14.0"),
                (r#"{"$similarityEuclidean": ["$a", "$a"]}"#, "0.0"),
                (r#"{"$similarityEuclidean": ["$a", "$n"]}"#, "null"),
                (r#"{"$similarityEuclidean": ["$a", [1]]}"#, "error 2"),
                (r#"{"$similarityEuclidean": ["$a", 1]}"#, "error 14"),
            ],
        );
    }
}
