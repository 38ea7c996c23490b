//! The first of the rows that are equal.

use super::groups::{Groups, first_rows};
use super::{BoxRows, Drained, Rows, Run};
use crate::kept::Kept;
use nestor_model::Result;
use nestor_model::statement::{ROW, Scope, work};
use nestor_planner::relation::{Chunk, Scalar, Tuple};

struct Distinct<S> {
    input: BoxRows<S>,
    /// The rows that were given, as groups of those that are equal.
    seen: Groups<S>,
    kept: Kept,
    waiting: Drained,
}

pub(super) fn distinct<S: Scalar>(input: BoxRows<S>, on: &[S]) -> BoxRows<S> {
    Box::new(Distinct {
        input,
        seen: Groups::new(on, &[(0..on.len()).collect()]),
        kept: Kept::default(),
        waiting: Drained::default(),
    })
}

impl<S: Scalar> Rows<S> for Distinct<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let row = waiting.next(|| self.next_chunk(run));
        self.waiting = waiting;
        row
    }

    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        if let Some(rest) = self.waiting.rest() {
            return Ok(Some(rest));
        }
        let mut numbers = Vec::new();
        while let Some(chunk) = self.input.next_chunk(run)? {
            work(ROW / 2 * chunk.rows)?;
            let _values = Scope::begin();
            let keys = self.seen.keys(&chunk, &run.env)?;
            let known = self.seen.len();
            self.kept.grow(self.seen.find(0, &keys, chunk.rows, &mut numbers))?;
            let new = first_rows(&numbers, known);
            if !new.is_empty() {
                return Ok(Some(chunk.gather(&new)));
            }
        }
        Ok(None)
    }
}
