//! The server as a member of a replica set whose log is in an object store (`--log`).

use crate::serve::ServeOptions;
use nestor_cluster::member::{self, Member, MemberError, MemberOptions, Roles};
use nestor_command::Service;
use nestor_database::observe::log::Log;
use nestor_model::doc;
use nestor_storage::{EngineOptions, Guarantee};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// How long a primary's lease holds that is not renewed: about the time until another takes over.
const LEASE: Duration = Duration::from_millis(1_500);
/// How long a primary that stops waits for the log.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the log is, and who this member is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// `s3://bucket/path` or `file:///path`.
    pub address: String,
    /// `host:port` under which clients and other members know this one.
    pub host: String,
    /// A checkpoint is uploaded when there are so many commits since the one before.
    pub checkpoint_commits: u64,
}

/// Starts the member, with the store that `engine` opens.
pub fn start(
    log_options: &LogOptions,
    options: &ServeOptions,
    engine: EngineOptions,
    log: &Arc<Log>,
) -> Result<Member, String> {
    let (Some(set), Some(dir)) = (&options.replica_set, &options.dbpath) else {
        return Err("--log needs a replica set and a data directory".to_owned());
    };
    let failed = |error: &dyn std::fmt::Display| format!("--log {}: {error}", log_options.address);
    let options = MemberOptions {
        set: set.clone(),
        host: log_options.host.clone(),
        dir: dir.clone(),
        engine,
        lease: LEASE,
        checkpoint_commits: log_options.checkpoint_commits,
        roles: Arc::new(Anew(log.clone())),
    };
    let of_set = member::open_log(&log_options.address).map_err(|e| failed(&e))?;
    let member = match member::start(of_set, options) {
        Ok(member) => member,
        Err(error @ MemberError::Over) => {
            // The thread that told of it is about to start the process anew.
            std::thread::park_timeout(PATIENCE);
            return Err(failed(&error));
        }
        Err(error) => return Err(failed(&error)),
    };
    let topology = member.engine().topology();
    log.info(
        "REPL",
        9_000_020,
        "initandlisten",
        "Member of a replica set",
        doc! { "host": log_options.host.as_str(), "primary": member.is_primary(), "term": topology.term },
    );
    Ok(member)
}

/// Ends it in good order.
pub fn stop(member: Member) {
    member.stop(PATIENCE);
}

/// What is done before anybody writes.
pub fn begin_writing(service: &Service, is_member: bool) -> Result<(), String> {
    nestor_sql::ddl::temporary::clear(service);
    if is_member {
        // The first entry of the term: what was committed before is behind it. Once the log of the set has it, members with commits of
        // earlier terms that the log does not have drop them, so clients may be told that these never were.
        let first = service.note("new primary").map_err(|e| e.message().to_owned())?;
        let waited = service.engine.wait_reached(first, Guarantee::Committed);
        waited.map_err(|e| format!("the log of the set does not take the first entry of the term: {e}"))?;
    }
    Ok(())
}

/// Starts the process anew when the role is over: nothing in memory is of the role before, and the store is recovered as after a crash.
struct Anew(Arc<Log>);

impl Roles for Anew {
    fn over(&self, why: &str) {
        self.0.info(
            "REPL",
            9_000_021,
            "cluster",
            "The role is over; the process starts anew",
            doc! { "reason": why },
        );
        let mut arguments = std::env::args_os();
        let name = arguments.next().unwrap_or_else(|| "nestor".into());
        let error = Command::new("/proc/self/exe").arg0(name).args(arguments).exec();
        // It only returns when it failed.
        self.0.error(
            "REPL",
            9_000_022,
            "cluster",
            "The process cannot start anew, and ends",
            doc! { "error": error.to_string() },
        );
        std::process::exit(1);
    }
}
