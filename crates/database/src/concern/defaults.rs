//! The read and write concern of statements that name none, as an operator set them.
//!
//! The levels that can be the default of reads (`local`, `available`, `majority`) read the same on one node, so that only
//! the default of writes makes a difference to statements.

use super::write::WriteConcern;
use crate::lock;
use nestor_model::{Document, Timestamp};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The defaults, for statements to take.
#[derive(Debug, Default)]
pub struct Defaults {
    /// A write concern was set: without one statements look no further.
    any: AtomicBool,
    held: Mutex<DefaultConcerns>,
    /// Held while they are changed and stored.
    changing: Mutex<()>,
}

/// The defaults that were set, and when.
#[derive(Clone, Debug, Default)]
pub struct DefaultConcerns {
    /// `defaultReadConcern` as set.
    pub read: Option<Document>,
    /// `defaultWriteConcern` as set, with what it left out.
    pub write: Option<Document>,
    /// The same, understood.
    pub write_concern: Option<WriteConcern>,
    /// When: cluster time and wall clock.
    pub updated: Option<(Timestamp, i64)>,
}

impl Defaults {
    /// The defaults that were set.
    pub fn get(&self) -> DefaultConcerns {
        lock(&self.held).clone()
    }

    /// Sets them.
    pub fn set(&self, concerns: DefaultConcerns) {
        let mut held = lock(&self.held);
        self.any.store(concerns.write_concern.is_some(), Ordering::Release);
        *held = concerns;
    }

    /// Keeps others from changing them until it is dropped.
    pub fn change(&self) -> MutexGuard<'_, ()> {
        lock(&self.changing)
    }

    /// Gives a statement the default write concern where it has none of its own, or its `w` where it leaves that out.
    /// True when it has the default now.
    pub fn apply(&self, own: &mut Option<WriteConcern>) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        let Some(default) = lock(&self.held).write_concern.clone() else {
            return false;
        };
        match own {
            None => {
                *own = Some(default);
                true
            }
            Some(own) => {
                if !own.has_w {
                    own.w = default.w;
                }
                false
            }
        }
    }
}
