//! `$map`, `$filter`, `$reduce`: expressions over each element of an array.

use crate::env::{Env, Scope, Val, check_user_variable};
use crate::expr::args::{Named, error, parse_optional, whole_i32};
use crate::expr::parse::OpDef;
use crate::expr::{Expr, Operator, check_depth};
use nestor_model::statement::{mark, work};
use nestor_model::{Error, Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$map", parse_map),
    OpDef::custom("$filter", parse_filter),
    OpDef::custom("$reduce", parse_reduce),
];

/// Rounds of `$reduce` after which it looks how deep the value has become. One makes it a few hundred levels deeper at most.
const CHECK_EVERY: usize = 4;

/// Slots of the variables of a loop.
struct Loop {
    element: usize,
    index: usize,
}

impl Loop {
    /// Binds the element's variable and the index's, parses the body, unbinds them.
    fn parse<T>(
        element: ValueRef<'_>,
        index: ValueRef<'_>,
        scope: &mut Scope,
        body: impl FnOnce(&mut Scope) -> Result<T>,
    ) -> Result<(Self, T)> {
        let element = variable_name(element, "as", "this")?;
        let index = variable_name(index, "arrayIndexAs", "IDX")?;
        if element == index {
            return Err(Error::failed_to_parse(
                "'as' and 'arrayIndexAs' must be different names",
            ));
        }
        let slots = Self {
            element: scope.bind(element),
            index: scope.bind(index),
        };
        let parsed = body(scope);
        scope.unbind(slots.element);
        Ok((slots, parsed?))
    }

    fn set<'a>(&self, env: &mut Env<'a>, index: usize, element: Val<'a>) {
        env.set(self.element, element);
        env.set(self.index, Val::Ref(ValueRef::Int32(index as i32)));
    }
}

fn variable_name<'v>(value: ValueRef<'v>, argument: &str, default: &'static str) -> Result<&'v str> {
    match value {
        ValueRef::Missing => Ok(default),
        ValueRef::String(name) => check_user_variable(name).map(|()| name),
        _ => Err(Error::failed_to_parse(format!(
            "'{argument}' must be the name of a variable"
        ))),
    }
}

/// The result of a loop for an input that is no array: null for null, otherwise the error, its text with the type's name.
fn no_array<'a>(input: &Val<'_>, code: i32, text: &str) -> Result<Val<'a>> {
    if input.is_nullish() {
        return Ok(Val::NULL);
    }
    Err(error(code, format!("{text} {}", input.as_ref().bson_type().alias())))
}

struct Map {
    input: Expr,
    slots: Loop,
    body: Expr,
}

fn parse_map(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 16878,
        unknown: 16879,
        fields: &[
            ("input", Some(16880)),
            ("as", None),
            ("in", Some(16882)),
            ("arrayIndexAs", None),
        ],
    }
    .split(name, value)?;
    let input = Expr::parse(args[0], scope)?;
    let (slots, body) = Loop::parse(args[1], args[3], scope, |scope| Expr::parse(args[2], scope))?;
    Ok(Expr::operator(Map { input, slots, body }))
}

impl Operator for Map {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        let input = self.input.eval_ref(env)?;
        let Some(items) = input.items() else {
            return no_array(&input, 16883, "input to $map must be an array, not");
        };
        let mut out = Vec::with_capacity(items.size_hint().0);
        let (mark, mut held) = (mark(), 0);
        for (index, item) in items.enumerate() {
            work(1)?;
            self.slots.set(env, index, item);
            let value = self.body.eval(env)?;
            held += value.weight();
            mark.settle(held)?;
            out.push(if value.is_missing() { Value::Null } else { value });
        }
        Ok(Value::from(out).into())
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.body);
    }

    fn name(&self) -> &'static str {
        "$map"
    }
}

struct Filter {
    input: Expr,
    slots: Loop,
    condition: Expr,
    limit: Expr,
}

fn parse_filter(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 28646,
        unknown: 28647,
        fields: &[
            ("input", Some(28648)),
            ("as", None),
            ("cond", Some(28650)),
            ("limit", None),
            ("arrayIndexAs", None),
        ],
    }
    .split(name, value)?;
    let input = Expr::parse(args[0], scope)?;
    let (slots, condition) = Loop::parse(args[1], args[4], scope, |scope| Expr::parse(args[2], scope))?;
    let limit = parse_optional(args[3], scope)?;
    Ok(Expr::operator(Filter {
        input,
        slots,
        condition,
        limit,
    }))
}

impl Operator for Filter {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        let input = self.input.eval_ref(env)?;
        let Some(items) = input.items() else {
            return no_array(&input, 28651, "input to $filter must be an array, not");
        };
        let limit = self.limit.eval_ref(env)?;
        let limit = if limit.is_nullish() {
            usize::MAX
        } else {
            match whole_i32(limit.as_ref()) {
                None => {
                    return Err(error(
                        327_391,
                        format!("$filter: limit must be a 32-bit integer, found {limit:?}"),
                    ));
                }
                Some(n) if n <= 0 => return Err(error(327_392, format!("$filter: limit must be above 0, found {n}"))),
                Some(n) => n as usize,
            }
        };
        let mut out = Vec::new();
        let (mark, mut held) = (mark(), 0);
        for (index, item) in items.enumerate() {
            work(1)?;
            self.slots.set(env, index, item.clone());
            let chosen = self.condition.eval_ref(env)?.truthy();
            // Nothing is left of what the condition built.
            mark.settle(held)?;
            if chosen {
                let item = item.into_value();
                held += item.weight();
                out.push(item);
                if out.len() >= limit {
                    break;
                }
            }
        }
        Ok(Value::from(out).into())
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.condition);
        visit(&self.limit);
    }

    fn name(&self) -> &'static str {
        "$filter"
    }
}

struct Reduce {
    input: Expr,
    initial: Expr,
    slots: Loop,
    value: usize,
    body: Expr,
}

fn parse_reduce(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 40075,
        unknown: 40076,
        fields: &[
            ("input", Some(40077)),
            ("initialValue", Some(40078)),
            ("in", Some(40079)),
            ("as", None),
            ("valueAs", None),
            ("arrayIndexAs", None),
        ],
    }
    .split(name, value)?;
    let input = Expr::parse(args[0], scope)?;
    let initial = Expr::parse(args[1], scope)?;
    let accumulated = variable_name(args[4], "valueAs", "value")?;
    let (slots, (value, body)) = Loop::parse(args[3], args[5], scope, |scope| {
        Ok((scope.bind(accumulated), Expr::parse(args[2], scope)?))
    })?;
    Ok(Expr::operator(Reduce {
        input,
        initial,
        slots,
        value,
        body,
    }))
}

impl Operator for Reduce {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        let input = self.input.eval_ref(env)?;
        let Some(items) = input.items() else {
            return no_array(&input, 40080, "$reduce requires that 'input' be an array, found:");
        };
        let mark = mark();
        let mut accumulated = self.initial.eval_ref(env)?;
        for (index, item) in items.enumerate() {
            work(1)?;
            self.slots.set(env, index, item);
            env.set(self.value, accumulated);
            accumulated = self.body.eval_ref(env)?;
            // The value before it is gone, or part of it.
            mark.settle(accumulated.weight())?;
            if let (true, Val::Owned(value)) = ((index + 1).is_multiple_of(CHECK_EVERY), &accumulated) {
                check_depth(value)?;
            }
        }
        if let Val::Owned(value) = &accumulated {
            check_depth(value)?;
        }
        Ok(accumulated)
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.initial);
        visit(&self.body);
    }

    fn name(&self) -> &'static str {
        "$reduce"
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn loops() {
        check(
            r#"{"a": [1, 2, 3], "n": null, "k": 10}"#,
            &[
                (
                    r#"{"$map": {"input": "$a", "in": {"$add": ["$$this", "$k"]}}}"#,
                    "[11, 12, 13]",
                ),
                (
                    r#"{"$map": {"input": "$a", "as": "x", "in": ["$$x", "$$IDX"]}}"#,
                    "[[1, 0], [2, 1], [3, 2]]",
                ),
                (r#"{"$map": {"input": "$a", "in": "$$this.b"}}"#, "[null, null, null]"),
                (r#"{"$map": {"input": "$n", "in": 1}}"#, "null"),
                (r#"{"$map": {"input": 5, "in": 1}}"#, "error 16883"),
                (
                    r#"{"$map": {"input": "$a", "as": "x", "in": {"$map": {"input": "$a", "as": "y", "in": {"$multiply": ["$$x", "$$y"]}}}}}"#,
                    "[[1, 2, 3], [2, 4, 6], [3, 6, 9]]",
                ),
                (
                    r#"{"$filter": {"input": "$a", "cond": {"$gt": ["$$this", 1]}, "limit": 1}}"#,
                    "[2]",
                ),
                (
                    r#"{"$filter": {"input": "$a", "cond": true, "limit": 0}}"#,
                    "error 327392",
                ),
                (r#"{"$filter": {"input": "$a", "as": "X", "cond": true}}"#, "error 9"),
                (
                    r#"{"$reduce": {"input": "$a", "initialValue": "$k", "in": {"$add": ["$$value", "$$this"]}}}"#,
                    "16",
                ),
                (
                    r#"{"$reduce": {"input": "$a", "initialValue": [], "in": {"$concatArrays": [["$$this"], "$$value"]}}}"#,
                    "[3, 2, 1]",
                ),
            ],
        );
    }
}
