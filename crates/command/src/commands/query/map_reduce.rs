//! `mapReduce`: refused, as its functions are JavaScript.

use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;
use nestor_model::{Error, ErrorCode};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("mapReduce", "Refused: it needs JavaScript. Use aggregate.")
    .aliases(&["mapreduce"])
    .flags(Flags::READ_CONCERN.and(Flags::WRITE_CONCERN))
    .runs(|_, _| Err(refusal()));

/// Why it cannot run, nor be explained.
pub(crate) fn refusal() -> Error {
    Error::new(
        ErrorCode::CommandNotSupported,
        "mapReduce needs JavaScript, which this server does not run; use an aggregation pipeline",
    )
}
