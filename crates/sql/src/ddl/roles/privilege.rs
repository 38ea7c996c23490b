//! Privileges of SQL as actions on resources.

use crate::error::{fail, unsupported};
use crate::functions::PRIVILEGES;
use nestor_database::rights::{Action, Actions};
use nestor_model::Result;

/// What privileges are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    Sequence,
    Database,
    Schema,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Table => "relation",
            Self::Sequence => "sequence",
            Self::Database => "database",
            Self::Schema => "schema",
        }
    }

    /// All privileges on it.
    fn all(self) -> &'static [&'static str] {
        match self {
            Self::Table => &[
                "SELECT",
                "INSERT",
                "UPDATE",
                "DELETE",
                "TRUNCATE",
                "REFERENCES",
                "TRIGGER",
            ],
            Self::Sequence => &["USAGE", "SELECT", "UPDATE"],
            Self::Database => &["CREATE", "CONNECT", "TEMPORARY"],
            Self::Schema => &["CREATE", "USAGE"],
        }
    }
}

/// What privileges allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    /// The actions.
    pub(super) actions: Actions,
    /// There are among them some that everybody has: to connect to a database, to have temporary tables in it, to use a schema.
    pub(super) everybody: bool,
}

/// What `privileges` on such a thing allow; none are all.
///
/// Errors: 0LP01 for what is no privilege of such a thing; 0A000 for one that cannot be given without another.
pub(super) fn allowed(kind: Kind, privileges: &[String]) -> Result<Allowed> {
    let named: Vec<&str> = match privileges {
        [] => kind.all().to_vec(),
        named => named
            .iter()
            .map(|name| if name == "TEMP" { "TEMPORARY" } else { name.as_str() })
            .collect(),
    };
    if let Some(other) = named.iter().find(|name| !kind.all().contains(name)) {
        let is_any = ["SET", "ALTER SYSTEM"].contains(other) || PRIVILEGES.contains(other);
        return match is_any {
            true => fail("0LP01", format!("invalid privilege type {other} for {}", kind.name())),
            false => fail(
                "42601",
                format!("unrecognized privilege type \"{}\"", other.to_lowercase()),
            ),
        };
    }
    let has = |name: &str| named.contains(&name);
    let mut allowed = Allowed {
        actions: Actions::NONE,
        everybody: false,
    };
    for name in &named {
        let needs = match (kind, *name) {
            (Kind::Table, "TRUNCATE") => "DELETE",
            (Kind::Table, "REFERENCES") => "SELECT",
            // There are no triggers: who may do all else may do all that there is.
            (Kind::Table, "TRIGGER") if !kind.all().iter().all(|name| has(name)) => {
                return unsupported("the privilege TRIGGER");
            }
            _ => name,
        };
        if !has(needs) {
            return unsupported(format!("{name} without {needs}"));
        }
        match (kind, *name) {
            (Kind::Table | Kind::Sequence, "SELECT") => allowed.actions.add(Action::Find),
            (Kind::Table, "INSERT") => allowed.actions.add(Action::Insert),
            (Kind::Table | Kind::Sequence, "UPDATE") => allowed.actions.add(Action::Update),
            (Kind::Table, "DELETE") => allowed.actions.add(Action::Remove),
            (Kind::Sequence, "USAGE") => {
                allowed.actions = allowed.actions.and(Actions::of(&[Action::Find, Action::Update]))
            }
            (Kind::Database | Kind::Schema, "CREATE") => allowed.actions.add(Action::CreateCollection),
            (Kind::Database, _) | (Kind::Schema, "USAGE") => allowed.everybody = true,
            _ => {}
        }
    }
    Ok(allowed)
}
