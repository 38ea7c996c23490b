//! The index builds that run, by what others may see of them: `createIndexes` that waits for one, `currentOp`,
//! `listIndexes`, `serverStatus`.

use crate::lock;
use crate::observe::counters::Counter;
use nestor_exec::Interrupt;
use nestor_exec::write::admission::Admission;
use nestor_exec::write::build::{BuildProgress, Built, Phase, abandon};
use nestor_model::{Document, Error, ErrorCode, Result, doc};
use nestor_storage::{CollectionId, Engine, IndexId, View};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How often who waits for a build looks at its own interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// All builds of a process.
#[derive(Debug, Default)]
pub struct IndexBuilds {
    state: Mutex<State>,
    changed: Condvar,
    /// Indexes in the catalog that nobody builds any more, because a store without room, or an open transaction, did not let
    /// them be dropped.
    left: Mutex<Vec<(CollectionId, Vec<IndexId>)>>,
    /// Counters since the start.
    pub counts: Counts,
}

#[derive(Debug, Default)]
struct State {
    slots: i64,
    builds: BTreeMap<IndexId, Arc<Build>>,
}

/// Counts of builds since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Builds begun.
    pub total: Counter,
    /// Builds that failed because the disk was full.
    pub out_of_space: Counter,
    /// Builds that failed because a document could not be read.
    pub corruption: Counter,
    /// Indexes of builds begun.
    pub indexes: Counter,
    /// Keys sorted.
    pub keys: Counter,
    /// Temporary files of sorted keys.
    pub files: Counter,
    /// Bytes in them.
    pub spilled_bytes: Counter,
}

/// A build under way.
#[derive(Debug)]
pub struct Build {
    /// Its `buildUUID`.
    pub uuid: [u8; 16],
    /// How far it is.
    pub progress: BuildProgress,
    /// How it ended.
    result: Mutex<Option<Result<()>>>,
}

impl Build {
    /// How it ended; `None` while it runs.
    pub fn result(&self) -> Option<Result<()>> {
        lock(&self.result).clone()
    }

    /// `msg` and `progress` of `currentOp`.
    pub fn describe(&self, out: &mut Document) {
        let (done, total) = self.progress.done();
        let what = match self.progress.phase() {
            Phase::Scan => "scanning collection",
            Phase::Load => "inserting keys from external sorter into index",
            Phase::Drain => "draining writes received during build",
            Phase::Commit => "committing",
        };
        let percent = done * 100 / total.max(1);
        out.push("msg", format!("Index Build: {what}: {done}/{total} {percent}%"));
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        out.push("progress", doc! { "done": number(done), "total": number(total) });
    }
}

/// A place among the builds that may run at one time, given back when dropped.
pub struct Slot<'b>(&'b IndexBuilds);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).slots -= 1;
        self.0.changed.notify_all();
    }
}

/// A build that is listed; it is taken off the list when this is dropped.
pub struct Listed<'b> {
    builds: &'b IndexBuilds,
    indexes: Vec<IndexId>,
    /// The part that others see.
    pub build: Arc<Build>,
}

impl Listed<'_> {
    /// Notes how it ended, for those that wait for it.
    pub fn end(self, result: &Result<Built>) {
        let counts = &self.builds.counts;
        match result {
            Ok(built) => {
                counts.keys.add(built.keys);
                counts.spilled_bytes.add(built.spilled.0);
                counts.files.add(built.spilled.1 as u64);
            }
            Err(error) if error.code() == ErrorCode::OutOfDiskSpace => counts.out_of_space.add(1),
            Err(error) if error.code() == ErrorCode::DataCorruptionDetected => counts.corruption.add(1),
            Err(_) => {}
        }
        *lock(&self.build.result) = Some(result.as_ref().map(|_| ()).map_err(Error::clone));
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.builds.state);
        for index in &self.indexes {
            state.builds.remove(index);
        }
        drop(state);
        self.builds.changed.notify_all();
    }
}

impl IndexBuilds {
    /// Waits until fewer than `most` builds run, and takes a place.
    pub fn enter(&self, most: i64, interrupt: &Interrupt) -> Result<Slot<'_>> {
        let mut state = lock(&self.state);
        while state.slots >= most {
            state = self.pause(state);
            interrupt.check()?;
        }
        state.slots += 1;
        Ok(Slot(self))
    }

    /// Lists a build of these indexes.
    pub fn list(&self, indexes: Vec<IndexId>, uuid: [u8; 16]) -> Listed<'_> {
        self.counts.total.add(1);
        self.counts.indexes.add(indexes.len() as u64);
        let build = Arc::new(Build {
            uuid,
            progress: BuildProgress::default(),
            result: Mutex::default(),
        });
        let mut state = lock(&self.state);
        for index in &indexes {
            state.builds.insert(*index, build.clone());
        }
        Listed {
            builds: self,
            indexes,
            build,
        }
    }

    /// The build of an index.
    pub fn get(&self, index: IndexId) -> Option<Arc<Build>> {
        lock(&self.state).builds.get(&index).cloned()
    }

    /// Notes which of `indexes` are in the catalog as being built, although nobody builds them any more.
    pub fn leave(&self, engine: &Engine, collection: CollectionId, indexes: &[IndexId]) {
        let snapshot = engine.snapshot();
        let Some(found) = snapshot.catalog().by_id(collection) else {
            return;
        };
        let is_left = |index: &&IndexId| found.building_by_id(**index).is_some();
        let left: Vec<_> = indexes.iter().filter(is_left).copied().collect();
        if !left.is_empty() {
            lock(&self.left).push((collection, left));
        }
    }

    /// Notes all that are being built: a service that starts finds those that start-up could not drop.
    pub fn leave_all(&self, engine: &Engine) {
        for collection in engine.snapshot().catalog().collections() {
            let indexes: Vec<_> = collection.building.iter().map(|index| index.id).collect();
            self.leave(engine, collection.id, &indexes);
        }
    }

    /// Drops the indexes that builds have left, unless nobody may commit that now.
    ///
    /// Errors: those of a commit; what is left then is for the next call.
    pub fn drop_left(&self, engine: &Engine, admission: &Admission) -> Result<()> {
        let mut left = lock(&self.left);
        while let Some((collection, indexes)) = left.last() {
            if !abandon(engine, admission, *collection, indexes)? {
                break;
            }
            left.pop();
        }
        Ok(())
    }

    /// Waits until `index` is not being built any more, as far as `is_building` knows.
    ///
    /// Errors: that of the build; those of `is_building` and of the interrupt.
    pub fn wait(&self, index: IndexId, interrupt: &Interrupt, is_building: impl Fn() -> Result<bool>) -> Result<()> {
        let mut build = None;
        loop {
            build = self.get(index).or(build);
            if let Some(result) = build.as_ref().and_then(|build| build.result()) {
                return result;
            }
            // It may commit: other builds begin and end meanwhile.
            if !is_building()? {
                return Ok(());
            }
            drop(self.pause(lock(&self.state)));
            interrupt.check()?;
        }
    }

    fn pause<'g>(&self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        match self.changed.wait_timeout(state, LOOK_EVERY) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }
}
