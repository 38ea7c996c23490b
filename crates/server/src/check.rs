//! `nestor check DIR`: verifies a data directory offline. Every record has to decode, every index entry has
//! to have its record and every record its index entries.

use crate::Database;
use nestor_model::{ValueRef, doc};
use std::io::{self, Write};
use std::path::Path;

/// Checks the directory and prints what is in it. An error, for people to read, says what is wrong: the
/// directory cannot be opened, a file is damaged (with its name and offset), or collections are inconsistent.
pub fn run(dir: &Path) -> Result<(), String> {
    if !dir.is_dir() {
        return Err(format!("{} is no directory", dir.display()));
    }
    let db = Database::open(dir).map_err(|e| e.to_string())?;
    let mut out = io::stdout().lock();
    let mut faults = 0;
    for database in names(&db, "admin", doc! { "listDatabases": 1, "nameOnly": true }, "databases")? {
        let list = doc! { "listCollections": 1, "filter": doc! { "type": "collection" }, "nameOnly": true, "cursor": doc! { "batchSize": 1_000_000 } };
        for collection in names(&db, &database, list, "cursor.firstBatch")? {
            faults += check_collection(&db, &database, &collection, &mut out)?;
        }
    }
    match faults {
        0 => writeln!(out, "no faults found").map_err(|e| e.to_string()),
        faults => Err(format!("{faults} collections are inconsistent")),
    }
}

/// The names in an array of documents in the reply to a command.
fn names(db: &Database, database: &str, command: nestor_model::Document, path: &str) -> Result<Vec<String>, String> {
    let mut command = command;
    command.push("$db", database);
    let reply = db.run_command(command).map_err(|e| e.message().to_owned())?;
    let mut names = Vec::new();
    if let Some(items) = reply.path(path).and_then(|items| items.as_array()) {
        for item in items.iter() {
            if let ValueRef::Document(item) = item {
                names.extend(item.get("name").and_then(ValueRef::as_str).map(str::to_owned));
            }
        }
    }
    Ok(names)
}

/// Prints a line about a collection; returns 1 when it is inconsistent.
fn check_collection(db: &Database, database: &str, collection: &str, out: &mut impl Write) -> Result<usize, String> {
    let reply = db
        .run_command(doc! { "validate": collection, "full": true, "$db": database })
        .map_err(|e| format!("{database}.{collection}: {}", e.message()))?;
    let printed = |e: io::Error| e.to_string();
    let number = |value: Option<ValueRef<'_>>| value.map_or("?".to_owned(), |value| format!("{value:?}"));
    write!(
        out,
        "{database}.{collection}: {} documents",
        number(reply.get("nrecords"))
    )
    .map_err(printed)?;
    if let Some(ValueRef::Document(keys)) = reply.get("keysPerIndex") {
        for (index, count) in keys.iter() {
            write!(out, ", {} entries in {index}", number(Some(count))).map_err(printed)?;
        }
    }
    if reply.get("valid").is_some_and(ValueRef::truthy) {
        writeln!(out).map_err(printed)?;
        return Ok(0);
    }
    writeln!(out, ": INCONSISTENT").map_err(printed)?;
    if let Some(errors) = reply.get("errors").and_then(|errors| errors.as_array()) {
        for error in errors.iter().filter_map(ValueRef::as_str) {
            writeln!(out, "  {error}").map_err(printed)?;
        }
    }
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Value;

    #[test]
    fn counts_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path()).unwrap();
        let documents: Vec<Value> = (0..3)
            .map(|i| doc! { "_id": i, "tags": vec![Value::from(1), 2.into()] }.into())
            .collect();
        db.run_command(doc! { "insert": "orders", "documents": documents, "$db": "shop" })
            .unwrap();
        let index = vec![Value::from(doc! { "key": doc! { "tags": 1 }, "name": "tags_1" })];
        db.run_command(doc! { "createIndexes": "orders", "indexes": index, "$db": "shop" })
            .unwrap();
        let mut out = Vec::new();
        assert_eq!(check_collection(&db, "shop", "orders", &mut out), Ok(0));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "shop.orders: 3 documents, 3 entries in _id_, 6 entries in tags_1\n"
        );
        assert!(run(dir.path()).is_err(), "it is open here");
        drop(db);
        assert_eq!(run(dir.path()), Ok(()));
        assert!(run(&dir.path().join("nothing-here")).is_err());
    }
}
