//! The open connections, by what others may see and do of them.

use crate::ending::Ending;
use crate::index_builds::Build;
use crate::lock;
use crate::observe::api_use::{ApiUse, PastUse};
use crate::observe::transaction_counts::TransactionFacts;
use crate::session_id::Lsid;
use crate::users::UserName;
use nestor_exec::KillSwitch;
use nestor_exec::summary::Leaf;
use nestor_model::memory::{Account, Pool};
use nestor_model::value::DocRef;
use nestor_model::{Document, RawDoc, Str, ValueRef};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The open connections by id.
#[derive(Debug, Default)]
pub struct Connections {
    last_id: AtomicI64,
    /// Number of the operation that began last.
    last_operation: AtomicU32,
    slots: Mutex<BTreeMap<i64, Arc<Slot>>>,
    /// Which API versions were declared on connections that are closed.
    pub past_api_use: PastUse,
    /// Memory of the operations that they run.
    pub memory: Arc<Pool>,
}

impl Connections {
    /// A number for an operation that begins.
    pub fn next_operation(&self) -> u32 {
        self.last_operation.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Lists a connection to a peer.
    pub fn add(&self, peer: &str) -> Arc<Slot> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let kill = Arc::<KillSwitch>::default();
        let slot = Arc::new(Slot {
            id,
            peer: peer.into(),
            account: Some(self.memory.open(kill.clone())),
            kill,
            ..Slot::default()
        });
        lock(&self.slots).insert(id, slot.clone());
        slot
    }

    /// A connection is closed.
    pub fn remove(&self, id: i64) {
        let slot = lock(&self.slots).remove(&id);
        if let Some(slot) = slot {
            if let Some(application) = slot.application() {
                self.past_api_use.keep(application, &slot.api_use);
            }
        }
    }

    /// The open connections in order of their ids.
    pub fn all(&self) -> Vec<Arc<Slot>> {
        lock(&self.slots).values().cloned().collect()
    }

    /// How many were opened since the start.
    pub fn total_created(&self) -> i64 {
        self.last_id.load(Ordering::Relaxed)
    }
}

/// The part of a connection that others may see and end: its client and its running operation.
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
    /// Ends the conversation, where it can be asked to.
    pub ending: Ending,
    /// Memory of the running operation.
    pub account: Option<Arc<Account>>,
    /// Which API versions its commands declared.
    pub api_use: ApiUse,
    /// The user who is logged in, where access control is on.
    pub user: Mutex<Option<UserName>>,
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
    /// The session that it belongs to.
    pub lsid: Option<Lsid>,
    /// When it started.
    pub started: Option<Instant>,
    /// Where its rows come from.
    pub plan: Vec<Leaf>,
    /// The transaction it belongs to.
    pub transaction: Option<Arc<TransactionFacts>>,
    /// The reason why it waits.
    pub waits: Option<Waits>,
    /// The index build it is at.
    pub build: Option<Arc<Build>>,
}

/// The reason why an operation waits instead of running.
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
    /// An operation begins. `body` is what others may see of what asks for it.
    pub fn start_operation(&self, command: &'static str, opid: u32, body: RawDoc<'_>, started: Instant) {
        self.kill.reset();
        let mut operation = lock(&self.operation);
        operation.opid = opid;
        operation.command = command;
        operation.body.clear();
        if body.len() <= SHOWN_BYTES_MAX {
            operation.body.extend_from_slice(body.as_bytes());
        }
        operation.lsid = None;
        operation.started = Some(started);
        operation.plan.clear();
        operation.transaction = None;
        operation.waits = None;
    }

    /// The name of the client's application, empty if it gave none; `None` of what is no client: it never said who it is.
    pub fn application(&self) -> Option<String> {
        let client = lock(&self.client);
        let client = client.as_ref()?;
        Some(app_name(client.as_ref()).unwrap_or_default().to_owned())
    }

    /// The running operation belongs to a session.
    pub fn enter_session(&self, lsid: Lsid) {
        lock(&self.operation).lsid = Some(lsid);
    }

    /// Whether `user` is who is logged in; what is nobody's is everybody's.
    pub fn is_of(&self, user: Option<&UserName>) -> bool {
        lock(&self.user).as_ref() == user
    }

    /// The operation waits and will run again.
    pub fn pause_operation(&self, waits: Waits) {
        lock(&self.operation).waits = Some(waits);
    }

    /// The operation that waited runs again: it is still the same, and whoever killed it meanwhile meant it. One that
    /// only looks whether its wait is over still waits.
    pub fn resume_operation(&self) {
        let mut operation = lock(&self.operation);
        operation.plan.clear();
        operation.waits = None;
    }

    /// The operation is done.
    pub fn finish_operation(&self) {
        lock(&self.operation).opid = 0;
    }
}

/// The application's name, if the client gave one.
pub fn app_name(client: DocRef<'_>) -> Option<&str> {
    match client.get("application")? {
        ValueRef::Document(application) => application.get("name")?.as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;

    #[test]
    fn what_never_said_who_it_is_is_no_application() {
        let slot = Slot::default();
        assert_eq!(slot.application(), None);
        *lock(&slot.client) = Some(doc! { "driver": doc! { "name": "d" } });
        assert_eq!(slot.application().as_deref(), Some(""));
        *lock(&slot.client) = Some(doc! { "application": doc! { "name": "a" } });
        assert_eq!(slot.application().as_deref(), Some("a"));
    }
}
