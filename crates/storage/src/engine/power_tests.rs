//! Losing power: of what was not synced, any part is on the disk.
//!
//! The segments of the journal and the base are files on disks in memory that forget
//! ([`crate::base::tree::tests::disk`]); the directory has only the names.

use super::*;
use crate::base::tree::tests::Random;
use crate::base::tree::tests::disk::Disk;
use crate::base::tree::{PageFile, empty_file};
use crate::encryption::{self, MasterKey, SealedPages, Seals};
use crate::journal::JournalOptions;
use crate::{CollectionId, TreeId, View};
use nestor_model::{CollectionOptions, Namespace};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;

const T: TreeId = TreeId(900);
const PAGE_BYTES: usize = 512;

struct Machine {
    dir: TempDir,
    segments: Arc<Mutex<BTreeMap<PathBuf, Disk>>>,
    base: Disk,
    /// If what is on the disks is encrypted.
    master: Option<MasterKey>,
}

impl Machine {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            segments: Arc::default(),
            base: Disk::with(empty_file(PAGE_BYTES, true)),
            master: None,
        }
    }

    fn encrypted() -> Self {
        let mut machine = Self {
            master: MasterKey::new(&[7; 32]),
            ..Self::new()
        };
        let pages = empty_file(encryption::PAGE_BYTES, true);
        let seals = machine.seals().expect("there is a key");
        machine.base = Disk::with(SealedPages::encode(&pages, &seals));
        machine
    }

    /// The encryption of the base, which the engine does not open itself.
    fn seals(&self) -> Option<Arc<Seals>> {
        let master = self.master.as_ref()?;
        let directory = Directory::open(self.dir.path(), Some(master), 100).unwrap();
        directory.seals().cloned()
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
        let base: Box<dyn PageFile> = match self.seals() {
            Some(seals) => Box::new(SealedPages::new(Box::new(self.base.clone()), seals)),
            None => Box::new(self.base.clone()),
        };
        EngineOptions {
            master_key: self.master.clone(),
            journal: JournalOptions {
                segment_bytes: 300,
                open: Arc::new(open),
                seals: None,
            },
            oplog_bytes_max: 3_000,
            // Checkpoints of several transactions.
            slice_bytes: 1_000,
            base: Some(Arc::new(Tree::open_file(base, Path::new("base"), tree).unwrap())),
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
        let mark = self.dir.path().join("nestor.durable");
        let marked = std::fs::read(&mark).unwrap();
        drop(segments);
        engine.crash();
        // Syncs that the engine's thread still made and noted before it ended never happened.
        std::fs::write(&mark, marked).unwrap();
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
    // After the room that is prepared, and the frame.
    machine.last_segment().fail_in(2, false);
    engine.wait_durable(put(&engine, "b").lsn).unwrap_err();
    machine.kill(engine);
    let engine = machine.open();
    let shown = keys(&engine);
    machine.kill(engine);
    machine.lose_power(&mut Random::new(1));
    assert_eq!(keys(&machine.open()), shown);
}

/// The contents of a commit: a tree, and a collection with its records if there is one.
#[derive(Clone, Debug, Default, PartialEq)]
struct Contents {
    tree: BTreeMap<u64, u8>,
    collection: Option<(CollectionId, BTreeMap<u64, u8>)>,
}

impl Contents {
    fn of(engine: &Engine) -> Self {
        let snapshot = engine.snapshot();
        let read = |tree| {
            let mut cursor = snapshot.cursor(tree);
            let mut found = BTreeMap::new();
            let mut more = cursor.first().unwrap();
            while more {
                let key = u64::from_be_bytes(cursor.key().try_into().unwrap());
                found.insert(key, cursor.value().unwrap()[0]);
                more = cursor.next().unwrap();
            }
            found
        };
        let collection = snapshot.catalog().collection("d", "c").map(|collection| {
            let records = read(collection.records);
            assert_eq!(collection.state.documents(), records.len() as i64);
            (collection.id, records)
        });
        Self {
            tree: read(T),
            collection,
        }
    }

    /// Changes something, in `ws` too.
    fn change(&mut self, ws: &mut WriteSet, random: &mut Random) {
        let ns = Namespace::new("d", "c");
        let value = random.below(256) as u8;
        if random.percent(10) {
            self.collection = match &self.collection {
                Some(_) => ws.drop_collection(&ns).map(|_| None).unwrap(),
                None => {
                    let made = ws
                        .create_collection(&ns, [7; 16], CollectionOptions::default())
                        .unwrap();
                    Some((made.id, BTreeMap::new()))
                }
            };
        }
        for _ in 0..1 + random.below(5) {
            let key = random.below(100) as u64;
            let (tree, map) = match &mut self.collection {
                Some((id, records)) if random.percent(50) => {
                    ws.add_count(*id, i64::from(!records.contains_key(&key)), 0);
                    (TreeId(id.0), records)
                }
                _ => (T, &mut self.tree),
            };
            if tree == T && random.percent(30) {
                ws.delete(tree, key.to_be_bytes());
                map.remove(&key);
            } else {
                ws.put(tree, key.to_be_bytes(), vec![value; 1 + random.below(200)]);
                map.insert(key, value);
            }
        }
    }
}

/// The power goes at any moment, within and between the transactions of a checkpoint too. What comes back is the state after
/// some commit, and none that was durable is missing.
#[test]
fn any_loss_of_power_leaves_the_state_after_a_commit() {
    let stopped = lose_power_often(0..20, Machine::new);
    assert!(stopped > 25, "{stopped} checkpoints were interrupted");
}

/// Pages are 16 times as large, and all bytes of one change whenever it is written: what is torn cannot be taken for anything.
#[test]
fn any_loss_of_power_leaves_the_state_after_a_commit_in_an_encrypted_store() {
    let stopped = lose_power_often(0..8, Machine::encrypted);
    assert!(stopped > 5, "{stopped} checkpoints were interrupted");
}

/// How many checkpoints were interrupted.
fn lose_power_often(seeds: std::ops::Range<u64>, machine: impl Fn() -> Machine) -> usize {
    let mut stopped = 0;
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut machine = machine();
        let mut states = vec![Contents::default()];
        for round in 0..5 {
            let place = format!("seed {seed}, round {round}");
            let engine = machine.open();
            let shown = engine.last_lsn().0 as usize;
            assert!(shown < states.len(), "{place}");
            states.truncate(shown + 1);
            assert_eq!(Contents::of(&engine), states[shown], "{place}");
            let base = &engine.inner.store.as_ref().unwrap().base;
            base.check().unwrap();
            for _ in 0..random.below(60) {
                let mut next = states.last().unwrap().clone();
                let mut ws = engine.begin();
                next.change(&mut ws, &mut random);
                let lsn = engine.commit(ws).unwrap().lsn;
                states.push(next);
                assert_eq!(lsn.0 as usize, states.len() - 1);
                match random.below(40) {
                    0..4 => engine.wait_durable(lsn).unwrap(),
                    4 => engine.checkpoint().unwrap(),
                    _ => {}
                }
            }
            if random.percent(70) {
                machine.base.fail_in(random.below(40), true);
                stopped += usize::from(engine.checkpoint().is_err());
            }
            let durable = engine.inner.store.as_ref().unwrap().journal.syncer.durable() as usize;
            assert_eq!(Contents::of(&engine), *states.last().unwrap(), "{place}");
            machine.kill(engine);
            machine.lose_power(&mut random);
            let after = machine.open();
            assert!(after.last_lsn().0 as usize >= durable, "{place}");
            machine.kill(after);
        }
    }
    stopped
}
