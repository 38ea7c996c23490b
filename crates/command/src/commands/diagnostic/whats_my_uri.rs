//! `whatsmyuri`: the address the client's connection comes from.

use crate::dispatch::{CommandSpec, Flags};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "whatsmyuri",
    aliases: &[],
    flags: Flags::QUIET,
    help: "Says which address the connection comes from.",
    run: |context, reply| {
        WhatsMyUri::parse(context.body, context.sequences)?;
        reply.append("you", context.conn.peer.as_str());
        Ok(())
    },
};

crate::args! {
    struct WhatsMyUri: "whatsmyuri" command {}
}
