//! The figures of one operation, for the profiler and the slow-query log.

use nestor_exec::BoxOperator;
use nestor_exec::summary::{self, Leaf, Totals};
use nestor_model::{Document, RawDocBuf};
use nestor_storage::Collection;
use std::sync::Arc;

/// The figures. `None` is not shown: the operation has no such thing.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The cursor it opened or used, if that is still open.
    pub cursor_id: Option<i64>,
    /// Its cursor has no more rows.
    pub cursor_exhausted: bool,
    /// Documents returned.
    pub returned: Option<u64>,
    /// The keys and documents that its plans examined; none when no plan ran.
    pub totals: Option<Totals>,
    /// Documents that an update found.
    pub matched: Option<i64>,
    /// Documents that an update changed.
    pub modified: Option<i64>,
    /// Documents inserted.
    pub inserted: Option<i64>,
    /// Documents deleted.
    pub deleted: Option<i64>,
    /// An update inserted a document.
    pub upsert: bool,
    /// Index keys added.
    pub keys_inserted: u64,
    /// Index keys removed.
    pub keys_deleted: u64,
    /// Attempts that met another's write and were made again.
    pub write_conflicts: u64,
    /// It was a lookup by `_id` without a plan.
    pub id_lookup: Option<IdLookup>,
    /// The counters of the plan's stages, while the database is profiled.
    pub stages: Option<Document>,
    /// It began to scan a collection.
    pub collection_scan: Option<CollectionScan>,
    /// The command that opened the cursor.
    pub originating: Option<Arc<RawDocBuf>>,
}

/// A lookup by `_id` without a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdLookup {
    /// By the index on `_id`, and the document is taken whatever else is in it.
    Express,
    /// As [`IdLookup::Express`], in a clustered collection.
    Clustered,
    /// More is asked of the document, or it may be inserted.
    Plain,
}

impl IdLookup {
    /// The express way in `collection`.
    pub fn express(collection: &Collection) -> Self {
        match collection.is_clustered() {
            true => Self::Clustered,
            false => Self::Express,
        }
    }
}

/// A scan of a collection.
#[derive(Clone, Copy, Debug)]
pub struct CollectionScan {
    /// By a cursor that stays open at the end of the data.
    pub is_tailable: bool,
}

impl Figures {
    /// Adds what a plan examined.
    pub fn add(&mut self, examined: Totals) {
        self.totals.get_or_insert_default().add(examined);
    }
}

/// The counters of a plan that goes on from batch to batch.
pub fn so_far(root: &BoxOperator) -> Totals {
    summary::totals(&**root)
}

/// `planSummary` of an operation of the kind `op`.
///
/// Source: slow query lines of MongoDB 8, such as `EXPRESS_IXSCAN { _id: 1 },EXPRESS_UPDATE`.
pub fn plan_summary(figures: &Figures, plan: &[Leaf], op: &str) -> Option<String> {
    if !plan.is_empty() {
        return Some(summary::plan_summary(plan));
    }
    let scan = match figures.id_lookup? {
        IdLookup::Express => "EXPRESS_IXSCAN { _id: 1 }",
        IdLookup::Clustered => "EXPRESS_CLUSTERED_IXSCAN",
        IdLookup::Plain => return Some("IDHACK".to_owned()),
    };
    match op {
        "query" => Some(scan.to_owned()),
        "update" => Some(format!("{scan},EXPRESS_UPDATE")),
        "remove" => Some(format!("{scan},EXPRESS_DELETE")),
        _ => Some("IDHACK".to_owned()),
    }
}
