//! INTERSECT and EXCEPT.
//!
//! When the rows that are known take too much memory those of others go to files by what they are equal by, on both sides, and each pair of files is compared when
//! all before it has been given.

use super::apart::{Apart, LEVEL_MAX, Waiting};
use super::key::{self, RowKey};
use super::{BoxRows, Drained, Rows, Run, row_done, weight};
use crate::kept::Kept;
use nestor_model::Result;
use nestor_planner::relation::{Intersect, Scalar, Tuple};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Bytes of a known row besides its values.
const ENTRY_BYTES: usize = 8;

struct SetOperation<S> {
    left: BoxRows<S>,
    right: BoxRows<S>,
    on: Vec<S>,
    except: bool,
    all: bool,
    /// How often the right input has each row, less those that left rows have used up; made by the first pull.
    counts: Option<HashMap<RowKey, u64>>,
    kept: Kept,
    waiting: Drained,
    /// There is no room for more: left rows that are not known go to files.
    apart: Option<Apart>,
    /// The files of right rows that were not known.
    rights: Vec<Option<Waiting>>,
    /// Files of both sides that wait.
    files: Vec<(Waiting, Option<Waiting>)>,
    /// How often the rows were divided.
    level: u32,
    buffers: Kept,
}

pub(super) fn intersect<S: Scalar>(plan: &Intersect<S>, left: BoxRows<S>, right: BoxRows<S>) -> BoxRows<S> {
    Box::new(SetOperation {
        left,
        right,
        on: plan.on.clone(),
        except: plan.except,
        all: plan.all,
        counts: None,
        kept: Kept::default(),
        waiting: Drained::default(),
        apart: None,
        rights: Vec::new(),
        files: Vec::new(),
        level: 0,
        buffers: Kept::default(),
    })
}

impl<S: Scalar> SetOperation<S> {
    /// One more row is known; whether there is no room for others.
    fn keep(&mut self, key: &RowKey, run: &Run<'_, '_, S>) -> Result<bool> {
        let bytes = weight(&key.0) + ENTRY_BYTES;
        let room = run.batch.room().filter(|_| self.level < LEVEL_MAX);
        self.kept.grow_within(room, bytes)?;
        Ok(room.is_some_and(|room| self.kept.bytes() > room))
    }

    fn read_right(&mut self, run: &Run<'_, '_, S>) -> Result<HashMap<RowKey, u64>> {
        let mut counts = HashMap::new();
        let mut apart: Option<Apart> = None;
        let mut right = Drained::default();
        while let Some(row) = right.next(|| self.right.next_chunk(run))? {
            row_done()?;
            let key = key::of(&self.on, &row, &run.env)?;
            match counts.entry(key) {
                Entry::Occupied(mut count) => *count.get_mut() += 1,
                Entry::Vacant(place) => match &mut apart {
                    Some(apart) => apart.push(apart.file_of_key(place.key()), row, run)?,
                    None => {
                        if self.keep(place.key(), run)? {
                            apart = Some(Apart::new(self.level, &mut self.buffers)?);
                        }
                        place.insert(1);
                    }
                },
            }
        }
        if let Some(apart) = apart {
            self.rights = apart.finish(run)?;
            self.apart = Some(Apart::new(self.level, &mut self.buffers)?);
        }
        Ok(counts)
    }

    /// Whether a left row is given; `None` if it went to a file.
    fn gives(&mut self, row: &Tuple, run: &Run<'_, '_, S>) -> Result<Option<bool>> {
        let key = key::of(&self.on, row, &run.env)?;
        let is_once = self.except && !self.all;
        if let Some(count) = self.counts.as_mut().and_then(|counts| counts.get_mut(&key)) {
            let is_there = *count > 0;
            match (self.except, self.all) {
                // Of equal rows the first is enough.
                (false, false) => *count = 0,
                (true, false) => return Ok(Some(false)),
                (_, true) => *count = count.saturating_sub(1),
            }
            return Ok(Some(is_there != self.except));
        }
        if let Some(apart) = &mut self.apart {
            let file = apart.file_of_key(&key);
            if is_once || self.rights.get(file).is_some_and(Option::is_some) {
                apart.push(file, row.clone(), run)?;
                return Ok(None);
            }
        }
        if is_once && self.apart.is_none() {
            if self.keep(&key, run)? {
                self.apart = Some(Apart::new(self.level, &mut self.buffers)?);
            }
            self.counts.get_or_insert_default().insert(key, 1);
        }
        Ok(Some(self.except))
    }

    /// Goes on to the next files; `false` when all have been compared.
    fn go_on(&mut self, run: &Run<'_, '_, S>) -> Result<bool> {
        if let Some(apart) = self.apart.take() {
            let mut rights = std::mem::take(&mut self.rights).into_iter();
            for left in apart.finish(run)? {
                let right = rights.next().flatten();
                self.files.extend(left.map(|left| (left, right)));
            }
        }
        let Some((left, right)) = self.files.pop() else {
            return Ok(false);
        };
        self.level = left.level;
        self.left = Box::new(left.rows);
        self.right = match right {
            Some(right) => Box::new(right.rows),
            None => super::rows::Values::none(),
        };
        self.counts = None;
        self.kept.clear();
        self.buffers.clear();
        Ok(true)
    }
}

impl<S: Scalar> Rows<S> for SetOperation<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        loop {
            if self.counts.is_none() {
                let counts = self.read_right(run)?;
                self.counts = Some(counts);
            }
            while let Some(row) = self.waiting.next(|| self.left.next_chunk(run))? {
                row_done()?;
                if self.gives(&row, run)? == Some(true) {
                    return Ok(Some(row));
                }
            }
            if !self.go_on(run)? {
                return Ok(None);
            }
        }
    }
}
