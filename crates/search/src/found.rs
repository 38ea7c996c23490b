//! What is found in an index.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nestor_model::{Document, RawDoc, Result, Value, ValueRef};
use std::fmt;
use std::sync::Arc;

/// A document that was found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The key of its record.
    pub key: Box<[u8]>,
    /// `searchScore` or `vectorSearchScore`.
    pub score: f64,
    /// `searchHighlights`, if it was asked for them.
    pub highlights: Option<Highlights>,
    /// `searchScoreDetails`, if it was asked for them.
    pub details: Option<Value>,
    /// `searchSequenceToken`, by which a later query goes on behind this document or before it.
    pub token: Option<Place>,
    /// What the index has stored of it, if that is asked for in the place of the document; likewise what `returnScope` leaves of it.
    pub stored: Option<Document>,
}

impl Hit {
    /// Bytes of memory that it takes.
    fn bytes(&self) -> usize {
        let beside = self.details.as_ref().map_or(0, Value::weight) + self.stored.as_ref().map_or(0, Document::weight);
        size_of::<Self>() + self.key.len() + beside
    }

    /// The value of `searchSequenceToken`. It is made for those alone that are looked at.
    pub fn sequence_token(&self) -> Option<Value> {
        let place = self.token.as_ref()?;
        Some(Token::write(self.score, &self.key, place))
    }
}

/// Reads the documents of a collection, in which an index's synonyms are: calls what it is given with each.
pub type ReadSynonyms<'a> = dyn FnMut(&str, &mut dyn FnMut(RawDoc<'_>) -> Result<()>) -> Result<()> + 'a;

/// What a query found.
#[derive(Debug, Default)]
pub struct Found {
    /// In the order in which the query gives them.
    pub hits: Hits,
    /// What `$searchMeta` gives, and `$$SEARCH_META` stands for: counts and facets.
    pub meta: Option<Document>,
}

/// The documents that a query found. Those of large results are put in order, and made, as they are taken: most are never looked at.
#[derive(Default)]
pub struct Hits(Inner);

enum Inner {
    Made(std::vec::IntoIter<Hit>),
    Ordered(Box<dyn Ordered>),
}

impl Default for Inner {
    fn default() -> Self {
        Self::Made(Vec::new().into_iter())
    }
}

/// Who puts what was found in order as far as somebody looks.
pub(crate) trait Ordered: Send {
    /// The next one.
    ///
    /// Errors: those of the statement's interrupt.
    fn next(&mut self) -> Result<Option<Hit>>;

    /// How many are left.
    fn left(&self) -> usize;

    /// Bytes of memory that it takes.
    fn bytes(&self) -> usize;
}

impl Hits {
    pub(crate) fn ordered(by: impl Ordered + 'static) -> Self {
        Self(Inner::Ordered(Box::new(by)))
    }

    /// The next one; `None` behind the last.
    ///
    /// Errors: those of the statement's interrupt.
    pub fn take_next(&mut self) -> Result<Option<Hit>> {
        match &mut self.0 {
            Inner::Made(hits) => Ok(hits.next()),
            Inner::Ordered(by) => by.next(),
        }
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Inner::Made(hits) => hits.as_slice().iter().map(Hit::bytes).sum(),
            Inner::Ordered(by) => by.bytes(),
        }
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn all(mut self) -> Vec<Hit> {
        std::iter::from_fn(|| self.take_next().expect("no interrupt")).collect()
    }
}

impl From<Vec<Hit>> for Hits {
    fn from(hits: Vec<Hit>) -> Self {
        Self(Inner::Made(hits.into_iter()))
    }
}

impl fmt::Debug for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = match &self.0 {
            Inner::Made(hits) => hits.len(),
            Inner::Ordered(by) => by.left(),
        };
        write!(f, "{left} hits")
    }
}

/// Where terms are in the texts of a document: computed for those alone that are looked at.
#[derive(Clone)]
pub struct Highlights {
    pub(crate) by: Arc<dyn Highlight>,
    pub(crate) part: u32,
    pub(crate) row: u32,
}

impl Highlights {
    /// The value of `searchHighlights`.
    ///
    /// Errors: those of the statement's interrupt.
    pub fn value(&self) -> Result<Value> {
        self.by.passages(self.part as usize, self.row)
    }
}

impl fmt::Debug for Highlights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "highlights of row {} of segment {}", self.row, self.part)
    }
}

/// Who finds terms in the texts of documents.
pub(crate) trait Highlight: Send + Sync {
    /// The passages of a row of a segment.
    fn passages(&self, part: usize, row: u32) -> Result<Value>;
}

/// Where a document stands among those that were found, beside its score.
#[derive(Clone, Debug)]
pub struct Place {
    /// The values that it was sorted by.
    pub(crate) values: Vec<Value>,
    /// The number of the row within the record, where embedded documents are results.
    pub(crate) row: i32,
}

/// A `searchSequenceToken` that was read.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) score: f64,
    pub(crate) key: Box<[u8]>,
    pub(crate) place: Place,
}

impl Token {
    /// A document, in base 64.
    fn write(score: f64, key: &[u8], place: &Place) -> Value {
        let mut doc = Document::with_capacity(4);
        doc.push("s", Value::Double(score));
        let key = ValueRef::Binary { subtype: 0, bytes: key };
        doc.push("k", key.to_value());
        doc.push("r", Value::Int32(place.row));
        doc.push("v", Value::Array(place.values.iter().cloned().collect()));
        Value::String(STANDARD.encode(doc.to_raw().as_bytes()).into())
    }

    pub(crate) fn read(written: &str) -> Option<Self> {
        let bytes = STANDARD.decode(written).ok()?;
        let doc = RawDoc::validate(&bytes).ok()?;
        let (Some(ValueRef::Double(score)), Some(ValueRef::Binary { bytes, .. })) = (doc.get("s"), doc.get("k")) else {
            return None;
        };
        let (Some(ValueRef::Int32(row)), Some(ValueRef::Array(items))) = (doc.get("r"), doc.get("v")) else {
            return None;
        };
        let values = items.iter().map(ValueRef::to_value).collect();
        Some(Self {
            score,
            key: bytes.into(),
            place: Place { values, row },
        })
    }
}
