//! The elements of arrays, path by path: a segment of their own, of which each document has some rows.
//!
//! The column of the array's field tells where those of a document begin. So who wants elements beside what their documents have reads both, each value of
//! a document as often as it has elements. Arrays in arrays' documents have segments below these; arrays that are elements themselves are not held.

use crate::column::{Column, State, Values};
use crate::packed::Packed;
use crate::segment::{Field, Head, Rows, Segment, Source};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Arrays below one another whose elements are held, at most.
pub(crate) const LEVELS_MAX: usize = 2;

/// Arrays of the documents of a segment whose elements are held, at most.
pub(crate) const ARRAYS_MAX: usize = 16;

/// Paths of elements, at most.
pub(crate) const PATHS_MAX: usize = 100;

/// Elements of a segment, at most.
pub(crate) const ROWS_MAX: usize = 1 << 20;

/// Elements of an array that pay, on average: of longer ones, as embeddings are, their documents have nothing else.
const ROWS_EACH: usize = 64;

/// How many elements so many documents may have at most to be held.
pub(crate) fn most(rows: usize) -> usize {
    (rows.saturating_mul(ROWS_EACH) + ROWS_EACH * ROWS_EACH).min(ROWS_MAX)
}

/// The column that tells of each row whether it has an array, and where its elements begin.
pub(crate) fn begins(rows: impl IntoIterator<Item = (State, usize)>) -> Column {
    let (states, begins): (Vec<State>, Vec<i64>) = rows.into_iter().map(|(state, begin)| (state, begin as i64)).unzip();
    let are_all = states.iter().all(|state| *state == State::Value);
    Column::whole(
        Values::Int64(Packed::new(&begins)),
        (!are_all).then(|| states.into()),
        None,
    )
}

/// Whether a column tells where the elements of its rows begin, of which there are so many.
pub(crate) fn are_begins(column: &Column, elements: usize) -> bool {
    let Values::Int64(begins) = column.values() else {
        return false;
    };
    let all = (0..begins.len()).map(|row| begins.get(row));
    let all = all.chain([elements as i64]);
    all.clone().is_sorted() && all.clone().next() == Some(0)
}

/// What a segment has of the elements of an array.
#[derive(Debug)]
pub enum Found<'s> {
    /// All of them.
    Elements(Elements<'s>),
    /// No document has anything there.
    Nothing,
    /// Documents have to be looked at.
    Unknown,
}

/// The elements of the arrays that documents have at a path. Each document has an array there, null or nothing.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'s> {
    column: &'s Column,
    begins: &'s Packed,
    of: &'s Arc<Segment>,
}

impl<'s> Elements<'s> {
    /// Those of a column of their beginnings; `None` where these are none.
    pub(crate) fn new(column: &'s Column, of: &'s Arc<Segment>) -> Option<Self> {
        match column.values() {
            Values::Int64(begins) => Some(Self { column, begins, of }),
            _ => None,
        }
    }

    /// The elements, whose paths begin in them; the empty one is that of the element itself, as far as it is no document.
    pub fn segment(&self) -> &'s Segment {
        self.of
    }

    pub(crate) fn shared(&self) -> Arc<Segment> {
        self.of.clone()
    }

    /// Where those of a row begin, or would.
    fn begin(&self, row: usize) -> usize {
        match row < self.begins.len() {
            true => self.begins.get(row) as usize,
            false => self.of.rows(),
        }
    }

    /// Those of some rows, one behind the other.
    pub fn of_rows(&self, rows: &Range<usize>) -> Range<usize> {
        self.begin(rows.start)..self.begin(rows.end)
    }

    /// What a row has: an array, null, or nothing.
    pub fn state(&self, row: usize) -> State {
        self.column.state(row)
    }

    /// Whether one of some rows has no element.
    pub fn has_gaps(&self, rows: &Range<usize>) -> bool {
        let mut before = self.begin(rows.start);
        rows.clone().any(|row| {
            let begin = std::mem::replace(&mut before, self.begin(row + 1));
            begin == before
        })
    }

    /// The rows that have some elements, one for each, counted from `from`; the first element is of that row or a later one.
    pub fn rows_of(&self, elements: &Range<usize>, from: usize) -> Vec<u32> {
        let mut out = Vec::with_capacity(elements.len());
        let (mut row, mut end) = (from, self.begin(from + 1));
        let mut next = elements.start;
        while next < elements.end {
            while end <= next {
                row += 1;
                end = self.begin(row + 1);
            }
            let to = end.min(elements.end);
            out.resize(out.len() + to - next, (row - from) as u32);
            next = to;
        }
        out
    }

    /// The last row that begins with or before an element.
    pub fn row_of(&self, element: usize, rows: &Range<usize>) -> usize {
        let (mut from, mut to) = (rows.start, rows.end);
        while from + 1 < to {
            let middle = usize::midpoint(from, to);
            match self.begin(middle) <= element {
                true => from = middle,
                false => to = middle,
            }
        }
        from
    }
}

/// No element.
const NONE: u32 = u32::MAX;

/// Of what a segment is made whose rows are the elements of arrays, beside what their documents have.
#[derive(Debug)]
pub(crate) struct Unwound {
    documents: Arc<Segment>,
    array: usize,
    elements: Arc<Segment>,
    /// The field that has the place of each element in its array.
    index: Option<usize>,
    /// A document without elements is a row.
    preserves: bool,
    rows: OnceLock<UnwoundRows>,
    /// Fields of the documents; those behind are fields of elements.
    own: usize,
}

/// What is in the rows.
#[derive(Debug, Default)]
struct UnwoundRows {
    /// Of each row its document.
    documents: Box<[u32]>,
    /// Of each row its element, [`NONE`] without one; `None` where they are all elements in order.
    elements: Option<Box<[u32]>>,
}

impl Unwound {
    /// The segment of the elements of an array, of documents without elements, too, if it `preserves` these, and with their places at `index`; `None` where that is not
    /// known, and where documents may have something at that path.
    pub(crate) fn segment(
        documents: &Arc<Segment>,
        array: usize,
        (preserves, index): (bool, Option<&str>),
    ) -> Option<Segment> {
        let elements = documents.elements_of(array)?.shared();
        let own = documents.head().fields.len();
        let mut fields: Vec<Field> = documents.head().fields.clone();
        // The first of the elements stands in the place of the array, the others behind the documents' own.
        let place = |field: usize| if field == 0 { array } else { own + field - 1 };
        for (at, field) in elements.head().fields.iter().enumerate() {
            let below = field.below.iter().map(|(name, at)| (name.clone(), place(*at)));
            let field = Field {
                below: below.collect(),
                ..field.clone()
            };
            match at {
                0 => fields[array] = field,
                _ => fields.push(field),
            }
        }
        let is_cut = documents.head().is_cut || elements.head().is_cut;
        let index = match index {
            None => None,
            Some(name) if is_cut || name.contains('.') || fields[0].below.iter().any(|(own, _)| own == name) => {
                return None;
            }
            Some(name) => {
                let place = fields.len();
                fields[0].below.push((name.into(), place));
                fields.push(Field::of_values());
                Some(place)
            }
        };
        let memory = documents.memory().clone();
        let unwound = Self {
            documents: documents.clone(),
            array,
            elements,
            index,
            preserves,
            rows: OnceLock::new(),
            own,
        };
        let rows = match preserves {
            true => unwound.rows().documents.len(),
            false => unwound.elements.rows(),
        };
        let of = Rows::Elements { are_documents: false };
        let head = Head::new(of, rows, fields, is_cut);
        Some(Segment::of(Arc::new(head), Source::Unwound(Arc::new(unwound)), memory))
    }

    /// Where a field is that it has: the segment, and the field there.
    fn place(&self, field: usize) -> (&Segment, usize) {
        match field {
            field if field == self.array => (&self.elements, 0),
            field if field < self.own => (&self.documents, field),
            field => (&self.elements, field - self.own + 1),
        }
    }

    /// The column of a field.
    pub(crate) fn column(&self, field: usize) -> Arc<Column> {
        if self.index == Some(field) {
            return Arc::new(self.places());
        }
        let (segment, of) = self.place(field);
        let column = segment.kept_column(of);
        let rows = self.rows();
        if !std::ptr::eq(segment, &raw const *self.elements) {
            return Arc::new(column.picked(&rows.documents));
        }
        let Some(elements) = &rows.elements else {
            return column;
        };
        // Null stays, and an array without elements is gone.
        let array = self.documents.elements_of(self.array);
        let gap = |row: usize| match &array {
            Some(array) if field == self.array && array.state(rows.documents[row] as usize) == State::Null => {
                State::Null
            }
            _ => State::Missing,
        };
        Arc::new(column.picked_with(elements, NONE, gap))
    }

    /// The place of each element in its array, null without one.
    fn places(&self) -> Column {
        let rows = self.rows();
        let mut places = Vec::with_capacity(rows.documents.len());
        let mut last = None;
        for document in &rows.documents {
            let place = match last {
                Some((own, place)) if own == *document => place + 1,
                _ => 0,
            };
            last = Some((*document, place));
            places.push(place);
        }
        let state = |element: &u32| if *element == NONE { State::Null } else { State::Value };
        let states: Option<Box<[State]>> = rows.elements.as_ref().map(|all| all.iter().map(state).collect());
        let has_gaps = states.as_ref().is_some_and(|states| states.contains(&State::Null));
        Column::whole(Values::Int64(Packed::new(&places)), states.filter(|_| has_gaps), None)
    }

    /// Bytes of the column of a field, as [`Segment::weight`].
    pub(crate) fn weight(&self, field: usize) -> u64 {
        if self.index == Some(field) {
            return 0;
        }
        let (segment, field) = self.place(field);
        segment.weight_of(field)
    }

    /// The rows of some documents.
    pub(crate) fn of_documents(&self, documents: &Range<usize>) -> Range<usize> {
        if !self.preserves {
            let elements = self.documents.elements_of(self.array);
            return elements.map_or(0..0, |elements| elements.of_rows(documents));
        }
        let all = &self.rows().documents;
        let from = |document: usize| all.partition_point(|own| (*own as usize) < document);
        from(documents.start)..from(documents.end)
    }

    fn rows(&self) -> &UnwoundRows {
        self.rows.get_or_init(|| {
            let Some(found) = self.documents.elements_of(self.array) else {
                return UnwoundRows::default();
            };
            if !self.preserves {
                return UnwoundRows {
                    documents: found.rows_of(&(0..self.elements.rows()), 0).into(),
                    elements: None,
                };
            }
            let (mut documents, mut elements) = (Vec::new(), Vec::new());
            for document in 0..self.documents.rows() {
                let own = found.of_rows(&(document..document + 1));
                match own.is_empty() {
                    true => elements.push(NONE),
                    false => elements.extend(own.map(|element| element as u32)),
                }
                documents.resize(elements.len(), document as u32);
            }
            UnwoundRows {
                documents: documents.into(),
                elements: Some(elements.into()),
            }
        })
    }
}
