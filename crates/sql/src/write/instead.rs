//! INSTEAD OF triggers: what a statement wants to do with rows of a view, its triggers do.

use super::triggers::Calling;
use crate::bind::instead::row_type;
use crate::bind::write::{Action, Target, Write};
use crate::catalog::Table;
use crate::error::{fail, unsupported};
use crate::parse::trigger::{Event, Trigger};
use crate::run::procedures::{Fate, check_transaction};
use nestor_model::statement::work;
use nestor_model::{Result, Value};
use nestor_planner::relation::Tuple;
use nestor_storage::WriteSet;

/// A row of a view with what is behind it for RETURNING: the row as it was, as it is to be, and columns of other tables.
struct Row {
    old: Option<Vec<Value>>,
    new: Option<Vec<Value>>,
    others: Vec<Value>,
}

/// The columns of a view that a statement assigns.
///
/// Errors: 0A000 for a part of a column.
fn places(table: &Table, targets: &[Target]) -> Result<Vec<usize>> {
    let each = targets.iter().map(|target| {
        let found = table.columns.iter().position(|column| column.name == target.column);
        match (found, target.path.len()) {
            (Some(at), 1) => Ok(at),
            _ => unsupported("an assignment to a part of a column of a view with triggers"),
        }
    });
    each.collect()
}

/// What the row of a plan asks for.
fn asked(write: &Write, mut row: Tuple) -> Result<Row> {
    let table = &write.table;
    let before = |value: Option<&Value>| row_type(table).values(value.unwrap_or(&Value::Null));
    match &write.action {
        Action::Insert { targets, .. } => {
            let mut new = vec![Value::Null; table.columns.len()];
            for (at, value) in places(table, targets)?.into_iter().zip(row) {
                new[at] = value;
            }
            Ok(Row {
                old: None,
                new: Some(new),
                others: Vec::new(),
            })
        }
        Action::Update { targets } => {
            let others = row.split_off((1 + targets.len()).min(row.len()));
            let old = before(row.first());
            let mut new = old.clone();
            for (at, value) in places(table, targets)?.into_iter().zip(row.into_iter().skip(1)) {
                new[at] = value;
            }
            Ok(Row {
                old: Some(old),
                new: Some(new),
                others,
            })
        }
        Action::Delete => {
            let others = row.split_off(row.len().min(1));
            Ok(Row {
                old: Some(before(row.first())),
                new: None,
                others,
            })
        }
        Action::Merge { .. } => fail("XX000", "MERGE into a view with triggers"),
    }
}

impl Calling<'_, '_> {
    /// Calls the triggers of a view for rows: how many of them were not left out, and what RETURNING sees.
    ///
    /// Errors: those of the triggers; that the statement has to run within a transaction.
    pub(super) fn instead(&self, ws: &mut WriteSet, write: &Write, rows: Vec<Tuple>) -> Result<(u64, Vec<Tuple>)> {
        check_transaction(self.statement)?;
        let table = &write.table;
        let (event, targets) = match &write.action {
            Action::Insert { conflict: Some(_), .. } => return unsupported("ON CONFLICT of a view with triggers"),
            Action::Insert { targets, .. } => (Event::Insert, targets.as_slice()),
            Action::Update { targets } => (Event::Update, targets.as_slice()),
            _ => (Event::Delete, [].as_slice()),
        };
        let columns: Vec<&str> = targets.iter().map(|target| target.column.as_str()).collect();
        let own = table
            .triggers
            .iter()
            .filter(|own| own.is_instead && own.takes(event, &columns));
        let own: Vec<&Trigger> = own.collect();
        let oid = self.oid(&*ws, table)?;
        let (mut count, mut out) = (0, Vec::new());
        'rows: for row in rows {
            work(1)?;
            let Row { old, mut new, others } = asked(write, row)?;
            for trigger in &own {
                let given = (old.clone(), new.clone());
                let fate = self
                    .statement
                    .lend(ws, || self.call((table, oid), trigger, event, given))?;
                match fate {
                    Fate::Gone => continue 'rows,
                    Fate::Row(row) if new.is_some() => new = Some(row),
                    Fate::Row(_) | Fate::Same => {}
                }
            }
            count += 1;
            if write.returning.is_some() {
                let mut row = new.or(old).unwrap_or_default();
                // The row as one value, which nobody names.
                row.push(Value::Null);
                row.extend(others);
                out.push(row);
            }
        }
        Ok((count, out))
    }
}
