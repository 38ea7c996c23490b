//! The `replSet*` commands, as the primary of a set of one answers them.

use super::hello::append_optime;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::order::compare;
use nestor_model::{DocRef, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_storage::{OpTime, Positions};

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
        if context.service.options.replica_set.is_none() {
            bail!(
                NoReplicationEnabled,
                "This node was not started with replication enabled."
            );
        }
        bail!(AlreadyInitialized, "already initialized")
    });

/// `replSetReconfig`: there is nothing to configure in a set of one. What is configured already may be asked for by force, as programs that
/// start servers for tests do.
pub const RECONFIG: CommandSpec = Facts::no_collection(
    "replSetReconfig",
    "Changes the replica set; a set of one stays as it is.",
)
.flags(Flags::ADMIN)
.needs(Needs::server(Action::ReplSetConfigure))
.runs(|context, _reply| {
    let args = Reconfig::parse(context.body, context.sequences)?;
    let name = set_name(context)?;
    let mut writer = RawWriter::onto(Vec::new());
    write_config(context, &mut writer, name);
    let bytes = writer.finish();
    let own = RawDoc::validate(&bytes)?;
    let own = own.get("config").and_then(ValueRef::as_document);
    match own.and_then(|own| difference(own, args.config)) {
        Some(field) => bail!(
            NewReplicaSetConfigurationIncompatible,
            "a replica set of one cannot be reconfigured: {field} would change"
        ),
        None if args.force => Ok(()),
        None => bail!(
            NewReplicaSetConfigurationIncompatible,
            "a replica set of one cannot be reconfigured: its version would change"
        ),
    }
});

/// `replSetStepDown`: nobody could take over.
pub const STEP_DOWN: CommandSpec = Facts::no_collection("replSetStepDown", "Makes the primary a secondary; a set of one has nobody to take over.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::ReplSetStateChange)).runs(|context, _reply| {
        set_name(context)?;
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
        bail!(NotSecondary, "primaries can't modify maintenance mode")
    });

/// `replSetSyncFrom`.
pub const SYNC_FROM: CommandSpec = Facts::no_collection("replSetSyncFrom", "Says whom a secondary follows.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::ReplSetStateChange))
    .runs(|context, _reply| {
        set_name(context)?;
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
    struct Reconfig<'a>: "replSetReconfig" command {
        "replSetReconfig" => config: RawDoc<'a>,
        "force" => force: bool,
    }
}

/// A field of `given` that says something else than `own`; the version, which every change raises, is not looked at.
fn difference(own: DocRef<'_>, given: RawDoc<'_>) -> Option<String> {
    let differs = |name: &str, value: ValueRef<'_>| own.get(name).is_none_or(|own| compare(own, value).is_ne());
    given
        .iter()
        .find(|(name, value)| !matches!(*name, "version" | "term") && differs(name, *value))
        .map(|(name, _)| name.to_owned())
}

crate::args! {
    struct GetConfig: "replSetGetConfig" command {
        "commitmentStatus" => commitment_status: bool,
    }
}

fn set_name<'a>(context: &Context<'a>) -> Result<&'a str> {
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
    reply.append("myState", 1);
    reply.append("term", topology.term);
    reply.append("syncSourceHost", "");
    reply.append("syncSourceId", -1);
    reply.append("heartbeatIntervalMillis", 2000i64);
    for field in [
        "majorityVoteCount",
        "writeMajorityCount",
        "votingMembersCount",
        "writableVotingMembersCount",
    ] {
        reply.append(field, 1);
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
    reply.begin_array("members");
    reply.begin_document_at(0);
    reply.append("_id", 0);
    reply.append("name", context.conn.host.as_str());
    reply.append("health", 1.0);
    reply.append("state", 1);
    reply.append("stateStr", "PRIMARY");
    reply.append(
        "uptime",
        i32::try_from(context.service.started.elapsed().as_secs()).unwrap_or(i32::MAX),
    );
    append_optime(reply, "optime", last);
    reply.append("optimeDate", wall(last));
    reply.append("syncSourceHost", "");
    reply.append("syncSourceId", -1);
    reply.append("infoMessage", "");
    let elected = nestor_model::Timestamp {
        secs: u32::try_from(node.started_ms.div_euclid(1000)).unwrap_or(0),
        inc: 1,
    };
    reply.append("electionTime", elected);
    reply.append("electionDate", ValueRef::DateTime(node.started_ms));
    reply.append("configVersion", topology.config_version);
    reply.append("configTerm", topology.term as i32);
    reply.append("self", true);
    reply.append("lastHeartbeatMessage", "");
    reply.end();
    reply.end();
}

fn write_config(context: &Context<'_>, reply: &mut RawWriter, name: &str) {
    let topology = context.service.engine.topology();
    reply.begin_document("config");
    reply.append("_id", name);
    reply.append("version", topology.config_version);
    reply.append("term", topology.term as i32);
    reply.begin_array("members");
    reply.begin_document_at(0);
    reply.append("_id", 0);
    reply.append("host", context.conn.host.as_str());
    reply.append("arbiterOnly", false);
    reply.append("buildIndexes", true);
    reply.append("hidden", false);
    reply.append("priority", 1.0);
    reply.begin_document("tags");
    reply.end();
    reply.append("secondaryDelaySecs", 0i64);
    reply.append("votes", 1);
    reply.end();
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
    reply.end();
    reply.begin_document("getLastErrorDefaults");
    reply.append("w", 1);
    reply.append("wtimeout", 0);
    reply.end();
    reply.end();
    reply.end();
}
