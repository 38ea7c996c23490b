//! Aggregation stages: a pipeline parsed into typed trees. Running them is `exec`'s business.
//!
//! ```text
//! [{$match: ..}, {$group: ..}] ──Pipeline::parse──► Pipeline { stages: [Stage::Match, Stage::Group] }
//! ```
//!
//! Each stage has a row in [`TABLE`]: its name, its parser, and where it may stand. Position rules are
//! checked for the whole pipeline after its stages parsed, so that a stage's own errors come first, as
//! MongoDB reports them. Source: manual, "Aggregation Stages".

mod accumulator;
mod args;
mod bucket;
mod bucket_auto;
pub mod change_stream;
mod densify;
mod documents;
mod facet;
mod fusion;
mod geo_near;
mod graph_lookup;
mod group;
mod group_columns;
mod lookup;
mod merge;
mod out;
mod out_file;
mod redact;
mod replace_root;
mod search;
mod simple;
mod sources;
mod union_with;
mod unpack;
mod unwind;
mod window;
mod written;

pub use accumulator::AccumulatorSpec;
pub use bucket_auto::{BucketAuto, Granularity};
pub use change_stream::ChangeStream;
pub use densify::{Densify, DensifyBounds};
pub use facet::Facet;
pub use fusion::{Combination, Fusion, FusionInput, FusionMethod, Normalization, Ties};
pub use geo_near::GeoNear;
pub use graph_lookup::GraphLookup;
pub use group::{Group, GroupField};
pub use group_columns::{ColumnInput, inputs_of_columns};
pub use lookup::{Lookup, LookupJoin};
pub use merge::{Merge, WhenMatched, WhenNotMatched};
pub use out::Out;
pub use out_file::OutFile;
pub use redact::{Redact, redact};
pub use search::{SearchKind, SearchStage};
pub use sources::{CollStats, CurrentOp, SessionsOf, SourceStage, SqlQuery};
pub use union_with::UnionWith;
pub use unpack::Unpack;
pub use unwind::{Splice, Unwind, Unwound};
pub use window::{Bound, Bounds, SetWindowFields, WindowFunction};
pub use written::Written;

use crate::masking::Masking;
use crate::matcher::MatchExpr;
use crate::projection::Projection;
use crate::sort::SortSpec;
use crate::{Expr, Scope};
use nestor_model::{ArrayRef, Error, ErrorCode, Namespace, Result, TimeSeries, ValueRef};
use std::sync::Arc;

/// Most stages in one pipeline.
const STAGES_MAX: usize = 1000;
/// Deepest nesting of pipelines in stages.
const PIPELINE_DEPTH_MAX: usize = 20;

/// A parsed pipeline.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// In order; may be empty.
    pub stages: Vec<Stage>,
    /// `written[i]` is what stage `i` was parsed from; empty unless [`ParseContext::keep_written`] asked for it.
    pub written: Vec<Written>,
}

/// One stage.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Stage {
    Match(Arc<MatchExpr>),
    /// `$project`, `$addFields`, `$set` and `$unset`, by the name it was written with.
    Project {
        name: &'static str,
        projection: Arc<Projection>,
    },
    Sort(Arc<SortSpec>),
    /// Positive.
    Limit(u64),
    Skip(u64),
    /// `$sample`, by its size.
    Sample(u64),
    Unwind(Arc<Unwind>),
    /// `$replaceRoot` and `$replaceWith`.
    ReplaceRoot(Arc<Expr>),
    /// Masks the fields that the caller may not see plain. Planning puts it above a collection, and no client can write it.
    Mask(Arc<Masking>),
    /// `$_internalUnpackBucket`: the measurements of time-series buckets.
    Unpack(Arc<Unpack>),
    /// Stored time-series buckets become those that MongoDB documents; planning puts it above a collection of buckets, and nobody can write it.
    PublicBuckets(Arc<TimeSeries>),
    Redact(Arc<Redact>),
    Group(Arc<Group>),
    BucketAuto(Arc<BucketAuto>),
    SetWindowFields(Arc<SetWindowFields>),
    Densify(Arc<Densify>),
    /// Adds the distances that the find of a `$geoNear` measured as fields; together with that find it is the whole stage.
    GeoNear(Arc<GeoNear>),
    Facet(Arc<Facet>),
    /// `$rankFusion` and `$scoreFusion`.
    Fusion(Arc<Fusion>),
    Lookup(Arc<Lookup>),
    GraphLookup(Arc<GraphLookup>),
    UnionWith(Arc<UnionWith>),
    /// An expression without a document that gives an array of documents.
    Documents(Arc<Expr>),
    Out(Arc<Out>),
    /// `$out` to a file.
    OutFile(Arc<OutFile>),
    Merge(Arc<Merge>),
    /// A stage that makes documents of the server's own state.
    Source(SourceStage),
    /// `$search`, `$searchMeta` and `$vectorSearch`.
    Search(Arc<SearchStage>),
    ChangeStream(Arc<ChangeStream>),
    /// `$changeStreamSplitLargeEvent`.
    SplitLargeEvent,
}

/// Where a pipeline stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The aggregate command.
    Top,
    /// Inside `$facet`.
    Facet,
    /// The pipeline of `$lookup`.
    Lookup,
    /// The pipeline of `$unionWith`.
    UnionWith,
    /// A pipeline of `$rankFusion`.
    Fusion,
    /// The definition of a view.
    View,
}

/// The context in which a stage is parsed.
pub struct ParseContext<'a> {
    /// Variables in scope.
    pub scope: &'a mut Scope,
    /// The namespace aggregated; the collection is empty for `aggregate: 1`.
    pub namespace: Namespace,
    /// Where the pipeline stands.
    pub place: Place,
    /// Whether the pipeline is to remember how its stages were written, for explain.
    pub keep_written: bool,
    /// Inside `$facet`, at whatever depth: its prohibitions hold for the pipelines of stages in it too.
    in_facet: bool,
    depth: usize,
}

impl<'a> ParseContext<'a> {
    /// For the aggregate command.
    pub fn new(scope: &'a mut Scope, namespace: Namespace, place: Place) -> Self {
        Self {
            scope,
            namespace,
            place,
            keep_written: false,
            in_facet: false,
            depth: 0,
        }
    }

    /// Parses a pipeline inside a stage.
    fn nested(&mut self, pipeline: ArrayRef<'_>, place: Place, namespace: Namespace) -> Result<Pipeline> {
        if self.depth >= PIPELINE_DEPTH_MAX {
            return Err(Error::new(
                ErrorCode::MaxSubPipelineDepthExceeded,
                format!("maximum number of nested sub-pipelines exceeded: {PIPELINE_DEPTH_MAX}"),
            ));
        }
        let mut inner = ParseContext {
            scope: self.scope,
            namespace,
            place,
            keep_written: self.keep_written,
            in_facet: self.in_facet || place == Place::Facet,
            depth: self.depth + 1,
        };
        Pipeline::parse(pipeline, &mut inner)
    }
}

type Parser = fn(&'static str, ValueRef<'_>, &mut ParseContext<'_>, &mut Vec<Stage>) -> Result<()>;

/// The definition of a stage, and where it may stand.
struct StageDef {
    name: &'static str,
    parse: Parser,
    rules: Rules,
}

/// Where a stage may stand.
#[derive(Clone, Copy, Default)]
struct Rules {
    first: bool,
    last: bool,
    not_in_facet: bool,
    not_in_lookup: bool,
    not_in_union: bool,
    /// Needs `aggregate: 1` (true) or a collection (false).
    collectionless: Option<bool>,
}

const ANYWHERE: Rules = Rules {
    first: false,
    last: false,
    not_in_facet: false,
    not_in_lookup: false,
    not_in_union: false,
    collectionless: None,
};
/// Reads the server's state: only as the first stage, never inside `$facet`.
const FIRST: Rules = Rules {
    first: true,
    not_in_facet: true,
    ..ANYWHERE
};
/// Writes: only as the last stage of the command's own pipeline.
const LAST: Rules = Rules {
    last: true,
    not_in_facet: true,
    not_in_lookup: true,
    not_in_union: true,
    ..ANYWHERE
};

const fn def(name: &'static str, parse: Parser, rules: Rules) -> StageDef {
    StageDef { name, parse, rules }
}

static TABLE: &[StageDef] = &[
    def("$match", simple::parse_match, ANYWHERE),
    def("$project", simple::parse_projection, ANYWHERE),
    def("$addFields", simple::parse_projection, ANYWHERE),
    def("$set", simple::parse_projection, ANYWHERE),
    def("$unset", simple::parse_projection, ANYWHERE),
    def("$sort", simple::parse_sort, ANYWHERE),
    def("$limit", simple::parse_limit, ANYWHERE),
    def("$skip", simple::parse_skip, ANYWHERE),
    def("$count", simple::parse_count, ANYWHERE),
    def("$sample", simple::parse_sample, ANYWHERE),
    def("$unwind", unwind::parse, ANYWHERE),
    def("$replaceRoot", replace_root::parse_root, ANYWHERE),
    def("$replaceWith", replace_root::parse_with, ANYWHERE),
    def("$redact", redact::parse, ANYWHERE),
    def("$group", group::parse, ANYWHERE),
    def("$sortByCount", group::parse_sort_by_count, ANYWHERE),
    def("$bucket", bucket::parse, ANYWHERE),
    def("$bucketAuto", bucket_auto::parse, ANYWHERE),
    def("$setWindowFields", window::parse, ANYWHERE),
    def("$densify", densify::parse, ANYWHERE),
    def("$fill", window::parse_fill, ANYWHERE),
    def(
        "$facet",
        facet::parse,
        Rules {
            not_in_facet: true,
            ..ANYWHERE
        },
    ),
    def("$lookup", lookup::parse, ANYWHERE),
    def("$graphLookup", graph_lookup::parse, ANYWHERE),
    def("$unionWith", union_with::parse, ANYWHERE),
    def(
        "$documents",
        documents::parse,
        Rules {
            collectionless: Some(true),
            ..FIRST
        },
    ),
    def(
        "$sql",
        sources::parse,
        Rules {
            collectionless: Some(true),
            ..FIRST
        },
    ),
    def("$_internalUnpackBucket", unpack::parse, ANYWHERE),
    def("$out", out::parse, LAST),
    def("$merge", merge::parse, LAST),
    def(
        "$collStats",
        sources::parse,
        Rules {
            collectionless: Some(false),
            ..FIRST
        },
    ),
    def(
        "$indexStats",
        sources::parse,
        Rules {
            collectionless: Some(false),
            ..FIRST
        },
    ),
    def(
        "$planCacheStats",
        sources::parse,
        Rules {
            collectionless: Some(false),
            ..FIRST
        },
    ),
    def(
        "$currentOp",
        sources::parse,
        Rules {
            collectionless: Some(true),
            not_in_union: true,
            ..FIRST
        },
    ),
    def(
        "$listSessions",
        sources::parse,
        Rules {
            not_in_facet: false,
            ..FIRST
        },
    ),
    def(
        "$listLocalSessions",
        sources::parse,
        Rules {
            collectionless: Some(true),
            not_in_union: true,
            ..FIRST
        },
    ),
    def("$listCatalog", sources::parse, FIRST),
    def(
        "$listClusterCatalog",
        sources::parse,
        Rules {
            not_in_facet: false,
            ..FIRST
        },
    ),
    def(
        "$listSampledQueries",
        sources::parse,
        Rules {
            collectionless: Some(true),
            ..FIRST
        },
    ),
    def(
        "$querySettings",
        sources::parse,
        Rules {
            collectionless: Some(true),
            ..FIRST
        },
    ),
    def(
        "$queryStats",
        sources::parse,
        Rules {
            collectionless: Some(true),
            ..FIRST
        },
    ),
    def(
        "$shardedDataDistribution",
        sources::parse,
        Rules {
            collectionless: Some(true),
            ..FIRST
        },
    ),
    def(
        "$listSearchIndexes",
        sources::parse,
        Rules {
            collectionless: Some(false),
            ..FIRST
        },
    ),
    def("$search", search::parse, FIRST),
    def("$searchMeta", search::parse, FIRST),
    def("$searchBeta", sources::parse, FIRST),
    def(
        "$vectorSearch",
        search::parse,
        Rules {
            not_in_lookup: true,
            ..FIRST
        },
    ),
    def(
        "$rankFusion",
        fusion::parse,
        Rules {
            not_in_facet: false,
            collectionless: Some(false),
            ..FIRST
        },
    ),
    def(
        "$scoreFusion",
        fusion::parse,
        Rules {
            not_in_facet: false,
            collectionless: Some(false),
            ..FIRST
        },
    ),
    // It has to be first of what is left of the pipeline: see the planner.
    def(
        "$geoNear",
        geo_near::parse,
        Rules {
            not_in_facet: true,
            ..ANYWHERE
        },
    ),
    def(
        "$changeStream",
        change_stream::parse,
        Rules {
            not_in_lookup: true,
            not_in_union: true,
            ..FIRST
        },
    ),
    def(
        "$changeStreamSplitLargeEvent",
        change_stream::parse_split,
        Rules {
            not_in_facet: true,
            ..ANYWHERE
        },
    ),
];

/// Names of all stages that are parsed.
pub fn stage_names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|def| def.name)
}

impl Pipeline {
    /// Parses a pipeline and checks where its stages stand.
    ///
    /// Errors: 14 a stage that is no document, 40323 a stage of several fields, 40324 an unknown stage,
    /// 40602 a stage that must be first, 40601 one that must be last, 40600, 51047, 31441 stages not
    /// allowed inside others, 7749501 too many stages, 232 pipelines nested too deep, 73 a stage on the
    /// wrong kind of namespace, and each stage's own.
    pub fn parse(pipeline: ArrayRef<'_>, context: &mut ParseContext<'_>) -> Result<Self> {
        let (mut stages, mut written) = (Vec::new(), Vec::new());
        let mut placed: Vec<&StageDef> = Vec::new();
        for item in pipeline {
            if placed.len() >= STAGES_MAX {
                return Err(Error::location(
                    7_749_501,
                    format!("pipeline length must be no longer than {STAGES_MAX} stages"),
                ));
            }
            let ValueRef::Document(doc) = item else {
                return Err(match context.place {
                    Place::Facet => Error::location(40171, "elements of the arrays in a $facet spec must be objects"),
                    _ => Error::type_mismatch("each element of the 'pipeline' array must be an object"),
                });
            };
            let mut fields = doc.iter();
            let (Some((name, value)), None) = (fields.next(), fields.next()) else {
                return Err(no_single_field());
            };
            let Some(def) = TABLE.iter().find(|def| def.name == name) else {
                return Err(unknown_stage(name));
            };
            check_nesting(def, context)?;
            (def.parse)(def.name, value, context, &mut stages)?;
            if let Some(Stage::Match(filter)) = stages.last() {
                let is_first = placed.is_empty() && context.place != Place::Facet;
                if !is_first && filter.text().is_some() {
                    return Err(text_not_first());
                }
            }
            if context.keep_written {
                written::note(&mut written, def.name, value, stages.len());
            }
            placed.push(def);
        }
        check_positions(&placed, context)?;
        change_stream::check_followers(&placed.iter().map(|def| def.name).collect::<Vec<_>>(), &stages)?;
        // Stages that this server lacks are refused last: a stage in the wrong place is wrong on every server.
        for stage in &stages {
            if let Stage::Source(SourceStage::Unsupported(name)) = stage {
                return Err(sources::refusal(name));
            }
        }
        Ok(Self { stages, written })
    }

    /// The namespaces that stages read or write beside the pipeline's own.
    pub fn involved_namespaces(&self, found: &mut Vec<Namespace>) {
        for stage in &self.stages {
            match stage {
                Stage::Lookup(lookup) => {
                    found.extend(lookup.from.clone());
                    lookup.pipeline.involved_namespaces(found);
                }
                Stage::GraphLookup(graph) => found.push(graph.from.clone()),
                Stage::UnionWith(union) => {
                    found.extend(union.coll.clone());
                    union.pipeline.involved_namespaces(found);
                }
                Stage::Facet(facet) => facet.pipelines.iter().for_each(|(_, p)| p.involved_namespaces(found)),
                Stage::Fusion(fusion) => {
                    let inputs = fusion.inputs.iter();
                    inputs.for_each(|input| input.pipeline.involved_namespaces(found));
                }
                Stage::Out(out) => found.push(out.target.clone()),
                Stage::Merge(merge) => found.push(merge.into.clone()),
                _ => {}
            }
        }
    }

    /// The first stage that may not be part of a transaction, here or in a stage's own pipeline: those that write, follow the log
    /// or show the server's state rather than the transaction's snapshot, and `$unionWith`.
    /// Source: manual, "Transactions and Operations", "Restricted Operations".
    pub fn outside_transactions(&self) -> Option<&'static str> {
        self.stages.iter().find_map(|stage| match stage {
            Stage::Out(_) | Stage::OutFile(_) => Some("$out"),
            Stage::Merge(_) => Some("$merge"),
            Stage::UnionWith(_) => Some("$unionWith"),
            Stage::ChangeStream(_) => Some("$changeStream"),
            Stage::Source(source) => Some(source.name()),
            Stage::Search(search) => Some(search.name()),
            Stage::Lookup(lookup) => lookup.pipeline.outside_transactions(),
            Stage::Facet(facet) => facet.pipelines.iter().find_map(|(_, p)| p.outside_transactions()),
            Stage::Fusion(fusion) => {
                let mut inputs = fusion.inputs.iter();
                inputs.find_map(|input| input.pipeline.outside_transactions())
            }
            _ => None,
        })
    }

    /// True when the pipeline ends in `$out` or `$merge`.
    pub fn writes(&self) -> bool {
        matches!(
            self.stages.last(),
            Some(Stage::Out(_) | Stage::OutFile(_) | Stage::Merge(_))
        )
    }
}

fn no_single_field() -> Error {
    Error::location(
        40323,
        "a pipeline stage specification object must contain exactly one field",
    )
}

fn unknown_stage(name: &str) -> Error {
    Error::location(40324, format!("Unrecognized pipeline stage name: '{name}'"))
}

/// The error 40602 of a stage that must be the first one.
pub fn not_first(stage: &str) -> Error {
    Error::location(40602, format!("{stage} is only valid as the first stage in a pipeline"))
}

/// The error 17313.
pub fn text_not_first() -> Error {
    Error::location(17313, "$match with $text is only allowed as the first pipeline stage")
}

fn check_nesting(def: &StageDef, context: &ParseContext<'_>) -> Result<()> {
    match context.place {
        Place::Lookup if def.rules.not_in_lookup => Err(Error::location(
            51047,
            format!("{} is not allowed within a $lookup's sub-pipeline", def.name),
        )),
        Place::UnionWith if def.rules.not_in_union => Err(Error::location(
            31441,
            format!("{} is not allowed within a $unionWith's sub-pipeline", def.name),
        )),
        Place::View if def.rules.last || def.name == "$changeStream" => Err(Error::new(
            ErrorCode::OptionNotSupportedOnView,
            format!("the aggregation stage {} cannot be used in a view definition", def.name),
        )),
        _ if context.in_facet && def.rules.not_in_facet => Err(Error::location(
            40600,
            format!("{} is not allowed to be used within a $facet stage", def.name),
        )),
        _ => Ok(()),
    }
}

/// The collection of the pipeline's database that an option of a stage names.
///
/// Error: 73 for what is no name of one.
fn collection_named(stage: &str, option: &str, name: &str, context: &ParseContext<'_>) -> Result<Namespace> {
    let why = match name {
        "" => format!("{stage} '{option}' must not be empty"),
        _ if name.starts_with('.') || name.contains('\0') => {
            format!("{stage} '{option}' is no valid collection name: {name:?}")
        }
        _ => return Ok(Namespace::new(context.namespace.db.clone(), name)),
    };
    Err(Error::new(ErrorCode::InvalidNamespace, why))
}

fn check_positions(placed: &[&StageDef], context: &ParseContext<'_>) -> Result<()> {
    let on_database = context.namespace.coll.is_empty();
    // Without a collection there is nothing for an ordinary stage to read, wherever the others stand.
    if let Some(first) = placed.first() {
        let needs_collection = first.rules.collectionless.is_none() && !first.rules.first;
        if on_database && context.place == Place::Top && needs_collection {
            return Err(Error::new(
                ErrorCode::InvalidNamespace,
                format!(
                    "{{aggregate: 1}} is not valid for '{}'; a collection is required",
                    first.name
                ),
            ));
        }
    }
    for (at, def) in placed.iter().enumerate() {
        if def.rules.first && at > 0 {
            return Err(match fusion::is_fusion(def.name) {
                true => fusion::fusion_not_first(def.name),
                false => not_first(def.name),
            });
        }
        if def.rules.last && at + 1 < placed.len() {
            return Err(Error::location(
                40601,
                format!("{} can only be the final stage in the pipeline", def.name),
            ));
        }
    }
    let Some(first) = placed.first() else {
        if on_database && context.place == Place::Top {
            return Err(Error::new(
                ErrorCode::InvalidNamespace,
                "{aggregate: 1} is not valid for an empty pipeline; a collection is required",
            ));
        }
        return Ok(());
    };
    // Inside $lookup and $unionWith a missing collection is what $documents asks for.
    match first.rules.collectionless {
        Some(true) if !on_database => Err(Error::new(
            ErrorCode::InvalidNamespace,
            format!(
                "{} must be run against the database with {{aggregate: 1}}, not a collection",
                first.name
            ),
        )),
        Some(false) if on_database => Err(Error::new(
            ErrorCode::InvalidNamespace,
            format!("{} must be run against a collection", first.name),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
