//! The commands of search indexes: refused, as there are none.

use crate::facts::Facts;
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{Error, Result};

/// `createSearchIndexes`.
pub const CREATE: CommandSpec = Facts::collection("createSearchIndexes", "Refused: it needs a search index.")
    .needs(Needs::collection(Action::CreateSearchIndexes))
    .runs(|_, _| refused("createSearchIndexes"));

/// `updateSearchIndex`.
pub const UPDATE: CommandSpec = Facts::collection("updateSearchIndex", "Refused: it needs a search index.")
    .needs(Needs::collection(Action::UpdateSearchIndex))
    .runs(|_, _| refused("updateSearchIndex"));

/// `dropSearchIndex`.
pub const DROP: CommandSpec = Facts::collection("dropSearchIndex", "Refused: it needs a search index.")
    .needs(Needs::collection(Action::DropSearchIndex))
    .runs(|_, _| refused("dropSearchIndex"));

/// `listSearchIndexes`.
pub const LIST: CommandSpec = Facts::collection("listSearchIndexes", "Refused: it needs a search index.")
    .needs(Needs::collection(Action::ListSearchIndexes))
    .runs(|_, _| refused("listSearchIndexes"));

/// The error of the stages that need one, by which drivers know it.
fn refused(command: &str) -> Result<()> {
    Err(Error::location(
        31082,
        format!("{command} needs a search index like those of Atlas, which Nestor does not support yet"),
    ))
}
