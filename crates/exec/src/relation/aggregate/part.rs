//! Groups of a part of the rows, with what the calls have of them. What needs expressions is computed before ([`Shape::prepared`]), so that
//! whoever has that can go on alone.

use super::state::State;
use crate::relation::groups::{Groups, KeysOf, bytes_of, first_rows, keys_of};
use crate::relation::row_done;
use nestor_model::statement::{ROW, work};
use nestor_model::vector::Vector;
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::ROWS;
use nestor_planner::relation::{Call, Chunk, Env, Grouped, Scalar};
use std::sync::Arc;

/// Bytes that a row takes that others have to differ from, beside its values.
const MET_BYTES: usize = 32;

/// By what rows are grouped, and what is computed of groups.
pub(super) struct Shape<S> {
    /// What tells rows apart.
    pub by: Vec<S>,
    /// The grouping sets, of places in `by`.
    pub sets: Vec<Vec<usize>>,
    /// What is computed.
    pub calls: Vec<Call<S>>,
}

/// What groups and calls take of a chunk.
pub(super) struct Prepared {
    rows: usize,
    keys: KeysOf,
    calls: Vec<Taken>,
}

/// What a call takes.
struct Taken {
    /// The rows that count, if not all do.
    places: Option<Vec<u32>>,
    args: Vec<Arc<Vector>>,
    /// By what rows have to differ.
    keys: Option<KeysOf>,
    /// By what rows are put in order.
    order: Vec<Arc<Vector>>,
}

/// The groups of the rows so far.
pub(super) struct Part<S> {
    pub groups: Groups<S>,
    states: Vec<States<S>>,
    numbers: Vec<u32>,
    /// Groups whose bytes are accounted for.
    known: usize,
}

/// What one call has of all groups.
enum States<S> {
    /// The vectors of its arguments are enough.
    Grouped(Box<dyn Grouped>),
    /// Its rows have to differ: those that were met, as groups within groups, or as such themselves where all rows are one group.
    Distinct(Box<Groups<S>>, Box<dyn Grouped>),
    /// Its rows have an order.
    Single(Vec<State>),
}

impl<S: Scalar> Shape<S> {
    /// All rows are one group.
    fn is_one(&self) -> bool {
        self.by.is_empty() && self.sets.len() == 1
    }

    /// Whether rows have to be told apart.
    pub fn is_costly(&self) -> bool {
        !self.by.is_empty() || self.calls.iter().any(|call| call.distinct)
    }

    /// Whether rows of groups that do not fit into memory may wait for their turn.
    pub fn spills(&self) -> bool {
        self.sets.len() == 1 && !self.by.is_empty()
    }

    /// Whether another thread may compute what groups and calls take.
    pub fn is_portable(&self) -> bool {
        let of_calls = self.calls.iter().flat_map(|call| call.args.iter().chain(&call.filter));
        self.by.iter().chain(of_calls).all(Scalar::is_portable)
    }

    /// Whether parts of the rows make one result, however they are told apart.
    pub fn merges(&self) -> bool {
        let merges = |call: &Call<S>| call.function.merges() && call.order.is_empty();
        self.sets.len() == 1 && self.calls.iter().all(merges)
    }

    /// Whether groups of this kind can be divided by their keys: what rows have to differ from is not.
    pub fn divides(&self) -> bool {
        let is_plain = self
            .sets
            .iter()
            .all(|set| (0..self.by.len()).all(|column| set.contains(&column)));
        let differs = self.calls.iter().any(|call| call.distinct);
        self.merges() && !self.by.is_empty() && is_plain && !differs
    }

    /// What groups and calls take of a chunk.
    ///
    /// Errors: those of the expressions.
    pub fn prepared(&self, chunk: &Chunk, env: &Env<'_>) -> Result<Prepared> {
        let taken = |call: &Call<S>| -> Result<Taken> {
            let places = match &call.filter {
                Some(filter) => filter.places(chunk, env)?,
                None => None,
            };
            let part;
            let chunk = match &places {
                None => chunk,
                Some(places) => {
                    part = chunk.gather(places);
                    &part
                }
            };
            let vectors = |of: &mut dyn Iterator<Item = &S>| -> Result<Vec<Arc<Vector>>> {
                of.map(|each| each.vector(chunk, env)).collect()
            };
            let differs = call.distinct && call.order.is_empty();
            Ok(Taken {
                keys: match differs {
                    true => Some(keys_of(&call.args, chunk, env)?),
                    false => None,
                },
                args: match differs {
                    true => Vec::new(),
                    false => vectors(&mut call.args.iter())?,
                },
                order: vectors(&mut call.order.iter().map(|key| &key.by))?,
                places,
            })
        };
        Ok(Prepared {
            rows: chunk.rows,
            keys: keys_of(&self.by, chunk, env)?,
            calls: self.calls.iter().map(taken).collect::<Result<_>>()?,
        })
    }
}

impl Prepared {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What rows are grouped by.
    pub fn keys(&self) -> &KeysOf {
        &self.keys
    }

    /// That of some rows, in order.
    pub fn gather(&self, rows: &[u32]) -> Self {
        Self {
            rows: rows.len(),
            keys: self.keys.gather(rows),
            calls: self.calls.iter().map(|taken| taken.gather(self.rows, rows)).collect(),
        }
    }

    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        let of_call = |taken: &Taken| {
            let vectors = taken.args.iter().chain(&taken.order);
            let places = taken
                .places
                .as_ref()
                .map_or(0, |places| places.len() * size_of::<u32>());
            vectors.map(|own| bytes_of(own)).sum::<usize>() + taken.keys.as_ref().map_or(0, KeysOf::bytes) + places
        };
        self.keys.bytes() + self.calls.iter().map(of_call).sum::<usize>()
    }
}

impl Taken {
    /// What it takes of some of so many rows, in order.
    fn gather(&self, all: usize, rows: &[u32]) -> Self {
        let mut counted = None;
        let places = self.places.as_ref().map(|places| {
            // The place of each row among those that are left.
            let mut left = vec![u32::MAX; all];
            (0..).zip(rows).for_each(|(at, row)| left[*row as usize] = at);
            let those = (0..).zip(places).map(|(at, place)| (at, left[*place as usize]));
            let (at, places): (Vec<u32>, Vec<u32>) = those.filter(|(_, place)| *place != u32::MAX).unzip();
            counted = Some(at);
            places
        });
        let rows = counted.as_deref().unwrap_or(rows);
        let vectors = |of: &[Arc<Vector>]| of.iter().map(|own| Arc::new(own.gather(rows))).collect();
        Self {
            args: vectors(&self.args),
            keys: self.keys.as_ref().map(|keys| keys.gather(rows)),
            order: vectors(&self.order),
            places,
        }
    }
}

impl<S: Scalar> Part<S> {
    /// No rows.
    pub fn new(shape: &Shape<S>) -> Self {
        let mut groups = Groups::new(&shape.by, &shape.sets);
        groups.add_empty();
        let mut states: Vec<States<S>> = shape
            .calls
            .iter()
            .map(|call| States::new(call, shape.is_one()))
            .collect();
        let pairs = states.iter_mut().zip(&shape.calls);
        pairs.for_each(|(states, call)| states.resize(call, groups.len()));
        Self {
            groups,
            states,
            numbers: Vec::new(),
            known: 0,
        }
    }

    /// Takes the rows of a chunk; returns by how many bytes it grew.
    ///
    /// Errors: those of the functions.
    pub fn add(&mut self, shape: &Shape<S>, chunk: &Prepared) -> Result<usize> {
        let mut grown = 0;
        let mut numbers = std::mem::take(&mut self.numbers);
        for set in 0..shape.sets.len() {
            work(ROW / 2 * chunk.rows)?;
            grown += self.groups.find(set, &chunk.keys, chunk.rows, &mut numbers);
            grown += self.resize(shape);
            for ((states, call), taken) in self.states.iter_mut().zip(&shape.calls).zip(&chunk.calls) {
                grown += states.add(call, &numbers, taken)?;
            }
        }
        self.numbers = numbers;
        Ok(grown)
    }

    /// The rows of a chunk that belong to groups that there are.
    ///
    /// Errors: those of the expressions, and of the interrupt.
    pub fn known(&mut self, shape: &Shape<S>, chunk: &Chunk, env: &Env<'_>) -> Result<Vec<u32>> {
        let keys = keys_of(&shape.by, chunk, env)?;
        self.groups.known(&keys, chunk.rows)
    }

    /// Makes room for the groups that are new; returns by how many bytes it grew.
    fn resize(&mut self, shape: &Shape<S>) -> usize {
        let count = self.groups.len();
        let pairs = self.states.iter_mut().zip(&shape.calls);
        pairs.for_each(|(states, call)| states.resize(call, count));
        // Of each group: its place and what the calls have of it.
        let grown = (count - self.known) * (64 + 48 * shape.calls.len());
        self.known = count;
        grown
    }

    /// Takes the rows of another part, of a shape that merges; returns by how many bytes it grew.
    ///
    /// Errors: those of the functions, and of the interrupt.
    pub fn merge(&mut self, shape: &Shape<S>, other: Self) -> Result<usize> {
        let mut grown = 0;
        let mut numbers = Vec::with_capacity(other.groups.len());
        let mut some = Vec::new();
        for from in (0..other.groups.len()).step_by(ROWS) {
            let to = other.groups.len().min(from + ROWS);
            work(ROW / 2 * (to - from))?;
            let keys = self.groups.keys_again(other.groups.columns(from, to))?;
            grown += self.groups.find(0, &keys, to - from, &mut some);
            numbers.extend_from_slice(&some);
        }
        grown += self.resize(shape);
        for (own, other) in self.states.iter_mut().zip(other.states) {
            grown += own.merge(other, &numbers)?;
        }
        Ok(grown)
    }

    /// The groups of so many parts, of a shape that divides; `part_of` says of the keys of some to which each belongs.
    ///
    /// Errors: those of the interrupt.
    pub fn split(
        self,
        shape: &Shape<S>,
        count: usize,
        part_of: impl Fn(&KeysOf, usize) -> Vec<u8>,
    ) -> Result<Vec<Self>> {
        let mut out: Vec<Self> = (0..count).map(|_| Self::new(shape)).collect();
        let mut parts: Vec<u8> = Vec::with_capacity(self.groups.len());
        for from in (0..self.groups.len()).step_by(ROWS) {
            let to = self.groups.len().min(from + ROWS);
            work(ROW / 2 * (to - from))?;
            let keys = self.groups.keys_again(self.groups.columns(from, to))?;
            let of_these = part_of(&keys, to - from);
            for (number, own) in (0..).zip(&mut out) {
                let rows = (0..).zip(&of_these).filter(|(_, part)| **part == number);
                let rows: Vec<u32> = rows.map(|(row, _)| row).collect();
                let mut numbers = std::mem::take(&mut own.numbers);
                own.groups.find(0, &keys.gather(&rows), rows.len(), &mut numbers);
                own.numbers = numbers;
            }
            parts.extend(of_these);
        }
        let mut of_calls = Vec::new();
        for states in self.states {
            if let States::Grouped(states) = states {
                of_calls.push(states.split(&parts, count).into_iter());
            }
        }
        for own in &mut out {
            let states = of_calls.iter_mut().filter_map(Iterator::next);
            own.states = states.map(States::Grouped).collect();
            own.known = own.groups.len();
        }
        Ok(out)
    }

    /// What a call gives for a group.
    ///
    /// Errors: those of the function.
    pub fn result(&mut self, shape: &Shape<S>, call: usize, group: usize) -> Result<Value> {
        self.states[call].result(&shape.calls[call], group)
    }
}

impl<S: Scalar> States<S> {
    /// No groups; `is_one` when there will be only one.
    fn new(call: &Call<S>, is_one: bool) -> Self {
        match (call.distinct, call.order.is_empty()) {
            (_, false) => Self::Single(Vec::new()),
            (true, true) => {
                let sets: Vec<Vec<usize>> = is_one.then(|| (0..call.args.len()).collect()).into_iter().collect();
                Self::Distinct(Box::new(Groups::new(&call.args, &sets)), call.function.start_grouped())
            }
            (false, true) => Self::Grouped(call.function.start_grouped()),
        }
    }

    /// There are so many groups now.
    fn resize(&mut self, call: &Call<S>, groups: usize) {
        match self {
            Self::Grouped(states) | Self::Distinct(_, states) => states.resize(groups),
            Self::Single(states) => states.resize_with(groups, || State::new(call)),
        }
    }

    /// The rows of a chunk belong to `groups`; returns by how many bytes the states grew.
    fn add(&mut self, call: &Call<S>, groups: &[u32], taken: &Taken) -> Result<usize> {
        let picked;
        let groups = match &taken.places {
            None => groups,
            Some(places) => {
                picked = places.iter().map(|at| groups[*at as usize]).collect::<Vec<u32>>();
                picked.as_slice()
            }
        };
        match self {
            Self::Grouped(states) => {
                let before = states.weight();
                states.add(groups, &taken.args)?;
                Ok(states.weight().saturating_sub(before))
            }
            Self::Distinct(met, states) => match &taken.keys {
                Some(keys) => different(met, &mut **states, groups, keys),
                None => Ok(0),
            },
            Self::Single(states) => {
                let mut grown = 0;
                for (row, group) in groups.iter().enumerate() {
                    row_done()?;
                    let values = |of: &[Arc<Vector>]| of.iter().map(|vector| vector.value(row)).collect();
                    grown += states[*group as usize].add_values(call, values(&taken.args), values(&taken.order))?;
                }
                Ok(grown)
            }
        }
    }

    /// Takes what other rows gave, whose groups are these; returns by how many bytes the states grew.
    fn merge(&mut self, other: Self, groups: &[u32]) -> Result<usize> {
        match (self, other) {
            (Self::Grouped(own), Self::Grouped(other)) => {
                let before = own.weight();
                own.merge(other, groups)?;
                Ok(own.weight().saturating_sub(before))
            }
            // What differs there may have been met here.
            (Self::Distinct(met, states), Self::Distinct(other, _)) => {
                let mut grown = 0;
                for from in (0..other.len()).step_by(ROWS) {
                    let to = other.len().min(from + ROWS);
                    let within = (from..to).map(|at| match met.has_sets() {
                        true => 0,
                        false => groups[other.set(at)],
                    });
                    let within: Vec<u32> = within.collect();
                    let keys = met.keys_again(other.columns(from, to))?;
                    grown += different(met, &mut **states, &within, &keys)?;
                }
                Ok(grown)
            }
            _ => Ok(0),
        }
    }

    fn result(&mut self, call: &Call<S>, group: usize) -> Result<Value> {
        match self {
            Self::Grouped(states) | Self::Distinct(_, states) => states.result(group),
            Self::Single(states) => states[group].result(call),
        }
    }
}

/// Gives states the rows of groups that differ from all that were met in theirs; returns by how many bytes both grew.
fn different<S: Scalar>(met: &mut Groups<S>, states: &mut dyn Grouped, groups: &[u32], keys: &KeysOf) -> Result<usize> {
    work(ROW / 2 * groups.len())?;
    let (known, mut numbers) = (met.len(), Vec::new());
    let grown = match met.has_sets() {
        true => met.find(0, keys, groups.len(), &mut numbers),
        false => met.find_within(groups, keys, &mut numbers),
    };
    let first = first_rows(&numbers, known);
    let groups: Vec<u32> = first.iter().map(|row| groups[*row as usize]).collect();
    let args: Vec<Arc<Vector>> = keys.values().iter().map(|own| Arc::new(own.gather(&first))).collect();
    let before = states.weight();
    states.add(&groups, &args)?;
    Ok(grown + first.len() * MET_BYTES + states.weight().saturating_sub(before))
}
