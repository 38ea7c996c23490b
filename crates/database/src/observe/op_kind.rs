//! Kinds of operations, and what each of them counts as.
//!
//! `opLatencies`, `top`, `opcounters`, `currentOp` and the profiler divide operations differently; the divisions stand
//! here side by side.
//! Source: manual, "serverStatus", "top", "currentOp", "Database Profiler Output".

use crate::observe::latency::Class;
use crate::observe::top::Kind;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpKind {
    /// Anything that is none of the others.
    #[default]
    Command,
    /// Finds documents by a filter.
    Query,
    /// Goes on with a cursor.
    GetMore,
    /// Reads documents otherwise: counts them, or runs a pipeline.
    Read,
    /// Inserts documents.
    Insert,
    /// Runs statements that update.
    Update,
    /// Runs statements that delete.
    Delete,
    /// Changes one document and returns it.
    FindAndModify,
    /// Runs statements of several kinds.
    BulkWrite,
    /// Commits or aborts a transaction.
    EndTransaction,
}

/// The counters of `opcounters`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpCounter {
    /// Documents that are inserted.
    Insert,
    /// Queries.
    Query,
    /// Statements that update.
    Update,
    /// Statements that delete.
    Delete,
    /// Further batches of cursors.
    GetMore,
    /// Everything else.
    Command,
}

impl OpKind {
    /// The class whose latencies it counts in. Statements of a transaction are what they are without it.
    pub const fn class(self) -> Class {
        match self {
            Self::Query | Self::GetMore | Self::Read => Class::Reads,
            Self::Insert | Self::Update | Self::Delete | Self::FindAndModify | Self::BulkWrite => Class::Writes,
            Self::EndTransaction => Class::Transactions,
            Self::Command => Class::Commands,
        }
    }

    /// Its kind in `top`.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Query => Kind::Queries,
            Self::GetMore => Kind::Getmore,
            Self::Insert => Kind::Insert,
            Self::Update | Self::FindAndModify => Kind::Update,
            Self::Delete => Kind::Remove,
            Self::Read | Self::BulkWrite | Self::EndTransaction | Self::Command => Kind::Commands,
        }
    }

    /// Its counter in `opcounters`.
    pub const fn counter(self) -> OpCounter {
        match self {
            Self::Query => OpCounter::Query,
            Self::GetMore => OpCounter::GetMore,
            Self::Insert => OpCounter::Insert,
            Self::Update => OpCounter::Update,
            Self::Delete => OpCounter::Delete,
            Self::Read | Self::FindAndModify | Self::BulkWrite | Self::EndTransaction | Self::Command => {
                OpCounter::Command
            }
        }
    }

    /// `op` of `currentOp` and of `system.profile`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::GetMore => "getmore",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "remove",
            Self::BulkWrite => "bulkWrite",
            Self::Read | Self::FindAndModify | Self::EndTransaction | Self::Command => "command",
        }
    }

    /// Each of its statements is recorded by the profiler, and itself is not.
    pub const fn is_recorded_by_statement(self) -> bool {
        matches!(self, Self::Update | Self::Delete)
    }
}
