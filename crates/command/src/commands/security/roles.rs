//! `createRole`, `updateRole`, `dropRole`, `dropAllRolesFromDatabase`, and what grants to and revokes from roles.
//!
//! Source: manual, "Role Management Commands".

use super::users::{FLAGS, Way, check_restrictions, check_roles, role_names, set_restrictions, without_those_of};
use crate::args::RawArray;
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::first_user;
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_database::rights::grant::merged;
use nestor_database::rights::{Actions, Grant, builtin};
use nestor_database::user_changes::{Changes, Outcome, change, role_values};
use nestor_database::users::account::{self, stored_grants};
use nestor_database::users::{RoleName, role_document};
use nestor_database::write::Progress;
use nestor_model::namespace::{ADMIN, LOCAL};
use nestor_model::{Error, ErrorCode, RawWriter, Result, Value, ValueRef, bail, doc};

/// `createRole`.
pub const CREATE: CommandSpec = Facts::no_collection("createRole", "Adds a role.")
    .flags(FLAGS.and(Flags::FIRST_USER))
    .needs(Needs::Arguments(needs::create_role))
    .audited(Audited::role(audited::ROLE))
    .runs(create);

/// `updateRole`.
pub const UPDATE: CommandSpec = Facts::no_collection("updateRole", "Changes a role.")
    .flags(FLAGS)
    .needs(Needs::Arguments(needs::update_role))
    .audited(Audited::role(audited::ROLE))
    .runs(update);

/// `dropRole`.
pub const DROP: CommandSpec = Facts::no_collection("dropRole", "Removes a role, from all who have it too.")
    .flags(FLAGS)
    .needs(Needs::database(Action::DropRole))
    .audited(Audited::role(&[]))
    .runs(drop_one);

/// `dropAllRolesFromDatabase`.
pub const DROP_ALL: CommandSpec = Facts::no_collection(
    "dropAllRolesFromDatabase",
    "Removes all roles of a database, from all who have them too.",
)
.flags(FLAGS)
.needs(Needs::database(Action::DropRole))
.audited(Audited::ALL)
.runs(drop_all);

/// `grantPrivilegesToRole`.
pub const GRANT_PRIVILEGES: CommandSpec = Facts::no_collection("grantPrivilegesToRole", "Gives rights to a role.")
    .flags(FLAGS)
    .needs(Needs::Arguments(needs::grant_privileges))
    .audited(Audited::role(audited::PRIVILEGES))
    .runs(|context, reply| {
        let args = GrantPrivilegesArgs::parse(context.body, context.sequences)?;
        change_privileges(context, args.role, args.privileges, (reply, Way::Grant))
    });

/// `revokePrivilegesFromRole`.
pub const REVOKE_PRIVILEGES: CommandSpec =
    Facts::no_collection("revokePrivilegesFromRole", "Takes rights from a role.")
        .flags(FLAGS)
        .needs(Needs::Arguments(needs::revoke_privileges))
        .audited(Audited::role(audited::PRIVILEGES))
        .runs(|context, reply| {
            let args = RevokePrivilegesArgs::parse(context.body, context.sequences)?;
            change_privileges(context, args.role, args.privileges, (reply, Way::Revoke))
        });

/// `grantRolesToRole`.
pub const GRANT_ROLES: CommandSpec = Facts::no_collection("grantRolesToRole", "Lets a role inherit others.")
    .flags(FLAGS)
    .needs(Needs::Arguments(needs::grant_roles))
    .audited(Audited::role(audited::ROLES))
    .runs(|context, reply| {
        let args = GrantRolesArgs::parse(context.body, context.sequences)?;
        change_roles(context, args.role, args.roles, (reply, Way::Grant))
    });

/// `revokeRolesFromRole`.
pub const REVOKE_ROLES: CommandSpec =
    Facts::no_collection("revokeRolesFromRole", "Lets a role inherit others no more.")
        .flags(FLAGS)
        .needs(Needs::Arguments(needs::revoke_roles))
        .audited(Audited::role(audited::ROLES))
        .runs(|context, reply| {
            let args = RevokeRolesArgs::parse(context.body, context.sequences)?;
            change_roles(context, args.role, args.roles, (reply, Way::Revoke))
        });

crate::args! {
    struct CreateArgs<'a>: "createRole" command {
        "createRole" => role: &'a str,
        "privileges" => privileges: RawArray<'a>,
        "roles" => roles: RawArray<'a>,
        "authenticationRestrictions" => restrictions: Option<RawArray<'a>>,
    }
}

crate::args! {
    struct UpdateArgs<'a>: "updateRole" command {
        "updateRole" => role: &'a str,
        "privileges" => privileges: Option<RawArray<'a>>,
        "roles" => roles: Option<RawArray<'a>>,
        "authenticationRestrictions" => restrictions: Option<RawArray<'a>>,
    }
}

crate::args! {
    struct DropArgs<'a>: "dropRole" command {
        "dropRole" => role: &'a str,
    }
}

crate::args! {
    struct DropAllArgs: "dropAllRolesFromDatabase" command {
    }
}

crate::args! {
    struct GrantPrivilegesArgs<'a>: "grantPrivilegesToRole" command {
        "grantPrivilegesToRole" => role: &'a str,
        "privileges" => privileges: RawArray<'a>,
    }
}

crate::args! {
    struct RevokePrivilegesArgs<'a>: "revokePrivilegesFromRole" command {
        "revokePrivilegesFromRole" => role: &'a str,
        "privileges" => privileges: RawArray<'a>,
    }
}

crate::args! {
    struct GrantRolesArgs<'a>: "grantRolesToRole" command {
        "grantRolesToRole" => role: &'a str,
        "roles" => roles: RawArray<'a>,
    }
}

crate::args! {
    struct RevokeRolesArgs<'a>: "revokeRolesFromRole" command {
        "revokeRolesFromRole" => role: &'a str,
        "roles" => roles: RawArray<'a>,
    }
}

fn create(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CreateArgs::parse(context.body, context.sequences)?;
    let name = role_name(args.role, context.db())?;
    if name.db == LOCAL {
        bail!(BadValue, "Cannot create roles in the local database");
    }
    check_restrictions(args.restrictions)?;
    let roles = role_names(args.roles, context.db())?;
    let grants = grants(args.privileges, &name)?;
    let mut role = doc! {
        "_id": name.id(),
        "role": name.role.clone(),
        "db": name.db.clone(),
        "privileges": grant_values(&grants),
        "roles": role_values(&roles),
    };
    set_restrictions(&mut role, args.restrictions);
    let _alone = first_user::alone(context)?;
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        check_inherited(changes, &name, &roles)?;
        changes.role(&name.id(), |old| match old {
            Some(_) => Err(Error::location(51002, format!("Role \"{name}\" already exists"))),
            None => Ok(Outcome::Put(role.clone())),
        })
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn update(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = UpdateArgs::parse(context.body, context.sequences)?;
    let name = role_name(args.role, context.db())?;
    check_restrictions(args.restrictions)?;
    if args.privileges.is_none() && args.roles.is_none() && args.restrictions.is_none() {
        bail!(BadValue, "Must specify at least one field to update in updateRole");
    }
    let roles = args.roles.map(|roles| role_names(roles, context.db())).transpose()?;
    let given = args.privileges.map(|given| grants(given, &name)).transpose()?;
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        check_inherited(changes, &name, roles.as_deref().unwrap_or_default())?;
        changes.role(&name.id(), |old| {
            let mut role = old.ok_or_else(|| not_found(&name))?;
            if let Some(given) = &given {
                role.set("privileges", grant_values(given));
            }
            if let Some(roles) = &roles {
                role.set("roles", role_values(roles));
            }
            set_restrictions(&mut role, args.restrictions);
            Ok(Outcome::Put(role))
        })
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn drop_one(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DropArgs::parse(context.body, context.sequences)?;
    let name = role_name(args.role, context.db())?;
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        changes.role(&name.id(), |old| match old {
            Some(_) => Ok(Outcome::Remove),
            None => Err(not_found(&name)),
        })?;
        changes.take_from_all(|role| *role == name)
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn drop_all(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    DropAllArgs::parse(context.body, context.sequences)?;
    let db = context.db();
    let mut progress = Progress::default();
    let dropped = change(context, &mut progress, |changes| {
        let dropped = changes.roles(|role| without_those_of(db, role))?;
        changes.take_from_all(|role| role.db == db && !builtin::exists(&role.role, &role.db))?;
        Ok(dropped)
    })?;
    reply.append("n", dropped);
    context.finish_concern(progress.last, reply, false)
}

fn change_privileges(
    context: &mut Context<'_>,
    role: &str,
    privileges: RawArray<'_>,
    (reply, way): (&mut RawWriter, Way),
) -> Result<()> {
    let name = role_name(role, context.db())?;
    let named = grants(privileges, &name)?;
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        changes.role(&name.id(), |old| {
            let mut role = old.ok_or_else(|| not_found(&name))?;
            let mut held = stored_grants(role.get("privileges"));
            match way {
                Way::Grant => held.extend(named.iter().cloned()),
                Way::Revoke => held.iter_mut().for_each(|grant| {
                    let taken = named.iter().filter(|taken| taken.on == grant.on);
                    grant.actions = taken.fold(grant.actions, |left, taken| left.without(taken.actions));
                }),
            }
            held.retain(|grant| grant.actions != Actions::NONE);
            role.set("privileges", grant_values(&merged(held)));
            Ok(Outcome::Put(role))
        })
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn change_roles(
    context: &mut Context<'_>,
    role: &str,
    roles: RawArray<'_>,
    (reply, way): (&mut RawWriter, Way),
) -> Result<()> {
    let name = role_name(role, context.db())?;
    let named = role_names(roles, context.db())?;
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        if way == Way::Grant {
            check_inherited(changes, &name, &named)?;
        }
        changes.role(&name.id(), |old| {
            way.change(old.ok_or_else(|| not_found(&name))?, &named)
        })
    })?;
    context.finish_concern(progress.last, reply, false)
}

/// The role of that name that commands may change.
fn role_name(role: &str, db: &str) -> Result<RoleName> {
    let name = RoleName::parse(ValueRef::String(role), db)?;
    if builtin::exists(&name.role, &name.db) {
        bail!(
            InvalidRoleModification,
            "{name} is a built-in role and cannot be modified."
        );
    }
    Ok(name)
}

fn not_found(name: &RoleName) -> Error {
    Error::new(ErrorCode::RoleNotFound, format!("Role '{name}' not found"))
}

/// Refuses roles that are not there, that belong to another database though `name` is not one of `admin`, or that inherit `name`.
fn check_inherited(changes: &Changes<'_, '_>, name: &RoleName, roles: &[RoleName]) -> Result<()> {
    let view = changes.view();
    check_roles(view, roles)?;
    if let Some(other) = roles.iter().find(|role| name.db != ADMIN && role.db != name.db) {
        bail!(
            InvalidRoleModification,
            "Roles on the '{}' database cannot be granted roles from other databases: {other}",
            name.db
        );
    }
    let mut find = |role: &RoleName| role_document(view, role);
    let inherited = account::resolve(roles, &mut find)?;
    if roles.contains(name) || inherited.roles.contains(name) {
        bail!(
            InvalidRoleModification,
            "Granting these roles to {name} would introduce a cycle in the role graph"
        );
    }
    Ok(())
}

/// Reads `privileges` of the role `name`.
fn grants(privileges: RawArray<'_>, name: &RoleName) -> Result<Vec<Grant>> {
    let mut out = Vec::new();
    for privilege in privileges.iter() {
        let Some(doc) = privilege.as_document() else {
            bail!(
                BadValue,
                "privileges must be objects, not {}",
                privilege.bson_type().alias()
            );
        };
        let grant = Grant::parse(doc)?;
        if name.db != ADMIN && grant.on.database() != Some(&name.db) {
            bail!(
                InvalidRoleModification,
                "Roles on the '{}' database cannot be granted privileges that target other databases or the cluster",
                name.db
            );
        }
        out.push(grant);
    }
    Ok(merged(out))
}

fn grant_values(grants: &[Grant]) -> Vec<Value> {
    grants.iter().map(|grant| Value::from(grant.to_document())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_given_and_taken() {
        let role = |name: &str| RoleName::new(name, "d");
        let mut roles = vec![role("a")];
        Way::Grant.apply(&mut roles, &[role("b"), role("a")]);
        assert_eq!(roles, [role("b"), role("a")]);
        Way::Revoke.apply(&mut roles, &[role("b"), role("c")]);
        assert_eq!(roles, [role("a")]);
    }
}
