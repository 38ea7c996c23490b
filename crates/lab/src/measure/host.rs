//! What the whole machine did, and what it is.

use std::fs;
use std::path::Path;

/// What the host has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Host {
    /// Processor time in user space, in µs.
    pub user_us: f64,
    /// In the kernel, interrupts included.
    pub system_us: f64,
    /// Idle while something waited for the disk.
    pub waiting_us: f64,
    /// Taken by other guests of the hypervisor.
    pub stolen_us: f64,
    /// Context switches.
    pub switches: f64,
    /// Reads that disks completed.
    pub disk_reads: f64,
    /// Bytes of them.
    pub disk_read_bytes: f64,
    /// Writes that disks completed.
    pub disk_writes: f64,
    /// Bytes of them.
    pub disk_write_bytes: f64,
    /// Flushes that disks completed: one for each fsync that reached the device.
    pub disk_flushes: f64,
}

impl Host {
    /// As it is now.
    pub fn now() -> Self {
        let mut host = Self::default();
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        for line in stat.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("cpu") => {
                    let ticks: Vec<f64> = words.map(|word| word.parse().unwrap_or(0.0) * 1e4).collect();
                    let tick = |i: usize| ticks.get(i).copied().unwrap_or(0.0);
                    host.user_us = tick(0) + tick(1);
                    host.system_us = tick(2) + tick(5) + tick(6);
                    host.waiting_us = tick(4);
                    host.stolen_us = tick(7);
                }
                Some("ctxt") => host.switches = words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
                _ => {}
            }
        }
        for line in fs::read_to_string("/proc/diskstats").unwrap_or_default().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            // Whole disks only: their parts count the same again.
            let is_disk = words.get(2).is_some_and(|name| {
                let is_virtual = ["loop", "ram", "dm-", "md", "zram"]
                    .iter()
                    .any(|prefix| name.starts_with(prefix));
                !is_virtual && Path::new("/sys/block").join(name).exists()
            });
            if !is_disk {
                continue;
            }
            let field = |i: usize| words.get(i).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
            host.disk_reads += field(3);
            host.disk_read_bytes += field(5) * 512.0;
            host.disk_writes += field(7);
            host.disk_write_bytes += field(9) * 512.0;
            host.disk_flushes += field(18);
        }
        host
    }

    /// Its fields with the names that results give them.
    pub fn fields(&self) -> [(&'static str, f64); 10] {
        [
            ("userMicros", self.user_us),
            ("systemMicros", self.system_us),
            ("waitingMicros", self.waiting_us),
            ("stolenMicros", self.stolen_us),
            ("switches", self.switches),
            ("diskReads", self.disk_reads),
            ("diskReadBytes", self.disk_read_bytes),
            ("diskWrites", self.disk_writes),
            ("diskWriteBytes", self.disk_write_bytes),
            ("diskFlushes", self.disk_flushes),
        ]
    }

    /// What was done since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            user_us: self.user_us - before.user_us,
            system_us: self.system_us - before.system_us,
            waiting_us: self.waiting_us - before.waiting_us,
            stolen_us: self.stolen_us - before.stolen_us,
            switches: self.switches - before.switches,
            disk_reads: self.disk_reads - before.disk_reads,
            disk_read_bytes: self.disk_read_bytes - before.disk_read_bytes,
            disk_writes: self.disk_writes - before.disk_writes,
            disk_write_bytes: self.disk_write_bytes - before.disk_write_bytes,
            disk_flushes: self.disk_flushes - before.disk_flushes,
        }
    }
}

/// What the machine is: processor, cores, memory, kernel.
pub fn machine() -> Vec<(&'static str, String)> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes: f64 = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0.0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![
        ("processor", model.to_owned()),
        ("cores", cores().to_string()),
        ("memory", format!("{:.1} GiB", kilobytes / 1024.0 / 1024.0)),
        ("kernel", kernel.trim().to_owned()),
    ]
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The kind of the file system that `path` is on.
pub fn file_system(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut best = (0, "unknown".to_owned());
    for line in mounts.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(at), Some(kind)) = (words.next(), words.next()) else {
            continue;
        };
        if path.starts_with(at) && at.len() >= best.0 {
            best = (at.len(), kind.to_owned());
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_known() {
        assert!(Host::now().user_us > 0.0 && cores() > 0);
        assert_eq!(file_system(Path::new("/proc/self")), "proc");
        assert!(machine().iter().all(|(_, value)| !value.is_empty()));
    }
}
