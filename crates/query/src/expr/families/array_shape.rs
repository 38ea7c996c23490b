//! Arrays into other shapes: `$arrayToObject`, `$objectToArray`, `$zip`, `$sortArray`.

use super::array::collected;
use super::sort_by::SortBy;
use crate::env::{Env, Scope, Val};
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use crate::expr::{Expr, Operator};
use nestor_model::statement::{charge, work};
use nestor_model::{Document, Result, Str, Value, ValueRef, doc};
use std::collections::HashMap;

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::fixed("$arrayToObject", 1, array_to_object),
    OpDef::fixed("$objectToArray", 1, object_to_array),
    OpDef::custom("$zip", parse_zip),
    OpDef::custom("$sortArray", parse_sort_array),
];

fn alias(v: ValueRef<'_>) -> &'static str {
    v.bson_type().alias()
}

fn array_to_object<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let array = args[0].eval_ref(env)?;
    if array.is_nullish() {
        return Ok(Val::NULL);
    }
    let ValueRef::Array(items) = array.as_ref() else {
        return Err(error(
            40386,
            format!(
                "$arrayToObject requires an array input, found: {}",
                alias(array.as_ref())
            ),
        ));
    };
    let mut fields: Vec<(Str, Value)> = Vec::new();
    let mut places: HashMap<Str, usize> = HashMap::new();
    let mut of_pairs = None;
    for item in items {
        work(1)?;
        let (name, value) = match item {
            ValueRef::Array(pair) => {
                if of_pairs == Some(false) {
                    return Err(error(40391, "$arrayToObject: an array among documents"));
                }
                of_pairs = Some(true);
                read_pair(pair.iter())?
            }
            ValueRef::Document(doc) => {
                if of_pairs == Some(true) {
                    return Err(error(40396, "$arrayToObject: a document among arrays"));
                }
                of_pairs = Some(false);
                read_key_value(doc)?
            }
            other => {
                let code = match of_pairs {
                    None => 40398,
                    Some(true) => 40396,
                    Some(false) => 40391,
                };
                return Err(error(
                    code,
                    format!(
                        "$arrayToObject requires arrays or documents as elements, found: {}",
                        alias(other)
                    ),
                ));
            }
        };
        // The last value of a name counts, in the place of the first.
        match places.get(name) {
            Some(at) => fields[*at].1 = value.to_value(),
            None => {
                let value = value.to_value();
                charge(2 * size_of::<Str>() + value.weight())?;
                places.insert(name.into(), fields.len());
                fields.push((name.into(), value));
            }
        }
    }
    Ok(Document::from_iter(fields).into())
}

fn read_pair<'v>(pair: nestor_model::value::ArrayIter<'v>) -> Result<(&'v str, ValueRef<'v>)> {
    let mut pair = pair;
    let (Some(name), Some(value), None) = (pair.next(), pair.next(), pair.next()) else {
        return Err(error(40397, "$arrayToObject requires arrays of two elements"));
    };
    match name {
        ValueRef::String(name) if name.contains('\0') => {
            Err(error(4_940_400, "$arrayToObject: a name cannot contain a null byte"))
        }
        ValueRef::String(name) => Ok((name, value)),
        other => Err(error(
            40395,
            format!(
                "$arrayToObject requires names that are strings, found: {}",
                alias(other)
            ),
        )),
    }
}

fn read_key_value<'v>(doc: nestor_model::DocRef<'v>) -> Result<(&'v str, ValueRef<'v>)> {
    if doc.iter().count() != 2 {
        return Err(error(
            40392,
            "$arrayToObject requires documents of two fields, 'k' and 'v'",
        ));
    }
    let (Some(name), Some(value)) = (doc.get("k"), doc.get("v")) else {
        return Err(error(
            40393,
            "$arrayToObject requires documents with fields 'k' and 'v'",
        ));
    };
    match name {
        ValueRef::String(name) if name.contains('\0') => {
            Err(error(4_940_401, "$arrayToObject: a name cannot contain a null byte"))
        }
        ValueRef::String(name) => Ok((name, value)),
        other => Err(error(
            40394,
            format!("$arrayToObject requires 'k' to be a string, found: {}", alias(other)),
        )),
    }
}

fn object_to_array<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let object = args[0].eval_ref(env)?;
    match object.as_ref() {
        ValueRef::Document(doc) => {
            let mut items = Vec::new();
            for (k, v) in doc {
                let item = Value::Document(doc! {"k": k, "v": v});
                work(1)?;
                charge(item.weight())?;
                items.push(item);
            }
            Ok(Value::from(items).into())
        }
        other if other.is_nullish() => Ok(Val::NULL),
        other => Err(error(
            40390,
            format!("$objectToArray requires a document input, found: {}", alias(other)),
        )),
    }
}

struct Zip {
    inputs: Box<[Expr]>,
    /// As many as inputs, or none.
    defaults: Box<[Expr]>,
    longest: bool,
}

fn parse_zip(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 34460,
        unknown: 34464,
        fields: &[("inputs", None), ("useLongestLength", None), ("defaults", None)],
    }
    .split(name, value)?;
    let list = |value: ValueRef<'_>, code: i32, scope: &mut Scope| -> Result<Box<[Expr]>> {
        match value {
            ValueRef::Missing => Ok(Box::default()),
            ValueRef::Array(items) => items.iter().map(|v| Expr::parse(v, scope)).collect(),
            other => Err(error(
                code,
                format!("$zip requires an array of expressions, found {}", alias(other)),
            )),
        }
    };
    let inputs = list(args[0], 34461, scope)?;
    let longest = match args[1] {
        ValueRef::Missing => false,
        ValueRef::Bool(v) => v,
        other => {
            return Err(error(
                34463,
                format!("useLongestLength must be a bool, not {}", alias(other)),
            ));
        }
    };
    let defaults = list(args[2], 34462, scope)?;
    if inputs.is_empty() {
        return Err(error(34465, "$zip requires at least one input array"));
    }
    if !defaults.is_empty() && !longest {
        return Err(error(34466, "cannot specify defaults unless useLongestLength is true"));
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        return Err(error(34467, "defaults and inputs must have the same length"));
    }
    let zip = Zip {
        inputs,
        defaults,
        longest,
    };
    let constant = zip.inputs.iter().chain(&zip.defaults).all(|e| e.constant().is_some());
    let zip = Expr::operator(zip);
    Ok(if constant { zip.folded() } else { zip })
}

impl Operator for Zip {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        let mut arrays = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let value = input.eval_ref(env)?;
            if value.is_nullish() {
                return Ok(Val::NULL);
            }
            let Some(items) = value.items() else {
                return Err(error(
                    34468,
                    format!("$zip found a non-array expression in input: {}", alias(value.as_ref())),
                ));
            };
            arrays.push(collected(items)?);
        }
        let defaults: Vec<Value> = self.defaults.iter().map(|e| e.eval(env)).collect::<Result<_>>()?;
        let lengths = arrays.iter().map(Vec::len);
        let length = if self.longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
        let mut rows = Vec::with_capacity(length);
        for row in 0..length {
            let cells = arrays.iter().enumerate().map(|(column, array)| {
                let cell = array.get(row).or_else(|| defaults.get(column)).unwrap_or(&Value::Null);
                if cell.is_missing() { Value::Null } else { cell.clone() }
            });
            let cells = Value::from(cells.collect::<Vec<_>>());
            work(1 + arrays.len())?;
            charge(cells.weight())?;
            rows.push(cells);
        }
        Ok(Value::from(rows).into())
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        self.inputs.iter().chain(&self.defaults).for_each(visit);
    }

    fn name(&self) -> &'static str {
        "$zip"
    }
}

struct SortArray {
    input: Expr,
    order: SortBy,
}

fn parse_sort_array(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 2_942_500,
        unknown: 2_942_501,
        fields: &[("input", Some(2_942_502)), ("sortBy", Some(2_942_503))],
    }
    .split(name, value)?;
    let input = Expr::parse(args[0], scope)?;
    let order = SortBy::parse(name, args[1])?;
    let constant = input.constant().is_some();
    let sort = Expr::operator(SortArray { input, order });
    Ok(if constant { sort.folded_in(scope) } else { sort })
}

impl Operator for SortArray {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        let input = self.input.eval_ref(env)?;
        let Some(items) = input.items() else {
            if input.is_nullish() {
                return Ok(Val::NULL);
            }
            return Err(error(
                2_942_504,
                format!(
                    "the input argument to $sortArray must be an array, but was of type: {}",
                    alias(input.as_ref())
                ),
            ));
        };
        let mut items = collected(items)?;
        self.order.sort(env, &mut items)?;
        Ok(Value::from(items).into())
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
    }

    fn name(&self) -> &'static str {
        "$sortArray"
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn shapes() {
        check(
            r#"{"p": [["a", 1], ["b", 2], ["a", 3]], "k": [{"k": "x", "v": null}], "o": {"a": 1, "b": [2]},
                "s": [{"a": 2, "b": 1}, {"a": 1}, 5, {"a": 2, "b": 0}]}"#,
            &[
                (r#"{"$arrayToObject": "$p"}"#, r#"{"a": 3, "b": 2}"#),
                (r#"{"$arrayToObject": "$k"}"#, r#"{"x": null}"#),
                (r#"{"$arrayToObject": [[["a", 1], {"k": "b", "v": 2}]]}"#, "error 40396"),
                (r#"{"$arrayToObject": {"$literal": [1]}}"#, "error 40398"),
                (
                    r#"{"$objectToArray": "$o"}"#,
                    r#"[{"k": "a", "v": 1}, {"k": "b", "v": [2]}]"#,
                ),
                (r#"{"$objectToArray": "$p"}"#, "error 40390"),
                (r#"{"$zip": {"inputs": [[1, 2], ["a"]]}}"#, r#"[[1, "a"]]"#),
                (
                    r#"{"$zip": {"inputs": [[1, 2], ["a"]], "useLongestLength": true, "defaults": [0, "z"]}}"#,
                    r#"[[1, "a"], [2, "z"]]"#,
                ),
                (r#"{"$zip": {"inputs": [[1], 2]}}"#, "error 34468"),
                (r#"{"$sortArray": {"input": [3, 1, 2], "sortBy": -1}}"#, "[3, 2, 1]"),
                (
                    r#"{"$sortArray": {"input": "$s", "sortBy": {"a": -1, "b": 1}}}"#,
                    r#"[{"a": 2, "b": 0}, {"a": 2, "b": 1}, {"a": 1}, 5]"#,
                ),
                (
                    r#"{"$sortArray": {"input": "$s", "sortBy": {"a": 0}}}"#,
                    "error 2942505",
                ),
            ],
        );
    }
}
