//! `setIndexCommitQuorum`: how many members have to be ready before a running index build ends. There is one, so that any
//! quorum that can be met is.

use super::create_indexes::check_quorum;
use crate::args::{CollectionName, RawArray};
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::rights::Action;
use nestor_model::{ValueRef, bail};
use nestor_storage::View as _;

/// The command.
pub const SPEC: CommandSpec = Facts::collection(
    "setIndexCommitQuorum",
    "Changes how many members an index build waits for.",
)
.flags(Flags::WRITE_CONCERN)
.needs(Needs::collection(Action::CreateIndex))
.runs(|context, _reply| {
    let args = SetCommitQuorum::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    if args.index_names.iter().any(|name| !matches!(name, ValueRef::String(_))) {
        bail!(TypeMismatch, "indexNames has to be an array of strings");
    }
    let snapshot = context.read_snapshot()?;
    let Some(collection) = snapshot.catalog().get(&ns) else {
        bail!(NamespaceNotFound, "Collection '{ns}' was not found.");
    };
    let is_building = |name: ValueRef<'_>| {
        let name = name.as_str().unwrap_or_default();
        collection.building.iter().any(|index| index.name == name)
    };
    if args.index_names.iter().next().is_some() && args.index_names.iter().all(is_building) {
        return check_quorum(Some(args.commit_quorum));
    }
    bail!(
        IndexNotFound,
        "Cannot find an index build on collection '{ns}' with the provided index names"
    )
});

crate::args! {
    struct SetCommitQuorum<'a>: "setIndexCommitQuorum" command {
        "setIndexCommitQuorum" => coll: CollectionName<'a>,
        "indexNames" => index_names: RawArray<'a>,
        "commitQuorum" => commit_quorum: ValueRef<'a>,
    }
}
