//! Which nodes hold the data, and how far each guarantee reaches: the one place that knows.
//!
//! A node without a replicated log is a replica set of one that was elected once and for all, and what is durable there is committed. Those
//! above ask and assume neither: a member of a larger set has terms that change, other members, and commits that
//! are durable here and can still be rolled back. It is told of all that by whoever reads and writes the log of the set.

use nestor_model::{ObjectId, Timestamp};
use std::time::Duration;

/// The place of a commit in the history of a replica set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct OpTime {
    /// The election that made its node the primary.
    pub term: i64,
    /// When it was made.
    pub ts: Timestamp,
}

/// How far the history reaches with each guarantee. `committed <= last` and `durable <= last`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Positions {
    /// The commits that snapshots of this node show.
    pub last: OpTime,
    /// The commits that survive a crash of this node.
    pub durable: OpTime,
    /// The commits that survive the loss of any minority of the nodes: they are never rolled back.
    pub committed: OpTime,
}

/// How far a commit must have come before it is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guarantee {
    /// The commit survives a crash of this node (`j: true`).
    Durable,
    /// The commit is never rolled back (`w: "majority"`).
    Committed,
    /// So many members show the commit to their readers, this one among them (`w: 2`).
    Applied(u32),
}

/// The members, and which of them is the primary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The election that made the primary what it is.
    pub term: i64,
    /// Version of the set's configuration.
    pub config_version: i32,
    /// All members by `host:port`, in the order of the configuration. The name of a node that is alone is empty: it goes by the one that
    /// the client reached it under.
    pub members: Vec<String>,
    /// Which of them this node is.
    pub own: usize,
    /// Which of them is the primary; `None` if nobody is, as far as this node knows.
    pub primary: Option<usize>,
    /// How often any of this has changed since the node started.
    pub changes: i64,
}

impl Topology {
    /// A node that is alone, and primary.
    pub fn alone() -> Self {
        Self {
            term: FIRST_TERM,
            config_version: 1,
            members: vec![String::new()],
            own: 0,
            primary: Some(0),
            changes: 0,
        }
    }

    /// The identity of the election, which drivers compare.
    pub fn election_id(&self) -> ObjectId {
        election_id(self.term)
    }

    /// All members; `reached` is the name that the client reached this node under.
    pub fn members<'t>(&'t self, reached: &'t str) -> impl Iterator<Item = &'t str> {
        self.members.iter().map(move |name| known(name, reached))
    }

    /// This node.
    pub fn own<'t>(&'t self, reached: &'t str) -> &'t str {
        self.members.get(self.own).map_or(reached, |name| known(name, reached))
    }

    /// The primary, if there is one.
    pub fn primary<'t>(&'t self, reached: &'t str) -> Option<&'t str> {
        let name = self.members.get(self.primary?)?;
        Some(known(name, reached))
    }

    /// Whether this node is it.
    pub fn is_primary(&self) -> bool {
        self.primary == Some(self.own)
    }
}

fn known<'t>(name: &'t str, reached: &'t str) -> &'t str {
    if name.is_empty() { reached } else { name }
}

/// What a member said of itself, or this node knows of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemberState {
    /// `host:port`.
    pub name: String,
    /// The last commit that its readers see.
    pub applied: u64,
    /// The optime of that commit.
    pub optime: OpTime,
    /// The optime up to which its own journal is on disk.
    pub durable: OpTime,
    /// It is primary, as far as it knows.
    pub is_primary: bool,
    /// How long ago it said so, by the clock of this node, in milliseconds.
    pub age_ms: u64,
    /// How long it is up, in seconds.
    pub uptime_secs: u64,
}

/// Whoever runs the membership of this node, for commands that ask for a change of it.
pub trait Steward: Send + Sync {
    /// Makes this node, which is the primary, a secondary: writes are refused from the call on. It does not become primary again for `period`.
    /// Unless `force`, another member has to have caught up within `catch_up`. Returns when another may take over; the
    /// error says why not, and then this node goes on as it was.
    fn step_down(&self, period: Duration, catch_up: Duration, force: bool) -> Result<(), String>;

    /// Keeps this node, which is a secondary, from becoming primary for `period`; zero lets it again.
    fn freeze(&self, period: Duration);
}

/// The term of a node that is alone.
pub(crate) const FIRST_TERM: i64 = 1;

/// The identity of the election of a term, as MongoDB makes them: the largest time, then the term.
pub const fn election_id(term: i64) -> ObjectId {
    let mut id = [0; 12];
    (id[0], id[1], id[2], id[3]) = (0x7F, 0xFF, 0xFF, 0xFF);
    let term = term.to_be_bytes();
    let mut at = 0;
    while at < term.len() {
        id[4 + at] = term[at];
        at += 1;
    }
    ObjectId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_there() {
        let alone = Topology::alone();
        assert_eq!(alone.members("a:1").collect::<Vec<_>>(), ["a:1"]);
        assert_eq!((alone.primary("a:1"), alone.is_primary()), (Some("a:1"), true));
        assert_eq!(
            alone.election_id(),
            ObjectId([0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1])
        );
        let secondary = Topology {
            members: vec!["b:1".into(), "a:1".into(), "c:1".into()],
            own: 1,
            primary: Some(2),
            ..alone
        };
        assert_eq!(secondary.members("x:1").collect::<Vec<_>>(), ["b:1", "a:1", "c:1"]);
        assert_eq!(secondary.own("x:1"), "a:1");
        assert_eq!((secondary.primary("x:1"), secondary.is_primary()), (Some("c:1"), false));
        let leaderless = Topology {
            primary: None,
            ..secondary
        };
        assert_eq!((leaderless.primary("x:1"), leaderless.is_primary()), (None, false));
    }
}
