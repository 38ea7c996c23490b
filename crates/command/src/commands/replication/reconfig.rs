//! `replSetReconfig`: who is in the set, and how.
//!
//! A set of one stays as it is. In a set whose log is elsewhere members can be added, removed, hidden, delayed and tagged, and have
//! priorities. What the log decides is refused: there are no votes, since the log alone says what is committed, and no arbiters.

use super::repl_set::{set_name, write_config};
use crate::args::{unknown_field, wrong_type};
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_exec::interrupt::while_waiting;
use nestor_model::number::{Num, safe_i64};
use nestor_model::order::compare;
use nestor_model::{DocRef, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_storage::{Configuration, MemberConfig, WantedTags};
use std::collections::BTreeSet;
use std::time::Duration;

/// Most members of a set.
const MEMBERS_MAX: usize = 50;
/// Most a priority may be.
const PRIORITY_MAX: f64 = 1000.0;
/// Seconds that a member may be behind at most: a year.
const DELAY_MAX: i64 = 366 * 24 * 3600;

/// `replSetReconfig`.
pub const SPEC: CommandSpec = Facts::no_collection(
    "replSetReconfig",
    "Changes the members of the replica set; a set of one stays as it is.",
)
.flags(Flags::ADMIN.and(Flags::LONG))
.needs(Needs::server(Action::ReplSetConfigure))
.runs(|context, _reply| {
    let args = Reconfig::parse(context.body, context.sequences)?;
    let name = set_name(context)?;
    let mut writer = RawWriter::onto(Vec::new());
    write_config(context, &mut writer, name);
    let bytes = writer.finish();
    let own = RawDoc::validate(&bytes)?;
    let own = own.get("config").and_then(ValueRef::as_document);
    let Some(steward) = context.service.engine.steward() else {
        return reconfigure_alone(own, &args);
    };
    if !args.force && !context.service.engine.is_writable() {
        bail!(
            NotWritablePrimary,
            "replSetReconfig should only be run on a writable PRIMARY; use the force argument to override"
        );
    }
    let wanted = configuration(args.config, name, own)?;
    while_waiting(|| steward.reconfigure(wanted, args.force))
});

crate::args! {
    struct Reconfig<'a>: "replSetReconfig" command {
        "replSetReconfig" => config: RawDoc<'a>,
        "force" => force: bool,
    }
}

/// What is configured already may be asked for by force, as programs that start servers for tests do.
fn reconfigure_alone(own: Option<DocRef<'_>>, args: &Reconfig<'_>) -> Result<()> {
    let changed = own.and_then(|own| {
        let differs = |name: &str, value: ValueRef<'_>| own.get(name).is_none_or(|own| compare(own, value).is_ne());
        // The version, which every change raises, is not looked at.
        let mut given = args.config.iter();
        given.find(|(name, value)| !matches!(*name, "version" | "term") && differs(name, *value))
    });
    match changed {
        Some((field, _)) => bail!(
            NewReplicaSetConfigurationIncompatible,
            "a replica set of one cannot be reconfigured: {field} would change"
        ),
        None if args.force => Ok(()),
        None => bail!(
            NewReplicaSetConfigurationIncompatible,
            "a replica set of one cannot be reconfigured: its version would change"
        ),
    }
}

/// Reads a configuration. What cannot be chosen has to be as it is in `own`.
fn configuration(config: RawDoc<'_>, set: &str, own: Option<DocRef<'_>>) -> Result<Configuration> {
    let (mut version, mut members, mut modes) = (None, None, Vec::new());
    for (name, value) in config.iter() {
        match name {
            "_id" if value.as_str() == Some(set) => {}
            "_id" => bail!(
                NewReplicaSetConfigurationIncompatible,
                "New and old configurations differ in replica set name; old was {set}, and new is {value:?}"
            ),
            "version" => version = Some(version_of(value)?),
            "term" => {}
            "members" => members = Some(members_of(value)?),
            "settings" => modes = settings(value, own.and_then(|own| own.get("settings")?.as_document()))?,
            "protocolVersion" | "writeConcernMajorityJournalDefault" => same(name, value, own)?,
            _ => return Err(unknown_field("ReplSetConfig", name)),
        }
    }
    let (Some(version), Some(members)) = (version, members) else {
        bail!(InvalidReplicaSetConfig, "a configuration has a version and members");
    };
    let wanted = Configuration {
        version,
        members,
        modes,
    };
    check(&wanted)?;
    Ok(wanted)
}

fn version_of(value: ValueRef<'_>) -> Result<i32> {
    match safe_i64(value).map(i32::try_from) {
        Some(Ok(version)) if version > 0 => Ok(version),
        _ => bail!(
            InvalidReplicaSetConfig,
            "version of a configuration must be in the range of [1, 2147483647]"
        ),
    }
}

/// Refuses another value than that of the present configuration.
fn same(name: &str, value: ValueRef<'_>, own: Option<DocRef<'_>>) -> Result<()> {
    match own.and_then(|own| own.get(name)) {
        Some(own) if compare(own, value).is_eq() => Ok(()),
        Some(own) => bail!(
            InvalidReplicaSetConfig,
            "{name} of this set is {own:?}, which cannot be changed"
        ),
        None => Err(unknown_field("ReplSetConfig", name)),
    }
}

fn settings(value: ValueRef<'_>, own: Option<DocRef<'_>>) -> Result<Vec<(String, WantedTags)>> {
    let Some(settings) = value.as_document() else {
        return Err(wrong_type("ReplSetConfig.settings", value.bson_type(), "object"));
    };
    let mut modes = Vec::new();
    for (name, value) in settings.iter() {
        match (name, value) {
            ("getLastErrorModes", ValueRef::Document(given)) => {
                modes = given
                    .iter()
                    .map(|(name, tags)| mode(name, tags))
                    .collect::<Result<_>>()?;
            }
            // Of each set its own, and it means nothing.
            ("replicaSetId", _) => {}
            _ => same(name, value, own)?,
        }
    }
    Ok(modes)
}

fn mode(name: &str, tags: ValueRef<'_>) -> Result<(String, WantedTags)> {
    let invalid = |why: &str| bail!(InvalidReplicaSetConfig, "the write concern mode {name} {why}");
    let Some(tags) = tags.as_document().filter(|tags| !tags.is_empty()) else {
        return invalid("is not a document of tags with numbers");
    };
    if name.is_empty() || name == "majority" {
        return invalid("has a name that means something else");
    }
    let mut wanted = Vec::new();
    for (tag, count) in tags.iter() {
        match safe_i64(count).map(u32::try_from) {
            Some(Ok(count)) if count > 0 => wanted.push((tag.to_owned(), count)),
            _ => return invalid("has a number that is not positive"),
        }
    }
    Ok((name.to_owned(), wanted.into()))
}

fn members_of(value: ValueRef<'_>) -> Result<Vec<MemberConfig>> {
    let Some(members) = value.as_array() else {
        return Err(wrong_type("ReplSetConfig.members", value.bson_type(), "array"));
    };
    members.iter().map(member).collect()
}

fn member(value: ValueRef<'_>) -> Result<MemberConfig> {
    let Some(given) = value.as_document() else {
        return Err(wrong_type("ReplSetConfig.members", value.bson_type(), "object"));
    };
    let (mut id, mut host) = (None, None);
    let mut out = MemberConfig::new(0, "");
    for (name, value) in given.iter() {
        match name {
            "_id" => {
                id = safe_i64(value)
                    .and_then(|id| i32::try_from(id).ok())
                    .filter(|id| (0..=255).contains(id))
            }
            "host" => host = value.as_str(),
            "hidden" => out.is_hidden = truth(name, value)?,
            "priority" => match Num::from_ref(value).map(Num::to_f64) {
                Some(priority) if (0.0..=PRIORITY_MAX).contains(&priority) => out.priority = priority,
                _ => bail!(
                    InvalidReplicaSetConfig,
                    "priority must be a number between 0 and {PRIORITY_MAX}"
                ),
            },
            "secondaryDelaySecs" => match safe_i64(value) {
                Some(secs @ 0..=DELAY_MAX) => out.delay = Duration::from_secs(secs.unsigned_abs()),
                _ => bail!(
                    InvalidReplicaSetConfig,
                    "secondaryDelaySecs must be a number between 0 and {DELAY_MAX}"
                ),
            },
            "tags" => out.tags = tags(value)?,
            "votes" if safe_i64(value) == Some(1) => {}
            "votes" => bail!(
                InvalidReplicaSetConfig,
                "votes cannot be chosen: what the log of the set has is committed, and nobody votes"
            ),
            "arbiterOnly" if !truth(name, value)? => {}
            "arbiterOnly" => bail!(InvalidReplicaSetConfig, "a set whose log is elsewhere has no arbiters"),
            "buildIndexes" if truth(name, value)? => {}
            "buildIndexes" => bail!(InvalidReplicaSetConfig, "members without indexes are not supported"),
            _ => return Err(unknown_field("ReplSetConfig.members", name)),
        }
    }
    match (id, host) {
        (Some(id), Some(host)) if is_address(host) => {
            (out.id, out.host) = (id, host.to_owned());
            Ok(out)
        }
        (None, _) => bail!(
            InvalidReplicaSetConfig,
            "_id of a member must be a number between 0 and 255"
        ),
        _ => bail!(InvalidReplicaSetConfig, "host of a member must be its name and port"),
    }
}

fn is_address(host: &str) -> bool {
    let parts = host.rsplit_once(':');
    parts.is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn truth(name: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Bool(truth) => Ok(truth),
        other if other.is_number() => Ok(other.truthy()),
        other => Err(wrong_type(
            format_args!("ReplSetConfig.members.{name}"),
            other.bson_type(),
            "bool",
        )),
    }
}

fn tags(value: ValueRef<'_>) -> Result<Vec<(String, String)>> {
    let Some(given) = value.as_document() else {
        return Err(wrong_type("ReplSetConfig.members.tags", value.bson_type(), "object"));
    };
    let tag = |(name, value): (&str, ValueRef<'_>)| match value {
        ValueRef::String(text) => Ok((name.to_owned(), text.to_owned())),
        other => Err(wrong_type(
            format_args!("ReplSetConfig.members.tags.{name}"),
            other.bson_type(),
            "string",
        )),
    };
    given.iter().map(tag).collect()
}

/// What is true of a whole configuration.
fn check(config: &Configuration) -> Result<()> {
    let members = &config.members;
    if members.is_empty() || members.len() > MEMBERS_MAX {
        bail!(
            InvalidReplicaSetConfig,
            "a set has between 1 and {MEMBERS_MAX} members, not {}",
            members.len()
        );
    }
    let (mut ids, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for member in members {
        let host = &member.host;
        if !ids.insert(member.id) || !hosts.insert(host) {
            bail!(
                InvalidReplicaSetConfig,
                "two members have the _id or the host of {host}"
            );
        }
        if member.priority != 0.0 && (member.is_hidden || !member.delay.is_zero()) {
            bail!(
                InvalidReplicaSetConfig,
                "priority must be 0 when {host} is hidden or delayed"
            );
        }
    }
    if members.iter().all(|member| member.priority == 0.0) {
        bail!(InvalidReplicaSetConfig, "a set needs a member whose priority is not 0");
    }
    match config.modes.iter().find(|(_, tags)| !config.has_tags(tags, |_| true)) {
        Some((name, _)) => bail!(
            UnsatisfiableWriteConcern,
            "the members do not have the tags of the write concern mode {name}"
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, doc};

    fn read(config: &Document) -> Result<Configuration> {
        let own = doc! { "protocolVersion": 1i64, "settings": doc! { "electionTimeoutMillis": 10_000 } }.to_raw();
        configuration(config.to_raw().as_raw(), "rs0", Some(own.as_raw().into()))
    }

    fn with_member(field: &str, value: impl Into<nestor_model::Value>) -> Document {
        let mut second = doc! { "_id": 1, "host": "b:1", "priority": 0 };
        second.push(field, value.into());
        doc! { "_id": "rs0", "version": 2, "members": vec![doc! { "_id": 0, "host": "a:1" }.into(), second.into()] }
    }

    #[test]
    fn what_can_be_chosen_is_read() {
        let mut config = with_member("tags", doc! { "rack": "x" });
        config.push(
            "settings",
            doc! { "getLastErrorModes": doc! { "one": doc! { "rack": 1 } } },
        );
        let config = read(&config).unwrap();
        assert_eq!((config.version, config.members.len()), (2, 2));
        assert_eq!(config.members[1].tags, [("rack".to_owned(), "x".to_owned())]);
        assert_eq!(config.mode("one").unwrap()[..], [("rack".to_owned(), 1)]);
        let config = read(&with_member("secondaryDelaySecs", 60)).unwrap();
        assert_eq!(config.members[1].delay, Duration::from_secs(60));
        assert!(read(&with_member("hidden", true)).unwrap().members[1].is_hidden);
    }

    #[test]
    fn what_cannot_be_chosen_is_refused_by_name() {
        let refused = |config: &Document| {
            let error = read(config).unwrap_err();
            format!("{}: {}", error.code().number(), error.message())
        };
        let votes = refused(&with_member("votes", 0));
        assert!(votes.starts_with("93: votes cannot be chosen"), "{votes}");
        assert!(refused(&with_member("arbiterOnly", true)).starts_with("93: "));
        assert!(refused(&with_member("buildIndexes", false)).starts_with("93: "));
        assert!(refused(&with_member("colour", "red")).starts_with("40415: "));
        assert!(refused(&with_member("tags", doc! { "rack": 1 })).starts_with("14: "));
        let mut other = with_member("votes", 1);
        other.push("settings", doc! { "electionTimeoutMillis": 1 });
        assert!(refused(&other).starts_with("93: electionTimeoutMillis of this set is"));
        let mut other = with_member("votes", 1);
        other.push(
            "settings",
            doc! { "getLastErrorModes": doc! { "one": doc! { "rack": 1 } } },
        );
        assert!(refused(&other).starts_with("100: "));
        let twice = doc! { "_id": "rs0", "version": 2, "members": vec![
            doc! { "_id": 0, "host": "a:1" }.into(), doc! { "_id": 0, "host": "b:1" }.into(),
        ] };
        assert!(refused(&twice).starts_with("93: two members"));
        let hidden = doc! { "_id": "rs0", "version": 2, "members": vec![doc! { "_id": 0, "host": "a:1", "hidden": true }.into()] };
        assert!(refused(&hidden).starts_with("93: priority must be 0"));
        assert!(refused(&doc! { "_id": "rs1", "version": 2 }).starts_with("103: "));
    }
}
