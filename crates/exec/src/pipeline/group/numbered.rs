//! Groups of rows of columns whose keys are words, with counts, sums of integers and the ends of these as numbers in vectors.
//!
//! They stand beside the table of groups and become rows, or groups of the table, in the end: what they have of their rows does not depend on the
//! order of these, nor on rows that went to the table. A group costs some dozens of bytes and no allocation. As words tell values apart and not their
//! types, all columns of a path have one type here ([`Numbered::fits`]).

use super::table::Table;
use crate::columns::ColumnRows;
use crate::columns::fields::column;
use crate::relation::groups::Words;
use nestor_columns::{Column, DAY_MS, Places, Segment, Values};
use nestor_model::statement::work;
use nestor_model::vector::{Data, Vector};
use nestor_model::{DocRef, Document, Result, Str, Value, ValueRef};
use nestor_query::Expr;
use nestor_query::accumulator::Accumulator;
use nestor_query::env::{Env, OpContext, Val};
use nestor_query::stage::{AccumulatorSpec, Group};
use std::sync::Arc;

/// Rows in a loop that count as a unit of work.
const ROWS_PER_UNIT: usize = 16;

/// Such groups.
pub(super) struct Numbered {
    group: Arc<Group>,
    /// What the key reads.
    key: Vec<Path>,
    words: Words,
    /// Rows of each group.
    counts: Vec<u64>,
    fields: Vec<Field>,
    numbers: Vec<u32>,
}

/// A path, and the type of the values there.
#[derive(Clone)]
struct Path {
    path: Str,
    /// What reads it of a document.
    reads: Arc<Expr>,
    kind: Kind,
}

/// The type of all values at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// There were none yet.
    Nothing,
    Bool,
    Int32,
    Int64,
    Date,
    Text,
    /// With such a scale.
    Decimal(u8),
}

/// What an output field has of all groups.
enum Field {
    /// The same value for each row.
    Times(Value),
    /// The sum of integers, and how many they are.
    Sum {
        of: Path,
        sums: Vec<i128>,
        counts: Vec<u64>,
    },
    /// The least or the largest of integers or dates, where there is one.
    End {
        of: Path,
        is_largest: bool,
        ends: Vec<i64>,
        are_there: Vec<bool>,
    },
}

impl Kind {
    /// That of a column; `None` for types that have no words.
    fn of(column: Option<&Column>) -> Option<Self> {
        Some(match column.map(Column::values) {
            None | Some(Values::Nothing) => Self::Nothing,
            Some(Values::Bool(_)) => Self::Bool,
            Some(Values::Int32(_)) => Self::Int32,
            Some(Values::Int64(_)) => Self::Int64,
            Some(Values::Date(_) | Values::Days(_)) => Self::Date,
            Some(Values::Text(..)) => Self::Text,
            Some(Values::Decimal(_, scale)) => Self::Decimal(*scale),
            Some(Values::Double(_) | Values::Scaled(..) | Values::Id(_) | Values::Any(_)) => return None,
        })
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::Nothing | Self::Int32 | Self::Int64)
    }

    fn integer(self, value: i64) -> ValueRef<'static> {
        match self {
            Self::Int32 => ValueRef::Int32(value as i32),
            Self::Date => ValueRef::DateTime(value),
            _ => ValueRef::Int64(value),
        }
    }
}

impl Path {
    fn new(path: &str) -> Option<Self> {
        Some(Self {
            path: path.into(),
            reads: Arc::new(Expr::field(path).ok()?),
            kind: Kind::Nothing,
        })
    }

    /// Whether a value is no number that may equal one of another type here.
    fn is_alike(&self, value: ValueRef<'_>) -> bool {
        match self.kind {
            Kind::Nothing | Kind::Bool | Kind::Date | Kind::Text => true,
            Kind::Int32 => !value.is_number() || matches!(value, ValueRef::Int32(_)),
            Kind::Int64 => !value.is_number() || matches!(value, ValueRef::Int64(_)),
            Kind::Decimal(_) => !value.is_number(),
        }
    }

    /// What the type of all values is with those of a column; `None` when they are of another one.
    fn with(&self, column: Option<&Column>) -> Option<Kind> {
        match (self.kind, Kind::of(column)?) {
            (own, Kind::Nothing) => Some(own),
            (Kind::Nothing, other) => Some(other),
            (own, other) => (own == other).then_some(own),
        }
    }
}

/// The paths of which a key is made such that it is another one wherever one of them is.
fn paths_of(id: &Expr, out: &mut Vec<Path>) -> Option<()> {
    if let Some(fields) = id.object_fields() {
        return fields.iter().try_for_each(|(_, field)| paths_of(field, out));
    }
    match id.field_path() {
        Some(path) if out.iter().any(|own| own.path == path.as_str()) => Some(()),
        Some(path) => {
            out.push(Path::new(path.as_str())?);
            Some(())
        }
        None => id.constant().map(|_| ()),
    }
}

impl Field {
    fn of(spec: &AccumulatorSpec) -> Option<Self> {
        let input = spec.only_input()?;
        let of = || input.field_path().and_then(|path| Path::new(path.as_str()));
        let end = |is_largest| {
            Some(Self::End {
                of: of()?,
                is_largest,
                ends: Vec::new(),
                are_there: Vec::new(),
            })
        };
        match (spec.name(), input.constant()) {
            ("$sum" | "$count", Some(value @ (Value::Int32(_) | Value::Int64(_)))) => Some(Self::Times(value.clone())),
            ("$sum" | "$avg", None) => Some(Self::Sum {
                of: of()?,
                sums: Vec::new(),
                counts: Vec::new(),
            }),
            ("$min", None) => end(false),
            ("$max", None) => end(true),
            _ => None,
        }
    }

    fn empty(&self) -> Self {
        match self {
            Self::Times(value) => Self::Times(value.clone()),
            Self::Sum { of, .. } => Self::Sum {
                of: of.clone(),
                sums: Vec::new(),
                counts: Vec::new(),
            },
            Self::End { of, is_largest, .. } => Self::End {
                of: of.clone(),
                is_largest: *is_largest,
                ends: Vec::new(),
                are_there: Vec::new(),
            },
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Times(_) => None,
            Self::Sum { of, .. } | Self::End { of, .. } => Some(of),
        }
    }

    fn path_mut(&mut self) -> Option<&mut Path> {
        match self {
            Self::Times(_) => None,
            Self::Sum { of, .. } | Self::End { of, .. } => Some(of),
        }
    }

    /// Whether it can have values of a type.
    fn takes(&self, kind: Kind) -> bool {
        match self {
            Self::Times(_) => true,
            Self::Sum { .. } => kind.is_integer(),
            Self::End { .. } => kind.is_integer() || kind == Kind::Date,
        }
    }

    /// There are so many groups now.
    fn resize(&mut self, groups: usize) {
        match self {
            Self::Times(_) => {}
            Self::Sum { sums, counts, .. } => {
                sums.resize(groups, 0);
                counts.resize(groups, 0);
            }
            Self::End {
                ends,
                are_there,
                is_largest,
                ..
            } => {
                ends.resize(groups, if *is_largest { i64::MIN } else { i64::MAX });
                are_there.resize(groups, false);
            }
        }
    }

    /// Bytes of a group.
    fn bytes(&self) -> usize {
        match self {
            Self::Times(_) => 0,
            Self::Sum { .. } => size_of::<i128>() + size_of::<u64>(),
            Self::End { .. } => size_of::<i64>() + size_of::<bool>(),
        }
    }

    /// Takes what rows of a segment have, which belong to these groups.
    fn add(&mut self, segment: &Segment, places: &Places<'_>, groups: &[u32]) {
        let Some(column) = self.path().and_then(|of| column(segment, &of.path)) else {
            return;
        };
        let Some(values) = integers(column, places) else {
            return;
        };
        let nulls = column.nulls(places);
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls[row]);
        let rows = groups.iter().map(|group| *group as usize).zip(values).enumerate();
        let rows = rows.filter(|(row, _)| !is_null(*row)).map(|(_, pair)| pair);
        match self {
            Self::Times(_) => {}
            Self::Sum { sums, counts, .. } => rows.for_each(|(group, value)| {
                sums[group] += i128::from(value);
                counts[group] += 1;
            }),
            Self::End {
                ends,
                are_there,
                is_largest,
                ..
            } => rows.for_each(|(group, value)| {
                let end = &mut ends[group];
                *end = if *is_largest { value.max(*end) } else { value.min(*end) };
                are_there[group] = true;
            }),
        }
    }

    /// Takes what others have, whose groups are these here.
    fn merge(&mut self, other: &Self, groups: &[u32]) {
        let groups = groups.iter().map(|group| *group as usize).enumerate();
        match (self, other) {
            (
                Self::Sum { sums, counts, .. },
                Self::Sum {
                    sums: more,
                    counts: with,
                    ..
                },
            ) => groups.for_each(|(at, group)| {
                sums[group] += more[at];
                counts[group] += with[at];
            }),
            (
                Self::End {
                    ends,
                    are_there,
                    is_largest,
                    ..
                },
                Self::End {
                    ends: others,
                    are_there: there,
                    ..
                },
            ) => groups.filter(|(at, _)| there[*at]).for_each(|(at, group)| {
                let (end, other) = (&mut ends[group], others[at]);
                *end = if *is_largest { other.max(*end) } else { other.min(*end) };
                are_there[group] = true;
            }),
            _ => {}
        }
    }

    /// Lets an accumulator take what a group of so many rows has.
    ///
    /// Errors: those of the accumulator.
    fn give(&self, group: usize, rows: u64, to: &mut Accumulator) -> Result<()> {
        match self {
            Self::Times(value) => to.add_times(value.as_ref(), rows as usize),
            Self::Sum { of, sums, counts } => {
                to.add_total(sums[group], counts[group], of.kind == Kind::Int64);
                Ok(())
            }
            Self::End {
                of, ends, are_there, ..
            } => match are_there[group] {
                true => to.add(Val::Ref(of.kind.integer(ends[group]))),
                false => Ok(()),
            },
        }
    }
}

/// The integers or dates of a column in some rows; those of rows without one mean nothing.
fn integers(column: &Column, places: &Places<'_>) -> Option<Vec<i64>> {
    match column.values() {
        Values::Int32(values) | Values::Int64(values) | Values::Date(values) => {
            Some(values.pick(places, |value| value))
        }
        Values::Days(days) => Some(days.pick(places, |day| day * DAY_MS)),
        _ => None,
    }
}

/// The values of a column that words can be made of.
fn vector(column: Option<&Column>, places: &Places<'_>) -> Vector {
    match column {
        None => Vector::same(Value::Null, places.len()),
        Some(column) => match column.values() {
            Values::Date(_) | Values::Days(_) => Vector {
                data: Data::Int64(integers(column, places).unwrap_or_default()),
                nulls: column.nulls(places),
            },
            _ => column.vector(places),
        },
    }
}

/// The value that a key is, of those at its paths.
fn made(id: &Expr, value: &dyn Fn(&str) -> Value) -> Value {
    match (id.object_fields(), id.field_path()) {
        (Some(fields), _) => {
            let mut document = Document::with_capacity(fields.len());
            fields
                .iter()
                .for_each(|(name, field)| document.push(name.clone(), made(field, value)));
            Value::Document(document)
        }
        (None, Some(path)) => value(path.as_str()),
        (None, None) => id.constant().cloned().unwrap_or(Value::Null),
    }
}

impl Numbered {
    /// No groups; `None` when the key or some field of a group is not of this kind.
    pub(super) fn of(group: &Arc<Group>) -> Option<Self> {
        let mut key = Vec::new();
        paths_of(&group.id, &mut key)?;
        let fields = group.fields.iter().map(|field| Field::of(&field.accumulator));
        Some(Self {
            group: group.clone(),
            words: words(key.len())?,
            key,
            counts: Vec::new(),
            fields: fields.collect::<Option<_>>()?,
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
        Some(Self {
            group: self.group.clone(),
            key: self.key.clone(),
            words: words(self.key.len())?,
            counts: Vec::new(),
            fields: self.fields.iter().map(Field::empty).collect(),
            numbers: Vec::new(),
        })
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Bytes that they take, about.
    pub(super) fn bytes(&self) -> usize {
        let of_fields: usize = self.fields.iter().map(Field::bytes).sum();
        self.words.bytes() + self.len() * (size_of::<u64>() + of_fields)
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
        let of_key = |of: &Path| {
            let column = column(segment, &of.path);
            let has_gaps = column.is_none_or(Column::has_gaps);
            of.with(column).filter(|_| !(is_document && has_gaps))
        };
        let Some(keys) = self.key.iter().map(of_key).collect::<Option<Vec<Kind>>>() else {
            return false;
        };
        let of_field = |field: &Field| match field.path() {
            None => Some(Kind::Nothing),
            Some(of) => of.with(column(segment, &of.path)).filter(|kind| field.takes(*kind)),
        };
        let Some(fields) = self.fields.iter().map(of_field).collect::<Option<Vec<Kind>>>() else {
            return false;
        };
        self.key.iter_mut().zip(keys).for_each(|(of, kind)| of.kind = kind);
        for (field, kind) in self.fields.iter_mut().zip(fields) {
            field.path_mut().into_iter().for_each(|of| of.kind = kind);
        }
        true
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
        for of in self.key.iter().chain(of_fields) {
            let value = of.reads.eval_ref(&mut Env::new(document, op))?;
            if !of.is_alike(value.as_ref()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds rows that fit; how many chunks of them, if not all could be told apart.
    ///
    /// Errors: those of the interrupt.
    pub(super) fn add(&mut self, rows: &ColumnRows) -> Result<Option<usize>> {
        let mut numbers = std::mem::take(&mut self.numbers);
        for (at, places) in rows.chunks().enumerate() {
            work(1 + places.len() / ROWS_PER_UNIT)?;
            let key = |of: &Path| Arc::new(vector(column(&rows.segment, &of.path), &places));
            let keys: Vec<Arc<Vector>> = self.key.iter().map(key).collect();
            numbers.clear();
            if !self.words.number_all(&keys, places.len(), &mut numbers) {
                return Ok(Some(at));
            }
            self.resize();
            numbers.iter().for_each(|group| self.counts[*group as usize] += 1);
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
        self.fields.iter_mut().for_each(|field| field.resize(groups));
    }

    /// Takes others, of the same kind; those that cannot be told apart from these are given back.
    ///
    /// Errors: those of the interrupt.
    pub(super) fn merge(&mut self, other: Self) -> Result<Option<Self>> {
        work(1 + other.len() / ROWS_PER_UNIT)?;
        let keys = other.words.columns(0, other.len());
        let mut numbers = Vec::with_capacity(other.len());
        if !self.words.number_all(&keys, other.len(), &mut numbers) {
            return Ok(Some(other));
        }
        self.resize();
        let pairs = numbers.iter().zip(&other.counts);
        pairs.for_each(|(group, count)| self.counts[*group as usize] += count);
        let fields = self.fields.iter_mut().zip(&other.fields);
        fields.for_each(|(own, other)| own.merge(other, &numbers));
        Ok(None)
    }

    fn key(&self, group: usize) -> Value {
        let value = |path: &str| {
            let Some(at) = self.key.iter().position(|own| own.path == path) else {
                return Value::Null;
            };
            match (self.key[at].kind, self.words.value(group, at)) {
                (Kind::Date, Value::Int64(ms)) => Value::DateTime(ms),
                (_, value) => value,
            }
        };
        made(&self.group.id, &value)
    }

    /// Adds a group to those of the table.
    ///
    /// Errors: those of the accumulators.
    pub(super) fn give(&self, group: usize, table: &mut Table, op: &OpContext) -> Result<()> {
        let at = table.group_of(self.key(group).as_ref(), op)?;
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

fn words(width: usize) -> Option<Words> {
    Words::new(width, &[(0..width).collect()])
}
