//! Hands on what a thread serves besides the command that keeps it busy, by time and without the command's help.
//!
//! A worker of the runtime serves many connections and runs their commands where it read them, because a hand-over
//! costs more than most commands. While one command runs, nothing else of that worker makes progress, and when all workers are
//! busy nobody even asks the operating system what arrived. Commands that look at their interrupt leave their worker when
//! they turn out to be long (see [`crate::connection`]). This module is for everything that does not look in time: a watcher
//! thread compares every [`TICK`] what each worker is doing, and lets a spare worker in for one that still does the same.
//!
//! Spares are workers of the same runtime, made at the start and held back by a task that only waits. So the runtime steals, polls and
//! parks as always; there are merely more or fewer workers in it at a time.

use crate::niceness;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::thread::Thread;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};

/// How often the watcher looks. A worker that does the same at two looks is relieved, so others wait for twice this at most.
const TICK: Duration = Duration::from_millis(4);
/// After so many looks at which nobody did anything the watcher sleeps until somebody does.
const QUIET_TICKS: u32 = 250;
/// After so many looks each spare goes through its worker's queues once. A task that yielded on a worker waits in a list that
/// only this worker sees, and so would wait there for as long as the worker is held back.
const AIRING_TICKS: u32 = 8;
/// It looks up from that sleep this often: who wakes it does so without a memory barrier, so a call may be missed.
const NAP: Duration = Duration::from_millis(100);
/// Workers that can be relieved at the same time.
const SPARES: usize = 8;

thread_local! {
    /// The desk that shows what this thread is doing; threads that never served a connection have none.
    static DESK: RefCell<Option<Arc<Desk>>> = const { RefCell::new(None) };
}

/// What one thread is doing.
#[derive(Debug, Default)]
struct Desk {
    /// Odd while the thread is a worker that is busy; grows with each change. Only the thread itself writes it.
    turn: AtomicU64,
}

impl Desk {
    /// Makes the turn odd or even, unless it is that already.
    fn set_busy(&self, busy: bool) {
        let turn = self.turn.load(Ordering::Relaxed);
        if (turn % 2 == 1) != busy {
            self.turn.store(turn + 1, Ordering::Relaxed);
        }
    }
}

/// A desk as the watcher last saw it.
struct Seen {
    desk: Weak<Desk>,
    turn: u64,
    /// A spare works in its place.
    relieved: bool,
}

/// Watches the workers of one runtime.
pub struct Watcher {
    runtime: Handle,
    desks: Mutex<Vec<Seen>>,
    spares: Arc<Spares>,
    thread: OnceLock<Thread>,
    asleep: AtomicBool,
    stopped: AtomicBool,
    relieved: AtomicU64,
}

/// A runtime with a worker for each processor, and the spares.
pub fn runtime(stack_bytes: usize) -> std::io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores + SPARES)
        .enable_all()
        .thread_name("nestor-worker")
        .on_thread_start(niceness::begin)
        .thread_stack_size(stack_bytes)
        .build()
}

impl Watcher {
    /// Starts watching. The runtime must have been built with [`SPARES`] workers more than are to serve ([`runtime`]).
    pub fn start(runtime: Handle) -> std::io::Result<Arc<Self>> {
        let watcher = Arc::new(Self {
            runtime,
            desks: Mutex::default(),
            spares: Arc::default(),
            thread: OnceLock::new(),
            asleep: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            relieved: AtomicU64::new(0),
        });
        for _ in 0..SPARES {
            watcher.hold_back();
        }
        let watching = watcher.clone();
        let thread = std::thread::Builder::new()
            .name("nestor-watcher".into())
            .spawn(move || watching.watch())?;
        // Nobody else sets it.
        let _ = watcher.thread.set(thread.thread().clone());
        Ok(watcher)
    }

    /// Lets all spares go and ends the watching, so that the runtime can be shut down.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake();
        self.spares.dismiss();
    }

    /// How often a worker was relieved.
    pub fn relieved(&self) -> u64 {
        self.relieved.load(Ordering::Relaxed)
    }

    /// The future, watched whenever it runs.
    pub fn watched<F: Future + Send>(self: &Arc<Self>, inner: F) -> Watched<F> {
        Watched {
            watcher: self.clone(),
            inner: Box::pin(inner),
        }
    }

    /// Makes one worker, whichever takes the task, a spare.
    fn hold_back(&self) {
        let spares = self.spares.clone();
        lock(&spares.state).coming += 1;
        self.runtime.spawn(async move {
            let mut was_aired = false;
            loop {
                // A task that waits in the worker's own slot, or that yielded there, runs first: nobody can steal either.
                for _ in 0..2 {
                    tokio::task::yield_now().await;
                }
                if spares.wait(was_aired) == Waited::Called {
                    break;
                }
                was_aired = true;
            }
        });
    }

    /// Wakes a worker, which then looks for tasks everywhere: a worker that was held back may have tasks in its queue, and
    /// nobody else knows of them.
    fn stir(&self) {
        self.runtime.spawn(async {});
    }

    fn begin(&self) -> Arc<Desk> {
        let desk = DESK.with_borrow_mut(|desk| {
            desk.get_or_insert_with(|| {
                let desk = Arc::<Desk>::default();
                let seen = Seen {
                    desk: Arc::downgrade(&desk),
                    turn: 0,
                    relieved: false,
                };
                lock(&self.desks).push(seen);
                desk
            })
            .clone()
        });
        desk.set_busy(true);
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
        desk
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn watch(&self) {
        let mut quiet = 0;
        let mut looks = 0_u32;
        while !self.stopped.load(Ordering::Relaxed) {
            if quiet < QUIET_TICKS {
                std::thread::park_timeout(TICK);
            } else {
                self.asleep.store(true, Ordering::Relaxed);
                std::thread::park_timeout(NAP);
                self.asleep.store(false, Ordering::Relaxed);
            }
            looks = looks.wrapping_add(1);
            if quiet < QUIET_TICKS && looks.is_multiple_of(AIRING_TICKS) {
                self.spares.air();
            }
            quiet = match self.look() {
                true => 0,
                false => (quiet + 1).min(QUIET_TICKS),
            };
        }
    }

    /// Looks at all desks once; true when somebody did something.
    fn look(&self) -> bool {
        let arrivals = self.spares.arrivals();
        if arrivals.have_come || arrivals.coming || arrivals.coming_back {
            self.stir();
        }
        let mut active = arrivals.coming;
        lock(&self.desks).retain_mut(|seen| {
            let Some(desk) = seen.desk.upgrade() else {
                // The thread is gone, so it is not busy.
                if seen.relieved {
                    self.hold_back();
                }
                return false;
            };
            let turn = desk.turn.load(Ordering::Relaxed);
            let busy = turn % 2 == 1;
            active |= busy || turn != seen.turn;
            if turn != seen.turn && seen.relieved {
                seen.relieved = false;
                self.hold_back();
            }
            if busy && turn == seen.turn && !seen.relieved && self.spares.let_one_in() {
                seen.relieved = true;
                self.relieved.fetch_add(1, Ordering::Relaxed);
            }
            seen.turn = turn;
            true
        });
        active
    }
}

/// Ends the watching when it is dropped, so that a start that fails does not wait for spare workers.
pub struct EndOfWatch(pub Arc<Watcher>);

impl Drop for EndOfWatch {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// This thread has left its worker to another one, for as long as what it runs goes on.
pub fn has_left_worker() {
    DESK.with_borrow(|desk| {
        if let Some(desk) = desk {
            desk.set_busy(false);
        }
    });
}

/// A future that the watcher knows of whenever it runs.
pub struct Watched<F> {
    watcher: Arc<Watcher>,
    inner: Pin<Box<F>>,
}

impl<F: Future + Send> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        /// Ends the turn, also when the future panics.
        struct Turn(Arc<Desk>);
        impl Drop for Turn {
            fn drop(&mut self) {
                self.0.set_busy(false);
            }
        }
        let _turn = Turn(self.watcher.begin());
        self.inner.as_mut().poll(context)
    }
}

/// Workers held back.
#[derive(Default)]
struct Spares {
    state: Mutex<Held>,
    changed: Condvar,
}

/// `called <= waiting` but for the moments before those called wake up.
#[derive(Default)]
struct Held {
    waiting: usize,
    called: usize,
    /// Tasks that will hold a worker back once one runs them.
    coming: usize,
    /// Those that were aired and are to come back.
    coming_back: usize,
    /// How often those who wait were sent through their queues.
    airings: u64,
    /// Some began to wait since this was last asked.
    have_come: bool,
    dismissed: bool,
}

/// What is known of spares that do not wait.
struct Arrivals {
    /// Some began to wait since this was last asked.
    have_come: bool,
    /// Some are to come for the first time.
    coming: bool,
    /// Some were aired and are not back yet. That is no work to watch: on a busy machine it would keep the watcher awake for ever.
    coming_back: bool,
}

/// Why a worker no longer waits.
#[derive(Debug, PartialEq, Eq)]
enum Waited {
    /// The spare is needed: it is to serve connections.
    Called,
    /// The spare is to look at the queues of the runtime and come back.
    Aired,
}

impl Spares {
    /// Blocks a worker until it is called or aired.
    fn wait(&self, was_aired: bool) -> Waited {
        let mut held = lock(&self.state);
        match was_aired {
            true => held.coming_back -= 1,
            false => held.coming -= 1,
        }
        held.waiting += 1;
        held.have_come = true;
        let airings = held.airings;
        while held.called == 0 && !held.dismissed && held.airings == airings {
            held = self.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.waiting -= 1;
        if held.called == 0 && !held.dismissed {
            held.coming_back += 1;
            return Waited::Aired;
        }
        held.called = held.called.saturating_sub(1);
        Waited::Called
    }

    /// Sends all who wait through the queues of their workers.
    fn air(&self) {
        lock(&self.state).airings += 1;
        self.changed.notify_all();
    }

    fn arrivals(&self) -> Arrivals {
        let mut held = lock(&self.state);
        Arrivals {
            have_come: std::mem::take(&mut held.have_come),
            coming: held.coming > 0,
            coming_back: held.coming_back > 0,
        }
    }

    /// Calls one; false when none is there.
    fn let_one_in(&self) -> bool {
        let mut held = lock(&self.state);
        if held.called >= held.waiting {
            return false;
        }
        held.called += 1;
        drop(held);
        self.changed.notify_one();
        true
    }

    fn dismiss(&self) {
        lock(&self.state).dismissed = true;
        self.changed.notify_all();
    }
}

/// Whoever panicked while holding the lock left numbers that are right.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A runtime of one worker with its watcher. Both end with it, also while tasks block: a test that fails is not to wait for them.
    struct Watched {
        runtime: Option<tokio::runtime::Runtime>,
        watcher: Arc<Watcher>,
    }

    impl Watched {
        fn start() -> Self {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1 + SPARES)
                .enable_all()
                .build()
                .expect("a runtime");
            let watcher = Watcher::start(runtime.handle().clone()).expect("a watcher");
            Self {
                runtime: Some(runtime),
                watcher,
            }
        }

        fn spawn<T: Send + 'static>(
            &self,
            task: impl Future<Output = T> + Send + 'static,
        ) -> tokio::task::JoinHandle<T> {
            let runtime = self.runtime.as_ref().expect("it ends with this");
            runtime.spawn(self.watcher.watched(task))
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            self.watcher.stop();
            if let Some(runtime) = self.runtime.take() {
                runtime.shutdown_timeout(Duration::from_secs(10));
            }
        }
    }

    fn wait_until(happens: impl Fn() -> bool, what: &str) {
        let begun = std::time::Instant::now();
        while !happens() {
            assert!(begun.elapsed() < PATIENCE, "{what}");
            std::thread::yield_now();
        }
    }

    /// Tasks that block their worker until all of them and one more run at the same time. Whether a spare was called for each
    /// of them is not asked: one that looks at its queues may take a task without being called.
    fn all_run_together(blocked: usize) {
        let watched = Watched::start();
        // All come, whatever queue their tasks were put in.
        let spares = &watched.watcher.spares;
        wait_until(|| lock(&spares.state).waiting >= SPARES, "not all spares come");
        let (done, all_done) = mpsc::channel();
        let together = Arc::new(std::sync::Barrier::new(blocked + 1));
        for _ in 0..=blocked {
            let (together, done) = (together.clone(), done.clone());
            watched.spawn(async move {
                // With one worker this would wait for ever.
                together.wait();
                done.send(()).expect("the test waits");
            });
        }
        for _ in 0..=blocked {
            all_done
                .recv_timeout(PATIENCE)
                .expect("a worker that is busy is relieved");
        }
    }

    #[test]
    fn workers_that_are_busy_are_relieved() {
        all_run_together(1);
        all_run_together(SPARES);
    }

    #[test]
    fn the_watcher_sleeps_when_nobody_does_anything() {
        let watched = Watched::start();
        let asleep = &watched.watcher.asleep;
        wait_until(|| asleep.load(Ordering::Relaxed), "spares that are aired keep it awake");
    }

    #[test]
    fn spares_go_back_when_the_work_is_done() {
        let watched = Watched::start();
        // More often than there are spares.
        for _ in 0..3 * SPARES {
            let together = Arc::new(std::sync::Barrier::new(2));
            let (done, all_done) = mpsc::channel();
            for _ in 0..2 {
                let (together, done) = (together.clone(), done.clone());
                watched.spawn(async move {
                    together.wait();
                    done.send(()).expect("the test waits");
                });
            }
            for _ in 0..2 {
                all_done
                    .recv_timeout(PATIENCE)
                    .expect("the spare of the time before is there again");
            }
        }
    }

    #[test]
    fn threads_that_left_their_worker_are_not_relieved() {
        let watched = Watched::start();
        let relieving = watched.watcher.clone();
        let (relieved, counted) = mpsc::channel();
        watched.spawn(async move {
            tokio::task::block_in_place(|| {
                has_left_worker();
                // A look that had begun before may still relieve it, however late that look goes on.
                std::thread::sleep(TICK * 50);
                let before = relieving.relieved();
                std::thread::sleep(TICK * 25);
                relieved.send(relieving.relieved() - before).expect("the test waits");
            })
        });
        assert_eq!(counted.recv_timeout(PATIENCE).expect("it does not panic"), 0);
    }
}
