//! Durability: one sync for everyone who waits.
//!
//! A caller that has to wait while no sync runs becomes the leader and syncs everything appended so far; callers that come
//! during the sync wait, and one of them leads the next one. When no caller waits, a thread syncs at most every [`LAG`], and at
//! once for those who left a callback. What was synced is noted in the [mark](super::mark) before anybody is told.
//!
//! Waking a thread costs as much as a small commit, so nobody is woken in vain: commits do not wake the thread while it looks
//! every [`LAG`] by itself, and whoever leaves a callback during a sync leaves it to the end of that sync.
//!
//! Clients that commit again as soon as they are answered would fall into two halves, of which each waits while the other is synced. So
//! after a sync the thread waits for those whom it has told, for up to half of what a sync takes ([`Syncer::gather`]).

use super::Checkpoint;
use super::mark::{Mark, MarkFile};
use super::segment::Segment;
use crate::{Result, StorageError};
use nestor_model::Timestamp;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long appended bytes may stay unsynced when no caller waits for them.
pub(crate) const LAG: Duration = Duration::from_millis(100);

/// After so many times [`LAG`] without an append the mark is synced too, and the thread sleeps until there is one.
const QUIET_LOOKS: u32 = 10;

/// A sync that takes longer than this is left to the thread by those who have more to do ([`Syncer::lead`]): who comes meanwhile to the
/// thread that leads waits for it.
const LEAD_MAX: Duration = Duration::from_millis(4);

/// The thread waits for those who are expected for up to half of what a sync takes, and no longer than this.
const GATHER_MAX: Duration = Duration::from_millis(2);
/// In so many steps: when nobody comes in one of them it waits no longer.
const GATHER_STEPS: u32 = 4;
/// Timers cannot tell shorter steps.
const GATHER_STEP_MIN: Duration = Duration::from_micros(40);
/// Syncs at most after which waiting is tried again that was in vain.
const VAIN_MAX: u32 = 64;

/// Room is prepared in the journal ([`Segment::prepare`]) for syncs of so many bytes at most; others have more to write than that.
const SMALL_SYNC_BYTES: u64 = 64 << 10;

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
    /// A sync has ended, or nothing is written any more. For those counted in [`State::waiting`].
    changed: Condvar,
    /// There is something to do for the background thread.
    work: Condvar,
    /// How long syncs take, in microseconds, about.
    took_micros: AtomicU64,
    /// Somebody waited for the last sync, which was a small one.
    awaited: AtomicBool,
    /// The length of the segment that was synced last.
    synced_len: AtomicU64,
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
    /// Callers that wait for the end of a sync.
    waiting: usize,
    /// The background thread waits for something to do.
    rests: bool,
    /// How many left callbacks for the last sync and during it: if they are quick, so many come before the next one.
    expected: usize,
    /// Nobody has waited for them yet.
    is_fresh: bool,
    /// Callbacks left during the last sync.
    early: usize,
    /// The background thread waits until there are so many callbacks; 0 if it does not.
    gathers: usize,
    /// Syncs before which it does not, and how many these were the last time.
    vain: (u32, u32),
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
            work: Condvar::new(),
            took_micros: AtomicU64::new(0),
            awaited: AtomicBool::new(false),
            synced_len: AtomicU64::new(0),
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
        self.work.notify_all();
        for (_, callback) in callbacks {
            callback(Err(failure.clone()));
        }
        failure
    }

    /// Waits for the end of the sync that runs.
    fn await_end<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.waiting += 1;
        let mut state = self.changed.wait(state).expect("no holder of the lock panics");
        state.waiting -= 1;
        state
    }

    /// Says that a sync has ended, to those who want to know.
    fn end_sync(&self, state: MutexGuard<'_, State>) {
        let has_work = state.rests && !state.callbacks.is_empty();
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.changed.notify_all();
        }
        if has_work {
            self.work.notify_all();
        }
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
        self.sync(false);
        self.mark.sync();
        self.failure().map_or(Ok(()), Err)
    }

    /// Changes and syncs a file of the journal while no other sync runs. A failure is noted before the next sync can begin.
    pub(crate) fn alone(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut state = self.state();
        while state.syncing {
            state = self.await_end(state);
        }
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
        self.end_sync(state);
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
            self.work.notify_all();
        }
    }

    /// Waits until everything up to `seq` is on disk; syncs itself if no sync runs.
    pub(crate) fn wait(&self, seq: u64) -> Result<()> {
        self.wait_until(seq, true)
    }

    /// As [`Syncer::wait`]; whether somebody wants it.
    fn wait_until(&self, seq: u64, is_awaited: bool) -> Result<()> {
        let mut state = self.state();
        loop {
            // Durable commits stay durable, whatever failed later.
            if self.durable() >= seq {
                return Ok(());
            }
            if let Some(failure) = &state.failed {
                return Err(failure.clone());
            }
            if state.syncing {
                state = self.await_end(state);
            } else {
                state.syncing = true;
                drop(state);
                self.sync(is_awaited);
                state = self.state();
            }
        }
    }

    /// As [`Syncer::wait`] for a caller that has more to do: `None`, at once, when somebody else syncs or a sync takes long.
    pub(crate) fn lead(&self, seq: u64) -> Option<Result<()>> {
        let mut state = self.state();
        if self.durable() >= seq {
            return Some(Ok(()));
        }
        let others = state.syncing || !state.callbacks.is_empty() || state.expected > 1;
        if others || self.took() > LEAD_MAX {
            return None;
        }
        if let Some(failure) = &state.failed {
            return Some(Err(failure.clone()));
        }
        state.syncing = true;
        drop(state);
        self.sync(true);
        if self.durable() >= seq {
            return Some(Ok(()));
        }
        self.failure().map(Err)
    }

    /// How long syncs take, about.
    fn took(&self) -> Duration {
        Duration::from_micros(self.took_micros.load(Ordering::Relaxed))
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
            // The thread that syncs now hands it on.
            let has_work = state.rests && !state.syncing || state.callbacks.len() == state.gathers;
            drop(state);
            if has_work {
                self.work.notify_all();
            }
            return;
        };
        drop(state);
        callback(now);
    }

    /// Whether commits are small and waited for.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Relaxed)
    }

    /// One sync of everything appended so far. The caller has set `syncing`; this clears it.
    fn sync(&self, is_awaited: bool) {
        // In this order: what was appended up to here lies in segments that are listed by now.
        let last = self.optimes.lock().expect("no holder of the lock panics").appended;
        let Appended { seq: upto, optime, .. } = last;
        let segments = self.unsynced.lock().expect("no holder of the lock panics").clone();
        let lengths: Vec<u64> = segments.iter().map(|segment| segment.len()).collect();
        let len = lengths.last().copied().unwrap_or(0);
        let is_small = len.saturating_sub(self.synced_len.swap(len, Ordering::Relaxed)) <= SMALL_SYNC_BYTES;
        self.awaited.store(is_awaited && is_small, Ordering::Relaxed);
        let begun = Instant::now();
        let outcome = self.sync_files(&segments);
        // Only one syncs at a time.
        let took = (self.took() * 3 + begun.elapsed()) / 4;
        self.took_micros
            .store(took.as_micros().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
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
        (state.expected, state.is_fresh) = (callbacks.len(), true);
        let (done, waiting): (Vec<_>, Vec<_>) = callbacks.into_iter().partition(|(seq, _)| *seq <= upto);
        state.early = waiting.len();
        state.callbacks = waiting;
        self.end_sync(state);
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
        let mut quiet_looks = 0;
        loop {
            let state = self.gather(self.state());
            let seen = self.appended.load(Ordering::SeqCst);
            let pending = || self.appended.load(Ordering::SeqCst) > self.durable();
            if state.failed.is_some() || (state.stop && !pending()) {
                return;
            }
            let is_awaited = !state.callbacks.is_empty();
            if !is_awaited && !state.stop {
                if quiet_looks < QUIET_LOOKS || pending() {
                    let is_time = self.rest(state, Some(LAG));
                    let is_quiet = seen == self.appended.load(Ordering::SeqCst);
                    quiet_looks = if is_quiet { quiet_looks.saturating_add(1) } else { 0 };
                    if !is_time || !pending() {
                        continue;
                    }
                } else if !self.mark.is_synced() {
                    drop(state);
                    self.mark.sync();
                    continue;
                } else {
                    self.idle.store(true, Ordering::SeqCst);
                    // An append between the look and the store would not wake us.
                    if !pending() {
                        self.rest(state, None);
                    }
                    self.idle.store(false, Ordering::SeqCst);
                    quiet_looks = 0;
                    continue;
                }
            } else {
                drop(state);
            }
            // A failure is noted where it happens.
            let _ = self.wait_until(self.appended.load(Ordering::Acquire), is_awaited);
        }
    }

    /// Waits for those who are expected to come again after the last sync, if that has been worth it: most of them come.
    fn gather<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let (expected, early) = (state.expected, state.early);
        let step = (self.took() / 2).min(GATHER_MAX) / GATHER_STEPS;
        let is_fresh = std::mem::take(&mut state.is_fresh);
        if !is_fresh || expected < 2 || state.callbacks.len() >= expected || step < GATHER_STEP_MIN {
            return state;
        }
        if state.vain.0 > 0 {
            state.vain.0 -= 1;
            return state;
        }
        state.gathers = expected;
        for _ in 0..GATHER_STEPS {
            let before = state.callbacks.len();
            let missing = |state: &mut State| state.callbacks.len() < expected && !state.stop && state.failed.is_none();
            let (now, waited) =
                (self.work.wait_timeout_while(state, step, missing)).expect("no holder of the lock panics");
            state = now;
            if !waited.timed_out() || state.callbacks.len() == before {
                break;
            }
        }
        state.gathers = 0;
        let came = state.callbacks.len().saturating_sub(early);
        state.vain = match 4 * came < 3 * (expected - early) {
            true => {
                let syncs = (2 * state.vain.1).clamp(1, VAIN_MAX);
                (syncs, syncs)
            }
            false => (0, 0),
        };
        state
    }

    /// Lets the background thread wait until there is something to do. True if `at_most` has passed before.
    fn rest(&self, mut state: MutexGuard<'_, State>, at_most: Option<Duration>) -> bool {
        state.rests = true;
        let (mut state, is_time) = match at_most {
            None => (self.work.wait(state).expect("no holder of the lock panics"), false),
            Some(at_most) => {
                let waited = self.work.wait_timeout(state, at_most);
                let (state, waited) = waited.expect("no holder of the lock panics");
                (state, waited.timed_out())
            }
        };
        state.rests = false;
        is_time
    }

    /// Ends the background thread.
    pub(crate) fn stop(&self) {
        self.state().stop = true;
        self.work.notify_all();
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
    use crate::journal::JournalOptions;
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

    fn options(open: impl Fn(&Path, bool) -> io::Result<Box<dyn PageFile>> + Send + Sync + 'static) -> JournalOptions {
        JournalOptions {
            open: Arc::new(open),
            ..JournalOptions::new()
        }
    }

    #[test]
    fn nobody_syncs_again_after_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let failed = Arc::new(AtomicBool::new(false));
            let shared = failed.clone();
            let open = move |path: &Path, _| -> io::Result<Box<dyn PageFile>> {
                let failed = shared.clone();
                Ok(Box::new(FailsOnce {
                    file: File::create(path)?,
                    failed,
                }))
            };
            let syncer = Syncer::new(dir.path(), &dir.path().join("mark"), &Checkpoint::default()).unwrap();
            let segment = Arc::new(Segment::create(dir.path(), 1, Timestamp::default(), &options(open)).unwrap());
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

    /// A file whose syncs tell that they have begun, and end when they may.
    struct Gated {
        begun: std::sync::mpsc::Sender<()>,
        may_end: Mutex<std::sync::mpsc::Receiver<()>>,
    }

    impl PageFile for Gated {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }
        fn sync(&self) -> io::Result<()> {
            // If nobody is listening any more, nobody holds it up either.
            let _ = self.begun.send(());
            let _ = self.may_end.lock().unwrap().recv();
            Ok(())
        }
        fn set_len(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }
    }

    /// One leads; whoever comes meanwhile is not kept, and its callback is called after the next sync, by the thread.
    #[test]
    fn what_is_left_during_a_sync_that_a_caller_leads_is_done_by_the_thread() {
        use std::sync::mpsc;
        let dir = tempfile::tempdir().unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (end, may_end) = mpsc::channel();
        let gated = Mutex::new(Some(Gated {
            begun,
            may_end: Mutex::new(may_end),
        }));
        let open = move |_: &Path, _| -> io::Result<Box<dyn PageFile>> {
            let gated = gated.lock().unwrap().take();
            Ok(Box::new(gated.ok_or(io::ErrorKind::NotFound)?))
        };
        let syncer = Syncer::new(dir.path(), &dir.path().join("mark"), &Checkpoint::default()).unwrap();
        syncer.add_segment(Arc::new(
            Segment::create(dir.path(), 1, Timestamp::default(), &options(open)).unwrap(),
        ));
        syncer.appended(1, Timestamp { secs: 1, inc: 1 }, 1);
        let (done, is_done) = mpsc::channel();
        /// Ends the thread, also when the test fails.
        struct Stop<'s>(&'s Syncer);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        std::thread::scope(|scope| {
            let _stop = Stop(&syncer);
            // However this ends, nobody waits for the file any more.
            let end = end;
            let leading = scope.spawn(|| syncer.lead(1));
            has_begun.recv_timeout(Duration::from_secs(60)).unwrap();
            syncer.appended(2, Timestamp { secs: 1, inc: 2 }, 2);
            assert!(syncer.lead(2).is_none(), "another one syncs");
            syncer.on_durable(2, Box::new(move |result| done.send(result).unwrap()));
            scope.spawn(|| syncer.run());
            end.send(()).unwrap();
            leading.join().unwrap().expect("nobody else synced").unwrap();
            assert_eq!(syncer.durable(), 1);
            has_begun.recv_timeout(Duration::from_secs(60)).unwrap();
            assert!(is_done.try_recv().is_err(), "it is not on disk yet");
            drop(end);
            is_done.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
        });
        assert_eq!(syncer.durable(), 2);
    }

    /// Clients that come again are synced together. Those who do not are waited for more and more seldom.
    #[test]
    fn who_does_not_come_again_is_not_waited_for_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path, _| -> io::Result<Box<dyn PageFile>> { Ok(Box::new(File::create(path)?)) };
        let syncer = Syncer::new(dir.path(), &dir.path().join("mark"), &Checkpoint::default()).unwrap();
        syncer.add_segment(Arc::new(
            Segment::create(dir.path(), 1, Timestamp::default(), &options(open)).unwrap(),
        ));
        let leave = |seq| syncer.on_durable(seq, Box::new(|result| result.unwrap()));
        let sync = |seq| {
            syncer.appended(seq, Timestamp { secs: 1, inc: 1 }, 1);
            syncer.wait(seq).unwrap();
            // Slow enough that waiting pays.
            syncer.took_micros.store(9_000, Ordering::Relaxed);
        };
        leave(1);
        leave(1);
        sync(1);
        let state = syncer.state();
        assert_eq!((state.expected, state.early, state.is_fresh), (2, 0, true));
        let mut vain = Vec::new();
        drop(state);
        for seq in 2..12 {
            let state = syncer.gather(syncer.state());
            assert_eq!((state.is_fresh, state.gathers), (false, 0));
            vain.push(state.vain);
            drop(state);
            leave(seq);
            leave(seq);
            sync(seq);
        }
        let expected = [
            (1, 1),
            (0, 1),
            (2, 2),
            (1, 2),
            (0, 2),
            (4, 4),
            (3, 4),
            (2, 4),
            (1, 4),
            (0, 4),
        ];
        assert_eq!(vain, expected);
        // Both come before anybody waits for them.
        leave(12);
        leave(12);
        let state = syncer.gather(syncer.state());
        assert_eq!((state.callbacks.len(), state.vain), (2, (0, 4)));
        drop(state);
        // Who is told alone leads the next sync, others do not.
        syncer.took_micros.store(50, Ordering::Relaxed);
        syncer.appended(12, Timestamp { secs: 1, inc: 1 }, 1);
        syncer.wait(12).unwrap();
        syncer.appended(13, Timestamp { secs: 1, inc: 1 }, 1);
        syncer.took_micros.store(50, Ordering::Relaxed);
        assert!(syncer.lead(13).is_none(), "two shared the last sync");
        syncer.wait(13).unwrap();
        syncer.appended(14, Timestamp { secs: 1, inc: 1 }, 1);
        syncer.took_micros.store(50, Ordering::Relaxed);
        syncer
            .lead(14)
            .expect("nobody left anything for the last sync")
            .unwrap();
    }

    /// Where syncs take long, nobody who has more to do is kept by one.
    #[test]
    fn nobody_leads_a_slow_disk() {
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path, _| -> io::Result<Box<dyn PageFile>> { Ok(Box::new(File::create(path)?)) };
        let syncer = Syncer::new(dir.path(), &dir.path().join("mark"), &Checkpoint::default()).unwrap();
        syncer.add_segment(Arc::new(
            Segment::create(dir.path(), 1, Timestamp::default(), &options(open)).unwrap(),
        ));
        syncer.appended(1, Timestamp { secs: 1, inc: 1 }, 1);
        syncer.took_micros.store(9_000, Ordering::Relaxed);
        assert!(syncer.lead(1).is_none());
        syncer.took_micros.store(50, Ordering::Relaxed);
        syncer.lead(1).expect("syncs are fast").unwrap();
        syncer.lead(1).expect("it is durable").unwrap();
    }

    /// A process without a free file descriptor would notice it, too.
    #[test]
    fn syncing_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (at, elsewhere) = (dir.path().join("journal"), dir.path().join("elsewhere"));
        std::fs::create_dir(&at).unwrap();
        let syncer = Syncer::new(&at, &dir.path().join("mark"), &Checkpoint::default()).unwrap();
        syncer.settle().unwrap();
        let open = |path: &Path, _| -> io::Result<Box<dyn PageFile>> { Ok(Box::new(File::create(path)?)) };
        let segment = Segment::create(&at, 1, Timestamp::default(), &options(open)).unwrap();
        syncer.add_segment(Arc::new(segment));
        syncer.appended(1, Timestamp::default(), 1);
        std::fs::rename(&at, &elsewhere).unwrap();
        syncer.wait(1).unwrap();
    }
}
