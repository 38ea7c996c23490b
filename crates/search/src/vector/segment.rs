//! A part of an index: the vectors of some documents, and the values that filters see of them.
//!
//! Documents are numbered as they came, and so are the elements at `nestedRoot` of all of them, those of one document behind each other. An
//! *entry* is a document or an element, by the level of a field. Vectors of a field lie one behind the other in *rows*.

use super::column::{Column, visit};
use super::definition::{Definition, Level, Similarity, VectorField};
use super::distance::dot_int8;
use super::values::{Elements, work_on};
use crate::dead::Dead;
use crate::parts;
use nestor_model::statement::work;
use nestor_model::{Error, ErrorCode, PathPart, RawDoc, Result, ValueRef};

/// Immutable once it is sealed.
#[derive(Debug, Default)]
pub struct Segment {
    /// Of the documents.
    keys: Vec<Box<[u8]>>,
    /// The documents in the order of their keys, once it is sealed.
    sorted: Vec<u32>,
    /// The documents that the elements are of.
    parents: Vec<u32>,
    /// By filter field of the definition.
    columns: Vec<Column>,
    /// By vector field of the definition.
    rows: Vec<Rows>,
}

/// The vectors of a field, by what their elements are.
#[derive(Debug)]
pub struct Rows {
    /// What its entries are.
    pub level: Level,
    pub float: Matrix<f32>,
    pub int8: Matrix<i8>,
    pub bits: Matrix<u8>,
}

/// Vectors of one length.
#[derive(Debug)]
pub struct Matrix<T> {
    /// Whose vector each row is, ascending.
    pub entries: Vec<u32>,
    /// Row behind row.
    pub values: Vec<T>,
}

impl<T> Default for Matrix<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<T: Copy> Matrix<T> {
    /// How many elements each row has.
    pub fn width(&self) -> usize {
        self.values.len().checked_div(self.entries.len()).unwrap_or(0)
    }

    fn push(&mut self, entry: u32, row: &[T]) {
        self.entries.push(entry);
        self.values.extend_from_slice(row);
    }

    /// Adds the rows of another one whose entries have become others.
    fn copy(&mut self, from: &Self, now: &[Option<u32>]) -> Result<()> {
        let width = from.width();
        for (entry, row) in from.entries.iter().zip(from.values.chunks_exact(width.max(1))) {
            work_on(width)?;
            if let Some(Some(entry)) = now.get(*entry as usize) {
                self.push(*entry, row);
            }
        }
        Ok(())
    }

    fn shrink(&mut self) {
        self.entries.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u32>() + self.values.capacity() * size_of::<T>()
    }
}

impl Rows {
    fn new(level: Level) -> Self {
        Self {
            level,
            float: Matrix::default(),
            int8: Matrix::default(),
            bits: Matrix::default(),
        }
    }

    /// Adds the vector of an entry, if it is one for the field; whether it is.
    fn add(&mut self, field: &VectorField, entry: u32, value: ValueRef<'_>) -> Result<bool> {
        work_on(field.dimensions)?;
        let Ok(vector) = Elements::read(value, field.dimensions) else {
            return Ok(false);
        };
        if vector.dimensions() != field.dimensions {
            return Ok(false);
        }
        match vector {
            Elements::Float(mut numbers) => {
                if !prepare(&mut numbers, field.similarity) {
                    return Ok(false);
                }
                self.float.push(entry, &numbers);
            }
            Elements::Int8(numbers) => {
                if field.similarity == Similarity::Cosine && dot_int8(&numbers, &numbers) == 0 {
                    return Ok(false);
                }
                self.int8.push(entry, &numbers);
            }
            Elements::Bits(bytes, 0) if field.similarity == Similarity::Euclidean => self.bits.push(entry, &bytes),
            Elements::Bits(..) => return Ok(false),
        }
        Ok(true)
    }
}

/// Makes numbers ready to be compared: for the cosine they get the length 1. False where that cannot be.
pub fn prepare(numbers: &mut [f32], similarity: Similarity) -> bool {
    if !numbers.iter().all(|number| number.is_finite()) {
        return false;
    }
    if similarity == Similarity::Cosine {
        let square: f64 = numbers
            .iter()
            .map(|number| f64::from(*number) * f64::from(*number))
            .sum();
        if square == 0.0 {
            return false;
        }
        let length = square.sqrt();
        for number in numbers {
            *number = (f64::from(*number) / length) as f32;
        }
    }
    true
}

impl Segment {
    /// One of nothing.
    pub fn new(definition: &Definition) -> Self {
        Self {
            columns: definition
                .filters
                .iter()
                .map(|field| Column::new(field.level))
                .collect(),
            rows: definition.vectors.iter().map(|field| Rows::new(field.level)).collect(),
            ..Self::default()
        }
    }

    /// One of nothing, of the same fields.
    fn like(other: &Self) -> Self {
        Self {
            columns: other.columns.iter().map(|column| Column::new(column.level())).collect(),
            rows: other.rows.iter().map(|rows| Rows::new(rows.level)).collect(),
            ..Self::default()
        }
    }

    /// Adds a document that it has not; one without vectors is left out.
    ///
    /// Errors: those of the statement's interrupt.
    pub fn add(&mut self, definition: &Definition, key: &[u8], document: RawDoc<'_>) -> Result<()> {
        let (number, first) = (count(self.keys.len())?, count(self.parents.len())?);
        let document = ValueRef::Document(document.as_doc());
        let elements = elements(definition, document)?;
        count(self.parents.len() + elements.len())?;
        let mut has_vector = false;
        for (field, rows) in definition.vectors.iter().zip(&mut self.rows) {
            let entries: &[ValueRef<'_>] = match field.level {
                Level::Documents => &[document],
                Level::Elements => &elements,
            };
            let from = match field.level {
                Level::Documents => number,
                Level::Elements => first,
            };
            for (entry, value) in (from..).zip(entries) {
                if let Some(value) = plain(*value, field.below.parts()) {
                    has_vector |= rows.add(field, entry, value)?;
                }
            }
        }
        if !has_vector {
            return Ok(());
        }
        for (field, column) in definition.filters.iter().zip(&mut self.columns) {
            match field.level {
                Level::Documents => column.push(document, field.below.parts())?,
                Level::Elements => {
                    for element in &elements {
                        column.push(*element, field.below.parts())?;
                    }
                }
            }
        }
        self.parents.extend(elements.iter().map(|_| number));
        self.keys.push(key.into());
        Ok(())
    }

    /// Makes it ready to be searched.
    #[must_use]
    pub fn seal(mut self) -> Self {
        self.keys.shrink_to_fit();
        self.parents.shrink_to_fit();
        for rows in &mut self.rows {
            rows.float.shrink();
            rows.int8.shrink();
            rows.bits.shrink();
        }
        self.sorted = (0..).take(self.keys.len()).collect();
        let keys = &self.keys;
        self.sorted.sort_unstable_by_key(|document| &keys[*document as usize]);
        self
    }

    fn copy(&mut self, from: &Self, dead: &Dead) -> Result<()> {
        // What number each document and each element gets here, if it is still there.
        let mut documents = Vec::with_capacity(from.keys.len());
        for (document, key) in (0..).zip(&from.keys) {
            work_on(key.len())?;
            if dead.has(document) {
                documents.push(None);
                continue;
            }
            documents.push(Some(count(self.keys.len())?));
            self.keys.push(key.clone());
        }
        let mut elements = Vec::with_capacity(from.parents.len());
        for parent in &from.parents {
            let parent = documents[*parent as usize];
            elements.push(match parent {
                Some(_) => Some(count(self.parents.len())?),
                None => None,
            });
            self.parents.extend(parent);
        }
        let now = |level| match level {
            Level::Documents => &documents,
            Level::Elements => &elements,
        };
        for (column, from) in self.columns.iter_mut().zip(&from.columns) {
            let now = now(from.level());
            for entry in (0..now.len()).filter(|entry| now[*entry].is_some()) {
                column.copy(from, entry)?;
            }
        }
        for (rows, from) in self.rows.iter_mut().zip(&from.rows) {
            let now = now(from.level);
            rows.float.copy(&from.float, now)?;
            rows.int8.copy(&from.int8, now)?;
            rows.bits.copy(&from.bits, now)?;
        }
        Ok(())
    }

    /// How many documents it has.
    pub fn documents(&self) -> usize {
        self.keys.len()
    }

    /// How many entries there are of a level.
    pub fn entries(&self, level: Level) -> usize {
        match level {
            Level::Documents => self.keys.len(),
            Level::Elements => self.parents.len(),
        }
    }

    /// The number of the document that an entry is, or is of.
    pub fn document(&self, level: Level, entry: u32) -> usize {
        match level {
            Level::Documents => entry as usize,
            Level::Elements => self.parents[entry as usize] as usize,
        }
    }

    /// The key of a document.
    pub fn key(&self, document: usize) -> &[u8] {
        &self.keys[document]
    }

    /// By filter field of the definition.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// By vector field of the definition.
    pub fn rows(&self) -> &[Rows] {
        &self.rows
    }
}

impl parts::Segment for Segment {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        let at = self
            .sorted
            .binary_search_by(|document| (*self.keys[*document as usize]).cmp(key))
            .ok()?;
        self.sorted.get(at).copied()
    }

    fn bytes(&self) -> usize {
        let keys: usize = self.keys.first().map_or(0, |key| key.len() + 2 * size_of::<usize>()) * self.keys.len();
        let numbers = (self.sorted.capacity() + self.parents.capacity()) * size_of::<u32>();
        let columns: usize = self.columns.iter().map(Column::bytes).sum();
        let rows = self.rows.iter();
        let rows: usize = rows
            .map(|rows| rows.float.bytes() + rows.int8.bytes() + rows.bits.bytes())
            .sum();
        size_of::<Self>() + keys + numbers + columns + rows
    }

    fn merged(parts: &[(&Self, &Dead)]) -> Result<Self> {
        let mut merged = parts.first().map_or_else(Self::default, |(part, _)| Self::like(part));
        for (part, dead) in parts {
            merged.copy(part, dead)?;
        }
        Ok(merged.seal())
    }
}

fn count(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::new(ErrorCode::ExceededMemoryLimit, "a search index has too many entries"))
}

/// The elements at `nestedRoot`, as far as they are documents.
fn elements<'a>(definition: &Definition, document: ValueRef<'a>) -> Result<Vec<ValueRef<'a>>> {
    let mut elements = Vec::new();
    if let Some(root) = &definition.nested_root {
        visit(document, root.parts(), &mut |value| {
            let before = elements.len();
            match value {
                ValueRef::Array(items) => {
                    elements.extend(items.iter().filter(|item| matches!(item, ValueRef::Document(_))))
                }
                ValueRef::Document(_) => elements.push(value),
                _ => {}
            }
            work(1 + elements.len() - before)
        })?;
    }
    Ok(elements)
}

/// What is at the path, with documents only on the way.
fn plain<'a>(value: ValueRef<'a>, path: &[PathPart]) -> Option<ValueRef<'a>> {
    path.iter()
        .try_fold(value, |value, part| value.as_document()?.get(&part.name))
}
