//! The arguments of `nestor bench run` and `nestor bench report`, and what they do.

use crate::delay::{delayed, write_shim};
use crate::drive::Times;
use crate::history;
use crate::measure::host::cores;
use crate::measure::profile::{Profiler, Stacks};
use crate::report::{page::page, table::Board, text};
use crate::results::{Measurement, Sink, Surroundings, read};
use crate::target::Target;
use crate::wire::Durability;
use crate::workload::{Settings, Suite, Workload};
use clap::{Args, Subcommand, ValueEnum};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Longest run that is profiled.
const PROFILE_MAX: Duration = Duration::from_secs(5);

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
    /// Take a CPU profile of each test too, in a run of its own that is not measured: by perf where it may be used
    #[arg(long)]
    pub profile: bool,
    /// Rounds; the servers take turns in each
    #[arg(long, default_value_t = 1)]
    pub rounds: u32,
    /// What commits wait for
    #[arg(long, value_enum, default_value = "relaxed")]
    pub durability: Wait,
    /// Put so many µs before each question, as a longer network would
    #[arg(long, default_value_t = 0)]
    pub network_delay: u64,
    /// Each sync of the server's disk is delayed by so many µs: servers that are started here are told to, others are preloaded with the library of nestor bench shim
    #[arg(long, default_value_t = 0)]
    pub sync_delay: u64,
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
}

/// Arguments of `nestor bench shim`.
#[derive(Args, Debug)]
pub struct ShimArgs {
    /// Where it is written
    pub file: PathBuf,
}

/// Finds the server that a `--target` names.
pub type Resolve<'r> = &'r dyn Fn(&str, &str, Durability, Duration) -> Result<Target, String>;

/// Does what the command says; `resolve` makes a [`Target`] of a label and a URI, whose commits
/// wait for this, and whose syncs are delayed so long if it is started for the run. An error is a message for the user.
pub fn run(command: &LabCommand, resolve: Resolve<'_>) -> Result<(), String> {
    match command {
        LabCommand::Run(args) => measure(args, resolve),
        LabCommand::Report(args) => report(args),
        LabCommand::History(args) => {
            if let (Some(file), Some(release)) = (&args.add, &args.release) {
                history::add(&args.file, release, file)?;
            }
            let shown = history::show(&args.file, std::io::stdout().is_terminal())?;
            // Who closes the pipe has seen enough.
            let _ = std::io::stdout().write_all(shown.as_bytes());
            Ok(())
        }
        LabCommand::Shim(args) => write_shim(&args.file),
        LabCommand::List => {
            for suite in Suite::ALL {
                for test in suite.tests() {
                    println!("{} {test}", suite.name());
                }
            }
            Ok(())
        }
    }
}

fn report(args: &ReportArgs) -> Result<(), String> {
    let mut all = Vec::new();
    for file in &args.files {
        let (found, left_out) = read(file)?;
        left_out.iter().for_each(|remark| eprintln!("{remark}"));
        all.extend(found);
    }
    let board = Board::new(all);
    let tables = text::print(&board, std::io::stdout().is_terminal());
    // Who closes the pipe has seen enough.
    let _ = std::io::stdout().write_all(tables.as_bytes());
    if let Some(html) = &args.html {
        std::fs::write(html, page(&board, &args.title)).map_err(|error| format!("{}: {error}", html.display()))?;
        println!("{}", html.display());
    }
    Ok(())
}

/// `NAME=URI`, or the URI, whose server is called by its address.
fn labelled(target: &str) -> (String, &str) {
    let scheme = target.find(':').unwrap_or(target.len());
    match target[..scheme].split_once('=') {
        Some((label, _)) => (label.to_owned(), &target[label.len() + 1..]),
        None => {
            // No report repeats a password.
            let place = target.split_once("://").map_or(target, |(_, rest)| rest);
            let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
            let end = place.find(['/', '?', ' ']).unwrap_or(place.len());
            (place[..end].to_owned(), target)
        }
    }
}

fn seconds(value: f64, name: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(value).map_err(|error| format!("{name}: {error}"))
}

/// The tests that are asked for, in the order they run.
fn tests(args: &RunArgs) -> Result<Vec<&'static str>, String> {
    let all = args.suite.tests();
    for name in &args.tests {
        if !all.contains(&name.as_str()) {
            return Err(format!("there is no test {name}: see nestor bench list"));
        }
    }
    let last = all
        .iter()
        .rposition(|test| args.tests.is_empty() || args.tests.iter().any(|name| name == test));
    let is_wanted = |(at, test): &(usize, &'static str)| match args.suite.is_sequence() {
        // Steps go on where those before them ended.
        true => Some(*at) <= last,
        false => args.tests.is_empty() || args.tests.iter().any(|name| name == test),
    };
    Ok(all
        .into_iter()
        .enumerate()
        .filter(is_wanted)
        .map(|(_, test)| test)
        .collect())
}

fn measure(args: &RunArgs, resolve: Resolve<'_>) -> Result<(), String> {
    let most = args.clients.iter().copied().max().unwrap_or(0);
    let connections = most * args.suite.connections_per_client();
    // Two cores are the least that a client and a server can have; one client of any workload is always allowed.
    if most > 1 && connections >= cores() && !args.oversubscribe {
        return Err(format!(
            "{connections} connections on {} cores leave none for the server: fewer clients, or --oversubscribe",
            cores()
        ));
    }
    if args.clients.contains(&0) || args.rounds == 0 {
        return Err("at least one client and one round are wanted".into());
    }
    let tests = tests(args)?;
    if args.suite.is_sequence() && (args.rounds > 1 || args.clients.len() > 1) {
        return Err(format!(
            "{} is a sequence of steps: one round, one number of clients",
            args.suite.name()
        ));
    }
    let durability = match args.durability {
        Wait::Relaxed => Durability::Relaxed,
        Wait::Durable => Durability::Durable,
    };
    let mut run = Run {
        args,
        times: Times {
            warm_max: seconds(args.warm_seconds, "--warm-seconds")?,
            measured: seconds(args.seconds, "--seconds")?,
            sample: Duration::from_millis(if args.seconds < 5.0 { 100 } else { 1_000 }),
        },
        servers: Vec::new(),
        sink: Sink::open(&args.output)?,
    };
    for target in &args.targets {
        let (label, uri) = labelled(target);
        let sync_delay = Duration::from_micros(args.sync_delay);
        let network_delay = Duration::from_micros(args.network_delay);
        let mut target = resolve(&label, uri, durability, sync_delay)?;
        target.dial = delayed(target.dial, network_delay);
        let surroundings = Surroundings::of(&target).map_err(|error| format!("{label}: {error}"))?;
        let settings = Settings {
            tables: args.tables,
            rows: args.rows,
            clients: most,
            rate: args.rate,
            seed: args.seed,
            sample: run.times.sample,
            sync_delay,
            network_delay,
        };
        let loaded = args
            .suite
            .load(&target, settings)
            .map_err(|error| format!("{label}: {error}"))?;
        run.servers.push(Loaded {
            target,
            surroundings,
            workload: loaded.0,
        });
        run.keep(run.servers.len() - 1, loaded.1, 1, 0)?;
    }
    for test in tests {
        for &clients in &args.clients {
            run.rounds(test, clients)?;
        }
    }
    Ok(())
}

/// A server with its data.
struct Loaded {
    target: Target,
    surroundings: Surroundings,
    workload: Box<dyn Workload>,
}

/// A run over all servers.
struct Run<'a> {
    args: &'a RunArgs,
    times: Times,
    servers: Vec<Loaded>,
    sink: Sink,
}

impl Run<'_> {
    /// All rounds of a test with so many clients.
    fn rounds(&mut self, test: &str, clients: usize) -> Result<(), String> {
        for round in 0..self.args.rounds {
            // A B, B A: whatever drifts touches all alike.
            let mut order: Vec<usize> = (0..self.servers.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let server = &mut self.servers[at];
                let failed = |error: String| format!("{}, {test}: {error}", server.target.label);
                server.workload.set_clients(clients);
                let mut measurement = server.workload.run(test, self.times).map_err(failed)?;
                if self.args.profile && round == 0 && measurement.failure.is_none() && !self.args.suite.is_sequence() {
                    measurement.profile = self.profile(at, test)?;
                }
                self.keep(at, measurement, clients, round)?;
            }
        }
        Ok(())
    }

    fn profile(&mut self, at: usize, test: &str) -> Result<Stacks, String> {
        let server = &mut self.servers[at];
        let Some(processes) = server.target.processes() else {
            return Err(format!(
                "{}: its process is not known, so no profile can be taken",
                server.target.label
            ));
        };
        let times = Times {
            warm_max: Duration::ZERO,
            measured: self.times.measured.min(PROFILE_MAX),
            ..self.times
        };
        let profiler = Profiler::start(&processes, times.measured);
        let ran = server.workload.run(test, times);
        let stacks = profiler.stop();
        ran.map(|_| stacks)
    }

    /// Writes a measurement into the file, and says what it came to.
    fn keep(&mut self, at: usize, mut m: Measurement, clients: usize, round: u32) -> Result<(), String> {
        let server = &self.servers[at];
        m.label.clone_from(&server.target.label);
        m.round = i64::from(round);
        m.clients = clients as i64;
        let config = [
            ("tables", self.args.tables.to_string()),
            ("rows", self.args.rows.to_string()),
            ("seed", self.args.seed.to_string()),
            ("syncDelayMicros", self.args.sync_delay.to_string()),
            ("networkDelayMicros", self.args.network_delay.to_string()),
        ];
        m.config.extend(config.map(|(name, value)| (name.to_owned(), value)));
        if let Some(rate) = self.args.rate {
            m.config.push(("rate".into(), rate.to_string()));
        }
        if self.args.clients.len() > 1 && m.test != "load" {
            m.config.push(("scaleUp".into(), "true".into()));
        }
        server.surroundings.describe(&mut m);
        println!("{}", line_of(&m));
        self.sink.write(&m)?;
        m.failure
            .map_or(Ok(()), |failure| Err(format!("{}, {}: {failure}", m.label, m.test)))
    }
}

/// A line for the terminal while the run goes on.
fn line_of(m: &Measurement) -> String {
    let cpu = |who| {
        m.used(who, "cpuMicros")
            .map_or("-".to_owned(), |cpu| format!("{cpu:.1}"))
    };
    format!(
        "{:<16} {:<26} {:>12}/s  CPU µs: server {:>8}, client {:>8}  p99 {:>9.0} µs{}",
        m.label,
        m.test,
        crate::report::table::number(m.rate),
        cpu("server"),
        cpu("client"),
        m.latency("p99").unwrap_or(0.0),
        if m.is_steady || m.warmed == 0.0 {
            ""
        } else {
            "  (not steady)"
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        for (target, label, uri) in [
            ("A=mongodb://h:1/?x=y", "A", "mongodb://h:1/?x=y"),
            ("mongodb://u:geheim@h:1/?x=y", "h:1", "mongodb://u:geheim@h:1/?x=y"),
            ("postgres://h/db", "h", "postgres://h/db"),
        ] {
            assert_eq!(labelled(target), (label.to_owned(), uri));
        }
    }
}
