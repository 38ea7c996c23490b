//! Bytes to messages and back: OP_MSG, OP_COMPRESSED, and OP_QUERY for the first hello of old drivers.
//! No I/O, no database; no input panics it.
//!
//! Reading order: [`header`] (framing, limits), [`msg`] (OP_MSG), [`query`] (OP_QUERY and its OP_REPLY),
//! [`compress`] (OP_COMPRESSED), [`error`] (what is answered and what ends the connection).
//!
//! ```text
//! message    int32 length (all bytes, itself included) | int32 request id | int32 response to | int32 opcode | content
//! ```
//!
//! Everything a [`Message`] holds borrows from the bytes it was parsed from, or from the scratch buffer a
//! compressed message was inflated into. Bytes of documents are validated here, once.
//! Sources: the manual's "MongoDB Wire Protocol" page; driver specifications OP_MSG and OP_COMPRESSED.

pub mod compress;
pub mod error;
pub mod header;
pub mod msg;
pub mod query;
#[cfg(test)]
mod replay;

pub use compress::{Compressor, compressed, inflated_length};
pub use error::{HTTP_ANSWER, WireError};
pub use header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, OpCode, check_begun, message_length};
pub use msg::{OpMsg, Sequence};
pub use query::OpQuery;

/// One request from a client.
#[derive(Debug)]
pub struct Message<'a> {
    /// The outer header: its request id is what the reply answers to.
    pub header: Header,
    /// How the message was compressed; the reply is compressed alike.
    pub compressor: Option<Compressor>,
    /// The content of the message.
    pub content: Content<'a>,
}

/// The requests a server accepts.
#[derive(Debug)]
pub enum Content<'a> {
    /// OP_MSG.
    Msg(OpMsg<'a>),
    /// OP_QUERY on a `$cmd` collection.
    Query(OpQuery<'a>),
}

/// Parses one whole message, as long as [`message_length`] said. A compressed one is inflated into
/// `scratch`, whose contents are replaced.
pub fn parse<'a>(bytes: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<Message<'a>, WireError> {
    let header = Header::parse(bytes)?;
    if header.length != bytes.len() {
        return Err(WireError::Fatal("message length does not fit"));
    }
    let content = bytes.get(HEADER_BYTES..).unwrap_or_default();
    if header.op_code != OpCode::Compressed {
        return Ok(Message {
            header,
            compressor: None,
            content: parse_content(header.op_code, bytes, content)?,
        });
    }
    let (op_code, compressor) = compress::inflate(content, scratch)?;
    if compressor == Compressor::Noop {
        let plain = content.get(compress::PREFIX_BYTES..).unwrap_or_default();
        return Ok(Message {
            header,
            compressor: Some(compressor),
            content: parse_content(op_code, &[], plain)?,
        });
    }
    Ok(Message {
        header,
        compressor: Some(compressor),
        content: parse_content(op_code, &[], scratch)?,
    })
}

/// `whole` is the message with its header, what a checksum covers; empty when the message was compressed
/// (a checksum then covers bytes that were never sent, and is not checked).
fn parse_content<'a>(op_code: OpCode, whole: &[u8], content: &'a [u8]) -> Result<Content<'a>, WireError> {
    match op_code {
        OpCode::Msg => Ok(Content::Msg(OpMsg::parse(whole, content)?)),
        OpCode::Query => Ok(Content::Query(OpQuery::parse(content)?)),
        OpCode::Compressed => Err(WireError::Fatal("compressed message within a compressed message")),
        OpCode::Reply => Err(WireError::Fatal("a client sent OP_REPLY")),
    }
}
