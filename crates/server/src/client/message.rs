//! OP_MSG as a client writes and reads it. All integers are little-endian.
//!
//! ```text
//! 0   int32   length of the message, header included
//! 4   int32   request id
//! 8   int32   response to
//! 12  int32   opcode, 2013
//! 16  uint32  flags
//! 20  byte    0, then the command or reply as one document
//!     byte    1, int32 size of the rest of the section, identifier with its zero, documents (at most one section)
//! ```

use nestor_model::RawDoc;

/// Size of the header every message begins with.
pub const MESSAGE_HEADER_BYTES: usize = 16;
const OP_MSG: i32 = 2013;
const CHECKSUM_PRESENT: u32 = 1;
const BODY_AT: usize = MESSAGE_HEADER_BYTES + 5;

/// The message of `command`, with request id 0, and `documents` as a section of kind 1.
pub fn command_message(command: RawDoc<'_>, documents: Option<(&str, &[u8])>) -> Vec<u8> {
    let section = documents.map_or(0, |(name, bytes)| 6 + name.len() + bytes.len());
    let length = BODY_AT + command.len() + section;
    let mut message = Vec::with_capacity(length);
    for field in [length as i32, 0, 0, OP_MSG] {
        message.extend_from_slice(&field.to_le_bytes());
    }
    message.extend_from_slice(&[0; 5]);
    message.extend_from_slice(command.as_bytes());
    if let Some((name, bytes)) = documents {
        message.push(1);
        message.extend_from_slice(&(section as i32 - 1).to_le_bytes());
        message.extend_from_slice(name.as_bytes());
        message.push(0);
        message.extend_from_slice(bytes);
    }
    debug_assert_eq!(message.len(), length, "the length was computed from the same parts");
    message
}

/// Writes the request id into a message.
pub fn set_request_id(message: &mut [u8], id: i32) {
    message[4..8].copy_from_slice(&id.to_le_bytes());
}

fn int_at(bytes: &[u8], at: usize) -> i32 {
    bytes
        .get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, i32::from_le_bytes)
}

/// The length a header states.
pub fn length(header: &[u8]) -> Result<usize, String> {
    let stated = int_at(header, 0);
    match usize::try_from(stated) {
        Ok(length) if (MESSAGE_HEADER_BYTES..=super::MESSAGE_BYTES_MAX).contains(&length) => Ok(length),
        _ => Err(format!("a message of length {stated}")),
    }
}

/// The document of a whole OP_MSG message.
pub fn body_of(message: &[u8]) -> Result<RawDoc<'_>, String> {
    if int_at(message, 12) != OP_MSG {
        return Err(format!("opcode {}", int_at(message, 12)));
    }
    let flags = int_at(message, MESSAGE_HEADER_BYTES) as u32;
    let end = message
        .len()
        .saturating_sub(if flags & CHECKSUM_PRESENT != 0 { 4 } else { 0 });
    match message.get(BODY_AT - 1..end) {
        Some([0, document @ ..]) => RawDoc::validate_prefix(document).map_err(|e| e.to_string()),
        _ => Err("a message without a document".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{RawWriter, ValueRef};

    #[test]
    fn what_is_written_is_read() {
        let mut writer = RawWriter::new();
        writer.append("ping", 1);
        let ping = writer.into_doc();
        let mut message = command_message(ping.as_raw(), None);
        set_request_id(&mut message, 7);
        assert_eq!(length(&message), Ok(message.len()));
        assert_eq!(int_at(&message, 4), 7);
        let body = body_of(&message).unwrap();
        assert!(matches!(body.get("ping"), Some(ValueRef::Int32(1))));
    }

    #[test]
    fn a_section_of_documents_follows_the_command() {
        let empty = RawWriter::new().into_doc();
        let message = command_message(empty.as_raw(), Some(("documents", empty.as_bytes())));
        // Header, flags, kind 0 and {}, kind 1, size, identifier, {}.
        assert_eq!(message.len(), 16 + 4 + 1 + 5 + 1 + 4 + 10 + 5);
        assert_eq!(int_at(&message, 27), 4 + 10 + 5);
    }

    #[test]
    fn nonsense_is_no_reply() {
        for message in [&b""[..], &[0; 16], &[255; 40]] {
            assert!(body_of(message).is_err());
        }
        assert!(length(&[255; 16]).is_err());
        assert!(length(&[15, 0, 0, 0]).is_err());
    }
}
