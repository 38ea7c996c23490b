//! Documents by many keys of an index: what a join asks for the rows of one side at a time.

use crate::batch::Batch;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::ops::dedup::Dedup;
use crate::ops::gathered::Gathered;
use crate::row::Row;
use crate::row_batch::{Filled, RowBatch};
use nestor_model::statement::{ROW, work};
use nestor_model::{Document, Result, Value};
use nestor_planner::NodeKind;
use nestor_storage::keys::EntryFormat;
use nestor_storage::{Bytes, Collection, Cursor, Index, RecordReader, View};
use std::sync::Arc;

/// Keys that are looked up together where each is one entry.
const POINTS: usize = 64;

/// Encoded keys, or the first parts of keys.
#[derive(Clone, Debug, Default)]
pub struct IndexKeys {
    bytes: Vec<u8>,
    /// Where each begins and ends.
    places: Vec<(u32, u32)>,
}

impl IndexKeys {
    /// Adds a key, which `encode` appends to the bytes.
    ///
    /// Errors: those of `encode`, after which the key is not there.
    pub fn add<E>(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let from = self.bytes.len();
        let result = encode(&mut self.bytes);
        match &result {
            Ok(()) => self.places.push((from as u32, self.bytes.len() as u32)),
            Err(_) => self.bytes.truncate(from),
        }
        result
    }

    /// Adds a key.
    pub(crate) fn add_key(&mut self, key: &[u8]) {
        let from = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.places.push((from, self.bytes.len() as u32));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The key that was added as number `at`.
    pub fn get(&self, at: usize) -> &[u8] {
        let (from, to) = self.places[at];
        &self.bytes[from as usize..to as usize]
    }

    /// The numbers of keys that are different, in the order of the keys.
    pub fn different(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..self.len()).collect();
        numbers.sort_unstable_by(|a, b| self.get(*a).cmp(self.get(*b)));
        numbers.dedup_by(|a, b| self.get(*a) == self.get(*b));
        numbers
    }

    /// Each once, in order.
    fn settle(&mut self) {
        let (bytes, places) = (&self.bytes, &mut self.places);
        let of = |(from, to): &(u32, u32)| &bytes[*from as usize..*to as usize];
        places.sort_unstable_by(|a, b| of(a).cmp(of(b)));
        places.dedup_by(|a, b| of(a) == of(b));
    }
}

/// Finds documents by keys of an index, or by the first parts of them, each once, in no order. Not for clustered collections.
pub struct KeyLookup {
    index: Arc<Index>,
    format: EntryFormat,
    keys: IndexKeys,
    /// Each key is that of one entry at most.
    points: bool,
    /// The key that is looked up next, and whether the cursor stands at one of its entries already.
    at: usize,
    within: bool,
    cursor: Option<Cursor>,
    records: RecordReader,
    gathered: Gathered,
    /// The documents so far, where one may have several of the keys.
    dedup: Dedup,
    may_repeat: bool,
    counters: Counters,
}

impl KeyLookup {
    /// A lookup of keys, each with so many parts.
    pub fn new(collection: &Collection, index: Arc<Index>, mut keys: IndexKeys, parts: usize) -> Self {
        keys.settle();
        let format = index.entry_format(collection);
        let points = format.unique && parts == format.descending.len();
        Self {
            dedup: Dedup::default(),
            may_repeat: index.is_multikey(),
            index,
            format,
            keys,
            points,
            at: 0,
            within: false,
            cursor: None,
            records: RecordReader::new(collection.records),
            gathered: Gathered::default(),
            counters: Counters::default(),
        }
    }

    /// Gathers the records of the next keys.
    fn gather(&mut self, view: &dyn View) -> Result<()> {
        self.gathered.begin();
        while self.at < self.keys.len() && self.gathered.room() > 0 {
            match self.points {
                true => self.gather_points(view)?,
                false => self.gather_entries(view)?,
            }
        }
        self.gathered.settle();
        Ok(())
    }

    fn gather_points(&mut self, view: &dyn View) -> Result<()> {
        let end = self.keys.len().min(self.at + self.gathered.room().min(POINTS));
        let keys: Vec<&[u8]> = (self.at..end).map(|at| self.keys.get(at)).collect();
        self.at = end;
        work(ROW * keys.len())?;
        let found = view.get_many(self.index.tree, &keys)?;
        self.counters.works += keys.len() as u64;
        self.counters.seeks += keys.len() as u64;
        for (key, value) in keys.into_iter().zip(found) {
            if let Some(value) = value {
                self.counters.keys_examined += 1;
                self.gathered.add(self.format.split(key, &value)?.record)?;
            }
        }
        Ok(())
    }

    /// Gathers the records of one key, or some of them.
    fn gather_entries(&mut self, view: &dyn View) -> Result<()> {
        let prefix = self.keys.get(self.at);
        let cursor = self.cursor.get_or_insert_with(|| view.cursor(self.index.tree));
        let mut more = match self.within {
            true => true,
            false => {
                work(ROW)?;
                self.counters.works += 1;
                self.counters.seeks += 1;
                cursor.seek(prefix)?
            }
        };
        self.within = false;
        while more && cursor.key().starts_with(prefix) {
            if self.gathered.room() == 0 {
                self.within = true;
                return Ok(());
            }
            work(ROW / 2)?;
            self.counters.keys_examined += 1;
            let record = self.format.split(cursor.key(), cursor.value()?)?.record;
            if !self.may_repeat || self.dedup.is_new_record(record)? {
                self.gathered.add(record)?;
            }
            more = cursor.next()?;
        }
        self.at += 1;
        Ok(())
    }
}

impl Operator for KeyLookup {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            let Some(key) = self.gathered.pop() else {
                if self.at == self.keys.len() {
                    self.counters.is_eof = true;
                    return Ok(Step::Eof);
                }
                self.gather(batch.view)?;
                continue;
            };
            self.counters.docs_examined += 1;
            if let Some(bytes) = self.records.get(batch.view, &key)? {
                self.counters.advanced += 1;
                return Ok(Step::Row(Row::stored(Bytes::copy_from(&key), bytes)));
            }
        }
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        while !out.is_full() {
            if self.gathered.is_empty() {
                if self.at == self.keys.len() {
                    self.counters.is_eof = true;
                    return Ok(Filled::Eof);
                }
                self.gather(batch.view)?;
                continue;
            }
            let before = out.len();
            let examined = self.gathered.read(&mut self.records, batch.view, out)?;
            self.counters.docs_examined += examined as u64;
            self.counters.advanced += (out.len() - before) as u64;
        }
        Ok(Filled::Full)
    }

    fn save(&mut self) {
        self.dedup.rest();
        // What the cursor stands at is looked for again.
        self.cursor = None;
        self.within = false;
        self.records.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::IndexScan, &self.counters);
        Report {
            index: Some(&self.index),
            ..report.holding(self.dedup.memory()).explained_by(self)
        }
    }
}

impl Explain for KeyLookup {
    fn plan_fields(&self, out: &mut Document) {
        out.push("indexName", self.index.name.as_str());
        out.push("keysExamined", Value::count(self.counters.keys_examined));
        out.push("docsExamined", Value::count(self.counters.docs_examined));
        out.push("seeks", Value::count(self.counters.seeks));
    }
}
