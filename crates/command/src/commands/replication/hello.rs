//! `hello` and `isMaster`: who this node is. Also waits for that to change (awaitable hello), and
//! takes the client's metadata and wishes for compression.
//!
//! Source: the manual's "hello"; driver specifications "Server Discovery and Monitoring", "MongoDB
//! Handshake", "OP_COMPRESSED".

use super::client_metadata;
use crate::args::{StrictBool, wrong_type};
use crate::commands::security::{authenticate, sasl};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::request::{Park, Wake};
use crate::service::Service;
use crate::spec::CommandSpec;
use nestor_database::users::UserName;
use nestor_model::{ObjectId, RawDoc, RawDocBuf, RawWriter, Result, ValueRef, bail};
use nestor_storage::{MemberConfig, OpTime, Topology};
use std::time::{Duration, Instant};

/// Wire protocol version of MongoDB 8.0.
pub const WIRE_VERSION_MAX: i32 = 25;
/// `counter` of `topologyVersion` when a node begins to serve. A replica set of one never changes
/// while it runs; MongoDB has come to 6 when such a set is ready. Each change of a larger set counts on.
const TOPOLOGY_COUNTER: i64 = 6;
/// Compressors that may be negotiated.
const COMPRESSORS: [&str; 3] = ["snappy", "zstd", "zlib"];

/// `hello`.
pub const HELLO: CommandSpec = Facts::no_collection("hello", "Says who this node is; may wait until that changes.")
    .flags(
        Flags::API_V1
            .and(Flags::QUIET)
            .and(Flags::LEGACY)
            .and(Flags::BEFORE_API)
            .and(Flags::HELLO),
    )
    .secrets(&["speculativeAuthenticate"])
    .needs(Needs::Nothing)
    .runs(|context, reply| run(context, reply, "isWritablePrimary"));

/// `isMaster`, the old name.
pub const IS_MASTER: CommandSpec = Facts::no_collection(
    "isMaster",
    "Says who this node is; may wait until that changes. Use hello.",
)
.aliases(&["ismaster"])
.flags(Flags::QUIET.and(Flags::LEGACY).and(Flags::BEFORE_API).and(Flags::HELLO))
.secrets(&["speculativeAuthenticate"])
.needs(Needs::Nothing)
.runs(|context, reply| run(context, reply, "ismaster"));

crate::args! {
    struct Hello<'a>: "hello" command {
        /// Only makes the answer of a mongos shorter.
        #[allow(dead_code)]
        "forShell" => for_shell: Option<bool>,
        /// What a member of the replica set reports about itself.
        #[allow(dead_code)]
        "hostInfo" => host_info: Option<ValueRef<'a>>,
        "saslSupportedMechs" => sasl_supported_mechs: Option<ValueRef<'a>>,
        "speculativeAuthenticate" => speculative_authenticate: Option<RawDoc<'a>>,
        "client" => client: Option<ValueRef<'a>>,
        "topologyVersion" => topology_version: Option<RawDoc<'a>>,
        "maxAwaitTimeMS" => max_await_time_ms: Option<i64>,
        "compression" => compression: Option<Vec<&'a str>>,
        "helloOk" => hello_ok: StrictBool,
        "loadBalanced" => load_balanced: StrictBool,
        "internalClient" => internal_client: Option<ValueRef<'a>>,
    }
}

/// Arguments of hello. Drivers newer than the server announce what they can do in further ones, so
/// those nobody knows are passed over.
const KNOWN: [&str; 11] = [
    "forShell",
    "hostInfo",
    "saslSupportedMechs",
    "speculativeAuthenticate",
    "client",
    "topologyVersion",
    "maxAwaitTimeMS",
    "compression",
    "helloOk",
    "loadBalanced",
    "internalClient",
];

fn only_known(body: RawDoc<'_>) -> RawDocBuf {
    let mut writer = RawWriter::with_capacity(body.len());
    for (i, element) in body.elements().enumerate() {
        if i == 0 || KNOWN.contains(&element.name()) {
            writer.append_element_bytes(element.as_bytes());
        }
    }
    writer.into_doc()
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter, primary_field: &str) -> Result<()> {
    let body = only_known(context.body);
    let args = &Hello::parse(body.as_raw(), &[])?;
    let asked_for = args.sasl_supported_mechs.map(user_name).transpose()?;
    if args.load_balanced.0 {
        bail!(
            354,
            "The server is being accessed through a load balancer, but it is not configured for one"
        );
    }
    if args.internal_client.is_some() {
        bail!(
            Unauthorized,
            "Client must be a member of the set to be an internal client"
        );
    }
    let awaited = awaited(args)?;
    if let Some(client) = args.client {
        client_metadata::set(context, client)?;
    }
    if let Some((process_id, counter, wait)) = awaited {
        let is_known = process_id == context.service.node.process_id;
        let present = topology_counter(context.service);
        if is_known && counter > present {
            bail!(
                31382,
                "Received a topology version with counter: {counter} which is greater than the server topology version counter: {present}"
            );
        }
        let now = Instant::now();
        let until = context.conn.parked.unwrap_or(now).checked_add(wait).unwrap_or(now);
        if is_known && counter == present && now < until {
            let wake = match context.service.engine.is_member() {
                true => Wake::Topology(present - TOPOLOGY_COUNTER),
                false => Wake::Never,
            };
            context.after.park = Some(Park { until, wake });
            return Ok(());
        }
        if context.exhaust_allowed {
            context.after.exhaust = Some(next_request(context.body, context.service));
        }
    }
    if args.hello_ok.0 {
        reply.append("helloOk", true);
    }
    write_topology_version(reply, context.service);
    write_self(context, reply, primary_field);
    if let Some(asked) = &args.compression {
        let agreed: Vec<&str> = asked
            .iter()
            .copied()
            .filter(|name| COMPRESSORS.contains(name))
            .collect();
        if !agreed.is_empty() {
            reply.begin_array("compression");
            for (i, name) in agreed.into_iter().enumerate() {
                reply.append_index(i, name);
            }
            reply.end();
        }
    }
    if let Some(user) = &asked_for {
        sasl::append_mechanisms(context, user, reply)?;
    }
    if let Some(words) = args.speculative_authenticate {
        match words.iter().next() {
            Some(("authenticate", _)) => authenticate::speculate(context, words, reply),
            _ => sasl::speculate(context, words, reply),
        }
    }
    Ok(())
}

/// `db.user`, as drivers ask which mechanisms a user has.
fn user_name(value: ValueRef<'_>) -> Result<UserName> {
    match value {
        ValueRef::String(name) => match name.split_once('.') {
            Some((db, user)) => Ok(UserName::new(user, db)),
            None => bail!(BadValue, "UserName must contain a '.' separated database.user pair"),
        },
        ValueRef::Document(doc) => match (doc.get("user"), doc.get("db")) {
            (Some(ValueRef::String(user)), Some(ValueRef::String(db))) => Ok(UserName::new(user, db)),
            _ => bail!(BadValue, "UserName must contain string fields 'user' and 'db'"),
        },
        other => Err(wrong_type("hello.saslSupportedMechs", other.bson_type(), "string")),
    }
}

/// The topology version that the client of an awaitable hello knows, and how long it is ready to wait for a newer one.
fn awaited(args: &Hello<'_>) -> Result<Option<(ObjectId, i64, Duration)>> {
    let (version, wait_ms) = match (args.topology_version, args.max_await_time_ms) {
        (None, None) => return Ok(None),
        (Some(_), None) => bail!(
            31368,
            "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'"
        ),
        (None, Some(_)) => bail!(
            31368,
            "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'"
        ),
        (Some(version), Some(wait_ms)) => (version, wait_ms),
    };
    let Ok(wait_ms) = u64::try_from(wait_ms) else {
        bail!(31373, "maxAwaitTimeMS must be a non-negative integer");
    };
    let process_id = match version.get("processId") {
        Some(ValueRef::ObjectId(id)) => id,
        Some(other) => return Err(wrong_type("TopologyVersion.processId", other.bson_type(), "objectId")),
        None => bail!(
            40414,
            "BSON field 'TopologyVersion.processId' is missing but a required field"
        ),
    };
    let counter = match version.get("counter") {
        Some(ValueRef::Int64(counter)) => counter,
        Some(other) => return Err(wrong_type("TopologyVersion.counter", other.bson_type(), "long")),
        None => bail!(
            40414,
            "BSON field 'TopologyVersion.counter' is missing but a required field"
        ),
    };
    if counter < 0 {
        bail!(31372, "topologyVersion must have a non-negative counter");
    }
    Ok(Some((process_id, counter, Duration::from_millis(wait_ms))))
}

/// The request that goes on with an exhaust stream: the same, but it knows the present topology.
fn next_request(body: RawDoc<'_>, service: &Service) -> RawDocBuf {
    let mut writer = RawWriter::with_capacity(body.len());
    for element in body.elements() {
        if element.name() == "topologyVersion" {
            write_topology_version(&mut writer, service);
        } else if element.name() != "client" {
            writer.append_element_bytes(element.as_bytes());
        }
    }
    writer.into_doc()
}

/// Appends `topologyVersion`.
pub fn write_topology_version(writer: &mut RawWriter, service: &Service) {
    writer.begin_document("topologyVersion");
    writer.append("processId", service.node.process_id);
    writer.append("counter", topology_counter(service));
    writer.end();
}

fn topology_counter(service: &Service) -> i64 {
    TOPOLOGY_COUNTER + service.engine.topology().changes
}

/// Appends who is in the replica set, as `hello` and `serverStatus` tell it. `me` is the name that the client reached this
/// node under.
pub fn append_members(topology: &Topology, set_name: &str, (me, primary_field): (&str, &str), reply: &mut RawWriter) {
    let shown = || topology.members(me).filter(|(_, member)| !member.is_hidden);
    let names = |reply: &mut RawWriter, field: &str, is_passive: bool| {
        reply.begin_array(field);
        let members = shown().filter(|(_, member)| (member.priority == 0.0) == is_passive);
        for (i, (host, _)) in members.enumerate() {
            reply.append_index(i, host);
        }
        reply.end();
    };
    names(reply, "hosts", false);
    if shown().any(|(_, member)| member.priority == 0.0) {
        names(reply, "passives", true);
    }
    reply.append("setName", set_name);
    reply.append("setVersion", topology.config.version);
    reply.append(primary_field, topology.is_primary());
    reply.append("secondary", !topology.is_primary());
    if let Some(primary) = topology.primary(me) {
        reply.append("primary", primary);
    }
    if let Some(own) = topology.own_config() {
        append_own(own, reply);
    }
    reply.append("me", topology.own(me));
    reply.append("electionId", topology.election_id());
}

/// What clients are told of the node itself, where it is not as members are unless somebody wants them otherwise.
fn append_own(own: &MemberConfig, reply: &mut RawWriter) {
    if own.priority == 0.0 {
        reply.append("passive", true);
    }
    if own.is_hidden {
        reply.append("hidden", true);
    }
    if !own.delay.is_zero() {
        reply.append("secondaryDelaySecs", delay_secs(own));
    }
    if !own.tags.is_empty() {
        append_tags(own, reply);
    }
}

/// How far a member is behind, as `hello` and the configuration tell it.
pub fn delay_secs(member: &MemberConfig) -> i64 {
    i64::try_from(member.delay.as_secs()).unwrap_or(i64::MAX)
}

/// Appends the tags of a member.
pub fn append_tags(member: &MemberConfig, reply: &mut RawWriter) {
    reply.begin_document("tags");
    for (name, value) in &member.tags {
        reply.append(name, value.as_str());
    }
    reply.end();
}

/// Appends an optime.
pub fn append_optime(reply: &mut RawWriter, name: &str, optime: OpTime) {
    reply.begin_document(name);
    reply.append("ts", optime.ts);
    reply.append("t", optime.term);
    reply.end();
}

fn write_self(context: &Context<'_>, reply: &mut RawWriter, primary_field: &str) {
    let service = context.service;
    let me = context.conn.host.as_str();
    if let Some(set_name) = &service.options.replica_set {
        append_members(&service.engine.topology(), set_name, (me, primary_field), reply);
        reply.begin_document("lastWrite");
        let positions = service.positions();
        for (name, date, optime) in [
            ("opTime", "lastWriteDate", positions.last),
            ("majorityOpTime", "majorityWriteDate", positions.committed),
        ] {
            append_optime(reply, name, optime);
            reply.append(date, ValueRef::DateTime(i64::from(optime.ts.secs) * 1000));
        }
        reply.end();
    } else {
        reply.append(primary_field, true);
    }
    reply.append("maxBsonObjectSize", nestor_model::raw::DOCUMENT_BYTES_MAX as i32);
    reply.append("maxMessageSizeBytes", 48_000_000);
    reply.append("maxWriteBatchSize", 100_000);
    reply.append("localTime", ValueRef::DateTime(nestor_database::clock::now_ms()));
    reply.append("logicalSessionTimeoutMinutes", 30);
    reply.append("connectionId", i32::try_from(context.conn.id).unwrap_or(i32::MAX));
    reply.append("minWireVersion", 0);
    reply.append("maxWireVersion", WIRE_VERSION_MAX);
    reply.append("readOnly", false);
}
