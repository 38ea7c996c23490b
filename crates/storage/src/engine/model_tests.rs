//! The engine against a model: plain maps, one per commit.
//!
//! A run does random things (writes, savepoints, commits, snapshots, checkpoints, crashes) with an explicit seed. Every
//! open snapshot and write set must at any time read like its model, through gets and through cursors that seek and
//! turn around; and a commit must conflict exactly when the model says so.

use super::*;
use crate::{Bytes, TreeId, View};
use std::collections::{BTreeMap, BTreeSet};

type Key = (u32, Vec<u8>);
type Map = BTreeMap<Key, Vec<u8>>;

/// xorshift: explicit seeds, the same run everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn key(&mut self) -> (u32, Vec<u8>) {
        let tree = 500 + self.below(3) as u32;
        let mut key = vec![b'a' + self.below(6) as u8; 1 + self.below(2) as usize];
        if self.below(4) == 0 {
            key.extend([b'x'; 30]);
        }
        key.push(self.below(3) as u8);
        (tree, key)
    }
}

struct Writer {
    ws: WriteSet,
    map: Map,
    seen: u64,
    written: BTreeSet<Key>,
    saved: Vec<(crate::Savepoint, Map, BTreeSet<Key>)>,
}

struct Run {
    seed: u64,
    random: Random,
    engine: Engine,
    committed: Map,
    /// Sequence number of the last commit that wrote a key.
    last_write: BTreeMap<Key, u64>,
    snapshots: Vec<(Snapshot, Map)>,
    writers: Vec<Writer>,
    conflicts: usize,
}

impl Run {
    fn new(seed: u64, engine: Engine) -> Self {
        Self {
            seed,
            random: Random(seed),
            engine,
            committed: Map::new(),
            last_write: BTreeMap::new(),
            snapshots: Vec::new(),
            writers: Vec::new(),
            conflicts: 0,
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..10 => {
                let ws = self.engine.begin();
                self.writers.push(Writer {
                    seen: ws.snapshot().lsn().0,
                    ws,
                    map: self.committed.clone(),
                    written: BTreeSet::new(),
                    saved: Vec::new(),
                });
            }
            10..60 => self.write(),
            60..75 => self.commit(),
            75..80 => self.snapshots.push((self.engine.snapshot(), self.committed.clone())),
            80..85 if !self.snapshots.is_empty() => {
                let at = self.random.below(self.snapshots.len() as u64) as usize;
                self.snapshots.swap_remove(at);
            }
            _ => self.check_one(),
        }
        if self.writers.len() > 5 {
            self.writers.remove(0);
        }
    }

    fn write(&mut self) {
        if self.writers.is_empty() {
            return;
        }
        let at = self.random.below(self.writers.len() as u64) as usize;
        let (tree, key) = self.random.key();
        let kind = self.random.below(12);
        let value = vec![b'v'; self.random.below(60) as usize];
        let writer = &mut self.writers[at];
        let id = (tree, key.clone());
        match kind {
            0 => {
                let saved = writer.ws.savepoint();
                writer.saved.push((saved, writer.map.clone(), writer.written.clone()));
            }
            1 => {
                if let Some((saved, map, written)) = writer.saved.pop() {
                    writer.ws.rollback_to(saved);
                    (writer.map, writer.written) = (map, written);
                }
            }
            2 => {
                if let Some((saved, ..)) = writer.saved.pop() {
                    writer.ws.release(saved);
                }
            }
            3..6 => {
                writer.ws.delete(TreeId(tree), key);
                writer.map.remove(&id);
                writer.written.insert(id);
            }
            _ => {
                writer.ws.put(TreeId(tree), key, value.clone());
                writer.map.insert(id.clone(), value);
                writer.written.insert(id);
            }
        }
    }

    fn commit(&mut self) {
        if self.writers.is_empty() {
            return;
        }
        let at = self.random.below(self.writers.len() as u64) as usize;
        let writer = self.writers.swap_remove(at);
        let newest = |key| self.last_write.get(key).copied().unwrap_or(0);
        let conflict = writer.written.iter().any(|key| newest(key) > writer.seen);
        match self.engine.commit(writer.ws) {
            Ok(commit) => {
                assert!(!conflict, "seed {}: committed in spite of a conflict", self.seed);
                for key in writer.written {
                    match writer.map.get(&key) {
                        Some(value) => self.committed.insert(key.clone(), value.clone()),
                        None => self.committed.remove(&key),
                    };
                    self.last_write.insert(key, commit.lsn.0);
                }
            }
            Err(StorageError::WriteConflict) => {
                self.conflicts += 1;
                assert!(conflict, "seed {}: a conflict without a reason", self.seed);
            }
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn check_one(&mut self) {
        let seed = self.seed;
        let pick = self.random.below(4);
        if pick == 0 && !self.snapshots.is_empty() {
            let at = self.random.below(self.snapshots.len() as u64) as usize;
            let (snapshot, map) = &self.snapshots[at];
            check(snapshot, map, &mut self.random, seed);
        } else if pick < 3 && !self.writers.is_empty() {
            let at = self.random.below(self.writers.len() as u64) as usize;
            let writer = &self.writers[at];
            check(&writer.ws, &writer.map, &mut self.random, seed);
        } else {
            check(&self.engine.snapshot(), &self.committed, &mut self.random, seed);
        }
    }
}

/// Reads `view` in random ways; all must agree with `map`.
fn check(view: &dyn View, map: &Map, random: &mut Random, seed: u64) {
    let (tree, key) = random.key();
    let got = view.get(TreeId(tree), &key).unwrap();
    let expected = map.get(&(tree, key)).map(Vec::as_slice);
    assert_eq!(got.as_deref(), expected, "seed {seed}");

    let entries: Vec<(&[u8], &[u8])> = map
        .range((tree, Vec::new())..(tree + 1, Vec::new()))
        .map(|((_, k), v)| (k.as_slice(), v.as_slice()))
        .collect();
    let mut cursor = view.cursor(TreeId(tree));
    let mut at: Option<usize> = None;
    for _ in 0..12 {
        if random.below(3) == 0 {
            // What is read ahead changes nothing of what is found.
            let (_, until) = random.key();
            cursor.read_ahead_to(&until);
        }
        let (_, key) = random.key();
        let (found, expected) = match random.below(8) {
            0 => (
                cursor.seek(&key),
                Some(entries.partition_point(|(k, _)| *k < key.as_slice())),
            ),
            1 => {
                let above = entries.partition_point(|(k, _)| *k <= key.as_slice());
                (cursor.seek_back(&key), above.checked_sub(1))
            }
            2 => (cursor.first(), Some(0)),
            3 => (cursor.last(), entries.len().checked_sub(1)),
            4 | 5 => (cursor.next(), at.map(|at| at + 1)),
            _ => (cursor.prev(), at.and_then(|at| at.checked_sub(1))),
        };
        at = expected.filter(|at| *at < entries.len());
        assert_eq!(found.unwrap(), at.is_some(), "seed {seed}");
        assert_eq!(cursor.is_valid(), at.is_some());
        let (key, value) = at.map_or((&[][..], &[][..]), |at| entries[at]);
        assert_eq!((cursor.key(), cursor.value().unwrap()), (key, value), "seed {seed}");
        assert_eq!(cursor.value_bytes().unwrap(), Bytes::from(value));
    }
}

#[test]
fn in_memory() {
    for seed in [1, 0xDECAF, 0xC0FFEE] {
        let mut run = Run::new(seed, Engine::ephemeral(EngineOptions::at_time(1)));
        (0..4000).for_each(|_| run.step());
        assert!(run.conflicts > 5, "{} conflicts", run.conflicts);
    }
}

#[test]
fn on_disk_with_checkpoints_crashes_and_clean_restarts() {
    for (seed, is_encrypted) in [(3, false), (0xBEEF, false), (0xFADE, true)] {
        let dir = tempfile::tempdir().unwrap();
        let mut options = EngineOptions::at_time(1);
        // Small enough that checkpoints and new segments happen all the time.
        options.memtable_bytes_max = 20_000;
        options.journal.segment_bytes = 5_000;
        options.oplog_bytes_max = 20_000;
        options.master_key = is_encrypted.then(|| crate::MasterKey::new(&[7; 32]).unwrap());
        let open = || Engine::open(dir.path(), options.clone()).unwrap();
        let mut run = Run::new(seed, open());
        for _ in 0..12 {
            for _ in 0..300 {
                run.step();
                if run.random.below(60) == 0 {
                    run.engine.checkpoint().unwrap();
                }
            }
            run.snapshots.clear();
            run.writers.clear();
            let lsn = run.engine.last_lsn();
            let crash = run.random.below(2) == 0;
            let nothing = Engine::ephemeral(EngineOptions::at_time(1));
            let engine = std::mem::replace(&mut run.engine, nothing);
            if crash {
                engine.crash();
            } else {
                engine.close().unwrap();
                drop(engine);
            }
            run.engine = open();
            assert_eq!(
                run.engine.last_lsn(),
                lsn,
                "seed {seed}: after {}",
                if crash { "a crash" } else { "closing" }
            );
            for _ in 0..20 {
                check(&run.engine.snapshot(), &run.committed, &mut run.random, seed);
            }
        }
        assert!(run.conflicts > 5, "{} conflicts", run.conflicts);
    }
}

/// Money moves between accounts while checkpoints run: every snapshot, however read, shows the same total.
#[test]
fn every_snapshot_is_consistent_while_everything_runs() {
    const ACCOUNTS: u8 = 20;
    const TREE: TreeId = TreeId(700);
    let dir = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::at_time(1);
    options.memtable_bytes_max = 30_000;
    options.journal.segment_bytes = 20_000;
    options.oplog_bytes_max = 40_000;
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    let amount = |view: &dyn View, account: u8| {
        let value = view.get(TREE, &[account]).unwrap().unwrap();
        i64::from_be_bytes((*value).try_into().unwrap())
    };
    let total = |view: &dyn View, forward: bool| {
        let mut cursor = view.cursor(TREE);
        let mut more = if forward { cursor.first() } else { cursor.last() }.unwrap();
        let (mut sum, mut count) = (0, 0);
        while more {
            sum += i64::from_be_bytes(cursor.value().unwrap().try_into().unwrap());
            count += 1;
            more = if forward { cursor.next() } else { cursor.prev() }.unwrap();
        }
        (sum, count)
    };
    let expected = (i64::from(ACCOUNTS) * 100, ACCOUNTS);
    let mut ws = engine.begin();
    for account in 0..ACCOUNTS {
        ws.put(TREE, [account], 100i64.to_be_bytes());
    }
    engine.commit(ws).unwrap();
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let writers: Vec<_> = [11, 12, 13]
            .map(|seed| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut random = Random(seed);
                    let mut done = 0;
                    while done < 1500 {
                        let (from, to) = (random.below(ACCOUNTS.into()) as u8, random.below(ACCOUNTS.into()) as u8);
                        if from == to {
                            continue;
                        }
                        let mut ws = engine.begin();
                        let (a, b) = (amount(&ws, from), amount(&ws, to));
                        ws.put(TREE, [from], (a - 1).to_be_bytes());
                        ws.put(TREE, [to], (b + 1).to_be_bytes());
                        match engine.commit(ws) {
                            Ok(_) => done += 1,
                            Err(StorageError::WriteConflict) => {}
                            Err(error) => panic!("seed {seed}: {error}"),
                        }
                    }
                })
            })
            .into();
        scope.spawn(|| {
            let mut held = Vec::new();
            while running.load(Ordering::SeqCst) {
                let snapshot = engine.snapshot();
                assert_eq!(total(&snapshot, true), expected);
                assert_eq!(total(&snapshot, false), expected);
                let sum: i64 = (0..ACCOUNTS).map(|account| amount(&snapshot, account)).sum();
                assert_eq!(sum, expected.0);
                held.push(snapshot);
                if held.len() == 50 {
                    assert!(held.iter().all(|old| total(old, true) == expected));
                    held.drain(..45);
                }
            }
        });
        scope.spawn(|| {
            while running.load(Ordering::SeqCst) {
                engine.checkpoint().unwrap();
            }
        });
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        running.store(false, Ordering::SeqCst);
        results.into_iter().for_each(|result| result.unwrap());
    });
    assert_eq!(engine.last_lsn(), Lsn(4501));
    engine.crash();
    let engine = Engine::open(dir.path(), options).unwrap();
    assert_eq!(total(&engine.snapshot(), true), expected);
}

/// Commits, checkpoints and loads all show new states; what has been seen once is never taken back. Checkpoints and loads
/// sync, so that they do it rarely; here it is done as they do, all the time.
#[test]
fn what_is_shown_never_goes_back() {
    const TREE: TreeId = TreeId(700);
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).unwrap();
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let writers = [1u8, 2].map(|writer| {
            let engine = &engine;
            scope.spawn(move || {
                let mut seen = Lsn(0);
                for i in 0..5000u32 {
                    let mut ws = engine.begin();
                    ws.put(TREE, [&[writer][..], &i.to_be_bytes()].concat(), &b"v"[..]);
                    let committed = engine.commit(ws).unwrap().lsn;
                    let shown = engine.last_lsn();
                    seen = seen.max(committed);
                    assert!(seen <= shown, "{shown:?} is shown after {seen:?}");
                    seen = shown;
                }
            })
        });
        scope.spawn(|| {
            let inner = &engine.inner;
            let base = &inner.store.as_ref().unwrap().base;
            while running.load(Ordering::SeqCst) {
                inner.change_layers(|sequencer| sequencer.rebased(base.snapshot()));
            }
        });
        let results = writers.map(|writer| writer.join());
        running.store(false, Ordering::SeqCst);
        results.into_iter().for_each(|result| result.unwrap());
    });
}
