//! Writes to documents of duality views ([`crate::bind::duality`]): what is different of a document becomes rows of its tables that are
//! inserted, updated and deleted, all in the write set of the statement.
//!
//! A document that is written may have the etag with which it was read, as `_metadata.etag`. Where the document has another one by now, somebody
//! has changed it meanwhile: [`STALE`].

use super::foreign::Changes;
use super::{Done, Executed, attempt, run_query};
use crate::bind::duality::Shape;
use crate::bind::write::writing;
use crate::bind::{Binder, object_name};
use crate::catalog::Table;
use crate::catalog::schemas;
use crate::error::{Field, error, fail, unsupported, with};
use crate::run::gathered::Gathered;
use crate::run::held::Holding;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_model::statement::work;
use nestor_model::{Array, Document, Namespace, Result, Value, ValueRef};
use nestor_storage::WriteSet;
use sqlparser::ast::{AssignmentTarget, Delete, FromTable, Insert, Query, Statement as Ast, Update};
use std::sync::Arc;

/// The state of an error about a document that was changed since it was read: as with HTTP's 412.
pub const STALE: &str = "PT412";

/// A row of a table: columns and their values, as JSON has them.
type Row = Document;

/// The rows of a table that a document has.
struct Rows<'s> {
    shape: &'s Shape,
    rows: Vec<Row>,
}

fn is_null(value: ValueRef<'_>) -> bool {
    value.is_nullish()
}

/// Takes a document apart: tables that belong to another one stand behind it.
fn take_apart<'s>(shape: &'s Shape, doc: &Document, link: &Row, out: &mut Vec<Rows<'s>>) -> Result<()> {
    work(1)?;
    let known = |name: &str| {
        name == "_metadata"
            || shape.fields.iter().any(|(field, _)| field == name)
            || shape.children.iter().any(|(field, _)| field == name)
    };
    if let Some((name, _)) = doc.iter().find(|(name, _)| !known(name)) {
        return fail(
            "22023",
            format!("documents of the duality view have no field \"{name}\" here"),
        );
    }
    let mut row = Row::new();
    for (field, column) in &shape.fields {
        row.set(column, doc.get(field).map_or(Value::Null, |value| value.to_value()));
    }
    for (own, outer) in &shape.link {
        row.set(own, link.get(outer).map_or(Value::Null, |value| value.to_value()));
    }
    let at = match out.iter().position(|rows| std::ptr::eq(rows.shape, shape)) {
        Some(at) => at,
        None => {
            out.push(Rows {
                shape,
                rows: Vec::new(),
            });
            out.len() - 1
        }
    };
    for (name, child) in &shape.children {
        let items = match doc.get(name) {
            Some(ValueRef::Array(items)) => items,
            Some(value) if !is_null(value) => return fail("22023", format!("\"{name}\" is to be an array")),
            _ => continue,
        };
        for item in items.iter() {
            let Value::Document(item) = item.to_value() else {
                return fail("22023", format!("\"{name}\" is to be an array of documents"));
            };
            take_apart(child, &item, &row, out)?;
        }
    }
    out[at].rows.push(row);
    Ok(())
}

fn same(a: Option<ValueRef<'_>>, b: Option<ValueRef<'_>>) -> bool {
    match (a.filter(|a| !is_null(*a)), b.filter(|b| !is_null(*b))) {
        (Some(a), Some(b)) => nestor_model::values_equal(a, b),
        (None, None) => true,
        _ => false,
    }
}

fn has_key_of(shape: &Shape, a: &Row, b: &Row) -> bool {
    shape.key.iter().all(|column| same(a.get(column), b.get(column)))
}

/// The shape and those within it, each behind the one that it belongs to.
fn all(shape: &Shape) -> Vec<&Shape> {
    let mut out = vec![shape];
    for (_, child) in &shape.children {
        out.extend(all(child));
    }
    out
}

/// The columns of rows of a shape, as the definition of a record set has them.
fn definition(shape: &Shape, columns: &[&str]) -> String {
    let each = columns.iter().filter_map(|name| {
        let column = shape.table.column(name)?;
        Some(format!("{} {}", quoted(name), column.ty.format(column.modifier)))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn quoted(name: &str) -> String {
    sqlparser::ast::Ident::with_quote('"', name).to_string()
}

fn list(columns: &[&str], form: impl Fn(&str) -> String, between: &str) -> String {
    columns
        .iter()
        .map(|name| form(&quoted(name)))
        .collect::<Vec<_>>()
        .join(between)
}

/// What has to be done to make a document another one; `None` of one that is not there.
struct Change {
    before: Option<Document>,
    after: Option<Document>,
}

/// The statements that make a change, each with the rows that it is given.
fn statements(shape: &Shape, changes: &[Change]) -> Result<Vec<(String, Vec<Row>)>> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for change in changes {
        for (doc, out) in [(&change.before, &mut before), (&change.after, &mut after)] {
            if let Some(doc) = doc {
                take_apart(shape, doc, &Row::new(), out)?;
            }
        }
    }
    let rows = |all: &[Rows<'_>], shape: &Shape| {
        let own = all.iter().find(|rows| std::ptr::eq(rows.shape, shape));
        own.map_or_else(Vec::new, |rows| rows.rows.clone())
    };
    let (mut deletes, mut others) = (Vec::new(), Vec::new());
    for shape in all(shape) {
        let (old, new) = (rows(&before, shape), rows(&after, shape));
        let linked = shape.link.iter().map(|(own, _)| own.as_str());
        let mut columns: Vec<&str> = shape
            .fields
            .iter()
            .map(|(_, column)| column.as_str())
            .chain(linked)
            .collect();
        columns.sort_unstable();
        columns.dedup();
        let key: Vec<&str> = shape.key.iter().map(String::as_str).collect();
        let (mut gone, mut changed, mut made) = (Vec::new(), Vec::new(), Vec::new());
        for row in &old {
            work(new.len().max(1))?;
            if !new.iter().any(|other| has_key_of(shape, row, other)) {
                gone.push(row.clone());
            }
        }
        for row in new {
            work(old.len().max(1))?;
            match old.iter().find(|other| has_key_of(shape, &row, other)) {
                None => made.push(row),
                Some(other) if columns.iter().all(|column| same(row.get(column), other.get(column))) => {}
                Some(_) => changed.push(row),
            }
        }
        let table = &shape.name;
        let on = list(&key, |name| format!("t.{name} = x.{name}"), " AND ");
        let own: Vec<&str> = columns.iter().copied().filter(|column| !key.contains(column)).collect();
        deletes.push((
            format!(
                "DELETE FROM {table} AS t USING jsonb_to_recordset($1) AS x ({}) WHERE {on}",
                definition(shape, &key)
            ),
            gone,
        ));
        others.push((
            format!(
                "UPDATE {table} AS t SET {} FROM jsonb_to_recordset($1) AS x ({}) WHERE {on}",
                list(&own, |name| format!("{name} = x.{name}"), ", "),
                definition(shape, &columns)
            ),
            changed,
        ));
        others.push((
            format!(
                "INSERT INTO {table} ({}) SELECT {} FROM jsonb_to_recordset($1) AS x ({})",
                list(&columns, str::to_owned, ", "),
                list(&columns, |name| format!("x.{name}"), ", "),
                definition(shape, &columns)
            ),
            made,
        ));
    }
    // Rows go before those that they belong to, and come behind them.
    deletes.reverse();
    deletes.extend(others);
    deletes.retain(|(_, rows)| !rows.is_empty());
    Ok(deletes)
}

fn etag_of(doc: &Document) -> Option<String> {
    match doc.get("_metadata") {
        Some(ValueRef::Document(own)) => own.get("etag").and_then(ValueRef::as_str).map(str::to_owned),
        _ => None,
    }
}

fn document(value: Value) -> Result<Document> {
    match value {
        Value::Document(doc) => Ok(doc),
        _ => fail("22023", "a document is wanted"),
    }
}

/// The query whose rows tell what a statement does: the document that is there, if it is about such, and the one that is to be.
///
/// Errors: 0A000 for clauses that such statements do not have.
pub(super) fn query_of(ast: &Ast) -> Result<String> {
    let Some((inner, None)) = writing(ast) else {
        return unsupported("WITH before a statement on a duality view");
    };
    match inner {
        Ast::Insert(Insert {
            source: Some(source),
            columns,
            on: None,
            returning: None,
            ..
        }) if columns.len() <= 1 => Ok(format!("SELECT NULL::jsonb, doc::jsonb FROM ({source}) AS given (doc)")),
        Ast::Update(Update {
            table,
            assignments,
            from: None,
            selection,
            returning: None,
            ..
        }) => {
            let [assignment] = assignments.as_slice() else {
                return unsupported("an UPDATE of a duality view that does not write its document");
            };
            let is_doc = match &assignment.target {
                AssignmentTarget::ColumnName(name) => {
                    object_name(name).is_ok_and(|(table, name)| table.is_none() && name == "doc")
                }
                AssignmentTarget::Tuple(_) => false,
            };
            if !is_doc {
                return unsupported("an UPDATE of a duality view that does not write its document");
            }
            let condition = selection
                .as_ref()
                .map_or_else(String::new, |condition| format!(" WHERE {condition}"));
            Ok(format!(
                "SELECT doc, ({})::jsonb FROM {table}{condition}",
                assignment.value
            ))
        }
        Ast::Delete(Delete {
            from: FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from),
            using: None,
            selection,
            returning: None,
            ..
        }) => {
            let [table] = from.as_slice() else {
                return fail("42601", "DELETE takes one table");
            };
            let condition = selection
                .as_ref()
                .map_or_else(String::new, |condition| format!(" WHERE {condition}"));
            Ok(format!("SELECT doc, NULL::jsonb FROM {table}{condition}"))
        }
        _ => unsupported("this statement, or a clause of it, on a duality view"),
    }
}

/// The query that a text of [`query_of`] is.
///
/// Errors: those of the grammar.
pub(super) fn parsed(text: &str) -> Result<Arc<Query>> {
    match crate::parse::parse(text)?.pop() {
        Some(Ast::Query(query)) => Ok(Arc::from(query)),
        _ => fail("XX000", "a statement on a duality view asks nothing"),
    }
}

/// Does in a write set what a statement wants of the documents of a duality view.
///
/// Errors: [`STALE`]; 22023 for documents of another shape, 0A000; those of the statements that write the rows.
pub(super) fn run(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (view, executed): (&Table, Executed<'_>),
    gathered: &mut Gathered,
) -> Result<Done> {
    let Executed { ast, types, params } = executed;
    let right = match writing(ast) {
        Some((Ast::Insert(_), _)) => Right::Insert,
        Some((Ast::Delete(_), _)) => Right::Remove,
        _ => Right::Update,
    };
    let collection = schemas::collection(&view.schema, &view.name);
    session.check_right(&Namespace::new(session.database.as_str(), collection), right)?;
    let (op, _) = statement.operation(None)?;
    let query = parsed(&query_of(ast)?)?;
    let Some(of_shape) = &view.duality else {
        return fail("XX000", "a view that is no duality view was written to as one");
    };
    let (shape, rows) = loop {
        statement.interrupt.check()?;
        let holding = Holding::new(&*ws);
        let mut reading = Reading::new(statement, &*ws, &op, session);
        reading.holding = Some(&holding);
        let shape = Binder::new(&reading, Vec::new()).shape(&view.schema, of_shape)?;
        let rows = run_query(&reading, &query, (types.to_vec(), params))?;
        hold(&reading, &shape, &rows)?;
        if holding.noted().settle(statement, ws)? {
            break (shape, rows);
        }
    };
    let mut changes: Vec<Change> = Vec::with_capacity(rows.len());
    for row in rows {
        gathered.grow(row.iter().map(Value::weight).sum::<usize>() * super::WRITTEN_FACTOR)?;
        let mut row = row.into_iter();
        let (before, after) = (row.next().unwrap_or(Value::Null), row.next().unwrap_or(Value::Null));
        let before = (!before.as_ref().is_nullish()).then(|| document(before)).transpose()?;
        let after = match right {
            Right::Remove => None,
            _ => Some(document(after)?),
        };
        if let (Some(before), Some(after)) = (&before, &after) {
            check_change(&shape, before, after)?;
        }
        changes.push(Change { before, after });
    }
    let (count, mut noted, mut parts) = (changes.len() as u64, None, Vec::new());
    for (text, rows) in statements(&shape, &changes)? {
        let Some(inner) = crate::parse::parse(&text)?.pop() else {
            continue;
        };
        let rows = rows.into_iter().map(Value::Document).collect();
        let given = [Value::Array(Array::new(rows))];
        let given = (&inner, ([Type::Jsonb].as_slice(), given.as_slice()));
        let done = attempt(statement, session, ws, given, gathered, (None, None, true))?;
        noted = Changes::both(noted, done.changes);
        parts.extend(done.done);
    }
    Ok(Done {
        rows: count,
        fields: Vec::new(),
        returned: Vec::new(),
        changes: noted,
        done: parts,
    })
}

/// Holds the rows that documents begin with, so that of two statements that write a document the second conflicts.
fn hold(reading: &Reading<'_, '_>, shape: &Shape, rows: &[Vec<Value>]) -> Result<()> {
    let mut all = Vec::new();
    for row in rows {
        if let Some(Value::Document(doc)) = row.first() {
            let mut parts = Vec::new();
            take_apart(shape, doc, &Row::new(), &mut parts)?;
            let own = parts.into_iter().filter(|rows| std::ptr::eq(rows.shape, shape));
            all.extend(own.flat_map(|rows| rows.rows).map(Value::Document));
        }
    }
    if all.is_empty() {
        return Ok(());
    }
    let key: Vec<&str> = shape.key.iter().map(String::as_str).collect();
    let text = format!(
        "SELECT 1 FROM {} AS t JOIN jsonb_to_recordset($1) AS x ({}) ON {} FOR UPDATE OF t",
        shape.name,
        definition(shape, &key),
        list(&key, |name| format!("t.{name} = x.{name}"), " AND ")
    );
    let given = [Value::Array(Array::new(all))];
    run_query(reading, &*parsed(&text)?, (vec![Type::Jsonb], &given)).map(drop)
}

/// A document is written over the version that was read, and keeps its key.
fn check_change(shape: &Shape, before: &Document, after: &Document) -> Result<()> {
    if let (Some(now), Some(given)) = (etag_of(before), etag_of(after))
        && now != given
    {
        let told = error(STALE, "the document has been changed since it was read");
        let detail = format!("Its etag is {now} and not {given}.");
        return Err(with(told, &[(Field::Detail, &detail), (Field::Hint, "Read it again.")]));
    }
    let field = |column: &String| {
        shape
            .fields
            .iter()
            .find(|(_, own)| own == column)
            .map(|(field, _)| field.as_str())
    };
    let is_same = |field: &str| same(before.get(field), after.get(field));
    match shape.key.iter().filter_map(field).find(|field| !is_same(field)) {
        None => Ok(()),
        Some(field) => unsupported(format!(
            "another value of \"{field}\", which is the key of the document,"
        )),
    }
}
