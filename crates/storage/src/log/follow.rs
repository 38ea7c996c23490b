//! Followers of the log, and how they hear of commits that concern them.
//!
//! ```text
//! commit, under the sequencer's lock     Followers::note     marks those whose scope it touches (hit = its number)
//! shown, or committed                    Follower::fire      wakes those of them that wait
//! ```
//!
//! A follower that is at the end has `hit <= read`: nothing that it wants was accepted since it read the log, so it need not read.
//! Both numbers only grow. A follower waits by leaving a waker and then looking whether it was hit meanwhile; a commit marks
//! first and then looks for wakers: one of them sees the other.

use super::{Scope, Upto};
use crate::engine::Inner;
use crate::sequencer::Accepted;
use crate::{Engine, TreeId};
use nestor_model::Namespace;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

type Wake = Box<dyn FnOnce() + Send>;

/// A reader at the end of the log.
pub(crate) struct Follower {
    pub(super) upto: Upto,
    scope: Scope,
    /// Number of the newest commit that may concern it.
    hit: AtomicU64,
    /// Number of the commit up to which it has read.
    read: AtomicU64,
    is_waiting: AtomicBool,
    wake: Mutex<Option<Wake>>,
}

impl Follower {
    pub(super) fn new(scope: Scope, upto: Upto, read: u64) -> Self {
        Self {
            upto,
            scope,
            hit: AtomicU64::new(0),
            read: AtomicU64::new(read),
            is_waiting: AtomicBool::new(false),
            wake: Mutex::default(),
        }
    }

    pub(super) fn hit(&self) -> u64 {
        self.hit.load(Ordering::SeqCst)
    }

    /// Commits up to here may concern it.
    pub(crate) fn mark(&self, seq: u64) {
        self.hit.fetch_max(seq, Ordering::SeqCst);
    }

    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub(super) fn set_read(&self, seq: u64) {
        self.read.fetch_max(seq, Ordering::Relaxed);
    }

    fn waker(&self) -> MutexGuard<'_, Option<Wake>> {
        self.wake.lock().expect("no holder of the lock panics")
    }

    /// Wakes who waits.
    pub(super) fn fire(&self) {
        let wake = self.waker().take();
        if let Some(wake) = wake {
            wake();
        }
    }
}

/// All who are at the end of the log.
#[derive(Default)]
pub(crate) struct Followers {
    /// How many there are: a commit looks no further when there are none.
    count: AtomicUsize,
    groups: Mutex<Groups>,
}

#[derive(Default)]
struct Groups {
    everything: Vec<Arc<Follower>>,
    databases: HashMap<String, Vec<Arc<Follower>>>,
    collections: HashMap<Namespace, Vec<Arc<Follower>>>,
}

/// Followers that a group of commits has to wake once it is shown.
pub(crate) type News = Vec<Arc<Follower>>;

impl Groups {
    fn of(&mut self, scope: &Scope) -> &mut Vec<Arc<Follower>> {
        match scope {
            Scope::Everything => &mut self.everything,
            Scope::Database(db) => self.databases.entry(db.clone()).or_default(),
            Scope::Collection(ns) => self.collections.entry(ns.clone()).or_default(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Follower>> {
        let databases = self.databases.values().flatten();
        let collections = self.collections.values().flatten();
        self.everything.iter().chain(databases).chain(collections)
    }
}

impl Followers {
    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().expect("no holder of the lock panics")
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// To be called where no commit is under way.
    pub(crate) fn add(&self, follower: Arc<Follower>) {
        self.groups().of(&follower.scope).push(follower.clone());
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn remove(&self, follower: &Arc<Follower>) {
        let mut groups = self.groups();
        let group = groups.of(&follower.scope);
        group.retain(|other| !Arc::ptr_eq(other, follower));
        if group.is_empty() {
            match &follower.scope {
                Scope::Everything => {}
                Scope::Database(db) => drop(groups.databases.remove(db)),
                Scope::Collection(ns) => drop(groups.collections.remove(ns)),
            }
        }
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    /// As [`Followers::note`], of commits that another member made, up to this number: they may concern everybody.
    pub(crate) fn note_all(&self, seq: u64) -> News {
        if self.count.load(Ordering::SeqCst) == 0 {
            return News::new();
        }
        let groups = self.groups();
        let hit = |follower: &&Arc<Follower>| {
            follower.mark(seq);
            follower.is_waiting.swap(false, Ordering::SeqCst)
        };
        groups.all().filter(hit).cloned().collect()
    }

    /// Marks those whom commits concern that are about to be shown, and returns those who wait. Under the sequencer's lock.
    pub(crate) fn note(&self, commits: &[Accepted]) -> News {
        let mut news = News::new();
        if self.count.load(Ordering::SeqCst) == 0 {
            return news;
        }
        let groups = self.groups();
        let mut hit = |follower: &Arc<Follower>, seq: u64| {
            follower.mark(seq);
            if follower.is_waiting.swap(false, Ordering::SeqCst) {
                news.push(follower.clone());
            }
        };
        for commit in commits {
            let (ws, seq) = (&commit.prepared.ws, commit.seq);
            if ws.oplog.is_empty() {
                continue;
            }
            // Commands concern more than the collections that they are about, and are rare.
            if ws.required.is_empty() || ws.trees.contains_key(&TreeId::CATALOG) {
                groups.all().for_each(|follower| hit(follower, seq));
                continue;
            }
            groups.everything.iter().for_each(|follower| hit(follower, seq));
            for collection in &ws.required {
                let database = groups.databases.get(collection.ns.db.as_str());
                let collection = groups.collections.get(&collection.ns);
                let both = database.into_iter().chain(collection).flatten();
                both.for_each(|follower| hit(follower, seq));
            }
        }
        news
    }
}

/// Wakes those of a group of commits: at once who waits for what snapshots show, the others when the commit `seq` is committed.
pub(crate) fn spread(engine: &Inner, news: News, seq: u64) {
    let (shown, committed): (News, News) = news.into_iter().partition(|follower| follower.upto == Upto::Accepted);
    shown.iter().for_each(|follower| follower.fire());
    if !committed.is_empty() {
        engine.on_visible(seq, Upto::Committed, move || {
            committed.iter().for_each(|follower| follower.fire())
        });
    }
}

/// Says when a reader that is at the end should read on. Clones are the same; only one of them may wait at a time.
#[derive(Clone)]
pub struct LogSignal {
    engine: Engine,
    follower: Arc<Follower>,
}

impl LogSignal {
    pub(super) fn new(engine: Engine, follower: Arc<Follower>) -> Self {
        Self { engine, follower }
    }

    /// Whether reading on may give something, or an error. False at the end until a commit concerns the reader and is shown, or
    /// committed if that is what it waits for.
    pub fn has_news(&self) -> bool {
        let (follower, engine) = (&self.follower, &self.engine.inner);
        follower.hit() > follower.read()
            && (engine.visible(follower.upto).seq > follower.read() || engine.log_failure(follower.upto).is_some())
    }

    /// Calls `wake` once as soon as there may be news: maybe at once, on this thread, else on the thread that commits or syncs. It
    /// should only pass the news on. There may turn out to be none. A callback that was left before is dropped.
    pub fn on_news(&self, wake: impl FnOnce() + Send + 'static) {
        let follower = &self.follower;
        *follower.waker() = Some(Box::new(wake));
        follower.is_waiting.store(true, Ordering::SeqCst);
        let hit = follower.hit();
        if hit <= follower.read() {
            return;
        }
        if self.has_news() {
            follower.fire();
            return;
        }
        let waiting = follower.clone();
        self.engine.inner.on_visible(hit, follower.upto, move || waiting.fire());
    }

    /// A future that is ready when [`LogSignal::has_news`].
    pub fn news(&self) -> impl Future<Output = ()> + Send + use<> {
        UntilNews(self.clone())
    }

    /// Waits until [`LogSignal::has_news`] or the deadline. True if it has.
    pub fn wait(&self, deadline: Instant) -> bool {
        while !self.has_news() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            let (bell, rung) = mpsc::channel();
            // If the time was up, nobody listens any more.
            self.on_news(move || {
                let _ = bell.send(());
            });
            let _ = rung.recv_timeout(left);
        }
        true
    }
}

impl std::fmt::Debug for LogSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogSignal")
    }
}

/// See [`LogSignal::news`].
struct UntilNews(LogSignal);

impl Future for UntilNews {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0.has_news() {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        self.0.on_news(move || waker.wake());
        Poll::Pending
    }
}
