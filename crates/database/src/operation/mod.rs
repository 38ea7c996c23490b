//! Prepared operations: what a command is once its words are understood.
//!
//! A command parses its arguments once into an [`Intent`]. A read, or one statement of a write, is an [`Operation`]: the namespace
//! and what is there, the typed query, pipeline or write, its clock, collation and values of `let`, and its [`Shape`]. Running,
//! explaining and trying out plans, query settings, index filters and the profiler take that value; [`Access`] tells what it reads
//! and writes and which rights that needs. None of them parses again, so none of them can disagree about what was asked.
//!
//! Nothing here knows commands, their arguments or replies: whoever understands another language makes the same values.

pub mod access;
mod masked;
pub mod pipeline;
pub mod query;
pub mod views;
pub mod writing;

pub use access::Access;

use crate::read;
use crate::shape::Shape;
use crate::write::prepared::Prepared;
use crate::write::statements::Writes;
use nestor_exec::write::oplog::Retryable;
use nestor_model::{Namespace, Path, Result};
use nestor_planner::{FindQuery, Hint};
use nestor_query::env::OpContext;
use nestor_query::stage::Pipeline;
use nestor_storage::Collection;
use std::sync::Arc;

/// The intent of a command, once its words are understood.
pub enum Intent<'a> {
    /// A read, or a write that is one statement by nature.
    Operation(Box<Operation<'a>>),
    /// The statements of a write command; each becomes an operation when its turn comes, in the state that is there then.
    Writes(Writes<'a>),
    /// The next documents of a cursor on this namespace.
    Batch(Namespace),
}

/// A read, or one statement of a write, ready to be planned.
pub struct Operation<'a> {
    /// The namespace it names and its parts as they were written.
    pub shape: Shape<'a>,
    /// The collection or view at that namespace, in the state that the operation reads.
    pub collection: Option<Arc<Collection>>,
    /// Its clock, its randomness, what strings compare by, and the values of `let`.
    pub op: OpContext,
    /// Blocking stages may spill to disk.
    pub disk_use: bool,
    /// The work to do.
    pub work: Work<'a>,
}

/// The work of an operation.
// A write of one `_id` is not to pay for a box.
#[expect(clippy::large_enum_variant)]
pub enum Work<'a> {
    /// Gives the documents that a query finds.
    Find(FindQuery),
    /// Counts them.
    Count(FindQuery),
    /// Gives the different values at a path of them.
    Distinct {
        /// Which documents.
        query: FindQuery,
        /// Where the values are.
        path: Path,
        /// A scan that jumps from value to value may stand in for the query's own plans.
        may_jump: bool,
    },
    /// Runs a pipeline: an aggregation, or a read of a view.
    Pipeline(Piped),
    /// Changes or removes the documents that a query finds.
    Write(Prepared<'a>),
}

/// A pipeline on the operation's namespace.
pub struct Piped {
    /// Its stages, without those of the view it may run on.
    pub pipeline: Pipeline,
    /// The collection at the bottom, below views; none when there is none or the first stage makes the documents.
    pub bottom: Option<Arc<Collection>>,
    /// For that collection.
    pub hint: Hint,
    /// Documents that it writes are not checked by the collection's validator.
    pub bypass_validation: bool,
}

impl<'a> Operation<'a> {
    /// A write of documents of `collection` under `op`.
    ///
    /// Errors: 13 when it depends on fields that are masked for who runs it.
    pub fn of_write(
        shape: Shape<'a>,
        collection: Option<Arc<Collection>>,
        op: OpContext,
        mut write: Prepared<'a>,
    ) -> Result<Self> {
        read::bind_text(&mut write.selection.query, collection.as_deref())?;
        masked::check_write(collection.as_deref(), &op, &mut write)?;
        Ok(Self {
            shape,
            collection,
            op,
            disk_use: true,
            work: Work::Write(write),
        })
    }

    /// Makes a write known to the oplog as this statement of a retryable write.
    pub fn log_as(&mut self, logged: Option<Retryable>) {
        if let Work::Write(write) = &mut self.work {
            write.retryable = logged;
        }
    }

    /// The namespace that the operation names.
    pub fn ns(&self) -> &Namespace {
        &self.shape.ns
    }

    /// The query that finds its documents; a pipeline has none before it is planned.
    pub fn query(&self) -> Option<&FindQuery> {
        match &self.work {
            Work::Find(query) | Work::Count(query) => Some(query),
            Work::Distinct { query, .. } => Some(query),
            Work::Write(write) => Some(&write.selection.query),
            Work::Pipeline(_) => None,
        }
    }

    /// As [`Operation::query`], to be restricted to some indexes.
    pub fn query_mut(&mut self) -> Option<&mut FindQuery> {
        match &mut self.work {
            Work::Find(query) | Work::Count(query) => Some(query),
            Work::Distinct { query, .. } => Some(query),
            Work::Write(write) => Some(&mut write.selection.query),
            Work::Pipeline(_) => None,
        }
    }
}
