//! COUNT: rows become their number.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step};
use crate::row::Row;
use crate::row_batch::{Filled, RowBatch, Wanted};
use nestor_model::{Document, Result, Str, Value};
use nestor_planner::NodeKind;

/// One row `{field: number of rows}`, or none when there were no rows (as `$count`).
pub struct Count {
    input: BoxOperator,
    field: Str,
    rows: u64,
    counters: Counters,
}

impl Count {
    /// Counts the rows of `input`.
    pub fn new(input: BoxOperator, field: Str) -> Self {
        Self {
            input,
            field,
            rows: 0,
            counters: Counters::default(),
        }
    }
}

impl Operator for Count {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if self.counters.is_eof {
            return Ok(Step::Eof);
        }
        let mut counted = RowBatch::new(Wanted::Number);
        loop {
            counted.clear();
            let filled = self.input.next_batch(batch, &mut counted)?;
            self.counters.pulled_batch(counted.len(), filled);
            self.rows += counted.len() as u64;
            match filled {
                Filled::Full => {}
                Filled::Pause => return Ok(Step::Pause),
                Filled::Eof => break,
            }
        }
        self.counters.is_eof = true;
        if self.rows == 0 {
            return Ok(Step::Eof);
        }
        self.counters.advanced += 1;
        let count = match i32::try_from(self.rows) {
            Ok(small) => Value::Int32(small),
            Err(_) => Value::Int64(self.rows as i64),
        };
        let mut doc = Document::new();
        doc.push(self.field.clone(), count);
        Ok(Step::Row(Row::computed(doc)))
    }

    fn save(&mut self) {
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::Count, &self.counters).over(&*self.input)
    }
}
