//! Groups of rows of columns whose keys are words, with counts, sums of integers and the ends of these as numbers in vectors.
//!
//! They stand beside the table of groups and become rows, or groups of the table, in the end: what they have of their rows does not depend on the
//! order of these, nor on rows that went to the table. A group costs some dozens of bytes and no allocation.
//!
//! Parts of a key are paths or results of expressions. As words tell values apart and not their
//! types, all columns of a path have one type here ([`Numbered::fits`]). Results have numbers, and it is remembered which row of a group is the first: where results
//! may be equal that are not the same, groups go through the table, whose key is that of the first row.

mod field;
mod key;

use super::table::Table;
use crate::columns::ColumnRows;
use crate::columns::fields::column;
use crate::relation::groups::Words;
use field::Field;
use key::{Kind, Leaf, Path, leaves_of, made, paths_below};
use nestor_columns::{Column, Segment};
use nestor_model::statement::work;
use nestor_model::vector::{Seed, Vector};
use nestor_model::{DocRef, Result, Str, Value, ValueRef};
use nestor_query::accumulator::Accumulator;
use nestor_query::env::{Env, OpContext};
use nestor_query::stage::{AccumulatorSpec, Group};
use std::sync::Arc;

/// Rows in a loop that count as a unit of work.
const ROWS_PER_UNIT: usize = 16;

/// Such groups.
pub(super) struct Numbered {
    group: Arc<Group>,
    /// What the key is made of.
    leaves: Vec<Leaf>,
    words: Words,
    /// Rows of each group.
    counts: Vec<u64>,
    /// The first row of each group, where that may matter: the number of what it came with, and the row of its segment.
    firsts: Option<Vec<u64>>,
    fields: Vec<Field>,
    numbers: Vec<u32>,
}

impl Numbered {
    /// No groups; `None` when the key or some field of a group is not of this kind.
    pub(super) fn of(group: &Arc<Group>) -> Option<Self> {
        let fields = group.fields.iter().map(|field| Field::of(&field.accumulator));
        Self::new(group.clone(), leaves_of(&group.id)?, fields.collect::<Option<_>>()?)
    }

    fn new(group: Arc<Group>, leaves: Vec<Leaf>, fields: Vec<Field>) -> Option<Self> {
        let width = leaves.len();
        let is_made = leaves.iter().any(|leaf| leaf.path().is_none());
        Some(Self {
            group,
            leaves,
            words: Words::new(width, &[(0..width).collect()])?,
            counts: Vec::new(),
            firsts: is_made.then(Vec::new),
            fields,
            numbers: Vec::new(),
        })
    }

    /// The same without groups, and these.
    pub(super) fn take(&mut self) -> Option<Self> {
        let empty = self.empty()?;
        Some(std::mem::replace(self, empty))
    }

    /// No groups, of the same kind.
    pub(super) fn empty(&self) -> Option<Self> {
        let leaves = self.leaves.iter().map(Leaf::empty).collect::<Option<_>>()?;
        Self::new(
            self.group.clone(),
            leaves,
            self.fields.iter().map(Field::empty).collect(),
        )
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Bytes that they take, about.
    pub(super) fn bytes(&self) -> usize {
        let of_fields: usize = self.fields.iter().map(Field::bytes).sum();
        let of_leaves: usize = self.leaves.iter().map(Leaf::bytes).sum();
        let of_group = size_of::<u64>() + self.firsts.as_ref().map_or(0, |_| size_of::<u64>()) + of_fields;
        self.words.bytes() + of_leaves + self.len() * of_group
    }

    /// Bytes that an output field takes of all groups.
    pub(super) fn field_bytes(&self, field: usize) -> usize {
        match &self.fields[field] {
            Field::Times(_) => self.len() * size_of::<u64>(),
            other => self.len() * other.bytes(),
        }
    }

    /// Whether rows of a segment can be added, of whose types is taken note then: a row of another one does not fit any more.
    pub(super) fn fits(&mut self, segment: &Segment) -> bool {
        // Where a value is missing a key that is a document has no field, and null where it is null.
        let is_document = self.group.id.field_path().is_none();
        let of_leaf = |leaf: &Leaf| {
            let Some(of) = leaf.path() else {
                return Some(Kind::Nothing);
            };
            let column = column(segment, &of.path);
            let has_gaps = column.is_none_or(Column::has_gaps);
            of.with(column).filter(|_| !(is_document && has_gaps))
        };
        let Some(keys) = self.leaves.iter().map(of_leaf).collect::<Option<Vec<Kind>>>() else {
            return false;
        };
        let of_field = |field: &Field| match field.path() {
            None => Some(Kind::Nothing),
            Some(of) => of.with(column(segment, &of.path)).filter(|kind| field.takes(*kind)),
        };
        let Some(fields) = self.fields.iter().map(of_field).collect::<Option<Vec<Kind>>>() else {
            return false;
        };
        self.set_kinds((&keys, &fields));
        true
    }

    fn set_kinds(&mut self, (keys, fields): (&[Kind], &[Kind])) {
        for (leaf, kind) in self.leaves.iter_mut().zip(keys) {
            leaf.path_mut().into_iter().for_each(|of| of.kind = *kind);
        }
        for (field, kind) in self.fields.iter_mut().zip(fields) {
            field.path_mut().into_iter().for_each(|of| of.kind = *kind);
        }
    }

    /// Takes over which types the values have that fit another one, whose rows these are.
    pub(super) fn learn(&mut self, other: &Self) {
        let kind = |of: Option<&Path>| of.map_or(Kind::Nothing, |of| of.kind);
        let keys: Vec<Kind> = other.leaves.iter().map(|leaf| kind(leaf.path())).collect();
        let fields: Vec<Kind> = other.fields.iter().map(|field| kind(field.path())).collect();
        self.set_kinds((&keys, &fields));
    }

    /// Whether a document that goes to the table leaves these groups what they are. Of equal numbers of different types the first is the least, and
    /// the key of a group: where a document has one of those, it may be either.
    ///
    /// Errors: those of expressions.
    pub(super) fn stands_beside(&self, document: DocRef<'_>, op: &OpContext) -> Result<bool> {
        let of_fields = self.fields.iter().filter_map(|field| match field {
            Field::End { of, .. } => Some(of),
            _ => None,
        });
        // What the first row is decides of keys where that is known.
        let of_key = self
            .leaves
            .iter()
            .filter_map(Leaf::path)
            .filter(|_| self.firsts.is_none());
        for of in of_key.chain(of_fields) {
            let value = of.reads.eval_ref(&mut Env::new(document, op))?;
            if !of.is_alike(value.as_ref()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether two groups may have one key, though what they are made of is not the same.
    pub(super) fn has_equals(&self) -> bool {
        self.leaves
            .iter()
            .any(|leaf| matches!(leaf, Leaf::Made(made) if made.has_equals()))
    }

    /// Adds rows that fit, the first of which comes after all with a lower number; how many chunks of them, if not all could be told apart.
    ///
    /// Errors: those of expressions, and of the interrupt.
    pub(super) fn add(&mut self, rows: &ColumnRows, number: u32, op: &OpContext) -> Result<Option<usize>> {
        let mut numbers = std::mem::take(&mut self.numbers);
        let mut locals = vec![Vec::new(); self.leaves.len()];
        for (at, places) in rows.chunks().enumerate() {
            work(1 + places.len() / ROWS_PER_UNIT)?;
            let mut keys = Vec::with_capacity(self.leaves.len());
            for (leaf, local) in self.leaves.iter_mut().zip(&mut locals) {
                keys.push(Arc::new(leaf.vector(&rows.segment, &places, local, op)?));
            }
            numbers.clear();
            if !self.words.number_all(&keys, places.len(), &mut numbers) {
                return Ok(Some(at));
            }
            self.resize();
            numbers.iter().for_each(|group| self.counts[*group as usize] += 1);
            if let Some(firsts) = &mut self.firsts {
                let mut groups = numbers.iter();
                places.each(|row| {
                    let first = u64::from(number) << 32 | row as u64;
                    if let Some(group) = groups.next() {
                        let own = &mut firsts[*group as usize];
                        *own = first.min(*own);
                    }
                });
            }
            for field in &mut self.fields {
                field.add(&rows.segment, &places, &numbers);
            }
        }
        self.numbers = numbers;
        Ok(None)
    }

    fn resize(&mut self) {
        let groups = self.words.len();
        self.counts.resize(groups, 0);
        self.firsts
            .iter_mut()
            .for_each(|firsts| firsts.resize(groups, u64::MAX));
        self.fields.iter_mut().for_each(|field| field.resize(groups));
    }

    /// Takes groups of others, of the same kind: those at some places. `false`, and nothing is taken, when they cannot be told apart from these.
    ///
    /// Errors: those of the interrupt.
    pub(super) fn merge(&mut self, other: &Self, keys: &[Arc<Vector>], places: &[u32]) -> Result<bool> {
        work(1 + places.len() / ROWS_PER_UNIT)?;
        let leaves = self.leaves.iter_mut().zip(&other.leaves).zip(keys);
        let keys: Vec<Arc<Vector>> = leaves
            .map(|((own, other), key)| own.translated(other, &Arc::new(key.gather(places))))
            .collect();
        let mut numbers = Vec::with_capacity(places.len());
        if !self.words.number_all(&keys, places.len(), &mut numbers) {
            return Ok(false);
        }
        self.resize();
        for (at, group) in places.iter().zip(&numbers) {
            self.counts[*group as usize] += other.counts[*at as usize];
        }
        if let (Some(firsts), Some(others)) = (&mut self.firsts, &other.firsts) {
            for (at, group) in places.iter().zip(&numbers) {
                let own = &mut firsts[*group as usize];
                *own = others[*at as usize].min(*own);
            }
        }
        let fields = self.fields.iter_mut().zip(&other.fields);
        fields.for_each(|(own, other)| own.merge(other, (places, &numbers)));
        Ok(true)
    }

    /// What words were made of for all groups.
    pub(super) fn keys(&self) -> Vec<Arc<Vector>> {
        self.words.columns(0, self.len())
    }

    /// The part of the key by whose values rows are divided best, if there is one.
    pub(super) fn dividing(&self) -> Option<usize> {
        let divides = |at: &usize| {
            let kind = self.leaves[*at].path().map(|of| of.kind);
            matches!(kind, Some(Kind::Int32 | Kind::Int64 | Kind::Date | Kind::Text))
        };
        self.words.dividing((0..self.leaves.len()).filter(divides))
    }

    /// Of each group the hash of a part of its key, which is a path.
    pub(super) fn hashes(&self, leaf: usize, seed: &Seed) -> Vec<u64> {
        let hash = |group: usize| hash_of(self.leaves[leaf].value(self.words.value(group, leaf)).as_ref(), seed);
        (0..self.len()).map(hash).collect()
    }

    /// The path that a part of the key is.
    pub(super) fn path(&self, leaf: usize) -> Option<&str> {
        self.leaves[leaf].path().map(|of| &*of.path)
    }

    /// The groups as rows of columns, with the paths of the key below `_id`; `None` where columns do not hold what they have.
    pub(super) fn segment(&self) -> Option<Segment> {
        let mut paths = paths_made(&self.group)?.into_iter();
        let mut columns = Vec::with_capacity(self.leaves.len() + self.fields.len());
        for (leaf, values) in self.leaves.iter().zip(self.keys()) {
            let column = Column::made(&values, leaf.path()?.kind == Kind::Date)?;
            columns.push((paths.next()?, Arc::new(column)));
        }
        for (field, spec) in self.fields.iter().zip(&self.group.fields) {
            let (values, are_dates) = field.vector(spec.accumulator.name(), &self.counts)?;
            columns.push((paths.next()?, Arc::new(Column::made(&values, are_dates)?)));
        }
        Some(Segment::made(self.len(), columns))
    }

    fn key(&self, group: usize) -> Value {
        let leaves = self.leaves.iter().enumerate();
        let mut values = leaves.map(|(at, leaf)| leaf.value(self.words.value(group, at)));
        made(&self.group.id, &mut values)
    }

    /// Adds a group to those of the table.
    ///
    /// Errors: those of the accumulators.
    pub(super) fn give(&self, group: usize, table: &mut Table, op: &OpContext) -> Result<()> {
        let first = self.firsts.as_ref().map_or(table.now(), |firsts| firsts[group]);
        let at = table.group_from(self.key(group).as_ref(), first, op)?;
        table.each_state(at, |field, state| {
            self.fields[field]
                .give(group, self.counts[group], state)
                .map_err(AccumulatorSpec::group_error)
        })
    }

    /// The key of a group, and what its accumulators have.
    ///
    /// Errors: those of the accumulators.
    pub(super) fn bucket(&self, group: usize, op: &OpContext) -> Result<(Value, Vec<Accumulator>)> {
        let key = self.key(group);
        let key = if key.is_missing() { Value::Null } else { key };
        let fields = self.fields.iter().zip(&self.group.fields);
        let states = fields.map(|(field, spec)| {
            let mut state = spec.accumulator.start(&key, op)?;
            let given = field.give(group, self.counts[group], &mut state);
            given.map(|()| state).map_err(AccumulatorSpec::group_error)
        });
        let states = states.collect::<Result<_>>()?;
        Ok((key, states))
    }
}

/// The hash of what a row or a group has at a path.
pub(super) fn hash_of(value: ValueRef<'_>, seed: &Seed) -> u64 {
    match value {
        ValueRef::String(text) => seed.text(text),
        ValueRef::Int32(value) => seed.whole(i64::from(value)),
        ValueRef::Int64(value) | ValueRef::DateTime(value) => seed.whole(value),
        _ => 0,
    }
}

/// The paths of what a group makes of columns, in the order of its documents; `None` where that is more than columns.
pub(super) fn paths_made(group: &Group) -> Option<Vec<Str>> {
    let mut paths = Vec::new();
    let is_made_of_paths = paths_below(&group.id, "_id", &mut paths);
    paths.extend(group.fields.iter().map(|field| field.name.clone()));
    is_made_of_paths.then_some(paths)
}
