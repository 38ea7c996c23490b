//! Who may run a command, asked before it runs (`--auth`). Its row of the table of commands says what it [needs](Needs).

use crate::commands::query::prepare::{self, Command};
use crate::context::Context;
use crate::first_user;
use crate::needs::{Asked, Needs};
use nestor_database::operation::Access;
use nestor_database::rights::{Action, Grants, Resource};
use nestor_database::users::Account;
use nestor_model::{Result, bail};

/// Refuses a command that whoever is logged in may not run.
///
/// Errors: 13; those of the command that are told before it runs.
pub fn check(context: &mut Context<'_>) -> Result<()> {
    if !context.service.options.authorization || context.conn.is_own {
        return Ok(());
    }
    let service = context.service;
    let slot = context.conn.slot;
    context.conn.identity.refresh(&service.users, slot, context.conn.host)?;
    let needs = context.spec.needs;
    if let Needs::Nothing = needs {
        return Ok(());
    }
    let Some(account) = context.conn.identity.account().cloned() else {
        return first_user::check(context);
    };
    context.statement.caller = Some(account.caller.clone());
    let asked = Asked {
        collection: context.spec.collection,
        db: context.db(),
        body: context.body,
        sequences: context.sequences,
        account: &account,
    };
    let may_use_uuids = |grants: &Grants| {
        let resources = [Resource::Cluster, Resource::AllCollections];
        resources.iter().any(|on| grants.on(on).has(Action::UseUuid))
    };
    let allowed = match needs {
        _ if asked.is_by_uuid() && !may_use_uuids(&account.grants) => false,
        Needs::Unknown => false,
        Needs::Nothing | Needs::Login => true,
        Needs::Right(right) => asked.has(right),
        Needs::Usually(actions) => match asked.usual(actions) {
            Some((ns, actions)) => account.grants.on_collection(&ns).has_all(actions),
            None => of_operation(context, &account)?,
        },
        Needs::Operation => of_operation(context, &account)?,
        Needs::Arguments(_) => {
            let wanted = asked.wanted(needs);
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

fn of_operation(context: &mut Context<'_>, account: &Account) -> Result<bool> {
    let access = {
        let read = context.current_view();
        let command = Command {
            facts: context.spec,
            body: context.body,
            sequences: context.sequences,
        };
        let Some(intent) = prepare::intent(context, read.view(), command)? else {
            return Ok(false);
        };
        Access::of(&intent, read.view())?
    };
    context.privileges = access.privileges_of(&account.name);
    Ok(context
        .privileges
        .iter()
        .all(|privilege| account.grants.allow(privilege)))
}
