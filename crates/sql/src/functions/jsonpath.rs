//! Paths of SQL/JSON over values of `jsonb`.

use super::Row;
use super::moments::Moment;
use crate::error::{error, fail};
use crate::types::jsonpath::{Arithmetic, Expr, Method, Path, Step, path, pattern};
use crate::types::{compare::Comparison, numeric, output};
use nestor_model::statement::{charge, work};
use nestor_model::{Array, Decimal128, Document, Error, Result, Value, ValueRef};
use std::cmp::Ordering;

/// Why a path has no value.
enum Stop {
    /// A structure or value is not as the path wants it, which may be asked to be silent.
    Path(Error),
    /// Anything else.
    Other(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

type Done = std::result::Result<(), Stop>;

fn stop<T>(state: &'static str, message: impl Into<String>) -> std::result::Result<T, Stop> {
    Err(Stop::Path(error(state, message.into())))
}

struct Run<'p> {
    strict: bool,
    root: &'p Value,
    vars: Option<&'p Value>,
    /// Moments without a zone may be compared with ones that have one.
    uses_zone: bool,
}

/// What expressions see of where they stand.
#[derive(Clone, Copy)]
struct Place<'v> {
    /// `@`.
    current: &'v Value,
    /// The number of elements of the array that a subscript is of.
    length: usize,
    /// Structures that are not as they should be are passed over.
    ignores: bool,
}

fn is_number(value: &Value) -> Option<Decimal128> {
    match value {
        Value::Int32(n) => Some(Decimal128::from_i32(*n)),
        Value::Int64(n) => Some(Decimal128::from_i64(*n)),
        Value::Double(n) => Some(Decimal128::from_f64(*n)),
        Value::Decimal128(n) => Some(*n),
        _ => None,
    }
}

fn plain(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Undefined | ValueRef::Missing => Value::Null,
        value => value.to_value(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::Undefined => "null",
        Value::Bool(_) => "boolean",
        Value::Document(_) => "object",
        Value::Array(_) => "array",
        value if is_number(value).is_some() => "number",
        value => Moment::of(value).map_or("string", Moment::type_name),
    }
}

impl Run<'_> {
    /// Calls `out` with what an expression leads to.
    fn each(&self, expr: &Expr, at: Place<'_>, out: &mut dyn FnMut(Value) -> Done) -> Done {
        work(1)?;
        match expr {
            Expr::Root => out(self.root.clone()),
            Expr::Current => out(at.current.clone()),
            Expr::Last => out(Value::Int64(at.length as i64 - 1)),
            Expr::Literal(value) => out(value.clone()),
            Expr::Variable(name) => out(self.variable(name)?),
            Expr::Steps(from, steps) => self.each(from, at, &mut |value| self.steps(steps, value, at, true, out)),
            Expr::Negate(of) | Expr::Same(of) => {
                let negates = matches!(expr, Expr::Negate(_));
                self.each_unwrapped(of, at, &mut |value| match is_number(&value) {
                    Some(n) if negates => out(Value::Decimal128(n.negate())),
                    Some(_) => out(value),
                    None => stop("2203B", "operand of unary jsonpath operator is not a numeric value"),
                })
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.number(a, at)?, self.number(b, at)?);
                let found = match op {
                    Arithmetic::Plus => numeric::add(a, b),
                    Arithmetic::Minus => numeric::sub(a, b),
                    Arithmetic::Times => numeric::mul(a, b),
                    Arithmetic::Divide => numeric::div(a, b),
                    Arithmetic::Modulo => numeric::rem(a, b),
                };
                out(Value::Decimal128(found.map_err(Stop::Path)?))
            }
            predicate => out(self.truth(predicate, at)?.map_or(Value::Null, Value::Bool)),
        }
    }

    /// The same, with the elements of arrays in place of these unless the path is strict.
    fn each_unwrapped(&self, expr: &Expr, at: Place<'_>, out: &mut dyn FnMut(Value) -> Done) -> Done {
        self.each(expr, at, &mut |value| match value {
            Value::Array(items) if !self.strict => items.iter().try_for_each(|item| out(plain(item))),
            value => out(value),
        })
    }

    fn variable(&self, name: &str) -> Result<Value> {
        match self.vars {
            Some(Value::Document(vars)) => match vars.get(name) {
                Some(value) => Ok(plain(value)),
                None => fail("42704", format!("could not find jsonpath variable \"{name}\"")),
            },
            _ => fail("42704", format!("could not find jsonpath variable \"{name}\"")),
        }
    }

    fn all(&self, expr: &Expr, at: Place<'_>) -> std::result::Result<Vec<Value>, Stop> {
        let mut found = Vec::new();
        self.each_unwrapped(expr, at, &mut |value| {
            charge(value.weight())?;
            found.push(value);
            Ok(())
        })?;
        Ok(found)
    }

    fn number(&self, expr: &Expr, at: Place<'_>) -> std::result::Result<Decimal128, Stop> {
        let found = self.all(expr, at)?;
        match found.as_slice() {
            [value] if is_number(value).is_some() => Ok(is_number(value).unwrap_or(Decimal128::ZERO)),
            _ => stop("22038", "operand of jsonpath operator is not a single numeric value"),
        }
    }

    /// Calls `out` with what steps lead to from a value. Arrays are `unwraps`-ed where a step is for their elements.
    fn steps(
        &self,
        steps: &[Step],
        value: Value,
        at: Place<'_>,
        unwraps: bool,
        out: &mut dyn FnMut(Value) -> Done,
    ) -> Done {
        work(1)?;
        let Some((step, rest)) = steps.split_first() else {
            return out(value);
        };
        let unwraps = unwraps && !self.strict;
        let for_elements = !matches!(
            step,
            Step::AnyElement | Step::Elements(_) | Step::Any(..) | Step::Method(Method::Type | Method::Size)
        );
        if let (true, true, Value::Array(items)) = (unwraps, for_elements, &value) {
            return items
                .iter()
                .try_for_each(|item| self.steps(steps, plain(item), at, false, out));
        }
        let lenient = !self.strict || at.ignores;
        let mut next = |value: Value| self.steps(rest, value, at, true, out);
        match (step, &value) {
            (Step::Key(name), Value::Document(doc)) => match doc.get(name) {
                Some(found) => next(plain(found)),
                None if lenient => Ok(()),
                None => stop("2203A", format!("JSON object does not contain key \"{name}\"")),
            },
            (Step::AnyKey, Value::Document(doc)) => doc.iter().try_for_each(|(_, found)| next(plain(found))),
            (Step::Key(_) | Step::AnyKey | Step::AnyElement, _)
                if lenient && (self.strict || !matches!(value, Value::Array(_))) =>
            {
                match step {
                    Step::AnyElement if !self.strict => next(value),
                    _ => Ok(()),
                }
            }
            (Step::Key(_), _) => stop("2203A", "jsonpath member accessor can only be applied to an object"),
            (Step::AnyKey, _) => stop(
                "2203C",
                "jsonpath wildcard member accessor can only be applied to an object",
            ),
            (Step::AnyElement, Value::Array(items)) => items.iter().try_for_each(|item| next(plain(item))),
            (Step::AnyElement, _) => stop(
                "22039",
                "jsonpath wildcard array accessor can only be applied to an array",
            ),
            (Step::Elements(all), Value::Array(items)) => self.elements(all, items, at, &mut next),
            (Step::Elements(all), _) if !self.strict => {
                self.elements(all, &Array::new(vec![value.clone()]), at, &mut next)
            }
            (Step::Elements(_), _) if lenient => Ok(()),
            (Step::Elements(_), _) => stop("22039", "jsonpath array accessor can only be applied to an array"),
            (Step::Any(first, last), _) => {
                let deeper = Place { ignores: true, ..at };
                let mut next = |value: Value| self.steps(rest, value, deeper, true, out);
                self.levels(&value, (*first, *last), 0, &mut next)
            }
            (Step::Filter(condition), _) => {
                let within = Place { current: &value, ..at };
                match self.truth(condition, within)? {
                    Some(true) => next(value),
                    _ => Ok(()),
                }
            }
            (Step::Method(method), _) => self.method(*method, &value, &mut next),
            (Step::Datetime(template), Value::String(text)) => {
                let moment = Moment::read(text, template.as_deref()).map_err(Stop::Path)?;
                next(moment.to_value())
            }
            (Step::Datetime(_), _) => stop(
                "22031",
                "jsonpath item method .datetime() can only be applied to a string",
            ),
        }
    }

    fn elements(
        &self,
        all: &[(Expr, Option<Expr>)],
        items: &Array,
        at: Place<'_>,
        next: &mut dyn FnMut(Value) -> Done,
    ) -> Done {
        let within = Place {
            length: items.len(),
            ..at
        };
        for (from, to) in all {
            let low = self.subscript(from, within)?;
            let high = match to {
                Some(to) => self.subscript(to, within)?,
                None => low,
            };
            let length = items.len() as i64;
            if self.strict && !at.ignores && (low < 0 || low > high || high >= length) {
                return stop("22033", "jsonpath array subscript is out of bounds");
            }
            for index in low.max(0)..=high.min(length - 1) {
                let found = usize::try_from(index).ok().and_then(|index| items.as_ref().get(index));
                next(found.map_or(Value::Null, plain))?;
            }
        }
        Ok(())
    }

    fn subscript(&self, expr: &Expr, at: Place<'_>) -> std::result::Result<i64, Stop> {
        let mut found = Vec::new();
        self.each(expr, at, &mut |value| {
            found.push(value);
            Ok(())
        })?;
        let number = match found.as_slice() {
            [value] => is_number(value),
            _ => None,
        };
        let Some(number) = number else {
            return stop("22033", "jsonpath array subscript is not a single numeric value");
        };
        let whole = numeric::trunc(number, 0).ok().and_then(|n| n.to_i64_exact());
        match whole.filter(|n| i32::try_from(*n).is_ok()) {
            Some(n) => Ok(n),
            None => stop("22033", "jsonpath array subscript is out of integer range"),
        }
    }

    /// The values within a value at levels from one to another, itself at level 0.
    fn levels(
        &self,
        value: &Value,
        bounds: (Option<u32>, Option<u32>),
        level: u32,
        next: &mut dyn FnMut(Value) -> Done,
    ) -> Done {
        work(1)?;
        let (first, last) = bounds;
        let is_leaf = !matches!(value, Value::Document(_) | Value::Array(_));
        let begun = match (first, last) {
            // Only the deepest.
            (None, _) => is_leaf,
            (Some(first), _) => level >= first,
        };
        if begun && (level > 0 || first == Some(0) || is_leaf) {
            next(value.clone())?;
        }
        if last.is_some_and(|last| level >= last) {
            return Ok(());
        }
        match value {
            Value::Document(doc) => doc
                .iter()
                .try_for_each(|(_, inner)| self.levels(&plain(inner), bounds, level + 1, next)),
            Value::Array(items) => items
                .iter()
                .try_for_each(|inner| self.levels(&plain(inner), bounds, level + 1, next)),
            _ => Ok(()),
        }
    }

    fn method(&self, method: Method, value: &Value, next: &mut dyn FnMut(Value) -> Done) -> Done {
        let number = |value: &Value| match is_number(value) {
            Some(n) => Ok(n),
            None => stop("22036", "jsonpath item method can only be applied to a numeric value"),
        };
        let floor = |n: Decimal128| -> Result<Decimal128> {
            let cut = numeric::trunc(n, 0)?;
            let below = nestor_model::compare(&Value::Decimal128(cut), &Value::Decimal128(n)).is_gt();
            if below {
                numeric::sub(cut, Decimal128::ONE)
            } else {
                Ok(cut)
            }
        };
        match method {
            Method::Type => next(Value::String(kind(value).into())),
            Method::Size => match value {
                Value::Array(items) => next(Value::Int64(items.len() as i64)),
                _ if !self.strict => next(Value::Int32(1)),
                _ => stop("22039", "jsonpath item method .size() can only be applied to an array"),
            },
            Method::Double => match value {
                Value::String(text) => match text.trim().parse::<f64>() {
                    Ok(n) if n.is_finite() => next(Value::Decimal128(numeric::parse(&output::double(n))?)),
                    _ => stop(
                        "22036",
                        "string argument of jsonpath item method .double() is not a valid number",
                    ),
                },
                value => number(value).and_then(|n| match n.to_f64().is_finite() {
                    true => next(value.clone()),
                    false => stop(
                        "22036",
                        "numeric argument of jsonpath item method .double() is out of range",
                    ),
                }),
            },
            Method::Abs => next(Value::Decimal128(number(value)?.abs())),
            Method::Floor => next(Value::Decimal128(floor(number(value)?)?)),
            Method::Ceiling => next(Value::Decimal128(floor(number(value)?.negate())?.negate())),
            Method::KeyValue => {
                let Value::Document(doc) = value else {
                    return stop(
                        "2203C",
                        "jsonpath item method .keyvalue() can only be applied to an object",
                    );
                };
                doc.iter().try_for_each(|(name, inner)| {
                    let mut out = Document::new();
                    out.push("id", 0);
                    out.push("key", name);
                    out.push("value", plain(inner));
                    next(out.into())
                })
            }
        }
    }

    /// Whether a predicate holds; what cannot be computed cannot be said.
    fn truth(&self, expr: &Expr, at: Place<'_>) -> std::result::Result<Option<bool>, Stop> {
        work(1)?;
        Ok(match expr {
            Expr::And(a, b) => match self.truth(a, at)? {
                Some(false) => Some(false),
                first => match (first, self.truth(b, at)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), second) => second,
                    _ => None,
                },
            },
            Expr::Or(a, b) => match self.truth(a, at)? {
                Some(true) => Some(true),
                first => match (first, self.truth(b, at)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), second) => second,
                    _ => None,
                },
            },
            Expr::Not(of) => self.truth(of, at)?.map(|holds| !holds),
            Expr::IsUnknown(of) => Some(self.truth(of, at)?.is_none()),
            Expr::Exists(of) => {
                let mut found = false;
                match self.each(of, at, &mut |_| {
                    found = true;
                    Ok(())
                }) {
                    Ok(()) => Some(found),
                    Err(Stop::Path(_)) if found && !self.strict => Some(true),
                    Err(Stop::Path(_)) => None,
                    Err(other) => return Err(other),
                }
            }
            Expr::Compare(op, a, b) => {
                let (Some(left), Some(right)) = (self.operand(a, at)?, self.operand(b, at)?) else {
                    return Ok(None);
                };
                let pairs = left.iter().flat_map(|x| right.iter().map(move |y| (x, y)));
                let mut found = Vec::with_capacity(left.len());
                for (x, y) in pairs {
                    found.push(match (Moment::of(x), Moment::of(y)) {
                        (Some(a), Some(b)) => a.compare(b, self.uses_zone)?.map(|order| op.of(order)),
                        _ => compared(*op, x, y),
                    });
                    // What comes behind one that holds is not looked at.
                    if !self.strict && found.last() == Some(&Some(true)) {
                        break;
                    }
                }
                self.any(found.into_iter())
            }
            Expr::StartsWith(a, b) => {
                let Some(left) = self.operand(a, at)? else {
                    return Ok(None);
                };
                let mut begins = Value::Null;
                self.each(b, at, &mut |value| {
                    begins = value;
                    Ok(())
                })?;
                self.any(left.iter().map(|value| match (value, &begins) {
                    (Value::String(text), Value::String(begins)) => Some(text.starts_with(begins.as_str())),
                    _ => None,
                }))
            }
            Expr::Like(of, source, flags) => {
                let Some(left) = self.operand(of, at)? else {
                    return Ok(None);
                };
                let regex = pattern(source, flags)?;
                let mut found = Vec::with_capacity(left.len());
                for value in &left {
                    found.push(match value {
                        Value::String(text) => Some(regex.is_match(text)?),
                        _ => None,
                    });
                }
                self.any(found.into_iter())
            }
            _ => None,
        })
    }

    /// The values of an operand of a predicate; `None` when they cannot be computed.
    fn operand(&self, expr: &Expr, at: Place<'_>) -> std::result::Result<Option<Vec<Value>>, Stop> {
        match self.all(expr, at) {
            Ok(found) => Ok(Some(found)),
            Err(Stop::Path(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Whether one holds. In a strict path all have to be known, in a lax one those before it are passed over.
    fn any(&self, all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
        let (mut found, mut unknown) = (false, false);
        for holds in all {
            match holds {
                None if self.strict => return None,
                None => unknown = true,
                Some(true) if !self.strict => return Some(true),
                Some(true) => found = true,
                Some(false) => {}
            }
        }
        (found || !unknown).then_some(found)
    }
}

fn compared(op: Comparison, a: &Value, b: &Value) -> Option<bool> {
    let order = match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) | (_, Value::Null) => return Some(op == Comparison::NotEqual),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.as_str().cmp(b.as_str()),
        (a, b) => match (is_number(a), is_number(b)) {
            (Some(a), Some(b)) => nestor_model::compare(&Value::Decimal128(a), &Value::Decimal128(b)),
            _ => return None,
        },
    };
    Some(op.of(order))
}

/// What a path finds, and whether it came to its end; otherwise the error that may be silent.
fn found(args: &[Value], uses_zone: bool) -> Result<(Vec<Value>, Option<Error>)> {
    let path: &Path = &*path(args[1].as_str().unwrap_or_default())?;
    if args.get(2).is_some_and(|vars| !matches!(vars, Value::Document(_))) {
        return fail("22023", "\"vars\" argument is not an object");
    }
    let root = plain(args[0].as_ref());
    let run = Run {
        strict: path.strict,
        root: &root,
        vars: args.get(2),
        uses_zone,
    };
    let at = Place {
        current: &root,
        length: 0,
        ignores: false,
    };
    let mut out = Vec::new();
    let done = run.each(&path.expr, at, &mut |value| {
        charge(value.weight())?;
        out.push(match Moment::of(&value) {
            Some(moment) => Value::String(moment.text().into()),
            None => value,
        });
        Ok(())
    });
    match done {
        Ok(()) => Ok((out, None)),
        Err(Stop::Path(error)) => Ok((out, Some(error))),
        Err(Stop::Other(error)) => Err(error),
    }
}

fn is_silent(args: &[Value]) -> bool {
    matches!(args.get(3), Some(Value::Bool(true)))
}

/// What a path finds. Errors: those of the path unless the arguments say that it is silent.
pub(super) fn query(args: &[Value], uses_zone: bool) -> Result<Vec<Value>> {
    let (found, error) = found(args, uses_zone)?;
    match error {
        Some(error) if !is_silent(args) => Err(error),
        _ => Ok(found.into_iter().map(shown).collect()),
    }
}

/// JSON's null on top is not SQL's.
fn shown(value: Value) -> Value {
    match value {
        Value::Null => Value::Undefined,
        value => value,
    }
}

fn exists(args: &[Value], silent: bool) -> Result<Value> {
    exists_in(args, silent, false)
}

fn exists_in(args: &[Value], silent: bool, uses_zone: bool) -> Result<Value> {
    let (found, error) = found(args, uses_zone)?;
    match error {
        Some(_) if !found.is_empty() && !path(args[1].as_str().unwrap_or_default())?.strict => Ok(Value::Bool(true)),
        Some(_) if silent => Ok(Value::Null),
        Some(error) => Err(error),
        None => Ok(Value::Bool(!found.is_empty())),
    }
}

fn matches(args: &[Value], silent: bool) -> Result<Value> {
    matches_in(args, silent, false)
}

fn matches_in(args: &[Value], silent: bool, uses_zone: bool) -> Result<Value> {
    let (found, failed) = found(args, uses_zone)?;
    match (failed, found.as_slice()) {
        (Some(error), _) if !silent => Err(error),
        (None, [Value::Bool(holds)]) => Ok(Value::Bool(*holds)),
        (None, [Value::Null]) => Ok(Value::Null),
        (None, _) if !silent => fail("22038", "single boolean result is expected"),
        _ => Ok(Value::Null),
    }
}

fn list(args: &[Value]) -> Result<Value> {
    list_in(args, false)
}

fn list_in(args: &[Value], uses_zone: bool) -> Result<Value> {
    let found = query(args, uses_zone)?.into_iter().map(|value| match value {
        Value::Undefined => Value::Null,
        value => value,
    });
    Ok(Value::Array(Array::new(found.collect())))
}

fn first(args: &[Value]) -> Result<Value> {
    first_in(args, false)
}

fn first_in(args: &[Value], uses_zone: bool) -> Result<Value> {
    Ok(query(args, uses_zone)?.into_iter().next().unwrap_or(Value::Null))
}

pub(super) const ROWS: &[Row] = &[
    ("@?", "jsonb,jsonpath->bool", |a, _, _| exists(a, true)),
    ("@@", "jsonb,jsonpath->bool", |a, _, _| matches(a, true)),
    ("jsonb_path_exists", "jsonb,jsonpath->bool", |a, _, _| exists(a, false)),
    ("jsonb_path_exists", "jsonb,jsonpath,jsonb->bool", |a, _, _| {
        exists(a, false)
    }),
    ("jsonb_path_exists", "jsonb,jsonpath,jsonb,bool->bool", |a, _, _| {
        exists(a, is_silent(a))
    }),
    ("jsonb_path_match", "jsonb,jsonpath->bool", |a, _, _| matches(a, false)),
    ("jsonb_path_match", "jsonb,jsonpath,jsonb->bool", |a, _, _| {
        matches(a, false)
    }),
    ("jsonb_path_match", "jsonb,jsonpath,jsonb,bool->bool", |a, _, _| {
        matches(a, is_silent(a))
    }),
    ("jsonb_path_query_array", "jsonb,jsonpath->jsonb", |a, _, _| list(a)),
    ("jsonb_path_query_array", "jsonb,jsonpath,jsonb->jsonb", |a, _, _| {
        list(a)
    }),
    (
        "jsonb_path_query_array",
        "jsonb,jsonpath,jsonb,bool->jsonb",
        |a, _, _| list(a),
    ),
    ("jsonb_path_query_first", "jsonb,jsonpath->jsonb", |a, _, _| first(a)),
    ("jsonb_path_query_first", "jsonb,jsonpath,jsonb->jsonb", |a, _, _| {
        first(a)
    }),
    (
        "jsonb_path_query_first",
        "jsonb,jsonpath,jsonb,bool->jsonb",
        |a, _, _| first(a),
    ),
];

/// Functions with two arguments to four, given whether the path is silent.
macro_rules! zoned {
    ($(($name:literal, $type:literal, $run:expr)),* $(,)?) => {
        &[$(
            ($name, concat!("jsonb,jsonpath->", $type), |a, _, _| {
                let run: fn(&[Value], bool) -> Result<Value> = $run;
                run(a, false)
            }),
            ($name, concat!("jsonb,jsonpath,jsonb->", $type), |a, _, _| {
                let run: fn(&[Value], bool) -> Result<Value> = $run;
                run(a, false)
            }),
            ($name, concat!("jsonb,jsonpath,jsonb,bool->", $type), |a, _, _| {
                let run: fn(&[Value], bool) -> Result<Value> = $run;
                run(a, is_silent(a))
            }),
        )*]
    };
}

/// Those that compare moments by the session's zone.
pub(super) const ZONED: &[Row] = zoned![
    ("jsonb_path_exists_tz", "bool", |a, silent| exists_in(a, silent, true)),
    ("jsonb_path_match_tz", "bool", |a, silent| matches_in(a, silent, true)),
    ("jsonb_path_query_array_tz", "jsonb", |a, _| list_in(a, true)),
    ("jsonb_path_query_first_tz", "jsonb", |a, _| first_in(a, true)),
];
