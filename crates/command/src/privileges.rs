//! The user who runs a command and that user's privileges, for commands that depend on them.

use crate::connection::Connection;
use crate::context::Context;
use crate::needs::{Asked, Wanted};
use crate::service::Service;
use nestor_database::rights::{Grants, Privilege};
use nestor_database::users::UserName;

/// Whether nobody is logged in on a connection although rights are asked for.
pub fn is_anonymous(service: &Service, conn: &Connection) -> bool {
    service.options.authorization && conn.identity.login().is_none()
}

/// The rights that authorization let a command pass by: those that opening a cursor was allowed by.
pub fn asked(context: &Context<'_>) -> Wanted {
    let account = context
        .conn
        .identity
        .account()
        .filter(|_| context.service.options.authorization);
    let (Some(account), true) = (account, context.privileges.is_empty()) else {
        return context.privileges.clone();
    };
    let asked = Asked {
        collection: context.spec.collection,
        db: context.db(),
        body: context.body,
        sequences: context.sequences,
        account,
    };
    asked.wanted(context.spec.needs)
}

/// Whether whoever is logged in still has the rights that a cursor was opened by.
pub fn still_allowed(context: &Context<'_>, privileges: &[Privilege]) -> bool {
    grants(context).is_none_or(|grants| privileges.iter().all(|privilege| grants.allow(privilege)))
}

/// The privileges of the user who runs a command; `None` when everybody may do everything.
pub fn grants<'c>(context: &'c Context<'_>) -> Option<&'c Grants> {
    match context.service.options.authorization {
        // `check` let nobody through who is not logged in, but for the first user.
        true => context.conn.identity.account().map(|account| &account.grants),
        false => None,
    }
}

/// The user who runs a command; `None` when authorization is off.
pub fn user<'c>(context: &'c Context<'_>) -> Option<&'c UserName> {
    match context.service.options.authorization {
        true => context.conn.identity.account().map(|account| &account.name),
        false => None,
    }
}
