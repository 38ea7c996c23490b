//! Who runs a command and what that user was given, for commands that show or do different things to different users.

use crate::context::Context;
use nestor_database::rights::Grants;
use nestor_database::users::UserName;

/// What whoever runs a command was given; `None` when everybody may do everything.
pub fn grants<'c>(context: &'c Context<'_>) -> Option<&'c Grants> {
    match context.service.options.authorization {
        // `check` let nobody through who is not logged in, but for the first user.
        true => context.conn.identity.account().map(|account| &account.grants),
        false => None,
    }
}

/// Who runs a command; `None` when nobody asks for rights.
pub fn user<'c>(context: &'c Context<'_>) -> Option<&'c UserName> {
    match context.service.options.authorization {
        true => context.conn.identity.account().map(|account| &account.name),
        false => None,
    }
}
