//! MySQL's protocol, as far as prepared statements need it; MariaDB speaks it too.
//!
//! Source: MariaDB's knowledge base, "Client/Server Protocol".

use super::{Buffered, Session, Stream};
use crate::rows::{Argument, Arguments, Cell, Rows};
use crate::statement::{Kind, Statement, question_marks};
use sha1::{Digest, Sha1};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const LONG_PASSWORD: u32 = 1;
const CONNECT_WITH_DB: u32 = 8;
const PROTOCOL_41: u32 = 0x200;
const TRANSACTIONS: u32 = 0x2000;
const SECURE_CONNECTION: u32 = 0x8000;
const PLUGIN_AUTH: u32 = 0x0008_0000;

const UTF8MB4: u8 = 45;
const COM_QUERY: u8 = 3;
const COM_STMT_PREPARE: u8 = 22;
const COM_STMT_EXECUTE: u8 = 23;

/// Packets are cut at this size; none of ours is as long.
const PACKET_BYTES_MAX: usize = 0xFF_FFFF;
const CONNECT_MAX: Duration = Duration::from_secs(10);
const ANSWER_MAX: Duration = Duration::from_secs(600);

/// A server that `mysql://user:password@host:port/database` names.
#[derive(Clone)]
pub struct MySqlTarget {
    /// `host:port`.
    pub address: String,
    /// Who to log in as.
    pub user: String,
    /// What proves it.
    pub password: String,
    /// Where tables are made; it has to exist.
    pub database: String,
}

impl std::str::FromStr for MySqlTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The text may have a password, so no message repeats it.
        let rest = text
            .strip_prefix("mysql://")
            .or_else(|| text.strip_prefix("mariadb://"));
        let rest = rest.ok_or("the URI begins with mysql:// or mariadb://")?;
        if rest.contains('?') {
            return Err("the URI of a MySQL server takes no options".into());
        }
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host) = place.rsplit_once('@').unwrap_or(("root", place));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        if host.is_empty() || host.contains(',') {
            return Err("the URI of a MySQL server names one host".into());
        }
        let address = match host.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
            Some((_, port)) if !port.ends_with(']') => return Err("the port is no number below 65536".into()),
            _ => format!("{host}:3306"),
        };
        Ok(Self {
            address,
            user: user.to_owned(),
            password: password.to_owned(),
            database: if database.is_empty() { "nestor_lab" } else { database }.to_owned(),
        })
    }
}

impl MySqlTarget {
    /// Connects and logs in.
    pub fn dial(&self) -> Result<Box<dyn Stream>, String> {
        let at = |error: String| format!("{}: {error}", self.address);
        let found = self.address.to_socket_addrs().map_err(|e| at(e.to_string()))?.next();
        let address = found.ok_or_else(|| at("the name has no address".into()))?;
        let stream = TcpStream::connect_timeout(&address, CONNECT_MAX).map_err(|e| at(e.to_string()))?;
        let kept = stream.try_clone().map_err(|e| at(e.to_string()))?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(ANSWER_MAX)))
            .map_err(|e| at(e.to_string()))?;
        let mut session = MySql::new(Box::new(stream));
        session.log_in(self).map_err(at)?;
        Ok(Box::new(kept))
    }
}

struct Prepared {
    name: &'static str,
    id: u32,
    parameters: Vec<Kind>,
}

pub struct MySql {
    stream: Buffered,
    sequence: u8,
    prepared: Vec<Prepared>,
    message: Vec<u8>,
    rows: Rows,
}

impl MySql {
    pub fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream: Buffered::new(stream),
            sequence: 0,
            prepared: Vec::new(),
            message: Vec::new(),
            rows: Rows::default(),
        }
    }

    /// Source: "Connecting", with the plugins mysql_native_password and, for accounts without a password, any.
    fn log_in(&mut self, target: &MySqlTarget) -> Result<(), String> {
        let mut greeting = Vec::new();
        self.packet(&mut greeting)?;
        fault(&greeting)?;
        let mut body = Reader::new(&greeting);
        body.skip(1)?;
        body.until_zero()?;
        body.skip(4)?;
        let mut salt = body.take(8)?.to_vec();
        body.skip(1 + 2 + 1 + 2 + 2 + 1 + 10)?;
        salt.extend_from_slice(body.take(12)?);
        let mut answer = Vec::new();
        let flags = LONG_PASSWORD | CONNECT_WITH_DB | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH;
        answer.extend_from_slice(&flags.to_le_bytes());
        answer.extend_from_slice(&(PACKET_BYTES_MAX as u32).to_le_bytes());
        answer.push(UTF8MB4);
        answer.extend_from_slice(&[0; 23]);
        answer.extend_from_slice(target.user.as_bytes());
        answer.push(0);
        let proof = proof(&target.password, &salt);
        answer.push(proof.len() as u8);
        answer.extend_from_slice(&proof);
        answer.extend_from_slice(target.database.as_bytes());
        answer.push(0);
        answer.extend_from_slice(b"mysql_native_password\0");
        self.send(&answer)?;
        loop {
            let mut reply = Vec::new();
            self.packet(&mut reply)?;
            fault(&reply)?;
            match reply.first() {
                Some(0) => return Ok(()),
                // Another plugin, and its salt.
                Some(0xFE) => {
                    let mut body = Reader::new(&reply);
                    body.skip(1)?;
                    let plugin = body.until_zero()?;
                    if plugin != b"mysql_native_password" && !target.password.is_empty() {
                        let name = String::from_utf8_lossy(plugin);
                        return Err(format!("the server wants to log in by {name}, which is not supported"));
                    }
                    let salt = body.rest().split(|&byte| byte == 0).next().unwrap_or_default();
                    let proof = self::proof(&target.password, salt);
                    self.send(&proof)?;
                }
                _ => return Err("the server wants a login that is not known".into()),
            }
        }
    }

    fn send(&mut self, body: &[u8]) -> Result<(), String> {
        if body.len() >= PACKET_BYTES_MAX {
            return Err("a statement is longer than a packet".into());
        }
        self.message.clear();
        let length = (body.len() as u32).to_le_bytes();
        self.message.extend_from_slice(&length[..3]);
        self.message.push(self.sequence);
        self.message.extend_from_slice(body);
        self.stream.send(&self.message)
    }

    /// Sends a command, which begins a new sequence.
    fn command(&mut self, body: &[u8]) -> Result<(), String> {
        self.sequence = 0;
        self.send(body)
    }

    /// Appends the body of the next packet; returns where it begins.
    fn packet(&mut self, out: &mut Vec<u8>) -> Result<usize, String> {
        let mut head = Vec::with_capacity(4);
        self.stream.read_onto(&mut head, 4)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        self.sequence = head[3].wrapping_add(1);
        let at = out.len();
        self.stream.read_onto(out, length)?;
        Ok(at)
    }

    /// Passes over packets up to the one that ends them.
    fn skip_to_end(&mut self, rows: &mut Rows) -> Result<(), String> {
        loop {
            let at = self.packet(&mut rows.buffer)?;
            let is_end = is_end(&rows.buffer[at..]);
            rows.buffer.truncate(at);
            if is_end {
                return Ok(());
            }
        }
    }

    /// Runs a text without parameters and rows.
    fn simple(&mut self, text: &str) -> Result<(), String> {
        self.command(&[&[COM_QUERY], text.as_bytes()].concat())?;
        let mut reply = Vec::new();
        self.packet(&mut reply)?;
        fault(&reply).map_err(|error| format!("{text}: {error}"))
    }

    fn read_answer(&mut self, rows: &mut Rows) -> Result<(), String> {
        rows.clear();
        let at = self.packet(&mut rows.buffer)?;
        fault(&rows.buffer[at..])?;
        let mut body = Reader::new(&rows.buffer[at..]);
        let columns = body.number()?;
        if columns == 0 {
            rows.affected = body.number()?;
            return Ok(());
        }
        rows.buffer.truncate(at);
        let mut types = Vec::with_capacity(columns as usize);
        for _ in 0..columns {
            let at = self.packet(&mut rows.buffer)?;
            let mut body = Reader::new(&rows.buffer[at..]);
            for _ in 0..6 {
                let length = body.number()? as usize;
                body.skip(length)?;
            }
            // The length of what follows, character set, longest value.
            body.skip(1 + 2 + 4)?;
            let kind = body.take(1)?[0];
            let flags = body.take(2)?;
            types.push((kind, u16::from_le_bytes([flags[0], flags[1]]) & 0x20 != 0));
            rows.buffer.truncate(at);
        }
        self.skip_to_end(rows)?;
        loop {
            let at = self.packet(&mut rows.buffer)?;
            fault(&rows.buffer[at..])?;
            if is_end(&rows.buffer[at..]) {
                return Ok(());
            }
            read_row(&types, at, rows)?;
        }
    }
}

impl Session for MySql {
    fn prepare(&mut self, statement: &Statement) -> Result<usize, String> {
        let text = question_marks(statement.mysql.as_ref().unwrap_or(&statement.sql));
        let named = |error: String| format!("{}: {error}", statement.name);
        self.command(&[&[COM_STMT_PREPARE], text.as_bytes()].concat())?;
        let mut reply = Vec::new();
        self.packet(&mut reply)?;
        fault(&reply).map_err(named)?;
        let mut body = Reader::new(&reply);
        body.skip(1)?;
        let id = body.take(4)?;
        let id = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
        let counts = body.take(4)?;
        let columns = u16::from_le_bytes([counts[0], counts[1]]);
        let parameters = u16::from_le_bytes([counts[2], counts[3]]);
        let mut rows = std::mem::take(&mut self.rows);
        for count in [parameters, columns] {
            if count > 0 {
                self.skip_to_end(&mut rows)?;
            }
        }
        self.rows = rows;
        if usize::from(parameters) != statement.parameters.len() {
            return Err(named(format!("{parameters} parameters were counted")));
        }
        self.prepared.push(Prepared {
            name: statement.name,
            id,
            parameters: statement.parameters.clone(),
        });
        Ok(self.prepared.len() - 1)
    }

    fn call(&mut self, number: usize, arguments: &Arguments, rows: &mut Rows) -> Result<(), String> {
        let prepared = &self.prepared[number];
        let name = prepared.name;
        let body = execute(prepared, arguments);
        self.command(&body)?;
        self.read_answer(rows).map_err(|error| format!("{name}: {error}"))
    }

    fn begin(&mut self) -> Result<(), String> {
        self.simple("BEGIN")
    }

    fn commit(&mut self) -> Result<(), String> {
        self.simple("COMMIT")
    }
}

fn execute(prepared: &Prepared, arguments: &Arguments) -> Vec<u8> {
    let mut body = vec![COM_STMT_EXECUTE];
    body.extend_from_slice(&prepared.id.to_le_bytes());
    // No cursor, one execution.
    body.extend_from_slice(&[0, 1, 0, 0, 0]);
    if prepared.parameters.is_empty() {
        return body;
    }
    body.resize(body.len() + prepared.parameters.len().div_ceil(8), 0);
    body.push(1);
    for kind in &prepared.parameters {
        let code = match kind {
            Kind::Int => 3,
            Kind::Long => 8,
            Kind::Text(_) => 254,
        };
        body.extend_from_slice(&[code, 0]);
    }
    for (kind, argument) in prepared.parameters.iter().zip(&arguments.list) {
        match (kind, argument) {
            (Kind::Int, Argument::Int(value)) => body.extend_from_slice(&(*value as i32).to_le_bytes()),
            (_, Argument::Int(value)) => body.extend_from_slice(&value.to_le_bytes()),
            (_, Argument::Text { start, length }) => {
                push_length(*length, &mut body);
                body.extend_from_slice(&arguments.bytes[*start..start + length]);
            }
        }
    }
    body
}

fn push_length(length: usize, body: &mut Vec<u8>) {
    match length {
        0..=250 => body.push(length as u8),
        251..=0xFFFF => {
            body.push(0xFC);
            body.extend_from_slice(&(length as u16).to_le_bytes());
        }
        _ => {
            body.push(0xFD);
            body.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
    }
}

/// A row in the binary form; `types` has each column's type and whether it is unsigned.
fn read_row(types: &[(u8, bool)], at: usize, rows: &mut Rows) -> Result<(), String> {
    // The cells are pushed while the buffer is read.
    let buffer = std::mem::take(&mut rows.buffer);
    let mut body = Reader::new(&buffer[at..]);
    let read = (|| {
        body.skip(1)?;
        let nulls = body.take((types.len() + 9) / 8)?;
        for (column, &(kind, is_unsigned)) in types.iter().enumerate() {
            let bit = column + 2;
            if nulls[bit / 8] >> (bit % 8) & 1 == 1 {
                rows.cells.push(Cell::Null);
                continue;
            }
            let bytes = match kind {
                1 => 1,
                2 | 13 => 2,
                3 | 9 | 4 => 4,
                5 | 8 => 8,
                _ => 0,
            };
            if bytes == 0 {
                let length = body.number()? as usize;
                let start = at + body.at;
                body.skip(length)?;
                rows.push_bytes(start..start + length);
                continue;
            }
            let taken = body.take(bytes)?;
            let number = taken
                .iter()
                .rev()
                .fold(0u64, |number, &byte| number << 8 | u64::from(byte));
            rows.cells.push(match kind {
                4 => Cell::Float(f64::from(f32::from_bits(number as u32))),
                5 => Cell::Float(f64::from_bits(number)),
                _ if is_unsigned => Cell::Int(number as i64),
                // The sign is that of the type's width.
                _ => Cell::Int((number << (64 - 8 * bytes)) as i64 >> (64 - 8 * bytes)),
            });
        }
        Ok(())
    })();
    rows.buffer = buffer;
    rows.end_row();
    read
}

/// `SHA1(password) xor SHA1(salt, SHA1(SHA1(password)))`.
fn proof(password: &str, salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password.as_bytes());
    let twice = Sha1::digest(once);
    let salted = Sha1::digest([salt, twice.as_slice()].concat());
    once.iter().zip(salted.iter()).map(|(a, b)| a ^ b).collect()
}

fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&0xFE) && packet.len() < 9
}

fn fault(packet: &[u8]) -> Result<(), String> {
    if packet.first() != Some(&0xFF) {
        return Ok(());
    }
    let code = u16::from_le_bytes([packet.get(1).copied().unwrap_or(0), packet.get(2).copied().unwrap_or(0)]);
    let text = String::from_utf8_lossy(packet.get(3..).unwrap_or_default()).into_owned();
    // After the mark stands the SQLSTATE.
    let text = text
        .strip_prefix('#')
        .map_or(text.as_str(), |rest| rest.get(5..).unwrap_or(rest));
    Err(format!("{text} (error {code})"))
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], String> {
        let taken = self
            .bytes
            .get(self.at..self.at + count)
            .ok_or("a packet ends too early")?;
        self.at += count;
        Ok(taken)
    }

    fn skip(&mut self, count: usize) -> Result<(), String> {
        self.take(count).map(drop)
    }

    fn until_zero(&mut self) -> Result<&'b [u8], String> {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| byte == 0).ok_or("a text does not end")?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    fn rest(&self) -> &'b [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// A length-encoded integer.
    fn number(&mut self) -> Result<u64, String> {
        let bytes = match self.take(1)?[0] {
            0xFC => 2,
            0xFD => 3,
            0xFE => 8,
            small => return Ok(u64::from(small)),
        };
        let taken = self.take(bytes)?;
        Ok(taken
            .iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_and_as_whom() {
        let target: MySqlTarget = "mysql://lab:geheim@db:3307/x".parse().expect("a target");
        assert_eq!(
            [target.address, target.user, target.password, target.database],
            ["db:3307", "lab", "geheim", "x"]
        );
        let target: MySqlTarget = "mariadb://localhost".parse().expect("a target");
        assert_eq!([target.address, target.user], ["localhost:3306", "root"]);
        for wrong in [
            "postgres://a",
            "mysql://",
            "mysql://a,b",
            "mysql://a:port",
            "mysql://a?ssl=1",
        ] {
            assert!(wrong.parse::<MySqlTarget>().is_err(), "{wrong}");
        }
    }

    /// Source: computed by the formula of the knowledge base with Python's hashlib.
    #[test]
    fn the_proof_of_a_password() {
        let salt: Vec<u8> = (1..=20).collect();
        let hex: String = proof("geheim", &salt)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hex, "1dbf8316f278106244cf82d3e90677edc9a371e6");
        assert!(proof("", &salt).is_empty());
    }
}
