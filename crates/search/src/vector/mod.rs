//! The kind `vectorSearch`, and what `$vectorSearch` asks of it.
//!
//! An index is a list of immutable segments. A change makes a new one of what has changed, and marks in the others what is not there any more;
//! small segments are merged into larger ones, so that there are few and each vector is copied seldom.
//!
//! All searches compare all vectors that pass the filters: `numCandidates` and the options of graphs and of quantization are checked, and the
//! results are those of an exact search.
//!
//! Reading order: [`definition`], `values` (vectors in BSON), `segment`, `column` (what filters see), [`query`], `filter`, `nearest` (the
//! search), `distance`.
//! Source: manual, "`$vectorSearch`", "How to Index Fields for Vector Search".

mod bits;
mod column;
mod definition;
mod distance;
mod filter;
mod nearest;
mod query;
mod read;
mod segment;
#[cfg(test)]
mod tests;
mod values;

pub use definition::Definition;
pub use query::Nearest;

use crate::found::Found;
use crate::parts::{Parts, Segment as _};
use nearest::Prepared;
use nestor_model::memory::Held;
use nestor_model::{RawDoc, Result};
use segment::Segment;

/// The vectors of one state of a collection.
#[derive(Clone, Default)]
pub struct Index {
    parts: Parts<Segment>,
}

impl Index {
    /// Begins the next state of the index.
    pub fn change(&self) -> Change {
        Change {
            parts: self.parts.clone(),
            fresh: None,
            held: Held::by_this_statement(),
        }
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.parts.bytes()
    }

    /// How many documents it holds.
    pub fn documents(&self) -> u64 {
        self.parts.documents()
    }

    /// The documents that a `$vectorSearch` asks for.
    ///
    /// Errors: 8 for what this index cannot tell, those of the statement's interrupt and memory.
    pub fn nearest(&self, definition: &Definition, nearest: &Nearest) -> Result<Found> {
        let parts = self.parts.iter().map(|part| (&*part.segment, &part.dead));
        Prepared::new(definition, nearest)?.find(parts)
    }
}

impl Definition {
    /// Checks a query without looking for anything.
    ///
    /// Errors: 8, as [`Index::nearest`].
    pub fn check(&self, nearest: &Nearest) -> Result<()> {
        Prepared::new(self, nearest).map(drop)
    }
}

/// The next state while it is made.
pub struct Change {
    parts: Parts<Segment>,
    fresh: Option<Segment>,
    held: Held,
}

/// After so many documents the memory of a change is counted again.
const COUNTED: usize = 1024;

impl Change {
    /// A record as it is now: its document, or that there is none any more.
    ///
    /// Errors: those of the statement's interrupt and memory.
    pub fn record(&mut self, definition: &Definition, key: &[u8], document: Option<RawDoc<'_>>) -> Result<()> {
        self.parts.kill(key);
        let Some(document) = document else {
            return Ok(());
        };
        let fresh = self.fresh.get_or_insert_with(|| Segment::new(definition));
        fresh.add(definition, key, document)?;
        if fresh.documents().is_multiple_of(COUNTED) {
            self.held.set(fresh.bytes());
        }
        Ok(())
    }

    /// The state with all of these.
    ///
    /// Errors: as [`Change::record`].
    pub fn finish(self) -> Result<Index> {
        let mut made = Parts::default();
        if let Some(fresh) = self.fresh {
            made.add(fresh.seal())?;
        }
        Ok(Index {
            parts: self.parts.with(made)?,
        })
    }
}
