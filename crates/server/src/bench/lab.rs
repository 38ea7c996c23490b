//! Brings the laboratory to its servers: connections of our clients, which know URIs, logging in and TLS, and servers that are
//! started for it.

use super::process::{Folder, Server};
use crate::client::postgres::{Postgres, Target as PostgresUri};
use crate::client::{Client, ClientError, Host, Uri};
use nestor_lab::command::{self, LabCommand};
use nestor_lab::delay::{SYNC_VARIABLE, write_shim};
use nestor_lab::target::{Dial, Target};
use nestor_lab::wire::{Durability, MySqlTarget, Protocol, Stream};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The database of MongoDB's servers that the laboratory works in.
const DATABASE: &str = "nestor_lab";
/// How long a server may take for an answer, unless its URI says `socketTimeoutMS`: far longer than any question takes.
const ANSWER_MAX: Duration = Duration::from_secs(600);

/// Does what the command says; an error is a message for the user.
pub fn run(command: &LabCommand) -> Result<(), String> {
    command::run(command, &resolve)
}

fn resolve(label: &str, uri: &str, durability: Durability, sync_delay: Duration) -> Result<Target, String> {
    let target = |protocol, dial: Dial, database: &str, local_port| Target {
        label: label.to_owned(),
        protocol,
        dial,
        database: database.to_owned(),
        local_port,
        pid: None,
        durability,
        keeper: None,
    };
    let (scheme, rest) = uri
        .split_once(':')
        .ok_or_else(|| format!("{uri} is no URI: mongodb://, postgres://, mysql:// or nestor:"))?;
    match scheme {
        "mongodb" => {
            let (dial, port) = mongo(uri)?;
            Ok(target(Protocol::Mongo, dial, DATABASE, port))
        }
        "postgres" | "postgresql" => {
            let (dial, database, port) = postgres(uri)?;
            Ok(target(Protocol::Postgres, dial, &database, port))
        }
        "mysql" | "mariadb" => {
            let parsed: MySqlTarget = uri.parse()?;
            let port = parsed
                .address
                .rsplit_once(':')
                .and_then(|(host, port)| local(host, port.parse().ok()?));
            let database = parsed.database.clone();
            Ok(target(
                Protocol::MySql,
                Arc::new(move || parsed.dial()),
                &database,
                port,
            ))
        }
        "nestor" | "nestor+sql" => {
            let started = Started::new(rest, scheme == "nestor+sql", sync_delay)?;
            let mut target = match &started.sql {
                Some(uri) => {
                    let (dial, database, _) = postgres(uri)?;
                    target(Protocol::Postgres, dial, &database, None)
                }
                None => {
                    let (dial, _) = mongo(&started.uri)?;
                    target(Protocol::Mongo, dial, DATABASE, None)
                }
            };
            target.pid = Some(started.pid);
            target.keeper = Some(Arc::new(started));
            Ok(target)
        }
        _ => Err(format!(
            "there are servers by mongodb://, postgres://, mysql:// and nestor:, not by {scheme}:"
        )),
    }
}

/// The port, if the host is this machine.
fn local(host: &str, port: u16) -> Option<u16> {
    matches!(host, "localhost" | "127.0.0.1" | "::1" | "[::1]").then_some(port)
}

fn local_port(host: &Host) -> Option<u16> {
    match host {
        Host::Tcp(name, port) => local(name, *port),
        Host::Unix(_) => None,
    }
}

fn mongo(uri: &str) -> Result<(Dial, Option<u16>), String> {
    let uri: Uri = uri.parse().map_err(|e: ClientError| e.to_string())?;
    // The laboratory speaks for itself once it is logged in, so nothing else has an effect.
    let connecting = [
        "directConnection",
        "replicaSet",
        "serverSelectionTimeoutMS",
        "connectTimeoutMS",
        "socketTimeoutMS",
        "appName",
        "authSource",
        "authMechanism",
        "tls",
        "ssl",
        "tlsCAFile",
        "tlsCertificateKeyFile",
    ];
    uri.only_with(&connecting).map_err(|e| e.to_string())?;
    let port = uri.hosts.first().and_then(local_port);
    let dial = move || -> Result<Box<dyn Stream>, String> {
        let mut client = Client::connect(&uri).map_err(|e| e.to_string())?;
        if uri.socket_timeout.is_none() {
            let limited = client.connection().stream().limit(Some(ANSWER_MAX));
            limited.map_err(|e| e.to_string())?;
        }
        Ok(Box::new(OfMongo(client)))
    };
    Ok((Arc::new(dial), port))
}

fn postgres(uri: &str) -> Result<(Dial, String, Option<u16>), String> {
    let mut uri: PostgresUri = uri.parse().map_err(|e: ClientError| e.to_string())?;
    uri.application = "nestor bench".to_owned();
    let (database, port) = (uri.database.clone(), local_port(&uri.host));
    let dial = move || -> Result<Box<dyn Stream>, String> {
        let mut client = Postgres::connect(&uri).map_err(|e| e.to_string())?;
        let limited = client.stream().get_ref().limit(Some(ANSWER_MAX));
        limited.map_err(|e| e.to_string())?;
        Ok(Box::new(OfPostgres(client)))
    };
    Ok((Arc::new(dial), database, port))
}

/// The bytes of a connection of MongoDB's protocol.
struct OfMongo(Client);

impl Read for OfMongo {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.connection().stream().read(buffer)
    }
}

impl Write for OfMongo {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.connection().stream().write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.connection().stream().flush()
    }
}

/// The bytes of a connection of PostgreSQL's protocol.
struct OfPostgres(Postgres);

impl Read for OfPostgres {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.stream().read(buffer)
    }
}

impl Write for OfPostgres {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.stream().get_mut().write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.stream().get_mut().flush()
    }
}

/// A server of ours; it is ended, and its directory deleted, when this is dropped.
struct Started {
    uri: String,
    sql: Option<String>,
    pid: u32,
    server: Mutex<Server>,
    _folder: Folder,
}

impl Started {
    /// Of `PROGRAM FLAGS…`; without a program this one. `--dir DIR` is where its directory is made.
    fn new(words: &str, with_sql: bool, sync_delay: Duration) -> Result<Self, String> {
        let mut words = words.split_whitespace().map(str::to_owned);
        let program = match words.next() {
            Some(program) => program.into(),
            None => std::env::current_exe().map_err(|e| e.to_string())?,
        };
        let mut flags: Vec<String> = words.collect();
        let mut parent = std::env::temp_dir();
        if let Some(at) = flags.iter().position(|flag| flag == "--dir") {
            let taken: Vec<String> = flags.drain(at..(at + 2).min(flags.len())).collect();
            parent = Path::new(taken.get(1).ok_or("--dir wants a directory")?).to_owned();
        }
        let mut sql = None;
        if with_sql {
            // Nobody else takes the port in the moment between: they are given out in turn.
            let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            let port = port.map_err(|e| e.to_string())?.port();
            flags.extend(["--sql-port".to_owned(), port.to_string()]);
            sql = Some(format!("postgres://nestor@127.0.0.1:{port}/{DATABASE}"));
        }
        let folder = Folder::make(&parent)?;
        let mut environment = Vec::new();
        if !sync_delay.is_zero() {
            let shim = folder.path().join("shim.so");
            write_shim(&shim)?;
            environment.push(("LD_PRELOAD", shim.display().to_string()));
            environment.push((SYNC_VARIABLE, sync_delay.as_micros().to_string()));
        }
        let server = Server::start_program(&program, &flags, &environment, &folder.path().join("data"))?;
        let host = server.uri.hosts.first().map(ToString::to_string).unwrap_or_default();
        Ok(Self {
            uri: format!("mongodb://{host}/?directConnection=true"),
            sql,
            pid: server.pid(),
            server: Mutex::new(server),
            _folder: folder,
        })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Ok(server) = self.server.get_mut() {
            // What cannot be stopped cleanly is killed with the rest.
            let _ = server.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_targets_are_refused() {
        for (uri, reason) in [
            ("localhost", "no URI"),
            ("http://a", "not by http:"),
            ("mongodb://a/?compressors=zstd", "compressors"),
            ("mysql://a?b=c", "no options"),
            ("nestor:/no/such/program", "/no/such/program"),
        ] {
            let error = resolve("x", uri, Durability::Relaxed, Duration::ZERO).err().expect(uri);
            assert!(error.contains(reason), "{uri}: {error}");
        }
    }
}
