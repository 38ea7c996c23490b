//! What can be wrong with a message.

use nestor_model::Error;
use std::fmt;

/// The whole answer to an HTTP request: what `curl` of a MongoDB server prints.
pub const HTTP_ANSWER: &[u8] =
    b"HTTP/1.0 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 85\r\n\r\n\
It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n";

/// Why a message was not understood, and with that what happens to its connection.
#[derive(Debug)]
pub enum WireError {
    /// The bytes cannot be trusted any further: the connection is closed without a reply.
    Fatal(&'static str),
    /// This is an HTTP request: [`HTTP_ANSWER`] tells a person so, then the connection is closed.
    Http,
    /// The frame is sound, its content is not: the client gets this error, the connection goes on.
    Answer(Error),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Fatal(reason) => f.write_str(reason),
            WireError::Http => f.write_str("the client speaks HTTP"),
            WireError::Answer(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for WireError {}

impl From<Error> for WireError {
    fn from(error: Error) -> Self {
        WireError::Answer(error)
    }
}

impl From<nestor_model::raw::Malformed> for WireError {
    fn from(malformed: nestor_model::raw::Malformed) -> Self {
        WireError::Answer(malformed.into())
    }
}
