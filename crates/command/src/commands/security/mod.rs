//! Logging in. There are no users yet, so every attempt is refused as a server without mechanisms does.

pub mod authenticate;

use crate::dispatch::CommandSpec;

/// The commands of this family.
pub(crate) const SPECS: &[&CommandSpec] = &[
    &authenticate::AUTHENTICATE,
    &authenticate::SASL_START,
    &authenticate::SASL_CONTINUE,
    &authenticate::LOGOUT,
];
