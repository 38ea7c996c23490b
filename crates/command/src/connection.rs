//! State of one client connection, owned by who reads its socket.

use crate::identity::Identity;
use crate::service::Service;
use nestor_database::connections::{Connections, Slot};
use nestor_database::session_id::Lsid;
use nestor_model::{Document, Error, Str};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// For how long the commands of a connection that stays with its session are not noted anew: how exact `lastUse` is.
const SESSION_NOTED: Duration = Duration::from_secs(1);

/// A connection. Dropping it removes it from the service's list.
#[derive(Debug)]
pub struct Connection {
    /// `connectionId` in replies; counts from 1.
    pub id: i64,
    /// Address of the peer as printed in logs, empty for embedded use.
    pub peer: Str,
    /// `host:port` the client reached this node at, which `hello` answers as its own name.
    pub host: Str,
    /// The part of it that others may see (`currentOp`).
    pub slot: Arc<Slot>,
    /// When the running command first came to wait, if it is being run again after a park.
    pub parked: Option<Instant>,
    /// A fail point's fault that waits to happen.
    pub fault: Option<Pending>,
    /// The user who is logged in.
    pub identity: Identity,
    /// How what it sends is protected.
    pub protection: Protection,
    /// It is the process's own, which needs no right.
    is_own: bool,
    /// The session of its last command, and when that was noted.
    session: Option<(Lsid, Instant)>,
    _listed: Listed,
}

#[derive(Debug)]
struct Listed {
    id: i64,
    list: Weak<Connections>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(list) = self.list.upgrade() {
            list.remove(self.id);
        }
    }
}

/// The verdict for a command that hit a fail point, for when it has waited.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Close the connection instead of answering.
    pub hang_up: bool,
    /// Answer this error.
    pub error: Option<Error>,
    /// The error's labels are these and not those that it has on its own account.
    pub labels: Option<Vec<&'static str>>,
    /// Run the command and add this to its reply.
    pub write_concern_error: Option<Document>,
    /// It happens to a getMore that has found its cursor.
    pub has_cursor: bool,
}

/// A fault that waits to happen on a connection.
#[derive(Clone, Debug)]
pub struct Pending {
    pub(crate) until: Instant,
    pub(crate) fault: Fault,
}

/// A connection as the command that runs on it has it.
#[derive(Debug)]
pub struct Caller<'r> {
    /// `connectionId` in replies.
    pub id: i64,
    /// Address of the peer.
    pub peer: &'r Str,
    /// `host:port` the client reached this node at.
    pub host: &'r Str,
    /// The part of it that others may see.
    pub slot: &'r Arc<Slot>,
    /// When the command first came to wait, if it is being run again after a park.
    pub parked: &'r mut Option<Instant>,
    /// A fail point's fault that waits to happen.
    pub fault: &'r mut Option<Pending>,
    /// The user who is logged in.
    pub identity: &'r mut Identity,
    /// How what it sends is protected.
    pub protection: &'r Protection,
    /// It is the process's own, which needs no right.
    pub(crate) is_own: bool,
}

/// How what a connection sends is protected from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// It is encrypted, by TLS.
    pub is_encrypted: bool,
    /// Subject of the certificate that the client has and that was verified, as RFC 4514 prints it.
    pub certificate: Option<Str>,
}

impl Connection {
    /// As the command that runs on it has it.
    pub(crate) fn caller(&mut self) -> Caller<'_> {
        Caller {
            id: self.id,
            peer: &self.peer,
            host: &self.host,
            slot: &self.slot,
            parked: &mut self.parked,
            fault: &mut self.fault,
            identity: &mut self.identity,
            protection: &self.protection,
            is_own: self.is_own,
        }
    }

    /// Whether the list of sessions has to be told that a command of `lsid` began `now`: not of a session that the
    /// connection used within this second.
    pub(crate) fn comes_to(&mut self, lsid: Lsid, now: Instant) -> bool {
        let is_noted = self
            .session
            .is_some_and(|(last, noted)| last == lsid && now.saturating_duration_since(noted) < SESSION_NOTED);
        if !is_noted {
            self.session = Some((lsid, now));
        }
        !is_noted
    }

    /// The running command ended before it could answer, by a bug: it runs no more, and the next one is none that waited.
    pub fn give_up(&mut self) {
        self.parked = None;
        self.fault = None;
        self.slot.finish_operation();
    }

    /// A connection over which the process asks itself. It needs no right.
    pub(crate) fn of_process(service: &Service) -> Self {
        let mut own = Self::new(service, "");
        own.is_own = true;
        own
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
            session: None,
            identity: Identity::default(),
            protection: Protection::default(),
            is_own: false,
            _listed: Listed {
                id: slot.id,
                list: Arc::downgrade(&service.connections),
            },
            slot,
        }
    }
}
