//! What plans of the find layer cost, as far as that decides between them and other ways to read a table.

use super::tables::{COSTED_MIN, Reading, words};
use nestor_exec::catalog::indexes;
use nestor_exec::estimate::least_entries;
use nestor_exec::{BoxOperator, run_one_of};
use nestor_model::{Document, RawDocBuf, Result, Str};
use nestor_planner::choose::candidates_for;
use nestor_planner::find::Wanted;
use nestor_planner::{FindQuery, PlanNode};
use nestor_storage::Collection;
use std::sync::Arc;

/// The plans for what a filter finds in a collection.
pub(super) struct Costed {
    /// How many documents can be read one after another for each that an index finds: 0 when none serves the filter, infinity where an index
    /// has all that is looked at, or it is not known.
    pub per_found: f64,
    plans: Vec<PlanNode>,
    query: FindQuery,
    filter: RawDocBuf,
}

impl Costed {
    /// The only plan, opened; `None` between several.
    ///
    /// Errors: those of its operators.
    pub(super) fn open(self, collection: &Arc<Collection>) -> Result<Option<BoxOperator>> {
        if self.plans.len() != 1 {
            return Ok(None);
        }
        let words = words(&self.filter);
        run_one_of(self.plans, Wanted::Documents, &self.query, words.written(), collection).map(Some)
    }
}

impl Reading<'_, '_> {
    /// The plans for what a filter finds in a collection.
    fn plans(&self, filter: &Document, reads: Option<Arc<[Str]>>, collection: &Collection) -> Result<Costed> {
        let filter = filter.to_raw();
        let query = self.query(&words(&filter), reads)?;
        Ok(Costed {
            per_found: f64::INFINITY,
            plans: candidates_for(&query, Wanted::Documents, indexes(collection)?),
            query,
            filter,
        })
    }

    /// About how many documents a filter finds, if one range of an index has them; `None` when that is not known.
    ///
    /// Errors: those of the filter and of storage.
    pub(super) fn estimated(&self, collection: &Collection, filter: &Document) -> Result<Option<u64>> {
        let plans = self.plans(filter, None, collection)?.plans;
        Ok(least_entries(&plans, collection, self.view)?.map(|entries| entries.count))
    }

    /// What it costs to find what a filter finds; `None` in small collections. `reads` are the fields that are looked at, if an index may have them
    /// all.
    ///
    /// Errors: those of the filter and of storage.
    pub(super) fn costed(
        &self,
        collection: &Collection,
        filter: &Document,
        reads: Option<Arc<[Str]>>,
    ) -> Result<Option<Costed>> {
        let documents = collection.state.documents();
        if documents < COSTED_MIN {
            return Ok(None);
        }
        let mut costed = self.plans(filter, reads, collection)?;
        costed.per_found = match costed.plans.as_slice() {
            [PlanNode::CollScan(_)] => 0.0,
            plans => {
                let least = least_entries(plans, collection, self.view)?;
                let fetched = least.filter(|least| least.fetched);
                fetched.map_or(f64::INFINITY, |least| documents as f64 / least.count as f64)
            }
        };
        Ok(Some(costed))
    }
}
