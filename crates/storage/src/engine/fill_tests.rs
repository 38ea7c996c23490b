//! Index builds whose entries no commit has: on members, in backups, in directories of two times, after crashes.

use super::recovery_tests::copy;
use super::*;
use crate::base::changes;
use crate::cursor::Overlay;
use crate::watch::{Touched, Watch};
use crate::{CollectionId, IndexId, View};
use nestor_model::random::Random;
use nestor_model::{CollectionOptions, IndexSpec, Namespace, doc};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use tempfile::TempDir;

const COLLECTION: CollectionId = CollectionId(1);

/// The index has the value of each record, and its key.
fn entry_of(key: &[u8], value: &[u8]) -> Vec<u8> {
    [value, key].concat()
}

/// Fills trees so, and counts how often.
#[derive(Default)]
struct ByValue(AtomicU32);

impl MakeEntries for ByValue {
    fn fill(&self, engine: &Engine, collection: CollectionId, indexes: &[IndexId]) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let entries = expected(engine);
        for index in indexes {
            let filling = engine.fill(collection, *index)?;
            let (first, second) = entries.iter().partition::<Vec<_>, _>(|entry| entry[0] < 128);
            for part in [first, second] {
                load(part, |source| filling.load(source))?;
            }
            filling.end()?;
        }
        Ok(())
    }

    fn begin(&self, engine: &Engine, collection: CollectionId, indexes: &[IndexId]) -> Option<Box<dyn Begun>> {
        let (watch, before) = engine.watch(TreeId(collection.0));
        let entries = entries(&before);
        for index in indexes {
            let filling = engine.fill(collection, *index).unwrap();
            load(entries.iter().collect(), |source| filling.load(source)).unwrap();
        }
        Some(Box::new(Ahead {
            collection,
            indexes: indexes.to_vec(),
            watch,
            before,
        }))
    }
}

/// Has the entries of an earlier state.
struct Ahead {
    collection: CollectionId,
    indexes: Vec<IndexId>,
    watch: Watch,
    before: Snapshot,
}

impl Begun for Ahead {
    fn finish(self: Box<Self>, engine: &Engine) -> Result<bool> {
        let mut touched = Touched::default();
        let now = engine.read_watch(&self.watch, &mut touched);
        let overlay = changed(&self.before, &now, &touched);
        for index in self.indexes {
            let filling = engine.go_on_filling(self.collection, index)?;
            let all = overlay.iter().map(|(key, value)| Change {
                key,
                value: value.as_deref(),
            });
            filling.load(&mut changes(all))?;
            filling.end()?;
        }
        Ok(true)
    }
}

/// What brings the entries of one state to those of another.
fn changed(before: &Snapshot, now: &Snapshot, touched: &Touched) -> Overlay {
    let mut overlay = Overlay::new();
    for (view, value) in [(before, None), (now, Some(Bytes::from([])))] {
        for key in touched.iter() {
            if let Some(found) = view.get(TreeId(COLLECTION.0), &key).unwrap() {
                overlay.insert(entry_of(&key, &found).into(), value.clone());
            }
        }
    }
    overlay
}

fn load(entries: Vec<&Vec<u8>>, load: impl Fn(&mut dyn crate::base::ChangeSource) -> Result<bool>) -> Result<()> {
    let all = entries.iter().map(|key| Change {
        key: key.as_slice(),
        value: Some(b""),
    });
    let mut source = changes(all);
    while load(&mut source)? {}
    Ok(())
}

fn read(view: &dyn View, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = view.cursor(tree);
    let mut found = Vec::new();
    let mut more = cursor.first().unwrap();
    while more {
        found.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
        more = cursor.next().unwrap();
    }
    found
}

/// The entries that the records have.
fn expected(engine: &Engine) -> BTreeSet<Vec<u8>> {
    entries(&engine.snapshot())
}

fn entries(view: &dyn View) -> BTreeSet<Vec<u8>> {
    let records = read(view, TreeId(COLLECTION.0));
    records.iter().map(|(key, value)| entry_of(key, value)).collect()
}

/// Finds that each index has the entries of all records. Returns how many there are.
fn check_indexes(engine: &Engine) -> usize {
    let snapshot = engine.snapshot();
    let Some(found) = snapshot.catalog().by_id(COLLECTION).cloned() else {
        return 0;
    };
    let expected = expected(engine);
    for index in found.indexes.iter().filter(|index| !index.is_id()) {
        let found: BTreeSet<Vec<u8>> = read(&snapshot, index.tree).into_iter().map(|(key, _)| key).collect();
        assert!(found == expected, "{} of {} entries", found.len(), expected.len());
    }
    found.indexes.len() - 1
}

fn options(is_member: bool) -> EngineOptions {
    let mut options = EngineOptions::at_time(100);
    options.journal.segment_bytes = 4_000;
    options.slice_bytes = 4_000;
    options.is_member = is_member;
    options.entries = Some(Arc::new(ByValue::default()));
    options
}

fn open(dir: &Path, is_member: bool) -> Engine {
    Engine::open(dir, options(is_member)).unwrap()
}

/// Whoever builds, and what happens around it.
struct World {
    random: Random,
    dir: TempDir,
    engine: Engine,
    is_member: bool,
    second: Option<Engine>,
    copies: Vec<PathBuf>,
}

impl World {
    fn new(seed: u64, is_member: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(&dir.path().join("first"), is_member);
        if is_member {
            engine.begin_term(1).unwrap();
            engine.leave_entries_out();
        }
        let mut ws = engine.begin();
        let ns = Namespace::new("db", "c");
        let made = ws
            .create_collection(&ns, [9; 16], CollectionOptions::default())
            .unwrap();
        assert_eq!(made.id, COLLECTION);
        engine.commit(ws).unwrap();
        Self {
            random: Random::new(seed),
            second: is_member.then(|| open(&dir.path().join("second"), true)),
            dir,
            engine,
            is_member,
            copies: Vec::new(),
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.next() % n
    }

    fn write(&mut self) {
        for _ in 0..self.below(4) {
            let mut ws = self.engine.begin();
            ws.require_collection(COLLECTION);
            for _ in 0..=self.below(20) {
                let key = self.below(60).to_be_bytes();
                match self.below(3) {
                    0 => ws.delete(TreeId(COLLECTION.0), key),
                    _ => ws.put(TreeId(COLLECTION.0), key, [self.below(250) as u8; 30]),
                }
            }
            self.engine.commit(ws).unwrap();
        }
    }

    /// Something that can happen at any time.
    fn happen(&mut self) {
        self.write();
        if self.is_member {
            self.engine
                .note_committed(self.engine.last_lsn(), self.engine.last_optime());
        }
        match self.below(9) {
            0 => self.engine.checkpoint().unwrap(),
            1 => {
                let to = self.dir.path().join(format!("copy{}", self.copies.len()));
                self.engine.backup::<StorageError>(&to, None, || Ok(())).unwrap();
                self.copies.push(to);
            }
            2 => {
                // As a tool copies: first the base, later the journal.
                let to = self.dir.path().join(format!("tool{}", self.copies.len()));
                let _kept = self.engine.hold_base();
                copy(&self.dir.path().join("first"), &to);
                std::fs::remove_dir_all(to.join("journal")).unwrap();
                self.copies.push(to);
            }
            3 | 4 => self.ship(),
            5 => {
                if let Some(second) = self.second.take() {
                    second.crash();
                    self.second = Some(open(&self.dir.path().join("second"), true));
                }
            }
            6 => {
                if let Some(second) = &self.second {
                    second.note_committed(second.last_lsn(), second.last_optime());
                    second.checkpoint().unwrap();
                }
            }
            _ => {}
        }
    }

    fn ship(&mut self) {
        let Some(second) = &self.second else { return };
        let mut reader = self.engine.frames(second.last_lsn());
        loop {
            let frames = reader.next(3_000).unwrap();
            if frames.is_empty() {
                break;
            }
            let frames: Vec<_> = frames.into_iter().map(|frame| frame.bytes).collect();
            second.apply(&frames).unwrap();
        }
        assert_eq!(entries(&second.snapshot()), expected(&self.engine));
        check_indexes(second);
    }

    /// As builds do ([`crate::engine::load`]).
    fn build(&mut self, name: &str) {
        let engine = self.engine.clone();
        let mut ws = engine.begin();
        let spec = doc! { "v": 2, "key": doc! { "a": 1 }, "name": name };
        let spec = IndexSpec::parse(spec.to_raw()).unwrap();
        let index = ws.start_index(COLLECTION, spec).unwrap();
        engine.commit(ws).unwrap();
        self.happen();
        let (watch, mut before) = engine.watch(TreeId(COLLECTION.0));
        self.happen();
        let all = entries(&before);
        let last = engine.last_lsn();
        load(all.iter().collect(), |source| engine.load(COLLECTION, index.id, source)).unwrap();
        engine.end_load(COLLECTION, index.id).unwrap();
        assert_eq!(engine.last_lsn(), last, "no commit has the entries");
        for _ in 0..self.below(3) {
            self.happen();
            let mut touched = Touched::default();
            let now = engine.read_watch(&watch, &mut touched);
            let mut ws = engine.begin();
            ws.trees.insert(index.tree, Arc::new(changed(&before, &now, &touched)));
            engine.commit(ws).unwrap();
            before = now;
        }
        self.happen();
        engine
            .commit_alone(&watch, |now, touched| -> Result<_> {
                let mut ws = engine.begin_at(now.clone());
                ws.trees.insert(index.tree, Arc::new(changed(&before, &now, &touched)));
                ws.finish_index(COLLECTION, index.id)?;
                Ok(Some(ws))
            })
            .unwrap();
        self.maintain(index.tree);
    }

    /// From now on who writes records writes entries.
    fn maintain(&mut self, tree: TreeId) {
        let key = self.below(60).to_be_bytes();
        let mut ws = self.engine.begin();
        let records = TreeId(COLLECTION.0);
        if let Some(old) = ws.get(records, &key).unwrap() {
            ws.delete(tree, entry_of(&key, &old));
        }
        ws.put(records, key, [251u8; 30]);
        ws.put(tree, entry_of(&key, &[251; 30]), &b""[..]);
        self.engine.commit(ws).unwrap();
    }
}

#[test]
fn entries_that_no_commit_has_are_everywhere() {
    let (mut made, mut restored) = (0, 0);
    for seed in 0..24 {
        let mut world = World::new(seed, seed % 2 == 0);
        for _ in 0..4 {
            world.happen();
        }
        world.build("a");
        assert_eq!(check_indexes(&world.engine), 1);
        if world.below(2) == 0 && !world.is_member {
            world.engine.checkpoint().unwrap();
        }
        world.ship();
        if let Some(second) = world.second.take() {
            assert_eq!(check_indexes(&second), 1, "seed {seed}");
            // What was made is durable: nobody has to make it again.
            second.crash();
            let mut options = options(true);
            options.entries = None;
            let again = Engine::open(&world.dir.path().join("second"), options).unwrap();
            assert_eq!(check_indexes(&again), 1, "seed {seed}");
        }
        world.engine.clone().crash();
        let engine = open(&world.dir.path().join("first"), world.is_member);
        assert_eq!(check_indexes(&engine), 1, "seed {seed}");
        engine.close().unwrap();
        drop(engine);
        for (i, from) in world.copies.iter().enumerate() {
            let mut targets = Vec::new();
            if from.join("nestor.backup").exists() {
                for journal in [None, Some(world.dir.path().join("first"))] {
                    let to = world.dir.path().join(format!("restored{i}{}", journal.is_some()));
                    let wanted = RestoreOptions {
                        from: vec![from.clone()],
                        journal,
                        to: to.clone(),
                        until: None,
                        moves: false,
                    };
                    restore(&wanted, options(world.is_member)).unwrap();
                    targets.push((to, wanted.journal.is_some()));
                }
            } else {
                copy(&world.dir.path().join("first/journal"), &from.join("journal"));
                targets.push((from.clone(), true));
            }
            for (to, has_all) in targets {
                let options = options(world.is_member);
                let counted = Arc::new(ByValue::default());
                let options = EngineOptions {
                    entries: Some(counted.clone()),
                    ..options
                };
                let engine = Engine::open(&to, options).unwrap();
                let count = check_indexes(&engine);
                assert!(count == 1 || !has_all, "seed {seed}");
                made += counted.0.load(Ordering::Relaxed);
                restored += 1;
            }
        }
    }
    assert!(
        restored > 8 && made > 1,
        "{restored} {made}: the test does what it says"
    );
}
