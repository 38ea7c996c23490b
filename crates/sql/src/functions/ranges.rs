//! Ranges and multiranges.

use super::Row;
use crate::error::fail;
use crate::expr::Expr;
use crate::types::Type;
use crate::types::range::{self, Range};
use nestor_model::{Result, Value};

fn element(ty: &Type) -> Type {
    ty.range_element()
        .or_else(|| ty.multirange_element())
        .unwrap_or(Type::Unknown)
}

fn optional(value: &Value) -> Option<Value> {
    (!matches!(value, Value::Null)).then(|| value.clone())
}

/// `int4range(lower, upper, bounds)` and the like. Errors: 22000, 42601.
fn make(a: &[Value], args: &[Expr]) -> Result<Value> {
    let inclusive = match a.get(2) {
        None => (true, false),
        Some(Value::String(bounds)) => match bounds.as_str() {
            "[)" => (true, false),
            "[]" => (true, true),
            "()" => (false, false),
            "(]" => (false, true),
            _ => return fail("42601", "invalid range bound flags"),
        },
        Some(_) => return fail("22000", "range constructor flags argument must not be null"),
    };
    Range::new(&args[0].ty(), optional(&a[0]), optional(&a[1]), inclusive).map(Range::to_value)
}

fn make_multi(a: &[Value], args: &[Expr]) -> Value {
    let all: Vec<Range> = a.iter().map(Range::of).collect();
    range::multi(match args.first() {
        Some(arg) => range::joined(all, &element(&arg.ty())),
        None => all,
    })
}

/// What two ranges or multiranges are to each other.
fn related(a: &[Value], args: &[Expr], f: fn(&[Range], &[Range], &Type) -> bool) -> Value {
    let (x, y) = (args[0].ty(), args[1].ty());
    Value::Bool(f(&range::parts(&x, &a[0]), &range::parts(&y, &a[1]), &element(&x)))
}

fn contains(a: &[Range], b: &[Range], element: &Type) -> bool {
    b.iter().all(|part| a.iter().any(|whole| whole.contains(part, element)))
}

fn overlap(a: &[Range], b: &[Range], element: &Type) -> bool {
    a.iter().any(|x| b.iter().any(|y| x.overlaps(y, element)))
}

/// Whether the first of `a` and `b` hold of the ends that face each other: the last of one and the first of the other.
fn before(a: &[Range], b: &[Range], element: &Type) -> bool {
    match (a.last(), b.first()) {
        (Some(a), Some(b)) => a.ends_before(b, element),
        _ => false,
    }
}

fn touch(a: &[Range], b: &[Range], element: &Type) -> bool {
    let adjoins = |x: &[Range], y: &[Range]| match (x.last(), y.first()) {
        (Some(x), Some(y)) => x.touches(y, element) && !y.ends_before(x, element),
        _ => false,
    };
    adjoins(a, b) || adjoins(b, a)
}

fn not_beyond(a: &[Range], b: &[Range], element: &Type) -> bool {
    match (a.last(), b.last()) {
        (Some(a), Some(b)) => a.compare_ends(b, element).is_le(),
        _ => false,
    }
}

fn not_before(a: &[Range], b: &[Range], element: &Type) -> bool {
    match (a.first(), b.first()) {
        (Some(a), Some(b)) => a.compare_begins(b, element).is_ge(),
        _ => false,
    }
}

fn of_one(value: &Value) -> Vec<Range> {
    vec![Range {
        empty: false,
        lower: Some(value.clone()),
        upper: Some(value.clone()),
        lower_inclusive: true,
        upper_inclusive: true,
    }]
}

fn holds_one(ranges: &Value, ty: &Type, value: &Value) -> Value {
    Value::Bool(contains(&range::parts(ty, ranges), &of_one(value), &element(ty)))
}

/// The whole of a range or multirange, from its first beginning to its last end.
fn whole(value: &Value, ty: &Type) -> Range {
    let parts = range::parts(ty, value);
    match (parts.first(), parts.last()) {
        (Some(first), Some(last)) => first.merged(last, &element(ty)),
        _ => Range::NOTHING,
    }
}

macro_rules! relation {
    ($name:literal, $f:expr) => {
        [
            ($name, "anyrange,anyrange->bool", |a, _, args| Ok(related(a, args, $f))),
            ($name, "anyrange,anymultirange->bool", |a, _, args| {
                Ok(related(a, args, $f))
            }),
            ($name, "anymultirange,anyrange->bool", |a, _, args| {
                Ok(related(a, args, $f))
            }),
            ($name, "anymultirange,anymultirange->bool", |a, _, args| {
                Ok(related(a, args, $f))
            }),
        ]
    };
}

macro_rules! aspect {
    ($name:literal, $result:literal, $f:expr) => {
        [
            ($name, concat!("anyrange->", $result), |a, _, args| {
                let f: fn(Range) -> Value = $f;
                Ok(f(whole(&a[0], &args[0].ty())))
            }),
            ($name, concat!("anymultirange->", $result), |a, _, args| {
                let f: fn(Range) -> Value = $f;
                Ok(f(whole(&a[0], &args[0].ty())))
            }),
        ]
    };
}

const OVERLAPS: [Row; 4] = relation!("&&", overlap);
const CONTAINS: [Row; 4] = relation!("@>", contains);
const IS_IN: [Row; 4] = relation!("<@", |a, b, element| contains(b, a, element));
const BEFORE: [Row; 4] = relation!("<<", before);
const AFTER: [Row; 4] = relation!(">>", |a, b, element| before(b, a, element));
const NOT_BEYOND: [Row; 4] = relation!("&<", not_beyond);
const NOT_BEFORE: [Row; 4] = relation!("&>", not_before);
const TOUCHES: [Row; 4] = relation!("-|-", touch);
const LOWER: [Row; 2] = aspect!("lower", "anyelement", |range| range.lower.unwrap_or(Value::Null));
const UPPER: [Row; 2] = aspect!("upper", "anyelement", |range| range.upper.unwrap_or(Value::Null));
const IS_EMPTY: [Row; 2] = aspect!("isempty", "bool", |range| Value::Bool(range.empty));
const LOWER_INCLUSIVE: [Row; 2] = aspect!("lower_inc", "bool", |range| Value::Bool(range.lower_inclusive));
const UPPER_INCLUSIVE: [Row; 2] = aspect!("upper_inc", "bool", |range| Value::Bool(range.upper_inclusive));
const LOWER_INFINITE: [Row; 2] = aspect!("lower_inf", "bool", |range| Value::Bool(
    !range.empty && range.lower.is_none()
));
const UPPER_INFINITE: [Row; 2] = aspect!("upper_inf", "bool", |range| Value::Bool(
    !range.empty && range.upper.is_none()
));

/// The tables of relations and aspects.
pub(super) const TABLES: &[&[Row]] = &[
    &OVERLAPS,
    &CONTAINS,
    &IS_IN,
    &BEFORE,
    &AFTER,
    &NOT_BEYOND,
    &NOT_BEFORE,
    &TOUCHES,
    &LOWER,
    &UPPER,
    &IS_EMPTY,
    &LOWER_INCLUSIVE,
    &UPPER_INCLUSIVE,
    &LOWER_INFINITE,
    &UPPER_INFINITE,
];

fn of_two(a: &[Value], args: &[Expr], f: fn(&Range, &Range, &Type) -> Result<Range>) -> Result<Value> {
    f(&Range::of(&a[0]), &Range::of(&a[1]), &element(&args[0].ty())).map(Range::to_value)
}

fn of_two_multi(a: &[Value], args: &[Expr], f: fn(&[Range], &[Range], &Type) -> Vec<Range>) -> Value {
    let ty = args[0].ty();
    range::multi(f(&range::parts(&ty, &a[0]), &range::parts(&ty, &a[1]), &element(&ty)))
}

macro_rules! constructors {
    ($($element:literal $range:literal $multi:literal;)*) => {
        &[
            $(
                ($range, concat!("?", $element, ",", $element, "->", $range), |a, _, args| make(a, args)),
                ($range, concat!("?", $element, ",", $element, ",text->", $range), |a, _, args| make(a, args)),
                ($multi, concat!($range, "...->", $multi), |a, _, args| Ok(make_multi(a, args))),
            )*
        ]
    };
}

/// The functions that make ranges.
pub(super) const CONSTRUCTORS: &[Row] = constructors! {
    "int4" "int4range" "int4multirange";
    "int8" "int8range" "int8multirange";
    "numeric" "numrange" "nummultirange";
    "date" "daterange" "datemultirange";
    "timestamp" "tsrange" "tsmultirange";
    "timestamptz" "tstzrange" "tstzmultirange";
};

pub(super) const ROWS: &[Row] = &[
    ("@>", "anyrange,anyelement->bool", |a, _, args| {
        Ok(holds_one(&a[0], &args[0].ty(), &a[1]))
    }),
    ("@>", "anymultirange,anyelement->bool", |a, _, args| {
        Ok(holds_one(&a[0], &args[0].ty(), &a[1]))
    }),
    ("<@", "anyelement,anyrange->bool", |a, _, args| {
        Ok(holds_one(&a[1], &args[1].ty(), &a[0]))
    }),
    ("<@", "anyelement,anymultirange->bool", |a, _, args| {
        Ok(holds_one(&a[1], &args[1].ty(), &a[0]))
    }),
    ("+", "anyrange,anyrange->anyrange", |a, _, args| {
        of_two(a, args, Range::plus)
    }),
    ("-", "anyrange,anyrange->anyrange", |a, _, args| {
        of_two(a, args, Range::minus)
    }),
    ("*", "anyrange,anyrange->anyrange", |a, _, args| {
        of_two(a, args, |a, b, element| Ok(a.intersection(b, element)))
    }),
    ("range_merge", "anyrange,anyrange->anyrange", |a, _, args| {
        of_two(a, args, |a, b, element| Ok(a.merged(b, element)))
    }),
    ("range_merge", "anymultirange->anyrange", |a, _, args| {
        Ok(whole(&a[0], &args[0].ty()).to_value())
    }),
    ("multirange", "anyrange->anymultirange", |a, _, args| {
        Ok(range::multi(range::parts(&args[0].ty(), &a[0])))
    }),
    ("+", "anymultirange,anymultirange->anymultirange", |a, _, args| {
        Ok(of_two_multi(a, args, |a, b, element| {
            range::joined([a, b].concat(), element)
        }))
    }),
    ("-", "anymultirange,anymultirange->anymultirange", |a, _, args| {
        Ok(of_two_multi(a, args, range::difference))
    }),
    ("*", "anymultirange,anymultirange->anymultirange", |a, _, args| {
        Ok(of_two_multi(a, args, range::common))
    }),
];
