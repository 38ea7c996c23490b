//! Where the rows of a statement go.

use super::{FLUSH_BYTES, Flush};
use crate::error::{Field as ErrorField, error, with};
use crate::protocol::backend;
use crate::run::query::{Field, Taker};
use nestor_model::{Result, Value};
use nestor_planner::relation::Chunk;
use std::borrow::Cow;

/// Refuses other columns than those that the client was told: documents changed their shape since, or somebody altered a table.
///
/// Errors: 0A000, with the name by which drivers know to prepare the statement again.
pub(super) fn check_told(told: &[Field], fields: &[Field]) -> Result<()> {
    // A type that was altered keeps its OID; its values are those of the altered type then.
    let is_same = |(told, field): (&Field, &Field)| {
        (&told.name, told.ty.oid(), told.modifier) == (&field.name, field.ty.oid(), field.modifier)
    };
    if told.is_empty() || told.len() == fields.len() && told.iter().zip(fields).all(is_same) {
        return Ok(());
    }
    let changed = error("0A000", "cached plan must not change result type");
    Err(with(changed, &[(ErrorField::Routine, "RevalidateCachedQuery")]))
}

/// Where rows go.
pub(super) struct Sink<'s, 'f> {
    pub out: &'s mut Vec<u8>,
    pub flush: &'s mut Flush<'f>,
    pub describes: bool,
    pub formats: &'s [i16],
    pub fields: Cow<'s, [Field]>,
}

impl Sink<'_, '_> {
    /// Whether the columns of rows are those that the client was told, if it was.
    ///
    /// Errors: those of [`check_told`].
    pub fn check(&self, fields: &[Field]) -> Result<()> {
        match self.describes {
            true => Ok(()),
            false => check_told(&self.fields, fields),
        }
    }

    pub fn begin(&mut self, fields: &[Field]) -> Result<()> {
        self.check(fields)?;
        if self.describes {
            backend::row_description(self.out, fields, self.formats);
        }
        if *self.fields != *fields {
            self.fields = Cow::Owned(fields.to_vec());
        }
        Ok(())
    }

    /// The same for rows in other formats, if they are not empty: those of a binary cursor.
    pub fn begin_as(&mut self, fields: &[Field], formats: &[i16]) -> Result<()> {
        if self.describes && !formats.is_empty() {
            backend::row_description(self.out, fields, formats);
            self.fields = Cow::Owned(fields.to_vec());
            return Ok(());
        }
        self.begin(fields)
    }

    pub fn row_as(&mut self, row: &[Value], formats: &[i16]) -> Result<()> {
        if formats.is_empty() {
            return self.row(row);
        }
        backend::data_row(self.out, &self.fields, row, formats)
    }

    pub fn row(&mut self, row: &[Value]) -> Result<()> {
        backend::data_row(self.out, &self.fields, row, self.formats)?;
        self.make_room()
    }

    fn send_chunk(&mut self, chunk: &Chunk) -> Result<()> {
        for row in 0..chunk.rows {
            backend::data_row_of(self.out, &self.fields, (chunk, row), self.formats)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Sends what is there if it is much.
    pub fn make_room(&mut self) -> Result<()> {
        match self.out.len() >= FLUSH_BYTES {
            true => (self.flush)(self.out),
            false => Ok(()),
        }
    }
}

impl Taker for Sink<'_, '_> {
    fn begin(&mut self, fields: &[Field]) -> Result<()> {
        Sink::begin(self, fields)
    }

    fn row(&mut self, row: Vec<Value>) -> Result<()> {
        Sink::row(self, &row)
    }

    fn chunk(&mut self, chunk: &Chunk) -> Result<()> {
        self.send_chunk(chunk)
    }
}
