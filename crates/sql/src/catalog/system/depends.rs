//! What depends on what: `pg_depend`, of sequences, defaults, indexes, constraints and functions.

use super::indexes::{constraint_oid, keeps_constraint, number_of};
use super::relations::{column_number, constraint_number, default_number, default_of};
use super::{Facts, IndexFacts, ROW_TYPES, Relation, Row, int, oid, text};
use nestor_model::Result;

/// A catalog, and the number of what it has.
type Object = (i64, i64);

const CLASS: i64 = 1259;
const PROCEDURE: i64 = 1255;
const TYPE: i64 = 1247;
const DEFAULT: i64 = 2604;
const CONSTRAINT: i64 = 2606;

/// One thing goes with another (`a`), is a part of it (`i`), or stands in the way of its going (`n`). A column is that of a relation, by its place; 0
/// stands for the whole.
fn depends((class, number): Object, (on_class, on): Object, column: usize, kind: &str) -> Row {
    vec![
        ("classid", oid(class)),
        ("objid", oid(number)),
        ("refclassid", oid(on_class)),
        ("refobjid", oid(on)),
        ("refobjsubid", int(column)),
        ("deptype", text(kind)),
    ]
}

/// The rows of `pg_depend`.
///
/// Errors: those of [`Facts::relations`].
pub(super) fn rows(facts: &dyn Facts) -> Result<Vec<Row>> {
    let mut out = Vec::new();
    let relations = facts.relations()?;
    for sequence in facts.sequences()? {
        let Some((table, column)) = sequence.owner else {
            continue;
        };
        let kind = if sequence.is_identity { "i" } else { "a" };
        let number = (CLASS, i64::from(sequence.oid));
        out.push(depends(number, (CLASS, i64::from(table)), column, kind));
        // The default of a serial column reads the sequence.
        if let (Some(relation), false) = (relations.iter().find(|own| own.oid == table), sequence.is_identity) {
            let default = (DEFAULT, default_number(relation, column));
            out.push(depends(default, number, 0, "n"));
        }
    }
    for (routine, ty) in super::server::routines_of_rows(facts, &relations) {
        let ty = i64::from(ty);
        out.push(depends((PROCEDURE, i64::from(routine)), (TYPE, ty), 0, "n"));
        // The type is the table's.
        let table = ty - i64::from(ROW_TYPES);
        out.push(depends((TYPE, ty), (CLASS, table), 0, "i"));
    }
    for relation in relations.iter() {
        of_defaults(relation, &mut out);
        relation
            .indexes
            .iter()
            .for_each(|index| of_index(relation, index, &mut out));
        of_constraints(relation, &relations, &mut out);
    }
    Ok(out)
}

fn of_defaults(relation: &Relation, out: &mut Vec<Row>) {
    let table = &relation.table;
    for (at, column) in (1..).zip(&table.columns) {
        if default_of(&[], ("", &table.name), &table.columns, column).is_some() {
            let default = (DEFAULT, default_number(relation, at));
            out.push(depends(default, (CLASS, i64::from(relation.oid)), at, "a"));
        }
    }
}

/// An index is a part of its constraint, or goes with its columns.
fn of_index(relation: &Relation, index: &IndexFacts, out: &mut Vec<Row>) {
    let own = (CLASS, i64::from(index.oid));
    let whole = match keeps_constraint(relation, index) {
        true => {
            let constraint = (CONSTRAINT, constraint_oid(index));
            out.push(depends(own, constraint, 0, "i"));
            constraint
        }
        false => own,
    };
    let numbers = index.parts.iter().map(|(path, _)| number_of(relation, path));
    for column in numbers
        .filter_map(|number| usize::try_from(number).ok())
        .filter(|number| *number > 0)
    {
        out.push(depends(whole, (CLASS, i64::from(relation.oid)), column, "a"));
    }
}

/// Checks go with their columns, keys of other tables also stand in the way of what they refer to, and of the index that has that.
fn of_constraints(relation: &Relation, all: &[Relation], out: &mut Vec<Row>) {
    let table = &relation.table;
    let own = (CLASS, i64::from(relation.oid));
    let place = |number: i32| usize::try_from(number).unwrap_or(0);
    for (at, check) in table.checks.iter().enumerate() {
        let constraint = (CONSTRAINT, constraint_number(relation, at));
        let used = crate::parse::words(&check.text);
        for column in table.columns.iter().filter(|column| used.contains(&column.name)) {
            out.push(depends(constraint, own, place(column_number(table, &column.name)), "a"));
        }
    }
    for (at, foreign) in table.foreign.iter().enumerate() {
        let constraint = (CONSTRAINT, constraint_number(relation, table.checks.len() + at));
        for column in &foreign.columns {
            out.push(depends(constraint, own, place(column_number(table, column)), "a"));
        }
        let Some(parent) = all.iter().find(|other| other.is(&foreign.table)) else {
            continue;
        };
        let referred = parent.table.referred(foreign);
        for column in &referred {
            let on = (CLASS, i64::from(parent.oid));
            out.push(depends(
                constraint,
                on,
                place(column_number(&parent.table, column)),
                "n",
            ));
        }
        if let Some(index) = parent.index_of_key(&parent.table.paths(&referred)) {
            out.push(depends(constraint, (CLASS, i64::from(index.oid)), 0, "n"));
        }
    }
}
