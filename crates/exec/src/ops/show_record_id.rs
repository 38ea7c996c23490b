//! `showRecordId`: adds `$recordId` to each stored document.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::row::RowDoc;
use nestor_model::{Result, Value};
use nestor_storage::record;

/// Adds the record id: a long, or the encoded `_id` of a clustered collection as binary.
pub struct ShowRecordId {
    input: BoxOperator,
    counters: Counters,
}

impl ShowRecordId {
    /// Over the rows of `input`.
    pub fn new(input: BoxOperator) -> Self {
        Self {
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for ShowRecordId {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let step = self.input.next(batch)?;
        self.counters.pulled(&step);
        let Step::Row(mut row) = step else {
            self.counters.is_eof |= matches!(step, Step::Eof);
            return Ok(step);
        };
        self.counters.advanced += 1;
        if let Some(key) = &row.record {
            let id = match record::record_id(key) {
                Some(id) => Value::Int64(id.0 as i64),
                None => Value::Binary(nestor_model::Binary {
                    subtype: 0,
                    bytes: key.as_slice().into(),
                }),
            };
            let mut doc = row.doc.into_document();
            doc.set("$recordId", id);
            row.doc = RowDoc::Owned(doc);
        }
        Ok(Step::Row(row))
    }

    fn is_done(&self) -> bool {
        self.input.is_done()
    }
    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "SHOW_RECORD_ID"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
