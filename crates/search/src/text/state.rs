//! The states of an index, and how one becomes the next.

use super::Definition;
use super::store::{Builder, Segment};
use crate::parts::{self, Parts};
use nestor_model::{RawDoc, Result};

/// Bytes of a segment that is built before it is closed and the next one begins.
const SEGMENT_BYTES: usize = 32 * 1024 * 1024;

/// A segment, and which of its records are dead in a state.
pub(super) type Part = parts::Part<Segment>;

/// The documents of one state of a collection.
#[derive(Clone, Default)]
pub struct Index {
    pub(super) parts: Parts<Segment>,
}

impl Index {
    /// Begins the next state of the index.
    pub fn change(&self) -> Change {
        Change {
            before: self.parts.clone(),
            made: Parts::default(),
            builder: Box::default(),
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
}

/// The next state while it is made.
pub struct Change {
    /// What was there before, with what is dead now.
    before: Parts<Segment>,
    /// Segments of what is new.
    made: Parts<Segment>,
    builder: Box<Builder>,
}

impl Change {
    /// A record as it is now: its document, or that there is none any more.
    ///
    /// Errors: those of the statement's interrupt and memory.
    pub fn record(&mut self, definition: &Definition, key: &[u8], document: Option<RawDoc<'_>>) -> Result<()> {
        // Each key is given once, so what is new needs no look.
        self.before.kill(key);
        if let Some(document) = document {
            self.builder.add(definition, key, document)?;
        }
        if self.builder.bytes() >= SEGMENT_BYTES {
            self.close_segment()?;
        }
        Ok(())
    }

    fn close_segment(&mut self) -> Result<()> {
        let builder = std::mem::take(&mut self.builder);
        match builder.is_empty() {
            true => Ok(()),
            false => self.made.add(builder.finish()?),
        }
    }

    /// The state with all of these.
    ///
    /// Errors: as [`Change::record`].
    pub fn finish(mut self) -> Result<Index> {
        self.close_segment()?;
        Ok(Index {
            parts: self.before.with(self.made)?,
        })
    }
}
