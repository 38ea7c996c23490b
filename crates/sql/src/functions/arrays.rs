//! Arrays.

use super::Row;
use crate::error::{fail, unsupported};
use crate::expr::Expr;
use crate::types::arrays::{self, dimensions};
use crate::types::{Type, compare, integer, output};
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

/// The function that several subscripts of an array are a call of.
pub(crate) const ELEMENT: &str = "array element";
/// The function that slices of an array are a call of: pairs of bounds.
pub(crate) const SLICE: &str = "array slice";

/// The function that gives the first field of a row, which is how many steps of a recursion it took to come to it.
pub(crate) const DEPTH: &str = "depth of a row";

/// The function that an assignment to an element is a call of: the array, the element, the subscripts.
pub(crate) const WITH_ELEMENT: &str = "array with element";
/// The function that an assignment to a slice is a call of: the array, the elements, pairs of bounds.
pub(crate) const WITH_SLICE: &str = "array with slice";

/// Lengths or first places of dimensions.
///
/// Errors: 22004 for nulls, 2202E for an array of several dimensions.
fn bounds(value: &Value) -> Result<Vec<i64>> {
    if matches!(value, Value::Null) {
        return fail("22004", "dimension array or low bound array cannot be null");
    }
    let each = items(value).into_iter().map(|item| match item {
        Value::Null => fail("22004", "dimension values cannot be null"),
        Value::Array(_) => fail("2202E", "wrong number of array subscripts"),
        item => Ok(integer(&item).unwrap_or(0)),
    });
    each.collect()
}

/// An array of these lengths, full of a value.
///
/// Errors: those of [`bounds`], 54000.
fn fill(value: &Value, lengths: &Value) -> Result<Value> {
    let mut filled = value.clone();
    for length in bounds(lengths)?.into_iter().rev() {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
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
}

/// Bytes that `array_fill` makes at most.
const FILLED_BYTES_MAX: usize = 64 << 20;

fn element(args: &[Expr], at: usize) -> Type {
    args[at].ty().element().cloned().unwrap_or(Type::Unknown)
}

/// The elements of an array of any depth.
fn leaves(value: &Value, element: &Type) -> Vec<Value> {
    match value {
        Value::Array(items) if arrays::nests(element) => items_of(&arrays::leaves(items.clone())),
        value => items(value),
    }
}

/// The same, as they are compared.
fn keys(value: &Value, element: &Type) -> Vec<Value> {
    let each = leaves(value, element).into_iter();
    each.map(|item| compare::key(element, item)).collect()
}

fn items_of(array: &Array) -> Vec<Value> {
    array.iter().map(|item| item.to_value()).collect()
}

/// The length of a dimension, from 1; null when there is no such one.
fn length(value: &Value, dimension: &Value, args: &[Expr]) -> Result<Value> {
    let all = dimensions(value, &element(args, 0));
    let at = integer(dimension)
        .and_then(|n| n.checked_sub(1))
        .and_then(|n| usize::try_from(n).ok());
    let found = at.and_then(|at| all.get(at));
    Ok(found.map_or(Value::Null, |n| Value::Int32(i32::try_from(*n).unwrap_or(i32::MAX))))
}

/// One array behind another; a null one is nothing.
fn joined(a: &Value, b: &Value, element: &Type) -> Result<Value> {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => arrays::joined(a, b, element),
        (Value::Null, other) | (other, _) => Ok(other.clone()),
    }
}

/// An array and an element at its end, or its beginning. Errors: 22000 for arrays of several dimensions.
fn with(array_of: &Value, item: &Value, at_end: bool, element: &Type) -> Result<Value> {
    if dimensions(array_of, element).len() > 1 {
        return fail("22000", "argument must be empty or one-dimensional array");
    }
    let mut all = items(array_of);
    match at_end {
        true => all.push(item.clone()),
        false => all.insert(0, item.clone()),
    }
    array(all)
}

/// The elements of an array that has no more than one dimension. Errors: 0A000 for others.
fn flat(value: &Value, element: &Type, what: &str) -> Result<Vec<Value>> {
    match dimensions(value, element).len() > 1 {
        true => unsupported(format!("{what} of arrays with several dimensions")),
        false => Ok(items(value)),
    }
}

/// Subscripts, or bounds of slices, as numbers; none when one is null.
fn numbers(values: &[Value]) -> Option<Vec<i64>> {
    values.iter().map(integer).collect()
}

fn replaced(value: &Value, from: &Value, to: &Value, element: &Type) -> Value {
    let Value::Array(items) = value else {
        return value.clone();
    };
    let items = items.iter().map(|item| match item.to_value() {
        inner @ Value::Array(_) if arrays::nests(element) => replaced(&inner, from, to, element),
        item if values_equal(&item, from) => to.clone(),
        item => item,
    });
    Value::Array(Array::new(items.collect()))
}

fn contains(all: &[Value], some: &[Value]) -> bool {
    some.iter()
        .all(|item| !matches!(item, Value::Null) && all.iter().any(|other| values_equal(other, item)))
}

/// Subscripts of an assignment. Errors: 22004 for null.
fn subscripts(values: &[Value]) -> Result<Vec<i64>> {
    match numbers(values).filter(|_| !values.iter().any(|value| matches!(value, Value::Null))) {
        Some(numbers) => Ok(numbers),
        None => fail("22004", "array subscript in assignment must not be null"),
    }
}

/// An array with another value at subscripts. One of a single dimension grows as far as it has to.
///
/// Errors: 2202E for subscripts that are out of range, 54000, 0A000 for arrays that would not begin at 1.
fn with_element(of: &Value, new: &Value, at: &[i64], element: &Type) -> Result<Value> {
    const BEGINNING: &str = "an array that does not begin at 1";
    let lengths = dimensions(of, element);
    if lengths.is_empty() {
        if at.iter().any(|at| *at != 1) {
            return unsupported(BEGINNING);
        }
        return at.iter().try_fold(new.clone(), |inner, _| array(vec![inner]));
    }
    if lengths.len() != at.len() {
        return fail("2202E", "wrong number of array subscripts");
    }
    let mut all = items(of);
    let [first, rest @ ..] = at else { return Ok(of.clone()) };
    let place = match usize::try_from(*first) {
        Ok(at @ 1..) => at - 1,
        _ if rest.is_empty() => return unsupported(BEGINNING),
        _ => return fail("2202E", "array subscript out of range"),
    };
    if !rest.is_empty() {
        let Some(inner) = all.get_mut(place) else {
            return fail("2202E", "array subscript out of range");
        };
        *inner = with_element(inner, new, rest, element)?;
        return array(all);
    }
    grow(&mut all, place + 1)?;
    all[place] = new.clone();
    array(all)
}

/// Makes a list at least so long, with nulls. Errors: 54000.
fn grow(all: &mut Vec<Value>, length: usize) -> Result<()> {
    let more = length.saturating_sub(all.len());
    let weight = more.saturating_mul(Value::Null.weight());
    if weight > FILLED_BYTES_MAX {
        return fail("54000", "array size exceeds the maximum allowed");
    }
    charge(weight)?;
    all.resize(all.len().max(length), Value::Null);
    Ok(())
}

/// An array of one dimension with other values between two bounds.
///
/// Errors: 2202E for bounds that do not go together, and too few values; 0A000.
fn with_slice(of: &Value, new: &Value, at: &[i64], element: &Type) -> Result<Value> {
    let [from, to] = at else {
        return unsupported("an assignment to a slice of several dimensions");
    };
    let mut all = items(of);
    if dimensions(of, element).len() > 1 {
        return unsupported("an assignment to a slice of several dimensions");
    }
    let is_open = *from == i64::from(i32::MIN) || *to == i64::from(i32::MAX);
    if all.is_empty() && is_open {
        return fail("2202E", "array slice subscript must provide both boundaries");
    }
    let from = if *from == i64::from(i32::MIN) { 1 } else { *from };
    let to = if *to == i64::from(i32::MAX) {
        all.len() as i64
    } else {
        *to
    };
    if from > to.saturating_add(1) || from > to && !all.is_empty() {
        return fail("2202E", "upper bound cannot be less than lower bound");
    }
    if from < 1 || all.is_empty() && from != 1 {
        return unsupported("an array that does not begin at 1");
    }
    let values = leaves(new, element);
    let (first, count) = (from as usize - 1, (to - from + 1) as usize);
    if values.len() < count {
        return fail("2202E", "source array too small");
    }
    grow(&mut all, first + count)?;
    for (place, value) in all[first..first + count].iter_mut().zip(values) {
        *place = value;
    }
    array(all)
}

pub(super) const ROWS: &[Row] = &[
    (WITH_ELEMENT, "?anyarray,anyelement,int4...->anyarray", |a, _, args| {
        with_element(&a[0], &a[1], &subscripts(&a[2..])?, &element(args, 0))
    }),
    (
        WITH_SLICE,
        "?anyarray,anyarray,int4...->anyarray",
        |a, _, args| match &a[1] {
            Value::Null => Ok(a[0].clone()),
            new => with_slice(&a[0], new, &subscripts(&a[2..])?, &element(args, 0)),
        },
    ),
    (DEPTH, "record->int8", |a, _, _| {
        Ok(items(&a[0]).into_iter().next().unwrap_or(Value::Null))
    }),
    ("||", "?anyarray,anyarray->anyarray", |a, _, args| {
        joined(&a[0], &a[1], &element(args, 0))
    }),
    ("||", "?anyarray,anyelement->anyarray", |a, _, args| {
        with(&a[0], &a[1], true, &element(args, 0))
    }),
    ("||", "?anyelement,anyarray->anyarray", |a, _, args| {
        with(&a[1], &a[0], false, &element(args, 1))
    }),
    (ELEMENT, "anyarray,int4...->anyelement", |a, _, args| {
        let at = numbers(&a[1..]).unwrap_or_default();
        Ok(arrays::element(&a[0], &at, &element(args, 0)))
    }),
    (SLICE, "anyarray,int4...->anyarray", |a, _, _| {
        let bounds = numbers(&a[1..]).unwrap_or_default();
        let pairs: Vec<(i64, i64)> = bounds.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        Ok(arrays::slice(&a[0], &pairs))
    }),
    ("@>", "anyarray,anyarray->bool", |a, _, args| {
        let ty = element(args, 0);
        Ok(Value::Bool(contains(&keys(&a[0], &ty), &keys(&a[1], &ty))))
    }),
    ("<@", "anyarray,anyarray->bool", |a, _, args| {
        let ty = element(args, 0);
        Ok(Value::Bool(contains(&keys(&a[1], &ty), &keys(&a[0], &ty))))
    }),
    ("&&", "anyarray,anyarray->bool", |a, _, args| {
        let ty = element(args, 0);
        let other = keys(&a[1], &ty);
        Ok(Value::Bool(keys(&a[0], &ty).iter().any(|item| {
            !matches!(item, Value::Null) && other.iter().any(|o| values_equal(o, item))
        })))
    }),
    ("enum_range", "?anyarray,anyelement,anyelement->anyarray", |a, _, _| {
        let Value::Array(all) = &a[0] else {
            return Ok(Value::Null);
        };
        let is_in = |value: &Value| {
            let place = |value: &Value| match value {
                Value::Int32(place) => Some(*place),
                _ => None,
            };
            let (own, from, to) = (place(value), place(&a[1]), place(&a[2]));
            from.is_none_or(|from| own >= Some(from)) && to.is_none_or(|to| own <= Some(to))
        };
        let labels = all.iter().map(|item| item.to_value()).filter(is_in).collect();
        Ok(Value::Array(Array::new(labels)))
    }),
    ("array_append", "?anyarray,anyelement->anyarray", |a, _, args| {
        with(&a[0], &a[1], true, &element(args, 0))
    }),
    ("array_prepend", "?anyelement,anyarray->anyarray", |a, _, args| {
        with(&a[1], &a[0], false, &element(args, 1))
    }),
    ("array_cat", "?anyarray,anyarray->anyarray", |a, _, args| {
        joined(&a[0], &a[1], &element(args, 0))
    }),
    ("array_length", "anyarray,int4->int4", |a, _, args| {
        length(&a[0], &a[1], args)
    }),
    ("array_upper", "anyarray,int4->int4", |a, _, args| {
        Ok(match length(&a[0], &a[1], args)? {
            Value::Int32(n) => Value::Int32(n - 1 + args[0].ty().first_subscript()),
            other => other,
        })
    }),
    ("array_lower", "anyarray,int4->int4", |a, _, args| {
        Ok(match length(&a[0], &a[1], args)? {
            Value::Null => Value::Null,
            _ => Value::Int32(args[0].ty().first_subscript()),
        })
    }),
    ("cardinality", "anyarray->int4", |a, _, args| {
        let leaves = dimensions(&a[0], &element(args, 0))
            .into_iter()
            .reduce(|all, n| all.saturating_mul(n));
        Ok(Value::Int32(i32::try_from(leaves.unwrap_or(0)).unwrap_or(i32::MAX)))
    }),
    ("array_dims", "anyarray->text", |a, _, args| {
        let shown = dimensions(&a[0], &element(args, 0))
            .into_iter()
            .map(|n| format!("[1:{n}]"));
        Ok(match shown.collect::<String>() {
            none if none.is_empty() => Value::Null,
            shown => Value::String(shown.into()),
        })
    }),
    ("array_positions", "?anyarray,anyelement->_int4", |a, _, args| {
        if matches!(a[0], Value::Null) {
            return Ok(Value::Null);
        }
        let all = flat(&a[0], &element(args, 0), "positions")?;
        let found = (1..).zip(all).filter(|(_, item)| values_equal(item, &a[1]));
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
        fill(&a[0], &a[1])
    }),
    ("array_fill", "?anyelement,_int4,_int4->anyarray", |a, _, _| {
        let (lengths, first) = (bounds(&a[1])?, bounds(&a[2])?);
        if first.len() != lengths.len() {
            return fail("2202E", "wrong number of array subscripts");
        }
        if first.iter().any(|bound| *bound != 1) {
            return unsupported("an array that does not begin at 1");
        }
        fill(&a[0], &a[1])
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
        Ok(match dimensions(&a[0], &element(args, 0)).len() {
            0 => Value::Null,
            n => Value::Int32(n as i32),
        })
    }),
    ("array_position", "?anyarray,anyelement->int4", |a, _, args| {
        let all = flat(&a[0], &element(args, 0), "positions")?;
        let at = all.iter().position(|item| values_equal(item, &a[1]));
        let first = args[0].ty().first_subscript();
        Ok(at.map_or(Value::Null, |at| Value::Int32(at as i32 + first)))
    }),
    ("array_position", "?anyarray,anyelement,int4->int4", |a, _, args| {
        let all = flat(&a[0], &element(args, 0), "positions")?;
        let Some(from) = integer(&a[2]) else {
            return fail("22004", "initial position must not be null");
        };
        let from = usize::try_from(from.saturating_sub(1)).unwrap_or(0);
        let at = all.iter().skip(from).position(|item| values_equal(item, &a[1]));
        Ok(at.map_or(Value::Null, |at| Value::Int32((at + from) as i32 + 1)))
    }),
    ("array_remove", "?anyarray,anyelement->anyarray", |a, _, args| {
        if matches!(a[0], Value::Null) {
            return Ok(Value::Null);
        }
        array(
            flat(&a[0], &element(args, 0), "removing elements")?
                .into_iter()
                .filter(|item| !values_equal(item, &a[1]))
                .collect(),
        )
    }),
    (
        "array_replace",
        "?anyarray,anyelement,anyelement->anyarray",
        |a, _, args| Ok(replaced(&a[0], &a[1], &a[2], &element(args, 0))),
    ),
    ("array_to_string", "anyarray,text->text", |a, _, args| {
        Ok(join(&leaves(&a[0], &element(args, 0)), &args[0].ty(), &a[1], None))
    }),
    ("array_to_string", "?anyarray,text,text->text", |a, _, args| {
        match &a[0] {
            Value::Null => Ok(Value::Null),
            value => Ok(join(
                &leaves(value, &element(args, 0)),
                &args[0].ty(),
                &a[1],
                a[2].as_str(),
            )),
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
