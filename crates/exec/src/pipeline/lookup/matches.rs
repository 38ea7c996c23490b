//! How `$lookup` finds the matches of a document.
//!
//! Three ways: a plan per row when equality can use an index or a point lookup; a hash table of the other collection
//! when it cannot; and the whole result kept from one row to the next when the pipeline does not depend on the row.

use crate::batch::Batch;
use crate::catalog::index_collation;
use crate::operator::{BoxOperator, Step};
use crate::ops::Values;
use crate::pipeline::hash_join::JoinTable;
use crate::pipeline::open::open;
use crate::pipeline::{PipelineSource, resolve};
use crate::reads::Reads;
use crate::row::RowDoc;
use nestor_model::{DocRef, Document, Namespace, Path, PathPart, Result, Value, ValueRef, doc};
use nestor_planner::NodeKind;
use nestor_planner::pipeline::StageNode;
use nestor_query::accumulator::value_bytes;
use nestor_query::collation::Collator;
use nestor_query::env::Env;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::Lookup;
use nestor_query::{OpContext, Scope};
use nestor_storage::Collection;
use std::sync::Arc;

/// Documents of a table between two looks at the interrupt.
const CHECK_EVERY: usize = 128;

/// Finds matches.
pub(super) struct Finder {
    pub(super) lookup: Arc<Lookup>,
    context: PipelineSource,
    /// What is done with the documents of the other side that are equal.
    stages: Vec<StageNode>,
    strategy: Strategy,
    /// What was read for it, counted for explain only.
    pub(super) reads: Reads,
}

enum Strategy {
    /// Not chosen yet: the first row does.
    Undecided,
    /// Plan anew for each row.
    PerRow,
    /// Equality by hash.
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
}

impl Matches {
    pub(super) fn save(&mut self) {
        if let Self::Pulled(node, _) = self {
            node.save();
        }
    }
}

impl Finder {
    /// `filter` is a condition on the matches beside those of the stage.
    pub(super) fn new(lookup: Arc<Lookup>, filter: Option<Arc<MatchExpr>>, context: PipelineSource) -> Self {
        let mut stages = StageNode::all(&lookup.pipeline.stages, &lookup.pipeline.written);
        stages.extend(filter.map(StageNode::matching));
        Self {
            lookup,
            context,
            stages,
            strategy: Strategy::Undecided,
            reads: Reads::default(),
        }
    }

    /// The matches of a document.
    pub(super) fn find(&mut self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<Matches> {
        if matches!(self.strategy, Strategy::Undecided) {
            self.decide(outer, batch)?;
        }
        match &self.strategy {
            Strategy::Same(matches) => Ok(Matches::Kept(matches.clone(), 0)),
            _ => self.pull(outer, batch),
        }
    }

    /// The next match.
    pub(super) fn next(&mut self, matches: &mut Matches, batch: &Batch<'_>) -> Result<Option<Value>> {
        match matches {
            Matches::Kept(values, at) => {
                *at += 1;
                Ok(values.get(*at - 1).cloned())
            }
            Matches::Pulled(node, op) => {
                let mut inner = batch.within(op.as_deref().unwrap_or(batch.op));
                loop {
                    match node.next(&mut inner)? {
                        Step::Row(row) => return Ok(Some(Value::Document(row.doc.into_document()))),
                        Step::Pause => {}
                        Step::Eof => break,
                    }
                }
                self.reads.note(&**node, batch.explains);
                Ok(None)
            }
        }
    }

    /// How equality is answered, in the words of MongoDB.
    pub(super) fn strategy_name(&self) -> &'static str {
        match self.strategy {
            Strategy::Hash(_) => "HashJoin",
            _ if self.reads.indexes_used.is_empty() => "NestedLoopJoin",
            _ => "IndexedLoopJoin",
        }
    }

    fn decide(&mut self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<()> {
        let lookup = self.lookup.clone();
        self.strategy = Strategy::PerRow;
        if lookup.join.is_none() && lookup.variables.is_empty() {
            if let Some(kept) = self.collect(outer, batch)? {
                self.strategy = Strategy::Same(kept);
            }
            return Ok(());
        }
        let (Some(join), Some(from)) = (&lookup.join, &lookup.from) else {
            return Ok(());
        };
        let resolved = resolve(from, batch.view, batch.op.collator.as_ref())?;
        let indexed = match &resolved.collection {
            _ if !resolved.stages.is_empty() => false,
            Some(collection) => has_index(collection, &join.foreign, batch.op.collator.as_ref())?,
            None => true,
        };
        if !indexed {
            if let Some(table) = self.load(from, &join.foreign, batch)? {
                self.strategy = Strategy::Hash(Box::new(table));
            }
        }
        Ok(())
    }

    /// The other collection as a table; `None` when it does not fit in memory.
    fn load(&mut self, from: &Namespace, foreign: &Path, batch: &Batch<'_>) -> Result<Option<JoinTable>> {
        let mut table = JoinTable::new(foreign.clone(), batch.op.collator.as_ref());
        let mut source = open(Some(from), Vec::new(), None, batch.view, &self.context)?;
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
        self.reads.note(&*source, batch.explains);
        Ok(Some(table))
    }

    /// All matches; `None` when they do not fit in memory.
    fn collect(&mut self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<Option<Arc<[Value]>>> {
        let mut matches = self.pull(outer, batch)?;
        let (mut held, mut all) = (0, Vec::new());
        while let Some(value) = self.next(&mut matches, batch)? {
            held += value_bytes(&value);
            if held > batch.memory_bytes_max {
                return Ok(None);
            }
            all.push(value);
        }
        Ok(Some(all.into()))
    }

    /// Opens what the matches are pulled from.
    fn pull(&self, outer: DocRef<'_>, batch: &Batch<'_>) -> Result<Matches> {
        let op = match self.lookup.has_pipeline {
            true => Some(Box::new(batch.op.with_vars(self.variables(outer, batch)?))),
            false => None,
        };
        let mut stages = self.stages.clone();
        let mut given: Option<BoxOperator> = None;
        if let Some(join) = &self.lookup.join {
            let values = local_values(outer, &join.local);
            match &self.strategy {
                Strategy::Hash(table) => given = Some(Box::new(self.rows(table, &values, batch)?)),
                _ => {
                    let equal = StageNode::matching(Arc::new(equality(&join.foreign, &values, batch)?));
                    // Of $documents, equality is decided among what they are.
                    stages.insert(usize::from(self.lookup.from.is_none()), equal);
                }
            }
        }
        let (namespace, context) = match &self.lookup.from {
            Some(from) => (Some(from), self.context.on(from.clone())),
            None => {
                let nothing = Namespace::new(self.context.namespace.db.clone(), "");
                (None, self.context.on(nothing))
            }
        };
        let namespace = namespace.filter(|_| given.is_none());
        let node = open(namespace, stages, given, batch.view, &context)?;
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

    /// The rows of the table that equality leaves.
    fn rows(&self, table: &JoinTable, values: &[Value], batch: &Batch<'_>) -> Result<Values<RowDoc>> {
        let exact = !values.iter().any(|v| v.is_nullish() || matches!(v, Value::Regex(_)));
        let rows = if exact {
            table.find(values).into_iter().cloned().collect()
        } else {
            // Null also finds what is absent, which the table does not know: the condition decides.
            let equal = equality(table.path(), values, batch)?;
            let mut rows = Vec::new();
            for (at, doc) in table.docs().iter().enumerate() {
                if at % CHECK_EVERY == 0 {
                    batch.interrupt.check()?;
                }
                if equal.matches(doc.as_doc(), batch.op)? {
                    rows.push(doc.clone());
                }
            }
            rows
        };
        Ok(Values::of(NodeKind::HashLookup, rows))
    }
}

/// Whether there is an index that equality under the collation can use.
fn has_index(collection: &Collection, foreign: &Path, collator: Option<&Collator>) -> Result<bool> {
    for index in &collection.indexes {
        let first = index.key_pattern.iter().next();
        if first.is_some_and(|(name, _)| name == foreign.as_str())
            && index_collation(collection, index)?.as_ref() == collator
        {
            return Ok(true);
        }
    }
    Ok(false)
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
fn equality(foreign: &Path, values: &[Value], batch: &Batch<'_>) -> Result<MatchExpr> {
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
    let mut scope = Scope::new().with_collator(batch.op.collator.clone());
    Ok(MatchExpr::parse(filter.as_ref(), &mut scope)?.normalize())
}

/// `{path: condition}`.
pub(in crate::pipeline) fn one_field(path: &Path, condition: Document) -> Document {
    let mut out = Document::with_capacity(1);
    out.push(path.as_str(), condition);
    out
}
