//! Members of a set in one thread, with clocks that go at different speeds and a log in memory: lease, fencing, applying, dropping and
//! trimming, in any order that a seed gives. Nothing of it depends on time or threads, so a seed that fails fails again.
//!
//! `NESTOR_SIMULATION_SEEDS` says how many seeds (200), `NESTOR_SIMULATION_SEED` runs a single one.

// All of it is a test.
#![allow(clippy::unwrap_used)]

use nestor_cluster::memory::{Fate, MemoryLog};
use nestor_cluster::{Entry, Lease, LeaseWatch, Log, LogError, Reader, Standing, Writer, lease, reconcile};
use nestor_model::random::Random;
use std::collections::BTreeMap;
use std::time::Duration;

const LEASE: Duration = Duration::from_millis(2_000);
const STEPS: usize = 1_500;
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

enum Role {
    Down,
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
    role: Role,
    watch: LeaseWatch,
    /// In thousandths of the real time.
    speed: u64,
    /// Nothing of it happens before that step.
    paused_until: usize,
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
    trimmed: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let random = Random::new(seed);
        let members = NAMES.map(|name| Member {
            name,
            journal: Vec::new(),
            base: 0,
            role: Role::Down,
            watch: LeaseWatch::new(name, LEASE),
            speed: 500 + random.next() % 1_500,
            paused_until: 0,
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
            Role::Taker { keeps_tail } => self.shut_out(at, keeps_tail, is_calm),
            Role::Candidate { .. } => self.catch_up(at),
            Role::Secondary { .. } if self.below(3) == 0 => self.look(at, is_calm),
            Role::Secondary { .. } => self.follow(at),
            Role::Primary { .. } => match self.below(8) {
                0 | 1 => self.look(at, is_calm),
                2..=4 => self.ship(at, is_calm),
                5 => self.trim(at, is_calm),
                _ if is_calm => {}
                _ => self.commit(at),
            },
        }
        let member = &self.members[at];
        let sure = match &member.role {
            Role::Primary { shipped, .. } => *shipped,
            Role::Secondary { .. } => member.last(),
            Role::Down | Role::Taker { .. } | Role::Candidate { .. } => member.base,
        };
        if self.below(10) == 0 && sure > member.base {
            self.members[at].base += 1 + self.below(sure - self.members[at].base);
        }
    }

    /// A member starts: it takes the lease if it can, and otherwise follows.
    fn start(&mut self, at: usize, is_calm: bool) {
        let standing = self.standing(at);
        if let Standing::Free(version) | Standing::Own(version) = standing
            && self.take(at, version, is_calm)
        {
            return;
        }
        let Ok(mut reader) = self.log.open_reader() else { return };
        let Ok(kept) = self.agreed(at, |seq| reader.read(seq - 1, 1)) else {
            return;
        };
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
            let Ok(kept) = self.agreed(at, |seq| writer.read(seq - 1, 1)) else {
                return;
            };
            if kept < log_last {
                self.cut(at, kept);
            }
        }
        while self.members[at].last() < log_last {
            let Ok(entries) = writer.read(self.members[at].last(), 64) else {
                return;
            };
            self.members[at].apply(entries);
        }
        let shipped = log_last;
        self.members[at].role = Role::Primary { writer, shipped };
    }

    fn agreed(&self, at: usize, mut read: impl FnMut(u64) -> Result<Vec<Entry>, LogError>) -> Result<u64, LogError> {
        let member = &self.members[at];
        let kept = reconcile(member.base, 0, member.last(), |seq| {
            // What was trimmed is in all bases.
            if seq <= self.trimmed {
                return Ok(true);
            }
            let found = read(seq)?;
            Ok(found.first().is_some_and(|entry| Some(&entry.frame) == member.at(seq)))
        })?;
        Ok(kept.unwrap_or_else(|| panic!("seed {}: the base of {} is not in the log", self.seed, member.name)))
    }

    fn cut(&mut self, at: usize, kept: u64) {
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
        let entries = reader.read(after, 64).expect("a secondary's place is kept");
        self.members[at].apply(entries);
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

    /// The primary removes what all members have in their bases.
    fn trim(&mut self, at: usize, is_calm: bool) {
        let kept = self.members.iter().map(|m| m.base).min().unwrap_or(0);
        self.decide(is_calm);
        if let Role::Primary { writer, .. } = &mut self.members[at].role {
            // Unanswered is done.
            let result = writer.trim(kept);
            if !matches!(result, Err(LogError::Fenced(_))) {
                self.trimmed = self.trimmed.max(kept.saturating_sub(1));
            }
        }
    }

    /// What was not synced is lost; the base is synced.
    fn crash(&mut self, at: usize) {
        let member = &self.members[at];
        let kept = member.base + self.below(member.last() - member.base + 1);
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
            for seq in self.trimmed + 1..=member.base {
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

#[test]
fn no_acknowledged_commit_is_lost() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("NESTOR_SIMULATION_SEED") {
        World::new(seed).run();
        return;
    }
    let (mut elections, mut dropped, mut acknowledged, mut trimmed) = (0, 0, 0, 0);
    for seed in 0..number("NESTOR_SIMULATION_SEEDS").unwrap_or(200) {
        let mut world = World::new(seed);
        world.run();
        elections += world.elections;
        dropped += world.dropped;
        acknowledged += world.acknowledged.len();
        trimmed += world.trimmed;
    }
    println!("{elections} elections, {acknowledged} commits acknowledged, {dropped} dropped, {trimmed} trimmed");
    assert!(
        elections > 0 && dropped > 0 && acknowledged > 0 && trimmed > 0,
        "nothing was tried"
    );
}
