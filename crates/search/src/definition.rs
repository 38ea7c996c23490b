//! What the definition of a search index says.

use crate::{Nearest, text, vector};
use nestor_model::{DocRef, Error, ErrorCode, Result};

/// The kinds of search indexes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// `search`: what `$search` and `$searchMeta` read.
    Search,
    /// `vectorSearch`: what `$vectorSearch` reads.
    Vector,
}

impl IndexKind {
    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Search, Self::Vector]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// Its name, as commands have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Vector => "vectorSearch",
        }
    }
}

/// A definition, checked.
#[derive(Debug)]
pub enum Definition {
    /// Of kind `search`.
    Search(text::Definition),
    /// Of kind `vectorSearch`.
    Vector(vector::Definition),
}

impl Definition {
    /// Reads what `createSearchIndexes` was given, and what the catalog keeps.
    ///
    /// Errors: those of the server that MongoDB runs beside itself for search.
    pub fn parse(kind: IndexKind, definition: DocRef<'_>) -> Result<Self> {
        match kind {
            IndexKind::Search => Ok(Self::Search(text::Definition::parse(definition)?)),
            IndexKind::Vector => Ok(Self::Vector(vector::Definition::parse(definition)?)),
        }
    }

    /// Checks a `$vectorSearch` without looking for anything, as an `explain` does.
    ///
    /// Errors: 8 as those of [`Index::nearest`](crate::Index::nearest).
    pub fn check_nearest(&self, nearest: &Nearest) -> Result<()> {
        match self {
            Self::Vector(definition) => definition.check(nearest),
            Self::Search(_) => Err(self.is_not_for("$vectorSearch")),
        }
    }

    /// The error of a stage that asks an index of the other kind.
    pub(crate) fn is_not_for(&self, stage: &str) -> Error {
        let kind = self.kind().name();
        Error::new(
            ErrorCode::UnknownError,
            format!("{stage} cannot read an index of type {kind}"),
        )
    }

    /// Of which kind it is.
    pub fn kind(&self) -> IndexKind {
        match self {
            Self::Search(_) => IndexKind::Search,
            Self::Vector(_) => IndexKind::Vector,
        }
    }
}
