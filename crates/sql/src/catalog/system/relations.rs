//! Catalogs of relations: tables, columns, indexes, constraints, views.

use super::shapes::{self, Shape};
use super::{
    Facts, INDEXES, INFORMATION_SCHEMA, IndexFacts, OWNER, PG_CATALOG, PUBLIC, Relation, Row, int, is_view, oid, text,
};
use crate::types::Type;
use nestor_model::{Array, Result, Value};

/// The OID of an index by its number.
pub fn index_oid(id: u64) -> u32 {
    u32::try_from(id).unwrap_or(u32::MAX - INDEXES).saturating_add(INDEXES)
}

/// The OID of the constraint that an index keeps, which is no relation's.
fn constraint_oid(index: &IndexFacts) -> i64 {
    i64::from(index.oid) + 1_000_000_000
}

/// Constraints that indexes keep: the key of `_id`, and unique indexes on all documents.
fn keeps_constraint(index: &IndexFacts) -> bool {
    index.unique && index.partial.is_none()
}

fn schema_of(shape: &Shape) -> i64 {
    match shape.schema {
        "pg_catalog" => PG_CATALOG,
        _ => INFORMATION_SCHEMA,
    }
}

/// The rows of a table of `pg_catalog`, if it is about relations.
///
/// Errors: those of [`Facts::relations`].
pub fn rows(name: &str, facts: &dyn Facts) -> Result<Option<Vec<Row>>> {
    Ok(Some(match name {
        "pg_namespace" => [
            (PG_CATALOG, "pg_catalog"),
            (PUBLIC, "public"),
            (INFORMATION_SCHEMA, "information_schema"),
        ]
        .into_iter()
        .map(|(n, name)| vec![("oid", oid(n)), ("nspname", text(name)), ("nspowner", oid(OWNER))])
        .collect(),
        "pg_class" => classes(facts)?,
        "pg_attribute" => attributes(facts)?,
        "pg_index" => each_index(facts, |relation, index| Some(index_row(relation, index)))?,
        "pg_constraint" => each_index(facts, constraint)?,
        "pg_tables" => {
            let relations = facts.relations()?;
            let tables = relations.iter().filter(|relation| !is_view(&relation.table));
            tables
                .map(|relation| {
                    vec![
                        ("schemaname", text("public")),
                        ("tablename", text(&relation.table.name)),
                        ("tableowner", text(facts.user())),
                        ("hasindexes", Value::Bool(!relation.indexes.is_empty())),
                    ]
                })
                .collect()
        }
        "pg_views" => {
            let relations = facts.relations()?;
            let views = relations.iter().filter(|relation| is_view(&relation.table));
            views
                .map(|relation| {
                    vec![
                        ("schemaname", text("public")),
                        ("viewname", text(&relation.table.name)),
                        ("viewowner", text(facts.user())),
                        ("definition", relation.definition.as_ref().map_or(Value::Null, text)),
                    ]
                })
                .collect()
        }
        "pg_indexes" => each_index(facts, |relation, index| {
            Some(vec![
                ("schemaname", text("public")),
                ("tablename", text(&relation.table.name)),
                ("indexname", text(&index.name)),
                ("indexdef", text(indexdef(relation, index))),
            ])
        })?,
        "pg_stat_user_tables" => {
            let relations = facts.relations()?;
            let tables = relations.iter().filter(|relation| !is_view(&relation.table));
            tables
                .map(|relation| {
                    vec![
                        ("relid", oid(relation.oid)),
                        ("schemaname", text("public")),
                        ("relname", text(&relation.table.name)),
                        ("n_live_tup", Value::Int64(relation.count)),
                    ]
                })
                .collect()
        }
        _ => return Ok(None),
    }))
}

fn each_index(facts: &dyn Facts, row: impl Fn(&Relation, &IndexFacts) -> Option<Row>) -> Result<Vec<Row>> {
    let relations = facts.relations()?;
    let all = relations
        .iter()
        .flat_map(|relation| relation.indexes.iter().map(move |index| (relation, index)));
    Ok(all.filter_map(|(relation, index)| row(relation, index)).collect())
}

fn class(number: u32, name: &str, schema: i64, kind: &str, columns: usize) -> Row {
    let has_storage = kind != "v";
    vec![
        ("oid", oid(number)),
        ("relname", text(name)),
        ("relnamespace", oid(schema)),
        ("relowner", oid(OWNER)),
        (
            "relam",
            oid(match kind {
                "r" => 2,
                "i" => 403,
                _ => 0,
            }),
        ),
        ("relfilenode", oid(if has_storage { number } else { 0 })),
        ("reltuples", Value::Double(-1.0)),
        ("relpersistence", text("p")),
        ("relkind", text(kind)),
        ("relnatts", int(columns)),
        ("relispopulated", Value::Bool(true)),
        ("relreplident", text(if kind == "r" { "d" } else { "n" })),
    ]
}

fn classes(facts: &dyn Facts) -> Result<Vec<Row>> {
    let mut out = Vec::new();
    for relation in facts.relations()?.iter() {
        let table = &relation.table;
        let kind = if is_view(table) { "v" } else { "r" };
        let mut row = class(relation.oid, &table.name, PUBLIC, kind, table.columns.len());
        row.retain(|(name, _)| *name != "reltuples");
        row.push(("reltuples", Value::Double(relation.count as f64)));
        row.push(("relhasindex", Value::Bool(!relation.indexes.is_empty())));
        out.push(row);
        for index in &relation.indexes {
            out.push(class(index.oid, &index.name, PUBLIC, "i", index.parts.len()));
        }
    }
    for shape in shapes::all() {
        let kind = if shape.is_view { "v" } else { "r" };
        out.push(class(
            shape.oid,
            shape.name,
            schema_of(shape),
            kind,
            shape.columns().count(),
        ));
    }
    Ok(out)
}

fn attribute(relation: u32, at: usize, name: &str, ty: &Type) -> Row {
    vec![
        ("attrelid", oid(relation)),
        ("attname", text(name)),
        ("atttypid", oid(ty.oid())),
        ("attlen", Value::Int32(i32::from(ty.length()))),
        ("attnum", int(at)),
        ("atttypmod", Value::Int32(-1)),
        ("attndims", Value::Int32(i32::from(matches!(ty, Type::Array(_))))),
        ("attstattarget", Value::Int32(-1)),
        ("attcacheoff", Value::Int32(-1)),
        ("attstorage", text(if ty.length() < 0 { "x" } else { "p" })),
        ("attislocal", Value::Bool(true)),
    ]
}

fn attributes(facts: &dyn Facts) -> Result<Vec<Row>> {
    let mut out = Vec::new();
    for relation in facts.relations()?.iter() {
        for (at, column) in (1..).zip(&relation.table.columns) {
            let mut row = attribute(relation.oid, at, &column.name, &column.ty);
            row.retain(|(name, _)| *name != "atttypmod");
            row.push(("atttypmod", Value::Int32(column.modifier)));
            row.push(("attnotnull", Value::Bool(column.not_null)));
            row.push(("atthasdef", Value::Bool(column.default.is_some())));
            out.push(row);
        }
        for index in &relation.indexes {
            for (at, (path, _)) in (1..).zip(&index.parts) {
                let column = relation.table.columns.iter().find(|column| column.path == *path);
                let ty = column.map_or(Type::Jsonb, |column| column.ty.clone());
                out.push(attribute(index.oid, at, path, &ty));
            }
        }
    }
    for shape in shapes::all() {
        for (at, (name, ty)) in (1..).zip(shape.columns()) {
            out.push(attribute(shape.oid, at, name, &ty));
        }
    }
    Ok(out)
}

/// The number of the column that a path is; 0, which is an expression, where it is none.
fn number_of(relation: &Relation, path: &str) -> i32 {
    let at = relation.table.columns.iter().position(|column| column.path == path);
    at.map_or(0, |at| i32::try_from(at + 1).unwrap_or(0))
}

fn numbers(items: impl IntoIterator<Item = i32>) -> Value {
    Value::Array(Array::new(items.into_iter().map(Value::Int32).collect()))
}

fn index_row(relation: &Relation, index: &IndexFacts) -> Row {
    let numbers_of = index.parts.iter().map(|(path, _)| number_of(relation, path));
    let paths = index.parts.iter().filter(|(path, _)| number_of(relation, path) == 0);
    let expressions: Vec<&str> = paths.map(|(path, _)| path.as_str()).collect();
    // Bit 0 is descending, bit 1 nulls first: null is the least value of an index.
    let options = index.parts.iter().map(|(_, direction)| match direction.as_str() {
        "-1" => 1,
        _ => 2,
    });
    vec![
        ("indexrelid", oid(index.oid)),
        ("indrelid", oid(relation.oid)),
        ("indnatts", int(index.parts.len())),
        ("indnkeyatts", int(index.parts.len())),
        ("indisunique", Value::Bool(index.unique)),
        ("indisprimary", Value::Bool(index.primary)),
        ("indimmediate", Value::Bool(true)),
        ("indisvalid", Value::Bool(true)),
        ("indisready", Value::Bool(true)),
        ("indislive", Value::Bool(true)),
        ("indkey", numbers(numbers_of)),
        ("indoption", numbers(options)),
        (
            "indcollation",
            Value::Array(Array::new(index.parts.iter().map(|_| oid(0)).collect())),
        ),
        (
            "indclass",
            Value::Array(Array::new(index.parts.iter().map(|_| oid(0)).collect())),
        ),
        (
            "indexprs",
            match expressions.is_empty() {
                true => Value::Null,
                false => text(expressions.join(", ")),
            },
        ),
        ("indpred", index.partial.as_ref().map_or(Value::Null, text)),
    ]
}

fn constraint(relation: &Relation, index: &IndexFacts) -> Option<Row> {
    if !keeps_constraint(index) {
        return None;
    }
    let columns = index.parts.iter().map(|(path, _)| number_of(relation, path));
    Some(vec![
        ("oid", oid(constraint_oid(index))),
        ("conname", text(&index.name)),
        ("connamespace", oid(PUBLIC)),
        ("contype", text(if index.primary { "p" } else { "u" })),
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

/// A name as SQL writes it: in quotes unless it is lower case and plain.
fn quoted(name: &str) -> String {
    let plain = |(i, c): (usize, char)| c.is_ascii_lowercase() || c == '_' || i > 0 && c.is_ascii_digit();
    match !name.is_empty() && name.chars().enumerate().all(plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

fn part((path, direction): &(String, String)) -> String {
    let path = match path.split_once('.') {
        None => quoted(path),
        // A path into documents is an expression.
        Some((head, rest)) => format!(
            "(({}).{})",
            quoted(head),
            rest.split('.').map(quoted).collect::<Vec<_>>().join(".")
        ),
    };
    match direction.as_str() {
        "1" => path,
        "-1" => format!("{path} DESC"),
        kind => format!("{path} {kind}"),
    }
}

fn indexdef(relation: &Relation, index: &IndexFacts) -> String {
    let parts: Vec<String> = index.parts.iter().map(part).collect();
    let unique = if index.unique { "UNIQUE " } else { "" };
    let filter = match &index.partial {
        Some(filter) => format!(" WHERE {filter}"),
        None => String::new(),
    };
    format!(
        "CREATE {unique}INDEX {} ON public.{} USING btree ({}){filter}",
        quoted(&index.name),
        quoted(&relation.table.name),
        parts.join(", ")
    )
}

fn constraintdef(index: &IndexFacts) -> String {
    let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
    let parts: Vec<String> = index.parts.iter().map(part).collect();
    format!("{kind} ({})", parts.join(", "))
}

/// What `pg_get_indexdef`, `pg_get_constraintdef` and `pg_get_viewdef` tell of every object, by OID.
///
/// Errors: those of [`Facts::relations`].
pub fn definition(function: &str, facts: &dyn Facts) -> Result<Vec<(i64, String)>> {
    let mut out = Vec::new();
    for relation in facts.relations()?.iter() {
        match function {
            "pg_get_indexdef" => {
                let all = relation.indexes.iter();
                out.extend(all.map(|index| (i64::from(index.oid), indexdef(relation, index))));
            }
            "pg_get_constraintdef" => {
                let all = relation.indexes.iter().filter(|index| keeps_constraint(index));
                out.extend(all.map(|index| (constraint_oid(index), constraintdef(index))));
            }
            _ => out.extend(relation.definition.clone().map(|text| (i64::from(relation.oid), text))),
        }
    }
    Ok(out)
}
