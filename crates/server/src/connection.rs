//! One client connection: reads messages, runs them, writes the answers, in order.
//!
//! The usual operation costs one read and one write: whole messages are cut out of what one read
//! brought, and the replies to all of them leave together. While a reply is being written nothing more
//! is read, so a client that does not read its replies has at most one of them in memory, and holds
//! neither a thread nor a lock.

use crate::buffers;
use crate::niceness::{self, Habit};
use crate::serve::Server;
use crate::stream::{self, Refusal, Stream};
use crate::tls::Identity;
use crate::watcher;
use nestor_command::connection::Protection;
use nestor_command::privileges::is_anonymous;
use nestor_command::service::Length;
use nestor_command::{Connection, Outcome, Park, Request, Sequence, Wake};
use nestor_database::statement::Wait;
use nestor_database::traffic::pace;
use nestor_database::transport::TlsVersion;
use nestor_database::turns::{self, Turns};
use nestor_model::interrupt::{Hooks, with_patience};
use nestor_model::memory::Held;
use nestor_model::{Error, ErrorCode, RawDoc, RawDocBuf, RawWriter, doc};
use nestor_storage::{Guarantee, Lsn};
use nestor_wire::msg::{self, REPLY_PREFIX_BYTES};
use nestor_wire::{Compressor, Content, Header, OpCode, WireError, check_begun, message_length, query};
use rustls::ProtocolVersion;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Replies to pipelined messages are sent once they are this large together.
const FLUSH_BYTES: usize = 256 * 1024;
/// A message that is not here yet gets memory for this much at a time, whatever length it claims.
const GROWTH_BYTES: usize = 1024 * 1024;

/// Largest message that is taken from a client who has to log in and has not. What logs in, and what drivers send before, is far smaller.
const BYTES_BEFORE_LOGIN_MAX: usize = 64 * 1024;
/// Buffers that wait for a client count as its memory from this size on.
const COUNTED_BYTES_MIN: usize = 64 * 1024;
/// How often a connection with such a buffer looks whether it has to end.
const SHED_LOOK: Duration = Duration::from_millis(10);

/// Commands of this size are long whatever they do.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;

/// What a thread does for others while it runs a command that turns out to be long: it leaves its other connections to another thread, takes turns with other
/// long ones and looks after its client.
const HOOKS: Hooks = Hooks {
    make_way,
    before_wait,
    client_has_gone: stream::watched_has_closed,
};

/// How long a command waits at most until somebody has taken what it hands on.
const HAND_OVER_MAX: Duration = Duration::from_millis(20);

thread_local! {
    /// The command that runs on this thread has handed on what else the thread serves.
    static HAS_HANDED_ON: Cell<bool> = const { Cell::new(false) };
}

/// Hands what else this thread serves to another thread. The runtime would take it back if the section ended before somebody took it; so
/// this waits for a second job, which is begun after the first: the one that takes it.
fn hand_on() {
    if HAS_HANDED_ON.replace(true) {
        return;
    }
    tokio::task::block_in_place(|| {
        let (taken, wait) = std::sync::mpsc::channel();
        drop(tokio::task::spawn_blocking(move || {
            // Nobody may be waiting any more.
            let _ = taken.send(());
        }));
        // If it takes too long the watcher still sees this thread.
        if wait.recv_timeout(HAND_OVER_MAX).is_ok() {
            watcher::has_left_worker();
        }
    });
}

/// Waits until what the command took of the processor is paid for, if a limit asks for that, and then for its turn, if long operations
/// have to take turns.
fn make_way(stops: &dyn Fn() -> bool) {
    if pace::is_behind() {
        hand_on();
        Turns::of_thread().give_up();
        tokio::task::block_in_place(|| pace::pause(stops));
    }
    let turns = Turns::of_thread();
    if turns.try_take() {
        hand_on();
    } else {
        watcher::has_left_worker();
        tokio::task::block_in_place(|| turns.take(stops));
    }
    if turns::gives_way() {
        niceness::come_behind();
    }
}

fn before_wait() {
    hand_on();
    Turns::of_thread().give_up();
}

/// A command that runs on this thread; its turn ends with it, also when it panics, and so does that it comes behind others.
pub(crate) struct Running<'h>(&'h mut Habit);

impl<'h> Running<'h> {
    /// A command of a connection with this habit begins.
    pub(crate) fn begin(habit: &'h mut Habit) -> Self {
        HAS_HANDED_ON.set(false);
        Self(habit)
    }

    /// Does its work; what is long makes way for others.
    pub(crate) fn work<R>(&self, work: impl FnOnce() -> R) -> R {
        with_patience(self.0.patience(), HOOKS, work)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        Turns::of_thread().give_up();
        self.0.note(niceness::come_back());
    }
}

/// Waits until a commit has reached a guarantee; `None` when that takes too long.
///
/// Errors: whether it will survive is unknown.
pub(crate) async fn reached(
    server: &Server,
    lsn: Lsn,
    guarantee: &Guarantee,
    at_most: Option<Duration>,
) -> Option<Result<(), Error>> {
    let service = &server.service;
    if service.engine.has_reached(lsn, guarantee) {
        return Some(Ok(()));
    }
    // Two changes of threads cost more than a fast disk. Where others have something to do, or may wait for the same sync, a thread
    // of its own syncs.
    let alone = at_most.is_none() && service.node.counters.connections.has_one_at_work();
    let reached = alone.then(|| service.engine.try_reach(lsn, guarantee)).flatten();
    if let Some(Ok(())) = reached {
        return Some(Ok(()));
    }
    let (done, durable) = oneshot::channel();
    service.engine.on_reached(lsn, guarantee.clone(), move |result| {
        // The connection may be gone by now.
        let _ = done.send(result);
    });
    let result = match at_most {
        None => durable.await.ok(),
        Some(timeout) => tokio::time::timeout(timeout, durable).await.ok().and_then(Result::ok),
    };
    result.map(|result| result.map_err(Error::from))
}

/// Why a connection ended.
enum End {
    /// The client closed it, or it broke.
    Closed,
    /// The server is stopping, or the command asked for it.
    Asked,
    /// The client did not come as it has to.
    Refused(String),
    /// The client sent bytes that are no message.
    Malformed(WireError),
    /// The server holds too much memory, and a buffer of so many bytes for this client is the largest part of it.
    Shed(usize),
}

/// Serves one connection to its end.
pub async fn serve(server: Arc<Server>, mut stream: Stream, mut conn: Connection) {
    let end = match begin(&server, &mut stream, &mut conn).await {
        Ok(()) => converse(&server, &mut stream, &mut conn).await,
        Err(end) => end,
    };
    let ctx = format!("conn{}", conn.id);
    let attr = || doc! { "remote": conn.peer.clone(), "connectionId": conn.id };
    let error = match &end {
        End::Malformed(error) => Some(error.to_string()),
        End::Refused(why) => Some(why.clone()),
        _ => None,
    };
    if let Some(error) = error {
        if let End::Malformed(WireError::Http) = end {
            // Nobody reading it is no reason to complain.
            let _ = stream.write_whole(nestor_wire::HTTP_ANSWER).await;
        }
        let mut attr = attr();
        attr.push("error", error);
        server.service.node.log().info(
            "NETWORK",
            22988,
            &ctx,
            "Error receiving request from client. Ending connection from remote",
            attr,
        );
    }
    if let End::Shed(bytes) = end {
        let mut attr = attr();
        attr.push("bytes", bytes as i64);
        server.service.node.log().warn(
            "NETWORK",
            20_007,
            &ctx,
            "Ending connection: all operations and connections hold too much memory, and this client neither sends nor reads",
            attr,
        );
    }
    server.closed();
    if !server.is_quiet() {
        let mut attr = attr();
        attr.push("connectionCount", server.open_connections() as i32);
        server
            .service
            .node
            .log()
            .info("NETWORK", 22944, &ctx, "Connection ended", attr);
    }
}

/// Encrypts the connection, if the server and the client do so.
async fn begin(server: &Server, stream: &mut Stream, conn: &mut Connection) -> Result<(), End> {
    let Some(tls) = &server.tls else { return Ok(()) };
    let encrypted = tokio::select! {
        biased;
        encrypted = stream.encrypt(tls) => encrypted,
        () = server.lose_patience() => return Err(End::Asked),
    };
    encrypted.map_err(|refusal| match refusal {
        Refusal::Closed => End::Closed,
        Refusal::Plain => End::Refused("this server requires TLS, and the client does not speak it".to_owned()),
        Refusal::Handshake(error) => End::Refused(format!("TLS handshake: {error}")),
    })?;
    if let Some(connection) = stream.encryption() {
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => TlsVersion::V1_2,
            Some(ProtocolVersion::TLSv1_3) => TlsVersion::V1_3,
            _ => TlsVersion::Unknown,
        };
        server.service.node.transport.connections(version).add(1);
        // rustls shows certificates once they are verified.
        let own = connection.peer_certificates().and_then(<[_]>::first);
        let identity = own.map(Identity::of).transpose().map_err(End::Refused)?;
        conn.protection = Protection {
            is_encrypted: true,
            certificate: identity.map(|identity| identity.subject.into()),
        };
    }
    Ok(())
}

async fn converse(server: &Server, stream: &mut Stream, conn: &mut Connection) -> End {
    let mut talk = Talk {
        server,
        conn,
        next_request_id: 1,
        habit: Habit::default(),
    };
    loop {
        let Ok(mut input) = stream.read_fresh().await else {
            return End::Closed;
        };
        if input.is_empty() || server.is_draining() {
            return if input.is_empty() { End::Closed } else { End::Asked };
        }
        let busy = server.begin_work();
        let end = talk.consume(stream, &mut input).await;
        drop(busy);
        buffers::give_back(input);
        if let Err(end) = end {
            return end;
        }
    }
}

/// The state of a conversation that outlives a message.
struct Talk<'a> {
    server: &'a Server,
    conn: &'a mut Connection,
    next_request_id: i32,
    habit: Habit,
}

/// What answering needs to know of the message.
#[derive(Clone, Copy)]
struct Envelope {
    response_to: i32,
    compressor: Option<Compressor>,
    /// Came as OP_QUERY and is answered with OP_REPLY.
    legacy: bool,
    /// No answer is wanted.
    silent: bool,
}

impl Talk<'_> {
    /// Answers every message in `input`, reading on when it ends within one.
    async fn consume(&mut self, stream: &mut Stream, input: &mut Vec<u8>) -> Result<(), End> {
        let mut at = 0;
        let mut out = Vec::new();
        loop {
            let rest = input.get(at..).unwrap_or_default();
            let length = message_length(rest).map_err(End::Malformed)?;
            if length.is_some_and(|length| length > BYTES_BEFORE_LOGIN_MAX) {
                self.check_anonymous()?;
            }
            let whole = length.and_then(|length| Some((length, rest.get(..length)?)));
            if let Some((length, message)) = whole {
                self.server.count_request(length);
                self.answer(stream, message, &mut out).await?;
                at += length;
                if out.len() < FLUSH_BYTES {
                    continue;
                }
            }
            self.flush(stream, &mut out).await?;
            if whole.is_some() {
                continue;
            }
            if at == input.len() {
                return Ok(());
            }
            // A message has begun and not ended.
            check_begun(input.get(at..).unwrap_or_default()).map_err(End::Malformed)?;
            input.drain(..at);
            at = 0;
            let missing = length.unwrap_or(nestor_wire::HEADER_BYTES).saturating_sub(input.len());
            input.reserve(missing.min(GROWTH_BYTES.max(input.len())));
            let read = {
                // Stopping does not wait for commands that are not here yet.
                let _idle = self.server.pause_work();
                self.holding(input.capacity(), stream.read_more(input)).await?
            };
            if self.server.is_draining() {
                return Err(End::Asked);
            }
            match read {
                Ok(read) if read > 0 => {}
                _ => return Err(End::Closed),
            }
        }
    }

    /// Ends the connection, on which a large message comes, unless somebody has logged in or nobody has to.
    fn check_anonymous(&self) -> Result<(), End> {
        match is_anonymous(&self.server.service, self.conn) {
            true => Err(End::Malformed(WireError::Fatal("message too large before logging in"))),
            false => Ok(()),
        }
    }

    /// Sends `out`, and leaves it empty.
    async fn flush(&mut self, stream: &mut Stream, out: &mut Vec<u8>) -> Result<(), End> {
        if !out.is_empty() {
            let bytes = std::mem::take(out);
            let sent = tokio::select! {
                biased;
                sent = self.holding(bytes.capacity(), stream.write_whole(&bytes)) => match sent {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(_)) => Err(End::Closed),
                    Err(end) => Err(end),
                },
                () = self.server.lose_patience() => Err(End::Asked),
            };
            self.server.count_reply(bytes.len());
            buffers::give_back(bytes);
            sent?;
        }
        Ok(())
    }

    /// Waits for the client while a buffer of so many bytes is kept for it. The buffer counts as the connection's memory; when all of them
    /// and all operations together hold too much, and this connection most, it ends.
    async fn holding<R>(&self, bytes: usize, wait: impl Future<Output = R>) -> Result<R, End> {
        if bytes < COUNTED_BYTES_MIN {
            return Ok(wait.await);
        }
        let slot = &self.conn.slot;
        let mut held = Held::by(slot.account.clone());
        held.set(bytes);
        let shed = async {
            while slot.kill.killed() != Some(ErrorCode::ExceededMemoryLimit) {
                tokio::time::sleep(SHED_LOOK).await;
            }
        };
        tokio::select! {
            biased;
            done = wait => Ok(done),
            () = shed => Err(End::Shed(bytes)),
        }
    }

    /// Runs one message and appends its answer to `out`, or several of them for an exhaust stream.
    async fn answer(&mut self, stream: &mut Stream, message: &[u8], out: &mut Vec<u8>) -> Result<(), End> {
        if message.len() > BYTES_BEFORE_LOGIN_MAX || nestor_wire::inflated_length(message) > BYTES_BEFORE_LOGIN_MAX {
            self.check_anonymous()?;
        }
        let mut scratch = Vec::new();
        let parsed = match nestor_wire::parse(message, &mut scratch) {
            Ok(parsed) => parsed,
            Err(WireError::Answer(error)) => return self.answer_error(message, &error, out),
            Err(error) => return Err(End::Malformed(error)),
        };
        let mut envelope = Envelope {
            response_to: parsed.header.request_id,
            compressor: parsed.compressor,
            legacy: false,
            silent: false,
        };
        let (body, sequences, mut exhaust_allowed) = match parsed.content {
            Content::Msg(msg) => {
                envelope.silent = msg.is_unacknowledged();
                let exhaust = msg.exhaust_allowed();
                (msg.body, msg.sequences, exhaust)
            }
            Content::Query(query) => {
                envelope.legacy = true;
                (query.command, Vec::new(), false)
            }
        };
        exhaust_allowed &= !envelope.silent;
        let sequences: Vec<Sequence<'_>> = sequences
            .into_iter()
            .map(|sequence| Sequence {
                name: sequence.name,
                documents: sequence.docs,
            })
            .collect();
        let mut next = self
            .run_to_end(stream, body, &sequences, envelope, exhaust_allowed, out)
            .await?;
        while let Some(body) = next {
            if let Err(end) = self.flush(stream, out).await {
                self.server.service.abandon(body.as_raw());
                return Err(end);
            }
            // Each reply of the stream answers the one before it.
            envelope.response_to = self.next_request_id.wrapping_sub(1);
            next = self.run_to_end(stream, body.as_raw(), &[], envelope, true, out).await?;
        }
        Ok(())
    }

    /// Runs one command until it has an answer, and appends that to `out`. Returns the request that goes
    /// on with an exhaust stream.
    async fn run_to_end(
        &mut self,
        stream: &mut Stream,
        body: RawDoc<'_>,
        sequences: &[Sequence<'_>],
        envelope: Envelope,
        exhaust_allowed: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<RawDocBuf>, End> {
        let mut commits = None;
        let mut outcome = loop {
            let outcome = self.run(stream, body, sequences, envelope, exhaust_allowed, out);
            let Some(park) = outcome.park else { break outcome };
            buffers::give_back(outcome.reply);
            if matches!(park.wake, Wake::Commit) && commits.is_none() {
                // Look once more after listening began: a commit may have slipped in before.
                commits = Some(self.server.listen_to_commits());
                continue;
            }
            self.flush(stream, out).await?;
            let waited = self.wait_parked(stream, park, commits.as_mut()).await;
            if waited.is_err() {
                self.server.service.abandon(body);
            }
            waited?;
        };
        if let Some(wait) = outcome.wait.take() {
            self.wait_durable(wait, &mut outcome).await;
        }
        let flags = if outcome.exhaust.is_some() {
            msg::MORE_TO_COME
        } else {
            0
        };
        let close = outcome.close;
        let next = outcome.exhaust.take();
        // A reply of nothing is what a fail point or a shutdown leaves: the connection just closes.
        if envelope.silent || outcome.reply.len() <= outcome.reply_at {
            buffers::give_back(outcome.reply);
        } else {
            self.append_reply(outcome.reply, envelope, flags, out);
        }
        if close || self.server.is_draining() {
            self.flush(stream, out).await?;
            return Err(End::Asked);
        }
        Ok(next)
    }

    /// Runs a command once. The reply starts after [`REPLY_PREFIX_BYTES`] bytes of room.
    fn run(
        &mut self,
        stream: &mut Stream,
        body: RawDoc<'_>,
        sequences: &[Sequence<'_>],
        envelope: Envelope,
        exhaust_allowed: bool,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let mut buffer = if out.is_empty() && out.capacity() > 0 {
            std::mem::take(out)
        } else {
            buffers::take()
        };
        buffer.extend_from_slice(&[0; REPLY_PREFIX_BYTES]);
        let request = Request {
            body,
            sequences,
            legacy: envelope.legacy,
            exhaust_allowed,
            buffer,
        };
        let service = &self.server.service;
        let (conn, habit) = (&mut *self.conn, &mut self.habit);
        let run = AssertUnwindSafe(|| {
            let name = body.iter().next().map_or("", |(name, _)| name);
            let sequences_bytes: usize = sequences.iter().flat_map(|s| &s.documents).map(|doc| doc.len()).sum();
            let running = Running::begin(habit);
            let length = service.length_of(name);
            if length == Length::Short {
                service.run(conn, request)
            } else if length == Length::UsuallyShort && body.len() + sequences_bytes < LARGE_BYTES {
                stream.watched(|| running.work(|| service.run(conn, request)))
            } else {
                let run = || {
                    watcher::has_left_worker();
                    running.work(|| service.run(conn, request))
                };
                stream.watched(|| tokio::task::block_in_place(run))
            }
        });
        catch_unwind(run).unwrap_or_else(|panic| self.panicked(body, panic.as_ref()))
    }

    /// The answer to a command that panicked, which is a bug.
    fn panicked(&mut self, body: RawDoc<'_>, panic: &(dyn std::any::Any + Send)) -> Outcome {
        let what = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("unknown");
        let command = body.iter().next().map_or("", |(name, _)| name);
        self.server.service.node.log().error(
            "COMMAND",
            9_000_001,
            &format!("conn{}", self.conn.id),
            "A command panicked",
            doc! { "command": command, "panic": what },
        );
        self.conn.give_up();
        let error = Error::new(ErrorCode::InternalError, format!("internal error in command {command}"));
        Outcome {
            reply: error_reply(&error),
            reply_at: REPLY_PREFIX_BYTES,
            ..Outcome::default()
        }
    }

    /// Waits until it is time to run a parked command again.
    async fn wait_parked(
        &self,
        stream: &mut Stream,
        park: Park,
        commits: Option<&mut watch::Receiver<()>>,
    ) -> Result<(), End> {
        let until = tokio::time::sleep_until(park.until.into());
        let news = async {
            let news = match (park.wake, commits) {
                (Wake::Log(signal), _) => {
                    signal.news().await;
                    Some(())
                }
                (Wake::Topology(seen), _) => {
                    let (tell, changed) = oneshot::channel();
                    // The client may have gone.
                    self.server.service.engine.on_topology(seen, move || {
                        let _ = tell.send(());
                    });
                    changed.await.ok()
                }
                (Wake::Commit, Some(commits)) => commits.changed().await.ok(),
                _ => None,
            };
            if news.is_none() {
                std::future::pending().await
            }
        };
        // A stopping server does not wait for connections that wait.
        let _idle = self.server.pause_work();
        tokio::select! {
            () = until => Ok(()),
            () = news => Ok(()),
            () = stream.closed() => Err(End::Closed),
        }
    }

    /// Waits until the write behind a reply has reached what was asked for, or says in the reply that it has not.
    async fn wait_durable(&self, wait: Wait, outcome: &mut Outcome) {
        let result = reached(self.server, wait.lsn, &wait.guarantee, wait.timeout).await;
        if !matches!(result, Some(Ok(()))) {
            let failure = result.and_then(Result::err);
            let reply = std::mem::take(&mut outcome.reply);
            outcome.reply = self.server.service.not_durable(reply, outcome.reply_at, &wait, failure);
        }
    }

    /// Completes the reply that stands in `reply` after room for its prefix, and moves it to `out`.
    fn append_reply(&mut self, mut reply: Vec<u8>, envelope: Envelope, flags: u32, out: &mut Vec<u8>) {
        let request_id = self.next_request_id;
        self.next_request_id = request_id.wrapping_add(1);
        let body = reply.get(REPLY_PREFIX_BYTES..).unwrap_or_default();
        let Envelope {
            response_to,
            compressor,
            legacy,
            ..
        } = envelope;
        if legacy {
            query::write_reply(out, request_id, response_to, body, compressor);
        } else if compressor.is_some() {
            msg::write_reply(out, request_id, response_to, flags, body, compressor);
        } else {
            let prefix = msg::reply_prefix(request_id, response_to, flags, body.len());
            if let Some(room) = reply.get_mut(..REPLY_PREFIX_BYTES) {
                room.copy_from_slice(&prefix);
            }
            if out.is_empty() {
                *out = reply;
                return;
            }
            out.extend_from_slice(&reply);
        }
        buffers::give_back(reply);
    }

    /// Answers a message whose frame is sound and whose content is not.
    fn answer_error(&mut self, message: &[u8], error: &Error, out: &mut Vec<u8>) -> Result<(), End> {
        let header = Header::parse(message).map_err(End::Malformed)?;
        let flags = message.get(nestor_wire::HEADER_BYTES).copied().unwrap_or(0);
        let envelope = Envelope {
            response_to: header.request_id,
            compressor: None,
            legacy: header.op_code == OpCode::Query,
            silent: header.op_code == OpCode::Msg && u32::from(flags) & msg::MORE_TO_COME != 0,
        };
        if !envelope.silent {
            self.append_reply(error_reply(error), envelope, 0, out);
        }
        Ok(())
    }
}

/// An error as a reply document, after room for the prefix.
fn error_reply(error: &Error) -> Vec<u8> {
    let mut buffer = buffers::take();
    buffer.extend_from_slice(&[0; REPLY_PREFIX_BYTES]);
    let mut writer = RawWriter::onto(buffer);
    nestor_command::reply::write_error(&mut writer, error);
    writer.finish()
}
