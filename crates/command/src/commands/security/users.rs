//! `createUser`, `updateUser`, `dropUser`, `dropAllUsersFromDatabase`, `grantRolesToUser` and `revokeRolesFromUser`.
//!
//! Source: manual, "User Management Commands".

use crate::args::{RawArray, StrictBool};
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::first_user;
use crate::login::EXTERNAL;
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::login::credential::{self, Credential};
use nestor_database::login::mechanism::Mechanism;
use nestor_database::rights::Action;
use nestor_database::rights::builtin;
use nestor_database::user_changes::{Outcome, change, role_values};
use nestor_database::users::restriction::Restrictions;
use nestor_database::users::{RoleName, UserName, account, role_document};
use nestor_database::write::Progress;
use nestor_model::namespace::LOCAL;
use nestor_model::{Document, Error, ErrorCode, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc};
use nestor_storage::View;

/// Flags of commands that change users and roles. They are not recorded: some hold passwords.
pub(super) const FLAGS: Flags = Flags::WRITE
    .and(Flags::LONG)
    .and(Flags::WRITE_CONCERN)
    .and(Flags::UNRECORDED);

/// `createUser`.
pub const CREATE: CommandSpec = Facts::no_collection("createUser", "Adds a user.")
    .flags(FLAGS.and(Flags::FIRST_USER))
    .secrets(&["pwd"])
    .needs(Needs::Arguments(needs::create_user))
    .audited(Audited::user(audited::USER))
    .runs(create);

/// `updateUser`.
pub const UPDATE: CommandSpec = Facts::no_collection("updateUser", "Changes a user.")
    .flags(FLAGS)
    .secrets(&["pwd"])
    .needs(Needs::Arguments(needs::update_user))
    .audited(Audited::Told(audited::update_user))
    .runs(update);

/// `dropUser`.
pub const DROP: CommandSpec = Facts::no_collection("dropUser", "Removes a user.")
    .flags(FLAGS)
    .needs(Needs::database(Action::DropUser))
    .audited(Audited::user(&[]))
    .runs(drop_one);

/// `dropAllUsersFromDatabase`.
pub const DROP_ALL: CommandSpec = Facts::no_collection("dropAllUsersFromDatabase", "Removes all users of a database.")
    .flags(FLAGS)
    .needs(Needs::database(Action::DropUser))
    .audited(Audited::ALL)
    .runs(drop_all);

/// `grantRolesToUser`.
pub const GRANT: CommandSpec = Facts::no_collection("grantRolesToUser", "Gives roles to a user.")
    .flags(FLAGS)
    .needs(Needs::Arguments(needs::grant_roles))
    .audited(Audited::user(audited::ROLES))
    .runs(|context, reply| {
        let args = GrantArgs::parse(context.body, context.sequences)?;
        let granted = role_names(args.roles, context.db())?;
        change_roles(context, (args.user, &granted), reply, Way::Grant)
    });

/// `revokeRolesFromUser`.
pub const REVOKE: CommandSpec = Facts::no_collection("revokeRolesFromUser", "Takes roles from a user.")
    .flags(FLAGS)
    .needs(Needs::Arguments(needs::revoke_roles))
    .audited(Audited::user(audited::ROLES))
    .runs(|context, reply| {
        let args = RevokeArgs::parse(context.body, context.sequences)?;
        let revoked = role_names(args.roles, context.db())?;
        change_roles(context, (args.user, &revoked), reply, Way::Revoke)
    });

crate::args! {
    struct CreateArgs<'a>: "createUser" command {
        "createUser" => user: &'a str,
        "pwd" => password: Option<&'a str>,
        "customData" => custom_data: Option<RawDoc<'a>>,
        "roles" => roles: RawArray<'a>,
        "digestPassword" => digest_password: Option<StrictBool>,
        "mechanisms" => mechanisms: Option<Vec<&'a str>>,
        "authenticationRestrictions" => restrictions: Option<RawArray<'a>>,
    }
}

crate::args! {
    struct UpdateArgs<'a>: "updateUser" command {
        "updateUser" => user: &'a str,
        "pwd" => password: Option<&'a str>,
        "customData" => custom_data: Option<RawDoc<'a>>,
        "roles" => roles: Option<RawArray<'a>>,
        "digestPassword" => digest_password: Option<StrictBool>,
        "mechanisms" => mechanisms: Option<Vec<&'a str>>,
        "authenticationRestrictions" => restrictions: Option<RawArray<'a>>,
    }
}

crate::args! {
    struct DropArgs<'a>: "dropUser" command {
        "dropUser" => user: &'a str,
    }
}

crate::args! {
    struct DropAllArgs: "dropAllUsersFromDatabase" command {
    }
}

crate::args! {
    struct GrantArgs<'a>: "grantRolesToUser" command {
        "grantRolesToUser" => user: &'a str,
        "roles" => roles: RawArray<'a>,
    }
}

crate::args! {
    struct RevokeArgs<'a>: "revokeRolesFromUser" command {
        "revokeRolesFromUser" => user: &'a str,
        "roles" => roles: RawArray<'a>,
    }
}

fn create(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CreateArgs::parse(context.body, context.sequences)?;
    let name = user_name(args.user, context.db())?;
    if name.db == LOCAL {
        bail!(BadValue, "Cannot create users in the local database");
    }
    check_restrictions(args.restrictions)?;
    let roles = role_names(Some(args.roles), context.db())?;
    let credentials = match args.password {
        Some(_) if name.db == EXTERNAL => return Err(external_password()),
        Some(password) => stored(&credentials(
            context,
            &name,
            password,
            (args.mechanisms, args.digest_password),
        )?),
        // Somebody else knows them, such as an authority of certificates.
        None if name.db == EXTERNAL => doc! { "external": true },
        None => bail!(
            BadValue,
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db"
        ),
    };
    let mut user = doc! {
        "_id": name.id(),
        "userId": nestor_database::uuid::Uuid(context.service.new_uuid()).to_value(),
        "user": name.user.clone(),
        "db": name.db.clone(),
        "credentials": credentials,
    };
    if let Some(custom_data) = args.custom_data {
        user.push("customData", custom_data);
    }
    user.push("roles", role_values(&roles));
    set_restrictions(&mut user, args.restrictions);
    let _alone = first_user::alone(context)?;
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        check_roles(changes.view(), &roles)?;
        changes.user(&name.id(), |old| match old {
            Some(_) => Err(Error::location(51003, format!("User \"{name}\" already exists"))),
            None => Ok(Outcome::Put(user.clone())),
        })
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn update(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = UpdateArgs::parse(context.body, context.sequences)?;
    let name = user_name(args.user, context.db())?;
    check_restrictions(args.restrictions)?;
    let nothing = args.password.is_none() && args.custom_data.is_none() && args.roles.is_none();
    if nothing && args.mechanisms.is_none() && args.restrictions.is_none() {
        bail!(BadValue, "Must specify at least one field to update in updateUser");
    }
    let roles = args
        .roles
        .map(|roles| role_names(Some(roles), context.db()))
        .transpose()?;
    let kept = args.mechanisms.as_deref().map(mechanisms).transpose()?;
    let credentials = match args.password {
        Some(_) if name.db == EXTERNAL => return Err(external_password()),
        Some(password) => Some(credentials(
            context,
            &name,
            password,
            (args.mechanisms, args.digest_password),
        )?),
        None => None,
    };
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        check_roles(changes.view(), roles.as_deref().unwrap_or_default())?;
        changes.user(&name.id(), |old| {
            let mut user = old.ok_or_else(|| not_found(&name))?;
            match (&credentials, &kept) {
                (Some(credentials), _) => user.set("credentials", stored(credentials)),
                (None, Some(kept)) => user.set("credentials", stored(&some_of(&user, kept)?)),
                (None, None) => {}
            }
            if let Some(custom_data) = args.custom_data {
                user.set("customData", custom_data);
            }
            if let Some(roles) = &roles {
                user.set("roles", role_values(roles));
            }
            set_restrictions(&mut user, args.restrictions);
            Ok(Outcome::Put(user))
        })
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn external_password() -> Error {
    Error::new(
        ErrorCode::BadValue,
        "Cannot set the password for users defined on the '$external' database",
    )
}

/// The credentials of `user` for these mechanisms: without the password none can be made for others.
fn some_of(user: &Document, mechanisms: &[Mechanism]) -> Result<Vec<Credential>> {
    let mut credentials = credential::of_user(user.get("credentials"));
    let has = |mechanism: &Mechanism| credentials.iter().any(|credential| credential.mechanism == *mechanism);
    if !mechanisms.iter().all(has) {
        bail!(
            BadValue,
            "mechanisms field must be a subset of previously set mechanisms"
        );
    }
    credentials.retain(|credential| mechanisms.contains(&credential.mechanism));
    Ok(credentials)
}

fn drop_one(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DropArgs::parse(context.body, context.sequences)?;
    let name = user_name(args.user, context.db())?;
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        changes.user(&name.id(), |old| match old {
            Some(_) => Ok(Outcome::Remove),
            None => Err(not_found(&name)),
        })
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn drop_all(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    DropAllArgs::parse(context.body, context.sequences)?;
    let db = context.db();
    let mut progress = Progress::default();
    let dropped = change(context, &mut progress, |changes| {
        changes.users(|user| without_those_of(db, user))
    })?;
    reply.append("n", dropped);
    context.finish_concern(progress.last, reply, false)
}

/// Whether something is given or taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Given.
    Grant,
    /// Taken.
    Revoke,
}

impl Way {
    /// `roles` after `named` were granted or revoked.
    pub(super) fn apply(self, roles: &mut Vec<RoleName>, named: &[RoleName]) {
        roles.retain(|role| !named.contains(role));
        if self == Self::Grant {
            roles.extend_from_slice(named);
        }
    }

    /// The document of a user or role when `named` are given or taken.
    pub(super) fn change(self, mut document: Document, named: &[RoleName]) -> Result<Outcome> {
        let mut roles = account::names(document.get("roles"));
        self.apply(&mut roles, named);
        document.set("roles", role_values(&roles));
        Ok(Outcome::Put(document))
    }
}

fn change_roles(
    context: &mut Context<'_>,
    (user, named): (&str, &[RoleName]),
    reply: &mut RawWriter,
    way: Way,
) -> Result<()> {
    let name = user_name(user, context.db())?;
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        if way == Way::Grant {
            check_roles(changes.view(), named)?;
        }
        changes.user(&name.id(), |old| {
            way.change(old.ok_or_else(|| not_found(&name))?, named)
        })
    })?;
    context.finish_concern(progress.last, reply, false)
}

/// The document of a user or role after all roles of a database were dropped.
pub(super) fn without_those_of(db: &str, document: &Document) -> Outcome {
    match document.get("db").and_then(ValueRef::as_str) == Some(db) {
        true => Outcome::Remove,
        false => Outcome::Keep,
    }
}

fn user_name(user: &str, db: &str) -> Result<UserName> {
    if user.contains('\0') {
        bail!(BadValue, "Username cannot contain NULL characters");
    }
    UserName::parse(ValueRef::String(user), db)
}

fn not_found(name: &UserName) -> Error {
    Error::new(ErrorCode::UserNotFound, format!("User '{name}' not found"))
}

/// Reads `roles`. Names belong to `db`. No entry comes twice.
pub(super) fn role_names<'a>(roles: impl Into<Option<RawArray<'a>>>, db: &str) -> Result<Vec<RoleName>> {
    let mut out: Vec<RoleName> = Vec::new();
    for role in roles.into().iter().flat_map(|roles| roles.iter()) {
        let role = RoleName::parse(role, db)?;
        if !out.contains(&role) {
            out.push(role);
        }
    }
    Ok(out)
}

/// Refuses roles that are not there.
pub(super) fn check_roles(view: &dyn View, roles: &[RoleName]) -> Result<()> {
    for role in roles {
        if !builtin::exists(&role.role, &role.db) && role_document(view, role)?.is_none() {
            bail!(RoleNotFound, "Could not find role: {role}");
        }
    }
    Ok(())
}

/// Checks restrictions before they are stored; an empty array takes away what there was.
pub(super) fn check_restrictions(restrictions: Option<RawArray<'_>>) -> Result<()> {
    restrictions.map_or(Ok(()), |array| Restrictions::parse(array.to_ref()).map(drop))
}

/// Stores restrictions in the document of a user or role.
pub(super) fn set_restrictions(document: &mut Document, restrictions: Option<RawArray<'_>>) {
    match restrictions {
        Some(array) if array.iter().next().is_none() => drop(document.remove("authenticationRestrictions")),
        Some(array) => document.set("authenticationRestrictions", array.to_ref().to_value()),
        None => {}
    }
}

fn mechanisms(names: &[&str]) -> Result<Vec<Mechanism>> {
    if names.is_empty() {
        bail!(BadValue, "mechanisms field must not be empty");
    }
    let mut out = Vec::new();
    for name in names {
        match Mechanism::of_name(name) {
            Some(mechanism) if !out.contains(&mechanism) => out.push(mechanism),
            Some(_) => {}
            None => bail!(BadValue, "Unknown auth mechanism '{name}'"),
        }
    }
    Ok(out)
}

fn credentials(
    context: &Context<'_>,
    name: &UserName,
    password: &str,
    (names, digest_password): (Option<Vec<&str>>, Option<StrictBool>),
) -> Result<Vec<Credential>> {
    let is_digested = digest_password.is_some_and(|digest| !digest.0);
    let wanted = match &names {
        Some(names) => mechanisms(names)?,
        None if is_digested => vec![Mechanism::ScramSha1],
        None => Mechanism::ALL.to_vec(),
    };
    if password.is_empty() {
        bail!(BadValue, "Password cannot be empty");
    }
    if is_digested && wanted.contains(&Mechanism::ScramSha256) {
        bail!(BadValue, "Use of SCRAM-SHA-256 requires undigested passwords");
    }
    let parameters = &context.service.node.parameters;
    let with_iterations = |mechanism| (mechanism, parameters.iterations(mechanism));
    let wanted: Vec<_> = wanted.into_iter().map(with_iterations).collect();
    credential::make(&wanted, &name.user, password, is_digested)
}

fn stored(credentials: &[Credential]) -> Document {
    let mut out = Document::new();
    for credential in credentials {
        out.push(credential.mechanism.name(), Value::from(credential.to_document()));
    }
    out
}
