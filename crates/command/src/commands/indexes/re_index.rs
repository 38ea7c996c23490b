//! `reIndex`: refused, as by every replica set. Indexes of Nestor need no rebuilding: `nestor check` says whether one is damaged.

use crate::args::CollectionName;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::rights::Action;
use nestor_model::bail;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("reIndex", "Rebuilds indexes of a standalone server; refused here.")
    .flags(Flags::WRITE.and(Flags::LONG))
    .needs(Needs::collection(Action::ReIndex))
    .runs(|context, _reply| {
        let args = ReIndex::parse(context.body, context.sequences)?;
        names::collection(context.db(), args.coll.0)?;
        if context.service.options.replica_set.is_some() {
            bail!(
                IllegalOperation,
                "reIndex is only allowed on a standalone server. Cannot reIndex {}.{} on a member of a replica set",
                context.db(),
                args.coll.0
            );
        }
        bail!(
            CommandNotSupported,
            "reIndex is not supported: drop the index and create it again"
        )
    });

crate::args! {
    struct ReIndex<'a>: "reIndex" command {
        "reIndex" => coll: CollectionName<'a>,
    }
}
