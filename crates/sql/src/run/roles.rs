//! The roles that catalogs show.

use super::tables::Reading;
use crate::catalog::system::{BYPASSES, MAKES_DATABASES, OWNER, Role, role_number};
use nestor_database::rights::{Action, Pattern, Resource};
use nestor_database::users::account::{PUBLIC, names, stored_grants};
use nestor_database::users::{RoleName, documents, roles_namespace, users_namespace};
use nestor_database::write::begun::{self, Whose};
use nestor_model::namespace::ADMIN;
use nestor_model::{Document, Namespace, Result, ValueRef};
use std::collections::BTreeMap;

impl Reading<'_, '_> {
    /// The session's user, and the other roles if the user may see them; PUBLIC among them, once something was granted to it, as the one
    /// without a name.
    ///
    /// Errors: those of storage.
    pub(super) fn all_roles(&self) -> Result<Vec<Role>> {
        let (session, interrupt) = (self.session, &self.statement.interrupt);
        let mut all = BTreeMap::from([(session.user.clone(), self.own_role())]);
        let may = session.account.as_ref().is_none_or(|account| {
            let held = account.grants.on(&Resource::Database(ADMIN.into()));
            held.has(Action::ViewUser) && held.has(Action::ViewRole)
        });
        if !may {
            return Ok(all.into_values().collect());
        }
        let field = |document: &Document, name: &str| document.get(name).and_then(ValueRef::as_str).map(str::to_owned);
        for user in documents(self.view, &users_namespace(), interrupt)? {
            let db = field(&user, "db").unwrap_or_default();
            let Some(name) = field(&user, "user").filter(|_| db == ADMIN || db == session.database) else {
                continue;
            };
            let roles = names(user.get("roles"));
            let has = |role: &str| roles.contains(&RoleName::new(role, ADMIN));
            let role = all.entry(name.clone()).or_insert_with(|| empty(&name));
            role.logs_in = true;
            if role.oid != OWNER || session.account.is_some() {
                role.is_superuser = has("root");
                role.makes_roles = has("root") || has("userAdminAnyDatabase");
                role.makes_databases = has("root") || has(MAKES_DATABASES);
                role.bypasses = has("root") || has(BYPASSES);
            }
            note(role, &roles);
        }
        for document in documents(self.view, &roles_namespace(), interrupt)? {
            let own = |name: &String| {
                field(&document, "db").as_deref() == Some(ADMIN) && name != MAKES_DATABASES && name != BYPASSES
            };
            let Some(name) = field(&document, "role").filter(own) else {
                continue;
            };
            let role = match name == PUBLIC {
                true => all.entry(String::new()).or_default(),
                false => all.entry(name.clone()).or_insert_with(|| empty(&name)),
            };
            let roles = names(document.get("roles"));
            role.bypasses |= roles.contains(&RoleName::new(BYPASSES, ADMIN));
            note(role, &roles);
            let held = stored_grants(document.get("privileges")).into_iter();
            role.held = held
                .filter_map(|grant| match grant.on {
                    Pattern::Collection(db, coll) => Some((Namespace::new(db, coll), grant.actions)),
                    _ => None,
                })
                .collect();
        }
        Ok(all.into_values().collect())
    }

    /// What sessions begin with, of roles of this database and of `admin`.
    ///
    /// Errors: those of storage.
    pub(super) fn all_begun(&self) -> Result<Vec<(Whose, begun::Settings)>> {
        let mut all = begun::all(self.view)?;
        let db = self.session.database.as_str();
        let is_near = |whose: &Whose| {
            whose
                .role
                .as_ref()
                .is_none_or(|role| *role.db == *ADMIN || *role.db == *db)
        };
        all.retain(|(whose, _)| is_near(whose));
        Ok(all)
    }

    fn own_role(&self) -> Role {
        let all = self.session.is_superuser();
        Role {
            oid: OWNER,
            is_superuser: all,
            makes_databases: all,
            bypasses: all,
            makes_roles: all,
            logs_in: true,
            ..empty(&self.session.user)
        }
    }
}

/// A role of which nothing is known.
fn empty(name: &str) -> Role {
    Role {
        oid: role_number(name),
        name: name.to_owned(),
        ..Role::default()
    }
}

/// Notes the roles that somebody has, but for its own.
fn note(role: &mut Role, roles: &[RoleName]) {
    let others = roles
        .iter()
        .filter(|other| *other.db == *ADMIN && *other.role != *role.name);
    for other in others.map(|other| other.role.to_string()) {
        if other != MAKES_DATABASES && other != BYPASSES && !role.member_of.contains(&other) {
            role.member_of.push(other);
        }
    }
}
