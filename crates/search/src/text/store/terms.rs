//! The terms of a text field, with the rows that have them and where.

use super::key::RowId;
use nestor_model::Result;
use nestor_model::statement::work;
use std::collections::{BTreeMap, HashMap};

/// Terms that take more bytes are not indexed.
const TERM_BYTES_MAX: usize = 32_766;

/// The terms of one field.
#[derive(Debug, Default)]
pub(in crate::text) struct TextField {
    /// Ascending by bytes.
    terms: Vec<Box<str>>,
    /// Term `i` has the postings `starts[i]..starts[i + 1]`.
    starts: Vec<u32>,
    /// The row of each posting; they ascend within a term.
    rows: Vec<RowId>,
    /// Posting `i` is at `positions[ends[i - 1]..ends[i]]`.
    ends: Vec<u32>,
    positions: Vec<u32>,
    /// Rows that have the field, and how many tokens; ascending.
    lengths: Vec<(RowId, u32)>,
    total_length: u64,
    /// Texts as they are, for highlights.
    texts: Vec<(RowId, Box<str>)>,
}

/// A row that has a term, and where in the row's text.
#[derive(Clone, Copy, Debug)]
pub(in crate::text) struct Posting<'a> {
    pub(in crate::text) row: RowId,
    /// Ascending.
    pub(in crate::text) positions: &'a [u32],
}

impl TextField {
    /// The terms, ascending.
    pub(in crate::text) fn terms(&self) -> &[Box<str>] {
        &self.terms
    }

    /// The number of a term.
    pub(in crate::text) fn find(&self, term: &str) -> Option<usize> {
        self.terms.binary_search_by(|own| (**own).cmp(term)).ok()
    }

    /// How many rows have a term.
    pub(in crate::text) fn frequency(&self, term: usize) -> usize {
        (self.starts[term + 1] - self.starts[term]) as usize
    }

    /// The rows that have a term.
    pub(in crate::text) fn rows_of(&self, term: usize) -> &[RowId] {
        &self.rows[self.starts[term] as usize..self.starts[term + 1] as usize]
    }

    /// The postings of a term.
    pub(in crate::text) fn postings(&self, term: usize) -> impl Iterator<Item = Posting<'_>> {
        (self.starts[term] as usize..self.starts[term + 1] as usize).map(|at| self.posting(at))
    }

    fn posting(&self, at: usize) -> Posting<'_> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Posting {
            row: self.rows[at],
            positions: &self.positions[start as usize..self.ends[at] as usize],
        }
    }

    /// Where a term is in a row.
    pub(in crate::text) fn positions(&self, term: usize, row: RowId) -> &[u32] {
        match self.rows_of(term).binary_search(&row) {
            Ok(at) => self.posting(self.starts[term] as usize + at).positions,
            Err(_) => &[],
        }
    }

    /// Rows that have the field, and how many tokens they have in it; ascending.
    pub(in crate::text) fn lengths(&self) -> &[(RowId, u32)] {
        &self.lengths
    }

    /// How many tokens all rows have.
    pub(in crate::text) fn total_length(&self) -> u64 {
        self.total_length
    }

    /// The texts of a row.
    pub(in crate::text) fn texts(&self, row: RowId) -> impl Iterator<Item = &str> {
        let start = self.texts.partition_point(|(at, _)| *at < row);
        let own = self.texts[start..].iter().take_while(move |(at, _)| *at == row);
        own.map(|(_, text)| &**text)
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let terms: usize = self.terms.iter().map(|term| term.len() + 20).sum();
        let texts: usize = self.texts.iter().map(|(_, text)| text.len() + 24).sum();
        terms + texts + self.rows.len() * 8 + self.positions.len() * 4 + self.lengths.len() * 8
    }

    /// Adds a term with its postings; terms are added ascending.
    fn push<'a>(&mut self, term: Box<str>, postings: impl Iterator<Item = (RowId, &'a [u32])>) {
        let start = self.rows.len() as u32;
        for (row, positions) in postings {
            self.rows.push(row);
            self.positions.extend_from_slice(positions);
            self.ends.push(self.positions.len() as u32);
        }
        if self.rows.len() as u32 > start {
            self.terms.push(term);
            self.starts.push(start);
        }
    }

    fn close(&mut self) {
        self.starts.push(self.rows.len() as u32);
        self.total_length = self.lengths.iter().map(|(_, length)| u64::from(*length)).sum();
    }

    /// The field of several segments as one; `rows` gives the new row of each row, or none for one that is gone.
    pub(super) fn merged(fields: &[(&TextField, &[Option<RowId>])]) -> Result<Self> {
        let mut all: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        for (number, (field, _)) in fields.iter().enumerate() {
            for (term, text) in field.terms.iter().enumerate() {
                all.entry(text).or_default().push((number, term));
            }
            work(1 + field.terms.len() / 4)?;
        }
        let mut merged = Self::default();
        for (text, places) in all {
            let postings = places.iter().flat_map(|(number, term)| {
                let (field, rows) = fields[*number];
                let kept = field.postings(*term);
                kept.filter_map(|posting| Some((rows[posting.row as usize]?, posting.positions)))
            });
            merged.push(text.into(), postings);
            let size: usize = places
                .iter()
                .map(|(number, term)| fields[*number].0.frequency(*term))
                .sum();
            work(1 + size / 16)?;
        }
        for (field, rows) in fields {
            let lengths = field.lengths.iter();
            merged
                .lengths
                .extend(lengths.filter_map(|(row, length)| Some((rows[*row as usize]?, *length))));
            let texts = field.texts.iter();
            merged
                .texts
                .extend(texts.filter_map(|(row, text)| Some((rows[*row as usize]?, text.clone()))));
            work(1 + field.lengths.len() / 16)?;
        }
        merged.close();
        Ok(merged)
    }
}

/// A text field while a segment is built.
#[derive(Default)]
pub(super) struct TextBuilder {
    /// Rows and positions of each term, as they come.
    terms: HashMap<Box<str>, Vec<(RowId, u32)>>,
    lengths: Vec<(RowId, u32)>,
    /// The position of the next token of the last row.
    next: u32,
    texts: Vec<(RowId, Box<str>)>,
}

impl TextBuilder {
    /// Begins another text of a row; rows come ascending. The position of its first token.
    pub(super) fn begin(&mut self, row: RowId) -> u32 {
        if self.lengths.last().is_none_or(|(last, _)| *last != row) {
            self.lengths.push((row, 0));
            self.next = 0;
        }
        self.next
    }

    /// Adds a token of the text that was begun; how many bytes more it takes. One that counts makes the text longer.
    pub(super) fn add(&mut self, row: RowId, term: &str, position: u32, counts: bool) -> usize {
        if term.len() > TERM_BYTES_MAX {
            return 0;
        }
        self.next = self.next.max(position + 1);
        if counts && let Some(last) = self.lengths.last_mut() {
            last.1 += 1;
        }
        match self.terms.get_mut(term) {
            Some(places) => {
                places.push((row, position));
                8
            }
            None => {
                self.terms.insert(term.into(), vec![(row, position)]);
                64 + term.len()
            }
        }
    }

    /// Whether the last token that a term was added for is of this row.
    pub(super) fn has(&self, row: RowId, term: &str) -> bool {
        let places = self.terms.get(term);
        places
            .and_then(|places| places.last())
            .is_some_and(|(last, _)| *last == row)
    }

    /// Keeps a text of a row.
    pub(super) fn keep(&mut self, row: RowId, text: &str) {
        self.texts.push((row, text.into()));
    }

    pub(super) fn finish(self) -> Result<TextField> {
        let mut field = TextField {
            lengths: self.lengths,
            texts: self.texts,
            ..TextField::default()
        };
        let mut terms: Vec<_> = self.terms.into_iter().collect();
        work(1 + terms.len() / 4)?;
        terms.sort_unstable_by(|a: &(Box<str>, Vec<_>), b| a.0.cmp(&b.0));
        let mut positions = Vec::new();
        for (term, mut places) in terms {
            work(1 + places.len() / 16)?;
            // Texts of one row come one after the other, but their tokens need not be in order.
            places.sort_unstable();
            places.dedup();
            positions.clear();
            positions.extend(places.iter().map(|(_, position)| *position));
            let mut at = 0;
            let postings = places.chunk_by(|a, b| a.0 == b.0).map(|own| {
                let start = at;
                at += own.len();
                (own[0].0, start..at)
            });
            let postings: Vec<_> = postings.collect();
            field.push(term, postings.into_iter().map(|(row, range)| (row, &positions[range])));
        }
        field.close();
        Ok(field)
    }
}
