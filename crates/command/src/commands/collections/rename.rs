//! `renameCollection`.

use super::DDL_FLAGS;
use crate::args::StrictBool;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;
use nestor_database::uuid::Uuid;
use nestor_database::write;
use nestor_database::write::Progress;
use nestor_exec::write::oplog::Origin;
use nestor_model::{Namespace, RawWriter, Result, Value, ValueRef, bail, doc};
use nestor_storage::View;

/// The command.
pub const SPEC: CommandSpec = Facts::namespace("renameCollection", "Gives a collection another name.")
    .flags(DDL_FLAGS.and(Flags::ADMIN))
    .runs(run);

crate::args! {
    /// Arguments of `renameCollection`.
    pub struct RenameArgs<'a>: "renameCollection" command {
        "renameCollection" => from: &'a str,
        "to" => to: &'a str,
        "dropTarget" => drop_target: Option<ValueRef<'a>>,
        "stayTemp" => stay_temp: StrictBool,
        "collectionUUID" => collection_uuid: Option<Uuid>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = RenameArgs::parse(context.body, context.sequences)?;
    let from = parse(args.from)?;
    let to = parse(args.to)?;
    let drop_target = match args.drop_target {
        None | Some(ValueRef::Null | ValueRef::Undefined) => false,
        // The UUID of the collection to drop: for other members of a cluster.
        Some(ValueRef::Binary { subtype: 4, .. }) => true,
        Some(ValueRef::Bool(drop)) => drop,
        Some(other) => {
            return Err(crate::args::wrong_type(
                "renameCollection.dropTarget",
                other.bson_type(),
                "[bool, binData]",
            ));
        }
    };
    write::check_namespace(&from)?;
    write::check_namespace(&to)?;
    write::check_uuid(context, &from, args.collection_uuid)?;
    context.check_write_concern()?;
    let mut progress = Progress::default();
    context.atomically(&mut progress, |ws| {
        let Some(source) = ws.catalog().get(&from).cloned() else {
            bail!(NamespaceNotFound, "Source collection {from} does not exist");
        };
        if source.is_view() {
            bail!(CommandNotSupportedOnView, "cannot rename view: {from}");
        }
        if from == to {
            bail!(IllegalOperation, "Can't rename a collection to itself");
        }
        let target = ws.catalog().get(&to).cloned();
        if target.as_ref().is_some_and(|target| target.is_view()) {
            bail!(NamespaceExists, "a view already exists with that name: {to}");
        }
        ws.rename_collection(&from, &to, drop_target)?;
        if context.origin(&to.db).is_some() {
            let dropped = target.map_or(Value::Bool(false), |target| Uuid(target.uuid).to_value());
            let mut command =
                doc! { "renameCollection": from.to_string(), "to": to.to_string(), "stayTemp": args.stay_temp.0 };
            command.push("dropTarget", dropped);
            let entry =
                Origin::default().command(&from.db, Some(source.uuid), &command, nestor_database::clock::now_ms());
            ws.oplog(entry)?;
        }
        Ok(())
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn parse(text: &str) -> Result<Namespace> {
    let ns = Namespace::parse(text);
    if ns.db.is_empty() || ns.coll.is_empty() || text.contains('\0') {
        bail!(InvalidNamespace, "Invalid namespace specified '{text}'");
    }
    nestor_database::names::check_database(&ns.db)?;
    Ok(ns)
}
