//! A small blocking client of our own: one connection, one command at a time. `nestor import` and
//! `nestor bench` talk through it, so that they work against any server of the wire protocol.

mod message;
mod uri;

pub use message::{MESSAGE_HEADER_BYTES, body_of, command_message, set_request_id};
pub use uri::{Host, Uri};

use nestor_model::{RawDoc, RawDocBuf, ValueRef};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Largest message either side may send, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum ClientError {
    /// The URI cannot be used.
    Uri(String),
    /// No connection to this address, or it broke.
    Network(String, io::Error),
    /// What came back is no reply.
    Protocol(String),
    /// The server refused the command.
    Refused {
        /// MongoDB's error code.
        code: i32,
        /// The server's message.
        message: String,
    },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uri(reason) => write!(f, "{reason}"),
            Self::Network(address, reason) => write!(f, "{address}: {reason}"),
            Self::Protocol(reason) => write!(f, "the server sent what is no reply: {reason}"),
            Self::Refused { code, message } => write!(f, "{message} (code {code})"),
        }
    }
}

impl std::error::Error for ClientError {}

/// Result of a client call.
pub type Result<T> = std::result::Result<T, ClientError>;

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.read(buffer),
            Self::Unix(s) => s.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.write(buffer),
            Self::Unix(s) => s.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One connection.
pub struct Client {
    stream: Stream,
    address: String,
    request_id: i32,
}

impl Client {
    /// Connects to the first host of `uri` that answers.
    pub fn connect(uri: &Uri) -> Result<Self> {
        let mut last = None;
        for host in &uri.hosts {
            match Self::connect_host(host) {
                Ok(client) => return Ok(client),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| ClientError::Uri("the URI names no host".into())))
    }

    fn connect_host(host: &Host) -> Result<Self> {
        let address = host.to_string();
        let opened = match host {
            Host::Tcp(name, port) => TcpStream::connect((name.as_str(), *port)).and_then(|stream| {
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }),
            Host::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
        };
        match opened {
            Ok(stream) => Ok(Self {
                stream,
                address,
                request_id: 0,
            }),
            Err(error) => Err(ClientError::Network(address, error)),
        }
    }

    /// How long a reply may take; without a call, as long as it likes.
    pub fn set_timeout(&mut self, timeout: Duration) -> Result<()> {
        let set = match &self.stream {
            Stream::Tcp(s) => s.set_read_timeout(Some(timeout)),
            Stream::Unix(s) => s.set_read_timeout(Some(timeout)),
        };
        set.map_err(|e| self.network(e))
    }

    /// Sends `command` (which names its `$db`) and returns the reply; a reply with `ok: 0` is an error.
    pub fn command(&mut self, command: RawDoc<'_>) -> Result<RawDocBuf> {
        self.exchange(command_message(command, None))
    }

    /// Like [`Client::command`], with documents (their bytes, one after the other) as section `identifier`.
    pub fn command_with(&mut self, command: RawDoc<'_>, identifier: &str, documents: &[u8]) -> Result<RawDocBuf> {
        self.exchange(command_message(command, Some((identifier, documents))))
    }

    fn exchange(&mut self, mut message: Vec<u8>) -> Result<RawDocBuf> {
        self.request_id = self.request_id.wrapping_add(1);
        set_request_id(&mut message, self.request_id);
        self.stream.write_all(&message).map_err(|e| self.network(e))?;
        message.clear();
        self.read_message(&mut message)?;
        let reply = body_of(&message).map_err(ClientError::Protocol)?;
        refusal(reply).map_or_else(|| Ok(reply.to_buf()), Err)
    }

    /// Sends the bytes of whole messages as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(|e| self.network(e))
    }

    /// Reads one whole message, header included, into `message`.
    pub fn read_message(&mut self, message: &mut Vec<u8>) -> Result<()> {
        message.resize(MESSAGE_HEADER_BYTES, 0);
        self.stream.read_exact(message).map_err(|e| self.network(e))?;
        let length = message::length(message).map_err(ClientError::Protocol)?;
        message.resize(length, 0);
        self.stream
            .read_exact(&mut message[MESSAGE_HEADER_BYTES..])
            .map_err(|e| self.network(e))
    }

    fn network(&self, error: io::Error) -> ClientError {
        ClientError::Network(self.address.clone(), error)
    }
}

/// The error a reply with `ok: 0` stands for.
pub fn refusal(reply: RawDoc<'_>) -> Option<ClientError> {
    match number(reply, "ok") {
        Some(ok) if ok != 0 => None,
        _ => Some(ClientError::Refused {
            code: number(reply, "code").unwrap_or(0) as i32,
            message: reply
                .get("errmsg")
                .and_then(ValueRef::as_str)
                .unwrap_or("no message")
                .to_owned(),
        }),
    }
}

/// A number of any type as an integer.
pub fn number(doc: RawDoc<'_>, name: &str) -> Option<i64> {
    match doc.get(name)? {
        ValueRef::Int32(n) => Some(n.into()),
        ValueRef::Int64(n) => Some(n),
        ValueRef::Double(n) => Some(n as i64),
        ValueRef::Bool(b) => Some(b.into()),
        _ => None,
    }
}
