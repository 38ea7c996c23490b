//! Which limits of traffic control a statement has been let in by.

use super::Statement;
use crate::lock;
use crate::observe::latency::Class;
use crate::shape::Shape;
use crate::traffic::limit::{Limit, Marks};
use crate::turns::Turns;
use nestor_model::Result;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Whether a statement begins, or goes on with what was let in before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It begins.
    Begins,
    /// It is another part of an operation that was let in: a batch of a cursor. It may be refused, but is no operation more.
    Continues,
    /// It has to go on: it waits and runs again, or belongs to a transaction that has begun.
    MustGoOn,
}

impl Statement<'_> {
    /// Asks the limits whether the statement may run, those for query shapes left out: the shape is not known yet. `runs_again` says
    /// that it was let in before and has waited.
    ///
    /// Error: 462, with the limit's name.
    pub fn admit(&self, runs_again: bool) -> Result<()> {
        let traffic = &self.database.traffic;
        if !traffic.is_on() || !matches!(self.op.class(), Class::Reads | Class::Writes) {
            return Ok(());
        }
        let limits = self.with_marks(|marks| traffic.of(&marks));
        self.enter(&limits, if runs_again { Entry::MustGoOn } else { self.entry() })
    }

    /// Asks the limits for query shapes. Costs one load while there are none.
    ///
    /// Error: 462, with the limit's name.
    pub fn admit_shape(&self, shape: &Shape<'_>) -> Result<()> {
        self.admit_shapes(|| BTreeSet::from([shape.hash()]))
    }

    /// As [`Statement::admit_shape`], for an operation that has several shapes, of which `hashes` are the hashes: a command of several updates.
    /// For each limit it is one operation.
    ///
    /// Error: 462, with the limit's name.
    pub fn admit_shapes(&self, hashes: impl FnOnce() -> BTreeSet<String>) -> Result<()> {
        let traffic = &self.database.traffic;
        if !traffic.has_shapes() {
            return Ok(());
        }
        let limits: Vec<Arc<Limit>> = self.with_marks(|marks| {
            let of_shape = |hash: &String| {
                let shape = Some(hash.as_str());
                traffic.of(&Marks { shape, ..marks })
            };
            hashes().iter().flat_map(of_shape).collect()
        });
        self.enter(&limits, self.entry())
    }

    /// Asks the limits for query shapes that a cursor was opened under.
    ///
    /// Error: 462, with the limit's name.
    pub fn admit_batch(&self, limits: &[Arc<Limit>]) -> Result<()> {
        let entry = match self.entry() {
            Entry::Begins => Entry::Continues,
            other => other,
        };
        self.enter(limits, entry)
    }

    /// The limits for query shapes that let the statement in.
    pub fn limits_of_shape(&self) -> Vec<Arc<Limit>> {
        let admitted = self.admitted.borrow();
        let has_shape = |limit: &&Arc<Limit>| limit.definition.subject.shape.is_some();
        admitted.limits().iter().filter(has_shape).cloned().collect()
    }

    fn entry(&self) -> Entry {
        match self.terms.in_transaction && !self.terms.start_transaction {
            true => Entry::MustGoOn,
            false => Entry::Begins,
        }
    }

    fn enter(&self, limits: &[Arc<Limit>], entry: Entry) -> Result<()> {
        if limits.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let (begins, has_to) = (entry == Entry::Begins, entry == Entry::MustGoOn);
        let mut admitted = self.admitted.borrow_mut();
        for limit in limits {
            if let Err(met) = limit.enter(begins, has_to, now) {
                self.database.traffic.refused.add(1);
                return Err(limit.refusal(met));
            }
            admitted.add(limit.clone());
        }
        // Of several the lowest counts.
        let priorities = admitted.limits().iter().filter_map(|limit| limit.definition.priority);
        if let Some(lowest) = priorities.min() {
            Turns::set_priority(lowest);
        }
        Ok(())
    }

    fn with_marks<T>(&self, look: impl FnOnce(Marks<'_>) -> T) -> T {
        let app_name = self.slot.application();
        let user = lock(&self.slot.user).clone();
        look(Marks {
            shape: None,
            app_name: app_name.as_deref().filter(|name| !name.is_empty()),
            user: user.as_ref(),
            comment: self.terms.comment,
        })
    }
}
