//! The plan tree: nodes of finds here, stages of pipelines in [`StageNode`], the plans that stages run in [`InnerPlan`].

mod inner;
mod stage;

pub use self::inner::{EqualityAccess, EqualityPlan, InnerPlan};
pub use self::stage::{CHANGE_HEADER, FilteredChanges, LookupUnwind, StageNode, StageOp};

use crate::access::IndexBounds;
use crate::catalog::{IndexInfo, KeyTest};
use crate::find::FindQuery;
use crate::interval::Interval;
use crate::kind::NodeKind;
use nestor_model::{Document, Namespace, Path, Str, Value};
use nestor_query::collation::Collator;
use nestor_query::geo::Near;
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Projection;
use nestor_query::sort::SortSpec;
use nestor_query::text::TextSearch;
use std::sync::Arc;

/// A node of a plan, with its inputs. Names in the comments are those that explain prints.
#[derive(Clone, Debug)]
pub enum PlanNode {
    /// EOF: no rows.
    Eof,
    /// COLLSCAN: every record in the order of record keys.
    CollScan(CollScan),
    /// IDHACK / EXPRESS: the one record with this `_id`.
    IdLookup(IdLookup),
    /// IXSCAN: index entries within bounds; its rows have no document.
    IndexScan(IndexScan),
    /// GEO_NEAR_2DSPHERE, GEO_NEAR_2D: the documents of index entries, nearest first.
    GeoNear(Box<GeoNear>),
    /// TEXT_OR: the documents of terms of a text index, with scores.
    TextOr(Box<TextOr>),
    /// TEXT_MATCH: the documents that have what a `$text` asks for.
    TextMatch(Box<TextMatch>),
    /// FETCH: the documents of rows that are index entries.
    Fetch {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// The conditions that the index could not decide.
        filter: Option<Arc<MatchExpr>>,
    },
    /// PROJECTION_COVERED: index entries become documents of just the key's fields.
    Covered {
        /// Where entries come from.
        input: Box<PlanNode>,
        /// The projection; `None` leaves that to an operator above.
        projection: Option<Arc<Projection>>,
    },
    /// OR: the rows of each input, each record once.
    Or {
        /// One per branch.
        inputs: Vec<PlanNode>,
    },
    /// SORT_MERGE: inputs that are in order, into one order.
    SortMerge {
        /// One per branch.
        inputs: Vec<PlanNode>,
        /// The order.
        spec: Arc<SortSpec>,
    },
    /// Rows that match; MATCH after other stages.
    Filter {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// The condition.
        filter: Arc<MatchExpr>,
    },
    /// SORT: all rows in the order of `spec`, the first `limit` if given.
    Sort {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// The order.
        spec: Arc<SortSpec>,
        /// How many rows are wanted.
        limit: Option<u64>,
        /// Attach the sort key to rows, for `{$meta: "sortKey"}`.
        keep_key: bool,
    },
    /// SKIP.
    Skip {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// How many rows to leave out.
        skip: u64,
    },
    /// LIMIT.
    Limit {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// How many rows to pass.
        limit: u64,
    },
    /// PROJECTION_SIMPLE / PROJECTION_DEFAULT.
    Project {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// The projection.
        projection: Arc<Projection>,
        /// The filter, when the projection needs to know at which array position it matched.
        positional: Option<Arc<MatchExpr>>,
    },
    /// RETURN_KEY: rows become the index keys by which they were found, empty without an index.
    ReturnKey {
        /// Where rows come from; its scans have [`ScanPurpose::Keys`].
        input: Box<PlanNode>,
    },
    /// Rows become `{field: count}`: one row.
    Count {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// Name of the field.
        field: Str,
    },
    /// A find on a collection, which will run by one of several plans.
    Find(Box<FindPlan>),
    /// Documents that a stage makes of nothing stored: `$documents`, and the stages that read the server's own state.
    Made {
        /// The stage.
        stage: StageNode,
        /// The collection that it runs on, with views resolved; `None` inside `$facet`, which reads the rows of the outer pipeline.
        namespace: Option<Namespace>,
    },
    /// The changes that a stream tells of, read from the log.
    Changes {
        /// The stage; [`StageNode::changes`] has something for it.
        stage: StageNode,
    },
    /// The rows that whoever runs the tree puts in here: those that `$facet` collected, those that equal a value in `$lookup`.
    Given,
    /// Stages on top of a source.
    Pipeline(Box<PipelinePlan>),
}

/// A find on a collection: what is asked for, and the plans that give it.
#[derive(Clone, Debug)]
pub struct FindPlan {
    /// The collection.
    pub namespace: Namespace,
    /// The query.
    pub query: FindQuery,
    /// The plans between which is chosen when it runs, best guess first: none when a hint leaves none, and none when there is no
    /// collection, which is as good as an empty one.
    pub plans: Vec<PlanNode>,
    /// Whether the query was restricted to some of the indexes.
    pub restricted: bool,
    /// Set when the only plan is one that was kept for queries of this shape; others were not made.
    pub kept: Option<Kept>,
}

/// Under what the choice of a plan is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheKey {
    /// The plan shape.
    pub shape: u64,
    /// The shape, and what else decides which plans there are: the indexes that could serve the query, and what depends on
    /// its literals for them. That is whether they imply the filter of a partial index, whether a sparse index has all that they
    /// match, whether they compare as an index with a collation does.
    pub key: u64,
}

/// Facts about a choice that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Under what it is kept.
    pub at: CacheKey,
    /// Units of work that the plan is measured by.
    pub works: u64,
}

/// Stages on top of a source. They are a list and no nest of nodes because there may be thousands of them.
#[derive(Clone, Debug)]
pub struct PipelinePlan {
    /// Where rows come from.
    pub source: PlanNode,
    /// The stages that they pass, in order; at least one.
    pub stages: Vec<StagePlan>,
}

/// A stage of a plan.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// The stage.
    pub node: StageNode,
    /// A sort attaches its key to the rows, because somebody behind it may ask for that.
    pub keep_sort_key: bool,
    /// The plans of the pipelines that it runs; `None` also of those that are to be planned when their rows are wanted.
    pub inner: Option<Arc<InnerPlan>>,
}

/// A scan of a collection.
#[derive(Clone, Debug)]
pub struct CollScan {
    /// Condition on each record.
    pub filter: Option<Arc<MatchExpr>>,
    /// From the first record on, or from the last back.
    pub forward: bool,
    /// Waits for more at the end (capped collections).
    pub tailable: bool,
    /// How the order of the records of a clustered collection may be used.
    pub clustered: Option<Box<Clustered>>,
    /// It reads by columns.
    pub columns: Option<ColumnAccess>,
}

/// How a scan reads by columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnAccess {
    /// What its consumer looks at.
    pub reads: ColumnReads,
    /// What who takes rows of columns gets are elements of an array ([`ColumnReads::Rows`]).
    pub unwinds: Option<Unwinds>,
    /// About how many documents match, by what is known of the values.
    pub estimated: Option<u64>,
}

/// Elements of an array as rows, each in the place of the array, as `$unwind` gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwinds {
    /// The path of the array.
    pub array: Str,
    /// Documents without elements are rows as well.
    pub preserves: bool,
    /// The path where each has its place in the array.
    pub index: Option<Str>,
}

/// The fields of documents that the consumer of a scan by columns looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnReads {
    /// All of them, of the documents for which the scan's condition holds.
    Documents,
    /// The values at these paths.
    Paths {
        /// The paths.
        paths: Arc<[Str]>,
        /// It counts, too, in which order documents have them, and what is a document without them.
        shaped: bool,
    },
    /// The values at these paths of rows that it takes by columns; of others all.
    Rows(Arc<[Str]>),
}

impl CollScan {
    /// The kind of the node.
    pub fn kind(&self) -> NodeKind {
        match self.range() {
            Some(_) => NodeKind::ClusteredScan,
            None if self.columns.is_some() => NodeKind::ColumnScan,
            None => NodeKind::CollScan,
        }
    }

    /// The only `_id`s whose records it reads, if it does not read them all. Strings stand there as sort keys of the
    /// collection's collation.
    pub fn range(&self) -> Option<&Interval> {
        let ids = &self.clustered.as_ref()?.ids;
        (!ids.is_all()).then_some(ids)
    }
}

/// The records of a clustered collection that a scan reads, in the order of their `_id`s.
#[derive(Clone, Debug)]
pub struct Clustered {
    /// The `_id`s: all that match are among them.
    pub ids: Interval,
    /// The collation by which they are in order.
    pub collation: Option<Collator>,
}

/// A scan of an index.
#[derive(Clone, Debug)]
pub struct IndexScan {
    /// The index.
    pub index: Arc<IndexInfo>,
    /// Which entries.
    pub bounds: IndexBounds,
    /// In the order of keys, or backwards.
    pub forward: bool,
    /// Condition on the key's values.
    pub key_filter: Option<Arc<MatchExpr>>,
    /// Entries that do not pass are passed over. It decides nothing else: the documents of the others are checked.
    pub key_test: Option<KeyTest>,
    /// The purpose of the entries.
    pub purpose: ScanPurpose,
}

/// A search of an index around a point.
#[derive(Clone, Debug)]
pub struct GeoNear {
    /// The index.
    pub index: Arc<IndexInfo>,
    /// The stored part that tells of distances.
    pub at: usize,
    /// Which entries, by the other parts.
    pub bounds: IndexBounds,
    /// Where locations are.
    pub path: Path,
    /// The point, and which distances count.
    pub near: Arc<Near>,
    /// Rows carry the distance and the location as metadata.
    pub keeps_distance: bool,
}

impl GeoNear {
    /// The kind of the node.
    pub fn kind(&self) -> NodeKind {
        self.index
            .kind
            .nearest()
            .map_or(NodeKind::GeoNear2dSphere, |by| by.node())
    }
}

/// The documents of terms of a text index, each with what its terms score.
#[derive(Clone, Debug)]
pub struct TextOr {
    /// The index.
    pub index: Arc<IndexInfo>,
    /// A scan for each term.
    pub scans: Vec<PlanNode>,
    /// What the index could not decide.
    pub filter: Option<Arc<MatchExpr>>,
    /// The best come first; else they come in the order of records.
    pub best_first: bool,
}

/// The documents that have what a `$text` asks for.
#[derive(Clone, Debug)]
pub struct TextMatch {
    /// Documents that have one of the terms.
    pub input: PlanNode,
    /// The index.
    pub index: Arc<IndexInfo>,
    /// What is searched for.
    pub search: Arc<TextSearch>,
    /// The values of the fields before the texts.
    pub prefix: Document,
}

/// The purpose of a scan's entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanPurpose {
    /// IXSCAN: each of them.
    Entries,
    /// IXSCAN: each of them, with its key as metadata.
    Keys,
    /// COUNT_SCAN: only how many records there are.
    Count,
    /// DISTINCT_SCAN: one for each value of the first `parts` parts.
    Distinct {
        /// At least 1.
        parts: usize,
    },
}

impl ScanPurpose {
    /// The kind of a scan with this purpose.
    pub fn kind(self) -> NodeKind {
        match self {
            Self::Entries | Self::Keys => NodeKind::IndexScan,
            Self::Count => NodeKind::CountScan,
            Self::Distinct { .. } => NodeKind::DistinctScan,
        }
    }
}

/// A lookup by `_id`.
#[derive(Clone, Debug)]
pub struct IdLookup {
    /// The `_id`.
    pub id: Value,
    /// Further conditions on the record.
    pub filter: Option<Arc<MatchExpr>>,
}

impl PlanNode {
    /// The node's inputs; of a find its plans.
    pub fn inputs(&self) -> Vec<&PlanNode> {
        match self {
            Self::Or { inputs } | Self::SortMerge { inputs, .. } => inputs.iter().collect(),
            Self::Find(find) => find.plans.iter().collect(),
            Self::TextOr(text) => text.scans.iter().collect(),
            _ => self.input().into_iter().collect(),
        }
    }

    /// The node's input, if it has just one.
    pub fn input(&self) -> Option<&PlanNode> {
        match self {
            Self::Eof | Self::CollScan(_) | Self::IdLookup(_) | Self::IndexScan(_) | Self::GeoNear(_) => None,
            Self::Made { .. } | Self::Changes { .. } | Self::Given => None,
            Self::Or { .. } | Self::SortMerge { .. } | Self::TextOr(_) | Self::Find(_) => None,
            Self::TextMatch(text) => Some(&text.input),
            Self::Pipeline(pipeline) => Some(&pipeline.source),
            Self::Fetch { input, .. }
            | Self::Covered { input, .. }
            | Self::Filter { input, .. }
            | Self::Sort { input, .. }
            | Self::Skip { input, .. }
            | Self::Limit { input, .. }
            | Self::Project { input, .. }
            | Self::ReturnKey { input }
            | Self::Count { input, .. } => Some(input),
        }
    }

    /// The kind of the node.
    pub fn kind(&self) -> NodeKind {
        match self {
            Self::Eof => NodeKind::Eof,
            Self::CollScan(scan) => scan.kind(),
            Self::IdLookup(_) => NodeKind::IdLookup,
            Self::IndexScan(scan) => scan.purpose.kind(),
            Self::GeoNear(near) => near.kind(),
            Self::TextOr(_) => NodeKind::TextOr,
            Self::TextMatch(_) => NodeKind::TextMatch,
            Self::Fetch { .. } => NodeKind::Fetch,
            Self::Covered { .. } => NodeKind::Covered,
            Self::Or { .. } => NodeKind::Or,
            Self::SortMerge { .. } => NodeKind::SortMerge,
            Self::Filter { .. } => NodeKind::Match,
            Self::Sort { .. } => NodeKind::Sort,
            Self::Skip { .. } => NodeKind::Skip,
            Self::Limit { .. } => NodeKind::Limit,
            Self::Project { projection, .. } => NodeKind::of_projection(projection),
            Self::ReturnKey { .. } => NodeKind::ReturnKey,
            Self::Count { .. } => NodeKind::Count,
            Self::Find(_) => NodeKind::MultiPlan,
            Self::Made { .. } => NodeKind::Documents,
            Self::Changes { .. } => NodeKind::ChangeStream,
            Self::Given => NodeKind::QueuedData,
            Self::Pipeline(pipeline) => match pipeline.stages.last() {
                Some(stage) => stage.node.kind(),
                None => pipeline.source.kind(),
            },
        }
    }

    /// The stage's name as explain prints it.
    pub fn stage(&self) -> &'static str {
        self.kind().name()
    }

    /// Makes the scans of indexes keep their keys as metadata.
    pub fn keep_keys(&mut self) {
        match self {
            Self::IndexScan(scan) => scan.purpose = ScanPurpose::Keys,
            Self::Or { inputs } | Self::SortMerge { inputs, .. } => inputs.iter_mut().for_each(Self::keep_keys),
            // There is no one key by which a text search finds a row.
            Self::Eof
            | Self::CollScan(_)
            | Self::IdLookup(_)
            | Self::GeoNear(_)
            | Self::TextOr(_)
            | Self::TextMatch(_) => {}
            // These are no part of a find's plans.
            Self::Find(_) | Self::Made { .. } | Self::Changes { .. } | Self::Given | Self::Pipeline(_) => {}
            Self::Fetch { input, .. }
            | Self::Covered { input, .. }
            | Self::Filter { input, .. }
            | Self::Sort { input, .. }
            | Self::Skip { input, .. }
            | Self::Limit { input, .. }
            | Self::Project { input, .. }
            | Self::ReturnKey { input }
            | Self::Count { input, .. } => input.keep_keys(),
        }
    }
}
