//! `_mergeAuthzCollections`: users and roles that `mongorestore` has written to collections of its own take their places.

use super::users::FLAGS;
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::user_changes::{Changes, Outcome, change};
use nestor_database::users::{RoleName, UserName};
use nestor_database::write::Progress;
use nestor_model::{Document, Namespace, RawWriter, Result, ValueRef, bail};
use std::collections::BTreeSet;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "_mergeAuthzCollections",
    "Takes over users and roles that a tool has written to other collections.",
)
.flags(FLAGS.and(Flags::ADMIN))
.needs(Needs::Arguments(needs::merge))
.audited(Audited::Told(audited::merge))
.runs(run);

crate::args! {
    struct MergeArgs<'a>: "_mergeAuthzCollections" command {
        "tempUsersCollection" => users: Option<&'a str>,
        "tempRolesCollection" => roles: Option<&'a str>,
        /// Of this database only; of all if it is empty.
        "db" => db: Option<&'a str>,
        /// Those that the collections do not hold are removed.
        "drop" => drop: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = MergeArgs::parse(context.body, context.sequences)?;
    let users = args.users.filter(|name| !name.is_empty()).map(namespace).transpose()?;
    let roles = args.roles.filter(|name| !name.is_empty()).map(namespace).transpose()?;
    if users.is_none() && roles.is_none() {
        bail!(
            BadValue,
            "Must provide at least one of \"tempUsersCollection\" and \"tempRolesCollection\""
        );
    }
    let db = args.db.filter(|db| !db.is_empty());
    let is_meant = |document: &Document| db.is_none() || text(document, "db") == db;
    let mut progress = Progress::default();
    change(context, &mut progress, |changes| {
        if let Some(from) = &roles {
            let new = read(changes, from, &is_meant, |doc| {
                Some(RoleName::new(text(doc, "role")?, text(doc, "db")?).id())
            })?;
            if args.drop {
                let stays = ids(&new);
                changes.roles(|old| gone(old, &stays, &is_meant))?;
            }
            for (id, document) in new {
                changes.role(&id, |_| Ok(Outcome::Put(document)))?;
            }
        }
        if let Some(from) = &users {
            let new = read(changes, from, &is_meant, |doc| {
                Some(UserName::new(text(doc, "user")?, text(doc, "db")?).id())
            })?;
            if args.drop {
                let stays = ids(&new);
                changes.users(|old| gone(old, &stays, &is_meant))?;
            }
            for (id, document) in new {
                changes.user(&id, |_| Ok(Outcome::Put(document)))?;
            }
        }
        Ok(())
    })?;
    context.finish_concern(progress.last, reply, false)
}

fn namespace(name: &str) -> Result<Namespace> {
    match name.split_once('.') {
        Some((db, coll)) if !db.is_empty() && !coll.is_empty() => Ok(Namespace::new(db, coll)),
        _ => bail!(InvalidNamespace, "'{name}' is no namespace"),
    }
}

fn text<'d>(document: &'d Document, field: &str) -> Option<&'d str> {
    document.get(field).and_then(ValueRef::as_str)
}

/// The documents of `from` that are meant, with their `_id`s, which `id` makes of their names.
fn read(
    changes: &Changes<'_, '_>,
    from: &Namespace,
    is_meant: &dyn Fn(&Document) -> bool,
    id: impl Fn(&Document) -> Option<String>,
) -> Result<Vec<(String, Document)>> {
    let mut out = Vec::new();
    for document in changes
        .documents(from)?
        .into_iter()
        .filter(|document| is_meant(document))
    {
        match id(&document) {
            Some(id) if text(&document, "_id") == Some(&id) => out.push((id, document)),
            _ => bail!(
                BadValue,
                "a document of {from} is neither that of a user nor that of a role"
            ),
        }
    }
    Ok(out)
}

fn ids(documents: &[(String, Document)]) -> BTreeSet<&str> {
    documents.iter().map(|(id, _)| id.as_str()).collect()
}

/// The outcome for a stored document that the new ones are to replace.
fn gone(old: &Document, stays: &BTreeSet<&str>, is_meant: &dyn Fn(&Document) -> bool) -> Outcome {
    match is_meant(old) && !text(old, "_id").is_some_and(|id| stays.contains(id)) {
        true => Outcome::Remove,
        false => Outcome::Keep,
    }
}
