//! Sorted runs in temporary files, and their merge.
//!
//! ```text
//! run    entry*
//! entry  u32 key length | key | u64 arrival | u8 flags | [u8 length | record key] | [u32 length | metadata] | document
//! flags  1 record key follows, 2 metadata follows; all integers little-endian
//! ```
//!
//! The files are removed from their directory as soon as they are open, so nothing is left behind whatever
//! happens to the process.

use super::Sortable;
use super::ordered::Ordered;
use crate::kept::Kept;
use crate::row::{Row, RowDoc};
use crate::spill;
use nestor_model::statement::{BYTES_PER_UNIT, ROW, work};
use nestor_model::{Document, Result, Value};
use nestor_query::env::DocMeta;
use nestor_storage::{Bytes, Scratch, ScratchFile};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};

const HAS_RECORD: u8 = 1;
const HAS_META: u8 = 2;

/// Bytes written to and read from a run at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// A run that was written.
pub(super) struct RunWriter {
    file: ScratchFile,
    bytes: u64,
    entries: u64,
}

impl RunWriter {
    /// Writes `rows`, each of which is gone from memory then.
    pub(super) fn write(dir: &Scratch, mut rows: Ordered) -> Result<Self> {
        let mut run = OpenRun::new(dir)?;
        while let Some(row) = rows.pop() {
            run.push(&row)?;
        }
        run.finish()
    }

    /// Makes one run of several.
    pub(super) fn merge(dir: &Scratch, runs: Vec<Self>) -> Result<Self> {
        let mut merge = Merge::new(runs, Ordered::default())?;
        let mut run = OpenRun::new(dir)?;
        while let Some(row) = merge.next(&mut Kept::default())? {
            run.push(&row)?;
        }
        run.finish()
    }

    /// Bytes in the file.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A run that is being written.
struct OpenRun {
    out: BufWriter<ScratchFile>,
    bytes: u64,
    entries: u64,
}

impl OpenRun {
    fn new(dir: &Scratch) -> Result<Self> {
        Ok(Self {
            out: BufWriter::with_capacity(BUFFER_BYTES, spill::temporary_file(dir)?),
            bytes: 0,
            entries: 0,
        })
    }

    fn push(&mut self, row: &Sortable) -> Result<()> {
        let bytes = write_entry(&mut self.out, row).map_err(spill::io_error)?;
        self.entries += 1;
        self.bytes += bytes;
        work(ROW + bytes as usize / BYTES_PER_UNIT)
    }

    fn finish(self) -> Result<RunWriter> {
        let mut file = self.out.into_inner().map_err(|e| spill::io_error(e.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(spill::io_error)?;
        Ok(RunWriter {
            file,
            bytes: self.bytes,
            entries: self.entries,
        })
    }
}

fn write_entry(out: &mut impl Write, item: &Sortable) -> std::io::Result<u64> {
    let doc = item.row.doc.to_raw();
    let meta = item.row.meta.as_deref().map(|meta| meta_document(meta).to_raw());
    let mut head = Vec::with_capacity(item.key.len() + 64);
    head.extend_from_slice(&(item.key.len() as u32).to_le_bytes());
    head.extend_from_slice(&item.key);
    head.extend_from_slice(&item.arrival.to_le_bytes());
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    head.push(flag(item.row.record.is_some(), HAS_RECORD) | flag(meta.is_some(), HAS_META));
    if let Some(record) = &item.row.record {
        head.extend_from_slice(&(record.len() as u32).to_le_bytes());
        head.extend_from_slice(record);
    }
    if let Some(meta) = &meta {
        head.extend_from_slice(meta.as_bytes());
    }
    out.write_all(&head)?;
    out.write_all(doc.as_bytes())?;
    Ok((head.len() + doc.as_bytes().len()) as u64)
}

/// Metadata as a document; only what stages below a sort attach.
fn meta_document(meta: &DocMeta) -> Document {
    let mut doc = Document::new();
    doc.push("t", meta.text_score);
    doc.push("s", meta.search_score);
    doc.push("v", meta.vector_search_score);
    doc.push("f", meta.fused_score);
    doc.push("d", meta.geo_distance);
    doc.push("p", meta.geo_point.clone());
    doc.push("r", meta.rand_val);
    doc.push("i", meta.record_id.map(|id| id as i64));
    doc.push("x", meta.index_key.clone());
    doc.push("k", meta.sort_key.clone());
    doc.push("h", meta.highlights.clone());
    doc.push("e", meta.search_score_details.clone());
    doc.push("c", meta.fused_score_details.clone());
    doc.push("n", meta.sequence_token.clone());
    doc
}

fn meta_of(doc: &Document) -> DocMeta {
    let number = |name: &str| match doc.get(name) {
        Some(nestor_model::ValueRef::Double(v)) => Some(v),
        _ => None,
    };
    let value = |name: &str| doc.get(name).map(|v| v.to_value());
    DocMeta {
        text_score: number("t"),
        search_score: number("s"),
        vector_search_score: number("v"),
        fused_score: number("f"),
        geo_distance: number("d"),
        geo_point: value("p"),
        rand_val: number("r"),
        record_id: match doc.get("i") {
            Some(nestor_model::ValueRef::Int64(v)) => Some(v as u64),
            _ => None,
        },
        index_key: match value("x") {
            Some(Value::Document(key)) => Some(key),
            _ => None,
        },
        sort_key: value("k"),
        highlights: value("h"),
        search_score_details: value("e"),
        fused_score_details: value("c"),
        sequence_token: value("n"),
    }
}

struct RunReader {
    input: BufReader<ScratchFile>,
    left: u64,
}

impl RunReader {
    fn next(&mut self) -> Result<Option<Sortable>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.read().map(Some)
    }

    fn read(&mut self) -> Result<Sortable> {
        let key_len = self.u32()? as usize;
        let key = self.bytes(key_len)?;
        let arrival = {
            let mut word = [0; 8];
            self.input.read_exact(&mut word).map_err(spill::io_error)?;
            u64::from_le_bytes(word)
        };
        let mut flags = [0];
        self.input.read_exact(&mut flags).map_err(spill::io_error)?;
        let record = if flags[0] & HAS_RECORD != 0 {
            let len = self.u32()? as usize;
            Some(Bytes::from(self.bytes(len)?))
        } else {
            None
        };
        let meta = if flags[0] & HAS_META != 0 {
            Some(Box::new(meta_of(&spill::read_document(&mut self.input)?.into())))
        } else {
            None
        };
        let doc = RowDoc::Raw(spill::read_document(&mut self.input)?);
        Ok(Sortable {
            key,
            arrival,
            row: Row { doc, record, meta },
        })
    }

    fn u32(&mut self) -> Result<u32> {
        let mut word = [0; 4];
        self.input.read_exact(&mut word).map_err(spill::io_error)?;
        Ok(u32::from_le_bytes(word))
    }

    fn bytes(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.input.read_exact(&mut bytes).map_err(spill::io_error)?;
        Ok(bytes)
    }
}

/// Merges runs and what is still in memory.
pub(super) struct Merge {
    readers: Vec<RunReader>,
    memory: Ordered,
    /// The next item of each source and the source; `readers.len()` is memory.
    heads: BinaryHeap<Reverse<(Sortable, usize)>>,
    /// Of what was read ahead.
    buffers: Kept,
}

impl Merge {
    /// Merges `runs` and `memory`.
    pub(super) fn new(runs: Vec<RunWriter>, memory: Ordered) -> Result<Self> {
        let mut merge = Self {
            readers: runs
                .into_iter()
                .map(|run| RunReader {
                    input: BufReader::with_capacity(BUFFER_BYTES, run.file),
                    left: run.entries,
                })
                .collect(),
            memory,
            heads: BinaryHeap::new(),
            buffers: Kept::default(),
        };
        merge.buffers.grow(merge.readers.len() * BUFFER_BYTES)?;
        for source in 0..=merge.readers.len() {
            merge.refill(source)?;
        }
        Ok(merge)
    }

    /// The next row; `kept` counts those in memory.
    pub(super) fn next(&mut self, kept: &mut Kept) -> Result<Option<Sortable>> {
        let Some(Reverse((item, source))) = self.heads.pop() else {
            return Ok(None);
        };
        if source == self.readers.len() {
            // The one that was popped is no longer among them.
            kept.shrink_by_one_of(self.memory.len() + 1);
        }
        self.refill(source)?;
        Ok(Some(item))
    }

    /// The operator is saved.
    pub(super) fn rest(&mut self) {
        self.buffers.rest();
    }

    fn refill(&mut self, source: usize) -> Result<()> {
        let item = match self.readers.get_mut(source) {
            Some(reader) => reader.next()?,
            None => self.memory.pop(),
        };
        if let Some(item) = item {
            self.heads.push(Reverse((item, source)));
        }
        Ok(())
    }
}
