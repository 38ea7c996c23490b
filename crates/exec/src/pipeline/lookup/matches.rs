//! How `$lookup` finds the matches of a document.
//!
//! | | when |
//! |---|---|
//! | by an index ([`IndexProbe`]) | equality, and the foreign field is `_id` or leads an index: planned once, the value is bound to the plan for each document |
//! | by a hash table of the other collection | equality without an index; or with one, once so many documents came that the table costs less |
//! | one plan | no equality: what depends on the outer document is a variable |
//! | the same matches for every document | nothing depends on it |
//! | a plan for each document | equality with values or conditions for which none of the above will do |
//!
//! Which of these it is, the plan of the pipeline around it says ([`InnerPlan`]), and the sizes that are found.

use super::probe::IndexProbe;
use super::values::{equality, local_values};
use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Report, Step};
use crate::ops::{Eof, Values};
use crate::pipeline::PipelineSource;
use crate::pipeline::depth::bounded;
use crate::pipeline::hash_join::{Found, JoinTable, TableBuilder};
use crate::pipeline::lower::lower;
use crate::pipeline::open::{lower_inner, open};
use crate::reads::Reads;
use crate::row::RowDoc;
use nestor_model::statement::{ROW, work};
use nestor_model::{DocRef, Document, Namespace, Path, Result, Str, Value, ValueRef, doc};
use nestor_planner::NodeKind;
use nestor_planner::pipeline::{PipelineQuery, inner_plan, lookup_stages};
use nestor_planner::plan::{EqualityAccess, InnerPlan, StageNode};
use nestor_query::OpContext;
use nestor_query::env::Env;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::Lookup;
use std::sync::Arc;

/// Outer documents for which a table is not worth its memory, and between two thoughts about one.
const PROBES_MIN: u64 = 1024;

/// A document in a table costs as much as this part of finding one by an index, at least: reading it in the order of records,
/// and hashing it.
const PROBES_PER_DOCUMENT: u64 = 2;

/// Bytes that a document takes in a table beside itself.
const TABLE_ENTRY_BYTES: i64 = 192;

/// Finds matches.
pub(super) struct Finder {
    pub(super) lookup: Arc<Lookup>,
    /// On the other collection.
    context: PipelineSource,
    /// A condition on the matches beside those of the stage.
    filter: Option<Arc<MatchExpr>>,
    /// How the stage's pipeline was planned together with the one around it.
    inner: Option<Arc<InnerPlan>>,
    strategy: Strategy,
    /// Tells what is done with rows that a probe or a table finds.
    after: Option<Arc<InnerPlan>>,
    /// The matches that are the same for every row, and the rows of the last one that stages continue with.
    kept_same: Kept,
    kept_rows: Kept,
    /// A table was too large.
    no_table: bool,
    /// The state that was read may be another one now.
    is_saved: bool,
    /// The figures of its reading: records and keys always, the rest for explain only.
    pub(super) reads: Reads,
}

enum Strategy {
    /// Not chosen yet: the first row does.
    Undecided,
    /// Plan anew for each row.
    PerRow,
    /// The same plan for each row, an [`InnerPlan::Whole`].
    Planned(Arc<InnerPlan>),
    /// By an index.
    Probe(Box<IndexProbe>),
    /// By hash.
    Hash(Box<JoinTable>),
    /// The same for every row.
    Same(Arc<[Value]>),
}

/// The matches of one document, one after the other.
pub(super) enum Matches {
    /// Those from the given one on.
    Kept(Arc<[Value]>, usize),
    /// Pulled as they are wanted; with the context of the pipeline, when it has variables.
    Pulled(BoxOperator, Option<Box<OpContext>>),
    /// Rows that equality found and that the filter has still to look at.
    Equal(Equal),
}

/// A match, not copied yet.
pub(super) enum Match {
    /// One of those that are the same for every document.
    Kept(Arc<[Value]>, usize),
    /// A document.
    Row(RowDoc),
}

impl Match {
    /// The view.
    pub(super) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Kept(values, at) => values.get(*at).map_or(ValueRef::Missing, Value::as_ref),
            Self::Row(row) => ValueRef::Document(row.as_doc()),
        }
    }

    /// An owned value.
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Kept(values, at) => values.get(at).cloned().unwrap_or(Value::Missing),
            Self::Row(row) => Value::Document(row.into_document()),
        }
    }
}

/// Rows that equality found for one document.
pub(super) struct Equal {
    /// The rows of a table; `None`: they come from the probe.
    rows: Option<Found>,
    /// How many are still wanted.
    left: u64,
    op: Option<Box<OpContext>>,
}

impl Finder {
    /// `filter`: see [`Finder::filter`]; `inner`: how the stage's pipeline was planned.
    pub(super) fn new(
        lookup: Arc<Lookup>,
        filter: Option<&Arc<MatchExpr>>,
        inner: Option<Arc<InnerPlan>>,
        context: PipelineSource,
    ) -> Self {
        let nothing = || Namespace::new(context.namespace.db.clone(), "");
        let namespace = lookup.from.clone().unwrap_or_else(nothing);
        Self {
            context: context.on(namespace),
            filter: filter.cloned(),
            inner,
            lookup,
            strategy: Strategy::Undecided,
            after: None,
            kept_same: Kept::default(),
            kept_rows: Kept::default(),
            no_table: false,
            is_saved: false,
            reads: Reads::default(),
        }
    }

    /// Adds to the report of the operator that finds: what was read, and what the table holds.
    pub(super) fn add_to<'o>(&'o self, report: Report<'o>) -> Report<'o> {
        let report = report.reading(&self.reads);
        match &self.strategy {
            Strategy::Hash(table) => Report {
                spilled: table.spilled(),
                ..report.holding(table.memory() + self.kept_rows.bytes())
            },
            _ => report.holding(self.kept_same.bytes() + self.kept_rows.bytes()),
        }
    }

    /// Lets go of storage cursors.
    pub(super) fn save(&mut self, matches: Option<&mut Matches>) {
        self.is_saved = true;
        self.kept_same.rest();
        self.kept_rows.rest();
        match &mut self.strategy {
            Strategy::Probe(probe) => probe.save(),
            Strategy::Hash(table) => table.rest(),
            _ => {}
        }
        if let Some(Matches::Pulled(node, _)) = matches {
            node.save();
        }
    }

    /// The matches of a document. Those of the one before must have been given out.
    pub(super) fn find(&mut self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<Matches> {
        work(2 * ROW)?;
        self.kept_rows.clear();
        self.prepare(outer, batch)?;
        if let Strategy::Same(matches) = &self.strategy {
            return Ok(Matches::Kept(matches.clone(), 0));
        }
        let op = match self.lookup.has_pipeline {
            true => Some(Box::new(batch.op.with_vars(self.variables(outer, batch)?))),
            false => None,
        };
        let values = match &self.lookup.join {
            Some(join) => {
                let out = match &mut self.strategy {
                    Strategy::Probe(probe) => probe.reuse_values(),
                    _ => Vec::new(),
                };
                local_values(outer, &join.local, out)
            }
            None => Vec::new(),
        };
        let rows = match &mut self.strategy {
            Strategy::Probe(probe) if probe.binds(&values) => {
                probe.begin(values, &mut self.reads, batch.explains)?;
                None
            }
            Strategy::Hash(table) => Some(table.find(values)?),
            Strategy::Planned(inner) => {
                let node = Self::lowered(inner, batch, &self.context)?;
                return Ok(Matches::Pulled(node, op));
            }
            _ => return self.pull(&values, op, batch),
        };
        let equal = Equal {
            rows,
            left: self.after.as_ref().and_then(|after| after.limit()).unwrap_or(u64::MAX),
            op,
        };
        match self.after.as_ref().and_then(|after| after.rest()) {
            None => Ok(Matches::Equal(equal)),
            Some(_) => self.continue_with(equal, outer, batch),
        }
    }

    /// The next match.
    pub(super) fn next(&mut self, matches: &mut Matches, batch: &Batch<'_>) -> Result<Option<Match>> {
        match matches {
            Matches::Kept(values, at) => {
                work(1)?;
                let is_there = *at < values.len();
                *at += usize::from(is_there);
                Ok(is_there.then(|| Match::Kept(values.clone(), *at - 1)))
            }
            Matches::Equal(equal) => Ok(self.next_equal(equal, batch)?.map(Match::Row)),
            Matches::Pulled(node, op) => {
                let mut inner = batch.within(op.as_deref().unwrap_or(batch.op));
                loop {
                    match node.next(&mut inner)? {
                        Step::Row(row) => return Ok(Some(Match::Row(row.doc))),
                        Step::Pause => {}
                        Step::Eof => break,
                    }
                }
                self.reads.note(&**node, batch.explains);
                Ok(None)
            }
        }
    }

    /// The next row that is equal and that the filter lets through.
    fn next_equal(&mut self, equal: &mut Equal, batch: &Batch<'_>) -> Result<Option<RowDoc>> {
        let op = equal.op.as_deref().unwrap_or(batch.op);
        while equal.left > 0 {
            work(ROW)?;
            let row = match (&mut equal.rows, &mut self.strategy) {
                (Some(found), Strategy::Hash(table)) => table.next(found, batch.op)?,
                (None, Strategy::Probe(probe)) => probe.next(batch.view, &mut self.reads)?.map(RowDoc::Stored),
                _ => None,
            };
            let Some(row) = row else {
                equal.left = 0;
                break;
            };
            if let Some(filter) = self.after.as_ref().and_then(|after| after.filter())
                && !filter.matches(row.as_doc(), op)?
            {
                continue;
            }
            equal.left -= 1;
            return Ok(Some(row));
        }
        Ok(None)
    }

    /// Puts the rest of the stages on top of the rows that are equal.
    fn continue_with(&mut self, mut equal: Equal, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<Matches> {
        let mut rows = Vec::new();
        while let Some(row) = self.next_equal(&mut equal, batch)? {
            self.kept_rows.grow(size_of::<RowDoc>() + row.size())?;
            if self.kept_rows.bytes() > batch.memory_bytes_max {
                self.kept_rows.clear();
                // A plan of its own need not hold them.
                let values = self
                    .lookup
                    .join
                    .as_ref()
                    .map(|join| local_values(outer, &join.local, Vec::new()));
                return self.pull(&values.unwrap_or_default(), equal.op, batch);
            }
            rows.push(row);
        }
        let given: BoxOperator = Box::new(Values::of(NodeKind::HashLookup, rows));
        let node = match self.after.as_ref().and_then(|after| after.rest()) {
            Some(rest) => bounded(lower(rest, Some(given), batch.view, &self.context)?),
            None => given,
        };
        Ok(Matches::Pulled(node, equal.op))
    }

    /// How equality is answered, in the words of MongoDB; `None` while that depends on values that have not come.
    pub(super) fn strategy_name(&self) -> Option<&'static str> {
        Some(match (&self.strategy, self.inner.as_deref()) {
            (Strategy::Hash(_), _) | (Strategy::Undecided, Some(InnerPlan::Table { .. })) => "HashJoin",
            (Strategy::Undecided, Some(InnerPlan::Equality(_))) => "IndexedLoopJoin",
            (Strategy::Undecided, _) => return None,
            _ if self.reads.indexes_used.is_empty() => "NestedLoopJoin",
            _ => "IndexedLoopJoin",
        })
    }

    /// Name and key pattern of the index that was planned to answer equality, unless a table does now.
    pub(super) fn planned_index(&self) -> Option<(Str, Document)> {
        match (&self.strategy, self.inner.as_deref()) {
            (Strategy::Undecided | Strategy::Probe(_), Some(InnerPlan::Equality(plan))) => Some(match &plan.access {
                EqualityAccess::Id(_) => ("_id_".into(), doc! { "_id": 1 }),
                EqualityAccess::Index(index) => (index.name.clone(), index.key_pattern.clone()),
            }),
            _ => None,
        }
    }

    /// Makes sure that there is a strategy, and that it is still a good one.
    fn prepare(&mut self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<()> {
        if std::mem::take(&mut self.is_saved) {
            let is_stale = match &self.strategy {
                Strategy::Probe(probe) => !probe.is_current(batch.view),
                Strategy::Planned(_) | Strategy::PerRow => !self.context.is_current(batch.view),
                _ => false,
            };
            if is_stale {
                self.strategy = Strategy::Undecided;
            }
        }
        if let Strategy::Undecided = self.strategy {
            return self.decide(outer, batch);
        }
        if let (Strategy::Probe(probe), Some(join)) = (&self.strategy, &self.lookup.join) {
            if !self.no_table && probe.probes() % PROBES_MIN == PROBES_MIN - 1 && pays(probe, batch) {
                let foreign = join.foreign.clone();
                let from = self.lookup.from.as_ref();
                let source = open(from, Vec::new(), None, batch.view, &self.context)?;
                match load_table(source, &foreign, false, &mut self.reads, batch)? {
                    Some(table) => self.strategy = Strategy::Hash(table),
                    None => self.no_table = true,
                }
            }
        }
        Ok(())
    }

    fn decide(&mut self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<()> {
        let inner = self.planned(batch)?;
        self.strategy = Strategy::PerRow;
        match &*inner {
            InnerPlan::Whole(_) => {
                self.strategy = Strategy::Planned(inner.clone());
                if self.lookup.variables.is_empty() && !self.no_table {
                    match self.collect(&inner, outer, batch)? {
                        Some(kept) => self.strategy = Strategy::Same(kept),
                        None => self.no_table = true,
                    }
                }
            }
            InnerPlan::Equality(plan) => {
                if let Some(collection) = batch.view.catalog().get(&plan.namespace) {
                    self.strategy = Strategy::Probe(Box::new(IndexProbe::new(plan.clone(), collection)?));
                    self.after = Some(inner);
                }
            }
            InnerPlan::Table { source, .. } => {
                if let (Some(join), false) = (&self.lookup.join, self.no_table) {
                    let foreign = join.foreign.clone();
                    let source = lower_inner(source, None, batch.view, &self.context)?;
                    match load_table(source, &foreign, true, &mut self.reads, batch)? {
                        Some(table) => {
                            self.strategy = Strategy::Hash(table);
                            self.after = Some(inner);
                        }
                        None => self.no_table = true,
                    }
                }
            }
            InnerPlan::ByValue | InnerPlan::Facets(_) | InnerPlan::Inputs(_) => {}
        }
        Ok(())
    }

    /// The plan that came with the stage; another one if there was none, or the catalog is another one now.
    fn planned(&mut self, batch: &Batch<'_>) -> Result<Arc<InnerPlan>> {
        if let (Some(inner), true) = (&self.inner, self.context.is_current(batch.view)) {
            return Ok(inner.clone());
        }
        let foreign = self.lookup.join.as_ref().map(|join| &join.foreign);
        let query = self.query(self.lookup.from.as_ref());
        let inner = Arc::new(inner_plan(query, foreign, &self.context.named(batch.view))?);
        self.context = self.context.planned(batch.view);
        self.inner = Some(inner.clone());
        Ok(inner)
    }

    /// The operators of an [`InnerPlan::Whole`].
    fn lowered(inner: &InnerPlan, batch: &Batch<'_>, context: &PipelineSource) -> Result<BoxOperator> {
        match inner {
            InnerPlan::Whole(plan) => Ok(bounded(lower(plan, None, batch.view, context)?)),
            _ => Ok(Box::new(Eof::default())),
        }
    }

    /// The stages for documents of the other side that are equal.
    fn stages(&self) -> Vec<StageNode> {
        lookup_stages(&self.lookup, self.filter.as_ref())
    }

    /// The stages as a pipeline over a namespace, or over rows that are given.
    fn query<'q>(&'q self, namespace: Option<&'q Namespace>) -> PipelineQuery<'q> {
        PipelineQuery {
            namespace,
            stages: self.stages(),
            collation: self.context.collator.as_ref(),
            hint: None,
            restrict: None,
            rules: self.context.rules,
            keeps_sort_keys: true,
            is_explained: false,
        }
    }

    /// All matches; `None` when they do not fit in memory.
    fn collect(&mut self, inner: &InnerPlan, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<Option<Arc<[Value]>>> {
        let op = batch.op.with_vars(self.variables(outer, batch)?);
        let mut matches = Matches::Pulled(Self::lowered(inner, batch, &self.context)?, Some(Box::new(op)));
        let mut all = Vec::new();
        while let Some(found) = self.next(&mut matches, batch)? {
            let value = found.into_value();
            self.kept_same.grow(value.weight())?;
            if self.kept_same.bytes() > batch.memory_bytes_max {
                self.kept_same.clear();
                return Ok(None);
            }
            all.push(value);
        }
        Ok(Some(all.into()))
    }

    /// Plans the stages behind equality with one of the values, if there is equality.
    fn pull(&self, values: &[Value], op: Option<Box<OpContext>>, batch: &Batch<'_>) -> Result<Matches> {
        let mut stages = self.stages();
        if let Some(join) = &self.lookup.join {
            let equal = equality(&join.foreign, values, batch.op.collator.as_ref())?;
            // Of $documents, equality is decided among what they are.
            let at = usize::from(self.lookup.from.is_none()).min(stages.len());
            stages.insert(at, StageNode::matching(Arc::new(equal)));
        }
        let node = open(self.lookup.from.as_ref(), stages, None, batch.view, &self.context)?;
        Ok(Matches::Pulled(node, op))
    }

    /// Values of the pipeline's globals: those from outside, then those of `let`.
    fn variables(&self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<Vec<Value>> {
        let mut values: Vec<Value> = batch.op.vars.iter().take(self.lookup.outer_globals).cloned().collect();
        values.resize(self.lookup.outer_globals, Value::Missing);
        for (_, expr) in &self.lookup.variables {
            values.push(expr.eval(&mut Env::new(outer, batch.op))?);
        }
        Ok(values)
    }
}

/// The rows of `source` as a table by their values at `foreign`; `None` when there is no room for it. It may go to disk if `may_spill`
/// and the batch allow it. What is read is added to `reads`.
pub(in crate::pipeline) fn load_table(
    mut source: BoxOperator,
    foreign: &Path,
    may_spill: bool,
    reads: &mut Reads,
    batch: &Batch<'_>,
) -> Result<Option<Box<JoinTable>>> {
    let collator = batch.op.collator.as_ref();
    let null = equality(foreign, &[Value::Null], collator)?;
    let mut table = TableBuilder::new(foreign.clone(), null, collator, may_spill);
    let mut inner = batch.within(batch.op);
    let mut has_room = true;
    while has_room {
        match source.next(&mut inner)? {
            Step::Row(row) => has_room = table.add(row.doc, batch)?,
            Step::Pause => {}
            Step::Eof => break,
        }
    }
    reads.note(&*source, batch.explains);
    match has_room {
        true => Ok(Some(Box::new(table.seal()?))),
        false => Ok(None),
    }
}

/// Whether a table costs less from now on: finding by the index has cost about as much as the table would, so it does if there
/// are as many outer documents to come. Like that the join costs at most about twice what it would cost whoever knew how many
/// those are.
fn pays(probe: &IndexProbe, batch: &Batch<'_>) -> bool {
    let state = &probe.collection().state;
    let documents = state.documents().max(0);
    let bytes = state
        .bytes()
        .saturating_add(documents.saturating_mul(TABLE_ENTRY_BYTES));
    let fits = usize::try_from(bytes).is_ok_and(|bytes| bytes <= batch.memory_bytes_max);
    fits && probe.probes().saturating_mul(PROBES_PER_DOCUMENT) >= documents as u64
}
