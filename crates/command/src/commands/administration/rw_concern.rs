//! `getDefaultRWConcern` and `setDefaultRWConcern`: the read and write concern of commands that name none.

use crate::args::StrictBool;
use crate::context::Context;
use crate::dispatch::{CommandSpec, Flags};
use crate::read_concern::ReadConcern;
use crate::write_concern::WriteConcern;
use nestor_model::{Document, RawDoc, RawWriter, Result, Timestamp, Value, ValueRef, bail, doc};

/// What was set, and when.
#[derive(Clone, Debug, Default)]
pub struct DefaultConcerns {
    /// `defaultReadConcern` as set.
    pub read: Option<Document>,
    /// `defaultWriteConcern` as set, with what it left out.
    pub write: Option<Document>,
    /// When: cluster time and wall clock.
    pub updated: Option<(Timestamp, i64)>,
}

/// `getDefaultRWConcern`.
pub const GET: CommandSpec = CommandSpec {
    name: "getDefaultRWConcern",
    aliases: &[],
    flags: Flags::ADMIN,
    help: "Answers the default read and write concern.",
    run: |context, reply| {
        let args = Get::parse(context.body, context.sequences)?;
        write(context, reply);
        if args.in_memory.0 {
            reply.append("inMemory", true);
        }
        Ok(())
    },
};

/// `setDefaultRWConcern`.
pub const SET: CommandSpec = CommandSpec {
    name: "setDefaultRWConcern",
    aliases: &[],
    flags: Flags::ADMIN.and(Flags::WRITE_CONCERN),
    help: "Sets the default read and write concern.",
    run: |context, reply| {
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
        let read = args.read.map(check_read).transpose()?;
        let write_concern = args.write.map(check_write).transpose()?;
        let now = (context.service.last_time(), crate::clock::now_ms());
        {
            let mut concerns = crate::lock(&context.service.node.concerns);
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
                concerns.write = (!write.is_empty()).then_some(write);
            }
            concerns.updated = Some(now);
        }
        write(context, reply);
        Ok(())
    },
};

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
    ReadConcern::parse(ValueRef::Document(doc.as_doc()), at)?;
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

fn check_write(doc: RawDoc<'_>) -> Result<Document> {
    let at = crate::args::At {
        path: "setDefaultRWConcern",
        field: "defaultWriteConcern",
    };
    if doc.is_empty() {
        return Ok(Document::new());
    }
    WriteConcern::parse(ValueRef::Document(doc.as_doc()), at)?;
    let Some(w) = doc.get("w") else {
        bail!(BadValue, "w must be present in the default write concern");
    };
    if crate::args::safe_i64(w) == Some(0) {
        bail!(BadValue, "{{w: 0}} is not suitable for the default write concern");
    }
    let mut out = doc! { "w": match crate::args::safe_i64(w) {
        Some(nodes) => Value::Int32(nodes.clamp(0, i32::MAX.into()) as i32),
        None => w.to_value(),
    } };
    if let Some(journal) = doc.get("j") {
        out.push("j", journal.truthy());
    }
    let timeout = doc.get("wtimeout").and_then(crate::args::safe_i64).unwrap_or(0);
    out.push("wtimeout", timeout.clamp(0, i32::MAX.into()) as i32);
    Ok(out)
}

fn write(context: &Context<'_>, reply: &mut RawWriter) {
    let concerns = crate::lock(&context.service.node.concerns).clone();
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
        ValueRef::DateTime(concerns.updated.map_or_else(crate::clock::now_ms, |(_, wall)| wall)),
    );
}
