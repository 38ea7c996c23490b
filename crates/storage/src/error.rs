//! The errors of the store.

use crate::base::BaseError;
use crate::claims::Reservation;
use nestor_model::{Error, ErrorCode};
use std::io;
use std::path::{Path, PathBuf};

/// Result with a [`StorageError`].
pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// Why the store could not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StorageError {
    /// Another commit wrote a key of this write set, or changed what it relies on, after its snapshot. Nothing was
    /// written; trying again on a fresh snapshot may succeed.
    #[error("write conflict: another operation changed the same document, index key or catalog entry")]
    WriteConflict,
    /// As [`StorageError::WriteConflict`], with an open transaction that has written the key: trying again has no prospect
    /// before that transaction ends.
    #[error("write conflict: an open transaction changed the same document or index key")]
    Reserved(Box<Reservation>),
    /// No space left for the journal or the base. Nothing of the commit was kept; later ones succeed once there is space.
    #[error("no space left on device while writing {}", file.display())]
    OutOfDiskSpace {
        /// The file that could not grow.
        file: PathBuf,
    },
    /// The operating system refused.
    #[error("{operation} {}: {message}", file.display())]
    Io {
        /// The operation: `open`, `read`, `write`, `sync`, ...
        operation: &'static str,
        /// The file or directory.
        file: PathBuf,
        /// The error of the operating system.
        message: String,
        /// Its kind.
        kind: io::ErrorKind,
    },
    /// A file does not hold what was written to it.
    #[error("{} is corrupt at byte {offset}: {reason}", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// The fault there.
        reason: String,
    },
    /// Commits that were durable are missing at the end of the journal. [`crate::EngineOptions::give_up_after`] is the way on.
    #[error(
        "{} is corrupt at byte {offset}: {reason}; commits after number {last} are lost, although those up to {durable} at least were on disk",
        file.display()
    )]
    CommitsLost {
        /// The file.
        file: PathBuf,
        /// Byte offset in the file behind the last commit that can be read.
        offset: u64,
        /// That commit.
        last: u64,
        /// The last one known to have been durable.
        durable: u64,
        /// The fault at that place.
        reason: String,
    },
    /// The data directory was written by a later version of Nestor.
    #[error("{} has format version {found}, this version reads up to {supported}", file.display())]
    NewerFormat {
        /// The file that says so.
        file: PathBuf,
        /// Version found.
        found: u32,
        /// Newest version this build reads.
        supported: u32,
    },
    /// Another process has the directory open.
    #[error("the data directory {} is in use by another process", dir.display())]
    DirectoryInUse {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory that is none of Nestor's.
    #[error("{} is no data directory of Nestor: {reason}", dir.display())]
    NoDataDirectory {
        /// The directory.
        dir: PathBuf,
        /// How that can be told.
        reason: String,
    },
    /// The directory is not encrypted with the key that was given, or it is and none was given.
    #[error("the data directory {} {reason}", dir.display())]
    Encryption {
        /// The directory.
        dir: PathBuf,
        /// The fault.
        reason: &'static str,
    },
    /// A write or sync failed before, so what is on disk is unknown. Reads go on, writes are refused until restart.
    #[error("writes are refused after a failure of the disk: {0}")]
    ReadOnlyAfterFailure(String),
    /// A key or value of a commit is longer than the base stores. Nothing was written.
    #[error("{what} of {len} bytes is longer than the limit of {max}")]
    TooLarge {
        /// `key` or `value`.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The engine is closed.
    #[error("the storage engine is closed")]
    Closed,
    /// The node is not the primary of its replica set: it applies what the primary commits, and commits nothing itself.
    #[error("not primary")]
    NotPrimary,
    /// A frame of the replicated log does not follow what is here.
    #[error("commit {seq} of the replicated log does not follow what is here: {reason}")]
    LogMismatch {
        /// Its number.
        seq: u64,
        /// The fault.
        reason: &'static str,
    },
    /// A rule of the catalog: a name that exists already, does not exist or is not allowed.
    #[error("{message}")]
    Catalog {
        /// MongoDB's code for it.
        code: ErrorCode,
        /// Text for the client.
        message: String,
    },
    /// Stored bytes that passed their checksum but do not mean anything: an index key or catalog entry.
    #[error("stored bytes do not decode: {0}")]
    Undecodable(String),
    /// Entries of an index are neither in the journal nor in the base, and cannot be made of the documents.
    #[error("entries of an index cannot be made: {0}")]
    Entries(String),
    /// A backup cannot be made or restored as it was asked for.
    #[error("{message}")]
    Backup {
        /// MongoDB's code for it.
        code: ErrorCode,
        /// Text for people.
        message: String,
    },
    /// Oplog entries before the oldest retained one were asked for.
    #[error("the oplog no longer holds entries that old")]
    OplogHistoryLost,
}

impl StorageError {
    /// MongoDB's code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::WriteConflict | Self::Reserved(_) => ErrorCode::WriteConflict,
            Self::OutOfDiskSpace { .. } => ErrorCode::OutOfDiskSpace,
            Self::Io { operation, kind, .. } => match (operation, kind) {
                (_, io::ErrorKind::StorageFull) => ErrorCode::OutOfDiskSpace,
                (&"open" | &"create", _) => ErrorCode::FileOpenFailed,
                (&"write" | &"sync", _) => ErrorCode::LogWriteFailed,
                _ => ErrorCode::FileStreamFailed,
            },
            Self::Corrupt { .. } | Self::CommitsLost { .. } | Self::Undecodable(_) | Self::Entries(_) => {
                ErrorCode::DataCorruptionDetected
            }
            Self::TooLarge { .. } => ErrorCode::BSONObjectTooLarge,
            Self::NewerFormat { .. } => ErrorCode::UnsupportedFormat,
            Self::DirectoryInUse { .. } => ErrorCode::DBPathInUse,
            Self::NoDataDirectory { .. } => ErrorCode::InvalidPath,
            Self::Encryption { .. } => ErrorCode::InvalidOptions,
            Self::ReadOnlyAfterFailure(_) => ErrorCode::LogWriteFailed,
            Self::Closed => ErrorCode::ShutdownInProgress,
            Self::NotPrimary => ErrorCode::NotWritablePrimary,
            Self::LogMismatch { .. } => ErrorCode::DataCorruptionDetected,
            Self::Catalog { code, .. } | Self::Backup { code, .. } => *code,
            Self::OplogHistoryLost => ErrorCode::CappedPositionLost,
        }
    }

    /// An I/O error on `file`; full disks get their own variant.
    pub(crate) fn io(operation: &'static str, file: &Path, source: &io::Error) -> Self {
        if is_full(source) {
            return Self::OutOfDiskSpace { file: file.to_owned() };
        }
        Self::Io {
            operation,
            file: file.to_owned(),
            message: source.to_string(),
            kind: source.kind(),
        }
    }

    pub(crate) fn encryption(dir: &Path, reason: &'static str) -> Self {
        Self::Encryption {
            dir: dir.to_owned(),
            reason,
        }
    }

    pub(crate) fn catalog(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Catalog {
            code,
            message: message.into(),
        }
    }
}

/// Whether a file cannot grow: no space, no quota, or as large as files may be.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

impl From<BaseError> for StorageError {
    fn from(error: BaseError) -> Self {
        match error {
            BaseError::Io {
                file,
                operation,
                source,
            } => Self::io(operation, &file, &source),
            BaseError::Sync { file, source } => {
                Self::ReadOnlyAfterFailure(format!("sync {}: {source}", file.display()))
            }
            BaseError::Corrupt { file, offset, reason } => Self::Corrupt {
                file: file.to_path_buf(),
                offset,
                reason,
            },
            BaseError::NewerFormat { file, found, supported } => Self::NewerFormat {
                file: file.to_path_buf(),
                found,
                supported,
            },
            BaseError::TooLarge { what, len, max } => Self::TooLarge { what, len, max },
            // The memtable keeps the order, and the engine opens for writing.
            other => Self::Undecodable(other.to_string()),
        }
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        Error::new(error.code(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_mongodbs() {
        let no_growth = [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::FileTooLarge,
        ];
        for kind in no_growth {
            let full = StorageError::io("write", Path::new("j"), &io::Error::from(kind));
            assert_eq!(full.code(), ErrorCode::OutOfDiskSpace, "{kind:?}");
        }
        assert_eq!(StorageError::WriteConflict.code().number(), 112);
        let client = Error::from(StorageError::catalog(ErrorCode::NamespaceExists, "there"));
        assert_eq!((client.code(), client.message()), (ErrorCode::NamespaceExists, "there"));
    }
}
