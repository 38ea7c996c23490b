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

/// Pulls all rows of `root` and says how many there were. The batch's budget is to be unlimited.
pub fn count_rows(root: &mut dyn Operator, batch: &mut Batch<'_>) -> Result<u64> {
    let mut rows = 0;
    while count_some(root, batch, &mut rows)?.0 != Filled::Eof {}
    Ok(rows)
}

/// Pulls rows once and counts them; how that ended, and how many they were.
fn count_some(root: &mut dyn Operator, batch: &mut Batch<'_>, rows: &mut u64) -> Result<(Filled, usize)> {
    let mut counted = RowBatch::new(Wanted::Number);
    let filled = root.next_batch(batch, &mut counted)?;
    *rows += counted.len() as u64;
    Ok((filled, counted.len()))
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
        loop {
            let (filled, rows) = count_some(&mut *self.input, batch, &mut self.rows)?;
            self.counters.pulled_batch(rows, filled);
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
