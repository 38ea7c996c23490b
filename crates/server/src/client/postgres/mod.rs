//! A small blocking client of PostgreSQL's protocol: one connection, one text of statements at a time, values as text.
//!
//! Source: PostgreSQL's manual, "Frontend/Backend Protocol".

mod target;

pub use target::{PORT, Target};

use super::credentials::VARIABLE;
use super::scram::Exchange;
use super::transport::Stream;
use super::{ClientError, Result};
use nestor_database::login::mechanism::Mechanism;
use nestor_database::login::nonce;
use std::io::{self, BufReader, Read as _, Write as _};
use std::time::Duration;

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Longest message that a server may send, in bytes.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

const PROTOCOL: i32 = 3 << 16;
const SSL_REQUEST: i32 = 80_877_103;
const CANCEL_REQUEST: i32 = 80_877_102;

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The OID of its type.
    pub type_oid: u32,
}

/// An error or a notice of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `ERROR`, `FATAL`, `NOTICE` …
    pub severity: String,
    /// SQLSTATE.
    pub code: String,
    /// What went wrong.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// The character of the statement that it is about, from 1.
    pub position: Option<usize>,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Rows of these columns follow.
    Columns(Vec<Column>),
    /// A row; `None` is null.
    Row(Vec<Option<String>>),
    /// COPY sends bytes of the file that it makes.
    Data(Vec<u8>),
    /// COPY waits for the bytes of a file.
    WantsData,
    /// A statement has been carried out: its tag.
    Done(String),
    /// The text had no statement.
    Nothing,
    /// The server has something to say.
    Notice(Report),
    /// A statement failed, and those after it are not carried out.
    Failed(Report),
    /// The server waits for the next text; whether in a transaction: `I`, `T`, or `E` for one that has failed.
    Ready(u8),
}

/// What ends a statement of a connection from beside it.
#[derive(Clone, Debug)]
pub struct Canceller {
    target: Target,
    pid: i32,
    secret: i32,
}

impl Canceller {
    /// Asks the server to end what the connection does. Whether it was in time nobody says.
    ///
    /// Errors: those of connecting.
    pub fn cancel(&self) -> Result<()> {
        let mut stream = open(&self.target)?;
        let mut message = 16i32.to_be_bytes().to_vec();
        for part in [CANCEL_REQUEST, self.pid, self.secret] {
            message.extend(part.to_be_bytes());
        }
        let sent = stream.write_all(&message).and_then(|()| stream.flush());
        // The server closes the connection once it has done so.
        let done = sent.and_then(|()| stream.read(&mut [0]).map(drop));
        done.map_err(|error| ClientError::Network(self.target.host.to_string(), error))
    }
}

/// A connection to a server.
pub struct Postgres {
    stream: BufReader<Stream>,
    address: String,
    canceller: Canceller,
    /// What the server calls its version.
    pub version: String,
    body: Vec<u8>,
}

/// The way to the server, encrypted if it is to be.
fn open(target: &Target) -> Result<Stream> {
    let network = |error| ClientError::Network(target.host.to_string(), error);
    let mut stream = Stream::connect(&target.host, Some(CONNECT_MAX)).map_err(network)?;
    let Some(tls) = &target.tls else {
        return Ok(stream);
    };
    stream.limit(Some(CONNECT_MAX)).map_err(network)?;
    let mut request = 8i32.to_be_bytes().to_vec();
    request.extend(SSL_REQUEST.to_be_bytes());
    stream.write_all(&request).map_err(network)?;
    let mut answer = [0];
    stream.read_exact(&mut answer).map_err(network)?;
    if answer != *b"S" {
        return Err(network(io::Error::other("the server does not encrypt connections")));
    }
    let encrypted = stream.encrypted(tls, &target.host).map_err(network)?;
    encrypted.limit(None).map_err(network)?;
    Ok(encrypted)
}

impl Postgres {
    /// Connects and logs in.
    ///
    /// Errors: those of the network, of the server, and of a server that wants another login than SCRAM-SHA-256.
    pub fn connect(target: &Target) -> Result<Self> {
        let mut client = Self {
            stream: BufReader::with_capacity(64 << 10, open(target)?),
            address: target.host.to_string(),
            canceller: Canceller {
                target: target.clone(),
                pid: 0,
                secret: 0,
            },
            version: String::new(),
            body: Vec::new(),
        };
        let mut start = PROTOCOL.to_be_bytes().to_vec();
        for text in [
            "user",
            &target.user,
            "database",
            &target.database,
            "application_name",
            &target.application,
            "client_encoding",
            "UTF8",
        ] {
            start.extend(text.as_bytes());
            start.push(0);
        }
        start.push(0);
        let mut message = length(start.len())?.to_vec();
        message.append(&mut start);
        client.write(&message)?;
        client.begin(target)?;
        Ok(client)
    }

    /// The bytes of the connection, for who speaks the protocol without our help.
    pub(crate) fn stream(&mut self) -> &mut BufReader<Stream> {
        &mut self.stream
    }

    /// What ends a statement of this connection.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// The way through the first messages, until the server waits.
    fn begin(&mut self, target: &Target) -> Result<()> {
        let own = nonce().map_err(|error| ClientError::Uri(error.to_string()))?;
        let mut exchange = None;
        let mut expected = None;
        loop {
            let tag = self.read()?;
            let mut body = Reader { bytes: &self.body };
            let answer = match tag {
                b'R' => match body.int()? {
                    0 => match &expected {
                        // A server that was asked for a proof of its own has given it.
                        Some(_) => return Err(protocol("it did not prove that it knows the user")),
                        None => continue,
                    },
                    10 => {
                        let Some(password) = target.password.as_ref() else {
                            return Err(ClientError::Uri(format!(
                                "the server wants a password of {}: give it in the connection string, in a file or in {VARIABLE}",
                                target.user
                            )));
                        };
                        let offers = body.bytes.split(|&b| b == 0).any(|name| name == b"SCRAM-SHA-256");
                        if !offers {
                            return Err(protocol("it does not offer SCRAM-SHA-256"));
                        }
                        let secret = Mechanism::ScramSha256.password(&target.user, password);
                        let secret = secret.map_err(|error| ClientError::Uri(error.to_string()))?;
                        let begun = Exchange::begin(Mechanism::ScramSha256, &target.user, &secret, &own);
                        let first = begun.first();
                        exchange = Some(begun);
                        let mut out = b"SCRAM-SHA-256\0".to_vec();
                        out.extend((first.len() as i32).to_be_bytes());
                        out.extend(first.as_bytes());
                        out
                    }
                    11 => {
                        let challenge = body.rest()?;
                        let begun = exchange
                            .take()
                            .ok_or_else(|| protocol("a challenge that nobody asked for"))?;
                        let proved = begun.prove(challenge);
                        let (proof, answer) =
                            proved.ok_or_else(|| protocol("it did not prove that it knows the user"))?;
                        expected = Some(answer);
                        proof.into_bytes()
                    }
                    12 => {
                        if expected.take().as_deref() != Some(body.rest()?) {
                            return Err(protocol("it did not prove that it knows the user"));
                        }
                        continue;
                    }
                    _ => return Err(protocol("it wants another login than SCRAM-SHA-256")),
                },
                b'S' => {
                    if body.text()? == "server_version" {
                        body.text()?.clone_into(&mut self.version);
                    }
                    continue;
                }
                b'K' => {
                    (self.canceller.pid, self.canceller.secret) = (body.int()?, body.int()?);
                    continue;
                }
                b'E' => return Err(refused(&report(body)?)),
                b'Z' => return Ok(()),
                _ => continue,
            };
            self.message(b'p', &answer)?;
        }
    }

    /// Sends a text of statements; what comes of it [`next`](Self::next) says, up to [`Event::Ready`].
    ///
    /// Errors: those of the network, and a text with a byte 0, which the protocol cannot carry.
    pub fn send(&mut self, text: &str) -> Result<()> {
        if text.contains('\0') {
            return Err(ClientError::Uri("a statement has a byte 0".into()));
        }
        self.message(b'Q', &[text.as_bytes(), &[0]].concat())
    }

    /// The next part of the answer.
    ///
    /// Errors: those of the network, and messages that cannot be read.
    pub fn next(&mut self) -> Result<Event> {
        loop {
            let tag = self.read()?;
            let mut body = Reader { bytes: &self.body };
            return Ok(match tag {
                b'T' => {
                    let count = body.short()?;
                    let mut columns = Vec::new();
                    for _ in 0..count {
                        let name = body.text()?.to_owned();
                        body.take(6)?;
                        let type_oid = body.int()? as u32;
                        body.take(8)?;
                        columns.push(Column { name, type_oid });
                    }
                    Event::Columns(columns)
                }
                b'D' => {
                    let count = body.short()?;
                    let mut row = Vec::new();
                    for _ in 0..count {
                        row.push(match usize::try_from(body.int()?) {
                            Ok(bytes) => Some(String::from_utf8_lossy(body.take(bytes)?).into_owned()),
                            Err(_) => None,
                        });
                    }
                    Event::Row(row)
                }
                b'C' => Event::Done(body.text()?.to_owned()),
                b'I' => Event::Nothing,
                b'N' => Event::Notice(report(body)?),
                b'E' => Event::Failed(report(body)?),
                b'Z' => Event::Ready(body.take(1)?[0]),
                b'G' => Event::WantsData,
                b'd' => Event::Data(body.bytes.to_vec()),
                // Settings that changed, and the frame of COPY's data.
                _ => continue,
            });
        }
    }

    /// Sends bytes of the file that COPY waits for.
    ///
    /// Errors: those of the network.
    pub fn data(&mut self, bytes: &[u8]) -> Result<()> {
        self.message(b'd', bytes)
    }

    /// Ends the file that COPY waits for: it is whole, or there is none for this reason, and the statement fails with it.
    ///
    /// Errors: those of the network.
    pub fn end_data(&mut self, failure: Option<&str>) -> Result<()> {
        match failure {
            None => self.message(b'c', &[]),
            Some(reason) => self.message(b'f', &[reason.replace('\0', "").as_bytes(), &[0]].concat()),
        }
    }

    fn message(&mut self, tag: u8, body: &[u8]) -> Result<()> {
        let mut message = vec![tag];
        message.extend(length(body.len())?);
        message.extend(body);
        self.write(&message)
    }

    fn write(&mut self, message: &[u8]) -> Result<()> {
        let stream = self.stream.get_mut();
        let sent = stream.write_all(message).and_then(|()| stream.flush());
        sent.map_err(|error| ClientError::Network(self.address.clone(), error))
    }

    /// Reads a message into `body` and returns its tag.
    fn read(&mut self) -> Result<u8> {
        let mut head = [0; 5];
        let read = self.stream.read_exact(&mut head);
        read.map_err(|error| self.network(error))?;
        let [tag, length @ ..] = head;
        let length = usize::try_from(i32::from_be_bytes(length)).unwrap_or(0);
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(protocol("a message has no length"));
        }
        self.body.clear();
        let mut part = (&mut self.stream).take((length - 4) as u64);
        let read = part.read_to_end(&mut self.body);
        match read {
            Ok(bytes) if bytes == length - 4 => Ok(tag),
            Ok(_) => Err(self.network(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.network(error)),
        }
    }

    fn network(&self, error: io::Error) -> ClientError {
        let error = match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the server closed the connection"),
            _ => error,
        };
        ClientError::Network(self.address.clone(), error)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A server that is gone needs no farewell.
        let _ = self.write(&[b'X', 0, 0, 0, 4]);
    }
}

fn protocol(reason: &str) -> ClientError {
    ClientError::Protocol(reason.to_owned())
}

fn refused(report: &Report) -> ClientError {
    ClientError::Protocol(format!("{}: {} ({})", report.severity, report.message, report.code))
}

/// The length of a message whose body has so many bytes.
fn length(bytes: usize) -> Result<[u8; 4]> {
    match i32::try_from(bytes.saturating_add(4)) {
        Ok(length) => Ok(length.to_be_bytes()),
        Err(_) => Err(ClientError::Uri("the statement is longer than a message may be".into())),
    }
}

/// An error or a notice.
fn report(mut body: Reader<'_>) -> Result<Report> {
    let mut report = Report::default();
    loop {
        let field = body.take(1)?[0];
        if field == 0 {
            return Ok(report);
        }
        let text = body.text()?;
        match field {
            b'S' => text.clone_into(&mut report.severity),
            b'C' => text.clone_into(&mut report.code),
            b'M' => text.clone_into(&mut report.message),
            b'D' => report.detail = Some(text.to_owned()),
            b'H' => report.hint = Some(text.to_owned()),
            b'P' => report.position = text.parse().ok(),
            _ => {}
        }
    }
}

/// The body of a message.
struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or_else(|| protocol("a message ends too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn int(&mut self) -> Result<i32> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().fold(0, |number, &byte| number << 8 | i32::from(byte)))
    }

    fn short(&mut self) -> Result<u16> {
        let bytes = self.take(2)?;
        Ok(bytes.iter().fold(0, |number, &byte| number << 8 | u16::from(byte)))
    }

    /// Up to the next byte 0, which is skipped.
    fn text(&mut self) -> Result<&'b str> {
        let end = self.bytes.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| protocol("a text does not end"))?;
        let text = self.take(end)?;
        self.take(1)?;
        utf8(text)
    }

    fn rest(&mut self) -> Result<&'b str> {
        utf8(std::mem::take(&mut self.bytes))
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| protocol("a text is not UTF-8"))
}
