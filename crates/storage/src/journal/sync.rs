//! Durability: one sync for everyone who waits.
//!
//! A caller that has to wait while no sync runs becomes the leader and syncs everything appended so far; callers that come
//! during the sync wait, and one of them leads the next one. When no caller waits, a thread syncs at most every [`LAG`], and at
//! once for those who left a callback. What was synced is noted in the [mark](super::mark) before anybody is told.

use super::Checkpoint;
use super::mark::{Mark, MarkFile};
use super::segment::Segment;
use crate::{Result, StorageError};
use nestor_model::Timestamp;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long appended bytes may stay unsynced when no caller waits for them.
pub(crate) const LAG: Duration = Duration::from_millis(100);

/// After this long without an append the mark is synced too.
const IDLE: Duration = Duration::from_secs(1);

/// Called once with the outcome.
pub(crate) type Callback = Box<dyn FnOnce(Result<()>) + Send>;

pub(crate) struct Syncer {
    dir: PathBuf,
    /// The directory, kept open: having no file descriptor left must not look like a failed sync.
    dir_file: File,
    /// The last sequence number that was appended.
    appended: AtomicU64,
    optimes: Mutex<Optimes>,
    /// The last sequence number known to be on disk.
    durable: AtomicU64,
    /// Set while the background thread sleeps until something is appended.
    idle: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
    /// Segments with bytes that may not be on disk, oldest first; the last one is being appended to.
    unsynced: Mutex<Vec<Arc<Segment>>>,
    /// Set when a segment was created or removed since the directory was last synced.
    dir_changed: AtomicBool,
    mark: MarkFile,
}

/// The last commits appended and durable.
struct Optimes {
    appended: Appended,
    durable: Timestamp,
}

#[derive(Clone, Copy)]
struct Appended {
    seq: u64,
    optime: Timestamp,
    /// Checksum of its frame.
    checksum: u32,
}

#[derive(Default)]
struct State {
    syncing: bool,
    stop: bool,
    failed: Option<StorageError>,
    callbacks: Vec<(u64, Callback)>,
}

impl Syncer {
    /// Syncs a journal in `dir` that ends with that commit and whose mark is the file `mark`.
    pub(crate) fn new(dir: &Path, mark: &Path, end: &Checkpoint) -> Result<Self> {
        let &Checkpoint { seq, optime, last, .. } = end;
        let checksum = last.map_or(0, |last| last.checksum);
        Ok(Self {
            dir: dir.to_owned(),
            dir_file: File::open(dir).map_err(|e| StorageError::io("open", dir, &e))?,
            appended: AtomicU64::new(seq),
            durable: AtomicU64::new(seq),
            mark: MarkFile::new(mark.to_owned()),
            optimes: Mutex::new(Optimes {
                appended: Appended { seq, optime, checksum },
                durable: optime,
            }),
            idle: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
            unsynced: Mutex::default(),
            dir_changed: AtomicBool::new(true),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// The mark of what is durable.
    pub(crate) fn mark(&self) -> &MarkFile {
        &self.mark
    }

    /// Notes that the store is closed, once nothing is appended any more.
    pub(crate) fn note_closed(&self) {
        let last = self.optimes.lock().expect("no holder of the lock panics").appended;
        if self.failure().is_none() && self.durable() == last.seq {
            self.mark.note(last.mark(true));
            self.mark.sync();
        }
    }

    /// The failure after which nothing is written any more.
    pub(crate) fn failure(&self) -> Option<StorageError> {
        self.state().failed.clone()
    }

    /// Notes a failure, after which it is unknown what is on disk. All waiting callers are told.
    pub(crate) fn fail(&self, error: &StorageError) -> StorageError {
        self.fail_with(self.state(), error)
    }

    fn fail_with(&self, mut state: MutexGuard<'_, State>, error: &StorageError) -> StorageError {
        let failure = state
            .failed
            .get_or_insert_with(|| {
                tracing::error!(%error, "the journal failed; writes are refused from now on");
                match error {
                    StorageError::ReadOnlyAfterFailure(_) => error.clone(),
                    other => StorageError::ReadOnlyAfterFailure(other.to_string()),
                }
            })
            .clone();
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.changed.notify_all();
        for (_, callback) in callbacks {
            callback(Err(failure.clone()));
        }
        failure
    }

    /// Says that appends go to a new segment from now on.
    pub(crate) fn add_segment(&self, segment: Arc<Segment>) {
        self.unsynced
            .lock()
            .expect("no holder of the lock panics")
            .push(segment);
        self.dir_changed.store(true, Ordering::Release);
    }

    /// Syncs what start-up replayed, cut off and removed, before anything is appended; and the mark, which may say that the
    /// store is closed.
    pub(crate) fn settle(&self) -> Result<()> {
        self.state().syncing = true;
        self.sync();
        self.mark.sync();
        self.failure().map_or(Ok(()), Err)
    }

    /// Changes and syncs a file of the journal while no other sync runs. A failure is noted before the next sync can begin.
    pub(crate) fn alone(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let state = self.changed.wait_while(self.state(), |state| state.syncing);
        let mut state = state.expect("no holder of the lock panics");
        if let Some(failure) = &state.failed {
            return Err(failure.clone());
        }
        state.syncing = true;
        drop(state);
        let outcome = work();
        let mut state = self.state();
        state.syncing = false;
        if let Err(error) = outcome {
            // Under the same lock, see `sync`.
            return Err(self.fail_with(state, &error));
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Optime of the last commit known to be on disk.
    pub(crate) fn durable_optime(&self) -> Timestamp {
        self.optimes.lock().expect("no holder of the lock panics").durable
    }

    /// Says that everything up to `seq` was appended.
    pub(crate) fn appended(&self, seq: u64, optime: Timestamp, checksum: u32) {
        self.optimes.lock().expect("no holder of the lock panics").appended = Appended { seq, optime, checksum };
        // Sequentially consistent, as on the other side: one of us sees what the other did.
        self.appended.store(seq, Ordering::SeqCst);
        if self.idle.swap(false, Ordering::SeqCst) {
            drop(self.state());
            self.changed.notify_all();
        }
    }

    /// Waits until everything up to `seq` is on disk; syncs itself if no sync runs.
    pub(crate) fn wait(&self, seq: u64) -> Result<()> {
        let mut state = self.state();
        loop {
            // What is durable stays so, whatever failed later.
            if self.durable() >= seq {
                return Ok(());
            }
            if let Some(failure) = &state.failed {
                return Err(failure.clone());
            }
            if state.syncing {
                state = self.changed.wait(state).expect("no holder of the lock panics");
            } else {
                state.syncing = true;
                drop(state);
                self.sync();
                state = self.state();
            }
        }
    }

    /// Calls back once everything up to `seq` is on disk, maybe at once.
    pub(crate) fn on_durable(&self, seq: u64, callback: Callback) {
        let mut state = self.state();
        let now = if self.durable() >= seq {
            Ok(())
        } else if let Some(failure) = &state.failed {
            Err(failure.clone())
        } else {
            state.callbacks.push((seq, callback));
            drop(state);
            self.idle.store(false, Ordering::Release);
            self.changed.notify_all();
            return;
        };
        drop(state);
        callback(now);
    }

    /// One sync of everything appended so far. The caller has set `syncing`; this clears it.
    fn sync(&self) {
        // In this order: what was appended up to here lies in segments that are listed by now.
        let last = self.optimes.lock().expect("no holder of the lock panics").appended;
        let Appended { seq: upto, optime, .. } = last;
        let segments = self.unsynced.lock().expect("no holder of the lock panics").clone();
        let lengths: Vec<u64> = segments.iter().map(|segment| segment.len()).collect();
        let outcome = self.sync_files(&segments);
        if outcome.is_ok() {
            self.mark.note(last.mark(false));
        }
        let mut state = self.state();
        state.syncing = false;
        if let Err(error) = outcome {
            // Under the same lock: the operating system tells of an error once, so whoever synced next would be told that
            // all is well.
            self.fail_with(state, &error);
            return;
        }
        if let Some((last, done)) = segments.split_last() {
            let mut unsynced = self.unsynced.lock().expect("no holder of the lock panics");
            unsynced.retain(|s| Arc::ptr_eq(s, last) || !done.iter().any(|d| Arc::ptr_eq(s, d)));
        }
        self.optimes.lock().expect("no holder of the lock panics").durable = optime;
        self.durable.fetch_max(upto, Ordering::AcqRel);
        let callbacks = std::mem::take(&mut state.callbacks);
        let (done, waiting): (Vec<_>, Vec<_>) = callbacks.into_iter().partition(|(seq, _)| *seq <= upto);
        state.callbacks = waiting;
        drop(state);
        self.changed.notify_all();
        for (_, callback) in done {
            callback(Ok(()));
        }
        for (segment, durable) in segments.iter().zip(lengths) {
            segment.forget(durable);
        }
    }

    fn sync_files(&self, segments: &[Arc<Segment>]) -> Result<()> {
        for segment in segments {
            segment
                .file
                .sync()
                .map_err(|e| StorageError::io("sync", &segment.path, &e))?;
        }
        if self.dir_changed.swap(false, Ordering::AcqRel) {
            self.dir_file
                .sync_all()
                .map_err(|e| StorageError::io("sync", &self.dir, &e))?;
        }
        Ok(())
    }

    /// The background thread. Ends after [`Syncer::stop`], with everything synced that was appended.
    pub(crate) fn run(&self) {
        loop {
            let mut state = self.state();
            let pending = |s: &Self| s.appended.load(Ordering::SeqCst) > s.durable();
            while !pending(self) && !state.stop && state.failed.is_none() {
                self.idle.store(true, Ordering::SeqCst);
                // An append between the check and the store would not wake us.
                if pending(self) {
                    break;
                }
                if self.mark.is_synced() {
                    state = self.changed.wait(state).expect("no holder of the lock panics");
                    continue;
                }
                let waited = self
                    .changed
                    .wait_timeout(state, IDLE)
                    .expect("no holder of the lock panics");
                state = waited.0;
                if waited.1.timed_out() {
                    drop(state);
                    self.mark.sync();
                    state = self.state();
                }
            }
            self.idle.store(false, Ordering::Release);
            if state.failed.is_some() || (state.stop && !pending(self)) {
                return;
            }
            if state.callbacks.is_empty() && !state.stop {
                let urgent = |s: &mut State| s.callbacks.is_empty() && !s.stop && s.failed.is_none();
                let waited = self.changed.wait_timeout_while(state, LAG, urgent);
                state = waited.expect("no holder of the lock panics").0;
            }
            let seq = self.appended.load(Ordering::Acquire);
            drop(state);
            // A failure is noted where it happens.
            let _ = self.wait(seq);
        }
    }

    /// Ends the background thread.
    pub(crate) fn stop(&self) {
        self.state().stop = true;
        self.changed.notify_all();
    }
}

impl Appended {
    fn mark(self, is_closed: bool) -> Mark {
        Mark {
            seq: self.seq,
            checksum: self.checksum,
            is_closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tree::PageFile;
    use std::io;

    /// A file whose first sync fails; later ones say that all is well, as the operating system does.
    struct FailsOnce {
        file: File,
        failed: Arc<AtomicBool>,
    }

    impl PageFile for FailsOnce {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            PageFile::read_at(&self.file, buffer, offset)
        }
        fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
            PageFile::write_at(&self.file, bytes, offset)
        }
        fn sync(&self) -> io::Result<()> {
            match self.failed.swap(true, Ordering::SeqCst) {
                false => Err(io::Error::other("the disk is broken")),
                true => Ok(()),
            }
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            PageFile::set_len(&self.file, len)
        }
        fn len(&self) -> io::Result<u64> {
            PageFile::len(&self.file)
        }
    }

    #[test]
    fn nobody_syncs_again_after_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let failed = Arc::new(AtomicBool::new(false));
            let shared = failed.clone();
            let open = move |path: &std::path::Path, _| -> io::Result<Box<dyn PageFile>> {
                let failed = shared.clone();
                Ok(Box::new(FailsOnce {
                    file: File::create(path)?,
                    failed,
                }))
            };
            let syncer = Syncer::new(dir.path(), &dir.path().join("mark"), &Checkpoint::default()).unwrap();
            let segment = Arc::new(Segment::create(dir.path(), 1, Timestamp::default(), &open).unwrap());
            syncer.add_segment(segment.clone());
            syncer.appended(1, Timestamp { secs: 1, inc: 1 }, 1);
            let wait = || syncer.wait(1);
            let alone = || {
                syncer.alone(|| {
                    segment
                        .file
                        .sync()
                        .map_err(|e| StorageError::io("sync", &segment.path, &e))
                })
            };
            let (first, second): (&dyn Fn() -> Result<()>, &(dyn Fn() -> Result<()> + Sync)) = match round % 3 {
                0 => (&wait, &wait),
                1 => (&wait, &alone),
                _ => (&alone, &wait),
            };
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // Comes at the moment of the failure.
                    while !failed.load(Ordering::SeqCst) && !over.load(Ordering::SeqCst) {
                        std::hint::spin_loop();
                    }
                    second().expect_err("whether it is on disk is unknown");
                });
                let result = first();
                over.store(true, Ordering::SeqCst);
                result.expect_err("the sync failed");
            });
            assert_eq!(syncer.durable(), 0, "round {round}");
        }
    }

    /// What a process that has no file descriptor left would notice, too.
    #[test]
    fn syncing_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (at, elsewhere) = (dir.path().join("journal"), dir.path().join("elsewhere"));
        std::fs::create_dir(&at).unwrap();
        let syncer = Syncer::new(&at, &dir.path().join("mark"), &Checkpoint::default()).unwrap();
        syncer.settle().unwrap();
        let open = |path: &Path, _| -> io::Result<Box<dyn PageFile>> { Ok(Box::new(File::create(path)?)) };
        let segment = Segment::create(&at, 1, Timestamp::default(), &open).unwrap();
        syncer.add_segment(Arc::new(segment));
        syncer.appended(1, Timestamp::default(), 1);
        std::fs::rename(&at, &elsewhere).unwrap();
        syncer.wait(1).unwrap();
    }
}
