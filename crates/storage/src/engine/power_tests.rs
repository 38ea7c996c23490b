//! Losing power: of what was not synced, any part is on the disk.
//!
//! The segments of the journal and the base are files on disks in memory that forget
//! ([`crate::base::tree::tests::disk`]); the directory has only the names.

use super::*;
use crate::base::tree::tests::Random;
use crate::base::tree::tests::disk::Disk;
use crate::base::tree::{PageFile, empty_file};
use crate::journal::JournalOptions;
use crate::{TreeId, View};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;

const T: TreeId = TreeId(900);
const PAGE_BYTES: usize = 512;

struct Machine {
    dir: TempDir,
    segments: Arc<Mutex<BTreeMap<PathBuf, Disk>>>,
    base: Disk,
}

impl Machine {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            segments: Arc::default(),
            base: Disk::with(empty_file(PAGE_BYTES)),
        }
    }

    fn options(&self) -> EngineOptions {
        let segments = self.segments.clone();
        let open = move |path: &Path, create: bool| -> std::io::Result<Box<dyn PageFile>> {
            let mut segments = segments.lock().unwrap();
            if create {
                std::fs::File::create(path)?;
                segments.insert(path.to_owned(), Disk::default());
            }
            Ok(Box::new(segments[path].clone()))
        };
        let tree = TreeOptions {
            page_bytes: PAGE_BYTES,
            ..TreeOptions::default()
        };
        EngineOptions {
            journal: JournalOptions {
                segment_bytes: 300,
                open: Arc::new(open),
            },
            base: Some(Arc::new(
                Tree::open_file(Box::new(self.base.clone()), Path::new("base"), tree).unwrap(),
            )),
            ..EngineOptions::at_time(100)
        }
    }

    fn open(&self) -> Engine {
        Engine::open(self.dir.path(), self.options()).unwrap()
    }

    /// The disk of the segment that is written to.
    fn last_segment(&self) -> Disk {
        self.segments.lock().unwrap().values().last().unwrap().clone()
    }

    /// The process dies: what it wrote and did not sync is in the memory of the machine.
    fn kill(&mut self, engine: Engine) {
        let mut segments = self.segments.lock().unwrap();
        let now: BTreeMap<_, _> = segments
            .iter()
            .map(|(path, disk)| (path.clone(), disk.copy()))
            .collect();
        let base = self.base.copy();
        drop(segments);
        engine.crash();
        segments = self.segments.lock().unwrap();
        (*segments, self.base) = (now, base);
    }

    fn lose_power(&mut self, random: &mut Random) {
        for disk in self.segments.lock().unwrap().values_mut() {
            *disk = disk.crash(random);
        }
        self.base = self.base.crash(random);
    }
}

fn put(engine: &Engine, key: &str) -> Commit {
    let mut ws = engine.begin();
    ws.put(T, key.as_bytes(), b"value");
    engine.commit(ws).unwrap()
}

fn keys(engine: &Engine) -> Vec<String> {
    let mut cursor = engine.snapshot().cursor(T);
    let mut found = Vec::new();
    let mut more = cursor.first().unwrap();
    while more {
        found.push(String::from_utf8_lossy(cursor.key()).into_owned());
        more = cursor.next().unwrap();
    }
    found
}

#[test]
fn what_a_start_shows_is_on_the_disk() {
    let mut machine = Machine::new();
    let engine = machine.open();
    for i in 0..30 {
        put(&engine, &format!("{i:02}"));
    }
    machine.kill(engine);
    assert!(machine.segments.lock().unwrap().len() > 4);
    let engine = machine.open();
    let shown = keys(&engine);
    assert_eq!(shown.len(), 30);
    machine.kill(engine);
    machine.lose_power(&mut Random::new(1));
    assert_eq!(keys(&machine.open()), shown);
}

#[test]
fn what_a_failed_sync_left_in_memory_is_not_taken_for_durable() {
    let mut machine = Machine::new();
    let engine = machine.open();
    engine.wait_durable(put(&engine, "a").lsn).unwrap();
    machine.last_segment().fail_in(1, false);
    engine.wait_durable(put(&engine, "b").lsn).unwrap_err();
    machine.kill(engine);
    let engine = machine.open();
    let shown = keys(&engine);
    machine.kill(engine);
    machine.lose_power(&mut Random::new(1));
    assert_eq!(keys(&machine.open()), shown);
}
