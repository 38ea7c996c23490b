//! CREATE and REFRESH MATERIALIZED VIEW: a collection of the rows that a query had.
//!
//! Its entry ([`entry::MATERIALIZED`]) has the query and the columns; a validator that no document fits keeps commands from writing to it.
//! REFRESH asks the query again and writes what is different, in one commit: readers see the rows of before until then.

use super::keys::keep_type;
use super::view::{check, query_text};
use super::{name_of, namespace, new_namespace, note_made, roles};
use crate::bind::entry;
use crate::catalog::{Table, schemas};
use crate::error::{self, error, fail, unsupported};
use crate::notices::pass_over;
use crate::run::gathered::Gathered;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::stored;
use crate::write::{self, WRITTEN_FACTOR};
use nestor_database::read;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::rows::RowWriter;
use nestor_database::write::{Progress, catalog};
use nestor_exec::Step;
use nestor_model::statement::work;
use nestor_model::{CollectionOptions, DocRef, Document, Namespace, Result, doc};
use nestor_planner::relation::Tuple;
use nestor_query::env::OpContext;
use nestor_storage::{Bytes, Collection, View as _, WriteSet};
use sqlparser::ast::{CreateView, Ident, ObjectName, Query, Statement as Ast};
use std::collections::HashMap;
use std::sync::Arc;

/// CREATE MATERIALIZED VIEW: its tag.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (create, has_data): (&CreateView, bool),
    progress: &mut Progress,
) -> Result<String> {
    check(create)?;
    let ns = new_namespace(statement, session, &create.name)?;
    if *ns.db != *session.database {
        return unsupported("a view in another database");
    }
    session.check_right(&ns, Right::CreateCollection)?;
    if has_data && !roles::owns(session) {
        session.check_right(&ns, Right::Insert)?;
    }
    let query = query_text(create)?;
    let uuid = statement.database.new_uuid();
    let rows = statement.atomically(progress, |ws| {
        if ws.catalog().get(&ns).is_some() {
            let taken = error("42P07", format!("relation \"{}\" already exists", ns.coll));
            return pass_over(create.if_not_exists, taken).map(|()| None);
        }
        let (op, _) = statement.operation(None)?;
        let text = {
            let reading = Reading::new(statement, &*ws, &op, session);
            let columns = super::view::columns_of(&reading, schemas::split(reading.view, &ns).0, &query)?;
            let columns = columns.iter().map(|field| {
                format!(
                    "{} {}",
                    Ident::with_quote('"', field.name.as_str()),
                    field.ty.format(field.modifier)
                )
            });
            let columns = columns.collect::<Vec<_>>().join(", ");
            format!("CREATE TABLE {} ({columns})", name_of(&*ws, &ns))
        };
        let Some(Ast::CreateTable(mut table)) = crate::parse::parse(&text)?.pop() else {
            return unsupported("a materialized view of these columns");
        };
        for def in &mut table.columns {
            keep_type(&*ws, session, &mut def.data_type)?;
        }
        note_made(statement, session, ws, &ns)?;
        let options = CollectionOptions::parse(doc! {
            "validator": entry::validator(title(has_data), &format!("{query}; {table}")),
            "validationLevel": "strict",
            "validationAction": "error",
        })?;
        catalog::create(statement, ws, &ns, uuid, &options)?;
        match has_data {
            true => fill(statement, session, ws, (&ns, &op)).map(Some),
            false => Ok(None),
        }
    })?;
    Ok(rows.map_or_else(
        || "CREATE MATERIALIZED VIEW".to_owned(),
        |rows| format!("SELECT {rows}"),
    ))
}

fn title(is_populated: bool) -> &'static str {
    match is_populated {
        true => entry::MATERIALIZED,
        false => entry::UNPOPULATED,
    }
}

/// REFRESH MATERIALIZED VIEW.
pub(super) fn refresh(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, concurrently, has_data): (&ObjectName, bool, bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    if concurrently && !has_data {
        return fail(
            "42601",
            "REFRESH options CONCURRENTLY and WITH NO DATA cannot be used together",
        );
    }
    let ns = namespace(statement, session, name)?;
    session.check_right(&ns, Right::Insert)?;
    session.check_right(&ns, Right::Remove)?;
    statement.atomically(progress, |ws| {
        let Some(collection) = ws.catalog().get(&ns).cloned() else {
            return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
        };
        let Some(table) = entry::materialized_of(&collection) else {
            return fail("42809", format!("\"{}\" is not a materialized view", ns.coll));
        };
        let was_populated = table.materialized.as_ref().is_some_and(|own| own.is_populated);
        if concurrently {
            check_concurrently(&collection, table, was_populated)?;
        }
        if was_populated != has_data {
            let text = match collection
                .options
                .validator
                .as_ref()
                .and_then(|own| own.get("$jsonSchema"))
            {
                Some(schema) => schema
                    .as_document()
                    .and_then(|own| own.get("description")?.as_str().map(str::to_owned)),
                None => None,
            };
            let validator = entry::validator(title(has_data), &text.unwrap_or_default());
            catalog::set_validator(statement, ws, &collection, &validator)?;
        }
        let (op, _) = statement.operation(None)?;
        match has_data {
            true => fill(statement, session, ws, (&ns, &op)).map(drop),
            false => write_rows(statement, session, ws, (&ns, &op), (table, Vec::new())),
        }
    })?;
    Ok("REFRESH MATERIALIZED VIEW")
}

/// As PostgreSQL wants it, though rows are compared as a whole here.
fn check_concurrently(collection: &Collection, table: &Table, is_populated: bool) -> Result<()> {
    if !is_populated {
        return fail(
            "0A000",
            "CONCURRENTLY cannot be used when the materialized view is not populated",
        );
    }
    let is_of_columns = |path: &str| table.columns.iter().any(|column| column.path == path);
    let mut indexes = collection.indexes.iter().filter(|index| index.unique);
    if indexes.any(|index| index.key_pattern.iter().all(|(path, _)| is_of_columns(path))) {
        return Ok(());
    }
    let told = format!(
        "cannot refresh materialized view \"{}.{}\" concurrently",
        table.schema, table.name
    );
    let hint = "Create a unique index with no WHERE clause on one or more columns of the materialized view.";
    Err(error::with(error("55000", told), &[(error::Field::Hint, hint)]))
}

/// Gives a materialized view the rows of its query; how many these are.
fn fill(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (ns, op): (&Namespace, &OpContext),
) -> Result<u64> {
    let collection = ws.catalog().get(ns).cloned();
    let Some(table) = collection.as_deref().and_then(entry::materialized_of) else {
        return fail("XX000", "what is no materialized view was to be filled");
    };
    let text = table.materialized.as_ref().map_or("", |own| &own.text);
    let Some(query) = entry::parsed(text) else {
        return unsupported("a view of what is no query");
    };
    let rows = rows(statement, session, ws, op, (table, &query))?;
    let count = rows.len() as u64;
    write_rows(statement, session, ws, (ns, op), (table, rows))?;
    Ok(count)
}

fn rows(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &WriteSet,
    op: &OpContext,
    (table, query): (&Table, &Query),
) -> Result<Vec<Tuple>> {
    let reading = Reading::new(statement, ws, op, session);
    write::rows_of_view(&reading, (&table.schema, query), &table.columns)
}

/// A document without its `_id`, as bytes.
fn body_of(doc: DocRef<'_>) -> Vec<u8> {
    let mut body = doc.to_document();
    body.remove("_id");
    body.to_raw().as_bytes().to_vec()
}

/// Leaves these rows in a materialized view: what is there already stays, other documents go, and what is missing comes.
fn write_rows(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (ns, op): (&Namespace, &OpContext),
    (table, rows): (&Arc<Table>, Vec<Tuple>),
) -> Result<()> {
    let mut gathered = Gathered::new();
    let mut there: HashMap<Vec<u8>, Vec<Bytes>> = HashMap::new();
    {
        let reading = Reading::new(statement, &*ws, op, session);
        let all = Document::new();
        let find = crate::run::tables::Find {
            stored: true,
            ..crate::run::tables::Find::all(&all)
        };
        let mut root = reading.find(ns, find)?;
        let mut batch = read::batch(statement, &*ws, op, true);
        loop {
            match root.next(&mut batch)? {
                Step::Row(row) => {
                    let body = body_of(row.as_doc());
                    gathered.grow(body.len() + 2 * size_of::<Vec<u8>>())?;
                    if let Some(record) = row.record.as_deref() {
                        there.entry(body).or_default().push(Bytes::copy_from(record));
                    }
                }
                Step::Pause => {}
                Step::Eof => break,
            }
        }
    }
    let mut new = Vec::new();
    for row in rows {
        work(1)?;
        let mut doc = Document::new();
        for (column, value) in table.columns.iter().zip(row) {
            if !matches!(value, nestor_model::Value::Null) {
                doc.push(column.path.as_str(), stored::write(&column.ty, value));
            }
        }
        let body = doc.to_raw().as_bytes().to_vec();
        if let Some(records) = there.get_mut(&body)
            && records.pop().is_some()
        {
            continue;
        }
        gathered.grow(body.len() * WRITTEN_FACTOR)?;
        new.push(doc);
    }
    let mut writer = RowWriter::open_beyond(statement, ws, ns, op)?;
    for record in there.into_values().flatten() {
        work(1)?;
        if let Some(before) = writer.get(&record)? {
            gathered.grow(before.len() * WRITTEN_FACTOR)?;
            writer.delete(&record, &before)?;
        }
    }
    for body in new {
        work(1)?;
        let mut doc = doc! { "_id": op.object_id() };
        for (name, value) in body.iter() {
            doc.push(name, value.to_value());
        }
        let written = writer.insert(doc.to_raw().as_raw());
        written.map_err(|error| write::told(error, (table, true), writer.collection()))?;
    }
    writer.finish();
    Ok(())
}
