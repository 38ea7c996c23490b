//! Change streams, as statements: which may be opened, and where a new one starts. What they give is `exec`'s business
//! ([`nestor_exec::changes`]).
//!
//! A stream shows what will not be rolled back, so an answer with events waits until they are durable, like the answer to a write
//! with `majority`.

use crate::concern::read::Level;
use crate::statement::{Statement, Wait};
use nestor_model::{Namespace, Result, Timestamp, bail};
use nestor_query::stage::change_stream::Start;
use nestor_query::stage::{Pipeline, Stage};
use nestor_storage::{Guarantee, View};
use std::sync::Arc;

impl Statement<'_> {
    /// Whether a pipeline is a change stream, which is then ready to be planned: it is known where it starts.
    ///
    /// Errors: 40573 without a replica set, 263 in a transaction, 72 with a read concern other than majority, 166 on a view.
    pub fn start_changes(&self, pipeline: &mut Pipeline, ns: &Namespace, view: &dyn View) -> Result<bool> {
        let Some(Stage::ChangeStream(stream)) = pipeline.stages.first_mut() else {
            return Ok(false);
        };
        if self.database.options.replica_set.is_none() {
            bail!(40573, "The $changeStream stage is only supported on replica sets");
        }
        if self.terms.in_transaction {
            bail!(
                OperationNotSupportedInTransaction,
                "$changeStream cannot be used in a transaction"
            );
        }
        if !matches!(self.terms.read_concern.level, None | Some(Level::Majority)) {
            bail!(
                InvalidOptions,
                "$changeStream cannot run with a readConcern other than 'majority'. Current readConcern: {}",
                self.terms.read_concern.level_name()
            );
        }
        if view.catalog().get(ns).is_some_and(|found| found.is_view()) {
            bail!(CommandNotSupportedOnView, "Namespace {ns} is a view, not a collection");
        }
        if stream.start == Start::Now {
            let next = self.database.engine.last_optime().to_u64().saturating_add(1);
            Arc::make_mut(stream).start = Start::At(Timestamp::from_u64(next));
        }
        Ok(true)
    }

    /// Has the answer wait until what it shows cannot be rolled back.
    pub fn await_majority(&mut self) {
        self.effects.wait = Some(Wait {
            lsn: self.database.engine.last_lsn(),
            guarantee: Guarantee::Committed,
            timeout: None,
        });
    }
}
