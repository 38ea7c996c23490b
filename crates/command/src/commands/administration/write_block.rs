//! `setUserWriteBlockMode`: lets nobody write to users' databases.

use crate::args::{Arg, At, StrictBool};
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{Result, ValueRef, bail};

/// Reasons for a block.
const REASONS: [&str; 3] = [
    "Unspecified",
    "ClusterToClusterMigrationInProgress",
    "DiskUseThresholdExceeded",
];

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "setUserWriteBlockMode",
    "Lets nobody write to users' databases, or lets them again.",
)
.flags(Flags::ADMIN.and(Flags::WRITE_CONCERN))
.needs(Needs::server(Action::SetUserWriteBlockMode))
.runs(|context, _reply| {
    let args = SetWriteBlock::parse(context.body, context.sequences)?;
    let reason = args.reason.unwrap_or(REASONS[0]);
    if !REASONS.contains(&reason) {
        bail!(
            BadValue,
            "Enumeration value '{reason}' for field 'setUserWriteBlockMode.reason' is not a valid value."
        );
    }
    let gates = &context.service.node.gates;
    match gates.write_block() {
        Some(current) if current != reason => bail!(
            IllegalOperation,
            "the write block is held for another reason: {current}"
        ),
        _ => gates.set_write_block(args.global.0.then(|| reason.to_owned())),
    }
    Ok(())
});

crate::args! {
    struct SetWriteBlock<'a>: "setUserWriteBlockMode" command {
        "global" => global: Required,
        "reason" => reason: Option<&'a str>,
    }
}

/// A boolean that has to be there.
#[derive(Debug)]
struct Required(bool);

impl<'a> Arg<'a> for Required {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        Ok(<StrictBool as Arg>::parse(value, at)?.map(|b| Self(b.0)))
    }
}
