//! Members with stores of their own over one log in memory, as processes would run them: a role ends, and they start anew.

// All of it is a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use nestor_cluster::member::checkpoints::{self, Checkpoint, moments};
use nestor_cluster::member::{Member, MemberError, MemberOptions, Roles, start};
use nestor_cluster::{Log, MemoryLog};
use nestor_model::{CollectionOptions, Namespace, RecordId, Timestamp, doc};
use nestor_storage::{Configuration, Engine, EngineOptions, Guarantee, Lsn, TreeId, View, WantedTags, record};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const T: TreeId = TreeId(900);
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

struct Over(mpsc::Sender<usize>, usize);

impl Roles for Over {
    fn over(&self, _: &str) {
        // The test may be at its end.
        let _ = self.0.send(self.1);
    }
}

struct Set {
    log: Arc<MemoryLog>,
    dirs: Vec<TempDir>,
    members: Vec<Option<Member>>,
    over: mpsc::Receiver<usize>,
    tell: mpsc::Sender<usize>,
    checkpoint_commits: u64,
}

impl Set {
    fn new(size: usize) -> Self {
        Self::with_checkpoints(size, u64::MAX)
    }

    fn with_checkpoints(size: usize, checkpoint_commits: u64) -> Self {
        Self::over(MemoryLog::new(), size, checkpoint_commits)
    }

    fn over(log: MemoryLog, size: usize, checkpoint_commits: u64) -> Self {
        let (tell, over) = mpsc::channel();
        let mut set = Self {
            log: Arc::new(log),
            dirs: (0..size).map(|_| tempfile::tempdir().unwrap()).collect(),
            members: (0..size).map(|_| None).collect(),
            over,
            tell,
            checkpoint_commits,
        };
        (0..size).for_each(|at| set.start(at));
        set
    }

    fn start(&mut self, at: usize) {
        self.members[at] = Some(self.try_start(at).unwrap());
    }

    fn try_start(&self, at: usize) -> Result<Member, MemberError> {
        // Time goes on by a second with each look.
        let clock = Arc::new(AtomicU32::new(100));
        let options = MemberOptions {
            set: "rs0".into(),
            host: format!("{}:1", ["a", "b", "c"][at]),
            dir: self.dirs[at].path().to_owned(),
            engine: EngineOptions::new(Arc::new(move || clock.fetch_add(1, Ordering::Relaxed))),
            // Longer than a busy machine keeps a thread waiting.
            lease: Duration::from_millis(1_500),
            checkpoint_commits: self.checkpoint_commits,
            roles: Arc::new(Over(self.tell.clone(), at)),
        };
        let log: Arc<dyn Log> = self.log.clone();
        start(log, options)
    }

    fn engine(&self, at: usize) -> Engine {
        self.members[at].as_ref().unwrap().engine().clone()
    }

    /// Ends a process: what it had in memory is gone.
    fn kill(&mut self, at: usize) {
        let member = self.members[at].take().unwrap();
        let engine = member.engine().clone();
        engine.abandon();
        drop(member);
    }

    /// Starts members anew whose roles are over, until one is primary that accepts commits.
    fn primary(&mut self) -> usize {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            self.renew();
            let found = (0..self.members.len()).find(|at| {
                let member = self.members[*at].as_ref();
                member.is_some_and(|member| member.engine().is_writable())
            });
            if let Some(at) = found {
                return at;
            }
        }
        panic!("nobody is primary");
    }

    /// Starts those anew whose role is over.
    fn renew(&mut self) {
        if let Ok(at) = self.over.recv_timeout(Duration::from_millis(20)) {
            self.kill(at);
            self.start(at);
        }
    }

    /// The configuration that a member shows when all have come, with a version that is one greater.
    fn next_config(&self, at: usize) -> Configuration {
        let begun = Instant::now();
        loop {
            let mut config = self.engine(at).topology().config.clone();
            if config.members.len() == self.members.len() {
                config.version += 1;
                return config;
            }
            assert!(begun.elapsed() < PATIENCE, "{config:?}");
            std::thread::yield_now();
        }
    }

    fn wait_equal(&mut self, from: usize) {
        let begun = Instant::now();
        let wanted = keys(&self.engine(from));
        for at in 0..self.members.len() {
            while keys(&self.engine(at)) != wanted {
                assert!(
                    begun.elapsed() < PATIENCE,
                    "{} instead of {wanted}",
                    keys(&self.engine(at))
                );
                self.renew();
            }
        }
    }
}

fn put(engine: &Engine, key: &str) -> Lsn {
    let mut ws = engine.begin();
    ws.put(T, key.as_bytes(), b"value");
    ws.oplog(doc! { "ts": nestor_model::Timestamp::default(), "t": 0i64, "op": "n", "o": doc! { "k": key } }.to_raw())
        .unwrap();
    engine.commit(ws).unwrap().lsn
}

fn keys(engine: &Engine) -> String {
    let mut cursor = engine.snapshot().cursor(T);
    let mut out = String::new();
    let mut more = cursor.first().unwrap();
    while more {
        out.push_str(&String::from_utf8_lossy(cursor.key()));
        more = cursor.next().unwrap();
    }
    out
}

#[test]
fn a_standby_takes_over_and_the_old_primary_comes_back() {
    let mut set = Set::new(3);
    let first = set.primary();
    assert_eq!(first, 0, "the first that came");
    let engine = set.engine(first);
    let lsn = put(&engine, "a");
    engine.wait_reached(lsn, Guarantee::Committed).unwrap();
    let lsn = put(&engine, "b");
    engine.wait_reached(lsn, Guarantee::Applied(3)).unwrap();
    set.wait_equal(first);
    let topology = engine.topology();
    let names: Vec<&str> = topology.members("").map(|(name, _)| name).collect();
    assert_eq!(names, ["a:1", "b:1", "c:1"]);
    assert_eq!((topology.term, topology.is_primary()), (1, true));
    drop(engine);
    set.kill(first);
    let second = set.primary();
    assert_ne!(second, first);
    let engine = set.engine(second);
    assert_eq!(engine.topology().term, 2);
    let lsn = put(&engine, "c");
    engine.wait_reached(lsn, Guarantee::Committed).unwrap();
    set.start(first);
    assert!(!set.engine(first).is_writable());
    set.wait_equal(second);
    assert_eq!(keys(&set.engine(first)), "abc");
}

#[test]
fn what_never_reached_the_log_is_dropped_and_kept_in_files() {
    let mut set = Set::new(2);
    let first = set.primary();
    let engine = set.engine(first);
    let lsn = put(&engine, "a");
    engine.wait_reached(lsn, Guarantee::Applied(2)).unwrap();
    drop(engine);
    // Somebody shuts it out: the member finds out when it ships.
    drop(set.log.open_writer().unwrap());
    let engine = set.engine(first);
    let mut ws = engine.begin();
    let ns = Namespace::new("db", "c");
    let made = ws
        .create_collection(&ns, [7; 16], CollectionOptions::default())
        .unwrap();
    let key = record::record_key(RecordId(1));
    ws.put_document(made.records, key, doc! { "_id": 1 }.to_raw());
    ws.put(T, b"x", b"value");
    let lost = engine.commit(ws).unwrap().lsn;
    while engine.is_writable() {
        std::thread::yield_now();
    }
    assert!(!engine.has_reached(lost, &Guarantee::Committed));
    drop(engine);
    set.kill(first);
    while set.over.try_recv().is_ok() {}
    let second = set.primary();
    let engine = set.engine(second);
    let lsn = put(&engine, "y");
    engine.wait_reached(lsn, Guarantee::Committed).unwrap();
    set.start(first);
    set.wait_equal(second);
    assert_eq!(keys(&set.engine(first)), "ay");
    let folder = set.dirs[first]
        .path()
        .join("rollback/07070707-0707-0707-0707-070707070707");
    assert_eq!(std::fs::read_to_string(folder.join("namespace")).unwrap(), "db.c");
    let removed = std::fs::read(folder.join(format!("removed.{}.bson", lost.0))).unwrap();
    assert_eq!(removed, doc! { "_id": 1 }.to_raw().as_bytes());
}

/// Whoever comes back before anybody else wrote keeps what the log does not have yet.
#[test]
fn a_primary_that_starts_again_goes_on() {
    let mut set = Set::new(1);
    let first = set.primary();
    let lsn = put(&set.engine(first), "a");
    set.engine(first).wait_reached(lsn, Guarantee::Committed).unwrap();
    drop(set.log.open_writer().unwrap());
    put(&set.engine(first), "b");
    while set.engine(first).is_writable() {
        std::thread::yield_now();
    }
    let first = set.primary();
    let engine = set.engine(first);
    assert_eq!(keys(&engine), "ab");
    engine.wait_reached(engine.last_lsn(), Guarantee::Committed).unwrap();
}

#[test]
fn stepping_down_hands_the_lease_over() {
    let mut set = Set::new(2);
    let first = set.primary();
    let engine = set.engine(first);
    let lsn = put(&engine, "a");
    engine.wait_reached(lsn, Guarantee::Applied(2)).unwrap();
    let steward = engine.steward().unwrap();
    drop(engine);
    steward.step_down(Duration::from_secs(60), PATIENCE, false).unwrap();
    drop(steward);
    let second = set.primary();
    assert_ne!(second, first);
    let engine = set.engine(second);
    put(&engine, "b");
    set.wait_equal(second);
}

#[test]
fn a_member_with_a_higher_priority_becomes_primary_and_one_without_never_does() {
    let mut set = Set::new(3);
    let first = set.primary();
    let engine = set.engine(first);
    let lsn = put(&engine, "a");
    engine.wait_reached(lsn, Guarantee::Applied(3)).unwrap();
    let (preferred, never) = ((first + 1) % 3, (first + 2) % 3);
    let mut wanted = set.next_config(first);
    wanted.members[preferred].priority = 2.0;
    wanted.members[never].priority = 0.0;
    engine.steward().unwrap().reconfigure(wanted, false).unwrap();
    drop(engine);
    let begun = Instant::now();
    while set.primary() != preferred {
        assert!(begun.elapsed() < PATIENCE, "{preferred} is not primary");
    }
    put(&set.engine(preferred), "b");
    set.wait_equal(preferred);
    set.kill(preferred);
    assert_eq!(set.primary(), first);
}

#[test]
fn a_member_that_is_removed_ends_and_is_refused() {
    let mut set = Set::new(2);
    let first = set.primary();
    let engine = set.engine(first);
    let mut wanted = set.next_config(first);
    let removed = 1 - first;
    wanted.members.remove(removed);
    engine.steward().unwrap().reconfigure(wanted, false).unwrap();
    assert_eq!(set.over.recv_timeout(PATIENCE), Ok(removed));
    set.kill(removed);
    let refused = set
        .try_start(removed)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(refused.contains("was removed from the set"), "{refused}");
}

#[test]
fn a_delayed_member_applies_what_is_old_enough() {
    let mut set = Set::new(2);
    let first = set.primary();
    let engine = set.engine(first);
    let lsn = put(&engine, "a");
    engine.wait_reached(lsn, Guarantee::Applied(2)).unwrap();
    let delayed = 1 - first;
    let delay = Duration::from_secs(1_000_000);
    let mut wanted = set.next_config(first);
    (wanted.members[delayed].priority, wanted.members[delayed].delay) = (0.0, delay);
    engine.steward().unwrap().reconfigure(wanted, false).unwrap();
    let knows = |set: &Set, delay: Duration| {
        let topology = set.engine(delayed).topology();
        topology.own_config().is_some_and(|own| own.delay == delay)
    };
    let begun = Instant::now();
    while !knows(&set, delay) {
        assert!(begun.elapsed() < PATIENCE);
    }
    let lsn = put(&engine, "b");
    engine.wait_reached(lsn, Guarantee::Committed).unwrap();
    // More than one round of it.
    assert!(!engine.wait_for_commit(lsn, Instant::now() + Duration::from_millis(200)));
    assert_eq!(keys(&set.engine(delayed)), "a");
    // Nor does it after a start.
    set.kill(delayed);
    set.start(delayed);
    assert_eq!(keys(&set.engine(delayed)), "a");
    let mut wanted = set.next_config(first);
    wanted.members[delayed].delay = Duration::ZERO;
    engine.steward().unwrap().reconfigure(wanted, false).unwrap();
    engine.wait_reached(lsn, Guarantee::Applied(2)).unwrap();
    set.wait_equal(first);
}

#[test]
fn a_commit_waits_for_members_with_tags() {
    let mut set = Set::new(3);
    let first = set.primary();
    let engine = set.engine(first);
    let mut wanted = set.next_config(first);
    for (member, rack) in wanted.members.iter_mut().zip(["x", "x", "y"]) {
        member.tags = vec![("rack".into(), rack.into())];
    }
    engine.steward().unwrap().reconfigure(wanted, false).unwrap();
    let racks: WantedTags = [("rack".to_owned(), 2)].into();
    let lsn = put(&engine, "a");
    engine.wait_reached(lsn, Guarantee::Tagged(racks.clone())).unwrap();
    set.kill(2);
    let lsn = put(&engine, "b");
    engine.wait_reached(lsn, Guarantee::Applied(2)).unwrap();
    assert!(!engine.has_reached(lsn, &Guarantee::Tagged(racks.clone())));
    set.start(2);
    engine.wait_reached(lsn, Guarantee::Tagged(racks)).unwrap();
}

#[test]
fn a_new_member_begins_from_a_checkpoint_and_the_log_is_trimmed_behind_it() {
    let mut set = Set::with_checkpoints(2, 20);
    let first = set.primary();
    let engine = set.engine(first);
    let begun = Instant::now();
    let mut last = Lsn(0);
    let mut count = 0;
    // Two checkpoints: the log begins with the older one.
    while set.log.open_reader().unwrap().read(0, 1).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "nothing is trimmed after {count} commits");
        last = put(&engine, &format!("{count} "));
        engine.wait_reached(last, Guarantee::Applied(2)).unwrap();
        count += 1;
        set.renew();
    }
    let (_, checkpoints) = checkpoints::read(&*set.log).unwrap();
    assert!(
        checkpoints.len() == 2 && checkpoints[0].seq < checkpoints[1].seq,
        "{checkpoints:?}"
    );
    // One that was on its way here when its process ended.
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("beginning")).unwrap();
    std::fs::write(dir.path().join("base.nestor"), b"half of it").unwrap();
    set.dirs.push(dir);
    set.members.push(None);
    set.start(2);
    engine.wait_reached(last, Guarantee::Applied(3)).unwrap();
    set.wait_equal(first);
    assert!(!set.dirs[2].path().join("beginning").exists());
    // A checkpoint with a file that is not what it was is none: the one before it is taken.
    let (_, checkpoints) = checkpoints::read(&*set.log).unwrap();
    let newest = checkpoints.last().unwrap();
    set.log.put(&newest.path_of("base.blocks"), b"others").unwrap();
    drop(engine);
    set.kill(2);
    set.dirs[2] = tempfile::tempdir().unwrap();
    set.start(2);
    set.wait_equal(first);
}

/// Commits until there are so many checkpoints, of which the newest has the last commit before.
fn fill(set: &mut Set, engine: &Engine, prefix: &str, wanted: impl Fn(&[Checkpoint]) -> bool) -> Lsn {
    let begun = Instant::now();
    let mut last = Lsn(0);
    for count in 0.. {
        let mut ws = engine.begin();
        // More than a block, and other bytes each time.
        let value: Vec<u8> = (0..20_000u32)
            .map(|at| (at.wrapping_mul(count + 1) >> 7) as u8)
            .collect();
        ws.put(T, format!("{prefix}{count:04} ").as_bytes(), &value[..]);
        ws.oplog(doc! { "ts": Timestamp::default(), "t": 0i64, "op": "n", "o": doc! { "k": prefix } }.to_raw())
            .unwrap();
        last = engine.commit(ws).unwrap().lsn;
        engine.wait_reached(last, Guarantee::Applied(2)).unwrap();
        set.renew();
        if wanted(&checkpoints::read(&*set.log).unwrap().1) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "no checkpoint after {count} commits");
    }
    last
}

fn time_of(engine: &Engine, lsn: Lsn) -> Timestamp {
    engine.frames(Lsn(lsn.0 - 1)).next(1).unwrap()[0].optime
}

fn options_of_a_moment() -> EngineOptions {
    let mut options = EngineOptions::new(Arc::new(|| 7_000));
    options.oplog_bytes_max = u64::MAX;
    options
}

/// What did not change is not uploaded again, what nobody refers to is removed, and halves of checkpoints too.
#[test]
fn a_checkpoint_uploads_what_the_one_before_does_not_have() {
    let mut set = Set::with_checkpoints(2, 60);
    let first = set.primary();
    let engine = set.engine(first);
    let seconds = |list: &[Checkpoint]| list.len() == 2;
    fill(&mut set, &engine, "a", seconds);
    let bytes = |set: &Set, id: &str| -> u64 {
        let packs = set.log.files("packs").unwrap();
        let of = packs.iter().filter(|pack| pack.starts_with(&format!("packs/{id}/")));
        of.map(|pack| set.log.get(pack, 0..u64::MAX).unwrap().len() as u64)
            .sum()
    };
    let (_, list) = checkpoints::read(&*set.log).unwrap();
    let (one, two) = (list[0].clone(), list[1].clone());
    let uploaded = bytes(&set, two.id());
    assert!(
        uploaded > 0 && uploaded < two.base_bytes() * 3 / 4,
        "{uploaded} of {}",
        two.base_bytes()
    );
    // Of a member that ended on the way.
    let half = "packs/z-1-1-1-9/0";
    set.log.put(half, b"half").unwrap();
    let is_gone = |list: &[Checkpoint]| list.iter().all(|kept| kept.id() != one.id());
    fill(&mut set, &engine, "b", is_gone);
    let begun = Instant::now();
    while set.log.files("packs").unwrap().iter().any(|pack| pack == half) {
        assert!(begun.elapsed() < PATIENCE, "{:?}", set.log.files("packs"));
        set.renew();
    }
    assert!(set.log.files(&format!("checkpoints/{}", one.id())).unwrap().is_empty());
    // The newest refers to packs of those before, and a new member has everything.
    set.dirs.push(tempfile::tempdir().unwrap());
    set.members.push(None);
    set.start(2);
    engine.wait_reached(engine.last_lsn(), Guarantee::Applied(3)).unwrap();
    set.wait_equal(first);
    let dir = set.dirs[2].path();
    assert!(!dir.join("upload").exists() && !dir.join("beginning").exists());
}

#[test]
fn moments_are_restored_and_branched_off() {
    let mut set = Set::over(MemoryLog::new().beside("memory://origin"), 2, 40);
    let first = set.primary();
    let engine = set.engine(first);
    let early = put(&engine, "A ");
    fill(&mut set, &engine, "a", |list| list.len() == 2);
    let (_, list) = checkpoints::read(&*set.log).unwrap();
    let lsn = put(&engine, "moment ");
    let at = time_of(&engine, lsn);
    let wanted = keys(&engine);
    let later = put(&engine, "z later ");
    engine.wait_reached(later, Guarantee::Committed).unwrap();
    // A time in the newest checkpoint or behind it, one between the two, and one before everything that is kept.
    let restored = |at: Option<Timestamp>| {
        let dir = tempfile::tempdir().unwrap();
        let moment = moments::restore_moment(&*set.log, dir.path(), at, options_of_a_moment())?;
        let alone = Engine::open(dir.path(), options_of_a_moment()).unwrap();
        assert_eq!(alone.last_optime(), moment.until);
        let found = keys(&alone);
        put(&alone, "goes on");
        alone.close().unwrap();
        Ok::<_, MemberError>(found)
    };
    assert_eq!(restored(Some(at)).unwrap(), wanted);
    assert_eq!(restored(None).unwrap(), keys(&engine));
    let between = restored(list[0].from()).unwrap();
    assert!(
        wanted.starts_with(&between) && between.len() < wanted.len(),
        "{between}"
    );
    while set.log.open_reader().unwrap().read(0, 1).is_ok() {
        std::thread::yield_now();
    }
    let refused = restored(Some(time_of_first(early))).unwrap_err().to_string();
    assert!(refused.contains("what is kept begins with"), "{refused}");

    let branch = set.log.beside("memory://branch");
    let made = moments::branch(&*set.log, &branch, Some(at)).unwrap();
    assert_eq!(made.until, at);
    assert!(branch.files("packs").unwrap().is_empty(), "no base is copied");
    let refused = moments::branch(&*set.log, &branch, None).unwrap_err().to_string();
    assert!(
        refused.contains("there is a log at memory://branch already"),
        "{refused}"
    );
    // The set goes on, and drops the checkpoint that the branch refers to.
    let is_gone = |now: &[Checkpoint]| {
        now.iter()
            .all(|kept| kept.id() != list[0].id() && kept.id() != list[1].id())
    };
    fill(&mut set, &engine, "b", is_gone);
    let mut other = Set::over(branch.clone(), 2, 40);
    let own = other.primary();
    let of_branch = other.engine(own);
    assert_eq!(keys(&of_branch), wanted);
    let lsn = put(&of_branch, "own ");
    of_branch.wait_reached(lsn, Guarantee::Applied(2)).unwrap();
    assert!(!keys(&engine).contains("own"));
    // When it has checkpoints of its own that need nothing of its origin, that keeps nothing for it.
    let begun = Instant::now();
    while !set.log.files("branches").unwrap().is_empty() {
        assert!(begun.elapsed() < 3 * PATIENCE, "the branch needs its origin");
        let seen = checkpoints::read(&branch).unwrap().0;
        for key in 0..60 {
            put(&of_branch, &format!("a{key:04} "));
        }
        fill(&mut other, &of_branch, "own", |_| {
            checkpoints::read(&branch).unwrap().0 > seen
        });
    }
    assert!(keys(&of_branch).contains("moment own "), "{}", keys(&of_branch));
    let refused = moments::forget_branch(&*set.log, "memory://branch")
        .unwrap_err()
        .to_string();
    assert!(refused.contains("keeps nothing for a branch"), "{refused}");
}

/// The time of a commit that no journal has any more: clocks of these tests begin with 100.
fn time_of_first(_: Lsn) -> Timestamp {
    Timestamp { secs: 100, inc: 1 }
}
