//! The first of the rows that are equal. When those that were met take too much memory, rows that were not met go to files, which are looked at in the end.

use super::apart::{Apart, LEVEL_MAX, Waiting};
use super::groups::{Groups, first_rows};
use super::{BoxRows, Drained, Rows, Run};
use crate::kept::Kept;
use nestor_model::Result;
use nestor_model::statement::{ROW, Scope, work};
use nestor_planner::relation::{Chunk, Scalar, Tuple};

struct Distinct<S> {
    input: BoxRows<S>,
    on: Vec<S>,
    /// The rows that were given, as groups of those that are equal.
    seen: Groups<S>,
    kept: Kept,
    waiting: Drained,
    /// There is no room for more: rows that were not met go to files.
    apart: Option<Apart>,
    /// Rows of files, to be looked at when all of the input has been.
    files: Vec<Waiting>,
    /// How often the rows of the input were divided.
    level: u32,
}

fn none<S: Scalar>(on: &[S]) -> Groups<S> {
    Groups::new(on, &[(0..on.len()).collect()])
}

pub(super) fn distinct<S: Scalar>(input: BoxRows<S>, on: &[S]) -> BoxRows<S> {
    Box::new(Distinct {
        input,
        seen: none(on),
        on: on.to_vec(),
        kept: Kept::default(),
        waiting: Drained::default(),
        apart: None,
        files: Vec::new(),
        level: 0,
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
        loop {
            let room = run.batch.room().filter(|_| self.level < LEVEL_MAX);
            while let Some(chunk) = self.input.next_chunk(run)? {
                let _values = Scope::begin();
                if let Some(apart) = &mut self.apart {
                    let seen = &mut self.seen;
                    apart.divide(&self.on, |keys, rows| seen.known(keys, rows), &chunk, run)?;
                    continue;
                }
                work(ROW / 2 * chunk.rows)?;
                let keys = self.seen.keys(&chunk, &run.env)?;
                let known = self.seen.len();
                let grown = self.seen.find(0, &keys, chunk.rows, &mut numbers);
                self.kept.grow_within(room, grown)?;
                if room.is_some_and(|room| self.kept.bytes() > room) {
                    self.apart = Some(Apart::new(self.level, &mut self.kept)?);
                }
                let new = first_rows(&numbers, known);
                if !new.is_empty() {
                    return Ok(Some(chunk.gather(&new)));
                }
            }
            if let Some(apart) = self.apart.take() {
                self.files.extend(apart.finish(run)?.into_iter().flatten());
            }
            let Some(Waiting { rows, level }) = self.files.pop() else {
                return Ok(None);
            };
            self.seen = none(&self.on);
            self.kept.clear();
            self.input = Box::new(rows);
            self.level = level;
        }
    }
}
