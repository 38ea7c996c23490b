//! The 16 bytes before every message.

use crate::WireError;

/// Largest message either side may send, header included (`maxMessageSizeBytes`).
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// Size of [`Header`] on the wire.
pub const HEADER_BYTES: usize = 16;

/// The opcodes a current server knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum OpCode {
    /// Answer to OP_QUERY.
    Reply = 1,
    /// Legacy query; only for hello.
    Query = 2004,
    /// A compressed message of another opcode.
    Compressed = 2012,
    /// Everything else.
    Msg = 2013,
}

impl OpCode {
    /// The opcode of that number, if it is known.
    pub fn from_number(number: i32) -> Option<Self> {
        [Self::Reply, Self::Query, Self::Compressed, Self::Msg]
            .into_iter()
            .find(|op| *op as i32 == number)
    }
}

/// A message header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Bytes of the whole message; between [`HEADER_BYTES`] and [`MESSAGE_BYTES_MAX`].
    pub length: usize,
    /// Chosen by the sender.
    pub request_id: i32,
    /// In a reply, the request id it answers.
    pub response_to: i32,
    /// What follows.
    pub op_code: OpCode,
}

impl Header {
    /// Reads the header at the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let length = message_length(bytes)?.ok_or(WireError::Fatal("header cut off"))?;
        let (Some(request_id), Some(response_to), Some(op_code)) =
            (read_i32(bytes, 4), read_i32(bytes, 8), read_i32(bytes, 12))
        else {
            return Err(WireError::Fatal("header cut off"));
        };
        let op_code = OpCode::from_number(op_code).ok_or(WireError::Fatal("unknown opcode"))?;
        Ok(Self {
            length,
            request_id,
            response_to,
            op_code,
        })
    }

    /// The header as bytes.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        debug_assert!(
            self.length <= MESSAGE_BYTES_MAX * 2,
            "replies are built within the limits"
        );
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&(self.length as i32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.request_id.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.response_to.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.op_code as i32).to_le_bytes());
        bytes
    }
}

/// Length of the message that starts `bytes`: `None` while fewer than four bytes are there, an error
/// when no message has that length.
pub fn message_length(bytes: &[u8]) -> Result<Option<usize>, WireError> {
    let Some(length) = read_i32(bytes, 0) else {
        return Ok(None);
    };
    match usize::try_from(length) {
        Ok(length) if (HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) => Ok(Some(length)),
        _ => Err(WireError::Fatal("message length out of range")),
    }
}

/// A little-endian int32, if it is there.
pub(crate) fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips() {
        let header = Header {
            length: 21,
            request_id: -7,
            response_to: i32::MAX,
            op_code: OpCode::Msg,
        };
        assert_eq!(Header::parse(&header.to_bytes()).unwrap(), header);
    }

    #[test]
    fn lengths_outside_the_limits_are_fatal() {
        for length in [i32::MIN, -1, 0, 15, 48_000_001, i32::MAX] {
            assert!(message_length(&length.to_le_bytes()).is_err(), "{length}");
        }
        for length in [16, 48_000_000] {
            assert_eq!(message_length(&(length as i32).to_le_bytes()).unwrap(), Some(length));
        }
        assert_eq!(message_length(&[1, 0, 0]).unwrap(), None);
    }
}
