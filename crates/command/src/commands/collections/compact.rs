//! `compact`: merges what is in the journal's memory into the base.

use crate::args::CollectionName;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_database::{names, write};
use nestor_model::{RawWriter, Result, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("compact", "Gives back space that deleted documents left.")
    .flags(Flags::LONG)
    .needs(Needs::collection(Action::Compact))
    .runs(run);

crate::args! {
    /// Arguments of `compact`.
    pub struct CompactArgs<'a>: "compact" command {
        "compact" => coll: CollectionName<'a>,
        "force" => force: bool,
        "dryRun" => dry_run: bool,
        "freeSpaceTargetMB" => free_space_target_mb: Option<i64>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CompactArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    if args.free_space_target_mb.is_some_and(|mb| mb < 1) {
        bail!(BadValue, "BSON field 'freeSpaceTargetMB' value must be >= 1");
    }
    let read = context.current_view();
    let Some(collection) = read.view().catalog().get(&ns).cloned() else {
        bail!(NamespaceNotFound, "collection does not exist: {ns}");
    };
    write::check_writable(&collection)?;
    if !args.dry_run {
        context.service.engine.checkpoint()?;
    }
    // The base reuses free pages by itself and gives none back to the file system.
    if args.dry_run {
        reply.append("estimatedBytesFreed", 0);
    } else {
        reply.append("bytesFreed", 0);
    }
    Ok(())
}
