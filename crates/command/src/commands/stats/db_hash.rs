//! `dbHash`: a hash of a database's contents, to compare two copies of it.
//!
//! The hash of a collection is the sum (modulo 2^128) of the MD5 digests of its documents, so that it does
//! not depend on the order in which they were inserted.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use md5::{Digest as _, Md5};
use nestor_database::rights::Action;
use nestor_model::{RawWriter, Result, ValueRef, bail};
use nestor_storage::{Collection, View};
use std::time::Instant;

/// The command. Fields it does not know it passes over, as MongoDB does.
pub const SPEC: CommandSpec = Facts::no_collection("dbHash", "Answers a hash of a database's contents.")
    .aliases(&["dbhash"])
    .flags(Flags::LONG)
    .needs(Needs::database(Action::DbHash))
    .runs(run);

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let started = Instant::now();
    let wanted = wanted(context)?;
    let snapshot = context.read_snapshot()?;
    let mut collections = Vec::new();
    if let Some(database) = snapshot.catalog().database(context.db()) {
        for collection in database.collections() {
            let name = collection.ns.coll.as_str();
            let is_wanted = wanted.is_empty() || wanted.contains(&name);
            if is_wanted && !collection.is_view() && name != "system.profile" {
                collections.push(collection.clone());
            }
        }
    }
    let mut all = Md5::new();
    let mut hashes = Vec::new();
    for collection in &collections {
        let hash = hash(context, &snapshot, collection)?;
        all.update(hash.as_bytes());
        hashes.push(hash);
    }
    reply.append("host", context.conn.host.as_str());
    reply.begin_document("collections");
    for (collection, hash) in collections.iter().zip(&hashes) {
        reply.append(&collection.ns.coll, hash.as_str());
    }
    reply.end();
    reply.begin_array("capped");
    for (i, collection) in collections.iter().filter(|c| c.is_capped()).enumerate() {
        reply.append_index(i, collection.ns.coll.as_str());
    }
    reply.end();
    reply.begin_document("uuids");
    for collection in &collections {
        let uuid = ValueRef::Binary {
            subtype: 4,
            bytes: &collection.uuid,
        };
        reply.append(&collection.ns.coll, uuid);
    }
    reply.end();
    reply.append("md5", hex(&all.finalize()).as_str());
    reply.append("timeMillis", started.elapsed().as_millis() as i32);
    Ok(())
}

/// The names in `collections`; none when it is no array, which MongoDB lets pass.
fn wanted<'a>(context: &Context<'a>) -> Result<Vec<&'a str>> {
    let Some(ValueRef::Array(names)) = context.body.get("collections") else {
        return Ok(Vec::new());
    };
    let mut out = Vec::new();
    for name in names.iter() {
        match name {
            ValueRef::String(name) => out.push(name),
            _ => bail!(BadValue, "collections entries have to be strings"),
        }
    }
    Ok(out)
}

fn hash(context: &Context<'_>, view: &dyn View, collection: &Collection) -> Result<String> {
    let mut sum = 0u128;
    let mut cursor = view.cursor(collection.records);
    let mut more = cursor.first()?;
    let mut interrupt = context.interrupt.paced();
    while more {
        interrupt.check()?;
        let digest: [u8; 16] = Md5::digest(cursor.value()?).into();
        sum = sum.wrapping_add(u128::from_be_bytes(digest));
        more = cursor.next()?;
    }
    Ok(hex(&sum.to_be_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
