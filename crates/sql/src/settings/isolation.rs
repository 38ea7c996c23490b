//! Levels of isolation.

use nestor_model::Result;
use sqlparser::ast::TransactionIsolationLevel;

/// What a transaction sees of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A name only: it is [`Isolation::ReadCommitted`].
    ReadUncommitted,
    /// Each statement sees what was committed before it.
    ReadCommitted,
    /// All see what was committed before the first.
    RepeatableRead,
    /// And it is as if transactions ran one after the other.
    Serializable,
}

impl Isolation {
    /// The level of a name, as settings have it.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "read uncommitted" => Some(Self::ReadUncommitted),
            "read committed" => Some(Self::ReadCommitted),
            "repeatable read" => Some(Self::RepeatableRead),
            "serializable" => Some(Self::Serializable),
            _ => None,
        }
    }

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read uncommitted",
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }

    /// Whether each statement reads what was committed before it.
    pub fn is_read_committed(self) -> bool {
        matches!(self, Self::ReadUncommitted | Self::ReadCommitted)
    }

    /// The level that a statement says.
    ///
    /// Errors: none today.
    pub fn of(level: TransactionIsolationLevel) -> Result<Self> {
        match level {
            TransactionIsolationLevel::ReadUncommitted => Ok(Self::ReadUncommitted),
            TransactionIsolationLevel::ReadCommitted => Ok(Self::ReadCommitted),
            // PostgreSQL's repeatable read is a snapshot.
            TransactionIsolationLevel::RepeatableRead | TransactionIsolationLevel::Snapshot => Ok(Self::RepeatableRead),
            TransactionIsolationLevel::Serializable => Ok(Self::Serializable),
        }
    }
}
