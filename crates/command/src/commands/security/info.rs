//! `usersInfo` and `rolesInfo`: who there is, and what each may do.
//!
//! Source: manual, "usersInfo", "rolesInfo".

use crate::context::Context;
use crate::facts::Facts;
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::login::credential;
use nestor_database::rights::{Grant, builtin};
use nestor_database::user_changes::role_values;
use nestor_database::users::account::{self, Resolved, stored_grants};
use nestor_database::users::{
    RoleName, UserName, documents, role_document, roles_namespace, user_document, users_namespace,
};
use nestor_model::{Document, Namespace, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc};
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Snapshot, View};

/// `usersInfo`.
pub const USERS: CommandSpec = Facts::no_collection("usersInfo", "Lists users.")
    .needs(Needs::Arguments(needs::users_info))
    .runs(users);

/// `rolesInfo`.
pub const ROLES: CommandSpec = Facts::no_collection("rolesInfo", "Lists roles.")
    .needs(Needs::Arguments(needs::roles_info))
    .runs(roles);

crate::args! {
    /// Arguments of `usersInfo`.
    pub struct UsersInfo<'a>: "usersInfo" command {
        "usersInfo" => asked: Option<ValueRef<'a>>,
        "showCredentials" => show_credentials: bool,
        "showCustomData" => show_custom_data: Option<bool>,
        "showPrivileges" => show_privileges: bool,
        "showAuthenticationRestrictions" => show_restrictions: bool,
        "filter" => filter: Option<RawDoc<'a>>,
    }
}

crate::args! {
    /// Arguments of `rolesInfo`.
    pub struct RolesInfo<'a>: "rolesInfo" command {
        "rolesInfo" => asked: Option<ValueRef<'a>>,
        "showPrivileges" => show_privileges: bool,
        "showBuiltinRoles" => show_builtin_roles: bool,
        "showAuthenticationRestrictions" => show_restrictions: bool,
    }
}

fn users(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = UsersInfo::parse(context.body, context.sequences)?;
    let asked = Asked::parse("usersInfo", args.asked, |value| UserName::parse(value, context.db()))?;
    if !matches!(asked, Asked::Named(_)) && (args.show_privileges || args.show_restrictions) {
        bail!(
            IllegalOperation,
            "Privilege or restriction details require exact-match usersInfo queries"
        );
    }
    let (op, scope) = context.operation(None)?;
    let mut scope = scope.without_clock();
    let filter = args
        .filter
        .map(|filter| MatchExpr::parse(filter.as_doc(), &mut scope)?.without_text())
        .transpose()?;
    let snapshot = context.service.engine.snapshot();
    let found = match &asked {
        Asked::Named(names) => {
            let found = names.iter().map(|name| user_document(&snapshot, name));
            found.filter_map(Result::transpose).collect::<Result<_>>()?
        }
        Asked::OfDatabase => stored(context, &snapshot, &users_namespace(), Some(context.db()))?,
        Asked::OfAllDatabases => stored(context, &snapshot, &users_namespace(), None)?,
    };
    reply.begin_array("users");
    let mut count = 0;
    for user in found {
        let shown = show_user(&snapshot, &user, &args)?;
        if filter
            .as_ref()
            .map_or(Ok(true), |filter| filter.matches(shown.as_ref(), &op))?
        {
            reply.append_index(count, &shown);
            count += 1;
        }
    }
    reply.end();
    Ok(())
}

fn show_user(view: &dyn View, user: &Document, args: &UsersInfo<'_>) -> Result<Document> {
    let mut out = Document::new();
    for field in ["_id", "userId", "user", "db"] {
        if let Some(value) = user.get(field) {
            out.push(field, value);
        }
    }
    if let Some(credentials) = user.get("credentials").filter(|_| args.show_credentials) {
        out.push("credentials", credentials);
    }
    if let Some(custom_data) = user.get("customData").filter(|_| args.show_custom_data != Some(false)) {
        out.push("customData", custom_data);
    }
    let roles = account::names(user.get("roles"));
    out.push("roles", role_values(&roles));
    let credentials = credential::of_user(user.get("credentials"));
    let mechanisms = credentials
        .iter()
        .map(|credential| Value::from(credential.mechanism.name()));
    out.push("mechanisms", mechanisms.collect::<Vec<_>>());
    if args.show_privileges {
        let all = resolve(view, &roles)?;
        out.push(
            "inheritedRoles",
            role_values(&all.roles.into_iter().collect::<Vec<_>>()),
        );
        out.push("inheritedPrivileges", grant_values(&all.grants));
    }
    if args.show_restrictions {
        let own = user.get("authenticationRestrictions").map(Value::from);
        let inherited = own.iter().cloned().chain(resolve(view, &roles)?.restrictions);
        out.push("inheritedAuthenticationRestrictions", inherited.collect::<Vec<_>>());
        out.push("authenticationRestrictions", own.unwrap_or_else(|| Vec::new().into()));
    }
    Ok(out)
}

fn roles(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = RolesInfo::parse(context.body, context.sequences)?;
    let snapshot = context.service.engine.snapshot();
    let mut shown = Vec::new();
    match Asked::parse("rolesInfo", args.asked, |value| RoleName::parse(value, context.db()))? {
        Asked::OfAllDatabases => bail!(BadValue, "rolesInfo has no field forAllDBs"),
        Asked::Named(names) => {
            for name in names {
                if builtin::exists(&name.role, &name.db) {
                    shown.push(show_builtin(&name, &args));
                } else if let Some(role) = role_document(&snapshot, &name)? {
                    shown.push(show_role(&snapshot, &role, &args)?);
                }
            }
        }
        Asked::OfDatabase => {
            for role in stored(context, &snapshot, &roles_namespace(), Some(context.db()))? {
                shown.push(show_role(&snapshot, &role, &args)?);
            }
            if args.show_builtin_roles {
                let names = builtin::OF_DATABASES.iter().chain(&builtin::OF_ADMIN);
                let names = names.filter(|role| builtin::exists(role, context.db()));
                shown.extend(names.map(|role| show_builtin(&RoleName::new(role, context.db()), &args)));
            }
        }
    }
    reply.begin_array("roles");
    for (i, role) in shown.iter().enumerate() {
        reply.append_index(i, role);
    }
    reply.end();
    Ok(())
}

fn show_builtin(name: &RoleName, args: &RolesInfo<'_>) -> Document {
    let none = Vec::<Value>::new();
    let mut out = doc! { "role": name.role.clone(), "db": name.db.clone(), "isBuiltin": true };
    out.push("roles", none.clone());
    out.push("inheritedRoles", none.clone());
    if args.show_privileges {
        let grants = grant_values(&builtin::grants(&name.role, &name.db).unwrap_or_default());
        out.push("privileges", grants.clone());
        out.push("inheritedPrivileges", grants);
    }
    if args.show_restrictions {
        out.push("authenticationRestrictions", none.clone());
        out.push("inheritedAuthenticationRestrictions", none);
    }
    out
}

fn show_role(view: &dyn View, role: &Document, args: &RolesInfo<'_>) -> Result<Document> {
    let mut out = Document::new();
    for field in ["_id", "role", "db"] {
        if let Some(value) = role.get(field) {
            out.push(field, value);
        }
    }
    out.push("isBuiltin", false);
    let roles = account::names(role.get("roles"));
    let all = resolve(view, &roles)?;
    out.push("roles", role_values(&roles));
    out.push(
        "inheritedRoles",
        role_values(&all.roles.into_iter().collect::<Vec<_>>()),
    );
    if args.show_privileges {
        let own = stored_grants(role.get("privileges"));
        out.push("privileges", grant_values(&own));
        let inherited = nestor_database::rights::grant::merged(own.into_iter().chain(all.grants));
        out.push("inheritedPrivileges", grant_values(&inherited));
    }
    if args.show_restrictions {
        let own = role.get("authenticationRestrictions").map(Value::from);
        let inherited = own.iter().cloned().chain(all.restrictions);
        let inherited: Vec<_> = inherited.collect();
        out.push("authenticationRestrictions", own.unwrap_or_else(|| Vec::new().into()));
        out.push("inheritedAuthenticationRestrictions", inherited);
    }
    Ok(out)
}

fn resolve(view: &dyn View, roles: &[RoleName]) -> Result<Resolved> {
    account::resolve(roles, &mut |name| role_document(view, name))
}

fn grant_values(grants: &[Grant]) -> Vec<Value> {
    grants.iter().map(|grant| Value::from(grant.to_document())).collect()
}

/// The documents of users or roles, of `db` if it is given, in the order of their `_id`s.
fn stored(context: &Context<'_>, snapshot: &Snapshot, ns: &Namespace, db: Option<&str>) -> Result<Vec<Document>> {
    let mut out = documents(snapshot, ns, &context.interrupt)?;
    out.retain(|found| db.is_none_or(|db| found.get("db").and_then(ValueRef::as_str) == Some(db)));
    let id = |doc: &Document| doc.get("_id").and_then(ValueRef::as_str).unwrap_or_default().to_owned();
    out.sort_by_key(id);
    Ok(out)
}

/// Which users or roles are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked<T> {
    /// All of the database.
    OfDatabase,
    /// All.
    OfAllDatabases,
    /// Those that are named.
    Named(Vec<T>),
}

impl<T> Asked<T> {
    /// Reads `1`, a name, an array of names, or `{forAllDBs: true}`.
    fn parse(
        command: &'static str,
        value: Option<ValueRef<'_>>,
        name: impl Fn(ValueRef<'_>) -> Result<T>,
    ) -> Result<Self> {
        match value {
            Some(ValueRef::Document(doc)) if doc.get("forAllDBs").is_some() => match doc.iter().count() {
                1 if doc.get("forAllDBs").is_some_and(ValueRef::truthy) => Ok(Self::OfAllDatabases),
                _ => bail!(BadValue, "{command}: forAllDBs stands alone and is true"),
            },
            Some(one @ (ValueRef::String(_) | ValueRef::Document(_))) => Ok(Self::Named(vec![name(one)?])),
            Some(ValueRef::Array(names)) => Ok(Self::Named(names.iter().map(name).collect::<Result<_>>()?)),
            Some(number) if nestor_model::number::safe_i64(number) == Some(1) => Ok(Self::OfDatabase),
            Some(other) => bail!(
                BadValue,
                "{command} takes 1, a name or names, not a value of type {}",
                other.bson_type().alias()
            ),
            None => bail!(BadValue, "{command} takes 1, a name or names, not null"),
        }
    }
}
