//! The process around the database, as far as commands show or change it.

use crate::audit::{Actor, Audit, Config, Event};
use crate::concern::defaults::Defaults;
use crate::forward::ToPrimary;
use crate::gates::Gates;
use crate::observe::counters::Counters;
use crate::observe::log::Log;
use crate::observe::top::Top;
use crate::observe::transaction_counts::TransactionCounts;
use crate::parameters::{Param, Parameters};
use crate::transport::Transport;
use nestor_model::random::uuid_of;
use nestor_model::{Document, ObjectId, Str, Timestamp, doc};
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Facts about the process, given by the code that starts it. The default is that of a library user.
#[derive(Clone, Debug, Default)]
pub struct ProcessOptions {
    /// The log.
    pub log: Arc<Log>,
    /// The audit log.
    pub audit: Arc<Audit>,
    /// Name of the memory allocator, if it is not the system's.
    pub allocator: Option<&'static str>,
    /// The command line.
    pub argv: Vec<Str>,
    /// The command line as `getCmdLineOpts` prints it.
    pub parsed: Document,
    /// Most connections at one time.
    pub connections_max: u32,
}

/// Settings of the cluster that were set, with the time of setting.
#[derive(Debug, Default)]
pub struct ClusterParameters {
    values: Mutex<BTreeMap<&'static str, (Document, Timestamp)>>,
    changing: Mutex<()>,
}

impl ClusterParameters {
    /// The value that was set last, and when; `None` if none was.
    pub fn get(&self, name: &str) -> Option<(Document, Timestamp)> {
        crate::lock(&self.values).get(name).cloned()
    }

    /// The result of `look` at the value that was set last, if one was.
    pub fn look<T>(&self, name: &str, look: impl FnOnce(&Document) -> Option<T>) -> Option<T> {
        crate::lock(&self.values).get(name).and_then(|(value, _)| look(value))
    }

    /// Puts a value in force.
    pub fn set(&self, name: &'static str, value: Document, time: Timestamp) {
        crate::lock(&self.values).insert(name, (value, time));
    }

    /// For whoever stores a value and then puts it in force: nobody else does so meanwhile.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        crate::lock(&self.changing)
    }
}

/// The process.
#[derive(Debug)]
pub struct Node {
    /// The facts that the process was started with.
    pub options: ProcessOptions,
    /// Counters.
    pub counters: Counters,
    /// Operations by collection.
    pub top: Arc<Top>,
    /// Transactions, counted.
    pub transactions: Arc<TransactionCounts>,
    /// Parameters.
    pub parameters: Parameters,
    /// The gates that may hold commands up.
    pub gates: Gates,
    /// Defaults of read and write concern that `setDefaultRWConcern` set.
    pub concerns: Defaults,
    /// Settings of the cluster.
    pub cluster_parameters: ClusterParameters,
    /// Encryption of connections.
    pub transport: Transport,
    /// The way to the primary, for a secondary.
    pub to_primary: ToPrimary,
    /// `autoCompact` is on.
    pub auto_compact: AtomicBool,
    /// The way to end it.
    pub stop: Stop,
    /// Identity of this run of the process, `processId` in `topologyVersion`.
    pub process_id: ObjectId,
    /// When it started, in milliseconds since the Unix epoch.
    pub started_ms: i64,
}

impl Node {
    /// A process that starts now and counts the runs of so many commands.
    pub fn new(options: ProcessOptions, commands: usize) -> Self {
        let started_ms = crate::clock::now_ms();
        Self {
            options,
            counters: Counters::new(commands),
            top: Arc::default(),
            transactions: Arc::default(),
            parameters: Parameters::default(),
            gates: Gates::default(),
            concerns: Defaults::default(),
            cluster_parameters: ClusterParameters::default(),
            transport: Transport::default(),
            to_primary: ToPrimary::default(),
            auto_compact: AtomicBool::new(false),
            stop: Stop::default(),
            process_id: ObjectId::generate(started_ms),
            started_ms,
        }
    }

    /// A UUID for the process, the same whenever it is asked for.
    pub fn process_uuid(&self) -> [u8; 16] {
        self.connection_uuid(0)
    }

    /// A UUID for a connection, the same whenever it is asked for.
    pub fn connection_uuid(&self, id: i64) -> [u8; 16] {
        let [_, _, _, _, process @ ..] = self.process_id.0;
        uuid_of(u64::from_be_bytes(process), id as u64)
    }

    /// Brings what depends on parameters in line with them.
    pub fn parameters_changed(&self) {
        self.gates
            .set_api_required(self.parameters.is_on(Param::RequireApiVersion));
        self.log()
            .set_redacts(self.parameters.is_on(Param::RedactClientLogData));
        if !self.audit().is_runtime() {
            self.audit().configure(Config {
                authorization_success: self.parameters.is_on(Param::AuditAuthorizationSuccess),
                ..self.audit().config()
            });
        }
    }

    /// The audit log.
    pub fn audit(&self) -> &Audit {
        &self.options.audit
    }

    /// Records an event; whether that succeeded. If not, the server is asked to stop: nobody may act unseen. `thread` is who tells it to
    /// the log.
    pub fn record(&self, thread: &str, actor: &Actor, event: Event) -> bool {
        let Err(error) = self.audit().record(crate::clock::now_ms(), actor, event) else {
            return true;
        };
        let attr = doc! { "error": error.to_string() };
        self.log().error(
            "CONTROL",
            20_007,
            thread,
            "Cannot write to the audit log: the server stops",
            attr,
        );
        self.stop.request();
        false
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.options.log
    }
}

/// A random UUID.
pub fn new_uuid() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish();
    uuid_of(half(), half())
}

/// A request to end the process.
#[derive(Default)]
pub struct Stop {
    requested: AtomicBool,
    hook: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Stop {
    /// Asks for the end. The second request does nothing more.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Release);
        let hook = crate::lock(&self.hook).take();
        if let Some(hook) = hook {
            hook();
        }
    }

    /// True once the end was asked for.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Calls `hook` when the end is asked for, at once if it was before. There is one hook; a library user sets none.
    pub fn set_hook(&self, hook: impl FnOnce() + Send + 'static) {
        let mut held = crate::lock(&self.hook);
        // Looked at under the lock: a request that comes now finds the hook, one that came before is seen.
        if self.is_requested() {
            drop(held);
            hook();
        } else {
            *held = Some(Box::new(hook));
        }
    }
}

impl std::fmt::Debug for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stop").field(&self.requested).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopping_calls_its_hook_once() {
        let stop = Stop::default();
        let (told, hears) = std::sync::mpsc::channel();
        stop.set_hook(move || told.send(()).expect("the receiver is there"));
        assert!(!stop.is_requested());
        stop.request();
        stop.request();
        assert!(stop.is_requested());
        assert_eq!(hears.iter().count(), 1);
    }

    #[test]
    fn a_hook_set_late_is_called_at_once() {
        let stop = Stop::default();
        stop.request();
        let (told, hears) = std::sync::mpsc::channel();
        stop.set_hook(move || told.send(()).expect("the receiver is there"));
        assert_eq!(hears.iter().count(), 1);
    }

    #[test]
    fn processes_differ() {
        let one = Node::new(ProcessOptions::default(), 0);
        let two = Node::new(ProcessOptions::default(), 0);
        assert_ne!(one.process_id, two.process_id);
    }
}
