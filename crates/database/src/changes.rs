//! Change streams, as statements: which may be opened, and where a new one starts. What they give is `exec`'s business
//! ([`nestor_exec::changes`]).
//!
//! A stream shows what will not be rolled back: its reader of the log sees no commit before that is certain.

use crate::concern::read::Level;
use crate::statement::Statement;
use crate::{Database, clock};
use nestor_model::number::safe_i64;
use nestor_model::{Namespace, Result, Timestamp, ValueRef, bail};
use nestor_query::stage::change_stream::Start;
use nestor_query::stage::{Pipeline, Stage};
use nestor_storage::View;
use std::sync::Arc;

impl Statement<'_> {
    /// Whether a pipeline is a change stream, which is then ready to be planned: it is known where it starts.
    ///
    /// Errors: 40573 without a replica set, 72 with a read concern other than majority, 166 on a view.
    pub fn start_changes(&self, pipeline: &mut Pipeline, ns: &Namespace, view: &dyn View) -> Result<bool> {
        let Some(Stage::ChangeStream(stream)) = pipeline.stages.first_mut() else {
            return Ok(false);
        };
        if self.database.options.replica_set.is_none() {
            bail!(40573, "The $changeStream stage is only supported on replica sets");
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
}

impl Database {
    /// Documents as they were before changes are shown of changes from then on, in milliseconds since the epoch: the cluster
    /// parameter `changeStreamOptions` says for how long they are kept.
    pub fn images_since_ms(&self) -> i64 {
        let expiry = self.node.cluster_parameters.look("changeStreamOptions", |options| {
            let images = options.get("preAndPostImages").and_then(ValueRef::as_document)?;
            images.get("expireAfterSeconds").and_then(safe_i64)
        });
        match expiry {
            Some(secs) => clock::now_ms().saturating_sub(secs.saturating_mul(1000)),
            None => i64::MIN,
        }
    }
}
