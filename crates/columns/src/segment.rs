//! The documents of a part of a collection, path by path.

use crate::column::{Column, ColumnBuilder};
use nestor_model::{Str, ValueRef};
use nestor_storage::base::NodeName;
use nestor_storage::{Block, Blocks, Result, record};
use std::ops::Range;

/// Paths of a segment, at most; of documents with more some are not held.
const PATHS_MAX: usize = 1000;

/// Of segments with more paths than these only those are held that more than one in [`RARE`] documents has.
const PATHS_MANY: usize = 100;
const RARE: usize = 16;

/// Bytes of the documents of a segment, at most; of larger ones nothing is held.
const BYTES_MAX: usize = 64 << 20;

/// Fields below one another, at most.
const DEPTH_MAX: usize = 16;

/// The documents of a group of blocks, as they are in the base.
#[derive(Debug)]
pub struct Segment {
    /// The blocks, and the row that each begins with.
    blocks: Vec<(NodeName, u32)>,
    rows: usize,
    /// The fields; the first is the documents themselves.
    fields: Vec<Field<Column>>,
    /// There are paths that are not held.
    is_cut: bool,
    bytes: usize,
}

/// A field of documents.
#[derive(Debug)]
struct Field<C> {
    below: Vec<(Str, usize)>,
    column: C,
    /// Some document has something here whose fields are not held: an array, or the field twice.
    has_others: bool,
}

/// What a segment has of a path.
#[derive(Debug)]
pub enum Found<'s> {
    /// All of it.
    Column(&'s Column),
    /// No document has anything there.
    Nothing,
    /// Documents have to be looked at.
    Unknown,
}

impl Segment {
    /// The segment of the group at a place, of which `parts` are the blocks; `None` when the work was stopped.
    ///
    /// Errors: those of reading.
    pub(crate) fn build(
        blocks: &Blocks,
        at: usize,
        parts: &[Block],
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Self>> {
        let Some(group) = blocks.groups().get(at) else {
            return Ok(None);
        };
        let end = blocks.groups().get(at + 1).map(|next| next.from.as_slice());
        let mut builder = SegmentBuilder::default();
        let mut begins = vec![0; parts.len()];
        let mut part = 0;
        let mut cursor = blocks.base_cursor();
        let mut more = cursor.seek(&group.from)?;
        while more && end.is_none_or(|end| cursor.key() < end) {
            while parts
                .get(part + 1)
                .is_some_and(|next| cursor.key() >= next.from.as_slice())
            {
                part += 1;
                begins[part] = builder.rows as u32;
            }
            if builder.rows % 1024 == 0 && stopped() {
                return Ok(None);
            }
            match builder.bytes <= BYTES_MAX {
                true => builder.add(cursor.value()?),
                // They are counted still.
                false => builder.rows += 1,
            }
            more = cursor.next()?;
        }
        // Blocks behind the last record have none.
        begins[(part + 1).min(parts.len())..].fill(builder.rows as u32);
        Ok(Some(builder.finish(parts, begins)))
    }

    /// How many documents it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The names of its blocks, in order.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = NodeName> {
        self.blocks.iter().map(|(name, _)| *name)
    }

    /// The rows of a block.
    pub(crate) fn rows_of(&self, block: usize) -> Range<usize> {
        let end = self
            .blocks
            .get(block + 1)
            .map_or(self.rows, |(_, begin)| *begin as usize);
        self.blocks[block].1 as usize..end
    }

    /// What it has of the value at a path, which is followed through documents and not through arrays.
    pub fn find<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Found<'_> {
        let mut field = &self.fields[0];
        for name in path {
            if field.has_others {
                return Found::Unknown;
            }
            match field.below.iter().find(|(own, _)| own == name) {
                Some((_, at)) => field = &self.fields[*at],
                None if self.is_cut => return Found::Unknown,
                None => return Found::Nothing,
            }
        }
        match field.column.is_whole() {
            true => Found::Column(&field.column),
            false => Found::Unknown,
        }
    }
}

/// Makes a segment, document by document.
struct SegmentBuilder {
    fields: Vec<Field<ColumnBuilder>>,
    is_cut: bool,
    rows: usize,
    /// Bytes of the documents.
    bytes: usize,
}

impl Default for SegmentBuilder {
    fn default() -> Self {
        Self {
            fields: vec![Field::default()],
            is_cut: false,
            rows: 0,
            bytes: 0,
        }
    }
}

impl Default for Field<ColumnBuilder> {
    fn default() -> Self {
        Self {
            below: Vec::new(),
            column: ColumnBuilder::default(),
            has_others: false,
        }
    }
}

impl SegmentBuilder {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        let doc = record::document(bytes);
        self.fields_of(0, doc.iter(), 0);
        self.rows += 1;
    }

    fn fields_of<'d>(&mut self, parent: usize, fields: impl Iterator<Item = (&'d str, ValueRef<'d>)>, depth: usize) {
        // Documents mostly have their fields in one order.
        let mut next = 0;
        for (name, value) in fields {
            let below = &self.fields[parent].below;
            let guess = below.get(next).filter(|(own, _)| own == name).map(|_| next);
            let found = guess.or_else(|| below.iter().position(|(own, _)| own == name));
            let field = match found {
                Some(at) => {
                    next = at + 1;
                    below[at].1
                }
                None if self.fields.len() >= PATHS_MAX => {
                    self.is_cut = true;
                    continue;
                }
                None => {
                    let at = self.fields.len();
                    next = below.len() + 1;
                    self.fields.push(Field::default());
                    self.fields[parent].below.push((name.into(), at));
                    at
                }
            };
            let is_first = self.fields[field].column.push(self.rows, value);
            match value {
                // Of a field that a document has twice the first counts, and what is below them cannot be told apart.
                _ if !is_first => self.fields[field].has_others = true,
                ValueRef::Document(doc) if depth < DEPTH_MAX => self.fields_of(field, doc.iter(), depth + 1),
                // What is below is not held, as below an array.
                ValueRef::Document(_) | ValueRef::Array(_) => self.fields[field].has_others = true,
                _ => {}
            }
        }
    }

    fn finish(mut self, parts: &[Block], begins: Vec<u32>) -> Segment {
        let rows = self.rows;
        if self.bytes > BYTES_MAX {
            self.fields = vec![Field::default()];
            self.is_cut = true;
        }
        let are_many = self.fields.len() > PATHS_MANY;
        let fields = self.fields.into_iter().map(|field| Field {
            below: field.below,
            column: match are_many && field.column.rows() * RARE < rows {
                true => Column::unknown(),
                false => field.column.finish(rows),
            },
            has_others: field.has_others,
        });
        let fields: Vec<Field<Column>> = fields.collect();
        let bytes = fields.iter().map(|field| field.column.bytes()).sum();
        Segment {
            blocks: parts.iter().map(|part| part.name).zip(begins).collect(),
            rows,
            fields,
            is_cut: self.is_cut,
            bytes,
        }
    }
}
