//! What a limit has left: pure arithmetic over the times that it is told.
//!
//! Operations and processor time are token buckets. Each holds what a second allows, so that a burst of a second's worth passes at
//! once, and fills up evenly. Processor time is taken after it was used and may be overdrawn; until it has filled up
//! again nobody new is admitted, so that the average holds whatever single operations take.

use nestor_model::Value;
use std::time::{Duration, Instant};

/// How much a limit allows; what is not given is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Operations that may begin in a second.
    pub operations_per_second: Option<f64>,
    /// Operations that may run at a time.
    pub concurrent: Option<u32>,
    /// Milliseconds of processor time that they may take in a second.
    pub cpu_millis_per_second: Option<f64>,
}

/// One of the three bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Operations in a second.
    OperationsPerSecond,
    /// Operations at a time.
    Concurrent,
    /// Milliseconds of processor time in a second.
    CpuMillisPerSecond,
}

impl Bound {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 3] = [Self::OperationsPerSecond, Self::Concurrent, Self::CpuMillisPerSecond];

    /// Its name as it is set and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OperationsPerSecond => "operationsPerSecond",
            Self::Concurrent => "concurrent",
            Self::CpuMillisPerSecond => "cpuMillisPerSecond",
        }
    }
}

impl Bounds {
    /// What one of them allows, as it is shown.
    pub fn get(&self, bound: Bound) -> Option<Value> {
        match bound {
            Bound::OperationsPerSecond => self.operations_per_second.map(Value::from),
            Bound::Concurrent => self.concurrent.map(|most| match i32::try_from(most) {
                Ok(most) => most.into(),
                Err(_) => i64::from(most).into(),
            }),
            Bound::CpuMillisPerSecond => self.cpu_millis_per_second.map(Value::from),
        }
    }
}

/// A bound that was met, and after how long it is worth trying again, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The bound.
    pub bound: Bound,
    /// When to try again.
    pub after: Option<Duration>,
}

/// What is left of some bounds.
#[derive(Debug)]
pub struct Gauge {
    /// Operations that may begin now.
    operations: f64,
    /// Microseconds of processor time left; negative when overdrawn.
    cpu_micros: f64,
    running: u32,
    filled: Instant,
}

impl Gauge {
    /// Nothing is used yet.
    pub fn new(bounds: &Bounds, now: Instant) -> Self {
        Self {
            operations: burst(bounds),
            cpu_micros: cpu_micros_per_second(bounds),
            running: 0,
            filled: now,
        }
    }

    /// Operations that run now.
    pub fn running(&self) -> u32 {
        self.running
    }

    /// Whether an operation may begin; nothing changes.
    pub fn check(&mut self, bounds: &Bounds, now: Instant) -> Result<(), Met> {
        self.fill(bounds, now);
        if let Some(rate) = bounds.operations_per_second {
            if self.operations < 1.0 {
                let after = Duration::try_from_secs_f64((1.0 - self.operations) / rate).ok();
                let bound = Bound::OperationsPerSecond;
                return Err(Met { bound, after });
            }
        }
        if bounds.concurrent.is_some_and(|most| self.running >= most) {
            let bound = Bound::Concurrent;
            return Err(Met { bound, after: None });
        }
        if let Some(after) = self.debt(bounds) {
            let bound = Bound::CpuMillisPerSecond;
            return Err(Met {
                bound,
                after: Some(after),
            });
        }
        Ok(())
    }

    /// An operation begins. One that only goes on does not count among those that begin.
    pub fn enter(&mut self, begins: bool) {
        self.running += 1;
        if begins {
            // One that had to be let in may overdraw, but not by more than one.
            self.operations = (self.operations - 1.0).max(-1.0);
        }
    }

    /// An operation is over.
    pub fn leave(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// An operation has used so much of the processor. Returns how long it is until that is paid for, if it is not.
    pub fn charge(&mut self, bounds: &Bounds, used: Duration, now: Instant) -> Option<Duration> {
        self.fill(bounds, now);
        if bounds.cpu_millis_per_second.is_some() {
            self.cpu_micros -= used.as_secs_f64() * 1e6;
        }
        self.debt(bounds)
    }

    /// How long it is until an overdrawn allowance of processor time has filled up again.
    fn debt(&self, bounds: &Bounds) -> Option<Duration> {
        let is_overdrawn = bounds.cpu_millis_per_second.is_some() && self.cpu_micros <= 0.0;
        let seconds = -self.cpu_micros / cpu_micros_per_second(bounds);
        is_overdrawn.then(|| {
            let exact = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            exact.max(Duration::from_millis(1))
        })
    }

    fn fill(&mut self, bounds: &Bounds, now: Instant) {
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        let rate = bounds.operations_per_second.unwrap_or(0.0);
        self.operations = (self.operations + rate * seconds).min(burst(bounds));
        let cpu = cpu_micros_per_second(bounds);
        self.cpu_micros = (self.cpu_micros + cpu * seconds).min(cpu);
    }
}

/// Operations that may begin at once. Fewer than one in a second still begin one by one; with none in a second none begins.
fn burst(bounds: &Bounds) -> f64 {
    match bounds.operations_per_second {
        Some(rate) if rate > 0.0 => rate.max(1.0),
        _ => 0.0,
    }
}

fn cpu_micros_per_second(bounds: &Bounds) -> f64 {
    bounds.cpu_millis_per_second.map_or(0.0, |millis| millis * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(begun: Instant, millis: u64) -> Instant {
        begun + Duration::from_millis(millis)
    }

    #[test]
    fn operations_of_a_second_pass_and_then_evenly() {
        let bounds = Bounds {
            operations_per_second: Some(10.0),
            ..Bounds::default()
        };
        let begun = Instant::now();
        let mut gauge = Gauge::new(&bounds, begun);
        let mut admitted = |millis| {
            let mut count = 0;
            while gauge.check(&bounds, after(begun, millis)).is_ok() {
                gauge.enter(true);
                gauge.leave();
                count += 1;
                assert!(count < 1_000, "it never ends");
            }
            count
        };
        assert_eq!(admitted(0), 10);
        assert_eq!(admitted(99), 0);
        assert_eq!(admitted(301), 3);
        assert_eq!(admitted(60_000), 10, "what was not used is not saved up");
        let met = gauge.check(&bounds, after(begun, 60_000)).expect_err("nothing is left");
        let wait = met.after.expect("it is known");
        assert_eq!(met.bound, Bound::OperationsPerSecond);
        assert!((90..=100).contains(&wait.as_millis()), "{wait:?}");
    }

    #[test]
    fn few_and_no_operations() {
        let begun = Instant::now();
        for (rate, first, later) in [(0.5, true, true), (0.0, false, false)] {
            let bounds = Bounds {
                operations_per_second: Some(rate),
                ..Bounds::default()
            };
            let mut gauge = Gauge::new(&bounds, begun);
            assert_eq!(gauge.check(&bounds, begun).is_ok(), first, "{rate}");
            gauge.enter(true);
            assert!(gauge.check(&bounds, after(begun, 1_900)).is_err(), "{rate}");
            assert_eq!(gauge.check(&bounds, after(begun, 4_100)).is_ok(), later, "{rate}");
        }
    }

    #[test]
    fn so_many_at_a_time() {
        let bounds = Bounds {
            concurrent: Some(2),
            ..Bounds::default()
        };
        let begun = Instant::now();
        let mut gauge = Gauge::new(&bounds, begun);
        for _ in 0..2 {
            assert!(gauge.check(&bounds, begun).is_ok());
            gauge.enter(true);
        }
        let met = gauge.check(&bounds, begun).expect_err("two run");
        assert_eq!((met.bound, met.after), (Bound::Concurrent, None));
        gauge.leave();
        assert!(gauge.check(&bounds, begun).is_ok());
    }

    #[test]
    fn the_average_of_processor_time_holds_for_long_operations() {
        let bounds = Bounds {
            cpu_millis_per_second: Some(100.0),
            ..Bounds::default()
        };
        let begun = Instant::now();
        let mut gauge = Gauge::new(&bounds, begun);
        assert_eq!(gauge.charge(&bounds, Duration::from_millis(50), begun), None);
        // Another 250 ms are 200 ms more than there are: two seconds.
        let wait = gauge
            .charge(&bounds, Duration::from_millis(250), begun)
            .expect("overdrawn");
        assert!((1_990..=2_010).contains(&wait.as_millis()), "{wait:?}");
        assert_eq!(
            gauge.check(&bounds, after(begun, 1_900)).expect_err("still").bound,
            Bound::CpuMillisPerSecond
        );
        assert!(gauge.check(&bounds, after(begun, 2_100)).is_ok());
    }
}
