//! Statements within a statement: functions that run some while a statement computes or writes its rows.
//!
//! A statement that writes has the write set of its transaction to itself ([`Statement::atomically`]). Meanwhile a bare one stands in its
//! place. To lend it is to put it back for as long as something else runs, which may write to it by statements of its own. While it is lent
//! it does not go on over a newer snapshot, as the statement that lends it relies on what it has read: a conflict of a statement within is one
//! of the statement around it, all of which is done again.

use super::Statement;
use nestor_model::{Result, bail};
use nestor_storage::{Reservation, StorageError, WriteSet};
use std::cell::{Cell, RefCell};

/// How a transaction's write set was lent.
#[derive(Default)]
pub(super) struct Loan {
    /// How often, one within the other.
    times: Cell<usize>,
    /// Whoever has written a key that a statement within wanted to write.
    obstacle: RefCell<Option<Box<Reservation>>>,
}

/// The write set of a transaction, out of its place; it goes back there when this is dropped.
pub(crate) struct Taken<'s, 'r> {
    statement: &'s Statement<'r>,
    /// The write set.
    pub(crate) ws: WriteSet,
}

impl Drop for Taken<'_, '_> {
    fn drop(&mut self) {
        self.statement.swap(&mut self.ws);
    }
}

/// A write set that is lent; it is its owner's again when this is dropped.
struct Lent<'s, 'r, 'w> {
    statement: &'s Statement<'r>,
    ws: &'w mut WriteSet,
}

impl Drop for Lent<'_, '_, '_> {
    fn drop(&mut self) {
        self.statement.swap(self.ws);
        let times = &self.statement.loan.times;
        times.set(times.get().saturating_sub(1));
    }
}

impl<'r> Statement<'r> {
    /// Has the transaction's write set and another one change places.
    fn swap(&self, ws: &mut WriteSet) {
        if let Some(txn) = self.txn.borrow_mut().as_mut() {
            std::mem::swap(&mut txn.ws, ws);
        }
    }

    /// Takes the write set of the transaction that it belongs to, if it does.
    pub(crate) fn take_write_set(&self) -> Option<Taken<'_, 'r>> {
        let mut ws = self.txn.borrow().as_ref()?.ws.bare();
        self.swap(&mut ws);
        Some(Taken { statement: self, ws })
    }

    /// The present state of the transaction that it belongs to, to be read whatever is written from now on; of the catalog alone if no documents
    /// are read, as whoever writes copies what a state is made of.
    ///
    /// Errors: 20 outside of transactions.
    pub fn state(&self, reads_documents: bool) -> Result<WriteSet> {
        match self.txn.borrow().as_ref() {
            Some(txn) if reads_documents => Ok(txn.ws.state()),
            Some(txn) => Ok(txn.ws.catalog_state()),
            None => bail!(IllegalOperation, "only a transaction has a state of its own"),
        }
    }

    /// Whether statements run within another one that relies on what it has read.
    pub fn is_within(&self) -> bool {
        self.loan.times.get() > 0
    }

    /// Runs `work`, whose statements write to `ws`, which is that of the transaction and was given by [`Statement::atomically`].
    ///
    /// Errors: those of `work`; 112 when somebody else has written what is written already, 20 outside of transactions.
    pub fn lend<T>(&self, ws: &mut WriteSet, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.txn.borrow().is_none() {
            bail!(IllegalOperation, "only a transaction lends its writes");
        }
        let claimed = self.database.engine.claim(ws);
        if let Err(StorageError::Reserved(reservation)) = &claimed {
            self.note_obstacle(Some(reservation.clone()));
        }
        claimed?;
        self.loan.times.set(self.loan.times.get() + 1);
        let lent = Lent { statement: self, ws };
        lent.statement.swap(lent.ws);
        let result = work();
        drop(lent);
        result
    }

    /// Notes who is in the way of a statement within this one.
    pub(crate) fn note_obstacle(&self, obstacle: Option<Box<Reservation>>) {
        if obstacle.is_some() {
            self.loan.obstacle.replace(obstacle);
        }
    }

    /// Who was in the way of a statement within this one, once.
    pub(crate) fn obstacle_within(&self) -> Option<Box<Reservation>> {
        self.loan.obstacle.take()
    }
}
