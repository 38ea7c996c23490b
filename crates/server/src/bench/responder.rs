//! The baseline: a thread that reads messages and answers each with the same bytes, as cheaply as a server can.

use super::load;
use super::messages::{Case, Ids, Template};
use super::{Bench, cpu};
use crate::client::Uri;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// CPU time per message of a responder that answers `case` with the bytes the server at `uri` answers.
pub fn baseline(uri: &Uri, case: Case, connections: usize, time: Duration, documents: u64) -> Result<Duration, String> {
    let reply = sample(uri, case, documents)?;
    let mut responder = Responder::new(reply).map_err(|e| e.to_string())?;
    let at: Uri = format!("mongodb://127.0.0.1:{}", responder.port)
        .parse()
        .map_err(|e| format!("{e}"))?;
    let over = Arc::new(AtomicBool::new(false));
    let flag = over.clone();
    let thread = std::thread::spawn(move || responder.run(&flag));
    let ids = Ids::new(case, documents);
    let outcome = load::run(&at, case, connections, ids, load::Until::Elapsed(time));
    over.store(true, Relaxed);
    let spent = thread
        .join()
        .map_err(|_| "the responder panicked")?
        .map_err(|e| format!("responder: {e}"))?;
    let messages = outcome?.messages.max(1);
    Ok(spent / u32::try_from(messages).unwrap_or(u32::MAX))
}

/// What the server answers. The documents of an insert stand beyond those of every case, and go again.
fn sample(uri: &Uri, case: Case, documents: u64) -> Result<Vec<u8>, String> {
    let mut bench = Bench::connect(uri)?;
    let mut template = Template::new(case);
    let is_insert = matches!(case, Case::Insert | Case::InsertMany);
    template.fill(&mut Ids::new(case, if is_insert { FAR_AWAY } else { documents }));
    let reply = bench.ask(&template)?;
    if is_insert {
        bench.delete_from(FAR_AWAY)?;
    }
    Ok(reply)
}

const FAR_AWAY: u64 = 1 << 60;

struct Peer {
    stream: TcpStream,
    input: Vec<u8>,
    filled: usize,
    /// Bytes of replies not written yet.
    output: Vec<u8>,
}

struct Responder {
    poll: Poll,
    listener: TcpListener,
    port: u16,
    peers: Vec<Peer>,
    reply: Vec<u8>,
}

const LISTENER: Token = Token(usize::MAX);

impl Responder {
    fn new(reply: Vec<u8>) -> std::io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into())?;
        let port = listener.local_addr()?.port();
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            poll,
            listener,
            port,
            peers: Vec::new(),
            reply,
        })
    }

    /// Answers until told to stop; returns the CPU time that took.
    fn run(&mut self, over: &AtomicBool) -> std::io::Result<Duration> {
        let before = cpu::thread_time();
        let mut events = Events::with_capacity(256);
        while !over.load(Relaxed) {
            match self.poll.poll(&mut events, Some(Duration::from_millis(50))) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.accept()?;
                } else if let Some(peer) = self.peers.get_mut(event.token().0) {
                    peer.serve(&self.reply)?;
                }
            }
        }
        Ok(cpu::thread_time().saturating_sub(before))
    }

    fn accept(&mut self) -> std::io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((mut stream, _)) => {
                    stream.set_nodelay(true)?;
                    let token = Token(self.peers.len());
                    self.poll
                        .registry()
                        .register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
                    self.peers.push(Peer {
                        stream,
                        input: vec![0; 64 * 1024],
                        filled: 0,
                        output: Vec::new(),
                    });
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }
}

impl Peer {
    /// Reads what is there, answers every whole message.
    fn serve(&mut self, reply: &[u8]) -> std::io::Result<()> {
        self.flush()?;
        loop {
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Ok(()),
                Ok(count) => self.filled += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                // A client that is done closes its end.
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(()),
                Err(e) => return Err(e),
            }
            while self.filled >= 16 {
                let length = u32::from_le_bytes([0, 1, 2, 3].map(|i| self.input[i])) as usize;
                if self.input.len() < length {
                    self.input.resize(length, 0);
                }
                if self.filled < length {
                    break;
                }
                let start = self.output.len();
                self.output.extend_from_slice(reply);
                self.output[start + 8..start + 12].copy_from_slice(&self.input[4..8]);
                self.input.copy_within(length..self.filled, 0);
                self.filled -= length;
            }
            self.flush()?;
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::command_message;
    use nestor_model::doc;

    fn against_a_responder(
        reply: nestor_model::Document,
        case: Case,
        until: load::Until,
    ) -> Result<load::Outcome, String> {
        let reply = command_message(reply.to_raw().as_raw(), None);
        let mut responder = Responder::new(reply).unwrap();
        let uri: Uri = format!("mongodb://127.0.0.1:{}", responder.port).parse().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        let thread = std::thread::spawn(move || responder.run(&flag));
        let outcome = load::run(&uri, case, 3, Ids::insert_from(0).until(10_000), until);
        over.store(true, Relaxed);
        thread.join().unwrap().unwrap();
        outcome
    }

    #[test]
    fn the_generator_runs_for_its_time() {
        // Long enough for each connection to begin, however busy the machine is.
        let until = load::Until::Elapsed(Duration::from_millis(300));
        for case in Case::ALL {
            let outcome = against_a_responder(doc! { "ok": 1.0 }, case, until).unwrap();
            assert!(outcome.messages >= 3, "each connection sent something");
            assert_eq!(outcome.latencies.len(), outcome.messages);
        }
    }

    #[test]
    fn loading_hands_out_every_id_once() {
        let outcome = against_a_responder(doc! { "ok": 1.0 }, Case::InsertMany, load::Until::Exhausted).unwrap();
        assert_eq!((outcome.messages, outcome.ids.next_insert()), (10, 10_000));
    }

    #[test]
    fn a_refusal_ends_the_run() {
        let until = load::Until::Elapsed(Duration::from_secs(5));
        let refused = against_a_responder(
            doc! { "ok": 0.0, "code": 59, "errmsg": "no such command" },
            Case::Ping,
            until,
        );
        assert!(refused.is_err_and(|e| e.contains("no such command")));
    }
}
