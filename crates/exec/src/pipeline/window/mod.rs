//! `$setWindowFields`: rows sorted by partition and order, then computed partition by partition.

mod column;
mod compute;
mod frame;
mod sliding;

use super::lookup::set_path;
use super::row_store::RowStore;
use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Explain, Operator, Report, Step};
use crate::ops::Sort;
use crate::row::{Row, RowDoc};
use crate::spill::Spilled;
use column::Column;
use compute::Partition;
use nestor_model::statement::{ROW, effort, work};
use nestor_model::{DocRef, Document, Error, Path, Result, Value, ValueRef, doc};
use nestor_planner::NodeKind;
use nestor_query::collation::{Collator, equal};
use nestor_query::env::Env;
use nestor_query::sort::{SortBy, SortPart, SortSpec};
use nestor_query::stage::SetWindowFields;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Computes the window functions of its input.
pub(super) struct WindowOp {
    sorted: BoxOperator,
    spec: Arc<SetWindowFields>,
    /// First row of the next partition.
    ahead: Option<(Value, RowDoc)>,
    key: Value,
    store: RowStore,
    /// The partition being given out.
    ready: Option<Ready>,
    input_done: bool,
    spilled: Spilled,
    /// Most bytes that the rows of a partition and the values computed for them held.
    held_max: usize,
    counters: Counters,
}

struct Ready {
    rows: RowStore,
    /// `columns[f]`: values of function `f`.
    columns: Vec<Column>,
    /// The memory of the columns.
    kept: Kept,
    at: usize,
}

/// Makes `{p: {v: partition}, d: document}` of each row.
struct Keyed(Arc<SetWindowFields>);

impl EachRow for Keyed {
    fn kind(&self) -> NodeKind {
        NodeKind::SetWindowFields
    }

    fn row(&mut self, row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        let key = match &self.0.partition_by {
            Some(expr) => expr.eval(&mut Env::new(row.as_doc(), batch.op))?,
            None => Value::Null,
        };
        if matches!(key, Value::Array(_)) {
            return Err(Error::type_mismatch(
                "an expression used to partition cannot evaluate to value of type array",
            ));
        }
        let key = if key.is_missing() { Value::Null } else { key };
        let wrapped = doc! { "p": doc! { "v": key }, "d": row.doc.into_document() };
        Ok(Some(wrapped.into()))
    }
}

impl WindowOp {
    pub(super) fn new(input: BoxOperator, spec: Arc<SetWindowFields>, collator: Option<&Collator>) -> Self {
        let keyed: BoxOperator = Box::new(Each::over(input, Keyed(spec.clone())));
        let mut parts = Vec::new();
        if spec.partition_by.is_some() {
            parts.push(SortPart {
                by: SortBy::Path(Path::new("p")),
                ascending: true,
            });
        }
        for part in spec.sort_by.iter().flat_map(|sort| sort.parts()) {
            let by = match &part.by {
                SortBy::Path(path) => SortBy::Path(Path::new(&format!("d.{path}"))),
                SortBy::Meta(name) => SortBy::Meta(name),
            };
            parts.push(SortPart {
                by,
                ascending: part.ascending,
            });
        }
        let sorted = if parts.is_empty() {
            keyed
        } else {
            Box::new(Sort::new(
                keyed,
                Arc::new(SortSpec::of(parts).under(collator)),
                None,
                false,
            ))
        };
        Self {
            sorted,
            spec,
            ahead: None,
            key: Value::Null,
            store: RowStore::default(),
            ready: None,
            input_done: false,
            spilled: Spilled::default(),
            held_max: 0,
            counters: Counters::default(),
        }
    }

    /// Collects the next partition; `Row` stands for "one is ready" here.
    fn collect(&mut self, batch: &mut Batch<'_>) -> Result<Option<Step>> {
        loop {
            if let Some((key, row)) = self.ahead.take() {
                if self.store.is_empty() || equal(key.as_ref(), self.key.as_ref(), batch.op.collator.as_ref()) {
                    self.key = key;
                    self.store.push(row, "$setWindowFields", batch)?;
                } else {
                    self.ahead = Some((key, row));
                    break;
                }
            }
            if self.input_done {
                break;
            }
            let step = self.sorted.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => self.ahead = unwrap(row.as_doc()),
                Step::Pause => return Ok(Some(Step::Pause)),
                Step::Eof => self.input_done = true,
            }
        }
        if self.store.is_empty() {
            return Ok(Some(Step::Eof));
        }
        self.store.seal()?;
        let rows = std::mem::take(&mut self.store);
        if let Some(bytes) = rows.bytes_on_disk() {
            self.spilled.add(rows.len() as u64, bytes);
        }
        let partition = Partition {
            rows: &rows,
            sort: self.spec.sort_by.as_deref(),
            op: batch.op,
            memory_bytes_max: batch.memory_bytes_max,
            held: Cell::new(0),
            values: RefCell::default(),
        };
        let mut columns = Vec::with_capacity(self.spec.output.len());
        let (mut held, mut kept) = (rows.bytes(), Kept::default());
        for (_, function) in &self.spec.output {
            let before = partition.held.get();
            let values = partition.column(function)?;
            let own = values.len() * size_of::<Value>();
            let now = rows.held_max().max(held) + partition.held.get() + own;
            self.held_max = self.held_max.max(now);
            let bytes: usize = values.iter().map(Value::weight).sum();
            let column = Column::beside(&rows, values, &mut held, batch, &mut self.spilled)?;
            // The rows that the function looked at are gone, and the column is counted here.
            partition.values.borrow_mut().clear();
            partition.held.set(before);
            if matches!(column, Column::Memory(_)) {
                kept.grow(bytes)?;
                partition.held.set(before + bytes - own);
            }
            columns.push(column);
        }
        self.ready = Some(Ready {
            rows,
            columns,
            kept,
            at: 0,
        });
        Ok(None)
    }
}

fn unwrap(doc: DocRef<'_>) -> Option<(Value, RowDoc)> {
    let key = doc.get("p")?.as_document()?.get("v")?.to_value();
    let inner = doc.get("d")?.as_document()?.to_document();
    Some((key, RowDoc::Owned(inner)))
}

impl Operator for WindowOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if let Some(ready) = &mut self.ready {
                if ready.at < ready.rows.len() {
                    let at = ready.at;
                    ready.at += 1;
                    effort::made();
                    work(ROW)?;
                    let mut doc = ready.rows.get(at)?.into_document();
                    for ((path, _), column) in self.spec.output.iter().zip(&mut ready.columns) {
                        set_path(&mut doc, path.parts(), column.take(at)?);
                    }
                    self.counters.advanced += 1;
                    return Ok(Step::Row(Row::computed(doc)));
                }
                self.ready = None;
            }
            if let Some(step) = self.collect(batch)? {
                return Ok(self.counters.gave(step));
            }
        }
    }

    fn save(&mut self) {
        self.store.rest();
        if let Some(ready) = &mut self.ready {
            ready.rows.rest();
            ready.kept.rest();
        }
        self.sorted.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::SetWindowFields, &self.counters).over(&*self.sorted);
        let ready = self.ready.as_ref();
        let ready = ready.map_or(0, |ready| ready.rows.bytes() + ready.kept.bytes());
        let report = report.holding(self.store.bytes() + ready).spilling(self.spilled);
        report.explained_by(self)
    }
}

impl Explain for WindowOp {
    fn stage_fields(&self, out: &mut Document) {
        out.push("maxTotalMemoryUsageBytes", self.held_max as i64);
    }
}

/// The number or date that `path` holds, straight, without going through arrays.
pub(super) fn value_at<'d>(doc: DocRef<'d>, path: &Path) -> ValueRef<'d> {
    let mut value = ValueRef::Document(doc);
    for part in path.parts() {
        value = match value {
            ValueRef::Document(inner) => inner.get(&part.name).unwrap_or(ValueRef::Missing),
            _ => return ValueRef::Missing,
        };
    }
    value
}
