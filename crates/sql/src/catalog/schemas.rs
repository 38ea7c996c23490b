//! Schemas: a table of a schema is the collection `schema.table` of the same database.
//!
//! A schema is an entry of the catalog of its own, the collection `system.schemas.NAME`, which holds no documents. What has a dot in its
//! name stands in the schema that the name begins with if there is such a one, and in `public` otherwise, as what has none. A
//! name that is no schema's may be that of another database. `public` has an entry where CREATE DATABASE made the database.

use nestor_model::Namespace;
use nestor_storage::View;

/// The beginning of the names of the entries of schemas.
pub const ENTRIES: &str = "system.schemas.";
/// The schema of what has none.
pub const PUBLIC: &str = "public";
/// What a session calls the schema of its temporary tables.
pub const TEMPORARY: &str = "pg_temp";
/// The beginning of the names of schemas of temporary tables; the number of the connection follows.
pub const TEMPORARY_OF: &str = "pg_temp_";

/// The entry of a schema.
pub fn entry(db: &str, schema: &str) -> Namespace {
    Namespace::new(db, format!("{ENTRIES}{schema}"))
}

/// Whether a database has a schema of its own.
pub fn exists(view: &dyn View, db: &str, schema: &str) -> bool {
    // The entry of `public` says that there is a database, and nothing of names.
    schema != PUBLIC && view.catalog().get(&entry(db, schema)).is_some()
}

/// The schemas of a database, with the numbers of their entries.
pub fn all(view: &dyn View, db: &str) -> Vec<(u32, String)> {
    let database = view.catalog().database(db);
    let collections = database.into_iter().flat_map(|database| database.collections());
    let own = collections.filter_map(|collection| {
        let name = collection
            .ns
            .coll
            .strip_prefix(ENTRIES)
            .filter(|name| *name != PUBLIC)?;
        Some((collection.id.0, name.to_owned()))
    });
    own.collect()
}

/// The schema of a collection, and its name there.
pub fn split<'n>(view: &dyn View, ns: &'n Namespace) -> (&'n str, &'n str) {
    match ns.coll.split_once('.') {
        Some((schema, name)) if exists(view, &ns.db, schema) => (schema, name),
        _ => (PUBLIC, &ns.coll),
    }
}

/// Whether a schema is one of temporary tables.
pub fn is_temporary(schema: &str) -> bool {
    schema.starts_with(TEMPORARY_OF)
}

/// The collection that a table of a schema is.
pub fn collection(schema: &str, name: &str) -> String {
    match schema {
        PUBLIC => name.to_owned(),
        schema => format!("{schema}.{name}"),
    }
}

/// What a name means for a connection to `db`: in a schema if it says one, otherwise in each schema of `path`. There may be nothing there.
pub fn candidates(view: &dyn View, db: &str, path: &[String], (schema, name): (Option<&str>, &str)) -> Vec<Namespace> {
    let own = |schema: &str| Namespace::new(db, collection(schema, name));
    match schema {
        Some(schema) if schema == PUBLIC || exists(view, db, schema) => vec![own(schema)],
        Some(other) => vec![Namespace::new(other, name)],
        None => {
            let there = path
                .iter()
                .filter(|schema| *schema == PUBLIC || exists(view, db, schema));
            there.map(|schema| own(schema)).collect()
        }
    }
}

/// The names that a list names: those in quotes as they are, others in small letters; `None` for a text that is no list.
pub fn listed(list: &str) -> Option<Vec<String>> {
    let (mut out, mut chars) = (Vec::new(), list.trim().chars().peekable());
    while let Some(first) = chars.next_if(|c| !c.is_whitespace()) {
        let mut name = String::new();
        if first == '"' {
            loop {
                match chars.next()? {
                    '"' if chars.next_if_eq(&'"').is_none() => break,
                    c => name.push(c),
                }
            }
        } else {
            name.extend(first.to_lowercase());
            while let Some(c) = chars.next_if(|c| !c.is_whitespace() && *c != ',') {
                name.extend(c.to_lowercase());
            }
            if name.contains([',', '"']) {
                return None;
            }
        }
        out.push(name);
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        match chars.next() {
            None => return Some(out),
            Some(',') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            Some(_) => return None,
        }
    }
    // Nothing at all is a list; nothing behind a comma is none.
    out.is_empty().then_some(out)
}

/// The schemas that a value of `search_path` names.
pub fn path(setting: &str, user: &str) -> Vec<String> {
    let names = listed(setting).unwrap_or_default().into_iter();
    let named = names.map(|name| if name == "$user" { user.to_owned() } else { name });
    named.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names_are_read() {
        let read = |text: &str| listed(text).map(|names| names.join("|"));
        let lists = [
            ("", Some("")),
            (" a, \"B c\",  D ", Some("a|B c|d")),
            ("\"x\"\"y, z\"", Some("x\"y, z")),
            ("\"\"", Some("")),
            ("a b", None),
            ("a,", None),
            (",a", None),
            ("\"a", None),
            ("a\"b\"", None),
        ];
        for (text, names) in lists {
            assert_eq!(read(text).as_deref(), names, "{text}");
        }
        assert_eq!(path("\"$user\", \"\", public", "ada"), ["ada", "public"]);
    }
}
