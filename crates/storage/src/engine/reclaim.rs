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
/// How often to look whether the snapshots are gone that need what is left.
const RETRY: Duration = Duration::from_millis(100);

/// What waits to be taken away, and the thread that does it.
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

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.state.lock().expect("no holder of the lock panics").stop = true;
        self.changed.notify_all();
    }

    /// The thread.
    pub(super) fn run(&self, inner: &Inner) {
        let mut is_left = false;
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
            is_left = self.reclaim(inner);
            if let Some(reclaimed) = inner.options.after_reclaim {
                reclaimed();
            }
        }
    }

    /// Takes away what no snapshot reads any more. Returns whether something is left.
    pub(super) fn reclaim(&self, inner: &Inner) -> bool {
        let mut state = self.state.lock().expect("no holder of the lock panics");
        let waste = std::mem::take(&mut state.waste);
        (state.keys, state.bytes, state.wanted) = (0, 0, false);
        drop(state);
        let oldest = inner.lock_sequencer().oldest_live();
        let memtable = inner.current().layers.active.clone();
        let (free, mut left): (Vec<_>, Vec<_>) = waste.into_iter().partition(|waste| waste.seq <= oldest);
        for waste in free {
            for (tree, keys) in &waste.keys {
                memtable.prune(*tree, keys, oldest);
            }
            for tree in waste.trees {
                // Cursors that are in it keep it.
                drop(memtable.take_tree(tree));
            }
        }
        let is_left = !left.is_empty();
        let mut state = self.state.lock().expect("no holder of the lock panics");
        left.append(&mut state.waste);
        state.waste = left;
        is_left
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
