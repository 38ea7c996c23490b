//! `authenticate`: logging in with a certificate, which needs TLS.

use crate::facts::{Facts, Flags};
use crate::login::unavailable;
use crate::spec::CommandSpec;
use nestor_model::{Error, ErrorCode, ValueRef};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("authenticate", "Logs in with a certificate; not enabled here.")
    .flags(Flags::API_V1.and(Flags::QUIET).and(Flags::BEFORE_API))
    .runs(|context, _reply| {
        let mechanism = context.body.get("mechanism").and_then(ValueRef::as_str);
        Err(mechanism.map_or_else(
            || Error::new(ErrorCode::BadValue, "Auth mechanism not specified"),
            unavailable,
        ))
    });
