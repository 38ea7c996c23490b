//! `ping`: answers.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("ping", "Answers ok when the server is there.")
    .flags(Flags::API_V1.and(Flags::QUIET))
    .needs(Needs::Nothing)
    .runs(|context, _reply| {
        Ping::parse(context.body, context.sequences)?;
        Ok(())
    });

crate::args! {
    struct Ping: "ping" command {}
}
