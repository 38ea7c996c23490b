//! GRANT and REVOKE.

use super::privilege::{self, Kind};
use super::{Known, change_own, check_may, found, give, grant_values, grantee, known};
use crate::bind::ident;
use crate::catalog::schemas;
use crate::ddl::{namespace_in, table};
use crate::error::{fail, unsupported};
use crate::notices;
use crate::parse::roles::{Grantee, Objects};
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::rights::{Action, Grant, Pattern};
use nestor_database::statement::Statement;
use nestor_database::user_changes::{Changes, change, role_values};
use nestor_database::users::account::{names, resolve, stored_grants};
use nestor_database::users::{RoleName, role_document};
use nestor_database::write::Progress;
use nestor_model::namespace::ADMIN;
use nestor_model::{Namespace, Result, Value};
use sqlparser::ast::{Ident, ObjectName};

/// Gives or takes privileges on tables, sequences, schemas and databases.
///
/// Errors: 42P01, 3F000, 3D000, 42704, 42501, 0LP01; 0A000.
pub(super) fn privileges(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (gives, named): (bool, &[String]),
    (on, grantees): (&Objects, &[Grantee]),
    progress: &mut Progress,
) -> Result<()> {
    let kind = match on {
        Objects::Tables(_) | Objects::TablesOf(_) => Kind::Table,
        Objects::Sequences(_) | Objects::SequencesOf(_) => Kind::Sequence,
        Objects::Databases(_) => Kind::Database,
        Objects::Schemas(_) => Kind::Schema,
    };
    let allowed = privilege::allowed(kind, named)?;
    let patterns = patterns(statement, session, on)?;
    let action = if gives { Action::GrantRole } else { Action::RevokeRole };
    for pattern in &patterns {
        let db = pattern.database().unwrap_or(ADMIN);
        check_may(
            session,
            db,
            &[action],
            if gives { "grant privileges" } else { "revoke privileges" },
        )?;
    }
    // What everybody has is not taken from anybody, but for a schema as a part of all: nobody may do more in it for using it.
    if allowed.everybody && !gives && (kind == Kind::Database || allowed.actions.is_empty()) {
        return unsupported(format!("REVOKE of what everybody may do with a {kind:?}").to_lowercase());
    }
    change(statement, progress, |changes| {
        for to in grantees {
            let Some(role) = grantee(changes.view(), session, to)? else {
                continue;
            };
            if allowed.actions.is_empty() {
                continue;
            }
            let given = patterns.iter().map(|on| Grant::new(on.clone(), allowed.actions));
            let given: Vec<Grant> = given.collect();
            if !gives && role_document(changes.view(), &role.own())?.is_none() {
                continue;
            }
            change_own(changes, &role, |document| match gives {
                true => give(document, given),
                false => {
                    let mut held = stored_grants(document.get("privileges"));
                    for grant in &mut held {
                        let taken = given.iter().filter(|taken| taken.on == grant.on);
                        grant.actions = taken.fold(grant.actions, |left, taken| left.without(taken.actions));
                    }
                    document.set("privileges", grant_values(held));
                    Ok(())
                }
            })?;
        }
        Ok(())
    })
}

/// What privileges are on as resources.
fn patterns(statement: &Statement<'_>, session: &SessionFacts, on: &Objects) -> Result<Vec<Pattern>> {
    let read = statement.current_view();
    let view = read.view();
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, view, &op, session);
    let of = |ns: &Namespace| Pattern::collection(&ns.db, &ns.coll);
    let kind_of = |ns: &Namespace| view.catalog().get(ns).and_then(|found| table::Kind::of(found));
    let check_schema =
        |schema: &str| match schema == schemas::PUBLIC || schemas::exists(view, &session.database, schema) {
            true => Ok(()),
            false => fail("3F000", format!("schema \"{schema}\" does not exist")),
        };
    let sequence = |name: &ObjectName| -> Result<Option<Pattern>> {
        let sequence = reading.sequence(&Value::String(name.to_string().into()))?;
        if sequence.owner.is_some() {
            notices::notice(&format!(
                "sequence \"{}\" belongs to a column: who may insert into its table may use it",
                sequence.name
            ));
            return Ok(None);
        }
        Ok(Some(of(&sequence.ns)))
    };
    let mut out = Vec::new();
    match on {
        Objects::Tables(names) => {
            for name in names {
                let ns = namespace_in(view, session, name)?;
                match kind_of(&ns) {
                    Some(_) => out.push(of(&ns)),
                    None if view.catalog().get(&ns).is_some()
                        || reading.sequence(&Value::String(name.to_string().into())).is_ok() =>
                    {
                        out.extend(sequence(name)?);
                    }
                    None => return fail("42P01", format!("relation \"{}\" does not exist", ns.coll)),
                }
            }
        }
        Objects::Sequences(names) => {
            for name in names {
                out.extend(sequence(name)?);
            }
        }
        Objects::TablesOf(wanted) | Objects::SequencesOf(wanted) => {
            let is_of_tables = matches!(on, Objects::TablesOf(_));
            for schema in wanted.iter().map(ident) {
                check_schema(&schema)?;
                let database = view.catalog().database(&session.database);
                let all = database.into_iter().flat_map(|database| database.collections());
                let within = all
                    .map(|collection| &collection.ns)
                    .filter(|ns| schemas::split(view, ns).0 == schema);
                match is_of_tables {
                    true => out.extend(within.filter(|ns| kind_of(ns).is_some()).map(of)),
                    false => {
                        let own = reading.sequences();
                        let free = own.iter().filter(|sequence| sequence.owner.is_none());
                        let within: Vec<&Namespace> = within.collect();
                        out.extend(
                            free.map(|sequence| &sequence.ns)
                                .filter(|ns| within.contains(ns))
                                .map(of),
                        );
                    }
                }
            }
        }
        Objects::Databases(names) => {
            for name in names.iter().map(ident) {
                // The session's database is there with its first table.
                if view.catalog().database(&name).is_none() && name != session.database {
                    return fail("3D000", format!("database \"{name}\" does not exist"));
                }
                out.push(Pattern::Database(name.as_str().into()));
            }
        }
        Objects::Schemas(names) => {
            for name in names.iter().map(ident) {
                check_schema(&name)?;
                out.push(Pattern::Database(session.database.as_str().into()));
            }
        }
    }
    Ok(out)
}

/// Makes roles members of others, or takes them out.
///
/// Errors: 42704, 42501, 0LP01; 0A000.
pub(super) fn members(
    statement: &Statement<'_>,
    session: &SessionFacts,
    gives: bool,
    (roles, grantees): (&[Ident], &[Grantee]),
    progress: &mut Progress,
) -> Result<()> {
    let action = if gives { Action::GrantRole } else { Action::RevokeRole };
    check_may(
        session,
        ADMIN,
        &[action],
        if gives { "grant role" } else { "revoke role" },
    )?;
    change(statement, progress, |changes| {
        for to in grantees {
            if *to == Grantee::Public {
                return fail("42704", "role \"public\" does not exist");
            }
            let Some(member) = grantee(changes.view(), session, to)? else {
                continue;
            };
            for role in roles {
                join(changes, session, (&ident(role), &member), gives)?;
            }
        }
        Ok(())
    })
}

/// Makes `member` a member of a role, or takes it out.
///
/// Errors: 42704; 0LP01 where that would be a circle; 0A000 for roles of PostgreSQL that there are not.
pub(super) fn join(
    changes: &mut Changes<'_, '_>,
    session: &SessionFacts,
    (name, member): (&str, &Known),
    gives: bool,
) -> Result<()> {
    let role = match name {
        "pg_read_all_data" => RoleName::new("readAnyDatabase", ADMIN),
        "pg_monitor" => RoleName::new("clusterMonitor", ADMIN),
        name if name.starts_with("pg_") && known(changes.view(), session, name)?.is_none() => {
            return unsupported(format!("the role {name}"));
        }
        name => {
            let role = found(changes.view(), session, name)?;
            // A user has its role once somebody is to have it.
            change_own(changes, &role, |_| Ok(()))?;
            role.own()
        }
    };
    let own = member.own();
    if gives {
        let view = changes.view();
        let inherited = resolve(std::slice::from_ref(&role), &mut |role| role_document(view, role))?;
        if role == own || inherited.roles.contains(&own) {
            return fail(
                "0LP01",
                format!("role \"{name}\" is a member of role \"{}\"", member.name),
            );
        }
    }
    change_own(changes, member, |document| {
        let mut roles = names(document.get("roles"));
        roles.retain(|held| *held != role);
        if gives {
            roles.push(role);
        }
        document.set("roles", role_values(&roles));
        Ok(())
    })
}
