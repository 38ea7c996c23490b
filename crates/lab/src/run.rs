//! `nestor bench run`: loads the servers' data, has them take turns, appends what each test came to.
//!
//! Tests that do not depend on each other run on data that are loaded once; a sequence of steps begins anew, with fresh data, in each round
//! and for each number of clients.

use crate::arguments::{Resolve, RunArgs, Wait};
use crate::delay::delayed;
use crate::drive::Times;
use crate::measure::host::cores;
use crate::measure::profile::{Profiler, Stacks};
use crate::network::{self, LongerBy};
use crate::results::{Measurement, Sink, Surroundings};
use crate::target::Target;
use crate::wire::Durability;
use crate::workload::{Settings, Workload};
use std::time::Duration;

/// Longest run that is profiled.
const PROFILE_MAX: Duration = Duration::from_secs(5);

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
    let times = Times {
        warm_max: seconds(args.warm_seconds, "--warm-seconds")?,
        measured: seconds(args.seconds, "--seconds")?,
        sample: Duration::from_millis(if args.seconds < 5.0 { 100 } else { 1_000 }),
    };
    let delay = Duration::from_micros(args.network_delay);
    // Servers that the run starts live in its own network; others are where they are.
    let are_ours = args
        .targets
        .iter()
        .all(|target| labelled(target).1.starts_with("nestor"));
    let mut run = Run {
        args,
        times,
        servers: Vec::new(),
        sink: Sink::open(&args.output)?,
        longer_by: network::lengthen(delay, are_ours)?,
        failures: Vec::new(),
    };
    args.suite.check(&run.settings(most))?;
    run.find(resolve)?;
    if args.suite.is_sequence() {
        for &clients in &args.clients {
            (0..args.rounds).try_for_each(|round| run.sequence(&tests, clients, round))?;
        }
    } else {
        (0..run.servers.len()).try_for_each(|at| run.load(at, most, 0))?;
        for test in tests {
            args.clients.iter().try_for_each(|&clients| run.rounds(test, clients))?;
        }
    }
    match run.failures.as_slice() {
        [] => Ok(()),
        all => Err(format!("{} failed: {}", all.len(), all.join("; "))),
    }
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

/// A server, and its data once they are loaded.
struct Loaded {
    target: Target,
    surroundings: Surroundings,
    /// `None` before loading, and after a failure that it could not be loaded again from.
    workload: Option<Box<dyn Workload>>,
}

/// One turn of a server: how many clients, and which round.
#[derive(Clone, Copy)]
struct Turn {
    at: usize,
    clients: usize,
    round: u32,
}

/// A run over all servers.
struct Run<'a> {
    args: &'a RunArgs,
    times: Times,
    servers: Vec<Loaded>,
    sink: Sink,
    longer_by: LongerBy,
    /// What failed while the run went on with others.
    failures: Vec<String>,
}

impl Run<'_> {
    /// Reaches or starts the servers.
    fn find(&mut self, resolve: Resolve<'_>) -> Result<(), String> {
        let durability = match self.args.durability {
            Wait::Relaxed => Durability::Relaxed,
            Wait::Durable => Durability::Durable,
        };
        for target in &self.args.targets {
            let (label, uri) = labelled(target);
            let mut target = resolve(&label, uri, durability, Duration::from_micros(self.args.sync_delay))?;
            if self.longer_by == LongerBy::LoadGenerator {
                target.dial = delayed(target.dial, Duration::from_micros(self.args.network_delay));
            }
            let surroundings = Surroundings::of(&target).map_err(|error| format!("{label}: {error}"))?;
            self.servers.push(Loaded {
                target,
                surroundings,
                workload: None,
            });
        }
        Ok(())
    }

    fn settings(&self, clients: usize) -> Settings {
        Settings {
            tables: self.args.tables,
            rows: self.args.rows,
            clients,
            rate: self.args.rate,
            seed: self.args.seed,
            sample: self.times.sample,
            sync_delay: Duration::from_micros(self.args.sync_delay),
            network_delay: Duration::from_micros(self.args.network_delay),
        }
    }

    /// The servers' turns of a round: A B, B A, so that whatever drifts touches all alike.
    fn turns(&self, clients: usize, round: u32) -> Vec<Turn> {
        let turn = |at| Turn { at, clients, round };
        let mut turns: Vec<Turn> = (0..self.servers.len()).map(turn).collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        turns
    }

    /// Loads a server's data.
    fn load(&mut self, at: usize, clients: usize, round: u32) -> Result<(), String> {
        let turn = Turn { at, clients, round };
        let profiler = self.profiler(turn, PROFILE_MAX)?;
        let settings = self.settings(clients);
        let server = &mut self.servers[at];
        server.workload = None;
        let loaded = self.args.suite.load(&server.target, settings);
        let stacks = profiler.map(Profiler::stop).unwrap_or_default();
        let mut measurement = match loaded {
            Ok((workload, measurement)) => {
                server.workload = measurement.failure.is_none().then_some(workload);
                measurement
            }
            Err(error) => Measurement::failed(self.args.suite.name(), "load", error),
        };
        measurement.profile = stacks;
        self.keep(turn, measurement)
    }

    /// All steps of a suite, from loading on.
    fn sequence(&mut self, tests: &[&str], clients: usize, round: u32) -> Result<(), String> {
        for turn in self.turns(clients, round) {
            self.load(turn.at, clients, round)?;
        }
        for test in tests {
            for turn in self.turns(clients, round) {
                self.test(test, turn)?;
            }
        }
        Ok(())
    }

    /// All rounds of a test with so many clients.
    fn rounds(&mut self, test: &str, clients: usize) -> Result<(), String> {
        for round in 0..self.args.rounds {
            for turn in self.turns(clients, round) {
                self.test(test, turn)?;
            }
        }
        Ok(())
    }

    /// One test on one server.
    fn test(&mut self, test: &str, turn: Turn) -> Result<(), String> {
        let suite = self.args.suite;
        // What cannot be done again is profiled while it is measured.
        let profiler = match suite.can_repeat(test) {
            true => None,
            false => self.profiler(turn, self.times.measured.min(PROFILE_MAX))?,
        };
        let server = &mut self.servers[turn.at];
        let Some(workload) = &mut server.workload else {
            return Ok(());
        };
        workload.set_clients(turn.clients);
        let mut measurement = workload
            .run(test, self.times)
            .unwrap_or_else(|error| Measurement::failed(suite.name(), test, error));
        measurement.profile = profiler.map(Profiler::stop).unwrap_or_default();
        if measurement.failure.is_none() && suite.can_repeat(test) {
            match self.profile(test, turn) {
                Ok(stacks) => measurement.profile = stacks,
                Err(error) => measurement.failure = Some(format!("while it was profiled: {error}")),
            }
        }
        let has_failed = measurement.failure.is_some();
        self.keep(turn, measurement)?;
        if has_failed {
            self.recover(turn);
        }
        Ok(())
    }

    /// After a failure the data may be any: tests that do not need each other get fresh ones, a sequence ends.
    fn recover(&mut self, turn: Turn) {
        let settings = self.settings(turn.clients);
        let server = &mut self.servers[turn.at];
        server.workload = None;
        if !self.args.suite.is_sequence() {
            match self.args.suite.load(&server.target, settings) {
                Ok((workload, loaded)) if loaded.failure.is_none() => server.workload = Some(workload),
                Ok((_, loaded)) => self.failures.extend(loaded.failure),
                Err(error) => self.failures.push(format!("{}: {error}", server.target.label)),
            }
        }
    }

    /// Begins a profile of a server, if this turn is to have one.
    fn profiler(&self, turn: Turn, time: Duration) -> Result<Option<Profiler>, String> {
        if !self.args.profile || turn.round > 0 {
            return Ok(None);
        }
        let target = &self.servers[turn.at].target;
        match target.processes() {
            Some(processes) => Ok(Some(Profiler::start(&processes, time))),
            None => Err(format!(
                "{}: its process is not known, so no profile can be taken",
                target.label
            )),
        }
    }

    /// Runs a test once more, with a profile.
    fn profile(&mut self, test: &str, turn: Turn) -> Result<Stacks, String> {
        let times = Times {
            warm_max: Duration::ZERO,
            measured: self.times.measured.min(PROFILE_MAX),
            ..self.times
        };
        let Some(profiler) = self.profiler(turn, times.measured)? else {
            return Ok(Stacks::new());
        };
        let ran = match &mut self.servers[turn.at].workload {
            Some(workload) => workload.run(test, times).map(|again| again.failure),
            None => Ok(None),
        };
        let stacks = profiler.stop();
        ran?.map_or(Ok(stacks), Err)
    }

    /// Writes a measurement into the file, and says what it came to.
    fn keep(&mut self, turn: Turn, mut m: Measurement) -> Result<(), String> {
        let server = &self.servers[turn.at];
        m.label.clone_from(&server.target.label);
        m.round = i64::from(turn.round);
        m.clients = turn.clients as i64;
        let mut config = vec![
            ("tables", self.args.tables.to_string()),
            ("rows", self.args.rows.to_string()),
            ("seed", self.args.seed.to_string()),
            ("durability", server.target.durability.name().into()),
            ("syncDelayMicros", self.args.sync_delay.to_string()),
            ("networkDelayMicros", self.args.network_delay.to_string()),
        ];
        if self.longer_by != LongerBy::Nothing {
            config.push(("networkDelayBy", self.longer_by.name().into()));
        }
        if let Some(note) = &self.args.note {
            config.push(("note", note.clone()));
        }
        if let Some(rate) = self.args.rate {
            config.push(("rate", rate.to_string()));
        }
        if self.args.clients.len() > 1 && m.test != "load" {
            config.push(("scaleUp", "true".into()));
        }
        let config = config.into_iter().map(|(name, value)| (name.to_owned(), value));
        m.config.extend(config);
        server.surroundings.describe(&mut m);
        println!("{}", line_of(&m));
        self.sink.write(&m)?;
        match m.failure {
            None => Ok(()),
            Some(failure) => {
                let failure = format!("{}, {}: {failure}", m.label, m.test);
                if !self.args.keep_going {
                    return Err(failure);
                }
                self.failures.push(failure);
                Ok(())
            }
        }
    }
}

/// A line for the terminal while the run goes on.
fn line_of(m: &Measurement) -> String {
    if let Some(failure) = &m.failure {
        return format!("{:<16} {:<26} failed: {failure}", m.label, m.test);
    }
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
