//! What databases assert of their collections: conditions that every commit leaves true, whoever writes.
//!
//! An assertion is an entry of the catalog with a name that begins with [`ENTRIES`]; what it says is known to a language of relations
//! ([`crate::statement::relational`]). Before a write set commits that has written to a database with such entries, they are
//! looked at in its state. What they read is noted as serializable transactions do, so of two commits that each leave an assertion true
//! and together do not, the second conflicts.

use crate::sessions::transaction::Transaction;
use crate::statement::Statement;
use nestor_model::{Result, bail};
use nestor_storage::{View as _, WriteSet};

/// The beginning of the names of assertions.
pub const ENTRIES: &str = "system.assertions.";

/// Whether a database asserts anything.
fn has_any(ws: &WriteSet, db: &str) -> bool {
    let database = ws.catalog().database(db);
    let first = database.and_then(|database| database.first_from(ENTRIES));
    first.is_some_and(|first| first.ns.coll.starts_with(ENTRIES))
}

impl Statement<'_> {
    /// Begins a write set; one that notes its reads if the statement's database asserts something, or if that `is_wanted`.
    pub(super) fn begin_write(&self, is_wanted: bool) -> WriteSet {
        let engine = &self.database.engine;
        let ws = engine.begin();
        match is_wanted || has_any(&ws, self.terms.db) {
            true => engine.begin_noting(),
            false => ws,
        }
    }

    /// Sees that what the databases assert holds that were written to. False when that cannot be said, because the write set does not note
    /// what it reads.
    ///
    /// Errors: those of [`Asserted::check`](crate::statement::relational::Asserted::check); 115 without a language that knows what is asserted.
    pub(super) fn check_assertions(&self, ws: &mut WriteSet) -> Result<bool> {
        for db in ws.written_databases() {
            if !has_any(ws, &db) {
                continue;
            }
            if !ws.notes_reads() {
                return Ok(false);
            }
            match self.asserted {
                Some(asserted) => asserted.check(self, ws, &db)?,
                None => bail!(CommandNotSupported, "assertions are not supported here"),
            }
        }
        Ok(true)
    }

    /// The same for a transaction that is to commit: in the newest state with its writes, unless it is serializable and has its own.
    ///
    /// Errors: those of [`Statement::check_assertions`].
    pub(crate) fn check_transaction(&self, txn: &mut Transaction) -> Result<()> {
        if !self.check_assertions(&mut txn.ws)? {
            self.database.engine.refresh_noting(&mut txn.ws);
            self.check_assertions(&mut txn.ws)?;
        }
        Ok(())
    }
}
