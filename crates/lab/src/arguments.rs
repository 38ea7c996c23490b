//! The arguments of `nestor bench`'s commands.

use crate::target::Target;
use crate::wire::Durability;
use crate::workload::Suite;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// What `nestor bench` does beside its own cases.
#[derive(Subcommand, Debug)]
pub enum LabCommand {
    /// Measure servers with the workloads of the laboratory; results are appended to a file
    Run(RunArgs),
    /// Compare results: tables here, and a page for a browser
    Report(ReportArgs),
    /// Results by release: what each does relative to the first, and what the last one lost
    History(HistoryArgs),
    /// Write the library that delays a server's syncs, for LD_PRELOAD, by NESTOR_LAB_SYNC_MICROS
    Shim(ShimArgs),
    /// The names of all workloads and their tests
    List,
}

/// What commits wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// Nothing: a crash of the machine may lose the last moments.
    Relaxed,
    /// The disk.
    Durable,
}

/// Arguments of `nestor bench run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// A server: [NAME=]mongodb://…, postgres://… or mysql://…, or [NAME=]nestor:PROGRAM FLAGS… to start one; several take turns
    #[arg(long = "target", required = true)]
    pub targets: Vec<String>,
    /// The workload
    #[arg(long, value_enum, default_value = "micro")]
    pub suite: Suite,
    /// Only these tests of it
    #[arg(long, value_delimiter = ',')]
    pub tests: Vec<String>,
    /// The file that results are appended to
    #[arg(long, short, default_value = "results.json")]
    pub output: PathBuf,
    /// Clients; several numbers measure how throughput grows with them
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub clients: Vec<usize>,
    /// More clients than the rules allow: fewer connections than cores
    #[arg(long)]
    pub oversubscribe: bool,
    /// Rows of each table
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    /// Tables
    #[arg(long, default_value_t = 1)]
    pub tables: usize,
    /// Operations a second of all clients together; without it each client asks again as soon as it is answered
    #[arg(long)]
    pub rate: Option<f64>,
    /// Seconds that each test is measured for
    #[arg(long, default_value_t = 20.0)]
    pub seconds: f64,
    /// Seconds that warming up may take; it ends sooner when throughput, memory and page faults level
    #[arg(long, default_value_t = 20.0)]
    pub warm_seconds: f64,
    /// Take a CPU profile of each test too, in a run of its own that is not measured (of what can be done only once, meanwhile): by perf where it may be used
    #[arg(long)]
    pub profile: bool,
    /// Rounds; the servers take turns in each. A sequence of steps begins anew with each
    #[arg(long, default_value_t = 1)]
    pub rounds: u32,
    /// A test that fails is noted, and those after it are measured all the same
    #[arg(long)]
    pub keep_going: bool,
    /// What commits wait for
    #[arg(long, value_enum, default_value = "relaxed")]
    pub durability: Wait,
    /// Make each round trip so many µs longer: by tc's netem if it may be used and all servers are started here, else each client waits before it asks
    #[arg(long, default_value_t = 0)]
    pub network_delay: u64,
    /// Each sync of the server's disk is delayed by so many µs: servers that are started here are told to, others are preloaded with the library of nestor bench shim
    #[arg(long, default_value_t = 0)]
    pub sync_delay: u64,
    /// What reports call this run beside the workload's name, such as cached or IO-bound
    #[arg(long)]
    pub note: Option<String>,
    /// What all that is random comes from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `nestor bench report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Files of results; the first server in them is what others are compared with
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The page that is written
    #[arg(long)]
    pub html: Option<PathBuf>,
    /// Its title
    #[arg(long, default_value = "Report of nestor bench")]
    pub title: String,
}

/// Arguments of `nestor bench history`.
#[derive(Args, Debug)]
pub struct HistoryArgs {
    /// The file with the results of releases
    pub file: PathBuf,
    /// Add these results first
    #[arg(long, requires = "release")]
    pub add: Option<PathBuf>,
    /// As those of this release
    #[arg(long, requires = "add")]
    pub release: Option<String>,
    /// Only those of this server, where the results have several
    #[arg(long, requires = "add")]
    pub server: Option<String>,
}

/// Arguments of `nestor bench shim`.
#[derive(Args, Debug)]
pub struct ShimArgs {
    /// Where it is written
    pub file: PathBuf,
}

/// Finds the server that a `--target` names.
pub type Resolve<'r> = &'r dyn Fn(&str, &str, Durability, Duration) -> Result<Target, String>;
