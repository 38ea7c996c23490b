//! MERGE: what its clauses do with the rows that they want.

use super::apply::{Applying, record_of};
use super::child::Edits;
use crate::bind::merge::{BEFORE_VALUES, Merging};
use crate::bind::write::{Element, Target};
use crate::error::{Field, error, fail, with};
use nestor_model::statement::work;
use nestor_model::{Result, Value};
use nestor_planner::relation::Tuple;
use nestor_storage::Bytes;
use std::collections::HashSet;

fn values_of(mut row: Tuple, targets: &[Target], first: usize) -> Tuple {
    let mut values = row.split_off(first.max(BEFORE_VALUES).min(row.len()));
    values.truncate(targets.len());
    values
}

impl Applying<'_, '_, '_> {
    /// Changes and deletes the rows that were met, then inserts those for which there was none: a key that a row gives up is free for another.
    ///
    /// Errors: 21000 for a row that is met twice.
    pub(super) fn merge(&mut self, clauses: &[Merging], rows: Vec<Tuple>) -> Result<()> {
        let mut met: HashSet<Bytes> = HashSet::new();
        let (mut moved, mut new) = (Vec::new(), Vec::new());
        for row in rows {
            work(1)?;
            match clause_of(clauses, &row)? {
                Merging::Nothing => {}
                Merging::Insert { targets, first } => new.push((targets, values_of(row, targets, *first))),
                Merging::Update { targets, first } => {
                    let record = once(&mut met, &row)?;
                    let values = values_of(row, targets, *first);
                    self.check_target(&record, |guards| &guards.met)?;
                    self.update_one(targets, (&record, values), Vec::new(), &mut moved)?;
                }
                Merging::Delete => {
                    let record = once(&mut met, &row)?;
                    self.check_target(&record, |guards| &guards.deleted)?;
                    self.delete_one(&record, &[])?;
                }
            }
        }
        self.insert_moved(moved)?;
        self.left = new.len();
        for (targets, row) in new {
            work(1)?;
            self.insert_one(targets, row)?;
        }
        Ok(())
    }
}

impl Applying<'_, '_, '_> {
    /// The same of elements.
    ///
    /// Errors: 21000 for a row that is met twice.
    pub(super) fn merge_elements(
        &mut self,
        element: &Element,
        clauses: &[Merging],
        rows: Vec<Tuple>,
        edits: &mut Edits,
    ) -> Result<()> {
        let mut met: HashSet<Bytes> = HashSet::new();
        for row in rows {
            work(1)?;
            match clause_of(clauses, &row)? {
                Merging::Nothing => {}
                Merging::Insert { targets, first } => {
                    let values = values_of(row, targets, *first);
                    self.add_elements(element, targets, vec![values], edits)?;
                }
                Merging::Update { targets, first } => {
                    let address = once(&mut met, &row)?;
                    edits.update(&address, targets, values_of(row, targets, *first), Vec::new())?;
                }
                Merging::Delete => edits.delete(&once(&mut met, &row)?, Vec::new())?,
            }
        }
        Ok(())
    }
}

/// The clause that wants a row.
fn clause_of<'c>(clauses: &'c [Merging], row: &[Value]) -> Result<&'c Merging> {
    let number = match row.get(1) {
        Some(Value::Int32(number)) => usize::try_from(*number).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    match clauses.get(number) {
        Some(clause) => Ok(clause),
        None => fail("XX000", "a row of MERGE has no clause"),
    }
}

/// The record of a row that is written to for the first time.
fn once(met: &mut HashSet<Bytes>, row: &[Value]) -> Result<Bytes> {
    let record = record_of(row)?;
    if met.insert(record.clone()) {
        return Ok(record);
    }
    let told = error("21000", "MERGE command cannot affect row a second time");
    let hint = "Ensure that not more than one source row matches any one target row.";
    Err(with(told, &[(Field::Hint, hint)]))
}
