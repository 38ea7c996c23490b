//! The keys that recent commits wrote, kept while serializable transactions are open.
//!
//! Such a transaction is validated at its commit: nobody may have written what it read since its snapshot. That takes the keys
//! of the commits in between, whatever they are, so the sequencer notes them here from the moment on that the first
//! serializable transaction begins, until the last one has ended. Most of the check is done before the
//! transaction has the sequencer; only the last few commits are looked at while everybody waits.

use crate::cursor::Overlay;
use crate::faults::{Fault, strikes};
use crate::read_set::{ReadSet, SharedReads};
use crate::sequencer::Accepted;
use crate::{Bytes, Result, StorageError, TreeId, WriteSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Most keys noted. A transaction that is older than the oldest of them is refused.
const KEYS_MAX: usize = 1 << 20;

type Keys = Arc<[(TreeId, Bytes)]>;

/// What commits wrote, of all serializable transactions of an engine.
#[derive(Default)]
pub(crate) struct RecentWrites {
    /// How many such transactions are open: commits look no further while there are none.
    open: AtomicUsize,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    /// Sequence numbers and keys of commits, ascending.
    commits: VecDeque<(u64, Keys)>,
    keys: usize,
    /// All commits after this one are there.
    from: u64,
    /// How many transactions are open by the sequence number of their snapshot.
    snapshots: BTreeMap<u64, usize>,
}

/// What one write set has read, and its place among the open serializable transactions.
pub(crate) struct Reads {
    pub(crate) set: Arc<SharedReads>,
    recent: Arc<RecentWrites>,
    snapshot: u64,
    /// Commits up to this one are checked.
    checked: u64,
}

impl RecentWrites {
    /// Begins a transaction on the state `seq`: the caller holds the sequencer's lock. What was written before the first of them began is not
    /// known, so it is the newest state, or one whose transaction conflicts unless others have kept it.
    pub(crate) fn open(self: &Arc<Self>, seq: u64) -> Reads {
        let mut log = self.lock();
        if log.snapshots.is_empty() {
            log.from = seq;
        }
        *log.snapshots.entry(seq).or_default() += 1;
        self.open.fetch_add(1, Ordering::Release);
        Reads {
            set: Arc::default(),
            recent: self.clone(),
            snapshot: seq,
            checked: seq,
        }
    }

    /// Notes what commits wrote. The caller holds the sequencer's lock.
    pub(crate) fn note(&self, accepted: &[Accepted]) {
        if self.open.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut log = self.lock();
        for one in accepted {
            let trees = validated(&one.prepared.ws);
            let keys: Keys = trees
                .flat_map(|(tree, keys)| keys.keys().map(move |key| (tree, key.clone())))
                .collect();
            log.push(one.seq, keys);
        }
    }

    /// What was written after the commit `seen`; `None` when that is not known any more.
    fn since(&self, seen: u64) -> Option<Vec<(u64, Keys)>> {
        let log = self.lock();
        if seen < log.from {
            return None;
        }
        let first = log.commits.partition_point(|(seq, _)| *seq <= seen);
        Some(log.commits.range(first..).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no holder of the lock panics")
    }
}

impl Log {
    fn push(&mut self, seq: u64, keys: Keys) {
        self.keys += keys.len();
        self.commits.push_back((seq, keys));
        while self.keys > KEYS_MAX {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((seq, keys)) = self.commits.pop_front() {
            self.keys -= keys.len();
            self.from = self.from.max(seq);
        }
    }
}

impl Reads {
    /// Checks what was read against all commits since the last time.
    ///
    /// Errors: [`StorageError::WriteConflict`].
    pub(crate) fn check(&mut self) -> Result<()> {
        let commits = self.recent.since(self.checked).ok_or(StorageError::WriteConflict)?;
        let set = self.set.lock().expect("no holder of the lock panics");
        for (seq, keys) in commits {
            if conflicts(&set, keys.iter().map(|(tree, key)| (*tree, key))) {
                return Err(StorageError::WriteConflict);
            }
            self.checked = seq;
        }
        Ok(())
    }

    /// As [`Reads::check`], with the commits `accepted` that come before this one in its group, and no note of what was
    /// checked. The caller holds the sequencer's lock.
    pub(crate) fn check_last(&self, accepted: &[Accepted]) -> Result<()> {
        let commits = self.recent.since(self.checked).ok_or(StorageError::WriteConflict)?;
        let set = self.set.lock().expect("no holder of the lock panics");
        let committed = commits
            .iter()
            .flat_map(|(_, keys)| keys.iter().map(|(tree, key)| (*tree, key)));
        let group = accepted.iter().flat_map(|one| {
            let trees = validated(&one.prepared.ws);
            trees.flat_map(|(tree, keys)| keys.keys().map(move |key| (tree, key)))
        });
        match conflicts(&set, committed.chain(group)) {
            true => Err(StorageError::WriteConflict),
            false => Ok(()),
        }
    }
}

/// What a commit wrote that others may have read. That an array was found says nothing of what there is.
fn validated(ws: &WriteSet) -> impl Iterator<Item = (TreeId, &Overlay)> {
    let catalog = ws.trees.contains_key(&TreeId::CATALOG) && ws.changes_catalog();
    ws.kept_trees()
        .filter(move |(tree, _)| catalog || *tree != TreeId::CATALOG)
}

/// Whether one of `keys` was read. What exists is read with everything else, and the catalog as one.
fn conflicts<'a>(set: &ReadSet, mut keys: impl Iterator<Item = (TreeId, &'a Bytes)>) -> bool {
    !set.is_empty()
        && keys.any(|(tree, key)| tree == TreeId::CATALOG || set.contains(tree, key))
        && !strikes(Fault::MissedRead)
}

impl Drop for Reads {
    fn drop(&mut self) {
        let mut log = self.recent.lock();
        if let Some(count) = log.snapshots.get_mut(&self.snapshot) {
            *count -= 1;
            if *count == 0 {
                log.snapshots.remove(&self.snapshot);
            }
        }
        self.recent.open.fetch_sub(1, Ordering::Release);
        // Nobody needs what lies before the oldest snapshot.
        let oldest = log.snapshots.keys().next().copied().unwrap_or(u64::MAX);
        while log.commits.front().is_some_and(|(seq, _)| *seq <= oldest) {
            log.forget_oldest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, EngineOptions, View, WriteSet};
    use nestor_model::{CollectionOptions, ErrorCode, Namespace};

    const T: TreeId = TreeId(9);

    fn engine() -> Engine {
        let engine = Engine::ephemeral(EngineOptions::at_time(1));
        for key in ["b", "d", "f"] {
            put(&engine, key, "0");
        }
        engine
    }

    fn put(engine: &Engine, key: &str, value: &str) {
        let mut ws = engine.begin();
        ws.put(T, key.as_bytes(), value.as_bytes());
        engine.commit(ws).unwrap();
    }

    /// A serializable transaction that did `read`, and writes something nobody else does.
    fn reader(engine: &Engine, read: impl Fn(&WriteSet)) -> WriteSet {
        let mut ws = engine.begin_serializable();
        read(&ws);
        ws.put(TreeId(10), &b"own"[..], &b"1"[..]);
        ws
    }

    fn get(key: &'static str) -> impl Fn(&WriteSet) {
        move |ws| drop(ws.get(T, key.as_bytes()).unwrap())
    }

    /// Reads the entries from `from` up to the first one behind `to`, as scans do.
    fn scan(from: &'static str, to: &'static str) -> impl Fn(&WriteSet) {
        move |ws| {
            let mut cursor = ws.cursor(T);
            let mut found = cursor.seek(from.as_bytes()).unwrap();
            while found && cursor.key() <= to.as_bytes() {
                found = cursor.next().unwrap();
            }
        }
    }

    fn scan_back(from: &'static str, to: &'static str) -> impl Fn(&WriteSet) {
        move |ws| {
            let mut cursor = ws.cursor(T);
            let mut found = cursor.seek_back(from.as_bytes()).unwrap();
            while found && cursor.key() >= to.as_bytes() {
                found = cursor.prev().unwrap();
            }
        }
    }

    #[test]
    fn what_was_read_must_not_have_been_written() {
        type Read = Box<dyn Fn(&WriteSet)>;
        let cases: [(&str, Read, &[&str], &[&str]); 8] = [
            ("a key", Box::new(get("b")), &["b"], &["a", "c", "d"]),
            ("an absent key", Box::new(get("c")), &["c"], &["b", "d"]),
            (
                "a range",
                Box::new(scan("b", "d")),
                &["b", "c", "d", "e", "f"],
                &["a", "g"],
            ),
            ("an empty range", Box::new(scan("g", "h")), &["g", "h", "z"], &["f"]),
            (
                "a range backwards",
                Box::new(scan_back("d", "c")),
                &["b", "c", "d"],
                &["a", "e", "f"],
            ),
            (
                "the beginning",
                Box::new(scan_back("c", "a")),
                &["", "a", "b", "c"],
                &["d"],
            ),
            ("nothing", Box::new(|_| {}), &[], &["a", "b", "c"]),
            (
                "a kept state",
                Box::new(|ws| scan("b", "d")(&ws.state())),
                &["b", "c", "d", "e", "f"],
                &["a", "g"],
            ),
        ];
        for (what, read, conflicting, others) in cases {
            for (written, expected) in conflicting
                .iter()
                .map(|key| (key, false))
                .chain(others.iter().map(|key| (key, true)))
            {
                let engine = engine();
                let ws = reader(&engine, &read);
                put(&engine, written, "1");
                let result = engine.commit(ws);
                assert_eq!(
                    result.is_ok(),
                    expected,
                    "{what} was read and {written:?} written: {result:?}"
                );
            }
        }
    }

    #[test]
    fn a_kept_state_does_not_change() {
        let engine = engine();
        let mut ws = engine.begin();
        ws.put(T, &b"new"[..], &b"1"[..]);
        let state = ws.state();
        ws.put(T, &b"newer"[..], &b"1"[..]);
        ws.delete(T, &b"new"[..]);
        assert!(state.get(T, b"new").unwrap().is_some() && state.get(T, b"newer").unwrap().is_none());
        engine.commit(ws).unwrap();
        assert!(state.get(T, b"new").unwrap().is_some() && state.get(T, b"newer").unwrap().is_none());
    }

    #[test]
    fn removing_and_the_catalog_count_too() {
        let engine = engine();
        let ws = reader(&engine, get("b"));
        let mut other = engine.begin();
        other.delete(T, &b"b"[..]);
        engine.commit(other).unwrap();
        assert_eq!(engine.commit(ws).unwrap_err().code(), ErrorCode::WriteConflict);
        let ws = reader(&engine, get("b"));
        let mut other = engine.begin();
        other
            .create_collection(&Namespace::new("db", "c"), [1; 16], CollectionOptions::default())
            .unwrap();
        engine.commit(other).unwrap();
        assert_eq!(engine.commit(ws).unwrap_err().code(), ErrorCode::WriteConflict);
    }

    #[test]
    fn of_two_that_read_what_the_other_writes_one_commits() {
        let engine = engine();
        let transaction = |read: &'static str, write: &'static str| {
            let mut ws = engine.begin_serializable();
            get(read)(&ws);
            ws.put(T, write.as_bytes(), &b"1"[..]);
            engine.claim(&mut ws).unwrap();
            ws
        };
        let (one, two) = (transaction("b", "d"), transaction("d", "b"));
        engine.commit(one).unwrap();
        assert_eq!(engine.commit(two).unwrap_err().code(), ErrorCode::WriteConflict);
    }

    #[test]
    fn one_that_writes_nothing_is_never_refused() {
        let engine = engine();
        let ws = engine.begin_serializable();
        get("b")(&ws);
        put(&engine, "b", "1");
        get("b")(&ws);
        engine.commit(ws).unwrap();
    }

    /// Commits of other threads come before it in its group.
    #[test]
    fn those_of_the_same_group_count() {
        let engine = engine();
        let refused: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let increment = || {
                            let mut ws = engine.begin_serializable();
                            let value = ws.get(T, b"b").unwrap().unwrap();
                            let number: u64 = std::str::from_utf8(&value).unwrap().parse().unwrap();
                            ws.put(T, &b"b"[..], (number + 1).to_string().into_bytes());
                            engine.commit(ws).is_err()
                        };
                        (0..50).filter(|_| increment()).count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let value = engine.snapshot().get(T, b"b").unwrap().unwrap();
        assert_eq!(std::str::from_utf8(&value).unwrap(), (400 - refused).to_string());
    }

    #[test]
    fn nothing_is_noted_while_nobody_needs_it_and_only_so_much() {
        let recent = Arc::<RecentWrites>::default();
        let note = |seq: u64, keys: usize| {
            let keys: Keys = (0..keys).map(|i| (T, Bytes::from((i as u64).to_be_bytes()))).collect();
            recent.lock().push(seq, keys);
        };
        let size = || {
            let log = recent.lock();
            (log.keys, log.commits.len())
        };
        let old = recent.open(4);
        note(5, 10);
        let young = recent.open(5);
        note(6, 20);
        assert_eq!(size(), (30, 2));
        drop(old);
        assert_eq!(size(), (20, 1));
        assert!(recent.since(4).is_none(), "what nobody needs is forgotten");
        let mut young = young;
        young.check().unwrap();
        assert_eq!(young.checked, 6);
        let late = recent.open(6);
        note(7, KEYS_MAX);
        note(8, 1);
        assert!(
            young.check().is_err() && late.check_last(&[]).is_err(),
            "too much was written"
        );
        assert_eq!(size(), (1, 1));
        drop((young, late));
        assert_eq!(size(), (0, 0));
        assert_eq!(recent.open.load(Ordering::Acquire), 0);
    }
}
