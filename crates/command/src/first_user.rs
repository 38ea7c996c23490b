//! The exception for the first user: whoever comes from this machine may make it without having logged in.
//!
//! Source: manual, "Localhost Exception in Self-Managed Deployments".

use crate::context::Context;
use crate::facts::Flags;
use nestor_database::parameters::Param;
use nestor_model::namespace::ADMIN;
use nestor_model::{Result, bail};
use std::sync::MutexGuard;

/// Nobody is logged in. As long as there are no users and no roles, whoever comes from this machine may make the first one.
///
/// Errors: 13; those of reading.
pub fn check(context: &Context<'_>) -> Result<()> {
    let makes_one = context.spec.flags.has(Flags::FIRST_USER) && context.db() == ADMIN;
    let parameters = &context.service.node.parameters;
    let may_be = makes_one && is_local(context.conn.peer) && parameters.is_on(Param::LocalhostAuthBypass);
    if may_be && !context.service.users.any()? {
        return Ok(());
    }
    bail!(Unauthorized, "Command {} requires authentication", context.spec.name)
}

/// What whoever makes a user or role holds until it is stored: nothing if somebody is logged in. Otherwise several connections may have been let in
/// as nobody at the same time, of which one makes the first user and the others come too late.
///
/// Errors: 13 for who comes too late.
pub fn alone<'a>(context: &Context<'a>) -> Result<Option<MutexGuard<'a, ()>>> {
    let is_asked = context.service.options.authorization && !context.conn.is_own;
    if !is_asked || context.conn.identity.account().is_some() {
        return Ok(None);
    }
    let service = context.service;
    let alone = service.users.making_first();
    check(context)?;
    Ok(Some(alone))
}

/// Whether a peer is on this machine: it came by the loopback interface, by a Unix socket or from within the process.
fn is_local(peer: &str) -> bool {
    match peer.parse::<std::net::SocketAddr>() {
        Ok(address) => address.ip().to_canonical().is_loopback(),
        Err(_) => peer.is_empty() || peer.starts_with("anonymous unix socket"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_on_this_machine() {
        for local in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", ""] {
            assert!(is_local(local), "{local}");
        }
        for other in ["10.0.0.1:1", "[fe80::1]:1", "example.org:1"] {
            assert!(!is_local(other), "{other}");
        }
    }
}
