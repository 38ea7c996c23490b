use super::*;
use crate::base::tree::tests::noise;
use crate::{EngineOptions, TreeId, View};
use nestor_model::random::Random;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const T: TreeId = TreeId(900);

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> EngineOptions {
    let mut options = EngineOptions::at_time(100);
    options.journal.segment_bytes = 4_000;
    options.slice_bytes = 4_000;
    options
}

fn contents(engine: &Engine) -> Contents {
    let snapshot = engine.snapshot();
    let mut cursor = snapshot.cursor(T);
    let mut found = Contents::new();
    let mut more = cursor.first().unwrap();
    while more {
        found.insert(cursor.key().to_vec(), cursor.value().unwrap().to_vec());
        more = cursor.next().unwrap();
    }
    found
}

fn never() -> Result<()> {
    Ok(())
}

/// A store, what it had after each commit, and the backups that were made of it.
struct Model {
    dir: TempDir,
    engine: Engine,
    now: Contents,
    states: Vec<(Timestamp, Contents)>,
    random: Random,
    backups: Vec<(PathBuf, Backup)>,
}

impl Model {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(&dir.path().join("data"), options()).unwrap();
        Self {
            dir,
            engine,
            now: Contents::new(),
            states: Vec::new(),
            random: Random::new(11),
            backups: Vec::new(),
        }
    }

    fn random(&self, below: u64) -> u64 {
        self.random.next() % below
    }

    fn commits(&mut self, count: usize) {
        for _ in 0..count {
            let mut ws = self.engine.begin();
            for _ in 0..=self.random(4) {
                let key = format!("{:04}", self.random(2_000)).into_bytes();
                if self.random(5) == 0 {
                    ws.delete(T, key.as_slice());
                    self.now.remove(&key);
                } else {
                    let value = vec![self.random(250) as u8; 40 + self.random(400) as usize];
                    ws.put(T, key.as_slice(), value.as_slice());
                    self.now.insert(key, value);
                }
            }
            let commit = self.engine.commit(ws).unwrap();
            self.states.push((commit.optime, self.now.clone()));
        }
    }

    fn backup(&mut self, is_incremental: bool) -> Backup {
        let to = self.dir.path().join(format!("backup{}", self.backups.len()));
        let parent = self.backups.last().map(|(path, _)| path.clone());
        let backup = self
            .engine
            .backup(&to, parent.as_deref().filter(|_| is_incremental), never)
            .unwrap();
        self.backups.push((to, backup.clone()));
        backup
    }

    /// The state that each of the backups restores.
    fn restored(&self, count: usize, until: Option<Timestamp>) -> Result<(Timestamp, Contents)> {
        let to = self.dir.path().join("restored");
        let wanted = RestoreOptions {
            from: self.backups[..count]
                .iter()
                .rev()
                .map(|(path, _)| path.clone())
                .collect(),
            journal: None,
            to: to.clone(),
            until,
            moves: false,
        };
        let result = restore(&wanted, options()).map(|restored| {
            let engine = Engine::open(&to, options()).unwrap();
            assert_eq!(restored.until, engine.last_optime());
            (restored.until, contents(&engine))
        });
        if to.exists() {
            fs::remove_dir_all(&to).unwrap();
        }
        result
    }

    fn reopen(&mut self) {
        self.engine.close().unwrap();
        self.engine = Engine::ephemeral(options());
        self.engine = Engine::open(&self.dir.path().join("data"), options()).unwrap();
    }
}

#[test]
fn increments_restore_every_state_between_them() {
    let mut model = Model::new();
    model.commits(120);
    model.engine.checkpoint().unwrap();
    model.commits(20);
    let full = model.backup(false);
    assert_eq!((&full.parent, full.continues), (&None, true));
    assert_eq!(full.copied_bytes, full.base_bytes);
    model.commits(7);
    // Only the journal is new.
    let second = model.backup(true);
    assert_eq!((second.copied_bytes, second.parent.as_ref()), (0, Some(&full.id)));
    model.commits(60);
    model.engine.checkpoint().unwrap();
    model.commits(5);
    model.reopen();
    let third = model.backup(true);
    assert!(third.continues && third.copied_bytes > 0);
    // Nothing at all is new.
    let fourth = model.backup(true);
    assert_eq!((fourth.copied_bytes, fourth.journal_bytes), (0, 0), "{fourth:?}");
    model.commits(30);
    model.backup(true);
    for count in 1..=model.backups.len() {
        let until = model.backups[count - 1].1.until;
        let state = model.states.iter().find(|(time, _)| *time == until).unwrap();
        assert_eq!(&model.restored(count, None).unwrap(), state, "{count} backups");
    }
    let all = model.backups.len();
    let from = full.from;
    for (time, state) in model.states.iter().filter(|(time, _)| *time >= from).step_by(9) {
        assert_eq!(&model.restored(all, Some(*time)).unwrap(), &(*time, state.clone()));
    }
    // Between two commits it is that of the first.
    let (time, state) = model.states.last().unwrap();
    let mut data = model.restored(
        all,
        Some(Timestamp {
            secs: time.secs + 1,
            inc: 0,
        }),
    );
    assert!(
        data.as_ref().is_err_and(|e| e.to_string().contains("end with")),
        "{data:?}"
    );
    data = model.restored(all, Some(*time));
    assert_eq!(&data.unwrap().1, state);
    data = model.restored(all, Some(Timestamp { secs: 1, inc: 1 }));
    assert!(
        data.as_ref().is_err_and(|e| e.to_string().contains("begin with")),
        "{data:?}"
    );
}

/// A backup and the journal of the directory, whose base is lost.
#[test]
fn the_journal_of_the_directory_goes_on_where_the_backups_end() {
    let mut model = Model::new();
    model.commits(40);
    model.backup(false);
    model.commits(40);
    let (until, state) = model.states[60].clone();
    model.engine.wait_durable(model.engine.last_lsn()).unwrap();
    for (until, state) in [(Some(until), state), (None, model.now.clone())] {
        let to = model.dir.path().join("restored");
        let wanted = RestoreOptions {
            from: vec![model.backups[0].0.clone()],
            journal: Some(model.dir.path().join("data")),
            to: to.clone(),
            until,
            moves: false,
        };
        restore(&wanted, options()).unwrap();
        assert_eq!(contents(&Engine::open(&to, options()).unwrap()), state);
        fs::remove_dir_all(&to).unwrap();
    }
}

/// The oplog has rolled over since the parent was made: the backup is whole, and what lies between is gone.
#[test]
fn a_gap_in_the_oplog_is_told() {
    let mut model = Model::new();
    model.commits(30);
    let first = model.backup(false);
    model.commits(100);
    model.engine.set_log_retention(crate::LogRetention {
        bytes_max: 1,
        age_min: std::time::Duration::ZERO,
    });
    model.engine.checkpoint().unwrap();
    model.commits(3);
    let second = model.backup(true);
    assert!(!second.continues, "{second:?}");
    assert_eq!(model.restored(2, None).unwrap().1, model.now);
    let between = model.states.iter().find(|(time, _)| *time > first.until).unwrap().0;
    let refusal = model.restored(2, Some(between)).unwrap_err().to_string();
    assert!(refusal.contains("is in none of the backups"), "{refusal}");
}

/// Commits and checkpoints go on, and between any two reads of the base its pages are used again.
#[test]
fn it_is_consistent_while_others_write() {
    const FILL: TreeId = TreeId(901);
    let dir = tempfile::tempdir().unwrap();
    let mut small = options();
    small.oplog_bytes_max = 100_000;
    small.slice_bytes = 200_000;
    small.journal.segment_bytes = 1 << 20;
    let engine = Engine::open(&dir.path().join("data"), small).unwrap();
    let fill = |from: u16| {
        for part in 0..8 {
            let mut ws = engine.begin();
            for i in 0..250_u16 {
                let key = from + 8 * i + part;
                ws.put(FILL, key.to_be_bytes(), noise(key.into(), 900));
            }
            engine.commit(ws).unwrap();
        }
        engine.checkpoint().unwrap();
    };
    fill(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _stop = Stop(&stop);
        // Each commit writes its number under all keys; so a state has one number everywhere.
        scope.spawn(|| {
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) && number < 30_000 {
                let mut ws = engine.begin();
                number += 1;
                (0..8_u8).for_each(|key| ws.put(T, [key], number.to_le_bytes()));
                let commit = engine.commit(ws).unwrap();
                if number.is_multiple_of(256) {
                    engine.wait_durable(commit.lsn).unwrap();
                }
            }
        });
        let mut backups: Vec<PathBuf> = Vec::new();
        for round in 0..2 {
            let seen = engine.last_optime();
            let to = dir.path().join(format!("backup{round}"));
            let mut left = 2;
            let busy = || {
                if left > 0 {
                    left -= 1;
                    fill(left * 2);
                }
                never()
            };
            let backup = engine.backup(&to, backups.last().map(PathBuf::as_path), busy).unwrap();
            assert!(
                backup.until >= seen && backup.base_bytes > COPY_BYTES as u64 * 3 / 2,
                "{backup:?}"
            );
            backups.push(to);
            let restored = dir.path().join("restored");
            let wanted = RestoreOptions {
                from: backups.clone(),
                journal: None,
                to: restored.clone(),
                until: None,
                moves: false,
            };
            assert_eq!(restore(&wanted, options()).unwrap().until, backup.until);
            let report = crate::check::check(&restored, None, &|_| unreachable!("there is no collection")).unwrap();
            // The catalog of this test knows no tree.
            let is_fault = |fault: &&String| !fault.contains("belongs to nothing");
            assert_eq!(report.faults.iter().find(is_fault), None);
            let copy = Engine::open(&restored, options()).unwrap();
            let numbers: std::collections::BTreeSet<_> = contents(&copy).into_values().collect();
            assert!(numbers.len() <= 1, "{numbers:?}");
            drop(copy);
            fs::remove_dir_all(&restored).unwrap();
        }
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let mut model = Model::new();
    model.commits(30);
    let data = model.dir.path().join("data");
    let refusal = |to: &Path, parent: Option<&Path>| {
        let result = model.engine.backup(to, parent, never);
        result.map(|_| ()).unwrap_err().to_string()
    };
    assert!(refusal(&data, None).contains("not empty"));
    assert!(refusal(&data.join("x"), None).contains("within the data"));
    assert!(!data.join("x").exists());
    assert!(refusal(&model.dir.path().join("b"), Some(&data)).contains("is no backup"));
    let ended: Result<Backup> = model
        .engine
        .backup(&model.dir.path().join("c"), None, || Err(StorageError::Closed));
    assert!(matches!(ended, Err(StorageError::Closed)));
    let ephemeral = Engine::ephemeral(options());
    let refused = ephemeral.backup(&model.dir.path().join("d"), None, never);
    assert!(refused.is_err_and(|e| e.to_string().contains("lives in memory")));
    model.backup(false);
    model.commits(10);
    model.backup(true);
    let wanted = |from: &[usize]| RestoreOptions {
        from: from.iter().map(|i| model.backups[*i].0.clone()).collect(),
        journal: None,
        to: model.dir.path().join("r"),
        until: None,
        moves: false,
    };
    let refusal = restore(&wanted(&[1]), options()).unwrap_err().to_string();
    assert!(refusal.contains("needs its parents"), "{refusal}");
    let refusal = restore(&wanted(&[0, 0]), options()).unwrap_err().to_string();
    assert!(refusal.contains("do not follow"), "{refusal}");
    let into = RestoreOptions {
        to: data,
        ..wanted(&[0])
    };
    assert!(restore(&into, options()).is_err_and(|e| e.to_string().contains("is not empty")));
}

/// Each byte of each file counts.
#[test]
fn damage_is_noticed() {
    let mut model = Model::new();
    model.commits(60);
    model.engine.checkpoint().unwrap();
    model.commits(10);
    model.backup(false);
    model.commits(60);
    model.engine.checkpoint().unwrap();
    model.backup(true);
    let mut files = Vec::new();
    for (dir, _) in &model.backups {
        for place in [dir.clone(), dir.join(JOURNAL)] {
            for entry in fs::read_dir(place).unwrap().map(std::result::Result::unwrap) {
                files.extend(entry.path().is_file().then(|| entry.path()));
            }
        }
    }
    files.sort();
    let (full, until) = (&model.backups[0].0, model.backups[1].1.until);
    let sound = model.restored(2, None).unwrap();
    assert_eq!(sound.0, until);
    for path in files {
        let bytes = fs::read(&path).unwrap();
        // Files that the increment has of its own are not read from its parent.
        let unread = path.starts_with(full) && !path.ends_with(MANIFEST) && !path.ends_with(BASE);
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            match model.restored(2, None) {
                Err(_) => {}
                Ok(state) => assert!(
                    state == sound && (unread || path.ends_with(BASE)),
                    "byte {at} of {}",
                    path.display()
                ),
            }
        }
        fs::write(&path, &bytes).unwrap();
    }
}
