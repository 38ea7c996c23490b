//! The kinds of nodes that plans and pipelines are made of, and their names in explain.

use nestor_query::projection::Projection;

/// The kind of a plan node, of a pipeline stage, and of the operator that runs either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// No rows.
    Eof,
    /// All records of a collection.
    CollScan,
    /// A range of the records of a clustered collection.
    ClusteredScan,
    /// All documents of a collection, path by path as far as they are kept so.
    ColumnScan,
    /// The record with one `_id`.
    IdLookup,
    /// The entries of an index within bounds.
    IndexScan,
    /// The entries of an index within bounds, which are only counted.
    CountScan,
    /// One entry of an index for each value of its first parts.
    DistinctScan,
    /// The records of index entries, nearest first, by cells of the sphere.
    GeoNear2dSphere,
    /// The same, by squares of a grid.
    GeoNear2d,
    /// The records of terms of a text index, with the sum of what those score.
    TextOr,
    /// The rows that have what a `$text` asks for.
    TextMatch,
    /// The records of index entries.
    Fetch,
    /// Index entries as documents.
    Covered,
    /// The union of several inputs.
    Or,
    /// The union of several inputs that have the same order.
    SortMerge,
    /// The rows that satisfy a condition.
    Match,
    /// Rows in order.
    Sort,
    /// All but the first rows.
    Skip,
    /// The first rows.
    Limit,
    /// A projection that keeps or leaves out top-level fields.
    ProjectionSimple,
    /// Any other projection.
    ProjectionDefault,
    /// The index keys by which rows were found.
    ReturnKey,
    /// The number of rows.
    Count,
    /// Record ids as fields.
    ShowRecordId,
    /// Several plans between which no choice was made yet.
    MultiPlan,
    /// Documents that are there already.
    QueuedData,
    /// Rows of the table of a hash join.
    HashLookup,
    /// `$bucketAuto`.
    BucketAuto,
    /// `$densify`.
    Densify,
    /// `$documents`, and the stages that read the server's own state.
    Documents,
    /// `$facet`.
    Facet,
    /// `$geoNear`, on top of its find.
    GeoNear,
    /// `$graphLookup`.
    GraphLookup,
    /// `$group`.
    Group,
    /// `$lookup`.
    Lookup,
    /// Masks the fields that the caller may not see plain.
    Mask,
    /// The measurements of time-series buckets.
    Unpack,
    /// Stored time-series buckets in their public form.
    PublicBuckets,
    /// `$rankFusion`.
    RankFusion,
    /// `$scoreFusion`.
    ScoreFusion,
    /// `$redact`.
    Redact,
    /// `$replaceRoot`.
    ReplaceRoot,
    /// `$sample`.
    Sample,
    /// `$setWindowFields`.
    SetWindowFields,
    /// `$unionWith`.
    UnionWith,
    /// `$unwind`.
    Unwind,
    /// `$changeStream`.
    ChangeStream,
    /// `$changeStreamSplitLargeEvent`.
    SplitLargeEvent,
}

impl NodeKind {
    /// The name as explain prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eof => "EOF",
            Self::CollScan => "COLLSCAN",
            Self::ClusteredScan => "CLUSTERED_IXSCAN",
            Self::ColumnScan => "COLUMN_SCAN",
            Self::IdLookup => "IDHACK",
            Self::IndexScan => "IXSCAN",
            Self::CountScan => "COUNT_SCAN",
            Self::DistinctScan => "DISTINCT_SCAN",
            Self::GeoNear2dSphere => "GEO_NEAR_2DSPHERE",
            Self::GeoNear2d => "GEO_NEAR_2D",
            Self::TextOr => "TEXT_OR",
            Self::TextMatch => "TEXT_MATCH",
            Self::Fetch => "FETCH",
            Self::Covered => "PROJECTION_COVERED",
            Self::Or => "OR",
            Self::SortMerge => "SORT_MERGE",
            Self::Match => "MATCH",
            Self::Sort => "SORT",
            Self::Skip => "SKIP",
            Self::Limit => "LIMIT",
            Self::ProjectionSimple => "PROJECTION_SIMPLE",
            Self::ProjectionDefault => "PROJECTION_DEFAULT",
            Self::ReturnKey => "RETURN_KEY",
            Self::Count => "COUNT",
            Self::ShowRecordId => "SHOW_RECORD_ID",
            Self::MultiPlan => "MULTI_PLAN",
            Self::QueuedData => "QUEUED_DATA",
            Self::HashLookup => "HASH_LOOKUP",
            Self::BucketAuto => "$bucketAuto",
            Self::Densify => "$densify",
            Self::Documents => "$documents",
            Self::Facet => "$facet",
            Self::GeoNear => "$geoNear",
            Self::GraphLookup => "$graphLookup",
            Self::Group => "$group",
            Self::Lookup => "$lookup",
            Self::Mask => "$mask",
            Self::PublicBuckets => "$_internalPublicBuckets",
            Self::Unpack => "$_internalUnpackBucket",
            Self::RankFusion => "$rankFusion",
            Self::ScoreFusion => "$scoreFusion",
            Self::Redact => "$redact",
            Self::ReplaceRoot => "$replaceRoot",
            Self::Sample => "$sample",
            Self::SetWindowFields => "$_internalSetWindowFields",
            Self::UnionWith => "$unionWith",
            Self::Unwind => "$unwind",
            Self::ChangeStream => "$changeStream",
            Self::SplitLargeEvent => "$changeStreamSplitLargeEvent",
        }
    }

    /// Whether a node of this kind reads a collection, or says that there is none: what `planSummary` names.
    pub const fn is_access(self) -> bool {
        matches!(
            self,
            Self::Eof
                | Self::CollScan
                | Self::ClusteredScan
                | Self::ColumnScan
                | Self::IdLookup
                | Self::IndexScan
                | Self::CountScan
                | Self::DistinctScan
                | Self::GeoNear2dSphere
                | Self::GeoNear2d
                | Self::TextMatch
        )
    }

    /// The kind of what applies a projection.
    pub fn of_projection(projection: &Projection) -> Self {
        if projection.is_top_level() {
            Self::ProjectionSimple
        } else {
            Self::ProjectionDefault
        }
    }
}
