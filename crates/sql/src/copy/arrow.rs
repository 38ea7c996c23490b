//! Rows as files of Parquet and Arrow.
//!
//! The types of columns are those of SQL. Those of `jsonb`, of `numeric` without a scale and of arrays are found by the first rows; a
//! later row that does not fit ends the file with an error (22000), because what was written cannot be taken back.

use super::Format;
use crate::error::{Field as Told, error, with};
use crate::run::query::Field;
use crate::types::{Type, numeric_parts, output, stored};
use nestor_files::arrow::encode::{Misfit, column};
use nestor_files::arrow::file::{self, Kind};
use nestor_files::arrow::shape::Shape;
use nestor_files::arrow::{ArrowError, RecordBatch, SchemaRef};
use nestor_model::memory::Held;
use nestor_model::statement::look;
use nestor_model::vector::{Builder, Vector};
use nestor_model::{Error, Result, Value};
use nestor_planner::relation::Chunk;
use std::sync::Arc;

/// Rows by which types are found.
const FIRST_ROWS: usize = 1 << 16;
/// Bytes of them, about.
const FIRST_BYTES: usize = 16 << 20;
/// Rows of a batch: enough that its head costs nothing, and few enough for caches and memory.
const BATCH_ROWS: usize = 16 << 10;
/// Bytes of a batch, about.
const BATCH_BYTES: usize = 4 << 20;

/// How a column becomes one of Arrow.
enum Way {
    /// As it is.
    Plain(Shape),
    /// As a text.
    Text,
    /// As documents have it; the shape is found.
    Found(Shape),
}

impl Way {
    fn of(field: &Field) -> Self {
        Self::Plain(match &field.ty {
            Type::Bool => Shape::Bool,
            Type::Int2 | Type::Int4 => Shape::Int32,
            Type::Int8 | Type::Oid => Shape::Int64,
            Type::Float4 | Type::Float8 => Shape::Double,
            Type::Numeric => match numeric_parts(field.modifier).and_then(|(_, scale)| i8::try_from(scale).ok()) {
                Some(scale) => Shape::Decimal(scale),
                None => return Self::Found(Shape::Unknown),
            },
            Type::Text | Type::Varchar | Type::Bpchar | Type::Citext | Type::Name | Type::Json | Type::Unknown => {
                Shape::Text
            }
            Type::Bytea => Shape::Binary,
            Type::Uuid => Shape::Uuid,
            Type::ObjectId => Shape::ObjectId,
            Type::Date => Shape::Days,
            Type::Time => Shape::TimeOfDay,
            Type::Timestamp => Shape::Micros(false),
            Type::Timestamptz => Shape::Micros(true),
            Type::Jsonb | Type::Array(_) => return Self::Found(Shape::Unknown),
            _ => return Self::Text,
        })
    }

    fn shape(&self) -> &Shape {
        match self {
            Self::Plain(shape) | Self::Found(shape) => shape,
            Self::Text => &Shape::Text,
        }
    }
}

/// Writes rows.
pub struct Writer {
    kind: Kind,
    fields: Vec<Field>,
    ways: Vec<Way>,
    /// Rows that wait to be a batch, column by column.
    waiting: Vec<Builder>,
    rows: usize,
    bytes: usize,
    held: Held,
    out: Option<(SchemaRef, file::Writer<Vec<u8>>)>,
}

fn failed(failed: ArrowError) -> Error {
    error("58030", failed.to_string())
}

impl Writer {
    /// For rows of these columns.
    pub fn new(format: Format, fields: &[Field]) -> Self {
        Self {
            kind: if format == Format::Parquet {
                Kind::Parquet
            } else {
                Kind::Stream
            },
            fields: fields.to_vec(),
            ways: fields.iter().map(Way::of).collect(),
            waiting: fields.iter().map(|_| Builder::default()).collect(),
            rows: 0,
            bytes: 0,
            held: Held::by_this_statement(),
            out: None,
        }
    }

    /// Adds rows.
    ///
    /// Errors: 22000 for a value that its column cannot hold; those of the statement's interrupt.
    pub fn add(&mut self, chunk: &Chunk) -> Result<()> {
        let columns = self
            .waiting
            .iter_mut()
            .zip(&self.ways)
            .zip(&self.fields)
            .zip(&chunk.columns);
        for (((waiting, way), field), column) in columns {
            match way {
                Way::Plain(_) => waiting.extend(column, None),
                Way::Text | Way::Found(_) => convert(way, &field.ty, column, waiting),
            }
        }
        self.rows += chunk.rows;
        self.bytes += chunk.weight();
        let in_progress = self.out.as_ref().map_or(0, |(_, writer)| writer.waiting());
        self.held.set(self.bytes + in_progress);
        look()?;
        let is_settled = self.out.is_some() || !self.ways.iter().any(|way| matches!(way, Way::Found(_)));
        let (rows, bytes) = match is_settled {
            true => (BATCH_ROWS, BATCH_BYTES),
            false => (FIRST_ROWS, FIRST_BYTES),
        };
        match self.rows >= rows || self.bytes >= bytes {
            true => self.batch(),
            false => Ok(()),
        }
    }

    /// Writes what waits.
    fn batch(&mut self) -> Result<()> {
        let columns: Vec<Vector> = self
            .waiting
            .iter_mut()
            .map(|waiting| std::mem::take(waiting).finish())
            .collect();
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        if self.out.is_none() {
            self.begin(&columns)?;
        }
        let Some((schema, out)) = &mut self.out else {
            return Ok(());
        };
        if rows == 0 {
            return Ok(());
        }
        let each = self.ways.iter().zip(&columns).zip(&self.fields);
        let arrays = each.map(|((way, vector), field)| {
            // Nobody added anything to a column without values.
            let nothing = Vector::same(Value::Null, rows);
            let vector = if vector.is_empty() { &nothing } else { vector };
            column(way.shape(), vector).map_err(|misfit| misfits(field, &misfit))
        });
        let batch = RecordBatch::try_new(schema.clone(), arrays.collect::<Result<_>>()?).map_err(failed)?;
        out.write(&batch).map_err(failed)
    }

    fn begin(&mut self, columns: &[Vector]) -> Result<()> {
        for (way, column) in self.ways.iter_mut().zip(columns) {
            if let Way::Found(shape) = way {
                (0..column.len()).for_each(|row| shape.note(column.value(row).as_ref()));
                *shape = std::mem::take(shape).settled();
            }
        }
        let named = self.fields.iter().zip(&self.ways);
        let named: Vec<(String, Shape)> = named
            .map(|(field, way)| (field.name.clone(), way.shape().clone()))
            .collect();
        let schema = file::schema(&named);
        let writer = file::Writer::new(self.kind, Vec::new(), &schema).map_err(failed)?;
        self.out = Some((schema, writer));
        Ok(())
    }

    /// The bytes of the file since this was asked last.
    pub fn take(&mut self) -> Vec<u8> {
        match &mut self.out {
            Some((_, writer)) => std::mem::take(writer.output()),
            None => Vec::new(),
        }
    }

    /// Ends the file: its last bytes.
    ///
    /// Errors: those of [`Writer::add`].
    pub fn finish(mut self) -> Result<Vec<u8>> {
        self.batch()?;
        match self.out {
            Some((_, writer)) => writer.finish().map_err(failed),
            None => Ok(Vec::new()),
        }
    }
}

fn misfits(field: &Field, misfit: &Misfit) -> Error {
    let path = match misfit.path.as_str() {
        "" => field.name.clone(),
        below => format!("{}.{below}", field.name),
    };
    let hint =
        "The first rows decide what a column of jsonb, numeric or arrays is in a file: cast it to a type, or to text.";
    with(
        error("22000", format!("column \"{path}\" cannot hold {}", misfit.found)),
        &[(Told::Hint, hint)],
    )
}

/// Adds values to a column whose type Arrow does not have.
fn convert(way: &Way, ty: &Type, column: &Arc<Vector>, out: &mut Builder) {
    for row in 0..column.len() {
        match (way, column.value(row)) {
            (_, Value::Null) => out.push_null(),
            (Way::Text, value) => out.push_text(&output::text(ty, &value)),
            (_, value) => out.push(stored::write(ty, value)),
        }
    }
}
