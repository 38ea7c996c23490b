//! The keeper: lease, announcements, and what other members are told and tell.

use super::checkpoints;
use super::config::{self, SetConfig};
use super::knocks::{About, Knock, Knocks, new_word};
use super::shipper::spawn;
use super::{MemberError, MemberOptions, Roles, Stop};
use crate::lease::{self, Lease, LeaseWatch, Standing};
use crate::{Log, LogError, Version};
use nestor_model::number::safe_i64;
use nestor_model::{RawDoc, RawWriter, Timestamp, ValueRef};
use nestor_storage::{Configuration, Engine, Guarantee, Lsn, MemberConfig, MemberState, OpTime, Steward, Topology};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The lease is renewed, and looked at, so many times in its length.
const LOOKS: u32 = 6;
/// A member says how far it is at least so often.
const ANNOUNCE: Duration = Duration::from_millis(500);
/// While the primary waits for members they say so, and it hears them, so often.
const PROMPT: Duration = Duration::from_millis(25);
/// Members stay prompt for so long after the primary waited last.
const PROMPT_FOR: Duration = Duration::from_secs(10);
/// A member that said nothing for so long is not there.
const ALIVE: Duration = Duration::from_secs(5);
/// The log keeps what a member needs that was there so long ago.
const REMEMBERED: Duration = Duration::from_secs(3_600);
/// A member that is wanted more than another one is so much earlier to take the lease.
const DEFERENCE: Duration = Duration::from_millis(500);
/// A primary leaves its place to a member with a higher priority when that has been there for so long.
const HAND_OVER: Duration = Duration::from_secs(5);
/// It has about what the primary has, in commits, and has the rest within this.
const BEHIND_MAX: u64 = 10_000;
const CATCH_UP: Duration = Duration::from_secs(2);
/// The client whose command ended a role gets its answer first.
const FAREWELL: Duration = Duration::from_millis(150);

/// Keeps a member's place in the set.
pub(super) struct Keeper {
    log: Arc<dyn Log>,
    set: String,
    host: String,
    length: Duration,
    roles: Arc<dyn Roles>,
    stop: Arc<Stop>,
    started: Instant,
    knocks: Knocks,
    /// How long after they were made this member applies commits.
    delay_secs: AtomicU64,
    state: Mutex<State>,
}

struct State {
    config: SetConfig,
    watch: LeaseWatch,
    /// The version of the lease that this member wrote last; `None` for a secondary.
    own: Option<Version>,
    /// The epoch of its writer; 0 before it has one.
    epoch: u64,
    /// The word of its knocks when it is primary.
    word: u64,
    /// The lease as it was seen last, unless it was over.
    held: Option<Lease>,
    engine: Option<Engine>,
    /// It does not become primary before that.
    frozen_until: Option<Instant>,
    /// What others said, and when that changed.
    heard: HashMap<String, (Vec<u8>, Instant)>,
    announced: Option<Instant>,
    /// The commit that was announced last.
    announced_lsn: Lsn,
    /// When the primary waited for members last.
    awaited: Option<Instant>,
    /// The primary is about to be it no more, and takes no writes.
    steps_down: bool,
    /// Who gave the lease up last, and until when it is not to have it again.
    barred: Option<(String, Instant)>,
    /// Since when a member is there that is rather to be primary.
    preferred_since: Option<Instant>,
    is_over: bool,
}

impl Keeper {
    pub(super) fn new(log: Arc<dyn Log>, options: &MemberOptions, config: SetConfig, stop: Arc<Stop>) -> Self {
        Self {
            log,
            set: options.set.clone(),
            host: options.host.clone(),
            length: options.lease,
            roles: options.roles.clone(),
            stop,
            started: Instant::now(),
            knocks: Knocks::open(&options.host),
            delay_secs: AtomicU64::new(config.config.member(&options.host).map_or(0, |own| own.delay.as_secs())),
            state: Mutex::new(State {
                config,
                watch: LeaseWatch::new(&options.host, options.lease),
                own: None,
                epoch: 0,
                word: new_word(),
                held: None,
                engine: None,
                frozen_until: None,
                heard: HashMap::new(),
                announced: None,
                announced_lsn: Lsn(0),
                awaited: None,
                steps_down: false,
                barred: None,
                preferred_since: None,
                is_over: false,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its knocks, and those that it hears.
    pub(super) fn knocks(&self) -> &Knocks {
        &self.knocks
    }

    pub(super) fn is_primary(&self) -> bool {
        self.state().own.is_some()
    }

    /// Takes the lease if it may be taken. Whoever has it from a run before goes on.
    pub(super) fn take_if_free(&self) -> Result<bool, LogError> {
        let mut state = self.state();
        let (Standing::Free(version) | Standing::Own(version)) = self.look(&mut state)? else {
            return Ok(false);
        };
        if !self.may_lead(&state) {
            return Ok(false);
        }
        let is_taken = self
            .log
            .replace_record(lease::RECORD, version, &self.lease(&state).encode())?;
        if is_taken {
            state.own = Some(version + 1);
        }
        Ok(is_taken)
    }

    /// What the configuration says of this member; nothing of one that was removed.
    fn own<'s>(&self, state: &'s State) -> Option<&'s MemberConfig> {
        state.config.config.member(&self.host)
    }

    /// Whether it may become primary now.
    fn may_lead(&self, state: &State) -> bool {
        let frozen = state.frozen_until.is_some_and(|until| Instant::now() < until);
        !frozen && self.own(state).is_some_and(|own| own.priority > 0.0)
    }

    /// How long after they were made it applies commits. Does not wait for what the keeper asks the store.
    pub(super) fn delay(&self) -> Duration {
        Duration::from_secs(self.delay_secs.load(Ordering::Relaxed))
    }

    fn note_config(&self, state: &State) {
        let delay = self.own(state).map_or(Duration::ZERO, |own| own.delay);
        self.delay_secs.store(delay.as_secs(), Ordering::Relaxed);
    }

    /// The members that are there and have a higher priority than this one, and what they said last.
    fn preferred(&self, state: &State) -> Vec<MemberState> {
        let own = self.own(state).map_or(0.0, |own| own.priority);
        let there = state.heard.values().filter(|(_, at)| at.elapsed() < ALIVE);
        let said = there.filter_map(|(said, _)| decode(said));
        let is_barred = |name: &str| {
            let barred = state.barred.as_ref();
            barred.is_some_and(|(barred, until)| barred == name && Instant::now() < *until)
        };
        let is_preferred = |member: &MemberConfig| member.priority > own && !is_barred(&member.host);
        said.filter(|said| said.is_electable && state.config.config.member(&said.name).is_some_and(is_preferred))
            .collect()
    }

    /// Looks at the lease. What it says is known from then on.
    fn look(&self, state: &mut State) -> Result<Standing, LogError> {
        let found = self.log.record(lease::RECORD)?;
        let found = match found {
            Some((version, bytes)) => {
                let lease = Lease::decode(&bytes).ok_or_else(|| LogError::Damaged("the lease".into()))?;
                Some((version, lease))
            }
            None => None,
        };
        let primary = state.held.as_ref().map(|lease| lease.holder.clone());
        let preferred = self
            .preferred(state)
            .into_iter()
            .filter(|member| Some(&member.name) != primary.as_ref());
        let ahead = u32::try_from(preferred.count()).unwrap_or(u32::MAX);
        state.watch.defer(DEFERENCE.saturating_mul(ahead));
        let seen = found.as_ref().map(|(version, lease)| (*version, lease));
        let standing = state.watch.look(self.started.elapsed(), seen);
        if let Some((_, lease)) = &found
            && lease.barred_ms > 0
            && state.barred.is_none()
        {
            let until = Instant::now().checked_add(Duration::from_millis(lease.barred_ms));
            state.barred = until.map(|until| (lease.barred.clone(), until));
        }
        state.held = match standing {
            Standing::Free(_) => None,
            Standing::Held | Standing::Own(_) => found.map(|(_, lease)| lease),
        };
        Ok(standing)
    }

    fn lease(&self, state: &State) -> Lease {
        let left = |until: &Instant| until.saturating_duration_since(Instant::now());
        let barred = state.barred.as_ref().map(|(name, until)| (name.clone(), left(until)));
        let (barred, left) = barred.unwrap_or_default();
        Lease {
            holder: self.host.clone(),
            epoch: state.epoch,
            barred,
            barred_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            is_awaiting: state.awaited.is_some_and(|at| at.elapsed() < PROMPT_FOR),
            knock: state.word,
            ..Lease::default()
        }
    }

    /// The writer has that epoch: from now on the member is known as primary.
    pub(super) fn leads(&self, epoch: u64) {
        self.state().epoch = epoch;
    }

    /// The member's store is open: who is there is told to it.
    pub(super) fn serves(self: &Arc<Self>, engine: &Engine) {
        let mut state = self.state();
        state.engine = Some(engine.clone());
        if state.own.is_some() {
            state.held = Some(self.lease(&state));
        }
        self.tell_topology(&state);
        drop(state);
        engine.set_steward(Arc::new(KeeperSteward(Arc::downgrade(self))));
    }

    /// Ends the role, once.
    pub(super) fn over(&self, why: &str) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_over, true) || self.stop.is_set() {
            return;
        }
        if let Some(engine) = &state.engine {
            engine.end_term();
        }
        drop(state);
        self.stop.set();
        self.roles.over(why);
    }

    pub(super) fn run(self: Arc<Self>) -> Result<JoinHandle<()>, MemberError> {
        spawn("cluster-keeper", move || {
            let between = self.length / LOOKS;
            loop {
                let begun = Instant::now();
                match self.keep() {
                    Ok(None) => {}
                    Ok(Some(why)) => return self.over(why),
                    Err(error @ (LogError::Damaged(_) | LogError::Newer { .. })) => {
                        return self.over(&error.to_string());
                    }
                    Err(error) => tracing::warn!(%error, "the set cannot be looked at"),
                }
                if self.wait(begun + between) {
                    return;
                }
            }
        })
    }

    /// Waits for the next round. True if it is time to end. Meanwhile, if the primary waits for members, it is told or told of.
    fn wait(&self, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stop.is_set() {
                return self.stop.is_set();
            }
            let heard = self.knocks.heard(About::Members);
            if let Err(error) = self.be_prompt() {
                tracing::warn!(%error, "members do not hear of each other");
            }
            // A member says how far it is, or this one has come further; without knocks it looks by its clock.
            self.knocks.wait(About::Members, heard, left.min(PROMPT));
        }
    }

    fn be_prompt(&self) -> Result<(), LogError> {
        let mut state = self.state();
        let Some(engine) = state.engine.clone() else {
            return Ok(());
        };
        if state.own.is_some() {
            if engine.awaits_members() {
                state.awaited = Some(Instant::now());
                self.hear(&mut state)?;
            }
            return Ok(());
        }
        let is_awaited =
            state.held.as_ref().is_some_and(|lease| lease.is_awaiting) || self.knocks.awaited_within(PROMPT_FOR);
        if is_awaited && engine.last_lsn() > state.announced_lsn {
            self.announce(&mut state)?;
            drop(state);
            let about = About::Members;
            self.knocks.knock(Knock {
                about,
                is_awaiting: false,
            });
        }
        Ok(())
    }

    /// One round. Says why the role is over, if it is.
    fn keep(self: &Arc<Self>) -> Result<Option<&'static str>, LogError> {
        let mut state = self.state();
        if let (Some(_), Some(engine)) = (state.own, &state.engine) {
            let (about, is_awaiting) = (About::Presence, engine.awaits_members());
            self.knocks.knock(Knock { about, is_awaiting });
        }
        if let Some(version) = state.own {
            match self
                .log
                .replace_record(lease::RECORD, version, &self.lease(&state).encode())
            {
                Ok(true) => state.own = Some(version + 1),
                Ok(false) => match self.look(&mut state)? {
                    // A process of the same name has taken it, and has shut this one out.
                    Standing::Own(_) if state.held.as_ref().is_some_and(|held| held.epoch > state.epoch) => {
                        return Ok(Some("another process of this member took the lease"));
                    }
                    // An answer was lost.
                    Standing::Own(version) => state.own = Some(version),
                    _ => return Ok(Some("another member took the lease")),
                },
                Err(error) => tracing::warn!(%error, "the lease is not renewed"),
            }
        } else {
            let may_lead = self.may_lead(&state) && state.engine.is_some();
            let standing = self.look(&mut state)?;
            if let (Standing::Free(_) | Standing::Own(_), true) = (standing, may_lead) {
                drop(state);
                if self.take_if_free()? {
                    return Ok(Some("the lease was free and is taken"));
                }
                state = self.state();
            }
        }
        if let Some(config) = config::read(&*self.log)? {
            state.config = config;
            self.note_config(&state);
        }
        if state.own.is_some() && self.all_know_the_format(&state) {
            config::raise(&*self.log, &state.config)?;
        }
        if self.own(&state).is_none() {
            return Ok(Some("the member was removed from the set"));
        }
        self.tell_topology(&state);
        if state.announced.is_none_or(|at| at.elapsed() >= ANNOUNCE) {
            self.announce(&mut state)?;
            self.hear(&mut state)?;
        }
        if let Some(heir) = self.heir(&mut state) {
            let keeper = self.clone();
            // This thread renews the lease meanwhile.
            let hand_over = move || {
                let Err(why) = keeper.leave(Duration::ZERO, CATCH_UP, false, Some(&heir)) else {
                    return;
                };
                tracing::info!(why, heir, "the member with the higher priority is not primary yet");
            };
            if let Err(error) = spawn("cluster-farewell", hand_over) {
                tracing::warn!(%error, "the place of the primary is not handed over");
            }
        }
        Ok(None)
    }

    /// Whether the log has an older format than every member of the set knows.
    fn all_know_the_format(&self, state: &State) -> bool {
        let knows = |member: &MemberConfig| {
            let said = state.heard.get(&member.host);
            member.host == self.host || said.is_some_and(|(said, _)| format_of(said) >= config::FORMAT)
        };
        state.config.format < config::FORMAT && state.config.config.members.iter().all(knows)
    }

    /// The member to whom this one, which is primary, is to leave its place.
    fn heir(&self, state: &mut State) -> Option<String> {
        let engine = state.engine.clone()?;
        let last = engine.last_lsn().0;
        let mut preferred = self.preferred(state);
        preferred.retain(|member| member.applied.saturating_add(BEHIND_MAX) >= last);
        if state.own.is_none() || state.steps_down || preferred.is_empty() {
            state.preferred_since = None;
            return None;
        }
        let since = *state.preferred_since.get_or_insert_with(Instant::now);
        if since.elapsed() < HAND_OVER {
            return None;
        }
        state.preferred_since = None;
        let priority = |member: &MemberState| state.config.config.member(&member.name).map_or(0.0, |own| own.priority);
        let most = |a: &MemberState, b: &MemberState| priority(a).total_cmp(&priority(b));
        preferred.into_iter().max_by(most).map(|member| member.name)
    }

    fn tell_topology(&self, state: &State) {
        let Some(engine) = &state.engine else { return };
        let config = &state.config.config;
        let others = config.members.iter().filter(|member| member.host != self.host);
        self.knocks
            .set_hosts(others.map(|member| member.host.clone()).collect());
        let word = state.held.as_ref().map_or(0, |lease| lease.knock);
        self.knocks
            .set_word(if state.own.is_some() { state.word } else { word });
        if state.config.format >= config::FORMAT {
            engine.leave_entries_out();
        }
        let place = |name: &str| config.members.iter().position(|member| member.host == name);
        let primary = state.held.as_ref().filter(|lease| lease.epoch > 0 && !state.steps_down);
        let known = engine.topology();
        engine.set_topology(Topology {
            term: match primary {
                Some(lease) => i64::try_from(lease.epoch).unwrap_or(i64::MAX),
                None if known.config.members.iter().all(|member| member.host.is_empty()) => 0,
                None => known.term,
            },
            config: config.clone(),
            own: place(&self.host).unwrap_or(0),
            primary: primary.and_then(|lease| place(&lease.holder)),
            changes: 0,
        });
    }

    /// Says to clients at once that the primary takes no writes any more, or does again.
    fn step_down(&self, engine: &Engine, steps_down: bool) -> Lsn {
        let mut state = self.state();
        let last = match steps_down {
            true => engine.end_term(),
            false => {
                engine.resume_term();
                engine.last_lsn()
            }
        };
        state.steps_down = steps_down;
        self.tell_topology(&state);
        last
    }

    fn announce(&self, state: &mut State) -> Result<(), LogError> {
        let Some(engine) = &state.engine else { return Ok(()) };
        // Before the positions, which may have gone on.
        let (lsn, durable) = (engine.last_lsn(), engine.durable_lsn());
        let positions = engine.positions();
        let mut out = RawWriter::onto(Vec::new());
        out.append("host", self.host.as_str());
        out.append("format", config::FORMAT);
        out.append("set", self.set.as_str());
        out.append("primary", state.own.is_some());
        out.append("electable", self.may_lead(state));
        // What a primary has and the log does not, others may have written otherwise by the time that this is read.
        let applied = lsn.min(engine.committed_lsn());
        out.append("applied", i64::try_from(applied.0).unwrap_or(i64::MAX));
        // For that alone the log need not be kept.
        let kept = applied.min(durable);
        out.append("kept", i64::try_from(kept.0).unwrap_or(i64::MAX));
        out.append("term", positions.last.term);
        out.append("optime", positions.last.ts);
        out.append("durable", positions.durable.ts);
        // So that what is said again is not what was said before.
        let uptime = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        out.append("uptimeMS", uptime);
        self.log.announce(&self.host, &out.finish())?;
        (state.announced, state.announced_lsn) = (Some(Instant::now()), lsn);
        Ok(())
    }

    fn hear(&self, state: &mut State) -> Result<(), LogError> {
        let now = Instant::now();
        let mut others = Vec::new();
        for (_, said) in self.log.announcements()? {
            let Some(mut other) = decode(&said).filter(|other| other.name != self.host) else {
                continue;
            };
            let heard = state
                .heard
                .entry(other.name.clone())
                .or_insert_with(|| (Vec::new(), now));
            if heard.0 != said {
                *heard = (said, now);
            }
            other.age_ms = u64::try_from(heard.1.elapsed().as_millis()).unwrap_or(u64::MAX);
            others.push(other);
        }
        if let Some(engine) = &state.engine {
            engine.note_members(others);
        }
        Ok(())
    }

    /// Gives the lease up, once the log has everything.
    pub(super) fn retire(&self, patience: Duration) {
        let Some(engine) = self.state().engine.clone() else {
            return;
        };
        if self.is_primary() {
            let last = engine.end_term();
            if reached(&engine, last, Guarantee::Committed, patience) {
                self.give_up(Duration::ZERO, None);
            }
        }
    }

    /// Whether it is up to this member to upload checkpoints: a secondary spares the primary the work. Of several it is the one that
    /// uploaded the newest (`last_by`, as ids of checkpoints name members), whose base has most of its blocks where that one has
    /// them.
    pub(super) fn uploads(&self, last_by: Option<&str>) -> bool {
        let state = self.state();
        let others = state.heard.iter().filter(|(_, (_, at))| at.elapsed() < ALIVE);
        match state.own {
            Some(_) => others.count() == 0,
            None => {
                let primary = state.held.as_ref().map(|lease| lease.holder.as_str());
                let mut secondaries = others.filter(|(name, _)| Some(name.as_str()) != primary);
                let rank = |name: &str| (Some(&*checkpoints::name_of(name)) != last_by, name.to_owned());
                secondaries.all(|(name, _)| rank(name) > rank(&self.host))
            }
        }
    }

    /// The last commit that all members of which anything was heard lately have on their disks, by what they say now.
    pub(super) fn kept_by_all(&self) -> Result<u64, LogError> {
        let mut state = self.state();
        self.hear(&mut state)?;
        let heard = state.heard.values().filter(|(_, at)| at.elapsed() < REMEMBERED);
        let kept = heard.filter_map(|(said, _)| kept_of(said));
        let own = state.engine.as_ref().map(|engine| engine.durable_lsn().0);
        Ok(kept.chain(own).min().unwrap_or(0))
    }

    /// Makes the primary a secondary, as [`Steward::step_down`] says; with `heir` that member is the next one.
    fn leave(
        self: &Arc<Self>,
        period: Duration,
        catch_up: Duration,
        force: bool,
        heir: Option<&str>,
    ) -> Result<(), String> {
        let engine = self.state().engine.clone().ok_or_else(gone)?;
        if !self.is_primary() {
            return Err("not primary so can't step down".into());
        }
        let begun = Instant::now();
        let last = self.step_down(&engine, true);
        let is_shipped = reached(&engine, last, Guarantee::Committed, catch_up);
        let left = || catch_up.saturating_sub(begun.elapsed());
        let has_all = || {
            let there = engine.members();
            heir.is_none_or(|heir| {
                there
                    .iter()
                    .any(|member| member.name == heir && member.applied >= last.0)
            })
        };
        let mut may_leave = force || (is_shipped && reached(&engine, last, Guarantee::Applied(2), left()));
        while may_leave && !has_all() {
            may_leave = !left().is_zero() && !self.stop.wait(PROMPT);
        }
        if !may_leave {
            self.step_down(&engine, false);
            return Err("No electable secondaries caught up as of now. Please use the replSetStepDown command with the argument \
                        {force: true} to force node to step down."
                .into());
        }
        self.give_up(period, heir);
        // The answer goes out first.
        let keeper = self.clone();
        let later = move || {
            if !keeper.stop.wait(FAREWELL) {
                keeper.over("stepped down");
            }
        };
        spawn("cluster-farewell", later).map(|_| ()).map_err(|e| e.to_string())
    }

    /// Gives the lease up, to `heir` if there is one, and does not take it again for `period`.
    pub(super) fn give_up(&self, period: Duration, heir: Option<&str>) {
        let mut state = self.state();
        let Some(version) = state.own.take() else { return };
        let lease = Lease {
            epoch: state.epoch,
            heir: heir.unwrap_or_default().to_owned(),
            barred: self.host.clone(),
            barred_ms: u64::try_from(period.as_millis()).unwrap_or(u64::MAX),
            ..Lease::default()
        };
        // Otherwise it runs out.
        if let Err(error) = self.log.replace_record(lease::RECORD, version, &lease.encode()) {
            tracing::warn!(%error, "the lease is not given up");
        }
        state.held = None;
        state.frozen_until = Instant::now().checked_add(period.max(FAREWELL * 2));
    }
}

/// Waits until a commit has come so far. False if it took too long.
fn reached(engine: &Engine, lsn: Lsn, guarantee: Guarantee, at_most: Duration) -> bool {
    let (done, is_done) = mpsc::channel();
    engine.on_reached(lsn, guarantee, move |result| {
        // Who waits may have left.
        let _ = done.send(result.is_ok());
    });
    is_done.recv_timeout(at_most).unwrap_or(false)
}

fn decode(said: &[u8]) -> Option<MemberState> {
    let said = RawDoc::validate(said).ok()?;
    let number = |name| match said.get(name) {
        Some(ValueRef::Int64(number)) => Some(number),
        _ => None,
    };
    let time = |name| match said.get(name) {
        Some(ValueRef::Timestamp(time)) => Some(time),
        _ => None,
    };
    let term = number("term")?;
    let at = |ts: Timestamp| OpTime { term, ts };
    let ValueRef::String(host) = said.get("host")? else {
        return None;
    };
    Some(MemberState {
        name: host.to_owned(),
        applied: u64::try_from(number("applied")?).ok()?,
        optime: at(time("optime")?),
        durable: at(time("durable")?),
        is_primary: said.get("primary").is_some_and(|primary| primary.truthy()),
        is_electable: said.get("electable").is_some_and(|electable| electable.truthy()),
        age_ms: 0,
        uptime_secs: u64::try_from(number("uptimeMS")?).ok()? / 1000,
    })
}

/// The newest format that a member knows, by what it said; the first where it says nothing of it.
fn format_of(said: &[u8]) -> i64 {
    let said = RawDoc::validate(said).ok();
    let format = said.and_then(|said| said.get("format").and_then(safe_i64));
    format.unwrap_or(1)
}

/// The last commit of the log that a member has on its disk, by what it said. Versions before said only what it shows.
fn kept_of(said: &[u8]) -> Option<u64> {
    let said = RawDoc::validate(said).ok()?;
    let number = |name| said.get(name).and_then(safe_i64).and_then(|n| u64::try_from(n).ok());
    number("kept").or_else(|| number("applied"))
}

fn gone() -> String {
    "the member is stopping".into()
}

/// What commands may ask of the keeper, for as long as it is there.
struct KeeperSteward(std::sync::Weak<Keeper>);

impl Steward for KeeperSteward {
    fn step_down(&self, period: Duration, catch_up: Duration, force: bool) -> Result<(), String> {
        let keeper = self.0.upgrade().ok_or_else(gone)?;
        keeper.leave(period, catch_up, force, None)
    }

    fn freeze(&self, period: Duration) {
        if let Some(keeper) = self.0.upgrade() {
            keeper.state().frozen_until = Instant::now().checked_add(period);
        }
    }
    fn reconfigure(&self, wanted: Configuration, force: bool) -> nestor_model::Result<()> {
        let Some(keeper) = self.0.upgrade() else {
            nestor_model::bail!(ShutdownInProgress, "{}", gone());
        };
        let config = config::reconfigure(&*keeper.log, &keeper.host, wanted, force)?;
        let mut state = keeper.state();
        state.config = config;
        keeper.tell_topology(&state);
        Ok(())
    }
}
