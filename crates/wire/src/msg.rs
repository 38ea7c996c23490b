//! OP_MSG.
//!
//! ```text
//! content    uint32 flags | section+ | uint32 crc32c (when flag 0 is set)
//! section    0x00 | document                              the body: exactly one
//!            0x01 | int32 size | name bytes 0x00 | document*   a document sequence
//! ```
//!
//! Flag bits 0 to 15 must be understood by whoever reads them, bits 16 to 31 may be ignored.

use crate::header::{HEADER_BYTES, Header, OpCode, read_i32};
use crate::{Compressor, WireError, compress};
use nestor_model::{Error, ErrorCode, RawDoc};

/// A CRC-32C stands at the end.
pub const CHECKSUM_PRESENT: u32 = 1;
/// The sender sends another message without waiting for an answer; of a request: none is wanted.
pub const MORE_TO_COME: u32 = 1 << 1;
/// The client takes a stream of replies to this request.
pub const EXHAUST_ALLOWED: u32 = 1 << 16;
/// Bits that may not be set unless they are understood.
const REQUIRED: u32 = 0xFFFF;

/// A document sequence: what the body would hold as an array under `name`.
#[derive(Debug)]
pub struct Sequence<'a> {
    /// The field it stands for (`documents`, `updates`, ...).
    pub name: &'a str,
    /// The documents of the sequence, in order.
    pub docs: Vec<RawDoc<'a>>,
}

/// A parsed OP_MSG.
#[derive(Debug)]
pub struct OpMsg<'a> {
    /// Flag bits.
    pub flags: u32,
    /// The section of kind 0.
    pub body: RawDoc<'a>,
    /// The sections of kind 1; no name occurs twice, and none is also a field of the body.
    pub sequences: Vec<Sequence<'a>>,
}

impl<'a> OpMsg<'a> {
    /// Parses the bytes after the header. `whole` is the message that a checksum covers, or empty.
    pub(crate) fn parse(whole: &[u8], content: &'a [u8]) -> Result<Self, WireError> {
        let Some(flags) = read_i32(content, 0) else {
            return Err(WireError::Fatal("message flags cut off"));
        };
        let flags = flags as u32;
        if flags & REQUIRED & !(CHECKSUM_PRESENT | MORE_TO_COME) != 0 {
            return Err(WireError::Fatal("a required message flag is unknown"));
        }
        let mut end = content.len();
        if flags & CHECKSUM_PRESENT != 0 {
            end = end
                .checked_sub(4)
                .filter(|end| *end >= 4)
                .ok_or(WireError::Fatal("checksum cut off"))?;
            check_sum(whole, content, end)?;
        }
        let (body, sequences) = parse_sections(content.get(4..end).unwrap_or_default())?;
        Ok(Self { flags, body, sequences })
    }

    /// No reply is wanted.
    pub fn is_unacknowledged(&self) -> bool {
        self.flags & MORE_TO_COME != 0
    }

    /// The client takes a stream of replies.
    pub fn exhaust_allowed(&self) -> bool {
        self.flags & EXHAUST_ALLOWED != 0
    }
}

fn check_sum(whole: &[u8], content: &[u8], end: usize) -> Result<(), WireError> {
    if whole.is_empty() {
        return Ok(());
    }
    let covered = whole.get(..whole.len().saturating_sub(4)).unwrap_or_default();
    if read_i32(content, end) != Some(crc32c::crc32c(covered) as i32) {
        return Err(WireError::Fatal("message checksum does not match"));
    }
    Ok(())
}

fn parse_sections(mut rest: &[u8]) -> Result<(RawDoc<'_>, Vec<Sequence<'_>>), WireError> {
    let mut body = None;
    let mut sequences: Vec<Sequence<'_>> = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        match kind {
            0 => {
                if body.is_some() {
                    return Err(Error::location(40430, "Multiple body sections in message").into());
                }
                let doc = RawDoc::validate_prefix(after)?;
                rest = after.get(doc.len()..).unwrap_or_default();
                body = Some(doc);
            }
            1 => {
                let (sequence, size) = parse_sequence(after)?;
                if sequences.iter().any(|s| s.name == sequence.name) {
                    return Err(
                        Error::location(40431, format!("Duplicate document sequence: {}", sequence.name)).into(),
                    );
                }
                sequences.push(sequence);
                rest = after.get(size..).unwrap_or_default();
            }
            kind => return Err(Error::location(40432, format!("Unknown section kind {kind}")).into()),
        }
    }
    let body = body.ok_or_else(|| Error::location(40587, "OP_MSG messages must have a body"))?;
    for sequence in &sequences {
        if body.get(sequence.name).is_some() {
            return Err(Error::location(
                40433,
                format!("Duplicate field between body and document sequence {}", sequence.name),
            )
            .into());
        }
    }
    Ok((body, sequences))
}

/// Parses a section of kind 1 after its kind byte; returns it with its size.
fn parse_sequence(bytes: &[u8]) -> Result<(Sequence<'_>, usize), WireError> {
    let bad = |what: &str| WireError::Answer(Error::new(ErrorCode::InvalidBSON, format!("document sequence: {what}")));
    let size = read_i32(bytes, 0)
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| *size >= 5 && *size <= bytes.len())
        .ok_or_else(|| bad("size does not fit"))?;
    let content = bytes.get(4..size).unwrap_or_default();
    let name_end = content
        .iter()
        .position(|b| *b == 0)
        .ok_or_else(|| bad("name not terminated"))?;
    let name = content
        .get(..name_end)
        .and_then(|name| std::str::from_utf8(name).ok())
        .ok_or_else(|| bad("name is not UTF-8"))?;
    let mut rest = content.get(name_end + 1..).unwrap_or_default();
    let mut docs = Vec::new();
    while !rest.is_empty() {
        let doc = RawDoc::validate_prefix(rest)?;
        rest = rest.get(doc.len()..).unwrap_or_default();
        docs.push(doc);
    }
    Ok((Sequence { name, docs }, size))
}

/// Bytes before the body of an OP_MSG reply: header, flags, section kind.
pub const REPLY_PREFIX_BYTES: usize = HEADER_BYTES + 5;

/// The bytes before a reply body of `body_bytes` bytes; together they are the whole message.
pub fn reply_prefix(request_id: i32, response_to: i32, flags: u32, body_bytes: usize) -> [u8; REPLY_PREFIX_BYTES] {
    let mut prefix = [0; REPLY_PREFIX_BYTES];
    let header = Header {
        length: REPLY_PREFIX_BYTES + body_bytes,
        request_id,
        response_to,
        op_code: OpCode::Msg,
    };
    prefix[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    prefix[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&flags.to_le_bytes());
    prefix
}

/// Appends a reply, compressed when a compressor is given.
pub fn write_reply(
    out: &mut Vec<u8>,
    request_id: i32,
    response_to: i32,
    flags: u32,
    body: &[u8],
    compressor: Option<Compressor>,
) {
    let prefix = reply_prefix(request_id, response_to, flags, body.len());
    match compressor {
        None => {
            out.reserve(prefix.len() + body.len());
            out.extend_from_slice(&prefix);
            out.extend_from_slice(body);
        }
        Some(compressor) => {
            let mut content = Vec::with_capacity(5 + body.len());
            content.extend_from_slice(prefix.get(HEADER_BYTES..).unwrap_or_default());
            content.extend_from_slice(body);
            compress::write(out, request_id, response_to, OpCode::Msg, &content, compressor);
        }
    }
}

/// Appends a request: what a client sends. `sequences` are names with their documents.
pub fn write_request(out: &mut Vec<u8>, request_id: i32, flags: u32, body: RawDoc<'_>, sequences: &[Sequence<'_>]) {
    let start = out.len();
    out.extend_from_slice(&reply_prefix(request_id, 0, flags, body.len()));
    out.extend_from_slice(body.as_bytes());
    for sequence in sequences {
        let docs: usize = sequence.docs.iter().map(|doc| doc.len()).sum();
        out.push(1);
        out.extend_from_slice(&((4 + sequence.name.len() + 1 + docs) as i32).to_le_bytes());
        out.extend_from_slice(sequence.name.as_bytes());
        out.push(0);
        for doc in &sequence.docs {
            out.extend_from_slice(doc.as_bytes());
        }
    }
    if flags & CHECKSUM_PRESENT != 0 {
        let length = (out.len() - start + 4) as i32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        let sum = crc32c::crc32c(&out[start..]);
        out.extend_from_slice(&sum.to_le_bytes());
    } else {
        let length = (out.len() - start) as i32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Message, parse};
    use nestor_model::doc;

    fn request(flags: u32) -> Vec<u8> {
        let body = doc! { "insert": "c", "$db": "d" }.to_raw();
        let one = doc! { "_id": 1 }.to_raw();
        let two = doc! { "_id": 2 }.to_raw();
        let mut out = Vec::new();
        let docs = vec![one.as_raw(), two.as_raw()];
        let sequence = Sequence {
            name: "documents",
            docs,
        };
        write_request(&mut out, 9, flags, body.as_raw(), &[sequence]);
        out
    }

    fn msg(message: Message<'_>) -> OpMsg<'_> {
        match message.content {
            Content::Msg(msg) => msg,
            other => panic!("not OP_MSG: {other:?}"),
        }
    }

    #[test]
    fn body_and_sequence_are_read() {
        for flags in [0, CHECKSUM_PRESENT, MORE_TO_COME, EXHAUST_ALLOWED, 1 << 31] {
            let bytes = request(flags);
            let mut scratch = Vec::new();
            let message = parse(&bytes, &mut scratch).unwrap();
            assert_eq!(message.header.request_id, 9);
            let msg = msg(message);
            assert_eq!(msg.flags, flags);
            assert_eq!(format!("{:?}", msg.body), r#"{"insert": "c", "$db": "d"}"#);
            assert_eq!(msg.sequences[0].name, "documents");
            assert_eq!(format!("{:?}", msg.sequences[0].docs), r#"[{"_id": 1}, {"_id": 2}]"#);
            assert_eq!(msg.is_unacknowledged(), flags == MORE_TO_COME);
        }
    }

    #[test]
    fn a_flipped_bit_breaks_the_checksum() {
        let good = request(CHECKSUM_PRESENT);
        let mut scratch = Vec::new();
        for at in HEADER_BYTES + 4..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let error = parse(&bad, &mut scratch).unwrap_err();
            assert!(matches!(error, WireError::Fatal(_)), "byte {at}: {error}");
        }
    }

    #[test]
    fn unknown_required_flags_are_fatal() {
        for bit in 2..16 {
            let error = parse(&request(1 << bit), &mut Vec::new()).unwrap_err();
            assert!(matches!(error, WireError::Fatal(_)), "bit {bit}");
        }
    }

    /// A message of these sections.
    fn sections(sections: &[&[u8]]) -> Vec<u8> {
        let content: Vec<u8> = sections.concat();
        let mut out = reply_prefix(1, 0, 0, content.len() - 1).to_vec();
        out.truncate(HEADER_BYTES + 4);
        out.extend_from_slice(&content);
        out
    }

    #[test]
    fn wrong_sections_are_answered() {
        let body = [&[0u8][..], doc! { "a": 1 }.to_raw().as_bytes()].concat();
        let sequence = |name: &str| {
            let doc = doc! {}.to_raw();
            let mut bytes = vec![1];
            bytes.extend_from_slice(&((4 + name.len() + 1 + doc.as_bytes().len()) as i32).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
            bytes.extend_from_slice(doc.as_bytes());
            bytes
        };
        let cases: &[(Vec<u8>, i32)] = &[
            (sections(&[&body, &body]), 40430),
            (sections(&[&body, &sequence("x"), &sequence("x")]), 40431),
            (sections(&[&body, &[7]]), 40432),
            (sections(&[&sequence("x"), &body, &sequence("a")]), 40433),
            (sections(&[&sequence("x")]), 40587),
            (sections(&[&body, &[1, 9, 0, 0, 0]]), 22),
            (sections(&[&body[..body.len() - 1]]), 22),
        ];
        for (bytes, code) in cases {
            match parse(bytes, &mut Vec::new()) {
                Err(WireError::Answer(error)) => assert_eq!(error.code().number(), *code, "{error}"),
                other => panic!("{code}: {other:?}"),
            }
        }
    }

    #[test]
    fn replies_read_back() {
        let body = doc! { "ok": 1.0 }.to_raw();
        for compressor in [None, Some(Compressor::Snappy)] {
            let mut out = Vec::new();
            write_reply(&mut out, 3, 9, MORE_TO_COME, body.as_bytes(), compressor);
            let mut scratch = Vec::new();
            let message = parse(&out, &mut scratch).unwrap();
            assert_eq!((message.header.request_id, message.header.response_to), (3, 9));
            assert_eq!(message.compressor, compressor);
            assert_eq!(msg(message).body.as_bytes(), body.as_bytes());
        }
    }
}
