//! The conditions of partial indexes.
//!
//! Those of SQL are conjuncts of the filter; others say that the values of a unique key are there, because rows with nulls are equal to none.

use super::system::quoted;
use super::{Column, Table};
use crate::types::{Type, output, stored};
use nestor_model::{Array, DocRef, Document, Value, ValueRef};
use std::collections::BTreeSet;

fn one(name: &str, value: Value) -> Document {
    let mut doc = Document::new();
    doc.push(name, value);
    doc
}

/// `{path: {operator: value}}`
pub fn condition(path: &str, operator: &str, value: Value) -> Document {
    one(path, one(operator, value).into())
}

/// `{$or: […]}` or `{$and: […]}`
pub fn group(operator: &str, parts: Vec<Document>) -> Document {
    let parts = parts.into_iter().map(Value::from).collect();
    one(operator, Value::Array(Array::new(parts)))
}

/// A filter that asks for all conditions.
pub fn joined(conjuncts: Vec<Document>) -> Document {
    let names: BTreeSet<&str> = conjuncts
        .iter()
        .flat_map(|doc| doc.iter().map(|(name, _)| name))
        .collect();
    let fields: usize = conjuncts.iter().map(|doc| doc.iter().count()).sum();
    if names.len() < fields {
        return group("$and", conjuncts);
    }
    let mut out = Document::new();
    for doc in &conjuncts {
        doc.iter().for_each(|(name, value)| out.push(name, value.to_value()));
    }
    out
}

/// The conditions that a filter asks for together.
fn conjuncts(filter: DocRef<'_>, out: &mut Vec<Document>) {
    for (name, value) in filter.iter() {
        match (name, value) {
            ("$and", ValueRef::Array(parts)) => parts
                .iter()
                .filter_map(|part| part.as_document())
                .for_each(|part| conjuncts(part, out)),
            _ => out.push(one(name, value.to_value())),
        }
    }
}

/// The path of which a condition says that a value is there.
pub fn there(doc: &Document) -> Option<&str> {
    let mut fields = doc.iter();
    match (fields.next(), fields.next()) {
        (Some((path, ValueRef::Document(asked))), None) if is_only(asked, "$exists") => Some(path),
        _ => None,
    }
}

/// Whether a filter compares one of `paths` with a list of values, or, of `single` ones too, with a value.
pub fn compares(filter: DocRef<'_>, paths: &[&str], single: bool) -> bool {
    filter.iter().any(|(name, value)| match value {
        ValueRef::Array(parts) if name.starts_with('$') => {
            let mut parts = parts.iter().filter_map(|part| part.as_document());
            parts.any(|part| compares(part, paths, single))
        }
        ValueRef::Document(asked) if paths.contains(&name) => asked
            .iter()
            .any(|(operator, _)| operator == "$in" || single && operator != "$exists"),
        _ => single && paths.contains(&name),
    })
}

/// What a filter asks for beside that values of the key `key` are there. Who asks for that, too, has it said twice.
pub fn said(filter: &Document, key: &Document) -> Vec<Document> {
    let mut all = Vec::new();
    conjuncts(filter.as_ref(), &mut all);
    let mut left_out: BTreeSet<String> = BTreeSet::new();
    all.retain(|doc| match there(doc).filter(|path| key.get(path).is_some()) {
        Some(path) => !left_out.insert(path.to_owned()),
        None => true,
    });
    all
}

/// Whether a filter asks that values of the key `key` are there.
pub fn leaves_nulls_out(filter: &Document, key: &Document) -> bool {
    let mut all = Vec::new();
    conjuncts(filter.as_ref(), &mut all);
    said(filter, key).len() < all.len()
}

/// Whether a document is `{name: true}`.
fn is_only(doc: DocRef<'_>, name: &str) -> bool {
    doc.iter().count() == 1 && matches!(doc.get(name), Some(ValueRef::Bool(true)))
}

/// Each path of a filter replaced by what `path` says; `None` when that says nothing.
pub fn with_paths(filter: DocRef<'_>, path: &dyn Fn(&str) -> Option<String>) -> Option<Document> {
    let mut out = Document::new();
    for (name, value) in filter.iter() {
        match (name.starts_with('$'), value) {
            (true, ValueRef::Array(parts)) => {
                let parts = parts.iter().map(|part| match part {
                    ValueRef::Document(part) => with_paths(part, path).map(Value::from),
                    other => Some(other.to_value()),
                });
                out.push(name, Value::Array(Array::new(parts.collect::<Option<_>>()?)));
            }
            (true, value) => out.push(name, value.to_value()),
            (false, value) => out.push(path(name)?, value.to_value()),
        }
    }
    Some(out)
}

/// Conditions as SQL writes them; `None` for those of commands that it has no words for.
pub fn text(conjuncts: &[Document], table: &Table) -> Option<String> {
    let parts: Vec<String> = conjuncts
        .iter()
        .map(|doc| shown(doc.as_ref(), table))
        .collect::<Option<_>>()?;
    let parts = once(parts);
    Some(match parts.as_slice() {
        [only] => only.clone(),
        _ => format!("({})", parts.join(" AND ")),
    })
}

/// Texts, each once.
fn once(parts: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for part in parts {
        if !out.contains(&part) {
            out.push(part);
        }
    }
    out
}

fn shown(doc: DocRef<'_>, table: &Table) -> Option<String> {
    let mut parts = Vec::new();
    for (name, value) in doc.iter() {
        match (name, value) {
            ("$and" | "$or", ValueRef::Array(items)) => {
                let items: Vec<DocRef<'_>> = items.iter().map(|item| item.as_document()).collect::<Option<_>>()?;
                if let Some(same) = either(name, &items, table) {
                    parts.push(same);
                    continue;
                }
                let each = items.iter().map(|item| shown(*item, table));
                let each = once(each.collect::<Option<_>>()?);
                let word = if name == "$or" { " OR " } else { " AND " };
                parts.push(match each.as_slice() {
                    [only] => only.clone(),
                    each => format!("({})", each.join(word)),
                });
            }
            (path, ValueRef::Document(asked)) if !path.starts_with('$') => {
                let column = column(path, table)?;
                for (operator, value) in asked.iter() {
                    parts.push(compared(column, operator, value)?);
                }
            }
            (path, value) if !path.starts_with('$') => parts.push(compared(column(path, table)?, "$eq", value)?),
            _ => return None,
        }
    }
    let mut parts = once(parts);
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(format!("({})", parts.join(" AND "))),
    }
}

fn column<'t>(path: &str, table: &'t Table) -> Option<&'t Column> {
    table.columns.iter().find(|column| column.path == path)
}

/// What an `$or` of two conditions stands for that is one in SQL: `<>`, and comparisons that NaN is larger in.
fn either(name: &str, items: &[DocRef<'_>], table: &Table) -> Option<String> {
    let leaf = |doc: &DocRef<'_>| -> Option<(String, String, Value)> {
        let (path, asked) = doc.iter().next()?;
        let (operator, value) = asked.as_document()?.iter().next()?;
        Some((path.to_owned(), operator.to_owned(), value.to_value()))
    };
    let [a, b] = items else { return None };
    let ((path, first, value), (other, second, limit)) = (leaf(a)?, leaf(b)?);
    if name != "$or" || path != other {
        return None;
    }
    let column = column(&path, table)?;
    match (first.as_str(), second.as_str(), &limit) {
        ("$lt", "$gt", limit) if nestor_model::values_equal(value.as_ref(), limit.as_ref()) => {
            compared(column, "$ne", value.as_ref())
        }
        ("$gt" | "$gte", "$eq", Value::Double(n)) if n.is_nan() => compared(column, &first, value.as_ref()),
        _ => None,
    }
}

fn compared(column: &Column, operator: &str, value: ValueRef<'_>) -> Option<String> {
    let name = quoted(&column.name);
    let left = match column.ty {
        Type::Varchar => format!("({name})::text"),
        _ => name.clone(),
    };
    let sign = match operator {
        "$exists" if matches!(value, ValueRef::Bool(true)) => return Some(format!("({name} IS NOT NULL)")),
        "$eq" if value.is_nullish() => return Some(format!("({name} IS NULL)")),
        "$eq" if column.ty == Type::Bool => {
            return match value {
                ValueRef::Bool(true) => Some(name),
                ValueRef::Bool(false) => Some(format!("(NOT {name})")),
                _ => None,
            };
        }
        "$in" => {
            let ValueRef::Array(items) = value else { return None };
            let each = items.iter().map(|item| literal(&column.ty, item));
            let each: Vec<String> = each.collect::<Option<_>>()?;
            return Some(format!("({left} = ANY (ARRAY[{}]))", each.join(", ")));
        }
        "$eq" => "=",
        "$ne" => "<>",
        "$lt" => "<",
        "$lte" => "<=",
        "$gt" => ">",
        "$gte" => ">=",
        _ => return None,
    };
    Some(format!("({left} {sign} {})", literal(&column.ty, value)?))
}

/// A value of a document as a literal of a column's type.
fn literal(ty: &Type, value: ValueRef<'_>) -> Option<String> {
    let read = stored::read(ty, value, "").ok()?;
    let text = output::text(ty, &read);
    let is_bare = matches!(ty, Type::Int2 | Type::Int4 | Type::Int8) && !text.starts_with('-');
    Some(match (is_bare, ty) {
        (true, _) => text,
        (false, Type::Varchar) => format!("'{}'::text", text.replace('\'', "''")),
        (false, ty) => format!("'{}'::{ty}", text.replace('\'', "''")),
    })
}
