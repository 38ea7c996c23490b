//! `$lookup` by equality finds what the plainest code finds, whatever index there is on the foreign field and however it is
//! asked: by a probe of an index, a hash table, a plan for each document. Values are of all kinds: missing, null, undefined, arrays
//! on both sides, regular expressions, documents. Source: manual, "$lookup (aggregation)".

#[path = "shared/database.rs"]
mod database;

use database::Database;
use nestor_model::{Array, Document, Value, ValueRef, doc};
use nestor_testkit::random::Random;
use nestor_testkit::reference::matching::matches;
use nestor_testkit::shell;

impl Database {
    fn insert(&mut self, collection: &str, docs: &[Document]) {
        let docs: Vec<Value> = docs.iter().cloned().map(Value::Document).collect();
        self.must(doc! { "insert": collection, "documents": Array::new(docs) });
    }

    /// For each outer document the `_id`s of its matches in ascending order.
    fn join(&mut self, stages: &str, collation: Option<&Document>) -> Vec<(i32, Vec<i32>)> {
        let pipeline = shell::document(&format!("{{p: [{stages}]}}")).unwrap_or_else(|e| panic!("{stages}: {e}"));
        let mut command = doc! {
            "aggregate": "outer", "pipeline": pipeline.get("p").map(ValueRef::to_value), "cursor": doc! { "batchSize": 100_000 },
        };
        command.push("collation", collation.cloned());
        let reply = self.must(command);
        let cursor = reply.get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
        let int = |value: ValueRef<'_>| match value {
            ValueRef::Int32(id) => id,
            other => panic!("{other:?} is no _id"),
        };
        let mut found: Vec<(i32, Vec<i32>)> = Vec::new();
        for doc in batch.iter().filter_map(ValueRef::as_document) {
            let id = int(doc.get("_id").expect("an _id"));
            let mut ids: Vec<i32> = match doc.get("m").expect("matches") {
                ValueRef::Array(items) => items.iter().map(int).collect(),
                // Unwound.
                one => vec![int(one)],
            };
            match found.last_mut().filter(|(last, _)| *last == id) {
                Some((_, all)) => all.append(&mut ids),
                None => found.push((id, ids)),
            }
        }
        found.iter_mut().for_each(|(_, ids)| ids.sort_unstable());
        found
    }
}

fn value(random: &mut Random) -> Value {
    match random.below(12) {
        0 => shell::parse("/^a/").expect("a value").0,
        1 => shell::parse("/a/i").expect("a value").0,
        2 => Value::from(*random.pick(&["a", "A", "b", "á"])),
        3 => Value::Document(doc! { "b": random.scalar() }),
        _ => random.value(2),
    }
}

/// `{_id, f, g}`, `f` being of any kind or missing.
fn document(random: &mut Random, id: i32) -> Document {
    let mut out = doc! { "_id": id, "g": random.below(4) as i32 };
    if !random.one_in(6) {
        out.push("f", value(random));
    }
    out
}

/// The values at a top-level field or one below it, as `$lookup` compares them.
fn local_values(doc: &Document, path: &str) -> Vec<Value> {
    fn elements(value: Value) -> Vec<Value> {
        match value {
            Value::Array(items) => items.iter().map(ValueRef::to_value).collect(),
            Value::Missing | Value::Undefined => vec![Value::Null],
            other => vec![other],
        }
    }
    let field = |doc: &Document, name: &str| doc.get(name).map_or(Value::Missing, ValueRef::to_value);
    match path.split_once('.') {
        None => elements(field(doc, path)),
        Some((head, rest)) => match field(doc, head) {
            Value::Document(inner) => elements(field(&inner, rest)),
            Value::Array(items) => items
                .iter()
                .filter_map(ValueRef::as_document)
                .flat_map(|inner| elements(field(&inner.to_document(), rest)))
                .collect(),
            _ => vec![Value::Null],
        },
    }
}

fn reference(outer: &[Document], inner: &[Document], local: &str, foreign: &str) -> Vec<(i32, Vec<i32>)> {
    let id = |doc: &Document| match doc.get("_id") {
        Some(ValueRef::Int32(id)) => id,
        other => panic!("{other:?} is no _id"),
    };
    let equals = |doc: &Document, value: &Value| {
        let value = match value {
            Value::Undefined => Value::Null,
            value => value.clone(),
        };
        let mut filter = Document::new();
        filter.push(foreign, doc! { "$eq": value });
        matches(&filter, doc)
    };
    outer
        .iter()
        .map(|outer| {
            let values = local_values(outer, local);
            let found = inner.iter().filter(|doc| values.iter().any(|value| equals(doc, value)));
            (id(outer), found.map(id).collect())
        })
        .collect()
}

const INDEXES: [&str; 11] = [
    "{key: {g: 1}, name: 'i'}",
    "{key: {f: 1}, name: 'i'}",
    "{key: {f: -1}, name: 'i'}",
    "{key: {f: 1, g: -1}, name: 'i'}",
    "{key: {'f.b': 1}, name: 'i'}",
    "{key: {f: 'hashed'}, name: 'i'}",
    "{key: {f: 1}, name: 'i', sparse: true}",
    "{key: {f: 1}, name: 'i', partialFilterExpression: {f: {$gt: 0}}}",
    "{key: {f: 1}, name: 'i', partialFilterExpression: {g: {$gte: 0}}}",
    "{key: {'$**': 1}, name: 'i'}",
    "{key: {f: 1}, name: 'i', collation: {locale: 'en', strength: 1}}",
];

/// The join in several forms that all find the same: `m` becomes the `_id`s of the matches.
fn forms(local: &str, foreign: &str) -> Vec<(String, bool)> {
    let ids = "{$project: {m: '$m._id'}}";
    let join = format!("from: 'inner', localField: '{local}', foreignField: '{foreign}', as: 'm'");
    vec![
        (format!("{{$lookup: {{{join}}}}}, {ids}"), false),
        (format!("{{$lookup: {{{join}, pipeline: [{{$match: {{g: {{$gte: 0}}}}}}]}}}}, {ids}"), false),
        (format!("{{$lookup: {{{join}, pipeline: [{{$addFields: {{x: 1}}}}, {{$limit: 1000}}]}}}}, {ids}"), false),
        (format!("{{$lookup: {{{join}, pipeline: [{{$sort: {{g: 1}}}}]}}}}, {ids}"), false),
        (format!("{{$lookup: {{{join}}}}}, {{$unwind: '$m'}}, {ids}"), true),
        (format!("{{$lookup: {{{join}}}}}, {{$unwind: '$m'}}, {{$match: {{'m.g': {{$lt: 9}}}}}}, {ids}"), true),
        (format!("{{$lookup: {{{join}, let: {{g: '$g'}}, pipeline: [{{$match: {{$expr: {{$gte: ['$$g', 0]}}}}}}]}}}}, {ids}"), false),
    ]
    .into_iter()
    .map(|(stages, unwound)| (stages.replace('\'', "\""), unwound))
    .collect()
}

fn without_empty(joined: &[(i32, Vec<i32>)]) -> Vec<(i32, Vec<i32>)> {
    joined.iter().filter(|(_, ids)| !ids.is_empty()).cloned().collect()
}

#[test]
fn joins_agree_with_the_reference_under_every_index() {
    for seed in 1..=2 {
        let mut random = Random::new(seed);
        let outer: Vec<Document> = (0..25).map(|id| document(&mut random, id)).collect();
        let inner: Vec<Document> = (0..20).map(|id| document(&mut random, id)).collect();
        for index in INDEXES.iter().map(|index| index.replace('\'', "\"")) {
            let mut database = Database::new();
            database.insert("outer", &outer);
            database.insert("inner", &inner);
            // A hashed index refuses arrays.
            let spec = shell::document(&index).unwrap_or_else(|e| panic!("{index}: {e}"));
            database.run(doc! { "createIndexes": "inner", "indexes": vec![Value::Document(spec)] });
            for (local, foreign) in [("f", "f"), ("f.b", "f"), ("f", "f.b"), ("g", "_id"), ("f", "_id")] {
                let expected = reference(&outer, &inner, local, foreign);
                for (stages, unwound) in forms(local, foreign) {
                    let expected = if unwound {
                        without_empty(&expected)
                    } else {
                        expected.clone()
                    };
                    assert_eq!(database.join(&stages, None), expected, "seed {seed}, {index}: {stages}");
                }
            }
        }
    }
}

/// Under a collation strings that it does not tell apart are equal, with an index of that collation, of another and without.
#[test]
fn joins_agree_under_collations() {
    let collations = [
        doc! { "locale": "en", "strength": 1 },
        doc! { "locale": "en", "strength": 2 },
    ];
    for seed in 1..=2 {
        let mut random = Random::new(seed);
        let outer: Vec<Document> = (0..25).map(|id| document(&mut random, id)).collect();
        let inner: Vec<Document> = (0..20).map(|id| document(&mut random, id)).collect();
        let mut plain = Database::new();
        plain.insert("outer", &outer);
        plain.insert("inner", &inner);
        for collation in &collations {
            for index in [INDEXES[1], INDEXES[3], INDEXES[10]].map(|index| index.replace('\'', "\"")) {
                let mut database = Database::new();
                database.insert("outer", &outer);
                database.insert("inner", &inner);
                let spec = shell::document(&index).unwrap_or_else(|e| panic!("{index}: {e}"));
                database.must(doc! { "createIndexes": "inner", "indexes": vec![Value::Document(spec)] });
                for (stages, _) in forms("f", "f") {
                    let expected = plain.join(&stages, Some(collation));
                    assert_eq!(
                        database.join(&stages, Some(collation)),
                        expected,
                        "seed {seed}, {index}: {stages}"
                    );
                }
            }
        }
    }
}

/// The same with next to no memory, when the table and the hashes of its values are in files, and with values that equal
/// themselves only in the order of BSON.
#[test]
fn joins_through_files_agree_with_the_reference() {
    let special = || {
        let values = [
            Value::Double(f64::NAN),
            Value::Double(-0.0),
            Value::Int32(0),
            Value::Undefined,
        ];
        let arrays = values.clone().map(|value| Value::from(vec![value]));
        values
            .into_iter()
            .chain(arrays)
            .chain([Value::from(Vec::<Value>::new())])
    };
    for seed in 4..=6 {
        let mut random = Random::new(seed);
        let mut documents = |count: i32| -> Vec<Document> {
            let random = (0..count).map(|id| document(&mut random, id));
            let special = special()
                .zip(count..)
                .map(|(value, id)| doc! { "_id": id, "f": value, "g": id % 4 });
            random.chain(special).collect()
        };
        let (outer, inner) = (documents(40), documents(60));
        let mut database = Database::new();
        database.insert("outer", &outer);
        database.insert("inner", &inner);
        database
            .must(doc! { "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 1_200, "$db": "admin" });
        for (local, foreign) in [("f", "f"), ("f.b", "f"), ("f", "f.b")] {
            let expected = without_empty(&reference(&outer, &inner, local, foreign));
            for (stages, unwound) in forms(local, foreign) {
                // The matches of one document are to fit in memory.
                if unwound {
                    assert_eq!(database.join(&stages, None), expected, "seed {seed}: {stages}");
                }
            }
        }
    }
}

/// With many outer documents a join by an index goes on by a table, which finds the same.
#[test]
fn a_join_that_changes_to_a_table_goes_on_as_before() {
    let mut random = Random::new(3);
    let outer: Vec<Document> = (0..1_900).map(|id| document(&mut random, id)).collect();
    let inner: Vec<Document> = (0..30).map(|id| document(&mut random, id)).collect();
    let mut database = Database::new();
    database.insert("outer", &outer);
    database.insert("inner", &inner);
    let expected = reference(&outer, &inner, "f", "f");
    database.must(doc! { "createIndexes": "inner", "indexes": vec![Value::Document(doc! { "key": doc! { "f": 1 }, "name": "f" })] });
    // The plain form, and one that unwinds.
    for (stages, unwound) in forms("f", "f").into_iter().step_by(4) {
        let expected = if unwound {
            without_empty(&expected)
        } else {
            expected.clone()
        };
        assert_eq!(database.join(&stages, None), expected, "{stages}");
    }
    let pipeline = shell::document(r#"{p: [{$lookup: {from: "inner", localField: "f", foreignField: "f", as: "m"}}]}"#);
    let pipeline = pipeline.expect("a pipeline").get("p").map(ValueRef::to_value);
    let explain = doc! {
        "explain": doc! { "aggregate": "outer", "pipeline": pipeline, "cursor": doc! {} }, "verbosity": "executionStats",
    };
    let shown = shell::print(&Value::Document(database.must(explain)));
    assert!(shown.contains(r#"strategy: "HashJoin""#), "{shown}");
}
