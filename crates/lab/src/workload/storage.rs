//! Storage: how many random reads a second a server makes of what its disk can do.
//!
//! `raw` reads pages of the server's own files past the cache of the system, one at a time for each client, as fio's sync engine does. `points`
//! asks the server for random rows of a table that should be several times its cache. IO efficiency is the server's reads of the disk a second
//! by the raw ones. The model: an operation takes the server's CPU time in user space and kernel and the device's time for each read that
//! it makes; what it predicts stands beside what was measured. `inserts` tells the bytes that are written for each row.

use super::micro::Micro;
use super::{Settings, Workload};
use crate::drive::{Done, Load, Outcome, Pace, Times, Worker, drive};
use crate::random::Random;
use crate::results::Measurement;
use crate::target::Target;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The tests.
pub const NAMES: [&str; 3] = ["raw", "points", "inserts"];

/// Bytes of a raw read, and what it is aligned to.
const PAGE_BYTES: usize = 4_096;
/// `O_DIRECT` of Linux on x86-64 and AArch64.
const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") {
    0o200_000
} else {
    0o40_000
};
/// Bytes of a row, about.
const ROW_BYTES: f64 = 200.0;

/// A table, and the disk it is on.
pub struct Storage {
    target: Target,
    settings: Settings,
    micro: Micro,
    /// Raw reads a second of all clients.
    raw: f64,
}

impl Storage {
    /// Loads the table.
    pub fn load(target: &Target, settings: Settings) -> Result<(Self, Measurement), String> {
        let (micro, mut loaded) = Micro::load(target, settings)?;
        loaded.suite = "storage".into();
        let storage = Self {
            target: target.clone(),
            settings,
            micro,
            raw: 0.0,
        };
        Ok((storage, loaded))
    }

    fn raw(&mut self, times: Times) -> Result<Outcome, String> {
        let folder = self.target.processes().and_then(|processes| processes.data_folder());
        let folder = folder.ok_or("the server's files are not known: it has to run on this machine")?;
        let mut loads = Vec::new();
        for client in 0..self.settings.clients {
            loads.push(Load {
                worker: Box::new(Reader::open(&folder, self.settings.seed, client as u64)?),
                pace: Pace::Closed,
                group: 0,
            });
        }
        let outcome = drive(loads, times, None);
        self.raw = outcome.rate(0);
        Ok(outcome)
    }

    fn points(&mut self, times: Times) -> Result<Measurement, String> {
        let mut m = self.micro.run("point-query", times)?;
        let of = |who, what| m.used(who, what).unwrap_or(0.0);
        let reads = of("host", "diskReads");
        let cpu = of("server", "cpuMicros");
        let mut figures = vec![
            ("reads of the disk for each row".to_owned(), reads),
            ("reads of the disk a second".into(), reads * m.rate),
            (
                "read amplification, bytes read by those of the row".into(),
                of("server", "readBytes") / ROW_BYTES,
            ),
        ];
        if reads > 0.0 {
            figures.push(("server CPU, µs for each read".into(), cpu / reads));
            figures.push((
                "KB of a read of the disk".into(),
                of("host", "diskReadBytes") / 1024.0 / reads,
            ));
        }
        if self.raw > 0.0 {
            let device_us = self.settings.clients as f64 * 1e6 / self.raw;
            let predicted = self.settings.clients as f64 * 1e6 / (cpu + reads * device_us).max(1e-3);
            figures.push(("raw reads a second".into(), self.raw));
            figures.push((
                "IO efficiency: reads of the server by raw ones".into(),
                reads * m.rate / self.raw,
            ));
            figures.push(("rows a second that CPU and device predict".into(), predicted));
            figures.push(("measured by predicted".into(), m.rate / predicted));
        }
        m.figures = figures;
        Ok(m)
    }
}

impl Workload for Storage {
    fn run(&mut self, test: &str, times: Times) -> Result<Measurement, String> {
        let mut measurement = match test {
            "raw" => Measurement::of("storage", test, &self.raw(times)?, 0),
            "points" => self.points(times)?,
            "inserts" => {
                let mut m = self.micro.run("insert", times)?;
                let written = m.used("server", "writeBytes").unwrap_or(0.0);
                m.figures.push(("KB written for each insert".into(), written / 1024.0));
                m.figures.push((
                    "write amplification, bytes written by those of the row".into(),
                    written / ROW_BYTES,
                ));
                m
            }
            _ => return Err(format!("there is no test {test}")),
        };
        measurement.suite = "storage".into();
        measurement.test = test.to_owned();
        Ok(measurement)
    }

    fn set_clients(&mut self, clients: usize) {
        self.settings.clients = clients;
        self.micro.set_clients(clients);
    }
}

/// Reads random pages of a server's files.
struct Reader {
    /// Files and how many pages each has.
    files: Vec<(File, u64)>,
    pages: u64,
    random: Random,
    buffer: Vec<u8>,
}

impl Reader {
    fn open(folder: &Path, seed: u64, client: u64) -> Result<Self, String> {
        let mut paths = Vec::new();
        collect(folder, &mut paths);
        let mut files = Vec::new();
        for (path, bytes) in paths {
            let opened = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(&path);
            // A file may go while one looks, and a file system may not know direct reads; then none of its files opens.
            if let Ok(file) = opened {
                files.push((file, bytes / PAGE_BYTES as u64));
            }
        }
        let pages = files.iter().map(|(_, pages)| pages).sum();
        if pages == 0 {
            return Err(format!(
                "{}: no file can be read past the cache of the system",
                folder.display()
            ));
        }
        Ok(Self {
            files,
            pages,
            random: Random::of_part(seed, client),
            buffer: vec![0; 2 * PAGE_BYTES],
        })
    }
}

/// The files of a folder that have a page or more.
fn collect(folder: &Path, found: &mut Vec<(PathBuf, u64)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            collect(&entry.path(), found);
        } else if meta.is_file() && meta.len() >= PAGE_BYTES as u64 {
            found.push((entry.path(), meta.len()));
        }
    }
}

impl Worker for Reader {
    fn step(&mut self) -> Result<Option<Done>, String> {
        let mut page = self.random.below(self.pages);
        // The buffer's first aligned byte: direct reads want it.
        let start = self.buffer.as_ptr().align_offset(PAGE_BYTES);
        for (file, pages) in &self.files {
            if page >= *pages {
                page -= pages;
                continue;
            }
            let begun = Instant::now();
            let read = file.read_at(&mut self.buffer[start..start + PAGE_BYTES], page * PAGE_BYTES as u64);
            let last = Instant::now();
            return match read {
                // A file that was cut has nothing there.
                Ok(_) => Ok(Some(Done {
                    busy: last - begun,
                    last,
                    work: 1,
                })),
                Err(error) => Err(format!("a raw read: {error}")),
            };
        }
        Err("there is no such page".into())
    }
}
