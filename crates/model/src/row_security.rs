//! Row security of a collection: who may see and write which of its documents.
//!
//! ```text
//! {enabled: true, forced: true, policies: [{name: "own", command: "ALL", roles: ["app"], using: "owner = current_user", check: "true"}]}
//! ```
//!
//! Conditions are texts of SQL, which commands keep and do not read: they refuse who is subject to policies. `roles` are names of SQL's;
//! without it a policy is for everybody. A policy with `restrictive: true` takes away from what others give.

use crate::value::{DocRef, Document, Value, ValueRef};
use crate::{Result, bail};

/// Most policies of a collection.
pub const POLICIES_MAX: usize = 1000;

/// What a policy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PolicyCommand {
    All,
    Select,
    Insert,
    Update,
    Delete,
}

impl PolicyCommand {
    const EACH: [(&'static str, Self); 5] = [
        ("ALL", Self::All),
        ("SELECT", Self::Select),
        ("INSERT", Self::Insert),
        ("UPDATE", Self::Update),
        ("DELETE", Self::Delete),
    ];

    /// As SQL says it.
    pub fn word(self) -> &'static str {
        let own = Self::EACH.iter().find(|(_, own)| *own == self);
        own.map_or("ALL", |(word, _)| word)
    }

    fn parse(word: &str) -> Result<Self> {
        match Self::EACH.iter().find(|(own, _)| *own == word) {
            Some((_, own)) => Ok(*own),
            None => bail!(BadValue, "a policy is for no command '{word}'"),
        }
    }
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name, which no other one of the collection has.
    pub name: String,
    /// What it is for.
    pub command: PolicyCommand,
    /// It takes away from what others give.
    pub is_restrictive: bool,
    /// Whom it is for; none for everybody.
    pub roles: Vec<String>,
    /// What has to hold of documents that are there.
    pub using: Option<String>,
    /// What has to hold of documents that are written; if there is none, what holds of those that are there.
    pub check: Option<String>,
}

/// The row security of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSecurity {
    /// The policies count.
    pub is_on: bool,
    /// They count for the owner, too.
    pub is_forced: bool,
    /// The policies, by name.
    pub policies: Vec<Policy>,
}

impl RowSecurity {
    /// Reads what [`RowSecurity::listed`] writes.
    ///
    /// Errors: 14 for other types, 2 for what means nothing, 9 for fields that there are not.
    pub fn parse(listed: DocRef<'_>) -> Result<Self> {
        let mut out = Self::default();
        for (name, value) in listed.iter() {
            match name {
                "enabled" => out.is_on = flag(name, value)?,
                "forced" => out.is_forced = flag(name, value)?,
                "policies" => {
                    let Some(items) = value.as_array() else {
                        return wrong(name, "array", value);
                    };
                    for item in items.iter() {
                        match item.as_document() {
                            Some(policy) => out.policies.push(Policy::parse(policy)?),
                            None => return wrong("policies", "object", item),
                        }
                    }
                }
                other => bail!(FailedToParse, "unknown field of row security: '{other}'"),
            }
        }
        if out.policies.len() > POLICIES_MAX {
            bail!(BadValue, "at most {POLICIES_MAX} policies are of a collection");
        }
        out.policies.sort_by(|a, b| a.name.cmp(&b.name));
        match out.policies.windows(2).find(|pair| pair[0].name == pair[1].name) {
            Some(twice) => bail!(BadValue, "two policies have the name '{}'", twice[0].name),
            None => Ok(out),
        }
    }

    /// Whether there is nothing to keep.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// As it stands in the options of the collection.
    pub fn listed(&self) -> Document {
        let mut out = Document::new();
        out.push("enabled", self.is_on);
        out.push("forced", self.is_forced);
        let policies: Vec<Value> = self.policies.iter().map(|own| own.listed().into()).collect();
        out.push("policies", policies);
        out
    }
}

impl Policy {
    fn parse(listed: DocRef<'_>) -> Result<Self> {
        let mut out = Self {
            name: String::new(),
            command: PolicyCommand::All,
            is_restrictive: false,
            roles: Vec::new(),
            using: None,
            check: None,
        };
        for (name, value) in listed.iter() {
            match name {
                "name" => text(name, value)?.clone_into(&mut out.name),
                "command" => out.command = PolicyCommand::parse(text(name, value)?)?,
                "restrictive" => out.is_restrictive = flag(name, value)?,
                "roles" => {
                    let Some(items) = value.as_array() else {
                        return wrong(name, "array", value);
                    };
                    for item in items.iter() {
                        out.roles.push(text(name, item)?.to_owned());
                    }
                    if out.roles.is_empty() {
                        bail!(BadValue, "a policy for nobody; one without 'roles' is for everybody");
                    }
                }
                "using" => out.using = Some(text(name, value)?.to_owned()),
                "check" => out.check = Some(text(name, value)?.to_owned()),
                other => bail!(FailedToParse, "unknown field of a policy: '{other}'"),
            }
        }
        match out.name.is_empty() {
            true => bail!(BadValue, "a policy has no name"),
            false => Ok(out),
        }
    }

    fn listed(&self) -> Document {
        let mut out = Document::new();
        out.push("name", self.name.as_str());
        out.push("command", self.command.word());
        if self.is_restrictive {
            out.push("restrictive", true);
        }
        if !self.roles.is_empty() {
            let roles: Vec<Value> = self.roles.iter().map(|role| role.as_str().into()).collect();
            out.push("roles", roles);
        }
        for (name, condition) in [("using", &self.using), ("check", &self.check)] {
            if let Some(condition) = condition {
                out.push(name, condition.as_str());
            }
        }
        out
    }
}

fn wrong<T>(name: &str, wanted: &str, value: ValueRef<'_>) -> Result<T> {
    bail!(
        TypeMismatch,
        "'{name}' of row security is of type '{}', expected '{wanted}'",
        value.bson_type().alias()
    )
}

fn flag(name: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Bool(_) => Ok(value.truthy()),
        other => wrong(name, "bool", other),
    }
}

fn text<'v>(name: &str, value: ValueRef<'v>) -> Result<&'v str> {
    value.as_str().map_or_else(|| wrong(name, "string", value), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    #[test]
    fn what_is_listed_is_read() {
        let policy = |name: &str, is_restrictive, roles: &[&str]| Policy {
            name: name.to_owned(),
            command: PolicyCommand::Update,
            is_restrictive,
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            using: Some("a = 1".to_owned()),
            check: None,
        };
        let own = RowSecurity {
            is_on: true,
            is_forced: false,
            policies: vec![policy("a", false, &[]), policy("b", true, &["r", "s"])],
        };
        let again = RowSecurity::parse(own.listed().as_ref()).expect("what was listed");
        assert_eq!(again, own);
        assert!(RowSecurity::default().is_nothing() && !own.is_nothing());
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let of = |policy: Document| doc! { "policies": vec![Value::from(policy)] };
        for (listed, code) in [
            (doc! { "on": true }, 9),
            (doc! { "enabled": 1 }, 14),
            (doc! { "policies": doc! {} }, 14),
            (of(doc! { "using": "true" }), 2),
            (of(doc! { "name": "a", "command": "TRUNCATE" }), 2),
            (of(doc! { "name": "a", "roles": Vec::<Value>::new() }), 2),
            (of(doc! { "name": "a", "to": "b" }), 9),
            (of(doc! { "name": "a", "using": true }), 14),
        ] {
            let error = RowSecurity::parse(listed.as_ref()).expect_err("refused");
            assert_eq!(error.code().number(), code, "{listed:?}");
        }
        let twice = vec![Value::from(doc! { "name": "a" }), Value::from(doc! { "name": "a" })];
        let error = RowSecurity::parse(doc! { "policies": twice }.as_ref()).expect_err("refused");
        assert_eq!(error.code().number(), 2);
    }
}
