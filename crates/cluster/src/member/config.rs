//! Who is in the set: a record of the log to which members add themselves.

use super::MemberError;
use crate::{Log, LogError, Version};
use nestor_model::{RawDoc, RawWriter, ValueRef};

/// The name of the record.
const RECORD: &str = "config";
/// Most members, as in MongoDB.
const MEMBERS_MAX: usize = 50;
/// How many times a member tries to add itself while others do.
const TRIES: u32 = 50;

/// The configuration of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetConfig {
    /// Its version, which each change raises.
    pub version: i32,
    /// The name of the set.
    pub set: String,
    /// Members by `host:port`, in the order in which they came.
    pub members: Vec<String>,
}

impl SetConfig {
    fn encode(&self) -> Vec<u8> {
        let mut out = RawWriter::onto(Vec::new());
        out.append("set", self.set.as_str());
        out.begin_array("members");
        for (i, member) in self.members.iter().enumerate() {
            out.append_index(i, member.as_str());
        }
        out.end();
        out.finish()
    }

    fn decode(version: Version, bytes: &[u8]) -> Option<Self> {
        let document = RawDoc::validate(bytes).ok()?;
        let ValueRef::String(set) = document.get("set")? else {
            return None;
        };
        let members = document.get("members")?.as_array()?;
        let members = members.iter().map(|member| match member {
            ValueRef::String(member) => Some(member.to_owned()),
            _ => None,
        });
        Some(Self {
            version: i32::try_from(version).ok()?,
            set: set.to_owned(),
            members: members.collect::<Option<_>>()?,
        })
    }
}

/// The configuration that the log has; `None` before the first member.
pub fn read(log: &dyn Log) -> Result<Option<SetConfig>, LogError> {
    let Some((version, bytes)) = log.record(RECORD)? else {
        return Ok(None);
    };
    let config = SetConfig::decode(version, &bytes);
    config
        .map(Some)
        .ok_or_else(|| LogError::Damaged("the configuration of the set".into()))
}

/// Adds `host` to the set, which it makes if it is the first, and returns the configuration with it.
///
/// Errors: another set has the log.
pub fn join(log: &dyn Log, set: &str, host: &str) -> Result<SetConfig, MemberError> {
    for _ in 0..TRIES {
        let found = read(log)?;
        let mut config = found.unwrap_or_else(|| SetConfig {
            version: 0,
            set: set.to_owned(),
            members: Vec::new(),
        });
        if config.set != set {
            let of = &config.set;
            return Err(MemberError::Refused(format!(
                "the log is that of the set {of}, not of {set}"
            )));
        }
        if config.members.iter().any(|member| member == host) {
            return Ok(config);
        }
        if config.members.len() == MEMBERS_MAX {
            return Err(MemberError::Refused(format!(
                "the set has {MEMBERS_MAX} members already"
            )));
        }
        config.members.push(host.to_owned());
        let expected = u64::try_from(config.version).unwrap_or(0);
        if log.replace_record(RECORD, expected, &config.encode())? {
            config.version += 1;
            return Ok(config);
        }
    }
    Err(LogError::Unavailable("the configuration of the set changes too often".into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryLog;

    #[test]
    fn members_add_themselves() {
        let log = MemoryLog::new();
        assert_eq!(read(&log).unwrap(), None);
        assert_eq!(join(&log, "rs0", "a:1").unwrap().version, 1);
        let two = join(&log, "rs0", "b:1").unwrap();
        assert_eq!(
            (two.version, two.members.as_slice()),
            (2, &["a:1".to_owned(), "b:1".to_owned()][..])
        );
        assert_eq!(join(&log, "rs0", "a:1").unwrap(), two);
        assert_eq!(read(&log).unwrap(), Some(two));
        let refused = join(&log, "rs1", "c:1").unwrap_err().to_string();
        assert_eq!(refused, "the log is that of the set rs0, not of rs1");
    }
}
