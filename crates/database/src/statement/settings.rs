//! Query settings, as they apply to the shape of a statement's query.

use super::Statement;
use crate::shape::Shape;
use nestor_model::{Document, Namespace, Result};
use nestor_planner::FindQuery;
use nestor_planner::shape::Written;

impl Statement<'_> {
    /// Looks up what is set for operations of that shape, for all that is planned from here on. Error: 411 when those are
    /// refused.
    pub fn look_up_settings(&self, shape: &Shape<'_>) -> Result<()> {
        if let Some(entry) = self.database.query_settings.of(shape) {
            entry.check_rejection()?;
            *self.query_settings.borrow_mut() = Some(entry);
        }
        Ok(())
    }

    /// As [`Statement::look_up_settings`], for an operation that is explained: it may be one that is refused.
    pub fn show_settings(&self, shape: &Shape<'_>) {
        *self.query_settings.borrow_mut() = self.database.query_settings.of(shape);
    }

    /// The settings, as explain shows them.
    pub fn shown_settings(&self) -> Option<Document> {
        let settings = self.query_settings.borrow();
        settings.as_ref().map(|entry| entry.settings.clone())
    }

    /// Whether the indexes of a collection are restricted by what is set.
    pub fn are_indexes_set(&self, ns: &Namespace) -> bool {
        let settings = self.query_settings.borrow();
        settings
            .as_ref()
            .is_some_and(|entry| entry.hints.iter().any(|hint| hint.ns == *ns))
    }

    /// Makes a query use the indexes that are set for it, or else those that a filter of its shape allows. True when there
    /// are such, and its own hint does not count.
    pub fn restrict_indexes(&self, ns: &Namespace, query: &mut FindQuery, written: Written<'_>) -> bool {
        // A range of keys is one of the hinted index.
        let is_range = query.min.is_some() || query.max.is_some();
        let settings = self.query_settings.borrow();
        let is_set = !is_range && settings.as_ref().is_some_and(|entry| entry.restrict(ns, query));
        is_set || self.apply_index_filter(ns, query, written)
    }
}
