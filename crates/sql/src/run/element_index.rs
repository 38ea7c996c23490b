//! Documents by indexes on fields of the elements of an array.
//!
//! Where the rows of a scan are the elements of `lines`, an index on `lines.part` has an entry for each of them. Fields of elements are read as JSON is:
//! the text `"5"` is 5 where an `int` is asked for. So a condition finds, of the values that have the BSON type of its column, those that compare so,
//! and all values of other types. Documents that are found may have other elements as well: whoever asks looks at each row once more.

use super::{days, find, probe};
use crate::catalog::{Elements, Table};
use crate::expr::{Comparison, Expr, Node};
use crate::types::{Type, stored};
use nestor_exec::catalog::indexes;
use nestor_exec::estimate::least_entries;
use nestor_model::{BsonType, Document, Result, Value};
use nestor_planner::PlanNode;
use nestor_planner::access::IndexBounds;
use nestor_planner::catalog::IndexInfo;
use nestor_planner::interval::{Interval, IntervalList, bracket_high, bracket_low};
use nestor_planner::relation::Env;
use nestor_query::Scope;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Collection, Index, View, keys};
use std::sync::Arc;

/// How far the clocks of a zone are from those of Greenwich at most, and more.
const ZONES_MS: i64 = 26 * 3_600_000;

/// Different values of an index that are counted to know how often each is there.
const VALUES_COUNTED: u64 = 8;

/// Follows a value in every key that goes on behind it.
const BEHIND: u8 = 0xFF;

/// Entries of an index whose documents have all rows of which some conditions hold.
pub struct Entries {
    index: Arc<IndexInfo>,
    bounds: IndexBounds,
    /// About how many.
    pub count: u64,
}

impl Entries {
    /// Reads the documents of these entries that match a filter, each once.
    ///
    /// Errors: those of the filter.
    pub fn plan(&self, filter: &Document) -> Result<PlanNode> {
        let mut plan = probe::entries(&self.index, self.bounds.clone(), false, true);
        if let PlanNode::Fetch { filter: own, .. } = &mut plan {
            let parsed = MatchExpr::parse(filter.as_ref(), &mut Scope::new())?.normalize();
            *own = (!filter.is_empty()).then(|| Arc::new(parsed));
        }
        Ok(plan)
    }
}

/// The path at which documents have a column of a table of elements, if it is a field of these.
pub fn path(table: &Table, column: usize) -> Option<String> {
    let Elements { array, first, .. } = table.elements?;
    let (array, field) = (&table.columns.get(array)?.path, &table.columns.get(column)?.name);
    (column >= first && find::usable(array) && find::usable(field)).then(|| format!("{array}.{field}"))
}

/// The column that is the field of elements at a path.
pub fn column(table: &Table, path: &str) -> Option<usize> {
    let Elements { array, first, .. } = table.elements?;
    let array = &table.columns.get(array)?.path;
    let field = path.strip_prefix(array.as_str())?.strip_prefix('.')?;
    let is_it = |column: &usize| table.columns[*column].name == field;
    (first..table.columns.len())
        .find(is_it)
        .filter(|_| find::usable(array) && find::usable(field))
}

/// The entries to read for conditions: those of the index that has the fewest; `None` when no index is on what they say, and of tables that are
/// not of elements.
///
/// Errors: those of the values that columns are compared with, and of storage.
pub fn fewest(
    conditions: &[Expr],
    table: &Table,
    collection: &Collection,
    env: &Env<'_>,
    view: &dyn View,
) -> Result<Option<Entries>> {
    let mut best: Option<Entries> = None;
    if table.elements.is_none() {
        return Ok(None);
    }
    for index in indexes(collection)?.iter().filter(|index| probe::is_plain(index)) {
        let Some((first, more)) = said(conditions, table, index, env)? else {
            continue;
        };
        let counted = |first: &Interval, second: Option<&Interval>| -> Result<u64> {
            let second = second.map(|interval| IntervalList::of(interval.clone()));
            let one = bounds(index, &IntervalList::of(first.clone()), second.as_ref().into_iter());
            let entries = least_entries(&[probe::entries(index, one, false, true)], collection, view)?;
            Ok(entries.map_or(u64::MAX, |entries| entries.count))
        };
        let mut count: u64 = 0;
        for interval in first.intervals() {
            // Of a single value the next part tells how many entries are read.
            let second = more.first().filter(|_| interval.is_point());
            for part in second.map_or(&[][..], |second| second.intervals()) {
                count = count.saturating_add(counted(interval, Some(part))?);
            }
            if second.is_none() {
                count = count.saturating_add(counted(interval, None)?);
            }
        }
        if best.as_ref().is_none_or(|best| count < best.count) {
            best = Some(Entries {
                index: index.clone(),
                bounds: bounds(index, &first, more.iter()),
                count,
            });
        }
    }
    Ok(best)
}

/// What conditions say of the fields of an element that an index begins with: of the first, and of those behind it up to one of which they say nothing.
/// The fields of one element are in one entry. `None` where they say nothing of the first.
fn said(
    conditions: &[Expr],
    table: &Table,
    index: &IndexInfo,
    env: &Env<'_>,
) -> Result<Option<(IntervalList, Vec<IntervalList>)>> {
    let mut all = Vec::new();
    for part in &index.parts {
        let Some(column) = column(table, part.path.as_str()) else {
            break;
        };
        match values(conditions, column, &table.columns[column].ty, env)? {
            Some(said) => all.push(said),
            None => break,
        }
    }
    let mut all = all.into_iter();
    Ok(all.next().map(|first| (first, all.collect())))
}

fn bounds<'i>(
    index: &Arc<IndexInfo>,
    first: &'i IntervalList,
    more: impl Iterator<Item = &'i IntervalList>,
) -> IndexBounds {
    let mut bounds = IndexBounds::all(index);
    let said = [first].into_iter().chain(more);
    bounds
        .parts
        .iter_mut()
        .zip(said)
        .for_each(|(part, said)| *part = said.clone());
    bounds
}

/// What fields hold of which all conditions on a column hold; `None` when no condition says anything of it.
pub fn values(conditions: &[Expr], column: usize, ty: &Type, env: &Env<'_>) -> Result<Option<IntervalList>> {
    let Some(kind) = kind(ty) else { return Ok(None) };
    let is_it = |expr: &Expr| {
        let expr = if *ty == Type::Date { expr.as_moment() } else { expr };
        matches!(expr.node(), Node::Column { index, .. } if *index == column)
    };
    let mut all: Option<IntervalList> = None;
    for condition in conditions {
        let Some(said) = find::said(condition, &is_it, env)? else {
            continue;
        };
        if let Some(own) = any(said.op, ty, &said.of.ty(), said.values) {
            all = Some(all.map_or_else(|| own.clone(), |all| all.intersect(&own)));
        }
    }
    Ok(all.map(|all| all.union(&others(kind))))
}

/// The BSON type that stands for those of a type's values.
fn kind(ty: &Type) -> Option<BsonType> {
    match ty {
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Float4 | Type::Float8 | Type::Numeric => Some(BsonType::Double),
        Type::Text | Type::Varchar => Some(BsonType::String),
        Type::Bool => Some(BsonType::Bool),
        Type::ObjectId => Some(BsonType::ObjectId),
        Type::Date | Type::Timestamp | Type::Timestamptz => Some(BsonType::Date),
        _ => None,
    }
}

/// Values of other BSON types than one, without those that are null.
fn others(kind: BsonType) -> IntervalList {
    let ((low, from), (high, to)) = (bracket_low(kind), bracket_high(kind));
    let null = Interval::new(Value::Undefined, true, Value::Null, true);
    IntervalList::union_of(vec![null, Interval::new(low, from, high, to)]).complement()
}

/// As [`compared`], with one of some values.
fn any(op: Comparison, ty: &Type, of: &Type, values: Vec<Value>) -> Option<IntervalList> {
    let mut each = values.into_iter().map(|value| compared(op, ty, of, value));
    each.try_fold(IntervalList::none(), |all, own| Some(all.union(&own?)))
}

/// What documents hold, of the BSON type of a column's values, that compares so with a value of type `of`; `None` where that is not told.
fn compared(op: Comparison, ty: &Type, of: &Type, value: Value) -> Option<IntervalList> {
    // Nothing compares with null.
    if matches!(value, Value::Null) {
        return Some(IntervalList::none());
    }
    let point = || Some(IntervalList::point(stored::write(ty, value.clone())));
    match (ty, &value) {
        (Type::Date, value) => {
            let Some(moments) = days::moments(op, of, value) else {
                return (op == Comparison::Equal).then(IntervalList::none);
            };
            // The day of a moment is that of the session's zone.
            let from = moments.from.map(|from| Value::DateTime(from.saturating_sub(ZONES_MS)));
            let to = moments.to.map(|to| Value::DateTime(to.saturating_add(ZONES_MS)));
            within(BsonType::Date, from, to)
        }
        (Type::Timestamp | Type::Timestamptz, Value::Int64(us)) if *us > i64::MIN && *us < i64::MAX => {
            let zones = if *ty == Type::Timestamp { ZONES_MS } else { 0 };
            let (floor, ceil) = (
                us.div_euclid(1000),
                us.div_euclid(1000) + i64::from(us.rem_euclid(1000) != 0),
            );
            ends(
                op,
                BsonType::Date,
                Value::DateTime(floor.saturating_sub(zones)),
                Value::DateTime(ceil.saturating_add(zones)),
            )
        }
        (Type::Int2 | Type::Int4 | Type::Int8, Value::Int32(_) | Value::Int64(_)) => {
            ends(op, BsonType::Double, value.clone(), value)
        }
        // Other numbers are read by their text, which is that of the next one that the type has.
        (Type::Float8, Value::Double(n)) if n.is_finite() => near(op, n.next_down(), n.next_up()),
        (Type::Float4, Value::Double(n)) if n.is_finite() => {
            let n = *n as f32;
            near(op, f64::from(n.next_down()), f64::from(n.next_up()))
        }
        (Type::Numeric, Value::Decimal128(n)) if n.is_finite() => {
            let n = n.to_f64();
            near(op, n.next_down(), n.next_up())
        }
        // An array is the text of its JSON, and an index has its elements.
        (Type::Text | Type::Varchar, Value::String(text)) if op == Comparison::Equal && !is_array(text) => point(),
        (Type::Bool, Value::Bool(_)) | (Type::ObjectId, Value::ObjectId(_)) if op == Comparison::Equal => point(),
        _ => None,
    }
}

fn is_array(text: &str) -> bool {
    text.starts_with('[')
}

fn near(op: Comparison, low: f64, high: f64) -> Option<IntervalList> {
    ends(op, BsonType::Double, Value::Double(low), Value::Double(high))
}

/// The values that compare so with one that lies between two.
fn ends(op: Comparison, kind: BsonType, low: Value, high: Value) -> Option<IntervalList> {
    match op {
        Comparison::Equal => within(kind, Some(low), Some(high)),
        Comparison::Less | Comparison::LessEqual => within(kind, None, Some(high)),
        Comparison::Greater | Comparison::GreaterEqual => within(kind, Some(low), None),
        Comparison::NotEqual => None,
    }
}

/// The values of a kind from one to another, both included.
fn within(kind: BsonType, from: Option<Value>, to: Option<Value>) -> Option<IntervalList> {
    let (low, from) = from.map_or_else(|| bracket_low(kind), |from| (from, true));
    let (high, to) = to.map_or_else(|| bracket_high(kind), |to| (to, true));
    Some(IntervalList::of(Interval::new(low, from, high, to)))
}

/// A value as an index on a field of elements has it, if just equal values of the column are stored so or have another BSON type.
pub fn key(ty: &Type, value: Value) -> Option<Value> {
    match (ty, &value) {
        (Type::Int2 | Type::Int4 | Type::Int8 | Type::Bool | Type::ObjectId, _) => Some(stored::write(ty, value)),
        (Type::Text | Type::Varchar, Value::String(text)) if !is_array(text) => Some(value),
        _ => None,
    }
}

/// Whether the first part of an index has no values but those of the BSON type of a type's values, and nulls.
///
/// Errors: those of storage.
pub fn is_of_one_kind(index: &Index, ty: &Type, view: &dyn View) -> Result<bool> {
    let Some(kind) = kind(ty).filter(|_| index.descending.first() == Some(&false)) else {
        return Ok(false);
    };
    let mut cursor = view.cursor(index.tree);
    for interval in others(kind).intervals() {
        let (mut low, high) = (keys::encode(&interval.low), keys::encode(&interval.high));
        if !interval.low_inclusive {
            low.push(BEHIND);
        }
        if cursor.seek(&low)? {
            let key = cursor.key();
            if key < high.as_slice() || interval.high_inclusive && key.starts_with(&high) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// About how many different values an index has in its first part, by how often it has the least of them; `None` for an empty one.
///
/// Errors: those of storage.
pub fn different(index: &Index, view: &dyn View) -> Result<Option<f64>> {
    let mut cursor = view.cursor(index.tree);
    let (mut values, mut entries) = (0, 0);
    let mut more = cursor.seek(&[])?;
    while more && values < VALUES_COUNTED {
        let first = index.descending.get(..1).unwrap_or_default();
        let from = cursor.key()[..keys::part_bytes(cursor.key(), first)?].to_vec();
        let mut to = from.clone();
        to.push(BEHIND);
        values += 1;
        entries += view.estimate_entries(index.tree, &from, Some(&to))?.max(1);
        more = cursor.seek(&to)?;
    }
    if values == 0 {
        return Ok(None);
    }
    let all = view.estimate_entries(index.tree, &[], None)?;
    Ok(Some((all as f64 * values as f64 / entries as f64).max(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::typed_into;
    use nestor_model::vector::Builder;
    use nestor_model::{Array, Decimal128, compare};

    /// What JSON reads as a value that compares so is within the values that are looked for.
    #[test]
    fn values_that_compare_so_are_found() {
        let decimal = |text: &str| Value::Decimal128(Decimal128::parse(text).expect("a number").0);
        let mut held: Vec<Value> = vec![
            Value::Bool(true),
            Value::MinKey,
            Value::MaxKey,
            Value::Document(Document::new()),
        ];
        for n in [-2, -1, 0, 1, 2, 5] {
            held.push(Value::Int32(n));
            held.push(Value::Int64(i64::from(n)));
            held.push(Value::Double(f64::from(n)));
            held.push(Value::Double(f64::from(n) + 0.1));
            held.push(decimal(&format!("{n}.10")));
            held.push(Value::from(n.to_string().as_str()));
            held.push(Value::DateTime(i64::from(n) * 7_200_000));
        }
        held.extend([i64::MAX, (1 << 53) + 1].map(Value::Int64));
        held.extend([f64::NAN, f64::INFINITY].map(Value::Double));
        held.extend(["a", "", "[1]", "1970-01-01"].map(Value::from));
        let asked = [
            (Type::Int4, Value::Int32(1)),
            (Type::Int8, Value::Int64((1 << 53) + 1)),
            (Type::Float8, Value::Double(1.1)),
            (Type::Float8, Value::Double((1u64 << 53) as f64)),
            (Type::Float4, Value::Double(f64::from(1.1f32))),
            (Type::Numeric, decimal("1.1")),
            (Type::Numeric, decimal("5")),
            (Type::Text, Value::from("1")),
            (Type::Text, Value::from("1970-01-01")),
            (Type::Bool, Value::Bool(true)),
            (Type::Date, Value::Int32(0)),
            (Type::Timestamptz, Value::Int64(7_200_000_000)),
            (Type::Timestamptz, Value::Int64(7_200_000_001)),
            (Type::Timestamp, Value::Int64(0)),
        ];
        let all = [
            Comparison::Equal,
            Comparison::Less,
            Comparison::LessEqual,
            Comparison::Greater,
            Comparison::GreaterEqual,
        ];
        let mut told = 0;
        for (ty, value) in &asked {
            for op in all {
                let Some(own) = compared(op, ty, ty, value.clone()) else {
                    continue;
                };
                let found = own.union(&others(kind(ty).expect("a kind")));
                for held in &held {
                    let mut read = Builder::default();
                    if typed_into(&held.as_ref(), ty, &mut read).is_err() {
                        continue;
                    }
                    let read = read.finish().value(0);
                    let holds = !matches!(read, Value::Null) && op.of(crate::types::compare::compare(ty, &read, value));
                    let is_in = !found.intersect(&IntervalList::point(held.clone())).is_empty();
                    assert!(is_in || !holds, "{ty} {op:?} {value:?} and {held:?}: {found:?}");
                    told += usize::from(holds);
                }
            }
        }
        assert!(told > 150, "{told}");
    }

    /// What is equal to a key that is looked up has just its entry, or another BSON type.
    #[test]
    fn arrays_are_no_keys() {
        assert!(key(&Type::Text, Value::from("[1]")).is_none());
        assert!(key(&Type::Numeric, Value::Int32(1)).is_none());
        let one = key(&Type::Int8, Value::Int64(1)).expect("a key");
        assert!(compare(&one, &Value::Double(1.0)).is_eq());
        let nulls = others(BsonType::Double);
        for null in [Value::Null, Value::Undefined] {
            assert!(nulls.intersect(&IntervalList::point(null)).is_empty());
        }
        assert!(
            !nulls
                .intersect(&IntervalList::point(Value::Array(Array::default())))
                .is_empty()
        );
    }
}
