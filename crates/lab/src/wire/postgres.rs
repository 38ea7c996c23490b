//! PostgreSQL's protocol: statements parsed once, then Bind, Execute and Sync with binary parameters and answers.
//!
//! Source: PostgreSQL's manual, "Frontend/Backend Protocol".

use super::{Buffered, Durability, Session, Stream};
use crate::rows::{Argument, Arguments, Cell, Rows};
use crate::statement::{Kind, Statement};

/// SQLSTATE of a parameter that a server does not have.
const UNKNOWN_PARAMETER: &str = "42704";

const BOOL: u32 = 16;
const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const FLOAT4: u32 = 700;
const FLOAT8: u32 = 701;

/// Longest message a server may send, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

struct Prepared {
    name: &'static str,
    parameters: Vec<Kind>,
    /// The types of the answer's columns.
    columns: Vec<u32>,
}

pub struct Postgres {
    stream: Buffered,
    prepared: Vec<Prepared>,
    message: Vec<u8>,
    rows: Rows,
}

impl Postgres {
    pub fn new(stream: Box<dyn Stream>, durability: Durability) -> Result<Self, String> {
        let mut session = Self {
            stream: Buffered::new(stream),
            prepared: Vec::new(),
            message: Vec::new(),
            rows: Rows::default(),
        };
        let setting = match durability {
            Durability::Relaxed => "SET synchronous_commit = off",
            Durability::Durable => "SET synchronous_commit = on",
        };
        match session.simple(setting) {
            // A server without the parameter has one way to commit, which results name.
            Err(error) if !error.contains(UNKNOWN_PARAMETER) => Err(error),
            _ => Ok(session),
        }
    }

    /// Runs a text without parameters, whose rows nobody wants.
    fn simple(&mut self, text: &str) -> Result<(), String> {
        self.message.clear();
        frame(&mut self.message, b'Q', |body| {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        });
        self.stream.send(&self.message)?;
        let mut rows = std::mem::take(&mut self.rows);
        let answer = self.read_answer(&[], &mut rows, false);
        self.rows = rows;
        answer.map(drop).map_err(|error| format!("{text}: {error}"))
    }

    /// Reads messages up to ReadyForQuery. Returns the types of the columns, if they were described.
    fn read_answer(&mut self, columns: &[u32], rows: &mut Rows, wants_rows: bool) -> Result<Option<Vec<u32>>, String> {
        rows.clear();
        let mut described = None;
        let mut failure = None;
        loop {
            let head = rows.buffer.len();
            self.stream.read_onto(&mut rows.buffer, 5)?;
            let tag = rows.buffer[head];
            let length = int(&rows.buffer, head + 1)? as usize;
            if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
                return Err("the server sent a message without a length".into());
            }
            let body = head + 5;
            self.stream.read_onto(&mut rows.buffer, length - 4)?;
            match tag {
                b'D' if wants_rows => read_row(columns, body, rows)?,
                b'T' => described = Some(types(&rows.buffer[body..])?),
                b'C' => rows.affected = count_of(&rows.buffer[body..]),
                b'E' => failure = failure.or_else(|| Some(error(&rows.buffer[body..]))),
                b'Z' => break,
                _ => {}
            }
            if tag != b'D' {
                rows.buffer.truncate(head);
            }
        }
        failure.map_or(Ok(described), Err)
    }
}

impl Session for Postgres {
    fn prepare(&mut self, statement: &Statement) -> Result<usize, String> {
        let number = self.prepared.len();
        self.message.clear();
        frame(&mut self.message, b'P', |body| {
            body.extend_from_slice(format!("s{number}\0{}\0", statement.sql).as_bytes());
            body.extend_from_slice(&(statement.parameters.len() as u16).to_be_bytes());
            for kind in &statement.parameters {
                let oid = match kind {
                    Kind::Int => INT4,
                    Kind::Long => INT8,
                    Kind::Text(_) => TEXT,
                };
                body.extend_from_slice(&oid.to_be_bytes());
            }
        });
        frame(&mut self.message, b'D', |body| {
            body.extend_from_slice(format!("Ss{number}\0").as_bytes());
        });
        frame(&mut self.message, b'S', |_| {});
        self.stream.send(&self.message)?;
        let mut rows = std::mem::take(&mut self.rows);
        let described = self.read_answer(&[], &mut rows, false);
        self.rows = rows;
        let columns = described.map_err(|error| format!("{}: {error}", statement.name))?;
        self.prepared.push(Prepared {
            name: statement.name,
            parameters: statement.parameters.clone(),
            columns: columns.unwrap_or_default(),
        });
        Ok(number)
    }

    fn call(&mut self, number: usize, arguments: &Arguments, rows: &mut Rows) -> Result<(), String> {
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        let prepared = &self.prepared[number];
        frame(&mut message, b'B', |body| bind(number, prepared, arguments, body));
        // Execute of the unnamed portal without a limit, and Sync.
        message.extend_from_slice(&[b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, b'S', 0, 0, 0, 4]);
        let sent = self.stream.send(&message);
        self.message = message;
        let columns = std::mem::take(&mut self.prepared[number].columns);
        let answer = sent.and_then(|()| self.read_answer(&columns, rows, true));
        self.prepared[number].columns = columns;
        answer
            .map(drop)
            .map_err(|error| format!("{}: {error}", self.prepared[number].name))
    }

    fn begin(&mut self) -> Result<(), String> {
        self.simple("BEGIN")
    }

    fn commit(&mut self) -> Result<(), String> {
        self.simple("COMMIT")
    }
}

fn is_binary(oid: u32) -> bool {
    matches!(oid, BOOL | INT2 | INT4 | INT8 | FLOAT4 | FLOAT8)
}

fn frame(message: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
    message.push(tag);
    let at = message.len();
    message.extend_from_slice(&[0; 4]);
    write(message);
    let length = (message.len() - at) as u32;
    message[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn bind(number: usize, prepared: &Prepared, arguments: &Arguments, body: &mut Vec<u8>) {
    body.push(0);
    body.extend_from_slice(format!("s{number}\0").as_bytes());
    // One format for all parameters: binary, which a text is anyway.
    body.extend_from_slice(&[0, 1, 0, 1]);
    body.extend_from_slice(&(prepared.parameters.len() as u16).to_be_bytes());
    for (kind, argument) in prepared.parameters.iter().zip(&arguments.list) {
        match (kind, argument) {
            (Kind::Int, Argument::Int(value)) => {
                body.extend_from_slice(&[0, 0, 0, 4]);
                body.extend_from_slice(&(*value as i32).to_be_bytes());
            }
            (_, Argument::Int(value)) => {
                body.extend_from_slice(&[0, 0, 0, 8]);
                body.extend_from_slice(&value.to_be_bytes());
            }
            (_, Argument::Text { start, length }) => {
                body.extend_from_slice(&(*length as u32).to_be_bytes());
                body.extend_from_slice(&arguments.bytes[*start..start + length]);
            }
        }
    }
    body.extend_from_slice(&(prepared.columns.len() as u16).to_be_bytes());
    for &oid in &prepared.columns {
        body.extend_from_slice(&u16::from(is_binary(oid)).to_be_bytes());
    }
}

fn read_row(columns: &[u32], body: usize, rows: &mut Rows) -> Result<(), String> {
    let mut at = body + 2;
    for &oid in columns {
        let length = int(&rows.buffer, at)?;
        at += 4;
        let Ok(length) = usize::try_from(length) else {
            rows.cells.push(Cell::Null);
            continue;
        };
        let value = rows.buffer.get(at..at + length).ok_or("a row ends too early")?;
        let number = || value.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        match oid {
            BOOL => rows.cells.push(Cell::Int(number() as i64)),
            INT2 => rows.cells.push(Cell::Int(i64::from(number() as i16))),
            INT4 => rows.cells.push(Cell::Int(i64::from(number() as i32))),
            INT8 => rows.cells.push(Cell::Int(number() as i64)),
            FLOAT4 => rows.cells.push(Cell::Float(f64::from(f32::from_bits(number() as u32)))),
            FLOAT8 => rows.cells.push(Cell::Float(f64::from_bits(number()))),
            _ => rows.push_bytes(at..at + length),
        }
        at += length;
    }
    rows.end_row();
    Ok(())
}

/// The types of a RowDescription.
fn types(body: &[u8]) -> Result<Vec<u32>, String> {
    let short = "a description ends too early";
    let count = u16::from_be_bytes([*body.first().ok_or(short)?, *body.get(1).ok_or(short)?]);
    let mut at = 2;
    let mut types = Vec::new();
    for _ in 0..count {
        let name = body
            .get(at..)
            .and_then(|rest| rest.iter().position(|&byte| byte == 0))
            .ok_or(short)?;
        at += name + 1;
        types.push(int(body, at + 6)? as u32);
        at += 18;
    }
    Ok(types)
}

fn int(bytes: &[u8], at: usize) -> Result<i32, String> {
    let four = bytes.get(at..at + 4).ok_or("a message ends too early")?;
    Ok(four.iter().fold(0, |number, &byte| number << 8 | i32::from(byte)))
}

/// The number at the end of a CommandComplete.
fn count_of(tag: &[u8]) -> u64 {
    let text = std::str::from_utf8(tag).unwrap_or_default();
    let last = text.trim_end_matches('\0').rsplit(' ').next();
    last.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Message and SQLSTATE of an ErrorResponse.
fn error(body: &[u8]) -> String {
    let field = |wanted: u8| {
        let mut fields = body.split(|&byte| byte == 0).filter(|field| !field.is_empty());
        let found = fields.find(|field| field[0] == wanted);
        found.map_or(String::new(), |field| String::from_utf8_lossy(&field[1..]).into_owned())
    };
    format!("{} (SQLSTATE {})", field(b'M'), field(b'C'))
}
