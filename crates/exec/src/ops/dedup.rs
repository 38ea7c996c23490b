//! What operators share that may meet a record several times: it comes out once.

use crate::row::Row;
use nestor_model::{Document, Value};
use nestor_storage::Bytes;
use std::collections::HashSet;

/// The records that came out so far.
#[derive(Debug, Default)]
pub(super) struct Dedup {
    seen: HashSet<Bytes>,
    tested: u64,
    dropped: u64,
}

impl Dedup {
    /// Whether the row is the first one of its record. Rows without a record are no duplicates.
    pub(super) fn is_new(&mut self, row: &Row) -> bool {
        row.record.as_ref().is_none_or(|record| self.is_new_record(record))
    }

    /// Whether the record did not come out before.
    pub(super) fn is_new_record(&mut self, record: &Bytes) -> bool {
        self.tested += 1;
        let new = self.seen.insert(record.clone());
        self.dropped += u64::from(!new);
        new
    }

    /// `dupsTested` and `dupsDropped` of explain.
    pub(super) fn plan_fields(&self, out: &mut Document) {
        out.push("dupsTested", Value::count(self.tested));
        out.push("dupsDropped", Value::count(self.dropped));
    }

    /// Bytes it holds, about.
    pub(super) fn memory(&self) -> usize {
        self.seen.len() * 48
    }
}
