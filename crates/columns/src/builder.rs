//! Segments made of documents, one by one.

use crate::column::{Column, ColumnBuilder, State};
use crate::elements;
use crate::memory::Memory;
use crate::segment::{Field, Head, PATHS_MAX, Rows, Segment, Source};
use nestor_model::{ArrayRef, Str, ValueRef};
use nestor_storage::base::NodeName;
use nestor_storage::record;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// Of segments with more paths than these only those are held that more than one in [`RARE`] documents has.
const PATHS_MANY: usize = 100;
pub(crate) const RARE: usize = 16;

/// Bytes of the documents of a segment, at most; of larger ones nothing is held.
pub(crate) const BYTES_MAX: usize = 64 << 20;

/// Pairs of neighbours among the fields of documents, at most; with more these are in no order.
const PAIRS_MAX: usize = 4000;

/// Fields below one another, at most.
const DEPTH_MAX: usize = 16;

/// Makes a segment, document by document, or one of the elements of arrays.
pub(crate) struct SegmentBuilder {
    fields: Vec<FieldBuilder>,
    /// How many of them there may be.
    fields_max: usize,
    is_cut: bool,
    pub(crate) rows: usize,
    /// Bytes of the documents.
    pub(crate) bytes: usize,
    /// In how many arrays its rows are.
    level: usize,
    /// How many of its fields are arrays whose elements are held.
    arrays: usize,
    /// All rows are documents.
    are_documents: bool,
}

impl Default for SegmentBuilder {
    fn default() -> Self {
        Self {
            fields: vec![FieldBuilder::default()],
            fields_max: PATHS_MAX,
            is_cut: false,
            rows: 0,
            bytes: 0,
            level: 0,
            arrays: 0,
            are_documents: true,
        }
    }
}

#[derive(Default)]
struct FieldBuilder {
    below: Vec<(Str, usize)>,
    order: Order,
    column: ColumnBuilder,
    has_others: bool,
    /// The elements of the arrays that documents have here.
    elements: Option<Box<Elements>>,
}

/// The elements of the arrays of a field.
struct Elements {
    /// The rows that have arrays, and how many elements there were before.
    begins: Vec<(usize, usize)>,
    of: SegmentBuilder,
}

impl Elements {
    /// The segment of the elements, and the column that tells where those of each row begin, whose fields have these states; `None` where a row has
    /// something else than an array, null or nothing, and where there are too many elements.
    fn finish(self, states: &[State], rare: usize, memory: &Arc<Memory>) -> Option<(Column, Segment)> {
        if self.of.rows > elements::most(states.len()) {
            return None;
        }
        let mut arrays = self.begins.into_iter().peekable();
        let mut all = Vec::with_capacity(states.len());
        for (row, state) in states.iter().enumerate() {
            let array = arrays.next_if(|(own, _)| *own == row);
            let begin = arrays.peek().map_or(self.of.rows, |(_, begin)| *begin);
            all.push(match (state, array) {
                (State::Other, Some((_, begin))) => (State::Value, begin),
                (State::Null | State::Missing, None) => (*state, begin),
                _ => return None,
            });
        }
        let segment = self.of.finish(Vec::new(), rare, memory);
        Some((elements::begins(all), segment))
    }
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
    /// One of elements of arrays that are in so many others.
    fn of_elements(level: usize) -> Self {
        Self {
            fields_max: elements::PATHS_MAX,
            level,
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, key: &[u8], bytes: &[u8]) {
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
                None if self.fields.len() >= self.fields_max => {
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
                ValueRef::Array(items) => {
                    self.fields[field].has_others = true;
                    self.elements_of(field, items);
                }
                // What is below is not held.
                ValueRef::Document(_) => self.fields[field].has_others = true,
                _ => {}
            }
        }
    }

    /// Adds the elements of an array that the document that comes next has at a field.
    fn elements_of(&mut self, field: usize, items: ArrayRef<'_>) {
        let elements = &mut self.fields[field].elements;
        if elements.is_none() && self.level < elements::LEVELS_MAX && self.arrays < elements::ARRAYS_MAX {
            self.arrays += 1;
            *elements = Some(Box::new(Elements {
                begins: Vec::new(),
                of: Self::of_elements(self.level + 1),
            }));
        }
        let Some(elements) = elements else { return };
        elements.begins.push((self.rows, elements.of.rows));
        for item in items.iter() {
            // They are counted still, and will be too many.
            match elements.of.rows <= elements::ROWS_MAX {
                true => elements.of.add_element(item),
                false => elements.of.rows += 1,
            }
        }
    }

    fn add_element(&mut self, item: ValueRef<'_>) {
        self.fields[0].column.push(self.rows, item);
        self.are_documents &= matches!(item, ValueRef::Document(_));
        match item {
            ValueRef::Document(doc) => self.fields_of(0, doc.iter(), 0),
            ValueRef::Array(_) => self.fields[0].has_others = true,
            _ => {}
        }
        self.rows += 1;
    }

    /// The segment, whose rows are those of these blocks; of many paths those are left out that not one in `rare` documents has.
    pub(crate) fn finish(mut self, blocks: Vec<(NodeName, u32)>, rare: usize, memory: &Arc<Memory>) -> Segment {
        let rows = self.rows;
        if self.bytes > BYTES_MAX {
            self.fields = vec![FieldBuilder::default()];
            self.is_cut = true;
        }
        let are_many = self.fields.len() > PATHS_MANY;
        let mut columns = Vec::with_capacity(self.fields.len());
        let mut fields = Vec::with_capacity(self.fields.len());
        let mut inner = Vec::new();
        for mut field in self.fields {
            let is_rare = are_many && field.column.rows().saturating_mul(rare) < rows;
            let elements = field.elements.take().filter(|_| !is_rare);
            let elements = elements.and_then(|own| own.finish(field.column.states(rows), rare, memory));
            let has_elements = elements.is_some();
            let column = match elements {
                Some((begins, segment)) => {
                    inner.push(OnceLock::from(Some(Arc::new(segment))));
                    begins
                }
                None if is_rare => Column::unknown(),
                None => field.column.finish(rows),
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
                is_held: column.is_held() && !has_elements,
                has_elements,
                range: column.range().cloned(),
            });
            columns.push(OnceLock::from(Arc::new(column)));
        }
        let of = match self.level {
            0 => Rows::Documents(blocks),
            _ => Rows::Elements {
                are_documents: self.are_documents,
            },
        };
        let head = Head::new(of, rows, fields, self.is_cut);
        let held = (columns.into(), inner.into());
        Segment::new(Arc::new(head), held, Source::Memory, memory.clone())
    }
}
