//! A changed document as a list of edits of its bytes.
//!
//! Invariants: edits do not overlap; every container whose size changes has an edit of its length field,
//! but for the outermost document, whose length [`Patch::build`] writes. Several edits may stand at one
//! offset: the new value of an element that was null (no bytes), then what happens to the next element
//! or what is appended, in the order made.

use super::operand::Bytes;
use nestor_model::{Error, ErrorCode, RawDoc, RawDocBuf, RawWriter, Result, raw::DOCUMENT_BYTES_MAX};

#[derive(Debug)]
struct Edit<'u> {
    at: usize,
    /// False for a value put where there were no bytes, which belongs to the element before `at`.
    after: bool,
    remove: usize,
    insert: Bytes<'u>,
}

/// Edits of one document, offsets counted from its first byte.
#[derive(Debug, Default)]
pub(crate) struct Patch<'u> {
    edits: Vec<Edit<'u>>,
}

impl<'u> Patch<'u> {
    /// Replaces `remove` bytes at `at`.
    pub fn edit(&mut self, at: usize, remove: usize, insert: Bytes<'u>) {
        self.edits.push(Edit {
            at,
            after: remove > 0,
            remove,
            insert,
        });
    }

    /// Adds elements at the end of a container, before its closing zero, which is at `at`.
    pub fn append(&mut self, at: usize, elements: Vec<u8>) {
        self.edits.push(Edit {
            at,
            after: true,
            remove: 0,
            insert: elements.into(),
        });
    }

    /// Writes a new length into the container that starts at `at`.
    pub fn length(&mut self, at: usize, length: i64) {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&(length as i32).to_le_bytes());
        self.edit(at, 4, Bytes::Small(bytes, 4));
    }

    /// Number of edits so far.
    pub fn len(&self) -> usize {
        self.edits.len()
    }

    /// The container that starts at `base`, with the edits from number `from` on, all of which lie in it.
    /// `delta` is the change of its size.
    pub fn render(&self, from: usize, container: RawDoc<'_>, base: usize, delta: i64) -> Vec<u8> {
        let old = container.as_bytes();
        let mut edits: Vec<&Edit<'_>> = self.edits[from..].iter().collect();
        edits.sort_by_key(|e| (e.at, e.after));
        let length = old.len() as i64 + delta;
        let mut out = Vec::with_capacity(length.max(0) as usize);
        out.extend_from_slice(&(length as i32).to_le_bytes());
        let mut at = 4;
        for edit in edits {
            let start = edit.at - base;
            if start >= at {
                out.extend_from_slice(&old[at..start]);
                out.extend_from_slice(edit.insert.as_slice());
                at = start + edit.remove;
            }
        }
        out.extend_from_slice(&old[at..]);
        debug_assert_eq!(out.len() as i64, length, "delta sums up the edits");
        out
    }

    /// True when nothing changes.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The changed document. `delta` is the change of its size in bytes.
    ///
    /// Errors: 17419 when it gets larger than a document may be.
    pub fn build(mut self, doc: RawDoc<'_>, delta: i64) -> Result<RawDocBuf> {
        let old = doc.as_bytes();
        let size = old.len() as i64 + delta;
        if size > DOCUMENT_BYTES_MAX as i64 {
            return Err(too_large());
        }
        self.edits.sort_by_key(|e| (e.at, e.after));
        let mut writer = RawWriter::with_capacity(size as usize);
        let mut at = 4;
        for edit in &self.edits {
            debug_assert!(edit.at >= at, "edits do not overlap");
            writer.append_element_bytes(&old[at..edit.at]);
            writer.append_element_bytes(edit.insert.as_slice());
            at = edit.at + edit.remove;
        }
        writer.append_element_bytes(&old[at..old.len() - 1]);
        let new = writer.into_doc();
        debug_assert_eq!(new.as_bytes().len() as i64, size, "delta sums up the edits");
        Ok(new)
    }
}

/// The error of an update that makes a document too large.
pub(crate) fn too_large() -> Error {
    Error::new(
        ErrorCode::location(17419),
        format!("Resulting document after update is larger than {DOCUMENT_BYTES_MAX}"),
    )
}
