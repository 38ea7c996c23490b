//! A longer network: by tc's netem where that may be used, else by the load generator.
//!
//! netem delays the loopback device, which others on this machine use too. So the run moves into a network of its own, in which only it and
//! the servers that it starts are; members of a set among each other are as far apart then as they are from the clients. Servers that
//! were there before are outside of it, and rights, the program `tc` or the kernel's module may be missing: then each client
//! waits before it asks ([`delayed`](crate::delay::delayed)). Results name which it was.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Set for the program that is started again within its own network.
const INSIDE: &str = "NESTOR_LAB_NETEM";
/// Makes the loopback device of a new network slow: `$1` is the delay of one way.
const LENGTHEN: &str = "ip link set lo up && tc qdisc add dev lo root netem delay \"$1\" limit 1000000";

/// What makes the network longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongerBy {
    /// It is as it is.
    Nothing,
    /// tc's netem, in a network of the run's own.
    Netem,
    /// Waiting before each question.
    LoadGenerator,
}

impl LongerBy {
    /// As results have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Netem => "netem",
            Self::LoadGenerator => "load generator",
        }
    }
}

/// Makes round trips take `delay` longer, if possible by netem: then this program begins anew with the same arguments and does not return from here.
/// `are_ours` says whether all servers are started by the run.
///
/// Errors: the program could not be started again.
pub fn lengthen(delay: Duration, are_ours: bool) -> Result<LongerBy, String> {
    if delay.is_zero() {
        return Ok(LongerBy::Nothing);
    }
    if std::env::var_os(INSIDE).is_some() {
        return Ok(LongerBy::Netem);
    }
    let Some(flags) = are_ours.then(|| flags_that_work(delay)).flatten() else {
        return Ok(LongerBy::LoadGenerator);
    };
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let error = in_a_network(flags, &format!("{LENGTHEN} && shift && exec \"$@\""), delay)
        .arg(program)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .exec();
    Err(format!("unshare: {error}"))
}

/// How `unshare` has to be called for netem to be allowed; `None` where it is not. Root needs no user namespace, and others may not have one.
fn flags_that_work(delay: Duration) -> Option<&'static [&'static str]> {
    const WAYS: [&[&str]; 2] = [&["--net"], &["--net", "--user", "--map-root-user"]];
    let works = |flags: &&'static [&'static str]| {
        let mut trial = in_a_network(flags, LENGTHEN, delay);
        trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        trial.status().is_ok_and(|status| status.success())
    };
    WAYS.into_iter().find(works)
}

/// A shell's script in a network that is its own; `$1` is the delay of one way, and what is appended follows.
fn in_a_network(flags: &[&str], script: &str, delay: Duration) -> Command {
    let mut command = Command::new("unshare");
    // A round trip passes the device twice.
    let one_way = format!("{}us", delay.as_micros().div_ceil(2));
    command.args(flags).args(["sh", "-c", script, "sh", &one_way]);
    command
}
