//! What is measured: each workload makes its data from a seed, does its operations, and knows what every answer has to be.

pub mod analytics;
pub mod concerns;
pub mod documents;
pub mod insert;
mod load;
pub mod micro;
pub mod storage;

use self::analytics::Shape;
use crate::drive::Times;
use crate::results::Measurement;
use crate::target::{Target, command};
use crate::wire::{Protocol, mongo_command};
use clap::ValueEnum;
use nestor_model::doc;
use std::time::Duration;

/// How large, and by how many.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Tables, where a workload has any number of them.
    pub tables: usize,
    /// Rows of each.
    pub rows: u64,
    /// Clients, each on a thread and a connection of its own.
    pub clients: usize,
    /// Operations a second of all clients together; `None` for a closed loop.
    pub rate: Option<f64>,
    /// What everything random comes from.
    pub seed: u64,
    /// Between two samples of a series.
    pub sample: Duration,
    /// What was put before each sync of the server's disk.
    pub sync_delay: Duration,
    /// What was put before each question to the server.
    pub network_delay: Duration,
}

/// A workload on one server, with its data loaded.
pub trait Workload {
    /// Runs a test of [`Suite::tests`]. An error is a message for the user.
    fn run(&mut self, test: &str, times: Times) -> Result<Measurement, String>;

    /// Another number of clients from now on.
    fn set_clients(&mut self, clients: usize);
}

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// The 32 microbenchmarks
    Micro,
    /// The Insert Benchmark
    Insert,
    /// What only documents have: arrays, pipelines, text, places, change streams, transactions
    Documents,
    /// Five queries over nested events, in the shape of JSONBench
    Events,
    /// Queries over one wide table, in the shape of ClickBench
    Hits,
    /// Random reads against the disk's own, and bytes written for each insert
    Storage,
    /// What each write concern takes, beside what arithmetic says
    Concerns,
}

impl Suite {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Micro,
        Self::Insert,
        Self::Documents,
        Self::Events,
        Self::Hits,
        Self::Storage,
        Self::Concerns,
    ];

    /// As results have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Micro => "micro",
            Self::Insert => "insert",
            Self::Documents => "documents",
            Self::Events => "events",
            Self::Hits => "hits",
            Self::Storage => "storage",
            Self::Concerns => "concerns",
        }
    }

    /// Its tests, in the order they run.
    pub fn tests(self) -> Vec<&'static str> {
        match self {
            Self::Micro => micro::Test::all().iter().map(|test| test.name).collect(),
            Self::Insert => insert::STEPS.to_vec(),
            Self::Documents => documents::NAMES.to_vec(),
            Self::Events => analytics::Shape::Events.names().to_vec(),
            Self::Hits => analytics::Shape::Hits.names().to_vec(),
            Self::Storage => storage::NAMES.to_vec(),
            Self::Concerns => concerns::NAMES.to_vec(),
        }
    }

    /// Connections that a client of it keeps busy at once.
    pub fn connections_per_client(self) -> usize {
        match self {
            // One asks, one inserts, one deletes.
            Self::Insert => 3,
            _ => 1,
        }
    }

    /// Refuses what it would ignore.
    ///
    /// Errors: a rate, several tables or several clients for a suite that takes none.
    pub fn check(self, settings: &Settings) -> Result<(), String> {
        let refused = |what: &str, why: &str| Err(format!("{} takes no {what}: {why}", self.name()));
        match self {
            Self::Insert | Self::Concerns if settings.rate.is_some() => refused("--rate", "its steps have their own"),
            Self::Micro | Self::Storage => Ok(()),
            _ if settings.tables > 1 => refused("--tables", "it has the ones that it has"),
            Self::Concerns if settings.clients > 1 => refused(
                "--clients",
                "clients that write at once share the disk's syncs, of which arithmetic knows nothing",
            ),
            _ => Ok(()),
        }
    }

    /// Whether its tests need those before them.
    pub fn is_sequence(self) -> bool {
        matches!(self, Self::Insert | Self::Storage | Self::Concerns)
    }

    /// Whether a test finds what it needs after it was run.
    pub fn can_repeat(self, test: &str) -> bool {
        // Indexes are built once.
        (self, test) != (Self::Insert, "l.x")
    }

    /// Loads its data; what loading came to stands beside it.
    pub fn load(self, target: &Target, settings: Settings) -> Result<(Box<dyn Workload>, Measurement), String> {
        Ok(match self {
            Self::Micro => {
                let (micro, loaded) = micro::Micro::load(target, settings)?;
                (Box::new(micro), loaded)
            }
            Self::Insert => {
                let (insert, loaded) = insert::Insert::load(target, settings)?;
                (Box::new(insert), loaded)
            }
            Self::Documents => {
                let (documents, loaded) = documents::Documents::load(target, settings)?;
                (Box::new(documents), loaded)
            }
            Self::Storage => {
                let (storage, loaded) = storage::Storage::load(target, settings)?;
                (Box::new(storage), loaded)
            }
            Self::Concerns => {
                let (concerns, loaded) = concerns::Concerns::load(target, settings)?;
                (Box::new(concerns), loaded)
            }
            Self::Events | Self::Hits => {
                let shape = if self == Self::Events {
                    Shape::Events
                } else {
                    Shape::Hits
                };
                let (analytics, loaded) = analytics::Analytics::load(target, settings, shape)?;
                (Box::new(analytics), loaded)
            }
        })
    }
}

/// Drops a table that may not be there.
fn drop_table(target: &Target, name: &str) -> Result<(), String> {
    if target.protocol != Protocol::Mongo {
        return target.run(&[command(doc! {}, &format!("DROP TABLE IF EXISTS {name}"))]);
    }
    let mut stream = (target.dial)()?;
    let drop = doc! { "drop": name, "$db": target.database.as_str() };
    match mongo_command(&mut *stream, &drop) {
        // Servers disagree on whether what is not there can be dropped.
        Err(error) if !error.contains("(code 26)") => Err(error),
        _ => Ok(()),
    }
}

/// The server's own upkeep of these tables, which would otherwise run while the next test is measured.
fn settle(target: &Target, names: &[String]) -> Result<(), String> {
    for name in names {
        let upkeep = match target.protocol {
            Protocol::Mongo => break,
            Protocol::Postgres => format!("VACUUM (ANALYZE) {name}"),
            Protocol::MySql => format!("ANALYZE TABLE {name}"),
        };
        match target.run(&[command(doc! {}, &upkeep)]) {
            // SQLSTATEs of a syntax and of a feature that a server does not have: it has no such upkeep either.
            Err(error) if !["42601", "0A000"].iter().any(|code| error.contains(code)) => return Err(error),
            _ => {}
        }
    }
    checkpoint(target)
}

/// Waits until the server neither computes nor writes any longer, but no longer than a minute; one whose process is not known is not waited for.
fn wait_until_idle(target: &Target) {
    const LOOK: Duration = Duration::from_millis(100);
    const LOOKS_MAX: u32 = 600;
    let Some(processes) = target.processes() else { return };
    let mut before = processes.usage();
    let mut idle = 0;
    for _ in 0..LOOKS_MAX {
        std::thread::sleep(LOOK);
        let now = processes.usage();
        let spent = now.since(before);
        before = now;
        // A twentieth of a core and half a megabyte a second are what servers do without work.
        let is_idle = spent.cpu_us < LOOK.as_micros() as f64 / 20.0 && spent.write_bytes < 50_000.0;
        idle = if is_idle { idle + 1 } else { 0 };
        if idle == 3 {
            return;
        }
    }
}

/// Has what was written reach the place where it stays.
fn checkpoint(target: &Target) -> Result<(), String> {
    match target.protocol {
        Protocol::Mongo => {
            let mut stream = (target.dial)()?;
            for ask in [
                doc! { "fsync": 1, "lock": true, "$db": "admin" },
                doc! { "fsyncUnlock": 1, "$db": "admin" },
            ] {
                // Servers that have no such command have no such upkeep either.
                if mongo_command(&mut *stream, &ask).is_err() {
                    break;
                }
            }
            Ok(())
        }
        // Only its superuser may ask for one.
        Protocol::Postgres => target.run(&[command(doc! {}, "CHECKPOINT")]).or(Ok(())),
        Protocol::MySql => Ok(()),
    }
}
