//! Queries: bound, rewritten, run.

use super::Counting;
use super::gathered::Gathered;
use super::held::Holding;
use super::named::Names;
use super::opened::Tables;
pub use super::planned::Field;
pub(crate) use super::planned::finished;
use super::planned::{PlanCell, Planned, fields};
use super::procedures::check_transaction;
use super::tables::{Reading, SessionFacts};
use crate::bind::Binder;
use crate::catalog::Catalog as _;
use crate::catalog::system::Facts as _;
use crate::error::{fail, unsupported};
use crate::expr::Expr;
use crate::plan::Plan;
use crate::types::Type;
use nestor_database::read;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_exec::relation::{BoxRows, Run, Shared, build, drain_shared};
use nestor_model::{Result, Value};
use nestor_planner::relation::explain::{self, Access, Ran, Shown};
use nestor_planner::relation::{Chunk, Env, Scan, Tuple};
use nestor_storage::View;
use sqlparser::ast::{DataType, Query};
use std::time::{Duration, Instant};

/// Takes rows; an error stops the query.
pub type Give<'g> = dyn FnMut(Vec<Value>) -> Result<()> + 'g;

/// Takes what a query gives; an error stops the query.
pub trait Taker {
    /// Its columns, before the first row.
    ///
    /// Errors: the taker's own.
    fn begin(&mut self, fields: &[Field]) -> Result<()>;

    /// A row.
    ///
    /// Errors: the taker's own.
    fn row(&mut self, row: Vec<Value>) -> Result<()>;

    /// Many rows.
    ///
    /// Errors: the taker's own.
    fn chunk(&mut self, chunk: &Chunk) -> Result<()> {
        (0..chunk.rows).try_for_each(|at| self.row(chunk.row(at)))
    }
}

/// Two functions that take what a query gives, row by row.
pub struct Takers<'t, B, G> {
    /// Takes its columns.
    pub begin: &'t mut B,
    /// Takes a row.
    pub give: &'t mut G,
}

impl<B, G> Taker for Takers<'_, B, G>
where
    B: FnMut(&[Field]) -> Result<()>,
    G: FnMut(Vec<Value>) -> Result<()>,
{
    fn begin(&mut self, fields: &[Field]) -> Result<()> {
        (self.begin)(fields)
    }

    fn row(&mut self, row: Vec<Value>) -> Result<()> {
        (self.give)(row)
    }
}

/// Rows of a query that come one by one, before the others come by chunks: a chunk of few rows costs more than they do.
const SINGLY: usize = 4;

/// What is known of a query without running it: its columns and the types of its parameters.
///
/// Errors: those of binding.
pub fn describe(
    statement: &Statement<'_>,
    session: &SessionFacts,
    query: &Query,
    params: Vec<Type>,
) -> Result<(Vec<Field>, Vec<Type>)> {
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, session);
    let mut binder = Binder::new(&reading, params);
    let bound = finished(binder.query(query)?)?;
    Ok((fields(&bound), binder.declared_params()))
}

/// The type that a text names, and its modifier.
///
/// Errors: those of names of types.
pub fn named_type(statement: &Statement<'_>, session: &SessionFacts, text: &str) -> Result<(Type, i32)> {
    type_of(statement, session, &crate::parse::data_type(text)?)
}

/// The type of a name, and its modifier.
///
/// Errors: those of names of types.
pub fn type_of(statement: &Statement<'_>, session: &SessionFacts, ty: &DataType) -> Result<(Type, i32)> {
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, session);
    Binder::new(&reading, Vec::new()).data_type(ty)
}

/// The domain, or the array of such, that a column of a table is declared as.
///
/// Errors: those of reading the catalog.
pub fn domain_of(statement: &Statement<'_>, session: &SessionFacts, table: &str, column: &str) -> Result<Option<Type>> {
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, session);
    let name = |text: &str| crate::parse::words(text);
    let (parts, column) = (name(table), name(column));
    let (schema, table) = match parts.as_slice() {
        [table] => (None, table),
        [schema, table] => (Some(schema.as_str()), table),
        _ => return Ok(None),
    };
    let found = reading.table(schema, table)?;
    let own = found.as_ref().zip(column.first());
    Ok(own.and_then(|(table, column)| table.column(column)?.domain.clone()))
}

/// The types with these OIDs, those that somebody has made and arrays of them as well; unknown is what there is none with.
///
/// Errors: those of reading the catalog.
pub fn types_of(statement: &Statement<'_>, session: &SessionFacts, oids: &[u32]) -> Result<Vec<Type>> {
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let types = Reading::new(statement, read.view(), &op, session).made_types();
    let made = |oid: u32| {
        let each = types.iter().flat_map(|(_, own)| [own.clone(), own.clone().array()]);
        each.into_iter().find(|ty| ty.oid() == oid)
    };
    let all = oids
        .iter()
        .map(|oid| Type::of_oid(*oid).or_else(|| made(*oid)).unwrap_or(Type::Unknown));
    Ok(all.collect())
}

/// Refuses a statement that asks for more parameters than there are.
///
/// Errors: 42P02.
fn check_given(wanted: &[Type], given: &[Value]) -> Result<()> {
    match wanted.len() > given.len() {
        true => fail("42P02", format!("there is no parameter ${}", given.len() + 1)),
        false => Ok(()),
    }
}

/// Runs a query, with the plan that is kept for it if that still holds. Returns how many rows there were. Numbers of sequences that they have are
/// on disk as given.
///
/// Errors: those of binding and of running it.
pub fn run(
    statement: &Statement<'_>,
    session: &SessionFacts,
    query: (&Query, &PlanCell),
    params: (&[Type], &[Value]),
    to: &mut dyn Taker,
) -> Result<u64> {
    let rows = ran(statement, session, query, params, to)?;
    statement.settle_numbers()?;
    Ok(rows)
}

fn ran(
    statement: &Statement<'_>,
    session: &SessionFacts,
    query: (&Query, &PlanCell),
    (types, params): (&[Type], &[Value]),
    to: &mut dyn Taker,
) -> Result<u64> {
    {
        let read = statement.read_view()?;
        let (op, _) = statement.operation(None)?;
        let reading = Reading::new(statement, read.view(), &op, session);
        let planned = query.1.plan(&reading, query.0, types)?;
        if planned.calls {
            check_transaction(statement)?;
            if !planned.held.is_empty() {
                return unsupported("a call of a function in PL/pgSQL beside FOR UPDATE");
            }
            drop(reading);
            drop(read);
            return calling(statement, session, (&planned, params), to);
        }
        if planned.held.is_empty() {
            return rows(&reading, &planned, params, to);
        }
        for ns in &planned.held {
            reading.check_right(ns, Right::Update)?;
        }
    }
    let (fields, rows) = held_rows(statement, session, query, (types, params))?;
    to.begin(&fields)?;
    let count = rows.len();
    rows.into_iter().try_for_each(|row| to.row(row))?;
    Ok(count as u64)
}

/// Runs a query that calls routines: it reads the state as it is now, whatever these write.
fn calling(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (planned, params): (&Planned, &[Value]),
    to: &mut dyn Taker,
) -> Result<u64> {
    let state = statement.state(!planned.tables.is_empty())?;
    let (op, _) = statement.operation(None)?;
    let mut reading = Reading::new(statement, &state, &op, session);
    reading.calls = true;
    rows(&reading, planned, params, to)
}

/// The columns and rows of a query that holds rows, once it holds them.
fn held_rows(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (query, cell): (&Query, &PlanCell),
    (types, params): (&[Type], &[Value]),
) -> Result<(Vec<Field>, Vec<Tuple>)> {
    let mut gathered = Gathered::new();
    statement.holding(|ws| {
        loop {
            statement.interrupt.check()?;
            let (op, _) = statement.operation(None)?;
            let holding = Holding::new(&*ws);
            let mut reading = Reading::new(statement, &*ws, &op, session);
            reading.holding = Some(&holding);
            let planned = cell.plan(&reading, query, types)?;
            let mut out = Vec::new();
            let mut to = Takers {
                begin: &mut |_: &[Field]| Ok(()),
                give: &mut |row: Tuple| {
                    gathered.grow(size_of::<Tuple>() + row.iter().map(Value::weight).sum::<usize>())?;
                    out.push(row);
                    Ok(())
                },
            };
            rows(&reading, &planned, params, &mut to)?;
            if holding.noted().settle(statement, ws)? {
                return Ok((planned.fields.clone(), out));
            }
        }
    })
}

/// As [`run`], with rows column by column, some at a time.
///
/// Errors: those of [`run`]; 0A000 for a query that holds rows.
pub fn run_by_chunks(
    statement: &Statement<'_>,
    session: &SessionFacts,
    query: &Query,
    begin: &mut dyn FnMut(&[Field]) -> Result<()>,
    give: &mut dyn FnMut(&Chunk) -> Result<()>,
) -> Result<u64> {
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, session);
    let planned = PlanCell::default().plan(&reading, query, &[])?;
    if !planned.held.is_empty() {
        return unsupported("FOR UPDATE of rows that become a file of columns");
    }
    let rows = with_root(&reading, &planned, &[], |root, run| {
        begin(&planned.fields)?;
        let mut rows = 0;
        while let Some(chunk) = root.next_chunk(run)? {
            rows += chunk.rows as u64;
            give(&chunk)?;
        }
        Ok(rows)
    })?;
    statement.settle_numbers()?;
    Ok(rows)
}

/// As [`run`], over a state that is read already.
///
/// Errors: those of [`run`].
pub fn run_over(
    statement: &Statement<'_>,
    view: &dyn View,
    session: &SessionFacts,
    (query, cell): (&Query, &PlanCell),
    (types, params): (&[Type], &[Value]),
    to: &mut dyn Taker,
) -> Result<u64> {
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, view, &op, session);
    let planned = cell.plan(&reading, query, types)?;
    rows(&reading, &planned, params, to)
}

fn rows(reading: &Reading<'_, '_>, planned: &Planned, params: &[Value], to: &mut dyn Taker) -> Result<u64> {
    let names = Names::of(reading, &planned.fields)?;
    let singly = if names.is_empty() { SINGLY } else { usize::MAX };
    with_root(reading, planned, params, |root, run| {
        to.begin(&planned.fields)?;
        let mut rows = 0;
        let mut take = |chunk: Chunk| {
            rows += chunk.rows;
            to.chunk(&chunk)
        };
        if names.is_empty() && drain_shared(root, run, &mut take)? {
            return Ok(rows as u64);
        }
        while rows < singly {
            let Some(mut row) = root.next(run)? else {
                return Ok(rows as u64);
            };
            rows += 1;
            names.add_to(&mut row);
            to.row(row)?;
        }
        while let Some(chunk) = root.next_chunk(run)? {
            rows += chunk.rows;
            to.chunk(&chunk)?;
        }
        Ok(rows as u64)
    })
}

/// Has `pull` take all rows of a plan; how many it took.
fn with_root(
    reading: &Reading<'_, '_>,
    planned: &Planned,
    params: &[Value],
    pull: impl FnOnce(&mut BoxRows<Expr>, &Run<'_, '_, Expr>) -> Result<u64>,
) -> Result<u64> {
    check_given(&planned.params, params)?;
    planned.broken.clone().map_or(Ok(()), Err)?;
    let statement = reading.statement;
    let tables = Tables {
        tables: &planned.tables,
        reading,
    };
    let shared = Shared::default();
    let _counting = Counting::new(statement, &shared);
    let mut root = build(&planned.plan, false);
    let batch = read::batch(statement, reading.view, reading.op, true);
    let run = Run {
        batch: &batch,
        env: Env {
            op: reading.op,
            params,
            outer: None,
            effects: Some(reading),
            compared: None,
        },
        sources: &tables,
        shared: &shared,
    };
    let rows = pull(&mut root, &run)?;
    statement.figures.borrow_mut().returned = Some(rows);
    Ok(rows)
}

/// A plan, and what it took.
pub struct Explained {
    /// The plan.
    pub shown: Shown,
    /// To bind the query and find the plan.
    pub planning: Duration,
    /// To run it, if it ran.
    pub execution: Option<Duration>,
    /// Settings that are to be shown, with their values.
    pub settings: Vec<(String, String)>,
}

/// A plan with the access paths of its scans, and what its nodes counted.
pub(crate) fn shown(plan: &Plan, counted: &[Ran], tables: &Tables<'_, '_>, env: &Env<'_>) -> Shown {
    // What depends on rows of another relation is known only while that runs.
    let mut access = |scan: &Scan<Expr>, counts: bool| {
        let mut depends = scan.looked_up;
        for condition in &scan.conditions {
            condition.for_each_outer(&mut |_, _| depends = true);
        }
        if depends {
            return Some(Access {
                path: "as each row asks".to_owned(),
                in_order: false,
                index_only: false,
            });
        }
        let access = match counts {
            true => tables.counts(scan, env),
            false => tables.access(scan, env),
        };
        access.ok().flatten()
    };
    explain::show(plan, counted, &mut access)
}

/// The plan of a query with the access paths of its scans; with `analyze` after it has run, and with times if that says `true`.
///
/// Errors: those of [`run`].
pub fn explain(
    statement: &Statement<'_>,
    session: &SessionFacts,
    query: &Query,
    (types, params): (&[Type], &[Value]),
    analyze: Option<bool>,
) -> Result<Explained> {
    let read = statement.read_view()?;
    explain_over(statement, read.view(), session, query, (types, params), analyze)
}

/// As [`explain`](fn@explain), over a state that is read already.
///
/// Errors: those of [`run`].
pub fn explain_over(
    statement: &Statement<'_>,
    view: &dyn View,
    session: &SessionFacts,
    query: &Query,
    (types, params): (&[Type], &[Value]),
    analyze: Option<bool>,
) -> Result<Explained> {
    let begin = Instant::now();
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, view, &op, session);
    let planned = PlanCell::default().plan(&reading, query, types)?;
    check_given(&planned.params, params)?;
    let tables = Tables {
        tables: &planned.tables,
        reading: &reading,
    };
    let plan = &planned.plan;
    let planning = begin.elapsed();
    let batch = read::batch(statement, view, &op, true);
    let env = Env {
        op: &op,
        params,
        outer: None,
        effects: None,
        compared: None,
    };
    let shown = |counted: &[Ran]| shown(plan, counted, &tables, &env);
    let Some(timed) = analyze else {
        return Ok(Explained {
            shown: shown(&[]),
            planning,
            execution: None,
            settings: Vec::new(),
        });
    };
    planned.check_may_count()?;
    let begin = Instant::now();
    let shared = Shared::counting(timed);
    let _counting = Counting::new(statement, &shared);
    let mut root = build(plan, true);
    let run = Run {
        batch: &batch,
        env,
        sources: &tables,
        shared: &shared,
    };
    while root.next(&run)?.is_some() {}
    let execution = Some(begin.elapsed());
    // Scans tell what they read when they are dropped.
    drop(root);
    let nodes = shared.counts.nodes.as_ref();
    let counted = nodes.map_or_else(Vec::new, |nodes| nodes.ran.take());
    Ok(Explained {
        shown: shown(&counted),
        planning,
        execution,
        settings: Vec::new(),
    })
}
