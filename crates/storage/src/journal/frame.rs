//! Frames: one commit as bytes.
//!
//! All numbers are little-endian. A varint has seven bits per byte, lowest first, the top bit set in all but the last.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 4 | `NJF2` |
//! | 4 | 4 | checksum: crc32c of the rest, bytes 8 to the end of the frame |
//! | 8 | 4 | length of the frame in bytes, a multiple of 8 |
//! | 12 | 4 | number of oplog entries |
//! | 16 | 8 | sequence number; the frame after it has the next one |
//! | 24 | 8 | optime of the last oplog entry: seconds in the high half |
//! | 32 | 4 | sequence number less the one that was durable when this was written; 2^32 - 1 if that is not known |
//! | 36 | 4 | checksum of the frame before this one; 0 if there is none, or it is not known |
//! | 40 | 4 | bytes of the oplog entries |
//! | 44 | 4 | number of operations |
//! | 48 | | the oplog entries: BSON documents, one after the other |
//! | | | the operations; zeros up to a multiple of 8 |
//!
//! | operation | |
//! |---|---|
//! | put | 1, varint tree, varint length, key, varint length, value |
//! | put what an oplog entry holds | 2, varint tree, varint length, key, varint offset in the oplog entries, varint length |
//! | delete | 3, varint tree, varint length, key |
//! | drop tree | 4, varint tree |
//! | count | 5, varint collection, varint documents, varint bytes (both zigzag: 0, -1, 1, -2, ...) |
//! | image | 6, varint oplog entry, varint operation, varint length, document |
//!
//! An image is a document before the change that the oplog entry of that number (from 0) tells of; in an `applyOps` entry it is the
//! one of that operation. Images come first, in the order of the changes. Replay has no use for them. They are there since
//! version 3 of the data directory.
//!
//! So a document that an insert puts into the oplog is written once. Example: putting `v` at `k` in tree 7 as commit 1,
//! with optime (100, 1) and nothing before it:
//!
//! ```text
//! 4e 4a 46 32  e8 b3 03 31  38 00 00 00  00 00 00 00  01 00 00 00 00 00 00 00  01 00 00 00 64 00 00 00
//! 01 00 00 00  00 00 00 00  00 00 00 00  01 00 00 00  01 07 01 6b 01 76 00 00
//! ```
//!
//! The checksum of a frame covers that of the one before it, so frames of two copies of a directory that went different ways
//! do not follow each other, although their numbers do.
//!
//! Frames of encrypted directories, `NJX1`, are in [`super::sealed`].
//!
//! Frames of format 1, `NJF1`, are read too: bytes 32 to 40 are the sequence number that was durable, and nothing is said of
//! the frame before.

use super::sealed;
use crate::encryption::Seals;
use crate::faults::{Fault, strikes};
use crate::write_set::WriteSet;
use crate::{Bytes, CollectionId, StorageError, TreeId};
use nestor_model::{ArrayRef, DocRef, ErrorCode, RawDoc, Timestamp, ValueRef};

pub(crate) const HEADER_BYTES: usize = 48;
pub(crate) const ALIGN: usize = 8;
/// Bytes at the beginning that the checksum does not cover: the magic, and the checksum itself.
pub(crate) const UNCOVERED_BYTES: usize = 8;
const MAGIC: &[u8; 4] = b"NJF2";
/// First bytes of a frame of format 1.
const MAGIC_1: &[u8; 4] = b"NJF1";
/// Longest frame: a transaction of a million small documents fits in.
const FRAME_BYTES_MAX: usize = 1 << 30;
/// Values shorter than this are not worth looking for in the oplog entries.
const SHARED_BYTES_MIN: usize = 32;
/// Oplog entries of so many bytes are worth making room for what follows them at once.
const LARGE_BYTES: usize = 1 << 20;
/// The bytes that an operation takes beside its key, if the value is shared: kind, tree, lengths and offset.
const OP_BYTES: usize = 14;

/// In the place of a difference of sequence numbers.
const UNKNOWN: u32 = u32::MAX;

const PUT: u8 = 1;
const PUT_SHARED: u8 = 2;
const DELETE: u8 = 3;
const DROP_TREE: u8 = 4;
const COUNT: u8 = 5;
const IMAGE: u8 = 6;

/// One change that replay repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op<'a> {
    Put {
        tree: TreeId,
        key: &'a [u8],
        value: &'a [u8],
    },
    Delete {
        tree: TreeId,
        key: &'a [u8],
    },
    DropTree(TreeId),
    Count {
        collection: CollectionId,
        documents: i64,
        bytes: i64,
    },
    Image(Image<'a>),
}

/// A document before a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Image<'a> {
    /// The number of the oplog entry that tells of the change.
    pub(crate) entry: u32,
    /// The number of the operation within an `applyOps`; 0 in other entries.
    pub(crate) operation: u32,
    pub(crate) document: &'a [u8],
}

/// A commit's frame but for what only the sequencer knows; [`seal`] fills that in.
pub(crate) fn prepare(ws: &WriteSet, is_sealed: bool) -> Result<Vec<u8>, StorageError> {
    let (mut out, mut ops) = prepare_oplog(ws);
    if out.len() >= LARGE_BYTES {
        // A vector that grows by half of hundreds of megabytes wastes as much.
        let least = |key: &Bytes| key.len() + OP_BYTES;
        let least: usize = ws.kept_trees().flat_map(|(_, overlay)| overlay.keys().map(least)).sum();
        out.reserve_exact(least + ALIGN);
    }
    let mut documents = Documents::default();
    let mut at = 0;
    for entry in &ws.oplog {
        documents.add(entry.bytes.as_raw(), at);
        at += entry.bytes.as_bytes().len();
    }
    let is_left_out = strikes(Fault::EmptyFrame) && ws.catalog_changes().is_empty();
    for (tree, overlay) in ws.kept_trees().filter(|_| !is_left_out) {
        for (key, value) in overlay {
            ops += 1;
            let shared = value.as_deref().and_then(|v| documents.find(v, &out[HEADER_BYTES..]));
            out.push(match (value, shared) {
                (None, _) => DELETE,
                (_, None) => PUT,
                (_, Some(_)) => PUT_SHARED,
            });
            varint(u64::from(tree.0), &mut out);
            bytes(key, &mut out);
            match (value, shared) {
                (None, _) => {}
                (Some(value), None) => bytes(value, &mut out),
                (Some(value), Some(offset)) => {
                    varint(offset as u64, &mut out);
                    varint(value.len() as u64, &mut out);
                }
            }
        }
    }
    for tree in &ws.dropped {
        ops += 1;
        out.push(DROP_TREE);
        varint(u64::from(tree.0), &mut out);
    }
    for change in ws.counts.iter().filter(|_| !is_left_out) {
        ops += 1;
        out.push(COUNT);
        varint(u64::from(change.id.0), &mut out);
        varint(zigzag(change.documents), &mut out);
        varint(zigzag(change.bytes), &mut out);
    }
    finish(out, ws, ops, is_sealed)
}

/// As [`prepare`], without the operations that replay repeats: for the log of a store that lives in memory. Empty for a commit
/// without oplog entries.
pub(crate) fn prepare_log(ws: &WriteSet) -> Result<Vec<u8>, StorageError> {
    if ws.oplog.is_empty() {
        return Ok(Vec::new());
    }
    let (out, ops) = prepare_oplog(ws);
    finish(out, ws, ops, false)
}

/// The beginning of a frame: room for the header, oplog entries, and images, of which it returns the number.
fn prepare_oplog(ws: &WriteSet) -> (Vec<u8>, u32) {
    let oplog_bytes = oplog_bytes(ws);
    let mut out = Vec::with_capacity(HEADER_BYTES + oplog_bytes + 256);
    out.extend_from_slice(&[0; HEADER_BYTES]);
    for entry in &ws.oplog {
        out.extend_from_slice(entry.bytes.as_bytes());
    }
    let mut images = 0;
    for (number, entry) in ws.oplog.iter().enumerate() {
        for (operation, document) in &entry.images {
            images += 1;
            out.push(IMAGE);
            varint(number as u64, &mut out);
            varint(u64::from(*operation), &mut out);
            bytes(document.as_bytes(), &mut out);
        }
    }
    (out, images)
}

fn oplog_bytes(ws: &WriteSet) -> usize {
    ws.oplog.iter().map(|entry| entry.len).sum()
}

/// The end of a frame and its header, but for what [`seal`] fills in.
fn finish(mut out: Vec<u8>, ws: &WriteSet, ops: u32, is_sealed: bool) -> Result<Vec<u8>, StorageError> {
    let plain = out.len().next_multiple_of(ALIGN);
    let overhead = if is_sealed {
        sealed::overhead(plain - HEADER_BYTES)
    } else {
        0
    };
    out.resize(plain + overhead, 0);
    if out.len() > FRAME_BYTES_MAX {
        return Err(StorageError::catalog(
            ErrorCode::TransactionTooLarge,
            format!(
                "the operation writes {} bytes at once, the limit is {FRAME_BYTES_MAX}",
                out.len()
            ),
        ));
    }
    out[..4].copy_from_slice(if is_sealed { sealed::MAGIC } else { MAGIC });
    let length = out.len() as u32;
    put_u32(&mut out, 8, length);
    put_u32(&mut out, 12, ws.oplog.len() as u32);
    put_u32(&mut out, 40, oplog_bytes(ws) as u32);
    put_u32(&mut out, 44, ops);
    Ok(out)
}

/// The fields of a frame that only the sequencer knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal {
    pub(crate) seq: u64,
    /// Optime of the first oplog entry; those that follow it have the next ones.
    pub(crate) first: Timestamp,
    /// Optime of the last one.
    pub(crate) last: Timestamp,
    /// Last sequence number known to be durable.
    pub(crate) durable: u64,
    /// Checksum of the frame before.
    pub(crate) previous: u32,
    /// The term of the primary that commits.
    pub(crate) term: i64,
}

/// Fills in what only the sequencer knows, encrypts the frame if it was prepared for that, and fills in the checksum, which it
/// returns.
pub(crate) fn seal(frame: &mut [u8], ws: &WriteSet, seal: Seal, seals: Option<&Seals>) -> u32 {
    fill_in(frame, ws, seal);
    if let Some(seals) = seals {
        sealed::seal(frame, seals);
    }
    let crc = crc32c::crc32c(&frame[UNCOVERED_BYTES..]);
    put_u32(frame, 4, crc);
    crc
}

/// As [`seal`], without a checksum: for a frame that stays in memory.
pub(crate) fn fill_in(frame: &mut [u8], ws: &WriteSet, seal: Seal) {
    let Seal {
        seq,
        first,
        last,
        durable,
        previous,
        term,
    } = seal;
    let mut at = HEADER_BYTES;
    let mut ts = first;
    let mut before = Timestamp::default();
    for entry in &ws.oplog {
        let len = entry.len;
        entry.complete(&mut frame[at..at + len], ts, before, term);
        at += len;
        before = ts;
        ts.inc = ts.inc.wrapping_add(1);
    }
    put_u64(frame, 16, seq);
    put_u64(frame, 24, last.to_u64());
    put_u32(frame, 32, u32::try_from(seq.saturating_sub(durable)).unwrap_or(UNKNOWN));
    put_u32(frame, 36, previous);
}

/// The documents inside oplog entries that records may share: `o` of each, and of each operation of an `applyOps`.
#[derive(Default)]
struct Documents {
    /// Offset and length, in order.
    found: Vec<(usize, usize)>,
    next: usize,
}

impl Documents {
    fn add(&mut self, entry: RawDoc<'_>, offset: usize) {
        let mut is_command = false;
        let o = entry.elements().find(|element| {
            is_command |= element.name() == "op" && matches!(element.value(), ValueRef::String("c"));
            element.name() == "o"
        });
        let Some(ValueRef::Document(DocRef::Raw(o))) = o.map(|o| o.value()) else {
            return;
        };
        let place = |doc: RawDoc<'_>| {
            let inside = doc.as_bytes().as_ptr() as usize - entry.as_bytes().as_ptr() as usize;
            (offset + inside, doc.len())
        };
        self.found.push(place(o));
        if is_command && let Some(ValueRef::Array(ArrayRef::Raw(ops))) = o.get("applyOps") {
            for (_, op) in ops.iter() {
                if let ValueRef::Document(DocRef::Raw(op)) = op
                    && let Some(ValueRef::Document(DocRef::Raw(o))) = op.get("o")
                {
                    self.found.push(place(o));
                }
            }
        }
    }

    /// Offset of `value` among the oplog entries. Records and entries mostly come in the same order, so only a few of
    /// the next ones are compared.
    fn find(&mut self, value: &[u8], oplog: &[u8]) -> Option<usize> {
        if value.len() < SHARED_BYTES_MIN {
            return None;
        }
        for i in (self.next..self.found.len()).take(8) {
            let (offset, len) = self.found[i];
            if len == value.len() && &oplog[offset..offset + len] == value {
                self.next = i + 1;
                return Some(offset);
            }
        }
        None
    }
}

/// A sound frame.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    bytes: &'a [u8],
}

/// Why bytes are not a sound frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsound(pub(crate) &'static str);

/// Reads the header at the start of `bytes` and returns the length of the frame.
pub(crate) fn length(bytes: &[u8]) -> Result<usize, Unsound> {
    let header = bytes.get(..HEADER_BYTES).ok_or(Unsound("frame header is cut off"))?;
    if !header.starts_with(MAGIC) && !header.starts_with(MAGIC_1) && !sealed::is_sealed(header) {
        return Err(Unsound("no frame starts here"));
    }
    let length = get_u32(header, 8) as usize;
    if length < HEADER_BYTES || !length.is_multiple_of(ALIGN) || length > FRAME_BYTES_MAX {
        return Err(Unsound("frame length out of range"));
    }
    Ok(length)
}

impl<'a> Frame<'a> {
    /// The frame at the start of `bytes`, its checksum verified.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Unsound> {
        let bytes = bytes.get(..length(bytes)?).ok_or(Unsound("frame is cut off"))?;
        if crc32c::crc32c(&bytes[UNCOVERED_BYTES..]) != get_u32(bytes, 4) {
            return Err(Unsound("frame checksum does not match"));
        }
        Self::of(bytes)
    }

    /// The frame that has these bytes, whatever its checksum.
    fn of(bytes: &'a [u8]) -> Result<Self, Unsound> {
        if get_u32(bytes, 40) as usize > bytes.len() - HEADER_BYTES {
            return Err(Unsound("oplog entries are longer than the frame"));
        }
        Ok(Self { bytes })
    }

    /// The frame as it was before it was encrypted with what `seals` knows, in `plain` if it was. With `None` only plain frames are
    /// taken, and otherwise only encrypted ones: whoever can write to the journal could add others.
    pub(crate) fn open<'p>(self, seals: Option<&Seals>, plain: &'p mut Vec<u8>) -> Result<Frame<'p>, Unsound>
    where
        'a: 'p,
    {
        match (seals, sealed::is_sealed(self.bytes)) {
            (None, false) => Ok(self),
            (None, true) => Err(Unsound("the frame is encrypted, the directory is not")),
            (Some(_), false) => Err(Unsound("the frame is not encrypted, the directory is")),
            (Some(seals), true) => {
                plain.clear();
                plain.extend_from_slice(self.bytes);
                sealed::open(plain, seals)?;
                Frame::of(plain)
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn seq(&self) -> u64 {
        seq(self.bytes)
    }

    pub(crate) fn optime(&self) -> Timestamp {
        optime(self.bytes)
    }

    /// The last sequence number that was known to be durable when this was written.
    pub(crate) fn durable(&self) -> u64 {
        if self.bytes.starts_with(MAGIC_1) {
            return get_u64(self.bytes, 32);
        }
        match get_u32(self.bytes, 32) {
            UNKNOWN => 0,
            ahead => self.seq().saturating_sub(u64::from(ahead)),
        }
    }

    /// Checksum of the frame before this one, if that is known.
    pub(crate) fn previous(&self) -> Option<u32> {
        previous(self.bytes)
    }

    /// Its checksum, which the next frame repeats.
    pub(crate) fn checksum(&self) -> u32 {
        checksum(self.bytes)
    }

    fn oplog(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..HEADER_BYTES + get_u32(self.bytes, 40) as usize]
    }

    /// The oplog entries; an error for bytes that are not documents.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<RawDoc<'a>, Unsound>> + use<'a> {
        let is_sealed = sealed::is_sealed(self.bytes);
        let mut rest = self.oplog();
        let mut left = get_u32(self.bytes, 12);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            if is_sealed {
                left = 0;
                return Some(Err(Unsound("the frame is encrypted")));
            }
            Some(match RawDoc::validate_prefix(rest) {
                Ok(doc) => {
                    rest = &rest[doc.len()..];
                    Ok(doc)
                }
                Err(_) => {
                    left = 0;
                    Err(Unsound("oplog entry is not a document"))
                }
            })
        })
    }

    /// The operations, in order; an error where they do not decode.
    pub(crate) fn ops(&self) -> Ops<'a> {
        let oplog = self.oplog();
        let rest = &self.bytes[HEADER_BYTES + oplog.len()..];
        Ops {
            rest: if sealed::is_sealed(self.bytes) { &[] } else { rest },
            left: get_u32(self.bytes, 44),
            oplog,
        }
    }
}

/// Says of a frame that was decrypted that it is plain.
pub(crate) fn make_plain(frame: &mut [u8]) {
    frame[..4].copy_from_slice(MAGIC);
}

/// Makes the header of a frame of these bytes fit them, for fuzzing. `false` if they are too short.
pub(crate) fn mend(frame: &mut [u8]) -> bool {
    mend_as(frame, MAGIC)
}

/// As [`mend`], for an encrypted frame.
pub(crate) fn mend_sealed(frame: &mut [u8]) -> bool {
    mend_as(frame, sealed::MAGIC)
}

fn mend_as(frame: &mut [u8], magic: &[u8; 4]) -> bool {
    if frame.len() < HEADER_BYTES || !frame.len().is_multiple_of(ALIGN) {
        return false;
    }
    frame[..4].copy_from_slice(magic);
    put_u32(frame, 8, frame.len() as u32);
    let oplog = get_u32(frame, 40) % (frame.len() - HEADER_BYTES + 1) as u32;
    put_u32(frame, 40, oplog);
    let crc = crc32c::crc32c(&frame[8..]);
    put_u32(frame, 4, crc);
    true
}

/// Sequence number in a frame's header.
pub(crate) fn seq(header: &[u8]) -> u64 {
    get_u64(header, 16)
}

/// Checksum in a frame's header.
pub(crate) fn checksum(header: &[u8]) -> u32 {
    get_u32(header, 4)
}

/// Checksum of the frame before, in a frame's header, if that is known.
pub(crate) fn previous(header: &[u8]) -> Option<u32> {
    let previous = get_u32(header, 36);
    (previous != 0 && !header.starts_with(MAGIC_1)).then_some(previous)
}

/// Optime in a frame's header.
pub(crate) fn optime(header: &[u8]) -> Timestamp {
    Timestamp::from_u64(get_u64(header, 24))
}

/// Number of oplog entries in a frame's header.
pub(crate) fn entry_count(header: &[u8]) -> u32 {
    get_u32(header, 12)
}

/// Bytes of the oplog entries in a frame's header.
pub(crate) fn oplog_len(header: &[u8]) -> u32 {
    get_u32(header, 40)
}

/// Number of operations in a frame's header.
pub(crate) fn op_count(header: &[u8]) -> u32 {
    get_u32(header, 44)
}

/// Room that the head of an image takes: kind, and three varints of 32 bits.
pub(crate) const IMAGE_HEAD_MAX: usize = 1 + 3 * 5;

/// The head of the image at the start of `bytes`, which may end behind it: entry, operation, and where in `bytes` the document
/// begins and ends. `None` if another operation is there.
pub(crate) fn image_head(bytes: &[u8]) -> Option<(u32, u32, usize, usize)> {
    let mut ops = Ops {
        rest: bytes,
        oplog: &[],
        left: 1,
    };
    if ops.byte()? != IMAGE {
        return None;
    }
    let (entry, operation) = (ops.number()?, ops.number()?);
    let len = usize::try_from(ops.varint()?).ok()?;
    let start = bytes.len() - ops.rest.len();
    Some((entry, operation, start, start.checked_add(len)?))
}

/// Iterator over a frame's operations.
pub(crate) struct Ops<'a> {
    rest: &'a [u8],
    oplog: &'a [u8],
    left: u32,
}

impl<'a> Ops<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }

    fn read(&mut self) -> Option<Op<'a>> {
        let kind = self.byte()?;
        let id = self.number()?;
        let tree = TreeId(id);
        Some(match kind {
            PUT => Op::Put {
                tree,
                key: self.bytes()?,
                value: self.bytes()?,
            },
            PUT_SHARED => {
                let key = self.bytes()?;
                let offset = usize::try_from(self.varint()?).ok()?;
                let len = usize::try_from(self.varint()?).ok()?;
                let value = self.oplog.get(offset..offset.checked_add(len)?)?;
                Op::Put { tree, key, value }
            }
            DELETE => Op::Delete {
                tree,
                key: self.bytes()?,
            },
            DROP_TREE => Op::DropTree(tree),
            COUNT => Op::Count {
                collection: CollectionId(id),
                documents: unzigzag(self.varint()?),
                bytes: unzigzag(self.varint()?),
            },
            IMAGE => Op::Image(Image {
                entry: id,
                operation: self.number()?,
                document: self.bytes()?,
            }),
            _ => return None,
        })
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, Unsound>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let op = self.read();
        if op.is_none() {
            self.left = 0;
        }
        Some(op.ok_or(Unsound("operation does not decode")))
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, EngineOptions};
    use nestor_model::{CollectionOptions, Namespace, doc};

    fn sealed(ws: &WriteSet, seq: u64) -> Vec<u8> {
        let mut frame = prepare(ws, false).unwrap();
        let first = Timestamp { secs: 100, inc: 1 };
        let last = Timestamp {
            secs: 100,
            inc: ws.oplog.len().max(1) as u32,
        };
        let (durable, previous, term) = (0, 0, 1);
        seal(
            &mut frame,
            ws,
            Seal {
                seq,
                first,
                last,
                durable,
                previous,
                term,
            },
            None,
        );
        frame
    }

    #[test]
    fn the_worked_example() {
        let engine = Engine::ephemeral(EngineOptions::at_time(100));
        let mut ws = engine.begin();
        ws.put(TreeId(7), b"k", b"v");
        let text: Vec<String> = sealed(&ws, 1).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            text.join(" "),
            "4e 4a 46 32 e8 b3 03 31 38 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 01 00 00 00 64 00 00 00 \
             01 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 01 07 01 6b 01 76 00 00"
        );
    }

    #[test]
    fn the_worked_example_of_format_1() {
        let text = "4e 4a 46 31 66 71 4c 8b 38 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 01 00 00 00 64 00 00 00 \
                    00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 01 07 01 6b 01 76 00 00";
        let bytes: Vec<u8> = text.split(' ').map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
        let frame = Frame::read(&bytes).unwrap();
        assert_eq!((frame.seq(), frame.durable(), frame.previous()), (1, 0, None));
        let ops: Vec<_> = frame.ops().collect();
        let (tree, key, value) = (TreeId(7), &b"k"[..], &b"v"[..]);
        assert_eq!(ops, [Ok(Op::Put { tree, key, value })]);
    }

    #[test]
    fn what_was_durable_and_what_came_before() {
        let engine = Engine::ephemeral(EngineOptions::at_time(100));
        let mut ws = engine.begin();
        ws.put(TreeId(7), b"k", b"v");
        let mut frame = prepare(&ws, false).unwrap();
        let (first, last) = (Timestamp { secs: 1, inc: 1 }, Timestamp { secs: 1, inc: 1 });
        for (seq, durable, read) in [(9, 8, 8), (9, 0, 0), (1 << 40, 3, 0), (u64::from(u32::MAX), 1, 1)] {
            let (previous, term) = (0xABCD, 1);
            let seal_with = Seal {
                seq,
                first,
                last,
                durable,
                previous,
                term,
            };
            let checksum = seal(&mut frame, &ws, seal_with, None);
            let frame = Frame::read(&frame).unwrap();
            assert_eq!((frame.durable(), frame.previous()), (read, Some(0xABCD)));
            assert_eq!(frame.checksum(), checksum);
        }
    }

    #[test]
    fn everything_comes_back_and_documents_are_written_once() {
        let engine = Engine::ephemeral(EngineOptions::at_time(100));
        let mut ws = engine.begin();
        let c = ws
            .create_collection(&Namespace::new("d", "c"), [0; 16], CollectionOptions::default())
            .unwrap();
        ws.trees.clear();
        let mut docs = Vec::new();
        for i in 0..3 {
            let doc = doc! { "_id": i, "text": "x".repeat(100).as_str() }.to_raw();
            let entry = doc! { "op": "i", "ts": Timestamp::default(), "o": doc.clone() };
            ws.oplog(entry.to_raw()).unwrap();
            ws.put_document(c.records, [0, i as u8], doc.clone());
            docs.push(doc);
        }
        let batch = doc! { "ts": Timestamp::default(), "o": doc! { "applyOps": vec![doc! { "o": doc! { "b": "y".repeat(50).as_str() } }.into()] } };
        ws.oplog(batch.to_raw()).unwrap();
        ws.put(c.records, [0, 9], doc! { "b": "y".repeat(50).as_str() }.to_raw());
        ws.delete(c.records, [1]);
        ws.dropped.push(TreeId(300));
        ws.add_count(c.id, -3, 12345);
        let bytes = sealed(&ws, 42);
        assert!(bytes.len() < 3 * 200 + 300, "{} bytes", bytes.len());
        let frame = Frame::read(&bytes).unwrap();
        assert_eq!(
            (frame.seq(), frame.optime(), frame.len()),
            (42, Timestamp { secs: 100, inc: 4 }, bytes.len())
        );
        let entries: Vec<_> = frame
            .entries()
            .map(|e| format!("{:?}", e.unwrap().get("ts").unwrap()))
            .collect();
        assert_eq!(
            entries,
            [
                "Timestamp(100, 1)",
                "Timestamp(100, 2)",
                "Timestamp(100, 3)",
                "Timestamp(100, 4)"
            ]
        );
        let ops: Vec<Op<'_>> = frame.ops().map(|op| op.unwrap()).collect();
        let tree = c.records;
        assert_eq!(ops.len(), 7);
        for (i, doc) in docs.iter().enumerate() {
            let (key, value) = (&[0, i as u8][..], doc.as_bytes());
            assert!(ops.contains(&Op::Put { tree, key, value }));
        }
        assert!(ops.contains(&Op::Delete { tree, key: &[1] }));
        assert!(ops.contains(&Op::DropTree(TreeId(300))));
        let (collection, documents, bytes) = (c.id, -3, 12345);
        assert!(ops.contains(&Op::Count {
            collection,
            documents,
            bytes
        }));
    }

    #[test]
    fn damaged_frames_are_told() {
        let engine = Engine::ephemeral(EngineOptions::at_time(100));
        let mut ws = engine.begin();
        ws.put(TreeId(7), b"key", b"value");
        let good = sealed(&ws, 1);
        for at in 0..good.len() {
            assert!(Frame::read(&good[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(Frame::read(&bad).is_err(), "bit {bit} of byte {at}");
            }
        }
    }
}
