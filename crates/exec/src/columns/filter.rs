//! Conditions over columns: the same rows as [`MatchExpr::matches`] finds, which each test of a value comes down to.

use super::ColumnRows;
use super::fields::{Fields, column, paths_of};
use super::spread::{self, Spread};
use nestor_columns::{Column, DAY_MS, Found, Places, Segment, Statistics, Values, Zone, elements};
use nestor_model::statement::work;
use nestor_model::{BsonType, Path, Result, Str, Value, ValueRef};
use nestor_query::env::{Env, OpContext};
use nestor_query::expr::Deps;
use nestor_query::matcher::{CompareOp, ExprTest, Leaf, MatchExpr, Predicate};
use std::ops::Range;
use std::sync::Arc;

/// The name of the only field of what a test of one value is asked of.
const FIELD: &str = "v";

/// Rows in a loop that count as a unit of work.
const ROWS_PER_UNIT: usize = 32;

/// A condition over columns.
#[derive(Debug)]
pub(crate) enum ColumnFilter {
    All,
    Nothing,
    And(Vec<ColumnFilter>),
    Or(Vec<ColumnFilter>),
    Not(Box<ColumnFilter>),
    Leaf(Box<Test>),
    /// One element of the array at a path, all of whose elements are documents, meets the condition.
    Element(Str, Box<ColumnFilter>),
    Expr(Arc<ExprTest>, Fields),
}

/// A test of the value at a path.
#[derive(Debug)]
pub(crate) struct Test {
    path: Str,
    /// The test, of the field [`FIELD`].
    test: MatchExpr,
    /// Of an array it is one of its elements.
    of_elements: bool,
    /// If it compares with a value as that is.
    compares: Option<(CompareOp, Value)>,
}

impl ColumnFilter {
    /// A condition over columns; `None` when it looks at more than values at paths.
    pub(crate) fn of(filter: &MatchExpr) -> Option<Self> {
        let all = |filters: &[MatchExpr]| filters.iter().map(Self::of).collect::<Option<Vec<_>>>();
        Some(match filter {
            MatchExpr::AlwaysTrue => Self::All,
            MatchExpr::AlwaysFalse => Self::Nothing,
            MatchExpr::And(filters) => Self::And(all(filters)?),
            MatchExpr::Or(filters) => Self::Or(all(filters)?),
            MatchExpr::Nor(filters) => Self::Not(Box::new(Self::Or(all(filters)?))),
            MatchExpr::Not(filter) => Self::Not(Box::new(Self::of(filter)?)),
            MatchExpr::Leaf(Leaf {
                path,
                predicate: Predicate::ElemMatchObject(filter),
            }) => Self::Element(path.as_str().into(), Box::new(Self::of(filter)?)),
            MatchExpr::Leaf(leaf) => {
                let compares = match &leaf.predicate {
                    Predicate::Compare { op, value, collator } => {
                        let is_plain = collator.is_none() || !matches!(value, Value::String(_));
                        is_plain.then(|| (*op, value.clone()))
                    }
                    Predicate::Near(_) | Predicate::Geo(_) => return None,
                    _ => None,
                };
                Self::Leaf(Box::new(Test {
                    path: leaf.path.as_str().into(),
                    of_elements: spread::is_of_elements(&leaf.predicate),
                    test: MatchExpr::Leaf(Leaf {
                        path: Path::new(FIELD),
                        predicate: leaf.predicate.clone(),
                    }),
                    compares,
                }))
            }
            MatchExpr::Expr(test) => {
                let mut deps = Deps::default();
                test.expr.dependencies(&mut deps);
                Self::Expr(test.clone(), Fields::new(paths_of(&deps)?))
            }
            MatchExpr::JsonSchema(_) | MatchExpr::SampleRate(_) | MatchExpr::Text(_) => return None,
        })
    }

    /// Whether any thread may test rows: it compares values, and computes nothing.
    pub(crate) fn is_portable(&self) -> bool {
        match self {
            Self::All | Self::Nothing | Self::Leaf(_) => true,
            Self::And(filters) | Self::Or(filters) => filters.iter().all(Self::is_portable),
            Self::Not(filter) | Self::Element(_, filter) => filter.is_portable(),
            Self::Expr(..) => false,
        }
    }

    /// Adds the paths that it reads.
    pub(crate) fn paths(&self, into: &mut Vec<Str>) {
        match self {
            Self::All | Self::Nothing => {}
            Self::And(filters) | Self::Or(filters) => filters.iter().for_each(|filter| filter.paths(into)),
            Self::Not(filter) => filter.paths(into),
            Self::Leaf(test) => into.push(test.path.clone()),
            Self::Element(path, _) => into.push(path.clone()),
            Self::Expr(_, fields) => into.extend_from_slice(fields.paths()),
        }
    }

    /// About which part of all rows match, by what is known of the values at paths.
    pub(crate) fn selectivity(&self, known: &Known<'_>, op: &OpContext) -> Result<f64> {
        let of = |filters: &[Self]| {
            let each = filters.iter().map(|filter| filter.selectivity(known, op));
            each.collect::<Result<Vec<f64>>>()
        };
        Ok(match self {
            Self::All => 1.0,
            Self::Nothing => 0.0,
            Self::And(filters) => of(filters)?.into_iter().product(),
            Self::Or(filters) => 1.0 - of(filters)?.into_iter().map(|part| 1.0 - part).product::<f64>(),
            Self::Not(filter) => 1.0 - filter.selectivity(known, op)?,
            Self::Leaf(test) => match known(&test.path) {
                Some(statistics) => test.selectivity(&statistics, op)?,
                None => UNKNOWN_PART,
            },
            Self::Expr(..) | Self::Element(..) => UNKNOWN_PART,
        })
    }

    /// Whether a segment has all that it looks at.
    pub(crate) fn is_served(&self, segment: &Segment) -> bool {
        let has = |path: &str| !matches!(segment.find(path.split('.')), Found::Unknown);
        match self {
            Self::All | Self::Nothing => true,
            Self::And(filters) | Self::Or(filters) => filters.iter().all(|filter| filter.is_served(segment)),
            Self::Not(filter) => filter.is_served(segment),
            Self::Leaf(test) if test.of_elements => test.spread(segment).is_some(),
            Self::Leaf(test) => has(&test.path),
            Self::Element(path, filter) => match segment.elements(path.split('.')) {
                elements::Found::Elements(found) => {
                    found.segment().has_documents_only() && filter.is_served(found.segment())
                }
                elements::Found::Nothing => true,
                elements::Found::Unknown => false,
            },
            Self::Expr(_, fields) => fields.paths().iter().all(|path| has(path)),
        }
    }

    /// Whether some row of a segment may match.
    pub(crate) fn may_match(&self, segment: &Segment) -> bool {
        match self {
            Self::Nothing => false,
            Self::And(filters) => filters.iter().all(|filter| filter.may_match(segment)),
            Self::Or(filters) => filters.iter().any(|filter| filter.may_match(segment)),
            Self::Leaf(test) => test.may_match(segment),
            Self::Element(path, filter) => match segment.elements(path.split('.')) {
                elements::Found::Elements(found) => filter.may_match(found.segment()),
                elements::Found::Nothing => false,
                elements::Found::Unknown => true,
            },
            Self::All | Self::Not(_) | Self::Expr(..) => true,
        }
    }

    /// The rows of a segment that match, counted from the first; `None` when all do.
    ///
    /// Errors: those of the tests.
    pub(crate) fn pick(&self, segment: &Segment, rows: &Range<usize>, op: &OpContext) -> Result<Option<Vec<u32>>> {
        if let Self::All = self {
            return Ok(None);
        }
        let mut holds = vec![true; rows.len()];
        self.apply(segment, rows, &mut holds, op)?;
        if holds.iter().all(|holds| *holds) {
            return Ok(None);
        }
        let picked = holds.iter().enumerate().filter(|(_, holds)| **holds);
        Ok(Some(picked.map(|(at, _)| at as u32).collect()))
    }

    /// Those of some rows that match.
    ///
    /// Errors: those of the tests.
    pub(crate) fn narrow(&self, rows: &mut ColumnRows, op: &OpContext) -> Result<()> {
        if !self.may_match(&rows.segment) {
            rows.picked = Some(Vec::new());
        }
        if rows.len() == 0 {
            return Ok(());
        }
        let Some(holds) = self.pick(&rows.segment, &rows.rows, op)? else {
            return Ok(());
        };
        rows.picked = Some(match rows.picked.take() {
            None => holds,
            Some(picked) => {
                let mut holds = holds.into_iter().peekable();
                let mut is_held = |at: &u32| {
                    while holds.next_if(|own| own < at).is_some() {}
                    holds.peek() == Some(at)
                };
                picked.into_iter().filter(|at| is_held(at)).collect()
            }
        });
        Ok(())
    }

    /// Leaves those rows for which it holds.
    fn apply(&self, segment: &Segment, rows: &Range<usize>, left: &mut [bool], op: &OpContext) -> Result<()> {
        work(1 + rows.len() / ROWS_PER_UNIT)?;
        match self {
            Self::All => {}
            Self::Nothing => left.fill(false),
            Self::And(filters) => {
                for filter in filters {
                    filter.apply(segment, rows, left, op)?;
                }
            }
            Self::Or(filters) => {
                let mut any = vec![false; left.len()];
                for filter in filters {
                    let mut own: Vec<bool> = left.iter().zip(&any).map(|(left, any)| *left && !any).collect();
                    filter.apply(segment, rows, &mut own, op)?;
                    any.iter_mut().zip(own).for_each(|(any, own)| *any |= own);
                }
                left.iter_mut().zip(any).for_each(|(left, any)| *left &= any);
            }
            Self::Not(filter) => {
                let mut own = left.to_vec();
                filter.apply(segment, rows, &mut own, op)?;
                left.iter_mut().zip(own).for_each(|(left, own)| *left &= !own);
            }
            Self::Leaf(test) => match test.of_elements.then(|| test.spread(segment)).flatten() {
                Some(spread) => test.apply_spread(&spread, rows, left, op)?,
                None => test.apply(column(segment, &test.path), rows, left, op)?,
            },
            Self::Element(path, filter) => match segment.elements(path.split('.')) {
                elements::Found::Elements(found) => spread::any(&found, rows, left, |all, holds| {
                    filter.apply(found.segment(), all, holds, op)
                })?,
                elements::Found::Nothing | elements::Found::Unknown => left.fill(false),
            },
            Self::Expr(test, fields) => {
                let columns = fields.columns(segment);
                let mut buffer = Vec::new();
                for (at, left) in left.iter_mut().enumerate().filter(|(_, left)| **left) {
                    work(1)?;
                    *left = fields.with_document(&columns, rows.start + at, &mut buffer, |document| {
                        test.expr.eval_bool(&mut Env::new(document, op))
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Tells what is known of the values at a path.
pub(crate) type Known<'k> = dyn Fn(&str) -> Option<Arc<Statistics>> + 'k;

/// The part of all rows that match a condition of which nothing is known.
const UNKNOWN_PART: f64 = 0.3;

impl Test {
    /// About which part of all rows match.
    fn selectivity(&self, known: &Statistics, op: &OpContext) -> Result<f64> {
        let part = |holds: bool, part: f64| if holds { part } else { 0.0 };
        let mut rest = part(self.holds(ValueRef::Null, op)?, known.nulls);
        rest += part(self.holds(ValueRef::Missing, op)?, known.missing);
        let others = (1.0 - known.values - known.nulls - known.missing).max(0.0);
        let mut held = 0;
        for value in &known.sample {
            held += usize::from(self.holds(value.as_ref(), op)?);
        }
        let of_values = match (held, known.sample.len()) {
            (_, 0) => UNKNOWN_PART,
            // Rarer than the sample tells.
            (0, _) => match &self.compares {
                Some((CompareOp::Eq, _)) => 1.0 / known.distinct.max(known.sample.len() as f64),
                _ => 0.5 / known.sample.len() as f64,
            },
            (held, len) => held as f64 / len as f64,
        };
        Ok((rest + known.values * of_values + others * UNKNOWN_PART).clamp(0.0, 1.0))
    }

    fn holds(&self, value: ValueRef<'_>, op: &OpContext) -> Result<bool> {
        self.test.matches_field(FIELD, value, op)
    }

    /// A loop for values of one type and a value of the same: the values that pass lie between two.
    fn between(&self, column: &Column) -> Option<(Option<i64>, Option<i64>)> {
        match column.values() {
            Values::Int32(_) | Values::Int64(_) => self.passing(false),
            Values::Date(_) => self.passing(true),
            Values::Days(_) => {
                let (from, to) = self.passing(true)?;
                // The first day that does not begin before, and the last one that does not begin behind.
                let from = from.map(|ms| ms.div_euclid(DAY_MS) + i64::from(ms.rem_euclid(DAY_MS) > 0));
                Some((from, to.map(|ms| ms.div_euclid(DAY_MS))))
            }
            _ => None,
        }
    }

    /// Of whole numbers, or of dates, which pass.
    fn passing(&self, are_dates: bool) -> Option<(Option<i64>, Option<i64>)> {
        let (op, value) = self.compares.as_ref()?;
        let with = match (are_dates, value) {
            (false, Value::Int32(value)) => i64::from(*value),
            (false, Value::Int64(value)) => *value,
            (true, Value::DateTime(ms)) => *ms,
            _ => return None,
        };
        Some(match op {
            CompareOp::Eq => (Some(with), Some(with)),
            CompareOp::Gte => (Some(with), None),
            CompareOp::Lte => (None, Some(with)),
            CompareOp::Gt => (Some(with.checked_add(1)?), None),
            CompareOp::Lt => (None, Some(with.checked_sub(1)?)),
        })
    }

    /// As [`Test::between`], of numbers with a point.
    fn between_doubles(&self, column: &Column) -> Option<(CompareOp, f64)> {
        let (op, value) = self.compares.as_ref()?;
        // Not a number is in no order with others.
        column.range()?;
        let with = match (column.values(), value) {
            (Values::Double(_) | Values::Scaled(..), Value::Double(value)) if !value.is_nan() => *value,
            (Values::Double(_) | Values::Scaled(..), Value::Int32(value)) => f64::from(*value),
            _ => return None,
        };
        Some((*op, with))
    }

    fn may_match(&self, segment: &Segment) -> bool {
        let Some((compare, with)) = &self.compares else {
            return true;
        };
        // A comparison with a value that is not null does not hold where there is none.
        let of_one_kind = |own: &Value| {
            let (own, with) = (own.as_ref().bson_type(), with.as_ref().bson_type());
            let plain = matches!(
                own,
                BsonType::Int
                    | BsonType::Long
                    | BsonType::Double
                    | BsonType::Date
                    | BsonType::String
                    | BsonType::ObjectId
                    | BsonType::Bool
            );
            plain && (own == with || own.is_number() && with.is_number())
        };
        let is_nan = matches!(with, Value::Double(with) if with.is_nan());
        match segment.zone(self.path.split('.')) {
            Zone::Between((least, most)) if of_one_kind(least) && !is_nan => {
                let (least, most) = (nestor_model::compare(least, with), nestor_model::compare(most, with));
                match compare {
                    CompareOp::Eq => least.is_le() && most.is_ge(),
                    CompareOp::Gt => most.is_gt(),
                    CompareOp::Gte => most.is_ge(),
                    CompareOp::Lt => least.is_lt(),
                    CompareOp::Lte => least.is_le(),
                }
            }
            _ => true,
        }
    }

    /// What a segment has at its path.
    fn spread<'s>(&self, segment: &'s Segment) -> Option<Spread<'s>> {
        let names: Vec<&str> = self.path.split('.').collect();
        spread::spread(segment, &names)
    }

    /// Leaves those rows for which it holds, one of whose elements it is asked of.
    fn apply_spread(&self, spread: &Spread<'_>, rows: &Range<usize>, left: &mut [bool], op: &OpContext) -> Result<()> {
        match spread {
            Spread::Column(column) => self.apply(*column, rows, left, op),
            Spread::Elements(found, below) => {
                spread::any(found, rows, left, |all, holds| self.apply_spread(below, all, holds, op))
            }
        }
    }

    fn apply(&self, column: Option<&Column>, rows: &Range<usize>, left: &mut [bool], op: &OpContext) -> Result<()> {
        let Some(column) = column else {
            if !self.holds(ValueRef::Missing, op)? {
                left.fill(false);
            }
            return Ok(());
        };
        let places = Places::Range(rows.clone());
        if let Some((from, to)) = self.between(column) {
            let (from, to) = (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX));
            let held = match column.values() {
                Values::Int32(values) | Values::Int64(values) | Values::Date(values) | Values::Days(values) => {
                    values.pick(&places, |value| from <= value && value <= to)
                }
                _ => Vec::new(),
            };
            return self.keep(left, &held, column, rows, op);
        }
        if let Some((compare, with)) = self.between_doubles(column) {
            let holds = |value: f64| value.partial_cmp(&with).is_some_and(|order| compare.accepts(order));
            let held = match column.values() {
                Values::Double(values) => places.map(|row| holds(values[row])),
                Values::Scaled(digits, unit) => digits.pick(&places, |digits| holds(digits as f64 / unit)),
                _ => Vec::new(),
            };
            return self.keep(left, &held, column, rows, op);
        }
        if let Some((count, numbers)) = column.numbers(&places) {
            let mut known: Vec<Option<bool>> = vec![None; count];
            for (at, (left, number)) in left.iter_mut().zip(numbers).enumerate().filter(|(_, (left, _))| **left) {
                let known = &mut known[number as usize];
                *left = match *known {
                    Some(holds) => holds,
                    None => *known.insert(self.holds(column.value(rows.start + at), op)?),
                };
            }
            return Ok(());
        }
        for (at, left) in left.iter_mut().enumerate().filter(|(_, left)| **left) {
            work(1)?;
            *left = self.holds(column.value(rows.start + at), op)?;
        }
        Ok(())
    }

    /// Leaves the rows whose values were held, and those without a value if it holds for these.
    fn keep(
        &self,
        left: &mut [bool],
        held: &[bool],
        column: &Column,
        rows: &Range<usize>,
        op: &OpContext,
    ) -> Result<()> {
        let Some(nulls) = column.nulls(&Places::Range(rows.clone())) else {
            left.iter_mut().zip(held).for_each(|(left, held)| *left &= held);
            return Ok(());
        };
        for (at, left) in left.iter_mut().enumerate().filter(|(_, left)| **left) {
            *left = match nulls[at] {
                true => self.holds(column.value(rows.start + at), op)?,
                false => held[at],
            };
        }
        Ok(())
    }
}
