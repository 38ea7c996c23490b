//! `mapReduce`: refused, as its functions are JavaScript.

use crate::dispatch::{CommandSpec, Flags};
use nestor_model::{Error, ErrorCode};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "mapReduce",
    aliases: &["mapreduce"],
    flags: Flags::READ_CONCERN.and(Flags::WRITE_CONCERN),
    help: "Refused: it needs JavaScript. Use aggregate.",
    run: |_, _| Err(refusal()),
};

/// Why it cannot run, nor be explained.
pub(crate) fn refusal() -> Error {
    Error::new(
        ErrorCode::CommandNotSupported,
        "mapReduce needs JavaScript, which this server does not run; use an aggregation pipeline",
    )
}
