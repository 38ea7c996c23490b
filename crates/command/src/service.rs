//! What all commands share: the database, and what only commands know.

use crate::facts::Table;
use nestor_database::Database;
use nestor_database::statement::relational::Relational;
use nestor_database::ttl::TtlMonitor;
use nestor_storage::Lsn;
use std::sync::{Arc, Mutex};

/// How long a command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// It neither takes long nor waits for the disk.
    Short,
    /// It may be long and mostly is not.
    UsuallyShort,
    /// It may be long.
    Long,
}

/// One database process as commands see it. Shared by all connections; every method takes `&self`.
pub struct Service {
    /// The database.
    pub database: Database,
    /// When expired documents are deleted.
    pub ttl: TtlMonitor,
    /// On a member that is not primary: the commit that changed the settings which were read last.
    pub(crate) settings_read: Mutex<Option<Lsn>>,
    /// Which commands there are.
    pub commands: &'static Table,
    /// Answers `$sql`; without it the stage is refused.
    pub(crate) relational: Option<Arc<dyn Relational>>,
}

impl std::ops::Deref for Service {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}
