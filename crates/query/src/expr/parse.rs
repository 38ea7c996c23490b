//! From BSON to [`Expr`]: literals, paths, variables, objects, arrays, and the table of operators.

use super::families::string::check_literal;
use super::families::{FAMILIES, date};
use super::path::FieldPath;
use super::{EvalFn, Expr, Node};
use crate::env::{Scope, check_variable_reference};
use crate::field_names::{check_field_name, validate_path};
use nestor_model::{DocRef, Error, ErrorCode, Result, Value, ValueRef};
use std::collections::HashMap;
use std::sync::LazyLock;

/// How an operator takes its arguments.
pub(crate) enum Form {
    /// A list of `min` to `max` arguments; a single one need not be in an array.
    List { min: usize, max: usize, eval: EvalFn },
    /// Parses by itself.
    Custom(fn(&'static str, ValueRef<'_>, &mut Scope) -> Result<Expr>),
}

/// One operator.
pub(crate) struct OpDef {
    pub name: &'static str,
    pub form: Form,
}

impl OpDef {
    /// Exactly `n` arguments.
    pub(crate) const fn fixed(name: &'static str, n: usize, eval: EvalFn) -> Self {
        Self::range(name, n, n, eval)
    }
    /// `min` to `max` arguments.
    pub(crate) const fn range(name: &'static str, min: usize, max: usize, eval: EvalFn) -> Self {
        Self {
            name,
            form: Form::List { min, max, eval },
        }
    }
    /// Any number of arguments.
    pub(crate) const fn variadic(name: &'static str, eval: EvalFn) -> Self {
        Self::range(name, 0, usize::MAX, eval)
    }
    /// Parses by itself.
    pub(crate) const fn custom(
        name: &'static str,
        parse: fn(&'static str, ValueRef<'_>, &mut Scope) -> Result<Expr>,
    ) -> Self {
        Self {
            name,
            form: Form::Custom(parse),
        }
    }
}

static OPERATORS: LazyLock<HashMap<&'static str, &'static OpDef>> = LazyLock::new(|| {
    FAMILIES
        .iter()
        .chain(&date::TABLES)
        .flat_map(|family| family.iter())
        .map(|op| (op.name, op))
        .collect()
});

impl Expr {
    /// Parses any expression: a literal, `$path`, `$$variable`, an object or array of expressions, or an
    /// operator. Errors: those of the parts; 168 for an unknown operator, 15983 for more than one in an object.
    pub fn parse(value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
        let expr = Self::parse_part(value, scope)?;
        if scope.is_outermost()
            && !scope.has_late_failures()
            && let Some(error) = expr.failure()
        {
            return Err(error);
        }
        Ok(expr)
    }

    fn parse_part(value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
        match value {
            ValueRef::String(text) if text.starts_with('$') => parse_reference(text, scope),
            ValueRef::Document(doc) => scope.nested(|scope| parse_object(doc, scope)),
            ValueRef::Array(items) => scope.nested(|scope| {
                let items: Vec<Expr> = items.iter().map(|v| Expr::parse(v, scope)).collect::<Result<_>>()?;
                Expr::array_of(items)
            }),
            literal => {
                check_literal(literal)?;
                Ok(Expr::constant_of(literal.to_value()))
            }
        }
    }

    /// The names of all operators, with `$`, in no particular order.
    pub fn operators() -> impl Iterator<Item = &'static str> {
        OPERATORS.keys().copied()
    }

    /// True when `name` (with `$`) is an operator of expressions.
    pub fn is_operator(name: &str) -> bool {
        OPERATORS.contains_key(name)
    }
}

/// `$path` or `$$variable.path`.
fn parse_reference(text: &str, scope: &mut Scope) -> Result<Expr> {
    let Some(reference) = text.strip_prefix("$$") else {
        let path = &text[1..];
        if path.is_empty() {
            return Err(Error::location(16872, "'$' by itself is not a valid field path"));
        }
        check_path(path)?;
        return Ok(Expr(Node::Path(scope.current(), FieldPath::new(path))));
    };
    let (name, path) = match reference.split_once('.') {
        Some((name, path)) => (name, Some(path)),
        None => (reference, None),
    };
    check_variable_reference(name)?;
    if scope.is_redact_variable(name) && path.is_none() {
        return Ok(Expr::constant_of(name.to_ascii_lowercase()));
    }
    let var = scope.resolve(name)?;
    match path {
        None => Ok(Expr(Node::Variable(var))),
        Some("") => Err(Error::location(40353, "a field path must not end with a '.'")),
        Some(path) => {
            check_path(path)?;
            Ok(Expr(Node::Path(var, FieldPath::new(path))))
        }
    }
}

/// As [`validate_path`]; in expressions MongoDB has a code of its own for a path of too many components, 5984700.
fn check_path(path: &str) -> Result<()> {
    validate_path(path).map_err(|error| match error.code() {
        ErrorCode::Overflow => Error::location(5_984_700, error.message()),
        _ => error,
    })
}

fn parse_object(doc: DocRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let mut fields = Vec::new();
    for (name, value) in doc {
        if name.starts_with('$') && fields.is_empty() {
            let count = doc.iter().count();
            if count != 1 {
                return Err(Error::location(
                    15983,
                    format!(
                        "an expression must contain exactly one field, the name of the operator; found {count} fields in {doc:?}"
                    ),
                ));
            }
            return parse_operator(name, value, scope);
        }
        if name.is_empty() {
            return Err(Error::location(
                15998,
                "field names of an object expression must not be empty strings",
            ));
        }
        check_field_name(name)?;
        fields.push((name.into(), Expr::parse(value, scope)?));
    }
    if fields.is_empty() {
        return Ok(Expr::constant_of(Value::Document(doc.to_document())));
    }
    Expr::object_of(fields)
}

fn parse_operator(name: &str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let Some(op) = OPERATORS.get(name) else {
        return Err(Error::new(
            ErrorCode::InvalidPipelineOperator,
            format!("Unrecognized expression '{name}'"),
        ));
    };
    match op.form {
        Form::Custom(parse) => parse(op.name, value, scope),
        Form::List { min, max, eval } => {
            let args = parse_list(op.name, value, min, max, scope)?;
            Expr::call_in(scope, op.name, eval, args)
        }
    }
}

/// The arguments of a positional operator. Errors: 16020 for a wrong fixed count, 28667 outside a range.
pub(crate) fn parse_list(
    name: &str,
    value: ValueRef<'_>,
    min: usize,
    max: usize,
    scope: &mut Scope,
) -> Result<Box<[Expr]>> {
    let args: Box<[Expr]> = match value {
        ValueRef::Array(items) => items.iter().map(|v| Expr::parse(v, scope)).collect::<Result<_>>()?,
        single => Box::new([Expr::parse(single, scope)?]),
    };
    let given = args.len();
    if min == max && given != min {
        return Err(Error::location(
            16020,
            format!("expression {name} takes exactly {min} arguments. {given} were passed in."),
        ));
    }
    if given < min || given > max {
        return Err(Error::location(
            28667,
            format!("expression {name} takes at least {min} arguments, and at most {max}, but {given} were passed in."),
        ));
    }
    Ok(args)
}
