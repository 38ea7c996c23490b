//! The first of the rows that are equal.

use super::key::{self, RowKey};
use super::{BoxRows, Rows, Run, row_done, weight};
use crate::kept::Kept;
use nestor_model::Result;
use nestor_planner::relation::{Scalar, Tuple};
use std::collections::HashSet;

struct Distinct<S> {
    input: BoxRows<S>,
    on: Vec<S>,
    seen: HashSet<RowKey>,
    kept: Kept,
}

pub(super) fn distinct<S: Scalar>(input: BoxRows<S>, on: &[S]) -> BoxRows<S> {
    Box::new(Distinct {
        input,
        on: on.to_vec(),
        seen: HashSet::new(),
        kept: Kept::default(),
    })
}

impl<S: Scalar> Rows<S> for Distinct<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        while let Some(row) = self.input.next(run)? {
            row_done()?;
            let key = key::of(&self.on, &row, &run.env)?;
            let bytes = weight(&key.0);
            if self.seen.insert(key) {
                self.kept.grow(bytes)?;
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
