//! Which nodes hold the data, and how far each guarantee reaches: the one place that knows.
//!
//! A node without a replicated log is a replica set of one that was elected once and for all, and what is durable there is committed. Those
//! above ask and assume neither: a member of a larger set has terms that change, other members, and commits that
//! are durable here and can still be rolled back. It is told of all that by whoever reads and writes the log of the set.

use nestor_model::{ObjectId, Result, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
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

/// Of how many members with different values of each tag a commit is wanted.
pub type WantedTags = Arc<[(String, u32)]>;

/// How far a commit must have come before it is acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Guarantee {
    /// The commit survives a crash of this node (`j: true`).
    Durable,
    /// The commit is never rolled back (`w: "majority"`).
    Committed,
    /// So many members show the commit to their readers, this one among them (`w: 2`).
    Applied(u32),
    /// Members that show the commit to their readers have so many different values of each of these tags.
    Tagged(WantedTags),
}

/// What the configuration of a set says of a member.
#[derive(Clone, PartialEq, Debug)]
pub struct MemberConfig {
    /// Its number, which it keeps.
    pub id: i32,
    /// `host:port`. The name of a node that is alone is empty: it goes by the one that the client reached it under.
    pub host: String,
    /// Of those that have everything the one with the highest priority is to be primary; one with 0 never is.
    pub priority: f64,
    /// Clients are not told of it.
    pub is_hidden: bool,
    /// It applies commits so long after they were made, in whole seconds.
    pub delay: Duration,
    /// By name.
    pub tags: Vec<(String, String)>,
}

impl MemberConfig {
    /// A member of which only the name is known.
    pub fn new(id: i32, host: &str) -> Self {
        Self {
            id,
            host: host.to_owned(),
            priority: 1.0,
            is_hidden: false,
            delay: Duration::ZERO,
            tags: Vec::new(),
        }
    }

    fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(tag, _)| tag == name).map(|(_, value)| &**value)
    }
}

/// The configuration of a set.
#[derive(Clone, PartialEq, Debug)]
pub struct Configuration {
    /// Its version, which each change raises.
    pub version: i32,
    /// All members, in their order.
    pub members: Vec<MemberConfig>,
    /// Write concerns by name: how many values of which tags they want.
    pub modes: Vec<(String, WantedTags)>,
}

impl Configuration {
    /// The member of that name.
    pub fn member(&self, host: &str) -> Option<&MemberConfig> {
        self.members.iter().find(|member| member.host == host)
    }

    /// The tags that a write concern of that name wants.
    pub fn mode(&self, name: &str) -> Option<&WantedTags> {
        self.modes.iter().find(|(mode, _)| mode == name).map(|(_, tags)| tags)
    }

    /// Whether the members of which `counts` have together as many values of each tag as are wanted.
    pub fn has_tags(&self, wanted: &WantedTags, counts: impl Fn(&MemberConfig) -> bool) -> bool {
        wanted.iter().all(|(name, count)| {
            let counted = self.members.iter().filter(|member| counts(member));
            let values: BTreeSet<&str> = counted.filter_map(|member| member.tag(name)).collect();
            values.len() >= *count as usize
        })
    }
}

/// The members, and which of them is the primary.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    /// The election that made the primary what it is.
    pub term: i64,
    /// Who is there.
    pub config: Configuration,
    /// Which of the members this node is.
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
            config: Configuration {
                version: 1,
                members: vec![MemberConfig::new(0, "")],
                modes: Vec::new(),
            },
            own: 0,
            primary: Some(0),
            changes: 0,
        }
    }

    /// The identity of the election, which drivers compare.
    pub fn election_id(&self) -> ObjectId {
        election_id(self.term)
    }

    /// All members with their names; `reached` is the name that the client reached this node under.
    pub fn members<'t>(&'t self, reached: &'t str) -> impl Iterator<Item = (&'t str, &'t MemberConfig)> {
        let members = self.config.members.iter();
        members.map(move |member| (known(&member.host, reached), member))
    }

    /// What the configuration says of this node.
    pub fn own_config(&self) -> Option<&MemberConfig> {
        self.config.members.get(self.own)
    }

    /// This node.
    pub fn own<'t>(&'t self, reached: &'t str) -> &'t str {
        self.own_config().map_or(reached, |own| known(&own.host, reached))
    }

    /// The primary, if there is one.
    pub fn primary<'t>(&'t self, reached: &'t str) -> Option<&'t str> {
        let primary = self.config.members.get(self.primary?)?;
        Some(known(&primary.host, reached))
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
    /// It may become primary now.
    pub is_electable: bool,
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

    /// Gives the set another configuration, with a version that is greater than that of the one before, unless `force`: then it is
    /// made greater.
    ///
    /// Errors: those of `replSetReconfig`.
    fn reconfigure(&self, wanted: Configuration, force: bool) -> Result<()>;
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
        let names = |topology: &Topology, reached: &str| -> Vec<String> {
            topology.members(reached).map(|(name, _)| name.to_owned()).collect()
        };
        assert_eq!(names(&alone, "a:1"), ["a:1"]);
        assert_eq!((alone.primary("a:1"), alone.is_primary()), (Some("a:1"), true));
        assert_eq!(
            alone.election_id(),
            ObjectId([0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1])
        );
        let secondary = Topology {
            config: Configuration {
                version: 2,
                members: (0i32..)
                    .zip(["b:1", "a:1", "c:1"])
                    .map(|(id, host)| MemberConfig::new(id, host))
                    .collect(),
                modes: Vec::new(),
            },
            own: 1,
            primary: Some(2),
            ..alone
        };
        assert_eq!(names(&secondary, "x:1"), ["b:1", "a:1", "c:1"]);
        assert_eq!(secondary.own("x:1"), "a:1");
        assert_eq!((secondary.primary("x:1"), secondary.is_primary()), (Some("c:1"), false));
        let leaderless = Topology {
            primary: None,
            ..secondary
        };
        assert_eq!((leaderless.primary("x:1"), leaderless.is_primary()), (None, false));
    }

    #[test]
    fn tags_are_counted_by_their_values() {
        let tagged = |id, host: &str, rack: &str| MemberConfig {
            tags: vec![("rack".into(), rack.into())],
            ..MemberConfig::new(id, host)
        };
        let config = Configuration {
            version: 1,
            members: vec![tagged(0, "a:1", "x"), tagged(1, "b:1", "x"), tagged(2, "c:1", "y")],
            modes: Vec::new(),
        };
        let wanted = |count| WantedTags::from([("rack".to_owned(), count)]);
        assert!(config.has_tags(&wanted(2), |_| true));
        assert!(!config.has_tags(&wanted(3), |_| true));
        assert!(!config.has_tags(&wanted(2), |member| member.host != "c:1"));
        assert!(!config.has_tags(&WantedTags::from([("floor".to_owned(), 1)]), |_| true));
    }
}
