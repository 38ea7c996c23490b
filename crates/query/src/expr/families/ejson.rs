//! `$serializeEJSON`, `$deserializeEJSON`: values to and from documents with Extended JSON type wrappers.

use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use nestor_model::extjson::{self, Form};
use nestor_model::{Array, Document, Error, ErrorCode, Result, Str, Value, ValueRef, doc};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$serializeEJSON", parse_serialize),
    OpDef::custom("$deserializeEJSON", parse_deserialize),
];

/// Arguments: input, on error, relaxed.
fn parse_serialize(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 9,
        unknown: 9,
        fields: &[("input", Some(9)), ("onError", None), ("relaxed", None)],
    }
    .parse(name, value, scope)?;
    Expr::call_of(name, serialize, args)
}

/// Arguments: input, on error.
fn parse_deserialize(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 9,
        unknown: 9,
        fields: &[("input", Some(9)), ("onError", None)],
    }
    .parse(name, value, scope)?;
    Expr::call_of(name, deserialize, args)
}

fn serialize<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let input = args[0].eval_ref(env)?;
    let relaxed = args[2].eval_ref(env)?;
    let form = match relaxed.as_ref() {
        ValueRef::Bool(true) => Form::Relaxed,
        ValueRef::Bool(false) => Form::Canonical,
        other if other.is_nullish() => Form::Canonical,
        other => {
            return Err(error(
                14,
                format!(
                    "$serializeEJSON requires 'relaxed' to be a bool, found {}",
                    other.bson_type().alias()
                ),
            ));
        }
    };
    if input.is_nullish() {
        return Ok(Val::NULL);
    }
    Ok(wrap(input.as_ref(), form).into())
}

/// The value with every type that JSON lacks wrapped.
fn wrap(value: ValueRef<'_>, form: Form) -> Value {
    match value {
        ValueRef::Document(doc) => doc
            .iter()
            .map(|(name, value)| (Str::from(name), wrap(value, form)))
            .collect::<Document>()
            .into(),
        ValueRef::Array(items) => items.iter().map(|item| wrap(item, form)).collect::<Array>().into(),
        ValueRef::String(_) | ValueRef::Bool(_) | ValueRef::Null => value.to_value(),
        ValueRef::Int32(_) | ValueRef::Int64(_) if form == Form::Relaxed => value.to_value(),
        ValueRef::Double(v) if form == Form::Relaxed && v.is_finite() => value.to_value(),
        ValueRef::CodeWithScope { code, scope } => {
            Value::Document(doc! { "$code": code, "$scope": wrap(ValueRef::Document(scope), form) })
        }
        other => plain_json(&extjson::to_string(other, form)).unwrap_or(Value::Null),
    }
}

/// Parses JSON whose objects stay objects even when they look like type wrappers; `None` for malformed text.
pub(crate) fn plain_json(text: &str) -> Option<Value> {
    // A mark in front of every leading `$` keeps the parser from seeing wrappers.
    let mut marked = String::with_capacity(text.len() + 16);
    let (mut in_string, mut escaped) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        marked.push(c);
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => {
                in_string = !in_string;
                if in_string && chars.peek().is_some_and(|next| matches!(*next, '$' | MARK)) {
                    marked.push(MARK);
                }
            }
            _ => {}
        }
    }
    extjson::parse(&marked).ok().map(unmarked)
}

/// A private-use character; doubled where the text has one of its own.
const MARK: char = '\u{E000}';

fn unmarked(value: Value) -> Value {
    match value {
        Value::Document(doc) => doc
            .iter()
            .map(|(name, value)| {
                (
                    Str::from(name.strip_prefix(MARK).unwrap_or(name)),
                    unmarked(value.to_value()),
                )
            })
            .collect::<Document>()
            .into(),
        Value::Array(items) => items
            .iter()
            .map(|item| unmarked(item.to_value()))
            .collect::<Array>()
            .into(),
        Value::String(text) => match text.strip_prefix(MARK) {
            Some(rest) => rest.into(),
            None => Value::String(text),
        },
        other => other,
    }
}

fn deserialize<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let input = args[0].eval_ref(env)?;
    if input.is_nullish() {
        return Ok(Val::NULL);
    }
    match extjson::parse(&extjson::to_string(input.as_ref(), Form::Relaxed)) {
        Ok(value) => Ok(value.into()),
        Err(_) if !args[1].is_absent() => args[1].eval_ref(env),
        Err(e) => Err(Error::new(
            ErrorCode::ConversionFailure,
            format!("$deserializeEJSON: the input is no valid Extended JSON: {e}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn there_and_back() {
        check(
            r#"{"l": {"$numberLong": "5"}, "d": {"$date": {"$numberLong": "0"}}, "o": {"$oid": "507f1f77bcf86cd799439011"}}"#,
            &[
                (r#"{"$serializeEJSON": {"input": "$l"}}"#, r#"{"$numberLong": "5"}"#),
                (
                    r#"{"$serializeEJSON": {"input": ["$l", "x"], "relaxed": true}}"#,
                    r#"[Long(5), "x"]"#,
                ),
                (
                    r#"{"$serializeEJSON": {"input": {"a": "$o", "d": "$d"}}}"#,
                    r#"{"a": {"$oid": "507f1f77bcf86cd799439011"}, "d": {"$date": {"$numberLong": "0"}}}"#,
                ),
                (
                    r#"{"$eq": [{"$deserializeEJSON": {"input": {"$serializeEJSON": {"input": "$$ROOT"}}}}, "$$ROOT"]}"#,
                    "true",
                ),
                (
                    r#"{"$deserializeEJSON": {"input": {"$serializeEJSON": {"input": {"$setField":
                        {"field": {"$literal": "$oid"}, "input": {}, "value": "bad"}}}}, "onError": 1}}"#,
                    "1",
                ),
            ],
        );
    }
}
