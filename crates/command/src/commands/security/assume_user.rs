//! `assumeUser`: another member of the set, which has logged in with the set's key, goes on as the user for whom it asks.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::identity::Login;
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_database::users::UserName;
use nestor_model::{RawWriter, Result, bail};

/// The command.
pub const SPEC: CommandSpec =
    Facts::no_collection("assumeUser", "Has the connection of another member go on as a user.")
        .flags(Flags::ADMIN)
        .needs(Needs::server(Action::Internal))
        .runs(run);

crate::args! {
    struct AssumeUser<'a>: "assumeUser" command {
        "assumeUser" => user: &'a str,
        "db" => db: &'a str,
    }
}

fn run(context: &mut Context<'_>, _: &mut RawWriter) -> Result<()> {
    let args = AssumeUser::parse(context.body, context.sequences)?;
    if context.conn.identity.account().is_none() {
        bail!(Unauthorized, "nobody is logged in on this connection");
    }
    let name = UserName {
        user: args.user.into(),
        db: args.db.into(),
    };
    let (account, generation) = context.service.users.account(&name)?;
    let Some(account) = account else {
        bail!(UserNotFound, "Could not find user {}@{}", args.user, args.db);
    };
    context.conn.identity.login = Some(Login { account, generation });
    Ok(())
}
