//! Rows that are there already: results of a command given out as a cursor, matches found in a table.

use crate::batch::Batch;
use crate::operator::{Counters, Operator, Report, Step};
use crate::row::Row;
use nestor_model::{Document, Result};
use nestor_planner::NodeKind;

/// Gives out a list of documents or rows.
#[derive(Debug)]
pub struct Values<R = Document> {
    rows: std::vec::IntoIter<R>,
    kind: NodeKind,
    counters: Counters,
}

impl Values {
    /// These documents, in order.
    pub fn new(documents: Vec<Document>) -> Self {
        Self::of(NodeKind::QueuedData, documents)
    }
}

impl<R> Values<R> {
    /// These rows, in order, which `kind` made.
    pub fn of(kind: NodeKind, rows: Vec<R>) -> Self {
        Self {
            rows: rows.into_iter(),
            kind,
            counters: Counters::default(),
        }
    }
}

impl<R: Into<Row> + Send> Operator for Values<R> {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if !batch.spend()? {
            return Ok(Step::Pause);
        }
        self.counters.works += 1;
        let row = self.rows.next();
        Ok(self.counters.gave(row.map_or(Step::Eof, |row| Step::Row(row.into()))))
    }

    fn is_done(&self) -> bool {
        self.rows.len() == 0
    }

    fn save(&mut self) {}

    fn report(&self) -> Report<'_> {
        Report::new(self.kind, &self.counters)
    }
}
