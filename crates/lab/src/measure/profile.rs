//! Where a server's processor time goes: stacks sampled by `perf`, or, where that may not be used, what a thread of ours sees in `/proc`.

use super::process::Processes;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Samples a second; no number that periodic work of a server has.
const FREQUENCY: u32 = 199;
/// Bytes of stack that perf keeps of each sample, to find the callers without frame pointers.
const STACK_BYTES: u32 = 8_192;
/// Stacks that a profile keeps: those that came most often.
const STACKS_MAX: usize = 600;
/// Between two looks of the thread that samples without perf.
const PACE: Duration = Duration::from_millis(5);

/// Samples by stack: frames from the outermost, joined by semicolons.
pub type Stacks = Vec<(String, f64)>;

/// A profile that is being taken.
pub enum Profiler {
    /// By perf, which writes this file.
    Perf(Child, PathBuf),
    /// By our own thread.
    Own(Arc<AtomicBool>, JoinHandle<Stacks>),
}

impl Profiler {
    /// Begins, for at most `time`.
    pub fn start(server: &Processes, time: Duration) -> Self {
        match start_perf(server, time) {
            Some((child, path)) => Self::Perf(child, path),
            None => Self::start_own(server),
        }
    }

    fn start_own(server: &Processes) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (flag, server) = (over.clone(), server.clone());
        let thread = std::thread::spawn(move || {
            let mut counts = BTreeMap::new();
            while !flag.load(Relaxed) {
                for id in server.ids() {
                    look(id, &mut counts);
                }
                std::thread::sleep(PACE);
            }
            most(counts)
        });
        Self::Own(over, thread)
    }

    /// Ends; what was seen.
    pub fn stop(self) -> Stacks {
        match self {
            Self::Own(over, thread) => {
                over.store(true, Relaxed);
                thread.join().unwrap_or_default()
            }
            Self::Perf(mut child, path) => {
                let _ = child.wait();
                let stacks = read_perf(&path);
                let _ = fs::remove_file(&path);
                stacks
            }
        }
    }
}

fn start_perf(server: &Processes, time: Duration) -> Option<(Child, PathBuf)> {
    // Whether perf may look at others' processes shows when it is tried.
    let pids: Vec<String> = server.ids().iter().map(u32::to_string).collect();
    let path = std::env::temp_dir().join(format!("nestor-lab-perf-{}", std::process::id()));
    let record = |pids: &str, path: &Path, seconds: f64| {
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-F", &FREQUENCY.to_string()]);
        command.args(["--call-graph", &format!("dwarf,{STACK_BYTES}"), "-p", pids, "-o"]);
        command.arg(path).args(["--", "sleep", &seconds.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn()
    };
    let mut trial = record(&std::process::id().to_string(), &path, 0.01).ok()?;
    if !trial.wait().ok()?.success() {
        return None;
    }
    let child = record(&pids.join(","), &path, time.as_secs_f64()).ok()?;
    Some((child, path))
}

fn read_perf(path: &Path) -> Stacks {
    let mut command = Command::new("perf");
    command
        .args(["script", "--no-inline", "-F", "comm,ip,sym", "-i"])
        .arg(path);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    most(collapse(&text))
}

/// Stacks of `perf script`: a line with the thread's name, a line for each frame from the innermost, an empty line.
fn collapse(text: &str) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    let mut name = String::new();
    let mut frames: Vec<String> = Vec::new();
    for line in text.lines().chain([""]) {
        if line.trim().is_empty() {
            if !frames.is_empty() {
                frames.push(std::mem::take(&mut name));
                frames.reverse();
                *counts.entry(frames.join(";")).or_insert(0.0) += 1.0;
                frames.clear();
            }
        } else if line.starts_with([' ', '\t']) && !name.is_empty() {
            let symbol = line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
            let name = plain(&symbol);
            // Programs without symbols have many frames that say nothing.
            let is_repeated = name == "[unknown]" && frames.last() == Some(&name);
            if !is_repeated && (frames.is_empty() || !is_scaffold(&name)) {
                frames.push(name);
            }
        } else {
            name = line.trim().trim_end_matches(':').replace(';', ",");
        }
    }
    counts
}

/// Whether a function only leads to others: what starts threads, catches panics and polls tasks lies over all that a Rust server does, some forty
/// frames deep.
fn is_scaffold(name: &str) -> bool {
    const PARTS: [&str; 8] = [
        "std::sys::",
        "std::thread::",
        "std::panic",
        "core::panic::",
        "core::ops::function::",
        "tokio::runtime::",
        "tokio::task::",
        "alloc::boxed::",
    ];
    let path = name.trim_start_matches(['<', '&']);
    PARTS.iter().any(|part| path.starts_with(part)) || matches!(name, "clone3" | "start_thread" | "__rust_try")
}

/// A function's name as a reader wants it: without the hash of Rust's, and short.
fn plain(symbol: &str) -> String {
    let symbol = symbol.replace(';', ",");
    let name = match symbol.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => name,
        _ => &symbol,
    };
    match name.char_indices().nth(110) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// What the threads of process `id` are at: those that run, in user space or in which part of the kernel.
fn look(id: u32, counts: &mut BTreeMap<String, f64>) {
    for entry in fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten() {
        let at = entry.path();
        let stat = fs::read_to_string(at.join("stat")).unwrap_or_default();
        let Some((name, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let state = rest.split_whitespace().next().unwrap_or("S");
        if !matches!(state, "R" | "D") {
            continue;
        }
        let name = name.split_once('(').map_or("", |(_, name)| name).replace(';', ",");
        let within = match state {
            "D" => fs::read_to_string(at.join("wchan")).ok().filter(|at| at.len() > 1),
            _ => None,
        };
        let what = if state == "R" {
            "running"
        } else {
            "waiting for the disk"
        };
        let stack = within.map_or(format!("{name};{what}"), |within| format!("{name};{what};{within}"));
        *counts.entry(stack).or_insert(0.0) += 1.0;
    }
}

fn most(counts: BTreeMap<String, f64>) -> Stacks {
    let mut stacks: Stacks = counts.into_iter().collect();
    stacks.sort_by(|a, b| b.1.total_cmp(&a.1));
    stacks.truncate(STACKS_MAX);
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_collapsed() {
        let text = "nestor-worker \n\t  55d inner::h0123456789abcdef\n\t  55e outer\n\nnestor-worker \n\t 55d inner::h0123456789abcdef\n\t 55e outer\n\n";
        let stacks: Stacks = collapse(text).into_iter().collect();
        assert_eq!(stacks, [("nestor-worker;outer;inner".to_owned(), 2.0)]);
    }

    #[test]
    fn what_leads_to_a_function_is_left_out() {
        let text = "w\n\t 1 std::thread::park\n\t 2 find\n\t 3 <std::thread::Thread as X>::run\n\t 4 tokio::runtime::task::poll\n\t 5 clone3\n\n";
        let stacks: Stacks = collapse(text).into_iter().collect();
        assert_eq!(stacks, [("w;find;std::thread::park".to_owned(), 1.0)]);
    }

    #[test]
    fn a_thread_of_ours_sees_who_runs() {
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        let busy = std::thread::spawn(move || while !flag.load(Relaxed) {});
        let profiler = Profiler::start_own(&Processes::of(std::process::id()));
        std::thread::sleep(Duration::from_millis(100));
        let stacks = profiler.stop();
        over.store(true, Relaxed);
        busy.join().expect("it ends");
        assert!(stacks.iter().any(|(stack, _)| stack.ends_with("running")), "{stacks:?}");
    }
}
