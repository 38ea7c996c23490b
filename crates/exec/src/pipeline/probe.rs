//! Counting and timing stages, for explain. A probe stands on top of each stage of a pipeline that is explained;
//! no other pipeline has any.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::spill::Spilled;
use nestor_model::{Document, Result, Value};
use std::time::{Duration, Instant};

/// Passes rows on, counts them and takes the time that they took.
pub struct Probe {
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
        match step {
            Ok(Step::Row(_)) => self.counters.advanced += 1,
            Ok(Step::Eof) => self.counters.is_eof = true,
            _ => {}
        }
        step
    }

    fn is_done(&self) -> bool {
        self.input.is_done()
    }
    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        self.input.stage()
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
    fn probe(&self) -> Option<&Probe> {
        Some(self)
    }
}

/// What one stage of an explained pipeline did.
pub struct StageReport {
    /// The stage as explain prints it.
    pub shown: Document,
    /// Rows it gave.
    pub returned: u64,
    /// Time it took, that of the stages below it included.
    pub elapsed: Duration,
    /// Figures of its own.
    pub figures: Document,
}

impl StageReport {
    /// The stage with its figures.
    pub fn into_document(self) -> Document {
        let mut out = self.shown;
        for (name, value) in self.figures.iter() {
            out.push(name, value);
        }
        out.push("nReturned", self.returned as i64);
        let elapsed_ms = i64::try_from(self.elapsed.as_millis()).unwrap_or(i64::MAX);
        out.push("executionTimeMillisEstimate", elapsed_ms);
        out
    }
}

/// What a whole explained pipeline did.
pub struct PipelineReport<'p> {
    /// The plan that the stages read from, with its own report; `None` when the first stage makes the documents.
    pub plan: Option<(&'p dyn Operator, StageReport)>,
    /// The stages on top of it, in order.
    pub stages: Vec<StageReport>,
}

/// Reads the probes of a pipeline that was built to be explained.
pub fn report(root: &dyn Operator) -> PipelineReport<'_> {
    let mut stages = Vec::new();
    let mut plan = None;
    let mut at = Some(root);
    while let Some(probe) = at.and_then(Operator::probe) {
        let mut report = StageReport {
            shown: probe.shown.clone(),
            returned: probe.counters.advanced,
            elapsed: probe.elapsed,
            figures: Document::new(),
        };
        if probe.shown.is_empty() {
            plan = Some((&*probe.input, report));
            break;
        }
        // A stage may be several operators.
        let mut operator: &dyn Operator = &*probe.input;
        let mut spilled: Option<Spilled> = None;
        at = loop {
            operator.stage_fields(&mut report.figures);
            if let Some(restated) = operator.restated() {
                report.shown = restated;
            }
            if let Some(of_this) = operator.spilled() {
                spilled.get_or_insert_default().merge(of_this);
            }
            match operator.inputs().first().copied() {
                Some(below) if below.probe().is_some() => break Some(below),
                Some(below) => operator = below,
                None => break None,
            }
        };
        if let Some(spilled) = spilled {
            spilled.append_to(&mut report.figures, |count| Value::Int64(count as i64));
        }
        stages.push(report);
    }
    stages.reverse();
    PipelineReport { plan, stages }
}
