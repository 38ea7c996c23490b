//! What the catalogs of SQL tell of an index.

use super::{included, indexed};
use crate::bind::declared::Declared;
use crate::bind::entry::{self, Object};
use crate::bind::ident;
use crate::catalog::exclusion::Exclusion;
use crate::catalog::system::{self, IndexFacts};
use crate::catalog::{Column, Table, Timing, partial};
use crate::types::Type;
use nestor_model::extjson::{self, Form};
use nestor_model::{Document, ValueRef};
use nestor_planner::kinds::expression;
use nestor_storage::{Collection, Index};
use sqlparser::ast::Expr;
use std::sync::Arc;

/// What is told of an index of a collection, of whose indexes `said` says something by their names.
pub(super) fn facts(
    collection: &Collection,
    index: &Arc<Index>,
    (table, declared): (&Table, Option<&Declared>),
    said: &Document,
) -> IndexFacts {
    let texts = indexed::texts_of(&index.spec);
    let (keys, mut included) = included::of(&index.spec);
    let parts = index.key_pattern.iter().enumerate().map(|(at, (path, direction))| {
        let direction = match direction {
            ValueRef::String(kind) => kind.to_owned(),
            ValueRef::Int32(n) if n < 0 => "-1".to_owned(),
            ValueRef::Int64(n) if n < 0 => "-1".to_owned(),
            ValueRef::Double(n) if n < 0.0 => "-1".to_owned(),
            _ => "1".to_owned(),
        };
        match texts.get(at).filter(|_| direction == expression::NAME) {
            Some(text) => match column_named(text).and_then(|name| table.column(&name)) {
                Some(column) => (column.path.clone(), "1".to_owned()),
                None => (text.clone(), direction),
            },
            None => (path.to_owned(), direction),
        }
    });
    let parts: Vec<(String, String)> = parts.take(keys).collect();
    let orders = included::orders_of(&index.spec).unwrap_or_else(|| {
        let each = parts.iter().map(|(_, direction)| if direction == "-1" { 3 } else { 0 });
        each.collect()
    });
    let primary = index.name == "_id_";
    let mut unique = declared.iter().flat_map(|declared| &declared.unique);
    let own = unique.find(|own| *own.name == *index.name);
    match (own, declared) {
        (Some(own), _) => included.clone_from(&own.include),
        (None, Some(declared)) if primary => included = table.paths(&declared.key_include),
        _ => {}
    }
    let timing = own.map_or(Timing::AtOnce, |own| own.timing);
    let exclusions = declared.iter().flat_map(|declared| &declared.exclusions);
    if let Some(own) = exclusions.into_iter().find(|own| *own.name == *index.name) {
        return of_exclusion(index, (table, own), said);
    }
    IndexFacts {
        oid: system::index_oid(u64::from(index.id.0)),
        name: index_name(collection, index),
        parts,
        orders,
        classes: included::classes_of(&index.spec),
        is_hash: included::is_hash(&index.spec),
        inverted: indexed::method_of_inverted(&index.spec),
        collations: included::collations_of(&index.spec),
        storage: included::storage_of(&index.spec),
        exclusion: None,
        computed: indexed::types_of(&index.spec),
        included,
        unique: index.unique || primary || timing != Timing::AtOnce,
        timing,
        nulls_equal: match own {
            Some(own) if timing != Timing::AtOnce => own.nulls_equal,
            _ => table.declared && nulls_are_equal(index, &table.columns),
        },
        primary,
        comment: said.get(&index.name).and_then(ValueRef::as_str).map(str::to_owned),
        partial: predicate(index, table),
    }
}

/// What is told of the index of an EXCLUDE constraint: what it compares, of which the index may have some alone.
fn of_exclusion(index: &Index, (table, own): (&Table, &Exclusion), said: &Document) -> IndexFacts {
    let columns = Arc::new(table.clone());
    let bound = own.elements.iter().map(|element| {
        let ast = crate::parse::expression(&element.text).ok()?;
        indexed::bound(&columns, &ast).ok()
    });
    let parts = own.elements.iter().map(|element| {
        let column = element.column.as_ref().and_then(|name| table.column(name));
        match column {
            Some(column) => (column.path.clone(), "1".to_owned()),
            None => (element.text.clone(), expression::NAME.to_owned()),
        }
    });
    IndexFacts {
        oid: system::index_oid(u64::from(index.id.0)),
        name: own.name.clone(),
        parts: parts.collect(),
        orders: vec![0; own.elements.len()],
        classes: own.elements.iter().map(|element| element.class.clone()).collect(),
        is_hash: false,
        collations: Vec::new(),
        storage: Vec::new(),
        inverted: None,
        exclusion: Some(own.clone()),
        computed: bound.map(|expr| expr.map_or(Type::Unknown, |expr| expr.ty())).collect(),
        included: table.paths(&own.include),
        unique: false,
        timing: own.timing,
        nulls_equal: false,
        primary: false,
        comment: said.get(&index.name).and_then(ValueRef::as_str).map(str::to_owned),
        partial: own.predicate.as_ref().map(|text| (None, vec![text.clone()])),
    }
}

/// The name of the column that an expression is, if it is one.
fn column_named(text: &str) -> Option<String> {
    match crate::parse::expression(text) {
        Ok(Expr::Identifier(name)) => Some(ident(&name)),
        _ => None,
    }
}

/// Whether a unique index of a declared table has the rows in which a column of it is null, too.
pub(crate) fn nulls_are_equal(index: &Index, columns: &[Column]) -> bool {
    if !index.unique || index.sparse || !indexed::texts_of(&index.spec).is_empty() {
        return false;
    }
    let filter = index.partial_filter.as_ref();
    let leaves_out = filter.is_some_and(|filter| partial::leaves_nulls_out(filter, &index.key_pattern));
    let is_nullable = |path: &str| {
        let column = columns.iter().find(|column| column.path == path);
        column.is_some_and(|column| !column.not_null)
    };
    !leaves_out && index.key_pattern.iter().any(|(path, _)| is_nullable(path))
}

/// The predicate of an index: the filter in the words of SQL, or else as commands have it, and the conditions beside it.
pub(crate) fn predicate(index: &Index, table: &Table) -> Option<(Option<String>, Vec<String>)> {
    let filter = index
        .partial_filter
        .as_ref()
        .and_then(|filter| filter_text(index, filter, table));
    let conditions = indexed::conditions_of(&index.spec);
    (filter.is_some() || !conditions.is_empty()).then_some((filter, conditions))
}

/// What a filter says beside that values of a unique key are there.
fn filter_text(index: &Index, filter: &Document, table: &Table) -> Option<String> {
    let said = match index.unique {
        true => partial::said(filter, &index.key_pattern),
        false => vec![filter.clone()],
    };
    if said.is_empty() {
        return None;
    }
    let told = partial::text(&said, table);
    Some(told.unwrap_or_else(|| extjson::to_string(filter.as_ref(), Form::Relaxed)))
}

/// The name of a collection in its schema, as far as it is declared.
fn own_name(collection: &Collection) -> String {
    match entry::of(collection) {
        Some(Object::Table(_, table) | Object::Materialized(table)) => table.name.clone(),
        _ => collection.ns.coll.to_string(),
    }
}

/// The name of an index in SQL. Names of indexes are their collections' own, and those of SQL stand beside those of tables: where SQL
/// did not give it, the collection's name stands before that of the index.
pub fn index_name(collection: &Collection, index: &Index) -> String {
    let (table, name) = (&own_name(collection), &index.name);
    let is_beside = || name.strip_prefix(&**table).is_some_and(|rest| rest.starts_with('_'));
    let declared = Declared::of_collection(collection);
    let is_declared = || declared.is_some() || entry::materialized_of(collection).is_some();
    match index.is_id() {
        true if declared.as_ref().is_some_and(|declared| declared.has_id_key()) => {
            declared.map(|declared| declared.key_name.clone()).unwrap_or_default()
        }
        true => format!("{table}_pkey"),
        false if is_beside() || is_declared() => name.to_string(),
        false => format!("{table}_{name}"),
    }
}
