//! Indexes in the catalogs: their rows, and the statements that would make them.

use super::deparse::{self, Place};
use super::server::operator_oid;
use super::{INDEXES, IndexFacts, Relation, Row, classes, int, oid, shown, text};
use crate::catalog::exclusion::Exclusion;
use crate::catalog::{Column, Timing};
use crate::types::Type;
use crate::types::collation::{COLLATIONS, Collation};
use crate::types::names::quoted;
use nestor_model::{Array, Value};
use nestor_planner::kinds::expression;
use sqlparser::ast::Expr as Ast;

/// The OID of an index by its number.
pub fn index_oid(id: u64) -> u32 {
    u32::try_from(id).unwrap_or(u32::MAX - INDEXES).saturating_add(INDEXES)
}

/// The OID of the constraint that an index keeps, which is no relation's.
pub(super) fn constraint_oid(index: &IndexFacts) -> i64 {
    constraint_oid_of(index.oid)
}

/// The same, of an index by its OID.
pub(super) fn constraint_oid_of(index: u32) -> i64 {
    i64::from(index) + 1_000_000_000
}

/// Constraints that indexes keep: keys as they were declared, elsewhere the key of `_id` and unique indexes on all documents.
pub(super) fn keeps_constraint(relation: &Relation, index: &IndexFacts) -> bool {
    match relation.table.declared {
        true => is_primary(relation, index) || relation.keys.contains(&index.name),
        false => index.unique && index.partial.is_none(),
    }
}

/// The number of the column that a path is; 0, which is an expression, where it is none.
pub(super) fn number_of(relation: &Relation, path: &str) -> i32 {
    let path = path.strip_suffix(".$**").unwrap_or(path);
    let at = relation.table.columns.iter().position(|column| column.path == path);
    at.map_or(0, |at| i32::try_from(at + 1).unwrap_or(0))
}

pub(super) fn numbers(items: impl IntoIterator<Item = i32>) -> Value {
    Value::Array(Array::new(items.into_iter().map(Value::Int32).collect()))
}

pub(super) fn index_row(relation: &Relation, index: &IndexFacts) -> Row {
    let numbers_of = index.all().map(|path| number_of(relation, path));
    let (_, by) = method(relation, index);
    let class_of = |(at, _): (usize, &(String, String))| {
        if let Some(said) = index.classes.get(at).filter(|said| !said.is_empty()) {
            return oid(classes::number(by, said));
        }
        oid(type_of(relation, index, at).map_or(0, |ty| classes::of(by, ty)))
    };
    let paths = index.parts.iter().filter(|(path, _)| number_of(relation, path) == 0);
    let expressions: Vec<String> = paths.map(|part| expression_of(relation, part)).collect();
    vec![
        ("indexrelid", oid(index.oid)),
        ("indrelid", oid(relation.oid)),
        ("indnatts", int(index.all().count())),
        ("indnkeyatts", int(index.parts.len())),
        ("indisunique", Value::Bool(index.unique)),
        ("indnullsnotdistinct", Value::Bool(index.nulls_equal)),
        ("indisexclusion", Value::Bool(index.exclusion.is_some())),
        ("indisprimary", Value::Bool(is_primary(relation, index))),
        ("indimmediate", Value::Bool(index.timing == Timing::AtOnce)),
        ("indisvalid", Value::Bool(true)),
        ("indisready", Value::Bool(true)),
        ("indislive", Value::Bool(true)),
        ("indkey", numbers(numbers_of)),
        ("indoption", numbers(index.orders.iter().copied())),
        (
            "indcollation",
            Value::Array(Array::new(
                (0..index.parts.len())
                    .map(|at| oid(collation_of(relation, index, at)))
                    .collect(),
            )),
        ),
        (
            "indclass",
            Value::Array(Array::new(index.parts.iter().enumerate().map(class_of).collect())),
        ),
        (
            "indexprs",
            match expressions.is_empty() {
                true => Value::Null,
                false => text(expressions.join(", ")),
            },
        ),
        ("indpred", predicate(relation, index).map_or(Value::Null, text)),
    ]
}

/// The type of a part of an index.
fn type_of<'t>(relation: &'t Relation, index: &'t IndexFacts, at: usize) -> Option<&'t Type> {
    let (path, _) = index.parts.get(at)?;
    let path = path.strip_suffix(".$**").unwrap_or(path);
    let column = relation.table.columns.iter().find(|column| column.path == path);
    column.map(|column| &column.ty).or_else(|| index.computed.get(at))
}

/// The collation that was said of a part of an index.
fn said_collation(index: &IndexFacts, at: usize) -> Option<&'static Collation> {
    let said = index.collations.get(at)?;
    COLLATIONS.iter().find(|known| known.name == said)
}

/// The collation of what a part of an index is.
fn own_collation(relation: &Relation, index: &IndexFacts, at: usize) -> u32 {
    let Some(path) = index.all().nth(at) else { return 0 };
    let column = relation.table.columns.iter().find(|column| column.path == *path);
    let computed = || index.computed.get(at).map_or(0, Type::collation);
    column.map_or_else(computed, Column::collation)
}

/// The collation of a part of an index.
pub(super) fn collation_of(relation: &Relation, index: &IndexFacts, at: usize) -> u32 {
    said_collation(index, at).map_or_else(|| own_collation(relation, index, at), |said| said.oid)
}

pub(super) fn constraint(relation: &Relation, index: &IndexFacts) -> Option<Row> {
    if !keeps_constraint(relation, index) {
        return None;
    }
    let columns = index.parts.iter().map(|(path, _)| number_of(relation, path));
    let operators = index.exclusion.as_ref().map(|own| {
        let types = index
            .parts
            .iter()
            .enumerate()
            .map(|(at, _)| type_of(relation, index, at));
        let each = own.elements.iter().zip(types);
        let each = each.map(|(element, ty)| oid(ty.map_or(0, |ty| operator_oid(&element.operator, ty))));
        Value::Array(Array::new(each.collect()))
    });
    let kind = match (&index.exclusion, is_primary(relation, index)) {
        (Some(_), _) => "x",
        (None, true) => "p",
        (None, false) => "u",
    };
    Some(vec![
        ("oid", oid(constraint_oid(index))),
        ("conname", text(&index.name)),
        ("connamespace", oid(relation.schema)),
        ("contype", text(kind)),
        ("conexclop", operators.unwrap_or(Value::Null)),
        ("condeferrable", Value::Bool(index.timing != Timing::AtOnce)),
        ("condeferred", Value::Bool(index.timing == Timing::Deferred)),
        ("convalidated", Value::Bool(true)),
        ("conrelid", oid(relation.oid)),
        ("conindid", oid(index.oid)),
        ("confupdtype", text(" ")),
        ("confdeltype", text(" ")),
        ("confmatchtype", text(" ")),
        ("conislocal", Value::Bool(true)),
        ("connoinherit", Value::Bool(true)),
        ("conkey", numbers(columns)),
    ])
}

pub(super) fn part((path, direction): &(String, String)) -> String {
    if direction == expression::NAME {
        // Calls of functions need no parentheses.
        return match crate::parse::expression(path) {
            Ok(Ast::Function(_)) => path.clone(),
            _ => format!("({path})"),
        };
    }
    let (path, direction) = match path.strip_suffix(".$**") {
        Some(path) => (path, "1"),
        None => (path.as_str(), direction.as_str()),
    };
    let path = match path.split_once('.') {
        None => quoted(path),
        // A path into documents is an expression.
        Some((head, rest)) => format!(
            "(({}).{})",
            quoted(head),
            rest.split('.').map(quoted).collect::<Vec<_>>().join(".")
        ),
    };
    match direction {
        "1" | "-1" | "hashed" => path,
        kind => format!("{path} {kind}"),
    }
}

/// The words for the order of a part of an index.
fn order(order: i32) -> &'static str {
    match order {
        1 => " DESC NULLS LAST",
        2 => " NULLS FIRST",
        3 => " DESC",
        _ => "",
    }
}

/// The predicate of an index as SQL writes it.
fn predicate(relation: &Relation, index: &IndexFacts) -> Option<String> {
    let (filter, conditions) = index.partial.as_ref()?;
    let place = Place::of(&relation.table.columns, &[]);
    let conditions = conditions.iter().map(|own| match deparse::condition(own, place) {
        Some(shown) => shown,
        None => format!("({own})"),
    });
    let all: Vec<String> = filter.iter().cloned().chain(conditions).collect();
    Some(match all.as_slice() {
        [only] => only.clone(),
        _ => format!("({})", all.join(" AND ")),
    })
}

pub(super) fn indexdef(relation: &Relation, index: &IndexFacts) -> String {
    let parts = index.parts.iter().zip(&index.orders).enumerate();
    let class = |at: usize| match index.classes.get(at).filter(|said| !said.is_empty()) {
        Some(said) => format!(" {said}"),
        None => String::new(),
    };
    let collation = |at: usize| match said_collation(index, at) {
        Some(said) if said.oid != own_collation(relation, index, at) => format!(" COLLATE {}", quoted(said.name)),
        _ => String::new(),
    };
    let parts: Vec<String> = parts
        .map(|(at, (each, bits))| {
            let shown = part(&named_part(relation, each));
            format!("{shown}{}{}{}", collation(at), class(at), order(*bits))
        })
        .collect();
    let unique = if index.unique { "UNIQUE " } else { "" };
    let filter = match predicate(relation, index) {
        Some(filter) => format!(" WHERE {filter}"),
        None => String::new(),
    };
    let (method, _) = method(relation, index);
    let only = if relation.table.division.is_some() { "ONLY " } else { "" };
    let distinct = if index.nulls_equal { " NULLS NOT DISTINCT" } else { "" };
    let storage = index.storage.iter().filter_map(|own| own.split_once('='));
    let storage: Vec<String> = storage.map(|(name, value)| format!("{name}='{value}'")).collect();
    let storage = match storage.is_empty() {
        true => String::new(),
        false => format!(" WITH ({})", storage.join(", ")),
    };
    format!(
        "CREATE {unique}INDEX {} ON {only}{} USING {method} ({}){}{distinct}{storage}{filter}",
        quoted(&index.name),
        shown(&[], &relation.table.schema, &relation.table.name),
        parts.join(", "),
        including(relation, index)
    )
}

/// An expression over the columns of a table as a part of an index is shown.
pub fn shown_part(columns: &[Column], expr: &str) -> String {
    let shown = deparse::condition(expr, Place::of(columns, &[]));
    part(&(shown.unwrap_or_else(|| expr.to_owned()), expression::NAME.to_owned()))
}

/// What follows `EXCLUDE` in a constraint.
fn excluding(relation: &Relation, index: &IndexFacts, exclusion: &Exclusion, pretty: bool) -> String {
    let elements = index.parts.iter().zip(&exclusion.elements).map(|(each, element)| {
        let class = match element.class.as_str() {
            "" => String::new(),
            class => format!(" {class}"),
        };
        format!("{}{class} WITH {}", part(&named_part(relation, each)), element.operator)
    });
    let elements: Vec<String> = elements.collect();
    let predicate = match (predicate(relation, index), pretty) {
        (Some(own), false) => format!(" WHERE ({own})"),
        (Some(own), true) => format!(" WHERE {own}"),
        (None, _) => String::new(),
    };
    format!(
        "USING {} ({}){}{predicate}{}",
        exclusion.method,
        elements.join(", "),
        including(relation, index),
        index.timing.words()
    )
}

pub(super) fn constraintdef(relation: &Relation, index: &IndexFacts, pretty: bool) -> String {
    if let Some(exclusion) = &index.exclusion {
        return format!("EXCLUDE {}", excluding(relation, index, exclusion, pretty));
    }
    let kind = if is_primary(relation, index) {
        "PRIMARY KEY"
    } else {
        "UNIQUE"
    };
    let parts: Vec<String> = index
        .parts
        .iter()
        .map(|each| part(&named_part(relation, each)))
        .collect();
    let distinct = if index.nulls_equal { " NULLS NOT DISTINCT" } else { "" };
    let including = including(relation, index);
    format!(
        "{kind}{distinct} ({}){including}{}",
        parts.join(", "),
        index.timing.words()
    )
}

/// The clause that names the columns that an index includes.
fn including(relation: &Relation, index: &IndexFacts) -> String {
    let names = index.included.iter().map(|path| included_part(relation, path));
    match index.included.is_empty() {
        true => String::new(),
        false => format!(" INCLUDE ({})", names.collect::<Vec<_>>().join(", ")),
    }
}

pub(super) fn included_part(relation: &Relation, path: &str) -> String {
    part(&named_part(relation, &(path.to_owned(), "1".to_owned())))
}

/// The access method of an index, and its OID.
pub(super) fn method(relation: &Relation, index: &IndexFacts) -> (&'static str, i64) {
    if let Some(exclusion) = &index.exclusion {
        let known = classes::METHODS.iter().find(|(_, name)| *name == exclusion.method);
        return known.map_or(("btree", classes::BTREE), |(number, name)| (name, *number));
    }
    match index.inverted.as_deref() {
        Some("gist") => return ("gist", classes::GIST),
        Some(_) => return ("gin", classes::GIN),
        None => {}
    }
    match index.parts.as_slice() {
        [(_, direction)] if direction == "hashed" || index.is_hash => ("hash", 405),
        [(path, _)] if inverts(relation, path) => ("gin", 2742),
        _ => ("btree", 403),
    }
}

/// Whether an index on a path has what is within arrays, or within JSON.
fn inverts(relation: &Relation, path: &str) -> bool {
    let column = relation.table.columns.iter().find(|column| column.path == *path);
    path.ends_with(".$**") || column.is_some_and(|column| matches!(column.ty, Type::Array(_)))
}

/// The part of an index with the name of the column that its path is.
pub(super) fn named_part(relation: &Relation, (path, direction): &(String, String)) -> (String, String) {
    let column = relation.table.columns.iter().find(|column| column.path == *path);
    if direction == expression::NAME {
        let shown = expression_of(relation, &(path.clone(), direction.clone()));
        return (shown, direction.clone());
    }
    let name = match (column, path.strip_suffix(".$**")) {
        (Some(column), _) => column.name.clone(),
        (None, Some(path)) if !path.contains('.') => {
            let column = relation.table.columns.iter().find(|column| column.path == *path);
            format!("{}.$**", column.map_or(path, |column| &column.name))
        }
        _ => path.clone(),
    };
    (name, direction.clone())
}

/// An expression that is a part of an index, as it is shown; a path where it is none.
fn expression_of(relation: &Relation, (text, direction): &(String, String)) -> String {
    let place = Place::of(&relation.table.columns, &[]);
    let shown = (direction == expression::NAME)
        .then(|| deparse::condition(text, place))
        .flatten();
    shown.unwrap_or_else(|| text.clone())
}

/// Whether an index keeps the primary key: in declared tables the one of the key's columns, elsewhere that of `_id`.
pub(super) fn is_primary(relation: &Relation, index: &IndexFacts) -> bool {
    let table = &relation.table;
    if !table.declared {
        return index.primary;
    }
    // Another one may have the same columns.
    !table.key.is_empty() && index.name == table.key_name
}
