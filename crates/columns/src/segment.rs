//! The documents of a part of a collection, path by path.

use crate::column::{Column, ColumnBuilder, Values};
use crate::memory::Memory;
use crate::merged::Merged;
use crate::statistics::Part;
use nestor_model::{RecordId, Str, Value, ValueRef};
use nestor_storage::base::NodeName;
use nestor_storage::beside::Place;
use nestor_storage::{Beside, Block, Blocks, Bytes, record};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Paths of a segment, at most; of documents with more some are not held.
pub(crate) const PATHS_MAX: usize = 1000;

/// Of segments with more paths than these only those are held that more than one in [`RARE`] documents has.
const PATHS_MANY: usize = 100;
const RARE: usize = 16;

/// Bytes of the documents of a segment, at most; of larger ones nothing is held.
const BYTES_MAX: usize = 64 << 20;

/// Pairs of neighbours among the fields of documents, at most; with more these are in no order.
const PAIRS_MAX: usize = 4000;

/// Fields below one another, at most.
const DEPTH_MAX: usize = 16;

/// The documents of a group of blocks, as they are in the base.
///
/// Its columns are in memory, or in a file from which each is read when it is asked for first.
#[derive(Debug)]
pub struct Segment {
    head: Arc<Head>,
    /// Of each field its column, if it is in memory.
    columns: Box<[OnceLock<Arc<Column>>]>,
    source: Source,
    memory: Arc<Memory>,
    /// Bytes in memory.
    bytes: AtomicUsize,
    is_damaged: AtomicBool,
}

/// Where a segment has the columns from that are not in memory.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// All are in memory.
    Memory,
    File(Arc<Stored>),
    Merged(Arc<Merged>),
}

/// What is known of a segment without its columns.
#[derive(Debug)]
pub(crate) struct Head {
    /// The blocks, and the row that each begins with.
    pub(crate) blocks: Vec<(NodeName, u32)>,
    pub(crate) rows: usize,
    /// The fields; the first is the documents themselves.
    pub(crate) fields: Vec<Field>,
    /// There are paths that are not held.
    pub(crate) is_cut: bool,
    /// Of each field what is known of its values, once somebody asked.
    statistics: Box<[OnceLock<Part>]>,
    /// Bytes that this takes.
    bytes: usize,
}

/// A field of documents.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) below: Vec<(Str, usize)>,
    /// Some document has something here whose fields are not held: an array, or the field twice.
    pub(crate) has_others: bool,
    /// Documents that have fields below have them in the order of `below`, and no order is known otherwise.
    pub(crate) is_ordered: bool,
    /// Some document has a document here: its fields are held below, and only that it is there by the column.
    pub(crate) has_documents: bool,
    /// There is a column of it.
    pub(crate) is_held: bool,
    /// Its least and largest value, as [`Column::range`]; of a segment with changes all values lie between these.
    pub(crate) range: Option<(Value, Value)>,
}

/// The file of a segment.
pub(crate) struct Stored {
    pub(crate) beside: Beside,
    pub(crate) name: String,
    pub(crate) len: u64,
    /// Of each field the place of its column.
    pub(crate) places: Vec<Place>,
    is_removed: AtomicBool,
    /// Nobody who begins to read now would use it.
    is_unused: AtomicBool,
    memory: Arc<Memory>,
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
        Ok(Some(builder.finish(blocks, RARE, memory.clone())))
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
        Ok((builder.finish(Vec::new(), usize::MAX, memory.clone()), there))
    }

    /// A segment of which some columns are in memory.
    pub(crate) fn new(
        head: Arc<Head>,
        columns: Box<[OnceLock<Arc<Column>>]>,
        source: Source,
        memory: Arc<Memory>,
    ) -> Self {
        let held = columns.iter().filter_map(OnceLock::get).map(|column| column.bytes());
        let bytes = head.bytes + held.sum::<usize>();
        memory.add(bytes);
        Self {
            head,
            columns,
            source,
            memory,
            bytes: bytes.into(),
            is_damaged: false.into(),
        }
    }

    /// A segment none of whose columns is in memory.
    pub(crate) fn of(head: Arc<Head>, source: Source, memory: Arc<Memory>) -> Self {
        let columns = head.fields.iter().map(|_| OnceLock::new()).collect();
        Self::new(head, columns, source, memory)
    }

    /// The same segment without columns in memory, if it has some that can be had again.
    pub(crate) fn unloaded(&self) -> Option<Self> {
        let is_loaded = self.bytes() > self.head.bytes && !self.is_damaged() && self.is_in_file();
        is_loaded.then(|| Self::of(self.head.clone(), self.source.clone(), self.memory.clone()))
    }

    /// Whether files have its columns, but for what was changed since they were written.
    pub(crate) fn is_in_file(&self) -> bool {
        match &self.source {
            Source::Memory => false,
            Source::File(_) => true,
            Source::Merged(merged) => merged.old.is_in_file(),
        }
    }

    /// The same segment, which is in a file by now; its columns stay in memory.
    pub(crate) fn with_file(mut self, stored: Stored) -> Self {
        self.source = Source::File(Arc::new(stored));
        self
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Its own file.
    pub(crate) fn file(&self) -> Option<&Stored> {
        match &self.source {
            Source::File(stored) => Some(stored),
            Source::Memory | Source::Merged(_) => None,
        }
    }

    pub(crate) fn merged(&self) -> Option<&Merged> {
        match &self.source {
            Source::Merged(merged) => Some(merged),
            Source::Memory | Source::File(_) => None,
        }
    }

    /// Whether its file, or that of what it was made of, turned out to be damaged or missing.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Relaxed) || self.merged().is_some_and(|merged| merged.old.is_damaged())
    }

    /// The column of a field, if it is held and in memory.
    pub(crate) fn held(&self, field: usize) -> Option<&Arc<Column>> {
        self.columns[field].get().filter(|_| self.head.fields[field].is_held)
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
        self.head.blocks.iter().map(|(name, _)| *name)
    }

    /// The rows of a block.
    pub(crate) fn rows_of(&self, block: usize) -> Range<usize> {
        let blocks = &self.head.blocks;
        let end = blocks
            .get(block + 1)
            .map_or(self.head.rows, |(_, begin)| *begin as usize);
        blocks[block].1 as usize..end
    }

    /// The field at a path, which is followed through documents and not through arrays; otherwise what is known of it without one.
    fn field<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Result<usize, Found<'_>> {
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
        match fields[at].is_held {
            true => Ok(at),
            false => Err(Found::Unknown),
        }
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
        let weight = |path: &str| match (self.field(path.split('.')), self.file()) {
            (Ok(field), Some(stored)) => u64::from(stored.places[field].len),
            (Ok(field), None) => self.columns[field].get().map_or(0, |column| column.bytes() as u64),
            (Err(_), _) => 0,
        };
        let all: u64 = paths.into_iter().map(weight).sum();
        all * rows as u64 / self.head.rows.max(1) as u64
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
        match self.find([]) {
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
        self.merged().is_none()
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

    fn read(&self, field: usize) -> Arc<Column> {
        let stored = match &self.source {
            Source::Memory => return Column::unknown().into(),
            Source::Merged(merged) => return merged.column(field, self.head.rows),
            Source::File(stored) => stored,
        };
        let read = stored.column(&self.head, field, &self.memory);
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

impl Stored {
    /// A file that is there, and counts from now on.
    pub(crate) fn new(beside: Beside, name: String, (len, places): (u64, Vec<Place>), memory: Arc<Memory>) -> Self {
        memory.disk_bytes.fetch_add(len, Relaxed);
        Self {
            beside,
            name,
            len,
            places,
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
    pub(crate) fn new(blocks: Vec<(NodeName, u32)>, rows: usize, fields: Vec<Field>, is_cut: bool) -> Self {
        let names = fields.iter().flat_map(|field| &field.below).map(|(name, _)| name.len());
        let below: usize = names.map(|len| len + size_of::<(Str, usize)>()).sum();
        let bytes = size_of_val(&*blocks) + fields.len() * (size_of::<Field>() + size_of::<OnceLock<Column>>()) + below;
        Self {
            blocks,
            rows,
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

    /// Whether the rows of blocks ascend and are rows.
    pub(crate) fn is_sound(&self) -> bool {
        let begins = self.blocks.iter().map(|(_, begin)| *begin as usize);
        begins.chain([self.rows]).is_sorted()
    }
}

/// Makes a segment, document by document.
struct SegmentBuilder {
    fields: Vec<FieldBuilder>,
    is_cut: bool,
    rows: usize,
    /// Bytes of the documents.
    bytes: usize,
}

impl Default for SegmentBuilder {
    fn default() -> Self {
        Self {
            fields: vec![FieldBuilder::default()],
            is_cut: false,
            rows: 0,
            bytes: 0,
        }
    }
}

#[derive(Default)]
struct FieldBuilder {
    below: Vec<(Str, usize)>,
    order: Order,
    column: ColumnBuilder,
    has_others: bool,
}

/// In which order documents have the fields below one, by place.
#[derive(Default)]
struct Order {
    /// What stands right behind what in some document.
    pairs: BTreeSet<(usize, usize)>,
    /// What stood behind each last.
    last: Vec<usize>,
    /// There is no one order.
    is_none: bool,
}

impl Order {
    fn note(&mut self, before: usize, behind: usize) {
        if self.last.len() <= before {
            self.last.resize(before + 1, usize::MAX);
        }
        if self.last[before] == behind || self.is_none {
            return;
        }
        self.last[before] = behind;
        self.pairs.insert((before, behind));
        // So many have no one order, most likely.
        if self.pairs.len() > PAIRS_MAX {
            self.is_none = true;
            self.pairs.clear();
        }
    }

    /// The places in an order that all documents have, if there is one.
    fn of(&self, count: usize) -> Option<Vec<usize>> {
        if self.is_none {
            return None;
        }
        let mut waits_for = vec![0; count];
        self.pairs.iter().for_each(|(_, behind)| waits_for[*behind] += 1);
        let mut ready: BTreeSet<usize> = (0..count).filter(|at| waits_for[*at] == 0).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(at) = ready.pop_first() {
            order.push(at);
            for (_, behind) in self.pairs.range((at, 0)..(at + 1, 0)) {
                waits_for[*behind] -= 1;
                if waits_for[*behind] == 0 {
                    ready.insert(*behind);
                }
            }
        }
        (order.len() == count).then_some(order)
    }
}

impl SegmentBuilder {
    fn add(&mut self, key: &[u8], bytes: &[u8]) {
        self.bytes += bytes.len();
        // What a document is itself no column holds: in its place stands where it is.
        if let Some(record) = record::record_id(key) {
            let number = ValueRef::Int64(record.0.cast_signed());
            self.fields[0].column.push(self.rows, number);
        }
        let doc = record::document(bytes);
        self.fields_of(0, doc.iter(), 0);
        self.rows += 1;
    }

    fn fields_of<'d>(&mut self, parent: usize, fields: impl Iterator<Item = (&'d str, ValueRef<'d>)>, depth: usize) {
        // Documents mostly have their fields in one order.
        let mut next = 0;
        let mut before = None;
        for (name, value) in fields {
            let below = &self.fields[parent].below;
            let guess = below.get(next).filter(|(own, _)| own == name).map(|_| next);
            let found = guess.or_else(|| below.iter().position(|(own, _)| own == name));
            let at = match found {
                Some(at) => at,
                None if self.fields.len() >= PATHS_MAX => {
                    self.is_cut = true;
                    continue;
                }
                None => {
                    let (at, field) = (below.len(), self.fields.len());
                    self.fields.push(FieldBuilder::default());
                    self.fields[parent].below.push((name.into(), field));
                    at
                }
            };
            let parent = &mut self.fields[parent];
            if let Some(before) = before.replace(at) {
                parent.order.note(before, at);
            }
            next = at + 1;
            let field = parent.below[at].1;
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

    /// The segment, whose rows are those of these blocks; of many paths those are left out that not one in `rare` documents has.
    fn finish(mut self, blocks: Vec<(NodeName, u32)>, rare: usize, memory: Arc<Memory>) -> Segment {
        let rows = self.rows;
        if self.bytes > BYTES_MAX {
            self.fields = vec![FieldBuilder::default()];
            self.is_cut = true;
        }
        let are_many = self.fields.len() > PATHS_MANY;
        let mut columns = Vec::with_capacity(self.fields.len());
        let mut fields = Vec::with_capacity(self.fields.len());
        for field in self.fields {
            let column = match are_many && field.column.rows().saturating_mul(rare) < rows {
                true => Column::unknown(),
                false => field.column.finish(rows),
            };
            let order = field.order.of(field.below.len());
            fields.push(Field {
                is_ordered: order.is_some(),
                below: match order {
                    Some(order) => order.into_iter().map(|at| field.below[at].clone()).collect(),
                    None => field.below,
                },
                has_others: field.has_others,
                has_documents: column.has_documents(),
                is_held: column.is_held(),
                range: column.range().cloned(),
            });
            columns.push(OnceLock::from(Arc::new(column)));
        }
        let head = Head::new(blocks, rows, fields, self.is_cut);
        Segment::new(Arc::new(head), columns.into(), Source::Memory, memory)
    }
}
