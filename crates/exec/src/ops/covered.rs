//! PROJECTION_COVERED: index entries as documents of just the key's fields.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Pull, one_by_one};
use crate::row::{KeyRow, Row, RowDoc};
use crate::row_batch::{Filled, RowBatch, Wanted};
use nestor_model::{Document, RawWriter, Result, Str, Value};
use nestor_planner::NodeKind;
use nestor_query::projection::Projection;
use nestor_storage::Index;
use nestor_storage::keys::{self, EntryFormat};
use std::sync::Arc;

/// Makes a document of each index entry.
pub type Covered = Each<Covering>;

/// The work of a [`Covered`] on an index entry.
pub struct Covering {
    projection: Option<Arc<Projection>>,
    /// Known from the first entry on.
    layout: Option<Layout>,
    /// Values of the current entry.
    values: Vec<Value>,
}

/// How an entry becomes a document.
enum Layout {
    /// Each part is a field of this name, or left out.
    Flat(Vec<Option<Str>>),
    /// Some path has several components.
    Nested,
}

impl Layout {
    fn new(index: &Index, projection: Option<&Projection>) -> Self {
        let kept = projection.and_then(Projection::included_paths);
        let paths = || index.key_pattern.iter().map(|(path, _)| path);
        if paths()
            .chain(kept.iter().flatten().map(String::as_str))
            .any(|path| path.contains('.'))
        {
            return Self::Nested;
        }
        let is_kept = |path: &str| kept.as_ref().is_none_or(|kept| kept.iter().any(|p| p == path));
        Self::Flat(paths().map(|path| is_kept(path).then(|| path.into())).collect())
    }
}

impl Covered {
    /// Documents of the entries of `input`, as `projection`, an inclusion without computed fields, has them.
    pub fn new(input: BoxOperator, projection: Option<Arc<Projection>>) -> Self {
        let each = Covering {
            projection,
            layout: None,
            values: Vec::new(),
        };
        Self::over(input, each)
    }
}

impl Covering {
    /// Takes an entry's values; returns the names of those that are kept, if its document is flat.
    fn take(&mut self, (key, type_bits): (&[u8], &[u8]), format: &EntryFormat, index: &Index) -> Result<Flat<'_>> {
        let projection = self.projection.as_deref();
        let Layout::Flat(names) = self.layout.get_or_insert_with(|| Layout::new(index, projection)) else {
            return Ok(None);
        };
        self.values.clear();
        keys::decode_onto(&mut self.values, key, type_bits, &format.descending)?;
        Ok(Some((names, &self.values)))
    }

    fn document(&mut self, entry: &KeyRow) -> Result<RowDoc> {
        let Some((names, values)) = self.take((&entry.key, &entry.type_bits), &entry.format, &entry.index)? else {
            return self.nested(entry);
        };
        let mut writer = RawWriter::with_capacity(names.len() * 32);
        write(names, values, &mut writer);
        Ok(RowDoc::Raw(writer.into_doc()))
    }

    fn nested(&self, entry: &KeyRow) -> Result<RowDoc> {
        let doc = entry.as_nested_document()?;
        Ok(match &self.projection {
            Some(projection) => RowDoc::Raw(projection.apply_raw_to_buf(doc.to_raw().as_raw())),
            None => RowDoc::Owned(doc),
        })
    }
}

/// The names of the parts that are kept, and all values.
type Flat<'c> = Option<(&'c [Option<Str>], &'c [Value])>;

/// Entries that become documents together: keys may be large.
const TOGETHER: usize = 16;

/// Writes the fields that have names.
fn write(names: &[Option<Str>], values: &[Value], writer: &mut RawWriter) {
    for (name, value) in names.iter().zip(values) {
        if let Some(name) = name {
            writer.append(name, value.as_ref());
        }
    }
}

impl EachRow for Covering {
    fn kind(&self) -> NodeKind {
        NodeKind::Covered
    }

    fn row(&mut self, mut row: Row, _: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        if let RowDoc::Key(entry) = &row.doc {
            row.doc = self.document(entry)?;
        }
        Ok(Some(row))
    }

    fn rows(&mut self, input: &mut BoxOperator, pull: Pull<'_, '_>, out: &mut RowBatch) -> Result<Filled> {
        let Pull { batch, counters } = pull;
        while !out.is_full() && out.wanted() == Wanted::Documents {
            let before = out.len();
            let filled = input.next_entries(batch, out.room().min(TOGETHER), &mut |row| {
                let key = (row.entry.key, row.entry.type_bits);
                match self.take(key, row.format, row.index)? {
                    Some((names, values)) => out.push_written(|writer| write(names, values, writer)),
                    None => out.push(self.nested(&row.to_key_row())?.into()),
                }
                Ok(())
            })?;
            let Some(filled) = filled else { break };
            counters.pulled_batch(out.len() - before, filled);
            counters.advanced += (out.len() - before) as u64;
            if filled != Filled::Full {
                return Ok(filled);
            }
        }
        one_by_one(self, input, Pull { batch, counters }, out)
    }

    fn plan_fields(&self, _: &Counters, out: &mut Document) {
        if let Some(projection) = &self.projection {
            out.push("transformBy", projection.specification().to_buf());
        }
    }
}
