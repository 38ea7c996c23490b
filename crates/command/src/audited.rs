//! What the audit log records of a command: a column of the table of commands
//! ([`Facts::audited`](crate::facts::Facts::audited)).
//!
//! What a command did to the catalog is found at its commit and needs no column.
//!
//! Source: manual, "mongo Schema Audit Messages".

use nestor_database::users::{RoleName, roles_namespace, users_namespace};
use nestor_model::{Document, RawDoc, Value, ValueRef, doc};

/// What the audit log records of a command.
#[derive(Clone, Copy, Debug)]
pub enum Audited {
    /// Nothing.
    Nothing,
    /// What it tried to do to the catalog, if it failed.
    Attempts(fn(&Words<'_>) -> Vec<Told>),
    /// What it did to a user or a role, or tried to do, under the command's own name.
    Account {
        /// The field of the record that names the user or role; `None` for all of a database.
        whose: Option<&'static str>,
        /// The arguments that the record repeats.
        fields: &'static [&'static str],
    },
    /// This, whether or not it failed.
    Told(fn(&Words<'_>) -> Told),
    /// That it wrote to the documents of users or roles themselves, if it did.
    Documents,
}

/// An action, as the log names it, and its `param`.
pub type Told = (&'static str, Document);

/// The words of a command that is recorded.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    /// The command's name.
    pub name: &'static str,
    /// The database that it was sent to.
    pub db: &'a str,
    /// The database and the collection that it names, if it names one.
    pub collection: Option<(&'a str, &'a str)>,
    /// All of them.
    pub body: RawDoc<'a>,
}

/// The arguments of a new user.
pub const USER: &[&str] = &["customData", "roles", "authenticationRestrictions"];
/// The arguments of a role.
pub const ROLE: &[&str] = &["roles", "privileges", "authenticationRestrictions"];
/// Roles that are given or taken.
pub const ROLES: &[&str] = &["roles"];
/// Privileges that are given or taken.
pub const PRIVILEGES: &[&str] = &["privileges"];

impl Audited {
    /// A change of all users or roles of a database.
    pub const ALL: Self = Self::Account {
        whose: None,
        fields: &[],
    };

    /// A change of a user.
    pub const fn user(fields: &'static [&'static str]) -> Self {
        Self::Account {
            whose: Some("user"),
            fields,
        }
    }

    /// A change of a role.
    pub const fn role(fields: &'static [&'static str]) -> Self {
        Self::Account {
            whose: Some("role"),
            fields,
        }
    }

    /// What the command tried to do to the catalog and has not done.
    pub fn attempts(self, words: &Words<'_>) -> Vec<Told> {
        match self {
            Self::Attempts(attempts) => attempts(words),
            _ => Vec::new(),
        }
    }

    /// What is recorded of the command whether or not it failed.
    pub fn told(self, words: &Words<'_>) -> Option<Told> {
        match self {
            Self::Nothing | Self::Attempts(_) => None,
            Self::Account { whose, fields } => {
                let mut param = words.account(whose);
                words.repeat(fields, &mut param);
                Some((words.name, param))
            }
            Self::Told(told) => Some(told(words)),
            Self::Documents => words.direct().map(|param| ("directAuthMutation", param)),
        }
    }
}

impl Words<'_> {
    /// The namespace that it names, or its database.
    pub fn ns(&self) -> String {
        match self.collection {
            Some((db, coll)) => format!("{db}.{coll}"),
            None => self.db.to_owned(),
        }
    }

    fn value(&self, field: &str) -> Option<Value> {
        self.body.get(field).map(|value| value.to_value())
    }

    fn first(&self) -> Option<Value> {
        self.body.iter().next().map(|(_, value)| value.to_value())
    }

    fn account(&self, whose: Option<&'static str>) -> Document {
        let mut param = Document::new();
        if let Some(whose) = whose {
            param.push(whose, self.first());
        }
        param.push("db", self.db);
        param
    }

    fn repeat(&self, fields: &[&'static str], param: &mut Document) {
        for field in fields {
            if let Some(value) = self.shown(field) {
                param.push(*field, value);
            }
        }
    }

    /// A field as records show it: names of roles always with their databases.
    fn shown(&self, field: &str) -> Option<Value> {
        let value = self.body.get(field)?;
        let (Some(roles), "roles") = (value.as_array(), field) else {
            return Some(value.to_value());
        };
        let named = roles.iter().map(|role| match RoleName::parse(role, self.db) {
            Ok(name) => Value::from(name.to_document()),
            Err(_) => role.to_value(),
        });
        Some(named.collect::<Vec<_>>().into())
    }

    /// A write to the documents of users or roles themselves. What is written stays out of the record: it holds credentials.
    fn direct(&self) -> Option<Document> {
        let (db, coll) = self.collection?;
        let own = [users_namespace(), roles_namespace()];
        let ns = own.iter().find(|ns| ns.db == db && ns.coll == coll)?;
        Some(doc! { "ns": ns.to_string(), "operation": self.name })
    }
}

/// An index, as records of what happens to it describe it.
pub fn index(ns: &str, name: &str, spec: Document, state: &str) -> Document {
    doc! { "ns": ns, "indexName": name, "indexSpec": spec, "indexBuildState": state }
}

/// A collection or view was to be made.
pub fn create(words: &Words<'_>) -> Vec<Told> {
    vec![("createCollection", doc! { "ns": words.ns() })]
}

/// A collection or view was to go.
pub fn drop_collection(words: &Words<'_>) -> Vec<Told> {
    vec![("dropCollection", doc! { "ns": words.ns() })]
}

/// A database was to go.
pub fn drop_database(words: &Words<'_>) -> Vec<Told> {
    vec![("dropDatabase", doc! { "ns": words.db })]
}

/// Indexes were to go.
pub fn drop_indexes(words: &Words<'_>) -> Vec<Told> {
    let param = doc! { "ns": words.ns(), "indexName": words.value("index") };
    vec![("dropIndex", param)]
}

/// A collection was to get another name.
pub fn rename(words: &Words<'_>) -> Vec<Told> {
    let param = doc! { "old": words.first(), "new": words.value("to") };
    vec![("renameCollection", param)]
}

/// Indexes were to be made.
pub fn create_indexes(words: &Words<'_>) -> Vec<Told> {
    let specs = words.body.get("indexes").and_then(ValueRef::as_array);
    let specs = specs.into_iter().flat_map(|specs| specs.iter());
    let told = specs.filter_map(ValueRef::as_document).map(|spec| {
        let name = spec.get("name").and_then(ValueRef::as_str).unwrap_or_default();
        let param = index(&words.ns(), name, spec.to_document(), "IndexBuildAborted");
        ("createIndex", param)
    });
    told.collect()
}

/// A user was changed; of a password only that it is another one.
pub fn update_user(words: &Words<'_>) -> Told {
    let mut param = words.account(Some("user"));
    param.push("passwordChanged", words.body.get("pwd").is_some());
    words.repeat(USER, &mut param);
    ("updateUser", param)
}

/// A client's message.
pub fn application_message(words: &Words<'_>) -> Told {
    ("applicationMessage", doc! { "msg": words.first() })
}

/// Somebody looked at parameters of the cluster.
pub fn cluster_parameter(words: &Words<'_>) -> Told {
    let param = doc! { "requestedClusterServerParameters": words.first() };
    ("getClusterParameter", param)
}

/// Users and roles were taken over from collections.
pub fn merge(words: &Words<'_>) -> Told {
    let document = words.body.as_doc().to_document();
    let param = doc! { "document": document, "ns": users_namespace().to_string(), "operation": "command" };
    ("directAuthMutation", param)
}
