//! `nestor bench run`: loads the servers' data, has them take turns, appends what each test came to.

use crate::command::{Resolve, RunArgs, Wait};
use crate::delay::delayed;
use crate::drive::Times;
use crate::measure::host::cores;
use crate::measure::profile::{Profiler, Stacks};
use crate::results::{Measurement, Sink, Surroundings};
use crate::target::Target;
use crate::wire::Durability;
use crate::workload::{Settings, Workload};
use std::time::Duration;

/// Longest run that is profiled.
const PROFILE_MAX: Duration = Duration::from_secs(5);

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

/// Measures what the arguments say. An error is a message for the user; what was measured before is in the file.
pub fn measure(args: &RunArgs, resolve: Resolve<'_>) -> Result<(), String> {
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
