//! OP_QUERY, which drivers use for nothing but the first hello, and OP_REPLY, its answer.
//!
//! ```text
//! OP_QUERY   int32 flags | namespace bytes 0x00 | int32 skip | int32 return | document query | [document fields]
//! OP_REPLY   int32 flags | int64 cursor id | int32 starting from | int32 number returned | document*
//! ```

use crate::WireError;
use crate::compress::{self, Compressor};
use crate::header::{HEADER_BYTES, Header, OpCode, read_i32};
use nestor_model::{RawDoc, ValueRef};

/// The server supports the (legacy) await-data option: always set in replies.
const AWAIT_CAPABLE: i32 = 8;

/// A command sent as a query on `db.$cmd`.
#[derive(Debug)]
pub struct OpQuery<'a> {
    /// Database part of the namespace.
    pub db: &'a str,
    /// The command, taken out of a `$query` wrapper if there was one.
    pub command: RawDoc<'a>,
}

impl<'a> OpQuery<'a> {
    /// Parses the bytes after the header. Only queries on `$cmd` are understood.
    pub(crate) fn parse(content: &'a [u8]) -> Result<Self, WireError> {
        let after_flags = content.get(4..).ok_or(WireError::Fatal("query cut off"))?;
        let end = after_flags
            .iter()
            .position(|b| *b == 0)
            .ok_or(WireError::Fatal("query namespace not terminated"))?;
        let namespace = after_flags
            .get(..end)
            .and_then(|name| std::str::from_utf8(name).ok())
            .ok_or(WireError::Fatal("query namespace is not UTF-8"))?;
        let Some((db, "$cmd")) = namespace.split_once('.') else {
            return Err(WireError::Fatal("OP_QUERY on a collection is no longer supported"));
        };
        // Skip and number to return say nothing about a command.
        let rest = after_flags.get(end + 1..).unwrap_or_default();
        if read_i32(rest, 4).is_none() {
            return Err(WireError::Fatal("query cut off"));
        }
        let query = RawDoc::validate_prefix(rest.get(8..).unwrap_or_default())?;
        let after = rest.get(8 + query.len()..).unwrap_or_default();
        if !after.is_empty() && RawDoc::validate(after).is_err() {
            return Err(WireError::Fatal("bytes after the query are no document"));
        }
        let command = match query.iter().next() {
            Some(("$query", ValueRef::Document(nestor_model::DocRef::Raw(inner)))) => inner,
            _ => query,
        };
        Ok(Self { db, command })
    }
}

/// Appends an OP_REPLY with one document, the reply to a command.
pub fn write_reply(out: &mut Vec<u8>, request_id: i32, response_to: i32, body: &[u8], compressor: Option<Compressor>) {
    let mut content = Vec::with_capacity(20 + body.len());
    content.extend_from_slice(&AWAIT_CAPABLE.to_le_bytes());
    content.extend_from_slice(&[0; 12]);
    content.extend_from_slice(&1i32.to_le_bytes());
    content.extend_from_slice(body);
    if let Some(compressor) = compressor {
        compress::write(out, request_id, response_to, OpCode::Reply, &content, compressor);
        return;
    }
    let header = Header {
        length: HEADER_BYTES + content.len(),
        request_id,
        response_to,
        op_code: OpCode::Reply,
    };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(&content);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, parse};
    use nestor_model::{Document, doc};

    fn query(namespace: &str, command: &Document) -> Vec<u8> {
        let command = command.to_raw();
        let mut content = vec![0; 4];
        content.extend_from_slice(namespace.as_bytes());
        content.push(0);
        content.extend_from_slice(&[0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        content.extend_from_slice(command.as_bytes());
        let header = Header {
            length: HEADER_BYTES + content.len(),
            request_id: 5,
            response_to: 0,
            op_code: OpCode::Query,
        };
        [&header.to_bytes()[..], &content].concat()
    }

    #[test]
    fn plain_and_wrapped_hello() {
        let hello = doc! { "isMaster": 1, "helloOk": true };
        let wrapped = doc! { "$query": hello.clone(), "$readPreference": doc! { "mode": "nearest" } };
        for command in [&hello, &wrapped] {
            let bytes = query("admin.$cmd", command);
            let mut scratch = Vec::new();
            match parse(&bytes, &mut scratch).unwrap().content {
                Content::Query(q) => {
                    assert_eq!(q.db, "admin");
                    assert_eq!(q.command.as_bytes(), hello.to_raw().as_bytes());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn queries_on_collections_end_the_connection() {
        for namespace in ["test.people", "admin", "", "a.b.$cmd"] {
            let bytes = query(namespace, &doc! {});
            assert!(
                matches!(parse(&bytes, &mut Vec::new()), Err(WireError::Fatal(_))),
                "{namespace}"
            );
        }
    }

    #[test]
    fn every_cut_is_an_error() {
        let bytes = query("admin.$cmd", &doc! { "hello": 1 });
        for end in HEADER_BYTES..bytes.len() {
            let mut cut = bytes[..end].to_vec();
            cut[..4].copy_from_slice(&(end as i32).to_le_bytes());
            assert!(parse(&cut, &mut Vec::new()).is_err(), "cut at {end}");
        }
    }
}
