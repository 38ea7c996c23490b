//! Drives workers: each on a thread of its own, in a closed loop or at a fixed rate, until they have been measured for long enough.
//!
//! At a fixed rate an operation that begins late is measured from when it should have begun, so a server that stands still for a
//! second is seen by all who would have asked in that second, not only by the one that waited.

use crate::measure::histogram::Latencies;
use crate::measure::meter::{self, Spent};
use crate::measure::process::Processes;
use crate::statistics::steady::is_level;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What one operation took.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// What the server had it for.
    pub busy: Duration,
    /// When its last answer came.
    pub last: Instant,
    /// What it counts as: rows for what works on many, else 1.
    pub work: u64,
}

/// Does operations one after the other and checks their answers.
pub trait Worker: Send {
    /// The next operation; `None` when there is nothing left to do. An error is a message for the user: the server is gone, or an answer
    /// is wrong.
    fn step(&mut self) -> Result<Option<Done>, String>;
}

/// How a worker takes its operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// The next when the last is done.
    Closed,
    /// So many a second, whether or not the last is done in time.
    Rate(f64),
}

/// A worker, how it is paced, and the group that it is counted in.
pub struct Load<'w> {
    /// The worker.
    pub worker: Box<dyn Worker + 'w>,
    /// Its pace.
    pub pace: Pace,
    /// Its group, from 0.
    pub group: usize,
}

/// For how long.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The longest warming up may take; it ends sooner when the series are level.
    pub warm_max: Duration,
    /// How long is measured then, and until one operation has ended. Workers that finish end it sooner.
    pub measured: Duration,
    /// Between two samples.
    pub sample: Duration,
}

impl Times {
    /// Measures whatever the workers do from the first operation to the last.
    pub fn until_finished(sample: Duration) -> Self {
        Self {
            warm_max: Duration::ZERO,
            measured: Duration::MAX,
            sample,
        }
    }
}

/// One sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Seconds since the workers began.
    pub at: f64,
    /// Work done a second, by group.
    pub rates: Vec<f64>,
    /// The longest answer within it, in µs.
    pub longest_us: f64,
    /// Resident memory of the server, in bytes; 0 when it is not known.
    pub resident_bytes: f64,
    /// Page faults of the server a second.
    pub faults: f64,
}

/// What a group did while measured.
#[derive(Clone, Default)]
pub struct Group {
    /// Operations.
    pub operations: u64,
    /// What they count as.
    pub work: u64,
    /// Their response times.
    pub latencies: Latencies,
}

/// What came of it.
pub struct Outcome {
    /// By group.
    pub groups: Vec<Group>,
    /// What was used while measured.
    pub spent: Spent,
    /// Seconds of warming up.
    pub warmed: f64,
    /// Whether it had levelled when the measuring began.
    pub is_steady: bool,
    /// The series, warming up included.
    pub samples: Vec<Sample>,
    /// Why it ended too early; what is here was measured before.
    pub failure: Option<String>,
}

impl Outcome {
    /// Work a second of a group.
    pub fn rate(&self, group: usize) -> f64 {
        self.groups[group].work as f64 / self.spent.seconds.max(1e-9)
    }
}

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// What workers and the one who watches them share.
struct Shared {
    phase: AtomicU8,
    /// Work done so far, by group.
    work: Vec<AtomicU64>,
    longest_ns: AtomicU64,
    /// Operations that ended while measured.
    measured: AtomicU64,
    running: AtomicU64,
    has_failed: AtomicBool,
    failure: Mutex<Option<String>>,
}

/// Runs `loads`; `server` are the processes whose use is counted.
pub fn drive(loads: Vec<Load<'_>>, times: Times, server: Option<&Processes>) -> Outcome {
    let groups = loads.iter().map(|load| load.group + 1).max().unwrap_or(0);
    let shared = Shared {
        phase: AtomicU8::new(if times.warm_max.is_zero() { MEASURING } else { WARMING }),
        work: (0..groups).map(|_| AtomicU64::new(0)).collect(),
        longest_ns: AtomicU64::new(0),
        measured: AtomicU64::new(0),
        running: AtomicU64::new(loads.len() as u64),
        has_failed: AtomicBool::new(false),
        failure: Mutex::new(None),
    };
    let first = meter::read(server);
    let mut done: Vec<Group> = vec![Group::default(); groups];
    let mut outcome = std::thread::scope(|scope| {
        let threads: Vec<_> = loads
            .into_iter()
            .map(|load| {
                let (shared, group) = (&shared, load.group);
                (group, scope.spawn(move || work(load, shared)))
            })
            .collect();
        let outcome = watch(&shared, times, server, first);
        for (group, thread) in threads {
            match thread.join() {
                Ok(part) => {
                    done[group].operations += part.operations;
                    done[group].work += part.work;
                    done[group].latencies.add(&part.latencies);
                }
                Err(_) => fail(&shared, "a worker panicked".into()),
            }
        }
        outcome
    });
    outcome.groups = done;
    outcome.failure = shared.failure.lock().ok().and_then(|mut failure| failure.take());
    outcome
}

fn fail(shared: &Shared, reason: String) {
    shared.has_failed.store(true, Relaxed);
    if let Ok(mut failure) = shared.failure.lock() {
        failure.get_or_insert(reason);
    }
    shared.phase.store(OVER, Relaxed);
}

/// One worker's thread.
fn work(load: Load<'_>, shared: &Shared) -> Group {
    let Load {
        mut worker,
        pace,
        group,
    } = load;
    let mut part = Group::default();
    let begun = Instant::now();
    let mut number = 0u32;
    loop {
        if shared.phase.load(Relaxed) == OVER {
            break;
        }
        let intended = match pace {
            Pace::Closed => None,
            Pace::Rate(rate) => {
                let at = begun + Duration::from_secs_f64(f64::from(number) / rate.max(1e-6));
                if !wait_until(at, shared) {
                    break;
                }
                Some(at)
            }
        };
        number += 1;
        let done = match worker.step() {
            Ok(Some(done)) => done,
            Ok(None) => break,
            Err(reason) => {
                fail(shared, reason);
                break;
            }
        };
        let time = intended.map_or(done.busy, |at| done.last.saturating_duration_since(at));
        shared.work[group].fetch_add(done.work, Relaxed);
        shared.longest_ns.fetch_max(time.as_nanos() as u64, Relaxed);
        // What ends while measured counts, so that throughput is right for long operations too.
        if shared.phase.load(Relaxed) == MEASURING {
            shared.measured.fetch_add(1, Relaxed);
            part.operations += 1;
            part.work += done.work;
            part.latencies.record(time);
        }
    }
    shared.running.fetch_sub(1, Relaxed);
    // A server may have a process for each connection, whose counters are gone with it.
    while shared.phase.load(Relaxed) != OVER {
        std::thread::sleep(Duration::from_millis(1));
    }
    part
}

/// Sleeps until `at`; false when the run is over before.
fn wait_until(at: Instant, shared: &Shared) -> bool {
    loop {
        let missing = at.saturating_duration_since(Instant::now());
        if missing.is_zero() {
            return true;
        }
        std::thread::sleep(missing.min(Duration::from_millis(20)));
        if shared.phase.load(Relaxed) == OVER {
            return false;
        }
    }
}

/// Samples while the workers work; decides when they are warm and when it is enough.
fn watch(shared: &Shared, times: Times, server: Option<&Processes>, first: meter::Reading) -> Outcome {
    const POLL: Duration = Duration::from_millis(2);
    let begun = Instant::now();
    let mut samples: Vec<Sample> = Vec::new();
    let mut last = (begun, vec![0; shared.work.len()], meter::read(server));
    let mut measured_from = times.warm_max.is_zero().then_some((begun, first));
    let mut is_steady = false;
    let mut final_reading = None;
    loop {
        std::thread::sleep(POLL.min(times.sample));
        let now = Instant::now();
        let is_over = shared.phase.load(Relaxed) == OVER || shared.running.load(Relaxed) == 0;
        // A rate wants an operation that ended, however long it takes.
        let has_some = shared.measured.load(Relaxed) > 0;
        let is_enough = has_some && measured_from.is_some_and(|(from, _)| now.duration_since(from) >= times.measured);
        if is_over || is_enough {
            final_reading.get_or_insert_with(|| meter::read(server));
            shared.phase.store(OVER, Relaxed);
        }
        if now.duration_since(last.0) >= times.sample || (final_reading.is_some() && samples.is_empty()) {
            let work: Vec<u64> = shared.work.iter().map(|work| work.load(Relaxed)).collect();
            let reading = meter::read(server);
            let seconds = now.duration_since(last.0).as_secs_f64().max(1e-9);
            let spent = reading.since(&last.2);
            samples.push(Sample {
                at: now.duration_since(begun).as_secs_f64(),
                rates: work
                    .iter()
                    .zip(&last.1)
                    .map(|(now, then)| (now - then) as f64 / seconds)
                    .collect(),
                longest_us: shared.longest_ns.swap(0, Relaxed) as f64 / 1e3,
                resident_bytes: server.map_or(0.0, Processes::resident_bytes),
                faults: spent
                    .server
                    .map_or(0.0, |s| (s.faults_minor + s.faults_major) / seconds),
            });
            last = (now, work, reading);
        }
        if final_reading.is_some() {
            break;
        }
        if measured_from.is_none() {
            is_steady = are_level(&samples);
            if is_steady || begun.elapsed() >= times.warm_max {
                measured_from = Some((Instant::now(), meter::read(server)));
                shared.phase.store(MEASURING, Relaxed);
            }
        }
    }
    let end = final_reading.unwrap_or(first);
    let start = measured_from.unwrap_or((begun, end));
    Outcome {
        groups: Vec::new(),
        spent: end.since(&start.1),
        warmed: start.0.duration_since(begun).as_secs_f64(),
        is_steady,
        samples,
        failure: None,
    }
}

/// Throughput, memory and page faults.
fn are_level(samples: &[Sample]) -> bool {
    let level = |value: &dyn Fn(&Sample) -> f64| is_level(&samples.iter().map(value).collect::<Vec<_>>());
    // A few faults more or less are none.
    level(&|s| s.rates[0]) && level(&|s| s.resident_bytes) && level(&|s| s.faults.max(100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes 20 ms for each of twenty operations, and says that the server had each for 1 ms.
    struct Slow(u32);

    impl Worker for Slow {
        fn step(&mut self) -> Result<Option<Done>, String> {
            if self.0 == 20 {
                return Ok(None);
            }
            self.0 += 1;
            std::thread::sleep(Duration::from_millis(20));
            Ok(Some(Done {
                busy: Duration::from_millis(1),
                last: Instant::now(),
                work: 1,
            }))
        }
    }

    #[test]
    fn what_begins_late_is_measured_from_when_it_should_have_begun() {
        let longest = |pace| {
            let load = Load {
                worker: Box::new(Slow(0)),
                pace,
                group: 0,
            };
            let outcome = drive(vec![load], Times::until_finished(Duration::from_millis(50)), None);
            assert_eq!(outcome.groups[0].latencies.count(), 20);
            outcome.groups[0].latencies.max_us()
        };
        // The last of twenty should have begun after 38 ms, and ended after 400 at the earliest.
        assert!(longest(Pace::Rate(500.0)) >= 361_000.0);
        assert!(longest(Pace::Closed) <= 1_001.0);
    }

    struct Fails(u32);

    impl Worker for Fails {
        fn step(&mut self) -> Result<Option<Done>, String> {
            self.0 += 1;
            if self.0 > 10 {
                return Err("a wrong answer".into());
            }
            let last = Instant::now();
            Ok(Some(Done {
                busy: Duration::ZERO,
                last,
                work: 1,
            }))
        }
    }

    #[test]
    fn what_was_measured_before_a_failure_is_kept() {
        let load = Load {
            worker: Box::new(Fails(0)),
            pace: Pace::Closed,
            group: 0,
        };
        let outcome = drive(vec![load], Times::until_finished(Duration::from_millis(10)), None);
        assert_eq!(outcome.failure.as_deref(), Some("a wrong answer"));
        assert_eq!(outcome.groups[0].operations, 10);
    }
}
