//! What a scan knows of its rows as a filter of the find layer: indexes and scans see it like a filter of a client.
//!
//! The filter may let through more than the conditions do, because an array matches by its elements there, and never less: whoever
//! planned the scan filters once more. A condition that has no such form is left out.

use super::days::{self, Moments};
use crate::catalog::{Column, Table};
use crate::expr::{Comparison, Expr, Node};
use crate::plan::pushdown::is_containment;
use crate::types::{Type, stored};
use nestor_model::{Array, Document, Result, Value, ValueRef};
use nestor_planner::relation::{Env, Scalar};

/// A filter of the find layer.
pub struct Found {
    /// The filter.
    pub filter: Document,
    /// It finds no row of which a condition does not hold. Where arrays or values of another type may match, reading such a row is an error.
    pub exact: bool,
}

/// Whether a filter finds just the values of a column that compare so with one that is [`comparable`]. Documents may hold numbers of other
/// types than that of a column that nobody declared, which are rounded when they are read.
pub(super) fn is_exact(expr: &Expr, ty: &Type, table: &Table) -> bool {
    let is_column = matches!(expr.as_moment().node(), Node::Column { .. });
    is_column
        && match ty {
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Bool | Type::ObjectId | Type::Text | Type::Varchar => true,
            Type::Date | Type::Timestamp | Type::Timestamptz => true,
            Type::Float4 | Type::Float8 | Type::Numeric => table.declared,
            _ => false,
        }
}

/// What a condition says of an expression: how that compares with values that are known.
pub(super) struct Said<'c> {
    /// The expression.
    pub expr: &'c Expr,
    /// How it compares.
    pub op: Comparison,
    /// What has the type of the values.
    pub of: &'c Expr,
    /// The value; of [`Comparison::Equal`] all those of which it is equal to one.
    pub values: Vec<Value>,
}

/// What a condition says of an expression that `is_it`.
///
/// Errors: those of the values.
pub(super) fn said<'c>(condition: &'c Expr, is_it: &dyn Fn(&Expr) -> bool, env: &Env<'_>) -> Result<Option<Said<'c>>> {
    let (expr, op, of, values) = match condition.node() {
        Node::Compare(op, a, b) if is_it(a) && b.is_constant() => (a, *op, b, vec![b.value(&[], env)?]),
        Node::Compare(op, a, b) if is_it(b) && a.is_constant() => (b, op.mirrored(), a, vec![a.value(&[], env)?]),
        Node::InList(a, items, false) if is_it(a) && items.iter().all(Expr::is_constant) => {
            let values = items.iter().map(|item| item.value(&[], env));
            (a, Comparison::Equal, a, values.collect::<Result<_>>()?)
        }
        Node::Quantified {
            op: Comparison::Equal,
            arg,
            array,
            all: false,
        } if is_it(arg) && array.is_constant() => {
            let values = match array.value(&[], env)? {
                Value::Array(items) => items.iter().map(|item| item.to_value()).collect(),
                _ => Vec::new(),
            };
            (arg, Comparison::Equal, arg, values)
        }
        _ => return Ok(None),
    };
    Ok(Some(Said { expr, op, of, values }))
}

/// The different `_id`s of which just the rows of which a condition holds have one, in order; `None` when it does not say that.
///
/// Errors: those of the values that it is compared with.
pub fn ids(condition: &Expr, table: &Table, env: &Env<'_>) -> Result<Option<Vec<Value>>> {
    let is_id = |expr: &Expr| match expr.node() {
        Node::Column { index, .. } => {
            let column = table.columns.get(*index);
            column.is_some_and(|column| column.path == "_id" && is_one_form(&column.ty))
        }
        _ => false,
    };
    let Some(said) = said(condition, &is_id, env)?.filter(|said| said.op == Comparison::Equal) else {
        return Ok(None);
    };
    let (column, values) = (said.expr, said.values);
    let ty = column.ty();
    let values = values.into_iter().filter(|value| !matches!(value, Value::Null));
    let mut values: Vec<Value> = values.map(|value| stored::write(&ty, value)).collect();
    if values.len() < 2 {
        return Ok(Some(values));
    }
    values.sort_by(|a, b| nestor_model::compare(a, b));
    values.dedup_by(|a, b| nestor_model::compare(&*a, &*b).is_eq());
    Ok(Some(values))
}

/// The filter of a scan's conditions.
///
/// Errors: those of the values that columns are compared with.
pub fn filter(conditions: &[Expr], table: &Table, env: &Env<'_>) -> Result<Found> {
    let (mut parts, mut exact) = (Vec::new(), true);
    for condition in conditions {
        match part(condition, table, env)? {
            Part::Filter(found) => {
                parts.push(Value::from(found.filter));
                exact &= found.exact;
            }
            Part::Nothing => {
                // A value that is null is equal to nothing.
                let mut filter = Document::new();
                filter.push("$alwaysFalse", 1);
                return Ok(Found { filter, exact: true });
            }
            Part::Unknown => exact = false,
        }
    }
    let mut out = Document::new();
    match parts.len() {
        0 => {}
        1 => {
            if let Some(Value::Document(doc)) = parts.pop() {
                out = doc;
            }
        }
        _ => out.push("$and", Value::Array(Array::new(parts))),
    }
    Ok(Found { filter: out, exact })
}

/// Whether values of a type that are equal are the same. Such values of `_id` are looked up as they are.
pub(super) fn is_one_form(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Bool | Type::ObjectId | Type::Text | Type::Varchar
    )
}

enum Part {
    /// This filter, or less.
    Filter(Found),
    /// No row.
    Nothing,
    /// It has no form as a filter.
    Unknown,
}

/// The path that an expression reads, and its type there.
fn path(expr: &Expr, table: &Table) -> Option<(String, Type)> {
    match expr.as_moment().node() {
        Node::Column { index, .. } => {
            let column: &Column = table.columns.get(*index)?;
            usable(&column.path).then(|| (column.path.clone(), column.ty.clone()))
        }
        Node::Field(of, path, ty) => {
            let Node::Column { index, .. } = of.node() else {
                return None;
            };
            let column = table.columns.get(*index)?;
            let whole = format!("{}.{}", column.path, path.join("."));
            (usable(&column.path) && path.iter().all(|part| usable(part))).then(|| (whole, ty.clone()))
        }
        _ => None,
    }
}

/// Names that mean something else in a path of a filter.
pub(crate) fn usable(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('$') && !name.contains('.')
}

/// Values whose order in documents is that of SQL, so that comparing them there lets no row out.
fn comparable(ty: &Type, value: &Value) -> bool {
    match (ty, value) {
        (Type::Float4 | Type::Float8, Value::Double(n)) => n.is_finite(),
        (Type::Numeric, Value::Decimal128(n)) => n.is_finite(),
        (
            Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Text
            | Type::Varchar
            | Type::Bool
            | Type::ObjectId
            | Type::Uuid,
            _,
        ) => true,
        // Documents have milliseconds.
        (Type::Timestamp | Type::Timestamptz, Value::Int64(us)) => us % 1000 == 0,
        _ => false,
    }
}

/// A value of a type as an index has it, if just equal values of the column are stored so.
pub(super) fn stored(ty: &Type, value: Value) -> Option<Value> {
    comparable(ty, &value).then(|| stored::write(ty, value))
}

fn one(path: &str, operator: &str, value: Value) -> Document {
    let mut inner = Document::new();
    inner.push(operator, value);
    let mut doc = Document::new();
    doc.push(path, inner);
    doc
}

fn part(condition: &Expr, table: &Table, env: &Env<'_>) -> Result<Part> {
    match condition.node() {
        Node::Compare(op, a, b) => {
            let (column, at, other, op) = match (path(a, table), path(b, table)) {
                (Some(at), _) if b.is_constant() => (a, at, b, *op),
                (_, Some(at)) if a.is_constant() => (b, at, a, op.mirrored()),
                _ => return Ok(Part::Unknown),
            };
            let (path, ty) = at;
            let value = other.value(&[], env)?;
            if matches!(value, Value::Null) {
                return Ok(Part::Nothing);
            }
            let exact = is_exact(column, &ty, table);
            if ty == Type::Date && op != Comparison::NotEqual {
                return Ok(match days::moments(op, &other.ty(), &value) {
                    None => Part::Nothing,
                    Some(moments) => Part::Filter(Found {
                        filter: range(&path, &moments),
                        exact,
                    }),
                });
            }
            if !comparable(&ty, &value) {
                return Ok(Part::Unknown);
            }
            let operator = match op {
                Comparison::Equal => "$eq",
                Comparison::Less => "$lt",
                Comparison::LessEqual => "$lte",
                Comparison::Greater => "$gt",
                Comparison::GreaterEqual => "$gte",
                Comparison::NotEqual => return Ok(Part::Unknown),
            };
            // Timestamps in documents are cut to milliseconds when they are read, so the bounds stay as they are.
            let found = one(&path, operator, stored::write(&ty, value));
            let may_be_nan = matches!(ty, Type::Float4 | Type::Float8 | Type::Numeric);
            // Not a number is larger than all numbers, and to the find layer it is neither larger nor smaller.
            if may_be_nan && matches!(op, Comparison::Greater | Comparison::GreaterEqual) {
                let branches = vec![found.into(), one(&path, "$eq", Value::Double(f64::NAN)).into()];
                let mut doc = Document::new();
                doc.push("$or", Value::Array(Array::new(branches)));
                return Ok(Part::Filter(Found { filter: doc, exact }));
            }
            Ok(Part::Filter(Found { filter: found, exact }))
        }
        Node::InList(a, items, false) => {
            let mut values = Vec::new();
            for item in items {
                values.push(item.value(&[], env)?);
            }
            Ok(members(a, table, values))
        }
        // An array is not null, whatever is in it.
        Node::IsNull(arg, is_not) => match path(arg, table) {
            Some((path, ty)) if !matches!(ty, Type::Array(_) | Type::Composite(_) | Type::Jsonb | Type::Json) => {
                Ok(Part::Filter(Found {
                    filter: one(&path, if *is_not { "$ne" } else { "$eq" }, Value::Null),
                    exact: false,
                }))
            }
            _ => Ok(Part::Unknown),
        },
        // What is within arrays is for indexes on them.
        Node::Quantified { array, .. } if !array.is_constant() => Ok(Part::Unknown),
        Node::Call { function, args, .. } => match args.as_slice() {
            [a, b] if is_containment(function.name, a) => contained(function.name, a, b.value(&[], env)?, table),
            _ => Ok(Part::Unknown),
        },
        Node::Quantified { arg, array, .. } => match array.value(&[], env)? {
            Value::Array(items) => Ok(members(arg, table, items.iter().map(|item| item.to_value()).collect())),
            _ => Ok(Part::Nothing),
        },
        Node::Column { .. } | Node::Field(..) => Ok(truth(condition, true, table)),
        Node::Not(arg) => Ok(truth(arg, false, table)),
        Node::IsBool {
            arg,
            is,
            negated: false,
        } => Ok(truth(arg, *is, table)),
        Node::Or(any) => {
            let (mut branches, mut exact) = (Vec::new(), true);
            for branch in any {
                let mut all = Vec::new();
                for condition in branch.conjuncts() {
                    match part(&condition, table, env)? {
                        Part::Filter(found) => {
                            all.push(Value::from(found.filter));
                            exact &= found.exact;
                        }
                        Part::Nothing => {
                            all.clear();
                            all.push(Value::Null);
                            break;
                        }
                        Part::Unknown => return Ok(Part::Unknown),
                    }
                }
                match all.as_slice() {
                    [Value::Null] => {}
                    // What always holds lets every row pass.
                    [] => return Ok(Part::Unknown),
                    [Value::Document(doc)] => branches.push(Value::from(doc.clone())),
                    _ => {
                        let mut doc = Document::new();
                        doc.push("$and", Value::Array(Array::new(all)));
                        branches.push(doc.into());
                    }
                }
            }
            if branches.is_empty() {
                return Ok(Part::Nothing);
            }
            let mut doc = Document::new();
            doc.push("$or", Value::Array(Array::new(branches)));
            Ok(Part::Filter(Found { filter: doc, exact }))
        }
        Node::Match(like) => {
            let (Some((path, ty)), Node::Const(Value::String(pattern), _)) =
                (path(&like.text, table), like.pattern.node())
            else {
                return Ok(Part::Unknown);
            };
            // From the prefix on: the end of the range is for the filter above.
            match like.prefix(pattern) {
                Some(prefix) if ty.is_text() => Ok(Part::Filter(Found {
                    filter: one(&path, "$gte", Value::String(prefix.into())),
                    exact: false,
                })),
                _ => Ok(Part::Unknown),
            }
        }
        _ => Ok(Part::Unknown),
    }
}

/// What a column of JSON contains.
fn contained(operator: &str, column: &Expr, value: Value, table: &Table) -> Result<Part> {
    let Some((path, ty)) = path(column, table) else {
        return Ok(Part::Unknown);
    };
    match (&ty, value) {
        (_, Value::Null) => Ok(Part::Nothing),
        (Type::Jsonb, value) if operator == "@>" => {
            let mut parts = Vec::new();
            leaves(&path, value.as_ref(), &mut parts);
            let filter = match parts.len() {
                0 => return Ok(Part::Unknown),
                1 => parts.swap_remove(0),
                _ => {
                    let mut doc = Document::new();
                    doc.push(
                        "$and",
                        Value::Array(Array::new(parts.into_iter().map(Value::from).collect())),
                    );
                    doc
                }
            };
            Ok(Part::Filter(Found { filter, exact: false }))
        }
        _ => Ok(Part::Unknown),
    }
}

/// The scalars within a value, each as a condition on its path: what contains the value has them there, through arrays or not.
fn leaves(path: &str, value: ValueRef<'_>, out: &mut Vec<Document>) {
    match value {
        ValueRef::Document(doc) => {
            for (name, value) in doc.iter().filter(|(name, _)| usable(name)) {
                leaves(&format!("{path}.{name}"), value, out);
            }
        }
        // Paths do not lead through arrays that are elements of arrays.
        ValueRef::Array(items) => {
            let inner = items.iter().filter(|item| !matches!(item, ValueRef::Array(_)));
            inner.for_each(|item| leaves(path, item, out));
        }
        ValueRef::String(_) | ValueRef::Bool(_) | ValueRef::Int32(_) | ValueRef::Int64(_) => {
            out.push(one(path, "$eq", value.to_value()));
        }
        // Numbers that are written with points may be kept otherwise.
        _ => {}
    }
}

/// A boolean column that is to be `is`.
fn truth(column: &Expr, is: bool, table: &Table) -> Part {
    match path(column, table) {
        Some((path, Type::Bool)) => Part::Filter(Found {
            filter: one(&path, "$eq", Value::Bool(is)),
            exact: is_exact(column, &Type::Bool, table),
        }),
        _ => Part::Unknown,
    }
}

fn members(column: &Expr, table: &Table, values: Vec<Value>) -> Part {
    let Some((path, ty)) = path(column, table) else {
        return Part::Unknown;
    };
    let values: Vec<Value> = values
        .into_iter()
        .filter(|value| !matches!(value, Value::Null))
        .collect();
    if values.is_empty() {
        return Part::Nothing;
    }
    let exact = is_exact(column, &ty, table);
    if ty == Type::Date && column.ty() == ty {
        let each = values
            .iter()
            .filter_map(|value| days::moments(Comparison::Equal, &ty, value));
        let branches = each.map(|moments| Value::from(range(&path, &moments))).collect();
        let mut filter = Document::new();
        filter.push("$or", Value::Array(Array::new(branches)));
        return Part::Filter(Found { filter, exact });
    }
    if !values.iter().all(|value| comparable(&ty, value)) {
        return Part::Unknown;
    }
    let values = values.into_iter().map(|value| stored::write(&ty, value)).collect();
    Part::Filter(Found {
        filter: one(&path, "$in", Value::Array(Array::new(values))),
        exact,
    })
}

/// Moments in a range.
fn range(path: &str, moments: &Moments) -> Document {
    let mut inner = Document::new();
    if let Some(from) = moments.from {
        inner.push("$gte", Value::DateTime(from));
    }
    if let Some(to) = moments.to {
        inner.push("$lt", Value::DateTime(to));
    }
    let mut doc = Document::new();
    doc.push(path, inner);
    doc
}
