//! Rows of columns, added to their groups without documents being made.
//!
//! The parts of the key get numbers, the same for the same value ([`super::parts`]); rows with the same numbers have the same key, so it is
//! evaluated once for each combination of them that is met. Accumulators take the values of a column one after the other, in the order of the
//! rows, as they take those of documents.

use super::parts::{ENTRY_BYTES, KeyPart, Local, NONE, Numbers, leaves};
use super::table::Table;
use crate::columns::ColumnRows;
use crate::columns::fields::{Fields, column, paths_of};
use crate::kept::Kept;
use nestor_columns::{Column, Places, Segment};
use nestor_model::statement::work;
use nestor_model::vector::Data;
use nestor_model::{Result, Str, Value, ValueRef};
use nestor_query::accumulator::Accumulator;
use nestor_query::env::{Env, OpContext, Val};
use nestor_query::expr::Deps;
use nestor_query::stage::{AccumulatorSpec, Group};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Rows in a loop that count as a unit of work.
const ROWS_PER_UNIT: usize = 16;

/// With more groups than these values are added one by one.
const PARTS_MAX: usize = 64;

/// A group over columns.
pub(super) struct Rows {
    group: Arc<Group>,
    /// What the key reads.
    key: Fields,
    parts: Vec<KeyPart>,
    inputs: Vec<Input>,
    /// Of each part of the key the numbers of its values.
    numbers: Vec<Numbers>,
    /// The group of each combination of numbers, as long as the table has it.
    combinations: HashMap<Box<[u32]>, u32>,
    /// The same where the key reads two paths: by both numbers.
    pairs: HashMap<u64, u32, BuildHasherDefault<Mixer>>,
    /// The same where the key reads one path: by number.
    single: Vec<u32>,
    /// The segment whose rows were added last, and what [`Part::locals`] of it was.
    last: Option<(Arc<Segment>, Locals)>,
    /// The table that they belong to.
    generation: u64,
    kept: Kept,
    entries: usize,
}

/// A segment whose rows are added.
pub(super) struct Part<'s> {
    segment: &'s Segment,
    /// What the key reads.
    keys: Vec<Option<&'s Column>>,
    locals: Locals,
}

/// Of each part of the key what is known of its columns' values.
type Locals = Vec<Local>;

/// Mixes numbers that nobody outside chose.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

/// What an accumulator takes of a row.
enum Input {
    /// The same for all.
    Constant(Value),
    /// The value at a path.
    Path(Str),
    /// What is evaluated on the values at these.
    Computed(Fields),
}

impl Rows {
    /// The group as one over columns, if it looks at nothing but values at paths; and the paths.
    pub(super) fn of(group: &Arc<Group>) -> Option<(Self, Vec<Str>)> {
        let paths = |expr: &nestor_query::Expr| {
            let mut deps = Deps::default();
            expr.dependencies(&mut deps);
            paths_of(&deps)
        };
        let key = Fields::new(paths(&group.id)?);
        let mut all = key.paths().to_vec();
        let mut inputs = Vec::with_capacity(group.fields.len());
        for field in &group.fields {
            let spec = &field.accumulator;
            // What takes more than one expression's value looks at small documents; functions of users look at whole ones.
            let Some(input) = spec.only_input() else {
                if matches!(spec.name(), "$accumulator" | "$_internalJsReduce") {
                    return None;
                }
                let mut deps = Deps::default();
                spec.dependencies(&mut deps);
                let read = paths_of(&deps)?;
                all.extend_from_slice(&read);
                inputs.push(Input::Computed(Fields::new(read)));
                continue;
            };
            inputs.push(match (input.constant(), input.field_path()) {
                (Some(value), _) => Input::Constant(value.clone()),
                (None, Some(path)) => {
                    all.push(path.as_str().into());
                    Input::Path(path.as_str().into())
                }
                (None, None) => {
                    let read = paths(input)?;
                    all.extend_from_slice(&read);
                    Input::Computed(Fields::new(read))
                }
            });
        }
        let parts = leaves(&group.id).into_iter().map(|leaf| KeyPart::of(leaf, key.paths()));
        let parts: Vec<KeyPart> = parts.collect::<Option<_>>()?;
        let rows = Self {
            numbers: parts.iter().map(|_| Numbers::default()).collect(),
            group: group.clone(),
            key,
            parts,
            inputs,
            combinations: HashMap::new(),
            pairs: HashMap::default(),
            single: Vec::new(),
            last: None,
            generation: 0,
            kept: Kept::default(),
            entries: 0,
        };
        Some((rows, all))
    }

    /// The operator is saved.
    pub(super) fn rest(&mut self) {
        self.kept.rest();
        self.last = None;
    }

    /// What is known of the segment that rows are of.
    pub(super) fn part<'s>(&mut self, rows: &'s ColumnRows) -> Part<'s> {
        let keys = self.key.columns(&rows.segment);
        let known = self
            .last
            .take()
            .filter(|(segment, _)| Arc::ptr_eq(segment, &rows.segment));
        Part {
            segment: &rows.segment,
            locals: known.map_or_else(|| vec![Vec::new(); self.parts.len()], |(_, locals)| locals),
            keys,
        }
    }

    /// Keeps what is known of a segment for rows that may follow.
    pub(super) fn keep(&mut self, rows: &ColumnRows, part: Part<'_>) {
        self.last = Some((rows.segment.clone(), part.locals));
    }

    /// Adds some rows of a segment to their groups.
    ///
    /// Errors: those of the key and of the accumulators, and those of too little memory.
    pub(super) fn add(
        &mut self,
        part: &mut Part<'_>,
        places: &Places<'_>,
        table: &mut Table,
        op: &OpContext,
    ) -> Result<()> {
        work(1 + places.len() / ROWS_PER_UNIT)?;
        if self.generation != table.generation() {
            self.generation = table.generation();
            self.combinations.clear();
            self.pairs.clear();
            self.single.clear();
        }
        let groups = self.groups(part, places, (table, op))?;
        for (field, input) in self.inputs.iter().enumerate() {
            self.accumulate((field, input), part.segment, (places, &groups), (table, op))?;
        }
        let results: usize = self.parts.iter().map(KeyPart::bytes).sum();
        self.kept
            .set(self.entries * ENTRY_BYTES + self.single.len() * 4 + results)
    }

    /// The group of each row.
    fn groups(
        &mut self,
        Part { keys, locals, .. }: &mut Part<'_>,
        places: &Places<'_>,
        (table, op): (&mut Table, &OpContext),
    ) -> Result<Vec<u32>> {
        let rows = places.map(|row| row);
        let mut buffer = Vec::new();
        let mut key_of = |row: usize, table: &mut Table| -> Result<u32> {
            work(1)?;
            self.key.with_document(keys, row, &mut buffer, |document| {
                let mut env = Env::new(document, op);
                let key = self.group.id.eval_ref(&mut env)?;
                Ok(table.group_of(key.as_ref(), op)? as u32)
            })
        };
        let mut numbered = Vec::with_capacity(self.parts.len());
        for (at, part) in self.parts.iter_mut().enumerate() {
            let known = (&mut self.numbers[at], &mut self.entries);
            numbered.push(part.numbers((&self.key, keys), (places, &rows), &mut locals[at], known, op)?);
        }
        match numbered.as_slice() {
            [] => {
                let at = key_of(rows[0], table)?;
                Ok(vec![at; rows.len()])
            }
            [only] => {
                let mut groups = Vec::with_capacity(rows.len());
                for (number, row) in only.iter().zip(&rows) {
                    let number = *number as usize;
                    if self.single.len() <= number {
                        self.single.resize(number + 1, NONE);
                    }
                    if self.single[number] == NONE {
                        self.single[number] = key_of(*row, table)?;
                    }
                    groups.push(self.single[number]);
                }
                Ok(groups)
            }
            [first, second] => {
                let mut groups = Vec::with_capacity(rows.len());
                for ((first, second), row) in first.iter().zip(second).zip(&rows) {
                    let pair = u64::from(*first) << 32 | u64::from(*second);
                    let group = match self.pairs.get(&pair) {
                        Some(group) => *group,
                        None => {
                            let group = key_of(*row, table)?;
                            self.pairs.insert(pair, group);
                            self.entries += 1;
                            group
                        }
                    };
                    groups.push(group);
                }
                Ok(groups)
            }
            several => {
                let mut groups = Vec::with_capacity(rows.len());
                let mut combination = vec![0; several.len()];
                let mut last: Option<(Vec<u32>, u32)> = None;
                for (at, row) in rows.iter().enumerate() {
                    for (own, numbers) in combination.iter_mut().zip(several) {
                        *own = numbers[at];
                    }
                    if let Some((before, group)) = &last
                        && *before == combination
                    {
                        groups.push(*group);
                        continue;
                    }
                    let group = match self.combinations.get(combination.as_slice()) {
                        Some(group) => *group,
                        None => {
                            let group = key_of(*row, table)?;
                            self.combinations.insert(combination.as_slice().into(), group);
                            self.entries += 1;
                            group
                        }
                    };
                    groups.push(group);
                    last = Some((combination.clone(), group));
                }
                Ok(groups)
            }
        }
    }

    /// Lets the accumulators of an output field take its values.
    fn accumulate(
        &self,
        (field, input): (usize, &Input),
        segment: &Segment,
        (places, groups): (&Places<'_>, &[u32]),
        (table, op): (&mut Table, &OpContext),
    ) -> Result<()> {
        match input {
            Input::Constant(value) => table.add_times(field, groups, value.as_ref()),
            Input::Path(path) => match column(segment, path) {
                None => table.add_times(field, groups, ValueRef::Missing),
                Some(column) => table.add_column(field, (places, groups), column),
            },
            Input::Computed(fields) => {
                let columns = fields.columns(segment);
                let spec = &self.group.fields[field].accumulator;
                let mut buffer = Vec::new();
                for (group, row) in groups.iter().zip(places.map(|row| row)) {
                    fields.with_document(&columns, row, &mut buffer, |document| {
                        let mut env = Env::new(document, op);
                        table.change(field, *group, |state| spec.accumulate(state, &mut env))
                    })?;
                }
                Ok(())
            }
        }
    }
}

impl Table {
    /// Lets the accumulators of an output field take a value for each row of their groups.
    fn add_times(&mut self, field: usize, groups: &[u32], value: ValueRef<'_>) -> Result<()> {
        if self.len() <= groups.len() / 4 {
            let mut counts = vec![0; self.len()];
            groups.iter().for_each(|group| counts[*group as usize] += 1);
            let mut counted = (0..).zip(counts).filter(|(_, count)| *count > 0);
            return counted
                .try_for_each(|(group, count)| self.change(field, group, |state| state.add_times(value, count)));
        }
        let mut from = 0;
        // Neighbours of one group at once.
        while from < groups.len() {
            let group = groups[from];
            let count = groups[from..].iter().take_while(|other| **other == group).count();
            self.change(field, group, |state| state.add_times(value, count))?;
            from += count;
        }
        Ok(())
    }

    /// Lets the accumulators of an output field take the values of a column.
    fn add_column(&mut self, field: usize, (places, groups): (&Places<'_>, &[u32]), column: &Column) -> Result<()> {
        let vector = column.vector(places);
        if vector.nulls.is_none() {
            let integers =
                |are_longs| move |state: &mut Accumulator, values: &[i64]| state.add_integers(values, are_longs);
            match &vector.data {
                Data::Double(values) => return self.add_parts(field, groups, values, Accumulator::add_doubles),
                Data::Int64(values) => return self.add_parts(field, groups, values, integers(true)),
                Data::Int32(values) => {
                    let values: Vec<i64> = values.iter().map(|value| i64::from(*value)).collect();
                    return self.add_parts(field, groups, &values, integers(false));
                }
                _ => {}
            }
        }
        let mut result = Ok(());
        let mut at = 0;
        places.each(|row| {
            let group = groups[at];
            at += 1;
            if result.is_ok() {
                result = self.change(field, group, |state| state.add(Val::Ref(column.value(row))));
            }
        });
        result
    }

    /// Lets the accumulators of an output field take numbers, those of one group together.
    fn add_parts<T: Copy>(
        &mut self,
        field: usize,
        groups: &[u32],
        values: &[T],
        add: impl Fn(&mut Accumulator, &[T]) -> Result<()>,
    ) -> Result<()> {
        if groups.iter().all(|group| *group == groups[0]) {
            return self.change(field, groups[0], |state| add(state, values));
        }
        if self.len() > PARTS_MAX {
            for (group, value) in groups.iter().zip(values) {
                self.change(field, *group, |state| add(state, std::slice::from_ref(value)))?;
            }
            return Ok(());
        }
        let mut parts: Vec<Vec<T>> = vec![Vec::new(); self.len()];
        for (group, value) in groups.iter().zip(values) {
            parts[*group as usize].push(*value);
        }
        for (group, part) in (0..).zip(&parts).filter(|(_, part)| !part.is_empty()) {
            self.change(field, group, |state| add(state, part))?;
        }
        Ok(())
    }

    /// Changes the accumulator of an output field of a group.
    #[inline]
    fn change(&mut self, field: usize, group: u32, change: impl FnOnce(&mut Accumulator) -> Result<()>) -> Result<()> {
        self.change_state(group as usize, field, |state| {
            change(state).map_err(AccumulatorSpec::group_error)
        })
    }
}
