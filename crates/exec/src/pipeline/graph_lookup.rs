//! `$graphLookup`: breadth-first search through a collection.

use super::hash_join::collect;
use super::lookup::{one_field, set_path};
use super::{PipelineSource, open_matching};
use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Report, Step};
use crate::reads::Reads;
use crate::row::{Row, RowDoc};
use nestor_model::statement::{ROW, effort, note, work};
use nestor_model::{Array, DocRef, Document, Error, ErrorCode, Result, Value, ValueRef, doc};
use nestor_planner::NodeKind;
use nestor_query::Scope;
use nestor_query::collation::Key;
use nestor_query::env::Env;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::GraphLookup;
use std::collections::HashSet;
use std::sync::Arc;

/// What a value that was searched for, or the `_id` of a document that was found, takes beside itself, about.
const VERTEX_BYTES: usize = size_of::<Key>() + size_of::<Value>() + 16;

/// Searches from each row.
pub(super) type GraphLookupOp = Each<Search>;

/// The search that a [`GraphLookupOp`] makes.
pub(super) struct Search {
    graph: Arc<GraphLookup>,
    context: PipelineSource,
    /// What was read for it, counted for explain only.
    reads: Reads,
}

impl GraphLookupOp {
    pub(super) fn new(input: BoxOperator, graph: Arc<GraphLookup>, context: PipelineSource) -> Self {
        let search = Search {
            graph,
            context,
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
        let filter = one_field(&self.graph.connect_to, doc! { "$in": values });
        let mut scope = Scope::new().with_collator(batch.op.collator.clone());
        let mut filter = MatchExpr::parse(filter.as_ref(), &mut scope)?;
        if let Some(restrict) = &self.graph.restrict {
            filter = MatchExpr::And(vec![filter, restrict.clone()]);
        }
        let filter = Arc::new(filter.normalize());
        let mut source = open_matching(&self.graph.from, filter, batch.view, &self.context)?;
        let mut inner = batch.within(batch.op);
        let (mut rows, mut found) = (Vec::new(), Kept::default());
        loop {
            match source.next(&mut inner)? {
                Step::Row(row) => {
                    found.grow(row.doc.size())?;
                    if kept.bytes() + found.bytes() > batch.memory_bytes_max {
                        return Err(too_large());
                    }
                    rows.push(row.doc);
                }
                Step::Pause => {}
                Step::Eof => break,
            }
        }
        self.reads.note(&*source, batch.explains);
        Ok(rows)
    }
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

    fn report<'o>(&'o self, report: Report<'o>) -> Report<'o> {
        report.reading(&self.reads)
    }
}
