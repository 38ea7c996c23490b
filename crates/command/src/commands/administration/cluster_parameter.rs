//! `getClusterParameter` and `setClusterParameter`: settings of the whole cluster. They are kept as documents of
//! `config.clusterParameters`, as in MongoDB, and read back at the start.
//!
//! Source: manual, "setClusterParameter", "changeStreamOptions"; errors as observed.

use super::traffic_control;
use crate::args::wrong_type;
use crate::audit;
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::Database;
use nestor_database::audit::Config;
use nestor_database::node::{ClusterParameters, Node};
use nestor_database::rights::Action;
use nestor_database::write::Progress;
use nestor_database::write::replace::{read_by_id, replace_by_id};
use nestor_model::namespace::CONFIG;
use nestor_model::value::DocRef;
use nestor_model::{Document, Namespace, RawWriter, Result, Timestamp, Value, ValueRef, bail, doc};
use nestor_storage::Engine;

struct Parameter {
    name: &'static str,
    default: fn() -> Document,
    /// The whole new value that a client's value stands for, or `None` if it changes nothing.
    read: fn(DocRef<'_>) -> Result<Option<Document>>,
}

const TABLE: [Parameter; 5] = [
    Parameter {
        name: AUDIT_CONFIG,
        default: || Config::default().to_document(),
        read: |doc| audit_config(doc).map(|config| Some(config.to_document())),
    },
    Parameter {
        name: "changeStreamOptions",
        default: || doc! { "preAndPostImages": doc! { "expireAfterSeconds": "off" } },
        read: change_stream_options,
    },
    Parameter {
        name: "changeStreams",
        default: || doc! { "expireAfterSeconds": 3600i64 },
        read: |doc| {
            let types = "[long, int, decimal, double]";
            let Some(value) = field(doc, "changeStreams", "expireAfterSeconds", types, |v| v.is_number())? else {
                return Ok(None);
            };
            let ValueRef::Null = value else {
                let seconds = positive(value, "changeStreams.expireAfterSeconds")?;
                return Ok(Some(doc! { "expireAfterSeconds": seconds }));
            };
            Ok(Some(doc! { "expireAfterSeconds": 3600i64 }))
        },
    },
    Parameter {
        name: "pauseMigrationsDuringMultiUpdates",
        default: || doc! { "enabled": false },
        read: |doc| {
            let is_bool = |v: ValueRef<'_>| matches!(v, ValueRef::Bool(_));
            let value = field(doc, "pauseMigrationsDuringMultiUpdates", "enabled", "bool", is_bool)?;
            Ok(value.map(|value| doc! { "enabled": value.truthy() }))
        },
    },
    Parameter {
        name: TRAFFIC_CONTROL,
        default: || doc! { "limits": Vec::new() },
        read: |doc| traffic_control::parse(doc).map(|limits| Some(traffic_control::to_document(&limits))),
    },
];

/// Limits for operations.
const TRAFFIC_CONTROL: &str = "trafficControl";

/// Which records the audit log wants.
const AUDIT_CONFIG: &str = "auditConfig";

fn audit_config(doc: DocRef<'_>) -> Result<Config> {
    let mut config = Config::default();
    for (name, value) in doc.iter() {
        match (name, value) {
            ("filter", ValueRef::Document(filter)) => config.filter = Config::filter(filter)?,
            ("filter", other) => return Err(wrong_type("auditConfig.filter", other.bson_type(), "object")),
            ("auditAuthorizationSuccess", ValueRef::Bool(on)) => config.authorization_success = on,
            ("auditAuthorizationSuccess", other) => {
                return Err(wrong_type(
                    "auditConfig.auditAuthorizationSuccess",
                    other.bson_type(),
                    "bool",
                ));
            }
            (other, _) => return Err(crate::args::unknown_field("auditConfig", other)),
        }
    }
    Ok(config)
}

/// Puts what was read or set in force.
pub fn apply(database: &Database) {
    apply_audit(&database.node);
    apply_limits(database);
}

fn apply_limits(database: &Database) {
    if let Some((set, _)) = database.node.cluster_parameters.get(TRAFFIC_CONTROL) {
        if let Ok(limits) = traffic_control::parse(set.as_ref()) {
            database.traffic.replace(limits);
        }
    }
}

/// Puts the configuration of the audit log in force, where it may be set.
fn apply_audit(node: &Node) {
    let set = node.cluster_parameters.get(AUDIT_CONFIG);
    if let (Some((set, _)), true) = (set, node.audit().is_runtime()) {
        if let Ok(config) = audit_config(set.as_ref()) {
            node.audit().configure(config);
        }
    }
}

/// Where cluster parameters are kept.
pub fn namespace() -> Namespace {
    Namespace::new(CONFIG, "clusterParameters")
}

/// Reads what was stored. A value that nobody understands is left out.
pub fn load(engine: &Engine, parameters: &ClusterParameters) -> Result<()> {
    for parameter in &TABLE {
        let Some(stored) = read_by_id(engine, &namespace(), parameter.name)? else {
            continue;
        };
        let time = match stored.get("clusterParameterTime") {
            Some(ValueRef::Timestamp(time)) => time,
            _ => Timestamp::default(),
        };
        let mut value = stored;
        value.remove("_id");
        value.remove("clusterParameterTime");
        if let Ok(Some(value)) = (parameter.read)(value.as_ref()) {
            parameters.set(parameter.name, value, time);
        }
    }
    Ok(())
}

/// `getClusterParameter`.
pub const GET: CommandSpec = Facts::no_collection("getClusterParameter", "Answers settings of the cluster.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::GetClusterParameter))
    .audited(Audited::Told(audited::cluster_parameter))
    .runs(|context, reply| {
        let args = Get::parse(context.body, context.sequences)?;
        let wanted = wanted(&context.service.node, args.which)?;
        write(context, reply, &wanted);
        Ok(())
    });

/// `setClusterParameter`. What else stands in the command is passed over, as in MongoDB.
pub const SET: CommandSpec = Facts::no_collection("setClusterParameter", "Changes settings of the cluster.")
    .flags(Flags::ADMIN.and(Flags::WRITE).and(Flags::LONG))
    .needs(Needs::server(Action::SetClusterParameter))
    .runs(set);

fn set(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let given = match context.body.iter().next() {
        Some((_, ValueRef::Document(DocRef::Raw(given)))) => given,
        Some((_, value)) if !value.is_nullish() => {
            return Err(wrong_type("setClusterParameter", value.bson_type(), "object"));
        }
        _ => bail!(
            40414,
            "BSON field 'setClusterParameter.setClusterParameter' is missing but a required field"
        ),
    };
    let mut fields = given.iter();
    let Some((name, value)) = fields.next() else {
        bail!(NoSuchKey, "setClusterParameter names no parameter");
    };
    if fields.next().is_some() {
        bail!(
            InvalidOptions,
            "setClusterParameter only supports setting exactly one parameter"
        );
    }
    find(&context.service.node, name)?;
    let ValueRef::Document(doc) = value else {
        bail!(
            BadValue,
            "Cluster parameter value of {name} must be an object, not {}",
            value.bson_type().alias()
        );
    };
    if let Some((field, _)) = doc.iter().find(|(field, _)| field.starts_with('$')) {
        bail!(
            DollarPrefixedFieldName,
            "The dollar ($) prefixed field '{field}' is not allowed in a cluster parameter"
        );
    }
    put(context, name, doc, reply)
}

/// Stores a value and puts it in force.
///
/// Errors: 72 for a parameter that is not there; what is wrong with the value.
pub fn put(context: &mut Context<'_>, name: &str, given: DocRef<'_>, reply: &mut RawWriter) -> Result<()> {
    let node = &context.service.node;
    let parameter = find(node, name)?;
    let Some(value) = (parameter.read)(given)? else {
        return Ok(());
    };
    let parameters = &node.cluster_parameters;
    let shown = |value: Option<Document>| {
        let mut out = doc! { "_id": parameter.name };
        for (name, field) in value.unwrap_or_else(parameter.default).iter() {
            out.push(name, field);
        }
        out
    };
    let change = (
        shown(parameters.get(parameter.name).map(|(old, _)| old)),
        shown(Some(value.clone())),
    );
    let mut progress = Progress::default();
    // The stored value and the one in force are changed in the same order.
    let _alone = parameters.alone();
    let time = context.service.last_time();
    let mut stored = doc! { "_id": parameter.name, "clusterParameterTime": time };
    for (name, field) in value.iter() {
        stored.push(name, field);
    }
    replace_by_id(context, &namespace(), &stored, &mut progress)?;
    parameters.set(parameter.name, value, time);
    if parameter.name == AUDIT_CONFIG {
        // The record of the change is written as the configuration before wants it: who silences the log is seen.
        let param = || doc! { "previous": change.0, "config": change.1 };
        context.note("auditConfigure", param, None);
        audit::write(context, &Ok(()));
        apply_audit(node);
    } else {
        let param = || doc! { "originalClusterServerParameter": change.0, "updatedClusterServerParameter": change.1 };
        context.note("setClusterParameter", param, None);
        if parameter.name == TRAFFIC_CONTROL {
            apply_limits(&context.service.database);
        }
    }
    context.finish_concern(progress.last, reply, false)
}

crate::args! {
    struct Get<'a>: "getClusterParameter" command {
        "getClusterParameter" => which: ValueRef<'a>,
    }
}

/// The parameters that there are; that of auditing only where it is in force.
fn known(node: &Node) -> impl Iterator<Item = &'static Parameter> {
    let is_audited = node.audit().is_runtime();
    TABLE
        .iter()
        .filter(move |parameter| is_audited || parameter.name != AUDIT_CONFIG)
}

fn find(node: &Node, name: &str) -> Result<&'static Parameter> {
    match known(node).find(|parameter| parameter.name == name) {
        Some(parameter) => Ok(parameter),
        None => bail!(NoSuchKey, "Unknown server parameter: {name}"),
    }
}

/// One name, an array of names, or `*`.
fn wanted(node: &Node, which: ValueRef<'_>) -> Result<Vec<&'static Parameter>> {
    let names: Vec<&str> = match which {
        ValueRef::String("*") => return Ok(known(node).collect()),
        ValueRef::String(name) => vec![name],
        ValueRef::Array(names) => {
            let mut texts = Vec::new();
            for name in names.iter() {
                match name {
                    ValueRef::String(name) => texts.push(name),
                    other => return Err(wrong_type("getClusterParameter", other.bson_type(), "string")),
                }
            }
            texts
        }
        other => {
            return Err(wrong_type("getClusterParameter", other.bson_type(), "[string, array]"));
        }
    };
    if names.is_empty() {
        bail!(
            BadValue,
            "Must supply at least one cluster server parameter name to getClusterParameter"
        );
    }
    names.into_iter().map(|name| find(node, name)).collect()
}

fn write(context: &Context<'_>, reply: &mut RawWriter, wanted: &[&Parameter]) {
    let parameters = &context.service.node.cluster_parameters;
    reply.begin_array("clusterParameters");
    for (i, parameter) in wanted.iter().enumerate() {
        let default = || ((parameter.default)(), Timestamp::default());
        let (value, time) = parameters.get(parameter.name).unwrap_or_else(default);
        reply.begin_document_at(i);
        reply.append("_id", parameter.name);
        if time != Timestamp::default() {
            reply.append("clusterParameterTime", time);
        }
        for (name, value) in value.iter() {
            reply.append(name, value);
        }
        reply.end();
    }
    reply.end();
}

/// The one field of a document, of one kind or null; `None` if it is not there.
fn field<'v>(
    doc: DocRef<'v>,
    path: &str,
    name: &str,
    types: &str,
    fits: fn(ValueRef<'_>) -> bool,
) -> Result<Option<ValueRef<'v>>> {
    for (other, _) in doc.iter() {
        if other != name {
            return Err(crate::args::unknown_field(path, other));
        }
    }
    match doc.get(name) {
        None => Ok(None),
        Some(value) if value.is_nullish() => Ok(Some(ValueRef::Null)),
        Some(value) if fits(value) => Ok(Some(value)),
        Some(value) => Err(wrong_type(format_args!("{path}.{name}"), value.bson_type(), types)),
    }
}

fn positive(value: ValueRef<'_>, path: &str) -> Result<i64> {
    match nestor_model::number::safe_i64(value) {
        Some(number) if number > 0 => Ok(number),
        _ => bail!(BadValue, "Numeric value of '{path}' should be positive"),
    }
}

fn change_stream_options(doc: DocRef<'_>) -> Result<Option<Document>> {
    let images = match doc.get("preAndPostImages") {
        Some(ValueRef::Document(images)) => images,
        Some(_) => bail!(BadValue, "Expected a document for changeStreamOptions.preAndPostImages"),
        None => bail!(BadValue, "changeStreamOptions without preAndPostImages sets nothing"),
    };
    let others = doc.iter().filter(|(name, _)| *name != "preAndPostImages");
    let mut others = others.chain(images.iter().filter(|(name, _)| *name != "expireAfterSeconds"));
    if let Some((name, _)) = others.next() {
        bail!(BadValue, "changeStreamOptions has no field '{name}'");
    }
    let expiry: Value = match images.get("expireAfterSeconds") {
        Some(ValueRef::String("off")) => "off".into(),
        Some(ValueRef::String(_)) => bail!(BadValue, "Non-numeric value of 'expireAfterSeconds' should be 'off'"),
        Some(value) if value.is_number() => positive(value, "expireAfterSeconds")?.into(),
        _ => bail!(
            BadValue,
            "'expireAfterSeconds' should be either 'off' or a positive number"
        ),
    };
    Ok(Some(doc! { "preAndPostImages": doc! { "expireAfterSeconds": expiry } }))
}
