//! Row security: which rows of a table a statement sees, and what has to hold of those that it writes.
//!
//! Policies of a command and those for ALL count together. One of those that permit has to hold, and all that restrict; where none
//! permits, nothing is seen or written. What a statement reads of the rows that it changes takes the policies of SELECT as well.
//!
//! The conditions stand beneath everything that the statement asks of the table, behind a [fence](crate::plan::fenced): what it computes of
//! rows by itself it computes of those that are left, so that no error and no effect of a function tells of others.
//!
//! Names in conditions are found in the schema of the table and in `public`, whatever `search_path` says.

use super::query::is_default;
use super::through::{Verb, Written};
use super::write::Action;
use super::{Binder, Bound, Level, Scope};
use crate::catalog::{Policy, PolicyCommand, Table};
use crate::error::{error, fail, unsupported};
use crate::expr::{Expr, Node};
use crate::plan::{Plan, fenced};
use nestor_model::{Error, Result};
use nestor_planner::relation::Relation;
use sqlparser::ast::{Assignment, Delete, Expr as Ast, Update};
use std::sync::Arc;

/// What a statement does with the rows of a table that it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Finds {
    /// It reads them.
    #[default]
    Read,
    /// It reads and holds them.
    Hold,
    /// It changes them; with `true` it reads them, too.
    Update(bool),
    /// It deletes them; with `true` it reads them, too.
    Delete(bool),
}

impl Finds {
    /// What a statement does with the rows that it finds to write them.
    pub(super) fn of(verb: Verb, reads: bool) -> Self {
        match verb {
            Verb::Update => Self::Update(reads),
            Verb::Delete => Self::Delete(reads),
            // What MERGE does with a row is decided by its clauses.
            Verb::Insert | Verb::Merge => Self::Read,
        }
    }

    fn commands(self) -> &'static [PolicyCommand] {
        use PolicyCommand::{Delete, Select, Update};
        match self {
            Self::Read => &[Select],
            Self::Hold | Self::Update(true) => &[Update, Select],
            Self::Update(false) => &[Update],
            Self::Delete(true) => &[Delete, Select],
            Self::Delete(false) => &[Delete],
        }
    }
}

/// What a condition on a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// That it may be written so.
    New,
    /// That the row which an insert would double may be changed.
    Met,
    /// That the row which MERGE has found may be changed or deleted.
    Target,
}

/// What has to hold of a row.
#[derive(Clone, Debug)]
pub struct Guard {
    says: Says,
    /// The name of the policy that takes away; those that give have none.
    policy: Option<String>,
    /// The condition, over the columns of the table as [`Binder::scan`] gives them.
    pub holds: Expr,
    /// A query that gives its value, where it has subqueries. It reads the row as that of this number, and tables in the state before the statement.
    pub query: Option<(usize, Plan)>,
}

impl Guard {
    /// 42501.
    pub fn violated(&self, table: &str) -> Error {
        let policy = self
            .policy
            .as_ref()
            .map_or(String::new(), |name| format!(" \"{name}\""));
        let (row, using) = match self.says {
            Says::New => ("new", ""),
            Says::Met => ("new", " (USING expression)"),
            Says::Target => ("target", " (USING expression)"),
        };
        error(
            "42501",
            format!("{row} row violates row-level security policy{policy}{using} for table \"{table}\""),
        )
    }
}

/// What has to hold of the rows that a statement writes.
#[derive(Clone, Debug, Default)]
pub struct Guards {
    /// The table, as errors name it.
    pub table: String,
    /// Of those that it inserts.
    pub inserted: Vec<Guard>,
    /// Of those that it changes, as they are then.
    pub updated: Vec<Guard>,
    /// Of those that it changes in place of inserting others, and by MERGE, as they were.
    pub met: Vec<Guard>,
    /// Of those that MERGE deletes.
    pub deleted: Vec<Guard>,
}

impl Guards {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Guard> {
        let each = [&self.inserted, &self.updated, &self.met, &self.deleted];
        each.into_iter().flatten()
    }

    /// The same with other queries.
    #[must_use]
    pub fn with_queries(&self, f: &dyn Fn(&Plan) -> Plan) -> Self {
        let mut out = self.clone();
        let each = [&mut out.inserted, &mut out.updated, &mut out.met, &mut out.deleted];
        for guard in each.into_iter().flatten() {
            if let Some((_, plan)) = &mut guard.query {
                *plan = f(plan);
            }
        }
        out
    }
}

/// Which text of policies counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    /// What holds of rows that are there.
    Using,
    /// What holds of rows that are written.
    Check,
}

impl Text {
    fn of(self, policy: &Policy) -> Option<&str> {
        let check = policy.check.as_deref().filter(|_| self == Self::Check);
        check.or(policy.using.as_deref())
    }
}

impl Binder<'_> {
    /// The rows of a table that a statement finds; all of them if no policies count.
    ///
    /// Errors: those of the policies; 42P17 for a policy that reads its own table.
    pub(super) fn guarded(&mut self, table: &Arc<Table>, bound: Bound, finds: Finds) -> Result<Bound> {
        let Some(policies) = self.catalog.policies(table)? else {
            return Ok(bound);
        };
        let scope = Scope {
            columns: bound.columns.clone(),
        };
        let width = bound.columns.len();
        let plan = self.in_policies(table, |binder| {
            let mut plan = bound.plan;
            for command in finds.commands() {
                for (_, condition) in binder.conditions(&policies, (*command, Text::Using), &scope)? {
                    plan = binder.filter(plan, condition);
                }
            }
            Ok(plan)
        })?;
        let plan = match plan.width() > width {
            true => Relation::Project {
                columns: (0..width).map(|at| self.column(&scope.columns, at)).collect(),
                input: Box::new(plan),
            },
            false => plan,
        };
        Ok(Bound {
            plan: fenced(plan),
            columns: bound.columns,
        })
    }

    /// What has to hold of the rows that a statement writes; nothing if no policies count.
    ///
    /// Errors: those of the policies; 0A000 for elements of documents, and for functions in PL/pgSQL.
    pub(super) fn guards(&mut self, written: &Written, action: &Action, returns: bool) -> Result<Option<Arc<Guards>>> {
        use super::merge::Merging;
        let table = &written.table;
        let Some(policies) = self.catalog.policies(table)? else {
            return Ok(None);
        };
        if written.element().is_some() {
            return unsupported("to write elements of the rows of a table with row security");
        }
        let calls = std::mem::replace(&mut self.calls, false);
        let guards = self.in_policies(table, |binder| {
            use PolicyCommand::{Delete, Insert, Select, Update};
            let scope = binder.table_scope(table, None);
            let mut out = Guards {
                table: table.name.clone(),
                ..Guards::default()
            };
            let mut of = |command, text, says| binder.guards_of(&policies, (command, text, says), &scope);
            let (new, met, target) = (Says::New, Says::Met, Says::Target);
            match action {
                Action::Insert { conflict, .. } => {
                    let update = conflict.as_ref().is_some_and(|own| own.update.is_some());
                    // What an insert conflicts with is read, and so is what it returns.
                    let reads = returns || conflict.as_ref().is_some_and(|own| own.names_target());
                    out.inserted = of(Insert, Text::Check, new)?;
                    if reads {
                        out.inserted.extend(of(Select, Text::Using, new)?);
                    }
                    if update {
                        out.met = of(Update, Text::Using, met)?;
                        out.met.extend(of(Select, Text::Using, met)?);
                        out.updated = of(Update, Text::Check, new)?;
                        out.updated.extend(of(Select, Text::Using, new)?);
                    }
                }
                Action::Update { .. } => {
                    out.updated = of(Update, Text::Check, new)?;
                    if written.reads() {
                        out.updated.extend(of(Select, Text::Using, new)?);
                    }
                }
                Action::Delete => {}
                Action::Merge { clauses } => {
                    if clauses.iter().any(|own| matches!(own, Merging::Update { .. })) {
                        out.met = of(Update, Text::Using, target)?;
                        out.updated = of(Update, Text::Check, new)?;
                        out.updated.extend(of(Select, Text::Using, new)?);
                    }
                    if clauses.iter().any(|own| matches!(own, Merging::Delete)) {
                        out.deleted = of(Delete, Text::Using, target)?;
                    }
                    if clauses.iter().any(|own| matches!(own, Merging::Insert { .. })) {
                        out.inserted = of(Insert, Text::Check, new)?;
                    }
                }
            }
            Ok(out)
        });
        let is_called = std::mem::replace(&mut self.calls, calls);
        let guards = guards?;
        match is_called {
            true => unsupported("a function in PL/pgSQL in what a policy says of rows that are written"),
            false => Ok(Some(Arc::new(guards))),
        }
    }

    /// Looks whether the conditions of a policy mean something.
    ///
    /// Errors: those of binding them; 42P02 for parameters.
    pub fn check_policy(&mut self, table: &Arc<Table>, policy: &Policy) -> Result<()> {
        let scope = self.table_scope(table, None);
        let given = self.params.len();
        self.in_policies(table, |binder| {
            for text in [&policy.using, &policy.check].into_iter().flatten() {
                let condition = binder.policy_condition(text, &scope)?;
                binder.filter(super::from::one_row(), condition);
            }
            Ok(())
        })?;
        match self.params.len() > given {
            true => fail("42P02", "there is no parameter $1"),
            false => Ok(()),
        }
    }

    /// Binds what policies of a table say, which see nothing of the statement around them.
    fn in_policies<T>(&mut self, table: &Arc<Table>, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let own = (table.schema.clone(), table.name.clone());
        if self.policies_of.contains(&own) {
            let message = format!("infinite recursion detected in policy for relation \"{}\"", table.name);
            return fail("42P17", message);
        }
        self.policies_of.push(own);
        let out = self.in_view(table, |binder| {
            binder.levels.push(Level::default());
            let out = binder.deeper(work);
            binder.levels.pop();
            out
        });
        self.policies_of.pop();
        out
    }

    /// Whether what is bound is a policy, and not within a view or a function of it.
    pub(super) fn binds_policy(&self) -> bool {
        !self.policies_of.is_empty() && self.view_schema.is_some()
    }

    fn policy_condition(&mut self, text: &str, scope: &Scope) -> Result<Expr> {
        self.condition(&crate::parse::expression(text)?, scope, "POLICY")
    }

    /// The conditions of a command: that of the policies that permit, then those of each that restricts, with its name.
    fn conditions(
        &mut self,
        policies: &[Policy],
        (command, text): (PolicyCommand, Text),
        scope: &Scope,
    ) -> Result<Vec<(Option<String>, Expr)>> {
        let counts = |policy: &&Policy| policy.command == command || policy.command == PolicyCommand::All;
        let (mut permit, mut restrict) = (Vec::new(), Vec::new());
        for policy in policies.iter().filter(counts) {
            let Some(text) = text.of(policy) else { continue };
            let condition = self.policy_condition(text, scope)?;
            if policy.is_restrictive {
                restrict.push((Some(policy.name.clone()), condition));
            } else {
                permit.push(condition);
            }
        }
        let permit = match permit.len() {
            0 => Expr::bool(false),
            1 => permit.remove(0),
            _ => Node::Or(permit).into(),
        };
        restrict.insert(0, (None, permit));
        Ok(restrict)
    }

    fn guards_of(
        &mut self,
        policies: &[Policy],
        (command, text, says): (PolicyCommand, Text, Says),
        scope: &Scope,
    ) -> Result<Vec<Guard>> {
        let all = self.conditions(policies, (command, text), scope)?;
        let mut out = Vec::with_capacity(all.len());
        let width = scope.columns.len();
        for (policy, holds) in all {
            let mut beyond = false;
            holds.for_each_column(&mut |index| beyond |= index >= width);
            let query = beyond.then(|| {
                let id = self.id();
                let mut exprs = vec![holds.clone()];
                let input = self.flush(Relation::Working { id, width }, &mut exprs);
                let plan = Relation::Project {
                    input: Box::new(input),
                    columns: exprs,
                };
                (id, plan)
            });
            out.push(Guard {
                says,
                policy,
                holds,
                query,
            });
        }
        Ok(out)
    }
}

/// Whether an UPDATE reads the rows that it changes.
pub(super) fn update_reads(update: &Update) -> bool {
    let is_plain = |own: &Assignment| is_plain_value(&own.value);
    update.selection.is_some()
        || update.returning.is_some()
        || update.from.is_some()
        || !update.assignments.iter().all(is_plain)
}

/// Whether a DELETE reads the rows that it deletes.
pub(super) fn delete_reads(delete: &Delete) -> bool {
    let has_others = delete.using.as_ref().is_some_and(|others| !others.is_empty());
    delete.selection.is_some() || delete.returning.is_some() || has_others
}

/// Whether a value that is assigned reads no column.
fn is_plain_value(value: &Ast) -> bool {
    match value {
        Ast::Value(_) => true,
        Ast::Nested(inner) | Ast::Cast { expr: inner, .. } | Ast::UnaryOp { expr: inner, .. } => is_plain_value(inner),
        Ast::Tuple(items) => items.iter().all(is_plain_value),
        value => is_default(value),
    }
}
