//! A server to measure: how it is reached, which process it is.

use crate::measure::process::Processes;
use crate::rows::{Arguments, Rows};
use crate::statement::{Role, Statement};
use crate::wire::{Durability, Protocol, Session, Stream, session};
use nestor_model::{Document, ValueRef, doc};
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connects and logs in; an error is a message for the user.
pub type Dial = Arc<dyn Fn() -> Result<Box<dyn Stream>, String> + Send + Sync>;

/// A server.
#[derive(Clone)]
pub struct Target {
    /// What reports call it.
    pub label: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// Opens a connection.
    pub dial: Dial,
    /// The database that tables are made in.
    pub database: String,
    /// The port it listens on, when that is on this machine: so its process is found.
    pub local_port: Option<u16>,
    /// Its process, when it is known.
    pub pid: Option<u32>,
    /// What commits wait for.
    pub durability: Durability,
    /// Lives as long as the target does, such as a server that was started for it.
    pub keeper: Option<Arc<dyn Any + Send + Sync>>,
}

impl Target {
    /// A connection.
    pub fn connect(&self) -> Result<Caller, String> {
        let stream = (self.dial)()?;
        let session = session(self.protocol, stream, &self.database, self.durability)?;
        Ok(Caller {
            session,
            busy: Duration::ZERO,
            last: Instant::now(),
        })
    }

    /// The server's processes, as far as they run on this machine.
    pub fn processes(&self) -> Option<Processes> {
        let pid = self
            .pid
            .or_else(|| crate::measure::process::listening_on(self.local_port?))?;
        Some(Processes::of(pid))
    }

    /// Runs one statement without parameters and returns its rows.
    pub fn once(&self, statement: &Statement) -> Result<Rows, String> {
        let mut caller = self.connect()?;
        caller.once(statement)
    }

    /// What the server says it is.
    pub fn version(&self) -> Result<String, String> {
        if self.protocol == Protocol::Mongo {
            return mongo_version(self);
        }
        let rows = self.once(&Statement::new(
            "version",
            Role::Reads,
            vec![],
            doc! {},
            "SELECT version()".into(),
        ))?;
        Ok(String::from_utf8_lossy(rows.bytes(0, 0)?).into_owned())
    }

    /// What its commits wait for, as results name it.
    pub fn commits(&self) -> &'static str {
        let ask = Statement::new(
            "durability",
            Role::Reads,
            vec![],
            doc! {},
            "SHOW synchronous_commit".into(),
        );
        match self.protocol {
            Protocol::Postgres if self.once(&ask).is_err() => "the server's own: it has no synchronous_commit",
            _ => self.durability.name(),
        }
    }

    /// Its settings that decide what commits wait for and how much it keeps in memory, as far as it tells them.
    pub fn settings(&self) -> Vec<(String, String)> {
        const OF_POSTGRES: &str = "SELECT name, setting || coalesce(unit, '') FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', \
            'wal_level', 'shared_buffers', 'max_wal_size', 'checkpoint_timeout', 'work_mem', 'autovacuum', 'jit') ORDER BY name";
        const OF_MYSQL: &str = "SELECT lower(variable_name), variable_value FROM information_schema.global_variables WHERE \
            lower(variable_name) IN ('innodb_buffer_pool_size', 'innodb_log_file_size', 'innodb_flush_method', 'innodb_doublewrite', 'log_bin', \
            'sync_binlog', 'innodb_io_capacity', 'innodb_flush_neighbors') ORDER BY 1";
        let sql = match self.protocol {
            Protocol::Mongo => return Vec::new(),
            Protocol::Postgres => OF_POSTGRES,
            Protocol::MySql => OF_MYSQL,
        };
        let ask = Statement::new("settings", Role::Reads, vec![], doc! {}, sql.to_owned());
        // Servers that have no such table tell nothing.
        let rows = self.once(&ask).unwrap_or_default();
        let text = |row, column| Some(String::from_utf8_lossy(rows.bytes(row, column).ok()?).into_owned());
        (0..rows.len())
            .filter_map(|row| Some((text(row, 0)?, text(row, 1)?)))
            .collect()
    }

    /// Sets what holds for all connections of the server, where a connection cannot.
    pub fn configure(&self) -> Result<(), String> {
        if self.protocol != Protocol::MySql {
            return Ok(());
        }
        let flush = match self.durability {
            Durability::Relaxed => 2,
            Durability::Durable => 1,
        };
        self.run(&[command(
            doc! {},
            &format!("SET GLOBAL innodb_flush_log_at_trx_commit = {flush}"),
        )])
    }

    /// Runs statements whose answers nobody wants.
    pub fn run(&self, statements: &[Statement]) -> Result<(), String> {
        let mut caller = self.connect()?;
        for statement in statements {
            caller.once(statement)?;
        }
        Ok(())
    }
}

/// A statement without parameters that is no query.
pub fn command(mongo: Document, sql: &str) -> Statement {
    Statement::new("command", Role::Writes, vec![], mongo, sql.to_owned())
}

fn mongo_version(target: &Target) -> Result<String, String> {
    let mut stream = (target.dial)()?;
    let reply = crate::wire::mongo_command(&mut *stream, &doc! { "buildInfo": 1, "$db": "admin" })?;
    let text = |name: &str| reply.get(name).and_then(ValueRef::as_str).map(str::to_owned);
    let version = text("version").unwrap_or_else(|| "unknown".into());
    Ok(match text("gitVersion") {
        Some(build) => format!("{version} ({build})"),
        None => version,
    })
}

/// A connection that takes its own time: [`busy`](Self::busy) is what the server had a call for.
pub struct Caller {
    session: Box<dyn Session>,
    /// From the first byte of calls to the last of their answers, since [`begin_operation`](Self::begin_operation).
    pub busy: Duration,
    /// When the last answer came.
    pub last: Instant,
}

impl Caller {
    /// A new operation begins.
    pub fn begin_operation(&mut self) {
        self.busy = Duration::ZERO;
    }

    /// As [`Session::prepare`].
    pub fn prepare(&mut self, statement: &Statement) -> Result<usize, String> {
        self.session.prepare(statement)
    }

    /// As [`Session::call`].
    pub fn call(&mut self, number: usize, arguments: &Arguments, rows: &mut Rows) -> Result<(), String> {
        self.timed(|session| session.call(number, arguments, rows))
    }

    /// As [`Session::begin`].
    pub fn begin(&mut self) -> Result<(), String> {
        self.timed(|session| session.begin())
    }

    /// As [`Session::commit`].
    pub fn commit(&mut self) -> Result<(), String> {
        self.timed(|session| session.commit())
    }

    /// Prepares and calls a statement without parameters.
    pub fn once(&mut self, statement: &Statement) -> Result<Rows, String> {
        let mut rows = Rows::default();
        let number = self.prepare(statement)?;
        self.call(number, &Arguments::default(), &mut rows)?;
        Ok(rows)
    }

    fn timed<T>(&mut self, call: impl FnOnce(&mut dyn Session) -> Result<T, String>) -> Result<T, String> {
        let begun = Instant::now();
        let done = call(&mut *self.session);
        self.last = Instant::now();
        self.busy += self.last - begun;
        done
    }
}
