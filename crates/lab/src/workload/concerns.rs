//! Write concerns beside what arithmetic says of them: one client inserts documents, and the median of each concern stands beside the sum of
//! what it has to wait for.
//!
//! A round trip is what a `ping` takes, a write in memory what `w: 0` takes more, and the disk what appending and syncing takes this program in
//! the server's folder, plus the delay that was put before it. `w: 0` should be a round trip, `w: 1` that and a write, `j: true` and `majority` that and
//! the disk.

use super::{Settings, Workload, drop_table};
use crate::drive::{Done, Load, Pace, Times, Worker, drive};
use crate::results::Measurement;
use crate::rows::{Arguments, Rows};
use crate::statement::{Kind, Role, Statement, mark};
use crate::target::{Caller, Target};
use crate::wire::{Durability, Protocol};
use nestor_model::{Document, Value, doc};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// The concerns, after the round trip that all of them have.
pub const NAMES: [&str; 5] = ["ping", "w:0", "w:1", "j:true", "majority"];

/// The collection.
const NAME: &str = "concerns";
/// Syncs that tell how long the disk takes.
const SYNCS: usize = 200;
/// Bytes of each of them.
const SYNC_BYTES: usize = 512;

/// The write concerns of a server.
pub struct Concerns {
    target: Target,
    settings: Settings,
    next: i64,
    /// What a sync takes without the server, in µs, with the delay; `None` when the server's folder cannot be written to.
    sync_us: Option<f64>,
    ping_us: f64,
    write_us: f64,
}

impl Concerns {
    /// Makes the collection anew.
    pub fn load(target: &Target, settings: Settings) -> Result<(Self, Measurement), String> {
        if target.protocol != Protocol::Mongo {
            return Err("write concerns are measured on servers of MongoDB's protocol".into());
        }
        if target.durability == Durability::Durable {
            return Err("write concerns say themselves what a write waits for: leave --durability out".into());
        }
        drop_table(target, NAME)?;
        let folder = target.processes().and_then(|processes| processes.data_folder());
        let bare = folder.and_then(|folder| median_sync(&folder).ok());
        let mut concerns = Self {
            target: target.clone(),
            settings,
            next: 0,
            sync_us: bare.map(|micros| micros + settings.sync_delay.as_secs_f64() * 1e6),
            ping_us: 0.0,
            write_us: 0.0,
        };
        let times = Times {
            warm_max: Duration::ZERO,
            measured: Duration::from_millis(200),
            sample: settings.sample,
        };
        let mut loaded = concerns.run("w:1", times)?;
        loaded.test = "load".into();
        loaded.figures.clear();
        Ok((concerns, loaded))
    }
}

/// The median of appending and syncing a file in `folder`, in µs.
fn median_sync(folder: &Path) -> std::io::Result<f64> {
    let path = folder.join(format!("nestor-lab-sync-{}", std::process::id()));
    let measured = (|| {
        let mut file = File::create(&path)?;
        let mut all = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let begun = Instant::now();
            file.write_all(&[b'x'; SYNC_BYTES])?;
            file.sync_data()?;
            all.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        all.sort_by(f64::total_cmp);
        Ok(all[SYNCS / 2])
    })();
    std::fs::remove_file(&path)?;
    measured
}

fn statement(concern: &str) -> Statement {
    if concern == "ping" {
        return Statement::new("a ping", Role::Reads, vec![], doc! { "ping": 1 }, String::new());
    }
    let concern: Document = match concern {
        "w:0" => doc! { "w": 0 },
        "w:1" => doc! { "w": 1, "j": false },
        "j:true" => doc! { "w": 1, "j": true },
        _ => doc! { "w": "majority" },
    };
    let document =
        Value::from(doc! { "_id": mark(0), "text": "a document that waits for what it is told to wait for" });
    let mongo = doc! { "insert": NAME, "documents": vec![document], "writeConcern": concern };
    Statement::new("an insert", Role::Writes, vec![Kind::Long], mongo, String::new())
}

impl Workload for Concerns {
    fn run(&mut self, test: &str, times: Times) -> Result<Measurement, String> {
        let name = NAMES.into_iter().find(|name| *name == test);
        let name = name.ok_or_else(|| format!("there is no concern {test}"))?;
        let mut caller = self.target.connect()?;
        let asker = Asker {
            statement: caller.prepare(&statement(name))?,
            caller,
            next: &mut self.next,
            arguments: Arguments::default(),
            rows: Rows::default(),
        };
        let load = Load {
            worker: Box::new(asker),
            pace: Pace::Closed,
            group: 0,
        };
        let outcome = drive(vec![load], times, self.target.processes().as_ref());
        let found = outcome.groups[0].latencies.quantile_us(0.5);
        let mut measurement = Measurement::of("concerns", name, &outcome, 0);
        match name {
            "ping" => self.ping_us = found,
            // Servers answer a command of `w: 0` too, once it has written in memory.
            "w:0" => self.write_us = (found - self.ping_us).max(0.0),
            _ => {}
        }
        let expected = match name {
            "ping" => Some(self.settings.network_delay.as_secs_f64() * 1e6),
            "w:0" | "w:1" => Some(self.ping_us + if name == "w:1" { self.write_us } else { 0.0 }),
            _ => self.sync_us.map(|sync| self.ping_us + self.write_us + sync),
        };
        measurement.figures.push(("median, µs".into(), found));
        if let Some(expected) = expected {
            measurement.figures.push(("what arithmetic says, µs".into(), expected));
            measurement
                .figures
                .push(("median above arithmetic, µs".into(), found - expected));
        }
        Ok(measurement)
    }

    fn set_clients(&mut self, clients: usize) {
        // There is one: see [`Suite::check`](super::Suite::check).
        self.settings.clients = clients;
    }
}

struct Asker<'n> {
    caller: Caller,
    statement: usize,
    next: &'n mut i64,
    arguments: Arguments,
    rows: Rows,
}

impl Worker for Asker<'_> {
    fn step(&mut self) -> Result<Option<Done>, String> {
        *self.next += 1;
        self.arguments.clear().int(*self.next);
        self.caller.begin_operation();
        self.caller.call(self.statement, &self.arguments, &mut self.rows)?;
        Ok(Some(Done {
            busy: self.caller.busy,
            last: self.caller.last,
            work: 1,
        }))
    }
}
