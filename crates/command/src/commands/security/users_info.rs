//! `usersInfo` and `rolesInfo`: there are no users and no roles, so that none is found whatever is asked for.
//!
//! Source: manual, "usersInfo", "rolesInfo".

use crate::args::unknown_field;
use crate::context::Context;
use crate::facts::Facts;
use crate::spec::CommandSpec;
use nestor_model::{DocRef, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_query::env::Scope;
use nestor_query::matcher::MatchExpr;

/// `usersInfo`.
pub const USERS: CommandSpec = Facts::no_collection("usersInfo", "Lists users; there are none.").runs(users);

/// `rolesInfo`.
pub const ROLES: CommandSpec = Facts::no_collection("rolesInfo", "Lists roles; there are none.").runs(roles);

crate::args! {
    /// Arguments of `usersInfo`. What would be shown of users does not matter without any.
    pub struct UsersInfo<'a>: "usersInfo" command {
        "usersInfo" => asked: Option<ValueRef<'a>>,
        "showCredentials" => show_credentials: bool,
        "showCustomData" => show_custom_data: bool,
        "showPrivileges" => show_privileges: bool,
        "showAuthenticationRestrictions" => show_restrictions: bool,
        "filter" => filter: Option<RawDoc<'a>>,
    }
}

crate::args! {
    /// Arguments of `rolesInfo`, likewise.
    pub struct RolesInfo<'a>: "rolesInfo" command {
        "rolesInfo" => asked: Option<ValueRef<'a>>,
        "showPrivileges" => show_privileges: bool,
        "showBuiltinRoles" => show_builtin_roles: bool,
        "showAuthenticationRestrictions" => show_restrictions: bool,
    }
}

fn users(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = UsersInfo::parse(context.body, context.sequences)?;
    let asked = Asked::parse("usersInfo", "user", args.asked)?;
    if asked != Asked::ByName && (args.show_privileges || args.show_restrictions) {
        bail!(
            IllegalOperation,
            "Privilege or restriction details require exact-match usersInfo queries"
        );
    }
    if let Some(filter) = args.filter {
        MatchExpr::parse(filter.as_doc(), &mut Scope::new())?;
    }
    reply.begin_array("users");
    reply.end();
    Ok(())
}

fn roles(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = RolesInfo::parse(context.body, context.sequences)?;
    if Asked::parse("rolesInfo", "role", args.asked)? == Asked::OfAllDatabases {
        bail!(BadValue, "rolesInfo has no field forAllDBs");
    }
    reply.begin_array("roles");
    reply.end();
    Ok(())
}

/// Which users or roles are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// All of the database.
    OfDatabase,
    /// All.
    OfAllDatabases,
    /// Those that are named.
    ByName,
}

impl Asked {
    /// Reads `1`, a name, `{user: .., db: ..}`, an array of these, or `{forAllDBs: true}`.
    fn parse(command: &'static str, what: &'static str, value: Option<ValueRef<'_>>) -> Result<Self> {
        match value {
            Some(ValueRef::String(_)) => Ok(Self::ByName),
            Some(ValueRef::Document(doc)) if doc.get("forAllDBs").is_some() => match doc.iter().count() {
                1 if doc.get("forAllDBs").is_some_and(ValueRef::truthy) => Ok(Self::OfAllDatabases),
                _ => bail!(BadValue, "{command}: forAllDBs stands alone and is true"),
            },
            Some(ValueRef::Document(doc)) => named(command, what, doc),
            Some(ValueRef::Array(names)) => {
                for name in names.iter() {
                    match name {
                        ValueRef::String(_) => {}
                        ValueRef::Document(doc) => drop(named(command, what, doc)?),
                        other => bail!(
                            BadValue,
                            "{command}: names must be strings or objects, not {}",
                            other.bson_type().alias()
                        ),
                    }
                }
                Ok(Self::ByName)
            }
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

/// `{user: "u", db: "d"}`.
fn named(command: &'static str, what: &'static str, doc: DocRef<'_>) -> Result<Asked> {
    for (field, value) in doc.iter() {
        if field != what && field != "db" {
            return Err(unknown_field(command, field));
        }
        if value.as_str().is_none() {
            bail!(
                BadValue,
                "{command}: {field} must be a string, not {}",
                value.bson_type().alias()
            );
        }
    }
    for field in [what, "db"] {
        if doc.get(field).is_none() {
            bail!(BadValue, "{command}: a name without {field}");
        }
    }
    Ok(Asked::ByName)
}
