//! What clients send.

use crate::error::{self, error, fail};
use crate::types::encoding::Encoding;
use nestor_model::{Error, Result};
use std::borrow::Cow;

/// Most bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Most bytes of the first message.
pub const STARTUP_BYTES_MAX: usize = 10_000;

/// The first message of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Startup {
    /// The client wants TLS.
    Tls,
    /// The client wants GSSAPI.
    Gss,
    /// Another connection's statement is to end.
    Cancel {
        /// Number of the connection.
        pid: i32,
        /// What it was told at its start.
        secret: i32,
    },
    /// A conversation begins; names and values.
    Begin(Vec<(String, String)>),
}

/// Reads the body of a first message.
///
/// Errors: 08P01.
pub fn startup(body: &[u8]) -> Result<Startup> {
    let mut reader = Reader { bytes: body };
    match reader.int()? {
        80_877_103 => Ok(Startup::Tls),
        80_877_104 => Ok(Startup::Gss),
        80_877_102 => Ok(Startup::Cancel {
            pid: reader.int()?,
            secret: reader.int()?,
        }),
        version if version >> 16 == 3 => {
            let mut out = Vec::new();
            loop {
                let name = reader.text()?;
                if name.is_empty() {
                    return Ok(Startup::Begin(out));
                }
                out.push((name.to_owned(), reader.text()?.to_owned()));
            }
        }
        version => fail(
            "0A000",
            format!("unsupported frontend protocol {}.{}", version >> 16, version & 0xFFFF),
        ),
    }
}

/// A message.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Message<'m> {
    Query(&'m str),
    Parse {
        name: &'m str,
        text: &'m str,
        types: Vec<u32>,
    },
    Bind {
        portal: &'m str,
        statement: &'m str,
        formats: Vec<i16>,
        values: Vec<Option<&'m [u8]>>,
        results: Vec<i16>,
    },
    Describe {
        portal: bool,
        name: &'m str,
    },
    Execute {
        portal: &'m str,
        rows: i32,
    },
    Close {
        portal: bool,
        name: &'m str,
    },
    Sync,
    Flush,
    Terminate,
    CopyData(&'m [u8]),
    CopyDone,
    CopyFail(&'m str),
    /// One whose texts are in no encoding that the client has: its statement fails.
    Unreadable {
        /// It is a query, which is answered at once.
        is_query: bool,
        /// Why.
        error: Error,
    },
}

/// A message whose texts are in UTF-8, from one in the encoding of the client. Values of parameters and files stay as they are: what is in
/// them decides.
///
/// Errors: those of the encoding.
pub fn plain(tag: u8, body: &[u8], encoding: Encoding) -> Result<Cow<'_, [u8]>> {
    if encoding.is_plain() || body.is_ascii() {
        return Ok(Cow::Borrowed(body));
    }
    let texts = match tag {
        b'Q' | b'f' | b'E' | b'D' | b'C' => 1,
        b'P' | b'B' => 2,
        _ => return Ok(Cow::Borrowed(body)),
    };
    let ends = body.iter().enumerate().filter(|(_, byte)| **byte == 0);
    let end = ends.map(|(at, _)| at).nth(texts - 1).unwrap_or(body.len());
    let mut out = encoding.decode(&body[..end])?.into_owned().into_bytes();
    out.extend_from_slice(&body[end..]);
    Ok(Cow::Owned(out))
}

/// Reads a message as [`plain`] gives it.
///
/// Errors: 08P01.
pub fn message(tag: u8, body: Result<&[u8]>) -> Result<Message<'_>> {
    match body.and_then(|body| read(tag, body)) {
        Err(error) if matches!(error::state(&error).as_str(), "22021" | "22P05") => Ok(Message::Unreadable {
            is_query: tag == b'Q',
            error,
        }),
        read => read,
    }
}

fn read(tag: u8, body: &[u8]) -> Result<Message<'_>> {
    let mut reader = Reader { bytes: body };
    let message = match tag {
        b'Q' => Message::Query(reader.text()?),
        b'P' => {
            let (name, text) = (reader.text()?, reader.text()?);
            let types = reader.list(|reader| reader.int().map(|n| n as u32))?;
            Message::Parse { name, text, types }
        }
        b'B' => {
            let (portal, statement) = (reader.text()?, reader.text()?);
            let formats = reader.list(Reader::short)?;
            let values = reader.list(|reader| match reader.int()? {
                -1 => Ok(None),
                n => usize::try_from(n)
                    .map_err(|_| malformed())
                    .and_then(|n| reader.take(n))
                    .map(Some),
            })?;
            let results = reader.list(Reader::short)?;
            Message::Bind {
                portal,
                statement,
                formats,
                values,
                results,
            }
        }
        b'D' | b'C' => {
            let portal = match reader.take(1)? {
                b"P" => true,
                b"S" => false,
                _ => return Err(malformed()),
            };
            let name = reader.text()?;
            match tag {
                b'D' => Message::Describe { portal, name },
                _ => Message::Close { portal, name },
            }
        }
        b'E' => Message::Execute {
            portal: reader.text()?,
            rows: reader.int()?,
        },
        b'S' => Message::Sync,
        b'H' => Message::Flush,
        b'X' => Message::Terminate,
        b'd' => Message::CopyData(std::mem::take(&mut reader.bytes)),
        b'c' => Message::CopyDone,
        b'f' => Message::CopyFail(reader.text()?),
        tag => return fail("08P01", format!("message type {tag} is not known here")),
    };
    match reader.bytes.is_empty() {
        true => Ok(message),
        false => Err(malformed()),
    }
}

/// The first message of a login, which names the mechanism: what the client says by it.
///
/// Errors: 08P01; 28000 for another mechanism.
pub fn login_begins<'m>(tag: u8, body: &'m [u8], mechanism: &str) -> Result<&'m [u8]> {
    if tag != b'p' {
        return fail("08P01", "a response to the request to log in is expected");
    }
    let mut reader = Reader { bytes: body };
    if reader.text()? != mechanism {
        return fail("28000", "the client chose a mechanism that was not offered");
    }
    let length = usize::try_from(reader.int()?).map_err(|_| malformed())?;
    let message = reader.take(length)?;
    match reader.bytes.is_empty() {
        true => Ok(message),
        false => Err(malformed()),
    }
}

/// A later message of a login.
///
/// Errors: 08P01.
pub fn login_goes_on(tag: u8, body: &[u8]) -> Result<&[u8]> {
    match tag {
        b'p' => Ok(body),
        _ => fail("08P01", "a response to the request to log in is expected"),
    }
}

fn malformed() -> nestor_model::Error {
    error("08P01", "malformed message")
}

struct Reader<'m> {
    bytes: &'m [u8],
}

impl<'m> Reader<'m> {
    fn take(&mut self, n: usize) -> Result<&'m [u8]> {
        let (head, rest) = self.bytes.split_at_checked(n).ok_or_else(malformed)?;
        self.bytes = rest;
        Ok(head)
    }

    fn int(&mut self) -> Result<i32> {
        let bytes: [u8; 4] = self.take(4)?.try_into().map_err(|_| malformed())?;
        Ok(i32::from_be_bytes(bytes))
    }

    fn short(&mut self) -> Result<i16> {
        let bytes: [u8; 2] = self.take(2)?.try_into().map_err(|_| malformed())?;
        Ok(i16::from_be_bytes(bytes))
    }

    fn text(&mut self) -> Result<&'m str> {
        let end = self.bytes.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let text = std::str::from_utf8(self.take(end)?)
            .map_err(|_| error("22021", "invalid byte sequence for encoding \"UTF8\""))?;
        self.take(1)?;
        Ok(text)
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.short()? as u16;
        (0..count).map(|_| item(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_end_early_or_late_are_refused() {
        let body = b"\0\0SELECT\0\0\0";
        for cut in 0..body.len() - 1 {
            assert!(message(b'P', Ok(&body[..cut])).is_err(), "{cut}");
        }
        assert!(matches!(
            message(b'P', Ok(&body[1..])),
            Ok(Message::Parse { text: "SELECT", .. })
        ));
        assert!(message(b'S', Ok(b"x")).is_err());
        assert!(message(b'B', Ok(b"\0\0\0\0\0\x01\x7f\xff\xff\xff")).is_err());
    }
}
