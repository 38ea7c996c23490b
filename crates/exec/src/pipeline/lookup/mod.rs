//! `$lookup`: each row with the array of its matches in another collection; or, when an `$unwind` of that array
//! follows, a row for each match without ever making the array.

mod matches;
mod unwinding;

pub(super) use matches::one_field;
pub(super) use unwinding::{LookupUnwindOp, absorb};

use super::PipelineSource;
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::reads::Reads;
use crate::row::{Row, RowDoc};
use matches::Finder;
use nestor_model::{Array, Document, PathPart, Result, Value};
use nestor_query::stage::Lookup;
use std::sync::Arc;

/// Joins each row.
pub(super) struct LookupOp {
    input: BoxOperator,
    finder: Finder,
    counters: Counters,
}

impl LookupOp {
    pub(super) fn new(input: BoxOperator, lookup: Arc<Lookup>, context: PipelineSource) -> Self {
        Self {
            input,
            finder: Finder::new(lookup, None, context),
            counters: Counters::default(),
        }
    }

    fn join(&mut self, row: Row, batch: &Batch<'_>) -> Result<Row> {
        let mut matches = self.finder.find(row.as_doc(), batch)?;
        let mut all = Vec::new();
        while let Some(value) = self.finder.next(&mut matches, batch)? {
            all.push(value);
        }
        let meta = row.meta;
        let mut doc = row.doc.into_document();
        let array = Value::Array(Array::new(all));
        set_path(&mut doc, self.finder.lookup.as_path.parts(), array);
        Ok(Row {
            doc: RowDoc::Owned(doc),
            record: None,
            meta,
        })
    }
}

impl Finder {
    /// What explain shows of finding.
    fn stage_fields(&self, out: &mut Document) {
        if self.lookup.join.is_some() {
            out.push("strategy", self.strategy_name());
        }
        out.push("totalDocsExamined", self.reads.docs_examined as i64);
        out.push("totalKeysExamined", self.reads.keys_examined as i64);
        out.push("collectionScans", self.reads.collection_scans as i64);
        let indexes = self.reads.indexes_used.iter().map(|name| Value::from(name.as_str()));
        out.push("indexesUsed", indexes.collect::<Vec<Value>>());
    }
}

/// Sets the field at a path, making documents on the way, in place of what is no document, arrays included.
pub(super) fn set_path(doc: &mut Document, parts: &[PathPart], value: Value) {
    let Some((part, rest)) = parts.split_first() else {
        return;
    };
    if rest.is_empty() {
        doc.set(&part.name, value);
        return;
    }
    let fields = doc.fields_mut();
    let at = match fields.iter().position(|(name, _)| *name == part.name) {
        Some(at) => at,
        None => {
            fields.push((part.name.clone(), Value::Document(Document::new())));
            fields.len() - 1
        }
    };
    let slot = &mut fields[at].1;
    match slot {
        Value::Document(inner) => set_path(inner, rest, value),
        _ => {
            let mut inner = Document::new();
            set_path(&mut inner, rest, value);
            *slot = Value::Document(inner);
        }
    }
}

impl Operator for LookupOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        self.counters.works += 1;
        match self.input.next(batch)? {
            Step::Row(row) => {
                let row = self.join(row, batch)?;
                self.counters.advanced += 1;
                Ok(Step::Row(row))
            }
            Step::Eof => {
                self.counters.is_eof = true;
                Ok(Step::Eof)
            }
            Step::Pause => Ok(Step::Pause),
        }
    }

    fn is_done(&self) -> bool {
        self.input.is_done()
    }
    fn save(&mut self) {
        // What was collected of the other collection stays, as it does for sorts and groups.
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "$lookup"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn stage_fields(&self, out: &mut Document) {
        self.finder.stage_fields(out);
    }
    fn add_reads(&self, reads: &mut Reads) {
        reads.merge(&self.finder.reads);
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
