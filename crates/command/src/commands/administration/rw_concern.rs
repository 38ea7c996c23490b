//! `getDefaultRWConcern` and `setDefaultRWConcern`: the read and write concern of commands that name none.
//!
//! They are the cluster's: one document of `config.settings`, as in MongoDB, read back at the start. The levels that can be
//! the default of reads (`local`, `available`, `majority`) read the same on one node, so that only the default of writes
//! makes a difference to commands.

use crate::args::StrictBool;
use crate::context::Context;
use crate::dispatch::CommandSpec;
use crate::facts::{Facts, Flags};
use crate::generic::Generic;
use crate::read_concern::ReadConcern;
use crate::write::Progress;
use crate::write::replace::{read_by_id, replace_by_id};
use crate::write_concern::WriteConcern;
use nestor_model::{DocRef, Document, Namespace, RawDoc, RawWriter, Result, Timestamp, Value, ValueRef, bail, doc};
use nestor_storage::Engine;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// `_id` of the document.
const ID: &str = "ReadWriteConcernDefaults";

fn namespace() -> Namespace {
    Namespace::new("config", "settings")
}

/// The defaults, for commands to take.
#[derive(Debug, Default)]
pub struct Defaults {
    /// A write concern was set: without one commands look no further.
    any: AtomicBool,
    held: Mutex<DefaultConcerns>,
    /// Held while they are changed and stored.
    changing: Mutex<()>,
}

impl Defaults {
    /// Reads what was stored.
    pub fn load(&self, engine: &Engine) -> Result<()> {
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
        self.set(DefaultConcerns {
            read: part("defaultReadConcern"),
            write: part("defaultWriteConcern"),
            updated,
        });
        Ok(())
    }

    fn get(&self) -> DefaultConcerns {
        crate::lock(&self.held).clone()
    }

    fn set(&self, concerns: DefaultConcerns) {
        let mut held = crate::lock(&self.held);
        self.any.store(concerns.write.is_some(), Ordering::Release);
        *held = concerns;
    }

    /// Gives a command the default write concern where it has none of its own, or its `w` where it leaves that out.
    pub fn apply(&self, generic: &mut Generic<'_>, flags: Flags) {
        // The statements of a transaction have none; its commit has.
        let takes_one = flags.has(Flags::WRITE_CONCERN) && (!generic.in_transaction || flags.has(Flags::ENDS_TXN));
        if !takes_one || !self.any.load(Ordering::Acquire) {
            return;
        }
        let default = {
            let held = crate::lock(&self.held);
            held.write.as_ref().and_then(|doc| parse(doc.as_ref()).ok().flatten())
        };
        let Some(default) = default else { return };
        match &mut generic.write_concern {
            None => {
                generic.write_concern = Some(default);
                generic.is_default_concern = true;
            }
            Some(own) if !own.has_w => own.w = default.w,
            Some(_) => {}
        }
    }
}

fn parse(concern: DocRef<'_>) -> Result<Option<WriteConcern>> {
    let at = crate::args::At {
        path: "setDefaultRWConcern",
        field: "defaultWriteConcern",
    };
    WriteConcern::parse(ValueRef::Document(concern), at)
}

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
pub const GET: CommandSpec = Facts::no_collection("getDefaultRWConcern", "Answers the default read and write concern.")
    .flags(Flags::ADMIN)
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
        let read = args.read.map(check_read).transpose()?;
        let write_concern = args.write.map(check_write).transpose()?;
        let now = (context.service.last_time(), crate::clock::now_ms());
        let _changing = crate::lock(&context.service.node.concerns.changing);
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
        if context.generic.is_default_concern {
            // The old default is not what its change waits for.
            context.generic.write_concern = None;
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
    if doc.is_empty() {
        return Ok(Document::new());
    }
    parse(doc.as_doc())?;
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
        ValueRef::DateTime(concerns.updated.map_or_else(crate::clock::now_ms, |(_, wall)| wall)),
    );
}
