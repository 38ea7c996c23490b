//! Groups and what is computed of them.
//!
//! The input is read chunk by chunk: a [`part`] of the groups says to which one each row belongs, and the calls take the vectors of their arguments with
//! these numbers. Of a call whose rows have to differ the first of those that are alike are found as groups are. A call whose rows have an order takes them
//! one by one ([`state`]). What groups are made of that follows from others of it (`GROUP BY a, a - 1, 'x'`) is computed of each group.
//!
//! Where only so many groups are wanted, whichever these are, rows of others are passed over once there are as many.
//!
//! Where processors are idle, an input that can be shared is read and grouped by several threads ([`shares`]), and many rows of others are given to one ([`helped`]). When groups take too much memory no new ones are made: rows of others go to
//! files, which are grouped when these have been given ([`super::apart`]).

mod divided;
mod helped;
mod part;
mod shares;
mod state;

pub(super) use state::State;

use self::divided::Parts;
use self::part::{Part, Prepared, Shape};
use super::apart::{Apart, LEVEL_MAX, Waiting};
use super::restrict::Restriction;
use super::rows::wanted;
use super::{BoxRows, Rows, Run, drain, row_done};
use crate::helper::Permit;
use crate::kept::Kept;
use nestor_model::statement::{ROW, Scope, work};
use nestor_model::vector::{Builder, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::ROWS;
use nestor_planner::relation::{Call, Chunk, Scalar, Tuple};
use std::cell::Cell;
use std::sync::Arc;

/// Rows that are grouped before it is thought of a helper: a thread costs as much as some thousand of them. Tests have few rows.
const ALONE: usize = if cfg!(debug_assertions) { ROWS / 2 } else { 32 * ROWS };

/// Of more groups it is not seen to that there are no more than are wanted.
const WANTED_MAX: usize = 64 * ROWS;

struct Aggregated<S> {
    input: BoxRows<S>,
    groups: Vec<S>,
    /// The groups that the others follow from, with the columns that they are; `None` where all tell rows apart.
    leading: Option<Vec<(usize, usize)>>,
    shape: Shape<S>,
    /// How many groups are wanted, and how many are skipped before.
    limit: Option<(Option<S>, S)>,
    kept: Kept,
    done: Option<Done<S>>,
    /// Rows that are grouped when all groups that are done have been given.
    waiting: Vec<Waiting>,
    /// How often the rows of the input were divided.
    level: u32,
}

/// All groups, and how many of them have been given.
struct Done<S> {
    /// Of the last.
    given: usize,
    parts: Vec<Part<S>>,
}

impl<S: Scalar> Done<S> {
    /// The groups of which some have not been given, and how many have; `None` when all have.
    fn next(&mut self) -> Option<(&mut Part<S>, &mut usize)> {
        while self.parts.last().is_some_and(|part| self.given == part.groups.len()) {
            self.parts.pop();
            self.given = 0;
        }
        Some((self.parts.last_mut()?, &mut self.given))
    }
}

pub(super) fn aggregate<S: Scalar>(
    mut input: BoxRows<S>,
    (groups, sets, calls): (&[S], &[Vec<usize>], &[Call<S>]),
    limit: Option<&(Option<S>, S)>,
) -> BoxRows<S> {
    let is_one = groups.is_empty() && sets.len() == 1 && !calls.is_empty();
    let takes_extremes = |call: &Call<S>| {
        let is_plain = call.filter.is_none() && call.order.is_empty();
        is_plain && call.function.takes_extremes() && call.args.iter().all(|arg| arg.place().is_some())
    };
    if is_one && calls.iter().all(takes_extremes) {
        input.keep_extremes();
    }
    let is_plain = sets.len() == 1 && (0..groups.len()).all(|at| sets[0].contains(&at));
    let leading = leading(groups).filter(|_| is_plain);
    let (by, sets) = match &leading {
        None => (groups.to_vec(), sets.to_vec()),
        Some(leading) => {
            let by: Vec<S> = leading.iter().map(|(at, _)| groups[*at].clone()).collect();
            let all = (0..by.len()).collect();
            (by, vec![all])
        }
    };
    Box::new(Aggregated {
        input,
        leading,
        groups: groups.to_vec(),
        shape: Shape {
            by,
            sets,
            calls: calls.to_vec(),
        },
        limit: limit.cloned(),
        kept: Kept::default(),
        done: None,
        waiting: Vec::new(),
        level: 0,
    })
}

/// The groups that are columns, with these, if there are others and they follow from them.
fn leading<S: Scalar>(groups: &[S]) -> Option<Vec<(usize, usize)>> {
    let columns = groups.iter().enumerate();
    let columns: Vec<(usize, usize)> = columns.filter_map(|(at, by)| Some((at, by.place()?))).collect();
    let places: Vec<usize> = columns.iter().map(|(_, place)| *place).collect();
    let follows = |by: &S| by.place().is_some() || by.follows_from(&places);
    let is_fewer = !columns.is_empty() && columns.len() < groups.len();
    (is_fewer && groups.iter().all(follows)).then_some(columns)
}

impl<S: Scalar> Aggregated<S> {
    /// All rows belong to groups that there are, or to none that is wanted.
    fn read_known(&mut self, part: &mut Part<S>, run: &Run<'_, '_, S>) -> Result<()> {
        if self.shape.calls.is_empty() {
            return Ok(());
        }
        while let Some(chunk) = self.input.next_chunk(run)? {
            let _values = Scope::begin();
            let rows = part.known(&self.shape, &chunk, &run.env)?;
            if !rows.is_empty() {
                let prepared = self.shape.prepared(&chunk.gather(&rows), &run.env)?;
                self.kept.grow(part.add(&self.shape, &prepared)?)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, run: &Run<'_, '_, S>) -> Result<Parts<S>> {
        let wanted = wanted(self.limit.as_ref(), run)?.filter(|wanted| *wanted <= WANTED_MAX);
        let spills = wanted.is_none() && self.level < LEVEL_MAX && self.shape.spills();
        let room = run.batch.room().filter(|_| spills);
        let (shape, input, kept) = (&self.shape, &mut self.input, &mut self.kept);
        let may_share = wanted.is_none() && shape.merges() && shape.is_portable();
        let shared = match may_share {
            true => shares::read(shape, (input, run), (kept, room))?,
            false => None,
        };
        if let Some(mut parts) = shared {
            // What is left then is what there is no room for, if that is so when all parts have become one.
            if room.is_some_and(|room| kept.bytes() > room) {
                self.read_apart(&mut parts, run)?;
            }
            return Ok(parts);
        }
        let mut part = Part::new(shape);
        // Others read it to its end, and group all of it here.
        if !may_share && wanted.is_none() && room.is_none() {
            drain(input, run, &mut |chunk| {
                let _values = Scope::begin();
                kept.grow(part.add(shape, &shape.prepared(&chunk, &run.env)?)?)
            })?;
        }
        let held = Cell::new(kept.bytes());
        let is_full = || room.is_some_and(|room| held.get() > room);
        let mut grow = |bytes: usize| {
            kept.grow_within(room, bytes)?;
            held.set(kept.bytes());
            Ok(())
        };
        let mut next = || -> Result<Option<Prepared>> {
            if is_full() {
                return Ok(None);
            }
            let Some(chunk) = input.next_chunk(run)? else {
                return Ok(None);
            };
            let _values = Scope::begin();
            shape.prepared(&chunk, &run.env).map(Some)
        };
        let mut rows = 0;
        while rows < ALONE || wanted.is_some() {
            if wanted.is_some_and(|wanted| part.groups.len() >= wanted) {
                self.read_known(&mut part, run)?;
                return Ok(Parts::one(part));
            }
            let Some(chunk) = next()? else { break };
            rows += chunk.rows();
            grow(part.add(shape, &chunk)?)?;
        }
        // Groups of few rows each cost as much again when parts become one, and sums of all rows less than giving them away.
        let is_worth_it = rows >= ALONE && part.groups.len() * 2 <= rows && shape.is_costly();
        let permit = match is_worth_it && shape.merges() && !is_full() {
            true => Permit::take(),
            false => None,
        };
        match permit {
            Some(permit) => {
                if let Some(nodes) = &run.shared.counts.nodes {
                    nodes.note(nodes.current.get(), |ran| ran.helpers += 1);
                }
                helped::read(shape, &mut part, permit, next, grow)?;
            }
            None => {
                while let Some(chunk) = next()? {
                    grow(part.add(shape, &chunk)?)?;
                }
            }
        }
        let is_full = is_full();
        let mut parts = Parts::one(part);
        if is_full {
            self.read_apart(&mut parts, run)?;
        }
        Ok(parts)
    }

    /// What is left of the input belongs to groups that there are, or waits in files.
    fn read_apart(&mut self, parts: &mut Parts<S>, run: &Run<'_, '_, S>) -> Result<()> {
        let mut apart = Apart::new(self.level, &mut self.kept)?;
        while let Some(chunk) = self.input.next_chunk(run)? {
            let _values = Scope::begin();
            let known = apart.divide(&self.shape.by, |keys, rows| parts.known(keys, rows), &chunk, run)?;
            if !known.is_empty() {
                let prepared = self.shape.prepared(&chunk.gather(&known), &run.env)?;
                self.kept.grow_spilling(parts.add(&self.shape, &prepared)?)?;
            }
        }
        self.waiting.extend(apart.finish(run)?.into_iter().flatten());
        Ok(())
    }

    /// The columns of the groups of which `columns` are those that are looked for.
    fn columns(&self, columns: Vec<Arc<Vector>>, rows: usize, run: &Run<'_, '_, S>) -> Result<Vec<Arc<Vector>>> {
        let Some(leading) = &self.leading else {
            return Ok(columns);
        };
        let width = leading.iter().map(|(_, place)| place + 1).max().unwrap_or(0);
        let null = Arc::new(Vector::same(Value::Null, rows));
        let mut chunk = Chunk {
            columns: (0..width).map(|_| null.clone()).collect(),
            rows,
        };
        let placed = leading.iter().zip(columns);
        placed.for_each(|((_, place), column)| chunk.columns[*place] = column);
        self.groups.iter().map(|by| by.vector(&chunk, &run.env)).collect()
    }

    /// Has groups to be given, if any are left.
    fn done(&mut self, run: &Run<'_, '_, S>) -> Result<()> {
        loop {
            if let Some(done) = &mut self.done {
                if done.next().is_some() {
                    return Ok(());
                }
                let Some(Waiting { rows, level }) = self.waiting.pop() else {
                    return Ok(());
                };
                self.done = None;
                self.kept.clear();
                self.input = Box::new(rows);
                self.level = level;
            }
            let parts = self.read(run)?.all;
            self.done = Some(Done { parts, given: 0 });
        }
    }
}

impl<S: Scalar> Rows<S> for Aggregated<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        self.done(run)?;
        let Some((part, given)) = self.done.as_mut().and_then(Done::next) else {
            return Ok(None);
        };
        row_done()?;
        let group = *given;
        *given += 1;
        let mut row = match self.leading {
            None => part.groups.values(group),
            Some(_) => {
                let own = part.groups.columns(group, group + 1);
                let columns = self.columns(own, 1, run)?;
                columns.iter().map(|column| column.value(0)).collect()
            }
        };
        let Some(part) = self.done.as_mut().and_then(|done| done.parts.last_mut()) else {
            return Ok(None);
        };
        for call in 0..self.shape.calls.len() {
            row.push(part.result(&self.shape, call, group)?);
        }
        row.push(Value::Int64(part.groups.set(group) as i64));
        Ok(Some(row))
    }

    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        self.done(run)?;
        let Some((part, given)) = self.done.as_mut().and_then(Done::next) else {
            return Ok(None);
        };
        let from = *given;
        let to = part.groups.len().min(from + ROWS);
        *given = to;
        work(ROW * (to - from))?;
        let own = part.groups.columns(from, to);
        let mut columns = self.columns(own, to - from, run)?;
        let Some(part) = self.done.as_mut().and_then(|done| done.parts.last_mut()) else {
            return Ok(None);
        };
        for call in 0..self.shape.calls.len() {
            let mut column = Builder::default();
            for group in from..to {
                column.push(part.result(&self.shape, call, group)?);
            }
            columns.push(Arc::new(column.finish()));
        }
        let mut sets = Builder::default();
        (from..to).for_each(|group| sets.push_int64(part.groups.set(group) as i64));
        columns.push(Arc::new(sets.finish()));
        Ok(Some(Chunk {
            columns,
            rows: to - from,
        }))
    }

    fn restrict(&mut self, place: usize, to: &Restriction) {
        // Rows of a group have all the same value.
        let is_one = match &self.leading {
            Some(_) => true,
            None => matches!(&*self.shape.sets, [set] if set.contains(&place)),
        };
        if let Some(place) = self.groups.get(place).and_then(Scalar::place).filter(|_| is_one) {
            self.input.restrict(place, to);
        }
    }
}
