//! What an index holds, and what is found in it.

use crate::found::{Found, ReadSynonyms};
use crate::{Definition, Nearest, Search, text, vector};
use nestor_model::{RawDoc, Result};
use std::sync::Arc;

/// The documents of one state of a collection as an index holds them. Immutable, and cheap to clone: states share what they have in common.
#[derive(Clone)]
pub struct Index {
    definition: Arc<Definition>,
    part: Part,
}

#[derive(Clone)]
enum Part {
    Search(text::Index),
    Vector(vector::Index),
}

/// The next state of an index while it is made.
pub struct Change {
    definition: Arc<Definition>,
    part: ChangePart,
}

enum ChangePart {
    Search(text::Change),
    Vector(vector::Change),
}

impl Change {
    /// A record as it is now: its document, or that there is none any more. Keys that the index has not are added. Each key is given once.
    ///
    /// Errors: those of the statement's interrupt and memory.
    pub fn record(&mut self, key: &[u8], document: Option<RawDoc<'_>>) -> Result<()> {
        match (&mut self.part, &*self.definition) {
            (ChangePart::Search(change), Definition::Search(definition)) => change.record(definition, key, document),
            (ChangePart::Vector(change), Definition::Vector(definition)) => change.record(definition, key, document),
            _ => Ok(()),
        }
    }

    /// The state with all of these.
    ///
    /// Errors: as [`Change::record`].
    pub fn finish(self) -> Result<Index> {
        let part = match self.part {
            ChangePart::Search(change) => Part::Search(change.finish()?),
            ChangePart::Vector(change) => Part::Vector(change.finish()?),
        };
        Ok(Index {
            definition: self.definition,
            part,
        })
    }
}

impl Index {
    /// An index of no documents.
    pub fn new(definition: Arc<Definition>) -> Self {
        let part = match &*definition {
            Definition::Search(_) => Part::Search(text::Index::default()),
            Definition::Vector(_) => Part::Vector(vector::Index::default()),
        };
        Self { definition, part }
    }

    /// What its definition says.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// Begins the next state of the index.
    pub fn change(&self) -> Change {
        let part = match &self.part {
            Part::Search(index) => ChangePart::Search(index.change()),
            Part::Vector(index) => ChangePart::Vector(index.change()),
        };
        Change {
            definition: Arc::clone(&self.definition),
            part,
        }
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        match &self.part {
            Part::Search(index) => index.bytes(),
            Part::Vector(index) => index.bytes(),
        }
    }

    /// How many documents it holds.
    pub fn documents(&self) -> u64 {
        match &self.part {
            Part::Search(index) => index.documents(),
            Part::Vector(index) => index.documents(),
        }
    }

    /// The documents that a `$search` or `$searchMeta` asks for. `synonyms` reads the collections that have synonyms.
    ///
    /// Errors: 8 for what this index cannot tell, those of the statement's interrupt and memory.
    pub fn search(&self, search: &Search, synonyms: &mut ReadSynonyms<'_>) -> Result<Found> {
        match (&self.part, &*self.definition) {
            (Part::Search(index), Definition::Search(definition)) => index.search(definition, search, synonyms),
            _ => Err(self.definition.is_not_for("$search")),
        }
    }

    /// The documents that a `$vectorSearch` asks for.
    ///
    /// Errors: 8 for what this index cannot tell, those of the statement's interrupt and memory.
    pub fn nearest(&self, nearest: &Nearest) -> Result<Found> {
        match (&self.part, &*self.definition) {
            (Part::Vector(index), Definition::Vector(definition)) => index.nearest(definition, nearest),
            _ => Err(self.definition.is_not_for("$vectorSearch")),
        }
    }
}
