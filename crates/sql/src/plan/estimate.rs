//! How many rows plans give, roughly: enough to tell a table of millions from one of tens.

use super::Plan;
use super::switches::Switches;
use crate::expr::{Comparison, Expr, Node};
use nestor_model::Value;
use nestor_planner::relation::{ApplyKind, JoinKind, Relation, Scan};

/// What is known of the tables that scans name by number.
pub trait Statistics {
    /// What the session's settings say of plans.
    fn switches(&self) -> Switches {
        Switches::default()
    }
    /// Number of rows.
    fn rows(&self, table: usize) -> f64;
    /// What it costs to read all rows, in rows that are documents.
    fn reads(&self, table: usize) -> f64 {
        self.rows(table)
    }
    /// Rows of a table are about to be found by an index, at this cost: where columns, of which there are none yet, would cost less, they are made for the
    /// next time.
    fn note_cost(&self, _table: usize, _cost: f64) {}
    /// Whether no two rows have the same value in a column, because an index sees to it.
    fn is_unique(&self, table: usize, column: usize) -> bool;
    /// Whether an index finds rows by the values of a column.
    fn is_indexed(&self, table: usize, column: usize) -> bool;
    /// What a row costs that an index finds by the values of a column, in rows that are read in order; `None` where no index does.
    fn found_cost(&self, table: usize, column: usize) -> Option<f64> {
        self.is_indexed(table, column).then_some(FOUND_COST)
    }
    /// Whether it can be told how often values of a column are: by an index, or by what is known of its values.
    fn is_told(&self, table: usize, column: usize) -> bool {
        self.is_indexed(table, column)
    }
    /// About how many rows of a table these conditions hold of, which compare a column that is told with values; `None` when that is not
    /// known.
    fn found(&self, _table: usize, _conditions: &[Expr]) -> Option<f64> {
        None
    }
    /// About how many different values a column has that is told; `None` when that is not known.
    fn distinct(&self, _table: usize, _column: usize) -> Option<f64> {
        None
    }
    /// Whether an index of a table is on an expression.
    fn computes(&self, _table: usize) -> bool {
        false
    }
    /// How many columns `table` has beside the document, if the rows of `elements` are the elements of an array in its rows, with these columns.
    fn elements_of(&self, _elements: usize, _table: usize) -> Option<usize> {
        None
    }
    /// Whether a scan is one of a partition that has none of the rows which are wanted, as far as constants tell.
    fn excludes(&self, _scan: &Scan<Expr>) -> bool {
        false
    }
    /// Whether a column is null in no row.
    fn is_never_null(&self, _table: usize, _column: usize) -> bool {
        false
    }
    /// How the order that a scan is asked for is that of an index.
    fn gives_order(&self, _scan: &Scan<Expr>) -> Given {
        Given::No
    }
}

/// Whether an index has rows in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// None has.
    No,
    /// One has, and all of it has to be read.
    Whole,
    /// One has, and conditions leave a part of it.
    Part,
}

/// What it costs to look up a key by an index beside others, in rows that are read in order and kept in a table.
pub const LOOKUP_COST: f64 = 5.0;
/// What a row costs that is found so, besides.
pub const FOUND_COST: f64 = 4.0;
/// What a subquery costs that runs for a row and reads by an index.
pub const SUBQUERY_COST: f64 = 20.0;
/// What a row costs at most that conditions leave, if an index may have them.
const LEFT_COST: f64 = 20.0;
/// Rows of tables of which nothing is known.
const ROWS_UNKNOWN: f64 = 1000.0;

/// The scan that a plan is, with conditions or without, and these conditions.
pub fn scan_of(plan: &Plan) -> Option<&nestor_planner::relation::Scan<Expr>> {
    match plan {
        Relation::Scan(scan) => Some(scan),
        Relation::Filter { input, .. } => scan_of(input),
        _ => None,
    }
}

/// The number of the table and the column of it that an expression over the rows of `plan` is.
pub fn source(plan: &Plan, expr: &Expr) -> Option<(usize, usize)> {
    let Node::Column { index, .. } = expr.node() else {
        return None;
    };
    let index = *index;
    match plan {
        Relation::Scan(scan) => Some((scan.table, index)),
        Relation::Filter { input, .. } | Relation::Sort { input, .. } => source(input, expr),
        Relation::Project { input, columns } => source(input, columns.get(index)?),
        Relation::Join(join) => {
            let width = join.left.width();
            match index.checked_sub(width) {
                None => source(&join.left, expr),
                Some(_) => source(&join.right, &expr.shifted(-(width as isize))),
            }
        }
        _ => None,
    }
}

/// The part of the rows of which a condition holds.
fn part(plan: &Plan, condition: &Expr, statistics: &dyn Statistics) -> f64 {
    let equal = |column: &Expr| match source(plan, column) {
        Some((table, column)) if statistics.is_unique(table, column) => 1.0 / statistics.rows(table).max(1.0),
        Some((table, column)) => match statistics.distinct(table, column) {
            Some(distinct) => 1.0 / distinct.max(1.0),
            None if statistics.is_indexed(table, column) => {
                (10.0 / statistics.rows(table).max(1.0)).clamp(0.0005, 0.05)
            }
            None => 0.05,
        },
        None => 0.05,
    };
    let part = match condition.node() {
        Node::Compare(Comparison::Equal, a, b) if b.is_constant() => equal(a),
        Node::Compare(Comparison::Equal, a, b) if a.is_constant() => equal(b),
        Node::Compare(Comparison::Equal, ..) => 0.1,
        Node::Compare(Comparison::NotEqual, ..) => 0.9,
        Node::Compare(..) => 0.35,
        Node::InList(a, items, false) => items.len() as f64 * equal(a),
        // As many as PostgreSQL takes an array for whose length is not known.
        Node::Quantified {
            op: Comparison::Equal,
            arg,
            array,
            all: false,
        } if array.is_constant() => 10.0 * equal(arg),
        Node::Match(_) => 0.1,
        Node::And(all) => all.iter().map(|c| part(plan, c, statistics)).product(),
        Node::Or(any) => any.iter().map(|c| part(plan, c, statistics)).sum(),
        Node::Not(arg) => 1.0 - part(plan, arg, statistics),
        Node::IsNull(_, true) => 0.95,
        Node::IsNull(_, false) => 0.05,
        Node::Const(Value::Bool(true), _) => 1.0,
        _ => 0.5,
    };
    part.clamp(0.0, 1.0)
}

/// The table and the column that a condition compares with a value that is known, if it can be told how many rows that leaves.
fn told(plan: &Plan, condition: &Expr, statistics: &dyn Statistics) -> Option<(usize, usize)> {
    let Node::Compare(op, a, b) = condition.node() else {
        return None;
    };
    let column = match (a.is_known(), b.is_known()) {
        (false, true) => a,
        (true, false) => b,
        _ => return None,
    };
    let (table, column) = source(plan, column.as_moment())?;
    (*op != Comparison::NotEqual && statistics.is_told(table, column)).then_some((table, column))
}

/// The part of the rows of `plan` of which all conditions hold. Those of one column that can be counted together are counted.
fn parts(plan: &Plan, conditions: &[Expr], statistics: &dyn Statistics) -> f64 {
    let mut all = 1.0;
    let mut counted: Vec<((usize, usize), Vec<Expr>)> = Vec::new();
    for condition in conditions {
        match told(plan, condition, statistics).filter(|_| scan_of(plan).is_some()) {
            None => all *= part(plan, condition, statistics),
            Some(column) => match counted.iter_mut().find(|(own, _)| *own == column) {
                Some((_, list)) => list.push(condition.clone()),
                None => counted.push((column, vec![condition.clone()])),
            },
        }
    }
    for ((table, _), conditions) in counted {
        all *= match statistics.found(table, &conditions) {
            Some(found) => (found / statistics.rows(table).max(1.0)).clamp(0.0, 1.0),
            None => conditions.iter().map(|c| part(plan, c, statistics)).product(),
        };
    }
    all
}

/// What it costs to read the rows of a scan, of which `left` are left by its conditions: an index may have these only.
pub fn reads(scan: &Scan<Expr>, left: f64, statistics: &dyn Statistics) -> f64 {
    let is_indexed = |condition: &Expr| {
        let mut any = false;
        condition.for_each_column(&mut |column| any |= statistics.is_indexed(scan.table, column));
        any
    };
    let all = statistics.reads(scan.table);
    match scan.conditions.iter().any(is_indexed) {
        true => all.min(left * LEFT_COST),
        false => all,
    }
}

/// Different values of an expression over the rows of `plan`, were there no conditions.
pub fn distinct(plan: &Plan, expr: &Expr, statistics: &dyn Statistics) -> f64 {
    match source(plan, expr) {
        Some((table, column)) if statistics.is_unique(table, column) => statistics.rows(table),
        Some((table, column)) => {
            let known = statistics.distinct(table, column);
            known.unwrap_or_else(|| statistics.rows(table) / 10.0)
        }
        None => 0.0,
    }
}

/// Whether an expression over the rows of `plan` is a column in which no two rows of its table are the same.
pub fn is_unique(plan: &Plan, expr: &Expr, statistics: &dyn Statistics) -> bool {
    source(plan, expr).is_some_and(|(table, column)| statistics.is_unique(table, column))
}

/// Rows of a join on `keys`, which are expressions over the left and over the right rows.
pub fn joined(
    (left, left_rows): (&Plan, f64),
    (right, right_rows): (&Plan, f64),
    keys: &[(Expr, Expr)],
    statistics: &dyn Statistics,
) -> f64 {
    let values = keys.iter().map(|(a, b)| {
        let (of_a, of_b) = (distinct(left, a, statistics), distinct(right, b, statistics));
        // What refers to rows of a table has no more values than that has rows.
        match (is_unique(left, a, statistics), is_unique(right, b, statistics)) {
            (true, false) => of_a,
            (false, true) => of_b,
            _ => of_a.max(of_b),
        }
    });
    let mut values: Vec<f64> = values.collect();
    values.sort_by(|a, b| b.total_cmp(a));
    let mut rows = left_rows * right_rows;
    for (i, values) in values.into_iter().enumerate() {
        // Of keys of several parts, each one behind the most telling is less telling.
        let values = if i == 0 { values } else { values.min(10.0) };
        rows /= values.max(1.0);
    }
    rows.max(1.0)
}

/// The part of the rows of `left` that have a pair among so many rows.
fn paired(left: &Plan, right_rows: f64, keys: &[(Expr, Expr)], statistics: &dyn Statistics) -> f64 {
    let values = keys.iter().map(|(key, _)| distinct(left, key, statistics));
    match values.fold(0.0, f64::max) {
        0.0 => 0.5,
        values => (right_rows / values).min(1.0),
    }
}

/// What is left of some rows: of a few, a condition of which nothing is known leaves one rather than a twentieth of one.
fn at_least_one(all: f64, left: f64) -> f64 {
    left.max(all.min(1.0))
}

/// How many rows a plan gives.
pub fn rows(plan: &Plan, statistics: &dyn Statistics) -> f64 {
    match plan {
        Relation::Scan(scan) => {
            let all = statistics.rows(scan.table);
            at_least_one(all, all * parts(plan, &scan.conditions, statistics))
        }
        Relation::Filter { input, condition } => {
            // The conditions of a scan stand in the filter above it once more.
            let below = match &**input {
                Relation::Scan(scan) => statistics.rows(scan.table),
                input => rows(input, statistics),
            };
            at_least_one(below, below * parts(input, &condition.conjuncts(), statistics))
        }
        Relation::Values { rows, .. } => rows.len() as f64,
        Relation::Project { input, .. } | Relation::Window { input, .. } => rows(input, statistics),
        Relation::Sort { input, limit, .. } => {
            let wanted = limit.as_ref().and_then(|(_, limit)| number(limit));
            rows(input, statistics).min(wanted.unwrap_or(f64::MAX))
        }
        Relation::Limit { input, limit, .. } => {
            let wanted = limit.as_ref().and_then(number);
            rows(input, statistics).min(wanted.unwrap_or(f64::MAX))
        }
        Relation::Join(join) => {
            let (left, right) = (rows(&join.left, statistics), rows(&join.right, statistics));
            let width = join.left.width() as isize;
            let keys = join.keys.iter().map(|(a, b)| (a.clone(), b.shifted(-width)));
            let keys: Vec<(Expr, Expr)> = keys.collect();
            match join.kind {
                JoinKind::Semi => left * paired(&join.left, right, &keys, statistics),
                JoinKind::Anti => left * 0.5,
                kind => {
                    let pairs = joined((&join.left, left), (&join.right, right), &keys, statistics);
                    match kind {
                        JoinKind::Left => pairs.max(left),
                        JoinKind::Right => pairs.max(right),
                        JoinKind::Full => pairs.max(left + right),
                        _ => pairs,
                    }
                }
            }
        }
        Relation::Count(_) => 1.0,
        Relation::Apply(apply) => {
            let outer = rows(&apply.input, statistics);
            match apply.kind {
                ApplyKind::Lateral { keeps } => {
                    let found = outer * rows(&apply.inner, statistics);
                    if keeps { found.max(outer) } else { found }
                }
                _ => outer,
            }
        }
        Relation::Aggregate { input, groups, .. } => match groups.len() {
            0 => 1.0,
            _ => (rows(input, statistics) * 0.3).max(1.0),
        },
        Relation::Distinct { input, .. } => (rows(input, statistics) * 0.5).max(1.0),
        Relation::Append { inputs } => inputs.iter().map(|input| rows(input, statistics)).sum(),
        Relation::Intersect(both) => rows(&both.left, statistics),
        Relation::Shared { plan, .. } => rows(plan, statistics),
        Relation::Function { .. } | Relation::Recursive(_) | Relation::Working { .. } => ROWS_UNKNOWN,
    }
}

fn number(limit: &Expr) -> Option<f64> {
    match limit.node() {
        Node::Const(Value::Int32(n), _) => Some(f64::from(*n)),
        Node::Const(Value::Int64(n), _) => Some(*n as f64),
        Node::Cast { arg, .. } => number(arg),
        _ => None,
    }
}
