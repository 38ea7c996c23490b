//! PROJECTION_COVERED: index entries as documents of just the key's fields.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::{KeyRow, Row, RowDoc};
use nestor_model::{Document, RawWriter, Result, Str, Value};
use nestor_planner::NodeKind;
use nestor_query::projection::Projection;
use nestor_storage::{Index, keys};
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
    fn document(&mut self, entry: &KeyRow) -> Result<RowDoc> {
        let projection = self.projection.as_deref();
        let layout = self.layout.get_or_insert_with(|| Layout::new(&entry.index, projection));
        let Layout::Flat(names) = layout else {
            let doc = entry.as_nested_document()?;
            return Ok(match projection {
                Some(projection) => RowDoc::Raw(projection.apply_raw_to_buf(doc.to_raw().as_raw())),
                None => RowDoc::Owned(doc),
            });
        };
        self.values.clear();
        keys::decode_onto(&mut self.values, &entry.key, &entry.type_bits, &entry.format.descending)?;
        let mut writer = RawWriter::with_capacity(names.len() * 32);
        for (name, value) in names.iter().zip(&self.values) {
            if let Some(name) = name {
                writer.append(name, value.as_ref());
            }
        }
        Ok(RowDoc::Raw(writer.into_doc()))
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

    fn plan_fields(&self, _: &Counters, out: &mut Document) {
        if let Some(projection) = &self.projection {
            out.push("transformBy", projection.specification().to_buf());
        }
    }
}
