//! Changing how much of the oplog is kept while the server runs.

use super::Progress;
use crate::oplog::namespace;
use crate::statement::Statement;
use nestor_model::{CollectionOptions, Result, bail};
use nestor_storage::View;
use nestor_storage::log::LogRetention;
use std::time::Duration;

impl Statement<'_> {
    /// Changes the oplog's size in bytes and the age up to which it is kept whatever its size, as far as they are given.
    ///
    /// Errors: 76 without a replica set, 20 for an age in a store that lives in memory.
    pub fn resize_oplog(&self, bytes: Option<u64>, age_min: Option<Duration>, progress: &mut Progress) -> Result<()> {
        if self.database.options.replica_set.is_none() {
            bail!(
                NoReplicationEnabled,
                "replSetResizeOplog can only be run on members of a replica set"
            );
        }
        let engine = &self.database.engine;
        if engine.is_ephemeral() && age_min.is_some_and(|age| age > Duration::ZERO) {
            bail!(
                IllegalOperation,
                "the oplog of a server that keeps everything in memory is bounded by its size only"
            );
        }
        if let Some(bytes) = bytes {
            let size = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.atomically(progress, |ws| {
                let Some(oplog) = ws.catalog().get(&namespace()).cloned() else {
                    bail!(NamespaceNotFound, "local.oplog.rs does not exist");
                };
                let mut options = oplog.options.listed().clone();
                options.set("size", size);
                ws.set_options(oplog.id, CollectionOptions::parse(options)?)?;
                Ok(())
            })?;
        }
        let now = engine.log_retention();
        engine.set_log_retention(LogRetention {
            bytes_max: bytes.unwrap_or(now.bytes_max),
            age_min: age_min.unwrap_or(now.age_min),
        });
        Ok(())
    }
}
