//! What `/proc` tells of a process: CPU time and memory.

use std::fs;
use std::time::Duration;

/// Ticks per second of `/proc/PID/stat`; Linux shows user space 100 whatever the kernel uses.
const TICKS_PER_SECOND: u64 = 100;

/// CPU time a process has used: the sum over its threads as the scheduler counts them, in nanoseconds, or
/// user and system time in ticks of 10 ms when that is more (threads that have ended) or all there is.
pub fn process_time(pid: u32) -> Duration {
    let mut threads = Duration::ZERO;
    if let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) {
        for entry in entries.flatten() {
            threads += scheduled(&entry.path().join("schedstat").to_string_lossy());
        }
    }
    let ticks = ticks(pid);
    // The two count alike to within a tick or two; a larger gap means that a thread took its time with it.
    if ticks > threads + Duration::from_millis(100) {
        ticks
    } else {
        threads
    }
}

/// CPU time of the calling thread.
pub fn thread_time() -> Duration {
    scheduled("/proc/thread-self/schedstat")
}

fn scheduled(path: &str) -> Duration {
    let text = fs::read_to_string(path).unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    Duration::from_nanos(nanoseconds)
}

fn ticks(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field is the name in parentheses and may contain anything; user and system time are 14 and 15.
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|word| word.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

/// Resident memory, in bytes; 0 when it cannot be told.
pub fn rss_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|word| word.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_up_with_work() {
        let before = process_time(std::process::id());
        let thread_before = thread_time();
        let mut sum = 0u64;
        while thread_time() < thread_before + Duration::from_millis(50) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        assert!(process_time(std::process::id()) >= before + Duration::from_millis(30));
        assert!(rss_bytes(std::process::id()) > 100_000);
    }
}
