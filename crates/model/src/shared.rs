//! What owned documents and arrays share between clones, and what is known of its size.

use crate::raw::{LEVEL_BYTES, RawDoc};
use crate::statement::note;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known of fields or items without going through them.
#[derive(Clone, Copy)]
pub(crate) struct Measure {
    /// Bytes that the fields or items take.
    pub(crate) weight: usize,
    /// The most levels of documents and arrays, counting this one.
    pub(crate) levels: usize,
}

impl Measure {
    const LEVELS_BITS: u32 = 16;
    const LEVELS_MAX: usize = (1 << Self::LEVELS_BITS) - 1;

    pub(crate) fn of_raw(raw: RawDoc<'_>) -> Self {
        Self {
            weight: raw.len(),
            levels: 1 + raw.len() / LEVEL_BYTES,
        }
    }

    /// Never 0.
    fn packed(self) -> u64 {
        let weight = (self.weight as u64).clamp(1, u64::MAX >> Self::LEVELS_BITS);
        weight << Self::LEVELS_BITS | self.levels.min(Self::LEVELS_MAX) as u64
    }

    fn unpacked(packed: u64) -> Self {
        Self {
            weight: (packed >> Self::LEVELS_BITS) as usize,
            levels: packed as usize & Self::LEVELS_MAX,
        }
    }
}

/// Fields or items that several values share, with their measure once somebody asked for it.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    pub(crate) inner: Vec<T>,
    /// Packed; 0 when unknown.
    measure: AtomicU64,
}

impl<T> Shared<T> {
    pub(crate) fn new(inner: Vec<T>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            measure: AtomicU64::new(0),
        })
    }

    /// `measured` gives that of one field or item.
    pub(crate) fn measure(&self, measured: impl Fn(&T) -> Measure) -> Measure {
        let known = self.measure.load(Ordering::Relaxed);
        if known > 0 {
            return Measure::unpacked(known);
        }
        note(self.inner.len() / 8);
        let mut all = Measure {
            weight: size_of::<Self>(),
            levels: 0,
        };
        for one in self.inner.iter().map(measured) {
            all.weight = all.weight.saturating_add(one.weight);
            all.levels = all.levels.max(one.levels);
        }
        all.levels += 1;
        self.measure.store(all.packed(), Ordering::Relaxed);
        all
    }

    /// The fields or items, to be changed; a copy of their own if others share them.
    pub(crate) fn make_mut(this: &mut Arc<Self>) -> &mut Vec<T>
    where
        T: Clone,
    {
        let shared = Arc::make_mut(this);
        *shared.measure.get_mut() = 0;
        &mut shared.inner
    }
}

impl<T: Clone> Clone for Shared<T> {
    fn clone(&self) -> Self {
        note(self.inner.len() / 8);
        Self {
            inner: self.inner.clone(),
            measure: AtomicU64::new(0),
        }
    }
}
