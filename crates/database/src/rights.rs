//! Rights: what may be done on what.
//!
//! Actions and the resources they are granted on are named as in MongoDB's manual, "Privilege Actions" and "Resource
//! Document". Nobody logs in yet, so that nobody asks for them.

use nestor_model::{Namespace, Str};

/// Something that a right allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Action {
    Find,
    Insert,
    Update,
    Remove,
    BypassDocumentValidation,
    CollStats,
    IndexStats,
    PlanCacheRead,
    ListCollections,
    ListIndexes,
    ListSessions,
    ListSampledQueries,
    QuerySettings,
    Inprog,
    ChangeStream,
}

impl Action {
    /// Its name as rights are granted by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Remove => "remove",
            Self::BypassDocumentValidation => "bypassDocumentValidation",
            Self::CollStats => "collStats",
            Self::IndexStats => "indexStats",
            Self::PlanCacheRead => "planCacheRead",
            Self::ListCollections => "listCollections",
            Self::ListIndexes => "listIndexes",
            Self::ListSessions => "listSessions",
            Self::ListSampledQueries => "listSampledQueries",
            Self::QuerySettings => "querySettings",
            Self::Inprog => "inprog",
            Self::ChangeStream => "changeStream",
        }
    }
}

/// What an action is done on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// One collection or view.
    Collection(Namespace),
    /// A database and all that is in it.
    Database(Str),
    /// All collections of all databases, those of the server itself apart.
    AllCollections,
    /// The server.
    Cluster,
}

/// An action on a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// On what.
    pub resource: Resource,
    /// What.
    pub action: Action,
}

/// Which resource a command needs an action on, whatever its arguments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The collection that it names.
    Collection,
    /// Its database.
    Database,
    /// The server.
    Cluster,
}

/// An action that a command needs to be allowed whatever its arguments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// What.
    pub action: Action,
    /// On what.
    pub on: Scope,
}
