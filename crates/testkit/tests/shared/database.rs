//! A database in memory, asked by commands, for tests that compare it with something.

use nestor_command::{Connection, Request, Service};
use nestor_database::DatabaseOptions;
use nestor_model::{Document, RawDoc, ValueRef};
use nestor_sql::stage::SqlStage;
use nestor_storage::{Engine, EngineOptions};

/// The database and a connection to it.
pub struct Database {
    /// The service, for what is looked at beside replies.
    pub service: Service,
    connection: Connection,
}

impl Database {
    /// An empty one.
    pub fn new() -> Self {
        Self::over(Engine::ephemeral(EngineOptions::at_time(1_700_000_000)))
    }

    /// An empty one in a directory.
    #[allow(dead_code)] // Most tests need no directory.
    pub fn within(directory: &std::path::Path) -> Self {
        Self::over(Engine::open(directory, EngineOptions::at_time(1_700_000_000)).expect("the store opens"))
    }

    /// An empty one whose SQL may read the files of a directory.
    #[allow(dead_code)] // Most tests read no files.
    pub fn reading(directory: &std::path::Path) -> Self {
        let options = DatabaseOptions {
            sql_files: Some(directory.to_owned()),
            ..DatabaseOptions::default()
        };
        Self::with(options, Engine::ephemeral(EngineOptions::at_time(1_700_000_000)))
    }

    fn over(engine: Engine) -> Self {
        Self::with(DatabaseOptions::default(), engine)
    }

    fn with(options: DatabaseOptions, engine: Engine) -> Self {
        let service = Service::new(options, engine).with_relational(std::sync::Arc::new(SqlStage));
        let connection = Connection::new(&service, "test");
        Self { service, connection }
    }

    /// The reply to a command, on `test` if it says nothing else.
    pub fn run(&mut self, command: Document) -> Document {
        run_over(&self.service, &mut self.connection, command)
    }

    /// As [`Database::run`], of a command that must not fail, nor one of its writes.
    pub fn must(&mut self, command: Document) -> Document {
        let reply = self.run(command.clone());
        let is_ok = reply.get("ok").is_some_and(ValueRef::truthy) && reply.get("writeErrors").is_none();
        assert!(is_ok, "{command:?} gave {reply:?}");
        reply
    }
}

/// The reply to a command over a connection, as [`Database::run`].
pub fn run_over(service: &Service, connection: &mut Connection, mut command: Document) -> Document {
    if command.get("$db").is_none() {
        command.push("$db", "test");
    }
    let raw = command.to_raw();
    let outcome = service.run(connection, Request::new(raw.as_raw()));
    let reply = RawDoc::validate(&outcome.reply).expect("a reply is BSON");
    reply.to_buf().into()
}
