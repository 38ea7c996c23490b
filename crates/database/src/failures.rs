//! What an error does: to the statement, the command and the transaction in which it happens, and which labels tell the
//! driver what it may do about it.
//!
//! | error of a statement | outside of transactions | within one |
//! |---|---|---|
//! | interrupted, out of time, no more wanted | the command fails | the command fails, the transaction is aborted |
//! | transient: a write conflict and its like | a conflict is tried again here and never shown; others as any | the command fails with `TransientTransactionError`, the transaction is aborted |
//! | no room for the transaction | | the command fails without a label, the transaction is aborted |
//! | any other | entry of `writeErrors`; the next statement runs unless the command is ordered | entry of `writeErrors`, the last one even when unordered; the transaction is aborted |
//!
//! An error of the command (and every error of one that has no statements) fails it, and aborts the transaction that it
//! ran in.
//!
//! | label | of what |
//! |---|---|
//! | `TransientTransactionError` | transient errors of any command of a transaction, at its end too unless a write concern failed with it |
//! | `RetryableWriteError` | errors of a node that may soon be replaced, of retryable writes and of the ends of transactions |
//! | `NoWritesPerformed` | beside it, when the command has written nothing |
//! | `ResumableChangeStreamError` | errors of a getMore on a change stream after which the stream may go on at another node |
//! | `NonResumableChangeStreamError` | the two errors after which no stream can go on from where it was, of whatever command |
//!
//! `UnknownTransactionCommitResult` is given by drivers themselves, for codes that they know.
//! Sources: driver specifications "Transactions" (error reporting), "Retryable Writes" (terms, error labels);
//! manual, "Transactions: Production Considerations", "Transaction errors".

use crate::observe::op_kind::OpKind;
use crate::statement::Statement;
use nestor_model::{Error, ErrorCode, ValueRef};

/// How far the error of a statement reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// The command, which answers with this error.
    Command,
    /// The list of statements; those before it count.
    Statements,
    /// The statement.
    Statement,
}

/// Decides what the error of a statement ends.
pub fn of_statement(error: &Error, in_transaction: bool) -> Consequence {
    let code = error.code();
    if is_interruption(code) || (in_transaction && (is_transient(code, false) || is_too_large(code))) {
        Consequence::Command
    } else if in_transaction {
        Consequence::Statements
    } else {
        Consequence::Statement
    }
}

/// The operation was stopped from outside.
fn is_interruption(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::Interrupted
            | ErrorCode::MaxTimeMSExpired
            | ErrorCode::ExceededTimeLimit
            | ErrorCode::TransactionExceededLifetimeLimitSeconds
            | ErrorCode::LockTimeout
            | ErrorCode::CursorKilled
            | ErrorCode::ClientDisconnect
            | ErrorCode::InterruptedDueToReplStateChange
            | ErrorCode::InterruptedAtShutdown
            | ErrorCode::ShutdownInProgress
            | ErrorCode::NotWritablePrimary
    )
}

/// The transaction has no room, and will have none when it is run again.
fn is_too_large(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::TransactionTooLarge | ErrorCode::TransactionTooLargeForCache
    )
}

/// Running the whole transaction again may succeed. Whether a commit that met a retryable error has happened is not
/// known, so at the end of a transaction that is no such error.
fn is_transient(code: ErrorCode, ends_transaction: bool) -> bool {
    matches!(
        code,
        ErrorCode::WriteConflict
            | ErrorCode::LockTimeout
            | ErrorCode::NoSuchTransaction
            | ErrorCode::SnapshotUnavailable
            | ErrorCode::SnapshotTooOld
            | ErrorCode::PreparedTransactionInProgress
            | ErrorCode::IngressRequestRateLimitExceeded
    ) || (!ends_transaction && is_retryable(code))
}

/// Errors after which a retryable write is worth another try (specification "Retryable Writes").
fn is_retryable(code: ErrorCode) -> bool {
    matches!(
        code.number(),
        6 | 7 | 89 | 91 | 134 | 189 | 262 | 9001 | 10107 | 11600 | 11602 | 13435 | 13436
    )
}

/// Errors after which a change stream goes on (specification "Change Streams").
fn is_resumable(code: ErrorCode) -> bool {
    matches!(
        code.number(),
        6 | 7 | 63 | 89 | 91 | 133 | 150 | 189 | 234 | 262 | 9001 | 10107 | 11600 | 11602 | 13388 | 13435 | 13436
    )
}

/// The labels of a command that failed with `code`; `concern_failed` says that its write concern did so too.
pub fn labels(statement: &Statement<'_>, code: ErrorCode, concern_failed: bool) -> Vec<&'static str> {
    let mut labels = Vec::new();
    let ends_transaction = statement.terms.ends_transaction;
    let is_transient = statement.terms.in_transaction && is_transient(code, ends_transaction);
    // A transaction that is unknown here may have been committed by a node that is gone; a failed write concern does not rule that out.
    if is_transient && !(code == ErrorCode::NoSuchTransaction && ends_transaction && concern_failed) {
        labels.push("TransientTransactionError");
    }
    if may_be_retried(statement) && is_retryable(code) {
        labels.push("RetryableWriteError");
        if statement.tried_write.get() && !statement.wrote.get() {
            labels.push("NoWritesPerformed");
        }
    }
    if statement.op == OpKind::GetMore && is_resumable(code) && reads_changes(statement) {
        labels.push("ResumableChangeStreamError");
    }
    if matches!(
        code,
        ErrorCode::ChangeStreamFatalError | ErrorCode::ChangeStreamHistoryLost
    ) {
        labels.push("NonResumableChangeStreamError");
    }
    labels
}

/// Whether the cursor of a getMore, once it was found, is a change stream. An error from before that, a fail point's too, has no
/// label.
fn reads_changes(statement: &Statement<'_>) -> bool {
    let figures = statement.figures.borrow();
    let pipeline = figures
        .originating
        .as_ref()
        .and_then(|command| command.as_raw().get("pipeline"));
    let first = pipeline
        .and_then(ValueRef::as_array)
        .and_then(|stages| stages.iter().next());
    first
        .and_then(ValueRef::as_document)
        .is_some_and(|stage| stage.get("$changeStream").is_some())
}

/// The labels of a command whose write concern failed with `code`.
pub fn concern_labels(statement: &Statement<'_>, code: ErrorCode) -> Vec<&'static str> {
    match may_be_retried(statement) && is_retryable(code) {
        true => vec!["RetryableWriteError"],
        false => Vec::new(),
    }
}

fn may_be_retried(statement: &Statement<'_>) -> bool {
    let terms = &statement.terms;
    terms.txn_number.is_some() && (!terms.in_transaction || statement.terms.ends_transaction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements() {
        use Consequence::*;
        let cases = [
            (ErrorCode::DuplicateKey, Statement, Statements),
            (ErrorCode::DocumentValidationFailure, Statement, Statements),
            (ErrorCode::BadValue, Statement, Statements),
            (ErrorCode::WriteConflict, Statement, Command),
            (ErrorCode::TransactionTooLargeForCache, Statement, Command),
            (ErrorCode::LockTimeout, Command, Command),
            (ErrorCode::MaxTimeMSExpired, Command, Command),
            (ErrorCode::Interrupted, Command, Command),
            (ErrorCode::ShutdownInProgress, Command, Command),
        ];
        for (code, outside, inside) in cases {
            let error = Error::new(code, "");
            assert_eq!(of_statement(&error, false), outside, "{code} outside");
            assert_eq!(of_statement(&error, true), inside, "{code} inside");
        }
    }
}
