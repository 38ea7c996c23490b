//! Connections of the three protocols as one contract, [`Session`]. What is logged in, and how, is not known here: a
//! [`Stream`] comes ready.

mod mongo;
mod mysql;
mod postgres;

pub use mongo::command as mongo_command;
pub use mysql::MySqlTarget;

use crate::rows::{Arguments, Rows};
use crate::statement::Statement;
use std::io::{Read, Write};

/// The bytes of a connection that is logged in.
pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A language that servers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// MongoDB's.
    Mongo,
    /// PostgreSQL's.
    Postgres,
    /// MySQL's, which MariaDB speaks.
    MySql,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: a crash of the machine may lose the last moments. `w: 1`, `synchronous_commit = off`,
    /// `innodb_flush_log_at_trx_commit = 2`.
    Relaxed,
    /// The disk: `w: 1, j: true`, `synchronous_commit = on`, `innodb_flush_log_at_trx_commit = 1`.
    Durable,
}

impl Durability {
    /// As results have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Relaxed => "relaxed",
            Self::Durable => "durable",
        }
    }
}

/// A connection that calls prepared statements, one at a time.
///
/// Every method blocks until the answer is there. An error is a message for the user; after one the session is not used again.
pub trait Session: Send {
    /// Makes a statement ready; returns its number for [`call`](Self::call).
    fn prepare(&mut self, statement: &Statement) -> Result<usize, String>;

    /// Calls statement `number`. What it answers is in `rows` afterwards, in place of what was there.
    fn call(&mut self, number: usize, arguments: &Arguments, rows: &mut Rows) -> Result<(), String>;

    /// Begins a transaction, which the next calls belong to.
    fn begin(&mut self) -> Result<(), String>;

    /// Ends it.
    fn commit(&mut self) -> Result<(), String>;
}

/// A session of `protocol` over `stream`, working on database `database` (MongoDB's messages name it).
pub fn session(
    protocol: Protocol,
    stream: Box<dyn Stream>,
    database: &str,
    durability: Durability,
) -> Result<Box<dyn Session>, String> {
    Ok(match protocol {
        Protocol::Mongo => Box::new(mongo::Mongo::new(stream, database, durability)),
        Protocol::Postgres => Box::new(postgres::Postgres::new(stream, durability)?),
        Protocol::MySql => Box::new(mysql::MySql::new(stream)),
    })
}

/// Reads exactly `count` bytes onto the end of `buffer`.
fn read_onto(stream: &mut dyn Stream, buffer: &mut Vec<u8>, count: usize) -> Result<(), String> {
    let from = buffer.len();
    buffer.resize(from + count, 0);
    stream.read_exact(&mut buffer[from..]).map_err(lost)
}

fn lost(error: std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the server closed the connection".into(),
        std::io::ErrorKind::WouldBlock => "the server does not answer".into(),
        _ => format!("the connection broke: {error}"),
    }
}

/// A buffer between the socket and the messages: small messages take one read.
struct Buffered {
    stream: Box<dyn Stream>,
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl Buffered {
    fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            bytes: vec![0; 64 << 10],
            from: 0,
            to: 0,
        }
    }

    fn send(&mut self, message: &[u8]) -> Result<(), String> {
        self.stream
            .write_all(message)
            .and_then(|()| self.stream.flush())
            .map_err(lost)
    }

    /// Appends exactly `count` bytes to `out`.
    fn read_onto(&mut self, out: &mut Vec<u8>, count: usize) -> Result<(), String> {
        let mut missing = count;
        while missing > 0 {
            if self.from == self.to {
                if missing >= self.bytes.len() {
                    return read_onto(&mut *self.stream, out, missing);
                }
                (self.from, self.to) = (0, 0);
                match self.stream.read(&mut self.bytes) {
                    Ok(0) => return Err(lost(std::io::ErrorKind::UnexpectedEof.into())),
                    Ok(read) => self.to = read,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(lost(error)),
                }
                continue;
            }
            let take = missing.min(self.to - self.from);
            out.extend_from_slice(&self.bytes[self.from..self.from + take]);
            self.from += take;
            missing -= take;
        }
        Ok(())
    }
}
