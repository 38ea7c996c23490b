//! Changing the documents of users and roles, in one commit for each command.

use crate::statement::Statement;
use crate::users::account;
use crate::users::name::{RoleName, UserName};
use crate::users::{documents, roles_namespace, user_document, users_namespace};
use crate::write::replace::put;
use crate::write::{Progress, begun, comments, writable};
use nestor_exec::point;
use nestor_exec::write::Writer;
use nestor_model::namespace::ADMIN;
use nestor_model::{Document, Namespace, Result, Value, ValueRef, doc};
use nestor_query::env::OpContext;
use nestor_storage::{Bytes, View, WriteSet, record};

/// The outcome for a document.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It stays, or is not there.
    Keep,
    /// This is in its place.
    Put(Document),
    /// It goes.
    Remove,
}

/// The write set of one attempt to change users and roles.
pub struct Changes<'c, 's> {
    ws: &'c mut WriteSet,
    statement: &'c Statement<'s>,
    op: &'c OpContext,
    /// UUIDs of the collections of users, of roles and of versions, should they be made.
    uuids: &'c mut [Option<[u8; 16]>; 3],
}

/// Changes users and roles: everything that `work` does, or nothing. It runs again after a conflict.
///
/// Errors: those of `work` and of the commit.
pub fn change<T>(
    statement: &Statement<'_>,
    progress: &mut Progress,
    mut work: impl FnMut(&mut Changes<'_, '_>) -> Result<T>,
) -> Result<T> {
    let op = OpContext::new(crate::clock::now_ms(), statement.database.last_time(), 0);
    let mut uuids = [None; 3];
    statement.atomically(progress, |ws| {
        work(&mut Changes {
            ws,
            statement,
            op: &op,
            uuids: &mut uuids,
        })
    })
}

/// Changes users and roles beside what else a write set has.
///
/// Errors: those of `work`.
pub fn within<T>(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    work: impl FnOnce(&mut Changes<'_, '_>) -> Result<T>,
) -> Result<T> {
    let op = OpContext::new(crate::clock::now_ms(), statement.database.last_time(), 0);
    work(&mut Changes {
        ws,
        statement,
        op: &op,
        uuids: &mut [None; 3],
    })
}

impl Changes<'_, '_> {
    /// The state with the changes so far.
    pub fn view(&self) -> &dyn View {
        self.ws
    }

    /// Changes the user of that `_id`; `decide` is given the document, if there is one.
    pub fn user(&mut self, id: &str, decide: impl FnOnce(Option<Document>) -> Result<Outcome>) -> Result<()> {
        self.one(&users_namespace(), id, decide)?;
        // Tools that carry users look here for the form that they are stored in.
        let form = doc! { "_id": "authSchema", "currentVersion": 5 };
        self.one(
            &Namespace::new(ADMIN, "system.version"),
            "authSchema",
            |old| match old {
                Some(_) => Ok(Outcome::Keep),
                None => Ok(Outcome::Put(form)),
            },
        )
    }

    /// Changes the role of that `_id`; `decide` is given the document, if there is one.
    pub fn role(&mut self, id: &str, decide: impl FnOnce(Option<Document>) -> Result<Outcome>) -> Result<()> {
        self.one(&roles_namespace(), id, decide)
    }

    /// Changes all users; how many were changed or removed.
    pub fn users(&mut self, decide: impl FnMut(&Document) -> Outcome) -> Result<i64> {
        self.all(&users_namespace(), decide)
    }

    /// Changes all roles; how many were changed or removed.
    pub fn roles(&mut self, decide: impl FnMut(&Document) -> Outcome) -> Result<i64> {
        self.all(&roles_namespace(), decide)
    }

    /// The documents of a collection, the changes so far included.
    pub fn documents(&self, ns: &Namespace) -> Result<Vec<Document>> {
        documents(self.ws, ns, &self.statement.interrupt)
    }

    /// Takes roles from all who have them.
    pub fn take_from_all(&mut self, gone: impl Fn(&RoleName) -> bool) -> Result<()> {
        let without = |doc: &Document| match without_roles(doc, &gone) {
            Some(changed) => Outcome::Put(changed),
            None => Outcome::Keep,
        };
        self.users(without)?;
        self.roles(without)?;
        Ok(())
    }

    fn one(
        &mut self,
        ns: &Namespace,
        id: &str,
        decide: impl FnOnce(Option<Document>) -> Result<Outcome>,
    ) -> Result<()> {
        let found = match self.ws.catalog().get(ns).cloned() {
            Some(collection) => point::by_id(self.ws, &collection, ValueRef::String(id))?,
            None => None,
        };
        let old = found.as_ref().map(|(_, bytes)| bytes.document().as_doc().to_document());
        let outcome = decide(old)?;
        self.apply(ns, found, outcome)
    }

    fn all(&mut self, ns: &Namespace, mut decide: impl FnMut(&Document) -> Outcome) -> Result<i64> {
        let Some(collection) = self.ws.catalog().get(ns).cloned() else {
            return Ok(0);
        };
        let mut found: Vec<(Bytes, Bytes, Outcome)> = Vec::new();
        let mut cursor = self.ws.cursor(collection.records);
        let mut more = cursor.first()?;
        while more {
            let doc = record::document(cursor.value()?).as_doc().to_document();
            let outcome = decide(&doc);
            if !matches!(outcome, Outcome::Keep) {
                found.push((Bytes::copy_from(cursor.key()), cursor.value_bytes()?, outcome));
            }
            more = cursor.next()?;
            self.statement.interrupt.check()?;
        }
        drop(cursor);
        let count = found.len();
        for (key, bytes, outcome) in found {
            self.apply(ns, Some((key, bytes)), outcome)?;
        }
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn apply(&mut self, ns: &Namespace, found: Option<(Bytes, Bytes)>, outcome: Outcome) -> Result<()> {
        if matches!(outcome, Outcome::Keep) {
            return Ok(());
        }
        let uuid = match ns.coll.as_str() {
            "system.users" => &mut self.uuids[0],
            "system.roles" => &mut self.uuids[1],
            _ => &mut self.uuids[2],
        };
        let collection = writable(self.ws, ns, self.statement, uuid)?;
        let mut writer = Writer::new(self.ws, collection, self.op, self.statement.origin(&ns.db))?;
        match (found, outcome) {
            (found, Outcome::Put(doc)) => put(&mut writer, found.as_ref(), doc.to_raw())?,
            (Some((key, old)), Outcome::Remove) => {
                let gone = old.document().as_doc().to_document();
                writer.delete(&key, old.document(), None)?;
                self.forget_beside(&gone)?;
            }
            (_, Outcome::Keep) | (None, Outcome::Remove) => {}
        }
        Ok(())
    }

    /// What is said of a user or a role, and what its sessions began with, goes with it; a role whose name a user still has was not the user.
    fn forget_beside(&mut self, gone: &Document) -> Result<()> {
        let text = |field: &str| gone.get(field).and_then(ValueRef::as_str);
        match (text("user").or(text("role")), text("db")) {
            (Some(name), Some(db)) => {
                let gone = UserName::new(name, db);
                if user_document(self.ws, &gone)?.is_some() {
                    return Ok(());
                }
                let uuid = comments::built_in(comments::ROLES);
                let named = ([name.to_owned()], []);
                comments::follow(self.statement, self.ws, (db, uuid), "roles", (&named.0, &named.1))?;
                begun::forget_role(self.statement, self.ws, &gone)
            }
            _ => Ok(()),
        }
    }
}

/// The document of a user or role without some of its roles; `None` when it has none of them.
pub fn without_roles(doc: &Document, gone: impl Fn(&RoleName) -> bool) -> Option<Document> {
    let roles = account::names(doc.get("roles"));
    let kept: Vec<RoleName> = roles.iter().filter(|role| !gone(role)).cloned().collect();
    if kept.len() == roles.len() {
        return None;
    }
    let mut out = doc.clone();
    out.set("roles", role_values(&kept));
    Some(out)
}

/// Names of roles as they are stored.
pub fn role_values(roles: &[RoleName]) -> Vec<Value> {
    roles.iter().map(|role| role.to_document().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_taken_from_those_who_have_them() {
        let roles = [RoleName::new("a", "d"), RoleName::new("b", "d")];
        let user = doc! { "user": "u", "roles": role_values(&roles) };
        assert!(without_roles(&user, |role| role.role == "c").is_none());
        let changed = without_roles(&user, |role| role.role == "a").expect("the user has it");
        assert_eq!(account::names(changed.get("roles")), roles[1..]);
    }
}
