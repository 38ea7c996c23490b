//! The command line. Flags have mongod's names where they mean the same; unknown ones are refused.

use clap::{Args, Parser, Subcommand};
use nestor::backup::{self, BackupArgs, BranchArgs, RestoreArgs};
use nestor::bench::BenchArgs;
use nestor::check::Verdict;
use nestor::config;
use nestor::export::ExportArgs;
use nestor::import::ImportArgs;
use nestor::master_key::MasterKeyFile;
use nestor::member::LogOptions;
use nestor::serve::{self, AtStart, AuditOptions, Bind, LogRotate, ServeOptions};
use nestor::shell::SqlArgs;
use nestor::sink::AuditDestination;
use nestor::tls::{TlsMode, TlsOptions};
use nestor_command::commands::diagnostic::build_info;
use nestor_database::audit::Format;
use nestor_model::storage_settings::COMPRESSORS;
use nestor_model::{Value, extjson};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

/// What `--version` says: programs that start mongod look for the second line.
static LONG_VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{}\ndb version v{}", env!("CARGO_PKG_VERSION"), build_info::VERSION));

/// A document database that MongoDB drivers and tools use unmodified.
#[derive(Parser)]
#[command(name = "nestor", version, long_version = LONG_VERSION.as_str(), disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    Serve(Box<Serve>),
    /// Verify a data directory offline, changing nothing
    ///
    /// Exit status: 0 no fault found, 1 faults found, 2 the directory cannot be checked.
    Check {
        /// The directory
        dir: PathBuf,
        /// File with the master key of an encrypted directory
        #[arg(long = "encryptionKeyFile", value_name = "FILE")]
        encryption_key_file: Option<PathBuf>,
    },
    /// Have a running server copy its data directory while writes go on
    Backup(Box<BackupArgs>),
    /// Make a data directory of backups, or of a replica set's log, as it was at the end of the last or at a time before
    Restore(Box<RestoreArgs>),
    /// Make a writable copy of a replica set as it was at a time, which shares with it what does not change
    Branch(Box<BranchArgs>),
    /// Load a file into a collection
    Import(Box<ImportArgs>),
    /// Write a collection to a file
    Export(Box<ExportArgs>),
    /// Ask a server in SQL, at the terminal or by files
    Sql(Box<SqlArgs>),
    /// Measure what operations cost
    Bench(Box<BenchArgs>),
}

#[derive(Args)]
struct Serve {
    /// Configuration file in mongod's YAML form; flags that are given too win
    #[arg(long, short = 'f', value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the data; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "./data", conflicts_with = "ephemeral")]
    dbpath: PathBuf,
    /// Keep everything in memory and leave nothing behind
    #[arg(long)]
    ephemeral: bool,
    /// Start although durable commits are missing at the journal's end, and give up all commits after this number; the
    /// refusal to start names it
    #[arg(long = "giveUpCommitsAfter", value_name = "NUMBER", conflicts_with = "ephemeral")]
    give_up_commits_after: Option<u64>,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 27017)]
    port: u16,
    /// Addresses to listen on, separated by commas
    #[arg(long = "bind_ip", value_name = "ADDRESSES", value_delimiter = ',')]
    bind_ip: Vec<String>,
    /// Listen on all addresses
    #[arg(long = "bind_ip_all", conflicts_with = "bind_ip")]
    bind_ip_all: bool,
    /// Listen on IPv6 addresses too
    #[arg(long)]
    ipv6: bool,
    /// File to log to instead of standard output
    #[arg(long, value_name = "FILE")]
    logpath: Option<PathBuf>,
    /// Append to the log file instead of starting a new one
    #[arg(long, requires = "logpath")]
    logappend: bool,
    /// What the command logRotate and SIGUSR1 do: rename the log file and begin a new one, or open its name anew
    #[arg(
        long = "logRotate",
        value_enum,
        value_name = "HOW",
        default_value = "rename",
        requires = "logpath"
    )]
    log_rotate: LogRotate,
    /// Directory of the Unix socket
    #[arg(long = "unixSocketPrefix", value_name = "DIR", conflicts_with = "nounixsocket")]
    unix_socket_prefix: Option<PathBuf>,
    /// Do not listen on a Unix socket
    #[arg(long)]
    nounixsocket: bool,
    /// Most connections at one time
    #[arg(long = "maxConns", value_name = "N", value_parser = clap::value_parser!(u32).range(5..))]
    max_conns: Option<u32>,
    /// Size in MiB of the oplog when it is made: how far back changes can be followed. Later the command replSetResizeOplog
    /// changes it
    #[arg(long = "oplogSize", alias = "oplogSizeMB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=(1 << 30)))]
    oplog_size: Option<u64>,
    /// Keep what is younger than so many hours in the oplog, whatever its size
    #[arg(long = "oplogMinRetentionHours", value_name = "HOURS", value_parser = hours, conflicts_with_all = ["ephemeral", "standalone"])]
    oplog_min_retention_hours: Option<f64>,
    /// Memory for pages of data in GiB
    #[arg(long = "cacheSizeGB", alias = "wiredTigerCacheSizeGB", value_name = "GIB", value_parser = cache_size)]
    cache_size_gb: Option<f64>,
    /// Whether collections and indexes that do not say are packed on disk: not with none. All others mean Zstandard
    #[arg(long = "wiredTigerCollectionBlockCompressor", value_name = "NAME", value_parser = COMPRESSORS)]
    block_compressor: Option<String>,
    /// The storage engine: there is one, which may be called by the name of MongoDB's
    #[arg(long = "storageEngine", value_name = "ENGINE", value_parser = ["nestor", "wiredTiger"])]
    storage_engine: Option<String>,
    /// Name of the replica set that this server is, or that it is a member of with --log
    #[arg(
        long = "replSet",
        value_name = "NAME",
        default_value = "rs0",
        conflicts_with = "standalone"
    )]
    repl_set: String,
    /// Be a member of a replica set of several servers: the set's log is at this address, s3://BUCKET/PATH (credentials and endpoint are
    /// those of the environment, AWS_*) or file:///PATH; see docs/cluster.md
    #[arg(long = "log", value_name = "ADDRESS", requires = "host", conflicts_with_all = ["ephemeral", "standalone", "encryption_key_file", "give_up_commits_after"])]
    log: Option<String>,
    /// A copy of the data is uploaded beside the log when there are so many commits since the one before; new members begin from it, and the
    /// log is trimmed behind it
    #[arg(long = "logCheckpoints", value_name = "COMMITS", requires = "log", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    log_checkpoints: u64,
    /// The name and port under which clients and other members reach this server
    #[arg(long, value_name = "HOST:PORT", requires = "log", value_parser = member_name)]
    host: Option<String>,
    /// Be a standalone server: no replica set, no sessions' retryable writes, no change streams
    #[arg(long)]
    standalone: bool,
    /// Set a server parameter; may be given several times
    #[arg(long = "setParameter", value_name = "NAME=VALUE")]
    set_parameter: Vec<String>,
    /// Operations that take longer than this many milliseconds are slow: they are logged, and profiled at level 1
    #[arg(long, value_name = "MS", default_value_t = AtStart::default().slow_ms, allow_negative_numbers = true)]
    slowms: i32,
    /// The part of slow operations that is logged and profiled, 0 to 1
    #[arg(long = "slowOpSampleRate", value_name = "RATE", default_value_t = 1.0, value_parser = sample_rate)]
    slow_op_sample_rate: f64,
    /// Level of the profiler in every database: 0 off, 1 slow operations, 2 all
    #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    profile: u8,
    /// Ask for rights: whoever wants to do something must be logged in
    #[arg(long)]
    auth: bool,
    /// File with the key by which members of the cluster and tools log in, as user __system of database local; implies --auth
    #[arg(long = "keyFile", value_name = "FILE", conflicts_with_all = ["noauth", "insecure_no_auth"])]
    key_file: Option<PathBuf>,
    /// Do not ask for rights, as without --auth, even if the environment names a first user
    #[arg(long, conflicts_with = "auth")]
    noauth: bool,
    /// Listen beyond this machine without --auth: whoever can connect may do everything
    #[arg(long = "insecure-no-auth", conflicts_with = "auth")]
    insecure_no_auth: bool,
    /// Refuse `$where`, `$function`, `$accumulator` and mapReduce, whose functions are JavaScript
    #[arg(long = "noscripting")]
    noscripting: bool,
    /// Log nothing of what clients store or ask for: names of fields and collections, counts and codes only
    #[arg(long = "redactClientLogData")]
    redact_client_log_data: bool,
    #[command(flatten)]
    audit: Audit,
    #[command(flatten)]
    encryption: AtRest,
    #[command(flatten)]
    tls: Tls,
    /// Port for metrics in Prometheus' form (/metrics) and for health (/healthz, /readyz), on this machine only; 0 takes a free one
    #[arg(long = "metricsPort", value_name = "PORT")]
    metrics_port: Option<u16>,
    /// Addresses of the port for metrics, comma-separated. Whoever reaches them reads counters without logging in
    #[arg(
        long = "metricsBindIp",
        value_name = "ADDRESSES",
        value_delimiter = ',',
        requires = "metrics_port"
    )]
    metrics_bind_ip: Vec<IpAddr>,
    /// Port for PostgreSQL's wire protocol (SQL), at the same addresses; 0 takes a free one
    #[arg(long = "sql-port", alias = "sqlPort", value_name = "PORT")]
    sql_port: Option<u16>,
    /// Directory of files that SQL may read as tables (`SELECT ... FROM 'x.csv'`). With --auth only users with the role root may
    #[arg(long = "sql-files", alias = "sqlFiles", value_name = "DIR")]
    sql_files: Option<PathBuf>,
    /// Log less
    #[arg(long)]
    quiet: bool,
    /// Log more; up to -vvvvv
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print the connection string as the first and only line of standard output; the log goes to standard error
    #[arg(long)]
    print_uri: bool,
}

/// Where the audit log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum AuditTo {
    File,
    Console,
    Syslog,
}

#[derive(Args)]
struct Audit {
    /// Record who logs in, and who changes users, roles, collections, indexes and the server, in a file, on standard output or in
    /// the system's log
    #[arg(long = "auditDestination", value_enum, value_name = "WHERE")]
    destination: Option<AuditTo>,
    /// Form of a file of records: lines of JSON, or BSON, which bsondump reads
    #[arg(long = "auditFormat", value_name = "FORMAT", value_parser = ["JSON", "BSON"], requires = "path")]
    format: Option<String>,
    /// The file of records
    #[arg(long = "auditPath", value_name = "FILE", requires = "destination")]
    path: Option<PathBuf>,
    /// Record only what matches this filter, a query in JSON over records
    #[arg(long = "auditFilter", value_name = "FILTER", requires = "destination")]
    filter: Option<String>,
    /// What is recorded can be changed while the server runs, by the cluster parameter auditConfig, and is kept
    #[arg(
        long = "auditRuntimeConfiguration",
        requires = "destination",
        conflicts_with = "filter"
    )]
    runtime_configuration: bool,
}

fn audit_options(args: Audit) -> Result<Option<AuditOptions>, String> {
    let Some(destination) = args.destination else {
        return Ok(None);
    };
    let (destination, format) = match (destination, args.path, args.format.as_deref()) {
        (AuditTo::File, Some(path), Some("JSON")) => (AuditDestination::File(path), Format::Json),
        (AuditTo::File, Some(path), Some(_)) => (AuditDestination::File(path), Format::Bson),
        (AuditTo::File, ..) => return Err("--auditDestination file needs --auditFormat and --auditPath".to_owned()),
        (AuditTo::Console, None, None) => (AuditDestination::Console, Format::Json),
        (AuditTo::Syslog, None, None) => (AuditDestination::Syslog, Format::Json),
        _ => return Err("--auditFormat and --auditPath are for --auditDestination file".to_owned()),
    };
    let filter = match args.filter {
        None => None,
        Some(text) => match extjson::parse(&text) {
            Ok(Value::Document(filter)) => Some(filter),
            Ok(_) => return Err("--auditFilter: a document is wanted".to_owned()),
            Err(error) => return Err(format!("--auditFilter: {error}")),
        },
    };
    Ok(Some(AuditOptions {
        destination,
        format,
        filter,
        is_runtime: args.runtime_configuration,
    }))
}

#[derive(Args)]
struct AtRest {
    /// Encrypt the data directory: a new one only, an existing one stays as it is
    #[arg(
        long = "enableEncryption",
        requires = "encryption_key_file",
        conflicts_with = "ephemeral"
    )]
    enable_encryption: bool,
    /// File with the master key: 32 bytes in base64
    #[arg(long = "encryptionKeyFile", value_name = "FILE", requires = "enable_encryption")]
    encryption_key_file: Option<PathBuf>,
    /// How to encrypt; there is one way
    #[arg(
        long = "encryptionCipherMode",
        value_name = "MODE",
        value_parser = ["AES256-GCM"],
        requires = "enable_encryption"
    )]
    encryption_cipher_mode: Option<String>,
    /// Replace the master key by that in this file, and end
    #[arg(
        long = "encryptionRotateMasterKey",
        value_name = "NEWFILE",
        requires = "enable_encryption"
    )]
    encryption_rotate_master_key: Option<PathBuf>,
}

#[derive(Args)]
struct Tls {
    /// Which connections are encrypted
    #[arg(long = "tlsMode", value_enum, value_name = "MODE", default_value = "disabled")]
    mode: TlsMode,
    /// PEM file with the server's certificate and private key
    #[arg(long = "tlsCertificateKeyFile", value_name = "FILE")]
    certificate_key_file: Option<PathBuf>,
    /// PEM file with the authorities that clients' certificates must come from; without it clients are not asked for any
    #[arg(long = "tlsCAFile", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// PEM file with lists of revoked certificates
    #[arg(long = "tlsCRLFile", value_name = "FILE", requires = "ca_file")]
    crl_file: Option<PathBuf>,
    /// Clients may come without a certificate
    #[arg(long = "tlsAllowConnectionsWithoutCertificates", requires = "ca_file")]
    allow_without_certificates: bool,
    /// Versions of TLS not to speak, separated by commas: TLS1_2, TLS1_3; those before are never spoken
    #[arg(long = "tlsDisabledProtocols", value_name = "VERSIONS", value_delimiter = ',')]
    disabled_protocols: Vec<String>,
}

fn tls_options(args: Tls) -> Result<Option<TlsOptions>, String> {
    let is_told_more =
        args.certificate_key_file.is_some() || args.ca_file.is_some() || !args.disabled_protocols.is_empty();
    if args.mode == TlsMode::Disabled {
        return match is_told_more {
            true => Err("options of TLS need --tlsMode allowTLS, preferTLS or requireTLS".to_owned()),
            false => Ok(None),
        };
    }
    let Some(certificate_key_file) = args.certificate_key_file else {
        return Err(format!("--tlsMode {} needs --tlsCertificateKeyFile", args.mode.name()));
    };
    let mut options = TlsOptions {
        mode: args.mode,
        certificate_key_file,
        ca_file: args.ca_file,
        crl_file: args.crl_file,
        allow_without_certificates: args.allow_without_certificates,
        ..TlsOptions::default()
    };
    options.disable(&args.disabled_protocols)?;
    Ok(Some(options))
}

/// Does what the command line says and returns the exit status. What went wrong is printed for people to read.
pub fn run() -> ExitCode {
    let args = match arguments(std::env::args().collect()) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("nestor: {message}");
            return ExitCode::FAILURE;
        }
    };
    let (failure, done) = match Cli::parse_from(args).command {
        Command::Serve(args) => (1, serve_options(*args).and_then(serve::run)),
        Command::Check {
            dir,
            encryption_key_file,
        } => match nestor::check::run(&dir, encryption_key_file.as_deref()) {
            Ok(Verdict::Damaged) => return ExitCode::FAILURE,
            // Another status than that of damage: the data could not be looked at.
            checked => (2, checked.map(drop)),
        },
        Command::Backup(args) => (1, backup::back_up(&args)),
        Command::Restore(args) => (1, backup::run_restore(&args)),
        Command::Branch(args) => (1, backup::run_branch(&args)),
        Command::Import(args) => (1, nestor::import::run(&args)),
        Command::Export(args) => (1, nestor::export::run(&args)),
        Command::Sql(args) => (1, nestor::shell::run(&args)),
        Command::Bench(args) => (1, nestor::bench::run(&args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("nestor: {message}");
            ExitCode::from(failure)
        }
    }
}

/// The command line with what its configuration file says. Flags without a command are those of `serve`, as mongod's are: programs that
/// start servers for tests call us so.
fn arguments(mut args: Vec<String>) -> Result<Vec<String>, String> {
    const ABOUT: [&str; 4] = ["-h", "--help", "-V", "--version"];
    if args
        .get(1)
        .is_some_and(|arg| arg.starts_with('-') && !ABOUT.contains(&arg.as_str()))
    {
        args.insert(1, "serve".to_owned());
    }
    if args.get(1).map(String::as_str) != Some("serve") {
        return Ok(args);
    }
    let mut file = None;
    let mut rest = args.iter().skip(2);
    while let Some(arg) = rest.next() {
        match arg.split_once('=') {
            Some(("--config", path)) => file = Some(path),
            None if arg == "--config" || arg == "-f" => file = rest.next().map(String::as_str),
            _ => {}
        }
    }
    let Some(path) = file else { return Ok(args) };
    let text = std::fs::read_to_string(path).map_err(|e| format!("configuration file {path}: {e}"))?;
    let given = args.get(2..).unwrap_or_default();
    let flags = config::flags(&text, given).map_err(|e| format!("configuration file {path}: {e}"))?;
    args.splice(2..2, flags);
    Ok(args)
}

fn cache_size(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(gib) if (0.05..=10_000.0).contains(&gib) => Ok(gib),
        _ => Err("a number from 0.05 to 10000 is wanted".to_owned()),
    }
}

fn hours(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hours) if (0.0..=1e6).contains(&hours) => Ok(hours),
        _ => Err("a number from 0 to 1000000 is wanted".to_owned()),
    }
}

fn sample_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => Ok(rate),
        _ => Err("a number from 0 to 1 is wanted".to_owned()),
    }
}

/// A member's name, `host:port`.
fn member_name(text: &str) -> Result<String, String> {
    let is_name = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(['/', ',', '@']) && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    match is_name {
        true => Ok(text.to_owned()),
        false => Err("it has the form HOST:PORT".to_owned()),
    }
}

fn serve_options(args: Serve) -> Result<ServeOptions, String> {
    let bind = if args.bind_ip_all {
        Bind::All
    } else if args.bind_ip.is_empty() {
        Bind::Local
    } else {
        Bind::Addresses(args.bind_ip)
    };
    let mut parameters = Vec::new();
    for parameter in args.set_parameter {
        let Some((name, value)) = parameter.split_once('=') else {
            return Err(format!("--setParameter wants NAME=VALUE, not {parameter:?}"));
        };
        parameters.push((name.to_owned(), value.to_owned()));
    }
    if args.log_rotate == LogRotate::Reopen && !args.logappend {
        return Err("--logRotate reopen needs --logappend".to_owned());
    }
    let unix_socket_dir = match (args.nounixsocket, args.unix_socket_prefix) {
        (true, _) => None,
        (false, Some(dir)) => Some(dir),
        // A throw-away server leaves nothing behind even when it is killed, unless told where.
        (false, None) => (!args.ephemeral).then(|| PathBuf::from("/tmp")),
    };
    Ok(ServeOptions {
        config: args.config,
        argv: std::env::args().collect(),
        allocator: Some("mimalloc"),
        return_memory: Some(crate::allocator::return_memory),
        block_compressor: args.block_compressor,
        storage_engine: args.storage_engine,
        dbpath: (!args.ephemeral).then_some(args.dbpath),
        give_up_after: args.give_up_commits_after,
        port: args.port,
        bind,
        ipv6: args.ipv6,
        logpath: args.logpath,
        logappend: args.logappend,
        log_rotate: args.log_rotate,
        unix_socket_dir,
        max_connections: args.max_conns,
        replica_set: (!args.standalone).then_some(args.repl_set),
        log: args.log.zip(args.host).map(|(address, host)| LogOptions {
            address,
            host,
            checkpoint_commits: args.log_checkpoints,
        }),
        oplog_mib: args.oplog_size,
        oplog_min_retention_hours: args.oplog_min_retention_hours,
        cache_gib: args.cache_size_gb,
        parameters,
        profiler: AtStart {
            slow_ms: args.slowms,
            sample_rate: args.slow_op_sample_rate,
            level: args.profile,
        },
        auth: (args.auth || args.key_file.is_some()) && !args.noauth,
        noauth: args.noauth,
        key_file: args.key_file,
        insecure_no_auth: args.insecure_no_auth,
        noscripting: args.noscripting,
        redact_client_log_data: args.redact_client_log_data,
        audit: audit_options(args.audit)?,
        encryption: args
            .encryption
            .encryption_key_file
            .map(|path| MasterKeyFile::new(path, args.encryption.encryption_rotate_master_key)),
        tls: tls_options(args.tls)?,
        metrics_port: args.metrics_port,
        metrics_addresses: args.metrics_bind_ip,
        sql_port: args.sql_port,
        sql_files: args.sql_files,
        quiet: args.quiet,
        verbosity: args.verbose.min(5),
        print_uri: args.print_uri,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn parse(line: &str) -> Result<ServeOptions, String> {
        match Cli::try_parse_from(line.split(' ')).map_err(|e| e.to_string())?.command {
            Command::Serve(args) => serve_options(*args),
            _ => Err("not serve".to_owned()),
        }
    }

    #[test]
    fn flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_safe() {
        let options = parse("nestor serve").unwrap();
        assert!(matches!(options.bind, Bind::Local));
        assert_eq!(options.port, 27017);
        assert_eq!(options.replica_set.as_deref(), Some("rs0"));
        assert_eq!(options.log, None);
        let member = parse("nestor serve --replSet s --log file:///x --host a.example:27017").unwrap();
        let log = member.log.unwrap();
        assert_eq!(
            (log.address.as_str(), log.host.as_str()),
            ("file:///x", "a.example:27017")
        );
        for refused in [
            "--log file:///x",
            "--host a:1",
            "--log file:///x --host a",
            "--log file:///x --host a:1 --standalone",
        ] {
            parse(&format!("nestor serve {refused}")).unwrap_err();
        }
        assert!(options.dbpath.is_some() && options.unix_socket_dir.is_some());
        assert_eq!((options.profiler.slow_ms, options.profiler.level), (100, 0));
        let options = parse("nestor serve --slowms -1 --profile 2").unwrap();
        assert_eq!((options.profiler.slow_ms, options.profiler.level), (-1, 2));
        let options = parse("nestor serve --ephemeral --standalone --port 0").unwrap();
        assert!(options.dbpath.is_none() && options.unix_socket_dir.is_none() && options.replica_set.is_none());
    }

    #[test]
    fn a_configuration_file_stands_before_the_flags() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nestor.conf");
        std::fs::write(
            &path,
            "net: {port: 27018, bindIp: 127.0.0.2}\noperationProfiling: {mode: all}\n",
        )
        .unwrap();
        let path = path.display().to_string();
        for line in [
            format!("nestor serve --config {path} --port 5"),
            format!("nestor --port 5 -f {path}"),
            format!("nestor --config={path} --port=5"),
        ] {
            let args = arguments(line.split(' ').map(str::to_owned).collect()).unwrap();
            let options = parse(&args.join(" ")).unwrap();
            assert_eq!((options.port, options.profiler.level), (5, 2), "{line}");
            assert_eq!(options.bind, Bind::Addresses(vec!["127.0.0.2".to_owned()]), "{line}");
            assert_eq!(options.config.unwrap().display().to_string(), path, "{line}");
        }
        for line in [
            "nestor",
            "nestor --version",
            "nestor -h",
            "nestor check x",
            "nestor import --config y",
        ] {
            let given: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(arguments(given.clone()).unwrap(), given);
        }
        let missing = ["nestor", "serve", "-f", "/nowhere/x"].map(str::to_owned).to_vec();
        assert!(arguments(missing).is_err_and(|e| e.contains("/nowhere/x")));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for line in [
            "nestor serve --fork",
            "nestor serve --storageEngine mmapv1",
            "nestor serve --wiredTigerCollectionBlockCompressor lz4",
            "nestor serve --port 70000",
            "nestor serve --maxConns 4",
            "nestor serve --setParameter x",
            "nestor serve --oplogSize 0",
            "nestor serve --logRotate rename",
            "nestor serve --logpath x --logRotate reopen",
            "nestor serve --cacheSizeGB NaN",
            "nestor serve --profile 3",
            "nestor serve --slowOpSampleRate 1.5",
            "nestor serve --ephemeral --dbpath /x",
            "nestor serve --bind_ip_all --bind_ip 127.0.0.1",
            "nestor serve --auth --noauth",
            "nestor serve --keyFile k --noauth",
            "nestor serve --auth --insecure-no-auth",
            "nestor serve --enableEncryption",
            "nestor serve --encryptionKeyFile k",
            "nestor serve --encryptionRotateMasterKey k",
            "nestor serve --enableEncryption --encryptionKeyFile k --encryptionCipherMode AES256-CBC",
            "nestor serve --enableEncryption --encryptionKeyFile k --ephemeral",
            "nestor serve --enableEncryption --encryptionKeyFile k --kmipServerName x",
            "nestor serve --tlsMode requireTLS",
            "nestor serve --tlsMode sometimes --tlsCertificateKeyFile x",
            "nestor serve --tlsCertificateKeyFile x",
            "nestor serve --tlsMode allowTLS --tlsCertificateKeyFile x --tlsCRLFile y",
            "nestor serve --tlsMode allowTLS --tlsCertificateKeyFile x --tlsDisabledProtocols TLS1_2,TLS1_3",
            "nestor serve --tlsMode allowTLS --tlsCertificateKeyFile x --tlsFIPSMode",
            "nestor",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
