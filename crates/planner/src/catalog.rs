//! The planner's view of a collection: its indexes, as plain data, each with its kind ([`IndexKind`]).

use crate::bounds::{Part, Tightness, condition_bounds};
use crate::interval::IntervalList;
use crate::kind::NodeKind;
use nestor_model::index_spec::IndexSpec;
use nestor_model::{DocRef, Document, Path, Result, Str, Value, ValueRef};
use nestor_query::collation::Collator;
use nestor_query::geo::{GeoTest, Near};
use nestor_query::keys::MultikeyPaths;
use nestor_query::matcher::{MatchExpr, Predicate};
use nestor_query::text::TextSpec;
use nestor_query::update::Touched;
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// How an index part stores the values at its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartKind {
    /// The values in order.
    Ascending,
    /// The values in reverse order.
    Descending,
    /// What the index's kind computes from the values, ascending: neither they nor their order can be had from it.
    Derived,
}

/// One part of a stored index key.
#[derive(Clone, Debug)]
pub struct IndexPart {
    /// The field.
    pub path: Path,
    /// How it is stored.
    pub kind: PartKind,
    /// Bit `i` is set when component `i` of the path has held an array in some document.
    pub multikey: u64,
    /// Strings in it are sort keys, if the index has a collation.
    pub collated: bool,
}

impl IndexPart {
    /// True when the path ran through an array in some document.
    pub fn is_multikey(&self) -> bool {
        self.multikey != 0
    }
}

/// Where a document's keys go: one value for each stored part.
pub type EmitKey<'e> = dyn FnMut(&[ValueRef<'_>]) -> Result<()> + 'e;

/// One condition of a conjunction, as far as an index part could use it.
#[derive(Clone)]
pub struct Condition<'f> {
    /// Position in the conjunction.
    pub(crate) at: usize,
    /// The path.
    pub path: Path,
    /// The test of the values at the path.
    pub predicate: &'f Predicate,
    /// No value may pass the test.
    pub negated: bool,
    /// Components of the path up to the array whose one element a `$elemMatch` ties conditions to.
    pub(crate) tied_to: Option<usize>,
}

/// What is asked of the entries of a scan.
#[derive(Clone, Debug)]
pub struct KeyTest {
    /// The stored part that is looked at.
    pub part: usize,
    /// What [`IndexKind::may_pass`] is asked about it.
    pub test: Arc<GeoTest>,
}

/// A way to use an index.
pub struct IndexUse<'f> {
    /// The index, with its parts as they are for this use.
    pub index: Arc<IndexInfo>,
    /// The conditions that may bound its parts.
    pub conditions: Vec<Condition<'f>>,
    /// A part whose bounds are given.
    pub fixed: Option<(usize, IntervalList)>,
}

/// An index, as its kind sees it. Made once for each version of the index's catalog entry.
pub trait IndexKind: fmt::Debug + Send + Sync {
    /// The stored parts of its keys. `multikey[i]` are the bits of part `i` of the key pattern: see
    /// [`IndexPart::multikey`].
    fn parts(&self, spec: &IndexSpec, multikey: &[u64]) -> Vec<IndexPart>;

    /// Calls `emit` with each key of a document, duplicates included. `key[i]` belongs to stored part `i`; a missing value
    /// is stored as null. Returns which parts of the key pattern ran through arrays.
    ///
    /// Errors: those of the document (171, 16766) and of `emit`.
    fn for_each_key(&self, doc: DocRef<'_>, emit: &mut EmitKey<'_>) -> Result<MultikeyPaths>;

    /// Whether a change of these paths can change the keys of a document.
    fn is_touched_by(&self, touched: &Touched) -> bool;

    /// The bounds of stored part `part` for a condition on its path, which is negated or not; `None` when the part is of
    /// no use for it.
    fn bounds(
        &self,
        part: usize,
        predicate: &Predicate,
        negated: bool,
        properties: Part<'_>,
    ) -> Option<(IntervalList, Tightness)> {
        let _ = part;
        condition_bounds(predicate, negated, properties)
    }

    /// The ways to use an index that needs a condition. Bounds alone decide nothing in them: documents are always checked.
    fn uses<'f>(&self, _index: &IndexInfo, _conditions: &[Condition<'f>]) -> Vec<IndexUse<'f>> {
        Vec::new()
    }

    /// What these conditions, which all have to hold, ask of the entries of an index, so that documents of others need not be read.
    fn key_test(&self, _index: &IndexInfo, _conditions: &[Condition<'_>]) -> Option<KeyTest> {
        None
    }

    /// Whether a document may pass the test that has an entry with this value in the part that is tested.
    fn may_pass(&self, _test: &GeoTest, _key: ValueRef<'_>) -> bool {
        true
    }

    /// Its entries tell nothing of documents unless a condition chooses among them: a scan of all of them gives neither
    /// all documents nor an order of them. Such a kind says itself how it may be used ([`IndexKind::uses`]); any other is used by
    /// the bounds of its parts.
    fn needs_condition(&self) -> bool {
        false
    }

    /// Whether a scan of all entries gives each document that has any, so that a hint may ask for it.
    fn scans_whole(&self) -> bool {
        !self.needs_condition()
    }

    /// How it finds what is nearest to a point first, if it does.
    fn nearest(&self) -> Option<&dyn Nearest> {
        None
    }

    /// What it is about, if it is a text index.
    fn text(&self) -> Option<&Arc<TextSpec>> {
        None
    }

    /// How its keys are computed, if they are what expressions give.
    fn computed(&self) -> Option<&Arc<dyn Computed>> {
        None
    }

    /// Entries hold the values at the paths of their parts, so that documents need not be read for those.
    fn covers(&self) -> bool {
        true
    }
}

/// Computes the keys of an index.
pub trait Computed: fmt::Debug + Send + Sync {
    /// The values of all parts.
    ///
    /// Errors: those of the expressions.
    fn values(&self, doc: DocRef<'_>) -> Result<Vec<Value>>;

    /// Whether the index has a document at all, beside what its filter says.
    ///
    /// Errors: those of the condition.
    fn has(&self, _: DocRef<'_>) -> Result<bool> {
        Ok(true)
    }

    /// Whether the value of the first part is an array each of whose items is a key.
    fn spreads(&self) -> bool {
        false
    }

    /// The paths of the fields that are looked at.
    fn paths(&self) -> Vec<Str>;

    /// What it is, for whoever made it.
    fn as_any(&self) -> &dyn Any;
}

/// Distances as the keys of an index tell them, in the units of [`Near::metric`].
pub trait Nearest {
    /// The name of the kind, as key patterns have it.
    fn name(&self) -> &'static str;

    /// The node that searches the index.
    fn node(&self) -> NodeKind;

    /// The stored part whose keys tell of distances at this path, measured so; `None` if none does.
    fn part(&self, path: &Path, near: &Near) -> Option<usize>;

    /// The keys that whatever is no farther than `distance` has, perhaps among others.
    ///
    /// Errors: those of the statement's interrupt.
    fn within(&self, near: &Near, distance: f64) -> Result<IntervalList>;

    /// The key of the point itself.
    ///
    /// Errors: 16433 for a point that can have none.
    fn around(&self, near: &Near) -> Result<Option<Value>>;

    /// A distance, below which nothing with that key is.
    fn lower_bound(&self, near: &Near, key: ValueRef<'_>) -> f64;

    /// The greatest distance at which there may be anything.
    fn farthest(&self, near: &Near) -> f64;
}

/// An index, as far as planning needs it. Made by [`crate::kinds::open`].
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// Identity in storage.
    pub id: u32,
    /// Its name.
    pub name: Str,
    /// `key` of its specification.
    pub key_pattern: Document,
    /// The stored parts, in order.
    pub parts: Vec<IndexPart>,
    /// No two documents have the same key.
    pub unique: bool,
    /// Documents without any of the fields have no entry, because the specification says so or because of the kind:
    /// conditions that such documents satisfy cannot use the index.
    pub sparse: bool,
    /// The specification says so.
    pub declared_sparse: bool,
    /// Only documents that match have entries.
    pub partial: Option<Arc<MatchExpr>>,
    /// How documents become keys, and conditions become scans.
    pub kind: Arc<dyn IndexKind>,
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

    /// Whether every document has an entry.
    pub fn holds_every_document(&self) -> bool {
        !self.sparse && self.partial.is_none()
    }

    /// Whether `min` and `max` of a find can name keys of it: its keys are the values of the fields that its key pattern
    /// names.
    pub fn has_key_ranges(&self) -> bool {
        !self.kind.needs_condition() && self.parts.iter().all(|part| part.kind != PartKind::Derived)
    }
}

/// The indexes of a collection.
#[derive(Clone, Debug, Default)]
pub struct Indexes {
    /// The indexes that plans may use, in the order of their creation.
    pub all: Vec<Arc<IndexInfo>>,
    /// The collation by which the collection tells `_id`s apart. A clustered collection has one without an index.
    pub id_collation: Option<Collator>,
    /// Whether the collection is clustered: its records are in the order of `_id`.
    pub clustered: bool,
}

impl Deref for Indexes {
    type Target = [Arc<IndexInfo>];

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}
