//! `TABLESAMPLE`: some of the rows of a table, by chance.
//!
//! Whether a row is one of them depends on the key of its record and on a number that is the same for all rows of the statement, so that it
//! does not matter which conditions are looked at first. `SYSTEM` decides for many records with one another ([`functions::sample`]).

use super::from::one_row;
use super::select::is_called;
use super::{Binder, Bound, Scope};
use crate::catalog::{Kind, Table};
use crate::error::{fail, unsupported};
use crate::expr::{Expr, Node};
use crate::functions::{self, coerce, sample};
use crate::parse::queries::SAMPLE;
use crate::plan::cross;
use crate::types::Type;
use crate::types::cast::Context;
use nestor_model::{Result, Value};
use nestor_planner::relation::Relation;
use sqlparser::ast::{Expr as Ast, FunctionArg, FunctionArgExpr, TableSample};
use std::sync::Arc;

impl Binder<'_> {
    /// Some of the rows of a table.
    ///
    /// Errors: 42704 for methods that there are not, 2202H for a wrong number of arguments; 0A000 for rows that are no records.
    pub(super) fn sampled(&mut self, table: &Arc<Table>, sampling: &TableSample) -> Result<Bound> {
        match &table.kind {
            Kind::Collection(_) => {}
            Kind::Rows(_) => return unsupported("TABLESAMPLE of catalogs"),
            _ => return unsupported("TABLESAMPLE of what is no table"),
        }
        let value = sampling.quantity.as_ref().map(|quantity| &quantity.value);
        let Some(Ast::Function(call)) =
            value.filter(|value| matches!(value, Ast::Function(call) if is_called(call, SAMPLE)))
        else {
            return fail("42601", "syntax error in TABLESAMPLE");
        };
        let args = super::call::arguments(call)?;
        let args = args.iter().filter_map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => Some(arg),
            _ => None,
        });
        let args: Vec<Expr> = args
            .map(|arg| self.expr(arg, &Scope::default()))
            .collect::<Result<_>>()?;
        let Some((Node::Const(Value::String(method), _), rest)) =
            args.split_first().map(|(name, rest)| (name.node(), rest))
        else {
            return fail("42601", "syntax error in TABLESAMPLE");
        };
        let by_block = match &**method {
            "bernoulli" => false,
            "system" => true,
            other => return fail("42704", format!("tablesample method {other} does not exist")),
        };
        let single = |row: &Expr| match row.node() {
            Node::Row(items) if items.len() == 1 => Ok(items[0].clone()),
            Node::Row(items) => fail(
                "2202H",
                format!("tablesample method {method} requires 1 argument, not {}", items.len()),
            ),
            _ => fail("42601", "syntax error in TABLESAMPLE"),
        };
        let float = |value: Expr| coerce(value, &Type::Float8, Context::Assignment);
        let percent = match rest.first() {
            Some(row) => coerce(float(single(row)?)?, &Type::Float4, Context::Assignment)?,
            None => return fail("42601", "syntax error in TABLESAMPLE"),
        };
        let percent = functions::call(sample::PERCENT, vec![float(percent)?])?;
        let seed = match rest.get(1) {
            Some(row) => functions::call(sample::SEED, vec![float(single(row)?)?])?,
            None => functions::call("random", Vec::new())?,
        };
        let mut numbers = [percent, seed];
        numbers.iter().for_each(|number| self.note_params(number));
        let below = self.flush(one_row(), &mut numbers);
        let numbers = Relation::Project {
            input: Box::new(below),
            columns: numbers.to_vec(),
        };
        let bound = self.scan(table)?;
        let width = bound.columns.len();
        let own = |at: usize, name: &str, ty: Type| Expr::column(at, name, ty);
        let condition = functions::call(
            sample::TAKES,
            vec![
                own(width - 1, "record", Type::Bytea),
                own(width, "percent", Type::Float8),
                own(width + 1, "seed", Type::Float8),
                Expr::bool(by_block),
            ],
        )?;
        let filtered = Relation::Filter {
            input: Box::new(cross(bound.plan, numbers)),
            condition,
        };
        Ok(Bound {
            plan: Relation::Project {
                input: Box::new(filtered),
                columns: (0..width).map(|at| self.column(&bound.columns, at)).collect(),
            },
            columns: bound.columns,
        })
    }
}
