//! Expressions whose names and types are settled, and how they are evaluated: nulls by SQL's three truth values.

pub mod function;
mod growing;
pub mod like;
mod vector;
mod walk;

pub use crate::types::compare::Comparison;

use self::function::Function;
use crate::error::fail;
use crate::types::{Type, cast, compare, integer, record};
use nestor_model::statement::{note, work};
use nestor_model::vector::Vector;
use nestor_model::{Array, Result, Value};
use nestor_planner::relation::{Chunk, Env, Scalar};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// An expression; clones share it.
#[derive(Clone, Debug)]
pub struct Expr(Arc<Node>);

/// What an expression is.
#[derive(Clone, Debug)]
pub enum Node {
    /// A value.
    Const(Value, Type),
    /// A column of the row.
    Column {
        /// Which.
        index: usize,
        /// Its name, for explain.
        name: String,
        /// Its type.
        ty: Type,
    },
    /// A column of a row of a query around this one.
    Outer {
        /// How many levels out, from 1.
        levels: usize,
        /// Which column.
        index: usize,
        /// Its name.
        name: String,
        /// Its type.
        ty: Type,
    },
    /// A parameter of the statement, from 0.
    Param(usize, Type),
    /// A function applied.
    Call {
        /// The function.
        function: &'static Function,
        /// Its arguments, of the types that it takes.
        args: Vec<Expr>,
        /// The type of its result.
        ty: Type,
    },
    /// A cast.
    Cast {
        /// Of what.
        arg: Expr,
        /// To what.
        to: Type,
        /// The modifier of the type; -1 for none.
        modifier: i32,
        /// It was written down.
        explicit: bool,
    },
    /// All hold.
    And(Vec<Expr>),
    /// One holds.
    Or(Vec<Expr>),
    /// It does not hold.
    Not(Expr),
    /// `IS NULL`, or `IS NOT NULL`.
    IsNull(Expr, bool),
    /// `IS TRUE`, `IS FALSE`; `negated` for `IS NOT`.
    IsBool {
        /// Of what.
        arg: Expr,
        /// Which.
        is: bool,
        /// Not.
        negated: bool,
    },
    /// A comparison of two values of one type.
    Compare(Comparison, Expr, Expr),
    /// `IS DISTINCT FROM`; `true` for `IS NOT`.
    Distinct(Expr, Expr, bool),
    /// `CASE`.
    Case {
        /// What its conditions compare, as [`Node::Compared`], where it is not the same each time.
        operand: Option<Expr>,
        /// Conditions and results.
        arms: Vec<(Expr, Expr)>,
        /// The result otherwise.
        otherwise: Option<Expr>,
        /// The type of all.
        ty: Type,
    },
    /// The operand of the `CASE` around it.
    Compared(Type),
    /// The first that is not null.
    Coalesce(Vec<Expr>, Type),
    /// `GREATEST`, or `LEAST`.
    Extreme(Vec<Expr>, bool),
    /// `IN` a list; `true` for `NOT IN`.
    InList(Expr, Vec<Expr>, bool),
    /// A comparison with the elements of an array: with any, or with all of them.
    Quantified {
        /// The comparison.
        op: Comparison,
        /// What is compared.
        arg: Expr,
        /// The array.
        array: Expr,
        /// With all.
        all: bool,
    },
    /// `ARRAY[...]`.
    Array(Vec<Expr>, Type),
    /// `ROW(...)`.
    Row(Vec<Expr>),
    /// Elements of an array: one, or from one to one.
    Subscript(Expr, Expr),
    /// A part of an array.
    Slice(Expr, Option<Expr>, Option<Expr>),
    /// A field of a struct: the value at a path of a document, as a type.
    Field(Expr, Vec<String>, Type),
    /// `LIKE` and regular expressions.
    Match(like::Match),
}

impl From<Node> for Expr {
    fn from(node: Node) -> Self {
        Self(Arc::new(node))
    }
}

impl Expr {
    /// What it is.
    pub fn node(&self) -> &Node {
        &self.0
    }

    /// A value.
    pub fn constant(value: Value, ty: Type) -> Self {
        Node::Const(value, ty).into()
    }

    /// Truth.
    pub fn bool(value: bool) -> Self {
        Self::constant(Value::Bool(value), Type::Bool)
    }

    /// A column.
    pub fn column(index: usize, name: impl Into<String>, ty: Type) -> Self {
        Node::Column {
            index,
            name: name.into(),
            ty,
        }
        .into()
    }

    /// Its type, which is no domain.
    pub fn ty(&self) -> Type {
        let ty = match self.node() {
            Node::Const(_, ty) | Node::Param(_, ty) | Node::Compared(ty) => ty.clone(),
            Node::Column { ty, .. } | Node::Outer { ty, .. } | Node::Call { ty, .. } => ty.clone(),
            Node::Cast { to, .. } => to.clone(),
            Node::Case { ty, .. } | Node::Coalesce(_, ty) | Node::Field(_, _, ty) => ty.clone(),
            Node::Extreme(items, _) => items.first().map_or(Type::Unknown, Expr::ty),
            Node::Array(_, element) => element.clone().array(),
            Node::Row(_) => Type::Record,
            Node::Subscript(array, _) => array.ty().element().cloned().unwrap_or(Type::Unknown),
            Node::Slice(array, ..) => array.ty(),
            _ => Type::Bool,
        };
        ty.plain()
    }

    /// The modifier of its type, -1 for none.
    pub fn modifier(&self) -> i32 {
        match self.node() {
            Node::Cast { modifier, .. } => *modifier,
            _ => -1,
        }
    }

    /// Both hold.
    pub fn and(self, other: Self) -> Self {
        let mut all = self.conjuncts();
        all.extend(other.conjuncts());
        Self::all(all)
    }

    /// All hold.
    pub fn all(mut conditions: Vec<Self>) -> Self {
        match conditions.len() {
            0 => Self::bool(true),
            1 => conditions.swap_remove(0),
            _ => Node::And(conditions).into(),
        }
    }

    /// The conditions that have to hold together.
    pub fn conjuncts(&self) -> Vec<Self> {
        match self.node() {
            Node::And(all) => all.iter().flat_map(Self::conjuncts).collect(),
            Node::Const(Value::Bool(true), _) => Vec::new(),
            _ => vec![self.clone()],
        }
    }
}

impl Expr {
    /// Its value for a row, where it stands if it stands somewhere.
    ///
    /// Errors: those of what it computes.
    fn seen<'v>(&'v self, row: &'v [Value], env: &'v Env<'_>) -> Result<Cow<'v, Value>> {
        let found = match self.node() {
            Node::Const(value, _) => Some(value),
            Node::Column { index, .. } => row.get(*index),
            Node::Param(number, _) => env.params.get(*number),
            _ => return self.value(row, env).map(Cow::Owned),
        };
        note(1);
        Ok(Cow::Borrowed(found.unwrap_or(&Value::Null)))
    }
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(b) => Some(*b),
        _ => None,
    }
}

fn boolean(value: Option<bool>) -> Value {
    value.map_or(Value::Null, Value::Bool)
}

/// Compares by SQL's three truth values.
pub fn compared(op: Comparison, ty: &Type, a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Value::Null,
        // Rows are compared column by column, and a null in one makes the answer unknown unless it is settled before.
        (Value::Array(x), Value::Array(y)) if *ty == Type::Record => {
            for (a, b) in x.iter().zip(y.iter()) {
                let (a, b) = (a.to_value(), b.to_value());
                if a.is_nullish() || b.is_nullish() {
                    return match op {
                        Comparison::Equal | Comparison::NotEqual => {
                            let differs = x.iter().zip(y.iter()).any(|(a, b)| {
                                let (a, b) = (a.to_value(), b.to_value());
                                !a.is_nullish() && !b.is_nullish() && nestor_model::compare(&a, &b).is_ne()
                            });
                            match differs {
                                true => Value::Bool(op == Comparison::NotEqual),
                                false => Value::Null,
                            }
                        }
                        _ => Value::Null,
                    };
                }
                let order = nestor_model::compare(&a, &b);
                if order.is_ne() {
                    return Value::Bool(op.of(order));
                }
            }
            Value::Bool(op.of(x.len().cmp(&y.len())))
        }
        (a, b) => Value::Bool(op.of(compare::compare(ty, a, b))),
    }
}

impl Scalar for Expr {
    fn value(&self, row: &[Value], env: &Env<'_>) -> Result<Value> {
        note(1);
        match self.node() {
            Node::Const(value, _) => Ok(value.clone()),
            Node::Column { index, .. } => Ok(row.get(*index).cloned().unwrap_or(Value::Null)),
            Node::Outer { levels, index, .. } => {
                let outer = env.outer(*levels).and_then(|row| row.get(*index));
                Ok(outer.cloned().unwrap_or(Value::Null))
            }
            Node::Param(number, _) => Ok(env.params.get(*number).cloned().unwrap_or(Value::Null)),
            Node::Call { function, args, .. } => {
                let is_null =
                    |values: &[Value]| function.strict && values.iter().any(|value| matches!(value, Value::Null));
                // Two arguments, which is what operators have, need no list of their own.
                if let [a, b] = args.as_slice() {
                    let both = [a.value(row, env)?, b.value(row, env)?];
                    if is_null(&both) {
                        return Ok(Value::Null);
                    }
                    work(1)?;
                    return (function.run)(&both, env, args);
                }
                let values = args.iter().map(|arg| arg.value(row, env)).collect::<Result<Vec<_>>>()?;
                if is_null(&values) {
                    return Ok(Value::Null);
                }
                work(1)?;
                (function.run)(&values, env, args)
            }
            Node::Cast {
                arg,
                to,
                modifier,
                explicit,
            } => cast::cast(arg.value(row, env)?, &arg.ty(), to, *modifier, *explicit),
            Node::And(all) => {
                let mut unknown = false;
                for part in all {
                    match truth(&part.value(row, env)?) {
                        Some(false) => return Ok(Value::Bool(false)),
                        Some(true) => {}
                        None => unknown = true,
                    }
                }
                Ok(boolean((!unknown).then_some(true)))
            }
            Node::Or(any) => {
                let mut unknown = false;
                for part in any {
                    match truth(&part.value(row, env)?) {
                        Some(true) => return Ok(Value::Bool(true)),
                        Some(false) => {}
                        None => unknown = true,
                    }
                }
                Ok(boolean((!unknown).then_some(false)))
            }
            Node::Not(arg) => Ok(boolean(truth(&arg.value(row, env)?).map(|b| !b))),
            Node::IsNull(arg, negated) => {
                let value = arg.value(row, env)?;
                let is_null = match &value {
                    Value::Array(items) if arg.ty() == Type::Record => match negated {
                        // A row is not null when no column is.
                        true => return Ok(Value::Bool(items.iter().all(|item| !item.is_nullish()))),
                        false => items.iter().all(|item| item.is_nullish()),
                    },
                    value @ Value::Document(_) => match arg.ty() {
                        Type::Composite(own) => return Ok(Value::Bool(own.is_null(value, *negated))),
                        _ => false,
                    },
                    value => matches!(value, Value::Null),
                };
                Ok(Value::Bool(is_null != *negated))
            }
            Node::IsBool { arg, is, negated } => {
                Ok(Value::Bool((truth(&arg.value(row, env)?) == Some(*is)) != *negated))
            }
            Node::Compare(op, a, b) => {
                let (x, y) = (a.seen(row, env)?, b.seen(row, env)?);
                Ok(match a.node() {
                    Node::Column { ty, .. } => compared(*op, ty, &x, &y),
                    _ => compared(*op, &a.ty(), &x, &y),
                })
            }
            Node::Distinct(a, b, negated) => {
                let distinct = match (a.value(row, env)?, b.value(row, env)?) {
                    (Value::Null, Value::Null) => false,
                    (Value::Null, _) | (_, Value::Null) => true,
                    (x, y) => compare::compare(&a.ty(), &x, &y).is_ne(),
                };
                Ok(Value::Bool(distinct != *negated))
            }
            Node::Compared(_) => Ok(env.compared.cloned().unwrap_or(Value::Null)),
            Node::Case {
                operand,
                arms,
                otherwise,
                ..
            } => {
                let operand = operand.as_ref().map(|operand| operand.value(row, env)).transpose()?;
                let within = Env {
                    compared: operand.as_ref(),
                    ..*env
                };
                for (condition, result) in arms {
                    if condition.holds(row, &within)? {
                        return result.value(row, env);
                    }
                }
                otherwise
                    .as_ref()
                    .map_or(Ok(Value::Null), |result| result.value(row, env))
            }
            Node::Coalesce(items, _) => {
                for item in items {
                    let value = item.value(row, env)?;
                    if !matches!(value, Value::Null) {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            Node::Extreme(items, largest) => {
                let mut found = Value::Null;
                for item in items {
                    let value = item.value(row, env)?;
                    let better = match (&found, &value) {
                        (_, Value::Null) => false,
                        (Value::Null, _) => true,
                        (found, value) => {
                            let order = compare::compare(&item.ty(), value, found);
                            if *largest { order.is_gt() } else { order.is_lt() }
                        }
                    };
                    if better {
                        found = value;
                    }
                }
                Ok(found)
            }
            Node::InList(arg, items, negated) => {
                let value = arg.seen(row, env)?;
                if matches!(*value, Value::Null) {
                    return Ok(Value::Null);
                }
                let ty = arg.ty();
                let mut unknown = false;
                for item in items {
                    let found = compared(Comparison::Equal, &ty, &value, &*item.seen(row, env)?);
                    match truth(&found) {
                        Some(true) => return Ok(Value::Bool(!negated)),
                        Some(false) => {}
                        None => unknown = true,
                    }
                }
                Ok(boolean((!unknown).then_some(*negated)))
            }
            Node::Quantified { op, arg, array, all } => {
                let (value, array) = (arg.value(row, env)?, array.value(row, env)?);
                let Value::Array(items) = array else {
                    return Ok(Value::Null);
                };
                let ty = arg.ty();
                let items = match crate::types::arrays::nests(&ty) {
                    true => crate::types::arrays::leaves(items),
                    false => items,
                };
                let mut unknown = false;
                for item in items.iter() {
                    note(1);
                    match truth(&compared(*op, &ty, &value, &item.to_value())) {
                        Some(holds) if holds != *all => return Ok(Value::Bool(holds)),
                        Some(_) => {}
                        None => unknown = true,
                    }
                }
                Ok(boolean((!unknown).then_some(*all)))
            }
            Node::Array(items, _) if items.first().is_some_and(|item| item.ty().element().is_some()) => {
                let items = items.iter().map(|item| item.value(row, env));
                crate::types::arrays::of_arrays(items.collect::<Result<_>>()?)
            }
            Node::Row(items) => {
                let fields = items.iter().map(|item| {
                    let value = item.value(row, env)?;
                    Ok(record::held(&item.ty(), value))
                });
                Ok(Value::Array(Array::new(fields.collect::<Result<_>>()?)))
            }
            Node::Array(items, _) => {
                let items = items.iter().map(|item| item.value(row, env));
                Ok(Value::Array(Array::new(items.collect::<Result<_>>()?)))
            }
            Node::Subscript(array, at) => {
                let (array, at) = (array.value(row, env)?, at.value(row, env)?);
                let (Value::Array(items), Some(at)) = (array, integer(&at)) else {
                    return Ok(Value::Null);
                };
                let at = at.checked_sub(1).and_then(|at| usize::try_from(at).ok());
                let found = at.and_then(|at| items.as_ref().get(at));
                // Of arrays with several dimensions a single subscript has no element.
                Ok(match found.map(|item| item.to_value()) {
                    Some(Value::Array(_)) if crate::types::arrays::nests(&self.ty()) => Value::Null,
                    found => found.unwrap_or(Value::Null),
                })
            }
            Node::Slice(array, from, to) => {
                let Value::Array(items) = array.value(row, env)? else {
                    return Ok(Value::Null);
                };
                let bound = |expr: &Option<Expr>, open: i64| -> Result<Option<i64>> {
                    match expr {
                        None => Ok(Some(open)),
                        Some(expr) => Ok(integer(&expr.value(row, env)?)),
                    }
                };
                let (from, to) = (bound(from, 1)?, bound(to, items.len() as i64)?);
                let (Some(from), Some(to)) = (from, to) else {
                    return Ok(Value::Null);
                };
                let numbered = (1i64..).zip(items.iter());
                let part = numbered
                    .filter(|(i, _)| (from..=to).contains(i))
                    .map(|(_, item)| item.to_value());
                Ok(Value::Array(Array::new(part.collect())))
            }
            Node::Field(arg, path, ty) => {
                let value = arg.value(row, env)?;
                let mut at = value.as_ref();
                for name in path {
                    at = match at {
                        nestor_model::ValueRef::Document(doc) => {
                            doc.get(name).unwrap_or(nestor_model::ValueRef::Missing)
                        }
                        _ => nestor_model::ValueRef::Missing,
                    };
                }
                crate::types::stored::read(ty, at, &path.join("."))
            }
            Node::Match(like) => like.value(row, env),
        }
    }

    fn is_volatile(&self) -> bool {
        Expr::is_volatile(self)
    }

    fn is_portable(&self) -> bool {
        !self.is_of_session()
    }

    fn may_grow(&self) -> bool {
        growing::may_grow(self)
    }

    fn vector(&self, chunk: &Chunk, env: &Env<'_>) -> Result<Arc<Vector>> {
        vector::vector(self, chunk, env)
    }

    fn columns(&self, width: usize) -> Vec<bool> {
        let mut used = vec![false; width];
        self.for_each_column(&mut |column| {
            if let Some(is_used) = used.get_mut(column) {
                *is_used = true;
            }
        });
        used
    }

    fn place(&self) -> Option<usize> {
        match self.node() {
            Node::Column { index, .. } => Some(*index),
            _ => None,
        }
    }

    fn follows_from(&self, places: &[usize]) -> bool {
        match self.node() {
            Node::Column { index, ty, .. } => places.contains(index) && compare::is_exact(ty),
            Node::Call { function, .. } if function.volatile => false,
            _ => self.parts().into_iter().all(|part| part.follows_from(places)),
        }
    }

    fn is_literal(&self) -> bool {
        matches!(self.node(), Node::Const(..))
    }

    fn compare(&self, a: &Value, b: &Value) -> Ordering {
        compare::compare(&self.ty(), a, b)
    }

    fn key(&self, value: Value) -> Value {
        match self.node() {
            Node::Column { ty, .. } => compare::key(ty, value),
            _ => compare::key(&self.ty(), value),
        }
    }

    fn is_own_key(&self) -> bool {
        compare::is_own_key(&self.ty())
    }

    fn is_by_bytes(&self) -> bool {
        matches!(self.ty(), Type::Text | Type::Varchar)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: &[Expr], between: &str| {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            items.join(between)
        };
        match self.node() {
            Node::Const(Value::Null, _) => f.write_str("NULL"),
            Node::Const(value, ty) if ty.is_number() || *ty == Type::Bool => {
                f.write_str(&crate::types::output::text(ty, value))
            }
            Node::Const(value, ty) => {
                let text = crate::types::output::text(ty, value).replace('\'', "''");
                match ty {
                    Type::Unknown => write!(f, "'{text}'"),
                    ty => write!(f, "'{text}'::{ty}"),
                }
            }
            Node::Column { name, .. } | Node::Outer { name, .. } => f.write_str(name),
            Node::Param(number, _) => write!(f, "${}", number + 1),
            Node::Call { function, args, .. } if function.name == function::ROUTINE => match args.as_slice() {
                // What follows its number is what it is given.
                [name, _, args @ ..] => match name.node() {
                    Node::Const(Value::String(name), _) => write!(f, "{name}({})", list(args, ", ")),
                    _ => f.write_str(function.name),
                },
                _ => f.write_str(function.name),
            },
            Node::Call { function, args, .. } => match (function.is_operator(), args.as_slice()) {
                (true, [a, b]) => write!(f, "({a} {} {b})", function.name),
                (true, [a]) => write!(f, "({}{a})", function.name),
                _ => write!(f, "{}({})", function.name, list(args, ", ")),
            },
            Node::Cast { arg, to, modifier, .. } => write!(f, "({arg})::{}", to.format(*modifier)),
            Node::And(all) => write!(f, "({})", list(all, " AND ")),
            Node::Or(any) => write!(f, "({})", list(any, " OR ")),
            Node::Not(arg) => write!(f, "(NOT {arg})"),
            Node::IsNull(arg, false) => write!(f, "({arg} IS NULL)"),
            Node::IsNull(arg, true) => write!(f, "({arg} IS NOT NULL)"),
            Node::IsBool { arg, is, negated } => {
                let not = if *negated { "NOT " } else { "" };
                write!(f, "({arg} IS {not}{})", if *is { "TRUE" } else { "FALSE" })
            }
            Node::Compare(op, a, b) => write!(f, "({a} {} {b})", op.sign()),
            Node::Distinct(a, b, negated) => {
                write!(f, "({a} IS {}DISTINCT FROM {b})", if *negated { "NOT " } else { "" })
            }
            Node::Case { .. } => f.write_str("CASE ... END"),
            Node::Compared(_) => f.write_str("CASE"),
            Node::Coalesce(items, _) => write!(f, "COALESCE({})", list(items, ", ")),
            Node::Extreme(items, largest) => {
                write!(
                    f,
                    "{}({})",
                    if *largest { "GREATEST" } else { "LEAST" },
                    list(items, ", ")
                )
            }
            Node::InList(arg, items, negated) => {
                write!(
                    f,
                    "({arg} {}IN ({}))",
                    if *negated { "NOT " } else { "" },
                    list(items, ", ")
                )
            }
            Node::Quantified { op, arg, array, all } => {
                write!(
                    f,
                    "({arg} {} {} ({array}))",
                    op.sign(),
                    if *all { "ALL" } else { "ANY" }
                )
            }
            Node::Array(items, _) => write!(f, "ARRAY[{}]", list(items, ", ")),
            Node::Row(items) => write!(f, "ROW({})", list(items, ", ")),
            Node::Subscript(array, at) => write!(f, "{array}[{at}]"),
            Node::Slice(array, from, to) => {
                let show = |bound: &Option<Expr>| bound.as_ref().map_or(String::new(), ToString::to_string);
                write!(f, "{array}[{}:{}]", show(from), show(to))
            }
            Node::Field(arg, path, _) => write!(f, "{arg}.{}", path.join(".")),
            Node::Match(like) => write!(f, "{like}"),
        }
    }
}

/// The error of a statement that has no value where it needs one.
pub fn no_value<T>(what: &str) -> Result<T> {
    fail("22004", format!("{what} must not be null"))
}
