//! `testVersion2`: a command outside API version 1, for tests of drivers; only where `enableTestCommands` is on.

use crate::dispatch::{CommandSpec, Flags};
use crate::parameters::Param;
use nestor_model::bail;

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "testVersion2",
    aliases: &[],
    flags: Flags::QUIET,
    help: "Does nothing; it is outside API version 1. Needs enableTestCommands.",
    run: |context, _reply| {
        if !context.service.node.parameters.is_on(Param::EnableTestCommands) {
            bail!(CommandNotFound, "no such command: 'testVersion2'");
        }
        TestVersion::parse(context.body, context.sequences)?;
        Ok(())
    },
};

crate::args! {
    struct TestVersion: "testVersion2" command {}
}
