//! Values as arrays of Arrow.

use super::shape::{PRECISION, Shape, digits, fields_of};
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Decimal128Builder, FixedSizeBinaryBuilder, Float64Builder, Int32Builder,
    Int64Builder, StringBuilder,
};
use arrow_array::types::{
    Date32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, ListArray, PrimitiveArray, StructArray,
};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use nestor_model::extjson::{self, Form};
use nestor_model::vector::{Data, Vector};
use nestor_model::{Decimal128, ValueRef};
use std::sync::Arc;

/// A value that its column cannot hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Misfit {
    /// Where below the column.
    pub path: String,
    /// What it is.
    pub found: String,
}

impl Misfit {
    fn of(value: ValueRef<'_>) -> Self {
        Self {
            path: String::new(),
            found: match value {
                ValueRef::Decimal128(_) => "a decimal with more digits than those before it have".to_owned(),
                value => format!("a value of type {}", value.bson_type().alias()),
            },
        }
    }

    fn below(self, name: &str) -> Self {
        let path = match self.path.is_empty() {
            true => name.to_owned(),
            false => format!("{name}.{}", self.path),
        };
        Self { path, ..self }
    }
}

/// Collects the values of a column.
pub(crate) enum Encoder {
    Bool(BooleanBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, i8),
    Text(StringBuilder),
    ObjectId(StringBuilder),
    Json(StringBuilder),
    Binary(BinaryBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Days(Int32Builder),
    /// Dates, times and moments, all of them 64 bits.
    Long(Int64Builder, Shape),
    List {
        inner: Box<Encoder>,
        shape: Shape,
        ends: Vec<i32>,
        nulls: NullBufferBuilder,
    },
    Struct {
        inners: Vec<Encoder>,
        fields: Vec<(String, Shape)>,
        /// Which fields the document has had.
        seen: Vec<bool>,
        nulls: NullBufferBuilder,
    },
}

impl Encoder {
    /// For columns of a shape.
    pub(crate) fn new(shape: &Shape) -> Self {
        match shape {
            Shape::Unknown | Shape::Text => Self::Text(StringBuilder::new()),
            Shape::Bool => Self::Bool(BooleanBuilder::new()),
            Shape::Int32 => Self::Int32(Int32Builder::new()),
            Shape::Int64 => Self::Int64(Int64Builder::new()),
            Shape::Double => Self::Double(Float64Builder::new()),
            Shape::Decimal(scale) => Self::Decimal(Decimal128Builder::new().with_data_type(shape.data_type()), *scale),
            Shape::ObjectId => Self::ObjectId(StringBuilder::new()),
            Shape::Json => Self::Json(StringBuilder::new()),
            Shape::Binary => Self::Binary(BinaryBuilder::new()),
            Shape::Uuid => Self::Uuid(FixedSizeBinaryBuilder::new(16)),
            Shape::Days => Self::Days(Int32Builder::new()),
            Shape::Millis | Shape::Micros(_) | Shape::TimeOfDay => Self::Long(Int64Builder::new(), shape.clone()),
            Shape::List(inner) => Self::List {
                inner: Box::new(Self::new(inner)),
                shape: (**inner).clone(),
                ends: vec![0],
                nulls: NullBufferBuilder::new(0),
            },
            Shape::Struct(fields) => Self::Struct {
                inners: fields.iter().map(|(_, shape)| Self::new(shape)).collect(),
                fields: fields.clone(),
                seen: vec![false; fields.len()],
                nulls: NullBufferBuilder::new(0),
            },
        }
    }

    /// Adds a value.
    ///
    /// Errors: it is of another type than the column.
    pub(crate) fn push(&mut self, value: ValueRef<'_>) -> Result<(), Misfit> {
        use ValueRef as V;
        match (self, value) {
            (own, V::Missing | V::Null) => own.push_null(),
            (Self::Bool(out), V::Bool(value)) => out.append_value(value),
            (Self::Int32(out) | Self::Days(out), V::Int32(value)) => out.append_value(value),
            (Self::Int64(out), V::Int32(value)) => out.append_value(i64::from(value)),
            (Self::Int64(out), V::Int64(value)) => out.append_value(value),
            (Self::Double(out), V::Double(value)) => out.append_value(value),
            (Self::Double(out), V::Int32(value)) => out.append_value(f64::from(value)),
            (Self::Double(out), V::Int64(whole)) => match (whole as f64) as i64 == whole && whole != i64::MAX {
                true => out.append_value(whole as f64),
                false => return Err(Misfit::of(value)),
            },
            (Self::Decimal(out, scale), V::Decimal128(_) | V::Int32(_) | V::Int64(_)) => {
                let decimal = match value {
                    V::Int32(whole) => Decimal128::from_i32(whole),
                    V::Int64(whole) => Decimal128::from_i64(whole),
                    V::Decimal128(decimal) => decimal,
                    _ => return Err(Misfit::of(value)),
                };
                out.append_value(digits(decimal, *scale).ok_or_else(|| Misfit::of(value))?);
            }
            (Self::Text(out), V::String(text)) => out.append_value(text),
            (Self::ObjectId(out), V::ObjectId(id)) => out.append_value(id.to_string()),
            (Self::Json(out), value) => out.append_value(extjson::to_string(&value.to_value(), Form::Relaxed)),
            (own, V::Undefined) => own.push_null(),
            (Self::Binary(out), V::Binary { bytes, .. }) => out.append_value(bytes),
            (Self::Uuid(out), V::Binary { bytes, .. }) => out.append_value(bytes).map_err(|_| Misfit::of(value))?,
            (Self::Long(out, Shape::Millis), V::DateTime(ms)) => out.append_value(ms),
            (Self::Long(out, Shape::Micros(_) | Shape::TimeOfDay), V::Int64(us)) => out.append_value(us),
            (Self::List { inner, ends, nulls, .. }, V::Array(items)) => {
                let mut count = ends.last().copied().unwrap_or(0);
                for item in items.iter() {
                    inner.push(item).map_err(|misfit| misfit.below("[]"))?;
                    count = count.checked_add(1).ok_or_else(|| Misfit::of(value))?;
                }
                ends.push(count);
                nulls.append_non_null();
            }
            (
                Self::Struct {
                    inners,
                    fields,
                    seen,
                    nulls,
                },
                V::Document(doc),
            ) => {
                seen.fill(false);
                let mut next = 0;
                for (name, value) in doc.iter() {
                    let is_it = |at: &usize| fields[*at].0 == name;
                    let found = Some(next).filter(|at| *at < fields.len() && is_it(at));
                    let Some(at) = found.or_else(|| (0..fields.len()).find(is_it)) else {
                        let path = name.to_owned();
                        let found = "a field that no document before it has".to_owned();
                        return Err(Misfit { path, found });
                    };
                    next = at + 1;
                    // Of a field that a document has twice the first counts.
                    if !std::mem::replace(&mut seen[at], true) {
                        inners[at].push(value).map_err(|misfit| misfit.below(name))?;
                    }
                }
                let missing = inners.iter_mut().zip(seen).filter(|(_, seen)| !**seen);
                missing.for_each(|(inner, _)| inner.push_null());
                nulls.append_non_null();
            }
            (_, value) => return Err(Misfit::of(value)),
        }
        Ok(())
    }

    fn push_null(&mut self) {
        match self {
            Self::Bool(out) => out.append_null(),
            Self::Int32(out) | Self::Days(out) => out.append_null(),
            Self::Int64(out) | Self::Long(out, _) => out.append_null(),
            Self::Double(out) => out.append_null(),
            Self::Decimal(out, _) => out.append_null(),
            Self::Text(out) | Self::ObjectId(out) | Self::Json(out) => out.append_null(),
            Self::Binary(out) => out.append_null(),
            Self::Uuid(out) => out.append_null(),
            Self::List { ends, nulls, .. } => {
                ends.push(ends.last().copied().unwrap_or(0));
                nulls.append_null();
            }
            Self::Struct { inners, nulls, .. } => {
                inners.iter_mut().for_each(Self::push_null);
                nulls.append_null();
            }
        }
    }

    /// What was added, and begins anew.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(out) => Arc::new(out.finish()),
            Self::Int32(out) => Arc::new(out.finish()),
            Self::Int64(out) => Arc::new(out.finish()),
            Self::Double(out) => Arc::new(out.finish()),
            Self::Decimal(out, scale) => {
                let array = out.finish();
                debug_assert_eq!(
                    array.data_type(),
                    &Shape::Decimal(*scale).data_type(),
                    "{PRECISION} digits"
                );
                Arc::new(array)
            }
            Self::Text(out) | Self::ObjectId(out) | Self::Json(out) => Arc::new(out.finish()),
            Self::Binary(out) => Arc::new(out.finish()),
            Self::Uuid(out) => Arc::new(out.finish()),
            Self::Days(out) => Arc::new(out.finish().reinterpret_cast::<Date32Type>()),
            Self::Long(out, shape) => long(out.finish(), shape),
            Self::List {
                inner,
                shape,
                ends,
                nulls,
            } => {
                let ends = std::mem::replace(ends, vec![0]);
                let field = Arc::new(shape.field("element"));
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(ListArray::new(field, offsets, inner.finish(), nulls.finish()))
            }
            Self::Struct {
                inners, fields, nulls, ..
            } => {
                let arrays = inners.iter_mut().map(Self::finish).collect();
                Arc::new(StructArray::new(fields_of(fields), arrays, nulls.finish()))
            }
        }
    }
}

/// 64-bit numbers as what their shape says.
fn long(array: PrimitiveArray<Int64Type>, shape: &Shape) -> ArrayRef {
    match shape {
        Shape::Millis => Arc::new(
            array
                .reinterpret_cast::<TimestampMillisecondType>()
                .with_timezone("UTC"),
        ),
        Shape::Micros(true) => Arc::new(
            array
                .reinterpret_cast::<TimestampMicrosecondType>()
                .with_timezone("UTC"),
        ),
        Shape::Micros(false) => Arc::new(array.reinterpret_cast::<TimestampMicrosecondType>()),
        Shape::TimeOfDay => Arc::new(array.reinterpret_cast::<Time64MicrosecondType>()),
        _ => Arc::new(array),
    }
}

/// A vector as a column.
///
/// Errors: a value is of another type than the column.
pub fn column(shape: &Shape, vector: &Vector) -> Result<ArrayRef, Misfit> {
    let nulls = || {
        let nulls = vector.nulls.as_ref()?;
        let valid: Vec<bool> = nulls.iter().map(|is_null| !is_null).collect();
        Some(NullBuffer::from(valid))
    };
    Ok(match (shape, &vector.data) {
        (Shape::Bool, Data::Bool(values)) => Arc::new(BooleanArray::new(values.clone().into(), nulls())),
        (Shape::Int32, Data::Int32(values)) => Arc::new(Int32Array::new(values.clone().into(), nulls())),
        (Shape::Days, Data::Int32(values)) => {
            Arc::new(PrimitiveArray::<Date32Type>::new(values.clone().into(), nulls()))
        }
        (Shape::Double, Data::Double(values)) => Arc::new(Float64Array::new(values.clone().into(), nulls())),
        (Shape::Int64 | Shape::Micros(_) | Shape::TimeOfDay, Data::Int64(values)) => {
            long(Int64Array::new(values.clone().into(), nulls()), shape)
        }
        (Shape::Text, Data::Text(texts)) => {
            let mut out = StringBuilder::with_capacity(texts.len(), texts.weight());
            for row in 0..texts.len() {
                match vector.is_null(row) {
                    true => out.append_null(),
                    false => out.append_value(texts.get(row)),
                }
            }
            Arc::new(out.finish())
        }
        _ => {
            let mut encoder = Encoder::new(shape);
            for row in 0..vector.len() {
                encoder.push(vector.value(row).as_ref())?;
            }
            encoder.finish()
        }
    })
}
