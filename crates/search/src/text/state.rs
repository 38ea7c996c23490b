//! The states of an index, and how one becomes the next.

use super::definition::Definition;
use super::store::{Builder, Dead, Segment, merged};
use nestor_model::{RawDoc, Result};
use std::sync::Arc;

/// Bytes of a segment that is built before it is closed and the next one begins.
const SEGMENT_BYTES: usize = 32 * 1024 * 1024;

/// The documents of one state of a collection.
#[derive(Clone, Default)]
pub struct Index {
    pub(super) parts: Vec<Part>,
}

/// A segment, and which of its records are dead in a state.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) segment: Arc<Segment>,
    pub(super) dead: Dead,
}

impl Part {
    fn alive(&self) -> usize {
        self.segment.alive(&self.dead)
    }
}

impl Index {
    /// Begins the next state of the index.
    pub fn change(&self) -> Change {
        Change {
            before: self.clone(),
            made: Vec::new(),
            builder: Box::default(),
        }
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let parts = self.parts.iter();
        parts.map(|part| part.segment.bytes() + part.dead.bytes()).sum()
    }

    /// How many documents it holds.
    pub fn documents(&self) -> u64 {
        self.parts.iter().map(|part| part.alive() as u64).sum()
    }
}

/// The next state while it is made.
pub struct Change {
    /// What was there before, with what is dead now.
    before: Index,
    /// Segments of what is new.
    made: Vec<Part>,
    builder: Box<Builder>,
}

impl Change {
    /// A record as it is now: its document, or that there is none any more.
    ///
    /// Errors: those of the statement's interrupt and memory.
    pub fn record(&mut self, definition: &Definition, key: &[u8], document: Option<RawDoc<'_>>) -> Result<()> {
        // Each key is given once, so what is new needs no look.
        for part in &mut self.before.parts {
            if let Some(record) = part.segment.find(key) {
                part.dead.add(record);
            }
        }
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
        if !builder.is_empty() {
            self.made.push(Part {
                segment: Arc::new(builder.finish()?),
                dead: Dead::default(),
            });
        }
        merge(&mut self.made)
    }

    /// The state with all of these.
    ///
    /// Errors: as [`Change::record`].
    pub fn finish(mut self) -> Result<Index> {
        self.close_segment()?;
        let mut parts = self.before.parts;
        parts.retain(|part| part.alive() > 0);
        for part in &mut parts {
            if part.dead.len() > part.alive() {
                *part = one(std::slice::from_ref(part))?;
            }
        }
        parts.append(&mut self.made);
        // Largest first: what has lost much or is new may be in the wrong place.
        parts.sort_by_key(|part| std::cmp::Reverse(part.alive()));
        merge(&mut parts)?;
        Ok(Index { parts })
    }
}

/// Merges segments, the largest being first, until each is more than twice as large as the next.
fn merge(parts: &mut Vec<Part>) -> Result<()> {
    while let Some(at) = parts
        .windows(2)
        .rposition(|pair| pair[0].alive() <= 2 * pair[1].alive())
    {
        let together = one(&parts[at..at + 2])?;
        parts.splice(at..at + 2, [together]);
    }
    Ok(())
}

fn one(parts: &[Part]) -> Result<Part> {
    let parts: Vec<(&Segment, &Dead)> = parts.iter().map(|part| (&*part.segment, &part.dead)).collect();
    Ok(Part {
        segment: Arc::new(merged(&parts)?),
        dead: Dead::default(),
    })
}
