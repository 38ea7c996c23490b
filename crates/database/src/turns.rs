//! Turns of long operations: as many run at a time as the machine can use, the others wait for their turn.
//!
//! Short operations take no turn; they start and end where they were read. One that has run for a while asks for a turn whenever it
//! looks at its interrupt ([`Turns::take`]), goes on while it has one, and lets the next have it after [`QUANTUM`] when somebody
//! waits. So hundreds of scans at once leave the processor's run queue short, and a point read beside them finds a
//! core within milliseconds. First come, first served: whoever gave a turn up is the last in the queue. Operations of a higher
//! [`Priority`] come before others, but for those that have waited for [`PATIENCE`], so that nobody waits for ever.
//!
//! Whoever waits for something else (a lock, the disk, another transaction) gives its turn up before ([`Turns::give_up`]), so that turns
//! are never held by operations that wait for one without a turn.
//!
//! How many turns there are is found out ([`probe`]) by the work that is done with them, unless an operator sets it.

pub mod probe;

use self::probe::{Changes, Probe};
use nestor_model::statement;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long an operation may go on while others wait.
pub const QUANTUM: Duration = Duration::from_millis(20);
/// Whoever has waited for so long comes next, whatever the priority.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// How often one that waits looks whether it has to stop.
const POLL: Duration = Duration::from_millis(50);

thread_local! {
    /// When the operation that runs on this thread got its turn, if it has one.
    static TURN: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The looks of this thread up to which its work was counted.
    static COUNTED: Cell<u64> = const { Cell::new(0) };
    /// The operation that runs on this thread writes.
    static WRITES: Cell<bool> = const { Cell::new(false) };
    /// Before or behind whom it comes.
    static PRIORITY: Cell<Priority> = const { Cell::new(Priority::Normal) };
}

/// Before or behind whom an operation comes when turns are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Behind all others.
    Low,
    /// As most.
    Normal,
    /// Before all others.
    High,
}

impl Priority {
    /// All of them, the first to come first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// Its name as it is set.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

/// Whether the operation on this thread lets others go first once it is long: one that reads and that nobody wants to be first.
pub fn gives_way() -> bool {
    !WRITES.get() && PRIORITY.get() < Priority::High
}

/// The turns of this process: processors are what all of it shares.
static OF_READS: LazyLock<Turns> = LazyLock::new(|| Turns::new(default_limit()));
static OF_WRITES: LazyLock<Turns> = LazyLock::new(|| Turns::new(default_limit()));

/// Two for each core.
fn default_limit() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (2 * cores).max(LIMIT_MIN)
}

/// Turns there are at least, so that one that reads from a slow disk leaves the processor to others.
const LIMIT_MIN: usize = 4;
/// Most turns that are tried.
const LIMIT_MAX: usize = 128;

/// A number of turns, and who has and who wants one.
#[derive(Debug)]
pub struct Turns {
    limit: AtomicUsize,
    queue: Mutex<Queue>,
    /// Length of the queue, to be looked at without the lock.
    waiting: AtomicUsize,
    /// Looks that operations with a turn have taken: their work.
    work: AtomicU64,
    search: Mutex<Search>,
}

/// The search for the number of turns.
#[derive(Debug)]
struct Search {
    /// `None` while the number is fixed.
    probe: Option<Probe>,
    interval: Duration,
    /// When the number was changed last, and what work and queue were then.
    since: Instant,
    work: u64,
    queued: u64,
}

/// How the number of turns is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// As many as there are.
    Fixed(usize),
    /// As work gets done by, looked at every so often.
    Sought(Duration),
}

/// `waiters` are empty unless `running` is the limit or, since it was lowered, more.
#[derive(Debug, Default)]
struct Queue {
    running: usize,
    /// By priority.
    waiters: [VecDeque<Waiting>; Priority::ALL.len()],
    admitted: u64,
    queued: u64,
    left: u64,
    queued_micros: u64,
}

/// Counts of the operations that asked for a turn, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnCounts {
    /// Operations that have a turn now.
    pub running: usize,
    /// Operations that wait for one now.
    pub waiting: usize,
    /// Turns that were given.
    pub admitted: u64,
    /// How often one had to wait.
    pub queued: u64,
    /// How many of those stopped before they got their turn.
    pub left: u64,
    /// For how long those that wait no more waited, in microseconds, added up.
    pub queued_micros: u64,
}

/// A place in the queue.
#[derive(Debug)]
struct Waiting {
    waiter: Arc<Waiter>,
    since: Instant,
}

#[derive(Debug)]
struct Waiter {
    thread: Thread,
    granted: AtomicBool,
}

/// How it came that [`Turns::take`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The operation may go on.
    Granted,
    /// It has to stop, and has no turn.
    Stopped,
}

impl Turns {
    /// The turns of operations of this process that read.
    pub fn of_reads() -> &'static Self {
        &OF_READS
    }

    /// The turns of operations of this process that write.
    pub fn of_writes() -> &'static Self {
        &OF_WRITES
    }

    /// The turns of the operation that runs on this thread.
    pub fn of_thread() -> &'static Self {
        if WRITES.get() { &OF_WRITES } else { &OF_READS }
    }

    /// Says before or behind whom the operation on this thread comes, until the next begins.
    pub fn set_priority(priority: Priority) {
        PRIORITY.set(priority);
    }

    /// Says whether the operation that begins on this thread writes.
    #[inline]
    pub fn begin(is_write: bool) {
        PRIORITY.set(Priority::Normal);
        if WRITES.get() != is_write {
            // One within another that reads: a turn that it has is of the other kind.
            Self::of_thread().give_up();
            WRITES.set(is_write);
        }
    }

    /// Turns for so many operations at a time.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: AtomicUsize::new(limit.max(1)),
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            work: AtomicU64::new(0),
            search: Mutex::new(Search {
                probe: None,
                interval: Duration::MAX,
                since: Instant::now(),
                work: 0,
                queued: 0,
            }),
        }
    }

    /// Says how many may run at a time, or how that is found out; 0 is as many as suit this machine. What was found so far is kept.
    pub fn set_number(&self, number: Number) {
        let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        match number {
            Number::Fixed(limit) => {
                search.probe = None;
                self.set_limit(limit);
            }
            Number::Sought(interval) => {
                search.interval = interval;
                if search.probe.is_none() {
                    let first = default_limit();
                    search.probe = Some(Probe::new(first, LIMIT_MIN, (4 * first).min(LIMIT_MAX)));
                    self.set_limit(first);
                }
            }
        }
    }

    /// How far the number was changed since it is looked for, if it is.
    pub fn changes(&self) -> Option<Changes> {
        let search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        search.probe.as_ref().map(|probe| probe.changes)
    }

    /// Counts the work of the operation on this thread, which has a turn, and tries another number of turns when it is time.
    fn note_work(&self) {
        let looks = statement::looks();
        let done = looks.wrapping_sub(COUNTED.replace(looks));
        let work = self.work.fetch_add(done, Ordering::Relaxed).wrapping_add(done);
        // Whoever else is at it does the same.
        let Ok(mut search) = self.search.try_lock() else {
            return;
        };
        let search = &mut *search;
        let Some(probe) = &mut search.probe else { return };
        let elapsed = search.since.elapsed();
        if elapsed < search.interval {
            return;
        }
        let mut queue = self.lock();
        let has_queue = queue.len() > 0 || queue.queued != search.queued;
        // After a time in which nothing was long, a number of turns has not been tried.
        if elapsed < 4 * search.interval.max(QUANTUM) {
            let done = work.wrapping_sub(search.work) as f64;
            let limit = probe.next(done / elapsed.as_secs_f64(), has_queue);
            self.put_limit(limit, &mut queue);
        }
        (search.since, search.work, search.queued) = (Instant::now(), work, queue.queued);
    }

    /// How many may run at a time.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets how many may run at a time; 0 for as many as suit this machine. If more run now, they keep their turns until they give them up.
    pub fn set_limit(&self, limit: usize) {
        let limit = if limit == 0 { default_limit() } else { limit };
        self.put_limit(limit, &mut self.lock());
    }

    fn put_limit(&self, limit: usize, queue: &mut Queue) {
        self.limit.store(limit, Ordering::Relaxed);
        while queue.running < limit && self.pass_on(queue) {
            queue.running += 1;
        }
    }

    /// The operations under way and those that are over.
    pub fn counts(&self) -> TurnCounts {
        let queue = self.lock();
        TurnCounts {
            running: queue.running,
            waiting: queue.len(),
            admitted: queue.admitted,
            queued: queue.queued,
            left: queue.left,
            queued_micros: queue.queued_micros,
        }
    }

    /// As [`Turns::take`], but never waits: false when it would, and nothing has changed.
    pub fn try_take(&self) -> bool {
        match TURN.get() {
            Some(since) => {
                self.note_work();
                self.waiting.load(Ordering::Relaxed) == 0 || since.elapsed() < QUANTUM || self.goes_on_before_all()
            }
            None => self.grant(&mut self.lock()),
        }
    }

    /// Lets this thread's operation begin another quantum, if it comes before all who wait.
    fn goes_on_before_all(&self) -> bool {
        let own = PRIORITY.get();
        // As many as are in the middle give way to each other without looking at the queue.
        let comes_first = own > Priority::Low && self.lock().next().is_some_and(|next| next < own);
        if comes_first {
            TURN.set(Some(Instant::now()));
        }
        comes_first
    }

    /// Gives this thread's operation a turn if one is free.
    fn grant(&self, queue: &mut Queue) -> bool {
        let is_free = queue.running < self.limit() && queue.len() == 0;
        if is_free {
            queue.running += 1;
            queue.admitted += 1;
            begin_turn();
        }
        is_free
    }

    /// A turn for the operation that runs on this thread: the one it has, while nobody waits or it is young; else it waits for
    /// the next. `stops` says whether the operation has to stop; it is asked every 50 ms.
    pub fn take(&self, stops: &dyn Fn() -> bool) -> Turn {
        if self.try_take() {
            return Turn::Granted;
        }
        self.give_up();
        let waiter = {
            let mut queue = self.lock();
            if self.grant(&mut queue) {
                return Turn::Granted;
            }
            let waiter = Arc::new(Waiter {
                thread: std::thread::current(),
                granted: AtomicBool::new(false),
            });
            queue.queued += 1;
            queue.waiters[PRIORITY.get() as usize].push_back(Waiting {
                waiter: waiter.clone(),
                since: Instant::now(),
            });
            self.waiting.store(queue.len(), Ordering::Relaxed);
            waiter
        };
        while !waiter.granted.load(Ordering::Acquire) {
            std::thread::park_timeout(POLL);
            if stops() && self.leave(&waiter) {
                return Turn::Stopped;
            }
        }
        begin_turn();
        Turn::Granted
    }

    /// Gives the turn of this thread's operation up, if it has one: the operation is over, or is about to wait.
    pub fn give_up(&self) {
        if TURN.take().is_some() {
            let looks = statement::looks();
            let done = looks.wrapping_sub(COUNTED.replace(looks));
            self.work.fetch_add(done, Ordering::Relaxed);
            let mut queue = self.lock();
            let is_over = queue.running > self.limit();
            if is_over || !self.pass_on(&mut queue) {
                queue.running -= 1;
            }
        }
    }

    /// Hands a turn to the first who waits, if there is one.
    fn pass_on(&self, queue: &mut Queue) -> bool {
        let Some(next) = queue.pop() else {
            return false;
        };
        self.waiting.store(queue.len(), Ordering::Relaxed);
        queue.admitted += 1;
        queue.queued_micros += micros_since(next.since);
        next.waiter.granted.store(true, Ordering::Release);
        next.waiter.thread.unpark();
        true
    }

    /// Takes one out of the queue; false when it has been given its turn meanwhile.
    fn leave(&self, waiter: &Arc<Waiter>) -> bool {
        let mut queue = self.lock();
        let is_it = |waiting: &Waiting| Arc::ptr_eq(&waiting.waiter, waiter);
        let removed = queue.waiters.iter_mut().find_map(|waiters| {
            let place = waiters.iter().position(is_it)?;
            waiters.remove(place)
        });
        self.waiting.store(queue.len(), Ordering::Relaxed);
        if let Some(removed) = &removed {
            queue.left += 1;
            queue.queued_micros += micros_since(removed.since);
        }
        removed.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// This thread's operation has got a turn.
fn begin_turn() {
    TURN.set(Some(Instant::now()));
    COUNTED.set(statement::looks());
}

impl Queue {
    fn len(&self) -> usize {
        self.waiters.iter().map(VecDeque::len).sum()
    }

    /// What counts as the priority of who comes next: whoever has waited for [`PATIENCE`] comes before all others.
    fn next(&self) -> Option<Priority> {
        match self.impatient() {
            Some(_) => Some(Priority::High),
            None => Priority::ALL
                .into_iter()
                .find(|priority| !self.waiters[*priority as usize].is_empty()),
        }
    }

    fn pop(&mut self) -> Option<Waiting> {
        let next = self.impatient().or_else(|| self.next())?;
        self.waiters[next as usize].pop_front()
    }

    /// The priority of who has waited for longest, and for [`PATIENCE`] at least.
    fn impatient(&self) -> Option<Priority> {
        let firsts = Priority::ALL.into_iter().filter_map(|priority| {
            let first = self.waiters[priority as usize].front()?;
            Some((first.since, priority))
        });
        let (since, priority) = firsts.min_by_key(|(since, _)| *since)?;
        (since.elapsed() >= PATIENCE).then_some(priority)
    }
}

fn micros_since(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Stops whoever waits in vain, after a time that nothing here takes.
    fn in_vain() -> impl Fn() -> bool + Sync {
        let begun = Instant::now();
        move || begun.elapsed() > Duration::from_secs(60)
    }

    /// Runs `operation` on a thread of its own.
    fn spawn<'s, R: Send + 's>(
        scope: &'s std::thread::Scope<'s, '_>,
        operation: impl FnOnce() -> R + Send + 's,
    ) -> std::thread::ScopedJoinHandle<'s, R> {
        scope.spawn(operation)
    }

    fn running_and_waiting(turns: &Turns) -> (usize, usize) {
        let counts = turns.counts();
        (counts.running, counts.waiting)
    }

    fn wait_for(turns: &Turns, state: (usize, usize)) {
        let in_vain = in_vain();
        while running_and_waiting(turns) != state {
            assert!(
                !in_vain(),
                "{:?} run and wait, not {state:?}",
                running_and_waiting(turns)
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_limit_can_be_changed_while_some_wait() {
        let turns = &Turns::new(1);
        let (ends, end) = mpsc::channel::<()>();
        let end = &Mutex::new(end);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                spawn(scope, move || {
                    let in_vain = in_vain();
                    turns.take(&in_vain);
                    let _ = end.lock().unwrap().recv_timeout(Duration::from_secs(60));
                    turns.give_up();
                });
            }
            wait_for(turns, (1, 2));
            turns.set_limit(2);
            wait_for(turns, (2, 1));
            // Nobody loses a turn; the next that is given up is gone.
            turns.set_limit(1);
            assert_eq!(running_and_waiting(turns), (2, 1));
            ends.send(()).unwrap();
            wait_for(turns, (1, 1));
            ends.send(()).unwrap();
            wait_for(turns, (1, 0));
            ends.send(()).unwrap();
            wait_for(turns, (0, 0));
        });
        turns.set_limit(0);
        assert_eq!(turns.limit(), default_limit());
    }

    #[test]
    fn never_more_run_than_there_are_turns() {
        let turns = Turns::new(3);
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..12 {
                spawn(scope, || {
                    for _ in 0..50 {
                        assert_eq!(turns.take(&in_vain()), Turn::Granted);
                        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                        turns.give_up();
                    }
                });
            }
        });
        assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
        assert_eq!(running_and_waiting(&turns), (0, 0));
    }

    #[test]
    fn turns_go_round_in_the_order_of_the_queue() {
        let turns = Turns::new(1);
        let (order, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            assert_eq!(turns.take(&in_vain()), Turn::Granted);
            for name in 0..3 {
                let order = order.clone();
                let turns = &turns;
                spawn(scope, move || {
                    assert_eq!(turns.take(&in_vain()), Turn::Granted);
                    order.send(name).expect("the test waits");
                    turns.give_up();
                });
                wait_for(turns, (1, name + 1));
            }
            // A turn that began later than now has a quantum that does not end, however slow the machine is.
            TURN.set(Instant::now().checked_add(Duration::from_secs(3600)));
            assert!(turns.try_take());
            TURN.set(Instant::now().checked_sub(QUANTUM));
            assert!(!turns.try_take());
            assert_eq!(turns.take(&in_vain()), Turn::Granted);
            let before: Vec<usize> = ended.try_iter().collect();
            assert_eq!(before, [0, 1, 2], "who gives its turn up is the last");
            turns.give_up();
        });
        assert_eq!(running_and_waiting(&turns), (0, 0));
    }

    #[test]
    fn the_higher_priority_comes_first_and_nobody_waits_for_ever() {
        let turns = Turns::new(1);
        let (order, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            assert_eq!(turns.take(&in_vain()), Turn::Granted);
            let mut waiting = 0;
            let mut wait = |priority: Priority| {
                let (order, turns) = (order.clone(), &turns);
                spawn(scope, move || {
                    Turns::set_priority(priority);
                    assert_eq!(turns.take(&in_vain()), Turn::Granted);
                    order.send(priority).expect("the test waits");
                    turns.give_up();
                });
                waiting += 1;
                wait_for(turns, (1, waiting));
            };
            wait(Priority::Low);
            // Over a second has passed, as far as the queue knows.
            let old = Instant::now()
                .checked_sub(2 * PATIENCE)
                .expect("the machine runs for longer");
            let mut queue = turns.lock();
            let first = queue.waiters[Priority::Low as usize].front_mut().expect("it waits");
            first.since = old;
            drop(queue);
            wait(Priority::Low);
            wait(Priority::Normal);
            wait(Priority::High);
            turns.give_up();
            let order: Vec<Priority> = (0..4)
                .map(|_| ended.recv_timeout(Duration::from_secs(60)).expect("all get their turn"))
                .collect();
            let expected = [Priority::Low, Priority::High, Priority::Normal, Priority::Low];
            assert_eq!(order, expected);
        });
        assert_eq!(running_and_waiting(&turns), (0, 0));
    }

    #[test]
    fn one_that_waits_can_be_stopped() {
        let turns = Turns::new(1);
        let stop = AtomicBool::new(false);
        assert_eq!(turns.take(&in_vain()), Turn::Granted);
        std::thread::scope(|scope| {
            let waiting = spawn(scope, || {
                let in_vain = in_vain();
                let turn = turns.take(&|| stop.load(Ordering::SeqCst) || in_vain());
                turns.give_up();
                turn
            });
            wait_for(&turns, (1, 1));
            stop.store(true, Ordering::SeqCst);
            assert_eq!(waiting.join().expect("it does not panic"), Turn::Stopped);
        });
        assert_eq!(running_and_waiting(&turns), (1, 0));
        turns.give_up();
        assert_eq!(running_and_waiting(&turns), (0, 0));
        turns.give_up();
        let counts = turns.counts();
        assert_eq!((counts.admitted, counts.queued, counts.left), (1, 1, 1));
        assert!(counts.queued_micros > 0);
    }
}
