//! `setIndexCommitQuorum`: how many members have to be ready before a running index build ends. Builds end
//! within the command that started them, so none ever runs.

use crate::args::{CollectionName, RawArray};
use crate::dispatch::{CommandSpec, Flags};
use crate::names;
use nestor_model::{ValueRef, bail};
use nestor_storage::View as _;

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "setIndexCommitQuorum",
    aliases: &[],
    flags: Flags::WRITE_CONCERN,
    help: "Changes how many members an index build waits for; none ever runs.",
    run: |context, _reply| {
        let args = SetCommitQuorum::parse(context.body, context.sequences)?;
        let ns = names::collection(context.db(), args.coll.0)?;
        if args.index_names.iter().any(|name| !matches!(name, ValueRef::String(_))) {
            bail!(TypeMismatch, "indexNames has to be an array of strings");
        }
        if context.read_snapshot()?.catalog().get(&ns).is_none() {
            bail!(NamespaceNotFound, "Collection '{ns}' was not found.");
        }
        bail!(
            IndexNotFound,
            "Cannot find an index build on collection '{ns}' with the provided index names"
        )
    },
};

crate::args! {
    struct SetCommitQuorum<'a>: "setIndexCommitQuorum" command {
        "setIndexCommitQuorum" => coll: CollectionName<'a>,
        "indexNames" => index_names: RawArray<'a>,
        /// Of a build that is not there.
        #[allow(dead_code)]
        "commitQuorum" => commit_quorum: ValueRef<'a>,
    }
}
