//! What becomes of the rows of a declared table when it is declared otherwise.

use super::write::Target;
use super::{Binder, Level};
use crate::catalog::{Column, Table};
use crate::error::{fail, unsupported};
use crate::expr::Expr;
use crate::functions::coerce;
use crate::types::cast::{self, Context};
use nestor_model::Result;
use sqlparser::ast::{Expr as Ast, Ident};
use std::sync::Arc;

/// Where the column of a table comes from that is declared anew.
#[derive(Clone, Debug)]
pub enum Source {
    /// It is the column of this number.
    Kept(usize),
    /// It is the column of this number with another type, by an expression if one was given.
    Turned(usize, Option<Box<Ast>>),
    /// It is new.
    Added,
}

impl Source {
    /// The column that it was.
    pub fn before(&self) -> Option<usize> {
        match self {
            Self::Kept(at) | Self::Turned(at, _) => Some(*at),
            Self::Added => None,
        }
    }
}

/// What gives the columns of rows that are made of others.
#[derive(Clone, Debug, Default)]
pub struct Turning {
    /// Columns that are computed of the row as it was, by their numbers.
    pub values: Vec<(usize, Expr)>,
    /// Generated columns, computed of the row as it is to be.
    pub generated: Vec<(usize, Expr)>,
    /// What holds of the row as it is to be, with the names of the constraints.
    pub checks: Vec<(String, Expr)>,
}

impl Binder<'_> {
    /// How rows of `old` become such of `new`, whose column `i` is `sources[i]`.
    ///
    /// Errors: 42804 for types that do not become each other, those of the expressions.
    pub fn turning(&mut self, old: &Arc<Table>, new: &Arc<Table>, sources: &[Source]) -> Result<Turning> {
        self.levels.push(Level::default());
        let turning = self.turned(old, new, sources);
        self.levels.pop();
        turning
    }

    fn turned(&mut self, old: &Arc<Table>, new: &Arc<Table>, sources: &[Source]) -> Result<Turning> {
        let mut values = Vec::new();
        for (at, (column, source)) in new.columns.iter().zip(sources).enumerate() {
            match source {
                Source::Kept(_) => {}
                _ if column.generated.is_some() => {}
                Source::Added if column.is_given() => values.push((at, self.default_value(new, column)?)),
                Source::Added => {}
                Source::Turned(before, using) => {
                    let expr = self.converted(old, &old.columns[*before], column, using.as_deref())?;
                    values.push((at, expr));
                }
            }
        }
        Ok(Turning {
            values,
            generated: self.generated(new)?,
            checks: self.checks(new)?,
        })
    }

    /// A column with another type.
    fn converted(&mut self, table: &Arc<Table>, from: &Column, to: &Column, using: Option<&Ast>) -> Result<Expr> {
        let scope = self.table_scope(table, None);
        let own = Ast::Identifier(Ident::with_quote('"', from.name.as_str()));
        let mut value = self.expr(using.unwrap_or(&own), &scope)?;
        if from.ty.element().unwrap_or(&from.ty).made().is_some() && from.ty.oid() == to.ty.oid() && using.is_none() {
            // Its labels have other names, and their places.
            return match &to.domain {
                Some(domain) if from.ty == to.ty => coerce(value, domain, Context::Assignment),
                _ => Ok(value),
            };
        }
        let mut beyond = false;
        value.for_each_column(&mut |index| beyond |= index >= scope.columns.len());
        if beyond {
            return unsupported("a subquery in USING");
        }
        if !cast::exists(&value.ty(), &to.ty, Context::Assignment) {
            let what = match using {
                None => format!("column \"{}\"", to.name),
                Some(_) => format!("result of USING clause for column \"{}\"", to.name),
            };
            return fail(
                "42804",
                format!("{what} cannot be cast automatically to type {}", to.ty),
            );
        }
        self.assigned(&mut Target::of(to), &mut [&mut value])?;
        Ok(value)
    }
}
