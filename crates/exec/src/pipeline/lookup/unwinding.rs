//! `$lookup` with the `$unwind` of its array right behind: the matches go out one by one.

use super::matches::{Finder, Matches};
use super::set_path;
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step};
use crate::pipeline::PipelineSource;
use crate::row::{Row, RowDoc};
use nestor_model::{Array, Document, Result, Value};
use nestor_planner::NodeKind;
use nestor_planner::pipeline::{InnerPlan, LookupUnwind};
use nestor_query::env::DocMeta;
use nestor_query::stage::Unwind;
use std::sync::Arc;

/// Gives a row for each match of each row.
pub(in crate::pipeline) struct LookupUnwindOp {
    input: BoxOperator,
    finder: Finder,
    unwind: Arc<Unwind>,
    /// What is left of the last row.
    current: Option<Current>,
    counters: Counters,
}

struct Current {
    /// The row with something small in place of the match.
    base: Document,
    meta: Option<Box<DocMeta>>,
    matches: Matches,
    /// The next match and its position: a match with none behind it needs no copy of the row.
    ahead: Value,
    at: i64,
}

impl LookupUnwindOp {
    pub(in crate::pipeline) fn new(
        input: BoxOperator,
        join: &LookupUnwind,
        inner: Option<Arc<InnerPlan>>,
        context: PipelineSource,
    ) -> Self {
        Self {
            input,
            finder: Finder::new(join.lookup.clone(), join.filter.as_ref(), inner, context),
            unwind: join.unwind.clone(),
            current: None,
            counters: Counters::default(),
        }
    }

    /// Begins with a row; one without a match may go out at once.
    fn begin(&mut self, row: Row, batch: &Batch<'_>) -> Result<Option<Row>> {
        let mut matches = self.finder.find(row.as_doc(), batch)?;
        let first = self.finder.next(&mut matches, batch)?;
        let meta = row.meta;
        let mut base = row.doc.into_document();
        let path = self.finder.lookup.as_path.parts();
        let Some(ahead) = first else {
            set_path(&mut base, path, Value::Array(Array::new(Vec::new())));
            let mut unwound = self.unwind.start(base);
            return Ok(self.unwind.next(&mut unwound).map(|doc| computed(doc, meta)));
        };
        set_path(&mut base, path, Value::Null);
        self.current = Some(Current {
            base,
            meta,
            matches,
            ahead,
            at: 0,
        });
        Ok(None)
    }

    /// The row of the match ahead.
    fn emit(&mut self, batch: &Batch<'_>) -> Result<Option<Row>> {
        let Some(mut current) = self.current.take() else {
            return Ok(None);
        };
        let Some(next) = self.finder.next(&mut current.matches, batch)? else {
            let mut doc = current.base;
            self.unwind.put(&mut doc, current.ahead, current.at);
            return Ok(Some(computed(doc, current.meta)));
        };
        let mut doc = current.base.clone();
        let value = std::mem::replace(&mut current.ahead, next);
        self.unwind.put(&mut doc, value, current.at);
        let row = computed(doc, current.meta.clone());
        current.at += 1;
        self.current = Some(current);
        Ok(Some(row))
    }
}

fn computed(doc: Document, meta: Option<Box<DocMeta>>) -> Row {
    Row {
        doc: RowDoc::Owned(doc),
        record: None,
        meta,
    }
}

impl Operator for LookupUnwindOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if self.current.is_some() {
                // Many matches are much work for one row of the input.
                if !batch.spend()? {
                    return Ok(Step::Pause);
                }
                if let Some(row) = self.emit(batch)? {
                    self.counters.advanced += 1;
                    return Ok(Step::Row(row));
                }
            }
            let step = self.input.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => {
                    if let Some(row) = self.begin(row, batch)? {
                        self.counters.advanced += 1;
                        return Ok(Step::Row(row));
                    }
                }
                end => return Ok(self.counters.gave(end)),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.current.is_none() && self.input.is_done()
    }
    fn save(&mut self) {
        self.finder
            .save(self.current.as_mut().map(|current| &mut current.matches));
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::Lookup, &self.counters).over(&*self.input);
        self.finder.add_to(report.explained_by(self))
    }
}

impl Explain for LookupUnwindOp {
    fn stage_fields(&self, out: &mut Document) {
        self.finder.stage_fields(out);
    }

    fn planned_fields(&self, out: &mut Document) {
        self.finder.planned_fields(out);
    }
}
