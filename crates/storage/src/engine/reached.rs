//! How far commits have come: on this disk, in the log of a replica set, on its members.
//!
//! A node that is alone knows one distance, that of its journal: what is durable there is committed. A member is told the others by
//! whoever reads and writes the log of the set ([`Engine::note_committed`], [`Engine::note_members`]). That is also who decides
//! whether it may commit.

use super::Inner;
use super::log::Visible;
use crate::journal::sync::Callback;
use crate::topology::{FIRST_TERM, Guarantee, MemberState, OpTime, Positions, Steward, Topology};
use crate::{Engine, Lsn, Result, StorageError};
use nestor_model::Timestamp;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::time::Duration;

/// Called once when the topology has changed.
type Changed = Box<dyn FnOnce() + Send>;

pub(super) struct Reached {
    topology: RwLock<Arc<Topology>>,
    /// `None` for a node that is alone.
    member: Option<Member>,
}

struct Member {
    is_writable: AtomicBool,
    /// Of commits that it makes.
    term: AtomicI64,
    /// Of the topology.
    shown_term: AtomicI64,
    /// Commits up to here are in the log of the set.
    committed: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
    /// Somebody more waits.
    awaited: Condvar,
}

#[derive(Default)]
struct State {
    /// Of the commit [`Member::committed`].
    committed: Timestamp,
    /// The other members.
    others: Vec<MemberState>,
    waiting: Vec<(u64, Guarantee, Callback)>,
    /// Somebody is to be told by [`Member::awaited`] when so many wait.
    wanted: Option<usize>,
    watching: Vec<Changed>,
    steward: Option<Arc<dyn Steward>>,
    /// As it was told last.
    topology: Option<Arc<Topology>>,
    ended: bool,
}

impl Reached {
    pub(super) fn new(is_member: bool) -> Self {
        let member = Member {
            is_writable: AtomicBool::new(false),
            term: AtomicI64::new(0),
            shown_term: AtomicI64::new(FIRST_TERM),
            committed: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
            awaited: Condvar::new(),
        };
        Self {
            topology: RwLock::new(Arc::new(Topology::alone())),
            member: is_member.then_some(member),
        }
    }

    pub(super) fn is_member(&self) -> bool {
        self.member.is_some()
    }

    fn topology(&self) -> Arc<Topology> {
        self.topology.read().expect("no holder of the lock panics").clone()
    }

    /// The term of commits that are made now.
    pub(super) fn term(&self) -> i64 {
        match &self.member {
            Some(member) => member.term.load(Ordering::Relaxed),
            None => FIRST_TERM,
        }
    }

    /// Refuses commits on a member that is not the primary.
    pub(super) fn check_writable(&self) -> Result<()> {
        match &self.member {
            Some(member) if !member.is_writable.load(Ordering::Acquire) => Err(StorageError::NotPrimary),
            _ => Ok(()),
        }
    }

    /// From now on nobody waits for what is not reached: the store closes.
    pub(super) fn end(&self) {
        let Some(member) = &self.member else { return };
        let mut state = member.state();
        state.ended = true;
        let waiting = std::mem::take(&mut state.waiting);
        let watching = std::mem::take(&mut state.watching);
        drop(state);
        member.changed.notify_all();
        member.awaited.notify_all();
        waiting
            .into_iter()
            .for_each(|(_, _, done)| done(Err(StorageError::Closed)));
        watching.into_iter().for_each(|changed| changed());
    }

    /// Waits until the log of the set has a commit. At once for a node that is alone.
    ///
    /// Errors: [`StorageError::Closed`].
    pub(super) fn wait_committed(&self, seq: u64) -> Result<()> {
        let Some(member) = &self.member else { return Ok(()) };
        let missing = |state: &mut State| member.committed() < seq && !state.ended;
        let state = member.changed.wait_while(member.state(), missing);
        drop(state.expect("no holder of the lock panics"));
        match member.committed() >= seq {
            true => Ok(()),
            false => Err(StorageError::Closed),
        }
    }
}

impl Member {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// Whether a commit has come as far as the set has to tell. `own` is the last commit of this member.
    fn has(&self, state: &State, seq: u64, guarantee: &Guarantee, own: u64) -> bool {
        let applied = state.others.iter().filter(|other| other.applied >= seq);
        match guarantee {
            Guarantee::Durable => true,
            Guarantee::Committed => self.committed() >= seq,
            Guarantee::Applied(wanted) => applied.count() + usize::from(own >= seq) >= *wanted as usize,
            Guarantee::Tagged(wanted) => {
                let Some(topology) = &state.topology else { return false };
                let own = topology.own_config().filter(|_| own >= seq);
                topology.config.has_tags(wanted, |member| {
                    own == Some(member) || applied.clone().any(|other| other.name == member.host)
                })
            }
        }
    }

    /// Lets those go whose commits have come far enough, and counts them.
    fn advance(&self, mut state: MutexGuard<'_, State>, own: u64) -> usize {
        let waiting = std::mem::take(&mut state.waiting);
        let (done, waiting): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|(seq, guarantee, _)| self.has(&state, *seq, guarantee, own));
        state.waiting = waiting;
        drop(state);
        self.changed.notify_all();
        let count = done.len();
        done.into_iter().for_each(|(_, _, done)| done(Ok(())));
        count
    }
}

impl Inner {
    /// What is never rolled back, of what is shown.
    pub(super) fn committed(&self) -> Visible {
        let certain = match (&self.reached.member, &self.store) {
            (Some(member), _) => {
                let state = member.state();
                Some(Visible {
                    seq: member.committed(),
                    optime: state.committed,
                })
            }
            (None, Some(store)) => {
                let syncer = &store.journal.syncer;
                let optime = syncer.durable_optime();
                let seq = syncer.durable();
                Some(Visible { seq, optime })
            }
            (None, None) => None,
        };
        // The journal has a commit before it is shown, and a sync may end in between.
        let shown = self.current();
        let (seq, optime) = (shown.seq, shown.optime);
        match certain {
            Some(certain) if certain.seq <= seq => certain,
            _ => Visible { seq, optime },
        }
    }

    /// Calls back once a commit has come so far, maybe at once.
    pub(super) fn on_reached(&self, seq: u64, guarantee: Guarantee, done: Callback) {
        match (&self.reached.member, &self.store) {
            (Some(member), _) if guarantee != Guarantee::Durable => {
                let mut state = member.state();
                if member.has(&state, seq, &guarantee, self.current().seq) {
                    drop(state);
                    done(Ok(()));
                } else if state.ended {
                    drop(state);
                    done(Err(StorageError::Closed));
                } else {
                    state.waiting.push((seq, guarantee, done));
                    if state.wanted.is_some_and(|wanted| state.waiting.len() >= wanted) {
                        state.wanted = None;
                        member.awaited.notify_all();
                    }
                }
            }
            (_, Some(store)) => store.journal.syncer.on_durable(seq, done),
            (_, None) => done(Ok(())),
        }
    }
}

impl Engine {
    /// The nodes that hold the data, and which of them is the primary.
    pub fn topology(&self) -> Arc<Topology> {
        self.inner.reached.topology()
    }

    /// The term of the topology, for those who ask with each command.
    pub fn term(&self) -> i64 {
        let member = self.inner.reached.member.as_ref();
        member.map_or(FIRST_TERM, |member| member.shown_term.load(Ordering::Relaxed))
    }

    /// Whether somebody waits until members show a commit.
    pub fn awaits_members(&self) -> bool {
        let applied = |(_, guarantee, _): &(u64, Guarantee, Callback)| {
            matches!(guarantee, Guarantee::Applied(_) | Guarantee::Tagged(_))
        };
        let member = self.inner.reached.member.as_ref();
        member.is_some_and(|member| member.state().waiting.iter().any(applied))
    }

    /// What the other members said of themselves last.
    pub fn members(&self) -> Vec<MemberState> {
        let member = self.inner.reached.member.as_ref();
        member.map_or_else(Vec::new, |member| member.state().others.clone())
    }

    /// Whether the store is a member of a set whose log is elsewhere.
    pub fn is_member(&self) -> bool {
        self.inner.reached.is_member()
    }

    /// Whether commits are accepted: always on a node that is alone, otherwise on the primary.
    pub fn is_writable(&self) -> bool {
        self.inner.reached.check_writable().is_ok()
    }

    /// Tells of another topology; its count of changes is set here.
    pub fn set_topology(&self, mut topology: Topology) {
        let reached = &self.inner.reached;
        let mut current = reached.topology.write().expect("no holder of the lock panics");
        topology.changes = current.changes;
        if topology == **current {
            return;
        }
        topology.changes += 1;
        if let Some(member) = &reached.member {
            member.shown_term.store(topology.term, Ordering::Relaxed);
        }
        *current = Arc::new(topology);
        let told = current.clone();
        drop(current);
        if let Some(member) = &reached.member {
            let mut state = member.state();
            state.topology = Some(told);
            let watching = std::mem::take(&mut state.watching);
            member.advance(state, self.inner.current().seq);
            watching.into_iter().for_each(|changed| changed());
        }
    }

    /// Calls `then` once when the topology has changed more than `seen` times, maybe at once, or the store closes.
    pub fn on_topology(&self, seen: i64, then: impl FnOnce() + Send + 'static) {
        let reached = &self.inner.reached;
        let Some(member) = &reached.member else { return };
        let mut state = member.state();
        // A change after this look finds the callback.
        if reached.topology().changes > seen || state.ended {
            drop(state);
            then();
        } else {
            state.watching.push(Box::new(then));
        }
    }

    /// Tells that the log of the set has all commits up to this one. Returns how many waited for that, and go on.
    pub fn note_committed(&self, lsn: Lsn, optime: Timestamp) -> usize {
        let Some(member) = &self.inner.reached.member else {
            return 0;
        };
        let mut state = member.state();
        if member.committed() < lsn.0 {
            member.committed.store(lsn.0, Ordering::Release);
            state.committed = optime;
        }
        member.advance(state, self.inner.current().seq)
    }

    /// How many wait for the log of the set or for members.
    pub fn waiting(&self) -> usize {
        let member = self.inner.reached.member.as_ref();
        member.map_or(0, |member| member.state().waiting.len())
    }

    /// Waits until so many wait for the log of the set or for members, the store closes, or this time has passed.
    pub fn wait_for_waiting(&self, count: usize, at_most: Duration) {
        let Some(member) = &self.inner.reached.member else {
            return;
        };
        let mut state = member.state();
        state.wanted = Some(count);
        let lacks = |state: &mut State| state.waiting.len() < count && !state.ended;
        let waited = member.awaited.wait_timeout_while(state, at_most, lacks);
        waited.expect("no holder of the lock panics").0.wanted = None;
    }

    /// Tells what the other members said of themselves.
    pub fn note_members(&self, others: Vec<MemberState>) {
        let Some(member) = &self.inner.reached.member else {
            return;
        };
        let mut state = member.state();
        state.others = others;
        member.advance(state, self.inner.current().seq);
    }

    /// Says who runs the membership.
    pub fn set_steward(&self, steward: Arc<dyn Steward>) {
        if let Some(member) = &self.inner.reached.member {
            member.state().steward = Some(steward);
        }
    }

    /// Who runs the membership; `None` on a node that is alone.
    pub fn steward(&self) -> Option<Arc<dyn Steward>> {
        self.inner.reached.member.as_ref()?.state().steward.clone()
    }

    /// Makes a member the primary: commits are accepted from now on, in this term. Index builds that were interrupted are dropped.
    pub fn begin_term(&self, term: i64) -> Result<()> {
        if let Some(member) = &self.inner.reached.member {
            member.term.store(term, Ordering::Relaxed);
            member.is_writable.store(true, Ordering::Release);
        }
        self.begin_writing()
    }

    /// Refuses commits from now on. When this returns none is under way; the last one is the answer.
    pub fn end_term(&self) -> Lsn {
        let sequencer = self.inner.lock_sequencer();
        if let Some(member) = &self.inner.reached.member {
            member.is_writable.store(false, Ordering::Release);
        }
        Lsn(sequencer.current().seq)
    }

    /// Accepts commits again after [`Engine::end_term`], in the same term.
    pub fn resume_term(&self) {
        if let Some(member) = &self.inner.reached.member {
            member.is_writable.store(true, Ordering::Release);
        }
    }

    /// What is to be done before anything is written.
    pub(super) fn begin_writing(&self) -> Result<()> {
        match self.drop_unfinished_indexes() {
            // A full disk is no reason not to start. Nobody uses them; who opens the store may try again.
            Err(error @ StorageError::OutOfDiskSpace { .. }) => {
                tracing::warn!(%error, "no room to drop the indexes whose builds were interrupted");
                Ok(())
            }
            result => result,
        }
    }

    /// The last commit that survives a crash of this node.
    pub fn durable_lsn(&self) -> Lsn {
        match &self.inner.store {
            Some(store) => Lsn(store.journal.syncer.durable()),
            None => self.last_lsn(),
        }
    }

    /// The last commit that is never rolled back.
    pub fn committed_lsn(&self) -> Lsn {
        Lsn(self.inner.committed().seq)
    }

    /// How far the history reaches with each guarantee.
    pub fn positions(&self) -> Positions {
        let term = self.term();
        let at = |ts| OpTime { term, ts };
        let durable = self.durable_optime();
        let committed = match self.is_member() {
            true => self.inner.committed().optime,
            false => durable,
        };
        // In this order: what is shown goes up. A sync may end before what it makes durable is shown.
        let last = self.last_optime();
        Positions {
            last: at(last),
            durable: at(durable.min(last)),
            committed: at(committed.min(last)),
        }
    }

    /// Whether a commit has reached a guarantee. A store that lives in memory is as durable as it gets. For a node that is alone,
    /// durable and committed are the same: it would survive a crash of the machine.
    pub fn has_reached(&self, lsn: Lsn, guarantee: &Guarantee) -> bool {
        match (&self.inner.reached.member, &self.inner.store) {
            (Some(member), _) if *guarantee == Guarantee::Committed => member.committed() >= lsn.0,
            (Some(member), _) if *guarantee != Guarantee::Durable => {
                member.has(&member.state(), lsn.0, guarantee, self.last_lsn().0)
            }
            (_, Some(store)) => store.journal.syncer.durable() >= lsn.0,
            (_, None) => true,
        }
    }

    /// Waits until a commit has reached a guarantee; whoever waits at the same time shares the sync.
    ///
    /// Errors: [`StorageError::ReadOnlyAfterFailure`]: whether it will survive is unknown; [`StorageError::Closed`].
    pub fn wait_reached(&self, lsn: Lsn, guarantee: Guarantee) -> Result<()> {
        if guarantee == Guarantee::Durable || !self.is_member() {
            return self.wait_durable(lsn);
        }
        let (done, reached) = std::sync::mpsc::channel();
        self.on_reached(lsn, guarantee, move |result| {
            // Whoever waits is there until this is called.
            let _ = done.send(result);
        });
        reached.recv().unwrap_or(Err(StorageError::Closed))
    }

    /// As [`Engine::wait_reached`] for [`Guarantee::Durable`].
    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        match &self.inner.store {
            Some(store) => store.journal.syncer.wait(lsn.0),
            None => Ok(()),
        }
    }

    /// As [`Engine::wait_reached`] for a caller who has more to do than to wait: it syncs if nobody else does and syncs take a few
    /// milliseconds at most. `None`, at once, otherwise: then [`Engine::on_reached`] will tell.
    pub fn try_reach(&self, lsn: Lsn, guarantee: &Guarantee) -> Option<Result<()>> {
        if *guarantee != Guarantee::Durable && self.is_member() {
            return self.has_reached(lsn, guarantee).then_some(Ok(()));
        }
        match &self.inner.store {
            Some(store) => store.journal.syncer.lead(lsn.0),
            None => Some(Ok(())),
        }
    }

    /// Calls `done` as soon as a commit has reached a guarantee, or it cannot be known: maybe at once, on this thread, else on
    /// the thread that syncs or hears of it. It should only pass the news on.
    pub fn on_reached(&self, lsn: Lsn, guarantee: Guarantee, done: impl FnOnce(Result<()>) + Send + 'static) {
        self.inner.on_reached(lsn.0, guarantee, Box::new(done));
    }

    /// The optime up to which everything is durable.
    pub(super) fn durable_optime(&self) -> Timestamp {
        match &self.inner.store {
            Some(store) => store.journal.syncer.durable_optime(),
            None => self.last_optime(),
        }
    }
}
