//! What a pipeline reads of its documents may come from the entries of an index: it answers the same as without indexes, and some of the
//! random ones do so without a document.

#[path = "shared/database.rs"]
mod database;

use database::Database;
use nestor_model::{Array, Document, Value, ValueRef, doc};
use nestor_testkit::random::Random;
use nestor_testkit::shell;

fn value(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Missing,
        1 => Value::Null,
        2 => Value::from(["a", "", "zz"][random.below(3)]),
        3 => doc! { "x": random.below(3) as i32 }.into(),
        _ => Value::Int32(random.below(6) as i32),
    }
}

fn document(random: &mut Random, id: i32, has_arrays: bool) -> Document {
    let mut out = doc! { "_id": id };
    for name in ["k", "v", "w"] {
        let value = match has_arrays && name == "v" && random.one_in(6) {
            true => Value::from(vec![Value::Int32(1), Value::Int32(random.below(4) as i32)]),
            false => value(random),
        };
        out.push(name, value);
    }
    let inner = value(random);
    out.push("s", doc! { "t": inner, "u": 1 });
    out
}

/// Stages with `#` for one of several paths.
const STAGES: &[&str] = &[
    r##"{$match: {"#": {$gte: 1}}}"##,
    r##"{$match: {"#": {$in: [0, 2, "a"]}}}"##,
    r##"{$match: {"#": null}}"##,
    r##"{$match: {$expr: {$lte: ["$#", "$#"]}}}"##,
    r##"{$sort: {"#": 1, _id: 1}}"##,
    r##"{$sort: {k: 1, v: -1}}"##,
    r##"{$unwind: "$#"}"##,
    r##"{$unwind: {path: "$#", preserveNullAndEmptyArrays: true}}"##,
    r##"{$limit: 1000}"##,
];

/// What cuts a pipeline off from its documents. A `$project` of fields that a find does is covered as one of a find is, where an index takes
/// nothing for null.
const ENDS: &[&str] = &[
    r##"{$group: {_id: "$#"}}"##,
    r##"{$group: {_id: null, n: {$sum: 1}}}"##,
    r##"{$group: {_id: "$#", n: {$sum: 1}, most: {$max: "$#"}, set: {$addToSet: "$#"}}}"##,
    r##"{$group: {_id: {a: "$#", b: {$type: "$#"}}, n: {$sum: {$cond: [{$eq: ["$#", null]}, 1, 2]}}}}"##,
    r##"{$group: {_id: "$#", a: {$avg: "$#"}, l: {$min: "$#"}, s: {$sum: "$#"}}}"##,
    r##"{$group: {_id: "$k", f: {$first: "$k"}, l: {$last: "$k"}}}"##,
    r##"{$count: "n"}"##,
    r##"{$project: {x: "$#", y: {$type: "$#"}, _id: 0}}"##,
    r##"{$replaceWith: {x: "$#", y: ["$#"]}}"##,
    r##"{$sortByCount: "$#"}"##,
];

const IN_ORDER: &str = r#"{$sort: {k: 1, v: -1}}, {$group: {_id: "$k", f: {$first: "$v"}, l: {$last: "$v"}}}"#;

fn stage(random: &mut Random, of: &[&str]) -> String {
    let mut text = String::new();
    for part in of[random.below(of.len())].split_inclusive('#') {
        match part.strip_suffix('#') {
            Some(before) => text.extend([before, ["k", "v", "w", "s.t", "s"][random.below(5)]]),
            None => text.push_str(part),
        }
    }
    text
}

#[test]
fn entries_answer_for_documents() {
    let (mut asked, mut covered) = (0, 0);
    for seed in 1..=6 {
        let mut random = Random::new(seed);
        let mut database = Database::new();
        let documents: Vec<Value> = (0..150)
            .map(|id| document(&mut random, id, seed % 3 == 0).into())
            .collect();
        for coll in ["plain", "indexed"] {
            database.must(doc! { "insert": coll, "documents": Array::new(documents.clone()) });
        }
        let keys = [
            doc! { "k": 1, "v": -1, "w": 1 },
            doc! { "v": 1, "s.t": 1 },
            doc! { "w": 1 },
            doc! { "s.t": -1, "k": 1 },
        ];
        let indexes = keys
            .iter()
            .enumerate()
            .map(|(at, key)| Value::from(doc! { "key": key.clone(), "name": format!("i{at}") }));
        database.must(doc! { "createIndexes": "indexed", "indexes": Array::new(indexes.collect()) });
        for _ in 0..250 {
            let mut stages: Vec<String> = (0..random.below(3)).map(|_| stage(&mut random, STAGES)).collect();
            stages.push(match seed % 3 != 0 && random.one_in(10) {
                // Of arrays several have one place in an order.
                true => IN_ORDER.to_owned(),
                false => stage(&mut random, ENDS),
            });
            let text = format!("[{}]", stages.join(", "));
            let (pipeline, _) = shell::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let [plain, indexed] = ["plain", "indexed"].map(|coll| rows(&mut database, coll, &pipeline));
            assert_eq!(plain, indexed, "seed {seed}: {text}");
            asked += usize::from(!plain.is_empty());
            let command = doc! { "aggregate": "indexed", "pipeline": pipeline, "cursor": Document::new() };
            let explained = format!(
                "{:?}",
                database.must(doc! { "explain": command, "verbosity": "queryPlanner" })
            );
            covered += usize::from(explained.contains("PROJECTION_COVERED"));
        }
    }
    assert!(asked > 600 && covered > 100, "{asked} {covered}");
}

/// The rows of a pipeline as texts, in an order of their own.
fn rows(database: &mut Database, coll: &str, pipeline: &Value) -> Vec<String> {
    let reply = database.must(doc! {
        "aggregate": coll, "pipeline": pipeline.clone(), "cursor": doc! { "batchSize": 10_000 },
    });
    let cursor = reply
        .get("cursor")
        .and_then(|cursor| cursor.as_document())
        .expect("a cursor");
    let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
    let mut rows: Vec<String> = batch.iter().map(|row| format!("{:?}", sorted(row))).collect();
    rows.sort();
    rows
}

/// A value whose sets are in an order of their own.
fn sorted(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Document(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}: {}", sorted(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        ValueRef::Array(items) => {
            let mut items: Vec<String> = items.iter().map(sorted).collect();
            items.sort();
            format!("[{}]", items.join(", "))
        }
        other => format!("{other:?}"),
    }
}
