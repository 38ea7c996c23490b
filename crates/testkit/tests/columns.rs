//! Pipelines have the same answers by columns as by documents: `$match`, and `$group`, its relatives or the first of an order over values of all types, while documents are written,
//! deleted and changed, and checkpoints come.

#[allow(dead_code)] // It has a directory.
#[path = "shared/database.rs"]
mod database;

use database::Database;
use nestor_model::{Array, Document, ObjectId, Value, doc};
use nestor_testkit::random::Random;

/// A value, often of the type that the field mostly has.
fn value(random: &mut Random, field: &str) -> Option<Value> {
    let odd = random.one_in(40);
    Some(match (field, odd) {
        ("a", false) => Value::Int32(random.below(9) as i32 - 4),
        ("b", false) => Value::Int64(random.below(1 << 20) as i64 * 5_000_000_000),
        ("c", false) => Value::Double(random.below(4000) as f64 / 8.0),
        ("d", false) => format!("text {}", random.below(30)).into(),
        ("e", false) => Value::DateTime(1_700_000_000_000 + random.below(5000) as i64 * 60_000),
        ("f", false) => Value::Bool(random.one_in(2)),
        // Of one type, where there is something.
        ("g", _) => match random.below(20) {
            0 => Value::Null,
            1 => return None,
            _ => Value::Int32(random.below(700) as i32 - 300),
        },
        ("h", _) => Value::DateTime(1_700_000_000_000 + random.below(90_000) as i64 * 1000),
        ("k", _) => format!("key {}", random.below(400)).into(),
        _ => match random.below(9) {
            0 => Value::Null,
            1 => return None,
            2 => Value::Double(f64::NAN),
            3 => Value::Double(-0.0),
            4 => ObjectId([random.below(3) as u8; 12]).into(),
            5 => Value::Int64(2),
            6 => "odd".into(),
            7 => Value::Double(2.0),
            _ => Value::Bool(false),
        },
    })
}

fn document(random: &mut Random, id: i64) -> Document {
    let mut out = doc! { "_id": id };
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "k"] {
        if let Some(value) = value(random, name) {
            out.push(name, value);
        }
    }
    let mut below = Document::new();
    for name in ["a", "d"] {
        if let Some(value) = value(random, name) {
            below.push(name, value);
        }
    }
    match random.below(400) {
        // Arrays make a part of the documents one that columns do not have.
        0 => out.push("n", Value::Array(Array::new(vec![below.into()]))),
        1..=9 => {}
        _ => out.push("n", below),
    }
    out
}

const PATHS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "k", "n.a", "n.d", "nothing"];

/// A condition.
fn condition(random: &mut Random, depth: usize) -> Document {
    if depth > 0 && random.one_in(3) {
        let parts: Vec<Value> = (0..1 + random.below(3))
            .map(|_| condition(random, depth - 1).into())
            .collect();
        let mut out = Document::new();
        out.push(*random.pick(&["$and", "$or", "$nor"]), Value::Array(Array::new(parts)));
        return out;
    }
    let path = *random.pick(&PATHS);
    let field = path.rsplit('.').next().unwrap_or(path);
    let with = value(random, field).unwrap_or(Value::Null);
    let mut test = Document::new();
    match random.below(8) {
        0 => test.push("$exists", random.one_in(2)),
        1 => test.push(
            "$type",
            *random.pick(&["int", "number", "string", "date", "bool", "null"]),
        ),
        2 => test.push(
            "$in",
            Value::Array(Array::new(vec![
                with,
                Value::Null,
                value(random, field).unwrap_or(Value::Null),
            ])),
        ),
        3 => test.push("$not", doc! { "$gt": with }),
        _ => test.push(*random.pick(&["$eq", "$ne", "$lt", "$lte", "$gt", "$gte"]), with),
    }
    if random.one_in(12) {
        return doc! { "$expr": doc! { "$gt": vec![Value::from(format!("${path}")), value(random, field).unwrap_or(Value::Null)] } };
    }
    let mut out = Document::new();
    out.push(path, test);
    out
}

fn group(random: &mut Random) -> Document {
    let path = |random: &mut Random| Value::from(format!("${}", random.pick(&PATHS)));
    let id = match random.below(6) {
        0 => Value::Null,
        1 => doc! { "x": path(random), "y": path(random) }.into(),
        2 => doc! { "$ifNull": vec![path(random), "none".into()] }.into(),
        3 => doc! { "$type": path(random) }.into(),
        _ => path(random),
    };
    let mut out = doc! { "_id": id, "n": doc! { "$sum": 1 } };
    for (at, name) in [
        "$sum",
        "$avg",
        "$min",
        "$max",
        "$first",
        "$last",
        "$addToSet",
        "$stdDevPop",
    ]
    .iter()
    .enumerate()
    {
        if random.one_in(2) {
            let input = match random.below(5) {
                0 => doc! { "$cond": vec![doc! { "$gt": vec![path(random), 0.into()] }.into(), path(random), Value::Int32(1)] }.into(),
                _ => path(random),
            };
            let mut field = Document::new();
            field.push(*name, input);
            out.push(format!("f{at}"), field);
        }
    }
    out
}

/// What a pipeline makes of the documents: groups, or the first of them in an order.
fn made(random: &mut Random) -> Vec<Value> {
    let path = |random: &mut Random| Value::from(format!("${}", random.pick(&PATHS)));
    match random.below(9) {
        0..=3 => vec![doc! { "$group": group(random) }.into()],
        4 => vec![
            doc! { "$sortByCount": path(random) }.into(),
            doc! { "$sort": doc! { "_id": 1 } }.into(),
        ],
        5 => {
            let bounds = vec![Value::Int32(-2), Value::Int32(0), Value::Int32(3), Value::Int32(200)];
            let output = doc! { "n": doc! { "$sum": 1 }, "most": doc! { "$max": path(random) } };
            vec![doc! { "$bucket": doc! { "groupBy": path(random), "boundaries": bounds, "default": "other", "output": output } }.into()]
        }
        6 => vec![doc! { "$count": "n" }.into()],
        _ => {
            let mut by = Document::new();
            for _ in 0..1 + random.below(2) {
                let path = *random.pick(&PATHS);
                by.set(path, if random.one_in(2) { 1 } else { -1 });
            }
            // Then no two have one key.
            if random.one_in(2) {
                by.push("_id", -1);
            }
            let mut stages: Vec<Value> = vec![doc! { "$sort": by }.into()];
            if random.one_in(3) {
                stages.push(doc! { "$skip": random.below(20) as i32 }.into());
            }
            stages.push(doc! { "$limit": *random.pick(&[1, 7, 60, 900]) }.into());
            if random.one_in(3) {
                stages.push(doc! { "$project": doc! { "a": 1, "n.d": 1 } }.into());
            }
            stages
        }
    }
}

/// The groups, in an order of their own; sets have none.
fn answer(database: &mut Database, pipeline: Vec<Value>, hint: Option<Document>) -> Vec<String> {
    let is_ordered = format!("{pipeline:?}").contains("$limit");
    let mut command = doc! {
        "aggregate": "c", "pipeline": pipeline, "cursor": doc! { "batchSize": 1_000_000 },
    };
    if let Some(hint) = hint {
        command.push("hint", hint);
    }
    let reply = database.must(command);
    let batch = reply
        .get("cursor")
        .and_then(|cursor| cursor.as_document()?.get("firstBatch"));
    let batch = batch.and_then(|batch| batch.as_array()).expect("a batch");
    let mut groups: Vec<String> = batch.iter().map(|group| sorted(group.to_value())).collect();
    if !is_ordered {
        groups.sort();
    }
    groups
}

/// A group as text, with the elements of sets in order.
fn sorted(group: Value) -> String {
    let Value::Document(group) = group else {
        return String::new();
    };
    let fields = group.iter().map(|(name, value)| match value.as_array() {
        Some(items) if name == "f6" => {
            let mut items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            items.sort();
            format!("{name}: {items:?}")
        }
        _ => format!("{name}: {value:?}"),
    });
    fields.collect::<Vec<_>>().join(", ")
}

#[test]
fn groups_are_the_same_by_columns_as_by_documents() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::within(directory.path());
    let mut random = Random::new(3);
    let mut next = 0;
    let mut insert = |database: &mut Database, random: &mut Random, count: i64| {
        let documents: Vec<Value> = (next..next + count).map(|id| document(random, id).into()).collect();
        next += count;
        database.must(doc! { "insert": "c", "documents": documents });
        next
    };
    for _ in 0..5 {
        insert(&mut database, &mut random, 1000);
    }
    database.service.engine.checkpoint().expect("a checkpoint");
    let (mut by_columns, mut first_few, mut of, mut picked) = (0, 0, 0, 0);
    let all = vec![Value::from(doc! { "$group": doc! { "_id": Value::Null } })];
    answer(&mut database, all.clone(), None);
    for round in 0..25 {
        database.service.columns.settle();
        for _ in 0..4 {
            let mut pipeline = Vec::new();
            if !random.one_in(4) {
                pipeline.push(doc! { "$match": condition(&mut random, 2) }.into());
            }
            pipeline.extend(made(&mut random));
            let plan = database.must(doc! {
                "explain": doc! { "aggregate": "c", "pipeline": pipeline.clone(), "cursor": doc! {} }, "verbosity": "queryPlanner",
            });
            let is_by_columns = format!("{plan:?}").contains("COLUMN_SCAN");
            by_columns += usize::from(is_by_columns);
            first_few += usize::from(is_by_columns && format!("{pipeline:?}").contains("$limit"));
            of += 1;
            let columns = answer(&mut database, pipeline.clone(), None);
            let documents = answer(&mut database, pipeline.clone(), Some(doc! { "$natural": 1 }));
            picked += usize::from(!documents.is_empty());
            assert!(
                columns == documents,
                "{round}: {pipeline:?}\n{columns:#?}\n{documents:#?}"
            );
        }
        match random.below(3) {
            0 => _ = insert(&mut database, &mut random, 30),
            1 => {
                let deletes = vec![Value::from(
                    doc! { "q": doc! { "_id": doc! { "$mod": vec![Value::Int32(800), Value::Int32(random.below(800) as i32)] } }, "limit": 0 },
                )];
                database.must(doc! { "delete": "c", "deletes": deletes });
            }
            _ => {
                let set = doc! { "$set": doc! { "a": value(&mut random, "a").unwrap_or(Value::Null), "n": doc! { "d": "changed" } } };
                let updates = vec![Value::from(
                    doc! { "q": doc! { "_id": doc! { "$mod": vec![Value::Int32(600), Value::Int32(random.below(600) as i32)] } }, "u": set, "multi": true },
                )];
                database.must(doc! { "update": "c", "updates": updates });
            }
        }
        if random.one_in(3) {
            database.service.engine.checkpoint().expect("a checkpoint");
            // Whoever reads next wants what is stale made anew.
            answer(&mut database, all.clone(), None);
        }
    }
    assert!(
        by_columns * 2 > of && picked * 2 > of,
        "{by_columns} of {of} by columns, {picked} with groups"
    );
    assert!(first_few > 5, "{first_few} of them the first in an order");
}
