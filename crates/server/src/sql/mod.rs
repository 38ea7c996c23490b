//! Connections that speak PostgreSQL's wire protocol (`--sql-port`).

mod input;
mod login;

use crate::connection::{LARGE_BYTES, Running, reached};
use crate::niceness::Habit;
use crate::serve::Server;
use crate::stream::{Socket, Stream, write_watched};
use crate::tls::TlsMode;
use crate::watcher;
use input::Input;
use nestor_command::Connection;
use nestor_model::random::Random;
use nestor_model::{Error, ErrorCode, Result as Outcome, doc};
use nestor_sql::error::error;
use nestor_sql::protocol::backend;
use nestor_sql::protocol::frontend::{self, MESSAGE_BYTES_MAX, STARTUP_BYTES_MAX, Startup};
use nestor_sql::session::{Commits, Flush, Next, Session};
use nestor_sql::settings;
use nestor_storage::Guarantee;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

/// Pause after the system had no file for a connection.
const BACKOFF: Duration = Duration::from_millis(100);
/// How long a client may take to say what it wants, and who it is.
const STARTUP_MAX: Duration = Duration::from_secs(60);
/// How long a client may take to read a part of an answer.
const STALLED_MAX: Duration = Duration::from_secs(60);
/// Answers to messages that came together leave together, unless they are longer than this.
const FLUSH_BYTES: usize = 64 << 10;

/// What all of these connections share: by number what a client has to know who cancels a statement.
#[derive(Default)]
struct Secrets(Mutex<HashMap<i64, i32>>);

impl Secrets {
    fn lock(&self) -> MutexGuard<'_, HashMap<i64, i32>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Forgets a connection's secret when it ends.
struct Known<'s>(&'s Secrets, i64);

impl Drop for Known<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// Accepts connections for ever.
pub async fn accept_all(server: Arc<Server>, listener: TcpListener) {
    let secrets = Arc::<Secrets>::default();
    // Nobody outside can guess it from what the process tells of itself.
    let random = Arc::new(Random::new(server.service.random()));
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(BACKOFF).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        if server.admit().is_none() {
            continue;
        }
        let (served, secrets, random) = (server.clone(), secrets.clone(), random.clone());
        let talk = async move {
            let mut conn = Connection::new(&served.service, &peer.to_string());
            if let Ok(local) = stream.local_addr() {
                conn.host = local.to_string().into();
            }
            // What a client does wrong it is told; what is left is that it went away.
            let _ = converse(&served, stream, &conn, &secrets, &random).await;
            served.closed();
        };
        tokio::spawn(server.watcher.watched(talk));
    }
}

/// Ends the conversation: the client is gone, or has been told why.
struct Ended;

impl From<std::io::Error> for Ended {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// Tells the client why the conversation ends.
async fn fatal(stream: &mut Stream, error: &Error) -> Ended {
    let mut out = Vec::new();
    backend::error(&mut out, "FATAL", error);
    // A client that has gone is told nothing.
    let _ = tokio::time::timeout(STALLED_MAX, stream.write_whole(&out)).await;
    Ended
}

/// A session whose transaction ends with its connection.
struct Conversation<'s> {
    session: Session,
    server: &'s Server,
}

impl Drop for Conversation<'_> {
    fn drop(&mut self) {
        self.session.end(&self.server.service);
    }
}

async fn converse(
    server: &Server,
    socket: TcpStream,
    conn: &Connection,
    secrets: &Secrets,
    random: &Random,
) -> Result<(), Ended> {
    let mut stream = Stream::new(Socket::Tcp(socket));
    let mut input = Input::default();
    let begun = tokio::time::timeout(STARTUP_MAX, start(server, conn, &mut stream, &mut input, secrets)).await;
    let Some((session, told)) = begun.map_err(|_| Ended)?? else {
        return Ok(());
    };
    let mut session = Conversation { session, server };
    let commits = session.session.hold_answers();
    let mut habit = Habit::default();
    let ending = &conn.slot.ending;
    ending.listen();
    let secret = random.next() as i32;
    secrets.lock().insert(conn.id, secret);
    let _known = Known(secrets, conn.id);
    let mut out = Vec::new();
    backend::authenticated(&mut out);
    session.session.report(&mut out);
    out.extend(told);
    backend::key(&mut out, session.session.facts.pid, secret);
    backend::ready(&mut out, b'I');
    write(server, &mut stream, &mut out).await?;
    loop {
        tokio::select! {
            biased;
            () = std::future::poll_fn(|cx| ending.poll_asked(cx)) => return Err(fatal(&mut stream, &terminated()).await),
            come = input.come(&mut stream, MESSAGE_BYTES_MAX) => come?,
            () = heard(&session.session) => {
                session.session.tell_heard(&mut out);
                answer(server, &mut stream, &commits, &mut out).await?;
                continue;
            }
            rested = rest_out(&session.session) => return Err(fatal(&mut stream, &rested).await),
            () = server.lose_patience() => return Err(Ended),
        };
        if server.is_draining() {
            let stopping = error("57P01", "terminating connection because the server is stopping");
            return Err(fatal(&mut stream, &stopping).await);
        }
        let busy = server.begin_work();
        let (next, tag) = take(
            server,
            &mut stream,
            &mut session.session,
            (&mut input, &commits, &mut habit),
            &mut out,
        )?;
        // What it was doing has been stopped for that: the client is told this alone.
        if ending.is_asked() {
            return Err(fatal(&mut stream, &terminated()).await);
        }
        if is_flushed_behind(tag) || out.len() >= FLUSH_BYTES || next == Next::Close {
            answer(server, &mut stream, &commits, &mut out).await?;
        }
        drop(busy);
        if next == Next::Close {
            return Ok(());
        }
    }
}

/// Why a conversation ends that another one has ended.
fn terminated() -> Error {
    error("57P01", "terminating connection due to administrator command")
}

/// Waits until a session that listens is told something; for ever if it does not, or is in a transaction.
async fn heard(session: &Session) {
    match session.hears() {
        Some(mailbox) => std::future::poll_fn(|cx| mailbox.poll_waiting(cx)).await,
        None => std::future::pending().await,
    }
}

/// Waits until a session has rested as long as it may: why it ends then.
async fn rest_out(session: &Session) -> Error {
    match session.may_rest() {
        Some((most, error)) => {
            tokio::time::sleep(most).await;
            error
        }
        None => std::future::pending().await,
    }
}

/// As PostgreSQL does: what is answered leaves with ReadyForQuery or when the client asks for it.
fn is_flushed_behind(tag: u8) -> bool {
    matches!(tag, b'S' | b'Q' | b'H' | b'c' | b'f')
}

/// Begins a conversation: encryption, parameters, who it is, and what the client is told beside that. `None` when there is none to come.
async fn start(
    server: &Server,
    conn: &Connection,
    stream: &mut Stream,
    input: &mut Input,
    secrets: &Secrets,
) -> Result<Option<(Session, Vec<u8>)>, Ended> {
    let Some(parameters) = begin(server, stream, input, secrets).await? else {
        return Ok(None);
    };
    let is_encrypted = stream.encryption().is_some();
    if !is_encrypted && server.tls.as_ref().is_some_and(|tls| tls.mode() == TlsMode::Require) {
        let refused = error("28000", "this server requires TLS, and the client does not speak it");
        return Err(fatal(stream, &refused).await);
    }
    let mut session = match session(conn, &parameters) {
        Ok(session) => session,
        Err(error) => return Err(fatal(stream, &error).await),
    };
    if server.service.options.authorization {
        let (user, db) = (session.facts.user.clone(), session.facts.database.clone());
        let login = login::log_in(server, conn, stream, input, (&user, &db)).await?;
        session.log_in(login);
    }
    let mut told = Vec::new();
    let begun = given(&parameters).and_then(|given| session.begin_with(&server.service, &given, &mut told));
    match begun {
        Ok(()) => Ok(Some((session, told))),
        Err(error) => Err(fatal(stream, &error).await),
    }
}

/// The session that a client's parameters ask for.
fn session(conn: &Connection, parameters: &[(String, String)]) -> Outcome<Session> {
    let value = |name: &str| {
        let found = parameters.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    };
    let user = value("user").unwrap_or_default();
    if user.is_empty() {
        return Err(error("28000", "no PostgreSQL user name specified in startup packet"));
    }
    let database = value("database").unwrap_or(user);
    nestor_database::names::check_database(database).map_err(|e| error("3D000", e.message().to_owned()))?;
    let is_replication = value("replication").is_some_and(|value| value != "false");
    if is_replication {
        return Err(error("0A000", "replication connections are not supported"));
    }
    let mut session = Session::new(conn.slot.clone(), user, database);
    session.set_ends(&conn.host, &conn.peer);
    Ok(session)
}

/// The settings that a client's parameters give: those of `options` first.
fn given(parameters: &[(String, String)]) -> Outcome<Vec<(String, String)>> {
    let options = parameters.iter().find(|(name, _)| name == "options");
    let mut given = settings::of_options(options.map_or("", |(_, options)| options))?;
    let others = parameters
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "user" | "database" | "options" | "replication"));
    given.extend(others.cloned());
    Ok(given)
}

/// The parameters of a conversation, which is encrypted by then if the client wants that; `None` when there is none to come.
async fn begin(
    server: &Server,
    stream: &mut Stream,
    input: &mut Input,
    secrets: &Secrets,
) -> Result<Option<Vec<(String, String)>>, Ended> {
    loop {
        let length = usize::try_from(input.peek_length(stream).await?).map_err(|_| Ended)?;
        if !(8..=STARTUP_BYTES_MAX).contains(&length) {
            return Err(Ended);
        }
        let body = &input.take(stream, length).await?[4..];
        match frontend::startup(body) {
            Ok(Startup::Tls) => {
                // Who sends more before the answer means to have it taken for what was encrypted (CVE-2021-23214).
                if !input.is_empty() || stream.encryption().is_some() {
                    return Err(Ended);
                }
                let tls = server.tls.as_ref().filter(|tls| tls.mode() != TlsMode::Disabled);
                let Some(tls) = tls else {
                    stream.write_whole(b"N").await?;
                    continue;
                };
                stream.write_whole(b"S").await?;
                stream.encrypt(tls).await.map_err(|_| Ended)?;
                if stream.encryption().is_none() {
                    return Err(Ended);
                }
            }
            Ok(Startup::Gss) => stream.write_whole(b"N").await?,
            Ok(Startup::Cancel { pid, secret }) => {
                let known = secrets.lock().get(&i64::from(pid)).copied();
                if known == Some(secret) {
                    let all = server.service.connections.all();
                    if let Some(slot) = all.iter().find(|slot| slot.id == i64::from(pid)) {
                        slot.kill.kill(ErrorCode::Interrupted);
                    }
                }
                return Ok(None);
            }
            Ok(Startup::Begin(parameters)) => return Ok(Some(parameters)),
            Err(error) => return Err(fatal(stream, &error).await),
        }
    }
}

/// Sends answers, once the commits that they tell of are on disk.
async fn answer(server: &Server, stream: &mut Stream, commits: &Commits, out: &mut Vec<u8>) -> Result<(), Ended> {
    if let Some(lsn) = commits.last().filter(|_| !out.is_empty()) {
        let lost = match reached(server, lsn, &Guarantee::Durable, None).await {
            Some(Ok(())) => None,
            Some(Err(lost)) => Some(lost.message().to_owned()),
            None => Some("it is unknown whether a commit is on disk".to_owned()),
        };
        if let Some(why) = lost {
            out.clear();
            return Err(fatal(stream, &error("58030", why)).await);
        }
    }
    write(server, stream, out).await
}

async fn write(server: &Server, stream: &mut Stream, out: &mut Vec<u8>) -> Result<(), Ended> {
    if out.is_empty() {
        return Ok(());
    }
    server.count_reply(out.len());
    let written = tokio::time::timeout(STALLED_MAX, stream.write_whole(out)).await;
    written.map_err(|_| Ended)??;
    // An idle connection keeps no buffer.
    *out = Vec::new();
    Ok(())
}

/// Runs the messages that have come whole, up to one behind which answers leave, on this thread, which looks after the client meanwhile;
/// what becomes of the connection, and the type of the last of them.
fn take(
    server: &Server,
    stream: &mut Stream,
    session: &mut Session,
    (input, commits, habit): (&mut Input, &Commits, &mut Habit),
    out: &mut Vec<u8>,
) -> Result<(Next, u8), Ended> {
    let handle = Handle::current();
    let mut flush = |out: &mut Vec<u8>| {
        commits.wait(&server.service)?;
        server.count_reply(out.len());
        let sent = write_watched(&handle, out, STALLED_MAX);
        out.clear();
        sent.map_err(|_| Error::new(ErrorCode::ClientDisconnect, "the client has gone"))
    };
    let run = AssertUnwindSafe(|| {
        let running = Running::begin(habit);
        let mut last = b'S';
        let mut receive = |input: &mut Input, below: usize, flush: &mut Flush<'_>| {
            running.work(|| {
                while let Some((tag, body, behind)) = input.whole(below) {
                    last = tag;
                    server.count_request(body.len() + 5);
                    session.sync_follows = behind == Some(b'S');
                    let body = session.plain(tag, body);
                    let message = frontend::message(tag, body.as_deref().map_err(Error::clone));
                    let next = session.receive(&server.service, message, out, flush)?;
                    if next == Next::Close || is_flushed_behind(tag) || out.len() >= FLUSH_BYTES {
                        return Ok(next);
                    }
                }
                Ok(Next::Go)
            })
        };
        // To hand on what else the thread serves costs more than most statements; those that turn out to be long do it then.
        let next = stream.watched(|| match input.has_below(LARGE_BYTES) {
            true => receive(input, LARGE_BYTES, &mut flush),
            false => tokio::task::block_in_place(|| {
                watcher::has_left_worker();
                receive(input, usize::MAX, &mut flush)
            }),
        });
        next.map(|next| (next, last))
    });
    let ran: std::thread::Result<Outcome<(Next, u8)>> = catch_unwind(run);
    match ran {
        Ok(next) => next.map_err(|_| Ended),
        Err(_) => {
            server.service.node.log().error(
                "COMMAND",
                9_000_001,
                "sql",
                "A statement panicked",
                doc! { "connectionId": session.slot.id },
            );
            session.slot.finish_operation();
            out.clear();
            backend::error(out, "FATAL", &error("XX000", "internal error"));
            Ok((Next::Close, b'Q'))
        }
    }
}
