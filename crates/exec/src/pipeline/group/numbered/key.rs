//! What the keys of numbered groups are made of.

use crate::columns::fields::{Fields, column, paths_of};
use crate::pipeline::group::parts::{ENTRY_BYTES, KeyPart, Local, Numbers, leaves, number};
use nestor_columns::{Column, DAY_MS, Places, Segment, Values};
use nestor_model::vector::{Data, Vector};
use nestor_model::{Document, Result, Str, Value, ValueRef};
use nestor_query::Expr;
use nestor_query::env::OpContext;
use nestor_query::expr::Deps;
use std::sync::Arc;

/// A path, and the type of the values there.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) path: Str,
    /// What reads it of a document.
    pub(super) reads: Arc<Expr>,
    pub(super) kind: Kind,
}

/// The type of all values at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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

    pub(super) fn is_integer(self) -> bool {
        matches!(self, Self::Nothing | Self::Int32 | Self::Int64)
    }

    pub(super) fn integer(self, value: i64) -> ValueRef<'static> {
        match self {
            Self::Int32 => ValueRef::Int32(value as i32),
            Self::Date => ValueRef::DateTime(value),
            _ => ValueRef::Int64(value),
        }
    }
}

impl Path {
    pub(super) fn new(path: &str) -> Option<Self> {
        Some(Self {
            path: path.into(),
            reads: Arc::new(Expr::field(path).ok()?),
            kind: Kind::Nothing,
        })
    }

    /// Whether a value is no number that may equal one of another type here.
    pub(super) fn is_alike(&self, value: ValueRef<'_>) -> bool {
        match self.kind {
            Kind::Nothing | Kind::Bool | Kind::Date | Kind::Text => true,
            Kind::Int32 => !value.is_number() || matches!(value, ValueRef::Int32(_)),
            Kind::Int64 => !value.is_number() || matches!(value, ValueRef::Int64(_)),
            Kind::Decimal(_) => !value.is_number(),
        }
    }

    /// What the type of all values is with those of a column; `None` when they are of another one.
    pub(super) fn with(&self, column: Option<&Column>) -> Option<Kind> {
        match (self.kind, Kind::of(column)?) {
            (own, Kind::Nothing) => Some(own),
            (Kind::Nothing, other) => Some(other),
            (own, other) => (own == other).then_some(own),
        }
    }
}

/// A part of the key that is no constant.
pub(super) enum Leaf {
    Path(Path),
    Made(Box<Made>),
}

/// What an expression gives, by numbers of its results.
pub(super) struct Made {
    expr: Expr,
    fields: Fields,
    part: KeyPart,
    results: Numbers,
    entries: usize,
}

/// The parts of a key; `None` when it cannot be made of them.
pub(super) fn leaves_of(id: &Expr) -> Option<Vec<Leaf>> {
    let leaf = |leaf: &Expr| match leaf.field_path() {
        Some(path) => Path::new(path.as_str()).map(Leaf::Path),
        None => Made::of(leaf).map(|made| Leaf::Made(Box::new(made))),
    };
    leaves(id).into_iter().map(leaf).collect()
}

/// The paths that the parts of a key have below one, and whether all of the key is parts.
pub(super) fn paths_below(id: &Expr, path: &str, out: &mut Vec<Str>) -> bool {
    match id.object_fields() {
        Some(fields) => {
            let mut below = fields.iter();
            // An empty document is no column.
            !fields.is_empty() && below.all(|(name, field)| paths_below(field, &format!("{path}.{name}"), out))
        }
        None => {
            out.push(path.into());
            id.field_path().is_some()
        }
    }
}

/// The value that a key is, of those that its parts have.
pub(super) fn made(id: &Expr, values: &mut dyn Iterator<Item = Value>) -> Value {
    if let Some(fields) = id.object_fields() {
        let mut document = Document::with_capacity(fields.len());
        fields
            .iter()
            .for_each(|(name, field)| document.push(name.clone(), made(field, values)));
        return Value::Document(document);
    }
    match id.constant() {
        Some(value) => value.clone(),
        None => values.next().unwrap_or(Value::Null),
    }
}

impl Made {
    fn of(leaf: &Expr) -> Option<Self> {
        let mut deps = Deps::default();
        leaf.dependencies(&mut deps);
        let fields = Fields::new(paths_of(&deps)?);
        Some(Self {
            part: KeyPart::of(leaf, fields.paths())?,
            expr: leaf.clone(),
            fields,
            results: Numbers::keeping(),
            entries: 0,
        })
    }

    /// Whether two of its results may be one key, though they are not the same.
    pub(super) fn has_equals(&self) -> bool {
        self.results.have_equals()
    }

    /// The result with a number.
    pub(super) fn value(&self, number: u32) -> Value {
        self.results.value(number)
    }

    fn bytes(&self) -> usize {
        self.entries * ENTRY_BYTES + self.part.bytes() + self.results.bytes()
    }

    fn vector(&mut self, segment: &Segment, places: &Places<'_>, local: &mut Local, op: &OpContext) -> Result<Vector> {
        let columns = self.fields.columns(segment);
        let rows = places.map(|row| row);
        let known = (&mut self.results, &mut self.entries);
        let numbers = self
            .part
            .numbers((&self.fields, &columns), (places, &rows), local, known, op)?;
        Ok(Data::Int32(numbers.into_iter().map(u32::cast_signed).collect()).into())
    }
}

impl Leaf {
    /// The same of no rows.
    pub(super) fn empty(&self) -> Option<Self> {
        Some(match self {
            Self::Path(path) => Self::Path(path.clone()),
            Self::Made(made) => Self::Made(Box::new(Made::of(&made.expr)?)),
        })
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Made(_) => None,
        }
    }

    pub(super) fn path_mut(&mut self) -> Option<&mut Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Made(_) => None,
        }
    }

    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Path(_) => 0,
            Self::Made(made) => made.bytes(),
        }
    }

    /// What words can be made of for some rows.
    ///
    /// Errors: those of expressions, and of the interrupt.
    pub(super) fn vector(
        &mut self,
        segment: &Segment,
        places: &Places<'_>,
        local: &mut Local,
        op: &OpContext,
    ) -> Result<Vector> {
        match self {
            Self::Path(path) => Ok(vector(column(segment, &path.path), places)),
            Self::Made(made) => made.vector(segment, places, local, op),
        }
    }

    /// What another one has made words of, as words are made of it here.
    pub(super) fn translated(&mut self, other: &Self, vector: &Arc<Vector>) -> Arc<Vector> {
        let (Self::Made(made), Self::Made(other), Data::Int32(numbers)) = (self, other, &vector.data) else {
            return vector.clone();
        };
        let own = |number: &i32| {
            let value = other.value(number.cast_unsigned());
            number_of(made, &value).cast_signed()
        };
        Arc::new(Data::Int32(numbers.iter().map(own).collect()).into())
    }

    /// The value that a word's value stands for.
    pub(super) fn value(&self, value: Value) -> Value {
        match (self, value) {
            (Self::Path(path), Value::Int64(ms)) if path.kind == Kind::Date => Value::DateTime(ms),
            (Self::Made(made), Value::Int32(number)) => made.value(number.cast_unsigned()),
            (_, value) => value,
        }
    }
}

fn number_of(made: &mut Made, value: &Value) -> u32 {
    number(&mut made.results, &mut made.entries, value.as_ref())
}

/// The integers or dates of a column in some rows; those of rows without one mean nothing.
pub(super) fn integers(column: &Column, places: &Places<'_>) -> Option<Vec<i64>> {
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
