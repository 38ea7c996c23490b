//! Rights: what may be done on what.
//!
//! Actions and the resources they are granted on are named as in MongoDB's manual, "Privilege Actions" and "Resource
//! Document". A [`Privilege`] is what an operation needs; a [`grant::Grant`] is what a role gives; [`grant::Grants::allow`] brings
//! both together.

pub mod action;
pub mod builtin;
pub mod grant;

pub use action::{Action, Actions};
pub use grant::{Grant, Grants, Pattern};

use nestor_model::{Namespace, Str};

/// The resource of an action.
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
