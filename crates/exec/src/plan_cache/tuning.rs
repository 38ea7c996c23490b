//! How long candidates are on trial, and what the plan cache keeps: MongoDB's parameters with its defaults.

/// The settings that an operator may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Units of work that each candidate gets at least (`internalQueryPlanEvaluationWorks`).
    pub works_min: u64,
    /// Units of work as a share of the collection's documents, if that is more (`internalQueryPlanEvaluationCollFraction`).
    pub documents_share: f64,
    /// Rows after which a trial has seen enough of a plan (`internalQueryPlanEvaluationMaxResults`).
    pub rows_max: u64,
    /// A cached plan may take so many times the works it was cached with (`internalQueryCacheEvictionRatio`).
    pub eviction_ratio: f64,
    /// By what an inactive entry's figure grows when a trial took more (`internalQueryCacheWorksGrowthCoefficient`).
    pub works_growth: f64,
    /// Entries of one collection at most (`internalQueryCacheMaxEntriesPerCollection`); the least recently used gives way.
    pub entries_max: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            works_min: 10_000,
            documents_share: 0.3,
            rows_max: 101,
            eviction_ratio: 10.0,
            works_growth: 2.0,
            entries_max: 5_000,
        }
    }
}

impl Tuning {
    /// Units of work of a trial over a collection of so many documents.
    pub(crate) fn works_max(&self, documents: i64) -> u64 {
        self.works_min.max((documents as f64 * self.documents_share) as u64)
    }

    /// Rows that are enough for a query with this limit.
    pub(crate) fn rows_max(&self, limit: Option<u64>) -> usize {
        let rows = limit.map_or(self.rows_max, |limit| limit.min(self.rows_max));
        usize::try_from(rows.max(1)).unwrap_or(usize::MAX)
    }

    /// Units of work that a plan may take that was cached with `works`.
    pub(crate) fn works_cached(&self, works: u64) -> u64 {
        (works as f64 * self.eviction_ratio) as u64
    }

    /// The figure of an inactive entry after a trial that took more.
    pub(crate) fn grown(&self, works: u64) -> u64 {
        ((works as f64 * self.works_growth) as u64).max(works.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_the_settings() {
        let tuning = Tuning::default();
        assert_eq!(
            (tuning.works_max(1_000), tuning.works_max(1_000_000)),
            (10_000, 300_000)
        );
        assert_eq!((tuning.rows_max(None), tuning.rows_max(Some(5))), (101, 5));
        assert_eq!((tuning.works_cached(7), tuning.grown(7), tuning.grown(0)), (70, 14, 1));
        let tuning = Tuning {
            works_min: 1,
            documents_share: 0.0,
            rows_max: 0,
            eviction_ratio: 0.5,
            works_growth: 1.01,
            entries_max: 0,
        };
        assert_eq!((tuning.works_max(1_000), tuning.rows_max(Some(5))), (1, 1));
        assert_eq!((tuning.works_cached(7), tuning.grown(7)), (3, 8));
    }
}
