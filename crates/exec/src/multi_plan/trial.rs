//! The trial run: every candidate gets the same number of units of work, in turns, until one of them has shown
//! enough.

use crate::batch::Batch;
use crate::build::assemble;
use crate::figures::Figures;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Step};
use crate::plan_cache::{Tried, Tuning};
use crate::row::Row;
use crate::summary::memory;
use nestor_model::{Error, ErrorCode, Result};
use nestor_planner::PlanNode;
use nestor_planner::rank::{Performance, score};
use nestor_storage::Collection;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// A candidate on trial: its operators, and the rows that it gave, which are not passed on yet.
pub(super) struct Candidate {
    /// The candidate's position among the plans.
    pub(super) plan: usize,
    pub(super) root: BoxOperator,
    pub(super) rows: VecDeque<Row>,
    /// Of the rows.
    pub(super) kept: Kept,
    pub(super) works: u64,
    /// Set when the operators said that there are no more rows.
    pub(super) is_over: bool,
    micros: u64,
    failed: Option<Error>,
}

/// The outcome of a candidate's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// The candidate goes on at its next turn.
    On,
    /// The candidate gave its last row, or as many as the trial asks for.
    Enough,
    /// The candidate needs more memory than it may have.
    Failed,
}

impl Candidate {
    pub(super) fn new(plan: usize, node: &PlanNode, collection: &Arc<Collection>) -> Result<Self> {
        Ok(Self {
            plan,
            root: assemble(node, collection)?,
            rows: VecDeque::new(),
            kept: Kept::default(),
            works: 0,
            is_over: false,
            micros: 0,
            failed: None,
        })
    }

    /// Does one unit of work. Errors: those of the query; running out of memory is an outcome and no error.
    pub(super) fn work(&mut self, rows_max: usize, batch: &mut Batch<'_>) -> Result<Turn> {
        self.works += 1;
        match batch.lend(1, |batch| self.root.next(batch)) {
            Ok(Step::Row(row)) => {
                self.kept.grow(size_of::<Row>() + row.doc.size())?;
                self.rows.push_back(row);
            }
            Ok(Step::Pause) => {}
            Ok(Step::Eof) => self.is_over = true,
            Err(error) if error.code() == ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed => {
                self.failed = Some(error);
                return Ok(Turn::Failed);
            }
            Err(error) => return Err(error),
        }
        Ok(if self.ended() || self.rows.len() >= rows_max {
            Turn::Enough
        } else {
            Turn::On
        })
    }

    fn ended(&self) -> bool {
        self.is_over || self.root.is_done()
    }

    fn tried(&self, node: &PlanNode) -> Tried {
        let done = Performance {
            works: self.works,
            advanced: self.rows.len() as u64,
            ended: self.ended(),
        };
        Tried {
            plan: self.plan,
            score: self.failed.is_none().then(|| score(node, done)),
            done,
            micros: self.micros,
            figures: Figures::of(&*self.root),
        }
    }
}

/// Candidates that take turns.
pub(super) struct Trial {
    candidates: Vec<Candidate>,
    rows_max: usize,
    works_max: u64,
    /// The position of the candidate whose turn it is.
    at: usize,
    enough: bool,
}

impl Trial {
    /// A trial of `plans`, best guess first. A plan whose index is gone does not take part.
    pub(super) fn new(
        plans: &[PlanNode],
        rows_max: usize,
        tuning: Tuning,
        collection: &Arc<Collection>,
    ) -> Result<Self> {
        let mut candidates = Vec::with_capacity(plans.len());
        let mut gone = None;
        for (plan, node) in plans.iter().enumerate() {
            match Candidate::new(plan, node, collection) {
                Ok(candidate) => candidates.push(candidate),
                Err(error) => gone = Some(error),
            }
        }
        match (candidates.is_empty(), gone) {
            (true, Some(error)) => return Err(error),
            (true, None) => return Err(nestor_planner::find::no_solution("No query solutions")),
            _ => {}
        }
        Ok(Self {
            candidates,
            rows_max,
            works_max: tuning.works_max(collection.state.documents()),
            at: 0,
            enough: false,
        })
    }

    /// Goes on; `false` when the batch's budget was used up before there is a decision.
    pub(super) fn run(&mut self, batch: &mut Batch<'_>) -> Result<bool> {
        loop {
            // A round is always completed, so that all candidates had the same number of turns.
            if self.at == self.candidates.len() {
                self.at = 0;
                let works = self.candidates.iter().map(|c| c.works).max().unwrap_or(0);
                let all_failed = self.candidates.iter().all(|c| c.failed.is_some());
                if self.enough || all_failed || works >= self.works_max {
                    return Ok(true);
                }
            }
            if batch.budget() == 0 {
                return Ok(false);
            }
            let candidate = &mut self.candidates[self.at];
            if candidate.failed.is_none() {
                let started = Instant::now();
                let turn = candidate.work(self.rows_max, batch)?;
                candidate.micros += u64::try_from(started.elapsed().as_micros()).unwrap_or(0);
                self.enough |= turn == Turn::Enough;
            }
            self.at += 1;
        }
    }

    /// The winner, and how all of them did, in the order of their ranks. The error of a candidate when all failed.
    pub(super) fn decide(self, plans: &[PlanNode]) -> Result<(Candidate, Vec<Tried>)> {
        let mut ranked: Vec<(Tried, Candidate)> = Vec::with_capacity(self.candidates.len());
        for candidate in self.candidates {
            ranked.push((candidate.tried(&plans[candidate.plan]), candidate));
        }
        // Stable: the order of the plans decides among equals. No score is below every score.
        ranked.sort_by(|(a, _), (b, _)| match (a.score, b.score) {
            (Some(a), Some(b)) => b.total_cmp(&a),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        let (tried, mut candidates): (Vec<Tried>, Vec<Candidate>) = ranked.into_iter().unzip();
        let winner = candidates.swap_remove(0);
        match winner.failed {
            Some(error) => Err(error),
            None => Ok((winner, tried)),
        }
    }

    pub(super) fn save(&mut self) {
        for candidate in &mut self.candidates {
            candidate.save();
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.candidates.iter().map(Candidate::memory).sum()
    }
}

impl Candidate {
    pub(super) fn memory(&self) -> usize {
        memory(&*self.root) + self.kept.bytes()
    }

    pub(super) fn save(&mut self) {
        self.kept.rest();
        self.root.save();
    }
}
