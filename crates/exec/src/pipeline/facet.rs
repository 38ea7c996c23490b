//! `$facet`: several pipelines over the same rows, one document out.

use super::depth::bounded;
use super::lower::{lower, lower_probed};
use super::{PipelineSource, report};
use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step};
use crate::row::Row;
use nestor_model::{Array, Document, Error, ErrorCode, Result, Value, doc};
use nestor_planner::NodeKind;
use nestor_planner::pipeline::InnerPlan;
use std::sync::Arc;

/// Collects the input, then runs each pipeline over it.
pub(super) struct FacetOp {
    input: BoxOperator,
    /// The plans over the rows.
    inner: Arc<InnerPlan>,
    context: PipelineSource,
    rows: Vec<Row>,
    kept: Kept,
    done: bool,
    /// For each pipeline its stages with their figures, when they are to be explained.
    explained: Document,
    counters: Counters,
}

impl FacetOp {
    pub(super) fn new(input: BoxOperator, inner: Arc<InnerPlan>, context: PipelineSource) -> Self {
        Self {
            input,
            inner,
            context,
            rows: Vec::new(),
            kept: Kept::default(),
            done: false,
            explained: Document::new(),
            counters: Counters::default(),
        }
    }

    fn run(&mut self, rows: &Arc<Vec<Row>>, batch: &mut Batch<'_>) -> Result<Document> {
        let pipelines = match &*self.inner {
            InnerPlan::Facets(pipelines) => pipelines.as_slice(),
            _ => &[],
        };
        let mut out = Document::with_capacity(pipelines.len());
        let mut made = Kept::default();
        for (name, plan) in pipelines {
            let source = Box::new(Replay {
                rows: rows.clone(),
                at: 0,
                counters: Counters::default(),
            });
            let mut node = if batch.explains {
                lower_probed(plan, source, &self.context)?
            } else {
                lower(plan, Some(source), batch.view, &self.context)?
            };
            node = bounded(node);
            let mut items = Vec::new();
            loop {
                match node.next(batch)? {
                    Step::Row(row) => {
                        made.grow(size_of::<Value>() + row.doc.size())?;
                        if made.bytes() > batch.memory_bytes_max {
                            return Err(too_large(batch.memory_bytes_max));
                        }
                        items.push(Value::Document(row.doc.into_document()));
                    }
                    Step::Eof => break,
                    // The rows are in memory: what little is left is done within this batch.
                    Step::Pause => batch.interrupt.check()?,
                }
            }
            if batch.explains {
                self.explained.push(name.clone(), explained(&*node));
            }
            out.push(name.clone(), Array::new(items));
        }
        Ok(out)
    }
}

/// A pipeline that ran, as explain prints it: first what gives it the rows.
fn explained(root: &dyn Operator) -> Array {
    let report = report(root);
    let replay = report.plan.map(|(_, mut replay)| {
        replay.shown = doc! { "$teeConsumer": doc! {} };
        replay
    });
    let stages = replay.into_iter().chain(report.stages);
    stages.map(|stage| Value::Document(stage.into_document())).collect()
}

fn too_large(limit: usize) -> Error {
    Error::new(
        ErrorCode::ExceededMemoryLimit,
        format!("$facet exceeded its memory limit of {limit} bytes"),
    )
}

impl Operator for FacetOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if self.done {
            return Ok(self.counters.gave(Step::Eof));
        }
        loop {
            let step = self.input.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => {
                    self.kept.grow(size_of::<Row>() + row.doc.size())?;
                    if self.kept.bytes() > batch.memory_bytes_max {
                        return Err(too_large(batch.memory_bytes_max));
                    }
                    self.rows.push(row);
                }
                Step::Pause => return Ok(Step::Pause),
                Step::Eof => break,
            }
        }
        self.done = true;
        let rows = Arc::new(std::mem::take(&mut self.rows));
        // The pipelines run to their ends: their rows become one document.
        let mut inner = batch.within(batch.op);
        let doc = self.run(&rows, &mut inner)?;
        drop(rows);
        self.kept.clear();
        self.counters.advanced += 1;
        Ok(Step::Row(Row::computed(doc)))
    }

    fn save(&mut self) {
        self.kept.rest();
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::Facet, &self.counters).over(&*self.input);
        report.holding(self.kept.bytes()).explained_by(self)
    }
}

impl Explain for FacetOp {
    fn restated(&self) -> Option<Document> {
        let ran = !self.explained.is_empty();
        ran.then(|| doc! { "$facet": self.explained.clone() })
    }
}

/// Gives collected rows again.
struct Replay {
    rows: Arc<Vec<Row>>,
    at: usize,
    counters: Counters,
}

impl Operator for Replay {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if !batch.spend()? {
            return Ok(Step::Pause);
        }
        let row = self.rows.get(self.at).cloned();
        self.at += usize::from(row.is_some());
        Ok(self.counters.gave(row.map_or(Step::Eof, Step::Row)))
    }

    fn save(&mut self) {}

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::Facet, &self.counters)
    }
}
