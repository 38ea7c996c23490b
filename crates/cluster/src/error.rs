//! How the log fails.

/// Why the log did not do what it was asked to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LogError {
    /// A newer writer was opened: this one never writes again.
    #[error("another writer of the log was opened: {0}")]
    Fenced(String),
    /// The store did not answer, or not in time. Whether a write took effect is unknown; the same one may be sent again.
    #[error("the store of the log is not reachable: {0}")]
    Unavailable(String),
    /// What the log has there was trimmed.
    #[error("the log begins with {first}, after {wanted} that was asked for")]
    Trimmed {
        /// The entry that was asked for.
        wanted: u64,
        /// The oldest that is kept.
        first: u64,
    },
    /// The log holds something that nobody of this version wrote.
    #[error("the log is damaged: {0}")]
    Damaged(String),
    /// The log was written by a newer version.
    #[error(
        "the log of the set has format {found}, and this version of Nestor knows formats up to {known}: it takes a newer version"
    )]
    Newer {
        /// The format of the log.
        found: i64,
        /// The newest that this version knows.
        known: i64,
    },
    /// The address is not one of a store that can hold a log.
    #[error("{0}")]
    Address(String),
}

/// The result of asking a log.
pub type Result<T> = std::result::Result<T, LogError>;
