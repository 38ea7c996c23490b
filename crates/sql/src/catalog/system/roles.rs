//! Catalogs of roles and of what they may do.

use super::{DATABASE_OWNER, Facts, OWNER, Relation, Row, oid, text};
use crate::catalog::schemas;
use crate::error::fail;
use nestor_database::rights::{Action, Actions};
use nestor_database::write::begun::{Settings, Whose};
use nestor_model::fnv::Fnv;
use nestor_model::{Array, Namespace, Result, Value};

/// The role that lets its users make databases, made when it is first given.
pub const MAKES_DATABASES: &str = "sqlCreateDatabase";

/// The role of those for whom policies for rows do not count, made when it is first given.
pub const BYPASSES: &str = "sqlBypassRowSecurity";

/// A role as catalogs show it.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Its OID.
    pub oid: i64,
    /// Its name; empty for PUBLIC, which is no role.
    pub name: String,
    /// It may do everything.
    pub is_superuser: bool,
    /// It may make databases.
    pub makes_databases: bool,
    /// Policies for rows do not count for it.
    pub bypasses: bool,
    /// It may make roles.
    pub makes_roles: bool,
    /// It may log in.
    pub logs_in: bool,
    /// The names of the roles that it is a member of.
    pub member_of: Vec<String>,
    /// What it may do with single collections.
    pub held: Vec<(Namespace, Actions)>,
}

/// Bits of a name's hash that its OID has beside this one.
const OIDS: i64 = 1 << 30;

/// The OID of a role of which nothing but its name is known.
pub fn number(name: &str) -> i64 {
    let mut hash = Fnv::default();
    hash.bytes(name.as_bytes());
    OIDS | (hash.0 >> 35) as i64
}

/// Privileges on a table: letter, name, and the action that it is.
const PRIVILEGES: [(&str, &str, Action); 5] = [
    ("a", "INSERT", Action::Insert),
    ("r", "SELECT", Action::Find),
    ("w", "UPDATE", Action::Update),
    ("d", "DELETE", Action::Remove),
    ("D", "TRUNCATE", Action::Remove),
];

/// The rows of a table about roles; `None` for others.
///
/// Errors: those of reading roles and relations.
pub(super) fn rows(name: &str, facts: &dyn Facts) -> Result<Option<Vec<Row>>> {
    let rows = match name {
        "pg_roles" | "pg_authid" => {
            let begun = facts.begun()?;
            let with_settings = |own: &Role| {
                let mut row = role(own);
                row.push(("rolconfig", config_of(&begun, &own.name)));
                row
            };
            let mut rows: Vec<Row> = facts.roles()?.iter().filter(is_role).map(with_settings).collect();
            rows.push(vec![
                ("oid", oid(DATABASE_OWNER)),
                ("rolname", text("pg_database_owner")),
                ("rolinherit", Value::Bool(true)),
                ("rolconnlimit", Value::Int32(-1)),
            ]);
            rows
        }
        "pg_user" | "pg_shadow" => {
            let (all, begun) = (facts.roles()?, facts.begun()?);
            let users = all.iter().filter(|role| role.logs_in);
            let row = |role: &Role| {
                vec![
                    ("useconfig", config_of(&begun, &role.name)),
                    ("usename", text(&role.name)),
                    ("usesysid", oid(role.oid)),
                    ("usecreatedb", Value::Bool(role.makes_databases)),
                    ("usesuper", Value::Bool(role.is_superuser)),
                    ("usebypassrls", Value::Bool(role.bypasses)),
                ]
            };
            users.map(row).collect()
        }
        "pg_db_role_setting" => {
            let (roles, databases) = (facts.roles()?, super::statistics::databases(facts));
            let row = |(whose, settings): (Whose, Settings)| {
                let role = match &whose.role {
                    Some(own) => roles.iter().find(|role| *role.name == *own.user)?.oid,
                    None => 0,
                };
                let database = match &whose.database {
                    Some(own) => databases.iter().find(|(_, name)| name == own)?.0,
                    None => 0,
                };
                Some(vec![
                    ("setdatabase", oid(database)),
                    ("setrole", oid(role)),
                    ("setconfig", config(&settings)),
                ])
            };
            facts.begun()?.into_iter().filter_map(row).collect()
        }
        "pg_group" => {
            let all = facts.roles()?;
            let groups = all.iter().filter(is_role).filter(|role| !role.logs_in);
            let row = |group: &Role| {
                let members = all.iter().filter(|role| role.member_of.contains(&group.name));
                let members: Vec<Value> = members.map(|role| oid(role.oid)).collect();
                vec![
                    ("groname", text(&group.name)),
                    ("grosysid", oid(group.oid)),
                    ("grolist", Value::Array(Array::new(members))),
                ]
            };
            groups.map(row).collect()
        }
        "pg_auth_members" => {
            let all = facts.roles()?;
            let pairs = all.iter().flat_map(|member| {
                let groups = all.iter().filter(|role| member.member_of.contains(&role.name));
                groups.map(move |group| (group, member))
            });
            let row = |(group, member): (&Role, &Role)| {
                vec![
                    ("roleid", oid(group.oid)),
                    ("member", oid(member.oid)),
                    ("grantor", oid(OWNER)),
                ]
            };
            pairs.map(row).collect()
        }
        "applicable_roles" => {
            let all = facts.roles()?;
            let row = |member: &Role| {
                let row = |group: &String| {
                    vec![
                        ("grantee", text(&member.name)),
                        ("role_name", text(group)),
                        ("is_grantable", text("NO")),
                    ]
                };
                member.member_of.iter().map(row).collect::<Vec<Row>>()
            };
            all.iter().filter(|role| role.oid == OWNER).flat_map(row).collect()
        }
        "table_privileges" => granted(facts, true)?,
        "role_table_grants" => granted(facts, false)?,
        _ => return Ok(None),
    };
    Ok(Some(rows))
}

/// Whether it is one, and not PUBLIC.
fn is_role(role: &&Role) -> bool {
    !role.name.is_empty()
}

/// Settings as catalogs have them: `name=value`.
pub(super) fn config(settings: &[(String, String)]) -> Value {
    let each = settings
        .iter()
        .map(|(name, value)| text(format!("{}={value}", super::spelled(name))));
    Value::Array(Array::new(each.collect()))
}

/// What sessions of a role begin with in all databases; null for nothing.
fn config_of(begun: &[(Whose, Settings)], role: &str) -> Value {
    let is_it = |(whose, _): &&(Whose, Settings)| {
        whose.database.is_none() && whose.role.as_ref().is_some_and(|own| *own.user == *role)
    };
    let own = begun.iter().find(is_it);
    own.map_or(Value::Null, |(_, settings)| config(settings))
}

fn role(role: &Role) -> Row {
    vec![
        ("oid", oid(role.oid)),
        ("rolname", text(&role.name)),
        ("rolsuper", Value::Bool(role.is_superuser)),
        ("rolinherit", Value::Bool(true)),
        ("rolcreaterole", Value::Bool(role.makes_roles)),
        ("rolcreatedb", Value::Bool(role.makes_databases)),
        ("rolbypassrls", Value::Bool(role.bypasses)),
        ("rolcanlogin", Value::Bool(role.logs_in)),
        ("rolconnlimit", Value::Int32(-1)),
    ]
}

/// What roles may do with a relation.
fn held<'r>(
    facts: &dyn Facts,
    roles: &'r [Role],
    relation: &Relation,
) -> impl Iterator<Item = (&'r Role, Actions)> + use<'r> {
    let table = &relation.table;
    let ns = Namespace::new(facts.database(), schemas::collection(&table.schema, &table.name));
    roles.iter().filter_map(move |role| {
        let own = role.held.iter().find(|(of, _)| *of == ns);
        own.map(|(_, actions)| (role, *actions))
    })
}

/// What was granted on relations, to PUBLIC as well if that is wanted.
fn granted(facts: &dyn Facts, to_public: bool) -> Result<Vec<Row>> {
    let (mut roles, relations) = (facts.roles()?, facts.relations()?);
    roles.retain(|role| to_public || is_role(&role));
    let mut rows = Vec::new();
    for relation in relations.iter() {
        for (role, actions) in held(facts, &roles, relation) {
            for (_, privilege, _) in PRIVILEGES.iter().filter(|(_, _, action)| actions.has(*action)) {
                rows.push(vec![
                    ("grantor", text(facts.user())),
                    (
                        "grantee",
                        text(if role.name.is_empty() { "PUBLIC" } else { &role.name }),
                    ),
                    ("table_catalog", text(facts.database())),
                    ("table_schema", text(&relation.table.schema)),
                    ("table_name", text(&relation.table.name)),
                    ("privilege_type", text(privilege)),
                    ("is_grantable", text("NO")),
                    (
                        "with_hierarchy",
                        text(if *privilege == "SELECT" { "YES" } else { "NO" }),
                    ),
                ]);
            }
        }
    }
    Ok(rows)
}

/// The access list of a relation; `None` where nothing was granted on it.
pub(super) fn access_list(facts: &dyn Facts, roles: &[Role], relation: &Relation) -> Option<Value> {
    let item = |(role, actions): (&Role, Actions)| {
        let held = PRIVILEGES.iter().filter(|(_, _, action)| actions.has(*action));
        let letters: String = held.map(|(letter, ..)| *letter).collect();
        text(format!("{}={letters}/{}", role.name, facts.user()))
    };
    let items: Vec<Value> = held(facts, roles, relation).map(item).collect();
    (!items.is_empty()).then(|| Value::Array(Array::new(items)))
}

/// What a user may do with each object of a kind, by number and as letters of access lists, as [`super::RIGHTS`] asks for it; `*` is all.
///
/// Errors: 42704 for a user that there is not, those of reading roles and relations.
pub(super) fn rights(asked: &str, facts: &dyn Facts) -> Result<Vec<(i64, String)>> {
    let asked = asked.strip_prefix(super::RIGHTS).unwrap_or_default();
    let (kind, user) = match asked.split_once(' ') {
        Some((kind, user)) => (kind, Some(user).filter(|user| *user != facts.user())),
        None => (asked, None),
    };
    let all = match (user, kind) {
        (None, "relations" | "schemas") => Vec::new(),
        _ => facts.roles()?,
    };
    let public = Role::default();
    let user = user.map(|name| match all.iter().find(|role| role.name == name) {
        _ if name == "public" => Ok(all.iter().find(|role| role.name.is_empty()).unwrap_or(&public)),
        Some(role) => Ok(role),
        None => fail("42704", format!("role \"{name}\" does not exist")),
    });
    let user = user.transpose()?;
    let has_all = user.map_or_else(|| facts.is_superuser(), |user| user.is_superuser);
    // The roles that it is, by whatever roles.
    let mut names = vec![
        user.map_or_else(|| facts.user(), |user| user.name.clone()),
        String::new(),
    ];
    let mut at = 0;
    while let Some(name) = names.get(at).cloned() {
        let further = all
            .iter()
            .filter(|role| role.name == name)
            .flat_map(|role| &role.member_of);
        for other in further {
            if !names.contains(other) {
                names.push(other.clone());
            }
        }
        at += 1;
    }
    let roles: Vec<&Role> = all.iter().filter(|role| names.contains(&role.name)).collect();
    let may = |schema: &str, name: &str, action: Action| match user {
        None => facts.may(schema, name, action),
        Some(_) => {
            let ns = Namespace::new(facts.database(), schemas::collection(schema, name));
            let mut held = roles.iter().flat_map(|role| &role.held);
            held.any(|(of, actions)| *of == ns && actions.has(action))
        }
    };
    let letters = |held: &dyn Fn(Action) -> bool| match has_all {
        true => "*".to_owned(),
        false => {
            let held = PRIVILEGES.iter().filter(|(_, _, action)| held(*action));
            held.map(|(letter, ..)| *letter).collect()
        }
    };
    Ok(match kind {
        "relations" => {
            let relations = facts.relations()?;
            let of_catalog = (0, if has_all { "*" } else { "r" }.to_owned());
            let each = relations.iter().map(|relation| {
                let table = &relation.table;
                (
                    i64::from(relation.oid),
                    letters(&|action| may(&table.schema, &table.name, action)),
                )
            });
            let sequences = facts.sequences()?.into_iter();
            let sequences = sequences.map(|own| {
                (
                    i64::from(own.oid),
                    letters(&|action| may(&own.schema, &own.name, action)),
                )
            });
            each.chain(sequences).chain([of_catalog]).collect()
        }
        "schemas" => {
            let own = [
                (super::PG_CATALOG, "pg_catalog".to_owned()),
                (super::PUBLIC, schemas::PUBLIC.to_owned()),
                (super::INFORMATION_SCHEMA, "information_schema".to_owned()),
            ];
            let each = own.into_iter().chain(facts.schemas()).map(|(n, name)| {
                let makes = has_all || may(&name, "", Action::CreateCollection);
                (n, if makes { "CU" } else { "U" }.to_owned())
            });
            each.collect()
        }
        _ => {
            let roles = all.iter().filter(is_role);
            let each = roles.filter(|role| has_all || names.contains(&role.name));
            each.map(|role| (role.oid, "*".to_owned())).collect()
        }
    })
}
