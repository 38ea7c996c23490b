//! Rows by the values of an index, without asking the planner: what small statements and subqueries do thousands of times.

use super::{find, indexed, inverted};
use crate::catalog::Table;
use crate::expr::{Comparison, Expr, Node};
use crate::functions::documents::IN_ORDER;
use crate::plan::pushdown::is_containment;
use crate::types::Type;
use nestor_exec::BoxOperator;
use nestor_exec::catalog::indexes;
use nestor_exec::estimate::least_entries;
use nestor_model::{BsonType, Result, Str, Value};
use nestor_planner::PlanNode;
use nestor_planner::access::{IndexBounds, may_serve};
use nestor_planner::catalog::{IndexInfo, PartKind};
use nestor_planner::interval::{Interval, IntervalList, bracket_high, bracket_low};
use nestor_planner::plan::{IndexScan, ScanPurpose};
use nestor_planner::relation::{Env, Scalar};
use nestor_query::Scope;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Collection, View};
use std::sync::Arc;

/// A column and the value that it is compared with.
type Known<'a> = (&'a Expr, &'a Expr);

/// How a column is compared with a value.
type Bound<'a> = (Comparison, &'a Expr, &'a Expr);

/// A plan of the find layer for a scan.
pub struct Probe {
    /// The plan.
    pub plan: PlanNode,
    /// It reads a range of values, which may be long.
    pub is_range: bool,
    /// It finds no row of which a condition does not hold.
    pub exact: bool,
}

/// The plan that finds the documents by an index whose first parts conditions compare with values: each with one, and the part behind these maybe with
/// the ends of a range. `None` when there is no such index, or when it is not plain which one serves best. Where the index has all of
/// `fields`, documents are not read.
///
/// Errors: those of the values.
pub fn probe(
    conditions: &[Expr],
    table: &Table,
    collection: &Arc<Collection>,
    env: &Env<'_>,
    fields: Option<&[Str]>,
) -> Result<Option<Probe>> {
    let mut best: Option<(&Arc<IndexInfo>, Vec<Known<'_>>, Vec<Bound<'_>>)> = None;
    // Another index may have a range that is of no form which is seen here.
    let mut may_be_ranged = false;
    for index in indexes(collection)?.iter().filter(|index| is_plain(index)) {
        let known = known(index, conditions, table);
        // A range of the part behind may leave less.
        let next = index.parts.get(known.len()).map(|part| part.path.as_str());
        let ranges = next.map_or_else(Vec::new, |path| ranges(conditions, table, path));
        let compared = |path: &str| conditions.iter().filter(|c| is_compared(c, table, path)).count();
        if next.is_some_and(|path| compared(path) > ranges.len()) {
            if !known.is_empty() {
                return Ok(None);
            }
            may_be_ranged = true;
            continue;
        }
        // Elements of an array may each be within one end.
        if known.is_empty() && ranges.is_empty() || index.is_multikey() && ranges.len() > 1 {
            continue;
        }
        let told = |known: &[Known<'_>], ranges: &[Bound<'_>]| 2 * known.len() + usize::from(!ranges.is_empty());
        match &best {
            Some((_, others, ends)) if told(others, ends) == told(&known, &ranges) => return Ok(None),
            Some((_, others, ends)) if told(others, ends) > told(&known, &ranges) => {}
            _ => best = Some((index, known, ranges)),
        }
    }
    // Values of two columns are taken for fewer rows than a range of one.
    let enough = if may_be_ranged { 2 } else { 0 };
    let Some((index, known, ranges)) = best.filter(|(_, known, _)| known.len() >= enough) else {
        return Ok(None);
    };
    let Some((bounds, exact)) = bounded(index, (&known, &ranges), table, env)? else {
        return Ok(None);
    };
    let exact = exact && known.len() + ranges.len() == conditions.len() && !index.is_multikey();
    let plan = entries(index, bounds, is_covered(index, fields), true);
    Ok(Some(Probe {
        plan,
        is_range: !ranges.is_empty(),
        exact,
    }))
}

/// The plan that reads an index whose order is the one that is asked for, of a path for each column and whether it ascends, where conditions say nothing but
/// which part of that index. `None` when there is no such index.
///
/// Errors: those of the values.
pub fn in_order(
    by: &[(String, bool)],
    conditions: &[Expr],
    (table, collection): (&Table, &Collection),
    env: &Env<'_>,
    fields: Option<&[Str]>,
) -> Result<Option<PlanNode>> {
    for index in indexes(collection)?.iter() {
        if !is_plain(index) || index.is_multikey() {
            continue;
        }
        let known = known(index, conditions, table);
        let Some(forward) = direction(index, known.len(), by) else {
            continue;
        };
        let next = index.parts.get(known.len()).map(|part| part.path.as_str());
        let ranges = next.map_or_else(Vec::new, |path| ranges(conditions, table, path));
        if known.len() + ranges.len() != conditions.len() {
            continue;
        }
        if let Some((bounds, true)) = bounded(index, (&known, &ranges), table, env)? {
            return Ok(Some(entries(index, bounds, is_covered(index, fields), forward)));
        }
    }
    Ok(None)
}

/// Whether an index of which the first parts have one value each is read forward to have an order; `None` when it has another one.
fn direction(index: &IndexInfo, known: usize, by: &[(String, bool)]) -> Option<bool> {
    let (fixed, rest) = index.parts.split_at(known);
    let mut rest = rest.iter();
    let mut forward = None;
    for (path, ascending) in by {
        if fixed.iter().any(|part| part.path.as_str() == path) {
            continue;
        }
        let part = rest.next().filter(|part| part.path.as_str() == path)?;
        let is_same = (part.kind == PartKind::Ascending) == *ascending;
        if forward.is_some_and(|forward| forward != is_same) {
            return None;
        }
        forward = Some(is_same);
    }
    Some(forward.unwrap_or(true))
}

/// Whether the entries of an index have all of some fields.
fn is_covered(index: &IndexInfo, fields: Option<&[Str]>) -> bool {
    let has = |field: &Str| index.parts.iter().any(|part| part.path.as_str() == field.as_str());
    fields.is_some_and(|fields| !index.is_multikey() && fields.iter().all(has))
}

/// The part of an index that values of its first parts, and ends of the next one, leave; whether the conditions hold of all that is there. `None` when a value may
/// be there in another form.
///
/// Errors: those of the values.
fn bounded(
    index: &IndexInfo,
    (known, ranges): (&[Known<'_>], &[Bound<'_>]),
    table: &Table,
    env: &Env<'_>,
) -> Result<Option<(IndexBounds, bool)>> {
    let mut exact = true;
    let mut bounds = IndexBounds::all(index);
    for (part, (column, value)) in bounds.parts.iter_mut().zip(known) {
        let value = value.value(&[], env)?;
        exact &= find::is_exact(column, &column.ty(), table);
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
    if let Some(part) = bounds.parts.get_mut(known.len()) {
        for (op, column, value) in ranges {
            exact &= find::is_exact(column, &column.ty(), table);
            let value = value.value(&[], env)?;
            let within = match value {
                Value::Null => IntervalList::none(),
                value => match find::stored(&column.ty(), value) {
                    Some(value) => IntervalList::of(interval(*op, value)),
                    None => return Ok(None),
                },
            };
            *part = part.intersect(&within);
        }
    }
    Ok(Some((bounds, exact)))
}

/// The values that compare so with one.
fn interval(op: Comparison, value: Value) -> Interval {
    let kind = value.bson_type();
    match op {
        Comparison::Less | Comparison::LessEqual => {
            let (low, inclusive) = bracket_low(kind);
            Interval::new(low, inclusive, value, op == Comparison::LessEqual)
        }
        _ => {
            let (high, inclusive) = bracket_high(kind);
            Interval::new(value, op == Comparison::GreaterEqual, high, inclusive)
        }
    }
}

/// The ends of ranges that conditions say the column at `path` is in, if its values have the order of the index.
fn ranges<'c>(conditions: &'c [Expr], table: &Table, path: &str) -> Vec<Bound<'c>> {
    let is_ordered = |expr: &Expr| {
        matches!(
            expr.ty(),
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Text | Type::Varchar
        )
    };
    let all = conditions.iter().filter_map(|condition| match condition.node() {
        Node::Compare(Comparison::Equal | Comparison::NotEqual, ..) => None,
        Node::Compare(op, a, b) if is_at(a, table, path) && b.is_constant() && is_ordered(a) => Some((*op, a, b)),
        Node::Compare(op, a, b) if is_at(b, table, path) && a.is_constant() && is_ordered(b) => {
            Some((op.mirrored(), b, a))
        }
        _ => None,
    });
    all.collect()
}

/// Reads index entries, forward or backward, and their documents unless the entries have all that is wanted.
pub(super) fn entries(index: &Arc<IndexInfo>, bounds: IndexBounds, is_covered: bool, forward: bool) -> PlanNode {
    if bounds.parts.iter().any(IntervalList::is_empty) {
        return PlanNode::Eof;
    }
    let input = Box::new(PlanNode::IndexScan(IndexScan {
        index: index.clone(),
        bounds,
        forward,
        key_filter: None,
        key_test: None,
        purpose: ScanPurpose::Entries,
    }));
    match is_covered {
        true => PlanNode::Covered {
            input,
            projection: None,
        },
        false => PlanNode::Fetch { input, filter: None },
    }
}

/// What reads the documents of index entries.
pub fn scanned(index: &Arc<IndexInfo>, bounds: IndexBounds, collection: &Arc<Collection>) -> Result<BoxOperator> {
    nestor_exec::build(&entries(index, bounds, false, true), collection)
}

/// What finds the documents by an index on expressions: the one of which conditions give the most parts, from the first on. A range ends them. A partial
/// index serves where its condition is one of those that are asked for.
///
/// Errors: those of the values.
pub fn computed(
    conditions: &[Expr],
    table: &Table,
    collection: &Arc<Collection>,
    (env, view): (&Env<'_>, &dyn View),
) -> Result<Option<BoxOperator>> {
    let all = indexes(collection)?;
    let mut of_expressions = all
        .iter()
        .filter_map(|index| Some((index, indexed::of(index)?)))
        .peekable();
    if of_expressions.peek().is_none() {
        return Ok(None);
    }
    let asked = Asked::of(conditions, table, env)?;
    let mut best: Option<(usize, &Arc<IndexInfo>, IndexBounds)> = None;
    let mut within: Option<(Option<u64>, &Arc<IndexInfo>, IndexBounds)> = None;
    let serves =
        |index: &IndexInfo, own: &indexed::Indexed| may_serve(index, &asked.filter) && own.serves(&asked.conditions);
    for (index, own) in of_expressions.filter(|(index, own)| serves(index, own)) {
        if own.is_inverted() {
            let found = inverted::bounds((index, own), conditions, table, (env, view), collection)?;
            if let Some((bounds, count)) = found
                && within.as_ref().is_none_or(|(least, ..)| count < *least)
            {
                within = Some((count, index, bounds));
            }
            continue;
        }
        let mut bounds = IndexBounds::all(index);
        let mut known = 0;
        for (at, part) in bounds.parts.iter_mut().enumerate() {
            let Some((intervals, is_equal)) = asked.of_part(own, at, &own.parts[at]) else {
                break;
            };
            *part = intervals;
            known += if is_equal { 2 } else { 1 };
            if !is_equal {
                break;
            }
        }
        if known > best.as_ref().map_or(0, |(most, ..)| *most) {
            best = Some((known, index, bounds));
        }
    }
    if let Some((count, index, bounds)) = within {
        // Another index may find fewer rows by what their columns are equal to.
        let other = match count {
            Some(count) => probe(conditions, table, collection, env, None)?.map(|own| (count, own)),
            None => None,
        };
        if let Some((count, other)) = other
            && !other.is_range
            && least_entries(&[other.plan], collection, view)?.is_some_and(|own| own.count < count)
        {
            return Ok(None);
        }
        return scanned(index, bounds, collection).map(Some);
    }
    match best {
        Some((_, index, bounds)) => scanned(index, bounds, collection).map(Some),
        None => Ok(None),
    }
}

/// What finds the documents by an index on the elements of an array: those that have one of the values that a condition asks for, and those that
/// have arrays within the array, whose elements no index has.
///
/// Errors: those of the values.
pub fn within(
    conditions: &[Expr],
    table: &Table,
    collection: &Arc<Collection>,
    env: &Env<'_>,
) -> Result<Option<BoxOperator>> {
    for condition in conditions {
        let (column, wanted) = match condition.node() {
            Node::Quantified {
                op: Comparison::Equal,
                arg,
                array,
                all: false,
            } if arg.is_constant() => (array, vec![arg.value(&[], env)?]),
            Node::Call { function, args, .. } => match args.as_slice() {
                [a, b] if is_containment(function.name, a) && b.is_constant() => match b.value(&[], env)? {
                    Value::Array(items) => {
                        let mut values = items.iter().map(|item| item.to_value());
                        match function.name {
                            // All of them have to be there, so the first one has.
                            "@>" => (a, values.next().into_iter().collect()),
                            _ => (a, values.collect::<Vec<Value>>()),
                        }
                    }
                    _ => continue,
                },
                _ => continue,
            },
            _ => continue,
        };
        let (Node::Column { index: at, .. }, Type::Array(element)) = (column.node(), column.ty()) else {
            continue;
        };
        let path = table
            .columns
            .get(*at)
            .map(|column| column.path.as_str())
            .unwrap_or_default();
        let stored = wanted.into_iter().map(|value| match value {
            Value::Array(_) | Value::Null => None,
            value => find::stored(&element, value),
        });
        let Some(stored) = stored
            .collect::<Option<Vec<Value>>>()
            .filter(|stored| !stored.is_empty())
        else {
            continue;
        };
        let all = indexes(collection)?;
        let mut own = all.iter().filter(|index| is_plain(index));
        let Some(index) = own.find(|index| index.parts.first().is_some_and(|part| part.path.as_str() == path)) else {
            continue;
        };
        let ((low, from), (high, to)) = (bracket_low(BsonType::Array), bracket_high(BsonType::Array));
        let mut intervals = vec![Interval::new(low, from, high, to)];
        intervals.extend(stored.into_iter().map(Interval::point));
        let mut bounds = IndexBounds::all(index);
        if let Some(part) = bounds.parts.first_mut() {
            *part = IntervalList::union_of(intervals);
        }
        return scanned(index, bounds, collection).map(Some);
    }
    Ok(None)
}

/// What conditions say of expressions.
struct Asked {
    /// The expression as indexes have it, how it compares, and the values: several that it may be equal to.
    compared: Vec<(String, Comparison, Vec<Value>)>,
    /// The conditions as indexes have them.
    conditions: Vec<String>,
    /// The conditions as a filter.
    filter: MatchExpr,
}

impl Asked {
    fn of(conditions: &[Expr], table: &Table, env: &Env<'_>) -> Result<Self> {
        let mut compared = Vec::new();
        for condition in conditions {
            let said = find::said(condition, &|_| true, env)?;
            if let Some(said) = said.filter(|said| said.op != Comparison::NotEqual) {
                // Fields of `jsonb` are put in order before it is compared, which an index does with what it has.
                let expr = match said.expr.node() {
                    Node::Call { function, args, .. } if function.name == IN_ORDER => &args[0],
                    _ => said.expr,
                };
                compared.push((indexed::normal(expr, &table.columns), said.op, said.values));
            }
        }
        let filter = find::filter(conditions, table, env)?.filter;
        let filter = MatchExpr::parse(filter.as_ref(), &mut Scope::new())?.normalize();
        let conditions = conditions.iter().map(|own| indexed::normal(own, &table.columns));
        Ok(Self {
            compared,
            conditions: conditions.collect(),
            filter,
        })
    }

    /// The values of a part of an index that may be asked for, and whether they are single ones.
    fn of_part(&self, index: &indexed::Indexed, at: usize, part: &Expr) -> Option<(IntervalList, bool)> {
        let ty = &part.ty();
        let stored = |value: &Value| match value {
            Value::Null => None,
            value => Some(indexed::entry(part, value.clone())),
        };
        let mut range: Option<IntervalList> = None;
        for (expr, op, values) in &self.compared {
            if !index.is_part(at, expr) {
                continue;
            }
            if *op == Comparison::Equal {
                let points = values.iter().filter_map(stored).map(Interval::point);
                return Some((IntervalList::union_of(points.collect()), true));
            }
            // What is compared with null is no row.
            let Some(value) = values.first().and_then(stored) else {
                return Some((IntervalList::none(), true));
            };
            if indexed::by_hash(ty) {
                continue;
            }
            // Not a number is larger than all others here, and smaller in indexes.
            if matches!(ty, Type::Float4 | Type::Float8 | Type::Numeric) {
                continue;
            }
            let side = match op {
                Comparison::Less | Comparison::LessEqual => Interval::new(Value::MinKey, true, value, true),
                _ => Interval::new(value, true, Value::MaxKey, true),
            };
            let side = IntervalList::of(side);
            range = Some(range.map_or_else(|| side.clone(), |range| range.intersect(&side)));
        }
        range.map(|range| (range, false))
    }
}

/// Whether an index has all documents, by the values in their order.
pub(super) fn is_plain(index: &IndexInfo) -> bool {
    let has_all = !index.hidden && index.partial.is_none() && index.collation.is_none();
    let in_order = index.parts.iter().all(|part| part.kind != PartKind::Derived);
    has_all && in_order && index.kind.covers() && !index.kind.needs_condition()
}

/// The first parts of an index that conditions say the value of.
fn known<'c>(index: &IndexInfo, conditions: &'c [Expr], table: &Table) -> Vec<Known<'c>> {
    let parts = index.parts.iter();
    parts
        .map_while(|part| equal(conditions, table, part.path.as_str()))
        .collect()
}

/// The column at `path` and the value that a condition says it has.
fn equal<'c>(conditions: &'c [Expr], table: &Table, path: &str) -> Option<(&'c Expr, &'c Expr)> {
    conditions.iter().find_map(|condition| match condition.node() {
        Node::Compare(Comparison::Equal, a, b) if is_at(a, table, path) && b.is_constant() => Some((a, b)),
        Node::Compare(Comparison::Equal, a, b) if is_at(b, table, path) && a.is_constant() => Some((b, a)),
        _ => None,
    })
}

fn is_compared(condition: &Expr, table: &Table, path: &str) -> bool {
    let mut found = false;
    condition.for_each_column(&mut |at| found |= table.columns.get(at).is_some_and(|column| column.path == path));
    found
}

fn is_at(expr: &Expr, table: &Table, path: &str) -> bool {
    match expr.node() {
        Node::Column { index, .. } => table.columns.get(*index).is_some_and(|column| column.path == path),
        _ => false,
    }
}
