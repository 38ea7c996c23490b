//! From a find query to its plan.

use crate::catalog::IndexInfo;
use crate::collation::answers;
use crate::plan::{IdLookup, PlanNode};
use nestor_model::{BsonType, Document, Error, ErrorCode, Str, Value};
use nestor_query::collation::Collator;
use nestor_query::expr::Deps;
use nestor_query::matcher::{CompareOp, MatchExpr, Predicate};
use nestor_query::projection::Projection;
use nestor_query::sort::SortSpec;
use std::sync::Arc;

/// What a find asks for, parsed.
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
    /// What becomes of each result.
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
}

/// What the consumer of a plan makes of its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// It looks at the documents.
    Documents,
    /// It counts the rows.
    Count,
    /// It takes one row for each value, or more.
    Distinct,
}

/// What a hint asks for, checked against the collection.
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
        }
    }
}

/// The error 291: a hint leaves no plan.
pub fn no_plan() -> Error {
    Error::new(
        ErrorCode::NoQueryExecutionPlans,
        "error processing query: planner returned error :: caused by :: No query solutions",
    )
}

/// Puts what a query does with found rows on top of how they are found. `ordered`: they come in its order.
pub(crate) fn finish(query: &FindQuery, found: PlanNode, ordered: bool) -> PlanNode {
    let mut node = found;
    if let Some(spec) = &query.sort {
        let keep_key = query.projection.as_ref().is_some_and(|p| reads_sort_key(p));
        if !ordered || keep_key {
            node = PlanNode::Sort {
                input: Box::new(node),
                spec: spec.clone(),
                limit: query.limit.map(|limit| limit.saturating_add(query.skip)),
                keep_key,
            };
        }
    }
    if query.skip > 0 {
        let skip = |input| {
            Box::new(PlanNode::Skip {
                input,
                skip: query.skip,
            })
        };
        node = match node {
            // What is skipped needs no document.
            PlanNode::Covered { input, projection } => PlanNode::Covered {
                input: skip(input),
                projection,
            },
            node => *skip(Box::new(node)),
        };
    }
    if query.return_key {
        node = PlanNode::ReturnKey { input: Box::new(node) };
    } else if let Some(projection) = &query.projection {
        node = match node {
            PlanNode::Covered { input, .. } => PlanNode::Covered {
                input,
                projection: Some(projection.clone()),
            },
            node => PlanNode::Project {
                input: Box::new(node),
                projection: projection.clone(),
                positional: projection.needs_match_details().then(|| query.filter.clone()),
            },
        };
    }
    if let Some(limit) = query.limit {
        node = PlanNode::Limit {
            input: Box::new(node),
            limit,
        };
    }
    node
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

/// What a scan has to check of a filter.
pub(crate) fn residual(filter: &Arc<MatchExpr>) -> Option<Arc<MatchExpr>> {
    (!matches!(**filter, MatchExpr::AlwaysTrue)).then(|| filter.clone())
}

/// The lookup when the filter demands one exact `_id`, alone or among other conditions, in a collection that tells
/// `_id`s apart by this collation.
pub fn id_lookup(filter: &Arc<MatchExpr>, collation: Option<&Collator>) -> Option<IdLookup> {
    match &**filter {
        MatchExpr::And(children) => {
            let id = children.iter().find_map(|child| exact_id(child, collation))?;
            Some(IdLookup {
                id: id.clone(),
                filter: Some(filter.clone()),
            })
        }
        single => Some(IdLookup {
            id: exact_id(single, collation)?.clone(),
            filter: None,
        }),
    }
}

/// The `_id` that an equality demands. An `_id` is never an array or a regular expression, so equality with
/// one of those needs a scan to find that nothing matches (or, for an array, that no element does).
fn exact_id<'e>(expr: &'e MatchExpr, collation: Option<&Collator>) -> Option<&'e Value> {
    let MatchExpr::Leaf(leaf) = expr else { return None };
    let Predicate::Compare {
        op: CompareOp::Eq,
        value,
        collator,
    } = &leaf.predicate
    else {
        return None;
    };
    let exact = leaf.path.as_str() == "_id"
        && answers(collation, collator.as_ref(), value)
        && !matches!(
            value.bson_type(),
            BsonType::Array | BsonType::Regex | BsonType::Null | BsonType::Undefined | BsonType::Missing
        );
    exact.then_some(value)
}
