//! Options that a database is started with.

use crate::node::ProcessOptions;
use crate::profiler;
use nestor_model::Str;
use std::path::PathBuf;
use std::time::Duration;

/// How the database presents itself.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Replica set name; `None` for a standalone.
    pub replica_set: Option<Str>,
    /// `host:port` as clients reach it.
    pub host: Str,
    /// The process around it.
    pub process: ProcessOptions,
    /// Size in bytes of an oplog that is made now; `None` for what the store was told to keep. One that is there keeps its size.
    pub oplog_bytes: Option<u64>,
    /// Entries younger than this stay in the oplog whatever its size.
    pub oplog_age_min: Duration,
    /// The settings that the profiler starts with.
    pub profiler: profiler::AtStart,
    /// Bytes that columns may take in memory.
    pub column_bytes_max: usize,
    /// Bytes that search indexes may take in memory.
    pub search_bytes_max: usize,
    /// The directory whose files SQL may read; `None` for none.
    pub sql_files: Option<PathBuf>,
    /// Access control is on: users must log in and have the right to what they do.
    pub authorization: bool,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            replica_set: Some("rs0".into()),
            host: "localhost:27017".into(),
            process: ProcessOptions::default(),
            oplog_bytes: None,
            oplog_age_min: Duration::ZERO,
            profiler: profiler::AtStart::default(),
            column_bytes_max: 256 << 20,
            search_bytes_max: 1 << 30,
            sql_files: None,
            authorization: false,
        }
    }
}
