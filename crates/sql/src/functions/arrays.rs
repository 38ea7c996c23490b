//! Arrays.

use super::Row;
use crate::error::fail;
use crate::types::{Type, integer, output};
use nestor_model::statement::charge;
use nestor_model::{Array, Result, Value, values_equal};

fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.iter().map(|item| item.to_value()).collect(),
        _ => Vec::new(),
    }
}

fn array(items: Vec<Value>) -> Result<Value> {
    Ok(Value::Array(Array::new(items)))
}

/// Bytes that `array_fill` makes at most.
const FILLED_BYTES_MAX: usize = 64 << 20;

/// The length of an array and of the arrays in it, as deep as its type goes; none of an empty one.
fn dimensions(value: &Value, ty: &Type) -> Vec<usize> {
    let (mut out, mut at, mut ty) = (Vec::new(), value.clone(), ty.clone());
    while let Some(element) = ty.element().cloned() {
        let inner = items(&at);
        let Some(first) = inner.first().cloned() else { break };
        out.push(inner.len());
        (at, ty) = (first, element);
    }
    out
}

fn length(value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Array(items) if !items.is_empty() => Value::Int32(items.len() as i32),
        _ => Value::Null,
    })
}

fn contains(all: &[Value], some: &[Value]) -> bool {
    some.iter()
        .all(|item| !matches!(item, Value::Null) && all.iter().any(|other| values_equal(other, item)))
}

pub(super) const ROWS: &[Row] = &[
    ("||", "anyarray,anyarray->anyarray", |a, _, _| {
        array([items(&a[0]), items(&a[1])].concat())
    }),
    ("||", "anyarray,anyelement->anyarray", |a, _, _| {
        array([items(&a[0]), vec![a[1].clone()]].concat())
    }),
    ("||", "anyelement,anyarray->anyarray", |a, _, _| {
        array([vec![a[0].clone()], items(&a[1])].concat())
    }),
    ("@>", "anyarray,anyarray->bool", |a, _, _| {
        Ok(Value::Bool(contains(&items(&a[0]), &items(&a[1]))))
    }),
    ("<@", "anyarray,anyarray->bool", |a, _, _| {
        Ok(Value::Bool(contains(&items(&a[1]), &items(&a[0]))))
    }),
    ("&&", "anyarray,anyarray->bool", |a, _, _| {
        let other = items(&a[1]);
        Ok(Value::Bool(
            items(&a[0])
                .iter()
                .any(|item| other.iter().any(|o| values_equal(o, item))),
        ))
    }),
    ("array_append", "?anyarray,anyelement->anyarray", |a, _, _| {
        array([items(&a[0]), vec![a[1].clone()]].concat())
    }),
    ("array_prepend", "?anyelement,anyarray->anyarray", |a, _, _| {
        array([vec![a[0].clone()], items(&a[1])].concat())
    }),
    ("array_cat", "?anyarray,anyarray->anyarray", |a, _, _| {
        array([items(&a[0]), items(&a[1])].concat())
    }),
    ("array_length", "anyarray,int4->int4", |a, _, _| {
        if integer(&a[1]) == Some(1) {
            length(&a[0])
        } else {
            Ok(Value::Null)
        }
    }),
    ("array_upper", "anyarray,int4->int4", |a, _, _| {
        if integer(&a[1]) == Some(1) {
            length(&a[0])
        } else {
            Ok(Value::Null)
        }
    }),
    ("array_lower", "anyarray,int4->int4", |a, _, _| {
        Ok(if items(&a[0]).is_empty() {
            Value::Null
        } else {
            Value::Int32(1)
        })
    }),
    ("cardinality", "anyarray->int4", |a, _, args| {
        let leaves = dimensions(&a[0], &args[0].ty())
            .into_iter()
            .reduce(|all, n| all.saturating_mul(n));
        Ok(Value::Int32(i32::try_from(leaves.unwrap_or(0)).unwrap_or(i32::MAX)))
    }),
    ("array_dims", "anyarray->text", |a, _, args| {
        let shown = dimensions(&a[0], &args[0].ty()).into_iter().map(|n| format!("[1:{n}]"));
        Ok(match shown.collect::<String>() {
            none if none.is_empty() => Value::Null,
            shown => Value::String(shown.into()),
        })
    }),
    ("array_positions", "?anyarray,anyelement->_int4", |a, _, _| {
        if matches!(a[0], Value::Null) {
            return Ok(Value::Null);
        }
        let found = (1..).zip(items(&a[0])).filter(|(_, item)| values_equal(item, &a[1]));
        array(found.map(|(at, _)| Value::Int32(at)).collect())
    }),
    ("trim_array", "anyarray,int4->anyarray", |a, _, _| {
        let mut kept = items(&a[0]);
        let length = kept.len();
        match usize::try_from(integer(&a[1]).unwrap_or(0))
            .ok()
            .filter(|n| *n <= length)
        {
            Some(n) => kept.truncate(length - n),
            None => {
                return fail(
                    "2202E",
                    format!("number of elements to trim must be between 0 and {length}"),
                );
            }
        }
        array(kept)
    }),
    ("array_fill", "?anyelement,_int4->anyarray", |a, _, _| {
        if matches!(a[1], Value::Null) {
            return fail("22004", "dimension array or low bound array cannot be null");
        }
        let mut filled = a[0].clone();
        for length in items(&a[1]).iter().rev() {
            let length = usize::try_from(integer(length).unwrap_or(-1)).unwrap_or(usize::MAX);
            let weight = filled.weight().saturating_mul(length);
            if weight > FILLED_BYTES_MAX {
                return fail("54000", "array size exceeds the maximum allowed");
            }
            charge(weight)?;
            filled = array(vec![filled; length])?;
        }
        Ok(match filled {
            Value::Array(_) => filled,
            _ => Value::Array(Array::new(Vec::new())),
        })
    }),
    ("string_to_array", "?text,text,text->_text", |a, _, _| {
        let parts = match (a[0].as_str(), a[1].as_str()) {
            (None, _) => return Ok(Value::Null),
            (Some(""), _) => Vec::new(),
            (Some(s), None) => s.chars().map(|c| Value::String(c.to_string().into())).collect(),
            (Some(s), Some("")) => vec![Value::String(s.into())],
            (Some(s), Some(by)) => s.split(by).map(|part| Value::String(part.into())).collect(),
        };
        let nulled = parts
            .into_iter()
            .map(|part| if values_equal(&part, &a[2]) { Value::Null } else { part });
        array(nulled.collect())
    }),
    ("array_ndims", "anyarray->int4", |a, _, args| {
        Ok(match dimensions(&a[0], &args[0].ty()).len() {
            0 => Value::Null,
            n => Value::Int32(n as i32),
        })
    }),
    ("array_position", "?anyarray,anyelement->int4", |a, _, _| {
        let at = items(&a[0]).iter().position(|item| values_equal(item, &a[1]));
        Ok(at.map_or(Value::Null, |at| Value::Int32(at as i32 + 1)))
    }),
    ("array_remove", "?anyarray,anyelement->anyarray", |a, _, _| {
        array(
            items(&a[0])
                .into_iter()
                .filter(|item| !values_equal(item, &a[1]))
                .collect(),
        )
    }),
    (
        "array_replace",
        "?anyarray,anyelement,anyelement->anyarray",
        |a, _, _| {
            array(
                items(&a[0])
                    .into_iter()
                    .map(|item| if values_equal(&item, &a[1]) { a[2].clone() } else { item })
                    .collect(),
            )
        },
    ),
    ("array_to_string", "anyarray,text->text", |a, _, args| {
        Ok(join(&items(&a[0]), &args[0].ty(), &a[1], None))
    }),
    ("array_to_string", "?anyarray,text,text->text", |a, _, args| {
        match &a[0] {
            Value::Null => Ok(Value::Null),
            value => Ok(join(&items(value), &args[0].ty(), &a[1], a[2].as_str())),
        }
    }),
    ("string_to_array", "?text,text->_text", |a, _, _| {
        match (a[0].as_str(), a[1].as_str()) {
            (None, _) => Ok(Value::Null),
            (Some(""), _) => array(Vec::new()),
            (Some(s), None) => array(s.chars().map(|c| Value::String(c.to_string().into())).collect()),
            (Some(s), Some("")) => array(vec![Value::String(s.into())]),
            (Some(s), Some(by)) => array(s.split(by).map(|part| Value::String(part.into())).collect()),
        }
    }),
];

fn join(items: &[Value], ty: &Type, by: &Value, null: Option<&str>) -> Value {
    let element = ty.element().unwrap_or(&Type::Text);
    let shown = items.iter().filter_map(|item| match item {
        Value::Null => null.map(str::to_owned),
        item => Some(output::text(element, item)),
    });
    Value::String(shown.collect::<Vec<_>>().join(by.as_str().unwrap_or_default()).into())
}
