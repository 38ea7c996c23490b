//! A find as the planner sees it.

use crate::catalog::IndexInfo;
use nestor_model::{Document, Error, ErrorCode, Str};
use nestor_query::collation::Collator;
use nestor_query::expr::Deps;
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Projection;
use nestor_query::sort::{SortBy, SortSpec};
use std::sync::Arc;

/// A find, parsed.
#[derive(Clone, Debug)]
pub struct FindQuery {
    /// The condition, normalized.
    pub filter: Arc<MatchExpr>,
    /// The order of results.
    pub sort: Option<Arc<SortSpec>>,
    /// How strings compare in the whole operation. Filter and sort have it in themselves.
    pub collation: Option<Collator>,
    /// `$natural` as sort or hint: `true` forwards. Demands a collection scan.
    pub natural: Option<bool>,
    /// The projection of each result.
    pub projection: Option<Arc<Projection>>,
    /// Results are the index keys by which they were found, and nothing of the projection.
    pub return_key: bool,
    /// Results to leave out.
    pub skip: u64,
    /// Results to give at most.
    pub limit: Option<u64>,
    /// Wait for more at the end.
    pub tailable: bool,
    /// Name of the only index that may be used.
    pub hint: Option<Str>,
    /// First key of the hinted index to look at, checked by [`crate::key_range::check`].
    pub min: Option<Document>,
    /// The key of the hinted index before which to stop, checked likewise.
    pub max: Option<Document>,
    /// The only indexes that may be used, whatever the hint says; set by index filters and query settings.
    pub allowed: Option<Vec<AllowedIndex>>,
    /// When none of those gives a plan, all may be used; set by query settings.
    pub any_otherwise: bool,
    /// Rows carry how far they are from the point of the filter's `$near`: `$geoNear`'s do.
    pub keeps_distance: bool,
}

/// The form in which the consumer of a plan wants its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// It looks at the documents.
    Documents,
    /// It counts the rows.
    Count,
    /// It takes one row for each value, or more.
    Distinct,
}

/// A hint, checked against the collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// `$natural`: `true` forwards.
    pub natural: Option<bool>,
    /// Name of the index to use.
    pub index: Option<Str>,
}

impl Hint {
    /// Makes `query` follow the hint.
    pub fn apply(&self, query: &mut FindQuery) {
        query.natural = self.natural.or(query.natural);
        query.hint.clone_from(&self.index);
    }
}

/// An index as an index filter names it.
#[derive(Clone, Debug)]
pub enum AllowedIndex {
    /// By its name.
    Name(Str),
    /// By its key pattern.
    KeyPattern(Document),
}

impl AllowedIndex {
    /// Whether it names `index`.
    pub fn names(&self, index: &IndexInfo) -> bool {
        match self {
            Self::Name(name) => index.name == *name,
            Self::KeyPattern(pattern) => nestor_model::values_equal(pattern, &index.key_pattern),
        }
    }
}

impl FindQuery {
    /// Whether the result tells by which index keys it was found.
    pub fn keeps_keys(&self) -> bool {
        let projected = || self.projection.as_ref().is_some_and(|p| reads_metadata(p, "indexKey"));
        self.return_key || projected()
    }

    /// Whether rows are to carry how far they are.
    pub(crate) fn wants_distance(&self) -> bool {
        let sorts_by = |spec: &Arc<SortSpec>| {
            let mut parts = spec.parts().iter();
            parts.any(|part| matches!(part.by, SortBy::Meta("geoNearDistance")))
        };
        self.keeps_distance
            || self.sort.as_ref().is_some_and(sorts_by)
            || self.projection.as_ref().is_some_and(|p| reads_distance(p))
    }

    /// Every document that matches.
    pub fn all(filter: Arc<MatchExpr>) -> Self {
        Self {
            filter,
            sort: None,
            collation: None,
            natural: None,
            projection: None,
            return_key: false,
            skip: 0,
            limit: None,
            tailable: false,
            hint: None,
            min: None,
            max: None,
            allowed: None,
            any_otherwise: false,
            keeps_distance: false,
        }
    }
}

/// The error 291: a hint leaves no plan, or no index serves a `$near`.
pub fn no_plan(query: &FindQuery) -> Error {
    let why = match query.filter.near() {
        Some(_) => "unable to find index for $geoNear query",
        None => "No query solutions",
    };
    no_solution(why)
}

/// The error 291, and why.
pub fn no_solution(why: &str) -> Error {
    Error::new(
        ErrorCode::NoQueryExecutionPlans,
        format!("error processing query: planner returned error :: caused by :: {why}"),
    )
}

/// Whether a projection has `{$meta: "geoNearDistance"}` or `{$meta: "geoNearPoint"}`.
fn reads_distance(projection: &Projection) -> bool {
    reads_metadata(projection, "geoNearDistance") || reads_metadata(projection, "geoNearPoint")
}

/// Whether a projection has `{$meta: "sortKey"}`.
pub fn reads_sort_key(projection: &Projection) -> bool {
    reads_metadata(projection, "sortKey")
}

fn reads_metadata(projection: &Projection, name: &str) -> bool {
    let mut deps = Deps::default();
    projection.dependencies(&mut deps);
    deps.metadata.contains(name)
}
