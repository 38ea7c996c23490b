//! `getDefaultRWConcern` and `setDefaultRWConcern`: the read and write concern of commands that name none.
//!
//! They are the cluster's: one document of `config.settings`, as in MongoDB, read back at the start. The levels that can be
//! the default of reads (`local`, `available`, `majority`) read the same on one node, so that only the default of writes
//! makes a difference to commands.

use crate::args::StrictBool;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::read_concern;
use crate::spec::CommandSpec;
use crate::write_concern;
use nestor_database::concern::defaults::{DefaultConcerns, Defaults};
use nestor_database::concern::write::{Acknowledgement, WriteConcern, unsatisfiable};
use nestor_database::rights::Action;
use nestor_database::terms::Terms;
use nestor_database::write::Progress;
use nestor_database::write::replace::{read_by_id, replace_by_id};
use nestor_model::namespace::CONFIG;
use nestor_model::{DocRef, Document, Error, Namespace, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc};
use nestor_storage::Engine;

/// `_id` of the document.
const ID: &str = "ReadWriteConcernDefaults";

/// Where they are kept.
pub fn namespace() -> Namespace {
    Namespace::new(CONFIG, "settings")
}

/// Reads what was stored.
pub fn load(engine: &Engine, defaults: &Defaults) -> Result<()> {
    let Some(stored) = read_by_id(engine, &namespace(), ID)? else {
        return Ok(());
    };
    let part = |name: &str| {
        stored
            .get(name)
            .and_then(ValueRef::as_document)
            .map(DocRef::to_document)
    };
    let updated = match (stored.get("updateOpTime"), stored.get("updateWallClockTime")) {
        (Some(ValueRef::Timestamp(time)), Some(ValueRef::DateTime(wall))) => Some((time, wall)),
        _ => None,
    };
    let write = part("defaultWriteConcern");
    defaults.set(DefaultConcerns {
        read: part("defaultReadConcern"),
        // A stored document that cannot be parsed is shown and not applied.
        write_concern: write.as_ref().and_then(|doc| parse(doc.as_ref()).ok().flatten()),
        write,
        updated,
    });
    Ok(())
}

/// Gives a command the default write concern, if it takes one. The statements of a transaction have none; its commit has.
pub fn apply(defaults: &Defaults, terms: &mut Terms<'_>, flags: Flags) {
    let takes_one = flags.has(Flags::WRITE_CONCERN) && (!terms.in_transaction || flags.has(Flags::ENDS_TXN));
    if takes_one {
        terms.is_default_concern = defaults.apply(&mut terms.write_concern);
    }
}

fn parse(concern: DocRef<'_>) -> Result<Option<WriteConcern>> {
    let at = crate::args::At {
        path: "setDefaultRWConcern",
        field: "defaultWriteConcern",
    };
    write_concern::parse(ValueRef::Document(concern), at)
}

/// `getDefaultRWConcern`.
pub const GET: CommandSpec = Facts::no_collection("getDefaultRWConcern", "Answers the default read and write concern.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::GetDefaultRwConcern))
    .runs(|context, reply| {
        let args = Get::parse(context.body, context.sequences)?;
        write(context, reply);
        if args.in_memory.0 {
            reply.append("inMemory", true);
        }
        Ok(())
    });

/// `setDefaultRWConcern`.
pub const SET: CommandSpec = Facts::no_collection("setDefaultRWConcern", "Sets the default read and write concern.")
    .flags(
        Flags::ADMIN
            .and(Flags::WRITE)
            .and(Flags::LONG)
            .and(Flags::WRITE_CONCERN),
    )
    .needs(Needs::server(Action::SetDefaultRwConcern))
    .runs(|context, reply| {
        let args = Set::parse(context.body, context.sequences)?;
        if context.service.options.replica_set.is_none() {
            bail!(51301, "'setDefaultRWConcern' is not supported on standalone nodes.");
        }
        if args.read.is_none() && args.write.is_none() {
            bail!(
                BadValue,
                "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present"
            );
        }
        check_mode(context, context.terms.write_concern.as_ref())?;
        let read = args.read.map(check_read).transpose()?;
        let write_concern = args.write.map(|write| check_write(context, write)).transpose()?;
        let now = (context.service.last_time(), nestor_database::clock::now_ms());
        let _changing = context.service.node.concerns.change();
        let mut concerns = context.service.node.concerns.get();
        if let Some(read) = read {
            concerns.read = (!read.is_empty()).then_some(read);
        }
        if let Some(write) = write_concern {
            if write.is_empty() && concerns.write.is_some() {
                bail!(
                    IllegalOperation,
                    "The global default write concern cannot be unset once it is set."
                );
            }
            concerns.write_concern = if write.is_empty() { None } else { parse(write.as_ref())? };
            concerns.write = (!write.is_empty()).then_some(write);
        }
        concerns.updated = Some(now);
        let mut progress = Progress::default();
        let mut stored = doc! { "_id": ID };
        stored.push("defaultReadConcern", concerns.read.clone().map(Value::from));
        stored.push("defaultWriteConcern", concerns.write.clone().map(Value::from));
        stored.push("updateOpTime", now.0);
        stored.push("updateWallClockTime", Value::DateTime(now.1));
        replace_by_id(context, &namespace(), &stored, &mut progress)?;
        context.service.node.concerns.set(concerns);
        if context.terms.is_default_concern {
            // The old default is not what its change waits for.
            context.terms.write_concern = None;
        }
        write(context, reply);
        context.finish_concern(progress.last, reply, false)
    });

crate::args! {
    struct Get: "getDefaultRWConcern" command {
        "inMemory" => in_memory: StrictBool,
    }
}

crate::args! {
    struct Set<'a>: "setDefaultRWConcern" command {
        "defaultReadConcern" => read: Option<RawDoc<'a>>,
        "defaultWriteConcern" => write: Option<RawDoc<'a>>,
    }
}

fn check_read(doc: RawDoc<'_>) -> Result<Document> {
    let at = crate::args::At {
        path: "setDefaultRWConcern",
        field: "defaultReadConcern",
    };
    read_concern::parse(ValueRef::Document(doc.as_doc()), at)?;
    for (name, value) in doc.iter() {
        match (name, value) {
            ("level", ValueRef::String("local" | "available" | "majority")) => {}
            ("level", _) => bail!(
                BadValue,
                "level: {value:?} is not suitable for the default read concern"
            ),
            ("provenance", _) => {}
            _ => bail!(BadValue, "{name} must not be present in the default read concern"),
        }
    }
    Ok(Document::from(doc.to_buf()))
}

fn check_write(context: &Context<'_>, doc: RawDoc<'_>) -> Result<Document> {
    if doc.is_empty() {
        return Ok(Document::new());
    }
    let concern = parse(doc.as_doc())?;
    let Some(w) = doc.get("w") else {
        bail!(BadValue, "w must be present in the default write concern");
    };
    if nestor_model::number::safe_i64(w) == Some(0) {
        bail!(BadValue, "{{w: 0}} is not suitable for the default write concern");
    }
    check_mode(context, concern.as_ref())?;
    let mut out = doc! { "w": match nestor_model::number::safe_i64(w) {
        Some(nodes) => Value::Int32(nodes.clamp(0, i32::MAX.into()) as i32),
        None => w.to_value(),
    } };
    if let Some(journal) = doc.get("j") {
        out.push("j", journal.truthy());
    }
    let timeout = doc
        .get("wtimeout")
        .and_then(nestor_model::number::safe_i64)
        .unwrap_or(0);
    out.push("wtimeout", timeout.clamp(0, i32::MAX.into()) as i32);
    Ok(out)
}

/// Refuses modes of write concerns that nobody defined. Errors: 79.
fn check_mode(context: &Context<'_>, concern: Option<&WriteConcern>) -> Result<()> {
    let mode = concern.filter(|concern| matches!(concern.w, Acknowledgement::Mode(_)));
    match mode.and_then(|concern| unsatisfiable(concern, || context.service.engine.topology())) {
        Some((code, why)) => Err(Error::new(code, why)),
        None => Ok(()),
    }
}

fn write(context: &Context<'_>, reply: &mut RawWriter) {
    let concerns = context.service.node.concerns.get();
    let source = |is_set: bool| if is_set { "global" } else { "implicit" };
    reply.append(
        "defaultReadConcern",
        &concerns.read.clone().unwrap_or(doc! { "level": "local" }),
    );
    let implicit = doc! { "w": "majority", "wtimeout": 0 };
    reply.append("defaultWriteConcern", &concerns.write.clone().unwrap_or(implicit));
    if let Some((time, wall)) = concerns.updated {
        reply.append("updateOpTime", time);
        reply.append("updateWallClockTime", ValueRef::DateTime(wall));
    }
    reply.append("defaultWriteConcernSource", source(concerns.write.is_some()));
    reply.append("defaultReadConcernSource", source(concerns.read.is_some()));
    reply.append(
        "localUpdateWallClockTime",
        ValueRef::DateTime(
            concerns
                .updated
                .map_or_else(nestor_database::clock::now_ms, |(_, wall)| wall),
        ),
    );
}
