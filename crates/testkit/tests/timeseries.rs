//! A time-series collection answers as a plain collection with the same documents, whatever is inserted, deleted and asked.

#[path = "shared/database.rs"]
mod database;

use database::Database;
use nestor_model::{Array, Document, Namespace, Value, ValueRef, doc};
use nestor_storage::{Bytes, View};
use nestor_testkit::random::Random;

impl Database {
    /// The documents of a pipeline, as texts in an order of their own.
    fn documents(&mut self, coll: &str, pipeline: &[Document]) -> Vec<String> {
        let stages: Vec<Value> = pipeline.iter().map(|stage| Value::from(stage.clone())).collect();
        let reply = self.must(doc! {
            "aggregate": coll, "pipeline": Array::new(stages), "cursor": doc! { "batchSize": 10_000 },
        });
        let Some(ValueRef::Document(cursor)) = reply.get("cursor") else {
            panic!("no cursor in {reply:?}");
        };
        let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
        let mut documents: Vec<String> = batch
            .iter()
            .map(|document| {
                let document = document.as_document().expect("a document");
                let mut fields: Vec<String> = document
                    .iter()
                    .map(|(name, value)| format!("{name}: {value:?}"))
                    .collect();
                fields.sort();
                fields.join(", ")
            })
            .collect();
        documents.sort();
        documents
    }
}

/// The fields of the document that a findAndModify returned, in an order of their own.
fn taken(reply: &Document) -> Vec<String> {
    let value = reply.get("value").and_then(|value| value.as_document());
    let fields = value.into_iter().flat_map(|value| value.iter());
    let mut fields: Vec<String> = fields.map(|(name, value)| format!("{name}: {value:?}")).collect();
    fields.sort();
    fields
}

/// Values of measurements: usually numbers with few decimals, now and then anything.
fn value(random: &mut Random) -> Value {
    match random.below(10) {
        // None of them equals a double, of which $min and $max might give either.
        0 => Value::Int32(100 + random.below(20) as i32),
        1 => Value::from(["a", "b", "a long text that is no number"][random.below(3)]),
        2 => Value::Null,
        3 => Value::from(vec![Value::Int32(random.below(5) as i32), Value::Int32(40)]),
        4 => doc! { "x": random.below(3) as i32 }.into(),
        _ => Value::Double(random.below(400) as f64 / 10.0),
    }
}

/// Whole numbers, of which sums are the same in any order; a sensor usually gives one type.
fn whole_number(random: &mut Random) -> Value {
    // None of one type equals one of another, of which $min and $max might give either.
    let number = 3 * (random.below(300) as i32 - 150);
    match random.below(20) {
        0 => Value::Missing,
        1 => Value::Int64(i64::from(number + 1)),
        2 => Value::Double(f64::from(number + 2)),
        3 => Value::Null,
        _ => Value::Int32(number),
    }
}

/// A group by windows of time, which is made of columns.
fn windows(random: &mut Random) -> Document {
    let mut window =
        doc! { "date": "$t", "unit": ["second", "minute", "hour", "day", "week", "month"][random.below(6)] };
    if random.below(2) == 0 {
        window.push("binSize", 1 + random.below(5) as i32);
    }
    let window = doc! { "$dateTrunc": window };
    let id = match random.below(4) {
        0 => window.into(),
        1 => doc! { "s": "$m.s", "w": window }.into(),
        2 => Value::Null,
        _ => doc! { "m": "$m", "w": window }.into(),
    };
    let mut group = doc! { "_id": id, "count": doc! { "$count": Document::new() }, "sum": doc! { "$sum": "$n" } };
    for (name, accumulator, input) in [
        ("avg", "$avg", "$n"),
        ("low", "$min", "$n"),
        ("high", "$max", "$n"),
        ("least", "$min", "$v"),
        ("most", "$max", "$v"),
        ("from", "$min", "$t"),
        ("until", "$max", "$t"),
        ("sources", "$max", "$m"),
        ("total", "$sum", "$m.s"),
    ] {
        let mut field = Document::new();
        field.push(accumulator, input);
        group.push(name, field);
    }
    group
}

fn source(random: &mut Random) -> Value {
    match random.below(4) {
        0 => Value::Missing,
        1 => doc! { "s": random.below(3) as i32 }.into(),
        _ => Value::from(["p", "q"][random.below(2)]),
    }
}

/// Times of some hours, some before 1970.
fn time(random: &mut Random) -> Value {
    let base = if random.below(10) == 0 {
        -9_000_000
    } else {
        1_700_000_000_000
    };
    Value::DateTime(base + random.below(20_000) as i64 * 1_000)
}

fn filter(random: &mut Random) -> Document {
    let comparison = |random: &mut Random, value: Value| {
        let mut out = Document::new();
        out.push(
            ["$eq", "$lt", "$lte", "$gt", "$gte", "$ne", "$in"][random.below(6)],
            value,
        );
        out
    };
    let mut out = Document::new();
    match random.below(7) {
        0 => out.push("m", comparison_of(random, source)),
        1 => out.push("m.s", random.below(3) as i32),
        2 => {
            let of = time(random);
            out.push("t", comparison(random, of));
        }
        3 => {
            let (from, to) = (time(random), time(random));
            out.push("t", doc! { "$gte": from, "$lt": to });
        }
        4 => {
            let (one, other) = (filter(random), filter(random));
            let name = ["$and", "$or", "$nor"][random.below(3)];
            out.push(name, vec![Value::from(one), other.into()]);
        }
        _ => out.push("v", comparison_of(random, value)),
    }
    out
}

fn comparison_of(random: &mut Random, of: fn(&mut Random) -> Value) -> Document {
    let mut value = of(random);
    if value.is_missing() {
        value = Value::Null;
    }
    let mut out = Document::new();
    out.push(["$eq", "$lt", "$lte", "$gt", "$gte", "$ne"][random.below(6)], value);
    out
}

fn pipeline(random: &mut Random) -> Vec<Document> {
    let mut stages = vec![doc! { "$match": filter(random) }];
    match random.below(9) {
        5..=6 => stages = vec![doc! { "$group": windows(random) }],
        7..=8 => {
            let (from, to) = (time(random), time(random));
            stages = vec![
                doc! { "$match": doc! { "t": doc! { "$gte": from, "$lt": to } } },
                doc! { "$group": windows(random) },
            ];
        }
        0 => stages.push(doc! { "$match": filter(random) }),
        1 => stages.push(doc! { "$group": doc! {
            "_id": doc! { "m": "$m", "t": doc! { "$dateTrunc": doc! { "date": "$t", "unit": "hour" } } },
            "n": doc! { "$sum": 1 }, "min": doc! { "$min": "$v" }, "max": doc! { "$max": "$v" },
        } }),
        2 => {
            stages.push(doc! { "$group": doc! { "_id": "$m", "n": doc! { "$sum": 1 }, "last": doc! { "$max": "$t" } } })
        }
        3 => stages.push(doc! { "$project": doc! { "v": 1, "m": 1 } }),
        _ => {}
    }
    stages
}

#[test]
fn a_time_series_collection_answers_as_a_plain_one() {
    let (mut asked, mut removed) = (0, 0);
    for seed in 1..=4 {
        let mut random = Random::new(seed);
        let mut database = Database::new();
        let granularity = ["seconds", "minutes", "hours"][random.below(3)];
        database.must(doc! {
            "create": "series",
            "timeseries": doc! { "timeField": "t", "metaField": "m", "granularity": granularity },
        });
        database.must(doc! { "create": "plain" });
        let mut next_id = 0;
        for round in 0..25 {
            let count = 1 + random.below(if round % 5 == 0 { 400 } else { 20 });
            let documents: Vec<Value> = (0..count)
                .map(|_| {
                    next_id += 1;
                    let mut document = doc! { "_id": next_id, "t": time(&mut random) };
                    for (name, value) in [
                        ("m", source(&mut random)),
                        ("v", value(&mut random)),
                        ("n", whole_number(&mut random)),
                    ] {
                        if !value.is_missing() && random.below(10) > 0 {
                            document.push(name, value);
                        }
                    }
                    document.into()
                })
                .collect();
            for coll in ["series", "plain"] {
                database.must(doc! { "insert": coll, "documents": Array::new(documents.clone()) });
            }
            if round == 12 {
                // Of measured values that are arrays no index is made, as the two limits of a bucket would be parallel ones.
                let index = doc! { "key": doc! { "m.s": 1, "t": -1 }, "name": "mt" };
                database.must(doc! { "createIndexes": "series", "indexes": vec![Value::from(index)] });
            }
            if random.below(3) == 0 {
                let delete = doc! { "q": filter(&mut random), "limit": 0 };
                let [of_series, of_plain] = ["series", "plain"].map(|coll| {
                    let command = doc! { "delete": coll, "deletes": vec![Value::from(delete.clone())] };
                    let reply = database.must(command);
                    reply.get("n").and_then(nestor_model::number::safe_i64)
                });
                assert_eq!(of_series, of_plain, "seed {seed}, {delete:?}");
            }
            if random.below(3) == 0 {
                let mut by = Document::new();
                by.push(["v", "t", "m", "n"][random.below(4)], [1, -1][random.below(2)]);
                by.push("_id", 1);
                let one = if random.below(4) == 0 {
                    doc! { "_id": random.below(next_id as usize) as i32 }
                } else {
                    filter(&mut random)
                };
                let [of_series, of_plain] = ["series", "plain"].map(|coll| {
                    let command =
                        doc! { "findAndModify": coll, "query": one.clone(), "sort": by.clone(), "remove": true };
                    taken(&database.must(command))
                });
                removed += usize::from(!of_plain.is_empty());
                assert_eq!(of_series, of_plain, "seed {seed}, {one:?} {by:?}");
            }
            if random.below(3) == 0 {
                let update = doc! {
                    "q": doc! { "m": comparison_of(&mut random, source) },
                    "u": [doc! { "$set": doc! { "m": doc! { "s": random.below(3) as i32 } } }, doc! { "$unset": doc! { "m": 1 } }][random.below(2)].clone(),
                    "multi": true,
                };
                let [of_series, of_plain] = ["series", "plain"].map(|coll| {
                    let command = doc! { "update": coll, "updates": vec![Value::from(update.clone())] };
                    let reply = database.must(command);
                    ["n", "nModified"].map(|name| reply.get(name).and_then(nestor_model::number::safe_i64))
                });
                assert_eq!(of_series, of_plain, "seed {seed}, {update:?}");
            }
            for _ in 0..6 {
                let pipeline = pipeline(&mut random);
                let [of_series, of_plain] = ["series", "plain"].map(|coll| database.documents(coll, &pipeline));
                assert_eq!(of_series, of_plain, "seed {seed}, round {round}, {pipeline:?}");
                asked += usize::from(!of_plain.is_empty());
            }
        }
        let report = database.must(doc! { "validate": "system.buckets.series" });
        assert!(
            report.get("valid").is_some_and(ValueRef::truthy),
            "seed {seed}: {report:?}"
        );
    }
    assert!(removed > 5, "most removals find something: {removed}");
    assert!(asked > 200, "most pipelines find something: {asked}");
}

/// A bucket whose limits do not hold is a fault that `validate` and `nestor check` find.
#[test]
fn a_bucket_with_wrong_limits_is_found() {
    let mut database = Database::new();
    database.must(doc! { "create": "series", "timeseries": doc! { "timeField": "t", "metaField": "m" } });
    let measurement = |id: i64| doc! { "_id": id, "t": Value::DateTime(id * 1000), "m": 1, "v": id }.into();
    let measurements: Vec<Value> = (0..3).map(measurement).collect();
    database.must(doc! { "insert": "series", "documents": Array::new(measurements) });
    let engine = &database.service.engine;
    let mut ws = engine.begin();
    let buckets = ws
        .catalog()
        .get(&Namespace::new("test", "system.buckets.series"))
        .cloned()
        .expect("the buckets");
    let (record, mut bucket) = {
        let mut cursor = ws.cursor(buckets.records);
        assert!(cursor.first().expect("a record"));
        let bytes = cursor.value_bytes().expect("a record");
        (Bytes::copy_from(cursor.key()), bytes.document().as_doc().to_document())
    };
    let Some(Value::Document(mut control)) = bucket.remove("control") else {
        panic!("no control in {bucket:?}");
    };
    // As long as before, so that only the limits are wrong.
    control.set("max", doc! { "_id": 2i64, "t": Value::DateTime(2000), "v": 1i64 });
    bucket.set("control", control);
    ws.put_document(buckets.records, record, bucket.to_raw());
    engine.commit(ws).expect("a commit");
    let report = database.must(doc! { "validate": "system.buckets.series" });
    assert!(report.get("valid").is_some_and(|valid| !valid.truthy()), "{report:?}");
    assert!(format!("{report:?}").contains("largest value of 'v'"), "{report:?}");
}
