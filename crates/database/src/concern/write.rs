//! When a write is acknowledged.
//!
//! MongoDB's implicit default on a replica set is `{w: "majority"}`. In a set whose log is elsewhere that is durable there; with one node that asks for what
//! `j: true` does (`writeConcernMajorityJournalDefault`): the reply waits until the journal is synced.
//! `w: 1` replies at once, the journal follows within 100 ms.

use nestor_model::{ErrorCode, Str};
use nestor_storage::{Guarantee, Topology, WantedTags};
use std::sync::Arc;
use std::time::Duration;

/// How many nodes have to have a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// `w: n`.
    Nodes(u32),
    /// `w: "majority"`.
    Majority,
    /// `w: "name"`: a mode defined in a replica set's configuration.
    Mode(Str),
    /// `w: {tag: n}`: as a mode that says so.
    Tags(WantedTags),
}

/// A write concern as a client gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteConcern {
    /// `w`, by default majority.
    pub w: Acknowledgement,
    /// `w` was given.
    pub has_w: bool,
    /// `j: true` waits for the journal, `j: false` does not even with majority; `None` leaves it to `w`.
    pub journal: Option<bool>,
    /// `wtimeout`.
    pub timeout: Option<Duration>,
}

impl Default for WriteConcern {
    fn default() -> Self {
        Self {
            w: Acknowledgement::Majority,
            has_w: false,
            journal: None,
            timeout: None,
        }
    }
}

impl WriteConcern {
    /// True when the client wants no acknowledgement at all: `w: 0` without `j: true`.
    pub fn is_unacknowledged(&self) -> bool {
        self.w == Acknowledgement::Nodes(0) && self.journal != Some(true)
    }

    /// What the write has to have reached before the reply leaves; `None` if it waits for nothing. (`w: "majority"` with
    /// `j: false` does not wait for the disk of this node, so on one that is no member of a larger set for nothing.)
    pub fn guarantee(&self, is_member: bool) -> Option<Guarantee> {
        match (self.journal, &self.w) {
            (Some(true) | None, Acknowledgement::Majority) => Some(Guarantee::Committed),
            (Some(false), Acknowledgement::Majority) if is_member => Some(Guarantee::Committed),
            (_, Acknowledgement::Nodes(n)) if *n > 1 && is_member => Some(Guarantee::Applied(*n)),
            (Some(true), _) => Some(Guarantee::Durable),
            _ => None,
        }
    }
}

/// The write concern of a client that gives none: majority on a replica set, `w: 1` on a standalone.
pub fn implicit_concern(replica_set: bool) -> WriteConcern {
    WriteConcern {
        w: if replica_set {
            Acknowledgement::Majority
        } else {
            Acknowledgement::Nodes(1)
        },
        ..WriteConcern::default()
    }
}

/// Why a set can never satisfy a write concern, if so. `topology` is asked for when that depends on it.
pub fn unsatisfiable(concern: &WriteConcern, topology: impl Fn() -> Arc<Topology>) -> Option<(ErrorCode, String)> {
    let too_few = |why: &str| Some((ErrorCode::UnsatisfiableWriteConcern, why.to_owned()));
    match &concern.w {
        Acknowledgement::Nodes(n) if *n > 1 && *n as usize > topology().config.members.len() => {
            too_few("Not enough data-bearing nodes")
        }
        Acknowledgement::Mode(mode) if topology().config.mode(mode).is_none() => Some((
            ErrorCode::UnknownReplWriteConcern,
            format!("No write concern mode named '{mode}' found in replica set configuration"),
        )),
        Acknowledgement::Tags(tags) if !topology().config.has_tags(tags, |_| true) => {
            too_few("Not enough data-bearing nodes match the tags")
        }
        _ => None,
    }
}
