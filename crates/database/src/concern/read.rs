//! The read concern: which states a statement may read.
//!
//! With one node everything committed is what every level but `linearizable` may read; a snapshot taken
//! when the statement starts satisfies them all.

use nestor_model::{Result, Timestamp, bail};

/// The levels, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Level {
    Local,
    Available,
    Majority,
    Linearizable,
    Snapshot,
    /// Nestor's own, for transactions: a snapshot, and what was read is validated at the commit.
    Serializable,
}

/// A read concern as a client gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadConcern {
    /// The level; `None` is the default, local.
    pub level: Option<Level>,
    /// Read nothing older than this.
    pub after_cluster_time: Option<Timestamp>,
    /// Read exactly this time (level snapshot).
    pub at_cluster_time: Option<Timestamp>,
}

impl ReadConcern {
    /// Refuses times that do not go with the level. Errors: 72.
    pub fn check(&self) -> Result<()> {
        let level = self.level();
        if self.at_cluster_time.is_some() && level != Level::Snapshot {
            bail!(
                InvalidOptions,
                "readConcern.atClusterTime field can be set only if readConcern.level is equal to snapshot"
            );
        }
        if self.after_cluster_time.is_some() {
            if self.at_cluster_time.is_some() {
                bail!(
                    InvalidOptions,
                    "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed"
                );
            }
            if matches!(level, Level::Available | Level::Linearizable) {
                bail!(
                    InvalidOptions,
                    "readConcern.afterClusterTime field can be set only if readConcern.level is equal to majority, local, or snapshot"
                );
            }
        }
        // The ordinal alone is no time to read at, but any time that is not zero is one that has passed.
        let is_null = |time: Timestamp| time == Timestamp::default();
        if self.at_cluster_time.is_some_and(|time| time.secs == 0) || self.after_cluster_time.is_some_and(is_null) {
            bail!(InvalidOptions, "readConcern timestamps must not be null");
        }
        Ok(())
    }

    /// The level, by default local.
    pub fn level(&self) -> Level {
        self.level.unwrap_or(Level::Local)
    }

    /// The level as clients write it.
    pub fn level_name(&self) -> &'static str {
        self.level().name()
    }

    /// True when nothing but perhaps `provenance` was given.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// True when the level is local, given or not.
    pub fn is_local(&self) -> bool {
        self.level() == Level::Local
    }
}

impl Level {
    /// The name, as clients write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Available => "available",
            Self::Majority => "majority",
            Self::Linearizable => "linearizable",
            Self::Snapshot => "snapshot",
            Self::Serializable => "serializable",
        }
    }

    /// The level of that name. Errors: 2.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "local" => Self::Local,
            "available" => Self::Available,
            "majority" => Self::Majority,
            "linearizable" => Self::Linearizable,
            "snapshot" => Self::Snapshot,
            "serializable" => Self::Serializable,
            other => bail!(
                BadValue,
                "Enumeration value '{other}' for field 'readConcern.level' is not a valid value."
            ),
        })
    }
}
