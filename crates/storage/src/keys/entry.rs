//! Index entries: how a key and the record it leads to become one entry of an index's tree.
//!
//! ```text
//! unique       key             -> record key | type bits
//! otherwise    key | record key -> type bits
//! ```
//!
//! So two documents with the same key of a unique index write the same entry, and the conflict check finds them even
//! when they are written at the same time. A record key is the record id (8 bytes, big-endian), or the encoded `_id` in a
//! clustered collection.

use super::decode::part_bytes;
use crate::{Bytes, Result, StorageError};

/// Bytes of a record id.
const RECORD_ID_BYTES: usize = 8;

/// How entries of one index are laid out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryFormat {
    /// Keys are unique.
    pub unique: bool,
    /// Record keys are encoded `_id` values, not record ids.
    pub clustered: bool,
    /// Direction of each key part.
    pub descending: Vec<bool>,
}

/// An entry taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// The encoded key, without the record key.
    pub key: &'a [u8],
    /// The record it leads to.
    pub record: &'a [u8],
    /// The key's type bits.
    pub type_bits: &'a [u8],
}

impl EntryFormat {
    /// Key and value of the entry.
    pub fn entry(&self, key: &[u8], type_bits: &[u8], record: &[u8]) -> (Bytes, Bytes) {
        let (key_end, value_start) = if self.unique {
            (&[][..], record)
        } else {
            (record, &[][..])
        };
        (join(key, key_end), join(value_start, type_bits))
    }

    /// Takes an entry apart.
    ///
    /// Errors: [`StorageError::Undecodable`] if it is too short or does not decode.
    pub fn split<'a>(&self, key: &'a [u8], value: &'a [u8]) -> Result<Entry<'a>> {
        let short = || StorageError::Undecodable("index entry is too short".into());
        if self.unique {
            let end = if self.clustered {
                part_bytes(value, &[false])?
            } else {
                RECORD_ID_BYTES
            };
            let (record, type_bits) = value.split_at_checked(end).ok_or_else(short)?;
            return Ok(Entry { key, record, type_bits });
        }
        let end = if self.clustered {
            part_bytes(key, &self.descending)?
        } else {
            key.len().checked_sub(RECORD_ID_BYTES).ok_or_else(short)?
        };
        let (key, record) = key.split_at_checked(end).ok_or_else(short)?;
        Ok(Entry {
            key,
            record,
            type_bits: value,
        })
    }
}

fn join(a: &[u8], b: &[u8]) -> Bytes {
    if b.is_empty() {
        return a.into();
    }
    if a.is_empty() {
        return b.into();
    }
    let mut out = Vec::with_capacity(a.len() + b.len());
    out.extend_from_slice(a);
    out.extend_from_slice(b);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyWriter;

    #[test]
    fn entries_come_apart_as_they_were_joined() {
        let mut key = KeyWriter::new();
        key.push("a", false);
        key.push(2.0, true);
        let id = crate::keys::encode("the id");
        for unique in [false, true] {
            for (clustered, record) in [(false, &[0, 0, 0, 0, 0, 0, 0, 9][..]), (true, &id)] {
                let format = EntryFormat {
                    unique,
                    clustered,
                    descending: vec![false, true],
                };
                let (k, v) = format.entry(key.key(), key.type_bits(), record);
                let entry = format.split(&k, &v).unwrap();
                assert_eq!(
                    (entry.key, entry.type_bits, entry.record),
                    (key.key(), key.type_bits(), record)
                );
            }
        }
    }
}
