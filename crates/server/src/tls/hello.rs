//! Telling TLS from MongoDB's messages by the first bytes of a connection.

/// Bytes after which it is certain.
pub const CERTAIN_BYTES: usize = 11;

/// What begins a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The client greets in TLS.
    Tls,
    /// The client does not speak TLS.
    Plain,
    /// More bytes are needed to tell.
    Unknown,
}

/// What a connection that began with `bytes` speaks.
///
/// A record of type handshake (0x16), its version (major 3) and length, the message type ClientHello (1) with its length, and its version
/// (major 3). The length of a message can begin like the record; the id of the request that it answers then stands where the version
/// does, and a request answers none.
pub fn begin(bytes: &[u8]) -> Begin {
    let certain = [(0, 0x16), (1, 3), (5, 1), (9, 3)];
    for (at, expected) in certain {
        match bytes.get(at) {
            None => return Begin::Unknown,
            Some(byte) if *byte != expected => return Begin::Plain,
            Some(_) => {}
        }
    }
    match bytes.len() < CERTAIN_BYTES {
        true => Begin::Unknown,
        false => Begin::Tls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_told_from_messages() {
        let greeting = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0x5a];
        for end in 0..greeting.len() {
            let expected = if end < CERTAIN_BYTES {
                Begin::Unknown
            } else {
                Begin::Tls
            };
            assert_eq!(begin(&greeting[..end]), expected, "{end}");
        }
        // A message of 66,326 bytes whose request id looks like a handshake too.
        let message = [0x16, 3, 1, 0, 7, 1, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0];
        assert_eq!(begin(&message[..9]), Begin::Unknown);
        assert_eq!(begin(&message), Begin::Plain);
        assert_eq!(begin(b"\x3a"), Begin::Plain);
    }
}
