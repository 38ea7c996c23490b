//! `convertToCapped` and `cloneCollectionAsCapped`: a capped collection with the newest documents of another.

use super::{DDL_FLAGS, options};
use crate::args::CollectionName;
use crate::context::Context;
use crate::facts::Facts;
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::write;
use nestor_database::write::Progress;
use nestor_exec::write::Writer;
use nestor_model::{CollectionOptions, Namespace, RawDoc, RawWriter, Result, ValueRef, bail, doc};
use nestor_storage::{View, WriteSet};

/// The command that converts in place.
pub const SPEC: CommandSpec = Facts::collection("convertToCapped", "Makes a collection capped.")
    .flags(DDL_FLAGS)
    .runs(run);

/// The command that copies.
pub const CLONE_SPEC: CommandSpec =
    Facts::collection("cloneCollectionAsCapped", "Copies a collection into a new capped one.")
        .flags(DDL_FLAGS)
        .runs(run_clone);

crate::args! {
    /// Arguments of `convertToCapped`.
    pub struct ConvertArgs<'a>: "convertToCapped" command {
        "convertToCapped" => coll: CollectionName<'a>,
        "size" => size: i64,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ConvertArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    write::check_namespace(&ns)?;
    context.check_write_concern()?;
    let size = options::capped_size(args.size)?;
    let mut progress = Progress::default();
    let temporary = Namespace::new(
        ns.db.clone(),
        format!(
            "tmp{:05x}.convertToCapped.{}",
            context.service.random() & 0xF_FFFF,
            ns.coll
        ),
    );
    let uuid = context.service.new_uuid();
    context.atomically(&mut progress, |ws| {
        copy_capped(context, ws, &ns, &temporary, size, uuid)?;
        super::drop::drop_one(context, ws, &ns)?;
        ws.rename_collection(&temporary, &ns, false)?;
        Ok(())
    })?;
    context.finish_concern(progress.last, reply, false)
}

/// Arguments of `cloneCollectionAsCapped`.
struct CloneArgs<'a> {
    from: &'a str,
    to: &'a str,
    size: i64,
}

/// Reads them. This command is older than typed arguments in MongoDB: it passes over what it does not know.
fn clone_args(body: RawDoc<'_>) -> Result<CloneArgs<'_>> {
    let text = |name: &str| match body.get(name) {
        Some(ValueRef::String(text)) => Ok(text),
        other => Err(crate::args::wrong_type(
            format_args!("cloneCollectionAsCapped.{name}"),
            other.map_or(nestor_model::BsonType::Missing, ValueRef::bson_type),
            "string",
        )),
    };
    Ok(CloneArgs {
        from: text("cloneCollectionAsCapped")?,
        to: text("toCollection")?,
        size: body.get("size").and_then(nestor_model::number::safe_i64).unwrap_or(0),
    })
}

fn run_clone(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = clone_args(context.body)?;
    let from = names::collection(context.db(), args.from)?;
    let to = names::collection(context.db(), args.to)?;
    write::check_namespace(&from)?;
    write::check_namespace(&to)?;
    context.check_write_concern()?;
    let size = options::capped_size(args.size)?;
    let uuid = context.service.new_uuid();
    let mut progress = Progress::default();
    context.atomically(&mut progress, |ws| copy_capped(context, ws, &from, &to, size, uuid))?;
    context.finish_concern(progress.last, reply, false)
}

/// Makes the capped collection `to` and copies the documents of `from` into it, oldest first.
fn copy_capped(
    context: &Context<'_>,
    ws: &mut WriteSet,
    from: &Namespace,
    to: &Namespace,
    size: i64,
    uuid: [u8; 16],
) -> Result<()> {
    let Some(source) = ws.catalog().get(from).cloned() else {
        bail!(NamespaceNotFound, "source collection {from} does not exist");
    };
    write::check_writable(&source)?;
    if ws.catalog().get(to).is_some() {
        bail!(
            NamespaceExists,
            "cloneCollectionAsCapped failed - destination collection {to} already exists"
        );
    }
    let options = CollectionOptions::parse(doc! { "capped": true, "size": size })?;
    let target = ws.create_collection(to, uuid, options.clone())?;
    let logged = context.origin(&to.db);
    if logged.is_some() {
        ws.oplog(nestor_database::write::create_entry(to, uuid, &options))?;
    }
    ws.require_collection(source.id);
    let (op, _) = context.operation(None)?;
    let mut cursor = ws.cursor(source.records);
    let mut writer = Writer::new(ws, target, &op, logged)?;
    let mut more = cursor.first()?;
    let mut interrupt = context.interrupt.paced();
    while more {
        interrupt.check()?;
        let doc = cursor.value_bytes()?.document().to_buf();
        writer.insert(doc, None)?;
        more = cursor.next()?;
    }
    Ok(())
}
