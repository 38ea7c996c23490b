//! One database process: what all connections share, and the way a command runs.

use crate::connection::{Connection, Slot};
use crate::context::{After, Context};
use crate::dispatch::{self, Flags};
use crate::generic::Generic;
use crate::node::{Node, ProcessOptions};
use crate::reply;
use crate::request::{Outcome, Request};
use nestor_exec::Interrupt;
use nestor_model::{RawWriter, Result, Str, Timestamp, bail};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How the service presents itself.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// Replica set name; `None` for a standalone.
    pub replica_set: Option<Str>,
    /// `host:port` as clients reach it.
    pub host: Str,
    /// The process around it.
    pub process: ProcessOptions,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            replica_set: Some("rs0".into()),
            host: "localhost:27017".into(),
            process: ProcessOptions::default(),
        }
    }
}

/// One database process. Shared by all connections; every method takes `&self`.
pub struct Service {
    /// How it presents itself.
    pub options: ServiceOptions,
    /// Open connections.
    pub connections: Arc<Connections>,
    /// When it started.
    pub started: Instant,
    /// The process.
    pub node: Node,
    opids: AtomicU32,
}

/// The open connections by id.
#[derive(Debug, Default)]
pub struct Connections {
    last_id: AtomicI64,
    slots: Mutex<BTreeMap<i64, Arc<Slot>>>,
}

impl Connections {
    pub(crate) fn add(&self, peer: &str) -> Arc<Slot> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let slot = Arc::new(Slot {
            id,
            peer: peer.into(),
            ..Slot::default()
        });
        crate::lock(&self.slots).insert(id, slot.clone());
        slot
    }

    pub(crate) fn remove(&self, id: i64) {
        crate::lock(&self.slots).remove(&id);
    }

    /// The open connections in order of their ids.
    pub fn all(&self) -> Vec<Arc<Slot>> {
        crate::lock(&self.slots).values().cloned().collect()
    }

    /// How many were opened since the start.
    pub fn total_created(&self) -> i64 {
        self.last_id.load(Ordering::Relaxed)
    }
}

impl Service {
    /// A service without data yet.
    pub fn new(options: ServiceOptions) -> Self {
        Self {
            node: Node::new(options.process.clone()),
            options,
            connections: Arc::default(),
            started: Instant::now(),
            opids: AtomicU32::new(0),
        }
    }

    /// Runs one command on its connection and returns the reply. Errors become error replies.
    pub fn run(&self, conn: &mut Connection, request: Request<'_>) -> Outcome {
        let reply_at = request.buffer.len();
        let mut writer = RawWriter::onto(request.buffer);
        let (result, after) = self.dispatch(
            conn,
            request.body,
            request.sequences,
            (request.legacy, request.exhaust_allowed),
            &mut writer,
        );
        conn.slot.finish_operation();
        let time = after.operation_time.unwrap_or_else(|| self.last_time());
        let replica_set = self.options.replica_set.is_some();
        let reply = match result {
            Ok(()) => {
                reply::finish(&mut writer, replica_set.then_some(time));
                writer.finish()
            }
            Err(error) => {
                let mut writer = RawWriter::onto(writer.abandon());
                reply::write_error(&mut writer, &error);
                reply::write_times(&mut writer, replica_set.then_some(time));
                writer.finish()
            }
        };
        if after.park.is_none() {
            conn.parked = None;
        } else if conn.parked.is_none() {
            conn.parked = Some(Instant::now());
        }
        Outcome {
            reply,
            reply_at,
            wait: after.wait,
            park: after.park,
            exhaust: after.exhaust,
            close: after.close,
        }
    }

    fn dispatch(
        &self,
        conn: &mut Connection,
        body: nestor_model::RawDoc<'_>,
        sequences: &[crate::request::Sequence<'_>],
        (legacy, exhaust_allowed): (bool, bool),
        writer: &mut RawWriter,
    ) -> (Result<()>, After) {
        let started = Instant::now();
        let mut after = After::default();
        let mut run = || -> Result<()> {
            let Some((name, _)) = body.iter().next() else {
                bail!(CommandNotFound, "no such command: ''");
            };
            let Some(spec) = dispatch::lookup(name) else {
                bail!(CommandNotFound, "no such command: '{name}'");
            };
            if legacy && !spec.flags.has(Flags::LEGACY) {
                bail!(
                    352,
                    "Unsupported OP_QUERY command: {name}. The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal"
                );
            }
            let mut generic = Generic::parse(body, spec)?;
            if legacy && generic.db.is_empty() {
                generic.db = "admin";
            }
            if generic.db.is_empty() {
                bail!(40571, "OP_MSG requests require a $db argument");
            }
            crate::names::check_database(generic.db)?;
            if spec.flags.has(Flags::ADMIN) && generic.db != "admin" {
                bail!(
                    Unauthorized,
                    "{} may only be run against the admin database.",
                    spec.name
                );
            }
            conn.slot.start_operation(
                spec.name,
                self.opids.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
                body,
                started,
            );
            let deadline =
                (generic.max_time_ms > 0).then(|| started + Duration::from_millis(generic.max_time_ms.into()));
            let mut context = Context {
                service: self,
                interrupt: Interrupt::new(conn.slot.kill.clone(), deadline),
                conn,
                spec,
                body,
                sequences,
                generic,
                legacy,
                exhaust_allowed,
                after: After::default(),
            };
            let result = (spec.run)(&mut context, writer);
            after = context.after;
            result
        };
        let result = run();
        (result, after)
    }

    /// The newest cluster time there is.
    pub fn last_time(&self) -> Timestamp {
        Timestamp {
            secs: crate::clock::now_ms().div_euclid(1000) as u32,
            inc: 1,
        }
    }

    /// True when `name` is a command that may take long or wait for the disk.
    pub fn may_be_long(&self, name: &str) -> bool {
        dispatch::lookup(name).is_some_and(|spec| spec.flags.has(Flags::LONG))
    }
}

impl Slot {
    fn start_operation(&self, command: &'static str, opid: u32, body: nestor_model::RawDoc<'_>, started: Instant) {
        self.kill.reset();
        let mut operation = crate::lock(&self.operation);
        operation.opid = opid;
        operation.command = command;
        operation.body.clear();
        // What currentOp shows of a command is cut off far below this anyway.
        if body.len() <= 4096 {
            operation.body.extend_from_slice(body.as_bytes());
        }
        operation.started = Some(started);
    }

    fn finish_operation(&self) {
        crate::lock(&self.operation).opid = 0;
    }
}
