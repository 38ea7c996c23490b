//! `testVersion2`: a command outside API version 1, for tests of drivers; only where `enableTestCommands` is on.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::parameters::Param;
use nestor_model::bail;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "testVersion2",
    "Does nothing; it is outside API version 1. Needs enableTestCommands.",
)
.flags(Flags::QUIET)
.needs(Needs::Login)
.runs(|context, _reply| {
    if !context.service.node.parameters.is_on(Param::EnableTestCommands) {
        bail!(CommandNotFound, "no such command: 'testVersion2'");
    }
    TestVersion::parse(context.body, context.sequences)?;
    Ok(())
});

crate::args! {
    struct TestVersion: "testVersion2" command {}
}
