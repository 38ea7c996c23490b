//! `$bucketAuto`: rows in the order of a value, cut into buckets of about equal size.

use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Operator, Report, Step};
use crate::ops::Sort;
use crate::pipeline::row_store::RowStore;
use crate::row::Row;
use crate::spill::Spilled;
use nestor_model::number::{Num, f64_to_i64_exact};
use nestor_model::statement::{BYTES_PER_UNIT, ROW, effort, work};
use nestor_model::{DocRef, Document, Error, Result, Value, ValueRef, compare, doc};
use nestor_planner::NodeKind;
use nestor_query::accumulator::Accumulator;
use nestor_query::collation::{Collator, equal};
use nestor_query::env::Env;
use nestor_query::sort::SortSpec;
use nestor_query::stage::{BucketAuto, Granularity};
use std::cmp::Ordering;
use std::sync::Arc;

/// Sorts pairs of key and document, then forms the buckets.
pub(super) struct BucketAutoOp {
    sorted: Sort,
    spec: Arc<BucketAuto>,
    /// Sorted pairs: how many there are has to be known before the first bucket is formed.
    rows: RowStore,
    /// Whether all pairs are there.
    collected: bool,
    spilled: Spilled,
    at: usize,
    made: usize,
    /// `max` of the last bucket, which is the `min` of the next one when boundaries are rounded.
    last_max: Option<Value>,
    counters: Counters,
}

/// Makes `{k: key, d: document}` of each row, so that the sort can spill it.
struct Keyed(Arc<BucketAuto>);

impl EachRow for Keyed {
    fn kind(&self) -> NodeKind {
        NodeKind::BucketAuto
    }

    fn row(&mut self, row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        let key = self.0.group_by.eval(&mut Env::new(row.as_doc(), batch.op))?;
        let key = if key.is_missing() { Value::Null } else { key };
        if self.0.granularity.is_some() {
            check_roundable(&key)?;
        }
        // The key is wrapped in an array, so that an array key sorts as a whole.
        let wrapped = doc! { "k": doc! { "v": key }, "d": row.doc.into_document() };
        Ok(Some(wrapped.into()))
    }
}

/// Errors: 40258 not a number, 40259 NaN, 40260 negative.
fn check_roundable(key: &Value) -> Result<()> {
    let number = Num::from_ref(key.as_ref()).ok_or_else(|| {
        Error::location(
            40258,
            format!(
                "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {}",
                key.bson_type().alias()
            ),
        )
    })?;
    if number.is_nan() {
        return Err(Error::location(
            40259,
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN",
        ));
    }
    if number.to_f64() < 0.0 {
        return Err(Error::location(
            40260,
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number",
        ));
    }
    Ok(())
}

/// A rounded boundary: a double, but the whole power of two above or below an integer is an integer.
fn boundary(granularity: &Granularity, of: &Value, rounded: f64) -> Value {
    let integer = matches!(of, Value::Int32(_) | Value::Int64(_)) && *granularity == Granularity::PowersOf2;
    match f64_to_i64_exact(rounded).filter(|_| integer) {
        Some(whole) => Num::from_i64(whole, true).into(),
        None => Value::Double(rounded),
    }
}

/// The key and the document of a pair.
fn pair(doc: DocRef<'_>) -> (Value, Document) {
    let part = |name| doc.get(name).and_then(ValueRef::as_document);
    let key = part("k").and_then(|key| key.get("v"));
    let inner = part("d").map(DocRef::to_document);
    (key.map_or(Value::Null, ValueRef::to_value), inner.unwrap_or_default())
}

impl BucketAutoOp {
    pub(super) fn new(input: BoxOperator, spec: Arc<BucketAuto>, collator: Option<&Collator>) -> Result<Self> {
        let keyed = Box::new(Each::over(input, Keyed(spec.clone())));
        // `k` is a document of one field: sorting by it sorts by the key, arrays as wholes.
        let order = SortSpec::parse(doc! { "k": 1 }.as_ref())?.under(collator);
        Ok(Self {
            sorted: Sort::new(keyed, Arc::new(order), None, false),
            spec,
            rows: RowStore::default(),
            collected: false,
            spilled: Spilled::default(),
            at: 0,
            made: 0,
            last_max: None,
            counters: Counters::default(),
        })
    }

    fn key(&self, at: usize) -> Result<Value> {
        effort::made();
        work(ROW)?;
        Ok(pair(self.rows.get(at)?.as_doc()).0)
    }

    /// Forms the bucket that starts at `self.at`.
    fn next_bucket(&mut self, batch: &Batch<'_>) -> Result<Option<Row>> {
        let total = self.rows.len();
        if self.at >= total || self.made >= self.spec.buckets {
            return Ok(None);
        }
        let size = ((total as f64 / self.spec.buckets as f64).round() as usize).max(1);
        let start = self.at;
        let mut end = if self.made + 1 == self.spec.buckets {
            total
        } else {
            (start + size).min(total)
        };
        // Equal keys stay together.
        let last = self.key(end - 1)?;
        while end < total && equal(self.key(end)?.as_ref(), last.as_ref(), batch.op.collator.as_ref()) {
            end += 1;
        }
        let first = self.key(start)?;
        let mut min = first.clone();
        let mut max = self.key(end.min(total - 1))?;
        if let Some(granularity) = &self.spec.granularity {
            (min, max) = self.round(granularity, &first, &self.key(end - 1)?);
            // Rounding up may take in more rows.
            while end < total && compare(&self.key(end)?, &max) == Ordering::Less {
                end += 1;
            }
        }
        let mut states: Vec<Accumulator> = self
            .spec
            .output
            .iter()
            .map(|(_, a)| a.start(&Value::Null, batch.op))
            .collect::<Result<_>>()?;
        let mut kept = Kept::default();
        for at in start..end {
            effort::made();
            let row = self.rows.get(at)?;
            work(ROW + row.size() / BYTES_PER_UNIT)?;
            let doc = pair(row.as_doc()).1;
            for ((_, accumulator), state) in self.spec.output.iter().zip(&mut states) {
                let before = state.memory();
                accumulator.accumulate(state, &mut Env::new(doc.as_ref(), batch.op))?;
                kept.set(kept.bytes() + state.memory() - before)?;
            }
        }
        self.at = end;
        self.made += 1;
        self.last_max = Some(max.clone());
        let mut out = doc! { "_id": doc! { "min": min, "max": max } };
        for ((name, _), state) in self.spec.output.iter().zip(&states) {
            let value = state.finish()?;
            out.push(name.clone(), if value.is_missing() { Value::Null } else { value });
        }
        Ok(Some(Row::computed(out)))
    }

    fn round(&self, granularity: &Granularity, first: &Value, last: &Value) -> (Value, Value) {
        let number = |value: &Value| Num::from_ref(ValueRef::from(value)).map_or(0.0, Num::to_f64);
        let min = match &self.last_max {
            Some(max) => max.clone(),
            None => boundary(granularity, first, granularity.round_down(number(first))),
        };
        (min, boundary(granularity, last, granularity.round_up(number(last))))
    }
}

impl Operator for BucketAutoOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        while !self.collected {
            let step = self.sorted.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => self.rows.push(row.doc, "$bucketAuto", batch)?,
                Step::Pause => return Ok(Step::Pause),
                Step::Eof => {
                    self.collected = true;
                    self.rows.seal()?;
                    if let Some(bytes) = self.rows.bytes_on_disk() {
                        self.spilled.add(self.rows.len() as u64, bytes);
                    }
                }
            }
        }
        let bucket = self.next_bucket(batch)?;
        Ok(self.counters.gave(bucket.map_or(Step::Eof, Step::Row)))
    }

    fn save(&mut self) {
        self.rows.rest();
        self.sorted.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::BucketAuto, &self.counters).over(&self.sorted);
        report.holding(self.rows.bytes()).spilling(self.spilled)
    }
}
