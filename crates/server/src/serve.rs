//! A server process from start to end.

use crate::events;
use crate::first_user;
use crate::forward::ToMembers;
use crate::key_file;
use crate::limits;
use crate::listener::{self, Listener};
use crate::master_key::{self, MasterKeyFile};
use crate::member::{self, LogOptions};
use crate::memory_watch::MemoryWatch;
use crate::metrics;
use crate::niceness;
use crate::notify;
use crate::sink::{self, AuditDestination};
use crate::sql;
use crate::tls::{Tls, TlsOptions};
use crate::watcher::{self, EndOfWatch, Watcher};
use nestor_command::Service;
use nestor_database::DatabaseOptions;
use nestor_database::audit::{Actor, Audit, Config, Event, Format};
use nestor_database::node::ProcessOptions;
use nestor_database::observe::log::Log;
use nestor_database::parameters::Param;
pub use nestor_database::profiler::AtStart;
use nestor_database::transport::{Certificate, Encryption};
use nestor_exec::write::build::FromDocuments;
use nestor_files::folder::Folder;
use nestor_model::{Document, doc, extjson};
use nestor_sql::stage::SqlStage;
use nestor_storage::engine::Subscription;
use nestor_storage::{Engine, EngineOptions, StorageError};
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, watch};

/// How long commands that run when the server stops may take to finish.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long clients may take to read their replies when the server stops.
const STALLED_MAX: Duration = Duration::from_secs(1);
/// Stack of the threads that run commands: documents nest 200 deep, and of SQL's operators 800 take half of it in a debug build, its functions the rest.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// Addresses to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// 127.0.0.1, and ::1 with IPv6.
    Local,
    /// All there are.
    All,
    /// These; one with a slash is the path of a Unix socket.
    Addresses(Vec<String>),
}

/// What rotating the log does with the file that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogRotate {
    /// It is renamed, and a new one begun.
    #[default]
    Rename,
    /// Somebody else renamed it: its name is opened anew.
    Reopen,
}

/// What is recorded of who did what, and where.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// Where records go.
    pub destination: AuditDestination,
    /// The form of its records.
    pub format: Format,
    /// Only what matches is recorded.
    pub filter: Option<Document>,
    /// What is recorded can be changed while the server runs.
    pub is_runtime: bool,
}

impl AuditOptions {
    /// As `getCmdLineOpts` prints them.
    fn parsed(&self) -> Document {
        let mut out = match &self.destination {
            AuditDestination::File(path) => {
                let format = if self.format == Format::Json { "JSON" } else { "BSON" };
                doc! { "destination": "file", "format": format, "path": path.display().to_string() }
            }
            AuditDestination::Console => doc! { "destination": "console" },
            AuditDestination::Syslog => doc! { "destination": "syslog" },
        };
        if let Some(filter) = &self.filter {
            let mut text = String::new();
            extjson::print(filter.as_ref().into(), extjson::Form::Relaxed, &mut text);
            out.push("filter", text);
        }
        if self.is_runtime {
            out.push("runtimeConfiguration", true);
        }
        out
    }
}

/// Opens the audit log.
fn open_audit(options: &ServeOptions) -> Result<Audit, String> {
    let Some(audit) = &options.audit else {
        return Ok(Audit::default());
    };
    let mut config = Config::default();
    if let Some(filter) = &audit.filter {
        config.filter = Config::filter(filter.as_ref()).map_err(|e| format!("--auditFilter: {}", e.message()))?;
    }
    if audit.is_runtime
        && options
            .parameters
            .iter()
            .any(|(name, _)| name == "auditAuthorizationSuccess")
    {
        return Err("with --auditRuntimeConfiguration the cluster parameter auditConfig takes the place of auditAuthorizationSuccess".to_owned());
    }
    let destination = sink::audit(&audit.destination, audit.format, options.log_rotate, options.print_uri)
        .map_err(|e| format!("audit log: {e}"))?;
    Ok(Audit::new(destination, config, audit.is_runtime))
}

/// Records what the process itself does.
fn audit_own(service: &Service, action: &'static str, param: Document) -> Result<(), String> {
    let event = Event {
        action,
        param,
        result: 0,
    };
    let actor = Actor::process(service.node.process_uuid());
    let now_ms = nestor_database::clock::now_ms();
    let audit = service.node.audit();
    audit
        .record(now_ms, &actor, event)
        .map_err(|e| format!("audit log: {e}"))
}

/// What `nestor serve` was told.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The configuration file, for `getCmdLineOpts`: what it says stands in the other options.
    pub config: Option<PathBuf>,
    /// The command line, for `getCmdLineOpts`.
    pub argv: Vec<String>,
    /// Name of the memory allocator that the program is linked with, for `buildInfo`; `None` for the system's.
    pub allocator: Option<&'static str>,
    /// Has the allocator return memory to the system, if it does not do so by itself.
    pub return_memory: Option<fn()>,
    /// Name by which the storage engine was asked for, for `getCmdLineOpts`; there is one.
    pub storage_engine: Option<String>,
    /// How data are packed on disk that do not say themselves, as it was given.
    pub block_compressor: Option<String>,
    /// Directory of the data; `None` keeps everything in memory.
    pub dbpath: Option<PathBuf>,
    /// Start although the journal ends with this commit and durable ones followed.
    pub give_up_after: Option<u64>,
    /// Port; 0 takes a free one.
    pub port: u16,
    /// Addresses.
    pub bind: Bind,
    /// IPv6 too.
    pub ipv6: bool,
    /// Log file; `None` logs to standard output.
    pub logpath: Option<PathBuf>,
    /// Append to the log file.
    pub logappend: bool,
    /// What rotating the log does with its file.
    pub log_rotate: LogRotate,
    /// Directory of the Unix socket; `None` for no such socket.
    pub unix_socket_dir: Option<PathBuf>,
    /// Most connections, if limited.
    pub max_connections: Option<u32>,
    /// Replica set name; `None` for a standalone.
    pub replica_set: Option<String>,
    /// The log of the set that it is a member of; `None` for a set of one.
    pub log: Option<LogOptions>,
    /// Size in MiB of an oplog that is made now.
    pub oplog_mib: Option<u64>,
    /// What is younger stays in the oplog whatever its size, in hours.
    pub oplog_min_retention_hours: Option<f64>,
    /// Size of the page cache in GiB.
    pub cache_gib: Option<f64>,
    /// Server parameters, name and value.
    pub parameters: Vec<(String, String)>,
    /// What the profiler starts with.
    pub profiler: AtStart,
    /// Whoever wants to do something must be logged in and have the right to.
    pub auth: bool,
    /// Rights are not asked for, even if the environment names a first user.
    pub noauth: bool,
    /// File with the cluster's key.
    pub key_file: Option<PathBuf>,
    /// Listen beyond this machine although whoever can connect may do everything.
    pub insecure_no_auth: bool,
    /// Log nothing of what clients store or ask for.
    pub redact_client_log_data: bool,
    /// Functions in JavaScript are refused.
    pub noscripting: bool,
    /// The audit log; `None` for none.
    pub audit: Option<AuditOptions>,
    /// The master key of an encrypted data directory; `None` for one that is not.
    pub encryption: Option<MasterKeyFile>,
    /// Encryption of connections; `None` for none.
    pub tls: Option<TlsOptions>,
    /// Port for metrics and health; `None` for none, 0 takes a free one.
    pub metrics_port: Option<u16>,
    /// Addresses of that port; none are those of this machine.
    pub metrics_addresses: Vec<IpAddr>,
    /// The directory whose files SQL may read; `None` for none.
    pub sql_files: Option<PathBuf>,
    /// Port for PostgreSQL's wire protocol; `None` for none, 0 takes a free one.
    pub sql_port: Option<u16>,
    /// Log no connections.
    pub quiet: bool,
    /// Debug level of the log, 0 to 5.
    pub verbosity: u8,
    /// Print the connection string to standard output.
    pub print_uri: bool,
}

/// What all connections of a server share.
pub struct Server {
    /// The database.
    pub service: Arc<Service>,
    /// Watches the threads that serve connections.
    pub watcher: Arc<Watcher>,
    /// Changes with every commit once somebody listens.
    commits: watch::Sender<()>,
    subscription: OnceLock<Subscription>,
    /// Most connections at one time.
    pub connections_max: u32,
    /// What connections are encrypted with, if they can be.
    pub tls: Option<Arc<Tls>>,
    draining: AtomicBool,
    /// Told when that begins.
    drain_began: Notify,
    /// Told when the last command under way is done.
    idle: Notify,
}

/// Counts as work under way until it is dropped.
pub struct Busy<'a>(&'a Server);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.work_done();
    }
}

/// Does not count as work under way until it is dropped.
pub struct Paused<'a>(&'a Server);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.busy().fetch_add(1, Ordering::AcqRel);
    }
}

impl Server {
    /// A server over `service`.
    pub fn new(service: Arc<Service>, watcher: Arc<Watcher>, connections_max: u32, tls: Option<Arc<Tls>>) -> Self {
        Self {
            service,
            watcher,
            commits: watch::Sender::new(()),
            subscription: OnceLock::new(),
            connections_max,
            tls,
            draining: AtomicBool::new(false),
            drain_began: Notify::new(),
            idle: Notify::new(),
        }
    }

    /// Connections come and go without a line in the log (parameter `quiet`).
    pub fn is_quiet(&self) -> bool {
        self.service.node.parameters.is_on(Param::Quiet)
    }

    /// Tells of every commit from now on. The engine is asked for it when somebody listens for the first
    /// time: until then commits cost nothing extra.
    pub fn listen_to_commits(&self) -> watch::Receiver<()> {
        let receiver = self.commits.subscribe();
        self.subscription.get_or_init(|| {
            let commits = self.commits.clone();
            self.service.engine.subscribe(move |_| {
                if commits.receiver_count() > 0 {
                    commits.send_replace(());
                }
            })
        });
        receiver
    }

    /// Takes a place for one more connection; `None` when there is none.
    pub fn admit(&self) -> Option<i64> {
        let counts = &self.service.node.counters.connections;
        let open = counts.current.fetch_add(1, Ordering::AcqRel) + 1;
        if open > i64::from(self.connections_max) {
            counts.current.fetch_sub(1, Ordering::AcqRel);
            counts.rejected.add(1);
            return None;
        }
        Some(open)
    }

    /// Gives a place back.
    pub fn closed(&self) {
        self.service
            .node
            .counters
            .connections
            .current
            .fetch_sub(1, Ordering::AcqRel);
    }

    /// Connections now open.
    pub fn open_connections(&self) -> i64 {
        self.service.node.counters.connections.current.load(Ordering::Relaxed)
    }

    /// The server is stopping: finish what runs, start nothing.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Returns when the server is stopping and a client had [`STALLED_MAX`] to read its reply.
    pub async fn lose_patience(&self) {
        // A notification counts from here on, whether or not its future has been polled.
        let began = self.drain_began.notified();
        if !self.is_draining() {
            began.await;
        }
        tokio::time::sleep(STALLED_MAX).await;
    }

    fn busy(&self) -> &AtomicI64 {
        &self.service.node.counters.connections.active
    }

    /// Work begins.
    pub fn begin_work(&self) -> Busy<'_> {
        self.busy().fetch_add(1, Ordering::AcqRel);
        Busy(self)
    }

    /// Work under way comes to wait for something.
    pub fn pause_work(&self) -> Paused<'_> {
        self.work_done();
        Paused(self)
    }

    fn work_done(&self) {
        if self.busy().fetch_sub(1, Ordering::AcqRel) == 1 && self.is_draining() {
            self.idle.notify_one();
        }
    }

    /// Counts a request of so many bytes.
    pub fn count_request(&self, bytes: usize) {
        let network = &self.service.node.counters.network;
        network.requests.add(1);
        network.bytes_in.add(bytes as u64);
    }

    /// Counts a reply of so many bytes.
    pub fn count_reply(&self, bytes: usize) {
        self.service.node.counters.network.bytes_out.add(bytes as u64);
    }

    /// Starts nothing more, and waits until what runs is done, at most [`DRAIN_MAX`].
    async fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.drain_began.notify_waiters();
        let end = tokio::time::Instant::now() + DRAIN_MAX;
        while self.busy().load(Ordering::Acquire) > 0 {
            if tokio::time::timeout_at(end, self.idle.notified()).await.is_err() {
                self.service.node.log().warn(
                    "CONTROL",
                    20_006,
                    "SignalHandler",
                    "Stopping while operations still run",
                    doc! { "count": self.busy().load(Ordering::Acquire), "waitedMs": DRAIN_MAX.as_millis() as i64 },
                );
                return;
            }
        }
    }
}

/// Runs a server until it is told to stop. An error is for people to read.
pub fn run(mut options: ServeOptions) -> Result<(), String> {
    let began = Instant::now();
    if let (Some(dir), Some(file)) = (&options.dbpath, &options.encryption)
        && let Some(replacement) = &file.replacement
    {
        rotate_master_key(dir, file, replacement, &options)?;
        println!(
            "the master key of {} is that in {} now",
            dir.display(),
            replacement.display()
        );
        return Ok(());
    }
    let log = match &options.logpath {
        Some(path) => {
            let (sink, rotate) = sink::file(path, options.logappend, options.log_rotate)
                .map_err(|e| format!("log file {}: {e}", path.display()))?;
            Log::new(Some(sink), options.verbosity).with_rotate(rotate)
        }
        None => Log::new(Some(sink::standard(options.print_uri)), options.verbosity),
    };
    let log = Arc::new(log);
    events::write_to(log.clone());
    let connections_max = limits::connections_max(options.max_connections, limits::raise_open_files());

    niceness::find_out();
    let runtime = watcher::runtime(STACK_BYTES).map_err(|e| format!("cannot start threads: {e}"))?;
    // From here on: until it is handled, the signal ends the process, and opening may take a while.
    let rotations = runtime.block_on(async { handle(SignalKind::user_defined1()) })?;
    let audit = Arc::new(open_audit(&options)?);
    runtime.spawn(rotate_log(rotations, log.clone(), audit.clone()));
    let watcher = Watcher::start(runtime.handle().clone()).map_err(|e| format!("cannot start threads: {e}"))?;
    // Dropped before the runtime, which waits for its workers.
    let _end_of_watch = EndOfWatch(watcher.clone());

    let tls = options.tls.clone().map(Tls::new).transpose()?.map(Arc::new);
    let key = options.key_file.as_deref().map(key_file::read).transpose()?;
    let root = first_user::from_environment(|name| std::env::var(name).ok())?;
    // A first user makes no sense without authorization, so it is switched on, as by MongoDB's image.
    options.auth |= root.is_some() && !options.noauth;
    let mut bound = listener::bind(&options)?;
    let listeners = std::mem::take(&mut bound.listeners);
    let metrics_listeners = listener::bind_metrics(&options)?;
    let sql_listeners = listener::bind_sql(&options, &bound.addresses)?;
    let port = bound.port;
    log.info(
        "CONTROL",
        4_615_611,
        "initandlisten",
        "Nestor starting",
        doc! {
            "pid": std::process::id() as i32,
            "port": i32::from(port),
            "dbPath": options.dbpath.as_ref().map_or("(in memory)".to_owned(), |path| path.display().to_string()),
            "version": env!("CARGO_PKG_VERSION"),
        },
    );
    let host = match &options.log {
        Some(of_set) => of_set.host.clone(),
        None => format!("127.0.0.1:{port}"),
    };
    if let Some(path) = &options.sql_files {
        Folder::open(path).map_err(|e| format!("--sql-files {}: {e}", path.display()))?;
    }
    let of_set = options.log.as_ref();
    let member = of_set.map(|of_set| member::start(of_set, &options, engine_options(&options)?, &log));
    let member = member.transpose()?;
    let engine = match &member {
        Some(member) => member.engine().clone(),
        None => open_engine(&options)?,
    };
    let service_options = DatabaseOptions {
        column_bytes_max: cache_bytes(&options) / 4,
        search_bytes_max: cache_bytes(&options) / 2,
        replica_set: options.replica_set.as_deref().map(Into::into),
        host: host.as_str().into(),
        process: ProcessOptions {
            log: log.clone(),
            audit,
            allocator: options.allocator,
            argv: options.argv.iter().map(|arg| arg.as_str().into()).collect(),
            parsed: parsed_options(&options, port),
            connections_max,
        },
        oplog_bytes: Some(
            options
                .oplog_mib
                .map_or_else(|| default_oplog_bytes(&options), |mib| mib << 20),
        ),
        oplog_age_min: Duration::from_secs_f64(options.oplog_min_retention_hours.unwrap_or(0.0) * 3600.0),
        profiler: options.profiler,
        sql_files: options.sql_files.clone(),
        authorization: options.auth,
    };
    let service = Service::new(service_options, engine.clone()).with_relational(Arc::new(SqlStage));
    let service = Arc::new(service);
    if engine.is_writable() {
        member::begin_writing(&service, member.is_some())?;
    }
    let _memory_watch = MemoryWatch::start(service.connections.memory.clone(), options.return_memory, log.clone())
        .map_err(|e| format!("cannot start threads: {e}"))?;
    set_parameters(&service, &options)?;
    audit_own(
        &service,
        "startup",
        doc! { "options": service.node.options.parsed.clone() },
    )?;
    if member.is_some() {
        let forward = ToMembers::new(&options, key.as_deref());
        service.node.to_primary.set(Box::new(forward));
    }
    if let Some(key) = &key {
        let users = &service.users;
        users
            .set_cluster_key(key)
            .map_err(|e| format!("--keyFile: {}", e.message()))?;
    }
    if engine.is_writable() {
        if let Some(root) = root {
            first_user::make(&service, &root)?;
        }
        if let Err(error) = service.log_start() {
            let attr = doc! { "error": error.to_string() };
            log.warn(
                "CONTROL",
                20_004,
                "initandlisten",
                "Cannot write to local.startup_log",
                attr,
            );
        }
    }
    if let Some(tls) = &tls {
        service.node.transport.encrypted_by(Box::new(Encrypter(tls.clone())));
    }
    let server = Arc::new(Server::new(service, watcher, connections_max, tls));

    if !options.auth && bound.addresses.iter().any(|address| !address.ip().is_loopback()) {
        log.startup_warning(
            "CONTROL",
            22120,
            "Access control is not enabled for the database. Read and write access to data and configuration is unrestricted",
        );
    }

    let result = runtime.block_on(async {
        // Before anybody can know of us: a request to stop must not get lost.
        let stops = Stops::listen(&server)?;
        for listener in listeners {
            let address = listener.address();
            log.info(
                "NETWORK",
                23015,
                "listener",
                "Listening on",
                doc! { "address": address },
            );
            tokio::spawn(listener::accept_all(server.clone(), Listener::into_async(listener)?));
        }
        log.info(
            "NETWORK",
            23016,
            "listener",
            "Waiting for connections",
            doc! { "port": i32::from(port), "ssl": if server.tls.is_some() { "on" } else { "off" }, "startMs": began.elapsed().as_millis() as i64 },
        );
        if options.replica_set.is_some() && server.service.engine.is_writable() {
            // Programs that start servers for tests wait for this.
            log.info(
                "REPL",
                21331,
                "initandlisten",
                "Transition to primary complete; database writes are now permitted",
                doc! { "term": server.service.engine.topology().term },
            );
        }
        for listener in metrics_listeners {
            let address = listener.local_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
            log.info("NETWORK", 9_000_010, "listener", "Metrics and health", doc! { "address": address });
            let listener = tokio::net::TcpListener::from_std(listener).map_err(|e| format!("cannot listen: {e}"))?;
            tokio::spawn(metrics::serve(server.clone(), listener));
        }
        for listener in sql_listeners {
            let address = listener.local_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
            log.info("NETWORK", 9_000_011, "listener", "Waiting for SQL connections", doc! { "address": address });
            let listener = tokio::net::TcpListener::from_std(listener).map_err(|e| format!("cannot listen: {e}"))?;
            tokio::spawn(sql::accept_all(server.clone(), listener));
        }
        notify::tell(notify::READY);
        if options.print_uri {
            let mut out = std::io::stdout().lock();
            // Nobody reading it is no reason not to serve.
            let _ = writeln!(out, "{}", uri(&bound.addresses, port)).and_then(|()| out.flush());
        }
        let housekeeping = tokio::spawn(keep_house(server.clone()));
        let why = stops.wait().await;
        notify::tell(notify::STOPPING);
        log.info(
            "CONTROL",
            23377,
            "SignalHandler",
            "Shutting down",
            doc! { "reason": why },
        );
        // Writes that fsync has halted would not end.
        server.service.node.gates.admission.end();
        server.drain().await;
        housekeeping.abort();
        match why {
            // The command that stopped the server has been recorded with its sender.
            Stops::BY_COMMAND => Ok(()),
            _ => audit_own(&server.service, "shutdown", Document::new()),
        }
    });
    nestor_database::write::sequence::write_back(&server.service);
    server.watcher.stop();
    runtime.shutdown_timeout(Duration::from_secs(1));
    if let Some(member) = member {
        member::stop(member);
    }
    let closed = engine.close().map_err(|e| format!("closing the data directory: {e}"));
    let code = i32::from(result.is_err() || closed.is_err());
    log.info(
        "CONTROL",
        23138,
        "SignalHandler",
        "Shut down",
        doc! { "exitCode": code },
    );
    result.and(closed)
}

/// Handles a signal from now on.
fn handle(kind: SignalKind) -> Result<Signal, String> {
    signal(kind).map_err(|e| format!("cannot handle signals: {e}"))
}

/// Begins a new log file whenever `SIGUSR1` asks for it.
async fn rotate_log(mut requests: Signal, log: Arc<Log>, audit: Arc<Audit>) {
    while requests.recv().await.is_some() {
        if let Err(error) = log.rotate().and_then(|()| audit.rotate()) {
            log.error(
                "CONTROL",
                23_168,
                "SignalHandler",
                "Log rotation failed",
                doc! { "error": error.to_string() },
            );
        }
    }
}

/// What commands see of the encryption.
#[derive(Debug)]
struct Encrypter(Arc<Tls>);

impl Encryption for Encrypter {
    fn reload(&self) -> Result<(), String> {
        self.0.reload()
    }
    fn certificate(&self) -> Certificate {
        let certificates = self.0.certificates();
        Certificate {
            subject: certificates.identity.subject.clone(),
            not_after_ms: certificates.identity.not_after_ms,
            has_authority: certificates.has_authority,
        }
    }
}

/// Lets the service do its housekeeping once a second.
async fn keep_house(server: Arc<Server>) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        second.tick().await;
        let server = server.clone();
        // Housekeeping may wait for locks, so it has a thread that may block; an error only means that the runtime is stopping.
        let _ = tokio::task::spawn_blocking(move || server.service.tick()).await;
    }
}

/// Opens the store, which recovers what a crash left.
fn open_engine(options: &ServeOptions) -> Result<Engine, String> {
    let mut engine_options = engine_options(options)?;
    match &options.dbpath {
        Some(dir) => Engine::open(dir, engine_options).map_err(|e| refusal(&e, options)),
        None => {
            // A huge page stays as a whole for one small part of it that is used again. An old kernel without the call does
            // without the effect.
            let _ = rustix::thread::disable_transparent_huge_pages(true);
            engine_options.after_reclaim = options.return_memory;
            Ok(Engine::ephemeral(engine_options))
        }
    }
}

/// How every store is opened: with the clock, and with who makes entries of indexes that no commit has.
pub(crate) fn usual_engine_options() -> EngineOptions {
    let mut options = EngineOptions::new(Arc::new(wall_secs));
    options.entries = Some(Arc::new(FromDocuments::default()));
    options
}

/// How the store of a server is opened.
fn engine_options(options: &ServeOptions) -> Result<EngineOptions, String> {
    let mut engine_options = usual_engine_options();
    engine_options.before_wait = Some(nestor_exec::lose_patience);
    engine_options.packs = options.block_compressor.as_deref() != Some("none");
    engine_options.give_up_after = options.give_up_after;
    engine_options.master_key = options.encryption.as_ref().map(MasterKeyFile::key).transpose()?;
    // Nothing is cut off before the catalog has been read, which says how much is kept.
    engine_options.oplog_bytes_max = u64::MAX;
    engine_options.ephemeral_oplog_bytes_max = u64::MAX;
    engine_options.base_cache_bytes_max = cache_bytes(options);
    // With memory to spare fewer, larger merges write each page of the base less often. A memtable may get two and a half
    // times as large while merges lag behind, and a start after a crash replays it.
    engine_options.memtable_bytes_max = (engine_options.base_cache_bytes_max / 20).clamp(64 << 20, 512 << 20);
    Ok(engine_options)
}

/// Replaces the master key of the data directory.
fn rotate_master_key(
    dir: &Path,
    file: &MasterKeyFile,
    replacement: &Path,
    options: &ServeOptions,
) -> Result<(), String> {
    let (old, new) = (file.key()?, master_key::read(replacement)?);
    let rotated = nestor_storage::encryption::rotate(dir, &old, &new, u64::from(wall_secs()));
    rotated.map_err(|e| refusal(&e, options))
}

/// Why the store does not open, and what can be done.
fn refusal(error: &StorageError, options: &ServeOptions) -> String {
    match error {
        StorageError::Encryption { .. } => match &options.encryption {
            Some(file) => format!("{error} (--encryptionKeyFile {})", file.path().display()),
            None => format!("{error} (--enableEncryption --encryptionKeyFile FILE)"),
        },
        StorageError::CommitsLost { last, .. } => format!(
            "{error}. Restore the file from a copy; or give up what was committed after number {last}: start with \
             --giveUpCommitsAfter {last}"
        ),
        other => other.to_string(),
    }
}

/// The size of an oplog when nothing is said: 512 MiB on disk, 32 MiB in memory.
fn default_oplog_bytes(options: &ServeOptions) -> u64 {
    if options.dbpath.is_some() { 512 << 20 } else { 32 << 20 }
}

/// Bytes of the page cache.
fn cache_bytes(options: &ServeOptions) -> usize {
    match options.cache_gib {
        Some(gib) => (gib * f64::from(1 << 30)) as usize,
        None => default_cache_bytes(),
    }
}

/// What the base may keep in memory when nothing is said: half of the machine's memory without its first GiB, at least
/// 256 MiB, as the manual says of `--wiredTigerCacheSizeGB`. Filled as pages are read and written, so a server with little data stays small.
fn default_cache_bytes() -> usize {
    const GIB: u64 = 1 << 30;
    let mib = nestor_database::machine::usable_memory_mib();
    let total = u64::try_from(mib).unwrap_or(0) << 20;
    let half = total.saturating_sub(GIB) / 2;
    usize::try_from(half.max(GIB / 4)).unwrap_or(usize::MAX)
}

/// The wall clock in seconds, for optimes.
pub(crate) fn wall_secs() -> u32 {
    nestor_database::clock::now_ms()
        .div_euclid(1000)
        .clamp(0, i64::from(u32::MAX)) as u32
}

/// Sets the parameters of the command line. Throw-away servers are for tests, so fail points work there.
fn set_parameters(service: &Service, options: &ServeOptions) -> Result<(), String> {
    let node = &service.node;
    if options.dbpath.is_none() {
        node.parameters.put(Param::EnableTestCommands, 1);
    }
    nestor_script::enable(!options.noscripting);
    if options.redact_client_log_data {
        node.parameters.put(Param::RedactClientLogData, 1);
    }
    if options.quiet {
        node.parameters.put(Param::Quiet, 1);
    }
    for (name, value) in &options.parameters {
        node.parameters
            .set_at_start(name, value, node.log())
            .map_err(|e| e.message().to_owned())?;
    }
    service.parameters_changed();
    Ok(())
}

/// The options as `getCmdLineOpts` prints them: the shape of mongod's configuration file.
fn parsed_options(options: &ServeOptions, port: u16) -> Document {
    let mut net = doc! { "port": i32::from(port) };
    match &options.bind {
        Bind::Local => {}
        Bind::All => net.push("bindIpAll", true),
        Bind::Addresses(addresses) => net.push("bindIp", addresses.join(",")),
    }
    if options.ipv6 {
        net.push("ipv6", true);
    }
    if let Some(max) = options.max_connections {
        net.push("maxIncomingConnections", max as i32);
    }
    if let Some(tls) = &options.tls {
        net.push("tls", tls.parsed());
    }
    let mut parsed = Document::new();
    if let Some(audit) = &options.audit {
        parsed.push("auditLog", audit.parsed());
    }
    if let Some(path) = &options.config {
        parsed.push("config", path.display().to_string());
    }
    parsed.push("net", net);
    let (profiler, usual) = (options.profiler, AtStart::default());
    let mut profiling = Document::new();
    if profiler.level > 0 {
        profiling.push("mode", if profiler.level == 1 { "slowOp" } else { "all" });
    }
    if profiler.slow_ms != usual.slow_ms {
        profiling.push("slowOpThresholdMs", profiler.slow_ms);
    }
    if profiler.sample_rate != usual.sample_rate {
        profiling.push("slowOpSampleRate", profiler.sample_rate);
    }
    if !profiling.is_empty() {
        parsed.push("operationProfiling", profiling);
    }
    if let Some(name) = &options.replica_set {
        let mut replication = doc! { "replSet": name.as_str() };
        if let Some(mib) = options.oplog_mib {
            replication.push("oplogSizeMB", i64::try_from(mib).unwrap_or(i64::MAX));
        }
        if let Some(log) = &options.log {
            replication.push("log", log.address.as_str());
            replication.push("host", log.host.as_str());
        }
        parsed.push("replication", replication);
    }
    let mut security = Document::new();
    if options.auth {
        security.push("authorization", "enabled");
    }
    if let Some(path) = &options.key_file {
        security.push("keyFile", path.display().to_string());
    }
    if options.noscripting {
        security.push("javascriptEnabled", false);
    }
    if options.redact_client_log_data {
        security.push("redactClientLogData", true);
    }
    if let Some(encryption) = &options.encryption {
        security.push("enableEncryption", true);
        security.push("encryptionKeyFile", encryption.path().display().to_string());
    }
    if !security.is_empty() {
        parsed.push("security", security);
    }
    if let Some(path) = &options.sql_files {
        parsed.push("sql", doc! { "files": path.display().to_string() });
    }
    if !options.parameters.is_empty() {
        let mut set = Document::new();
        for (name, value) in &options.parameters {
            set.push(name.as_str(), value.as_str());
        }
        parsed.push("setParameter", set);
    }
    let mut storage = Document::new();
    if let Some(path) = &options.dbpath {
        storage.push("dbPath", path.display().to_string());
    }
    if let Some(engine) = &options.storage_engine {
        storage.push("engine", engine.as_str());
    }
    if let Some(name) = &options.block_compressor {
        storage.push(
            "wiredTiger",
            doc! { "collectionConfig": doc! { "blockCompressor": name.as_str() } },
        );
    }
    if let Some(hours) = options.oplog_min_retention_hours {
        storage.push("oplogMinRetentionHours", hours);
    }
    if !storage.is_empty() {
        parsed.push("storage", storage);
    }
    if let Some(path) = &options.logpath {
        let mut log =
            doc! { "destination": "file", "path": path.display().to_string(), "logAppend": options.logappend };
        if options.log_rotate == LogRotate::Reopen {
            log.push("logRotate", "reopen");
        }
        parsed.push("systemLog", log);
    }
    parsed
}

/// What ends the server: signals and the shutdown command. Listens from the moment it is made.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// Told of a hang-up, which asks for certificates to be read anew where there are any.
    tls: Option<Arc<Tls>>,
    log: Arc<Log>,
    command: Arc<Notify>,
}

impl Stops {
    const BY_COMMAND: &'static str = "shutdown command";

    fn listen(server: &Server) -> Result<Self, String> {
        let command = Arc::new(Notify::new());
        let told = command.clone();
        server.service.node.stop.set_hook(move || told.notify_one());
        Ok(Self {
            interrupt: handle(SignalKind::interrupt())?,
            terminate: handle(SignalKind::terminate())?,
            hangup: handle(SignalKind::hangup())?,
            tls: server.tls.clone(),
            log: server.service.node.options.log.clone(),
            command,
        })
    }

    /// Waits for the first of them and tells which it was.
    async fn wait(mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.terminate.recv() => return "SIGTERM",
                () = self.command.notified() => return Self::BY_COMMAND,
                _ = self.hangup.recv() => match &self.tls {
                    Some(tls) => self.read_certificates(tls),
                    None => return "SIGHUP",
                },
            }
        }
    }

    fn read_certificates(&self, tls: &Tls) {
        let (log, ctx) = (&self.log, "SignalHandler");
        match tls.reload() {
            Ok(()) => log.info(
                "NETWORK",
                4_913_400,
                ctx,
                "Successfully rotated X509 certificates",
                doc! {},
            ),
            Err(error) => log.error(
                "NETWORK",
                4_913_401,
                ctx,
                "Certificates could not be read anew; those that are there stay",
                doc! { "error": error },
            ),
        }
    }
}

/// The connection string of a server: its first address that a client here can reach.
fn uri(addresses: &[SocketAddr], port: u16) -> String {
    let host = match addresses.first() {
        Some(address) if address.ip().is_unspecified() => "127.0.0.1".to_owned(),
        Some(SocketAddr::V6(address)) => format!("[{}]", address.ip()),
        Some(SocketAddr::V4(address)) => address.ip().to_string(),
        None => "127.0.0.1".to_owned(),
    };
    format!("mongodb://{host}:{port}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_reachable() {
        for (address, expected) in [
            ("127.0.0.1:5", "mongodb://127.0.0.1:5/"),
            ("0.0.0.0:5", "mongodb://127.0.0.1:5/"),
            ("[::1]:5", "mongodb://[::1]:5/"),
        ] {
            assert_eq!(uri(&[address.parse().unwrap()], 5), expected);
        }
    }
}
