//! Finding the documents that equal values of one outer document after the other by an index, without planning: the plan was
//! made once ([`EqualityPlan`]), the cursor stays open, and only the key to seek changes.

use crate::ops::dedup::Dedup;
use crate::point;
use crate::reads::Reads;
use nestor_model::sort::sort_by;
use nestor_model::statement::{ROW, effort, work};
use nestor_model::{Error, ErrorCode, Result, Value};
use nestor_planner::plan::{EqualityAccess, EqualityPlan};
use nestor_query::collation::{Collator, stored};
use nestor_storage::keys::{EntryFormat, encode_into};
use nestor_storage::{Bytes, Collection, Cursor, Index, RecordReader, View};
use std::sync::Arc;

/// Finds documents by values.
pub(in crate::pipeline) struct IndexProbe {
    plan: Arc<EqualityPlan>,
    collection: Arc<Collection>,
    access: Access,
    /// The values of the last outer document, and the position among them.
    values: Vec<Value>,
    at: usize,
    /// Outer documents so far.
    probes: u64,
}

enum Access {
    Id,
    Index(Box<Entries>),
}

/// The entries of an index with a key.
struct Entries {
    index: Arc<Index>,
    format: EntryFormat,
    collation: Option<Collator>,
    /// A document may have several entries with the values.
    may_repeat: bool,
    /// There is at most one entry with a value.
    is_single: bool,
    cursor: Option<Cursor>,
    records: RecordReader,
    /// The value that is looked for, encoded.
    key: Vec<u8>,
    /// The key of the last entry of that value that was looked at; empty before there was one.
    last: Vec<u8>,
    /// Whether the cursor is at that entry.
    is_placed: bool,
    seen: Dedup,
}

impl IndexProbe {
    /// A probe by `plan`. Error: 175 when the index is gone.
    pub(in crate::pipeline) fn new(plan: Arc<EqualityPlan>, collection: &Arc<Collection>) -> Result<Self> {
        let access = match &plan.access {
            EqualityAccess::Id(_) => Access::Id,
            EqualityAccess::Index(info) => {
                let index = collection.indexes.iter().find(|index| index.id.0 == info.id);
                let index = index.ok_or_else(|| {
                    let gone = format!("index '{}' was dropped", info.name);
                    Error::new(ErrorCode::QueryPlanKilled, gone)
                })?;
                Access::Index(Box::new(Entries {
                    format: index.entry_format(collection),
                    collation: info.collation.clone(),
                    may_repeat: info.is_multikey(),
                    is_single: info.unique && info.parts.len() == 1,
                    cursor: None,
                    records: RecordReader::new(collection.records),
                    key: Vec::new(),
                    last: Vec::new(),
                    is_placed: false,
                    seen: Dedup::default(),
                    index: index.clone(),
                }))
            }
        };
        Ok(Self {
            plan,
            collection: collection.clone(),
            access,
            values: Vec::new(),
            at: 0,
            probes: 0,
        })
    }

    /// The collection that it reads.
    pub(in crate::pipeline) fn collection(&self) -> &Collection {
        &self.collection
    }

    /// Whether the collection is in this state as it was when the probe was made: the same indexes, the same fields with arrays.
    pub(in crate::pipeline) fn is_current(&self, view: &dyn View) -> bool {
        let now = view.catalog().get(&self.plan.namespace);
        now.is_some_and(|now| Arc::ptr_eq(now, &self.collection))
    }

    /// Whether the probe finds all documents that equal one of the values.
    pub(in crate::pipeline) fn binds(&self, values: &[Value]) -> bool {
        values.iter().all(|value| self.plan.binds(value))
    }

    /// The memory of the last outer document's values, for those of the next one.
    pub(in crate::pipeline) fn reuse_values(&mut self) -> Vec<Value> {
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        values
    }

    /// Begins to find the documents that equal one of the values.
    pub(in crate::pipeline) fn begin(
        &mut self,
        mut values: Vec<Value>,
        reads: &mut Reads,
        explained: bool,
    ) -> Result<()> {
        if values.len() > 1 {
            let collator = match &self.access {
                Access::Id => None,
                Access::Index(entries) => entries.collation.as_ref(),
            };
            sort_by(&mut values, |a, b| {
                nestor_query::collation::compare(a.as_ref(), b.as_ref(), collator)
            })?;
            values.dedup_by(|a, b| nestor_query::collation::equal(a.as_ref(), b.as_ref(), collator));
        }
        self.values = values;
        self.at = 0;
        self.probes += 1;
        if let Access::Index(entries) = &mut self.access {
            self.collection.state.note_index_use(entries.index.id);
            entries.seen.clear();
            entries.seek_next();
        } else if let Some(index) = self.collection.id_index() {
            self.collection.state.note_index_use(index.id);
        }
        if explained {
            reads.indexes_used.insert(match &self.access {
                Access::Id => "_id_".into(),
                Access::Index(entries) => entries.index.name.to_string(),
            });
        }
        Ok(())
    }

    /// The next document. `view` is the same up to the next [`IndexProbe::save`].
    pub(in crate::pipeline) fn next(&mut self, view: &dyn View, reads: &mut Reads) -> Result<Option<Bytes>> {
        while let Some(value) = self.values.get(self.at) {
            effort::made();
            work(ROW)?;
            let found = match &mut self.access {
                Access::Id => {
                    self.at += 1;
                    reads.keys_examined += 1;
                    point::by_id(view, &self.collection, value.as_ref())?.map(|(_, doc)| doc)
                }
                Access::Index(entries) => {
                    let found = entries.next(value, view, reads)?;
                    if found.is_none() {
                        self.at += 1;
                        entries.seek_next();
                    }
                    found
                }
            };
            if found.is_some() {
                reads.docs_examined += 1;
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Outer documents so far.
    pub(in crate::pipeline) fn probes(&self) -> u64 {
        self.probes
    }

    /// Lets go of cursors, keeps the position.
    pub(in crate::pipeline) fn save(&mut self) {
        if let Access::Index(entries) = &mut self.access {
            entries.cursor = None;
            entries.seen.rest();
            entries.is_placed = false;
            entries.records.save();
        }
    }
}

impl Entries {
    /// The next value comes.
    fn seek_next(&mut self) {
        self.key.clear();
        self.last.clear();
        self.is_placed = false;
    }

    /// The next document with `value`.
    fn next(&mut self, value: &Value, view: &dyn View, reads: &mut Reads) -> Result<Option<Bytes>> {
        if self.key.is_empty() {
            let collator = self.collation.as_ref();
            let collated = collator.and_then(|collator| stored(value.as_ref(), collator));
            let descending = self.format.descending.first().copied().unwrap_or(false);
            encode_into(collated.as_ref().unwrap_or(value), descending, &mut self.key);
        }
        loop {
            work(ROW / 4)?;
            if self.is_single && !self.last.is_empty() {
                return Ok(None);
            }
            let cursor = self.cursor.get_or_insert_with(|| view.cursor(self.index.tree));
            let found = match (self.last.is_empty(), self.is_placed) {
                (true, _) => cursor.seek(&self.key)?,
                (false, true) => cursor.next()?,
                (false, false) => {
                    let found = cursor.seek(&self.last)?;
                    if found && cursor.key() == self.last.as_slice() {
                        cursor.next()?
                    } else {
                        found
                    }
                }
            };
            self.is_placed = true;
            // Encoded values are free of prefixes: a key continues with these bytes exactly when its value is the same.
            reads.keys_examined += u64::from(found);
            if !found || !cursor.key().starts_with(&self.key) {
                return Ok(None);
            }
            self.last.clear();
            self.last.extend_from_slice(cursor.key());
            let entry = self.format.split(cursor.key(), cursor.value()?)?;
            if self.may_repeat && !self.seen.is_new_record(entry.record)? {
                continue;
            }
            if let Some(doc) = self.records.get(view, entry.record)? {
                return Ok(Some(doc));
            }
        }
    }
}
