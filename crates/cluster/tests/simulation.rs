//! Members of a set in one thread, with clocks that go at different speeds and a log in memory: lease, fencing, applying, dropping, checkpoints and
//! trimming, in any order that a seed gives. Nothing of it depends on time or threads, so a seed that fails fails again.
//!
//! What is decided here is decided by the code of members: [`LeaseWatch`], [`reconcile`], [`kept_checkpoints`], [`keeps_from`]. Members are away for longer
//! than the log waits for them, lose their directories and begin from a checkpoint that others remove meanwhile; half of the seeds keep moments to
//! restore.
//!
//! `NESTOR_SIMULATION_SEEDS` says how many seeds (200), `NESTOR_SIMULATION_SEED` runs a single one.

// All of it is a test.
#![allow(clippy::unwrap_used)]

use nestor_cluster::memory::{Fate, MemoryLog};
use nestor_cluster::trimming::{Span, keeps_from, kept_checkpoints};
use nestor_cluster::{Entry, Lease, LeaseWatch, Log, LogError, Reader, Standing, Writer, lease, reconcile};
use nestor_model::random::Random;
use std::collections::BTreeMap;
use std::time::Duration;

const LEASE: Duration = Duration::from_millis(2_000);
const STEPS: usize = 1_500;
/// How long a member is remembered of which nothing is heard.
const REMEMBERED: Duration = Duration::from_secs(4);
/// The record that lists checkpoints.
const CHECKPOINTS: &str = "checkpoints";
/// Commits after which the next one is due.
const CHECKPOINT_COMMITS: u64 = 8;
const NAMES: [&str; 3] = ["a:1", "b:1", "c:1"];

/// A commit: what identifies it, and the hash of the one before.
type Frame = Vec<u8>;

fn frame(id: u64, before: Option<&Frame>) -> Frame {
    let previous = before.map_or(0, hash);
    [id.to_le_bytes(), previous.to_le_bytes()].concat()
}

fn hash(frame: &Frame) -> u64 {
    frame.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A fault that the simulation has to find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// One entry too many is trimmed.
    TrimsTooMuch,
    /// A primary says that it has what the log may never have.
    SaysTooMuch,
    /// Members say to have what a crash takes from them.
    SaysUnsynced,
    /// A primary trims before it has looked what others lack.
    TrimsUnheard,
    /// Checkpoints go without regard to moments.
    KeepsTwo,
}

/// A checkpoint, as the list has it: its number, the last commit in its base, and when the last commits of base and journal were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Checkpoint {
    id: u64,
    seq: u64,
    span: Span,
}

/// What was uploaded of one: who did, and all commits that it has.
struct Uploaded {
    by: usize,
    seq: u64,
    journal: Vec<Frame>,
}

enum Role {
    Down,
    /// Its directory is empty, and it has read the list.
    Beginning {
        list: Vec<Checkpoint>,
    },
    Secondary {
        reader: Box<dyn Reader>,
    },
    /// It has the lease.
    Taker {
        keeps_tail: bool,
    },
    /// It has the lease and shut the others out; what the log has is not applied yet.
    Candidate {
        writer: Box<dyn Writer>,
        keeps_tail: bool,
    },
    Primary {
        writer: Box<dyn Writer>,
        shipped: u64,
    },
}

struct Member {
    name: &'static str,
    /// Commits 1, 2 and so on.
    journal: Vec<Frame>,
    /// Commits up to here are in the base and cannot be dropped.
    base: u64,
    /// Commits up to here survive a crash.
    durable: u64,
    role: Role,
    watch: LeaseWatch,
    /// In thousandths of the real time.
    speed: u64,
    /// Nothing of it happens before that step.
    paused_until: usize,
    /// What it said last: how far it was, and when.
    said: Option<(u64, Duration)>,
    /// It was silent for so long that the log did not wait for it.
    may_be_too_old: bool,
    /// What others said last and since when it knows, since it started.
    heard: BTreeMap<String, (Vec<u8>, Duration)>,
    /// The version of the list before, and a checkpoint that it has uploaded and that is not on it.
    uploading: Option<(u64, Checkpoint)>,
}

impl Member {
    fn last(&self) -> u64 {
        self.journal.len() as u64
    }

    fn at(&self, seq: u64) -> Option<&Frame> {
        self.journal.get(usize::try_from(seq).ok()?.checked_sub(1)?)
    }

    fn apply(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            assert_eq!(entry.seq, self.last() + 1, "{}: the log has no holes", self.name);
            let follows = frame(
                u64::from_le_bytes(entry.frame[..8].try_into().unwrap()),
                self.journal.last(),
            );
            assert_eq!(
                entry.frame, follows,
                "{}: commit {} follows another one",
                self.name, entry.seq
            );
            self.journal.push(entry.frame);
        }
    }
}

struct World {
    seed: u64,
    random: Random,
    log: MemoryLog,
    now: Duration,
    step: usize,
    members: Vec<Member>,
    next_id: u64,
    /// What was acknowledged as never to be lost, and by which epoch.
    acknowledged: BTreeMap<u64, (Frame, u64)>,
    elections: usize,
    dropped: usize,
    /// Entries below are gone.
    trimmed: u64,
    fault: Fault,
    /// For how long moments are kept, a second for each millisecond of the clock; zero for not at all.
    age: Duration,
    /// When commits were made, by their ids.
    times: BTreeMap<u64, u64>,
    uploads: BTreeMap<u64, Uploaded>,
    /// New members that began from a checkpoint, and members that were older than the log.
    begun: usize,
    too_old: usize,
}

impl World {
    fn new(seed: u64, fault: Fault) -> Self {
        let random = Random::new(seed);
        let members = NAMES.map(|name| Member {
            name,
            journal: Vec::new(),
            base: 0,
            durable: 0,
            role: Role::Down,
            watch: LeaseWatch::new(name, LEASE),
            speed: 500 + random.next() % 1_500,
            paused_until: 0,
            said: None,
            may_be_too_old: false,
            heard: BTreeMap::new(),
            uploading: None,
        });
        Self {
            seed,
            random,
            log: MemoryLog::new(),
            now: Duration::ZERO,
            step: 0,
            members: members.into(),
            next_id: 1,
            acknowledged: BTreeMap::new(),
            elections: 0,
            dropped: 0,
            trimmed: 0,
            fault,
            age: Duration::from_secs(if seed.is_multiple_of(2) { 0 } else { 6_000 }),
            times: BTreeMap::new(),
            uploads: BTreeMap::new(),
            begun: 0,
            too_old: 0,
        }
    }

    fn below(&self, n: u64) -> u64 {
        self.random.next() % n
    }

    /// Decides about the next request to the store.
    fn decide(&self, is_calm: bool) {
        if !is_calm {
            match self.below(10) {
                0 => self.log.fate(Fate::Lost),
                1 => self.log.fate(Fate::Unanswered),
                _ => self.log.fate(Fate::Done),
            }
        }
    }

    fn run(&mut self) {
        for step in 0..STEPS {
            self.step = step;
            self.now += Duration::from_millis(self.below(60));
            let at = self.below(3) as usize;
            if self.members[at].paused_until > step {
                continue;
            }
            match self.below(400) {
                5 => self.lose_directory(at),
                0 => self.members[at].paused_until = step + self.below(400) as usize,
                1..5 => self.crash(at),
                _ => self.act(at, false),
            }
            self.check();
        }
        // In the end nothing fails any more, and all agree.
        self.step = usize::MAX;
        for step in 0..2_000 {
            // At the very end no lease runs out.
            self.now += Duration::from_millis(if step < 1_000 { 20 } else { 0 });
            let at = self.below(3) as usize;
            self.act(at, true);
        }
        self.check();
        let primaries = self.members.iter().filter(|m| matches!(m.role, Role::Primary { .. }));
        assert_eq!(primaries.count(), 1, "seed {}: one primary in the end", self.seed);
        let primary = self.primary().expect("counted");
        for _ in 0..40 {
            self.ship(primary, true);
            for at in 0..3 {
                self.follow(at);
            }
        }
        for member in &self.members {
            assert_eq!(
                member.journal, self.members[primary].journal,
                "seed {}: {} has what the primary has",
                self.seed, member.name
            );
        }
        for (seq, (frame, _)) in &self.acknowledged {
            assert_eq!(
                self.members[primary].at(*seq),
                Some(frame),
                "seed {}: commit {seq}",
                self.seed
            );
        }
    }

    fn primary(&self) -> Option<usize> {
        let is_primary = |m: &Member| matches!(m.role, Role::Primary { .. });
        self.members.iter().position(is_primary)
    }

    fn act(&mut self, at: usize, is_calm: bool) {
        match self.members[at].role {
            Role::Down => self.start(at, is_calm),
            Role::Beginning { .. } => self.begin(at),
            Role::Secondary { .. } | Role::Primary { .. } if self.below(6) == 0 => self.say(at, is_calm),
            Role::Secondary { .. } | Role::Primary { .. } if self.below(8) == 0 => self.upload(at, is_calm),
            Role::Taker { keeps_tail } => self.shut_out(at, keeps_tail, is_calm),
            Role::Candidate { .. } => self.catch_up(at),
            Role::Secondary { .. } if self.below(3) == 0 => self.look(at, is_calm),
            Role::Secondary { .. } => self.follow(at),
            Role::Primary { .. } => match self.below(8) {
                0 | 1 => self.look(at, is_calm),
                2..=4 => self.ship(at, is_calm),
                5 => self.trim(at, is_calm),
                6 if self.below(2) == 0 => self.hear(at),
                _ if is_calm => {}
                _ => self.commit(at),
            },
        }
        let member = &self.members[at];
        let sure = match &member.role {
            Role::Primary { shipped, .. } => *shipped,
            Role::Secondary { .. } => member.last(),
            _ => member.base,
        };
        let (last, durable) = (member.last(), member.durable.min(member.last()).max(member.base));
        self.members[at].durable = durable + self.below(last - durable + 1);
        let member = &self.members[at];
        if self.below(10) == 0 && sure > member.base {
            self.members[at].base += 1 + self.below(sure - self.members[at].base);
        }
    }

    /// A member starts: it takes the lease if it can, and otherwise follows.
    fn start(&mut self, at: usize, is_calm: bool) {
        self.members[at].heard.clear();
        self.members[at].uploading = None;
        if self.members[at].journal.is_empty() {
            let list = self.list().1;
            if !list.is_empty() {
                self.members[at].role = Role::Beginning { list };
                return;
            }
        }
        let standing = self.standing(at);
        if let Standing::Free(version) | Standing::Own(version) = standing
            && self.take(at, version, is_calm)
        {
            return;
        }
        let Ok(mut reader) = self.log.open_reader() else { return };
        let first = reader.read(self.members[at].base, 1);
        let Ok(kept) = self.agreed(at, first, |seq| reader.entry(seq)) else {
            return;
        };
        let Some(kept) = kept else { return self.is_too_old(at) };
        self.cut(at, kept);
        self.members[at].role = Role::Secondary { reader };
    }

    fn standing(&mut self, at: usize) -> Standing {
        let found = self.log.record(lease::RECORD).expect("reading never fails here");
        let found = found.map(|(version, bytes)| (version, Lease::decode(&bytes).expect("a lease")));
        let member = &mut self.members[at];
        let clock = self.now * u32::try_from(member.speed).unwrap() / 1_000;
        let found = found.as_ref().map(|(version, lease)| (*version, lease));
        member.watch.look(clock, found)
    }

    /// Takes the lease. A secondary has nothing that the log does not have; who starts may keep what it has if
    /// nobody wrote after it.
    fn take(&mut self, at: usize, version: u64, is_calm: bool) -> bool {
        self.decide(is_calm);
        let lease = Lease {
            holder: NAMES[at].into(),
            ..Lease::default()
        };
        if self.log.replace_record(lease::RECORD, version, &lease.encode()) != Ok(true) {
            return false;
        }
        let keeps_tail = matches!(self.members[at].role, Role::Down);
        self.members[at].role = Role::Taker { keeps_tail };
        if !is_calm && self.below(3) == 0 {
            self.members[at].paused_until = self.step + self.below(600) as usize;
        }
        true
    }

    /// Any time may pass before it does, in which others take the lease, shut it out, and write.
    fn shut_out(&mut self, at: usize, keeps_tail: bool, is_calm: bool) {
        self.decide(is_calm);
        if let Ok(writer) = self.log.open_writer() {
            self.elections += 1;
            self.members[at].heard.clear();
            self.members[at].uploading = None;
            self.members[at].role = Role::Candidate { writer, keeps_tail };
        }
    }

    fn catch_up(&mut self, at: usize) {
        let Role::Candidate { mut writer, keeps_tail } = std::mem::replace(&mut self.members[at].role, Role::Down)
        else {
            return;
        };
        let Ok(log_last) = writer.last() else { return };
        if keeps_tail {
            let first = writer.read(self.members[at].base, 1);
            let Ok(kept) = self.agreed(at, first, |seq| Ok(writer.read(seq - 1, 1)?.pop())) else {
                return;
            };
            let Some(kept) = kept else { return self.is_too_old(at) };
            if kept < log_last {
                self.cut(at, kept);
            }
        }
        while self.members[at].last() < log_last {
            let entries = match writer.read(self.members[at].last(), 64) {
                Ok(entries) => entries,
                Err(LogError::Trimmed { .. }) => return self.is_too_old(at),
                Err(_) => return,
            };
            self.members[at].apply(entries);
        }
        let shipped = log_last;
        self.members[at].role = Role::Primary { writer, shipped };
    }

    /// As members do: what was trimmed is known by what follows it. `None`: it is older than the log.
    fn agreed(
        &self,
        at: usize,
        first: Result<Vec<Entry>, LogError>,
        mut entry: impl FnMut(u64) -> Result<Option<Entry>, LogError>,
    ) -> Result<Option<u64>, LogError> {
        let member = &self.members[at];
        let first = match first {
            Ok(_) => 0,
            Err(LogError::Trimmed { first, .. }) => first,
            Err(error) => return Err(error),
        };
        reconcile(member.base, first, member.last(), |seq| {
            let found = entry(seq)?;
            Ok(found.is_some_and(|entry| Some(&entry.frame) == member.at(seq)))
        })
    }

    /// A member cannot go on, and begins with an empty directory. That may happen to those only of which nothing was heard for long.
    fn is_too_old(&mut self, at: usize) {
        let member = &self.members[at];
        assert!(
            member.may_be_too_old,
            "seed {}, step {}: {} was heard and is older than the log",
            self.seed, self.step, member.name
        );
        self.too_old += 1;
        self.empty(at);
    }

    fn empty(&mut self, at: usize) {
        let member = &mut self.members[at];
        member.journal.clear();
        (member.base, member.durable, member.role) = (0, 0, Role::Down);
        (member.said, member.may_be_too_old) = (None, false);
        (member.heard, member.uploading) = (BTreeMap::new(), None);
        member.watch = LeaseWatch::new(member.name, LEASE);
    }

    fn lose_directory(&mut self, at: usize) {
        // What is acknowledged is in the log.
        self.empty(at);
        self.members[at].paused_until = self.step + self.below(100) as usize;
    }

    /// The list of checkpoints and its version.
    fn list(&self) -> (u64, Vec<Checkpoint>) {
        let Some((version, bytes)) = self.log.record(CHECKPOINTS).expect("reading never fails here") else {
            return (0, Vec::new());
        };
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let checkpoint = |words: &[u64]| Checkpoint {
            id: words[0],
            seq: words[1],
            span: Span {
                from: words[2],
                until: words[3],
            },
        };
        (version, words.chunks(4).map(checkpoint).collect())
    }

    fn time_of(&self, frame: Option<&Frame>) -> u64 {
        let id = frame.map(|frame| u64::from_le_bytes(frame[..8].try_into().unwrap()));
        id.map_or(0, |id| self.times[&id])
    }

    /// A new member takes the newest checkpoint that is still there.
    fn begin(&mut self, at: usize) {
        let Role::Beginning { list } = std::mem::replace(&mut self.members[at].role, Role::Down) else {
            return;
        };
        let Some(found) = list
            .iter()
            .rev()
            .find_map(|checkpoint| self.uploads.get(&checkpoint.id))
        else {
            return;
        };
        self.begun += 1;
        let first = self.log.open_reader().unwrap().entry(found.seq).unwrap();
        let is_listed = self.list().1.iter().any(|listed| listed.seq == found.seq);
        assert!(
            !is_listed || first.is_some_and(|first| Some(&first.frame) == found.journal.get(found.seq as usize - 1)),
            "seed {}, step {}: the log does not reach back to a checkpoint",
            self.seed,
            self.step
        );
        (self.members[at].journal, self.members[at].base) = (found.journal.clone(), found.seq);
    }

    /// A member says how far it is.
    fn say(&mut self, at: usize, is_calm: bool) {
        self.decide(is_calm);
        let now = self.now;
        let member = &self.members[at];
        let applied = match &member.role {
            Role::Primary { shipped, .. } if self.fault != Fault::SaysTooMuch => *shipped,
            _ => member.last(),
        };
        let applied = match self.fault {
            Fault::SaysUnsynced => applied,
            _ => applied.min(member.durable.max(member.base)),
        };
        let said = [applied.to_le_bytes(), (now.as_nanos() as u64).to_le_bytes()].concat();
        let _ = self.log.announce(member.name, &said);
        // Others may hear it although the answer was lost.
        let heard = self.log.announcements().expect("reading never fails here");
        if heard.contains(&(member.name.to_owned(), said)) {
            let member = &mut self.members[at];
            member.said = Some((applied, now));
            member.may_be_too_old &= applied <= self.trimmed;
        }
    }

    /// A primary looks what others say.
    fn hear(&mut self, at: usize) {
        for (name, said) in self.log.announcements().expect("reading never fails here") {
            if name == self.members[at].name {
                continue;
            }
            let now = self.now;
            let heard = self.members[at].heard.entry(name).or_insert_with(|| (Vec::new(), now));
            if heard.0 != said {
                *heard = (said, now);
            }
        }
    }

    /// Uploads a checkpoint if one is due, or lists the one that it has uploaded: others may have been faster.
    fn upload(&mut self, at: usize, is_calm: bool) {
        let Some((version, checkpoint)) = self.members[at].uploading.take() else {
            let (version, list) = self.list();
            let newest = list.last().map_or(0, |newest| newest.seq);
            let member = &self.members[at];
            let seq = match &member.role {
                Role::Primary { shipped, .. } => *shipped,
                _ => member.last(),
            };
            if seq < newest + CHECKPOINT_COMMITS {
                return;
            }
            let (id, journal) = (self.next_id, member.journal.clone());
            self.next_id += 1;
            let span = Span {
                from: self.time_of(member.at(seq)),
                until: self.time_of(member.journal.last()),
            };
            self.uploads.insert(id, Uploaded { by: at, seq, journal });
            self.members[at].base = self.members[at].base.max(seq);
            self.members[at].uploading = Some((version, Checkpoint { id, seq, span }));
            return;
        };
        let (_, mut list) = self.list();
        list.push(checkpoint);
        let spans: Vec<Span> = list.iter().map(|checkpoint| checkpoint.span).collect();
        let age = match self.fault {
            Fault::KeepsTwo => Duration::ZERO,
            _ => self.age,
        };
        let kept: Vec<Checkpoint> = kept_checkpoints(&spans, age).into_iter().map(|at| list[at]).collect();
        let words = kept
            .iter()
            .flat_map(|kept| [kept.id, kept.seq, kept.span.from, kept.span.until]);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        self.decide(is_calm);
        match self.log.replace_record(CHECKPOINTS, version, &bytes) {
            Ok(true) => {
                let begins = checkpoint.span.until.saturating_sub(self.age.as_secs());
                let reaches = |list: &[Checkpoint]| list.iter().any(|listed| listed.span.from <= begins);
                assert!(
                    self.age.is_zero() || !reaches(&list) || reaches(&kept),
                    "seed {}, step {}: a moment cannot be restored any more",
                    self.seed,
                    self.step
                );
                let oldest = kept[0].seq;
                let is_kept = |id: &u64| kept.iter().any(|kept| kept.id == *id);
                self.uploads
                    .retain(|id, uploaded| is_kept(id) || (uploaded.by != at && uploaded.seq > oldest));
            }
            Ok(false) => {
                self.uploads.remove(&checkpoint.id);
            }
            // It may be on the list.
            Err(_) => {}
        }
    }

    fn cut(&mut self, at: usize, kept: u64) {
        self.members[at].durable = self.members[at].durable.min(kept);
        let gone = self.members[at].journal.split_off(usize::try_from(kept).unwrap());
        for (i, frame) in gone.iter().enumerate() {
            let seq = kept + 1 + i as u64;
            let lost = self
                .acknowledged
                .get(&seq)
                .is_some_and(|(acknowledged, _)| acknowledged == frame);
            // The log may have it although this member did not look for it there yet.
            let in_log = self.log.open_reader().and_then(|mut reader| reader.read(seq - 1, 1));
            let in_log = in_log.is_ok_and(|found| found.first().is_some_and(|entry| entry.frame == *frame));
            assert!(
                !lost || in_log,
                "seed {}: commit {seq} was acknowledged and is dropped",
                self.seed
            );
        }
        self.dropped += gone.len();
    }

    fn follow(&mut self, at: usize) {
        let after = self.members[at].last();
        let Role::Secondary { reader } = &mut self.members[at].role else {
            return;
        };
        match reader.read(after, 64) {
            Ok(entries) => self.members[at].apply(entries),
            // It starts anew, and finds that it is older than the log.
            Err(LogError::Trimmed { .. }) => self.members[at].role = Role::Down,
            Err(error) => panic!("{error}"),
        }
    }

    fn look(&mut self, at: usize, is_calm: bool) {
        let is_primary = matches!(self.members[at].role, Role::Primary { .. });
        match (self.standing(at), is_primary) {
            (Standing::Own(version), true) => {
                self.decide(is_calm);
                let lease = Lease {
                    holder: NAMES[at].into(),
                    ..Lease::default()
                };
                if self.log.replace_record(lease::RECORD, version, &lease.encode()) == Ok(false) {
                    self.members[at].role = Role::Down;
                }
            }
            (_, true) => self.members[at].role = Role::Down,
            (Standing::Free(version) | Standing::Own(version), false) => {
                self.take(at, version, is_calm);
            }
            (Standing::Held, false) => {}
        }
    }

    fn commit(&mut self, at: usize) {
        let id = self.next_id;
        self.next_id += 1;
        let member = &mut self.members[at];
        let next = frame(id, member.journal.last());
        member.journal.push(next);
        self.times.insert(id, self.now.as_millis() as u64);
    }

    fn ship(&mut self, at: usize, is_calm: bool) {
        self.decide(is_calm);
        let most = 1 + self.below(8);
        let member = &mut self.members[at];
        let Role::Primary { writer, shipped } = &mut member.role else {
            return;
        };
        let upto = (*shipped + most).min(member.journal.len() as u64);
        let entries: Vec<Entry> = (*shipped + 1..=upto)
            .map(|seq| Entry {
                seq,
                frame: member.journal[seq as usize - 1].clone(),
            })
            .collect();
        match writer.append(&entries) {
            Ok(()) => {
                *shipped = upto;
                let epoch = writer.epoch();
                for Entry { seq, frame } in entries {
                    let before = self.acknowledged.insert(seq, (frame.clone(), epoch));
                    let is_new = before.is_none_or(|before| before == (frame, epoch));
                    assert!(is_new, "seed {}: commit {seq} was acknowledged twice", self.seed);
                }
            }
            Err(LogError::Unavailable(_)) => {}
            // It starts anew.
            Err(_) => member.role = Role::Down,
        }
    }

    /// The primary removes what nobody needs any more.
    fn trim(&mut self, at: usize, is_calm: bool) {
        if self.fault != Fault::TrimsUnheard {
            self.hear(at);
        }
        let (_, list) = self.list();
        let member = &self.members[at];
        let heard = member.heard.values().filter(|(_, when)| self.now - *when < REMEMBERED);
        let applied = heard.map(|(said, _)| u64::from_le_bytes(said[..8].try_into().unwrap()));
        let own = Some(member.durable.max(member.base)).filter(|_| self.fault != Fault::SaysUnsynced);
        let applied = applied.chain(own).min().unwrap_or(u64::MAX);
        let last = self.time_of(member.journal.last());
        let begins = (!self.age.is_zero()).then(|| last.saturating_sub(self.age.as_secs()));
        let oldest = list.first().map(|oldest| (oldest.seq, oldest.span.from));
        let Some(from) = keeps_from(oldest, applied, begins) else {
            return;
        };
        let from = from + u64::from(self.fault == Fault::TrimsTooMuch);
        self.decide(is_calm);
        if let Role::Primary { writer, .. } = &mut self.members[at].role {
            // Unanswered is done; who is shut out starts anew.
            if let Err(LogError::Fenced(_)) = writer.trim(from) {
                self.members[at].role = Role::Down;
            }
        }
        if let Err(LogError::Trimmed { first, .. }) = self.log.open_reader().unwrap().read(0, 1)
            && first > self.trimmed + 1
        {
            self.trimmed = first - 1;
            for member in &mut self.members {
                let is_silent = member.said.is_none_or(|(_, when)| self.now - when >= REMEMBERED);
                // What it has beyond that it may have alone.
                let has = member.said.map_or(member.base, |(applied, _)| applied);
                member.may_be_too_old |= is_silent && has < first;
            }
            // The list may be a newer one by now; what was on it then is enough.
            let reaches = |checkpoint: &Checkpoint| {
                checkpoint.seq >= first && begins.is_none_or(|begins| checkpoint.span.from <= begins)
            };
            assert!(
                list.iter().any(reaches),
                "seed {}, step {}: nothing begins behind the log's end",
                self.seed,
                self.step
            );
        }
    }

    /// What was not synced is lost; the base is synced.
    fn crash(&mut self, at: usize) {
        let member = &self.members[at];
        let durable = member.durable.min(member.last()).max(member.base);
        let kept = durable + self.below(member.last() - durable + 1);
        let down_for = self.below(600) as usize;
        let member = &mut self.members[at];
        member.journal.truncate(usize::try_from(kept).unwrap());
        member.role = Role::Down;
        member.watch = LeaseWatch::new(member.name, LEASE);
        member.paused_until = self.step + down_for;
    }

    fn check(&mut self) {
        let mut reader = self.log.open_reader().unwrap();
        let log = reader.read(self.trimmed, usize::MAX).unwrap();
        for (i, entry) in log.iter().enumerate() {
            assert_eq!(
                entry.seq,
                self.trimmed + 1 + i as u64,
                "seed {}: a hole in the log",
                self.seed
            );
        }
        let at = |seq: u64| {
            log.get(usize::try_from(seq - self.trimmed).unwrap() - 1)
                .map(|e| &e.frame)
        };
        for (seq, (frame, _)) in self.acknowledged.range(self.trimmed + 1..) {
            assert_eq!(
                at(*seq),
                Some(frame),
                "seed {}, step {}: commit {seq} was lost",
                self.seed,
                self.step
            );
        }
        for member in &self.members {
            let is_new = matches!(member.role, Role::Down | Role::Beginning { .. });
            for seq in (self.trimmed + 1..=member.base).filter(|_| !is_new) {
                assert_eq!(
                    member.at(seq),
                    at(seq),
                    "seed {}, step {}: the base of {} has what the log does not have",
                    self.seed,
                    self.step,
                    member.name
                );
            }
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn no_acknowledged_commit_is_lost() {
    if let Some(seed) = number("NESTOR_SIMULATION_SEED") {
        World::new(seed, Fault::None).run();
        return;
    }
    let (mut elections, mut dropped, mut acknowledged, mut trimmed) = (0, 0, 0, 0);
    let (mut begun, mut too_old) = (0, 0);
    for seed in 0..number("NESTOR_SIMULATION_SEEDS").unwrap_or(200) {
        let mut world = World::new(seed, Fault::None);
        world.run();
        elections += world.elections;
        dropped += world.dropped;
        acknowledged += world.acknowledged.len();
        trimmed += world.trimmed;
        begun += world.begun;
        too_old += world.too_old;
    }
    println!(
        "{elections} elections, {acknowledged} commits acknowledged, {dropped} dropped, {trimmed} trimmed, {begun} members began from a \
         checkpoint, {too_old} were older than the log"
    );
    assert!(
        elections > 0 && dropped > 0 && acknowledged > 0 && trimmed > 0 && begun > 0 && too_old > 0,
        "nothing was tried"
    );
}

/// The simulation is worth something if it finds what is wrong.
#[test]
fn faults_are_found() {
    let seeds = number("NESTOR_SIMULATION_SEEDS").unwrap_or(400);
    let often = [
        Fault::TrimsTooMuch,
        Fault::SaysTooMuch,
        Fault::TrimsUnheard,
        Fault::KeepsTwo,
    ];
    // It takes a crash right after a trimming.
    let seldom = (seeds >= 5_000).then_some(Fault::SaysUnsynced);
    for fault in often.into_iter().chain(seldom) {
        let found = (0..seeds).find(|seed| std::panic::catch_unwind(|| World::new(*seed, fault).run()).is_err());
        println!("{fault:?} is found by seed {found:?}");
        assert!(found.is_some(), "{fault:?} is not found");
    }
}
