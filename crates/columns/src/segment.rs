//! The documents of a part of a collection, path by path.

use crate::builder::{BYTES_MAX, RARE, SegmentBuilder};
use crate::column::{Column, Values};
use crate::elements::{self, Elements, Unwound};
use crate::memory::Memory;
use crate::merged::Merged;
use crate::statistics::Part;
use nestor_model::{RecordId, Str, Value, ValueRef};
use nestor_storage::base::NodeName;
use nestor_storage::beside::Place;
use nestor_storage::{Beside, Block, Blocks, Bytes, record};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Paths of a segment, at most; of documents with more some are not held.
pub(crate) const PATHS_MAX: usize = 1000;

/// The documents of a group of blocks, as they are in the base.
///
/// Its columns are in memory, or in a file from which each is read when it is asked for first.
#[derive(Debug)]
pub struct Segment {
    head: Arc<Head>,
    /// Of each field its column, if it is in memory.
    columns: Box<[OnceLock<Arc<Column>>]>,
    /// The elements of its arrays ([`Head::arrays`]), once somebody asked for them, as far as they can be told.
    elements: Box<[OnceLock<Option<Arc<Segment>>>]>,
    source: Source,
    memory: Arc<Memory>,
    /// Bytes in memory, but for those of elements.
    bytes: AtomicUsize,
    is_damaged: AtomicBool,
}

/// Where a segment has the columns from that are not in memory.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// All are in memory.
    Memory,
    File(Arc<Stored>, Arc<Layout>),
    Merged(Arc<Merged>),
    Unwound(Arc<Unwound>),
}

/// What is known of a segment without its columns.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) of: Rows,
    pub(crate) rows: usize,
    /// The fields; the first is the documents themselves.
    pub(crate) fields: Vec<Field>,
    /// Which of them are arrays whose elements are held.
    pub(crate) arrays: Box<[usize]>,
    /// There are paths that are not held.
    pub(crate) is_cut: bool,
    /// Of each field what is known of its values, once somebody asked.
    statistics: Box<[OnceLock<Part>]>,
    /// Bytes that this takes.
    bytes: usize,
}

/// What the rows of a segment are.
#[derive(Debug)]
pub(crate) enum Rows {
    /// The documents of these blocks, each with the row that it begins with.
    Documents(Vec<(NodeName, u32)>),
    /// What was computed.
    Made,
    /// Elements of arrays.
    Elements {
        /// They are all documents.
        are_documents: bool,
    },
}

/// A field of documents.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) below: Vec<(Str, usize)>,
    /// Some document has something here whose fields are not held: an array, or the field twice.
    pub(crate) has_others: bool,
    /// Documents that have fields below have them in the order of `below`, and no order is known otherwise.
    pub(crate) is_ordered: bool,
    /// Some document has a document here: its fields are held below, and only that it is there by the column.
    pub(crate) has_documents: bool,
    /// Where some document has an array, all have arrays, null or nothing, and a segment below has the elements. The column tells where these begin.
    pub(crate) has_elements: bool,
    /// There is a column of its values.
    pub(crate) is_held: bool,
    /// Its least and largest value, as [`Column::range`]; of a segment with changes all values lie between these.
    pub(crate) range: Option<(Value, Value)>,
}

/// The file of a segment.
pub(crate) struct Stored {
    pub(crate) beside: Beside,
    pub(crate) name: String,
    pub(crate) len: u64,
    is_removed: AtomicBool,
    /// Nobody who begins to read now would use it.
    is_unused: AtomicBool,
    memory: Arc<Memory>,
}

/// Where a file has the columns of a segment.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Of each field.
    pub(crate) places: Vec<Place>,
    /// Of the elements of each array.
    pub(crate) elements: Vec<(Arc<Head>, Arc<Layout>)>,
}

/// Columns and segments of elements that are in memory, as [`Segment`] has them.
pub(crate) type Held = (Box<[OnceLock<Arc<Column>>]>, Box<[OnceLock<Option<Arc<Segment>>>]>);

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

/// Between which values those at a path lie.
#[derive(Debug, Clone, Copy)]
pub enum Zone<'s> {
    /// Those that are there, all of one type, lie between these two.
    Between(&'s (Value, Value)),
    /// No document has anything there.
    Nothing,
    /// That is not known.
    Unknown,
}

impl Segment {
    /// The segment of some blocks, each with the first key behind it; `None` when the work was stopped.
    ///
    /// Errors: those of reading.
    pub(crate) fn build(
        blocks: &Blocks,
        parts: &[(&Block, Option<&[u8]>)],
        stopped: &dyn Fn() -> bool,
        memory: &Arc<Memory>,
    ) -> nestor_storage::Result<Option<Self>> {
        let mut builder = SegmentBuilder::default();
        let mut begins = Vec::with_capacity(parts.len());
        let mut cursor = blocks.base_cursor();
        // The cursor is where the part before ended.
        let mut at: Option<(&[u8], bool)> = None;
        for (part, to) in parts {
            begins.push(builder.rows as u32);
            let mut more = match at {
                Some((end, more)) if end == part.from.as_slice() => more,
                _ => cursor.seek(&part.from)?,
            };
            while more && to.is_none_or(|to| cursor.key() < to) {
                if builder.rows % 1024 == 0 && stopped() {
                    return Ok(None);
                }
                match builder.bytes <= BYTES_MAX {
                    true => builder.add(cursor.key(), cursor.value()?),
                    // They are counted still.
                    false => builder.rows += 1,
                }
                more = cursor.next()?;
            }
            at = to.map(|to| (to, more));
        }
        let blocks = parts.iter().map(|(part, _)| part.name).zip(begins).collect();
        Ok(Some(builder.finish(blocks, RARE, memory)))
    }

    /// The documents of some keys, which ascend, and which of the keys have one.
    ///
    /// Errors: those of reading.
    pub(crate) fn of_keys(
        blocks: &Blocks,
        keys: &[Bytes],
        memory: &Arc<Memory>,
    ) -> nestor_storage::Result<(Self, Vec<bool>)> {
        let mut builder = SegmentBuilder::default();
        let mut cursor = blocks.base_cursor();
        let mut there = Vec::with_capacity(keys.len());
        for key in keys {
            let is_there = cursor.seek(key.as_slice())? && cursor.key() == key.as_slice();
            if is_there {
                builder.add(cursor.key(), cursor.value()?);
            }
            there.push(is_there);
        }
        // A few documents have few values of any path.
        Ok((builder.finish(Vec::new(), usize::MAX, memory), there))
    }

    /// A segment of which some columns are in memory.
    pub(crate) fn new(head: Arc<Head>, (columns, elements): Held, source: Source, memory: Arc<Memory>) -> Self {
        let held = columns.iter().filter_map(OnceLock::get).map(|column| column.bytes());
        let bytes = head.bytes + held.sum::<usize>();
        memory.add(bytes);
        Self {
            head,
            columns,
            elements,
            source,
            memory,
            bytes: bytes.into(),
            is_damaged: false.into(),
        }
    }

    /// A segment none of whose columns is in memory.
    pub(crate) fn of(head: Arc<Head>, source: Source, memory: Arc<Memory>) -> Self {
        let columns = head.fields.iter().map(|_| OnceLock::new()).collect();
        let elements = head.arrays.iter().map(|_| OnceLock::new()).collect();
        Self::new(head, (columns, elements), source, memory)
    }

    /// The same segment without columns in memory, if it has some that can be had again.
    pub(crate) fn unloaded(&self) -> Option<Self> {
        let can = !self.is_damaged() && self.is_in_file();
        (can && self.is_loaded()).then(|| Self::of(self.head.clone(), self.source.clone(), self.memory.clone()))
    }

    /// Whether columns are in memory.
    fn is_loaded(&self) -> bool {
        self.bytes() > self.head.bytes || self.known_elements().any(|own| own.is_loaded())
    }

    /// The elements that somebody asked for.
    fn known_elements(&self) -> impl Iterator<Item = &Arc<Self>> {
        self.elements.iter().filter_map(|own| own.get()?.as_ref())
    }

    /// Whether files have its columns, but for what was changed since they were written.
    pub(crate) fn is_in_file(&self) -> bool {
        match &self.source {
            Source::Memory | Source::Unwound(_) => false,
            Source::File(..) => true,
            Source::Merged(merged) => merged.old.is_in_file(),
        }
    }

    /// The same segment, which is in a file by now; its columns stay in memory.
    pub(crate) fn with_file(mut self, (stored, layout): (Stored, Layout)) -> Self {
        self.source = Source::File(Arc::new(stored), Arc::new(layout));
        self
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    pub(crate) fn shared_head(&self) -> Arc<Head> {
        self.head.clone()
    }

    /// Its own file.
    pub(crate) fn file(&self) -> Option<&Stored> {
        match &self.source {
            Source::File(stored, _) => Some(stored),
            Source::Memory | Source::Merged(_) | Source::Unwound(_) => None,
        }
    }

    pub(crate) fn merged(&self) -> Option<&Merged> {
        match &self.source {
            Source::Merged(merged) => Some(merged),
            Source::Memory | Source::File(..) | Source::Unwound(_) => None,
        }
    }

    /// Whether its file, or that of what it was made of, turned out to be damaged or missing.
    pub(crate) fn is_damaged(&self) -> bool {
        let own = self.is_damaged.load(Relaxed) || self.merged().is_some_and(|merged| merged.old.is_damaged());
        own || self.known_elements().any(|own| own.is_damaged())
    }

    /// The column of a field, if there is one and it is in memory.
    pub(crate) fn held(&self, field: usize) -> Option<&Arc<Column>> {
        self.columns[field]
            .get()
            .filter(|_| self.head.fields[field].has_column())
    }

    /// The column of a field, which does not stay in memory for that.
    pub(crate) fn column_once(&self, field: usize) -> Arc<Column> {
        self.columns[field].get().cloned().unwrap_or_else(|| self.read(field))
    }

    /// How many documents it has.
    pub fn rows(&self) -> usize {
        self.head.rows
    }

    /// Bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// The names of its blocks, in order.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = NodeName> {
        self.head.blocks().iter().map(|(name, _)| *name)
    }

    /// The rows of a block.
    pub(crate) fn rows_of(&self, block: usize) -> Range<usize> {
        let blocks = self.head.blocks();
        let end = blocks
            .get(block + 1)
            .map_or(self.head.rows, |(_, begin)| *begin as usize);
        blocks[block].1 as usize..end
    }

    /// The field at a path, as [`Segment::field_at`], if its values are held.
    fn field<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Result<usize, Found<'_>> {
        let field = self.field_at(path)?;
        match self.head.fields[field].is_held {
            true => Ok(field),
            false => Err(Found::Unknown),
        }
    }

    /// The field at a path, which is followed through documents and not through arrays; otherwise what is known of it without one.
    fn field_at<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Result<usize, Found<'_>> {
        let fields = &self.head.fields;
        let mut at = 0;
        for name in path {
            if fields[at].has_others {
                return Err(Found::Unknown);
            }
            match fields[at].below.iter().find(|(own, _)| own == name) {
                Some((_, below)) => at = *below,
                None if self.head.is_cut => return Err(Found::Unknown),
                None => return Err(Found::Nothing),
            }
        }
        Ok(at)
    }

    /// As [`Segment::field`], of a path where no document has a document itself.
    fn field_of_values<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Result<usize, Found<'_>> {
        let field = self.field(path)?;
        match self.head.fields[field].has_documents {
            true => Err(Found::Unknown),
            false => Ok(field),
        }
    }

    /// What it has of the value at a path. A column that was found once stays in memory as long as the segment is held; where one cannot be read
    /// from its file documents have to be looked at, and the segment will be made anew.
    pub fn find<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Found<'_> {
        match self.field_of_values(path) {
            Ok(field) => self.column(field),
            Err(found) => found,
        }
    }

    /// As [`Segment::find`], of a path where there may be documents, too: the column has [`State::Document`](crate::column::State::Document)
    /// for these, and their fields are at the paths below.
    pub fn find_shape<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Found<'_> {
        match self.field(path) {
            Ok(field) => self.column(field),
            Err(found) => found,
        }
    }

    /// What it has of the elements of the arrays at a path, which is followed as with [`Segment::find`].
    pub fn elements<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> elements::Found<'_> {
        match self.field_at(path) {
            Err(Found::Nothing) => elements::Found::Nothing,
            Err(_) => elements::Found::Unknown,
            Ok(field) => match self.elements_of(field) {
                Some(elements) => elements::Found::Elements(elements),
                None if self.is_null(field) => elements::Found::Nothing,
                None => elements::Found::Unknown,
            },
        }
    }

    /// Whether it has the elements of the arrays at a path, known without reading.
    pub(crate) fn has_elements(&self, array: &str) -> bool {
        let field = self.field_at(array.split('.'));
        field.is_ok_and(|field| self.head.fields[field].has_elements)
    }

    /// Whether no document has anything but null at a field.
    fn is_null(&self, field: usize) -> bool {
        let own = &self.head.fields[field];
        let has_none = || matches!(self.column(field), Found::Column(column) if column.is_empty());
        own.is_held && !own.has_documents && own.range.is_none() && has_none()
    }

    /// The elements of the arrays at a field.
    pub(crate) fn elements_of(&self, field: usize) -> Option<Elements<'_>> {
        let of = self.elements_at(field)?;
        match self.column(field) {
            Found::Column(column) => Elements::new(column, of),
            Found::Nothing | Found::Unknown => None,
        }
    }

    /// The segment of the elements of the arrays at a field.
    fn elements_at(&self, field: usize) -> Option<&Arc<Self>> {
        let at = self.head.arrays.iter().position(|own| *own == field)?;
        self.elements[at].get_or_init(|| self.read_elements(field, at)).as_ref()
    }

    fn read_elements(&self, field: usize, at: usize) -> Option<Arc<Self>> {
        match &self.source {
            Source::Memory | Source::Unwound(_) => None,
            Source::File(stored, layout) => {
                let (head, layout) = layout.elements.get(at)?.clone();
                let source = Source::File(stored.clone(), layout);
                Some(Self::of(head, source, self.memory.clone()).into())
            }
            Source::Merged(merged) => Some(merged.elements(field, &self.memory)?.into()),
        }
    }

    /// The segment whose rows are the elements of the arrays at a path, each in the place of the array beside what the document has; `None` where they
    /// are not held. If it `preserves` documents without elements these are rows as well. `index` is a path where each has its place in the array; `None` where documents
    /// may have something there.
    pub fn unwound(self: &Arc<Self>, path: &str, preserves: bool, index: Option<&str>) -> Option<Self> {
        Unwound::segment(self, self.field_at(path.split('.')).ok()?, (preserves, index))
    }

    /// The rows of some documents, of a segment whose rows are their elements ([`Segment::unwound`]).
    pub fn of_documents(&self, documents: &Range<usize>) -> Range<usize> {
        match &self.source {
            Source::Unwound(unwound) => unwound.of_documents(documents),
            Source::Memory | Source::File(..) | Source::Merged(_) => documents.clone(),
        }
    }

    /// Whether its rows are elements that are all documents.
    pub fn has_documents_only(&self) -> bool {
        matches!(self.head.of, Rows::Elements { are_documents: true })
    }

    /// Where a name stands among those below a path, if all documents have these in one order; `None` where that is not known.
    pub fn order<'p>(&self, parent: impl IntoIterator<Item = &'p str>, name: &str) -> Option<usize> {
        let fields = &self.head.fields;
        let mut at = 0;
        for step in parent {
            at = fields[at].below.iter().find(|(own, _)| own == step)?.1;
        }
        let below = fields[at].below.iter().position(|(own, _)| own == name);
        below.filter(|_| fields[at].is_ordered)
    }

    /// Bytes that the columns at these paths take, in their file if there is one, of so many of its rows.
    pub fn weight<'p>(&self, paths: impl IntoIterator<Item = &'p str>, rows: usize) -> u64 {
        let weight = |path: &str| self.field_at(path.split('.')).map_or(0, |field| self.weight_of(field));
        let all: u64 = paths.into_iter().map(weight).sum();
        all * rows as u64 / self.head.rows.max(1) as u64
    }

    /// The same of the column of a field, of all rows.
    pub(crate) fn weight_of(&self, field: usize) -> u64 {
        match &self.source {
            Source::File(_, layout) => u64::from(layout.places[field].len),
            Source::Unwound(unwound) => unwound.weight(field),
            Source::Memory | Source::Merged(_) => self.columns[field].get().map_or(0, |column| column.bytes() as u64),
        }
    }

    /// The column of a field, which stays in memory.
    pub(crate) fn kept_column(&self, field: usize) -> Arc<Column> {
        self.column(field);
        self.column_once(field)
    }

    fn column(&self, field: usize) -> Found<'_> {
        let mut is_new = false;
        let column = self.columns[field].get_or_init(|| {
            is_new = true;
            self.read(field)
        });
        if is_new {
            self.bytes.fetch_add(column.bytes(), Relaxed);
            self.memory.add(column.bytes());
            self.memory.relieve();
        }
        match column.is_held() {
            true => Found::Column(column),
            false => Found::Unknown,
        }
    }

    /// The first row whose record is not before a key; `None` where records have no numbers.
    pub fn row_from(&self, key: &[u8]) -> Option<usize> {
        let record = self.records()?;
        let (mut from, mut to) = (0, self.head.rows);
        while from < to {
            let middle = usize::midpoint(from, to);
            match record(middle).as_slice() < key {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        Some(from)
    }

    /// The keys of the records of some rows; `None` where records have no numbers.
    pub fn records(&self) -> Option<impl Fn(usize) -> [u8; 8]> {
        let of_documents = match &self.head.of {
            Rows::Documents(_) => self.find([]),
            Rows::Elements { .. } | Rows::Made => Found::Nothing,
        };
        match of_documents {
            Found::Column(column) if matches!(column.values(), Values::Int64(_)) => {
                Some(|row| match column.value(row) {
                    ValueRef::Int64(number) => record::record_key(RecordId(number.cast_unsigned())),
                    _ => [0; 8],
                })
            }
            _ => None,
        }
    }

    /// Whether the two values of a zone are values of rows.
    pub fn has_exact_zones(&self) -> bool {
        !matches!(self.source, Source::Merged(_) | Source::Unwound(_))
    }

    /// Between which values those at a path lie: known without reading them.
    pub fn zone<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Zone<'_> {
        match self.field_of_values(path) {
            Ok(field) => self.head.fields[field]
                .range
                .as_ref()
                .map_or(Zone::Unknown, Zone::Between),
            Err(Found::Nothing) => Zone::Nothing,
            Err(_) => Zone::Unknown,
        }
    }

    /// Between which values those at a path of the elements of an array lie; nothing is there without elements, too.
    pub fn zone_of_elements<'p>(
        &self,
        array: impl IntoIterator<Item = &'p str>,
        path: impl IntoIterator<Item = &'p str>,
    ) -> Zone<'_> {
        match self.field_at(array) {
            Ok(field) => self.elements_at(field).map_or(Zone::Unknown, |own| own.zone(path)),
            Err(Found::Nothing) => Zone::Nothing,
            Err(_) => Zone::Unknown,
        }
    }

    /// What is known of the values at a path.
    pub(crate) fn statistics<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Part {
        let rows = self.head.rows;
        match self.field(path) {
            Err(Found::Nothing) => Part::nothing(rows),
            Err(_) => Part::unknown(rows),
            Ok(field) => {
                let of_column = || match self.column(field) {
                    Found::Column(column) => Part::of(column, rows),
                    Found::Nothing | Found::Unknown => Part::unknown(rows),
                };
                let before = || self.merged().and_then(|merged| merged.statistics(field, rows));
                let known = self.head.statistics[field].get_or_init(|| before().unwrap_or_else(of_column));
                known.clone()
            }
        }
    }

    /// The same of the elements of the arrays at a path.
    pub(crate) fn statistics_of_elements(&self, array: &str, path: &str) -> Part {
        match self.elements(array.split('.')) {
            elements::Found::Elements(found) => found.segment().statistics(path.split('.')),
            elements::Found::Nothing | elements::Found::Unknown => Part::nothing(0),
        }
    }

    fn read(&self, field: usize) -> Arc<Column> {
        let (stored, layout) = match &self.source {
            Source::Memory => return Column::unknown().into(),
            Source::Unwound(unwound) => return unwound.column(field),
            Source::Merged(merged) => return merged.column(field, self.head.rows),
            Source::File(stored, layout) => (stored, layout),
        };
        let read = stored.column(&self.head, (field, layout), &self.memory);
        let column = read.unwrap_or_else(|error| {
            let is_first = !self.is_damaged.swap(true, Relaxed);
            // Segments of collections that are no more are removed under those who read them.
            if is_first && !stored.is_removed.load(Relaxed) {
                self.memory.damaged.fetch_add(1, Relaxed);
                tracing::warn!(name = stored.name, %error, "columns cannot be read and are made anew");
            }
            Column::unknown()
        });
        column.into()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.memory.sub(self.bytes());
    }
}

impl Field {
    /// One of values that are held.
    pub(crate) fn of_values() -> Self {
        Self {
            below: Vec::new(),
            has_others: false,
            is_ordered: false,
            has_documents: false,
            has_elements: false,
            is_held: true,
            range: None,
        }
    }

    /// Whether there is a column.
    pub(crate) fn has_column(&self) -> bool {
        self.is_held || self.has_elements
    }
}

impl Stored {
    /// A file that is there, and counts from now on.
    pub(crate) fn new(beside: Beside, name: String, len: u64, memory: Arc<Memory>) -> Self {
        memory.disk_bytes.fetch_add(len, Relaxed);
        Self {
            beside,
            name,
            len,
            is_removed: false.into(),
            is_unused: false.into(),
            memory,
        }
    }

    /// Removes it, from under those who read it.
    pub(crate) fn remove(&self) {
        if !self.is_removed.swap(true, Relaxed) {
            self.beside.remove(&self.name);
        }
    }

    /// Removes it when those who read it now, and segments that were made of it, have ended. There will be no other file of this name.
    pub(crate) fn remove_in_time(&self) {
        self.is_unused.store(true, Relaxed);
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.memory.disk_bytes.fetch_sub(self.len, Relaxed);
        if self.is_unused.load(Relaxed) {
            self.remove();
        }
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Head {
    pub(crate) fn new(of: Rows, rows: usize, fields: Vec<Field>, is_cut: bool) -> Self {
        let names = fields.iter().flat_map(|field| &field.below).map(|(name, _)| name.len());
        let below: usize = names.map(|len| len + size_of::<(Str, usize)>()).sum();
        let blocks = match &of {
            Rows::Documents(blocks) => size_of_val(&**blocks),
            Rows::Elements { .. } | Rows::Made => 0,
        };
        let bytes = blocks + fields.len() * (size_of::<Field>() + size_of::<OnceLock<Column>>()) + below;
        Self {
            of,
            rows,
            arrays: (0..fields.len()).filter(|at| fields[*at].has_elements).collect(),
            statistics: fields.iter().map(|_| OnceLock::new()).collect(),
            fields,
            is_cut,
            bytes,
        }
    }

    /// What is known of the values of a field, if somebody asked.
    pub(crate) fn known(&self, field: usize) -> Option<Part> {
        self.statistics[field].get().cloned()
    }

    /// The blocks, and the row that each begins with.
    pub(crate) fn blocks(&self) -> &[(NodeName, u32)] {
        match &self.of {
            Rows::Documents(blocks) => blocks,
            Rows::Elements { .. } | Rows::Made => &[],
        }
    }

    /// Whether the rows of blocks ascend and are rows.
    pub(crate) fn is_sound(&self) -> bool {
        let begins = self.blocks().iter().map(|(_, begin)| *begin as usize);
        begins.chain([self.rows]).is_sorted()
    }
}
