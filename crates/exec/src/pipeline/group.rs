//! `$group`: one row per distinct key.
//!
//! Groups live in a hash table; a row costs one evaluation of the key, one hash and one comparison,
//! without copying the key unless the group is new. When the groups outgrow the memory limit the table
//! stops growing: rows of unknown groups go to partition files by their hash and are grouped afterwards,
//! partition by partition, in the order they came.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step};
use crate::row::Row;
use crate::spill::{self, Spilled};
use hashbrown::HashTable;
use nestor_model::{Document, Error, ErrorCode, RawDocBuf, Result, Value, ValueRef};
use nestor_planner::NodeKind;
use nestor_query::accumulator::{Accumulator, AccumulatorSpec, value_bytes};
use nestor_query::collation;
use nestor_query::env::{Env, OpContext};
use nestor_query::stage::Group;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// Partition files per level of spilling.
const PARTITIONS: usize = 16;
/// Levels of spilling: 16^6 partitions are enough for any disk.
const LEVELS_MAX: u32 = 6;
/// Rows between two looks at how much the accumulators hold.
const MEASURE_EVERY: u64 = 1024;

struct Bucket {
    hash: u64,
    key: Value,
    states: Vec<Accumulator>,
}

/// What is counted for explain only.
#[derive(Default)]
struct Figures {
    /// For each field the most that its accumulators held, in bytes.
    accumulators_max: Vec<usize>,
    output_bytes: usize,
}

/// Groups its input.
pub(super) struct GroupOp {
    input: BoxOperator,
    group: Arc<Group>,
    hasher: RandomState,
    table: HashTable<u32>,
    buckets: Vec<Bucket>,
    /// Bytes of keys and fixed parts; those of accumulators are measured from time to time.
    held: usize,
    accumulators_held: usize,
    rows_seen: u64,
    spill: Option<Partitions>,
    /// Partitions still to be grouped, with their level.
    waiting: Vec<(u32, File)>,
    level: u32,
    spilled: Spilled,
    /// What only explain shows.
    figures: Figures,
    output: Option<std::vec::IntoIter<Bucket>>,
    counters: Counters,
}

impl GroupOp {
    pub(super) fn new(input: BoxOperator, group: Arc<Group>) -> Self {
        Self {
            input,
            group,
            hasher: RandomState::new(),
            table: HashTable::new(),
            buckets: Vec::new(),
            held: 0,
            accumulators_held: 0,
            rows_seen: 0,
            spill: None,
            waiting: Vec::new(),
            level: 0,
            spilled: Spilled::default(),
            figures: Figures::default(),
            output: None,
            counters: Counters::default(),
        }
    }

    fn hash(&self, key: ValueRef<'_>, op: &OpContext) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        // A missing key groups with null.
        let key = if key.is_nullish() && !matches!(key, ValueRef::Undefined) {
            ValueRef::Null
        } else {
            key
        };
        collation::hash(key, op.collator.as_ref(), &mut hasher);
        hasher.finish()
    }

    /// Adds a row to its group, or sets it aside.
    fn add(&mut self, row: &Row, batch: &Batch<'_>) -> Result<()> {
        let group = self.group.clone();
        let mut env = Env::new(row.as_doc(), batch.op).with_meta(row.meta.as_deref());
        let key = group.id.eval_ref(&mut env)?;
        let key_ref = if key.is_missing() { ValueRef::Null } else { key.as_ref() };
        let hash = self.hash(key_ref, batch.op);
        let collator = batch.op.collator.as_ref();
        let buckets = &self.buckets;
        let found = self.table.find(hash, |at| {
            let bucket = &buckets[*at as usize];
            bucket.hash == hash && collation::equal(bucket.key.as_ref(), key_ref, collator)
        });
        let at = match found {
            Some(at) => *at as usize,
            None if self.spill.is_some() => return self.set_aside(hash, row),
            None => self.insert(hash, key_ref.to_value(), batch.op)?,
        };
        let bucket = &mut self.buckets[at];
        for (field, state) in group.fields.iter().zip(&mut bucket.states) {
            field
                .accumulator
                .accumulate(state, &mut env)
                .map_err(AccumulatorSpec::group_error)?;
        }
        self.rows_seen += 1;
        if self.rows_seen.is_multiple_of(MEASURE_EVERY) || self.held > batch.memory_bytes_max {
            self.measure(batch)?;
        }
        Ok(())
    }

    fn insert(&mut self, hash: u64, key: Value, op: &OpContext) -> Result<usize> {
        let states: Vec<Accumulator> = self
            .group
            .fields
            .iter()
            .map(|field| field.accumulator.start(&key, op))
            .collect::<Result<_>>()?;
        self.held += size_of::<Bucket>() + value_bytes(&key) + states.len() * size_of::<Accumulator>() + 16;
        let at = self.buckets.len();
        self.buckets.push(Bucket { hash, key, states });
        let buckets = &self.buckets;
        self.table
            .insert_unique(hash, at as u32, |at| buckets[*at as usize].hash);
        Ok(at)
    }

    /// Looks at the memory held; starts spilling, or fails when that would not help.
    fn measure(&mut self, batch: &Batch<'_>) -> Result<()> {
        let limit = batch.memory_bytes_max;
        self.accumulators_held = self
            .buckets
            .iter()
            .map(|b| b.states.iter().map(Accumulator::memory).sum::<usize>())
            .sum();
        if self.held + self.accumulators_held <= limit {
            return Ok(());
        }
        let Some(dir) = batch.spill_dir else {
            return Err(Error::new(
                ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                format!(
                    "exceeded memory limit for $group, but didn't allow external spilling; pass allowDiskUse: true; limit is {limit} bytes"
                ),
            ));
        };
        if self.spill.is_none() && self.level < LEVELS_MAX {
            self.spill = Some(Partitions::create(dir)?);
            self.spilled.spills += 1;
        }
        // What known groups collect ($push and the like) cannot go to disk.
        if self.accumulators_held > limit.saturating_mul(2) {
            return Err(Error::new(
                ErrorCode::ExceededMemoryLimit,
                format!("$group used too much memory and cannot spill to disk; memory limit: {limit} bytes"),
            ));
        }
        Ok(())
    }

    fn set_aside(&mut self, hash: u64, row: &Row) -> Result<()> {
        let partition = (hash >> (self.level * 4)) as usize % PARTITIONS;
        let Some(partitions) = &mut self.spill else {
            return Ok(());
        };
        let raw = row.doc.to_raw();
        self.spilled.records += 1;
        self.spilled.bytes += raw.as_bytes().len() as u64;
        partitions.write(partition, &raw)
    }

    /// Ends a pass: its groups become the output, its partitions wait.
    fn finish_pass(&mut self, batch: &Batch<'_>) -> Result<()> {
        if batch.explains {
            self.count_accumulators();
        }
        self.table.clear();
        self.held = 0;
        self.accumulators_held = 0;
        self.output = Some(std::mem::take(&mut self.buckets).into_iter());
        if let Some(partitions) = self.spill.take() {
            let level = self.level + 1;
            self.waiting
                .extend(partitions.finish()?.into_iter().map(|file| (level, file)));
        }
        Ok(())
    }

    /// Groups one waiting partition. Runs to its end: the rows were paid for when they were pulled.
    fn group_partition(&mut self, level: u32, file: File, batch: &Batch<'_>) -> Result<()> {
        self.level = level;
        let mut reader = PartitionReader::open(file)?;
        let mut rows = 0u64;
        while let Some(doc) = reader.next()? {
            rows += 1;
            if rows.is_multiple_of(MEASURE_EVERY) {
                batch.interrupt.check()?;
            }
            self.add(&Row::computed(doc.into()), batch)?;
        }
        self.finish_pass(batch)
    }

    /// Accumulators are at their largest at the end of a pass.
    fn count_accumulators(&mut self) {
        let held_max = &mut self.figures.accumulators_max;
        held_max.resize(self.group.fields.len(), 0);
        for (at, max) in held_max.iter_mut().enumerate() {
            let held = |bucket: &Bucket| size_of::<Accumulator>() + bucket.states[at].memory();
            let held = self.buckets.iter().map(held).sum::<usize>();
            *max = held.max(*max);
        }
    }

    fn emit(&self, bucket: Bucket) -> Row {
        let mut doc = Document::with_capacity(1 + self.group.fields.len());
        doc.push("_id", bucket.key);
        for (field, state) in self.group.fields.iter().zip(&bucket.states) {
            let value = state.result();
            doc.push(field.name.clone(), if value.is_missing() { Value::Null } else { value });
        }
        Row::computed(doc)
    }
}

impl Operator for GroupOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if self.output.is_none() {
            loop {
                self.counters.works += 1;
                match self.input.next(batch)? {
                    Step::Row(row) => self.add(&row, batch)?,
                    Step::Pause => return Ok(Step::Pause),
                    Step::Eof => break,
                }
            }
            self.finish_pass(batch)?;
        }
        loop {
            if let Some(bucket) = self.output.as_mut().and_then(Iterator::next) {
                self.counters.advanced += 1;
                let row = self.emit(bucket);
                if batch.explains {
                    self.figures.output_bytes += row.doc.size();
                }
                return Ok(Step::Row(row));
            }
            match self.waiting.pop() {
                Some((level, file)) => self.group_partition(level, file, batch)?,
                None => {
                    self.counters.is_eof = true;
                    return Ok(Step::Eof);
                }
            }
        }
    }

    fn save(&mut self) {
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::Group, &self.counters).over(&*self.input);
        let held = self.held + self.accumulators_held;
        report.holding(held).spilling(self.spilled).explained_by(self)
    }
}

impl Explain for GroupOp {
    fn stage_fields(&self, out: &mut Document) {
        let fields = self.group.fields.iter().zip(&self.figures.accumulators_max);
        let held_max: Document = fields
            .map(|(field, max)| (field.name.clone(), Value::Int64(*max as i64)))
            .collect();
        out.push("maxAccumulatorMemoryUsageBytes", held_max);
        out.push("totalOutputDataSizeBytes", self.figures.output_bytes as i64);
    }
}

/// Files of rows set aside: documents one after the other, each with its own length in front as BSON has it.
struct Partitions(Vec<BufWriter<File>>);

impl Partitions {
    fn create(dir: &std::path::Path) -> Result<Self> {
        let file = |_| Ok(BufWriter::with_capacity(64 * 1024, spill::temporary_file(dir)?));
        Ok(Self((0..PARTITIONS).map(file).collect::<Result<_>>()?))
    }

    fn write(&mut self, partition: usize, doc: &RawDocBuf) -> Result<()> {
        self.0[partition].write_all(doc.as_bytes()).map_err(spill::io_error)
    }

    /// The files that hold something, rewound.
    fn finish(self) -> Result<Vec<File>> {
        let mut files = Vec::new();
        for writer in self.0 {
            let mut file = writer.into_inner().map_err(|e| spill::io_error(e.into_error()))?;
            if file.stream_position().map_err(spill::io_error)? > 0 {
                file.seek(SeekFrom::Start(0)).map_err(spill::io_error)?;
                files.push(file);
            }
        }
        Ok(files)
    }
}

struct PartitionReader(BufReader<File>);

impl PartitionReader {
    fn open(file: File) -> Result<Self> {
        Ok(Self(BufReader::with_capacity(64 * 1024, file)))
    }

    fn next(&mut self) -> Result<Option<RawDocBuf>> {
        let mut length = [0u8; 4];
        match self.0.read_exact(&mut length) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(spill::io_error(e)),
        }
        let size = (i32::from_le_bytes(length).max(5)) as usize;
        let mut bytes = vec![0; size];
        bytes[..4].copy_from_slice(&length);
        self.0.read_exact(&mut bytes[4..]).map_err(spill::io_error)?;
        RawDocBuf::validate(bytes).map(Some).map_err(Error::from)
    }
}
