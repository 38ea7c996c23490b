//! State of one client connection, owned by who reads its socket.

use crate::api_use::ApiUse;
use crate::facts::Facts;
use crate::service::Service;
use crate::transaction_counts::TransactionFacts;
use nestor_exec::KillSwitch;
use nestor_exec::summary::Leaf;
use nestor_model::memory::Account;
use nestor_model::{Document, RawDoc, Str};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

/// A connection. Dropping it removes it from the service's list.
#[derive(Debug)]
pub struct Connection {
    /// `connectionId` in replies; counts from 1.
    pub id: i64,
    /// Address of the peer as printed in logs, empty for embedded use.
    pub peer: Str,
    /// `host:port` the client reached this node at, which `hello` answers as its own name.
    pub host: Str,
    /// What others may see of it (`currentOp`).
    pub slot: Arc<Slot>,
    /// When the running command first came to wait, if it is being run again after a park.
    pub parked: Option<Instant>,
    /// A fail point's fault that waits to happen.
    pub fault: Option<crate::fail_points::Pending>,
    _listed: Listed,
}

/// What others may see and do of a connection: its client and its running operation.
#[derive(Debug, Default)]
pub struct Slot {
    /// `connectionId`.
    pub id: i64,
    /// Address of the peer.
    pub peer: Str,
    /// Client metadata of the first `hello`.
    pub client: Mutex<Option<Document>>,
    /// The operation it runs.
    pub operation: Mutex<Operation>,
    /// Kills the running operation.
    pub kill: Arc<KillSwitch>,
    /// Memory of the running operation.
    pub account: Option<Arc<Account>>,
    /// Which API versions its commands declared.
    pub api_use: ApiUse,
}

/// The operation a connection runs, or ran last.
#[derive(Debug, Default)]
pub struct Operation {
    /// Its number, 0 while there is none.
    pub opid: u32,
    /// Name of the command.
    pub command: &'static str,
    /// The command document, as bytes.
    pub body: Vec<u8>,
    /// When it started.
    pub started: Option<Instant>,
    /// Where its rows come from.
    pub plan: Vec<Leaf>,
    /// The transaction it belongs to.
    pub transaction: Option<Arc<TransactionFacts>>,
    /// What it waits for.
    pub waits: Option<Waits>,
    /// The index build it is at.
    pub build: Option<Arc<crate::index_builds::Build>>,
}

/// What an operation waits for that does not run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// The lock against writing that `fsync` holds.
    ForLock,
    /// Something to answer.
    ForNews,
}

/// Bytes of a command that `currentOp` shows; of a longer one nothing.
const SHOWN_BYTES_MAX: usize = 1 << 16;

impl Slot {
    /// An operation begins.
    pub(crate) fn start_operation(&self, command: &'static Facts, opid: u32, body: RawDoc<'_>, started: Instant) {
        self.kill.reset();
        let mut operation = crate::lock(&self.operation);
        operation.opid = opid;
        operation.command = command.name;
        operation.body.clear();
        if body.len() <= SHOWN_BYTES_MAX {
            match command.hide_secrets(body) {
                None => operation.body.extend_from_slice(body.as_bytes()),
                Some(shown) => operation.body.extend_from_slice(shown.as_raw().as_bytes()),
            }
        }
        operation.started = Some(started);
        operation.plan.clear();
        operation.transaction = None;
        operation.waits = None;
    }

    /// The operation waits and will run again.
    pub(crate) fn pause_operation(&self, waits: Waits) {
        crate::lock(&self.operation).waits = Some(waits);
    }

    /// The operation that waited runs again: it is still the same, and whoever killed it meanwhile meant it.
    pub(crate) fn resume_operation(&self) {
        let mut operation = crate::lock(&self.operation);
        operation.plan.clear();
        operation.waits = None;
    }

    /// The operation is done.
    pub(crate) fn finish_operation(&self) {
        crate::lock(&self.operation).opid = 0;
    }
}

#[derive(Debug)]
struct Listed {
    id: i64,
    list: Weak<crate::service::Connections>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(list) = self.list.upgrade() {
            list.remove(self.id);
        }
    }
}

impl Connection {
    /// The running command ended before it could answer, by a bug: it runs no more, and the next one is none that waited.
    pub fn give_up(&mut self) {
        self.parked = None;
        self.fault = None;
        self.slot.finish_operation();
    }

    /// A new connection to `service`.
    pub fn new(service: &Service, peer: &str) -> Self {
        let slot = service.connections.add(peer);
        Self {
            id: slot.id,
            peer: peer.into(),
            host: service.options.host.clone(),
            parked: None,
            fault: None,
            _listed: Listed {
                id: slot.id,
                list: Arc::downgrade(&service.connections),
            },
            slot,
        }
    }
}
