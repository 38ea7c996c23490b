//! OWNER TO.
//!
//! Everything belongs to whoever looks at it, as `pg_class` tells; rights come from roles alone.

use super::namespace;
use crate::catalog::{Catalog as _, schemas};
use crate::error::{error, state, unsupported};
use crate::notices::pass_over;
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::statement::Statement;
use nestor_model::{Result, Value};
use sqlparser::ast::{Ident, ObjectName};

/// ALTER … OWNER TO the session's user, which changes nothing; its tag.
///
/// Errors: 42P01, 42704 and 3F000 for what there is not, 0A000 for other roles and kinds.
pub(super) fn owner(
    statement: &Statement<'_>,
    session: &SessionFacts,
    kind: &str,
    (name, owner): (&ObjectName, &Ident),
    if_exists: bool,
) -> Result<String> {
    user_of(session, owner)?;
    let tag = format!("ALTER {kind}");
    let missing = match kind {
        "SCHEMA" => {
            let (_, schema) = crate::bind::object_name(name)?;
            let entry = schemas::entry(&session.database, &schema);
            let is_there = schema == schemas::PUBLIC || exists(statement, &entry);
            (!is_there).then(|| error("3F000", format!("schema \"{schema}\" does not exist")))
        }
        "TABLE" | "VIEW" | "MATERIALIZED VIEW" | "SEQUENCE" | "TYPE" | "DOMAIN" => {
            let ns = namespace(statement, session, name)?;
            let message = |what: &str| format!("{what} \"{}\" does not exist", ns.coll);
            match (exists(statement, &ns), kind) {
                (true, _) => None,
                (false, "TYPE" | "DOMAIN") => Some(error("42704", message("type"))),
                (false, _) if counts(statement, session, name)? => None,
                (false, _) => Some(error("42P01", message("relation"))),
            }
        }
        "FUNCTION" | "PROCEDURE" | "ROUTINE" => {
            let (op, _) = statement.operation(None)?;
            let read = statement.current_view();
            let (schema, name) = crate::bind::object_name(name)?;
            let all = Reading::new(statement, read.view(), &op, session).routines(schema.as_deref(), &name);
            let what = kind.to_lowercase();
            all.is_empty()
                .then(|| error("42883", format!("could not find a {what} named \"{name}\"")))
        }
        _ => return unsupported(format!("{tag} … OWNER TO")),
    };
    match missing {
        Some(missing) => pass_over(if_exists, missing).map(|()| tag),
        None => Ok(tag),
    }
}

/// The session's user, by the name that an owner is said by.
///
/// Errors: 0A000 for other roles.
pub(super) fn user_of(session: &SessionFacts, owner: &Ident) -> Result<String> {
    let role = crate::bind::ident(owner);
    let is_user = matches!(
        role.to_lowercase().as_str(),
        "current_user" | "current_role" | "session_user"
    );
    match is_user || role == session.user {
        true => Ok(session.user.clone()),
        false => unsupported("an owner that is another role"),
    }
}

fn exists(statement: &Statement<'_>, ns: &nestor_model::Namespace) -> bool {
    statement.current_view().view().catalog().get(ns).is_some()
}

/// Whether a name is that of a sequence; those of columns have no entry of their own.
fn counts(statement: &Statement<'_>, session: &SessionFacts, name: &ObjectName) -> Result<bool> {
    let (op, _) = statement.operation(None)?;
    let read = statement.current_view();
    let found = Reading::new(statement, read.view(), &op, session).sequence(&Value::String(name.to_string().into()));
    match found {
        Ok(_) => Ok(true),
        Err(e) if state(&e) == "42P01" => Ok(false),
        Err(e) => Err(e),
    }
}
