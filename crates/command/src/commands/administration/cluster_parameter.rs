//! `getClusterParameter` and `setClusterParameter`: settings of the whole cluster. What they set is kept
//! while the server runs.

use crate::args::wrong_type;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;
use nestor_model::value::DocRef;
use nestor_model::{Document, RawDoc, RawWriter, Result, Timestamp, ValueRef, bail, doc};

struct Parameter {
    name: &'static str,
    default: fn() -> Document,
    check: fn(DocRef<'_>) -> Result<()>,
}

const TABLE: [Parameter; 3] = [
    Parameter {
        name: "changeStreamOptions",
        default: || doc! { "preAndPostImages": doc! { "expireAfterSeconds": "off" } },
        check: check_change_stream_options,
    },
    Parameter {
        name: "changeStreams",
        default: || doc! { "expireAfterSeconds": 3600i64 },
        check: |doc| {
            field(
                doc,
                "changeStreams",
                "expireAfterSeconds",
                "[long, int, decimal, double]",
                |v| v.is_number(),
            )
        },
    },
    Parameter {
        name: "pauseMigrationsDuringMultiUpdates",
        default: || doc! { "enabled": false },
        check: |doc| {
            field(doc, "pauseMigrationsDuringMultiUpdates", "enabled", "bool", |v| {
                matches!(v, ValueRef::Bool(_))
            })
        },
    },
];

/// `getClusterParameter`.
pub const GET: CommandSpec = Facts::no_collection("getClusterParameter", "Answers settings of the cluster.")
    .flags(Flags::ADMIN)
    .runs(|context, reply| {
        let args = Get::parse(context.body, context.sequences)?;
        let wanted = wanted(args.which)?;
        write(context, reply, &wanted);
        Ok(())
    });

/// `setClusterParameter`.
pub const SET: CommandSpec = Facts::no_collection("setClusterParameter", "Changes settings of the cluster.")
    .flags(Flags::ADMIN.and(Flags::WRITE_CONCERN))
    .runs(|context, _reply| {
        let args = Set::parse(context.body, context.sequences)?;
        let mut fields = args.parameter.iter();
        let (Some((name, value)), None) = (fields.next(), fields.next()) else {
            bail!(
                InvalidOptions,
                "setClusterParameter only supports setting exactly one parameter"
            );
        };
        let parameter = find(name)?;
        let ValueRef::Document(doc) = value else {
            return Err(wrong_type(
                format_args!("setClusterParameter.{name}"),
                value.bson_type(),
                "object",
            ));
        };
        (parameter.check)(doc)?;
        let now = context.service.last_time();
        crate::lock(&context.service.node.cluster_parameters).insert(parameter.name, (doc.to_document(), now));
        Ok(())
    });

crate::args! {
    struct Get<'a>: "getClusterParameter" command {
        "getClusterParameter" => which: ValueRef<'a>,
    }
}

crate::args! {
    struct Set<'a>: "setClusterParameter" command {
        "setClusterParameter" => parameter: RawDoc<'a>,
    }
}

fn find(name: &str) -> Result<&'static Parameter> {
    match TABLE.iter().find(|parameter| parameter.name == name) {
        Some(parameter) => Ok(parameter),
        None => bail!(NoSuchKey, "Unknown server parameter: {name}"),
    }
}

/// One name, an array of names, or `*`.
fn wanted(which: ValueRef<'_>) -> Result<Vec<&'static Parameter>> {
    let names: Vec<&str> = match which {
        ValueRef::String("*") => return Ok(TABLE.iter().collect()),
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
    names.into_iter().map(find).collect()
}

fn write(context: &Context<'_>, reply: &mut RawWriter, wanted: &[&Parameter]) {
    let set = crate::lock(&context.service.node.cluster_parameters);
    reply.begin_array("clusterParameters");
    for (i, parameter) in wanted.iter().enumerate() {
        let default = || ((parameter.default)(), Timestamp::default());
        let (value, time) = set.get(parameter.name).cloned().unwrap_or_else(default);
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

/// A document with one field of one kind.
fn field(doc: DocRef<'_>, path: &str, name: &str, types: &str, fits: fn(ValueRef<'_>) -> bool) -> Result<()> {
    for (other, _) in doc.iter() {
        if other != name {
            return Err(crate::args::unknown_field(path, other));
        }
    }
    match doc.get(name) {
        None | Some(ValueRef::Null | ValueRef::Undefined) => {
            bail!(40414, "BSON field '{path}.{name}' is missing but a required field")
        }
        Some(value) if fits(value) => Ok(()),
        Some(value) => Err(wrong_type(format_args!("{path}.{name}"), value.bson_type(), types)),
    }
}

fn check_change_stream_options(doc: DocRef<'_>) -> Result<()> {
    let images = match doc.get("preAndPostImages") {
        Some(ValueRef::Document(images)) => images,
        Some(_) => bail!(BadValue, "Expected a document for changeStreamOptions.preAndPostImages"),
        None => bail!(BadValue, "changeStreamOptions without preAndPostImages sets nothing"),
    };
    match images.get("expireAfterSeconds") {
        Some(ValueRef::String("off")) => Ok(()),
        Some(ValueRef::String(_)) => bail!(BadValue, "Non-numeric value of 'expireAfterSeconds' should be 'off'"),
        Some(value) if value.is_number() => match nestor_model::number::safe_i64(value) {
            Some(seconds) if seconds > 0 => Ok(()),
            _ => bail!(BadValue, "Numeric value of 'expireAfterSeconds' should be positive"),
        },
        _ => bail!(
            BadValue,
            "'expireAfterSeconds' should be either 'off' or a positive number"
        ),
    }
}
