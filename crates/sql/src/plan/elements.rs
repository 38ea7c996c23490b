//! Elements of arrays as rows of scans.
//!
//! `FROM orders o, jsonb_to_recordset(o.lines) AS l (no int, price numeric)` asks for the rows of `o`, each beside what the function gives of it. Where
//! `lines` is a column of documents the scan gives these rows itself: its columns are those of the documents and then the fields of the elements. So
//! conditions go to the scan, joins are put in order and looked up as with any other table, and fields that nobody looks at are
//! passed by.

use super::Plan;
use super::unnest::placed;
use crate::catalog::{Column, Elements, Kind, Table};
use crate::expr::{Expr, Node};
use crate::types::Type;
use nestor_model::Value;
use nestor_planner::relation::{Apply, ApplyKind, Join, JoinKind, Relation, Scan};
use std::sync::Arc;

/// What every path of an element's field begins with, so that it is that of no field of a document and of no index.
const OF_ELEMENT: char = '.';

/// Gives functions of arrays to the scans that read these. The tables that are made for that are added to `tables`.
pub fn rewrite(plan: Plan, tables: &mut Vec<Arc<Table>>) -> Plan {
    let plan = super::with_inputs(plan, &mut |input| rewrite(input, tables));
    match plan {
        Relation::Apply(apply) => match of_apply(&apply, tables) {
            Some(scanned) => scanned,
            None => Relation::Apply(apply),
        },
        other => other,
    }
}

fn of_apply(apply: &Apply<Expr>, tables: &mut Vec<Arc<Table>>) -> Option<Plan> {
    let ApplyKind::Lateral { keeps } = apply.kind else {
        return None;
    };
    let Relation::Function { call, args, .. } = function(&apply.inner)? else {
        return None;
    };
    let fields: &Vec<(String, Type)> = call.fields()?.downcast_ref()?;
    let [array] = args.as_slice() else { return None };
    let array = outer_column(array)?;
    let width = apply.input.width();
    let (plan, at) = widened(&apply.input, array, (fields, keeps), tables)?;
    // The fields stand behind the row that they are of.
    let mut before = Vec::with_capacity(width);
    note_columns(&apply.input, tables, &mut before);
    let before = before.into_iter().enumerate();
    let before = before.map(|(i, (name, ty))| Expr::column(if i < at { i } else { i + fields.len() }, name, ty));
    let mut columns: Vec<Expr> = before.collect();
    let of_elements = fields.iter().enumerate();
    columns.extend(of_elements.map(|(i, (name, ty))| Expr::column(at + i, name.clone(), ty.clone())));
    Some(Relation::Project {
        input: Box::new(plan),
        columns,
    })
}

/// Names and types of the columns of a plan, as far as it consists of scans, filters and inner joins.
fn note_columns(plan: &Plan, tables: &[Arc<Table>], out: &mut Vec<(String, Type)>) {
    match plan {
        Relation::Scan(scan) => {
            let own = tables.get(scan.table).map_or(&[][..], |table| &table.columns);
            out.extend(own.iter().map(|column| (column.name.clone(), column.ty.clone())));
            // The document itself, and the key of its record.
            let behind = (own.len()..scan.needed.len()).map(|_| (String::new(), Type::Unknown));
            out.extend(behind);
        }
        Relation::Filter { input, .. } => note_columns(input, tables, out),
        Relation::Join(join) => {
            note_columns(&join.left, tables, out);
            note_columns(&join.right, tables, out);
        }
        other => out.extend((0..other.width()).map(|_| (String::new(), Type::Unknown))),
    }
}

/// The function that a plan is, under conditions that always hold.
fn function(plan: &Plan) -> Option<&Plan> {
    match plan {
        Relation::Function { .. } => Some(plan),
        Relation::Filter { input, condition } if is_true(condition) => function(input),
        _ => None,
    }
}

fn is_true(condition: &Expr) -> bool {
    matches!(condition.node(), Node::Const(Value::Bool(true), _))
}

/// The column of the outer row that an array is.
fn outer_column(array: &Expr) -> Option<usize> {
    match array.node() {
        Node::Outer { levels: 1, index, .. } => Some(*index),
        Node::Cast {
            arg, to: Type::Jsonb, ..
        } => outer_column(arg),
        _ => None,
    }
}

/// A plan whose scan of the documents with the array at `column` has the fields of its elements, and the place of the first of them.
fn widened(
    plan: &Plan,
    column: usize,
    fields: (&Vec<(String, Type)>, bool),
    tables: &mut Vec<Arc<Table>>,
) -> Option<(Plan, usize)> {
    let count = fields.0.len();
    match plan {
        Relation::Scan(scan) => {
            let (table, at) = of_elements(tables.get(scan.table)?, column, fields)?;
            let name = format!("{}, elements of {}", scan.name, table.columns[column].name);
            tables.push(Arc::new(table));
            let widened = Scan {
                table: tables.len() - 1,
                name,
                needed: vec![true; scan.needed.len() + count],
                ..scan.clone()
            };
            Some((Relation::Scan(widened), at))
        }
        Relation::Filter { input, condition } => {
            let (input, at) = widened(input, column, fields, tables)?;
            let condition = moved(condition, at, count);
            let input = Box::new(input);
            Some((Relation::Filter { input, condition }, at))
        }
        Relation::Join(join) if join.kind == JoinKind::Inner => {
            let width = join.left.width();
            let (left, right, at) = match column.checked_sub(width) {
                None => {
                    let (left, at) = widened(&join.left, column, fields, tables)?;
                    (left, join.right.clone(), at)
                }
                Some(column) => {
                    let (right, at) = widened(&join.right, column, fields, tables)?;
                    (join.left.clone(), right, at + width)
                }
            };
            let keys = join.keys.iter();
            let keys = keys.map(|(a, b)| (moved(a, at, count), moved(b, at, count)));
            let joined = Join {
                kind: join.kind,
                left,
                right,
                keys: keys.collect(),
                condition: join.condition.as_ref().map(|condition| moved(condition, at, count)),
                left_first: join.left_first,
            };
            Some((Relation::Join(Box::new(joined)), at))
        }
        _ => None,
    }
}

/// An expression over rows that have `count` more columns at `at`.
fn moved(expr: &Expr, at: usize, count: usize) -> Expr {
    placed(expr, &|column| Some(if column < at { column } else { column + count }))
}

/// The table of the elements of an array in the documents of `table`, and the place of their first field.
fn of_elements(table: &Table, array: usize, (fields, keeps): (&Vec<(String, Type)>, bool)) -> Option<(Table, usize)> {
    let column = table.columns.get(array)?;
    let is_array = match &column.ty {
        Type::Jsonb => true,
        Type::Array(element) => **element == Type::Jsonb,
        _ => false,
    };
    let is_read_by_documents = matches!(table.kind, Kind::Collection(_)) && table.elements.is_none();
    if !is_array || !is_read_by_documents {
        return None;
    }
    let first = table.columns.len();
    let mut out = table.clone();
    out.columns.extend(fields.iter().map(|(name, ty)| Column {
        path: format!("{OF_ELEMENT}{name}"),
        ..Column::new(name, ty.clone())
    }));
    out.elements = Some(Elements { array, first, keeps });
    Some((out, first))
}
