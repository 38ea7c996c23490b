//! CREATE DATABASE, DROP DATABASE, and what ALTER DATABASE can change.
//!
//! A database is there with its first collection. One that is made empty has the entry of its schema `public`, which says nothing else.

use super::{roles, schema};
use crate::bind::ident;
use crate::catalog::schemas;
use crate::error::{self, Field, error, fail, unsupported};
use crate::notices::pass_over;
use crate::parse::databases::Databases;
use crate::run::tables::SessionFacts;
use nestor_database::rights::{Action, Resource};
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::namespace::is_internal_database;
use nestor_model::{RawDoc, Result};
use nestor_storage::View as _;
use sqlparser::ast::{Ident, ObjectName};
use std::sync::PoisonError;

/// Runs one of these statements; its tag.
///
/// Errors: 25001 within transactions; 42P04, 3D000, 55006, 42501; 0A000 for options that mean something else than what there is.
pub(super) fn run(
    statement: &Statement<'_>,
    session: &SessionFacts,
    what: &Databases,
    progress: &mut Progress,
) -> Result<&'static str> {
    let (tag, name) = match what {
        Databases::Create { name, .. } => ("CREATE DATABASE", ident(name)),
        Databases::Drop { name, .. } => ("DROP DATABASE", ident(name)),
        Databases::Settings { name, assigned } => {
            return roles::settings::of_database(statement, session, (&ident(name), assigned), progress);
        }
    };
    if statement.in_transaction() {
        return fail("25001", format!("{tag} cannot run inside a transaction block"));
    }
    nestor_database::names::check_database(&name).map_err(|wrong| error("42602", wrong.message().to_owned()))?;
    let (action, verb) = match what {
        Databases::Create { .. } => (Action::CreateCollection, "create"),
        _ => (Action::DropDatabase, "drop"),
    };
    let resource = Resource::Database(name.as_str().into());
    let account = session.account.as_ref();
    let may = account.is_none_or(|account| account.grants.on(&resource).has(action));
    if !may || is_internal_database(&name) {
        return fail("42501", format!("permission denied to {verb} database \"{name}\""));
    }
    match what {
        Databases::Create { options, .. } => {
            options
                .iter()
                .try_for_each(|(option, value)| check_option(option, value))?;
            let said = options
                .iter()
                .rfind(|(option, value)| option == "owner" && !value.eq_ignore_ascii_case("default"));
            let said = said.map(|(_, owner)| ident(&Ident::new(owner)));
            let is_own = |owner: &String| *owner != session.user;
            let owner = match said.filter(is_own) {
                Some(owner) => {
                    roles::check_may_give(session, &name)?;
                    Some(owner)
                }
                None => roles::owns(session).then(|| session.user.clone()),
            };
            let entry = schemas::entry(&name, schemas::PUBLIC);
            statement.atomically(progress, |ws| {
                if ws.catalog().database(&name).is_some() {
                    return fail("42P04", format!("database \"{name}\" already exists"));
                }
                schema::make(statement, ws, &entry, schemas::PUBLIC)?;
                match &owner {
                    Some(owner) => roles::own_database(statement, session, ws, (&name, owner)),
                    None => Ok(()),
                }
            })?;
        }
        Databases::Drop { if_exists, forced, .. } => {
            if name == session.database {
                return fail("55006", "cannot drop the currently open database");
            }
            let is_there = statement.current_view().view().catalog().database(&name).is_some();
            if !is_there {
                let missing = error("3D000", format!("database \"{name}\" does not exist"));
                return pass_over(*if_exists, missing).map(|()| tag);
            }
            check_unused(statement, &name, *forced)?;
            statement.atomically(progress, |ws| {
                roles::forget_database(statement, ws, &name)?;
                catalog::drop_database(statement, ws, &name)
            })?;
            statement.database.profiler.forget(&name);
        }
        Databases::Settings { .. } => {}
    }
    Ok(tag)
}

/// ALTER DATABASE … OWNER TO: the role may do everything with it from now on. Who could before still may.
///
/// Errors: 3D000, 42704, 42501.
pub(super) fn give(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, owner): (&ObjectName, &Ident),
    progress: &mut Progress,
) -> Result<&'static str> {
    let (_, name) = crate::bind::object_name(name)?;
    roles::check_may_give(session, &name)?;
    let owner = roles::named(session, owner);
    statement.atomically(progress, |ws| {
        if ws.catalog().database(&name).is_none() {
            return fail("3D000", format!("database \"{name}\" does not exist"));
        }
        match owner == session.user && session.is_superuser() {
            true => Ok(()),
            false => roles::own_database(statement, session, ws, (&name, &owner)),
        }
    })?;
    Ok("ALTER DATABASE")
}

/// Refuses to take a database from sessions of SQL that use it.
fn check_unused(statement: &Statement<'_>, name: &str, forced: bool) -> Result<()> {
    let is_of_it = |slot: &nestor_database::connections::Slot| {
        let operation = slot.operation.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = RawDoc::validate(&operation.body).ok();
        operation.command == "sql"
            && shown.is_some_and(|shown| shown.get("$db").and_then(|db| db.as_str()) == Some(name))
    };
    let all = statement.database.connections.all();
    let used = all.iter().filter(|slot| is_of_it(slot)).count();
    match (used, forced) {
        (0, _) => Ok(()),
        (_, true) => unsupported("DROP DATABASE WITH (FORCE) of a database that others use"),
        (used, false) => {
            let told = error("55006", format!("database \"{name}\" is being accessed by other users"));
            let detail = match used {
                1 => "There is 1 other session using the database.".to_owned(),
                used => format!("There are {used} other sessions using the database."),
            };
            Err(error::with(told, &[(Field::Detail, &detail)]))
        }
    }
}

/// All databases are in UTF-8, their texts in the order of characters.
///
/// Errors: 0A000, 42601 for an option that there is not.
fn check_option(option: &str, value: &str) -> Result<()> {
    let lower = value.to_lowercase();
    let fits = match option {
        _ if lower == "default" => true,
        "owner" => true,
        "template" => matches!(lower.as_str(), "template0" | "template1"),
        "encoding" => matches!(lower.as_str(), "utf8" | "utf-8" | "unicode"),
        "lc_collate" | "lc_ctype" | "locale" => matches!(lower.as_str(), "c" | "posix" | "c.utf-8" | "c.utf8"),
        "connection limit" => value == "-1",
        "is_template" => lower == "false",
        "allow_connections" => lower == "true",
        "tablespace" => lower == "pg_default",
        "strategy" => matches!(lower.as_str(), "wal_log" | "file_copy"),
        _ => return fail("42601", format!("option \"{option}\" not recognized")),
    };
    match fits {
        true => Ok(()),
        false => unsupported(format!("a database whose {option} is {value}")),
    }
}
