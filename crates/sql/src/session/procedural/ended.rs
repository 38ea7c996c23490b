//! COMMIT and ROLLBACK within procedures and DO.
//!
//! A transaction that nobody but the client's own CALL or DO is in may end before that does: another one begins in its place, and the
//! block goes on.

use super::Running;
use crate::asked;
use crate::ddl::temporary;
use crate::error::{error, fail, unsupported};
use crate::write::deferred;
use nestor_database::statement::transaction;
use nestor_model::{Error, ErrorCode, Result};

impl Running<'_, '_> {
    /// Ends the transaction and begins another one.
    ///
    /// Errors: 2D000 where it may not end; those of the commit.
    pub(super) fn end_transaction(&mut self, commits: bool) -> Result<()> {
        if !self.may_end {
            return fail("2D000", "invalid transaction termination");
        }
        if self.parts > 0 {
            let verb = if commits { "commit" } else { "roll back" };
            return fail("2D000", format!("cannot {verb} while a subtransaction is active"));
        }
        if self.statement.is_within() {
            return fail("2D000", "invalid transaction termination");
        }
        let (settings, notified) = asked::mark();
        // They are done when the statement of the client has ended, and not with this transaction.
        if notified > 0 {
            return unsupported("NOTIFY in a transaction that a block ends");
        }
        if settings > 0 && (!commits || asked::settings_behind(0).iter().any(|(.., is_local)| *is_local)) {
            return unsupported("a setting that ends with a transaction that a block ends");
        }
        let (statement, facts) = (self.statement, &self.facts);
        if commits {
            deferred::settle(statement, facts, &|_| true)?;
            temporary::at_commit(statement, facts)?;
            deferred::settle(statement, facts, &|_| true)?;
        }
        let last = transaction::go_on(statement, commits).map_err(conflicted)?;
        facts.wait(statement, last.map(|(lsn, _)| lsn))?;
        facts.deferred.clear();
        statement.database.advisory.end_transaction(i64::from(facts.pid));
        Ok(())
    }
}

/// An error of a commit.
fn conflicted(told: Error) -> Error {
    match told.code() {
        ErrorCode::WriteConflict => error(
            "40001",
            "could not serialize access due to read/write dependencies among transactions",
        ),
        _ => told,
    }
}
