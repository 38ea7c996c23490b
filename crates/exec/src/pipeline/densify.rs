//! `$densify`: documents for the values that are missing in a sequence.
//!
//! Rows are taken in the order of the field. Each partition remembers the next value of its sequence; before a row behind
//! that value the missing documents are made, one at each pull. Rows without the field pass as they are.

use super::lookup::set_path;
use super::window::value_at;
use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step};
use crate::ops::Sort;
use crate::row::Row;
use nestor_model::number::Num;
use nestor_model::{Array, DocRef, Document, Error, Path, Result, Value, compare};
use nestor_planner::NodeKind;
use nestor_query::collation::{Collator, Key};
use nestor_query::sort::{SortBy, SortPart, SortSpec};
use nestor_query::stage::{Densify, DensifyBounds};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most documents that one stage makes.
const MADE_MAX: u64 = 500_000;

/// Fills in the sequences of its input.
pub(super) struct DensifyOp {
    sorted: Sort,
    densify: Arc<Densify>,
    /// The next value of each partition's sequence.
    next: BTreeMap<Key, Value>,
    /// Of those partitions.
    kept: Kept,
    least: Option<Value>,
    greatest: Option<Value>,
    /// The sequence that is being filled in.
    gap: Option<Gap>,
    /// The row behind it.
    behind: Option<Row>,
    /// Sequences that are still to be filled in behind the last row.
    open: std::collections::btree_map::IntoIter<Key, Value>,
    made: u64,
    ended: bool,
    counters: Counters,
}

/// The documents that are missing in a sequence.
struct Gap {
    partition: Key,
    /// The next value.
    next: Value,
    /// The value of the row behind; `None` behind the last row.
    value: Option<Value>,
}

/// The memory that a partition takes beside its values, about.
const PARTITION_BYTES: usize = 64;

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
            kept: Kept::default(),
            least: None,
            greatest: None,
            gap: None,
            behind: None,
            open: BTreeMap::new().into_iter(),
            made: 0,
            ended: false,
            counters: Counters::default(),
        }
    }

    /// Takes a row: what is missing before it is to be made first.
    fn take(&mut self, row: Row, batch: &Batch<'_>) -> Result<()> {
        let value = value_at(row.as_doc(), &self.densify.field).to_value();
        if value.is_nullish() {
            self.behind = Some(row);
            return Ok(());
        }
        check(&value, self.densify.unit.is_some())?;
        let partition = Key::new(self.partition(row.as_doc()), batch.op.collator.as_ref());
        self.least.get_or_insert_with(|| value.clone());
        self.greatest = Some(value.clone());
        let next = match self.next.remove(&partition) {
            Some(next) => next,
            None => {
                self.keep(&partition, batch)?;
                match &self.densify.bounds {
                    DensifyBounds::Full => self.least.clone().unwrap_or(Value::Null),
                    DensifyBounds::Partition => value.clone(),
                    DensifyBounds::Between(low, _) => low.clone(),
                }
            }
        };
        self.behind = Some(row);
        self.gap = Some(Gap {
            partition,
            next,
            value: Some(value),
        });
        Ok(())
    }

    /// Counts a partition. Error: 6007200 too many.
    fn keep(&mut self, partition: &Key, batch: &Batch<'_>) -> Result<()> {
        self.kept.grow(PARTITION_BYTES + partition.value.weight())?;
        if self.kept.bytes() > batch.memory_bytes_max {
            return Err(Error::location(
                6_007_200,
                format!("$densify exceeded memory limit of {}", batch.memory_bytes_max),
            ));
        }
        Ok(())
    }

    /// The next document that is missing in the gap; `None` when it is filled.
    fn fill(&mut self) -> Result<Option<Row>> {
        let Some(mut gap) = self.gap.take() else {
            return Ok(None);
        };
        let is_before = |value: &Value| compare(&gap.next, value) == Ordering::Less;
        if gap.value.as_ref().is_none_or(is_before) && self.is_before_end(&gap.next) {
            let (row, after) = self.make(&gap.partition, gap.next)?;
            gap.next = after;
            self.gap = Some(gap);
            return Ok(Some(row));
        }
        if let Some(value) = &gap.value {
            if compare(&gap.next, value) == Ordering::Equal {
                gap.next = self.after(&gap.next)?;
            }
            self.next.insert(gap.partition, gap.next);
        }
        Ok(None)
    }

    /// The rows are over: what is missing behind them is to be made.
    fn end(&mut self) {
        self.ended = true;
        if self.next.is_empty() && self.densify.partition_by.is_empty() {
            if let DensifyBounds::Between(low, _) = &self.densify.bounds {
                self.next
                    .insert(Key::new(Value::Array(Array::default()), None), low.clone());
            }
        }
        if !matches!(self.densify.bounds, DensifyBounds::Partition) {
            self.open = std::mem::take(&mut self.next).into_iter();
        }
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

    /// Makes the document of a value, and the value after it. Error: 5897900 too many.
    fn make(&mut self, partition: &Key, value: Value) -> Result<(Row, Value)> {
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
        Ok((Row::computed(doc), after))
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
            if self.gap.is_some() && !batch.spend()? {
                return Ok(Step::Pause);
            }
            let row = match self.fill()? {
                Some(row) => Some(row),
                None => self.behind.take(),
            };
            if let Some(row) = row {
                self.counters.advanced += 1;
                return Ok(Step::Row(row));
            }
            if self.ended {
                let Some((partition, next)) = self.open.next() else {
                    return Ok(self.counters.gave(Step::Eof));
                };
                self.gap = Some(Gap {
                    partition,
                    next,
                    value: None,
                });
                continue;
            }
            let step = self.sorted.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => self.take(row, batch)?,
                Step::Pause => return Ok(Step::Pause),
                Step::Eof => self.end(),
            }
        }
    }

    fn save(&mut self) {
        self.kept.rest();
        self.sorted.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::Densify, &self.counters).over(&self.sorted);
        report.holding(self.kept.bytes())
    }
}
