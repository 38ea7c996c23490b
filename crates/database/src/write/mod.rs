//! The parts that all writes share: the write set and its commit, retries, and write concern.
//!
//! Reading order: [`statements`] (the list of what a command does, as it was written), [`prepared`] (an update or delete once it is
//! parsed), [`insert`], [`update`] and [`delete`] (one statement each, [`groups`] those of many documents), [`timeseries`] (the same of measurements). The loop that runs the
//! list is [`writing`](crate::operation::writing).

pub mod assertions;
pub mod begun;
pub mod catalog;
pub mod comments;
pub mod delete;
pub mod groups;
pub mod insert;
mod masking_key;
pub mod merge;
pub mod out;
pub mod out_file;
pub mod prepare;
pub mod prepared;
pub mod replace;
mod resize_oplog;
pub mod rows;
pub mod sequence;
pub mod statements;
pub mod target;
pub mod timeseries;
pub mod update;
pub mod validator;

use crate::concern::write::{Acknowledgement, WriteConcern, implicit_concern, unsatisfiable};
use crate::lock;
use crate::sessions::{Session, StatementResult};
use crate::statement::Statement;
use crate::statement::Wait;
use crate::system_profile;
use nestor_exec::interrupt::while_waiting;
use nestor_exec::write::collection_locks::Exclusion;
use nestor_exec::write::oplog::{self, Image, Origin};
use nestor_exec::write::{Obstacle, check_wait, with_retry_within};
use nestor_model::namespace::LOCAL;
use nestor_model::{CollectionOptions, Error, ErrorCode, Namespace, RawDocBuf, Result, Timestamp, Value, bail, doc};
use nestor_storage::{Collection, CollectionId, Guarantee, Lsn, Reservation, StorageError, View, Waited, WriteSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Most statements of one write command.
pub const STATEMENTS_MAX: usize = 100_000;

/// How often who waits for another transaction's end looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(50);

/// The progress of a write command.
#[derive(Debug, Default)]
pub struct Progress {
    /// How many statements failed.
    pub failures: usize,
    /// Last commit: its journal position and optime.
    pub last: Option<(Lsn, Timestamp)>,
    /// Statement ids answered from memory.
    pub retried: Vec<i32>,
}

/// The result of one update or delete.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Documents that matched; all of them are gone if it was a delete.
    pub matched: i64,
    /// Documents that changed.
    pub modified: i64,
    /// `_id` of the inserted document.
    pub upserted: Option<Value>,
    /// The document before, if that was wanted.
    pub old: Option<RawDocBuf>,
    /// The document after, if that was wanted.
    pub new: Option<RawDocBuf>,
}

impl Written {
    /// The part that is remembered and told to the client, without the documents.
    pub fn into_result(self) -> StatementResult {
        StatementResult {
            n: self.matched + i64::from(self.upserted.is_some()),
            n_modified: self.modified,
            upserted: self.upserted,
            value: None,
            recovered: false,
        }
    }
}

impl Statement<'_> {
    /// The origin of writes for the oplog; `None` for databases whose writes are not logged.
    pub fn origin(&self, db: &str) -> Option<Origin> {
        if db == LOCAL {
            return None;
        }
        let session = match (self.terms.lsid, self.terms.txn_number) {
            (Some(lsid), Some(number)) => Some((lsid.to_document().to_raw(), number)),
            _ => None,
        };
        let collect = self.txn_operations.clone();
        Some(Origin { session, collect })
    }

    /// Runs `work` on a fresh write set and commits it, again after write conflicts. Everything or nothing. Gives what the last run of
    /// `work` gave.
    pub fn atomically<T>(
        &self,
        progress: &mut Progress,
        mut work: impl FnMut(&mut WriteSet) -> Result<T>,
    ) -> Result<T> {
        let mut last = None;
        self.commit_of(progress, &mut |ws| {
            last = Some(work(ws)?);
            Ok(())
        })?;
        Ok(last.expect("nothing is committed without `work`"))
    }

    /// As [`atomically`](Self::atomically), compiled once for all that is done so.
    fn commit_of(&self, progress: &mut Progress, work: &mut dyn FnMut(&mut WriteSet) -> Result<()>) -> Result<()> {
        if let Some(mut taken) = self.take_write_set() {
            let ws = &mut taken.ws;
            loop {
                let mut obstacle = None;
                match self.within(ws, work, &mut obstacle) {
                    Err(error) if error.code() == ErrorCode::WriteConflict && self.is_within() => {
                        self.note_obstacle(obstacle);
                        return Err(error);
                    }
                    Err(error) if error.code() == ErrorCode::WriteConflict && self.terms.is_read_committed => {
                        self.interrupt.check()?;
                        if let Some(obstacle) = obstacle.or_else(|| self.obstacle_within()) {
                            self.await_end(ws, &obstacle)?;
                        }
                        ws.refresh(self.database.engine.snapshot());
                    }
                    result => return result,
                }
            }
        }
        let engine = &self.database.engine;
        self.tried_write.set(true);
        let keys = {
            let figures = self.figures.borrow();
            (figures.keys_inserted, figures.keys_deleted)
        };
        let (mut attempts, mut notes) = (0, false);
        let locks = &self.database.node.gates.collections;
        let mut exclusion: Option<Exclusion<'_>> = None;
        let mut attempt = |obstacle: &mut Obstacle, waits_for: &mut Vec<CollectionId>| {
            if attempts > 0 {
                // Changes of the attempt before do not count.
                let mut figures = self.figures.borrow_mut();
                (figures.keys_inserted, figures.keys_deleted) = keys;
                figures.write_conflicts += u64::from(waits_for.is_empty());
            }
            attempts += 1;
            if !waits_for.is_empty() {
                exclusion = None;
                let until = self.lock_timeout.get().map(|most| Instant::now() + most);
                exclusion = Some(locks.exclude(&std::mem::take(waits_for), until, &self.interrupt)?);
            }
            let _admitted = self.database.node.gates.admission.enter(&self.interrupt)?;
            let mut ws = self.begin_write(notes);
            if let Err(error) = work(&mut ws) {
                let doubt = self.doubt(&mut ws);
                let error = if doubt.is_some() {
                    StorageError::WriteConflict.into()
                } else {
                    error
                };
                let is_conflict = error.code() == ErrorCode::WriteConflict;
                let met = doubt.or_else(|| self.obstacle_within().filter(|_| is_conflict));
                met.into_iter().for_each(|met| obstacle.meet(met));
                return Err(error);
            }
            if !self.check_assertions(&mut ws)? {
                notes = true;
                return Ok(false);
            }
            let altered = ws.altered_collections();
            if !exclusion
                .as_ref()
                .map_or(altered.is_empty(), |own| own.covers(&altered))
            {
                if exclusion.is_none() {
                    exclusion = locks.try_exclude(&altered);
                }
                if !exclusion.as_ref().is_some_and(|own| own.covers(&altered)) {
                    *waits_for = altered;
                    return Ok(false);
                }
            }
            if !ws.is_empty() {
                if self.terms.txn_number.is_some() {
                    let (closes, error) = self.database.node.gates.on_retryable_write();
                    self.cut.set(self.cut.get() || closes);
                    if let Some(error) = error {
                        return Err(error);
                    }
                }
                let changes = self.audited_changes(&ws);
                let commit = obstacle.commit(engine, ws)?;
                self.catalog_changes.borrow_mut().extend(changes);
                self.wrote.set(true);
                progress.last = Some((commit.lsn, commit.optime));
            }
            Ok(true)
        };
        let mut waits_for = Vec::new();
        loop {
            // Transactions use what it would change: once they have ended it begins again.
            let is_done = with_retry_within(&self.interrupt, self.lock_timeout.get(), |obstacle| {
                attempt(obstacle, &mut waits_for)
            })?;
            if is_done {
                return Ok(());
            }
        }
    }

    /// Runs `work` as a part of a transaction; if it fails it leaves no trace there. `obstacle` is whoever has written one of its keys.
    fn within(
        &self,
        ws: &mut WriteSet,
        work: &mut dyn FnMut(&mut WriteSet) -> Result<()>,
        obstacle: &mut Option<Box<Reservation>>,
    ) -> Result<()> {
        // Commits come with the transaction.
        let operations = self.txn_operations.as_ref();
        let before = operations.map_or(0, |operations| lock(operations).len());
        let savepoint = ws.savepoint();
        let result = work(ws).and_then(|()| {
            let claimed = self.database.engine.claim(ws);
            if let Err(StorageError::Reserved(reservation)) = &claimed {
                *obstacle = Some(reservation.clone());
            }
            claimed?;
            if ws.has_found_arrays() {
                let _admitted = self.database.node.gates.admission.enter(&self.interrupt)?;
                self.database.engine.publish_multikey(ws)?;
            }
            Ok(())
        });
        let result = result.map_err(|error| match self.doubt(ws) {
            None => error,
            doubt => {
                *obstacle = doubt;
                StorageError::WriteConflict.into()
            }
        });
        match &result {
            Ok(()) => ws.release(savepoint),
            Err(_) => {
                ws.rollback_to(savepoint);
                ws.forget_unclaimed();
                if let Some(operations) = operations {
                    lock(operations).truncate(before);
                }
            }
        }
        result
    }

    /// Who may be about to give up the key that a failed write could not have, if this statement waits for others: whether it can have it is known when
    /// they have ended.
    pub(super) fn doubt(&self, ws: &mut WriteSet) -> Option<Box<Reservation>> {
        let claimer = self.database.engine.claimer_of_taken(ws);
        claimer.filter(|_| self.terms.is_read_committed).map(Box::new)
    }

    /// Waits until another transaction has ended.
    ///
    /// Errors: 107 when it waits for this one, those of the interrupt.
    fn await_end(&self, ws: &WriteSet, obstacle: &Reservation) -> Result<()> {
        let until = self.lock_timeout.get().map(|most| Instant::now() + most);
        while_waiting(|| {
            loop {
                match ws.wait_for(obstacle, LOOK) {
                    Waited::Released => return Ok(()),
                    Waited::TimedOut => {
                        self.interrupt.check()?;
                        check_wait(until)?;
                    }
                    Waited::Deadlock => bail!(LockFailed, "deadlock detected"),
                }
            }
        })
    }

    /// The session's state for a retryable write; `None` when the command is not one.
    pub fn retry_session(&self) -> Result<Option<Arc<Mutex<Session>>>> {
        let (Some(lsid), Some(_), false) = (self.terms.lsid, self.terms.txn_number, self.terms.in_transaction) else {
            return Ok(None);
        };
        if self.database.options.replica_set.is_none() {
            bail!(
                IllegalOperation,
                "Transaction numbers are only allowed on a replica set member or mongos"
            );
        }
        Ok(Some(self.database.sessions.touch_with_history(lsid, &self.interrupt)?))
    }

    /// Makes the reply wait, if the write concern wants that, for all that is committed by now. That is for commands
    /// that committed nothing themselves: what they found (their own write of an earlier attempt, the document that an
    /// update would not change, a duplicate key, the index) must not be gone after a crash either.
    pub fn await_what_is_seen(&mut self) {
        if self.terms.in_transaction && !self.terms.ends_transaction {
            // The commit will wait.
            return;
        }
        let replica_set = self.database.options.replica_set.is_some();
        let concern = self.terms.write_concern.as_ref();
        let (guarantee, timeout) = match concern {
            Some(concern) => (self.guarantee(concern), concern.timeout),
            None => (self.guarantee(&implicit_concern(replica_set)), None),
        };
        if let Some(guarantee) = guarantee {
            let lsn = self.database.engine.last_lsn();
            self.effects.wait = Some(Wait {
                lsn,
                guarantee,
                timeout,
                is_read: false,
            });
        }
    }

    /// What the answer waits for. What the set can never satisfy it does not wait for: that is an error of the write concern.
    pub fn guarantee(&self, concern: &WriteConcern) -> Option<Guarantee> {
        let engine = &self.database.engine;
        if !engine.is_member() {
            return concern.guarantee(false);
        }
        if unsatisfiable(concern, || engine.topology()).is_some() {
            return Some(Guarantee::Committed);
        }
        match &concern.w {
            Acknowledgement::Mode(mode) => engine.topology().config.mode(mode).cloned().map(Guarantee::Tagged),
            Acknowledgement::Tags(tags) => Some(Guarantee::Tagged(tags.clone())),
            _ => concern.guarantee(true),
        }
    }

    /// Refuses write concerns that a node of this kind never accepts.
    pub fn check_write_concern(&self) -> Result<()> {
        let Some(concern) = &self.terms.write_concern else {
            return Ok(());
        };
        if self.database.options.replica_set.is_some() {
            return Ok(());
        }
        match &concern.w {
            Acknowledgement::Nodes(n) if *n > 1 => {
                bail!(BadValue, "cannot use 'w' > 1 when a host is not replicated")
            }
            Acknowledgement::Mode(mode) => bail!(
                BadValue,
                "cannot use non-majority 'w' mode {mode} when a host is not a member of a replica set"
            ),
            _ => Ok(()),
        }
    }
}

/// The oplog entry of a new collection.
pub fn create_entry(ns: &Namespace, uuid: [u8; 16], options: &CollectionOptions) -> nestor_model::RawDocBuf {
    let mut command = doc! { "create": ns.coll.clone() };
    for (name, value) in options.shown().iter() {
        command.push(name, value);
    }
    if options.view.is_none() && options.clustered.is_none() {
        command.push("idIndex", doc! { "v": 2, "key": doc! { "_id": 1 }, "name": "_id_" });
    }
    Origin::default().command(&ns.db, Some(uuid), &command, crate::clock::now_ms())
}

/// The collection to write to, made if it does not exist. Refuses views.
pub fn writable(
    ws: &mut WriteSet,
    ns: &Namespace,
    statement: &Statement<'_>,
    uuid: &mut Option<[u8; 16]>,
) -> Result<Arc<Collection>> {
    if let Some(found) = ws.catalog().get(ns).cloned() {
        check_writable(&found)?;
        check_capped(statement, &found)?;
        return Ok(found);
    }
    // The same UUID however often the write set is tried.
    let uuid = *uuid.get_or_insert_with(|| statement.database.new_uuid());
    let collection = ws.create_collection(ns, uuid, CollectionOptions::default())?;
    if statement.origin(&ns.db).is_some() {
        ws.oplog(create_entry(ns, uuid, &CollectionOptions::default()))?;
    }
    Ok(collection)
}

/// Refuses what cannot be written to.
pub fn check_writable(collection: &Collection) -> Result<()> {
    if collection.is_view() {
        bail!(
            CommandNotSupportedOnView,
            "Namespace {} is a view, not a collection",
            collection.ns
        );
    }
    Ok(())
}

/// Refuses writes of transactions to capped collections, whose oldest documents would go with the commit.
/// Source: manual, "Transactions and Operations", "Restrictions".
pub(crate) fn check_capped(context: &Statement<'_>, collection: &Collection) -> Result<()> {
    if context.terms.in_transaction && collection.is_capped() {
        bail!(
            OperationNotSupportedInTransaction,
            "Collection '{}' is a capped collection. Writes in transactions are not allowed on capped collections.",
            collection.ns
        );
    }
    Ok(())
}

/// Refuses namespaces that commands may not write to.
pub fn check_namespace(ns: &Namespace) -> Result<()> {
    if ns.is_named_as_oplog() {
        bail!(InvalidNamespace, "cannot write to {ns}");
    }
    nestor_storage::catalog::names::check_new_collection(ns)?;
    Ok(())
}

/// Refuses namespaces whose documents commands may not change: those of [`check_namespace`] and the profiler's.
pub fn check_document_namespace(ns: &Namespace) -> Result<()> {
    if ns.coll == system_profile::COLLECTION {
        bail!(InvalidNamespace, "cannot write to '{ns}'");
    }
    check_namespace(ns)
}

/// Refuses an empty or overlong list of statements.
pub fn check_count(command: &str, field: &str, count: usize) -> Result<()> {
    if !(1..=STATEMENTS_MAX).contains(&count) {
        bail!(
            InvalidLength,
            "Write batch sizes must be between 1 and {STATEMENTS_MAX}. Got {count} operations in '{command}.{field}'."
        );
    }
    Ok(())
}

/// Checks `collectionUUID`, if given, against what is at `ns`. Error 361 says where the collection is, if anywhere.
pub fn check_uuid(statement: &Statement<'_>, ns: &Namespace, uuid: Option<crate::uuid::Uuid>) -> Result<()> {
    let Some(uuid) = uuid else { return Ok(()) };
    let read = statement.current_view();
    let catalog = read.view().catalog();
    if catalog.get(ns).is_some_and(|c| c.uuid == uuid.0) {
        return Ok(());
    }
    let actual = catalog
        .by_uuid(&uuid.0)
        .filter(|c| c.ns.db == ns.db)
        .map_or(Value::Null, |c| c.ns.coll.clone().into());
    Err(Error::new(
        ErrorCode::CollectionUUIDMismatch,
        "Collection UUID does not match that specified",
    )
    .with_extra(doc! {
        "db": ns.db.clone(),
        "collectionUUID": uuid.to_value(),
        "expectedCollection": ns.coll.clone(),
        "actualCollection": actual,
    }))
}

/// The retryable state of a command while it runs: locked, so that a retry sent meanwhile waits.
pub struct Retryable<'s> {
    session: Option<MutexGuard<'s, Session>>,
}

impl<'s> Retryable<'s> {
    /// Begins or goes on with the command's transaction number.
    pub fn begin(statement: &Statement<'_>, session: Option<&'s Arc<Mutex<Session>>>) -> Result<Self> {
        let (Some(session), Some(lsid), Some(number)) = (session, statement.terms.lsid, statement.terms.txn_number)
        else {
            return Ok(Self { session: None });
        };
        let mut session = lock(session);
        session.retryable(lsid, number)?;
        Ok(Self { session: Some(session) })
    }

    /// True when the command has a transaction number.
    pub fn is_on(&self) -> bool {
        self.session.is_some()
    }

    /// What the oplog is told of a statement, if the command has a transaction number; `image` is what the statement returns.
    pub fn logged(&self, stmt_id: i32, image: Image) -> Option<oplog::Retryable> {
        self.is_on().then_some(oplog::Retryable { stmt_id, image })
    }

    /// The result of the statement, if an earlier attempt has executed it.
    pub fn executed(&self, stmt_id: i32) -> Option<&StatementResult> {
        self.session.as_ref()?.statements.get(&stmt_id)
    }

    /// Remembers what a statement did.
    pub fn remember(&mut self, stmt_id: i32, result: impl FnOnce() -> StatementResult) {
        if let Some(session) = &mut self.session {
            session.statements.insert(stmt_id, result());
        }
    }
}
