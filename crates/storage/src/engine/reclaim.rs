//! Giving memory back in a store that lives in memory.
//!
//! On disk the memtable is merged into the base and taken apart as a whole. Here it stays for ever, so what only snapshots
//! read that nobody holds any more has to go from it: dropped trees, versions that were replaced, tombstones. Commits note
//! what they leave ([`Waste`]), and a thread takes it away once the last older snapshot is gone: a large tree takes a while
//! to take apart, which would be a pause for whoever commits.

use super::Inner;
use crate::sequencer::Waste;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Keys whose waste is worth a look. Dropped trees always are.
const KEYS_MIN: usize = 256;
/// Bytes of waste that are worth a look: a few large documents are enough.
const BYTES_MIN: usize = 1 << 20;
/// Bytes freed after which the allocator is asked to return memory to the system, which costs some milliseconds; and the share of
/// what is still there, so that a large store is not kept busy returning what it needs again.
const RETURN_BYTES_MIN: usize = 32 << 20;
const RETURN_SHARE: usize = 8;
/// How often to look whether the snapshots are gone that need what is left.
const RETRY: Duration = Duration::from_millis(100);

/// Versions that wait to be freed, and the thread that frees them.
#[derive(Default)]
pub(super) struct Reclaimer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// About in the order of commits.
    waste: Vec<Waste>,
    keys: usize,
    bytes: usize,
    /// There is enough of it, or a tree.
    wanted: bool,
    stop: bool,
}

/// The versions that one look freed.
pub(super) struct Reclaimed {
    /// Bytes, about.
    freed: usize,
    /// Something has to stay for now.
    is_left: bool,
}

impl Reclaimer {
    /// Takes notice of what commits left.
    pub(super) fn add(&self, waste: Waste) {
        let mut state = self.state.lock().expect("no holder of the lock panics");
        state.keys += waste.keys.iter().map(|(_, keys)| keys.len()).sum::<usize>();
        state.bytes += waste.bytes;
        state.wanted |= !waste.trees.is_empty() || state.keys >= KEYS_MIN || state.bytes >= BYTES_MIN;
        state.waste.push(waste);
        if state.wanted {
            self.changed.notify_all();
        }
    }

    /// Has the thread look at the memtable.
    pub(super) fn look(&self) {
        let mut state = self.state.lock().expect("no holder of the lock panics");
        if !state.wanted {
            state.wanted = true;
            self.changed.notify_all();
        }
    }

    /// Bytes of what waits for snapshots to go.
    pub(super) fn held_bytes(&self, inner: &Inner) -> u64 {
        let memtable = inner.current().layers.active.clone();
        let state = self.state.lock().expect("no holder of the lock panics");
        let trees = state.waste.iter().flat_map(|waste| &waste.trees);
        let trees = trees.filter_map(|tree| memtable.table(*tree));
        let dropped: isize = trees.map(|table| table.bytes()).sum();
        state.waste.iter().map(|waste| waste.bytes as u64).sum::<u64>() + dropped.unsigned_abs() as u64
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.state.lock().expect("no holder of the lock panics").stop = true;
        self.changed.notify_all();
    }

    /// The thread.
    pub(super) fn run(&self, inner: &Inner) {
        let mut is_left = false;
        let mut freed = 0;
        loop {
            let state = self.state.lock().expect("no holder of the lock panics");
            let idle = |s: &mut State| !s.wanted && !s.stop;
            let stop = if is_left {
                let waited = self.changed.wait_timeout_while(state, RETRY, idle);
                waited.expect("no holder of the lock panics").0.stop
            } else {
                let waited = self.changed.wait_while(state, idle);
                waited.expect("no holder of the lock panics").stop
            };
            if stop {
                return;
            }
            let done = self.reclaim(inner);
            is_left = done.is_left;
            freed += done.freed;
            if freed >= RETURN_BYTES_MIN.max(inner.current().layers.active.bytes() / RETURN_SHARE) {
                freed = 0;
                if let Some(after_reclaim) = inner.options.after_reclaim {
                    after_reclaim();
                }
            }
        }
    }

    /// Takes away what no snapshot reads any more.
    pub(super) fn reclaim(&self, inner: &Inner) -> Reclaimed {
        let mut state = self.state.lock().expect("no holder of the lock panics");
        let waste = std::mem::take(&mut state.waste);
        (state.keys, state.bytes, state.wanted) = (0, 0, false);
        drop(state);
        let oldest = inner.lock_sequencer().oldest_live();
        let memtable = inner.current().layers.active.clone();
        let (free, mut left): (Vec<_>, Vec<_>) = waste.into_iter().partition(|waste| waste.seq <= oldest);
        let mut freed = 0;
        for waste in free {
            freed += waste.bytes;
            for (tree, keys) in &waste.keys {
                memtable.prune(*tree, keys, oldest);
            }
            for tree in waste.trees {
                // Cursors that are in it keep it.
                let table = memtable.take_tree(tree);
                freed += table.map_or(0, |table| table.bytes().unsigned_abs());
            }
        }
        memtable.renew_filter();
        let is_left = !left.is_empty();
        let mut state = self.state.lock().expect("no holder of the lock panics");
        left.append(&mut state.waste);
        state.waste = left;
        Reclaimed { freed, is_left }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Engine, EngineOptions, Snapshot, TreeId, View};
    use nestor_model::{CollectionOptions, Namespace};

    const T: TreeId = TreeId(900);
    const EMPTY: u64 = 20_000;

    fn put(engine: &Engine, tree: TreeId, keys: std::ops::Range<u32>, value: Option<&[u8]>) {
        let mut ws = engine.begin();
        for key in keys {
            match value {
                Some(value) => ws.put(tree, key.to_be_bytes(), value.to_vec()),
                None => ws.delete(tree, key.to_be_bytes()),
            }
        }
        engine.commit(ws).unwrap();
    }

    fn count(snapshot: &Snapshot, tree: TreeId) -> usize {
        let mut cursor = snapshot.cursor(tree);
        let mut found = 0;
        let mut more = cursor.first().unwrap();
        while more {
            found += 1;
            more = cursor.next().unwrap();
        }
        found
    }

    /// Memory of the memtable once nothing is left to reclaim.
    fn bytes(engine: &Engine) -> u64 {
        let inner = &engine.inner;
        inner.reclaimer.reclaim(inner);
        engine.stats().memtable_bytes
    }

    /// A store whose thread leaves everything to [`bytes`].
    fn engine() -> Engine {
        let engine = Engine::ephemeral(EngineOptions::at_time(100));
        engine.inner.reclaimer.stop();
        engine
    }

    #[test]
    fn a_dropped_collection_is_gone_with_the_last_snapshot_that_shows_it() {
        let engine = engine();
        let ns = Namespace::new("d", "c");
        for round in 0..10 {
            let mut ws = engine.begin();
            let c = ws
                .create_collection(&ns, [round; 16], CollectionOptions::default())
                .unwrap();
            engine.commit(ws).unwrap();
            for from in (0..2000).step_by(100) {
                put(&engine, c.records, from..from + 100, Some(&[round; 1000]));
            }
            let held = engine.snapshot();
            let mut ws = engine.begin();
            ws.drop_collection(&ns).unwrap();
            engine.commit(ws).unwrap();
            assert!(bytes(&engine) > 2_000_000, "round {round}: a snapshot still shows it");
            assert_eq!(count(&held, c.records), 2000);
            drop(held);
            let left = bytes(&engine);
            assert!(left < EMPTY, "round {round}: {left} bytes");
        }
    }

    #[test]
    fn what_was_replaced_and_deleted_is_gone_too() {
        let engine = engine();
        put(&engine, T, 0..1000, Some(&[1; 1000]));
        let one = bytes(&engine);
        for value in 2..6 {
            put(&engine, T, 0..1000, Some(&[value; 1000]));
            assert!(bytes(&engine) <= one, "one version of each is left");
        }
        let held = engine.snapshot();
        put(&engine, T, 0..1000, None);
        put(&engine, T, 5000..6000, None);
        assert!(bytes(&engine) >= one);
        assert_eq!(
            held.get(T, &7u32.to_be_bytes()).unwrap().as_deref(),
            Some(&[5; 1000][..])
        );
        assert_eq!(count(&engine.snapshot(), T), 0);
        drop(held);
        let left = bytes(&engine);
        assert!(left < EMPTY, "{left} bytes");
        put(&engine, T, 0..1, Some(b"again"));
        assert_eq!(count(&engine.snapshot(), T), 1);
    }

    /// A writer that read before a deletion must not miss it, although nothing of the key is left.
    #[test]
    fn conflicts_with_what_is_gone_are_still_found() {
        let engine = engine();
        put(&engine, T, 0..1, Some(b"a"));
        let mut late = engine.begin();
        late.put(T, 0u32.to_be_bytes(), b"late");
        put(&engine, T, 0..1, None);
        bytes(&engine);
        assert!(engine.commit(late).is_err());
        bytes(&engine);
        assert_eq!(engine.snapshot().get(T, &0u32.to_be_bytes()).unwrap(), None);
    }

    /// The filter grows with the memtable and forgets keys that are gone: few reads of keys that are not there search for them.
    #[test]
    fn the_filter_stays_good() {
        let engine = engine();
        let passes = || {
            let memtable = engine.inner.current().layers.active.clone();
            let absent = (0..1000u32).map(|key| (key + (1 << 30)).to_be_bytes());
            absent.filter(|key| memtable.may_hold(T, key)).count()
        };
        let held = |mut keys: std::ops::Range<u32>| {
            let snapshot = engine.snapshot();
            keys.all(|key| snapshot.get(T, &key.to_be_bytes()).unwrap().is_some())
        };
        for from in (0..60_000).step_by(5_000) {
            put(&engine, T, from..from + 5_000, Some(b"v"));
            bytes(&engine);
            assert!(passes() < 150, "{} of 1000 pass with {from} keys", passes());
        }
        assert!(held(0..60_000));
        put(&engine, T, 100..60_000, None);
        bytes(&engine);
        assert!(passes() < 20, "{} of 1000 pass for keys that are gone", passes());
        assert!(held(0..100));
    }

    /// Keys that come while it is made anew are in it.
    #[test]
    fn the_filter_misses_no_key_that_comes_meanwhile() {
        let engine = engine();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for from in (0..100_000u32).step_by(500) {
                    put(&engine, T, from..from + 500, Some(b"v"));
                    let last = (from + 499).to_be_bytes();
                    assert!(engine.snapshot().get(T, &last).unwrap().is_some());
                }
            });
            while !writer.is_finished() {
                bytes(&engine);
            }
        });
        let snapshot = engine.snapshot();
        assert!((0..100_000u32).all(|key| snapshot.get(T, &key.to_be_bytes()).unwrap().is_some()));
    }

    #[test]
    fn a_thread_does_it() {
        let engine = Engine::ephemeral(EngineOptions::at_time(100));
        put(&engine, T, 0..1000, Some(&[1; 1000]));
        let full = engine.stats().memtable_bytes;
        put(&engine, T, 0..1000, None);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while engine.stats().memtable_bytes > full / 10 {
            assert!(std::time::Instant::now() < deadline, "nothing was given back");
            std::thread::yield_now();
        }
    }
}
