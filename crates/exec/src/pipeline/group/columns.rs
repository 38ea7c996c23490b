//! The measurements of time-series buckets, added to their groups without being made.
//!
//! ```text
//! bucket  ──control.min.t, control.max.t──►  same key at both ends: one run of all its measurements
//!                                            else runs of equal keys, found by the times
//! run     ──column──►  accumulators, which take many values at once; $min and $max of whole buckets take control's
//! ```
//!
//! Only columns that an accumulator asks for are decoded, and of a bucket whose measurements are all of one group not even their times.

use super::table::Table;
use crate::kept::Kept;
use nestor_model::statement::{ROW, work};
use nestor_model::{BsonType, RawDoc, RawDocBuf, RawWriter, Result, TimeSeries, Value, ValueRef};
use nestor_query::accumulator::Accumulator;
use nestor_query::collation;
use nestor_query::env::{Env, OpContext, Val};
use nestor_query::stage::{AccumulatorSpec, ColumnInput, Group, inputs_of_columns};
use nestor_query::timeseries::{Column, Header, Values};
use std::ops::Range;
use std::sync::Arc;

/// Measurements that count as much work as a row.
const ROWS_PER_UNIT: usize = 16;
/// Bytes of a decoded value, about.
const VALUE_BYTES: usize = 16;

/// A group that is made of columns.
pub(super) struct Columns {
    group: Arc<Group>,
    series: TimeSeries,
    /// `inputs[f]` is of output field `f`.
    inputs: Vec<ColumnInput>,
    /// The columns that are decoded.
    decoded: Kept,
}

/// A column of a bucket, decoded when it is first asked for: `None` inside when no measurement has the field.
type Decoded = Option<Option<Column>>;

impl Columns {
    /// The group as one of columns, if it can be.
    pub(super) fn of(group: &Arc<Group>, series: &TimeSeries) -> Option<Self> {
        Some(Self {
            inputs: inputs_of_columns(group, series)?,
            group: group.clone(),
            series: series.clone(),
            decoded: Kept::default(),
        })
    }

    /// Adds the measurements of a stored bucket to their groups.
    ///
    /// Errors: 2 for what is no bucket, those of the key and of the accumulators, and those of too little memory.
    pub(super) fn add(&mut self, bucket: RawDoc<'_>, table: &mut Table, op: &OpContext) -> Result<()> {
        let header = Header::parse(bucket)?;
        work(ROW + header.len / ROWS_PER_UNIT)?;
        self.decoded.set(header.len * VALUE_BYTES * (1 + self.inputs.len()))?;
        let mut columns: Vec<Decoded> = vec![None; self.inputs.len()];
        for (run, key) in self.runs(&header, op)? {
            let at = table.group_of(key.as_ref(), op)?;
            table.each_state(at, |field, state| {
                self.accumulate((field, state), &header, run.clone(), (&mut columns[field], op))
            })?;
        }
        self.decoded.clear();
        Ok(())
    }

    /// The operator is saved.
    pub(super) fn rest(&mut self) {
        self.decoded.rest();
    }

    /// The measurements by their keys, in order.
    fn runs(&self, header: &Header<'_>, op: &OpContext) -> Result<Vec<(Range<usize>, Value)>> {
        let key_at = |ms: i64| {
            self.group
                .id
                .eval(&mut Env::new(self.shared(header, ms).as_raw().as_doc(), op))
        };
        let same = |one: &Value, other: &Value| collation::equal(one.as_ref(), other.as_ref(), op.collator.as_ref());
        let first = key_at(header.begins_ms(&self.series)?)?;
        if same(&first, &key_at(header.last_ms(&self.series)?)?) {
            return Ok(vec![(0..header.len, first)]);
        }
        let times = match header.column(&self.series.time_field)? {
            Some(column) if column.is_full() => column.values,
            _ => Values::Dates(Vec::new()),
        };
        let times = match times {
            Values::Dates(times) if times.len() == header.len => times,
            _ => {
                return Err(nestor_model::Error::bad_value(
                    "a time-series bucket does not tell its times",
                ));
            }
        };
        let are_sorted = times.is_sorted();
        let mut runs = Vec::new();
        let mut from = 0;
        while from < times.len() {
            let key = key_at(times[from])?;
            let mut to = from + 1;
            if are_sorted {
                // Steps that double find a place behind the run; halving what lies between finds its end.
                let (mut step, mut beyond) = (1, times.len());
                while to < beyond {
                    let probe = (to + step).min(times.len()) - 1;
                    if same(&key, &key_at(times[probe])?) {
                        to = probe + 1;
                        step *= 2;
                    } else {
                        beyond = probe;
                        break;
                    }
                }
                while to < beyond {
                    let middle = to + (beyond - to) / 2;
                    match same(&key, &key_at(times[middle])?) {
                        true => to = middle + 1,
                        false => beyond = middle,
                    }
                }
            }
            runs.push((from..to, key));
            from = to;
        }
        Ok(runs)
    }

    /// The time and the metaField of a measurement.
    fn shared(&self, header: &Header<'_>, ms: i64) -> RawDocBuf {
        let mut out = RawWriter::with_capacity(64);
        out.append(&self.series.time_field, ValueRef::DateTime(ms));
        if let (Some(name), Some(meta)) = (self.series.source_field(), header.meta) {
            out.append(name, meta);
        }
        out.into_doc()
    }

    /// Lets the accumulator of an output field take its values of the measurements of a run.
    fn accumulate(
        &self,
        (field, state): (usize, &mut Accumulator),
        header: &Header<'_>,
        run: Range<usize>,
        (decoded, op): (&mut Decoded, &OpContext),
    ) -> Result<()> {
        let name = match (&self.inputs[field], self.group.fields[field].accumulator.only_input()) {
            (ColumnInput::Column(name), _) => name,
            (ColumnInput::Shared, Some(input)) => {
                let document = self.shared(header, 0);
                let value = input.eval(&mut Env::new(document.as_raw().as_doc(), op))?;
                return state.add_times(value.as_ref(), run.len());
            }
            (ColumnInput::Shared, None) => return Ok(()),
        };
        if run.len() == header.len
            && let Some(value) = self.limit(state, header, name)
        {
            return state.add(Val::Ref(value));
        }
        let column = match decoded {
            Some(column) => column,
            none => none.insert(header.column(name)?),
        };
        match column {
            None => state.add_times(ValueRef::Missing, run.len()),
            Some(column) => add_run(state, column, run),
        }
    }

    /// What `$min` or `$max` of a field has of a whole bucket, if its limits tell it: they do of numbers and of dates that are not the
    /// measurements' times. Values of other types may be among those between the limits only if the limits are of different types.
    fn limit<'h>(&self, state: &Accumulator, header: &Header<'h>, name: &str) -> Option<ValueRef<'h>> {
        let Accumulator::Extremum(extremum) = state else {
            return None;
        };
        let (min, max) = (header.min.get(name)?, header.max.get(name)?);
        let is_number = |value: ValueRef<'_>| value.is_number();
        let is_date = |value: ValueRef<'_>| value.bson_type() == BsonType::Date;
        let is_told = (is_number(min) && is_number(max))
            || (is_date(min) && is_date(max) && (name != self.series.time_field || !extremum.is_min()));
        is_told.then_some(if extremum.is_min() { min } else { max })
    }
}

fn add_run(state: &mut Accumulator, column: &Column, run: Range<usize>) -> Result<()> {
    match &column.values {
        Values::Doubles(values) if column.is_full() => state.add_doubles(&values[run]),
        Values::Int32(values) if column.is_full() => state.add_integers(&values[run], false),
        Values::Int64(values) if column.is_full() => state.add_integers(&values[run], true),
        _ => {
            for row in run {
                state.add(column.get(row).map_or(Val::MISSING, Val::Ref))?;
            }
            Ok(())
        }
    }
    .map_err(AccumulatorSpec::group_error)
}
