//! What the planner knows of a collection: its indexes, as plain data.

use crate::wildcard::Wildcard;
use nestor_model::{Document, Path, Str};
use nestor_query::collation::Collator;
use nestor_query::matcher::MatchExpr;
use std::ops::Deref;
use std::sync::Arc;

/// What an index part stores of the values at its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartKind {
    /// The values in order.
    Ascending,
    /// The values in reverse order.
    Descending,
    /// Hashes of the values.
    Hashed,
}

/// One part of an index key.
#[derive(Clone, Debug)]
pub struct IndexPart {
    /// The field.
    pub path: Path,
    /// What is stored of it.
    pub kind: PartKind,
    /// Bit `i` is set when component `i` of the path has held an array in some document.
    pub multikey: u64,
}

impl IndexPart {
    /// True when the path ran through an array in some document.
    pub fn is_multikey(&self) -> bool {
        self.multikey != 0
    }
}

/// An index, as far as planning needs it.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// Identity in storage.
    pub id: u32,
    /// Its name.
    pub name: Str,
    /// `key` of its specification.
    pub key_pattern: Document,
    /// The parts, in order.
    pub parts: Vec<IndexPart>,
    /// No two documents have the same key.
    pub unique: bool,
    /// Documents without any of the fields have no entry.
    pub sparse: bool,
    /// Only documents that match have entries.
    pub partial: Option<Arc<MatchExpr>>,
    /// It is over all fields: `parts` has the path as a part of its own before the value, and is not for queries
    /// as it is.
    pub wildcard: Option<Arc<Wildcard>>,
    /// Strings are in it as the sort keys of this collation.
    pub collation: Option<Collator>,
    /// Not for planning (but counted for explain and hints' errors).
    pub hidden: bool,
}

impl IndexInfo {
    /// True when a document may have several entries.
    pub fn is_multikey(&self) -> bool {
        self.parts.iter().any(IndexPart::is_multikey)
    }

    /// True for `_id_`.
    pub fn is_id(&self) -> bool {
        self.name == "_id_"
    }
}

/// The indexes of a collection.
#[derive(Clone, Debug, Default)]
pub struct Indexes {
    /// Those that plans may use, in the order of their creation.
    pub all: Vec<Arc<IndexInfo>>,
    /// The collation by which the collection tells `_id`s apart. A clustered collection has one without an index.
    pub id_collation: Option<Collator>,
}

impl Deref for Indexes {
    type Target = [Arc<IndexInfo>];

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}
