//! Keeps the process as a whole below what it may take, whatever was counted.
//!
//! Statements count what they build ([`nestor_model::memory`]), but not what a value takes beyond its size when it is written out, nor
//! what buffers grow by, nor what the allocator keeps. An allocation that fails ends the process, and so does a system
//! that runs out of memory. So a thread compares what the process really takes with its limits, and long before one is reached it has
//! the allocator return what is free; if that is not enough, the statement that holds most is ended, one after the other.

use nestor_database::machine::{self, Taken};
use nestor_database::observe::log::Log;
use nestor_model::doc;
use nestor_model::memory::Pool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// Between two looks while statements hold much or the process takes much. A core fills some 20 MiB in that time.
const BUSY: Duration = Duration::from_millis(10);
/// Between two looks otherwise.
const IDLE: Duration = Duration::from_millis(100);
/// Statements hold much: so many bytes.
const MUCH: usize = 32 << 20;
/// Nobody is ended who holds less: it would not help.
const LEAST: usize = 8 << 20;
/// It needs little, and address space may be short.
const STACK_BYTES: usize = 256 << 10;

/// What the process may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    mapped: Option<u64>,
    resident: Option<u64>,
}

/// How close the process is to its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pressure {
    /// Far from them.
    None,
    /// It is time to look more often.
    Some,
    /// Something has to be given back.
    Much,
}

impl Limits {
    fn of_this_process() -> Self {
        Self {
            mapped: machine::address_space_max(),
            resident: Some(machine::memory_max()).filter(|bytes| *bytes > 0),
        }
    }

    /// Of the address space less may be taken than of memory: it has gaps that are too small.
    fn pressure(&self, taken: Taken) -> Pressure {
        let of = |taken: u64, limit: Option<u64>, percent: u64| match limit {
            Some(limit) if taken > limit / 100 * percent => Pressure::Much,
            Some(limit) if taken > limit / 200 * percent => Pressure::Some,
            _ => Pressure::None,
        };
        of(taken.mapped, self.mapped, 60).max(of(taken.resident, self.resident, 85))
    }
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct MemoryWatch {
    stopped: Arc<AtomicBool>,
    thread: Thread,
}

impl MemoryWatch {
    /// Starts watching the process, whose statements have `pool`; `return_memory` has the allocator return what is free.
    pub fn start(pool: Arc<Pool>, return_memory: Option<fn()>, log: Arc<Log>) -> std::io::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let is_stopped = stopped.clone();
        let thread = thread::Builder::new()
            .name("memory-watch".into())
            .stack_size(STACK_BYTES)
            .spawn(move || watch(&pool, return_memory, &log, &is_stopped))?;
        Ok(Self {
            stopped,
            thread: thread.thread().clone(),
        })
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

fn watch(pool: &Pool, return_memory: Option<fn()>, log: &Log, stopped: &AtomicBool) {
    let limits = Limits::of_this_process();
    let pressure = || machine::taken().map_or(Pressure::None, |taken| limits.pressure(taken));
    while !stopped.load(Ordering::Acquire) {
        let mut now = pressure();
        if now == Pressure::Much {
            if let Some(return_memory) = return_memory {
                return_memory();
                now = pressure();
            }
            if now == Pressure::Much
                && let Some(bytes) = pool.end_largest(LEAST)
            {
                let attr = doc! { "bytesHeld": i64::try_from(bytes).unwrap_or(i64::MAX) };
                let message = "The process takes too much memory, so the statement that holds most is ended";
                log.warn("CONTROL", 20_013, "memory-watch", message, attr);
            }
        }
        let is_busy = now > Pressure::None || pool.held() > MUCH;
        thread::park_timeout(if is_busy { BUSY } else { IDLE });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_limits_press() {
        let limits = Limits {
            mapped: Some(1000),
            resident: Some(2000),
        };
        let pressure = |mapped, resident| limits.pressure(Taken { mapped, resident });
        assert_eq!(pressure(100, 100), Pressure::None);
        assert_eq!(pressure(400, 100), Pressure::Some);
        assert_eq!(pressure(601, 100), Pressure::Much);
        assert_eq!(pressure(100, 900), Pressure::Some);
        assert_eq!(pressure(100, 1701), Pressure::Much);
        let unlimited = Limits {
            mapped: None,
            resident: None,
        };
        let taken = Taken {
            mapped: u64::MAX,
            resident: u64::MAX,
        };
        assert_eq!(unlimited.pressure(taken), Pressure::None);
    }
}
