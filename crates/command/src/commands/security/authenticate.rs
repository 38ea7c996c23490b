//! `authenticate`, `saslStart`, `saslContinue`, `logout`.

use crate::dispatch::{CommandSpec, Flags};
use nestor_model::{Error, ErrorCode, ValueRef, bail};

/// `authenticate`.
pub const AUTHENTICATE: CommandSpec = CommandSpec {
    name: "authenticate",
    aliases: &[],
    flags: Flags::API_V1.and(Flags::QUIET),
    help: "Logs in with a certificate; not enabled here.",
    run: |context, _reply| Err(unavailable(context.body.get("mechanism"))),
};

/// `saslStart`.
pub const SASL_START: CommandSpec = CommandSpec {
    name: "saslStart",
    aliases: &[],
    flags: Flags::API_V1.and(Flags::QUIET),
    help: "Begins to log in; no mechanism is enabled here.",
    run: |context, _reply| Err(unavailable(context.body.get("mechanism"))),
};

/// `saslContinue`.
pub const SASL_CONTINUE: CommandSpec = CommandSpec {
    name: "saslContinue",
    aliases: &[],
    flags: Flags::API_V1.and(Flags::QUIET),
    help: "Goes on logging in.",
    run: |_context, _reply| bail!(ProtocolError, "No SASL session state found"),
};

/// `logout`.
pub const LOGOUT: CommandSpec = CommandSpec {
    name: "logout",
    aliases: &[],
    flags: Flags::QUIET,
    help: "Logs out.",
    run: |_context, _reply| Ok(()),
};

fn unavailable(mechanism: Option<ValueRef<'_>>) -> Error {
    let Some(mechanism) = mechanism.and_then(ValueRef::as_str) else {
        return Error::new(ErrorCode::BadValue, "Auth mechanism not specified");
    };
    Error::new(
        ErrorCode::MechanismUnavailable,
        format!("Received authentication for mechanism {mechanism} which is unknown or not enabled"),
    )
}
