//! `$out` to files of the server: what is written is what is read back, and nothing is left of what failed.

#[allow(dead_code)] // Nothing here needs a store on disk.
#[path = "shared/database.rs"]
mod database;

use database::Database;
use nestor_model::{Document, Value, doc};

fn out(spec: Document) -> Document {
    let stages: Vec<Value> = vec![
        doc! { "$match": doc! { "a": doc! { "$lt": 90 } } }.into(),
        doc! { "$project": doc! { "a": 1, "t": 1, "n": 1 } }.into(),
        doc! { "$out": spec }.into(),
    ];
    doc! { "aggregate": "c", "pipeline": stages, "cursor": doc! {} }
}

fn fill(database: &mut Database) {
    let documents = (0..100).map(|at| {
        let inner = doc! { "x": f64::from(at) / 4.0 };
        Value::from(doc! { "_id": at, "a": at, "t": format!("text {at}"), "n": inner })
    });
    let documents: Vec<Value> = documents.collect();
    database.must(doc! { "insert": "c", "documents": documents });
}

fn names(directory: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn files_have_what_the_pipeline_gave() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::reading(directory.path());
    fill(&mut database);
    database.must(out(doc! { "path": "x.parquet" }));
    database.must(out(doc! { "path": "y", "format": "parquet" }));
    database.must(out(doc! { "path": "z", "format": doc! { "name": "ndjson" } }));
    database.must(out(doc! { "path": "w.arrow" }));
    database.must(out(doc! { "path": "v.bson" }));
    assert_eq!(names(directory.path()), ["v.bson", "w.arrow", "x.parquet", "y", "z"]);
    for call in [
        "'x.parquet'",
        "read_parquet('y')",
        "read_json('z')",
        "read_arrow('w.arrow')",
    ] {
        let query = format!("SELECT count(*) AS n, sum(a)::int AS a, max(t) AS t FROM {call}");
        let stages: Vec<Value> = vec![doc! { "$sql": query }.into()];
        let reply = database.run(doc! { "aggregate": 1, "pipeline": stages, "cursor": doc! {} });
        let text = format!("{reply:?}");
        assert!(
            text.contains("90") && text.contains("4005") && text.contains("text 9"),
            "{call}: {text}"
        );
    }
    // What has the name is replaced.
    database.must(doc! { "delete": "c", "deletes": vec![Value::from(doc! { "q": doc! {}, "limit": 0 })] });
    database.must(out(doc! { "path": "z", "format": "ndjson" }));
    assert_eq!(std::fs::read(directory.path().join("z")).expect("a file"), b"");
}

#[test]
fn what_cannot_be_written_leaves_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::reading(directory.path());
    fill(&mut database);
    for (spec, code) in [
        (doc! { "path": "../x.parquet" }, 2),
        (doc! { "path": "/tmp/x.parquet" }, 2),
        (doc! { "path": "no/such/directory.parquet" }, 176),
        (doc! { "path": "x.txt" }, 2),
        (doc! { "path": "x", "format": "xml" }, 2),
        (doc! { "path": "x.csv" }, 238),
        (doc! { "path": "" }, 2),
        (doc! { "path": "x.parquet", "coll": "c" }, 40415),
        (doc! { "path": 1 }, 14),
    ] {
        let reply = database.run(out(spec.clone()));
        let found = reply.get("code").and_then(nestor_model::number::safe_i64);
        assert_eq!(found, Some(code), "{spec:?}: {reply:?}");
    }
    // Behind the first rows, which decide what the columns are, one that does not fit.
    let many: Vec<Value> = (0..66_000)
        .map(|at| {
            let value: Value = if at == 65_990 { "text".into() } else { at.into() };
            doc! { "a": value }.into()
        })
        .collect();
    for chunk in many.chunks(10_000) {
        database.must(doc! { "insert": "d", "documents": chunk.to_vec() });
    }
    let stages: Vec<Value> = vec![doc! { "$out": doc! { "path": "d.parquet" } }.into()];
    let reply = database.run(doc! { "aggregate": "d", "pipeline": stages.clone(), "cursor": doc! {} });
    let text = format!("{reply:?}");
    assert!(text.contains("field a cannot hold"), "{text}");
    assert!(names(directory.path()).is_empty());
    // A server without a directory for files writes none.
    let mut without = Database::new();
    let reply = without.run(doc! { "aggregate": "d", "pipeline": stages, "cursor": doc! {} });
    assert_eq!(
        reply.get("code").and_then(nestor_model::number::safe_i64),
        Some(13),
        "{reply:?}"
    );
}
