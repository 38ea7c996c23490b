//! Privileges: actions on resources, some of which stand for many, and all the privileges of one user, ready to be asked.
//!
//! Source: manual, "Resource Document".

use super::{Action, Actions, Privilege, Resource};
use nestor_model::namespace::{CONFIG, LOCAL};
use nestor_model::{DocRef, Document, Namespace, Result, Str, ValueRef, bail, doc};
use std::collections::{BTreeMap, HashMap};

/// The resources that a grant is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// Whatever there is: `{anyResource: true}`.
    Anything,
    /// All databases but `config` and `local`, and their collections but for system collections: `{db: "", collection: ""}`.
    AllDatabases,
    /// A database and its collections but for system collections: `{db: "d", collection: ""}`.
    Database(Str),
    /// The collections of that name, in all databases: `{db: "", collection: "c"}`.
    Everywhere(Str),
    /// One collection: `{db: "d", collection: "c"}`.
    Collection(Str, Str),
    /// The server: `{cluster: true}`.
    Cluster,
}

/// Actions on resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// On which.
    pub on: Pattern,
    /// What.
    pub actions: Actions,
}

/// Whether a collection is the server's own: a right on its database says nothing of it.
pub fn is_system(db: &str, coll: &str) -> bool {
    coll.starts_with("system.") || db == LOCAL && coll.starts_with("replset.")
}

fn is_internal(db: &str) -> bool {
    matches!(db, CONFIG | LOCAL)
}

impl Pattern {
    /// One collection.
    pub fn collection(db: &str, coll: &str) -> Self {
        Self::Collection(db.into(), coll.into())
    }

    /// Reads a resource document.
    ///
    /// Errors: 2 for what is none; 40415 for fields that nobody knows.
    pub fn parse(doc: DocRef<'_>) -> Result<Self> {
        let (mut db, mut coll, mut cluster, mut anything) = (None, None, None, None);
        for (name, value) in doc.iter() {
            match (name, value) {
                ("db", ValueRef::String(text)) => db = Some(text),
                ("collection", ValueRef::String(text)) => coll = Some(text),
                ("cluster", ValueRef::Bool(is_it)) => cluster = Some(is_it),
                ("anyResource", ValueRef::Bool(is_it)) => anything = Some(is_it),
                ("db" | "collection" | "cluster" | "anyResource", other) => bail!(
                    TypeMismatch,
                    "a resource's {name} must not be of type {}",
                    other.bson_type().alias()
                ),
                _ => bail!(40415, "BSON field 'resource.{name}' is an unknown field."),
            }
        }
        Ok(match (db, coll, cluster, anything) {
            (None, None, Some(true), None) => Self::Cluster,
            (None, None, None, Some(true)) => Self::Anything,
            (Some(""), Some(""), None, None) => Self::AllDatabases,
            (Some(""), Some(coll), None, None) => Self::Everywhere(coll.into()),
            (Some(db), Some(""), None, None) => Self::Database(db.into()),
            (Some(db), Some(coll), None, None) => Self::collection(db, coll),
            _ => bail!(
                BadValue,
                "resource must be {{db: .., collection: ..}}, {{cluster: true}} or {{anyResource: true}}"
            ),
        })
    }

    /// As a resource document.
    pub fn to_document(&self) -> Document {
        let named = |db: &Str, coll: &Str| doc! { "db": db.clone(), "collection": coll.clone() };
        let none = Str::default();
        match self {
            Self::Anything => doc! { "anyResource": true },
            Self::Cluster => doc! { "cluster": true },
            Self::AllDatabases => named(&none, &none),
            Self::Database(db) => named(db, &none),
            Self::Everywhere(coll) => named(&none, coll),
            Self::Collection(db, coll) => named(db, coll),
        }
    }

    /// The database that whoever grants it must be allowed to grant roles of; `None` when it reaches beyond one.
    pub fn database(&self) -> Option<&str> {
        match self {
            Self::Database(db) | Self::Collection(db, _) => Some(db),
            _ => None,
        }
    }
}

impl Grant {
    /// Actions on resources.
    pub fn new(on: Pattern, actions: Actions) -> Self {
        Self { on, actions }
    }

    /// Reads `{resource: {..}, actions: [..]}`.
    ///
    /// Errors: 2 for what is none, unknown actions included; 40415 for fields that nobody knows.
    pub fn parse(doc: DocRef<'_>) -> Result<Self> {
        for (name, _) in doc.iter() {
            if !matches!(name, "resource" | "actions") {
                bail!(40415, "BSON field 'privilege.{name}' is an unknown field.");
            }
        }
        let Some(resource) = doc.get("resource").and_then(ValueRef::as_document) else {
            bail!(BadValue, "a privilege needs a document as its resource");
        };
        let Some(names) = doc.get("actions").and_then(ValueRef::as_array) else {
            bail!(BadValue, "a privilege needs an array of its actions");
        };
        let mut actions = Actions::NONE;
        for name in names.iter() {
            match name.as_str().map(|name| (name, Action::of_name(name))) {
                Some((_, Some(action))) => actions.add(action),
                Some((name, None)) => bail!(BadValue, "Unrecognized action privilege string: {name}"),
                None => bail!(BadValue, "actions must be strings, not {}", name.bson_type().alias()),
            }
        }
        if actions.is_empty() {
            bail!(BadValue, "a privilege needs at least one action");
        }
        Ok(Self::new(Pattern::parse(resource)?, actions))
    }

    /// As [`Grant::parse`] reads it.
    pub fn to_document(&self) -> Document {
        let actions: Vec<nestor_model::Value> = self.actions.iter().map(|action| action.name().into()).collect();
        doc! { "resource": self.on.to_document(), "actions": actions }
    }
}

/// Joins grants on the same resources, in the order of these.
pub fn merged(grants: impl IntoIterator<Item = Grant>) -> Vec<Grant> {
    let mut by_pattern = BTreeMap::<Pattern, Actions>::new();
    for grant in grants {
        let actions = by_pattern.entry(grant.on).or_default();
        *actions = actions.and(grant.actions);
    }
    let grants = by_pattern.into_iter();
    grants.map(|(on, actions)| Grant { on, actions }).collect()
}

/// All that somebody was given. Asking costs a few look-ups and allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    anything: Actions,
    cluster: Actions,
    all_databases: Actions,
    databases: HashMap<Str, Actions>,
    everywhere: HashMap<Str, Actions>,
    collections: HashMap<Namespace, Actions>,
}

impl FromIterator<Grant> for Grants {
    fn from_iter<I: IntoIterator<Item = Grant>>(grants: I) -> Self {
        let mut out = Self::default();
        for Grant { on, actions } in grants {
            let held = match on {
                Pattern::Anything => &mut out.anything,
                Pattern::Cluster => &mut out.cluster,
                Pattern::AllDatabases => &mut out.all_databases,
                Pattern::Database(db) => out.databases.entry(db).or_default(),
                Pattern::Everywhere(coll) => out.everywhere.entry(coll).or_default(),
                Pattern::Collection(db, coll) => out.collections.entry(Namespace::new(db, coll)).or_default(),
            };
            *held = held.and(actions);
        }
        out
    }
}

impl Grants {
    /// Whether `privilege` was given.
    pub fn allow(&self, privilege: &Privilege) -> bool {
        self.on(&privilege.resource).has(privilege.action)
    }

    /// The actions that were granted on a resource.
    pub fn on(&self, resource: &Resource) -> Actions {
        match resource {
            Resource::Cluster => self.anything.and(self.cluster),
            Resource::AllCollections => self.anything.and(self.all_databases),
            Resource::Database(db) => self.anything.and(self.on_database(db)),
            Resource::Collection(ns) => self.on_collection(ns),
        }
    }

    /// The actions that were granted on a collection, by whichever resource matches it.
    pub fn on_collection(&self, ns: &Namespace) -> Actions {
        let found = |actions: Option<&Actions>| actions.copied().unwrap_or_default();
        let mut out = self.anything.and(found(self.collections.get(ns)));
        if !self.everywhere.is_empty() {
            out = out.and(found(self.everywhere.get(&ns.coll)));
        }
        match is_system(&ns.db, &ns.coll) {
            true => out,
            false => out.and(self.on_database(&ns.db)),
        }
    }

    /// Whether anything was given on a database or on one of its collections.
    pub fn any_in(&self, db: &str) -> bool {
        let is_some = |given: Actions| !given.is_empty();
        is_some(self.anything.and(self.on_database(db)))
            || self
                .collections
                .iter()
                .any(|(ns, given)| ns.db == db && is_some(*given))
    }

    fn on_database(&self, db: &str) -> Actions {
        let own = self.databases.get(db).copied().unwrap_or_default();
        match is_internal(db) {
            true => own,
            false => own.and(self.all_databases),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIND: Actions = Actions::of(&[Action::Find]);

    fn grants(on: Pattern) -> Grants {
        [Grant::new(on, FIND)].into_iter().collect()
    }

    fn may_find(grants: &Grants, db: &str, coll: &str) -> bool {
        let resource = Resource::Collection(Namespace::new(db, coll));
        grants.allow(&Privilege {
            resource,
            action: Action::Find,
        })
    }

    /// Manual, "Resource Document": which collections each form is about.
    #[test]
    fn what_resources_stand_for() {
        let asked = [
            ("d", "c"),
            ("d", "x"),
            ("e", "c"),
            ("d", "system.js"),
            ("local", "c"),
            ("local", "replset.x"),
        ];
        let cases = [
            (Pattern::collection("d", "c"), [true, false, false, false, false, false]),
            (
                Pattern::collection("d", "system.js"),
                [false, false, false, true, false, false],
            ),
            (Pattern::Database("d".into()), [true, true, false, false, false, false]),
            (
                Pattern::Database("local".into()),
                [false, false, false, false, true, false],
            ),
            (Pattern::Everywhere("c".into()), [true, false, true, false, true, false]),
            (Pattern::AllDatabases, [true, true, true, false, false, false]),
            (Pattern::Anything, [true; 6]),
            (Pattern::Cluster, [false; 6]),
        ];
        for (on, expected) in cases {
            let grants = grants(on.clone());
            let got = asked.map(|(db, coll)| may_find(&grants, db, coll));
            assert_eq!(got, expected, "{on:?}");
        }
    }

    #[test]
    fn databases_and_the_server_are_resources_too() {
        let allowed = |on: Pattern, resource: Resource| {
            let action = Action::Find;
            grants(on).allow(&Privilege { resource, action })
        };
        assert!(allowed(Pattern::Database("d".into()), Resource::Database("d".into())));
        assert!(!allowed(Pattern::collection("d", "c"), Resource::Database("d".into())));
        assert!(allowed(Pattern::AllDatabases, Resource::AllCollections));
        assert!(!allowed(Pattern::Database("d".into()), Resource::AllCollections));
        assert!(allowed(Pattern::Cluster, Resource::Cluster));
        assert!(!allowed(Pattern::AllDatabases, Resource::Cluster));
    }

    #[test]
    fn grants_are_read_back() {
        for on in [
            Pattern::Anything,
            Pattern::Cluster,
            Pattern::AllDatabases,
            Pattern::Database("d".into()),
            Pattern::Everywhere("c".into()),
            Pattern::collection("d", "c"),
        ] {
            let grant = Grant::new(on, FIND);
            assert_eq!(Grant::parse(grant.to_document().as_ref()).ok(), Some(grant));
        }
    }

    #[test]
    fn what_is_no_grant() {
        let none: Vec<nestor_model::Value> = Vec::new();
        let find: Vec<nestor_model::Value> = vec!["find".into()];
        let fly: Vec<nestor_model::Value> = vec!["fly".into()];
        let on = doc! { "db": "d", "collection": "c" };
        for wrong in [
            doc! {},
            doc! { "resource": on.clone() },
            doc! { "resource": on.clone(), "actions": none },
            doc! { "resource": on.clone(), "actions": fly },
            doc! { "resource": on.clone(), "actions": find.clone(), "more": 1 },
            doc! { "resource": doc! { "db": "d" }, "actions": find.clone() },
            doc! { "resource": doc! { "cluster": false }, "actions": find.clone() },
            doc! { "resource": doc! { "cluster": true, "anyResource": true }, "actions": find.clone() },
            doc! { "resource": doc! { "db": 1, "collection": "" }, "actions": find },
        ] {
            assert!(Grant::parse(wrong.as_ref()).is_err(), "{wrong:?}");
        }
    }
}
