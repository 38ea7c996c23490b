use super::*;
use crate::base::memory::MemoryBase;
use crate::base::tree::tests::noise;
use crate::base::{ApplyStats, Base, BaseError, Change, ChangeSource, CheckReport, KeyRange, changes};
use crate::{EngineOptions, TreeId, View};
use nestor_model::random::Random;
use nestor_model::{CollectionOptions, IndexSpec, Namespace, RawDocBuf, doc};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU32;

const T: TreeId = TreeId(900);

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(view: &dyn View, tree: TreeId) -> Contents {
    let mut cursor = view.cursor(tree);
    let mut found = Contents::new();
    let mut more = cursor.first().unwrap();
    while more {
        found.insert(cursor.key().to_vec(), cursor.value().unwrap().to_vec());
        more = cursor.next().unwrap();
    }
    found
}

/// The contents of a store after each commit.
struct Model {
    engine: Engine,
    now: Contents,
    states: Vec<(Timestamp, Contents)>,
    random: Random,
}

impl Model {
    fn new(engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
            now: Contents::new(),
            states: vec![(engine.last_optime(), Contents::new())],
            random: Random::new(7),
        }
    }

    fn random(&self, below: u64) -> u64 {
        self.random.next() % below
    }

    /// A few puts and deletions.
    fn commit(&mut self) {
        let mut ws = self.engine.begin();
        for _ in 0..=self.random(4) {
            let key = format!("{:04}", self.random(300)).into_bytes();
            if self.random(4) == 0 {
                ws.delete(T, key.as_slice());
                self.now.remove(&key);
            } else {
                let value = vec![self.random(250) as u8; 40 + self.random(200) as usize];
                ws.put(T, key.as_slice(), value.as_slice());
                self.now.insert(key, value);
            }
        }
        ws.oplog(doc! { "op": "n", "ts": Timestamp::default() }.to_raw())
            .unwrap();
        let commit = self.engine.commit(ws).unwrap();
        self.states.push((commit.optime, self.now.clone()));
    }

    /// Reads every `step`th time and compares.
    fn verify(&self, step: usize) {
        for (time, expected) in self.states[..self.states.len() - 1].iter().step_by(step) {
            let past = at(&self.engine, *time).expect("within the window");
            assert!(past.snapshot.optime() <= *time && *time < past.until);
            assert!(contents(&past.snapshot, T) == *expected, "at {time:?}");
        }
    }
}

fn at(engine: &Engine, time: Timestamp) -> Option<PastState> {
    engine.snapshot_at::<StorageError>(time, || Ok(())).unwrap()
}

/// A clock that is set by hand, a small memtable and small transactions of checkpoints.
fn options() -> (EngineOptions, Arc<AtomicU32>) {
    let clock = Arc::new(AtomicU32::new(1000));
    let secs = clock.clone();
    let mut options = EngineOptions::new(Arc::new(move || secs.load(Ordering::Relaxed)));
    options.memtable_bytes_max = 30_000;
    options.slice_bytes = 5_000;
    options.journal.segment_bytes = 20_000;
    (options, clock)
}

#[test]
fn any_time_can_be_read_while_checkpoints_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _) = options();
    let engine = Engine::open(dir.path(), options.clone()).unwrap();
    engine.set_history_window(Duration::from_secs(300));
    let mut model = Model::new(&engine);
    for round in 0..600 {
        model.commit();
        if round % 97 == 0 {
            engine.checkpoint().unwrap();
        }
        if round % 50 == 0 {
            model.verify(29);
        }
    }
    model.verify(7);
    let history = engine.history().unwrap();
    assert!(history.bases > 3, "{history:?}");
    assert_eq!(history.oldest, Timestamp::default(), "everything is there");
    // After a restart history begins with the last checkpoint.
    engine.close().unwrap();
    drop(engine);
    model.engine = Engine::open(dir.path(), options).unwrap();
    model.engine.set_history_window(Duration::from_secs(300));
    model.states.drain(..model.states.len() - 1);
    for _ in 0..50 {
        model.commit();
    }
    model.verify(1);
}

#[test]
fn readers_agree_beside_a_thread_that_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), options().0).unwrap();
    engine.set_history_window(Duration::from_secs(300));
    let mut model = Model::new(&engine);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                engine.checkpoint().unwrap();
                std::thread::yield_now();
            }
        });
        let verified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..20 {
                (0..20).for_each(|_| model.commit());
                model.verify(17);
            }
        }));
        stop.store(true, Ordering::Relaxed);
        checkpoints.join().unwrap();
        verified.unwrap();
    });
}

#[test]
fn what_is_older_than_the_window_is_refused_and_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let (options, clock) = options();
    let engine = Engine::open(dir.path(), options).unwrap();
    let mut model = Model::new(&engine);
    model.commit();
    model.commit();
    let first = model.states[1].0;
    assert!(at(&engine, first).is_none(), "at first there is no window");
    engine.set_history_window(Duration::from_secs(60));
    assert!(at(&engine, first).is_some());
    for _ in 0..10 {
        (0..20).for_each(|_| model.commit());
        engine.checkpoint().unwrap();
    }
    assert!(engine.history().unwrap().bases >= 10);
    clock.store(1050, Ordering::Relaxed);
    (0..20).for_each(|_| model.commit());
    engine.checkpoint().unwrap();
    model.verify(11);
    let last_of_before = model.states.iter().rfind(|(time, _)| time.secs == 1000).unwrap().0;
    clock.store(1061, Ordering::Relaxed);
    engine.trim_history();
    assert!(at(&engine, first).is_none(), "its successor is older than the window");
    assert!(
        at(&engine, last_of_before).is_some(),
        "it was the newest eleven seconds ago"
    );
    assert_eq!(engine.history().unwrap().bases, 1);
    engine.set_history_window(Duration::ZERO);
    assert!(at(&engine, last_of_before).is_none());
    let history = engine.history().unwrap();
    assert_eq!((history.bases, history.bytes), (0, 0));
}

#[test]
fn room_bounds_the_history_before_the_window_does() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), EngineOptions::at_time(1000)).unwrap();
    engine.set_history_window(Duration::from_secs(300));
    let mut bytes = Vec::new();
    for round in 0..24u8 {
        let mut ws = engine.begin();
        for key in 0..4000u32 {
            ws.put(
                T,
                key.to_be_bytes(),
                noise(u64::from(key) << 8 | u64::from(round), 2000),
            );
        }
        engine.commit(ws).unwrap();
        engine.checkpoint().unwrap();
        bytes.push(engine.history().unwrap().bytes);
    }
    assert!(bytes.iter().all(|bytes| *bytes <= HELD_BYTES_MIN), "{bytes:?}");
    assert!(bytes[23] > HELD_BYTES_MIN / 2, "it is made use of: {bytes:?}");
    let file = engine.stats().base_bytes;
    assert!(file < HELD_BYTES_MIN + 4 * 8_000_000, "{file}");
}

#[test]
fn a_time_whose_journal_is_gone_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (mut options, _) = options();
    options.oplog_bytes_max = 60_000;
    let engine = Engine::open(dir.path(), options).unwrap();
    engine.set_history_window(Duration::from_secs(300));
    let mut model = Model::new(&engine);
    for _ in 0..10 {
        (0..100).for_each(|_| model.commit());
        engine.checkpoint().unwrap();
    }
    assert!(at(&engine, model.states[1].0).is_none());
    let history = engine.history().unwrap();
    assert!(history.oldest > model.states[100].0, "{history:?}");
    model.states.retain(|(time, _)| *time >= history.oldest);
    assert!(model.states.len() > 50, "{}", model.states.len());
    model.verify(13);
}

/// A base that refuses some transactions.
#[derive(Default)]
struct Refusing {
    base: MemoryBase,
    /// How many go well before all are refused.
    room: AtomicU32,
}

impl Base for Refusing {
    fn snapshot(&self) -> Arc<dyn BaseSnapshot> {
        self.base.snapshot()
    }
    fn apply(
        &self,
        deletions: &[KeyRange<'_>],
        changes: &mut dyn ChangeSource,
        meta: &[u8],
    ) -> std::result::Result<ApplyStats, BaseError> {
        let room = self.room.load(Ordering::SeqCst);
        if room == 0 {
            return Err(BaseError::Io {
                file: Path::new("base").into(),
                operation: "write",
                source: std::io::ErrorKind::StorageFull.into(),
            });
        }
        self.room.store(room - 1, Ordering::SeqCst);
        self.base.apply(deletions, changes, meta)
    }
    fn file_bytes(&self) -> u64 {
        0
    }
    fn held_bytes(&self) -> u64 {
        0
    }
    fn check(&self) -> std::result::Result<CheckReport, BaseError> {
        self.base.check()
    }
}

/// The present base has some of the newer commits then.
#[test]
fn half_a_checkpoint_does_not_show_in_the_past() {
    let dir = tempfile::tempdir().unwrap();
    let base = Arc::new(Refusing::default());
    base.room.store(u32::MAX, Ordering::SeqCst);
    let (mut options, _) = options();
    options.memtable_bytes_max = 1 << 20;
    options.base = Some(base.clone());
    let engine = Engine::open(dir.path(), options).unwrap();
    engine.set_history_window(Duration::from_secs(300));
    let mut model = Model::new(&engine);
    (0..100).for_each(|_| model.commit());
    engine.checkpoint().unwrap();
    (0..100).for_each(|_| model.commit());
    for room in [2, 1] {
        base.room.store(room, Ordering::SeqCst);
        assert!(engine.checkpoint().is_err());
        engine.trim_history();
        model.verify(3);
        (0..20).for_each(|_| model.commit());
        model.verify(3);
    }
    base.room.store(u32::MAX, Ordering::SeqCst);
    engine.checkpoint().unwrap();
    model.verify(3);
}

fn create(engine: &Engine, name: &str) -> Arc<Collection> {
    let mut ws = engine.begin();
    let ns = Namespace::new("d", name);
    let uuid = [name.len() as u8; 16];
    let made = ws.create_collection(&ns, uuid, CollectionOptions::default()).unwrap();
    engine.commit(ws).unwrap();
    made
}

fn put(engine: &Engine, collection: &Collection, key: u32, value: RawDocBuf) -> Timestamp {
    let mut ws = engine.begin();
    ws.require_collection(collection.id);
    ws.put_document(collection.records, key.to_be_bytes(), value);
    engine.commit(ws).unwrap().optime
}

#[test]
fn the_catalog_of_the_past_shares_what_has_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), options().0).unwrap();
    engine.set_history_window(Duration::from_secs(300));
    let (kept, dropped) = (create(&engine, "kept"), create(&engine, "dropped!"));
    put(&engine, &kept, 1, doc! { "v": 1 }.to_raw());
    let time = put(&engine, &dropped, 1, doc! { "v": 1 }.to_raw());
    put(&engine, &kept, 1, doc! { "v": 2 }.to_raw());
    let past = at(&engine, time).unwrap().snapshot;
    assert!(
        Arc::ptr_eq(past.catalog(), engine.snapshot().catalog()),
        "nothing has changed"
    );
    engine.checkpoint().unwrap();
    let mut ws = engine.begin();
    ws.drop_collection(&dropped.ns).unwrap();
    engine.commit(ws).unwrap();
    let new = create(&engine, "new");
    engine.checkpoint().unwrap();
    put(&engine, &new, 1, doc! { "v": 1 }.to_raw());
    let past = at(&engine, time).unwrap().snapshot;
    assert_eq!(contents(&past, dropped.records).len(), 1);
    assert!(past.catalog().get(&dropped.ns).is_some() && past.catalog().get(&new.ns).is_none());
    let same = past.catalog().get(&kept.ns).unwrap();
    assert!(Arc::ptr_eq(same, engine.snapshot().catalog().get(&kept.ns).unwrap()));
    let value = contents(&past, kept.records).into_values().next();
    assert_eq!(value, Some(doc! { "v": 1 }.to_raw().as_bytes().to_vec()));
    // A document that has changed since may not be written on top of that state, not even one that has not: what was merged into the base
    // cannot be compared any more.
    let mut ws = engine.begin_transaction(past);
    ws.put_document(kept.records, 1u32.to_be_bytes(), doc! { "v": 3 }.to_raw());
    assert!(matches!(engine.claim(&mut ws), Err(StorageError::WriteConflict)));
}

/// Entries of a new index are in no journal: they are in the base that the next checkpoint replaces.
#[test]
fn an_index_that_was_loaded_into_the_base_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), options().0).unwrap();
    engine.set_history_window(Duration::from_secs(300));
    let collection = create(&engine, "c");
    let mut ws = engine.begin();
    let spec = IndexSpec::parse(doc! { "key": doc! { "a": 1 }, "name": "a_1", "v": 2 }.to_raw()).unwrap();
    let index = ws.start_index(collection.id, spec).unwrap();
    engine.commit(ws).unwrap();
    let keys: Vec<[u8; 4]> = (0..500u32).map(u32::to_be_bytes).collect();
    let entry = |key| Change { key, value: Some(b"x") };
    let mut entries = changes(keys.iter().map(|key| entry(key)));
    while engine.load(collection.id, index.id, &mut entries).unwrap() {}
    let mut ws = engine.begin();
    ws.finish_index(collection.id, index.id).unwrap();
    let time = engine.commit(ws).unwrap().optime;
    engine.checkpoint().unwrap();
    put(&engine, &collection, 1, doc! { "a": 1 }.to_raw());
    let mut ws = engine.begin();
    ws.drop_index(collection.id, index.id).unwrap();
    engine.commit(ws).unwrap();
    engine.checkpoint().unwrap();
    let past = at(&engine, time).unwrap().snapshot;
    assert_eq!(contents(&past, index.tree).len(), 500);
    assert!(past.catalog().get(&collection.ns).unwrap().index("a_1").is_some());
}
