//! The bound of a partition as a condition on documents, which holds for whoever writes them: as far as filters say it. Keys that are computed, and numbers
//! in ranges that may be none, have no such form; for them SQL alone looks.

use super::super::alter;
use crate::catalog::Table;
use crate::catalog::partition::{Bound, End, Keys, Level, Strategy};
use crate::expr::Node;
use crate::run::find::usable;
use crate::run::partitions::{declared, descendants};
use crate::run::tables::{Reading, SessionFacts};
use crate::types::{Type, stored};
use nestor_database::statement::Statement;
use nestor_database::write::catalog;
use nestor_model::{Array, Document, Namespace, Result, Value, doc};
use nestor_storage::WriteSet;
use std::sync::Arc;

/// Sets the guards of a table and of the partitions below it.
///
/// Errors: those of the catalog.
pub(super) fn set(statement: &Statement<'_>, session: &SessionFacts, ws: &mut WriteSet, ns: &Namespace) -> Result<()> {
    let below = descendants(&*ws, ns)
        .into_iter()
        .map(|(collection, _)| collection.ns.clone());
    let all: Vec<Namespace> = std::iter::once(ns.clone()).chain(below).collect();
    for ns in &all {
        let Some(table) = declared(&*ws, ns).filter(|table| table.division.is_none()) else {
            continue;
        };
        let guard = {
            let (op, _) = statement.operation(None)?;
            let reading = Reading::new(statement, &*ws, &op, session);
            let tree = reading.tree_of(&table)?;
            tree.map_or_else(Document::new, |tree| of(&table, &tree.levels))
        };
        let Some(found) = alter::found(&*ws, ns)? else { continue };
        if found.declared.guard.to_raw().as_bytes() == guard.to_raw().as_bytes() {
            continue;
        }
        let mut own = (*found.declared).clone();
        own.guard = guard;
        let text = own.named(&found.create).to_string();
        catalog::set_validator(statement, ws, &found.collection, &own.validator(&text))?;
    }
    Ok(())
}

/// What documents have to match that stand where all levels let them.
fn of(table: &Arc<Table>, levels: &[Level]) -> Document {
    let mut all = Vec::new();
    for level in levels {
        let condition = match &level.bound {
            Bound::Default => {
                let each: Option<Vec<Document>> = level
                    .others
                    .iter()
                    .map(|other| condition(table, &level.keys, other))
                    .collect();
                match each {
                    Some(others) if !others.is_empty() => Some(list("$nor", others)),
                    _ => None,
                }
            }
            bound => condition(table, &level.keys, bound),
        };
        all.extend(condition);
    }
    match all.is_empty() {
        true => Document::new(),
        false => list("$and", all),
    }
}

fn list(operator: &str, all: Vec<Document>) -> Document {
    let mut out = Document::new();
    out.push(
        operator,
        Value::Array(Array::new(all.into_iter().map(Value::from).collect())),
    );
    out
}

fn one(path: &str, operator: &str, value: Value) -> Document {
    let mut inner = Document::new();
    inner.push(operator, value);
    let mut out = Document::new();
    out.push(path, inner);
    out
}

/// The paths of a key all of whose parts are columns.
fn paths(table: &Table, keys: &Keys) -> Option<Vec<String>> {
    let each = keys.exprs.iter().map(|expr| match expr.node() {
        Node::Column { index, .. } => {
            let column = table.columns.get(*index)?;
            usable(&column.path).then(|| column.path.clone())
        }
        _ => None,
    });
    each.collect()
}

/// Whether a filter compares stored values of a type as SQL does.
fn is_comparable(ty: &Type, strategy: Strategy) -> bool {
    match ty {
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Bool | Type::Text | Type::Varchar => true,
        Type::Date | Type::Timestamp | Type::Timestamptz | Type::Uuid => true,
        Type::Numeric | Type::Float4 | Type::Float8 | Type::Enum(_) => strategy != Strategy::Range,
        _ => false,
    }
}

/// What documents match that meet a bound which is not DEFAULT; `None` where no filter says it.
fn condition(table: &Table, keys: &Keys, bound: &Bound) -> Option<Document> {
    let paths = paths(table, keys)?;
    if !keys.types.iter().all(|ty| is_comparable(ty, keys.strategy)) {
        return None;
    }
    match bound {
        Bound::Default => None,
        Bound::List { values, null } => {
            let ty = keys.types.first()?;
            let values = values.iter().map(|value| stored::write(ty, value.clone()));
            let all = values.chain(null.then_some(Value::Null)).collect();
            Some(one(paths.first()?, "$in", Value::Array(Array::new(all))))
        }
        Bound::Range { from, to } => {
            let mut all: Vec<Document> = paths.iter().map(|path| one(path, "$ne", Value::Null)).collect();
            all.extend(beyond((&paths, &keys.types), from, true));
            all.extend(beyond((&paths, &keys.types), to, false));
            Some(list("$and", all))
        }
        Bound::Hash { modulus, remainder } => {
            let fields: Vec<Value> = paths
                .iter()
                .map(|path| Value::from(format!("${path}").as_str()))
                .collect();
            let key = match fields.len() {
                1 => fields.into_iter().next()?,
                _ => Value::Array(Array::new(fields)),
            };
            let hash = Value::from(doc! { "$toHashedIndexKey": vec![key] });
            let hash = doc! { "$bitAnd": vec![hash, Value::Int64(i64::MAX)] };
            let rest = doc! { "$mod": vec![Value::from(hash), Value::Int64(i64::try_from(*modulus).ok()?)] };
            let equal = doc! { "$eq": vec![Value::from(rest), Value::Int64(i64::try_from(*remainder).ok()?)] };
            Some(doc! { "$expr": equal })
        }
    }
}

/// What is not before the first end of a range, or before the last; `None` where everything is.
fn beyond((paths, types): (&[String], &[Type]), ends: &[End], is_first: bool) -> Option<Document> {
    let (path, ty, end) = (paths.first()?, types.first()?, ends.first()?);
    let value = match (end, is_first) {
        (End::Min, true) | (End::Max, false) => return None,
        (End::Min, false) | (End::Max, true) => return Some(doc! { "$alwaysFalse": 1 }),
        (End::At(value), _) => stored::write(ty, value.clone()),
    };
    let (inner, whole) = if is_first { ("$gt", "$gte") } else { ("$lt", "$lt") };
    if paths.len() == 1 {
        return Some(one(path, whole, value));
    }
    let mut at = vec![one(path, "$eq", value.clone())];
    at.extend(beyond((&paths[1..], &types[1..]), &ends[1..], is_first));
    Some(list("$or", vec![one(path, inner, value), list("$and", at)]))
}
