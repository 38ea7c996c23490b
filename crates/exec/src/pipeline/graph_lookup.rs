//! `$graphLookup`: breadth-first search through a collection.
//!
//! | how a step finds its documents | when |
//! |---|---|
//! | by an index ([`IndexProbe`]) | the field leads an index: planned once, the values are bound to the plan in each step |
//! | by a hash table of the collection | no index, from the second step on: two steps by scans cost as much as the table |
//! | by a plan for each step | values or conditions for which none of the above will do |

use super::hash_join::{JoinTable, collect};
use super::lookup::{IndexProbe, equality, load_table, one_field, set_path};
use super::open::lower_inner;
use super::{PipelineSource, open_matching};
use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Report, Step};
use crate::reads::Reads;
use crate::row::{Row, RowDoc};
use nestor_model::statement::{ROW, effort, note, work};
use nestor_model::{Array, DocRef, Document, Error, ErrorCode, Result, Value, ValueRef, doc};
use nestor_planner::NodeKind;
use nestor_planner::pipeline::{PipelineQuery, graph_stages, inner_plan};
use nestor_planner::plan::InnerPlan;
use nestor_query::Scope;
use nestor_query::collation::Key;
use nestor_query::env::Env;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::GraphLookup;
use std::collections::HashSet;
use std::sync::Arc;

/// The memory that a searched value, or the `_id` of a found document, takes beside itself, about.
const VERTEX_BYTES: usize = size_of::<Key>() + size_of::<Value>() + 16;

/// Searches from each row.
pub(super) type GraphLookupOp = Each<Search>;

/// The search that a [`GraphLookupOp`] makes.
pub(super) struct Search {
    graph: Arc<GraphLookup>,
    /// How reading was planned together with the pipeline around the stage.
    inner: Option<Arc<InnerPlan>>,
    /// On the collection searched.
    context: PipelineSource,
    way: Way,
    /// The state that was read may be another one now.
    is_saved: bool,
    /// The figures of its reading: records and keys always, the rest for explain only.
    reads: Reads,
}

/// How steps find their documents.
enum Way {
    /// The next step decides.
    Undecided,
    /// By an index.
    Probe(Box<IndexProbe>, Arc<InnerPlan>),
    /// By a scan if none was made; the plan is an [`InnerPlan::Table`].
    Scan { inner: Arc<InnerPlan>, is_made: bool },
    /// By hash.
    Table(Box<JoinTable>),
    /// By a plan for each step.
    Planned,
}

impl GraphLookupOp {
    /// `inner`: how reading was planned together with the pipeline around the stage.
    pub(super) fn new(
        input: BoxOperator,
        graph: Arc<GraphLookup>,
        inner: Option<Arc<InnerPlan>>,
        context: PipelineSource,
    ) -> Self {
        let search = Search {
            context: context.on(graph.from.clone()),
            graph,
            inner,
            way: Way::Undecided,
            is_saved: false,
            reads: Reads::default(),
        };
        Self::over(input, search)
    }
}

impl Search {
    fn search(&mut self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<Vec<Value>> {
        let start = self.graph.start_with.eval(&mut Env::new(outer, batch.op))?;
        let mut frontier: Vec<Value> = match start {
            Value::Missing => Vec::new(),
            Value::Array(items) => items.iter().map(ValueRef::to_value).collect(),
            other => vec![other],
        };
        let key = |value: Value| Key::new(value, batch.op.collator.as_ref());
        let mut kept = Kept::default();
        let mut searched: HashSet<Key> = HashSet::new();
        for value in &frontier {
            work(2)?;
            keep(&mut kept, VERTEX_BYTES + 2 * value.weight(), batch)?;
            searched.insert(key(value.clone()));
        }
        let mut found_ids: HashSet<Key> = HashSet::new();
        let mut found = Vec::new();
        let mut depth: u64 = 0;
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for doc in self.step(std::mem::take(&mut frontier), &kept, batch)? {
                let id = doc.as_doc().get("_id").map_or(Value::Null, ValueRef::to_value);
                work(ROW)?;
                let id_bytes = VERTEX_BYTES + id.weight();
                if !found_ids.insert(key(id)) {
                    continue;
                }
                let mut vertex_bytes = 0;
                collect(doc.as_doc(), self.graph.connect_from.parts(), &mut |value| {
                    // An array's elements are reported on their own; the array itself is no vertex.
                    effort::made();
                    note(2);
                    if matches!(value, ValueRef::Array(_)) {
                        return;
                    }
                    let value = value.to_value();
                    let bytes = VERTEX_BYTES + 2 * value.weight();
                    if searched.insert(key(value.clone())) {
                        vertex_bytes += bytes;
                        next.push(value);
                    }
                });
                keep(&mut kept, id_bytes + vertex_bytes + doc.size(), batch)?;
                let mut doc = doc.into_document();
                if let Some(field) = &self.graph.depth_field {
                    set_path(&mut doc, field.parts(), Value::Int64(depth as i64));
                }
                found.push(Value::Document(doc));
            }
            if self.graph.max_depth.is_some_and(|max| depth >= max) {
                break;
            }
            depth += 1;
            frontier = next;
        }
        Ok(found)
    }

    /// The documents whose `connectToField` holds one of the values. `kept`: what was found before.
    fn step(&mut self, mut values: Vec<Value>, kept: &Kept, batch: &Batch<'_>) -> Result<Vec<RowDoc>> {
        // Filters refuse undefined, which old data may hold: it connects as null does.
        for value in &mut values {
            if matches!(value, Value::Undefined) {
                *value = Value::Null;
            }
        }
        self.prepare(batch)?;
        let mut rows = Rows::default();
        match &mut self.way {
            Way::Probe(probe, inner) if probe.binds(&values) => {
                probe.begin(values, &mut self.reads, batch.explains)?;
                while let Some(bytes) = probe.next(batch.view, &mut self.reads)? {
                    let doc = RowDoc::Stored(bytes);
                    if is_let_through(inner.filter().map(|filter| &**filter), &doc, batch)? {
                        rows.add(doc, kept, batch)?;
                    }
                }
            }
            Way::Table(table) if !values.iter().any(is_pattern) => {
                let mut found = table.find(values)?;
                while let Some(doc) = table.next(&mut found, batch.op)? {
                    if is_let_through(self.graph.restrict.as_ref(), &doc, batch)? {
                        rows.add(doc, kept, batch)?;
                    }
                }
            }
            _ => {
                let mut source = self.planned_for(values, batch)?;
                let mut inner = batch.within(batch.op);
                loop {
                    match source.next(&mut inner)? {
                        Step::Row(row) => rows.add(row.doc, kept, batch)?,
                        Step::Pause => {}
                        Step::Eof => break,
                    }
                }
                self.reads.note(&*source, batch.explains);
                if let Way::Scan { is_made, .. } = &mut self.way {
                    *is_made = true;
                }
            }
        }
        Ok(rows.rows)
    }

    /// Makes sure that there is a way, and that it is still a good one.
    fn prepare(&mut self, batch: &Batch<'_>) -> Result<()> {
        if std::mem::take(&mut self.is_saved) {
            let is_stale = match &self.way {
                Way::Probe(probe, _) => !probe.is_current(batch.view),
                Way::Scan { .. } | Way::Planned => !self.context.is_current(batch.view),
                Way::Undecided | Way::Table(_) => false,
            };
            if is_stale {
                self.way = Way::Undecided;
            }
        }
        match &self.way {
            Way::Undecided => {}
            Way::Scan { inner, is_made: true } => {
                self.way = self.table(&inner.clone(), batch)?;
                return Ok(());
            }
            _ => return Ok(()),
        }
        let inner = self.planned(batch)?;
        self.way = match &*inner {
            InnerPlan::Equality(plan) => match batch.view.catalog().get(&plan.namespace) {
                Some(collection) => Way::Probe(Box::new(IndexProbe::new(plan.clone(), collection)?), inner),
                None => Way::Planned,
            },
            InnerPlan::Table { .. } => Way::Scan { inner, is_made: false },
            _ => Way::Planned,
        };
        Ok(())
    }

    /// The plan that came with the stage; another one if there was none, or the catalog is another one now.
    fn planned(&mut self, batch: &Batch<'_>) -> Result<Arc<InnerPlan>> {
        if let (Some(inner), true) = (&self.inner, self.context.is_current(batch.view)) {
            return Ok(inner.clone());
        }
        let query = PipelineQuery {
            namespace: Some(&self.graph.from),
            stages: graph_stages(&self.graph),
            collation: self.context.collator.as_ref(),
            hint: None,
            restrict: None,
            rules: self.context.rules,
            keeps_sort_keys: false,
            is_explained: false,
        };
        let to = Some(&self.graph.connect_to);
        let inner = Arc::new(inner_plan(query, to, &self.context.named(batch.view))?);
        self.context = self.context.planned(batch.view);
        self.inner = Some(inner.clone());
        Ok(inner)
    }

    /// The table from which further steps find their documents, unless there is no room for it.
    fn table(&mut self, inner: &InnerPlan, batch: &Batch<'_>) -> Result<Way> {
        let InnerPlan::Table { source, .. } = inner else {
            return Ok(Way::Planned);
        };
        let source = lower_inner(source, None, batch.view, &self.context)?;
        let table = load_table(source, &self.graph.connect_to, true, &mut self.reads, batch)?;
        Ok(table.map_or(Way::Planned, Way::Table))
    }

    /// A plan for the values of one step.
    fn planned_for(&self, values: Vec<Value>, batch: &Batch<'_>) -> Result<BoxOperator> {
        let (to, collator) = (&self.graph.connect_to, batch.op.collator.as_ref());
        let (patterns, values): (Vec<Value>, Vec<Value>) = values.into_iter().partition(is_pattern);
        let mut filter = equality(to, &values, collator)?;
        if !patterns.is_empty() {
            let mut scope = Scope::new().with_collator(collator.cloned());
            let patterns = MatchExpr::parse(one_field(to, doc! { "$in": patterns }).as_ref(), &mut scope)?;
            filter = MatchExpr::Or(vec![filter, patterns]);
        }
        if let Some(restrict) = &self.graph.restrict {
            filter = MatchExpr::And(vec![filter, restrict.clone()]);
        }
        open_matching(
            &self.graph.from,
            Arc::new(filter.normalize()),
            batch.view,
            &self.context,
        )
    }
}

/// The documents of one step.
#[derive(Default)]
struct Rows {
    rows: Vec<RowDoc>,
    kept: Kept,
}

impl Rows {
    /// Adds one. `kept`: what was found before. Error: that it is too much.
    fn add(&mut self, doc: RowDoc, kept: &Kept, batch: &Batch<'_>) -> Result<()> {
        self.kept.grow(doc.size())?;
        if kept.bytes() + self.kept.bytes() > batch.memory_bytes_max {
            return Err(too_large());
        }
        self.rows.push(doc);
        Ok(())
    }
}

/// Regular expressions find what they match, as they do in `$in`.
fn is_pattern(value: &Value) -> bool {
    matches!(value, Value::Regex(_))
}

fn is_let_through(filter: Option<&MatchExpr>, doc: &RowDoc, batch: &Batch<'_>) -> Result<bool> {
    work(ROW)?;
    filter.map_or(Ok(true), |filter| filter.matches(doc.as_doc(), batch.op))
}

/// Counts what is found. Error: that it is too much.
fn keep(kept: &mut Kept, bytes: usize, batch: &Batch<'_>) -> Result<()> {
    kept.grow(bytes)?;
    match kept.bytes() > batch.memory_bytes_max {
        true => Err(too_large()),
        false => Ok(()),
    }
}

fn too_large() -> Error {
    Error::new(
        ErrorCode::ExceededMemoryLimit,
        "$graphLookup reached maximum memory consumption",
    )
}

impl EachRow for Search {
    fn kind(&self) -> NodeKind {
        NodeKind::GraphLookup
    }

    fn row(&mut self, row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        let found = self.search(row.as_doc(), batch)?;
        let mut doc: Document = row.doc.into_document();
        set_path(&mut doc, self.graph.as_path.parts(), Value::Array(Array::new(found)));
        Ok(Some(Row {
            doc: RowDoc::Owned(doc),
            record: None,
            meta: row.meta,
        }))
    }

    // A table of the collection stays, as that of $lookup does.
    fn save(&mut self) {
        self.is_saved = true;
        match &mut self.way {
            Way::Probe(probe, _) => probe.save(),
            Way::Table(table) => table.rest(),
            Way::Undecided | Way::Scan { .. } | Way::Planned => {}
        }
    }

    fn report<'o>(&'o self, report: Report<'o>) -> Report<'o> {
        let report = report.reading(&self.reads);
        match &self.way {
            Way::Table(table) => Report {
                spilled: table.spilled(),
                ..report.holding(table.memory())
            },
            _ => report,
        }
    }
}
