//! Views whose triggers do what statements want to do with their rows.

use super::through::Verb;
use super::{Binder, Bound, ScopeColumn};
use crate::catalog::{Kind, Table};
use crate::expr::{Expr, Node};
use crate::parse::trigger::{Event, Trigger};
use crate::types::Type;
use crate::types::composite::{Attribute, Composite};
use nestor_model::Result;
use nestor_planner::relation::Relation;
use std::sync::Arc;

/// Whether a view has triggers that stand in the place of what a statement does.
pub(super) fn is_meant(table: &Table, verb: Verb) -> bool {
    let event = match verb {
        Verb::Insert => Event::Insert,
        Verb::Update => Event::Update,
        Verb::Delete => Event::Delete,
        Verb::Merge => return false,
    };
    table.triggers.iter().any(|own| own.is_instead && own.takes(event, &[]))
}

/// Whether it has any.
pub(super) fn is_any(table: &Table) -> bool {
    let is_it = |own: &Trigger| own.is_instead && !own.is_off;
    table.triggers.iter().any(is_it)
}

/// The type of a view's rows.
pub fn row_type(table: &Table) -> Arc<Composite> {
    let attributes = table.columns.iter().map(|column| Attribute {
        name: column.name.clone(),
        ty: column.ty.clone(),
        modifier: -1,
    });
    Arc::new(Composite::of_row_type(attributes.collect()))
}

impl Binder<'_> {
    /// The rows of a view, each with itself as one value behind its columns.
    ///
    /// Errors: those of binding its query.
    pub(super) fn rows_with_themselves(&mut self, table: &Arc<Table>) -> Result<Bound> {
        let Kind::Query(query) = &table.kind else {
            return crate::error::fail("XX000", "a view is wanted");
        };
        let Bound { plan, columns } = self.view(query, table)?;
        let own: Vec<ScopeColumn> = columns.into_iter().take(table.columns.len()).collect();
        let mut exprs: Vec<Expr> = (0..own.len()).map(|at| self.column(&own, at)).collect();
        let to = Type::Composite(row_type(table));
        exprs.push(
            Node::Cast {
                arg: Node::Row(exprs.clone()).into(),
                to: to.clone(),
                modifier: -1,
                explicit: true,
            }
            .into(),
        );
        let whole = ScopeColumn {
            hidden: true,
            ..ScopeColumn::new("\u{1}row", to)
        };
        Ok(Bound {
            plan: Relation::Project {
                input: Box::new(plan),
                columns: exprs,
            },
            columns: own.into_iter().chain([whole]).collect(),
        })
    }
}
