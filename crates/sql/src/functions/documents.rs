//! `jsonb` and `json`: what has no schema.

use super::Row;
use crate::error::{error, fail};
use crate::expr::Expr;
use crate::types::json::raw;
use crate::types::{Type, integer, json, stored};
use nestor_model::{Array, Document, Result, Value, ValueRef, values_equal};

/// A value found within JSON, as `jsonb`.
fn found(value: Option<ValueRef<'_>>) -> Value {
    match value {
        None | Some(ValueRef::Missing) => Value::Null,
        Some(ValueRef::Null | ValueRef::Undefined) => Value::Undefined,
        Some(value) => value.to_value(),
    }
}

/// The same as text.
fn found_text(value: &Value) -> Value {
    match value {
        Value::Null | Value::Undefined => Value::Null,
        value => Value::String(json::text(value.as_ref()).into()),
    }
}

fn field(value: &Value, name: &str) -> Value {
    match value {
        Value::Document(doc) => found(doc.get(name)),
        _ => Value::Null,
    }
}

/// As [`element`]; what is neither array nor object is the only element of itself, as PostgreSQL stores it.
fn element_or_scalar(value: &Value, at: i64) -> Value {
    match value {
        Value::Array(_) | Value::Document(_) => element(value, at),
        scalar if matches!(at, 0 | -1) => scalar.clone(),
        _ => Value::Null,
    }
}

fn element(value: &Value, at: i64) -> Value {
    let Value::Array(items) = value else { return Value::Null };
    let at = if at < 0 { at + items.len() as i64 } else { at };
    found(usize::try_from(at).ok().and_then(|at| items.as_ref().get(at)))
}

fn path(value: &Value, path: &Value) -> Value {
    let Value::Array(steps) = path else { return Value::Null };
    let mut at = value.clone();
    for step in steps.iter() {
        let Some(step) = step.as_str() else { return Value::Null };
        at = match (&at, step.parse::<i64>()) {
            (Value::Array(_), Ok(n)) => element(&at, n),
            _ => field(&at, step),
        };
    }
    at
}

fn parsed(value: &Value) -> Result<Value> {
    json::parse(value.as_str().unwrap_or_default())
}

/// JSON's containment.
fn contains(all: ValueRef<'_>, some: ValueRef<'_>) -> bool {
    match (all, some) {
        // An array has what stands in it, but only where nothing is around it.
        (ValueRef::Array(all), some) if !matches!(some, ValueRef::Array(_) | ValueRef::Document(_)) => {
            all.iter().any(|other| values_equal(other, some))
        }
        (all, some) => contains_within(all, some),
    }
}

fn contains_within(all: ValueRef<'_>, some: ValueRef<'_>) -> bool {
    match (all, some) {
        (ValueRef::Document(all), ValueRef::Document(some)) => some
            .iter()
            .all(|(name, value)| all.get(name).is_some_and(|other| contains_within(other, value))),
        (ValueRef::Array(all), ValueRef::Array(some)) => some
            .iter()
            .all(|item| all.iter().any(|other| contains_within(other, item))),
        (all, some) => values_equal(all, some),
    }
}

fn has(value: &Value, name: &str) -> bool {
    match value {
        Value::Document(doc) => doc.get(name).is_some(),
        Value::Array(items) => items.iter().any(|item| item.as_str() == Some(name)),
        Value::String(text) => text == name,
        _ => false,
    }
}

fn concat(a: &Value, b: &Value) -> Value {
    let list = |value: &Value| match value {
        Value::Array(items) => items.iter().map(|item| item.to_value()).collect(),
        value => vec![value.clone()],
    };
    match (a, b) {
        (Value::Document(a), Value::Document(b)) => {
            let mut out = a.clone();
            for (name, value) in b.iter() {
                match out.get(name).is_some() {
                    true => out.set(name, value.to_value()),
                    false => out.push(name, value.to_value()),
                }
            }
            out.into()
        }
        (a, b) => Value::Array(Array::new([list(a), list(b)].concat())),
    }
}

fn without(value: &Value, names: &[String]) -> Value {
    match value {
        Value::Document(doc) => {
            let mut out = Document::new();
            for (name, value) in doc.iter().filter(|(name, _)| !names.iter().any(|gone| gone == name)) {
                out.push(name, value.to_value());
            }
            out.into()
        }
        Value::Array(items) => {
            let kept = items
                .iter()
                .filter(|item| !item.as_str().is_some_and(|s| names.iter().any(|gone| gone == s)));
            Value::Array(Array::new(kept.map(|item| item.to_value()).collect()))
        }
        other => other.clone(),
    }
}

fn has_null(value: &Value) -> bool {
    matches!(value, Value::Array(items) if items.iter().any(|item| item.is_nullish()))
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect(),
        Value::String(text) => vec![text.to_string()],
        _ => Vec::new(),
    }
}

/// The steps of a path by which a value is changed, which is no single value. Errors: 22004 for a step that is null, 22023.
fn steps_to(value: &Value, path: &Value, what: &str) -> Result<Vec<String>> {
    if !matches!(value, Value::Document(_) | Value::Array(_)) {
        return fail("22023", format!("cannot {what} path in scalar"));
    }
    let Value::Array(items) = path else {
        return Ok(Vec::new());
    };
    let steps = items.iter().enumerate().map(|(at, step)| match step.as_str() {
        Some(step) => Ok(step.to_owned()),
        None => fail("22004", format!("path element at position {} is null", at + 1)),
    });
    steps.collect()
}

/// The number of an element, which may count from the end. Errors: 22P02 for a step, the one behind so many others, that is none.
fn number_of(step: &str, behind: usize) -> Result<i64> {
    step.trim().parse::<i32>().map(i64::from).map_err(|_| {
        error(
            "22P02",
            format!("path element at position {} is not an integer: \"{step}\"", behind + 1),
        )
    })
}

/// The value with a new one at a path, of which so many steps are taken. Errors: 22P02.
fn set(value: &Value, (path, taken): (&[String], usize), new: &Value, create: bool) -> Result<Value> {
    let Some(head) = path.get(taken) else {
        return Ok(value.clone());
    };
    let is_last = taken + 1 == path.len();
    let inner = |old: Value| match is_last {
        true => Ok(stored_null(new.clone())),
        false => set(&old, (path, taken + 1), new, create),
    };
    Ok(match value {
        Value::Document(doc) => {
            let mut out = doc.clone();
            match doc.get(head) {
                Some(old) => out.set(head, inner(old.to_value())?),
                None if create && is_last => out.push(head.as_str(), stored_null(new.clone())),
                None => {}
            }
            out.into()
        }
        Value::Array(items) => {
            let mut out: Vec<Value> = items.iter().map(|item| item.to_value()).collect();
            let at = number_of(head, taken)?;
            let place = if at < 0 { at + out.len() as i64 } else { at };
            match usize::try_from(place).ok().filter(|place| *place < out.len()) {
                Some(place) => out[place] = inner(out[place].clone())?,
                None if create && is_last && at < 0 => out.insert(0, stored_null(new.clone())),
                None if create && is_last => out.push(stored_null(new.clone())),
                None => {}
            }
            Value::Array(Array::new(out))
        }
        other => other.clone(),
    })
}

/// `jsonb_insert`: a new element beside the one at `path`, or a new field. Errors: 22023.
fn insert(value: &Value, (path, taken): (&[String], usize), new: &Value, after: bool) -> Result<Value> {
    let Some(head) = path.get(taken) else {
        return Ok(value.clone());
    };
    let (rest, is_last) = ((path, taken + 1), taken + 1 == path.len());
    match value {
        Value::Document(doc) => match (doc.get(head), is_last) {
            (Some(_), true) => fail("22023", "cannot replace existing key"),
            (None, true) => {
                let mut out = doc.clone();
                out.push(head.as_str(), stored_null(new.clone()));
                Ok(out.into())
            }
            (Some(old), false) => {
                let mut out = doc.clone();
                out.set(head, insert(&old.to_value(), rest, new, after)?);
                Ok(out.into())
            }
            (None, false) => Ok(value.clone()),
        },
        Value::Array(items) => {
            let mut out: Vec<Value> = items.iter().map(|item| item.to_value()).collect();
            let at = number_of(head, taken)?;
            let place = if at < 0 { at + out.len() as i64 } else { at };
            let within = usize::try_from(place).ok().filter(|place| *place < out.len());
            match (within, is_last) {
                (Some(place), true) => out.insert(place + usize::from(after), stored_null(new.clone())),
                (None, true) if place < 0 => out.insert(0, stored_null(new.clone())),
                (None, true) => out.push(stored_null(new.clone())),
                (Some(place), false) => out[place] = insert(&out[place], rest, new, after)?,
                (None, false) => {}
            }
            Ok(Value::Array(Array::new(out)))
        }
        other => Ok(other.clone()),
    }
}

/// `jsonb_object`: names and values by turns, or in an array each. Errors: 2202E, 22004.
fn object_of_texts(names: &Value, values: Option<&Value>) -> Result<Value> {
    let list = |value: &Value| match value {
        Value::Array(items) => items.iter().map(|item| item.to_value()).collect(),
        _ => Vec::new(),
    };
    let names = list(names);
    let widths = |items: &[Value]| -> Option<Vec<usize>> {
        let width = |item: &Value| match item {
            Value::Array(inner) if inner.iter().any(|item| matches!(item, ValueRef::Array(_))) => None,
            Value::Array(inner) => Some(inner.len()),
            _ => Some(0),
        };
        items.iter().map(width).collect()
    };
    let known = [Some(&names), values.map(list).as_ref()]
        .into_iter()
        .flatten()
        .map(|items| widths(items))
        .collect::<Option<Vec<_>>>();
    let names = match known.as_deref() {
        None => return fail("2202E", "wrong number of array subscripts"),
        Some([widths]) if widths.iter().any(|width| *width > 0) => {
            if widths.iter().any(|width| *width != 2) {
                return fail("2202E", "array must have two columns");
            }
            names.iter().flat_map(&list).collect()
        }
        Some(all) if all.iter().flatten().any(|width| *width > 0) => {
            return fail("2202E", "wrong number of array subscripts");
        }
        Some(_) => names,
    };
    let pairs: Vec<(Value, Value)> = match values.map(list) {
        Some(values) if values.len() != names.len() => return fail("2202E", "mismatched array dimensions"),
        Some(values) => names.into_iter().zip(values).collect(),
        None if !names.len().is_multiple_of(2) => return fail("2202E", "array must have even number of elements"),
        None => names
            .chunks_exact(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect(),
    };
    let mut out = Document::new();
    for (name, value) in pairs {
        let Some(name) = name.as_str() else {
            return fail("22004", "null value not allowed for object key");
        };
        out.set(name, value);
    }
    Ok(out.into())
}

fn stored_null(value: Value) -> Value {
    if matches!(value, Value::Undefined) {
        Value::Null
    } else {
        value
    }
}

/// The function that a subscript of JSON is.
pub const PART: &str = "jsonb_part";

/// A field of an object or an element of an array, as a text names it; null where there is none.
fn part_at(of: &Value, at: &Value) -> Value {
    let at = at.as_str().unwrap_or_default();
    let found = match of {
        Value::Document(doc) => doc.get(at).map(|value| value.to_value()),
        Value::Array(items) => at.parse::<i64>().ok().and_then(|at| {
            let at = if at < 0 { at + items.len() as i64 } else { at };
            items
                .as_ref()
                .get(usize::try_from(at).ok()?)
                .map(|value| value.to_value())
        }),
        _ => return Value::Null,
    };
    match found {
        None => Value::Null,
        Some(Value::Null) => Value::Undefined,
        Some(value) => value,
    }
}

fn strip_nulls(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(doc) => {
            let mut out = Document::new();
            for (name, value) in doc.iter().filter(|(_, value)| !value.is_nullish()) {
                out.push(name, strip_nulls(value));
            }
            out.into()
        }
        ValueRef::Array(items) => Value::Array(Array::new(items.iter().map(strip_nulls).collect())),
        other => other.to_value(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Document(_) => "object",
        Value::Array(_) => "array",
        Value::Bool(_) => "boolean",
        Value::Undefined | Value::Null => "null",
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_) => "number",
        _ => "string",
    }
}

/// A value as part of a JSON document.
pub(crate) fn part(value: &Value, arg: &Expr) -> Value {
    stored_null(stored::to_json(&arg.ty(), value.clone()))
}

fn object(values: &[Value], args: &[Expr]) -> Result<Value> {
    if !values.len().is_multiple_of(2) {
        return fail("22023", "argument list must have even number of elements");
    }
    let mut out = Document::new();
    for (pair, args) in values.chunks_exact(2).zip(args.chunks_exact(2)) {
        if matches!(pair[0], Value::Null) {
            return fail("22023", "argument 1: key must not be null");
        }
        let ty = args[0].ty();
        if matches!(ty, Type::Record | Type::Composite(_) | Type::Json | Type::Jsonb) || ty.element().is_some() {
            return fail("22023", "key value must be scalar, not array, composite, or json");
        }
        let name = match pair[0] {
            Value::Bool(name) => name.to_string(),
            ref name => crate::types::output::text(&ty, name),
        };
        out.push(name, part(&pair[1], &args[1]));
    }
    Ok(out.into())
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn steps(values: &[Value]) -> Vec<String> {
    values.iter().map(|step| text_of(step).to_owned()).collect()
}

/// A part of JSON's text as `json`.
fn written(part: Option<&str>) -> Value {
    part.map_or(Value::Null, |part| Value::String(part.into()))
}

/// The same as text: nothing for JSON's null.
fn said(part: Option<&str>) -> Value {
    match part {
        None | Some("null") => Value::Null,
        Some(part) => Value::String(raw::unquoted(part).into()),
    }
}

fn compact(value: Value) -> Value {
    let mut out = String::new();
    json::compact(value.as_ref(), &mut out);
    Value::String(out.into())
}

/// A value as `json`, the parts of its outermost level in lines of their own where these are wanted.
fn in_lines(value: Value, lines: bool) -> Value {
    let part = |value: ValueRef<'_>| {
        let mut out = String::new();
        json::compact(value, &mut out);
        out
    };
    let (parts, signs): (Vec<String>, _) = match &value {
        Value::Array(items) if lines => (items.iter().map(part).collect(), ["[", "]"]),
        Value::Document(doc) if lines => {
            let fields = doc.iter().map(|(name, field)| {
                let mut out = String::new();
                json::quote(name, &mut out);
                out + ":" + &part(field)
            });
            (fields.collect(), ["{", "}"])
        }
        _ => return compact(value),
    };
    Value::String(format!("{}{}{}", signs[0], parts.join(",\n "), signs[1]).into())
}

/// An object as `json_build_object` spaces it.
fn spaced(value: Value) -> Value {
    let Value::Document(doc) = &value else {
        return print(value);
    };
    let fields = doc.iter().map(|(name, value)| {
        let mut out = String::new();
        json::quote(name, &mut out);
        out.push_str(" : ");
        json::compact(value, &mut out);
        out
    });
    Value::String(format!("{{{}}}", fields.collect::<Vec<_>>().join(", ")).into())
}

/// `jsonb_set_lax`: what a null for the new value means is named. Errors: 22004, 22023.
fn set_lax(a: &[Value], create: bool, treatment: &str) -> Result<Value> {
    if matches!(a[0], Value::Null) || matches!(a[1], Value::Null) {
        return Ok(Value::Null);
    }
    let path = steps_to(&a[0], &a[1], "set")?;
    if !matches!(a[2], Value::Null) {
        return set(&a[0], (&path, 0), &a[2], create);
    }
    match treatment {
        "use_json_null" => set(&a[0], (&path, 0), &Value::Undefined, create),
        "return_target" => Ok(a[0].clone()),
        "delete_key" => gone(&a[0], (&path, 0)),
        "raise_exception" => fail("22004", "JSON value must not be null"),
        _ => fail(
            "22023",
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        ),
    }
}

/// A value without what is at a path.
fn gone(value: &Value, (path, taken): (&[String], usize)) -> Result<Value> {
    let Some(head) = path.get(taken) else {
        return Ok(value.clone());
    };
    let (rest, is_last) = ((path, taken + 1), taken + 1 == path.len());
    Ok(match value {
        Value::Document(doc) => {
            let mut out = Document::new();
            for (name, inner) in doc.iter() {
                match (name == head, is_last) {
                    (true, true) => {}
                    (true, false) => out.push(name, gone(&inner.to_value(), rest)?),
                    (false, _) => out.push(name, inner.to_value()),
                }
            }
            out.into()
        }
        Value::Array(items) => {
            let mut out: Vec<Value> = items.iter().map(|item| item.to_value()).collect();
            let at = number_of(head, taken)?;
            let at = if at < 0 { at + out.len() as i64 } else { at };
            if let Some(at) = usize::try_from(at).ok().filter(|at| *at < out.len()) {
                match is_last {
                    true => {
                        out.remove(at);
                    }
                    false => out[at] = gone(&out[at], rest)?,
                }
            }
            Value::Array(Array::new(out))
        }
        other => other.clone(),
    })
}

fn print(value: Value) -> Value {
    let mut out = String::new();
    json::print(value.as_ref(), &mut out);
    Value::String(out.into())
}

fn pretty(value: ValueRef<'_>, indent: usize, out: &mut String) {
    let pad = |n: usize| "    ".repeat(n);
    match value {
        ValueRef::Document(doc) => {
            out.push_str(if doc.is_empty() { "{" } else { "{\n" });
            for (i, (name, value)) in doc.iter().enumerate() {
                out.push_str(if i > 0 { ",\n" } else { "" });
                out.push_str(&pad(indent + 1));
                json::quote(name, out);
                out.push_str(": ");
                pretty(value, indent + 1, out);
            }
            out.push_str(&format!("\n{}}}", pad(indent)));
        }
        ValueRef::Array(items) => {
            out.push_str(if items.is_empty() { "[" } else { "[\n" });
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ",\n" } else { "" });
                out.push_str(&pad(indent + 1));
                pretty(item, indent + 1, out);
            }
            out.push_str(&format!("\n{}]", pad(indent)));
        }
        other => json::print(other, out),
    }
}

/// The function that an assignment to a part of `jsonb` is a call of: the value, its new part, and the way there.
pub(crate) const WITH_FIELD: &str = "jsonb with part";

/// Elements that an assignment to a part puts into an array at most.
const PLACES_MAX: i64 = 1 << 20;

/// JSON with another part at the end of a way, which is made where there is nothing yet.
///
/// Errors: 22023 where a scalar stands in the way or a place is before the first; 54000.
fn with_part(of: &Value, path: &[&str], new: &Value) -> Result<Value> {
    let Some((step, rest)) = path.split_first() else {
        return Ok(match new {
            Value::Null => Value::Undefined,
            new => new.clone(),
        });
    };
    let index = step.parse::<i64>().ok();
    match (of, index) {
        (Value::Null, None) => {
            let mut out = Document::new();
            out.push(*step, with_part(&Value::Null, rest, new)?);
            Ok(out.into())
        }
        (Value::Document(doc), _) => {
            let mut out = Document::new();
            let mut found = false;
            for (name, value) in doc.iter() {
                if name == *step {
                    found = true;
                    out.push(name, with_part(&value.to_value(), rest, new)?);
                } else {
                    out.push(name, value.to_value());
                }
            }
            if !found {
                out.push(*step, with_part(&Value::Null, rest, new)?);
            }
            Ok(out.into())
        }
        (Value::Null | Value::Array(_), Some(index)) => {
            let mut items: Vec<Value> = match of {
                Value::Array(items) => items.iter().map(|item| item.to_value()).collect(),
                _ => Vec::new(),
            };
            let at = if index < 0 {
                index.saturating_add(items.len() as i64)
            } else {
                index
            };
            if at < 0 {
                return fail("22023", format!("path element at position 1 is out of range: {index}"));
            }
            if at > PLACES_MAX {
                return fail("54000", "array size exceeds the maximum allowed");
            }
            let at = at as usize;
            let is_there = at < items.len();
            if !is_there {
                items.resize(at + 1, Value::Undefined);
            }
            let before = if is_there { items[at].clone() } else { Value::Null };
            items[at] = with_part(&before, rest, new)?;
            Ok(Value::Array(Array::new(items)))
        }
        (Value::Array(_), None) => fail(
            "22P02",
            format!("path element at position 1 is not an integer: \"{step}\""),
        ),
        _ => fail("22023", "cannot replace existing key"),
    }
}

/// The way of an assignment. Errors: 22004 for null.
fn way(values: &[Value]) -> Result<Vec<&str>> {
    let each = values.iter().map(|step| match step.as_str() {
        Some(step) => Ok(step),
        None => fail("22004", "jsonb subscript in assignment must not be null"),
    });
    each.collect()
}

/// The function that puts fields in order for comparisons.
pub(crate) const IN_ORDER: &str = "jsonb in order";

pub(super) const ROWS: &[Row] = &[
    (IN_ORDER, "jsonb->jsonb", |a, _, _| {
        Ok(json::order::in_order(a[0].as_ref()))
    }),
    (PART, "jsonb,text->jsonb", |a, _, _| Ok(part_at(&a[0], &a[1]))),
    ("->", "jsonb,text->jsonb", |a, _, _| {
        Ok(field(&a[0], a[1].as_str().unwrap_or_default()))
    }),
    ("->", "jsonb,int4->jsonb", |a, _, _| {
        Ok(element_or_scalar(&a[0], integer(&a[1]).unwrap_or(0)))
    }),
    ("->>", "jsonb,text->text", |a, _, _| {
        Ok(found_text(&field(&a[0], a[1].as_str().unwrap_or_default())))
    }),
    ("->>", "jsonb,int4->text", |a, _, _| {
        Ok(found_text(&element_or_scalar(&a[0], integer(&a[1]).unwrap_or(0))))
    }),
    ("->", "json,text->json", |a, _, _| {
        Ok(written(raw::field(text_of(&a[0]), text_of(&a[1]))))
    }),
    ("->", "json,int4->json", |a, _, _| {
        Ok(written(raw::element(text_of(&a[0]), integer(&a[1]).unwrap_or(0))))
    }),
    ("->>", "json,text->text", |a, _, _| {
        Ok(said(raw::field(text_of(&a[0]), text_of(&a[1]))))
    }),
    ("->>", "json,int4->text", |a, _, _| {
        Ok(said(raw::element(text_of(&a[0]), integer(&a[1]).unwrap_or(0))))
    }),
    ("#>", "json,_text->json", |a, _, _| {
        if has_null(&a[1]) {
            return Ok(Value::Null);
        }
        Ok(written(raw::at_path(text_of(&a[0]), &texts(&a[1]))))
    }),
    ("#>>", "json,_text->text", |a, _, _| {
        if has_null(&a[1]) {
            return Ok(Value::Null);
        }
        Ok(said(raw::at_path(text_of(&a[0]), &texts(&a[1]))))
    }),
    ("json_strip_nulls", "json->json", |a, _, _| {
        Ok(Value::String(raw::without_nulls(text_of(&a[0])).into()))
    }),
    ("json_object", "_text->json", |a, _, _| {
        object_of_texts(&a[0], None).map(spaced)
    }),
    ("json_object", "_text,_text->json", |a, _, _| {
        object_of_texts(&a[0], Some(&a[1])).map(spaced)
    }),
    ("array_to_json", "anyarray,bool->json", |a, _, args| {
        let value = stored::to_json(&args[0].ty(), a[0].clone());
        Ok(in_lines(value, matches!(a[1], Value::Bool(true))))
    }),
    ("array_to_json", "anyarray->json", |a, _, args| {
        Ok(compact(stored::to_json(&args[0].ty(), a[0].clone())))
    }),
    (WITH_FIELD, "?jsonb,jsonb,text...->jsonb", |a, _, _| {
        with_part(&a[0], &way(&a[2..])?, &a[1])
    }),
    ("jsonb_set_lax", "?jsonb,_text,jsonb->jsonb", |a, _, _| {
        set_lax(a, true, "use_json_null")
    }),
    ("jsonb_set_lax", "?jsonb,_text,jsonb,bool->jsonb", |a, _, _| {
        set_lax(a, matches!(a[3], Value::Bool(true)), "use_json_null")
    }),
    ("jsonb_set_lax", "?jsonb,_text,jsonb,bool,text->jsonb", |a, _, _| {
        set_lax(a, matches!(a[3], Value::Bool(true)), a[4].as_str().unwrap_or_default())
    }),
    ("#>", "jsonb,_text->jsonb", |a, _, _| Ok(path(&a[0], &a[1]))),
    ("#>>", "jsonb,_text->text", |a, _, _| {
        Ok(found_text(&path(&a[0], &a[1])))
    }),
    ("@>", "jsonb,jsonb->bool", |a, _, _| {
        Ok(Value::Bool(contains(a[0].as_ref(), a[1].as_ref())))
    }),
    ("<@", "jsonb,jsonb->bool", |a, _, _| {
        Ok(Value::Bool(contains(a[1].as_ref(), a[0].as_ref())))
    }),
    ("?", "jsonb,text->bool", |a, _, _| {
        Ok(Value::Bool(has(&a[0], a[1].as_str().unwrap_or_default())))
    }),
    ("?|", "jsonb,_text->bool", |a, _, _| {
        Ok(Value::Bool(texts(&a[1]).iter().any(|name| has(&a[0], name))))
    }),
    ("?&", "jsonb,_text->bool", |a, _, _| {
        Ok(Value::Bool(texts(&a[1]).iter().all(|name| has(&a[0], name))))
    }),
    ("||", "jsonb,jsonb->jsonb", |a, _, _| Ok(concat(&a[0], &a[1]))),
    ("#-", "jsonb,_text->jsonb", |a, _, _| {
        // Nothing is gone from what is empty, whatever the path.
        let is_empty = match &a[0] {
            Value::Array(items) => items.is_empty(),
            Value::Document(doc) => doc.is_empty(),
            _ => false,
        };
        if is_empty {
            return Ok(a[0].clone());
        }
        gone(&a[0], (&steps_to(&a[0], &a[1], "delete")?, 0))
    }),
    ("-", "jsonb,text->jsonb", |a, _, _| match &a[0] {
        Value::Document(_) | Value::Array(_) => Ok(without(&a[0], &texts(&a[1]))),
        _ => fail("22023", "cannot delete from scalar"),
    }),
    ("-", "jsonb,_text->jsonb", |a, _, _| Ok(without(&a[0], &texts(&a[1])))),
    ("-", "jsonb,int4->jsonb", |a, _, _| {
        let Value::Array(items) = &a[0] else {
            return fail("22023", "cannot delete from object using integer index");
        };
        let at = integer(&a[1]).unwrap_or(0);
        let at = if at < 0 { at + items.len() as i64 } else { at };
        let kept = (0i64..)
            .zip(items.iter())
            .filter(|(i, _)| *i != at)
            .map(|(_, item)| item.to_value());
        Ok(Value::Array(Array::new(kept.collect())))
    }),
    ("jsonb_set", "jsonb,_text,jsonb->jsonb", |a, _, _| {
        set(&a[0], (&steps_to(&a[0], &a[1], "set")?, 0), &a[2], true)
    }),
    ("jsonb_set", "jsonb,_text,jsonb,bool->jsonb", |a, _, _| {
        let steps = steps_to(&a[0], &a[1], "set")?;
        set(&a[0], (&steps, 0), &a[2], matches!(a[3], Value::Bool(true)))
    }),
    ("jsonb_strip_nulls", "jsonb->jsonb", |a, _, _| {
        Ok(strip_nulls(a[0].as_ref()))
    }),
    ("jsonb_typeof", "jsonb->text", |a, _, _| {
        Ok(Value::String(kind(&a[0]).into()))
    }),
    ("json_typeof", "json->text", |a, _, _| {
        Ok(Value::String(kind(&parsed(&a[0])?).into()))
    }),
    ("jsonb_array_length", "jsonb->int4", |a, _, _| match &a[0] {
        Value::Array(items) => Ok(Value::Int32(items.len() as i32)),
        _ => fail("22023", "cannot get array length of a non-array"),
    }),
    ("json_array_length", "json->int4", |a, _, _| match parsed(&a[0])? {
        Value::Array(items) => Ok(Value::Int32(items.len() as i32)),
        _ => fail("22023", "cannot get array length of a non-array"),
    }),
    ("json_extract_path", "json,text...->json", |a, _, _| {
        Ok(written(raw::at_path(text_of(&a[0]), &steps(&a[1..]))))
    }),
    ("json_extract_path_text", "json,text...->text", |a, _, _| {
        Ok(said(raw::at_path(text_of(&a[0]), &steps(&a[1..]))))
    }),
    ("jsonb_object", "_text->jsonb", |a, _, _| object_of_texts(&a[0], None)),
    ("jsonb_object", "_text,_text->jsonb", |a, _, _| {
        object_of_texts(&a[0], Some(&a[1]))
    }),
    ("jsonb_insert", "jsonb,_text,jsonb->jsonb", |a, _, _| {
        insert(&a[0], (&steps_to(&a[0], &a[1], "set")?, 0), &a[2], false)
    }),
    ("jsonb_insert", "jsonb,_text,jsonb,bool->jsonb", |a, _, _| {
        let steps = steps_to(&a[0], &a[1], "set")?;
        insert(&a[0], (&steps, 0), &a[2], matches!(a[3], Value::Bool(true)))
    }),
    ("jsonb_extract_path", "jsonb,text...->jsonb", |a, _, _| {
        Ok(path(&a[0], &Value::Array(Array::new(a[1..].to_vec()))))
    }),
    ("jsonb_extract_path_text", "jsonb,text...->text", |a, _, _| {
        Ok(found_text(&path(&a[0], &Value::Array(Array::new(a[1..].to_vec())))))
    }),
    ("jsonb_build_object", "?any...->jsonb", |a, _, args| object(a, args)),
    ("json_build_object", "?any...->json", |a, _, args| {
        object(a, args).map(spaced)
    }),
    ("jsonb_build_array", "?any...->jsonb", |a, _, args| {
        Ok(Value::Array(Array::new(
            a.iter().zip(args).map(|(v, arg)| part(v, arg)).collect(),
        )))
    }),
    ("json_build_array", "?any...->json", |a, _, args| {
        Ok(print(Value::Array(Array::new(
            a.iter().zip(args).map(|(v, arg)| part(v, arg)).collect(),
        ))))
    }),
    ("to_jsonb", "any->jsonb", |a, _, args| {
        Ok(stored::to_json(&args[0].ty(), a[0].clone()))
    }),
    ("to_json", "any->json", |a, _, args| {
        // What is JSON keeps its text.
        match args[0].ty() {
            Type::Json => Ok(a[0].clone()),
            Type::Jsonb => Ok(print(a[0].clone())),
            ty => Ok(compact(stored::to_json(&ty, a[0].clone()))),
        }
    }),
    ("row_to_json", "jsonb,bool->json", |a, _, _| {
        Ok(in_lines(a[0].clone(), matches!(a[1], Value::Bool(true))))
    }),
    ("row_to_json", "record,bool->json", |a, _, _| {
        let value = stored::to_json(&Type::Record, a[0].clone());
        Ok(in_lines(value, matches!(a[1], Value::Bool(true))))
    }),
    ("row_to_json", "jsonb->json", |a, _, _| Ok(compact(a[0].clone()))),
    ("row_to_json", "record->json", |a, _, _| {
        Ok(compact(stored::to_json(&Type::Record, a[0].clone())))
    }),
    ("jsonb_pretty", "jsonb->text", |a, _, _| {
        let mut out = String::new();
        pretty(a[0].as_ref(), 0, &mut out);
        Ok(Value::String(out.into()))
    }),
];
