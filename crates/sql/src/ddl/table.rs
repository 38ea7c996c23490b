//! CREATE TABLE, DROP TABLE and DROP VIEW.

use super::namespace;
use crate::bind::Binder;
use crate::bind::declared::{Declared, Unique};
use crate::bind::entry::{self, Object};
use crate::catalog::{Column, Foreign};
use crate::error::{self, fail, unsupported};
use crate::run::query::Field;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::stored;
use crate::write::{self, foreign};
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::rows::RowWriter;
use nestor_database::write::{Progress, catalog, sequence};
use nestor_model::{CollectionOptions, Document, IndexSpec, Namespace, Result, Value, doc};
use nestor_storage::View as _;
use sqlparser::ast::{CreateTable, CreateTableOptions, HiveDistributionStyle, Ident, ObjectName, Statement as Ast};
use std::collections::BTreeSet;
use std::sync::Arc;

/// CREATE TABLE.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    create: &CreateTable,
    progress: &mut Progress,
) -> Result<&'static str> {
    check(create)?;
    let ns = namespace(session, &create.name)?;
    session.check_right(&ns, Right::CreateCollection)?;
    let declared = Declared::of(create, &ns.coll)?;
    let text = declared.named(create).to_string();
    let mut listed = Document::new();
    listed.push("validator", declared.validator(&text));
    listed.push("validationLevel", "strict");
    listed.push("validationAction", "error");
    let options = CollectionOptions::parse(listed)?;
    let specs: Vec<IndexSpec> = declared
        .unique
        .iter()
        .map(|unique| spec(unique, &declared))
        .collect::<Result<_>>()?;
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| {
        if ws.catalog().get(&ns).is_some() {
            return match create.if_not_exists {
                true => Ok(()),
                false => fail("42P07", format!("relation \"{}\" already exists", ns.coll)),
            };
        }
        check_expressions(statement, session, ws, &ns, &declared)?;
        check_keys(session, ws, &ns, &declared)?;
        catalog::create(statement, ws, &ns, uuid, &options)?;
        for spec in &specs {
            catalog::create_index(statement, ws, &ns, spec)?;
        }
        Ok(())
    })?;
    Ok("CREATE TABLE")
}

/// CREATE TABLE AS: how many rows it has; `None` where there is such a table already.
///
/// The column `_id` is its primary key if there is one: documents have one `_id`.
pub(super) fn create_as(
    statement: &Statement<'_>,
    session: &SessionFacts,
    create: &CreateTable,
    progress: &mut Progress,
) -> Result<Option<u64>> {
    let plain = CreateTable {
        query: None,
        ..create.clone()
    };
    check(&plain)?;
    let (Some(query), true) = (
        &create.query,
        create.columns.is_empty() && create.constraints.is_empty(),
    ) else {
        return unsupported("CREATE TABLE AS with columns of its own");
    };
    let ns = namespace(session, &create.name)?;
    session.check_right(&ns, Right::CreateCollection)?;
    session.check_right(&ns, Right::Insert)?;
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| {
        if ws.catalog().get(&ns).is_some() {
            return match create.if_not_exists {
                true => Ok(None),
                false => fail("42P07", format!("relation \"{}\" already exists", ns.coll)),
            };
        }
        let (op, _) = statement.operation(None)?;
        let (columns, rows) = write::rows_of(statement, session, ws, &op, query)?;
        let defs = columns.iter().map(|Field { name, ty, modifier }| {
            let key = if name == "_id" { " PRIMARY KEY" } else { "" };
            format!(
                "{} {}{key}",
                Ident::with_quote('"', name.as_str()),
                ty.format(*modifier)
            )
        });
        let text = format!("CREATE TABLE {} ({})", create.name, defs.collect::<Vec<_>>().join(", "));
        let parsed = match crate::parse::parse(&text)?.pop() {
            Some(Ast::CreateTable(create)) => create,
            _ => return unsupported("CREATE TABLE AS of these columns"),
        };
        let declared = Declared::of(&parsed, &ns.coll)?;
        let options = CollectionOptions::parse(doc! {
            "validator": declared.validator(&declared.named(&parsed).to_string()),
            "validationLevel": "strict",
            "validationAction": "error",
        })?;
        catalog::create(statement, ws, &ns, uuid, &options)?;
        let table = declared.table(&ns);
        let count = rows.len() as u64;
        let mut writer = RowWriter::open(statement, ws, &ns, &op)?;
        for row in rows {
            let mut doc = Document::new();
            for (column, value) in table.columns.iter().zip(row) {
                if !matches!(value, Value::Null) {
                    doc.push(column.path.as_str(), stored::write(&column.ty, value));
                }
            }
            let written = writer.insert(doc.to_raw().as_raw());
            written.map_err(|error| write::told(error, &table, writer.collection()))?;
        }
        writer.finish();
        Ok(Some(count))
    })
}

/// Refuses what is not supported.
fn check(create: &CreateTable) -> Result<()> {
    let refused = create.or_replace
        || create.temporary
        || create.unlogged
        || create.external
        || create.dynamic
        || create.global.is_some()
        || create.transient
        || create.volatile
        || create.hive_distribution != HiveDistributionStyle::NONE
        || create.table_options != CreateTableOptions::None
        || create.file_format.is_some()
        || create.location.is_some()
        || create.query.is_some()
        || create.without_rowid
        || create.like.is_some()
        || create.clone.is_some()
        || create.comment.is_some()
        || create.on_commit.is_some()
        || create.primary_key.is_some()
        || create.order_by.is_some()
        || create.partition_by.is_some()
        || create.cluster_by.is_some()
        || create.clustered_by.is_some()
        || create.inherits.is_some()
        || create.partition_of.is_some()
        || create.strict;
    match refused {
        true => unsupported("a clause of this CREATE TABLE"),
        false => Ok(()),
    }
}

/// Defaults and checks mean something.
pub(super) fn check_expressions(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &nestor_storage::WriteSet,
    ns: &Namespace,
    declared: &Declared,
) -> Result<()> {
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, ws, &op, session);
    let table = Arc::new(declared.table(ns));
    Binder::new(&reading, Vec::new()).check_declaration(&table)
}

/// Keys of other tables are keys there. The entries of these tables are written anew, so that whoever deletes keys meanwhile without knowing
/// of this table conflicts with it. Rows that may have a key or not tell which keys there are, so it takes the right to read them.
pub(super) fn check_keys(
    session: &SessionFacts,
    ws: &mut nestor_storage::WriteSet,
    ns: &Namespace,
    declared: &Declared,
) -> Result<()> {
    for key in &declared.foreign {
        let other = Namespace::new(&*ns.db, key.table.as_str());
        if other != *ns {
            session.check_right(&other, Right::Find)?;
        }
        let collection = ws.catalog().get(&other).cloned();
        let found = match (other == *ns, collection.as_deref().map(entry::of)) {
            (true, _) => None,
            (false, Some(Some(Object::Table(other, _)))) => Some(other.clone()),
            (false, None) => return fail("42P01", format!("relation \"{}\" does not exist", key.table)),
            (false, Some(_)) => {
                return fail(
                    "42809",
                    format!("referenced relation \"{}\" is not a declared table", key.table),
                );
            }
        };
        check_key(key, declared, found.as_deref().unwrap_or(declared))?;
        if let (Some(collection), true) = (collection, other != *ns) {
            ws.set_options(collection.id, collection.options.clone())?;
        }
    }
    Ok(())
}

/// A key of `declared` is one of `parent`.
///
/// Errors: 42703, 42704, 42804, 42830.
pub(super) fn check_key(key: &Foreign, declared: &Declared, parent: &Declared) -> Result<()> {
    let referred = match key.referred.is_empty() {
        true if parent.key.is_empty() => {
            return fail(
                "42704",
                format!("there is no primary key for referenced table \"{}\"", key.table),
            );
        }
        true => &parent.key,
        false => &key.referred,
    };
    if referred.len() != key.columns.len() {
        return fail(
            "42830",
            "number of referencing and referenced columns for foreign key disagree",
        );
    }
    let paths = |names: &[String]| -> Result<Vec<String>> {
        let each = names
            .iter()
            .map(|name| match parent.columns.iter().find(|column| column.name == *name) {
                Some(column) => Ok(column.path.clone()),
                None => fail(
                    "42703",
                    format!("column \"{name}\" referenced in foreign key constraint does not exist"),
                ),
            });
        each.collect()
    };
    let set = |paths: &[String]| paths.iter().cloned().collect::<BTreeSet<String>>();
    let wanted = set(&paths(referred)?);
    let is_key = wanted == set(&paths(&parent.key)?) || parent.unique.iter().any(|key| set(&key.paths) == wanted);
    if !is_key {
        return fail(
            "42830",
            format!(
                "there is no unique constraint matching given keys for referenced table \"{}\"",
                key.table
            ),
        );
    }
    for (own, theirs) in key.columns.iter().zip(referred) {
        let ty = |columns: &[Column], name: &str| {
            let found = columns.iter().find(|column| column.name == name);
            found.map(|column| column.ty.clone())
        };
        let (a, b) = (ty(&declared.columns, own), ty(&parent.columns, theirs));
        let goes = match (&a, &b) {
            (Some(a), Some(b)) => a == b || a.is_number() && b.is_number() || a.is_text() && b.is_text(),
            _ => false,
        };
        if !goes {
            return fail(
                "42804",
                format!("foreign key constraint \"{}\" cannot be implemented", key.name),
            );
        }
    }
    Ok(())
}

/// The index of a key. Rows in which a column is null are in none: they are equal to no row.
pub(super) fn spec(unique: &Unique, declared: &Declared) -> Result<IndexSpec> {
    let mut key = Document::new();
    unique.paths.iter().for_each(|path| key.push(path.as_str(), 1));
    let mut listed = doc! { "v": 2, "key": key, "name": unique.name.as_str(), "unique": true };
    only_where_not_null(&mut listed, &unique.paths, declared);
    IndexSpec::parse(listed.to_raw())
}

/// Leaves rows out of a unique index of `paths` in which one of them may be null, and is.
pub(super) fn only_where_not_null(listed: &mut Document, paths: &[String], declared: &Declared) {
    let is_nullable = |path: &&String| {
        let column = declared.columns.iter().find(|column| column.path == **path);
        column.is_none_or(|column| !column.not_null)
    };
    let nullable: Vec<&String> = paths.iter().filter(is_nullable).collect();
    match (nullable.as_slice(), paths) {
        ([], _) => {}
        ([_], [_]) => listed.push("sparse", true),
        (nullable, _) => {
            let mut filter = Document::new();
            nullable
                .iter()
                .for_each(|path| filter.push(path.as_str(), doc! { "$exists": true }));
            listed.push("partialFilterExpression", filter);
        }
    }
}

/// DROP TABLE and DROP VIEW.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists, is_view): (&[ObjectName], bool, bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let (tag, kind) = match is_view {
        true => ("DROP VIEW", "view"),
        false => ("DROP TABLE", "table"),
    };
    let all: Vec<Namespace> = names
        .iter()
        .map(|name| namespace(session, name))
        .collect::<Result<_>>()?;
    all.iter()
        .try_for_each(|ns| session.check_right(ns, Right::DropCollection))?;
    statement.atomically(progress, |ws| {
        for ns in &all {
            let Some(found) = ws.catalog().get(ns).cloned() else {
                match if_exists {
                    true => continue,
                    false => return fail("42P01", format!("{kind} \"{}\" does not exist", ns.coll)),
                }
            };
            let view = found.is_view() && found.timeseries().is_none();
            if view != is_view {
                return fail("42809", format!("\"{}\" is not a {kind}", ns.coll));
            }
            if matches!(entry::of(&found), Some(Object::Sequence(..))) {
                return fail("42809", format!("\"{}\" is not a {kind}", ns.coll));
            }
            let others = foreign::referring(ws, ns);
            if let Some((other, constraint)) = others.iter().find(|(other, _)| !all.contains(other)) {
                let message = format!("cannot drop table {} because other objects depend on it", ns.coll);
                let detail = format!(
                    "constraint {constraint} on table {} depends on table {}",
                    other.coll, ns.coll
                );
                return Err(error::with(
                    error::error("2BP01", message),
                    &[(error::Field::Detail, &detail)],
                ));
            }
            catalog::drop(statement, ws, ns)?;
            let declared = Declared::of_collection(&found);
            let columns = declared.iter().flat_map(|declared| &declared.columns);
            let counting = columns.filter(|column| column.identity.is_some());
            let keys = counting.map(|column| sequence::Key {
                collection: found.uuid,
                column: &column.name,
            });
            sequence::forget(statement, ws, &ns.db, &keys.collect::<Vec<_>>())?;
        }
        Ok(())
    })?;
    Ok(tag)
}
