//! Shapes: what queries have in common that differ only in their literals.
//!
//! Two kinds. The *plan shape* ([`Written::shape`]) is what plans may be shared by: the normalized filter with its
//! literals left out, sort, projection and collation; it is a hash, which explain prints as `planCacheShapeHash`. The *query
//! shape* ([`filter_query_shape`]) describes a command as it was written, literals replaced by the names of their types; explain
//! prints its hash as `queryShapeHash`.

mod plan;
mod query;

pub use query::{expression_shape, filter_query_shape, pipeline_query_shape};

use crate::find::FindQuery;
use nestor_model::DocRef;
use nestor_model::fnv::Fnv;

/// The plan shape of what has a plan shape and is done with more stages than a find has: the stages' names.
pub fn extended_shape<'n>(shape: u64, stages: impl IntoIterator<Item = &'n str>) -> u64 {
    let mut hash = Fnv(shape);
    for name in stages {
        hash.bytes(name.as_bytes());
    }
    hash.0
}

/// A hash of a plan shape or of a plan cache key as explain prints it: eight hexadecimal digits.
pub fn hash_text(hash: u64) -> String {
    format!("{:08X}", (hash >> 32) as u32 ^ hash as u32)
}

/// The parts of a query as they were written, where they were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written<'a> {
    /// `filter`.
    pub filter: Option<DocRef<'a>>,
    /// `sort`.
    pub sort: Option<DocRef<'a>>,
    /// `projection`.
    pub projection: Option<DocRef<'a>>,
    /// `collation`.
    pub collation: Option<DocRef<'a>>,
}

impl Written<'_> {
    /// The plan shape of `query`, which was parsed from them: filter, sort and collation count as they were understood.
    pub fn shape(&self, query: &FindQuery) -> u64 {
        plan::shape(query, self.projection)
    }
}
