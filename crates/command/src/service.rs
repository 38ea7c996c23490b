//! One database process: what all connections share, and the way a command runs.

use crate::api_use::PastUse;
use crate::bootstrap;
use crate::commands::diagnostic::host_info;
use crate::commands::plans::settings::stored_shape;
use crate::commands::prepare::{self, Command};
use crate::commands::query::get_more;
use crate::commands::replication::hello;
use crate::commands::security;
use crate::connection::{Connection, Slot, Waits};
use crate::context::{After, Context};
use crate::cursors::Cursors;
use crate::dispatch;
use crate::facts::Flags;
use crate::failures;
use crate::gate::{self, Verdict};
use crate::generic::Generic;
use crate::history;
use crate::node::{Node, ProcessOptions};
use crate::operation::Access;
use crate::parameters::Param;
use crate::profiler::record::{Ending, Observed};
use crate::profiler::{self, Profiler};
use crate::query_settings::QuerySettings;
use crate::reply;
use crate::request::{Outcome, Request, Sequence};
use crate::server_state::State;
use crate::sessions::Sessions;
use crate::snapshots::Snapshots;
use crate::transaction;
use nestor_exec::plan_cache::Tuning;
use nestor_exec::{Interrupt, KillSwitch, PlanCache};
use nestor_model::memory::Pool;
use nestor_model::random::Random;
use nestor_model::statement;
use nestor_model::{ErrorCode, RawDoc, RawWriter, Result, Str, Timestamp, bail};
use nestor_storage::oplog::OplogCursor;
use nestor_storage::{Engine, OpTime, Positions};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How the service presents itself.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// Replica set name; `None` for a standalone.
    pub replica_set: Option<Str>,
    /// `host:port` as clients reach it.
    pub host: Str,
    /// The process around it.
    pub process: ProcessOptions,
    /// What the profiler starts with.
    pub profiler: profiler::AtStart,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            replica_set: Some("rs0".into()),
            host: "localhost:27017".into(),
            process: ProcessOptions::default(),
            profiler: profiler::AtStart::default(),
        }
    }
}

/// How long a command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// It neither takes long nor waits for the disk.
    Short,
    /// It may be long and mostly is not.
    UsuallyShort,
    /// It may be long.
    Long,
}

/// Opens the oplog behind an optime.
pub type OpenOplog = Box<dyn Fn(Timestamp) -> OplogCursor + Send + Sync>;

/// One database process. Shared by all connections; every method takes `&self`.
pub struct Service {
    /// When expired documents are deleted.
    pub ttl: crate::ttl::TtlMonitor,
    /// How it presents itself.
    pub options: ServiceOptions,
    /// Open connections.
    pub connections: Arc<Connections>,
    /// When it started.
    pub started: Instant,
    /// The process.
    pub node: Node,
    /// The store.
    pub engine: Engine,
    /// Open cursors.
    pub cursors: Arc<Cursors>,
    /// Logical sessions.
    pub sessions: Arc<Sessions>,
    /// What stages of pipelines read of the server.
    pub state: Arc<State>,
    /// Which operations are recorded.
    pub profiler: Profiler,
    /// What is set for queries of a shape.
    pub query_settings: Arc<QuerySettings>,
    /// Which indexes queries of a shape may use.
    pub index_filters: crate::plans::IndexFilters,
    /// Which plan queries of a shape run by.
    pub plan_cache: Arc<PlanCache>,
    /// Index builds that run.
    pub index_builds: crate::index_builds::IndexBuilds,
    /// Where blocking operators and index builds spill.
    pub spill_dir: PathBuf,
    /// States that snapshot reads may ask for again.
    pub snapshots: Snapshots,
    /// Opens the oplog behind an optime.
    pub open_oplog: OpenOplog,
    random: Random,
    opids: AtomicU32,
}

/// The open connections by id.
#[derive(Debug, Default)]
pub struct Connections {
    last_id: AtomicI64,
    slots: Mutex<BTreeMap<i64, Arc<Slot>>>,
    /// Which API versions were declared on connections that are closed.
    pub past_api_use: PastUse,
    /// Memory of the operations that they run.
    pub memory: Arc<Pool>,
}

impl Connections {
    pub(crate) fn add(&self, peer: &str) -> Arc<Slot> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let kill = Arc::<KillSwitch>::default();
        let slot = Arc::new(Slot {
            id,
            peer: peer.into(),
            account: Some(self.memory.open(kill.clone())),
            kill,
            ..Slot::default()
        });
        crate::lock(&self.slots).insert(id, slot.clone());
        slot
    }

    pub(crate) fn remove(&self, id: i64) {
        let slot = crate::lock(&self.slots).remove(&id);
        if let Some(slot) = slot {
            self.past_api_use.keep(&slot);
        }
    }

    /// The open connections in order of their ids.
    pub fn all(&self) -> Vec<Arc<Slot>> {
        crate::lock(&self.slots).values().cloned().collect()
    }

    /// How many were opened since the start.
    pub fn total_created(&self) -> i64 {
        self.last_id.load(Ordering::Relaxed)
    }
}

impl Service {
    /// A service over a store.
    pub fn new(options: ServiceOptions, engine: Engine) -> Self {
        let seed = random_seed();
        let connections = Arc::<Connections>::default();
        let sessions = Arc::<Sessions>::default();
        let plan_cache = Arc::<PlanCache>::default();
        let oplog = engine.clone();
        let spill_dir = engine.scratch();
        let node = Node::new(options.process.clone());
        let cursors = Arc::new(Cursors::new(seed));
        let query_settings = QuerySettings::load(&engine, stored_shape);
        if let Err(error) = &query_settings {
            let attr = nestor_model::doc! { "error": error.to_string() };
            node.log()
                .error("QUERY", 20_002, "initandlisten", "Cannot read the query settings", attr);
        }
        let query_settings = Arc::new(query_settings.unwrap_or_default());
        let service = Self {
            snapshots: Snapshots::default(),
            open_oplog: Box::new(move |after| oplog.oplog_cursor(after)),
            engine,
            cursors: cursors.clone(),
            query_settings: query_settings.clone(),
            state: Arc::new(State {
                cursors,
                query_settings,
                host: options.host.clone(),
                started_ms: crate::clock::now_ms(),
                connections: connections.clone(),
                sessions: sessions.clone(),
                top: node.top.clone(),
                plan_cache: plan_cache.clone(),
            }),
            plan_cache,
            sessions,
            ttl: Default::default(),
            profiler: Profiler::new(options.profiler),
            index_filters: Default::default(),
            index_builds: Default::default(),
            spill_dir,
            random: Random::new(seed.rotate_left(32)),
            node,
            options,
            connections,
            started: Instant::now(),
            opids: AtomicU32::new(0),
        };
        if let Err(error) = service.node.concerns.load(&service.engine) {
            let attr = nestor_model::doc! { "error": error.to_string() };
            let log = service.node.log();
            log.error(
                "COMMAND",
                20_003,
                "initandlisten",
                "Cannot read the default concerns",
                attr,
            );
        }
        service.index_builds.leave_all(&service.engine);
        history::recover(&service.engine, &service.sessions, &service.node.options.log);
        if let Err(error) = bootstrap::run(&service.engine, &service.options, || service.new_uuid()) {
            service.node.log().error(
                "CONTROL",
                20_001,
                "initandlisten",
                "Cannot make the system collections",
                nestor_model::doc! { "error": error.to_string() },
            );
        }
        service
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
        let time = after.operation_time.unwrap_or_else(|| self.last_time());
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
                    hello::write_topology_version(&mut writer, self.node.process_id);
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
            observed.record(self, conn, ending);
        }
        if after.park.is_none() {
            conn.parked = None;
        } else if conn.parked.is_none() {
            conn.parked = Some(Instant::now());
        }
        Outcome {
            reply,
            reply_at,
            wait: after.wait,
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
        let name = request.body.iter().next().map_or("", |(name, _)| name);
        let Some(spec) = dispatch::lookup(name) else {
            bail!(CommandNotFound, "no such command: '{name}'");
        };
        let generic = Generic::parse(request.body, spec)?;
        let interrupt = Interrupt::new(conn.slot.kill.clone(), None);
        let words = (request.body, request.sequences);
        let context = Context::new(self, conn, spec, words, generic, interrupt, Instant::now());
        let read = context.current_view();
        let command = Command {
            name: spec.name,
            body: request.body,
            sequences: request.sequences,
        };
        prepare::access(&context, read.view(), command)
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
            let Some((place, spec)) = dispatch::lookup_numbered(name) else {
                bail!(CommandNotFound, "no such command: '{name}'{}", security::why_not(name));
            };
            number = Some(place);
            if legacy && !spec.flags.has(Flags::LEGACY) {
                bail!(
                    352,
                    "Unsupported OP_QUERY command: {name}. The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal"
                );
            }
            let mut generic = Generic::parse(body, spec)?;
            if legacy && generic.db.is_empty() {
                generic.db = "admin";
            }
            if generic.db.is_empty() {
                bail!(40571, "OP_MSG requests require a $db argument");
            }
            crate::names::check_database(generic.db)?;
            if spec.flags.has(Flags::ADMIN) && generic.db != "admin" {
                bail!(
                    Unauthorized,
                    "{} may only be run against the admin database.",
                    spec.name
                );
            }
            self.node.concerns.apply(&mut generic, spec.flags);
            if conn.parked.is_some() {
                conn.slot.resume_operation();
            } else {
                let opid = self.opids.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
                conn.slot.start_operation(&spec.facts, opid, body, started);
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
                // What it has waited counts.
                .map(|ms| conn.parked.unwrap_or(started) + Duration::from_millis(ms.into()));
            let interrupt = Interrupt::new(conn.slot.kill.clone(), deadline);
            if !spec.flags.has(Flags::FOR_REPLY) {
                interrupt.outlive_client();
            }
            let mut context = Context::new(self, conn, spec, (body, sequences), generic, interrupt, started);
            context.legacy = legacy;
            context.exhaust_allowed = exhaust_allowed;
            let (interrupt, account) = (context.interrupt.clone(), context.conn.slot.account.clone());
            let result = statement::under(&interrupt, account.as_ref(), || match gate::check(&mut context) {
                Ok(Verdict::Run) if context.generic.in_transaction => transaction::run(&mut context, writer),
                Ok(Verdict::Run) => (spec.run)(&mut context, writer),
                Ok(Verdict::Wait) => Ok(()),
                Ok(Verdict::HangUp) => {
                    context.after.hang_up = true;
                    Ok(())
                }
                Err(error) => Err(error),
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
            let took = started.elapsed();
            self.count_usage(&context, took, result.is_ok());
            let metrics = &self.node.counters.metrics;
            metrics.count_work(connection, &context.figures.borrow());
            if context.generic.max_time_ms.is_some() && result.as_ref().is_err_and(is_out_of_time) {
                metrics.timed_out.add(1);
            }
            if self.profiler.concerns(took) && is_recorded(&context) {
                context.after.observed = Some(Box::new(Observed::command(&context, took)));
            }
            after = context.after;
            result
        };
        let result = run();
        // One that waits is counted when it is done.
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

    /// Housekeeping, to be called about once a second: deletes expired documents when it is time, lets go of idle cursors,
    /// of transactions that were open for too long, of sessions and states that nobody uses.
    pub fn tick(&self) {
        self.cursors.sweep();
        self.sessions.expire_transactions();
        self.node.transactions.expiry_passes.add(1);
        let gone = self.sessions.sweep();
        if !gone.is_empty() {
            self.cursors.kill_sessions(|lsid| gone.contains(lsid));
        }
        self.snapshots.sweep();
        // While there is no room for it, the next second is as good.
        let _ = self.index_builds.drop_left(&self.engine, &self.node.gates.admission);
        self.ttl_tick();
    }

    /// The newest cluster time there is: that of the last commit.
    pub fn last_time(&self) -> Timestamp {
        self.positions().last.ts
    }

    /// How far the history reaches. An engine in which nothing was ever written is at the present moment.
    pub fn positions(&self) -> Positions {
        let positions = self.engine.positions();
        if positions.last.ts != Timestamp::default() {
            return positions;
        }
        // Drivers take a zero time for none at all.
        let now = OpTime {
            ts: Timestamp {
                secs: crate::clock::now_ms().div_euclid(1000) as u32,
                inc: 1,
            },
            ..positions.last
        };
        Positions {
            last: now,
            durable: now,
            committed: now,
        }
    }

    /// The next number of a sequence that nobody outside can guess from ids of earlier runs; not for secrets.
    pub fn random(&self) -> u64 {
        self.random.next()
    }

    /// A random UUID (version 4).
    pub fn new_uuid(&self) -> [u8; 16] {
        self.random.next_uuid()
    }

    /// Waits until `time` has been reached. A client knows only times that this node gave or that it was told by
    /// another member; the latter are reached by writing nothing at a later time, so one tries once.
    ///
    /// Errors: 50 when the command's time is over, 2 for a time that nobody gave.
    pub fn await_time(&self, time: Timestamp, interrupt: &Interrupt) -> Result<()> {
        if time <= self.last_time() {
            return Ok(());
        }
        interrupt.check()?;
        bail!(
            InvalidOptions,
            "readConcern afterClusterTime value must not be greater than the current clusterTime. Requested clusterTime: {{ ts: Timestamp({}, {}) }}; current clusterTime: {{ ts: Timestamp({}, {}) }}",
            time.secs,
            time.inc,
            self.last_time().secs,
            self.last_time().inc
        )
    }

    /// The reply of a write whose wait for the journal failed, or was over before it ended (`None`).
    /// What was in front of the reply stays.
    pub fn not_durable(&self, mut reply: Vec<u8>, reply_at: usize, failure: Option<nestor_model::Error>) -> Vec<u8> {
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

    /// Memory in bytes a blocking operator may hold before it spills (parameter
    /// `internalQueryMaxBlockingSortMemoryUsageBytes`).
    pub fn blocking_memory_bytes_max(&self) -> usize {
        usize::try_from(self.node.parameters.number(Param::SortMemoryBytes)).unwrap_or(usize::MAX)
    }

    /// Whether commands that do not say may spill to disk.
    pub fn disk_use_by_default(&self) -> bool {
        self.node.parameters.is_on(Param::AllowDiskUseByDefault)
    }

    /// Brings what depends on parameters in line with them; to be called after a change.
    pub fn parameters_changed(&self) {
        self.node.parameters_changed();
        let timeout_ms = self.node.parameters.number(Param::CursorTimeoutMillis);
        self.cursors
            .set_idle_timeout(Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(u64::MAX)));
        let parameters = &self.node.parameters;
        let number = |parameter| u64::try_from(parameters.number(parameter)).unwrap_or(0);
        let bytes = match number(Param::OperationMemoryBytes) {
            0 => (u64::try_from(host_info::usable_memory_mib()).unwrap_or(0) << 20) / 4,
            bytes => bytes,
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.connections.memory.set_limit(bytes);
        self.plan_cache.set_tuning(Tuning {
            works_min: number(Param::PlanTrialWorks),
            documents_share: parameters.real(Param::PlanTrialCollFraction),
            rows_max: number(Param::PlanTrialResultsMax),
            eviction_ratio: parameters.real(Param::PlanCacheEvictionRatio),
            works_growth: parameters.real(Param::PlanCacheWorksGrowth),
            entries_max: usize::try_from(number(Param::PlanCacheEntriesMax)).unwrap_or(usize::MAX),
        });
    }

    /// How long the command of that name may take.
    pub fn length_of(&self, name: &str) -> Length {
        match dispatch::lookup(name).map(|spec| spec.flags) {
            Some(flags) if flags.has(Flags::USUALLY_SHORT) => Length::UsuallyShort,
            Some(flags) if flags.has(Flags::LONG) => Length::Long,
            _ => Length::Short,
        }
    }
}

/// Whether the profiler and the log look at a command: not what drivers send on their own, nor one that is to run again.
fn is_recorded(context: &Context<'_>) -> bool {
    let flags = context.spec.flags;
    let is_recorded = !flags.has(Flags::QUIET) && !flags.has(Flags::UNRECORDED);
    is_recorded && context.after.park.is_none() && !context.after.hang_up
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

/// A number from the operating system's randomness, by way of the standard library's hash keys.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
