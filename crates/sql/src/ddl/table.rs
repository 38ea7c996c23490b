//! CREATE TABLE, DROP TABLE and DROP VIEW.

use super::keys::{check_expressions, check_is_whole, check_keys, keep_type, keyed, qualify, spec};
use super::like::{Taken, last_of};
use super::sequence as own_sequence;
use super::{alter, assertion, exclusion, free, like, made_namespace, name_of, namespace, note_made, partition, roles};
use crate::bind::declared::{Declared, name_in_schema};
use crate::bind::entry;
use crate::catalog::schemas;
use crate::error::{self, fail, unsupported};
use crate::notices::pass_over;
use crate::parse::created::NO_ROWS;
use crate::run::partitions::{children, descendants};
use crate::run::query::Field;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::{Type, stored};
use crate::write::{self, foreign};
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::rows::RowWriter;
use nestor_database::write::{Progress, catalog, comments, sequence};
use nestor_model::{CollectionOptions, Document, IndexSpec, Namespace, Result, Value, doc};
use nestor_storage::{Collection, View as _, WriteSet};
use sqlparser::ast::{
    CreateTable, HiveDistributionStyle, Ident, ObjectName, OnCommit, Query, SetExpr, Statement as Ast, TableConstraint,
    TableFactor,
};
use std::sync::Arc;

/// CREATE TABLE.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    create: &CreateTable,
    progress: &mut Progress,
) -> Result<&'static str> {
    let ns = made_namespace(statement, session, (create.temporary, &create.name), progress)?;
    session.check_right(&ns, Right::CreateCollection)?;
    let (mut create, on_commit) = permanent(create, &ns)?;
    check(&create)?;
    create.name = name_of(statement.current_view().view(), &ns);
    let mut inherits = Taken::default();
    let inherited = partition::expand(statement, session, &mut create, &mut inherits)?;
    for def in create.columns.iter_mut().filter(|_| inherited.is_none()) {
        keep_type(statement.current_view().view(), session, &mut def.data_type)?;
    }
    let mut taken = like::expand(statement, session, &mut create)?;
    taken.indexes.append(&mut inherits.indexes);
    qualify(statement.current_view().view(), session, &mut create)?;
    name_sequences(statement, session, &mut create, &ns)?;
    let create = &create;
    let mut declared = Declared::of(create, name_in_schema(&create.name, &ns.coll).1)?;
    if let Some(inherited) = &inherited {
        declared.triggers = inherited.triggers.clone();
    }
    let text = declared.named(create).to_string();
    entry::check_text(&text)?;
    let mut listed = Document::new();
    listed.push("validator", declared.validator(&text));
    listed.push("validationLevel", "strict");
    listed.push("validationAction", "error");
    let options = CollectionOptions::parse(listed)?;
    check_is_whole(declared.columns.iter().filter(|column| column.is_key))?;
    declared
        .unique
        .iter()
        .try_for_each(|unique| check_is_whole(keyed(unique, &declared)))?;
    let unique = declared.unique.iter().map(|unique| spec(unique, &declared));
    let mut specs: Vec<IndexSpec> = unique.collect::<Result<_>>()?;
    let table = Arc::new(declared.table(&ns, (None, last_of(&create.name).as_str())));
    exclusion::check(&table)?;
    for own in &table.exclusions {
        specs.push(exclusion::spec(&table, own)?);
    }
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| {
        if let Some(found) = ws.catalog().get(&ns) {
            if entry::type_of(found).is_some() {
                return fail("42710", format!("type \"{}\" already exists", ns.coll));
            }
            let taken = error::error("42P07", format!("relation \"{}\" already exists", ns.coll));
            return pass_over(create.if_not_exists, taken);
        }
        note_made(statement, session, ws, &ns)?;
        check_expressions(statement, session, ws, &ns, &declared)?;
        check_keys(session, ws, &ns, &declared)?;
        if declared.division.is_some() && !children(&*ws, &ns).is_empty() {
            // Commands have dropped the one that was called so before.
            return fail(
                "55000",
                format!("there are partitions of a table \"{}\" that is gone", ns.coll),
            );
        }
        partition::check_division(statement, session, ws, (&ns, &declared))?;
        catalog::create(statement, ws, &ns, uuid, &options)?;
        for spec in &specs {
            catalog::create_index(statement, ws, &ns, spec)?;
        }
        for (spec, parts) in &taken.indexes {
            let (op, _) = statement.operation(None)?;
            let reading = Reading::new(statement, &*ws, &op, session);
            let name = free::of_index(&reading, &ns, &last_of(&create.name), parts);
            catalog::create_index(statement, ws, &ns, &like::renamed(spec, &name)?)?;
        }
        if !taken.said.is_empty() {
            comments::change(statement, ws, &ns.db, uuid, |said| {
                for (kind, name, text) in &taken.said {
                    let mut of_kind = match said.remove(kind) {
                        Some(Value::Document(of_kind)) => of_kind,
                        _ => Document::new(),
                    };
                    of_kind.set(name.as_str(), text.as_str());
                    said.set(kind, of_kind);
                }
            })?;
        }
        if let Some(inherited) = &inherited {
            partition::made(statement, session, ws, (&ns, inherited))?;
        }
        session.temporary.note(&ns, on_commit.as_ref());
        Ok(())
    })?;
    Ok("CREATE TABLE")
}

/// Gives the sequences of a new table's columns names that nothing has.
fn name_sequences(
    statement: &Statement<'_>,
    session: &SessionFacts,
    create: &mut CreateTable,
    ns: &Namespace,
) -> Result<()> {
    let read = statement.current_view();
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, session);
    let name = name_in_schema(&create.name, &ns.coll).1.to_owned();
    let columns = Declared::of(create, &name)?.columns;
    own_sequence::name_new(&reading, create, (ns, &name), &columns, &[]);
    Ok(())
}

/// The statement that makes a table as if it were to stay, and what becomes of it at a commit.
///
/// Errors: 42P16 where that is said of one that stays.
fn permanent(create: &CreateTable, ns: &Namespace) -> Result<(CreateTable, Option<OnCommit>)> {
    let mut create = create.clone();
    create.temporary = false;
    create.global = None;
    let on_commit = create.on_commit.take();
    if on_commit.is_some() && !schemas::is_temporary(&ns.coll) {
        return fail("42P16", "ON COMMIT can only be used on temporary tables");
    }
    Ok((create, on_commit))
}

/// CREATE TABLE AS: how many rows it has; `None` where there is such a table already.
///
/// The column `_id` is its primary key if there is one: documents have one `_id`.
pub(super) fn create_as(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (create, given): (&CreateTable, (&[Type], &[Value])),
    progress: &mut Progress,
) -> Result<Option<u64>> {
    let ns = made_namespace(statement, session, (create.temporary, &create.name), progress)?;
    let (mut plain, on_commit) = permanent(create, &ns)?;
    plain.query = None;
    check(&plain)?;
    let (Some(query), true) = (
        &create.query,
        create.columns.is_empty() && create.constraints.is_empty(),
    ) else {
        return unsupported("CREATE TABLE AS with columns of its own");
    };
    session.check_right(&ns, Right::CreateCollection)?;
    if !roles::owns(session) {
        session.check_right(&ns, Right::Insert)?;
    }
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| {
        if ws.catalog().get(&ns).is_some() {
            let taken = error::error("42P07", format!("relation \"{}\" already exists", ns.coll));
            return pass_over(create.if_not_exists, taken).map(|()| None);
        }
        let (op, _) = statement.operation(None)?;
        let (columns, rows) = write::rows_of(statement, session, ws, &op, (query, given))?;
        let defs = columns.iter().map(|Field { name, ty, modifier, .. }| {
            let key = if name == "_id" { " PRIMARY KEY" } else { "" };
            format!(
                "{} {}{key}",
                Ident::with_quote('"', name.as_str()),
                ty.format(*modifier)
            )
        });
        note_made(statement, session, ws, &ns)?;
        let name = name_of(&*ws, &ns);
        let text = format!("CREATE TABLE {name} ({})", defs.collect::<Vec<_>>().join(", "));
        let mut parsed = match crate::parse::parse(&text)?.pop() {
            Some(Ast::CreateTable(create)) => create,
            _ => return unsupported("CREATE TABLE AS of these columns"),
        };
        parsed.unlogged = create.unlogged;
        for def in &mut parsed.columns {
            keep_type(&*ws, session, &mut def.data_type)?;
        }
        let (schema, name) = schemas::split(&*ws, &ns);
        let (schema, name) = (schema.to_owned(), name.to_owned());
        let declared = Declared::of(&parsed, &name)?;
        let options = CollectionOptions::parse(doc! {
            "validator": declared.validator(&declared.named(&parsed).to_string()),
            "validationLevel": "strict",
            "validationAction": "error",
        })?;
        catalog::create(statement, ws, &ns, uuid, &options)?;
        let table = declared.table(&ns, (Some(&schema), &name));
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
            written.map_err(|error| write::told(error, (&table, true), writer.collection()))?;
        }
        writer.finish();
        session.temporary.note(&ns, on_commit.as_ref());
        Ok((!is_without_rows(query)).then_some(count))
    })
}

/// Whether a query is one of `WITH NO DATA`.
fn is_without_rows(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else {
        return false;
    };
    match select.from.as_slice() {
        [only] => match &only.relation {
            TableFactor::Derived { alias: Some(alias), .. } => {
                alias.name.value == NO_ROWS && alias.name.quote_style.is_some()
            }
            _ => false,
        },
        _ => false,
    }
}

/// Refuses what is not supported.
fn check(create: &CreateTable) -> Result<()> {
    let refused = create.or_replace
        || create.temporary
        || create.external
        || create.dynamic
        || create.global.is_some()
        || create.transient
        || create.volatile
        || create.hive_distribution != HiveDistributionStyle::NONE
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
        || create.cluster_by.is_some()
        || create.clustered_by.is_some()
        || create.inherits.is_some()
        || create.strict;
    let says_enforced = |constraint: &TableConstraint| match constraint {
        TableConstraint::Check(check) => check.enforced.is_some(),
        TableConstraint::ForeignKey(key) => key.characteristics.is_some_and(|said| said.enforced.is_some()),
        TableConstraint::Unique(key) => key.characteristics.is_some_and(|said| said.enforced.is_some()),
        TableConstraint::PrimaryKey(key) => key.characteristics.is_some_and(|said| said.enforced.is_some()),
        _ => false,
    };
    crate::bind::storage::check_given(&create.table_options)?;
    match refused || create.constraints.iter().any(says_enforced) {
        true => unsupported("a clause of this CREATE TABLE"),
        false => Ok(()),
    }
}

/// What a catalog entry with rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    View,
    Materialized,
}

impl Kind {
    /// `None` of what has no rows.
    pub(super) fn of(collection: &Collection) -> Option<Self> {
        match collection.is_view() && collection.timeseries().is_none() {
            true => Some(Self::View),
            false if entry::holds_nothing(collection) => None,
            false if entry::materialized_of(collection).is_some() => Some(Self::Materialized),
            false => Some(Self::Table),
        }
    }
}

/// DROP TABLE and DROP VIEW, materialized or not.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists, cascades): (&[ObjectName], bool, bool),
    wanted: Kind,
    progress: &mut Progress,
) -> Result<&'static str> {
    let (tag, kind) = match wanted {
        Kind::Table => ("DROP TABLE", "table"),
        Kind::View => ("DROP VIEW", "view"),
        Kind::Materialized => ("DROP MATERIALIZED VIEW", "materialized view"),
    };
    let all: Vec<Namespace> = names
        .iter()
        .map(|name| namespace(statement, session, name))
        .collect::<Result<_>>()?;
    all.iter()
        .try_for_each(|ns| session.check_right(ns, Right::DropCollection))?;
    statement.atomically(progress, |ws| {
        // Partitions go with their tables.
        let mut all = all.clone();
        let mut at = 0;
        while let Some(ns) = all.get(at).cloned() {
            at += 1;
            let below = descendants(&*ws, &ns).into_iter().map(|(own, _)| own.ns.clone());
            let new: Vec<Namespace> = below.filter(|own| !all.contains(own)).collect();
            all.extend(new);
        }
        for ns in &all {
            let Some(found) = ws.catalog().get(ns).cloned() else {
                let missing = error::error("42P01", format!("{kind} \"{}\" does not exist", ns.coll));
                pass_over(if_exists, missing)?;
                continue;
            };
            if Kind::of(&found) != Some(wanted) {
                return fail("42809", format!("\"{}\" is not a {kind}", ns.coll));
            }
            session.deferred.check_none_of(ns, tag)?;
            if cascades {
                alter::let_go(statement, ws, ns)?;
                assertion::let_go(statement, session, ws, ns)?;
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
            let parent = partition::parent_of(&*ws, ns);
            let_go(statement, ws, &found)?;
            if let Some(parent) = parent.filter(|parent| !all.contains(parent)) {
                partition::gone(statement, session, ws, &parent)?;
            }
        }
        Ok(())
    })?;
    Ok(tag)
}

/// Drops a table or view with what was said of it and its sequences.
///
/// Errors: those of the catalog.
pub(super) fn let_go(statement: &Statement<'_>, ws: &mut WriteSet, found: &Collection) -> Result<()> {
    let ns = &found.ns;
    catalog::drop(statement, ws, ns)?;
    roles::follow(statement, ws, ns, None)?;
    comments::forget(statement, ws, &ns.db, found.uuid)?;
    own_sequence::follow(statement, ws, ns, &|_| None)?;
    let declared = Declared::of_collection(found);
    let columns = declared.iter().flat_map(|declared| &declared.columns);
    let counting = columns.filter(|column| column.identity.is_some());
    let keys = counting.map(|column| sequence::Key {
        collection: found.uuid,
        column: &column.name,
    });
    sequence::forget(statement, ws, &ns.db, &keys.collect::<Vec<_>>())
}
