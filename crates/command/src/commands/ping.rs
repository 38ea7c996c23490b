//! `ping`: answers.

use crate::dispatch::{CommandSpec, Flags};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "ping",
    aliases: &[],
    flags: Flags::API_V1.and(Flags::QUIET),
    help: "Answers ok when the server is there.",
    run: |context, _reply| {
        Ping::parse(context.body, context.sequences)?;
        Ok(())
    },
};

crate::args! {
    struct Ping: "ping" command {}
}
