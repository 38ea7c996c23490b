//! One database process: what all connections share.

use crate::advisory::AdvisoryLocks;
use crate::channels::Channels;
use crate::connections::Connections;
use crate::cursors::Cursors;
use crate::index_builds::IndexBuilds;
use crate::index_filters::IndexFilters;
use crate::node::Node;
use crate::open_buckets::OpenBuckets;
use crate::options::DatabaseOptions;
use crate::parameters::{ColumnsUsed, Param};
use crate::profiler::Profiler;
use crate::query_settings::QuerySettings;
use crate::query_stats::QueryStats;
use crate::sequences::Sequences;
use crate::sessions::{Sessions, history};
use crate::snapshots::Snapshots;
use crate::stored_functions::StoredFunctions;
use crate::traffic::Traffic;
use crate::turns::{Number, Turns};
use crate::users::Users;
use crate::{bootstrap, clock, machine};
use nestor_columns::Columns;
use nestor_exec::interrupt::while_waiting;
use nestor_exec::pipeline::ServerState;
use nestor_exec::plan_cache::Tuning;
use nestor_exec::search::Searches;
use nestor_exec::{Interrupt, PlanCache};
use nestor_model::random::Random;
use nestor_model::{Result, Str, Timestamp, bail, doc};
use nestor_query::env::ScriptLibrary;
use nestor_storage::log::{Interest, LogPosition, LogReader};
use nestor_storage::oplog::OplogCursor;
use nestor_storage::{Engine, Guarantee, Lsn, OpTime, Positions, Scratch, Snapshot, View as _};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Opens the log behind a position.
pub type OpenLog = Box<dyn Fn(LogPosition, Interest) -> LogReader + Send + Sync>;

/// Opens the oplog behind an optime.
pub type OpenOplog = Box<dyn Fn(Timestamp) -> OplogCursor + Send + Sync>;

/// How long a wait for another member's commit lasts before it looks whether it is interrupted.
const AWAIT_LOOK: Duration = Duration::from_millis(20);

/// One database process. Shared by all connections; every method takes `&self`.
pub struct Database {
    /// How it presents itself.
    pub options: DatabaseOptions,
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
    /// The state of the server that stages of pipelines read.
    pub state: Arc<dyn ServerState>,
    /// Which operations are recorded.
    pub profiler: Profiler,
    /// The users and what each of them may do.
    pub users: Users,
    /// The settings for queries, by shape.
    pub query_settings: Arc<QuerySettings>,
    /// What queries cost, by shape.
    pub query_stats: Arc<QueryStats>,
    /// Limits for operations.
    pub traffic: Traffic,
    /// Which indexes queries of a shape may use.
    pub index_filters: IndexFilters,
    /// Which plan queries of a shape run by.
    pub plan_cache: Arc<PlanCache>,
    /// Buckets of time-series collections that may have room.
    pub open_buckets: OpenBuckets,
    /// Documents of collections kept path by path.
    pub columns: Arc<Columns>,
    /// Search indexes.
    pub searches: Arc<Searches>,
    /// Locks that sessions of SQL take by agreement.
    pub advisory: Arc<AdvisoryLocks>,
    /// Channels on which sessions of SQL tell each other something.
    pub channels: Arc<Channels>,
    /// Numbers of sequences that are given from memory.
    pub sequences: Sequences,
    /// Index builds that run.
    pub index_builds: IndexBuilds,
    /// Where blocking operators and index builds spill.
    pub spill_dir: Scratch,
    /// Finds the functions that databases store for scripts.
    pub script_library: Arc<dyn ScriptLibrary>,
    /// States that snapshot reads may ask for again.
    pub snapshots: Snapshots,
    /// Opens the oplog behind an optime.
    pub open_oplog: OpenOplog,
    /// Opens the log behind a position.
    pub read_log: OpenLog,
    random: Random,
    /// Reads what sessions did before the start; ends with this.
    _history: Option<history::Reader>,
}

/// The state of the server that stages may read.
pub struct Shared {
    /// The store.
    pub engine: Engine,
    /// `host:port` as clients reach it.
    pub host: Str,
    /// When the server started, in milliseconds.
    pub started_ms: i64,
    /// Open connections and their operations.
    pub connections: Arc<Connections>,
    /// Logical sessions.
    pub sessions: Arc<Sessions>,
    /// Number and time of operations, by collection.
    pub top: Arc<crate::observe::top::Top>,
    /// Which plan queries of a shape run by.
    pub plan_cache: Arc<PlanCache>,
    /// Open cursors.
    pub cursors: Arc<Cursors>,
    /// The settings for queries, by shape.
    pub query_settings: Arc<QuerySettings>,
    /// What queries cost, by shape.
    pub query_stats: Arc<QueryStats>,
}

impl Database {
    /// A database over a store, which counts the runs of so many commands. `state` makes what stages read of the server.
    pub fn new(
        options: DatabaseOptions,
        engine: Engine,
        commands: usize,
        state: impl FnOnce(Shared) -> Arc<dyn ServerState>,
    ) -> Self {
        let seed = random_seed();
        let connections = Arc::<Connections>::default();
        let sessions = Arc::<Sessions>::default();
        let plan_cache = Arc::<PlanCache>::default();
        let cursors = Arc::new(Cursors::new(seed));
        let idle = Arc::downgrade(&cursors);
        let close_idle = move |than| {
            idle.upgrade()
                .is_some_and(|cursors: Arc<Cursors>| cursors.close_largest_idle(than))
        };
        connections.memory.close_idle_by(close_idle);
        let query_settings = Arc::<QuerySettings>::default();
        let query_stats = Arc::<QueryStats>::default();
        let (oplog, log) = (engine.clone(), engine.clone());
        let spill_dir = engine.scratch();
        let node = Node::new(options.process.clone(), commands);
        let state = state(Shared {
            engine: engine.clone(),
            host: options.host.clone(),
            started_ms: clock::now_ms(),
            connections: connections.clone(),
            sessions: sessions.clone(),
            top: node.top.clone(),
            plan_cache: plan_cache.clone(),
            cursors: cursors.clone(),
            query_settings: query_settings.clone(),
            query_stats: query_stats.clone(),
        });
        // Whoever does not write needs none of it; nobody begins to within a process.
        let is_writable = engine.is_writable();
        let history = match is_writable {
            true => history::recover(&engine, &sessions, &node.options.log),
            false => Some(history::follow(&engine, &node.options.log)),
        };
        let columns = Arc::new(Columns::new(engine.clone(), options.column_bytes_max));
        let searches = Arc::new(Searches::new(engine.clone(), options.search_bytes_max));
        let database = Self {
            snapshots: Snapshots::default(),
            users: Users::new(&engine),
            script_library: Arc::new(StoredFunctions::new(&engine)),
            open_oplog: Box::new(move |after| oplog.oplog_cursor(after)),
            read_log: Box::new(move |after, interest| log.read_log(after, interest)),
            engine,
            cursors,
            state,
            plan_cache,
            sessions,
            profiler: Profiler::new(options.profiler),
            query_settings,
            query_stats,
            traffic: Traffic::default(),
            index_filters: IndexFilters::default(),
            open_buckets: OpenBuckets::default(),
            columns,
            searches,
            advisory: Arc::default(),
            channels: Arc::default(),
            sequences: Sequences::default(),
            index_builds: IndexBuilds::default(),
            spill_dir,
            random: Random::new(seed.rotate_left(32)),
            node,
            options,
            connections,
            started: Instant::now(),
            _history: history,
        };
        if is_writable {
            database.begin_writing();
        }
        crate::oplog::apply(&database.engine, &database.options);
        database
    }

    /// Makes what every data directory has, and finds what is left to be dropped.
    fn begin_writing(&self) {
        self.index_builds.leave_all(&self.engine);
        if let Err(error) = bootstrap::run(&self.engine, &self.options, || self.new_uuid()) {
            self.node.log().error(
                "CONTROL",
                20_001,
                "initandlisten",
                "Cannot make the system collections",
                doc! { "error": error.to_string() },
            );
        }
    }

    /// Waits on this thread until a commit is on disk, or in the log of the set that has one. Where nobody else has work under way and the disk is fast the thread syncs at once:
    /// to hand on what else it serves would cost more.
    ///
    /// Errors: that it is unknown whether the commit will survive.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        if self.engine.is_member() {
            return Ok(while_waiting(|| self.engine.wait_reached(lsn, Guarantee::Committed))?);
        }
        let reached = match self.node.counters.connections.has_one_at_work() {
            true => self.engine.try_reach(lsn, &Guarantee::Durable),
            false => None,
        };
        match reached {
            Some(result) => Ok(result?),
            None => Ok(while_waiting(|| self.engine.wait_reached(lsn, Guarantee::Durable))?),
        }
    }

    /// Lets go of idle cursors, of transactions that were open for too long, of sessions and states that nobody uses; to be
    /// called about once a second.
    pub fn tick(&self) {
        self.cursors.sweep();
        self.sessions.expire_transactions();
        self.node.transactions.expiry_passes.add(1);
        let gone = self.sessions.sweep();
        if !gone.is_empty() {
            self.cursors.kill_sessions(|lsid| gone.contains(lsid));
        }
        self.engine.trim_history();
        self.columns.tidy();
        self.searches.tidy();
        if self.sequences.is_full() {
            let snapshot = self.engine.snapshot();
            self.sequences.sweep(|uuid| snapshot.catalog().by_uuid(uuid).is_some());
        }
        self.snapshots.sweep(&self.engine, self.snapshot_window());
        // While there is no room for it, or another member writes, the next second is as good.
        let _ = self.index_builds.drop_left(&self.engine, &self.node.gates.admission);
    }

    /// The newest cluster time there is: that of the last commit.
    pub fn last_time(&self) -> Timestamp {
        self.positions().last.ts
    }

    /// How far the history reaches. An engine in which nothing was ever written is at the present moment, unless others write.
    pub fn positions(&self) -> Positions {
        let positions = self.engine.positions();
        if positions.last.ts != Timestamp::default() || !self.engine.is_writable() {
            return positions;
        }
        // Drivers take a zero time for none at all.
        let now = OpTime {
            ts: Timestamp {
                secs: clock::now_ms().div_euclid(1000) as u32,
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
    /// `argument` is what gave it. Errors: 50 when the command's time is over, 72 for a time that nobody gave.
    pub fn await_time(&self, argument: &str, time: Timestamp, interrupt: &Interrupt) -> Result<()> {
        if time <= self.last_time() {
            return Ok(());
        }
        interrupt.check()?;
        if self.engine.is_member() {
            return self.await_other(time, interrupt);
        }
        bail!(
            InvalidOptions,
            "readConcern {argument} value must not be greater than the current clusterTime. Requested clusterTime: {{ ts: Timestamp({}, {}) }}; current clusterTime: {{ ts: Timestamp({}, {}) }}",
            time.secs,
            time.inc,
            self.last_time().secs,
            self.last_time().inc
        )
    }

    /// Waits for a time that another member gave: a secondary for the commit, the primary by committing something later.
    fn await_other(&self, time: Timestamp, interrupt: &Interrupt) -> Result<()> {
        if self.engine.is_writable() {
            self.engine.advance_clock(time);
            self.note("a time of another member")?;
        }
        while_waiting(|| {
            while time > self.last_time() {
                interrupt.check()?;
                let seen = self.engine.last_lsn();
                if time > self.last_time() {
                    self.engine.wait_for_commit(seen, Instant::now() + AWAIT_LOOK);
                }
            }
            Ok(())
        })
    }

    /// Commits an oplog entry that changes nothing, and says why.
    pub fn note(&self, message: &str) -> Result<Lsn> {
        let mut ws = self.engine.begin();
        let entry = doc! {
            "op": "n",
            "ns": "",
            "o": doc! { "msg": message },
            "ts": Timestamp::default(),
            "t": 0i64,
            "v": 2i64,
            "wall": nestor_model::Value::DateTime(clock::now_ms()),
        };
        ws.oplog(entry.to_raw())?;
        Ok(self.engine.commit(ws)?.lsn)
    }

    /// How far back snapshot reads may go.
    fn snapshot_window(&self) -> Duration {
        let window = self.node.parameters.number(Param::SnapshotHistorySeconds);
        Duration::from_secs(u64::try_from(window).unwrap_or(0))
    }

    /// The state at `time`, or the newest one for `None`; it is kept for a while.
    ///
    /// Errors: those of [`Snapshots::at`]; 72 for a time that has not come.
    pub fn snapshot_at(&self, time: Option<Timestamp>, interrupt: &Interrupt) -> Result<Snapshot> {
        if let Some(time) = time {
            self.await_time("atClusterTime", time, interrupt)?;
        }
        self.snapshots.at(&self.engine, time, self.snapshot_window(), interrupt)
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
            0 => (u64::try_from(machine::usable_memory_mib()).unwrap_or(0) << 20) / 4,
            bytes => bytes,
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.connections.memory.set_limit(bytes);
        self.engine.set_transaction_bytes_max(bytes);
        self.engine.set_history_window(self.snapshot_window());
        for (turns, tickets) in [
            (Turns::of_reads(), Param::ReadTickets),
            (Turns::of_writes(), Param::WriteTickets),
        ] {
            turns.set_number(match number(tickets) {
                0 if !parameters.are_tickets_fixed() => {
                    Number::Sought(Duration::from_millis(number(Param::TicketIntervalMillis)))
                }
                tickets => Number::Fixed(usize::try_from(tickets).unwrap_or(0)),
            });
        }
        self.columns.set_preferred(parameters.columns() == ColumnsUsed::On);
        self.query_stats.set_rate(parameters.number(Param::QueryStatsRate));
        self.plan_cache.set_tuning(Tuning {
            works_min: number(Param::PlanTrialWorks),
            documents_share: parameters.real(Param::PlanTrialCollFraction),
            rows_max: number(Param::PlanTrialResultsMax),
            eviction_ratio: parameters.real(Param::PlanCacheEvictionRatio),
            works_growth: parameters.real(Param::PlanCacheWorksGrowth),
            entries_max: usize::try_from(number(Param::PlanCacheEntriesMax)).unwrap_or(usize::MAX),
        });
    }
}

/// A number from the operating system's randomness, by way of the standard library's hash keys.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
