//! ALTER ROLE and ALTER DATABASE … SET and RESET: what sessions begin with.

use super::{Known, grantee, named};
use crate::bind::ident;
use crate::error::fail;
use crate::parse::assigned::Assigned;
use crate::parse::roles::Grantee;
use crate::run::tables::SessionFacts;
use crate::settings;
use nestor_database::statement::Statement;
use nestor_database::users::{RoleName, UserName};
use nestor_database::write::Progress;
use nestor_database::write::begun::{self, Whose};
use nestor_model::Result;
use nestor_model::namespace::ADMIN;
use nestor_storage::View;
use sqlparser::ast::Ident;

/// ALTER ROLE name [IN DATABASE database]; names that are not said stand for all.
///
/// Errors: 42704, 3D000, 42501 for whoever is neither a superuser nor the role; those of [`settings::for_later`].
pub(super) fn of_role(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (role, database): (Option<&Ident>, Option<&Ident>),
    assigned: &Assigned,
    progress: &mut Progress,
) -> Result<&'static str> {
    let database = database.map(ident);
    let role = match role.map(|role| named(session, role)) {
        Some(name) => Some(user_of(statement.current_view().view(), session, name)?),
        None => None,
    };
    if let Some(database) = &database {
        check_there(statement, session, database)?;
    }
    if !session.is_superuser() {
        let account = session.account.as_ref();
        match (&role, &database) {
            (Some(role), _) if account.is_some_and(|account| account.name == *role) => {}
            (Some(_), _) => return fail("42501", "permission denied"),
            (None, Some(database)) => check_owns(session, database)?,
            (None, None) => return fail("42501", "must be superuser to alter settings globally"),
        }
    }
    change(statement, session, &Whose { role, database }, assigned, progress)?;
    Ok("ALTER ROLE")
}

/// The user, or the role of `admin`, that a name means.
///
/// Errors: 42704.
pub(in crate::ddl) fn user(view: &dyn View, session: &SessionFacts, name: &Ident) -> Result<UserName> {
    user_of(view, session, named(session, name))
}

fn user_of(view: &dyn View, session: &SessionFacts, name: String) -> Result<UserName> {
    let role = grantee(view, session, &Grantee::Role(Ident::with_quote('"', name.as_str())))?;
    let role = role.unwrap_or(Known { name, user: None });
    Ok(role.user.unwrap_or_else(|| UserName::new(&role.name, ADMIN)))
}

/// ALTER DATABASE.
///
/// Errors: 3D000, 42501 for whoever is neither a superuser nor its owner; those of [`settings::for_later`].
pub(in crate::ddl) fn of_database(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (database, assigned): (&str, &Assigned),
    progress: &mut Progress,
) -> Result<&'static str> {
    check_there(statement, session, database)?;
    check_owns(session, database)?;
    let whose = Whose {
        role: None,
        database: Some(database.to_owned()),
    };
    change(statement, session, &whose, assigned, progress)?;
    Ok("ALTER DATABASE")
}

fn check_there(statement: &Statement<'_>, session: &SessionFacts, database: &str) -> Result<()> {
    let read = statement.current_view();
    match database == session.database || read.view().catalog().database(database).is_some() {
        true => Ok(()),
        false => fail("3D000", format!("database \"{database}\" does not exist")),
    }
}

/// Sessions of everybody begin with what a database says, so the right to write to it is not enough.
fn check_owns(session: &SessionFacts, database: &str) -> Result<()> {
    let owns = session.account.as_ref().is_none_or(|account| {
        let has = |role: RoleName| account.all_roles.contains(&role);
        has(RoleName::new("root", ADMIN)) || has(RoleName::new("dbOwner", database))
    });
    match owns {
        true => Ok(()),
        false => fail("42501", format!("must be owner of database {database}")),
    }
}

fn change(
    statement: &Statement<'_>,
    session: &SessionFacts,
    whose: &Whose,
    assigned: &Assigned,
    progress: &mut Progress,
) -> Result<()> {
    let value = settings::assigned((&session.settings, session.is_superuser()), assigned)?;
    statement.atomically(progress, |ws| {
        begun::change(statement, ws, whose, |all| {
            settings::put(all, assigned.name.as_deref(), value.clone());
        })
    })
}
