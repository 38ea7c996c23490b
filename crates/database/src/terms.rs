//! The terms that a statement runs on.

use crate::concern::read::ReadConcern;
use crate::concern::write::WriteConcern;
use crate::session_id::Lsid;
use nestor_model::ValueRef;

/// Database, session, transaction and concerns of a statement.
#[derive(Clone, Debug, Default)]
pub struct Terms<'a> {
    /// The database that names stand in.
    pub db: &'a str,
    /// The session.
    pub lsid: Option<Lsid>,
    /// The transaction number: of a transaction, or of a write that may be retried.
    pub txn_number: Option<i64>,
    /// It is the first of its transaction.
    pub start_transaction: bool,
    /// It belongs to a transaction.
    pub in_transaction: bool,
    /// Each statement of its transaction reads the newest state, and waits for other transactions that stand in its way.
    pub is_read_committed: bool,
    /// It commits or aborts its transaction.
    pub ends_transaction: bool,
    /// The read concern.
    pub read_concern: ReadConcern,
    /// When its writes are acknowledged, if the client said so; else the default, if one was set.
    pub write_concern: Option<WriteConcern>,
    /// That is the default.
    pub is_default_concern: bool,
    /// It may use what is in version 1 of the API only.
    pub strict_api: bool,
    /// The client's `comment`.
    pub comment: Option<ValueRef<'a>>,
}
