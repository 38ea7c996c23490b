//! One tree's part of a memtable.

use super::Live;
use crate::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::sync::{RwLock, RwLockReadGuard};

/// Entries inserted before readers get a chance.
const INSERT_RUN: usize = 64;
/// Entries looked at before the writer gets a chance, however few of them the snapshot sees.
const SCAN_RUN: usize = 1024;
/// Entries whose values are asked for ahead of a scan.
const AHEAD: usize = 8;
/// Keys that are looked up before their values are taken.
const GET_RUN: usize = 16;
/// Versions of a key from which on it is worth knowing every open snapshot, not only the oldest.
const VERSIONS_MANY: usize = 8;
/// The memory that an entry takes beside key and value: its place in a tree node that is two thirds full.
const ENTRY_OVERHEAD: usize = 32;

/// A key and its value at a snapshot; `None` is a tombstone.
pub(crate) type Entry = (Bytes, Option<Bytes>);

/// An ordered map from keys to versions.
pub(crate) struct Table {
    map: RwLock<BTreeMap<Bytes, Versions>>,
    /// Sequence number of the first commit in here: older snapshots need not look.
    first: AtomicU64,
    /// Memory taken by the entries, in bytes, about.
    bytes: AtomicIsize,
}

struct Version {
    seq: u64,
    value: Option<Bytes>,
}

/// The versions of a key. `older` descends from the one before `newest`.
struct Versions {
    newest: Version,
    older: Vec<Version>,
}

impl Versions {
    /// Asks for the memory of the newest value.
    #[inline]
    fn ask(&self) {
        if let Some(value) = &self.newest.value {
            value.ask();
        }
    }

    fn at(&self, seq: u64) -> Option<&Option<Bytes>> {
        if self.newest.seq <= seq {
            return Some(&self.newest.value);
        }
        self.older.iter().find(|v| v.seq <= seq).map(|v| &v.value)
    }

    /// Puts a version on top and drops those that no open snapshot reads. Returns the change in bytes.
    fn push(&mut self, seq: u64, value: Option<Bytes>, live: &Live<'_>) -> isize {
        debug_assert!(self.newest.seq <= seq, "the sequencer inserts in order");
        let mut change = cost(&value);
        let old = std::mem::replace(&mut self.newest, Version { seq, value });
        if old.seq == seq {
            return change - cost(&old.value);
        }
        self.older.insert(0, old);
        change -= self.prune(live.oldest);
        if self.older.len() > VERSIONS_MANY {
            let snapshots = (live.all)();
            let mut above = seq;
            self.older.retain(|version| {
                // Needed if some snapshot lies from this version up to the next newer one.
                let from = snapshots.partition_point(|s| *s < version.seq);
                let needed = snapshots.get(from).is_some_and(|s| *s < above);
                above = version.seq;
                if !needed {
                    change -= cost(&version.value);
                }
                needed
            });
        }
        change
    }
}

impl Versions {
    /// Drops the versions that are older than what a snapshot at `oldest` reads. Returns their bytes.
    fn prune(&mut self, oldest: u64) -> isize {
        let needed = match self.newest.seq <= oldest {
            true => 0,
            // The version that the oldest snapshot reads is needed; older ones are not.
            false => match self.older.iter().position(|v| v.seq <= oldest) {
                Some(needed) => needed + 1,
                None => return 0,
            },
        };
        let freed = self.older.drain(needed..).map(|v| cost(&v.value)).sum();
        if self.older.is_empty() {
            self.older = Vec::new();
        }
        freed
    }
}

/// How a run of at most [`SCAN_RUN`] entries ended.
enum Run {
    /// At the caller's limit.
    Full,
    /// At the run's length; the scan goes on behind this key.
    Cut(Bytes),
    /// At the end of the entries.
    End,
}

/// Appends what of `entries` is visible at `at`, until `out` has `limit` entries.
///
/// Values lie anywhere in memory, and a handle for one changes its number of references, for which the processor waits: the values of
/// some entries to come are asked for before it is their turn.
fn collect_run<'t>(
    mut entries: impl Iterator<Item = (&'t Bytes, &'t Versions)>,
    until: Option<&Bytes>,
    at: u64,
    limit: usize,
    out: &mut Vec<Entry>,
) -> Run {
    let mut coming = [None; AHEAD];
    let (mut asked, mut looked) = (0, 0);
    let is_behind = |key: &Bytes| until.is_some_and(|until| key >= until);
    let mut is_enough = false;
    loop {
        let most = looked + limit.saturating_sub(out.len()).clamp(1, AHEAD);
        // Where the one behind is not visible, others are looked at one by one.
        while asked < most.min(SCAN_RUN)
            && (!is_enough || asked == looked)
            && let Some(entry) = entries.next()
        {
            entry.1.ask();
            coming[asked % AHEAD] = Some(entry);
            asked += 1;
            is_enough |= is_behind(entry.0);
        }
        let Some((key, versions)) = coming[looked % AHEAD].filter(|_| looked < asked) else {
            return Run::End;
        };
        looked += 1;
        if let Some(value) = versions.at(at) {
            out.push((key.clone(), value.clone()));
            if out.len() >= limit || is_enough && is_behind(key) {
                return Run::Full;
            }
        }
        if looked == SCAN_RUN {
            return Run::Cut(key.clone());
        }
    }
}

/// The versions of `key`. Short keys are compared as [`Bytes`], which is cheaper than as slices.
fn find<'m>(map: &'m BTreeMap<Bytes, Versions>, key: &[u8]) -> Option<&'m Versions> {
    match Bytes::short(key) {
        Some(key) => map.get(&key),
        None => map.get(key),
    }
}

fn cost(value: &Option<Bytes>) -> isize {
    (size_of::<Version>() + value.as_ref().map_or(0, |v| v.footprint() - size_of::<Bytes>())) as isize
}

impl Table {
    pub(super) fn new(first: u64) -> Self {
        Self {
            map: RwLock::default(),
            first: AtomicU64::new(first),
            bytes: AtomicIsize::new(0),
        }
    }

    /// Whether a snapshot at `seq` can see anything in here.
    pub(crate) fn concerns(&self, seq: u64) -> bool {
        self.first.load(Ordering::Relaxed) <= seq
    }

    pub(super) fn get(&self, key: &[u8], at: u64) -> Option<Option<Bytes>> {
        let map = self.map.read().expect("no holder of the lock panics");
        find(&map, key)?.at(at).cloned()
    }

    /// As [`Table::get`] for each of some keys that `found` knows nothing of yet and `is_wanted` picks. What they have is asked for before the
    /// first of it is taken: each lies elsewhere in memory.
    pub(super) fn get_many(
        &self,
        keys: &[&[u8]],
        is_wanted: impl Fn(usize) -> bool,
        at: u64,
        found: &mut [Option<Option<Bytes>>],
    ) {
        let map = self.map.read().expect("no holder of the lock panics");
        let mut run = [None; GET_RUN];
        for (from, keys) in (0..).step_by(GET_RUN).zip(keys.chunks(GET_RUN)) {
            for (i, key) in keys.iter().enumerate() {
                let wanted = found[from + i].is_none() && is_wanted(from + i);
                run[i] = wanted.then(|| find(&map, key)).flatten();
                if let Some(versions) = run[i] {
                    versions.ask();
                }
            }
            for (i, versions) in run[..keys.len()].iter().enumerate() {
                if let Some(versions) = versions {
                    found[from + i] = versions.at(at).cloned();
                }
            }
        }
    }

    pub(super) fn newest_of(&self, key: &[u8]) -> u64 {
        let map = self.map.read().expect("no holder of the lock panics");
        find(&map, key).map_or(0, |versions| versions.newest.seq)
    }

    /// Memory taken by the entries, in bytes, about.
    pub(crate) fn bytes(&self) -> isize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Drops what no snapshot at `oldest` or later reads of these keys: versions below, and a tombstone with nothing left to
    /// hide. There must be no base below. Returns the change in bytes.
    pub(super) fn prune(&self, keys: &[Bytes], oldest: u64) -> isize {
        let mut change = 0;
        for run in keys.chunks(INSERT_RUN) {
            let mut map = self.map.write().expect("no holder of the lock panics");
            for key in run {
                let Some(versions) = map.get_mut(key) else { continue };
                change -= versions.prune(oldest);
                if versions.newest.seq <= oldest && versions.newest.value.is_none() {
                    change -= (key.footprint() + ENTRY_OVERHEAD) as isize + cost(&None);
                    map.remove(key);
                }
            }
        }
        self.bytes.fetch_add(change, Ordering::Relaxed);
        change
    }

    /// Returns the change in bytes. `note` is told each key before it can be seen, and `waste` the keys of which something
    /// stays that only older snapshots read, and its bytes.
    pub(super) fn insert<'a>(
        &self,
        seq: u64,
        mut changes: impl ExactSizeIterator<Item = (&'a Bytes, &'a Option<Bytes>)>,
        live: &Live<'_>,
        note: impl Fn(&[u8]),
        mut waste: impl FnMut(&Bytes, usize),
    ) -> isize {
        let mut added = 0;
        while changes.len() > 0 {
            let mut map = self.map.write().expect("no holder of the lock panics");
            for (key, value) in changes.by_ref().take(INSERT_RUN) {
                note(key);
                match map.entry(key.clone()) {
                    std::collections::btree_map::Entry::Occupied(mut entry) => {
                        waste(key, cost(&entry.get().newest.value) as usize);
                        added += entry.get_mut().push(seq, value.clone(), live);
                    }
                    std::collections::btree_map::Entry::Vacant(entry) => {
                        added += (key.footprint() + ENTRY_OVERHEAD) as isize + cost(value);
                        if value.is_none() {
                            waste(key, 0);
                        }
                        entry.insert(Versions {
                            newest: Version {
                                seq,
                                value: value.clone(),
                            },
                            older: Vec::new(),
                        });
                    }
                }
            }
        }
        self.bytes.fetch_add(added, Ordering::Relaxed);
        added
    }

    /// Appends to `out` up to `limit` entries visible at `at`, from `from` on, ascending, and none behind the first that is not below `until`.
    /// Returns true when there are no more.
    pub(crate) fn ascending(
        &self,
        from: Bound<&Bytes>,
        until: Option<&Bytes>,
        at: u64,
        limit: usize,
        out: &mut Vec<Entry>,
    ) -> bool {
        let mut resume: Option<Bytes> = None;
        loop {
            let from = resume.as_ref().map_or(from, Bound::Excluded);
            let map = self.map.read().expect("no holder of the lock panics");
            match collect_run(map.range::<Bytes, _>((from, Bound::Unbounded)), until, at, limit, out) {
                Run::Full => return false,
                Run::Cut(key) => resume = Some(key),
                Run::End => return true,
            }
        }
    }

    /// As [`Table::ascending`], from `from` down.
    pub(crate) fn descending(&self, from: Bound<&Bytes>, at: u64, limit: usize, out: &mut Vec<Entry>) -> bool {
        let mut resume: Option<Bytes> = None;
        loop {
            let from = resume.as_ref().map_or(from, Bound::Excluded);
            let map = self.map.read().expect("no holder of the lock panics");
            match collect_run(
                map.range::<Bytes, _>((Bound::Unbounded, from)).rev(),
                None,
                at,
                limit,
                out,
            ) {
                Run::Full => return false,
                Run::Cut(key) => resume = Some(key),
                Run::End => return true,
            }
        }
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.map.read().expect("no holder of the lock panics").len()
    }

    /// Calls `each` with every key that is there when it comes by, visible or not.
    pub(super) fn for_each_key(&self, mut each: impl FnMut(&[u8])) {
        let mut last: Option<Bytes> = None;
        loop {
            let from = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let map = self.map.read().expect("no holder of the lock panics");
            let mut run = map.range::<Bytes, _>((from, Bound::Unbounded)).take(SCAN_RUN);
            let mut at = None;
            for (key, _) in run.by_ref() {
                each(key);
                at = Some(key);
            }
            let Some(at) = at.cloned() else { return };
            last = Some(at);
        }
    }

    /// Keys from `from` to `to`: all of them, or up to [`SCAN_RUN`] of a part.
    pub(crate) fn estimate(&self, from: &[u8], to: Option<&[u8]>) -> usize {
        let map = self.map.read().expect("no holder of the lock panics");
        match to {
            None if from.is_empty() => map.len(),
            // A range that ends before it starts would panic.
            Some(to) if to <= from => 0,
            _ => {
                let to = to.map_or(Bound::Unbounded, Bound::Excluded);
                map.range::<[u8], _>((Bound::Included(from), to)).take(SCAN_RUN).count()
            }
        }
    }

    /// What [`Table::estimate`] says at most, without a look at the keys.
    pub(crate) fn estimate_max(&self, from: &[u8], to: Option<&[u8]>) -> usize {
        match to {
            None if from.is_empty() => self.len(),
            _ => self.len().min(SCAN_RUN),
        }
    }

    /// The table, locked against writes: for merging a frozen one.
    pub(crate) fn read(&self) -> ReadTable<'_> {
        ReadTable(self.map.read().expect("no holder of the lock panics"))
    }
}

/// A table that is not being written.
pub(crate) struct ReadTable<'a>(RwLockReadGuard<'a, BTreeMap<Bytes, Versions>>);

/// The entries of a table at their newest version, ascending.
pub(crate) type NewestEntries<'a> = Box<dyn Iterator<Item = (&'a Bytes, &'a Option<Bytes>)> + 'a>;

impl ReadTable<'_> {
    /// Every key with its newest value.
    pub(crate) fn newest(&self) -> NewestEntries<'_> {
        Box::new(self.0.iter().map(|(key, versions)| (key, &versions.newest.value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(table: &Table, seq: u64, entries: &[(&str, Option<&str>)], open: &[u64]) -> isize {
        let entries: Vec<(Bytes, Option<Bytes>)> = entries
            .iter()
            .map(|(k, v)| (k.as_bytes().into(), v.map(|v| v.as_bytes().into())))
            .collect();
        let all = || open.to_vec();
        let live = Live {
            oldest: open.first().copied().unwrap_or(seq - 1),
            all: &all,
        };
        table.insert(seq, entries.iter().map(|(k, v)| (k, v)), &live, |_| {}, |_, _| {})
    }

    fn text(table: &Table, at: u64) -> String {
        let mut out = Vec::new();
        assert!(table.ascending(Bound::Unbounded, None, at, 100, &mut out));
        let mut back = Vec::new();
        assert!(table.descending(Bound::Unbounded, at, 100, &mut back));
        back.reverse();
        assert_eq!(out, back);
        let show = |b: &Bytes| String::from_utf8_lossy(b).into_owned();
        out.iter()
            .map(|(k, v)| format!("{}={} ", show(k), v.as_ref().map_or("-".into(), show)))
            .collect()
    }

    #[test]
    fn snapshots_see_their_version() {
        let table = Table::new(1);
        insert(&table, 1, &[("a", Some("1")), ("c", Some("1"))], &[0, 1, 2, 3]);
        insert(&table, 2, &[("a", Some("2")), ("b", Some("2"))], &[0, 1, 2, 3]);
        insert(&table, 3, &[("a", None)], &[0, 1, 2, 3]);
        assert_eq!(text(&table, 0), "");
        assert_eq!(text(&table, 1), "a=1 c=1 ");
        assert_eq!(text(&table, 2), "a=2 b=2 c=1 ");
        assert_eq!(text(&table, 9), "a=- b=2 c=1 ");
        assert_eq!(table.newest_of(b"a"), 3);
    }

    #[test]
    fn versions_nobody_reads_go_and_bytes_balance() {
        let table = Table::new(1);
        let long = "x".repeat(100);
        let mut bytes = 0;
        for seq in 1..=100 {
            // Snapshots 20 and 50 stay open; the one before each commit is always open.
            let mut open: Vec<u64> = [20, 50].into_iter().filter(|s| *s < seq).collect();
            open.push(seq - 1);
            open.dedup();
            bytes += insert(&table, seq, &[("k", Some(&long))], &open);
        }
        let map = table.map.read().unwrap();
        let versions = map.values().next().unwrap();
        assert!(versions.older.len() <= VERSIONS_MANY + 1, "{}", versions.older.len());
        assert!(versions.at(20).is_some());
        let kept: isize = versions.older.iter().map(|v| cost(&v.value)).sum();
        let key = (Bytes::from(b"k").footprint() + ENTRY_OVERHEAD) as isize;
        assert_eq!(bytes, kept + cost(&versions.newest.value) + key);
        for seq in [20, 50] {
            let seen = versions.older.iter().find(|v| v.seq <= seq).unwrap();
            assert_eq!(seen.seq, seq);
        }
    }
}
