//! `nestor check DIR`: verifies a data directory offline and changes nothing in it. Every page, every frame of the
//! journal, every record has to be sound; every index entry has to have its record and every record its index entries.
//!
//! Exit status: 0 when no fault was found (a note is none), 1 for faults, 2 when the directory cannot be checked.

use crate::master_key;
use nestor_exec::write::document_keys;
use nestor_storage::StorageError;
use nestor_storage::check::{self, CheckReport, CollectionReport, IndexReport};
use std::io::{self, Write};
use std::path::Path;

/// Whether a directory holds what it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No fault was found.
    Sound,
    /// Faults were found and printed.
    Damaged,
}

/// Checks the directory and prints what is in it. An error, for people to read, says why it cannot be checked.
///
/// An encrypted directory needs the file with its master key.
pub fn run(dir: &Path, master_key: Option<&Path>) -> Result<Verdict, String> {
    let master_key = master_key.map(master_key::read).transpose()?;
    let report = check::check(dir, master_key.as_ref(), &document_keys).map_err(|e| match (&e, &master_key) {
        (StorageError::Encryption { .. }, None) => format!("{e}: --encryptionKeyFile names the file with it"),
        _ => e.to_string(),
    })?;
    print(&report, &mut io::stdout().lock()).map_err(|e| e.to_string())
}

fn print(report: &CheckReport, out: &mut impl Write) -> io::Result<Verdict> {
    let base = &report.base;
    writeln!(
        out,
        "base: {} entries in {} pages of {} bytes, {} of them free",
        base.entries, base.pages, base.page_bytes, base.free_pages
    )?;
    if report.data_keys > 0 {
        writeln!(out, "encrypted: {} data keys", report.data_keys)?;
    }
    writeln!(
        out,
        "journal: {} commits in {} segments, {} of them not in the base yet; {} oplog entries",
        report.commits, report.segments, report.replayed, report.oplog_entries
    )?;
    if report.derived > 0 {
        writeln!(out, "columns: {} files", report.derived)?;
    }
    for collection in &report.collections {
        print_collection(collection, out)?;
    }
    for unverified in &report.unverified {
        writeln!(out, "not verified: {unverified}")?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    for fault in &report.faults {
        writeln!(out, "FAULT: {fault}")?;
    }
    if report.fault_count == 0 {
        writeln!(out, "no faults found")?;
        return Ok(Verdict::Sound);
    }
    let more = report.fault_count - report.faults.len() as u64;
    let more = if more > 0 {
        format!(", {more} of them not shown")
    } else {
        String::new()
    };
    writeln!(out, "faults found: {}{more}", report.fault_count)?;
    Ok(Verdict::Damaged)
}

fn print_collection(collection: &CollectionReport, out: &mut impl Write) -> io::Result<()> {
    let CollectionReport {
        ns,
        documents,
        bytes,
        indexes,
        ..
    } = collection;
    write!(out, "{ns}: {documents} documents, {bytes} bytes")?;
    for IndexReport { name, entries, .. } in indexes {
        write!(out, ", {entries} entries in {name}")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Database;
    use nestor_model::{Decimal128, Document, Value, ValueRef, doc};

    fn printed(report: &CheckReport) -> (Verdict, String) {
        let mut out = Vec::new();
        let verdict = print(report, &mut out).unwrap();
        (verdict, String::from_utf8(out).unwrap())
    }

    fn run_all(db: &Database, commands: impl IntoIterator<Item = Document>) {
        for mut command in commands {
            command.push("$db", "shop");
            let reply = db.run_command(command.clone());
            let sound = reply.as_ref().is_ok_and(|reply| reply.get("writeErrors").is_none());
            assert!(sound, "{command:?}: {reply:?}");
        }
    }

    fn insert(collection: &str, documents: impl IntoIterator<Item = Document>) -> Document {
        let documents: Vec<Value> = documents.into_iter().map(Value::from).collect();
        doc! { "insert": collection, "documents": documents }
    }

    fn index(key: Document, name: &str, options: Document) -> Value {
        let mut spec = doc! { "key": key, "name": name };
        options
            .iter()
            .for_each(|(name, value)| spec.push(name, value.to_value()));
        spec.into()
    }

    #[test]
    fn counts_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path()).unwrap();
        let tags = |i: i32| doc! { "_id": i, "tags": vec![Value::from(1), 2.into()] };
        run_all(
            &db,
            [
                insert("orders", (0..3).map(tags)),
                doc! { "createIndexes": "orders", "indexes": vec![index(doc! { "tags": 1 }, "tags_1", doc! {})] },
            ],
        );
        assert!(run(dir.path(), None).is_err(), "it is open here");
        drop(db);
        let report = check::check(dir.path(), None, &document_keys).unwrap();
        let (verdict, text) = printed(&report);
        assert_eq!(verdict, Verdict::Sound, "{text}");
        assert!(
            text.contains("\nshop.orders: 3 documents, 117 bytes, 3 entries in _id_, 6 entries in tags_1\n"),
            "{text}"
        );
        assert!(text.ends_with("\nno faults found\n"), "{text}");
        assert!(run(&dir.path().join("nothing-here"), None).is_err());
    }

    /// Each kind of index over documents of each shape it treats in its own way: the verifier makes the keys that
    /// writes and builds made.
    #[test]
    fn knows_the_keys_of_every_kind_of_index() {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path()).unwrap();
        let french = doc! { "locale": "fr", "strength": 1 };
        let indexes = || {
            vec![
                index(doc! { "a": 1, "b.c": -1 }, "compound", doc! {}),
                index(doc! { "b.c": 1 }, "collated", doc! { "collation": french.clone() }),
                index(doc! { "h": "hashed" }, "hashed", doc! {}),
                index(doc! { "s": 1 }, "sparse", doc! { "sparse": true }),
                index(doc! { "n": 1 }, "unique", doc! { "unique": true }),
                index(
                    doc! { "n": -1 },
                    "partial",
                    doc! { "partialFilterExpression": doc! { "n": doc! { "$gt": 3 } } },
                ),
                index(doc! { "$**": 1 }, "wildcard", doc! {}),
                // A number below zero means descending, whatever its type and however small it is.
                index(
                    doc! { "n": Decimal128::parse("-0.5").unwrap().0, "a": -0.5 },
                    "fractions",
                    doc! {},
                ),
            ]
        };
        let shapes = |from: i32| {
            [
                doc! { "_id": from, "n": from, "a": vec![Value::from(1), Value::Null, "x".into()], "h": 1.5 },
                doc! { "_id": from + 1, "n": f64::from(from) + 0.5, "a": 2, "b": doc! { "c": "Été" }, "s": Value::Null },
                doc! { "_id": from + 2, "n": format!("text {from}").as_str(), "b": vec![Value::from(doc! { "c": 1 }), doc! { "c": "é" }.into()] },
                doc! { "_id": from + 3, "n": Value::Null, "s": vec![Value::from(vec![Value::from(1)])] },
            ]
        };
        let fresh = |from: i32| {
            shapes(from).into_iter().map(move |mut doc| {
                doc.push("from", from);
                doc
            })
        };
        for (name, options) in [
            ("plain", doc! {}),
            ("collated", doc! { "collation": french.clone() }),
            (
                "clustered",
                doc! { "clusteredIndex": doc! { "key": doc! { "_id": 1 }, "unique": true } },
            ),
        ] {
            let mut create = doc! { "create": name };
            options
                .iter()
                .for_each(|(name, value)| create.push(name, value.to_value()));
            run_all(
                &db,
                [
                    create,
                    insert(name, fresh(0)),
                    // Built over what is there, then kept up by writes.
                    doc! { "createIndexes": name, "indexes": indexes() },
                    doc! { "delete": name, "deletes": vec![Value::from(doc! { "q": doc! { "from": 0 }, "limit": 1 })] },
                    doc! { "update": name, "updates": vec![Value::from(doc! {
                        "q": doc! { "_id": 1 }, "u": doc! { "$set": doc! { "a": vec![Value::from(7), 8.into()], "n": 9.0 } }
                    })] },
                    insert(name, fresh(10).take(3)),
                ],
            );
        }
        drop(db);
        let report = check::check(dir.path(), None, &document_keys).unwrap();
        assert_eq!((report.faults, report.notes), (vec![], vec![]));
        let counts = |collection: &CollectionReport| collection.indexes.iter().map(|index| index.entries).sum::<u64>();
        let shop: Vec<_> = report.collections.iter().filter(|c| &*c.ns.db == "shop").collect();
        assert_eq!(shop.len(), 3);
        assert!(shop.iter().all(|c| c.documents == 6 && counts(c) > 50), "{shop:?}");
    }

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            let target = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &target),
                false => drop(std::fs::copy(entry.path(), target).unwrap()),
            }
        }
    }

    /// A directory of format 1 after a crash, with commits in the base and one in the journal only.
    #[test]
    fn a_directory_of_the_previous_format_opens_and_gets_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        copy(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats/1"),
            dir.path(),
        );
        let report = check::check(dir.path(), None, &document_keys).unwrap();
        assert_eq!((report.faults, report.replayed), (vec![], 1));
        let unknown = report
            .unverified
            .iter()
            .filter(|text| text.contains("an earlier version wrote"));
        assert_eq!(unknown.count(), 2, "{:?}", report.unverified);
        for round in 1..=2 {
            let db = Database::open(dir.path()).unwrap();
            let count = db.run_command(doc! { "count": "c", "$db": "test" }).unwrap();
            assert!(
                matches!(count.get("n"), Some(ValueRef::Int32(n)) if n == 5 + round),
                "{count:?}"
            );
            let insert =
                doc! { "insert": "c", "documents": vec![Value::from(doc! { "_id": 100 + round })], "$db": "test" };
            db.run_command(insert).unwrap();
        }
        let format = std::fs::read_to_string(dir.path().join("nestor.format")).unwrap();
        assert_eq!(format, "nestor 3\n");
        let report = check::check(dir.path(), None, &document_keys).unwrap();
        assert_eq!((report.faults, report.unverified), (vec![], vec![]));
    }

    #[test]
    fn notes_and_faults_are_printed() {
        let report = CheckReport {
            unverified: vec!["what comes after".into()],
            notes: vec!["the tail is torn".into()],
            faults: vec!["page 7 is lost".into()],
            fault_count: 3,
            ..CheckReport::default()
        };
        let (verdict, text) = printed(&report);
        assert_eq!(verdict, Verdict::Damaged);
        assert!(
            text.ends_with("not verified: what comes after\nnote: the tail is torn\nFAULT: page 7 is lost\nfaults found: 3, 2 of them not shown\n"),
            "{text}"
        );
    }
}
