//! Operators that make at most one row of each row of one input.

use super::{BoxOperator, Counters, Explain, Operator, Report, Step};
use crate::batch::Batch;
use crate::row::Row;
use crate::row_batch::{Filled, RowBatch};
use nestor_model::{DocRef, Document, Result};
use nestor_planner::NodeKind;

/// The transformation of each row of an input.
pub trait EachRow: Send {
    /// The kind of operator.
    fn kind(&self) -> NodeKind;

    /// The row that `row` becomes; `None` leaves it out. What was read from storage is counted in `counters`;
    /// all else is counted already.
    fn row(&mut self, row: Row, batch: &Batch<'_>, counters: &mut Counters) -> Result<Option<Row>>;

    /// Pulls the next row of `input`, which [`EachRow::row`] is given then. Not counted.
    fn pull(&mut self, input: &mut BoxOperator, batch: &mut Batch<'_>) -> Result<Step> {
        input.next(batch)
    }

    /// As [`Operator::expect`].
    fn expect(&mut self, _rows: usize) {}

    /// As [`Operator::in_any_order`].
    fn in_any_order(&mut self) {}

    /// Whether it gave all that it pulled.
    fn has_all_given(&self) -> bool {
        true
    }

    /// As [`Operator::next_batch`]: appends what becomes of the next rows of `input`, and counts them but for the end. This way
    /// of doing it is right for all; where rows can be looked at without a [`Row`] for each, another one spares much.
    fn rows(&mut self, input: &mut BoxOperator, pull: Pull<'_, '_>, out: &mut RowBatch) -> Result<Filled>
    where
        Self: Sized,
    {
        one_by_one(self, input, pull, out)
    }

    /// As [`Operator::next_documents`].
    fn documents(
        &mut self,
        _input: &mut BoxOperator,
        _pull: Pull<'_, '_>,
        _most: usize,
        _each: &mut dyn FnMut(DocRef<'_>) -> Result<()>,
    ) -> Result<Option<Filled>> {
        Ok(None)
    }

    /// Lets go of storage cursors.
    fn save(&mut self) {}

    /// Adds to the operator's report what is more than its kind, counters and input.
    fn report<'o>(&'o self, report: Report<'o>) -> Report<'o> {
        report
    }

    /// As [`Explain::plan_fields`].
    fn plan_fields(&self, _counters: &Counters, _out: &mut Document) {}

    /// As [`Explain::stage_fields`].
    fn stage_fields(&self, _out: &mut Document) {}

    /// As [`Explain::planned_fields`].
    fn planned_fields(&self, _out: &mut Document) {}
}

/// The arguments of a pull of a batch.
pub struct Pull<'p, 'v> {
    /// The batch that is made for the consumer.
    pub batch: &'p mut Batch<'v>,
    /// Counters of the operator.
    pub counters: &'p mut Counters,
}

/// [`EachRow::rows`] by [`EachRow::row`].
pub fn one_by_one<T: EachRow>(
    each: &mut T,
    input: &mut BoxOperator,
    pull: Pull<'_, '_>,
    out: &mut RowBatch,
) -> Result<Filled> {
    let Pull { batch, counters } = pull;
    while !out.is_full() {
        let step = each.pull(input, batch)?;
        counters.pulled(&step);
        match step {
            Step::Row(row) => {
                if let Some(row) = each.row(row, batch, counters)? {
                    counters.advanced += 1;
                    out.push(row);
                }
            }
            Step::Pause => return Ok(Filled::Pause),
            Step::Eof => return Ok(Filled::Eof),
        }
    }
    Ok(Filled::Full)
}

/// The operator that does `T` with each row. The rows it gives keep the order of its input.
pub struct Each<T> {
    input: BoxOperator,
    each: T,
    counters: Counters,
}

impl<T: EachRow> Each<T> {
    /// Does `each` with the rows of `input`.
    pub(crate) fn over(input: BoxOperator, each: T) -> Self {
        Self {
            input,
            each,
            counters: Counters::default(),
        }
    }
}

impl<T: EachRow> Operator for Each<T> {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            let step = self.each.pull(&mut self.input, batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => {
                    if let Some(row) = self.each.row(row, batch, &mut self.counters)? {
                        self.counters.advanced += 1;
                        return Ok(Step::Row(row));
                    }
                }
                end => return Ok(self.counters.gave(end)),
            }
        }
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        let pull = Pull {
            batch,
            counters: &mut self.counters,
        };
        let filled = self.each.rows(&mut self.input, pull, out)?;
        self.counters.is_eof |= filled == Filled::Eof;
        Ok(filled)
    }

    fn next_documents(
        &mut self,
        batch: &mut Batch<'_>,
        most: usize,
        each: &mut dyn FnMut(DocRef<'_>) -> Result<()>,
    ) -> Result<Option<Filled>> {
        let pull = Pull {
            batch,
            counters: &mut self.counters,
        };
        let filled = self.each.documents(&mut self.input, pull, most, each)?;
        self.counters.is_eof |= filled == Some(Filled::Eof);
        Ok(filled)
    }

    fn expect(&mut self, rows: usize) {
        self.each.expect(rows);
        self.input.expect(rows);
    }

    fn in_any_order(&mut self) {
        self.each.in_any_order();
        self.input.in_any_order();
    }

    fn is_done(&self) -> bool {
        self.each.has_all_given() && self.input.is_done()
    }

    fn save(&mut self) {
        self.each.save();
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(self.each.kind(), &self.counters).over(&*self.input);
        self.each.report(report.explained_by(self))
    }
}

impl<T: EachRow> Explain for Each<T> {
    fn plan_fields(&self, out: &mut Document) {
        self.each.plan_fields(&self.counters, out);
    }

    fn stage_fields(&self, out: &mut Document) {
        self.each.stage_fields(out);
    }

    fn planned_fields(&self, out: &mut Document) {
        self.each.planned_fields(out);
    }
}
