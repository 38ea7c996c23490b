//! `whatsmyuri`: the address the client's connection comes from.

use crate::dispatch::{CommandSpec, Flags};

/// The command. Fields it does not know it passes over, as MongoDB does.
pub const SPEC: CommandSpec = CommandSpec {
    name: "whatsmyuri",
    aliases: &[],
    flags: Flags::QUIET,
    help: "Says which address the connection comes from.",
    run: |context, reply| {
        reply.append("you", context.conn.peer.as_str());
        Ok(())
    },
};
