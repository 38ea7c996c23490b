//! Batches: documents encoded as the section of one insert or update command.

use super::Mode;
use nestor_files::records::{BadRecord, Place, Record};
use nestor_model::{RawDoc, RawWriter};

/// Documents per batch at most.
const DOCUMENTS_MAX: usize = 2_000;
/// Bytes after which a batch is full; with one largest document more it still fits a message.
const BYTES_FULL: usize = 2 * 1024 * 1024;

/// What one command writes.
pub struct Batch {
    /// Documents (insert) or update statements (upsert), one after the other.
    pub section: Vec<u8>,
    /// `places[i]` is where statement `i` comes from.
    pub places: Vec<Place>,
}

/// Collects records into batches.
pub struct BatchBuilder {
    mode: Mode,
    section: Vec<u8>,
    places: Vec<Place>,
}

impl BatchBuilder {
    /// Statements for `mode`.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            section: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Takes a record; returns the batch when that filled it.
    pub fn push(&mut self, record: &Record) -> Result<Option<Batch>, BadRecord> {
        match self.mode {
            Mode::Insert => self.section.extend_from_slice(&record.bson),
            Mode::Upsert => self.upsert(record)?,
        }
        self.places.push(record.place);
        let full = self.section.len() >= BYTES_FULL || self.places.len() >= DOCUMENTS_MAX;
        Ok(if full { self.take() } else { None })
    }

    /// What was collected so far, if anything.
    pub fn take(&mut self) -> Option<Batch> {
        if self.places.is_empty() {
            return None;
        }
        let section = std::mem::replace(&mut self.section, Vec::with_capacity(BYTES_FULL));
        Some(Batch {
            section,
            places: std::mem::take(&mut self.places),
        })
    }

    /// Appends the statement `{q: {_id}, u: document, upsert: true}`; a document without `_id` is new anyway,
    /// and an empty filter would replace another one, so it must have one.
    fn upsert(&mut self, record: &Record) -> Result<(), BadRecord> {
        let document = RawDoc::validate(&record.bson).map_err(|m| BadRecord {
            place: Some(record.place),
            reason: m.to_string(),
        })?;
        let Some(id) = document.get("_id") else {
            return Err(BadRecord {
                place: Some(record.place),
                reason: "--mode upsert needs an _id in every document".into(),
            });
        };
        let mut statement = RawWriter::onto(std::mem::take(&mut self.section));
        statement.begin_document("q");
        statement.append("_id", id);
        statement.end();
        statement.append_raw("u", document);
        statement.append("upsert", true);
        self.section = statement.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(line: u64, pad: usize) -> Record {
        let mut writer = RawWriter::new();
        writer.append("_id", line as i64);
        writer.append("pad", "x".repeat(pad).as_str());
        Record {
            place: Place::Line(line),
            bson: writer.finish(),
        }
    }

    #[test]
    fn a_batch_is_full_by_bytes_or_by_count() {
        let mut builder = BatchBuilder::new(Mode::Insert);
        assert!(builder.take().is_none());
        assert!(builder.push(&record(1, BYTES_FULL)).unwrap().is_some());
        let mut full = None;
        for line in 1..=DOCUMENTS_MAX as u64 {
            assert!(full.is_none());
            full = builder.push(&record(line, 1)).unwrap();
        }
        assert_eq!(full.map(|b| b.places.len()), Some(DOCUMENTS_MAX));
        assert!(builder.take().is_none());
    }

    #[test]
    fn an_upsert_statement_filters_by_id() {
        let mut builder = BatchBuilder::new(Mode::Upsert);
        builder.push(&record(7, 1)).unwrap();
        builder.push(&record(8, 1)).unwrap();
        let batch = builder.take().unwrap();
        let first = RawDoc::validate_prefix(&batch.section).unwrap();
        let filter = first
            .get("q")
            .and_then(|q| q.as_document())
            .and_then(|q| q.get("_id"))
            .unwrap();
        assert!(matches!(filter, nestor_model::ValueRef::Int64(7)));
        assert!(RawDoc::validate(&batch.section[first.len()..]).is_ok());
    }

    #[test]
    fn an_upsert_without_id_is_refused() {
        let bson = RawWriter::new().finish();
        let refused = BatchBuilder::new(Mode::Upsert).push(&Record {
            place: Place::Line(3),
            bson,
        });
        assert!(refused.is_err_and(|bad| bad.place == Some(Place::Line(3))));
    }
}
