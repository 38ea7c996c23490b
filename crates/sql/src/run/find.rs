//! What a scan knows of its rows as a filter of the find layer: indexes and scans see it like a filter of a client.
//!
//! The filter may let through more than the conditions do, because an array matches by its elements there, and never less: whoever
//! planned the scan filters once more. A condition that has no such form is left out.

use crate::catalog::{Column, Table};
use crate::expr::{Comparison, Expr, Node};
use crate::types::{Type, stored};
use nestor_model::{Array, Document, Result, Value};
use nestor_planner::relation::{Env, Scalar};

/// Whether the filter of a scan's conditions finds no row of which one does not hold. Where arrays or values of another type may match,
/// reading such a row is an error.
pub fn is_exact(conditions: &[Expr], table: &Table) -> bool {
    let is_plain = |expr: &Expr| match expr.node() {
        Node::Column { .. } => path(expr, table).is_some_and(|(_, ty)| {
            matches!(
                ty,
                Type::Int2 | Type::Int4 | Type::Int8 | Type::Bool | Type::ObjectId | Type::Text | Type::Varchar
            )
        }),
        _ => false,
    };
    conditions.iter().all(|condition| match condition.node() {
        Node::Compare(op, a, b) => {
            let compares = is_plain(a) && b.is_constant() || is_plain(b) && a.is_constant();
            compares && *op != Comparison::NotEqual
        }
        Node::InList(a, items, false) => is_plain(a) && items.iter().all(Expr::is_constant),
        Node::Quantified {
            op: Comparison::Equal,
            arg,
            array,
            all: false,
        } => is_plain(arg) && array.is_constant(),
        Node::Or(any) => any.iter().all(|branch| is_exact(&branch.conjuncts(), table)),
        _ => false,
    })
}

/// The different `_id`s of which rows have one because of a condition, in order; `None` when it does not say that.
///
/// Errors: those of the values that it is compared with.
pub fn ids(condition: &Expr, table: &Table, env: &Env<'_>) -> Result<Option<Vec<Value>>> {
    let is_id = |expr: &Expr| {
        matches!(expr.node(), Node::Column { .. }) && path(expr, table).is_some_and(|(path, _)| path == "_id")
    };
    if !is_exact(std::slice::from_ref(condition), table) {
        return Ok(None);
    }
    let (column, values) = match condition.node() {
        Node::Compare(Comparison::Equal, a, b) if is_id(a) => (a, vec![b.value(&[], env)?]),
        Node::Compare(Comparison::Equal, a, b) if is_id(b) => (b, vec![a.value(&[], env)?]),
        Node::InList(a, items, false) if is_id(a) => {
            let values = items.iter().map(|item| item.value(&[], env));
            (a, values.collect::<Result<_>>()?)
        }
        Node::Quantified { arg, array, .. } if is_id(arg) => match array.value(&[], env)? {
            Value::Array(items) => (arg, items.iter().map(|item| item.to_value()).collect()),
            _ => return Ok(Some(Vec::new())),
        },
        _ => return Ok(None),
    };
    let ty = column.ty();
    let values = values.into_iter().filter(|value| !matches!(value, Value::Null));
    let mut values: Vec<Value> = values.map(|value| stored::write(&ty, value)).collect();
    values.sort_by(|a, b| nestor_model::compare(a, b));
    values.dedup_by(|a, b| nestor_model::compare(&*a, &*b).is_eq());
    Ok(Some(values))
}

/// The filter of a scan's conditions.
///
/// Errors: those of the values that columns are compared with.
pub fn filter(conditions: &[Expr], table: &Table, env: &Env<'_>) -> Result<Document> {
    let mut parts = Vec::new();
    for condition in conditions {
        match part(condition, table, env)? {
            Part::Filter(doc) => parts.push(Value::from(doc)),
            Part::Nothing => {
                // A value that is null is equal to nothing.
                let mut doc = Document::new();
                doc.push("$alwaysFalse", 1);
                return Ok(doc);
            }
            Part::Unknown => {}
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
    Ok(out)
}

enum Part {
    /// This filter, or less.
    Filter(Document),
    /// No row.
    Nothing,
    /// It has no form as a filter.
    Unknown,
}

/// The path that an expression reads, and its type there.
fn path(expr: &Expr, table: &Table) -> Option<(String, Type)> {
    match expr.node() {
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
pub(super) fn usable(name: &str) -> bool {
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
        (Type::Date, _) => true,
        _ => false,
    }
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
            let (at, value, op) = match (path(a, table), path(b, table)) {
                (Some(at), _) if b.is_constant() => (at, b, *op),
                (_, Some(at)) if a.is_constant() => (at, a, op.mirrored()),
                _ => return Ok(Part::Unknown),
            };
            let (path, ty) = at;
            let value = value.value(&[], env)?;
            if matches!(value, Value::Null) {
                return Ok(Part::Nothing);
            }
            // A date in documents is a moment; a day is all moments from its beginning on.
            if !comparable(&ty, &value) || (ty == Type::Date && op != Comparison::GreaterEqual) {
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
                return Ok(Part::Filter(doc));
            }
            Ok(Part::Filter(found))
        }
        Node::InList(a, items, false) => {
            let Some((path, ty)) = path(a, table) else {
                return Ok(Part::Unknown);
            };
            let mut values = Vec::new();
            for item in items {
                values.push(item.value(&[], env)?);
            }
            members(&path, &ty, values)
        }
        // An array is not null, whatever is in it.
        Node::IsNull(arg, is_not) => match path(arg, table) {
            Some((path, ty)) if !matches!(ty, Type::Array(_) | Type::Jsonb | Type::Json) => Ok(Part::Filter(one(
                &path,
                if *is_not { "$ne" } else { "$eq" },
                Value::Null,
            ))),
            _ => Ok(Part::Unknown),
        },
        Node::Quantified { arg, array, .. } => {
            let Some((path, ty)) = path(arg, table) else {
                return Ok(Part::Unknown);
            };
            match array.value(&[], env)? {
                Value::Array(items) => members(&path, &ty, items.iter().map(|item| item.to_value()).collect()),
                _ => Ok(Part::Nothing),
            }
        }
        Node::Or(any) => {
            let mut branches = Vec::new();
            for branch in any {
                let mut all = Vec::new();
                for condition in branch.conjuncts() {
                    match part(&condition, table, env)? {
                        Part::Filter(doc) => all.push(Value::from(doc)),
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
            Ok(Part::Filter(doc))
        }
        Node::Match(like) => {
            let (Some((path, ty)), Node::Const(Value::String(pattern), _)) =
                (path(&like.text, table), like.pattern.node())
            else {
                return Ok(Part::Unknown);
            };
            // From the prefix on: the end of the range is for the filter above.
            match like.prefix(pattern) {
                Some(prefix) if ty.is_text() => Ok(Part::Filter(one(&path, "$gte", Value::String(prefix.into())))),
                _ => Ok(Part::Unknown),
            }
        }
        _ => Ok(Part::Unknown),
    }
}

fn members(path: &str, ty: &Type, values: Vec<Value>) -> Result<Part> {
    let values: Vec<Value> = values
        .into_iter()
        .filter(|value| !matches!(value, Value::Null))
        .collect();
    if *ty == Type::Date || !values.iter().all(|value| comparable(ty, value)) {
        return Ok(Part::Unknown);
    }
    if values.is_empty() {
        return Ok(Part::Nothing);
    }
    let values = values.into_iter().map(|value| stored::write(ty, value)).collect();
    Ok(Part::Filter(one(path, "$in", Value::Array(Array::new(values)))))
}
