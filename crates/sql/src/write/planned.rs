//! What is known of a statement that writes before it runs: a prepared one keeps that, as queries do ([`crate::run::planned`]).

use super::{bound, narrowed, with};
use crate::bind::Binder;
use crate::bind::write::Write;
use crate::catalog::Table;
use crate::catalog::answers::{Answers, Asked, Kept};
use crate::plan::Plan;
use crate::plan::rewrite::rewrite;
use crate::run::constants::broken;
use crate::run::planned::Sizes;
use crate::run::tables::Reading;
use crate::types::Type;
use nestor_model::{Error, Namespace, Result};
use sqlparser::ast::Statement as Ast;
use std::sync::Arc;

/// Where a prepared statement keeps how it writes.
pub type WriteCell = Kept<Planned>;

/// A statement that writes, bound, with the plan of its rows.
#[derive(Debug)]
pub struct Planned {
    /// What it writes.
    pub write: Arc<Write>,
    /// The plan of its rows.
    pub plan: Plan,
    /// The tables that its scans name by number.
    pub tables: Vec<Arc<Table>>,
    /// The collections whose rows it holds.
    pub held: Vec<Namespace>,
    /// It calls routines that run statements.
    pub calls: bool,
    /// What it ends with, before it sees a row.
    pub broken: Option<Error>,
    answers: Answers,
}

/// How a statement writes: what `cell` keeps if that still holds, which is always of the same statement and types. Of a statement on a duality view it
/// is the view, which is none of the binder's matters.
///
/// Errors: those of binding.
pub(super) fn planned(
    reading: &Reading<'_, '_>,
    (ast, types): (&Ast, &[Type]),
    cell: Option<&WriteCell>,
    within: Option<&with::Within<'_>>,
) -> Result<std::result::Result<Arc<Planned>, Arc<Table>>> {
    if let Some(kept) = cell.and_then(Kept::get)
        && kept.answers.hold(reading)?
    {
        return Ok(Ok(kept));
    }
    let asked = Asked::new(reading);
    let mut binder = Binder::new(&asked, types.to_vec());
    if let Some(within) = within {
        within.name_parts(&mut binder)?;
    }
    let write = match bound(&mut binder, ast) {
        Err(error) => return binder.duality.take().map_or(Err(error), |view| Ok(Err(view))),
        Ok(write) => write,
    };
    let tables = std::mem::take(&mut binder.tables);
    let held = std::mem::take(&mut binder.held);
    let calls = binder.calls;
    drop(binder);
    let (answers, keeps) = asked.answers();
    let sizes = Sizes::new(&tables, reading);
    let mut plan = rewrite(write.plan.clone(), &sizes);
    let mut write = write;
    if let Some(guards) = &mut write.guards {
        *guards = Arc::new(guards.with_queries(&|plan| rewrite(plan.clone(), &sizes)));
    }
    if write.returning.is_none() {
        plan = narrowed(plan, &write.action);
    }
    let planned = Arc::new(Planned {
        broken: broken(&plan),
        write: Arc::new(write),
        plan,
        tables,
        held,
        calls,
        answers,
    });
    if let Some(cell) = cell.filter(|_| within.is_none()) {
        cell.set(keeps.then(|| planned.clone()));
    }
    Ok(Ok(planned))
}
