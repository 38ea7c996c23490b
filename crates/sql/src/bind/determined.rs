//! Columns that are the same in all rows of a group because these have the same primary key.

use crate::catalog::{Kind, Table};
use crate::expr::{Expr, Node};
use crate::plan::Plan;
use crate::types::Type;
use nestor_planner::relation::{JoinKind, Relation};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The scan that a column of a plan comes from as it is, and its number there.
type Origin = Option<(usize, usize)>;

/// The columns of `plan` that have one value wherever the expressions `groups` have one. Null beside null counts as one value.
pub(super) fn by_keys(plan: &Plan, tables: &[Arc<Table>], groups: &[Expr]) -> BTreeSet<usize> {
    let mut all_scans = Vec::new();
    let origins = origins(plan, &mut all_scans);
    let origin = |expr: &Expr| match expr.node() {
        Node::Column { index, .. } => origins.get(*index).copied().flatten(),
        _ => None,
    };
    let grouped: BTreeSet<(usize, usize)> = groups.iter().filter_map(origin).collect();
    let scans: BTreeSet<usize> = grouped.iter().map(|(scan, _)| *scan).collect();
    let whole = |scan: &usize| {
        // A plan that stands at two places has rows of its own at each.
        let is_once = all_scans.iter().filter(|own| *own == scan).count() == 1;
        let key = tables.get(*scan).and_then(|table| key_of(table));
        is_once && key.is_some_and(|key| key.iter().all(|column| grouped.contains(&(*scan, *column))))
    };
    let scans: BTreeSet<usize> = scans.into_iter().filter(whole).collect();
    let all = origins.iter().enumerate();
    let all = all.filter(|(_, origin)| origin.is_some_and(|(scan, _)| scans.contains(&scan)));
    all.map(|(at, _)| at).collect()
}

/// The type of a column of a plan that comes from a scan as it is.
pub(super) fn type_of(plan: &Plan, tables: &[Arc<Table>], index: usize) -> Option<Type> {
    let (scan, column) = origins(plan, &mut Vec::new()).get(index).copied().flatten()?;
    let columns = &tables.get(scan)?.columns;
    match columns.get(column) {
        Some(column) => Some(column.ty.clone()),
        // Behind its columns a scan has the document.
        None => (column == columns.len()).then_some(Type::Jsonb),
    }
}

/// The numbers of the columns that are a table's primary key: those that were declared, or `_id`.
fn key_of(table: &Table) -> Option<Vec<usize>> {
    let Kind::Collection(_) = table.kind else { return None };
    let number = |name: &String| table.columns.iter().position(|column| column.name == *name);
    match (table.declared, table.key.is_empty()) {
        (true, true) => None,
        (true, false) => table.key.iter().map(number).collect(),
        (false, _) => number(&"_id".to_owned()).map(|at| vec![at]),
    }
}

/// Where the columns of a plan come from; notes its scans.
fn origins(plan: &Plan, scans: &mut Vec<usize>) -> Vec<Origin> {
    let mut out = match plan {
        Relation::Scan(scan) => {
            scans.push(scan.table);
            (0..plan.width()).map(|at| Some((scan.table, at))).collect()
        }
        Relation::Filter { input, .. } | Relation::Sort { input, .. } | Relation::Limit { input, .. } => {
            origins(input, scans)
        }
        Relation::Project { input, columns } => {
            let below = origins(input, scans);
            let of = |column: &Expr| match column.node() {
                Node::Column { index, .. } => below.get(*index).copied().flatten(),
                _ => None,
            };
            columns.iter().map(of).collect()
        }
        Relation::Join(join) => {
            let mut left = origins(&join.left, scans);
            if !matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                left.extend(origins(&join.right, scans));
            }
            left
        }
        Relation::Apply(apply) => origins(&apply.input, scans),
        _ => Vec::new(),
    };
    out.resize(plan.width(), None);
    out
}
