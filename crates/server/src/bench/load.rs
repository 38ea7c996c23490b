//! The load generator: one thread, any number of connections, one message under way on each.

use super::messages::{self, Case, Ids, Template};
use crate::client::{Host, MESSAGE_BYTES_MAX, MESSAGE_HEADER_BYTES, Uri};
use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// No reply for this long means that something is broken.
const STALLED: Duration = Duration::from_secs(60);

/// When a run ends; replies under way are waited for.
#[derive(Clone, Copy)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// When the ids are used up.
    Exhausted,
}

/// What a run did.
pub struct Outcome {
    /// Messages answered.
    pub messages: u64,
    /// From the first message to the last reply.
    pub elapsed: Duration,
    /// Nanoseconds from a message's first byte to its reply's last.
    pub latencies: Histogram<u64>,
    /// Where the ids stand now.
    pub ids: Ids,
}

/// Runs `case` on `connections` connections.
pub fn run(uri: &Uri, case: Case, connections: usize, ids: Ids, until: Until) -> Result<Outcome, String> {
    Generator::new(address(uri)?, case, connections, ids, until)?
        .run()
        .map_err(|e| format!("{}: {e}", case.title()))
}

/// The first TCP address the URI names.
pub fn address(uri: &Uri) -> Result<SocketAddr, String> {
    for host in &uri.hosts {
        if let Host::Tcp(name, port) = host {
            let found = (name.as_str(), *port)
                .to_socket_addrs()
                .map_err(|e| format!("{host}: {e}"))?
                .next();
            if let Some(address) = found {
                return Ok(address);
            }
        }
    }
    Err("the load generator needs a TCP address".into())
}

struct Connection {
    stream: TcpStream,
    message: Template,
    written: usize,
    reply: Vec<u8>,
    /// Bytes of `reply` that were read.
    read: usize,
    begun: Instant,
    idle: bool,
}

struct Generator {
    poll: Poll,
    connections: Vec<Connection>,
    ids: Ids,
    until: Until,
    begun: Instant,
    messages: u64,
    under_way: usize,
    latencies: Histogram<u64>,
    /// Length of a reply known to be good: only others are looked at closely.
    good_length: usize,
}

impl Generator {
    fn new(address: SocketAddr, case: Case, connections: usize, ids: Ids, until: Until) -> Result<Self, String> {
        let poll = Poll::new().map_err(|e| e.to_string())?;
        let template = Template::new(case);
        let mut open = Vec::with_capacity(connections);
        for token in 0..connections {
            let connected = std::net::TcpStream::connect(address).and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                let mut stream = TcpStream::from_std(stream);
                poll.registry()
                    .register(&mut stream, Token(token), Interest::READABLE | Interest::WRITABLE)?;
                Ok(stream)
            });
            open.push(Connection {
                stream: connected.map_err(|e| format!("{address}: {e}"))?,
                message: template.clone(),
                written: 0,
                reply: vec![0; 64 * 1024],
                read: 0,
                begun: Instant::now(),
                idle: true,
            });
        }
        let latencies = Histogram::new_with_bounds(1, 120_000_000_000, 3).map_err(|e| e.to_string())?;
        Ok(Self {
            poll,
            connections: open,
            ids,
            until,
            begun: Instant::now(),
            messages: 0,
            under_way: 0,
            latencies,
            good_length: 0,
        })
    }

    fn run(mut self) -> Result<Outcome, String> {
        self.begun = Instant::now();
        for connection in 0..self.connections.len() {
            self.begin(connection)?;
        }
        let mut events = Events::with_capacity(1024);
        while self.under_way > 0 {
            match self.poll.poll(&mut events, Some(STALLED)) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.to_string()),
            }
            if events.is_empty() {
                return Err(format!("no reply for {} s", STALLED.as_secs()));
            }
            for event in &events {
                let connection = event.token().0;
                if event.is_writable() {
                    self.write(connection)?;
                }
                if event.is_readable() {
                    self.read(connection)?;
                }
            }
        }
        Ok(Outcome {
            messages: self.messages,
            elapsed: self.begun.elapsed(),
            latencies: self.latencies,
            ids: self.ids,
        })
    }

    fn is_over(&self, now: Instant) -> bool {
        match self.until {
            Until::Elapsed(time) => now.duration_since(self.begun) >= time,
            Until::Exhausted => self.ids.exhausted(),
        }
    }

    /// Sends the next message, unless the run is over.
    fn begin(&mut self, index: usize) -> Result<(), String> {
        let now = Instant::now();
        if self.is_over(now) {
            return Ok(());
        }
        let connection = &mut self.connections[index];
        connection.message.fill(&mut self.ids);
        connection.begun = now;
        connection.written = 0;
        connection.read = 0;
        connection.idle = false;
        self.under_way += 1;
        self.write(index)
    }

    fn write(&mut self, index: usize) -> Result<(), String> {
        let connection = &mut self.connections[index];
        while !connection.idle && connection.written < connection.message.bytes().len() {
            match connection
                .stream
                .write(&connection.message.bytes()[connection.written..])
            {
                Ok(count) => connection.written += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }

    /// Reads until the reply is whole or nothing more is there.
    fn read(&mut self, index: usize) -> Result<(), String> {
        loop {
            let connection = &mut self.connections[index];
            if connection.idle {
                return Ok(());
            }
            match connection.stream.read(&mut connection.reply[connection.read..]) {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(count) => connection.read += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.to_string()),
            }
            if let Some(length) = whole_length(connection)? {
                return self.finish(index, length);
            }
        }
    }

    fn finish(&mut self, index: usize, length: usize) -> Result<(), String> {
        let connection = &mut self.connections[index];
        connection.idle = true;
        self.under_way -= 1;
        self.messages += 1;
        self.latencies
            .saturating_record(u64::try_from(connection.begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        // Replies of one case differ in length when something went wrong, and seldom otherwise.
        if length != self.good_length {
            messages::verify(&connection.reply[..length])?;
            self.good_length = length;
        }
        self.begin(index)
    }
}

/// The length of the reply once all of it was read; makes room for the rest until then.
fn whole_length(connection: &mut Connection) -> Result<Option<usize>, String> {
    if connection.read < MESSAGE_HEADER_BYTES {
        return Ok(None);
    }
    let prefix: [u8; 4] = [0, 1, 2, 3].map(|i| connection.reply[i]);
    let length = u32::from_le_bytes(prefix) as usize;
    if !(MESSAGE_HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) || connection.read > length {
        return Err(format!(
            "a reply of {} bytes that says its length is {length}",
            connection.read
        ));
    }
    if connection.reply.len() < length {
        connection.reply.resize(length, 0);
    }
    Ok((connection.read == length).then_some(length))
}
