//! The `replSet*` commands. A set of one is as it is; members of a set whose log is elsewhere add themselves, and may be asked to step down
//! or to stay back.

use super::hello::{append_optime, append_tags, delay_secs};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_exec::interrupt::while_waiting;
use nestor_model::{RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_storage::{MemberState, OpTime, Positions, Steward, Topology};
use std::sync::Arc;
use std::time::Duration;

/// How long others may take to catch up when a primary steps down and nothing is said.
const CATCH_UP: Duration = Duration::from_secs(10);
/// A member that said nothing for so long counts as gone.
const SILENCE_MAX_MS: u64 = 10_000;

/// `replSetGetStatus`.
pub const STATUS: CommandSpec = Facts::no_collection("replSetGetStatus", "Describes the members of the replica set.")
    .flags(Flags::ADMIN.and(Flags::QUIET))
    .needs(Needs::server(Action::ReplSetGetStatus))
    .runs(|context, reply| {
        GetStatus::parse(context.body, context.sequences)?;
        let name = set_name(context)?;
        write_status(context, reply, name);
        Ok(())
    });

/// `replSetGetConfig`.
pub const CONFIG: CommandSpec =
    Facts::no_collection("replSetGetConfig", "Answers the configuration of the replica set.")
        .flags(Flags::ADMIN.and(Flags::QUIET))
        .needs(Needs::server(Action::ReplSetGetConfig))
        .runs(|context, reply| {
            let args = GetConfig::parse(context.body, context.sequences)?;
            let name = set_name(context)?;
            write_config(context, reply, name);
            if args.commitment_status {
                reply.append("commitmentStatus", true);
            }
            Ok(())
        });

/// `replSetInitiate`: the set is there from the start.
pub const INITIATE: CommandSpec = Facts::no_collection("replSetInitiate", "Begins a replica set; this one has begun.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::ReplSetConfigure))
    .runs(|context, _reply| {
        let Some(set) = &context.service.options.replica_set else {
            bail!(
                NoReplicationEnabled,
                "This node was not started with replication enabled."
            );
        };
        if !context.service.engine.is_member() {
            bail!(AlreadyInitialized, "already initialized")
        }
        let args = Initiate::parse(context.body, context.sequences)?;
        check_initiated(&context.service.engine.topology(), set, args.config)
    });

/// `replSetStepDown`: nobody could take over.
pub const STEP_DOWN: CommandSpec = Facts::no_collection("replSetStepDown", "Makes the primary a secondary; a set of one has nobody to take over.")
    .flags(Flags::ADMIN.and(Flags::LONG))
    .needs(Needs::server(Action::ReplSetStateChange)).runs(|context, _reply| {
        set_name(context)?;
        if let Some(steward) = context.service.engine.steward() {
            return step_down(context, &*steward);
        }
        if context.body.get("force").is_some_and(|force| force.truthy()) {
            bail!(CommandNotSupported, "the only member of a replica set cannot step down");
        }
        bail!(
            ExceededTimeLimit,
            "No electable secondaries caught up as of now. Please use the replSetStepDown command with the argument {{force: true}} to force node to step down."
        )
    });

/// `replSetFreeze`.
pub const FREEZE: CommandSpec = Facts::no_collection("replSetFreeze", "Keeps a secondary from becoming primary.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::ReplSetStateChange))
    .runs(|context, _reply| {
        set_name(context)?;
        if let Some(steward) = secondary(context) {
            let args = Freeze::parse(context.body, context.sequences)?;
            steward.freeze(seconds("replSetFreeze", args.secs)?);
            return Ok(());
        }
        bail!(
            NotSecondary,
            "cannot freeze node when primary or running for election. state: Primary"
        )
    });

/// `replSetMaintenance`.
pub const MAINTENANCE: CommandSpec = Facts::no_collection("replSetMaintenance", "Takes a secondary out of service.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::ReplSetStateChange))
    .runs(|context, _reply| {
        set_name(context)?;
        refuse_on_secondary(context, "replSetMaintenance")?;
        bail!(NotSecondary, "primaries can't modify maintenance mode")
    });

/// `replSetSyncFrom`.
pub const SYNC_FROM: CommandSpec = Facts::no_collection("replSetSyncFrom", "Says whom a secondary follows.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::ReplSetStateChange))
    .runs(|context, _reply| {
        set_name(context)?;
        refuse_on_secondary(context, "replSetSyncFrom")?;
        bail!(NotSecondary, "primaries don't sync")
    });

/// `replSetAbortPrimaryCatchUp`.
pub const ABORT_CATCH_UP: CommandSpec =
    Facts::no_collection("replSetAbortPrimaryCatchUp", "Ends the catching up of a new primary.")
        .flags(Flags::ADMIN)
        .needs(Needs::server(Action::ReplSetStateChange))
        .runs(|context, _reply| {
            set_name(context)?;
            bail!(IllegalOperation, "primary catch-up is not running")
        });

crate::args! {
    struct GetStatus: "replSetGetStatus" command {
        /// A primary has nothing to say of an initial sync.
        #[allow(dead_code)]
        "initialSync" => initial_sync: Option<i64>,
    }
}

crate::args! {
    struct Initiate<'a>: "replSetInitiate" command {
        "replSetInitiate" => config: Option<RawDoc<'a>>,
    }
}

crate::args! {
    struct StepDown: "replSetStepDown" command {
        "replSetStepDown" => secs: i64,
        "secondaryCatchUpPeriodSecs" => catch_up_secs: Option<i64>,
        "force" => force: bool,
    }
}

crate::args! {
    struct Freeze: "replSetFreeze" command {
        "replSetFreeze" => secs: i64,
    }
}

/// Who may keep this node back, if it is a secondary.
fn secondary(context: &Context<'_>) -> Option<Arc<dyn Steward>> {
    let engine = &context.service.engine;
    engine.steward().filter(|_| !engine.is_writable())
}

fn refuse_on_secondary(context: &Context<'_>, what: &str) -> Result<()> {
    match secondary(context) {
        Some(_) => bail!(
            CommandNotSupported,
            "{what} is not supported: members follow the log of the set, not each other"
        ),
        None => Ok(()),
    }
}

fn seconds(name: &str, secs: i64) -> Result<Duration> {
    match u64::try_from(secs) {
        Ok(secs) => Ok(Duration::from_secs(secs)),
        Err(_) => bail!(BadValue, "{name} must not be negative"),
    }
}

fn step_down(context: &Context<'_>, steward: &dyn Steward) -> Result<()> {
    let args = StepDown::parse(context.body, context.sequences)?;
    let period = seconds("stepdown period", args.secs)?;
    let catch_up = match args.catch_up_secs {
        Some(secs) => seconds("secondaryCatchUpPeriodSecs", secs)?,
        None => period.min(CATCH_UP),
    };
    if catch_up > period {
        bail!(
            BadValue,
            "stepdown period must be longer than secondaryCatchUpPeriodSecs"
        );
    }
    if !context.service.engine.is_writable() {
        bail!(NotWritablePrimary, "not primary so can't step down");
    }
    let stepped = while_waiting(|| steward.step_down(period, catch_up, args.force));
    stepped.or_else(|why| bail!(ExceededTimeLimit, "{why}"))
}

/// Accepts a configuration that is there already: members have added themselves.
fn check_initiated(topology: &Topology, set: &str, config: Option<RawDoc<'_>>) -> Result<()> {
    let Some(config) = config else { return Ok(()) };
    for (name, value) in config.iter() {
        match (name, value) {
            ("_id", ValueRef::String(id)) if id == set => {}
            ("version", _) => {}
            ("members", ValueRef::Array(members)) => {
                for member in members.iter() {
                    check_member(topology, member)?;
                }
            }
            _ => bail!(
                InvalidReplicaSetConfig,
                "members add themselves to the set {set}: {name} cannot be chosen"
            ),
        }
    }
    Ok(())
}

fn check_member(topology: &Topology, member: ValueRef<'_>) -> Result<()> {
    let Some(member) = member.as_document() else {
        bail!(InvalidReplicaSetConfig, "members of a configuration are documents");
    };
    for (name, value) in member.iter() {
        match (name, value) {
            ("_id", _) => {}
            ("host", ValueRef::String(host)) if topology.config.member(host).is_some() => {}
            ("host", host) => bail!(
                InvalidReplicaSetConfig,
                "members add themselves to the set: {host:?} has not"
            ),
            _ => bail!(InvalidReplicaSetConfig, "{name} of members is not supported"),
        }
    }
    Ok(())
}

crate::args! {
    struct GetConfig: "replSetGetConfig" command {
        "commitmentStatus" => commitment_status: bool,
    }
}

/// The name of the set.
///
/// Errors: the node is in none.
pub(super) fn set_name<'a>(context: &Context<'a>) -> Result<&'a str> {
    match &context.service.options.replica_set {
        Some(name) => Ok(name.as_str()),
        None => bail!(NoReplicationEnabled, "not running with --replSet"),
    }
}

fn write_status(context: &Context<'_>, reply: &mut RawWriter, name: &str) {
    let Positions {
        last,
        durable,
        committed,
    } = context.service.positions();
    let topology = context.service.engine.topology();
    let wall = |optime: OpTime| ValueRef::DateTime(i64::from(optime.ts.secs) * 1000);
    let node = &context.service.node;
    reply.append("set", name);
    reply.append("date", ValueRef::DateTime(nestor_database::clock::now_ms()));
    let is_primary = topology.is_primary();
    reply.append("myState", if is_primary { 1 } else { 2 });
    reply.append("term", topology.term);
    reply.append("syncSourceHost", "");
    reply.append("syncSourceId", -1);
    reply.append("heartbeatIntervalMillis", 2000i64);
    let count = i32::try_from(topology.config.members.len()).unwrap_or(i32::MAX);
    let majority = count / 2 + 1;
    for (field, number) in [
        ("majorityVoteCount", majority),
        ("writeMajorityCount", majority),
        ("votingMembersCount", count),
        ("writableVotingMembersCount", count),
    ] {
        reply.append(field, number);
    }
    reply.begin_document("optimes");
    for (field, optime) in [
        ("lastCommittedOpTime", committed),
        ("readConcernMajorityOpTime", committed),
        ("appliedOpTime", last),
        ("durableOpTime", durable),
        ("writtenOpTime", last),
    ] {
        append_optime(reply, field, optime);
    }
    for (field, optime) in [
        ("lastCommittedWallTime", committed),
        ("lastAppliedWallTime", last),
        ("lastDurableWallTime", durable),
    ] {
        reply.append(field, wall(optime));
    }
    reply.end();
    let others = context.service.engine.members();
    let own = MemberState {
        name: topology.own(context.conn.host.as_str()).to_owned(),
        optime: last,
        durable,
        is_primary,
        uptime_secs: context.service.started.elapsed().as_secs(),
        ..MemberState::default()
    };
    reply.begin_array("members");
    for (i, (name, config)) in topology.members(context.conn.host.as_str()).enumerate() {
        reply.begin_document_at(i);
        reply.append("_id", config.id);
        reply.append("name", name);
        let is_own = i == topology.own;
        let member = if is_own {
            Some(&own)
        } else {
            others.iter().find(|other| other.name == name)
        };
        write_member(reply, member, is_own);
        if is_own && is_primary {
            let elected = nestor_model::Timestamp {
                secs: u32::try_from(node.started_ms.div_euclid(1000)).unwrap_or(0),
                inc: 1,
            };
            reply.append("electionTime", elected);
            reply.append("electionDate", ValueRef::DateTime(node.started_ms));
        }
        reply.append("configVersion", topology.config.version);
        reply.append("configTerm", topology.term as i32);
        if is_own {
            reply.append("self", true);
        }
        reply.append("lastHeartbeatMessage", "");
        reply.end();
    }
    reply.end();
}

/// What is known of a member; nothing of one that has said nothing yet.
fn write_member(reply: &mut RawWriter, member: Option<&MemberState>, is_own: bool) {
    let Some(member) = member.filter(|member| is_own || member.age_ms < SILENCE_MAX_MS) else {
        reply.append("health", 0.0);
        reply.append("state", 8);
        reply.append("stateStr", "(not reachable/healthy)");
        reply.append("uptime", 0);
        append_optime(
            reply,
            "optime",
            member.map_or_else(OpTime::default, |member| member.optime),
        );
        return;
    };
    let (state, text) = if member.is_primary {
        (1, "PRIMARY")
    } else {
        (2, "SECONDARY")
    };
    reply.append("health", 1.0);
    reply.append("state", state);
    reply.append("stateStr", text);
    reply.append("uptime", i32::try_from(member.uptime_secs).unwrap_or(i32::MAX));
    append_optime(reply, "optime", member.optime);
    reply.append(
        "optimeDate",
        ValueRef::DateTime(i64::from(member.optime.ts.secs) * 1000),
    );
    if !is_own {
        append_optime(reply, "optimeDurable", member.durable);
        let said = nestor_database::clock::now_ms() - i64::try_from(member.age_ms).unwrap_or(0);
        reply.append("lastHeartbeat", ValueRef::DateTime(said));
    }
    reply.append("syncSourceHost", "");
    reply.append("syncSourceId", -1);
    reply.append("infoMessage", "");
}

/// Appends the configuration, as `replSetGetConfig` tells it.
pub(super) fn write_config(context: &Context<'_>, reply: &mut RawWriter, name: &str) {
    let topology = context.service.engine.topology();
    reply.begin_document("config");
    reply.append("_id", name);
    reply.append("version", topology.config.version);
    reply.append("term", topology.term as i32);
    reply.begin_array("members");
    for (i, (host, member)) in topology.members(context.conn.host.as_str()).enumerate() {
        reply.begin_document_at(i);
        reply.append("_id", member.id);
        reply.append("host", host);
        reply.append("arbiterOnly", false);
        reply.append("buildIndexes", true);
        reply.append("hidden", member.is_hidden);
        reply.append("priority", member.priority);
        append_tags(member, reply);
        reply.append("secondaryDelaySecs", delay_secs(member));
        reply.append("votes", 1);
        reply.end();
    }
    reply.end();
    reply.append("protocolVersion", 1i64);
    reply.append("writeConcernMajorityJournalDefault", true);
    reply.begin_document("settings");
    reply.append("chainingAllowed", true);
    reply.append("heartbeatIntervalMillis", 2000);
    reply.append("heartbeatTimeoutSecs", 10);
    reply.append("electionTimeoutMillis", 10_000);
    reply.append("catchUpTimeoutMillis", -1);
    reply.append("catchUpTakeoverDelayMillis", 30_000);
    reply.begin_document("getLastErrorModes");
    for (name, tags) in &topology.config.modes {
        reply.begin_document(name);
        for (tag, count) in tags.iter() {
            reply.append(tag, i32::try_from(*count).unwrap_or(i32::MAX));
        }
        reply.end();
    }
    reply.end();
    reply.begin_document("getLastErrorDefaults");
    reply.append("w", 1);
    reply.append("wtimeout", 0);
    reply.end();
    reply.end();
    reply.end();
}
