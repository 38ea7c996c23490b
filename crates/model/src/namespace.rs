//! Namespaces: `db.collection`.

use crate::Str;
use std::fmt;

/// A database name and a collection name. The collection may contain dots; the database may not.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Namespace {
    /// Database name.
    pub db: Str,
    /// Collection name; empty when the namespace names only a database.
    pub coll: Str,
}

impl Namespace {
    /// A namespace of the two parts; validity of the names is the catalog's business.
    pub fn new(db: impl Into<Str>, coll: impl Into<Str>) -> Self {
        Self {
            db: db.into(),
            coll: coll.into(),
        }
    }

    /// Splits `db.coll` at the first dot; without a dot the collection is empty.
    pub fn parse(text: &str) -> Self {
        match text.split_once('.') {
            Some((db, coll)) => Self::new(db, coll),
            None => Self::new(text, ""),
        }
    }

    /// Whether it is in a database of the server's own.
    pub fn is_internal(&self) -> bool {
        is_internal_database(&self.db)
    }
}

/// The database of users, roles and commands to the whole server.
pub const ADMIN: &str = "admin";
/// The database of what sessions, transactions and clusters keep.
pub const CONFIG: &str = "config";
/// The database of what is never replicated, and of the oplog.
pub const LOCAL: &str = "local";

/// Whether a database is the server's own.
pub fn is_internal_database(name: &str) -> bool {
    matches!(name, ADMIN | CONFIG | LOCAL)
}

/// The collection of [`LOCAL`] whose documents are the entries of the log.
pub const OPLOG: &str = "oplog.rs";

impl Namespace {
    /// Whether it is the oplog, whose entries are in the journal and not in records.
    pub fn is_oplog(&self) -> bool {
        self.db == LOCAL && self.coll == OPLOG
    }

    /// Whether it has a name of oplogs, which nobody may give to other collections.
    pub fn is_named_as_oplog(&self) -> bool {
        self.db == LOCAL && self.coll.starts_with("oplog.")
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.coll.is_empty() {
            f.write_str(&self.db)
        } else {
            write!(f, "{}.{}", self.db, self.coll)
        }
    }
}
