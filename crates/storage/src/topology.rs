//! Which nodes hold the data, and how far each guarantee reaches: the one place that knows.
//!
//! The embedded engine is a replica set of one that was elected once and for all, and what is durable here is committed. Those
//! above ask and assume neither: an engine whose log is replicated has terms that change, other members, and commits that
//! are durable here and can still be rolled back.

use nestor_model::{ObjectId, Timestamp};

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
}

/// The members, and which of them is the primary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The election that made the primary what it is.
    pub term: i64,
    /// The identity of the election, which drivers compare.
    pub election_id: ObjectId,
    /// Version of the set's configuration.
    pub config_version: i32,
    /// The members other than this node, by `host:port`.
    pub others: Vec<String>,
    /// The primary, if it is another member.
    pub other_primary: Option<usize>,
}

impl Topology {
    /// All members; this node goes by the name that the client reached it under.
    pub fn members<'t>(&'t self, own: &'t str) -> impl Iterator<Item = &'t str> {
        std::iter::once(own).chain(self.others.iter().map(String::as_str))
    }

    /// The primary.
    pub fn primary<'t>(&'t self, own: &'t str) -> &'t str {
        let other = self.other_primary.and_then(|at| self.others.get(at));
        other.map_or(own, String::as_str)
    }

    /// Whether this node is it.
    pub fn is_primary(&self) -> bool {
        self.other_primary.is_none()
    }
}

/// A node that is alone, and primary.
pub(crate) static ALONE: Topology = Topology {
    term: FIRST_TERM,
    election_id: election_id(FIRST_TERM),
    config_version: 1,
    others: Vec::new(),
    other_primary: None,
};

const FIRST_TERM: i64 = 1;

/// As MongoDB makes them: the largest time, then the term.
const fn election_id(term: i64) -> ObjectId {
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
        let alone = ALONE.clone();
        assert_eq!(alone.members("a:1").collect::<Vec<_>>(), ["a:1"]);
        assert_eq!((alone.primary("a:1"), alone.is_primary()), ("a:1", true));
        assert_eq!(
            alone.election_id,
            ObjectId([0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1])
        );
        let secondary = Topology {
            others: vec!["b:1".into(), "c:1".into()],
            other_primary: Some(1),
            ..alone
        };
        assert_eq!(secondary.members("a:1").collect::<Vec<_>>(), ["a:1", "b:1", "c:1"]);
        assert_eq!((secondary.primary("a:1"), secondary.is_primary()), ("c:1", false));
    }
}
