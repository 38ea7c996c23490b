//! The lower half of PROJECTION_COVERED: index entries as documents of just the key's fields.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::row::{Row, RowDoc};
use nestor_model::Result;

/// Makes a document of each index entry.
pub struct Covered {
    input: BoxOperator,
    counters: Counters,
}

impl Covered {
    /// Documents of the entries of `input`.
    pub fn new(input: BoxOperator) -> Self {
        Self {
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for Covered {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        self.counters.works += 1;
        Ok(match self.input.next(batch)? {
            Step::Row(Row {
                doc: RowDoc::Key(entry),
                record,
                meta,
            }) => {
                self.counters.advanced += 1;
                Step::Row(Row {
                    doc: RowDoc::Owned(entry.as_nested_document()?),
                    record,
                    meta,
                })
            }
            Step::Eof => {
                self.counters.is_eof = true;
                Step::Eof
            }
            step => step,
        })
    }

    fn is_done(&self) -> bool {
        self.input.is_done()
    }
    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "PROJECTION_COVERED"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
