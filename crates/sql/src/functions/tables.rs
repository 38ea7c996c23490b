//! Functions whose result is rows.

use super::leaves;
use super::patterns::{regexp_matches, regexp_split};
use crate::error::{error, fail, no_function};
use crate::expr::Expr;
use crate::functions::{arithmetic, coerce, keywords};
use crate::types::arrays;
use crate::types::cast::{Context, exists};
use crate::types::interval::Interval;
use crate::types::json::raw;
use crate::types::{Type, datetime, integer, json, numeric};
use nestor_model::statement::work;
use nestor_model::{Document, Result, Value, ValueRef};
use nestor_planner::relation::{Env, TableFunction, Tuple};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A function that gives rows, bound to its arguments.
pub struct Table {
    /// What gives the rows.
    pub call: Arc<dyn TableFunction>,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// Names and types of its columns.
    pub columns: Vec<(String, Type)>,
}

/// Rows of a function, one after the other.
pub(super) type Rows = Box<dyn Iterator<Item = Result<Tuple>> + Send>;

struct Plain {
    name: &'static str,
    run: fn(&[Value]) -> Result<Rows>,
}

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl TableFunction for Plain {
    fn name(&self) -> &str {
        self.name
    }

    fn rows(&self, args: &[Value], _: &Env<'_>) -> Result<Rows> {
        (self.run)(args)
    }
}

pub(super) fn listed(rows: Vec<Tuple>) -> Result<Rows> {
    Ok(Box::new(rows.into_iter().map(Ok)))
}

fn series_integers(args: &[Value]) -> Result<Rows> {
    let (Some(from), Some(to), Some(step)) = (integer(&args[0]), integer(&args[1]), integer(&args[2])) else {
        return listed(Vec::new());
    };
    if step == 0 {
        return fail("22023", "step size cannot equal zero");
    }
    let narrow = matches!(args[0], Value::Int32(_));
    let mut next = Some(from);
    Ok(Box::new(std::iter::from_fn(move || {
        let now = next.filter(|n| if step > 0 { *n <= to } else { *n >= to })?;
        next = now.checked_add(step);
        if let Err(error) = work(1) {
            return Some(Err(error));
        }
        Some(Ok(vec![if narrow {
            Value::Int32(now as i32)
        } else {
            Value::Int64(now)
        }]))
    })))
}

fn series_numeric(args: &[Value]) -> Result<Rows> {
    let (Value::Decimal128(from), Value::Decimal128(to), Value::Decimal128(step)) = (&args[0], &args[1], &args[2])
    else {
        return listed(Vec::new());
    };
    if step.is_zero() {
        return fail("22023", "step size cannot equal zero");
    }
    for (what, n) in [("start value", from), ("stop value", to), ("step size", step)] {
        if n.is_nan() {
            return fail("22023", format!("{what} cannot be NaN"));
        }
        if n.is_infinite() {
            return fail("22023", format!("{what} cannot be infinity"));
        }
    }
    let (mut next, to, step) = (Some(*from), *to, *step);
    Ok(Box::new(std::iter::from_fn(move || {
        let now = next?;
        let order = nestor_model::compare(&Value::Decimal128(now), &Value::Decimal128(to));
        if (step.is_negative() && order.is_lt()) || (!step.is_negative() && order.is_gt()) {
            return None;
        }
        next = numeric::add(now, step).ok();
        if let Err(error) = work(1) {
            return Some(Err(error));
        }
        Some(Ok(vec![Value::Decimal128(now)]))
    })))
}

/// A function that takes arguments of these types; it has no rows where one is null.
///
/// Errors: 42883 for other arguments.
pub(super) fn fixed(
    name: &'static str,
    run: fn(&[Value]) -> Result<Rows>,
    (args, types): (&[Expr], &[Type]),
    columns: Vec<(String, Type)>,
) -> Result<Option<Table>> {
    let fit = args.len() == types.len()
        && args
            .iter()
            .zip(types)
            .all(|(arg, ty)| exists(&arg.ty(), ty, Context::Implicit));
    if !fit {
        let shown: Vec<String> = args.iter().map(|arg| arg.ty().to_string()).collect();
        return Err(no_function(format!("{name}({})", shown.join(", "))));
    }
    let args = args
        .iter()
        .zip(types)
        .map(|(arg, ty)| coerce(arg.clone(), ty, Context::Implicit));
    Ok(Some(Table {
        call: Arc::new(Strict(Plain { name, run })),
        args: args.collect::<Result<_>>()?,
        columns,
    }))
}

/// A function that has no rows where an argument is null.
#[derive(Debug)]
struct Strict(Plain);

impl TableFunction for Strict {
    fn name(&self) -> &str {
        self.0.name
    }

    fn rows(&self, args: &[Value], env: &Env<'_>) -> Result<Rows> {
        match args.iter().any(|arg| matches!(arg, Value::Null)) {
            true => listed(Vec::new()),
            false => self.0.rows(args, env),
        }
    }
}

/// A series of instants, whose days and months are those of the session's clocks.
fn series_zoned(args: &[Value]) -> Result<Rows> {
    series_of_times(args, arithmetic::after)
}

fn series_times(args: &[Value]) -> Result<Rows> {
    series_of_times(args, datetime::plus)
}

fn series_of_times(args: &[Value], after: fn(i64, Interval) -> Result<i64>) -> Result<Rows> {
    let (Some(from), Some(to), false) = (integer(&args[0]), integer(&args[1]), matches!(args[2], Value::Null)) else {
        return listed(Vec::new());
    };
    let step = Interval::of(&args[2]);
    let total = step.total_us();
    if total == 0 {
        return fail("22023", "step size cannot equal zero");
    }
    let mut next = Some(from);
    Ok(Box::new(std::iter::from_fn(move || {
        let now = next.filter(|n| if total > 0 { *n <= to } else { *n >= to })?;
        next = after(now, step).ok();
        if let Err(error) = work(1) {
            return Some(Err(error));
        }
        Some(Ok(vec![Value::Int64(now)]))
    })))
}

fn unnest(args: &[Value]) -> Result<Rows> {
    let columns: Vec<Vec<Value>> = args
        .iter()
        .map(|arg| match arg {
            Value::Array(items) => items.iter().map(|item| item.to_value()).collect(),
            _ => Vec::new(),
        })
        .collect();
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = move |i: usize| {
        columns
            .iter()
            .map(|column| column.get(i).cloned().unwrap_or(Value::Null))
            .collect()
    };
    Ok(Box::new((0..longest).map(move |i| Ok(row(i)))))
}

/// `unnest` of arrays whose elements are no arrays.
fn unnest_leaves(args: &[Value]) -> Result<Rows> {
    let flat: Vec<Value> = args
        .iter()
        .map(|arg| match arg {
            Value::Array(items) => Value::Array(arrays::leaves(items.clone())),
            other => other.clone(),
        })
        .collect();
    unnest(&flat)
}

/// Functions whose rows stand beside each other; those of one that has fewer are nulls.
struct Beside {
    /// The functions, how many arguments each has, and how many columns.
    parts: Vec<(Arc<dyn TableFunction>, usize, usize)>,
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ROWS FROM")
    }
}

impl TableFunction for Beside {
    fn name(&self) -> &str {
        "ROWS FROM"
    }

    fn rows(&self, args: &[Value], env: &Env<'_>) -> Result<Rows> {
        let (mut at, mut all) = (0, Vec::with_capacity(self.parts.len()));
        for (call, count, width) in &self.parts {
            all.push((Some(call.rows(&args[at..at + count], env)?), *width));
            at += count;
        }
        Ok(Box::new(std::iter::from_fn(move || {
            let (mut row, mut found) = (Tuple::new(), false);
            for (rows, width) in &mut all {
                match rows.as_mut().and_then(Iterator::next) {
                    Some(Ok(part)) => {
                        found = true;
                        row.extend(part);
                    }
                    Some(Err(error)) => return Some(Err(error)),
                    None => {
                        *rows = None;
                        row.extend(std::iter::repeat_n(Value::Null, *width));
                    }
                }
            }
            found.then_some(Ok(row))
        })))
    }
}

/// The function that gives the rows of several beside each other.
pub fn side_by_side(tables: Vec<Table>) -> Table {
    let parts = tables
        .iter()
        .map(|table| (table.call.clone(), table.args.len(), table.columns.len()));
    Table {
        call: Arc::new(Beside { parts: parts.collect() }),
        args: tables.iter().flat_map(|table| table.args.clone()).collect(),
        columns: tables.into_iter().flat_map(|table| table.columns).collect(),
    }
}

/// Rows as documents of their columns.
struct AsDocuments {
    call: Arc<dyn TableFunction>,
    names: Vec<String>,
}

impl std::fmt::Debug for AsDocuments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.call.fmt(f)
    }
}

impl TableFunction for AsDocuments {
    fn name(&self) -> &str {
        self.call.name()
    }

    fn rows(&self, args: &[Value], env: &Env<'_>) -> Result<Rows> {
        let names = self.names.clone();
        let rows = self.call.rows(args, env)?;
        Ok(Box::new(rows.map(move |row| {
            let mut out = Document::new();
            for (name, value) in names.iter().zip(row?) {
                // What is left out is null of SQL, `null` is JSON's.
                match value {
                    Value::Null => {}
                    Value::Undefined => out.push(name.as_str(), Value::Null),
                    value => out.push(name.as_str(), value),
                }
            }
            Ok(vec![Value::Document(out)])
        })))
    }
}

/// The function whose rows are documents of the columns of another.
pub fn as_documents(table: Table) -> Table {
    let names = table.columns.into_iter().map(|(name, _)| name).collect();
    Table {
        call: Arc::new(AsDocuments {
            call: table.call,
            names,
        }),
        args: table.args,
        columns: vec![("row".to_owned(), Type::Jsonb)],
    }
}

/// A value as the one row of a function.
pub fn once(name: &str, value: Expr) -> Table {
    Table {
        columns: vec![(name.to_owned(), value.ty())],
        args: vec![value],
        call: Arc::new(Plain {
            name: "once",
            run: |args| listed(vec![args.to_vec()]),
        }),
    }
}

/// What a path finds, a row for each.
fn paths(args: &[Value], uses_zone: bool) -> Result<Rows> {
    if args.iter().any(|arg| matches!(arg, Value::Null)) {
        return listed(Vec::new());
    }
    let found = super::jsonpath::query(args, uses_zone)?;
    listed(found.into_iter().map(|value| vec![value]).collect())
}

fn nested(value: ValueRef<'_>) -> Value {
    if value.is_nullish() {
        Value::Undefined
    } else {
        value.to_value()
    }
}

fn text(value: ValueRef<'_>) -> Value {
    if value.is_nullish() {
        Value::Null
    } else {
        Value::String(json::text(value).into())
    }
}

/// The parts of JSON's text as rows. Errors: 22023 for JSON of another form.
fn written<'v, T: 'v>(value: &'v Value, parts: fn(&'v str) -> Option<Vec<T>>, row: fn(T) -> Tuple) -> Result<Rows> {
    match value.as_str().map(parts) {
        None => listed(Vec::new()),
        Some(Some(parts)) => listed(parts.into_iter().map(row).collect()),
        Some(None) => fail("22023", "cannot take JSON of this form apart"),
    }
}

fn elements(value: &Value, make: fn(ValueRef<'_>) -> Value) -> Result<Rows> {
    match value {
        Value::Array(items) => listed(items.iter().map(|item| vec![make(item)]).collect()),
        Value::Null => listed(Vec::new()),
        _ => fail("22023", "cannot extract elements from a scalar"),
    }
}

fn each(value: &Value, make: fn(ValueRef<'_>) -> Value) -> Result<Rows> {
    match value {
        Value::Document(doc) => listed(
            doc.iter()
                .map(|(name, value)| vec![Value::String(name.into()), make(value)])
                .collect(),
        ),
        Value::Null => listed(Vec::new()),
        _ => fail("22023", "cannot call jsonb_each on a non-object"),
    }
}

/// The texts that a regular expression is looked for in, with options that say that case does not count where it does not.
fn cased(of: &[Expr], mut args: Vec<Expr>) -> Result<Vec<Expr>> {
    if of.first().is_some_and(|arg| arg.ty() == Type::Citext) {
        let said = args.split_off(args.len().min(2)).pop();
        let said = said.unwrap_or_else(|| Expr::constant(Value::from(""), Type::Text));
        args.push(super::call(super::citext::OPTIONS, vec![said])?);
    }
    Ok(args)
}

/// The function `name` with these arguments; `None` when it is none that gives rows.
///
/// Errors: 42883 for arguments that it does not take.
pub fn table(name: &str, args: &[Expr]) -> Result<Option<Table>> {
    let types: Vec<Type> = args.iter().map(Expr::ty).collect();
    let wrong = || {
        let shown: Vec<String> = types.iter().map(ToString::to_string).collect();
        error("42883", format!("function {name}({}) does not exist", shown.join(", ")))
    };
    let cast = |to: &[Type]| -> Result<Vec<Expr>> {
        if to.len() != args.len() {
            return Err(wrong());
        }
        args.iter()
            .zip(to)
            .map(|(arg, to)| coerce(arg.clone(), to, Context::Implicit))
            .collect()
    };
    let texts = |counts: RangeInclusive<usize>| vec![Type::Text; args.len().clamp(*counts.start(), *counts.end())];
    let plain = |name, run, args, columns| {
        Ok(Some(Table {
            call: Arc::new(Plain { name, run }),
            args,
            columns,
        }))
    };
    let one = |ty: Type| vec![(name.to_owned(), ty)];
    match name {
        "generate_series" => {
            let first = types.iter().take(2);
            let mut args = args.to_vec();
            let ty = match crate::types::cast::common(first) {
                Some(Type::Text) if types.iter().any(|ty| *ty != Type::Unknown) => Type::Timestamptz,
                Some(Type::Int2 | Type::Text) => Type::Int4,
                Some(Type::Date) => Type::Timestamptz,
                Some(ty) => ty,
                None => return Err(wrong()),
            };
            if args.len() == 2 && (ty.is_integer() || ty == Type::Numeric) {
                args.push(Expr::constant(Value::Int32(1), Type::Int4));
            }
            let [from, to, step] = args.as_slice() else {
                return Err(wrong());
            };
            let series: fn(&[Value]) -> Result<Rows> = match &ty {
                Type::Int4 | Type::Int8 => series_integers,
                Type::Numeric => series_numeric,
                Type::Timestamptz => series_zoned,
                _ => series_times,
            };
            let (ty, step_ty) = match ty {
                Type::Int4 if step.ty() == Type::Int8 => (Type::Int8, Type::Int8),
                Type::Int4 | Type::Int8 => (ty.clone(), ty),
                Type::Numeric => (Type::Numeric, Type::Numeric),
                Type::Timestamp | Type::Timestamptz => (ty, Type::Interval),
                _ => return Err(wrong()),
            };
            let args = vec![
                coerce(from.clone(), &ty, Context::Implicit)?,
                coerce(to.clone(), &ty, Context::Implicit)?,
                coerce(step.clone(), &step_ty, Context::Implicit)?,
            ];
            plain("generate_series", series, args, one(ty))
        }
        "unnest" if matches!(types.as_slice(), [ty] if ty.multirange_element().is_some()) => {
            let range = types[0].multirange_element().and_then(|element| element.range_of());
            plain(
                "unnest",
                |args| match &args[0] {
                    Value::Array(items) => listed(items.iter().map(|item| vec![item.to_value()]).collect()),
                    _ => listed(Vec::new()),
                },
                args.to_vec(),
                one(range.unwrap_or(Type::Unknown)),
            )
        }
        "unnest" => {
            let elements: Option<Vec<Type>> = types.iter().map(|ty| ty.element().cloned()).collect();
            match elements {
                Some(elements) if !elements.is_empty() => {
                    let columns = elements.into_iter().map(|ty| ("unnest".to_owned(), ty)).collect();
                    let nests = types.iter().filter_map(Type::element).any(arrays::nests);
                    plain(
                        "unnest",
                        if nests { unnest_leaves } else { unnest },
                        args.to_vec(),
                        columns,
                    )
                }
                // A path with several types may be an array all the same.
                _ if types == [Type::Jsonb] => plain(
                    "unnest",
                    |args| elements_or_nothing(&args[0]),
                    args.to_vec(),
                    vec![("unnest".to_owned(), Type::Jsonb)],
                ),
                _ => Err(wrong()),
            }
        }
        "json_array_elements" => plain(
            "json_array_elements",
            |args| written(&args[0], raw::elements, |part| vec![Value::String(part.into())]),
            cast(&[Type::Json])?,
            vec![("value".to_owned(), Type::Json)],
        ),
        "json_each" => plain(
            "json_each",
            |args| {
                written(&args[0], raw::fields, |(name, part)| {
                    vec![Value::String(name.into()), Value::String(part.into())]
                })
            },
            cast(&[Type::Json])?,
            vec![("key".to_owned(), Type::Text), ("value".to_owned(), Type::Json)],
        ),
        "jsonb_array_elements" => plain(
            "jsonb_array_elements",
            |args| elements(&args[0], nested),
            cast_json(args)?,
            vec![("value".to_owned(), Type::Jsonb)],
        ),
        "jsonb_array_elements_text" | "json_array_elements_text" => plain(
            "jsonb_array_elements_text",
            |args| elements(&args[0], text),
            cast_json(args)?,
            vec![("value".to_owned(), Type::Text)],
        ),
        "jsonb_each" => {
            let columns = vec![("key".to_owned(), Type::Text), ("value".to_owned(), Type::Jsonb)];
            plain("jsonb_each", |args| each(&args[0], nested), cast_json(args)?, columns)
        }
        "jsonb_each_text" | "json_each_text" => {
            let columns = vec![("key".to_owned(), Type::Text), ("value".to_owned(), Type::Text)];
            plain(
                "jsonb_each_text",
                |args| each(&args[0], text),
                cast_json(args)?,
                columns,
            )
        }
        "_pg_expandarray" => {
            let Some(element) = types.first().and_then(Type::element).filter(|_| types.len() == 1) else {
                return Err(wrong());
            };
            plain(
                "_pg_expandarray",
                |args| match &args[0] {
                    Value::Array(items) => {
                        let numbered = (1..).zip(items.iter());
                        listed(
                            numbered
                                .map(|(n, item)| vec![item.to_value(), Value::Int32(n)])
                                .collect(),
                        )
                    }
                    _ => listed(Vec::new()),
                },
                args.to_vec(),
                vec![("x".to_owned(), element.clone()), ("n".to_owned(), Type::Int4)],
            )
        }
        // Nothing has options.
        "pg_options_to_table" => {
            let columns = ["option_name", "option_value"].map(|name| (name.to_owned(), Type::Text));
            let given = cast(&[Type::Array(Box::new(Type::Text))])?;
            plain("pg_options_to_table", |_| listed(Vec::new()), given, columns.to_vec())
        }
        // The numbers of roles are given where it is bound.
        "aclexplode" => {
            let columns = vec![
                ("grantor".to_owned(), Type::Oid),
                ("grantee".to_owned(), Type::Oid),
                ("privilege_type".to_owned(), Type::Text),
                ("is_grantable".to_owned(), Type::Bool),
            ];
            let run = |args: &[Value]| listed(super::access::explode(&args[0], &args[1])?);
            plain(
                "aclexplode",
                run,
                cast(&[Type::Array(Box::new(Type::Text)), Type::Jsonb])?,
                columns,
            )
        }
        // What is a part of what is given where it is bound.
        "pg_partition_ancestors" => plain(
            "pg_partition_ancestors",
            |args| listed(leaves::ancestors(&args[0], &args[1])),
            cast(&[Type::Regclass, Type::Jsonb])?,
            vec![("relid".to_owned(), Type::Regclass)],
        ),
        "pg_partition_tree" => {
            let columns = vec![
                ("relid".to_owned(), Type::Regclass),
                ("parentrelid".to_owned(), Type::Regclass),
                ("isleaf".to_owned(), Type::Bool),
                ("level".to_owned(), Type::Int4),
            ];
            plain(
                "pg_partition_tree",
                |args| listed(leaves::tree(&args[0], &args[1])),
                cast(&[Type::Regclass, Type::Jsonb])?,
                columns,
            )
        }
        "pg_listening_channels" => {
            if !args.is_empty() {
                return Err(wrong());
            }
            let own = |_: &[Value]| {
                let session = crate::current::get();
                let all = session.map_or_else(Vec::new, |own| own.channels.of(&own.db, own.id));
                listed(all.into_iter().map(|name| vec![Value::String(name.into())]).collect())
            };
            plain("pg_listening_channels", own, Vec::new(), one(Type::Text))
        }
        "pg_get_keywords" => {
            if !args.is_empty() {
                return Err(wrong());
            }
            let text = |name: &str| (name.to_owned(), Type::Text);
            let columns = vec![
                text("word"),
                ("catcode".to_owned(), Type::Char),
                ("barelabel".to_owned(), Type::Bool),
                text("catdesc"),
                text("baredesc"),
            ];
            plain("pg_get_keywords", |_| listed(keywords::rows()), Vec::new(), columns)
        }
        "jsonb_object_keys" | "json_object_keys" => plain(
            "jsonb_object_keys",
            |args| match &args[0] {
                Value::Document(doc) => listed(doc.iter().map(|(name, _)| vec![Value::String(name.into())]).collect()),
                Value::Null => listed(Vec::new()),
                _ => fail("22023", "cannot call jsonb_object_keys on a non-object"),
            },
            cast_json(args)?,
            one(Type::Text),
        ),
        "jsonb_path_query" | "jsonb_path_query_tz" => {
            let types = [Type::Jsonb, Type::Jsonpath, Type::Jsonb, Type::Bool];
            if !(2..=4).contains(&args.len()) {
                return Err(wrong());
            }
            let run: fn(&[Value]) -> Result<Rows> = match name {
                "jsonb_path_query" => |args| paths(args, false),
                _ => |args| paths(args, true),
            };
            plain(
                if name == "jsonb_path_query" {
                    "jsonb_path_query"
                } else {
                    "jsonb_path_query_tz"
                },
                run,
                cast(&types[..args.len()])?,
                one(Type::Jsonb),
            )
        }
        "regexp_split_to_table" => plain(
            "regexp_split_to_table",
            |args| {
                let options = args.get(2).map_or(Some(""), Value::as_str);
                match (args[0].as_str(), args[1].as_str(), options) {
                    (Some(s), Some(pattern), Some(options)) => rows_of(regexp_split(s, pattern, options)?),
                    _ => listed(Vec::new()),
                }
            },
            cased(args, cast(&texts(2..=3))?)?,
            one(Type::Text),
        ),
        "regexp_matches" => plain(
            "regexp_matches",
            |args| {
                let options = args.get(2).map_or(Some(""), Value::as_str);
                match (args[0].as_str(), args[1].as_str(), options) {
                    (Some(s), Some(pattern), Some(options)) => {
                        let found = regexp_matches(s, pattern, options)?;
                        listed(found.into_iter().map(|groups| vec![groups]).collect())
                    }
                    _ => listed(Vec::new()),
                }
            },
            cased(args, cast(&texts(2..=3))?)?,
            one(Type::Text.array()),
        ),
        "string_to_table" => plain(
            "string_to_table",
            |args| {
                let Some(s) = args[0].as_str() else {
                    return listed(Vec::new());
                };
                let parts: Vec<String> = match args[1].as_str() {
                    _ if s.is_empty() => Vec::new(),
                    Some("") => vec![s.to_owned()],
                    Some(by) => s.split(by).map(str::to_owned).collect(),
                    None => s.chars().map(String::from).collect(),
                };
                let null = args.get(2).and_then(Value::as_str);
                let value = |part: String| match null == Some(part.as_str()) {
                    true => Value::Null,
                    false => Value::String(part.into()),
                };
                listed(parts.into_iter().map(|part| vec![value(part)]).collect())
            },
            cast(&texts(2..=3))?,
            one(Type::Text),
        ),
        "generate_subscripts" => plain(
            "generate_subscripts",
            |args| {
                let all = arrays::dimensions(&args[0], &Type::Int4);
                let at = integer(&args[1])
                    .and_then(|n| n.checked_sub(1))
                    .and_then(|n| usize::try_from(n).ok());
                let length = at
                    .and_then(|at| all.get(at))
                    .map_or(0, |n| i32::try_from(*n).unwrap_or(i32::MAX));
                let first = if matches!(args[2], Value::Bool(true)) { 0 } else { 1 };
                let mut rows: Vec<Tuple> = (first..length + first).map(|i| vec![Value::Int32(i)]).collect();
                if matches!(args.get(3), Some(Value::Bool(true))) {
                    rows.reverse();
                }
                listed(rows)
            },
            match (args, types.first().is_some_and(|ty| ty.element().is_some())) {
                ([array, at], true) => vec![
                    array.clone(),
                    coerce(at.clone(), &Type::Int4, Context::Implicit)?,
                    Expr::bool(array.ty().is_vector()),
                ],
                ([array, at, reverse], true) => vec![
                    array.clone(),
                    coerce(at.clone(), &Type::Int4, Context::Implicit)?,
                    Expr::bool(array.ty().is_vector()),
                    coerce(reverse.clone(), &Type::Bool, Context::Implicit)?,
                ],
                _ => return Err(wrong()),
            },
            one(Type::Int4),
        ),
        _ => Ok(None),
    }
}

fn elements_or_nothing(value: &Value) -> Result<Rows> {
    match value {
        Value::Array(_) => elements(value, nested),
        _ => listed(Vec::new()),
    }
}

fn cast_json(args: &[Expr]) -> Result<Vec<Expr>> {
    let [arg] = args else {
        return fail("42883", "function takes one argument");
    };
    let from = arg.ty();
    let context = if exists(&from, &Type::Jsonb, Context::Implicit) {
        Context::Implicit
    } else {
        Context::Assignment
    };
    Ok(vec![coerce(arg.clone(), &Type::Jsonb, context)?])
}

/// The elements of an array as rows.
fn rows_of(array: Value) -> Result<Rows> {
    match array {
        Value::Array(items) => listed(items.iter().map(|item| vec![item.to_value()]).collect()),
        _ => listed(Vec::new()),
    }
}
