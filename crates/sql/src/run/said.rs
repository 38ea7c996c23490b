//! What COMMENT ON has said of types and functions that somebody has made, and of what is built in.

use crate::bind::entry::{self, Object};
use crate::catalog::schemas;
use crate::catalog::system::{self, Said};
use crate::types::Type;
use nestor_database::write::comments;
use nestor_model::{Document, ValueRef};
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
    let made = all.filter_map(|collection| {
        let (number, class) = match entry::of(collection)? {
            Object::Type(own) => (own.oid(), (1247, "pg_type")),
            Object::Function(own) => (own.oid, (1255, "pg_proc")),
            _ => return None,
        };
        Some((i64::from(number), class, said(&collection.uuid)?))
    });
    let mut out: Vec<Said> = made.collect();
    for extension in system::EXTENSIONS {
        let number = extension.number();
        let text = said(&comments::built_in(number)).unwrap_or_else(|| extension.about.to_owned());
        out.push((number, (3079, "pg_extension"), text));
    }
    let of_public = said(&comments::built_in(system::PUBLIC));
    out.extend(of_public.map(|text| (system::PUBLIC, (2615, "pg_namespace"), text)));
    out
}
