//! Columns GENERATED ALWAYS, which are given nothing but their default.

use super::write::{NEXT_NUMBER, Target};
use crate::catalog::{Column, IdentityKind, Table};
use crate::error::{Field, error, with};
use crate::expr::{Expr, Node};
use crate::plan::Plan;
use nestor_model::Result;
use nestor_planner::relation::Relation;

/// Columns that count alone are given nothing but their default, unless the statement overrides that.
pub(super) fn check_identity(table: &Table, targets: &[Target], plan: &Plan, overrides: bool) -> Result<()> {
    for (i, target) in targets.iter().enumerate() {
        let column = table.columns.iter().find(|column| column.name == target.column);
        let is_bound = |column: &&Column| is_always(column) && !(overrides && column.generated.is_none());
        let Some(column) = column.filter(is_bound) else {
            continue;
        };
        let is_default = |value: &Expr| matches!(value.node(), Node::Const(value, _) if value.identical(&NEXT_NUMBER));
        let all = match plan {
            Relation::Values { rows, .. } => rows.iter().all(|row| is_default(&row[i])),
            _ => false,
        };
        if !all {
            let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
            let told = with(error("428C9", message), &[(Field::Detail, &why_always(column))]);
            return Err(match column.generated {
                Some(_) => told,
                None => with(told, &[(Field::Hint, "Use OVERRIDING SYSTEM VALUE to override.")]),
            });
        }
    }
    Ok(())
}

/// Whether nothing but its default can be given to a column.
pub(super) fn is_always(column: &Column) -> bool {
    let identity = column.identity.map(|identity| identity.kind);
    identity == Some(IdentityKind::Always) || column.generated.is_some()
}

/// Why nothing else can.
pub(super) fn why_always(column: &Column) -> String {
    match column.generated {
        Some(_) => format!("Column \"{}\" is a generated column.", column.name),
        None => format!(
            "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
            column.name
        ),
    }
}
