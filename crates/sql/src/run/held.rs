//! Rows that a statement holds: FOR UPDATE and its kin.
//!
//! While a plan runs, records are noted, and those that somebody else holds are left out where that is wanted. When it has run the records
//! are written to the write set as they are, so that they are reserved like those that a transaction has changed: whoever writes to
//! them waits or conflicts. All strengths of locks are one: who holds a row holds it alone. If somebody else was quicker the plan runs
//! again, in the newest state where others were waited for.

use super::gathered::Gathered;
use crate::error::{error, fail};
use nestor_database::statement::Statement;
use nestor_database::write::{check_writable, rows};
use nestor_model::{Error, Namespace, Result};
use nestor_planner::relation::Waiting;
use nestor_storage::{Bytes, Collection, CollectionId, View as _, WriteSet};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// What a row takes beside its record: its document in the write set, about.
const ROW_BYTES: usize = 512;

/// The write set of a statement that may hold rows, and those that it wants to.
pub struct Holding<'w> {
    ws: &'w WriteSet,
    noted: RefCell<Noted>,
}

/// Rows that are to be held.
pub struct Noted {
    rows: Vec<(Arc<Collection>, Bytes, Waiting)>,
    seen: HashSet<(CollectionId, Bytes)>,
    gathered: Gathered,
}

impl<'w> Holding<'w> {
    /// Nothing yet.
    pub fn new(ws: &'w WriteSet) -> Self {
        Self {
            ws,
            noted: RefCell::new(Noted {
                rows: Vec::new(),
                seen: HashSet::new(),
                gathered: Gathered::new(),
            }),
        }
    }

    /// What was noted.
    pub fn noted(self) -> Noted {
        self.noted.into_inner()
    }

    /// Notes a record; false when somebody else holds it and it is to be left out.
    ///
    /// Errors: 55P03, those of collections that nobody writes to.
    pub(super) fn note(
        &self,
        statement: &Statement<'_>,
        ns: &Namespace,
        record: &[u8],
        waiting: Waiting,
    ) -> Result<bool> {
        let Some(collection) = self.ws.catalog().get(ns) else {
            return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
        };
        let record = Bytes::copy_from(record);
        if waiting != Waiting::Wait && is_held(statement, self.ws, collection, &record) {
            return match waiting {
                Waiting::Skip => Ok(false),
                _ => Err(not_obtained(collection)),
            };
        }
        let mut noted = self.noted.borrow_mut();
        if !noted.seen.insert((collection.id, record.clone())) {
            return Ok(true);
        }
        if noted.rows.is_empty() {
            check_writable(collection)?;
        }
        noted.rows.push((collection.clone(), record, waiting));
        noted.gathered.grow(ROW_BYTES)?;
        Ok(true)
    }
}

fn is_held(statement: &Statement<'_>, ws: &WriteSet, collection: &Collection, record: &Bytes) -> bool {
    statement.database.engine.is_claimed(ws, collection.records, record)
}

fn not_obtained(collection: &Collection) -> Error {
    let table = &collection.ns.coll;
    error("55P03", format!("could not obtain lock on row in relation \"{table}\""))
}

impl Noted {
    /// Holds the rows; false when the plan is to run again, because somebody was quicker to hold one that is not waited for. Rows that are
    /// waited for are claimed at the end of the statement.
    ///
    /// Errors: 55P03, 112 when a row was written since the state that was read.
    pub fn settle(&self, statement: &Statement<'_>, ws: &mut WriteSet) -> Result<bool> {
        if self.rows.is_empty() {
            return Ok(true);
        }
        let savepoint = ws.savepoint();
        let mut hold = || -> Result<bool> {
            for (collection, record, _) in &self.rows {
                rows::hold(ws, collection, record)?;
            }
            let waits = |ws: &WriteSet, (collection, record, waiting): &(Arc<Collection>, Bytes, Waiting)| {
                *waiting == Waiting::Wait && is_held(statement, ws, collection, record)
            };
            if self.rows.iter().all(|(_, _, waiting)| *waiting == Waiting::Wait)
                || self.rows.iter().any(|row| waits(ws, row))
            {
                return Ok(true);
            }
            if statement.claim_held(ws)? {
                return Ok(true);
            }
            let failed = self.rows.iter().find(|(collection, record, waiting)| {
                *waiting == Waiting::Fail && is_held(statement, ws, collection, record)
            });
            match failed {
                Some((collection, ..)) => Err(not_obtained(collection)),
                None => Ok(false),
            }
        };
        let held = hold();
        match held {
            Ok(true) => ws.release(savepoint),
            _ => {
                ws.rollback_to(savepoint);
                ws.forget_unclaimed();
            }
        }
        held
    }
}
