//! `renameCollection`.

use super::DDL_FLAGS;
use crate::args::{Arg, At, StrictBool, wrong_type};
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::names::NAMESPACE_BYTES_MAX;
use nestor_database::uuid::Uuid;
use nestor_database::write;
use nestor_database::write::{Progress, catalog};
use nestor_model::{Namespace, RawWriter, Result, ValueRef, bail};
use nestor_storage::View;

/// The command.
pub const SPEC: CommandSpec = Facts::namespace("renameCollection", "Gives a collection another name.")
    .flags(DDL_FLAGS.and(Flags::ADMIN))
    .needs(Needs::Arguments(needs::rename))
    .audited(Audited::Attempts(audited::rename))
    .runs(run);

crate::args! {
    /// Arguments of `renameCollection`.
    pub struct RenameArgs<'a>: "renameCollection" command {
        "renameCollection" => from: &'a str,
        "to" => to: &'a str,
        "dropTarget" => drop_target: Option<DropTarget>,
        "stayTemp" => stay_temp: StrictBool,
        "collectionUUID" => collection_uuid: Option<Uuid>,
    }
}

/// The targets that a rename may replace.
#[derive(Clone, Copy, Debug)]
pub enum DropTarget {
    /// Whatever collection has the name, or none.
    Any(bool),
    /// The collection with this UUID, which has to be there.
    Only(Uuid),
}

/// A boolean or a UUID. Null is neither.
///
/// Errors: 14 for other types, 207 for binary data that is no UUID.
impl<'a> Arg<'a> for DropTarget {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::Bool(drop) => Ok(Some(Self::Any(drop))),
            ValueRef::Binary { subtype: 4, bytes } if bytes.len() == 16 => Ok(Uuid::parse(value, at)?.map(Self::Only)),
            ValueRef::Binary { .. } => bail!(
                InvalidUUID,
                "uuid must be a 16-byte binary field with UUID (4) subtype: '{at}'"
            ),
            other => Err(wrong_type(at, other.bson_type(), "[bool, binData]")),
        }
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = RenameArgs::parse(context.body, context.sequences)?;
    let from = parse(args.from)?;
    let to = parse(args.to)?;
    check_movable(&from)?;
    check_movable(&to)?;
    write::check_namespace(&from)?;
    write::check_namespace(&to)?;
    let drop_target = match args.drop_target {
        None => false,
        Some(DropTarget::Any(drop)) => drop,
        Some(DropTarget::Only(uuid)) => {
            if from.db != to.db {
                bail!(
                    InvalidOptions,
                    "dropTarget can be a UUID only when a collection stays in its database"
                );
            }
            write::check_uuid(context, &to, Some(uuid))?;
            true
        }
    };
    write::check_uuid(context, &from, args.collection_uuid)?;
    context.check_write_concern()?;
    let mut progress = Progress::default();
    context.atomically(&mut progress, |ws| {
        let Some(source) = ws.catalog().get(&from).cloned() else {
            bail!(NamespaceNotFound, "Source collection {from} does not exist");
        };
        if source.timeseries().is_some() {
            bail!(
                CommandNotSupportedOnView,
                "cannot rename a time-series collection: {from}"
            );
        }
        if source.is_view() {
            bail!(CommandNotSupportedOnView, "cannot rename view: {from}");
        }
        context.check_plain(&source, "under another name you might see more of it")?;
        if from == to {
            bail!(IllegalOperation, "Can't rename a collection to itself");
        }
        let target = ws.catalog().get(&to).cloned();
        if target.as_ref().is_some_and(|target| target.is_view()) {
            bail!(NamespaceExists, "a view already exists with that name: {to}");
        }
        catalog::rename(context, ws, &source, &to, (drop_target, args.stay_temp.0))
    })?;
    context.finish_concern(progress.last, reply, false)
}

/// Refuses collections that keep their names, and names that no collection gets by a rename.
///
/// Error: 20.
fn check_movable(ns: &Namespace) -> Result<()> {
    let is_oplog = ns.is_named_as_oplog();
    if is_oplog || ns.coll.starts_with("system.") {
        bail!(IllegalOperation, "system collections cannot be renamed: {ns}");
    }
    if ns.db.len() + 1 + ns.coll.len() > NAMESPACE_BYTES_MAX {
        bail!(
            IllegalOperation,
            "a collection cannot be renamed from or to a namespace of more than {NAMESPACE_BYTES_MAX} bytes: {ns}"
        );
    }
    Ok(())
}

fn parse(text: &str) -> Result<Namespace> {
    let ns = Namespace::parse(text);
    if ns.db.is_empty() || ns.coll.is_empty() || text.contains('\0') {
        bail!(InvalidNamespace, "Invalid namespace specified '{text}'");
    }
    nestor_database::names::check_database(&ns.db)?;
    Ok(ns)
}
