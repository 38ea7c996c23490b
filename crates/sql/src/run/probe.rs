//! Rows by the values of an index, without asking the planner: what a lookup for each row of another table does thousands of times.

use super::find;
use crate::catalog::Table;
use crate::expr::{Comparison, Expr, Node};
use nestor_exec::BoxOperator;
use nestor_exec::catalog::indexes;
use nestor_model::{Result, Value};
use nestor_planner::PlanNode;
use nestor_planner::access::IndexBounds;
use nestor_planner::catalog::{IndexInfo, PartKind};
use nestor_planner::interval::IntervalList;
use nestor_planner::plan::{IndexScan, ScanPurpose};
use nestor_planner::relation::{Env, Scalar};
use nestor_storage::Collection;
use std::sync::Arc;

/// A column and the value that it is compared with.
type Known<'a> = (&'a Expr, &'a Expr);

/// What finds the documents by an index whose first parts conditions compare with values; `None` when there is none, or when it is not
/// plain which one serves best. It may find documents of which a condition does not hold.
///
/// Errors: those of the values.
pub fn probe(
    conditions: &[Expr],
    table: &Table,
    collection: &Arc<Collection>,
    env: &Env<'_>,
) -> Result<Option<BoxOperator>> {
    let mut best: Option<(&Arc<IndexInfo>, Vec<Known<'_>>)> = None;
    for index in indexes(collection)?.iter().filter(|index| is_plain(index)) {
        let known = index
            .parts
            .iter()
            .map_while(|part| equal(conditions, table, part.path.as_str()));
        let known: Vec<Known<'_>> = known.collect();
        if known.is_empty() {
            continue;
        }
        // A range of the part behind may leave less.
        let next = index.parts.get(known.len());
        if next.is_some_and(|part| is_compared(conditions, table, part.path.as_str())) {
            return Ok(None);
        }
        match &best {
            Some((_, others)) if others.len() == known.len() => return Ok(None),
            Some((_, others)) if others.len() > known.len() => {}
            _ => best = Some((index, known)),
        }
    }
    let Some((index, known)) = best else {
        return Ok(None);
    };
    let mut bounds = IndexBounds::all(index);
    for (part, (column, value)) in bounds.parts.iter_mut().zip(known) {
        let value = value.value(&[], env)?;
        if matches!(value, Value::Null) {
            // A value that is null is equal to nothing.
            *part = IntervalList::none();
            continue;
        }
        match find::stored(&column.ty(), value) {
            Some(value) => *part = IntervalList::point(value),
            None => return Ok(None),
        }
    }
    let plan = match bounds.parts.iter().any(IntervalList::is_empty) {
        true => PlanNode::Eof,
        false => PlanNode::Fetch {
            input: Box::new(PlanNode::IndexScan(IndexScan {
                index: index.clone(),
                bounds,
                forward: true,
                key_filter: None,
                key_test: None,
                purpose: ScanPurpose::Entries,
            })),
            filter: None,
        },
    };
    nestor_exec::build(&plan, collection).map(Some)
}

/// Whether an index has all documents, by the values in their order.
fn is_plain(index: &IndexInfo) -> bool {
    let has_all = !index.hidden && index.partial.is_none() && index.collation.is_none();
    let in_order = index.parts.iter().all(|part| part.kind != PartKind::Derived);
    has_all && in_order && index.kind.covers() && !index.kind.needs_condition()
}

/// The column at `path` and the value that a condition says it has.
fn equal<'c>(conditions: &'c [Expr], table: &Table, path: &str) -> Option<(&'c Expr, &'c Expr)> {
    conditions.iter().find_map(|condition| match condition.node() {
        Node::Compare(Comparison::Equal, a, b) if is_at(a, table, path) && b.is_constant() => Some((a, b)),
        Node::Compare(Comparison::Equal, a, b) if is_at(b, table, path) && a.is_constant() => Some((b, a)),
        _ => None,
    })
}

fn is_compared(conditions: &[Expr], table: &Table, path: &str) -> bool {
    conditions.iter().any(|condition| {
        let mut found = false;
        condition.for_each_column(&mut |at| found |= table.columns.get(at).is_some_and(|column| column.path == path));
        found
    })
}

fn is_at(expr: &Expr, table: &Table, path: &str) -> bool {
    match expr.node() {
        Node::Column { index, .. } => table.columns.get(*index).is_some_and(|column| column.path == path),
        _ => false,
    }
}
