//! `$lookup` with the `$unwind` of its array right behind: the matches go out one by one.
//!
//! An outer document that is bytes, without the field and its position, stays bytes: each row is those bytes and the match behind them.

use super::matches::{Finder, Match, Matches};
use super::{begun_with, new_field, set_path};
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step};
use crate::pipeline::PipelineSource;
use crate::row::{Row, RowDoc};
use nestor_model::{Array, Document, Result, Str, Value};
use nestor_planner::NodeKind;
use nestor_planner::plan::{InnerPlan, LookupUnwind};
use nestor_query::env::DocMeta;
use nestor_query::stage::Unwind;
use std::sync::Arc;

/// Gives a row for each match of each row.
pub(in crate::pipeline) struct LookupUnwindOp {
    input: BoxOperator,
    finder: Finder,
    unwind: Arc<Unwind>,
    /// The rest of the last row.
    current: Option<Current>,
    counters: Counters,
}

struct Current {
    outer: Outer,
    meta: Option<Box<DocMeta>>,
    matches: Matches,
    /// The next match: one with none behind it needs no copy of the row.
    ahead: Match,
}

/// The document that each match is put into.
enum Outer {
    /// A document that each row begins with, and the field for the match.
    Bytes(RowDoc, Str),
    /// A document with something small in place of the match, and the position of the match ahead.
    Fields(Document, i64),
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
        let path = self.finder.lookup.as_path.parts();
        let Some(ahead) = first else {
            let mut base = row.doc.into_document();
            set_path(&mut base, path, Value::Array(Array::new(Vec::new())));
            let mut unwound = self.unwind.start(base);
            return Ok(self.unwind.next(&mut unwound).map(|doc| computed(doc, meta)));
        };
        let name = new_field(row.doc.as_doc(), path).filter(|_| self.unwind.index().is_none());
        let outer = match name {
            Some(name) => Outer::Bytes(row.doc, name.into()),
            None => {
                let mut base = row.doc.into_document();
                set_path(&mut base, path, Value::Null);
                Outer::Fields(base, 0)
            }
        };
        self.current = Some(Current {
            outer,
            meta,
            matches,
            ahead,
        });
        Ok(None)
    }

    /// The row of the match ahead.
    fn emit(&mut self, batch: &Batch<'_>) -> Result<Option<Row>> {
        let Some(mut current) = self.current.take() else {
            return Ok(None);
        };
        let next = self.finder.next(&mut current.matches, batch)?;
        let doc = match &mut current.outer {
            Outer::Bytes(outer, name) => {
                let mut writer = begun_with(outer.as_doc());
                writer.append(name, current.ahead.as_ref());
                RowDoc::Raw(writer.into_doc())
            }
            Outer::Fields(base, at) => {
                let mut doc = match next {
                    Some(_) => base.clone(),
                    None => std::mem::take(base),
                };
                self.unwind.put(&mut doc, current.ahead.into_value(), *at);
                *at += 1;
                RowDoc::Owned(doc)
            }
        };
        let mut row = Row {
            doc,
            record: None,
            meta: None,
        };
        match next {
            None => row.meta = current.meta,
            Some(next) => {
                row.meta.clone_from(&current.meta);
                current.ahead = next;
                self.current = Some(current);
            }
        }
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
