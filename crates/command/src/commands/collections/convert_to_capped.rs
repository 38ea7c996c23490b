//! `convertToCapped` and `cloneCollectionAsCapped`: a capped collection with the newest documents of another.

use super::{DDL_FLAGS, options};
use crate::args::{Arg, At, CollectionName, wrong_type};
use crate::context::Context;
use crate::facts::Facts;
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::rights::Action;
use nestor_database::write;
use nestor_database::write::Progress;
use nestor_exec::write::Writer;
use nestor_model::number::safe_i64;
use nestor_model::timeseries::BUCKETS_PREFIX;
use nestor_model::{BsonType, CollectionOptions, Namespace, RawWriter, Result, ValueRef, bail, doc};
use nestor_storage::{View, WriteSet};

/// The command that converts in place.
pub const SPEC: CommandSpec = Facts::collection("convertToCapped", "Makes a collection capped.")
    .flags(DDL_FLAGS)
    .needs(Needs::collection(Action::ConvertToCapped))
    .runs(run);

/// The command that copies.
pub const CLONE_SPEC: CommandSpec =
    Facts::collection("cloneCollectionAsCapped", "Copies a collection into a new capped one.")
        .flags(DDL_FLAGS)
        .needs(Needs::Arguments(needs::clone_as_capped))
        .runs(run_clone);

crate::args! {
    /// Arguments of `convertToCapped`.
    pub struct ConvertArgs<'a>: "convertToCapped" lenient {
        "convertToCapped" => coll: CollectionName<'a>,
        "size" => size: CopySize,
    }
}

crate::args! {
    /// Arguments of `cloneCollectionAsCapped`.
    struct CloneArgs<'a>: "cloneCollectionAsCapped" lenient {
        "cloneCollectionAsCapped" => from: Text<'a>,
        "toCollection" => to: Text<'a>,
        "size" => size: CopySize,
    }
}

/// The size of the capped collection to be made, in bytes.
///
/// Errors: 72 for what is no number above zero, absent included; 2 for one above the limit.
#[derive(Clone, Copy, Debug)]
pub struct CopySize(i64);

impl<'a> Arg<'a> for CopySize {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match safe_i64(value) {
            Some(size) if size > 0 => options::capped_size(size).map(|size| Some(Self(size))),
            _ => Self::absent(at).map(Some),
        }
    }

    fn absent(at: At<'_>) -> Result<Self> {
        bail!(InvalidOptions, "{} must be a number greater than zero", at.field)
    }
}

/// A string; none at all is of the wrong type, too.
#[derive(Clone, Copy, Debug)]
struct Text<'a>(&'a str);

impl<'a> Arg<'a> for Text<'a> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::String(text) => Ok(Some(Self(text))),
            other => Err(wrong_type(at, other.bson_type(), "string")),
        }
    }

    fn absent(at: At<'_>) -> Result<Self> {
        Err(wrong_type(at, BsonType::Missing, "string"))
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ConvertArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    // No collection has such a name, so there is none to be found.
    if !ns.coll.contains('$') {
        write::check_namespace(&ns)?;
    }
    if ns.coll.starts_with(BUCKETS_PREFIX) {
        bail!(
            IllegalOperation,
            "a collection of time-series buckets cannot be capped: {ns}"
        );
    }
    if ns.coll == "system.views" {
        bail!(BadValue, "the collection of views cannot be capped: {ns}");
    }
    context.check_write_concern()?;
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
        copy_capped(context, ws, &ns, &temporary, args.size, uuid)?;
        nestor_database::write::catalog::drop(context, ws, &ns)?;
        ws.rename_collection(&temporary, &ns, false)?;
        Ok(())
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn run_clone(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CloneArgs::parse(context.body, context.sequences)?;
    let from = names::collection(context.db(), args.from.0)?;
    let to = names::collection(context.db(), args.to.0)?;
    write::check_namespace(&from)?;
    write::check_namespace(&to)?;
    context.check_write_concern()?;
    let uuid = context.service.new_uuid();
    let mut progress = Progress::default();
    context.atomically(&mut progress, |ws| {
        copy_capped(context, ws, &from, &to, args.size, uuid)
    })?;
    context.finish_concern(progress.last, reply, false)
}

/// Makes the capped collection `to` and copies the documents of `from` into it, oldest first.
fn copy_capped(
    context: &Context<'_>,
    ws: &mut WriteSet,
    from: &Namespace,
    to: &Namespace,
    size: CopySize,
    uuid: [u8; 16],
) -> Result<()> {
    let Some(source) = ws.catalog().get(from).cloned() else {
        bail!(NamespaceNotFound, "source collection {from} does not exist");
    };
    write::check_writable(&source)?;
    context.check_plain(&source, "a copy of it would be plain")?;
    if ws.catalog().get(to).is_some() {
        bail!(
            NamespaceExists,
            "cloneCollectionAsCapped failed - destination collection {to} already exists"
        );
    }
    let options = CollectionOptions::parse(doc! { "capped": true, "size": size.0 })?;
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
