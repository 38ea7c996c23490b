//! Sets: arrays whose order and duplicates do not count. Results are sorted, as MongoDB's are.

use crate::collation::Key;
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::error;
use crate::expr::parse::{OpDef, parse_list};
use nestor_model::statement::{charge, work};
use nestor_model::{Error, Result, Value, ValueRef};
use std::collections::{BTreeSet, HashSet};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$allElementsTrue", parse_elements_true),
    OpDef::custom("$anyElementTrue", parse_elements_true),
    OpDef::fixed("$setDifference", 2, set_difference),
    OpDef::custom("$setEquals", parse_set_equals),
    OpDef::variadic("$setIntersection", set_intersection),
    OpDef::fixed("$setIsSubset", 2, set_is_subset),
    OpDef::custom("$setUnion", parse_union),
];

fn not_array(code: i32, op: &str, value: &Val<'_>) -> Error {
    error(
        code,
        format!(
            "all operands of {op} must be arrays, one is of type: {}",
            value.as_ref().bson_type().alias()
        ),
    )
}

fn key(env: &Env<'_>, item: Val<'_>) -> Key {
    let value = item.into_value();
    Key::new(if value.is_missing() { Value::Null } else { value }, env.collator())
}

/// The distinct items; `None` for what is no array.
fn hashed(env: &Env<'_>, value: &Val<'_>) -> Result<Option<HashSet<Key>>> {
    let Some(items) = value.items() else {
        return Ok(None);
    };
    let mut set = HashSet::new();
    for item in items {
        set.insert(counted_key(env, item)?);
    }
    Ok(Some(set))
}

/// The key of an item that is going to be kept.
fn counted_key(env: &Env<'_>, item: Val<'_>) -> Result<Key> {
    let key = key(env, item);
    work(1)?;
    charge(key.value.weight())?;
    Ok(key)
}

fn parse_elements_true(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = parse_list(name, value, 1, 1, scope)?;
    // A literal that is no array is refused before evaluation.
    Expr::call_of(
        name,
        if name == "$allElementsTrue" {
            all_elements_true
        } else {
            any_element_true
        },
        args,
    )
}

fn all_elements_true<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let array = args[0].eval_ref(env)?;
    let Some(mut items) = array.items() else {
        return Err(not_array(17040, "$allElementsTrue", &array));
    };
    Ok(items.all(|item| item.truthy()).into())
}

fn any_element_true<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let array = args[0].eval_ref(env)?;
    let Some(mut items) = array.items() else {
        return Err(not_array(17041, "$anyElementTrue", &array));
    };
    Ok(items.any(|item| item.truthy()).into())
}

fn set_difference<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let left = args[0].eval_ref(env)?;
    let right = args[1].eval_ref(env)?;
    if left.is_nullish() || right.is_nullish() {
        return Ok(Val::NULL);
    }
    let Some(items) = left.items() else {
        return Err(not_array(17048, "$setDifference", &left));
    };
    let Some(mut seen) = hashed(env, &right)? else {
        return Err(not_array(17049, "$setDifference", &right));
    };
    // In the order of the left array, each once.
    let mut out = Vec::new();
    for item in items {
        let item = counted_key(env, item)?;
        if !seen.contains(&item) {
            out.push(item.value.clone());
            seen.insert(item);
        }
    }
    Ok(Value::from(out).into())
}

fn parse_set_equals(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = parse_list(name, value, 0, usize::MAX, scope)?;
    if args.len() < 2 {
        return Err(error(
            17045,
            format!("$setEquals needs at least two arguments had: {}", args.len()),
        ));
    }
    for arg in &args {
        if let Some(value) = arg.constant()
            && value.as_array().is_none()
        {
            return Err(not_array(5_887_502, "$setEquals", &Val::Ref(value.as_ref())));
        }
    }
    Expr::call_in(scope, name, set_equals, args)
}

fn set_equals<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut first: Option<HashSet<Key>> = None;
    let mut equal = true;
    for arg in args {
        let value = arg.eval_ref(env)?;
        let Some(set) = hashed(env, &value)? else {
            return Err(not_array(17044, "$setEquals", &value));
        };
        match &first {
            None => first = Some(set),
            Some(first) if *first != set => {
                equal = false;
                break;
            }
            Some(_) => {}
        }
    }
    Ok(equal.into())
}

fn set_intersection<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut common: Option<BTreeSet<Key>> = None;
    for arg in args {
        let value = arg.eval_ref(env)?;
        if value.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(items) = value.items() else {
            return Err(not_array(17047, "$setIntersection", &value));
        };
        common = Some(match common {
            None => {
                // One by one: of equal items the first stays, which collecting does not promise.
                let mut all = BTreeSet::new();
                for item in items {
                    all.insert(counted_key(env, item)?);
                }
                all
            }
            Some(common) if common.is_empty() => common,
            Some(mut common) => {
                let mut kept = BTreeSet::new();
                for item in items {
                    work(1)?;
                    kept.extend(common.take(&key(env, item)));
                }
                kept
            }
        });
    }
    let items: Vec<Value> = common.unwrap_or_default().into_iter().map(|key| key.value).collect();
    Ok(Value::from(items).into())
}

fn set_is_subset<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let left = args[0].eval_ref(env)?;
    let right = args[1].eval_ref(env)?;
    let Some(items) = left.items() else {
        return Err(not_array(17046, "$setIsSubset", &left));
    };
    let Some(set) = hashed(env, &right)? else {
        return Err(not_array(17042, "$setIsSubset", &right));
    };
    for item in items {
        work(1)?;
        if !set.contains(&key(env, item)) {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

/// Constants are looked at after all else, so that a null before or after them decides before what is no array.
fn parse_union(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let mut args = parse_list(name, value, 0, usize::MAX, scope)?;
    args.sort_by_key(|arg| arg.constant().is_some());
    Expr::call_in(scope, name, set_union, args)
}

fn set_union<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut union = BTreeSet::new();
    for arg in args {
        let value = arg.eval_ref(env)?;
        if value.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(items) = value.items() else {
            return Err(not_array(17043, "$setUnion", &value));
        };
        for item in items {
            union.insert(counted_key(env, item)?);
        }
    }
    let items: Vec<Value> = union.into_iter().map(|key| key.value).collect();
    Ok(Value::from(items).into())
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn set_algebra() {
        check(
            r#"{"a": [3, 1, 1, 2], "b": [2, 5], "n": null, "x": 1}"#,
            &[
                (r#"{"$setUnion": ["$a", "$b"]}"#, "[1, 2, 3, 5]"),
                (r#"{"$setUnion": ["$a", "$n"]}"#, "null"),
                (r#"{"$setUnion": []}"#, "[]"),
                (r#"{"$setIntersection": ["$a", "$b", [2.0]]}"#, "[2]"),
                (r#"{"$setDifference": ["$a", "$b"]}"#, "[3, 1]"),
                (r#"{"$setDifference": ["$x", "$b"]}"#, "error 17048"),
                (r#"{"$setEquals": [[1, 2], [2, 1, 1]]}"#, "true"),
                (r#"{"$setEquals": [[1], 1]}"#, "error 5887502"),
                (r#"{"$setEquals": ["$a", "$x"]}"#, "error 17044"),
                (r#"{"$setIsSubset": [[1], "$a"]}"#, "true"),
                (r#"{"$setIsSubset": ["$n", "$a"]}"#, "error 17046"),
                (r#"{"$allElementsTrue": [[1, 0]]}"#, "false"),
                (r#"{"$anyElementTrue": ["$a"]}"#, "true"),
                (r#"{"$anyElementTrue": [[]]}"#, "false"),
                (r#"{"$anyElementTrue": ["$n"]}"#, "error 17041"),
            ],
        );
    }
}
