//! The arguments of `nestor bench run` and `nestor bench report`, and what they do.

use crate::drive::Times;
use crate::measure::host::cores;
use crate::report::{page::page, table::Board, text};
use crate::results::{Measurement, Sink, Surroundings, read};
use crate::target::Target;
use crate::wire::Durability;
use crate::workload::micro::{Micro, Scale, Test};
use clap::{Args, Subcommand, ValueEnum};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

/// What `nestor bench` does beside its own cases.
#[derive(Subcommand, Debug)]
pub enum LabCommand {
    /// Measure servers with the workloads of the laboratory; results are appended to a file
    Run(RunArgs),
    /// Compare results: tables here, and a page for a browser
    Report(ReportArgs),
    /// The names of all workloads and their tests
    List,
}

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// The 32 microbenchmarks.
    Micro,
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
    /// Clients, each with a connection
    #[arg(long, default_value_t = 1)]
    pub clients: usize,
    /// More clients than cores are allowed
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
    /// Rounds; the servers take turns in each
    #[arg(long, default_value_t = 1)]
    pub rounds: u32,
    /// What commits wait for
    #[arg(long, value_enum, default_value = "relaxed")]
    pub durability: Wait,
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

/// Finds the server that a `--target` names.
pub type Resolve<'r> = &'r dyn Fn(&str, &str, Durability) -> Result<Target, String>;

/// Does what the command says; `resolve` makes a [`Target`] of a label and a URI. An error is a message for the user.
pub fn run(command: &LabCommand, resolve: Resolve<'_>) -> Result<(), String> {
    match command {
        LabCommand::Run(args) => measure(args, resolve),
        LabCommand::Report(args) => report(args),
        LabCommand::List => {
            for test in Test::all() {
                println!("micro {}", test.name);
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

fn measure(args: &RunArgs, resolve: Resolve<'_>) -> Result<(), String> {
    if args.clients >= cores().max(2) && !args.oversubscribe {
        return Err(format!(
            "{} clients on {} cores leave none for the server: fewer clients than cores, or --oversubscribe",
            args.clients,
            cores()
        ));
    }
    let mut tests = Vec::new();
    for name in &args.tests {
        tests.push(Test::named(name).ok_or_else(|| format!("there is no test {name}: see nestor bench list"))?);
    }
    if tests.is_empty() {
        tests = Test::all();
    }
    let times = Times {
        warm_max: seconds(args.warm_seconds, "--warm-seconds")?,
        measured: seconds(args.seconds, "--seconds")?,
        sample: Duration::from_millis(if args.seconds < 5.0 { 100 } else { 1_000 }),
    };
    let durability = match args.durability {
        Wait::Relaxed => Durability::Relaxed,
        Wait::Durable => Durability::Durable,
    };
    let mut targets = Vec::new();
    for target in &args.targets {
        let (label, uri) = labelled(target);
        let target = resolve(&label, uri, durability)?;
        let surroundings = Surroundings::of(&target).map_err(|error| format!("{label}: {error}"))?;
        targets.push((target, surroundings));
    }
    let mut sink = Sink::open(&args.output)?;
    let scale = Scale {
        tables: args.tables,
        rows: args.rows,
        clients: args.clients,
        rate: args.rate,
        seed: args.seed,
    };
    let mut keep = |measurement: Measurement, surroundings: &Surroundings, label: &str, round: u32| {
        let mut m = measurement;
        m.label = label.to_owned();
        m.round = i64::from(round);
        m.clients = args.clients as i64;
        m.config = vec![
            ("tables".into(), args.tables.to_string()),
            ("rows".into(), args.rows.to_string()),
            ("seed".into(), args.seed.to_string()),
        ];
        if let Some(rate) = args.rate {
            m.config.push(("rate".into(), rate.to_string()));
        }
        surroundings.describe(&mut m);
        println!("{}", line_of(&m));
        sink.write(&m)?;
        m.failure
            .map_or(Ok(()), |failure| Err(format!("{label}, {}: {failure}", m.test)))
    };
    let mut loaded = Vec::new();
    for (target, surroundings) in &targets {
        let at = |error: String| format!("{}: {error}", target.label);
        let (micro, outcome) = Micro::load(target, scale, times.sample).map_err(at)?;
        keep(
            Measurement::of("micro", "load", &outcome, 0),
            surroundings,
            &target.label,
            0,
        )?;
        loaded.push(micro);
    }
    for test in &tests {
        for round in 0..args.rounds {
            // A B B A: whatever drifts touches all alike.
            let mut order: Vec<usize> = (0..targets.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let (target, surroundings) = &targets[at];
                let outcome = loaded[at]
                    .run(test, times)
                    .map_err(|error| format!("{}: {error}", target.label))?;
                keep(
                    Measurement::of("micro", test.name, &outcome, 0),
                    surroundings,
                    &target.label,
                    round,
                )?;
            }
        }
    }
    Ok(())
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
