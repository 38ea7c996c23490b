//! Accumulators as expressions over the elements of an array or over their arguments: `$sum`, `$avg`, `$min`,
//! `$max`, `$stdDevPop`, `$stdDevSamp`, `$first`, `$last`, the `N` and `top` families.

use super::array::{collected, element};
use super::sort_by::SortBy;
use crate::accumulator::{Average, Extremum, ExtremumN, State, StdDev, Sum, positive_n};
use crate::env::{Env, Scope, Val};
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use crate::expr::{Expr, Operator};
use nestor_model::statement::work;
use nestor_model::{Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::variadic("$sum", |args, env| fold(args, env, Sum::default())),
    OpDef::variadic("$avg", |args, env| fold(args, env, Average::of_operator())),
    OpDef::variadic("$min", |args, env| fold(args, env, Extremum::min(env.collator()))),
    OpDef::variadic("$max", |args, env| fold(args, env, Extremum::max(env.collator()))),
    OpDef::variadic("$stdDevPop", |args, env| fold(args, env, StdDev::population())),
    OpDef::variadic("$stdDevSamp", |args, env| fold(args, env, StdDev::sample())),
    OpDef::fixed("$first", 1, |args, env| end(args, env, "$first", 0)),
    OpDef::fixed("$last", 1, |args, env| end(args, env, "$last", -1)),
    OpDef::custom("$firstN", parse_n),
    OpDef::custom("$lastN", parse_n),
    OpDef::custom("$minN", parse_n),
    OpDef::custom("$maxN", parse_n),
    OpDef::custom("$top", parse_top),
    OpDef::custom("$bottom", parse_top),
    OpDef::custom("$topN", parse_top),
    OpDef::custom("$bottomN", parse_top),
];

/// Feeds the arguments; a single one that is an array stands for its elements.
fn fold<'a>(args: &'a [Expr], env: &mut Env<'a>, mut state: impl State) -> Result<Val<'a>> {
    for arg in args {
        let value = arg.eval_ref(env)?;
        if args.len() == 1
            && let Some(items) = value.items()
        {
            for item in items {
                work(1)?;
                state.add(item)?;
            }
        } else {
            state.add(value)?;
        }
    }
    Ok(state.result().into())
}

fn end<'a>(args: &'a [Expr], env: &mut Env<'a>, op: &str, index: i64) -> Result<Val<'a>> {
    let array = args[0].eval_ref(env)?;
    match array.as_ref() {
        ValueRef::Array(_) => Ok(element(&array, index)),
        other if other.is_nullish() => Ok(Val::NULL),
        other => Err(error(
            28689,
            format!("{op}'s argument must be an array, but is {}", other.bson_type().alias()),
        )),
    }
}

fn not_array(op: &str, value: &Val<'_>) -> nestor_model::Error {
    error(
        5_788_200,
        format!(
            "input to {op} must be an array, but is {}",
            value.as_ref().bson_type().alias()
        ),
    )
}

/// Arguments: n, input.
fn parse_n(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 5_787_900,
        unknown: 5_787_901,
        fields: &[("n", Some(5_787_906)), ("input", Some(5_787_907))],
    }
    .parse(name, value, scope)?;
    let eval: crate::expr::EvalFn = match name {
        "$firstN" => |args, env| {
            let (n, items) = n_items(args, env, "$firstN")?;
            Ok(Value::from(items.into_iter().take(n).collect::<Vec<_>>()).into())
        },
        "$lastN" => |args, env| {
            let (n, items) = n_items(args, env, "$lastN")?;
            let skipped = items.len().saturating_sub(n);
            Ok(Value::from(items.into_iter().skip(skipped).collect::<Vec<_>>()).into())
        },
        "$minN" => |args, env| {
            let (n, items) = n_items(args, env, "$minN")?;
            extremes(ExtremumN::min(n, env.collator()), items)
        },
        _ => |args, env| {
            let (n, items) = n_items(args, env, "$maxN")?;
            extremes(ExtremumN::max(n, env.collator()), items)
        },
    };
    Expr::call_in(scope, name, eval, args)
}

fn n_items<'a>(args: &'a [Expr], env: &mut Env<'a>, op: &str) -> Result<(usize, Vec<Value>)> {
    let n = positive_n(args[0].eval_ref(env)?.as_ref())?;
    let input = args[1].eval_ref(env)?;
    match input.items() {
        Some(items) => Ok((n, collected(items)?)),
        None => Err(not_array(op, &input)),
    }
}

fn extremes<'a>(mut state: ExtremumN, items: Vec<Value>) -> Result<Val<'a>> {
    for item in items {
        work(1)?;
        state.add(Val::Owned(item))?;
    }
    Ok(state.result().into())
}

struct Top {
    name: &'static str,
    n: Option<Expr>,
    input: Expr,
    order: SortBy,
}

fn parse_top(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let many = name.ends_with('N');
    let fields: &[(&'static str, Option<i32>)] = &[
        ("input", Some(5_788_004)),
        ("sortBy", Some(5_788_005)),
        ("n", Some(5_788_003)),
    ];
    let args = Named {
        not_object: 5_788_001,
        unknown: 5_788_002,
        fields: if many { fields } else { &fields[..2] },
    }
    .split(name, value)?;
    let n = match args.get(2) {
        Some(n) => Some(Expr::parse(*n, scope)?),
        None => None,
    };
    if let Some(n) = n.as_ref().and_then(Expr::constant) {
        positive_n(n.as_ref())?;
    }
    Ok(Expr::operator(Top {
        name,
        n,
        input: Expr::parse(args[0], scope)?,
        order: SortBy::parse(name, args[1])?,
    }))
}

impl Operator for Top {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        let n = match &self.n {
            Some(n) => positive_n(n.eval_ref(env)?.as_ref())?,
            None => 1,
        };
        let input = self.input.eval_ref(env)?;
        let Some(items) = input.items() else {
            return Err(not_array(self.name, &input));
        };
        let mut items = collected(items)?;
        self.order.sort(env, &mut items)?;
        let from_end = self.name.starts_with("$bottom");
        let skipped = if from_end { items.len().saturating_sub(n) } else { 0 };
        let mut chosen = items.into_iter().skip(skipped).take(n);
        Ok(match self.n {
            Some(_) => Value::from(chosen.collect::<Vec<_>>()).into(),
            None => chosen.next().unwrap_or(Value::Missing).into(),
        })
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        self.n.iter().for_each(&mut *visit);
        visit(&self.input);
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn over_elements_and_arguments() {
        check(
            r#"{"a": [3, 1, "x", 2], "b": [{"k": 2}, {"k": 1}], "n": null, "i": 4}"#,
            &[
                (r#"{"$sum": "$a"}"#, "6"),
                (r#"{"$sum": ["$a", "$i", 1]}"#, "5"),
                (r#"{"$sum": "$i"}"#, "4"),
                (r#"{"$avg": "$a"}"#, "2.0"),
                (r#"{"$avg": "$n"}"#, "null"),
                (r#"{"$min": "$a"}"#, "1"),
                (r#"{"$max": ["$i", "$n", 9]}"#, "9"),
                (r#"{"$stdDevPop": [1, 3]}"#, "1.0"),
                (r#"{"$stdDevSamp": [1]}"#, "null"),
                (r#"{"$first": "$a"}"#, "3"),
                (r#"{"$last": "$a"}"#, "2"),
                (r#"{"$last": "$i"}"#, "error 28689"),
                (r#"{"$firstN": {"n": 2, "input": "$a"}}"#, "[3, 1]"),
                (r#"{"$lastN": {"n": 9, "input": "$a"}}"#, r#"[3, 1, "x", 2]"#),
                (r#"{"$minN": {"n": 2, "input": "$a"}}"#, "[1, 2]"),
                (r#"{"$maxN": {"n": 2, "input": "$a"}}"#, r#"["x", 3]"#),
                (r#"{"$maxN": {"n": 2, "input": "$i"}}"#, "error 5788200"),
                (
                    r#"{"$topN": {"n": 1, "input": "$b", "sortBy": {"k": 1}}}"#,
                    r#"[{"k": 1}]"#,
                ),
                (r#"{"$bottom": {"input": "$a", "sortBy": 1}}"#, r#""x""#),
            ],
        );
    }
}
