//! `$densify`: documents for the values that are missing in a sequence.
//!
//! Rows are taken in the order of the field. Each partition remembers the next value of its sequence; a row behind
//! that value first lets the missing documents out. Rows without the field pass as they are.

use super::lookup::set_path;
use super::window::value_at;
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step};
use crate::ops::Sort;
use crate::row::Row;
use nestor_model::number::Num;
use nestor_model::statement::{ROW, work};
use nestor_model::{Array, DocRef, Document, Error, Path, Result, Value, compare};
use nestor_planner::NodeKind;
use nestor_query::collation::{Collator, Key};
use nestor_query::sort::{SortBy, SortPart, SortSpec};
use nestor_query::stage::{Densify, DensifyBounds};
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Most documents that one stage makes.
const MADE_MAX: u64 = 500_000;

/// Fills in the sequences of its input.
pub(super) struct DensifyOp {
    sorted: Sort,
    densify: Arc<Densify>,
    /// The next value of each partition's sequence.
    next: BTreeMap<Key, Value>,
    least: Option<Value>,
    greatest: Option<Value>,
    pending: VecDeque<Row>,
    made: u64,
    ended: bool,
    counters: Counters,
}

impl DensifyOp {
    pub(super) fn new(input: BoxOperator, densify: Arc<Densify>, collator: Option<&Collator>) -> Self {
        // Sequences that end with their partitions come one after the other.
        let partitions = match densify.bounds {
            DensifyBounds::Partition => densify.partition_by.as_slice(),
            _ => &[],
        };
        let part = |path: &Path| SortPart {
            by: SortBy::Path(path.clone()),
            ascending: true,
        };
        let order = partitions.iter().chain([&densify.field]).map(part).collect();
        Self {
            sorted: Sort::new(input, Arc::new(SortSpec::of(order).under(collator)), None, false),
            densify,
            next: BTreeMap::new(),
            least: None,
            greatest: None,
            pending: VecDeque::new(),
            made: 0,
            ended: false,
            counters: Counters::default(),
        }
    }

    fn take(&mut self, row: Row, collator: Option<&Collator>) -> Result<()> {
        let densify = self.densify.clone();
        let value = value_at(row.as_doc(), &densify.field).to_value();
        if value.is_nullish() {
            self.pending.push_back(row);
            return Ok(());
        }
        check(&value, densify.unit.is_some())?;
        let partition = Key::new(self.partition(row.as_doc()), collator);
        self.least.get_or_insert_with(|| value.clone());
        self.greatest = Some(value.clone());
        let mut next = match self.next.remove(&partition) {
            Some(next) => next,
            None => match &densify.bounds {
                DensifyBounds::Full => self.least.clone().unwrap_or(Value::Null),
                DensifyBounds::Partition => value.clone(),
                DensifyBounds::Between(low, _) => low.clone(),
            },
        };
        while compare(&next, &value) == Ordering::Less && self.is_before_end(&next) {
            next = self.make(&partition, next)?;
        }
        if compare(&next, &value) == Ordering::Equal {
            next = self.after(&next)?;
        }
        self.next.insert(partition, next);
        self.pending.push_back(row);
        Ok(())
    }

    /// Lets out what is missing behind the last rows.
    fn end(&mut self) -> Result<()> {
        self.ended = true;
        if self.next.is_empty() && self.densify.partition_by.is_empty() {
            if let DensifyBounds::Between(low, _) = &self.densify.bounds {
                self.next
                    .insert(Key::new(Value::Array(Array::default()), None), low.clone());
            }
        }
        if matches!(self.densify.bounds, DensifyBounds::Partition) {
            return Ok(());
        }
        for (partition, mut next) in std::mem::take(&mut self.next) {
            while self.is_before_end(&next) {
                next = self.make(&partition, next)?;
            }
        }
        Ok(())
    }

    /// Whether a value of a sequence is still to be made, as far as the bounds say.
    fn is_before_end(&self, next: &Value) -> bool {
        match &self.densify.bounds {
            DensifyBounds::Between(_, high) => compare(next, high) == Ordering::Less,
            DensifyBounds::Full => self
                .greatest
                .as_ref()
                .is_some_and(|greatest| compare(next, greatest) != Ordering::Greater),
            DensifyBounds::Partition => true,
        }
    }

    /// Makes the document of a value and returns the value after it. Error: 5897900 too many.
    fn make(&mut self, partition: &Key, value: Value) -> Result<Value> {
        work(ROW)?;
        self.made += 1;
        if self.made > MADE_MAX {
            return Err(Error::location(
                5_897_900,
                format!("generated {MADE_MAX} documents in $densify, which is the most it makes"),
            ));
        }
        let after = self.after(&value)?;
        let mut doc = Document::new();
        if let Value::Array(values) = &partition.value {
            for (path, value) in self.densify.partition_by.iter().zip(values.iter()) {
                // A partition without the field makes documents without it.
                if !value.is_missing() {
                    set_path(&mut doc, path.parts(), value.to_value());
                }
            }
        }
        set_path(&mut doc, self.densify.field.parts(), value);
        self.pending.push_back(Row::computed(doc));
        Ok(after)
    }

    fn after(&self, value: &Value) -> Result<Value> {
        let step = self.densify.step;
        let overflow = || Error::location(5_733_407, "a value of the densified sequence is out of range");
        match (value, self.densify.unit) {
            (Value::DateTime(ms), Some(unit)) => {
                let amount = step.to_i64_exact().unwrap_or(1);
                unit.add_utc(*ms, amount).map(Value::DateTime).ok_or_else(overflow)
            }
            _ => {
                let number = Num::from_ref(value.as_ref()).ok_or_else(overflow)?;
                let next = number.add(step);
                if compare(&Value::from(next), value) == Ordering::Greater {
                    Ok(next.into())
                } else {
                    Err(overflow())
                }
            }
        }
    }

    fn partition(&self, doc: DocRef<'_>) -> Value {
        let values = self
            .densify
            .partition_by
            .iter()
            .map(|path| value_at(doc, path).to_value());
        Value::Array(values.collect())
    }
}

/// Errors: 5733201 no number, 6053600 a date without unit, 6053601 no date with one.
fn check(value: &Value, with_unit: bool) -> Result<()> {
    match value {
        Value::DateTime(_) if with_unit => Ok(()),
        Value::DateTime(_) => Err(Error::location(
            6_053_600,
            "encountered date densify field with no unit",
        )),
        other if !other.as_ref().is_number() => Err(Error::location(
            5_733_201,
            format!(
                "densify field type must be numeric or a date, found {}",
                other.bson_type().alias()
            ),
        )),
        _ if with_unit => Err(Error::location(
            6_053_601,
            "encountered numeric densify field with a unit",
        )),
        _ => Ok(()),
    }
}

impl Operator for DensifyOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if let Some(row) = self.pending.pop_front() {
                self.counters.advanced += 1;
                return Ok(Step::Row(row));
            }
            if self.ended {
                return Ok(self.counters.gave(Step::Eof));
            }
            let step = self.sorted.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => self.take(row, batch.op.collator.as_ref())?,
                Step::Pause => return Ok(Step::Pause),
                Step::Eof => self.end()?,
            }
        }
    }

    fn save(&mut self) {
        self.sorted.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::Densify, &self.counters).over(&self.sorted);
        report.holding(self.pending.len() * size_of::<Row>())
    }
}
