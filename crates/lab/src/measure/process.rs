//! What `/proc` tells of a server: its process and all that descend from it.
//!
//! Source: `man 5 proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Ticks per second of `/proc/PID/stat`; Linux shows user space 100 whatever the kernel uses.
const TICKS_PER_SECOND: f64 = 100.0;

/// What processes or threads have used so far. Differences of two are what was used between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time as the scheduler counts it, in µs.
    pub cpu_us: f64,
    /// The part of it in user space; the kernel counts it in ticks of 10 ms.
    pub user_us: f64,
    /// The part of it in the kernel, in the same ticks.
    pub system_us: f64,
    /// Context switches of threads that waited.
    pub switches_voluntary: f64,
    /// Context switches of threads that were displaced.
    pub switches_forced: f64,
    /// Page faults without a read from the disk.
    pub faults_minor: f64,
    /// Page faults that read from the disk.
    pub faults_major: f64,
    /// Bytes read from storage.
    pub read_bytes: f64,
    /// Bytes written to storage.
    pub write_bytes: f64,
    /// Calls of the system that read: files and sockets.
    pub read_calls: f64,
    /// Calls of the system that write.
    pub write_calls: f64,
}

impl Usage {
    /// Its fields with the names that results give them.
    pub fn fields(&self) -> [(&'static str, f64); 11] {
        [
            ("cpuMicros", self.cpu_us),
            ("userMicros", self.user_us),
            ("systemMicros", self.system_us),
            ("switchesVoluntary", self.switches_voluntary),
            ("switchesForced", self.switches_forced),
            ("faultsMinor", self.faults_minor),
            ("faultsMajor", self.faults_major),
            ("readBytes", self.read_bytes),
            ("writeBytes", self.write_bytes),
            ("readCalls", self.read_calls),
            ("writeCalls", self.write_calls),
        ]
    }

    fn each(self, other: Self, apply: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            cpu_us: apply(self.cpu_us, other.cpu_us),
            user_us: apply(self.user_us, other.user_us),
            system_us: apply(self.system_us, other.system_us),
            switches_voluntary: apply(self.switches_voluntary, other.switches_voluntary),
            switches_forced: apply(self.switches_forced, other.switches_forced),
            faults_minor: apply(self.faults_minor, other.faults_minor),
            faults_major: apply(self.faults_major, other.faults_major),
            read_bytes: apply(self.read_bytes, other.read_bytes),
            write_bytes: apply(self.write_bytes, other.write_bytes),
            read_calls: apply(self.read_calls, other.read_calls),
            write_calls: apply(self.write_calls, other.write_calls),
        }
    }

    /// What was used since `before`.
    pub fn since(self, before: Self) -> Self {
        self.each(before, |now, then| (now - then).max(0.0))
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        self.each(other, |a, b| a + b)
    }
}

/// What the process (or thread) at `path` of `/proc` has used, threads that ended included.
fn of_process(path: &str) -> Option<Usage> {
    let stat = fs::read_to_string(format!("{path}/stat")).ok()?;
    // The second field is the name in parentheses and may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<f64> = rest
        .split_whitespace()
        .skip(1)
        .map(|word| word.parse().unwrap_or(0.0))
        .collect();
    let field = |number: usize| fields.get(number - 4).copied().unwrap_or(0.0);
    let ticks = |number| field(number) / TICKS_PER_SECOND * 1e6;
    let mut usage = Usage {
        faults_minor: field(10),
        faults_major: field(12),
        user_us: ticks(14),
        system_us: ticks(15),
        ..Usage::default()
    };
    let io = fs::read_to_string(format!("{path}/io")).unwrap_or_default();
    usage.read_bytes = named(&io, "read_bytes:");
    usage.write_bytes = named(&io, "write_bytes:");
    usage.read_calls = named(&io, "syscr:");
    usage.write_calls = named(&io, "syscw:");
    let mut threads = Usage::default();
    for entry in fs::read_dir(format!("{path}/task")).into_iter().flatten().flatten() {
        threads = threads.plus(of_thread(&entry.path().to_string_lossy()));
    }
    usage.switches_voluntary = threads.switches_voluntary;
    usage.switches_forced = threads.switches_forced;
    // Both count alike to within some ticks; a larger gap means that a thread took its time with it.
    let counted = usage.user_us + usage.system_us;
    usage.cpu_us = if counted > threads.cpu_us + 100_000.0 {
        counted
    } else {
        threads.cpu_us
    };
    Some(usage)
}

fn of_thread(path: &str) -> Usage {
    let schedule = fs::read_to_string(format!("{path}/schedstat")).unwrap_or_default();
    let nanoseconds: f64 = schedule
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0);
    let status = fs::read_to_string(format!("{path}/status")).unwrap_or_default();
    Usage {
        cpu_us: nanoseconds / 1e3,
        switches_voluntary: named(&status, "voluntary_ctxt_switches:"),
        switches_forced: named(&status, "nonvoluntary_ctxt_switches:"),
        ..Usage::default()
    }
}

/// What this process has used: the load generator.
pub fn own() -> Usage {
    of_process("/proc/self").unwrap_or_default()
}

fn named(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next())
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0)
}

/// A server's processes.
#[derive(Clone, Debug)]
pub struct Processes {
    root: u32,
}

impl Processes {
    /// The process `root` and its descendants.
    pub fn of(root: u32) -> Self {
        Self { root }
    }

    /// The first of them.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// The ids of all of them.
    pub fn ids(&self) -> Vec<u32> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else {
                continue;
            };
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let parent = stat
                .rsplit_once(')')
                .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            children.entry(parent.unwrap_or(0)).or_default().push(id);
        }
        let mut found = vec![self.root];
        let mut next = 0;
        while let Some(id) = found.get(next) {
            found.extend(children.get(id).into_iter().flatten().copied().collect::<Vec<_>>());
            next += 1;
        }
        found
    }

    /// What they have used so far; those that ended in between are missing.
    pub fn usage(&self) -> Usage {
        let all = self
            .ids()
            .into_iter()
            .filter_map(|id| of_process(&format!("/proc/{id}")));
        all.fold(Usage::default(), Usage::plus)
    }

    /// False once the process is gone.
    pub fn are_alive(&self) -> bool {
        fs::metadata(format!("/proc/{}", self.root)).is_ok()
    }

    /// Resident memory in bytes; pages that several processes share are divided among them where the kernel tells.
    pub fn resident_bytes(&self) -> f64 {
        let ids = self.ids();
        let is_alone = ids.len() == 1;
        let of = |id: &u32| {
            let rollup = || fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok();
            let shared = if is_alone { None } else { rollup() };
            match shared {
                Some(text) => named(&text, "Pss:"),
                None => named(
                    &fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default(),
                    "VmRSS:",
                ),
            }
        };
        ids.iter().map(of).sum::<f64>() * 1024.0
    }

    /// The command line of the first.
    pub fn command_line(&self) -> String {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.root)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
    }

    /// The program of the first.
    pub fn program(&self) -> Option<std::path::PathBuf> {
        fs::read_link(format!("/proc/{}/exe", self.root)).ok()
    }

    /// Its working directory or, better, the folder of a file that it has open for writing: where its data are.
    pub fn data_folder(&self) -> Option<std::path::PathBuf> {
        for id in self.ids() {
            for entry in fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten() {
                let Ok(file) = fs::read_link(entry.path()) else {
                    continue;
                };
                let is_file = fs::metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() > 4096);
                let is_log = file.extension().is_some_and(|end| end == "log" || end == "txt");
                if is_file && !is_log && !file.starts_with("/usr") && !file.starts_with("/proc") {
                    return file.parent().map(std::path::Path::to_path_buf);
                }
            }
        }
        None
    }
}

/// The process that listens on TCP port `port` of this machine; `None` if it may not be known.
pub fn listening_on(port: u16) -> Option<u32> {
    let mut sockets = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (Some(local), Some(&"0A"), Some(inode)) = (words.get(1), words.get(3), words.get(9)) else {
                continue;
            };
            if local
                .rsplit(':')
                .next()
                .and_then(|hex| u16::from_str_radix(hex, 16).ok())
                == Some(port)
            {
                sockets.insert(format!("socket:[{inode}]"));
            }
        }
    }
    let mut owners = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        if targets.any(|target| sockets.contains(&*target.to_string_lossy())) {
            owners.push(id);
        }
    }
    // A process that is started early has a small number; children have the socket too.
    owners.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let before = own();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert_eq!(listening_on(port), Some(std::process::id()));
        let mut sum = 0u64;
        while own().since(before).cpu_us < 30_000.0 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        let server = Processes::of(std::process::id());
        assert!(server.are_alive() && server.resident_bytes() > 100_000.0);
        assert!(server.usage().since(before).cpu_us >= 30_000.0);
    }
}
