//! From what is found in each segment to what a query gives.

use super::ask::{Search, SortBy, SortKey, Token};
use super::definition::{Definition, ROOT, ScopeId};
use super::facets::facets;
use super::highlight::Highlighter;
use super::plan::{Compiler, Context, Evaluation, Match, Node};
use super::state::Index;
use super::store::{Atom, Column, FieldKey, Kind, RowId, Segment};
use super::synonyms::Synonyms;
use crate::found::{Found, Highlight, Highlights, Hit, Hits, Ordered, Place, ReadSynonyms};
use crate::operand::refuse;
use nestor_model::statement::{Scope, charge, work};
use nestor_model::{Document, Result, Value};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// A row that a query gives.
struct Row {
    part: usize,
    /// The first bytes of its key, by which most rows are told apart.
    prefix: u64,
    found: Match,
    /// The values that it is sorted by.
    values: Vec<Option<Atom>>,
}

impl Index {
    /// The documents that a `$search` or `$searchMeta` asks for.
    ///
    /// Errors: 8 for what this index cannot tell, those of the statement's interrupt and memory.
    pub fn search(&self, definition: &Definition, search: &Search, read: &mut ReadSynonyms<'_>) -> Result<Found> {
        let _memory = Scope::begin();
        let synonyms = synonyms(definition, search, read)?;
        let context = Context {
            definition,
            parts: &self.parts,
            synonyms: &synonyms,
        };
        let scope = result_scope(context, search)?;
        if search.stored && definition.scope(scope).source.is_nothing() {
            refuse!("\"returnStoredSource\" needs an index with storedSource");
        }
        let node = Compiler::new(context, None).clause(scope, &search.clause)?;
        let highlighter: Option<Arc<dyn Highlight>> = match &search.highlight {
            Some(highlight) => Some(Arc::new(Highlighter::new(context, highlight, &node)?)),
            None => None,
        };
        let rows = self.rows(search, scope, &node)?;
        let meta = meta(context, search, scope, &rows)?;
        let hits = match search.is_meta {
            true => Hits::default(),
            false => Hits::ordered(self.hits(search, highlighter, rows)?),
        };
        Ok(Found { hits, meta: Some(meta) })
    }

    fn rows(&self, search: &Search, scope: ScopeId, node: &Node<'_>) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            let details = search.details;
            let found = Evaluation { part, details }.matches(node)?;
            let sorted: Vec<SortColumns<'_>> = search
                .sort
                .iter()
                .map(|key| SortColumns::of(&part.segment, scope, key))
                .collect();
            for found in found {
                work(1)?;
                let values: Vec<Option<Atom>> = sorted.iter().map(|columns| columns.value(found.row)).collect();
                charge(size_of::<Row>() + values.len() * size_of::<Option<Atom>>())?;
                rows.push(Row {
                    part: number,
                    prefix: prefix(part.segment.key(found.row)),
                    found,
                    values,
                });
            }
        }
        Ok(rows)
    }

    /// What of the rows is given.
    fn hits(&self, search: &Search, highlighter: Option<Arc<dyn Highlight>>, rows: Vec<Row>) -> Result<RowsInOrder> {
        let mut order = RowsInOrder {
            segments: self.parts.iter().map(|part| part.segment.clone()).collect(),
            sort: search.sort.clone(),
            backwards: search.before.is_some(),
            highlighter,
            stored: search.stored,
            rows,
            at: 0,
            ordered: 0,
            chunk: CHUNK_ROWS,
        };
        for token in search.after.iter().chain(&search.before) {
            if token.values.len() != search.sort.len() {
                refuse!("the token of a search is of one that was sorted in another way");
            }
        }
        if let Some(token) = &search.after {
            order.retain(token, Ordering::Greater)?;
        }
        if let Some(token) = &search.before {
            order.retain(token, Ordering::Less)?;
        }
        Ok(order)
    }
}

/// Rows that are put in order first; so many times more each time after that.
const CHUNK_ROWS: usize = 32;
const CHUNK_GROWTH: usize = 4;

/// The rows of a result, of which those that somebody takes are put in order, a chunk at a time.
struct RowsInOrder {
    /// By the numbers of parts.
    segments: Vec<Arc<Segment>>,
    sort: Vec<SortKey>,
    /// The last row first.
    backwards: bool,
    highlighter: Option<Arc<dyn Highlight>>,
    stored: bool,
    rows: Vec<Row>,
    /// The next row to be taken.
    at: usize,
    /// Rows before this are in order, and none behind it comes before them.
    ordered: usize,
    /// How many rows are put in order next.
    chunk: usize,
}

impl RowsInOrder {
    /// Keeps the rows that stand so to a token.
    fn retain(&mut self, token: &Token, wanted: Ordering) -> Result<()> {
        work(1 + self.rows.len() / 2)?;
        let (segments, sort) = (&self.segments, &self.sort);
        self.rows.retain(|row| {
            let by_values = compare(sort, (&row.values, row.found.score), (&token.values, token.score));
            let ordering = by_values.then_with(|| place(segments, row).cmp(&(&*token.key, i64::from(token.row))));
            ordering == wanted
        });
        Ok(())
    }

    /// Puts the next chunk in order.
    fn put_in_order(&mut self) -> Result<()> {
        let rest = &mut self.rows[self.ordered..];
        work(1 + rest.len() / 2)?;
        let (segments, sort, backwards) = (&self.segments, &self.sort, self.backwards);
        let by = |a: &Row, b: &Row| {
            let by_values = compare(sort, (&a.values, a.found.score), (&b.values, b.found.score));
            let by_prefix = by_values.then_with(|| a.prefix.cmp(&b.prefix));
            let ordering = by_prefix.then_with(|| place(segments, a).cmp(&place(segments, b)));
            if backwards { ordering.reverse() } else { ordering }
        };
        let mut length = rest.len();
        if self.chunk < length / 2 {
            length = self.chunk;
            rest.select_nth_unstable_by(length - 1, by);
        }
        rest[..length].sort_unstable_by(by);
        self.ordered += length;
        self.chunk = self.chunk.saturating_mul(CHUNK_GROWTH);
        Ok(())
    }
}

impl Ordered for RowsInOrder {
    fn next(&mut self) -> Result<Option<Hit>> {
        if self.at == self.rows.len() {
            return Ok(None);
        }
        if self.at == self.ordered {
            self.put_in_order()?;
        }
        work(1)?;
        let row = &mut self.rows[self.at];
        self.at += 1;
        let segment = &self.segments[row.part];
        let id = row.found.row;
        let values = std::mem::take(&mut row.values);
        Ok(Some(Hit {
            key: segment.key(id).into(),
            score: f64::from(row.found.score),
            highlights: self.highlighter.as_ref().map(|by| Highlights {
                by: Arc::clone(by),
                part: row.part as u32,
                row: id,
            }),
            details: row.found.details.take().map(|details| details.to_value()),
            token: Some(Place {
                values: values.iter().map(|value| Atom::sort_value(value.as_ref())).collect(),
                row: i32::try_from(id - segment.root(id)).unwrap_or(i32::MAX),
            }),
            stored: self.stored.then(|| segment.source(id).cloned().unwrap_or_default()),
        }))
    }

    fn left(&self) -> usize {
        self.rows.len() - self.at
    }

    fn bytes(&self) -> usize {
        let of_row = size_of::<Row>() + self.sort.len() * size_of::<Option<Atom>>();
        self.rows.len() * of_row
    }
}

/// Where a row stands among those that are alike: its key, and its number within the record.
fn place<'a>(segments: &'a [Arc<Segment>], row: &Row) -> (&'a [u8], i64) {
    let segment = &segments[row.part];
    let offset = row.found.row - segment.root(row.found.row);
    (segment.key(row.found.row), i64::from(offset))
}

/// The first bytes of a key as a number, which ascends as keys do.
fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = key.len().min(8);
    bytes[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(bytes)
}

/// The synonyms that a query asks by, by name.
fn synonyms(
    definition: &Definition,
    search: &Search,
    read: &mut ReadSynonyms<'_>,
) -> Result<HashMap<String, Synonyms>> {
    let mut all = HashMap::new();
    search.clause.for_each_synonyms(&mut |name| {
        if !all.contains_key(name) {
            let mapping = definition.synonyms(name)?;
            let mut own = Synonyms::of(mapping);
            read(&mapping.collection, &mut |document| own.add(mapping, document))?;
            all.insert(name.to_owned(), own);
        }
        Ok(())
    })?;
    Ok(all)
}

/// The scope whose rows are results.
fn result_scope(context: Context<'_>, search: &Search) -> Result<ScopeId> {
    let Some(path) = &search.scope else {
        return Ok(ROOT);
    };
    match context.definition.scope_at(ROOT, path) {
        Some(scope) if !context.definition.scope(scope).source.is_nothing() => Ok(scope),
        _ => refuse!("the path {path:?} of \"returnScope\" must be indexed as embeddedDocuments with storedSource"),
    }
}

/// The columns of a segment that a key sorts by.
struct SortColumns<'a> {
    columns: Vec<&'a Column>,
    descending: bool,
}

impl<'a> SortColumns<'a> {
    fn of(segment: &'a Segment, scope: ScopeId, key: &SortKey) -> Self {
        // Null is as good as nothing.
        let kinds = [
            Kind::Number,
            Kind::Token,
            Kind::Uuid,
            Kind::ObjectId,
            Kind::Boolean,
            Kind::Date,
        ];
        let columns = match &key.by {
            SortBy::Score => Vec::new(),
            SortBy::Path { path, .. } => {
                let columns = kinds
                    .into_iter()
                    .map(|kind| segment.column(&FieldKey::new(scope, kind, path)));
                columns.flatten().collect()
            }
        };
        Self {
            columns,
            descending: key.descending,
        }
    }

    /// The value that a row is sorted by: of several the one that comes first.
    fn value(&self, row: RowId) -> Option<Atom> {
        let columns = self.columns.iter();
        match self.descending {
            true => columns
                .filter_map(|column| column.values_at(row).next_back())
                .max()
                .cloned(),
            false => columns.filter_map(|column| column.values_at(row).next()).min().cloned(),
        }
    }
}

/// Compares two rows: by their scores, the best first, or by what they are sorted by.
fn compare(keys: &[SortKey], a: (&[Option<Atom>], f32), b: (&[Option<Atom>], f32)) -> Ordering {
    if keys.is_empty() {
        return b.1.total_cmp(&a.1);
    }
    for (number, key) in keys.iter().enumerate() {
        let ascending = match &key.by {
            SortBy::Score => a.1.total_cmp(&b.1),
            SortBy::Path { missing_is_highest, .. } => {
                let value = |values: &[Option<Atom>]| values.get(number).cloned().flatten();
                match (value(a.0), value(b.0)) {
                    (Some(a), Some(b)) => a.cmp(&b),
                    (None, None) => Ordering::Equal,
                    (None, Some(_)) if *missing_is_highest => Ordering::Greater,
                    (Some(_), None) if *missing_is_highest => Ordering::Less,
                    (None, Some(_)) => Ordering::Less,
                    (Some(_), None) => Ordering::Greater,
                }
            }
        };
        let ordering = if key.descending { ascending.reverse() } else { ascending };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

/// What `$searchMeta` gives.
fn meta(context: Context<'_>, search: &Search, scope: ScopeId, rows: &[Row]) -> Result<Document> {
    let mut count = Document::new();
    let name = if search.counts_all { "total" } else { "lowerBound" };
    count.push(name, Value::Int64(rows.len() as i64));
    let mut meta = Document::new();
    meta.push("count", count);
    if !search.facets.is_empty() {
        let found: Vec<(usize, RowId)> = rows.iter().map(|row| (row.part, row.found.row)).collect();
        meta.push("facet", facets(context, search, scope, &found)?);
    }
    Ok(meta)
}
