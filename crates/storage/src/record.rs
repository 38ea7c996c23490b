//! Records: stored bytes as documents, without validating them again at every read.
//!
//! A record tree maps a record key (record id, big-endian; or the encoded `_id` of a clustered collection) to a BSON
//! document. Documents get there only through [`crate::WriteSet::put_document`], which takes a [`RawDocBuf`] and so a
//! validated document, or back from journal and base, whose checksums were verified when the bytes were read.
//! Validating each of them again would cost about as much as the rest of a point read.

#![allow(unsafe_code)]

use nestor_model::{RawDoc, RecordId, raw};

#[cfg(doc)]
use nestor_model::RawDocBuf;

/// The document whose bytes a record tree holds. Bytes that cannot be a document (the length prefix or the final zero
/// do not fit) read as the empty document; call this only for values of record trees, copies of them among these, and for what
/// a [`RawWriter`](nestor_model::RawWriter) wrote.
pub fn document(bytes: &[u8]) -> RawDoc<'_> {
    let fits = match bytes {
        [a, b, c, d, .., 0] => u32::from_le_bytes([*a, *b, *c, *d]) as usize == bytes.len(),
        _ => false,
    };
    debug_assert!(fits, "only what is known to be a document is read as one");
    if !fits {
        return raw::EMPTY;
    }
    // SAFETY: values of record trees were validated as documents when they were put, and every layer below verifies
    // a checksum over them when it reads them back from disk. A writer makes documents of parts of documents.
    unsafe { RawDoc::from_validated(bytes) }
}

/// The key of a record: the record id, big-endian, so that keys ascend as ids do.
pub fn record_key(id: RecordId) -> [u8; 8] {
    id.0.to_be_bytes()
}

/// The record id of a key made by [`record_key`]; `None` for keys of another length.
pub fn record_id(key: &[u8]) -> Option<RecordId> {
    key.try_into().ok().map(|bytes| RecordId(u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;

    #[test]
    fn documents_come_back_and_keys_ascend() {
        let doc = doc! { "_id": 1, "a": "x" }.to_raw();
        assert_eq!(document(doc.as_bytes()).as_bytes(), doc.as_bytes());
        assert!(record_key(RecordId(255)) < record_key(RecordId(256)));
        assert_eq!(record_id(&record_key(RecordId(7))), Some(RecordId(7)));
        assert_eq!(record_id(b"short"), None);
    }
}
