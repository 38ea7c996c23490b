//! What a table's declaration computes of a row: defaults, generated columns, checks, and the predicates of its indexes.

use super::write::Target;
use super::{Binder, Level};
use crate::catalog::Table;
use crate::error::{error, fail, unsupported};
use crate::expr::Expr;
use nestor_model::Result;
use sqlparser::ast::Expr as Ast;
use std::sync::Arc;

impl Binder<'_> {
    /// Sees whether the defaults and checks of a table mean something.
    ///
    /// Errors: those of binding them.
    pub fn check_declaration(&mut self, table: &Arc<Table>) -> Result<()> {
        self.levels.push(Level::default());
        let result = self.declaration(table);
        self.levels.pop();
        result
    }

    fn declaration(&mut self, table: &Arc<Table>) -> Result<()> {
        for column in table.columns.iter().filter(|column| column.is_given()) {
            self.default_value(table, column)?;
        }
        let calls = std::mem::take(&mut self.calls);
        self.generated(table)?;
        self.checks(table)?;
        if self.calls {
            return unsupported("a function in PL/pgSQL in a check or a generated column");
        }
        self.calls = calls;
        Ok(())
    }

    /// The generated columns of a table.
    pub(super) fn generated(&mut self, table: &Arc<Table>) -> Result<Vec<(usize, Expr)>> {
        let mut out = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let Some(text) = &column.generated else { continue };
            let scope = self.table_scope(table, None);
            let mut value = self.expr(&crate::parse::expression(text)?, &scope)?;
            let mut refused = None;
            value.for_each_column(&mut |index| match table.columns.get(index) {
                Some(used) if used.generated.is_some() => {
                    let message = format!(
                        "cannot use generated column \"{}\" in column generation expression",
                        used.name
                    );
                    refused = Some(error("42P17", message));
                }
                Some(_) => {}
                None => refused = Some(error("0A000", "cannot use subquery in column generation expression")),
            });
            if let Some(refused) = refused {
                return Err(refused);
            }
            if value.is_of_session() {
                return fail("42P17", "generation expression is not immutable");
            }
            let mut target = Target::of(column);
            self.assigned(&mut target, &mut [&mut value])?;
            out.push((at, value));
        }
        Ok(out)
    }

    /// The checks of a table.
    pub(super) fn checks(&mut self, table: &Arc<Table>) -> Result<Vec<(String, Expr)>> {
        if table.checks.is_empty() {
            return Ok(Vec::new());
        }
        let scope = self.table_scope(table, None);
        let mut out = Vec::new();
        for check in &table.checks {
            let condition = self.condition(&crate::parse::expression(&check.text)?, &scope, "CHECK")?;
            let mut beyond = false;
            condition.for_each_column(&mut |index| beyond |= index >= scope.columns.len());
            if beyond {
                return unsupported("a subquery in CHECK");
            }
            out.push((check.name.clone(), condition));
        }
        Ok(out)
    }

    /// An expression of an index over the columns of a table.
    ///
    /// Errors: those of binding it.
    pub fn indexed(&mut self, table: &Arc<Table>, ast: &Ast) -> Result<Expr> {
        self.levels.push(Level::default());
        let scope = self.table_scope(table, None);
        let value = self.expr(ast, &scope);
        self.levels.pop();
        let value = value?;
        let mut beyond = false;
        value.for_each_column(&mut |index| beyond |= index >= table.columns.len());
        match beyond {
            true => fail("0A000", "cannot use subquery in index expression"),
            false => Ok(value),
        }
    }

    /// The predicate of an index of a table.
    ///
    /// Errors: those of binding it, 0A000 for subqueries.
    pub fn predicate(&mut self, table: &Arc<Table>, predicate: &Ast) -> Result<Expr> {
        self.levels.push(Level::default());
        let scope = self.table_scope(table, None);
        let condition = self.condition(predicate, &scope, "WHERE");
        self.levels.pop();
        let condition = condition?;
        let mut beyond = false;
        condition.for_each_column(&mut |index| beyond |= index >= scope.columns.len());
        match beyond {
            true => fail("0A000", "cannot use subquery in index predicate"),
            false => Ok(condition),
        }
    }
}
