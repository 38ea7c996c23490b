//! Statements run on the statement service.
//!
//! [`find`] turns what a scan knows of its rows into a filter of the find layer (with [`days`] for dates) and [`ordered`] into an order of it, `facts` has what is known of the session, `sizes` what tables take ([`deferred`] what its transaction has yet to look at), [`tables`] reads the catalog (with [`partitions`] of what is divided),
//! [`opened`] opens tables (`files`, by [`probe`] where values of an index are known, or by `inverted` what is within them, by `element_index` where the rows are elements of an array, by `lookup` for the keys of many rows, by what `costed` says, by [`columns`] where these have all that is read, passing over what `bounds` exclude) and [`reader`] makes rows of their documents, `relations` shows them in catalogs, [`query`] runs queries, [`held`] keeps their rows from others, [`gathered`] counts what waits, [`explain`] shows plans, [`procedures`] has calls of routines that run statements ([`built_in`] those that triggers call and nobody has made).

mod activity;
mod bounds;
pub mod built_in;
pub mod columns;
pub mod constants;
mod costed;
pub mod days;
pub mod deferred;
mod element_index;
pub mod excluded;
pub mod explain;
mod explain_formats;
mod facts;
pub(crate) mod files;
pub mod find;
pub mod gathered;
pub mod held;
pub mod included;
pub(crate) mod index_facts;
pub mod indexed;
pub mod inverted;
mod lookup;
pub mod named;
pub mod numbers;
pub mod opened;
pub mod ordered;
pub mod partitions;
pub mod planned;
mod policies;
pub mod predicate;
pub mod probe;
pub mod procedures;
pub mod query;
pub mod reader;
pub(crate) mod references;
mod relations;
mod roles;
mod said;
pub mod sequences;
mod shown;
mod sizes;
pub mod tables;

use nestor_database::statement::Statement;
use nestor_exec::relation::{Counts, Shared};
use std::rc::Rc;

/// Tells a statement what its scans have read once they are over, also when they ended with an error: make it before the operators.
pub(crate) struct Counting<'s, 'r> {
    statement: &'s Statement<'r>,
    counts: Rc<Counts>,
}

impl<'s, 'r> Counting<'s, 'r> {
    /// For the operators that share `shared`.
    pub(crate) fn new(statement: &'s Statement<'r>, shared: &Shared) -> Self {
        Self {
            statement,
            counts: shared.counts.clone(),
        }
    }
}

impl Drop for Counting<'_, '_> {
    fn drop(&mut self) {
        self.statement.observe_totals(self.counts.read.take());
    }
}
