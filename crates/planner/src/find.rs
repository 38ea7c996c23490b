//! A find as the planner sees it.

use crate::catalog::{IndexInfo, Indexes};
use nestor_model::{Document, Error, ErrorCode, Namespace, Result, Str, bail};
use nestor_query::collation::Collator;
use nestor_query::expr::{Deps, double_six};
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Projection;
use nestor_query::sort::{SortBy, SortSpec};
use std::sync::Arc;

/// The metadata that a text search notes.
const TEXT_SCORE: &str = "textScore";

/// The metadata in which the score of a text search is found.
pub(crate) const TEXT_SCORES: [&str; 2] = [TEXT_SCORE, "score"];

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
    /// The only fields of results that somebody looks at, if that is known; there need not be others in results, which are not copied for
    /// that, however. Not together with a projection.
    pub reads: Option<Arc<[Str]>>,
    /// Those of them of which it counts whether there is nothing or null.
    pub reads_exactly: Arc<[Str]>,
    /// It counts, too, in which order documents have them, and what is a document without them.
    pub reads_shape: bool,
    /// Results to leave out.
    pub skip: u64,
    /// Results to give at most.
    pub limit: Option<u64>,
    /// Wait for more at the end.
    pub tailable: bool,
    /// Name of the only index that may be used.
    pub hint: Option<Str>,
    /// The collection is to be read by columns as far as it has them.
    pub by_columns: bool,
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
    /// Rows carry what they score for the filter's `$text`: stages behind the find ask for it.
    pub keeps_score: bool,
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
    /// `$columns`: by columns, whatever indexes there are.
    pub columns: bool,
}

impl Hint {
    /// Makes `query` follow the hint.
    pub fn apply(&self, query: &mut FindQuery) {
        query.natural = self.natural.or(query.natural);
        query.hint.clone_from(&self.index);
        query.by_columns = self.columns;
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

    /// Whether rows are to carry what they score.
    pub(crate) fn wants_score(&self) -> bool {
        self.keeps_score || self.wants_own_score()
    }

    /// Whether its own sort or projection asks for that.
    pub(crate) fn wants_own_score(&self) -> bool {
        TEXT_SCORES.iter().any(|name| {
            let sorts_by = |spec: &Arc<SortSpec>| spec.parts().iter().any(|part| part.by == SortBy::Meta(name));
            self.sort.as_ref().is_some_and(sorts_by)
                || self.projection.as_ref().is_some_and(|p| reads_metadata(p, name))
        })
    }

    /// Refuses a sort or a projection by what nothing scores.
    ///
    /// Error: 40218.
    pub fn check_scores(&self) -> Result<()> {
        match self.wants_own_score() && self.filter.text().is_none() {
            true => Err(no_scores()),
            false => Ok(()),
        }
    }

    /// Makes the filter's `$text` one for the text index among those of the collection.
    ///
    /// Errors: 2 for what a text search cannot be combined with; 27 without a text index.
    pub fn bind_text(&mut self, indexes: &Indexes) -> Result<()> {
        if self.filter.text().is_none() {
            return Ok(());
        }
        let refused = [
            (self.hint.is_some(), "text and hint not allowed in same query"),
            (
                self.natural.is_some(),
                "text expression not allowed with $natural sort order",
            ),
            (self.by_columns, "text and $columns hint not allowed in same query"),
            (self.return_key, "text and returnKey are not allowed in same query"),
            (self.tailable, "text and tailable cursor not allowed in same query"),
        ];
        if let Some((_, why)) = refused.iter().find(|(applies, _)| *applies) {
            bail!(BadValue, "{why}");
        }
        let Some(spec) = indexes.iter().find_map(|index| index.kind.text()) else {
            bail!(IndexNotFound, "text index required for $text query");
        };
        self.filter = Arc::new(self.filter.with_text_index(spec)?);
        Ok(())
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
            reads: None,
            reads_exactly: Arc::default(),
            reads_shape: true,
            skip: 0,
            limit: None,
            tailable: false,
            hint: None,
            by_columns: false,
            min: None,
            max: None,
            allowed: None,
            any_otherwise: false,
            keeps_distance: false,
            keeps_score: false,
        }
    }
}

/// The error 291: a hint leaves no plan, or no index serves a `$near`.
///
/// For the latter it tells where and which path, as MongoDB does: there are clients that read the path from it and make the index.
pub fn no_plan(query: &FindQuery, ns: &Namespace) -> Error {
    if let Some((path, near)) = query.filter.near() {
        let farthest = double_six(near.max_given().unwrap_or(f64::MAX));
        let is_sphere = i32::from(near.name() == "$nearSphere");
        let tree = format!("GEONEAR  field={path} maxdist={farthest} isNearSphere={is_sphere}");
        return Error::new(
            ErrorCode::NoQueryExecutionPlans,
            format!(
                "error processing query: ns={ns}Tree: {tree}\nSort: {{}}\nProj: {{}}\n planner returned error :: caused by :: \
                 unable to find index for $geoNear query"
            ),
        );
    }
    let why = match query.filter.text().is_some() {
        true => {
            "failed to use text index to satisfy $text query (if text index is compound, are equality predicates given for all prefix fields?)"
        }
        false => "No query solutions",
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

/// The error 40218: scores are asked for, and there is no text search.
pub(crate) fn no_scores() -> Error {
    Error::location(40218, "query requires textScore metadata, but it is not available")
}

/// Whether this is the order of what a text search finds: the best first, and nothing else.
pub(crate) fn is_best_first(spec: &SortSpec) -> bool {
    matches!(spec.parts(), [part] if part.by == SortBy::Meta(TEXT_SCORE))
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
