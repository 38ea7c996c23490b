//! Arrays of several dimensions: arrays of arrays, which are as long as each other.

use super::Type;
use crate::error::fail;
use nestor_model::{Array, Result, Value, ValueRef};

/// Whether a character around the elements of an array's text is no part of them.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// Whether an array among such elements is a part of an array and not an element.
pub fn nests(element: &Type) -> bool {
    !matches!(element, Type::Json | Type::Jsonb | Type::Record | Type::Array(_)) && !element.is_ranges()
}

/// Lengths by dimension, the outermost first; none for an empty array.
pub fn dimensions(value: &Value, element: &Type) -> Vec<usize> {
    let mut out = Vec::new();
    let mut at = value.as_ref();
    while let ValueRef::Array(items) = at
        && !items.is_empty()
        && (out.is_empty() || nests(element))
    {
        out.push(items.len());
        at = items.get(0).unwrap_or(ValueRef::Missing);
    }
    out
}

/// The elements of an array of any depth.
pub fn leaves(items: Array) -> Array {
    fn collect(items: &Array, out: &mut Vec<Value>) {
        for item in items.iter() {
            match item.to_value() {
                Value::Array(inner) => collect(&inner, out),
                leaf => out.push(leaf),
            }
        }
    }
    if !matches!(items.as_ref().get(0), Some(ValueRef::Array(_))) {
        return items;
    }
    let mut out = Vec::new();
    collect(&items, &mut out);
    Array::new(out)
}

/// The array of such arrays. Errors: 2202E when they are not as long as each other, or one of them is null.
pub fn of_arrays(items: Vec<Value>) -> Result<Value> {
    let mut shape: Option<Vec<usize>> = None;
    for item in &items {
        let own = shape_of(item);
        if shape.as_ref().is_some_and(|shape| *shape != own) || matches!(item, Value::Null) {
            return fail(
                "2202E",
                "multidimensional arrays must have array expressions with matching dimensions",
            );
        }
        shape = Some(own);
    }
    Ok(Value::Array(Array::new(
        match shape.is_some_and(|shape| shape.is_empty()) {
            true => Vec::new(),
            false => items,
        },
    )))
}

/// Whether arrays have the same dimensions.
pub fn are_alike(items: &[Value]) -> bool {
    let mut shapes = items.iter().map(shape_of);
    shapes.next().is_none_or(|first| shapes.all(|shape| shape == first))
}

fn shape_of(value: &Value) -> Vec<usize> {
    dimensions(value, &Type::Int4)
}

/// Two arrays one behind the other. Errors: 2202E when their dimensions do not go together.
pub fn joined(a: &Array, b: &Array, element: &Type) -> Result<Value> {
    let (x, y) = (Value::Array(a.clone()), Value::Array(b.clone()));
    if !nests(element) || a.is_empty() || b.is_empty() {
        return Ok(Value::Array(Array::new(
            a.iter().chain(b.iter()).map(|item| item.to_value()).collect(),
        )));
    }
    let (m, n) = (shape_of(&x), shape_of(&y));
    let items: Vec<Value> = match () {
        () if m.len() == n.len() && m[1..] == n[1..] => a.iter().chain(b.iter()).map(|item| item.to_value()).collect(),
        () if m.len() == n.len() + 1 && m[1..] == n[..] => a.iter().map(|item| item.to_value()).chain([y]).collect(),
        () if n.len() == m.len() + 1 && n[1..] == m[..] => {
            std::iter::once(x).chain(b.iter().map(|item| item.to_value())).collect()
        }
        () => return fail("2202E", "cannot concatenate incompatible arrays"),
    };
    Ok(Value::Array(Array::new(items)))
}

/// The element at subscripts from 1; null when there is none, or when there are more or fewer subscripts than dimensions.
pub fn element(value: &Value, at: &[i64], element: &Type) -> Value {
    let mut found = value.as_ref();
    for at in at {
        let index = at.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        found = match (found, index) {
            (ValueRef::Array(items), Some(index)) => items.get(index).unwrap_or(ValueRef::Missing),
            _ => ValueRef::Missing,
        };
    }
    match found {
        ValueRef::Missing => Value::Null,
        ValueRef::Array(_) if nests(element) => Value::Null,
        found => found.to_value(),
    }
}

/// The part of an array between bounds, a pair for each dimension from the outermost on.
pub fn slice(value: &Value, bounds: &[(i64, i64)]) -> Value {
    let (Value::Array(items), Some(((from, to), rest))) = (value, bounds.split_first()) else {
        return value.clone();
    };
    let kept = (1i64..).zip(items.iter()).filter(|(at, _)| (from..=to).contains(&at));
    let parts: Vec<Value> = kept.map(|(_, item)| slice(&item.to_value(), rest)).collect();
    let is_empty = parts
        .iter()
        .any(|part| matches!(part, Value::Array(part) if part.is_empty()));
    Value::Array(Array::new(if is_empty && !rest.is_empty() {
        Vec::new()
    } else {
        parts
    }))
}
