//! The model of a base: a `BTreeMap` in memory. It is what tests of the layers above run on, and what the tree is
//! tested against. Nothing about it is fast: an `apply` while a snapshot is held copies the map.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use super::{
    ApplyStats, Base, BaseBytes, BaseCursor, BaseSnapshot, ChangeSource, CheckReport, KeyRange, Result, check_change,
    check_deletions,
};

/// A base that keeps everything in memory.
#[derive(Debug, Default)]
pub struct MemoryBase {
    current: Mutex<Arc<State>>,
}

#[derive(Debug, Default, Clone)]
struct State {
    entries: BTreeMap<Vec<u8>, BaseBytes>,
    meta: Vec<u8>,
    /// How many changes made it.
    number: u64,
}

impl MemoryBase {
    /// An empty base.
    pub fn new() -> MemoryBase {
        MemoryBase::default()
    }
}

impl Base for MemoryBase {
    fn snapshot(&self) -> Arc<dyn BaseSnapshot> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn apply(&self, deletions: &[KeyRange<'_>], changes: &mut dyn ChangeSource, meta: &[u8]) -> Result<ApplyStats> {
        check_deletions(deletions)?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = State::clone(&current);
        let mut stats = ApplyStats::default();
        for range in deletions {
            let before = state.entries.len();
            state.entries.retain(|key, _| !range.contains(key));
            stats.range_removed += (before - state.entries.len()) as u64;
        }
        let mut previous: Option<Vec<u8>> = None;
        while let Some(change) = changes.current() {
            check_change(&change)?;
            if previous.as_deref().is_some_and(|previous| change.key <= previous) {
                return Err(super::BaseError::Unordered { what: "changes" });
            }
            match change.value {
                Some(value) => match state.entries.insert(change.key.to_vec(), value.to_vec().into()) {
                    Some(_) => stats.replaced += 1,
                    None => stats.inserted += 1,
                },
                None => stats.removed += u64::from(state.entries.remove(change.key).is_some()),
            }
            previous = Some(change.key.to_vec());
            changes.advance();
        }
        state.meta = meta.to_vec();
        state.number += 1;
        *current = Arc::new(state);
        Ok(stats)
    }

    fn file_bytes(&self) -> u64 {
        0
    }

    fn held_bytes(&self) -> u64 {
        0
    }

    fn check(&self) -> Result<CheckReport> {
        let state = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(CheckReport {
            entries: state.entries.len() as u64,
            key_bytes: state.entries.keys().map(|key| key.len() as u64).sum(),
            value_bytes: state.entries.values().map(|value| value.len() as u64).sum(),
            ..CheckReport::default()
        })
    }
}

impl BaseSnapshot for State {
    fn get(&self, key: &[u8]) -> Result<Option<BaseBytes>> {
        Ok(self.entries.get(key).cloned())
    }

    fn cursor(self: Arc<Self>) -> Box<dyn BaseCursor> {
        Box::new(MemoryCursor { state: self, at: None })
    }

    fn meta(&self) -> &[u8] {
        &self.meta
    }

    fn state(&self) -> u64 {
        self.number
    }

    fn entries(&self) -> u64 {
        self.entries.len() as u64
    }

    fn rank(&self, key: &[u8]) -> Result<u64> {
        Ok(self
            .entries
            .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key)))
            .count() as u64)
    }
}

struct MemoryCursor {
    state: Arc<State>,
    at: Option<(Vec<u8>, BaseBytes)>,
}

impl MemoryCursor {
    /// Moves to the first (`forward`) or last entry between the bounds.
    fn find(&mut self, low: Bound<&[u8]>, high: Bound<&[u8]>, forward: bool) -> Result<bool> {
        let mut range = self.state.entries.range::<[u8], _>((low, high));
        let found = if forward { range.next() } else { range.next_back() };
        self.at = found.map(|(key, value)| (key.clone(), value.clone()));
        Ok(self.at.is_some())
    }
}

impl BaseCursor for MemoryCursor {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.find(Bound::Included(key), Bound::Unbounded, true)
    }

    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.find(Bound::Unbounded, Bound::Included(key), false)
    }

    fn first(&mut self) -> Result<bool> {
        self.find(Bound::Unbounded, Bound::Unbounded, true)
    }

    fn last(&mut self) -> Result<bool> {
        self.find(Bound::Unbounded, Bound::Unbounded, false)
    }

    fn next(&mut self) -> Result<bool> {
        match self.at.take() {
            Some((key, _)) => self.find(Bound::Excluded(&key), Bound::Unbounded, true),
            None => Ok(false),
        }
    }

    fn prev(&mut self) -> Result<bool> {
        match self.at.take() {
            Some((key, _)) => self.find(Bound::Unbounded, Bound::Excluded(&key), false),
            None => Ok(false),
        }
    }

    fn is_valid(&self) -> bool {
        self.at.is_some()
    }

    fn key(&self) -> &[u8] {
        self.at.as_ref().map_or(&[], |(key, _)| key)
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(self.at.as_ref().map_or(&[], |(_, value)| value))
    }

    fn value_bytes(&self) -> Result<BaseBytes> {
        Ok(self
            .at
            .as_ref()
            .map_or_else(|| Vec::new().into(), |(_, value)| value.clone()))
    }

    fn value_len(&self) -> usize {
        self.at.as_ref().map_or(0, |(_, value)| value.len())
    }
}
