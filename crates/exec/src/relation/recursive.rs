//! Rows that grow from rows, and rows that are read at several places.

use super::key::{self, RowKey};
use super::store::Store;
use super::{BoxRows, Rows, Run, build, row_done, weight};
use crate::kept::Kept;
use nestor_model::Result;
use nestor_planner::relation::{Recursive, Relation, Scalar, Tuple};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

struct Growing<S> {
    id: usize,
    base: Option<BoxRows<S>>,
    step: Relation<S>,
    numbering: (usize, bool),
    running: Option<BoxRows<S>>,
    distinct: Option<Vec<S>>,
    /// The rows that came, which stay in memory.
    seen: HashSet<RowKey>,
    kept: Kept,
    /// What this step gave so far.
    fresh: Store,
    /// What the step before gave, which stands in `Run::shared` while this step runs.
    done: bool,
}

pub(super) fn recursive<S: Scalar>(plan: &Recursive<S>, base: BoxRows<S>, numbering: (usize, bool)) -> BoxRows<S> {
    Box::new(Growing {
        id: plan.id,
        base: Some(base),
        step: plan.step.clone(),
        numbering,
        running: None,
        distinct: plan.distinct.clone(),
        seen: HashSet::new(),
        kept: Kept::default(),
        fresh: Store::default(),
        done: false,
    })
}

impl<S: Scalar> Rows<S> for Growing<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        loop {
            if self.done {
                return Ok(None);
            }
            let input = match (&mut self.base, &mut self.running) {
                (Some(base), _) => base,
                (None, Some(step)) => step,
                (None, None) => {
                    if self.fresh.len() == 0 {
                        run.shared.remove(self.id);
                        self.done = true;
                        return Ok(None);
                    }
                    let mut fresh = std::mem::take(&mut self.fresh);
                    fresh.finish(run)?;
                    run.shared.put(self.id, Rc::new(fresh));
                    let (mut number, counts) = self.numbering;
                    self.running.insert(build::node(&self.step, &mut number, counts))
                }
            };
            match input.next(run)? {
                Some(row) => {
                    row_done()?;
                    if let Some(on) = &self.distinct {
                        let key = key::of(on, &row, &run.env)?;
                        let bytes = weight(&key.0);
                        if !self.seen.insert(key) {
                            continue;
                        }
                        // There is no other place for them: only what all statements hold is a limit.
                        self.kept.grow_within(run.batch.room(), bytes)?;
                    }
                    self.fresh.push(row.clone(), run)?;
                    return Ok(Some(row));
                }
                None => (self.base, self.running) = (None, None),
            }
        }
    }
}

struct Working {
    id: usize,
    rows: Option<Rc<Store>>,
    at: usize,
}

pub(super) fn working<S: Scalar>(id: usize) -> BoxRows<S> {
    Box::new(Working { id, rows: None, at: 0 })
}

impl<S> Rows<S> for Working {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.rows.is_none() {
            self.rows = run.shared.get(self.id);
        }
        row_done()?;
        let Some(rows) = &self.rows else { return Ok(None) };
        let row = rows.get(self.at)?.map(|row| row.to_vec());
        self.at += usize::from(row.is_some());
        Ok(row)
    }
}

struct SharedRows<S> {
    id: usize,
    plan: Arc<Relation<S>>,
    numbering: (usize, bool),
    rows: Option<Rc<Store>>,
    at: usize,
}

pub(super) fn shared<S: Scalar>(id: usize, plan: &Arc<Relation<S>>, numbering: (usize, bool)) -> BoxRows<S> {
    Box::new(SharedRows {
        id,
        plan: plan.clone(),
        numbering,
        rows: None,
        at: 0,
    })
}

impl<S: Scalar> Rows<S> for SharedRows<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let rows = match &self.rows {
            Some(rows) => rows,
            None => {
                let rows = match run.shared.get(self.id) {
                    Some(rows) => rows,
                    None => {
                        let (mut number, counts) = self.numbering;
                        let mut root = build::node(&self.plan, &mut number, counts);
                        let mut rows = Store::default();
                        while let Some(row) = root.next(run)? {
                            rows.push(row, run)?;
                        }
                        rows.finish(run)?;
                        let rows = Rc::new(rows);
                        run.shared.put(self.id, rows.clone());
                        rows
                    }
                };
                self.rows.insert(rows)
            }
        };
        row_done()?;
        let row = rows.get(self.at)?.map(|row| row.to_vec());
        self.at += usize::from(row.is_some());
        Ok(row)
    }
}
