//! `$lookup`: each row with the array of its matches in another collection.
//!
//! Three ways to find them: a plan per row when equality can use an index or a point lookup; a hash table
//! of the other collection when it cannot; and the whole result kept from one row to the next when the
//! pipeline does not depend on the row.

use super::hash_join::JoinTable;
use super::{PipelineSource, build_stages, open, resolve};
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::ops::{Eof, Filter};
use crate::reads::Reads;
use crate::row::{Row, RowDoc};
use nestor_model::{Array, DocRef, Document, Namespace, Path, PathPart, Result, Value, ValueRef, doc};
use nestor_query::Scope;
use nestor_query::env::Env;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::Lookup;
use std::sync::Arc;

/// Documents of a table between two looks at the interrupt.
const CHECK_EVERY: usize = 128;

/// Joins each row.
pub(super) struct LookupOp {
    input: BoxOperator,
    lookup: Arc<Lookup>,
    context: PipelineSource,
    strategy: Strategy,
    /// What was read for it, counted for explain only.
    reads: Reads,
    counters: Counters,
}

enum Strategy {
    /// Not chosen yet: the first row does.
    Undecided,
    /// Plan anew for each row.
    PerRow,
    /// Equality by hash.
    Hash(Box<JoinTable>),
    /// The same for every row.
    Same(Vec<Value>),
}

impl LookupOp {
    pub(super) fn new(input: BoxOperator, lookup: Arc<Lookup>, context: PipelineSource) -> Self {
        Self {
            input,
            lookup,
            context,
            strategy: Strategy::Undecided,
            reads: Reads::default(),
            counters: Counters::default(),
        }
    }

    fn join(&mut self, row: Row, batch: &Batch<'_>) -> Result<Row> {
        if matches!(self.strategy, Strategy::Undecided) {
            self.decide(&row, batch)?;
        }
        let matches = match &self.strategy {
            Strategy::Same(matches) => matches.clone(),
            _ => self.matches(row.as_doc(), batch)?,
        };
        let meta = row.meta;
        let mut doc = row.doc.into_document();
        set_path(&mut doc, self.lookup.as_path.parts(), Value::Array(Array::new(matches)));
        Ok(Row {
            doc: RowDoc::Owned(doc),
            record: None,
            meta,
        })
    }

    /// How equality is answered, in the words of MongoDB.
    fn strategy_name(&self) -> &'static str {
        match self.strategy {
            Strategy::Hash(_) => "HashJoin",
            _ if self.reads.indexes_used.is_empty() => "NestedLoopJoin",
            _ => "IndexedLoopJoin",
        }
    }

    fn decide(&mut self, row: &Row, batch: &Batch<'_>) -> Result<()> {
        let lookup = self.lookup.clone();
        if lookup.join.is_none() && lookup.variables.is_empty() {
            let matches = self.matches(row.as_doc(), batch)?;
            self.strategy = Strategy::Same(matches);
            return Ok(());
        }
        self.strategy = Strategy::PerRow;
        let (Some(join), Some(from)) = (&lookup.join, &lookup.from) else {
            return Ok(());
        };
        let resolved = resolve(from, batch.view)?;
        let indexed = resolved.stages.is_empty()
            && resolved
                .collection
                .as_ref()
                .is_none_or(|collection| has_index(collection, &join.foreign));
        if !indexed {
            if let Some(table) = self.load(from, &join.foreign, batch)? {
                self.strategy = Strategy::Hash(Box::new(table));
            }
        }
        Ok(())
    }

    /// The other collection as a table; `None` when it does not fit in memory.
    fn load(&mut self, from: &Namespace, foreign: &Path, batch: &Batch<'_>) -> Result<Option<JoinTable>> {
        let mut table = JoinTable::new(foreign.clone());
        let mut source = open(from, None, batch.view, &self.context)?;
        let mut inner = batch.within(batch.op);
        loop {
            match source.next(&mut inner)? {
                Step::Row(row) => {
                    if table.add(row.doc) > batch.memory_bytes_max {
                        return Ok(None);
                    }
                }
                Step::Pause => {}
                Step::Eof => break,
            }
        }
        if batch.explains {
            self.reads.add(&*source);
        }
        Ok(Some(table))
    }

    /// The matches of one outer document.
    fn matches(&mut self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<Vec<Value>> {
        let source = self.source(outer, batch)?;
        let op;
        let inner_op = if self.lookup.has_pipeline {
            op = batch.op.with_vars(self.variables(outer, batch)?);
            &op
        } else {
            batch.op
        };
        let context = match &self.lookup.from {
            Some(from) => self.context.on(from.clone()),
            None => self.context.on(Namespace::new(self.context.namespace.db.clone(), "")),
        };
        let mut stages = self.lookup.pipeline.stages.as_slice();
        let mut node = source;
        if let (None, Some(join), Some((documents, rest))) =
            (&self.lookup.from, &self.lookup.join, stages.split_first())
        {
            // Equality is decided among what $documents gives.
            node = build_stages(std::slice::from_ref(documents), node, &context)?;
            let filter = equality(&join.foreign, &local_values(outer, &join.local))?;
            node = Box::new(Filter::new(node, Arc::new(filter)));
            stages = rest;
        }
        node = build_stages(stages, node, &context)?;
        let mut inner = batch.within(inner_op);
        let mut out = Vec::new();
        loop {
            match node.next(&mut inner)? {
                Step::Row(row) => out.push(Value::Document(row.doc.into_document())),
                Step::Pause => {}
                Step::Eof => break,
            }
        }
        if batch.explains {
            self.reads.add(&*node);
        }
        Ok(out)
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

    /// The documents of the other side that equality leaves.
    fn source(&self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<BoxOperator> {
        let Some(from) = &self.lookup.from else {
            return Ok(Box::new(Eof::default()));
        };
        let Some(join) = &self.lookup.join else {
            return open(from, None, batch.view, &self.context);
        };
        let values = local_values(outer, &join.local);
        if let Strategy::Hash(table) = &self.strategy {
            let exact = !values.iter().any(|v| v.is_nullish() || matches!(v, Value::Regex(_)));
            let rows = if exact {
                table.find(&values).into_iter().cloned().collect()
            } else {
                // Null also finds what is absent, which the table does not know: the filter decides.
                let filter = equality(&join.foreign, &values)?;
                let mut rows = Vec::new();
                for (at, doc) in table.docs().iter().enumerate() {
                    if at % CHECK_EVERY == 0 {
                        batch.interrupt.check()?;
                    }
                    if filter.matches(doc.as_doc(), batch.op)? {
                        rows.push(doc.clone());
                    }
                }
                rows
            };
            return Ok(Box::new(Found {
                rows: rows.into_iter(),
                counters: Counters::default(),
            }));
        }
        let filter = equality(&join.foreign, &values)?;
        open(from, Some(Arc::new(filter)), batch.view, &self.context)
    }
}

fn has_index(collection: &nestor_storage::Collection, foreign: &Path) -> bool {
    collection.indexes.iter().any(|index| {
        index
            .key_pattern
            .iter()
            .next()
            .is_some_and(|(name, _)| name == foreign.as_str())
    })
}

/// The values of `localField`: through arrays on the way, an array at the end by its elements; null when
/// there are none at all.
fn local_values(outer: DocRef<'_>, local: &Path) -> Vec<Value> {
    let mut out = Vec::new();
    let mut seen_array = false;
    gather(ValueRef::Document(outer), local.parts(), &mut seen_array, &mut out);
    if out.is_empty() && !seen_array {
        out.push(Value::Null);
    }
    out
}

fn gather(value: ValueRef<'_>, parts: &[PathPart], seen_array: &mut bool, out: &mut Vec<Value>) {
    let Some((part, rest)) = parts.split_first() else {
        match value {
            ValueRef::Array(items) => {
                *seen_array = true;
                out.extend(items.iter().map(ValueRef::to_value));
            }
            other => out.push(other.to_value()),
        }
        return;
    };
    match value {
        ValueRef::Document(doc) => match doc.get(&part.name) {
            Some(inner) => gather(inner, rest, seen_array, out),
            None => out.push(Value::Null),
        },
        ValueRef::Array(items) => {
            *seen_array = true;
            if let Some(item) = part.index.and_then(|index| items.get(index as usize)) {
                gather(item, rest, seen_array, out);
                return;
            }
            let before = out.len();
            for item in items {
                if let ValueRef::Document(_) = item {
                    gather(item, parts, seen_array, out);
                }
            }
            // A position that the array does not have is missing.
            if out.len() == before && !items.is_empty() && part.name.parse::<i64>().is_ok() {
                out.push(Value::Null);
            }
        }
        _ => out.push(Value::Null),
    }
}

/// `{foreign: {$in: values}}`; regular expressions are compared as values, not matched.
fn equality(foreign: &Path, values: &[Value]) -> Result<MatchExpr> {
    // Filters refuse undefined, which old data may hold: it joins as null does.
    let values: Vec<Value> = values
        .iter()
        .map(|value| match value {
            Value::Undefined => Value::Null,
            value => value.clone(),
        })
        .collect();
    let each: Vec<Value> = values
        .iter()
        .map(|value| one_field(foreign, doc! { "$eq": value.clone() }).into())
        .collect();
    let filter = match each.len() {
        0 => return Ok(MatchExpr::AlwaysFalse),
        1 => each.into_iter().next().expect("one"),
        _ if values.iter().any(|v| matches!(v, Value::Regex(_))) => doc! { "$or": each }.into(),
        _ => one_field(foreign, doc! { "$in": values }).into(),
    };
    let Value::Document(filter) = filter else {
        return Ok(MatchExpr::AlwaysFalse);
    };
    Ok(MatchExpr::parse(filter.as_ref(), &mut Scope::new())?.normalize())
}

/// `{path: condition}`.
pub(super) fn one_field(path: &Path, condition: Document) -> Document {
    let mut out = Document::with_capacity(1);
    out.push(path.as_str(), condition);
    out
}

/// Rows found in a table.
struct Found {
    rows: std::vec::IntoIter<RowDoc>,
    counters: Counters,
}

impl Operator for Found {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if !batch.spend()? {
            return Ok(Step::Pause);
        }
        Ok(match self.rows.next() {
            Some(doc) => Step::Row(Row {
                doc,
                record: None,
                meta: None,
            }),
            None => Step::Eof,
        })
    }
    fn save(&mut self) {}
    fn stage(&self) -> &'static str {
        "HASH_LOOKUP"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Sets the field at a path, making documents on the way, in place of what is no document, arrays included.
pub(super) fn set_path(doc: &mut Document, parts: &[PathPart], value: Value) {
    let Some((part, rest)) = parts.split_first() else {
        return;
    };
    if rest.is_empty() {
        doc.set(&part.name, value);
        return;
    }
    let fields = doc.fields_mut();
    let at = match fields.iter().position(|(name, _)| *name == part.name) {
        Some(at) => at,
        None => {
            fields.push((part.name.clone(), Value::Document(Document::new())));
            fields.len() - 1
        }
    };
    let slot = &mut fields[at].1;
    match slot {
        Value::Document(inner) => set_path(inner, rest, value),
        _ => {
            let mut inner = Document::new();
            set_path(&mut inner, rest, value);
            *slot = Value::Document(inner);
        }
    }
}

impl Operator for LookupOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        self.counters.works += 1;
        match self.input.next(batch)? {
            Step::Row(row) => {
                let row = self.join(row, batch)?;
                self.counters.advanced += 1;
                Ok(Step::Row(row))
            }
            Step::Eof => {
                self.counters.is_eof = true;
                Ok(Step::Eof)
            }
            Step::Pause => Ok(Step::Pause),
        }
    }

    fn is_done(&self) -> bool {
        self.input.is_done()
    }
    fn save(&mut self) {
        // What was collected of the other collection stays, as it does for sorts and groups.
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "$lookup"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn stage_fields(&self, out: &mut Document) {
        if self.lookup.join.is_some() {
            out.push("strategy", self.strategy_name());
        }
        out.push("totalDocsExamined", self.reads.docs_examined as i64);
        out.push("totalKeysExamined", self.reads.keys_examined as i64);
        out.push("collectionScans", self.reads.collection_scans as i64);
        let indexes = self.reads.indexes_used.iter().map(|name| Value::from(name.as_str()));
        out.push("indexesUsed", indexes.collect::<Vec<Value>>());
    }
    fn add_reads(&self, reads: &mut Reads) {
        reads.merge(&self.reads);
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
