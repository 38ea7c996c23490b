//! Traffic control: limits that an operator sets for operations of an application, a user, a comment or a query shape.
//!
//! A [`Limit`] says whom it is for, how many of their operations may begin in a second, how many may run at a time, how much processor
//! time they may take together, and before or behind whom they come when long operations take turns. Operations that meet a limit
//! are refused at once, before they have done anything, with an error that drivers retry after a while. One that runs already and
//! has used up what it may take of the processor pauses ([`pace`]).
//!
//! While no limit is set, an operation pays one load for all of this.
//!
//! In reading order: [`gauge`] is what a limit has left, [`limit`] the limit, [`pace`] what a running operation takes of it, [`admitted`] what it leaves when it is
//! over.
//! Labels and code of the refusal: driver specification "Client Backpressure".

pub mod admitted;
pub mod gauge;
pub mod limit;
pub mod pace;

use crate::observe::counters::Counter;
use limit::{Definition, Limit, Marks};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

/// All limits.
#[derive(Debug, Default)]
pub struct Traffic {
    any: AtomicBool,
    any_shape: AtomicBool,
    limits: RwLock<Arc<Vec<Arc<Limit>>>>,
    /// Operations that were refused since the start, by any limit, those included that are set no more.
    pub refused: Counter,
}

impl Traffic {
    /// Puts limits in force. Those that were in force before as they are now go on counting.
    pub fn replace(&self, definitions: Vec<Definition>) {
        let now = Instant::now();
        let mut held = self.limits.write().unwrap_or_else(PoisonError::into_inner);
        let limits: Vec<Arc<Limit>> = definitions
            .into_iter()
            .map(|definition| {
                let before = held.iter().find(|limit| limit.definition == definition);
                before.cloned().unwrap_or_else(|| Arc::new(Limit::new(definition, now)))
            })
            .collect();
        self.any.store(!limits.is_empty(), Ordering::Release);
        let has_shape = |limit: &Arc<Limit>| limit.definition.subject.shape.is_some();
        self.any_shape.store(limits.iter().any(has_shape), Ordering::Release);
        *held = Arc::new(limits);
    }

    /// Whether there are limits.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Whether there are limits for query shapes.
    #[inline]
    pub fn has_shapes(&self) -> bool {
        self.any_shape.load(Ordering::Acquire)
    }

    /// All limits, in the order in which they were set.
    pub fn all(&self) -> Arc<Vec<Arc<Limit>>> {
        self.limits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The limits for an operation: those for query shapes if its shape is among `marks`, else the others.
    pub fn of(&self, marks: &Marks<'_>) -> Vec<Arc<Limit>> {
        let all = self.all();
        let wanted = |limit: &&Arc<Limit>| {
            let subject = &limit.definition.subject;
            subject.shape.is_some() == marks.shape.is_some() && subject.covers(marks)
        };
        all.iter().filter(wanted).cloned().collect()
    }
}
