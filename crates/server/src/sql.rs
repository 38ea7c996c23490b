//! Connections that speak PostgreSQL's wire protocol (`--sql-port`).

use crate::connection::{HOOKS, PATIENCE, Running};
use crate::serve::Server;
use crate::watcher;
use nestor_command::Connection;
use nestor_model::interrupt::with_patience;
use nestor_model::random::Random;
use nestor_model::{Error, ErrorCode, doc};
use nestor_sql::error::error;
use nestor_sql::protocol::backend;
use nestor_sql::protocol::frontend::{self, MESSAGE_BYTES_MAX, STARTUP_BYTES_MAX, Startup};
use nestor_sql::session::{Next, Session, settings};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

/// Pause after the system had no file for a connection.
const BACKOFF: Duration = Duration::from_millis(100);
/// How long a client may take to say what it wants.
const STARTUP_MAX: Duration = Duration::from_secs(60);
/// How long a client may take to read a part of an answer.
const STALLED_MAX: Duration = Duration::from_secs(60);
/// A message that is not here yet gets memory for this much at a time, whatever length it claims.
const GROWTH_BYTES: usize = 1 << 20;

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
            let conn = Connection::new(&served.service, &peer.to_string());
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

async fn converse(
    server: &Server,
    mut stream: TcpStream,
    conn: &Connection,
    secrets: &Secrets,
    random: &Random,
) -> Result<(), Ended> {
    let begun = tokio::time::timeout(STARTUP_MAX, begin(server, &mut stream, secrets)).await;
    let Some(parameters) = begun.map_err(|_| Ended)?? else {
        return Ok(());
    };
    let value = |name: &str| {
        parameters
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    };
    let user = value("user").unwrap_or_default();
    let database = value("database").unwrap_or(user);
    let mut out = Vec::new();
    let checked = match user.is_empty() {
        true => Err(error("28000", "no PostgreSQL user name specified in startup packet")),
        false => nestor_database::names::check_database(database).map_err(|e| error("3D000", e.message().to_owned())),
    };
    let mut session = Session::new(conn.slot.clone(), user, database);
    let given = checked.and_then(|()| {
        let given = parameters
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "user" | "database" | "options" | "replication"));
        if value("replication").is_some_and(|value| value != "false") || value("options").is_some_and(|o| !o.is_empty())
        {
            return Err(error("0A000", "replication connections and options are not supported"));
        }
        given
            .into_iter()
            .try_for_each(|(name, value)| settings::set(&mut session.facts.settings, name, value))
    });
    if let Err(error) = given {
        backend::error(&mut out, "FATAL", &error);
        stream.write_all(&out).await?;
        return Ok(());
    }
    let secret = random.next() as i32;
    secrets.lock().insert(conn.id, secret);
    let _known = Known(secrets, conn.id);
    backend::authenticated(&mut out);
    for (name, own) in settings::REPORTED {
        backend::parameter(
            &mut out,
            name,
            session.facts.settings.get(*own).map_or("", String::as_str),
        );
    }
    backend::key(&mut out, session.facts.pid, secret);
    backend::ready(&mut out, b'I');
    stream.write_all(&out).await?;
    loop {
        let (tag, body) = read(server, &mut stream).await?;
        if server.is_draining() {
            let mut out = Vec::new();
            backend::error(
                &mut out,
                "FATAL",
                &error("57P01", "terminating connection because the server is stopping"),
            );
            stream.write_all(&out).await?;
            return Ok(());
        }
        let busy = server.begin_work();
        server.count_request(body.len() + 5);
        let (out, next) = take(server, &mut stream, &mut session, tag, &body);
        drop(busy);
        write(server, &mut stream, &out).await?;
        if next? == Next::Close {
            return Ok(());
        }
    }
}

/// The parameters of a conversation; `None` when there is none to come.
async fn begin(
    server: &Server,
    stream: &mut TcpStream,
    secrets: &Secrets,
) -> Result<Option<Vec<(String, String)>>, Ended> {
    loop {
        let length = usize::try_from(stream.read_i32().await?).map_err(|_| Ended)?;
        if !(8..=STARTUP_BYTES_MAX).contains(&length) {
            return Err(Ended);
        }
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body).await?;
        match frontend::startup(&body) {
            // Encryption is not spoken here yet.
            Ok(Startup::Tls | Startup::Gss) => stream.write_all(b"N").await?,
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
            Err(error) => {
                let mut out = Vec::new();
                backend::error(&mut out, "FATAL", &error);
                stream.write_all(&out).await?;
                return Ok(None);
            }
        }
    }
}

/// The next message.
async fn read(server: &Server, stream: &mut TcpStream) -> Result<(u8, Vec<u8>), Ended> {
    let mut head = [0; 5];
    tokio::select! {
        read = stream.read_exact(&mut head) => drop(read?),
        () = server.lose_patience() => return Err(Ended),
    }
    let [tag, a, b, c, d] = head;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    let Some(length) = length.checked_sub(4).filter(|length| *length <= MESSAGE_BYTES_MAX) else {
        let mut out = Vec::new();
        backend::error(&mut out, "FATAL", &error("08P01", "invalid message length"));
        stream.write_all(&out).await?;
        return Err(Ended);
    };
    let mut body = Vec::new();
    while body.len() < length {
        let from = body.len();
        body.resize(length.min(from + GROWTH_BYTES), 0);
        stream.read_exact(&mut body[from..]).await?;
    }
    Ok((tag, body))
}

async fn write(server: &Server, stream: &mut TcpStream, bytes: &[u8]) -> Result<(), Ended> {
    if bytes.is_empty() {
        return Ok(());
    }
    server.count_reply(bytes.len());
    tokio::time::timeout(STALLED_MAX, stream.write_all(bytes))
        .await
        .map_err(|_| Ended)??;
    Ok(())
}

/// Runs one message on this thread; what is left to send, and what becomes of the connection.
fn take(
    server: &Server,
    stream: &mut TcpStream,
    session: &mut Session,
    tag: u8,
    body: &[u8],
) -> (Vec<u8>, Result<Next, Ended>) {
    let mut out = Vec::new();
    let handle = Handle::current();
    let mut flush = |out: &mut Vec<u8>| {
        let bytes = std::mem::take(out);
        let sent = handle.block_on(write(server, stream, &bytes));
        sent.map_err(|Ended| Error::new(ErrorCode::ClientDisconnect, "the client has gone"))
    };
    let run = AssertUnwindSafe(|| {
        let _running = Running::begin();
        tokio::task::block_in_place(|| {
            watcher::has_left_worker();
            with_patience(PATIENCE, HOOKS, || {
                session.receive(&server.service, frontend::message(tag, body), &mut out, &mut flush)
            })
        })
    });
    match catch_unwind(run) {
        Ok(next) => (out, next.map_err(|_| Ended)),
        Err(_) => {
            server.service.node.log().error(
                "COMMAND",
                9_000_001,
                "sql",
                "A statement panicked",
                doc! { "connectionId": session.slot.id },
            );
            session.slot.finish_operation();
            let mut out = Vec::new();
            backend::error(&mut out, "FATAL", &error("XX000", "internal error"));
            (out, Ok(Next::Close))
        }
    }
}
