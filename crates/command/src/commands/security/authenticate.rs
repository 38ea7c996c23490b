//! `authenticate`, `saslStart`, `saslContinue`, `logout`.

use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;
use nestor_model::{Error, ErrorCode, ValueRef, bail};

/// `authenticate`.
pub const AUTHENTICATE: CommandSpec =
    Facts::no_collection("authenticate", "Logs in with a certificate; not enabled here.")
        .flags(Flags::API_V1.and(Flags::QUIET))
        .runs(|context, _reply| Err(unavailable(context.body.get("mechanism"))));

/// `saslStart`.
pub const SASL_START: CommandSpec =
    Facts::no_collection("saslStart", "Begins to log in; no mechanism is enabled here.")
        .flags(Flags::API_V1.and(Flags::QUIET))
        .secrets(&["payload"])
        .runs(|context, _reply| Err(unavailable(context.body.get("mechanism"))));

/// `saslContinue`.
pub const SASL_CONTINUE: CommandSpec = Facts::no_collection("saslContinue", "Goes on logging in.")
    .flags(Flags::API_V1.and(Flags::QUIET))
    .secrets(&["payload"])
    .runs(|_context, _reply| bail!(ProtocolError, "No SASL session state found"));

/// `logout`.
pub const LOGOUT: CommandSpec = Facts::no_collection("logout", "Logs out.")
    .flags(Flags::QUIET)
    .runs(|_context, _reply| Ok(()));

fn unavailable(mechanism: Option<ValueRef<'_>>) -> Error {
    let Some(mechanism) = mechanism.and_then(ValueRef::as_str) else {
        return Error::new(ErrorCode::BadValue, "Auth mechanism not specified");
    };
    Error::new(
        ErrorCode::MechanismUnavailable,
        format!("Received authentication for mechanism {mechanism} which is unknown or not enabled"),
    )
}
