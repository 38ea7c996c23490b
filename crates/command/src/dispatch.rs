//! The way a command runs, and the table of commands: the composition of all that is below.
//!
//! Every command is a file in [`crate::commands`] that declares a [`CommandSpec`].

use crate::audit;
use crate::authorization;
use crate::commands::administration::{cluster_parameter, rw_concern};
use crate::commands::plans::stored;
use crate::commands::query::get_more;
use crate::commands::query::prepare::{self, Command};
use crate::commands::replication::hello;
use crate::connection::Connection;
use crate::context::{After, Context};
use crate::facts::{self, Facts, Flags, Table};
use crate::faults::Verdict;
use crate::gate;
use crate::generic::Generic;
use crate::privileges;
use crate::query_stats;
use crate::reply;
use crate::request::{Outcome, Request, Sequence};
use crate::server_state::State;
use crate::service::{Length, Service};
use crate::spec::CommandSpec;
use crate::used;
use nestor_database::Database;
use nestor_database::DatabaseOptions;
use nestor_database::connections::Waits;
use nestor_database::failures;
use nestor_database::operation::Access;
use nestor_database::statement::Wait;
use nestor_database::statement::record::{Ending, Observed};
use nestor_database::statement::relational::Relational;
use nestor_database::statement::transaction;
use nestor_exec::Interrupt;
use nestor_model::interrupt::afterwards;
use nestor_model::namespace::ADMIN;
use nestor_model::statement;
use nestor_model::{Document, ErrorCode, Namespace, RawDoc, RawWriter, Result, bail};
use nestor_storage::{Engine, View};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Puts the settings in force that are stored as documents.
fn read_settings(database: &Database) {
    let tell = |id: u32, component: &'static str, what: &str, error: &nestor_model::Error| {
        let attr = nestor_model::doc! { "error": error.to_string() };
        database.node.log().error(component, id, "initandlisten", what, attr);
    };
    match stored::load(&database.engine) {
        Ok(entries) => database.query_settings.replace(entries),
        Err(error) => tell(20_002, "QUERY", "Cannot read the query settings", &error),
    }
    if let Err(error) = rw_concern::load(&database.engine, &database.node.concerns) {
        tell(20_003, "COMMAND", "Cannot read the default concerns", &error);
    }
    if let Err(error) = cluster_parameter::load(&database.engine, &database.node.cluster_parameters) {
        tell(20_005, "COMMAND", "Cannot read the cluster parameters", &error);
    }
    cluster_parameter::apply(database);
}

impl Service {
    /// A service over a store.
    pub fn new(options: DatabaseOptions, engine: Engine) -> Self {
        let database = Database::new(options, engine, TABLE.all().len(), |shared| {
            Arc::new(State {
                shared,
                commands: &TABLE,
            })
        });
        read_settings(&database);
        Self {
            database,
            ttl: Default::default(),
            settings_read: Mutex::default(),
            commands: &TABLE,
            relational: None,
        }
    }

    /// Reads the settings that the primary has changed: a command that changes them does so where it runs.
    fn follow_settings(&self) {
        let snapshot = self.engine.snapshot();
        let last_write = |ns: &Namespace| {
            let collection = snapshot.catalog().get(ns)?;
            Some(collection.state.last_commit())
        };
        // Query settings are a cluster parameter.
        let namespaces = [rw_concern::namespace(), cluster_parameter::namespace()];
        let newest = namespaces.iter().filter_map(last_write).max();
        let mut read = self.settings_read.lock().unwrap_or_else(PoisonError::into_inner);
        if newest > *read {
            *read = newest;
            read_settings(&self.database);
        }
    }

    /// With a language of relations, in which `$sql` asks.
    #[must_use]
    pub fn with_relational(mut self, relational: Arc<dyn Relational>) -> Self {
        self.relational = Some(relational);
        self
    }

    /// Runs a short command of database `admin` for the process itself, which needs no right, and returns the reply.
    pub fn run_as_process(&self, mut command: Document) -> Document {
        command.push("$db", ADMIN);
        let body = command.to_raw();
        let mut conn = Connection::of_process(self);
        let outcome = self.run(&mut conn, Request::new(body.as_raw()));
        let reply = outcome.reply.get(outcome.reply_at..).unwrap_or_default();
        RawDoc::validate(reply)
            .map(|reply| reply.to_buf().into())
            .unwrap_or_default()
    }

    /// Runs one command on its connection and returns the reply. Errors become error replies.
    pub fn run(&self, conn: &mut Connection, request: Request<'_>) -> Outcome {
        let reply_at = request.buffer.len();
        let mut writer = RawWriter::onto(request.buffer);
        let (result, after) = self.dispatch(
            conn,
            request.body,
            request.sequences,
            (request.legacy, request.exhaust_allowed),
            &mut writer,
        );
        if result.as_ref().is_err_and(|e| e.code() == ErrorCode::ClientDisconnect) {
            let opid = crate::lock(&conn.slot.operation).opid;
            self.node.log().info(
                "-",
                20_883,
                &format!("conn{}", conn.id),
                "Interrupted operation as its client disconnected",
                nestor_model::doc! { "opId": i64::from(opid) },
            );
        }
        match after.park {
            Some(_) if after.waits_for_lock => conn.slot.pause_operation(Waits::ForLock),
            Some(_) => conn.slot.pause_operation(Waits::ForNews),
            None => conn.slot.finish_operation(),
        }
        let observed = after.observed;
        let time = after.effects.operation_time.unwrap_or_else(|| self.last_time());
        let replica_set = self.options.replica_set.is_some();
        if after.hang_up {
            let mut reply = writer.abandon();
            reply.truncate(reply_at);
            return Outcome {
                reply,
                reply_at,
                close: true,
                ..Outcome::default()
            };
        }
        let reply = match &result {
            Ok(()) => {
                if let Some(error) = &after.write_concern_error {
                    reply::write_concern_error(&mut writer, error);
                    reply::write_concern_labels(&mut writer, error);
                }
                reply::finish(&mut writer, replica_set.then_some(time));
                writer.finish()
            }
            Err(error) => {
                self.node.counters.asserts.user.add(1);
                let mut writer = RawWriter::onto(writer.abandon());
                reply::write_error(&mut writer, error);
                if let Some(error) = &after.write_concern_error {
                    reply::write_concern_error(&mut writer, error);
                }
                // A fail point changes nothing: with the present version drivers would take the error for an old one.
                if replica_set && reply::is_state_change(error.code()) && !after.by_fail_point {
                    hello::write_topology_version(&mut writer, self);
                }
                reply::write_times(&mut writer, replica_set.then_some(time));
                writer.finish()
            }
        };
        if let Some(observed) = observed {
            let ending = Ending {
                response_bytes: Some(reply.len() - reply_at),
                error: result.as_ref().err(),
            };
            afterwards(|| observed.record(self, &conn.slot, ending));
        }
        if after.park.is_none() {
            conn.parked = None;
        } else if conn.parked.is_none() {
            conn.parked = Some(Instant::now());
        }
        Outcome {
            reply,
            reply_at,
            wait: after.effects.wait,
            park: after.park,
            exhaust: after.exhaust,
            close: after.close,
        }
    }

    /// The client has gone that sent `body`, a command that parked or streams and that will not be run again.
    pub fn abandon(&self, body: RawDoc<'_>) {
        get_more::abandon(self, body);
    }

    /// What a command would read and write, and which rights that needs; `None` when it is no operation on documents. The
    /// command does not run.
    ///
    /// Errors: those of the command that are told before it runs.
    pub fn access(&self, conn: &mut Connection, request: Request<'_>) -> Result<Option<Access>> {
        self.without_running(conn, &request, |context| {
            let read = context.current_view();
            let command = Command {
                facts: context.spec,
                body: request.body,
                sequences: request.sequences,
            };
            let intent = prepare::intent(context, read.view(), command)?;
            intent.map(|intent| Access::of(&intent, read.view())).transpose()
        })
    }

    /// Whether whoever is logged in may run a command. The command does not run.
    ///
    /// Errors: 13; those of the command that are told before it runs.
    pub fn authorize(&self, conn: &mut Connection, request: Request<'_>) -> Result<()> {
        self.without_running(conn, &request, authorization::check)
    }

    /// Does something with the context that a command would run in.
    fn without_running<T>(
        &self,
        conn: &mut Connection,
        request: &Request<'_>,
        work: impl FnOnce(&mut Context<'_>) -> Result<T>,
    ) -> Result<T> {
        let name = request.body.iter().next().map_or("", |(name, _)| name);
        let Some(spec) = lookup(name) else {
            bail!(CommandNotFound, "no such command: '{name}'");
        };
        let generic = Generic::parse(request.body, spec, conn.identity.owner())?;
        let interrupt = Interrupt::new(conn.slot.kill.clone(), None);
        let words = (request.body, request.sequences);
        work(&mut Context::new(
            self,
            conn,
            spec,
            words,
            generic,
            interrupt,
            Instant::now(),
        ))
    }

    fn dispatch(
        &self,
        conn: &mut Connection,
        body: nestor_model::RawDoc<'_>,
        sequences: &[Sequence<'_>],
        (legacy, exhaust_allowed): (bool, bool),
        writer: &mut RawWriter,
    ) -> (Result<()>, After) {
        let started = Instant::now();
        let mut after = After::default();
        let mut number = None;
        let connection = conn.id;
        let mut run = || -> Result<()> {
            let Some((name, _)) = body.iter().next() else {
                bail!(CommandNotFound, "no such command: ''");
            };
            let Some((place, spec)) = lookup_numbered(name) else {
                bail!(CommandNotFound, "no such command: '{name}'");
            };
            number = Some(place);
            if legacy && !spec.flags.has(Flags::LEGACY) {
                bail!(
                    352,
                    "Unsupported OP_QUERY command: {name}. The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal"
                );
            }
            let mut generic = Generic::parse(body, spec, conn.identity.owner())?;
            let terms = &mut generic.terms;
            if privileges::is_anonymous(self, conn) {
                // Sessions are of users: who is none makes none.
                terms.lsid = None;
            }
            if legacy && terms.db.is_empty() {
                terms.db = ADMIN;
            }
            if terms.db.is_empty() {
                bail!(40571, "OP_MSG requests require a $db argument");
            }
            nestor_database::names::check_database(terms.db)?;
            if spec.flags.has(Flags::ADMIN) && terms.db != ADMIN {
                bail!(
                    Unauthorized,
                    "{} may only be run against the admin database.",
                    spec.name
                );
            }
            rw_concern::apply(&self.node.concerns, terms, spec.flags);
            if conn.parked.is_none() {
                let opid = self.connections.next_operation();
                let shown = facts::hidden(body, TABLE.secrets(spec, body));
                let shown = shown.as_ref().map_or(body, |shown| shown.as_raw());
                conn.slot.start_operation(spec.name, opid, shown, started);
                if let Some(lsid) = generic.terms.lsid {
                    conn.slot.enter_session(lsid);
                    if conn.comes_to(lsid, started) {
                        self.sessions.note(lsid, started)?;
                    }
                }
            }
            let secs = started.saturating_duration_since(self.started).as_secs();
            conn.slot.api_use.note(generic.api_version, secs);
            if conn.parked.is_none() {
                let n = spec.statements.map_or(1, |field| count_items(field, body, sequences));
                self.node.counters.operations.count(spec.op.counter(), n);
            }
            let deadline = generic
                .max_time_ms
                .filter(|ms| *ms > 0 && !spec.flags.has(Flags::OWN_TIME))
                // The time it was parked counts.
                .map(|ms| conn.parked.unwrap_or(started) + Duration::from_millis(ms.into()));
            let interrupt = Interrupt::new(conn.slot.kill.clone(), deadline);
            if !spec.flags.has(Flags::FOR_REPLY) {
                interrupt.outlive_client();
            }
            let mut context = Context::new(self, conn, spec, (body, sequences), generic, interrupt, started);
            context.legacy = legacy;
            context.protocol = if legacy { "op_query" } else { "op_msg" };
            context.exhaust_allowed = exhaust_allowed;
            let (interrupt, account) = (context.interrupt.clone(), context.conn.slot.account.clone());
            let may_run = |context: &mut Context<'_>| {
                let allowed = authorization::check(context);
                audit::checked(context, &allowed);
                let verdict = allowed.and_then(|()| gate::check(context))?;
                if verdict == Verdict::Run && context.conn.parked.is_some() {
                    context.conn.slot.resume_operation();
                }
                if verdict == Verdict::Run && !context.conn.is_own {
                    context.admit(context.conn.parked.is_some())?;
                }
                Ok(verdict)
            };
            let result = statement::under(&interrupt, account.as_ref(), || match may_run(&mut context) {
                Ok(Verdict::Run) if context.terms.in_transaction => {
                    let is_commit = spec.flags.has(Flags::COMMITS);
                    transaction::run(&mut context, is_commit, used::collections, |context| {
                        (spec.run)(context, writer)
                    })
                }
                Ok(Verdict::Run) => (spec.run)(&mut context, writer),
                Ok(Verdict::Wait) => Ok(()),
                Ok(Verdict::HangUp) => {
                    context.after.hang_up = true;
                    Ok(())
                }
                Err(error) => Err(error),
            });
            let result = result.and_then(|()| match spec.flags.has(Flags::READ_CONCERN) {
                true => context.await_read_concern(),
                false => Ok(()),
            });
            if result.is_err() && (context.tried_write.get() || spec.flags.has(Flags::ENDS_TXN)) {
                context.await_what_is_seen();
                context.note_concern_error();
            }
            let result = result.map_err(|error| match context.after.labels_given {
                true => error,
                false => {
                    let concern_failed = context.after.write_concern_error.is_some();
                    let labels = failures::labels(&context, error.code(), concern_failed);
                    labels.into_iter().fold(error, nestor_model::Error::with_label)
                }
            });
            context.after.hang_up |= context.cut.get();
            afterwards(|| self.note_end(connection, &mut context, started, &result));
            after = context.after;
            after.effects = context.statement.effects;
            result
        };
        let result = run();
        // A command that waits is counted when it is done.
        if after.park.is_none() {
            let metrics = &self.node.counters.metrics;
            match number {
                Some(number) => metrics.count_command(connection, number, result.is_err()),
                None => metrics.unknown_commands.add(1),
            }
        }
        (result, after)
    }

    /// Counts how long the command took: for all of them together, and for `top` under the collection it names. One that
    /// waits is counted when it is done.
    fn count_usage(&self, context: &Context<'_>, took: Duration, done: bool) {
        if context.after.park.is_some() {
            return;
        }
        let op = context.spec.op;
        let class = op.class();
        self.node.counters.metrics.count_latency(context.conn.id, class, took);
        let named = context.named_collection();
        let flags = context.spec.flags;
        if flags.has(Flags::DROPS) && done {
            let (db, coll) = named.map_or((context.db(), None), |(db, coll)| (db, Some(coll)));
            self.node.top.forget(db, coll);
        } else if let (Some((db, coll)), false) = (named, flags.has(Flags::ADMIN)) {
            self.node.top.count(db, coll, (op.kind(), class), took);
        }
    }

    /// Housekeeping, to be called about once a second: that of the database, and the deletion of expired documents when it is
    /// time.
    pub fn tick(&self) {
        self.database.tick();
        if self.engine.is_writable() {
            self.ttl_tick();
        } else {
            self.follow_settings();
        }
    }

    /// The reply of a command whose wait for the journal or the log failed, or was over before it ended (`None`): a write is there and says so, a
    /// read fails, as what it saw may be rolled back. The bytes in front of the reply stay.
    pub fn not_durable(
        &self,
        mut reply: Vec<u8>,
        reply_at: usize,
        wait: &Wait,
        failure: Option<nestor_model::Error>,
    ) -> Vec<u8> {
        if wait.is_read {
            reply.truncate(reply_at);
            let mut writer = RawWriter::onto(reply);
            let late =
                || nestor_model::Error::new(ErrorCode::MaxTimeMSExpired, "the log of the set did not answer in time");
            reply::write_error(&mut writer, &failure.unwrap_or_else(late));
            return writer.finish();
        }
        let body = reply.split_off(reply_at);
        let Ok(body) = RawDoc::validate(&body) else {
            debug_assert!(false, "replies are well-formed");
            return reply;
        };
        let mut writer = RawWriter::onto(reply);
        for element in body.elements() {
            // One error is told; the one there is older.
            if element.name() != "ok" || body.get("writeConcernError").is_some() {
                writer.append_element_bytes(element.as_bytes());
                continue;
            }
            writer.begin_document("writeConcernError");
            match &failure {
                Some(error) => {
                    writer.append("code", error.code().number());
                    writer.append("codeName", error.code().name().as_str());
                    writer.append("errmsg", error.message());
                }
                None => {
                    writer.append("code", 64);
                    writer.append("codeName", "WriteConcernTimeout");
                    writer.append("errmsg", "waiting for replication timed out");
                    writer.begin_document("errInfo");
                    writer.append("wtimeout", true);
                    writer.end();
                }
            }
            writer.end();
            writer.append_element_bytes(element.as_bytes());
        }
        writer.finish()
    }

    /// Tells of a command that is over those who count, and those who watch.
    fn note_end(&self, connection: i64, context: &mut Context<'_>, started: Instant, result: &Result<()>) {
        audit::write(context, result);
        let took = started.elapsed();
        self.count_usage(context, took, result.is_ok());
        let metrics = &self.node.counters.metrics;
        metrics.count_work(connection, &context.figures.borrow());
        if context.generic.max_time_ms.is_some() && result.as_ref().is_err_and(is_out_of_time) {
            metrics.timed_out.add(1);
        }
        if result.is_ok() && !context.conn.is_own {
            query_stats::note(context, took);
        }
        if self.profiler.concerns(took) && is_recorded(context) {
            context.after.observed = Some(Box::new(observed(context, took)));
        }
    }

    /// How long the command of that name may take.
    pub fn length_of(&self, name: &str) -> Length {
        match lookup(name).map(|spec| spec.flags) {
            Some(flags) if flags.has(Flags::USUALLY_SHORT) => Length::UsuallyShort,
            Some(flags) if flags.has(Flags::LONG) => Length::Long,
            _ => Length::Short,
        }
    }
}

/// The command that `context` ran, as those who watch see it.
fn observed(context: &Context<'_>, took: Duration) -> Observed {
    let ns = context.spec.profiled_namespace(context.db(), context.body);
    Observed::command(context, ns, context.body.as_doc().to_document(), took)
}

/// Whether the profiler and the log look at a command: not what drivers send on their own, nor one that is to run again.
fn is_recorded(context: &Context<'_>) -> bool {
    let flags = context.spec.flags;
    let is_recorded = !flags.has(Flags::QUIET) && !flags.has(Flags::UNRECORDED);
    is_recorded
        && TABLE.secrets(context.spec, context.body).is_empty()
        && context.after.park.is_none()
        && !context.after.hang_up
}

/// How many documents or statements a command was given, however they came.
fn count_items(field: &str, body: RawDoc<'_>, sequences: &[Sequence<'_>]) -> usize {
    match sequences.iter().find(|sequence| sequence.name == field) {
        Some(sequence) => sequence.documents.len(),
        None => body
            .get(field)
            .and_then(|value| value.as_array())
            .map_or(0, |array| array.len()),
    }
}

fn is_out_of_time(error: &nestor_model::Error) -> bool {
    error.code() == ErrorCode::MaxTimeMSExpired
}

static ALL: LazyLock<Vec<&'static CommandSpec>> =
    LazyLock::new(|| crate::commands::ALL.iter().copied().flatten().copied().collect());

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(ALL.iter().map(|spec| -> &'static Facts { &spec.facts })));

/// The command of that name. Names are case-sensitive.
pub fn lookup(name: &str) -> Option<&'static CommandSpec> {
    lookup_numbered(name).map(|(_, spec)| spec)
}

/// As [`lookup`], with the command's place in [`all`].
pub fn lookup_numbered(name: &str) -> Option<(usize, &'static CommandSpec)> {
    let number = TABLE.number(name)?;
    Some((number, *ALL.get(number)?))
}

/// All commands, in the order of their families.
pub fn all() -> impl Iterator<Item = &'static CommandSpec> {
    ALL.iter().copied()
}
