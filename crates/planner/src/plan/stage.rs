//! Stages of a logical plan.

use crate::find::TEXT_SCORES;
use crate::kind::NodeKind;
use nestor_model::{Document, Value, ValueRef, doc};
use nestor_query::expr::Deps;
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Mode;
use nestor_query::sort::{SortBy, SortPart, SortSpec};
use nestor_query::stage::{ChangeStream, FusionMethod, Lookup, Stage, Unwind, Written};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A stage, and how it was written.
#[derive(Clone, Debug)]
pub struct StageNode {
    /// The work of the stage.
    pub op: StageOp,
    /// The stage it was parsed from, or the first of several; only plans that are explained have it.
    pub written: Option<Written>,
    /// The projections before it that became part of it, as explain prints them.
    pub computed: Vec<Document>,
}

/// The work of a stage of a plan.
#[derive(Clone, Debug)]
pub enum StageOp {
    /// As it was parsed.
    Parsed(Stage),
    /// `$sort` of which only the first rows are wanted.
    TopSort {
        /// The order.
        spec: Arc<SortSpec>,
        /// How many rows, at least 1.
        limit: u64,
    },
    /// `$lookup` whose array is unwound at once.
    LookupUnwind(Arc<LookupUnwind>),
    /// `$changeStream` that gives only some of the events.
    FilteredChanges(Arc<FilteredChanges>),
}

/// A change stream that gives the events which satisfy a condition.
#[derive(Clone, Debug)]
pub struct FilteredChanges {
    /// The stream.
    pub stream: Arc<ChangeStream>,
    /// The condition. It reads only [`CHANGE_HEADER`].
    pub filter: Arc<MatchExpr>,
}

/// The fields of an event that are known before the event is made.
pub const CHANGE_HEADER: [&str; 3] = ["operationType", "ns", "documentKey"];

/// A join that gives a row for each match and never makes the array of them.
#[derive(Clone, Debug)]
pub struct LookupUnwind {
    /// The join.
    pub lookup: Arc<Lookup>,
    /// The `$unwind` of its array.
    pub unwind: Arc<Unwind>,
    /// A condition on the matches, as documents of their own.
    pub filter: Option<Arc<MatchExpr>>,
}

impl StageNode {
    /// A stage as it was parsed.
    pub fn of(stage: Stage) -> Self {
        Self {
            op: StageOp::Parsed(stage),
            written: None,
            computed: Vec::new(),
        }
    }

    /// The stages of a pipeline; `written` is of the same length, or empty.
    pub fn all(stages: &[Stage], written: &[Written]) -> Vec<Self> {
        debug_assert!(
            written.is_empty() || written.len() == stages.len(),
            "each stage was written or none"
        );
        let nodes = stages.iter().enumerate().map(|(at, stage)| Self {
            op: StageOp::Parsed(stage.clone()),
            written: written.get(at).cloned(),
            computed: Vec::new(),
        });
        nodes.collect()
    }

    /// A `$match`.
    pub fn matching(filter: Arc<MatchExpr>) -> Self {
        Self::of(Stage::Match(filter))
    }

    /// The stage, when it is one as it was parsed.
    pub fn parsed(&self) -> Option<&Stage> {
        match &self.op {
            StageOp::Parsed(stage) => Some(stage),
            _ => None,
        }
    }

    /// The condition of a `$match`.
    pub fn filter(&self) -> Option<&Arc<MatchExpr>> {
        match self.parsed() {
            Some(Stage::Match(filter)) => Some(filter),
            _ => None,
        }
    }

    /// Order and limit of a stage that sorts.
    pub fn sort(&self) -> Option<(&Arc<SortSpec>, Option<u64>)> {
        match &self.op {
            StageOp::Parsed(Stage::Sort(spec)) => Some((spec, None)),
            StageOp::TopSort { spec, limit } => Some((spec, Some(*limit))),
            _ => None,
        }
    }

    /// The stage as explain prints it; empty when neither its operation nor its text tells.
    pub fn shown(&self) -> Document {
        let mut shown = self.shown_alone();
        if !self.computed.is_empty() {
            let computed: Vec<Value> = self.computed.iter().cloned().map(Value::from).collect();
            shown.push("computedFrom", computed);
        }
        shown
    }

    fn shown_alone(&self) -> Document {
        match (&self.op, &self.written) {
            (StageOp::TopSort { spec, limit }, _) => {
                doc! { "$sort": doc! { "sortKey": spec.serialize(), "limit": *limit as i64 } }
            }
            (StageOp::LookupUnwind(join), written) => join.shown(written.as_ref()),
            (StageOp::FilteredChanges(changes), written) => changes.shown(written.as_ref()),
            (StageOp::Parsed(stage), Some(written)) => stage.serialize(written),
            // Rules make conditions, limits and skips that nobody wrote.
            (StageOp::Parsed(stage), None) => stage.serialize(&Written {
                name: "",
                value: Value::Null,
            }),
        }
    }

    /// The stream that the stage is, and the condition that its events satisfy.
    pub fn changes(&self) -> Option<(&Arc<ChangeStream>, Option<&Arc<MatchExpr>>)> {
        match &self.op {
            StageOp::Parsed(Stage::ChangeStream(stream)) => Some((stream, None)),
            StageOp::FilteredChanges(changes) => Some((&changes.stream, Some(&changes.filter))),
            _ => None,
        }
    }

    /// The kind of the stage.
    pub fn kind(&self) -> NodeKind {
        let stage = match &self.op {
            StageOp::Parsed(stage) => stage,
            StageOp::TopSort { .. } => return NodeKind::Sort,
            StageOp::LookupUnwind(_) => return NodeKind::Lookup,
            StageOp::FilteredChanges(_) => return NodeKind::ChangeStream,
        };
        match stage {
            Stage::Match(_) => NodeKind::Match,
            Stage::Project { projection, .. } => NodeKind::of_projection(projection),
            Stage::Sort(_) => NodeKind::Sort,
            Stage::Limit(_) => NodeKind::Limit,
            Stage::Skip(_) => NodeKind::Skip,
            Stage::Sample(_) => NodeKind::Sample,
            Stage::Unwind(_) => NodeKind::Unwind,
            Stage::ReplaceRoot(_) => NodeKind::ReplaceRoot,
            Stage::Mask(_) => NodeKind::Mask,
            Stage::Unpack(_) => NodeKind::Unpack,
            Stage::PublicBuckets(_) => NodeKind::PublicBuckets,
            Stage::Redact(_) => NodeKind::Redact,
            Stage::Group(_) => NodeKind::Group,
            Stage::BucketAuto(_) => NodeKind::BucketAuto,
            Stage::SetWindowFields(_) => NodeKind::SetWindowFields,
            Stage::Densify(_) => NodeKind::Densify,
            Stage::Facet(_) => NodeKind::Facet,
            Stage::Fusion(fusion) => match fusion.method {
                FusionMethod::Ranks => NodeKind::RankFusion,
                FusionMethod::Scores { .. } => NodeKind::ScoreFusion,
            },
            Stage::GeoNear(_) => NodeKind::GeoNear,
            Stage::Lookup(_) => NodeKind::Lookup,
            Stage::GraphLookup(_) => NodeKind::GraphLookup,
            Stage::UnionWith(_) => NodeKind::UnionWith,
            Stage::Documents(_) | Stage::Source(_) | Stage::Search(_) => NodeKind::Documents,
            Stage::ChangeStream(_) => NodeKind::ChangeStream,
            Stage::SplitLargeEvent => NodeKind::SplitLargeEvent,
            // They are done by whoever drains the pipeline.
            Stage::Out(_) | Stage::OutFile(_) | Stage::Merge(_) => NodeKind::QueuedData,
        }
    }

    /// Whether the stage asks for the key that a sort attached.
    pub fn reads_sort_key(&self) -> bool {
        self.reads_metadata("sortKey")
    }

    /// Whether the stage asks for this metadata.
    pub fn reads_metadata(&self, name: &str) -> bool {
        self.metadata().contains(name)
    }

    /// The metadata that the stage asks for.
    pub fn metadata(&self) -> BTreeSet<&'static str> {
        let mut deps = Deps::default();
        match self.parsed() {
            Some(Stage::Project { projection, .. }) => projection.dependencies(&mut deps),
            _ if self.dependencies(&mut deps) => {}
            _ => {
                let sort = self.sort().map(|(spec, _)| spec.parts());
                let of_part = |part: &SortPart| match part.by {
                    SortBy::Meta(name) => Some(name),
                    _ => None,
                };
                return sort.into_iter().flatten().filter_map(of_part).collect();
            }
        }
        deps.metadata
    }

    /// Adds what the stage reads, if its results have nothing else of the documents that come in; false for others.
    pub(crate) fn dependencies(&self, deps: &mut Deps) -> bool {
        match self.parsed() {
            Some(Stage::Project { projection, .. }) if projection.mode() == Mode::Inclusion => {
                projection.dependencies(deps);
            }
            Some(Stage::ReplaceRoot(expr)) => expr.dependencies(deps),
            Some(Stage::Group(group)) => {
                group.id.dependencies(deps);
                group
                    .fields
                    .iter()
                    .for_each(|field| field.accumulator.dependencies(deps));
            }
            Some(Stage::BucketAuto(spec)) => {
                spec.group_by.dependencies(deps);
                spec.output
                    .iter()
                    .for_each(|(_, accumulator)| accumulator.dependencies(deps));
            }
            _ => return false,
        }
        true
    }

    /// False for stages that certainly do not ask for what a text search noted.
    pub fn may_read_text_score(&self) -> bool {
        let reads = || {
            let metadata = self.metadata();
            TEXT_SCORES.iter().any(|name| metadata.contains(name))
        };
        match self.parsed() {
            Some(Stage::Sort(_) | Stage::Project { .. } | Stage::ReplaceRoot(_) | Stage::Group(_)) => reads(),
            _ if matches!(self.op, StageOp::TopSort { .. }) => reads(),
            _ => self.may_read_sort_key(),
        }
    }

    /// False for stages that certainly do not ask for the key that a sort attached.
    pub fn may_read_sort_key(&self) -> bool {
        match self.parsed() {
            Some(Stage::Project { .. } | Stage::ReplaceRoot(_) | Stage::Group(_)) => self.reads_sort_key(),
            Some(Stage::Match(filter)) => !matches!(**filter, MatchExpr::Leaf(_)),
            Some(
                Stage::Sort(_)
                | Stage::Mask(_)
                | Stage::Unpack(_)
                | Stage::PublicBuckets(_)
                | Stage::Limit(_)
                | Stage::Skip(_)
                | Stage::Sample(_)
                | Stage::Unwind(_),
            ) => false,
            Some(Stage::GeoNear(_)) => false,
            None if matches!(self.op, StageOp::TopSort { .. }) => false,
            _ => true,
        }
    }

    /// Whether each row that comes in goes out as one row, in the same order, whatever the other rows are.
    pub fn is_row_by_row(&self) -> bool {
        matches!(
            self.parsed(),
            Some(
                Stage::Project { .. }
                    | Stage::Mask(_)
                    | Stage::PublicBuckets(_)
                    | Stage::ReplaceRoot(_)
                    | Stage::Lookup(_)
                    | Stage::GraphLookup(_)
            )
        )
    }
}

impl FilteredChanges {
    fn shown(&self, written: Option<&Written>) -> Document {
        let mut spec = match written.map(|written| &written.value) {
            Some(Value::Document(spec)) => spec.clone(),
            _ => Document::new(),
        };
        spec.push("filter", self.filter.serialize());
        doc! { "$changeStream": spec }
    }
}

impl LookupUnwind {
    fn shown(&self, written: Option<&Written>) -> Document {
        let mut spec = match written.map(|written| &written.value) {
            Some(Value::Document(spec)) => spec.clone(),
            _ => Document::new(),
        };
        if let Some(filter) = &self.filter {
            let stages = spec.get("pipeline").and_then(ValueRef::as_array);
            let mut stages: Vec<Value> = stages.into_iter().flatten().map(ValueRef::to_value).collect();
            stages.push(doc! { "$match": filter.serialize() }.into());
            spec.set("pipeline", Value::from(stages));
        }
        let mut unwinding = self.unwind.serialize();
        unwinding.remove("path");
        unwinding.set("preserveNullAndEmptyArrays", Value::Bool(self.unwind.preserves_empty()));
        spec.push("unwinding", unwinding);
        doc! { "$lookup": spec }
    }
}
