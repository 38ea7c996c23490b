//! Accounts: the user and the privileges that the documents of a user and of roles add up to.
//!
//! ```text
//! admin.system.users  {_id: "d.u", userId: UUID, user: "u", db: "d", credentials: {..}, roles: [{role, db}, ..], customData, ..}
//! admin.system.roles  {_id: "d.r", role: "r", db: "d", privileges: [{resource, actions}, ..], roles: [{role, db}, ..]}
//! ```
//!
//! Both are in MongoDB's form, so that its tools carry them.

use super::name::{RoleName, UserName};
use super::restriction::{Ends, Restrictions};
use crate::login::credential::{self, Credential};
use crate::login::mechanism::Mechanism;
use crate::rights::grant::merged;
use crate::rights::{Action, Grant, Grants, builtin};
use crate::uuid::Uuid;
use nestor_model::namespace::{ADMIN, LOCAL};
use nestor_model::{DocRef, Document, Namespace, Result, Value, ValueRef, doc};
use nestor_query::env::Caller;
use nestor_query::masking::{Key, Sight};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// A user, with all that comes of the user's roles.
#[derive(Clone, Debug)]
pub struct Account {
    /// The user's name.
    pub name: UserName,
    /// Tells a user from another one of the same name who was there before.
    pub id: Option<Uuid>,
    /// Roles that were granted to the user.
    pub roles: Vec<RoleName>,
    /// These and all that they inherit.
    pub all_roles: BTreeSet<RoleName>,
    /// The privileges of all roles, joined by resource.
    pub privileges: Vec<Grant>,
    /// The same, ready to be asked.
    pub grants: Grants,
    /// The stored credentials.
    pub credentials: Vec<Credential>,
    /// From where the user may log in: the user's own restrictions, and those of each role.
    pub restrictions: Vec<Restrictions>,
    /// The user as operations of that user see it.
    pub caller: Arc<Caller>,
}

/// The role of database `admin` whose privileges all users have, and those who act as a role: PUBLIC of SQL.
pub const PUBLIC: &str = "sqlPublic";

impl Account {
    /// The account of a user's document. `role` finds a role's document; roles that are not there give nothing.
    ///
    /// Errors: those of `role`.
    pub fn of(
        name: UserName,
        user: DocRef<'_>,
        role: &mut dyn FnMut(&RoleName) -> Result<Option<Document>>,
    ) -> Result<Self> {
        let roles = names(user.get("roles"));
        let mut all = roles.clone();
        all.push(RoleName::new(PUBLIC, ADMIN));
        let resolved = resolve(&all, role)?;
        let restrictions = user.get("authenticationRestrictions").map(Value::from);
        let restrictions = restrictions.iter().chain(&resolved.restrictions);
        Ok(Self {
            caller: Arc::new(caller(&name, &resolved, &Arc::default())),
            restrictions: restrictions.map(|array| Restrictions::stored(array.as_ref())).collect(),
            name,
            id: uuid(user.get("userId")),
            grants: resolved.grants.iter().cloned().collect(),
            privileges: resolved.grants,
            all_roles: resolved.roles,
            roles,
            credentials: credential::of_user(user.get("credentials")),
        })
    }
}

impl Account {
    /// Members of a cluster and tools that have the cluster's key: `__system`, who may do everything.
    ///
    /// Errors: those of making credentials.
    pub fn of_cluster(key: &str) -> Result<Self> {
        let name = UserName::new(SYSTEM_USER.0, SYSTEM_USER.1);
        let role = RoleName::new("__system", ADMIN);
        let document = doc! { "roles": vec![Value::from(role.to_document())] };
        let wanted = Mechanism::ALL.map(|mechanism| (mechanism, mechanism.default_iterations()));
        let credentials = credential::make(&wanted, &name.user, key, false)?;
        let account = Self::of(name, document.as_ref(), &mut |_| Ok(None))?;
        Ok(Self { credentials, ..account })
    }

    /// The mechanisms by which the user can log in with a password.
    pub fn mechanisms(&self) -> impl Iterator<Item = Mechanism> {
        self.credentials.iter().map(|credential| credential.mechanism)
    }

    /// The same account, to whose user masked values are shown as hashes by `key`.
    #[must_use]
    pub fn hashing_by(mut self, key: &Arc<OnceLock<Key>>) -> Self {
        let resolved = Resolved {
            roles: self.all_roles.clone(),
            grants: self.privileges.clone(),
            restrictions: Vec::new(),
        };
        self.caller = Arc::new(caller(&self.name, &resolved, key));
        self
    }

    /// Whether the user may log in over that connection.
    pub fn may_come_by(&self, ends: Ends) -> bool {
        self.restrictions.iter().all(|restrictions| restrictions.allow(ends))
    }
}

/// Name and database of the user that the cluster's key is the password of.
pub const SYSTEM_USER: (&str, &str) = ("__system", LOCAL);

fn caller(name: &UserName, resolved: &Resolved, key: &Arc<OnceLock<Key>>) -> Caller {
    let grants: Grants = resolved.grants.iter().cloned().collect();
    let of_rows = grants.clone();
    let sees_plain = move |db: &str, coll: &str| grants.on_collection(&Namespace::new(db, coll)).has(Action::Unmask);
    let sees_rows = move |db: &str, coll: &str, forced: bool| {
        let held = of_rows.on_collection(&Namespace::new(db, coll));
        held.has(Action::BypassRowSecurity) || !forced && held.has(Action::ChangeRowSecurity)
    };
    let shown = resolved.roles.iter().map(|role| {
        let shown = doc! { "_id": role.id(), "role": role.role.clone(), "db": role.db.clone() };
        Value::from(shown)
    });
    Caller {
        user: name.user.clone(),
        db: name.db.clone(),
        roles: Value::from(shown.collect::<Vec<_>>()),
        sight: Sight::new(Arc::new(sees_plain), Arc::new(sees_rows), key.clone()),
    }
}

/// Roles resolved to all that they inherit.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// The roles and all that they inherit.
    pub roles: BTreeSet<RoleName>,
    /// Their privileges, joined by resource.
    pub grants: Vec<Grant>,
    /// Their `authenticationRestrictions`, of those that have some.
    pub restrictions: Vec<Value>,
}

/// Resolves `roles`. Each role counts once, so that circles end.
///
/// Errors: those of `find`.
pub fn resolve(roles: &[RoleName], find: &mut dyn FnMut(&RoleName) -> Result<Option<Document>>) -> Result<Resolved> {
    let mut seen = BTreeSet::new();
    let mut grants = Vec::new();
    let mut restrictions = Vec::new();
    let mut open = roles.to_vec();
    while let Some(name) = open.pop() {
        if seen.contains(&name) {
            continue;
        }
        if let Some(given) = builtin::grants(&name.role, &name.db) {
            grants.extend(given);
        } else if let Some(role) = find(&name)? {
            grants.extend(stored_grants(role.get("privileges")));
            open.extend(names(role.get("roles")));
            restrictions.extend(role.get("authenticationRestrictions").map(Value::from));
        } else {
            continue;
        }
        seen.insert(name);
    }
    Ok(Resolved {
        roles: seen,
        grants: merged(grants),
        restrictions,
    })
}

/// The names in an array `[{role, db}, ..]` that was stored. What is none is left out.
pub fn names(value: Option<ValueRef<'_>>) -> Vec<RoleName> {
    let items = value.and_then(ValueRef::as_array);
    let items = items.into_iter().flat_map(|array| array.iter());
    items.filter_map(|item| RoleName::parse(item, "").ok()).collect()
}

/// The privileges that were stored of a role. What is none gives nothing.
pub fn stored_grants(value: Option<ValueRef<'_>>) -> Vec<Grant> {
    let items = value.and_then(ValueRef::as_array);
    let items = items.into_iter().flat_map(|array| array.iter());
    items
        .filter_map(|item| Grant::parse(item.as_document()?).ok())
        .collect()
}

/// A stored UUID.
pub fn uuid(value: Option<ValueRef<'_>>) -> Option<Uuid> {
    match value {
        Some(ValueRef::Binary { subtype: 4, bytes }) => bytes.try_into().ok().map(Uuid),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::{Privilege, Resource};
    use std::collections::BTreeMap;

    fn roles(names: &[(&str, &str)]) -> Vec<Value> {
        names
            .iter()
            .map(|(role, db)| RoleName::new(role, db).to_document().into())
            .collect()
    }

    fn may_find(account: &Account, db: &str, coll: &str) -> bool {
        let resource = Resource::Collection(Namespace::new(db, coll));
        account.grants.allow(&Privilege {
            resource,
            action: Action::Find,
        })
    }

    #[test]
    fn roles_inherit_and_circles_end() {
        let find: Vec<Value> = vec!["find".into()];
        let on = doc! { "db": "e", "collection": "c" };
        let given: Vec<Value> = vec![doc! { "resource": on, "actions": find }.into()];
        let stored = BTreeMap::from([
            (
                RoleName::new("a", "d"),
                doc! { "roles": roles(&[("b", "d"), ("gone", "d")]) },
            ),
            (
                RoleName::new("b", "d"),
                doc! { "roles": roles(&[("a", "d"), ("read", "f")]), "privileges": given },
            ),
        ]);
        let user = doc! { "roles": roles(&[("a", "d")]) };
        let mut find = |name: &RoleName| Ok(stored.get(name).cloned());
        let account = Account::of(UserName::new("u", "d"), user.as_ref(), &mut find).expect("no role fails");
        assert!(may_find(&account, "e", "c") && may_find(&account, "f", "x"));
        assert!(!may_find(&account, "e", "x") && !may_find(&account, "d", "c"));
        let all: Vec<_> = account.all_roles.iter().map(RoleName::to_string).collect();
        assert_eq!(all, ["a@d", "b@d", "read@f"]);
    }

    #[test]
    fn what_cannot_be_read_gives_nothing() {
        let user = doc! { "roles": 1, "credentials": "x", "userId": "y" };
        let account = Account::of(UserName::new("u", "d"), user.as_ref(), &mut |_| Ok(None)).expect("no role fails");
        assert_eq!(account.grants, Grants::default());
        assert!(account.credentials.is_empty() && account.id.is_none());
    }
}
