//! `nestor bench`: what operations cost the server in CPU time, and how long they take.
//!
//! Messages are encoded beforehand; an operation only writes new `_id`s into them. One thread drives all
//! connections, each of which has one message under way. The server's CPU time comes from `/proc`. Every case also
//! runs against a `responder`, a thread that answers the same messages with the same bytes and does nothing
//! else: the ratio to it says what the database costs, whatever the machine.
//!
//! `nestor bench run` and `report` are the laboratory's (`nestor_lab`); `lab` brings it connections that are logged in.

mod changes;
mod cpu;
mod lab;
mod load;
mod messages;
mod probe;
mod process;
mod report;
mod responder;
mod transactions;

use crate::client::{Client, ClientError, Uri, body_of};
use clap::Args;
pub use messages::Case;
use nestor_model::{Document, RawDocBuf, doc};
use process::Server;
use report::{Report, Row};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const DATABASE: &str = "nestor_bench";
const COLLECTION: &str = "c";
/// Of documents of 100 KiB.
const LARGE_COLLECTION: &str = "large";
/// Connections that load; more would only wait for each other.
const LOADERS: usize = 2;

/// Arguments of `nestor bench`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    /// What the laboratory is to do
    #[command(subcommand)]
    pub lab: Option<nestor_lab::command::LabCommand>,
    /// Measure a running server instead of one of our own; its database nestor_bench is dropped
    #[arg(long)]
    pub uri: Option<String>,
    /// Process id of the server --uri names, for its CPU time and memory
    #[arg(long, requires = "uri")]
    pub pid: Option<u32>,
    /// Connections
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// How long each case that only reads runs
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// How long each case that writes runs; what a checkpoint behind it costs the server is counted too
    #[arg(long, default_value_t = 20.0)]
    pub write_seconds: f64,
    /// Sizes of the collection, in documents; every case runs at each of them
    #[arg(long, value_delimiter = ',', default_value = "50000,5000000")]
    pub docs: Vec<u64>,
    /// Only these cases
    #[arg(long, value_enum, value_delimiter = ',')]
    pub cases: Vec<Case>,
    /// Where our own server's directory is made; it is deleted afterwards
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub dir: PathBuf,
    /// Measure transactions instead: against single commands, the disk and each other
    #[arg(long, conflicts_with_all = ["uri", "cases", "docs"])]
    pub transactions: bool,
    /// Measure change streams instead
    #[arg(long, conflicts_with_all = ["cases", "docs", "transactions"])]
    pub changes: bool,
    /// A run of seconds that proves only that everything works
    #[arg(long)]
    pub quick: bool,
}

/// What is left of the arguments once `--quick` and the defaults are applied.
struct Settings {
    connections: usize,
    time: Duration,
    write_time: Duration,
    sizes: Vec<u64>,
    cases: Vec<Case>,
}

impl Settings {
    fn new(args: &BenchArgs) -> Result<Self, String> {
        let cases = if args.cases.is_empty() {
            Case::ALL.to_vec()
        } else {
            args.cases.clone()
        };
        if args.quick {
            let time = Duration::from_millis(100);
            return Ok(Self {
                connections: 4,
                time,
                write_time: time,
                sizes: vec![2_000, 6_000],
                cases,
            });
        }
        let time = Duration::try_from_secs_f64(args.seconds).map_err(|e| format!("--seconds: {e}"))?;
        let write_time =
            Duration::try_from_secs_f64(args.write_seconds).map_err(|e| format!("--write-seconds: {e}"))?;
        if args.connections == 0 || args.docs.iter().any(|n| *n < 1_000) {
            return Err("at least one connection and 1,000 documents".into());
        }
        let mut sizes = args.docs.clone();
        sizes.sort_unstable();
        sizes.dedup();
        Ok(Self {
            connections: args.connections,
            time,
            write_time,
            sizes,
            cases,
        })
    }
}

/// Measures as `args` say and prints a table; an error is a message for the user.
pub fn run(args: &BenchArgs) -> Result<(), String> {
    if let Some(command) = &args.lab {
        return lab::run(command);
    }
    let settings = Settings::new(args)?;
    let what = |uri: &Uri, pid| match args.changes {
        true => changes::measure(&changes::Scale::new(args.quick), uri, pid),
        false => measure(&settings, uri, pid),
    };
    if let Some(uri) = &args.uri {
        let uri: Uri = uri.parse().map_err(|e: ClientError| e.to_string())?;
        // The load generator has connections of its own, which take no other options.
        uri.only_with(&[
            "directConnection",
            "replicaSet",
            "serverSelectionTimeoutMS",
            "tls",
            "ssl",
        ])
        .map_err(|e| e.to_string())?;
        return what(&uri, args.pid);
    }
    let folder = process::Folder::make(&args.dir)?;
    if args.transactions {
        let mut server = Server::start(&folder.path().join("data"))?;
        transactions::run(&server.uri, folder.path(), settings.write_time / 2)?;
        return server.stop();
    }
    if !args.changes {
        startup(&folder)?;
    }
    let mut server = Server::start(&folder.path().join("data"))?;
    what(&server.uri, Some(server.pid()))?;
    server.stop()
}

/// Time from exec to the first answered ping on a small directory, and idle memory.
fn startup(folder: &process::Folder) -> Result<(), String> {
    const STARTS: usize = 5;
    let dbpath = folder.path().join("small");
    let mut server = Server::start(&dbpath)?;
    Bench::connect(&server.uri)?.insert_range(0, 1_000)?;
    server.stop()?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let mut server = Server::start(&dbpath)?;
        Bench::connect(&server.uri)?.command(doc! { "ping": 1 })?;
        times.push(begun.elapsed());
        if times.len() == STARTS {
            println!("idle RSS: {:.1} MiB", report::mebibytes(cpu::rss_bytes(server.pid())));
        }
        server.stop()?;
    }
    times.sort_unstable();
    println!(
        "start to ping on an existing directory of 1,000 documents: {:.1} ms (median of {STARTS}; best {:.1})",
        report::milliseconds(times[STARTS / 2]),
        report::milliseconds(times[0])
    );
    Ok(())
}

fn measure(settings: &Settings, uri: &Uri, pid: Option<u32>) -> Result<(), String> {
    let mut bench = Bench::connect(uri)?;
    bench.command(doc! { "dropDatabase": 1 })?;
    let mut report = Report::new(settings.connections, pid.is_some());
    let mut documents = 0;
    let mut loaded_per_second = None;
    for &size in &settings.sizes {
        if documents < size {
            let row = load_up_to(size, documents, uri, pid)?;
            documents = row.documents;
            loaded_per_second = Some(row.operations_per_second());
            if settings.cases.contains(&Case::InsertMany) {
                report.add(row);
            }
        }
        for &case in settings.cases.iter().filter(|case| **case != Case::InsertMany) {
            if let Some(field) = case.index() {
                build_index(field, documents, uri, pid, loaded_per_second)?;
            }
            let row = run_case(case, documents, uri, pid, settings)?;
            documents = row.documents;
            report.add(row);
        }
    }
    report.finish();
    if let Some(pid) = pid {
        println!("RSS after it all: {:.1} MiB", report::mebibytes(cpu::rss_bytes(pid)));
    }
    bench.command(doc! { "dropDatabase": 1 })
}

/// Loads the collection from `from` to `size` documents, with a probe beside it that feels every pause.
fn load_up_to(size: u64, from: u64, uri: &Uri, pid: Option<u32>) -> Result<Row, String> {
    let probe = probe::Probe::start(uri)?;
    let before = pid.map(cpu::process_time);
    let ids = messages::Ids::insert_from(from).until(size);
    let outcome = load::run(uri, Case::InsertMany, LOADERS, ids, load::Until::Exhausted)?;
    let pauses = probe.stop()?;
    Bench::connect(uri)?.checkpoint()?;
    let spent = spent_since(pid, before);
    println!(
        "loading up to {size} documents: longest pause {:.1} ms for a find by _id, {:.1} ms for an insert",
        report::milliseconds(pauses.find),
        report::milliseconds(pauses.insert)
    );
    let documents = outcome.ids.next_insert();
    let baseline = responder::baseline(uri, Case::InsertMany, LOADERS, Duration::from_millis(300), documents)?;
    Ok(Row {
        case: Case::InsertMany,
        documents,
        outcome,
        spent,
        baseline,
    })
}

/// Builds an index beside a probe, and compares with the rate at which the documents were loaded.
fn build_index(
    field: &str,
    documents: u64,
    uri: &Uri,
    pid: Option<u32>,
    loaded_per_second: Option<f64>,
) -> Result<(), String> {
    let probe = probe::Probe::start(uri)?;
    let before = pid.map(cpu::process_time);
    let begun = Instant::now();
    Bench::connect(uri)?.create_index(field)?;
    let (elapsed, spent) = (begun.elapsed(), spent_since(pid, before));
    let pauses = probe.stop()?;
    println!("{}", report::build_line(field, documents, elapsed, spent));
    let ratio = loaded_per_second.map_or(String::new(), |rate| {
        format!(
            "{:.1} times as fast as insertMany, ",
            documents as f64 / elapsed.as_secs_f64() / rate.max(1e-9)
        )
    });
    println!(
        "building it: {ratio}longest pause {:.1} ms for a find by _id, {:.1} ms for an insert",
        report::milliseconds(pauses.find),
        report::milliseconds(pauses.insert)
    );
    Ok(())
}

fn run_case(case: Case, documents: u64, uri: &Uri, pid: Option<u32>, settings: &Settings) -> Result<Row, String> {
    let mut bench = Bench::connect(uri)?;
    if case == Case::IncLarge {
        bench.load_large()?;
    }
    if case.index().is_some() {
        println!(
            "{}",
            report::examined_line(case, bench.explain(case, documents)?.as_raw())
        );
    }
    let connections = case.connections(settings.connections);
    let run = |ids, time| load::run(uri, case, connections, ids, load::Until::Elapsed(time));
    let warmed_up = run(messages::Ids::new(case, documents), settings.time / 6)?;
    // Earlier writes are merged into the base first, so that only merging what this case writes counts as its cost.
    bench.checkpoint()?;
    let before = pid.map(cpu::process_time);
    // Large documents fill the journal in a moment.
    let is_long = case.writes() && case != Case::IncLarge;
    let time = if is_long { settings.write_time } else { settings.time };
    let outcome = run(warmed_up.ids, time)?;
    if case.writes() {
        bench.checkpoint()?;
    }
    let spent = spent_since(pid, before);
    let documents = outcome.ids.next_insert();
    let baseline = responder::baseline(uri, case, connections, settings.time / 3, documents)?;
    if case.index().is_some() {
        bench.command(doc! { "dropIndexes": COLLECTION, "index": "*" })?;
    }
    Ok(Row {
        case,
        documents,
        outcome,
        spent,
        baseline,
    })
}

fn spent_since(pid: Option<u32>, before: Option<Duration>) -> Option<Duration> {
    Some(cpu::process_time(pid?).saturating_sub(before?))
}

/// A connection for what is not measured.
struct Bench {
    client: Client,
}

impl Bench {
    fn connect(uri: &Uri) -> Result<Self, String> {
        Ok(Self {
            client: Client::connect(uri).map_err(|e| e.to_string())?,
        })
    }

    fn command(&mut self, command: Document) -> Result<(), String> {
        self.run(command, DATABASE)
    }

    fn run(&mut self, command: Document, database: &str) -> Result<(), String> {
        self.client
            .command(addressed(command, database).as_raw())
            .map(|_| ())
            .map_err(|e| e.to_string())
    }

    /// Has the server merge what was written into its base.
    fn checkpoint(&mut self) -> Result<(), String> {
        for command in [doc! { "fsync": 1, "lock": true }, doc! { "fsyncUnlock": 1 }] {
            self.run(command, "admin")?;
        }
        Ok(())
    }

    /// Sends a message of a case and returns the bytes of its reply, which must be a good one.
    fn ask(&mut self, message: &messages::Template) -> Result<Vec<u8>, String> {
        let connection = self.client.connection();
        connection.send_bytes(message.bytes()).map_err(|e| e.to_string())?;
        let mut reply = Vec::new();
        connection.read_message(&mut reply).map_err(|e| e.to_string())?;
        messages::verify(&reply)?;
        Ok(reply)
    }

    /// Inserts documents `from..to`, in whole batches.
    fn insert_range(&mut self, from: u64, to: u64) -> Result<(), String> {
        let mut message = messages::Template::new(Case::InsertMany);
        let mut ids = messages::Ids::insert_from(from).until(to);
        while !ids.exhausted() {
            message.fill(&mut ids);
            self.ask(&message)?;
        }
        Ok(())
    }

    /// Builds an index on `field`.
    fn create_index(&mut self, field: &str) -> Result<(), String> {
        let index = doc! { "key": doc! { field: 1 }, "name": field };
        let indexes = vec![nestor_model::Value::from(index)];
        self.command(doc! { "createIndexes": COLLECTION, "indexes": indexes })
    }

    /// What explain counts for an operation of `case` on a collection of `documents`.
    fn explain(&mut self, case: Case, documents: u64) -> Result<RawDocBuf, String> {
        let mut message = messages::Template::new(case);
        message.fill(&mut messages::Ids::new(case, documents));
        let explain = doc! { "explain": body_of(message.bytes())?, "verbosity": "executionStats" };
        self.client
            .command(addressed(explain, DATABASE).as_raw())
            .map_err(|e| e.to_string())
    }

    /// Makes the collection of large documents.
    fn load_large(&mut self) -> Result<(), String> {
        let all = doc! { "q": doc! {}, "limit": 0 };
        let deletes = nestor_model::Value::from(vec![nestor_model::Value::from(all)]);
        self.command(doc! { "delete": LARGE_COLLECTION, "deletes": deletes })?;
        for id in 0..messages::LARGE_DOCUMENTS {
            let documents = vec![nestor_model::Value::from(messages::large_document(id))];
            self.command(doc! { "insert": LARGE_COLLECTION, "documents": documents })?;
        }
        Ok(())
    }

    /// Takes away the documents from `first` on.
    fn delete_from(&mut self, first: u64) -> Result<(), String> {
        let first = i64::try_from(first).map_err(|e| e.to_string())?;
        let statement = doc! { "q": doc! { "_id": doc! { "$gte": first } }, "limit": 0 };
        let deletes = nestor_model::Value::from(vec![nestor_model::Value::from(statement)]);
        self.command(doc! { "delete": COLLECTION, "deletes": deletes })
    }
}

fn addressed(mut command: Document, database: &str) -> RawDocBuf {
    command.push("$db", database);
    command.to_raw()
}
