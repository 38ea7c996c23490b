//! `$rankFusion` and `$scoreFusion`: the documents of several pipelines, by the ranks or the scores that they have in them.
//!
//! Reading order: this file (the operator), [`ranks`] (which rank a row has), [`fused`] (the documents and their scores).

mod fused;
mod ranks;

use fused::{Entry, Fused};
use ranks::Ranks;

use super::PipelineSource;
use super::depth::bounded;
use super::explained::{Explained, explain_facet, explain_on};
use super::facet::Replay;
use super::lower::lower;
use super::open::open;
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step, Within};
use crate::row::Row;
use nestor_model::Result;
use nestor_planner::plan::{InnerPlan, StageNode};
use nestor_planner::{NodeKind, PlanNode};
use nestor_query::stage::{Fusion, FusionMethod};
use std::sync::{Arc, OnceLock};

/// Pulls the pipelines one after the other, then gives the documents.
pub(super) struct FusionOp {
    fusion: Arc<Fusion>,
    /// How the pipelines were planned; `None` where there were too many to plan.
    inner: Option<Arc<InnerPlan>>,
    context: PipelineSource,
    /// The rows that the pipelines read, where those are given.
    given: Option<Given>,
    state: State,
    fused: Fused,
    /// The pipelines when they are explained, and where each is written.
    explained: Vec<(String, Explained)>,
    counters: Counters,
}

/// Rows that are read several times.
struct Given {
    input: BoxOperator,
    rows: Vec<Row>,
    collected: Arc<OnceLock<Vec<Row>>>,
}

enum State {
    /// The rows that are given are collected.
    Collecting,
    /// A pipeline is pulled; it is opened when it is its turn.
    Pulling {
        input: usize,
        open: Option<BoxOperator>,
        ranks: Ranks,
    },
    Giving(std::vec::IntoIter<Entry>),
}

impl FusionOp {
    /// `input`: the rows that the pipelines read, if these are given. `probes`: what the pipelines are tried in when they are explained.
    pub(super) fn new(
        input: BoxOperator,
        fusion: Arc<Fusion>,
        inner: Option<Arc<InnerPlan>>,
        context: PipelineSource,
        probes: Option<&mut Batch<'_>>,
    ) -> Result<Self> {
        let given = matches!(inner.as_deref(), Some(InnerPlan::Facets(_))).then(|| Given {
            input,
            rows: Vec::new(),
            collected: Arc::default(),
        });
        let mut explained = Vec::new();
        if let Some(batch) = probes {
            for (at, input) in fusion.inputs.iter().enumerate() {
                let explain = match (&given, plan(inner.as_deref(), at)) {
                    (Some(given), Some(plan)) => explain_facet(plan, Replay::of(&given.collected), &context, batch)?,
                    (None, Some(plan)) => explain_on(&fusion.namespace, plan, &context, batch)?,
                    (_, None) => continue,
                };
                explained.push((format!("input.pipelines.{}", input.name), explain));
            }
        }
        Ok(Self {
            state: match given {
                Some(_) => State::Collecting,
                None => State::first(),
            },
            fused: Fused::of(&fusion),
            fusion,
            inner,
            context,
            given,
            explained,
            counters: Counters::default(),
        })
    }

    fn open(&self, at: usize, batch: &Batch<'_>) -> Result<BoxOperator> {
        let plan = plan(self.inner.as_deref(), at).filter(|_| self.context.is_current(batch.view));
        let given = self.given.as_ref().map(|given| Replay::of(&given.collected));
        if let Some(plan) = plan {
            return Ok(bounded(lower(plan, given, batch.view, &self.context)?));
        }
        let pipeline = &self.fusion.inputs[at].pipeline;
        let stages = StageNode::all(&pipeline.stages, &pipeline.written);
        let namespace = given.is_none().then_some(&self.fusion.namespace);
        Ok(bounded(open(namespace, stages, given, batch.view, &self.context)?))
    }

    /// Collects a row that is given; the pause if there is one.
    fn collect(&mut self, batch: &mut Batch<'_>) -> Result<Option<Step>> {
        let Some(given) = &mut self.given else {
            self.state = State::first();
            return Ok(None);
        };
        let step = given.input.next(batch)?;
        self.counters.pulled(&step);
        match step {
            Step::Row(row) => {
                self.fused
                    .keep(size_of::<Row>() + row.doc.size(), &self.fusion, batch)?;
                given.rows.push(row);
            }
            Step::Pause => return Ok(Some(Step::Pause)),
            Step::Eof => {
                let rows = std::mem::take(&mut given.rows);
                given.collected.get_or_init(|| rows);
                self.state = State::first();
            }
        }
        Ok(None)
    }

    /// Pulls a row of a pipeline; the pause if there is one.
    fn pull(&mut self, batch: &mut Batch<'_>) -> Result<Option<Step>> {
        let State::Pulling { input, open, .. } = &self.state else {
            return Ok(None);
        };
        let at = *input;
        if at == self.fusion.inputs.len() {
            let entries = self.fused.ordered(&self.fusion, batch.op)?;
            self.state = State::Giving(entries.into_iter());
            return Ok(None);
        }
        if open.is_none() && self.explained.is_empty() {
            let opened = self.open(at, batch)?;
            if let State::Pulling { open, .. } = &mut self.state {
                *open = Some(opened);
            }
        }
        let State::Pulling { open, ranks, .. } = &mut self.state else {
            return Ok(None);
        };
        let explained = self.explained.get_mut(at).map(|(_, explained)| &mut explained.root);
        let Some(root) = explained.or(open.as_mut()) else {
            return Ok(None);
        };
        let step = root.next(batch)?;
        self.counters.pulled(&step);
        match step {
            Step::Row(row) => {
                let rank = ranks.next(&self.fusion.inputs[at].ties, &row)?;
                self.fused.add(&self.fusion, at, rank, row, batch)?;
                Ok(None)
            }
            Step::Pause => Ok(Some(Step::Pause)),
            Step::Eof => {
                self.state = State::Pulling {
                    input: at + 1,
                    open: None,
                    ranks: Ranks::default(),
                };
                Ok(None)
            }
        }
    }
}

impl State {
    fn first() -> Self {
        Self::Pulling {
            input: 0,
            open: None,
            ranks: Ranks::default(),
        }
    }
}

/// The plan of a pipeline.
fn plan(inner: Option<&InnerPlan>, at: usize) -> Option<&PlanNode> {
    match inner? {
        InnerPlan::Facets(plans) | InnerPlan::Inputs(plans) => plans.get(at).map(|(_, plan)| plan),
        _ => None,
    }
}

impl Operator for FusionOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            let step = match &mut self.state {
                State::Collecting => self.collect(batch)?,
                State::Pulling { .. } => self.pull(batch)?,
                State::Giving(entries) => match batch.spend()? {
                    false => Some(Step::Pause),
                    true => Some(match entries.next() {
                        Some(entry) => Step::Row(entry.into_row(&self.fusion)),
                        None => Step::Eof,
                    }),
                },
            };
            match step {
                Some(Step::Pause) => return Ok(Step::Pause),
                Some(step) => return Ok(self.counters.gave(step)),
                None => {}
            }
        }
    }

    fn save(&mut self) {
        self.fused.rest();
        if let Some(given) = &mut self.given {
            given.input.save();
        }
        if let State::Pulling { open: Some(open), .. } = &mut self.state {
            open.save();
        }
    }

    fn report(&self) -> Report<'_> {
        let pulled = match &self.state {
            State::Pulling { input, open, .. } => {
                let explained = self.explained.get(*input).map(|(_, explained)| &*explained.root);
                open.as_deref().or(explained)
            }
            _ => None,
        };
        let kind = match self.fusion.method {
            FusionMethod::Ranks => NodeKind::RankFusion,
            FusionMethod::Scores { .. } => NodeKind::ScoreFusion,
        };
        let report = Report {
            beside: pulled,
            ..Report::new(kind, &self.counters)
        };
        let report = report.holding(self.fused.bytes()).explained_by(self);
        match &self.given {
            Some(given) => report.over(&*given.input),
            None => report,
        }
    }
}

impl Explain for FusionOp {
    fn within(&self) -> Vec<Within<'_>> {
        let explained = self.explained.iter();
        explained.map(|(field, explained)| explained.within(field)).collect()
    }
}
