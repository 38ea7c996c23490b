//! Who may run a command, asked before it runs (`--auth`). What each needs says [`needs`].

use crate::commands::query::prepare::{self, Command};
use crate::context::Context;
use crate::needs::{Asked, Needs, Wanted, needs, want};
use nestor_database::operation::Access;
use nestor_database::rights::Action::{Inprog, ListSessions};
use nestor_database::rights::Resource;
use nestor_database::users::Account;
use nestor_model::{RawDoc, Result, ValueRef, bail};

/// Refuses a command that whoever is logged in may not run.
///
/// Errors: 13; those of the command that are told before it runs.
pub fn check(context: &mut Context<'_>) -> Result<()> {
    if !context.service.options.authorization || context.conn.is_own {
        return Ok(());
    }
    let service = context.service;
    context.conn.identity.refresh(&service.users)?;
    let Some(needs) = needs(context.spec.name) else {
        bail!(Unauthorized, "nobody may run command {}", context.spec.name);
    };
    if let Needs::Nothing = needs {
        return Ok(());
    }
    let Some(account) = context.conn.identity.account().cloned() else {
        return check_first_user(context);
    };
    let asked = Asked {
        facts: context.spec,
        db: context.db(),
        body: context.body,
        account: &account,
    };
    let allowed = match needs {
        Needs::Nothing | Needs::Login => true,
        Needs::Rights(rights) => asked.has(rights)?,
        Needs::Usually(rights) => match asked.is_usual() {
            true => asked.has(rights)?,
            false => of_operation(context, &account)?,
        },
        Needs::Operation => of_operation(context, &account)?,
        Needs::Arguments(which) => {
            let mut wanted = Wanted::new();
            which(&asked, &mut wanted);
            wanted.iter().all(|privilege| account.grants.allow(privilege))
        }
    };
    match allowed {
        true => Ok(()),
        false => bail!(
            Unauthorized,
            "not authorized on {} to execute command {}",
            context.db(),
            context.spec.name
        ),
    }
}

/// Nobody is logged in. As long as there are no users, whoever comes from this machine may make the first one.
fn check_first_user(context: &Context<'_>) -> Result<()> {
    let makes_one = matches!(context.spec.name, "createUser" | "createRole") && context.db() == "admin";
    if makes_one && is_local(context.conn.peer) && !context.service.users.any()? {
        return Ok(());
    }
    bail!(Unauthorized, "Command {} requires authentication", context.spec.name)
}

/// Whether a peer is on this machine: it came by the loopback interface, by a Unix socket or from within the process.
fn is_local(peer: &str) -> bool {
    match peer.parse::<std::net::SocketAddr>() {
        Ok(address) => address.ip().to_canonical().is_loopback(),
        Err(_) => peer.is_empty() || peer.starts_with("anonymous unix socket"),
    }
}

fn of_operation(context: &Context<'_>, account: &Account) -> Result<bool> {
    let read = context.current_view();
    let command = Command {
        facts: context.spec,
        body: context.body,
        sequences: context.sequences,
    };
    let Some(intent) = prepare::intent(context, read.view(), command)? else {
        return Ok(false);
    };
    let mut access = Access::of(&intent, read.view())?;
    shows_others(context.body, &mut access.privileges);
    Ok(access
        .privileges
        .iter()
        .all(|privilege| account.grants.allow(privilege)))
}

/// Operations and sessions do not say yet whose they are: a pipeline that shows them shows those of everybody.
fn shows_others(body: RawDoc<'_>, wanted: &mut Wanted) {
    let body = match body.get("explain").and_then(ValueRef::as_document) {
        Some(explained) => explained,
        None => body.as_doc(),
    };
    let pipeline = body.get("pipeline").and_then(ValueRef::as_array);
    let first = pipeline
        .and_then(|pipeline| pipeline.get(0))
        .and_then(ValueRef::as_document);
    match first.and_then(|stage| stage.iter().next()) {
        Some(("$currentOp", _)) => want(Resource::Cluster, Inprog, wanted),
        Some(("$listSessions" | "$listLocalSessions", _)) => want(Resource::Cluster, ListSessions, wanted),
        _ => {}
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
