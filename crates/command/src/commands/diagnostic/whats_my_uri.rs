//! `whatsmyuri`: the address the client's connection comes from.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;

/// The command. Fields it does not know it passes over, as MongoDB does.
pub const SPEC: CommandSpec = Facts::no_collection("whatsmyuri", "Says which address the connection comes from.")
    .flags(Flags::QUIET)
    .needs(Needs::Nothing)
    .runs(|context, reply| {
        reply.append("you", context.conn.peer.as_str());
        Ok(())
    });
