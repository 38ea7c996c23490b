//! Statements some part of whose WITH writes.
//!
//! All parts read the state that the statement began in, and what the others return; so the order in which they write does not matter. Each is
//! run once and to its end, whoever reads it. Keys of other tables are looked at when all of them have written.

use super::foreign::Changes;
use super::{Done, attempt as attempt_part, check_transaction, rows_of_bound};
use crate::bind::write::{is_writing, writing};
use crate::bind::{Binder, ScopeColumn, ident};
use crate::error::{fail, unsupported};
use crate::run::gathered::Gathered;
use crate::run::held::{Holding, Noted};
use crate::run::query::{Field, finished};
use crate::run::tables::{Reading, SessionFacts};
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_model::{Result, Value, bail};
use nestor_planner::relation::Tuple;
use nestor_storage::WriteSet;
use sqlparser::ast::{Cte, Query, Statement as Ast, With};

/// What a part of a statement sees of the others.
pub(super) struct Within<'w> {
    /// The state that all of them read.
    pub(super) state: &'w WriteSet,
    /// Those before it.
    parts: &'w [Part],
}

/// A part of WITH that was computed.
struct Part {
    name: String,
    /// The names that its columns are given.
    names: Vec<String>,
    /// `None` of one that returns nothing.
    fields: Option<Vec<Field>>,
    rows: Vec<Tuple>,
}

impl Within<'_> {
    /// Gives the parts their names.
    ///
    /// Errors: 42P10 for more names of columns than there are.
    pub(super) fn name_parts(&self, binder: &mut Binder<'_>) -> Result<()> {
        for part in self.parts {
            match &part.fields {
                Some(fields) => {
                    let columns = fields.iter().map(|field| ScopeColumn {
                        modifier: field.modifier,
                        ..ScopeColumn::new(field.name.as_str(), field.ty.clone())
                    });
                    binder.name_rows(&part.name, (columns.collect(), &part.names), &part.rows)?;
                }
                None => binder.name_nothing(&part.name),
            }
        }
        Ok(())
    }
}

/// Runs a statement with all parts of its WITH.
///
/// Errors: those of each of them; 0A000 for a part that is read and returns nothing.
pub(super) fn attempt(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (ast, with, (types, params)): (&Ast, &With, (&[Type], &[Value])),
    gathered: &mut Gathered,
) -> Result<Done> {
    let state = ws.state();
    let mut parts: Vec<Part> = Vec::new();
    let (mut changes, mut parts_done) = (None, Vec::new());
    for cte in &with.cte_tables {
        let name = ident(&cte.alias.name);
        if parts.iter().any(|part| part.name == name) {
            return fail("42712", format!("WITH query name \"{name}\" specified more than once"));
        }
        let within = Within {
            state: &state,
            parts: &parts,
        };
        let given = (types, params);
        let (fields, rows) = match is_writing(&cte.query) {
            true => {
                let part = Ast::Query(cte.query.clone());
                let done = attempt_part(
                    statement,
                    session,
                    ws,
                    (&part, given),
                    gathered,
                    (None, Some(&within), true),
                )?;
                changes = Changes::both(changes, done.changes);
                parts_done.extend(done.done);
                let fields = (!done.fields.is_empty()).then_some(done.fields);
                (fields, done.returned)
            }
            false => {
                let (fields, rows) = rows_of((statement, session, ws), &within, (&alone(cte, with)?, given))?;
                (Some(fields), rows)
            }
        };
        let mut names = cte.alias.columns.iter().map(|column| ident(&column.name)).collect();
        crate::parse::recursion::taken(&mut names)?;
        parts.push(Part {
            name,
            names,
            fields,
            rows,
        });
    }
    let within = Within {
        state: &state,
        parts: &parts,
    };
    let main = without(ast);
    let mut done = match (&main, writing(&main)) {
        (_, Some(_)) => attempt_part(
            statement,
            session,
            ws,
            (&main, (types, params)),
            gathered,
            (None, Some(&within), true),
        )?,
        (Ast::Query(query), None) => {
            let (fields, returned) = rows_of((statement, session, ws), &within, (query, (types, params)))?;
            Done {
                rows: returned.len() as u64,
                fields,
                returned,
                changes: None,
                done: Vec::new(),
            }
        }
        _ => return fail("XX000", "a statement of another form had a WITH that writes"),
    };
    done.follow(changes, parts_done);
    Ok(done)
}

/// The query that gives the rows of one part of WITH, which may read itself where the others may.
fn alone(cte: &Cte, with: &With) -> Result<Query> {
    if !with.recursive {
        return Ok((*cte.query).clone());
    }
    let mut read = crate::parse::parse(&format!("SELECT * FROM {}", cte.alias.name))?;
    let Some(Ast::Query(mut query)) = read.pop() else {
        return fail("XX000", "a part of WITH has no name");
    };
    query.with = Some(With {
        cte_tables: vec![cte.clone()],
        ..with.clone()
    });
    Ok(*query)
}

/// The statement without its WITH, whose parts have names already.
fn without(ast: &Ast) -> Ast {
    let mut main = ast.clone();
    match &mut main {
        Ast::Query(query) => query.with = None,
        Ast::Insert(insert) => {
            if let Some(source) = &mut insert.source {
                source.with = None;
            }
        }
        _ => {}
    }
    main
}

/// The rows of a part that writes none, which may hold those that it reads.
fn rows_of(
    (statement, session, ws): (&Statement<'_>, &SessionFacts, &mut WriteSet),
    within: &Within<'_>,
    (query, (types, params)): (&Query, (&[Type], &[Value])),
) -> Result<(Vec<Field>, Vec<Tuple>)> {
    let (op, _) = statement.operation(None)?;
    loop {
        statement.interrupt.check()?;
        let reading = Reading::new(statement, within.state, &op, session);
        let mut binder = Binder::new(&reading, types.to_vec());
        within.name_parts(&mut binder)?;
        let bound = finished(binder.query(query)?)?;
        for ns in &binder.held {
            reading.check_right(ns, Right::Update)?;
        }
        if binder.calls {
            check_transaction(statement)?;
            if !binder.held.is_empty() {
                return unsupported("a call of a function in PL/pgSQL beside FOR UPDATE");
            }
            return statement.lend(ws, || {
                let mut reading = Reading::new(statement, within.state, &op, session);
                reading.calls = true;
                rows_of_bound(binder, &reading, bound, params)
            });
        }
        let holding = Holding::new(ws);
        let mut reading = Reading::new(statement, within.state, &op, session);
        reading.holding = Some(&holding);
        let found = rows_of_bound(binder, &reading, bound, params)?;
        if hold(statement, ws, holding.noted())? {
            return Ok(found);
        }
    }
}

/// Holds the rows that a part wants to; false when it is to be computed again, because somebody was quicker.
///
/// Errors: those of [`Noted::settle`]; 112 where other parts have written, so that the whole statement is done again.
pub(super) fn hold(statement: &Statement<'_>, ws: &mut WriteSet, noted: Noted) -> Result<bool> {
    let has_written = !ws.is_empty();
    match noted.settle(statement, ws)? {
        false if has_written => bail!(
            WriteConflict,
            "rows that a part of a statement wants to hold were held meanwhile"
        ),
        held => Ok(held),
    }
}
