//! Arrays as wholes: elements by position, search, joining, cutting, ranges.

use crate::env::{Env, Items, Val};
use crate::expr::Expr;
use crate::expr::args::{error, whole_i32};
use crate::expr::parse::OpDef;
use nestor_model::statement::{charge, work};
use nestor_model::{ErrorCode, Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::fixed("$arrayElemAt", 2, array_elem_at),
    OpDef::variadic("$concatArrays", concat_arrays),
    OpDef::fixed("$in", 2, is_in),
    OpDef::range("$indexOfArray", 2, 4, index_of_array),
    OpDef::fixed("$isArray", 1, is_array),
    OpDef::range("$range", 2, 3, range),
    OpDef::fixed("$reverseArray", 1, reverse_array),
    OpDef::fixed("$size", 1, size),
    OpDef::range("$slice", 2, 3, slice),
];

/// Most memory that `$range` may take, in bytes; an element counts as 16.
const RANGE_BYTES_MAX: i64 = 100 * 1024 * 1024;

fn alias(v: &Val<'_>) -> &'static str {
    v.as_ref().bson_type().alias()
}

fn array_elem_at<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let array = args[0].eval_ref(env)?;
    let index = args[1].eval_ref(env)?;
    if array.is_nullish() || index.is_nullish() {
        return Ok(Val::NULL);
    }
    if !matches!(array.as_ref(), ValueRef::Array(_)) {
        return Err(error(
            28689,
            format!(
                "$arrayElemAt's first argument must be an array, but is {}",
                alias(&array)
            ),
        ));
    }
    if !index.as_ref().is_number() {
        return Err(error(
            28690,
            format!(
                "$arrayElemAt's second argument must be a numeric value, but is {}",
                alias(&index)
            ),
        ));
    }
    let Some(index) = whole_i32(index.as_ref()) else {
        return Err(error(
            28691,
            "$arrayElemAt's second argument must be representable as a 32-bit integer",
        ));
    };
    Ok(element(&array, i64::from(index)))
}

/// The element at `index`, from the end when negative; missing beyond.
pub(crate) fn element<'a>(array: &Val<'a>, index: i64) -> Val<'a> {
    let length = match array.as_ref() {
        ValueRef::Array(items) if index < 0 => items.len() as i64,
        _ => 0,
    };
    let index = if index < 0 { index + length } else { index };
    let Ok(index) = usize::try_from(index) else {
        return Val::MISSING;
    };
    match array {
        Val::Ref(ValueRef::Array(items)) => items.get(index).map_or(Val::MISSING, Val::Ref),
        _ => array
            .items()
            .and_then(|mut items| items.nth(index))
            .unwrap_or(Val::MISSING),
    }
}

fn concat_arrays<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut out = Vec::new();
    for arg in args {
        let value = arg.eval_ref(env)?;
        match value.items() {
            Some(items) => {
                for item in items {
                    let item = item.into_value();
                    work(1)?;
                    charge(item.weight())?;
                    out.push(item);
                }
            }
            None if value.is_nullish() => return Ok(Val::NULL),
            None => {
                return Err(error(
                    28664,
                    format!("$concatArrays only supports arrays, not {}", alias(&value)),
                ));
            }
        }
    }
    Ok(Value::from(out).into())
}

/// The items as owned values.
pub(crate) fn collected(items: Items<'_, '_>) -> Result<Vec<Value>> {
    let mut out = Vec::with_capacity(items.size_hint().0);
    for item in items {
        let item = item.into_value();
        work(1)?;
        charge(item.weight())?;
        out.push(item);
    }
    Ok(out)
}

fn is_in<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    let array = args[1].eval_ref(env)?;
    let ValueRef::Array(items) = array.as_ref() else {
        return Err(error(
            40081,
            format!("$in requires an array as a second argument, found: {}", alias(&array)),
        ));
    };
    let value = value.as_ref();
    for item in items {
        work(1)?;
        if env.compare(item, value).is_eq() {
            return Ok(Val::Ref(ValueRef::Bool(true)));
        }
    }
    Ok(Val::Ref(ValueRef::Bool(false)))
}

fn index_of_array<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let array = args[0].eval_ref(env)?;
    if array.is_nullish() {
        return Ok(Val::NULL);
    }
    let ValueRef::Array(items) = array.as_ref() else {
        return Err(error(
            40090,
            format!(
                "$indexOfArray requires an array as a first argument, found: {}",
                alias(&array)
            ),
        ));
    };
    let sought = args[1].eval_ref(env)?;
    let from = match args.get(2) {
        Some(arg) => position(arg, env, "$indexOfArray")?,
        None => 0,
    };
    let to = match args.get(3) {
        Some(arg) => position(arg, env, "$indexOfArray")?,
        None => usize::MAX,
    };
    let sought = sought.as_ref();
    for (index, item) in items.iter().enumerate().take(to).skip(from) {
        work(1)?;
        if env.compare(item, sought).is_eq() {
            return Ok((index as i32).into());
        }
    }
    Ok((-1).into())
}

/// A start or end position. Errors: 9711600 no whole number, 9711601 negative.
fn position<'a>(arg: &'a Expr, env: &mut Env<'a>, op: &str) -> Result<usize> {
    let value = arg.eval_ref(env)?;
    match whole_i32(value.as_ref()) {
        None => Err(error(
            9_711_600,
            format!("{op} requires a whole number as position, found {value:?}"),
        )),
        Some(n) => usize::try_from(n)
            .map_err(|_| error(9_711_601, format!("{op} requires a position of 0 or more, found {n}"))),
    }
}

fn is_array<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    Ok(Val::Ref(ValueRef::Bool(matches!(value.as_ref(), ValueRef::Array(_)))))
}

fn bound<'a>(arg: &'a Expr, env: &mut Env<'a>, what: &str, type_code: i32, whole_code: i32) -> Result<i32> {
    let value = arg.eval_ref(env)?;
    if !value.as_ref().is_number() {
        return Err(error(
            type_code,
            format!("$range requires a numeric {what}, found {}", alias(&value)),
        ));
    }
    whole_i32(value.as_ref()).ok_or_else(|| {
        error(
            whole_code,
            format!("$range requires a {what} that can be represented as a 32-bit integer, found {value:?}"),
        )
    })
}

fn range<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let start = bound(&args[0], env, "start", 34443, 34444)?;
    let end = bound(&args[1], env, "end", 34445, 34446)?;
    let step = match args.get(2) {
        Some(arg) => bound(arg, env, "step", 34447, 34448)?,
        None => 1,
    };
    if step == 0 {
        return Err(error(34449, "$range requires a non-zero step value"));
    }
    let (start, end, step) = (i64::from(start), i64::from(end), i64::from(step));
    let span = if step > 0 { end - start } else { start - end };
    let count = if span <= 0 {
        0
    } else {
        (span + step.abs() - 1) / step.abs()
    };
    if count * 16 > RANGE_BYTES_MAX {
        return Err(nestor_model::Error::new(
            ErrorCode::ExceededMemoryLimit,
            format!("$range would use too much memory ({} bytes)", count * 16),
        ));
    }
    let mut items = Vec::with_capacity(count as usize);
    for i in 0..count {
        work(1)?;
        items.push(Value::Int32((start + i * step) as i32));
    }
    Ok(Value::from(items).into())
}

fn reverse_array<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let array = args[0].eval_ref(env)?;
    match array.items() {
        Some(items) => {
            let mut items = collected(items)?;
            items.reverse();
            Ok(Value::from(items).into())
        }
        None if array.is_nullish() => Ok(Val::NULL),
        None => Err(error(
            34435,
            format!(
                "the argument to $reverseArray must be an array, but was {}",
                alias(&array)
            ),
        )),
    }
}

fn size<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let array = args[0].eval_ref(env)?;
    match array.as_ref() {
        ValueRef::Array(items) => Ok((items.len() as i32).into()),
        _ => Err(error(
            17124,
            format!(
                "the argument to $size must be an array, but was of type: {}",
                alias(&array)
            ),
        )),
    }
}

fn slice<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let array = args[0].eval_ref(env)?;
    let second = args[1].eval_ref(env)?;
    if array.is_nullish() || second.is_nullish() {
        return Ok(Val::NULL);
    }
    let ValueRef::Array(items) = array.as_ref() else {
        return Err(error(
            28724,
            format!(
                "first argument to $slice must be an array, but is of type: {}",
                alias(&array)
            ),
        ));
    };
    let second = slice_number(&second, "second", 28725, 28726)?;
    let length = items.len() as i64;
    let (from, count) = match args.get(2) {
        None if second >= 0 => (0, second),
        None => ((length + second).max(0), -second),
        Some(third) => {
            let third = third.eval_ref(env)?;
            if third.is_nullish() {
                return Ok(Val::NULL);
            }
            let count = slice_number(&third, "third", 28727, 28728)?;
            if count <= 0 {
                return Err(error(
                    28729,
                    format!("third argument to $slice must be positive: {count}"),
                ));
            }
            let from = if second < 0 { (length + second).max(0) } else { second };
            (from, count)
        }
    };
    let mut out = Vec::new();
    for item in array
        .items()
        .into_iter()
        .flatten()
        .skip(from as usize)
        .take(count as usize)
    {
        let item = item.into_value();
        work(1)?;
        charge(item.weight())?;
        out.push(item);
    }
    Ok(Value::from(out).into())
}

fn slice_number(value: &Val<'_>, which: &str, type_code: i32, whole_code: i32) -> Result<i64> {
    if !value.as_ref().is_number() {
        return Err(error(
            type_code,
            format!(
                "{which} argument to $slice must be a numeric value, but is of type: {}",
                alias(value)
            ),
        ));
    }
    whole_i32(value.as_ref()).map(i64::from).ok_or_else(|| {
        error(
            whole_code,
            format!("{which} argument to $slice can't be represented as a 32-bit integer: {value:?}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn elements_and_parts() {
        check(
            r#"{"a": [1, 2, 3], "o": {"a": [{"b": 5}]}, "n": null}"#,
            &[
                (r#"{"$arrayElemAt": ["$a", -1]}"#, "3"),
                (r#"{"$arrayElemAt": ["$a", 3]}"#, "missing"),
                (r#"{"$arrayElemAt": ["$a", -4]}"#, "missing"),
                (r#"{"$arrayElemAt": ["$o.a.b", 0]}"#, "5"),
                (r#"{"$arrayElemAt": ["$n", 0]}"#, "null"),
                (r#"{"$arrayElemAt": [1, 0]}"#, "error 28689"),
                (r#"{"$arrayElemAt": ["$a", 0.5]}"#, "error 28691"),
                (r#"{"$concatArrays": ["$a", [4], []]}"#, "[1, 2, 3, 4]"),
                (r#"{"$concatArrays": ["$a", "$n"]}"#, "null"),
                (r#"{"$in": [2, "$a"]}"#, "true"),
                (r#"{"$in": [2, "$n"]}"#, "error 40081"),
                (r#"{"$indexOfArray": ["$a", 3]}"#, "2"),
                (r#"{"$indexOfArray": ["$a", 3, 0, 2]}"#, "-1"),
                (r#"{"$indexOfArray": ["$a", 3, -1]}"#, "error 9711601"),
                (r#"{"$range": [5, 0, -2]}"#, "[5, 3, 1]"),
                (r#"{"$range": [0, 2147483647]}"#, "error 146"),
                (r#"{"$reverseArray": "$a"}"#, "[3, 2, 1]"),
                (r#"{"$size": "$n"}"#, "error 17124"),
                (r#"{"$slice": ["$a", -2]}"#, "[2, 3]"),
                (r#"{"$slice": ["$a", -2, 1]}"#, "[2]"),
                (r#"{"$slice": ["$a", 1, 0]}"#, "error 28729"),
                (r#"{"$slice": ["$a", 9, 1]}"#, "[]"),
            ],
        );
    }
}
