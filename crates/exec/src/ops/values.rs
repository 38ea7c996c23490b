//! Documents that are there already: results of a command given out as a cursor.

use crate::batch::Batch;
use crate::operator::{Counters, Operator, Step};
use crate::row::Row;
use nestor_model::{Document, Result};

/// Gives out a list of documents.
#[derive(Debug)]
pub struct Values {
    rows: std::vec::IntoIter<Document>,
    counters: Counters,
}

impl Values {
    /// These documents, in order.
    pub fn new(documents: Vec<Document>) -> Self {
        Self {
            rows: documents.into_iter(),
            counters: Counters::default(),
        }
    }
}

impl Operator for Values {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if !batch.spend()? {
            return Ok(Step::Pause);
        }
        self.counters.works += 1;
        match self.rows.next() {
            Some(doc) => {
                self.counters.advanced += 1;
                Ok(Step::Row(Row::computed(doc)))
            }
            None => {
                self.counters.is_eof = true;
                Ok(Step::Eof)
            }
        }
    }

    fn is_done(&self) -> bool {
        self.rows.len() == 0
    }

    fn save(&mut self) {}
    fn stage(&self) -> &'static str {
        "QUEUED_DATA"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
}
