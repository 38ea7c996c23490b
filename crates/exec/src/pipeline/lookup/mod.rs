//! `$lookup`: each row with the array of its matches in another collection; or, when an `$unwind` of that array
//! follows, a row for each match without ever making the array.

mod matches;
mod probe;
mod unwinding;
mod values;

pub(super) use matches::load_table;
pub(super) use probe::IndexProbe;
pub(super) use unwinding::LookupUnwindOp;
pub(super) use values::{equality, one_field};

use super::PipelineSource;
use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Report};
use crate::row::{Row, RowDoc};
use matches::Finder;
use nestor_model::{Array, DocRef, Document, Error, PathPart, RawWriter, Result, Value};
use nestor_planner::NodeKind;
use nestor_planner::plan::InnerPlan;
use nestor_query::stage::Lookup;
use std::sync::Arc;

/// Joins each row.
pub(super) type LookupOp = Each<Join>;

/// The join that a [`LookupOp`] makes.
pub(super) struct Join(Finder);

impl LookupOp {
    pub(super) fn new(
        input: BoxOperator,
        lookup: Arc<Lookup>,
        inner: Option<Arc<InnerPlan>>,
        context: PipelineSource,
    ) -> Self {
        Self::over(input, Join(Finder::new(lookup, None, inner, context)))
    }
}

impl EachRow for Join {
    fn kind(&self) -> NodeKind {
        NodeKind::Lookup
    }

    fn row(&mut self, row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        let Self(finder) = self;
        let mut matches = finder.find(row.as_doc(), batch)?;
        let lookup = finder.lookup.clone();
        let path = lookup.as_path.parts();
        let mut kept = Kept::default();
        let limit = batch.memory_bytes_max;
        let doc = match new_field(row.doc.as_doc(), path) {
            Some(name) => {
                let mut writer = begun_with(row.doc.as_doc());
                writer.begin_array(name);
                let before = writer.len();
                let mut index = 0;
                while let Some(found) = finder.next(&mut matches, batch)? {
                    writer.append_index(index, found.as_ref());
                    index += 1;
                    kept.set(writer.len() - before)?;
                    if kept.bytes() > limit {
                        return Err(finder.too_many(limit));
                    }
                }
                writer.end();
                RowDoc::Raw(writer.into_doc())
            }
            None => {
                let mut all = Vec::new();
                while let Some(found) = finder.next(&mut matches, batch)? {
                    let value = found.into_value();
                    kept.grow(value.weight())?;
                    if kept.bytes() > limit {
                        return Err(finder.too_many(limit));
                    }
                    all.push(value);
                }
                let mut doc = row.doc.into_document();
                set_path(&mut doc, path, Value::Array(Array::new(all)));
                RowDoc::Owned(doc)
            }
        };
        Ok(Some(Row {
            doc,
            record: None,
            meta: row.meta,
        }))
    }

    // Documents collected from the other collection stay, as rows of sorts and groups do.
    fn save(&mut self) {
        self.0.save(None);
    }

    fn report<'o>(&'o self, report: Report<'o>) -> Report<'o> {
        self.0.add_to(report)
    }

    fn stage_fields(&self, out: &mut Document) {
        self.0.stage_fields(out);
    }

    fn planned_fields(&self, out: &mut Document) {
        self.0.planned_fields(out);
    }
}

impl Finder {
    /// The error when the matches of one document take more than `limit` bytes.
    fn too_many(&self, limit: usize) -> Error {
        let from = self.lookup.from.as_ref().map_or(String::new(), ToString::to_string);
        Error::location(
            4568,
            format!("Total size of documents in {from} matching pipeline's $lookup stage exceeds {limit} bytes"),
        )
    }

    /// How equality is answered, if that is decided, with the names of MongoDB.
    fn planned_fields(&self, out: &mut Document) {
        let Some(strategy) = self.strategy_name().filter(|_| self.lookup.join.is_some()) else {
            return;
        };
        out.push("strategy", strategy);
        if let Some((name, key_pattern)) = self.planned_index() {
            out.push("indexName", name);
            out.push("indexKeyPattern", key_pattern);
        }
    }

    /// Appends the figures that explain shows of the search.
    fn stage_fields(&self, out: &mut Document) {
        out.push("totalDocsExamined", self.reads.docs_examined as i64);
        out.push("totalKeysExamined", self.reads.keys_examined as i64);
        out.push("collectionScans", self.reads.collection_scans as i64);
        let indexes = self.reads.indexes_used.iter().map(|name| Value::from(name.as_str()));
        out.push("indexesUsed", indexes.collect::<Vec<Value>>());
    }
}

/// The name of the field at `path` if it can be put behind those of a document: the document is bytes and does not have it yet. So
/// nothing is read of either side of a join.
fn new_field<'p>(doc: DocRef<'_>, path: &'p [PathPart]) -> Option<&'p str> {
    let (DocRef::Raw(doc), [part]) = (doc, path) else {
        return None;
    };
    doc.get(&part.name).is_none().then_some(&*part.name)
}

/// A writer of a document that begins with the fields of another one.
fn begun_with(doc: DocRef<'_>) -> RawWriter {
    match doc {
        DocRef::Raw(doc) => {
            // Without the length in front and the zero byte behind. There is room for a match of about the same size.
            let mut out = RawWriter::with_capacity(2 * doc.len() + 32);
            out.append_element_bytes(doc.as_bytes().get(4..doc.len() - 1).unwrap_or_default());
            out
        }
        DocRef::Fields(_) => {
            let mut out = RawWriter::new();
            doc.iter().for_each(|(name, value)| out.append(name, value));
            out
        }
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
