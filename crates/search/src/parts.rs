//! The segments of a state of an index, and how those of the next one follow: the same for both kinds.

use crate::dead::Dead;
use nestor_model::Result;
use std::ops::Deref;
use std::sync::Arc;

/// What an index has of some records. It never changes.
pub(crate) trait Segment: Sized {
    /// How many records it has, dead or alive.
    fn len(&self) -> usize;

    /// The number of the record with a key.
    fn find(&self, key: &[u8]) -> Option<u32>;

    /// About how many bytes of memory it takes.
    fn bytes(&self) -> usize;

    /// One that has what is alive in these.
    ///
    /// Errors: those of the statement's interrupt.
    fn merged(parts: &[(&Self, &Dead)]) -> Result<Self>;
}

/// A segment, and which of its records are dead in a state.
pub(crate) struct Part<S> {
    pub(crate) segment: Arc<S>,
    pub(crate) dead: Dead,
}

impl<S> Clone for Part<S> {
    fn clone(&self) -> Self {
        Self {
            segment: self.segment.clone(),
            dead: self.dead.clone(),
        }
    }
}

impl<S: Segment> Part<S> {
    fn new(segment: S) -> Self {
        Self {
            segment: Arc::new(segment),
            dead: Dead::default(),
        }
    }

    fn alive(&self) -> usize {
        self.segment.len() - self.dead.len()
    }
}

/// The segments of a state, the largest first.
pub(crate) struct Parts<S>(Vec<Part<S>>);

impl<S> Clone for Parts<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Default for Parts<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S> Deref for Parts<S> {
    type Target = [Part<S>];

    fn deref(&self) -> &[Part<S>] {
        &self.0
    }
}

impl<S: Segment> Parts<S> {
    /// About how many bytes of memory they take.
    pub(crate) fn bytes(&self) -> usize {
        self.iter().map(|part| part.segment.bytes() + part.dead.bytes()).sum()
    }

    /// How many records are alive.
    pub(crate) fn documents(&self) -> u64 {
        self.iter().map(|part| part.alive() as u64).sum()
    }

    /// The record of a key is dead from now on.
    pub(crate) fn kill(&mut self, key: &[u8]) {
        for part in &mut self.0 {
            if let Some(record) = part.segment.find(key) {
                part.dead.add(record);
            }
        }
    }

    /// Adds a segment that was made.
    ///
    /// Errors: those of the statement's interrupt.
    pub(crate) fn add(&mut self, segment: S) -> Result<()> {
        self.0.push(Part::new(segment));
        self.merge()
    }

    /// The next state: these, of which some records are dead now, and those that were made since.
    ///
    /// Errors: those of the statement's interrupt.
    pub(crate) fn with(mut self, mut made: Self) -> Result<Self> {
        self.0.retain(|part| part.alive() > 0);
        for part in &mut self.0 {
            if part.dead.len() > part.alive() {
                *part = one(std::slice::from_ref(part))?;
            }
        }
        self.0.append(&mut made.0);
        // What has lost much or is new may be in the wrong place.
        self.0.sort_by_key(|part| std::cmp::Reverse(part.alive()));
        self.merge()?;
        Ok(self)
    }

    /// Merges segments, the largest being first, until each is more than twice as large as the next.
    fn merge(&mut self) -> Result<()> {
        let parts = &mut self.0;
        while let Some(at) = parts
            .windows(2)
            .rposition(|pair| pair[0].alive() <= 2 * pair[1].alive())
        {
            let together = one(&parts[at..at + 2])?;
            parts.splice(at..at + 2, [together]);
        }
        Ok(())
    }
}

fn one<S: Segment>(parts: &[Part<S>]) -> Result<Part<S>> {
    let parts: Vec<(&S, &Dead)> = parts.iter().map(|part| (&*part.segment, &part.dead)).collect();
    S::merged(&parts).map(Part::new)
}
