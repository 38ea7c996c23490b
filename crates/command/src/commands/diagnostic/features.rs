//! `features`: what scripting can do here (there is none) and the machine part of object ids.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("features", "Says what this build can do besides commands.")
    .flags(Flags::QUIET)
    .needs(Needs::Nothing)
    .runs(|context, reply| {
        let id = context.service.node.process_id.0;
        reply.append("oidMachine", i32::from_be_bytes([0, id[4], id[5], id[6]]));
        Ok(())
    });
