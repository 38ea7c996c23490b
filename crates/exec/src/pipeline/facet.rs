//! `$facet`: several pipelines over the same rows, one document out.

use super::PipelineSource;
use super::depth::bounded;
use super::explained::{Explained, explain_facet};
use super::lower::lower;
use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step, Within};
use crate::row::Row;
use nestor_model::{Array, Document, Error, ErrorCode, Result, Str, Value};
use nestor_planner::plan::InnerPlan;
use nestor_planner::{NodeKind, PlanNode};
use std::sync::{Arc, OnceLock};

/// Collects the input, then runs each pipeline over it.
pub(super) struct FacetOp {
    input: BoxOperator,
    /// The plans over the rows.
    inner: Arc<InnerPlan>,
    context: PipelineSource,
    rows: Vec<Row>,
    kept: Kept,
    done: bool,
    /// The rows that the pipelines read, once all of them are there.
    collected: Arc<OnceLock<Vec<Row>>>,
    /// The pipelines, one for each of the plans, when they are explained.
    explained: Vec<Explained>,
    counters: Counters,
}

impl FacetOp {
    /// `probes`: what the pipelines are tried in when they are explained.
    pub(super) fn new(
        input: BoxOperator,
        inner: Arc<InnerPlan>,
        context: PipelineSource,
        probes: Option<&mut Batch<'_>>,
    ) -> Result<Self> {
        let collected = Arc::default();
        let mut explained = Vec::new();
        if let Some(batch) = probes {
            for (_, plan) in pipelines(&inner) {
                explained.push(explain_facet(plan, Replay::of(&collected), &context, batch)?);
            }
        }
        Ok(Self {
            input,
            inner,
            context,
            rows: Vec::new(),
            kept: Kept::default(),
            done: false,
            collected,
            explained,
            counters: Counters::default(),
        })
    }

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<Document> {
        let pipelines = pipelines(&self.inner);
        let mut out = Document::with_capacity(pipelines.len());
        let mut made = Kept::default();
        for (at, (name, plan)) in pipelines.iter().enumerate() {
            let mut own;
            let node = match self.explained.get_mut(at) {
                Some(explained) => &mut explained.root,
                None => {
                    let source = Replay::of(&self.collected);
                    own = bounded(lower(plan, Some(source), batch.view, &self.context)?);
                    &mut own
                }
            };
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
            out.push(name.clone(), Array::new(items));
        }
        Ok(out)
    }
}

/// The plans of the pipelines.
fn pipelines(inner: &InnerPlan) -> &[(Str, PlanNode)] {
    match inner {
        InnerPlan::Facets(pipelines) => pipelines,
        _ => &[],
    }
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
        let rows = std::mem::take(&mut self.rows);
        self.collected.get_or_init(|| rows);
        // The pipelines run to their ends: their rows become one document.
        let mut inner = batch.within(batch.op);
        let doc = self.run(&mut inner)?;
        if self.explained.is_empty() {
            self.collected = Arc::default();
            self.kept.clear();
        }
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
    fn within(&self) -> Vec<Within<'_>> {
        let named = self.explained.iter().zip(pipelines(&self.inner));
        named.map(|(explained, (name, _))| explained.within(name)).collect()
    }
}

/// Gives collected rows again.
pub(super) struct Replay {
    rows: Arc<OnceLock<Vec<Row>>>,
    at: usize,
    counters: Counters,
}

impl Replay {
    pub(super) fn of(rows: &Arc<OnceLock<Vec<Row>>>) -> BoxOperator {
        Box::new(Self {
            rows: rows.clone(),
            at: 0,
            counters: Counters::default(),
        })
    }
}

impl Operator for Replay {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if !batch.spend()? {
            return Ok(Step::Pause);
        }
        let row = self.rows.get().and_then(|rows| rows.get(self.at)).cloned();
        self.at += usize::from(row.is_some());
        Ok(self.counters.gave(row.map_or(Step::Eof, Step::Row)))
    }

    fn save(&mut self) {}

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::Facet, &self.counters)
    }
}
