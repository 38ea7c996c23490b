//! Roles, and what they may do: users and roles of the database `admin`, as commands have them.
//!
//! ```text
//! role r                       the role r of admin, which has what is granted to r
//! role u that may log in       the user u of admin, who has the role u of admin once something is granted
//! SUPERUSER, CREATEDB          roles of the user u, root and one of the names below: who is a member of u has them not
//! BYPASSRLS                    another such role, also of roles that may not log in
//! ```
//!
//! A user of the session's database is meant by a name before one of `admin`, as at a login.

mod grant;
mod privilege;
pub(super) mod settings;

use crate::bind::ident;
use crate::catalog::schemas;
use crate::catalog::system::{BYPASSES, MAKES_DATABASES};
use crate::error::{Field, error, fail, unsupported, with};
use crate::notices::pass_over;
use crate::parse::roles::{Grantee, RoleOption, Roles};
use crate::run::tables::SessionFacts;
use nestor_database::login::credential::{self, Credential};
use nestor_database::login::mechanism::Mechanism;
use nestor_database::rights::grant::merged;
use nestor_database::rights::{Action, Actions, Grant, Pattern, Resource};
use nestor_database::statement::Statement;
use nestor_database::user_changes::{Changes, Outcome, change, role_values, within};
use nestor_database::users::account::{PUBLIC, names, stored_grants};
use nestor_database::users::{RoleName, UserName, role_document, user_document};
use nestor_database::write::Progress;
use nestor_model::namespace::ADMIN;
use nestor_model::{Document, Namespace, Result, Value, doc};
use nestor_storage::{View, WriteSet};
use sqlparser::ast::Ident;

/// What whoever makes a table may do with it.
const OWNER: Actions = Actions::of(&[
    Action::Find,
    Action::Insert,
    Action::Update,
    Action::Remove,
    Action::ChangeRowSecurity,
    Action::CollMod,
    Action::CollStats,
    Action::Compact,
    Action::CreateIndex,
    Action::DropCollection,
    Action::DropIndex,
    Action::IndexStats,
    Action::ListIndexes,
    Action::Validate,
]);

/// A role that there is.
#[derive(Clone, Debug)]
struct Known {
    name: String,
    /// The user, if it may log in.
    user: Option<UserName>,
}

impl Known {
    /// The role that has what is granted.
    fn own(&self) -> RoleName {
        RoleName::new(&self.name, ADMIN)
    }
}

/// Runs one of these statements; its tag.
///
/// Errors: 42704, 42710, 42939, 42501, 2BP01, 0LP01; 0A000.
pub(super) fn run(
    statement: &Statement<'_>,
    session: &SessionFacts,
    what: &Roles,
    progress: &mut Progress,
) -> Result<&'static str> {
    match what {
        Roles::Create { name, options } => create(statement, session, (name, options), progress),
        Roles::Alter { name, options } => alter(statement, session, (name, options), progress),
        Roles::Settings {
            name,
            database,
            assigned,
        } => settings::of_role(
            statement,
            session,
            (name.as_ref(), database.as_ref()),
            assigned,
            progress,
        ),
        Roles::Drop { names, if_exists } => drop(statement, session, (names, *if_exists), progress),
        Roles::Privileges {
            gives,
            privileges,
            on,
            grantees,
        } => {
            grant::privileges(statement, session, (*gives, privileges), (on, grantees), progress)?;
            Ok(if *gives { "GRANT" } else { "REVOKE" })
        }
        Roles::Members { gives, roles, grantees } => {
            grant::members(statement, session, *gives, (roles, grantees), progress)?;
            Ok(if *gives { "GRANT ROLE" } else { "REVOKE ROLE" })
        }
        Roles::DropOwned { roles } => drop_owned(statement, session, roles, progress),
        Roles::Other(what) => unsupported(what.clone()),
    }
}

/// Refuses what the user may not do with the users and roles of a database.
///
/// Errors: 42501.
fn check_may(session: &SessionFacts, db: &str, actions: &[Action], what: &str) -> Result<()> {
    let may = session.account.as_ref().is_none_or(|account| {
        let held = account.grants.on(&Resource::Database(db.into()));
        actions.iter().all(|action| held.has(*action))
    });
    match may {
        true => Ok(()),
        false => fail("42501", format!("permission denied to {what}")),
    }
}

/// Refuses who may not give a database to somebody.
///
/// Errors: 42501.
pub(super) fn check_may_give(session: &SessionFacts, db: &str) -> Result<()> {
    check_may(session, db, &[Action::GrantRole], "change the owner of a database")
}

/// The name of a role, which may be that of the session's user by a word for it.
pub(super) fn named(session: &SessionFacts, name: &Ident) -> String {
    match ident(name) {
        own if matches!(own.as_str(), "current_user" | "current_role" | "session_user") => session.user.clone(),
        name => name,
    }
}

/// The role of a name, if there is one; PUBLIC is none.
fn known(view: &dyn View, session: &SessionFacts, name: &str) -> Result<Option<Known>> {
    if name == PUBLIC {
        return Ok(None);
    }
    let mut user = None;
    for db in [session.database.as_str(), ADMIN] {
        let named = UserName::new(name, db);
        if user.is_none() && user_document(view, &named)?.is_some() {
            user = Some(named);
        }
    }
    let is_role = role_document(view, &RoleName::new(name, ADMIN))?.is_some();
    let name = name.to_owned();
    Ok((user.is_some() || is_role).then_some(Known { name, user }))
}

/// The same of one that has to be there.
///
/// Errors: 42704.
fn found(view: &dyn View, session: &SessionFacts, name: &str) -> Result<Known> {
    match known(view, session, name)? {
        Some(known) => Ok(known),
        None => fail("42704", format!("role \"{name}\" does not exist")),
    }
}

/// Refuses the name of a role that there is not.
///
/// Errors: 42704.
pub(super) fn check_there(view: &dyn View, session: &SessionFacts, name: &str) -> Result<()> {
    found(view, session, name).map(|_| ())
}

/// To whom something is given; `None` for the session's user where nobody has to log in, who may do everything.
///
/// Errors: 42704.
fn grantee(view: &dyn View, session: &SessionFacts, grantee: &Grantee) -> Result<Option<Known>> {
    let name = match grantee {
        Grantee::Public => {
            return Ok(Some(Known {
                name: PUBLIC.to_owned(),
                user: None,
            }));
        }
        Grantee::Own => session.user.clone(),
        Grantee::Role(name) => ident(name),
    };
    match session.account.is_none() && name == session.user && known(view, session, &name)?.is_none() {
        true => Ok(None),
        false => found(view, session, &name).map(Some),
    }
}

/// What the options of a role say.
#[derive(Debug, Default)]
struct Said<'o> {
    logs_in: Option<bool>,
    is_superuser: Option<bool>,
    makes_databases: Option<bool>,
    bypasses: Option<bool>,
    password: Option<Option<&'o str>>,
    in_roles: Vec<&'o Ident>,
    members: Vec<&'o Ident>,
}

impl<'o> Said<'o> {
    /// Errors: 0A000 for what a role cannot have.
    fn of(options: &'o [RoleOption]) -> Result<Self> {
        let mut said = Self::default();
        for option in options {
            match option {
                RoleOption::Flag(flag, is_on) => match (flag.as_str(), is_on) {
                    ("LOGIN", _) => said.logs_in = Some(*is_on),
                    ("SUPERUSER", _) => said.is_superuser = Some(*is_on),
                    ("CREATEDB", _) => said.makes_databases = Some(*is_on),
                    ("BYPASSRLS", _) => said.bypasses = Some(*is_on),
                    // What all roles are.
                    ("INHERIT", true) | ("CREATEROLE" | "REPLICATION", false) => {}
                    ("INHERIT", false) => return unsupported("a role that does not inherit"),
                    (flag, _) => return unsupported(format!("{flag} of a role")),
                },
                RoleOption::Password(password) => said.password = Some(password.as_deref()),
                RoleOption::InRoles(roles) => said.in_roles.extend(roles),
                RoleOption::Members(roles) => said.members.extend(roles),
                RoleOption::Limit("CONNECTION LIMIT", value) if value == "-1" => {}
                RoleOption::Limit("VALID UNTIL", value) if value == "infinity" => {}
                RoleOption::Limit(option, _) => return unsupported(format!("{option} of a role")),
            }
        }
        Ok(said)
    }

    /// The credentials of a password that is set.
    ///
    /// Errors: 0A000 for a hash by MD5.
    fn credentials(&self, statement: &Statement<'_>, name: &str) -> Result<Option<Document>> {
        let Some(password) = self.password else { return Ok(None) };
        let mut out = Document::new();
        // PostgreSQL takes an empty password for none.
        let Some(password) = password.filter(|password| !password.is_empty()) else {
            return Ok(Some(out));
        };
        let is_digest = |hex: &str| hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        if password.strip_prefix("md5").is_some_and(is_digest) {
            return unsupported("a password that is a hash by MD5");
        }
        let made = match Credential::of_verifier(password) {
            Some(Some(credential)) => vec![credential],
            Some(None) => return unsupported("a password that is a hash of fewer than 5000 iterations"),
            None => {
                let parameters = &statement.database.node.parameters;
                let wanted = Mechanism::ALL.map(|mechanism| (mechanism, parameters.iterations(mechanism)));
                credential::make(&wanted, name, password, false)?
            }
        };
        for credential in made {
            out.push(credential.mechanism.name(), Value::from(credential.to_document()));
        }
        Ok(Some(out))
    }

    /// The roles that a user has beside its own, after they were set.
    fn set_roles(&self, roles: &mut Vec<RoleName>) {
        let all = [
            (self.is_superuser, "root"),
            (self.makes_databases, MAKES_DATABASES),
            (self.bypasses, BYPASSES),
        ];
        for (is_on, role) in all {
            let role = RoleName::new(role, ADMIN);
            if is_on.is_some() {
                roles.retain(|held| *held != role);
            }
            if is_on == Some(true) {
                roles.push(role);
            }
        }
    }

    /// Whether policies count for a role that may not log in, after it was said.
    fn set_bypass(&self, changes: &mut Changes<'_, '_>, role: &RoleName) -> Result<()> {
        let Some(is_on) = self.bypasses else { return Ok(()) };
        let bypasses = RoleName::new(BYPASSES, ADMIN);
        changes.role(&role.id(), |old| {
            let Some(mut document) = old else {
                return Ok(Outcome::Keep);
            };
            let mut held = names(document.get("roles"));
            held.retain(|held| *held != bypasses);
            if is_on {
                held.push(bypasses);
            }
            document.set("roles", role_values(&held));
            Ok(Outcome::Put(document))
        })
    }

    /// Whether it says what only those who may log in can be.
    fn is_of_users(&self) -> bool {
        self.is_superuser == Some(true) || self.makes_databases == Some(true) || self.password.is_some()
    }
}

fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, options): (&Ident, &[RoleOption]),
    progress: &mut Progress,
) -> Result<&'static str> {
    let name = ident(name);
    let said = Said::of(options)?;
    let (logs_in, is_superuser) = (said.logs_in == Some(true), said.is_superuser == Some(true));
    let needed: &[Action] = match said.in_roles.is_empty() && said.members.is_empty() && !is_superuser {
        true => &[Action::CreateUser, Action::CreateRole],
        false => &[Action::CreateUser, Action::CreateRole, Action::GrantRole],
    };
    check_may(session, ADMIN, needed, "create role")?;
    if is_superuser && !session.is_superuser() {
        return fail("42501", "must be superuser to create superusers");
    }
    if said.bypasses == Some(true) && !session.is_superuser() {
        return fail("42501", "must be superuser to create bypassrls users");
    }
    if name.starts_with("pg_") || ["public", "none", PUBLIC, BYPASSES, MAKES_DATABASES].contains(&name.as_str()) {
        return fail("42939", format!("role name \"{name}\" is reserved"));
    }
    if !logs_in && said.is_of_users() {
        return unsupported("a password, SUPERUSER and CREATEDB of a role that may not log in");
    }
    let credentials = said.credentials(statement, &name)?.unwrap_or_default();
    let user_id = nestor_database::uuid::Uuid(statement.database.new_uuid()).to_value();
    change(statement, progress, |changes| {
        if known(changes.view(), session, &name)?.is_some() {
            return fail("42710", format!("role \"{name}\" already exists"));
        }
        let own = Known {
            user: logs_in.then(|| UserName::new(&name, ADMIN)),
            name: name.clone(),
        };
        if said.bypasses == Some(true) {
            make_role(changes, &RoleName::new(BYPASSES, ADMIN))?;
        }
        match &own.user {
            Some(user) => {
                let mut roles = Vec::new();
                said.set_roles(&mut roles);
                if said.makes_databases == Some(true) {
                    make_role(changes, &RoleName::new(MAKES_DATABASES, ADMIN))?;
                }
                let document = doc! {
                    "_id": user.id(),
                    "userId": user_id.clone(),
                    "user": user.user.clone(),
                    "db": user.db.clone(),
                    "credentials": credentials.clone(),
                    "roles": role_values(&roles),
                };
                changes.user(&user.id(), |_| Ok(Outcome::Put(document)))?;
            }
            None => {
                make_role(changes, &own.own())?;
                said.set_bypass(changes, &own.own())?;
            }
        }
        for role in &said.in_roles {
            grant::join(changes, session, (&ident(role), &own), true)?;
        }
        for member in &said.members {
            let member = found(changes.view(), session, &ident(member))?;
            grant::join(changes, session, (&name, &member), true)?;
        }
        Ok(())
    })?;
    Ok("CREATE ROLE")
}

fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, options): (&Ident, &[RoleOption]),
    progress: &mut Progress,
) -> Result<&'static str> {
    let name = named(session, name);
    let said = Said::of(options)?;
    let role = found(statement.current_view().view(), session, &name)?;
    if said.bypasses.is_some() && !session.is_superuser() {
        return fail("42501", "must be superuser to change bypassrls attribute");
    }
    let Some(user) = &role.user else {
        if said.bypasses.is_some() && said.logs_in != Some(true) && !said.is_of_users() {
            change(statement, progress, |changes| {
                make_role(changes, &RoleName::new(BYPASSES, ADMIN))?;
                said.set_bypass(changes, &role.own())
            })?;
            return Ok("ALTER ROLE");
        }
        return match said.logs_in == Some(true) || said.is_of_users() {
            true => unsupported("a password, LOGIN, SUPERUSER and CREATEDB of a role that was made without LOGIN"),
            false => check_may(session, ADMIN, &[Action::CreateRole], "alter role").map(|()| "ALTER ROLE"),
        };
    };
    if said.logs_in == Some(false) {
        return unsupported("NOLOGIN of a role that may log in");
    }
    let is_self = session.account.as_ref().is_some_and(|account| account.name == *user);
    if said.password.is_some() {
        let action = match is_self && check_may(session, &user.db, &[Action::ChangePassword], "").is_err() {
            true => Action::ChangeOwnPassword,
            false => Action::ChangePassword,
        };
        check_may(session, &user.db, &[action], "alter role")?;
    }
    if said.is_superuser.is_some() || said.makes_databases.is_some() {
        check_may(session, ADMIN, &[Action::GrantRole, Action::RevokeRole], "alter role")?;
        if said.is_superuser.is_some() && !session.is_superuser() {
            return fail(
                "42501",
                "must be superuser to alter superuser roles or change superuser attribute",
            );
        }
    }
    let credentials = said.credentials(statement, &user.user)?;
    change(statement, progress, |changes| {
        if said.makes_databases == Some(true) {
            make_role(changes, &RoleName::new(MAKES_DATABASES, ADMIN))?;
        }
        if said.bypasses == Some(true) {
            make_role(changes, &RoleName::new(BYPASSES, ADMIN))?;
        }
        changes.user(&user.id(), |old| {
            let Some(mut document) = old else {
                return fail("42704", format!("role \"{name}\" does not exist"));
            };
            if let Some(credentials) = &credentials {
                document.set("credentials", credentials.clone());
            }
            let mut roles = names(document.get("roles"));
            said.set_roles(&mut roles);
            document.set("roles", role_values(&roles));
            Ok(Outcome::Put(document))
        })
    })?;
    Ok("ALTER ROLE")
}

fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists): (&[Ident], bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    check_may(session, ADMIN, &[Action::DropUser, Action::DropRole], "drop role")?;
    change(statement, progress, |changes| {
        for name in names.iter().map(ident) {
            let Some(role) = known(changes.view(), session, &name)? else {
                let missing = error("42704", format!("role \"{name}\" does not exist"));
                pass_over(if_exists, missing)?;
                continue;
            };
            if role.user.is_some() && session.account.as_ref().map(|account| &account.name) == role.user.as_ref() {
                return fail("55006", "current user cannot be dropped");
            }
            let held = stored_grants(
                role_document(changes.view(), &role.own())?
                    .as_ref()
                    .and_then(|own| own.get("privileges")),
            );
            let depends = |grant: &Grant| match &grant.on {
                Pattern::Collection(db, coll) => {
                    let ns = Namespace::new(db.clone(), coll.clone());
                    changes
                        .view()
                        .catalog()
                        .get(&ns)
                        .map(|_| format!("privileges for table {coll}"))
                }
                Pattern::Database(db) => Some(format!("privileges for database {db}")),
                _ => Some("privileges beyond one database".to_owned()),
            };
            let mut depending: Vec<String> = held.iter().filter_map(depends).collect();
            for collection in changes.view().catalog().collections() {
                let own = collection.options.row_security.iter().flat_map(|own| &own.policies);
                let own = own.filter(|policy| policy.roles.contains(&name));
                depending.extend(
                    own.map(|policy| format!("target of policy {} on table {}", policy.name, collection.ns.coll)),
                );
            }
            if !depending.is_empty() {
                let message = format!("role \"{name}\" cannot be dropped because some objects depend on it");
                return Err(with(error("2BP01", message), &[(Field::Detail, &depending.join("\n"))]));
            }
            if let Some(user) = &role.user {
                changes.user(&user.id(), |old| Ok(old.map_or(Outcome::Keep, |_| Outcome::Remove)))?;
            }
            let own = role.own();
            changes.role(&own.id(), |old| Ok(old.map_or(Outcome::Keep, |_| Outcome::Remove)))?;
            changes.take_from_all(|role| *role == own)?;
        }
        Ok(())
    })?;
    Ok("DROP ROLE")
}

/// DROP OWNED BY: the rights on what is in the session's database go.
fn drop_owned(
    statement: &Statement<'_>,
    session: &SessionFacts,
    roles: &[Grantee],
    progress: &mut Progress,
) -> Result<&'static str> {
    check_may(session, &session.database, &[Action::RevokeRole], "drop objects")?;
    change(statement, progress, |changes| {
        for named in roles {
            let Some(role) = grantee(changes.view(), session, named)? else {
                return unsupported("DROP OWNED BY the user who may do everything");
            };
            let catalog = changes.view().catalog().clone();
            changes.role(&role.own().id(), |old| {
                let Some(mut document) = old else {
                    return Ok(Outcome::Keep);
                };
                let mut held = stored_grants(document.get("privileges"));
                let is_owned = |grant: &Grant| match &grant.on {
                    Pattern::Collection(db, coll) => {
                        let is_there = || catalog.get(&Namespace::new(db.clone(), coll.clone())).is_some();
                        **db == *session.database && grant.actions.has_all(OWNER) && is_there()
                    }
                    _ => false,
                };
                if held.iter().any(is_owned) {
                    return unsupported("DROP OWNED BY a role that has made tables");
                }
                held.retain(|grant| grant.on.database() != Some(&session.database));
                document.set("privileges", grant_values(held));
                let mut roles = names(document.get("roles"));
                roles.retain(|role| *role.db != *session.database);
                document.set("roles", role_values(&roles));
                Ok(Outcome::Put(document))
            })?;
        }
        Ok(())
    })?;
    Ok("DROP OWNED")
}

fn grant_values(grants: Vec<Grant>) -> Vec<Value> {
    let kept = merged(grants).into_iter().filter(|grant| !grant.actions.is_empty());
    kept.map(|grant| Value::from(grant.to_document())).collect()
}

/// Makes a role unless it is there.
fn make_role(changes: &mut Changes<'_, '_>, name: &RoleName) -> Result<()> {
    let makes = Grant::new(Pattern::AllDatabases, Actions::of(&[Action::CreateCollection]));
    let bypasses = Grant::new(Pattern::AllDatabases, Actions::of(&[Action::BypassRowSecurity]));
    let privileges = match &*name.role {
        MAKES_DATABASES => grant_values(vec![makes]),
        BYPASSES => grant_values(vec![bypasses]),
        _ => Vec::new(),
    };
    changes.role(&name.id(), |old| {
        let document = doc! {
            "_id": name.id(),
            "role": name.role.clone(),
            "db": name.db.clone(),
            "privileges": privileges,
            "roles": role_values(&[]),
        };
        Ok(old.map_or(Outcome::Put(document), |_| Outcome::Keep))
    })
}

/// Changes the role that has what is granted to somebody, which is made if it is not there.
fn change_own(
    changes: &mut Changes<'_, '_>,
    role: &Known,
    work: impl FnOnce(&mut Document) -> Result<()>,
) -> Result<()> {
    let own = role.own();
    make_role(changes, &own)?;
    if let Some(user) = &role.user {
        changes.user(&user.id(), |old| {
            let Some(mut document) = old else {
                return Ok(Outcome::Keep);
            };
            let mut roles = names(document.get("roles"));
            if roles.contains(&own) {
                return Ok(Outcome::Keep);
            }
            roles.push(own.clone());
            document.set("roles", role_values(&roles));
            Ok(Outcome::Put(document))
        })?;
    }
    changes.role(&own.id(), |old| match old {
        Some(mut document) => work(&mut document).map(|()| Outcome::Put(document)),
        None => Ok(Outcome::Keep),
    })
}

/// Whether what the user makes is the user's: one who has a role by whose rights things are made.
pub(super) fn owns(session: &SessionFacts) -> bool {
    session.account.as_ref().is_some_and(|account| {
        let has = |role: &str| account.roles.contains(&RoleName::new(role, ADMIN));
        has(&account.name.user) || has(MAKES_DATABASES)
    })
}

/// Gives who makes something in a database what they may not do with it yet, if it is theirs. Who was given
/// rights by commands alone has the same rights on all that is made.
///
/// Errors: those of storage.
pub(super) fn own(statement: &Statement<'_>, session: &SessionFacts, ws: &mut WriteSet, ns: &Namespace) -> Result<()> {
    let Some(account) = session.account.as_ref().filter(|_| owns(session)) else {
        return Ok(());
    };
    let role = Known {
        name: account.name.user.to_string(),
        user: Some(account.name.clone()),
    };
    let is_temporary = ns
        .coll
        .split_once('.')
        .is_some_and(|(schema, _)| schemas::is_temporary(schema));
    if is_temporary || account.grants.on_collection(ns).has_all(OWNER) {
        return Ok(());
    }
    let given = Grant::new(Pattern::collection(&ns.db, &ns.coll), OWNER);
    within(statement, ws, |changes| {
        change_own(changes, &role, |document| give(document, vec![given]))
    })
}

/// Gives a role the rights on a database that its owner has.
///
/// Errors: 42704.
pub(super) fn own_database(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (db, owner): (&str, &str),
) -> Result<()> {
    within(statement, ws, |changes| {
        let role = found(changes.view(), session, owner)?;
        change_own(changes, &role, |document| {
            let mut roles = names(document.get("roles"));
            let owns = RoleName::new("dbOwner", db);
            if !roles.contains(&owns) {
                roles.push(owns);
            }
            document.set("roles", role_values(&roles));
            Ok(())
        })
    })
}

/// What was granted on something follows it to its new name, or goes with it.
///
/// Errors: those of storage.
pub(super) fn follow(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    from: &Namespace,
    to: Option<&Namespace>,
) -> Result<()> {
    let old = Pattern::collection(&from.db, &from.coll);
    renamed(statement, ws, &|on| match *on == old {
        true => to.map(|to| Pattern::collection(&to.db, &to.coll)),
        false => Some(on.clone()),
    })
}

/// What was granted on a database and on what was in it goes with it.
///
/// Errors: those of storage.
pub(super) fn forget_database(statement: &Statement<'_>, ws: &mut WriteSet, db: &str) -> Result<()> {
    renamed(statement, ws, &|on| (on.database() != Some(db)).then(|| on.clone()))?;
    let owns = RoleName::new("dbOwner", db);
    within(statement, ws, |changes| changes.take_from_all(|role| *role == owns))
}

/// Has the privileges of all roles be on what `to` gives.
fn renamed(statement: &Statement<'_>, ws: &mut WriteSet, to: &dyn Fn(&Pattern) -> Option<Pattern>) -> Result<()> {
    within(statement, ws, |changes| {
        changes.roles(|document| {
            let held = stored_grants(document.get("privileges"));
            let kept = held
                .iter()
                .filter_map(|grant| to(&grant.on).map(|on| Grant::new(on, grant.actions)));
            let kept: Vec<Grant> = kept.collect();
            if kept == held {
                return Outcome::Keep;
            }
            let mut changed = document.clone();
            changed.set("privileges", grant_values(kept));
            Outcome::Put(changed)
        })?;
        Ok(())
    })
}

/// Adds to the privileges of a role's document.
fn give(document: &mut Document, grants: Vec<Grant>) -> Result<()> {
    let mut held = stored_grants(document.get("privileges"));
    held.extend(grants);
    document.set("privileges", grant_values(held));
    Ok(())
}
