//! Counting and timing stages, for explain. A probe stands on top of each stage of a pipeline that is explained;
//! no other pipeline has any.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step, Stopwatch, Within};
use crate::row_batch::{Filled, RowBatch};
use crate::spill::Spilled;
use nestor_model::{Document, Result, Value};
use std::time::{Duration, Instant};

/// Passes rows on, counts them and takes the time that they took.
pub(super) struct Probe {
    input: BoxOperator,
    /// The stage as explain prints it; empty on top of the plan that the stages read from.
    shown: Document,
    counters: Counters,
    elapsed: Duration,
}

impl Probe {
    pub(super) fn new(input: BoxOperator, shown: Document) -> Self {
        Self {
            input,
            shown,
            counters: Counters::default(),
            elapsed: Duration::ZERO,
        }
    }
}

impl Operator for Probe {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let begun = Instant::now();
        let step = self.input.next(batch);
        self.elapsed += begun.elapsed();
        Ok(self.counters.gave(step?))
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        let (begun, before) = (Instant::now(), out.len());
        let filled = self.input.next_batch(batch, out);
        self.elapsed += begun.elapsed();
        let filled = filled?;
        self.counters.advanced += (out.len() - before) as u64;
        self.counters.is_eof |= filled == Filled::Eof;
        Ok(filled)
    }

    fn expect(&mut self, rows: usize) {
        self.input.expect(rows);
    }

    fn save(&mut self) {
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        let kind = self.input.report().kind;
        Report {
            stopwatch: Some(Stopwatch {
                shown: &self.shown,
                elapsed: self.elapsed,
            }),
            ..Report::new(kind, &self.counters).over(&*self.input)
        }
    }
}

/// The figures of one stage of an explained pipeline.
pub struct StageReport<'p> {
    /// The stage as explain prints it.
    pub shown: Document,
    /// Rows it gave.
    pub returned: u64,
    /// Time it took, that of the stages below it included.
    pub elapsed: Duration,
    /// How it runs, as far as that is decided.
    pub planned: Document,
    /// Figures of its own.
    pub figures: Document,
    /// The pipelines that it runs.
    pub within: Vec<Within<'p>>,
}

impl StageReport<'_> {
    /// The stage with its figures.
    pub fn into_document(self) -> Document {
        let mut out = self.shown;
        for (name, value) in self.planned.iter().chain(self.figures.iter()) {
            out.push(name, value);
        }
        out.push("nReturned", self.returned as i64);
        let elapsed_ms = i64::try_from(self.elapsed.as_millis()).unwrap_or(i64::MAX);
        out.push("executionTimeMillisEstimate", elapsed_ms);
        out
    }
}

/// The figures of a whole explained pipeline.
pub struct PipelineReport<'p> {
    /// The plan that the stages read from, with its own report; `None` when the first stage makes the documents.
    pub plan: Option<(&'p dyn Operator, StageReport<'p>)>,
    /// The stages on top of it, in order.
    pub stages: Vec<StageReport<'p>>,
}

/// Reads the probes of a pipeline that was built to be explained.
pub fn report(root: &dyn Operator) -> PipelineReport<'_> {
    let mut stages = Vec::new();
    let mut plan = None;
    let mut at = Some(root.report());
    while let Some((probe, watch)) = at.and_then(|probe| Some((probe, probe.stopwatch?))) {
        let mut report = StageReport {
            shown: watch.shown.clone(),
            returned: probe.counters.advanced,
            elapsed: watch.elapsed,
            planned: Document::new(),
            figures: Document::new(),
            within: Vec::new(),
        };
        let below = probe.inputs().next();
        if watch.shown.is_empty() {
            plan = below.map(|plan| (plan, report));
            break;
        }
        // A stage may be several operators.
        let mut spilled: Option<Spilled> = None;
        at = below.map(Operator::report);
        while let Some(operator) = at.filter(|operator| operator.stopwatch.is_none()) {
            if let Some(explain) = operator.explain {
                explain.planned_fields(&mut report.planned);
                explain.stage_fields(&mut report.figures);
                report.within.extend(explain.within());
            }
            if let Some(of_this) = operator.spilled {
                spilled.get_or_insert_default().merge(of_this);
            }
            at = operator.inputs().next().map(Operator::report);
        }
        if let Some(spilled) = spilled {
            spilled.append_to(&mut report.figures, |count| Value::Int64(count as i64));
        }
        stages.push(report);
    }
    stages.reverse();
    PipelineReport { plan, stages }
}
