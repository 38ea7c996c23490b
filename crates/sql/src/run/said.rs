//! What COMMENT ON has said of types and functions that somebody has made, and of what is built in.

use crate::bind::entry::{self, Object};
use crate::catalog::schemas;
use crate::catalog::system::{self, Said, SaidOfShared};
use crate::types::Type;
use nestor_database::write::comments;
use nestor_model::namespace::ADMIN;
use nestor_model::{Document, Result, ValueRef};
use nestor_storage::View;
use std::collections::HashMap;

/// The types of a database that somebody has made, each with its schema.
pub(super) fn made_types(view: &dyn View, db: &str) -> Vec<(String, Type)> {
    let database = view.catalog().database(db);
    let all = database.into_iter().flat_map(|database| database.collections());
    let own = all.filter_map(|collection| {
        let own = entry::type_of(collection)?;
        Some((schemas::split(view, &collection.ns).0.to_owned(), own.clone()))
    });
    own.collect()
}

/// Both, of a database in which this is said by the UUIDs of collections.
pub(super) fn of_made(view: &dyn View, db: &str, comments: &HashMap<[u8; 16], Document>) -> Vec<Said> {
    let said = |uuid: &[u8; 16]| {
        let text = comments.get(uuid)?.get("comment").and_then(ValueRef::as_str)?;
        Some(text.to_owned())
    };
    let database = view.catalog().database(db);
    let all = database.into_iter().flat_map(|database| database.collections());
    let mut of_domains = Vec::new();
    let made = all.filter_map(|collection| {
        if let Some(Type::Domain(own)) = entry::type_of(collection)
            && let Some(ValueRef::Document(of)) =
                comments.get(&collection.uuid).and_then(|said| said.get("constraints"))
        {
            for (number, check) in (system::domain_constraint(own.oid)..).zip(&own.checks) {
                let text = of.get(&check.name).and_then(ValueRef::as_str);
                of_domains.extend(text.map(|text| (number, (2606, "pg_constraint"), text.to_owned())));
            }
        }
        let (number, class) = match entry::of(collection)? {
            Object::Type(own) => (own.oid(), (1247, "pg_type")),
            Object::Function(own) => (own.oid, (1255, "pg_proc")),
            _ => return None,
        };
        Some((i64::from(number), class, said(&collection.uuid)?))
    });
    let mut out: Vec<Said> = made.collect();
    out.extend(of_domains);
    for extension in system::EXTENSIONS {
        let number = extension.number();
        let text = said(&comments::built_in(number)).unwrap_or_else(|| extension.about.to_owned());
        out.push((number, (3079, "pg_extension"), text));
    }
    let of_public = said(&comments::built_in(system::PUBLIC));
    out.extend(of_public.map(|text| (system::PUBLIC, (2615, "pg_namespace"), text)));
    out
}

/// What is said of databases, and of the roles of a database and of `admin`.
///
/// Errors: those of reading.
pub(super) fn of_shared(view: &dyn View, db: &str, databases: &[String]) -> Result<Vec<SaidOfShared>> {
    let mut out = Vec::new();
    for name in databases {
        let said = comments::one(view, name, comments::built_in(comments::DATABASE))?;
        let text = said.as_ref().and_then(|said| said.get("comment")?.as_str());
        out.extend(text.map(|text| (name.clone(), comments::DATABASE, text.to_owned())));
    }
    // Those of the database come before others of the same name.
    for of in [db, ADMIN] {
        let said = comments::one(view, of, comments::built_in(comments::ROLES))?;
        let roles = match said.as_ref().and_then(|said| said.get("roles")) {
            Some(ValueRef::Document(roles)) => roles.to_document(),
            _ => continue,
        };
        for (name, text) in roles.iter() {
            let is_new = !out
                .iter()
                .any(|(own, class, _)| own == name && *class == comments::ROLES);
            if let Some(text) = text.as_str().filter(|_| is_new) {
                out.push((name.to_owned(), comments::ROLES, text.to_owned()));
            }
        }
    }
    Ok(out)
}
