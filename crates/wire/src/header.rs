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
    /// The kind of message that follows.
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
        let op_code = OpCode::from_number(op_code).ok_or_else(|| no_message(bytes, "unknown opcode"))?;
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
/// when no message has that length. What is not ruled out by its length [`check_begun`] looks at.
pub fn message_length(bytes: &[u8]) -> Result<Option<usize>, WireError> {
    let Some(length) = read_i32(bytes, 0) else {
        return Ok(None);
    };
    match usize::try_from(length) {
        Ok(length) if (HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) => Ok(Some(length)),
        _ => Err(no_message(bytes, "message length out of range")),
    }
}

/// Checks of a message that has begun what can be checked before the rest of it comes: that it is a request.
/// Who sends something else may wait for an answer in the middle of what looks like a message.
pub fn check_begun(bytes: &[u8]) -> Result<(), WireError> {
    match read_i32(bytes, 12).map(OpCode::from_number) {
        None | Some(Some(OpCode::Query | OpCode::Compressed | OpCode::Msg)) => Ok(()),
        Some(Some(OpCode::Reply)) => Err(WireError::Fatal("a client sent OP_REPLY")),
        Some(None) => Err(no_message(bytes, "unknown opcode")),
    }
}

/// What `bytes` are, which are no message: a well-known other protocol, else `reason`.
fn no_message(bytes: &[u8], reason: &'static str) -> WireError {
    match bytes {
        [b'G', b'E', b'T', b' ', ..] => WireError::Http,
        // A record of type handshake. Its third byte is the minor version, then two bytes of length; a message may begin
        // like that too, but none with the opcode that a random number makes of it.
        [0x16, 0x03, ..] => WireError::Fatal("the client speaks TLS, which this server does not"),
        _ => WireError::Fatal(reason),
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

    fn reason(error: WireError) -> String {
        error.to_string()
    }

    #[test]
    fn other_protocols_are_recognized_from_their_first_bytes() {
        assert!(matches!(message_length(b"GET / HTTP"), Err(WireError::Http)));
        // Record lengths below and above what would be the largest message.
        for record_length in [0x00_f0u16, 0x02_00, 0x06_12] {
            let mut hello = vec![0x16, 3, 1];
            hello.extend_from_slice(&record_length.to_be_bytes());
            hello.extend_from_slice(&[1, 0, 0, 0xec, 3, 3, 0x5a, 0x11, 0x90, 0x33, 0x07]);
            let error = message_length(&hello).and_then(|_| check_begun(&hello)).unwrap_err();
            assert!(reason(error).contains("TLS"), "{record_length}");
        }
        let mut header = Header {
            length: 66_326,
            request_id: 1,
            response_to: 0,
            op_code: OpCode::Msg,
        };
        assert_eq!(
            header.to_bytes()[..3],
            [0x16, 3, 1],
            "a message may begin as a TLS record does"
        );
        assert!(check_begun(&header.to_bytes()).is_ok());
        assert!(check_begun(&header.to_bytes()[..15]).is_ok());
        header.op_code = OpCode::Reply;
        assert!(check_begun(&header.to_bytes()).is_err());
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
