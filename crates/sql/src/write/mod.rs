//! INSERT, UPDATE, DELETE and MERGE run: everything or nothing, in one commit.
//!
//! A statement is bound ([`crate::bind::write`]) and its rows are computed in the state of the write set, all of them before the first one is
//! written, so that no row is met twice. What is written goes through [`RowWriter`]. A write conflict outside of transactions begins
//! the whole statement again in a newer state.

mod apply;
pub mod assertions;
mod child;
mod conflict;
pub mod deferred;
mod duality;
mod exclusion;
pub mod foreign;
mod instead;
mod leaves;
mod merge;
mod planned;
mod refused;
mod triggers;
mod truncate;
mod with;

pub use self::planned::WriteCell;
use self::planned::planned;
pub(crate) use self::refused::{duplicated, told};
pub(crate) use self::truncate::truncate;
use crate::bind::merge::Merging;
use crate::bind::write::{Action, Write, modifying, writing};
use crate::bind::{Binder, Bound};
use crate::catalog::{Column, Kind, schemas};
use crate::error::{self, fail, unsupported};
use crate::parse::trigger::Event;
use crate::plan::pushdown;
use crate::plan::rewrite::rewrite;
use crate::run::Counting;
use crate::run::gathered::Gathered;
use crate::run::held::Holding;
use crate::run::named::Names;
use crate::run::opened::Tables;
use crate::run::planned::Sizes;
use crate::run::procedures::check_transaction;
use crate::run::query::{self, Explained, Field, Give, finished};
use crate::run::tables::{Reading, SessionFacts};
use crate::types::Type;
use nestor_database::masking;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::read;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::Progress;
use nestor_database::write::rows::RowWriter;
use nestor_exec::relation::{Run, Shared, build};
use nestor_model::{Namespace, Result, Value};
use nestor_planner::relation::explain::Shown;
use nestor_planner::relation::{Env, Tuple};
use nestor_query::env::OpContext;
use nestor_storage::WriteSet;
use sqlparser::ast::Statement as Ast;
use std::sync::Arc;
use std::time::Instant;

/// What a row that is written takes until the commit, beside the row itself: record, index entries and oplog entry, about.
pub(crate) const WRITTEN_FACTOR: usize = 4;

/// What a statement that wrote has to tell.
struct Done {
    /// How many rows it was about.
    rows: u64,
    /// What RETURNING gives.
    fields: Vec<Field>,
    returned: Vec<Tuple>,
    /// What keys of other tables have to be looked at.
    changes: Option<foreign::Changes>,
    /// What triggers of statements are told behind it.
    done: Vec<triggers::Done>,
}

impl Done {
    /// Takes over what is left to do for a part of the statement.
    fn follow(&mut self, changes: Option<foreign::Changes>, mut done: Vec<triggers::Done>) {
        self.changes = foreign::Changes::both(changes, self.changes.take());
        done.append(&mut self.done);
        self.done = done;
    }
}

/// The verb of a command's tag, up to the number of rows.
pub fn tag(ast: &Ast) -> &'static str {
    match writing(ast) {
        Some((Ast::Insert(_), _)) => "INSERT 0",
        Some((Ast::Update(_), _)) => "UPDATE",
        Some((Ast::Merge(_), _)) => "MERGE",
        Some(_) => "DELETE",
        None => "SELECT",
    }
}

/// What is known of a statement that writes without running it: the columns that it returns, if any, and the types of its parameters.
///
/// Errors: those of binding.
pub fn describe(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ast: &Ast,
    params: Vec<Type>,
) -> Result<(Option<Vec<Field>>, Vec<Type>)> {
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, session);
    let mut binder = Binder::new(&reading, params);
    binder.describes = true;
    if let (Ast::Query(query), None) = (ast, writing(ast)) {
        let bound = finished(binder.query(query)?)?;
        return Ok((
            Some(bound.columns.iter().map(Field::of).collect()),
            binder.declared_params(),
        ));
    }
    let write = match bound(&mut binder, ast) {
        Err(_) if binder.duality.is_some() => {
            let query = duality::parsed(&duality::query_of(ast)?)?;
            binder.query(&query)?;
            return Ok((None, binder.declared_params()));
        }
        write => write?,
    };
    Ok((
        write.returning.is_some().then(|| fields(&write)),
        binder.declared_params(),
    ))
}

/// Refuses a statement that is none, and one that would be run in batches though triggers are to be called once for it.
///
/// Errors: those of binding; 0A000.
pub fn check_batches(statement: &Statement<'_>, session: &SessionFacts, ast: &Ast, params: Vec<Type>) -> Result<()> {
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, session);
    let write = bound(&mut Binder::new(&reading, params), ast)?;
    if write.guards.is_some() {
        let told = error::error("0A000", "COPY FROM not supported with row-level security");
        let hint = [(error::Field::Hint, "Use INSERT statements instead.")];
        return Err(error::with(told, &hint));
    }
    match write
        .table
        .triggers
        .iter()
        .any(|own| (!own.is_row || own.has_tables()) && own.takes(Event::Insert, &[]))
    {
        true => unsupported("COPY FROM into a table with a trigger for the statement or with tables of its rows"),
        false => Ok(()),
    }
}

fn bound(binder: &mut Binder<'_>, ast: &Ast) -> Result<Write> {
    match writing(ast) {
        Some((inner, with)) => binder.write(inner, with),
        None => fail("XX000", "a statement that does not write was run as one that does"),
    }
}

fn fields(write: &Write) -> Vec<Field> {
    let columns = write.returning.iter().flat_map(|returning| &returning.columns);
    columns.map(Field::of).collect()
}

/// Says whether the columns of what a statement returns are those that were told.
pub type Check<'c> = dyn Fn(&[Field]) -> Result<()> + 'c;

/// Is told the columns of what a statement returns, before its rows.
pub type Begin<'b> = dyn FnMut(&[Field]) -> Result<()> + 'b;

/// Runs a statement that writes; how many rows it wrote. What it returns is given once all is written: `begin` is told the columns, of which `check`
/// may refuse to hear before anything is. A prepared one keeps how it writes in its `cell`.
///
/// Errors: those of binding and of its expressions, of documents that may not be stored so (23502, 23505, 23514), 40001.
pub fn run(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (ast, cell): (&Ast, Option<&WriteCell>),
    (types, params): (&[Type], &[Value]),
    (check, begin): (&Check<'_>, &mut Begin<'_>),
    give: &mut Give<'_>,
) -> Result<u64> {
    let mut progress = Progress::default();
    let (mut kept, mut waiting) = (None, Vec::new());
    let done = statement.atomically(&mut progress, |ws| {
        let mut gathered = Gathered::new();
        let given = (types, params);
        let done = match modifying(ast) {
            None => attempt(statement, session, ws, (ast, given), &mut gathered, (cell, None, true)),
            Some(with) => with::attempt(statement, session, ws, (ast, with, given), &mut gathered),
        };
        let done = done.and_then(|mut done| {
            check(&done.fields)?;
            let mut rows = Vec::new();
            if let Some(changes) = done.changes.take() {
                let (op, _) = statement.operation(None)?;
                (waiting, rows) = changes.settle(statement, session, ws, &op, &mut gathered)?;
            }
            if done.fields.iter().any(|field| field.ty.is_reg()) {
                let (op, _) = statement.operation(None)?;
                let names = Names::of(&Reading::new(statement, &*ws, &op, session), &done.fields)?;
                done.returned.iter_mut().for_each(|row| names.add_to(row));
            }
            let calling = triggers::Calling { statement, session };
            waiting.extend(calling.after(ws, &rows, &done.done, &mut gathered)?);
            Ok(done)
        });
        // What is held until the commit.
        kept = Some(gathered);
        done
    })?;
    session.deferred.add(waiting)?;
    // A statement that was answered survives a crash.
    session.wait(statement, progress.last.map(|(lsn, _)| lsn))?;
    count(statement, done.rows);
    if !done.fields.is_empty() {
        begin(&done.fields)?;
        for row in done.returned {
            give(row)?;
        }
    }
    Ok(done.rows)
}

/// What a statement does that writes, without running it: the plan of its rows below what becomes of them.
///
/// Errors: those of binding it; 0A000 for what is written through a duality view.
pub fn explain(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ast: &Ast,
    (types, params): (&[Type], &[Value]),
) -> Result<Explained> {
    let begin = Instant::now();
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, session);
    let mut binder = Binder::new(&reading, types.to_vec());
    let write = match bound(&mut binder, ast) {
        Err(_) if binder.duality.is_some() => return unsupported("EXPLAIN of a write through a duality view"),
        write => write?,
    };
    check_rights(&reading, &write)?;
    let of_scans = std::mem::take(&mut binder.tables);
    let tables = Tables {
        tables: &of_scans,
        reading: &reading,
    };
    let plan = rewrite(write.plan.clone(), &Sizes::new(&of_scans, &reading));
    let planning = begin.elapsed();
    let env = Env {
        op: &op,
        params,
        outer: None,
        effects: None,
        compared: None,
    };
    let (verb, conflict) = match &write.action {
        Action::Insert { conflict, .. } => ("Insert", conflict.as_deref()),
        Action::Update { .. } => ("Update", None),
        Action::Delete => ("Delete", None),
        Action::Merge { .. } => ("Merge", None),
    };
    let resolution = conflict.map(|conflict| match conflict.update {
        Some(_) => "Conflict Resolution: UPDATE".to_owned(),
        None => "Conflict Resolution: NOTHING".to_owned(),
    });
    Ok(Explained {
        shown: Shown {
            title: format!("{verb} on {}", write.table.name),
            details: resolution.into_iter().collect(),
            inputs: vec![named(query::shown(&plan, &[], &tables, &env))],
            ran: None,
            removed: None,
            in_order: false,
        },
        planning,
        execution: None,
        settings: Vec::new(),
    })
}

/// A plan whose columns of records are called so: the sign before their names, which keeps others from naming them, is left out.
fn named(mut shown: Shown) -> Shown {
    for detail in &mut shown.details {
        *detail = detail.replace('\u{1}', "");
    }
    shown.inputs = shown.inputs.into_iter().map(named).collect();
    shown
}

/// Notes how many rows were written.
fn count(statement: &Statement<'_>, rows: u64) {
    let mut figures = statement.figures.borrow_mut();
    let rows = Some(i64::try_from(rows).unwrap_or(i64::MAX));
    match statement.op {
        OpKind::Insert => figures.inserted = rows,
        OpKind::Update => (figures.matched, figures.modified) = (rows, rows),
        OpKind::Delete => figures.deleted = rows,
        _ => {}
    }
}

/// A statement with its parameters.
struct Executed<'e> {
    ast: &'e Ast,
    types: &'e [Type],
    params: &'e [Value],
}

/// The rows of a query with parameters.
fn run_query(
    reading: &Reading<'_, '_>,
    query: &sqlparser::ast::Query,
    (types, params): (Vec<Type>, &[Value]),
) -> Result<Vec<Tuple>> {
    let mut binder = Binder::new(reading, types);
    let bound = finished(binder.query(query)?)?;
    Ok(rows_of_bound(binder, reading, bound, params)?.1)
}

/// The state before a statement, in which its subqueries are computed.
trait Before {
    /// The only row of a plan over one row, which it reads as that of number `id`.
    ///
    /// Errors: those of running it.
    fn row(&self, id: usize, plan: &crate::plan::Plan, row: Tuple) -> Result<Vec<Value>>;
}

/// The tables that subqueries name, as they were.
struct Named<'b, 's, 'r> {
    tables: &'b Tables<'s, 'r>,
    params: &'b [Value],
}

impl Before for Named<'_, '_, '_> {
    fn row(&self, id: usize, plan: &crate::plan::Plan, row: Tuple) -> Result<Vec<Value>> {
        let shared = Shared::default();
        shared.set(id, vec![row]);
        let mut out = Vec::new();
        run_plan(self.tables, plan, self.params, &shared, &mut |row| {
            out = row;
            Ok(())
        })?;
        Ok(out)
    }
}

/// Whether parts of a statement that are computed while it writes read tables.
fn reads_before(write: &Write) -> bool {
    let conflict = match &write.action {
        Action::Insert { conflict, .. } => conflict.as_deref(),
        _ => None,
    };
    let of_conflict = conflict.and_then(|conflict| conflict.update.as_ref()?.query.as_ref());
    let mut guards = write.guards.iter().flat_map(|guards| guards.all());
    of_conflict.is_some()
        || write.returning.as_ref().is_some_and(|returning| returning.reads)
        || guards.any(|guard| guard.query.is_some())
}

/// Whether a statement changes or deletes rows that it has read.
fn changes_rows(write: &Write) -> bool {
    !matches!(write.action, Action::Insert { .. })
}

/// The rows of a statement that calls routines: it reads the state as it is now, whatever these write.
fn called_rows(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (planned, params): (&planned::Planned, &[Value]),
    op: &OpContext,
    gathered: &mut Gathered,
) -> Result<Vec<Tuple>> {
    let state = match planned.tables.is_empty() {
        true => ws.catalog_state(),
        false => ws.state(),
    };
    let mut rows: Vec<Tuple> = Vec::new();
    statement.lend(ws, || {
        let mut reading = Reading::new(statement, &state, op, session);
        reading.calls = true;
        let tables = Tables {
            tables: &planned.tables,
            reading: &reading,
        };
        planned.broken.clone().map_or(Ok(()), Err)?;
        run_plan(&tables, &planned.plan, params, &Shared::default(), &mut |row| {
            gathered.grow(size_of::<Tuple>() + row.iter().map(Value::weight).sum::<usize>())?;
            rows.push(row);
            Ok(())
        })
    })?;
    Ok(rows)
}

/// Runs a statement that writes, with its cell if it is prepared, `within` a WITH if that is there: it reads the state that the whole statement
/// began in.
fn attempt(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (ast, (types, params)): (&Ast, (&[Type], &[Value])),
    gathered: &mut Gathered,
    (cell, within, fires): (Option<&WriteCell>, Option<&with::Within<'_>>, bool),
) -> Result<Done> {
    let (op, mut scope) = statement.operation(None)?;
    let calling = triggers::Calling { statement, session };
    let mut done_before: Option<Vec<triggers::Done>> = None;
    let (planned, rows, seen) = loop {
        statement.interrupt.check()?;
        let asked = {
            let state = within.map_or(&*ws, |within| within.state);
            let reading = Reading::new(statement, state, &op, session);
            let planned = planned(&reading, (ast, types), cell, within)?;
            if let Ok(planned) = &planned {
                check_rights(&reading, &planned.write)?;
            }
            planned
        };
        let planned = match asked {
            Ok(planned) => planned,
            Err(_) if within.is_some() => {
                return fail("0A000", "writing through a duality view within WITH is not supported");
            }
            Err(view) => {
                let executed = Executed { ast, types, params };
                return duality::run(statement, session, ws, (&view, executed), gathered);
            }
        };
        if fires && done_before.is_none() && !planned.write.table.triggers.is_empty() {
            done_before = Some(calling.before(ws, &planned.write)?);
        }
        if planned.calls {
            check_transaction(statement)?;
            if within.is_some() {
                return unsupported("a call of a function in PL/pgSQL beside a part of WITH that writes");
            }
            if !planned.held.is_empty() {
                return unsupported("a call of a function in PL/pgSQL beside FOR UPDATE");
            }
            // What these write is not what the rows were computed of.
            let state = changes_rows(&planned.write).then(|| ws.state());
            let rows = called_rows(statement, session, ws, (&planned, params), &op, gathered)?;
            break (planned, rows, state);
        }
        let state = within.map_or(&*ws, |within| within.state);
        let holding = Holding::new(&*ws);
        let mut reading = Reading::new(statement, state, &op, session);
        reading.holding = Some(&holding);
        for ns in &planned.held {
            reading.check_right(ns, Right::Update)?;
        }
        let tables = Tables {
            tables: &planned.tables,
            reading: &reading,
        };
        let mut rows: Vec<Tuple> = Vec::new();
        planned.broken.clone().map_or(Ok(()), Err)?;
        run_plan(&tables, &planned.plan, params, &Shared::default(), &mut |row| {
            gathered.grow(size_of::<Tuple>() + row.iter().map(Value::weight).sum::<usize>())?;
            rows.push(row);
            Ok(())
        })?;
        let noted = holding.noted();
        let is_held = match within {
            Some(_) => with::hold(statement, ws, noted)?,
            None => noted.settle(statement, ws)?,
        };
        if is_held {
            let triggers_see = [Event::Update, Event::Delete];
            let sees = triggers_see
                .iter()
                .any(|event| triggers::has_before(&planned.write.table, *event));
            let state = (fires && sees && changes_rows(&planned.write)).then(|| ws.state());
            break (planned, rows, state);
        }
    };
    let write = &planned.write;
    if let Kind::Query(_) = write.table.kind {
        if within.is_some() {
            return unsupported("to write to a view with triggers within WITH");
        }
        let (count, returned) = calling.instead(ws, write, rows)?;
        let reading = Reading::new(statement, &*ws, &op, session);
        let tables = Tables {
            tables: &planned.tables,
            reading: &reading,
        };
        let returned = match &write.returning {
            Some(returning) => returned_rows(&tables, (returning, returned), params)?,
            None => Vec::new(),
        };
        return Ok(Done {
            rows: count,
            fields: fields(write),
            returned,
            changes: None,
            done: Vec::new(),
        });
    }
    let Kind::Collection(ns) = &write.table.kind else {
        return fail("XX000", "a table that is no collection was written to");
    };
    let env = Env {
        op: &op,
        params,
        outer: None,
        effects: None,
        compared: None,
    };
    let kept = (within.is_none() && reads_before(write)).then(|| ws.state());
    let state = kept.as_ref().or(within.map(|within| within.state));
    let reading = state.map(|state| Reading::new(statement, state, &op, session));
    let tables = reading.as_ref().map(|reading| Tables {
        tables: &planned.tables,
        reading,
    });
    let before = tables.as_ref().map(|tables| Named { tables, params });
    let is_divided = write.table.division.is_some();
    let is_noted = is_divided || foreign::Changes::are_wanted(&*ws, &write.table, ns);
    let changes = is_noted.then(foreign::Changes::default);
    let mut writer = RowWriter::open(statement, ws, ns, &op)?;
    let counting = writer.collection().clone();
    let mut applied = apply::Applying {
        root: write.clone(),
        write: write.clone(),
        leaf: None,
        entered: std::collections::HashMap::new(),
        counting,
        writer: &mut writer,
        scope: &mut scope,
        env,
        op: &op,
        gathered,
        returned: Vec::new(),
        written: 0,
        numbers: std::collections::HashMap::new(),
        left: 0,
        changes,
        before: before.as_ref().map(|before| before as &dyn Before),
        got: &session.got,
        calling,
        seen: seen.as_ref(),
        assigned: Arc::default(),
    };
    let result = match (&write.element, &write.action) {
        (Some(element), _) => applied.write_elements(element, rows),
        (None, Action::Insert { targets, conflict }) => applied.insert(targets, conflict.as_deref(), rows),
        (None, Action::Update { targets }) => applied.update(targets, rows),
        (None, Action::Delete) => applied.delete(rows),
        (None, Action::Merge { clauses }) => applied.merge(clauses, rows),
    };
    let (written, returned) = (applied.written, std::mem::take(&mut applied.returned));
    let changes = applied.changes.take();
    let table = applied.write.table.clone();
    let shows = write.guards.is_none();
    result.map_err(|error| refused::told(error, (&table, shows), writer.collection()))?;
    writer.finish();
    let mut done = Done {
        rows: written,
        fields: fields(write),
        returned: Vec::new(),
        changes,
        done: done_before.unwrap_or_default(),
    };
    if let Some(returning) = &write.returning {
        if planned.calls {
            let state = ws.state();
            done.returned = statement.lend(ws, || {
                let mut reading = Reading::new(statement, &state, &op, session);
                reading.calls = true;
                let tables = Tables {
                    tables: &planned.tables,
                    reading: &reading,
                };
                returned_rows(&tables, (returning, returned), params)
            })?;
            return Ok(done);
        }
        done.returned = match &tables {
            Some(tables) => returned_rows(tables, (returning, returned), params)?,
            // It reads nothing but the rows.
            None => {
                let reading = Reading::new(statement, &*ws, &op, session);
                let tables = Tables {
                    tables: &[],
                    reading: &reading,
                };
                returned_rows(&tables, (returning, returned), params)?
            }
        };
    }
    Ok(done)
}

/// Refuses writes that the user may not make, or that would tell of what is masked for the user: which rows a change meets, what becomes
/// of them, and whether a unique index has a value.
fn check_rights(reading: &Reading<'_, '_>, write: &Write) -> Result<()> {
    // What is temporary is nobody else's, so it may be written to.
    if reading.session.is_read_only() && !schemas::is_temporary(&write.table.schema) {
        let verb = match &write.action {
            Action::Insert { .. } => "INSERT",
            Action::Update { .. } => "UPDATE",
            Action::Delete => "DELETE",
            Action::Merge { .. } => "MERGE",
        };
        return fail("25006", format!("cannot execute {verb} in a read-only transaction"));
    }
    let Kind::Collection(ns) = &write.table.kind else {
        let name = schemas::collection(&write.table.schema, &write.table.name);
        let view = Namespace::new(reading.session.database.as_str(), name);
        return reading.check_right(
            &view,
            match &write.action {
                Action::Insert { .. } => Right::Insert,
                Action::Delete => Right::Remove,
                _ => Right::Update,
            },
        );
    };
    let views = write.views.iter().map(|view| Namespace::new(&*ns.db, view.as_str()));
    let all: Vec<Namespace> = views.chain([ns.clone()]).collect();
    // Whoever writes an element changes its document.
    let of_table = |right: Right| write.element.as_ref().map_or(right, |_| Right::Update);
    let check = |right: Right| {
        let (views, table) = all.split_at(all.len() - 1);
        views.iter().try_for_each(|ns| reading.check_right(ns, right))?;
        table.iter().try_for_each(|ns| reading.check_right(ns, of_table(right)))
    };
    let changes = match &write.action {
        Action::Insert { conflict, .. } => {
            check(Right::Insert)?;
            let changes = conflict.as_ref().is_some_and(|conflict| conflict.update.is_some());
            if changes {
                check(Right::Update)?;
            }
            changes
        }
        Action::Update { .. } => check(Right::Update).map(|()| true)?,
        Action::Delete => check(Right::Remove).map(|()| true)?,
        Action::Merge { clauses } => {
            let mut changes = false;
            for clause in clauses {
                let right = match clause {
                    Merging::Insert { .. } => Right::Insert,
                    Merging::Update { .. } => Right::Update,
                    Merging::Delete => Right::Remove,
                    Merging::Nothing => continue,
                };
                check(right)?;
                changes |= right != Right::Insert;
            }
            changes
        }
    };
    let Some(collection) = reading.view.catalog().get(ns) else {
        return Ok(());
    };
    if changes || write.element.is_some() {
        return reading
            .statement
            .check_unmasked(collection, "SQL does not change its rows");
    }
    // Before it is looked whether a row conflicts.
    masking::check_insert(collection, reading.op)
}

/// Without RETURNING nobody looks at the rows of FROM and USING.
fn narrowed(plan: crate::plan::Plan, action: &Action) -> crate::plan::Plan {
    use nestor_planner::relation::Relation;
    let width = match action {
        Action::Insert { .. } | Action::Merge { .. } => return plan,
        Action::Update { targets } => 1 + targets.len(),
        Action::Delete => 1,
    };
    match plan {
        Relation::Project { input, mut columns } => {
            columns.truncate(width);
            pushdown::pruned(Relation::Project { input, columns })
        }
        other => other,
    }
}

/// The columns of a query and its rows, all of them.
///
/// Errors: those of binding and running it.
pub(crate) fn rows_of(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &WriteSet,
    op: &OpContext,
    (query, (types, params)): (&sqlparser::ast::Query, (&[Type], &[Value])),
) -> Result<(Vec<Field>, Vec<Tuple>)> {
    let reading = Reading::new(statement, ws, op, session);
    let mut binder = Binder::new(&reading, types.to_vec());
    let bound = finished(binder.query(query)?)?;
    rows_of_bound(binder, &reading, bound, params)
}

/// The rows of the query of a view of `schema` as the columns of `table`, which were those of the query once: a column that it gives no more is null.
///
/// Errors: those of binding and running it; 42804 for a column whose type is another one.
pub(crate) fn rows_of_view(
    reading: &Reading<'_, '_>,
    (schema, query): (&str, &sqlparser::ast::Query),
    columns: &[Column],
) -> Result<Vec<Tuple>> {
    let mut binder = Binder::new(reading, Vec::new()).of_view(schema);
    let bound = finished(binder.query(query)?)?;
    let bound = binder.as_columns(bound, columns)?;
    Ok(rows_of_bound(binder, reading, bound, &[])?.1)
}

fn rows_of_bound(
    mut binder: Binder<'_>,
    reading: &Reading<'_, '_>,
    bound: Bound,
    params: &[Value],
) -> Result<(Vec<Field>, Vec<Tuple>)> {
    let of_scans = std::mem::take(&mut binder.tables);
    let tables = Tables {
        tables: &of_scans,
        reading,
    };
    let columns = bound.columns.iter().map(Field::of);
    let mut gathered = Gathered::new();
    let mut rows = Vec::new();
    let sizes = Sizes::new(&of_scans, reading);
    let plan = rewrite(bound.plan, &sizes);
    run_plan(&tables, &plan, params, &Shared::default(), &mut |row| {
        gathered.grow((size_of::<Tuple>() + row.iter().map(Value::weight).sum::<usize>()) * WRITTEN_FACTOR)?;
        rows.push(row);
        Ok(())
    })?;
    Ok((columns.collect(), rows))
}

fn returned_rows(
    tables: &Tables<'_, '_>,
    (returning, rows): (&crate::bind::write::Returning, Vec<Tuple>),
    params: &[Value],
) -> Result<Vec<Tuple>> {
    let shared = Shared::default();
    shared.set(returning.id, rows);
    let mut out = Vec::new();
    run_plan(tables, &returning.plan, params, &shared, &mut |row| {
        out.push(row);
        Ok(())
    })?;
    Ok(out)
}

fn run_plan(
    tables: &Tables<'_, '_>,
    plan: &crate::plan::Plan,
    params: &[Value],
    shared: &Shared,
    each: &mut dyn FnMut(Tuple) -> Result<()>,
) -> Result<()> {
    let reading = tables.reading;
    let _counting = Counting::new(reading.statement, shared);
    let mut root = build(plan, false);
    let batch = read::batch(reading.statement, reading.view, reading.op, true);
    let run = Run {
        batch: &batch,
        env: Env {
            op: reading.op,
            params,
            outer: None,
            effects: Some(reading),
            compared: None,
        },
        sources: tables,
        shared,
    };
    while let Some(row) = root.next(&run)? {
        each(row)?;
    }
    Ok(())
}
