//! Who is in the set, and how: a record of the log to which members add themselves, and which `replSetReconfig` changes.

use super::MemberError;
use crate::{Log, LogError, Version};
use nestor_model::number::{Num, safe_i64};
use nestor_model::{Error, ErrorCode, RawDoc, RawWriter, ValueRef, bail};
use nestor_storage::{Configuration, MemberConfig, WantedTags};
use std::time::Duration;

/// The name of the record.
const RECORD: &str = "config";
/// Most members, as in MongoDB.
const MEMBERS_MAX: usize = 50;
/// How many times a member tries to add itself while others do.
const TRIES: u32 = 50;

/// What the log consists of: frames of the journal and the records beside them. A version that adds to it writes what all members of a set know
/// until all of them know more, and raises it then; a member that finds a greater one than this refuses to go on.
///
/// | format | since |
/// |---|---|
/// | 1 | the first |
/// | 2 | the entries of an index that is built are in no commit: members make them |
pub const FORMAT: i64 = 2;

/// The configuration of a set, as its record has it.
#[derive(Clone, PartialEq, Debug)]
pub struct SetConfig {
    /// The version of the record; 0 before there is one.
    record: Version,
    /// What the log consists of, up to [`FORMAT`].
    pub format: i64,
    /// The name of the set.
    pub set: String,
    /// Who is in it.
    pub config: Configuration,
    /// Members that were removed, and do not add themselves again.
    removed: Vec<String>,
}

impl SetConfig {
    fn encode(&self) -> Vec<u8> {
        let mut out = RawWriter::onto(Vec::new());
        out.append("format", self.format);
        out.append("set", self.set.as_str());
        out.append("version", self.config.version);
        out.begin_array("members");
        for (i, member) in self.config.members.iter().enumerate() {
            out.begin_document_at(i);
            out.append("id", member.id);
            out.append("host", member.host.as_str());
            out.append("priority", member.priority);
            out.append("hidden", member.is_hidden);
            out.append("delaySecs", i64::try_from(member.delay.as_secs()).unwrap_or(i64::MAX));
            out.begin_document("tags");
            for (name, value) in &member.tags {
                out.append(name, value.as_str());
            }
            out.end();
            out.end();
        }
        out.end();
        out.begin_document("modes");
        for (name, tags) in &self.config.modes {
            out.begin_document(name);
            for (tag, count) in tags.iter() {
                out.append(tag, i64::from(*count));
            }
            out.end();
        }
        out.end();
        out.begin_array("removed");
        for (i, host) in self.removed.iter().enumerate() {
            out.append_index(i, host.as_str());
        }
        out.end();
        out.finish()
    }

    /// What a record says; `None` if it says something else.
    fn decode(record: Version, document: RawDoc<'_>) -> Option<Self> {
        let members = document.get("members")?.as_array()?;
        let modes = document.get("modes")?.as_document()?;
        let removed = document.get("removed")?.as_array()?;
        Some(Self {
            record,
            format: safe_i64(document.get("format")?)?,
            set: document.get("set")?.as_str()?.to_owned(),
            config: Configuration {
                version: i32::try_from(safe_i64(document.get("version")?)?).ok()?,
                members: members.iter().map(decode_member).collect::<Option<_>>()?,
                modes: modes.iter().map(decode_mode).collect::<Option<_>>()?,
            },
            removed: removed
                .iter()
                .map(|host| host.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
        })
    }
}

fn decode_member(value: ValueRef<'_>) -> Option<MemberConfig> {
    let said = value.as_document()?;
    let tag = |(name, value): (&str, ValueRef<'_>)| Some((name.to_owned(), value.as_str()?.to_owned()));
    Some(MemberConfig {
        id: i32::try_from(safe_i64(said.get("id")?)?).ok()?,
        host: said.get("host")?.as_str()?.to_owned(),
        priority: Num::from_ref(said.get("priority")?)?.to_f64(),
        is_hidden: said.get("hidden")?.truthy(),
        delay: Duration::from_secs(u64::try_from(safe_i64(said.get("delaySecs")?)?).ok()?),
        tags: said
            .get("tags")?
            .as_document()?
            .iter()
            .map(tag)
            .collect::<Option<_>>()?,
    })
}

fn decode_mode((name, value): (&str, ValueRef<'_>)) -> Option<(String, WantedTags)> {
    let tag = |(tag, count)| Some((str::to_owned(tag), u32::try_from(safe_i64(count)?).ok()?));
    let tags = value.as_document()?.iter().map(tag).collect::<Option<_>>()?;
    Some((name.to_owned(), tags))
}

/// The configuration that the log has; `None` before the first member.
///
/// Errors: [`LogError::Newer`].
pub fn read(log: &dyn Log) -> Result<Option<SetConfig>, LogError> {
    let Some((version, bytes)) = log.record(RECORD)? else {
        return Ok(None);
    };
    let damaged = || LogError::Damaged("the configuration of the set".into());
    let document = RawDoc::validate(&bytes).map_err(|_| damaged())?;
    let found = document.get("format").and_then(safe_i64).ok_or_else(damaged)?;
    if found > FORMAT {
        let known = FORMAT;
        return Err(LogError::Newer { found, known });
    }
    SetConfig::decode(version, document).map(Some).ok_or_else(damaged)
}

/// Adds `host` to the set, which it makes if it is the first, and returns the configuration with it.
///
/// Errors: another set has the log; the member was removed from this one.
pub fn join(log: &dyn Log, set: &str, host: &str) -> Result<SetConfig, MemberError> {
    for _ in 0..TRIES {
        let found = read(log)?;
        let mut config = found.unwrap_or_else(|| SetConfig {
            record: 0,
            format: FORMAT,
            set: set.to_owned(),
            config: Configuration {
                version: 0,
                members: Vec::new(),
                modes: Vec::new(),
            },
            removed: Vec::new(),
        });
        if config.set != set {
            let of = &config.set;
            return Err(MemberError::Refused(format!(
                "the log is that of the set {of}, not of {set}"
            )));
        }
        if config.config.member(host).is_some() {
            return Ok(config);
        }
        if config.removed.iter().any(|removed| removed == host) {
            return Err(MemberError::Refused(format!(
                "{host} was removed from the set {set}: a configuration has to name it again before it starts"
            )));
        }
        let members = &mut config.config.members;
        if members.len() == MEMBERS_MAX {
            return Err(MemberError::Refused(format!(
                "the set has {MEMBERS_MAX} members already"
            )));
        }
        let id = members.iter().map(|member| member.id + 1).max().unwrap_or(0);
        members.push(MemberConfig::new(id, host));
        config.config.version += 1;
        if log.replace_record(RECORD, config.record, &config.encode())? {
            config.record += 1;
            return Ok(config);
        }
    }
    Err(LogError::Unavailable("the configuration of the set changes too often".into()).into())
}

/// Says that all members know this version's [`FORMAT`], which holds from now on. False if the record has changed meanwhile.
pub fn raise(log: &dyn Log, config: &SetConfig) -> Result<bool, LogError> {
    let raised = SetConfig {
        format: FORMAT,
        ..config.clone()
    };
    log.replace_record(RECORD, config.record, &raised.encode())
}

/// Gives the set another configuration, in which `own` is.
///
/// Errors: those of `replSetReconfig`.
pub fn reconfigure(
    log: &dyn Log,
    own: &str,
    mut wanted: Configuration,
    force: bool,
) -> nestor_model::Result<SetConfig> {
    let unknown = |error: LogError| Error::new(ErrorCode::HostUnreachable, error.to_string());
    let Some(before) = read(log).map_err(unknown)? else {
        bail!(NotYetInitialized, "the log of the set has no configuration");
    };
    let known = &before.config;
    if force {
        wanted.version = wanted.version.max(known.version.saturating_add(1));
    } else if wanted.version <= known.version {
        bail!(
            NewReplicaSetConfigurationIncompatible,
            "New replica set configuration version must be greater than old, but {} is not greater than {} for replica set {}",
            wanted.version,
            known.version,
            before.set
        );
    }
    for member in &wanted.members {
        let host = &member.host;
        if let Some(old) = known.member(host).filter(|old| old.id != member.id) {
            let (old, new) = (old.id, member.id);
            bail!(
                NewReplicaSetConfigurationIncompatible,
                "New and old configurations both have members with host of {host} but in the new configuration the _id field is {new} \
                 and in the old configuration it is {old} for replica set {}",
                before.set
            );
        }
    }
    match wanted.member(own) {
        None => bail!(
            NodeNotFound,
            "No host described in new configuration for replica set {} maps to this node",
            before.set
        ),
        Some(member) if member.priority == 0.0 && !force => bail!(
            NodeNotElectable,
            "This node, with _id {} and host {own}, is not electable under the new configuration for replica set {}",
            member.id,
            before.set
        ),
        Some(_) => {}
    }
    let hosts = known.members.iter().map(|member| &member.host).chain(&before.removed);
    let removed = hosts.filter(|host| wanted.member(host).is_none()).cloned().collect();
    let after = SetConfig {
        record: before.record + 1,
        format: before.format,
        set: before.set,
        config: wanted,
        removed,
    };
    match log.replace_record(RECORD, before.record, &after.encode()) {
        Ok(true) => Ok(after),
        Ok(false) => bail!(
            ConfigurationInProgress,
            "another change of the configuration was made at the same time"
        ),
        Err(error) => Err(unknown(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryLog;

    fn hosts(config: &SetConfig) -> Vec<&str> {
        config.config.members.iter().map(|member| &*member.host).collect()
    }

    #[test]
    fn members_add_themselves() {
        let log = MemoryLog::new();
        assert_eq!(read(&log).unwrap(), None);
        assert_eq!(join(&log, "rs0", "a:1").unwrap().config.version, 1);
        let two = join(&log, "rs0", "b:1").unwrap();
        assert_eq!((two.config.version, hosts(&two)), (2, vec!["a:1", "b:1"]));
        assert_eq!(join(&log, "rs0", "a:1").unwrap(), two);
        assert_eq!(read(&log).unwrap(), Some(two));
        let refused = join(&log, "rs1", "c:1").unwrap_err().to_string();
        assert_eq!(refused, "the log is that of the set rs0, not of rs1");
    }

    #[test]
    fn members_are_changed_and_removed_and_come_back() {
        let log = MemoryLog::new();
        join(&log, "rs0", "a:1").unwrap();
        let mut wanted = join(&log, "rs0", "b:1").unwrap().config;
        let refused = |wanted: &Configuration, own, force| {
            let error = reconfigure(&log, own, wanted.clone(), force).unwrap_err();
            error.code()
        };
        assert_eq!(
            refused(&wanted, "a:1", false),
            ErrorCode::NewReplicaSetConfigurationIncompatible,
            "the same version"
        );
        wanted.version = 5;
        wanted.modes = vec![("one".into(), [("rack".to_owned(), 1)].into())];
        wanted.members[1] = MemberConfig {
            priority: 0.0,
            is_hidden: true,
            delay: Duration::from_secs(60),
            tags: vec![("rack".into(), "x".into())],
            ..MemberConfig::new(1, "b:1")
        };
        assert_eq!(refused(&wanted, "b:1", false), ErrorCode::NodeNotElectable);
        assert_eq!(refused(&wanted, "c:1", false), ErrorCode::NodeNotFound);
        let changed = reconfigure(&log, "a:1", wanted.clone(), false).unwrap();
        assert_eq!(changed.config, wanted);
        assert_eq!(read(&log).unwrap(), Some(changed));
        wanted.version = 6;
        wanted.members[1].id = 7;
        assert_eq!(
            refused(&wanted, "a:1", false),
            ErrorCode::NewReplicaSetConfigurationIncompatible,
            "a number is kept"
        );
        wanted.members.pop();
        reconfigure(&log, "a:1", wanted.clone(), true).unwrap();
        let removed = join(&log, "rs0", "b:1").unwrap_err().to_string();
        assert!(removed.contains("was removed from the set rs0"), "{removed}");
        wanted.version = 1;
        wanted.members.push(MemberConfig::new(3, "b:1"));
        let back = reconfigure(&log, "a:1", wanted, true).unwrap();
        assert_eq!(back.config.version, 7, "force makes it greater");
        assert_eq!(join(&log, "rs0", "b:1").unwrap(), back);
        let third = join(&log, "rs0", "c:1").unwrap();
        assert_eq!(third.config.member("c:1").map(|member| member.id), Some(4));
    }

    #[test]
    fn the_format_is_raised_once_all_know_it() {
        let log = MemoryLog::new();
        let mut config = join(&log, "rs0", "a:1").unwrap();
        assert_eq!(config.format, FORMAT, "that of a new set");
        config.format = 1;
        assert!(log.replace_record(RECORD, config.record, &config.encode()).unwrap());
        let old = join(&log, "rs0", "b:1").unwrap();
        assert_eq!(old.format, 1, "whoever comes changes nothing of it");
        assert!(!raise(&log, &config).unwrap(), "it is another one by now");
        assert!(raise(&log, &old).unwrap());
        assert_eq!(read(&log).unwrap().map(|config| config.format), Some(FORMAT));
    }

    #[test]
    fn a_newer_log_is_refused() {
        let log = MemoryLog::new();
        let mut record = RawWriter::onto(Vec::new());
        record.append("format", FORMAT + 1);
        record.append("anything", "else");
        log.replace_record(RECORD, 0, &record.finish()).unwrap();
        let refused = join(&log, "rs0", "a:1").unwrap_err().to_string();
        assert!(
            refused.contains("has format 3, and this version of Nestor knows formats up to 2"),
            "{refused}"
        );
    }
}
