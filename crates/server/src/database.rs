//! The database as a library: commands in, replies out, no sockets.

use crate::serve::usual_engine_options;
use nestor_command::{Connection, Outcome, Request, Service, Wake};
use nestor_database::DatabaseOptions;
use nestor_database::node::ProcessOptions;
use nestor_model::{DocRef, Document, Error, ErrorCode, RawDocBuf, ValueRef};
use nestor_sql::stage::SqlStage;
use nestor_storage::{Engine, StorageError};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest sleep of a command that waits for something other than a commit.
const NAP: Duration = Duration::from_millis(20);
/// How often the service's housekeeping is done.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// A database within this process. Clones share it; it may be used from many threads at once.
///
/// ```
/// use nestor::{Database, Value, doc};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("data");
/// let db = Database::open(&path)?;
/// let cities = vec![
///     Value::from(doc! { "_id": 1, "name": "Pylos", "people": 2_345 }),
///     Value::from(doc! { "_id": 2, "name": "Methoni", "people": 1_209 }),
/// ];
/// db.run_command(doc! { "insert": "cities", "documents": cities, "$db": "greece" })?;
///
/// let reply = db.run_command(doc! {
///     "find": "cities",
///     "filter": doc! { "people": doc! { "$gt": 2_000 } },
///     "$db": "greece",
/// })?;
/// let first = reply.path("cursor.firstBatch.0.name");
/// assert_eq!(first.and_then(|name| name.as_str()), Some("Pylos"));
///
/// drop(db);
/// let second = Database::open(&path)?.run_command(doc! { "distinct": "cities", "key": "name", "$db": "greece" })?;
/// assert_eq!(second.path("values.0").and_then(|name| name.as_str()), Some("Methoni"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
    _housekeeper: Arc<Housekeeper>,
}

/// A thread that does the service's housekeeping, expiry of documents included, and ends when this is dropped.
struct Housekeeper {
    /// Dropping it wakes the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeper {
    fn start(inner: Arc<Inner>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let work = move || {
            while stopped.recv_timeout(HOUSEKEEPING) == Err(RecvTimeoutError::Timeout) {
                inner.service.tick();
            }
        };
        let thread = std::thread::Builder::new().name("nestor-house".into()).spawn(work);
        Self {
            stop: Some(stop),
            // A process that can have no more threads has a database without housekeeping.
            thread: thread.ok(),
        }
    }
}

impl Drop for Housekeeper {
    /// Waits for the thread, which may be the last to hold the database: afterwards it can be opened again.
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its message has been printed.
            let _ = thread.join();
        }
    }
}

struct Inner {
    service: Service,
    /// Connections nobody uses now. A command takes one, as a client of a pool does.
    idle: Mutex<Vec<Connection>>,
}

/// A reply.
#[derive(Clone, Debug)]
pub struct Reply(Document);

impl Reply {
    /// A field of the reply.
    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        self.0.get(name)
    }

    /// A field within documents and arrays, such as `cursor.firstBatch.0`.
    pub fn path(&self, path: &str) -> Option<ValueRef<'_>> {
        let mut here = ValueRef::Document(self.0.as_ref());
        for part in path.split('.') {
            here = match here {
                ValueRef::Document(doc) => doc.get(part)?,
                ValueRef::Array(array) => array.get(part.parse().ok()?)?,
                _ => return None,
            };
        }
        Some(here)
    }

    /// The whole reply.
    pub fn document(&self) -> &Document {
        &self.0
    }

    /// The whole reply, given away.
    pub fn into_document(self) -> Document {
        self.0
    }
}

impl Database {
    /// Opens the database in the directory `path`, which is made if it does not exist, and recovers what a
    /// crash left. One process at a time can have it open. Among the files of something else no database is made.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        Ok(Self::over(Engine::open(path.as_ref(), usual_engine_options())?))
    }

    /// A database in memory, gone when its last clone is dropped.
    pub fn ephemeral() -> Self {
        Self::over(Engine::ephemeral(usual_engine_options()))
    }

    fn over(engine: Engine) -> Self {
        let options = DatabaseOptions {
            replica_set: Some("rs0".into()),
            host: "localhost:0".into(),
            process: ProcessOptions::default(),
            ..DatabaseOptions::default()
        };
        let service = Service::new(options, engine).with_relational(Arc::new(SqlStage));
        nestor_sql::ddl::temporary::clear(&service);
        let inner = Arc::new(Inner {
            service,
            idle: Mutex::default(),
        });
        Self {
            _housekeeper: Arc::new(Housekeeper::start(inner.clone())),
            inner,
        }
    }

    /// Runs a command and waits for its reply. `$db` names the database; without it that is `test`.
    /// A reply that says `ok: 0` is an error here; errors of single documents (`writeErrors`) are not.
    pub fn run_command(&self, command: Document) -> Result<Reply, Error> {
        let mut command = command;
        if command.get("$db").is_none() {
            command.push("$db", "test");
        }
        let command = RawDocBuf::validate(command.to_raw().into_bytes())?;
        let taken = self.idle().pop();
        let mut conn = taken.unwrap_or_else(|| Connection::new(&self.inner.service, ""));
        let outcome = self.run_to_end(&mut conn, &command);
        if !outcome.close {
            self.idle().push(conn);
        }
        let body = outcome.reply.get(outcome.reply_at..).unwrap_or_default();
        if body.is_empty() {
            return Err(Error::new(ErrorCode::HostUnreachable, "connection closed"));
        }
        let reply = Document::from(RawDocBuf::validate(body)?);
        if reply.get("ok").is_some_and(ValueRef::truthy) {
            return Ok(Reply(reply));
        }
        Err(error_of(reply.as_ref()))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_to_end(&self, conn: &mut Connection, command: &RawDocBuf) -> Outcome {
        let service = &self.inner.service;
        loop {
            let seen = service.engine.last_lsn();
            let mut outcome = service.run(conn, Request::new(command.as_raw()));
            if let Some(park) = outcome.park {
                match park.wake {
                    Wake::Log(signal) => {
                        signal.wait(park.until);
                    }
                    Wake::Commit => {
                        service.engine.wait_for_commit(seen, park.until);
                    }
                    // Only members of a larger set wait for that.
                    Wake::Never | Wake::Topology(_) => {
                        let left = park.until.saturating_duration_since(Instant::now());
                        std::thread::sleep(left.min(NAP));
                    }
                }
                continue;
            }
            if let Some(wait) = outcome.wait.take() {
                // A time limit is not looked at: the sync of a local disk comes or fails.
                if let Err(error) = service.engine.wait_reached(wait.lsn, wait.guarantee.clone()) {
                    let reply = std::mem::take(&mut outcome.reply);
                    outcome.reply = service.not_durable(reply, outcome.reply_at, &wait, Some(error.into()));
                }
            }
            return outcome;
        }
    }
}

/// The error that an `ok: 0` reply tells of.
fn error_of(reply: DocRef<'_>) -> Error {
    let code = match reply.get("code") {
        Some(ValueRef::Int32(code)) => ErrorCode::location(code),
        _ => ErrorCode::UnknownError,
    };
    let message = reply.get("errmsg").and_then(ValueRef::as_str).unwrap_or_default();
    Error::new(code, message).with_extra(reply.to_document())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Value, doc};

    #[test]
    fn data_survives_in_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        {
            let db = Database::open(dir.path()).unwrap();
            let documents = vec![Value::from(doc! { "_id": 1 })];
            let insert = doc! { "insert": "c", "documents": documents, "writeConcern": doc! { "w": 1, "j": true } };
            assert_eq!(format!("{:?}", db.run_command(insert).unwrap().get("n")), "Some(1)");
            assert!(Database::open(dir.path()).is_err(), "one process, one opening");
        }
        let db = Database::open(dir.path()).unwrap();
        let found = db.run_command(doc! { "find": "c" }).unwrap();
        assert_eq!(
            format!("{:?}", found.path("cursor.firstBatch")),
            r#"Some([{"_id": 1}])"#
        );
    }

    /// A thread reads back what sessions did. It does not keep the directory locked after the database is dropped.
    #[test]
    fn a_database_that_is_gone_can_be_opened_again_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let numbers = |from: i32| (from..from + 1000).map(|i| Value::from(doc! { "_id": i }));
        let db = Database::open(dir.path()).unwrap();
        for from in (0..10_000).step_by(1000) {
            let documents: Vec<_> = numbers(from).collect();
            db.run_command(doc! { "insert": "c", "documents": documents }).unwrap();
        }
        drop(db);
        for _ in 0..5 {
            drop(Database::open(dir.path()).unwrap());
        }
    }

    #[test]
    fn documents_expire() {
        let db = Database::ephemeral();
        let every_second = doc! { "setParameter": 1, "ttlMonitorSleepSecs": 1, "$db": "admin" };
        db.run_command(every_second).unwrap();
        let index = doc! { "key": doc! { "at": 1 }, "name": "at", "expireAfterSeconds": 0 };
        db.run_command(doc! { "createIndexes": "c", "indexes": vec![Value::from(index)] })
            .unwrap();
        let documents = vec![Value::from(doc! { "at": Value::DateTime(0) })];
        db.run_command(doc! { "insert": "c", "documents": documents }).unwrap();
        let count = || format!("{:?}", db.run_command(doc! { "count": "c" }).unwrap().get("n"));
        let patience = Instant::now() + Duration::from_secs(60);
        while count() != "Some(0)" {
            assert!(Instant::now() < patience, "nothing expires");
            std::thread::sleep(NAP);
        }
    }

    #[test]
    fn errors_have_their_codes() {
        let db = Database::ephemeral();
        let error = db.run_command(doc! { "noSuchThing": 1 }).unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (ErrorCode::CommandNotFound, "no such command: 'noSuchThing'")
        );
        assert!(db.run_command(doc! { "ping": 1 }).is_ok(), "it goes on after an error");
    }

    #[test]
    fn threads_share_it() {
        let db = Database::ephemeral();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let db = db.clone();
                scope.spawn(move || {
                    for i in 0..20 {
                        let documents = vec![Value::from(doc! { "thread": thread, "i": i })];
                        db.run_command(doc! { "insert": "c", "documents": documents }).unwrap();
                    }
                });
            }
        });
        let found = db.run_command(doc! { "find": "c", "batchSize": 1000 }).unwrap();
        let batch = found.path("cursor.firstBatch").and_then(|batch| batch.as_array());
        assert_eq!(batch.map(|batch| batch.len()), Some(80));
    }
}
