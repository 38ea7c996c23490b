//! Which keys of some trees each checkpoint changes, for who makes anew what is derived of a few of many records.
//!
//! A checkpoint notes the keys of its memtable before it begins to change the base, and between which states of the base it ran when it
//! is done. So the keys by which two states differ are among those of the checkpoints between them, even if one of the states is one that
//! a checkpoint reached halfway.

use super::Engine;
use crate::memtable::Memtable;
use crate::{Bytes, TreeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of the keys that are noted of all trees, at most; with more those that have most begin anew.
const BYTES_MAX: usize = 32 << 20;

/// The keys that were noted, by tree.
#[derive(Default)]
pub(super) struct Changed {
    inner: Mutex<State>,
}

#[derive(Default)]
struct State {
    trees: HashMap<TreeId, Noted>,
    /// What a checkpoint that runs, or failed, merges.
    running: Option<Arc<Memtable>>,
}

struct Noted {
    /// The state of the base from which on all is noted.
    since: u64,
    steps: Vec<Step>,
}

/// A checkpoint.
struct Step {
    /// The state of the base before it, or one that it had reached.
    from: u64,
    /// The state of the base behind it; `None` while it runs.
    to: Option<u64>,
    /// Ascending.
    keys: Vec<Bytes>,
}

impl Changed {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A checkpoint of a memtable begins when the base is in the state `from`. One that failed is tried again with the same keys.
    pub(super) fn begin(&self, memtable: &Arc<Memtable>, from: u64) {
        let mut state = self.lock();
        for (tree, noted) in &mut state.trees {
            noted.begin(*tree, memtable, from);
        }
        state.running = Some(memtable.clone());
    }

    /// It is done; the base is in the state `to`.
    pub(super) fn end(&self, to: u64) {
        let mut state = self.lock();
        state.running = None;
        for noted in state.trees.values_mut() {
            noted.steps.iter_mut().for_each(|step| step.to = step.to.or(Some(to)));
        }
        state.keep_within(BYTES_MAX, to);
    }
}

impl State {
    /// Lets the trees that have most forget what was changed up to a state of the base, until all have so many bytes at most.
    fn keep_within(&mut self, bytes_max: usize, before: u64) {
        let mut bytes: usize = self.trees.values().map(Noted::bytes).sum();
        while bytes > bytes_max {
            let Some(most) = self.trees.values_mut().max_by_key(|noted| noted.bytes()) else {
                return;
            };
            bytes -= most.bytes();
            most.forget(before);
        }
    }
}

impl Noted {
    fn bytes(&self) -> usize {
        let keys = self.steps.iter().flat_map(|step| &step.keys);
        keys.map(|key| size_of::<Bytes>() + key.len()).sum()
    }

    fn begin(&mut self, tree: TreeId, memtable: &Memtable, mut from: u64) {
        // Of one that failed some of its transactions may be there.
        if let Some(failed) = self.steps.pop_if(|step| step.to.is_none()) {
            from = failed.from;
        }
        if let Some(table) = memtable.table(tree) {
            self.steps.push(Step {
                from,
                to: None,
                keys: table.read().newest().map(|(key, _)| key.clone()).collect(),
            });
        }
    }

    fn forget(&mut self, before: u64) {
        self.since = self.since.max(before);
        self.steps.retain(|step| step.to.is_none_or(|to| to > before));
    }
}

impl Engine {
    /// Notes from now on which keys of a tree checkpoints change.
    pub fn note_changed(&self, tree: TreeId) {
        let Some(store) = &self.inner.store else { return };
        let mut state = self.inner.changed.lock();
        let running = state.running.clone();
        state.trees.entry(tree).or_insert_with(|| {
            let mut noted = Noted {
                since: store.base.snapshot().state(),
                steps: Vec::new(),
            };
            if let Some(running) = running {
                noted.begin(tree, &running, noted.since);
            }
            noted
        });
    }

    /// Lets go of what checkpoints up to a state ([`crate::Blocks::state`]) changed in a tree.
    pub fn forget_changed(&self, tree: TreeId, before: u64) {
        if let Some(noted) = self.inner.changed.lock().trees.get_mut(&tree) {
            noted.forget(before);
        }
    }

    /// Notes no more which keys of a tree checkpoints change, and lets go of those that were.
    pub fn stop_noting_changed(&self, tree: TreeId) {
        self.inner.changed.lock().trees.remove(&tree);
    }

    /// The keys of a tree that may differ between two states of the base ([`crate::Blocks::state`]), ascending; `None` where they were not noted
    /// all the time.
    pub fn changed_between(&self, tree: TreeId, from: u64, to: u64) -> Option<Vec<Bytes>> {
        let state = self.inner.changed.lock();
        let noted = state
            .trees
            .get(&tree)
            .filter(|noted| noted.since <= from && from <= to)?;
        let mut keys = Vec::new();
        for step in &noted.steps {
            if step.to.is_none_or(|to| to > from) && step.from < to {
                keys.extend(step.keys.iter().cloned());
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::{Noted, State, Step};
    use crate::record::record_key;
    use crate::{Engine, EngineOptions, TreeId, View};
    use nestor_model::{RecordId, doc};

    const TREE: TreeId = TreeId(9);

    #[test]
    fn trees_with_most_keys_begin_anew() {
        let noted = |keys: u64| Noted {
            since: 1,
            steps: vec![Step {
                from: 1,
                to: Some(2),
                keys: (0..keys).map(|id| record_key(RecordId(id)).into()).collect(),
            }],
        };
        let sizes = [30, 10, 20].map(noted);
        let bytes = sizes[1].bytes();
        let trees = (0..).map(TreeId).zip(sizes).collect();
        let mut state = State { trees, running: None };
        let since = |state: &State| [0, 1, 2].map(|tree| state.trees[&TreeId(tree)].since);
        state.keep_within(bytes * 6, 2);
        assert_eq!(since(&state), [1, 1, 1]);
        state.keep_within(bytes * 5, 2);
        assert_eq!(since(&state), [2, 1, 1]);
        state.keep_within(bytes, 2);
        assert_eq!(since(&state), [2, 1, 2]);
    }

    #[test]
    fn keys_between_states_are_those_of_the_checkpoints_between_them() {
        let dir = tempfile::tempdir().expect("sound");
        let engine = Engine::open(dir.path(), EngineOptions::at_time(1)).expect("sound");
        let put = |ids: &[u64]| {
            let mut ws = engine.begin();
            for id in ids {
                ws.put_document(TREE, record_key(RecordId(*id)), doc! { "_id": *id as i64 }.to_raw());
            }
            engine.commit(ws).expect("sound");
            engine.checkpoint().expect("sound");
            let blocks = engine.snapshot().blocks(TREE, 0).expect("sound");
            blocks.expect("more than one leaf").state()
        };
        let all: Vec<u64> = (0..5000).collect();
        let first = put(&all);
        let between = |from, to| {
            let keys = engine.changed_between(TREE, from, to)?;
            let id = |key: &crate::Bytes| crate::record::record_id(key.as_slice()).map(|id| id.0);
            Some(keys.iter().filter_map(id).collect::<Vec<_>>())
        };
        assert_eq!(between(first, first), None, "nobody asked for it");
        engine.note_changed(TREE);
        let second = put(&[7, 3]);
        let third = put(&[4, 7]);
        assert_eq!(between(first, first), Some(vec![]));
        assert_eq!(between(first, second), Some(vec![3, 7]));
        assert_eq!(between(second, third), Some(vec![4, 7]));
        assert_eq!(between(first, third), Some(vec![3, 4, 7]));
        assert_eq!(between(third, first), None);
        engine.forget_changed(TREE, second);
        assert_eq!(between(first, third), None);
        assert_eq!(between(second, third), Some(vec![4, 7]));
        engine.stop_noting_changed(TREE);
        assert_eq!(between(second, third), None);
    }
}
