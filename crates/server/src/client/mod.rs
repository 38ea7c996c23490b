//! A small blocking client of our own: one connection, one command at a time. `nestor import` and
//! `nestor bench` talk through it, so that they work against any server of the wire protocol.

mod connection;
mod credentials;
mod login;
mod message;
pub mod postgres;
mod scram;
mod secure;
mod session;
mod transport;
mod uri;

pub use connection::Connection;
pub use credentials::{Credentials, Way};
pub use message::{MESSAGE_HEADER_BYTES, body_of, command_message, set_request_id};
pub use secure::TlsClient;
pub(crate) use session::Session;
pub use uri::{Host, Uri};

use nestor_model::{Document, RawDoc, RawDocBuf, ValueRef};
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// Largest message either side may send, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// How long a server is looked for again after its connection broke, when the URI does not say.
const RECONNECT_MAX: Duration = Duration::from_secs(30);
/// Between two tries to find a server.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a command did not succeed.
#[derive(Debug)]
pub enum ClientError {
    /// The URI cannot be used.
    Uri(String),
    /// No connection to this address, or it broke.
    Network(String, io::Error),
    /// The server at this address is not the one that the URI asks for.
    Unsuitable(String, String),
    /// The bytes that came back are no reply.
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
            Self::Unsuitable(address, reason) => write!(f, "{address}: {reason}"),
            Self::Protocol(reason) => write!(f, "the server sent what is no reply: {reason}"),
            Self::Refused { code, message } => write!(f, "{message} (code {code})"),
        }
    }
}

impl std::error::Error for ClientError {}

/// Result of a client call.
pub type Result<T> = std::result::Result<T, ClientError>;

/// How a command may be repeated when its fate is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Never,
    /// The command changes nothing, so it may be sent again.
    Read,
    /// The server knows it again by its number (driver specification "Retryable Writes").
    Write,
}

/// The server that a URI leads to.
pub struct Client {
    uri: Uri,
    connection: Connection,
    session: Session,
}

impl Client {
    /// Connects to the server that `uri` asks for: the first that answers and is a primary, or with
    /// `directConnection` the one it names.
    pub fn connect(uri: &Uri) -> Result<Self> {
        Ok(Self {
            uri: uri.clone(),
            connection: select(uri, uri.selection_timeout)?,
            session: Session::new(),
        })
    }

    /// Sends `command` (which names its `$db`) and returns the reply; a reply with `ok: 0` is an error.
    pub fn command(&mut self, command: RawDoc<'_>) -> Result<RawDocBuf> {
        self.exchange(command_message(command, None), Repeat::Never)
    }

    /// Like [`Client::command`], of a command that changes nothing: it is repeated if the connection breaks.
    pub fn read(&mut self, command: RawDoc<'_>) -> Result<RawDocBuf> {
        self.exchange(command_message(command, None), Repeat::Read)
    }

    /// Sends an insert, update or delete of single documents, which stand one after the other as section `identifier`.
    /// The command is sent again if the connection breaks, and carried out only once.
    pub fn write(&mut self, mut command: Document, identifier: &str, documents: &[u8]) -> Result<RawDocBuf> {
        let repeat = if self.uri.retry_writes && self.connection.knows_transaction_numbers {
            self.session.number(&mut command);
            Repeat::Write
        } else {
            Repeat::Never
        };
        self.concern(&mut command);
        let command = command.to_raw();
        self.exchange(command_message(command.as_raw(), Some((identifier, documents))), repeat)
    }

    /// Adds the URI's write concern to a command that writes.
    pub fn concern(&self, command: &mut Document) {
        if let Some(concern) = &self.uri.write_concern {
            command.push("writeConcern", concern.clone());
        }
    }

    /// The connection itself, for whole messages.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn exchange(&mut self, mut message: Vec<u8>, repeat: Repeat) -> Result<RawDocBuf> {
        let first = self.connection.exchange(&mut message);
        let again = match repeat {
            Repeat::Never => false,
            Repeat::Read => self.uri.retry_reads && matches!(first, Err(ClientError::Network(..))),
            Repeat::Write => match &first {
                Ok(reply) => is_retryable(reply.as_raw()),
                Err(error) => matches!(error, ClientError::Network(..)),
            },
        };
        let reply = if again {
            let limit = self.uri.selection_timeout.unwrap_or(RECONNECT_MAX);
            // If the server stays away, the error that broke the connection says more than the one of connecting.
            match select(&self.uri, Some(limit)) {
                Ok(connection) => self.connection = connection,
                Err(error) => return first.and(Err(error)),
            }
            self.connection.exchange(&mut message)?
        } else {
            first?
        };
        match refusal(reply.as_raw()) {
            Some(error) => Err(error),
            None => Ok(reply),
        }
    }
}

/// A connection to the server that `uri` asks for, looked for until `limit`; without one each host is tried once.
fn select(uri: &Uri, limit: Option<Duration>) -> Result<Connection> {
    let begun = Instant::now();
    loop {
        let error = match try_each(uri) {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        if limit.is_none_or(|limit| begun.elapsed() >= limit) {
            return Err(error);
        }
        std::thread::sleep(PAUSE);
    }
}

fn try_each(uri: &Uri) -> Result<Connection> {
    let mut hosts = uri.hosts.clone();
    let mut last = ClientError::Uri("the URI names no host".into());
    let mut next = 0;
    while let Some(host) = hosts.get(next).cloned() {
        next += 1;
        let (error, primary) = match Connection::open(uri, &host) {
            Ok((connection, hello)) => match hello.fault(uri) {
                None => return Ok(connection),
                Some(fault) => (ClientError::Unsuitable(host.to_string(), fault), hello.primary),
            },
            Err(error) => (error, None),
        };
        last = error;
        // A member that is no primary knows who is.
        if let Some(primary) = primary.filter(|primary| !uri.direct && !hosts.contains(primary)) {
            hosts.insert(next, primary);
        }
    }
    Err(last)
}

/// The error a reply stands for: with `ok: 0`, or of a write whose concern was not met.
pub fn refusal(reply: RawDoc<'_>) -> Option<ClientError> {
    let text = |doc: RawDoc<'_>| {
        let message = doc.get("errmsg").and_then(ValueRef::as_str);
        message.unwrap_or("no message").to_owned()
    };
    let code = |doc: RawDoc<'_>| number(doc, "code").unwrap_or(0) as i32;
    if number(reply, "ok").is_none_or(|ok| ok == 0) {
        return Some(ClientError::Refused {
            code: code(reply),
            message: text(reply),
        });
    }
    let failed = reply.get("writeConcernError").and_then(ValueRef::as_document)?.to_raw();
    Some(ClientError::Refused {
        code: code(failed.as_raw()),
        message: format!("write concern: {}", text(failed.as_raw())),
    })
}

/// Whether a reply says that the write may be sent again.
fn is_retryable(reply: RawDoc<'_>) -> bool {
    let labels = reply.get("errorLabels").and_then(ValueRef::as_array);
    let mut labels = labels.into_iter().flat_map(|labels| labels.iter());
    labels.any(|label| label.as_str() == Some("RetryableWriteError"))
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
