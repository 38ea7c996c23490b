//! Parquet and Arrow's IPC: columns of types, of which those that a scan looks at are read. Row groups of Parquet whose statistics say that no
//! row of them meets the conditions are passed over.

use super::{Part, io_error, told};
use crate::catalog::files::{Form, Source};
use crate::catalog::{Column, Table};
use crate::error::{error, fail, unsupported};
use crate::run::bounds::Bound;
use crate::types::{Type, stored};
use nestor_files::arrow::array::{self, ArrowPrimitiveType, AsArray};
use nestor_files::arrow::decode::{Kind, kind, micros, value};
use nestor_files::arrow::{
    Array, ArrayRef, ArrowError, DataType, Field, RecordBatch, SchemaRef, TimeUnit, ipc, parquet,
};
use nestor_model::vector::{Builder, Data, Vector};
use nestor_model::{Error, Result, Value};
use nestor_planner::relation::chunk::ROWS;
use nestor_planner::relation::explain::ColumnFigures;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 8 * ROWS;

/// What a scan wants of a file.
pub(super) struct Wanted<'w> {
    /// The table.
    pub table: &'w Arc<Table>,
    /// Which columns are looked at.
    pub needed: &'w [bool],
    /// What bounds their values.
    pub bounds: &'w [Bound],
}

/// The rows of a file.
pub(super) struct Batches {
    batches: Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>>>,
    file: PathBuf,
    table: Arc<Table>,
    /// Where a batch has each column of the table, if it has it.
    places: Vec<Option<usize>>,
    /// What was decoded, where it goes on, and how many rows it is at.
    batch: Option<RecordBatch>,
    next: usize,
    rows: usize,
}

fn damaged(failed: impl std::fmt::Display, file: &Path) -> Error {
    told(error("22P04", failed.to_string()), file, None)
}

fn open_parquet(source: &Source, file: &Path) -> Result<parquet::Reader> {
    let opened = source.folder.read(file).map_err(|failed| io_error(&failed, file))?;
    parquet::Reader::open(opened).map_err(|failed| damaged(failed, file))
}

fn open_ipc(source: &Source, file: &Path, columns: Option<Vec<usize>>) -> Result<ipc::Reader<std::fs::File>> {
    let opened = source.folder.read(file).map_err(|failed| io_error(&failed, file))?;
    ipc::Reader::open(opened, columns).map_err(|failed| damaged(failed, file))
}

fn schema(source: &Source, file: &Path) -> Result<SchemaRef> {
    match source.form {
        Form::Parquet => Ok(open_parquet(source, file)?.schema().clone()),
        _ => Ok(open_ipc(source, file, None)?.schema()),
    }
}

/// The columns of files: those of the first one.
///
/// Errors: those of the system; the file is damaged; a column is of a type that is none here.
pub(super) fn columns(source: &Source) -> Result<Vec<Column>> {
    let Some(file) = source.files.first() else {
        return Ok(Vec::new());
    };
    let schema = schema(source, file)?;
    schema.fields().iter().map(|field| column(field)).collect()
}

fn column(field: &Field) -> Result<Column> {
    let ty = match field.data_type() {
        DataType::Null => Type::Text,
        DataType::Boolean => Type::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => Type::Int4,
        DataType::Int64 | DataType::UInt32 => Type::Int8,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Type::Float8,
        DataType::UInt64 | DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
            Type::Numeric
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => match kind(field) {
            Kind::ObjectId => Type::ObjectId,
            Kind::Json => Type::Jsonb,
            Kind::Plain | Kind::Uuid => Type::Text,
        },
        DataType::FixedSizeBinary(16) if kind(field) == Kind::Uuid => Type::Uuid,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Type::Bytea,
        DataType::Date32 | DataType::Date64 => Type::Date,
        DataType::Timestamp(_, None) => Type::Timestamp,
        DataType::Timestamp(_, Some(_)) => Type::Timestamptz,
        DataType::Time32(_) | DataType::Time64(_) => Type::Time,
        DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _) => {
            match column(inner)?.ty {
                // Arrays of documents, and of arrays, have no type of their own.
                Type::Jsonb | Type::Array(_) => Type::Jsonb,
                element => element.array(),
            }
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| column(field));
            return Ok(Column {
                fields: fields.collect::<Result<_>>()?,
                ..Column::new(field.name(), Type::Jsonb)
            });
        }
        DataType::Map(..) => Type::Jsonb,
        DataType::Dictionary(_, values) => {
            let of_values = field.clone().with_data_type((**values).clone());
            return column(&of_values);
        }
        other => return unsupported(format!("column \"{}\" of type {other}", field.name())),
    };
    Ok(Column::new(field.name(), ty))
}

impl Batches {
    /// The rows of a file, from the first one on, as far as the wanted columns go.
    ///
    /// Errors: those of opening it; it lacks a column that is looked at.
    pub(super) fn open(source: &Source, file: &Path, wanted: &Wanted<'_>, figures: &mut ColumnFigures) -> Result<Self> {
        let parquet = match source.form {
            Form::Parquet => Some(open_parquet(source, file)?),
            _ => None,
        };
        let schema = match &parquet {
            Some(reader) => reader.schema().clone(),
            None => open_ipc(source, file, None)?.schema(),
        };
        let own = wanted.table.columns.len() - usize::from(source.filename);
        let mut places = vec![None; wanted.table.columns.len()];
        for at in (0..own).filter(|at| wanted.needed.get(*at) == Some(&true)) {
            let name = &wanted.table.columns[at].path;
            let Some((place, _)) = schema.column_with_name(name) else {
                return fail("42703", format!("{}: column \"{name}\" is not there", file.display()));
            };
            places[at] = Some(place);
        }
        let mut read: Vec<usize> = places.iter().flatten().copied().collect();
        if read.is_empty() && parquet.is_none() {
            // A batch without columns has no rows.
            read.push(0);
        }
        read.sort_unstable();
        for place in places.iter_mut().flatten() {
            *place = read.binary_search(place).unwrap_or(0);
        }
        let batches: Box<dyn Iterator<Item = _>> = match parquet {
            Some(reader) => {
                let groups = groups(&reader, wanted, figures);
                let batches = reader.batches(&read, groups, BATCH_ROWS);
                Box::new(batches.map_err(|failed| damaged(failed, file))?)
            }
            None => Box::new(open_ipc(source, file, Some(read))?),
        };
        Ok(Self {
            batches,
            file: file.to_owned(),
            table: wanted.table.clone(),
            places,
            batch: None,
            next: 0,
            rows: 0,
        })
    }
}

/// The row groups that may have rows which meet all conditions.
fn groups(reader: &parquet::Reader, wanted: &Wanted<'_>, figures: &mut ColumnFigures) -> Vec<usize> {
    let mut left = vec![true; reader.groups()];
    for bound in wanted.bounds {
        let Some(column) = wanted.table.columns.get(bound.column) else {
            continue;
        };
        let field = reader.schema().field_with_name(&column.path);
        let (Ok(field), Some((least, most))) = (field, reader.ranges(&column.path)) else {
            continue;
        };
        let values = |array: &ArrayRef| vector(&column.ty, field, array, None).ok();
        let (Some(least), Some(most)) = (values(&least), values(&most)) else {
            continue;
        };
        for (group, left) in left.iter_mut().enumerate() {
            if !least.is_null(group) && !most.is_null(group) {
                // NaN is greater than all others, and no statistics tell of it.
                let most = match column.ty {
                    Type::Float8 => Value::Double(f64::NAN),
                    _ => most.value(group),
                };
                *left = *left && !bound.excludes(&column.ty, least.value(group), most);
            }
        }
    }
    let groups: Vec<usize> = (0..left.len()).filter(|group| left[*group]).collect();
    figures.segments += groups.len() as u64;
    figures.skipped += (left.len() - groups.len()) as u64;
    groups
}

impl Part for Batches {
    fn advance(&mut self) -> Result<usize> {
        self.next += self.rows;
        loop {
            if let Some(batch) = &self.batch {
                self.rows = (batch.num_rows() - self.next).min(ROWS);
                if self.rows > 0 {
                    return Ok(self.rows);
                }
            }
            (self.next, self.rows) = (0, 0);
            match self.batches.next() {
                Some(batch) => self.batch = Some(batch.map_err(|failed| damaged(failed, &self.file))?),
                None => {
                    self.batch = None;
                    return Ok(0);
                }
            }
        }
    }

    fn column(&mut self, at: usize, places: Option<&[u32]>) -> Result<Vector> {
        let nothing = || Vector::same(Value::Null, places.map_or(self.rows, <[u32]>::len));
        let (Some(batch), Some(column)) = (&self.batch, self.table.columns.get(at)) else {
            return Ok(nothing());
        };
        let Some(place) = self.places[at] else {
            return Ok(nothing());
        };
        let schema = batch.schema();
        let array = batch.column(place).slice(self.next, self.rows);
        vector(&column.ty, schema.field(place), &array, places).map_err(|failed| told(failed, &self.file, None))
    }

    fn weight(&self) -> usize {
        self.batch.as_ref().map_or(0, RecordBatch::get_array_memory_size)
    }
}

/// The values of rows of a primitive array.
fn picked<T: ArrowPrimitiveType>(array: &ArrayRef, places: Option<&[u32]>) -> Vec<T::Native> {
    let values = array.as_primitive::<T>().values();
    match places {
        None => values.to_vec(),
        Some(places) => places.iter().map(|at| values[*at as usize]).collect(),
    }
}

/// An array as values of a type.
///
/// Errors: a value is not of it.
fn vector(ty: &Type, field: &Field, array: &ArrayRef, places: Option<&[u32]>) -> Result<Vector> {
    let rows = || super::each(array.len(), places);
    let data = match (ty, array.data_type()) {
        (Type::Bool, DataType::Boolean) => Data::Bool(rows().map(|row| array.as_boolean().value(row)).collect()),
        (Type::Int4, DataType::Int32) => Data::Int32(picked::<array::Int32Type>(array, places)),
        (Type::Int8, DataType::Int64) => Data::Int64(picked::<array::Int64Type>(array, places)),
        (Type::Float8, DataType::Float64) => Data::Double(picked::<array::Float64Type>(array, places)),
        (Type::Date, DataType::Date32) => Data::Int32(picked::<array::Date32Type>(array, places)),
        (Type::Timestamp | Type::Timestamptz, DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            Data::Int64(picked::<array::TimestampMicrosecondType>(array, places))
        }
        _ => {
            let mut out = Builder::default();
            for row in rows() {
                add(ty, field, array, row, &mut out)?;
            }
            return Ok(out.finish());
        }
    };
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    Ok(Vector {
        data,
        nulls: nulls.map(|nulls| rows().map(|row| nulls.is_null(row)).collect()),
    })
}

/// Adds a value of an array to a vector.
fn add(ty: &Type, field: &Field, array: &ArrayRef, row: usize, out: &mut Builder) -> Result<()> {
    if array.is_null(row) {
        out.push_null();
        return Ok(());
    }
    match (ty, array.data_type()) {
        (Type::Text, DataType::Utf8) => out.push_text(array.as_string::<i32>().value(row)),
        (Type::Text, DataType::Utf8View) => out.push_text(array.as_string_view().value(row)),
        (Type::Timestamp | Type::Timestamptz, DataType::Timestamp(..)) => match micros(array, row) {
            Some(us) => out.push_int64(us),
            None => return fail("22008", format!("column \"{}\": timestamp out of range", field.name())),
        },
        (ty, _) => {
            let value = value(field, array, row).map_err(|failed| error("22P04", failed))?;
            stored::read_into(ty, &value.as_ref(), field.name(), out)?;
        }
    }
    Ok(())
}
