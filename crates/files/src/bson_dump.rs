//! BSON dumps: documents one after the other, nothing between them.

use crate::records::{BadRecord, Place, Record, Records};
use nestor_model::RawDoc;
use nestor_model::raw::DOCUMENT_BYTES_MAX;
use std::io::{BufReader, Read};

/// Documents of a dump.
pub struct Dump<R> {
    input: BufReader<R>,
    offset: u64,
}

impl<R: Read> Dump<R> {
    /// Reads from the beginning of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 18, input),
            offset: 0,
        }
    }
}

impl<R: Read> Records for Dump<R> {
    fn next_record(&mut self) -> Result<Option<Record>, BadRecord> {
        let begin = self.offset;
        let bad = |reason: &str| BadRecord::at_offset(begin, reason);
        let mut bson = Vec::with_capacity(512);
        self.input.by_ref().take(4).read_to_end(&mut bson)?;
        if bson.is_empty() {
            return Ok(None);
        }
        let prefix: [u8; 4] = bson
            .as_slice()
            .try_into()
            .map_err(|_| bad("the file ends inside a document"))?;
        let length = i32::from_le_bytes(prefix);
        let length = match usize::try_from(length) {
            Ok(length) if (5..=DOCUMENT_BYTES_MAX).contains(&length) => length,
            _ => return Err(bad(&format!("a document of length {length}"))),
        };
        self.input.by_ref().take(length as u64 - 4).read_to_end(&mut bson)?;
        if bson.len() < length {
            return Err(bad("the file ends inside a document"));
        }
        RawDoc::validate(&bson)
            .map_err(|m| BadRecord::at_offset(begin + m.offset as u64, format!("invalid BSON: {}", m.reason)))?;
        self.offset += length as u64;
        Ok(Some(Record {
            place: Place::Offset(begin),
            bson,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::listed;

    #[test]
    fn documents_and_faults_have_offsets() {
        let one = b"\x0c\0\0\0\x10a\0\x01\0\0\0\0";
        let two = [&one[..], one].concat();
        assert_eq!(listed(Dump::new(&two[..])).len(), 2);
        assert!(
            listed(Dump::new(&two[..20]))
                .last()
                .is_some_and(|l| l == "file: offset 12: the file ends inside a document")
        );
        assert!(
            listed(Dump::new(&two[..14]))
                .last()
                .is_some_and(|l| l == "file: offset 12: the file ends inside a document")
        );
        let bad = [&one[..], b"\x03\0\0\0"].concat();
        assert!(
            listed(Dump::new(&bad[..]))
                .last()
                .is_some_and(|l| l == "file: offset 12: a document of length 3")
        );
        let bad = [&one[..], b"\x0c\0\0\0\x30a\0\x01\0\0\0\0"].concat();
        assert!(
            listed(Dump::new(&bad[..]))
                .last()
                .is_some_and(|l| l.starts_with("file: offset 1") && l.contains("BSON"))
        );
    }
}
