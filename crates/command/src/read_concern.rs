//! `readConcern`.
//!
//! With one node everything committed is what every level but `linearizable` may read; a snapshot taken
//! when the command starts satisfies them all.

use crate::args::{Arg, At, unknown_field, wrong_type};
use nestor_model::{Result, Timestamp, ValueRef, bail};

/// The levels, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Level {
    Local,
    Available,
    Majority,
    Linearizable,
    Snapshot,
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
    /// Reads the argument; null is the default.
    pub fn parse(value: ValueRef<'_>, at: At<'_>) -> Result<Self> {
        let doc = match value {
            ValueRef::Document(doc) => doc,
            ValueRef::Null | ValueRef::Undefined => return Ok(Self::default()),
            other => return Err(wrong_type(at, other.bson_type(), "object")),
        };
        let mut out = Self::default();
        for (name, value) in doc.iter() {
            let at = At {
                path: "readConcern",
                field: name,
            };
            match name {
                "level" => out.level = <&str as Arg>::parse(value, at)?.map(Level::parse).transpose()?,
                "afterClusterTime" => out.after_cluster_time = Some(timestamp(value, at)?),
                "atClusterTime" => out.at_cluster_time = Some(timestamp(value, at)?),
                "afterOpTime" => {
                    if !matches!(value, ValueRef::Document(_)) {
                        return Err(wrong_type(at, value.bson_type(), "object"));
                    }
                }
                "provenance" => provenance(value, at)?,
                other => return Err(unknown_field("readConcern", other)),
            }
        }
        out.check()?;
        Ok(out)
    }

    fn check(&self) -> Result<()> {
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
        for time in [self.after_cluster_time, self.at_cluster_time].into_iter().flatten() {
            if time == Timestamp::default() {
                bail!(InvalidOptions, "readConcern timestamps must not be null");
            }
        }
        Ok(())
    }

    /// The level, by default local.
    pub fn level(&self) -> Level {
        self.level.unwrap_or(Level::Local)
    }

    /// The level as clients write it.
    pub fn level_name(&self) -> &'static str {
        match self.level() {
            Level::Local => "local",
            Level::Available => "available",
            Level::Majority => "majority",
            Level::Linearizable => "linearizable",
            Level::Snapshot => "snapshot",
        }
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
    fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "local" => Self::Local,
            "available" => Self::Available,
            "majority" => Self::Majority,
            "linearizable" => Self::Linearizable,
            "snapshot" => Self::Snapshot,
            other => bail!(
                BadValue,
                "Enumeration value '{other}' for field 'readConcern.level' is not a valid value."
            ),
        })
    }
}

fn timestamp(value: ValueRef<'_>, at: At<'_>) -> Result<Timestamp> {
    match value {
        ValueRef::Timestamp(time) => Ok(time),
        other => Err(wrong_type(at, other.bson_type(), "timestamp")),
    }
}

/// `provenance` says where a concern came from and changes nothing here.
pub(crate) fn provenance(value: ValueRef<'_>, at: At<'_>) -> Result<()> {
    match <&str as Arg>::parse(value, at)? {
        None
        | Some(
            "clientSupplied" | "customDefault" | "implicitDefault" | "getLastErrorDefaults" | "internalWriteDefault",
        ) => Ok(()),
        Some(other) => bail!(
            BadValue,
            "Enumeration value '{other}' for field '{at}' is not a valid value."
        ),
    }
}
