//! Functions and operators: a table for each family, and which of several is meant.
//!
//! A row of a table has a name, a signature (`"text,int4->text"`; `any` takes all types, `anyarray` and `anyelement` go together, `...` behind the last
//! one takes more of it) and a function over values. Operators are functions whose names are signs.

mod access;
mod advisory;
mod args;
mod arithmetic;
pub(crate) mod arrays;
mod bits;
mod bytes;
mod citext;
mod crypto;
mod dates;
pub(crate) mod documents;
pub mod element;
mod formats;
pub mod hold;
mod information;
mod jsonpath;
mod keywords;
mod known;
pub mod leaves;
mod math;
mod moments;
mod networks;
mod numerals;
pub mod operators;
pub(crate) mod patterns;
mod powers;
mod ranges;
mod records;
pub mod routine;
pub(crate) mod sample;
mod search;
mod sizes;
pub(crate) mod spread;
mod system;
mod tables;
mod text;
pub mod trigrams;
mod uuids;

pub use crate::expr::function::{Function, Param, Run};
pub use known::known;
pub(crate) use records::{DATES_MS, typed_into};
pub use records::{is_of_records, records, whole_records};
pub(crate) use system::PRIVILEGES;
pub use system::{AMBIGUOUS, HOLDS, STANDARD, folded, object_number, part_key, sequences_key, type_number};
pub use tables::{Table, as_documents, once, side_by_side};
pub(crate) use text::quote_literal;
pub use uuids::uuid_v7;

use crate::error::{error, fail, no_function, no_operator};
use crate::expr::{Expr, Node};
use crate::types::Type;
use crate::types::cast::{self, Context};
use crate::types::domain::Domain;
use nestor_model::{Result, Value};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// A row of a family's table: name, signature, what it does.
pub(crate) type Row = (&'static str, &'static str, Run);

fn param(name: &str) -> Param {
    match name {
        "any" => Param::Any,
        "anyelement" => Param::Element,
        "anyarray" => Param::Array,
        "anyrange" => Param::Range,
        "anymultirange" => Param::Multirange,
        name => Param::Type(Type::of_name(name).unwrap_or(Type::Unknown)),
    }
}

fn parse((name, signature, run): Row) -> Function {
    let (signature, strict) = match signature.strip_prefix('?') {
        Some(signature) => (signature, false),
        None => (signature, true),
    };
    let (signature, volatile) = match signature.strip_prefix('!') {
        Some(signature) => (signature, true),
        None => (signature, false),
    };
    let (args, result) = signature.split_once("->").unwrap_or(("", signature));
    let variadic = args.ends_with("...");
    let args = args.trim_end_matches("...");
    Function {
        name,
        args: args.split(',').filter(|arg| !arg.is_empty()).map(param).collect(),
        variadic,
        result: param(result),
        strict,
        volatile,
        of_session: false,
        run,
    }
}

static TABLE: LazyLock<HashMap<&'static str, Vec<Function>>> = LazyLock::new(|| {
    let families = [
        arithmetic::ROWS,
        math::ROWS,
        leaves::ROWS,
        text::ROWS,
        bytes::ROWS,
        bits::ROWS,
        crypto::ROWS,
        networks::ROWS,
        ranges::ROWS,
        ranges::CONSTRUCTORS,
        patterns::ROWS,
        numerals::ROWS,
        dates::ROWS,
        arrays::ROWS,
        documents::ROWS,
        jsonpath::ROWS,
        jsonpath::ZONED,
        information::ROWS,
        system::ROWS,
        uuids::ROWS,
        advisory::ROWS,
        sample::ROWS,
        search::ROWS,
        trigrams::ROWS,
        citext::ROWS,
    ];
    let mut out: HashMap<&'static str, Vec<Function>> = HashMap::new();
    for row in families.into_iter().chain(ranges::TABLES.iter().copied()).flatten() {
        out.entry(row.0).or_default().push(parse(*row));
    }
    for row in [system::ROWS, information::ROWS, advisory::ROWS].into_iter().flatten() {
        let all = out.get_mut(row.0).into_iter().flatten();
        all.for_each(|function| function.of_session = true);
    }
    for row in search::OF_SESSION.iter().chain(trigrams::OF_SESSION) {
        let of_session = true;
        out.entry(row.0).or_default().push(Function {
            of_session,
            ..parse(*row)
        });
    }
    out
});

/// The function `name` with these arguments; `None` when it is none that gives rows.
///
/// Errors: 42883 for arguments that it does not take.
pub fn table(name: &str, args: &[Expr]) -> Result<Option<Table>> {
    match search::table(name, args)? {
        None => tables::table(name, args),
        found => Ok(found),
    }
}

/// Reads a text as a pattern of digits, for the fuzz target.
pub(crate) fn read_pattern(text: &str) {
    numerals::read(text);
}

/// Whether there is a function of this name.
pub fn is_known(name: &str) -> bool {
    TABLE.contains_key(name)
}

/// All functions.
pub fn all() -> impl Iterator<Item = &'static Function> {
    TABLE.values().flatten()
}

/// How well arguments fit: exact matches, and preferred types. `None` when they do not.
fn fits(function: &Function, types: &[Type]) -> Option<(usize, usize)> {
    let least = function.args.len() - usize::from(function.variadic);
    if types.len() < least || (types.len() > function.args.len() && !function.variadic) {
        return None;
    }
    let (mut exact, mut preferred) = (0, 0);
    // What bounds are of, for functions of ranges, which take no others.
    let mut of_ranges: Option<Type> = None;
    for (i, ty) in types.iter().enumerate() {
        match function.args.get(i).or(function.args.last())? {
            Param::Element => {
                // Kinds of text are elements of each other's arrays.
                let is_of = |element: &Type| element == ty || element.is_text() && ty.is_text();
                let of_array = types.iter().any(|other| other.element().is_some_and(is_of));
                exact += usize::from(of_array);
            }
            Param::Any => {}
            param @ (Param::Range | Param::Multirange) => {
                let element = match param {
                    Param::Range => ty.range_element(),
                    _ => ty.multirange_element(),
                };
                match (element, &of_ranges) {
                    (Some(element), None) => {
                        of_ranges = Some(element);
                        exact += 1;
                    }
                    (Some(element), Some(known)) if element == *known => exact += 1,
                    (None, _) if *ty == Type::Unknown => {}
                    _ => return None,
                }
            }
            Param::Array => match ty {
                ty if ty.element().is_some() => exact += 1,
                Type::Unknown => {}
                _ => return None,
            },
            Param::Type(wanted) if wanted == ty => exact += 1,
            Param::Type(wanted) => {
                if !cast::exists(ty, wanted, Context::Implicit) {
                    return None;
                }
                preferred += match (ty, wanted) {
                    (Type::Unknown, Type::Text) => 2,
                    (_, Type::Float8 | Type::Timestamptz | Type::Text) => 1,
                    _ => 0,
                };
            }
        }
    }
    let takes_ranges = function
        .args
        .iter()
        .any(|param| matches!(param, Param::Range | Param::Multirange));
    if takes_ranges {
        let element = of_ranges?;
        let others = function
            .args
            .iter()
            .zip(types)
            .filter(|(param, _)| **param == Param::Element);
        for (_, ty) in others {
            if *ty != element && *ty != Type::Unknown {
                return None;
            }
        }
    }
    Some((exact, preferred))
}

/// The function `name` applied to `args`, which are cast to what it takes.
///
/// Errors: 42883 when there is none, 42725 when several are as good.
pub fn call(name: &str, args: Vec<Expr>) -> Result<Expr> {
    let types: Vec<Type> = args.iter().map(Expr::ty).collect();
    let unknown = || {
        let shown: Vec<String> = types.iter().map(ToString::to_string).collect();
        let is_operator = !name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        match (is_operator, shown.as_slice()) {
            (true, [a, b]) => no_operator(format!("{a} {name} {b}"), 2),
            (true, [a]) => no_operator(format!("{name} {a}"), 1),
            _ => no_function(format!("{name}({})", shown.join(", "))),
        }
    };
    // The name of a type is a function that casts to it, unless it is one of the grammar's words.
    let is_word = matches!(
        name,
        "int"
            | "integer"
            | "smallint"
            | "bigint"
            | "real"
            | "float"
            | "numeric"
            | "decimal"
            | "dec"
            | "boolean"
            | "bit"
            | "char"
            | "character"
            | "varchar"
            | "time"
            | "timestamp"
            | "interval"
    );
    let of_type = |args: Vec<Expr>| match (Type::of_name(name), args.as_slice()) {
        (Some(to), [arg]) if !is_word && !to.is_reg() && cast::exists(&arg.ty(), &to, Context::Explicit) => {
            coerce(arg.clone(), &to, Context::Explicit)
        }
        _ => Err(unknown()),
    };
    let Some(candidates) = TABLE.get(name) else {
        return of_type(args);
    };
    // A literal beside a value of a known type is of that type, if there is such an operator.
    let mut guesses = vec![types.clone()];
    if let [a, b] = types.as_slice() {
        match (a, b) {
            (Type::Unknown, known) if *known != Type::Unknown => guesses.insert(0, vec![known.clone(), known.clone()]),
            (known, Type::Unknown) if *known != Type::Unknown => guesses.insert(0, vec![known.clone(), known.clone()]),
            _ => {}
        }
    }
    for (i, guess) in guesses.iter().enumerate() {
        let mut best: Option<(&'static Function, (usize, usize))> = None;
        let mut tied = false;
        for candidate in candidates {
            let Some(fit) = fits(candidate, guess) else { continue };
            if i + 1 < guesses.len() && fit.0 < guess.len() {
                continue;
            }
            match &best {
                Some((_, so_far)) if *so_far > fit => {}
                Some((_, so_far)) if *so_far == fit => tied = true,
                _ => (best, tied) = (Some((candidate, fit)), false),
            }
        }
        if let Some((function, fit)) = best {
            // Of several that take a number by widening it the first of the table has the narrowest type.
            if tied && types.iter().all(|ty| *ty == Type::Unknown) && fit.1 == 0 && !types.is_empty() {
                return fail("42725", format!("function {name} is not unique"));
            }
            return bind(function, args);
        }
    }
    of_type(args)
}

fn bind(function: &'static Function, args: Vec<Expr>) -> Result<Expr> {
    // What `anyelement` stands for.
    let mut elements: Vec<Type> = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        match function.args.get(i).or(function.args.last()) {
            Some(Param::Element) => elements.push(arg.ty()),
            Some(Param::Array) => elements.extend(arg.ty().element().cloned()),
            Some(Param::Range) => elements.extend(arg.ty().range_element()),
            Some(Param::Multirange) => elements.extend(arg.ty().multirange_element()),
            _ => {}
        }
    }
    let element = match elements.is_empty() {
        true => Type::Text,
        false => cast::common(&elements).ok_or_else(|| error("42804", "arguments have no common type"))?,
    };
    let resolve = |param: &Param| match param {
        Param::Type(ty) => Some(ty.clone()),
        Param::Any => None,
        Param::Element => Some(element.clone()),
        Param::Array => Some(element.clone().array()),
        Param::Range => element.range_of(),
        Param::Multirange => element.multirange_of(),
    };
    let mut bound = Vec::with_capacity(args.len());
    for (i, arg) in args.into_iter().enumerate() {
        let param = function.args.get(i).or(function.args.last());
        let wanted = match param {
            // It is held as an array is, and says from where it counts.
            Some(Param::Array) if arg.ty().is_vector() => None,
            param => param.and_then(resolve),
        };
        bound.push(match wanted {
            Some(wanted) => coerce(arg, &wanted, Context::Implicit)?,
            None if arg.ty() == Type::Unknown => coerce(arg, &Type::Text, Context::Implicit)?,
            None => arg,
        });
    }
    let ty = resolve(&function.result).unwrap_or(Type::Text);
    if function.strict && bound.iter().any(is_null) {
        return Ok(Expr::constant(Value::Null, ty));
    }
    Ok(Node::Call {
        function,
        args: bound,
        ty,
    }
    .into())
}

/// What is null whatever stands beside it, which is then not computed: it may overflow.
pub fn is_null(arg: &Expr) -> bool {
    matches!(arg.node(), Node::Const(Value::Null, _))
}

/// An expression as one of `to`. Literals are read at once.
///
/// Errors: 42846 and 42804 when there is no cast, and those of reading a literal.
pub fn coerce(arg: Expr, to: &Type, context: Context) -> Result<Expr> {
    let from = arg.ty();
    if from == *to {
        return Ok(arg);
    }
    if let Type::Domain(own) = to {
        return as_domain(arg, own, context);
    }
    if let (Node::Row(items), Type::Composite(own)) = (arg.node(), to) {
        own.check_width(items.len())?;
    }
    match arg.node() {
        Node::Const(value, Type::Unknown) => {
            let value = cast::cast(value.clone(), &from, to, -1, true)?;
            return Ok(Expr::constant(value, to.clone()));
        }
        Node::Const(value, _) if cast::exists(&from, to, context) => {
            // What cannot be cast is an error only if it is ever evaluated.
            if let Ok(value) = cast::cast(value.clone(), &from, to, -1, true) {
                return Ok(Expr::constant(value, to.clone()));
            }
        }
        Node::Param(number, Type::Unknown) => return Ok(Node::Param(*number, to.clone()).into()),
        Node::Array(items, element) => {
            if let (Some(wanted), Type::Unknown | Type::Text) = (to.element(), element) {
                let all_literals = items.iter().all(|item| item.ty() == Type::Unknown);
                if all_literals {
                    let items = items.iter().map(|item| coerce(item.clone(), wanted, context));
                    return Ok(Node::Array(items.collect::<Result<_>>()?, wanted.clone()).into());
                }
            }
        }
        _ => {}
    }
    if !cast::exists(&from, to, context) {
        let state = if context == Context::Assignment {
            "42804"
        } else {
            "42846"
        };
        return fail(state, format!("cannot cast type {from} to {to}"));
    }
    Ok(Node::Cast {
        arg,
        to: to.clone(),
        modifier: -1,
        explicit: context == Context::Explicit,
    }
    .into())
}

/// An expression as one of a domain, whose conditions are looked at for each value.
fn as_domain(arg: Expr, own: &Arc<Domain>, context: Context) -> Result<Expr> {
    let base = own.bottom().0;
    let arg = match arg.node() {
        Node::Const(..) | Node::Param(..) | Node::Array(..) | Node::Row(_) => coerce(arg, base, context)?,
        _ => arg,
    };
    if !cast::exists(&arg.ty(), base, context) {
        let state = if context == Context::Assignment {
            "42804"
        } else {
            "42846"
        };
        return fail(state, format!("cannot cast type {} to {}", arg.ty(), own.shown()));
    }
    Ok(Node::Cast {
        arg,
        to: Type::Domain(own.clone()),
        modifier: -1,
        explicit: context == Context::Explicit,
    }
    .into())
}
