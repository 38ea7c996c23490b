//! Rows that a statement holds: FOR UPDATE and its kin.
//!
//! While a plan runs, records are noted, and those that somebody else holds are left out where that is wanted. When it has run the records
//! are held by the write set, so that they are reserved like those that a transaction has changed: whoever writes to
//! them waits or conflicts. FOR SHARE and FOR KEY SHARE hold rows in common with each other, FOR UPDATE and FOR NO KEY UPDATE alone; the latter keep
//! others from referring to the row, too. If somebody else was quicker the plan runs
//! again, in the newest state where others were waited for.

use super::gathered::Gathered;
use super::references::{Reference, hold_keys, references};
use crate::bind::entry::{self, Object};
use crate::error::{error, fail};
use nestor_database::statement::Statement;
use nestor_database::write::{check_writable, rows};
use nestor_model::{Error, Namespace, Result};
use nestor_planner::relation::Waiting;
use nestor_storage::{Bytes, Collection, CollectionId, View as _, WriteSet};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What a row takes, about: its key here, in the write set and among the claims.
const ROW_BYTES: usize = 256;

/// The write set of a statement that may hold rows, and those that it wants to.
pub struct Holding<'w> {
    ws: &'w WriteSet,
    noted: RefCell<Noted>,
}

/// A row that is to be held.
struct Row {
    collection: Arc<Collection>,
    record: Bytes,
    in_common: bool,
    waiting: Waiting,
}

/// Rows that are to be held.
pub struct Noted {
    rows: Vec<Row>,
    seen: HashSet<(CollectionId, Bytes, bool)>,
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
        (record, in_common): (&[u8], bool),
        waiting: Waiting,
    ) -> Result<bool> {
        let Some(collection) = self.ws.catalog().get(ns) else {
            return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
        };
        let row = Row {
            collection: collection.clone(),
            record: Bytes::copy_from(record),
            in_common,
            waiting,
        };
        if waiting != Waiting::Wait && row.is_held(statement, self.ws) {
            return match waiting {
                Waiting::Skip => Ok(false),
                _ => Err(row.not_obtained()),
            };
        }
        let mut noted = self.noted.borrow_mut();
        if !noted.seen.insert((collection.id, row.record.clone(), in_common)) {
            return Ok(true);
        }
        if noted.rows.is_empty() {
            check_writable(collection)?;
        }
        noted.rows.push(row);
        noted.gathered.grow(ROW_BYTES)?;
        Ok(true)
    }
}

impl Row {
    /// Whether somebody else has it in a way that is in the way.
    fn is_held(&self, statement: &Statement<'_>, ws: &WriteSet) -> bool {
        let key = (self.collection.records, &self.record);
        statement.database.engine.is_claimed(ws, key, !self.in_common)
    }

    fn not_obtained(&self) -> Error {
        let table = &self.collection.ns.coll;
        error("55P03", format!("could not obtain lock on row in relation \"{table}\""))
    }

    /// Holds it and, if it is held alone, the keys by which others refer to it; `known` has what refers to the tables of rows before it.
    ///
    /// Errors: those of storage.
    fn hold(&self, ws: &mut WriteSet, known: &mut HashMap<CollectionId, Vec<Reference>>) -> Result<()> {
        let collection = &self.collection;
        rows::hold(ws, collection, &self.record, self.in_common)?;
        let (false, Some(Object::Table(_, table))) = (self.in_common, entry::of(collection)) else {
            return Ok(());
        };
        let all = known
            .entry(collection.id)
            .or_insert_with(|| references(&*ws, &collection.ns));
        if all.is_empty() {
            return Ok(());
        }
        let Some(found) = ws.get(collection.records, &self.record)? else {
            return Ok(());
        };
        hold_keys(ws, collection, (table, all), found.document().as_doc());
        Ok(())
    }
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
            let mut known = HashMap::new();
            for row in &self.rows {
                row.hold(ws, &mut known)?;
            }
            let waits = |ws: &WriteSet, row: &Row| row.waiting == Waiting::Wait && row.is_held(statement, ws);
            if self.rows.iter().all(|row| row.waiting == Waiting::Wait) || self.rows.iter().any(|row| waits(ws, row)) {
                return Ok(true);
            }
            if statement.claim_held(ws)? {
                return Ok(true);
            }
            let is_refused = |row: &&Row| row.waiting == Waiting::Fail && row.is_held(statement, ws);
            match self.rows.iter().find(is_refused) {
                Some(row) => Err(row.not_obtained()),
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
